/* SPDX-License-Identifier: Apache-2.0 */
/* lower_upsample.c - outputs in several phases: those at a distance of a stride have one
 * convolution in common, whose outputs are then put where they belong. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lower_conv.h"
#include "lower_digits.h"
#include "lower_move.h"

/* Kinds of union BuiltinOptions, and fields of their tables. */
enum {
	OPTIONS_RESIZE_BILINEAR = 15,
	RESIZE_ALIGN_CORNERS = 2,
	RESIZE_HALF_PIXEL = 3,
	OPTIONS_TRANSPOSE_CONV = 49,
	TRANSPOSE_PADDING = 0,
	TRANSPOSE_STRIDE_W = 1,
	TRANSPOSE_STRIDE_H = 2,
	TRANSPOSE_ACT = 3,
};

#define KERNEL_MAX 255u
#define PHASES_MAX 4096u

/* ---- places ----------------------------------------------------------------------- */

/* Of the outputs of one direction count ones, from first on at a distance of step; they
 * come from as many, or all from one (same). */
struct lattice {
	uint32_t first, step, count;
	bool same;
};

/* A dense image of count outputs a direction becomes part of an output of y x x pixels of
 * c bytes. */
static int scatter(struct lowered *l, uint32_t from, uint32_t d, uint32_t images,
		   const struct lattice *y, uint32_t rows, const struct lattice *x,
		   uint32_t cols, uint32_t c)
{
	uint64_t wide = x->same ? 1 : x->count, high = y->same ? 1 : y->count;
	struct move m = {.d_at = ((int64_t)y->first * cols + x->first) * c};

	move_add(&m, images, (int64_t)(high * wide * c), (int64_t)rows * cols * c);
	move_add(&m, y->count, y->same ? 0 : (int64_t)(wide * c),
		 (int64_t)y->step * cols * c);
	move_add(&m, x->count, x->same ? 0 : (int64_t)c, (int64_t)x->step * c);
	move_add(&m, c, 1, 1);
	return lower_move(l, from, d, 1, &m);
}

/* ---- TRANSPOSE_CONV --------------------------------------------------------------- */

/* Outputs first, first + stride ... of one direction see kernel positions k0 + stride *
 * (taps - 1 - i) for i = 0 ..., behind lead that count for nothing. */
struct turned {
	struct lattice at;
	uint32_t taps, lead, k0, pad;
};

static struct turned turn(const struct axis *a, uint32_t phase)
{
	uint32_t reach = (phase + a->pad) / a->stride, need = 0;
	struct turned t = {.k0 = (phase + a->pad) % a->stride};

	t.at = (struct lattice){phase, a->stride, 0, false};
	if (phase < a->out)
		t.at.count = (a->out - phase - 1) / a->stride + 1;
	if (t.k0 < a->k)
		t.taps = (a->k - t.k0 - 1) / a->stride + 1;
	/* Padding of taps - 1 - reach; more where that is negative, or where the last
	 * output would see nothing at all. */
	if (reach + 1 > t.taps)
		need = reach + 1 - t.taps;
	if (t.at.count + reach + 1 > a->in + t.taps + need)
		need = t.at.count + reach + 1 - a->in - t.taps;
	if (!(t.taps + need))
		need = 1;
	t.lead = need;
	t.pad = t.taps + need - 1 - reach;
	return t;
}

/* [n][kh][kw][c], the taps of this phase alone. */
static const int8_t *turned_weights(struct lowered *l, const struct conv *c,
				    const struct turned *y, const struct turned *x)
{
	const struct npuc_tensor *w = lower_t(l, c->weights);
	uint64_t kh = (uint64_t)y->taps + y->lead, kw = (uint64_t)x->taps + x->lead;
	const int8_t *from = l->values[c->weights].data;
	int8_t *to = lower_own(l, c->n * kh * kw * c->w.c);

	if (!to)
		return NULL;
	memset(to, c->b_zero, c->n * kh * kw * c->w.c);
	for (uint32_t n = 0; n < c->n; n++)
		for (uint32_t i = 0; i < y->taps; i++)
			for (uint32_t k = 0; k < x->taps; k++) {
				uint64_t row = y->k0 + (uint64_t)c->w.y.stride *
							       (y->taps - 1 - i);
				uint64_t col = x->k0 + (uint64_t)c->w.x.stride *
							       (x->taps - 1 - k);
				uint64_t at = (n * kh + y->lead + i) * kw + x->lead + k;

				row += (uint64_t)n * (uint32_t)w->dims[1];
				col += row * (uint32_t)w->dims[2];
				memcpy(to + at * c->w.c, from + col * c->w.c, c->w.c);
			}
	return to;
}

