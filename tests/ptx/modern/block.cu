/* SPDX-License-Identifier: Apache-2.0 */
/* arch: compute_90 */
/* Of recent GPUs: barriers in shared memory and how they are waited for, copies in bulk,
 * launches that overlap, a cluster of one block; and traps, asserts, printf, a stack. */
#include <assert.h>
#include <stdio.h>

#include "modern.h"

KERNEL(bulk_copy, int)
{
	__shared__ alignas(128) int part[64];
	__shared__ alignas(8) u64 full;

	if (T == 0) {
		set_up(&full, 1);
		expect(&full, sizeof(part));
		asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
			     "[%0], [%1], %2, [%3];" ::"r"(in_shared(part)),
			     "l"(a + 64 * B), "r"((u32)sizeof(part)), "r"(in_shared(&full))
			     : "memory");
	}
	__syncthreads();
	await(&full, 0);
	if (THREAD < n)
		out[THREAD] = part[63 - T] + 1;
}

/* Half of the threads hand over to the other half, by two barriers. */
KERNEL(hand_over, int)
{
	__shared__ int slot[32];
	__shared__ alignas(8) u64 full, empty;
	const int lane = T % 32;

	if (T == 0) {
		set_up(&full, 32);
		set_up(&empty, 32);
	}
	__syncthreads();
	for (int i = 0; i < n; i++) {
		const int at = (B * n + i) * 32 + lane;

		if (T >= 32) {
			if (i)
				await(&empty, (i - 1) % 2);
			slot[lane] = a[at];
			arrive(&full);
		} else {
			await_timed(&full, i % 2);
			out[at] = 3 * slot[lane] + b[at];
			arrive(&empty);
		}
	}
}

KERNEL(overlapped, int)
{
	asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
	asm volatile("griddepcontrol.wait;" ::: "memory");
	if (THREAD < n)
		out[THREAD] = 2 * a[THREAD] + 1;
}

extern "C" __global__ void __cluster_dims__(1, 1, 1)
	cluster_one(int *out, const int *a, const int *b, int n)
{
	__shared__ int part[64];
	u32 rank, there;
	int v;

	part[T] = a[THREAD];
	asm volatile("barrier.cluster.arrive;\n\tbarrier.cluster.wait;" ::: "memory");
	asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
	asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
		     : "=r"(there)
		     : "r"(in_shared(&part[63 - T])), "r"(rank));
	asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(v) : "r"(there) : "memory");
	out[THREAD] = v + n;
}

KERNEL(asserts, int)
{
	assert(n > 0);
	if (THREAD < n) {
		assert(a[THREAD] < 1000000);
		out[THREAD] = a[THREAD] * 2;
	}
}

KERNEL(prints, int)
{
	if (THREAD < n) {
		if (a[THREAD] > 1000000)
			printf("block %d: %d\n", B, a[THREAD]);
		out[THREAD] = a[THREAD] + 1;
	}
}

KERNEL(traps, int)
{
	for (int i = T; i < n; i += WIDTH) {
		if (a[i] == 0x7fffffff)
			__trap();
		out[B * n + i] = a[i] + B;
	}
}

/* A stack as large as the launch says, in each turn. */
KERNEL(stacks, int)
{
	int sum = 0;

	for (int i = 0; i < 4; i++) {
		int *p = (int *)__builtin_alloca(4 * (n + i));

		for (int j = 0; j < n + i; j++)
			p[j] = a[THREAD] + j;
		sum += p[(T + i) % (n + i)];
	}
	out[THREAD] = sum;
}
