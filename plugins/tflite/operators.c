/* SPDX-License-Identifier: Apache-2.0 */
/*
 * operators.c - operators of the interpreter by their number in the schema, and where
 * their options lie in the interpreter's structs (builtin_op_data.h, 2.14 to LiteRT 2.3).
 * These structs grow at their end only; what has been appended since is not read.
 */
#include <string.h>
#include <strings.h>

#include "plug.h"

enum kind {
	NO_FIELD,
	INT,  /* also enum: the same numbers as in a file */
	BOOL, /* one byte */
	FLOAT,
	PADDING, /* 0 unknown, 1 same, 2 valid; in a file 0 same, 1 valid */
	MIRROR,  /* 0 unknown, 1 reflect, 2 symmetric; in a file 0, 1 */
	TYPE,    /* enum tfl_type */
	SHAPE,   /* eight ints at the offset, their count in the int behind them */
};

struct field {
	enum kind kind;
	uint32_t offset;  /* bytes, in the interpreter's struct */
	const char *name; /* in the schema */
};

struct tfl_operator {
	int32_t code;
	enum claim claim;
	const char *name;
	const struct field *fields; /* NULL: it has no options that matter */
};

#define ACT "fused_activation_function"

static const struct field act_fields[] = {{INT, 0, ACT}, {NO_FIELD, 0, NULL}};
static const struct field add_fields[] = {
	{INT, 0, ACT}, {BOOL, 4, "pot_scale_int16"}, {NO_FIELD, 0, NULL}};
static const struct field pool_fields[] = {
	{PADDING, 0, "padding"},   {INT, 4, "stride_w"},       {INT, 8, "stride_h"},
	{INT, 12, "filter_width"}, {INT, 16, "filter_height"}, {INT, 20, ACT},
	{NO_FIELD, 0, NULL}};
static const struct field concat_fields[] = {
	{INT, 0, "axis"}, {INT, 4, ACT}, {NO_FIELD, 0, NULL}};
static const struct field conv_fields[] = {{PADDING, 0, "padding"},
					   {INT, 4, "stride_w"},
					   {INT, 8, "stride_h"},
					   {INT, 12, ACT},
					   {INT, 16, "dilation_w_factor"},
					   {INT, 20, "dilation_h_factor"},
					   {NO_FIELD, 0, NULL}};
static const struct field depthwise_fields[] = {{PADDING, 0, "padding"},
						{INT, 4, "stride_w"},
						{INT, 8, "stride_h"},
						{INT, 12, "depth_multiplier"},
						{INT, 16, ACT},
						{INT, 20, "dilation_w_factor"},
						{INT, 24, "dilation_h_factor"},
						{NO_FIELD, 0, NULL}};
static const struct field block_fields[] = {{INT, 0, "block_size"}, {NO_FIELD, 0, NULL}};
static const struct field connected_fields[] = {{INT, 0, ACT},
						{INT, 4, "weights_format"},
						{BOOL, 8, "keep_num_dims"},
						{NO_FIELD, 0, NULL}};
static const struct field reshape_fields[] = {{SHAPE, 0, "new_shape"},
					      {NO_FIELD, 0, NULL}};
static const struct field resize_fields[] = {
	{BOOL, 0, "align_corners"}, {BOOL, 1, "half_pixel_centers"}, {NO_FIELD, 0, NULL}};
static const struct field softmax_fields[] = {{FLOAT, 0, "beta"}, {NO_FIELD, 0, NULL}};
static const struct field gather_fields[] = {
	{INT, 0, "axis"}, {INT, 4, "batch_dims"}, {NO_FIELD, 0, NULL}};
static const struct field reducer_fields[] = {{BOOL, 0, "keep_dims"},
					      {NO_FIELD, 0, NULL}};
static const struct field squeeze_fields[] = {{SHAPE, 0, "squeeze_dims"},
					      {NO_FIELD, 0, NULL}};
