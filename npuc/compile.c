/* SPDX-License-Identifier: Apache-2.0 */
/* compile.c - a model becomes a program: lowered, placed, emitted. */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hal/hal.h>
#include <hal/npu.h>

#include "lower.h"
#include "order.h"
#include "plan.h"

#define BUFFER_MAX (UINT64_C(1) << 31)
#define LAYERS_MAX 4000u /* kernels of an image */
#define ARRAY      16u   /* rows and columns that estimates are for */
#define PANEL_ROWS 512u  /* rows the accumulators hold */
#define LANES      16u   /* of arithmetic, element by element */
#define PIECE      32u   /* bytes moved, looked up or pooled a cycle */

struct compile {
	struct lowered l;
	const struct npuc_options *o;
	struct npuc_program *p;
	char *why;
	struct npuc_place *places; /* by value, of roots */
	struct hal_npu_builder *b;
	uint32_t *const_ids;                    /* by value; 0: not in the image yet */
	uint32_t output_id, input_id, arena_id; /* of the kernel in work */
	uint32_t state_id;
	uint64_t state_bytes;
};

static int out_of_memory(struct compile *c)
{
	return npuc_fail(c->why, ENOMEM, "%s: out of memory", c->l.m->file);
}

static uint64_t align_up(uint64_t x)
{
	return (x + NPUC_ALIGN - 1) / NPUC_ALIGN * NPUC_ALIGN;
}

/* ---- places ----------------------------------------------------------------------- */

/* One behind the other, each tensor once. */
static int place_ports(struct compile *c, const uint32_t *values, uint32_t count,
		       enum npuc_where where, uint64_t *bytes)
{
	uint64_t at = 0;

	for (uint32_t i = 0; i < count; i++) {
		uint32_t root = npuc_root(&c->l, values[i]);
		struct npuc_place *p = &c->places[root];

		if (p->where == where)
			continue;
		*p = (struct npuc_place){where, at, c->l.values[root].bytes};
		at += align_up(p->bytes);
	}
	*bytes = at;
	if (at <= BUFFER_MAX)
		return 0;
	return npuc_fail(c->why, ENOTSUP,
			 "%s: %llu bytes of %s; at most 2^31 are supported", c->l.m->file,
			 (unsigned long long)at,
			 where == NPUC_INPUT ? "input" : "output");
}

static void use(struct compile *c, struct plan_item *items, uint32_t v, uint32_t step)
{
	struct plan_item *item;

	if (v == NPUC_NONE || c->l.values[v].data)
		return;
	v = npuc_root(&c->l, v);
	if (c->places[v].where == NPUC_INPUT || c->places[v].where == NPUC_OUTPUT ||
	    c->l.values[v].state)
		return;
	item = &items[v];
	if (!item->bytes) {
		item->bytes = c->l.values[v].bytes;
		item->first = c->o->keep ? 0 : step;
		item->last = item->first;
		c->places[v].where = NPUC_ARENA;
	}
	item->last = c->o->keep ? UINT32_MAX : step;
}

/* An operation's results never lie on its operands, so that a launch that was dropped in
 * the middle can run again: first and last step count as in use. */
static int place_arena(struct compile *c)
{
	struct lowered *l = &c->l;
	struct plan_item *items = calloc(l->value_count, sizeof(*items)), *packed;
	uint32_t count = 0;
	uint64_t peak = 0;
	int rc;

	packed = calloc((size_t)l->value_count + 1, sizeof(*packed));
	if (!items || !packed) {
		rc = out_of_memory(c);
		goto out;
	}
	for (uint32_t i = 0; i < l->step_count; i++) {
		use(c, items, l->steps[i].a, i);
		use(c, items, l->steps[i].b, i);
		use(c, items, l->steps[i].d, i);
	}
	for (uint32_t v = 0; v < l->value_count; v++)
		if (items[v].bytes)
			packed[count++] = items[v];
	rc = npuc_plan(packed, count, &peak);
	if (rc) {
		rc = out_of_memory(c);
		goto out;
	}
	count = 0;
	for (uint32_t v = 0; v < l->value_count; v++)
		if (items[v].bytes) {
			c->places[v].offset = packed[count++].offset;
			c->places[v].bytes = items[v].bytes;
		}
	c->p->arena_bytes = align_up(peak);
	if (peak > BUFFER_MAX)
		rc = npuc_fail(
			c->why, ENOTSUP,
			"%s: activations take %llu bytes; at most 2^31 are supported",
			l->m->file, (unsigned long long)peak);
out:
	free(items);
	free(packed);
	return rc;
}

