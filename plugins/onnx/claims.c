/* SPDX-License-Identifier: Apache-2.0 */
/* claims.c - which units the device takes, and in which partitions. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugin.h"

#define TOLD 3u /* kinds of operators on the CPU that the summary names */

/* Nodes in groups, each a node of its own at first. */
struct groups {
	const struct graph *g;
	uint32_t *of;    /* by node: its group, which is one of its nodes */
	uint32_t *next;  /* by node: the next of the group */
	uint32_t *last;  /* by group: the last of its nodes */
	uint32_t *mark;  /* by group */
	uint32_t *stack; /* groups to visit */
	uint32_t stamp;
	bool *taken;          /* by group: the device's */
	uint32_t *readers;    /* nodes that read, by the node that makes */
	uint32_t *readers_at; /* by node: where its readers begin */
};

static uint32_t *indices(struct graph *g, uint32_t count)
{
	return pool_alloc(&g->pool, count, sizeof(uint32_t));
}

/* List which nodes read the results of each. */
static void find_readers(struct graph *g, struct groups *s)
{
	uint32_t *at = s->readers_at;

	for (int pass = 0; pass < 2; pass++) {
		for (uint32_t i = 0; i < g->node_count; i++)
			for (uint32_t k = 0; k < g->nodes[i].in_count; k++) {
				uint32_t v = g->nodes[i].in[k], p;

				p = v == PLUGIN_NONE ? PLUGIN_NONE
						     : g->values[v].producer;
				if (p == PLUGIN_NONE)
					continue;
				if (pass)
					s->readers[--at[p]] = i;
				else
					at[p]++;
			}
		for (uint32_t i = 1; !pass && i <= g->node_count; i++)
			at[i] += at[i - 1];
	}
}

static bool make_groups(struct graph *g, struct groups *s)
{
	uint32_t edges = 0;

	for (uint32_t i = 0; i < g->node_count; i++)
		edges += g->nodes[i].in_count;
	*s = (struct groups){.g = g,
			     .of = indices(g, g->node_count),
			     .next = indices(g, g->node_count),
			     .last = indices(g, g->node_count),
			     .mark = indices(g, g->node_count),
			     .stack = indices(g, g->node_count),
			     .readers = indices(g, edges),
			     .readers_at = indices(g, g->node_count + 1),
			     .taken = pool_alloc(&g->pool, g->node_count, sizeof(bool))};
	if (g->pool.empty)
		return false;
	for (uint32_t i = 0; i < g->node_count; i++) {
		s->of[i] = s->last[i] = i;
		s->next[i] = PLUGIN_NONE;
	}
	find_readers(g, s);
	return true;
}

static void join(struct groups *s, uint32_t a, uint32_t b)
{
	for (uint32_t n = b; n != PLUGIN_NONE; n = s->next[n])
		s->of[n] = a;
	s->next[s->last[a]] = b;
	s->last[a] = s->last[b];
}

/* Push the groups that read results of a group, except the one to skip. */
static uint32_t push_readers(struct groups *s, uint32_t group, uint32_t skip,
			     uint32_t count)
{
	for (uint32_t n = group; n != PLUGIN_NONE; n = s->next[n])
		for (uint32_t i = s->readers_at[n]; i < s->readers_at[n + 1]; i++) {
			uint32_t to = s->of[s->readers[i]];

			if (to == skip || to == group || s->mark[to] == s->stamp)
				continue;
			s->mark[to] = s->stamp;
			s->stack[count++] = to;
		}
	return count;
}

/* Return whether a path leads from a to b through another group: joined, they would wait
 * for each other. */
static bool is_between(struct groups *s, uint32_t a, uint32_t b)
{
	uint32_t count;

	s->stamp++;
	count = push_readers(s, a, b, 0);
	while (count) {
		uint32_t group = s->stack[--count];

		if (group == b)
			return true;
		count = push_readers(s, group, PLUGIN_NONE, count);
	}
	return false;
}

/* Join groups of the device that an edge connects, as far as that leaves no cycle. */
static void merge(struct groups *s)
{
	for (uint32_t n = 0; n < s->g->node_count; n++)
		for (uint32_t i = s->readers_at[n]; i < s->readers_at[n + 1]; i++) {
			uint32_t a = s->of[n], b = s->of[s->readers[i]];

			if (a != b && s->taken[a] && s->taken[b] &&
			    !is_between(s, a, b) && !is_between(s, b, a))
				join(s, a, b);
		}
}

/* ---- compiling --------------------------------------------------------------------- */

