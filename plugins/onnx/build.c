/* SPDX-License-Identifier: Apache-2.0 */
/* build.c - units become a model: its tensors, and which operator builds what. */
#include "build.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int model_refuse(struct build *b, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(b->why, PLUGIN_WHY, format, args);
	va_end(args);
	return -ENOTSUP;
}

int model_no_memory(struct build *b)
{
	snprintf(b->why, PLUGIN_WHY, "out of memory");
	return -ENOMEM;
}

/* ---- tensors ----------------------------------------------------------------------- */

int model_tensor(struct build *b, enum npuc_type type, uint32_t rank, const int32_t *dims,
		 struct quant q, const void *data, uint64_t bytes, uint32_t *tensor)
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
int model_ints(struct build *b, const int32_t *numbers, uint32_t count, uint32_t pairs,
	       uint32_t *tensor)
{
	const int32_t dims[] = {(int32_t)(pairs ? count / 2 : count), 2};

	return model_tensor(b, NPUC_INT32, pairs ? 2 : 1, dims, (struct quant){0},
			    numbers, count * sizeof(*numbers), tensor);
}

int model_op(struct build *b, uint32_t code, const uint32_t *in, uint32_t in_count,
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

uint32_t model_axis(uint32_t axis, uint32_t rank, bool nhwc)
{
	if (!nhwc || !axis)
		return axis;
	return axis == 1 ? rank - 1 : axis - 1;
}

void model_dims(const struct value *v, bool nhwc, int32_t *dims)
{
	memcpy(dims, v->dims, sizeof(v->dims));
	for (uint32_t i = 0; nhwc && i < v->rank; i++)
		dims[model_axis(i, v->rank, true)] = v->dims[i];
}

static int remember(struct build *b, const struct made *m)
{
	if (b->made_count == b->made_room) {
		uint32_t room = b->made_room ? b->made_room * 2 : 64;
		struct made *more = realloc(b->made, room * sizeof(*more));

		if (!more)
			return model_no_memory(b);
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
int model_made(struct build *b, uint32_t value, bool nhwc, struct quant q,
	       uint32_t *tensor)
{
	const struct value *v = &b->g->values[value];
	struct made m = {.value = value, .rank = v->rank, .nhwc = nhwc, .q = q};
	int rc;

	model_dims(v, nhwc, m.dims);
	rc = model_tensor(b, NPUC_INT8, m.rank, m.dims, q, NULL, 0, &m.tensor);
	*tensor = m.tensor;
	return rc ? rc : remember(b, &m);
}

int model_reshape(struct build *b, uint32_t from, uint32_t to, uint32_t rank,
		  const int32_t *dims)
{
	const struct npuc_attr attr = {.name = "new_shape", .ints = dims, .count = rank};

	return model_op(b, CODE_RESHAPE, &from, 1, to, rank ? &attr : NULL, rank ? 1 : 0);
}

int model_transpose(struct build *b, uint32_t from, uint32_t to, const int32_t *order,
		    uint32_t rank)
{
	uint32_t in[2] = {from, 0};
	int rc = model_ints(b, order, rank, 0, &in[1]);

	return rc ? rc : model_op(b, CODE_TRANSPOSE, in, 2, to, NULL, 0);
}

/* Turn a tensor between N, C, H, W and N, H, W, C. */
static int turn_image(struct build *b, const struct made *from, bool nhwc,
		      uint32_t *tensor)
{
	const struct value *v = &b->g->values[from->value];
	const struct made m = *from; /* the list may move */
	int32_t dims[PLUGIN_RANK], order[PLUGIN_RANK], pixels = 1;
	int rc = model_made(b, m.value, nhwc, m.q, tensor);

	if (rc)
		return rc;
	model_dims(v, nhwc, dims);
	for (uint32_t i = 2; i < v->rank; i++)
		pixels *= v->dims[i];
	if (v->dims[1] == 1 || pixels == 1)
		return model_reshape(b, m.tensor, *tensor, v->rank, dims);
	for (uint32_t i = 0; i < v->rank; i++) {
		uint32_t to = model_axis(i, v->rank, true);

		order[nhwc ? to : i] = (int32_t)(nhwc ? i : to);
	}
	return model_transpose(b, m.tensor, *tensor, order, v->rank);
}

/* Write a constant of bytes as int8, with its dimensions moved to those of the order. */
int8_t *model_permuted(const struct value *v, const int32_t *dims, uint32_t rank,
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
int model_constant(struct build *b, const struct operand *o, uint32_t rank, bool nhwc,
		   uint32_t *tensor)
{
	const struct value *v = value_of(b, o);
	int32_t dims[PLUGIN_RANK] = {0}, to[PLUGIN_RANK];
	uint32_t order[PLUGIN_RANK] = {0};
	int8_t *data;
	int rc;

	if (!o->scale || o->scales != 1)
		return model_refuse(b, "constant '%.80s' is not quantized per tensor",
				    v->name);
	for (uint32_t i = 0; i < rank; i++) {
		dims[i] = i + v->rank < rank ? 1 : v->dims[i + v->rank - rank];
		order[model_axis(i, rank, nhwc)] = i;
	}
	for (uint32_t i = 0; i < rank; i++)
		to[i] = dims[order[i]];
	data = model_permuted(v, dims, rank, order);
	if (!data)
		return model_no_memory(b);
	rc = model_tensor(b, NPUC_INT8, rank, to, quant_of(b, o), data, v->count, tensor);
	free(data);
	return rc;
}

/* An input of the partition. */
static int use_input(struct build *b, const struct operand *o, bool nhwc, struct quant q,
		     uint32_t *tensor)
{
	const struct value *v = value_of(b, o);
	uint32_t n = b->out->in_count;
	int rc = model_made(b, o->value, nhwc, q, tensor);

	if (rc)
		return rc;
	b->in_tensors[n] = *tensor;
	b->out->in[n] = (struct port){o->value, nhwc, v->type == ORT_TYPE_UINT8};
	b->out->in_count++;
	return 0;
}

/* The tensor of an operand in the order and quantization that the operator needs. */
int model_use(struct build *b, const struct operand *o, bool nhwc, struct quant q,
	      uint32_t *tensor)
{
	const struct made *m = find_made(b, o->value, nhwc, q);
	uint32_t from;
	int rc = 0;

	if (o->scales > 1)
		return model_refuse(b, "'%.80s' has a scale per channel",
				    value_of(b, o)->name);
	if (value_of(b, o)->data || (value_of(b, o)->type != ORT_TYPE_INT8 &&
				     value_of(b, o)->type != ORT_TYPE_UINT8))
		return model_refuse(b, "'%.80s' is constant, or neither int8 nor uint8",
				    value_of(b, o)->name);
	if (!m)
		return use_input(b, o, nhwc, q, tensor);
	if (m->nhwc != nhwc) {
		rc = turn_image(b, m, nhwc, tensor);
		if (rc)
			return rc;
		m = &b->made[b->made_count - 1];
	}
	from = *tensor = m->tensor;
	if (q.scale == 0 || same_quant(m->q, q))
		return 0;
	/* The same bytes stand for other numbers. */
	rc = model_made(b, o->value, nhwc, q, tensor);
	m = &b->made[b->made_count - 1];
	return rc ? rc : model_reshape(b, from, *tensor, m->rank, m->dims);
}

int model_begin(struct build *b, bool nhwc, struct quant q, struct result *r)
{
	const struct operand *o = &b->u->out;
	struct quant want = o->scale ? quant_of(b, o) : q;
	int32_t dims[PLUGIN_RANK];
	int rc = model_made(b, o->value, nhwc, want, &r->final);

	r->tensor = r->final;
	if (rc || same_quant(q, want))
		return rc;
	model_dims(value_of(b, o), nhwc, dims);
	return model_tensor(b, NPUC_INT8, value_of(b, o)->rank, dims, q, NULL, 0,
			    &r->tensor);
}

int model_end(struct build *b, const struct result *r)
{
	if (r->tensor == r->final)
		return 0;
	return model_op(b, CODE_QUANTIZE, &r->tensor, 1, r->final, NULL, 0);
}

bool model_prefers_nhwc(const struct build *b, const struct operand *o)
{
	const struct made *m = find_made(b, o->value, true, (struct quant){0});

	return m ? m->nhwc : value_of(b, o)->rank == 4;
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
	{"Split", build_split},
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
	return model_refuse(b, "this operator is not supported");
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
			return model_refuse(b, "nothing makes '%.80s'",
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
		return model_no_memory(&b);
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
