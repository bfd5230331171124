/* SPDX-License-Identifier: Apache-2.0 */
/* builder.c - a model made by calls: tensors and operators are collected, written as a
 * .tflite file in memory, and read by the parser with all its checks. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "flat_write.h"
#include "model.h"
#include "schema.h"

#define REFS_MAX   65536u /* operands or results of one operator */
#define DATA_ALIGN 16u    /* of constants in the file */

struct built_tensor {
	char *name;
	struct npuc_tensor_desc d; /* its pointers are copies; .name is NULL */
};

struct built_attr {
	const struct schema_field *field;
	int64_t i;
	float f;
	int32_t *ints;
	uint32_t count;
};

struct built_op {
	uint32_t code, options; /* options: in union BuiltinOptions; 0: none */
	int32_t version;
	char *custom;
	int32_t *inputs, *outputs, *intermediates;
	uint32_t input_count, output_count, intermediate_count;
	struct built_attr *attrs;
	uint32_t attr_count;
};

struct npuc_builder {
	char *name;
	uint64_t bytes; /* of all constants */
	uint32_t tensor_count, tensor_room, op_count, op_room;
	struct built_tensor *tensors;
	struct built_op *ops;
};

/* ---- copies ----------------------------------------------------------------------- */

static int out_of_memory(const struct npuc_builder *b, char *why)
{
	return npuc_fail(why, ENOMEM, "%s: out of memory", b->name);
}

/* Copy count elements; NULL from is NULL.  Return false without memory. */
static bool copy(const void *from, size_t count, size_t element, void *to_pointer)
{
	void *to = NULL;

	if (from && count) {
		to = malloc(count * element);
		if (!to)
			return false;
		memcpy(to, from, count * element);
	}
	memcpy(to_pointer, &to, sizeof(to));
	return true;
}

/* Make space for one more element in an array that doubles; NULL: no memory. */
static void *grow(void *array, uint32_t count, uint32_t *room, size_t element)
{
	uint32_t more = *room ? *room * 2 : 32;

	if (count < *room)
		return array;
	array = realloc(array, more * element);
	if (array)
		*room = more;
	return array;
}

static void free_tensor(struct built_tensor *t)
{
	free(t->name);
	free((void *)t->d.dims);
	free((void *)t->d.scale);
	free((void *)t->d.zero_point);
	free((void *)t->d.data);
}

static void free_op(struct built_op *op)
{
	for (uint32_t i = 0; op->attrs && i < op->attr_count; i++)
		free(op->attrs[i].ints);
	free(op->custom);
	free(op->inputs);
	free(op->outputs);
	free(op->intermediates);
	free(op->attrs);
}

int npuc_builder_create(const char *name, struct npuc_builder **b, char why[NPUC_WHY])
{
	struct npuc_builder *made;

	if (!name || !b)
		return npuc_fail(why, EINVAL, "npuc_builder_create: NULL argument");
	made = calloc(1, sizeof(*made));
	if (made)
		made->name = strdup(name);
	if (!made || !made->name) {
		free(made);
		return npuc_fail(why, ENOMEM, "%s: out of memory", name);
	}
	*b = made;
	return 0;
}

void npuc_builder_free(struct npuc_builder *b)
{
	if (!b)
		return;
	for (uint32_t i = 0; i < b->tensor_count; i++)
		free_tensor(&b->tensors[i]);
	for (uint32_t i = 0; i < b->op_count; i++)
		free_op(&b->ops[i]);
	free(b->tensors);
	free(b->ops);
	free(b->name);
	free(b);
}

/* ---- tensors ---------------------------------------------------------------------- */

/* Return what is wrong with the shape, or NULL and the number of elements. */
static const char *check_shape(const struct npuc_tensor_desc *t, uint64_t *count)
{
	*count = 1;
	if (t->rank > NPUC_RANK)
		return "it has more than 8 dimensions";
	if (t->rank && !t->dims)
		return "its dimensions are NULL";
	for (uint32_t i = 0; i < t->rank; i++) {
		if (t->dims[i] < 0)
			return "a dimension is negative";
		*count *= (uint64_t)t->dims[i];
		if (*count > INT32_MAX)
			return "it has more than 2^31 - 1 elements";
	}
	if ((uint64_t)t->open >> t->rank)
		return "a dimension that does not exist is open";
	return NULL;
}

