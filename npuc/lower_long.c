/* SPDX-License-Identifier: Apache-2.0 */
/* lower_long.c - sums of more products than the array adds up: each of several parts has
 * its own sums, and digits of those are added and requantized. */
#include "lower_long.h"

#include <errno.h>
#include <string.h>

#include "lower_digits.h"
#include "lower_int16.h"
#include "lower_move.h"
#include "lower_once.h"
#include "quant.h"

/* Rows of c->w.c elements in parts, as alike as possible. */
struct parts {
	uint32_t rows, all, count,
		each; /* each: elements; the last part may have fewer */
};

static uint32_t part_size(const struct parts *p, uint32_t part)
{
	uint32_t left = p->all - part * p->each;

	return left < p->each ? left : p->each;
}

/* [n][all] -> [n][size] */
static int8_t *part_weights(struct lowered *l, const struct conv *c,
			    const struct parts *p, uint32_t part)
{
	uint32_t size = part_size(p, part);
	int8_t *to = lower_own(l, (uint64_t)c->n * size);

	for (uint64_t n = 0; to && n < c->n; n++)
		memcpy(to + n * size, c->data + n * p->all + (uint64_t)part * p->each,
		       size);
	return to;
}

/* The int32 sums of one part, beside those of the others: of each row part by part. */
static int part_sums(struct lowered *l, const struct conv *c, const struct parts *p,
		     uint32_t part, uint32_t d)
{
	uint32_t size = part_size(p, part);
	struct move m = {.a_at = (int64_t)part * p->each};
	struct conv of = *c;
	int rc = lower_value(l, (uint64_t)p->rows * size, NULL, &of.a);

	move_add(&m, p->rows, p->all, size);
	move_add(&m, size, 1, 1);
	if (!rc)
		rc = lower_move(l, c->a, of.a, 1, &m);
	if (rc)
		return rc;
	of.data = part_weights(l, c, p, part);
	if (!of.data)
		return -ENOMEM;
	of.w.c = size;
	of.d = d;
	of.d_at = part * c->n * DIGITS_SUM;
	of.d_stride = p->count * c->n * DIGITS_SUM;
	of.out = (struct hal_npu_requant){.bias = part ? NULL : c->out.bias};
	of.flags = c->flags & (HAL_NPU_A_UINT8 | HAL_NPU_B_UINT8);
	return conv_images(l, &of);
}

uint64_t long_largest(const struct lowered *l, const struct conv *c, uint32_t n)
{
	enum npuc_type type = lower_t(l, c->a)->type;
	int64_t above = quant_max(type) - c->a_zero, below = c->a_zero - quant_min(type);
	int64_t most = above > below ? above : below;
	int64_t sum = c->out.bias ? c->out.bias[n] : 0;
	const int8_t *w = c->data + (uint64_t)n * c->w.c;

	sum = sum < 0 ? -sum : sum;
	for (uint32_t i = 0; i < c->w.c; i++) {
		int64_t x = quant_value((uint8_t)w[i], type) - c->b_zero;

		sum += most * (x < 0 ? -x : x);
	}
	return sum > INT64_C(1) << 31 ? UINT64_C(1) << 31 : (uint64_t)sum;
}

/* Sums of the parts become four digits of their sum, modulo 2^32, above 2^31. */
static int join(struct lowered *l, const struct conv *c, const struct parts *p,
		uint32_t *v)
{
	static const uint8_t half[DIGITS_MAX] = {0, 0, 0, 128};
	struct digits_each x = {.pixels = p->rows,
				.numbers = c->n,
				.parts = p->count,
				.bytes = DIGITS_SUM,
				.step = 1,
				.columns = 4};
	int rc = digits_each_new(l, &x);

	for (uint32_t n = 0; !rc && n < c->n; n++) {
		for (uint32_t part = 0; part < p->count; part++)
			digits_each_times(&x, n, part, 0, 1, 0);
		digits_each_bias(&x, n, half);
	}
	if (!rc)
		rc = digits_each(l, *v, &x, v);
	return rc ? rc : digits_carry(l, p->rows * c->n, 4, 3, v);
}

/* Such sums become results of 16 bits: rounded twice, */
static int round_twice(struct lowered *l, const struct conv *c, const struct parts *p,
		       uint32_t v, uint32_t wide)
{
	struct int16_rescaling r = {.pixels = p->rows,
				    .numbers = c->n,
				    .digits = 4,
				    .v = v,
				    .add = c->out.zero_point,
				    .min = c->out.min,
				    .max = c->out.max};
	int rc = int16_rescaling(l, &r);

	for (uint32_t n = 0; !rc && n < c->n; n++) {
		uint32_t i = c->out.per_channel ? n : 0;

		r.q[n] = (struct quant_mult){c->out.mult[i], c->out.shift[i]};
		r.offset[n] = UINT32_C(1) << 31;
		r.largest[n] = long_largest(l, c, n);
	}
	return rc ? rc : int16_rescale32(l, &r, wide);
}

/* or once. */
static int round_once(struct lowered *l, const struct conv *c, const struct parts *p,
		      uint32_t v, uint32_t wide)
{
	uint64_t *largest = lower_own(l, c->n * sizeof(*largest));
	struct int16_parts x = {.pixels = p->rows,
				.numbers = c->n,
				.v = v,
				.parts = 1,
				.carried = true,
				.above = 31,
				.largest = largest,
				.add = c->out.zero_point,
				.out = c->out};
	struct quant_once *q;
	int rc;

	if (!largest)
		return -ENOMEM;
	for (uint32_t n = 0; n < c->n; n++)
		largest[n] = long_largest(l, c, n);
	rc = once_digits(l, c, largest, &q);
	x.once = q;
	return rc ? rc : int16_requantize(l, &x, wide);
}

/* Their low bytes are results of 8 bits. */
static int requantize(struct lowered *l, const struct conv *c, const struct parts *p,
		      uint32_t v)
{
	uint64_t results = (uint64_t)p->rows * c->n;
	struct move m = {0};
	uint32_t wide;
	int rc = lower_value(l, results * 2, NULL, &wide);

	if (!rc)
		rc = c->exact ? round_once(l, c, p, v, wide)
			      : round_twice(l, c, p, v, wide);
	move_add(&m, results, 2, 1);
	return rc ? rc : lower_move(l, wide, c->d, 1, &m);
}

int long_conv(struct lowered *l, const struct conv *c)
{
	struct parts p = {.rows = c->w.y.in, .all = c->w.c};
	unsigned long long results = (unsigned long long)p.rows * c->n;
	uint32_t v;
	int rc;

	p.count = (p.all - 1) / LONG_MOST + 1;
	p.each = (p.all - 1) / p.count + 1;
	if (results > INT32_MAX || p.count > LONG_PARTS)
		return lower_fail(l, ENOTSUP,
				  "%llu sums of %u products; at most 2^31 - 1 of %u are "
				  "supported",
				  results, p.all, LONG_PARTS * LONG_MOST);
	rc = lower_value(l, results * p.count * DIGITS_SUM, NULL, &v);
	for (uint32_t part = 0; !rc && part < p.count; part++)
		rc = part_sums(l, c, &p, part, v);
	if (!rc)
		rc = join(l, c, &p, &v);
	return rc ? rc : requantize(l, c, &p, v);
}
