/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_fold.c - SERIAL mode against SCALE-Sim's weight-stationary formula, fold by fold:
 * from the first cycle of its weight load to the cycle its last result is accumulated,
 * both counted, a fold of T rows on h x w PEs takes exactly 2h + w + T - 2 + 6 cycles.
 *
 *   bench_fold squares SHAPE                  n x n rectangles, and random ones
 *   bench_fold layers [DIR|- [TOPOLOGY...]]   tables in SCALE-Sim's format
 *   bench_fold figure [DIR]                   both, on 32x32x4x8 and 16x16x4x8
 *
 * DIR defaults to $HAL_SCALE_SIM.
 */
#include <stdlib.h>
#include <string.h>

#include "npu_panel.h"
#include "rig.h"

/* gather (request, read, merge), feeder, accumulation, start decision */
#define OFFSET 6

struct tally {
	uint32_t h, w;
	uint64_t folds, mismatches, rows, macs;
	uint64_t end, late; /* of the last fold; folds that did not follow at once */
	bool several;       /* its rows are several runs, which may meet in a bank */
	uint64_t longer;    /* such folds that took longer */
};

static void on_fold(void *user, const struct npu_fold *f)
{
	struct tally *t = user;
	uint64_t cycles = f->end - f->start + 1;
	uint64_t want = 2 * t->h + t->w + f->t - 2 + OFFSET;

	t->folds++;
	t->late += f->start != t->end + 1;
	t->end = f->end;
	t->rows += f->t;
	t->macs += (uint64_t)f->t * f->rows_used * f->cols_used;
	if (cycles == want)
		return;
	if (t->several && cycles > want) {
		t->longer++;
		return;
	}
	if (t->mismatches++ < 5)
		printf("fold of %u rows on %ux%u (%u, %u used): %llu cycles, not %llu\n",
		       f->t, t->h, t->w, f->rows_used, f->cols_used,
		       (unsigned long long)cycles, (unsigned long long)want);
}

static void setup(struct rig *r, const struct rig_memory *cfg, struct rig_rect rect,
		  uint32_t space, struct tally *t)
{
	rig_reset(r, cfg);
	CHECK(rig_map(r, &rect, 1) == NPU_MAP_OK, "map");
	rig_space(r, 0, space, RIG_ALL);
	rig_write(r, NPU_GLB_AT(SLOT_CTRL, 0), NPU_REG_BITS(SLOT_CTRL_SERIAL, 1));
	t->h = rect.rows;
	t->w = rect.cols;
	r->api->on_fold(r->model, on_fold, t);
}

static void run(struct rig *r, struct tally *t, uint64_t folds, uint64_t macs)
{
	struct rig_counters before = rig_counters(r, 0, false), after;
	uint64_t had = t->folds, did = t->macs;

	rig_push_end(r, 0);
	rig_bell(r, 0);
	rig_wait(r, 1, UINT64_C(1) << 32);
	CHECK(!r->faulted, "fault");
	after = rig_counters(r, 0, false);
	CHECK(t->folds - had == folds && after.folds - before.folds == folds,
	      "%llu folds, not %llu", (unsigned long long)(t->folds - had),
	      (unsigned long long)folds);
	CHECK(t->macs - did == macs && after.macs - before.macs == macs,
	      "%llu MACs, not %llu", (unsigned long long)(t->macs - did),
	      (unsigned long long)macs);
}

static uint64_t panels(struct rig *r, const uint32_t desc[16], uint32_t k, uint32_t h,
		       uint32_t w)
{
	uint32_t depth = npu_panel_most(NPU_GET(desc, F_OUT32), k, h, w);
	uint32_t m = NPU_GET(desc, DM), panel = NPU_GET(desc, PANEL);
	uint64_t count = 0;

	CHECK(NPU_REG_GET(rig_reg(r, NPU_GLB_CAPS_ADDR), CAPS_DEPTH_LOG2) == 9 &&
		      NPU_DEPTH == 512,
	      "npu_panel.h knows another machine");
	depth = panel < depth ? panel : depth;
	for (uint32_t t = 0; m; m -= t, count++)
		t = npu_panel_next(m, depth, t);
	return count;
}

static void gemm(struct rig *r, struct tally *t, uint32_t m, uint32_t n, uint32_t k,
		 struct rng *g)
{
	uint32_t desc[16];
	uint64_t folds, blocks, late = t->late;

	rig_free_all(r, 0);
	rig_gemm_desc(r, 0, m, n, k, desc, g);
	blocks = panels(r, desc, k, t->h, t->w);
	folds = blocks * ((n + t->w - 1) / t->w) * ((k + t->h - 1) / t->h);
	rig_push(r, 0, desc);
	run(r, t, folds, (uint64_t)m * n * k);
	CHECK(!rig_counters(r, 0, false).stall_bank, "a GEMM waits for banks");
	rig_check(r, 0, "fold bench");
	/* Ideal memory is ahead of the array: but for the first few, each fold begins in
	 * the cycle after the one before. */
	if (r->cfg.ideal)
		CHECK(t->late - late <= blocks + 3, "%llu of %llu folds wait",
		      (unsigned long long)(t->late - late), (unsigned long long)folds);
}

