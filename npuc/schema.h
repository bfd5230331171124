/* SPDX-License-Identifier: Apache-2.0 */
/* schema.h - TensorFlow Lite's schema: fields by number, options of operators by name. */
#ifndef NPUC_SCHEMA_H
#define NPUC_SCHEMA_H

#include <stdint.h>

#define SCHEMA_VERSION 3u
#define SCHEMA_FILE    "TFL3"

/* Fields of the schema's tables, by number. */
enum {
	MODEL_VERSION = 0,
	MODEL_OPERATOR_CODES = 1,
	MODEL_SUBGRAPHS = 2,
	MODEL_BUFFERS = 4,
	MODEL_FIELDS = 5,
	CODE_BYTE = 0,
	CODE_CUSTOM = 1,
	CODE_VERSION = 2,
	CODE_INT = 3,
	CODE_FIELDS = 4,
	GRAPH_TENSORS = 0,
	GRAPH_INPUTS = 1,
	GRAPH_OUTPUTS = 2,
	GRAPH_OPERATORS = 3,
	GRAPH_FIELDS = 4,
	TENSOR_SHAPE = 0,
	TENSOR_TYPE = 1,
	TENSOR_BUFFER = 2,
	TENSOR_NAME = 3,
	TENSOR_QUANTIZATION = 4,
	TENSOR_VARIABLE = 5,
	TENSOR_SPARSITY = 6,
	TENSOR_SIGNATURE = 7,
	TENSOR_FIELDS = 8,
	QUANT_SCALE = 2,
	QUANT_ZERO_POINT = 3,
	QUANT_DETAILS_TYPE = 4,
	QUANT_DIMENSION = 6,
	QUANT_FIELDS = 7,
	OP_CODE = 0,
	OP_INPUTS = 1,
	OP_OUTPUTS = 2,
	OP_OPTIONS_TYPE = 3,
	OP_OPTIONS = 4,
	OP_BETWEEN = 8,
	OP_FIELDS = 9,
	BUFFER_DATA = 0,
	BUFFER_OFFSET = 1,
	BUFFER_SIZE = 2,
};

enum schema_kind {
	SCHEMA_END, /* after the last field */
	SCHEMA_U8,  /* an enum of a byte */
	SCHEMA_BOOL,
	SCHEMA_I32,
	SCHEMA_F32,
	SCHEMA_INTS, /* a vector of int32 */
};

struct schema_field {
	const char *name;
	uint32_t number; /* in the table of options; below SCHEMA_FIELDS */
	enum schema_kind kind;
};

#define SCHEMA_FIELDS 8u

/* Return the options of an operator, and their number in union BuiltinOptions; NULL: it
 * has none, or is not in the list. */
const struct schema_field *npuc_schema_fields(uint32_t code, uint32_t *options);

#endif
