/* SPDX-License-Identifier: Apache-2.0 */
/* model.c - reads and checks .tflite files (schema version 3). */
#include "model.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hal/hal.h>

#include "schema.h"
#include "sparse.h"

#define REFS_MAX       1048576u         /* tensors that all operators name together */
#define EXPANDED_MAX   (256u << 20)     /* bytes of all sparse tensors */
#define NAME_MAX_SHOWN (NPUC_NAME - 1u) /* of a tensor's name */

int npuc_fail(char why[NPUC_WHY], int err, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(why, NPUC_WHY, format, args);
	va_end(args);
	return -err;
}

const char *npuc_type_name(enum npuc_type type)
{
	static const char *const names[] = {
		[NPUC_FLOAT32] = "float32",     [NPUC_FLOAT16] = "float16",
		[NPUC_INT32] = "int32",         [NPUC_UINT8] = "uint8",
		[NPUC_INT64] = "int64",         [NPUC_STRING] = "string",
		[NPUC_BOOL] = "bool",           [NPUC_INT16] = "int16",
		[NPUC_COMPLEX64] = "complex64", [NPUC_INT8] = "int8",
		[NPUC_FLOAT64] = "float64",     [NPUC_COMPLEX128] = "complex128",
		[NPUC_UINT64] = "uint64",       [NPUC_RESOURCE] = "resource",
		[NPUC_VARIANT] = "variant",     [NPUC_UINT32] = "uint32",
		[NPUC_UINT16] = "uint16",       [NPUC_INT4] = "int4",
		[NPUC_BFLOAT16] = "bfloat16",
	};
	uint32_t code = (uint32_t)type;

	return code < sizeof(names) / sizeof(names[0]) ? names[code] : "of unknown type";
}

uint32_t npuc_type_bytes(enum npuc_type type)
{
	switch (type) {
	case NPUC_FLOAT32:
	case NPUC_INT32:
		return 4;
	case NPUC_INT64:
		return 8;
	case NPUC_INT16:
		return 2;
	case NPUC_UINT8:
	case NPUC_INT8:
		return 1;
	default:
		return 0;
	}
}

