/* SPDX-License-Identifier: Apache-2.0 */
/* lower_wide.c - int16: products of two activations, functions by table, pools. */
#include "lower_wide.h"

#include <errno.h>

#include "lower_digits.h"
#include "lower_int16.h"
#include "lower_move.h"
#include "lower_pair.h"

#define PAIR_UINT8 (HAL_NPU_A_UINT8 | HAL_NPU_B_UINT8 | HAL_NPU_D_UINT8)

int wide_open(struct lowered *l, uint32_t a, uint32_t rows, uint32_t *v)
{
	struct digits_step x = {.rows = rows,
				.bytes = 2,
				.columns = 2,
				.weights = {{1, 0}, {0, 1}},
				.bias = {0, 128}};

	return digits_new(l, a, &x, v);
}

/* ---- products ----------------------------------------------------------------------- */

/* MUL keeps 8 bits, so it multiplies nibbles.  Of byte i of one number and byte j of the
 * other, nibbles s and t of these: number (s t i j) of 16 in a row, worth 16^(2i + s + 2j
 * + t); behind them both numbers. */
enum { NIBBLES = 16, ROW = NIBBLES + 4 };

static const uint8_t *nibble_table(struct lowered *l, bool high)
{
	uint8_t *table = lower_own(l, 256);

	for (uint32_t i = 0; table && i < 256; i++)
		table[i] = (uint8_t)(high ? i >> 4 : i & 15);
	return table;
}

static int nibbles(struct lowered *l, uint32_t v, uint32_t rows, bool second, uint32_t d)
{
	uint64_t bytes = (uint64_t)rows * 2 * DIGITS_SUM;
	struct digits_step x = {.rows = rows, .bytes = 2 * DIGITS_SUM};
	uint32_t plane;
	int rc = 0;

	x.columns = second ? 4 : 8;
	for (uint32_t n = 0; n < x.columns; n++)
		x.weights[(size_t)(second ? n & 1 : n >> 1 & 1) * DIGITS_SUM][n] = 1;
	digits_as_bytes(&x);
	for (uint32_t high = 0; !rc && high < 2; high++) {
		const uint8_t *table = nibble_table(l, high);

		rc = table ? lower_value(l, bytes, NULL, &plane) : -ENOMEM;
		if (!rc)
			rc = lower_lut(l, v, plane, bytes, table);
		if (!rc)
			rc = digits_step_at(l, plane, &x, d, second ? 4 * high : 8 * high,
					    NIBBLES);
		if (!rc && second)
			rc = digits_step_at(l, plane, &x, d, 8 + 4 * high, NIBBLES);
	}
	return rc;
}

/* Two digits as bytes into rows of products. */
static int beside(struct lowered *l, uint32_t v, uint32_t rows, uint32_t at, uint32_t d)
{
	struct digits_step x = {.rows = rows, .bytes = 2 * DIGITS_SUM, .columns = 2};

	x.weights[0][0] = x.weights[DIGITS_SUM][1] = 1;
	digits_as_bytes(&x);
	return digits_step_at(l, v, &x, d, at, ROW);
}

int wide_multiply(struct lowered *l, uint32_t a, uint32_t b, uint32_t d,
		  struct hal_npu_mul how)
{
	struct step *s = lower_step(l, STEP_MUL, a, b, d);

	if (!s)
		return -ENOMEM;
	how.size = (uint32_t)sizeof(how);
	how.mult = INT32_C(1) << 30;
	how.shift = 1;
	how.max = 255;
	how.flags = PAIR_UINT8;
	s->u.mul = how;
	return 0;
}

/* (x + 2^15)(y + 2^15) less 2^15 of each, and 2^30. */
static int sum_products(struct lowered *l, uint32_t rows, uint32_t v, uint32_t *d)
{
	struct digits_step x = {
		.rows = rows, .bytes = ROW, .columns = 4, .bias = {0, 0, 0, 0xC0}};
	const uint32_t minus = ~(uint32_t)DIGITS_HALF + 1;

	for (uint32_t n = 0; n < NIBBLES; n++) {
		uint32_t nibble =
			(n >> 3) + (n >> 2 & 1) + 2 * (n >> 1 & 1) + 2 * (n & 1);

		x.weights[n][nibble / 2] = nibble % 2 ? 16 : 1;
	}
	for (uint32_t i = 0; i < 4; i++)
		for (uint32_t k = i % 2; k < 4; k++)
			x.weights[NIBBLES + i][k] = (uint8_t)(minus >> 8 * (k - i % 2));
	return digits_new(l, v, &x, d);
}

