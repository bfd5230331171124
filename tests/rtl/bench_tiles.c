/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_tiles.c - operations of many tiles that are over in a moment, one behind the
 * other: what is asked for ahead of the array is as many tiles as the fetch FIFO has room
 * for, with parameters or without, and each tile has to get its own.
 *
 *   bench_tiles [COUNT [SEED [SHAPE]]]
 *
 * Program i, of the seed SEED + i, is on one slot whose rectangle is random, alone;
 * memory, byte by byte, is the golden model's.
 */
#include <stdlib.h>

#include "rig.h"
#include "work.h"

#define JOBS 12

static void program(struct rig *r, uint64_t seed, uint64_t *cycles)
{
	struct rng g = {.state = seed * UINT64_C(0x2545F4914F6CDD1D)};
	struct rig_memory cfg = work_memory(r, &g);
	struct rig_rect rect = {.rows = rng_range(&g, 1, r->api->rows),
				.cols = rng_range(&g, 1, r->api->cols)};
	uint64_t failed = bench_failures;
	uint32_t descs[JOBS][16];

	rig_reset(r, &cfg);
	CHECK(rig_map(r, &rect, 1) == NPU_MAP_OK, "map");
	rig_space(r, 0, WORK_SPACE, RIG_ALL);
	for (uint32_t i = 0; i < JOBS; i++) {
		if (rng_next(&g) % 16 == 0)
			rig_random_vec(r, 0, descs[i], &g);
		else
			work_tiny(r, 0, rect.cols, descs[i], &g);
		work_connect(descs, i, &g);
		rig_push(r, 0, descs[i]);
		rig_golden(r, 0);
	}
	rig_push_end(r, 0);
	rig_bell(r, 0);
	rig_wait(r, 1, 20000000);
	rig_check(r, 0, "memory");
	rig_counters(r, 0, true);
	if (failed != bench_failures)
		printf("failed: bench_tiles 1 %llu: %ux%u PEs\n",
		       (unsigned long long)seed, rect.rows, rect.cols);
	*cycles += r->api->cycle(r->model);
}

int main(int argc, char **argv)
{
	uint64_t count = argc > 1 ? strtoull(argv[1], NULL, 0) : 100;
	uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 1, cycles = 0;
	const char *shape = argc > 3 ? argv[3] : "16x16x4x8";
	struct rig r;

	rig_open(&r, shape, UINT64_C(1) << 26);
	for (uint64_t i = 0; i < count && bench_failures < 20; i++)
		program(&r, seed + i, &cycles);
	printf("%s: %llu programs, %llu cycles\n", shape, (unsigned long long)count,
	       (unsigned long long)cycles);
	rig_close(&r);
	return bench_end("bench_tiles");
}
