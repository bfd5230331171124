/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_probe_gpu.c - the discovery on a model of a GPU's memory, by maps that were drawn
 * for this and seen by nobody who set a threshold: parities, and parities with a number
 * modulo 5, over physical addresses of which a program knows those within 2 MiB.
 *
 * All of the model's times and its noise are invented.  It tests our code, and is never
 * evidence about GPUs: not that one's channels can be told by time, nor what its map is.
 *
 * The control: the same with times that are shuffled, so that they belong to other
 * questions.  The discovery then finds no map; with the first page's map as a gift, the
 * constants of the others are as good as chance.
 *
 *   bench_probe_gpu [MAPS [SEED]]    figures
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pages.h"

enum {
	LOG2 = 10,     /* bytes of a granule */
	PAGE = 2048,   /* granules: 2 MiB */
	PAGES = 16,    /* and the first */
	MASKS = 3,     /* parities at most */
	POOL = 4096,   /* times that are shuffled */
	LATENCY = 620, /* cycles: of a load, */
	SERVICE = 26,  /* of a line on its channel, */
	SPREAD = 60,   /* the standard deviation of the clock, */
	TLB = 300,
	LATE = 1500,
};
#define MISS   0.04 /* of the pages' translations */
#define OTHERS 0.03 /* of tests, something else takes the channel */
#define HITS   0.08 /* of lines, in a cache */
#define WRONG  0.03 /* of pairs, for ever */

struct gpu {
	uint64_t rng, mask[MASKS], frame[PAGES + 1]; /* .frame: physical, of a page */
	uint32_t k, q, channels;
	bool shuffled; /* as soon as .left is 0 */
	uint32_t left; /* tests before that */
	uint64_t pool[POOL];
	uint32_t pooled;
};

static uint64_t random64(struct gpu *g)
{
	g->rng ^= g->rng << 13;
	g->rng ^= g->rng >> 7;
	g->rng ^= g->rng << 17;
	return g->rng * UINT64_C(2685821657736338717);
}

static double uniform(struct gpu *g)
{
	return (double)(random64(g) >> 11) * 0x1p-53;
}

static void draw(struct gpu *g, uint32_t number, uint64_t seed)
{
	uint32_t i;

	memset(g, 0, sizeof(*g));
	g->rng = (seed * 1000 + number + 1) * UINT64_C(0x9E3779B97F4A7C15);
	for (i = 0; i < 8; i++)
		(void)random64(g);
	/* 2, 4 and 8 channels by parities, 5 and 10 with the number. */
	g->q = number % 2 ? 5 : 1;
	g->k = number % 2 ? number / 2 % 2 : 1 + number / 2 % 3;
	g->channels = g->q << g->k;
	/* Bit i and any above it, at least two of them within a page. */
	for (i = 0; i < g->k; i++)
		g->mask[i] = (random64(g) & 0x1ffffff & ~((2u << i) - 1)) | 1u << i |
			     1u << (4 + i);
	for (i = 0; i <= PAGES; i++)
		g->frame[i] = random64(g) >> 50;
}

static uint32_t place(const struct gpu *g, uint32_t granule)
{
	const uint64_t at = g->frame[granule / PAGE] * PAGE + granule % PAGE;
	uint32_t channel = (uint32_t)((at >> g->k) % g->q) << g->k, i;

	for (i = 0; i < g->k; i++)
		channel |= (uint32_t)__builtin_parityll(at & g->mask[i]) << i;
	return channel;
}

static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 33) * UINT64_C(0xff51afd7ed558ccd);
	x = (x ^ x >> 33) * UINT64_C(0xc4ceb9fe1a85ec53);
	return x ^ x >> 33;
}

/* Two granules that some other part of the memory holds up together, for ever. */
static bool is_wrong(uint32_t a, uint32_t b)
{
	const uint64_t pair = (uint64_t)(a < b ? a : b) << 32 | (a < b ? b : a);

	return (double)(mix(pair) >> 11) * 0x1p-53 < WRONG;
}

static double true_time(struct gpu *g, const uint64_t *at, uint32_t count, uint32_t lines)
{
	double busy[8 * 5] = {0}, most = 0, noise = -6;
	uint32_t i, k;

	for (i = 0; i < count; i++) {
		const uint32_t granule = (uint32_t)(at[i] >> LOG2);
		uint32_t channel = place(g, granule);

		if (i && is_wrong((uint32_t)(at[0] >> LOG2), granule))
			channel = place(g, (uint32_t)(at[0] >> LOG2));
		for (k = 0; k < lines; k++)
			busy[channel] += uniform(g) < HITS ? 0 : SERVICE;
		most = busy[channel] > most ? busy[channel] : most;
		most += uniform(g) < MISS ? TLB : 0;
	}
	for (i = 0; i < 12; i++)
		noise += uniform(g);
	most += uniform(g) < OTHERS ? uniform(g) * LATE : 0;
	return LATENCY + most + noise * SPREAD;
}

