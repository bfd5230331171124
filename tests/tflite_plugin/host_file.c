/* SPDX-License-Identifier: Apache-2.0 */
/* host_file.c - a .tflite file as a graph of the fake interpreter.  libnpuc reads the
 * file; options become the interpreter's structs here. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake_host.h"
#include "model.h"

enum kind {
	END,
	I8,
	I32,
	I32_ONE, /* 1 where the file leaves it out */
	F32,
	BOOL,
	BOOL_TRUE, /* true where the file leaves it out */
	PADDING,   /* the file: same, valid; the interpreter: unknown, same, valid */
	TYPE,
	SHAPE, /* eight ints, and their count */
};

/* Where an option lies: its field in the file, its byte in the interpreter's struct. */
struct option {
	uint8_t kind, field, at;
};

static const struct operator_options {
	uint8_t code;
	struct option list[8];
} operators[] = {
	{NPUC_ADD, {{I8, 0, 0}, {BOOL_TRUE, 1, 4}}},
	{NPUC_AVERAGE_POOL_2D,
	 {{PADDING, 0, 0},
	  {I32, 1, 4},
	  {I32, 2, 8},
	  {I32, 3, 12},
	  {I32, 4, 16},
	  {I8, 5, 20}}},
	{NPUC_CONCATENATION, {{I32, 0, 0}, {I8, 1, 4}}},
	{NPUC_CONV_2D,
	 {{PADDING, 0, 0},
	  {I32, 1, 4},
	  {I32, 2, 8},
	  {I8, 3, 12},
	  {I32_ONE, 4, 16},
	  {I32_ONE, 5, 20}}},
	{NPUC_DEPTHWISE_CONV_2D,
	 {{PADDING, 0, 0},
	  {I32, 1, 4},
	  {I32, 2, 8},
	  {I32, 3, 12},
	  {I8, 4, 16},
	  {I32_ONE, 5, 20},
	  {I32_ONE, 6, 24}}},
	{NPUC_DEPTH_TO_SPACE, {{I32, 0, 0}}},
	{NPUC_FULLY_CONNECTED, {{I8, 0, 0}, {I8, 1, 4}, {BOOL, 2, 8}}},
	{NPUC_MAX_POOL_2D,
	 {{PADDING, 0, 0},
	  {I32, 1, 4},
	  {I32, 2, 8},
	  {I32, 3, 12},
	  {I32, 4, 16},
	  {I8, 5, 20}}},
	{NPUC_MUL, {{I8, 0, 0}}},
	{NPUC_RESHAPE, {{SHAPE, 0, 0}}},
	{NPUC_RESIZE_BILINEAR, {{BOOL, 2, 0}, {BOOL, 3, 1}}},
	{NPUC_SOFTMAX, {{F32, 0, 0}}},
	{NPUC_SPACE_TO_DEPTH, {{I32, 0, 0}}},
	{NPUC_GATHER, {{I32, 0, 0}, {I32, 1, 4}}},
	{NPUC_MEAN, {{BOOL, 0, 0}}},
	{NPUC_SUB, {{I8, 0, 0}, {BOOL_TRUE, 1, 4}}},
	{NPUC_SQUEEZE, {{SHAPE, 0, 0}}},
	{NPUC_STRIDED_SLICE,
	 {{I32, 0, 0},
	  {I32, 1, 4},
	  {I32, 2, 8},
	  {I32, 3, 12},
	  {I32, 4, 16},
	  {BOOL, 5, 20}}},
	{NPUC_DIV, {{I8, 0, 0}}},
	{NPUC_SUM, {{BOOL, 0, 0}}},
	{NPUC_CAST, {{TYPE, 0, 0}, {TYPE, 1, 4}}},
	{NPUC_SHAPE, {{TYPE, 0, 0}}},
	{NPUC_REDUCE_PROD, {{BOOL, 0, 0}}},
	{NPUC_SPLIT, {{I32, 0, 0}}},
	{NPUC_ARG_MAX, {{TYPE, 0, 0}}},
	{NPUC_TRANSPOSE_CONV, {{PADDING, 0, 0}, {I32, 1, 4}, {I32, 2, 8}, {I8, 3, 12}}},
	{NPUC_ARG_MIN, {{TYPE, 0, 0}}},
	{NPUC_REDUCE_MAX, {{BOOL, 0, 0}}},
	{NPUC_PACK, {{I32, 0, 0}, {I32, 1, 4}}},
	{NPUC_UNPACK, {{I32, 0, 0}, {I32, 1, 4}}},
	{NPUC_REDUCE_MIN, {{BOOL, 0, 0}}},
	{NPUC_RESIZE_NEAREST_NEIGHBOR, {{BOOL, 0, 0}, {BOOL, 1, 1}}},
	{NPUC_LEAKY_RELU, {{F32, 0, 0}}},
	{NPUC_MIRROR_PAD, {{PADDING, 0, 0}}},
	{NPUC_SPLIT_V, {{I32, 0, 0}}},
	{NPUC_BATCH_MATMUL, {{BOOL, 0, 0}, {BOOL, 1, 1}}},
	{NPUC_GELU, {{BOOL, 0, 0}}},
};

