/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_release.c - how long FOLD and SAVE take to free the PEs as K grows: a
 * multiplication on the whole array, stopped at many moments of a tile, with ideal memory
 * and with channels.  FOLD waits for the fold's rows and for what is in the array, SAVE
 * for what is in the array, whatever K is; KILL at the same moments beside them. After
 * each stop the tenant goes on, on other PEs where that is of use, and every byte is
 * compared with the golden model's, and that no product has been made twice but after a
 * KILL.  And how long it takes until the interrupt where a stop finds a long
 * VEC: DRAIN waits for its end, FOLD and SAVE for stores, and a softmax for its row.
 *
 *   bench_release [figures] [MOMENTS [SHAPE]]
 */
#include <stdlib.h>
#include <string.h>

#include "npu_panel.h"
#include "rig.h"

#define SPACE (1u << 23)
#define LIMIT 8000000u
#define TILES 2u  /* of columns */
#define KEPT  64u /* tiles that are told apart */
/* Rows on their way through the gather, the array and its edges. */
#define IN_ARRAY(r) ((r)->api->rows + (r)->api->cols + 8)

static const uint32_t depths[] = {64, 256, 1024, 4096, 16384, 65535};
#define DEPTHS (sizeof(depths) / sizeof(depths[0]))

/* The tiles of most rows of an undisturbed run: where they begin. */
static struct {
	uint64_t folds, seen; /* of a tile; so far */
	uint32_t rows, count;
	uint64_t start[KEPT];
} tiles;

struct most {
	uint64_t fold, save, kill; /* cycles until the PEs are free */
	uint64_t acked;            /* FOLD, SAVE: until the interrupt */
	uint64_t inside;           /* FOLDs in the middle of the operation */
};

static void on_fold(void *user, const struct npu_fold *f)
{
	(void)user;
	if (tiles.seen++ % tiles.folds)
		return;
	if (f->t > tiles.rows)
		tiles.count = 0;
	if (f->t >= tiles.rows && tiles.count < KEPT) {
		tiles.rows = f->t;
		tiles.start[tiles.count++] = f->start;
	}
}

/* The same machine and operation each time, begun. */
static void begin(struct rig *r, bool ideal, uint32_t k)
{
	struct rig_memory cfg = ideal ? rig_ideal(r) : rig_channels(r->api->channels / 2);
	struct rig_rect whole = {0, 0, r->api->rows, r->api->cols};
	struct rng g = {k};
	uint32_t desc[16], m = NPU_SPAD / k + 1;

	rig_reset(r, &cfg);
	CHECK(rig_map(r, &whole, 1) == NPU_MAP_OK, "map");
	rig_space(r, 0, SPACE, RIG_ALL);
	/* Room for a panel of the longest. */
	rig_gemm_desc(r, 0, 2 * (m < NPU_DEPTH ? m : NPU_DEPTH + 1), TILES * r->api->cols,
		      k, desc, &g);
	rig_push(r, 0, desc);
	rig_push_end(r, 0);
	rig_write(r, NPU_SLOT_ADDR(0, SAVE), rig_alloc(r, 0, RIG_SAVE, 64));
	rig_bell(r, 0);
}

static void undisturbed(struct rig *r, bool ideal, uint32_t k)
{
	begin(r, ideal, k);
	memset(&tiles, 0, sizeof(tiles));
	tiles.folds = (k + r->api->rows - 1) / r->api->rows;
	r->api->on_fold(r->model, on_fold, NULL);
	rig_wait(r, 1, LIMIT);
	r->api->on_fold(r->model, NULL, NULL);
	rig_check(r, 0, "undisturbed");
}

/* Cycles until the PEs are free; the tenant goes on, to its end: on a row less, but where
 * it was if sums of a part of a fold need that. */
