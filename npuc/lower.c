/* SPDX-License-Identifier: Apache-2.0 */
/* lower.c - operators become steps: what all operators need, and their table. */
#include "lower.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lower_fold.h"
#include "lower_move.h"
#include "quant.h"

#define STEPS_MAX (1u << 18)
#define OWNED_MAX (UINT64_C(256) << 20) /* tables and rearranged weights of a model */
#define PORTS_MAX 256u

/* In the schema's order.  version: the newest whose meaning for 8 bits is what is
 * compiled here. */
static const struct known {
	uint32_t code;
	int32_t version;
	int (*lower)(struct lowered *l);
} operators[] = {
	{NPUC_ADD, 5, lower_add},
	{NPUC_AVERAGE_POOL_2D, 3, lower_pool},
	{NPUC_CONCATENATION, 4, lower_concat},
	{NPUC_CONV_2D, 8, lower_conv},
	{NPUC_DEPTHWISE_CONV_2D, 7, lower_depthwise},
	{NPUC_DEPTH_TO_SPACE, 2, lower_space_to_depth},
	{NPUC_DEQUANTIZE, 6, lower_dequantize},
	{NPUC_FULLY_CONNECTED, 12, lower_fully_connected},
	{NPUC_LOGISTIC, 3, lower_function},
	{NPUC_MAX_POOL_2D, 3, lower_pool},
	{NPUC_MUL, 7, lower_mul},
	{NPUC_RELU, 3, lower_relu},
	{NPUC_RELU_N1_TO_1, 3, lower_relu},
	{NPUC_RELU6, 3, lower_relu},
	{NPUC_RESHAPE, 1, lower_reshape},
	{NPUC_RESIZE_BILINEAR, 4, lower_resize_bilinear},
	{NPUC_SOFTMAX, 3, lower_softmax},
	{NPUC_SPACE_TO_DEPTH, 2, lower_space_to_depth},
	{NPUC_SVDF, 4, lower_svdf},
	{NPUC_TANH, 3, lower_function},
	{NPUC_PAD, 4, lower_pad},
	{NPUC_GATHER, 6, lower_gather},
	{NPUC_BATCH_TO_SPACE_ND, 4, lower_space_to_batch},
	{NPUC_SPACE_TO_BATCH_ND, 4, lower_space_to_batch},
	{NPUC_TRANSPOSE, 5, lower_transpose},
	{NPUC_MEAN, 3, lower_mean},
	{NPUC_SUB, 5, lower_add},
	{NPUC_DIV, 2, lower_constants},
	{NPUC_SQUEEZE, 2, lower_reshape},
	{NPUC_UNIDIRECTIONAL_SEQUENCE_LSTM, 4, lower_lstm},
	{NPUC_STRIDED_SLICE, 4, lower_strided_slice},
	{NPUC_EXP, 2, lower_unary_table},
	{NPUC_SPLIT, 4, lower_split},
	{NPUC_LOG_SOFTMAX, 2, lower_log_softmax},
	{NPUC_CAST, 4, lower_constants},
	{NPUC_PRELU, 1, lower_prelu},
	{NPUC_MAXIMUM, 4, lower_maximum},
	{NPUC_ARG_MAX, 3, lower_arg_max},
	{NPUC_MINIMUM, 4, lower_maximum},
	{NPUC_NEG, 1, lower_unary_table},
	{NPUC_PADV2, 4, lower_pad},
	{NPUC_SLICE, 5, lower_slice},
	{NPUC_TRANSPOSE_CONV, 5, lower_transpose_conv},
	{NPUC_TILE, 3, lower_tile},
	{NPUC_EXPAND_DIMS, 1, lower_reshape},
	{NPUC_LOG, 2, lower_unary_table},
	{NPUC_SUM, 2, lower_constants},
	{NPUC_SQRT, 2, lower_unary_table},
	{NPUC_RSQRT, 3, lower_unary_table},
	{NPUC_SHAPE, 1, lower_shape},
	{NPUC_ARG_MIN, 3, lower_arg_max},
	{NPUC_REDUCE_PROD, 2, lower_constants},
	{NPUC_REDUCE_MAX, 3, lower_reduce},
	{NPUC_PACK, 3, lower_pack},
	{NPUC_UNPACK, 4, lower_unpack},
	{NPUC_REDUCE_MIN, 3, lower_reduce},
	{NPUC_FLOOR_DIV, 3, lower_constants},
	{NPUC_FILL, 3, lower_filled},
	{NPUC_FLOOR_MOD, 2, lower_constants},
	{NPUC_RANGE, 2, lower_constants},
	{NPUC_RESIZE_NEAREST_NEIGHBOR, 4, lower_resize_nearest},
	{NPUC_LEAKY_RELU, 2, lower_leaky_relu},
	{NPUC_MIRROR_PAD, 3, lower_mirror_pad},
	{NPUC_ABS, 5, lower_unary_table},
	{NPUC_SPLIT_V, 2, lower_split},
	{NPUC_REVERSE_V2, 3, lower_reverse},
	{NPUC_RANK_OF, 1, lower_shape},
	{NPUC_ELU, 1, lower_unary_table},
	{NPUC_QUANTIZE, 3, lower_quantize},
	{NPUC_HARD_SWISH, 1, lower_unary_table},
	{NPUC_DENSIFY, 1, lower_densify},
	{NPUC_BATCH_MATMUL, 4, lower_batch_matmul},
	{NPUC_CALL_ONCE, 1, lower_call_once},
	{NPUC_BROADCAST_TO, 3, lower_broadcast},
	{NPUC_VAR_HANDLE, 1, lower_var_handle},
	{NPUC_READ_VARIABLE, 1, lower_read_variable},
	{NPUC_ASSIGN_VARIABLE, 1, lower_assign_variable},
	{NPUC_GELU, 3, lower_unary_table},
	{NPUC_RELU_0_TO_1, 1, lower_relu},
	/* The last, without a name in the schema: npuc_operator() ends before it. */
	{NPUC_TABLE_OPERATOR, 1, lower_given_table},
};