static int turned_phase(struct lowered *l, const struct conv *c, const struct turned *y,
			const struct turned *x)
{
	struct conv part = *c;
	uint32_t pixel = c->n * (c->wide ? 2 : 1); /* bytes */
	uint64_t bytes = (uint64_t)c->w.images * y->at.count * x->at.count * pixel;
	int rc;

	if (!bytes)
		return 0;
	part.w.y = (struct axis){c->w.y.in, y->at.count, y->taps + y->lead, 1, 1, y->pad};
	part.w.x = (struct axis){c->w.x.in, x->at.count, x->taps + x->lead, 1, 1, x->pad};
	part.data = turned_weights(l, c, y, x);
	if (!part.data)
		return -ENOMEM;
	if (c->w.y.stride == 1 && c->w.x.stride == 1)
		return conv_steps(l, &part);
	rc = lower_value(l, bytes, NULL, &part.d);
	if (!rc)
		rc = conv_steps(l, &part);
	return rc ? rc
		  : scatter(l, part.d, c->d, c->w.images, &y->at, c->w.y.out, &x->at,
			    c->w.x.out, pixel);
}

/* Find the padding as TensorFlow Lite does: that of a convolution which reads the output
 * as its shape is given.  The operand's size need not be what that convolution makes. */
static int turned_axis(struct lowered *l, const char *name, struct axis *a,
		       uint32_t padding)
{
	uint64_t span;

	if (!a->stride || a->stride > KERNEL_MAX || !a->k || a->k > KERNEL_MAX)
		return lower_fail(l, a->stride && a->k ? ENOTSUP : EINVAL,
				  "%s: stride %u, kernel %u; both must be 1 to %u", name,
				  a->stride, a->k, KERNEL_MAX);
	span = (uint64_t)(a->out - 1) / a->stride * a->stride + a->k;
	a->pad = 0;
	if (padding == CONV_SAME && span > a->out)
		a->pad = (uint32_t)((span - a->out) / 2);
	if (a->pad > KERNEL_MAX)
		return lower_fail(l, ENOTSUP,
				  "%s: padding of %u; at most %u is supported", name,
				  a->pad, KERNEL_MAX);
	return 0;
}

static int turned_geometry(struct lowered *l, struct conv *c)
{
	uint32_t padding = lower_option_u8(l, OPTIONS_TRANSPOSE_CONV, TRANSPOSE_PADDING);
	const struct npuc_tensor *t = lower_t(l, c->weights), *d = lower_t(l, c->d);
	uint32_t dims[4];
	const int32_t *shape;
	int rc;

	if (t->rank != 4 || !t->count || (uint32_t)t->dims[3] != c->w.c ||
	    (t->scales > 1 && t->channel_dim))
		return lower_fail(l, EINVAL,
				  "weights '%.80s' must be [n][h][w][%u] with scales by "
				  "n",
				  t->name, c->w.c);
	rc = lower_ints(l, 0, false, 4, &shape, NULL);
	if (rc)
		return rc;
	c->n = (uint32_t)t->dims[0];
	c->w.y.k = (uint32_t)t->dims[1];
	c->w.x.k = (uint32_t)t->dims[2];
	if (d->rank != 4)
		return lower_fail(l, EINVAL,
				  "tensor '%.80s' has %u dimensions instead of 4",
				  d->name, d->rank);
	for (uint32_t i = 0; !rc && i < 4; i++)
		dims[i] = (uint32_t)shape[i];
	rc = lower_dims(l, c->d, 4, dims);
	if (!rc)
		rc = lower_dims(l, c->d, 4,
				(uint32_t[]){c->w.images, dims[1], dims[2], c->n});
	c->w.y.out = (uint32_t)d->dims[1];
	c->w.x.out = (uint32_t)d->dims[2];
	c->w.y.stride =
		(uint32_t)lower_option(l, OPTIONS_TRANSPOSE_CONV, TRANSPOSE_STRIDE_H, 0);
	c->w.x.stride =
		(uint32_t)lower_option(l, OPTIONS_TRANSPOSE_CONV, TRANSPOSE_STRIDE_W, 0);
	if (!rc && padding > CONV_VALID)
		rc = lower_fail(l, ENOTSUP,
				"padding %u is unknown; 0 is SAME, 1 is VALID", padding);
	if (!rc)
		rc = turned_axis(l, "rows", &c->w.y, padding);
	return rc ? rc : turned_axis(l, "columns", &c->w.x, padding);
}

