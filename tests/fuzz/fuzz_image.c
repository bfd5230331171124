/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_image.c - any bytes as an NPU program: loaded and listed, or refused with a text.
 */
#include "fuzz.h"

#include <hal/hal.h>
#include <hal/npu.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct hal_device *dev;
static void *image;
static size_t image_size;

static void must(int rc)
{
	if (rc < 0) {
		fprintf(stderr, "%s\n", hal_last_error());
		abort();
	}
}

/* Two kernels, a constant, scratch: every table of the format has entries. */
static void build(void)
{
	static const int8_t weights[12 * 8];
	struct hal_npu_gemm op = {.size = (uint32_t)sizeof(op), .m = 4, .n = 8, .k = 12};
	struct hal_npu_builder *b;
	struct hal_npu_place scratch = {0};

	must(hal_npu_builder_create(&b));
	must(hal_npu_const(b, weights, sizeof(weights), &op.b.id));
	must(hal_npu_scratch(b, 256, &scratch.id));
	must(hal_npu_kernel(b, "one"));
	must(hal_npu_arg(b, 4 * 12, &op.a.id));
	must(hal_npu_arg(b, (uint64_t)4 * 8 * 4, &op.d.id));
	must(hal_npu_gemm(b, &op));
	must(hal_npu_kernel(b, "two"));
	must(hal_npu_fill(b, scratch, 256, 0x01020304));
	must(hal_npu_build(b, &image, &image_size));
	must(hal_npu_builder_destroy(b));
}

static void finish(void)
{
	hal_npu_image_free(image);
	must(hal_close(dev));
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	build();
	must(hal_open("npu:0?clock=virtual", NULL, &dev));
	return atexit(finish);
}

size_t fuzz_seed(unsigned int index, uint8_t *data, size_t max)
{
	if (index > 0 || image_size > max)
		return 0;
	memcpy(data, image, image_size);
	return image_size;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct hal_kernel_info info = HAL_INIT(hal_kernel_info);
	struct hal_kernel *kernel;
	struct hal_program *prog;

	if (hal_program_load(dev, data, size, &prog) < 0) {
		if (hal_last_error()[0] == '\0')
			abort(); /* refused without a reason */
		return 0;
	}
	if (hal_kernel_find(prog, "one", &kernel) == 0)
		must(hal_kernel_get_info(kernel, &info));
	must(hal_program_unload(prog));
	return 0;
}
