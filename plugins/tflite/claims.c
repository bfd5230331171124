/* SPDX-License-Identifier: Apache-2.0 */
/*
 * claims.c - which nodes of a graph the NPU takes.
 *
 *   1. each node by itself: operator, types, variables, what the user excludes; nodes
 * that compute shapes are taken with those that read them (folded.c)
 *   2. one check of all that are left, which names the nodes that npuc refuses
 *   3. the interpreter's partitions: each is compiled and opened; a node that npuc
 *      refuses is left to the CPU, and the interpreter partitions again
 *   4. partitions not worth it are left: min_macs, then max_partitions by cycles saved
 *
 * The kernels that step 3 opened are the ones that the interpreter then gets.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plug.h"

/* What a processor core without the NPU does in one cycle of the device, for ranking
 * alone: int8 multiply-accumulates with vector instructions, and elements of operators
 * without any.  A hand-over costs a submission and the copies of inputs and outputs. */
#define CPU_MACS_PER_CYCLE     16.0
#define CPU_ELEMENTS_PER_CYCLE 1.0
#define COPY_BYTES_PER_CYCLE   8.0
#define HANDOVER_CYCLES        2000.0

/* ---- reasons ---------------------------------------------------------------------- */

void claims_leave(struct node *n, const char *format, ...)
{
	va_list args;

	if (n->reason[0])
		return;
	va_start(args, format);
	vsnprintf(n->reason, sizeof(n->reason), format, args);
	va_end(args);
}

static const char *type_name(int tfl_type)
{
	return npuc_type_name(operator_type(tfl_type));
}

/* Inputs are 8-bit or 16-bit numbers; outputs may be indices, too. */
static bool port_type(int type, bool input)
{
	return type == TFL_INT8 || type == TFL_UINT8 || type == TFL_INT16 ||
	       (!input && (type == TFL_INT32 || type == TFL_INT64));
}

static bool valid(const struct tfl_context *ctx, int tensor)
{
	return tensor >= 0 && (size_t)tensor < ctx->tensors_size;
}

/* Say what keeps a tensor of a node off the device, or leave the reason alone. */
static void check_tensor(struct node *n, const struct tfl_tensor *t, bool input)
{
	const char *side = input ? "input" : "output";

	if (t->is_variable)
		claims_leave(n, "%s is a variable", side);
	else if (t->allocation_type == TFL_DYNAMIC)
		claims_leave(n, "%s has a dynamic shape", side);
	else if (!port_type(t->type, input) && !(input && item_measures(&n->item)))
		claims_leave(n, "%s is %s", side, type_name(t->type));
}

static void check_inputs(struct node *n, const struct claims *c,
			 const struct tfl_context *ctx)
{
	bool data = n->folded;

	for (int i = 0; i < n->item.inputs->size && !n->reason[0]; i++) {
		int t = n->item.inputs->data[i];

		if (!valid(ctx, t) || c->folded[t] || tensor_constant(&ctx->tensors[t]))
			continue;
		data = true;
		check_tensor(n, &ctx->tensors[t], true);
	}
	if (!data)
		claims_leave(n, "all inputs are constant");
}

static void check_outputs(struct node *n, const struct tfl_context *ctx)
{
	for (int i = 0; i < n->item.outputs->size && !n->reason[0]; i++) {
		int t = n->item.outputs->data[i];

		if (valid(ctx, t))
			check_tensor(n, &ctx->tensors[t], false);
		else
			claims_leave(n, "an output is left out");
	}
}

bool node_taken(const struct node *n)
{
	return n->item.code == BUILTIN_DELEGATE && n->item.custom &&
	       strcmp(n->item.custom, KERNEL_NAME) == 0;
}

/* Note the whole numbers that a folded node makes. */
static void note_numbers(struct claims *c, const struct tfl_context *ctx,
			 const struct node *n)
{
	for (int i = 0; i < n->item.outputs->size; i++) {
		int t = n->item.outputs->data[i];

		c->folded[t] = ctx->tensors[t].type == TFL_INT32 ||
			       ctx->tensors[t].type == TFL_INT64;
	}
}

