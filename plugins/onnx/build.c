/* SPDX-License-Identifier: Apache-2.0 */
/* build.c - units become operators of TensorFlow Lite's schema.
 *
 * All tensors of the model are int8: uint8 less 128.  Images are N, H, W, C where an
 * operator needs them so, and the host turns them at the edges of the partition. */
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugin.h"

enum code {
	CODE_ADD = 0,
	CODE_AVERAGE_POOL_2D = 1,
	CODE_CONCATENATION = 2,
	CODE_CONV_2D = 3,
	CODE_DEPTHWISE_CONV_2D = 4,
	CODE_DEPTH_TO_SPACE = 5,
	CODE_FULLY_CONNECTED = 9,
	CODE_MAX_POOL_2D = 17,
	CODE_MUL = 18,
	CODE_RESHAPE = 22,
	CODE_RESIZE_BILINEAR = 23,
	CODE_SOFTMAX = 25,
	CODE_SPACE_TO_DEPTH = 26,
	CODE_TRANSPOSE = 39,
	CODE_MEAN = 40,
	CODE_SUB = 41,
	CODE_STRIDED_SLICE = 45,
	CODE_MAXIMUM = 55,
	CODE_MINIMUM = 57,
	CODE_PADV2 = 60,
	CODE_TRANSPOSE_CONV = 67,
	CODE_RESIZE_NEAREST = 97,
	CODE_QUANTIZE = 114,
	CODE_BATCH_MATMUL = 126,
};

#define VALID 1

/* Numbers of a tensor: real = scale * (q - zero), of int8; scale 0: not known. */
struct quant {
	float scale;
	int32_t zero;
};

/* A tensor of the model that has a value of the graph. */
struct made {
	uint32_t value, tensor, rank;
	int32_t dims[PLUGIN_RANK]; /* as the model has them */
	bool nhwc;
	struct quant q;
};

struct build {
	struct graph *g;
	struct npuc_builder *b;
	char *why;
	const struct unit *u; /* in work */
	uint32_t made_count, made_room;
	struct made *made;
	struct built *out;
	uint32_t *in_tensors;
};

__attribute__((format(printf, 2, 3))) static int refuse(struct build *b,
							const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(b->why, PLUGIN_WHY, format, args);
	va_end(args);
	return -ENOTSUP;
}

static int no_memory(struct build *b)
{
	snprintf(b->why, PLUGIN_WHY, "out of memory");
	return -ENOMEM;
}

static const struct value *value_of(const struct build *b, const struct operand *o)
{
	return &b->g->values[o->value];
}

static const struct node *op_of(const struct build *b)
{
	return &b->g->nodes[b->u->op];
}

static struct quant quant_of(const struct build *b, const struct operand *o)
{
	bool byte = value_of(b, o)->type == ORT_TYPE_UINT8;

	if (!o->scale)
		return (struct quant){0};
	return (struct quant){*o->scale, o->zero - (byte ? 128 : 0)};
}

static bool same_quant(struct quant a, struct quant b)
{
	return a.scale == b.scale && a.zero == b.zero;
}

/* ---- tensors ----------------------------------------------------------------------- */

static int add_tensor(struct build *b, enum npuc_type type, uint32_t rank,
		      const int32_t *dims, struct quant q, const void *data,
		      uint64_t bytes, uint32_t *tensor)
{
	const struct npuc_tensor_desc d = {.type = type,
					   .rank = rank,
					   .dims = dims,
					   .scales = q.scale > 0,
					   .scale = &q.scale,
					   .zero_points = q.scale > 0,
					   .zero_point = &q.zero,
					   .data = data,
					   .bytes = bytes};

	return npuc_builder_tensor(b->b, &d, tensor, b->why);
}

/* A constant of whole numbers, such as sizes. */
static int add_ints(struct build *b, const int32_t *numbers, uint32_t count,
		    uint32_t pairs, uint32_t *tensor)
{
	const int32_t dims[] = {(int32_t)(pairs ? count / 2 : count), 2};

	return add_tensor(b, NPUC_INT32, pairs ? 2 : 1, dims, (struct quant){0}, numbers,
			  count * sizeof(*numbers), tensor);
}

static int add_op(struct build *b, uint32_t code, const uint32_t *in, uint32_t in_count,
		  uint32_t out, const struct npuc_attr *attrs, uint32_t attr_count)
{
	const struct npuc_op_desc d = {.code = code,
				       .version = 1,
				       .inputs = in,
				       .outputs = &out,
				       .input_count = in_count,
				       .output_count = 1,
				       .attrs = attrs,
				       .attr_count = attr_count};

	return npuc_builder_op(b->b, &d, NULL, b->why);
}

/* Dimensions of a value as the model has them: N, C, H, W or N, H, W, C. */
static void model_dims(const struct value *v, bool nhwc, int32_t *dims)
{
	memcpy(dims, v->dims, sizeof(v->dims));
	if (!nhwc)
		return;
	dims[1] = v->dims[2];
	dims[2] = v->dims[3];
	dims[3] = v->dims[1];
}

static int remember(struct build *b, const struct made *m)
{
	if (b->made_count == b->made_room) {
		uint32_t room = b->made_room ? b->made_room * 2 : 64;
		struct made *more = realloc(b->made, room * sizeof(*more));

		if (!more)
			return no_memory(b);
		b->made = more;
		b->made_room = room;
	}
	b->made[b->made_count++] = *m;
	return 0;
}

/* Find what the model has of a value; NULL: nothing.  The nearest to what is wanted. */
static const struct made *find_made(const struct build *b, uint32_t value, bool nhwc,
				    struct quant q)
{
	const struct made *best = NULL;
	uint32_t best_points = 0;

	for (uint32_t i = 0; i < b->made_count; i++) {
		const struct made *m = &b->made[i];
		uint32_t points = 1 + 2u * (m->nhwc == nhwc) +
				  (q.scale == 0 || same_quant(m->q, q));

		if (m->value != value || points <= best_points)
			continue;
		best = m;
		best_points = points;
	}
	return best;
}

/* A tensor for a value, that an operator added next computes. */
static int add_made(struct build *b, uint32_t value, bool nhwc, struct quant q,
		    uint32_t *tensor)
{
	const struct value *v = &b->g->values[value];
	struct made m = {.value = value, .rank = v->rank, .nhwc = nhwc, .q = q};
	int rc;

	model_dims(v, nhwc, m.dims);
	rc = add_tensor(b, NPUC_INT8, m.rank, m.dims, q, NULL, 0, &m.tensor);
	*tensor = m.tensor;
	return rc ? rc : remember(b, &m);
}

static int add_reshape(struct build *b, uint32_t from, uint32_t to, uint32_t rank,
		       const int32_t *dims)
{
	const struct npuc_attr attr = {.name = "new_shape", .ints = dims, .count = rank};

	return add_op(b, CODE_RESHAPE, &from, 1, to, rank ? &attr : NULL, rank ? 1 : 0);
}

static int add_transpose(struct build *b, uint32_t from, uint32_t to,
			 const int32_t *order, uint32_t rank)
{
	uint32_t in[2] = {from, 0};
	int rc = add_ints(b, order, rank, 0, &in[1]);

	return rc ? rc : add_op(b, CODE_TRANSPOSE, in, 2, to, NULL, 0);
}