int lower_transpose_conv(struct lowered *l)
{
	struct conv c = {.groups = 1};
	bool u8;
	int rc = lower_counts(l, 3, 4);

	c.act = lower_option_u8(l, OPTIONS_TRANSPOSE_CONV, TRANSPOSE_ACT);
	if (!rc)
		rc = conv_operands(l, &c, 2);
	if (rc)
		return rc;
	u8 = lower_t(l, c.a)->type == NPUC_UINT8;
	rc = conv_weights(l, &c, 1, u8);
	if (!rc)
		rc = conv_image(l, c.a, &c.w);
	if (!rc)
		rc = turned_geometry(l, &c);
	if (!rc)
		rc = conv_bias(l, &c, 3, u8);
	if (!rc)
		rc = conv_requant(l, &c, u8);
	if (rc)
		return rc;
	conv_describe(l, &c.w, c.n);
	lower_macs(l, lower_t(l, c.a)->count * c.w.y.k * c.w.x.k * c.n);
	for (uint32_t py = 0; !rc && py < c.w.y.stride; py++)
		for (uint32_t px = 0; !rc && px < c.w.x.stride; px++) {
			struct turned y = turn(&c.w.y, py), x = turn(&c.w.x, px);

			rc = turned_phase(l, &c, &y, &x);
		}
	return rc;
}

/* ---- RESIZE_BILINEAR -------------------------------------------------------------- */

/* An output of one direction lies between element from and the next, weight / 1024 of the
 * way; weight 0: on it. */
struct between {
	uint32_t from, weight;
};

/* Outputs that lie so, one like the other: their elements stride apart. */
struct blend {
	struct lattice at;
	struct between first;
	uint32_t stride;
};

#define UNIT 1024 /* TensorFlow Lite's fixed point */

/* As its ComputeInterpolationValuesInteger. */
static struct between between(const struct axis *a, uint32_t out, bool align, bool half)
{
	int64_t in = a->in, n = a->out, scale = (UNIT * in + n / 2) / n, at, low, high;

	if (align && n > 1)
		scale = (UNIT * (in - 1) + (n - 1) / 2) / (n - 1);
	at = out * scale + (half ? scale / 2 - UNIT / 2 : 0);
	low = at / UNIT > 0 ? at / UNIT : 0;
	high = (at + UNIT - 1) / UNIT;
	if (high > in - 1)
		high = in - 1;
	if (high <= low) /* both weights on one */
		return (struct between){(uint32_t)high, 0};
	return (struct between){(uint32_t)low, (uint32_t)(at - UNIT * low)};
}

/* A distance of outputs which is a whole number of TensorFlow Lite's fractions: the same
 * in its float32. */
static bool is_exact(const struct axis *a, bool align)
{
	bool corners = align && a->out > 1;

	return corners ? UNIT * (a->in - 1) % (a->out - 1) == 0
		       : UNIT * a->in % a->out == 0;
}

/* How many of the outputs from at->first on, step apart, are like it; their elements are
 * stride apart. */
static uint32_t alike(const struct between *b, uint32_t n, const bool *done,
		      uint32_t first, uint32_t step, uint32_t stride)
{
	uint32_t count = 1;

	for (uint64_t i = (uint64_t)first + step; i < n; i += step, count++)
		if (done[i] || b[i].weight != b[first].weight ||
		    b[i].from != b[first].from + count * stride)
			break;
	return count;
}

