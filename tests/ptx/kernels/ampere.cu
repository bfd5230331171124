/* SPDX-License-Identifier: Apache-2.0 */
/* arch: compute_80 */
/* What compute capability 8.0 brought: copies to shared memory beside the threads' work. */
#include "kernels.h"

static __device__ u32 in_shared(void *p)
{
	return (u32)__cvta_generic_to_shared(p);
}

KERNEL(copy_async, int)
{
	__shared__ int s[64];

	asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(in_shared(&s[T])),
		     "l"(a + THREAD));
	asm volatile("cp.async.commit_group;\n\tcp.async.wait_group 0;");
	__syncthreads();
	out[THREAD] = s[63 - T] + n;
}

/* Two tiles in turn; what is behind the end is 0. */
KERNEL(copy_async_stages, int4)
{
	__shared__ int4 s[2][32];
	int4 sum = {0, 0, 0, 0};

	for (int i = 0; i <= 4; i++) {
		const int at = B * 128 + 32 * i + T;

		if (i < 4)
			asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(
					     in_shared(&s[i % 2][T])),
				     "l"(b + (at < n ? at : 0)), "r"(at < n ? 16 : 0));
		asm volatile("cp.async.commit_group;");
		if (!i)
			continue;
		asm volatile("cp.async.wait_group 1;");
		__syncthreads();
		const int4 v = s[(i - 1) % 2][31 - T];

		sum.x += v.x;
		sum.y += v.y;
		sum.z += v.z;
		sum.w += v.w;
		__syncthreads();
	}
	out[B * 32 + T] = sum;
}

KERNEL(redux, int)
{
	const int sum = __reduce_add_sync(~0u, a[THREAD]);
	const u32 most = __reduce_max_sync(~0u, (u32)b[THREAD] & 0xffff);

	if (T % 32 == 0)
		out[THREAD / 32] = sum + (int)most;
}
