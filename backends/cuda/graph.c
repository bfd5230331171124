/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands of recorded sequences, given as graphs of the driver's (graphs=yes): one call
 * where each command by itself takes three.
 *
 * submit gathers recorded commands of a queue, up to the end of their sequence or to the
 * next poll; so a graph is never more than what the device would have of the queue anyway
 * (`inflight`), and DRAIN takes no longer.  A graph is a line of the commands, with
 * nothing between two kernels that would keep the device from overlapping the end of one
 * with the start of the next, and one mark: their number, written to the graph's word in
 * pinned memory.  They are reported together, when the last has ended, so that what comes
 * next is as many again.  Where a queue marks each launch (hang_ms, mark_every=1), each
 * command of a graph has a mark, too.
 *
 * The graphs of a queue are kept.  One that is idle and has the same commands but for
 * their arguments is launched again, and only what differs is changed in it.  What the
 * driver refuses is given command by command, and the queue makes no graph any more.
 */
#define _GNU_SOURCE
#include "internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SHAPE offsetof(struct cu_step, values) /* bytes that no change is possible in */

int cu_graphs_check(const struct cu_device *dev)
{
	bool there = true;

	if (dev->opt.block)
		return cu_host->fail(
			EINVAL,
			"cuda:%u: graphs=yes and preempt=block exclude each other: "
			"launches in a graph cannot stop between blocks",
			dev->index);
	if (dev->opt.bounds)
		return cu_host->fail(
			EINVAL,
			"cuda:%u: graphs=yes and bounds=yes exclude each other: launches "
			"in a graph do not pass their partition's range",
			dev->index);
	if (cu_way_of(dev) != CU_WAY_NONE)
		return cu_host->fail(
			ENOTSUP,
			"cuda:%u: graphs=yes needs partitions=none: it is unknown "
			"whether kernels in a graph keep to a partition (%s)",
			dev->index, cu_way_names[cu_way_of(dev)]);
#define CU_THERE(name, params, args) there = there && cu.name;
	CU_GRAPH_CALLS(CU_THERE)
#undef CU_THERE
	return there ? 0
		     : cu_host->fail(
			       ENOTSUP,
			       "cuda:%u: graphs=yes: the driver does not support graphs",
			       dev->index);
}

int cu_graphs_make(struct cu_device *dev, struct cu_queue *q)
{
	struct cu_graphs *gs =
		calloc(1, sizeof(*gs) + dev->opt.inflight * sizeof(gs->steps[0]));
	void *words = NULL;
	int err;

	if (!gs)
		return cu_host->fail(ENOMEM, "cuda: no memory for graphs");
	q->graphs = gs;
	err = cu_pin(dev, CU_GRAPHS_MAX * sizeof(uint32_t), &words, &gs->words_at);
	if (!err)
		gs->words = words;
	return err;
}

/* ---- made and dropped -------------------------------------------------------------- */

static void give_back(struct cu_device *dev, const struct cu_graph *g, int *err)
{
	cu_give_back(dev, CU_KIND_EXEC, g->exec, err);
	cu_give_back(dev, CU_KIND_GRAPH, g->graph, err);
}

static void drop(struct cu_device *dev, struct cu_graph *g, int *err)
{
	give_back(dev, g, err);
	free(g);
}

void cu_graphs_free(struct cu_queue *q)
{
	uint32_t i;

	for (i = 0; q->graphs && i < CU_GRAPHS_MAX; i++)
		free(q->graphs->made[i]);
	free(q->graphs);
	q->graphs = NULL;
}

void cu_graphs_drop(struct cu_device *dev, struct cu_queue *q, int *err)
{
	struct cu_graphs *gs = q->graphs;
	uint32_t i;

	if (!gs)
		return;
	for (i = 0; i < CU_GRAPHS_MAX; i++)
		if (gs->made[i])
			give_back(dev, gs->made[i], err);
	cu_give_back(dev, CU_KIND_HOST, gs->words, err);
	cu_graphs_free(q);
}

static bool is_of(const struct cu_graph *g, const struct cu_program *prog)
{
	uint32_t i;

	for (i = 0; i < g->count; i++) {
		const struct cu_kernel *k = g->stages[i].step.kernel;

		if (k && k >= prog->kernels && k < prog->kernels + prog->count)
			return true;
	}
	return false;
}

void cu_graphs_forget(struct cu_device *dev, const struct cu_program *prog)
{
	struct stream_queue *q;
	uint32_t i;
	int ignored = 0; /* it is tried again */

	pthread_mutex_lock(&dev->base.queues_lock);
	for (q = dev->base.queues; q && dev->opt.graphs; q = q->older)
		for (i = 0; i < CU_GRAPHS_MAX; i++) {
			struct cu_graph **g = &((struct cu_queue *)q)->graphs->made[i];

			if (!*g || (*g)->users || !is_of(*g, prog))
				continue;
			drop(dev, *g, &ignored);
			*g = NULL;
		}
	pthread_mutex_unlock(&dev->base.queues_lock);
}