/* Turn a tensor between N, C, H, W and N, H, W, C. */
static int turn(struct build *b, const struct made *from, bool nhwc, uint32_t *tensor)
{
	static const int32_t to_nhwc[] = {0, 2, 3, 1}, to_nchw[] = {0, 3, 1, 2};
	const struct value *v = &b->g->values[from->value];
	const struct made m = *from; /* the list may move */
	int32_t dims[PLUGIN_RANK];
	int rc = add_made(b, m.value, nhwc, m.q, tensor);

	if (rc)
		return rc;
	model_dims(v, nhwc, dims);
	if (v->dims[1] == 1 || v->dims[2] * v->dims[3] == 1)
		return add_reshape(b, m.tensor, *tensor, 4, dims);
	return add_transpose(b, m.tensor, *tensor, nhwc ? to_nhwc : to_nchw, 4);
}

/* Write a constant of bytes as int8, with its dimensions moved to those of the order. */
static int8_t *permuted(const struct value *v, const int32_t *dims, uint32_t rank,
			const uint32_t *order)
{
	int8_t *to = malloc(v->count ? v->count : 1);
	uint8_t flip = v->type == ORT_TYPE_UINT8 ? 0x80 : 0;
	uint64_t stride[PLUGIN_RANK], step[PLUGIN_RANK] = {0};
	uint32_t index[PLUGIN_RANK] = {0};
	uint64_t from = 0;

	for (uint32_t i = rank; i--;)
		stride[i] = i + 1 == rank ? 1 : stride[i + 1] * (uint64_t)dims[i + 1];
	for (uint32_t i = 0; i < rank; i++)
		step[i] = stride[order[i]];
	for (uint64_t i = 0; to && i < v->count; i++) {
		to[i] = (int8_t)(((const uint8_t *)v->data)[from] ^ flip);
		for (uint32_t k = rank; k--;) {
			from += step[k];
			if (++index[k] < (uint32_t)dims[order[k]])
				break;
			from -= step[k] * index[k];
			index[k] = 0;
		}
	}
	return to;
}

/* A constant operand of an element-wise operator, with rank dimensions. */
static int use_constant(struct build *b, const struct operand *o, uint32_t rank,
			bool nhwc, uint32_t *tensor)
{
	static const uint32_t plain[] = {0, 1, 2, 3, 4, 5}, turned[] = {0, 2, 3, 1};
	const uint32_t *order = nhwc ? turned : plain;
	const struct value *v = value_of(b, o);
	int32_t dims[PLUGIN_RANK], to[PLUGIN_RANK];
	int8_t *data;
	int rc;

	if (!o->scale || o->scales != 1)
		return refuse(b, "constant '%.80s' is not quantized per tensor", v->name);
	for (uint32_t i = 0; i < rank; i++)
		dims[i] = i + v->rank < rank ? 1 : v->dims[i + v->rank - rank];
	for (uint32_t i = 0; i < rank; i++)
		to[i] = dims[order[i]];
	data = permuted(v, dims, rank, order);
	if (!data)
		return no_memory(b);
	rc = add_tensor(b, NPUC_INT8, rank, to, quant_of(b, o), data, v->count, tensor);
	free(data);
	return rc;
}

/* An input of the partition. */
static int use_input(struct build *b, const struct operand *o, bool nhwc, struct quant q,
		     uint32_t *tensor)
{
	const struct value *v = value_of(b, o);
	uint32_t n = b->out->in_count;
	int rc = add_made(b, o->value, nhwc, q, tensor);

	if (rc)
		return rc;
	b->in_tensors[n] = *tensor;
	b->out->in[n] = (struct port){o->value, nhwc, v->type == ORT_TYPE_UINT8};
	b->out->in_count++;
	return 0;
}

/* The tensor of an operand in the order and quantization that the operator needs. */
static int use(struct build *b, const struct operand *o, bool nhwc, struct quant q,
	       uint32_t *tensor)
{
	const struct made *m = find_made(b, o->value, nhwc, q);
	uint32_t from;
	int rc = 0;

	if (o->scales > 1)
		return refuse(b, "'%.80s' has a scale per channel", value_of(b, o)->name);
	if (value_of(b, o)->data || (value_of(b, o)->type != ORT_TYPE_INT8 &&
				     value_of(b, o)->type != ORT_TYPE_UINT8))
		return refuse(b, "'%.80s' is constant, or neither int8 nor uint8",
			      value_of(b, o)->name);
	if (!m)
		return use_input(b, o, nhwc, q, tensor);
	if (m->nhwc != nhwc) {
		rc = turn(b, m, nhwc, tensor);
		if (rc)
			return rc;
		m = &b->made[b->made_count - 1];
	}
	from = *tensor = m->tensor;
	if (q.scale == 0 || same_quant(m->q, q))
		return 0;
	/* The same bytes stand for other numbers. */
	rc = add_made(b, o->value, nhwc, q, tensor);
	m = &b->made[b->made_count - 1];
	return rc ? rc : add_reshape(b, from, *tensor, m->rank, m->dims);
}

/* A result: of the quantization that the operator computes, and then of the wanted one.
 */
struct result {
	uint32_t tensor, final;
};

static int begin_result(struct build *b, bool nhwc, struct quant q, struct result *r)
{
	const struct operand *o = &b->u->out;
	struct quant want = o->scale ? quant_of(b, o) : q;
	int32_t dims[PLUGIN_RANK];
	int rc = add_made(b, o->value, nhwc, want, &r->final);

	r->tensor = r->final;
	if (rc || same_quant(q, want))
		return rc;
	model_dims(value_of(b, o), nhwc, dims);
	return add_tensor(b, NPUC_INT8, value_of(b, o)->rank, dims, q, NULL, 0,
			  &r->tensor);
}

static int end_result(struct build *b, const struct result *r)
{
	if (r->tensor == r->final)
		return 0;
	return add_op(b, CODE_QUANTIZE, &r->tensor, 1, r->final, NULL, 0);
}

/* The quantization of operators that compare or average bytes of any. */
static struct quant any_quant(const struct build *b, const struct operand *o)
{
	struct quant q = quant_of(b, o);

	return q.scale > 0 ? q : (struct quant){1, 0};
}

/* Is an image better as N, H, W, C?  As it is, else so. */
static bool prefers_nhwc(const struct build *b, const struct operand *o)
{
	const struct made *m = find_made(b, o->value, true, (struct quant){0});

	return value_of(b, o)->rank == 4 && (!m || m->nhwc);
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
	const struct value *x = value_of(b, &b->u->in[0]), *y = value_of(b, &b->u->out);
	char automatic[16] = "";

	w->stride[0] = w->stride[1] = w->dilation[0] = w->dilation[1] = 1;
	(void)graph_ints(b->g, n, "strides", w->stride, 2);
	(void)graph_ints(b->g, n, "dilations", w->dilation, 2);
	(void)graph_ints(b->g, n, "pads", w->pad, 4);
	(void)graph_string(b->g, n, "auto_pad", automatic, sizeof(automatic));
	for (uint32_t i = 0; i < 2; i++) {
		int64_t in = x->dims[2 + i], out = y->dims[2 + i], all;

		if (w->stride[i] < 1 || w->dilation[i] < 1 || w->k[i] < 1 ||
		    w->stride[i] > 65535 || w->dilation[i] > 65535 || w->k[i] > 65535)
			return refuse(b, "strides, dilations or kernel are invalid");
		if (strncmp(automatic, "SAME", 4) == 0) {
			w->pad[i] = 0;
			all = missing(w, i, in, out);
			all = all < 0 ? 0 : all;
			w->pad[i] = strcmp(automatic, "SAME_LOWER") == 0 ? (all + 1) / 2
									 : all / 2;
			w->pad[2 + i] = all - w->pad[i];
		}
		if (w->pad[i] < 0 || w->pad[2 + i] < 0 || w->pad[i] > 65535 ||
		    w->pad[2 + i] > 65535)
			return refuse(b, "paddings are invalid");
		/* ceil_mode: a last window may go beyond the padding. */
		if (missing(w, i, in, out) > w->pad[2 + i])
			return refuse(b, "windows beyond the padding (ceil_mode)");
	}
	return 0;
}