int wide_product(struct lowered *l, uint32_t rows, uint32_t a, uint32_t b, uint32_t *v)
{
	uint64_t bytes = (uint64_t)rows * NIBBLES;
	uint32_t first, second, products;
	int rc = lower_value(l, bytes, NULL, &first);

	if (!rc)
		rc = lower_value(l, bytes, NULL, &second);
	if (!rc)
		rc = lower_value(l, (uint64_t)rows * ROW, NULL, &products);
	if (!rc)
		rc = nibbles(l, a, rows, false, first);
	if (!rc)
		rc = nibbles(l, b, rows, true, second);
	if (!rc)
		rc = wide_multiply(l, first, second, products,
				   (struct hal_npu_mul){.rows = rows,
							.bytes = NIBBLES,
							.d_stride = ROW});
	if (!rc)
		rc = beside(l, a, rows, NIBBLES, products);
	if (!rc)
		rc = beside(l, b, rows, NIBBLES + 2, products);
	if (!rc)
		rc = sum_products(l, rows, products, v);
	return rc ? rc : digits_carry(l, rows, 4, 3, v);
}

int wide_mul(struct lowered *l, const uint32_t v[3], struct quant_mult q, int32_t min,
	     int32_t max)
{
	uint64_t rows = lower_t(l, v[2])->count;
	struct int16_number product = {.rows = (uint32_t)rows,
				       .digits = 4,
				       .offset = UINT32_C(1) << 31,
				       .largest = UINT64_C(1) << 30,
				       .q = q,
				       .min = min,
				       .max = max};
	uint32_t a, b;
	int rc;

	if (rows > INT32_MAX)
		return lower_fail(l, ENOTSUP,
				  "%llu elements; less than 2^31 are supported",
				  (unsigned long long)rows);
	rc = wide_open(l, v[0], product.rows, &a);
	if (!rc)
		rc = wide_open(l, v[1], product.rows, &b);
	if (!rc)
		rc = wide_product(l, product.rows, a, b, &product.v);
	return rc ? rc : int16_store(l, &product, v[2]);
}

/* ---- functions ---------------------------------------------------------------------- */

/* A row of the table for each high byte: its low bytes, then its high ones.  A GEMM picks
 * the row by a one among 256 zeros, a product the two bytes likewise, and a sum brings
 * them together. */
#define CHUNK 512u /* rows; what they take lies beside the activations */

static const int32_t unit[2] = {INT32_MAX, 0}; /* x times 1 */

int wide_gemm(struct lowered *l, uint32_t a, uint32_t b, uint32_t d,
	      struct hal_npu_gemm how)
{
	struct step *s = lower_step(l, STEP_GEMM, a, b, d);

	if (!s)
		return -ENOMEM;
	how.size = (uint32_t)sizeof(how);
	how.out.mult = unit;
	how.out.shift = unit + 1;
	how.flags = PAIR_UINT8;
	s->u.gemm = how;
	return 0;
}

int wide_edges(struct lowered *l, uint32_t a, uint32_t rows, uint32_t n, uint32_t d)
{
	struct step *s = lower_step(l, STEP_ADD, a, a, d);

	if (!s)
		return -ENOMEM;
	s->u.add = pair_difference(0, 0, 1, PAIR_UINT8);
	s->u.add.rows = rows;
	s->u.add.bytes = n;
	s->u.add.b.offset = 1;
	s->u.add.a_stride = s->u.add.b_stride = n + 1;
	return 0;
}

/* Of byte which of each number: a one among 256 zeros.  First ones up to there. */
static int one_of(struct lowered *l, uint32_t a, uint64_t at, uint32_t rows,
		  uint32_t which, uint32_t *d)
{
	enum { STEPS = 257 };
	uint8_t *weights = lower_own(l, UINT64_C(2) * STEPS);
	int32_t *bias = lower_own(l, STEPS * sizeof(*bias));
	uint32_t b, steps;
	int rc;

	if (!weights || !bias)
		return -ENOMEM;
	for (uint32_t n = 0; n < STEPS; n++) {
		weights[which * STEPS + n] = 1;
		bias[n] = 1 - (int32_t)n;
	}
	rc = lower_value(l, (uint64_t)2 * STEPS, weights, &b);
	if (!rc)
		rc = lower_value(l, (uint64_t)rows * STEPS, NULL, &steps);
	if (!rc)
		rc = lower_value(l, (uint64_t)rows * 256, NULL, d);
	if (!rc)
		rc = wide_gemm(l, a, b, steps,
			       (struct hal_npu_gemm){.m = rows,
						     .n = STEPS,
						     .k = 2,
						     .a.offset = (uint32_t)at,
						     .out = {.bias = bias, .max = 1}});
	return rc ? rc : wide_edges(l, steps, rows, 256, *d);
}

static int pick(struct lowered *l, uint32_t a, uint64_t at, uint32_t rows,
		const uint32_t constant[2], uint32_t d)
{
	uint32_t high, low, row, byte;
	int rc = one_of(l, a, at, rows, 1, &high);

	if (!rc)
		rc = one_of(l, a, at, rows, 0, &low);
	if (!rc)
		rc = lower_value(l, (uint64_t)rows * 512, NULL, &row);
	if (!rc)
		rc = lower_value(l, (uint64_t)rows * 512, NULL, &byte);
	if (!rc)
		rc = wide_gemm(l, high, constant[0], row,
			       (struct hal_npu_gemm){
				       .m = rows, .n = 512, .k = 256, .out.max = 255});
	for (uint32_t i = 0; !rc && i < 2; i++)
		rc = wide_multiply(l, row, low, byte,
				   (struct hal_npu_mul){.rows = rows,
							.bytes = 256,
							.a_stride = 512,
							.d_stride = 512,
							.a.offset = 256 * i,
							.d.offset = 256 * i});
	return rc ? rc
		  : wide_gemm(l, byte, constant[1], d,
			      (struct hal_npu_gemm){.m = rows,
						    .n = 2,
						    .k = 512,
						    .d.offset = (uint32_t)at,
						    .out.max = 255});
}