#define OPERATORS (sizeof(operators) / sizeof(operators[0]))

const char *npuc_operator(uint32_t index)
{
	return index < OPERATORS ? npuc_operator_name(operators[index].code) : NULL;
}

void lower_operator_name(const struct model_op *op, char name[NPUC_OPERATOR_NAME])
{
	const char *known = npuc_operator_name(op->code);

	if (op->code == NPUC_CUSTOM)
		snprintf(name, NPUC_OPERATOR_NAME, "CUSTOM %.50s", op->custom);
	else if (op->code == NPUC_TABLE_OPERATOR)
		snprintf(name, NPUC_OPERATOR_NAME, "TABLE");
	else if (known)
		snprintf(name, NPUC_OPERATOR_NAME, "%s", known);
	else
		snprintf(name, NPUC_OPERATOR_NAME, "operator %u", op->code);
}

static const struct known *find_operator(uint32_t code)
{
	for (size_t i = 0; i < OPERATORS; i++)
		if (operators[i].code == code)
			return &operators[i];
	return NULL;
}

bool lower_knows(uint32_t code)
{
	return find_operator(code) != NULL;
}

const struct model_op *lower_op(const struct lowered *l)
{
	return &l->m->ops[l->layer];
}

const struct npuc_tensor *lower_t(const struct lowered *l, uint32_t tensor)
{
	return &l->tensors[tensor];
}

int lower_fail(struct lowered *l, int err, const char *format, ...)
{
	const struct model_op *op = lower_op(l);
	uint32_t d = op->output_count ? op->outputs[0] : NPUC_NONE;
	char name[NPUC_OPERATOR_NAME];
	va_list args;

	va_start(args, format);
	vsnprintf(l->reason, sizeof(l->reason), format, args);
	va_end(args);
	lower_operator_name(op, name);
	return npuc_fail(l->why, err, "%s: layer %u (%s, output '%.80s'): %s", l->m->file,
			 l->layer, name, d == NPUC_NONE ? "" : lower_t(l, d)->name,
			 l->reason);
}

/* ---- growing arrays --------------------------------------------------------------- */

/* One more element in an array that doubles; NULL: no memory. */
static void *grow(void *array, uint32_t count, uint32_t *room, size_t element)
{
	void *more;

	if (count < *room)
		return array;
	if (*room > UINT32_MAX / 2)
		return NULL;
	more = realloc(array, (*room ? (size_t)*room * 2 : 64) * element);
	if (more)
		*room = *room ? *room * 2 : 64;
	return more;
}

void *lower_own(struct lowered *l, uint64_t bytes)
{
	void **owned;
	void *memory;

	if (bytes > OWNED_MAX - l->owned_bytes) {
		lower_fail(l, ENOTSUP,
			   "tables and rearranged weights need more than %llu MiB",
			   (unsigned long long)(OWNED_MAX >> 20));
		return NULL;
	}
	owned = grow(l->owned, l->owned_count, &l->owned_room, sizeof(void *));
	if (owned)
		l->owned = owned;
	memory = owned ? calloc(1, bytes ? bytes : 1) : NULL;
	if (!memory) {
		lower_fail(l, ENOMEM, "out of memory");
		return NULL;
	}
	l->owned[l->owned_count++] = memory;
	l->owned_bytes += bytes;
	return memory;
}

int lower_value(struct lowered *l, uint64_t bytes, const void *data, uint32_t *value)
{
	struct value *values =
		grow(l->values, l->value_count, &l->value_room, sizeof(*values));

	if (!values)
		return lower_fail(l, ENOMEM, "out of memory");
	l->values = values;
	values[l->value_count] = (struct value){.bytes = bytes,
						.data = data,
						.same = l->value_count,
						.ready = data,
						.pad.inner = NPUC_NONE};
	*value = l->value_count++;
	return 0;
}

