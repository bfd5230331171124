/* SPDX-License-Identifier: Apache-2.0 */
/* operators.c - operators that compute: convolutions, products, sums, averages. */
#include "build.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Paddings of the schema. */
#define SAME       0
#define VALID      1

#define JOINED_MAX (UINT64_C(16) << 20) /* bytes of weights whose groups are joined */

/* ---- signals ----------------------------------------------------------------------- */

/* A value as N, C, H, W: a signal, N, C, L, is an image of one row. */
static struct value as_image(const struct value *v)
{
	struct value image = *v;

	if (v->rank == 3) {
		image.rank = 4;
		image.dims[2] = 1;
		image.dims[3] = v->dims[2];
	}
	return image;
}

static bool are_images(const struct value *x, const struct value *w)
{
	return x->rank == w->rank && (x->rank == 3 || x->rank == 4);
}

/* An attribute of count numbers for images: of rows, columns, and so on. */
static void read_sides(struct build *b, const char *name, int64_t *to, uint32_t count)
{
	bool signal = value_of(b, &b->u->in[0])->rank == 3;
	int64_t list[4];
	uint32_t got = graph_ints(b->g, op_of(b), name, list, signal ? count / 2 : count);

	for (uint32_t i = 0; i < got; i++)
		to[signal ? 2 * i + 1 : i] = list[i];
}

static int image_tensor(struct build *b, const struct operand *o, struct quant q,
			uint32_t *tensor)
{
	const struct value image = as_image(value_of(b, o));
	int32_t dims[PLUGIN_RANK];

	model_dims(&image, true, dims);
	return model_tensor(b, NPUC_INT8, 4, dims, q, NULL, 0, tensor);
}

/* The first operand as N, H, W, C. */
static int use_image(struct build *b, struct quant q, uint32_t *tensor)
{
	const struct operand *o = &b->u->in[0];
	const struct value image = as_image(value_of(b, o));
	int32_t dims[PLUGIN_RANK];
	uint32_t from;
	int rc = model_use(b, o, true, q, tensor);

	if (rc || value_of(b, o)->rank == 4)
		return rc;
	from = *tensor;
	model_dims(&image, true, dims);
	rc = image_tensor(b, o, q, tensor);
	return rc ? rc : model_reshape(b, from, *tensor, 4, dims);
}

/* Begin with the result of an operator that computes N, H, W, C with q into tensor, and
 * end it. */
static int begin_image(struct build *b, struct quant q, struct result *r,
		       uint32_t *tensor)
{
	int rc = model_begin(b, true, q, r);

	*tensor = r->tensor;
	if (rc || value_of(b, &b->u->out)->rank == 4)
		return rc;
	return image_tensor(b, &b->u->out, q, tensor);
}

static int end_image(struct build *b, const struct result *r, uint32_t tensor)
{
	const struct value *y = value_of(b, &b->u->out);
	int32_t dims[PLUGIN_RANK];
	int rc = 0;

	model_dims(y, true, dims);
	if (tensor != r->tensor)
		rc = model_reshape(b, tensor, r->tensor, y->rank, dims);
	return rc ? rc : model_end(b, r);
}

/* ---- windows ----------------------------------------------------------------------- */

struct window {
	int64_t k[2], stride[2], dilation[2], pad[4]; /* top, left, bottom, right */
};

/* Rows and columns that the last window lacks, or has too many. */
static int64_t missing(const struct window *w, uint32_t axis, int64_t in, int64_t out)
{
	return (out - 1) * w->stride[axis] + (w->k[axis] - 1) * w->dilation[axis] + 1 -
	       in - w->pad[axis];
}

