/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_border.c - rectangles that change under running operations: two tenants in the
 * upper half of the array are moved, grow and shrink, one of them or both at once, so
 * that a border between them moves; each time those that change are stopped by FOLD, the
 * map is set, and they go on.  The other two slots, in the lower half, notice nothing:
 * their jobs take the cycles they take alone, to the cycle.  The control: the same on
 * channels that all share, where some must take other cycles, or nothing is proved. Every
 * byte is compared with the golden model's.  Rectangles of slots that have work in the
 * array are refused, and nothing comes of it.
 *
 *   bench_border [figures] [ROUNDS [SEED [SHAPE]]]
 *
 * A change's cycles are those from the write that asks for it to the first weight that is
 * loaded on the new rectangle: tiles that have begun, their stores, and, from the
 * acknowledgement on, what the border itself takes.
 */
#include <stdlib.h>
#include <string.h>

#include "rig.h"

#define SPACE  (1u << 21)
#define LIMIT  8000000u
#define JOBS   8u /* of a neighbour */
#define WORK   6u /* of a tenant that is moved */
#define EVENTS 24u
#define WINDOW 6000u /* cycles in which borders are refused */

enum { MOVED = 2, TENANTS = 4 }; /* slots 0 and 1 are moved */

/* Channels of each tenant's own, all channels for all, or no channels at all. */
enum memory { DISJOINT, SHARED, IDEAL };

enum kind { MOVES, GROWS, SHRINKS, OTHER, KINDS };

static const char *const names[KINDS] = {"moved", "grown", "shrunk", "of another shape"};

/* A slot that changes, until it has a fold on its new rectangle. */
struct watch {
	bool waits;
	uint64_t asked, stopped, resumed; /* cycles */
};

static struct {
	struct watch slot[MOVED];
	/* Cycles, of changes that were followed by a fold: in all, from the stop on. */
	uint64_t most, set, sum, count;
} seen;

struct outcome {
	uint64_t jobs, differ;    /* of neighbours */
	uint64_t changes, inside; /* of rectangles; those in the middle of an operation */
	uint64_t beside, kinds[KINDS]; /* while a neighbour runs */
	uint64_t both, wild;           /* of two rectangles at once; refused ones */
	uint64_t macs, done;           /* of tenants that are moved: all; of use */
};

static void on_fold(void *user, const struct npu_fold *f)
{
	struct watch *w = &seen.slot[f->slot % MOVED];

	(void)user;
	if (f->slot >= MOVED || !w->waits || f->start < w->resumed)
		return;
	w->waits = false;
	seen.sum += f->start - w->asked;
	seen.count++;
	if (f->start - w->asked > seen.most)
		seen.most = f->start - w->asked;
	if (f->start - w->stopped > seen.set)
		seen.set = f->start - w->stopped;
}

/* ---- machine and work --------------------------------------------------------------- */

static struct rig_rect inside(struct rng *g, uint32_t rows, uint32_t col, uint32_t cols)
{
	struct rig_rect q;

	q.rows = rng_range(g, (rows + 1) / 2, rows);
	q.cols = rng_range(g, 1, cols);
	q.row = rng_range(g, 0, rows - q.rows);
	q.col = col + rng_range(g, 0, cols - q.cols);
	return q;
}

/* The upper half, cut somewhere. */
static void upper(const struct rig *r, struct rig_rect map[TENANTS], struct rng *g)
{
	uint32_t half = r->api->rows / 2, cut = rng_range(g, 1, r->api->cols - 1);

	map[0] = inside(g, half, 0, cut);
	map[1] = inside(g, half, cut, r->api->cols - cut);
}

static void lower(const struct rig *r, struct rig_rect map[TENANTS])
{
	uint32_t half = r->api->rows / 2, cols = r->api->cols / 2;

	map[2] = (struct rig_rect){half, 0, r->api->rows - half, cols};
	map[3] = (struct rig_rect){half, cols, r->api->rows - half, r->api->cols - cols};
}

