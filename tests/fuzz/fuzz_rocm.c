/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_rocm.c - any bytes as an image for ROCm, and behind a table that is right as a
 * code object and as a bundle: what is taken lies within what was given and names its
 * kernels; or it is refused and why. */
#include "fuzz.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/rocm/internal.h"
#include "tests/fakes/rocm/image.h"

static char text[512];

__attribute__((format(printf, 2, 3))) static int host_fail(int err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return -err;
}

static const struct hal_host host = {
	.size = sizeof(host), .abi = HAL_BACKEND_ABI, .fail = host_fail};
const struct hal_host *rocm_host = &host;

enum { KERNELS = 2 };
static const char *const kernels[KERNELS] = {"work:m8", "iota:m4"};
static const char *const archs[] = {"gfx90a:sramecc+:xnack-", "gfx1100"};

/* The table, and room for a body. */
static uint8_t *table;
#define TABLE (sizeof(struct hal_rocm_image) + KERNELS * sizeof(struct hal_rocm_kernel))

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	size_t size;

	(void)argc;
	(void)argv;
	table = make_rocm_code(kernels, KERNELS, 4, 1, &size);
	return 0;
}

/* 0: a bundle; 1 to 4: the code object of each device; 5: an image. */
size_t fuzz_seed(unsigned int index, uint8_t *data, size_t max)
{
	const size_t skip = index < 5 ? TABLE : 0;
	uint8_t *image;
	size_t size;

	if (index > 5)
		return 0;
	image = index % 5 ? make_rocm_code(kernels, KERNELS, 4, index - 1, &size)
			  : make_rocm_image(kernels, KERNELS, 4, &size);
	size = size - skip < max ? size - skip : max;
	memcpy(data, image + skip, size);
	free(image);
	return size;
}

static void take(const uint8_t *image, size_t size, const char *arch)
{
	struct rocm_program prog = {0};
	const uint8_t *code;
	uint32_t i;

	text[0] = 0;
	if (rocm_image_parse(image, size, arch, &prog)) {
		if (!text[0])
			abort(); /* refused without a reason */
		free(prog.kernels);
		return;
	}
	code = prog.code;
	if (!prog.count || code < image || code > image + size ||
	    prog.code_bytes > (size_t)(image + size - code))
		abort();
	for (i = 0; i < prog.count; i++)
		if (!prog.kernels[i].info.name[0] ||
		    !memchr(prog.kernels[i].info.name, 0,
			    sizeof(prog.kernels[i].info.name)) ||
		    prog.kernels[i].info.arg_count > HAL_ARGS_MAX)
			abort();
	free(prog.kernels);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct hal_rocm_image *image = malloc(TABLE + size);
	uint32_t i;

	if (!image)
		abort();
	memcpy(image, table, TABLE);
	memcpy((uint8_t *)image + TABLE, data, size);
	image->bytes = (uint32_t)(TABLE + size);
	image->code_bytes = (uint32_t)size;
	for (i = 0; i < sizeof(archs) / sizeof(archs[0]); i++) {
		take(data, size, archs[i]);
		image->format = HAL_ROCM_CODE_OBJECT;
		take((const uint8_t *)image, TABLE + size, archs[i]);
		image->format = HAL_ROCM_BUNDLE;
		take((const uint8_t *)image, TABLE + size, archs[i]);
	}
	free(image);
	return 0;
}
