/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_speed.c - how fast the model runs: four slots on 8 x 8 PEs each, all busy with
 * convolutions from 8-channel memory; one slot on all PEs; a machine with nothing to do.
 * Prints the rates, and as figures with the argument "figure", which may be followed by
 * the model to take instead of that of the tests; never fails on them. Seconds are the
 * processor time of this process, which has one thread: what else the machine does should
 * not count.
 */
#include <string.h>
#include <time.h>

#include "rig.h"

enum { JOBS = 24, JOBS_ALONE = 32, IDLE = 300000 };

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double rate(struct rig *r, const struct rig_memory *cfg, uint32_t slots,
		   const char *name)
{
	static const struct rig_rect quarters[4] = {
		{0, 0, 8, 8}, {0, 8, 8, 8}, {8, 0, 8, 8}, {8, 8, 8, 8}};
	static const struct rig_rect whole[1] = {{0, 0, 16, 16}};
	const int jobs = slots == 1 ? JOBS_ALONE : JOBS;
	struct rng g = {4};
	uint64_t cycles;
	double start, spent;

	rig_reset(r, cfg);
	CHECK(rig_map(r, slots == 1 ? whole : quarters, slots) == NPU_MAP_OK, "map");
	for (uint32_t s = 0; s < slots; s++) {
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
		for (int i = 0; i < jobs; i++)
			rig_push(r, s, desc);
		rig_push_end(r, s);
	}
	cycles = r->api->cycle(r->model);
	start = seconds();
	for (uint32_t s = 0; s < slots; s++)
		rig_bell(r, s);
	rig_wait(r, (1u << slots) - 1, UINT64_C(1) << 32);
	spent = seconds() - start;
	cycles = r->api->cycle(r->model) - cycles;
	for (uint32_t s = 0; s < slots; s++) {
		struct rig_counters n = rig_counters(r, s, false);

		CHECK(n.active * 10 > cycles * 7,
		      "slot %u is busy in %llu of %llu cycles", s,
		      (unsigned long long)n.active, (unsigned long long)cycles);
		rig_check(r, s, "speed");
	}
	printf("%s: %llu cycles in %.2f s\n", name, (unsigned long long)cycles, spent);
	return (double)cycles / spent / 1e3;
}

static double idle_rate(struct rig *r, const struct rig_memory *cfg)
{
	double start;

	rig_reset(r, cfg);
	start = seconds();
	CHECK(r->api->run(r->model, IDLE) == IDLE, "an interrupt of nobody");
	return IDLE / (seconds() - start) / 1e3;
}

int main(int argc, char **argv)
{
	const bool figure = argc > 1 && !strcmp(argv[1], "figure");
	struct rig_memory eight = rig_channels(8), ideal;
	double best = 0, alone, idle;
	struct rig r;

	rig_open(&r, argc > 2 ? argv[2] : "16x16x4x8", UINT64_C(1) << 24);
	ideal = rig_ideal(&r);
	rate(&r, &ideal, 4, "ideal memory");
	for (int i = 0; i < 2; i++) {
		double k = rate(&r, &eight, 4, "8 channels");

		best = k > best ? k : best;
	}
	alone = rate(&r, &eight, 1, "one slot");
	idle = idle_rate(&r, &eight);
	rig_close(&r);
	if (figure)
		printf("figure npu.sim.kcycles_per_s %.1f\n"
		       "figure npu.sim.kcycles_per_s.one_slot %.1f\n"
		       "figure npu.sim.kcycles_per_s.idle %.1f\n",
		       best, alone, idle);
	else
		printf("%.1f k cycles/s, %.1f with one slot, %.1f with none\n", best,
		       alone, idle);
	return bench_end("bench_speed");
}
