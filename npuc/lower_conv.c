/* SPDX-License-Identifier: Apache-2.0 */
/* lower_conv.c - convolutions, fully connected layers, means and pools. */
#include "lower_conv.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

#include "lower_int16.h"
#include "lower_long.h"
#include "lower_move.h"
#include "lower_once.h"
#include "lower_wide.h"
#include "quant.h"

/* Kinds of union BuiltinOptions, and fields of their tables. */
enum {
	OPTIONS_CONV = 1,
	CONV_PADDING = 0,
	CONV_STRIDE_W = 1,
	CONV_STRIDE_H = 2,
	CONV_ACT = 3,
	CONV_DILATION_W = 4,
	CONV_DILATION_H = 5,
	OPTIONS_DEPTHWISE = 2,
	DEPTHWISE_MULTIPLIER = 3,
	DEPTHWISE_ACT = 4,
	DEPTHWISE_DILATION_W = 5,
	DEPTHWISE_DILATION_H = 6,
	OPTIONS_POOL = 5,
	POOL_WIDTH = 3,
	POOL_HEIGHT = 4,
	POOL_ACT = 5,
	OPTIONS_FULLY_CONNECTED = 8,
	FULLY_CONNECTED_ACT = 0,
	FULLY_CONNECTED_FORMAT = 1,
	FULLY_CONNECTED_KEEP = 2,
	OPTIONS_REDUCER = 27,
	REDUCER_KEEP_DIMS = 0,
};

#define IMAGES_MAX   65536u /* convolutions are one step an image */
#define KERNEL_MAX   255u
#define BIAS_OFF_MAX 0.02 /* TensorFlow Lite's tolerance */

/* ---- geometry --------------------------------------------------------------------- */

static int axis_out(struct lowered *l, const char *name, struct axis *a, uint32_t padding)
{
	uint64_t span, least;

	if (padding > CONV_VALID)
		return lower_fail(l, ENOTSUP,
				  "padding %u is unknown; 0 is SAME, 1 is VALID",
				  padding);
	if (!a->stride || a->stride > INT32_MAX || !a->dilation ||
	    a->dilation > INT32_MAX || !a->k || a->k > INT32_MAX)
		return lower_fail(
			l, EINVAL,
			"%s: kernel %d, stride %d, dilation %d; all must be positive",
			name, (int32_t)a->k, (int32_t)a->stride, (int32_t)a->dilation);
	span = (uint64_t)(a->k - 1) * a->dilation + 1;
	a->pad = 0;
	if (padding == CONV_SAME) {
		a->out = (a->in - 1) / a->stride + 1;
		least = (uint64_t)(a->out - 1) * a->stride + span;
		if (least > a->in)
			least = (least - a->in) / 2;
		else
			least = 0;
		if (least > KERNEL_MAX)
			return lower_fail(l, ENOTSUP,
					  "%s: padding of %llu; at most %u is supported",
					  name, (unsigned long long)least, KERNEL_MAX);
		a->pad = (uint32_t)least;
		return 0;
	}
	if (span > a->in)
		return lower_fail(l, EINVAL,
				  "%s: a kernel of %llu does not fit into an input of %u",
				  name, (unsigned long long)span, a->in);
	a->out = (uint32_t)((a->in - span) / a->stride + 1);
	return 0;
}

/* A single output does not move, and a kernel of one has no gaps: strides and dilations
 * that the machine cannot do do not matter then. */
static void simplify(struct axis *a)
{
	if (a->out == 1)
		a->stride = 1;
	if (a->k == 1)
		a->dilation = 1;
}

#define SIDE_MAX     65535u
#define DILATION_MAX 15u

/* What the machine's windows can be, in the model's words. */
static int check_axis(struct lowered *l, const char *name, struct axis a)
{
	const struct {
		const char *what;
		uint32_t is, most;
	} limits[] = {
		{"a kernel", a.k, KERNEL_MAX},
		{"a stride", a.stride, CONV_STRIDE_MAX},
		{"a dilation", a.dilation, DILATION_MAX},
		{"a size", a.in, SIDE_MAX},
	};

	for (uint32_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++)
		if (limits[i].is > limits[i].most)
			return lower_fail(l, ENOTSUP,
					  "%s: %s of %u; at most %u is supported", name,
					  limits[i].what, limits[i].is, limits[i].most);
	return 0;
}

/* depth: channels that a sum has; 0: there are no sums. */
static int check_window(struct lowered *l, const struct window *w, uint32_t depth)
{
	struct axis y = w->y, x = w->x;
	uint64_t products = (uint64_t)y.k * x.k * depth;
	int rc;

	simplify(&y);
	simplify(&x);
	rc = check_axis(l, "rows", y);
	if (!rc)
		rc = check_axis(l, "columns", x);
	if (!rc && w->c > SIDE_MAX)
		rc = lower_fail(l, ENOTSUP, "%u channels; at most %u are supported", w->c,
				SIDE_MAX);
	if (!rc && products > LONG_MOST)
		rc = lower_fail(l, ENOTSUP,
				"sums of %llu products; at most %u are supported",
				(unsigned long long)products, LONG_MOST);
	return rc;
}