static void check_node(struct node *n, struct claims *c, const struct tfl_context *ctx)
{
	const struct tfl_operator *op = operator_find(n->item.code);
	char name[NPUC_OPERATOR_NAME];

	item_name(&n->item, name, sizeof(name));
	n->macs = item_macs(ctx, &n->item);
	folded_note(c, ctx, n);
	if (options_exclude(&c->p->o, name, n->item.index))
		claims_leave(n, "option exclude");
	else if (n->item.code == BUILTIN_CUSTOM)
		claims_leave(n, "custom operator");
	else if (n->item.code == BUILTIN_DELEGATE)
		claims_leave(n, "another delegate has it");
	else if (!op)
		claims_leave(n, "no such operator on the NPU");
	else
		check_inputs(n, c, ctx);
	check_outputs(n, ctx);
	if (op && operator_claim(op) != ALWAYS &&
	    (operator_claim(op) == NEVER || !n->folded))
		claims_leave(n, "the delegate never takes this operator");
	if (n->folded && !n->reason[0])
		note_numbers(c, ctx, n);
}

/* ---- one check of many nodes ------------------------------------------------------ */

#define READ_HERE  1 /* by a node of the set */
#define MADE_HERE  2
#define READ_THERE 4 /* by another node */

static void mark(uint8_t *marks, const struct tfl_ints *list, uint8_t flag)
{
	for (int i = 0; i < list->size; i++)
		if (list->data[i] >= 0)
			marks[list->data[i]] |= flag;
}

/* A set of nodes with the tensors that come in and go out. */
struct set {
	struct item *items;
	uint32_t *nodes; /* positions in claims.nodes */
	uint32_t count;
	struct tfl_ints *ins, *outs;
};

static struct tfl_ints *ints_make(size_t room)
{
	struct tfl_ints *list =
		malloc(sizeof(*list) + (room + 1) * sizeof(list->data[0]));

	if (list)
		list->size = 0;
	return list;
}

static void set_free(struct set *s)
{
	free(s->items);
	free(s->nodes);
	free(s->ins);
	free(s->outs);
}

static void set_edges(struct set *s, const struct claims *c, size_t tensors,
		      uint8_t *marks)
{
	for (uint32_t i = 0, next = 0; i < c->node_count; i++) {
		const struct item *item = &c->nodes[i].item;
		bool here = next < s->count && s->nodes[next] == i;

		next += here;
		mark(marks, item->inputs, here ? READ_HERE : READ_THERE);
		if (here)
			mark(marks, item->outputs, MADE_HERE);
	}
	for (size_t t = 0; t < tensors; t++) {
		if ((marks[t] & (READ_HERE | MADE_HERE)) == READ_HERE)
			s->ins->data[s->ins->size++] = (int)t;
		if ((marks[t] & MADE_HERE) &&
		    (!(marks[t] & READ_HERE) || (marks[t] & READ_THERE)))
			s->outs->data[s->outs->size++] = (int)t;
	}
}

/* Make the set of nodes without a reason; only: that one alone, or UINT32_MAX. */
static int set_make(struct set *s, const struct claims *c, size_t tensors, uint32_t only)
{
	uint8_t *marks = calloc(tensors + 1, 1);

	*s = (struct set){
		.items = calloc(c->node_count + 1, sizeof(*s->items)),
		.nodes = calloc(c->node_count + 1, sizeof(*s->nodes)),
		.ins = ints_make(tensors),
		.outs = ints_make(tensors),
	};
	if (!marks || !s->items || !s->nodes || !s->ins || !s->outs) {
		free(marks);
		set_free(s);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < c->node_count; i++)
		if (!c->nodes[i].reason[0] && (only == UINT32_MAX || only == i)) {
			s->nodes[s->count] = i;
			s->items[s->count++] = c->nodes[i].item;
		}
	set_edges(s, c, tensors, marks);
	free(marks);
	return 0;
}

/* Leave the nodes of s that the report names, and return their number. */
static uint32_t leave_reported(struct claims *c, const struct set *s,
			       const struct npuc_report *r)
{
	uint32_t left = 0, layer = 0;

	for (uint32_t i = 0; i < s->count && layer < r->layer_count; i++) {
		uint32_t o;

		if (graph_measures(s->items, s->count, i))
			continue; /* no layer of the model */
		o = r->by_layer[layer++];
		if (o == NPUC_NONE)
			continue;
		claims_leave(&c->nodes[s->nodes[i]], "%s",
			     o == NPUC_LEFT ? "the NPU does not compute it"
					    : r->obstacles[o].text);
		left++;
	}
	return left;
}

/* Check a set, and leave the nodes that npuc refuses.  Returns their number, or -errno
 * with why when the set is refused and no node is named. */
