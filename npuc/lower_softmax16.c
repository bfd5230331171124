/* SPDX-License-Identifier: Apache-2.0 */
/* lower_softmax16.c - SOFTMAX of int16.
 *
 * TensorFlow Lite takes exp of differences from a row's largest by a table, and their sum
 * S, 2^E to 2^(E + 1); 1 / S by a table of its 16 highest bits; and shifts each product
 * right by E.  Here what depends on E is computed for each E that there is, and a one
 * among zeros picks the right one. */
#include <errno.h>

#include "lower_digits.h"
#include "lower_int16.h"
#include "lower_wide.h"

enum {
	E_MIN = 14, /* exp of the largest is 32762 */
	E_MAX = 26, /* 4095 of them */
	CHOICES = E_MAX - E_MIN + 1,
	COLS_MAX = 4095
};

struct softmax {
	uint32_t rows, cols, all;
};

static uint32_t top_digit(uint32_t e)
{
	return e / 8;
}

/* ---- small steps on bytes ----------------------------------------------------------- */

/* Rows of so many bytes, each repeated as a whole. */
static int repeat(struct lowered *l, uint32_t a, uint32_t rows, uint32_t bytes,
		  uint32_t times, uint32_t *d)
{
	uint32_t n = bytes * times, b;
	uint8_t *weights = lower_own(l, (uint64_t)bytes * n);
	int rc;

	if (!weights)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		weights[(size_t)(i % bytes) * n + i] = 1;
	rc = lower_value(l, (uint64_t)bytes * n, weights, &b);
	if (!rc)
		rc = lower_value(l, (uint64_t)rows * n, NULL, d);
	return rc ? rc
		  : wide_gemm(l, a, b, *d,
			      (struct hal_npu_gemm){
				      .m = rows, .n = n, .k = bytes, .out.max = 255});
}

/* A row's choices of so many bytes, and which of them it is. */
static int choose(struct lowered *l, uint32_t a, uint32_t which, uint32_t rows,
		  uint32_t bytes, uint32_t *d)
{
	uint32_t k = CHOICES * bytes, mask, chosen, b, spread;
	uint8_t *each = lower_own(l, (uint64_t)CHOICES * k);
	uint8_t *sum = lower_own(l, (uint64_t)k * bytes);
	int rc;

	if (!each || !sum)
		return -ENOMEM;
	for (uint32_t i = 0; i < k; i++) {
		each[(size_t)(i / bytes) * k + i] = 1;
		sum[(size_t)i * bytes + i % bytes] = 1;
	}
	rc = lower_value(l, (uint64_t)CHOICES * k, each, &spread);
	if (!rc)
		rc = lower_value(l, (uint64_t)k * bytes, sum, &b);
	if (!rc)
		rc = lower_value(l, (uint64_t)rows * k, NULL, &mask);
	if (!rc)
		rc = lower_value(l, (uint64_t)rows * k, NULL, &chosen);
	if (!rc)
		rc = lower_value(l, (uint64_t)rows * bytes, NULL, d);
	if (!rc)
		rc = wide_gemm(l, which, spread, mask,
			       (struct hal_npu_gemm){
				       .m = rows, .n = k, .k = CHOICES, .out.max = 255});
	if (!rc)
		rc = wide_multiply(l, a, mask, chosen,
				   (struct hal_npu_mul){.bytes = rows * k});
	return rc ? rc
		  : wide_gemm(l, chosen, b, *d,
			      (struct hal_npu_gemm){
				      .m = rows, .n = bytes, .k = k, .out.max = 255});
}

/* ---- exp ---------------------------------------------------------------------------- */

