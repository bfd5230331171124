/* SPDX-License-Identifier: Apache-2.0 */
/* lower_host.c - what only the host can compute: the network ends before it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lower.h"

/* Of a tensor. */
enum {
	INPUT = 1, /* of the model */
	MADE_BY_HOST = 2,
	READ_BY_HOST = 4,
	READ_BY_DEVICE = 8,
	OUTPUT = 16, /* of the program */
};

static bool is_float(enum npuc_type type)
{
	return type == NPUC_FLOAT32 || type == NPUC_FLOAT16 || type == NPUC_FLOAT64 ||
	       type == NPUC_BFLOAT16;
}

static bool is_activation(const struct lowered *l, uint32_t tensor)
{
	return tensor != NPUC_NONE && !lower_t(l, tensor)->data;
}

static bool any_float(const struct lowered *l, const uint32_t *tensors, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (is_activation(l, tensors[i]) &&
		    is_float(lower_t(l, tensors[i])->type))
			return true;
	return false;
}

static bool any(const struct model_op *op, const uint8_t *of, uint8_t flag)
{
	for (uint32_t i = 0; i < op->input_count; i++)
		if (op->inputs[i] != NPUC_NONE && (of[op->inputs[i]] & flag))
			return true;
	return false;
}

/* Quantizing an input of the model is done at the edge of a program, and so is
 * dequantizing. */
static bool only_host(const struct lowered *l, const struct model_op *op,
		      const uint8_t *of)
{
	if (op->code == NPUC_CUSTOM)
		return true;
	if (op->code == NPUC_SHAPE || op->code == NPUC_RANK_OF)
		return false; /* of whatever tensor */
	if (op->code == NPUC_QUANTIZE && any(op, of, INPUT))
		return false;
	if (op->code == NPUC_DEQUANTIZE && op->input_count &&
	    !is_activation(l, op->inputs[0]))
		return true;
	if (any_float(l, op->inputs, op->input_count))
		return true;
	return op->code != NPUC_DEQUANTIZE && any_float(l, op->outputs, op->output_count);
}

/* Would the machine miss it?  What only moves or converts it would not. */
static bool is_work(const struct lowered *l, const struct model_op *op)
{
	return lower_knows(op->code) && op->code != NPUC_QUANTIZE &&
	       op->code != NPUC_DEQUANTIZE && op->code != NPUC_RESHAPE &&
	       op->code != NPUC_SQUEEZE && op->code != NPUC_EXPAND_DIMS &&
	       !any_float(l, op->inputs, op->input_count) &&
	       !any_float(l, op->outputs, op->output_count);
}

static void set(uint8_t *of, const uint32_t *tensors, uint32_t count, uint8_t flag)
{
	for (uint32_t i = 0; i < count; i++)
		if (tensors[i] != NPUC_NONE)
			of[tensors[i]] |= flag;
}

/* Marks what only the host can do and all behind it.  *count of them; *behind: the first
 * layer of the machine's among those, which makes leaving them impossible. */
static void mark(struct lowered *l, uint8_t *of, uint32_t *count, uint32_t *behind)
{
	*count = 0;
	*behind = NPUC_NONE;

	for (uint32_t i = 0; i < l->m->op_count; i++) {
		const struct model_op *op = &l->m->ops[i];
		bool only = l->group[i] == NPUC_NONE && only_host(l, op, of);

		l->host[i] = only || any(op, of, MADE_BY_HOST);
		if (l->host[i] && !only && is_work(l, op)) {
			*behind = i;
			return;
		}
		set(of, op->inputs, op->input_count,
		    l->host[i] ? READ_BY_HOST : READ_BY_DEVICE);
		if (l->host[i])
			set(of, op->outputs, op->output_count, MADE_BY_HOST);
		*count += l->host[i];
	}
}

static void add_output(struct lowered *l, uint32_t tensor, uint8_t *of)
{
	if (of[tensor] & OUTPUT)
		return;
	of[tensor] |= OUTPUT;
	l->model_outputs[l->output_count++] = tensor;
}