static const char *check_quantization(const struct npuc_tensor_desc *t)
{
	if (t->scales && !t->scale)
		return "its scales are NULL";
	if (t->zero_points && !t->zero_point)
		return "its zero points are NULL";
	if (t->zero_points > 1 && t->zero_points != t->scales)
		return "the number of zero points is neither 1 nor that of scales";
	if (t->zero_points && !t->scales)
		return "it has zero points but no scale";
	if (t->scales <= 1)
		return NULL;
	if (t->channel_dim >= t->rank)
		return "its quantized dimension does not exist";
	if ((uint32_t)t->dims[t->channel_dim] != t->scales)
		return "the number of scales differs from the size of the quantized "
		       "dimension";
	return NULL;
}

static const char *check_data(const struct npuc_tensor_desc *t, uint64_t count)
{
	uint32_t width = npuc_type_bytes(t->type);

	if (!t->data)
		return t->bytes ? "it has bytes, but its data are NULL" : NULL;
	if (width && t->bytes != count * width)
		return "the number of its bytes differs from that of its elements";
	return NULL;
}

static bool copy_tensor(const struct npuc_tensor_desc *t, uint32_t index,
			struct built_tensor *made)
{
	char name[24];

	*made = (struct built_tensor){.d = *t};
	made->d.name = NULL;
	made->d.dims = NULL;
	made->d.scale = NULL;
	made->d.zero_point = NULL;
	made->d.data = NULL;
	snprintf(name, sizeof(name), "tensor%u", index);
	made->name = strdup(t->name ? t->name : name);
	return made->name && copy(t->dims, t->rank, sizeof(*t->dims), &made->d.dims) &&
	       copy(t->scale, t->scales, sizeof(*t->scale), &made->d.scale) &&
	       copy(t->zero_point, t->zero_points, sizeof(*t->zero_point),
		    &made->d.zero_point) &&
	       copy(t->data, t->bytes, 1, &made->d.data);
}

int npuc_builder_tensor(struct npuc_builder *b, const struct npuc_tensor_desc *t,
			uint32_t *index, char why[NPUC_WHY])
{
	struct built_tensor *tensors;
	const char *wrong;
	uint64_t count;

	if (!b || !t || !index)
		return npuc_fail(why, EINVAL, "npuc_builder_tensor: NULL argument");
	if (b->tensor_count == NPUC_TENSORS_MAX)
		return npuc_fail(why, ENOTSUP, "%s: at most %u tensors are supported",
				 b->name, NPUC_TENSORS_MAX);
	wrong = (uint32_t)t->type > NPUC_BFLOAT16 ? "its type is unknown" : NULL;
	if (!wrong)
		wrong = check_shape(t, &count);
	if (!wrong)
		wrong = check_quantization(t);
	if (!wrong)
		wrong = check_data(t, count);
	if (wrong)
		return npuc_fail(why, EINVAL, "%s: tensor %u ('%.80s'): %s", b->name,
				 b->tensor_count, t->name ? t->name : "", wrong);
	if (t->bytes > NPUC_MODEL_MAX - b->bytes)
		return npuc_fail(why, ENOTSUP,
				 "%s: tensor %u ('%.80s'): constants take more than %u "
				 "bytes together",
				 b->name, b->tensor_count, t->name ? t->name : "",
				 NPUC_MODEL_MAX);
	tensors = grow(b->tensors, b->tensor_count, &b->tensor_room, sizeof(*tensors));
	if (!tensors)
		return out_of_memory(b, why);
	b->tensors = tensors;
	if (!copy_tensor(t, b->tensor_count, &tensors[b->tensor_count])) {
		free_tensor(&tensors[b->tensor_count]);
		return out_of_memory(b, why);
	}
	b->bytes += t->bytes;
	*index = b->tensor_count++;
	return 0;
}

/* ---- operators -------------------------------------------------------------------- */

__attribute__((format(printf, 4, 5))) static int op_fail(const struct npuc_builder *b,
							 const struct npuc_op_desc *d,
							 char *why, const char *format,
							 ...)
{
	const char *known =
		d->code == NPUC_TABLE_OPERATOR ? "TABLE" : npuc_operator_name(d->code);
	char name[NPUC_OPERATOR_NAME], text[256];
	va_list args;

	if (known)
		snprintf(name, sizeof(name), "%s", known);
	else
		snprintf(name, sizeof(name), "operator %u", d->code);
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	return npuc_fail(why, EINVAL, "%s: layer %u (%s): %s", b->name, b->op_count, name,
			 text);
}

