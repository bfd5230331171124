/* SPDX-License-Identifier: Apache-2.0 */
/* lower_digits.c - numbers of more than 8 bits. */
#include <errno.h>

#include "lower_digits.h"

#define HALF     DIGITS_HALF
#define SUM      DIGITS_SUM
#define CENTRE   (1 << 23) /* of three digits */
#define ROWS_MAX 65535u    /* of a convolution */

int digits_step_at(struct lowered *l, uint32_t a, const struct digits_step *x, uint32_t d,
		   uint32_t d_at, uint32_t d_stride)
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
		.d.offset = d_at,
		.d_stride = d_stride,
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

static int digits_step(struct lowered *l, uint32_t a, const struct digits_step *x,
		       uint32_t d)
{
	return digits_step_at(l, a, x, d, 0, 0);
}

int digits_new(struct lowered *l, uint32_t a, const struct digits_step *x, uint32_t *d)
{
	uint64_t bytes = (uint64_t)x->rows * x->columns * (x->mult ? 1 : SUM);
	int rc = lower_value(l, bytes, NULL, d);

	return rc ? rc : digits_step(l, a, x, *d);
}

/* Multipliers that change nothing: x * (2^31 - 1) / 2^31, rounded, is x. */
static const int32_t ones[DIGITS_MAX] = {
	INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX,
	INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX};
static const int32_t no_shift[DIGITS_MAX];

void digits_as_bytes(struct digits_step *x)
{
	x->mult = ones;
	x->shift = no_shift;
	x->max = 255;
	x->flags |= HAL_NPU_D_UINT8;
}

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

int digits_signed_bytes(struct lowered *l, uint32_t rows, uint32_t digits, uint32_t bytes,
			uint32_t *v)
{
	int32_t shift[DIGITS_MAX] = {0};
	struct digits_step last = {.rows = rows,
				   .bytes = digits * SUM,
				   .columns = bytes + 1,
				   .minus = true,
				   .mult = ones,
				   .shift = shift,
				   .max = 255,
				   .flags = HAL_NPU_D_UINT8};
	int rc = digits_carry(l, rows, digits, digits - 2, v);

	last.bias[bytes] = 128;
	shift[bytes] = 8;
	for (uint32_t k = 0; k < bytes; k++)
		carry_column(&last, digits - bytes + k, k, 1);
	carry_column(&last, digits - 1, bytes, (uint8_t)-1);
	return rc ? rc : digits_new(l, *v, &last, v);
}