int wide_function(struct lowered *l, const int16_t *table, struct wide_function *f)
{
	uint8_t *bytes = lower_own(l, UINT64_C(2) * 65536),
		*sides = lower_own(l, UINT64_C(2) * 512);
	int rc;

	if (!bytes || !sides)
		return -ENOMEM;
	for (uint32_t i = 0; i < 65536; i++) {
		bytes[i / 256 * 512 + i % 256] = (uint8_t)table[i];
		bytes[i / 256 * 512 + 256 + i % 256] = (uint8_t)((uint16_t)table[i] >> 8);
	}
	for (uint32_t i = 0; i < 512; i++)
		sides[2 * i + i / 256] = 1;
	rc = lower_value(l, UINT64_C(2) * 65536, bytes, &f->constant[0]);
	return rc ? rc : lower_value(l, UINT64_C(512) * 2, sides, &f->constant[1]);
}

int wide_apply(struct lowered *l, const struct wide_function *f, uint32_t a, uint32_t d,
	       uint32_t rows)
{
	int rc = 0;

	for (uint32_t at = 0; !rc && at < rows; at += CHUNK)
		rc = pick(l, a, (uint64_t)at * 2, rows - at < CHUNK ? rows - at : CHUNK,
			  f->constant, d);
	return rc;
}

int wide_table(struct lowered *l, uint32_t a, uint32_t d, uint32_t rows,
	       const int16_t *table)
{
	struct wide_function f;
	int rc = wide_function(l, table, &f);

	return rc ? rc : wide_apply(l, &f, a, d, rows);
}

/* ---- pools -------------------------------------------------------------------------- */

/* Outputs from first on, so many, whose windows have pixel k in the image. */
static void reach(const struct axis *x, uint32_t k, uint32_t *first, uint32_t *count)
{
	int64_t off = (int64_t)k - x->pad, from = off < 0 ? -off : 0, to;

	from = (from + x->stride - 1) / x->stride;
	to = (int64_t)x->in - off;
	to = to <= 0 ? 0 : (to - 1) / x->stride + 1;
	if (to > x->out)
		to = x->out;
	*first = (uint32_t)from;
	*count = to > from ? (uint32_t)(to - from) : 0;
}

/* Pixel (i, k) of all windows, behind each other. */
static int one_tap(struct lowered *l, uint32_t a, const struct window *w, uint32_t i,
		   uint32_t k, uint32_t d)
{
	uint64_t tap = (uint64_t)w->images * w->y.out * w->x.out * w->c;
	int64_t pixel = w->c, in_row = pixel * w->x.in, out_row = pixel * w->x.out;
	uint32_t y, x, rows, columns;
	struct move m = {0};

	reach(&w->y, i, &y, &rows);
	reach(&w->x, k, &x, &columns);
	if (!rows || !columns)
		return 0;
	move_add(&m, w->c, 1, 1);
	move_add(&m, columns, pixel * w->x.stride, pixel);
	move_add(&m, rows, in_row * w->y.stride, out_row);
	move_add(&m, w->images, in_row * w->y.in, out_row * w->y.out);
	m.a_at = in_row * ((int64_t)y * w->y.stride + i - w->y.pad) +
		 pixel * ((int64_t)x * w->x.stride + k - w->x.pad);
	m.d_at = (int64_t)(tap * (i * w->x.k + k)) + out_row * y + pixel * x;
	return lower_move(l, a, d, 2, &m);
}

int wide_max_pool(struct lowered *l, uint32_t a, uint32_t d, const struct window *w,
		  int32_t min, int32_t max)
{
	uint64_t tap = (uint64_t)w->images * w->y.out * w->x.out * w->c;
	uint32_t taps = w->y.k * w->x.k, v;
	unsigned long long all = tap * taps;
	int rc;

	if (all > INT32_MAX / 8)
		return lower_fail(l, ENOTSUP,
				  "%llu elements of windows; at most 2^28 are supported",
				  all);
	rc = lower_value(l, all * 2, NULL, &v);
	/* What lies beside the image counts for nothing. */
	if (!rc && taps > 1)
		rc = lower_fill(l, v, 2, INT16_MIN);
	for (uint32_t i = 0; !rc && i < w->y.k; i++)
		for (uint32_t k = 0; !rc && k < w->x.k; k++)
			rc = one_tap(l, a, w, i, k, v);
	return rc ? rc
		  : wide_largest(l, v, d, (const uint32_t[]){1, taps, (uint32_t)tap}, min,
				 max);
}