/* Variables, in memory of their own. */
static int place_state(struct compile *c)
{
	for (uint32_t i = 0; i < c->l.variable_count; i++) {
		uint32_t v = c->l.variables[i].value;

		if (v == NPUC_NONE)
			continue;
		c->places[v].offset = c->state_bytes;
		c->places[v].bytes = c->l.values[v].bytes;
		c->state_bytes += align_up(c->l.values[v].bytes);
	}
	c->p->state = c->state_bytes != 0;
	if (c->state_bytes <= BUFFER_MAX)
		return 0;
	return npuc_fail(c->why, ENOTSUP,
			 "%s: variables take %llu bytes; at most 2^31 are supported",
			 c->l.m->file, (unsigned long long)c->state_bytes);
}

/* In the file's order and in one that should need less; the better of the two stays.
 * Variables are read and assigned in the file's order alone. */
static int order_and_place(struct compile *c)
{
	struct lowered *l = &c->l;
	struct step *file_order;
	uint64_t peak;
	int rc = place_arena(c);

	if (rc || c->o->keep || c->p->state)
		return rc;
	peak = c->p->arena_bytes;
	file_order = calloc((size_t)l->step_room + 1, sizeof(*file_order));
	if (!file_order)
		return out_of_memory(c);
	if (l->step_count)
		memcpy(file_order, l->steps, l->step_count * sizeof(*file_order));
	rc = npuc_order(l) ? out_of_memory(c) : place_arena(c);
	if (!rc && c->p->arena_bytes >= peak) {
		free(l->steps);
		l->steps = file_order;
		return place_arena(c);
	}
	free(file_order);
	return rc;
}

static int place_all(struct compile *c)
{
	const struct npuc_model *m = c->l.m;
	int rc;

	c->places = calloc(c->l.value_count, sizeof(*c->places));
	c->const_ids = calloc(c->l.value_count, sizeof(*c->const_ids));
	c->p->places = calloc((size_t)m->tensor_count + 1, sizeof(*c->p->places));
	if (!c->places || !c->const_ids || !c->p->places)
		return out_of_memory(c);
	rc = place_ports(c, c->l.inputs, c->l.input_count, NPUC_INPUT,
			 &c->p->input_bytes);
	if (!rc)
		rc = place_ports(c, c->l.outputs, c->l.output_count, NPUC_OUTPUT,
				 &c->p->output_bytes);
	if (!rc)
		rc = place_state(c);
	if (!rc)
		rc = order_and_place(c);
	for (uint32_t i = 0; !rc && i < m->tensor_count; i++) {
		if (c->l.values[i].data)
			c->p->places[i] = (struct npuc_place){NPUC_CONSTANT, 0,
							      c->l.values[i].bytes};
		else
			c->p->places[i] = c->places[npuc_root(&c->l, i)];
	}
	c->p->tensor_count = rc ? 0 : m->tensor_count;
	return rc;
}

/* ---- work of a step --------------------------------------------------------------- */

static uint64_t pieces(uint64_t all, uint64_t each)
{
	return (all + each - 1) / each;
}

/* m rows of the result, n wide, of products k long. */
static void matrix_work(uint64_t m, uint64_t n, uint64_t k, const struct npuc_options *o,
			struct npuc_layer *layer)
{
	uint32_t high = o->rows ? o->rows : ARRAY, wide = o->cols ? o->cols : ARRAY;
	uint64_t folds = pieces(k, high) * pieces(n, wide);

	/* A fold costs max(rows, array rows): the next one's weights load meanwhile. */
	for (uint64_t rows; m; m -= rows) {
		rows = m < PANEL_ROWS ? m : PANEL_ROWS;
		layer->cycles += folds * (rows < high ? high : rows);
	}
}

static void conv_work(const struct hal_npu_conv *op, const struct npuc_options *o,
		      struct npuc_layer *layer)
{
	uint64_t k = (uint64_t)op->kh * op->kw * (op->c / op->groups);

