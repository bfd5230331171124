/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of the negative suite for the stand-in of CUDA. */
#include "negative.h"

#include <stdlib.h>

#include <hal/cuda.h>

#include "../conformance/conformance.h"
#include "tests/fakes/cuda/image.h"

static int cuda_image(void **image, size_t *size)
{
	static const char *const names[] = {"twice:mm", "slow:m", "bad:m"};
	struct hal_cuda_kernel *k;

	*image = make_cuda_image(names, 3, 64, size);
	k = (void *)((struct hal_cuda_image *)*image + 1);
	k[0].arg_bytes[0] = k[0].arg_bytes[1] = 64;
	k[0].work = 64;
	k[1].arg_bytes[0] = k[2].arg_bytes[0] = 64;
	k[2].work = 8;
	return 0;
}

static const struct conf_pack cuda_pack = {"cuda", cuda_image, free, 0};
CONF_PACK(cuda_pack);