static int check_refs(const struct npuc_builder *b, const struct npuc_op_desc *d,
		      const uint32_t *refs, uint32_t count, const char *which, char *why)
{
	if (count && !refs)
		return op_fail(b, d, why, "%ss are NULL", which);
	if (count > REFS_MAX)
		return op_fail(b, d, why, "%u %ss; at most %u are supported", count,
			       which, REFS_MAX);
	for (uint32_t i = 0; i < count; i++)
		if (refs[i] != NPUC_NONE && refs[i] >= b->tensor_count)
			return op_fail(b, d, why,
				       "%s %u is tensor %u, but the model has %u so far",
				       which, i, refs[i], b->tensor_count);
	return 0;
}

static const struct schema_field *find_field(const struct schema_field *fields,
					     const char *name)
{
	for (; fields && fields->kind != SCHEMA_END; fields++)
		if (strcmp(fields->name, name) == 0)
			return fields;
	return NULL;
}

static int check_attr(const struct npuc_builder *b, const struct npuc_op_desc *d,
		      uint32_t number, const struct schema_field **field, char *why)
{
	const struct npuc_attr *a = &d->attrs[number];
	uint32_t options;
	int64_t min = 0, max = UINT8_MAX;

	if (!a->name)
		return op_fail(b, d, why, "the name of attribute %u is NULL", number);
	*field = find_field(npuc_schema_fields(d->code, &options), a->name);
	if (!*field)
		return op_fail(b, d, why, "the operator has no attribute '%.60s'",
			       a->name);
	for (uint32_t i = 0; i < number; i++)
		if (strcmp(d->attrs[i].name, a->name) == 0)
			return op_fail(b, d, why, "attribute '%.60s' is given twice",
				       a->name);
	if ((*field)->kind == SCHEMA_INTS && a->count && !a->ints)
		return op_fail(b, d, why,
			       "attribute '%.60s' has %u numbers, but they "
			       "are NULL",
			       a->name, a->count);
	if ((*field)->kind == SCHEMA_INTS && a->count > REFS_MAX)
		return op_fail(b, d, why,
			       "attribute '%.60s' has %u numbers; at most %u "
			       "are supported",
			       a->name, a->count, REFS_MAX);
	if ((*field)->kind == SCHEMA_INTS || (*field)->kind == SCHEMA_F32)
		return 0;
	if ((*field)->kind == SCHEMA_BOOL)
		max = 1;
	if ((*field)->kind == SCHEMA_I32) {
		min = INT32_MIN;
		max = INT32_MAX;
	}
	if (a->i < min || a->i > max)
		return op_fail(b, d, why,
			       "attribute '%.60s' is %lld; %lld to %lld are "
			       "possible",
			       a->name, (long long)a->i, (long long)min, (long long)max);
	return 0;
}

static int check_op(const struct npuc_builder *b, const struct npuc_op_desc *d, char *why)
{
	const struct schema_field *field;
	int rc;

	if (d->code > INT32_MAX)
		return op_fail(b, d, why, "an operator's code is below 2^31");
	if ((d->code == NPUC_CUSTOM) != (d->custom != NULL))
		return op_fail(b, d, why,
			       "a name is for code %u (CUSTOM), which must "
			       "have one",
			       NPUC_CUSTOM);
	if (d->version < 1)
		return op_fail(b, d, why, "version %d; the first is 1", d->version);
	rc = check_refs(b, d, d->inputs, d->input_count, "input", why);
	if (!rc)
		rc = check_refs(b, d, d->outputs, d->output_count, "output", why);
	if (!rc)
		rc = check_refs(b, d, d->intermediates, d->intermediate_count,
				"intermediate", why);
	if (rc)
		return rc;
	if (d->attr_count && !d->attrs)
		return op_fail(b, d, why, "attributes are NULL");
	for (uint32_t i = 0; !rc && i < d->attr_count; i++)
		rc = check_attr(b, d, i, &field, why);
	return rc;
}

static bool copy_attrs(const struct npuc_op_desc *d, struct built_op *op)
{
	const struct schema_field *fields = npuc_schema_fields(d->code, &op->options);

	op->attrs = calloc((size_t)d->attr_count + 1, sizeof(*op->attrs));
	op->attr_count = d->attr_count;
	for (uint32_t i = 0; op->attrs && i < d->attr_count; i++) {
		const struct npuc_attr *a = &d->attrs[i];
		struct built_attr *made = &op->attrs[i];

		*made = (struct built_attr){.field = find_field(fields, a->name),
					    .i = a->i,
					    .f = a->f,
					    .count = a->count};
		if (made->field->kind == SCHEMA_INTS &&
		    !copy(a->ints, a->count, sizeof(*a->ints), &made->ints))
			return false;
	}
	return op->attrs;
}

