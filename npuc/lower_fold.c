/* SPDX-License-Identifier: Apache-2.0 */
/* lower_fold.c - whole numbers that are known when a model is compiled. */
#include "lower_fold.h"

#include <errno.h>
#include <string.h>

#include "lower_move.h"

/* Kinds of union BuiltinOptions, and fields of their tables. */
enum {
	OPTIONS_NONE = 0,
	OPTIONS_ADD = 11,
	OPTIONS_MUL = 21,
	OPTIONS_REDUCER = 27,
	REDUCER_KEEP_DIMS = 0,
	OPTIONS_SUB = 28,
	OPTIONS_DIV = 29,
	FUSED_ACT = 0,
};

#define NUMBERS_MAX 65536u /* of one tensor */

/* Operands, of which there are three at most, and the result; numbers as int64. */
struct fold {
	uint32_t count, d;
	const struct npuc_tensor *t[3], *to;
	const int64_t *in[3];
	int64_t *out;
	uint32_t code;
};

static bool is_whole(const struct npuc_tensor *t)
{
	return (t->type == NPUC_INT32 || t->type == NPUC_INT64) &&
	       t->count <= NUMBERS_MAX;
}

/* ---- operators -------------------------------------------------------------------- */

static int64_t floor_div(int64_t a, int64_t b)
{
	return a / b - (a % b && (a < 0) != (b < 0));
}

/* False: there is no such number. */
static bool compute(uint32_t code, int64_t a, int64_t b, int64_t *out)
{
	bool divides = b && !(b == -1 && a == INT64_MIN);

	switch (code) {
	case NPUC_ADD:
	case NPUC_SUM:
		return !__builtin_add_overflow(a, b, out);
	case NPUC_SUB:
		return !__builtin_sub_overflow(a, b, out);
	case NPUC_MUL:
	case NPUC_REDUCE_PROD:
		return !__builtin_mul_overflow(a, b, out);
	case NPUC_DIV:
		*out = divides ? a / b : 0;
		return divides;
	case NPUC_FLOOR_DIV:
		*out = divides ? floor_div(a, b) : 0;
		return divides;
	case NPUC_FLOOR_MOD:
		*out = divides ? a - floor_div(a, b) * b : 0;
		return divides;
	case NPUC_MAXIMUM:
		*out = a > b ? a : b;
		return true;
	case NPUC_MINIMUM:
		*out = a < b ? a : b;
		return true;
	default:
		return false;
	}
}

static int no_number(struct lowered *l, int64_t a, int64_t b)
{
	return lower_fail(l, EINVAL, "the operation on %lld and %lld has no valid result",
			  (long long)a, (long long)b);
}

/* Which element of t belongs to element number i of the result. */
static uint64_t element_for(const struct npuc_tensor *t, const struct npuc_tensor *to,
			    uint64_t i)
{
	uint64_t at = 0, step = 1;

	for (uint32_t k = 0; k < to->rank; k++) {
		uint32_t size = (uint32_t)to->dims[to->rank - 1 - k];
		uint64_t index = i % size;

		i /= size;
		if (k >= t->rank)
			continue;
		if (t->dims[t->rank - 1 - k] > 1)
			at += index * step;
		step *= (uint32_t)t->dims[t->rank - 1 - k];
	}
	return at;
}

static int fold_pair(struct lowered *l, struct fold *f)
{
	const struct npuc_tensor *x = f->t[0], *y = f->t[1];
	uint32_t rank = x->rank > y->rank ? x->rank : y->rank, dims[NPUC_RANK];
	int rc;

	for (uint32_t k = 0; k < rank; k++) {
		int32_t n = k < x->rank ? x->dims[x->rank - 1 - k] : 1;
		int32_t m = k < y->rank ? y->dims[y->rank - 1 - k] : 1;

		if (n != m && n != 1 && m != 1)
			return lower_fail(l, EINVAL,
					  "the shapes do not broadcast: sizes %d and %d",
					  n, m);
		dims[rank - 1 - k] = (uint32_t)(n == 1 ? m : n);
	}
	rc = lower_dims(l, f->d, rank, dims);
	for (uint64_t i = 0; !rc && i < f->to->count; i++) {
		int64_t a = f->in[0][element_for(x, f->to, i)];
		int64_t b = f->in[1][element_for(y, f->to, i)];

		if (!compute(f->code, a, b, &f->out[i]))
			rc = no_number(l, a, b);
	}
	return rc;
}

