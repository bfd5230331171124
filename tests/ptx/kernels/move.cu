/* SPDX-License-Identifier: Apache-2.0 */
/* What moves, counts, sorts and looks around. */
#include "kernels.h"

KERNEL(copy_words, int)
{
	for (int i = THREAD; i < n; i += gridDim.x * blockDim.x)
		out[i] = a[i];
}

KERNEL(copy_vectors, int4)
{
	if (THREAD < n)
		out[THREAD] = a[THREAD];
}

KERNEL(copy_bytes, unsigned char)
{
	if (THREAD < n)
		out[THREAD] = a[n - 1 - THREAD] ^ b[THREAD];
}

KERNEL(copy_pairs, double2)
{
	if (THREAD < n) {
		double2 v = a[THREAD];

		v.x += b[THREAD].y;
		out[THREAD] = v;
	}
}

KERNEL(transpose, float)
{
	__shared__ float t[16][17];
	const int x = threadIdx.x, y = threadIdx.y;

	t[y][x] = a[(blockIdx.y * 16 + y) * n + blockIdx.x * 16 + x];
	__syncthreads();
	out[(blockIdx.x * 16 + y) * n + blockIdx.y * 16 + x] = t[x][y];
}

KERNEL(gather, int)
{
	if (THREAD < n)
		out[THREAD] = a[(u32)b[THREAD] % (u32)n];
}

KERNEL(scatter, int)
{
	if (THREAD < n)
		out[(THREAD * 7) % n] = a[THREAD];
}

KERNEL(permute_3d, int)
{
	const int x = threadIdx.x, y = blockIdx.y, z = blockIdx.z;

	out[(x * gridDim.y + y) * gridDim.z + z] =
		a[(z * gridDim.y + y) * blockDim.x + x] + (int)gridDim.x;
}

KERNEL(histogram, int)
{
	if (THREAD < n)
		atomicAdd(&out[a[THREAD] & 15], 1);
}

KERNEL(histogram_shared, int)
{
	__shared__ int h[16];

	if (T < 16)
		h[T] = 0;
	__syncthreads();
	for (int i = THREAD; i < n; i += gridDim.x * blockDim.x)
		atomicAdd(&h[a[i] & 15], 1);
	__syncthreads();
	if (T < 16)
		atomicAdd(&out[T], h[T]);
}

KERNEL(histogram_long, u64)
{
	if (THREAD < n)
		atomicAdd(&out[a[THREAD] & 7], b[THREAD] & 255);
}

KERNEL(stencil_1d, float)
{
	if (THREAD > 0 && THREAD < n - 1)
		out[THREAD] = 0.25f * a[THREAD - 1] + 0.5f * a[THREAD] + 0.25f * a[THREAD + 1];
}

KERNEL(stencil_2d, float)
{
	const int x = blockIdx.x * blockDim.x + threadIdx.x;
	const int y = blockIdx.y * blockDim.y + threadIdx.y;

	if (x < 1 || y < 1 || x >= n - 1 || y >= n - 1)
		return;
	out[y * n + x] = 0.2f * (a[y * n + x] + a[y * n + x - 1] + a[y * n + x + 1] +
				 a[(y - 1) * n + x] + a[(y + 1) * n + x]);
}

/* 8 x 8 x 8. */
KERNEL(stencil_3d, float)
{
	const int x = threadIdx.x, y = threadIdx.y, z = blockIdx.x;
	const int at = (z * n + y) * n + x;
	float v = a[at];

	if (x > 0)
		v += a[at - 1];
	if (x < n - 1)
		v += a[at + 1];
	if (y > 0)
		v += a[at - n];
	if (y < n - 1)
		v += a[at + n];
	if (z > 0)
		v += a[at - n * n];
	if (z < n - 1)
		v += a[at + n * n];
	out[at] = v / 7;
}

KERNEL(heat, float)
{
	__shared__ float s[2][66];
	int now = 0;

	s[0][T + 1] = s[1][T + 1] = a[THREAD];
	if (!T)
		s[0][0] = s[1][0] = s[0][65] = s[1][65] = b[B];
	__syncthreads();
	for (int i = 0; i < n; i++) {
		s[!now][T + 1] = 0.5f * s[now][T + 1] + 0.25f * (s[now][T] + s[now][T + 2]);
		now = !now;
		__syncthreads();
	}
	out[THREAD] = s[now][T + 1];
}