int conv_image(struct lowered *l, uint32_t tensor, struct window *w)
{
	const struct npuc_tensor *t = lower_t(l, tensor);

	if (t->rank != 4)
		return lower_fail(l, EINVAL,
				  "tensor '%.80s' has %u dimensions instead of 4",
				  t->name, t->rank);
	if ((uint32_t)t->dims[0] > IMAGES_MAX)
		return lower_fail(l, ENOTSUP, "%d images; at most %u are supported",
				  t->dims[0], IMAGES_MAX);
	w->images = (uint32_t)t->dims[0];
	w->y.in = (uint32_t)t->dims[1];
	w->x.in = (uint32_t)t->dims[2];
	w->c = (uint32_t)t->dims[3];
	return 0;
}

void conv_describe(struct lowered *l, const struct window *w, uint32_t n)
{
	snprintf(l->shapes[l->layer], sizeof(l->shapes[0]),
		 "%ux%ux%u -> %ux%ux%u  %ux%u/%u", w->y.in, w->x.in, w->c, w->y.out,
		 w->x.out, n, w->y.k, w->x.k, w->y.stride);
}

/* ---- convolutions ----------------------------------------------------------------- */

int conv_weights(struct lowered *l, struct conv *c, uint32_t number, bool zero)
{
	const struct model_op *op = lower_op(l);
	const struct npuc_tensor *t;
	const char *unusable;
	int rc;

	if (op->input_count <= number || op->inputs[number] == NPUC_NONE)
		return lower_fail(l, EINVAL, "weights are missing");
	c->weights = op->inputs[number];
	t = lower_t(l, c->weights);
	unusable = l->m->tensors[c->weights].unusable;
	if (unusable)
		return lower_fail(l, ENOTSUP, "tensor '%.80s' %s", t->name, unusable);
	rc = lower_same_type(l, c->a, c->d);
	if (c->wide && t->type != NPUC_INT8)
		return lower_fail(l, ENOTSUP,
				  "weights '%.80s' are %s; with int16 activations they "
				  "must be int8",
				  t->name, npuc_type_name(t->type));
	if (!rc && !c->wide)
		rc = lower_same_type(l, c->a, c->weights);
	if (rc)
		return rc;
	c->data = l->values[c->weights].data;
	if (!c->data)
		return lower_fail(l, ENOTSUP, "weights '%.80s' are not constant",
				  t->name);
	if (!t->scales || (t->scales > 1 && t->type == NPUC_UINT8))
		return lower_fail(l, EINVAL,
				  "weights '%.80s' have an invalid quantization",
				  t->name);
	for (uint32_t i = 0; i < t->scales; i++) {
		float scale = npuc_tensor_scale(l->m, c->weights, i);

		if (!(scale >= 0 && scale < 1e30f))
			return lower_fail(
				l, EINVAL,
				"weights '%.80s': scale %g of channel %u is invalid",
				t->name, (double)scale, i);
		if (npuc_tensor_zero_point(l->m, c->weights, i) && !zero)
			return lower_fail(l, ENOTSUP,
					  "weights '%.80s': zero point %d of channel %u; "
					  "must be 0",
					  t->name,
					  npuc_tensor_zero_point(l->m, c->weights, i), i);
	}
	if (t->zero_point < quant_min(t->type) || t->zero_point > quant_max(t->type))
		return lower_fail(l, EINVAL, "weights '%.80s': zero point %d is invalid",
				  t->name, t->zero_point);
	c->b_zero = t->zero_point;
	return 0;
}

/* The scale that TensorFlow Lite checks biases by: 0 of a tensor quantized per channel.
 */
static double one_scale(const struct npuc_tensor *t)
{
	return t->scales == 1 ? (double)t->scale : 0;
}

/* Sums have the scale of input times weights, and the bias is taken as such a sum; its
 * own scale is only checked, and by TensorFlow Lite only where it works with one
 * multiplier (coarse). */
int conv_bias(struct lowered *l, struct conv *c, uint32_t number, bool coarse)
{
	const struct model_op *op = lower_op(l);
	const struct npuc_tensor *bias;
	double product, off;
	int rc = c->wide ? int16_bias(l, c, number)
			 : lower_ints(l, number, true, c->n, &c->out.bias, NULL);

	if (rc || (!c->out.bias && !c->bias))
		return rc;
	bias = lower_t(l, op->inputs[number]);
	if (bias->type != NPUC_INT32 && (!c->wide || bias->type != NPUC_INT64))
		return lower_fail(l, ENOTSUP, "bias '%.80s' is %s; it must be int32",
				  bias->name, npuc_type_name(bias->type));
	if (c->wide && op->code == NPUC_DEPTHWISE_CONV_2D && bias->type != NPUC_INT64)
		return lower_fail(l, ENOTSUP, "bias '%.80s' is %s; it must be int64",
				  bias->name, npuc_type_name(bias->type));
	if (op->code != NPUC_FULLY_CONNECTED && bias->scales == 1 && bias->zero_point)
		return lower_fail(l, EINVAL, "bias '%.80s': zero point %d; must be 0",
				  bias->name, bias->zero_point);
	product = one_scale(lower_t(l, c->a)) * one_scale(lower_t(l, c->weights));
	off = fabs(product - one_scale(bias)) / (double)lower_t(l, c->d)->scale;
	if (!coarse || off <= BIAS_OFF_MAX)
		return 0;
	return lower_fail(
		l, EINVAL,
		"bias '%.80s': scale %g contradicts the scale of input times weights, "
		"%g: it is off by %g of the output's scale; at most %g is allowed",
		bias->name, one_scale(bias), product, off, BIAS_OFF_MAX);
}

