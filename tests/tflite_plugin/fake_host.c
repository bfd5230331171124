/* SPDX-License-Identifier: Apache-2.0 */
/* fake_host.c - a fake TensorFlow Lite interpreter. */
#include "fake_host.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define POISON     0xa5
#define POISON_LEN 256

enum phase {
	PHASE_IDLE,
	PHASE_DELEGATE, /* Prepare and init: nodes may be asked for */
	PHASE_PREPARE,
	PHASE_INVOKE,
};

/* TfLiteRegistration by age; these are passed by value. */
struct registration_short {
	void *(*init)(struct tfl_context *ctx, const char *buffer, size_t length);
	void (*free)(struct tfl_context *ctx, void *buffer);
	int (*prepare)(struct tfl_context *ctx, struct tfl_node *node);
	int (*invoke)(struct tfl_context *ctx, struct tfl_node *node);
	const char *(*profiling_string)(const struct tfl_context *ctx,
					const struct tfl_node *node);
	int32_t builtin_code;
	const char *custom_name;
	int version;
};

struct registration_now {
	struct registration_short old;
	void *registration_external, *async_kernel;
	uint64_t inplace_operator;
};

struct registration_long {
	struct registration_now now;
	uint64_t more[4];
};

struct host_node {
	struct tfl_node node;
	struct tfl_registration registration;
	host_kernel kernel;
	bool delegated; /* a partition */
	bool replaced;  /* part of one */
};

struct host {
	struct tfl_context *ctx; /* in a longer block, the rest of which is poison */
	enum host_version version;
	struct tfl_tensor *tensors;
	int tensor_count;
	struct host_node *nodes; /* moved each time one is added */
	int node_count;
	struct tfl_ints *plan, *plan_given, *inputs, *outputs;
	struct tfl_delegate_params *preview; /* of the last call */
	int preview_count;
	enum phase phase;
	bool preserve_all;
	char errors[HOST_TEXT], given[HOST_TEXT];
};

static void *need(void *p)
{
	if (!p)
		abort();
	return p;
}

static struct host *host_of(const struct tfl_context *ctx)
{
	return ctx->impl;
}

static struct tfl_ints *ints_copy(const struct tfl_ints *list)
{
	size_t size = sizeof(*list) + (size_t)list->size * sizeof(int);

	return memcpy(need(malloc(size)), list, size);
}

/* Count up to -2. */
static struct tfl_ints *ints_of(const int *list)
{
	struct tfl_ints *made;
	int n = 0;

	while (list[n] != -2)
		n++;
	made = need(malloc(sizeof(*made) + (size_t)n * sizeof(int)));
	made->size = n;
	if (n)
		memcpy(made->data, list, (size_t)n * sizeof(int));
	return made;
}

static struct tfl_ints *ints_empty(int room)
{
	struct tfl_ints *made =
		need(calloc(1, sizeof(*made) + (size_t)room * sizeof(int)));

	return made;
}

static bool ints_have(const struct tfl_ints *list, int x)
{
	for (int i = 0; i < list->size; i++)
		if (list->data[i] == x)
			return true;
	return false;
}

static bool is_constant(const struct tfl_tensor *t)
{
	return t->allocation_type == TFL_MMAP_RO ||
	       t->allocation_type == TFL_PERSISTENT_RO;
}

/* ---- partitions ------------------------------------------------------------------- */

struct parting {
	struct host *h;
	const struct tfl_ints *claimed;
	bool *ready, *done; /* by tensor; by position in the plan */
};

static bool inputs_ready(const struct parting *p, const struct host_node *n)
{
	for (int i = 0; i < n->node.inputs->size; i++)
		if (n->node.inputs->data[i] >= 0 && !p->ready[n->node.inputs->data[i]])
			return false;
	return true;
}

/* Take nodes of one kind whose inputs are ready until there is none; list has them. */
static void gather(struct parting *p, bool claimed, struct tfl_ints *list)
{
	struct host *h = p->h;
	bool more = true;

	while (more) {
		more = false;
		for (int i = 0; i < h->plan->size; i++) {
			int index = h->plan->data[i];
			const struct host_node *n = &h->nodes[index];

			if (p->done[i] || ints_have(p->claimed, index) != claimed ||
			    !inputs_ready(p, n))
				continue;
			p->done[i] = more = true;
			list->data[list->size++] = index;
			for (int o = 0; o < n->node.outputs->size; o++)
				p->ready[n->node.outputs->data[o]] = true;
			if (h->preserve_all)
				return;
		}
	}
}