static int read_window(struct build *b, struct window *w)
{
	const struct node *n = op_of(b);
	const struct value x = as_image(value_of(b, &b->u->in[0]));
	const struct value y = as_image(value_of(b, &b->u->out));
	char automatic[16] = "";

	w->stride[0] = w->stride[1] = w->dilation[0] = w->dilation[1] = 1;
	read_sides(b, "strides", w->stride, 2);
	read_sides(b, "dilations", w->dilation, 2);
	read_sides(b, "pads", w->pad, 4);
	(void)graph_string(b->g, n, "auto_pad", automatic, sizeof(automatic));
	for (uint32_t i = 0; i < 2; i++) {
		int64_t in = x.dims[2 + i], out = y.dims[2 + i], all;

		if (w->stride[i] < 1 || w->dilation[i] < 1 || w->k[i] < 1 ||
		    w->stride[i] > 65535 || w->dilation[i] > 65535 || w->k[i] > 65535)
			return model_refuse(b,
					    "strides, dilations or kernel are invalid");
		if (strncmp(automatic, "SAME", 4) == 0) {
			/* With ceil_mode ONNX's shapes have more than the runtime. */
			if (out != (in + w->stride[i] - 1) / w->stride[i])
				return model_refuse(b,
						    "its shape is not that of auto_pad");
			w->pad[i] = 0;
			all = missing(w, i, in, out);
			/* The runtime's pools start inside of the image then. */
			if (all < 0 && strstr(n->type, "Pool"))
				return model_refuse(b, "auto_pad would be negative");
			all = all < 0 ? 0 : all;
			w->pad[i] = strcmp(automatic, "SAME_LOWER") == 0 ? (all + 1) / 2
									 : all / 2;
			w->pad[2 + i] = all - w->pad[i];
		}
		if (w->pad[i] < 0 || w->pad[2 + i] < 0 || w->pad[i] > 65535 ||
		    w->pad[2 + i] > 65535)
			return model_refuse(b, "paddings are invalid");
		/* ceil_mode: a last window may go beyond the padding. */
		if (missing(w, i, in, out) > w->pad[2 + i])
			return model_refuse(b, "windows beyond the padding (ceil_mode)");
	}
	return 0;
}

/* Surround an image with a number; the windows are then all inside. */
static int add_border(struct build *b, const struct window *w, struct quant q,
		      int8_t number, uint32_t *tensor)
{
	const struct value x = as_image(value_of(b, &b->u->in[0]));
	const int32_t pairs[] = {0,
				 0,
				 (int32_t)w->pad[0],
				 (int32_t)w->pad[2],
				 (int32_t)w->pad[1],
				 (int32_t)w->pad[3],
				 0,
				 0};
	const int32_t one = 1;
	int32_t dims[PLUGIN_RANK];
	uint32_t in[3] = {*tensor, 0, 0};
	int rc;

	if (!w->pad[0] && !w->pad[1] && !w->pad[2] && !w->pad[3])
		return 0;
	model_dims(&x, true, dims);
	dims[1] += pairs[2] + pairs[3];
	dims[2] += pairs[4] + pairs[5];
	rc = model_tensor(b, NPUC_INT8, 4, dims, q, NULL, 0, tensor);
	if (!rc)
		rc = model_ints(b, pairs, 8, 1, &in[1]);
	if (!rc)
		rc = model_tensor(b, NPUC_INT8, 1, &one, q, &number, 1, &in[2]);
	return rc ? rc : model_op(b, CODE_PADV2, in, 3, *tensor, NULL, 0);
}

/* ---- weights ----------------------------------------------------------------------- */

/* Weights v in another order of dimensions. */
struct weights {
	const struct value *v;
	const uint32_t *order;
	const int32_t *dims; /* the model's */
	uint32_t rank, channel;
	bool byte; /* uint8 in the model, too */
};

/* Add weights that are quantized as the operand. */
static int add_weights(struct build *b, const struct operand *o, const struct weights *w,
		       uint32_t *tensor)
{
	const struct value *v = w->v;
	const int32_t zero = quant_of(b, o).zero + (w->byte ? 128 : 0);
	struct npuc_tensor_desc d = {.type = w->byte ? NPUC_UINT8 : NPUC_INT8,
				     .rank = w->rank,
				     .dims = w->dims,
				     .scales = o->scales,
				     .scale = o->scale,
				     .zero_points = zero != 0,
				     .zero_point = &zero,
				     .channel_dim = o->scales > 1 ? w->channel : 0,
				     .bytes = v->count};
	int8_t *data;
	int rc;

	if (!o->scale)
		return model_refuse(b, "weights '%.80s' are not quantized", v->name);
	if (o->scales > 1 && zero)
		return model_refuse(b,
				    "weights '%.80s' have zero point %d and a scale per "
				    "channel; the zero point must be %d",
				    v->name, o->zero,
				    v->type == ORT_TYPE_UINT8 ? 128 : 0);
	if (o->scales > 1 && (int32_t)o->scales != w->dims[w->channel])
		return model_refuse(b, "weights '%.80s' have %u scales for %d channels",
				    v->name, o->scales, w->dims[w->channel]);
	data = model_permuted(v, v->dims, v->rank, w->order);
	if (!data)
		return model_no_memory(b);
	for (uint64_t n = 0; w->byte && n < v->count; n++)
		data[n] = (int8_t)(data[n] ^ -128);
	d.data = data;
	rc = npuc_builder_tensor(b->b, &d, tensor, b->why);
	free(data);
	return rc;
}