int conv_requant(struct lowered *l, struct conv *c, bool coarse)
{
	const struct npuc_tensor *w = lower_t(l, c->weights), *d = lower_t(l, c->d);
	float a_scale = lower_t(l, c->a)->scale;
	uint32_t count = w->scales;
	int32_t *mult = lower_own(l, (uint64_t)count * 8), *shift;
	double *real = lower_own(l, count * sizeof(*real));

	if (!mult || !real)
		return -ENOMEM;
	shift = mult + count;
	for (uint32_t i = 0; i < count; i++) {
		float w_scale = npuc_tensor_scale(l->m, c->weights, i);
		float rounded = a_scale * w_scale;
		double product = coarse && !c->exact ? (double)rounded
						     : (double)a_scale * (double)w_scale;
		struct quant_mult q = quant_of(product / (double)d->scale);

		real[i] = product / (double)d->scale;
		if (q.shift > 30)
			return lower_fail(
				l, ENOTSUP,
				"scales %g * %g / %g give a multiplier of 2^30 or more",
				(double)a_scale, (double)w_scale, (double)d->scale);
		mult[i] = q.mult;
		shift[i] = q.shift;
	}
	c->real = real;
	c->out.mult = mult;
	c->out.shift = shift;
	c->out.per_channel = count > 1;
	c->out.zero_point = d->zero_point;
	c->a_zero = lower_t(l, c->a)->zero_point;
	c->flags = lower_u8(l, c->a, HAL_NPU_A_UINT8 | HAL_NPU_B_UINT8 | HAL_NPU_D_UINT8);
	return lower_range(l, c->act, c->d, &c->out.min, &c->out.max);
}

static int conv_step(struct lowered *l, const struct conv *c, uint64_t a_at,
		     uint64_t d_at)
{
	struct step *s = lower_step(l, STEP_CONV, c->a, NPUC_NONE, c->d);

	if (!s)
		return -ENOMEM;
	s->u.conv = (struct hal_npu_conv){
		.size = (uint32_t)sizeof(s->u.conv),
		.h = c->w.y.in,
		.w = c->w.x.in,
		.c = c->w.c,
		.oh = c->w.y.out,
		.ow = c->w.x.out,
		.n = c->n,
		.kh = c->w.y.k,
		.kw = c->w.x.k,
		.stride_h = c->w.y.stride,
		.stride_w = c->w.x.stride,
		.dilation_h = c->w.y.dilation,
		.dilation_w = c->w.x.dilation,
		.pad_top = c->w.y.pad,
		.pad_left = c->w.x.pad,
		.groups = c->groups,
		.a.offset = (uint32_t)a_at,
		.d.offset = (uint32_t)d_at + c->d_at,
		.d_stride = c->d_stride,
		.weights = c->data,
		.a_zero = c->a_zero,
		.b_zero = c->b_zero,
		.out = c->out,
		.flags = c->flags,
	};
	return 0;
}

/* Each image has its copy of the weights in the program: fine for a few. */
#define BATCH_WEIGHTS_MAX (UINT64_C(64) << 20)

int conv_images(struct lowered *l, struct conv *c)
{
	struct window *w = &c->w;
	uint64_t a_bytes = (uint64_t)w->y.in * w->x.in * w->c;
	uint64_t d_pixel =
		c->d_stride ? c->d_stride : (uint64_t)c->n * (c->out.mult ? 1 : 4);
	uint64_t d_bytes = (uint64_t)w->y.out * w->x.out * d_pixel;
	uint64_t weights = (uint64_t)c->n * w->y.k * w->x.k * (w->c / c->groups) * 16;
	int rc = 0;

	simplify(&w->y);
	simplify(&w->x);
	if (w->y.k == 1 && w->x.k == 1 && w->y.stride == 1 && w->x.stride == 1 &&
	    !w->y.pad && !w->x.pad && w->y.in == w->y.out && w->x.in == w->x.out &&
	    (uint64_t)w->images * w->y.in <= 65535) {
		w->y.in *= w->images; /* one image below the other */
		w->y.out = w->y.in;
		w->images = 1;
	}
	if (w->images > 1 && weights * w->images > BATCH_WEIGHTS_MAX)
		return lower_fail(l, ENOTSUP,
				  "%u images need too many copies of the weights",
				  w->images);
	for (uint32_t i = 0; !rc && i < w->images; i++)
		rc = conv_step(l, c, i * a_bytes, i * d_bytes);
	return rc;
}

int conv_operands(struct lowered *l, struct conv *c, uint32_t number)
{
	int rc = lower_operand16(l, number, &c->a);

	if (!rc)
		rc = lower_result16(l, &c->d);
	if (!rc)
		c->wide = lower_t(l, c->a)->type == NPUC_INT16;
	return rc;
}

int conv_steps(struct lowered *l, struct conv *c)
{
	return c->wide ? int16_conv(l, c) : conv_images(l, c);
}