/* In the schema's order; a build of the schema may know more. */
static const char *const operator_names[] = {
	"ADD",
	"AVERAGE_POOL_2D",
	"CONCATENATION",
	"CONV_2D",
	"DEPTHWISE_CONV_2D",
	"DEPTH_TO_SPACE",
	"DEQUANTIZE",
	"EMBEDDING_LOOKUP",
	"FLOOR",
	"FULLY_CONNECTED",
	"HASHTABLE_LOOKUP",
	"L2_NORMALIZATION",
	"L2_POOL_2D",
	"LOCAL_RESPONSE_NORMALIZATION",
	"LOGISTIC",
	"LSH_PROJECTION",
	"LSTM",
	"MAX_POOL_2D",
	"MUL",
	"RELU",
	"RELU_N1_TO_1",
	"RELU6",
	"RESHAPE",
	"RESIZE_BILINEAR",
	"RNN",
	"SOFTMAX",
	"SPACE_TO_DEPTH",
	"SVDF",
	"TANH",
	"CONCAT_EMBEDDINGS",
	"SKIP_GRAM",
	"CALL",
	"CUSTOM",
	"EMBEDDING_LOOKUP_SPARSE",
	"PAD",
	"UNIDIRECTIONAL_SEQUENCE_RNN",
	"GATHER",
	"BATCH_TO_SPACE_ND",
	"SPACE_TO_BATCH_ND",
	"TRANSPOSE",
	"MEAN",
	"SUB",
	"DIV",
	"SQUEEZE",
	"UNIDIRECTIONAL_SEQUENCE_LSTM",
	"STRIDED_SLICE",
	"BIDIRECTIONAL_SEQUENCE_RNN",
	"EXP",
	"TOPK_V2",
	"SPLIT",
	"LOG_SOFTMAX",
	"DELEGATE",
	"BIDIRECTIONAL_SEQUENCE_LSTM",
	"CAST",
	"PRELU",
	"MAXIMUM",
	"ARG_MAX",
	"MINIMUM",
	"LESS",
	"NEG",
	"PADV2",
	"GREATER",
	"GREATER_EQUAL",
	"LESS_EQUAL",
	"SELECT",
	"SLICE",
	"SIN",
	"TRANSPOSE_CONV",
	"SPARSE_TO_DENSE",
	"TILE",
	"EXPAND_DIMS",
	"EQUAL",
	"NOT_EQUAL",
	"LOG",
	"SUM",
	"SQRT",
	"RSQRT",
	"SHAPE",
	"POW",
	"ARG_MIN",
	"FAKE_QUANT",
	"REDUCE_PROD",
	"REDUCE_MAX",
	"PACK",
	"LOGICAL_OR",
	"ONE_HOT",
	"LOGICAL_AND",
	"LOGICAL_NOT",
	"UNPACK",
	"REDUCE_MIN",
	"FLOOR_DIV",
	"REDUCE_ANY",
	"SQUARE",
	"ZEROS_LIKE",
	"FILL",
	"FLOOR_MOD",
	"RANGE",
	"RESIZE_NEAREST_NEIGHBOR",
	"LEAKY_RELU",
	"SQUARED_DIFFERENCE",
	"MIRROR_PAD",
	"ABS",
	"SPLIT_V",
	"UNIQUE",
	"CEIL",
	"REVERSE_V2",
	"ADD_N",
	"GATHER_ND",
	"COS",
	"WHERE",
	"RANK",
	"ELU",
	"REVERSE_SEQUENCE",
	"MATRIX_DIAG",
	"QUANTIZE",
	"MATRIX_SET_DIAG",
	"ROUND",
	"HARD_SWISH",
	"IF",
	"WHILE",
	"NON_MAX_SUPPRESSION_V4",
	"NON_MAX_SUPPRESSION_V5",
	"SCATTER_ND",
	"SELECT_V2",
	"DENSIFY",
	"SEGMENT_SUM",
	"BATCH_MATMUL",
	"PLACEHOLDER_FOR_GREATER_OP_CODES",
	"CUMSUM",
	"CALL_ONCE",
	"BROADCAST_TO",
	"RFFT2D",
	"CONV_3D",
	"IMAG",
	"REAL",
	"COMPLEX_ABS",
	"HASHTABLE",
	"HASHTABLE_FIND",
	"HASHTABLE_IMPORT",
	"HASHTABLE_SIZE",
	"REDUCE_ALL",
	"CONV_3D_TRANSPOSE",
	"VAR_HANDLE",
	"READ_VARIABLE",
	"ASSIGN_VARIABLE",
	"BROADCAST_ARGS",
	"RANDOM_STANDARD_NORMAL",
	"BUCKETIZE",
	"RANDOM_UNIFORM",
	"MULTINOMIAL",
	"GELU",
	"DYNAMIC_UPDATE_SLICE",
	"RELU_0_TO_1",
	"UNSORTED_SEGMENT_PROD",
	"UNSORTED_SEGMENT_MAX",
	"UNSORTED_SEGMENT_SUM",
	"ATAN2",
	"UNSORTED_SEGMENT_MIN",
	"SIGN",
	"BITCAST",
	"BITWISE_XOR",
	"RIGHT_SHIFT",
};

const char *npuc_operator_name(uint32_t code)
{
	return code < sizeof(operator_names) / sizeof(operator_names[0])
		       ? operator_names[code]
		       : NULL;
}

/* ---- reading ---------------------------------------------------------------------- */

struct parse {
	struct npuc_model *m;
	struct flat *f;
	char *why;
	struct flat_vector codes, buffers;
	uint32_t *next_ref;
	uint64_t expanded; /* bytes of sparse tensors so far */
};

/* What the reader found wrong, if anything. */
static int check(const struct parse *p)
{
	if (!p->f->bad)
		return 0;
	return npuc_fail(p->why, EINVAL, "%s: invalid at byte %zu: %s", p->m->file,
			 p->f->bad_at, p->f->bad);
}

/* Names go into error texts and onto terminals. */
static char *copy_name(const struct flat *f, struct flat_vector v)
{
	size_t n = v.count < NAME_MAX_SHOWN ? v.count : NAME_MAX_SHOWN;
	char *name = malloc(n + 1);

	if (!name)
		return NULL;
	for (size_t i = 0; i < n; i++) {
		uint8_t c = f->data[v.at + i];

		name[i] = (char)(c >= 0x20 && c < 0x7f ? c : '?');
	}
	name[n] = '\0';
	return name;
}

