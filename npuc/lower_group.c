/* SPDX-License-Identifier: Apache-2.0 */
/* lower_group.c - functions in float32 between DEQUANTIZE and QUANTIZE: whatever they
 * compute of one number of 8 bits is a table of 256 bytes. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lower.h"

/* Kinds of union BuiltinOptions, and fields of their tables. */
enum {
	OPTIONS_ADD = 11,
	OPTIONS_MUL = 21,
	OPTIONS_SUB = 28,
	OPTIONS_DIV = 29,
	FUSED_ACT = 0,
	OPTIONS_LEAKY_RELU = 75,
	LEAKY_ALPHA = 0,
	OPTIONS_GELU = 116,
	GELU_APPROXIMATE = 0,
};

/* ---- functions -------------------------------------------------------------------- */

static float square(float x)
{
	return x * x;
}

static float negative(float x)
{
	return -x;
}

static float inverse_root(float x)
{
	return 1 / sqrtf(x);
}

static float relu(float x)
{
	return x < 0 ? 0 : x;
}

static float clamped(float x, float min, float max)
{
	return x < min ? min : x > max ? max : x;
}

static float relu6(float x)
{
	return clamped(x, 0, 6);
}

static float relu_0_to_1(float x)
{
	return clamped(x, 0, 1);
}

static float relu_n1_to_1(float x)
{
	return clamped(x, -1, 1);
}

static float hard_swish(float x)
{
	return x * clamped(x + 3, 0, 6) / 6;
}

/* Where TensorFlow Lite cuts off. */
static float logistic(float x)
{
	if (x > 16.619047164916992188f)
		return 1;
	return x < -9 ? expf(x) : quant_logistic(x);
}

static const struct function {
	uint32_t code;
	float (*of)(float x);
} functions[] = {
	{NPUC_FLOOR, floorf},
	{NPUC_LOGISTIC, logistic},
	{NPUC_RELU, relu},
	{NPUC_RELU_N1_TO_1, relu_n1_to_1},
	{NPUC_RELU6, relu6},
	{NPUC_TANH, tanhf},
	{NPUC_EXP, expf},
	{NPUC_NEG, negative},
	{NPUC_SIN, sinf},
	{NPUC_LOG, logf},
	{NPUC_SQRT, sqrtf},
	{NPUC_RSQRT, inverse_root},
	{NPUC_SQUARE, square},
	{NPUC_ABS, fabsf},
	{NPUC_CEIL, ceilf},
	{NPUC_COS, cosf},
	{NPUC_ELU, quant_elu},
	{NPUC_ROUND, rintf},
	{NPUC_HARD_SWISH, hard_swish},
	{NPUC_RELU_0_TO_1, relu_0_to_1},
};

static const struct function *find_function(uint32_t code)
{
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
		if (functions[i].code == code)
			return &functions[i];
	return NULL;
}

/* Operators of two numbers, of which one is constant. */
static uint32_t pair_options(uint32_t code)
{
	switch (code) {
	case NPUC_ADD:
		return OPTIONS_ADD;
	case NPUC_SUB:
		return OPTIONS_SUB;
	case NPUC_MUL:
		return OPTIONS_MUL;
	case NPUC_DIV:
		return OPTIONS_DIV;
	default:
		return 0;
	}
}

static bool is_number(const struct lowered *l, uint32_t tensor)
{
	const struct npuc_tensor *t = tensor == NPUC_NONE ? NULL : lower_t(l, tensor);

	return t && t->type == NPUC_FLOAT32 && t->data && t->count == 1 &&
	       !l->m->tensors[tensor].unusable;
}

/* The operand that is no constant, of an operator that a table can be of; NPUC_NONE: it
 * is none. */
static uint32_t operand_of(const struct lowered *l, const struct model_op *op)
{
	bool one = find_function(op->code) || op->code == NPUC_GELU ||
		   op->code == NPUC_LEAKY_RELU;

	if (op->output_count != 1 || op->outputs[0] == NPUC_NONE)
		return NPUC_NONE;
	if (one && op->input_count == 1)
		return op->inputs[0];
	if (!pair_options(op->code) || op->input_count != 2)
		return NPUC_NONE;
	if (is_number(l, op->inputs[1]))
		return op->inputs[0];
	return is_number(l, op->inputs[0]) ? op->inputs[1] : NPUC_NONE;
}

static float constant(const struct lowered *l, uint32_t tensor)
{
	float x;

	memcpy(&x, lower_t(l, tensor)->data, sizeof(x));
	return x;
}

