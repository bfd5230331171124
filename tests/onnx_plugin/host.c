/* SPDX-License-Identifier: Apache-2.0 */
/* host.c - see host.h. */
#define _GNU_SOURCE
#include "host.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct ort_status {
	int code;
	char text[1024];
};

struct ort_pairs {
	struct host_options o;
};

static atomic_int statuses;
static unsigned int fail_at, calls;
static char logged[8192];
static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;

static struct ort_status *create_status(int code, const char *text)
{
	struct ort_status *s = calloc(1, sizeof(*s));

	if (!s)
		abort();
	s->code = code;
	snprintf(s->text, sizeof(s->text), "%s", text);
	statuses++;
	return s;
}

static void release_status(struct ort_status *s)
{
	if (!s)
		return;
	statuses--;
	memset(s, 0x5a, sizeof(*s));
	free(s);
}

static const char *get_message(const struct ort_status *s)
{
	return s->text;
}

void host_fail_at(unsigned int n)
{
	fail_at = n;
	calls = 0;
}

int host_statuses(void)
{
	return statuses;
}

const char *host_text(struct ort_status *s, int *code)
{
	static char text[1024];

	text[0] = '\0';
	*code = 0;
	if (!s)
		return text;
	snprintf(text, sizeof(text), "%s", s->text);
	*code = s->code;
	release_status(s);
	return text;
}

/* At the start of every function that may fail. */
#define MAY_FAIL()                                                                       \
	do {                                                                             \
		if (fail_at && ++calls == fail_at)                                       \
			return create_status(ORT_ERROR_FAIL, "made to fail");            \
	} while (0)

/* ---- values ------------------------------------------------------------------------ */

static const struct host_value *value_of(const void *v)
{
	return v;
}

static struct ort_status *value_name(const struct ort_value_info *v, const char **name)
{
	MAY_FAIL();
	*name = value_of(v)->name;
	return NULL;
}

static struct ort_status *value_type(const struct ort_value_info *v,
				     const struct ort_type_info **t)
{
	MAY_FAIL();
	*t = (const void *)v;
	return NULL;
}

static struct ort_status *cast_type(const struct ort_type_info *t,
				    const struct ort_shape_info **s)
{
	MAY_FAIL();
	*s = (const void *)t;
	return NULL;
}

static struct ort_status *element_type(const struct ort_shape_info *s, int *type)
{
	MAY_FAIL();
	*type = value_of(s)->type;
	return NULL;
}

static struct ort_status *dims_count(const struct ort_shape_info *s, size_t *rank)
{
	MAY_FAIL();
	*rank = value_of(s)->rank;
	return NULL;
}

static struct ort_status *get_dims(const struct ort_shape_info *s, int64_t *dims,
				   size_t rank)
{
	MAY_FAIL();
	memcpy(dims, value_of(s)->dims, rank * sizeof(*dims));
	return NULL;
}

static struct ort_status *is_constant(const struct ort_value_info *v, bool *is)
{
	MAY_FAIL();
	*is = value_of(v)->data != NULL;
	return NULL;
}

static struct ort_status *initializer(const struct ort_value_info *v,
				      const struct ort_value **value)
{
	MAY_FAIL();
	*value = (const void *)v;
	return NULL;
}

static struct ort_status *tensor_data(const struct ort_value *v, const void **data)
{
	MAY_FAIL();
	*data = *(const void *const *)(const void *)v;
	return NULL;
}

static struct ort_status *mutable_data(struct ort_value *v, void **data)
{
	MAY_FAIL();
	*data = *(void **)(void *)v;
	return NULL;
}

/* ---- nodes ------------------------------------------------------------------------- */

static const struct host_node *node_of(const struct ort_node *n)
{
	return (const void *)n;
}

static struct ort_status *node_type(const struct ort_node *n, const char **type)
{
	MAY_FAIL();
	*type = node_of(n)->type;
	return NULL;
}

static struct ort_status *node_domain(const struct ort_node *n, const char **domain)
{
	MAY_FAIL();
	*domain = node_of(n)->domain ? node_of(n)->domain : "";
	return NULL;
}

static struct ort_status *node_ins(const struct ort_node *n, size_t *count)
{
	MAY_FAIL();
	*count = node_of(n)->in_count;
	return NULL;
}

static struct ort_status *node_outs(const struct ort_node *n, size_t *count)
{
	MAY_FAIL();
	*count = node_of(n)->out_count;
	return NULL;
}

static struct ort_status *node_in(const struct ort_node *n,
				  const struct ort_value_info **v, size_t count)
{
	MAY_FAIL();
	for (size_t i = 0; i < count; i++)
		v[i] = (const void *)node_of(n)->in[i];
	return NULL;
}