static int read_shape(struct parse *p, struct model_tensor *t, uint32_t index,
		      struct flat_vector shape)
{
	uint64_t count = 1, max = INT32_MAX;

	if (shape.count > NPUC_RANK)
		return npuc_fail(p->why, ENOTSUP,
				 "%s: tensor %u ('%s') has %u dimensions; at most %d are "
				 "supported",
				 p->m->file, index, t->name, shape.count, NPUC_RANK);
	t->t.rank = shape.count;
	for (uint32_t i = 0; i < shape.count; i++) {
		int32_t d = flat_vector_i32(p->f, shape, i);

		if (d < 0)
			return npuc_fail(
				p->why, ENOTSUP,
				"%s: tensor %u ('%s'): dimension %u is %d; sizes "
				"must be fixed",
				p->m->file, index, t->name, i, d);
		t->t.dims[i] = d;
		count *= (uint64_t)d;
		if (count > max)
			return npuc_fail(p->why, ENOTSUP,
					 "%s: tensor %u ('%s') has more than 2^31 - 1 "
					 "elements",
					 p->m->file, index, t->name);
	}
	t->t.count = count;
	t->t.bytes = count * npuc_type_bytes(t->t.type);
	return 0;
}

static int read_quantization(struct parse *p, struct model_tensor *t, uint32_t index,
			     struct flat_table q)
{
	struct flat *f = p->f;
	int32_t dim = flat_i32(f, q, QUANT_DIMENSION, 0);
	const char *wrong = NULL;

	t->scales = flat_vector(f, q, QUANT_SCALE, 4);
	t->zero_points = flat_vector(f, q, QUANT_ZERO_POINT, 8);
	if (check(p))
		return -EINVAL;
	if (flat_u8(f, q, QUANT_DETAILS_TYPE, 0))
		t->unusable = "has custom quantization, which is not supported";
	t->t.scales = t->scales.count;
	if (!t->t.scales)
		return 0;
	if (t->zero_points.count && t->zero_points.count != t->scales.count)
		wrong = "the number of zero points differs from the number of scales";
	if (dim < 0 || (t->t.rank && (uint32_t)dim >= t->t.rank))
		wrong = "its quantized dimension does not exist";
	else if (t->t.scales > 1 &&
		 (!t->t.rank || (uint32_t)t->t.dims[dim] != t->t.scales))
		wrong = "the number of scales differs from the size of the quantized "
			"dimension";
	if (wrong)
		return npuc_fail(p->why, EINVAL, "%s: tensor %u ('%s'): %s", p->m->file,
				 index, t->name, wrong);
	t->t.channel_dim = t->t.scales > 1 ? (uint32_t)dim : 0;
	t->t.scale = flat_vector_f32(f, t->scales, 0);
	for (uint32_t i = 0; i < t->zero_points.count; i++) {
		int64_t z = flat_vector_i64(f, t->zero_points, i);

		if (z < INT32_MIN || z > INT32_MAX)
			return npuc_fail(
				p->why, EINVAL,
				"%s: tensor %u ('%s'): zero point %lld is invalid",
				p->m->file, index, t->name, (long long)z);
	}
	t->t.zero_point = npuc_tensor_zero_point(p->m, index, 0);
	return 0;
}

/* A constant of which the file has some elements; others than bytes stay unusable. */
static int read_sparse(struct parse *p, struct model_tensor *t, uint32_t index,
		       struct flat_table sparsity, const uint8_t *elements, uint64_t size)
{
	const char *wrong;

	if (npuc_type_bytes(t->t.type) != 1)
		return 0;
	p->expanded += t->t.bytes;
	if (p->expanded > EXPANDED_MAX)
		return npuc_fail(p->why, ENOTSUP,
				 "%s: sparse tensors take %llu bytes; at most %u are "
				 "supported",
				 p->m->file, (unsigned long long)p->expanded,
				 EXPANDED_MAX);
	wrong = npuc_expand(p->f, sparsity, &t->t, elements, size, &t->expanded);
	if (wrong)
		return npuc_fail(p->why, EINVAL, "%s: tensor %u ('%s'): %s", p->m->file,
				 index, t->name, wrong);
	t->t.data = t->expanded;
	t->unusable = NULL;
	return 0;
}