KERNEL(sort_bitonic, int)
{
	__shared__ int s[128];

	s[T] = a[THREAD];
	__syncthreads();
	for (int k = 2; k <= 128; k *= 2)
		for (int j = k / 2; j; j /= 2) {
			const int o = T ^ j;

			if (o > T && (s[T] > s[o]) == !(T & k)) {
				const int v = s[T];

				s[T] = s[o];
				s[o] = v;
			}
			__syncthreads();
		}
	out[THREAD] = s[T];
}

KERNEL(sort_odd_even, int)
{
	extern __shared__ int s[];

	s[T] = a[THREAD];
	__syncthreads();
	for (int i = 0; i < WIDTH; i++) {
		if (T % 2 == i % 2 && T + 1 < WIDTH && s[T] > s[T + 1]) {
			const int v = s[T];

			s[T] = s[T + 1];
			s[T + 1] = v;
		}
		__syncthreads();
	}
	out[THREAD] = s[T];
}

/* Where a bit is 0 first. */
KERNEL(sort_radix_step, int)
{
	const int v = a[THREAD], bit = v >> n & 1, lane = T % 32;
	const u32 ones = __ballot_sync(~0u, bit), below = (1u << lane) - 1;
	const int zeros = 32 - __popc(ones);

	out[THREAD - lane + (bit ? zeros + __popc(ones & below) : __popc(~ones & below))] = v;
}

KERNEL(compact, int)
{
	if (THREAD < n && a[THREAD] > 0)
		atomicAdd(&out[1 + (THREAD & 63)], atomicAdd(out, 1) >= 0);
}

KERNEL(binary_search, int)
{
	int low = 0, high = n;

	while (low < high) {
		const int middle = (low + high) / 2;

		if (b[middle] < a[THREAD])
			low = middle + 1;
		else
			high = middle;
	}
	out[THREAD] = low;
}

KERNEL(mandelbrot, float)
{
	const float cx = -2.0f + 3.0f * T / WIDTH, cy = -1.0f + 2.0f * B / gridDim.x;
	float x = 0, y = 0;
	int i;

	for (i = 0; i < n && x * x + y * y < 4; i++) {
		const float t = x * x - y * y + cx;

		y = 2 * x * y + cy;
		x = t;
	}
	out[THREAD] = i;
}

KERNEL(n_body, float)
{
	float v = 0;

	for (int i = 0; i < n; i++) {
		const float dx = a[i] - a[THREAD], dy = b[i] - b[THREAD];

		v += dx * rsqrtf(dx * dx + dy * dy + 0.01f);
	}
	out[THREAD] = v;
}

KERNEL(monte_carlo, u32)
{
	u32 x = a[THREAD] | 1, in = 0;

	for (int i = 0; i < n; i++) {
		u32 l, r;

		x ^= x << 13;
		x ^= x >> 17;
		x ^= x << 5;
		l = x >> 16;
		r = x & 0xffff;
		in += __umulhi(l * l + r * r, 4) == 0;
	}
	out[THREAD] = in;
}

KERNEL(crc32, u32)
{
	u32 crc = ~0u;

	for (int i = 0; i < n; i++) {
		crc ^= a[THREAD * n + i];
		for (int k = 0; k < 32; k++)
			crc = crc >> 1 ^ (0xedb88320u & -(crc & 1));
	}
	out[THREAD] = __brev(~crc);
}

KERNEL(gelu, float)
{
	if (THREAD < n)
		out[THREAD] = a[THREAD] / (1.0f + __expf(-1.702f * a[THREAD]));
}

KERNEL(activations, float)
{
	if (THREAD >= n)
		return;
	const float v = a[THREAD];

	switch (THREAD % 5) {
	case 0:
		out[THREAD] = fmaxf(v, 0.0f);
		break;
	case 1:
		out[THREAD] = 1.0f / (1.0f + __expf(-v));
		break;
	case 2:
		out[THREAD] = 1.0f - 2.0f / (__expf(2 * v) + 1.0f);
		break;
	case 3:
		out[THREAD] = v / (1.0f + fabsf(v));
		break;
	default:
		out[THREAD] = v * fminf(fmaxf(v + 3, 0.0f), 6.0f) / 6;
	}
}