static float activated(float x, uint32_t act)
{
	switch (act) {
	case QUANT_ACT_RELU:
		return relu(x);
	case QUANT_ACT_RELU6:
		return relu6(x);
	case QUANT_ACT_RELU_N1_TO_1:
		return relu_n1_to_1(x);
	default:
		return x;
	}
}

static float pair(const struct lowered *l, const struct model_op *op, float x)
{
	bool second = is_number(l, op->inputs[1]);
	float c = constant(l, op->inputs[second]);
	float a = second ? x : c, b = second ? c : x;

	switch (op->code) {
	case NPUC_ADD:
		return a + b;
	case NPUC_SUB:
		return a - b;
	case NPUC_MUL:
		return a * b;
	default:
		return a / b;
	}
}

static float apply(const struct lowered *l, const struct model_op *op, float x)
{
	struct flat f = l->m->flat;
	uint32_t kind = pair_options(op->code);
	bool has = op->options_type == (kind                          ? kind
					: op->code == NPUC_GELU       ? OPTIONS_GELU
					: op->code == NPUC_LEAKY_RELU ? OPTIONS_LEAKY_RELU
								      : 0);

	if (kind)
		return activated(pair(l, op, x),
				 has ? flat_u8(&f, op->options, FUSED_ACT, 0) : 0);
	if (op->code == NPUC_GELU)
		return has && flat_u8(&f, op->options, GELU_APPROXIMATE, 0)
			       ? quant_gelu_tanh(x)
			       : quant_gelu(x);
	if (op->code == NPUC_LEAKY_RELU)
		return x > 0 ? x
			     : x * (has ? flat_f32(&f, op->options, LEAKY_ALPHA, 0) : 0);
	return find_function(op->code)->of(x);
}

/* ---- groups ----------------------------------------------------------------------- */

struct uses {
	uint32_t *maker;   /* by tensor: the layer; NPUC_NONE: none */
	uint32_t *readers; /* by tensor: how many; outputs of the model have one more */
};

static bool is_byte(const struct lowered *l, uint32_t tensor)
{
	enum npuc_type type = lower_t(l, tensor)->type;

	return type == NPUC_INT8 || type == NPUC_UINT8;
}

static bool known_activation(const struct lowered *l, const struct model_op *op)
{
	struct flat f = l->m->flat;
	uint32_t kind = pair_options(op->code);

	return !kind || op->options_type != kind ||
	       flat_u8(&f, op->options, FUSED_ACT, 0) <= QUANT_ACT_RELU6;
}

/* The layer that makes a tensor which only one layer reads; NULL: there is none. */
static const struct model_op *only_maker(const struct lowered *l, const struct uses *u,
					 uint32_t tensor, uint32_t *layer)
{
	if (tensor == NPUC_NONE || u->maker[tensor] == NPUC_NONE ||
	    lower_t(l, tensor)->type != NPUC_FLOAT32)
		return NULL;
	*layer = u->maker[tensor];
	return &l->m->ops[*layer];
}

/* Find the group that a QUANTIZE ends. */
static void find_group(struct lowered *l, const struct uses *u, uint32_t last)
{
	const struct model_op *end = &l->m->ops[last], *op;
	uint32_t tensor = end->inputs[0], at = last, layer = last;

	for (;;) {
		op = only_maker(l, u, tensor, &layer);
		if (!op || layer >= at)
			return;
		at = layer;
		if (op->code == NPUC_DEQUANTIZE)
			break;
		tensor = operand_of(l, op);
		if (u->readers[op->outputs[0]] != 1 || tensor == NPUC_NONE ||
		    !known_activation(l, op))
			return;
	}
	if (op->input_count != 1 || op->output_count != 1 || op->inputs[0] == NPUC_NONE ||
	    lower_t(l, op->inputs[0])->data || !is_byte(l, op->inputs[0]))
		return;
	/* DEQUANTIZE itself goes where every reader is in a group. */
	for (tensor = end->inputs[0], layer = last; op != &l->m->ops[layer];) {
		l->group[layer] = last;
		layer = u->maker[tensor];
		if (op != &l->m->ops[layer])
			tensor = operand_of(l, &l->m->ops[layer]);
	}
	l->grouped[op->outputs[0]]++;
}