static bool copy_op(const struct npuc_op_desc *d, struct built_op *op)
{
	const char *custom = d->code == NPUC_TABLE_OPERATOR ? NPUC_TABLE_NAME : d->custom;

	*op = (struct built_op){.code = custom ? NPUC_CUSTOM : d->code,
				.version = d->version,
				.input_count = d->input_count,
				.output_count = d->output_count,
				.intermediate_count = d->intermediate_count};
	if (custom) {
		op->custom = strdup(custom);
		if (!op->custom)
			return false;
	}
	return copy(d->inputs, d->input_count, sizeof(*d->inputs), &op->inputs) &&
	       copy(d->outputs, d->output_count, sizeof(*d->outputs), &op->outputs) &&
	       copy(d->intermediates, d->intermediate_count, sizeof(*d->intermediates),
		    &op->intermediates) &&
	       copy_attrs(d, op);
}

int npuc_builder_op(struct npuc_builder *b, const struct npuc_op_desc *d, uint32_t *layer,
		    char why[NPUC_WHY])
{
	struct built_op *ops;
	int rc;

	if (!b || !d)
		return npuc_fail(why, EINVAL, "npuc_builder_op: NULL argument");
	if (b->op_count == NPUC_OPERATORS_MAX)
		return npuc_fail(why, ENOTSUP, "%s: at most %u operators are supported",
				 b->name, NPUC_OPERATORS_MAX);
	rc = check_op(b, d, why);
	if (rc)
		return rc;
	ops = grow(b->ops, b->op_count, &b->op_room, sizeof(*ops));
	if (!ops)
		return out_of_memory(b, why);
	b->ops = ops;
	if (!copy_op(d, &ops[b->op_count])) {
		free_op(&ops[b->op_count]);
		return out_of_memory(b, why);
	}
	if (layer)
		*layer = b->op_count;
	b->op_count++;
	return 0;
}

/* ---- writing ---------------------------------------------------------------------- */

/* The reference at position field becomes one to a table; at[] as flat_write_table. */
static void write_quantization(struct flat_writer *f, size_t field,
			       const struct npuc_tensor_desc *t)
{
	const uint8_t bytes[QUANT_FIELDS] = {[QUANT_SCALE] = 4,
					     [QUANT_ZERO_POINT] = t->zero_points ? 4 : 0,
					     [QUANT_DIMENSION] = t->scales > 1 ? 4 : 0};
	size_t at[QUANT_FIELDS], zeros;

	flat_write_table(f, field, bytes, QUANT_FIELDS, at);
	if (t->scales > 1)
		flat_write_u32(f, at[QUANT_DIMENSION], t->channel_dim);
	flat_write_vector(f, at[QUANT_SCALE], t->scale, t->scales, 4, 4);
	if (!t->zero_points)
		return;
	zeros = flat_write_vector(f, at[QUANT_ZERO_POINT], NULL, t->scales, 8, 8);
	for (uint32_t i = 0; i < t->scales; i++) {
		int64_t z = t->zero_point[t->zero_points > 1 ? i : 0];

		flat_write_at(f, zeros + 8 * (size_t)i, &z, sizeof(z));
	}
}

static void write_tensor(struct flat_writer *f, size_t field,
			 const struct built_tensor *t, uint32_t buffer)
{
	const uint8_t bytes[TENSOR_FIELDS] = {
		[TENSOR_SHAPE] = 4,
		[TENSOR_TYPE] = 1,
		[TENSOR_BUFFER] = 4,
		[TENSOR_NAME] = 4,
		[TENSOR_QUANTIZATION] = t->d.scales ? 4 : 0,
		[TENSOR_VARIABLE] = 1,
		[TENSOR_SIGNATURE] = t->d.open ? 4 : 0,
	};
	int32_t signature[NPUC_RANK];
	size_t at[TENSOR_FIELDS];

	flat_write_table(f, field, bytes, TENSOR_FIELDS, at);
	flat_write_u8(f, at[TENSOR_TYPE], (uint8_t)t->d.type);
	flat_write_u32(f, at[TENSOR_BUFFER], buffer);
	flat_write_u8(f, at[TENSOR_VARIABLE], t->d.variable);
	flat_write_vector(f, at[TENSOR_SHAPE], t->d.dims, t->d.rank, 4, 4);
	flat_write_string(f, at[TENSOR_NAME], t->name);
	if (t->d.scales)
		write_quantization(f, at[TENSOR_QUANTIZATION], &t->d);
	if (!t->d.open)
		return;
	for (uint32_t i = 0; i < t->d.rank; i++)
		signature[i] = t->d.open >> i & 1 ? -1 : t->d.dims[i];
	flat_write_vector(f, at[TENSOR_SIGNATURE], signature, t->d.rank, 4, 4);
}

