/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_position.c - the same jobs on every legal position of a rectangle: the same bits
 * and the same cycles.  Arguments: shape (16x16x4x8), positions tried of each rectangle
 * (24; 0: all).
 */
#include <stdlib.h>
#include <string.h>

#include "rig.h"

#define JOBS 4

static const struct rig_rect sizes[] = {{0, 0, 3, 5},  {0, 0, 8, 8},  {0, 0, 13, 2},
					{0, 0, 1, 16}, {0, 0, 16, 1}, {0, 0, 1, 1},
					{0, 0, 7, 11}, {0, 0, 16, 16}};

static void at(struct rig *r, const struct rig_rect *rect, uint32_t slot,
	       uint64_t *cycles)
{
	struct rig_memory cfg = rig_channels(r->api->channels);
	struct rig_rect rects[RIG_SLOTS] = {{0}};
	struct rng g = {rect->rows * 100 + rect->cols};

	rects[slot] = *rect;
	rig_reset(r, &cfg);
	CHECK(rig_map(r, rects, RIG_SLOTS) == NPU_MAP_OK, "%ux%u at %u,%u", rect->rows,
	      rect->cols, rect->row, rect->col);
	rig_space(r, slot, 1u << 20, RIG_ALL);
	for (uint32_t j = 0; j < JOBS; j++) {
		uint32_t desc[16];

		if (j % 2) {
			struct rig_conv c = {.h = 7,
					     .w = 6,
					     .cin = 5,
					     .oh = 7,
					     .ow = 6,
					     .n = 9 + j,
					     .kh = 3,
					     .kw = 3,
					     .sy = 1,
					     .sx = 1,
					     .dy = 1,
					     .dx = 1,
					     .pt = 1,
					     .pl = 1};

			rig_conv_desc(r, slot, &c, false, desc, &g);
		} else {
			rig_gemm_desc(r, slot, 20 + j, 23, 31, desc, &g);
		}
		rig_push_stamp(r, slot);
		rig_push(r, slot, desc);
	}
	rig_push_stamp(r, slot);
	rig_push_end(r, slot);
	rig_bell(r, slot);
	rig_wait(r, 1u << slot, 10000000);
	for (uint32_t j = 0; j < JOBS; j++)
		cycles[j] = rig_stamp(r, slot, j + 1) - rig_stamp(r, slot, j);
	rig_check(r, slot, "position");
	rig_counters(r, slot, true);
}

int main(int argc, char **argv)
{
	const char *shape = argc > 1 ? argv[1] : "16x16x4x8";
	uint32_t most = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 0) : 24;
	uint32_t tried = 0;
	struct rig r;

	rig_open(&r, shape, UINT64_C(1) << 22);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct rig_rect q = sizes[i];
		uint64_t want[JOBS], got[JOBS];
		uint32_t rows, cols, step, n;

		if (q.rows > r.api->rows || q.cols > r.api->cols)
			continue;
		rows = r.api->rows - q.rows + 1;
		cols = r.api->cols - q.cols + 1;
		n = rows * cols;
		step = most && n > most ? n / most : 1;
		at(&r, &q, 0, want);
		/* The far corner always; the slot should not matter either. */
		for (uint32_t p = 0; p < n;
		     p = p + step < n || p == n - 1 ? p + step : n - 1) {
			q.row = p / cols;
			q.col = p % cols;
			at(&r, &q, p % r.api->slots, got);
			CHECK(!memcmp(got, want, sizeof(got)),
			      "%ux%u at %u,%u: %llu cycles, not %llu", q.rows, q.cols,
			      q.row, q.col, (unsigned long long)got[0],
			      (unsigned long long)want[0]);
			tried++;
		}
	}
	rig_close(&r);
	printf("%s: %u positions\n", shape, tried);
	return bench_end("bench_position");
}
