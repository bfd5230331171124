/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of the negative suite for the stand-in of HIP. */
#include "negative.h"

#include <stdlib.h>

#include <hal/rocm.h>

#include "../conformance/conformance.h"
#include "tests/fakes/rocm/image.h"

static int rocm_image(void **image, size_t *size)
{
	static const char *const names[] = {"twice:mm", "slow:m", "bad:m"};
	struct hal_rocm_kernel *k;

	*image = make_rocm_image(names, 3, 64, size);
	k = (void *)((struct hal_rocm_image *)*image + 1);
	k[0].arg_bytes[0] = k[0].arg_bytes[1] = 64;
	k[1].arg_bytes[0] = k[2].arg_bytes[0] = 64;
	k[0].work = 64;
	k[2].work = 8;
	return 0;
}

static const struct conf_pack rocm_pack = {"rocm", rocm_image, free, 0};
CONF_PACK(rocm_pack);