static int check_set(struct claims *c, const struct tfl_context *ctx, const struct set *s,
		     char why[NPUC_WHY])
{
	const struct npuc_options options = {.reference = c->p->o.reference};
	struct npuc_report report = {0};
	struct npuc_model *model;
	uint32_t refused;
	int rc = graph_model(ctx, s->items, s->count, s->ins, s->outs, &model, &refused,
			     why);

	if (rc && refused != UINT32_MAX) {
		claims_leave(&c->nodes[s->nodes[refused]], "%s", why);
		return 1;
	}
	if (!rc) {
		rc = npuc_check(model, &options, &report, why);
		if (!rc)
			rc = (int)leave_reported(c, s, &report);
		if (!rc && report.count) {
			snprintf(why, NPUC_WHY, "%s", report.obstacles[0].text);
			rc = report.obstacles[0].err;
		}
		npuc_report_free(&report);
	}
	npuc_model_free(model);
	return rc;
}

/* Check node i alone. */
static int check_one(struct claims *c, const struct tfl_context *ctx, uint32_t i)
{
	char why[NPUC_WHY];
	struct set s;
	int rc = set_make(&s, c, ctx->tensors_size, i);

	if (rc)
		return rc;
	rc = check_set(c, ctx, &s, why);
	if (rc < 0)
		claims_leave(&c->nodes[i], "%s", why);
	set_free(&s);
	return 0;
}

/* Check the nodes without a reason until npuc refuses none of them.  Where it refuses
 * the set and names no node, check each alone that does not depend on another. */
static int check_all(struct claims *c, const struct tfl_context *ctx)
{
	char why[NPUC_WHY];
	int rc = 1;

	while (rc > 0) {
		struct set s;

		rc = folded_settle(c, ctx);
		if (!rc)
			rc = set_make(&s, c, ctx->tensors_size, UINT32_MAX);
		if (rc)
			return rc;
		rc = s.count ? check_set(c, ctx, &s, why) : 0;
		set_free(&s);
	}
	if (rc == -ENOMEM)
		return rc;
	for (uint32_t i = 0; rc && i < c->node_count; i++)
		if (!c->nodes[i].reason[0] && !c->nodes[i].folded &&
		    !folded_read(c, &c->nodes[i]) && check_one(c, ctx, i))
			return -ENOMEM;
	return 0;
}

/* ---- partitions ------------------------------------------------------------------- */

static struct node *node_of(const struct claims *c, int index)
{
	for (uint32_t i = 0; i < c->node_count; i++)
		if (c->nodes[i].item.index == index)
			return &c->nodes[i];
	return NULL;
}

static void leave_part(struct claims *c, const struct tfl_ints *nodes, const char *why)
{
	for (int i = 0; i < nodes->size; i++)
		claims_leave(node_of(c, nodes->data[i]), "%s", why);
}

/* Estimate the cycles that a partition saves, for ranking. */
static double cycles_saved(const struct tfl_context *ctx, const struct item *items,
			   uint32_t count, const struct npuc_program *program)
{
	double cpu = 0;

	for (uint32_t i = 0; i < count; i++) {
		uint64_t macs = item_macs(ctx, &items[i]);

		cpu += (double)macs / CPU_MACS_PER_CYCLE;
		for (int o = 0; !macs && o < items[i].outputs->size; o++)
			cpu += (double)ctx->tensors[items[i].outputs->data[o]].bytes /
			       CPU_ELEMENTS_PER_CYCLE;
	}
	return cpu - (double)program->cycles - HANDOVER_CYCLES -
	       (double)(program->input_bytes + program->output_bytes) /
		       COPY_BYTES_PER_CYCLE;
}

/* Leave the nodes of a refused partition that npuc names, else the whole partition. */
static int part_refused(struct claims *c, const struct tfl_context *ctx,
			const struct tfl_delegate_params *d, struct item *items,
			const char *why)
{
	struct set s = {.items = items,
			.count = (uint32_t)d->nodes_to_replace->size,
			.ins = d->input_tensors,
			.outs = d->output_tensors};
	char text[NPUC_WHY];
	int rc = 0;

	s.nodes = calloc(s.count + 1, sizeof(*s.nodes));
	if (!s.nodes)
		return -ENOMEM;
	for (uint32_t i = 0; i < s.count; i++)
		s.nodes[i] = (uint32_t)(node_of(c, items[i].index) - c->nodes);
	if (s.count > 1)
		rc = check_set(c, ctx, &s, text);
	if (rc <= 0)
		leave_part(c, d->nodes_to_replace, why);
	free(s.nodes);
	return 0;
}

