/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graphs made of nodes.  Nodes run in a seeded order that keeps to what they are said to
 * be behind, and to nothing else; an executable graph keeps its own parameters, which a
 * change is for its next launch alone; kernels are shown to nobody who has a mask.
 */
#define _GNU_SOURCE
#include "internal.h"

enum { BEHIND_MAX = 4, NODES_MAX = 200 };

struct node {
	const struct node *behind[BEHIND_MAX];
	uint32_t behind_count;
	struct job job;
};

struct graph {
	struct object object;
	uint32_t count;
	struct node nodes[NODES_MAX];
};

struct exec {
	struct object object;
	struct graph *graph;
	uint32_t count;
	struct stream *stream; /* of the last launch */
	struct {
		const struct node *node;
		struct job job;
	} at[]; /* as they run */
};

static const struct node *node_of(const struct graph *g, const void *handle)
{
	uint32_t i;

	for (i = 0; i < g->count; i++)
		if (&g->nodes[i] == handle)
			return &g->nodes[i];
	return NULL;
}

uint32_t do_cuGraphCreate(void **graph, uint32_t flags)
{
	struct graph *g = flags ? NULL : make(OBJECT_GRAPH, sizeof(*g));

	*graph = (void *)(uintptr_t)0x6a756e6b;
	if (!g)
		return flags ? CUR_INVALID_VALUE : CUR_OUT_OF_MEMORY;
	*graph = g;
	return CUR_SUCCESS;
}

uint32_t do_cuGraphDestroy(void *graph)
{
	struct graph *g = get(graph, OBJECT_GRAPH);

	if (!g)
		return CUR_INVALID_HANDLE;
	g->object.gone = true;
	return CUR_SUCCESS;
}

static uint32_t add(void **node, void *graph, void *const *behind, size_t count,
		    struct job job)
{
	struct graph *g = get(graph, OBJECT_GRAPH);
	struct node *n;
	size_t i;

	*node = (void *)(uintptr_t)0x6a756e6b;
	if (!g)
		return CUR_INVALID_HANDLE;
	if (count > BEHIND_MAX || (count && !behind))
		return CUR_INVALID_VALUE;
	if (g->count == NODES_MAX)
		return CUR_OUT_OF_MEMORY;
	n = &g->nodes[g->count];
	n->job = job;
	n->behind_count = (uint32_t)count;
	for (i = 0; i < count; i++) {
		n->behind[i] = node_of(g, behind[i]);
		if (n->behind[i])
			continue;
		misuse("a node is behind one that its graph does not have");
		return CUR_INVALID_VALUE;
	}
	g->count++;
	*node = n;
	return CUR_SUCCESS;
}

/* ---- parameters -------------------------------------------------------------------- */

static uint32_t kernel_job(struct job *j, const struct cu_kernel_node *p)
{
	uint32_t r = launch_job(j, p->function, p->grid, p->block, p->shared, p->params,
				p->extra);

	if (!r && !j->function->loaded)
		misuse("the code of %s is loaded by a graph", j->call.spec->name);
	return r;
}

static bool is_line(const struct cu_copy_side *s)
{
	return s->type == CU_MEMORY_UNIFIED && !s->host && !s->array && !s->reserved &&
	       !(s->at[0] | s->at[1] | s->at[2] | s->at[3]);
}

static uint32_t copy_job(struct job *j, const struct cu_copy_node *p, const void *context)
{
	const uint64_t dst = p->dst.address, src = p->src.address;

	if (context != current_device())
		return CUR_INVALID_CONTEXT;
	if (!p->width || p->height != 1 || p->depth != 1 || !is_line(&p->dst) ||
	    !is_line(&p->src))
		return CUR_INVALID_VALUE;
	if (!device_side(dst, p->width) || !device_side(src, p->width))
		return CUR_INVALID_VALUE;
	*j = (struct job){.op = OP_COPY,
			  .dst = device_side(dst, p->width),
			  .src = device_side(src, p->width),
			  .bytes = p->width};
	return CUR_SUCCESS;
}

static uint32_t fill_job(struct job *j, const struct cu_fill_node *p, const void *context)
{
	if (context != current_device())
		return CUR_INVALID_CONTEXT;
	if (p->element != 4 || !p->width || p->height != 1 || p->address % 4 ||
	    !allocation_of(p->address, p->width * 4))
		return CUR_INVALID_VALUE;
	*j = (struct job){.op = OP_FILL,
			  .dst = p->address,
			  .bytes = p->width * 4,
			  .value = p->value};
	return CUR_SUCCESS;
}

uint32_t do_cuGraphAddKernelNode_v2(void **node, void *graph, void *const *behind,
				    size_t count, const struct cu_kernel_node *params)
{
	struct job j;
	uint32_t r = kernel_job(&j, params);

	return r ? r : add(node, graph, behind, count, j);
}

uint32_t do_cuGraphAddMemcpyNode(void **node, void *graph, void *const *behind,
				 size_t count, const struct cu_copy_node *params,
				 void *context)
{
	struct job j;
	uint32_t r = copy_job(&j, params, context);

	return r ? r : add(node, graph, behind, count, j);
}

uint32_t do_cuGraphAddMemsetNode(void **node, void *graph, void *const *behind,
				 size_t count, const struct cu_fill_node *params,
				 void *context)
{
	struct job j;
	uint32_t r = fill_job(&j, params, context);

	return r ? r : add(node, graph, behind, count, j);
}

