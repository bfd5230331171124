/* SPDX-License-Identifier: Apache-2.0 */
/* graph.c - nodes of the interpreter as a model of libnpuc. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plug.h"

bool tensor_constant(const struct tfl_tensor *t)
{
	return (t->allocation_type == TFL_MMAP_RO ||
		t->allocation_type == TFL_PERSISTENT_RO) &&
	       t->data;
}

/* ---- nodes ------------------------------------------------------------------------ */

int items_read(struct tfl_context *ctx, const struct tfl_ints *nodes, struct item *items)
{
	for (int i = 0; i < nodes->size; i++) {
		struct tfl_registration *r = NULL;
		struct tfl_node *n = NULL;

		if (ctx->GetNodeAndRegistration(ctx, nodes->data[i], &n, &r) || !n || !r)
			return -EIO;
		items[i] = (struct item){
			.index = nodes->data[i],
			.code = r->builtin_code,
			.version = r->version,
			.custom = r->custom_name,
			.inputs = n->inputs,
			.outputs = n->outputs,
			.builtin = n->builtin_data,
		};
	}
	return 0;
}

void item_name(const struct item *item, char *name, size_t size)
{
	const struct tfl_operator *op = operator_find(item->code);

	if (item->code == BUILTIN_CUSTOM || item->code == BUILTIN_DELEGATE)
		snprintf(name, size, "%s %.40s", operator_name(op),
			 item->custom ? item->custom : "");
	else if (op)
		snprintf(name, size, "%s", operator_name(op));
	else
		snprintf(name, size, "operator %d", (int)item->code);
}

static const struct tfl_tensor *tensor_of(const struct tfl_context *ctx,
					  const struct tfl_ints *list, int position)
{
	int t = position < list->size ? list->data[position] : -1;

	return t < 0 || (size_t)t >= ctx->tensors_size ? NULL : &ctx->tensors[t];
}

static uint64_t elements(const struct tfl_tensor *t)
{
	uint64_t n = 1;

	for (int i = 0; t && t->dims && i < t->dims->size; i++)
		n *= t->dims->data[i] > 0 ? (uint64_t)t->dims->data[i] : 0;
	return t && t->dims ? n : 0;
}

static uint64_t dim(const struct tfl_tensor *t, int i)
{
	if (!t || !t->dims || i >= t->dims->size || t->dims->data[i] < 0)
		return 0;
	return (uint64_t)t->dims->data[i];
}

static uint64_t last_dim(const struct tfl_tensor *t)
{
	return t && t->dims && t->dims->size ? dim(t, t->dims->size - 1) : 0;
}

uint64_t item_macs(const struct tfl_context *ctx, const struct item *item)
{
	const struct tfl_tensor *x = tensor_of(ctx, item->inputs, 0);
	const struct tfl_tensor *w = tensor_of(ctx, item->inputs, 1);
	const struct tfl_tensor *y = tensor_of(ctx, item->outputs, 0);
	const struct tfl_operator *op = operator_find(item->code);
	const char *name = op ? operator_name(op) : "";

	if (strcmp(name, "CONV_2D") == 0)
		return elements(y) * dim(w, 1) * dim(w, 2) * dim(w, 3);
	if (strcmp(name, "DEPTHWISE_CONV_2D") == 0)
		return elements(y) * dim(w, 1) * dim(w, 2);
	if (strcmp(name, "FULLY_CONNECTED") == 0)
		return elements(y) * last_dim(w);
	if (strcmp(name, "TRANSPOSE_CONV") == 0) /* inputs: shape, weights, data */
		return elements(tensor_of(ctx, item->inputs, 2)) * dim(w, 0) * dim(w, 1) *
		       dim(w, 2);
	if (strcmp(name, "BATCH_MATMUL") == 0) { /* either factor may be transposed */
		uint64_t rows =
			x && x->dims && x->dims->size > 1 ? dim(x, x->dims->size - 2) : 1;
		uint64_t kept =
			y && y->dims && y->dims->size > 1 ? dim(y, y->dims->size - 2) : 1;

		return elements(y) * (rows == kept ? last_dim(x) : rows);
	}
	return 0;
}

/* ---- shapes ----------------------------------------------------------------------- */

bool item_measures(const struct item *item)
{
	return (item->code == BUILTIN_SHAPE || item->code == BUILTIN_RANK) &&
	       item->inputs->size == 1 && item->outputs->size == 1 &&
	       item->inputs->data[0] >= 0 && item->outputs->data[0] >= 0;
}

static bool has(const struct tfl_ints *list, int tensor)
{
	for (int i = 0; i < list->size; i++)
		if (list->data[i] == tensor)
			return true;
	return false;
}

