/* SPDX-License-Identifier: Apache-2.0 */
/* The vector unit's operations of the builder against plain loops. */
#include "npu_world.h"
#include "tier.h"

#include <string.h>

#define A8 HAL_NPU_A_UINT8
#define B8 HAL_NPU_B_UINT8
#define D8 HAL_NPU_D_UINT8

static uint32_t pick_flags(struct world *w, uint32_t of)
{
	return pick(w, 0, 1) ? 0 : world_random(w) & of;
}

/* ---- add, mul: rows with strides, either operand repeated ------------------------- */

struct rows {
	uint32_t rows, bytes, flags;
	uint32_t a_stride, b_stride, d_stride; /* as the operation is told */
	struct hal_npu_place a, b, d;
};

static void pick_rows(struct world *w, struct rows *r)
{
	r->flags = pick_flags(w, A8 | B8 | D8);
	r->rows = pick(w, 0, 1) ? 0 : pick(w, 1, 12);
	r->bytes = pick(w, 1, r->rows ? 300 : 3000);
	if (r->rows && pick(w, 0, 1))
		r->flags |= world_random(w) & (HAL_NPU_A_REPEAT | HAL_NPU_B_REPEAT);
	r->a_stride = pick(w, 0, 1) ? 0 : r->bytes + pick(w, 0, 50);
	r->b_stride = pick(w, 0, 1) ? 0 : r->bytes + pick(w, 0, 50);
	r->d_stride = pick(w, 0, 1) ? 0 : r->bytes + pick(w, 0, 50);
	r->a = w->pa;
	r->b = w->pb;
	r->d = w->pd;
	r->a.offset = pick(w, 0, 100);
	r->b.offset = pick(w, 0, 100);
	r->d.offset = pick(w, 0, 100);
	snprintf(w->what, sizeof(w->what), "%u rows of %u, strides %u %u %u, flags %u",
		 r->rows, r->bytes, r->a_stride, r->b_stride, r->d_stride, r->flags);
}

static uint8_t at(const uint8_t *memory, struct hal_npu_place p, const struct rows *r,
		  uint32_t stride, uint32_t repeat, uint32_t row, uint32_t col)
{
	stride = stride ? stride : r->bytes;
	return memory[p.offset + (repeat ? 0 : row * stride) + col];
}

static int32_t a_at(const struct world *w, const struct rows *r, uint32_t row,
		    uint32_t col)
{
	return value(
		at(w->a, r->a, r, r->a_stride, r->flags & HAL_NPU_A_REPEAT, row, col),
		r->flags & A8);
}

static int32_t b_at(const struct world *w, const struct rows *r, uint32_t row,
		    uint32_t col)
{
	return value(
		at(w->b, r->b, r, r->b_stride, r->flags & HAL_NPU_B_REPEAT, row, col),
		r->flags & B8);
}

static void put(struct world *w, const struct rows *r, uint32_t row, uint32_t col,
		int32_t v)
{
	uint32_t stride = r->d_stride ? r->d_stride : r->bytes;

	w->want[r->d.offset + row * stride + col] = (uint8_t)v;
}

#define EACH(r, row, col)                                                                \
	for (uint32_t row = 0; row < ((r).rows ? (r).rows : 1); row++)                   \
		for (uint32_t col = 0; col < (r).bytes; col++)

static void make_add(struct world *w)
{
	struct hal_npu_add op = HAL_INIT(hal_npu_add);
	struct rows r;

	pick_rows(w, &r);
	op.flags = r.flags;
	op.rows = r.rows;
	op.bytes = r.bytes;
	op.a_stride = r.a_stride;
	op.b_stride = r.b_stride;
	op.d_stride = r.d_stride;
	op.a = r.a;
	op.b = r.b;
	op.d = r.d;
	op.a_zero = pick_byte(w, op.flags & A8);
	op.b_zero = pick_byte(w, op.flags & B8);
	op.d_zero = pick_byte(w, op.flags & D8);
	op.a_mult = pick(w, 0, 3) ? pick_mult(w) : -pick_mult(w);
	op.b_mult = pick(w, 0, 3) ? pick_mult(w) : -pick_mult(w);
	op.d_mult = pick_mult(w);
	op.a_shift = -(int32_t)pick(w, 0, 3);
	op.b_shift = -(int32_t)pick(w, 0, 3);
	op.d_shift = -(int32_t)pick(w, 17, 20);
	op.left_shift = 20;
	pick_clamp(w, op.flags & D8, &op.min, &op.max);
	OK(hal_npu_add(w->builder, &op));
	EACH(r, row, col)
	{
		int32_t x = (a_at(w, &r, row, col) - op.a_zero) * (1 << 20);
		int32_t y = (b_at(w, &r, row, col) - op.b_zero) * (1 << 20);

		x = scaled(x, op.a_mult, op.a_shift) + scaled(y, op.b_mult, op.b_shift);
		x = scaled(x, op.d_mult, op.d_shift) + op.d_zero;
		put(w, &r, row, col, clamped(x, op.min, op.max));
	}
}