/* The bias of a unit in steps of input times weights, of n channels.  Numbers in float32
 * are rounded to such; without a bias all are 0. */
static int add_bias(struct build *b, int32_t n, uint32_t *tensor)
{
	static const struct value none;
	const struct unit *u = b->u;
	const struct operand *w = &u->in[1];
	bool has = u->in_count > 2 && u->in[2].value != PLUGIN_NONE;
	const struct value *v = has ? value_of(b, &u->in[2]) : &none;
	float x = *u->in[0].scale, *scales;
	int32_t *numbers;
	int rc = 0;

	if (has && (!v->data || v->count != (uint64_t)n ||
		    (v->type != ORT_TYPE_INT32 && v->type != ORT_TYPE_FLOAT)))
		return model_refuse(b, "bias '%.80s' is no constant of %d numbers",
				    v->name, n);
	scales = malloc((size_t)n * sizeof(*scales));
	numbers = calloc((size_t)n, sizeof(*numbers));
	for (int32_t i = 0; scales && numbers && i < n; i++) {
		double real;

		scales[i] = x * w->scale[w->scales > 1 ? i : 0];
		if (!has)
			continue;
		if (v->type == ORT_TYPE_INT32) {
			numbers[i] = ((const int32_t *)v->data)[i];
			continue;
		}
		real = rint((double)((const float *)v->data)[i] / (double)scales[i]);
		if (!(fabs(real) < 2147483647))
			rc = model_refuse(b, "bias '%.80s' is too large", v->name);
		numbers[i] = rc ? 0 : (int32_t)real;
	}
	if (!scales || !numbers)
		rc = model_no_memory(b);
	if (!rc) {
		const struct npuc_tensor_desc d = {.type = NPUC_INT32,
						   .rank = 1,
						   .dims = &n,
						   .scales = w->scales,
						   .scale = scales,
						   .data = numbers,
						   .bytes = (uint64_t)n * 4};

		rc = npuc_builder_tensor(b->b, &d, tensor, b->why);
	}
	free(scales);
	free(numbers);
	return rc;
}

/* ---- operators --------------------------------------------------------------------- */

/* An image with its border as uint8: its numbers and zero point are 128 more. */
static int use_bytes(struct build *b, const struct window *w, struct quant q,
		     uint32_t *tensor)
{
	const struct value x = as_image(value_of(b, &b->u->in[0]));
	uint32_t from = *tensor;
	int32_t dims[PLUGIN_RANK];
	int rc;

	model_dims(&x, true, dims);
	dims[1] += (int32_t)(w->pad[0] + w->pad[2]);
	dims[2] += (int32_t)(w->pad[1] + w->pad[3]);
	q.zero += 128;
	rc = model_tensor(b, NPUC_UINT8, 4, dims, q, NULL, 0, tensor);
	return rc ? rc : model_op(b, CODE_QUANTIZE, &from, 1, *tensor, NULL, 0);
}

/* A tensor for the result as uint8. */
static int begin_bytes(struct build *b, uint32_t *tensor)
{
	const struct value y = as_image(value_of(b, &b->u->out));
	struct quant q = quant_of(b, &b->u->out);
	int32_t dims[PLUGIN_RANK];

	model_dims(&y, true, dims);
	q.zero += 128;
	return model_tensor(b, NPUC_UINT8, 4, dims, q, NULL, 0, tensor);
}

