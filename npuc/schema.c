/* SPDX-License-Identifier: Apache-2.0 */
/* schema.c - options of operators, by names and numbers of schema version 3. */
#include "schema.h"

#include <stddef.h>

#include "model.h"

#define ACTIVATION(number)                                                               \
	{                                                                                \
		"fused_activation_function", number, SCHEMA_U8                           \
	}
#define U8(name, number)                                                                 \
	{                                                                                \
		name, number, SCHEMA_U8                                                  \
	}
#define BOOL(name, number)                                                               \
	{                                                                                \
		name, number, SCHEMA_BOOL                                                \
	}
#define I32(name, number)                                                                \
	{                                                                                \
		name, number, SCHEMA_I32                                                 \
	}
#define F32(name, number)                                                                \
	{                                                                                \
		name, number, SCHEMA_F32                                                 \
	}
#define INTS(name, number)                                                               \
	{                                                                                \
		name, number, SCHEMA_INTS                                                \
	}

/* By their number in union BuiltinOptions. */
static const struct options {
	uint32_t number;
	struct schema_field fields[SCHEMA_FIELDS + 1];
} tables[] = {
	{1,
	 {U8("padding", 0), I32("stride_w", 1), I32("stride_h", 2), ACTIVATION(3),
	  I32("dilation_w_factor", 4), I32("dilation_h_factor", 5),
	  U8("quantized_bias_type", 6)}},
	{2,
	 {U8("padding", 0), I32("stride_w", 1), I32("stride_h", 2),
	  I32("depth_multiplier", 3), ACTIVATION(4), I32("dilation_w_factor", 5),
	  I32("dilation_h_factor", 6)}},
	{5,
	 {U8("padding", 0), I32("stride_w", 1), I32("stride_h", 2),
	  I32("filter_width", 3), I32("filter_height", 4), ACTIVATION(5)}},
	{6, {I32("rank", 0), ACTIVATION(1), BOOL("asymmetric_quantize_inputs", 2)}},
	{8,
	 {ACTIVATION(0), U8("weights_format", 1), BOOL("keep_num_dims", 2),
	  BOOL("asymmetric_quantize_inputs", 3), U8("quantized_bias_type", 4)}},
	{9, {F32("beta", 0)}},
	{10, {I32("axis", 0), ACTIVATION(1)}},
	{11, {ACTIVATION(0), BOOL("pot_scale_int16", 1)}},
	{15,
	 {I32("new_height", 0), I32("new_width", 1), BOOL("align_corners", 2),
	  BOOL("half_pixel_centers", 3)}},
	{17, {INTS("new_shape", 0)}},
	{19, {I32("block_size", 0)}},
	{21, {ACTIVATION(0)}},
	{23, {I32("axis", 0), I32("batch_dims", 1)}},
	{27, {BOOL("keep_dims", 0)}},
	{28, {ACTIVATION(0), BOOL("pot_scale_int16", 1)}},
	{29, {ACTIVATION(0)}},
	{30, {INTS("squeeze_dims", 0)}},
	{32,
	 {I32("begin_mask", 0), I32("end_mask", 1), I32("ellipsis_mask", 2),
	  I32("new_axis_mask", 3), I32("shrink_axis_mask", 4), BOOL("offset", 5)}},
	{35, {I32("num_splits", 0)}},
	{37, {U8("in_data_type", 0), U8("out_data_type", 1)}},
	{40, {U8("output_type", 0)}},
	{49,
	 {U8("padding", 0), I32("stride_w", 1), I32("stride_h", 2), ACTIVATION(3),
	  U8("quantized_bias_type", 4)}},
	{55, {U8("out_type", 0)}},
	{57, {U8("output_type", 0)}},
	{59, {I32("values_count", 0), I32("axis", 1)}},
	{64, {I32("num", 0), I32("axis", 1)}},
	{71,
	 {ACTIVATION(0), F32("cell_clip", 1), F32("proj_clip", 2), BOOL("time_major", 3),
	  BOOL("asymmetric_quantize_inputs", 4), BOOL("diagonal_recurrent_tensors", 5)}},
	{74, {BOOL("align_corners", 0), BOOL("half_pixel_centers", 1)}},
	{75, {F32("alpha", 0)}},
	{77, {U8("mode", 0)}},
	{79, {I32("num_splits", 0)}},
	{94, {I32("block_size", 0)}},
	{101,
	 {BOOL("adj_x", 0), BOOL("adj_y", 1), BOOL("asymmetric_quantize_inputs", 2)}},
	{116, {BOOL("approximate", 0)}},
};

static const struct {
	uint32_t code, options;
} operators[] = {
	{NPUC_ADD, 11},
	{NPUC_AVERAGE_POOL_2D, 5},
	{NPUC_CONCATENATION, 10},
	{NPUC_CONV_2D, 1},
	{NPUC_DEPTHWISE_CONV_2D, 2},
	{NPUC_DEPTH_TO_SPACE, 94},
	{NPUC_FULLY_CONNECTED, 8},
	{NPUC_MAX_POOL_2D, 5},
	{NPUC_MUL, 21},
	{NPUC_RESHAPE, 17},
	{NPUC_RESIZE_BILINEAR, 15},
	{NPUC_SOFTMAX, 9},
	{NPUC_SPACE_TO_DEPTH, 19},
	{NPUC_SVDF, 6},
	{NPUC_GATHER, 23},
	{NPUC_MEAN, 27},
	{NPUC_SUB, 28},
	{NPUC_DIV, 29},
	{NPUC_SQUEEZE, 30},
	{NPUC_UNIDIRECTIONAL_SEQUENCE_LSTM, 71},
	{NPUC_STRIDED_SLICE, 32},
	{NPUC_SPLIT, 35},
	{NPUC_CAST, 37},
	{NPUC_ARG_MAX, 40},
	{NPUC_TRANSPOSE_CONV, 49},
	{NPUC_SUM, 27},
	{NPUC_SHAPE, 55},
	{NPUC_ARG_MIN, 57},
	{NPUC_REDUCE_PROD, 27},
	{NPUC_REDUCE_MAX, 27},
	{NPUC_PACK, 59},
	{NPUC_UNPACK, 64},
	{NPUC_REDUCE_MIN, 27},
	{NPUC_RESIZE_NEAREST_NEIGHBOR, 74},
	{NPUC_LEAKY_RELU, 75},
	{NPUC_MIRROR_PAD, 77},
	{NPUC_SPLIT_V, 79},
	{NPUC_BATCH_MATMUL, 101},
	{NPUC_GELU, 116},
};

static const struct schema_field *find_options(uint32_t number)
{
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		if (tables[i].number == number)
			return tables[i].fields;
	return NULL;
}

const struct schema_field *npuc_schema_fields(uint32_t code, uint32_t *options)
{
	for (size_t i = 0; i < sizeof(operators) / sizeof(operators[0]); i++)
		if (operators[i].code == code) {
			*options = operators[i].options;
			return find_options(operators[i].options);
		}
	return NULL;
}
