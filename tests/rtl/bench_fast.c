/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_fast.c - engine "fast" against the RTL: the same random programs on every slot of
 * both, beside each other on shared channels, stopped and resumed; the cycles each slot
 * ends in, its counters, and memory byte by byte.
 *
 *   bench_fast [COUNT [SEED [SHAPE [RTL]]]]
 *   bench_fast figures [COUNT [SEED [SHAPE [RTL]]]]
 *   bench_fast extra [COUNT [SEED [SHAPE [RTL]]]]
 *   bench_fast exact [COUNT [SEED [SHAPE [RTL]]]]
 *   bench_fast shares [COUNT [SEED [SHAPE [RTL]]]]
 *   bench_fast same [COUNT [SEED [SHAPE [RTL]]]]
 *   bench_fast stops [COUNT [SEED [SHAPE [RTL]]]]
 *
 * extra: memory with refresh, a cache, both, and turns on its channels.  exact: the same,
 * and each slot ends in the RTL's very cycle: a draw of the cache's that is another one
 * shows in few cycles.  shares: as exact, with arbiters of any mode in two groups of
 * channels, priorities, and token buckets, which change in the middle.  same: without
 * these, each slot in the very cycle and with the same counters.  stops: as same, and in
 * each case a slot is stopped six times, many of them inside a VEC.  What a slot's time
 * is may depend on nothing that a former operation, or tenant, has left in a memory that
 * nobody clears: engine=fast has no such memory. RTL is the RTL's model where it has
 * another name than SHAPE.  Case i has the seed SEED + i.  Every fourth is stopped in the
 * middle, by a DRAIN, a FOLD, a SAVE or a KILL, and of two that are, one goes on behind
 * other borders.  A case's error is that of the slot whose cycles, from the first
 * doorbell to its last descriptor, are most wrong; one beyond 1 % fails, but for figures.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "work.h"

#define JOBS    8u
#define LIMIT   20000000u
#define ALLOWED 0.01
/* Of the largest tile, on any machine. */
#define SAVE_BYTES (NPU_CONTEXT_SUMS + 512 * 128)

struct stop {
	bool wanted;
	uint32_t after, slot, mode, save;
};

/* A kind of bench; none but these has a name of its own. */
static const struct kind {
	const char *name;
	bool figures, extra, shares;
	bool cycle, count; /* each slot's cycles, and its counters, are the RTL's */
	bool stop;
} kinds[] = {{"figures", .figures = true},
	     {"extra", .extra = true},
	     {"exact", .extra = true, .cycle = true},
	     {"shares", .extra = true, .shares = true, .cycle = true},
	     {"same", .cycle = true, .count = true},
	     {"stops", .cycle = true, .count = true, .stop = true}};

static struct kind does;   /* without a name: within 1 % */
static uint64_t inside[2]; /* FOLDED: in GEMM or CONV, in VEC */
static uint64_t moved;     /* borders, of stopped slots; by both engines */

/* What came of a case. */
struct outcome {
	uint32_t slots, started;
	uint32_t desc_cycles;       /* of the slot that was stopped, at its stops */
	uint64_t saved;             /* what it saved */
	uint64_t cycles[RIG_SLOTS]; /* from the first doorbell to the slot's end */
	struct rig_counters counters[RIG_SLOTS];
};

struct total {
	uint64_t cases, exact, counters_differ, cycles;
	double most, sum;
	uint64_t below[4]; /* errors below 0.01 %, 0.1 %, 1 %, and the rest */
};

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- a case ------------------------------------------------------------------------ */

static void make_program(struct rig *r, uint32_t s, bool array, struct rng *g)
{
	uint32_t descs[JOBS][16], want = rng_range(g, 1, JOBS);
	const struct rig_space *sp = &r->space[s];

	for (uint32_t i = 0; i < want && WORK_SPACE - sp->free_va > 2 * WORK_ROOM; i++) {
		work_desc(r, s, descs[i], array, g);
		work_connect(descs, i, g);
		rig_push(r, s, descs[i]);
		rig_golden(r, s);
	}
	rig_push_stamp(r, s);
	rig_push_end(r, s);
}

/* Another rectangle in the columns that a slot has; nobody else has any of these. */
static void move(struct rig *r, struct rig_rect *rects, uint32_t slot, struct rng *g)
{
	struct rig_rect q = rig_anywhere(r, g);

	q.cols = rng_range(g, 1, rects[slot].cols);
	q.col = rects[slot].col + rng_range(g, 0, rects[slot].cols - q.cols);
	rects[slot] = q;
	CHECK(rig_map(r, rects, RIG_SLOTS) == NPU_MAP_OK, "slot %u cannot move", slot);
	moved++;
}

