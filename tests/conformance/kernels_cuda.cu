/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The conformance kernels for CUDA; kernels_cuda.ptx is made from them, so that the suite
 * needs no compiler:
 *   nvcc -ptx -arch=compute_75 kernels_cuda.cu, .version 7.0 instead of the compiler's own
 * Each block does all of it.
 */
#define EACH(i, n) for (int i = threadIdx.x; i < (n); i += blockDim.x)

static __device__ long long shifted(long long v, int right)
{
	const long long half = right ? 1LL << (right - 1) : 0;

	return v < 0 ? -((half - v) >> right) : (v + half) >> right;
}

static __device__ long long requantized(long long v, long long mult, int right)
{
	return shifted((v * mult + (1LL << 30)) >> 31, right);
}

static __device__ signed char clamped(long long v)
{
	return v < -128 ? -128 : v > 127 ? 127 : v;
}

extern "C" __global__ void copy(char *d, const char *s)
{
	EACH(i, 4096)
		d[i] = s[i];
}

extern "C" __global__ void gemm(signed char *d, const signed char *a, const signed char *b)
{
	EACH(i, 1024) {
		long long sum = 0;

		for (int k = 0; k < 32; k++)
			sum += (a[i / 32 * 32 + k] - 3) * b[k * 32 + i % 32];
		d[i] = clamped(requantized(sum, 1073741824, 6) - 1);
	}
}

extern "C" __global__ void add(signed char *d, const signed char *a, const signed char *b)
{
	EACH(i, 1024) {
		const long long sum = requantized((a[i] - 1) * (1LL << 20), 1073741824, 1) +
				      requantized((b[i] + 2) * (1LL << 20), 1518500250, 1);

		d[i] = clamped(requantized(sum, 1288490189, 18) + 3);
	}
}

static __device__ unsigned long long now()
{
	unsigned long long ns;

	asm volatile("mov.u64 %0, %globaltimer;" : "=l"(ns));
	return ns;
}

extern "C" __global__ void spin(unsigned char *d)
{
	const unsigned long long begin = now();

	while (now() - begin < 2000000)
		;
	EACH(i, 64)
		d[i] = i * 7 + 1;
}

extern "C" __global__ void wild(unsigned char *d)
{
	*(volatile unsigned char *)(d + (1ULL << 40)) = 1;
}