KERNEL(rope, float)
{
	const int i = 2 * THREAD;
	float s, c;

	if (i >= n)
		return;
	s = __sinf(0.01f * THREAD);
	c = __cosf(0.01f * THREAD);
	out[i] = a[i] * c - a[i + 1] * s;
	out[i + 1] = a[i] * s + a[i + 1] * c;
}

KERNEL(pool_max, float)
{
	const int x = threadIdx.x, y = blockIdx.x;
	float v = -1e30f;

	for (int j = 0; j < 2; j++)
		for (int i = 0; i < 2; i++)
			v = fmaxf(v, a[(2 * y + j) * n + 2 * x + i]);
	out[y * (n / 2) + x] = v;
}

KERNEL(pool_average, float)
{
	float v = 0;

	for (int i = 0; i < n; i++)
		v += a[B * WIDTH * n + T * n + i];
	out[THREAD] = v / n;
}

KERNEL(quantize, float)
{
	signed char *q = (signed char *)out;

	if (THREAD < n)
		q[THREAD] = (signed char)max(-128, min(127, __float2int_rn(a[THREAD] * 50.0f)));
}

KERNEL(half_to_float, unsigned short)
{
	float v;

	if (THREAD >= n)
		return;
	asm("{ .reg .b16 h; mov.b16 h, %1; cvt.f32.f16 %0, h; }" : "=f"(v) : "h"(a[THREAD]));
	asm("{ .reg .b16 h; cvt.rn.f16.f32 h, %1; mov.b16 %0, h; }"
	    : "=h"(out[THREAD])
	    : "f"(v * 0.5f));
}

KERNEL(embedding, float)
{
	const int row = ((const int *)b)[B] & 15;

	for (int i = T; i < n; i += WIDTH)
		out[B * n + i] = a[row * n + i];
}

/* Neighbours in a ring of 4 each, as a matrix of rows. */
KERNEL(sparse_rows, int)
{
	int sum = 0;

	if (THREAD >= n)
		return;
	for (int k = 0; k < 4; k++)
		sum += a[THREAD * 4 + k] * b[(THREAD + k * k) % n];
	out[THREAD] = sum;
}

/* One step of levels of a graph. */
KERNEL(graph_step, int)
{
	if (THREAD >= n || (a[THREAD] & 3) != 1)
		return;
	for (int k = 1; k <= 3; k++)
		atomicMax(&out[(THREAD + k * 5) % n], 1 + (b[THREAD] & 7));
}

KERNEL(local_array, int)
{
	int v[16];

	for (int i = 0; i < 16; i++)
		v[i] = a[(THREAD + i) % n];
	for (int i = 0; i < 16; i++)
		v[b[i] & 15] += i;
	out[THREAD] = v[a[THREAD] & 15];
}

__constant__ int weights[8] = {1, 2, 3, 5, 8, 13, 21, 34};

KERNEL(constants, int)
{
	out[THREAD] = a[THREAD] * weights[(u32)b[THREAD] % 8];
}

/* The address is of shared or of global memory. */
KERNEL(either, int)
{
	__shared__ int s[64];
	const int *p;

	s[T] = b[THREAD] * 3;
	__syncthreads();
	p = a[B] & 1 ? s : a + 64 * B;
	out[THREAD] = p[(T * 5) % 64];
}

KERNEL(exchange, int)
{
	__shared__ int lock[4];

	if (T < 4)
		lock[T] = 0;
	__syncthreads();
	atomicExch(&lock[T & 3], 1);
	__syncthreads();
	atomicOr(&out[THREAD & 31], a[THREAD] & 0xff);
	atomicAnd(&out[32 + (THREAD & 31)], b[THREAD]);
	if (T < 4)
		atomicAdd(&out[64 + T], lock[T]);
}

KERNEL(divide, int)
{
	const int l = a[THREAD], r = (b[THREAD] & 31) + 1;
	const long long w = (long long)l * b[THREAD];

	if (THREAD < n)
		out[THREAD] = l / r + l % r + (int)(w >> 20) + __clz(l) + __ffs(l) +
			      (int)__funnelshift_l(l, r, 7) + __byte_perm(l, r, 0x2504);
}