/* Where an operator's options have what convolutions share; padding and strides are the
 * same for both. */
struct conv_options {
	uint32_t kind, act, dilation_w, dilation_h;
};

/* Operands and result; weights are c->weights then. */
static int conv_begin(struct lowered *l, const struct conv_options *o, struct conv *c)
{
	const struct model_op *op = lower_op(l);
	int rc = lower_counts(l, op->code == NPUC_CONV_2D ? 3 : 2, 3);

	c->act = lower_option_u8(l, o->kind, o->act);
	if (!rc && op->input_count == 3 && op->inputs[2] == NPUC_NONE)
		rc = lower_fail(l, EINVAL, "the bias is missing");
	if (!rc)
		rc = conv_operands(l, c, 0);
	if (!rc)
		rc = conv_weights(l, c, 1, lower_t(l, c->a)->type == NPUC_UINT8);
	return rc ? rc : conv_image(l, c->a, &c->w);
}

/* The rest, once kernel size and outputs are known. */
static int conv_geometry(struct lowered *l, const struct conv_options *o, struct conv *c)
{
	uint32_t padding = lower_option_u8(l, o->kind, CONV_PADDING);
	int rc;

	c->w.y.stride = (uint32_t)lower_option(l, o->kind, CONV_STRIDE_H, 0);
	c->w.x.stride = (uint32_t)lower_option(l, o->kind, CONV_STRIDE_W, 0);
	c->w.y.dilation = (uint32_t)lower_option(l, o->kind, o->dilation_h, 1);
	c->w.x.dilation = (uint32_t)lower_option(l, o->kind, o->dilation_w, 1);
	rc = axis_out(l, "rows", &c->w.y, padding);
	if (!rc)
		rc = axis_out(l, "columns", &c->w.x, padding);
	if (!rc)
		rc = lower_dims(l, c->d, 4,
				(uint32_t[]){c->w.images, c->w.y.out, c->w.x.out, c->n});
	if (!rc)
		rc = conv_bias(l, c, 2, lower_t(l, c->weights)->type == NPUC_UINT8);
	if (!rc)
		rc = conv_requant(l, c, lower_t(l, c->weights)->type == NPUC_UINT8);
	if (!rc)
		rc = check_window(l, &c->w, c->w.c / c->groups * (c->wide ? 2 : 1));
	if (rc)
		return rc;
	conv_describe(l, &c->w, c->n);
	lower_macs(l,
		   lower_t(l, c->d)->count * c->w.y.k * c->w.x.k * (c->w.c / c->groups));
	return 0;
}

int lower_conv(struct lowered *l)
{
	static const struct conv_options options = {OPTIONS_CONV, CONV_ACT,
						    CONV_DILATION_W, CONV_DILATION_H};
	struct conv c = {0};
	const struct npuc_tensor *t;
	uint32_t depth;
	int rc = conv_begin(l, &options, &c);

	if (rc)
		return rc;
	t = lower_t(l, c.weights);
	if (t->rank != 4 || !t->count || (t->scales > 1 && t->channel_dim))
		return lower_fail(l, EINVAL,
				  "weights '%.80s' must be [n][h][w][c] with scales by n",
				  t->name);
	c.n = (uint32_t)t->dims[0];
	c.w.y.k = (uint32_t)t->dims[1];
	c.w.x.k = (uint32_t)t->dims[2];
	depth = (uint32_t)t->dims[3];
	if (c.w.c % depth || c.n % (c.w.c / depth))
		return lower_fail(l, EINVAL,
				  "weights '%.80s' read %u of %u channels, which does "
				  "not match %u outputs",
				  t->name, depth, c.w.c, c.n);
	c.groups = c.w.c / depth;
	rc = conv_geometry(l, &options, &c);
	return rc ? rc : conv_steps(l, &c);
}

/* [1][kh][kw][n] -> [n][kh][kw][1] */
static const int8_t *turn_depthwise(struct lowered *l, const struct conv *c)
{
	const int8_t *from = c->data;
	uint32_t k = c->w.y.k * c->w.x.k;
	int8_t *to = lower_own(l, (uint64_t)k * c->n);

	for (uint32_t i = 0; to && i < k; i++)
		for (uint32_t n = 0; n < c->n; n++)
			to[(uint64_t)n * k + i] = from[(uint64_t)i * c->n + n];
	return to;
}

