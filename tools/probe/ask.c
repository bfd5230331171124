/* SPDX-License-Identifier: Apache-2.0 */
/* ask.c - tests of granules and what their times mean. */
#include "prober.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MEMBERS_MAX 2000u /* of a pool */
#define PAIRS       200u  /* random ones, of which some lie on two channels */
#define SINGLES     64u
#define PART        0.7 /* of what one channel takes more than two */
#define TRIALS      100u

/* xorshift64* */
uint64_t prober_random64(struct prober *p)
{
	p->rng ^= p->rng << 13;
	p->rng ^= p->rng >> 7;
	p->rng ^= p->rng << 17;
	return p->rng * UINT64_C(2685821657736338717);
}

uint32_t prober_random(struct prober *p, uint32_t below)
{
	return (uint32_t)((prober_random64(p) >> 32) * below >> 32);
}

double prober_uniform(struct prober *p)
{
	return (double)(prober_random64(p) >> 11) * 0x1p-53;
}

uint32_t prober_granule(struct prober *p)
{
	return p->dev->first + prober_random(p, p->dev->granules);
}

/* ---- tests ------------------------------------------------------------------------ */

static double run(struct prober *p, const uint64_t *at, uint32_t count, uint32_t lines)
{
	uint64_t cycles = 0;

	if (!p->error && p->result->tests >= p->tests_max)
		p->error = -ENOENT;
	if (p->error)
		return 0;
	p->error = p->dev->measure(p->dev->user, at, count, lines, &cycles);
	p->result->tests++;
	p->result->loads += (uint64_t)count * lines;
	p->result->cycles += cycles;
	return p->error ? 0 : (double)cycles;
}

/* Anywhere in its granule, so that lines differ from test to test. */
double prober_time(struct prober *p, const uint32_t *granules, uint32_t count)
{
	uint32_t places = (1u << p->dev->granule_log2) / LINE_BYTES - p->lines + 1;
	uint64_t at[DISCOVER_TOGETHER];

	for (uint32_t i = 0; i < count; i++)
		at[i] = ((uint64_t)granules[i] << p->dev->granule_log2) +
			(uint64_t)prober_random(p, places) * LINE_BYTES;
	return run(p, at, count, p->lines);
}

bool prober_ask(struct prober *p, const uint32_t *granules, uint32_t count)
{
	return prober_time(p, granules, count) > p->tau[count - 1];
}

void prober_fill(struct prober *p, uint32_t tests)
{
	for (uint32_t i = 0; i < tests && !p->error; i++) {
		const uint32_t pair[2] = {prober_granule(p), prober_granule(p)};

		prober_time(p, pair, 2);
	}
}

double prober_weight(const struct prober *p, bool slow)
{
	return slow ? log(p->p1[1] / p->p0[1]) : log((1 - p->p1[1]) / (1 - p->p0[1]));
}

/* ---- thresholds ------------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Of pairs of neighbours inside one granule. */
static double inside(struct prober *p, uint32_t lines, double quantile)
{
	double t[SINGLES];

	for (uint32_t i = 0; i < SINGLES; i++) {
		uint64_t first = (uint64_t)prober_granule(p) << p->dev->granule_log2;
		const uint64_t at[2] = {first, first + (uint64_t)lines * LINE_BYTES};

		t[i] = run(p, at, 2, lines);
	}
	qsort(t, SINGLES, sizeof(t[0]), by_value);
	return t[(uint32_t)(quantile * SINGLES)];
}

static double low_of_pairs(struct prober *p, uint32_t lines)
{
	uint32_t all = p->lines;
	double t[PAIRS];

	p->lines = lines;
	for (uint32_t i = 0; i < PAIRS; i++) {
		uint32_t pair[2] = {prober_granule(p), 0};

		do
			pair[1] = prober_granule(p);
		while (pair[1] == pair[0]);
		t[i] = prober_time(p, pair, 2);
	}
	p->lines = all;
	qsort(t, PAIRS, sizeof(t[0]), by_value);
	return t[PAIRS * 15 / 100];
}

/* Without labels: the low end of random pairs' times is "two channels" for any number of
 * channels but one; a middle one is not, of two.  Two halves of a granule are "one
 * channel".  Where these are no slower there is but one. */
void prober_calibrate(struct prober *p, bool *single)
{
	uint32_t half = (1u << p->dev->granule_log2) / LINE_BYTES / 2;
	double one, low, least, apart;

	if (half > LINES)
		half = LINES;
	/* The size is known to be 4 lines at least: half is 2. */
	one = inside(p, half, 0.25);
	least = 0.25 * (one - inside(p, half / 2, 0.25));
	low = low_of_pairs(p, half);
	apart = one - low;
	*single = apart < least;
	if (half != p->lines)
		low = low_of_pairs(p, p->lines);
	if (*single) /* rows that change make pairs slower than halves */
		apart = (apart < 0 ? apart : 0) - least;
	else
		apart *= PART;
	apart = apart * p->lines / half;
	for (uint32_t s = 1; s <= SETS; s++) {
		p->tau[s] = low + apart;
		p->p0[s] = 0.2;
		p->p1[s] = 0.93;
	}
	p->set = 1;
}

/* All pairs are of one channel if none is faster than two halves of a granule are: rows
 * that change make some slower.  So the share of pairs below any time is no larger than
 * that of halves (Kolmogorov and Smirnov, one side; what chance makes of it stays below
 * with 99.9 %).  Where a cache takes the load off the channels, single may be said of
 * several, whose pairs are hardly faster, but are. */
