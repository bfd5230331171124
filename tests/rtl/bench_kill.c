/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_kill.c - PREEMPT KILL and DRAIN at random moments.  After KILL the PEs are given
 * to another slot at once, which does its work there; the victim resumes on another
 * rectangle and its replay is right to the last byte; a neighbour on channels of its own
 * never notices. Also: once KILL is written no store reaches memory, and no half of a
 * piece of weights stays behind; a border that someone tries to move at any moment is
 * moved or refused, never harmful.
 *
 *   bench_kill [figure] [ROUNDS [SEED [SHAPE]]]
 */
#include <stdlib.h>
#include <string.h>

#include "rig.h"

#define SPACE (1u << 21)

enum { VICTIM, HEIR, NEIGHBOUR };

static void jobs(struct rig *r, uint32_t s, uint32_t count, uint64_t seed, bool stamps)
{
	struct rng g = {seed};

	while (count--) {
		uint32_t desc[16];

		if (stamps)
			rig_push_stamp(r, s);
		if (rng_next(&g) % 3)
			rig_gemm_desc(r, s, rng_range(&g, 1, 120), rng_range(&g, 1, 60),
				      rng_range(&g, 1, 120), desc, &g);
		else
			rig_random_desc(r, s, desc, &g);
		rig_push(r, s, desc);
	}
	if (stamps)
		rig_push_stamp(r, s);
	rig_push_end(r, s);
}

static struct rig_rect place(struct rng *g, uint32_t row, uint32_t rows, uint32_t cols)
{
	struct rig_rect q;

	q.rows = rng_range(g, 1, rows);
	q.cols = rng_range(g, 1, cols);
	q.row = row + rng_range(g, 0, rows - q.rows);
	q.col = rng_range(g, 0, cols - q.cols);
	return q;
}

/* The neighbour owns the lower half, the other two the upper. */
static void prepare(struct rig *r, bool ideal, struct rig_rect *map, uint64_t seed)
{
	struct rig_memory cfg = ideal ? rig_ideal(r) : rig_channels(4);

	rig_reset(r, &cfg);
	CHECK(rig_map(r, map, 3) == NPU_MAP_OK, "map");
	rig_space(r, VICTIM, SPACE, ideal ? RIG_ALL : 1);
	rig_space(r, HEIR, SPACE, ideal ? RIG_ALL : 2);
	rig_space(r, NEIGHBOUR, SPACE, ideal ? RIG_ALL : 12);
	jobs(r, VICTIM, 3, seed * 3, false);
	jobs(r, HEIR, 1, seed * 3 + 1, false);
	jobs(r, NEIGHBOUR, 4, seed * 3 + 2, true);
}

static uint32_t state(struct rig *r, uint32_t s)
{
	return NPU_REG_GET(rig_reg(r, NPU_SLOT_ADDR(s, STATUS)), STATUS_STATE);
}

/* Until the stop is acknowledged; the cycles until the PEs were free. */
static uint32_t stop(struct rig *r, uint32_t how)
{
	const uint32_t end =
		how == NPU_PREEMPT_KILL ? NPU_STATE_KILLED : NPU_STATE_DRAINED;
	bool first = how == NPU_PREEMPT_KILL;
	uint32_t head, behind;

	r->quieted &= ~(1u << VICTIM);
	rig_write(r, NPU_SLOT_ADDR(VICTIM, PREEMPT), how);
	head = first ? 0 : rig_reg(r, NPU_SLOT_ADDR(VICTIM, HEAD));
	for (uint32_t i = 0; i < 400000 && !(r->quieted >> VICTIM & 1); i++) {
		uint32_t status = rig_reg(r, NPU_SLOT_ADDR(VICTIM, STATUS));

		CHECK(!first || NPU_REG_GET(status, STATUS_QUIET),
		      "not quiet when the KILL has been written");
		CHECK(NPU_REG_GET(status, STATUS_STATE) != end ||
			      !NPU_REG_GET(status, STATUS_PENDING),
		      "stopped with requests outstanding");
		first = false;
		rig_run(r, 1);
	}
	CHECK(r->quieted >> VICTIM & 1, "no acknowledgement");
	CHECK(state(r, VICTIM) ==
		      (how == NPU_PREEMPT_KILL ? NPU_STATE_KILLED : NPU_STATE_DRAINED),
	      "state %u after PREEMPT %u", state(r, VICTIM), how);
	behind = rig_reg(r, NPU_SLOT_ADDR(VICTIM, HEAD)) - head;
	CHECK(how == NPU_PREEMPT_KILL || behind <= 1, "%u descriptors after a DRAIN",
	      behind);
	return rig_reg(r, NPU_SLOT_ADDR(VICTIM, PREEMPT_CYCLES));
}