/* The kind of the first node that can run: 1 claimed, 0 not, -1 there is none. */
static int next_kind(const struct parting *p)
{
	for (int i = 0; i < p->h->plan->size; i++)
		if (!p->done[i] && inputs_ready(p, &p->h->nodes[p->h->plan->data[i]]))
			return ints_have(p->claimed, p->h->plan->data[i]);
	return -1;
}

static bool read_outside(const struct host *h, const struct tfl_ints *part, int tensor)
{
	if (ints_have(h->outputs, tensor))
		return true;
	for (int i = 0; i < h->plan->size; i++)
		if (!ints_have(part, h->plan->data[i]) &&
		    ints_have(h->nodes[h->plan->data[i]].node.inputs, tensor))
			return true;
	return false;
}

static bool made_inside(const struct host *h, const struct tfl_ints *part, int tensor)
{
	for (int i = 0; i < part->size; i++)
		if (ints_have(h->nodes[part->data[i]].node.outputs, tensor))
			return true;
	return false;
}

static void set_edges(const struct host *h, struct tfl_delegate_params *d)
{
	d->input_tensors = ints_empty(h->tensor_count);
	d->output_tensors = ints_empty(h->tensor_count);
	for (int i = 0; i < d->nodes_to_replace->size; i++) {
		const struct tfl_node *n = &h->nodes[d->nodes_to_replace->data[i]].node;

		for (int j = 0; j < n->inputs->size; j++) {
			int t = n->inputs->data[j];

			if (t >= 0 && !ints_have(d->input_tensors, t) &&
			    !made_inside(h, d->nodes_to_replace, t))
				d->input_tensors->data[d->input_tensors->size++] = t;
		}
		for (int j = 0; j < n->outputs->size; j++) {
			int t = n->outputs->data[j];

			if (read_outside(h, d->nodes_to_replace, t))
				d->output_tensors->data[d->output_tensors->size++] = t;
		}
	}
}

/* Partition the plan into alternating sets of claimed and other nodes; claimed_only: list
 * those of claimed nodes alone. */
static int partition(struct host *h, const struct tfl_ints *claimed, bool claimed_only,
		     struct tfl_delegate_params **parts)
{
	struct parting p = {.h = h, .claimed = claimed};
	int kind, count = 0;

	p.ready = need(calloc((size_t)h->tensor_count + 1, sizeof(bool)));
	p.done = need(calloc((size_t)h->plan->size + 1, sizeof(bool)));
	*parts = need(calloc((size_t)h->plan->size + 1, sizeof(**parts)));
	for (int i = 0; i < h->tensor_count; i++)
		p.ready[i] = true;
	for (int i = 0; i < h->plan->size; i++) {
		const struct tfl_ints *outs = h->nodes[h->plan->data[i]].node.outputs;

		for (int o = 0; o < outs->size; o++)
			p.ready[outs->data[o]] = false;
	}
	while ((kind = next_kind(&p)) >= 0) {
		struct tfl_ints *list = ints_empty(h->plan->size);

		gather(&p, kind, list);
		if (claimed_only && !kind) {
			free(list);
			continue;
		}
		(*parts)[count].nodes_to_replace = list;
		count++;
	}
	for (int i = 0; i < count; i++)
		set_edges(h, &(*parts)[i]);
	free(p.ready);
	free(p.done);
	return count;
}

static void parts_free(struct tfl_delegate_params *parts, int count)
{
	for (int i = 0; i < count; i++) {
		free(parts[i].nodes_to_replace);
		free(parts[i].input_tensors);
		free(parts[i].output_tensors);
	}
	free(parts);
}

/* ---- what the delegate calls ------------------------------------------------------ */

static void context_error(struct tfl_context *ctx, const char *format, ...)
{
	struct host *h = host_of(ctx);
	size_t at = strlen(h->errors);
	va_list args;

	va_start(args, format);
	vsnprintf(h->errors + at, sizeof(h->errors) - at, format, args);
	va_end(args);
}

