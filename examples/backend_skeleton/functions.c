/* SPDX-License-Identifier: Apache-2.0 */
/*
 * functions.c - the fixed functions of the skeleton's device: the five kernels that the
 * conformance suite needs (defined in tests/conformance/conformance.h).  A real device
 * has a compiler or a library instead.
 */
#define _GNU_SOURCE
#include "skeleton.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum { COPY_BYTES = 4096, GEMM_N = 32, ADD_BYTES = 1024, SPIN_BYTES = 64 };

/* Return x * mult / 2^(31 - shift), rounded as TensorFlow Lite does: the product to
 * nearest, then the shift (never above 0 here) to nearest, halves away from zero. */
static int32_t scale(int64_t x, int32_t mult, int shift)
{
	int64_t product = x * mult, half = INT64_C(1) << 30;
	int64_t high = (product + (product < 0 ? 1 - half : half)) / (INT64_C(1) << 31);
	int64_t round = shift < 0 ? INT64_C(1) << (-shift - 1) : 0;

	if (high < 0)
		return (int32_t) - ((-high + round) >> -shift);
	return (int32_t)((high + round) >> -shift);
}

static uint8_t saturate(int32_t x)
{
	return (uint8_t)(x < -128 ? -128 : x > 127 ? 127 : x);
}

static int copy(uint8_t *const arg[], char *fault)
{
	(void)fault;
	memmove(arg[0], arg[1], COPY_BYTES);
	return 0;
}

static int gemm(uint8_t *const arg[], char *fault)
{
	uint8_t out[GEMM_N * GEMM_N];

	(void)fault;
	for (int m = 0; m < GEMM_N; m++) {
		for (int n = 0; n < GEMM_N; n++) {
			int32_t sum = 0;

			for (int k = 0; k < GEMM_N; k++)
				sum += ((int8_t)arg[1][m * GEMM_N + k] - 3) *
				       (int8_t)arg[2][k * GEMM_N + n];
			out[m * GEMM_N + n] = saturate(scale(sum, 1073741824, -6) - 1);
		}
	}
	memcpy(arg[0], out, sizeof(out));
	return 0;
}

static int add(uint8_t *const arg[], char *fault)
{
	(void)fault;
	for (int i = 0; i < ADD_BYTES; i++) {
		int64_t a = ((int8_t)arg[1][i] - 1) * (INT64_C(1) << 20);
		int64_t b = ((int8_t)arg[2][i] + 2) * (INT64_C(1) << 20);
		int64_t sum =
			(int64_t)scale(a, 1073741824, -1) + scale(b, 1518500250, -1);

		arg[0][i] = saturate(scale(sum, 1288490189, -18) + 3);
	}
	return 0;
}

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Run for 20 us, then write a pattern. */
static int spin(uint8_t *const arg[], char *fault)
{
	int64_t end = now_ns() + 20000;

	(void)fault;
	while (now_ns() < end)
		;
	for (int i = 0; i < SPIN_BYTES; i++)
		arg[0][i] = (uint8_t)(i * 7 + 1);
	return 0;
}

/* Fail as a kernel that accesses memory outside its buffers: the device stops it and
 * reports the fault. */
static int wild(uint8_t *const arg[], char *fault)
{
	(void)arg;
	snprintf(fault, SKELETON_FAULT, "kernel wild: access outside its arguments");
	return -1;
}

static const struct skeleton_function functions[] = {
	{"copy", 2, copy}, {"gemm", 3, gemm}, {"add", 3, add},
	{"spin", 1, spin}, {"wild", 1, wild},
};

const struct skeleton_function *skeleton_function(const char *name)
{
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
		if (!strcmp(functions[i].name, name))
			return &functions[i];
	return NULL;
}
