/* SPDX-License-Identifier: Apache-2.0 */
/* build.h - a model in the making: what operators (operators.c, moves.c, tables.c) add to
 * it.
 *
 * All tensors are int8: uint8 less 128.  Images are N, H, W, C where an operator needs
 * them so, and signals N, L, C; the host turns them at the edges of the partition.
 * Functions return 0, or
 * -errno with a text in .why. */
#ifndef ACCELHAL_ONNX_BUILD_H
#define ACCELHAL_ONNX_BUILD_H

#include "plugin.h"

/* Operators of the schema. */
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

/* A result: of the quantization that the operator computes, and then of the wanted one.
 */
struct result {
	uint32_t tensor, final;
};

static inline const struct value *value_of(const struct build *b, const struct operand *o)
{
	return &b->g->values[o->value];
}

static inline const struct node *op_of(const struct build *b)
{
	return &b->g->nodes[b->u->op];
}

static inline struct quant quant_of(const struct build *b, const struct operand *o)
{
	bool byte = value_of(b, o)->type == ORT_TYPE_UINT8;

	if (!o->scale)
		return (struct quant){0};
	return (struct quant){*o->scale, o->zero - (byte ? 128 : 0)};
}

static inline bool same_quant(struct quant a, struct quant b)
{
	return a.scale == b.scale && a.zero == b.zero;
}

/* The quantization of operators that compare or average bytes of any. */
static inline struct quant any_quant(const struct build *b, const struct operand *o)
{
	struct quant q = quant_of(b, o);

	return q.scale > 0 ? q : (struct quant){1, 0};
}

static inline struct npuc_attr int_attr(const char *name, int64_t i)
{
	return (struct npuc_attr){.name = name, .i = i};
}

/* Write why the unit in work cannot be built. */
int model_refuse(struct build *b, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
int model_no_memory(struct build *b);

/* ---- build.c: tensors --------------------------------------------------------------- */

/* A tensor; data NULL: not constant. */
int model_tensor(struct build *b, enum npuc_type type, uint32_t rank, const int32_t *dims,
		 struct quant q, const void *data, uint64_t bytes, uint32_t *tensor);
/* A constant of whole numbers, such as sizes; in pairs: two in a row. */
int model_ints(struct build *b, const int32_t *numbers, uint32_t count, uint32_t pairs,
	       uint32_t *tensor);
int model_op(struct build *b, uint32_t code, const uint32_t *in, uint32_t in_count,
	     uint32_t out, const struct npuc_attr *attrs, uint32_t attr_count);
/* Where an axis of the graph is in the model; nhwc: the channels are last. */
uint32_t model_axis(uint32_t axis, uint32_t rank, bool nhwc);
/* Dimensions of a value as the model has them: the graph's, or with the channels last. */
void model_dims(const struct value *v, bool nhwc, int32_t *dims);
/* A tensor for a value, that an operator added next computes. */
int model_made(struct build *b, uint32_t value, bool nhwc, struct quant q,
	       uint32_t *tensor);
int model_reshape(struct build *b, uint32_t from, uint32_t to, uint32_t rank,
		  const int32_t *dims);
int model_transpose(struct build *b, uint32_t from, uint32_t to, const int32_t *order,
		    uint32_t rank);
/* Write a constant of bytes as int8, malloc'ed, with its dimensions in that order. */
int8_t *model_permuted(const struct value *v, const int32_t *dims, uint32_t rank,
		       const uint32_t *order);
/* A constant operand of an element-wise operator, with rank dimensions. */
int model_constant(struct build *b, const struct operand *o, uint32_t rank, bool nhwc,
		   uint32_t *tensor);
/* The tensor of an operand in the order and quantization that the operator needs. */
int model_use(struct build *b, const struct operand *o, bool nhwc, struct quant q,
	      uint32_t *tensor);
/* Is a value better with its channels last?  As it is, else an image is. */
bool model_prefers_nhwc(const struct build *b, const struct operand *o);
/* Begin with the result of an operator that computes with q, and end it after the
 * operator: another quantization is a QUANTIZE more. */
int model_begin(struct build *b, bool nhwc, struct quant q, struct result *r);
int model_end(struct build *b, const struct result *r);

/* ---- the unit in work becomes operators --------------------------------------------- */

/* operators.c */
int build_add(struct build *b);
int build_sub(struct build *b);
int build_mul(struct build *b);
int build_conv(struct build *b);
int build_conv_transpose(struct build *b);
int build_matmul(struct build *b);
int build_gemm(struct build *b);
int build_max_pool(struct build *b);
int build_average_pool(struct build *b);
int build_global_pool(struct build *b);
int build_mean(struct build *b);
int build_softmax(struct build *b);
/* moves.c */
int build_concat(struct build *b);
int build_max(struct build *b);
int build_min(struct build *b);
int build_slice(struct build *b);
int build_split(struct build *b);
int build_pad(struct build *b);
int build_resize(struct build *b);
int build_depth_to_space(struct build *b);
int build_space_to_depth(struct build *b);
int build_reshape(struct build *b);
int build_transpose(struct build *b);
int build_quantize(struct build *b);
int model_slice(struct build *b, uint32_t from, const int32_t *begin, const int32_t *end,
		const int32_t *step, uint32_t rank, uint32_t to);
/* tables.c */
int build_table(struct build *b);

#endif