/* The same whatever else happens. */
static void load(struct rig *r, uint32_t s, uint64_t seed)
{
	struct rng g = {seed * TENANTS + s};
	uint32_t desc[16];

	for (uint32_t i = 0; i < (s < MOVED ? WORK : JOBS); i++) {
		if (s >= MOVED)
			rig_push_stamp(r, s);
		if (rng_next(&g) % 3)
			rig_gemm_desc(r, s, rng_range(&g, 100, 700), rng_range(&g, 8, 70),
				      rng_range(&g, 8, 200), desc, &g);
		else if (s < MOVED)
			rig_random_conv(r, s, desc, &g);
		else
			rig_random_desc(r, s, desc, &g);
		rig_push(r, s, desc);
	}
	if (s >= MOVED)
		rig_push_stamp(r, s);
	rig_push_end(r, s);
}

static void prepare(struct rig *r, enum memory memory, const struct rig_rect *map,
		    uint64_t seed)
{
	struct rig_memory cfg =
		memory == IDEAL ? rig_ideal(r) : rig_channels(r->api->channels);
	uint32_t each = r->api->channels / TENANTS;

	rig_reset(r, &cfg);
	r->api->on_fold(r->model, on_fold, NULL);
	memset(seen.slot, 0, sizeof(seen.slot));
	CHECK(rig_map(r, map, TENANTS) == NPU_MAP_OK, "map");
	for (uint32_t s = 0; s < TENANTS; s++) {
		rig_space(r, s, SPACE,
			  memory == DISJOINT ? ((1u << each) - 1) << each * s : RIG_ALL);
		rig_write(r, NPU_SLOT_ADDR(s, SAVE), rig_alloc(r, s, RIG_SAVE, 64));
		load(r, s, seed);
	}
}

static void save_is_no_output(struct rig *r, uint32_t s)
{
	rig_forget(r, s, rig_reg(r, NPU_SLOT_ADDR(s, SAVE)), RIG_SAVE);
}

/* ---- changes ---------------------------------------------------------------------------- */

static bool same(const struct rig_rect *a, const struct rig_rect *b)
{
	return a->row == b->row && a->col == b->col && a->rows == b->rows &&
	       a->cols == b->cols;
}

static bool meet(const struct rig_rect *a, const struct rig_rect *b)
{
	return a->row < b->row + b->rows && b->row < a->row + a->rows &&
	       a->col < b->col + b->cols && b->col < a->col + a->cols;
}

static enum kind kind_of(const struct rig_rect *old, const struct rig_rect *now)
{
	if (old->rows == now->rows && old->cols == now->cols)
		return MOVES;
	if (now->rows >= old->rows && now->cols >= old->cols)
		return GROWS;
	return now->rows <= old->rows && now->cols <= old->cols ? SHRINKS : OTHER;
}

/* Other rectangles for one or both of the two; which, a bit a slot. */
static uint32_t choose(const struct rig *r, struct rig_rect map[TENANTS], struct rng *g)
{
	struct rig_rect next[TENANTS];
	uint32_t changed = 0, one = rng_range(g, 0, 1);
	bool both = rng_next(g) % 2;

	do {
		memcpy(next, map, sizeof(next));
		upper(r, next, g);
		if (!both)
			next[!one] = map[!one];
		if (rng_next(g) % 3 == 0) { /* as large, elsewhere */
			next[one].rows = map[one].rows;
			next[one].cols = map[one].cols;
			next[one].row = rng_range(g, 0, r->api->rows / 2 - map[one].rows);
			next[one].col = rng_range(g, 0, r->api->cols - map[one].cols);
		}
	} while (meet(&next[0], &next[1]) ||
		 (same(&next[0], &map[0]) && same(&next[1], &map[1])));
	for (uint32_t s = 0; s < MOVED; s++)
		changed |= (uint32_t)!same(&next[s], &map[s]) << s;
	memcpy(map, next, sizeof(next));
	return changed;
}

/* A border over a neighbour. */
static void wild(struct rig *r, const struct rig_rect *map, struct outcome *o,
		 struct rng *g)
{
	struct rig_rect bad[TENANTS];
	uint32_t result;

	memcpy(bad, map, sizeof(bad));
	bad[rng_range(g, 0, 1)] = (struct rig_rect){0, 0, r->api->rows, 1};
	result = rig_map(r, bad, TENANTS);
	CHECK(result == NPU_MAP_OVERLAP, "a border over a neighbour: %u", result);
	o->wild++;
}