/* x less its row's largest, above -65535: two digits. */
static int differences(struct lowered *l, const struct softmax *s, uint32_t x,
		       uint32_t *v)
{
	struct digits_step plus = {.rows = s->all,
				   .bytes = 2,
				   .columns = 2,
				   .weights = {{1, 0}, {0, 1}},
				   .bias = {0, 128}};
	struct digits_step minus = {.rows = s->all,
				    .bytes = 2,
				    .columns = 2,
				    .weights = {{255, 0}, {0, 255}},
				    .bias = {255, 127},
				    .minus = true};
	struct digits_step sum = {.rows = s->all, .bytes = 4 * DIGITS_SUM, .columns = 2};
	uint32_t most, spread, both;
	int rc = lower_value(l, (uint64_t)s->rows * 2, NULL, &most);

	for (uint32_t i = 0; i < 4; i++)
		sum.weights[(size_t)i * DIGITS_SUM][i % 2] = 1;
	if (!rc)
		rc = wide_largest(l, x, most, (const uint32_t[]){s->rows, s->cols, 1},
				  INT16_MIN, INT16_MAX);
	if (!rc)
		rc = repeat(l, most, s->rows, 2, s->cols, &spread);
	if (!rc)
		rc = lower_value(l, (uint64_t)s->all * 4 * DIGITS_SUM, NULL, &both);
	if (!rc)
		rc = digits_step_at(l, x, &plus, both, 0, 4 * DIGITS_SUM);
	if (!rc)
		rc = digits_step_at(l, spread, &minus, both, 2 * DIGITS_SUM,
				    4 * DIGITS_SUM);
	if (!rc)
		rc = digits_new(l, both, &sum, v);
	return rc ? rc : digits_carry(l, s->all, 2, 1, v);
}

static int exps(struct lowered *l, const struct softmax *s, uint32_t x,
		struct quant_mult q, uint32_t *d)
{
	struct int16_number number = {.rows = s->all,
				      .digits = 2,
				      .offset = 65535,
				      .largest = 65535,
				      .q = q,
				      .add = 32767,
				      .min = INT16_MIN,
				      .max = INT16_MAX};
	int16_t *table = lower_own(l, 65536 * sizeof(*table));
	uint32_t at;
	int rc = differences(l, s, x, &number.v);

	if (!table)
		return -ENOMEM;
	quant_table_exp16(table);
	if (!rc)
		rc = lower_value(l, (uint64_t)s->all * 2, NULL, &at);
	if (!rc)
		rc = lower_value(l, (uint64_t)s->all * 2, NULL, d);
	if (!rc)
		rc = int16_store(l, &number, at);
	return rc ? rc : wide_table(l, at, *d, s->all, table);
}

/* ---- of each row: its sum, E and 1 / S ---------------------------------------------- */

/* Four digits. */
static int sums(struct lowered *l, const struct softmax *s, uint32_t e, uint32_t *v)
{
	uint32_t k = 2 * s->cols, b;
	struct digits_step join = {
		.rows = s->rows, .bytes = 2 * DIGITS_SUM, .columns = 4};
	uint8_t *weights = lower_own(l, (uint64_t)k * 2);
	struct step *step;
	int rc;

	if (!weights)
		return -ENOMEM;
	for (uint32_t i = 0; i < k; i++)
		weights[2 * i + i % 2] = 1;
	for (uint32_t i = 0; i < 2 * DIGITS_SUM; i++)
		if (i / DIGITS_SUM + i % DIGITS_SUM < 4)
			join.weights[i][i / DIGITS_SUM + i % DIGITS_SUM] = 1;
	rc = lower_value(l, (uint64_t)k * 2, weights, &b);
	if (!rc)
		rc = lower_value(l, (uint64_t)s->rows * 2 * DIGITS_SUM, NULL, v);
	step = rc ? NULL : lower_step(l, STEP_GEMM, e, b, *v);
	if (!step)
		return -ENOMEM;
	step->u.gemm = (struct hal_npu_gemm){.size = (uint32_t)sizeof(step->u.gemm),
					     .m = s->rows,
					     .n = 2,
					     .k = k,
					     .flags = HAL_NPU_A_UINT8 | HAL_NPU_B_UINT8};
	rc = digits_new(l, *v, &join, v);
	return rc ? rc : digits_carry(l, s->rows, 4, 3, v);
}