static void mul_values(struct world *w, struct hal_npu_mul *op, const struct rows *r)
{
	op->flags = r->flags;
	op->rows = r->rows;
	op->bytes = r->bytes;
	op->a_stride = r->a_stride;
	op->b_stride = r->b_stride;
	op->d_stride = r->d_stride;
	op->a = r->a;
	op->b = r->b;
	op->d = r->d;
	op->a_zero = pick_byte(w, op->flags & A8);
	op->b_zero = pick_byte(w, op->flags & B8);
	op->d_zero = pick_byte(w, op->flags & D8);
	op->mult = pick_mult(w);
	op->shift = (int32_t)pick(w, 0, 10) - 9;
	pick_clamp(w, op->flags & D8, &op->min, &op->max);
	OK(hal_npu_mul(w->builder, op));
	EACH(*r, row, col)
	{
		int32_t x = (a_at(w, r, row, col) - op->a_zero) *
			    (b_at(w, r, row, col) - op->b_zero);

		x = scaled(x, op->mult, op->shift);
		put(w, r, row, col, clamped((int64_t)x + op->d_zero, op->min, op->max));
	}
}

static void make_mul(struct world *w)
{
	struct hal_npu_mul op = HAL_INIT(hal_npu_mul);
	struct rows r;

	pick_rows(w, &r);
	mul_values(w, &op, &r);
}

/* Every pair of operands, in one operation. */
static void make_mul_all(struct world *w)
{
	struct hal_npu_mul op = HAL_INIT(hal_npu_mul);
	struct rows r = {.bytes = BYTES, .a = w->pa, .b = w->pb, .d = w->pd};

	for (uint32_t i = 0; i < BYTES; i++) {
		w->a[i] = (uint8_t)(i >> 8);
		w->b[i] = (uint8_t)i;
	}
	r.flags = pick_flags(w, A8 | B8 | D8);
	snprintf(w->what, sizeof(w->what), "mul of all pairs, flags %u", r.flags);
	mul_values(w, &op, &r);
}

/* ---- one operand ------------------------------------------------------------------ */

static void make_relu(struct world *w)
{
	struct hal_npu_relu op = HAL_INIT(hal_npu_relu);

	op.flags = pick_flags(w, A8 | D8);
	op.bytes = pick(w, 1, 3000);
	op.a = w->pa;
	op.d = w->pd;
	op.a.offset = pick(w, 0, 100);
	op.d.offset = pick(w, 0, 100);
	op.a_zero = pick_byte(w, op.flags & A8);
	op.d_zero = pick_byte(w, op.flags & D8);
	op.mult = pick_mult(w);
	op.shift = (int32_t)pick(w, 0, 6) - 3;
	pick_clamp(w, op.flags & D8, &op.min, &op.max);
	snprintf(w->what, sizeof(w->what), "relu %u flags %u", op.bytes, op.flags);
	OK(hal_npu_relu(w->builder, &op));
	for (uint32_t i = 0; i < op.bytes; i++) {
		int32_t x = value(w->a[op.a.offset + i], op.flags & A8) - op.a_zero;

		x = scaled(x, op.mult, op.shift);
		w->want[op.d.offset + i] =
			(uint8_t)clamped((int64_t)x + op.d_zero, op.min, op.max);
	}
}

static void make_lut(struct world *w)
{
	struct hal_npu_lut op = HAL_INIT(hal_npu_lut);
	uint8_t table[256];

	for (uint32_t i = 0; i < 256; i++)
		table[i] = (uint8_t)world_random(w);
	op.bytes = pick(w, 0, 3) ? pick(w, 1, 5000) : BYTES - 100;
	op.a = w->pa;
	op.d = w->pd;
	op.a.offset = pick(w, 0, 100);
	op.d.offset = pick(w, 0, 100);
	op.table = table;
	snprintf(w->what, sizeof(w->what), "lut %u", op.bytes);
	OK(hal_npu_lut(w->builder, &op));
	for (uint32_t i = 0; i < op.bytes; i++)
		w->want[op.d.offset + i] = table[w->a[op.a.offset + i]];
}