static struct blend take_blend(const struct between *b, uint32_t n, bool *done,
			       uint32_t first)
{
	struct blend best = {{first, 1, 1, false}, b[first], 1};

	for (uint32_t i = first + 1; i < n; i++) {
		uint32_t stride = b[i].from - b[first].from, count;

		if (done[i] || b[i].weight != b[first].weight ||
		    b[i].from < b[first].from ||
		    (stride > CONV_STRIDE_MAX && b[i].weight))
			continue;
		count = alike(b, n, done, first, i - first, stride);
		best = (struct blend){{first, i - first, count, !stride},
				      b[first],
				      stride ? stride : 1};
		break;
	}
	for (uint32_t i = 0; i < best.at.count; i++)
		done[best.at.first + i * best.at.step] = true;
	return best;
}

/* All outputs of one direction, by the way in which they blend. */
static int find_blends(struct lowered *l, const struct axis *a, bool align, bool half,
		       struct blend **blends, uint32_t *count)
{
	struct between *b = lower_own(l, (uint64_t)a->out * sizeof(*b));
	bool *done = lower_own(l, a->out);

	*blends = lower_own(l, (uint64_t)a->out * sizeof(**blends));
	*count = 0;
	if (!b || !done || !*blends)
		return -ENOMEM;
	for (uint32_t i = 0; i < a->out; i++)
		b[i] = between(a, i, align, half);
	for (uint32_t i = 0; i < a->out; i++)
		if (!done[i])
			(*blends)[(*count)++] = take_blend(b, a->out, done, i);
	return 0;
}

/* Weights of one and the next: w[0] and w[1] of 2^bits. */
static uint32_t reduce(uint32_t weight, uint32_t w[2])
{
	uint32_t bits = 10;

	w[0] = UNIT - weight;
	w[1] = weight;
	while (bits && !(w[0] & 1) && !(w[1] & 1)) {
		w[0] /= 2;
		w[1] /= 2;
		bits--;
	}
	return bits;
}

static bool is_on(const struct blend *y, const struct blend *x)
{
	return !y->first.weight && !x->first.weight;
}

/* Have all products of two weights 8 bits? */
static bool is_narrow(const struct blend *y, const struct blend *x)
{
	uint32_t wy[2], wx[2];

	reduce(y->first.weight, wy);
	reduce(x->first.weight, wx);
	return (wy[0] > wy[1] ? wy[0] : wy[1]) * (wx[0] > wx[1] ? wx[0] : wx[1]) <=
	       UINT8_MAX;
}

/* Products of both directions' weights, each channel alone; sums are rounded as
 * TensorFlow Lite does it, times 2^-bits, half away from zero. */
static int blend_weights(struct lowered *l, struct conv *c, const struct blend *y,
			 const struct blend *x)
{
	uint32_t wy[2], wx[2], bits = reduce(y->first.weight, wy);
	uint32_t kh = y->first.weight ? 2 : 1, kw = x->first.weight ? 2 : 1;
	uint8_t *weights = lower_own(l, (uint64_t)kh * kw * c->n), *to = weights;
	int32_t *mult = lower_own(l, 8);

	if (!weights || !mult)
		return -ENOMEM;
	bits += reduce(x->first.weight, wx);
	for (uint32_t n = 0; n < c->n; n++)
		for (uint32_t i = 0; i < kh * kw; i++)
			*to++ = (uint8_t)(wy[i / kw] * wx[i % kw]);
	mult[0] = INT32_MAX; /* exactly 1 for such small sums */
	mult[1] = -(int32_t)bits;
	c->data = (const int8_t *)weights;
	c->out.mult = mult;
	c->out.shift = mult + 1;
	return 0;
}

/* The same, of 2^20, a sum for each digit of the weights.  What makes those sums positive
 * is 2^17.  Of int16 each byte has its own: where is the one that counts. */
#define WIDE_BITS   20u
#define WIDE_DIGITS 3u
#define WIDE_ABOVE  (1 << 17)