int lower_depthwise(struct lowered *l)
{
	static const struct conv_options options = {OPTIONS_DEPTHWISE, DEPTHWISE_ACT,
						    DEPTHWISE_DILATION_W,
						    DEPTHWISE_DILATION_H};
	struct conv c = {0};
	const struct npuc_tensor *t;
	uint32_t multiplier;
	int rc = conv_begin(l, &options, &c);

	if (rc)
		return rc;
	t = lower_t(l, c.weights);
	if (t->rank != 4 || t->dims[0] != 1 || !t->count ||
	    (t->scales > 1 && t->channel_dim != 3))
		return lower_fail(l, EINVAL,
				  "weights '%.80s' must be [1][h][w][n] with scales by n",
				  t->name);
	c.w.y.k = (uint32_t)t->dims[1];
	c.w.x.k = (uint32_t)t->dims[2];
	c.n = (uint32_t)t->dims[3];
	c.groups = c.w.c;
	if (c.n % c.w.c)
		return lower_fail(l, EINVAL,
				  "weights '%.80s' have %u outputs, which is not a "
				  "multiple of %u channels",
				  t->name, c.n, c.w.c);
	/* The kernel of int16 goes by the multiplier that is written down, no other does.
	 */
	multiplier =
		(uint32_t)lower_option(l, OPTIONS_DEPTHWISE, DEPTHWISE_MULTIPLIER, 0);
	if (c.wide && multiplier != c.n / c.w.c)
		return lower_fail(l, EINVAL,
				  "option depth_multiplier is %d, but %u outputs of %u "
				  "channels make it %u",
				  (int32_t)multiplier, c.n, c.w.c, c.n / c.w.c);
	rc = conv_geometry(l, &options, &c);
	if (rc)
		return rc;
	c.data = turn_depthwise(l, &c);
	return c.data ? conv_steps(l, &c) : -ENOMEM;
}

/* Rows of c->w.c elements each. */
static int rows_steps(struct lowered *l, struct conv *c)
{
	if (!c->wide && c->w.c > LONG_MOST)
		return long_conv(l, c);
	return c->exact && !c->wide ? once_conv(l, c) : conv_steps(l, c);
}

/* The result: a row of n for each row of the operand, in as many dimensions if the
 * options keep them. */
static int connected_dims(struct lowered *l, const struct conv *c)
{
	const struct npuc_tensor *a = lower_t(l, c->a);
	uint32_t dims[NPUC_RANK], rank = 0;

	if (a->count % c->w.c)
		return lower_fail(l, EINVAL, "%llu elements cannot form rows of %u",
				  (unsigned long long)a->count, c->w.c);
	if (!lower_option_u8(l, OPTIONS_FULLY_CONNECTED, FULLY_CONNECTED_KEEP))
		return lower_dims(l, c->d, 2,
				  (uint32_t[]){(uint32_t)(a->count / c->w.c), c->n});
	if (!a->rank || (uint32_t)a->dims[a->rank - 1] != c->w.c)
		return lower_fail(
			l, EINVAL,
			"tensor '%.80s' has rows of %d elements, but the weights need %u",
			a->name, a->rank ? a->dims[a->rank - 1] : 1, c->w.c);
	for (; rank + 1 < a->rank; rank++)
		dims[rank] = (uint32_t)a->dims[rank];
	dims[rank++] = c->n;
	return lower_dims(l, c->d, rank, dims);
}

/* A 1 x 1 convolution over a column of pixels, a row of the operand each. */
int lower_fully_connected(struct lowered *l)
{
	struct conv c = {
		.act = lower_option_u8(l, OPTIONS_FULLY_CONNECTED, FULLY_CONNECTED_ACT),
		.groups = 1,
		.exact = l->reference == NPUC_REFERENCE_CURRENT};
	const struct npuc_tensor *t;
	uint64_t count;
	int rc = lower_counts(l, 2, 3);

	if (!rc)
		rc = conv_operands(l, &c, 0);
	if (!rc)
		rc = conv_weights(l, &c, 1, !c.wide);
	if (rc)
		return rc;
	if (lower_option_u8(l, OPTIONS_FULLY_CONNECTED, FULLY_CONNECTED_FORMAT))
		return lower_fail(l, ENOTSUP,
				  "weights in shuffled order are not supported");
	t = lower_t(l, c.weights);
	if (t->rank != 2 || !t->count || (t->scales > 1 && t->channel_dim))
		return lower_fail(l, EINVAL,
				  "weights '%.80s' must be [n][k] with scales by n",
				  t->name);
	c.n = (uint32_t)t->dims[0];
	c.w.c = (uint32_t)t->dims[1];
	count = lower_t(l, c.a)->count;
	rc = connected_dims(l, &c);
	if (rc)
		return rc;
	if (c.wide && c.w.c > LONG_MOST / 2) /* two bytes each */
		return lower_fail(l, ENOTSUP,
				  "rows of %u inputs; at most %u of int16 are supported",
				  c.w.c, LONG_MOST / 2);
	if (count / c.w.c > 65535)
		return lower_fail(l, ENOTSUP, "%llu rows; at most 65535 are supported",
				  (unsigned long long)(count / c.w.c));
	c.w.images = 1;
	c.w.y = (struct axis){
		(uint32_t)(count / c.w.c), (uint32_t)(count / c.w.c), 1, 1, 1, 0};
	c.w.x = (struct axis){1, 1, 1, 1, 1, 0};
	rc = conv_bias(l, &c, 2, true);
	if (!rc)
		rc = conv_requant(l, &c, t->scales == 1);
	if (rc)
		return rc;
	snprintf(l->shapes[l->layer], sizeof(l->shapes[0]), "%ux%u -> %ux%u", c.w.y.in,
		 c.w.c, c.w.y.in, c.n);
	lower_macs(l, count * c.n);
	return rows_steps(l, &c);
}

/* ---- mean: a convolution with ones ------------------------------------------------- */

#define MEAN_WEIGHTS_MAX (UINT64_C(16) << 20)
#define MEAN_INPUT_MAX                                                                   \
	130048u /* bytes of one result's operands: they are in the scratchpad */

