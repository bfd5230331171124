/* SPDX-License-Identifier: Apache-2.0 */
/* GEMM and CONV of the builder, both requantizations, against plain loops. */
#include "npu_world.h"
#include "tier.h"

#include <string.h>

/* ---- requantization shared by GEMM and CONV --------------------------------------- */

struct quant {
	int32_t bias[512], mult[512], shift[512];
	float scale[512];
	struct hal_npu_requant r;
};

/* 2^-3 to 2^-16, every third of them a power of two: its products are halves. */
static float pick_scale(struct world *w)
{
	uint32_t exponent = 127u - pick(w, 3, 16);
	uint32_t bits = exponent << 23 | (pick(w, 0, 2) ? world_random(w) >> 1 : 0);
	float scale;

	memcpy(&scale, &bits, sizeof(scale));
	return scale;
}

static void make_quant(struct world *w, struct quant *q, uint32_t flags, uint32_t n)
{
	uint32_t kind = pick(w, 0, 8), d8 = flags & HAL_NPU_D_UINT8;

	memset(&q->r, 0, sizeof(q->r));
	for (uint32_t i = 0; i < n; i++) {
		q->bias[i] = (int32_t)pick(w, 0, 20000) - 10000;
		q->mult[i] = pick_mult(w);
		q->shift[i] = -(int32_t)pick(w, 2, 12);
		q->scale[i] = pick_scale(w);
	}
	if (kind)
		q->r.bias = q->bias;
	if (kind == 1)
		return; /* int32 */
	if (kind > 5) {
		q->r.scale = q->scale;
		q->r.bias = kind == 7 ? NULL : q->bias;
	} else {
		q->r.mult = q->mult;
		q->r.shift = q->shift;
	}
	q->r.per_channel = kind > 2 && kind != 7;
	q->r.zero_point = pick_byte(w, d8);
	q->r.min = d8 ? 0 : -128;
	q->r.max = d8 ? 255 : 127;
	if (kind == 5)
		q->r.min = q->r.zero_point; /* relu */
}

/* The product of two binary32 numbers is exact in binary64. */
static int64_t float_scaled(int32_t sum, float scale)
{
	double p = (double)(float)((double)(float)sum * (double)scale), rest;
	int64_t below;

	if (p >= 1073741824.0 || p <= -1073741824.0)
		return p > 0 ? 1 << 30 : -(1 << 30);
	below = (int64_t)p;
	below -= (double)below > p;
	rest = p - (double)below;
	return rest > 0.5 || (rest >= 0.5 && below % 2) ? below + 1 : below;
}

static uint32_t output_size(const struct hal_npu_requant *r)
{
	return r->mult || r->scale ? 1 : 4;
}

static void put_output(uint8_t *at, const struct quant *q, uint32_t n, int32_t sum)
{
	uint32_t i = q->r.per_channel ? n : 0;
	int64_t x;

	if (q->r.bias)
		sum += q->bias[n];
	if (output_size(&q->r) == 4) {
		memcpy(at, &sum, 4);
		return;
	}
	x = q->r.scale ? float_scaled(sum, q->scale[i])
		       : scaled(sum, q->mult[i], q->shift[i]);
	*at = (uint8_t)clamped(x + q->r.zero_point, q->r.min, q->r.max);
}

static uint32_t pick_types(struct world *w)
{
	return pick(w, 0, 2) ? 0
			     : world_random(w) & (HAL_NPU_A_UINT8 | HAL_NPU_B_UINT8 |
						  HAL_NPU_D_UINT8);
}

/* ---- operations ------------------------------------------------------------------- */

static void make_gemm(struct world *w)
{
	struct hal_npu_gemm op = HAL_INIT(hal_npu_gemm);
	static struct quant q;
	uint32_t size, lda, ldb, ldd;

	op.m = pick(w, 1, world_random(w) % 4 ? 60 : 600);
	op.n = pick(w, 1, 40);
	op.k = pick(w, 1, 80);
	op.flags = pick_types(w);
	op.a_zero = pick_byte(w, op.flags & HAL_NPU_A_UINT8);
	op.b_zero = pick_byte(w, op.flags & HAL_NPU_B_UINT8);
	make_quant(w, &q, op.flags, op.n);
	op.out = q.r;
	size = output_size(&op.out);
	op.a_stride = world_random(w) % 2 ? 0 : op.k + pick(w, 0, 20);
	op.b_stride = world_random(w) % 2 ? 0 : op.n + pick(w, 0, 20);
	op.d_stride = world_random(w) % 2 ? 0 : (op.n + pick(w, 0, 20)) * size;
	lda = op.a_stride ? op.a_stride : op.k;
	ldb = op.b_stride ? op.b_stride : op.n;
	ldd = op.d_stride ? op.d_stride : op.n * size;
	if (op.m * lda > BYTES - 64)
		op.m = (BYTES - 64) / lda;
	if (op.m * ldd > BYTES - 64)
		op.m = (BYTES - 64) / ldd;
	op.a = w->pa;
	op.b = w->pb;
	op.d = w->pd;
	op.a.offset = pick(w, 0, 63);
	op.b.offset = pick(w, 0, 63);
	op.d.offset = pick(w, 0, 15) * 4;
	snprintf(w->what, sizeof(w->what), "gemm %u %u %u strides %u %u %u flags %u",
		 op.m, op.n, op.k, lda, ldb, ldd, op.flags);
	OK(hal_npu_gemm(w->builder, &op));
	for (uint32_t m = 0; m < op.m; m++)
		for (uint32_t n = 0; n < op.n; n++) {
			int32_t sum = 0;

			for (uint32_t k = 0; k < op.k; k++)
				sum += (value(w->a[op.a.offset + m * lda + k],
					      op.flags & HAL_NPU_A_UINT8) -
					op.a_zero) *
				       (value(w->b[op.b.offset + k * ldb + n],
					      op.flags & HAL_NPU_B_UINT8) -
					op.b_zero);
			put_output(w->want + op.d.offset + m * ldd + n * size, &q, n,
				   sum);
		}
}