static int wide_weights(struct lowered *l, struct conv *c, const struct blend *y,
			const struct blend *x, uint32_t where)
{
	uint32_t wy[2] = {UNIT - y->first.weight, y->first.weight};
	uint32_t wx[2] = {UNIT - x->first.weight, x->first.weight};
	uint32_t kh = y->first.weight ? 2 : 1, kw = x->first.weight ? 2 : 1;
	uint32_t element = c->wide ? 2 : 1;
	uint8_t *weights = lower_own(l, (uint64_t)kh * kw * c->n * element);
	int32_t *bias = lower_own(l, (uint64_t)c->n * sizeof(*bias));

	if (!weights || !bias)
		return -ENOMEM;
	for (uint32_t n = 0; n < c->n; n++) {
		uint8_t *to = weights + (size_t)n * kh * kw * element + where;

		for (uint32_t i = 0; i < kh * kw; i++)
			to[(size_t)i * element] = (uint8_t)(wy[i / kw] * wx[i % kw] >>
							    8 * (n % WIDE_DIGITS));
		bias[n] = WIDE_ABOVE;
	}
	c->data = (const int8_t *)weights;
	c->out = (struct hal_npu_requant){.bias = bias};
	return 0;
}

/* Of each pixel the sums of low bytes, then those of high ones. */
static int blend_wide(struct lowered *l, struct conv *c, const struct blend *y,
		      const struct blend *x)
{
	uint32_t bytes = c->n * WIDE_DIGITS * DIGITS_SUM;
	int rc = 0;

	c->n *= WIDE_DIGITS;
	for (uint32_t high = 0; !rc && high < (c->wide ? 2 : 1); high++) {
		struct conv part = *c;

		if (c->wide) {
			part.d_at = high * bytes;
			part.d_stride = 2 * bytes;
			part.flags = high ? HAL_NPU_B_UINT8
					  : HAL_NPU_A_UINT8 | HAL_NPU_B_UINT8;
		}
		rc = wide_weights(l, &part, y, x, high);
		if (!rc)
			rc = conv_images(l, &part);
	}
	return rc;
}

/* Outputs on elements that are farther apart than a stride may be: these alone are kept.
 */
static bool is_far(const struct blend *b)
{
	return b->stride > CONV_STRIDE_MAX;
}

static uint32_t kept(const struct axis *a, const struct blend *b)
{
	return is_far(b) ? (b->at.same ? 1 : b->at.count) : a->in - b->first.from;
}

/* The part of the images that the outputs see: what is before the first goes. */
static int crop(struct lowered *l, struct conv *c, const struct blend *y,
		const struct blend *x)
{
	struct window *w = &c->w;
	uint32_t high = kept(&w->y, y), wide = kept(&w->x, x), to;
	int64_t pixel = w->c, row = w->x.in * pixel;
	struct move m = {.a_at = y->first.from * row + x->first.from * pixel};
	int rc = lower_value(l, (uint64_t)w->images * high * wide * w->c, NULL, &to);

	move_add(&m, w->images, w->y.in * row, (int64_t)high * wide * pixel);
	move_add(&m, high, is_far(y) ? y->stride * row : row, wide * pixel);
	move_add(&m, wide, is_far(x) ? x->stride * pixel : pixel, pixel);
	move_add(&m, (uint64_t)pixel, 1, 1);
	if (!rc)
		rc = lower_move(l, c->a, to, 1, &m);
	c->a = to;
	w->y.in = high;
	w->x.in = wide;
	return rc;
}

/* Bytes of a pixel's sums. */
static uint32_t sums_bytes(const struct conv *c)
{
	return c->n * WIDE_DIGITS * DIGITS_SUM * (c->wide ? 2 : 1);
}

/* sums: c->d is their place. */
static int blend(struct lowered *l, const struct conv *c, const struct blend *y,
		 const struct blend *x, bool sums)
{
	uint32_t bytes = sums ? sums_bytes(c) : c->w.c; /* a pixel */
	struct conv part = *c;
	struct axis *py = &part.w.y, *px = &part.w.x;
	int rc = 0;

	if (y->first.from || x->first.from || is_far(y) || is_far(x))
		rc = crop(l, &part, y, x);
	*py = (struct axis){py->in,
			    y->at.same ? 1 : y->at.count,
			    y->first.weight ? 2 : 1,
			    is_far(y) ? 1 : y->stride,
			    1,
			    0};
	*px = (struct axis){px->in,
			    x->at.same ? 1 : x->at.count,
			    x->first.weight ? 2 : 1,
			    is_far(x) ? 1 : x->stride,
			    1,
			    0};
	if (!rc)
		rc = lower_value(l, (uint64_t)part.w.images * py->out * px->out * bytes,
				 NULL, &part.d);
	if (!rc && sums)
		rc = blend_wide(l, &part, y, x);
	else if (!rc)
		rc = blend_weights(l, &part, y, x);
	if (!rc && !sums)
		rc = conv_images(l, &part);
	return rc ? rc
		  : scatter(l, part.d, c->d, c->w.images, &y->at, c->w.y.out, &x->at,
			    c->w.x.out, bytes);
}