struct step *lower_step(struct lowered *l, enum step_kind kind, uint32_t a, uint32_t b,
			uint32_t d)
{
	struct step *steps = grow(l->steps, l->step_count, &l->step_room, sizeof(*steps));

	if (!steps || l->step_count == STEPS_MAX) {
		lower_fail(l, steps ? ENOTSUP : ENOMEM,
			   steps ? "more than 2^18 operations" : "out of memory");
		if (steps)
			l->steps = steps;
		return NULL;
	}
	l->steps = steps;
	l->values[d].ready = true;
	steps += l->step_count++;
	memset(steps, 0, sizeof(*steps));
	steps->kind = kind;
	steps->layer = l->layer;
	steps->a = a;
	steps->b = b;
	steps->d = d;
	return steps;
}

uint32_t npuc_root(const struct lowered *l, uint32_t v)
{
	while (l->values[v].same != v)
		v = l->values[v].same;
	return v;
}

int lower_alias(struct lowered *l, uint32_t a, uint32_t d)
{
	uint32_t root = npuc_root(l, a);
	struct value *r = &l->values[root], *out = &l->values[d];
	struct step *s;

	if (!out->output && r->data) {
		out->data = r->data;
		out->ready = true;
		return 0;
	}
	if (!out->output || (!r->data && !r->input)) {
		r->output |= out->output;
		out->same = root;
		out->ready = true;
		return 0;
	}
	/* Arguments are different buffers. */
	s = lower_step(l, STEP_COPY, a, NPUC_NONE, d);
	if (!s)
		return -ENOMEM;
	s->u.copy = (struct hal_npu_copy){.size = (uint32_t)sizeof(s->u.copy),
					  .rows = 1,
					  .bytes = (uint32_t)out->bytes};
	return 0;
}

/* ---- reports ---------------------------------------------------------------------- */

static bool same_text(const struct npuc_obstacle *o, const char *name, const char *text)
{
	return strcmp(o->text, text) == 0 && strcmp(o->operator_name, name) == 0;
}

/* Record the first layer of the obstacle: npuc_check sorts obstacles, and then replaces
 * it by the index. */
static void note_of_layer(struct npuc_report *r, uint32_t layer, uint32_t first)
{
	if (layer != NPUC_NONE && r->by_layer[layer] == NPUC_NONE)
		r->by_layer[layer] = first;
}

int npuc_note(struct lowered *l, uint32_t layer, int rc)
{
	struct npuc_report *r = l->report;
	struct npuc_obstacle *o;
	char name[NPUC_OPERATOR_NAME] = "";
	const char *text;

	if (!rc || !r || rc == -ENOMEM)
		return rc;
	text = l->why + strlen(l->m->file) + 2; /* "file: " */
	if (layer != NPUC_NONE) {
		lower_operator_name(&l->m->ops[layer], name);
		text = l->reason;
	}
	for (uint32_t i = 0; i < r->count; i++)
		if (same_text(&r->obstacles[i], name, text)) {
			r->obstacles[i].more += r->last != layer;
			r->last = layer;
			note_of_layer(r, layer, r->obstacles[i].layer);
			return 0;
		}
	o = grow(r->obstacles, r->count, &r->room, sizeof(*o));
	if (!o)
		return npuc_fail(l->why, ENOMEM, "%s: out of memory", l->m->file);
	r->obstacles = o;
	o += r->count++;
	*o = (struct npuc_obstacle){.layer = layer, .err = rc};
	memcpy(o->operator_name, name, sizeof(name));
	snprintf(o->text, sizeof(o->text), "%s", text);
	r->last = layer;
	note_of_layer(r, layer, layer);
	return 0;
}

/* ---- operands --------------------------------------------------------------------- */

/* What must hold of a tensor whose elements the machine computes with. */
static int check_quantized(struct lowered *l, uint32_t tensor, bool wide)
{
	const struct npuc_tensor *t = lower_t(l, tensor);
	const char *unusable = l->m->tensors[tensor].unusable;

	if (unusable)
		return lower_fail(l, ENOTSUP, "tensor '%.80s' %s", t->name, unusable);
	if (t->type != NPUC_INT8 && t->type != NPUC_UINT8 &&
	    !(wide && t->type == NPUC_INT16))
		return lower_fail(
			l, ENOTSUP,
			"tensor '%.80s' is %s; only int8%s uint8%s are compiled", t->name,
			npuc_type_name(t->type), wide ? "," : " and",
			wide ? " and int16" : "");
	if (!t->count)
		return lower_fail(l, ENOTSUP, "tensor '%.80s' is empty", t->name);
	if (!t->scales)
		return lower_fail(l, EINVAL, "tensor '%.80s' is not quantized", t->name);
	if (t->scales > 1)
		return lower_fail(l, ENOTSUP,
				  "tensor '%.80s' is quantized per channel; only weights "
				  "may be",
				  t->name);
	for (uint32_t i = 0; i < t->scales; i++) {
		float scale = npuc_tensor_scale(l->m, tensor, i);
		int32_t zero = npuc_tensor_zero_point(l->m, tensor, i);

		if (!(scale > 0) || !isfinite(scale))
			return lower_fail(l, EINVAL,
					  "tensor '%.80s': scale %g; it must be positive "
					  "and finite",
					  t->name, (double)scale);
		if (zero < quant_min(t->type) || zero > quant_max(t->type))
			return lower_fail(
				l, EINVAL,
				"tensor '%.80s': zero point %d is not a valid %s",
				t->name, zero, npuc_type_name(t->type));
		if (zero && t->type == NPUC_INT16)
			return lower_fail(
				l, EINVAL,
				"tensor '%.80s': zero point %d; it must be 0 for int16",
				t->name, zero);
	}
	return 0;
}