static struct ort_status *node_out(const struct ort_node *n,
				   const struct ort_value_info **v, size_t count)
{
	MAY_FAIL();
	for (size_t i = 0; i < count; i++)
		v[i] = (const void *)node_of(n)->out[i];
	return NULL;
}

static struct ort_status *node_attr(const struct ort_node *n, const char *name,
				    const struct ort_attr **a)
{
	const struct host_node *node = node_of(n);

	*a = NULL;
	for (uint32_t i = 0; i < 4 && node->attrs[i].type; i++)
		if (strcmp(node->attrs[i].name, name) == 0)
			*a = (const void *)&node->attrs[i];
	/* Runtimes differ in what they say of an absent one. */
	return *a || n == NULL ? NULL
			       : create_status(ORT_ERROR_INVALID, "no such attribute");
}

static struct ort_status *read_attr(const struct ort_attr *attr, int type, void *data,
				    size_t size, size_t *need)
{
	const struct host_attr *a = (const void *)attr;
	const void *from = type == ORT_ATTR_FLOAT    ? (const void *)&a->f
			   : type == ORT_ATTR_STRING ? (const void *)a->text
						     : (const void *)a->ints;

	MAY_FAIL();
	*need = type == ORT_ATTR_INT     ? sizeof(int64_t)
		: type == ORT_ATTR_FLOAT ? sizeof(float)
		: type == ORT_ATTR_INTS  ? a->count * sizeof(int64_t)
					 : strlen(a->text);
	if (a->type != type || size < *need)
		return create_status(ORT_ERROR_INVALID, "type or size");
	memcpy(data, from, *need);
	return NULL;
}

/* ---- graphs ------------------------------------------------------------------------ */

static const struct host_graph *graph_of(const struct ort_graph *g)
{
	return (const void *)g;
}

static struct ort_status *graph_size(const struct ort_graph *g, size_t *count)
{
	MAY_FAIL();
	*count = graph_of(g)->node_count;
	return NULL;
}

static struct ort_status *graph_nodes(const struct ort_graph *g,
				      const struct ort_node **nodes, size_t count)
{
	MAY_FAIL();
	for (size_t i = 0; i < count; i++)
		nodes[i] = (const void *)&graph_of(g)->nodes[i];
	return NULL;
}

static struct ort_status *graph_parent(const struct ort_graph *g,
				       const struct ort_node **n)
{
	MAY_FAIL();
	*n = (const void *)graph_of(g)->parent;
	return NULL;
}

static struct ort_status *graph_out_count(const struct ort_graph *g, size_t *count)
{
	MAY_FAIL();
	*count = 0;
	for (uint32_t i = 0; i < graph_of(g)->value_count; i++)
		*count += graph_of(g)->values[i].output;
	return NULL;
}

static struct ort_status *graph_outs(const struct ort_graph *g,
				     const struct ort_value_info **v, size_t count)
{
	size_t n = 0;

	MAY_FAIL();
	for (uint32_t i = 0; i < graph_of(g)->value_count && n < count; i++)
		if (graph_of(g)->values[i].output)
			v[n++] = (const void *)&graph_of(g)->values[i];
	return NULL;
}

static struct ort_status *add_nodes(struct ort_support *support,
				    const struct ort_node *const *nodes, size_t count,
				    const struct ort_fusion *f)
{
	struct host_support *s = (void *)support;
	struct host_part *p = &s->parts[s->count];

	MAY_FAIL();
	if (f->version != ORT_VERSION || !f->drop_constant_initializers ||
	    s->count == 8 || count > HOST_NODES)
		abort();
	for (size_t i = 0; i < count; i++)
		p->nodes[i] = node_of(nodes[i]);
	p->count = (uint32_t)count;
	s->count++;
	return NULL;
}

struct host_value *host_value(struct host_graph *g, const char *name, int type,
			      uint32_t rank, const int64_t *dims, const void *data)
{
	struct host_value *v = &g->values[g->value_count++];

	if (g->value_count > HOST_VALUES)
		abort();
	*v = (struct host_value){.name = name, .type = type, .rank = rank, .data = data};
	if (rank)
		memcpy(v->dims, dims, rank * sizeof(*dims));
	return v;
}

struct host_node *host_node(struct host_graph *g, const char *type, uint32_t in_count,
			    struct host_value *const *in, struct host_value *out)
{
	struct host_node *n = &g->nodes[g->node_count++];

	if (g->node_count > HOST_NODES || in_count > HOST_PORTS)
		abort();
	*n = (struct host_node){
		.type = type, .in_count = in_count, .out = {out}, .out_count = 1};
	memcpy(n->in, in, in_count * sizeof(*in));
	return n;
}