static void make_copy(struct world *w)
{
	struct hal_npu_copy op = HAL_INIT(hal_npu_copy);
	struct hal_npu_place fill = w->pd;

	op.flags = pick(w, 0, 2) ? 0 : HAL_NPU_A_REPEAT;
	op.rows = pick(w, 1, 30);
	op.bytes = pick(w, 1, 300);
	op.a_stride = pick(w, 0, 1) ? 0 : op.bytes + pick(w, 0, 50);
	op.d_stride = pick(w, 0, 1) ? 0 : op.bytes + pick(w, 0, 50);
	op.a = w->pa;
	op.d = w->pd;
	op.a.offset = pick(w, 0, 100);
	op.d.offset = pick(w, 0, 100);
	fill.offset = 32768 + 4 * pick(w, 0, 20);
	snprintf(w->what, sizeof(w->what), "copy %u x %u strides %u %u flags %u", op.rows,
		 op.bytes, op.a_stride, op.d_stride, op.flags);
	OK(hal_npu_copy(w->builder, &op));
	OK(hal_npu_fill(w->builder, fill, 4 * 37, 0x12345678));
	for (uint32_t r = 0; r < op.rows; r++)
		memcpy(w->want + op.d.offset + r * (op.d_stride ? op.d_stride : op.bytes),
		       w->a + op.a.offset +
			       (op.flags ? 0 : r) *
				       (op.a_stride ? op.a_stride : op.bytes),
		       op.bytes);
	for (uint32_t i = 0; i < 37; i++)
		memcpy(w->want + fill.offset + 4 * i, "\x78\x56\x34\x12", 4);
}

/* ---- pools ------------------------------------------------------------------------ */

struct window {
	int32_t max, sum, pixels;
};

static struct window look(const struct world *w, const struct hal_npu_pool *op,
			  uint32_t oy, uint32_t ox, uint32_t c)
{
	struct window v = {.max = INT32_MIN};

	for (uint32_t ky = 0; ky < op->kh; ky++)
		for (uint32_t kx = 0; kx < op->kw; kx++) {
			int64_t y = (int64_t)oy * op->stride_h + ky - op->pad_top;
			int64_t x = (int64_t)ox * op->stride_w + kx - op->pad_left;
			int32_t a;

			if (y < 0 || y >= op->h || x < 0 || x >= op->w)
				continue;
			a = value(w->a[op->a.offset +
				       ((uint64_t)y * op->w + (uint64_t)x) * op->c + c],
				  op->flags & A8);
			v.max = a > v.max ? a : v.max;
			v.sum += a;
			v.pixels++;
		}
	return v;
}

/* sum / pixels to the nearest integer, the half way ones away from zero. */
static int32_t mean(struct window v)
{
	int32_t q = v.sum / v.pixels, rest = v.sum % v.pixels;

	if (2 * (rest < 0 ? -rest : rest) >= v.pixels)
		q += v.sum < 0 ? -1 : 1;
	return q;
}

static void pool_shape(struct world *w, struct hal_npu_pool *op)
{
	uint32_t most = pick(w, 0, 3) ? 3 : 20;

	op->h = pick(w, 1, 20);
	op->w = pick(w, 1, 20);
	op->c = pick(w, 1, 70);
	op->kh = pick(w, 1, most);
	op->kw = pick(w, 1, most);
	op->stride_h = pick(w, 1, 3);
	op->stride_w = pick(w, 1, 3);
	op->pad_top = pick(w, 0, op->kh - 1);
	op->pad_left = pick(w, 0, op->kw - 1);
	op->oh = pick(w, 1, (op->h + op->pad_top + op->stride_h - 1) / op->stride_h);
	op->ow = pick(w, 1, (op->w + op->pad_left + op->stride_w - 1) / op->stride_w);
	while (op->oh * op->ow * op->c > BYTES - 64)
		op->c--;
}

static void make_pool(struct world *w, int average)
{
	struct hal_npu_pool op = HAL_INIT(hal_npu_pool);

	pool_shape(w, &op);
	op.flags = pick_flags(w, A8 | D8);
	pick_clamp(w, op.flags & D8, &op.min, &op.max);
	op.a = w->pa;
	op.d = w->pd;
	op.a.offset = pick(w, 0, 63);
	op.d.offset = pick(w, 0, 63);
	snprintf(w->what, sizeof(w->what),
		 "%s %ux%ux%u -> %ux%u kernel %ux%u stride %ux%u pad %u %u flags %u",
		 average ? "avgpool" : "maxpool", op.h, op.w, op.c, op.oh, op.ow, op.kh,
		 op.kw, op.stride_h, op.stride_w, op.pad_top, op.pad_left, op.flags);
	OK(average ? hal_npu_avgpool(w->builder, &op) : hal_npu_maxpool(w->builder, &op));
	for (uint32_t m = 0; m < op.oh * op.ow; m++)
		for (uint32_t c = 0; c < op.c; c++) {
			struct window v = look(w, &op, m / op.ow, m % op.ow, c);

			w->want[op.d.offset + m * op.c + c] = (uint8_t)clamped(
				average ? mean(v) : v.max, op.min, op.max);
		}
}

static void make_maxpool(struct world *w)
{
	make_pool(w, 0);
}