/* The list lasts until the next call of the interpreter. */
static int context_plan(struct tfl_context *ctx, struct tfl_ints **plan)
{
	struct host *h = host_of(ctx);

	free(h->plan_given);
	h->plan_given = *plan = ints_copy(h->plan);
	return TFL_OK;
}

static void plan_overwrite(struct host *h)
{
	for (int i = 0; h->plan_given && i < h->plan_given->size; i++)
		h->plan_given->data[i] = 0x7fffffff;
}

static int context_node(struct tfl_context *ctx, int index, struct tfl_node **node,
			struct tfl_registration **registration)
{
	struct host *h = host_of(ctx);

	plan_overwrite(h);
	if (h->phase != PHASE_DELEGATE || index < 0 || index >= h->node_count) {
		context_error(ctx, "GetNodeAndRegistration(%d) is not allowed now\n",
			      index);
		return TFL_ERROR;
	}
	*node = &h->nodes[index].node;
	*registration = &h->nodes[index].registration;
	return TFL_OK;
}

static int context_preview(struct tfl_context *ctx, const struct tfl_ints *nodes,
			   struct tfl_delegate_params **params, int *count)
{
	struct host *h = host_of(ctx);

	plan_overwrite(h);
	parts_free(h->preview, h->preview_count);
	h->preview_count = partition(h, nodes, true, &h->preview);
	*params = h->preview;
	*count = h->preview_count;
	return TFL_OK;
}

/* Move all nodes, and poison where they were. */
static struct host_node *node_append(struct host *h)
{
	size_t size = (size_t)h->node_count * sizeof(*h->nodes);
	struct host_node *nodes = need(calloc((size_t)h->node_count + 1, sizeof(*nodes)));

	if (size) {
		memcpy(nodes, h->nodes, size);
		memset(h->nodes, POISON, size);
	}
	free(h->nodes);
	h->nodes = nodes;
	return &nodes[h->node_count++];
}

static void plan_append(struct tfl_ints **plan, int index)
{
	int size = (*plan)->size;

	*plan = need(realloc(*plan, sizeof(**plan) + ((size_t)size + 1) * sizeof(int)));
	(*plan)->data[size] = index;
	(*plan)->size = size + 1;
}

static int part_replace(struct host *h, const struct tfl_delegate_params *part,
			const struct registration_short *r, struct tfl_delegate *d)
{
	struct tfl_delegate_params *params = need(malloc(sizeof(*params)));
	struct host_node *n = node_append(h);
	int index = h->node_count - 1;

	*params = *part;
	params->delegate = d;
	n->delegated = true;
	n->node = (struct tfl_node){.inputs = ints_copy(part->input_tensors),
				    .outputs = ints_copy(part->output_tensors),
				    .delegate = d};
	n->registration = (struct tfl_registration){
		.init = r->init,
		.free = r->free,
		.prepare = r->prepare,
		.invoke = r->invoke,
		.profiling_string = r->profiling_string,
		.builtin_code = r->builtin_code,
		.custom_name = r->custom_name,
	};
	for (int i = 0; i < part->nodes_to_replace->size; i++)
		h->nodes[part->nodes_to_replace->data[i]].replaced = true;
	for (int i = 0; i < part->output_tensors->size; i++)
		h->tensors[part->output_tensors->data[i]].delegate = d;
	h->nodes[index].node.user_data = r->init(h->ctx, (const char *)params, 0);
	free(params);
	return index;
}

static int replace(struct tfl_context *ctx, const struct registration_short *r,
		   const struct tfl_ints *nodes, struct tfl_delegate *d)
{
	struct host *h = host_of(ctx);
	struct tfl_ints *plan = ints_empty(0);
	struct tfl_delegate_params *parts;
	int count = partition(h, nodes, false, &parts);

	plan_overwrite(h);
	if (!r->custom_name || !r->init || !r->free || !r->prepare || !r->invoke) {
		context_error(ctx, "the registration lacks a function or its name\n");
		parts_free(parts, count);
		free(plan);
		return TFL_ERROR;
	}
	for (int i = 0; i < count; i++) {
		const struct tfl_ints *list = parts[i].nodes_to_replace;

		if (ints_have(nodes, list->data[0]))
			plan_append(&plan, part_replace(h, &parts[i], r, d));
		else
			for (int j = 0; j < list->size; j++)
				plan_append(&plan, list->data[j]);
	}
	free(h->plan);
	h->plan = plan;
	parts_free(parts, count);
	return TFL_OK;
}