static int fold_cast(struct lowered *l, struct fold *f)
{
	int rc = lower_same_dims(l, lower_op(l)->inputs[0], f->d);

	if (!rc)
		memcpy(f->out, f->in[0], f->to->count * sizeof(*f->out));
	return rc;
}

static int fold_fill(struct lowered *l, struct fold *f)
{
	uint32_t dims[NPUC_RANK];

	if (f->t[0]->count > NPUC_RANK || f->t[1]->rank)
		return lower_fail(l, EINVAL,
				  "a shape of %llu dimensions or a value of %u "
				  "dimensions is not supported",
				  (unsigned long long)f->t[0]->count, f->t[1]->rank);
	for (uint32_t i = 0; i < f->t[0]->count; i++)
		dims[i] = (uint32_t)f->in[0][i];
	for (uint64_t i = 0; i < f->to->count; i++)
		f->out[i] = f->in[1][0];
	return lower_dims(l, f->d, (uint32_t)f->t[0]->count, dims);
}

static int fold_range(struct lowered *l, struct fold *f)
{
	int64_t at, limit, delta, n = 0;

	for (uint32_t i = 0; i < 3; i++)
		if (f->t[i]->count != 1)
			return lower_fail(l, EINVAL,
					  "operand %u has %llu elements instead of 1", i,
					  (unsigned long long)f->t[i]->count);
	at = f->in[0][0];
	limit = f->in[1][0];
	delta = f->in[2][0];
	if (!delta)
		return lower_fail(l, EINVAL, "a range has a step of 0");
	for (; n < NUMBERS_MAX && (delta > 0 ? at < limit : at > limit); n++) {
		if (n < (int64_t)f->to->count)
			f->out[n] = at;
		if (__builtin_add_overflow(at, delta, &at))
			return no_number(l, at, delta);
	}
	return lower_dims(l, f->d, 1, (uint32_t[]){(uint32_t)n});
}

static int fold_reduce(struct lowered *l, struct fold *f)
{
	bool keep = lower_option_u8(l, OPTIONS_REDUCER, REDUCER_KEEP_DIMS);
	const struct npuc_tensor *x = f->t[0];
	struct npuc_tensor kept = *x;
	uint32_t dims[NPUC_RANK], rank = 0, mask = 0;
	int rc;

	for (uint64_t i = 0; i < f->t[1]->count; i++) {
		int64_t axis = f->in[1][i];

		if (axis < -(int64_t)x->rank || axis >= (int64_t)x->rank)
			return lower_fail(l, EINVAL,
					  "axis %lld does not exist in %u dimensions",
					  (long long)axis, x->rank);
		mask |= 1u << (axis < 0 ? axis + x->rank : axis);
	}
	for (uint32_t i = 0; i < x->rank; i++) {
		kept.dims[i] = mask >> i & 1 ? 1 : x->dims[i];
		if (keep || !(mask >> i & 1))
			dims[rank++] = (uint32_t)kept.dims[i];
	}
	rc = lower_dims(l, f->d, rank, dims);
	for (uint64_t i = 0; !rc && i < f->to->count; i++)
		f->out[i] = f->code == NPUC_REDUCE_PROD;
	for (uint64_t i = 0; !rc && i < x->count; i++) {
		int64_t *out = &f->out[element_for(&kept, x, i)], a = *out;

		if (!compute(f->code, a, f->in[0][i], out))
			rc = no_number(l, a, f->in[0][i]);
	}
	return rc;
}