int lower_runs(struct lowered *l, uint32_t a, uint32_t d, struct runs *r)
{
	bool keep = lower_option_u8(l, OPTIONS_REDUCER, REDUCER_KEEP_DIMS);
	const struct npuc_tensor *t = lower_t(l, a);
	uint32_t count = 0, mask = 0, dims[NPUC_RANK], rank = 0;
	const int32_t *axes;
	int rc = lower_ints(l, 1, false, 0, &axes, &count);

	if (rc)
		return rc;
	for (uint32_t i = 0; i < count; i++) {
		int64_t axis = axes[i] < 0 ? (int64_t)axes[i] + t->rank : axes[i];

		if (axis < 0 || axis >= (int64_t)t->rank)
			return lower_fail(l, EINVAL,
					  "axis %d does not exist in %u dimensions",
					  axes[i], t->rank);
		mask |= 1u << axis;
	}
	r->count = 0;
	for (uint32_t i = 0; i < t->rank; i++) {
		bool reduced = mask >> i & 1;

		if (keep || !reduced)
			dims[rank++] = reduced ? 1 : (uint32_t)t->dims[i];
		if (t->dims[i] == 1)
			continue;
		if (!r->count || r->run[r->count - 1].reduced != reduced) {
			r->run[r->count].size = 1;
			r->run[r->count++].reduced = reduced;
		}
		r->run[r->count - 1].size *= (uint32_t)t->dims[i];
	}
	return lower_dims(l, d, rank, dims);
}

/* A kernel of k pixels, h * w = k, neither side longer than the machine's. */
static bool split_kernel(uint32_t k, uint32_t *h, uint32_t *w)
{
	for (*h = 1; *h <= KERNEL_MAX; (*h)++) {
		*w = k / *h;
		if (k % *h == 0 && *w <= KERNEL_MAX)
			return true;
	}
	return false;
}

static int mean_requant(struct lowered *l, struct conv *c, uint64_t count)
{
	const struct npuc_tensor *a = lower_t(l, c->a), *d = lower_t(l, c->d);
	struct quant_mult q = quant_of((double)a->scale / (double)d->scale);
	int32_t *mult = lower_own(l, 8);
	int log = 0;

	if (!mult)
		return -ENOMEM;
	if (q.shift > 30)
		return lower_fail(l, ENOTSUP,
				  "scales %g / %g give a multiplier of 2^30 or more",
				  (double)a->scale, (double)d->scale);
	/* 1 / count goes into the multiplier, which keeps its 31 bits. */
	while (count >> (log + 1))
		log++;
	if (log > 31 + q.shift)
		log = 31 + q.shift;
	mult[0] = (int32_t)(((int64_t)q.mult << log) / (int64_t)count);
	mult[1] = q.shift - log;
	c->out.mult = mult;
	c->out.shift = mult + 1;
	c->out.zero_point = d->zero_point;
	c->out.min = quant_min(d->type);
	c->out.max = quant_max(d->type);
	c->a_zero = a->zero_point;
	c->b_zero = 0;
	c->flags =
		lower_u8(l, c->a, HAL_NPU_A_UINT8) | lower_u8(l, c->d, HAL_NPU_D_UINT8);
	return 0;
}

static const int8_t *ones(struct lowered *l, uint64_t count)
{
	int8_t *w;

	if (count > MEAN_WEIGHTS_MAX) {
		lower_fail(l, ENOTSUP, "a mean of %llu elements is too long",
			   (unsigned long long)count);
		return NULL;
	}
	w = lower_own(l, count);
	for (uint64_t i = 0; w && i < count; i++)
		w[i] = 1;
	return w;
}

/* [rows][k] -> [rows] */
static int mean_row(struct lowered *l, struct conv *c, uint32_t rows, uint32_t k)
{
	if (rows > 65535)
		return lower_fail(l, ENOTSUP,
				  "a mean of %u rows; at most 65535 are supported", rows);
	c->w.images = c->n = c->groups = 1;
	c->w.c = k;
	c->w.y = (struct axis){rows, rows, 1, 1, 1, 0};
	c->w.x = (struct axis){1, 1, 1, 1, 1, 0};
	c->data = ones(l, k);
	return c->data ? rows_steps(l, c) : -ENOTSUP;
}

/* [outer][k1][rows][k2][c] -> [outer][rows][c] with a kernel as wide as a row's k2 * c
 * channels: c times the work, but anything that is not too long goes. */
static int mean_dense(struct lowered *l, struct conv *c, uint32_t outer, uint32_t k1,
		      uint32_t rows, uint32_t k2, uint32_t channels)
{
	uint64_t wide = (uint64_t)k2 * channels;
	int8_t *w;

	if (k1 > KERNEL_MAX || wide > 65535 || rows > 65535 ||
	    wide * k1 * channels > MEAN_WEIGHTS_MAX)
		return lower_fail(
			l, ENOTSUP,
			"a mean of %u x %u elements in %u channels is too large", k1, k2,
			channels);
	w = lower_own(l, wide * k1 * channels);
	for (uint64_t i = 0; w && i < (uint64_t)k1 * k2; i++)
		for (uint32_t n = 0; n < channels; n++)
			w[n * wide * k1 + i * channels + n] = 1;
	c->w.images = outer;
	c->w.c = (uint32_t)wide;
	c->n = channels;
	c->groups = 1;
	c->w.y = (struct axis){k1, 1, k1, 1, 1, 0};
	c->w.x = (struct axis){rows, rows, 1, 1, 1, 0};
	c->data = w;
	return w ? conv_steps(l, c) : -ENOTSUP;
}