int build_conv(struct build *b)
{
	static const uint32_t order[] = {0, 2, 3, 1}, deep[] = {1, 2, 3, 0};
	const struct unit *u = b->u;
	const struct value x = as_image(value_of(b, &u->in[0]));
	const struct value w = as_image(value_of(b, &u->in[1]));
	struct quant q = quant_of(b, &u->in[0]);
	struct window win = {0};
	/* The schema has zero points of weights for uint8 alone. */
	bool depthwise, byte = quant_of(b, &u->in[1]).zero != 0;
	uint32_t in[3] = {0}, out, to;
	int64_t group = 1;
	struct result r;
	int32_t dims[4];
	int rc;

	if (!are_images(value_of(b, &u->in[0]), value_of(b, &u->in[1])))
		return model_refuse(b, "%u dimensions; only 3 and 4 are supported",
				    x.rank);
	if (!w.data)
		return model_refuse(b, "weights '%.80s' are not constant", w.name);
	if (u->in[1].axis != PLUGIN_NONE && u->in[1].scales > 1 && u->in[1].axis != 0)
		return model_refuse(
			b, "weights '%.80s' have scales along another axis than 0",
			w.name);
	(void)graph_int(b->g, op_of(b), "group", &group);
	win.k[0] = w.dims[2];
	win.k[1] = w.dims[3];
	rc = read_window(b, &win);
	depthwise = group > 1 && group == x.dims[1] && w.dims[1] == 1;
	for (uint32_t i = 0; i < 4; i++)
		dims[i] = w.dims[depthwise ? deep[i] : order[i]];
	if (!rc)
		rc = use_image(b, q, &in[0]);
	if (!rc)
		rc = add_border(b, &win, q, (int8_t)q.zero, &in[0]);
	if (!rc)
		rc = add_weights(b, &u->in[1],
				 &(struct weights){&w, depthwise ? deep : order, dims, 4,
						   depthwise ? 3 : 0, byte},
				 &in[1]);
	if (!rc)
		rc = add_bias(b, w.dims[0], &in[2]);
	if (!rc)
		rc = begin_image(b, quant_of(b, &u->out), &r, &out);
	if (!rc && byte)
		rc = use_bytes(b, &win, q, &in[0]);
	to = out;
	if (!rc && byte)
		rc = begin_bytes(b, &to);
	if (!rc) {
		const struct npuc_attr attrs[] = {
			int_attr("padding", VALID),
			int_attr("stride_h", win.stride[0]),
			int_attr("stride_w", win.stride[1]),
			int_attr("dilation_h_factor", win.dilation[0]),
			int_attr("dilation_w_factor", win.dilation[1]),
			int_attr("fused_activation_function", u->act),
			int_attr("depth_multiplier", w.dims[0] / x.dims[1]),
		};

		rc = model_op(b, depthwise ? CODE_DEPTHWISE_CONV_2D : CODE_CONV_2D, in, 3,
			      to, attrs, depthwise ? 7 : 6);
	}
	if (!rc && byte)
		rc = model_op(b, CODE_QUANTIZE, &to, 1, out, NULL, 0);
	return rc ? rc : end_image(b, &r, out);
}