/* Stops a slot, waits until it has, moves its borders or does not, and lets it go on. */
static void interrupt(struct rig *r, const struct stop *stop, struct rig_rect *rects,
		      struct rng *g, struct outcome *o)
{
	uint32_t status = NPU_SLOT_ADDR(stop->slot, STATUS), state;
	const struct rig_space *sp = &r->space[stop->slot];
	uint32_t desc[16], save = stop->save;
	static uint8_t saved[SAVE_BYTES];

	rig_run(r, stop->after);
	rig_write(r, NPU_SLOT_ADDR(stop->slot, PREEMPT), stop->mode);
	do {
		rig_run(r, does.stop ? 1 : 64);
		state = NPU_REG_GET(rig_reg(r, status), STATUS_STATE);
	} while (state != NPU_STATE_KILLED && state != NPU_STATE_DRAINED &&
		 state != NPU_STATE_FOLDED);
	if (does.cycle) /* it takes cycles to ask */
		o->desc_cycles += rig_reg(r, NPU_SLOT_ADDR(stop->slot, DESC_CYCLES));
	if (state == NPU_STATE_FOLDED) {
		uint32_t head = rig_reg(r, NPU_SLOT_ADDR(stop->slot, HEAD));

		memcpy(desc, sp->shadow + sp->ring + head % RIG_DEPTH * 64, 64);
		inside[NPU_GET(desc, OPCODE) == NPU_OP_VEC]++;
	}
	/* the shadow knows nothing of contexts */
	rig_peek(r, stop->slot, save, saved, sizeof(saved));
	rig_poke(r, stop->slot, save, saved, sizeof(saved));
	for (uint32_t i = 0; i < SAVE_BYTES; i++)
		o->saved = o->saved * 31 + saved[i];
	if (rects[stop->slot].rows && rng_next(g) % 2)
		move(r, rects, stop->slot, g);
	rig_write(r, NPU_SLOT_ADDR(stop->slot, RESUME),
		  NPU_REG_BITS(RESUME_CONTEXT, state == NPU_STATE_FOLDED));
}

static void draw_extra(struct rig_memory *cfg, uint64_t seed)
{
	struct rng g = {.state = seed * UINT64_C(0x9E3779B97F4A7C15)};

	if (rng_next(&g) % 4) {
		cfg->extra.refresh = rng_range(&g, 500, 9000);
		cfg->extra.refreshing = rng_range(&g, 1, cfg->extra.refresh / 3);
	}
	if (rng_next(&g) % 4) {
		cfg->extra.cache_sets = 1u << rng_range(&g, 0, 8);
		cfg->extra.cache_ways = 1u << rng_range(&g, 0, 3);
		cfg->extra.cache_seed = rng_next(&g) & 0xffff;
	}
	if (rng_next(&g) % 4 == 0)
		/* longer than a refresh with the longest request: none starves */
		cfg->turns = cfg->extra.refreshing + rng_range(&g, 190, 500);
}

static void set_bucket(struct rig *r, uint32_t i, struct rng *g)
{
	uint32_t budget = rng_range(g, 4, 200);

	rig_write(r, NPU_GLB_BUCKET_WINDOW_ADDR, rng_range(g, 1, 600));
	rig_write(r, NPU_GLB_BUCKET_BUDGET_ADDR, budget);
	rig_write(r, NPU_GLB_BUCKET_BURST_ADDR, budget + rng_range(g, 0, budget));
	rig_write(r, NPU_GLB_BUCKET_SET_ADDR,
		  NPU_REG_BITS(BUCKET_SET_SLOT, i / 2) |
			  NPU_REG_BITS(BUCKET_SET_GROUP, i % 2));
	CHECK(rig_reg(r, NPU_GLB_MODE_STATUS_ADDR) == NPU_MODE_OK, "bucket");
}

/* What a slot may have of memory: each kind in half of the cases. */
static void set_shares(struct rig *r, bool turns, uint64_t seed)
{
	struct rng g = {.state = seed * UINT64_C(0xD1342543DE82EF95)};

	rig_write(r, NPU_GLB_CH_GROUP_ADDR,
		  rng_next(&g) & ((1u << r->api->channels) - 1));
	for (uint32_t i = 0; i < NPU_GLB_ARB_N; i++) {
		uint32_t mode =
			turns ? NPU_ARB_TURNS : rng_range(&g, NPU_ARB_FAIR, NPU_ARB_HITS);

		rig_write(r, NPU_GLB_AT(ARB, i),
			  NPU_REG_BITS(ARB_MODE, mode) |
				  NPU_REG_BITS(ARB_PASS, rng_range(&g, 0, 15)));
		CHECK(rig_reg(r, NPU_GLB_MODE_STATUS_ADDR) == NPU_MODE_OK, "ARB");
	}
	if (rng_next(&g) % 2)
		rig_write(r, NPU_GLB_PRIO_ADDR, (uint32_t)rng_next(&g));
	for (uint32_t i = 0; i < 2 * r->api->slots; i++) {
		if (rng_next(&g) % 2)
			set_bucket(r, i, &g);
	}
}

