/* SPDX-License-Identifier: Apache-2.0 */
/* image.h - images for the stand-in driver. */
#ifndef TESTS_FAKES_CUDA_IMAGE_H
#define TESTS_FAKES_CUDA_IMAGE_H

#include <stddef.h>
#include <stdint.h>

/* Kernels as "name:m48": arguments are memory or scalars of so many bytes; blocks of
 * group_size threads; "@4096" at the end: so much local memory of a thread.  To be freed.
 */
void *make_cuda_image(const char *const *kernels, uint32_t count, uint32_t group_size,
		      size_t *size);

#endif