static struct cu_copy_node copy_of(const struct cu_step *s)
{
	return (struct cu_copy_node){
		.dst = {.type = CU_MEMORY_UNIFIED, .address = s->values[0]},
		.src = {.type = CU_MEMORY_UNIFIED, .address = s->values[1]},
		.width = s->values[2],
		.height = 1,
		.depth = 1};
}

static struct cu_fill_node fill_of(const struct cu_step *s)
{
	return (struct cu_fill_node){.address = s->values[0],
				     .value = (uint32_t)s->values[1],
				     .element = 4,
				     .width = s->values[2],
				     .height = 1};
}

static struct cu_kernel_node kernel_of(struct cu_step *s, void *params[HAL_ARGS_MAX])
{
	const struct cu_kernel *k = s->kernel;
	struct cu_kernel_node n = {
		.function = k->function, .shared = s->shared_bytes, .params = params};
	uint32_t i;

	memcpy(n.grid, s->groups, sizeof(n.grid));
	memcpy(n.block, s->block, sizeof(n.block));
	for (i = 0; i < s->count; i++)
		params[i] = &s->values[i];
	return n;
}

/* Add a node behind the last one; NULL: there is none yet. */
static int add_step(struct cu_device *dev, struct cu_graph *g, struct cu_stage *s,
		    void *last)
{
	void *const *behind = last ? &last : NULL;
	const size_t count = last ? 1 : 0;
	void *params[HAL_ARGS_MAX];
	struct cu_kernel_node kernel;
	struct cu_copy_node copy;
	struct cu_fill_node fill;

	switch (s->step.op) {
	case HAL_OP_LAUNCH:
		kernel = kernel_of(&s->step, params);
		return CU(dev, cuGraphAddKernelNode_v2, &s->node, g->graph, behind, count,
			  &kernel);
	case HAL_OP_COPY:
		copy = copy_of(&s->step);
		return CU(dev, cuGraphAddMemcpyNode, &s->node, g->graph, behind, count,
			  &copy, dev->context);
	default:
		fill = fill_of(&s->step);
		return CU(dev, cuGraphAddMemsetNode, &s->node, g->graph, behind, count,
			  &fill, dev->context);
	}
}

static int change_step(struct cu_device *dev, struct cu_graph *g, struct cu_stage *s)
{
	void *params[HAL_ARGS_MAX];
	struct cu_kernel_node kernel;
	struct cu_copy_node copy;
	struct cu_fill_node fill;

	switch (s->step.op) {
	case HAL_OP_LAUNCH:
		kernel = kernel_of(&s->step, params);
		return CU(dev, cuGraphExecKernelNodeSetParams_v2, g->exec, s->node,
			  &kernel);
	case HAL_OP_COPY:
		copy = copy_of(&s->step);
		return CU(dev, cuGraphExecMemcpyNodeSetParams, g->exec, s->node, &copy,
			  dev->context);
	default:
		fill = fill_of(&s->step);
		return CU(dev, cuGraphExecMemsetNodeSetParams, g->exec, s->node, &fill,
			  dev->context);
	}
}

static int add_number(struct cu_device *dev, struct cu_graph *g, void **last,
		      uint64_t word_at, uint32_t number)
{
	union cu_memory_op op = {.write = {.operation = CU_OP_WRITE_32,
					   .address = word_at,
					   .value = number}};
	const struct cu_memory_ops_node ops = {
		.context = dev->context, .count = 1, .ops = &op};
	void *node = NULL;
	int err = CU(dev, cuGraphAddBatchMemOpNode, &node, g->graph, last, 1, &ops);

	*last = node;
	return err;
}

/* each: every command has a mark. */
static int build(struct cu_device *dev, struct cu_graph *g, uint64_t word_at, bool each)
{
	void *last = NULL;
	uint32_t i;
	int err = CU(dev, cuGraphCreate, &g->graph, 0);

	if (err) {
		g->graph = NULL;
		return err;
	}
	for (i = 0; !err && i < g->count; i++) {
		err = add_step(dev, g, &g->stages[i], last);
		last = g->stages[i].node;
		if (!err && (each || i + 1 == g->count))
			err = add_number(dev, g, &last, word_at, i + 1);
	}
	if (!err)
		err = CU(dev, cuGraphInstantiateWithFlags, &g->exec, g->graph, 0);
	if (err)
		g->exec = NULL;
	return err;
}

/* ---- found ------------------------------------------------------------------------- */

/* How many steps' arguments would have to be changed; UINT32_MAX: it is another. */
static uint32_t differs(const struct cu_graph *g, const struct cu_step *steps, uint32_t n)
{
	uint32_t i, changes = 0;

	if (g->users || g->count != n)
		return UINT32_MAX;
	for (i = 0; i < n; i++) {
		const struct cu_step *a = &g->stages[i].step, *b = &steps[i];

		if (memcmp(a, b, SHAPE) != 0)
			return UINT32_MAX;
		changes += memcmp(a->values, b->values,
				  b->count * sizeof(b->values[0])) != 0;
	}
	return changes;
}