int lower_take(struct lowered *l, uint32_t number, uint32_t *tensor)
{
	const struct model_op *op = lower_op(l);

	if (number >= op->input_count || op->inputs[number] == NPUC_NONE)
		return lower_fail(l, EINVAL, "operand %u is missing", number);
	*tensor = op->inputs[number];
	return 0;
}

static int check_operand(struct lowered *l, uint32_t tensor, bool wide)
{
	int rc = check_quantized(l, tensor, wide);

	if (!rc && !l->values[tensor].ready)
		rc = lower_fail(l, EINVAL,
				"tensor '%.80s' is read before a layer has computed it",
				lower_t(l, tensor)->name);
	return rc;
}

int lower_tensor(struct lowered *l, uint32_t tensor)
{
	return check_operand(l, tensor, false);
}

static int take_operand(struct lowered *l, uint32_t number, bool wide, uint32_t *tensor)
{
	int rc = lower_take(l, number, tensor);

	return rc ? rc : check_operand(l, *tensor, wide);
}

int lower_operand(struct lowered *l, uint32_t number, uint32_t *tensor)
{
	return take_operand(l, number, false, tensor);
}

int lower_operand16(struct lowered *l, uint32_t number, uint32_t *tensor)
{
	return take_operand(l, number, true, tensor);
}

static int take_result(struct lowered *l, uint32_t *tensor)
{
	const struct model_op *op = lower_op(l);

	if (op->output_count != 1 || op->outputs[0] == NPUC_NONE)
		return lower_fail(l, EINVAL, "%u outputs; exactly 1", op->output_count);
	*tensor = op->outputs[0];
	if (l->values[*tensor].ready)
		return lower_fail(
			l, EINVAL,
			"tensor '%.80s' is constant, an input, or computed twice",
			lower_t(l, *tensor)->name);
	return 0;
}

int lower_result(struct lowered *l, uint32_t *tensor)
{
	int rc = take_result(l, tensor);

	return rc ? rc : check_quantized(l, *tensor, false);
}

int lower_result16(struct lowered *l, uint32_t *tensor)
{
	int rc = take_result(l, tensor);

	return rc ? rc : check_quantized(l, *tensor, true);
}

int lower_index_result(struct lowered *l, uint32_t *tensor)
{
	const struct npuc_tensor *t;
	int rc = take_result(l, tensor);

	if (rc)
		return rc;
	t = lower_t(l, *tensor);
	if (t->type != NPUC_INT32 && t->type != NPUC_INT64)
		return lower_fail(l, EINVAL, "tensor '%.80s' must be int32 or int64",
				  t->name);
	if (!t->count || l->m->tensors[*tensor].unusable)
		return lower_fail(l, ENOTSUP, "tensor '%.80s' %s", t->name,
				  t->count ? l->m->tensors[*tensor].unusable
					   : "is empty");
	return 0;
}

int lower_made(struct lowered *l, uint32_t value)
{
	uint8_t *bytes = lower_own(l, l->values[value].bytes);

	if (!bytes)
		return -ENOMEM;
	l->values[value].made = bytes;
	l->values[value].data = bytes;
	l->values[value].ready = true;
	return 0;
}

int64_t lower_number(const uint8_t *bytes, uint32_t width)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < width; i++)
		n |= (uint64_t)bytes[i] << 8 * i;
	return width == 4 ? (int32_t)(uint32_t)n : (int64_t)n;
}