static int count_uses(const struct lowered *l, struct uses *u)
{
	const struct npuc_model *m = l->m;

	u->maker = calloc((size_t)m->tensor_count + 1, sizeof(*u->maker));
	u->readers = calloc((size_t)m->tensor_count + 1, sizeof(*u->readers));
	if (!u->maker || !u->readers)
		return -ENOMEM;
	for (uint32_t i = 0; i < m->tensor_count; i++)
		u->maker[i] = NPUC_NONE;
	for (uint32_t i = 0; i < m->op_count; i++) {
		const struct model_op *op = &m->ops[i];

		for (uint32_t k = 0; k < op->output_count; k++)
			if (op->outputs[k] != NPUC_NONE)
				u->maker[op->outputs[k]] = i;
		for (uint32_t k = 0; k < op->input_count; k++)
			if (op->inputs[k] != NPUC_NONE)
				u->readers[op->inputs[k]]++;
	}
	for (uint32_t i = 0; i < m->output_count; i++)
		if (m->outputs[i] != NPUC_NONE)
			u->readers[m->outputs[i]]++;
	return 0;
}

int lower_find_groups(struct lowered *l)
{
	const struct npuc_model *m = l->m;
	struct uses u = {0};
	int rc = count_uses(l, &u);

	l->group = calloc((size_t)m->op_count + 1, sizeof(*l->group));
	l->grouped = calloc((size_t)m->tensor_count + 1, sizeof(*l->grouped));
	if (rc || !l->group || !l->grouped) {
		free(u.maker);
		free(u.readers);
		return npuc_fail(l->why, ENOMEM, "%s: out of memory", m->file);
	}
	for (uint32_t i = 0; i < m->op_count; i++)
		l->group[i] = NPUC_NONE;
	for (uint32_t i = 0; i < m->op_count; i++) {
		const struct model_op *op = &m->ops[i];

		if (op->code == NPUC_QUANTIZE && op->input_count == 1 &&
		    op->output_count == 1 && op->inputs[0] != NPUC_NONE &&
		    op->outputs[0] != NPUC_NONE && is_byte(l, op->outputs[0]))
			find_group(l, &u, i);
	}
	for (uint32_t i = 0; i < m->op_count; i++) {
		const struct model_op *op = &m->ops[i];

		if (op->code == NPUC_DEQUANTIZE && op->output_count == 1 &&
		    op->outputs[0] != NPUC_NONE && l->grouped[op->outputs[0]] &&
		    l->grouped[op->outputs[0]] == u.readers[op->outputs[0]])
			l->group[i] = i;
	}
	free(u.maker);
	free(u.readers);
	return 0;
}

/* ---- the table --------------------------------------------------------------------- */

/* Layers between DEQUANTIZE and the last, from the last one back. */
static uint32_t path_back(struct lowered *l, const struct model_op **path)
{
	uint32_t tensor = lower_op(l)->inputs[0], count = 0;

	for (uint32_t i = l->layer; i--;) {
		const struct model_op *op = &l->m->ops[i];

		if (op->output_count != 1 || op->outputs[0] != tensor)
			continue;
		path[count++] = op;
		if (op->code == NPUC_DEQUANTIZE)
			break;
		tensor = operand_of(l, op);
	}
	return count;
}

/* No operator between them changes the number of elements; open sizes are not known. */
static int check_count(struct lowered *l, uint32_t a, uint32_t tensor)
{
	const struct npuc_tensor *x = lower_t(l, a), *t = lower_t(l, tensor);

	if (t->count == x->count || l->open[tensor])
		return 0;
	return lower_fail(
		l, EINVAL, "tensor '%.80s' has %llu elements, but its operand has %llu",
		t->name, (unsigned long long)t->count, (unsigned long long)x->count);
}

int lower_group(struct lowered *l)
{
	const struct model_op **path;
	struct quant_side in, out;
	uint32_t a, d, count;
	uint8_t *table;
	int rc;

	if (lower_op(l)->code != NPUC_QUANTIZE) {
		snprintf(l->shapes[l->layer], sizeof(l->shapes[0]), "in a table");
		return 0;
	}
	path = lower_own(l, ((uint64_t)l->layer + 1) * sizeof(const struct model_op *));
	table = lower_own(l, 256);
	if (!path || !table)
		return -ENOMEM;
	count = path_back(l, path);
	a = path[count - 1]->inputs[0];
	rc = lower_tensor(l, a);
	if (!rc)
		rc = lower_result(l, &d);
	for (uint32_t i = count; !rc && i--;)
		rc = check_count(l, a, path[i]->outputs[0]);
	if (!rc)
		rc = lower_same_dims(l, a, d);
	if (rc)
		return rc;
	in = lower_side(l, a);
	out = lower_side(l, d);
	for (uint32_t i = 0; i < 256; i++) {
		float x = quant_to_float(quant_value((uint8_t)i, in.type), in);

		for (uint32_t k = count - 1; k--;)
			x = apply(l, path[k], x);
		table[i] = (uint8_t)quant_from_float(x, out);
	}
	lower_describe(l, a, d);
	return lower_lut(l, a, d, lower_t(l, d)->count, table);
}