static uint32_t stop(struct rig *r, bool ideal, uint32_t k, uint32_t how, uint64_t when,
		     bool *inside, uint64_t *acked)
{
	uint32_t context[NPU_CONTEXT_WORDS], save, spent, edge;
	struct rig_rect rest;
	uint64_t now;

	begin(r, ideal, k);
	now = r->api->cycle(r->model);
	rig_run(r, when > now ? when - now : 0);
	r->quieted = 0;
	rig_write(r, NPU_SLOT_ADDR(0, PREEMPT), how);
	while (!((r->quieted | r->faulted) & 1) && r->api->cycle(r->model) < when + LIMIT)
		rig_run(r, 1);
	*acked = r->api->cycle(r->model) - when;
	CHECK(r->quieted & 1, "k %u: no acknowledgement", k);
	spent = rig_reg(r, NPU_SLOT_ADDR(0, PREEMPT_CYCLES));
	*inside = NPU_REG_GET(rig_reg(r, NPU_SLOT_ADDR(0, STATUS)), STATUS_STATE) ==
		  NPU_STATE_FOLDED;
	save = rig_reg(r, NPU_SLOT_ADDR(0, SAVE));
	rig_peek(r, 0, save, context, sizeof(context));
	if (*inside)
		rig_forget(r, 0, save, RIG_SAVE);
	edge = *inside && NPU_GET(context, FOLD_R) ? 0 : 1;
	rest = (struct rig_rect){edge, 0, r->api->rows - edge, r->api->cols};
	CHECK(rig_map(r, &rest, 1) == NPU_MAP_OK, "k %u: PEs not free", k);
	rig_write(r, NPU_SLOT_ADDR(0, RESUME), 1 | NPU_REG_BITS(RESUME_CONTEXT, *inside));
	rig_wait(r, 1, LIMIT);
	CHECK(!r->faulted, "k %u: fault", k);
	rig_check(r, 0, "stopped");
	rig_counters(r, 0, how != NPU_PREEMPT_KILL);
	return spent;
}

/* Stops in all of the longest tiles, each in another part of a fold. */
static void stops(struct rig *r, bool ideal, uint32_t k, uint32_t moments,
		  struct most *most)
{
	uint64_t fold, tile;

	undisturbed(r, ideal, k);
	CHECK(tiles.count > 1, "k %u: %u tiles", k, tiles.count);
	fold = tiles.rows > r->api->rows ? tiles.rows : r->api->rows;
	tile = tiles.folds * fold;
	for (uint32_t i = 0; i < moments; i++) {
		/* the last of all has nothing behind it */
		uint64_t when = tiles.start[i % (tiles.count - 1)] +
				(2 * i + 1) * tile / (2 * moments) + i * fold / moments;
		bool inside;
		uint64_t acked;
		uint64_t spent =
			stop(r, ideal, k, NPU_PREEMPT_FOLD, when, &inside, &acked);

		CHECK(spent <= tiles.rows + IN_ARRAY(r),
		      "k %u: FOLD takes %llu cycles, a fold has %u rows", k,
		      (unsigned long long)spent, tiles.rows);
		most->fold = spent > most->fold ? spent : most->fold;
		most->acked = acked > most->acked ? acked : most->acked;
		most->inside += inside;
		spent = stop(r, ideal, k, NPU_PREEMPT_SAVE, when, &inside, &acked);
		CHECK(spent <= IN_ARRAY(r), "k %u: SAVE takes %llu cycles", k,
		      (unsigned long long)spent);
		most->save = spent > most->save ? spent : most->save;
		most->acked = acked > most->acked ? acked : most->acked;
		if (i % 4)
			continue;
		spent = stop(r, ideal, k, NPU_PREEMPT_KILL, when, &inside, &acked);
		CHECK(!ideal || spent <= 8, "k %u: KILL takes %llu cycles", k,
		      (unsigned long long)spent);
		most->kill = spent > most->kill ? spent : most->kill;
	}
	printf("K = %5u, %s: %u rows a tile, %llu cycles; PEs free after FOLD in at most "
	       "%llu cycles (%llu stops inside), after SAVE in %llu (all is saved in "
	       "%llu), after KILL in %llu\n",
	       k, ideal ? "ideal memory" : "channels", tiles.rows,
	       (unsigned long long)tile, (unsigned long long)most->fold,
	       (unsigned long long)most->inside, (unsigned long long)most->save,
	       (unsigned long long)most->acked, (unsigned long long)most->kill);
	CHECK(most->inside > 0, "k %u: no FOLD inside the operation", k);
	/* One of them found a fold that had just begun. */
	CHECK(2 * most->fold > tiles.rows, "k %u: a FOLD of %llu cycles, a fold of %u", k,
	      (unsigned long long)most->fold, tiles.rows);
}

