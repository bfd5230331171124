/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernels must answer, from TensorFlow Lite's definition of its int8 arithmetic.
 */
#include "conformance.h"

/* a * b / 2^31 to nearest, halves up: gemmlowp's SaturatingRoundingDoublingHighMul, as
 * TensorFlow Lite's reference kernels use it. */
static int32_t doubling_high_mul(int32_t a, int32_t b)
{
	int64_t ab, nudge;

	if (a == INT32_MIN && b == INT32_MIN)
		return INT32_MAX;
	ab = (int64_t)a * b;
	nudge = ab >= 0 ? (INT64_C(1) << 30) : 1 - (INT64_C(1) << 30);
	return (int32_t)((ab + nudge) / (INT64_C(1) << 31));
}

/* x / 2^exponent to nearest, halves away from zero. */
static int32_t rounding_divide(int32_t x, int exponent)
{
	int64_t half = exponent ? INT64_C(1) << (exponent - 1) : 0;
	int64_t v = x;

	if (v >= 0)
		return (int32_t)((v + half) >> exponent);
	return (int32_t) - ((-v + half) >> exponent);
}

static int32_t scale(int32_t x, int32_t mult, int shift)
{
	int left = shift > 0 ? shift : 0, right = shift > 0 ? 0 : -shift;

	return rounding_divide(doubling_high_mul(x * (INT32_C(1) << left), mult), right);
}

static int8_t clamp(int32_t x)
{
	return (int8_t)(x < -128 ? -128 : x > 127 ? 127 : x);
}

void conf_oracle_gemm(int8_t *d, const int8_t *a, const int8_t *b)
{
	uint32_t m, n, k;

	for (m = 0; m < CONF_GEMM_N; m++) {
		for (n = 0; n < CONF_GEMM_N; n++) {
			int32_t sum = 0;

			for (k = 0; k < CONF_GEMM_N; k++)
				sum += (a[m * CONF_GEMM_N + k] - 3) *
				       b[k * CONF_GEMM_N + n];
			d[m * CONF_GEMM_N + n] = clamp(scale(sum, 1073741824, -6) - 1);
		}
	}
}

void conf_oracle_add(int8_t *d, const int8_t *a, const int8_t *b)
{
	uint32_t i;

	for (i = 0; i < CONF_ADD_BYTES; i++) {
		int32_t x = scale((a[i] - 1) * (1 << 20), 1073741824, -1);
		int32_t y = scale((b[i] + 2) * (1 << 20), 1518500250, -1);

		d[i] = clamp(scale(x + y, 1288490189, -18) + 3);
	}
}

void conf_oracle_spin(uint8_t *d)
{
	uint32_t i;

	for (i = 0; i < CONF_SPIN_BYTES; i++)
		d[i] = (uint8_t)(i * 7 + 1);
}