int digits_signed(struct lowered *l, uint32_t rows, uint32_t digits, uint32_t *v)
{
	return digits_signed_bytes(l, rows, digits, 4, v);
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

int digits_shifted(struct lowered *l, uint32_t rows, uint32_t bytes, uint32_t right,
		   int32_t add, uint32_t *v)
{
	uint32_t up = (8 - right % 8) % 8; /* so that whole digits fall off */
	uint32_t off = digits_off(right), digits = off + 3;
	uint64_t centre = (uint64_t)(CENTRE + HALF + add) << 8 * off;
	uint64_t half = right ? UINT64_C(1) << (right - 1) : 0;
	uint64_t above = UINT64_C(1) << (8 * bytes - 1);
	uint64_t constant = centre + ((half - above) << up);
	struct digits_step x = {.rows = rows, .bytes = bytes + 1, .columns = digits};
	int rc;

	for (uint32_t k = 0; k < digits; k++) {
		if (k < bytes)
			x.weights[k][k] = (uint8_t)(1u << up);
		/* A digit of 255 everywhere is -1: half less where x is negative. */
		if (right)
			x.weights[bytes][k] = (uint8_t)(1u << up);
		x.bias[k] = (int32_t)(constant >> 8 * k & 255);
	}
	rc = digits_new(l, *v, &x, v);
	return rc ? rc : digits_carry(l, rows, digits, digits - 1, v);
}

int digits_shift(struct lowered *l, uint32_t rows, uint32_t right, int32_t add,
		 uint32_t *v)
{
	uint32_t off = digits_off(right);
	struct digits_step clamp = {.rows = rows,
				    .bytes = (off + 3) * SUM,
				    .columns = 2,
				    .bias = {-255 * 128, -255 * 128},
				    .mult = ones,
				    .shift = no_shift,
				    .max = 255,
				    .flags = HAL_NPU_D_UINT8};
	int rc = digits_shifted(l, rows, 4, right, add, v);

	/* The third digit is 128 where the others are right; 255 times what it is off
	 * takes them to a bound. */
	for (uint32_t k = 0; k < 2; k++) {
		clamp.weights[(size_t)(off + k) * SUM][k] = 1;
		clamp.weights[(size_t)(off + 2) * SUM][k] = 255;
	}
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

/* ---- a constant for each of several numbers side by side ---------------------------- */

int digits_each_new(struct lowered *l, struct digits_each *x)
{
	uint64_t columns = (uint64_t)x->numbers * x->columns;

	x->weights = lower_own(l, columns * x->parts * x->bytes);
	x->bias = lower_own(l, columns * sizeof(*x->bias));
	return x->weights && x->bias ? 0 : -ENOMEM;
}

uint8_t *digits_each_weight(const struct digits_each *x, uint32_t number, uint32_t column,
			    uint32_t part, uint32_t byte)
{
	uint64_t at = (uint64_t)number * x->columns + column;

	return &x->weights[(at * x->parts + part) * x->bytes + byte];
}

void digits_each_times(struct digits_each *x, uint32_t number, uint32_t part, uint32_t at,
		       uint64_t factor, uint32_t up)
{
	uint64_t digits = factor << up % 8;

	for (uint32_t k = 0; k < x->columns; k++)
		for (uint32_t byte = 0; byte < x->bytes; byte += x->step) {
			uint32_t lowest = byte / x->step + at / 8 + up / 8;

			if (k >= lowest && k - lowest < 8)
				*digits_each_weight(x, number, k, part, byte) =
					(uint8_t)(digits >> 8 * (k - lowest));
		}
}

void digits_each_bias(struct digits_each *x, uint32_t number, const uint8_t *digits)
{
	for (uint32_t k = 0; k < x->columns; k++)
		x->bias[(uint64_t)number * x->columns + k] = digits[k];
}

int digits_each_at(struct lowered *l, uint32_t a, const struct digits_each *x,
		   uint64_t first, uint32_t d)
{
	uint64_t from = (uint64_t)x->numbers * x->parts * x->bytes;
	uint64_t to = (uint64_t)x->numbers * x->columns * SUM;

	for (uint64_t at = first; at < first + x->pixels; at += ROWS_MAX) {
		uint64_t left = first + x->pixels - at;
		uint64_t rows = left < ROWS_MAX ? left : ROWS_MAX;
		struct step *s = lower_step(l, STEP_CONV, a, NPUC_NONE, d);

		if (!s)
			return -ENOMEM;
		s->u.conv = (struct hal_npu_conv){
			.size = (uint32_t)sizeof(s->u.conv),
			.h = (uint32_t)rows,
			.w = x->parts,
			.c = x->numbers * x->bytes,
			.oh = (uint32_t)rows,
			.ow = 1,
			.n = x->numbers * x->columns,
			.kh = 1,
			.kw = x->parts,
			.stride_h = 1,
			.stride_w = 1,
			.dilation_h = 1,
			.dilation_w = 1,
			.groups = x->numbers,
			.a.offset = (uint32_t)(at * from),
			.d.offset = (uint32_t)(at * to),
			.weights = (const int8_t *)x->weights,
			.out.bias = x->bias,
			.flags = HAL_NPU_A_UINT8 | HAL_NPU_B_UINT8,
		};
	}
	return 0;
}

int digits_each(struct lowered *l, uint32_t a, const struct digits_each *x, uint32_t *d)
{
	uint64_t bytes = x->pixels * x->numbers * x->columns * SUM;
	int rc = lower_value(l, bytes, NULL, d);

	return rc ? rc : digits_each_at(l, a, x, 0, *d);
}

void digits_add(uint8_t *digits, uint32_t count, uint64_t value, uint32_t bit)
{
	uint32_t carry = 0;

	for (uint32_t k = bit / 8; k < count; k++) {
		uint32_t i = k - bit / 8;

		carry += digits[k];
		if (i < 8)
			carry += (uint32_t)(value << bit % 8 >> 8 * i & 255);
		else if (i == 8 && bit % 8)
			carry += (uint32_t)(value >> (64 - bit % 8));
		digits[k] = (uint8_t)carry;
		carry >>= 8;
	}
}

/* x - y = ~(~x + y) */
void digits_sub(uint8_t *digits, uint32_t count, uint64_t value, uint32_t bit)
{
	for (uint32_t k = 0; k < count; k++)
		digits[k] = (uint8_t)~digits[k];
	digits_add(digits, count, value, bit);
	for (uint32_t k = 0; k < count; k++)
		digits[k] = (uint8_t)~digits[k];
}

/* ---- int16 -------------------------------------------------------------------------- */

/* Where a row has two bytes and their guard. */
struct held {
	uint32_t v, rows, bytes, at, step;
};

/* Column of a step: one of the two, moved to a bound if the guard is off. */
static void held_column(const struct held *h, struct digits_step *x, uint32_t column,
			uint32_t digit, bool guarded)
{
	x->weights[h->at + digit * h->step][column] = 1;
	if (!guarded)
		return;
	x->weights[h->at + 2 * h->step][column] = 255;
	x->bias[column] = -255 * 128;
}

static int held_clamp(struct lowered *l, struct held *h)
{
	struct digits_step x = {.rows = h->rows,
				.bytes = h->bytes,
				.columns = 2,
				.mult = ones,
				.shift = no_shift,
				.max = 255,
				.flags = HAL_NPU_D_UINT8};
	int rc;

	held_column(h, &x, 0, 0, true);
	held_column(h, &x, 1, 1, true);
	rc = digits_new(l, h->v, &x, &h->v);
	*h = (struct held){h->v, h->rows, 2, 0, 1};
	return rc;
}

/* Two guards become one. */
static int held_join(struct lowered *l, struct held *h)
{
	struct digits_step x = {.rows = h->rows,
				.bytes = h->bytes,
				.columns = 3,
				.bias = {[2] = -255 * 128},
				.mult = ones,
				.shift = no_shift,
				.max = 255,
				.flags = HAL_NPU_D_UINT8};
	int rc;

	for (uint32_t k = 0; k < 3; k++)
		x.weights[h->at + k * h->step][k] = 1;
	x.weights[h->at + 3 * h->step][2] = 255;
	rc = digits_new(l, h->v, &x, &h->v);
	*h = (struct held){h->v, h->rows, 3, 0, 1};
	return rc;
}

/* Two bytes and add, below 65536: two digits and a guard. */
static int held_add(struct lowered *l, struct held *h, uint32_t add)
{
	struct digits_step x = {
		.rows = h->rows,
		.bytes = h->bytes,
		.columns = 3,
		.bias = {(int32_t)(add & 255), (int32_t)(add >> 8 & 255), 128},
	};
	int rc;

	held_column(h, &x, 0, 0, false);
	held_column(h, &x, 1, 1, false);
	rc = digits_new(l, h->v, &x, &h->v);
	*h = (struct held){h->v, h->rows, 3 * SUM, 0, SUM};
	return rc ? rc : digits_carry(l, h->rows, 3, 2, &h->v);
}

/* The low byte as it is, the high one, which is above 128, as int8. */
static int held_store(struct lowered *l, const struct held *h, bool guarded, uint32_t d)
{
	struct digits_step x = {.rows = h->rows,
				.bytes = h->bytes,
				.columns = 1,
				.mult = ones,
				.shift = no_shift,
				.max = 255,
				.flags = HAL_NPU_D_UINT8};
	int rc;

	held_column(h, &x, 0, 0, guarded);
	rc = digits_step_at(l, h->v, &x, d, 0, 2);
	x.weights[h->at][0] = 0;
	held_column(h, &x, 0, 1, guarded);
	x.zero_point = x.min = -128;
	x.max = 127;
	x.flags = 0;
	return rc ? rc : digits_step_at(l, h->v, &x, d, 1, 2);
}

int digits_to_int16(struct lowered *l, uint32_t v, const struct digits_int16 *x,
		    uint32_t d)
{
	uint32_t y = x->digits - x->guards - 2;
	struct held h = {v, x->rows, x->digits * SUM, y * SUM, SUM};
	int rc = x->guards > 1 ? held_join(l, &h) : 0;

	if (x->min == INT16_MIN && x->max == INT16_MAX)
		return rc ? rc : held_store(l, &h, true, d);
	/* At 0 that clamps at min; then max is brought to 65535. */
	if (!rc)
		rc = held_clamp(l, &h);
	if (!rc)
		rc = held_add(l, &h, (uint32_t)(65535 - (x->max - x->min)));
	if (x->max == INT16_MAX)
		return rc ? rc : held_store(l, &h, true, d);
	if (!rc)
		rc = held_clamp(l, &h);
	if (!rc)
		rc = held_add(l, &h, (uint32_t)(x->max - INT16_MAX) & 0xFFFF);
	return rc ? rc : held_store(l, &h, false, d);
}