/* A constant's data: in its buffer, or behind the tables in files of more than 2 GB'. */
static int read_data(struct parse *p, struct model_tensor *t, uint32_t index,
		     struct flat_table table)
{
	struct flat *f = p->f;
	uint32_t buffer = (uint32_t)flat_i32(f, table, TENSOR_BUFFER, 0);
	struct flat_table b;
	struct flat_vector data;
	uint64_t at, size;

	if (!buffer && !p->buffers.count)
		return 0;
	if (buffer >= p->buffers.count)
		return npuc_fail(
			p->why, EINVAL,
			"%s: tensor %u ('%s') uses buffer %u, but the file has %u",
			p->m->file, index, t->name, buffer, p->buffers.count);
	b = flat_vector_table(f, p->buffers, buffer);
	data = flat_vector(f, b, BUFFER_DATA, 1);
	at = flat_u64(f, b, BUFFER_OFFSET, 0);
	size = flat_u64(f, b, BUFFER_SIZE, 0);
	if (check(p))
		return -EINVAL;
	if (at > 1) {
		if (at > f->size || size > f->size - at)
			return npuc_fail(p->why, EINVAL,
					 "%s: tensor %u ('%s'): its data lie beyond the "
					 "end of the file",
					 p->m->file, index, t->name);
	} else {
		at = data.at;
		size = data.count;
	}
	if (!size)
		return 0;
	if (flat_has(f, table, TENSOR_SPARSITY))
		return read_sparse(p, t, index, flat_sub(f, table, TENSOR_SPARSITY),
				   f->data + at, size);
	if (npuc_type_bytes(t->t.type) && size != t->t.bytes)
		return npuc_fail(
			p->why, EINVAL,
			"%s: tensor %u ('%s') takes %llu bytes, but its buffer has %llu",
			p->m->file, index, t->name, (unsigned long long)t->t.bytes,
			(unsigned long long)size);
	t->t.data = f->data + at;
	return 0;
}

static int read_tensor(struct parse *p, struct flat_vector tensors, uint32_t index)
{
	struct model_tensor *t = &p->m->tensors[index];
	struct flat *f = p->f;
	struct flat_table at = flat_vector_table(f, tensors, index);
	struct flat_vector shape = flat_vector(f, at, TENSOR_SHAPE, 4);
	struct flat_vector name = flat_vector(f, at, TENSOR_NAME, 1);
	struct flat_vector signature = flat_vector(f, at, TENSOR_SIGNATURE, 4);
	struct flat_table quantization = flat_sub(f, at, TENSOR_QUANTIZATION);
	int rc;

	t->t.type = (enum npuc_type)flat_u8(f, at, TENSOR_TYPE, NPUC_FLOAT32);
	if (flat_u8(f, at, TENSOR_VARIABLE, 0))
		t->unusable = "is a variable, which this operator does not support";
	if (flat_has(f, at, TENSOR_SPARSITY))
		t->unusable = "is sparse, which is not supported";
	for (uint32_t i = 0; i < signature.count && i < NPUC_RANK; i++)
		t->open |= (uint32_t)(flat_vector_i32(f, signature, i) < 0) << i;
	if (check(p))
		return -EINVAL;
	t->name = copy_name(f, name);
	if (!t->name)
		return npuc_fail(p->why, ENOMEM, "%s: out of memory", p->m->file);
	t->t.name = t->name;
	rc = read_shape(p, t, index, shape);
	if (!rc)
		rc = read_quantization(p, t, index, quantization);
	if (!rc)
		rc = read_data(p, t, index, at);
	return rc;
}

/* Tensor indices; -1 is one that is left out. */
static int read_refs(struct parse *p, struct flat_vector v, const char *whose,
		     uint32_t **out, uint32_t *count)
{
	*out = p->next_ref;
	*count = v.count;
	for (uint32_t i = 0; i < v.count; i++) {
		int32_t index = flat_vector_i32(p->f, v, i);

		if (index < -1 || index >= (int64_t)p->m->tensor_count)
			return npuc_fail(
				p->why, EINVAL,
				"%s: %s %u is tensor %d, but the file has %u tensors",
				p->m->file, whose, i, index, p->m->tensor_count);
		*p->next_ref++ = (uint32_t)index;
	}
	return 0;
}