static void make_avgpool(struct world *w)
{
	make_pool(w, 1);
}

/* ---- softmax ---------------------------------------------------------------------- */

/* Q31 product, halves up. */
static int32_t times(int32_t a, int32_t b)
{
	return (int32_t)(((int64_t)a * b + (INT64_C(1) << 30)) >> 31);
}

static int32_t saturated(int64_t x)
{
	return clamped(x, INT32_MIN, INT32_MAX);
}

/* TensorFlow Lite's way: sum in Q12.19, its reciprocal by Newton's method. */
static void softmax_row(const int32_t *exp, const uint8_t *a, uint8_t *d, uint32_t cols,
			uint32_t flags)
{
	int32_t max = INT32_MIN, low = flags & D8 ? 0 : -128, half, x, scale;
	int64_t sum = 0;
	uint32_t over = 0; /* integer bits of the sum, and its sign */

	for (uint32_t i = 0; i < cols; i++)
		max = value(a[i], flags & A8) > max ? value(a[i], flags & A8) : max;
	for (uint32_t i = 0; i < cols; i++)
		sum += ((int64_t)exp[max - value(a[i], flags & A8)] + 2048) >> 12;
	while (over < 31 && sum << over < INT64_C(1) << 31)
		over++;
	/* (1 + f) / 2 where sum is 1.f times a power of two */
	half = (int32_t)((sum << over) / 2);
	x = 1515870810 + times(half, -1010580540);
	for (int i = 0; i < 3; i++)
		x += saturated(4 * (int64_t)times(x, (1 << 29) - times(half, x)));
	scale = saturated(2 * (int64_t)x);
	for (uint32_t i = 0; i < cols; i++) {
		int64_t e = times(scale, exp[max - value(a[i], flags & A8)]);

		e = (e + (INT64_C(1) << (34 - over))) >> (35 - over);
		d[i] = (uint8_t)clamped(e + low, low, low + 255);
	}
}

/* No more than one step from the real numbers. */
static void near_real(const struct world *w, const int32_t *exp, const uint8_t *a,
		      const uint8_t *d, uint32_t cols, uint32_t flags)
{
	int32_t max = INT32_MIN;
	double sum = 0;

	for (uint32_t i = 0; i < cols; i++)
		max = value(a[i], flags & A8) > max ? value(a[i], flags & A8) : max;
	for (uint32_t i = 0; i < cols; i++)
		sum += exp[max - value(a[i], flags & A8)];
	for (uint32_t i = 0; i < cols; i++) {
		double p = 256.0 * exp[max - value(a[i], flags & A8)] / sum;
		int32_t got = value(d[i], flags & D8) + (flags & D8 ? 0 : 128);

		if (got - p > 1 || (p - got > 1 && got != 255))
			fail_msg("%s: %u is %d, not %f", w->what, i, got, p);
	}
}

static void make_softmax(struct world *w)
{
	struct hal_npu_softmax op = HAL_INIT(hal_npu_softmax);
	double e = 1, factor = 1 - 1.0 / pick(w, 2, 200);
	int32_t exp[256];

	for (uint32_t i = 0; i < 256; i++, e *= factor)
		exp[i] = i ? (int32_t)(e * 2147483648.0) : INT32_MAX;
	op.flags = pick_flags(w, A8 | D8);
	op.rows = pick(w, 1, 5);
	op.cols = pick(w, 0, 3) ? pick(w, 1, 40) : pick(w, 1, 4095);
	op.a = w->pa;
	op.d = w->pd;
	op.a.offset = pick(w, 0, 100);
	op.d.offset = pick(w, 0, 100);
	op.exp = exp;
	snprintf(w->what, sizeof(w->what), "softmax %u x %u flags %u factor %f", op.rows,
		 op.cols, op.flags, factor);
	OK(hal_npu_softmax(w->builder, &op));
	for (uint32_t r = 0; r < op.rows; r++) {
		const uint8_t *a = w->a + op.a.offset + r * op.cols;
		uint8_t *d = w->want + op.d.offset + r * op.cols;

		softmax_row(exp, a, d, op.cols, op.flags);
		near_real(w, exp, a, d, op.cols, op.flags);
	}
}

static const world_make make[] = {make_add,     make_add,     make_mul,     make_mul,
				  make_mul_all, make_relu,    make_lut,     make_copy,
				  make_maxpool, make_avgpool, make_softmax, make_softmax};

static void on_golden(void **state)
{
	(void)state;
	world_golden(make, sizeof(make) / sizeof(make[0]));
}

static void on_rtl(void **state)
{
	(void)state;
	IN_FULL_TIER();
	world_rtl(make, sizeof(make) / sizeof(make[0]));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(on_golden),
		cmocka_unit_test(on_rtl),
	};

	tier_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