/* options: where a fused activation would be. */
static const struct folder {
	uint32_t code, operands, options;
	int (*fold)(struct lowered *l, struct fold *f);
} folders[] = {
	{NPUC_ADD, 2, OPTIONS_ADD, fold_pair},
	{NPUC_MUL, 2, OPTIONS_MUL, fold_pair},
	{NPUC_SUB, 2, OPTIONS_SUB, fold_pair},
	{NPUC_DIV, 2, OPTIONS_DIV, fold_pair},
	{NPUC_CAST, 1, OPTIONS_NONE, fold_cast},
	{NPUC_MAXIMUM, 2, OPTIONS_NONE, fold_pair},
	{NPUC_MINIMUM, 2, OPTIONS_NONE, fold_pair},
	{NPUC_SUM, 2, OPTIONS_NONE, fold_reduce},
	{NPUC_REDUCE_PROD, 2, OPTIONS_NONE, fold_reduce},
	{NPUC_FLOOR_DIV, 2, OPTIONS_NONE, fold_pair},
	{NPUC_FILL, 2, OPTIONS_NONE, fold_fill},
	{NPUC_FLOOR_MOD, 2, OPTIONS_NONE, fold_pair},
	{NPUC_RANGE, 3, OPTIONS_NONE, fold_range},
};

/* ---- constants in and out --------------------------------------------------------- */

static const struct folder *find_folder(const struct lowered *l)
{
	const struct model_op *op = lower_op(l);

	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
		if (folders[i].code == op->code)
			return op->input_count == folders[i].operands ? &folders[i]
								      : NULL;
	return NULL;
}

static int64_t *read_numbers(struct lowered *l, uint32_t tensor)
{
	const struct npuc_tensor *t = lower_t(l, tensor);
	const uint8_t *from = l->values[tensor].data;
	uint32_t width = npuc_type_bytes(t->type);
	int64_t *numbers = lower_own(l, t->count * sizeof(*numbers));

	for (uint64_t i = 0; numbers && i < t->count; i++)
		numbers[i] = lower_number(from + i * width, width);
	return numbers;
}

/* The result is a constant of these numbers; an output of the model is copied from one.
 */
static int write_numbers(struct lowered *l, uint32_t d, const int64_t *numbers)
{
	const struct npuc_tensor *t = lower_t(l, d);
	uint32_t width = npuc_type_bytes(t->type), v = d;
	int rc = 0;

	if (l->values[d].ready)
		return lower_fail(
			l, EINVAL,
			"tensor '%.80s' is constant, an input, or computed twice",
			t->name);
	if (l->values[d].output)
		rc = lower_value(l, l->values[d].bytes, NULL, &v);
	if (!rc)
		rc = lower_made(l, v);
	for (uint64_t i = 0; !rc && i < t->count; i++) {
		if (width == 4 && (numbers[i] < INT32_MIN || numbers[i] > INT32_MAX))
			return lower_fail(l, EINVAL, "%lld does not fit into int32",
					  (long long)numbers[i]);
		for (uint32_t k = 0; k < width; k++)
			l->values[v].made[i * width + k] =
				(uint8_t)((uint64_t)numbers[i] >> 8 * k);
	}
	return rc || v == d ? rc : lower_alias(l, v, d);
}

