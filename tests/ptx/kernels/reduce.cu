/* SPDX-License-Identifier: Apache-2.0 */
/* Sums, scans, norms, softmax and attention. */
#include "kernels.h"

KERNEL(sum_atomic, int)
{
	if (THREAD < n)
		atomicAdd(out, a[THREAD]);
}

KERNEL(sum_shared, int)
{
	__shared__ int s[128];

	s[T] = THREAD < n ? a[THREAD] : 0;
	__syncthreads();
	for (int d = WIDTH / 2; d; d /= 2) {
		if (T < d)
			s[T] += s[T + d];
		__syncthreads();
	}
	if (!T)
		out[B] = s[0];
}

KERNEL(sum_warps, float)
{
	__shared__ float s[32];
	float v = 0;

	for (int i = THREAD; i < n; i += gridDim.x * blockDim.x)
		v += a[i];
	for (int d = 16; d; d /= 2)
		v += __shfl_down_sync(~0u, v, d);
	if (T % 32 == 0)
		s[T / 32] = v;
	__syncthreads();
	if (T < 32) {
		v = T < WIDTH / 32 ? s[T] : 0.0f;
		for (int d = 16; d; d /= 2)
			v += __shfl_down_sync(~0u, v, d);
		if (!T)
			out[B] = v;
	}
}

KERNEL(max_shared, float)
{
	extern __shared__ float s[];

	s[T] = THREAD < n ? a[THREAD] : -1e30f;
	__syncthreads();
	for (int d = WIDTH / 2; d; d /= 2) {
		if (T < d)
			s[T] = fmaxf(s[T], s[T + d]);
		__syncthreads();
	}
	if (!T)
		out[B] = s[0];
}

KERNEL(argmax, int)
{
	int best = a[B * n], at = 0;

	for (int i = T; i < n; i += 32)
		if (a[B * n + i] > best) {
			best = a[B * n + i];
			at = i;
		}
	for (int d = 16; d; d /= 2) {
		const int other = __shfl_xor_sync(~0u, best, d);
		const int place = __shfl_xor_sync(~0u, at, d);

		if (other > best || (other == best && place < at)) {
			best = other;
			at = place;
		}
	}
	if (!T)
		out[B] = at;
}

KERNEL(min_atomic, int)
{
	if (THREAD < n)
		atomicMin(&out[a[THREAD] & 7], b[THREAD]);
}

/* A maximum of floats by compare and swap. */
KERNEL(max_cas, float)
{
	int *p = (int *)&out[T & 3];
	int old = *p, seen;

	if (THREAD >= n)
		return;
	do {
		seen = old;
		if (__int_as_float(seen) >= a[THREAD])
			break;
		old = atomicCAS(p, seen, __float_as_int(a[THREAD]));
	} while (old != seen);
}

KERNEL(dot_double, double)
{
	double v = 0;

	for (int i = T; i < n; i += 32)
		v += a[B * n + i] * b[i];
	for (int d = 16; d; d /= 2)
		v += __shfl_xor_sync(~0u, v, d);
	if (!T)
		out[B] = v;
}

KERNEL(norm2, float)
{
	float v = 0;

	for (int i = T; i < n; i += 32)
		v += a[B * n + i] * a[B * n + i];
	for (int d = 16; d; d /= 2)
		v += __shfl_xor_sync(~0u, v, d);
	if (!T)
		out[B] = sqrtf(v);
}

/* Hillis and Steele, in two halves of shared memory. */
KERNEL(scan_block, int)
{
	extern __shared__ int halves[];
	int *s = halves;
	int from = 0, to = WIDTH;

	s[T] = a[THREAD];
	__syncthreads();
	for (int d = 1; d < WIDTH; d *= 2) {
		s[to + T] = s[from + T] + (T >= d ? s[from + T - d] : 0);
		__syncthreads();
		from = WIDTH - from;
		to = WIDTH - to;
	}
	out[THREAD] = s[from + T];
}

KERNEL(scan_warp, int)
{
	int v = a[THREAD];

	for (int d = 1; d < 32; d *= 2) {
		const int other = __shfl_up_sync(~0u, v, d);

		if (T % 32 >= d)
			v += other;
	}
	out[THREAD] = v;
}

/* Blelloch, exclusive. */
KERNEL(scan_tree, int)
{
	__shared__ int s[128];
	int d, step = 1;

	s[2 * T] = a[B * 128 + 2 * T];
	s[2 * T + 1] = a[B * 128 + 2 * T + 1];
	for (d = 64; d; d /= 2) {
		__syncthreads();
		if (T < d)
			s[step * (2 * T + 2) - 1] += s[step * (2 * T + 1) - 1];
		step *= 2;
	}
	if (!T)
		s[127] = 0;
	for (d = 1; d < 128; d *= 2) {
		step /= 2;
		__syncthreads();
		if (T < d) {
			const int l = step * (2 * T + 1) - 1, r = step * (2 * T + 2) - 1;
			const int v = s[l];

			s[l] = s[r];
			s[r] += v;
		}
	}
	__syncthreads();
	out[B * 128 + 2 * T] = s[2 * T];
	out[B * 128 + 2 * T + 1] = s[2 * T + 1];
}

KERNEL(scan_add, int)
{
	out[THREAD] = a[THREAD] + (B ? b[B - 1] : 0);
}

