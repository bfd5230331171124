/* SPDX-License-Identifier: Apache-2.0 */
/* arch: compute_90 */
/* Copies by tensor maps, and clusters: what only a GPU can run. */
#include "modern.h"

/* A tile at a time comes by the map, two at once; their sums are the result. */
extern "C" __global__ void tiles_in(float *out, const __grid_constant__ u64 map, int tiles)
{
	__shared__ alignas(128) float tile[2][32 * 32];
	__shared__ alignas(8) u64 full[2];
	float sum = 0;

	if (T == 0) {
		set_up(&full[0], 1);
		set_up(&full[1], 1);
		asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
	}
	__syncthreads();
	for (int i = 0; i < tiles; i++) {
		const int at = i % 2;

		if (T == 0) {
			expect(&full[at], sizeof(tile[at]));
			asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile."
				     "mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::
					     "r"(in_shared(tile[at])),
				     "l"(&map), "r"(32 * i), "r"(32 * B),
				     "r"(in_shared(&full[at]))
				     : "memory");
		}
		await(&full[at], i / 2 % 2);
		for (int j = T; j < 32 * 32; j += WIDTH)
			sum += tile[at][j];
		__syncthreads();
	}
	atomicAdd(&out[B], sum);
}

extern "C" __global__ void tiles_out(const float *a, const __grid_constant__ u64 map)
{
	__shared__ alignas(128) float tile[64];

	tile[T] = 2 * a[THREAD];
	asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
	__syncthreads();
	if (T == 0) {
		asm volatile("cp.async.bulk.tensor.1d.global.shared::cta.bulk_group "
			     "[%0, {%1}], [%2];" ::"l"(&map),
			     "r"(WIDTH * B), "r"(in_shared(tile))
			     : "memory");
		asm volatile("cp.async.bulk.commit_group;" ::: "memory");
		asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
	}
}

/* One tile for all blocks of a cluster. */
extern "C" __global__ void tiles_shared(float *out, const __grid_constant__ u64 map)
{
	__shared__ alignas(128) float tile[64];
	__shared__ alignas(8) u64 full;

	if (T == 0) {
		set_up(&full, 1);
		expect(&full, sizeof(tile));
		asm volatile("cp.async.bulk.tensor.1d.shared::cluster.global.tile."
			     "mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%2}], "
			     "[%3], %4;" ::"r"(in_shared(tile)),
			     "l"(&map), "r"(0), "r"(in_shared(&full)), "h"((short)3)
			     : "memory");
	}
	__syncthreads();
	await(&full, 0);
	out[THREAD] = tile[T];
}

extern "C" __global__ void __cluster_dims__(2, 1, 1) cluster_two(float *out, const float *a)
{
	__shared__ float part[64];
	u32 rank, there;
	float v;

	part[T] = a[THREAD];
	asm volatile("barrier.cluster.arrive;\n\tbarrier.cluster.wait;" ::: "memory");
	asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
	asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
		     : "=r"(there)
		     : "r"(in_shared(&part[T])), "r"(rank ^ 1));
	asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(v) : "r"(there) : "memory");
	asm volatile("barrier.cluster.arrive;\n\tbarrier.cluster.wait;" ::: "memory");
	out[THREAD] = v;
}