static int tfl_type(enum npuc_type type)
{
	switch (type) {
	case NPUC_FLOAT32:
		return TFL_FLOAT32;
	case NPUC_FLOAT16:
		return TFL_FLOAT16;
	case NPUC_FLOAT64:
		return TFL_FLOAT64;
	case NPUC_COMPLEX128:
		return TFL_COMPLEX128;
	default:
		return (int)type < 12 ? (int)type : (int)type + 1;
	}
}

static int32_t read_option(struct flat *f, struct flat_table t, const struct option *o)
{
	float real = o->kind == F32 ? flat_f32(f, t, o->field, 0) : 0;
	int32_t i;

	switch (o->kind) {
	case F32:
		memcpy(&i, &real, sizeof(i));
		return i;
	case I32:
	case I32_ONE:
		return flat_i32(f, t, o->field, o->kind == I32_ONE);
	case PADDING:
		return flat_u8(f, t, o->field, 0) + 1;
	case TYPE:
		return tfl_type((enum npuc_type)flat_u8(f, t, o->field, 0));
	default:
		return flat_u8(f, t, o->field, o->kind == BOOL_TRUE);
	}
}

static void read_shape(struct flat *f, struct flat_table t, const struct option *o,
		       uint8_t *params)
{
	struct flat_vector v = flat_vector(f, t, o->field, 4);
	int32_t count = v.count < 8 ? (int32_t)v.count : 8;

	for (uint32_t i = 0; i < (uint32_t)count; i++) {
		int32_t x = flat_vector_i32(f, v, i);

		memcpy(params + o->at + 4 * i, &x, sizeof(x));
	}
	memcpy(params + o->at + 32, &count, sizeof(count));
}

/* Make the interpreter's struct of options; NULL: the operator has none. */
static void *make_params(const struct npuc_model *m, const struct model_op *op)
{
	struct flat f = m->flat;
	uint8_t *params;

	for (size_t i = 0; i < sizeof(operators) / sizeof(operators[0]); i++) {
		if (operators[i].code != op->code)
			continue;
		params = calloc(1, 64);
		if (!params)
			abort();
		for (const struct option *o = operators[i].list; o->kind; o++) {
			int32_t x;

			if (o->kind == SHAPE) {
				read_shape(&f, op->options, o, params);
				continue;
			}
			x = read_option(&f, op->options, o);
			if (o->kind == BOOL || o->kind == BOOL_TRUE)
				params[o->at] = x != 0;
			else
				memcpy(params + o->at, &x, sizeof(x));
		}
		return params;
	}
	return NULL;
}

static void add_tensor(struct host *h, const struct npuc_model *m, uint32_t index)
{
	const struct model_tensor *mt = &m->tensors[index];
	const struct npuc_tensor *t = &mt->t;
	struct host_tensor made = {.name = t->name,
				   .type = tfl_type(t->type),
				   .rank = (int)t->rank,
				   .data = t->data};
	float *scales;
	int32_t *zeros;

	memcpy(made.dims, t->dims, sizeof(made.dims));
	host_add_tensor(h, &made);
	if (mt->open)
		host_open(h, (int)index, mt->open);
	if (!t->scales)
		return;
	scales = malloc(t->scales * sizeof(*scales));
	zeros = malloc(t->scales * sizeof(*zeros));
	if (!scales || !zeros)
		abort();
	for (uint32_t c = 0; c < t->scales; c++) {
		scales[c] = t->scales > 1 ? npuc_tensor_scale(m, index, c) : t->scale;
		zeros[c] = npuc_tensor_zero_point(m, index, c);
	}
	host_quantize(h, (int)index, scales, (int)t->scales, zeros, (int)t->scales,
		      (int)t->channel_dim);
	free(scales);
	free(zeros);
}

static int *list_of(const uint32_t *tensors, uint32_t count)
{
	int *list = malloc((count + 1) * sizeof(*list));

	if (!list)
		abort();
	for (uint32_t i = 0; i < count; i++)
		list[i] = tensors[i] == NPUC_NONE ? -1 : (int)tensors[i];
	list[count] = -2;
	return list;
}

static void add_op(struct host *h, const struct npuc_model *m, const struct model_op *op)
{
	int *ins = list_of(op->inputs, op->input_count);
	int *outs = list_of(op->outputs, op->output_count);

	host_add_node(h, (int)op->code, op->version, op->custom, ins, outs,
		      make_params(m, op), NULL);
	free(ins);
	free(outs);
}

struct host *host_of_model(enum host_version version, const struct npuc_model *m)
{
	struct host *h = host_make(version);
	int *ins = list_of(m->inputs, m->input_count);
	int *outs = list_of(m->outputs, m->output_count);

	for (uint32_t i = 0; i < m->tensor_count; i++)
		add_tensor(h, m, i);
	for (uint32_t i = 0; i < m->op_count; i++)
		add_op(h, m, &m->ops[i]);
	host_set_ports(h, ins, outs);
	free(ins);
	free(outs);
	return h;
}
