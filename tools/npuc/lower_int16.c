/* SPDX-License-Identifier: Apache-2.0 */
/* lower_int16.c - int16 activations with int8 weights.
 *
 * Of an activation the low byte is uint8 and the high one int8.  Two convolutions over
 * the bytes, each with weights of 0 where the other one's byte lies, give S = 256 H + L;
 * their biases make both positive, above a constant that all channels have in common.
 * Requantization is a product with a constant of each channel, and digits that are left
 * out. */
#include "lower_int16.h"

#include <errno.h>

#include "lower_digits.h"

#define ABOVE     38                  /* 256 H + L is above 2^38 */
#define BIAS_MAX  (INT64_C(1) << 37)  /* of S, so that H and L are positive int32 */
#define NEAR_MAX  (UINT64_C(1) << 22) /* of results that one guard digit holds */
#define FAR_MAX   (UINT64_C(1) << 30) /* and two */
#define SHIFT_MAX 7                   /* of a multiplier, in TensorFlow Lite, too */

/* ---- sums -------------------------------------------------------------------------- */

int int16_bias(struct lowered *l, struct conv *c, uint32_t number)
{
	const struct model_op *op = lower_op(l);
	const struct npuc_tensor *t;
	uint32_t tensor = NPUC_NONE, width;
	int64_t *bias;

	c->bias = NULL;
	if (number < op->input_count)
		tensor = op->inputs[number];
	c->int32 = tensor == NPUC_NONE ? op->code == NPUC_FULLY_CONNECTED
				       : lower_t(l, tensor)->type == NPUC_INT32;
	if (tensor == NPUC_NONE)
		return 0;
	t = lower_t(l, tensor);
	if ((t->type != NPUC_INT32 && t->type != NPUC_INT64) ||
	    l->m->tensors[tensor].unusable)
		return lower_fail(l, ENOTSUP, "tensor '%.80s' must be int32 or int64",
				  t->name);
	if (!l->values[tensor].data)
		return lower_fail(l, ENOTSUP, "tensor '%.80s' must be constant", t->name);
	if (t->count != c->n)
		return lower_fail(l, EINVAL, "tensor '%.80s' has %llu elements, not %u",
				  t->name, (unsigned long long)t->count, c->n);
	bias = lower_own(l, c->n * sizeof(*bias));
	if (!bias)
		return -ENOMEM;
	width = npuc_type_bytes(t->type);
	for (uint32_t n = 0; n < c->n; n++) {
		const uint8_t *data = l->values[tensor].data;

		bias[n] = lower_number(data + (size_t)n * width, width);
		if (bias[n] >= BIAS_MAX || bias[n] <= -BIAS_MAX)
			return lower_fail(l, ENOTSUP,
					  "bias '%.80s': %lld of channel %u; less than "
					  "2^37 in magnitude",
					  t->name, (long long)bias[n], n);
	}
	c->bias = bias;
	return 0;
}

/* Sums over one of the bytes of each activation. */
static int byte_sums(struct lowered *l, const struct conv *c, bool high,
		     const int32_t *bias, uint32_t d)
{
	uint64_t taps = (uint64_t)c->w.y.k * c->w.x.k * (c->w.c / c->groups);
	int8_t *weights = lower_own(l, taps * c->n * 2);
	struct conv bytes = *c;

	if (!weights)
		return -ENOMEM;
	for (uint64_t i = 0; i < taps * c->n; i++)
		weights[2 * i + high] = c->data[i];
	bytes.data = weights;
	bytes.w.c *= 2;
	bytes.d = d;
	bytes.d_at = high ? c->n * DIGITS_SUM : 0;
	bytes.d_stride = 2 * c->n * DIGITS_SUM;
	bytes.out = (struct hal_npu_requant){.bias = bias};
	bytes.flags = high ? 0 : HAL_NPU_A_UINT8;
	return conv_images(l, &bytes);
}

/* What a channel's weights come to. */
struct weight_sums {
	int64_t above, below; /* of those above and below 0, in magnitude */
};

static struct weight_sums add_weights(const struct conv *c, uint32_t n)
{
	uint64_t taps = (uint64_t)c->w.y.k * c->w.x.k * (c->w.c / c->groups);
	struct weight_sums s = {0, 0};

	for (uint64_t i = 0; i < taps; i++) {
		int32_t w = quant_value((uint8_t)c->data[n * taps + i], NPUC_INT8);

		*(w < 0 ? &s.below : &s.above) += w < 0 ? -w : w;
	}
	return s;
}

/* Of each pixel all L, then all H. */
static int all_sums(struct lowered *l, const struct conv *c, uint64_t pixels, uint32_t *d)
{
	int32_t *low = lower_own(l, 2 * (uint64_t)c->n * sizeof(*low)), *high;
	int rc = lower_value(l, pixels * c->n * 2 * DIGITS_SUM, NULL, d);

	if (rc || !low)
		return rc ? rc : -ENOMEM;
	high = low + c->n;
	for (uint32_t n = 0; n < c->n; n++) {
		int64_t bias = (INT64_C(1) << ABOVE) + (c->bias ? c->bias[n] : 0);
		int64_t least = 255 * add_weights(c, n).below;

		least += (bias - least) & 255;
		low[n] = (int32_t)least;
		high[n] = (int32_t)((bias - least) / 256);
	}
	rc = byte_sums(l, c, false, low, *d);
	return rc ? rc : byte_sums(l, c, true, high, *d);
}

