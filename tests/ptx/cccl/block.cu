/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels instantiated from the toolkit's CCCL headers (CUB): what blocks and warps do
 * together.  cccl.sh compiles them where the headers are; nothing of them is kept here.
 */
#include <cub/block/block_shuffle.cuh>
#include <cub/cub.cuh>

#include "../kernels/kernels.h"

template <class Type, cub::BlockReduceAlgorithm How>
__device__ void reduce(Type *out, const Type *a, int n)
{
	using Reduce = cub::BlockReduce<Type, 128, How>;
	__shared__ typename Reduce::TempStorage s;
	const Type sum = Reduce(s).Sum(THREAD < n ? a[THREAD] : Type());

	if (!T)
		out[B] = sum;
}

KERNEL(reduce_raking, int) { reduce<int, cub::BLOCK_REDUCE_RAKING>(out, a, n); }
KERNEL(reduce_commutative, int)
{
	reduce<int, cub::BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY>(out, a, n);
}
KERNEL(reduce_warps, int) { reduce<int, cub::BLOCK_REDUCE_WARP_REDUCTIONS>(out, a, n); }
KERNEL(reduce_warps_float, float)
{
	reduce<float, cub::BLOCK_REDUCE_WARP_REDUCTIONS>(out, a, n);
}

struct largest {
	__device__ int operator()(int x, int y) const { return x > y ? x : y; }
};

KERNEL(reduce_largest, int)
{
	using Reduce = cub::BlockReduce<int, 128>;
	__shared__ Reduce::TempStorage s;
	const int most = Reduce(s).Reduce(THREAD < n ? a[THREAD] : -1000, largest());

	if (!T)
		out[B] = most;
}

template <cub::BlockScanAlgorithm How> __device__ void scan(int *out, const int *a, int n)
{
	using Scan = cub::BlockScan<int, 128, How>;
	__shared__ typename Scan::TempStorage s;
	int v = THREAD < n ? a[THREAD] : 0;

	Scan(s).InclusiveSum(v, v);
	out[THREAD] = v;
}

KERNEL(scan_raking, int) { scan<cub::BLOCK_SCAN_RAKING>(out, a, n); }
KERNEL(scan_memoized, int) { scan<cub::BLOCK_SCAN_RAKING_MEMOIZE>(out, a, n); }
KERNEL(scan_warps, int) { scan<cub::BLOCK_SCAN_WARP_SCANS>(out, a, n); }

KERNEL(scan_exclusive, int)
{
	using Scan = cub::BlockScan<int, 64>;
	__shared__ Scan::TempStorage s;
	int v[4], all;

	for (int i = 0; i < 4; i++)
		v[i] = a[4 * THREAD + i];
	Scan(s).ExclusiveSum(v, v, all);
	for (int i = 0; i < 4; i++)
		out[4 * THREAD + i] = v[i] + all;
}

/* ---- moved about ------------------------------------------------------------------- */

template <cub::BlockLoadAlgorithm Load, cub::BlockStoreAlgorithm Store>
__device__ void move(int *out, const int *a)
{
	using Loader = cub::BlockLoad<int, 64, 4, Load>;
	using Storer = cub::BlockStore<int, 64, 4, Store>;
	__shared__ union {
		typename Loader::TempStorage load;
		typename Storer::TempStorage store;
	} s;
	int v[4];

	Loader(s.load).Load(a + 256 * B, v);
	__syncthreads();
	for (int i = 0; i < 4; i++)
		v[i] = 3 * v[i] + i;
	Storer(s.store).Store(out + 256 * B, v);
}

KERNEL(move_direct, int) { move<cub::BLOCK_LOAD_DIRECT, cub::BLOCK_STORE_DIRECT>(out, a); }
KERNEL(move_vector, int)
{
	move<cub::BLOCK_LOAD_VECTORIZE, cub::BLOCK_STORE_VECTORIZE>(out, a);
}
KERNEL(move_transpose, int)
{
	move<cub::BLOCK_LOAD_TRANSPOSE, cub::BLOCK_STORE_TRANSPOSE>(out, a);
}
KERNEL(move_warp_transpose, int)
{
	move<cub::BLOCK_LOAD_WARP_TRANSPOSE, cub::BLOCK_STORE_WARP_TRANSPOSE>(out, a);
}

KERNEL(exchange_striped, int)
{
	using Exchange = cub::BlockExchange<int, 64, 4>;
	__shared__ Exchange::TempStorage s;
	int v[4];

	cub::LoadDirectBlocked(T, a + 256 * B, v);
	Exchange(s).BlockedToStriped(v, v);
	cub::StoreDirectBlocked(T, out + 256 * B, v);
}