static void write_options(struct flat_writer *f, size_t field, const struct built_op *op)
{
	uint8_t bytes[SCHEMA_FIELDS] = {0};
	size_t at[SCHEMA_FIELDS];

	for (uint32_t i = 0; i < op->attr_count; i++) {
		enum schema_kind kind = op->attrs[i].field->kind;

		bytes[op->attrs[i].field->number] =
			kind == SCHEMA_U8 || kind == SCHEMA_BOOL ? 1 : 4;
	}
	flat_write_table(f, field, bytes, SCHEMA_FIELDS, at);
	for (uint32_t i = 0; i < op->attr_count; i++) {
		const struct built_attr *a = &op->attrs[i];
		size_t where = at[a->field->number];

		if (a->field->kind == SCHEMA_INTS)
			flat_write_vector(f, where, a->ints, a->count, 4, 4);
		else if (a->field->kind == SCHEMA_F32)
			flat_write_at(f, where, &a->f, sizeof(a->f));
		else if (a->field->kind == SCHEMA_I32)
			flat_write_u32(f, where, (uint32_t)(int32_t)a->i);
		else
			flat_write_u8(f, where, (uint8_t)a->i);
	}
}

static void write_op(struct flat_writer *f, size_t field, const struct built_op *op,
		     uint32_t code)
{
	const uint8_t bytes[OP_FIELDS] = {
		[OP_CODE] = 4,
		[OP_INPUTS] = 4,
		[OP_OUTPUTS] = 4,
		[OP_OPTIONS_TYPE] = op->attr_count ? 1 : 0,
		[OP_OPTIONS] = op->attr_count ? 4 : 0,
		[OP_BETWEEN] = op->intermediate_count ? 4 : 0,
	};
	size_t at[OP_FIELDS];

	flat_write_table(f, field, bytes, OP_FIELDS, at);
	flat_write_u32(f, at[OP_CODE], code);
	flat_write_vector(f, at[OP_INPUTS], op->inputs, op->input_count, 4, 4);
	flat_write_vector(f, at[OP_OUTPUTS], op->outputs, op->output_count, 4, 4);
	if (op->intermediate_count)
		flat_write_vector(f, at[OP_BETWEEN], op->intermediates,
				  op->intermediate_count, 4, 4);
	if (!op->attr_count)
		return;
	flat_write_u8(f, at[OP_OPTIONS_TYPE], (uint8_t)op->options);
	write_options(f, at[OP_OPTIONS], op);
}

/* One code for each operator, as their versions may differ. */
static void write_codes(struct flat_writer *f, size_t field, const struct npuc_builder *b)
{
	size_t codes = flat_write_vector(f, field, NULL, b->op_count, 4, 4);

	for (uint32_t i = 0; i < b->op_count; i++) {
		const struct built_op *op = &b->ops[i];
		const uint8_t bytes[CODE_FIELDS] = {[CODE_BYTE] = 1,
						    [CODE_CUSTOM] = op->custom ? 4 : 0,
						    [CODE_VERSION] = 4,
						    [CODE_INT] = 4};
		size_t at[CODE_FIELDS];

		flat_write_table(f, codes + 4 * (size_t)i, bytes, CODE_FIELDS, at);
		flat_write_u8(f, at[CODE_BYTE],
			      (uint8_t)(op->code < INT8_MAX ? op->code : INT8_MAX));
		flat_write_u32(f, at[CODE_VERSION], (uint32_t)op->version);
		flat_write_u32(f, at[CODE_INT], op->code);
		if (op->custom)
			flat_write_string(f, at[CODE_CUSTOM], op->custom);
	}
}

/* Ports of the model. */
struct ports {
	const uint32_t *inputs, *outputs;
	uint32_t input_count, output_count;
};

