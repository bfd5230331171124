/* SPDX-License-Identifier: Apache-2.0 */
/* int8.h - gemm and add of tests/conformance/conformance.h, for devices that stand in. */
#ifndef TESTS_FAKES_INT8_H
#define TESTS_FAKES_INT8_H

#include <stdint.h>
#include <string.h>

/* v * mult / 2^31 to nearest, then / 2^right to nearest with halves away from zero. */
static inline int64_t fake_requantize(int64_t v, int64_t mult, int right)
{
	const int64_t half = right ? INT64_C(1) << (right - 1) : 0;

	v = (v * mult + (INT64_C(1) << 30)) >> 31;
	return v < 0 ? -((half - v) >> right) : (v + half) >> right;
}

static inline int8_t fake_clamp(int64_t v)
{
	return (int8_t)(v < -128 ? -128 : v > 127 ? 127 : v);
}

static inline void fake_gemm(int8_t *d, const int8_t *a, const int8_t *b)
{
	int8_t out[1024];
	int i, k;

	for (i = 0; i < 1024; i++) {
		int64_t sum = 0;

		for (k = 0; k < 32; k++)
			sum += (a[i / 32 * 32 + k] - 3) * b[k * 32 + i % 32];
		out[i] = fake_clamp(fake_requantize(sum, 1073741824, 6) - 1);
	}
	memcpy(d, out, sizeof(out));
}

static inline void fake_add(int8_t *d, const int8_t *a, const int8_t *b)
{
	int i;

	for (i = 0; i < 1024; i++) {
		const int64_t left = (a[i] - 1) * (INT64_C(1) << 20);
		const int64_t right = (b[i] + 2) * (INT64_C(1) << 20);
		const int64_t sum = fake_requantize(left, 1073741824, 1) +
				    fake_requantize(right, 1518500250, 1);

		d[i] = fake_clamp(fake_requantize(sum, 1288490189, 18) + 3);
	}
}

#endif