static int measure(void *user, const uint64_t *at, uint32_t count, uint32_t lines,
		   uint64_t *cycles)
{
	struct gpu *g = user;
	const double t = true_time(g, at, count, lines);
	const uint32_t i = (uint32_t)(random64(g) % POOL);
	const uint64_t was =
		g->pool[g->pooled < POOL ? random64(g) % (g->pooled + 1) : i];

	*cycles = t > 1 ? (uint64_t)t : 1;
	/* It takes the place of another one. */
	g->pool[g->pooled < POOL ? g->pooled++ : i] = *cycles;
	if (g->left)
		g->left--;
	else if (g->shuffled && was)
		*cycles = was;
	return 0;
}

static struct discover_device device_of(struct gpu *g, uint32_t pages)
{
	return (struct discover_device){.measure = measure,
					.user = g,
					.granule_log2 = LOG2,
					.granules = pages * PAGE,
					.memory = (uint64_t)pages * PAGE << LOG2,
					.together = DISCOVER_TOGETHER,
					.several = true};
}

/* Share of the granules of pages from first on that are where map has them, names of
 * channels apart: those of the first page. */
static double accuracy(const struct gpu *g, const struct color_map *map,
		       const struct discover_page *pages, uint32_t first)
{
	uint32_t count[COLOR_MAP_COLORS][16] = {{0}}, name[COLOR_MAP_COLORS], i, k, p;
	uint64_t right = 0;

	for (i = 0; i < PAGE; i++)
		count[color_map_channel(map, i)][place(g, i)]++;
	for (i = 0; i < map->channels; i++)
		for (k = name[i] = 0; k < g->channels; k++)
			name[i] = count[i][k] > count[i][name[i]] ? k : name[i];
	for (p = first; p <= PAGES; p++)
		for (i = 0; i < PAGE; i++)
			right += name[p ? discover_page_channel(map, &pages[p - 1], i)
					: color_map_channel(map, i)] ==
				 place(g, p * PAGE + i);
	return (double)right / ((PAGES + 1 - first) * (double)PAGE);
}

/* 0 where no map was found, or its constants were not. */
static double found(struct gpu *g, uint64_t seed, bool *verified, struct color_map **map)
{
	const struct discover_options options = {.seed = seed,
						 .attempts = g->shuffled ? 1 : 8};
	const struct discover_device one = device_of(g, 1), all = device_of(g, PAGES + 1);
	struct discover_page pages[PAGES];
	struct discover_result r;

	*verified = discover(&one, &options, &r) == 0;
	*map = r.map;
	if (!*verified || discover_pages(&all, r.map, PAGES, seed, pages))
		return 0;
	return accuracy(g, r.map, pages, 0);
}

/* The map of the first page is true, the threshold that of true times. */
static double guessed(struct gpu *g, const struct color_map *map, uint64_t seed)
{
	const struct discover_device all = device_of(g, PAGES + 1);
	struct discover_page pages[PAGES];

	g->shuffled = true;
	g->left = 2 * DISCOVER_KNOWN;
	if (discover_pages(&all, map, PAGES, seed, pages))
		return 0;
	return accuracy(g, map, pages, 1);
}

int main(int argc, char **argv)
{
	const uint32_t maps = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 0) : 20;
	const uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 20261130;
	double sum = 0, least = 1, chance = 0, shuffled = 0;
	uint32_t i, any = 0, wrong = 0, tried = 0;
	static struct gpu g;

	for (i = 0; i < maps; i++) {
		struct color_map *map, *none;
		bool verified, is;
		double is_right;

		draw(&g, i, seed);
		is_right = found(&g, seed + i, &verified, &map);
		sum += is_right;
		least = is_right < least ? is_right : least;
		wrong += verified && is_right < 0.999;
		printf("%2u: %2u channels, %u parities, modulo %u: %s, accuracy %.5f\n",
		       i, g.channels, g.k, g.q, verified ? "verified" : "not found",
		       is_right);
		if (verified) {
			tried++;
			chance += 1.0 / g.channels;
			shuffled += guessed(&g, map, seed + i);
		}
		color_map_free(map);
		g.shuffled = true;
		(void)found(&g, seed + i, &is, &none);
		any += is;
		color_map_free(none);
	}
	printf("shuffled: %u of %u maps verified\n", any, maps);
	printf("figure probe.fake_gpu.accuracy %.5f\n", sum / maps);
	printf("figure probe.fake_gpu.accuracy.least %.5f\n", least);
	printf("figure probe.fake_gpu.accuracy.shuffled %.5f\n",
	       tried ? shuffled / tried : 0);
	printf("figure probe.fake_gpu.accuracy.chance %.5f\n",
	       tried ? chance / tried : 0);
	return wrong || any;
}