KERNEL(softmax_warp, float)
{
	float most = -1e30f, sum = 0;

	for (int i = T; i < n; i += 32)
		most = fmaxf(most, a[B * n + i]);
	for (int d = 16; d; d /= 2)
		most = fmaxf(most, __shfl_xor_sync(~0u, most, d));
	for (int i = T; i < n; i += 32)
		sum += __expf(a[B * n + i] - most);
	for (int d = 16; d; d /= 2)
		sum += __shfl_xor_sync(~0u, sum, d);
	for (int i = T; i < n; i += 32)
		out[B * n + i] = __expf(a[B * n + i] - most) / sum;
}

KERNEL(softmax_thread, float)
{
	float most = -1e30f, sum = 0;

	if (THREAD >= n)
		return;
	for (int i = 0; i < 8; i++)
		most = fmaxf(most, a[THREAD * 8 + i]);
	for (int i = 0; i < 8; i++)
		sum += __expf(a[THREAD * 8 + i] - most);
	for (int i = 0; i < 8; i++)
		out[THREAD * 8 + i] = __expf(a[THREAD * 8 + i] - most) / sum;
}

/* The maximum and the sum in one way through. */
KERNEL(softmax_online, float)
{
	__shared__ float m[64], s[64];
	float most = -1e30f, sum = 0;

	for (int i = T; i < n; i += WIDTH) {
		const float v = a[B * n + i], next = fmaxf(most, v);

		sum = sum * __expf(most - next) + __expf(v - next);
		most = next;
	}
	m[T] = most;
	s[T] = sum;
	__syncthreads();
	for (int d = WIDTH / 2; d; d /= 2) {
		if (T < d) {
			const float next = fmaxf(m[T], m[T + d]);

			s[T] = s[T] * __expf(m[T] - next) + s[T + d] * __expf(m[T + d] - next);
			m[T] = next;
		}
		__syncthreads();
	}
	for (int i = T; i < n; i += WIDTH)
		out[B * n + i] = __expf(a[B * n + i] - m[0]) / s[0];
}

KERNEL(log_softmax, float)
{
	float sum = 0;

	for (int i = 0; i < n; i++)
		sum += __expf(a[B * n + i]);
	out[B * n + T] = a[B * n + T] - __logf(sum);
}

KERNEL(layer_norm, float)
{
	float mean = 0, var = 0;

	for (int i = T; i < n; i += 32)
		mean += a[B * n + i];
	for (int d = 16; d; d /= 2)
		mean += __shfl_xor_sync(~0u, mean, d);
	mean /= n;
	for (int i = T; i < n; i += 32)
		var += (a[B * n + i] - mean) * (a[B * n + i] - mean);
	for (int d = 16; d; d /= 2)
		var += __shfl_xor_sync(~0u, var, d);
	for (int i = T; i < n; i += 32)
		out[B * n + i] = (a[B * n + i] - mean) * rsqrtf(var / n + 1e-5f) * b[i];
}

KERNEL(rms_norm, float)
{
	__shared__ float s[4];
	float sum = 0;

	for (int i = T; i < n; i += WIDTH)
		sum += a[B * n + i] * a[B * n + i];
	for (int d = 16; d; d /= 2)
		sum += __shfl_down_sync(~0u, sum, d);
	if (T % 32 == 0)
		s[T / 32] = sum;
	__syncthreads();
	sum = s[0] + s[1] + s[2] + s[3];
	for (int i = T; i < n; i += WIDTH)
		out[B * n + i] = a[B * n + i] * rsqrtf(sum / n + 1e-6f) * b[i];
}

KERNEL(batch_norm, float)
{
	const float mean = b[B], var = b[B + 8] * b[B + 8] + 0.1f;

	for (int i = T; i < n; i += WIDTH)
		out[B * n + i] = (a[B * n + i] - mean) * rsqrtf(var);
}

/* 16 queries of 16, a query a block. */
KERNEL(attention, float)
{
	__shared__ float p[16];
	float v = 0, sum = 0, most = -1e30f;

	for (int i = 0; i < n; i++)
		v += a[B * n + i] * b[T * n + i];
	p[T] = v * 0.25f;
	__syncthreads();
	for (int i = 0; i < n; i++)
		most = fmaxf(most, p[i]);
	for (int i = 0; i < n; i++)
		sum += __expf(p[i] - most);
	v = 0;
	for (int i = 0; i < n; i++)
		v += __expf(p[i] - most) / sum * b[i * n + T];
	out[B * n + T] = v;
}

/* The same in tiles, with what the rows' sums were so far. */
KERNEL(attention_tiled, float)
{
	__shared__ float k[8][17], p[8];
	float most = -1e30f, sum = 0, v = 0;

	for (int t = 0; t < n; t += 8) {
		for (int i = T; i < 128; i += WIDTH)
			k[i / 16][i % 16] = b[(t + i / 16) * 16 + i % 16];
		__syncthreads();
		if (T < 8) {
			float d = 0;

			for (int i = 0; i < 16; i++)
				d += a[B * 16 + i] * k[T][i];
			p[T] = d * 0.25f;
		}
		__syncthreads();
		float next = most;

		for (int i = 0; i < 8; i++)
			next = fmaxf(next, p[i]);
		const float scale = __expf(most - next);

		sum *= scale;
		v *= scale;
		for (int i = 0; i < 8; i++) {
			const float e = __expf(p[i] - next);

			sum += e;
			v += e * k[i][T];
		}
		most = next;
		__syncthreads();
	}
	out[B * 16 + T] = v / sum;
}

KERNEL(vote_count, int)
{
	const u32 ballot = __ballot_sync(~0u, a[THREAD] > b[THREAD]);

	if (T % 32 == 0)
		out[THREAD / 32] = __popc(ballot) + (__any_sync(~0u, ballot & 1) ? 100 : 0);
}
