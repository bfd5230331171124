/* SPDX-License-Identifier: Apache-2.0 */
/* bench_granules.c - what a granule of coloured memory costs its allocator, in
 * instructions, and what is refused though there is room.  bench_granules
 * alloc|fragmentation [GRANULES] */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <valgrind/callgrind.h>

#include "memory/granules.h"

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

/* ---- buffers that come and go -------------------------------------------------------- */

enum { LIVE_MOST = 512, STEPS = 20000 };

struct live {
	uint32_t *at;
	uint32_t count;
};

static uint64_t state = 1;

static uint32_t random_below(uint32_t n)
{
	state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
	return (uint32_t)((state >> 33) % n);
}

/* Each power of two as likely as the next. */
static uint32_t random_size(uint32_t powers)
{
	const uint32_t least = 1u << random_below(powers);

	return least + random_below(least);
}

static int take(struct hal_bk_granules *g, const struct hal_bk_colors *colors,
		bool in_a_row, struct live *l)
{
	uint32_t first, i;

	if (!in_a_row)
		return granules_take(g, colors, l->count, l->at);
	if (granules_take_run(g, colors->mask, l->count, 1, &first) != 0)
		return -1;
	for (i = 0; i < l->count; i++)
		l->at[i] = first + i;
	return 0;
}

static void drop(struct hal_bk_granules *g, struct live *all, uint32_t *count)
{
	uint32_t i;

	if (*count == 0)
		give_up("an empty device");
	i = random_below(*count);

	granules_give(g, all[i].at, all[i].count);
	free(all[i].at);
	all[i] = all[--*count];
}

/* Of all or of either half of the colours, until there is no room for the next: then some
 * go.  The share that was refused though as much was free of these colours. */
static double refused_with_room(const struct color_map *map, bool in_a_row)
{
	static const uint64_t masks[] = {0xffff, 0x00ff, 0xff00};
	static struct live all[LIVE_MOST];
	uint32_t count = 0, asked = 0, refused = 0;
	struct hal_bk_granules *g;

	state = 1;
	if (granules_make(map, &g) != 0)
		give_up("a map");
	while (asked < STEPS) {
		const struct hal_bk_colors colors = {
			.mask = in_a_row ? 0xffff : masks[random_below(3)]};
		struct live l = {.count = random_size(11)};

		l.at = calloc(l.count, sizeof(*l.at));
		if (l.at == NULL)
			give_up("no memory");
		asked++;
		while (count == LIVE_MOST || take(g, &colors, in_a_row, &l) != 0) {
			if (count < LIVE_MOST)
				refused += granules_left(g, colors.mask) >= l.count;
			drop(g, all, &count);
		}
		all[count++] = l;
	}
	while (count)
		drop(g, all, &count);
	granules_free(g);
	return (double)refused / asked;
}

/* What whole granules are more than was asked for, of buffers of 64 bytes to 8 MiB. */
static double rounded_share(uint32_t granule)
{
	double asked = 0, given = 0;
	uint32_t i;

	state = 1;
	for (i = 0; i < STEPS; i++) {
		const uint32_t bytes = 64 * random_size(17);
		const uint32_t count = (bytes + granule - 1) / granule;

		asked += bytes;
		given += (double)count * granule;
	}
	return given / asked - 1;
}

/* Granules that need not lie in a row are never refused while as many are free: an error.
 */
static int fragmentation(const struct color_map *map)
{
	double refused = refused_with_room(map, false);

	printf("figure color.alloc.refused_with_room_share %.6g\n", refused);
	printf("figure color.alloc.in_a_row.refused_with_room_share %.6g\n",
	       refused_with_room(map, true));
	printf("figure color.alloc.rounded_share %.6g\n",
	       rounded_share((uint32_t)map->granule));
	return refused > 0;
}

int main(int argc, char **argv)
{
	uint64_t granules = argc > 2 ? strtoull(argv[2], NULL, 0) : 65536;
	struct color_map map = {.memory = granules * 1024,
				.granule = 1024,
				.channels = COLORS,
				.mask_count = 4,
				.mask = {0x11111, 0x22222, 0x44444, 0x88888}};

	if (argc > 1 && strcmp(argv[1], "fragmentation") == 0 && granules >= 4096)
		return fragmentation(&map);
	if (argc < 2 || strcmp(argv[1], "alloc") != 0 || granules < 4096) {
		fprintf(stderr, "usage: bench_granules alloc|fragmentation [GRANULES, "
				"4096 or more]\n");
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