static uint32_t state_of(struct rig *r, uint32_t s)
{
	return NPU_REG_GET(rig_reg(r, NPU_SLOT_ADDR(s, STATUS)), STATUS_STATE);
}

/* Whoever changes stops, both get what they get in one commit, and go on. */
static void change(struct rig *r, struct rig_rect map[TENANTS], struct outcome *o,
		   struct rng *g)
{
	struct rig_rect old[TENANTS];
	uint32_t changed, state[MOVED] = {0}, resume[MOVED] = {0};
	uint64_t start, stopped;

	if (rng_next(g) % 4 == 0)
		wild(r, map, o, g);
	memcpy(old, map, sizeof(old));
	changed = choose(r, map, g);
	start = r->api->cycle(r->model);
	r->quieted &= ~changed;
	for (uint32_t s = 0; s < MOVED; s++)
		if (changed >> s & 1)
			rig_write(r, NPU_SLOT_ADDR(s, PREEMPT), NPU_PREEMPT_FOLD);
	while (((r->quieted | r->faulted) & changed) != changed) {
		rig_run(r, 1);
		if (r->api->cycle(r->model) - start > LIMIT) {
			CHECK(false, "no acknowledgement");
			exit(2);
		}
	}
	stopped = r->api->cycle(r->model);
	for (uint32_t s = 0; s < MOVED; s++) {
		if (!(changed >> s & 1))
			continue;
		state[s] = state_of(r, s);
		resume[s] =
			1 | NPU_REG_BITS(RESUME_CONTEXT, state[s] == NPU_STATE_FOLDED);
		CHECK(state[s] == NPU_STATE_FOLDED || state[s] == NPU_STATE_DRAINED,
		      "slot %u: state %u after FOLD", s, state[s]);
		if (state[s] == NPU_STATE_FOLDED)
			save_is_no_output(r, s);
	}
	CHECK(rig_map(r, map, TENANTS) == NPU_MAP_OK, "PEs not free");
	for (uint32_t s = 0; s < MOVED; s++) {
		if (!(changed >> s & 1))
			continue;
		o->changes++;
		o->kinds[kind_of(&old[s], &map[s])]++;
		o->inside += state[s] == NPU_STATE_FOLDED;
		o->beside += (r->ended & 12) != 12;
		if (r->ended >> s & 1)
			continue;
		seen.slot[s] =
			(struct watch){true, start, stopped, r->api->cycle(r->model)};
		rig_write(r, NPU_SLOT_ADDR(s, RESUME), resume[s]);
	}
	o->both += changed == 3;
}

/* ---- rounds ------------------------------------------------------------------------- */

static void jobs(struct rig *r, uint64_t cycles[TENANTS][JOBS])
{
	for (uint32_t s = MOVED; s < TENANTS; s++)
		for (uint32_t j = 0; j < JOBS; j++)
			cycles[s][j] = rig_stamp(r, s, j + 1) - rig_stamp(r, s, j);
}

/* The neighbours alone, then beside tenants that are moved. */
static void round_of(struct rig *r, enum memory memory, uint64_t seed, struct outcome *o)
{
	uint64_t alone[TENANTS][JOBS], beside[TENANTS][JOBS];
	struct rng g = {seed * UINT64_C(0x9E3779B97F4A7C15)};
	struct rig_rect map[TENANTS];

	upper(r, map, &g);
	lower(r, map);
	prepare(r, memory, map, seed);
	rig_bell(r, 2);
	rig_bell(r, 3);
	rig_wait(r, 12, LIMIT);
	jobs(r, alone);

	prepare(r, memory, map, seed);
	for (uint32_t s = TENANTS; s-- > 0;)
		rig_bell(r, s);
	for (uint32_t i = 0; i < EVENTS && (r->ended & 3) == 0; i++) {
		rig_run(r, rng_range(&g, 0, rng_next(&g) % 2 ? 300 : 3000));
		if ((r->ended & 3) == 0)
			change(r, map, o, &g);
	}
	rig_wait(r, 15, LIMIT);
	CHECK(!r->faulted, "seed %llu: fault", (unsigned long long)seed);
	jobs(r, beside);
	for (uint32_t s = MOVED; s < TENANTS; s++) {
		for (uint32_t j = 0; j < JOBS; j++) {
			CHECK(memory == SHARED || beside[s][j] == alone[s][j],
			      "seed %llu: job %u of slot %u takes %llu cycles, not %llu",
			      (unsigned long long)seed, j, s,
			      (unsigned long long)beside[s][j],
			      (unsigned long long)alone[s][j]);
			o->differ += beside[s][j] != alone[s][j];
			o->jobs++;
		}
	}
	for (uint32_t s = 0; s < TENANTS; s++) {
		char what[64];

		snprintf(what, sizeof(what), "seed %llu, slot %u",
			 (unsigned long long)seed, s);
		rig_check(r, s, what);
		/* Of an operation that stops, rows that were ahead count twice, and those
		 * of a tile that begins anew. */
		if (s >= MOVED) {
			rig_counters(r, s, true);
			continue;
		}
		o->macs += rig_counters(r, s, false).macs;
		o->done += r->space[s].macs;
	}
}