int lower_fold(struct lowered *l, bool *folded)
{
	const struct folder *folder = find_folder(l);
	const struct model_op *op = lower_op(l);
	struct fold f = {.count = op->input_count, .code = op->code};
	int rc;

	if (!folder || op->output_count != 1 || op->outputs[0] == NPUC_NONE ||
	    (folder->options && lower_option_u8(l, folder->options, FUSED_ACT)))
		return 0;
	f.d = op->outputs[0];
	f.to = lower_t(l, f.d);
	if (!is_whole(f.to))
		return 0;
	for (uint32_t i = 0; i < f.count; i++) {
		uint32_t tensor = op->inputs[i];

		if (tensor == NPUC_NONE || !l->values[tensor].data ||
		    l->m->tensors[tensor].unusable || !is_whole(lower_t(l, tensor)))
			return 0;
		f.t[i] = lower_t(l, tensor);
	}
	/* All have one type; of CAST any, and axes and FILL's sizes have their own. */
	for (uint32_t i = 0; i < f.count && op->code != NPUC_CAST; i++) {
		bool number = i == (op->code == NPUC_FILL) ||
			      (i && folder->fold != fold_reduce && op->code != NPUC_FILL);

		rc = number ? lower_same_type(l, op->inputs[i], f.d) : 0;
		if (rc)
			return rc;
	}
	for (uint32_t i = 0; i < f.count; i++) {
		f.in[i] = read_numbers(l, op->inputs[i]);
		if (!f.in[i])
			return -ENOMEM;
	}
	f.out = lower_own(l, f.to->count * sizeof(*f.out));
	if (!f.out)
		return -ENOMEM;
	rc = folder->fold(l, &f);
	if (!rc)
		rc = write_numbers(l, f.d, f.out);
	if (!rc)
		lower_describe(l, op->inputs[0], f.d);
	*folded = !rc;
	return rc;
}

int lower_constants(struct lowered *l)
{
	return lower_fail(
		l, ENOTSUP,
		"compiled only where all operands are int32 or int64 constants");
}

int lower_filled(struct lowered *l)
{
	const struct npuc_tensor *t;
	uint32_t v = 0, d = 0, count = 0, dims[NPUC_RANK];
	const int32_t *given = NULL;
	int rc = lower_counts(l, 2, 2);

	if (!rc)
		rc = lower_moved(l, 1, &v);
	if (rc)
		return rc;
	t = lower_t(l, v);
	if ((t->type != NPUC_INT8 && t->type != NPUC_INT16) || !l->values[v].data)
		return lower_fail(
			l, ENOTSUP,
			"compiled only where the value '%.80s' is a constant of "
			"int8, int16, int32 or int64",
			t->name);
	rc = lower_ints(l, 0, false, 0, &given, &count);
	if (!rc && (count > NPUC_RANK || t->rank))
		rc = lower_fail(l, EINVAL,
				"a shape of %u dimensions or a value of %u dimensions is "
				"not supported",
				count, t->rank);
	if (!rc)
		rc = lower_moved_result(l, 0, v, &d);
	if (!rc)
		rc = move_same_quant(l, v, d);
	if (rc)
		return rc;
	for (uint32_t i = 0; i < count; i++)
		dims[i] = (uint32_t)given[i];
	rc = lower_dims(l, d, count, dims);
	if (rc)
		return rc;
	lower_describe(l, v, d);
	return lower_fill(l, d, npuc_type_bytes(t->type),
			  quant_number(l->values[v].data, t->type));
}

int lower_shape(struct lowered *l)
{
	const struct model_op *op = lower_op(l);
	bool rank = op->code == NPUC_RANK_OF;
	int64_t numbers[NPUC_RANK + 1] = {0};
	const struct npuc_tensor *t;
	uint32_t a, d, dims[1];
	int rc = lower_counts(l, 1, 1);

	if (!rc)
		rc = lower_take(l, 0, &a);
	if (rc)
		return rc;
	if (op->output_count != 1 || op->outputs[0] == NPUC_NONE ||
	    !is_whole(lower_t(l, op->outputs[0])))
		return lower_fail(l, EINVAL, "it must have one output of int32 or int64");
	d = op->outputs[0];
	t = lower_t(l, a);
	numbers[0] = t->rank;
	for (uint32_t i = 0; !rank && i < t->rank; i++)
		numbers[i] = t->dims[i];
	dims[0] = t->rank;
	rc = lower_dims(l, d, rank ? 0 : 1, dims);
	if (!rc)
		rc = write_numbers(l, d, numbers);
	if (!rc)
		lower_describe(l, a, d);
	return rc;
}
