/* SPDX-License-Identifier: Apache-2.0 */
/* order.c - in which order layers run. */
#include "order.h"

#include <errno.h>
#include <stdlib.h>

#define LAYERS_MAX 1024u

struct order {
	struct lowered *l;
	uint32_t count;              /* layers */
	uint32_t *first;             /* step of each layer, and one past the last's */
	uint32_t *maker, *uses;      /* of each root: layer or NPUC_NONE, steps to come */
	bool *done, *live;           /* by layer; by root */
	struct step *steps, *chosen; /* the file's order; the new one */
};

/* The root that a step's operand number takes part in; NPUC_NONE: not in the arena. */
static uint32_t root_of(const struct order *o, const struct step *s, uint32_t number)
{
	uint32_t v = number == 0 ? s->a : number == 1 ? s->b : s->d;

	if (v == NPUC_NONE || o->l->values[v].data)
		return NPUC_NONE;
	v = npuc_root(o->l, v);
	return o->l->values[v].input ? NPUC_NONE : v;
}

static bool ready(const struct order *o, uint32_t layer)
{
	for (uint32_t i = o->first[layer]; i < o->first[layer + 1]; i++)
		for (uint32_t k = 0; k < 2; k++) {
			uint32_t r = root_of(o, &o->steps[i], k);

			if (r != NPUC_NONE && o->maker[r] != layer &&
			    o->maker[r] != NPUC_NONE && !o->done[o->maker[r]])
				return false;
		}
	return true;
}

/* Runs a layer: bytes that are in use more than before.  dry: changes nothing. */
static int64_t run(struct order *o, uint32_t layer, bool dry)
{
	uint32_t from = o->first[layer], to = o->first[layer + 1];
	int64_t more = 0;

	for (uint32_t i = from; i < to; i++)
		for (uint32_t k = 0; k < 3; k++) {
			uint32_t r = root_of(o, &o->steps[i], k);

			if (r == NPUC_NONE || o->l->values[r].output)
				continue;
			if (!o->live[r])
				more += (int64_t)o->l->values[r].bytes;
			o->live[r] = true;
			if (--o->uses[r] == 0)
				more -= (int64_t)o->l->values[r].bytes;
		}
	if (!dry) {
		o->done[layer] = true;
		return more;
	}
	for (uint32_t i = from; i < to; i++)
		for (uint32_t k = 0; k < 3; k++) {
			uint32_t r = root_of(o, &o->steps[i], k);

			if (r == NPUC_NONE || o->l->values[r].output)
				continue;
			o->uses[r]++;
			if (o->maker[r] == layer)
				o->live[r] = false;
		}
	return more;
}

static uint32_t choose(struct order *o)
{
	uint32_t best = NPUC_NONE;
	int64_t least = INT64_MAX;

	for (uint32_t i = 0; i < o->count; i++) {
		int64_t more;

		if (o->done[i] || !ready(o, i))
			continue;
		more = run(o, i, true);
		if (more < least) {
			least = more;
			best = i;
		}
	}
	return best;
}

static int make_tables(struct order *o)
{
	struct lowered *l = o->l;
	uint32_t step = 0;

	o->first = calloc((size_t)o->count + 1, sizeof(*o->first));
	o->maker = calloc((size_t)l->value_count + 1, sizeof(*o->maker));
	o->uses = calloc((size_t)l->value_count + 1, sizeof(*o->uses));
	o->done = calloc((size_t)o->count + 1, sizeof(*o->done));
	o->live = calloc((size_t)l->value_count + 1, sizeof(*o->live));
	o->chosen = calloc((size_t)l->step_room + 1, sizeof(*o->chosen));
	if (!o->first || !o->maker || !o->uses || !o->done || !o->live || !o->chosen)
		return -ENOMEM;
	for (uint32_t i = 0; i < o->count; i++) {
		o->first[i] = step;
		while (step < l->step_count && o->steps[step].layer == i)
			step++;
	}
	o->first[o->count] = step;
	for (uint32_t v = 0; v < l->value_count; v++)
		o->maker[v] = NPUC_NONE;
	for (uint32_t i = 0; i < l->step_count; i++)
		for (uint32_t k = 0; k < 3; k++) {
			uint32_t r = root_of(o, &o->steps[i], k);

			if (r == NPUC_NONE)
				continue;
			o->uses[r]++;
			if (k == 2)
				o->maker[r] = o->steps[i].layer;
		}
	return 0;
}

int npuc_order(struct lowered *l)
{
	struct order o = {.l = l, .count = l->m->op_count, .steps = l->steps};
	uint32_t used = 0;
	int rc;

	if (o.count > LAYERS_MAX)
		return 0;
	rc = make_tables(&o);
	for (uint32_t n = 0; !rc && n < o.count; n++) {
		uint32_t layer = choose(&o);

		/* The file's own order shows that there is always one. */
		if (layer == NPUC_NONE)
			rc = -EINVAL;
		else
			run(&o, layer, false);
		for (uint32_t i = rc ? 0 : o.first[layer]; !rc && i < o.first[layer + 1];
		     i++)
			o.chosen[used++] = o.steps[i];
	}
	if (!rc && used == l->step_count) {
		l->steps = o.chosen;
		o.chosen = o.steps;
	}
	free(o.chosen);
	free(o.first);
	free(o.maker);
	free(o.uses);
	free(o.done);
	free(o.live);
	return rc == -ENOMEM ? rc : 0;
}