static const struct field strided_slice_fields[] = {{INT, 0, "begin_mask"},
						    {INT, 4, "end_mask"},
						    {INT, 8, "ellipsis_mask"},
						    {INT, 12, "new_axis_mask"},
						    {INT, 16, "shrink_axis_mask"},
						    {BOOL, 20, "offset"},
						    {NO_FIELD, 0, NULL}};
static const struct field split_fields[] = {{INT, 0, "num_splits"}, {NO_FIELD, 0, NULL}};
static const struct field pick_fields[] = {{TYPE, 0, "output_type"}, {NO_FIELD, 0, NULL}};
static const struct field shape_fields[] = {{TYPE, 0, "out_type"}, {NO_FIELD, 0, NULL}};
static const struct field cast_fields[] = {
	{TYPE, 0, "in_data_type"}, {TYPE, 4, "out_data_type"}, {NO_FIELD, 0, NULL}};
static const struct field transpose_conv_fields[] = {{PADDING, 0, "padding"},
						     {INT, 4, "stride_w"},
						     {INT, 8, "stride_h"},
						     {INT, 12, ACT},
						     {NO_FIELD, 0, NULL}};
static const struct field pack_fields[] = {
	{INT, 0, "values_count"}, {INT, 4, "axis"}, {NO_FIELD, 0, NULL}};
static const struct field unpack_fields[] = {
	{INT, 0, "num"}, {INT, 4, "axis"}, {NO_FIELD, 0, NULL}};
static const struct field leaky_fields[] = {{FLOAT, 0, "alpha"}, {NO_FIELD, 0, NULL}};
static const struct field mirror_fields[] = {{MIRROR, 0, "mode"}, {NO_FIELD, 0, NULL}};
static const struct field matmul_fields[] = {
	{BOOL, 0, "adj_x"}, {BOOL, 1, "adj_y"}, {NO_FIELD, 0, NULL}};
static const struct field gelu_fields[] = {{BOOL, 0, "approximate"}, {NO_FIELD, 0, NULL}};