/* ---- requantization of int64 sums -------------------------------------------------- */

/* Of a channel: S * mult / 2^right, rounded half up. */
struct factor {
	uint32_t mult, right;
};

/* TensorFlow Lite leaves 15 bits of the multiplier. */
static struct factor factor_of(struct quant_mult q)
{
	struct factor f = {0x7FFF, (uint32_t)(15 - q.shift)};

	if (q.mult < 0x7FFF0000)
		f.mult = ((uint32_t)q.mult + (1u << 15)) >> 16;
	return f;
}

static struct quant_mult multiplier_of(const struct conv *c, uint32_t n)
{
	uint32_t i = c->out.per_channel ? n : 0;

	return (struct quant_mult){c->out.mult[i], c->out.shift[i]};
}

/* How many digits results have that are fractions, and above the two that are wanted. */
struct digit_plan {
	uint32_t off, guards;
};

static int plan_digits(struct lowered *l, const struct conv *c, struct digit_plan *p)
{
	uint64_t largest = 0;
	uint32_t right = 0;

	for (uint32_t n = 0; n < c->n; n++) {
		struct quant_mult q = multiplier_of(c, n);
		struct weight_sums s = add_weights(c, n);
		int64_t bias = c->bias ? c->bias[n] : 0;
		uint64_t sum = (uint64_t)(s.above + s.below) * 32768 +
			       (uint64_t)(bias < 0 ? -bias : bias);
		struct factor f;

		if (q.shift > SHIFT_MAX)
			return lower_fail(l, ENOTSUP,
					  "channel %u: a multiplier of 2^%d or more", n,
					  SHIFT_MAX);
		f = factor_of(q);
		sum = (sum * f.mult >> f.right) + 1;
		largest = sum > largest ? sum : largest;
		right = f.right > right ? f.right : right;
	}
	if (largest >= FAR_MAX)
		return lower_fail(l, ENOTSUP,
				  "sums may come to %llu steps of the result; less than "
				  "2^30",
				  (unsigned long long)largest);
	p->off = (right + 7) / 8;
	p->guards = largest < NEAR_MAX ? 1 : 2;
	return 0;
}

/* S becomes digits of y = result - least, and 128 in each guard. */
static int product(struct lowered *l, const struct conv *c, uint64_t pixels,
		   struct digit_plan p, uint32_t *v)
{
	struct digits_each x = {.pixels = pixels,
				.numbers = c->n,
				.parts = 2,
				.bytes = DIGITS_SUM,
				.columns = p.off + 2 + p.guards};
	int rc = digits_each_new(l, &x);

	for (uint32_t n = 0; !rc && n < c->n; n++) {
		struct factor f = factor_of(multiplier_of(c, n));
		uint32_t up = 8 * p.off - f.right;
		uint8_t bias[DIGITS_MAX] = {0};

		/* Part 1, H, counts 256. */
		digits_each_times(&x, n, 0, 0, f.mult, up);
		digits_each_times(&x, n, 1, 8, f.mult, up);
		digits_add(bias, x.columns, 1, 8 * p.off - 1);
		digits_sub(bias, x.columns, f.mult, up + ABOVE);
		if (c->out.min < 0)
			digits_add(bias, x.columns, (uint64_t) - (int64_t)c->out.min,
				   8 * p.off);
		else
			digits_sub(bias, x.columns, (uint64_t)c->out.min, 8 * p.off);
		for (uint32_t g = 0; g < p.guards; g++)
			digits_add(bias, x.columns, 128, 8 * (p.off + 2 + g));
		digits_each_bias(&x, n, bias);
	}
	return rc ? rc : digits_each(l, *v, &x, v);
}

static int requantize(struct lowered *l, const struct conv *c, uint64_t pixels,
		      uint32_t v)
{
	struct digits_int16 y = {.min = c->out.min, .max = c->out.max};
	struct digit_plan p = {0, 0};
	int rc = plan_digits(l, c, &p);

	if (!rc)
		rc = product(l, c, pixels, p, &v);
	if (rc)
		return rc;
	y.rows = (uint32_t)(pixels * c->n);
	y.digits = p.off + 2 + p.guards;
	y.guards = p.guards;
	rc = digits_carry(l, y.rows, y.digits, y.digits - 1, &v);
	return rc ? rc : digits_to_int16(l, v, &y, c->d);
}

/* ---- layers ------------------------------------------------------------------------ */

int int16_conv(struct lowered *l, struct conv *c)
{
	uint64_t pixels = (uint64_t)c->w.images * c->w.y.out * c->w.x.out;
	unsigned long long results = pixels * c->n;
	uint32_t sums;
	int rc;

	if (results > INT32_MAX)
		return lower_fail(l, ENOTSUP, "%llu results; less than 2^31", results);
	if (c->int32)
		return lower_fail(l, ENOTSUP, "sums of int32: the bias must be int64");
	rc = all_sums(l, c, pixels, &sums);
	return rc ? rc : requantize(l, c, pixels, sums);
}
