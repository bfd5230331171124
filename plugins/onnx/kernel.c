/* SPDX-License-Identifier: Apache-2.0 */
/* kernel.c - a partition of a session: compiled, loaded, run. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugin.h"

/* An input or output: where the runtime has it, and how the program. */
struct edge {
	size_t number; /* of the fused node */
	struct port port;
	uint32_t rank;
	int64_t dims[PLUGIN_RANK]; /* the graph's */
	uint64_t bytes;
};

struct kernel {
	struct ort_compute_info info; /* first */
	struct provider *provider;
	struct place *place;
	struct npuc_program program;
	bool compiled, held; /* held: in the place's memory_used */
	struct npuc_run *run;
	pthread_mutex_t lock; /* of run and turned: one inference at a time */
	uint8_t *turned;      /* bytes of the largest edge */
	struct edge *in, *out;
	uint32_t in_count, out_count;
};

/* ---- running ----------------------------------------------------------------------- */

/* Copy between channels that are second and last, and between uint8 and int8. */
static void turn(const struct edge *e, bool to_model, const uint8_t *from, uint8_t *to)
{
	uint64_t c = e->port.nhwc ? (uint64_t)e->dims[1] : 1;
	uint64_t images = e->port.nhwc ? (uint64_t)e->dims[0] : 1;
	uint64_t pixels = e->bytes / (c * images);
	uint8_t flip = e->port.flip ? 0x80 : 0;

	for (uint64_t n = 0; n < images; n++, from += c * pixels, to += c * pixels)
		for (uint64_t i = 0; i < c; i++)
			for (uint64_t p = 0; p < pixels; p++) {
				uint64_t plain = i * pixels + p, last = p * c + i;

				to[to_model ? last : plain] =
					from[to_model ? plain : last] ^ flip;
			}
}

/* The runtime may have another shape than the graph says: it only warns of that. */
static struct ort_status *check_input(const struct ort_api *api, const struct edge *e,
				      const struct ort_value *v)
{
	struct ort_shape_info *info = NULL;
	struct ort_status *s = ORT(api, GetTensorTypeAndShape)(v, &info);
	size_t count = 0;

	if (!s)
		s = ORT(api, GetTensorShapeElementCount)(info, &count);
	if (!s && count != e->bytes)
		s = plugin_fail(api,
				"input %zu has %zu elements; its shape in the model has "
				"%llu",
				e->number, count, (unsigned long long)e->bytes);
	if (info)
		ORT(api, ReleaseTensorTypeAndShapeInfo)(info);
	return s;
}

static struct ort_status *write_input(struct kernel *k, uint32_t i,
				      struct ort_kernel_context *c)
{
	const struct ort_api *api = k->provider->api;
	const struct edge *e = &k->in[i];
	const struct ort_value *v = NULL;
	const void *data = NULL;
	char why[PLUGIN_WHY];
	struct ort_status *s = ORT(api, KernelContext_GetInput)(c, e->number, &v);

	if (!s && v)
		s = check_input(api, e, v);
	if (!s && v)
		s = ORT(api, GetTensorData)(v, &data);
	if (s)
		return s;
	if (!data)
		return plugin_fail(api, "input %zu is missing", e->number);
	turn(e, true, data, k->turned);
	if (npuc_run_write(k->run, i, k->turned, e->bytes, why) != 0)
		return plugin_fail(api, "%s", why);
	return NULL;
}

static struct ort_status *read_output(struct kernel *k, uint32_t i,
				      struct ort_kernel_context *c)
{
	const struct ort_api *api = k->provider->api;
	const struct edge *e = &k->out[i];
	struct ort_value *v = NULL;
	void *data = NULL;
	char why[PLUGIN_WHY];
	struct ort_status *s =
		ORT(api, KernelContext_GetOutput)(c, e->number, e->dims, e->rank, &v);

	if (!s)
		s = ORT(api, GetTensorMutableData)(v, &data);
	if (s)
		return s;
	if (npuc_run_read(k->run, i, true, k->turned, e->bytes, why) != 0)
		return plugin_fail(api, "%s", why);
	turn(e, false, k->turned, data);
	return NULL;
}

static struct ort_status *launch(struct kernel *k)
{
	struct provider *p = k->provider;
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct hal_point done;
	char why[PLUGIN_WHY];