	matrix_work((uint64_t)op->oh * op->ow, op->n, k, o, layer);
}

/* Requests to memory, of which a slot makes one load and one store a cycle: rows of bytes
 * in pieces, so many loads for each store. */
static uint64_t requests(uint64_t rows, uint64_t bytes, uint64_t loads, uint64_t piece)
{
	return rows * pieces(bytes, piece) * loads;
}

static void step_work(const struct step *s, const struct npuc_options *o,
		      struct npuc_layer *layer)
{
	const struct hal_npu_pool *pool = &s->u.pool;
	uint64_t cycles = 0;

	switch (s->kind) {
	case STEP_CONV:
		conv_work(&s->u.conv, o, layer);
		break;
	case STEP_GEMM:
		matrix_work(s->u.gemm.m, s->u.gemm.n, s->u.gemm.k, o, layer);
		break;
	case STEP_ADD:
		cycles = requests(s->u.add.rows, s->u.add.bytes, 2, LANES);
		break;
	case STEP_MUL:
		cycles = requests(s->u.mul.rows, s->u.mul.bytes, 2, LANES);
		break;
	case STEP_MAXPOOL:
	case STEP_AVGPOOL:
		cycles = requests((uint64_t)pool->oh * pool->ow, pool->c,
				  (uint64_t)pool->kh * pool->kw, PIECE);
		break;
	case STEP_LUT:
		cycles = requests(1, s->u.lut.bytes, 1, PIECE);
		break;
	case STEP_SOFTMAX: /* two of its three passes take an element a cycle */
		cycles = requests(s->u.softmax.rows, s->u.softmax.cols, 2, 1);
		break;
	case STEP_COPY:
		cycles = requests(s->u.copy.rows, s->u.copy.bytes, 1, PIECE);
		break;
	case STEP_FILL:
		cycles = requests(1, s->u.fill.bytes, 1, PIECE);
		break;
	}
	layer->cycles += cycles;
}

static int make_layers(struct compile *c)
{
	const struct npuc_model *m = c->l.m;
	struct npuc_layer *layers = calloc(m->op_count, sizeof(*layers));
	uint32_t position = 0;

	if (!layers)
		return out_of_memory(c);
	c->p->layers = layers;
	c->p->layer_count = m->op_count;
	for (uint32_t i = 0; i < m->op_count; i++) {
		lower_operator_name(&m->ops[i], layers[i].operator_name);
		snprintf(layers[i].shape, sizeof(layers[i].shape), "%s", c->l.shapes[i]);
		layers[i].macs = c->l.macs[i];
		layers[i].output =
			m->ops[i].output_count ? m->ops[i].outputs[0] : NPUC_NONE;
	}
	for (uint32_t i = 0; i < c->l.step_count; i++) {
		struct npuc_layer *layer = &layers[c->l.steps[i].layer];

		if (i && c->l.steps[i].layer != c->l.steps[i - 1].layer)
			position++;
		layer->position = position;
		if (c->o->layers && !layer->kernel[0])
			snprintf(layer->kernel, sizeof(layer->kernel), "layer%u",
				 c->l.steps[i].layer);
		step_work(&c->l.steps[i], c->o, layer);
	}
	for (uint32_t i = 0; i < m->op_count; i++) {
		c->p->macs += layers[i].macs;
		c->p->cycles += layers[i].cycles;
	}
	return 0;
}

/* ---- emission --------------------------------------------------------------------- */

/* What a hal_npu_ function said, with the layer in front. */
static int refused(struct compile *c, int rc)
{
	return lower_fail(&c->l, -rc, "%s",
			  rc == -ENOMEM ? "out of memory" : hal_last_error());
}

/* Adds where value v lies to a place that so far is an offset within it. */
static int resolve(struct compile *c, uint32_t v, struct hal_npu_place *place)
{
	const struct value *value = &c->l.values[v];
	const struct npuc_place *p;

	if (value->data) {
		int rc = 0;

		if (!c->const_ids[v])
			rc = hal_npu_const(c->b, value->data, value->bytes,
					   &c->const_ids[v]);
		place->id = c->const_ids[v];
		return rc;
	}
	v = npuc_root(&c->l, v);
	p = &c->places[v];
	place->id = c->l.values[v].state      ? c->state_id
		    : p->where == NPUC_INPUT  ? c->input_id
		    : p->where == NPUC_OUTPUT ? c->output_id
					      : c->arena_id;
	place->offset += (uint32_t)p->offset;
	return 0;
}