static uint32_t nearest(const struct cu_graphs *gs, uint32_t *changes)
{
	uint32_t i, best = CU_GRAPHS_MAX;

	*changes = UINT32_MAX;
	for (i = 0; i < CU_GRAPHS_MAX && *changes; i++) {
		const uint32_t n = gs->made[i]
					   ? differs(gs->made[i], gs->steps, gs->gathered)
					   : UINT32_MAX;

		if (n < *changes) {
			*changes = n;
			best = i;
		}
	}
	return best;
}

/* Where one can be made: nowhere yet, else in place of the one that was idle longest;
 * CU_GRAPHS_MAX: all are in flight. */
static uint32_t place(const struct cu_graphs *gs)
{
	uint32_t i, best = CU_GRAPHS_MAX;

	for (i = 0; i < CU_GRAPHS_MAX; i++) {
		if (!gs->made[i])
			return i;
		if (!gs->made[i]->users &&
		    (best == CU_GRAPHS_MAX || gs->made[i]->used < gs->made[best]->used))
			best = i;
	}
	return best;
}

static struct cu_graph *make(struct cu_device *dev, const struct cu_queue *q)
{
	struct cu_graphs *gs = q->graphs;
	const uint32_t n = gs->gathered, at = place(gs);
	struct cu_graph *g;
	uint32_t i;
	int ignored = 0; /* what does not go is tried again */

	if (at == CU_GRAPHS_MAX)
		return NULL;
	if (gs->made[at])
		drop(dev, gs->made[at], &ignored);
	gs->made[at] = NULL;
	g = calloc(1, sizeof(*g) + n * sizeof(g->stages[0]));
	if (!g)
		return NULL;
	g->count = n;
	g->word = &gs->words[at];
	__atomic_store_n(g->word, n, __ATOMIC_RELEASE);
	for (i = 0; i < n; i++)
		g->stages[i].step = gs->steps[i];
	if (build(dev, g, gs->words_at + at * sizeof(uint32_t), q->base.every == 1)) {
		drop(dev, g, &ignored);
		gs->off = true;
		return NULL;
	}
	gs->made[at] = g;
	return g;
}

static struct cu_graph *take_up(struct cu_device *dev, const struct cu_queue *q)
{
	struct cu_graphs *gs = q->graphs;
	uint32_t changes, i;
	const uint32_t at = nearest(gs, &changes);
	struct cu_graph *g;

	if (at == CU_GRAPHS_MAX)
		return make(dev, q);
	g = gs->made[at];
	for (i = 0; changes && i < g->count; i++) {
		struct cu_step *old = &g->stages[i].step;
		const struct cu_step *new = &gs->steps[i];

		if (memcmp(old->values, new->values,
			   new->count * sizeof(new->values[0])) == 0)
			continue;
		*old = *new;
		/* That one it keeps as it was: it is not launched again. */
		if (change_step(dev, g, &g->stages[i])) {
			gs->off = true;
			return NULL;
		}
	}
	return g;
}

/* ---- launched ---------------------------------------------------------------------- */

bool cu_graphs_launch(struct cu_device *dev, struct cu_queue *q)
{
	struct cu_graphs *gs = q->graphs;
	const uint32_t first = q->base.count - gs->gathered;
	struct cu_graph *g;
	uint32_t i;

	if (gs->gathered < 2 || gs->off)
		return false;
	g = take_up(dev, q);
	if (!g)
		return false;
	/* What is before it is not to be reported with it. */
	cu_mark(dev, q);
	if (q->base.broken)
		return false;
	__atomic_store_n(g->word, 0, __ATOMIC_RELEASE);
	if (CU(dev, cuGraphLaunch, g->exec, q->stream)) {
		__atomic_store_n(g->word, g->count, __ATOMIC_RELEASE);
		gs->off = true;
		return false;
	}
	g->used = ++gs->launches;
	for (i = 0; i < g->count; i++) {
		struct cu_slot *s = cu_slot(q, first + i);

		s->graph = g;
		s->base.number = i + 1;
	}
	g->users = g->count;
	return true;
}

bool cu_graph_ended(const struct cu_device *dev, const struct cu_queue *q,
		    const struct cu_slot *s)
{
	const uint32_t ended = __atomic_load_n(s->graph->word, __ATOMIC_ACQUIRE);
	const bool each =
		dev->opt.hang_ns || q->base.broken || atomic_load(&dev->base.lost);

	return ended >= (each ? s->base.number : s->graph->count);
}

bool cu_graphs_empty(const struct cu_queue *q)
{
	uint32_t i;

	for (i = 0; q->graphs && i < CU_GRAPHS_MAX; i++) {
		const struct cu_graph *g = q->graphs->made[i];

		if (g && __atomic_load_n(g->word, __ATOMIC_ACQUIRE) != g->count)
			return false;
	}
	return true;
}
