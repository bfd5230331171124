/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_pinwheel.c - four tenants on a map that no guillotine cut can make, each on
 * memory channels of its own, started at random moments: every operation takes exactly as
 * many cycles as when its tenant is alone, and every byte is right.  The control: the
 * same jobs on channels that all share, where some must take another time.  Arguments:
 * rounds (8), seed (1); "figure" first prints npu.corun.slowdown_disjoint_max and
 * npu.corun.shared_differ, the number of jobs whose cycles the control changed.
 */
#include <stdlib.h>
#include <string.h>

#include "rig.h"

#define TENANTS 4
#define JOBS    6
#define SPACE   (1u << 21)

static const struct rig_rect pinwheel[TENANTS] = {
	{0, 0, 6, 10}, {0, 10, 10, 6}, {10, 6, 6, 10}, {6, 0, 10, 6}};

/* The jobs of tenant s in this round: the same whoever else is there. */
static void load(struct rig *r, uint32_t s, uint64_t seed)
{
	struct rng g = {seed * TENANTS + s};

	for (uint32_t i = 0; i < JOBS; i++) {
		uint32_t desc[16];

		rig_random_desc(r, s, desc, &g);
		rig_push_stamp(r, s);
		rig_push(r, s, desc);
	}
	rig_push_stamp(r, s);
	rig_push_end(r, s);
}

static uint64_t job(struct rig *r, uint32_t s, uint32_t j)
{
	return rig_stamp(r, s, j + 1) - rig_stamp(r, s, j);
}

/* Channels of each tenant's own, all channels for all, or no channels at all. */
enum memory { DISJOINT, SHARED, IDEAL };

static void prepare(struct rig *r, enum memory memory, uint64_t seed)
{
	struct rig_memory cfg = memory == IDEAL ? rig_ideal(r) : rig_channels(8);

	rig_reset(r, &cfg);
	CHECK(rig_map(r, pinwheel, TENANTS) == NPU_MAP_OK, "the pinwheel is refused");
	for (uint32_t s = 0; s < TENANTS; s++) {
		rig_space(r, s, SPACE, memory == SHARED ? RIG_ALL : 3u << 2 * s);
		load(r, s, seed);
	}
}

struct outcome {
	uint64_t jobs, differ;
	double slowest;
};

/* Each tenant alone, then all at once; *o gets what that changed. */
static void corun(struct rig *r, enum memory memory, uint64_t seed, struct rng *g,
		  struct outcome *o)
{
	uint64_t alone[TENANTS][JOBS];
	uint32_t order[TENANTS] = {0, 1, 2, 3};

	for (uint32_t s = 0; s < TENANTS; s++) {
		prepare(r, memory, seed);
		rig_bell(r, s);
		rig_wait(r, 1u << s, 20000000);
		for (uint32_t j = 0; j < JOBS; j++)
			alone[s][j] = job(r, s, j);
		rig_check(r, s, "alone");
	}
	prepare(r, memory, seed);
	for (uint32_t s = 0; s < TENANTS; s++) {
		uint32_t t = rng_range(g, s, TENANTS - 1);
		uint32_t swap = order[s];

		order[s] = order[t];
		order[t] = swap;
		rig_bell(r, order[s]);
		rig_run(r, rng_range(g, 0, 1500));
	}
	rig_wait(r, 15, 40000000);
	for (uint32_t s = 0; s < TENANTS; s++) {
		for (uint32_t j = 0; j < JOBS; j++) {
			uint64_t together = job(r, s, j);
			double ratio = (double)together / (double)alone[s][j];

			CHECK(memory == SHARED || together == alone[s][j],
			      "seed %llu tenant %u job %u: %llu cycles alone, "
			      "%llu together",
			      (unsigned long long)seed, s, j,
			      (unsigned long long)alone[s][j],
			      (unsigned long long)together);
			o->slowest = ratio > o->slowest ? ratio : o->slowest;
			o->differ += together != alone[s][j];
			o->jobs++;
		}
		rig_check(r, s, "together");
		rig_counters(r, s, true);
	}
}

int main(int argc, char **argv)
{
	bool figure = argc > 1 && !strcmp(argv[1], "figure");
	int at = 1 + figure;
	uint32_t rounds = argc > at ? (uint32_t)strtoul(argv[at], NULL, 0) : 8;
	uint64_t first = argc > at + 1 ? strtoull(argv[at + 1], NULL, 0) : 1;
	struct outcome disjoint = {0}, shared = {0};
	struct rig r;

	rig_open(&r, "16x16x4x8", UINT64_C(1) << 25);
	for (uint32_t i = 0; i < rounds; i++) {
		struct rng g = {first + i};
		uint64_t seed = first * 1000 + i;

		corun(&r, i % 4 == 3 ? IDEAL : DISJOINT, seed, &g, &disjoint);
		if (i % 4 == 0)
			corun(&r, SHARED, seed, &g, &shared);
	}
	rig_close(&r);
	CHECK(shared.differ > 0 || !shared.jobs,
	      "sharing channels changed none of %llu jobs: nothing is proved",
	      (unsigned long long)shared.jobs);
	printf("%llu jobs, slowest %.6f of alone; on shared channels %llu of %llu "
	       "differ, "
	       "slowest %.2f\n",
	       (unsigned long long)disjoint.jobs, disjoint.slowest,
	       (unsigned long long)shared.differ, (unsigned long long)shared.jobs,
	       shared.slowest);
	if (figure)
		printf("figure npu.corun.slowdown_disjoint_max %.6f\n"
		       "figure npu.corun.shared_differ %llu\n",
		       disjoint.slowest, (unsigned long long)shared.differ);
	return bench_end("bench_pinwheel");
}
