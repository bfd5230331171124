/* SPDX-License-Identifier: Apache-2.0 */
/* channels.c - a device for tests of the discovery; see channels.h. */
#include "channels.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST      16u
#define BANKS     8u
#define FIFO      16u
#define ROW_LINES 16u
#define BEATS     4u
#define CHANGE    8u /* cycles of nCL, nRCD, nRP each */
#define REFI      3900u
#define RFC       280u
#define SETS      32u
#define WAYS      4u
#define FOREIGN   (1u << 22) /* lines of others */

struct channel {
	uint64_t bus, granted;
	uint64_t ready[BANKS];
	uint32_t row[BANKS];
	bool open[BANKS];
	uint64_t refresh;
	uint64_t taken[FIFO]; /* when the last requests left the FIFO */
	uint32_t next;
	double others, rho; /* the next request of others, their load now */
	uint64_t phase;     /* until when it is that */
	uint32_t other_line;
	uint32_t tag[SETS][WAYS]; /* line + 1 */
	uint8_t age[SETS][WAYS];
};

struct channels {
	enum channels_family family;
	uint32_t bits, granule_log2, granules, count;
	uint32_t k, q, digits;
	uint32_t mask[4];
	uint8_t weight[COLOR_MAP_DIGITS];
	uint8_t *table;
	double exceptions;
	struct channels_noise noise;
	uint64_t rng, seed, now;
	struct channel channel[MOST];
};

static uint64_t random64(struct channels *c)
{
	c->rng ^= c->rng << 13;
	c->rng ^= c->rng >> 7;
	c->rng ^= c->rng << 17;
	return c->rng * UINT64_C(2685821657736338717);
}

static uint32_t below(struct channels *c, uint32_t n)
{
	return (uint32_t)((random64(c) >> 32) * n >> 32);
}

static double uniform(struct channels *c)
{
	return (double)(random64(c) >> 11) * 0x1p-53;
}

static uint64_t mix(uint64_t x)
{
	x ^= x >> 33;
	x *= UINT64_C(0xff51afd7ed558ccd);
	x ^= x >> 33;
	x *= UINT64_C(0xc4ceb9fe1a85ec53);
	return x ^ x >> 33;
}

static double share(uint64_t x)
{
	return (double)(mix(x) >> 11) * 0x1p-53;
}

/* ---- where granules lie --------------------------------------------------------------- */

static uint32_t place(const struct channels *c, uint32_t g, uint32_t *local)
{
	uint32_t low = 0, u = g >> c->k, f = 0, at;

	*local = g / c->count;
	if (c->table)
		return c->table[g];
	*local = u / c->q;
	for (uint32_t i = 0; i < c->k; i++) {
		uint32_t mask = (c->mask[i] & ~((2u << i) - 1)) | 1u << i;

		low |= (uint32_t)__builtin_parity(g & mask) << i;
	}
	for (uint32_t j = 0; j < c->digits; j++, u /= c->q)
		f += c->weight[j] * (u % c->q);
	at = low | (c->q > 1 ? f % c->q : 0) << c->k;
	if (c->exceptions > 0 &&
	    share(g * UINT64_C(2654435761) ^ c->seed) < c->exceptions)
		at = (at + 1 + (uint32_t)(mix(g + c->seed) % (c->count - 1))) % c->count;
	return at;
}

static void draw_mod(struct channels *c, uint32_t number)
{
	static const uint8_t qk[][2] = {{3, 0}, {3, 1}, {3, 2},  {5, 0},  {5, 1}, {7, 0},
					{7, 1}, {9, 0}, {11, 0}, {13, 0}, {15, 0}};

	c->q = qk[number % 11][0];
	c->k = qk[number % 11][1];
	c->digits = c->family == CHANNELS_WEIGHTS ? DISCOVER_CHANNELS + 8 : 2;
	for (uint32_t j = 0; j < c->digits; j++)
		c->weight[j] = j == 0 || c->digits == 2 ? 1 : (uint8_t)below(c, c->q);
}

static bool draw_table(struct channels *c, uint32_t number)
{
	static const uint8_t counts[] = {4, 6, 8, 12, 16};

	c->count = counts[number % 5];
	c->granules -= c->granules % c->count;
	c->table = malloc((size_t)1 << c->bits);
	if (!c->table)
		return false;
	for (uint32_t b = 0; b < c->granules; b += c->count) {
		uint8_t *at = c->table + b;

		for (uint32_t j = 0; j < c->count; j++)
			at[j] = (uint8_t)j;
		for (uint32_t j = c->count; j > 1; j--) {
			uint32_t o = below(c, j);
			uint8_t t = at[j - 1];

			at[j - 1] = at[o];
			at[o] = t;
		}
		for (uint32_t j = 0; c->family == CHANNELS_NONE && j < c->count; j++)
			at[j] = (uint8_t)below(c, c->count);
	}
	return true;
}