static int replace_short(struct tfl_context *ctx, struct registration_short r,
			 const struct tfl_ints *nodes, struct tfl_delegate *d)
{
	return replace(ctx, &r, nodes, d);
}

static bool is_zero(const void *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (((const uint8_t *)bytes)[i])
			return false;
	return true;
}

static int replace_now(struct tfl_context *ctx, struct registration_now r,
		       const struct tfl_ints *nodes, struct tfl_delegate *d)
{
	if (r.registration_external || r.async_kernel || r.inplace_operator) {
		context_error(ctx, "the registration asks for what it does not have\n");
		return TFL_ERROR;
	}
	return replace(ctx, &r.old, nodes, d);
}

static int replace_long(struct tfl_context *ctx, struct registration_long r,
			const struct tfl_ints *nodes, struct tfl_delegate *d)
{
	if (!is_zero(r.more, sizeof(r.more))) {
		context_error(ctx, "members of a later version are not zero\n");
		return TFL_ERROR;
	}
	return replace_now(ctx, r.now, nodes, d);
}

static void set_bytes(struct tfl_tensor *t)
{
	static const uint8_t width[] = {
		[TFL_FLOAT32] = 4, [TFL_INT32] = 4, [TFL_UINT8] = 1, [TFL_INT64] = 8,
		[TFL_BOOL] = 1,    [TFL_INT16] = 2, [TFL_INT8] = 1};

	t->bytes = t->type < (int)sizeof(width) ? width[t->type] : 0;
	for (int i = 0; i < t->dims->size; i++)
		t->bytes *= (size_t)t->dims->data[i];
}

static void memory_give(struct tfl_tensor *t)
{
	free(t->data);
	t->data = need(aligned_alloc(64, (t->bytes + 64) / 64 * 64));
	memset(t->data, POISON, t->bytes);
}

/* Takes size, as the interpreter does.  A dynamic tensor gets its memory here, the others
 * once all kernels have prepared. */
static int context_resize(struct tfl_context *ctx, struct tfl_tensor *tensor,
			  struct tfl_ints *size)
{
	if (host_of(ctx)->phase != PHASE_PREPARE || is_constant(tensor)) {
		context_error(ctx, "ResizeTensor('%s') is not allowed now\n",
			      tensor->name);
		free(size);
		return TFL_ERROR;
	}
	free(tensor->dims);
	tensor->dims = size;
	set_bytes(tensor);
	if (tensor->allocation_type == TFL_DYNAMIC)
		memory_give(tensor);
	return TFL_OK;
}

/* ---- graphs ----------------------------------------------------------------------- */

struct host *host_make(enum host_version version)
{
	/* Types by value differ in length: this is what the delegate's ABI has to stand.
	 */
	void (*const functions[])(void) = {(void (*)(void))replace_short,
					   (void (*)(void))replace_now,
					   (void (*)(void))replace_long};
	struct host *h = need(calloc(1, sizeof(*h)));

	h->version = version;
	h->ctx = need(malloc(sizeof(*h->ctx) + POISON_LEN));
	memset(h->ctx, POISON, sizeof(*h->ctx) + POISON_LEN);
	h->ctx->tensors_size = 0;
	h->ctx->tensors = NULL;
	h->ctx->impl = h;
	h->ctx->GetExecutionPlan = context_plan;
	h->ctx->ResizeTensor = context_resize;
	h->ctx->ReportError = context_error;
	h->ctx->GetNodeAndRegistration = context_node;
	h->ctx->PreviewDelegatePartitioning = context_preview;
	memcpy(&h->ctx->ReplaceNodeSubsetsWithDelegateKernels, &functions[version],
	       sizeof(functions[version]));
	h->plan = ints_empty(0);
	h->inputs = ints_empty(0);
	h->outputs = ints_empty(0);
	return h;
}