int lower_ints(struct lowered *l, uint32_t number, bool optional, uint64_t count,
	       const int32_t **out, uint32_t *length)
{
	const struct model_op *op = lower_op(l);
	const struct npuc_tensor *t;
	const uint8_t *data;
	uint32_t tensor = 0, width;
	int32_t *copy;
	int rc;

	*out = NULL;
	if (optional && (number >= op->input_count || op->inputs[number] == NPUC_NONE))
		return 0;
	rc = lower_take(l, number, &tensor);
	if (rc)
		return rc;
	t = lower_t(l, tensor);
	data = l->values[tensor].data;
	width = npuc_type_bytes(t->type);
	if ((t->type != NPUC_INT32 && t->type != NPUC_INT64) ||
	    l->m->tensors[tensor].unusable)
		return lower_fail(l, ENOTSUP, "tensor '%.80s' must be int32 or int64",
				  t->name);
	if (!data && t->count)
		return lower_fail(l, ENOTSUP, "tensor '%.80s' must be constant", t->name);
	if (count && t->count != count)
		return lower_fail(l, EINVAL, "tensor '%.80s' has %llu elements, not %llu",
				  t->name, (unsigned long long)t->count,
				  (unsigned long long)count);
	copy = lower_own(l, t->count * sizeof(*copy));
	if (!copy)
		return -ENOMEM;
	for (uint64_t i = 0; i < t->count; i++) {
		int64_t n = lower_number(data + i * width, width);

		if (n < INT32_MIN || n > INT32_MAX)
			n = n < 0 ? INT32_MIN : INT32_MAX; /* "to the end", mostly */
		copy[i] = (int32_t)n;
	}
	*out = copy;
	if (length)
		*length = (uint32_t)t->count;
	return 0;
}

int lower_counts(struct lowered *l, uint32_t least, uint32_t most)
{
	uint32_t n = lower_op(l)->input_count;

	if (n >= least && n <= most)
		return 0;
	if (least == most)
		return lower_fail(l, EINVAL, "it has %u operand%s instead of %u", n,
				  n == 1 ? "" : "s", least);
	return lower_fail(l, EINVAL, "it has %u operand%s; it must have %u to %u", n,
			  n == 1 ? "" : "s", least, most);
}

int lower_same_type(struct lowered *l, uint32_t a, uint32_t b)
{
	const struct npuc_tensor *x = lower_t(l, a), *y = lower_t(l, b);

	if (x->type == y->type)
		return 0;
	return lower_fail(l, ENOTSUP, "tensor '%.80s' is %s, but tensor '%.80s' is %s",
			  x->name, npuc_type_name(x->type), y->name,
			  npuc_type_name(y->type));
}

int lower_same_quant(struct lowered *l, uint32_t a, uint32_t d)
{
	const struct npuc_tensor *x = lower_t(l, a), *y = lower_t(l, d);
	int rc = lower_same_type(l, a, d);

	if (rc)
		return rc;
	if (x->zero_point == y->zero_point && fabsf(x->scale - y->scale) <= 1e-6f)
		return 0;
	return lower_fail(l, ENOTSUP,
			  "tensors '%.80s' and '%.80s' must have the same scale and zero "
			  "point",
			  x->name, y->name);
}

static bool is_result(const struct lowered *l, uint32_t tensor)
{
	const struct model_op *op = lower_op(l);

	for (uint32_t i = 0; i < op->output_count; i++)
		if (op->outputs[i] == tensor)
			return !l->values[tensor].input;
	return false;
}

/* Give a result the computed sizes where the file leaves them open; false: some other
 * size differs, or the tensor is too large. */
static bool take_shape(struct lowered *l, uint32_t tensor, const uint32_t *dims)
{
	struct npuc_tensor *t = &l->tensors[tensor];
	uint64_t count = 1;

	if (!l->open[tensor] || !is_result(l, tensor))
		return false;
	for (uint32_t i = 0; i < t->rank; i++) {
		if ((uint32_t)t->dims[i] != dims[i] && !(l->open[tensor] >> i & 1))
			return false;
		count *= dims[i];
		if (dims[i] > INT32_MAX || count > INT32_MAX)
			return false;
	}
	for (uint32_t i = 0; i < t->rank; i++)
		t->dims[i] = (int32_t)dims[i];
	t->count = count;
	t->bytes = count * npuc_type_bytes(t->type);
	l->values[tensor].bytes = t->bytes;
	l->open[tensor] = 0;
	return true;
}

static bool has_dims(const struct npuc_tensor *t, uint32_t rank, const uint32_t *dims)
{
	bool same = t->rank == rank;

	for (uint32_t i = 0; same && i < rank; i++)
		same = (uint32_t)t->dims[i] == dims[i];
	return same;
}

int lower_open(struct lowered *l, uint32_t tensor, uint32_t rank, const uint32_t *dims)
{
	const struct npuc_tensor *t = lower_t(l, tensor);

	return t->rank == rank && !has_dims(t, rank, dims) && take_shape(l, tensor, dims)
		       ? -EAGAIN
		       : 0;
}

int lower_dims(struct lowered *l, uint32_t tensor, uint32_t rank, const uint32_t *dims)
{
	const struct npuc_tensor *t = lower_t(l, tensor);
	char is[80] = "", want[80] = "";
	int rc = lower_open(l, tensor, rank, dims);

	if (rc || has_dims(t, rank, dims))
		return rc;
	for (uint32_t i = 0; i < t->rank; i++)
		snprintf(is + strlen(is), sizeof(is) - strlen(is), "%s%d", i ? "x" : "",
			 t->dims[i]);
	for (uint32_t i = 0; i < rank; i++)
		snprintf(want + strlen(want), sizeof(want) - strlen(want), "%s%u",
			 i ? "x" : "", dims[i]);
	return lower_fail(l, EINVAL,
			  "tensor '%.80s' is %s, but its operands give it the shape %s",
			  t->name, is, want);
}