/* Surround an image with a number; the windows are then all inside. */
static int add_border(struct build *b, const struct window *w, struct quant q,
		      int8_t number, uint32_t *tensor)
{
	const struct value *x = value_of(b, &b->u->in[0]);
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
	model_dims(x, true, dims);
	dims[1] += pairs[2] + pairs[3];
	dims[2] += pairs[4] + pairs[5];
	rc = add_tensor(b, NPUC_INT8, 4, dims, q, NULL, 0, tensor);
	if (!rc)
		rc = add_ints(b, pairs, 8, 1, &in[1]);
	if (!rc)
		rc = add_tensor(b, NPUC_INT8, 1, &one, q, &number, 1, &in[2]);
	return rc ? rc : add_op(b, CODE_PADV2, in, 3, *tensor, NULL, 0);
}

/* ---- weights ----------------------------------------------------------------------- */

/* Weights of int8 without a zero point, in another order of dimensions. */
static int add_weights(struct build *b, const struct operand *o, const uint32_t *order,
		       const int32_t *dims, uint32_t rank, uint32_t channel,
		       uint32_t *tensor)
{
	const struct value *v = value_of(b, o);
	struct npuc_tensor_desc d = {.type = NPUC_INT8,
				     .rank = rank,
				     .dims = dims,
				     .scales = o->scales,
				     .scale = o->scale,
				     .channel_dim = o->scales > 1 ? channel : 0,
				     .bytes = v->count};
	int8_t *data;
	int rc;

	if (!o->scale)
		return refuse(b, "weights '%.80s' are not quantized", v->name);
	if (quant_of(b, o).zero)
		return refuse(b, "weights '%.80s' have zero point %d; it must be %d",
			      v->name, o->zero, v->type == ORT_TYPE_UINT8 ? 128 : 0);
	if (o->scales > 1 && (int32_t)o->scales != dims[channel])
		return refuse(b, "weights '%.80s' have %u scales for %d channels",
			      v->name, o->scales, dims[channel]);
	data = permuted(v, v->dims, v->rank, order);
	if (!data)
		return no_memory(b);
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
		return refuse(b, "bias '%.80s' is no constant of %d numbers", v->name, n);
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
			rc = refuse(b, "bias '%.80s' is too large", v->name);
		numbers[i] = rc ? 0 : (int32_t)real;
	}
	if (!scales || !numbers)
		rc = no_memory(b);
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

static struct npuc_attr int_attr(const char *name, int64_t i)
{
	return (struct npuc_attr){.name = name, .i = i};
}

static int build_conv(struct build *b)
{
	static const uint32_t order[] = {0, 2, 3, 1}, deep[] = {1, 2, 3, 0};
	const struct unit *u = b->u;
	const struct value *x = value_of(b, &u->in[0]), *w = value_of(b, &u->in[1]);
	struct quant q = quant_of(b, &u->in[0]);
	struct window win = {0};
	uint32_t in[3] = {0};
	int64_t group = 1;
	struct result r;
	bool depthwise;
	int32_t dims[4];
	int rc;

	if (x->rank != 4 || w->rank != 4)
		return refuse(b, "%u dimensions; only 4 are supported", x->rank);
	if (!w->data)
		return refuse(b, "weights '%.80s' are not constant", w->name);
	if (u->in[1].axis != PLUGIN_NONE && u->in[1].scales > 1 && u->in[1].axis != 0)
		return refuse(b, "weights '%.80s' have scales along another axis than 0",
			      w->name);
	(void)graph_int(b->g, op_of(b), "group", &group);
	win.k[0] = w->dims[2];
	win.k[1] = w->dims[3];
	rc = read_window(b, &win);
	depthwise = group > 1 && group == x->dims[1] && w->dims[1] == 1;
	for (uint32_t i = 0; i < 4; i++)
		dims[i] = w->dims[depthwise ? deep[i] : order[i]];
	if (!rc)
		rc = use(b, &u->in[0], true, q, &in[0]);
	if (!rc)
		rc = add_border(b, &win, q, (int8_t)q.zero, &in[0]);
	if (!rc)
		rc = add_weights(b, &u->in[1], depthwise ? deep : order, dims, 4,
				 depthwise ? 3 : 0, &in[1]);
	if (!rc)
		rc = add_bias(b, w->dims[0], &in[2]);
	if (!rc)
		rc = begin_result(b, true, quant_of(b, &u->out), &r);
	if (!rc) {
		const struct npuc_attr attrs[] = {
			int_attr("padding", VALID),
			int_attr("stride_h", win.stride[0]),
			int_attr("stride_w", win.stride[1]),
			int_attr("dilation_h_factor", win.dilation[0]),
			int_attr("dilation_w_factor", win.dilation[1]),
			int_attr("fused_activation_function", u->act),
			int_attr("depth_multiplier", w->dims[0] / x->dims[1]),
		};

		rc = add_op(b, depthwise ? CODE_DEPTHWISE_CONV_2D : CODE_CONV_2D, in, 3,
			    r.tensor, attrs, depthwise ? 7 : 6);
	}
	return rc ? rc : end_result(b, &r);
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
		return refuse(b, "transA, alpha or beta");
	if (x->rank < 2 || w->rank != 2)
		return refuse(b, "%u and %u dimensions are not supported", x->rank,
			      w->rank);
	if (u->in[1].axis != PLUGIN_NONE && u->in[1].scales > 1 &&
	    u->in[1].axis != (trans_b ? 0 : 1))
		return refuse(b, "weights '%.80s' have scales along the inputs", w->name);
	dims[0] = w->dims[trans_b ? 0 : 1];
	dims[1] = w->dims[trans_b ? 1 : 0];
	rc = use(b, &u->in[0], false, quant_of(b, &u->in[0]), &in[0]);
	if (!rc)
		rc = add_weights(b, &u->in[1], trans_b ? plain : turned, dims, 2, 0,
				 &in[1]);
	if (!rc)
		rc = add_bias(b, dims[0], &in[2]);
	if (!rc)
		rc = begin_result(b, false, quant_of(b, &u->out), &r);
	if (!rc) {
		const struct npuc_attr attrs[] = {
			int_attr("fused_activation_function", u->act),
			int_attr("keep_num_dims", x->rank != 2)};

		rc = add_op(b, CODE_FULLY_CONNECTED, in, 3, r.tensor, attrs, 2);
	}
	return rc ? rc : end_result(b, &r);
}

static int build_matmul(struct build *b)
{
	const struct unit *u = b->u;
	uint32_t in[2];
	struct result r;
	int rc;

	if (value_of(b, &u->in[1])->data)
		return build_connected(b, false);
	if (value_of(b, &u->in[0])->data)
		return refuse(b, "the first operand is constant");
	if (u->act)
		return refuse(b, "an activation after a product of two activations");
	rc = use(b, &u->in[0], false, quant_of(b, &u->in[0]), &in[0]);
	if (!rc)
		rc = use(b, &u->in[1], false, quant_of(b, &u->in[1]), &in[1]);
	if (!rc)
		rc = begin_result(b, false, quant_of(b, &u->out), &r);
	if (!rc)
		rc = add_op(b, CODE_BATCH_MATMUL, in, 2, r.tensor, NULL, 0);
	return rc ? rc : end_result(b, &r);
}