int host_add_tensor(struct host *h, const struct host_tensor *from)
{
	size_t count = (size_t)h->tensor_count + 1;
	struct tfl_tensor *t;

	h->tensors = need(realloc(h->tensors, count * sizeof(*h->tensors)));
	t = &h->tensors[h->tensor_count];
	*t = (struct tfl_tensor){
		.type = from->type,
		.name = strdup(from->name ? from->name : ""),
		.allocation_type = from->data         ? TFL_MMAP_RO
				   : from->allocation ? from->allocation
						      : TFL_ARENA_RW,
		.buffer_handle = -1,
		.is_variable = from->variable,
		.dims = ints_empty(from->rank),
	};
	t->dims->size = from->rank;
	if (from->rank)
		memcpy(t->dims->data, from->dims, (size_t)from->rank * sizeof(int));
	set_bytes(t);
	if (from->data)
		t->data = (void *)(uintptr_t)from->data;
	if (from->scale != 0) {
		float scale = from->scale;
		int32_t zero = from->zero_point;

		host_quantize(h, h->tensor_count, &scale, 1, &zero, 1, 0);
	}
	h->ctx->tensors = h->tensors;
	h->ctx->tensors_size = count;
	return h->tensor_count++;
}

void host_quantize(struct host *h, int tensor, const float *scales, int scale_count,
		   const int32_t *zeros, int zero_count, int dimension)
{
	struct tfl_affine *q = need(calloc(1, sizeof(*q)));
	struct tfl_tensor *t = &h->tensors[tensor];

	q->scale = need(malloc(sizeof(*q->scale) + (size_t)scale_count * sizeof(float)));
	q->scale->size = scale_count;
	memcpy(q->scale->data, scales, (size_t)scale_count * sizeof(float));
	q->zero_point = ints_empty(zero_count);
	q->zero_point->size = zero_count;
	memcpy(q->zero_point->data, zeros, (size_t)zero_count * sizeof(int));
	q->quantized_dimension = dimension;
	t->quantization.type = TFL_AFFINE;
	t->quantization.params = q;
}

void host_open(struct host *h, int tensor, uint32_t open)
{
	struct tfl_tensor *t = &h->tensors[tensor];
	struct tfl_ints *signature = ints_copy(t->dims);

	for (int i = 0; i < signature->size; i++)
		if (open >> i & 1)
			signature->data[i] = -1;
	free((void *)t->dims_signature);
	t->dims_signature = signature;
}

void host_add_node(struct host *h, int code, int version, const char *custom,
		   const int *inputs, const int *outputs, void *params,
		   host_kernel kernel)
{
	struct host_node *n = node_append(h);

	n->node = (struct tfl_node){.inputs = ints_of(inputs),
				    .outputs = ints_of(outputs),
				    .builtin_data = params};
	n->registration.builtin_code = code;
	n->registration.version = version;
	n->registration.custom_name = custom;
	n->kernel = kernel;
	plan_append(&h->plan, h->node_count - 1);
}

void host_set_ports(struct host *h, const int *inputs, const int *outputs)
{
	free(h->inputs);
	free(h->outputs);
	h->inputs = ints_of(inputs);
	h->outputs = ints_of(outputs);
}

void host_preserve_all(struct host *h)
{
	h->preserve_all = true;
}

/* ---- running ---------------------------------------------------------------------- */

int host_apply(struct host *h, struct tfl_delegate *d)
{
	int rc;

	h->phase = PHASE_DELEGATE;
	rc = d->Prepare(h->ctx, d);
	h->phase = PHASE_IDLE;
	return rc;
}

/* Give memory to tensors that the plan's nodes and the caller see, and to no others.
 * Dynamic ones have theirs. */
