/* SPDX-License-Identifier: Apache-2.0 */
/* ref_kernels.c - the conformance kernels as C functions, in a library of the software
 * device's option kernels=. */
#include "conformance.h"

#include <errno.h>
#include <string.h>

#include <hal/ref.h>

static int copy_fn(const struct hal_ref_call *call)
{
	void *d = call->at(call, 0, 0, CONF_COPY_BYTES);
	const void *s = call->at(call, 1, 0, CONF_COPY_BYTES);

	if (!d || !s)
		return -EIO;
	memmove(d, s, CONF_COPY_BYTES);
	return 0;
}

/* Written apart from the oracle: integers of 64 bits, one rounding at a time. */
static int64_t half_up_away(int64_t x, int bits)
{
	int64_t half = bits ? INT64_C(1) << (bits - 1) : 0;

	return x < 0 ? -((-x + half) >> bits) : (x + half) >> bits;
}

static int64_t times(int64_t x, int64_t mult, int right)
{
	/* The first rounding takes halves up, the second away from zero. */
	int64_t high = (x * mult + (INT64_C(1) << 30)) >> 31;

	return half_up_away(high, right);
}

static int8_t saturate(int64_t x)
{
	if (x < -128)
		x = -128;
	if (x > 127)
		x = 127;
	return (int8_t)x;
}

static int gemm_fn(const struct hal_ref_call *call)
{
	int8_t *d = call->at(call, 0, 0, CONF_GEMM_BYTES);
	const int8_t *a = call->at(call, 1, 0, CONF_GEMM_BYTES);
	const int8_t *b = call->at(call, 2, 0, CONF_GEMM_BYTES);
	int8_t out[CONF_GEMM_BYTES];
	uint32_t i, k;

	if (!d || !a || !b)
		return -EIO;
	for (i = 0; i < CONF_GEMM_BYTES; i++) {
		const int8_t *row = a + i / CONF_GEMM_N * CONF_GEMM_N;
		int64_t sum = 0;

		for (k = 0; k < CONF_GEMM_N; k++)
			sum += (int64_t)(row[k] - 3) *
			       b[k * CONF_GEMM_N + i % CONF_GEMM_N];
		out[i] = saturate(times(sum, 1073741824, 6) - 1);
	}
	memcpy(d, out, sizeof(out));
	return 0;
}

static int add_fn(const struct hal_ref_call *call)
{
	int8_t *d = call->at(call, 0, 0, CONF_ADD_BYTES);
	const int8_t *a = call->at(call, 1, 0, CONF_ADD_BYTES);
	const int8_t *b = call->at(call, 2, 0, CONF_ADD_BYTES);
	uint32_t i;

	if (!d || !a || !b)
		return -EIO;
	for (i = 0; i < CONF_ADD_BYTES; i++) {
		int64_t x = times((int64_t)(a[i] - 1) * 1048576, 1073741824, 1);
		int64_t y = times((int64_t)(b[i] + 2) * 1048576, 1518500250, 1);

		d[i] = saturate(times(x + y, 1288490189, 18) + 3);
	}
	return 0;
}

static int spin_fn(const struct hal_ref_call *call)
{
	uint8_t *d = call->at(call, 0, 0, CONF_SPIN_BYTES);
	uint32_t i;

	if (!d)
		return -EIO;
	for (i = 0; i < CONF_SPIN_BYTES; i++)
		d[i] = (uint8_t)(i * 7 + 1);
	return 0;
}

static int wild_fn(const struct hal_ref_call *call)
{
	uint8_t *d = call->at(call, 0, UINT64_C(1) << 32, 1);

	if (!d)
		return -EIO;
	*d = 0;
	return 0;
}

static const struct hal_ref_kernel kernels[] = {
	{.name = "copy",
	 .fn = copy_fn,
	 .work = CONF_COPY_BYTES,
	 .arg_count = 2,
	 .arg_bytes = {CONF_COPY_BYTES, CONF_COPY_BYTES}},
	{.name = "gemm",
	 .fn = gemm_fn,
	 .work = CONF_GEMM_BYTES * CONF_GEMM_N,
	 .arg_count = 3,
	 .arg_bytes = {CONF_GEMM_BYTES, CONF_GEMM_BYTES, CONF_GEMM_BYTES}},
	{.name = "add",
	 .fn = add_fn,
	 .work = CONF_ADD_BYTES,
	 .arg_count = 3,
	 .arg_bytes = {CONF_ADD_BYTES, CONF_ADD_BYTES, CONF_ADD_BYTES}},
	/* 2 ms, so that it is still running when a real clock looks. */
	{.name = "spin",
	 .fn = spin_fn,
	 .work = CONF_SPIN_BYTES,
	 .span_ns = 100 * CONF_SPIN_NS,
	 .arg_count = 1,
	 .arg_bytes = {CONF_SPIN_BYTES}},
	{.name = "wild",
	 .fn = wild_fn,
	 .work = CONF_SPIN_BYTES,
	 .arg_count = 1,
	 .arg_bytes = {CONF_SPIN_BYTES}},
};

HAL_API const struct hal_ref_library hal_ref_library;
const struct hal_ref_library hal_ref_library = {
	.version = HAL_REF_VERSION,
	.kernel_size = sizeof(kernels[0]),
	.kernel_count = sizeof(kernels) / sizeof(kernels[0]),
	.kernels = kernels,
};