static uint32_t kills(struct rig *r, bool ideal, uint32_t rounds, uint64_t seed)
{
	uint32_t worst = 0, stops = 0;

	const uint32_t half = r->api->rows / 2, cols = r->api->cols;

	for (uint32_t i = 0; i < rounds; i++) {
		struct rng g = {seed * 7919 + i};
		struct rig_rect map[3] = {
			place(&g, 0, half, cols), {0}, place(&g, half, half, cols)};
		uint64_t alone[4];

		prepare(r, ideal, map, seed + i);
		rig_bell(r, NEIGHBOUR);
		rig_wait(r, 1u << NEIGHBOUR, 4000000);
		for (uint32_t j = 0; j < 4; j++)
			alone[j] = rig_stamp(r, NEIGHBOUR, j + 1) -
				   rig_stamp(r, NEIGHBOUR, j);

		prepare(r, ideal, map, seed + i);
		rig_bell(r, NEIGHBOUR);
		rig_run(r, rng_range(&g, 0, 300));
		rig_bell(r, VICTIM);
		for (uint32_t k = 0; k < 4; k++) {
			uint32_t how =
				rng_next(&g) % 4 ? NPU_PREEMPT_KILL : NPU_PREEMPT_DRAIN;
			uint32_t cycles;

			rig_run(r, rng_range(&g, 0, rng_next(&g) % 2 ? 60 : 3000));
			cycles = stop(r, how);
			stops++;
			if (how == NPU_PREEMPT_KILL && cycles > worst)
				worst = cycles;
			/* To the heir, and back somewhere else. */
			map[HEIR] = map[VICTIM];
			map[VICTIM].rows = 0;
			CHECK(rig_map(r, map, 3) == NPU_MAP_OK, "round %u: PEs not free",
			      i);
			if (k == 0)
				rig_bell(r, HEIR);
			rig_wait(r, 1u << HEIR, 4000000);
			map[HEIR].rows = 0;
			map[VICTIM] = place(&g, 0, half, cols);
			CHECK(rig_map(r, map, 3) == NPU_MAP_OK,
			      "round %u: heir not quiet", i);
			rig_write(r, NPU_SLOT_ADDR(VICTIM, RESUME), 1);
		}
		rig_wait(r, 7, 8000000);
		CHECK(!r->faulted, "round %u: fault", i);
		for (uint32_t s = VICTIM; s <= NEIGHBOUR; s++) {
			char what[64];

			snprintf(what, sizeof(what), "%s round %u seed %llu",
				 ideal ? "ideal" : "4 channels", i,
				 (unsigned long long)seed);
			rig_check(r, s, what);
			/* The victim did some of its work twice. */
			rig_counters(r, s, s != VICTIM);
		}
		for (uint32_t j = 0; j < 4; j++)
			CHECK(rig_stamp(r, NEIGHBOUR, j + 1) -
					      rig_stamp(r, NEIGHBOUR, j) ==
				      alone[j],
			      "round %u: the neighbour's job %u noticed", i, j);
	}
	printf("%s: %u stops, KILL frees the PEs in at most %u cycles\n",
	       ideal ? "ideal memory" : "4 channels", stops, worst);
	return worst;
}

#define HELD 12000u /* bytes, in pages of 256: each store is soon in front of a walk */

/* Rows across lines and pages, so that stores are cut and wait for translations. */
static void store_desc(struct rig *r, uint32_t desc[16], bool copy, struct rng *g)
{
	uint32_t pitch = rng_range(g, 65, 300), bytes = rng_range(g, 1, pitch);

	memset(desc, 0, 64);
	NPU_SET(desc, OPCODE, NPU_OP_VEC);
	NPU_SET(desc, VOP, copy ? NPU_VOP_COPY : NPU_VOP_FILL);
	NPU_SET(desc, DM, 8000 / pitch);
	NPU_SET(desc, VCOLS, bytes);
	NPU_SET(desc, LDA, pitch);
	NPU_SET(desc, LDD, pitch);
	NPU_SET(desc, VPATTERN, 0x9E3779B9u);
	NPU_SET(desc, ADDR_D, r->space[VICTIM].free_va + rng_range(g, 0, 63));
	if (copy) {
		uint32_t a = r->space[VICTIM].free_va + HELD;

		rig_random(r, VICTIM, a, 8000, g);
		NPU_SET(desc, ADDR_A, a);
	}
}