	pthread_mutex_lock(&p->lock);
	d.deadline_ns = p->settings.deadline_us * 1000;
	d.priority = p->settings.priority;
	d.flags = p->settings.has_priority ? HAL_SUBMIT_PRIORITY : 0;
	pthread_mutex_unlock(&p->lock);
	if (npuc_run_submit(k->run, "run", &d, &done, why) != 0)
		return plugin_fail(p->api, "%s", why);
	if (hal_wait(&done, 1, 0, HAL_FOREVER) < 0)
		return plugin_fail(p->api, "%s", hal_last_error());
	return NULL;
}

static struct ort_status *compute(struct ort_compute_info *self, void *state,
				  struct ort_kernel_context *c)
{
	struct kernel *k = (struct kernel *)self;
	struct ort_status *s = NULL;

	(void)state;
	pthread_mutex_lock(&k->lock);
	for (uint32_t i = 0; !s && i < k->in_count; i++)
		s = write_input(k, i, c);
	if (!s)
		s = launch(k);
	for (uint32_t i = 0; !s && i < k->out_count; i++)
		s = read_output(k, i, c);
	pthread_mutex_unlock(&k->lock);
	return s;
}

static struct ort_status *create_state(struct ort_compute_info *self,
				       struct ort_compute_context *c, void **state)
{
	(void)c;
	*state = self;
	return NULL;
}

static void release_state(struct ort_compute_info *self, void *state)
{
	(void)self;
	(void)state;
}

/* ---- making ------------------------------------------------------------------------ */

/* Read the names of the fused node's inputs or outputs. */
static struct ort_status *names_of(struct graph *g, const struct ort_node *fused,
				   bool inputs, const char ***names, size_t *count)
{
	const struct ort_value_info **v;
	struct ort_status *s;
	const char **list;

	s = inputs ? ORT(g->api, Node_GetNumInputs)(fused, count)
		   : ORT(g->api, Node_GetNumOutputs)(fused, count);
	if (s)
		return s;
	v = pool_alloc(&g->pool, *count + 1, sizeof(const struct ort_value_info *));
	list = pool_alloc(&g->pool, *count + 1, sizeof(const char *));
	if (!v || !list)
		return plugin_fail(g->api, "out of memory");
	s = inputs ? ORT(g->api, Node_GetInputs)(fused, v, *count)
		   : ORT(g->api, Node_GetOutputs)(fused, v, *count);
	for (size_t i = 0; !s && i < *count; i++)
		if (v[i])
			s = ORT(g->api, GetValueInfoName)(v[i], &list[i]);
	*names = list;
	return s;
}

/* Match the model's ports with the fused node's by their names. */
static struct ort_status *make_edges(struct graph *g, const struct port *ports,
				     uint32_t count, const char **names,
				     size_t name_count, struct edge **edges,
				     size_t *largest)
{
	*edges = calloc((size_t)count + 1, sizeof(**edges));
	if (!*edges)
		return plugin_fail(g->api, "out of memory");
	for (uint32_t i = 0; i < count; i++) {
		const struct value *v = &g->values[ports[i].value];
		struct edge *e = &(*edges)[i];
		size_t n = 0;

		while (n < name_count && (!names[n] || strcmp(names[n], v->name) != 0))
			n++;
		if (n == name_count)
			return plugin_fail(g->api, "the runtime has no '%.80s'", v->name);
		*e = (struct edge){.number = n,
				   .port = ports[i],
				   .rank = v->rank,
				   .bytes = v->count};
		for (uint32_t k = 0; k < v->rank; k++)
			e->dims[k] = v->dims[k];
		if (e->bytes > *largest)
			*largest = e->bytes;
	}
	return NULL;
}