static int build_gemm(struct build *b)
{
	if (!value_of(b, &b->u->in[1])->data)
		return refuse(b, "the second operand is not constant");
	return build_connected(b, true);
}

static int build_pair(struct build *b, uint32_t code)
{
	const struct unit *u = b->u;
	uint32_t rank = value_of(b, &u->out)->rank, in[2];
	bool nhwc = rank == 4, any = false;
	struct result r;
	int rc = 0;

	for (uint32_t i = 0; i < 2; i++) {
		const struct value *v = value_of(b, &u->in[i]);

		any |= !v->data && prefers_nhwc(b, &u->in[i]);
		nhwc &= v->data || v->rank == 4;
	}
	nhwc &= any;
	for (uint32_t i = 0; !rc && i < 2; i++)
		rc = value_of(b, &u->in[i])->data
			     ? use_constant(b, &u->in[i], rank, nhwc, &in[i])
			     : use(b, &u->in[i], nhwc, quant_of(b, &u->in[i]), &in[i]);
	if (!rc)
		rc = begin_result(b, nhwc, quant_of(b, &u->out), &r);
	if (!rc) {
		const struct npuc_attr attr =
			int_attr("fused_activation_function", u->act);

		rc = add_op(b, code, in, 2, r.tensor, &attr, 1);
	}
	return rc ? rc : end_result(b, &r);
}

static int build_add(struct build *b)
{
	return build_pair(b, CODE_ADD);
}

static int build_sub(struct build *b)
{
	return build_pair(b, CODE_SUB);
}

static int build_mul(struct build *b)
{
	return build_pair(b, CODE_MUL);
}

static int build_pool(struct build *b, bool max)
{
	const struct unit *u = b->u;
	const struct value *x = value_of(b, &u->in[0]);
	struct quant q = any_quant(b, &u->in[0]);
	struct window w = {0};
	int64_t all = 0, last = 0;
	uint32_t in;
	struct result r;
	int rc;

	(void)graph_int(b->g, op_of(b), "count_include_pad", &all);
	(void)graph_int(b->g, op_of(b), "channels_last", &last);
	if (x->rank != 4 || last ||
	    graph_ints(b->g, op_of(b), "kernel_shape", w.k, 2) != 2)
		return refuse(b, "only images in N, C, H, W are supported");
	rc = read_window(b, &w);
	if (!rc && (w.dilation[0] != 1 || w.dilation[1] != 1))
		rc = refuse(b, "windows with holes (dilations)");
	if (!rc && !max && !all && (w.pad[0] || w.pad[1] || w.pad[2] || w.pad[3]))
		rc = refuse(b, "an average that does not count the padding");
	if (!rc)
		rc = use(b, &u->in[0], true, q, &in);
	if (!rc)
		rc = add_border(b, &w, q, (int8_t)(max ? -128 : q.zero), &in);
	if (!rc)
		rc = begin_result(b, true, q, &r);
	if (!rc) {
		const struct npuc_attr attrs[] = {
			int_attr("padding", VALID),
			int_attr("stride_h", w.stride[0]),
			int_attr("stride_w", w.stride[1]),
			int_attr("filter_height", w.k[0]),
			int_attr("filter_width", w.k[1]),
			int_attr("fused_activation_function", u->act),
		};

		rc = add_op(b, max ? CODE_MAX_POOL_2D : CODE_AVERAGE_POOL_2D, &in, 1,
			    r.tensor, attrs, 6);
	}
	return rc ? rc : end_result(b, &r);
}

static int build_max_pool(struct build *b)
{
	return build_pool(b, true);
}

static int build_average_pool(struct build *b)
{
	return build_pool(b, false);
}

/* The mean over rows and columns, kept as 1 or not. */
static int build_mean_of(struct build *b, bool keep)
{
	static const int32_t axes[] = {1, 2};
	const struct unit *u = b->u;
	const struct npuc_attr attr = int_attr("keep_dims", keep);
	uint32_t in[2];
	struct result r;
	int rc = use(b, &u->in[0], true, quant_of(b, &u->in[0]), &in[0]);

	if (!rc)
		rc = add_ints(b, axes, 2, 0, &in[1]);
	if (!rc)
		rc = begin_result(b, keep, quant_of(b, &u->out), &r);
	if (!rc)
		rc = add_op(b, CODE_MEAN, in, 2, r.tensor, &attr, 1);
	return rc ? rc : end_result(b, &r);
}

static int build_global_pool(struct build *b)
{
	int64_t last = 0;

	(void)graph_int(b->g, op_of(b), "channels_last", &last);
	if (value_of(b, &b->u->in[0])->rank != 4 || last)
		return refuse(b, "only images in N, C, H, W are supported");
	return build_mean_of(b, true);
}

/* Axes: an attribute, since opset 18 an input. */
static uint32_t read_axes(struct build *b, int64_t *axes, uint32_t rank)
{
	const struct node *n = op_of(b);
	uint32_t count = graph_ints(b->g, n, "axes", axes, PLUGIN_RANK), v;

	if (!count && n->in_count > 1 && n->in[1] != PLUGIN_NONE) {
		v = n->in[1];
		if (!b->g->values[v].data || b->g->values[v].type != ORT_TYPE_INT64 ||
		    b->g->values[v].count > PLUGIN_RANK)
			return 0;
		count = (uint32_t)b->g->values[v].count;
		memcpy(axes, b->g->values[v].data, count * sizeof(*axes));
	}
	for (uint32_t i = 0; i < count; i++)
		if (axes[i] < 0)
			axes[i] += rank;
	return count;
}

static int build_mean(struct build *b)
{
	const struct value *x = value_of(b, &b->u->in[0]);
	int64_t axes[PLUGIN_RANK], keep = 1;

	(void)graph_int(b->g, op_of(b), "keepdims", &keep);
	if (read_axes(b, axes, x->rank) != 2 || x->rank != 4 || axes[0] + axes[1] != 5 ||
	    axes[0] * axes[1] != 6)
		return refuse(b, "only the mean over rows and columns is supported");
	return build_mean_of(b, keep != 0);
}

static int build_softmax(struct build *b)
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
		return refuse(b, "axis %lld of %u; only the last is supported",
			      (long long)axis, x->rank);
	rc = use(b, &u->in[0], nhwc, quant_of(b, &u->in[0]), &in);
	if (!rc)
		rc = begin_result(b, nhwc, made, &r);
	if (!rc)
		rc = add_op(b, CODE_SOFTMAX, &in, 1, r.tensor, &attr, 1);
	return rc ? rc : end_result(b, &r);
}

/* A part of a concatenation in the quantization of all. */
static int use_part(struct build *b, const struct operand *o, bool nhwc, struct quant q,
		    uint32_t *tensor)
{
	const struct value *v = value_of(b, o);
	struct quant is = quant_of(b, o);
	int32_t dims[PLUGIN_RANK];
	uint32_t from = 0;
	int rc = v->data ? use_constant(b, o, v->rank, nhwc, &from)
			 : use(b, o, nhwc, is, &from);

	*tensor = from;
	if (rc || same_quant(is, q))
		return rc;
	model_dims(v, nhwc, dims);
	rc = add_tensor(b, NPUC_INT8, v->rank, dims, q, NULL, 0, tensor);
	return rc ? rc : add_op(b, CODE_QUANTIZE, &from, 1, *tensor, NULL, 0);
}

