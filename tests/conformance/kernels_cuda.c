/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The conformance kernels for CUDA: a table in front of kernels_cuda.ptx.  The stand-in
 * driver of tests/fakes/cuda goes by their names; on a GPU they do what is written there.
 */
#include "conformance.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hal/cuda.h>

enum { KERNELS = 5 };

struct table {
	struct hal_cuda_image head;
	struct hal_cuda_kernel kernels[KERNELS];
};

static const struct table template = {
	{HAL_CUDA_MAGIC, HAL_CUDA_VERSION, 0, HAL_CUDA_PTX, KERNELS,
	 sizeof(struct hal_cuda_kernel), 0, 0},
	{
		{.name = "copy",
		 .block = {256, 1, 1},
		 .arg_count = 2,
		 .arg_bytes = {CONF_COPY_BYTES, CONF_COPY_BYTES}},
		{.name = "gemm",
		 .block = {256, 1, 1},
		 .arg_count = 3,
		 .arg_bytes = {CONF_GEMM_BYTES, CONF_GEMM_BYTES, CONF_GEMM_BYTES},
		 .work = CONF_GEMM_BYTES * CONF_GEMM_N},
		{.name = "add",
		 .block = {256, 1, 1},
		 .arg_count = 3,
		 .arg_bytes = {CONF_ADD_BYTES, CONF_ADD_BYTES, CONF_ADD_BYTES}},
		{.name = "spin",
		 .block = {64, 1, 1},
		 .arg_count = 1,
		 .arg_bytes = {CONF_SPIN_BYTES}},
		{.name = "wild", .arg_count = 1, .arg_bytes = {CONF_SPIN_BYTES}},
	},
};

static int cuda_image(void **image, size_t *size)
{
	FILE *f = fopen(CONF_CUDA_PTX, "rb");
	size_t room = sizeof(template) + 65536, n = 0;
	struct table *t = malloc(room);

	if (t && f)
		n = fread(t + 1, 1, room - sizeof(*t) - 1, f);
	if (f)
		fclose(f);
	if (!n) {
		free(t);
		return f ? -ENOMEM : -ENOENT;
	}
	*t = template;
	((char *)(t + 1))[n++] = 0;
	*size = sizeof(*t) + n;
	t->head.bytes = (uint32_t)*size;
	t->head.module_bytes = (uint32_t)n;
	*image = t;
	return 0;
}

static const struct conf_pack cuda_pack = {"cuda", cuda_image, free, 1024};
CONF_PACK(cuda_pack);
