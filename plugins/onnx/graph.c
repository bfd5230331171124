/* SPDX-License-Identifier: Apache-2.0 */
/* graph.c - reads a graph of the runtime: nodes, values, constants. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugin.h"

struct pool_block {
	struct pool_block *next;
	max_align_t data[];
};

void *pool_alloc(struct pool *p, size_t count, size_t bytes)
{
	struct pool_block *b = NULL;

	if (!bytes || count <= (SIZE_MAX - sizeof(*b) - 1) / bytes)
		b = calloc(1, sizeof(*b) + count * bytes + 1);
	if (!b) {
		p->empty = true;
		return NULL;
	}
	b->next = p->first;
	p->first = b;
	return b->data;
}

void pool_free(struct pool *p)
{
	while (p->first) {
		struct pool_block *b = p->first;

		p->first = b->next;
		free(b);
	}
}

struct ort_status *plugin_fail(const struct ort_api *api, const char *format, ...)
{
	char text[PLUGIN_WHY + 64] = "accelhal: ";
	size_t n = strlen(text);
	va_list args;

	va_start(args, format);
	vsnprintf(text + n, sizeof(text) - n, format, args);
	va_end(args);
	/* Not EP_FAIL: Python then runs the whole model on the CPU and goes on. */
	return ORT(api, CreateStatus)(ORT_ERROR_FAIL, text);
}

/* Remember the first error; true: there is none so far. */
static bool ok(struct graph *g, struct ort_status *s)
{
	if (s && g->status)
		ORT(g->api, ReleaseStatus)(s);
	else if (s)
		g->status = s;
	return !g->status && !g->pool.empty;
}

/* ---- values ------------------------------------------------------------------------ */

static uint32_t slot_of(const struct graph *g, const char *name)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325);
	uint32_t i;

	for (const char *c = name; *c; c++)
		h = (h ^ (uint8_t)*c) * UINT64_C(0x100000001b3);
	i = (uint32_t)(h >> 20) & (g->slot_count - 1);
	while (g->slots[i] && strcmp(g->values[g->slots[i] - 1].name, name) != 0)
		i = (i + 1) & (g->slot_count - 1);
	return i;
}

uint32_t graph_find(const struct graph *g, const char *name)
{
	uint32_t v = g->slots[slot_of(g, name)];

	return v ? v - 1 : PLUGIN_NONE;
}

static void read_type(struct graph *g, const struct ort_value_info *info, struct value *v)
{
	const struct ort_type_info *type = NULL;
	const struct ort_shape_info *shape = NULL; /* the type's, not freed */
	int64_t dims[PLUGIN_RANK];
	size_t rank = 0;

	v->rank = PLUGIN_NONE;
	if (!ok(g, ORT(g->api, GetValueInfoTypeInfo)(info, &type)) || !type ||
	    !ok(g, ORT(g->api, CastTypeInfoToTensorInfo)(type, &shape)) || !shape ||
	    !ok(g, ORT(g->api, GetTensorElementType)(shape, &v->type)) ||
	    !ok(g, ORT(g->api, GetDimensionsCount)(shape, &rank)) || rank > PLUGIN_RANK ||
	    (rank && !ok(g, ORT(g->api, GetDimensions)(shape, dims, rank))))
		return;
	v->count = 1;
	for (size_t i = 0; i < rank; i++) {
		if (dims[i] < 0 || dims[i] > INT32_MAX)
			return;
		v->dims[i] = (int32_t)dims[i];
		v->count *= (uint64_t)dims[i];
		if (v->count > INT32_MAX)
			return;
	}
	v->rank = (uint32_t)rank;
}

static void read_constant(struct graph *g, const struct ort_value_info *info,
			  struct value *v)
{
	const struct ort_value *value = NULL;
	bool constant = false;