/* Gemm and MatMul with constant weights. */
static int build_connected(struct build *b, bool gemm)
{
	static const uint32_t plain[] = {0, 1}, turned[] = {1, 0};
	const struct unit *u = b->u;
	const struct value *x = value_of(b, &u->in[0]), *w = value_of(b, &u->in[1]);
	int64_t trans_a = 0, trans_b = 0;
	float alpha = 1, beta = 1;
	uint32_t in[3] = {0};
	int32_t dims[2];
	struct result r;
	int rc;

	if (gemm) {
		(void)graph_int(b->g, op_of(b), "transA", &trans_a);
		(void)graph_int(b->g, op_of(b), "transB", &trans_b);
		(void)graph_float(b->g, op_of(b), "alpha", &alpha);
		(void)graph_float(b->g, op_of(b), "beta", &beta);
	}
	if (trans_a || alpha != 1 || beta != 1)
		return model_refuse(b, "transA, alpha or beta");
	if (x->rank < 2 || w->rank != 2)
		return model_refuse(b, "%u and %u dimensions are not supported", x->rank,
				    w->rank);
	if (u->in[1].axis != PLUGIN_NONE && u->in[1].scales > 1 &&
	    u->in[1].axis != (trans_b ? 0 : 1))
		return model_refuse(b, "weights '%.80s' have scales along the inputs",
				    w->name);
	dims[0] = w->dims[trans_b ? 0 : 1];
	dims[1] = w->dims[trans_b ? 1 : 0];
	rc = model_use(b, &u->in[0], false, quant_of(b, &u->in[0]), &in[0]);
	if (!rc)
		rc = add_weights(b, &u->in[1],
				 &(struct weights){.v = w,
						   .order = trans_b ? plain : turned,
						   .dims = dims,
						   .rank = 2},
				 &in[1]);
	if (!rc)
		rc = add_bias(b, dims[0], &in[2]);
	if (!rc)
		rc = model_begin(b, false, quant_of(b, &u->out), &r);
	if (!rc) {
		const struct npuc_attr attrs[] = {
			int_attr("fused_activation_function", u->act),
			int_attr("keep_num_dims", x->rank != 2)};

		rc = model_op(b, CODE_FULLY_CONNECTED, in, 3, r.tensor, attrs, 2);
	}
	return rc ? rc : model_end(b, &r);
}

int build_matmul(struct build *b)
{
	const struct unit *u = b->u;
	const struct value *w = value_of(b, &u->in[1]);
	uint32_t in[2];
	struct result r;
	int rc = 0;

	if (w->data && w->rank == 2 && !value_of(b, &u->in[0])->data)
		return build_connected(b, false);
	if (u->act)
		return model_refuse(b,
				    "an activation after a product of two activations");
	for (uint32_t i = 0; !rc && i < 2; i++) {
		const struct operand *o = &u->in[i];

		rc = value_of(b, o)->data
			     ? model_constant(b, o, value_of(b, o)->rank, false, &in[i])
			     : model_use(b, o, false, quant_of(b, o), &in[i]);
	}
	if (!rc)
		rc = model_begin(b, false, quant_of(b, &u->out), &r);
	if (!rc)
		rc = model_op(b, CODE_BATCH_MATMUL, in, 2, r.tensor, NULL, 0);
	return rc ? rc : model_end(b, &r);
}

int build_gemm(struct build *b)
{
	if (!value_of(b, &b->u->in[1])->data)
		return model_refuse(b, "the second operand is not constant");
	return build_connected(b, true);
}

static int build_pair(struct build *b, uint32_t code)
{
	const struct unit *u = b->u;
	uint32_t rank = value_of(b, &u->out)->rank, in[2];
	bool nhwc = true, any = false;
	struct result r;
	int rc = 0;

	for (uint32_t i = 0; i < 2; i++) {
		const struct value *v = value_of(b, &u->in[i]);

		any |= !v->data && model_prefers_nhwc(b, &u->in[i]);
		nhwc &= v->data || v->rank == rank;
	}
	nhwc &= any;
	for (uint32_t i = 0; !rc && i < 2; i++)
		rc = value_of(b, &u->in[i])->data
			     ? model_constant(b, &u->in[i], rank, nhwc, &in[i])
			     : model_use(b, &u->in[i], nhwc, quant_of(b, &u->in[i]),
					 &in[i]);
	if (!rc)
		rc = model_begin(b, nhwc, quant_of(b, &u->out), &r);
	if (!rc) {
		const struct npuc_attr attr =
			int_attr("fused_activation_function", u->act);

		rc = model_op(b, code, in, 2, r.tensor, &attr, 1);
	}
	return rc ? rc : model_end(b, &r);
}

int build_add(struct build *b)
{
	return build_pair(b, CODE_ADD);
}

int build_sub(struct build *b)
{
	return build_pair(b, CODE_SUB);
}

int build_mul(struct build *b)
{
	return build_pair(b, CODE_MUL);
}

/* Return whether the padding is that of SAME in the schema, which an average does not
 * count. */
static bool is_same(const struct build *b, const struct window *w)
{
	const struct value x = as_image(value_of(b, &b->u->in[0]));
	const struct value y = as_image(value_of(b, &b->u->out));

	for (uint32_t i = 0; i < 2; i++) {
		int64_t in = x.dims[2 + i], out = y.dims[2 + i];
		int64_t all = (out - 1) * w->stride[i] + w->k[i] - in;

		all = all < 0 ? 0 : all;
		if (out != (in + w->stride[i] - 1) / w->stride[i] || w->pad[i] != all / 2)
			return false;
	}
	return true;
}