/* One operation, a write. */
uint32_t do_cuGraphAddBatchMemOpNode(void **node, void *graph, void *const *behind,
				     size_t count,
				     const struct cu_memory_ops_node *params)
{
	const union cu_memory_op *op = params->ops;

	if (params->context != current_device())
		return CUR_INVALID_CONTEXT;
	if (params->count != 1 || params->flags ||
	    op->write.operation != CU_OP_WRITE_32 || op->write.flags ||
	    op->write.address % 4 || !allocation_of(op->write.address, 4))
		return CUR_INVALID_VALUE;
	return add(node, graph, behind, count,
		   (struct job){.op = OP_WRITE,
				.dst = op->write.address,
				.bytes = 4,
				.value = op->write.value});
}

/* ---- executable graphs ------------------------------------------------------------- */

static bool has(const struct exec *e, const struct node *n)
{
	uint32_t i;

	for (i = 0; i < e->count && e->at[i].node != n; i++)
		;
	return i < e->count;
}

static bool may_run(const struct exec *e, const struct node *n)
{
	uint32_t i;

	for (i = 0; i < n->behind_count; i++)
		if (!has(e, n->behind[i]))
			return false;
	return !has(e, n);
}

/* Any of those that all that they are behind has run of. */
static const struct node *pick(const struct exec *e)
{
	static uint32_t seed = 1;
	const struct node *picked = NULL;
	uint32_t i, ready = 0;

	for (i = 0; i < e->graph->count; i++) {
		if (!may_run(e, &e->graph->nodes[i]))
			continue;
		seed = seed * 1103515245u + 12345u;
		if ((seed >> 16) % ++ready == 0)
			picked = &e->graph->nodes[i];
	}
	return picked;
}

uint32_t do_cuGraphInstantiateWithFlags(void **exec, void *graph,
					unsigned long long flags)
{
	struct graph *g = get(graph, OBJECT_GRAPH);
	struct exec *e;

	*exec = (void *)(uintptr_t)0x6a756e6b;
	if (!g || flags)
		return g ? CUR_INVALID_VALUE : CUR_INVALID_HANDLE;
	e = make(OBJECT_EXEC, sizeof(*e) + g->count * sizeof(e->at[0]));
	if (!e)
		return CUR_OUT_OF_MEMORY;
	e->graph = g;
	while (e->count < g->count) {
		const struct node *n = pick(e);

		e->at[e->count].job = n->job;
		e->at[e->count++].node = n;
	}
	*exec = e;
	return CUR_SUCCESS;
}

/* What it has begun goes on. */
uint32_t do_cuGraphExecDestroy(void *exec)
{
	struct exec *e = get(exec, OBJECT_EXEC);

	if (!e)
		return CUR_INVALID_HANDLE;
	e->object.gone = true;
	return CUR_SUCCESS;
}

/* Its job of that node, which still has to be there; NULL: none of that kind. */
static struct job *job_of(void *exec, const void *node, enum op op)
{
	struct exec *e = get(exec, OBJECT_EXEC);
	uint32_t i;

	if (!e)
		return NULL;
	if (e->graph->object.gone) {
		misuse("a node is named after the end of its graph");
		return NULL;
	}
	for (i = 0; i < e->count; i++)
		if (e->at[i].node == node && e->at[i].job.op == op)
			return &e->at[i].job;
	misuse("a node is changed in a graph that was not made of it");
	return NULL;
}

static uint32_t change(struct job *to, const struct job *from, uint32_t r)
{
	if (!to)
		return CUR_INVALID_VALUE;
	if (!r)
		*to = *from;
	return r;
}

uint32_t do_cuGraphExecKernelNodeSetParams_v2(void *exec, void *node,
					      const struct cu_kernel_node *params)
{
	struct job j, *to = job_of(exec, node, OP_LAUNCH);

	return change(to, &j, kernel_job(&j, params));
}

uint32_t do_cuGraphExecMemcpyNodeSetParams(void *exec, void *node,
					   const struct cu_copy_node *params,
					   void *context)
{
	struct job j, *to = job_of(exec, node, OP_COPY);
	uint32_t r = copy_job(&j, params, context);

	/* A node keeps the kinds of memory that it was made with. */
	if (!r && to &&
	    (is_of_host(to->dst) != is_of_host(j.dst) ||
	     is_of_host(to->src) != is_of_host(j.src)))
		r = CUR_INVALID_VALUE;
	return change(to, &j, r);
}

uint32_t do_cuGraphExecMemsetNodeSetParams(void *exec, void *node,
					   const struct cu_fill_node *params,
					   void *context)
{
	struct job j, *to = job_of(exec, node, OP_FILL);

	return change(to, &j, fill_job(&j, params, context));
}

static uint32_t run(struct stream *s, const struct job *j)
{
	if (j->op == OP_RECORD)
		return record_event(j->event, s);
	if (j->op == OP_LAUNCH && !get(j->function, OBJECT_FUNCTION))
		return CUR_INVALID_HANDLE;
	if (j->op == OP_COPY || j->op == OP_FILL) {
		struct job move = *j;

		move.is_kernel = runs_kernel(j);
		return push(s, move);
	}
	return push(s, *j);
}

uint32_t do_cuGraphLaunch(void *exec, void *stream)
{
	struct exec *e = get(exec, OBJECT_EXEC);
	struct stream *s = get(stream, OBJECT_STREAM);
	uint32_t i, r = CUR_SUCCESS;

	if (!e || !s)
		return CUR_INVALID_HANDLE;
	/* It would be put behind its own last launch, wherever that is. */
	if (e->stream && e->stream != s && e->stream->jobs)
		misuse("a graph is launched while it may run in another stream");
	e->stream = s;
	for (i = 0; !r && i < e->count; i++)
		r = run(s, &e->at[i].job);
	return r;
}
