/* SPDX-License-Identifier: Apache-2.0 */
/* lower_state.c - variables: what one inference leaves for the next. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lower.h"

/* Kinds of union BuiltinOptions, and fields of their tables. */
enum {
	OPTIONS_CALL_ONCE = 103,
	CALL_ONCE_GRAPH = 0,
	OPTIONS_VAR_HANDLE = 111,
	VAR_HANDLE_CONTAINER = 0,
	VAR_HANDLE_NAME = 1,
};

#define VARIABLES_MAX 4096u
#define NAME_SHOWN    80

/* ---- names ------------------------------------------------------------------------ */

/* A variable is the same in all graphs by the two strings that a handle is made of. */
static struct variable_name name_of(const struct npuc_model *m, const struct model_op *op)
{
	struct flat f = m->flat;
	struct variable_name n = {{0}, {0}};

	if (op->options_type != OPTIONS_VAR_HANDLE)
		return n;
	n.container = flat_vector(&f, op->options, VAR_HANDLE_CONTAINER, 1);
	n.name = flat_vector(&f, op->options, VAR_HANDLE_NAME, 1);
	return n;
}

static bool same_bytes(const struct lowered *l, struct flat_vector a,
		       struct flat_vector b)
{
	const uint8_t *data = l->m->bytes;

	return a.count == b.count &&
	       (!a.count || memcmp(data + a.at, data + b.at, a.count) == 0);
}

/* For error texts, printable. */
static const char *shown(const struct lowered *l, const struct variable *v,
			 char text[NAME_SHOWN + 1])
{
	size_t n = v->name.name.count < NAME_SHOWN ? v->name.name.count : NAME_SHOWN;

	for (size_t i = 0; i < n; i++) {
		uint8_t c = l->m->bytes[v->name.name.at + i];

		text[i] = (char)(c >= 0x20 && c < 0x7f ? c : '?');
	}
	text[n] = '\0';
	return text;
}

static int new_variable(struct lowered *l, struct variable with)
{
	struct variable *v = l->variables;

	if (l->variable_count == VARIABLES_MAX)
		return lower_fail(l, ENOTSUP, "more than %u variables are not supported",
				  VARIABLES_MAX);
	if (!v) {
		v = lower_own(l, VARIABLES_MAX * sizeof(*v));
		if (!v)
			return -ENOMEM;
		l->variables = v;
	}
	v[l->variable_count++] = with;
	return 0;
}

static int find_variable(struct lowered *l, struct variable_name name, uint32_t *index)
{
	const struct variable *v = l->variables;

	for (*index = 0; *index < l->variable_count; ++*index)
		if (!v[*index].own && same_bytes(l, v[*index].name.name, name.name) &&
		    same_bytes(l, v[*index].name.container, name.container))
			return 0;
	return new_variable(l, (struct variable){.name = name, .value = NPUC_NONE});
}

int lower_state(struct lowered *l, uint64_t bytes, const void *first, uint32_t *value)
{
	int rc = lower_value(l, bytes, NULL, value);

	if (rc)
		return rc;
	l->values[*value].state = true;
	l->values[*value].ready = true;
	return new_variable(
		l, (struct variable){.value = *value, .own = true, .first = first});
}

/* ---- values ----------------------------------------------------------------------- */

/* A variable has the type and size of the first tensor that is assigned or read. */
static int shape_variable(struct lowered *l, struct variable *v,
			  const struct npuc_tensor *t)
{
	char name[NAME_SHOWN + 1];
	int rc;

	if (v->value == NPUC_NONE) {
		rc = lower_value(l, t->bytes, NULL, &v->value);
		if (rc)
			return rc;
		v->type = t->type;
		l->values[v->value].state = true;
		l->values[v->value].ready = true;
		return 0;
	}
	if (v->type == t->type && l->values[v->value].bytes == t->bytes)
		return 0;
	return lower_fail(
		l, EINVAL,
		"variable '%s' has %llu bytes of %s, but tensor '%.80s' has %llu of %s",
		shown(l, v, name), (unsigned long long)l->values[v->value].bytes,
		npuc_type_name(v->type), t->name, (unsigned long long)t->bytes,
		npuc_type_name(t->type));
}

static int copy(struct lowered *l, uint32_t a, uint32_t d)
{
	struct step *s = lower_step(l, STEP_COPY, a, NPUC_NONE, d);

	if (!s)
		return -ENOMEM;
	s->u.copy = (struct hal_npu_copy){.size = (uint32_t)sizeof(s->u.copy),
					  .rows = 1,
					  .bytes = (uint32_t)l->values[d].bytes};
	return 0;
}

/* ---- the graph of the first values ------------------------------------------------- */

/* What stands for a variable: TensorFlow Lite reads it as one number. */
static bool is_handle(const struct npuc_tensor *t)
{
	return t->type == NPUC_RESOURCE && t->count == 1;
}