static int read_op(struct parse *p, struct flat_vector ops, uint32_t index)
{
	struct model_op *op = &p->m->ops[index];
	struct flat *f = p->f;
	struct flat_table at = flat_vector_table(f, ops, index), code;
	struct flat_vector inputs = flat_vector(f, at, OP_INPUTS, 4);
	struct flat_vector outputs = flat_vector(f, at, OP_OUTPUTS, 4), custom;
	struct flat_vector between = flat_vector(f, at, OP_BETWEEN, 4);
	uint32_t number = (uint32_t)flat_i32(f, at, OP_CODE, 0);
	char whose[40];
	int32_t wide;
	int rc;

	op->options_type = flat_u8(f, at, OP_OPTIONS_TYPE, 0);
	op->options = flat_sub(f, at, OP_OPTIONS);
	if (check(p))
		return -EINVAL;
	if (number >= p->codes.count)
		return npuc_fail(p->why, EINVAL,
				 "%s: layer %u has operator code %u, but the file has %u",
				 p->m->file, index, number, p->codes.count);
	code = flat_vector_table(f, p->codes, number);
	/* Codes above 127 are in the newer, wider field. */
	op->code = flat_u8(f, code, CODE_BYTE, 0);
	wide = flat_i32(f, code, CODE_INT, 0);
	if (wide > (int32_t)op->code)
		op->code = (uint32_t)wide;
	op->version = flat_i32(f, code, CODE_VERSION, 1);
	custom = flat_vector(f, code, CODE_CUSTOM, 1);
	if (check(p))
		return -EINVAL;
	if (op->code == NPUC_CUSTOM) {
		op->custom = copy_name(f, custom);
		if (!op->custom)
			return npuc_fail(p->why, ENOMEM, "%s: out of memory", p->m->file);
		if (strcmp(op->custom, NPUC_TABLE_NAME) == 0)
			op->code = NPUC_TABLE_OPERATOR;
	}
	snprintf(whose, sizeof(whose), "layer %u: input", index);
	rc = read_refs(p, inputs, whose, &op->inputs, &op->input_count);
	snprintf(whose, sizeof(whose), "layer %u: output", index);
	if (!rc)
		rc = read_refs(p, outputs, whose, &op->outputs, &op->output_count);
	snprintf(whose, sizeof(whose), "layer %u: intermediate", index);
	if (!rc)
		rc = read_refs(p, between, whose, &op->between, &op->between_count);
	return rc;
}

/* How many tensor indices the graph holds; each takes four bytes of the file, but many
 * operators may share one vector. */
static uint64_t count_refs(struct parse *p, struct flat_table graph,
			   struct flat_vector ops)
{
	uint64_t count = flat_vector(p->f, graph, GRAPH_INPUTS, 4).count;

	count += flat_vector(p->f, graph, GRAPH_OUTPUTS, 4).count;
	for (uint32_t i = 0; i < ops.count; i++) {
		struct flat_table op = flat_vector_table(p->f, ops, i);

		count += flat_vector(p->f, op, OP_INPUTS, 4).count;
		count += flat_vector(p->f, op, OP_OUTPUTS, 4).count;
		count += flat_vector(p->f, op, OP_BETWEEN, 4).count;
	}
	return count;
}

static int make_tables(struct parse *p, struct flat_table graph,
		       struct flat_vector tensors, struct flat_vector ops)
{
	struct npuc_model *m = p->m;
	uint64_t refs;

	if (tensors.count > NPUC_TENSORS_MAX || ops.count > NPUC_OPERATORS_MAX)
		return npuc_fail(p->why, ENOTSUP,
				 "%s: %u tensors and %u operators; at most %u of each "
				 "are supported",
				 m->file, tensors.count, ops.count, NPUC_TENSORS_MAX);
	refs = count_refs(p, graph, ops);
	if (check(p))
		return -EINVAL;
	if (refs > REFS_MAX)
		return npuc_fail(
			p->why, ENOTSUP,
			"%s: operators name %llu tensors; at most %u are supported",
			m->file, (unsigned long long)refs, REFS_MAX);
	m->tensors = calloc(tensors.count + 1, sizeof(*m->tensors));
	m->ops = calloc(ops.count + 1, sizeof(*m->ops));
	m->refs = calloc((size_t)refs + 1, sizeof(*m->refs));
	if (!m->tensors || !m->ops || !m->refs)
		return npuc_fail(p->why, ENOMEM, "%s: out of memory", m->file);
	m->tensor_count = tensors.count;
	m->op_count = ops.count;
	p->next_ref = m->refs;
	return 0;
}