/* ---- VEC --------------------------------------------------------------------------- */

enum { COPY, ADD, POOL, SOFTMAX, VECS };

static const char *const vec_names[VECS] = {"copy", "add", "pool", "softmax"};
/* Rows of outputs, bytes of each; a pool's are of windows of 16 x 16 pixels. */
static const uint32_t vec_rows[VECS] = {300, 200, 625, 4};
static const uint32_t vec_cols[VECS] = {1024, 1024, 32, 4000};

#define LINE  40u /* of the pool's input and, in pixels, its height */
#define SIDE  16u
#define LANES (LINE - SIDE + 1) /* outputs of a line */

static void vec_desc(struct rig *r, uint32_t which, uint32_t desc[16], struct rng *g)
{
	static const uint32_t vops[VECS] = {NPU_VOP_COPY, NPU_VOP_ADD, NPU_VOP_AVGPOOL,
					    NPU_VOP_SOFTMAX};
	uint32_t rows = vec_rows[which], cols = vec_cols[which], bytes = rows * cols;
	uint32_t in = which == POOL ? LINE * LINE * cols : bytes;
	uint32_t table = rig_alloc(r, 0, 1024, 16);

	memset(desc, 0, 64);
	NPU_SET(desc, OPCODE, NPU_OP_VEC);
	NPU_SET(desc, VOP, vops[which]);
	NPU_SET(desc, ADDR_A, rig_alloc(r, 0, in, 64));
	rig_random(r, 0, NPU_GET(desc, ADDR_A), in, g);
	NPU_SET(desc, ADDR_D, rig_alloc(r, 0, bytes, 64));
	NPU_SET(desc, DM, rows);
	NPU_SET(desc, LDA, cols);
	NPU_SET(desc, LDD, cols);
	if (which == POOL) {
		NPU_SET(desc, OW, LANES);
		NPU_SET(desc, CIN, cols);
		NPU_SET(desc, H, LINE);
		NPU_SET(desc, W, LINE);
		NPU_SET(desc, LDA, LINE * cols);
		NPU_SET(desc, PIX, cols);
		NPU_SET(desc, KH, SIDE);
		NPU_SET(desc, KW, SIDE);
		NPU_SET(desc, SY, 1);
		NPU_SET(desc, SX, 1);
		NPU_SET(desc, DY, 1); /* not used, but looked at */
		NPU_SET(desc, DX, 1);
	} else {
		NPU_SET(desc, VCOLS, cols);
	}
	if (which == ADD) {
		NPU_SET(desc, ADDR_B, rig_alloc(r, 0, bytes, 64));
		rig_random(r, 0, NPU_GET(desc, ADDR_B), bytes, g);
		NPU_SET(desc, VLDB, cols);
		NPU_SET(desc, VMULT1, 1u << 30);
		NPU_SET(desc, VMULT2, 1u << 30);
		NPU_SET(desc, VMULTO, 1u << 30);
	}
	if (which == SOFTMAX) {
		rig_random(r, 0, table, 1024, g);
		for (uint32_t i = 0; i < 256; i++) { /* not negative */
			uint32_t entry = 0x7fffffffu / (i + 1);

			rig_poke(r, 0, table + 4 * i, &entry, 4);
		}
		NPU_SET(desc, ADDR_P, table);
	}
	NPU_SET(desc, AMIN, 128);
	NPU_SET(desc, AMAX, 127);
}

/* Of such an operation in one go, or stopped after a while; cycles until its end, or the
 * interrupt.  how 0: not stopped. */