int lower_same_dims(struct lowered *l, uint32_t a, uint32_t d)
{
	const struct npuc_tensor *t = lower_t(l, a);
	uint32_t dims[NPUC_RANK] = {0};

	for (uint32_t i = 0; i < t->rank; i++)
		dims[i] = (uint32_t)t->dims[i];
	return lower_dims(l, d, t->rank, dims);
}

/* ---- options ---------------------------------------------------------------------- */

int32_t lower_option(struct lowered *l, uint32_t kind, uint32_t field, int32_t def)
{
	const struct model_op *op = lower_op(l);
	struct flat f = l->m->flat;

	return op->options_type == kind ? flat_i32(&f, op->options, field, def) : def;
}

uint32_t lower_option_u8(struct lowered *l, uint32_t kind, uint32_t field)
{
	const struct model_op *op = lower_op(l);
	struct flat f = l->m->flat;

	return op->options_type == kind ? flat_u8(&f, op->options, field, 0) : 0;
}

int lower_range(struct lowered *l, uint32_t act, uint32_t tensor, int32_t *min,
		int32_t *max)
{
	const struct npuc_tensor *t = lower_t(l, tensor);

	if (act > QUANT_ACT_RELU6 && act != QUANT_ACT_RELU_0_TO_1)
		return lower_fail(l, ENOTSUP, "fused activation %u is not supported",
				  act);
	if (!quant_range((enum quant_act)act, t->type, t->scale, t->zero_point, min, max))
		return lower_fail(l, EINVAL,
				  "tensor '%.80s': scale %g is too small for the fused "
				  "activation",
				  t->name, (double)t->scale);
	return 0;
}

/* ---- the whole model -------------------------------------------------------------- */

static int make_values(struct lowered *l)
{
	uint32_t count = l->m->tensor_count;
	int rc = 0;

	l->tensors = calloc((size_t)count + 1, sizeof(*l->tensors));
	l->open = calloc((size_t)count + 1, sizeof(*l->open));
	l->guessed = calloc((size_t)count + 1, sizeof(*l->guessed));
	if (!l->tensors || !l->open || !l->guessed)
		return npuc_fail(l->why, ENOMEM, "%s: out of memory", l->m->file);
	for (uint32_t i = 0; !rc && i < count; i++) {
		uint32_t v;

		l->tensors[i] = l->m->tensors[i].t;
		l->open[i] = l->m->tensors[i].open;
		rc = lower_value(l, lower_t(l, i)->bytes, lower_t(l, i)->data, &v);
	}
	return rc;
}

/* The tensor that the device has for a float32 one at the edge: what QUANTIZE makes of
 * it, or what DEQUANTIZE makes it of. */
static int across_edge(struct lowered *l, uint32_t tensor, bool input, uint32_t *device)
{
	uint32_t code = input ? NPUC_QUANTIZE : NPUC_DEQUANTIZE;
	uint32_t found = NPUC_NONE, uses = 0;

	for (uint32_t i = 0; i < l->m->op_count; i++) {
		const struct model_op *op = &l->m->ops[i];
		const uint32_t *near = input ? op->inputs : op->outputs;
		const uint32_t *far = input ? op->outputs : op->inputs;
		uint32_t n = input ? op->input_count : op->output_count;

		for (uint32_t k = 0; k < n && !l->host[i]; k++) {
			if (near[k] != tensor || op->code == NPUC_SHAPE ||
			    op->code == NPUC_RANK_OF)
				continue;
			uses++;
			if (op->code == code && op->input_count == 1 &&
			    op->output_count == 1)
				found = far[0];
		}
	}
	if (uses != 1 || found == NPUC_NONE)
		return npuc_fail(
			l->why, ENOTSUP, "%s: %s '%.80s' is float32; %s must be one %s",
			l->m->file, input ? "input" : "output", lower_t(l, tensor)->name,
			input ? "its only reader" : "the layer that computes it",
			input ? "QUANTIZE" : "DEQUANTIZE");
	*device = found;
	return 0;
}

/* t is what the device has for the tensor.  Whole numbers are results only. */
static int check_port(struct lowered *l, const struct npuc_tensor *t, uint32_t tensor,
		      bool input)
{
	const char *which = input ? "input" : "output";
	bool whole = !input && (t->type == NPUC_INT32 || t->type == NPUC_INT64);

	if (!whole && t->type != NPUC_INT8 && t->type != NPUC_UINT8 &&
	    t->type != NPUC_INT16)
		return npuc_fail(
			l->why, ENOTSUP,
			"%s: %s '%.80s' is %s; it must be int8, uint8, int16 or float32",
			l->m->file, which, t->name, npuc_type_name(t->type));
	if (!t->count || t->count != lower_t(l, tensor)->count)
		return npuc_fail(l->why, EINVAL, "%s: %s '%.80s' is empty", l->m->file,
				 which, t->name);
	if (!t->scales && t == lower_t(l, tensor))
		return 0; /* bytes that may only be moved */
	if (!whole && (t->scales != 1 || !(t->scale > 0) || !isfinite(t->scale)))
		return npuc_fail(l->why, EINVAL,
				 "%s: %s '%.80s' is not quantized per tensor", l->m->file,
				 which, t->name);
	return 0;
}

