/* SPDX-License-Identifier: Apache-2.0 */
/*
 * discover.c - from thresholds to a verified map: classes, a rule for them or a table,
 * verification; and all again, with other granules, where that fails.
 */
#include "discover.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "prober.h"

#define ATTEMPTS   8u
#define TESTS_MAX  UINT64_C(2000000)
#define STEPS      4u
#define LABELLED   200u /* granules a step, at least */
#define WRONG      0.03 /* share of labels, when a rule is looked for */
#define CHUNK      16384u
#define A_GRANULE  10u /* tests of one of a table */
#define BUSY_P0    0.35
#define BUSY_APART 0.3
#define PIECE_LOG2 8u
#define LARGEST    12u
#define PIECES     60u
#define INSIDE     0.7    /* of pairs inside one granule so many look so, at least */
#define KEPT       0.9995 /* sure enough to be asked for others */
#define KNOWN      0.9    /* what a rule says of a granule, where it nearly holds */

struct samples {
	struct sample *sample;
	uint32_t count, room;
};

static void add_sample(struct prober *p, struct samples *s, uint32_t granule,
		       uint32_t label)
{
	struct sample *more;

	if (s->count == s->room) {
		more = realloc(s->sample, (2 * s->room + 256) * sizeof(*more));
		if (!more) {
			p->error = -ENOMEM;
			return;
		}
		s->sample = more;
		s->room = 2 * s->room + 256;
	}
	s->sample[s->count++] = (struct sample){granule, label};
}

/* ---- a rule --------------------------------------------------------------------------- */

static void label_more(struct prober *p, struct samples *s, uint32_t count)
{
	struct job *jobs = calloc(count, sizeof(*jobs));

	if (!jobs) {
		p->error = -ENOMEM;
		return;
	}
	for (uint32_t i = 0; i < count; i++) {
		jobs[i].granule = prober_granule(p);
		for (uint32_t k = 0; k < p->classes; k++)
			jobs[i].p[k] = 1;
	}
	prober_label(p, jobs, count, 0.995, 40);
	for (uint32_t i = 0; i < count && !p->error; i++)
		if (jobs[i].sure > 0.9) {
			add_sample(p, s, jobs[i].granule, jobs[i].label);
			prober_add(p, jobs[i].label, jobs[i].granule);
		}
	free(jobs);
}

static uint32_t bits_of(const struct prober *p)
{
	uint32_t bits = 0;

	while ((p->dev->first + p->dev->granules - 1) >> bits)
		bits++;
	return bits;
}

static bool find_rule(struct prober *p, struct color_map *map)
{
	struct samples s = {0};
	bool found = false;

	for (uint32_t k = 0; k < p->classes; k++)
		for (uint32_t i = 0; i < p->pool[k].count; i++)
			add_sample(p, &s, p->pool[k].granule[i], k);
	for (uint32_t step = 1; step <= STEPS && !found && !p->error; step++) {
		uint32_t want = step * (bits_of(p) + p->classes + 30) * 2;

		if (s.count < want)
			label_more(p, &s,
				   want - s.count < LABELLED ? LABELLED : want - s.count);
		if (!p->error && s.count)
			found = fit_rule(p, s.sample, s.count, WRONG, map);
	}
	p->result->samples = s.count;
	free(s.sample);
	return found && !p->error;
}

/* ---- a table ---------------------------------------------------------------------------- */

/* Which class each channel of a rule is: that of most of the class's members. */
static void name_channels(struct prober *p, const struct color_map *rule,
			  uint32_t class[COLOR_MAP_COLORS])
{
	uint32_t most[COLOR_MAP_COLORS] = {0};

	memset(class, 0, COLOR_MAP_COLORS * sizeof(class[0]));
	for (uint32_t k = 0; k < p->classes; k++) {
		uint32_t count[COLOR_MAP_COLORS] = {0};

		for (uint32_t i = 0; i < p->pool[k].count; i++)
			count[color_map_channel(rule, p->pool[k].granule[i])]++;
		for (uint32_t c = 0; c < rule->channels; c++)
			if (count[c] > most[c]) {
				most[c] = count[c];
				class[c] = k;
			}
	}
}