/* Compile and open one partition, unless an earlier round has. */
static int part_open(struct claims *c, struct tfl_context *ctx,
		     const struct tfl_delegate_params *d, const struct item *items,
		     char why[NPUC_WHY])
{
	uint32_t count = (uint32_t)d->nodes_to_replace->size, refused;
	struct npuc_program program = {0};
	struct npuc_model *model;
	struct kernel *k;
	int rc;

	if (kernel_ready(c->p, ctx, d->nodes_to_replace))
		return 0;
	rc = graph_model(ctx, items, count, d->input_tensors, d->output_tensors, &model,
			 &refused, why);
	if (!rc)
		rc = kernel_compile(c->p, model, &program, why);
	npuc_model_free(model);
	if (!rc)
		rc = kernel_open(c->p, ctx, items, count, d->input_tensors,
				 d->output_tensors, &program, &k, why);
	if (!rc)
		kernel_keep(k);
	return rc;
}

/* Describe an open partition, for ranking and the log. */
static void part_describe(const struct claims *c, const struct tfl_context *ctx,
			  const struct tfl_delegate_params *d, const struct item *items,
			  struct part *part)
{
	const struct npuc_program *program = kernel_ready(c->p, ctx, d->nodes_to_replace);

	*part = (struct part){
		.nodes = (uint32_t)d->nodes_to_replace->size,
		.first = d->nodes_to_replace->data[0],
		.inputs = program->input_count,
		.outputs = program->output_count,
		.cycles = program->cycles,
	};
	part->saved = cycles_saved(ctx, items, part->nodes, program);
	for (uint32_t i = 0; i < part->nodes; i++)
		part->macs += item_macs(ctx, &items[i]);
}

/* Open a partition and describe it.  Returns 1 if its nodes have been left instead. */
static int part_try(struct claims *c, struct tfl_context *ctx,
		    const struct tfl_delegate_params *d, struct part *part)
{
	struct item *items =
		calloc((size_t)d->nodes_to_replace->size + 1, sizeof(*items));
	char why[NPUC_WHY];
	int rc = items ? items_read(ctx, d->nodes_to_replace, items) : -ENOMEM;

	if (!rc) {
		rc = part_open(c, ctx, d, items, why);
		if (!rc)
			part_describe(c, ctx, d, items, part);
		else if (rc != -ENOMEM)
			rc = part_refused(c, ctx, d, items, why) ? -ENOMEM : 1;
	}
	free(items);
	return rc;
}

/* Leave partitions with too few multiply-accumulates.  Returns their number. */
static int leave_small(struct claims *c, const struct tfl_delegate_params *params)
{
	int left = 0;

	for (uint32_t i = 0; i < c->part_count; i++) {
		char why[NPUC_WHY];

		if (c->parts[i].macs >= c->p->o.min_macs)
			continue;
		snprintf(why, sizeof(why),
			 "its partition has %llu MACs, fewer than min_macs=%llu",
			 (unsigned long long)c->parts[i].macs,
			 (unsigned long long)c->p->o.min_macs);
		leave_part(c, params[i].nodes_to_replace, why);
		left++;
	}
	return left;
}

/* Above max_partitions, leave the partition that saves the fewest cycles. */
static int leave_worst(struct claims *c, const struct tfl_delegate_params *params)
{
	uint32_t worst = 0;
	char why[NPUC_WHY];

	if (!c->p->o.max_partitions || c->part_count <= c->p->o.max_partitions)
		return 0;
	for (uint32_t i = 1; i < c->part_count; i++)
		if (c->parts[i].saved < c->parts[worst].saved)
			worst = i;
	snprintf(why, sizeof(why),
		 "max_partitions=%u, and others save more cycles than its partition",
		 c->p->o.max_partitions);
	leave_part(c, params[worst].nodes_to_replace, why);
	return 1;
}

static struct tfl_ints *claimed_nodes(const struct claims *c)
{
	struct tfl_ints *nodes = ints_make(c->node_count);

	for (uint32_t i = 0; nodes && i < c->node_count; i++)
		if (!c->nodes[i].reason[0])
			nodes->data[nodes->size++] = c->nodes[i].item.index;
	return nodes;
}

