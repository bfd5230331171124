/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seed.c - classes of granules from pairs alone.
 *
 * In each round every granule is in one pair, so that a round lies between two questions
 * about it.  Noise only adds time: "fast" is good evidence, "slow" is asked again, a
 * round later.  The answers are a graph with signs; classes are the partition that agrees
 * with most of it, by simulated annealing.  How many channels there are comes out of
 * that.
 */
#include "prober.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SEEDS    320u
#define ROUNDS   250u
#define ADAPTIVE 30u
#define ASKED    3u
#define SWEEPS   400u
#define TRIES    4u
#define WARM     6.0
#define MARGIN   5.0 /* below it a granule's class is asked about */
#define SURE     3.0 /* what is kept */
#define EDGES    (SEEDS / 2 * ROUNDS + SEEDS * ADAPTIVE)
#define KINDS    (CLASSES - 1)
/* "slow", asked up to three times, and "fast", of a pair of one class to one of two */
#define SLOW_SAME  0.87
#define SLOW_OTHER 0.07

struct edge {
	uint16_t a, b;
	uint8_t asked;
	bool slow; /* so far */
};

struct graph {
	uint32_t count; /* of granules */
	uint32_t granule[SEEDS];
	uint16_t order[SEEDS];
	uint8_t label[SEEDS];
	uint32_t edges;
	struct edge edge[EDGES];
	/* by granule: places in the lists of neighbours and weights */
	uint32_t first[SEEDS + 1];
	uint16_t to[2 * EDGES];
	float weight[2 * EDGES];
	/* members by class */
	uint16_t member[KINDS][SEEDS];
	uint32_t members[KINDS];
};

static double weight_of(const struct edge *e)
{
	return e->slow ? log(SLOW_SAME / SLOW_OTHER)
		       : log((1 - SLOW_SAME) / (1 - SLOW_OTHER));
}

/* ---- questions ---------------------------------------------------------------------- */

static void shuffle(struct prober *p, uint16_t *order, uint32_t count)
{
	for (uint32_t i = count; i > 1; i--) {
		uint32_t o = prober_random(p, i);
		uint16_t t = order[i - 1];

		order[i - 1] = order[o];
		order[o] = t;
	}
}

static void ask_edge(struct prober *p, struct graph *g, struct edge *e)
{
	const uint32_t pair[2] = {g->granule[e->a], g->granule[e->b]};

	e->slow = prober_ask(p, pair, 2);
	e->asked++;
}

static void ask_new(struct prober *p, struct graph *g, uint32_t a, uint32_t b)
{
	struct edge *e = &g->edge[g->edges++];

	*e = (struct edge){.a = (uint16_t)a, .b = (uint16_t)b};
	ask_edge(p, g, e);
}

/* Once each: a round has to lie between two questions, or a cache answers. */
static void ask_slow_again(struct prober *p, struct graph *g, uint32_t edges)
{
	for (uint32_t e = 0; e < edges; e++)
		if (g->edge[e].slow && g->edge[e].asked < ASKED)
			ask_edge(p, g, &g->edge[e]);
}

static void ask_slow_to_the_end(struct prober *p, struct graph *g)
{
	for (uint32_t round = 1; round < ASKED; round++) {
		prober_fill(p, g->count / 2);
		ask_slow_again(p, g, g->edges);
	}
}

/* Of the share of slow pairs among those that have been asked about: channels. */
static double channels_guess(const struct graph *g, uint32_t edges)
{
	uint32_t slow = 0;
	double rho;

	for (uint32_t e = 0; e < edges; e++)
		slow += g->edge[e].slow;
	rho = ((double)slow / edges - SLOW_OTHER + 0.005) / (SLOW_SAME - SLOW_OTHER);
	return rho > 1.0 / 18 ? 1 / rho : 18;
}

/* Below a certain number of questions a granule no method finds the classes; where that
 * was not enough, more are asked. */
static void ask_rounds(struct prober *p, struct graph *g)
{
	double enough = 0.5 + 0.5 * p->result->attempts;

	for (uint32_t round = 1; round <= ROUNDS && !p->error; round++) {
		uint32_t edges = g->edges;

		shuffle(p, g->order, g->count);
		for (uint32_t i = 0; i + 1 < g->count; i += 2)
			ask_new(p, g, g->order[i], g->order[i + 1]);
		ask_slow_again(p, g, edges);
		if (round % 8 == 0 &&
		    round >= enough * (3.2 * channels_guess(g, edges) + 6))
			break;
	}
	ask_slow_to_the_end(p, g);
}