/* Every granule by itself; what a rule says that nearly holds is where each begins. */
static bool enumerate(struct prober *p, const struct color_map *rule,
		      struct color_map *map)
{
	uint32_t granules = p->dev->granules, class[COLOR_MAP_COLORS];
	uint64_t all = p->dev->memory >> p->dev->granule_log2;
	struct job *jobs = calloc(granules < CHUNK ? granules : CHUNK, sizeof(*jobs));

	map->kind = COLOR_MAP_TABLE;
	map->channels = p->classes;
	map->mask_count = map->q = map->digits = map->shift = 0;
	map->table = malloc(all);
	if (!jobs || !map->table) {
		p->error = -ENOMEM;
		free(jobs);
		return false;
	}
	memset(map->table, COLOR_NONE, all);
	if (rule)
		name_channels(p, rule, class);
	for (uint32_t from = 0; from < granules && !p->error; from += CHUNK) {
		uint32_t n = granules - from < CHUNK ? granules - from : CHUNK;

		for (uint32_t i = 0; i < n; i++) {
			jobs[i].granule = p->dev->first + from + i;
			for (uint32_t k = 0; k < p->classes; k++)
				jobs[i].p[k] = rule ? (1 - KNOWN) / p->classes : 1;
			if (rule)
				jobs[i].p[class[color_map_channel(
					rule, jobs[i].granule)]] += KNOWN;
		}
		prober_label(p, jobs, n, 0.99998, 90);
		for (uint32_t i = 0; i < n && !p->error; i++) {
			map->table[jobs[i].granule] = (uint8_t)jobs[i].label;
			if (jobs[i].sure > KEPT)
				prober_add(p, jobs[i].label, jobs[i].granule);
		}
	}
	free(jobs);
	p->result->samples = granules;
	return !p->error;
}

/* ---- attempts ----------------------------------------------------------------------------- */

static bool verified(const struct color_map *map)
{
	return color_map_verified(map) && !map->bad;
}

/* True: map is verified; else it may be a rule that nearly holds. */
static bool attempt(struct prober *p, struct color_map *map)
{
	bool single, rule, table = (uint64_t)p->dev->granules * A_GRANULE <= p->tests_max;
	struct color_map near;

	prober_forget(p);
	prober_calibrate(p, &single);
	if (single && p->dev->several)
		p->error = -ENOENT; /* another attempt sees no more */
	if (p->error)
		return false;
	if (single) { /* no classes: all pairs are of one */
		map->kind = COLOR_MAP_XOR;
		map->channels = 1;
		prober_verify(p, map);
		if (!p->error && verified(map))
			prober_try_single(p, map);
		return !p->error && verified(map);
	}
	prober_seed(p);
	if (p->error || p->classes < 2)
		return false;
	prober_recalibrate(p);
	if (p->error)
		return false;
	if (p->p0[1] > BUSY_P0 || p->p1[1] - p->p0[1] < BUSY_APART) {
		p->error = -EBUSY;
		return false;
	}
	rule = find_rule(p, map);
	if (rule)
		prober_verify(p, map);
	if (p->error || (rule && verified(map)))
		return !p->error;
	/* A rule with exceptions tells a table more than no rule. */
	near = *map;
	rule = rule && map->bad * 4 < map->tests && map->channels == p->classes;
	if (!table || p->classes > DISCOVER_CHANNELS ||
	    !enumerate(p, rule ? &near : NULL, map))
		return false;
	prober_verify(p, map);
	return !p->error && verified(map);
}

static struct color_map *new_map(const struct discover_device *d)
{
	struct color_map *map = calloc(1, sizeof(*map));