static bool draw_map(struct channels *c, uint32_t number)
{
	c->q = 1;
	for (uint32_t i = 0; i < 4; i++)
		c->mask[i] = below(c, c->granules);
	switch (c->family) {
	case CHANNELS_TABLE:
	case CHANNELS_NONE:
		return draw_table(c, number);
	case CHANNELS_ALMOST:
		c->exceptions = 0.02;
		if (number % 2)
			draw_mod(c, number);
		else
			c->k = 1 + number % 4;
		break;
	case CHANNELS_XOR:
		c->k = number % 5; /* one channel, too */
		break;
	default:
		draw_mod(c, number);
		break;
	}
	c->count = c->q << c->k;
	return true;
}

struct channels *channels_create(enum channels_family family, uint32_t number,
				 uint32_t bits, uint32_t granule_log2,
				 const struct channels_noise *noise, uint64_t seed)
{
	struct channels *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->family = family;
	c->bits = bits;
	c->granule_log2 = granule_log2;
	c->granules = 1u << bits;
	c->noise = *noise;
	c->seed = mix(seed * 1000 + family * UINT64_C(77) + number + 1);
	c->rng = c->seed | 1;
	c->now = 1000;
	if (!draw_map(c, number)) {
		free(c);
		return NULL;
	}
	for (uint32_t i = 0; i < MOST; i++) {
		c->channel[i].refresh =
			noise->refresh ? 1000 + below(c, REFI) : UINT64_MAX;
		c->channel[i].rho = noise->load;
	}
	return c;
}

void channels_destroy(struct channels *c)
{
	if (!c)
		return;
	free(c->table);
	free(c);
}

uint32_t channels_count(const struct channels *c)
{
	return c->count;
}

/* ---- how long loads take ---------------------------------------------------------------- */

/* Of a line that comes to the cache: is it there?  The oldest goes, or one in four times
 * any. */
static bool cached(struct channels *c, struct channel *ch, uint32_t line)
{
	uint32_t s = (line ^ line / SETS ^ line / SETS / SETS) % SETS, w = 0;
	bool hit = false;

	if (!c->noise.cache)
		return false;
	for (uint32_t v = 0; v < WAYS && !hit; v++) {
		hit = ch->tag[s][v] == line + 1;
		w = v;
	}
	if (!hit) {
		for (uint32_t v = w = 0; v < WAYS; v++)
			w = ch->age[s][v] > ch->age[s][w] ? v : w;
		if (!below(c, 4))
			w = below(c, WAYS);
	}
	for (uint32_t v = 0; v < WAYS; v++)
		if (ch->age[s][v] < UINT8_MAX)
			ch->age[s][v]++;
	ch->tag[s][w] = line + 1;
	ch->age[s][w] = 0;
	return hit;
}

/* Rows are closed, and the channel is shut for a while. */
static void refresh(struct channel *ch, uint64_t t)
{
	while (ch->refresh <= t || ch->refresh <= ch->granted) {
		uint64_t end = (ch->bus > ch->refresh ? ch->bus : ch->refresh) + RFC;

		for (uint32_t b = 0; b < BANKS; b++) {
			ch->open[b] = false;
			if (ch->ready[b] < end)
				ch->ready[b] = end;
		}
		ch->refresh += REFI;
	}
}

static uint64_t dram(struct channel *ch, uint32_t line, uint64_t t)
{
	uint32_t row = line / ROW_LINES / BANKS;
	uint32_t b = (line / ROW_LINES ^ row) % BANKS;
	uint64_t g = t, col, data;

	refresh(ch, t);
	if (ch->granted + 1 > g)
		g = ch->granted + 1;
	if (ch->bus > g + UINT64_C(3) * CHANGE)
		g = ch->bus - UINT64_C(3) * CHANGE;
	col = ch->ready[b] > g ? ch->ready[b] : g;
	if (!ch->open[b])
		col += CHANGE;
	else if (ch->row[b] != row)
		col += UINT64_C(2) * CHANGE;
	data = ch->bus > col + CHANGE ? ch->bus : col + CHANGE;
	ch->granted = g;
	ch->open[b] = true;
	ch->row[b] = row;
	ch->ready[b] = data - CHANGE + BEATS;
	ch->bus = data + BEATS;
	return data + BEATS;
}

/* Lines in a row or anywhere; the load comes and goes.  They wait, too: what they have
 * waiting is short. */