/* ---- classes ------------------------------------------------------------------------ */

static void link_up(struct graph *g)
{
	uint32_t at[SEEDS] = {0};

	for (uint32_t e = 0; e < g->edges; e++) {
		at[g->edge[e].a]++;
		at[g->edge[e].b]++;
	}
	g->first[0] = 0;
	for (uint32_t i = 0; i < g->count; i++) {
		g->first[i + 1] = g->first[i] + at[i];
		at[i] = g->first[i];
	}
	for (uint32_t e = 0; e < g->edges; e++) {
		const struct edge *x = &g->edge[e];

		g->to[at[x->a]] = x->b;
		g->weight[at[x->a]++] = (float)weight_of(x);
		g->to[at[x->b]] = x->a;
		g->weight[at[x->b]++] = (float)weight_of(x);
	}
}

/* What speaks for each class of granule i. */
static void pull(const struct graph *g, uint32_t i, double h[KINDS])
{
	for (uint32_t k = 0; k < KINDS; k++)
		h[k] = 0;
	for (uint32_t e = g->first[i]; e < g->first[i + 1]; e++)
		h[g->label[g->to[e]]] += (double)g->weight[e];
}

static uint8_t draw(struct prober *p, const double h[KINDS], double heat)
{
	double most = h[0], sum = 0, w[KINDS], u;
	uint32_t k = 0;

	for (uint32_t i = 1; i < KINDS; i++)
		most = h[i] > most ? h[i] : most;
	for (uint32_t i = 0; i < KINDS; i++) {
		w[i] = h[i] - most > -30 * heat ? exp((h[i] - most) / heat) : 0;
		sum += w[i];
	}
	u = prober_uniform(p) * sum;
	while (k < KINDS - 1 && u > w[k])
		u -= w[k++];
	return (uint8_t)k;
}

static void anneal(struct prober *p, struct graph *g, double warm, uint32_t sweeps)
{
	double h[KINDS];

	for (uint32_t s = 0; s < sweeps; s++) {
		double heat = warm * (1 - (double)s / sweeps) + 0.05;

		for (uint32_t n = 0; n < g->count; n++) {
			uint32_t i = prober_random(p, g->count);

			pull(g, i, h);
			g->label[i] = draw(p, h, heat);
		}
	}
}

static double agreement(const struct graph *g)
{
	double sum = 0;

	for (uint32_t e = 0; e < g->edges; e++)
		if (g->label[g->edge[e].a] == g->label[g->edge[e].b])
			sum += weight_of(&g->edge[e]);
	return sum;
}

static void best_labels(struct prober *p, struct graph *g)
{
	uint8_t best[SEEDS];
	double most = -INFINITY;

	link_up(g);
	for (uint32_t t = 0; t < TRIES; t++) {
		double sum;

		for (uint32_t i = 0; i < g->count; i++)
			g->label[i] = (uint8_t)prober_random(p, KINDS);
		anneal(p, g, WARM, SWEEPS * p->result->attempts);
		sum = agreement(g);
		if (sum > most) {
			most = sum;
			memcpy(best, g->label, sizeof(best));
		}
	}
	memcpy(g->label, best, sizeof(best));
}

/* How much more speaks for a granule's class than for the next best, *second. */
static double margin(const struct graph *g, uint32_t i, uint32_t *second)
{
	uint32_t own = g->label[i], next = own == 0;
	double h[KINDS];

	pull(g, i, h);
	for (uint32_t k = 0; k < KINDS; k++)
		if (k != own && h[k] > h[next])
			next = k;
	*second = next;
	return h[own] - h[next];
}

static void list_members(struct graph *g, double least)
{
	uint32_t second;

	memset(g->members, 0, sizeof(g->members));
	for (uint32_t i = 0; i < g->count; i++) {
		uint32_t k = g->label[i];

		if (least < 0 || margin(g, i, &second) > least)
			g->member[k][g->members[k]++] = (uint16_t)i;
	}
}

/* A member of its class, or of the one that it may be of instead. */
static bool somebody(struct prober *p, const struct graph *g, uint32_t i, uint32_t second,
		     uint32_t *out)
{
	bool own = prober_random(p, 2) || !g->members[second];
	uint32_t k = own ? g->label[i] : second;

	for (uint32_t t = 0; t < 5 && g->members[k]; t++) {
		*out = g->member[k][prober_random(p, g->members[k])];
		if (*out != i)
			return true;
	}
	return false;
}