/* A one for each E: ones up to there first, by S >= 2^E. */
static int exponents(struct lowered *l, const struct softmax *s, uint32_t sum,
		     uint32_t *d)
{
	enum { STEPS = CHOICES + 1 };
	uint8_t *weights = lower_own(l, UINT64_C(4) * DIGITS_SUM * STEPS);
	int32_t *bias = lower_own(l, STEPS * sizeof(*bias));
	uint32_t b, steps;
	int rc;

	if (!weights || !bias)
		return -ENOMEM;
	bias[0] = 1;
	for (uint32_t i = 1; i < CHOICES; i++) {
		uint32_t e = E_MIN + i, top = top_digit(e);

		weights[top * DIGITS_SUM * STEPS + i] = 1;
		for (uint32_t k = top + 1; k < 4; k++)
			weights[k * DIGITS_SUM * STEPS + i] = 255;
		bias[i] = 1 - (int32_t)(1u << (e - 8 * top));
	}
	rc = lower_value(l, (uint64_t)4 * DIGITS_SUM * STEPS, weights, &b);
	if (!rc)
		rc = lower_value(l, (uint64_t)s->rows * STEPS, NULL, &steps);
	if (!rc)
		rc = lower_value(l, (uint64_t)s->rows * CHOICES, NULL, d);
	if (!rc)
		rc = wide_gemm(l, sum, b, steps,
			       (struct hal_npu_gemm){.m = s->rows,
						     .n = STEPS,
						     .k = 4 * DIGITS_SUM,
						     .out = {.bias = bias, .max = 1}});
	return rc ? rc : wide_edges(l, steps, s->rows, CHOICES, *d);
}

/* S / 2^(E - 16), rounded half up, less 3 * 2^15: an int16 for each E. */
static int mantissas(struct lowered *l, const struct softmax *s, uint32_t sum,
		     uint32_t *d)
{
	struct digits_each x = {.pixels = s->rows,
				.numbers = CHOICES,
				.parts = 1,
				.bytes = 4 * DIGITS_SUM,
				.step = DIGITS_SUM,
				.columns = 5};
	struct digits_int16 y = {.rows = s->rows * CHOICES,
				 .digits = 5,
				 .guards = 1,
				 .min = INT16_MIN,
				 .max = INT16_MAX};
	/* A half, guard, and what is taken off. */
	static const uint8_t bias[DIGITS_MAX] = {0, 128, 0, 0, 127};
	uint32_t v;
	int rc = repeat(l, sum, s->rows, 4 * DIGITS_SUM, CHOICES, &v);

	if (!rc)
		rc = digits_each_new(l, &x);
	for (uint32_t i = 0; !rc && i < CHOICES; i++) {
		digits_each_times(&x, i, 0, 0, 1, 32 - E_MIN - i);
		digits_each_bias(&x, i, bias);
	}
	if (!rc)
		rc = digits_each(l, v, &x, &v);
	if (!rc)
		rc = digits_carry(l, y.rows, y.digits, y.digits - 1, &v);
	if (!rc)
		rc = lower_value(l, (uint64_t)y.rows * 2, NULL, d);
	return rc ? rc : digits_to_int16(l, v, &y, *d);
}

/* 1 / S times 2^(26 - E): four bytes. */
static int scales(struct lowered *l, const struct softmax *s, uint32_t inverse,
		  uint32_t which, uint32_t *d)
{
	struct digits_each x = {.pixels = s->rows,
				.numbers = CHOICES,
				.parts = 1,
				.bytes = 2,
				.step = 1,
				.columns = 4};
	struct digits_step bytes = {
		.rows = s->rows * CHOICES, .bytes = 4 * DIGITS_SUM, .columns = 4};
	uint32_t v;
	int rc = repeat(l, inverse, s->rows, 2, CHOICES, &v);

	if (!rc)
		rc = digits_each_new(l, &x);
	for (uint32_t i = 0; !rc && i < CHOICES; i++)
		digits_each_times(&x, i, 0, 0, 1, CHOICES - 1 - i);
	if (!rc)
		rc = digits_each(l, v, &x, &v);
	if (!rc)
		rc = digits_carry(l, bytes.rows, 4, 3, &v);
	for (uint32_t i = 0; i < 4; i++)
		bytes.weights[(size_t)i * DIGITS_SUM][i] = 1;
	digits_as_bytes(&bytes);
	if (!rc)
		rc = digits_new(l, v, &bytes, &v);
	return rc ? rc : choose(l, v, which, s->rows, 4, d);
}

static int inverses(struct lowered *l, const struct softmax *s, uint32_t e, uint32_t *d)
{
	int16_t *table = lower_own(l, 65536 * sizeof(*table));
	uint32_t sum, which, all, at, inverse;
	int rc = sums(l, s, e, &sum);

	if (!table)
		return -ENOMEM;
	quant_table_inverse16(table);
	if (!rc)
		rc = exponents(l, s, sum, &which);
	if (!rc)
		rc = mantissas(l, s, sum, &all);
	if (!rc)
		rc = choose(l, all, which, s->rows, 2, &at);
	if (!rc)
		rc = lower_value(l, (uint64_t)s->rows * 2, NULL, &inverse);
	if (!rc)
		rc = wide_table(l, at, inverse, s->rows, table);
	return rc ? rc : scales(l, s, inverse, which, d);
}

