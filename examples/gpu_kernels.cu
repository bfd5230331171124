/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernels of the gpu_* examples, for CUDA and for HIP without headers of either:
 *   nvcc -I.. -ptx -arch=compute_75 gpu_kernels.cu, .version 7.0 instead of the compiler's own
 *   clang -I.. -x hip -nogpuinc -nogpulib --cuda-device-only --offload-arch=gfx90a -O2 \
 *       -o gpu_kernels.hipfb gpu_kernels.cu
 */
#include <hal/device/hal_preempt.h>

#ifdef __HIP__
#define KERNEL   extern "C" __attribute__((global)) __attribute__((amdgpu_flat_work_group_size(1, 256)))
#define BLOCK()  __builtin_amdgcn_workgroup_id_x()
#define THREAD() __builtin_amdgcn_workitem_id_x()
#else
#define KERNEL   extern "C" __global__
#define BLOCK()  blockIdx.x
#define THREAD() threadIdx.x
#endif

/* Blocks of 256: an element each. */
KERNEL void vector_add(float *d, const float *a, const float *b, int n)
{
	const int i = (int)(BLOCK() * 256 + THREAD());

	if (i < n)
		d[i] = a[i] + b[i];
}

/* n x n, by rows; blocks of 256: an element each. */
KERNEL void product(float *d, const float *a, const float *b, int n)
{
	const int i = (int)(BLOCK() * 256 + THREAD());
	float sum = 0;

	if (i >= n * n)
		return;
	for (int k = 0; k < n; k++)
		sum += a[i / n * n + k] * b[k * n + i % n];
	d[i] = sum;
}

/* Counts each block: one thread, which takes its time.  It can be stopped between them. */
HAL_PREEMPT_KERNEL(long_one)(unsigned *d, long rounds HAL_PREEMPT_LAST)
{
	HAL_PREEMPT_ENTER();
	unsigned x = blockIdx.x;

	for (long i = 0; i < rounds; i++)
		x = x * 1664525u + 1013904223u;
	d[blockIdx.x] += x == 0x9e3779b9u ? 2 : 1; /* so that x is needed */
}

#ifndef __HIP__
/* Which multiprocessor each block was on.  It stays a while, so that each has one. */
KERNEL void where(unsigned *d)
{
	const long long begin = clock64();
	unsigned id;

	asm volatile("mov.u32 %0, %%smid;" : "=r"(id));
	while (clock64() - begin < 20000)
		;
	d[BLOCK()] = id;
}
#endif