static int32_t conv_product(const struct world *w, const struct hal_npu_conv *op,
			    uint64_t a, uint32_t b)
{
	uint32_t a8 = op->flags & HAL_NPU_A_UINT8, b8 = op->flags & HAL_NPU_B_UINT8;

	return (value(w->a[op->a.offset + a], a8) - op->a_zero) *
	       (value((uint8_t)op->weights[b], b8) - op->b_zero);
}

static int32_t conv_sum(const struct world *w, const struct hal_npu_conv *op, uint32_t oy,
			uint32_t ox, uint32_t n)
{
	uint32_t cin = op->c / op->groups, c0 = n / (op->n / op->groups) * cin;
	int32_t sum = 0;

	for (uint32_t ky = 0; ky < op->kh; ky++)
		for (uint32_t kx = 0; kx < op->kw; kx++) {
			int64_t y = (int64_t)oy * op->stride_h + ky * op->dilation_h -
				    op->pad_top;
			int64_t x = (int64_t)ox * op->stride_w + kx * op->dilation_w -
				    op->pad_left;

			if (y < 0 || y >= op->h || x < 0 || x >= op->w)
				continue;
			for (uint32_t c = 0; c < cin; c++)
				sum += conv_product(
					w, op,
					((uint64_t)y * op->w + (uint64_t)x) * op->c + c0 +
						c,
					((n * op->kh + ky) * op->kw + kx) * cin + c);
		}
	return sum;
}

/* 1 x 1 over pixels of so many channels that K is cut (KCUT). */
static void deep_shape(struct world *w, struct hal_npu_conv *op)
{
	op->c = pick(w, 900, 1200);
	op->n = pick(w, 1, 16);
	op->h = pick(w, 2, 4);
	op->w = pick(w, 2, 4);
	op->oh = pick(w, 2, op->h);
	op->ow = op->w;
	op->groups = op->kh = op->kw = 1;
	op->stride_h = op->stride_w = op->dilation_h = op->dilation_w = 1;
}

static void conv_shape(struct world *w, struct hal_npu_conv *op)
{
	static const uint32_t group_choice[] = {1, 1, 1, 2, 4};

	op->groups = group_choice[world_random(w) % 5];
	op->c = op->groups * pick(w, 1, 24 / op->groups);
	op->n = op->groups * pick(w, 1, 40 / op->groups);
	if (world_random(w) % 4 ==
	    0) { /* depthwise, with one to three outputs a channel */
		op->groups = op->c;
		op->n = op->c * pick(w, 1, 3);
	}
	op->h = pick(w, 1, 20);
	op->w = pick(w, 1, 20);
	op->kh = pick(w, 1, 4);
	op->kw = pick(w, 1, 4);
	op->stride_h = pick(w, 1, 3);
	op->stride_w = pick(w, 1, 3);
	op->dilation_h = pick(w, 1, 2);
	op->dilation_w = pick(w, 1, 2);
	op->pad_top = pick(w, 0, 3);
	op->pad_left = pick(w, 0, 3);
	op->oh = pick(w, 1, (op->h + op->pad_top + op->stride_h - 1) / op->stride_h);
	op->ow = pick(w, 1, (op->w + op->pad_left + op->stride_w - 1) / op->stride_w);
}

static void make_conv(struct world *w)
{
	struct hal_npu_conv op = HAL_INIT(hal_npu_conv);
	static struct quant q;
	uint32_t size, ldd;

	if (world_random(w) % 6 == 0)
		deep_shape(w, &op);
	else
		conv_shape(w, &op);
	op.flags = pick_types(w);
	op.a_zero = pick_byte(w, op.flags & HAL_NPU_A_UINT8);
	op.b_zero = pick(w, 0, 1) ? pick_byte(w, op.flags & HAL_NPU_B_UINT8) : 0;
	make_quant(w, &q, op.flags, op.n);
	op.out = q.r;
	size = output_size(&op.out);
	op.d_stride = world_random(w) % 2 ? 0 : (op.n + pick(w, 0, 20)) * size;
	ldd = op.d_stride ? op.d_stride : op.n * size;
	if (op.oh * op.ow * ldd > BYTES - 64)
		op.oh = 1;
	op.weights = (const int8_t *)w->b;
	op.a = w->pa;
	op.d = w->pd;
	op.a.offset = pick(w, 0, 63);
	op.d.offset = pick(w, 0, 15) * 4;
	snprintf(w->what, sizeof(w->what),
		 "conv %ux%ux%u -> %ux%ux%u kernel %ux%u stride %ux%u dilation %ux%u pad "
		 "%u %u "
		 "groups %u pitch %u flags %u",
		 op.h, op.w, op.c, op.oh, op.ow, op.n, op.kh, op.kw, op.stride_h,
		 op.stride_w, op.dilation_h, op.dilation_w, op.pad_top, op.pad_left,
		 op.groups, ldd, op.flags);
	OK(hal_npu_conv(w->builder, &op));
	for (uint32_t m = 0; m < op.oh * op.ow; m++)
		for (uint32_t n = 0; n < op.n; n++)
			put_output(w->want + op.d.offset + m * ldd + n * size, &q, n,
				   conv_sum(w, &op, m / op.ow, m % op.ow, n));
}

static const world_make make[] = {make_gemm, make_conv, make_conv};

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