/* ---- products ----------------------------------------------------------------------- */

/* Digits, a byte each, beside others. */
static int beside(struct lowered *l, uint32_t v, uint32_t rows, uint32_t digits,
		  uint32_t at, uint32_t d)
{
	struct digits_step x = {
		.rows = rows, .bytes = digits * DIGITS_SUM, .columns = digits};

	for (uint32_t i = 0; i < digits; i++)
		x.weights[(size_t)i * DIGITS_SUM][i] = 1;
	digits_as_bytes(&x);
	return digits_step_at(l, v, &x, d, at, 10);
}

/* e (low - 2^15), e high and e become (e (low + 2^16 high) + 2^25) / 2^26. */
static int shifted(struct lowered *l, const struct softmax *s, uint32_t row, uint32_t d)
{
	struct digits_step x = {.rows = s->all, .bytes = 10, .columns = 7};
	struct digits_int16 y = {
		.rows = s->all, .digits = 7, .guards = 1, .max = INT16_MAX};
	uint8_t bias[DIGITS_MAX] = {0};
	uint32_t v;
	int rc;

	/* All times 64. */
	for (uint32_t i = 0; i < 4; i++) {
		x.weights[i][i] = 64;
		x.weights[4 + i][2 + i] = 64;
	}
	x.weights[8][2] = x.weights[9][3] = 32;
	digits_add(bias, 7, 1, 31);
	digits_sub(bias, 7, 1, 31 + 6);
	digits_sub(bias, 7, 1, 31 + 22);
	digits_sub(bias, 7, 1, 15 + 21);
	digits_add(bias, 7, 128, 48);
	for (uint32_t i = 0; i < 7; i++)
		x.bias[i] = bias[i];
	rc = digits_new(l, row, &x, &v);
	if (!rc)
		rc = digits_carry(l, s->all, 7, 6, &v);
	return rc ? rc : digits_to_int16(l, v, &y, d);
}

static int results(struct lowered *l, const struct softmax *s, uint32_t e, uint32_t scale,
		   uint32_t d)
{
	struct digits_step low = {
		.rows = s->all, .bytes = 4, .columns = 2, .weights = {{1, 0}, {0, 1}}};
	struct digits_step high = {.rows = s->all,
				   .bytes = 4,
				   .columns = 2,
				   .weights = {[2] = {1, 0}, [3] = {0, 1}},
				   .bias = {0, 128}};
	uint32_t spread, open, part[2], row;
	int rc = repeat(l, scale, s->rows, 4, s->cols, &spread);

	if (!rc)
		rc = wide_open(l, e, s->all, &open);
	if (!rc)
		rc = digits_new(l, spread, &low, &part[0]);
	if (!rc)
		rc = digits_new(l, spread, &high, &part[1]);
	for (uint32_t i = 0; !rc && i < 2; i++)
		rc = wide_product(l, s->all, open, part[i], &part[i]);
	if (!rc)
		rc = lower_value(l, (uint64_t)s->all * 10, NULL, &row);
	for (uint32_t i = 0; !rc && i < 2; i++)
		rc = beside(l, part[i], s->all, 4, 4 * i, row);
	if (!rc)
		rc = beside(l, open, s->all, 2, 8, row);
	return rc ? rc : shifted(l, s, row, d);
}

int wide_softmax(struct lowered *l, uint32_t a, uint32_t d, uint32_t cols,
		 struct quant_mult q)
{
	uint64_t count = lower_t(l, a)->count;
	struct softmax s = {(uint32_t)(count / cols), cols, (uint32_t)count};
	uint32_t e, scale;
	int rc;

	if (cols > COLS_MAX)
		return lower_fail(l, ENOTSUP,
				  "rows of %u elements; at most %u are supported", cols,
				  COLS_MAX);
	if (count > INT32_MAX / 16)
		return lower_fail(l, ENOTSUP,
				  "%llu elements; less than 2^27 are supported",
				  (unsigned long long)count);
	rc = exps(l, &s, a, q, &e);
	if (!rc)
		rc = inverses(l, &s, e, &scale);
	return rc ? rc : results(l, &s, e, scale, d);
}