static bool makes(const struct host_part *p, const struct host_value *v)
{
	for (uint32_t i = 0; i < p->count; i++)
		for (uint32_t k = 0; k < p->nodes[i]->out_count; k++)
			if (p->nodes[i]->out[k] == v)
				return true;
	return false;
}

static bool is_read_outside(const struct host_graph *g, const struct host_part *p,
			    const struct host_value *v)
{
	for (uint32_t i = 0; i < g->node_count; i++) {
		bool inside = false;

		for (uint32_t k = 0; k < p->count; k++)
			inside |= p->nodes[k] == &g->nodes[i];
		for (uint32_t k = 0; !inside && k < g->nodes[i].in_count; k++)
			if (g->nodes[i].in[k] == v)
				return true;
	}
	return v->output;
}

void host_fuse(const struct host_graph *g, const struct host_part *part,
	       struct host_graph *sub, struct host_node *fused)
{
	*fused = (struct host_node){.type = "fused"};
	*sub = (struct host_graph){0};
	/* Values have their places, so that pointers of one give those of the other. */
	memcpy(sub->values, g->values, sizeof(sub->values));
	sub->value_count = g->value_count;
	for (uint32_t i = 0; i < sub->value_count; i++)
		sub->values[i].output = false;
	for (uint32_t i = 0; i < part->count; i++) {
		const struct host_node *from = part->nodes[i];
		struct host_node *n = &sub->nodes[sub->node_count++];

		*n = *from;
		for (uint32_t k = 0; k < n->in_count; k++) {
			bool known = !from->in[k] || from->in[k]->data ||
				     makes(part, from->in[k]);

			if (from->in[k])
				n->in[k] = &sub->values[from->in[k] - g->values];
			for (uint32_t e = 0; e < fused->in_count; e++)
				known |= fused->in[e] == n->in[k];
			if (!known)
				fused->in[fused->in_count++] = n->in[k];
		}
		for (uint32_t k = 0; k < n->out_count; k++) {
			n->out[k] = &sub->values[from->out[k] - g->values];
			if (!is_read_outside(g, part, from->out[k]))
				continue;
			n->out[k]->output = true;
			if (fused->out_count == 2)
				abort();
			fused->out[fused->out_count++] = n->out[k];
		}
	}
}

/* ---- kernels ----------------------------------------------------------------------- */

static struct ort_status *context_in_count(const struct ort_kernel_context *c,
					   size_t *count)
{
	MAY_FAIL();
	*count = ((const struct host_context *)(const void *)c)->in_count;
	return NULL;
}

static struct ort_status *context_in(const struct ort_kernel_context *c, size_t i,
				     const struct ort_value **v)
{
	const struct host_context *h = (const void *)c;

	MAY_FAIL();
	*v = i < h->in_count ? (const void *)&h->in[i] : NULL;
	return NULL;
}

static struct ort_status *context_out(struct ort_kernel_context *c, size_t i,
				      const int64_t *dims, size_t rank,
				      struct ort_value **v)
{
	struct host_context *h = (void *)c;
	struct host_tensor *t = &h->out[i];

	MAY_FAIL();
	t->bytes = 1;
	t->rank = (uint32_t)rank;
	for (size_t k = 0; k < rank; k++) {
		t->dims[k] = dims[k];
		t->bytes *= (uint64_t)dims[k];
	}
	free(t->data);
	t->data = malloc(t->bytes);
	*v = (void *)t;
	return NULL;
}

/* ---- options and devices ------------------------------------------------------------ */

static struct ort_status *config_entries(const struct ort_session_options *o,
					 struct ort_pairs **p)
{
	MAY_FAIL();
	*p = calloc(1, sizeof(**p));
	if (!*p)
		abort();
	(*p)->o = *(const struct host_options *)(const void *)o;
	return NULL;
}

static void get_pairs(const struct ort_pairs *p, const char *const **keys,
		      const char *const **values, size_t *count)
{
	*keys = (const char *const *)p->o.keys;
	*values = (const char *const *)p->o.values;
	*count = p->o.count;
}

static void release_pairs(struct ort_pairs *p)
{
	free(p);
}

static struct ort_status *log_message(const struct ort_logger *l, int level,
				      const char *text, const char *file, int line,
				      const char *function)
{
	size_t used;

	(void)l;
	(void)level;
	(void)file;
	(void)line;
	(void)function;
	pthread_mutex_lock(&log_lock);
	used = strlen(logged);
	snprintf(logged + used, sizeof(logged) - used, "%s\n", text);
	pthread_mutex_unlock(&log_lock);
	return NULL;
}

const char *host_log(void)
{
	static char last[sizeof(logged)];

	memcpy(last, logged, sizeof(last));
	logged[0] = '\0';
	return last;
}

/* The shape of a tensor of a context is the tensor; one that is not released counts as a
 * status does. */