/* Partition the nodes without a reason once.  Returns 1 if some were left meanwhile. */
static int partition_once(struct claims *c, struct tfl_context *ctx,
			  const struct tfl_ints *nodes)
{
	struct tfl_delegate_params *params = NULL;
	int count = 0, again = 0, rc = 0;

	free(c->parts);
	c->parts = NULL;
	c->part_count = 0;
	if (!nodes->size)
		return 0;
	if (ctx->PreviewDelegatePartitioning(ctx, nodes, &params, &count) || count < 0)
		return -EIO;
	for (int i = 0; i < count; i++)
		again |= folded_leave_outputs(c, &params[i]) > 0;
	if (again)
		return 1;
	c->parts = calloc((size_t)count + 1, sizeof(*c->parts));
	if (!c->parts)
		return -ENOMEM;
	for (int i = 0; i < count && rc >= 0; i++) {
		rc = part_try(c, ctx, &params[i], &c->parts[i]);
		again |= rc > 0;
	}
	if (rc < 0)
		return rc;
	c->part_count = (uint32_t)count;
	if (again)
		return 1;
	return leave_small(c, params) || leave_worst(c, params);
}

/* Partition until the interpreter's partitions are all taken. */
static int partition(struct claims *c, struct tfl_context *ctx, struct tfl_ints **nodes)
{
	int rc = 1;

	*nodes = NULL;
	while (rc > 0) {
		free(*nodes);
		*nodes = NULL;
		rc = folded_settle(c, ctx);
		if (rc)
			return rc;
		*nodes = claimed_nodes(c);
		rc = *nodes ? partition_once(c, ctx, *nodes) : -ENOMEM;
	}
	return rc;
}

/* ---- Prepare ---------------------------------------------------------------------- */

static int claims_read(struct claims *c, struct tfl_context *ctx)
{
	struct tfl_ints *plan, *copy;
	struct item *items;
	int rc = -ENOMEM;

	if (ctx->GetExecutionPlan(ctx, &plan))
		return -EIO;
	/* The next call of the interpreter may overwrite the plan. */
	copy = ints_make((size_t)plan->size);
	items = calloc((size_t)plan->size + 1, sizeof(*items));
	c->nodes = calloc((size_t)plan->size + 1, sizeof(*c->nodes));
	c->folded = calloc(ctx->tensors_size + 1, sizeof(*c->folded));
	if (copy && items && c->nodes && c->folded) {
		copy->size = plan->size;
		memcpy(copy->data, plan->data, (size_t)plan->size * sizeof(int));
		rc = items_read(ctx, copy, items);
	}
	for (int i = 0; !rc && i < copy->size; i++) {
		c->nodes[i].item = items[i];
		c->node_count++;
		check_node(&c->nodes[i], c, ctx);
	}
	free(copy);
	free(items);
	return rc;
}

static int strict_error(const struct claims *c, struct tfl_context *ctx)
{
	char left[1024];
	uint32_t n = 0, all = 0;

	for (uint32_t i = 0; i < c->node_count; i++) {
		bool counts = !node_taken(&c->nodes[i]);

		all += counts;
		n += counts && c->nodes[i].reason[0];
	}
	if (!n)
		return TFL_OK;
	report_left(c, left, sizeof(left));
	ctx->ReportError(ctx,
			 "accelhal: strict=1, and %u of %u nodes would stay on the CPU: "
			 "%s\n",
			 n, all, left);
	return TFL_DELEGATE_ERROR;
}

static int claims_make(struct claims *c, struct tfl_context *ctx, struct tfl_ints **nodes)
{
	int rc = claims_read(c, ctx);

	if (!rc)
		rc = check_all(c, ctx);
	if (!rc)
		rc = partition(c, ctx, nodes);
	return rc;
}

static void claims_free(struct claims *c)
{
	free(c->nodes);
	free(c->folded);
	free(c->parts);
}

int claims_prepare(struct tfl_context *ctx, struct tfl_delegate *delegate)
{
	struct claims c = {.p = (struct plug *)delegate};
	struct tfl_ints *nodes = NULL;
	char why[NPUC_WHY];
	int rc;

	if (plug_forked(c.p, why)) {
		ctx->ReportError(ctx, "accelhal: %s\n", why);
		return TFL_DELEGATE_ERROR;
	}
	rc = claims_make(&c, ctx, &nodes);
	if (rc) {
		ctx->ReportError(ctx, "accelhal: the graph cannot be read: %s\n",
				 hal_strerror(rc));
		rc = TFL_DELEGATE_ERROR;
	} else {
		report_claims(&c);
		rc = c.p->o.strict ? strict_error(&c, ctx) : TFL_OK;
		if (!rc && nodes->size)
			rc = ctx->ReplaceNodeSubsetsWithDelegateKernels(
				ctx, kernel_registration, nodes, delegate);
	}
	kernels_drop(c.p, ctx);
	free(nodes);
	claims_free(&c);
	return rc;
}
