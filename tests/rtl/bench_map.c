/* SPDX-License-Identifier: Apache-2.0 */
/* bench_map.c - the map's commit against a C model: random maps, staged and applied or
 * refused. */
#include <string.h>

#include "bench.h"
#include "dut/dut.h"

enum { OK, OVERLAP, RANGE, BUSY };

static uint32_t pack(const struct dut_map_rect *r)
{
	return r->row | r->col << 8 | r->rows << 16 | r->cols << 24;
}

/* PE by PE, unlike the RTL's comparison of borders. */
static bool share_a_pe(const struct dut_map_rect *a, const struct dut_map_rect *b)
{
	for (uint32_t y = a->row; y < a->row + a->rows; y++)
		for (uint32_t x = a->col; x < a->col + a->cols; x++)
			if (y >= b->row && y < b->row + b->rows && x >= b->col &&
			    x < b->col + b->cols)
				return true;
	return false;
}

static uint32_t model(struct dut_map_rect *map, const struct dut_map_rect *stage,
		      uint32_t quiet, uint32_t *who)
{
	struct dut_map_rect want[DUT_MAP_SLOTS];

	for (uint32_t s = 0; s < DUT_MAP_SLOTS; s++) {
		want[s] = stage[s];
		if (!want[s].rows)
			memset(&want[s], 0, sizeof(want[s]));
	}
	for (uint32_t s = 0; s < DUT_MAP_SLOTS; s++) {
		*who = s;
		if (want[s].rows &&
		    (!want[s].cols || want[s].row + want[s].rows > DUT_MAP_ROWS ||
		     want[s].col + want[s].cols > DUT_MAP_COLS))
			return RANGE;
	}
	for (uint32_t s = 0; s < DUT_MAP_SLOTS; s++)
		for (uint32_t t = 0; t < DUT_MAP_SLOTS; t++) {
			*who = s;
			if (t != s && share_a_pe(&want[s], &want[t]))
				return OVERLAP;
		}
	for (uint32_t s = 0; s < DUT_MAP_SLOTS; s++) {
		*who = s;
		if (!(quiet >> s & 1) && memcmp(&want[s], &map[s], sizeof(want[s])) != 0)
			return BUSY;
	}
	*who = 0;
	memcpy(map, want, sizeof(want));
	return OK;
}

static struct dut_map_rect random_rect(struct rng *r, uint32_t style)
{
	struct dut_map_rect q;

	if (style == 0) { /* anything at all, out of range too */
		uint32_t v = rng_next(r);

		return (struct dut_map_rect){v & 31, v >> 5 & 31, v >> 10 & 31,
					     v >> 15 & 31};
	}
	if (style == 1)
		return (struct dut_map_rect){rng_next(r) & 255, rng_next(r) & 255,
					     rng_next(r) & 255, rng_next(r) & 255};
	q.rows = rng_range(r, 0, style == 2 ? 5 : 16);
	q.cols = rng_range(r, 0, style == 2 ? 5 : 16);
	q.row = rng_range(r, 0, DUT_MAP_ROWS - q.rows);
	q.col = rng_range(r, 0, DUT_MAP_COLS - q.cols);
	return q;
}

int main(void)
{
	struct dut_map *d = dut_map_create();
	struct dut_map_rect map[DUT_MAP_SLOTS] = {{0}}, stage[DUT_MAP_SLOTS] = {{0}};
	uint32_t outcomes[4] = {0};
	struct rng r = {2};

	for (int i = 0; i < 200000; i++) {
		uint32_t quiet =
			rng_next(&r) & rng_next(&r) & 1 ? 255 : rng_next(&r) & 255;
		uint32_t result, slot, want, who;
		uint32_t changes = rng_range(&r, 0, 3);

		while (changes--) {
			uint32_t s = rng_range(&r, 0, DUT_MAP_SLOTS - 1);
			uint32_t style = rng_range(&r, 0, 40);

			stage[s] = random_rect(&r, style > 3 ? 2 : style);
			if (rng_next(&r) % 4 == 0)
				stage[s] = map[s];
			dut_map_stage(d, s, &stage[s]);
		}
		if (rng_next(&r) % 3 ==
		    0) { /* back to what is: the next changes can succeed */
			for (uint32_t s = 0; s < DUT_MAP_SLOTS; s++) {
				stage[s] = map[s];
				dut_map_stage(d, s, &stage[s]);
			}
		}
		want = model(map, stage, quiet, &who);
		dut_map_commit(d, quiet, &result, &slot);
		CHECK(result == want && slot == who,
		      "commit %d: result %u slot %u, not %u %u", i, result, slot, want,
		      who);
		outcomes[want]++;
		for (uint32_t s = 0; s < DUT_MAP_SLOTS; s++) {
			struct dut_map_rect got;

			dut_map_get(d, s, &got);
			CHECK(!memcmp(&got, &map[s], sizeof(got)), "commit %d: slot %u",
			      i, s);
			CHECK(dut_map_staged(d, s) == pack(&stage[s]),
			      "commit %d: staged %u", i, s);
		}
	}
	for (int k = 0; k < 4; k++)
		CHECK(outcomes[k] > 1000, "outcome %d only %u times", k, outcomes[k]);
	dut_map_destroy(d);
	return bench_end("bench_map");
}