static void set_why(struct graph *g, uint32_t node, const char *why)
{
	size_t size = strlen(why) + 1;

	g->nodes[node].why = pool_alloc(&g->pool, size, 1);
	if (g->nodes[node].why)
		memcpy(g->nodes[node].why, why, size);
}

/* Compile units together; 0 or -errno with why.  A partition must fit into the memory of
 * c's place beside the others; c is NULL for a unit that is only tried. */
static int compile(struct graph *g, const struct settings *s, struct claims *c,
		   const struct unit *const *units, uint32_t count, uint64_t *macs,
		   char *why)
{
	uint32_t *outs, out_count, room = count;
	struct npuc_program p;
	struct built b;
	int rc;

	for (uint32_t i = 0; i < count; i++)
		room += units[i]->more_count;
	outs = indices(g, room);
	if (!outs)
		return -ENOMEM;
	out_count = claims_outputs(g, units, count, outs);
	if (!out_count) {
		snprintf(why, PLUGIN_WHY, "nothing needs its result");
		return -ENOTSUP;
	}
	rc = build_model(g, units, count, outs, out_count, &b, why);
	if (rc)
		return rc;
	rc = npuc_compile_cached(b.model, NULL,
				 count > 1 && s->cache_dir[0] ? s->cache_dir : NULL, &p,
				 NULL, why);
	npuc_model_free(b.model);
	if (rc)
		return rc;
	*macs = p.macs;
	if (c && c->place && p.macs >= s->min_macs)
		rc = place_try(c->place, &p, &c->memory, why);
	npuc_program_free(&p);
	return rc;
}

/* Return whether the graph, or a node of none of the later units, needs a value. */
static bool is_needed(const struct graph *g, uint32_t v, const struct unit *const *later,
		      uint32_t count)
{
	uint32_t inside = 0;

	for (uint32_t k = 0; k < count; k++)
		for (uint32_t n = 0; n < later[k]->node_count; n++) {
			const struct node *node = &g->nodes[later[k]->nodes[n]];

			for (uint32_t e = 0; e < node->in_count; e++)
				inside += node->in[e] == v;
		}
	return g->values[v].output || inside < g->values[v].consumers;
}

uint32_t claims_outputs(const struct graph *g, const struct unit *const *units,
			uint32_t count, uint32_t *outs)
{
	uint32_t found = 0;

	/* Units in their order: readers come later. */
	for (uint32_t i = 0; i < count; i++)
		for (uint32_t k = 0; k <= units[i]->more_count; k++) {
			uint32_t v =
				k ? units[i]->more[k - 1].value : units[i]->out.value;

			if (is_needed(g, v, units + i + 1, count - i - 1))
				outs[found++] = v;
		}
	return found;
}

static bool only_moves(const struct graph *g, const struct unit *const *units,
		       uint32_t count)
{
	static const char *const types[] = {"Reshape",       "Flatten",  "Squeeze",
					    "Unsqueeze",     "Identity", "Transpose",
					    "QuantizeLinear"};

	for (uint32_t i = 0; i < count; i++) {
		bool move = false;

		for (size_t k = 0; k < sizeof(types) / sizeof(types[0]); k++)
			move |= strcmp(g->nodes[units[i]->op].type, types[k]) == 0;
		if (!move)
			return false;
	}
	return true;
}

/* Compile the units of a group, which become a partition, or are the CPU's. */
static void take_group(struct graph *g, const struct settings *s, struct claims *c,
		       const struct unit **units, uint32_t count)
{
	char why[PLUGIN_WHY] = "";
	uint64_t macs = 0;
	bool good = false;

	if (only_moves(g, units, count))
		snprintf(why, sizeof(why), "alone it only moves numbers");
	else if (compile(g, s, c, units, count, &macs, why) == 0)
		good = macs >= s->min_macs;
	if (!good && !why[0])
		snprintf(why, sizeof(why), "a partition of %llu MACs; min_macs is %llu",
			 (unsigned long long)macs, (unsigned long long)s->min_macs);
	for (uint32_t i = 0; i < count; i++) {
		if (good)
			c->part[units[i] - c->units] = c->part_count;
		else
			set_why(g, units[i]->op, why);
	}
	c->macs += good ? macs : 0;
	c->part_count += good;
}

int claims_find(struct graph *g, const struct settings *s, const struct place *place,
		struct claims *c)
{
	const struct unit **list;
	char why[PLUGIN_WHY];
	struct groups groups;