static void others(struct channels *c, struct channel *ch, uint64_t t)
{
	while (c->noise.load > 0 && ch->others <= (double)t) {
		uint64_t at = (uint64_t)ch->others;

		if (at > ch->phase) {
			ch->phase = at + 5000 + below(c, 30000);
			ch->rho = c->noise.load * (below(c, 2) ? 1.7 : 0.3);
		}
		if (at + 2000 > t && ch->bus < at + 24) {
			ch->other_line = below(c, 4) ? (ch->other_line + 1) % FOREIGN
						     : below(c, FOREIGN);
			if (!cached(c, ch, ch->other_line))
				dram(ch, ch->other_line, at);
		}
		ch->others += -log(1 - uniform(c)) * BEATS / ch->rho;
	}
}

/* One load, at *t or when the FIFO has room for it. */
static uint64_t load(struct channels *c, uint64_t at, uint64_t *t)
{
	uint32_t lines = (1u << c->granule_log2) / 64, local;
	uint32_t line = (uint32_t)(at / 64) % lines;
	struct channel *ch =
		&c->channel[place(c, (uint32_t)(at >> c->granule_log2), &local)];
	uint64_t done, *taken = &ch->taken[ch->next++ % FIFO];

	line += local * lines;
	if (*taken > *t)
		*t = *taken;
	others(c, ch, *t);
	if (cached(c, ch, line)) {
		done = *t + BEATS;
		*taken = *t;
	} else {
		done = dram(ch, line, *t);
		*taken = ch->granted;
	}
	++*t;
	return done;
}

/* Whatever is asked again about the same granules: the answer stays wrong. */
static bool is_wrong(const struct channels *c, const uint64_t *at, uint32_t count)
{
	uint64_t sum = c->seed;

	for (uint32_t i = 0; i < count; i++)
		sum += mix((at[i] >> c->granule_log2) + UINT64_C(0x9e3779b97f4a7c15));
	return c->noise.wrong > 0 && share(sum) < c->noise.wrong;
}

/* A wrong answer is a time as the other kind of pair has it. */
static uint64_t other_time(struct channels *c, const uint64_t *at, uint32_t count,
			   uint64_t cycles, uint32_t lines)
{
	uint64_t by = (uint64_t)lines * BEATS;
	uint32_t first, other;
	bool same = false;

	for (uint32_t i = 1; i < count; i++)
		same = same ||
		       place(c, (uint32_t)(at[0] >> c->granule_log2), &first) ==
			       place(c, (uint32_t)(at[i] >> c->granule_log2), &other);
	if (!same)
		return cycles + by;
	return cycles > by ? cycles - by : 1;
}

static int measure(void *user, const uint64_t *at, uint32_t count, uint32_t lines,
		   uint64_t *cycles)
{
	struct channels *c = user;
	uint64_t t, end;

	c->now += 20 + below(c, 200);
	t = end = c->now;
	for (uint32_t i = 0; i < lines; i++)
		for (uint32_t j = 0; j < count; j++) {
			uint64_t done = load(c, at[j] + i * UINT64_C(64), &t);

			end = done > end ? done : end;
		}
	*cycles = end - c->now + (uint64_t)(uniform(c) * c->noise.jitter);
	if (is_wrong(c, at, count))
		*cycles = other_time(c, at, count, *cycles, lines);
	c->now = end;
	return 0;
}

void channels_device(struct channels *c, struct discover_device *out)
{
	*out = (struct discover_device){
		.measure = measure,
		.user = c,
		.granule_log2 = c->granule_log2,
		.granules = c->granules,
		.memory = (uint64_t)c->granules << c->granule_log2,
		.together = DISCOVER_TOGETHER,
	};
}

/* Greedy: the channels that most of each of map's are on, each once. */
double channels_accuracy(const struct channels *c, const struct color_map *map)
{
	uint32_t count[COLOR_MAP_COLORS][MOST] = {{0}}, local, agree = 0, taken = 0;

	for (uint32_t g = 0; g < c->granules; g++) {
		uint32_t at = color_map_channel(map, g);

		if (at < COLOR_MAP_COLORS)
			count[at][place(c, g, &local)]++;
	}
	for (uint32_t k = 0; k < map->channels; k++) {
		uint32_t best = MOST;

		for (uint32_t x = 0; x < MOST; x++)
			if (!(taken >> x & 1u) &&
			    (best == MOST || count[k][x] > count[k][best]))
				best = x;
		if (best < MOST && count[k][best]) {
			agree += count[k][best];
			taken |= 1u << best;
		}
	}
	return (double)agree / c->granules;
}