/* Where in a step its operation has its places; 0: it has none there. */
#define PLACE(at) offsetof(struct step, u.at)
static const struct places_at {
	size_t a, b, d;
} places_of[] = {
	[STEP_CONV] = {PLACE(conv.a), 0, PLACE(conv.d)},
	[STEP_GEMM] = {PLACE(gemm.a), PLACE(gemm.b), PLACE(gemm.d)},
	[STEP_ADD] = {PLACE(add.a), PLACE(add.b), PLACE(add.d)},
	[STEP_MUL] = {PLACE(mul.a), PLACE(mul.b), PLACE(mul.d)},
	[STEP_MAXPOOL] = {PLACE(pool.a), 0, PLACE(pool.d)},
	[STEP_AVGPOOL] = {PLACE(pool.a), 0, PLACE(pool.d)},
	[STEP_LUT] = {PLACE(lut.a), 0, PLACE(lut.d)},
	[STEP_SOFTMAX] = {PLACE(softmax.a), 0, PLACE(softmax.d)},
	[STEP_COPY] = {PLACE(copy.a), 0, PLACE(copy.d)},
	[STEP_FILL] = {0, 0, PLACE(fill.d)},
};

static int resolve_at(struct compile *c, struct step *s, size_t at, uint32_t v)
{
	return at ? resolve(c, v, (void *)((char *)s + at)) : 0;
}

static int emit_step(struct compile *c, const struct step *from)
{
	const struct places_at *at = &places_of[from->kind];
	struct step s = *from;
	int rc = resolve_at(c, &s, at->a, s.a);

	if (!rc)
		rc = resolve_at(c, &s, at->b, s.b);
	if (!rc)
		rc = resolve_at(c, &s, at->d, s.d);
	if (rc)
		return rc;
	switch (s.kind) {
	case STEP_CONV:
		return hal_npu_conv(c->b, &s.u.conv);
	case STEP_GEMM:
		return hal_npu_gemm(c->b, &s.u.gemm);
	case STEP_ADD:
		return hal_npu_add(c->b, &s.u.add);
	case STEP_MUL:
		return hal_npu_mul(c->b, &s.u.mul);
	case STEP_MAXPOOL:
		return hal_npu_maxpool(c->b, &s.u.pool);
	case STEP_AVGPOOL:
		return hal_npu_avgpool(c->b, &s.u.pool);
	case STEP_LUT:
		return hal_npu_lut(c->b, &s.u.lut);
	case STEP_SOFTMAX:
		return hal_npu_softmax(c->b, &s.u.softmax);
	case STEP_COPY:
		return hal_npu_copy(c->b, &s.u.copy);
	case STEP_FILL:
		return hal_npu_fill(c->b, s.u.fill.d, s.u.fill.bytes, s.u.fill.pattern);
	}
	return -EINVAL;
}

/* A kernel with the program's arguments. */
static int begin_kernel(struct compile *c, const char *name)
{
	uint64_t arena = c->p->arena_bytes ? c->p->arena_bytes : NPUC_ALIGN;
	int rc = hal_npu_kernel(c->b, name);

	if (!rc)
		rc = hal_npu_arg(c->b, c->p->output_bytes, &c->output_id);
	if (!rc)
		rc = hal_npu_arg(c->b, c->p->input_bytes, &c->input_id);
	if (!rc && c->p->arena_arg)
		rc = hal_npu_arg(c->b, arena, &c->arena_id);
	else if (!rc && !c->arena_id)
		rc = hal_npu_scratch(c->b, arena, &c->arena_id);
	if (!rc && c->p->state && !c->state_id)
		rc = hal_npu_scratch(c->b, c->state_bytes, &c->state_id);
	return rc ? refused(c, rc) : 0;
}

/* Steps of one layer, or of all: NPUC_NONE. */
static int emit_kernel(struct compile *c, const char *name, uint32_t layer)
{
	int rc = begin_kernel(c, name);

	for (uint32_t i = 0; !rc && i < c->l.step_count; i++) {
		c->l.layer = c->l.steps[i].layer;
		if (layer != NPUC_NONE && layer != c->l.layer)
			continue;
		rc = emit_step(c, &c->l.steps[i]);
		if (rc)
			rc = npuc_note(&c->l, c->l.layer, refused(c, rc));
	}
	return rc;
}

