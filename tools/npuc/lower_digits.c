/* SPDX-License-Identifier: Apache-2.0 */
/* lower_digits.c - numbers of more than 8 bits. */
#include <errno.h>

#include "lower_digits.h"

#define HALF   DIGITS_HALF
#define SUM    DIGITS_SUM
#define CENTRE (1 << 23) /* of three digits */

static int digits_step(struct lowered *l, uint32_t a, const struct digits_step *x,
		       uint32_t d)
{
	uint8_t *weights = lower_own(l, (uint64_t)x->bytes * x->columns);
	int32_t *out = lower_own(l, (uint64_t)x->columns * 3 * sizeof(*out));
	struct step *s;
	uint32_t b;
	int rc;

	if (!weights || !out)
		return -ENOMEM;
	for (uint32_t n = 0; n < x->columns; n++) {
		for (uint32_t k = 0; k < x->bytes; k++)
			weights[(size_t)k * x->columns + n] = x->weights[k][n];
		out[n] = x->bias[n];
		out[x->columns + n] = x->mult ? x->mult[n] : 0;
		out[2 * x->columns + n] = x->mult ? x->shift[n] : 0;
	}
	rc = lower_value(l, (uint64_t)x->bytes * x->columns, weights, &b);
	if (rc)
		return rc;
	s = lower_step(l, STEP_GEMM, a, b, d);
	if (!s)
		return -ENOMEM;
	s->u.gemm = (struct hal_npu_gemm){
		.size = (uint32_t)sizeof(s->u.gemm),
		.m = x->rows,
		.n = x->columns,
		.k = x->bytes,
		.out = {.bias = out,
			.mult = x->mult ? out + x->columns : NULL,
			.shift = x->mult ? out + 2 * (size_t)x->columns : NULL,
			.per_channel = x->mult != NULL,
			.zero_point = x->zero_point,
			.min = x->min,
			.max = x->max},
		.flags = HAL_NPU_A_UINT8 | (x->minus ? 0 : HAL_NPU_B_UINT8) | x->flags,
	};
	return 0;
}

int digits_new(struct lowered *l, uint32_t a, const struct digits_step *x, uint32_t *d)
{
	uint64_t bytes = (uint64_t)x->rows * x->columns * (x->mult ? 1 : SUM);
	int rc = lower_value(l, bytes, NULL, d);

	return rc ? rc : digits_step(l, a, x, *d);
}

/* Multipliers that change nothing: x * (2^31 - 1) / 2^31, rounded, is x. */
static const int32_t ones[DIGITS_MAX] = {INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX,
					 INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX};
static const int32_t no_shift[DIGITS_MAX];

/* Where what a sum carries goes: digit k is its own byte 0, byte 1 of the one below, and
 * so on. */
static void carry_column(struct digits_step *x, uint32_t digit, uint32_t column,
			 uint8_t weight)
{
	for (uint32_t byte = 0; byte < SUM && byte <= digit; byte++)
		x->weights[(digit - byte) * SUM + byte][column] = weight;
}

int digits_carry(struct lowered *l, uint32_t rows, uint32_t digits, uint32_t times,
		 uint32_t *v)
{
	struct digits_step x = {.rows = rows, .bytes = digits * SUM, .columns = digits};
	int rc = 0;

	for (uint32_t k = 0; k < digits; k++)
		carry_column(&x, k, k, 1);
	for (uint32_t i = 0; !rc && i < times; i++)
		rc = digits_new(l, *v, &x, v);
	return rc;
}

int digits_signed(struct lowered *l, uint32_t rows, uint32_t digits, uint32_t *v)
{
	static const int32_t shift[DIGITS_MAX] = {[4] = 8};
	struct digits_step last = {.rows = rows,
				   .bytes = digits * SUM,
				   .columns = 5,
				   .minus = true,
				   .bias = {[4] = 128},
				   .mult = ones,
				   .shift = shift,
				   .max = 255,
				   .flags = HAL_NPU_D_UINT8};
	int rc = digits_carry(l, rows, digits, digits - 2, v);

	for (uint32_t k = 0; k < 4; k++)
		carry_column(&last, digits - 4 + k, k, 1);
	carry_column(&last, digits - 1, 4, (uint8_t)-1);
	return rc ? rc : digits_new(l, *v, &last, v);
}

int digits_product(struct lowered *l, uint32_t rows, uint32_t step, uint32_t offset,
		   int32_t mult, uint32_t *v)
{
	uint64_t twice = (uint64_t)(uint32_t)mult * 2;
	uint64_t constant = (UINT64_C(1) << 31) + (UINT64_C(1) << 63) - twice * offset;
	struct digits_step product = {.rows = rows, .bytes = 4 * step, .columns = 8};
	int rc;

	for (uint32_t k = 0; k < 8; k++) {
		for (uint32_t i = 0; i < 4 && i <= k; i++)
			if (k - i < 4)
				product.weights[(size_t)i * step][k] =
					(uint8_t)(twice >> 8 * (k - i));
		product.bias[k] = (int32_t)(constant >> 8 * k & 255);
	}
	rc = digits_new(l, *v, &product, v);
	return rc ? rc : digits_signed(l, rows, 8, v);
}

int digits_shift(struct lowered *l, uint32_t rows, uint32_t right, int32_t add,
		 uint32_t *v)
{
	uint32_t up = (8 - right % 8) % 8; /* so that whole digits fall off */
	uint32_t off = (right + up) / 8, digits = off + 3;
	uint64_t centre = (uint64_t)(CENTRE + HALF + add) << 8 * off;
	uint64_t half = right ? UINT64_C(1) << (right - 1) : 0;
	uint64_t constant = centre + ((half - (UINT64_C(1) << 31)) << up);
	struct digits_step x = {.rows = rows, .bytes = 5, .columns = digits};
	struct digits_step clamp = {.rows = rows,
				    .bytes = digits * SUM,
				    .columns = 2,
				    .bias = {-255 * 128, -255 * 128},
				    .mult = ones,
				    .shift = no_shift,
				    .max = 255,
				    .flags = HAL_NPU_D_UINT8};
	int rc;

	for (uint32_t k = 0; k < digits; k++) {
		if (k < 4)
			x.weights[k][k] = (uint8_t)(1u << up);
		/* A digit of 255 everywhere is -1: half less where x is negative. */
		if (right)
			x.weights[4][k] = (uint8_t)(1u << up);
		x.bias[k] = (int32_t)(constant >> 8 * k & 255);
	}
	/* The third digit is 128 where the others are right; 255 times what it is off
	 * takes them to a bound. */
	for (uint32_t k = 0; k < 2; k++) {
		clamp.weights[(size_t)(off + k) * SUM][k] = 1;
		clamp.weights[(size_t)(off + 2) * SUM][k] = 255;
	}
	rc = digits_new(l, *v, &x, v);
	if (!rc)
		rc = digits_carry(l, rows, digits, digits - 1, v);
	return rc ? rc : digits_new(l, *v, &clamp, v);
}

int digits_narrow(struct lowered *l, uint32_t rows, uint32_t v, enum npuc_type type,
		  uint32_t d)
{
	struct digits_step one = {.rows = rows,
				  .bytes = 2,
				  .columns = 1,
				  .weights = {{1}, {255}},
				  .bias = {-255 * 128},
				  .mult = ones,
				  .shift = no_shift,
				  .zero_point = quant_min(type),
				  .min = quant_min(type),
				  .max = quant_max(type),
				  .flags = type == NPUC_UINT8 ? HAL_NPU_D_UINT8 : 0};

	return digits_step(l, v, &one, d);
}
