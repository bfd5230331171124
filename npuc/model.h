/* SPDX-License-Identifier: Apache-2.0 */
/* model.h - a .tflite file as the compiler sees it. */
#ifndef NPUC_MODEL_H
#define NPUC_MODEL_H

#include "flat.h"
#include "npuc.h"

#define NPUC_TENSORS_MAX   16384u
#define NPUC_OPERATORS_MAX 16384u
#define NPUC_GRAPHS_MAX    64u
#define NPUC_MODEL_MAX     (512u << 20) /* bytes of a file */

/* A CUSTOM operator of this name is a NPUC_TABLE_OPERATOR. */
#define NPUC_TABLE_NAME "accelhal.table"

/* Operators that are compiled, or refused with a reason of their own, by their code in
 * the file. */
enum npuc_operator {
	NPUC_ADD = 0,
	NPUC_AVERAGE_POOL_2D = 1,
	NPUC_CONCATENATION = 2,
	NPUC_CONV_2D = 3,
	NPUC_DEPTHWISE_CONV_2D = 4,
	NPUC_DEPTH_TO_SPACE = 5,
	NPUC_DEQUANTIZE = 6,
	NPUC_FLOOR = 8,
	NPUC_FULLY_CONNECTED = 9,
	NPUC_LOGISTIC = 14,
	NPUC_MAX_POOL_2D = 17,
	NPUC_MUL = 18,
	NPUC_RELU = 19,
	NPUC_RELU_N1_TO_1 = 20,
	NPUC_RELU6 = 21,
	NPUC_RESHAPE = 22,
	NPUC_RESIZE_BILINEAR = 23,
	NPUC_SOFTMAX = 25,
	NPUC_SPACE_TO_DEPTH = 26,
	NPUC_SVDF = 27,
	NPUC_TANH = 28,
	NPUC_CUSTOM = 32, /* not compiled: the host's */
	NPUC_PAD = 34,
	NPUC_GATHER = 36,
	NPUC_BATCH_TO_SPACE_ND = 37,
	NPUC_SPACE_TO_BATCH_ND = 38,
	NPUC_TRANSPOSE = 39,
	NPUC_MEAN = 40,
	NPUC_SUB = 41,
	NPUC_DIV = 42,
	NPUC_SQUEEZE = 43,
	NPUC_UNIDIRECTIONAL_SEQUENCE_LSTM = 44,
	NPUC_STRIDED_SLICE = 45,
	NPUC_EXP = 47,
	NPUC_SPLIT = 49,
	NPUC_LOG_SOFTMAX = 50,
	NPUC_CAST = 53,
	NPUC_PRELU = 54,
	NPUC_MAXIMUM = 55,
	NPUC_ARG_MAX = 56,
	NPUC_MINIMUM = 57,
	NPUC_NEG = 59,
	NPUC_PADV2 = 60,
	NPUC_SLICE = 65,
	NPUC_SIN = 66,
	NPUC_TRANSPOSE_CONV = 67,
	NPUC_TILE = 69,
	NPUC_EXPAND_DIMS = 70,
	NPUC_LOG = 73,
	NPUC_SUM = 74,
	NPUC_SQRT = 75,
	NPUC_RSQRT = 76,
	NPUC_SHAPE = 77,
	NPUC_ARG_MIN = 79,
	NPUC_REDUCE_PROD = 81,
	NPUC_REDUCE_MAX = 82,
	NPUC_PACK = 83,
	NPUC_UNPACK = 88,
	NPUC_REDUCE_MIN = 89,
	NPUC_FLOOR_DIV = 90,
	NPUC_SQUARE = 92,
	NPUC_FILL = 94,
	NPUC_FLOOR_MOD = 95,
	NPUC_RANGE = 96,
	NPUC_RESIZE_NEAREST_NEIGHBOR = 97,
	NPUC_LEAKY_RELU = 98,
	NPUC_MIRROR_PAD = 100,
	NPUC_ABS = 101,
	NPUC_SPLIT_V = 102,
	NPUC_CEIL = 104,
	NPUC_REVERSE_V2 = 105,
	NPUC_COS = 108,
	NPUC_RANK_OF = 110, /* RANK */
	NPUC_ELU = 111,
	NPUC_QUANTIZE = 114,
	NPUC_ROUND = 116,
	NPUC_HARD_SWISH = 117,
	NPUC_DENSIFY = 124,
	NPUC_BATCH_MATMUL = 126,
	NPUC_CALL_ONCE = 129,
	NPUC_BROADCAST_TO = 130,
	NPUC_VAR_HANDLE = 142,
	NPUC_READ_VARIABLE = 143,
	NPUC_ASSIGN_VARIABLE = 144,
	NPUC_GELU = 150,
	NPUC_RELU_0_TO_1 = 152,
};

struct model_tensor {
	struct npuc_tensor t;
	char *name;
	struct flat_vector scales, zero_points;
	/* Dimensions whose sizes the file's signature leaves open, mostly the batch's: a
	 * bit each.  Their declared sizes are placeholders. */
	uint32_t open;
	uint8_t *expanded;    /* the data of a sparse one */
	const char *unusable; /* "is sparse": what use of it would say; NULL */
};

struct model_op {
	/* enum npuc_operator, NPUC_TABLE_OPERATOR, or one that is not known */
	uint32_t code;
	char *custom; /* of CUSTOM: its name */
	int32_t version;
	uint32_t input_count, output_count, between_count;
	uint32_t *inputs, *outputs; /* NPUC_NONE: left out */
	uint32_t *between;          /* "intermediates": quantizations inside */
	uint32_t options_type;      /* union BuiltinOptions */
	struct flat_table options;
};

struct npuc_model {
	char *file;
	uint8_t *bytes;
	struct flat flat; /* over bytes, without an error */
	uint32_t tensor_count, op_count, input_count, output_count;
	struct model_tensor *tensors;
	struct model_op *ops;
	uint32_t *refs; /* where inputs and outputs of the model and all operators lie */
	uint32_t *inputs, *outputs;
	/* The file's other graphs, over the same bytes: models without any of their own.
	 */
	uint32_t more_count;
	struct npuc_model **more;
};

/* Writes why and gives -err. */
int npuc_fail(char why[NPUC_WHY], int err, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* "CONV_2D", or NULL for a code that no schema so far has. */
const char *npuc_operator_name(uint32_t code);
int32_t npuc_tensor_zero_point(const struct npuc_model *m, uint32_t index,
			       uint32_t channel);
/* Reads a whole file of at most max bytes; *bytes is malloc'ed. */
int npuc_read_file(const char *path, size_t max, void **bytes, size_t *size,
		   char why[NPUC_WHY]);

#endif
