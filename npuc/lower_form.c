/* SPDX-License-Identifier: Apache-2.0 */
/* lower_form.c - what TensorFlow Lite asks of an operator's lists and options before it
 * looks at their numbers.  A file that has them otherwise does not say what it means. */
#include <errno.h>

#include "lower.h"

#define ANY_RANK NPUC_NONE

/* A list of whole numbers which is an operand: its dimensions; int64 taken beside int32.
 */
static const struct list {
	uint32_t code, operand, rank;
	bool wide;
} lists[] = {
	{NPUC_RESIZE_BILINEAR, 1, 1, false},
	{NPUC_RESIZE_NEAREST_NEIGHBOR, 1, 1, false},
	{NPUC_PAD, 1, 2, true},
	{NPUC_PADV2, 1, 2, true},
	{NPUC_MIRROR_PAD, 1, 2, true},
	{NPUC_BATCH_TO_SPACE_ND, 1, 1, false},
	{NPUC_BATCH_TO_SPACE_ND, 2, 2, false},
	{NPUC_SPACE_TO_BATCH_ND, 1, 1, false},
	{NPUC_SPACE_TO_BATCH_ND, 2, 2, false},
	{NPUC_TRANSPOSE, 1, 1, false},
	{NPUC_REVERSE_V2, 1, 1, false},
	{NPUC_BROADCAST_TO, 1, 1, true},
	{NPUC_MEAN, 1, ANY_RANK, false},
	{NPUC_SUM, 1, ANY_RANK, false},
	{NPUC_REDUCE_PROD, 1, ANY_RANK, false},
	{NPUC_REDUCE_MAX, 1, ANY_RANK, false},
	{NPUC_REDUCE_MIN, 1, ANY_RANK, false},
	{NPUC_SLICE, 1, 1, true},
	{NPUC_SLICE, 2, 1, true},
	{NPUC_STRIDED_SLICE, 1, 1, false},
	{NPUC_STRIDED_SLICE, 2, 1, false},
	{NPUC_STRIDED_SLICE, 3, 1, false},
	{NPUC_SPLIT, 0, ANY_RANK, false},
	{NPUC_SPLIT_V, 1, 1, true},
	{NPUC_SPLIT_V, 2, ANY_RANK, false},
	{NPUC_TRANSPOSE_CONV, 0, 1, false},
	{NPUC_DEPTHWISE_CONV_2D, 2, 1, true},
	{NPUC_FILL, 0, 1, true},
	{NPUC_RANGE, 0, 0, true},
	{NPUC_RANGE, 1, 0, true},
	{NPUC_RANGE, 2, 0, true},
};

/* Options that repeat what the file says elsewhere: how many operands or results there
 * are, or the type of the result. */
static const struct repeated {
	uint32_t code, options, field;
	enum { OPERANDS, RESULTS, RESULT_TYPE } what;
	const char *name;
} repeated[] = {
	{NPUC_SPLIT, 35, 0, RESULTS, "num_splits"},
	{NPUC_SPLIT_V, 79, 0, RESULTS, "num_splits"},
	{NPUC_UNPACK, 64, 0, RESULTS, "num"},
	{NPUC_PACK, 59, 0, OPERANDS, "values_count"},
	{NPUC_ARG_MAX, 40, 0, RESULT_TYPE, "output_type"},
	{NPUC_ARG_MIN, 57, 0, RESULT_TYPE, "output_type"},
	{NPUC_SHAPE, 55, 0, RESULT_TYPE, "out_type"},
};

static int check_list(struct lowered *l, const struct list *list)
{
	const struct model_op *op = lower_op(l);
	const struct npuc_tensor *t;

	if (list->operand >= op->input_count || op->inputs[list->operand] == NPUC_NONE)
		return 0;
	t = lower_t(l, op->inputs[list->operand]);
	if (t->type != NPUC_INT32 && !(list->wide && t->type == NPUC_INT64))
		return lower_fail(l, ENOTSUP, "tensor '%.80s' is %s; it must be int32%s",
				  t->name, npuc_type_name(t->type),
				  list->wide ? " or int64" : "");
	if (list->rank != ANY_RANK && t->rank != list->rank)
		return lower_fail(l, EINVAL,
				  "tensor '%.80s' has %u dimensions instead of %u",
				  t->name, t->rank, list->rank);
	if (list->rank == 2 && t->dims[1] != 2)
		return lower_fail(l, EINVAL,
				  "tensor '%.80s' is %dx%d; it must be %dx2, a pair for "
				  "each dimension",
				  t->name, t->dims[0], t->dims[1],
				  (int32_t)(t->count / 2));
	return 0;
}

static int check_repeated(struct lowered *l, const struct repeated *r)
{
	const struct model_op *op = lower_op(l);
	uint32_t given, is;

	if (r->what == RESULT_TYPE) {
		if (op->output_count != 1 || op->outputs[0] == NPUC_NONE)
			return 0;
		is = (uint32_t)lower_t(l, op->outputs[0])->type;
		given = lower_option_u8(l, r->options, r->field);
		if (given == is)
			return 0;
		return lower_fail(l, EINVAL, "option %s is %s, but the result is %s",
				  r->name, npuc_type_name((enum npuc_type)given),
				  npuc_type_name((enum npuc_type)is));
	}
	is = r->what == RESULTS ? op->output_count : op->input_count;
	given = (uint32_t)lower_option(l, r->options, r->field, 0);
	if (given == is)
		return 0;
	return lower_fail(l, EINVAL, "option %s is %d, but the number of %s is %u",
			  r->name, (int32_t)given,
			  r->what == RESULTS ? "results" : "operands", is);
}

/* No operator works in place. */
static int check_apart(struct lowered *l)
{
	const struct model_op *op = lower_op(l);

	for (uint32_t i = 0; i < op->input_count; i++)
		for (uint32_t k = 0; k < op->output_count; k++)
			if (op->inputs[i] == op->outputs[k] && op->inputs[i] != NPUC_NONE)
				return lower_fail(
					l, EINVAL,
					"tensor '%.80s' is both operand %u and result %u",
					lower_t(l, op->inputs[i])->name, i, k);
	return 0;
}

/* A row is the last dimension. */
static int check_rows(struct lowered *l)
{
	const struct model_op *op = lower_op(l);

	if ((op->code != NPUC_SOFTMAX && op->code != NPUC_LOG_SOFTMAX) ||
	    !op->input_count || op->inputs[0] == NPUC_NONE ||
	    lower_t(l, op->inputs[0])->rank)
		return 0;
	return lower_fail(l, EINVAL, "tensor '%.80s' has no dimensions",
			  lower_t(l, op->inputs[0])->name);
}

int lower_form(struct lowered *l)
{
	uint32_t code = lower_op(l)->code;
	int rc = check_apart(l);

	if (!rc)
		rc = check_rows(l);

	for (size_t i = 0; !rc && i < sizeof(lists) / sizeof(lists[0]); i++)
		if (lists[i].code == code)
			rc = check_list(l, &lists[i]);
	for (size_t i = 0; !rc && i < sizeof(repeated) / sizeof(repeated[0]); i++)
		if (repeated[i].code == code)
			rc = check_repeated(l, &repeated[i]);
	return rc;
}
