/* SPDX-License-Identifier: Apache-2.0 */
/* bench_granules.c - what a granule of coloured memory costs its allocator, in
 * instructions.  bench_granules alloc [GRANULES] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <valgrind/callgrind.h>

#include "util/granules.h"

#define COLORS 16u

static struct hal_bk_granules *free_granules;
static uint32_t *list;

static void give_up(const char *what)
{
	fprintf(stderr, "bench_granules: %s: %s\n", what, hal_last_error());
	_Exit(1); /* one thread, nothing to be put away */
}

/* count granules of mask are taken, a part, and given back, another. */
static void measure(const char *part, const char *back, uint64_t mask, uint64_t count)
{
	const struct hal_bk_colors colors = {.mask = mask};

	CALLGRIND_START_INSTRUMENTATION;
	CALLGRIND_ZERO_STATS;
	if (granules_take(free_granules, &colors, count, list) != 0)
		give_up(part);
	CALLGRIND_DUMP_STATS_AT(part);
	granules_give(free_granules, list, count);
	CALLGRIND_STOP_INSTRUMENTATION;
	CALLGRIND_DUMP_STATS_AT(back);
}

/* Every 64th granule of all is free: as far apart as the search's steps are. */
static void make_holes(uint64_t granules)
{
	const struct hal_bk_colors colors = {.mask = (1u << COLORS) - 1};

	if (granules_take(free_granules, &colors, granules, list) != 0)
		give_up("all of it");
	for (uint64_t i = 0; i < granules; i += 64)
		granules_give(free_granules, &list[i], 1);
}

int main(int argc, char **argv)
{
	uint64_t granules = argc > 2 ? strtoull(argv[2], NULL, 0) : 65536;
	struct color_map map = {.memory = granules * 1024,
				.granule = 1024,
				.channels = COLORS,
				.mask_count = 4,
				.mask = {0x11111, 0x22222, 0x44444, 0x88888}};

	if (argc < 2 || strcmp(argv[1], "alloc") != 0 || granules < 4096) {
		fprintf(stderr, "usage: bench_granules alloc [GRANULES, 4096 or more]\n");
		return 2;
	}
	list = calloc(granules, sizeof(*list));
	if (list == NULL || granules_make(&map, &free_granules) != 0)
		give_up("a map");
	measure("large", "large_back", 0xffff, granules / 2);
	measure("half", "half_back", 0x00ff, granules / 4);
	measure("single", "single_back", 0xffff, 1);
	make_holes(granules);
	measure("holes", "holes_back", 0xffff, granules_left(free_granules, 0xffff));
	printf("figure_is color.alloc.instructions %llu large\n",
	       (unsigned long long)granules / 2);
	printf("figure_is color.free.instructions %llu large_back\n",
	       (unsigned long long)granules / 2);
	printf("figure_is color.alloc.some.instructions %llu half\n",
	       (unsigned long long)granules / 4);
	printf("figure_is color.alloc.one.instructions 1 single\n");
	printf("figure_is color.alloc.holes.instructions %llu holes\n",
	       (unsigned long long)granules / 64);
	granules_free(free_granules);
	free(list);
	return 0;
}