static int build_concat(struct build *b)
{
	static const int64_t turned[] = {0, 3, 1, 2};
	const struct unit *u = b->u;
	struct quant q = quant_of(b, &u->out);
	uint32_t rank = value_of(b, &u->out)->rank, in[UNIT_INPUTS];
	int64_t axis = 1;
	bool nhwc = false;
	struct npuc_attr attr;
	struct result r;
	int rc = 0;

	(void)graph_int(b->g, op_of(b), "axis", &axis);
	if (axis < 0)
		axis += rank;
	if (axis < 0 || axis >= rank)
		return refuse(b, "the axis does not exist");
	for (uint32_t i = 0; i < u->in_count; i++)
		nhwc |= !value_of(b, &u->in[i])->data && prefers_nhwc(b, &u->in[i]);
	attr = int_attr("axis", nhwc ? turned[axis] : axis);
	for (uint32_t i = 0; !rc && i < u->in_count; i++)
		rc = use_part(b, &u->in[i], nhwc, q, &in[i]);
	if (!rc)
		rc = begin_result(b, nhwc, q, &r);
	if (!rc)
		rc = add_op(b, CODE_CONCATENATION, in, u->in_count, r.tensor, &attr, 1);
	return rc ? rc : end_result(b, &r);
}

/* The larger or smaller of two, in the quantization of the result. */
static int build_extreme(struct build *b, uint32_t code)
{
	const struct unit *u = b->u;
	struct quant q = quant_of(b, &u->out);
	uint32_t rank = value_of(b, &u->out)->rank, in[2];
	bool nhwc = rank == 4;
	struct result r;
	int rc = 0;

	if (u->in_count != 2)
		return refuse(b, "%u operands; only 2 are supported", u->in_count);
	for (uint32_t i = 0; i < 2; i++)
		nhwc &= value_of(b, &u->in[i])->rank == 4 &&
			(value_of(b, &u->in[i])->data || prefers_nhwc(b, &u->in[i]));
	for (uint32_t i = 0; !rc && i < 2; i++)
		rc = use_part(b, &u->in[i], nhwc, q, &in[i]);
	if (!rc)
		rc = begin_result(b, nhwc, q, &r);
	return rc ? rc : add_op(b, code, in, 2, r.final, NULL, 0);
}

static int build_max(struct build *b)
{
	return build_extreme(b, CODE_MAXIMUM);
}

static int build_min(struct build *b)
{
	return build_extreme(b, CODE_MINIMUM);
}

/* Read an input of whole numbers; PLUGIN_NONE: it is not constant; 0: left out. */
static uint32_t read_list(struct build *b, uint32_t number, int64_t *list)
{
	const struct node *n = op_of(b);
	const struct value *v;

	if (number >= n->in_count || n->in[number] == PLUGIN_NONE)
		return 0;
	v = &b->g->values[n->in[number]];
	if (!v->data || (v->type != ORT_TYPE_INT64 && v->type != ORT_TYPE_INT32) ||
	    v->count > (uint64_t)2 * PLUGIN_RANK)
		return PLUGIN_NONE;
	for (uint32_t i = 0; i < v->count; i++)
		list[i] = v->type == ORT_TYPE_INT64 ? ((const int64_t *)v->data)[i]
						    : ((const int32_t *)v->data)[i];
	return (uint32_t)v->count;
}

/* Where an axis of the graph is in the model. */
static uint32_t model_axis(uint32_t axis, bool nhwc)
{
	static const uint32_t turned[] = {0, 3, 1, 2};

	return nhwc ? turned[axis] : axis;
}

/* Read bounds of Slice as the model has its dimensions. */
static int read_slice(struct build *b, bool nhwc, int32_t *begin, int32_t *end,
		      int32_t *step)
{
	const struct value *x = value_of(b, &b->u->in[0]), *y = value_of(b, &b->u->out);
	int64_t starts[2 * PLUGIN_RANK] = {0}, axes[2 * PLUGIN_RANK] = {0};
	int64_t steps[2 * PLUGIN_RANK] = {0};
	uint32_t count = read_list(b, 1, starts), given = read_list(b, 3, axes);
	uint32_t stepped = read_list(b, 4, steps);

	if (!count || count > x->rank || (given && given != count) ||
	    (stepped && stepped != count))
		return refuse(b, "its bounds are not constant");
	for (uint32_t i = 0; i < x->rank; i++) {
		begin[i] = 0;
		step[i] = 1;
	}
	for (uint32_t i = 0; i < count; i++) {
		int64_t axis = given ? axes[i] : i, size, at = starts[i];

		axis += axis < 0 ? x->rank : 0;
		if (axis < 0 || axis >= x->rank || (stepped && steps[i] < 1))
			return refuse(b, "an axis does not exist, or steps go back");
		size = x->dims[axis];
		at += at < 0 ? size : 0;
		at = at < 0 ? 0 : at > size ? size : at;
		begin[model_axis((uint32_t)axis, nhwc)] = (int32_t)at;
		step[model_axis((uint32_t)axis, nhwc)] = stepped ? (int32_t)steps[i] : 1;
	}
	for (uint32_t i = 0; i < x->rank; i++) {
		uint32_t to = model_axis(i, nhwc);

		end[to] = begin[to] + (y->dims[i] - 1) * step[to] + 1;
	}
	return 0;
}

static int add_slice(struct build *b, uint32_t from, const int32_t *begin,
		     const int32_t *end, const int32_t *step, uint32_t rank, uint32_t to)
{
	uint32_t in[4] = {from, 0, 0, 0};
	int rc = add_ints(b, begin, rank, 0, &in[1]);

	if (!rc)
		rc = add_ints(b, end, rank, 0, &in[2]);
	if (!rc)
		rc = add_ints(b, step, rank, 0, &in[3]);
	return rc ? rc : add_op(b, CODE_STRIDED_SLICE, in, 4, to, NULL, 0);
}

static int build_slice(struct build *b)
{
	const struct unit *u = b->u;
	bool nhwc = prefers_nhwc(b, &u->in[0]);
	int32_t begin[PLUGIN_RANK], end[PLUGIN_RANK], step[PLUGIN_RANK];
	struct quant q = quant_of(b, &u->in[0]);
	struct result r;
	uint32_t in;
	int rc = read_slice(b, nhwc, begin, end, step);

	if (!rc)
		rc = use(b, &u->in[0], nhwc, q, &in);
	if (!rc)
		rc = begin_result(b, nhwc, q, &r);
	if (!rc)
		rc = add_slice(b, in, begin, end, step, value_of(b, &u->out)->rank,
			       r.tensor);
	return rc ? rc : end_result(b, &r);
}

/* The number that Pad writes, in the operand's quantization. */
static int pad_number(struct build *b, struct quant q, int8_t *number)
{
	const struct operand *o = b->u->in_count > 2 ? &b->u->in[2] : NULL;
	const struct value *v;
	float real = 0, at;

	if (o && o->value != PLUGIN_NONE) {
		v = value_of(b, o);
		if (!v->data || v->count != 1 || v->type != ORT_TYPE_FLOAT)
			return refuse(b, "the padding's number is no constant");
		real = *(const float *)v->data;
	}
	at = nearbyintf(real / q.scale) + (float)q.zero;
	*number = (int8_t)(at < -128 ? -128 : at > 127 ? 127 : at);
	return 0;
}

