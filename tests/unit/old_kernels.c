/* SPDX-License-Identifier: Apache-2.0 */
/* A library of kernels that was built for another version of hal/ref.h. */
#include <hal/ref.h>

HAL_API const struct hal_ref_library hal_ref_library;
const struct hal_ref_library hal_ref_library = {
	.version = 1,
	.kernel_size = sizeof(struct hal_ref_kernel),
};
