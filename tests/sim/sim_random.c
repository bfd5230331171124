/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim_random: runs seeds, or a script, twice each, and compares what was seen; of one
 * that fails it prints the shortest script that fails so, and how to have it again. With
 * --out it ends there.
 */
#define _GNU_SOURCE
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

struct options {
	uint64_t seed, seeds;
	uint32_t steps, shrink;
	const char *family, *target, *policy, *script, *out;
	bool once, verbose, figure;
};

static void usage(void)
{
	fprintf(stderr, "usage: sim_random [--seed N] [--seeds COUNT] [--steps N]\n"
			"                  [--on ref|fast|both | --backend TARGET] "
			"[--policy NAME]\n"
			"                  [--script FILE] [--out FILE] [--shrink RUNS]\n"
			"                  [--seconds OF_A_RUN] [--once] [--verbose] "
			"[--figure]\n");
}

static int read_options(int argc, char **argv, struct options *o)
{
	static const struct option opts[] = {
		{"seed", required_argument, NULL, 's'},
		{"seeds", required_argument, NULL, 'n'},
		{"steps", required_argument, NULL, 't'},
		{"on", required_argument, NULL, 'f'},
		{"backend", required_argument, NULL, 'b'},
		{"policy", required_argument, NULL, 'p'},
		{"script", required_argument, NULL, 'r'},
		{"out", required_argument, NULL, 'o'},
		{"shrink", required_argument, NULL, 'k'},
		{"seconds", required_argument, NULL, 'c'},
		{"once", no_argument, NULL, '1'},
		{"verbose", no_argument, NULL, 'v'},
		{"figure", no_argument, NULL, 'g'},
		{NULL, 0, NULL, 0},
	};
	int c;

	while ((c = getopt_long(argc, argv, "", opts, NULL)) != -1) {
		switch (c) {
		case 's':
			o->seed = strtoull(optarg, NULL, 0);
			break;
		case 'n':
			o->seeds = strtoull(optarg, NULL, 0);
			break;
		case 't':
			o->steps = (uint32_t)strtoul(optarg, NULL, 0);
			break;
		case 'f':
			o->family = optarg;
			break;
		case 'b':
			o->target = optarg;
			break;
		case 'p':
			o->policy = optarg;
			break;
		case 'r':
			o->script = optarg;
			break;
		case 'o':
			o->out = optarg;
			break;
		case 'k':
			o->shrink = (uint32_t)strtoul(optarg, NULL, 0);
			break;
		case 'c':
			sim_seconds = (uint32_t)strtoul(optarg, NULL, 0);
			break;
		case '1':
			o->once = true;
			break;
		case 'v':
			o->verbose = true;
			break;
		case 'g':
			o->figure = true;
			break;
		default:
			usage();
			return -1;
		}
	}
	if (optind == argc &&
	    (strcmp(o->family, "ref") == 0 || strcmp(o->family, "fast") == 0 ||
	     strcmp(o->family, "both") == 0))
		return 0;
	usage();
	return -1;
}

/* The short one, to --out or here. */
static void tell_shortest(struct sim_script *s, const char *why, const struct options *o)
{
	FILE *f = o->out ? fopen(o->out, "w") : stdout;
	uint32_t was = s->count, runs = script_shrink(s, why, o->shrink);

	if (f == NULL) {
		perror(o->out);
		f = stdout;
	}
	printf("%" PRIu32 " operations of %" PRIu32 " do it (%" PRIu32
	       " runs); with this in FILE: sim_random --script FILE --verbose\n",
	       s->count, was, runs);
	fprintf(f, "# %s\n", why);
	script_print(f, s);
	if (f != stdout)
		fclose(f);
}

static int run_script(struct sim_script *s, const char *name, const struct options *o,
		      uint64_t *fetches)
{
	struct sim_result r;

	sim_run(s, !o->once, o->verbose, &r);
	*fetches += r.fetches;
	if (o->verbose)
		printf("%s: %016" PRIx64 "\n", name, r.hash);
	if (!r.failed)
		return 0;
	printf("%s, operation %" PRIu32 " on %s: %s\n", name, r.step, s->target, r.why);
	if (o->shrink != 0)
		tell_shortest(s, r.why, o);
	return -1;
}

static int run_seed(uint64_t seed, const struct options *o, uint64_t *fetches)
{
	const char *family = o->family;
	struct sim_script s;
	char name[32];
	int err;

	if (strcmp(family, "both") == 0)
		family = seed % 2 ? "ref" : "fast";
	if (script_make(&s, seed, o->steps, family, o->target, o->policy))
		return -1;
	snprintf(name, sizeof(name), "seed %" PRIu64, seed);
	err = run_script(&s, name, o, fetches);
	script_free(&s);
	return err;
}

int main(int argc, char **argv)
{
	struct options o = {
		.seed = 1, .seeds = 1, .steps = 200, .shrink = 3000, .family = "ref"};
	uint64_t failed = 0, fetches = 0;

	if (read_options(argc, argv, &o))
		return 2;
	if (o.script) {
		struct sim_script s;
		int err;

		if (script_read(o.script, &s))
			return 2;
		err = run_script(&s, o.script, &o, &fetches);
		script_free(&s);
		return err != 0;
	}
	for (uint64_t i = 0; i < o.seeds && !(failed && o.out); i++)
		failed += run_seed(o.seed + i, &o, &fetches) != 0;
	if (o.figure)
		printf("figure sim.steps %" PRIu64 "\nfigure sim.violations %" PRIu64
		       "\n",
		       o.seeds * o.steps, failed);
	else
		printf("%" PRIu64 " passed, %" PRIu64 " failed, 0 skipped (seeds %" PRIu64
		       " to %" PRIu64 ", %" PRIu32 " steps each; %" PRIu64
		       " evicted buffers came back)\n",
		       o.seeds - failed, failed, o.seed, o.seed + o.seeds - 1, o.steps,
		       fetches);
	return failed || !o.seeds;
}