static uint64_t vec_run(struct rig *r, bool ideal, uint32_t which, uint32_t how,
			uint32_t when, bool *inside)
{
	struct rig_memory cfg = ideal ? rig_ideal(r) : rig_channels(r->api->channels / 2);
	struct rng g = {which + 1};
	uint64_t start, acked = 0;
	uint32_t desc[16], save;

	rig_reset(r, &cfg);
	rig_space(r, 0, SPACE, RIG_ALL);
	vec_desc(r, which, desc, &g);
	rig_push(r, 0, desc);
	rig_push_end(r, 0);
	save = rig_alloc(r, 0, 64, 64);
	rig_write(r, NPU_SLOT_ADDR(0, SAVE), save);
	rig_bell(r, 0);
	start = r->api->cycle(r->model);
	if (how) {
		rig_run(r, when);
		r->quieted = 0;
		rig_write(r, NPU_SLOT_ADDR(0, PREEMPT), how);
		while (!((r->quieted | r->faulted) & 1) &&
		       r->api->cycle(r->model) < start + LIMIT)
			rig_run(r, 1);
		acked = r->api->cycle(r->model) - start - when;
		*inside = NPU_REG_GET(rig_reg(r, NPU_SLOT_ADDR(0, STATUS)),
				      STATUS_STATE) == NPU_STATE_FOLDED;
		rig_forget(r, 0, save, 64);
		rig_write(r, NPU_SLOT_ADDR(0, RESUME),
			  1 | NPU_REG_BITS(RESUME_CONTEXT, *inside));
	}
	rig_wait(r, 1, LIMIT);
	CHECK(!r->faulted, "%s: fault", vec_names[which]);
	rig_check(r, 0, vec_names[which]);
	return how ? acked : r->api->cycle(r->model) - start;
}

/* Beyond what a KILL takes: stores, a context; a softmax's last pass over a row, an
 * element a cycle. */
static uint64_t vec_more(uint32_t which, bool ideal)
{
	return (ideal ? 50 : 200) + (which == SOFTMAX ? vec_cols[which] * 5 / 4 : 0);
}

static void vec_stops(struct rig *r, bool ideal, uint32_t which, uint32_t moments)
{
	static const uint32_t hows[] = {NPU_PREEMPT_DRAIN, NPU_PREEMPT_FOLD,
					NPU_PREEMPT_SAVE, NPU_PREEMPT_KILL};
	uint64_t all = vec_run(r, ideal, which, 0, 0, NULL), most[4] = {0};
	uint32_t folded = 0;

	for (uint32_t i = 0; i < moments; i++)
		for (uint32_t how = 0; how < 4; how++) {
			uint32_t when =
				(uint32_t)(all * (8 * i + how + 1) / (8 * moments));
			bool inside;
			uint64_t acked =
				vec_run(r, ideal, which, hows[how], when, &inside);

			most[how] = acked > most[how] ? acked : most[how];
			folded += inside;
		}
	printf("%s, %s: %llu cycles; acknowledged after DRAIN in %llu, FOLD in %llu, "
	       "SAVE "
	       "in %llu, KILL in %llu (%u inside)\n",
	       vec_names[which], ideal ? "ideal memory" : "channels",
	       (unsigned long long)all, (unsigned long long)most[0],
	       (unsigned long long)most[1], (unsigned long long)most[2],
	       (unsigned long long)most[3], folded);
	for (uint32_t i = 1; i < 3; i++)
		CHECK(most[i] <= most[3] + vec_more(which, ideal),
		      "%s: a stop takes %llu cycles, KILL %llu", vec_names[which],
		      (unsigned long long)most[i], (unsigned long long)most[3]);
	CHECK(folded >= moments, "%s: %u stops inside", vec_names[which], folded);
}

int main(int argc, char **argv)
{
	bool figures = argc > 1 && !strcmp(argv[1], "figures");
	int at = 1 + figures;
	uint32_t moments = argc > at ? (uint32_t)strtoul(argv[at], NULL, 0) : 8;
	const char *shape = argc > at + 1 ? argv[at + 1] : "16x16x4x8";
	struct rig r;

	rig_open(&r, shape, UINT64_C(1) << 25);
	for (size_t d = 0; d < DEPTHS; d++) {
		struct most ideal = {0}, four = {0};

		stops(&r, true, depths[d], moments, &ideal);
		stops(&r, false, depths[d], moments, &four);
		if (figures)
			printf("figure npu.preempt.save.release_cycles.k%u %llu\n",
			       depths[d],
			       (unsigned long long)(ideal.save > four.save ? ideal.save
									   : four.save));
		if (figures)
			printf("figure npu.preempt.fold.release_cycles.k%u %llu\n",
			       depths[d],
			       (unsigned long long)(ideal.fold > four.fold ? ideal.fold
									   : four.fold));
	}
	for (uint32_t which = 0; which < VECS; which++) {
		vec_stops(&r, true, which, moments);
		vec_stops(&r, false, which, moments);
	}
	rig_close(&r);
	return bench_end("bench_release");
}