static int build_pool(struct build *b, bool max)
{
	const struct unit *u = b->u;
	const struct value *x = value_of(b, &u->in[0]);
	struct quant q = any_quant(b, &u->in[0]);
	struct window w = {.k = {x->rank == 3, 0}};
	int64_t all = 0, last = 0;
	bool border, same = false;
	uint32_t in, out;
	struct result r;
	int rc;

	(void)graph_int(b->g, op_of(b), "count_include_pad", &all);
	(void)graph_int(b->g, op_of(b), "channels_last", &last);
	if (!are_images(x, value_of(b, &u->out)) || last)
		return model_refuse(b, "only N, C, H, W and N, C, L are supported");
	read_sides(b, "kernel_shape", w.k, 2);
	rc = read_window(b, &w);
	if (!rc && (w.dilation[0] != 1 || w.dilation[1] != 1))
		rc = model_refuse(b, "windows with holes (dilations)");
	border = max || all;
	if (!rc && !border && is_same(b, &w))
		same = true;
	else if (!rc && !border && (w.pad[0] || w.pad[1] || w.pad[2] || w.pad[3]))
		rc = model_refuse(b, "an average that does not count this padding");
	if (!rc)
		rc = use_image(b, q, &in);
	if (!rc && border)
		rc = add_border(b, &w, q, (int8_t)(max ? -128 : q.zero), &in);
	if (!rc)
		rc = begin_image(b, q, &r, &out);
	if (!rc) {
		const struct npuc_attr attrs[] = {
			int_attr("padding", same ? SAME : VALID),
			int_attr("stride_h", w.stride[0]),
			int_attr("stride_w", w.stride[1]),
			int_attr("filter_height", w.k[0]),
			int_attr("filter_width", w.k[1]),
			int_attr("fused_activation_function", u->act),
		};

		rc = model_op(b, max ? CODE_MAX_POOL_2D : CODE_AVERAGE_POOL_2D, &in, 1,
			      out, attrs, 6);
	}
	return rc ? rc : end_image(b, &r, out);
}

int build_max_pool(struct build *b)
{
	return build_pool(b, true);
}

int build_average_pool(struct build *b)
{
	return build_pool(b, false);
}

/* The mean over axes of a mask, which stay as 1 or go. */
static int build_mean_of(struct build *b, uint32_t mask, bool keep)
{
	const struct unit *u = b->u;
	const struct npuc_attr attr = int_attr("keep_dims", keep);
	uint32_t rank = value_of(b, &u->in[0])->rank, count = 0, in[2];
	uint32_t after = ((1u << rank) - 1) & ~3u; /* the axes after the channels */
	bool nhwc = model_prefers_nhwc(b, &u->in[0]);
	int32_t axes[PLUGIN_RANK];
	struct result r;
	int rc;

	/* What is left when axes go must be in the graph's order. */
	nhwc &= keep || mask & 2 || (mask & after) == after;
	for (uint32_t i = 0; i < rank; i++)
		if (mask >> i & 1)
			axes[count++] = (int32_t)model_axis(i, rank, nhwc);
	rc = model_use(b, &u->in[0], nhwc, quant_of(b, &u->in[0]), &in[0]);
	if (!rc)
		rc = model_ints(b, axes, count, 0, &in[1]);
	if (!rc)
		rc = model_begin(b, keep && nhwc, quant_of(b, &u->out), &r);
	if (!rc)
		rc = model_op(b, CODE_MEAN, in, 2, r.tensor, &attr, 1);
	return rc ? rc : model_end(b, &r);
}

int build_global_pool(struct build *b)
{
	uint32_t rank = value_of(b, &b->u->in[0])->rank;
	int64_t last = 0;

	(void)graph_int(b->g, op_of(b), "channels_last", &last);
	if (rank < 3 || last)
		return model_refuse(b, "only N, C, H, W and N, C, L are supported");
	return build_mean_of(b, ((1u << rank) - 1) & ~3u, true);
}