/* Those that are never claimed need variables, constants alone or floats. */
static const struct tfl_operator operators[] = {
	{0, ALWAYS, "ADD", add_fields},
	{1, ALWAYS, "AVERAGE_POOL_2D", pool_fields},
	{2, ALWAYS, "CONCATENATION", concat_fields},
	{3, ALWAYS, "CONV_2D", conv_fields},
	{4, ALWAYS, "DEPTHWISE_CONV_2D", depthwise_fields},
	{5, ALWAYS, "DEPTH_TO_SPACE", block_fields},
	{6, NEVER, "DEQUANTIZE", NULL},
	{7, NEVER, "EMBEDDING_LOOKUP", NULL},
	{8, NEVER, "FLOOR", NULL},
	{9, ALWAYS, "FULLY_CONNECTED", connected_fields},
	{11, NEVER, "L2_NORMALIZATION", NULL},
	{14, ALWAYS, "LOGISTIC", NULL},
	{16, NEVER, "LSTM", NULL},
	{17, ALWAYS, "MAX_POOL_2D", pool_fields},
	{18, ALWAYS, "MUL", act_fields},
	{19, ALWAYS, "RELU", NULL},
	{20, ALWAYS, "RELU_N1_TO_1", NULL},
	{21, ALWAYS, "RELU6", NULL},
	{22, ALWAYS, "RESHAPE", reshape_fields},
	{23, ALWAYS, "RESIZE_BILINEAR", resize_fields},
	{24, NEVER, "RNN", NULL},
	{25, ALWAYS, "SOFTMAX", softmax_fields},
	{26, ALWAYS, "SPACE_TO_DEPTH", block_fields},
	{27, NEVER, "SVDF", NULL},
	{28, ALWAYS, "TANH", NULL},
	{BUILTIN_CUSTOM, NEVER, "CUSTOM", NULL},
	{34, ALWAYS, "PAD", NULL},
	{36, ALWAYS, "GATHER", gather_fields},
	{37, ALWAYS, "BATCH_TO_SPACE_ND", NULL},
	{38, ALWAYS, "SPACE_TO_BATCH_ND", NULL},
	{39, ALWAYS, "TRANSPOSE", NULL},
	{40, ALWAYS, "MEAN", reducer_fields},
	{41, ALWAYS, "SUB", add_fields},
	{42, FOLDED, "DIV", act_fields},
	{43, ALWAYS, "SQUEEZE", squeeze_fields},
	{44, NEVER, "UNIDIRECTIONAL_SEQUENCE_LSTM", NULL},
	{45, ALWAYS, "STRIDED_SLICE", strided_slice_fields},
	{47, ALWAYS, "EXP", NULL},
	{48, NEVER, "TOPK_V2", NULL},
	{49, ALWAYS, "SPLIT", split_fields},
	{50, ALWAYS, "LOG_SOFTMAX", NULL},
	{BUILTIN_DELEGATE, NEVER, "DELEGATE", NULL},
	{53, FOLDED, "CAST", cast_fields},
	{54, ALWAYS, "PRELU", NULL},
	{55, ALWAYS, "MAXIMUM", NULL},
	{56, ALWAYS, "ARG_MAX", pick_fields},
	{57, ALWAYS, "MINIMUM", NULL},
	{58, NEVER, "LESS", NULL},
	{59, ALWAYS, "NEG", NULL},
	{60, ALWAYS, "PADV2", NULL},
	{61, NEVER, "GREATER", NULL},
	{64, NEVER, "SELECT", NULL},
	{65, ALWAYS, "SLICE", NULL},
	{66, NEVER, "SIN", NULL},
	{67, ALWAYS, "TRANSPOSE_CONV", transpose_conv_fields},
	{69, ALWAYS, "TILE", NULL},
	{70, ALWAYS, "EXPAND_DIMS", NULL},
	{73, ALWAYS, "LOG", NULL},
	{74, FOLDED, "SUM", reducer_fields},
	{75, ALWAYS, "SQRT", NULL},
	{76, ALWAYS, "RSQRT", NULL},
	{BUILTIN_SHAPE, FOLDED, "SHAPE", shape_fields},
	{78, NEVER, "POW", NULL},
	{79, ALWAYS, "ARG_MIN", pick_fields},
	{81, FOLDED, "REDUCE_PROD", reducer_fields},
	{82, ALWAYS, "REDUCE_MAX", reducer_fields},
	{83, ALWAYS, "PACK", pack_fields},
	{85, NEVER, "ONE_HOT", NULL},
	{88, ALWAYS, "UNPACK", unpack_fields},
	{89, ALWAYS, "REDUCE_MIN", reducer_fields},
	{90, FOLDED, "FLOOR_DIV", NULL},
	{92, NEVER, "SQUARE", NULL},
	{94, FOLDED, "FILL", NULL},
	{95, FOLDED, "FLOOR_MOD", NULL},
	{96, FOLDED, "RANGE", NULL},
	{97, ALWAYS, "RESIZE_NEAREST_NEIGHBOR", resize_fields},
	{98, ALWAYS, "LEAKY_RELU", leaky_fields},
	{99, NEVER, "SQUARED_DIFFERENCE", NULL},
	{100, ALWAYS, "MIRROR_PAD", mirror_fields},
	{101, ALWAYS, "ABS", NULL},
	{102, ALWAYS, "SPLIT_V", split_fields},
	{104, NEVER, "CEIL", NULL},
	{105, ALWAYS, "REVERSE_V2", NULL},
	{107, NEVER, "GATHER_ND", NULL},
	{108, NEVER, "COS", NULL},
	{BUILTIN_RANK, FOLDED, "RANK", NULL},
	{111, ALWAYS, "ELU", NULL},
	{114, ALWAYS, "QUANTIZE", NULL},
	{116, NEVER, "ROUND", NULL},
	{117, ALWAYS, "HARD_SWISH", NULL},
	{118, NEVER, "IF", NULL},
	{119, NEVER, "WHILE", NULL},
	{120, NEVER, "NON_MAX_SUPPRESSION_V4", NULL},
	{121, NEVER, "NON_MAX_SUPPRESSION_V5", NULL},
	{123, NEVER, "SELECT_V2", NULL},
	{124, NEVER, "DENSIFY", NULL},
	{126, ALWAYS, "BATCH_MATMUL", matmul_fields},
	{129, NEVER, "CALL_ONCE", NULL},
	{130, ALWAYS, "BROADCAST_TO", NULL},
	{142, NEVER, "VAR_HANDLE", NULL},
	{143, NEVER, "READ_VARIABLE", NULL},
	{144, NEVER, "ASSIGN_VARIABLE", NULL},
	{150, ALWAYS, "GELU", gelu_fields},
	{152, ALWAYS, "RELU_0_TO_1", NULL},
};

