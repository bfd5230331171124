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
#include <math.h>

#include "lower_digits.h"
#include "lower_once.h"
#include "lower_wide.h"

/* Kinds of union BuiltinOptions, and fields of their tables. */
enum {
	OPTIONS_CONV = 1,
	CONV_BIAS = 6,
	OPTIONS_FULLY_CONNECTED = 8,
	FULLY_CONNECTED_BIAS = 4,
	OPTIONS_TRANSPOSE_CONV = 49,
	TRANSPOSE_BIAS = 4,
};

#define ABOVE     (INT16_PART_ABOVE + 8) /* 256 H + L is above 2^38 */
#define BIAS_MAX  (INT64_C(1) << 37)     /* of S, so that H and L are positive int32 */
#define NEAR_MAX  (UINT64_C(1) << 22)    /* of results that one guard digit holds */
#define FAR_MAX   (UINT64_C(1) << 30)    /* and two */
#define BESIDE    (4 + 2 * DIGITS_SUM)   /* bytes of a row of two numbers */
#define SHIFT_MAX 7                      /* of a multiplier, in TensorFlow Lite, too */

_Static_assert(QUANT_ONCE_RIGHT / 8 + 4 <= DIGITS_MAX,
	       "fractions, a result's two digits and two guards");

/* ---- sums -------------------------------------------------------------------------- */

/* Where options say of which type the bias is; 0: as what it is. */
static uint32_t declared_bias(struct lowered *l)
{
	switch (lower_op(l)->code) {
	case NPUC_CONV_2D:
		return lower_option_u8(l, OPTIONS_CONV, CONV_BIAS);
	case NPUC_FULLY_CONNECTED:
		return lower_option_u8(l, OPTIONS_FULLY_CONNECTED, FULLY_CONNECTED_BIAS);
	case NPUC_TRANSPOSE_CONV:
		return lower_option_u8(l, OPTIONS_TRANSPOSE_CONV, TRANSPOSE_BIAS);
	default:
		return 0;
	}
}

/* Set how wide sums are: of 2.14 by the bias, and by the operator where there is none;
 * since then by the options.  TensorFlow Lite reads a bias of int32 as int64 where they
 * do not say so; here it is int32. */
static int choose_sums(struct lowered *l, struct conv *c, uint32_t bias)
{
	uint32_t code = lower_op(l)->code, declared = declared_bias(l);
	bool none = bias == NPUC_NONE;
	enum npuc_type type = none ? NPUC_INT64 : lower_t(l, bias)->type;

	if (l->reference == NPUC_REFERENCE_2_14) {
		c->int32 =
			none ? code == NPUC_FULLY_CONNECTED || code == NPUC_TRANSPOSE_CONV
			     : type == NPUC_INT32;
		return 0;
	}
	if (declared && ((declared != NPUC_INT32 && declared != NPUC_INT64) ||
			 (!none && declared != type)))
		return lower_fail(l, EINVAL,
				  "quantized_bias_type is %s, but the bias is %s",
				  npuc_type_name(declared),
				  none ? "missing" : npuc_type_name(type));
	c->int32 = declared == NPUC_INT32 || type == NPUC_INT32;
	return 0;
}