static int build_pad(struct build *b)
{
	const struct unit *u = b->u;
	const struct value *x = value_of(b, &u->in[0]);
	bool nhwc = prefers_nhwc(b, &u->in[0]);
	struct quant q = quant_of(b, &u->in[0]);
	int64_t list[2 * PLUGIN_RANK] = {0};
	int32_t pairs[2 * PLUGIN_RANK];
	const int32_t one = 1;
	char mode[16] = "constant";
	uint32_t in[3];
	int8_t number;
	struct result r;
	int rc;

	(void)graph_string(b->g, op_of(b), "mode", mode, sizeof(mode));
	if (mode[0] && strcmp(mode, "constant") != 0)
		return refuse(b, "mode %s", mode);
	if (read_list(b, 1, list) != 2 * x->rank || op_of(b)->in_count > 3)
		return refuse(b, "its paddings are not constant");
	for (uint32_t i = 0; i < x->rank; i++) {
		int32_t *pair = pairs + (size_t)2 * model_axis(i, nhwc);

		if (list[i] < 0 || list[i + x->rank] < 0 || list[i] > 65535 ||
		    list[i + x->rank] > 65535)
			return refuse(b, "paddings below 0 or above 65535");
		pair[0] = (int32_t)list[i];
		pair[1] = (int32_t)list[i + x->rank];
	}
	rc = pad_number(b, q, &number);
	if (!rc)
		rc = use(b, &u->in[0], nhwc, q, &in[0]);
	if (!rc)
		rc = add_ints(b, pairs, 2 * x->rank, 1, &in[1]);
	if (!rc)
		rc = add_tensor(b, NPUC_INT8, 1, &one, q, &number, 1, &in[2]);
	if (!rc)
		rc = begin_result(b, nhwc, q, &r);
	if (!rc)
		rc = add_op(b, CODE_PADV2, in, 3, r.tensor, NULL, 0);
	return rc ? rc : end_result(b, &r);
}

/* Choose the operator for Resize; 0: no operator picks those pixels. */
static uint32_t resize_code(struct build *b, bool *align, bool *half)
{
	const struct value *x = value_of(b, &b->u->in[0]), *y = value_of(b, &b->u->out);
	char mode[16] = "nearest", where[32] = "half_pixel", near[24] = "";
	int64_t other = 0;
	bool whole = true, near_half;

	if (!graph_string(b->g, op_of(b), "mode", mode, sizeof(mode)))
		snprintf(mode, sizeof(mode), "nearest");
	if (!graph_string(b->g, op_of(b), "coordinate_transformation_mode", where,
			  sizeof(where)))
		snprintf(where, sizeof(where), "half_pixel");
	(void)graph_string(b->g, op_of(b), "nearest_mode", near, sizeof(near));
	if (graph_int(b->g, op_of(b), "antialias", &other) && other)
		return 0;
	*align = strcmp(where, "align_corners") == 0;
	*half = strcmp(where, "half_pixel") == 0 ||
		strcmp(where, "pytorch_half_pixel") == 0;
	for (uint32_t i = 2; i < 4; i++)
		whole &= y->dims[i] % x->dims[i] == 0;
	if (!*align && !*half && strcmp(where, "asymmetric") != 0)
		return 0;
	if (strcmp(mode, "linear") == 0)
		return CODE_RESIZE_BILINEAR;
	near_half = *half && (!near[0] || strncmp(near, "round_prefer", 12) == 0);
	if (strcmp(mode, "nearest") != 0 || !whole ||
	    (!near_half && (*half || *align || strcmp(near, "floor") != 0)))
		return 0;
	*half = *align = false; /* of whole factors: pixel i is i / factor */
	return CODE_RESIZE_NEAREST;
}

static int build_resize(struct build *b)
{
	const struct unit *u = b->u;
	const struct value *x = value_of(b, &u->in[0]), *y = value_of(b, &u->out);
	const int32_t size[] = {y->dims[2], y->dims[3]};
	struct quant q = quant_of(b, &u->in[0]);
	uint32_t in[2], code;
	bool align, half;
	struct result r;
	int rc;

	if (x->rank != 4 || y->rank != 4 || x->dims[0] != y->dims[0] ||
	    x->dims[1] != y->dims[1])
		return refuse(b, "only rows and columns of images are resized");
	code = resize_code(b, &align, &half);
	if (!code)
		return refuse(b, "this mode is not supported");
	rc = use(b, &u->in[0], true, q, &in[0]);
	if (!rc)
		rc = add_ints(b, size, 2, 0, &in[1]);
	if (!rc)
		rc = begin_result(b, true, q, &r);
	if (!rc) {
		const struct npuc_attr attrs[] = {int_attr("align_corners", align),
						  int_attr("half_pixel_centers", half)};

		rc = add_op(b, code, in, 2, r.tensor, attrs, 2);
	}
	return rc ? rc : end_result(b, &r);
}

static int build_blocks(struct build *b, uint32_t code)
{
	const struct unit *u = b->u;
	struct quant q = quant_of(b, &u->in[0]);
	char mode[8] = "";
	struct npuc_attr attr;
	int64_t block = 0;
	struct result r;
	uint32_t in;
	int rc;

	(void)graph_int(b->g, op_of(b), "blocksize", &block);
	(void)graph_string(b->g, op_of(b), "mode", mode, sizeof(mode));
	if (value_of(b, &u->in[0])->rank != 4 || (mode[0] && strcmp(mode, "DCR") != 0))
		return refuse(b, "mode %s", mode);
	attr = int_attr("block_size", block);
	rc = use(b, &u->in[0], true, q, &in);
	if (!rc)
		rc = begin_result(b, true, q, &r);
	if (!rc)
		rc = add_op(b, code, &in, 1, r.tensor, &attr, 1);
	return rc ? rc : end_result(b, &r);
}

static int build_depth_to_space(struct build *b)
{
	return build_blocks(b, CODE_DEPTH_TO_SPACE);
}

static int build_space_to_depth(struct build *b)
{
	return build_blocks(b, CODE_SPACE_TO_DEPTH);
}

/* Cut the padding from the whole result of a transposed convolution. */
static int cut_border(struct build *b, const struct window *w, uint32_t from,
		      const int32_t *full)
{
	const struct value *y = value_of(b, &b->u->out);
	const int32_t begin[] = {0, (int32_t)w->pad[0], (int32_t)w->pad[1], 0};
	const int32_t end[] = {y->dims[0], begin[1] + y->dims[2], begin[2] + y->dims[3],
			       y->dims[1]};
	const int32_t step[] = {1, 1, 1, 1};
	struct result r;
	int rc;

	if (end[1] > full[1] || end[2] > full[2])
		return refuse(b, "output_padding beyond the padding");
	rc = begin_result(b, true, quant_of(b, &b->u->out), &r);
	return rc ? rc : add_slice(b, from, begin, end, step, 4, r.final);
}

