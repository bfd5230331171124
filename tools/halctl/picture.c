/* SPDX-License-Identifier: Apache-2.0 */
/* picture.c - a map of memory channels as a picture; see picture.h. */
#include "picture.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tool.h"

#define ACROSS 64u
#define ROWS   128u
#define SQUARE 6u
#define SAMPLE 64u /* rows of all of memory */
#define GAP    12u /* pixels between the two */

struct rgb {
	uint8_t r, g, b;
};

static const struct rgb hues[16] = {
	{194, 33, 51},   {0, 143, 107},   {0, 102, 184},  {237, 176, 13},
	{204, 121, 167}, {86, 182, 233},  {90, 90, 90},   {128, 77, 26},
	{60, 30, 120},   {140, 200, 60},  {255, 120, 80}, {20, 60, 60},
	{200, 200, 110}, {110, 140, 200}, {230, 60, 200}, {170, 170, 170},
};
static const struct rgb paper = {255, 255, 255};

static struct rgb hue(const struct color_map *map, uint64_t granule)
{
	uint32_t c;

	if (granule >= color_map_granules(map))
		return paper;
	c = color_map_channel(map, granule);
	return c == COLOR_NONE ? paper : hues[c % 16];
}

static int put_row(FILE *f, const struct color_map *map, uint64_t first)
{
	uint8_t line[ACROSS * SQUARE][3];

	for (uint32_t x = 0; x < ACROSS * SQUARE; x++) {
		struct rgb c = hue(map, first + x / SQUARE);

		line[x][0] = c.r;
		line[x][1] = c.g;
		line[x][2] = c.b;
	}
	for (uint32_t y = 0; y < SQUARE; y++)
		if (fwrite(line, sizeof(line), 1, f) != 1)
			return -1;
	return 0;
}

static int put_gap(FILE *f)
{
	uint8_t line[ACROSS * SQUARE][3];

	memset(line, UINT8_MAX, sizeof(line));
	for (uint32_t y = 0; y < GAP; y++)
		if (fwrite(line, sizeof(line), 1, f) != 1)
			return -1;
	return 0;
}

int picture_of_map(const struct color_map *map, const char *path)
{
	uint64_t rows = (color_map_granules(map) + ACROSS - 1) / ACROSS;
	uint32_t top = rows < ROWS ? (uint32_t)rows : ROWS;
	uint32_t low = rows > ROWS ? SAMPLE : 0;
	FILE *f = fopen(path, "we");
	int bad;

	if (f == NULL)
		return tool_fail("%s: %s", path, hal_strerror(errno));
	bad = fprintf(f, "P6\n%u %u\n255\n", ACROSS * SQUARE,
		      (top + low) * SQUARE + (low != 0 ? GAP : 0)) < 0;
	for (uint32_t y = 0; bad == 0 && y < top; y++)
		bad = put_row(f, map, (uint64_t)y * ACROSS);
	if (bad == 0 && low != 0)
		bad = put_gap(f);
	/* Rows at equal distances, the last one among them. */
	for (uint32_t y = 0; bad == 0 && y < low; y++)
		bad = put_row(f, map, (rows - 1) * y / (low - 1) * ACROSS);
	if (fclose(f) != 0 || bad != 0)
		return tool_fail("%s: %s", path, hal_strerror(errno));
	return 0;
}