static void run_case(struct rig *r, uint64_t seed, struct outcome *o)
{
	struct rng g = {.state = seed * UINT64_C(0x2545F4914F6CDD1D)};
	struct rig_memory cfg = work_memory(r, &g);
	static const uint32_t modes[] = {NPU_PREEMPT_DRAIN, NPU_PREEMPT_FOLD,
					 NPU_PREEMPT_SAVE, NPU_PREEMPT_KILL};
	struct rig_rect rects[RIG_SLOTS];
	struct stop stop;
	uint64_t start;

	memset(o, 0, sizeof(*o));
	if (does.extra)
		draw_extra(&cfg, seed);
	work_map(r, rects, &o->slots, &g);
	rig_reset(r, &cfg);
	if (does.shares)
		set_shares(r, cfg.turns != 0, seed);
	CHECK(rig_map(r, rects, RIG_SLOTS) == NPU_MAP_OK, "map");
	for (uint32_t s = 0; s < o->slots; s++) {
		rig_space(r, s, WORK_SPACE, RIG_ALL);
		rig_write(r, NPU_GLB_AT(SLOT_CTRL, s),
			  NPU_REG_BITS(SLOT_CTRL_SERIAL, rng_next(&g) % 8 == 0));
		make_program(r, s, rects[s].rows != 0, &g);
	}
	stop = (struct stop){.wanted = seed % 4 == 0 || does.stop,
			     .after = rng_range(&g, 100, 20000),
			     .slot = rng_range(&g, 0, o->slots - 1),
			     .mode = modes[rng_next(&g) % 4]};
	start = r->api->cycle(r->model);
	for (uint32_t s = 0; s < o->slots; s++)
		rig_bell(r, s);
	if (stop.wanted) {
		stop.save = rig_alloc(r, stop.slot, SAVE_BYTES, 64);
		rig_write(r, NPU_SLOT_ADDR(stop.slot, SAVE), stop.save);
	}
	for (uint32_t i = 0; stop.wanted && i < (does.stop ? 6 : 1); i++) {
		if (does.stop)
			stop.after = rng_range(&g, 1, 3000);
		interrupt(r, &stop, rects, &g, o);
		stop.mode = modes[1 + rng_next(&g) % 2];
	}
	for (uint32_t i = 0; i < 3 && does.shares; i++) {
		rig_run(r, rng_range(&g, 1, 5000));
		set_bucket(r, rng_range(&g, 0, 2 * r->api->slots - 1), &g);
		rig_write(r, NPU_GLB_PRIO_ADDR, (uint32_t)rng_next(&g));
	}
	rig_wait(r, (1u << o->slots) - 1, LIMIT);
	for (uint32_t s = 0; s < o->slots; s++) {
		char what[64];

		snprintf(what, sizeof(what), "seed %llu, slot %u, engine %s",
			 (unsigned long long)seed, s, r->api->engine);
		rig_check(r, s, what);
		o->cycles[s] = rig_stamp(r, s, 0) - start;
		o->counters[s] = rig_counters(r, s, !stop.wanted);
	}
}

static double error_of(uint64_t fast, uint64_t rtl)
{
	double e = ((double)fast - (double)rtl) / (double)rtl;

	return e < 0 ? -e : e;
}

static void compare(uint64_t seed, const struct outcome *rtl, const struct outcome *fast,
		    double allowed, struct total *t)
{
	double most = 0;
	bool same = true;

	for (uint32_t s = 0; s < rtl->slots; s++) {
		double e = error_of(fast->cycles[s], rtl->cycles[s]);

		most = e > most ? e : most;
		same = same && !memcmp(&rtl->counters[s], &fast->counters[s],
				       sizeof(rtl->counters[s]));
		t->cycles += rtl->cycles[s];
	}
	CHECK(rtl->saved == fast->saved, "seed %llu: the save areas differ",
	      (unsigned long long)seed);
	CHECK(rtl->desc_cycles == fast->desc_cycles,
	      "seed %llu: %u cycles at the descriptor, RTL %u", (unsigned long long)seed,
	      fast->desc_cycles, rtl->desc_cycles);
	CHECK(most <= allowed, "seed %llu: cycles are wrong by %.3f %%",
	      (unsigned long long)seed, 100 * most);
	CHECK(same || !does.count, "seed %llu: counters differ",
	      (unsigned long long)seed);
	t->cases++;
	t->exact += most <= 0;
	t->counters_differ += !same;
	t->sum += most;
	t->most = most > t->most ? most : t->most;
	t->below[most < 0.0001 ? 0 : most < 0.001 ? 1 : most <= ALLOWED ? 2 : 3]++;
}

