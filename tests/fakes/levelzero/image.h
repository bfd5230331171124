/* SPDX-License-Identifier: Apache-2.0 */
/* image.h - images for the stand-in driver, made of names and arguments. */
#ifndef TESTS_FAKES_LEVELZERO_IMAGE_H
#define TESTS_FAKES_LEVELZERO_IMAGE_H

#include <stddef.h>
#include <stdint.h>

/* An image for the stand-in: kernels of its kernels.c, "name:arguments" where an argument
 * is m (memory) or 1, 2, 4, 8 (a scalar of that many bytes).  Freed by the caller. */
void *make_image(const char *const *kernels, uint32_t count, uint32_t group_size,
		 size_t *size);
/* The same as SPIR-V, without a table: entry points, parameter types, bodies that do
 * nothing.  group_size 0: the code does not say. */
void *make_spirv(const char *const *kernels, uint32_t count, uint32_t group_size,
		 size_t *size);

#endif