/* [outer][k][c] -> [outer][c] by one window of k = h x w pixels. */
static int mean_window(struct lowered *l, struct conv *c, uint32_t outer, uint32_t h,
		       uint32_t w, uint32_t channels)
{
	c->w.images = outer;
	c->w.c = c->n = c->groups = channels;
	c->w.y = (struct axis){h, 1, h, 1, 1, 0};
	c->w.x = (struct axis){w, 1, w, 1, 1, 0};
	c->data = ones(l, (uint64_t)h * w * channels);
	return c->data ? conv_steps(l, c) : -ENOTSUP;
}

/* The same for some channels after the others, each time as many as the scratchpad has
 * room for: their pixels are copied side by side first. */
static int mean_parts(struct lowered *l, const struct conv *c, uint32_t outer, uint32_t h,
		      uint32_t w, uint32_t channels)
{
	uint32_t k = h * w, most = MEAN_INPUT_MAX / k;
	int rc = 0;

	for (uint32_t at = 0, n; !rc && at < channels; at += n) {
		struct move m = {.a_at = at};
		struct conv part = *c;

		n = channels - at < most ? channels - at : most;
		move_add(&m, (uint64_t)outer * k, channels, n);
		move_add(&m, n, 1, 1);
		part.d_at = at;
		part.d_stride = channels;
		rc = lower_value(l, (uint64_t)outer * k * n, NULL, &part.a);
		if (!rc)
			rc = lower_move(l, c->a, part.a, 1, &m);
		if (!rc)
			rc = mean_window(l, &part, outer, h, w, n);
	}
	return rc;
}

/* [outer][k][c] -> [outer][c]: each of c channels sums k pixels. */
static int mean_pixels(struct lowered *l, struct conv *c, uint32_t outer, uint32_t k,
		       uint32_t channels)
{
	uint32_t h, w;

	if (!split_kernel(k, &h, &w))
		return mean_dense(l, c, 1, 1, outer, k, channels);
	if (!c->wide && k <= MEAN_INPUT_MAX && (uint64_t)k * channels > MEAN_INPUT_MAX)
		return mean_parts(l, c, outer, h, w, channels);
	return mean_window(l, c, outer, h, w, channels);
}

/* The same, each channel for itself, with windows of k2 pixels side by side. */
static int mean_cross(struct lowered *l, struct conv *c, uint32_t outer, uint32_t k1,
		      uint32_t rows, uint32_t k2, uint32_t channels)
{
	if (k1 > KERNEL_MAX || k2 > CONV_STRIDE_MAX || (uint64_t)rows * k2 > 65535 ||
	    channels == 1)
		return mean_dense(l, c, outer, k1, rows, k2, channels);
	c->w.images = outer;
	c->w.c = c->n = c->groups = channels;
	c->w.y = (struct axis){k1, 1, k1, 1, 1, 0};
	c->w.x = (struct axis){rows * k2, rows, k2, k2, 1, 0};
	c->data = ones(l, (uint64_t)k1 * k2 * channels);
	return c->data ? conv_steps(l, c) : -ENOTSUP;
}

static int mean_by_runs(struct lowered *l, struct conv *c, const struct runs *r)
{
	uint32_t first = r->count && !r->run[0].reduced; /* an outer run that is kept */
	uint32_t outer = first ? r->run[0].size : 1;
	uint32_t size[4] = {1, 1, 1, 1}, rest = r->count - first;

	for (uint32_t i = 0; i < rest && i < 4; i++)
		size[i] = r->run[first + i].size;
	switch (rest) {
	case 0:
	case 1:
		return mean_row(l, c, outer, size[0]);
	case 2:
		return mean_pixels(l, c, outer, size[0], size[1]);
	case 3:
	case 4:
		return mean_cross(l, c, outer, size[0], size[1], size[2], size[3]);
	default:
		return lower_fail(l, ENOTSUP,
				  "a mean over axes with more than one group of other "
				  "axes between them");
	}
}