static void squares(struct rig *r, struct tally *t)
{
	struct rng g = {5};

	for (uint32_t n = r->api->rows < 4 ? 1 : 4;
	     n <= r->api->rows && n <= r->api->cols; n++) {
		static const uint32_t ms[] = {1, 37, 700};
		struct rig_memory cfg =
			n % 2 ? rig_ideal(r) : rig_channels(r->api->channels);
		uint32_t slack = r->api->rows - n;
		struct rig_rect rect = {slack ? rng_range(&g, 0, slack) : 0, 0, n, n};

		setup(r, &cfg, rect, 1u << 21, t);
		gemm(r, t, n, n, n, &g);
		for (uint32_t i = 0; i < 3; i++)
			gemm(r, t, ms[i], 2 * n + 1, n + n / 2, &g);
	}
	for (uint32_t i = 0; i < 40; i++) {
		struct rig_memory cfg =
			i % 2 ? rig_ideal(r) : rig_channels(r->api->channels);
		struct rig_rect rect = {0, 0, rng_range(&g, 1, r->api->rows),
					rng_range(&g, 1, r->api->cols)};

		setup(r, &cfg, rect, 1u << 21, t);
		gemm(r, t, rng_range(&g, 1, 100), rng_range(&g, 1, 60),
		     rng_range(&g, 1, 90), &g);
	}
}

static void topology(struct rig *r, const char *directory, const char *name,
		     struct tally *t)
{
	static struct layer layers[LAYERS_MAX];
	uint32_t count = layers_read(directory, name, layers);
	uint32_t a = 0, b = 0, d = 0;
	struct rig_memory cfg = rig_ideal(r);
	struct rig_rect rect = {0, 0, 16, 16};
	uint64_t had = t->folds;

	if (!count) {
		printf("skipped: no %s.csv in %s\n", name, directory);
		exit(77);
	}
	setup(r, &cfg, rect, 1u << 25, t);
	for (uint32_t i = 0; i < count; i++) {
		uint32_t x, y, z;

		rig_layer_bytes(&layers[i], &x, &y, &z);
		a = x > a ? x : a;
		b = y > b ? y : b;
		d = z > d ? z : d;
	}
	a = rig_alloc(r, 0, a, 64);
	b = rig_alloc(r, 0, b, 64);
	d = rig_alloc(r, 0, d, 64);
	for (uint32_t i = 0; i < count; i++) {
		const struct layer *l = &layers[i];
		uint32_t desc[16];

		rig_layer_desc(l, a, b, d, desc);
		rig_push(r, 0, desc);
		t->several = !l->gemm && l->c % 16 != 0;
		run(r, t,
		    panels(r, desc, l->k, 16, 16) * ((l->n + 15) / 16) *
			    ((l->k + 15) / 16),
		    (uint64_t)l->m * l->n * l->k);
		r->space[0].done = r->space[0].tail;
	}
	t->several = false;
	printf("%s: %u layers, %llu folds, %llu cycles; so far %llu folds longer for "
	       "banks\n",
	       name, count, (unsigned long long)(t->folds - had),
	       (unsigned long long)r->api->cycle(r->model),
	       (unsigned long long)t->longer);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "squares";
	const char *directory = getenv("HAL_SCALE_SIM");
	struct tally t = {0};
	struct rig r;

	if (!strcmp(mode, "squares")) {
		rig_open(&r, argc > 2 ? argv[2] : "16x16x4x8", UINT64_C(1) << 24);
		squares(&r, &t);
	} else {
		directory = argc > 2 && strcmp(argv[2], "-") != 0 ? argv[2] : directory;
		if (!directory || !*directory) {
			printf("skipped: no folder of layer tables: configure with "
			       "-DHAL_SCALE_SIM=FOLDER\n");
			return 77;
		}
		if (!strcmp(mode, "figure")) {
			rig_open(&r, "32x32x4x8", UINT64_C(1) << 24);
			squares(&r, &t);
			rig_close(&r);
		}
		rig_open(&r, "16x16x4x8", UINT64_C(1) << 26);
		if (argc > 3)
			for (int i = 3; i < argc; i++)
				topology(&r, directory, argv[i], &t);
		else
			for (int i = 0; i < LAYERS_NETWORKS; i++)
				topology(&r, directory, layers_networks[i], &t);
	}
	rig_close(&r);
	CHECK(t.folds > 0, "no fold was seen");
	CHECK(!t.mismatches, "%llu of %llu folds differ",
	      (unsigned long long)t.mismatches, (unsigned long long)t.folds);
	printf("%llu folds\n", (unsigned long long)t.folds);
	if (!strcmp(mode, "figure"))
		printf("figure npu.fold.mismatches %llu\n",
		       (unsigned long long)t.mismatches);
	return bench_end("bench_fold");
}
