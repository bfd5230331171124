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
	const char *name;
	bool claimed;
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
	{0, "ADD", true, add_fields},
	{1, "AVERAGE_POOL_2D", true, pool_fields},
	{2, "CONCATENATION", true, concat_fields},
	{3, "CONV_2D", true, conv_fields},
	{4, "DEPTHWISE_CONV_2D", true, depthwise_fields},
	{5, "DEPTH_TO_SPACE", true, block_fields},
	{6, "DEQUANTIZE", false, NULL},
	{7, "EMBEDDING_LOOKUP", false, NULL},
	{8, "FLOOR", false, NULL},
	{9, "FULLY_CONNECTED", true, connected_fields},
	{11, "L2_NORMALIZATION", false, NULL},
	{14, "LOGISTIC", true, NULL},
	{16, "LSTM", false, NULL},
	{17, "MAX_POOL_2D", true, pool_fields},
	{18, "MUL", true, act_fields},
	{19, "RELU", true, NULL},
	{20, "RELU_N1_TO_1", true, NULL},
	{21, "RELU6", true, NULL},
	{22, "RESHAPE", true, reshape_fields},
	{23, "RESIZE_BILINEAR", true, resize_fields},
	{24, "RNN", false, NULL},
	{25, "SOFTMAX", true, softmax_fields},
	{26, "SPACE_TO_DEPTH", true, block_fields},
	{27, "SVDF", false, NULL},
	{28, "TANH", true, NULL},
	{BUILTIN_CUSTOM, "CUSTOM", false, NULL},
	{34, "PAD", true, NULL},
	{36, "GATHER", true, gather_fields},
	{37, "BATCH_TO_SPACE_ND", true, NULL},
	{38, "SPACE_TO_BATCH_ND", true, NULL},
	{39, "TRANSPOSE", true, NULL},
	{40, "MEAN", true, reducer_fields},
	{41, "SUB", true, add_fields},
	{42, "DIV", false, NULL},
	{43, "SQUEEZE", true, squeeze_fields},
	{44, "UNIDIRECTIONAL_SEQUENCE_LSTM", false, NULL},
	{45, "STRIDED_SLICE", true, strided_slice_fields},
	{47, "EXP", true, NULL},
	{48, "TOPK_V2", false, NULL},
	{49, "SPLIT", true, split_fields},
	{50, "LOG_SOFTMAX", true, NULL},
	{BUILTIN_DELEGATE, "DELEGATE", false, NULL},
	{53, "CAST", false, NULL},
	{54, "PRELU", true, NULL},
	{55, "MAXIMUM", true, NULL},
	{56, "ARG_MAX", true, pick_fields},
	{57, "MINIMUM", true, NULL},
	{58, "LESS", false, NULL},
	{59, "NEG", true, NULL},
	{60, "PADV2", true, NULL},
	{61, "GREATER", false, NULL},
	{64, "SELECT", false, NULL},
	{65, "SLICE", true, NULL},
	{66, "SIN", false, NULL},
	{67, "TRANSPOSE_CONV", true, transpose_conv_fields},
	{69, "TILE", true, NULL},
	{70, "EXPAND_DIMS", true, NULL},
	{73, "LOG", true, NULL},
	{74, "SUM", false, NULL},
	{75, "SQRT", true, NULL},
	{76, "RSQRT", true, NULL},
	{77, "SHAPE", false, NULL},
	{78, "POW", false, NULL},
	{79, "ARG_MIN", true, pick_fields},
	{81, "REDUCE_PROD", false, NULL},
	{82, "REDUCE_MAX", true, reducer_fields},
	{83, "PACK", true, pack_fields},
	{85, "ONE_HOT", false, NULL},
	{88, "UNPACK", true, unpack_fields},
	{89, "REDUCE_MIN", true, reducer_fields},
	{90, "FLOOR_DIV", false, NULL},
	{92, "SQUARE", false, NULL},
	{94, "FILL", false, NULL},
	{95, "FLOOR_MOD", false, NULL},
	{96, "RANGE", false, NULL},
	{97, "RESIZE_NEAREST_NEIGHBOR", true, resize_fields},
	{98, "LEAKY_RELU", true, leaky_fields},
	{99, "SQUARED_DIFFERENCE", false, NULL},
	{100, "MIRROR_PAD", true, mirror_fields},
	{101, "ABS", true, NULL},
	{102, "SPLIT_V", true, split_fields},
	{104, "CEIL", false, NULL},
	{105, "REVERSE_V2", true, NULL},
	{107, "GATHER_ND", false, NULL},
	{108, "COS", false, NULL},
	{110, "RANK", false, NULL},
	{111, "ELU", true, NULL},
	{114, "QUANTIZE", true, NULL},
	{116, "ROUND", false, NULL},
	{117, "HARD_SWISH", true, NULL},
	{118, "IF", false, NULL},
	{119, "WHILE", false, NULL},
	{120, "NON_MAX_SUPPRESSION_V4", false, NULL},
	{121, "NON_MAX_SUPPRESSION_V5", false, NULL},
	{123, "SELECT_V2", false, NULL},
	{124, "DENSIFY", false, NULL},
	{126, "BATCH_MATMUL", true, matmul_fields},
	{129, "CALL_ONCE", false, NULL},
	{130, "BROADCAST_TO", true, NULL},
	{142, "VAR_HANDLE", false, NULL},
	{143, "READ_VARIABLE", false, NULL},
	{144, "ASSIGN_VARIABLE", false, NULL},
	{150, "GELU", true, gelu_fields},
	{152, "RELU_0_TO_1", true, NULL},
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