static int build_conv_transpose(struct build *b)
{
	static const uint32_t order[] = {1, 2, 3, 0};
	const struct unit *u = b->u;
	const struct value *x = value_of(b, &u->in[0]), *w = value_of(b, &u->in[1]);
	struct window win = {.stride = {1, 1}, .dilation = {1, 1}};
	char automatic[16] = "";
	uint32_t in[4], full;
	int64_t group = 1;
	int32_t dims[4], size[4];
	int rc;

	if (x->rank != 4 || w->rank != 4 || !w->data)
		return refuse(b, "only images with constant weights are supported");
	(void)graph_int(b->g, op_of(b), "group", &group);
	(void)graph_ints(b->g, op_of(b), "strides", win.stride, 2);
	(void)graph_ints(b->g, op_of(b), "dilations", win.dilation, 2);
	(void)graph_ints(b->g, op_of(b), "pads", win.pad, 4);
	(void)graph_string(b->g, op_of(b), "auto_pad", automatic, sizeof(automatic));
	if (group != 1 || win.dilation[0] != 1 || win.dilation[1] != 1 ||
	    (automatic[0] && strcmp(automatic, "NOTSET") != 0))
		return refuse(b, "group, dilations or auto_pad");
	if (u->in[1].scales > 1 && u->in[1].axis != 1)
		return refuse(b, "weights '%.80s' have scales along another axis than 1",
			      w->name);
	for (uint32_t i = 0; i < 2; i++)
		if (win.stride[i] < 1 || win.stride[i] > 255 || win.pad[i] < 0 ||
		    win.pad[i] > 65535)
			return refuse(b, "strides or paddings are invalid");
	for (uint32_t i = 0; i < 4; i++)
		dims[i] = w->dims[order[i]];
	size[0] = x->dims[0];
	size[1] = (x->dims[2] - 1) * (int32_t)win.stride[0] + w->dims[2];
	size[2] = (x->dims[3] - 1) * (int32_t)win.stride[1] + w->dims[3];
	size[3] = w->dims[1];
	rc = add_ints(b, size, 4, 0, &in[0]);
	if (!rc)
		rc = add_weights(b, &u->in[1], order, dims, 4, 0, &in[1]);
	if (!rc)
		rc = use(b, &u->in[0], true, quant_of(b, &u->in[0]), &in[2]);
	if (!rc)
		rc = add_bias(b, w->dims[1], &in[3]);
	if (!rc)
		rc = add_tensor(b, NPUC_INT8, 4, size, quant_of(b, &u->out), NULL, 0,
				&full);
	if (!rc) {
		const struct npuc_attr attrs[] = {int_attr("padding", VALID),
						  int_attr("stride_h", win.stride[0]),
						  int_attr("stride_w", win.stride[1])};

		rc = add_op(b, CODE_TRANSPOSE_CONV, in, 4, full, attrs, 3);
	}
	return rc ? rc : cut_border(b, &win, full, size);
}

static int build_reshape(struct build *b)
{
	const struct unit *u = b->u;
	const struct value *y = value_of(b, &u->out);
	struct quant q = quant_of(b, &u->in[0]);
	struct result r;
	uint32_t in;
	int rc = use(b, &u->in[0], false, q, &in);

	if (!rc)
		rc = begin_result(b, false, q, &r);
	if (!rc)
		rc = add_reshape(b, in, r.tensor, y->rank, y->dims);
	return rc ? rc : end_result(b, &r);
}

static int build_transpose(struct build *b)
{
	const struct unit *u = b->u;
	uint32_t rank = value_of(b, &u->in[0])->rank, in;
	struct quant q = quant_of(b, &u->in[0]);
	int32_t order[PLUGIN_RANK];
	int64_t perm[PLUGIN_RANK];
	struct result r;
	bool given = graph_ints(b->g, op_of(b), "perm", perm, PLUGIN_RANK) == rank;
	int rc;

	for (uint32_t i = 0; i < rank; i++)
		order[i] = given ? (int32_t)perm[i] : (int32_t)(rank - 1 - i);
	rc = use(b, &u->in[0], false, q, &in);
	if (!rc)
		rc = begin_result(b, false, q, &r);
	if (!rc)
		rc = add_transpose(b, in, r.tensor, order, rank);
	return rc ? rc : end_result(b, &r);
}

static int build_quantize(struct build *b)
{
	const struct unit *u = b->u;
	bool nhwc = prefers_nhwc(b, &u->in[0]);
	struct quant q = quant_of(b, &u->in[0]);
	struct result r;
	uint32_t in;
	int rc = use(b, &u->in[0], nhwc, q, &in);

	if (!rc)
		rc = begin_result(b, nhwc, q, &r);
	if (rc)
		return rc;
	if (r.tensor == r.final)
		return add_op(b, CODE_QUANTIZE, &in, 1, r.final, NULL, 0);
	return add_op(b, CODE_QUANTIZE, &in, 1, r.final, NULL, 0);
}

/* ---- functions of one number --------------------------------------------------------
 */

static float sigmoid(float x)
{
	return 1 / (1 + expf(-x));
}

/* Parameters of a function. */
struct numbers {
	float alpha, beta, low, high;
	bool tanh;
};

static float clamp(float x, float low, float high)
{
	return x < low ? low : x > high ? high : x;
}

static float gelu(float x, const struct numbers *n)
{
	const float root = 0.70710678118654752f, k = 0.79788456080286536f;

	return n->tanh ? 0.5f * x * (1 + tanhf(k * (x + 0.044715f * x * x * x)))
		       : 0.5f * x * (1 + erff(x * root));
}

static float apply(const char *type, float x, const struct numbers *n)
{
	static const struct {
		const char *type;
		float (*of)(float x);
	} plain[] = {{"Sigmoid", sigmoid},  {"Tanh", tanhf},   {"Erf", erff},
		     {"Exp", expf},         {"Log", logf},     {"Sqrt", sqrtf},
		     {"Abs", fabsf},        {"Floor", floorf}, {"Ceil", ceilf},
		     {"Round", nearbyintf}, {"Sin", sinf},     {"Cos", cosf},
		     {"Atan", atanf},       {"Sinh", sinhf},   {"Asinh", asinhf}};

	for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++)
		if (strcmp(type, plain[i].type) == 0)
			return plain[i].of(x);
	if (strcmp(type, "Relu") == 0 || strcmp(type, "Clip") == 0)
		return clamp(x, n->low, n->high);
	if (strcmp(type, "LeakyRelu") == 0)
		return x < 0 ? n->alpha * x : x;
	if (strcmp(type, "Elu") == 0)
		return x < 0 ? n->alpha * expm1f(x) : x;
	if (strcmp(type, "Selu") == 0)
		return n->beta * (x < 0 ? n->alpha * expm1f(x) : x);
	if (strcmp(type, "HardSigmoid") == 0)
		return clamp(n->alpha * x + n->beta, 0, 1);
	if (strcmp(type, "HardSwish") == 0)
		return x * clamp(x / 6 + 0.5f, 0, 1);
	if (strcmp(type, "Gelu") == 0)
		return gelu(x, n);
	if (strcmp(type, "Neg") == 0)
		return -x;
	if (strcmp(type, "Reciprocal") == 0)
		return 1 / x;
	if (strcmp(type, "Softplus") == 0)
		return x > 0 ? x + log1pf(expf(-x)) : log1pf(expf(x));
	return x / (1 + fabsf(x)); /* Softsign */
}

/* Read a bound of Clip that is an input; false: it is no constant. */
static bool read_bound(struct build *b, uint32_t i, const char *name, float *x)
{
	const struct node *n = op_of(b);
	const struct value *v;

	if (i >= n->in_count || n->in[i] == PLUGIN_NONE) {
		(void)graph_float(b->g, n, name, x);
		return true;
	}
	v = &b->g->values[n->in[i]];
	if (!v->data || v->type != ORT_TYPE_FLOAT || v->count != 1)
		return false;
	*x = *(const float *)v->data;
	return true;
}