static void same_bytes(struct rig *r, const uint8_t *before, uint32_t i, const char *when)
{
	static uint8_t now[HELD];

	rig_peek(r, VICTIM, r->space[VICTIM].free_va, now, HELD);
	CHECK(!memcmp(before, now, HELD), "moment %u: a store after KILL, %s", i, when);
}

/* A job of stores under way on a machine fresh from reset; the cycles until moment i. */
static uint32_t begin_stores(struct rig *r, uint32_t i, uint64_t seed)
{
	struct rng g = {seed * 50021 + i};
	struct rig_memory cfg = i % 2 ? rig_ideal(r) : rig_channels(4);
	struct rig_rect map[1] = {{0, 0, 1, 1}};
	uint32_t desc[16];

	cfg.gran = 8;
	rig_reset(r, &cfg);
	CHECK(rig_map(r, map, 1) == NPU_MAP_OK, "map");
	rig_space(r, VICTIM, 1u << 17, RIG_ALL);
	store_desc(r, desc, i % 4 >= 2, &g);
	rig_push(r, VICTIM, desc);
	rig_push_end(r, VICTIM);
	rig_bell(r, VICTIM);
	return rng_range(&g, 20, 700);
}

/* What has not been accepted when KILL is written never reaches memory: what has been is
 * counted in a run of the same machine to the same moment.  Nothing changes after the
 * acknowledgement, when the pages may be somebody else's. */
static void stores(struct rig *r, uint32_t moments, uint64_t seed)
{
	static uint8_t before[HELD];
	uint32_t begun = 0;

	for (uint32_t i = 0; i < moments; i++) {
		uint32_t k = 0;
		uint64_t accepted;

		/* the counters are copied one cycle after KILL would act: with its cycle
		 */
		rig_run(r, begin_stores(r, i, seed));
		accepted = rig_counters(r, VICTIM, false).write_beats;
		rig_run(r, begin_stores(r, i, seed));
		rig_write(r, NPU_SLOT_ADDR(VICTIM, PREEMPT), NPU_PREEMPT_KILL);
		rig_peek(r, VICTIM, r->space[VICTIM].free_va, before, HELD);
		for (uint32_t j = 0; j < HELD && !k; j++)
			k = before[j];
		begun += k != 0;
		for (uint32_t j = 0; j < 4000 && !(r->quieted >> VICTIM & 1); j++)
			rig_run(r, 1);
		CHECK(r->quieted >> VICTIM & 1, "moment %u: no acknowledgement", i);
		if (r->cfg.ideal) /* accepted is written */
			same_bytes(r, before, i, "before the acknowledgement");
		rig_peek(r, VICTIM, r->space[VICTIM].free_va, before, HELD);
		rig_run(r, 300);
		CHECK(rig_counters(r, VICTIM, false).write_beats == accepted,
		      "moment %u: %llu beats accepted, not %llu", i,
		      (unsigned long long)rig_counters(r, VICTIM, false).write_beats,
		      (unsigned long long)accepted);
		same_bytes(r, before, i, "after the acknowledgement");
		rig_write(r, NPU_SLOT_ADDR(VICTIM, RESUME), 1);
		rig_wait(r, 1u << VICTIM, 1000000);
		rig_check(r, VICTIM, "stores after KILL");
	}
	CHECK(begun > moments / 4, "%u of %u KILLs among stores", begun, moments);
	printf("%u KILLs, %u among stores\n", moments, begun);
}

/* KILL in each cycle of a multiplication whose rows of weights come two in a piece: the
 * half that has not been taken goes with it. */