	*c = (struct claims){.place = place};
	c->units = units_find(g, &c->unit_count);
	c->part = indices(g, c->unit_count);
	list = pool_alloc(&g->pool, c->unit_count, sizeof(const struct unit *));
	if (!c->units || !c->part || !list || !make_groups(g, &groups))
		return -ENOMEM;
	for (uint32_t i = 0; i < c->unit_count; i++) {
		struct unit *u = &c->units[i];
		const struct unit *one = u;

		c->part[i] = PLUGIN_NONE;
		u->taken = compile(g, s, NULL, &one, 1, &u->macs, why) == 0;
		if (!u->taken) {
			set_why(g, u->op, why);
			continue;
		}
		for (uint32_t k = 1; k < u->node_count; k++)
			join(&groups, u->nodes[0], u->nodes[k]);
		groups.taken[u->nodes[0]] = true;
	}
	merge(&groups);
	for (uint32_t i = 0; i < c->unit_count; i++) {
		uint32_t group = groups.of[c->units[i].nodes[0]], count = 0;

		if (!c->units[i].taken || !groups.taken[group])
			continue;
		for (uint32_t k = i; k < c->unit_count; k++)
			if (c->units[k].taken && groups.of[c->units[k].nodes[0]] == group)
				list[count++] = &c->units[k];
		groups.taken[group] = false; /* done */
		take_group(g, s, c, list, count);
	}
	return g->pool.empty ? -ENOMEM : 0;
}

/* ---- the summary ------------------------------------------------------------------- */

/* Nodes that are no operators of the model: those that quantize, and partitions of an
 * earlier call of GetCapability, which the runtime may make twice. */
static bool is_hidden(const struct node *n)
{
	return strcmp(n->type, "QuantizeLinear") == 0 ||
	       strcmp(n->type, "DequantizeLinear") == 0 ||
	       strncmp(n->type, PLUGIN_NAME, strlen(PLUGIN_NAME)) == 0;
}

bool claims_is_first(const struct graph *g)
{
	for (uint32_t i = 0; i < g->node_count; i++)
		if (strncmp(g->nodes[i].type, PLUGIN_NAME, strlen(PLUGIN_NAME)) == 0)
			return false;
	return true;
}

static bool on_device(const struct graph *g, const struct claims *c, uint32_t node)
{
	uint32_t unit = g->nodes[node].unit;

	return unit != PLUGIN_NONE && c->part[unit] != PLUGIN_NONE;
}

static void add_text(char *text, size_t size, const char *more)
{
	size_t used = strlen(text);

	snprintf(text + used, size - used, "%s", more);
}

const char *claims_reason(const struct graph *g, const struct claims *c, uint32_t node)
{
	const struct node *n = &g->nodes[node];

	if (is_hidden(n) || on_device(g, c, node))
		return NULL;
	/* Relu and Clip belong to the operator before them. */
	if (!n->why && n->unit != PLUGIN_NONE)
		n = &g->nodes[c->units[n->unit].op];
	return n->why ? n->why : "not between quantized values";
}

/* Name some kinds of operators that stay, each once, with the first's reason. */
static void describe_left(const struct graph *g, const struct claims *c, char *text,
			  size_t size)
{
	const char *told[TOLD];
	char one[PLUGIN_WHY + 128];
	uint32_t kinds = 0, more = 0;

	for (uint32_t i = 0; i < g->node_count; i++) {
		const char *why = claims_reason(g, c, i);
		const struct node *n = &g->nodes[i];
		uint32_t same = 0;
		bool known = !why;

		for (uint32_t k = 0; k < kinds; k++)
			known |= strcmp(told[k], n->type) == 0;
		more += !known && kinds == TOLD;
		if (known || kinds == TOLD)
			continue;
		told[kinds++] = n->type;
		for (uint32_t k = i; k < g->node_count; k++)
			same += !on_device(g, c, k) &&
				strcmp(g->nodes[k].type, n->type) == 0;
		snprintf(one, sizeof(one), "%s%u %s (%s)",
			 kinds == 1 ? "; on the CPU: " : ", ", same, n->type, why);
		add_text(text, size, one);
	}
	snprintf(one, sizeof(one), ", and %u more (log=2 lists them)", more);
	if (more)
		add_text(text, size, one);
}

void claims_describe(const struct graph *g, const struct claims *c, char *text,
		     size_t size)
{
	uint32_t all = 0, taken = 0;

	for (uint32_t i = 0; i < g->node_count; i++)
		if (!is_hidden(&g->nodes[i])) {
			all++;
			taken += on_device(g, c, i);
		}
	snprintf(text, size,
		 "accelhal: %u of %u operators with %llu MACs in %u partition%s", taken,
		 all, (unsigned long long)c->macs, c->part_count,
		 c->part_count == 1 ? "" : "s");
	if (taken < all)
		describe_left(g, c, text, size);
}