static int find_port(struct lowered *l, uint32_t tensor, bool input, uint32_t *device)
{
	const char *which = input ? "input" : "output";
	const struct npuc_tensor *t;
	struct value *v;
	int rc;

	t = lower_t(l, tensor);
	*device = tensor;
	if (t->type == NPUC_FLOAT32) {
		rc = across_edge(l, tensor, input, device);
		if (rc)
			return rc;
		t = lower_t(l, *device);
	}
	rc = check_port(l, t, tensor, input);
	if (rc)
		return rc;
	v = &l->values[*device];
	if (v->data)
		return npuc_fail(l->why, ENOTSUP, "%s: %s '%.80s' is a constant",
				 l->m->file, which, t->name);
	if (input)
		v->input = v->ready = true;
	return 0;
}

/* An output that is an input, too, is copied in the end. */
static int find_output(struct lowered *l, uint32_t number)
{
	uint32_t *tensor = &l->output_tensors[number], *value = &l->outputs[number];
	int rc = find_port(l, l->model_outputs[number], false, tensor);

	*value = *tensor;
	if (!rc && l->values[*tensor].input)
		rc = lower_value(l, l->values[*tensor].bytes, NULL, value);
	if (!rc)
		l->values[*value].output = true;
	return rc;
}

static int find_ports(struct lowered *l)
{
	int rc = 0;

	l->inputs = calloc((size_t)l->input_count + 1, sizeof(*l->inputs));
	l->outputs = calloc((size_t)l->output_count + 1, sizeof(*l->outputs));
	l->output_tensors = calloc((size_t)l->output_count + 1, sizeof(*l->outputs));
	if (!l->inputs || !l->outputs || !l->output_tensors)
		return npuc_fail(l->why, ENOMEM, "%s: out of memory", l->m->file);
	if (!l->input_count || !l->output_count || l->input_count > PORTS_MAX ||
	    l->output_count > PORTS_MAX)
		return npuc_fail(
			l->why, ENOTSUP,
			"%s: %u inputs and %u outputs; 1 to %u of each are supported",
			l->m->file, l->input_count, l->output_count, PORTS_MAX);
	for (uint32_t i = 0; !rc && i < l->input_count; i++) {
		rc = npuc_note(l, NPUC_NONE,
			       find_port(l, l->model_inputs[i], true, &l->inputs[i]));
		l->values[l->inputs[i]].ready = true;
	}
	for (uint32_t i = 0; !rc && i < l->output_count; i++)
		rc = npuc_note(l, NPUC_NONE, find_output(l, i));
	return rc;
}

/* A model that has nothing to do with 8 bits is told in one sentence. */
static int check_types(struct lowered *l)
{
	const struct npuc_model *m = l->m;
	enum npuc_type type = NPUC_FLOAT32;
	bool weights = false;
	const char *name;

	for (uint32_t i = 0; i < m->tensor_count; i++) {
		const struct npuc_tensor *t = lower_t(l, i);

		if (t->type != NPUC_INT8 && t->type != NPUC_UINT8 &&
		    t->type != NPUC_INT16)
			continue;
		if (!t->data)
			return 0;
		weights |= t->type == NPUC_INT8;
	}
	if (m->ops[0].output_count && m->ops[0].outputs[0] != NPUC_NONE)
		type = lower_t(l, m->ops[0].outputs[0])->type;
	name = type == NPUC_FLOAT32 ? "float" : npuc_type_name(type);
	l->other_types = true;
	return npuc_fail(l->why, ENOTSUP,
			 "%s: %s %s model%s: its activations are not int8, uint8 or "
			 "int16; convert it with full integer quantization",
			 m->file, name[0] == 'i' ? "an" : "a", name,
			 weights ? " with int8 weights" : "");
}

static int check_known(struct lowered *l)
{
	const struct model_op *op = lower_op(l);
	const struct known *known = find_operator(op->code);

	if (!known)
		return lower_fail(l, ENOTSUP, "this operator is not compiled");
	if (op->version < 1 || op->version > known->version)
		return lower_fail(
			l, ENOTSUP,
			"version %d of this operator; versions 1 to %d are supported",
			op->version, known->version);
	return 0;
}

static int lower_layer(struct lowered *l)
{
	bool folded = false;
	int rc;

	if (l->group[l->layer] != NPUC_NONE && !l->other_types)
		return lower_group(l);
	rc = l->other_types ? 0 : lower_form(l);
	if (!rc)
		rc = lower_fold(l, &folded);
	if (!rc && !folded)
		rc = check_known(l);
	if (!rc && !folded && !l->other_types)
		rc = find_operator(lower_op(l)->code)->lower(l);
	return rc;
}

