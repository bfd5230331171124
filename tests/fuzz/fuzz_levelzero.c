/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_levelzero.c - any bytes as an image for Level Zero, SPIR-V or a table: what is
 * taken lies within what was given, and each kernel has a name and at most HAL_ARGS_MAX
 * arguments; or it is refused and why. */
#include "fuzz.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/levelzero/internal.h"
#include "tests/fakes/levelzero/image.h"

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
const struct hal_host *lz_host = &host;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	return 0;
}

/* 0: a table and a module; 1: SPIR-V that says its group size; 2: that does not. */
size_t fuzz_seed(unsigned int index, uint8_t *data, size_t max)
{
	static const char *const kernels[2] = {"work:m8", "iota:m4"};
	uint8_t *image;
	size_t size;

	if (index > 2)
		return 0;
	image = index == 0 ? make_image(kernels, 2, 4, &size)
			   : make_spirv(kernels, 2, index == 1 ? 4 : 0, &size);
	size = size < max ? size : max;
	memcpy(data, image, size);
	free(image);
	return size;
}

static void check(const struct lz_program *prog, const uint8_t *image, size_t size)
{
	if (prog->code < image || prog->code > image + size ||
	    prog->code_bytes > (size_t)(image + size - prog->code))
		abort();
	for (uint32_t i = 0; i < prog->count; i++) {
		const struct hal_bk_kernel_info *k = &prog->kernels[i].info;

		if (!k->name[0] || !memchr(k->name, 0, sizeof(k->name)) ||
		    k->arg_count > HAL_ARGS_MAX)
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct lz_program prog = {0};
	uint8_t *image = malloc(size ? size : 1); /* aligned, as the core's copy */

	if (!image)
		abort();
	memcpy(image, data, size);
	text[0] = 0;
	if (!lz_image_parse(image, size, &prog))
		check(&prog, image, size);
	else if (!text[0])
		abort(); /* refused without a reason */
	free(prog.kernels);
	free(image);
	return 0;
}