KERNEL(exchange_warp, int)
{
	using Exchange = cub::WarpExchange<int, 4, 32>;
	__shared__ Exchange::TempStorage s[2];
	int v[4];

	cub::LoadDirectBlocked(T, a + 256 * B, v);
	Exchange(s[T / 32]).StripedToBlocked(v, v);
	cub::StoreDirectBlocked(T, out + 256 * B, v);
}

KERNEL(shuffle_up, int)
{
	using Shuffle = cub::BlockShuffle<int, 128>;
	__shared__ Shuffle::TempStorage s;
	int v = a[THREAD], from = 0;

	Shuffle(s).Offset(v, from, -1);
	out[THREAD] = v + 2 * (T ? from : 0);
}

/* ---- neighbours -------------------------------------------------------------------- */

struct minus {
	__device__ int operator()(int x, int y) const { return x - y; }
};
struct differs {
	__device__ bool operator()(int x, int y) const { return x != y; }
};

KERNEL(difference_left, int)
{
	using Difference = cub::BlockAdjacentDifference<int, 64>;
	__shared__ Difference::TempStorage s;
	int v[4], d[4];

	cub::LoadDirectBlocked(T, a + 256 * B, v);
	Difference(s).SubtractLeft(v, d, minus());
	cub::StoreDirectBlocked(T, out + 256 * B, d);
}

KERNEL(heads_flagged, int)
{
	using Flags = cub::BlockDiscontinuity<int, 64>;
	__shared__ Flags::TempStorage s;
	int v[4], f[4];

	cub::LoadDirectBlocked(T, b + 256 * B, v);
	Flags(s).FlagHeads(f, v, differs());
	cub::StoreDirectBlocked(T, out + 256 * B, f);
}

KERNEL(histogram_atomic, int)
{
	using Histogram = cub::BlockHistogram<unsigned char, 64, 4, 256,
					      cub::BLOCK_HISTO_ATOMIC>;
	__shared__ Histogram::TempStorage s;
	__shared__ u32 bins[256];
	unsigned char v[4];

	for (int i = 0; i < 4; i++)
		v[i] = (unsigned char)(a[256 * B + 4 * T + i] & 63);
	Histogram(s).Histogram(v, bins);
	__syncthreads();
	for (int i = T; i < 256; i += 64)
		out[256 * B + i] = (int)bins[i];
}

/* ---- sorted ------------------------------------------------------------------------ */

struct less {
	__device__ bool operator()(int x, int y) const { return x < y; }
};

KERNEL(sort_merge, int)
{
	using Sort = cub::BlockMergeSort<int, 64, 4>;
	__shared__ Sort::TempStorage s;
	int v[4];

	cub::LoadDirectBlocked(T, a + 256 * B, v);
	Sort(s).Sort(v, less());
	cub::StoreDirectBlocked(T, out + 256 * B, v);
}

KERNEL(sort_warp, int)
{
	using Sort = cub::WarpMergeSort<int, 4, 32>;
	__shared__ Sort::TempStorage s[2];
	int v[4];

	cub::LoadDirectBlocked(T, a + 256 * B, v);
	Sort(s[T / 32]).Sort(v, less());
	cub::StoreDirectBlocked(T, out + 256 * B, v);
}

/* ---- warps ------------------------------------------------------------------------- */

KERNEL(warp_sum, int)
{
	using Reduce = cub::WarpReduce<int>;
	__shared__ Reduce::TempStorage s[2];
	const int sum = Reduce(s[T / 32]).Sum(a[THREAD]);

	if (T % 32 == 0)
		out[THREAD / 32] = sum;
}

KERNEL(warp_sum_of_8, int)
{
	using Reduce = cub::WarpReduce<int, 8>;
	__shared__ Reduce::TempStorage s[8];
	const int sum = Reduce(s[T / 8]).Sum(a[THREAD]);

	if (T % 8 == 0)
		out[THREAD / 8] = sum;
}

KERNEL(warp_scan, int)
{
	using Scan = cub::WarpScan<int>;
	__shared__ Scan::TempStorage s[2];
	int v;

	Scan(s[T / 32]).InclusiveSum(a[THREAD], v);
	out[THREAD] = v;
}

KERNEL(warp_scan_largest, int)
{
	using Scan = cub::WarpScan<int>;
	__shared__ Scan::TempStorage s[2];
	int v;

	Scan(s[T / 32]).ExclusiveScan(a[THREAD], v, -1000, largest());
	out[THREAD] = v;
}