/* handles: by tensor of that graph, the variable's index and 1. */
static int assign_first(struct lowered *l, const struct npuc_model *m,
			const struct model_op *op, const uint32_t *handles)
{
	const struct npuc_tensor *t;
	struct variable *v;
	int rc;

	if (op->input_count != 2 || op->inputs[0] == NPUC_NONE ||
	    op->inputs[1] == NPUC_NONE || !handles[op->inputs[0]])
		return lower_fail(l, EINVAL, "an assignment has no variable or no value");
	v = &l->variables[handles[op->inputs[0]] - 1];
	t = &m->tensors[op->inputs[1]].t;
	if ((t->type != NPUC_INT8 && t->type != NPUC_UINT8 && t->type != NPUC_INT16) ||
	    !t->count)
		return lower_fail(
			l, ENOTSUP,
			"tensor '%.80s' is %s; a variable must be int8, uint8 or int16",
			t->name, t->count ? npuc_type_name(t->type) : "empty");
	if (!t->data)
		return lower_fail(l, ENOTSUP, "tensor '%.80s' must be constant", t->name);
	rc = shape_variable(l, v, t);
	v->first = t->data;
	v->assigned = true;
	return rc;
}

static int run_once(struct lowered *l, const struct npuc_model *m)
{
	uint32_t *handles = lower_own(l, (uint64_t)m->tensor_count * sizeof(*handles));
	char name[NPUC_OPERATOR_NAME];
	int rc = handles ? 0 : -ENOMEM;

	for (uint32_t i = 0; !rc && i < m->op_count; i++) {
		const struct model_op *op = &m->ops[i];
		uint32_t index;

		switch (op->code) {
		case NPUC_VAR_HANDLE:
			rc = find_variable(l, name_of(m, op), &index);
			if (!rc && op->output_count == 1 && op->outputs[0] != NPUC_NONE &&
			    is_handle(&m->tensors[op->outputs[0]].t))
				handles[op->outputs[0]] = index + 1;
			break;
		case NPUC_ASSIGN_VARIABLE:
			rc = assign_first(l, m, op, handles);
			break;
		default:
			lower_operator_name(op, name);
			rc = lower_fail(l, ENOTSUP,
					"%s is in the graph that it calls; only "
					"assignments of constants are supported there",
					name);
			break;
		}
	}
	return rc;
}

int lower_call_once(struct lowered *l)
{
	int32_t graph = lower_option(l, OPTIONS_CALL_ONCE, CALL_ONCE_GRAPH, 0);

	snprintf(l->shapes[l->layer], sizeof(l->shapes[0]), "when opened");
	if (graph < 1 || (uint32_t)graph > l->m->more_count)
		return lower_fail(
			l, EINVAL,
			"graph %d does not exist; the model has the graphs 1 to %u",
			graph, l->m->more_count);
	return run_once(l, l->m->more[graph - 1]);
}

/* ---- operators -------------------------------------------------------------------- */

int lower_var_handle(struct lowered *l)
{
	const struct model_op *op = lower_op(l);
	uint32_t index;
	int rc;

	if (op->output_count != 1 || op->outputs[0] == NPUC_NONE)
		return lower_fail(l, EINVAL, "%u outputs; exactly 1", op->output_count);
	if (!is_handle(lower_t(l, op->outputs[0])))
		return lower_fail(l, EINVAL, "tensor '%.80s' is not a single resource",
				  lower_t(l, op->outputs[0])->name);
	rc = find_variable(l, name_of(l->m, op), &index);
	if (!rc)
		l->values[op->outputs[0]].variable = index + 1;
	return rc;
}

/* Operand 0; NULL after lower_fail. */
static struct variable *take_variable(struct lowered *l, uint32_t operands)
{
	const struct model_op *op = lower_op(l);

	if (lower_counts(l, operands, operands))
		return NULL;
	if (op->inputs[0] == NPUC_NONE || !l->values[op->inputs[0]].variable) {
		lower_fail(l, EINVAL, "operand 0 is not a variable");
		return NULL;
	}
	return &l->variables[l->values[op->inputs[0]].variable - 1];
}

/* A copy: what comes later may be assigned while this is still in use. */
int lower_read_variable(struct lowered *l)
{
	char name[NAME_SHOWN + 1];
	struct variable *v = take_variable(l, 1);
	uint32_t d = 0;
	int rc = v ? lower_result16(l, &d) : -EINVAL;

	if (!rc && !v->assigned)
		rc = lower_fail(l, EINVAL, "variable '%s' is read before it is assigned",
				shown(l, v, name));
	if (!rc)
		rc = shape_variable(l, v, lower_t(l, d));
	if (rc)
		return rc;
	lower_describe(l, d, d);
	return copy(l, v->value, d);
}

int lower_assign_variable(struct lowered *l)
{
	struct variable *v = take_variable(l, 2);
	uint32_t a = 0;
	int rc = v ? lower_operand16(l, 1, &a) : -EINVAL;

	if (!rc)
		rc = shape_variable(l, v, lower_t(l, a));
	if (rc)
		return rc;
	lower_describe(l, a, a);
	v->assigned = true;
	return copy(l, a, v->value);
}

