/* SPDX-License-Identifier: Apache-2.0 */
/* sim_random: runs seeds, each twice, and compares what was seen. */
#define _GNU_SOURCE
#include "sim.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Without --backend each seed gets one of these. */
static const char *const targets[] = {
	"ref?units=16&memory=4M",
	"ref?units=64&rows=8&colors=8&memory=4M&fold_ns=300",
	"ref?units=5&depth=1&memory=1M",
	"ref?units=12&rows=3&preempt=between&memory=2M",
	"ref?units=30&rows=5&resize=idle&depth=2&memory=2M&fold_ns=1",
	"ref?units=3&preempt=none&resize=none&memory=1M",
};

static const char *policy;

static int run(uint64_t seed, uint32_t steps, const char *target, bool verbose,
	       uint64_t *hash)
{
	struct sim *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return -1;
	s->seed = seed;
	s->random = seed;
	s->policy = policy;
	s->verbose = verbose;
	s->hash = UINT64_C(0xcbf29ce484222325);
	s->target =
		target ? target : targets[seed % (sizeof(targets) / sizeof(*targets))];
	err = sim_begin(s);
	for (s->step = 0; !err && s->step < steps; s->step++)
		err = sim_do(s);
	if (!err)
		err = sim_end(s);
	if (err)
		printf("seed %" PRIu64 " step %u on %s: %s\n"
		       "again: sim_random --seed %" PRIu64
		       " --steps %u --backend '%s'%s%s "
		       "--verbose\n",
		       seed, s->step, s->target, s->why, seed, steps, s->target,
		       policy ? " --policy " : "", policy ? policy : "");
	*hash = s->hash;
	/* After a failure the device stays open: its state is what is wrong. */
	sim_abandon(s);
	free(s);
	return err;
}

static int run_twice(uint64_t seed, uint32_t steps, const char *target, bool verbose)
{
	uint64_t a = 0, b = 0;

	if (run(seed, steps, target, verbose, &a) || run(seed, steps, target, false, &b))
		return -1;
	if (verbose)
		printf("seed %" PRIu64 ": %016" PRIx64 "\n", seed, a);
	if (a == b)
		return 0;
	printf("seed %" PRIu64 ": the same seed, another schedule: %016" PRIx64
	       " and %016" PRIx64 "\n",
	       seed, a, b);
	return -1;
}

int main(int argc, char **argv)
{
	static const struct option opts[] = {
		{"seed", required_argument, NULL, 's'},
		{"seeds", required_argument, NULL, 'n'},
		{"steps", required_argument, NULL, 't'},
		{"backend", required_argument, NULL, 'b'},
		{"policy", required_argument, NULL, 'p'},
		{"verbose", no_argument, NULL, 'v'},
		{NULL, 0, NULL, 0},
	};
	uint64_t seed = 1, seeds = 1, i, failed = 0;
	const char *target = NULL;
	uint32_t steps = 200;
	bool verbose = false;
	int o;

	while ((o = getopt_long(argc, argv, "s:n:t:b:p:v", opts, NULL)) != -1) {
		switch (o) {
		case 's':
			seed = strtoull(optarg, NULL, 0);
			break;
		case 'n':
			seeds = strtoull(optarg, NULL, 0);
			break;
		case 't':
			steps = (uint32_t)strtoul(optarg, NULL, 0);
			break;
		case 'b':
			target = optarg;
			break;
		case 'p':
			policy = optarg;
			break;
		case 'v':
			verbose = true;
			break;
		default:
			fprintf(stderr, "usage: sim_random [--seed N] [--seeds COUNT] "
					"[--steps N] [--backend TARGET] [--policy NAME] "
					"[--verbose]\n");
			return 2;
		}
	}
	for (i = 0; i < seeds; i++)
		failed += run_twice(seed + i, steps, target, verbose) != 0;
	printf("%" PRIu64 " passed, %" PRIu64 " failed, 0 skipped (seeds %" PRIu64
	       " to %" PRIu64 ", %u steps, each twice)\n",
	       seeds - failed, failed, seed, seed + seeds - 1, steps);
	return failed || !seeds;
}