static void write_graph(struct flat_writer *f, size_t field, const struct npuc_builder *b,
			const struct ports *p)
{
	static const uint8_t bytes[GRAPH_FIELDS] = {4, 4, 4, 4};
	size_t at[GRAPH_FIELDS], all;
	uint32_t buffers = 1; /* the first is the one of no data */

	flat_write_table(f, field, bytes, GRAPH_FIELDS, at);
	flat_write_vector(f, at[GRAPH_INPUTS], p->inputs, p->input_count, 4, 4);
	flat_write_vector(f, at[GRAPH_OUTPUTS], p->outputs, p->output_count, 4, 4);
	all = flat_write_vector(f, at[GRAPH_TENSORS], NULL, b->tensor_count, 4, 4);
	for (uint32_t i = 0; i < b->tensor_count; i++)
		write_tensor(f, all + 4 * (size_t)i, &b->tensors[i],
			     b->tensors[i].d.data ? buffers++ : 0);
	all = flat_write_vector(f, at[GRAPH_OPERATORS], NULL, b->op_count, 4, 4);
	for (uint32_t i = 0; i < b->op_count; i++)
		write_op(f, all + 4 * (size_t)i, &b->ops[i], i);
}

static void write_buffers(struct flat_writer *f, size_t field,
			  const struct npuc_builder *b)
{
	uint32_t count = 1, number = 0;
	size_t all, at;

	for (uint32_t i = 0; i < b->tensor_count; i++)
		count += b->tensors[i].d.data != NULL;
	all = flat_write_vector(f, field, NULL, count, 4, 4);
	flat_write_table(f, all, (const uint8_t[]){0}, 1, &at);
	for (uint32_t i = 0; i < b->tensor_count; i++) {
		const struct npuc_tensor_desc *t = &b->tensors[i].d;

		if (!t->data)
			continue;
		flat_write_table(f, all + 4 * (size_t)++number, (const uint8_t[]){4}, 1,
				 &at);
		flat_write_vector(f, at, t->data, t->bytes, 1, DATA_ALIGN);
	}
}

static void write_model(struct flat_writer *f, const struct npuc_builder *b,
			const struct ports *p)
{
	static const uint8_t bytes[MODEL_FIELDS] = {[MODEL_VERSION] = 4,
						    [MODEL_OPERATOR_CODES] = 4,
						    [MODEL_SUBGRAPHS] = 4,
						    [MODEL_BUFFERS] = 4};
	size_t at[MODEL_FIELDS];

	flat_write_zeros(f, 8);
	flat_write_at(f, 4, SCHEMA_FILE, 4);
	flat_write_table(f, 0, bytes, MODEL_FIELDS, at);
	flat_write_u32(f, at[MODEL_VERSION], SCHEMA_VERSION);
	write_codes(f, at[MODEL_OPERATOR_CODES], b);
	write_graph(f, flat_write_vector(f, at[MODEL_SUBGRAPHS], NULL, 1, 4, 4), b, p);
	write_buffers(f, at[MODEL_BUFFERS], b);
}

static int check_ports(const struct npuc_builder *b, const uint32_t *ports,
		       uint32_t count, const char *which, char *why)
{
	if (!ports || !count || count > REFS_MAX)
		return npuc_fail(why, EINVAL,
				 "%s: %u %ss of the model; it must have 1 "
				 "to %u",
				 b->name, ports ? count : 0, which, REFS_MAX);
	for (uint32_t i = 0; i < count; i++)
		if (ports[i] >= b->tensor_count)
			return npuc_fail(why, EINVAL,
					 "%s: %s %u of the model is tensor %u, but it "
					 "has %u",
					 b->name, which, i, ports[i], b->tensor_count);
	return 0;
}

int npuc_builder_model(struct npuc_builder *b, const uint32_t *inputs,
		       uint32_t input_count, const uint32_t *outputs,
		       uint32_t output_count, struct npuc_model **model,
		       char why[NPUC_WHY])
{
	const struct ports p = {inputs, outputs, input_count, output_count};
	struct flat_writer f = {0};
	int rc;

	if (!b || !model)
		return npuc_fail(why, EINVAL, "npuc_builder_model: NULL argument");
	rc = check_ports(b, inputs, input_count, "input", why);
	if (!rc)
		rc = check_ports(b, outputs, output_count, "output", why);
	if (rc)
		return rc;
	write_model(&f, b, &p);
	rc = f.no_memory ? out_of_memory(b, why)
			 : npuc_model_parse(f.bytes, f.size, b->name, model, why);
	free(f.bytes);
	return rc;
}
