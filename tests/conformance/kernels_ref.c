/* SPDX-License-Identifier: Apache-2.0 */
/* The conformance kernels for the software device: an image of their names alone.  The
 * functions are in a library, ref_kernels.c, that devices get by their option kernels=.
 */
#define _GNU_SOURCE
#include "conformance.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <hal/ref.h>

static const struct {
	struct hal_ref_image head;
	char names[5][HAL_REF_NAME];
} names = {{HAL_REF_MAGIC, HAL_REF_VERSION, HAL_REF_NAME, 5},
	   {"copy", "gemm", "add", "spin", "wild"}};

/* CONF_REF_KERNELS: path of the library. */
__attribute__((constructor)) static void set_library(void)
{
	(void)setenv("HAL_BACKEND_REF_KERNELS", CONF_REF_KERNELS, 0);
}

static int ref_image(void **image, size_t *size)
{
	void *p = malloc(sizeof(names));

	if (!p)
		return -ENOMEM;
	memcpy(p, &names, sizeof(names));
	*image = p;
	*size = sizeof(names);
	return 0;
}

static const struct conf_pack ref_pack = {"ref", ref_image, free, 0};
CONF_PACK(ref_pack);
