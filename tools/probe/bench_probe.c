/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_probe.c - the discovery on random maps of each family, on a model of channels
 * with 5 % wrong pairs, others' traffic, refresh and a cache.
 *
 *   bench_probe figures [MAPS [SEED]]    figures; 20 maps a family without MAPS
 *   bench_probe FAMILY [MAPS [SEED]]     xor, xormod, weights, table, almost or none: a
 *                                        line a map
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "channels.h"

static const struct family {
	const char *name;
	enum channels_family family;
	uint32_t bits;
} families[] = {
	{"xor", CHANNELS_XOR, 22},       {"xormod", CHANNELS_XORMOD, 22},
	{"table", CHANNELS_TABLE, 12},   {"weights", CHANNELS_WEIGHTS, 22},
	{"almost", CHANNELS_ALMOST, 22}, {"none", CHANNELS_NONE, 12},
};
#define FIGURES 3u /* the first of them */

struct sum {
	uint32_t maps, verified, wrong;
	double least, seconds;
	uint64_t samples, tests, loads, cycles;
};

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int one(const struct family *f, uint32_t number, uint64_t seed, int verbose,
	       struct sum *sum)
{
	const struct channels_noise noise = {
		.refresh = true, .load = 0.3, .cache = true, .wrong = 0.05, .jitter = 4};
	const struct discover_options options = {.seed = seed + number};
	struct channels *c =
		channels_create(f->family, number, f->bits, 10, &noise, seed);
	struct discover_device device;
	struct discover_result r;
	double begin = seconds(), accuracy;
	int rc;

	if (!c)
		return -1;
	channels_device(c, &device);
	rc = discover(&device, &options, &r);
	sum->seconds += seconds() - begin;
	accuracy = r.map ? channels_accuracy(c, r.map) : 0;
	sum->maps++;
	sum->verified += rc == 0;
	sum->wrong += rc == 0 && accuracy < 0.999;
	sum->least = accuracy < sum->least ? accuracy : sum->least;
	sum->samples += r.samples;
	sum->tests += r.tests;
	sum->loads += r.loads;
	sum->cycles += r.cycles;
	if (verbose)
		printf("%s %2u: %2u channels, rc %d, found %u, %llu of %llu bad, "
		       "accuracy "
		       "%.5f, attempts %u, samples %u, tests %llu, p0 %.2f p1 %.2f, %.2f "
		       "s\n",
		       f->name, number, channels_count(c), rc,
		       r.map ? r.map->channels : 0,
		       r.map ? (unsigned long long)r.map->bad : 0,
		       r.map ? (unsigned long long)r.map->tests : 0, accuracy, r.attempts,
		       r.samples, (unsigned long long)r.tests, r.p0, r.p1,
		       seconds() - begin);
	color_map_free(r.map);
	channels_destroy(c);
	return 0;
}

static int run(const struct family *f, uint32_t maps, uint64_t seed, int verbose,
	       struct sum *sum)
{
	*sum = (struct sum){.least = 1};
	for (uint32_t i = 0; i < maps; i++)
		if (one(f, i, seed, verbose, sum))
			return -1;
	printf("%s: %u of %u verified, %u of these below 0.999; least accuracy %.5f; "
	       "%.0f samples, %.0f tests, %.0f loads, %.0f cycles, %.2f s a map\n",
	       f->name, sum->verified, sum->maps, sum->wrong, sum->least,
	       (double)sum->samples / maps, (double)sum->tests / maps,
	       (double)sum->loads / maps, (double)sum->cycles / maps,
	       sum->seconds / maps);
	return 0;
}

int main(int argc, char **argv)
{
	uint32_t maps = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 0) : 20;
	uint64_t seed = argc > 3 ? strtoull(argv[3], NULL, 0) : 1;
	struct sum sum;

	if (argc < 2 || !maps) {
		fputs("usage: bench_probe figures|FAMILY [MAPS [SEED]]\n", stderr);
		return 2;
	}
	for (uint32_t i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
		int figures = !strcmp(argv[1], "figures") && i < FIGURES;

		if (!figures && strcmp(argv[1], families[i].name) != 0)
			continue;
		if (run(&families[i], maps, seed, !figures, &sum))
			return 1;
		if (figures)
			printf("figure probe.accuracy.%s %.5f\n", families[i].name,
			       sum.least);
		if (figures && sum.wrong)
			return 1;
	}
	return 0;
}
