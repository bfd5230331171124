/* SPDX-License-Identifier: Apache-2.0 */
/* modern.h - instructions that these kernels use and CUDA C++ has no names for. */
#ifndef TESTS_PTX_MODERN_H
#define TESTS_PTX_MODERN_H

#include "../kernels/kernels.h"

__device__ static u32 in_shared(const void *p)
{
	return (u32)__cvta_generic_to_shared(p);
}

__device__ static void set_up(u64 *b, u32 count)
{
	asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(in_shared(b)),
		     "r"(count)
		     : "memory");
}

__device__ static void arrive(u64 *b)
{
	asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(in_shared(b))
		     : "memory");
}

__device__ static void expect(u64 *b, u32 bytes)
{
	asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(
			     in_shared(b)),
		     "r"(bytes)
		     : "memory");
}

__device__ static bool has_come(u64 *b, u32 parity)
{
	u32 done;

	asm volatile("{\n\t.reg .pred p;\n\t"
		     "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n\t"
		     "selp.u32 %0, 1, 0, p;\n\t}"
		     : "=r"(done)
		     : "r"(in_shared(b)), "r"(parity)
		     : "memory");
	return done;
}

/* Naps that get longer. */
__device__ static void await(u64 *b, u32 parity)
{
	u32 ns = 8;

	while (!has_come(b, parity)) {
		__nanosleep(ns);
		ns = ns < 256 ? 2 * ns : ns;
	}
}

/* As long a nap as it has taken so far, after some looks without. */
__device__ static void await_timed(u64 *b, u32 parity)
{
	u64 begun, now;
	int looks = 0;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begun));
	while (!has_come(b, parity)) {
		if (looks++ < 16)
			continue;
		asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
		if (now - begun > 4000)
			__nanosleep((u32)(now - begun) / 4);
	}
}

#endif
