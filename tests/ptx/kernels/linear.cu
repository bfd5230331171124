/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products and convolutions. */
#include "kernels.h"

KERNEL(axpy, float)
{
	if (THREAD < n)
		out[THREAD] = 2.0f * a[THREAD] + b[THREAD];
}

/* 64 x 64, an element a thread. */
KERNEL(gemm_naive, float)
{
	const int row = blockIdx.y * blockDim.y + threadIdx.y;
	const int col = blockIdx.x * blockDim.x + threadIdx.x;
	float sum = 0;

	if (row >= n || col >= n)
		return;
	for (int k = 0; k < n; k++)
		sum += a[row * n + k] * b[k * n + col];
	out[row * n + col] = sum;
}

KERNEL(gemm_tiled, float)
{
	__shared__ float ta[8][8], tb[8][9];
	const int x = threadIdx.x, y = threadIdx.y;
	const int row = blockIdx.y * 8 + y, col = blockIdx.x * 8 + x;
	float sum = 0;

	for (int k = 0; k < n; k += 8) {
		ta[y][x] = a[row * n + k + x];
		tb[y][x] = b[(k + y) * n + col];
		__syncthreads();
		for (int i = 0; i < 8; i++)
			sum += ta[y][i] * tb[i][x];
		__syncthreads();
	}
	out[row * n + col] = sum;
}

/* 4 x 4 elements a thread, in registers. */
KERNEL(gemm_registers, float)
{
	__shared__ float ta[4][32], tb[4][32];
	const int x = threadIdx.x, y = threadIdx.y, id = y * 8 + x;
	float sum[4][4] = {};

	for (int k = 0; k < n; k += 4) {
		for (int i = id; i < 128; i += 64) {
			ta[i / 32][i % 32] = a[(blockIdx.y * 32 + i % 32) * n + k + i / 32];
			tb[i / 32][i % 32] = b[(k + i / 32) * n + blockIdx.x * 32 + i % 32];
		}
		__syncthreads();
#pragma unroll
		for (int q = 0; q < 4; q++)
#pragma unroll
			for (int i = 0; i < 4; i++)
#pragma unroll
				for (int j = 0; j < 4; j++)
					sum[i][j] += ta[q][y * 4 + i] * tb[q][x * 4 + j];
		__syncthreads();
	}
	for (int i = 0; i < 4; i++)
		for (int j = 0; j < 4; j++)
			out[(blockIdx.y * 32 + y * 4 + i) * n + blockIdx.x * 32 + x * 4 + j] =
				sum[i][j];
}

KERNEL(gemm_vector, float4)
{
	const int row = blockIdx.y, col = THREAD;
	const float *at = (const float *)a;
	float4 sum = {0, 0, 0, 0};

	if (col >= n / 4)
		return;
	for (int k = 0; k < n; k++) {
		const float l = at[row * n + k];
		const float4 r = b[k * n / 4 + col];

		sum.x += l * r.x;
		sum.y += l * r.y;
		sum.z += l * r.z;
		sum.w += l * r.w;
	}
	out[row * n / 4 + col] = sum;
}

KERNEL(gemm_double, double)
{
	double sum = 0;

	for (int k = 0; k < n; k++)
		sum += a[B * n + k] * b[k * n + T];
	out[B * n + T] = sum;
}

KERNEL(gemm_int8, int)
{
	int sum = 0;

	for (int k = 0; k < n; k++)
		sum = __dp4a(a[B * n + k], b[T * n + k], sum);
	out[B * WIDTH + T] = sum;
}

/* A warp a row. */
KERNEL(gemv_warp, float)
{
	const int row = THREAD / 32, lane = T % 32;
	float sum = 0;

	for (int k = lane; k < n; k += 32)
		sum += a[row * n + k] * b[k];
	for (int d = 16; d; d /= 2)
		sum += __shfl_xor_sync(~0u, sum, d);
	if (!lane)
		out[row] = sum;
}

KERNEL(gemv_transposed, float)
{
	float sum = 0;

	for (int k = 0; k < n; k++)
		sum = fmaf(a[k * WIDTH + T], b[k], sum);
	out[B * WIDTH + T] = sum * (B + 1);
}

KERNEL(outer_product, float)
{
	for (int i = T; i < n; i += WIDTH)
		out[B * n + i] = a[B] * b[i];
}

KERNEL(conv1d, float)
{
	float sum = 0;

	for (int k = 0; k < 7; k++) {
		const int i = THREAD + k - 3;

		sum += i >= 0 && i < n ? a[i] * b[k] : 0.0f;
	}
	if (THREAD < n)
		out[THREAD] = sum;
}

KERNEL(conv1d_shared, float)
{
	__shared__ float tile[64 + 6];

	for (int i = T; i < 70; i += WIDTH) {
		const int at = B * 64 + i - 3;

		tile[i] = at >= 0 && at < n ? a[at] : 0.0f;
	}
	__syncthreads();
	float sum = 0;
#pragma unroll
	for (int k = 0; k < 7; k++)
		sum += tile[T + k] * b[k];
	out[THREAD] = sum;
}

/* n x n by 3 x 3. */
KERNEL(conv2d, float)
{
	const int x = blockIdx.x * blockDim.x + threadIdx.x;
	const int y = blockIdx.y * blockDim.y + threadIdx.y;
	float sum = 0;

	for (int j = -1; j <= 1; j++)
		for (int i = -1; i <= 1; i++)
			if (x + i >= 0 && x + i < n && y + j >= 0 && y + j < n)
				sum += a[(y + j) * n + x + i] * b[(j + 1) * 3 + i + 1];
	if (x < n && y < n)
		out[y * n + x] = sum;
}

/* A channel a z. */
KERNEL(conv2d_depthwise, float)
{
	const int x = threadIdx.x, y = blockIdx.y, c = blockIdx.z;
	float sum = 0;

	for (int k = 0; k < 9; k++) {
		const int i = x + k % 3 - 1, j = y + k / 3 - 1;

		if (i >= 0 && i < n && j >= 0 && j < n)
			sum += a[(c * n + j) * n + i] * b[c * 9 + k];
	}
	out[(c * n + y) * n + x] = sum;
}

KERNEL(im2col, float)
{
	const int k = blockIdx.y;

	for (int p = T; p < n * n; p += WIDTH) {
		const int x = p % n + k % 3 - 1, y = p / n + k / 3 - 1;

		out[k * n * n + p] =
			x >= 0 && x < n && y >= 0 && y < n ? a[y * n + x] : 0.0f;
	}
}

KERNEL(batched_3x3, float)
{
	const float *l = a + 9 * THREAD, *r = b + 9 * THREAD;

	if (THREAD >= n)
		return;
	for (int i = 0; i < 3; i++)
		for (int j = 0; j < 3; j++)
			out[9 * THREAD + 3 * i + j] = l[3 * i] * r[j] + l[3 * i + 1] * r[3 + j] +
						      l[3 * i + 2] * r[6 + j];
}

/* Solves by forward substitution, a row at a time. */
KERNEL(triangular, float)
{
	__shared__ float x[32];

	for (int i = 0; i < n; i++) {
		float sum = T < i ? a[i * n + T] * x[T] : 0.0f;

		for (int d = 16; d; d /= 2)
			sum += __shfl_down_sync(~0u, sum, d);
		if (!T)
			x[i] = (b[B * n + i] - sum) / (2.0f + a[i * n + i]);
		__syncthreads();
	}
	out[B * n + T] = x[T];
}