/* ---- copies that a variable does not need ------------------------------------------- */

/* The first and the last step that write or read a root; first > last: none. */
struct use {
	uint32_t first_write, last_write, first_read, last_read;
};

static void widen(uint32_t *first, uint32_t *last, uint32_t from, uint32_t to)
{
	if (from < *first)
		*first = from;
	if (to > *last)
		*last = to;
}

static void note_use(const struct lowered *l, struct use *uses, uint32_t step)
{
	const struct step *s = &l->steps[step];

	for (uint32_t k = 0; k < 2; k++) {
		uint32_t v = k ? s->b : s->a;

		if (v == NPUC_NONE)
			continue;
		v = npuc_root(l, v);
		widen(&uses[v].first_read, &uses[v].last_read, step, step);
	}
	if (s->d != NPUC_NONE) {
		uint32_t d = npuc_root(l, s->d);

		widen(&uses[d].first_write, &uses[d].last_write, step, step);
	}
}

/* Does the step copy one whole value to another? */
static bool copies_all(const struct lowered *l, const struct step *s)
{
	const struct hal_npu_copy *c = &s->u.copy;
	uint64_t bytes = s->kind == STEP_COPY ? l->values[s->d].bytes : 0;

	return bytes && c->rows == 1 && c->bytes == bytes && !c->a.offset &&
	       !c->d.offset && l->values[npuc_root(l, s->a)].bytes == bytes &&
	       l->values[npuc_root(l, s->d)].bytes == bytes;
}

/* Is the root in the arena, so that it may have the variable's place instead? */
static bool can_move(const struct lowered *l, uint32_t root)
{
	const struct value *v = &l->values[root];

	return !v->state && !v->input && !v->output && !v->data;
}

/* The copy of a variable that is read: its readers may read the variable, if nobody
 * writes that until they are done. */
static bool reads_in_place(const struct lowered *l, const struct use *uses, uint32_t step)
{
	const struct step *s = &l->steps[step];
	uint32_t a = npuc_root(l, s->a), d = npuc_root(l, s->d);
	const struct use *v = &uses[a], *u = &uses[d];
	bool written = v->first_write <= v->last_write;

	return l->values[a].state && can_move(l, d) && u->first_write == step &&
	       u->last_write == step &&
	       (!written || v->last_write < step ||
		(v->first_write > step &&
		 (u->first_read > u->last_read || v->first_write > u->last_read)));
}

/* The copy of what a variable is assigned: its writers may write the variable, if nobody
 * else writes that, and nobody reads it after they began and before the assignment. */
static bool writes_in_place(const struct lowered *l, const struct use *uses,
			    uint32_t step)
{
	const struct step *s = &l->steps[step];
	uint32_t a = npuc_root(l, s->a), d = npuc_root(l, s->d);
	const struct use *v = &uses[d], *u = &uses[a];

	return l->values[d].state && can_move(l, a) && v->first_write == step &&
	       v->last_write == step && u->first_write <= u->last_write &&
	       u->last_write < step &&
	       (v->first_read > v->last_read || v->last_read < u->first_write ||
		v->first_read > step);
}

/* Give what is moved the variable's place, and the variable its uses. */
static void share_place(struct lowered *l, struct use *uses, uint32_t moved,
			uint32_t variable)
{
	const struct use *from = &uses[moved];
	struct use *to = &uses[variable];

	l->values[moved].same = variable;
	if (from->first_read <= from->last_read)
		widen(&to->first_read, &to->last_read, from->first_read, from->last_read);
	if (from->first_write <= from->last_write)
		widen(&to->first_write, &to->last_write, from->first_write,
		      from->last_write);
}

int npuc_fuse_states(struct lowered *l)
{
	struct use *uses =
		l->variable_count ? lower_own(l, (uint64_t)l->value_count * sizeof(*uses))
				  : NULL;
	uint32_t used = 0;

	if (!l->variable_count)
		return 0;
	if (!uses)
		return -ENOMEM;
	for (uint32_t v = 0; v < l->value_count; v++)
		uses[v] = (struct use){UINT32_MAX, 0, UINT32_MAX, 0};
	for (uint32_t i = 0; i < l->step_count; i++)
		note_use(l, uses, i);
	for (uint32_t i = 0; i < l->step_count; i++) {
		const struct step *s = &l->steps[i];
		bool all = copies_all(l, s);

		if (all && reads_in_place(l, uses, i))
			share_place(l, uses, npuc_root(l, s->d), npuc_root(l, s->a));
		else if (all && writes_in_place(l, uses, i))
			share_place(l, uses, npuc_root(l, s->a), npuc_root(l, s->d));
		else
			l->steps[used++] = *s;
	}
	l->step_count = used;
	return 0;
}
