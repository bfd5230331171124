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
	bool claimed;
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

/* Those that are not claimed need variables, constants alone or floats. */
static const struct tfl_operator operators[] = {
	{0, true, "ADD", add_fields},
	{1, true, "AVERAGE_POOL_2D", pool_fields},
	{2, true, "CONCATENATION", concat_fields},
	{3, true, "CONV_2D", conv_fields},
	{4, true, "DEPTHWISE_CONV_2D", depthwise_fields},
	{5, true, "DEPTH_TO_SPACE", block_fields},
	{6, false, "DEQUANTIZE", NULL},
	{7, false, "EMBEDDING_LOOKUP", NULL},
	{8, false, "FLOOR", NULL},
	{9, true, "FULLY_CONNECTED", connected_fields},
	{11, false, "L2_NORMALIZATION", NULL},
	{14, true, "LOGISTIC", NULL},
	{16, false, "LSTM", NULL},
	{17, true, "MAX_POOL_2D", pool_fields},
	{18, true, "MUL", act_fields},
	{19, true, "RELU", NULL},
	{20, true, "RELU_N1_TO_1", NULL},
	{21, true, "RELU6", NULL},
	{22, true, "RESHAPE", reshape_fields},
	{23, true, "RESIZE_BILINEAR", resize_fields},
	{24, false, "RNN", NULL},
	{25, true, "SOFTMAX", softmax_fields},
	{26, true, "SPACE_TO_DEPTH", block_fields},
	{27, false, "SVDF", NULL},
	{28, true, "TANH", NULL},
	{BUILTIN_CUSTOM, false, "CUSTOM", NULL},
	{34, true, "PAD", NULL},
	{36, true, "GATHER", gather_fields},
	{37, true, "BATCH_TO_SPACE_ND", NULL},
	{38, true, "SPACE_TO_BATCH_ND", NULL},
	{39, true, "TRANSPOSE", NULL},
	{40, true, "MEAN", reducer_fields},
	{41, true, "SUB", add_fields},
	{42, false, "DIV", NULL},
	{43, true, "SQUEEZE", squeeze_fields},
	{44, false, "UNIDIRECTIONAL_SEQUENCE_LSTM", NULL},
	{45, true, "STRIDED_SLICE", strided_slice_fields},
	{47, true, "EXP", NULL},
	{48, false, "TOPK_V2", NULL},
	{49, true, "SPLIT", split_fields},
	{50, true, "LOG_SOFTMAX", NULL},
	{BUILTIN_DELEGATE, false, "DELEGATE", NULL},
	{53, false, "CAST", NULL},
	{54, true, "PRELU", NULL},
	{55, true, "MAXIMUM", NULL},
	{56, true, "ARG_MAX", pick_fields},
	{57, true, "MINIMUM", NULL},
	{58, false, "LESS", NULL},
	{59, true, "NEG", NULL},
	{60, true, "PADV2", NULL},
	{61, false, "GREATER", NULL},
	{64, false, "SELECT", NULL},
	{65, true, "SLICE", NULL},
	{66, false, "SIN", NULL},
	{67, true, "TRANSPOSE_CONV", transpose_conv_fields},
	{69, true, "TILE", NULL},
	{70, true, "EXPAND_DIMS", NULL},
	{73, true, "LOG", NULL},
	{74, false, "SUM", NULL},
	{75, true, "SQRT", NULL},
	{76, true, "RSQRT", NULL},
	{77, false, "SHAPE", NULL},
	{78, false, "POW", NULL},
	{79, true, "ARG_MIN", pick_fields},
	{81, false, "REDUCE_PROD", NULL},
	{82, true, "REDUCE_MAX", reducer_fields},
	{83, true, "PACK", pack_fields},
	{85, false, "ONE_HOT", NULL},
	{88, true, "UNPACK", unpack_fields},
	{89, true, "REDUCE_MIN", reducer_fields},
	{90, false, "FLOOR_DIV", NULL},
	{92, false, "SQUARE", NULL},
	{94, false, "FILL", NULL},
	{95, false, "FLOOR_MOD", NULL},
	{96, false, "RANGE", NULL},
	{97, true, "RESIZE_NEAREST_NEIGHBOR", resize_fields},
	{98, true, "LEAKY_RELU", leaky_fields},
	{99, false, "SQUARED_DIFFERENCE", NULL},
	{100, true, "MIRROR_PAD", mirror_fields},
	{101, true, "ABS", NULL},
	{102, true, "SPLIT_V", split_fields},
	{104, false, "CEIL", NULL},
	{105, true, "REVERSE_V2", NULL},
	{107, false, "GATHER_ND", NULL},
	{108, false, "COS", NULL},
	{110, false, "RANK", NULL},
	{111, true, "ELU", NULL},
	{114, true, "QUANTIZE", NULL},
	{116, false, "ROUND", NULL},
	{117, true, "HARD_SWISH", NULL},
	{118, false, "IF", NULL},
	{119, false, "WHILE", NULL},
	{120, false, "NON_MAX_SUPPRESSION_V4", NULL},
	{121, false, "NON_MAX_SUPPRESSION_V5", NULL},
	{123, false, "SELECT_V2", NULL},
	{124, false, "DENSIFY", NULL},
	{126, true, "BATCH_MATMUL", matmul_fields},
	{129, false, "CALL_ONCE", NULL},
	{130, true, "BROADCAST_TO", NULL},
	{142, false, "VAR_HANDLE", NULL},
	{143, false, "READ_VARIABLE", NULL},
	{144, false, "ASSIGN_VARIABLE", NULL},
	{150, true, "GELU", gelu_fields},
	{152, true, "RELU_0_TO_1", NULL},
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

bool operator_claimed(const struct tfl_operator *op)
{
	return op->claimed;
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