static void memory_renew(struct host *h)
{
	bool *seen = need(calloc((size_t)h->tensor_count + 1, sizeof(*seen)));

	for (int i = 0; i < h->inputs->size; i++)
		seen[h->inputs->data[i]] = true;
	for (int i = 0; i < h->plan->size; i++) {
		const struct tfl_node *n = &h->nodes[h->plan->data[i]].node;

		for (int j = 0; j < n->inputs->size; j++)
			if (n->inputs->data[j] >= 0)
				seen[n->inputs->data[j]] = true;
		for (int j = 0; j < n->outputs->size; j++)
			seen[n->outputs->data[j]] = true;
	}
	for (int i = 0; i < h->tensor_count; i++) {
		struct tfl_tensor *t = &h->tensors[i];

		if (is_constant(t) || t->allocation_type == TFL_DYNAMIC)
			continue;
		if (seen[i]) {
			memory_give(t);
			continue;
		}
		free(t->data);
		t->data = NULL;
	}
	free(seen);
}

int host_allocate(struct host *h)
{
	int rc = TFL_OK;

	h->phase = PHASE_PREPARE;
	for (int i = 0; i < h->plan->size && !rc; i++) {
		struct host_node *n = &h->nodes[h->plan->data[i]];

		if (n->registration.prepare)
			rc = n->registration.prepare(h->ctx, &n->node);
	}
	h->phase = PHASE_IDLE;
	if (!rc)
		memory_renew(h);
	return rc;
}

void host_resize_batch(struct host *h, int from, int to)
{
	for (int i = 0; i < h->tensor_count; i++) {
		struct tfl_tensor *t = &h->tensors[i];

		if (is_constant(t) || !t->dims->size || t->dims->data[0] != from)
			continue;
		t->dims->data[0] = to;
		set_bytes(t);
	}
}

void host_resize(struct host *h, int tensor, const int *dims)
{
	struct tfl_tensor *t = &h->tensors[tensor];

	memcpy(t->dims->data, dims, (size_t)t->dims->size * sizeof(*dims));
	set_bytes(t);
}

int host_invoke(struct host *h)
{
	int rc = TFL_OK;

	h->phase = PHASE_INVOKE;
	for (int i = 0; i < h->plan->size && !rc; i++) {
		struct host_node *n = &h->nodes[h->plan->data[i]];

		if (n->registration.invoke)
			rc = n->registration.invoke(h->ctx, &n->node);
		else if (n->kernel)
			n->kernel(h, &n->node);
		else
			rc = TFL_ERROR;
	}
	h->phase = PHASE_IDLE;
	return rc;
}

static void tensor_free(struct tfl_tensor *t)
{
	struct tfl_affine *q = t->quantization.params;

	if (!is_constant(t))
		free(t->data);
	if (q) {
		free(q->scale);
		free(q->zero_point);
	}
	free(q);
	free(t->dims);
	free((void *)t->dims_signature);
	free((void *)(uintptr_t)t->name);
}

void host_free(struct host *h)
{
	if (!h)
		return;
	for (int i = 0; i < h->node_count; i++) {
		struct host_node *n = &h->nodes[i];

		if (n->delegated)
			n->registration.free(h->ctx, n->node.user_data);
		free(n->node.inputs);
		free(n->node.outputs);
		free(n->node.builtin_data);
	}
	for (int i = 0; i < h->tensor_count; i++)
		tensor_free(&h->tensors[i]);
	parts_free(h->preview, h->preview_count);
	free(h->nodes);
	free(h->tensors);
	free(h->plan);
	free(h->plan_given);
	free(h->inputs);
	free(h->outputs);
	free(h->ctx);
	free(h);
}

/* ---- questions -------------------------------------------------------------------- */

struct tfl_context *host_context(struct host *h)
{
	return h->ctx;
}

const struct tfl_ints *host_inputs(const struct host *h)
{
	return h->inputs;
}

const struct tfl_ints *host_outputs(const struct host *h)
{
	return h->outputs;
}

struct tfl_tensor *host_tensor(struct host *h, int tensor)
{
	return &h->tensors[tensor];
}

const char *host_errors(struct host *h)
{
	memcpy(h->given, h->errors, sizeof(h->given));
	h->errors[0] = '\0';
	return h->given;
}

uint32_t host_delegated(const struct host *h, uint32_t *left, uint32_t *partitions)
{
	uint32_t taken = 0;

	*left = *partitions = 0;
	for (int i = 0; i < h->node_count; i++) {
		taken += h->nodes[i].replaced;
		*partitions += h->nodes[i].delegated;
		*left += !h->nodes[i].replaced && !h->nodes[i].delegated;
	}
	return taken;
}
