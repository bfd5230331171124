/* SPDX-License-Identifier: Apache-2.0 */
/* pages.c - constants of pages; see pages.h. */
#include "pages.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define KNOWN      DISCOVER_KNOWN
#define MOST       600u /* tests of a page */
#define ENOUGH     0.9999
#define APART      0.3 /* of the shares of slow ones, at least */
#define LINE       64u
#define ALWAYS     0.02 /* no answer is ever more certain than that */
#define CANDIDATES (1u << COLOR_MAP_MASKS)

struct pages {
	const struct discover_device *dev;
	const struct color_map *map;
	uint32_t granules; /* of a page */
	uint64_t rng;
	double tau, p0, p1; /* slower than tau are p0 of two channels, p1 of one */
	int error;
};

static uint32_t below(struct pages *p, uint32_t n)
{
	p->rng ^= p->rng << 13;
	p->rng ^= p->rng >> 7;
	p->rng ^= p->rng << 17;
	return (uint32_t)((p->rng * UINT64_C(2685821657736338717) >> 32) * n >> 32);
}

static uint32_t lines_of(const struct discover_device *d)
{
	const uint32_t all = (1u << d->granule_log2) / LINE,
		       most = d->lines ? d->lines : 8;

	return all < most ? all : most;
}

static double time_of(struct pages *p, uint32_t a, uint32_t b)
{
	const uint64_t at[2] = {(uint64_t)a << p->dev->granule_log2,
				(uint64_t)b << p->dev->granule_log2};
	uint64_t cycles = 0;

	if (!p->error)
		p->error =
			p->dev->measure(p->dev->user, at, 2, lines_of(p->dev), &cycles);
	return (double)cycles;
}

/* A granule of the first page on that channel, or on any other. */
static uint32_t member(struct pages *p, uint32_t channel, bool is)
{
	uint32_t g;

	do
		g = below(p, p->granules);
	while ((color_map_channel(p->map, g) == channel) != is);
	return g;
}

static int by_value(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double share_above(const double *times, double tau)
{
	uint32_t n = 0, i;

	for (i = 0; i < KNOWN; i++)
		n += times[i] > tau;
	return ((double)n + 1) / (KNOWN + 2);
}

/* The threshold between what pairs of one channel take and pairs of two. */
static void calibrate(struct pages *p)
{
	double same[KNOWN], other[KNOWN];
	uint32_t i;

	for (i = 0; i < KNOWN; i++) {
		const uint32_t g = below(p, p->granules),
			       channel = color_map_channel(p->map, g);

		same[i] = time_of(p, g, member(p, channel, true));
		other[i] = time_of(p, g, member(p, channel, false));
	}
	if (p->error)
		return;
	qsort(same, KNOWN, sizeof(same[0]), by_value);
	qsort(other, KNOWN, sizeof(other[0]), by_value);
	p->tau = (same[KNOWN / 2] + other[KNOWN / 2]) / 2;
	p->p1 = share_above(same, p->tau);
	p->p0 = share_above(other, p->tau);
	if (p->p1 - p->p0 < APART)
		p->error = -EBUSY;
}

uint32_t discover_page_channel(const struct color_map *map,
			       const struct discover_page *page, uint32_t granule)
{
	const uint32_t channel = color_map_channel(map, granule);
	const uint32_t low = channel & ((1u << map->mask_count) - 1),
		       q = map->kind == COLOR_MAP_XORMOD ? map->q : 1;

	return ((channel >> map->mask_count) + page->offset) % q << map->mask_count |
	       (low ^ page->parities);
}

static struct discover_page candidate(const struct color_map *map, uint32_t number)
{
	return (struct discover_page){.parities = number & ((1u << map->mask_count) - 1),
				      .offset = number >> map->mask_count};
}

/* One granule of the page beside one of the first: for each candidate, how likely the
 * answer was. */
static void ask(struct pages *p, uint32_t page, double *log_odds)
{
	const uint32_t g = below(p, p->granules), m = below(p, p->granules),
		       channel = color_map_channel(p->map, m);
	const bool slow = time_of(p, page * p->granules + g, m) > p->tau;
	uint32_t i;

	for (i = 0; i < p->map->channels; i++) {
		const struct discover_page c = candidate(p->map, i);
		const bool same = discover_page_channel(p->map, &c, g) == channel;
		double likely = same ? p->p1 : p->p0;

		likely = slow ? likely : 1 - likely;
		log_odds[i] += log(likely > ALWAYS ? likely : ALWAYS);
	}
}

/* The best candidate, and how sure that is. */
static uint32_t best_of(const double *log_odds, uint32_t count, double *sure)
{
	uint32_t best = 0, i;
	double sum = 0;

	for (i = 1; i < count; i++)
		best = log_odds[i] > log_odds[best] ? i : best;
	for (i = 0; i < count; i++)
		sum += exp(log_odds[i] - log_odds[best]);
	*sure = 1 / sum;
	return best;
}

static void find(struct pages *p, uint32_t page, struct discover_page *out)
{
	double log_odds[CANDIDATES] = {0}, sure = 0;
	uint32_t best = 0, tests = 0;

	while (tests < MOST && sure < ENOUGH && !p->error) {
		ask(p, page, log_odds);
		tests++;
		best = best_of(log_odds, p->map->channels, &sure);
	}
	*out = candidate(p->map, best);
	out->sure = sure;
	out->tests = tests;
}

int discover_pages(const struct discover_device *device, const struct color_map *map,
		   uint32_t count, uint64_t seed, struct discover_page *out)
{
	struct pages p = {.dev = device,
			  .map = map,
			  .granules = (uint32_t)color_map_granules(map),
			  .rng = (seed + 1) * UINT64_C(0x9E3779B97F4A7C15)};
	uint32_t i;

	if (map->kind == COLOR_MAP_TABLE || map->channels < 2 ||
	    map->channels > CANDIDATES || map->granule != 1u << device->granule_log2 ||
	    (uint64_t)p.granules * (count + 1) > device->granules)
		return -EINVAL;
	calibrate(&p);
	for (i = 0; i < count && !p.error; i++)
		find(&p, i + 1, &out[i]);
	return p.error;
}
