/* SPDX-License-Identifier: Apache-2.0 */
/* bench_kernels.c - the kernel of the benchmarks, in a library of the software device's
 * option kernels=, from which hald takes it. */
#include <hal/ref.h>

static int nothing(const struct hal_ref_call *call)
{
	(void)call;
	return 0;
}

static const struct hal_ref_kernel kernels[] = {
	{.name = "nothing",
	 .fn = nothing,
	 .span_ns = 1,
	 .arg_count = 2,
	 .arg_bytes = {64, 64}},
};

HAL_API const struct hal_ref_library hal_ref_library;
const struct hal_ref_library hal_ref_library = {
	.version = HAL_REF_VERSION,
	.kernel_size = sizeof(struct hal_ref_kernel),
	.kernel_count = 1,
	.kernels = kernels,
};