/* Find the units and values of the partition again, in its own graph. */
static struct ort_status *build(struct graph *g, const struct ort_node *fused,
				struct built *b, const char ***ins, size_t *in_count,
				const char ***outs, size_t *out_count)
{
	uint32_t count, *values;
	struct unit *units = units_find(g, &count);
	const struct unit **list;
	struct ort_status *s = names_of(g, fused, true, ins, in_count);
	char why[PLUGIN_WHY];

	if (!s)
		s = names_of(g, fused, false, outs, out_count);
	if (s)
		return s;
	list = pool_alloc(&g->pool, (size_t)count + 1, sizeof(const struct unit *));
	values = pool_alloc(&g->pool, *out_count + 1, sizeof(*values));
	if (!units || !list || !values)
		return plugin_fail(g->api, "out of memory");
	for (uint32_t i = 0; i < count; i++)
		list[i] = &units[i];
	for (uint32_t i = 0; i < g->node_count; i++)
		if (g->nodes[i].unit == PLUGIN_NONE)
			return plugin_fail(g->api, "node %u (%s) of a partition: %s", i,
					   g->nodes[i].type,
					   g->nodes[i].why ? g->nodes[i].why : "alone");
	for (size_t i = 0; i < *out_count; i++) {
		values[i] = (*outs)[i] ? graph_find(g, (*outs)[i]) : PLUGIN_NONE;
		if (values[i] == PLUGIN_NONE)
			return plugin_fail(g->api, "output %zu is not in the graph", i);
	}
	if (build_model(g, list, count, values, (uint32_t)*out_count, b, why) != 0)
		return plugin_fail(g->api, "%s", why);
	return NULL;
}

static struct ort_status *load(struct kernel *k, const struct npuc_model *model)
{
	const struct settings *s = &k->provider->settings;
	const struct ort_api *api = k->provider->api;
	char why[PLUGIN_WHY];

	if (npuc_compile_cached(model, NULL, s->cache_dir[0] ? s->cache_dir : NULL,
				&k->program, NULL, why) != 0)
		return plugin_fail(api, "%s", why);
	k->compiled = true;
	if (why[0])
		provider_log(k->provider, ORT_LOG_WARNING, why);
	if (place_take(s, &k->place, why) != 0 ||
	    place_hold(k->place, &k->program, why) != 0)
		return plugin_fail(api, "%s", why);
	k->held = true;
	if (npuc_run_open(k->place->dev, k->place->part, &k->program, &k->run, why) != 0)
		return plugin_fail(api, "%s", why);
	return NULL;
}

static struct ort_status *make(struct kernel *k, struct graph *g,
			       const struct ort_node *fused)
{
	static const char *none[1];
	const char **ins = none, **outs = none;
	size_t in_count = 0, out_count = 0, largest = 1;
	struct built b = {0};
	struct ort_status *s;

	s = build(g, fused, &b, &ins, &in_count, &outs, &out_count);
	if (!s)
		s = make_edges(g, b.in, b.in_count, ins, in_count, &k->in, &largest);
	if (!s)
		s = make_edges(g, b.out, b.out_count, outs, out_count, &k->out, &largest);
	k->in_count = b.in_count;
	k->out_count = b.out_count;
	if (!s) {
		k->turned = malloc(largest);
		s = k->turned ? load(k, b.model) : plugin_fail(g->api, "out of memory");
	}
	npuc_model_free(b.model);
	return s;
}

struct ort_status *kernel_create(struct provider *p, const struct ort_graph *from,
				 const struct ort_node *fused,
				 struct ort_compute_info **info)
{
	struct kernel *k = calloc(1, sizeof(*k));
	struct ort_status *s;
	struct graph g;

	if (!k)
		return plugin_fail(p->api, "out of memory");
	k->provider = p;
	atomic_fetch_add(&p->users, 1);
	k->info = (struct ort_compute_info){ORT_VERSION, create_state, compute,
					    release_state};
	(void)pthread_mutex_init(&k->lock, NULL);
	s = graph_read(&g, p->api, from);
	if (!s) {
		s = make(k, &g, fused);
		graph_free(&g);
	}
	if (s)
		kernel_free(&k->info);
	else
		*info = &k->info;
	return s;
}

void kernel_free(struct ort_compute_info *info)
{
	struct kernel *k = (struct kernel *)info;

	if (!k)
		return;
	(void)npuc_run_close(k->run);
	if (k->held)
		place_release(k->place, &k->program);
	place_give(k->place);
	if (k->compiled)
		npuc_program_free(&k->program);
	(void)pthread_mutex_destroy(&k->lock);
	provider_give(k->provider);
	free(k->turned);
	free(k->in);
	free(k->out);
	free(k);
}