/* Read axes as a mask: an attribute, since opset 18 an input; without them it is all. */
static int read_axes(struct build *b, uint32_t rank, uint32_t *mask)
{
	const struct node *n = op_of(b);
	int64_t axes[PLUGIN_RANK], none = 0;
	uint32_t count = graph_ints(b->g, n, "axes", axes, PLUGIN_RANK);

	if (!count && n->in_count > 1 && n->in[1] != PLUGIN_NONE) {
		const struct value *v = &b->g->values[n->in[1]];

		if (!v->data || v->type != ORT_TYPE_INT64 || v->count > PLUGIN_RANK)
			return model_refuse(b, "its axes are not constant");
		count = (uint32_t)v->count;
		memcpy(axes, v->data, count * sizeof(*axes));
	}
	(void)graph_int(b->g, n, "noop_with_empty_axes", &none);
	if (!count && none)
		return model_refuse(b, "a mean over no axes");
	*mask = count ? 0 : (1u << rank) - 1;
	for (uint32_t i = 0; i < count; i++) {
		axes[i] += axes[i] < 0 ? rank : 0;
		if (axes[i] < 0 || axes[i] >= rank)
			return model_refuse(b, "an axis does not exist");
		*mask |= 1u << axes[i];
	}
	return 0;
}

int build_mean(struct build *b)
{
	uint32_t rank = value_of(b, &b->u->in[0])->rank, mask = 0;
	int64_t keep = 1;
	int rc = read_axes(b, rank, &mask);

	(void)graph_int(b->g, op_of(b), "keepdims", &keep);
	if (!rc && !rank)
		return model_refuse(b, "a mean of one number");
	return rc ? rc : build_mean_of(b, mask, keep != 0);
}

int build_softmax(struct build *b)
{
	const struct unit *u = b->u;
	const struct value *x = value_of(b, &u->in[0]);
	const struct quant made = {1.0f / 256, -128};
	const struct npuc_attr attr = {.name = "beta", .f = 1};
	int64_t axis = -1;
	struct result r;
	uint32_t in;
	bool nhwc;
	int rc;

	(void)graph_int(b->g, op_of(b), "axis", &axis);
	if (axis < 0)
		axis += x->rank;
	nhwc = x->rank == 4 && axis == 1;
	if (axis + 1 != x->rank && !nhwc)
		return model_refuse(b, "axis %lld of %u; only the last is supported",
				    (long long)axis, x->rank);
	rc = model_use(b, &u->in[0], nhwc, quant_of(b, &u->in[0]), &in);
	if (!rc)
		rc = model_begin(b, nhwc, made, &r);
	if (!rc)
		rc = model_op(b, CODE_SOFTMAX, &in, 1, r.tensor, &attr, 1);
	return rc ? rc : model_end(b, &r);
}

/* Cut the padding from the whole result of a transposed convolution. */
static int cut_border(struct build *b, const struct window *w, uint32_t from,
		      const int32_t *full)
{
	const struct value y = as_image(value_of(b, &b->u->out));
	const int32_t begin[] = {0, (int32_t)w->pad[0], (int32_t)w->pad[1], 0};
	const int32_t end[] = {y.dims[0], begin[1] + y.dims[2], begin[2] + y.dims[3],
			       y.dims[1]};
	const int32_t step[] = {1, 1, 1, 1};
	struct result r;
	uint32_t to;
	int rc;

	if (end[1] > full[1] || end[2] > full[2])
		return model_refuse(b, "output_padding beyond the padding");
	rc = begin_image(b, quant_of(b, &b->u->out), &r, &to);
	if (!rc)
		rc = model_slice(b, from, begin, end, step, 4, to);
	return rc ? rc : end_image(b, &r, to);
}

/* Weights in groups become those of one: 0 from the inputs of a group to the results of
 * others.  The schema has no groups here.  The memory is the graph's. */
