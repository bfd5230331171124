/* SPDX-License-Identifier: Apache-2.0 */
/* The conformance kernels for the stand-in of HIP, which goes by their names.  For a GPU
 * they come in a file (hal_conformance --image).  Some follow hal/device/hal_preempt.h.
 */
#include "conformance.h"

#include <stdlib.h>

#include <hal/rocm.h>

#include "tests/fakes/rocm/image.h"

static int rocm_image(void **image, size_t *size)
{
	static const char *const names[] = {"copy:mm", "gemm:mmmp", "add:mmm", "spin:mp",
					    "wild:m"};
	static const uint64_t least[] = {CONF_COPY_BYTES, CONF_GEMM_BYTES, CONF_ADD_BYTES,
					 CONF_SPIN_BYTES, CONF_SPIN_BYTES};
	struct hal_rocm_kernel *k;
	uint32_t i, a;

	*image = make_rocm_image(names, 5, 256, size);
	k = (void *)((struct hal_rocm_image *)*image + 1);
	for (i = 0; i < 5; i++)
		for (a = 0; a < k[i].arg_count; a++)
			k[i].arg_bytes[a] = least[i];
	k[1].work = CONF_GEMM_BYTES * CONF_GEMM_N;
	return 0;
}

static const struct conf_pack rocm_pack = {"rocm", rocm_image, free, 1024};
CONF_PACK(rocm_pack);