/* All sums become elements: the digits of a number, and 2^31, which is rounded. */
static int round_sums(struct lowered *l, uint32_t rows, uint32_t sums, uint32_t d)
{
	enum npuc_type type = lower_t(l, d)->type;
	uint32_t above = (UINT32_C(1) << 31) - WIDE_ABOVE * (1u + 256 + 65536);
	struct digits_step join = {
		.rows = rows, .bytes = WIDE_DIGITS * DIGITS_SUM, .columns = 4};
	int rc;

	for (uint32_t k = 0; k < 4; k++) {
		for (uint32_t i = 0; i <= k && i < WIDE_DIGITS; i++)
			join.weights[i * DIGITS_SUM + k - i][k] = 1;
		join.bias[k] = (int32_t)(above >> 8 * k & 255);
	}
	rc = digits_new(l, sums, &join, &sums);
	if (!rc)
		rc = digits_signed(l, rows, 4, &sums);
	if (!rc)
		rc = digits_shift(l, rows, WIDE_BITS, -quant_min(type), &sums);
	return rc ? rc : digits_narrow(l, rows, sums, type, d);
}

/* The same of int16: five digits, above 2^39. */
static int round_sums16(struct lowered *l, const struct conv *c, uint32_t pixels,
			uint32_t sums, uint32_t d)
{
	struct digits_each join = {.pixels = pixels,
				   .numbers = c->n,
				   .parts = 2,
				   .bytes = WIDE_DIGITS * DIGITS_SUM,
				   .columns = 5};
	uint64_t above = UINT64_C(257) * WIDE_ABOVE * (1 + 256 + 65536);
	struct digits_int16 y = {.rows = pixels * c->n,
				 .digits = digits_off(WIDE_BITS) + 3,
				 .guards = 1,
				 .min = INT16_MIN,
				 .max = INT16_MAX};
	uint8_t bias[DIGITS_MAX] = {0};
	int rc = digits_each_new(l, &join);

	digits_add(bias, join.columns, 1, 39);
	digits_sub(bias, join.columns, above, 0);
	for (uint32_t n = 0; !rc && n < c->n; n++) {
		for (uint32_t i = 0; i < 2 * join.bytes; i++) {
			uint32_t high = i / join.bytes, byte = i % join.bytes;
			uint32_t k = high + byte / DIGITS_SUM + byte % DIGITS_SUM;

			if (k < join.columns)
				*digits_each_weight(&join, n, k, high, byte) = 1;
		}
		digits_each_bias(&join, n, bias);
	}
	if (!rc)
		rc = digits_each(l, sums, &join, &sums);
	if (!rc)
		rc = digits_signed_bytes(l, y.rows, 5, 5, &sums);
	if (!rc)
		rc = digits_shifted(l, y.rows, 5, WIDE_BITS, 0, &sums);
	return rc ? rc : digits_to_int16(l, sums, &y, d);
}

/* Outputs that lie on elements in both directions: no arithmetic. */
static int pick(struct lowered *l, const struct conv *c, const struct blend *y,
		const struct blend *x)
{
	const struct window *w = &c->w;
	int64_t pixel = w->c, row = pixel * w->x.in;
	struct move m = {.a_at = y->first.from * row + x->first.from * pixel,
			 .d_at = ((int64_t)y->at.first * w->x.out + x->at.first) * pixel};

	move_add(&m, w->images, row * w->y.in, pixel * w->x.out * w->y.out);
	move_add(&m, y->at.count, y->at.same ? 0 : y->stride * row,
		 (int64_t)y->at.step * w->x.out * pixel);
	move_add(&m, x->at.count, x->at.same ? 0 : x->stride * pixel, x->at.step * pixel);
	move_add(&m, w->c, 1, 1);
	return lower_move(l, c->a, c->d, 1, &m);
}