static int read_graph(struct parse *p, struct flat_table graph)
{
	struct npuc_model *m = p->m;
	struct flat_vector tensors = flat_vector(p->f, graph, GRAPH_TENSORS, 4);
	struct flat_vector ops = flat_vector(p->f, graph, GRAPH_OPERATORS, 4);
	int rc = check(p);

	if (!rc)
		rc = make_tables(p, graph, tensors, ops);
	for (uint32_t i = 0; !rc && i < tensors.count; i++)
		rc = read_tensor(p, tensors, i);
	for (uint32_t i = 0; !rc && i < ops.count; i++)
		rc = read_op(p, ops, i);
	if (!rc)
		rc = read_refs(p, flat_vector(p->f, graph, GRAPH_INPUTS, 4),
			       "model input", &m->inputs, &m->input_count);
	if (!rc)
		rc = read_refs(p, flat_vector(p->f, graph, GRAPH_OUTPUTS, 4),
			       "model output", &m->outputs, &m->output_count);
	return rc ? rc : check(p);
}

/* All but the graphs that it has besides. */
static void free_graph(struct npuc_model *m)
{
	for (uint32_t i = 0; m->tensors && i < m->tensor_count; i++) {
		free(m->tensors[i].name);
		free(m->tensors[i].expanded);
	}
	for (uint32_t i = 0; m->ops && i < m->op_count; i++)
		free(m->ops[i].custom);
	free(m->tensors);
	free(m->ops);
	free(m->refs);
	free(m->bytes);
	free(m->file);
	free(m);
}

/* A graph that operators of the first one may call. */
static int read_more(struct parse *p, struct flat_table graph)
{
	struct npuc_model *m = p->m, *sub = calloc(1, sizeof(*sub)), **more;
	struct parse part = *p;
	int rc;

	more = realloc(m->more, (m->more_count + 1) * sizeof(struct npuc_model *));
	if (more)
		m->more = more;
	if (sub)
		sub->file = strdup(m->file);
	if (!more || !sub || !sub->file) {
		free(sub);
		return npuc_fail(p->why, ENOMEM, "%s: out of memory", m->file);
	}
	more[m->more_count++] = sub;
	sub->flat = m->flat;
	part.m = sub;
	part.f = &sub->flat;
	rc = read_graph(&part, graph);
	p->expanded = part.expanded;
	return rc;
}

static int read_model(struct parse *p)
{
	struct flat *f = p->f;
	struct flat_table root;
	struct flat_vector graphs;
	int32_t version;
	int rc;

	if (!f->bad && f->size >= 8 && memcmp(f->data + 4, SCHEMA_FILE, 4) != 0)
		return npuc_fail(p->why, EINVAL,
				 "%s: not a TensorFlow Lite model: no \"TFL3\" at byte 4",
				 p->m->file);
	root = flat_root(f);
	version = flat_i32(f, root, MODEL_VERSION, 0);
	graphs = flat_vector(f, root, MODEL_SUBGRAPHS, 4);
	p->codes = flat_vector(f, root, MODEL_OPERATOR_CODES, 4);
	p->buffers = flat_vector(f, root, MODEL_BUFFERS, 4);
	if (check(p))
		return -EINVAL;
	if (version != (int32_t)SCHEMA_VERSION)
		return npuc_fail(p->why, ENOTSUP,
				 "%s: schema version %d; only %u is supported",
				 p->m->file, version, SCHEMA_VERSION);
	if (!graphs.count || graphs.count > NPUC_GRAPHS_MAX)
		return npuc_fail(p->why, ENOTSUP, "%s: %u graphs; 1 to %u are supported",
				 p->m->file, graphs.count, NPUC_GRAPHS_MAX);
	rc = read_graph(p, flat_vector_table(f, graphs, 0));
	for (uint32_t i = 1; !rc && i < graphs.count; i++)
		rc = read_more(p, flat_vector_table(f, graphs, i));
	return rc;
}