/* The variables' first values. */
static int emit_init(struct compile *c)
{
	int rc = begin_kernel(c, "init");

	for (uint32_t i = 0; !rc && i < c->l.variable_count; i++) {
		const struct variable *v = &c->l.variables[i];
		const struct npuc_place *p = &c->places[v->value];
		struct hal_npu_copy copy = HAL_INIT(hal_npu_copy);

		if (!v->first)
			continue;
		copy.rows = 1;
		copy.bytes = (uint32_t)p->bytes;
		copy.d = (struct hal_npu_place){c->state_id, (uint32_t)p->offset};
		rc = hal_npu_const(c->b, v->first, p->bytes, &copy.a.id);
		if (!rc)
			rc = hal_npu_copy(c->b, &copy);
		if (rc)
			rc = refused(c, rc);
	}
	return rc;
}

static int emit(struct compile *c)
{
	int rc = hal_npu_builder_create(&c->b);

	c->l.layer = 0;
	if (rc)
		return refused(c, rc);
	if (c->o->layers && c->l.m->op_count > LAYERS_MAX)
		return npuc_fail(c->why, ENOTSUP,
				 "%s: %u layers; a program with one kernel per layer may "
				 "have at most %u",
				 c->l.m->file, c->l.m->op_count, LAYERS_MAX);
	rc = emit_kernel(c, "run", NPUC_NONE);
	if (!rc && c->p->state)
		rc = emit_init(c);
	for (uint32_t i = 0; !rc && i < c->p->layer_count; i++)
		if (c->p->layers[i].kernel[0])
			rc = emit_kernel(c, c->p->layers[i].kernel, i);
	if (rc)
		return rc;
	rc = hal_npu_build(c->b, &c->p->image, &c->p->image_size);
	c->p->memory_bytes = c->p->image_size + c->p->arena_bytes + c->state_bytes +
			     c->p->input_bytes + c->p->output_bytes;
	return rc ? refused(c, rc) : 0;
}

/* ---- ports ------------------------------------------------------------------------ */

static void fill_port(struct compile *c, uint32_t tensor, uint32_t device, uint32_t value,
		      struct npuc_port *port)
{
	const struct npuc_tensor *t = lower_t(&c->l, tensor);
	const struct npuc_tensor *d = lower_t(&c->l, device);

	snprintf(port->name, sizeof(port->name), "%.*s", NPUC_NAME - 1, t->name);
	port->type = t->type;
	port->device_type = d->type;
	port->tensor = tensor;
	port->rank = t->rank;
	memcpy(port->dims, t->dims, sizeof(port->dims));
	port->count = t->count;
	port->offset = c->places[npuc_root(&c->l, value)].offset;
	port->scale = d->scale;
	port->zero_point = d->zero_point;
}

static int make_ports(struct compile *c)
{
	const struct lowered *l = &c->l;
	struct npuc_program *p = c->p;

	p->inputs = calloc(l->input_count, sizeof(*p->inputs));
	p->outputs = calloc(l->output_count, sizeof(*p->outputs));
	if (!p->inputs || !p->outputs)
		return out_of_memory(c);
	p->input_count = l->input_count;
	p->output_count = l->output_count;
	for (uint32_t i = 0; i < l->input_count; i++)
		fill_port(c, l->model_inputs[i], l->inputs[i], l->inputs[i],
			  &p->inputs[i]);
	for (uint32_t i = 0; i < l->output_count; i++)
		fill_port(c, l->model_outputs[i], l->output_tensors[i], l->outputs[i],
			  &p->outputs[i]);
	memcpy(p->host, l->host_text, sizeof(p->host));
	return 0;
}

static int compile(struct compile *c, const struct npuc_model *m,
		   struct npuc_report *report, char *why)
{
	int rc;