int int16_bias(struct lowered *l, struct conv *c, uint32_t number)
{
	const struct model_op *op = lower_op(l);
	const struct npuc_tensor *t;
	uint32_t tensor = NPUC_NONE, width;
	int64_t *bias;
	int rc;

	c->bias = NULL;
	if (number < op->input_count)
		tensor = op->inputs[number];
	rc = choose_sums(l, c, tensor);
	if (rc || tensor == NPUC_NONE)
		return rc;
	t = lower_t(l, tensor);
	if ((t->type != NPUC_INT32 && t->type != NPUC_INT64) ||
	    l->m->tensors[tensor].unusable)
		return lower_fail(l, ENOTSUP, "tensor '%.80s' must be int32 or int64",
				  t->name);
	if (!l->values[tensor].data)
		return lower_fail(l, ENOTSUP, "tensor '%.80s' must be constant", t->name);
	if (t->count != c->n)
		return lower_fail(l, EINVAL,
				  "tensor '%.80s' has %llu elements instead of %u",
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
					  "bias '%.80s': %lld of channel %u; its "
					  "magnitude must be less than 2^37",
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

static uint64_t largest_sum(const struct conv *c, uint32_t n)
{
	struct weight_sums s = add_weights(c, n);
	int64_t bias = c->bias ? c->bias[n] : 0;

	return (uint64_t)(s.above + s.below) * 32768 +
	       (uint64_t)(bias < 0 ? -bias : bias);
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

static struct quant_mult multiplier_of(const struct hal_npu_requant *out, uint32_t n)
{
	uint32_t i = out->per_channel ? n : 0;

	return (struct quant_mult){out->mult[i], out->shift[i]};
}

/* Of a channel: S * mult / 2^right, rounded half up.  TensorFlow Lite leaves 15 bits of
 * the multiplier. */
static struct quant_once factor_of(const struct int16_parts *s, uint32_t n)
{
	struct quant_mult q;

	if (s->once)
		return s->once[n];
	q = multiplier_of(&s->out, n);
	return (struct quant_once){
		q.mult < 0x7FFF0000 ? ((uint32_t)q.mult + (1u << 15)) >> 16 : 0x7FFF,
		(uint32_t)(15 - q.shift)};
}

/* How many digits results have that are fractions, and above the two that are wanted. */
struct digit_plan {
	uint32_t off, guards;
};

static int plan_digits(struct lowered *l, const struct int16_parts *s,
		       struct digit_plan *p)
{
	uint64_t largest = 0;
	uint32_t right = 0;

	for (uint32_t n = 0; n < s->numbers; n++) {
		struct quant_once f;
		uint64_t sum;
		double result;

		if (!s->once && multiplier_of(&s->out, n).shift > SHIFT_MAX)
			return lower_fail(l, ENOTSUP,
					  "channel %u has a multiplier of 2^%d or more",
					  n, SHIFT_MAX);
		f = factor_of(s, n);
		result = ldexp((double)s->largest[n] * (double)f.mult, -(int)f.right);
		sum = result < 1e18 ? (uint64_t)result + 1 : UINT64_MAX;
		largest = sum > largest ? sum : largest;
		right = f.right > right ? f.right : right;
	}
	if (largest >= FAR_MAX)
		return lower_fail(l, ENOTSUP,
				  "sums may come to %llu steps of the result; less than "
				  "2^30 are supported",
				  (unsigned long long)largest);
	p->off = (right + 7) / 8;
	p->guards = largest < NEAR_MAX ? 1 : 2;
	return 0;
}

/* What a result is above: its least is 0, and guards are 128. */
static void place_result(uint8_t *bias, uint32_t columns, struct digit_plan p,
			 int32_t least)
{
	if (least < 0)
		digits_add(bias, columns, (uint64_t) - (int64_t)least, 8 * p.off);
	else
		digits_sub(bias, columns, (uint64_t)least, 8 * p.off);
	for (uint32_t g = 0; g < p.guards; g++)
		digits_add(bias, columns, 128, 8 * (p.off + 2 + g));
}

/* Of such digits: carries, clamp, int16. */
static int finish(struct lowered *l, uint32_t v, uint32_t rows, struct digit_plan p,
		  int32_t min, int32_t max, uint32_t d)
{
	struct digits_int16 y = {.rows = rows,
				 .digits = p.off + 2 + p.guards,
				 .guards = p.guards,
				 .min = min,
				 .max = max};
	int rc = digits_carry(l, rows, y.digits, y.digits - 1, &v);

	return rc ? rc : digits_to_int16(l, v, &y, d);
}

/* S becomes digits of y = result - least. */
static int product(struct lowered *l, const struct int16_parts *s, struct digit_plan p,
		   uint32_t *v)
{
	uint32_t step = s->carried ? DIGITS_SUM : 1;
	struct digits_each x = {.pixels = s->pixels,
				.numbers = s->numbers,
				.parts = s->parts,
				.bytes = 4 * step,
				.step = step,
				.columns = p.off + 2 + p.guards};
	int rc = digits_each_new(l, &x);

	for (uint32_t n = 0; !rc && n < s->numbers; n++) {
		struct quant_once f = factor_of(s, n);
		uint32_t up = 8 * p.off - f.right;
		uint8_t bias[DIGITS_MAX] = {0};

		for (uint32_t i = 0; i < s->parts; i++) {
			digits_each_times(&x, n, i, s->at[i], f.mult, up);
			if (s->at[i])
				digits_sub(bias, x.columns, f.mult,
					   up + INT16_PART_ABOVE + s->at[i]);
		}
		if (s->above)
			digits_sub(bias, x.columns, f.mult, up + s->above);
		digits_add(bias, x.columns, 1, 8 * p.off - 1);
		place_result(bias, x.columns, p, s->out.min - s->add);
		digits_each_bias(&x, n, bias);
	}
	return rc ? rc : digits_each(l, s->v, &x, v);
}

int int16_requantize(struct lowered *l, const struct int16_parts *s, uint32_t d)
{
	struct digit_plan p = {0, 0};
	uint32_t v;
	int rc = plan_digits(l, s, &p);

	if (!rc)
		rc = product(l, s, p, &v);
	return rc ? rc
		  : finish(l, v, (uint32_t)(s->pixels * s->numbers), p, s->out.min,
			   s->out.max, d);
}

static int requantize(struct lowered *l, const struct conv *c, uint64_t pixels,
		      uint32_t v)
{
	uint64_t *largest = lower_own(l, c->n * sizeof(*largest));
	struct int16_parts s = {.pixels = pixels,
				.numbers = c->n,
				.v = v,
				.parts = 2,
				.at = {0, 8},
				.largest = largest,
				.out = c->out};
	struct quant_once *q = NULL;
	int rc = 0;

	if (!largest)
		return -ENOMEM;
	for (uint32_t n = 0; n < c->n; n++)
		largest[n] = largest_sum(c, n);
	if (c->exact) {
		rc = once_digits(l, c, largest, &q);
		s.once = q;
	}
	return rc ? rc : int16_requantize(l, &s, c->d);
}

/* ---- int32, rounded twice ------------------------------------------------------------ */

int int16_rescaling(struct lowered *l, struct int16_rescaling *r)
{
	r->offset = lower_own(l, r->numbers * sizeof(*r->offset));
	r->largest = lower_own(l, r->numbers * sizeof(*r->largest));
	r->q = lower_own(l, r->numbers * sizeof(*r->q));
	return r->offset && r->largest && r->q ? 0 : -ENOMEM;
}

static int plan_rescaling(struct lowered *l, const struct int16_rescaling *r,
			  struct digit_plan *p)
{
	uint64_t largest = 0;
	int32_t right = 0;

	for (uint32_t n = 0; n < r->numbers; n++) {
		uint32_t left = r->q[n].shift > 0 ? (uint32_t)r->q[n].shift : 0;
		uint64_t x = r->largest[n];

		if (left && (left > 30 || x << left >= UINT64_C(1) << 31))
			return lower_fail(l, ENOTSUP,
					  "values up to %llu, shifted left by %u, do not "
					  "fit into 32 bits",
					  (unsigned long long)x, left);
		if (x > UINT64_C(1) << 31)
			x = UINT64_C(1) << 31; /* it wraps in TensorFlow Lite, too */
		x = (x << left) * (uint64_t)r->q[n].mult >> 31;
		if (r->q[n].shift < 0) {
			x >>= -r->q[n].shift;
			right = right > -r->q[n].shift ? right : -r->q[n].shift;
		}
		largest = x > largest ? x : largest;
	}
	if (largest >= FAR_MAX - 1)
		return lower_fail(
			l, ENOTSUP,
			"results may come to %llu steps; less than 2^30 are supported",
			(unsigned long long)largest);
	p->off = ((uint32_t)right + 7) / 8;
	p->guards = largest < NEAR_MAX - 1 ? 1 : 2;
	return 0;
}

static int rescaling_product(struct lowered *l, const struct int16_rescaling *r,
			     uint32_t *v)
{
	uint32_t step = r->sums ? 1 : DIGITS_SUM;
	struct digits_each x = {.pixels = r->pixels,
				.numbers = r->numbers,
				.parts = 1,
				.bytes = r->digits * step,
				.step = step,
				.columns = 8};
	int rc = digits_each_new(l, &x);

	for (uint32_t n = 0; !rc && n < r->numbers; n++) {
		uint32_t mult = (uint32_t)r->q[n].mult;
		uint32_t left = r->q[n].shift > 0 ? (uint32_t)r->q[n].shift : 0;
		uint32_t up = 1 + r->left + left;
		uint8_t bias[DIGITS_MAX] = {0};

		/* Times 2^32, and half of that; 2^31 above. */
		digits_each_times(&x, n, 0, 0, mult, up);
		digits_add(bias, 8, 1, 31);
		digits_add(bias, 8, 1, 63);
		digits_sub(bias, 8, (uint64_t)mult * r->offset[n], up);
		digits_each_bias(&x, n, bias);
	}
	if (!rc)
		rc = digits_each(l, r->v, &x, v);
	return rc ? rc : digits_signed(l, (uint32_t)(r->pixels * r->numbers), 8, v);
}

/* Without guards four digits are left, above 2^31. */
static int rescaling_shift(struct lowered *l, const struct int16_rescaling *r,
			   struct digit_plan p, uint32_t *v)
{
	struct digits_each x = {.pixels = r->pixels,
				.numbers = r->numbers,
				.parts = 1,
				.bytes = 5,
				.step = 1,
				.columns = p.off + (p.guards ? 2 + p.guards : 4)};
	int rc = digits_each_new(l, &x);

	for (uint32_t n = 0; !rc && n < r->numbers; n++) {
		uint32_t right = r->q[n].shift < 0 ? (uint32_t)-r->q[n].shift : 0;
		uint32_t up = 8 * p.off - right;
		uint8_t bias[DIGITS_MAX] = {0};

		digits_each_times(&x, n, 0, 0, 1, up);
		/* A digit of 255 everywhere is -1: half less where x is negative. */
		for (uint32_t k = 0; k < x.columns; k++)
			*digits_each_weight(&x, n, k, 0, 4) =
				(uint8_t)(right && k >= up / 8 ? 1u << up % 8 : 0);
		if (right)
			digits_add(bias, x.columns, 1, 8 * p.off - 1);
		digits_sub(bias, x.columns, 1, 31 + up);
		if (p.guards)
			place_result(bias, x.columns, p, r->min - r->add);
		else
			digits_add(bias, x.columns, 128, 8 * (p.off + 3));
		digits_each_bias(&x, n, bias);
	}
	return rc ? rc : digits_each(l, *v, &x, v);
}

int int16_rescale32(struct lowered *l, const struct int16_rescaling *r, uint32_t d)
{
	struct digit_plan p = {0, 0};
	uint32_t v;
	int rc = plan_rescaling(l, r, &p);

	if (!rc)
		rc = rescaling_product(l, r, &v);
	if (!rc)
		rc = rescaling_shift(l, r, p, &v);
	return rc ? rc
		  : finish(l, v, (uint32_t)(r->pixels * r->numbers), p, r->min, r->max,
			   d);
}

/* The four digits that a row of sums has above off as bytes, and a number of 16 bits as
 * digits above 2^15, beside each other. */
static int beside(struct lowered *l, uint32_t rows, uint32_t v, uint32_t off, uint32_t a,
		  uint32_t d)
{
	struct digits_step far = {
		.rows = rows, .bytes = (off + 4) * DIGITS_SUM, .columns = 4};
	struct digits_step near = {.rows = rows,
				   .bytes = 2,
				   .columns = 2,
				   .weights = {{1, 0}, {0, 1}},
				   .bias = {0, 128}};
	int rc;

	for (uint32_t k = 0; k < 4; k++)
		far.weights[(size_t)(off + k) * DIGITS_SUM][k] = 1;
	digits_as_bytes(&far);
	rc = digits_step_at(l, v, &far, d, 0, BESIDE);
	return rc ? rc : digits_step_at(l, a, &near, d, 4, BESIDE);
}

int int16_rescale_onto(struct lowered *l, const struct int16_rescaling *r, uint32_t a,
		       uint32_t d)
{
	uint32_t rows = (uint32_t)(r->pixels * r->numbers), v, both;
	struct digit_plan p = {0, 0};
	/* Numbers are above 2^31 and 2^15; guards are 128. */
	struct digits_step sum = {.rows = rows,
				  .bytes = BESIDE,
				  .columns = 4,
				  .weights = {[0] = {1, 0, 0, 0},
					      [1] = {0, 1, 0, 0},
					      [2] = {0, 0, 1, 0},
					      [3] = {0, 0, 0, 1},
					      [4] = {1, 0, 0, 0},
					      [4 + DIGITS_SUM] = {0, 1, 0, 0}},
				  .bias = {0, 0, 128, 0}};
	struct digits_int16 y = {rows, 4, 2, INT16_MIN, INT16_MAX};
	int rc = plan_rescaling(l, r, &p);

	p.guards = 0;
	if (!rc)
		rc = rescaling_product(l, r, &v);
	if (!rc)
		rc = rescaling_shift(l, r, p, &v);
	if (!rc)
		rc = digits_carry(l, rows, p.off + 4, p.off + 3, &v);
	if (!rc)
		rc = lower_value(l, (uint64_t)rows * BESIDE, NULL, &both);
	if (!rc)
		rc = beside(l, rows, v, p.off, a, both);
	if (!rc)
		rc = digits_new(l, both, &sum, &v);
	if (!rc)
		rc = digits_carry(l, rows, 4, 3, &v);
	return rc ? rc : digits_to_int16(l, v, &y, d);
}

/* One of two operands as digits of itself, or of its negative, beside the other's. */
static int open_side(struct lowered *l, uint32_t a, uint32_t rows, uint32_t side,
		     bool negative, uint32_t d)
{
	struct digits_step x = {.rows = rows,
				.bytes = 2,
				.columns = 2,
				.minus = true,
				.bias = {negative ? 255 : 0, negative ? 127 : 128}};

	for (uint32_t k = 0; k < 2; k++)
		x.weights[k][k] = negative ? (uint8_t)-1 : 1;
	return digits_step_at(l, a, &x, d, side * 2 * DIGITS_SUM, 4 * DIGITS_SUM);
}

int int16_sum(struct lowered *l, const uint32_t v[3], uint32_t rows, bool minus,
	      int32_t min, int32_t max)
{
	struct digits_step sum = {.rows = rows,
				  .bytes = 4 * DIGITS_SUM,
				  .columns = 3,
				  .weights = {[0] = {1, 0, 0},
					      [DIGITS_SUM] = {0, 1, 0},
					      [2 * DIGITS_SUM] = {1, 0, 0},
					      [3 * DIGITS_SUM] = {0, 1, 0}}};
	struct digits_int16 y = {rows, 3, 1, min, max};
	uint32_t all = (128u << 16) - 2u * DIGITS_HALF + minus - (uint32_t)min;
	uint32_t both, digits;
	int rc = lower_value(l, (uint64_t)rows * sum.bytes, NULL, &both);

	for (uint32_t i = 0; !rc && i < 2; i++)
		rc = open_side(l, v[i], rows, i, i && minus, both);
	for (uint32_t k = 0; k < 3; k++)
		sum.bias[k] = (int32_t)(all >> 8 * k & 255);
	if (!rc)
		rc = digits_new(l, both, &sum, &digits);
	if (!rc)
		rc = digits_carry(l, rows, 3, 2, &digits);
	return rc ? rc : digits_to_int16(l, digits, &y, v[2]);
}

/* a / 2^right, half away from zero. */
static int shift_right(struct lowered *l, uint32_t *a, uint32_t count, uint32_t right)
{
	struct int16_rescaling r = {.pixels = count,
				    .numbers = 1,
				    .digits = 2,
				    .min = INT16_MIN,
				    .max = INT16_MAX};
	uint32_t d;
	int rc = int16_rescaling(l, &r);

	if (!rc)
		rc = wide_open(l, *a, count, &r.v);
	if (!rc)
		rc = lower_value(l, (uint64_t)count * 2, NULL, &d);
	if (rc)
		return rc;
	r.offset[0] = DIGITS_HALF;
	r.largest[0] = DIGITS_HALF;
	r.q[0] = (struct quant_mult){INT32_MAX, -(int32_t)right}; /* no product */
	*a = d;
	return int16_rescale32(l, &r, d);
}

int int16_add_shifted(struct lowered *l, uint32_t v[3], const uint32_t right[2],
		      bool minus, int32_t min, int32_t max)
{
	uint32_t count = (uint32_t)lower_t(l, v[2])->count;
	int rc = 0;

	for (uint32_t i = 0; !rc && i < 2; i++)
		if (right[i])
			rc = shift_right(l, &v[i], count, right[i]);
	return rc ? rc : int16_sum(l, v, count, minus, min, max);
}

int int16_store(struct lowered *l, const struct int16_number *x, uint32_t d)
{
	struct int16_rescaling r = {.pixels = x->rows,
				    .numbers = 1,
				    .digits = x->digits,
				    .v = x->v,
				    .add = x->add,
				    .min = x->min,
				    .max = x->max};
	int rc = int16_rescaling(l, &r);

	if (rc)
		return rc;
	r.offset[0] = x->offset;
	r.largest[0] = x->largest;
	r.q[0] = x->q;
	return int16_rescale32(l, &r, d);
}

/* L and H become four digits of S, modulo 2^32, above 2^31; carries are left. */
static int join_sums(struct lowered *l, const struct conv *c, uint64_t pixels,
		     uint32_t *v)
{
	struct digits_each join = {.pixels = pixels,
				   .numbers = c->n,
				   .parts = 2,
				   .bytes = DIGITS_SUM,
				   .step = 1,
				   .columns = 4};
	static const uint8_t half[DIGITS_MAX] = {0, 0, 0, 128};
	int rc = digits_each_new(l, &join);

	for (uint32_t n = 0; !rc && n < c->n; n++) {
		digits_each_times(&join, n, 0, 0, 1, 0);
		digits_each_times(&join, n, 1, 8, 1, 0);
		digits_each_bias(&join, n, half);
	}
	return rc ? rc : digits_each(l, *v, &join, v);
}

/* Digits of such sums, rounded once. */
static int requantize32_once(struct lowered *l, const struct conv *c, uint64_t pixels,
			     uint32_t v)
{
	uint64_t *largest = lower_own(l, c->n * sizeof(*largest));
	struct int16_parts s = {.pixels = pixels,
				.numbers = c->n,
				.v = v,
				.parts = 1,
				.carried = true,
				.above = 31,
				.largest = largest,
				.out = c->out};
	struct quant_once *q;
	int rc;

	if (!largest)
		return -ENOMEM;
	for (uint32_t n = 0; n < c->n; n++) {
		largest[n] = largest_sum(c, n);
		if (largest[n] > UINT64_C(1) << 31)
			largest[n] = UINT64_C(1) << 31;
	}
	rc = once_digits(l, c, largest, &q);
	s.once = q;
	return rc ? rc : int16_requantize(l, &s, c->d);
}

/* Sums of int32, as large as they are modulo 2^32. */
static int requantize32(struct lowered *l, const struct conv *c, uint64_t pixels,
			uint32_t v)
{
	struct int16_rescaling r = {.pixels = pixels,
				    .numbers = c->n,
				    .digits = 4,
				    .v = v,
				    .min = c->out.min,
				    .max = c->out.max};
	int rc = int16_rescaling(l, &r);

	for (uint32_t n = 0; !rc && n < c->n; n++) {
		r.q[n] = multiplier_of(&c->out, n);
		r.offset[n] = UINT32_C(1) << 31;
		r.largest[n] = largest_sum(c, n);
	}
	if (!rc)
		rc = join_sums(l, c, pixels, &r.v);
	if (!rc)
		rc = digits_carry(l, (uint32_t)(pixels * c->n), 4, 3, &r.v);
	if (!rc && c->exact)
		return requantize32_once(l, c, pixels, r.v);
	return rc ? rc : int16_rescale32(l, &r, c->d);
}

/* Results of 8 bits. */
static int narrow(struct lowered *l, const struct int16_rescaling *r, uint32_t d)
{
	const struct npuc_tensor *y = lower_t(l, d);
	uint32_t rows = (uint32_t)r->pixels, v;
	uint32_t right = r->q[0].shift < 0 ? (uint32_t)-r->q[0].shift : 0;
	struct digit_plan p = {0, 0};
	int rc = plan_rescaling(l, r, &p);

	if (!rc && p.guards > 1)
		rc = lower_fail(
			l, ENOTSUP,
			"results may come to 2^22 steps or more, which is not supported");
	if (!rc)
		rc = rescaling_product(l, r, &v);
	if (!rc)
		rc = digits_shift(l, rows, right, y->zero_point - quant_min(y->type), &v);
	return rc ? rc : digits_narrow(l, rows, v, y->type, d);
}

/* A tensor's numbers as digits. */
static int open_tensor(struct lowered *l, uint32_t a, struct int16_rescaling *r)
{
	const struct npuc_tensor *t = lower_t(l, a);
	uint32_t width = npuc_type_bytes(t->type);
	struct digits_step x = {
		.rows = (uint32_t)t->count, .bytes = width, .columns = width};

	for (uint32_t k = 0; k < width; k++)
		x.weights[k][k] = 1;
	/* The highest byte's sign: byte 0 of what is 128 more. */
	x.bias[width - 1] = t->type == NPUC_UINT8 ? 0 : 128;
	r->digits = width;
	r->offset[0] = (uint32_t)(t->zero_point - quant_min(t->type));
	return digits_new(l, a, &x, &r->v);
}

int int16_rescale(struct lowered *l, uint32_t a, uint32_t d, double real, int32_t min,
		  int32_t max)
{
	const struct npuc_tensor *x = lower_t(l, a), *y = lower_t(l, d);
	struct int16_rescaling r = {.pixels = x->count,
				    .numbers = 1,
				    .min = min - y->zero_point,
				    .max = max - y->zero_point};
	int rc = int16_rescaling(l, &r);

	if (x->count > INT32_MAX)
		return lower_fail(l, ENOTSUP,
				  "%llu elements; less than 2^31 are supported",
				  (unsigned long long)x->count);
	if (!rc)
		rc = open_tensor(l, a, &r);
	if (rc)
		return rc;
	lower_describe(l, a, d);
	r.q[0] = quant_of(real);
	r.largest[0] = (uint64_t)(quant_max(x->type) - quant_min(x->type)) / 2 + 1;
	if (x->type != NPUC_INT16)
		r.largest[0] = 255;
	if (y->type == NPUC_INT16)
		return int16_rescale32(l, &r, d);
	return narrow(l, &r, d);
}

/* ---- ADD and SUB ---------------------------------------------------------------------- */

/* Both, rescaled to 31 bits: digits of their sum above 2^31. */
static int sum_sides(struct lowered *l, struct int16_rescaling *r, uint32_t *v)
{
	struct digit_plan p = {0, 0};
	struct digits_each sum = {.pixels = r->pixels,
				  .numbers = 1,
				  .parts = 2,
				  .step = DIGITS_SUM,
				  .columns = 4};
	static const uint8_t half[DIGITS_MAX] = {0, 0, 0, 128};
	int32_t right = -(r->q[0].shift < r->q[1].shift ? r->q[0] : r->q[1]).shift;
	uint32_t digits;
	int rc = rescaling_product(l, r, v);

	p.off = ((uint32_t)right + 7) / 8;
	digits = p.off + 4;
	sum.bytes = digits * DIGITS_SUM;
	if (!rc)
		rc = rescaling_shift(l, r, p, v);
	if (!rc)
		rc = digits_carry(l, (uint32_t)r->pixels * 2, digits, digits - 1, v);
	if (!rc)
		rc = digits_each_new(l, &sum);
	for (uint32_t k = 0; !rc && k < 4; k++)
		for (uint32_t part = 0; part < 2; part++)
			*digits_each_weight(&sum, 0, k, part, (p.off + k) * DIGITS_SUM) =
				1;
	if (!rc) {
		digits_each_bias(&sum, 0, half);
		rc = digits_each(l, *v, &sum, v);
	}
	return rc ? rc : digits_carry(l, (uint32_t)r->pixels, 4, 3, v);
}

int int16_add(struct lowered *l, const uint32_t v[3], const struct int16_sum *op)
{
	uint64_t count = lower_t(l, v[2])->count;
	struct int16_rescaling r = {
		.pixels = count, .numbers = 2, .digits = 2, .left = INT16_ADD_LEFT};
	struct int16_rescaling out = {.pixels = count,
				      .numbers = 1,
				      .digits = 4,
				      .min = op->min,
				      .max = op->max};
	int rc = int16_rescaling(l, &r);

	if (!rc)
		rc = int16_rescaling(l, &out);
	if (rc)
		return rc;
	if (count > INT32_MAX / 2)
		return lower_fail(l, ENOTSUP,
				  "%llu elements; less than 2^30 are supported",
				  (unsigned long long)count);
	for (uint32_t i = 0; i < 2; i++) {
		r.q[i] = op->q[i];
		r.offset[i] = i && op->minus ? DIGITS_HALF - 1 : DIGITS_HALF;
	}
	out.q[0] = op->q[2];
	/* Multipliers of operands are at most 1/2. */
	out.largest[0] = (UINT64_C(1) << 30) + 2;
	out.offset[0] = UINT32_C(1) << 31;
	rc = lower_value(l, count * 4 * DIGITS_SUM, NULL, &r.v);
	for (uint32_t i = 0; !rc && i < 2; i++)
		rc = open_side(l, v[i], (uint32_t)count, i, i && op->minus, r.v);
	if (!rc)
		rc = sum_sides(l, &r, &out.v);
	return rc ? rc : int16_rescale32(l, &out, v[2]);
}

/* ---- averages ----------------------------------------------------------------------- */

#define AVERAGE_MAX 16512u /* elements, two bytes each of a convolution */

/* How many elements of the image a window sees. */
static uint32_t covered(const struct axis *x, uint32_t at)
{
	int64_t from = (int64_t)at * x->stride - x->pad, to = from + x->k;

	if (to > x->in)
		to = x->in;
	return (uint32_t)(to - (from < 0 ? 0 : from));
}

static uint32_t covered_pixels(const struct window *w, uint64_t pixel)
{
	uint64_t row = pixel / w->x.out;

	return covered(&w->y, (uint32_t)(row % w->y.out)) *
	       covered(&w->x, (uint32_t)(pixel % w->x.out));
}

/* x / count = x * ceil(2^bits / count) / 2^bits, rounded down, of any x below 2^16 count.
 */
static uint32_t reciprocal_bits(uint32_t count)
{
	uint32_t log = 0;

	while (UINT32_C(1) << log < count)
		log++;
	return 16 + 2 * log;
}

/* Sums, as digits_signed leaves them, of so many elements each.  Above 2^15 count, half
 * of count more, and 1 less where that is a tie below zero, they are divided, rounded
 * down. */
static int divide(struct lowered *l, uint32_t v, uint64_t first, uint64_t rows,
		  uint32_t count, struct digit_plan p, int32_t least, uint32_t d)
{
	uint32_t bits = reciprocal_bits(count), up = 8 * p.off - bits;
	uint32_t factor = (uint32_t)(((UINT64_C(1) << bits) - 1) / count + 1);
	struct digits_each x = {.pixels = rows,
				.numbers = 1,
				.parts = 1,
				.bytes = 5,
				.step = 1,
				.columns = p.off + 3};
	uint64_t above = (uint64_t)count * DIGITS_HALF + count / 2;
	uint8_t bias[DIGITS_MAX] = {0}, minus[DIGITS_MAX] = {0};
	int rc = digits_each_new(l, &x);

	if (rc)
		return rc;
	digits_each_times(&x, 0, 0, 0, factor, up);
	/* A byte of 255: times factor / -255 = factor (1 + 256 + 256^2 ...). */
	for (uint32_t k = 0; count % 2 == 0 && 8 * k + up < 8 * x.columns; k++)
		digits_add(minus, x.columns, factor, 8 * k + up);
	for (uint32_t k = 0; k < x.columns; k++)
		*digits_each_weight(&x, 0, k, 0, 4) = minus[k];
	digits_add(bias, x.columns, above * factor, up);
	digits_sub(bias, x.columns, factor, 31 + up);
	digits_sub(bias, x.columns, (uint64_t)((int64_t)least - INT16_MIN), 8 * p.off);
	digits_add(bias, x.columns, 128, 8 * (p.off + 2));
	digits_each_bias(&x, 0, bias);
	return digits_each_at(l, v, &x, first, d);
}

int int16_average(struct lowered *l, struct conv *c)
{
	uint64_t pixels = (uint64_t)c->w.images * c->w.y.out * c->w.x.out;
	unsigned long long results = pixels * c->n;
	uint32_t most = c->w.y.k * c->w.x.k, v, d;
	struct digit_plan p = {0, 1};
	int rc;

	if (most > AVERAGE_MAX)
		return lower_fail(l, ENOTSUP,
				  "averages of %u elements; at most %u are supported",
				  most, AVERAGE_MAX);
	if (results > INT32_MAX)
		return lower_fail(l, ENOTSUP,
				  "%llu results; less than 2^31 are supported", results);
	p.off = (reciprocal_bits(most) + 7) / 8;
	rc = all_sums(l, c, pixels, &v);
	if (!rc)
		rc = join_sums(l, c, pixels, &v);
	if (!rc)
		rc = digits_signed(l, (uint32_t)(pixels * c->n), 4, &v);
	if (!rc)
		rc = lower_value(l, pixels * c->n * (p.off + 3) * DIGITS_SUM, NULL, &d);
	for (uint64_t at = 0, to; !rc && at < pixels; at = to) {
		uint32_t count = covered_pixels(&c->w, at);

		for (to = at + 1; to < pixels && covered_pixels(&c->w, to) == count;)
			to++;
		rc = divide(l, v, at * c->n, (to - at) * c->n, count, p, c->out.min, d);
	}
	return rc ? rc
		  : finish(l, d, (uint32_t)(pixels * c->n), p, c->out.min, c->out.max,
			   c->d);
}

/* ---- layers ------------------------------------------------------------------------ */

int int16_conv(struct lowered *l, struct conv *c)
{
	uint64_t pixels = (uint64_t)c->w.images * c->w.y.out * c->w.x.out;
	unsigned long long results = pixels * c->n;
	uint32_t sums;
	int rc;

	if (results > INT32_MAX)
		return lower_fail(l, ENOTSUP,
				  "%llu results; less than 2^31 are supported", results);
	rc = all_sums(l, c, pixels, &sums);
	if (rc)
		return rc;
	return c->int32 ? requantize32(l, c, pixels, sums)
			: requantize(l, c, pixels, sums);
}