	if (!ok(g, ORT(g->api, ValueInfo_IsConstantInitializer)(info, &constant)) ||
	    !constant || v->rank == PLUGIN_NONE ||
	    !ok(g, ORT(g->api, ValueInfo_GetInitializerValue)(info, &value)) || !value)
		return;
	(void)ok(g, ORT(g->api, GetTensorData)(value, &v->data));
}

/* Return the value, new or known; PLUGIN_NONE: it is left out. */
static uint32_t take_value(struct graph *g, const struct ort_value_info *info)
{
	const char *name = NULL;
	struct value *v;
	uint32_t slot;

	if (!info || !ok(g, ORT(g->api, GetValueInfoName)(info, &name)) || !name ||
	    !name[0])
		return PLUGIN_NONE;
	slot = slot_of(g, name);
	if (g->slots[slot])
		return g->slots[slot] - 1;
	if (g->value_count == g->value_room) {
		g->pool.empty = true; /* the runtime counted otherwise before */
		return PLUGIN_NONE;
	}
	v = &g->values[g->value_count++];
	*v = (struct value){
		.name = name, .producer = PLUGIN_NONE, .consumer = PLUGIN_NONE};
	g->slots[slot] = g->value_count;
	read_type(g, info, v);
	read_constant(g, info, v);
	return g->value_count - 1;
}

/* ---- nodes ------------------------------------------------------------------------- */

static const struct ort_value_info **infos(struct graph *g, const struct ort_node *n,
					   bool inputs, uint32_t *count)
{
	const struct ort_value_info **list;
	size_t size = 0;

	*count = 0;
	if (!ok(g, inputs ? ORT(g->api, Node_GetNumInputs)(n, &size)
			  : ORT(g->api, Node_GetNumOutputs)(n, &size)))
		return NULL;
	list = pool_alloc(&g->pool, size + 1, sizeof(const struct ort_value_info *));
	if (!list || !ok(g, inputs ? ORT(g->api, Node_GetInputs)(n, list, size)
				   : ORT(g->api, Node_GetOutputs)(n, list, size)))
		return NULL;
	*count = (uint32_t)size;
	return list;
}

static void read_node(struct graph *g, struct node *n)
{
	const struct ort_value_info **in = infos(g, n->ort, true, &n->in_count);
	const struct ort_value_info **out = infos(g, n->ort, false, &n->out_count);
	uint32_t number = (uint32_t)(n - g->nodes);

	n->unit = PLUGIN_NONE;
	n->in = pool_alloc(&g->pool, n->in_count, sizeof(*n->in));
	n->out = pool_alloc(&g->pool, n->out_count, sizeof(*n->out));
	if (!in || !out || !n->in || !n->out ||
	    !ok(g, ORT(g->api, Node_GetOperatorType)(n->ort, &n->type)) ||
	    !ok(g, ORT(g->api, Node_GetDomain)(n->ort, &n->domain)))
		return;
	for (uint32_t i = 0; i < n->in_count; i++) {
		n->in[i] = take_value(g, in[i]);
		if (n->in[i] == PLUGIN_NONE)
			continue;
		g->values[n->in[i]].consumers++;
		g->values[n->in[i]].consumer = number;
	}
	for (uint32_t i = 0; i < n->out_count; i++) {
		n->out[i] = take_value(g, out[i]);
		if (n->out[i] != PLUGIN_NONE)
			g->values[n->out[i]].producer = number;
	}
}

static void read_outputs(struct graph *g, const struct ort_graph *from)
{
	const struct ort_value_info **list;
	const char *name;
	size_t count = 0;

	if (!ok(g, ORT(g->api, Graph_GetNumOutputs)(from, &count)))
		return;
	list = pool_alloc(&g->pool, count + 1, sizeof(const struct ort_value_info *));
	if (!list || !ok(g, ORT(g->api, Graph_GetOutputs)(from, list, count)))
		return;
	for (size_t i = 0; i < count; i++) {
		uint32_t v;

		if (!list[i] || !ok(g, ORT(g->api, GetValueInfoName)(list[i], &name)) ||
		    !name)
			continue;
		v = graph_find(g, name);
		if (v != PLUGIN_NONE)
			g->values[v].output = true;
	}
}