static struct ort_status *tensor_shape(const struct ort_value *v,
				       struct ort_shape_info **out)
{
	MAY_FAIL();
	statuses++;
	*out = (void *)v;
	return NULL;
}

static struct ort_status *shape_count(const struct ort_shape_info *s, size_t *count)
{
	const struct host_tensor *t = (const void *)s;

	MAY_FAIL();
	*count = 1;
	for (uint32_t i = 0; i < t->rank; i++)
		*count *= (size_t)t->dims[i];
	return NULL;
}

static void shape_release(struct ort_shape_info *s)
{
	(void)s;
	statuses--;
}

/* A hardware device is its type. */
static int hardware_type(const struct ort_hardware *h)
{
	return *(const int *)(const void *)h;
}

static struct ort_status *create_device(struct ort_factory *f,
					const struct ort_hardware *h,
					const struct ort_pairs *metadata,
					const struct ort_pairs *options,
					struct ort_ep_device **out)
{
	MAY_FAIL();
	(void)f;
	(void)metadata;
	(void)options;
	*out = (void *)h;
	return NULL;
}

/* ---- tables ------------------------------------------------------------------------- */

static void none(void)
{
	fprintf(stderr, "a function that the fake host does not have\n");
	abort();
}

static struct ort_ep_api ep_table;

static const struct ort_ep_api *get_ep_api(void)
{
	return &ep_table;
}

static struct ort_api *table;
static uint32_t newest_api;

#define SET(name, function) (t->f[ort_##name##_number] = (ort_fn)(function))

static void fill(struct ort_api *t)
{
	for (size_t i = 0; i < sizeof(t->f) / sizeof(t->f[0]); i++)
		t->f[i] = none;
	SET(CreateStatus, create_status);
	SET(GetErrorMessage, get_message);
	SET(ReleaseStatus, release_status);
	SET(GetTensorMutableData, mutable_data);
	SET(CastTypeInfoToTensorInfo, cast_type);
	SET(GetTensorElementType, element_type);
	SET(GetDimensionsCount, dims_count);
	SET(GetDimensions, get_dims);
	SET(GetTensorTypeAndShape, tensor_shape);
	SET(GetTensorShapeElementCount, shape_count);
	SET(ReleaseTensorTypeAndShapeInfo, shape_release);
	SET(KernelContext_GetInputCount, context_in_count);
	SET(KernelContext_GetInput, context_in);
	SET(KernelContext_GetOutput, context_out);
	SET(Logger_LogMessage, log_message);
	SET(ReadOpAttr, read_attr);
	SET(GetValueInfoName, value_name);
	SET(GetValueInfoTypeInfo, value_type);
	SET(GetKeyValuePairs, get_pairs);
	SET(ReleaseKeyValuePairs, release_pairs);
	SET(HardwareDevice_Type, hardware_type);
	SET(GetEpApi, get_ep_api);
	SET(ValueInfo_GetInitializerValue, initializer);
	SET(ValueInfo_IsConstantInitializer, is_constant);
	SET(Graph_GetNumNodes, graph_size);
	SET(Graph_GetNodes, graph_nodes);
	SET(Graph_GetParentNode, graph_parent);
	SET(Graph_GetNumOutputs, graph_out_count);
	SET(Graph_GetOutputs, graph_outs);
	SET(Node_GetOperatorType, node_type);
	SET(Node_GetDomain, node_domain);
	SET(Node_GetNumInputs, node_ins);
	SET(Node_GetInputs, node_in);
	SET(Node_GetNumOutputs, node_outs);
	SET(Node_GetOutputs, node_out);
	SET(Node_GetAttributeByName, node_attr);
	SET(GetTensorData, tensor_data);
	SET(GetSessionOptionsConfigEntries, config_entries);
}

static const struct ort_api *get_api(uint32_t version)
{
	return version <= newest_api ? table : NULL;
}

static const char *get_version(void)
{
	return newest_api >= ORT_VERSION ? "1.23.0" : "1.22.1";
}

const struct ort_api_base *host_base(uint32_t newest)
{
	static const struct ort_api_base base = {get_api, get_version};
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t bytes = (sizeof(*table) + page - 1) / page * page;
	struct ort_ep_api *t = &ep_table;
	char *memory;

	newest_api = newest;
	if (table)
		return &base;
	memory = mmap(NULL, bytes + page, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED || mprotect(memory + bytes, page, PROT_NONE))
		abort();
	table = (struct ort_api *)(void *)(memory + bytes - sizeof(*table));
	fill(table);
	for (size_t i = 0; i < sizeof(t->f) / sizeof(t->f[0]); i++)
		t->f[i] = none;
	SET(CreateEpDevice, create_device);
	SET(EpGraphSupportInfo_AddNodesToFuse, add_nodes);
	return &base;
}