static bool read_numbers(struct build *b, struct numbers *n)
{
	const struct node *op = op_of(b);
	char approximate[8] = "";
	bool relu = strcmp(op->type, "Relu") == 0;

	*n = (struct numbers){.alpha = 1, .low = relu ? 0 : -INFINITY, .high = INFINITY};
	if (strstr(op->type, "LeakyRelu"))
		n->alpha = 0.01f;
	if (strcmp(op->type, "HardSigmoid") == 0) {
		n->alpha = 0.2f;
		n->beta = 0.5f;
	}
	if (strcmp(op->type, "Selu") == 0) {
		n->alpha = 1.67326319217681884765625f;
		n->beta = 1.05070102214813232421875f;
	}
	(void)graph_float(b->g, op, "alpha", &n->alpha);
	(void)graph_float(b->g, op, strcmp(op->type, "Selu") == 0 ? "gamma" : "beta",
			  &n->beta);
	(void)graph_string(b->g, op, "approximate", approximate, sizeof(approximate));
	n->tanh = strcmp(approximate, "tanh") == 0;
	return strcmp(op->type, "Clip") != 0 ||
	       (read_bound(b, 1, "min", &n->low) && read_bound(b, 2, "max", &n->high));
}

static int build_table(struct build *b)
{
	const struct unit *u = b->u;
	const char *type = op_of(b)->type;
	struct quant x = quant_of(b, &u->in[0]), y = quant_of(b, &u->out);
	bool nhwc = prefers_nhwc(b, &u->in[0]);
	const int32_t size = 256;
	uint32_t in[2], out;
	struct numbers n;
	int8_t table[256];
	int rc = 0;

	if (!read_numbers(b, &n))
		return refuse(b, "its bounds are not constant");
	if (!x.scale || !y.scale || u->in[0].scales > 1)
		return refuse(b, "'%.80s' is not quantized per tensor",
			      value_of(b, &u->in[0])->name);
	if (strncmp(type, "QLinear", 7) == 0)
		type += 7;
	for (int32_t i = 0; i < 256; i++) {
		float real = apply(type, (float)(i - 128 - x.zero) * x.scale, &n);
		float q = nearbyintf(real / y.scale) + (float)y.zero;

		table[i] = (int8_t)(isnan(q) ? y.zero : (int32_t)clamp(q, -128, 127));
	}
	rc = use(b, &u->in[0], nhwc, x, &in[0]);
	if (!rc)
		rc = add_tensor(b, NPUC_INT8, 1, &size, y, table, 256, &in[1]);
	if (!rc)
		rc = add_made(b, u->out.value, nhwc, y, &out);
	return rc ? rc : add_op(b, NPUC_TABLE_OPERATOR, in, 2, out, NULL, 0);
}

/* ---- the model --------------------------------------------------------------------- */

static const struct {
	const char *type;
	int (*build)(struct build *b);
} builders[] = {
	{"Conv", build_conv},
	{"QLinearConv", build_conv},
	{"ConvTranspose", build_conv_transpose},
	{"MatMul", build_matmul},
	{"QLinearMatMul", build_matmul},
	{"Gemm", build_gemm},
	{"QGemm", build_gemm},
	{"Add", build_add},
	{"QLinearAdd", build_add},
	{"Sub", build_sub},
	{"Mul", build_mul},
	{"QLinearMul", build_mul},
	{"MaxPool", build_max_pool},
	{"AveragePool", build_average_pool},
	{"QLinearAveragePool", build_average_pool},
	{"GlobalAveragePool", build_global_pool},
	{"QLinearGlobalAveragePool", build_global_pool},
	{"ReduceMean", build_mean},
	{"Softmax", build_softmax},
	{"QLinearSoftmax", build_softmax},
	{"Concat", build_concat},
	{"QLinearConcat", build_concat},
	{"Max", build_max},
	{"Min", build_min},
	{"Slice", build_slice},
	{"Pad", build_pad},
	{"Resize", build_resize},
	{"DepthToSpace", build_depth_to_space},
	{"SpaceToDepth", build_space_to_depth},
	{"Reshape", build_reshape},
	{"Flatten", build_reshape},
	{"Squeeze", build_reshape},
	{"Unsqueeze", build_reshape},
	{"Identity", build_reshape},
	{"Transpose", build_transpose},
	{"QuantizeLinear", build_quantize},
	{"Sigmoid", build_table},
	{"QLinearSigmoid", build_table},
	{"QLinearLeakyRelu", build_table},
	{"Tanh", build_table},
	{"Erf", build_table},
	{"Exp", build_table},
	{"Log", build_table},
	{"Sqrt", build_table},
	{"Abs", build_table},
	{"Floor", build_table},
	{"Ceil", build_table},
	{"Round", build_table},
	{"Sin", build_table},
	{"Cos", build_table},
	{"Atan", build_table},
	{"Sinh", build_table},
	{"Asinh", build_table},
	{"Relu", build_table},
	{"Clip", build_table},
	{"LeakyRelu", build_table},
	{"Elu", build_table},
	{"Selu", build_table},
	{"HardSigmoid", build_table},
	{"HardSwish", build_table},
	{"Gelu", build_table},
	{"Neg", build_table},
	{"Reciprocal", build_table},
	{"Softplus", build_table},
	{"Softsign", build_table},
};

static int build_unit(struct build *b, const struct unit *u)
{
	const char *type = b->g->nodes[u->op].type;

	b->u = u;
	for (size_t i = 0; i < sizeof(builders) / sizeof(builders[0]); i++)
		if (strcmp(builders[i].type, type) == 0)
			return builders[i].build(b);
	return refuse(b, "this operator is not supported");
}

/* What the model gives, in any order of dimensions that it has. */
static int find_outputs(struct build *b, const uint32_t *outs, uint32_t count,
			uint32_t *tensors)
{
	for (uint32_t i = 0; i < count; i++) {
		const struct made *m = NULL;

		/* The first is the one that an operator of the graph made. */
		for (uint32_t k = 0; k < b->made_count && !m; k++)
			if (b->made[k].value == outs[i])
				m = &b->made[k];
		if (!m)
			return refuse(b, "nothing makes '%.80s'",
				      b->g->values[outs[i]].name);
		tensors[i] = m->tensor;
		b->out->out[i] = (struct port){
			outs[i], m->nhwc, b->g->values[outs[i]].type == ORT_TYPE_UINT8};
	}
	b->out->out_count = count;
	return 0;
}

int build_model(struct graph *g, const struct unit *const *units, uint32_t count,
		const uint32_t *outs, uint32_t out_count, struct built *built,
		char why[PLUGIN_WHY])
{
	struct build b = {.g = g, .why = why, .out = built};
	uint32_t *out_tensors = pool_alloc(&g->pool, out_count, sizeof(uint32_t));
	int rc;

	*built = (struct built){
		.in = pool_alloc(&g->pool, g->value_count, sizeof(struct port)),
		.out = pool_alloc(&g->pool, out_count, sizeof(struct port))};
	b.in_tensors = pool_alloc(&g->pool, g->value_count, sizeof(uint32_t));
	if (g->pool.empty)
		return no_memory(&b);
	rc = npuc_builder_create("partition", &b.b, why);
	for (uint32_t i = 0; !rc && i < count; i++)
		rc = build_unit(&b, units[i]);
	if (!rc)
		rc = find_outputs(&b, outs, out_count, out_tensors);
	if (!rc)
		rc = npuc_builder_model(b.b, b.in_tensors, built->in_count, out_tensors,
					out_count, &built->model, why);
	npuc_builder_free(b.b);
	free(b.made);
	return rc;
}