	if (!map)
		return NULL;
	map->memory = d->memory;
	map->granule = 1u << d->granule_log2;
	map->source = COLOR_MAP_PROBE;
	return map;
}

static int check(const struct discover_device *d)
{
	uint64_t end = ((uint64_t)d->first + d->granules) << d->granule_log2;

	if (!d->measure || d->granule_log2 < 8 || d->granule_log2 > 20 ||
	    d->granules < DISCOVER_LEAST || d->first + d->granules > 1u << 24 ||
	    (d->lines & (d->lines - 1)) != 0 || d->together < 2 ||
	    d->together > DISCOVER_TOGETHER || end > d->memory ||
	    d->memory >> d->granule_log2 > 1u << 24)
		return -EINVAL;
	return 0;
}

static void begin(struct prober *p, const struct discover_device *device, uint64_t seed,
		  struct discover_result *out)
{
	uint32_t lines = (1u << device->granule_log2) / LINE_BYTES;
	uint32_t most = device->lines ? device->lines : LINES;

	memset(p, 0, sizeof(*p));
	memset(out, 0, sizeof(*out));
	p->dev = device;
	p->result = out;
	p->lines = lines < most ? lines : most;
	p->tests_max = TESTS_MAX;
	p->rng = (seed + 1) * UINT64_C(0x9E3779B97F4A7C15);
	for (uint32_t i = 0; i < 8; i++)
		prober_random64(p);
}

static void try_all(struct prober *p, uint32_t attempts, struct color_map *map)
{
	bool found = false;

	while (!found && p->result->attempts < attempts && !p->error) {
		free(map->table);
		map->table = NULL;
		map->channels = map->mask_count = 0;
		p->result->attempts++;
		found = attempt(p, map);
	}
	if (!found && !p->error)
		p->error = -ENOENT;
}

int discover(const struct discover_device *device, const struct discover_options *options,
	     struct discover_result *out)
{
	struct color_map *map;
	struct prober p;
	int rc = check(device);

	begin(&p, device, options->seed, out);
	if (rc)
		return rc;
	if (options->tests_max)
		p.tests_max = options->tests_max;
	map = new_map(device);
	if (!map)
		return -ENOMEM;
	try_all(&p, options->attempts ? options->attempts : ATTEMPTS, map);
	prober_forget(&p);
	map->noise = out->p1 > 0;
	map->p0 = out->p0;
	map->p1 = out->p1;
	map->probed = true;
	map->probe_tests = out->tests;
	map->probe_loads = out->loads;
	map->probe_cycles = out->cycles;
	map->probe_seed = options->seed;
	if (map->channels)
		out->map = map;
	else
		color_map_free(map);
	return p.error;
}

/* Pairs that are 2^log2 bytes apart, in one piece of twice that. */
static uint32_t slow_pairs(struct prober *p, uint32_t log2)
{
	uint32_t apart = 1u << (log2 - PIECE_LOG2), slow = 0;

	for (uint32_t i = 0; i < PIECES && !p->error; i++) {
		uint32_t pair[2];

		do
			pair[0] = prober_granule(p) & ~(2 * apart - 1);
		while (pair[0] < p->dev->first ||
		       pair[0] + 2 * apart > p->dev->first + p->dev->granules);
		pair[1] = pair[0] + apart;
		slow += prober_ask(p, pair, 2);
	}
	return slow;
}

int discover_granule(const struct discover_device *device, uint64_t seed)
{
	struct discover_result result;
	uint32_t log2 = PIECE_LOG2;
	struct prober p;
	bool single;
	int rc = check(device);

	if (rc || device->granule_log2 != PIECE_LOG2)
		return -EINVAL;
	begin(&p, device, seed, &result);
	prober_calibrate(&p, &single);
	while (!single && log2 <= LARGEST && !p.error &&
	       slow_pairs(&p, log2) >= INSIDE * PIECES)
		log2++;
	if (p.error)
		return p.error;
	return single ? (int)LARGEST + 1 : (int)log2;
}
