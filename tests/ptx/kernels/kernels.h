/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernels.h - kernels to rewrite and run; NAME.ptx is made of NAME.cu by make_ptx.sh. All
 * have the same parameters: a result, two sources and a number; tests/ptx/kernels.list
 * says with how many threads they run and on what values.
 */
#ifndef TESTS_PTX_KERNELS_H
#define TESTS_PTX_KERNELS_H

#define KERNEL(name, type)                                                               \
	extern "C" __global__ void name(type *out, const type *a, const type *b, int n)

#define THREAD (int)(blockIdx.x * blockDim.x + threadIdx.x)
#define T      (int)threadIdx.x
#define B      (int)blockIdx.x
#define WIDTH  (int)blockDim.x

typedef unsigned int u32;
typedef unsigned long long u64;

#endif
