/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_speed.c - how fast the model runs: four slots on 8 x 8 PEs each, all busy with
 * convolutions from 8-channel memory.  Prints the rate, and as a figure with the argument
 * "figure"; never fails on it.  Seconds are the processor time of this process, which has
 * one thread: what else the machine does should not count.
 */
#include <string.h>
#include <time.h>

#include "rig.h"

#define JOBS 24

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double rate(struct rig *r, const struct rig_memory *cfg, const char *name)
{
	static const struct rig_rect map[4] = {
		{0, 0, 8, 8}, {0, 8, 8, 8}, {8, 0, 8, 8}, {8, 8, 8, 8}};
	struct rng g = {4};
	uint64_t cycles;
	double start, spent;

	rig_reset(r, cfg);
	CHECK(rig_map(r, map, 4) == NPU_MAP_OK, "map");
	for (uint32_t s = 0; s < 4; s++) {
		struct rig_conv c = {.h = 28,
				     .w = 28,
				     .cin = 32,
				     .oh = 28,
				     .ow = 28,
				     .n = 32,
				     .kh = 3,
				     .kw = 3,
				     .sy = 1,
				     .sx = 1,
				     .dy = 1,
				     .dx = 1,
				     .pt = 1,
				     .pl = 1};
		uint32_t desc[16];

		rig_space(r, s, 1u << 20, RIG_ALL);
		rig_conv_desc(r, s, &c, false, desc, &g);
		for (int i = 0; i < JOBS; i++)
			rig_push(r, s, desc);
		rig_push_end(r, s);
	}
	cycles = r->api->cycle(r->model);
	start = seconds();
	for (uint32_t s = 0; s < 4; s++)
		rig_bell(r, s);
	rig_wait(r, 15, UINT64_C(1) << 32);
	spent = seconds() - start;
	cycles = r->api->cycle(r->model) - cycles;
	for (uint32_t s = 0; s < 4; s++) {
		struct rig_counters n = rig_counters(r, s, false);

		CHECK(n.active * 10 > cycles * 7,
		      "slot %u is busy in %llu of %llu cycles", s,
		      (unsigned long long)n.active, (unsigned long long)cycles);
		rig_check(r, s, "speed");
	}
	printf("%s: %llu cycles in %.2f s\n", name, (unsigned long long)cycles, spent);
	return (double)cycles / spent / 1e3;
}

int main(int argc, char **argv)
{
	struct rig_memory eight = rig_channels(8), ideal;
	double best = 0;
	struct rig r;

	rig_open(&r, "16x16x4x8", UINT64_C(1) << 24);
	ideal = rig_ideal(&r);
	rate(&r, &ideal, "ideal memory");
	for (int i = 0; i < 3; i++) {
		double k = rate(&r, &eight, "8 channels");

		best = k > best ? k : best;
	}
	rig_close(&r);
	if (argc > 1 && !strcmp(argv[1], "figure"))
		printf("figure npu.sim.kcycles_per_s %.1f\n", best);
	else
		printf("%.1f k cycles/s\n", best);
	return bench_end("bench_speed");
}