void prober_try_single(struct prober *p, struct color_map *map)
{
	enum { TIMES = 12000 };
	uint32_t all = p->lines, half = (1u << p->dev->granule_log2) / LINE_BYTES / 2;
	double *t = calloc((size_t)2 * TIMES, sizeof(*t)), *pairs = t + TIMES;
	double faster = 0;

	if (t == NULL) {
		p->error = -ENOMEM;
		return;
	}
	half = half < LINES ? half : LINES;
	p->lines = half;
	for (uint32_t i = 0; i < TIMES && !p->error; i++) {
		uint64_t first = (uint64_t)prober_granule(p) << p->dev->granule_log2;
		const uint64_t at[2] = {first, first + (uint64_t)half * LINE_BYTES};
		const uint32_t two[2] = {prober_granule(p), prober_granule(p)};

		t[i] = run(p, at, 2, half);
		pairs[i] = prober_time(p, two, 2);
	}
	p->lines = all;
	qsort(t, TIMES, sizeof(*t), by_value);
	qsort(pairs, TIMES, sizeof(*pairs), by_value);
	for (uint32_t i = 0, k = 0; i < TIMES; i++) {
		while (k < TIMES && t[k] <= pairs[i])
			k++;
		if ((double)(i + 1) - k > faster)
			faster = (double)(i + 1) - k;
	}
	free(t);
	if (faster / TIMES <= 1.95 * sqrt(2.0 / TIMES))
		return;
	map->tests = TIMES;
	map->bad = (uint64_t)faster;
	map->bound = faster / TIMES;
	p->error = -ENOENT; /* what does not show does not show in another attempt */
}

struct trials {
	double slow[TRIALS], fast[TRIALS];
};

static double test_of(struct prober *p, uint32_t s, bool slow)
{
	uint32_t base = prober_random(p, p->classes), q[DISCOVER_TOGETHER], class;
	uint32_t pick = slow ? prober_random(p, s) : s + prober_random(p, p->classes - s);

	for (uint32_t j = 0; j < s; j++)
		q[j + 1] = prober_member(p, (base + j) % p->classes, UINT32_MAX);
	class = (base + pick) % p->classes;
	q[0] = prober_member(p, class, slow ? q[pick + 1] : UINT32_MAX);
	return prober_time(p, q, s + 1);
}

static uint32_t above(const double *t, double limit)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < TRIALS; i++)
		n += t[i] > limit;
	return n;
}

static double bounded(double p, double low, double high)
{
	return p < low ? low : p > high ? high : p;
}

/* The threshold that tells most apart.  No answer may count for more than what is wrong
 * for ever with some pair allows, so rates stay off 0 and 1. */
static void set_threshold(struct prober *p, uint32_t s, const struct trials *t)
{
	double best = -1, limit = p->tau[s];

	for (uint32_t i = 0; i < 2 * TRIALS; i++) {
		double at = i % 2 ? t->slow[i / 2] - 1 : t->fast[i / 2] + 1;
		double gain = (double)above(t->slow, at) - (double)above(t->fast, at);

		if (gain > best) {
			best = gain;
			limit = at;
		}
	}
	p->tau[s] = limit;
	p->p0[s] = bounded((above(t->fast, limit) + 1.0) / (TRIALS + 2), 0.06, 0.9);
	p->p1[s] = bounded((above(t->slow, limit) + 1.0) / (TRIALS + 2), 0.1, 0.94);
}

static double entropy(double x)
{
	return -x * log2(x) - (1 - x) * log2(1 - x);
}

void prober_recalibrate(struct prober *p)
{
	double most = 0;
	struct trials t;

	p->set = 1;
	for (uint32_t s = 1; s < p->dev->together && s < p->classes && !p->error; s++) {
		double share = (double)s / p->classes, slow, told;

		for (uint32_t i = 0; i < TRIALS; i++) {
			t.fast[i] = test_of(p, s, false);
			t.slow[i] = test_of(p, s, true);
		}
		set_threshold(p, s, &t);
		slow = share * p->p1[s] + (1 - share) * p->p0[s];
		told = entropy(slow) - share * entropy(p->p1[s]) -
		       (1 - share) * entropy(p->p0[s]);
		if (told > most) {
			most = told;
			p->set = s;
		}
	}
	p->result->p0 = p->p0[1];
	p->result->p1 = p->p1[1];
}

/* ---- classes ------------------------------------------------------------------------ */

void prober_add(struct prober *p, uint32_t class, uint32_t granule)
{
	struct pool *l = &p->pool[class];
	uint32_t *more;

	if (l->count == MEMBERS_MAX)
		return;
	if (l->count == l->room) {
		more = realloc(l->granule, (2 * l->room + 16) * sizeof(*more));
		if (!more) {
			p->error = -ENOMEM;
			return;
		}
		l->granule = more;
		l->room = 2 * l->room + 16;
	}
	l->granule[l->count++] = granule;
}

uint32_t prober_member(struct prober *p, uint32_t class, uint32_t but)
{
	struct pool *l = &p->pool[class];
	uint32_t g;

	l->next = (l->next + 1) % l->count;
	g = l->granule[l->next];
	if (g == but) {
		l->next = (l->next + 1) % l->count;
		g = l->granule[l->next];
	}
	return g;
}

/* The last class comes in its place. */
void prober_drop(struct prober *p, uint32_t class)
{
	struct pool gone = p->pool[class];

	p->classes--;
	p->pool[class] = p->pool[p->classes];
	p->pool[p->classes] = gone;
	p->pool[p->classes].count = 0;
	p->pool[p->classes].next = 0;
}

void prober_forget(struct prober *p)
{
	for (uint32_t k = 0; k < CLASSES; k++)
		free(p->pool[k].granule);
	memset(p->pool, 0, sizeof(p->pool));
	p->classes = 0;
}