static int blend_all(struct lowered *l, const struct conv *c, bool align, bool half)
{
	uint64_t elements = lower_t(l, c->d)->count, pixels = elements / c->n;
	struct conv to = *c;
	struct blend *ys, *xs;
	uint32_t y_count, x_count;
	bool wide = false;
	int rc = find_blends(l, &c->w.y, align, half, &ys, &y_count);

	if (!rc)
		rc = find_blends(l, &c->w.x, align, half, &xs, &x_count);
	if (!rc && (uint64_t)y_count * x_count > PHASES_MAX)
		rc = lower_fail(l, ENOTSUP,
				"%llu kinds of outputs between elements; at most %u are "
				"supported",
				(unsigned long long)y_count * x_count, PHASES_MAX);
	for (uint32_t i = 0; !rc && i < y_count; i++)
		for (uint32_t k = 0; k < x_count; k++)
			wide |= c->wide ? !is_on(&ys[i], &xs[k])
					: !is_narrow(&ys[i], &xs[k]);
	if (!rc && lower_t(l, c->d)->type == NPUC_UINT8 &&
	    (wide || !is_exact(&c->w.y, align) || !is_exact(&c->w.x, align)))
		rc = lower_fail(l, ENOTSUP,
				"uint8 is not compiled for this ratio, for which "
				"TensorFlow Lite uses float32 weights; use int8");
	if (!rc && wide)
		rc = lower_value(l, pixels * sums_bytes(c), NULL, &to.d);
	for (uint32_t i = 0; !rc && i < y_count; i++)
		for (uint32_t k = 0; !rc && k < x_count; k++)
			rc = is_on(&ys[i], &xs[k]) && !wide
				     ? pick(l, c, &ys[i], &xs[k])
				     : blend(l, &to, &ys[i], &xs[k], wide);
	if (rc || !wide)
		return rc;
	return c->wide ? round_sums16(l, c, (uint32_t)pixels, to.d, c->d)
		       : round_sums(l, (uint32_t)elements, to.d, c->d);
}

int lower_resize_bilinear(struct lowered *l)
{
	bool align = lower_option_u8(l, OPTIONS_RESIZE_BILINEAR, RESIZE_ALIGN_CORNERS);
	bool half = lower_option_u8(l, OPTIONS_RESIZE_BILINEAR, RESIZE_HALF_PIXEL);
	const int32_t *size;
	struct conv c = {0};
	int rc = lower_counts(l, 2, 2);

	if (!rc)
		rc = conv_operands(l, &c, 0);
	if (!rc)
		rc = lower_same_quant(l, c.a, c.d);
	if (!rc)
		rc = conv_image(l, c.a, &c.w);
	if (!rc)
		rc = lower_ints(l, 1, false, 2, &size, NULL);
	if (rc)
		return rc;
	if (size[0] < 1 || size[1] < 1 || (align && half))
		return lower_fail(
			l, EINVAL, "resizing to %d x %d%s is invalid", size[0], size[1],
			align && half ? " with both aligned corners and half pixels"
				      : "");
	c.n = c.groups = c.w.c;
	c.w.y.out = (uint32_t)size[0];
	c.w.x.out = (uint32_t)size[1];
	c.w.y.k = c.w.x.k = 2;
	c.flags = lower_u8(l, c.a, HAL_NPU_A_UINT8 | HAL_NPU_D_UINT8) | HAL_NPU_B_UINT8;
	c.out.min = quant_min(lower_t(l, c.a)->type);
	c.out.max = quant_max(lower_t(l, c.a)->type);
	rc = lower_dims(l, c.d, 4, (uint32_t[]){c.w.images, c.w.y.out, c.w.x.out, c.w.c});
	conv_describe(l, &c.w, c.n);
	if (c.wide)
		c.w.c *= 2; /* bytes */
	return rc ? rc : blend_all(l, &c, align, half);
}