bool graph_measures(const struct item *items, uint32_t count, uint32_t i)
{
	if (!item_measures(&items[i]))
		return false;
	for (uint32_t k = 0; k < count; k++)
		if (has(items[k].outputs, items[i].inputs->data[0]))
			return false;
	return true;
}

bool graph_input(const struct tfl_context *ctx, const struct item *items, uint32_t count,
		 int tensor)
{
	if (tensor < 0 || tensor_constant(&ctx->tensors[tensor]))
		return false;
	for (uint32_t i = 0; i < count; i++)
		if (has(items[i].inputs, tensor) && !graph_measures(items, count, i))
			return true;
	return false;
}

struct tfl_ints *graph_shapes(const struct tfl_context *ctx, const struct item *items,
			      uint32_t count)
{
	struct tfl_ints *list =
		calloc(1, sizeof(*list) + (size_t)count * (NPUC_RANK + 1) * sizeof(int));

	for (uint32_t i = 0; list && i < count; i++) {
		const struct tfl_ints *dims;

		if (!graph_measures(items, count, i))
			continue;
		dims = ctx->tensors[items[i].inputs->data[0]].dims;
		list->data[list->size++] = dims->size;
		for (int k = 0; k < dims->size && k < NPUC_RANK; k++)
			list->data[list->size++] = dims->data[k];
	}
	return list;
}

/* ---- a model ---------------------------------------------------------------------- */

struct maker {
	const struct tfl_context *ctx;
	const struct item *items;
	uint32_t count;
	struct npuc_builder *b;
	uint32_t *numbers; /* of the model's tensors, by tensor of the interpreter */
	bool *made;        /* by tensor of the interpreter: an item makes it */
	bool folds;        /* some item is a tensor's shape */
	char *why;
};

static int fail(struct maker *m, int err, const char *text)
{
	snprintf(m->why, NPUC_WHY, "%s", text);
	return err;
}

/* Return a bit for each dimension of a result whose size the interpreter does not know:
 * those that the file leaves open, and all where sizes follow from computed shapes. */
static uint32_t open_dims(const struct maker *m, const struct tfl_tensor *t)
{
	const struct tfl_ints *signature = t->dims_signature;
	uint32_t open = 0;

	for (int i = 0; i < t->dims->size; i++)
		if (m->folds || (signature && signature->size == t->dims->size &&
				 signature->data[i] < 0))
			open |= 1u << i;
	return open;
}

static int add_tensor(struct maker *m, int tensor, uint32_t *number)
{
	const struct tfl_tensor *t = &m->ctx->tensors[tensor];
	const struct tfl_affine *q =
		t->quantization.type == TFL_AFFINE ? t->quantization.params : NULL;
	struct npuc_tensor_desc d = {
		.name = t->name,
		.type = operator_type(t->type),
		.variable = t->is_variable,
	};

	if (!t->dims || t->dims->size < 0 || t->dims->size > NPUC_RANK)
		return fail(m, -ENOTSUP, "a tensor has too many dimensions");
	if (t->sparsity)
		return fail(m, -ENOTSUP, "a constant is sparse");
	d.rank = (uint32_t)t->dims->size;
	d.dims = t->dims->data;
	if (q && q->scale && q->scale->size > 0) {
		d.scales = (uint32_t)q->scale->size;
		d.scale = q->scale->data;
		d.channel_dim = (uint32_t)q->quantized_dimension;
		if (q->zero_point && q->zero_point->size > 0) {
			d.zero_points = (uint32_t)q->zero_point->size;
			d.zero_point = q->zero_point->data;
		}
	}
	if (m->made[tensor]) {
		d.open = open_dims(m, t);
	} else if (tensor_constant(t)) {
		d.data = t->data;
		d.bytes = t->bytes;
	}
	return npuc_builder_tensor(m->b, &d, number, m->why);
}

/* Return the model's number of a tensor of the interpreter, which is added if it is new.
 * -1 stands for an input that is left out. */
static int number_of(struct maker *m, int tensor, uint32_t *number)
{
	int rc = 0;

	*number = NPUC_NONE;
	if (tensor < 0)
		return 0;
	if ((size_t)tensor >= m->ctx->tensors_size)
		return fail(m, -EINVAL, "a node has a tensor that does not exist");
	if (m->numbers[tensor] == NPUC_NONE)
		rc = add_tensor(m, tensor, &m->numbers[tensor]);
	*number = m->numbers[tensor];
	return rc;
}

/* Translate a list of tensors; only: those alone that are inputs of the model. */
static int numbers_of(struct maker *m, const struct tfl_ints *list, bool only,
		      uint32_t **numbers, uint32_t *count)
{
	int rc = 0;

	*count = 0;
	*numbers = calloc((size_t)list->size + 1, sizeof(**numbers));
	if (!*numbers)
		return fail(m, -ENOMEM, "no memory");
	for (int i = 0; !rc && i < list->size; i++) {
		if (only && !graph_input(m->ctx, m->items, m->count, list->data[i]))
			continue;
		rc = number_of(m, list->data[i], &(*numbers)[(*count)++]);
	}
	return rc;
}