#define OPERATORS (sizeof(operators) / sizeof(operators[0]))

const struct tfl_operator *operator_find(int32_t code)
{
	for (size_t i = 0; i < OPERATORS; i++)
		if (operators[i].code == code)
			return &operators[i];
	return NULL;
}

const struct tfl_operator *operator_named(const char *name)
{
	for (size_t i = 0; i < OPERATORS; i++)
		if (strcasecmp(operators[i].name, name) == 0)
			return &operators[i];
	return NULL;
}

const char *operator_name(const struct tfl_operator *op)
{
	return op->name;
}

enum claim operator_claim(const struct tfl_operator *op)
{
	return op->claim;
}

enum npuc_type operator_type(int tfl_type)
{
	switch (tfl_type) {
	case TFL_FLOAT32:
		return NPUC_FLOAT32;
	case TFL_FLOAT16:
		return NPUC_FLOAT16;
	case TFL_FLOAT64:
		return NPUC_FLOAT64;
	case TFL_COMPLEX128:
		return NPUC_COMPLEX128;
	default:
		/* 2 to 9 agree, and from 13 on a file has one less. */
		return (enum npuc_type)(tfl_type < TFL_UINT64 ? tfl_type : tfl_type - 1);
	}
}

static int32_t read_int(const uint8_t *at)
{
	int32_t i;

	memcpy(&i, at, sizeof(i));
	return i;
}

static void read_shape(const uint8_t *at, struct attrs *attrs, struct npuc_attr *a)
{
	int32_t count = read_int(at + sizeof(attrs->shape));

	memcpy(attrs->shape, at, sizeof(attrs->shape));
	a->ints = attrs->shape;
	a->count = count < 0 || count > 8 ? 0 : (uint32_t)count;
}

static void read_field(const struct field *f, const uint8_t *builtin, struct attrs *attrs)
{
	const uint8_t *at = builtin + f->offset;
	struct npuc_attr *a = &attrs->list[attrs->count++];

	*a = (struct npuc_attr){.name = f->name};
	switch (f->kind) {
	case BOOL:
		a->i = *at != 0;
		break;
	case FLOAT:
		memcpy(&a->f, at, sizeof(a->f));
		break;
	case PADDING:
	case MIRROR:
		a->i = read_int(at) - 1;
		break;
	case TYPE:
		a->i = operator_type(read_int(at));
		break;
	case SHAPE:
		read_shape(at, attrs, a);
		break;
	default:
		a->i = read_int(at);
	}
}

void operator_attrs(const struct tfl_operator *op, const void *builtin,
		    struct attrs *attrs)
{
	attrs->count = 0;
	if (!builtin || !op->fields)
		return;
	for (const struct field *f = op->fields; f->kind != NO_FIELD; f++)
		read_field(f, builtin, attrs);
}