int lower_mean(struct lowered *l)
{
	struct conv c = {0};
	struct runs r = {0};
	bool scaled = false;
	uint64_t count;
	int rc = lower_counts(l, 2, 2);

	if (!rc && lower_op(l)->output_count != 1)
		rc = lower_fail(l, EINVAL, "%u outputs; exactly 1",
				lower_op(l)->output_count);
	if (!rc)
		rc = lower_moved(l, 0, &c.a);
	if (!rc)
		rc = lower_plain_result(l, 0, c.a, &c.d);
	if (!rc)
		scaled = lower_t(l, c.a)->scales && lower_t(l, c.d)->scales;
	if (!rc && npuc_type_bytes(lower_t(l, c.a)->type) != 1)
		scaled = true; /* and refused unless it is int16 */
	if (!rc && scaled)
		rc = conv_operands(l, &c, 0);
	if (!rc && scaled)
		rc = lower_same_type(l, c.a, c.d);
	c.int32 = c.wide;
	if (!rc)
		rc = lower_runs(l, c.a, c.d, &r);
	if (rc)
		return rc;
	count = 1;
	for (uint32_t i = 0; i < r.count; i++)
		count *= r.run[i].reduced ? r.run[i].size : 1;
	snprintf(l->shapes[l->layer], sizeof(l->shapes[0]), "%llu -> %llu",
		 (unsigned long long)lower_t(l, c.a)->count,
		 (unsigned long long)lower_t(l, c.d)->count);
	/* Without one of the scales the multiplier is 0. */
	if (!scaled && (lower_t(l, c.d)->zero_point < quant_min(lower_t(l, c.d)->type) ||
			lower_t(l, c.d)->zero_point > quant_max(lower_t(l, c.d)->type)))
		return lower_fail(l, EINVAL,
				  "tensor '%.80s': zero point %d is not a valid %s",
				  lower_t(l, c.d)->name, lower_t(l, c.d)->zero_point,
				  npuc_type_name(lower_t(l, c.d)->type));
	if (!scaled)
		return lower_fill(l, c.d, 1, lower_t(l, c.d)->zero_point);
	lower_macs(l, lower_t(l, c.a)->count);
	rc = mean_requant(l, &c, count);
	return rc ? rc : mean_by_runs(l, &c, &r);
}

/* ---- pools ------------------------------------------------------------------------ */

static int pool16(struct lowered *l, uint32_t a, uint32_t d, const struct window *w,
		  int32_t min, int32_t max)
{
	struct conv c = {.w = *w,
			 .n = w->c,
			 .groups = w->c,
			 .a = a,
			 .d = d,
			 .out = {.min = min, .max = max}};

	if (w->y.k > KERNEL_MAX || w->x.k > KERNEL_MAX)
		return lower_fail(l, ENOTSUP,
				  "a window of %u x %u; at most %u x %u is supported",
				  w->y.k, w->x.k, KERNEL_MAX, KERNEL_MAX);
	if (lower_op(l)->code == NPUC_MAX_POOL_2D)
		return wide_max_pool(l, a, d, w, min, max);
	c.data = ones(l, (uint64_t)w->y.k * w->x.k * w->c);
	return c.data ? int16_average(l, &c) : -ENOTSUP;
}

int lower_pool(struct lowered *l)
{
	struct window w = {0};
	uint32_t a, d, padding = lower_option_u8(l, OPTIONS_POOL, CONV_PADDING);
	int32_t min, max;
	int rc = lower_counts(l, 1, 1);

	if (!rc)
		rc = lower_operand16(l, 0, &a);
	if (!rc)
		rc = lower_result16(l, &d);
	if (!rc)
		rc = lower_same_quant(l, a, d);
	if (!rc)
		rc = conv_image(l, a, &w);
	if (rc)
		return rc;
	w.y.k = (uint32_t)lower_option(l, OPTIONS_POOL, POOL_HEIGHT, 0);
	w.x.k = (uint32_t)lower_option(l, OPTIONS_POOL, POOL_WIDTH, 0);
	w.y.stride = (uint32_t)lower_option(l, OPTIONS_POOL, CONV_STRIDE_H, 0);
	w.x.stride = (uint32_t)lower_option(l, OPTIONS_POOL, CONV_STRIDE_W, 0);
	w.y.dilation = w.x.dilation = 1;
	rc = axis_out(l, "rows", &w.y, padding);
	if (!rc)
		rc = axis_out(l, "columns", &w.x, padding);
	if (!rc)
		rc = lower_dims(l, d, 4, (uint32_t[]){w.images, w.y.out, w.x.out, w.c});
	if (!rc)
		rc = lower_range(l, lower_option_u8(l, OPTIONS_POOL, POOL_ACT), d, &min,
				 &max);
	if (!rc)
		rc = check_window(l, &w, 0);
	if (rc)
		return rc;
	conv_describe(l, &w, w.c);
	if (lower_t(l, a)->type == NPUC_INT16)
		return pool16(l, a, d, &w, min, max);
	simplify(&w.y);
	simplify(&w.x);
	for (uint32_t i = 0; i < w.images; i++) {
		struct step *s =
			lower_step(l,
				   lower_op(l)->code == NPUC_MAX_POOL_2D ? STEP_MAXPOOL
									 : STEP_AVGPOOL,
				   a, NPUC_NONE, d);

		if (!s)
			return -ENOMEM;
		s->u.pool = (struct hal_npu_pool){
			.size = (uint32_t)sizeof(s->u.pool),
			.h = w.y.in,
			.w = w.x.in,
			.c = w.c,
			.oh = w.y.out,
			.ow = w.x.out,
			.kh = w.y.k,
			.kw = w.x.k,
			.stride_h = w.y.stride,
			.stride_w = w.x.stride,
			.pad_top = w.y.pad,
			.pad_left = w.x.pad,
			.a.offset = i * w.y.in * w.x.in * w.c,
			.d.offset = i * w.y.out * w.x.out * w.c,
			.min = min,
			.max = max,
			.flags = lower_u8(l, a, HAL_NPU_A_UINT8 | HAL_NPU_D_UINT8),
		};
	}
	return 0;
}
