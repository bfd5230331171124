/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_ref.c - any bytes as an image of the software device: every kernel of it is one
 * that is registered, or it is refused with a text. */
#include "fuzz.h"

#include <hal/ref.h>

#include <stdio.h>

static struct hal_device *dev;

static void must(int rc)
{
	if (rc < 0) {
		fprintf(stderr, "%s\n", hal_last_error());
		abort();
	}
}

static int nothing(const struct hal_ref_call *call)
{
	(void)call;
	return 0;
}

static const struct hal_ref_kernel kernels[] = {
	{.name = "a", .fn = nothing, .work = 1},
	{.name = "b", .fn = nothing, .work = 2},
	{.name = "a name as long as one can be...", .fn = nothing, .work = 3},
};

static const struct {
	struct hal_ref_image head;
	char names[3][HAL_REF_NAME];
} image = {{HAL_REF_MAGIC, HAL_REF_VERSION, HAL_REF_NAME, 3},
	   {"a", "b", "a name as long as one can be..."}};

static void finish(void)
{
	must(hal_close(dev));
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	struct hal_program *prog;

	(void)argc;
	(void)argv;
	must(hal_open("ref?clock=virtual", NULL, &dev));
	must(hal_ref_load(dev, kernels, 3, &prog));
	must(hal_program_unload(prog));
	return atexit(finish);
}

size_t fuzz_seed(unsigned int index, uint8_t *data, size_t max)
{
	if (index > 0 || sizeof(image) > max)
		return 0;
	memcpy(data, &image, sizeof(image));
	return sizeof(image);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct hal_program_info info = HAL_INIT(hal_program_info);
	struct hal_kernel_info k = HAL_INIT(hal_kernel_info);
	struct hal_kernel *kernel;
	struct hal_program *prog;

	if (hal_program_load(dev, data, size, &prog) < 0) {
		if (hal_last_error()[0] == '\0')
			abort(); /* refused without a reason */
		return 0;
	}
	must(hal_program_get_info(prog, &info));
	if (info.kernel_count == 0 || info.kernel_count > 3)
		abort();
	for (uint32_t i = 0; i < info.kernel_count; i++) {
		must(hal_kernel_get(prog, i, &kernel));
		must(hal_kernel_get_info(kernel, &k));
		if (k.work == 0 || k.work > 3 ||
		    strcmp(k.name, kernels[k.work - 1].name) != 0)
			abort();
	}
	must(hal_program_unload(prog));
	return 0;
}
