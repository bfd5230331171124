/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_gemm.c - random GEMM, CONV and VEC descriptors on random rectangles at random
 * places, against the golden model, byte by byte of the whole address space, in every
 * memory mode. Arguments: shape (16x16x4x8), rounds (40), seed (1).
 */
#include <stdlib.h>
#include <string.h>

#include "rig.h"

#define SPACE (1u << 22)

static struct rig_rect random_rect(const struct rig *r, struct rng *g)
{
	struct rig_rect q;

	q.rows = rng_range(g, 1, r->api->rows);
	q.cols = rng_range(g, 1, r->api->cols);
	if (rng_next(g) % 5 == 0)
		q.rows = 1;
	if (rng_next(g) % 7 == 0)
		q.cols = 1;
	q.row = rng_range(g, 0, r->api->rows - q.rows);
	q.col = rng_range(g, 0, r->api->cols - q.cols);
	return q;
}

static bool touch(const struct rig_rect *a, const struct rig_rect *b)
{
	return a->row < b->row + b->rows && b->row < a->row + a->rows &&
	       a->col < b->col + b->cols && b->col < a->col + a->cols;
}

/* As many disjoint rectangles as come by; the rest of the slots get none. */
static uint32_t random_map(const struct rig *r, struct rig_rect *rects, struct rng *g)
{
	uint32_t have = 0;

	memset(rects, 0, RIG_SLOTS * sizeof(*rects));
	for (uint32_t i = 0; i < 4 * r->api->slots; i++) {
		uint32_t s = i % r->api->slots;
		struct rig_rect q = random_rect(r, g);
		bool ok = !rects[s].rows;

		for (uint32_t t = 0; ok && t < r->api->slots; t++)
			ok = !rects[t].rows || !touch(&q, &rects[t]);
		if (ok) {
			rects[s] = q;
			have |= 1u << s;
		}
	}
	return have;
}

static struct rig_memory random_memory(const struct rig *r, struct rng *g)
{
	struct rig_memory cfg = rig_channels(r->api->channels);

	switch (rng_next(g) % 4) {
	case 0:
		return rig_ideal(r);
	case 1:
		cfg = rig_channels(rng_range(g, 1, 7) % 6 + 1);
		if (cfg.q << cfg.k > r->api->channels)
			cfg = rig_channels(1);
		cfg.timing = 4u << 24 | rng_range(g, 1, 30) | rng_range(g, 0, 30) << 8 |
			     rng_range(g, 0, 30) << 16;
		break;
	case 2:
		for (int i = 0; i < 4; i++)
			cfg.xmask[i] = rng_next(g) & 0xffffff;
		break;
	default:
		break;
	}
	cfg.gran = rng_range(g, 9, 12);
	return cfg;
}

int main(int argc, char **argv)
{
	const char *shape = argc > 1 ? argv[1] : "16x16x4x8";
	uint32_t rounds = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 0) : 40;
	struct rng g = {argc > 3 ? strtoull(argv[3], NULL, 0) : 1};
	uint64_t cycles = 0, folds = 0, macs = 0;
	struct rig r;

	rig_open(&r, shape, UINT64_C(1) << 26);
	for (uint32_t i = 0; i < rounds; i++) {
		struct rig_memory cfg = random_memory(&r, &g);
		struct rig_rect rects[RIG_SLOTS];
		uint32_t have = random_map(&r, rects, &g);
		uint64_t seed = g.state;
		char what[96];

		rig_reset(&r, &cfg);
		CHECK(rig_map(&r, rects, RIG_SLOTS) == NPU_MAP_OK, "round %u: map", i);
		for (uint32_t s = 0; s < r.api->slots; s++) {
			uint32_t jobs = rng_range(&g, 1, 5);

			if (!(have >> s & 1))
				continue;
			rig_space(&r, s, SPACE, RIG_ALL);
			rig_write(&r, NPU_GLB_AT(SLOT_CTRL, s),
				  NPU_REG_BITS(SLOT_CTRL_SERIAL, rng_next(&g) % 3 == 0));
			while (jobs--) {
				uint32_t desc[16];

				rig_random_desc(&r, s, desc, &g);
				rig_push(&r, s, desc);
			}
			rig_push_end(&r, s);
		}
		for (uint32_t s = 0; s < r.api->slots; s++)
			if (have >> s & 1)
				rig_bell(&r, s);
		rig_wait(&r, have, 20000000);
		CHECK(!r.faulted, "round %u seed %llu: slots %#x fault", i,
		      (unsigned long long)seed, r.faulted);
		for (uint32_t s = 0; s < r.api->slots; s++) {
			struct rig_counters c;

			if (!(have >> s & 1))
				continue;
			snprintf(what, sizeof(what), "round %u seed %llu %ux%u at %u,%u",
				 i, (unsigned long long)seed, rects[s].rows,
				 rects[s].cols, rects[s].row, rects[s].col);
			rig_check(&r, s, what);
			c = rig_counters(&r, s, true);
			folds += c.folds;
			macs += c.macs;
		}
		cycles += r.api->cycle(r.model);
		CHECK(r.api->idle(r.model), "round %u: not idle after the last job", i);
	}
	printf("%s: %u rounds, %llu cycles, %llu folds, %llu MACs\n", shape, rounds,
	       (unsigned long long)cycles, (unsigned long long)folds,
	       (unsigned long long)macs);
	rig_close(&r);
	return bench_end("bench_gemm");
}