/* ---- borders under slots that have not been stopped ------------------------------------ */

/* All folds there were, and when, in one number. */
static void note_fold(void *user, const struct npu_fold *f)
{
	const uint64_t what[] = {f->slot, f->rows_used, f->cols_used,
				 f->t,    f->start,     f->end};
	uint64_t *sum = user;

	for (size_t i = 0; i < sizeof(what) / sizeof(what[0]); i++)
		*sum = (*sum ^ what[i]) * UINT64_C(0x100000001B3);
}

/* One of the two that has work in the array gets another rectangle: refused, as long as
 * the descriptor is the same.  false: it has none. */
static bool under(struct rig *r, struct rig_rect map[TENANTS], uint64_t *taken,
		  struct rng *g)
{
	uint32_t head[MOVED], busy = 0, changed, result, slot;
	struct rig_rect next[TENANTS];

	memcpy(next, map, sizeof(next));
	changed = choose(r, next, g);
	for (uint32_t s = 0; s < MOVED; s++) {
		uint32_t status = rig_reg(r, NPU_SLOT_ADDR(s, STATUS));

		head[s] = rig_reg(r, NPU_SLOT_ADDR(s, HEAD));
		busy |= (uint32_t)!NPU_REG_GET(status, STATUS_QUIET) << s;
	}
	busy &= changed;
	if (!busy)
		return false;
	result = rig_map(r, next, TENANTS);
	slot = NPU_REG_GET(rig_reg(r, NPU_GLB_MAP_STATUS_ADDR), MAP_STATUS_SLOT);
	for (uint32_t s = 0; s < MOVED; s++) /* between two, it may be taken */
		if (rig_reg(r, NPU_SLOT_ADDR(s, HEAD)) != head[s])
			busy &= ~(1u << s);
	CHECK(!busy || (result == NPU_MAP_BUSY && changed >> slot & 1),
	      "a border under slots %#x: %u, slot %u", busy, result, slot);
	CHECK(result == NPU_MAP_BUSY || result == NPU_MAP_OK,
	      "a border under slots %#x: %u", busy, result);
	if (result == NPU_MAP_OK) {
		memcpy(map, next, sizeof(next));
		++*taken;
	}
	return busy;
}

/* What is refused changes nothing: all folds are those of a run without. */
static void not_stopped(struct rig *r, uint64_t seed)
{
	uint64_t folds[2] = {0}, taken = 0, refused = 0;

	for (uint32_t pass = 0; pass < 2; pass++) {
		struct rng g = {seed * UINT64_C(0x9E3779B97F4A7C15) + 1};
		struct rig_rect map[TENANTS];
		uint64_t end;

		upper(r, map, &g);
		lower(r, map);
		prepare(r, DISJOINT, map, seed);
		r->api->on_fold(r->model, note_fold, &folds[pass]);
		rig_bell(r, 0);
		rig_bell(r, 1);
		end = r->api->cycle(r->model) + WINDOW;
		for (uint32_t i = 0; i < EVENTS && pass && (r->ended & 3) != 3; i++) {
			rig_run(r, rng_range(&g, 0, WINDOW / EVENTS - 60));
			refused += under(r, map, &taken, &g);
		}
		if (r->api->cycle(r->model) < end)
			rig_run(r, end - r->api->cycle(r->model));
		r->api->on_fold(r->model, NULL, NULL);
		CHECK(!r->faulted, "seed %llu: fault", (unsigned long long)seed);
	}
	printf("under slots that have not been stopped: %llu refused\n",
	       (unsigned long long)refused);
	CHECK(refused, "seed %llu: none was refused", (unsigned long long)seed);
	CHECK(taken || folds[0] == folds[1],
	      "seed %llu: a border that is refused changes folds",
	      (unsigned long long)seed);
}