static int join_groups(struct build *b, int64_t group, struct value *w)
{
	uint64_t in = (uint64_t)w->dims[0];
	uint64_t some = w->count / in, count;
	uint8_t *data;

	if (group == 1)
		return 0;
	if (group < 1 || in % (uint64_t)group)
		return model_refuse(b, "%lld groups of %d channels", (long long)group,
				    w->dims[0]);
	if (b->u->in[1].scales > 1)
		return model_refuse(b, "weights in groups have a scale per channel");
	count = w->count * (uint64_t)group;
	if (count > JOINED_MAX)
		return model_refuse(b, "weights of %lld groups are too large",
				    (long long)group);
	data = pool_alloc(&b->g->pool, count, 1);
	if (!data)
		return model_no_memory(b);
	memset(data, w->type == ORT_TYPE_UINT8 ? 128 : 0, count);
	for (uint64_t i = 0; i < in; i++) {
		uint64_t at = i / (in / (uint64_t)group);

		memcpy(data + (i * (uint64_t)group + at) * some,
		       (const uint8_t *)w->data + i * some, some);
	}
	w->dims[1] *= (int32_t)group;
	w->count = count;
	w->data = data;
	return 0;
}

int build_conv_transpose(struct build *b)
{
	static const uint32_t order[] = {1, 2, 3, 0};
	const struct unit *u = b->u;
	const struct value x = as_image(value_of(b, &u->in[0]));
	struct value w = as_image(value_of(b, &u->in[1]));
	struct window win = {.stride = {1, 1}, .dilation = {1, 1}};
	char automatic[16] = "";
	uint32_t in[4], full;
	int64_t group = 1;
	int32_t dims[4], size[4];
	int rc;

	if (!are_images(value_of(b, &u->in[0]), value_of(b, &u->in[1])) || !w.data)
		return model_refuse(b, "only images with constant weights are supported");
	(void)graph_int(b->g, op_of(b), "group", &group);
	read_sides(b, "strides", win.stride, 2);
	read_sides(b, "dilations", win.dilation, 2);
	read_sides(b, "pads", win.pad, 4);
	(void)graph_string(b->g, op_of(b), "auto_pad", automatic, sizeof(automatic));
	if (win.dilation[0] != 1 || win.dilation[1] != 1 ||
	    (automatic[0] && strcmp(automatic, "NOTSET") != 0))
		return model_refuse(b, "dilations or auto_pad");
	if (u->in[1].scales > 1 && u->in[1].axis != 1)
		return model_refuse(
			b, "weights '%.80s' have scales along another axis than 1",
			w.name);
	for (uint32_t i = 0; i < 2; i++)
		if (win.stride[i] < 1 || win.stride[i] > 255 || win.pad[i] < 0 ||
		    win.pad[i] > 65535)
			return model_refuse(b, "strides or paddings are invalid");
	if (quant_of(b, &u->in[1]).zero)
		return model_refuse(
			b, "weights '%.80s' have zero point %d; it must be %d", w.name,
			u->in[1].zero, w.type == ORT_TYPE_UINT8 ? 128 : 0);
	rc = join_groups(b, group, &w);
	if (rc)
		return rc;
	for (uint32_t i = 0; i < 4; i++)
		dims[i] = w.dims[order[i]];
	size[0] = x.dims[0];
	size[1] = (x.dims[2] - 1) * (int32_t)win.stride[0] + w.dims[2];
	size[2] = (x.dims[3] - 1) * (int32_t)win.stride[1] + w.dims[3];
	size[3] = w.dims[1];
	rc = model_ints(b, size, 4, 0, &in[0]);
	if (!rc)
		rc = add_weights(
			b, &u->in[1],
			&(struct weights){
				.v = &w, .order = order, .dims = dims, .rank = 4},
			&in[1]);
	if (!rc)
		rc = use_image(b, quant_of(b, &u->in[0]), &in[2]);
	if (!rc)
		rc = add_bias(b, w.dims[1], &in[3]);
	if (!rc)
		rc = model_tensor(b, NPUC_INT8, 4, size, quant_of(b, &u->out), NULL, 0,
				  &full);
	if (!rc) {
		const struct npuc_attr attrs[] = {int_attr("padding", VALID),
						  int_attr("stride_h", win.stride[0]),
						  int_attr("stride_w", win.stride[1])};

		rc = model_op(b, CODE_TRANSPOSE_CONV, in, 4, full, attrs, 3);
	}
	return rc ? rc : cut_border(b, &win, full, size);
}