int npuc_model_parse(const void *bytes, size_t size, const char *name,
		     struct npuc_model **model, char why[NPUC_WHY])
{
	struct npuc_model *m;
	struct parse p;
	int rc;

	if (!bytes || !name || !model)
		return npuc_fail(why, EINVAL, "npuc_model_parse: NULL argument");
	if (size > NPUC_MODEL_MAX)
		return npuc_fail(why, ENOTSUP, "%s: %zu bytes; at most %u are supported",
				 name, size, NPUC_MODEL_MAX);
	m = calloc(1, sizeof(*m));
	if (m) {
		m->file = strdup(name);
		m->bytes = malloc(size ? size : 1);
	}
	if (!m || !m->file || !m->bytes) {
		npuc_model_free(m);
		return npuc_fail(why, ENOMEM, "%s: out of memory", name);
	}
	memcpy(m->bytes, bytes, size);
	flat_init(&m->flat, m->bytes, size);
	p = (struct parse){.m = m, .f = &m->flat, .why = why};
	rc = read_model(&p);
	if (rc) {
		npuc_model_free(m);
		return rc;
	}
	*model = m;
	return 0;
}

int npuc_read_file(const char *path, size_t max, void **bytes, size_t *size,
		   char why[NPUC_WHY])
{
	FILE *f = fopen(path, "rb");
	uint8_t *data = NULL, *more;
	size_t used = 0, room = 0, n;
	int rc = 0;

	if (!f)
		return npuc_fail(why, errno, "%s: %s", path, hal_strerror(errno));
	do {
		if (used == room) {
			room = room ? room * 2 : 65536;
			more = realloc(data, room);
			if (!more) {
				rc = npuc_fail(why, ENOMEM, "%s: out of memory", path);
				goto out;
			}
			data = more;
		}
		n = fread(data + used, 1, room - used, f);
		used += n;
	} while (n && used <= max);
	if (ferror(f))
		rc = npuc_fail(why, EIO, "%s: cannot be read: %s", path,
			       hal_strerror(errno));
	else if (used > max)
		rc = npuc_fail(why, ENOTSUP, "%s: the file is longer than %zu bytes",
			       path, max);
out:
	(void)fclose(f);
	if (rc) {
		free(data);
		return rc;
	}
	*bytes = data;
	*size = used;
	return 0;
}

int npuc_model_load(const char *path, struct npuc_model **model, char why[NPUC_WHY])
{
	void *bytes = NULL;
	size_t size = 0;
	int rc = npuc_read_file(path, NPUC_MODEL_MAX, &bytes, &size, why);

	if (rc)
		return rc;
	rc = npuc_model_parse(bytes, size, path, model, why);
	free(bytes);
	return rc;
}

void npuc_model_free(struct npuc_model *m)
{
	if (!m)
		return;
	for (uint32_t i = 0; i < m->more_count; i++)
		free_graph(m->more[i]);
	free(m->more);
	free_graph(m);
}

/* ---- what others ask -------------------------------------------------------------- */

uint32_t npuc_tensor_count(const struct npuc_model *m)
{
	return m->tensor_count;
}

const struct npuc_tensor *npuc_tensor(const struct npuc_model *m, uint32_t index)
{
	return index < m->tensor_count ? &m->tensors[index].t : NULL;
}

float npuc_tensor_scale(const struct npuc_model *m, uint32_t index, uint32_t channel)
{
	const struct model_tensor *t = &m->tensors[index];

	if (!t->scales.count)
		return 0;
	return flat_vector_f32(&m->flat, t->scales, t->scales.count > 1 ? channel : 0);
}

int32_t npuc_tensor_zero_point(const struct npuc_model *m, uint32_t index,
			       uint32_t channel)
{
	const struct model_tensor *t = &m->tensors[index];

	if (!t->zero_points.count)
		return 0;
	return (int32_t)flat_vector_i64(&m->flat, t->zero_points,
					t->zero_points.count > 1 ? channel : 0);
}

uint32_t npuc_inputs(const struct npuc_model *m, const uint32_t **tensors)
{
	*tensors = m->inputs;
	return m->input_count;
}

uint32_t npuc_outputs(const struct npuc_model *m, const uint32_t **tensors)
{
	*tensors = m->outputs;
	return m->output_count;
}
