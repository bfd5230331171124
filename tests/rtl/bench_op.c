/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_op.c - what an operation costs beyond its folds (a fold is max(T, h) cycles): one
 * slot on the whole array, ideal memory unless said otherwise, operations one behind the
 * other in a ring.
 *
 *   bench_op [figures]
 *
 * Cycles an operation are those of 12 in a row less those of 4, over 8.  In a chain each
 * one reads what the one before it has written.  Every byte is compared with the golden
 * model's.
 */
#include <stdlib.h>
#include <string.h>

#include "npu_panel.h"
#include "rig.h"

#define FEW  4
#define MANY 12

static const struct shape {
	const char *name;
	bool gemm;
	uint32_t size, n, k; /* rows, or height and width of the image; outputs; inputs */
	uint32_t most[2];    /* cycles beyond the folds: independent, chain */
} shapes[] = {
	{"gemm16", true, 16, 16, 16, {24, 72}},
	{"gemm256", true, 256, 64, 64, {30, 30}},
	{"dw24x24x32", false, 24, 32, 1, {96, 160}},
	{"dw7x7x64", false, 7, 64, 1, {16, 135}},
};
#define SHAPES (sizeof(shapes) / sizeof(shapes[0]))

static uint64_t folds(const struct rig *r, const struct shape *s)
{
	uint32_t k = s->gemm ? s->k : 9, h = r->api->rows, w = r->api->cols;
	uint32_t m = s->gemm ? s->size : s->size * s->size;
	uint32_t depth = k <= 2 * h ? 256 : 512;
	uint64_t rows = 0;

	for (uint32_t m0 = 0, t = 0; m0 < m; m0 += t) {
		t = npu_panel_next(m - m0, depth, t);
		rows += t > h ? t : h;
	}
	return rows * ((k + h - 1) / h) * ((s->n + w - 1) / w);
}

static uint64_t run(struct rig *r, const struct shape *s, const struct rig_memory *cfg,
		    bool chain, uint32_t count)
{
	struct rig_rect rect = {0, 0, r->api->rows, r->api->cols};
	struct rig_conv c = {.h = s->size,
			     .w = s->gemm ? 1 : s->size,
			     .cin = s->gemm ? s->k : s->n,
			     .oh = s->size,
			     .ow = s->gemm ? 1 : s->size,
			     .n = s->n,
			     .kh = s->gemm ? 1 : 3,
			     .kw = s->gemm ? 1 : 3,
			     .sy = 1,
			     .sx = 1,
			     .dy = 1,
			     .dx = 1,
			     .pt = !s->gemm,
			     .pl = !s->gemm,
			     .gc = !s->gemm,
			     .depthwise = !s->gemm,
			     .block = true};
	uint32_t desc[16], last = 0, begin, end;

	rig_reset(r, cfg);
	CHECK(rig_map(r, &rect, 1) == NPU_MAP_OK, "map");
	rig_space(r, 0, 1u << 22, RIG_ALL);
	begin = rig_push_stamp(r, 0);
	for (uint32_t i = 0; i < count; i++) {
		struct rng g = {.state = 7}; /* all the same but for their places */

		rig_conv_desc(r, 0, &c, s->gemm, desc, &g);
		if (chain && i)
			NPU_SET(desc, ADDR_A, last);
		last = (uint32_t)NPU_GET(desc, ADDR_D);
		rig_push(r, 0, desc);
	}
	end = rig_push_stamp(r, 0);
	rig_push_end(r, 0);
	rig_bell(r, 0);
	rig_wait(r, 1, UINT64_C(1) << 24);
	CHECK(!r->faulted, "fault %u", rig_reg(r, NPU_SLOT_ADDR(0, FAULT_KIND)));
	rig_check(r, 0, s->name);
	return rig_stamp(r, 0, end) - rig_stamp(r, 0, begin);
}

/* Cycles of one operation among others beyond its folds, and of one alone. */
static double beyond(struct rig *r, const struct shape *s, const struct rig_memory *cfg,
		     bool chain)
{
	uint64_t few = run(r, s, cfg, chain, FEW), many = run(r, s, cfg, chain, MANY);

	return (double)(many - few) / (MANY - FEW) - (double)folds(r, s);
}

int main(int argc, char **argv)
{
	bool figures = argc > 1 && !strcmp(argv[1], "figures");
	struct rig_memory four = rig_backend(4, NPU_HASH_SPREAD), ideal;
	struct rig r;

	rig_open(&r, "16x16x4x8", UINT64_C(1) << 26);
	ideal = rig_ideal(&r);
	printf("%-12s %8s %8s %12s %8s %14s %8s\n", "operation", "folds", "alone",
	       "independent", "chain", "4 ch. indep.", "chain");
	for (size_t i = 0; i < SHAPES; i++) {
		const struct shape *s = &shapes[i];
		double alone = (double)(run(&r, s, &ideal, false, 1) - folds(&r, s));
		double two[2];

		for (int chain = 0; chain < 2; chain++) {
			two[chain] = beyond(&r, s, &ideal, chain);
			CHECK(two[chain] <= s->most[chain],
			      "%s%s: %.1f cycles beyond its folds, at most %u", s->name,
			      chain ? ", chain" : "", two[chain], s->most[chain]);
		}
		printf("%-12s %8llu %8.0f %12.1f %8.1f %14.1f %8.1f\n", s->name,
		       (unsigned long long)folds(&r, s), alone, two[0], two[1],
		       beyond(&r, s, &four, false), beyond(&r, s, &four, true));
		if (figures) {
			printf("figure npu.op.overhead_cycles.%s %.3f\n", s->name,
			       two[0]);
			printf("figure npu.op.overhead_cycles.%s.chain %.3f\n", s->name,
			       two[1]);
		}
	}
	rig_close(&r);
	return bench_end("bench_op");
}