static int add_item(struct maker *m, const struct item *item)
{
	const struct tfl_operator *op = operator_find(item->code);
	struct npuc_op_desc d = {.code = (uint32_t)item->code, .version = item->version};
	uint32_t *ins = NULL, *outs = NULL, layer;
	struct attrs attrs;
	int rc;

	operator_attrs(op, item->builtin, &attrs);
	d.attrs = attrs.list;
	d.attr_count = attrs.count;
	rc = numbers_of(m, item->inputs, false, &ins, &d.input_count);
	if (!rc)
		rc = numbers_of(m, item->outputs, false, &outs, &d.output_count);
	d.inputs = ins;
	d.outputs = outs;
	if (!rc)
		rc = npuc_builder_op(m->b, &d, &layer, m->why);
	free(ins);
	free(outs);
	return rc;
}

/* Add the shape, or the rank, of a tensor that comes from outside as a constant. */
static int add_shape(struct maker *m, const struct item *item)
{
	const struct tfl_tensor *x = &m->ctx->tensors[item->inputs->data[0]];
	int out = item->outputs->data[0];
	struct npuc_tensor_desc d = {.name = m->ctx->tensors[out].name,
				     .type = operator_type(m->ctx->tensors[out].type)};
	bool rank = item->code == BUILTIN_RANK;
	int32_t count = rank ? 1 : x->dims->size, width = 4;
	uint8_t data[NPUC_RANK * 8] = {0};

	if (d.type != NPUC_INT32 && d.type != NPUC_INT64)
		return fail(m, -ENOTSUP, "the result is neither int32 nor int64");
	if (x->dims->size > NPUC_RANK)
		return fail(m, -ENOTSUP, "a tensor has too many dimensions");
	if (d.type == NPUC_INT64)
		width = 8;
	for (int i = 0; i < count; i++) /* no size is negative */
		memcpy(data + (ptrdiff_t)i * width,
		       rank ? &x->dims->size : &x->dims->data[i], 4);
	d.rank = !rank;
	d.dims = &count;
	d.data = data;
	d.bytes = (uint64_t)count * (uint64_t)width;
	return npuc_builder_tensor(m->b, &d, &m->numbers[out], m->why);
}

static int add_items(struct maker *m, uint32_t *refused)
{
	int rc = 0;

	for (uint32_t i = 0; i < m->count; i++) {
		m->folds |= item_measures(&m->items[i]);
		for (int k = 0; k < m->items[i].outputs->size; k++) {
			int t = m->items[i].outputs->data[k];

			if (t >= 0 && (size_t)t < m->ctx->tensors_size)
				m->made[t] = true;
		}
	}
	for (uint32_t i = 0; !rc && i < m->count; i++) {
		rc = graph_measures(m->items, m->count, i) ? add_shape(m, &m->items[i])
							   : add_item(m, &m->items[i]);
		if (rc)
			*refused = i;
	}
	return rc;
}

static int make_model(struct maker *m, const struct tfl_ints *ins,
		      const struct tfl_ints *outs, struct npuc_model **model)
{
	uint32_t *in = NULL, *out = NULL, in_count, out_count;
	int rc = numbers_of(m, ins, true, &in, &in_count);

	if (!rc)
		rc = numbers_of(m, outs, false, &out, &out_count);
	if (!rc)
		rc = npuc_builder_model(m->b, in, in_count, out, out_count, model,
					m->why);
	free(in);
	free(out);
	return rc;
}

int graph_model(const struct tfl_context *ctx, const struct item *items, uint32_t count,
		const struct tfl_ints *ins, const struct tfl_ints *outs,
		struct npuc_model **model, uint32_t *refused, char why[NPUC_WHY])
{
	struct maker m = {.ctx = ctx, .items = items, .count = count, .why = why};
	int rc;

	*model = NULL;
	*refused = UINT32_MAX;
	m.numbers = malloc((ctx->tensors_size + 1) * sizeof(*m.numbers));
	m.made = calloc(ctx->tensors_size + 1, sizeof(*m.made));
	if (!m.numbers || !m.made) {
		free(m.numbers);
		free(m.made);
		return fail(&m, -ENOMEM, "no memory");
	}
	memset(m.numbers, 0xff, (ctx->tensors_size + 1) * sizeof(*m.numbers));
	rc = npuc_builder_create("model", &m.b, why);
	if (!rc)
		rc = add_items(&m, refused);
	if (!rc)
		rc = make_model(&m, ins, outs, model);
	npuc_builder_free(m.b);
	free(m.numbers);
	free(m.made);
	return rc;
}
