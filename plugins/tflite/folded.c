/* SPDX-License-Identifier: Apache-2.0 */
/*
 * folded.c - nodes that compute shapes: SHAPE, and what follows from it and constants.
 *
 * A graph with an open batch has such nodes before each RESHAPE.  The delegate takes them
 * with the nodes that read them, and npuc computes their whole numbers when it compiles
 * the partition: for the shapes of the file first, and anew after a resize.
 */
#include <errno.h>
#include <stdlib.h>

#include "plug.h"

#define MADE_HERE  1 /* by a node that the device takes */
#define READ_HERE  2
#define READ_THERE 4 /* by a node that stays on the CPU */

static bool valid(const struct tfl_context *ctx, int tensor)
{
	return tensor >= 0 && (size_t)tensor < ctx->tensors_size;
}

bool folded_read(const struct claims *c, const struct node *n)
{
	for (int i = 0; i < n->item.inputs->size; i++)
		if (n->item.inputs->data[i] >= 0 && c->folded[n->item.inputs->data[i]])
			return true;
	return false;
}

void folded_note(struct claims *c, const struct tfl_context *ctx, struct node *n)
{
	n->folded = item_measures(&n->item) || folded_read(c, n);
	for (int i = 0; i < n->item.inputs->size && !item_measures(&n->item); i++) {
		int t = n->item.inputs->data[i];

		if (valid(ctx, t) && !c->folded[t] && !tensor_constant(&ctx->tensors[t]))
			n->folded = false;
	}
}

static void mark(uint8_t *marks, const struct tfl_ints *list, uint8_t flag)
{
	for (int i = 0; i < list->size; i++)
		if (list->data[i] >= 0)
			marks[list->data[i]] |= flag;
}

/* Leave n if what it reads is left. */
static void settle_inputs(const struct claims *c, struct node *n, const uint8_t *marks)
{
	for (int i = 0; i < n->item.inputs->size; i++) {
		int t = n->item.inputs->data[i];

		if (t >= 0 && c->folded[t] && !(marks[t] & MADE_HERE))
			claims_leave(n, "an input is computed from shapes on the CPU");
	}
}

/* Leave n if its results are read on the CPU, or nowhere. */
static void settle_outputs(const struct claims *c, struct node *n, const uint8_t *marks)
{
	bool folded = false, here = false, there = false;

	for (int i = 0; i < n->item.outputs->size; i++) {
		int t = n->item.outputs->data[i];

		if (t < 0 || !c->folded[t])
			continue;
		folded = true;
		here |= marks[t] & READ_HERE;
		there |= marks[t] & READ_THERE;
	}
	if (folded && (there || !here))
		claims_leave(n, "a shape that is read on the CPU");
}

/* Settle once.  Returns true if a node was left. */
static bool settle_once(struct claims *c, uint8_t *marks)
{
	bool left = false;

	for (uint32_t i = 0; i < c->node_count; i++) {
		const struct node *n = &c->nodes[i];
		bool here = !n->reason[0];

		mark(marks, n->item.inputs, here ? READ_HERE : READ_THERE);
		if (here)
			mark(marks, n->item.outputs, MADE_HERE);
	}
	for (uint32_t i = 0; i < c->node_count; i++) {
		struct node *n = &c->nodes[i];

		if (n->reason[0])
			continue;
		settle_inputs(c, n, marks);
		settle_outputs(c, n, marks);
		left |= n->reason[0] != '\0';
	}
	return left;
}

int folded_settle(struct claims *c, const struct tfl_context *ctx)
{
	uint8_t *marks;
	bool more = true;

	while (more) {
		marks = calloc(ctx->tensors_size + 1, 1);
		if (!marks)
			return -ENOMEM;
		more = settle_once(c, marks);
		free(marks);
	}
	return 0;
}

static bool has(const struct tfl_ints *list, int x)
{
	for (int i = 0; i < list->size; i++)
		if (list->data[i] == x)
			return true;
	return false;
}

int folded_leave_outputs(struct claims *c, const struct tfl_delegate_params *part)
{
	int left = 0;

	for (int i = 0; i < part->output_tensors->size; i++) {
		int t = part->output_tensors->data[i];

		for (uint32_t k = 0; k < c->node_count && c->folded[t]; k++)
			if (has(c->nodes[k].item.outputs, t)) {
				claims_leave(&c->nodes[k],
					     "a shape that is read outside of its "
					     "partition");
				left++;
			}
	}
	return left;
}