/* ---- speed ------------------------------------------------------------------------- */

/* Seconds for jobs convolutions on each quarter of the machine, all at once; *cycles:
 * how many they took. */
static double busy(struct rig *r, uint32_t jobs, uint64_t *cycles)
{
	uint32_t h = r->api->rows / 2, w = r->api->cols / 2;
	const struct rig_rect quarters[4] = {
		{0, 0, h, w}, {0, w, h, w}, {h, 0, h, w}, {h, w, h, w}};
	uint32_t slots = r->api->slots < 4 ? r->api->slots : 4, desc[16];
	struct rig_memory cfg = rig_channels(r->api->channels);
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
	struct rng g = {4};
	double start;

	rig_reset(r, &cfg);
	CHECK(rig_map(r, quarters, slots) == NPU_MAP_OK, "map");
	for (uint32_t s = 0; s < slots; s++) {
		rig_space(r, s, 1u << 20, RIG_ALL);
		rig_conv_desc(r, s, &c, false, desc, &g);
		for (uint32_t i = 0; i < jobs; i++)
			rig_push(r, s, desc);
		rig_push_end(r, s);
	}
	*cycles = r->api->cycle(r->model);
	start = seconds();
	for (uint32_t s = 0; s < slots; s++)
		rig_bell(r, s);
	rig_wait(r, (1u << slots) - 1, UINT64_C(1) << 32);
	*cycles = r->api->cycle(r->model) - *cycles;
	return seconds() - start;
}

int main(int argc, char **argv)
{
	char **arg = argv;
	int args = argc;
	uint64_t count, seed, ran[2];
	const char *shape;
	struct total t = {0};
	struct rig rtl, fast;
	double k[2] = {0};

	for (size_t i = 0; argc > 1 && i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strcmp(argv[1], kinds[i].name)) {
			does = kinds[i];
			arg++, args--;
		}
	count = args > 1 ? strtoull(arg[1], NULL, 0) : 100;
	seed = args > 2 ? strtoull(arg[2], NULL, 0) : 1;
	shape = args > 3 ? arg[3] : "16x16x4x8";
	rig_open_engine(&rtl, NULL, args > 4 ? arg[4] : shape, UINT64_C(1) << 26);
	rig_open_engine(&fast, "fast", shape, UINT64_C(1) << 26);
	for (uint64_t i = 0; i < count && bench_failures < 20; i++) {
		struct outcome a, b;

		run_case(&rtl, seed + i, &a);
		run_case(&fast, seed + i, &b);
		/* what is a figure is told, however large */
		compare(seed + i, &a, &b,
			does.cycle     ? 0
			: does.figures ? 1
				       : ALLOWED,
			&t);
	}
	printf("%s: %llu cases, %llu cycles of slots; %llu to the cycle, %llu below 0.01 "
	       "%%, "
	       "%llu below 0.1 %%, %llu below 1 %%, %llu above; mean %.5f %%, most %.4f "
	       "%%; "
	       "counters differ in %llu\n",
	       shape, (unsigned long long)t.cases, (unsigned long long)t.cycles,
	       (unsigned long long)t.exact, (unsigned long long)(t.below[0] - t.exact),
	       (unsigned long long)t.below[1], (unsigned long long)t.below[2],
	       (unsigned long long)t.below[3], 100 * t.sum / (double)t.cases,
	       100 * t.most, (unsigned long long)t.counters_differ);
	if (!does.cycle) {
		k[0] = busy(&rtl, 2, &ran[0]);
		k[0] = (double)ran[0] / k[0] / 1e3;
		k[1] = busy(&fast, 24, &ran[1]);
		k[1] = (double)ran[1] / k[1] / 1e3;
		printf("all slots busy: %.1f k cycles/s in RTL, %.1f in fast: %.1f "
		       "times\n",
		       k[0], k[1], k[1] / k[0]);
	}
	printf("stopped inside GEMM or CONV %llu times, inside VEC %llu, borders moved "
	       "%llu times, in both engines\n",
	       (unsigned long long)inside[0], (unsigned long long)inside[1],
	       (unsigned long long)moved);
	CHECK(count < 40 || moved > 0, "no borders have moved");
	CHECK(!does.stop || inside[1] >= count / 2, "%llu stops inside VEC",
	      (unsigned long long)inside[1]);
	if (does.figures)
		printf("figure npu.fast.cycle_error_max %.5f\nfigure npu.fast.cases "
		       "%llu\n"
		       "figure npu.fast.exact %llu\nfigure npu.fast.speedup %.1f\n",
		       t.most, (unsigned long long)t.cases, (unsigned long long)t.exact,
		       k[1] / k[0]);
	rig_close(&rtl);
	rig_close(&fast);
	return bench_end("bench_fast");
}
