/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The conformance kernels for Level Zero: an image whose module is for the stand-in
 * driver of tests/fakes/levelzero.  A real device refuses it: it is no binary of its.
 */
#include "conformance.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <hal/levelzero.h>

#include "tests/fakes/levelzero/stand_in.h"

enum { KERNELS = 5 };

struct levelzero_image {
	struct hal_levelzero_image head;
	struct hal_levelzero_kernel kernels[KERNELS];
	struct lz_stand_in_module module;
	char names[KERNELS][32];
};

static const struct levelzero_image template = {
	{HAL_LEVELZERO_MAGIC, HAL_LEVELZERO_VERSION, sizeof(struct levelzero_image), 1,
	 KERNELS, sizeof(struct hal_levelzero_kernel),
	 sizeof(struct lz_stand_in_module) + KERNELS * 32, 0},
	{
		{.name = "copy",
		 .group_size = {64, 1, 1},
		 .arg_count = 2,
		 .arg_bytes = {CONF_COPY_BYTES, CONF_COPY_BYTES}},
		{.name = "gemm",
		 .group_size = {32, 32, 1},
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
	{LZ_STAND_IN_MAGIC, sizeof(struct lz_stand_in_module) + KERNELS * 32, KERNELS, 0},
	{"copy", "gemm", "add", "spin", "wild"},
};

static int levelzero_image(void **image, size_t *size)
{
	void *p = malloc(sizeof(template));

	if (!p)
		return -ENOMEM;
	memcpy(p, &template, sizeof(template));
	*image = p;
	*size = sizeof(template);
	return 0;
}

static const struct conf_pack levelzero_pack = {"levelzero", levelzero_image, free};
CONF_PACK(levelzero_pack);
