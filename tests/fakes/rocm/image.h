/* SPDX-License-Identifier: Apache-2.0 */
/* image.h - images for the stand-in of HIP. */
#ifndef TESTS_FAKES_ROCM_IMAGE_H
#define TESTS_FAKES_ROCM_IMAGE_H

#include <stddef.h>
#include <stdint.h>

/* Kernels as "name:m48": arguments are memory or scalars of so many bytes; "p" at the
 * end: it follows hal/device/hal_preempt.h.  Groups of group_size.  A bundle with a code
 * object for each device of the stand-in.  To be freed.  Behind its arguments, from a
 * multiple of 8 on, each has hidden ones: groups in x (4 bytes), work-items of one in x
 * (2), dimensions (2), and 8 bytes that are 0.
 */
void *make_rocm_image(const char *const *kernels, uint32_t count, uint32_t group_size,
		      size_t *size);
/* The same, for the device of that number alone, and no bundle. */
void *make_rocm_code(const char *const *kernels, uint32_t count, uint32_t group_size,
		     uint32_t device, size_t *size);

#endif