	c->why = why;
	memset(c->p, 0, sizeof(*c->p));
	if (c->o->reference != NPUC_REFERENCE_CURRENT &&
	    c->o->reference != NPUC_REFERENCE_2_14)
		return npuc_fail(why, EINVAL,
				 "%s: options.reference is %u; it must be an "
				 "NPUC_REFERENCE_ value",
				 m->file, (unsigned)c->o->reference);
	c->p->arena_arg = c->o->keep || c->o->layers;
	rc = npuc_lower(m, c->o->reference, report, &c->l, why);
	if (c->l.other_types)
		return rc;
	if (!rc)
		npuc_fuse_pads(&c->l, c->o->keep);
	if (!rc && !c->o->keep)
		rc = npuc_fuse_tables(&c->l);
	if (!rc && !c->o->keep)
		rc = npuc_fuse_states(&c->l);
	if (!rc)
		rc = place_all(c);
	if (!rc)
		rc = make_layers(c);
	if (!rc)
		rc = make_ports(c);
	return rc ? rc : emit(c);
}

static void clean_up(struct compile *c)
{
	hal_npu_builder_destroy(c->b);
	free(c->places);
	free(c->const_ids);
	npuc_lowered_free(&c->l);
}

int npuc_compile(const struct npuc_model *m, const struct npuc_options *options,
		 struct npuc_program *program, char why[NPUC_WHY])
{
	static const struct npuc_options none;
	struct compile c = {.o = options ? options : &none, .p = program};
	int rc = compile(&c, m, NULL, why);

	clean_up(&c);
	if (rc)
		npuc_program_free(program);
	return rc;
}

static int by_layer(const void *a, const void *b)
{
	const struct npuc_obstacle *x = a, *y = b;

	/* NPUC_NONE + 1 is 0 */
	return (x->layer + 1 > y->layer + 1) - (x->layer + 1 < y->layer + 1);
}

static int begin_report(const struct npuc_model *m, struct npuc_report *r, char *why)
{
	*r = (struct npuc_report){.layer_count = m->op_count};
	r->by_layer = malloc(((size_t)m->op_count + 1) * sizeof(*r->by_layer));
	if (!r->by_layer)
		return npuc_fail(why, ENOMEM, "%s: out of memory", m->file);
	for (uint32_t i = 0; i < m->op_count; i++)
		r->by_layer[i] = NPUC_NONE;
	return 0;
}

/* Sort obstacles, and put their indices in place of their first layers.  What is only a
 * part of a table compiles with the layer that ends it. */
static void finish_report(const struct lowered *l, struct npuc_report *r)
{
	if (r->count)
		qsort(r->obstacles, r->count, sizeof(*r->obstacles), by_layer);
	for (uint32_t i = 0; i < r->layer_count; i++) {
		uint32_t group = l->group && !l->other_types ? l->group[i] : NPUC_NONE;
		uint32_t first = r->by_layer[i], k = 0;

		if (first == NPUC_NONE && group != NPUC_NONE && group > i)
			first = r->by_layer[group];
		while (first != NPUC_NONE && r->obstacles[k].layer != first)
			k++;
		if (first != NPUC_NONE)
			r->by_layer[i] = k;
		else if (l->other_types)
			r->by_layer[i] = 0; /* the obstacle of the whole model */
		else if (l->host && l->host[i])
			r->by_layer[i] = NPUC_LEFT;
	}
}

int npuc_check(const struct npuc_model *m, const struct npuc_options *options,
	       struct npuc_report *report, char why[NPUC_WHY])
{
	static const struct npuc_options none;
	struct npuc_program program = {0};
	struct compile c = {.o = options ? options : &none, .p = &program};
	int rc = begin_report(m, report, why);

	if (rc)
		return rc;
	rc = compile(&c, m, report, why);
	/* What stops everything is one more, as long as there is memory to say so. */
	if (rc)
		rc = npuc_note(&c.l, NPUC_NONE, rc);
	if (!rc)
		finish_report(&c.l, report);
	clean_up(&c);
	npuc_program_free(&program);
	if (rc)
		npuc_report_free(report);
	return rc;
}

void npuc_report_free(struct npuc_report *report)
{
	free(report->obstacles);
	free(report->by_layer);
	*report = (struct npuc_report){0};
}

/* Images of either origin are malloc'ed: hal_npu_image_free is free. */
void npuc_program_free(struct npuc_program *p)
{
	hal_npu_image_free(p->image);
	free(p->inputs);
	free(p->outputs);
	free(p->places);
	free(p->layers);
	memset(p, 0, sizeof(*p));
}