static void ask_unsure(struct prober *p, struct graph *g)
{
	for (uint32_t round = 0; round < ADAPTIVE && !p->error; round++) {
		uint32_t open = 0, second = 0, other = 0;

		list_members(g, -1);
		for (uint32_t i = 0; i < g->count; i++) {
			if (margin(g, i, &second) > MARGIN)
				continue;
			open++;
			if (somebody(p, g, i, second, &other))
				ask_new(p, g, i, other);
		}
		ask_slow_to_the_end(p, g);
		link_up(g);
		anneal(p, g, 0.6, 20);
		if (open < g->count / 50)
			break;
	}
}

/* ---- are they classes? ---------------------------------------------------------------- */

static void keep_sure(struct prober *p, struct graph *g)
{
	uint32_t largest = 0;

	list_members(g, SURE);
	for (uint32_t k = 0; k < KINDS; k++)
		largest = g->members[k] > largest ? g->members[k] : largest;
	p->classes = 0;
	for (uint32_t k = 0; k < KINDS; k++) {
		if (g->members[k] < 3 || g->members[k] * 20 < largest * 3)
			continue;
		for (uint32_t i = 0; i < g->members[k]; i++)
			prober_add(p, p->classes, g->granule[g->member[k][i]]);
		p->classes++;
	}
}

/* Every two classes once a round, so that their members are not asked about in a row. */
static void ask_pairs(struct prober *p, double sum[CLASSES][CLASSES])
{
	uint32_t open = 1;

	for (uint32_t round = 0; round < 30 && open && !p->error; round++) {
		open = 0;
		for (uint32_t a = 0; a < p->classes; a++)
			for (uint32_t b = a + 1; b < p->classes; b++) {
				const uint32_t pair[2] = {
					prober_member(p, a, UINT32_MAX),
					prober_member(p, b, UINT32_MAX)};

				if (fabs(sum[a][b]) >= 7)
					continue;
				sum[a][b] += prober_ask(p, pair, 2) ? log(0.87 / 0.25)
								    : log(0.13 / 0.75);
				open++;
			}
		if (open && open < 200)
			prober_fill(p, 200 - open);
	}
}

static void join_classes(struct prober *p)
{
	double sum[CLASSES][CLASSES] = {{0}};

	ask_pairs(p, sum);
	for (uint32_t b = p->classes; b-- > 1;) {
		uint32_t a = 0;

		while (a < b && sum[a][b] <= 0)
			a++;
		if (a == b)
			continue;
		for (uint32_t i = 0; i < p->pool[b].count; i++)
			prober_add(p, a, p->pool[b].granule[i]);
		/* The last class comes in its place: it has been looked at. */
		prober_drop(p, b);
	}
}

/* A class whose own members are not of one channel is none. */
static void drop_false(struct prober *p)
{
	double sum[CLASSES] = {0};

	for (uint32_t round = 0; round < 14; round++) {
		for (uint32_t a = 0; a < p->classes; a++) {
			struct pool *l = &p->pool[a];
			uint32_t pair[2];

			if (fabs(sum[a]) >= 7)
				continue;
			pair[0] = l->granule[prober_random(p, l->count)];
			pair[1] = prober_member(p, a, pair[0]);
			sum[a] += prober_ask(p, pair, 2) ? log(0.85 / 0.25)
							 : log(0.2 / 0.75);
		}
		prober_fill(p, 60);
	}
	for (uint32_t a = p->classes; a-- > 0;)
		if (sum[a] < -3)
			prober_drop(p, a);
}

static void draw_granules(struct prober *p, struct graph *g)
{
	uint32_t room = p->dev->granules / 2;

	g->count = room < SEEDS ? room : SEEDS;
	for (uint32_t i = 0; i < g->count; i++) {
		bool again = true;

		while (again) {
			g->granule[i] = prober_granule(p);
			again = false;
			for (uint32_t j = 0; j < i; j++)
				again = again || g->granule[j] == g->granule[i];
		}
		g->order[i] = (uint16_t)i;
	}
}

void prober_seed(struct prober *p)
{
	struct graph *g = malloc(sizeof(*g));

	if (!g) {
		p->error = -ENOMEM;
		return;
	}
	g->edges = 0;
	draw_granules(p, g);
	ask_rounds(p, g);
	best_labels(p, g);
	ask_unsure(p, g);
	link_up(g);
	keep_sure(p, g);
	free(g);
	join_classes(p);
	drop_false(p);
}
