/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The conformance kernels for Level Zero: a table in front of SPIR-V.  The stand-in
 * driver of tests/fakes/levelzero goes by their names; on a real one they do nothing.
 */
#include "conformance.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <hal/levelzero.h>

#include "tests/fakes/levelzero/image.h"

enum { KERNELS = 5 };

struct table {
	struct hal_levelzero_image head;
	struct hal_levelzero_kernel kernels[KERNELS];
};

static const struct table template = {
	{HAL_LEVELZERO_MAGIC, HAL_LEVELZERO_VERSION, 0, 0, KERNELS,
	 sizeof(struct hal_levelzero_kernel), 0, 0},
	{
		{.name = "copy",
		 .group_size = {64, 1, 1},
		 .arg_count = 2,
		 .arg_bytes = {CONF_COPY_BYTES, CONF_COPY_BYTES}},
		{.name = "gemm",
		 .group_size = {32, 8, 1},
		 .arg_count = 3,
		 .arg_bytes = {CONF_GEMM_BYTES, CONF_GEMM_BYTES, CONF_GEMM_BYTES},
		 .work = CONF_GEMM_BYTES * CONF_GEMM_N},
		{.name = "add",
		 .group_size = {64, 1, 1},
		 .arg_count = 3,
		 .arg_bytes = {CONF_ADD_BYTES, CONF_ADD_BYTES, CONF_ADD_BYTES}},
		{.name = "spin", .arg_count = 1, .arg_bytes = {CONF_SPIN_BYTES}},
		{.name = "wild", .arg_count = 1, .arg_bytes = {CONF_SPIN_BYTES}},
	},
};

static int levelzero_image(void **image, size_t *size)
{
	static const char *const names[KERNELS] = {"copy:mm", "gemm:mmm", "add:mmm",
						   "spin:m", "wild:m"};
	size_t bytes;
	void *module = make_spirv(names, KERNELS, 0, &bytes);
	struct table *t = malloc(sizeof(*t) + bytes);

	if (!t) {
		free(module);
		return -ENOMEM;
	}
	*t = template;
	*size = sizeof(*t) + bytes;
	t->head.bytes = (uint32_t)*size;
	t->head.module_bytes = (uint32_t)bytes;
	memcpy(t + 1, module, bytes);
	free(module);
	*image = t;
	return 0;
}

static const struct conf_pack levelzero_pack = {"levelzero", levelzero_image, free, 0};
CONF_PACK(levelzero_pack);
