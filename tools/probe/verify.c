/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verify.c - whether a map is right: fresh granules against fresh ones of the same
 * channel, and channels against each other, else a map that is too coarse would pass.
 */
#include "prober.h"

#include <math.h>

#define FRESH   3000u
#define FLIGHT  400u /* granules that are asked about in turn */
#define TRUST   4.6  /* a granule begins with that for the map, and needs */
#define PASSES  5.5
#define FAILS   9.0
#define APART   10.0
#define PAIR    60u
#define DRAWS   20000u
#define BAD_MAX (30 + FRESH / 100)

/* A granule that the map has on channel, another than but; false: there is none. */
static bool on_channel(struct prober *p, const struct color_map *map, uint32_t channel,
		       uint32_t but, uint32_t *out)
{
	for (uint32_t i = 0; i < DRAWS; i++) {
		*out = prober_granule(p);
		if (*out != but && color_map_channel(map, *out) == channel)
			return true;
	}
	return false;
}

struct trial {
	uint32_t granule;
	bool live;
	double sum;
};

static void ask_trial(struct prober *p, struct color_map *map, struct trial *t)
{
	uint32_t pair[2] = {t->granule, 0};

	if (on_channel(p, map, color_map_channel(map, t->granule), t->granule, &pair[1]))
		t->sum += prober_weight(p, prober_ask(p, pair, 2));
	else
		t->sum = -FAILS; /* alone on its channel */
	if (p->error || (t->sum < PASSES && t->sum > -FAILS))
		return;
	t->live = false;
	map->tests++;
	map->bad += t->sum < 0;
}

static void fresh_granules(struct prober *p, struct color_map *map)
{
	struct trial trial[FLIGHT] = {{0}};
	uint32_t started = 0, open;

	do {
		open = 0;
		for (uint32_t i = 0; i < FLIGHT; i++) {
			struct trial *t = &trial[i];

			if (!t->live && started < FRESH) {
				*t = (struct trial){prober_granule(p), true, TRUST};
				started++;
			}
			if (!t->live)
				continue;
			open++;
			ask_trial(p, map, t);
		}
		if (open && started >= FRESH)
			prober_fill(p, FLIGHT - open);
	} while (open && map->bad <= BAD_MAX && !p->error);
}

static bool apart(struct prober *p, const struct color_map *map, uint32_t a, uint32_t b)
{
	double sum = 0;

	for (uint32_t i = 0; i < PAIR && fabs(sum) < APART; i++) {
		uint32_t pair[2];

		if (!on_channel(p, map, a, UINT32_MAX, &pair[0]) ||
		    !on_channel(p, map, b, UINT32_MAX, &pair[1]))
			return false;
		sum += prober_weight(p, prober_ask(p, pair, 2));
	}
	return sum <= 0;
}

/* Where none of n is wrong, that share x of wrong ones is not likely of which (1 - x)^n
 * is a twentieth.  A map of which any is wrong is not verified: of those the share seen
 * and three deviations more is told. */
static double bound(uint64_t tests, uint64_t bad)
{
	double seen;

	if (!tests)
		return 1;
	if (!bad)
		return 1 - pow(0.05, 1 / (double)tests);
	seen = (double)bad / (double)tests;
	seen += 3 * sqrt(seen / (double)tests) + 3 / (double)tests;
	return seen < 1 ? seen : 1;
}

void prober_verify(struct prober *p, struct color_map *map)
{
	uint32_t joined = 0;

	map->tests = map->bad = 0;
	fresh_granules(p, map);
	for (uint32_t a = 0; a < map->channels; a++)
		for (uint32_t b = a + 1; b < map->channels && !p->error; b++)
			joined += !apart(p, map, a, b);
	/* Two channels that are one: what lies on one of them is wrong. */
	if (joined)
		map->bad += map->tests / 10 + 1;
	if (map->bad > map->tests)
		map->bad = map->tests;
	map->bound = bound(map->tests, map->bad);
}