/* Make tables for as many values as nodes name. */
static bool make_tables(struct graph *g, const struct ort_node **nodes)
{
	size_t names = 0;

	for (uint32_t i = 0; i < g->node_count; i++) {
		size_t in = 0, out = 0;

		if (!ok(g, ORT(g->api, Node_GetNumInputs)(nodes[i], &in)) ||
		    !ok(g, ORT(g->api, Node_GetNumOutputs)(nodes[i], &out)))
			return false;
		names += in + out;
	}
	for (g->slot_count = 16; g->slot_count < 2 * names; g->slot_count *= 2)
		;
	g->value_room = (uint32_t)names;
	g->nodes = pool_alloc(&g->pool, g->node_count, sizeof(*g->nodes));
	g->values = pool_alloc(&g->pool, names, sizeof(*g->values));
	g->slots = pool_alloc(&g->pool, g->slot_count, sizeof(*g->slots));
	return !g->pool.empty;
}

struct ort_status *graph_read(struct graph *g, const struct ort_api *api,
			      const struct ort_graph *from)
{
	const struct ort_node **nodes = NULL;
	struct ort_status *status;
	size_t count = 0;

	*g = (struct graph){.api = api};
	if (ok(g, ORT(api, Graph_GetNumNodes)(from, &count))) {
		g->node_count = (uint32_t)count;
		nodes = pool_alloc(&g->pool, count, sizeof(const struct ort_node *));
	}
	if (nodes && ok(g, ORT(api, Graph_GetNodes)(from, nodes, count)) &&
	    make_tables(g, nodes)) {
		for (uint32_t i = 0; i < g->node_count && ok(g, NULL); i++) {
			g->nodes[i].ort = nodes[i];
			read_node(g, &g->nodes[i]);
		}
		read_outputs(g, from);
	}
	status = g->status;
	g->status = NULL;
	if (!status && g->pool.empty)
		status = plugin_fail(api, "out of memory");
	if (status)
		graph_free(g);
	return status;
}

void graph_free(struct graph *g)
{
	pool_free(&g->pool);
	*g = (struct graph){0};
}

/* ---- attributes -------------------------------------------------------------------- */

static bool read_attr(struct graph *g, const struct node *n, const char *name, int type,
		      void *data, size_t bytes, size_t *got)
{
	const struct ort_attr *a = NULL;
	struct ort_status *s = ORT(g->api, Node_GetAttributeByName)(n->ort, name, &a);

	*got = 0;
	if (!s && a)
		s = ORT(g->api, ReadOpAttr)(a, type, data, bytes, got);
	else
		a = NULL; /* an absent one may be an error, or not */
	if (s)
		ORT(g->api, ReleaseStatus)(s);
	return a && !s;
}

bool graph_int(struct graph *g, const struct node *n, const char *name, int64_t *out)
{
	size_t got;

	return read_attr(g, n, name, ORT_ATTR_INT, out, sizeof(*out), &got);
}

bool graph_float(struct graph *g, const struct node *n, const char *name, float *out)
{
	size_t got;

	return read_attr(g, n, name, ORT_ATTR_FLOAT, out, sizeof(*out), &got);
}

bool graph_string(struct graph *g, const struct node *n, const char *name, char *out,
		  size_t size)
{
	size_t got;

	memset(out, 0, size);
	return read_attr(g, n, name, ORT_ATTR_STRING, out, size - 1, &got);
}

uint32_t graph_ints(struct graph *g, const struct node *n, const char *name, int64_t *out,
		    uint32_t most)
{
	size_t got;

	if (!read_attr(g, n, name, ORT_ATTR_INTS, out, most * sizeof(*out), &got))
		return 0;
	return (uint32_t)(got / sizeof(*out));
}