/* Multiplications that were made more than once, in all that had to be made. */
static double again(const struct outcome *o)
{
	return o->done ? (double)o->macs / (double)o->done - 1 : 0;
}

static void report(const struct outcome *own)
{
	printf("%llu changes, %llu in the middle of an operation, %llu while a neighbour "
	       "runs, %llu of both at once:",
	       (unsigned long long)own->changes, (unsigned long long)own->inside,
	       (unsigned long long)own->beside, (unsigned long long)own->both);
	for (uint32_t k = 0; k < KINDS; k++)
		printf(" %llu %s", (unsigned long long)own->kinds[k], names[k]);
	printf("; %llu refused\n", (unsigned long long)own->wild);
	printf("%llu cycles at most, %llu in the mean; %llu of them at most from the "
	       "acknowledgement on\n",
	       (unsigned long long)seen.most,
	       (unsigned long long)(seen.count ? seen.sum / seen.count : 0),
	       (unsigned long long)seen.set);
	printf("%.4f of the multiplications of who is moved made again\n", again(own));
	printf("%llu of %llu jobs of neighbours take other cycles than alone\n",
	       (unsigned long long)own->differ, (unsigned long long)own->jobs);
}

int main(int argc, char **argv)
{
	bool figures = argc > 1 && !strcmp(argv[1], "figures");
	int at = 1 + figures;
	uint32_t rounds = argc > at ? (uint32_t)strtoul(argv[at], NULL, 0) : 8;
	uint64_t seed = argc > at + 1 ? strtoull(argv[at + 1], NULL, 0) : 1;
	const char *shape = argc > at + 2 ? argv[at + 2] : "16x16x4x8";
	struct outcome own = {0}, shared = {0};
	struct rig r;

	rig_open(&r, shape, UINT64_C(1) << 25);
	for (uint32_t i = 0; i < rounds && bench_failures < 20; i++)
		round_of(&r, i % 4 == 3 ? IDEAL : DISJOINT, seed + i, &own);
	report(&own);
	if (figures) {
		printf("figure npu.border.trials %llu\n",
		       (unsigned long long)own.changes);
		printf("figure npu.border.cycles_max %llu\n",
		       (unsigned long long)seen.most);
		printf("figure npu.border.set_cycles_max %llu\n",
		       (unsigned long long)seen.set);
		printf("figure npu.border.neighbour_cycle_changes %llu\n",
		       (unsigned long long)own.differ);
		printf("figure npu.border.macs_again %.4f\n", again(&own));
	}
	for (uint32_t i = 0; i < (rounds + 3) / 4 && bench_failures < 20; i++)
		round_of(&r, SHARED, seed + i, &shared);
	not_stopped(&r, seed);
	rig_close(&r);
	if (figures)
		printf("figure npu.border.shared_differ %llu\n",
		       (unsigned long long)shared.differ);
	printf("control: of %llu jobs on shared channels %llu differ\n",
	       (unsigned long long)shared.jobs, (unsigned long long)shared.differ);
	CHECK(shared.differ > 0, "sharing channels changed no job: nothing is proved");
	CHECK(own.inside * 2 > own.changes, "%llu of %llu changes inside an operation",
	      (unsigned long long)own.inside, (unsigned long long)own.changes);
	CHECK(rounds < 8 || own.beside * 2 > own.changes,
	      "%llu of %llu changes beside a neighbour that runs",
	      (unsigned long long)own.beside, (unsigned long long)own.changes);
	CHECK(rounds < 8 || (own.kinds[MOVES] && own.kinds[GROWS] && own.kinds[SHRINKS] &&
			     own.both && own.wild),
	      "a kind of change is missing");
	return bench_end("bench_border");
}