static void halves(struct rig *r, uint64_t seed)
{
	const uint32_t cycles = 200, rows = r->api->rows, cols = r->api->cols;
	uint32_t amid = 0;

	for (uint32_t i = 0; i < cycles; i++) {
		struct rig_conv c = rig_matrix(5, 24, 40);
		struct rig_memory cfg = i % 2 ? rig_ideal(r) : rig_channels(4);
		struct rig_rect map[1] = {
			{0, 0, rows < 4 ? rows : 4, cols < 4 ? cols : 4}};
		struct rng g = {seed * 60013 + i};
		uint32_t desc[16];

		rig_reset(r, &cfg);
		CHECK(rig_map(r, map, 1) == NPU_MAP_OK, "map");
		rig_space(r, VICTIM, 1u << 17, RIG_ALL);
		c.block = true;
		rig_conv_desc(r, VICTIM, &c, true, desc, &g);
		rig_push(r, VICTIM, desc);
		rig_push_end(r, VICTIM);
		rig_bell(r, VICTIM);
		rig_run(r, i);
		amid += !(r->ended >> VICTIM & 1);
		rig_write(r, NPU_SLOT_ADDR(VICTIM, PREEMPT), NPU_PREEMPT_KILL);
		for (uint32_t j = 0; j < 4000 && !(r->quieted >> VICTIM & 1); j++)
			rig_run(r, 1);
		CHECK(r->quieted >> VICTIM & 1, "cycle %u: no acknowledgement", i);
		rig_write(r, NPU_SLOT_ADDR(VICTIM, RESUME), 1);
		rig_wait(r, 1u << VICTIM, 1000000);
		rig_check(r, VICTIM, "weights by halves");
	}
	CHECK(amid == cycles, "%u of %u KILLs before the end", amid, cycles);
}

/* Commits at any time: refused while the slot has work in the array, else applied. */
static void borders(struct rig *r, uint32_t rounds, uint64_t seed)
{
	const uint32_t rows = r->api->rows, cols = r->api->cols;
	uint32_t moved = 0, refused = 0;

	for (uint32_t i = 0; i < rounds; i++) {
		struct rng g = {seed * 104729 + i};
		struct rig_memory cfg = i % 2 ? rig_ideal(r) : rig_channels(4);
		struct rig_rect map[1] = {place(&g, 0, rows, cols)};

		rig_reset(r, &cfg);
		CHECK(rig_map(r, map, 1) == NPU_MAP_OK, "map");
		rig_space(r, 0, SPACE, RIG_ALL);
		for (uint32_t j = 0; j < 40; j++) {
			uint32_t desc[16];

			rig_gemm_desc(r, 0, rng_range(&g, 1, 9), rng_range(&g, 1, 9),
				      rng_range(&g, 1, 9), desc, &g);
			rig_push(r, 0, desc);
		}
		rig_push_end(r, 0);
		rig_bell(r, 0);
		while (!(r->ended & 1) && !r->faulted) {
			struct rig_rect old = map[0];
			uint32_t result;

			map[0] = place(&g, 0, rows, cols);
			result = rig_map(r, map, 1);
			CHECK(result == NPU_MAP_OK || result == NPU_MAP_BUSY, "result %u",
			      result);
			if (result == NPU_MAP_OK) {
				moved++;
			} else {
				map[0] = old;
				refused++;
			}
			rig_run(r, rng_range(&g, 0, 30));
		}
		CHECK(!r->faulted, "border round %u: fault", i);
		rig_check(r, 0, "moving borders");
		rig_counters(r, 0, true);
	}
	CHECK(moved > rounds && refused > rounds, "%u moves, %u refusals", moved,
	      refused);
	printf("%u border moves, %u refused\n", moved, refused);
}

int main(int argc, char **argv)
{
	bool figure = argc > 1 && !strcmp(argv[1], "figure");
	int at = 1 + figure;
	uint32_t rounds = argc > at ? (uint32_t)strtoul(argv[at], NULL, 0) : 40;
	uint64_t seed = argc > at + 1 ? strtoull(argv[at + 1], NULL, 0) : 1;
	const char *shape = argc > at + 2 ? argv[at + 2] : "16x16x4x8";
	uint32_t ideal, four;
	struct rig r;

	rig_open(&r, shape, UINT64_C(1) << 25);
	ideal = kills(&r, true, rounds, seed);
	four = kills(&r, false, rounds, seed);
	stores(&r, rounds * 16, seed);
	halves(&r, seed);
	borders(&r, rounds / 4 + 1, seed);
	rig_close(&r);
	CHECK(ideal <= 2 && four <= 2, "KILL takes %u cycles, and %u with 4 channels",
	      ideal, four);
	if (figure) {
		printf("figure npu.kill.cycles_max %u\n", ideal);
		printf("figure npu.kill4ch.cycles_max %u\n", four);
	}
	return bench_end("bench_kill");
}