/* Instead of what the host makes, what it reads.  Inputs that nobody else reads are none
 * of the program's. */
static void move_ports(struct lowered *l, uint8_t *of)
{
	const struct npuc_model *m = l->m;

	l->input_count = l->output_count = 0;
	for (uint32_t i = 0; i < m->input_count; i++)
		if (of[m->inputs[i]] & READ_BY_DEVICE ||
		    !(of[m->inputs[i]] & READ_BY_HOST))
			l->model_inputs[l->input_count++] = m->inputs[i];
	for (uint32_t i = 0; i < m->output_count; i++)
		if (!(of[m->outputs[i]] & MADE_BY_HOST))
			add_output(l, m->outputs[i], of);
	for (uint32_t i = 0; i < m->op_count; i++)
		for (uint32_t k = 0; l->host[i] && k < m->ops[i].input_count; k++) {
			uint32_t t = m->ops[i].inputs[k];

			if (is_activation(l, t) && !(of[t] & (MADE_BY_HOST | INPUT)))
				add_output(l, t, of);
		}
}

static uint32_t first_of_host(const struct lowered *l)
{
	uint32_t first = 0;

	while (!l->host[first])
		first++;
	return first;
}

static void describe(struct lowered *l, uint32_t count)
{
	char name[NPUC_OPERATOR_NAME], more[64] = "";
	uint32_t first = first_of_host(l);

	lower_operator_name(&l->m->ops[first], name);
	if (count > 1)
		snprintf(more, sizeof(more), " and %u of the layers after it", count - 1);
	snprintf(l->host_text, sizeof(l->host_text),
		 "the network ends before layer %u (%s): that%s only the host can "
		 "compute, from these outputs",
		 first, name, more);
}

static int all_named(const struct lowered *l, const uint32_t *tensors, uint32_t count,
		     const char *which)
{
	for (uint32_t i = 0; i < count; i++)
		if (tensors[i] == NPUC_NONE)
			return npuc_fail(l->why, EINVAL,
					 "%s: an %s of the model refers to no tensor",
					 l->m->file, which);
	return 0;
}

int lower_host(struct lowered *l)
{
	const struct npuc_model *m = l->m;
	uint8_t *of = calloc((size_t)m->tensor_count + 1, sizeof(*of));
	size_t outputs = (size_t)m->output_count + m->tensor_count + 1;
	uint32_t count, behind;
	int rc;

	l->host = calloc((size_t)m->op_count + 1, sizeof(*l->host));
	l->model_inputs = calloc((size_t)m->input_count + 1, sizeof(uint32_t));
	l->model_outputs = calloc(outputs, sizeof(uint32_t));
	l->in_the_way = NPUC_NONE;
	if (!of || !l->host || !l->model_inputs || !l->model_outputs) {
		free(of);
		return npuc_fail(l->why, ENOMEM, "%s: out of memory", m->file);
	}
	rc = all_named(l, m->inputs, m->input_count, "input");
	if (!rc)
		rc = all_named(l, m->outputs, m->output_count, "output");
	if (rc) {
		free(of);
		return rc;
	}
	l->input_count = m->input_count;
	l->output_count = m->output_count;
	memcpy(l->model_inputs, m->inputs, m->input_count * sizeof(uint32_t));
	memcpy(l->model_outputs, m->outputs, m->output_count * sizeof(uint32_t));
	set(of, m->inputs, m->input_count, INPUT);
	mark(l, of, &count, &behind);
	if (behind == NPUC_NONE && count && count < m->op_count) {
		move_ports(l, of);
		describe(l, count);
		free(of);
		return 0;
	}
	if (behind != NPUC_NONE) {
		l->layer = l->in_the_way = first_of_host(l);
		rc = lower_fail(l, ENOTSUP,
				"only the host can compute this layer, but layer %u, "
				"which depends on it, is for the device",
				behind);
		rc = npuc_note(l, l->layer, rc);
	}
	memset(l->host, 0, m->op_count * sizeof(*l->host));
	free(of);
	return rc;
}