/* Undo what lowering a layer has made of its results. */
static void forget_results(struct lowered *l)
{
	const struct model_op *op = lower_op(l);

	for (uint32_t i = 0; i < op->output_count; i++) {
		struct value *v;

		if (op->outputs[i] == NPUC_NONE || !is_result(l, op->outputs[i]) ||
		    lower_t(l, op->outputs[i])->data)
			continue;
		v = &l->values[op->outputs[i]];
		v->same = op->outputs[i];
		v->data = v->made = NULL;
		v->ready = false;
		v->pad.inner = NPUC_NONE;
	}
}

static bool reads_guess(const struct lowered *l)
{
	const struct model_op *op = lower_op(l);

	for (uint32_t i = 0; i < op->input_count; i++)
		if (op->inputs[i] != NPUC_NONE && l->guessed[op->inputs[i]])
			return true;
	return false;
}

/* Note why a layer is refused, unless that follows from sizes which an earlier refused
 * layer would have computed. */
static int note_layer(struct lowered *l, int rc, bool guess)
{
	if (l->layer == l->in_the_way || (l->report && guess && rc == -EINVAL))
		return 0;
	return npuc_note(l, l->layer, rc);
}

static int lower_one(struct lowered *l)
{
	const struct model_op *op = lower_op(l);
	uint32_t steps = l->step_count, variables = l->variable_count;
	bool guess = reads_guess(l);
	int rc;

	if (l->host[l->layer]) {
		snprintf(l->shapes[l->layer], sizeof(l->shapes[0]), "left to the host");
		return 0;
	}
	/* Each time around a result gets its shape, and keeps it. */
	while ((rc = lower_layer(l)) == -EAGAIN) {
		l->step_count = steps;
		l->variable_count = variables;
		forget_results(l);
	}
	for (uint32_t i = 0; i < op->output_count; i++)
		if (op->outputs[i] != NPUC_NONE)
			l->guessed[op->outputs[i]] =
				(rc || guess) && l->open[op->outputs[i]];
	if (!rc)
		return 0;
	rc = note_layer(l, rc, guess);
	/* With a report: that what comes behind lacks its operand is no news. */
	l->step_count = steps;
	for (uint32_t i = 0; i < op->output_count; i++)
		if (op->outputs[i] != NPUC_NONE)
			l->values[op->outputs[i]].ready = true;
	return rc;
}

static int finish_outputs(struct lowered *l)
{
	int rc = 0;

	l->layer = l->m->op_count - 1;
	for (uint32_t i = 0; !rc && i < l->output_count; i++) {
		uint32_t tensor = l->output_tensors[i];

		if (!l->values[tensor].ready)
			rc = npuc_note(l, NPUC_NONE,
				       npuc_fail(l->why, EINVAL,
						 "%s: no layer computes output '%.80s'",
						 l->m->file, lower_t(l, tensor)->name));
		else if (l->outputs[i] != tensor)
			rc = lower_alias(l, tensor, l->outputs[i]);
	}
	return rc;
}

int npuc_lower(const struct npuc_model *m, enum npuc_reference reference,
	       struct npuc_report *report, struct lowered *l, char why[NPUC_WHY])
{
	int rc;

	*l = (struct lowered){
		.m = m, .reference = reference, .why = why, .report = report};
	if (!m->op_count)
		return npuc_fail(why, ENOTSUP, "%s: the model has no operators", m->file);
	l->shapes = calloc((size_t)m->op_count + 1, sizeof(*l->shapes));
	l->macs = calloc((size_t)m->op_count + 1, sizeof(*l->macs));
	if (!l->shapes || !l->macs)
		return npuc_fail(why, ENOMEM, "%s: out of memory", m->file);
	rc = make_values(l);
	if (!rc)
		rc = lower_find_groups(l);
	if (!rc)
		rc = lower_host(l);
	if (!rc)
		rc = npuc_note(l, NPUC_NONE, check_types(l));
	if (!rc && !l->other_types)
		rc = find_ports(l);
	for (l->layer = 0; !rc && l->layer < m->op_count; l->layer++)
		rc = lower_one(l);
	return rc || l->other_types ? rc : finish_outputs(l);
}

void npuc_lowered_free(struct lowered *l)
{
	for (uint32_t i = 0; i < l->owned_count; i++)
		free(l->owned[i]);
	free(l->owned);
	free(l->steps);
	free(l->values);
	free(l->tensors);
	free(l->open);
	free(l->guessed);
	free(l->shapes);
	free(l->macs);
	free(l->group);
	free(l->grouped);
	free(l->host);
	free(l->model_inputs);
	free(l->model_outputs);
	free(l->inputs);
	free(l->outputs);
	free(l->output_tensors);
	*l = (struct lowered){0};
}
