/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_place - how often a partition is refused though its units are free.
 *
 *   bench_place refused [N]   N requests (2,000) of each of ten seeds, on 16 x 16 units:
 *                             one asks for a x b units, each of a and b 1 to 8, and stays
 *                             for 1 to 24 further requests.  Of those for which units
 *                             enough are free, the share that is refused: by the library,
 *                             with hal.compact=0 and =4, and by three other ways to
 * choose a place, which are written down here
 *
 * All take the squarest rectangle that there is; of its places they take
 *   bottom_left        the first in reading order (Baker, Coffman, Rivest 1980)
 *   best_short_side    the one that leaves the shorter side of the maximal free rectangle
 *                      that begins there the least (Jylaenki 2010)
 *   touching           the one that touches most of what is held and of the border (Lodi,
 *                      Martello, Vigo 1999), of all places: the library looks at some
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

enum { SIDE = 16, LARGEST = 8, STAY = 24, HOLDERS = STAY + 1, SEEDS = 10 };

struct rect {
	int row, col, rows, cols;
};

/* ---- the load ----------------------------------------------------------------------- */

struct load {
	uint64_t state;
	unsigned int fit, refused;
	unsigned int leaves[HOLDERS]; /* at which request; 0: nobody */
	unsigned int units[HOLDERS], left;
};

static unsigned int pick(struct load *l, unsigned int from, unsigned int to)
{
	uint64_t z = l->state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return from + (unsigned int)((z ^ z >> 31) % (to - from + 1));
}

/* Who gives places. */
struct placer {
	/* 1: there is one for holder i; 0: there is none; TOOL_FAILED. */
	int (*take)(struct placer *p, int i, unsigned int units);
	int (*give)(struct placer *p, int i);
	struct hal_device *dev;
	struct hal_partition *part[HOLDERS];
	double (*rates)(const struct placer *p, const struct rect *r);
	bool held[SIDE][SIDE];
	struct rect at[HOLDERS];
};

static int leave(struct load *l, struct placer *p, unsigned int now)
{
	for (int i = 0; i < HOLDERS; i++) {
		if (l->leaves[i] == 0 || l->leaves[i] > now)
			continue;
		if (p->give(p, i) != 0)
			return TOOL_FAILED;
		l->leaves[i] = 0;
		l->left += l->units[i];
	}
	return 0;
}

static int request(struct load *l, struct placer *p, unsigned int now)
{
	unsigned int units = pick(l, 1, LARGEST), stays;
	int i = 0, got;

	units *= pick(l, 1, LARGEST);
	stays = pick(l, 1, STAY);
	if (units > l->left)
		return 0;
	while (l->leaves[i] != 0)
		i++;
	l->fit++;
	got = p->take(p, i, units);
	if (got < 0)
		return got;
	l->refused += got == 0;
	if (got == 0)
		return 0;
	l->leaves[i] = now + stays;
	l->units[i] = units;
	l->left -= units;
	return 0;
}

static int play(struct placer *p, unsigned int requests, double *share)
{
	unsigned int fit = 0, refused = 0;

	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct load l = {.state = seed, .left = SIDE * SIDE};

		for (unsigned int now = 1; now <= requests; now++)
			if (leave(&l, p, now) != 0 || request(&l, p, now) != 0)
				return TOOL_FAILED;
		if (leave(&l, p, requests + STAY) != 0)
			return TOOL_FAILED;
		fit += l.fit;
		refused += l.refused;
	}
	*share = (double)refused / fit;
	return 0;
}

/* ---- the library -------------------------------------------------------------------- */

static int lib_take(struct placer *p, int i, unsigned int units)
{
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	int err;

	d.units_floor = units;
	err = hal_partition_create(p->dev, &d, &p->part[i]);
	if (err != 0 && err != -ENOSPC)
		return bench_die("hal_partition_create");
	return err == 0;
}

static int lib_give(struct placer *p, int i)
{
	return hal_partition_destroy(p->part[i]) != 0 ? bench_die("hal_partition_destroy")
						      : 0;
}

static int library(unsigned int requests, const char *compact, double *share)
{
	const char *options[] = {compact, NULL};
	struct placer p = {.take = lib_take, .give = lib_give};

	if (hal_open("ref?units=256&rows=16", options, &p.dev) != 0)
		return bench_die("hal_open");
	if (play(&p, requests, share) != 0)
		return TOOL_FAILED;
	return hal_close(p.dev) != 0 ? bench_die("hal_close") : 0;
}

/* ---- other ways --------------------------------------------------------------------- */

static int held_in(const struct placer *p, int row, int col, int rows, int cols)
{
	int n = 0;

	for (int i = row; i < row + rows; i++)
		for (int k = col; k < col + cols; k++)
			n += i < 0 || k < 0 || i >= SIDE || k >= SIDE || p->held[i][k];
	return n;
}

static double bottom_left(const struct placer *p, const struct rect *r)
{
	(void)p;
	return -(r->row * SIDE + r->col);
}

static double touching(const struct placer *p, const struct rect *r)
{
	return held_in(p, r->row - 1, r->col, 1, r->cols) +
	       held_in(p, r->row + r->rows, r->col, 1, r->cols) +
	       held_in(p, r->row, r->col - 1, r->rows, 1) +
	       held_in(p, r->row, r->col + r->cols, r->rows, 1);
}

static double best_short_side(const struct placer *p, const struct rect *r)
{
	double best = -1e9;
	int wide = SIDE - r->col;

	for (int high = 1; r->row + high <= SIDE; high++) {
		while (held_in(p, r->row, r->col, high, wide) != 0)
			if (--wide < r->cols)
				return best;
		if (high >= r->rows && held_in(p, r->row + high, r->col, 1, wide) != 0) {
			int down = high - r->rows, right = wide - r->cols;
			int less = down < right ? down : right;
			double rate = -(less * SIDE + (down + right - less));

			best = rate > best ? rate : best;
		}
	}
	return best;
}

static bool best_of_shape(const struct placer *p, int rows, int cols, struct rect *best)
{
	bool found = false;
	double rate = 0;

	for (int row = 0; row + rows <= SIDE; row++)
		for (int col = 0; col + cols <= SIDE; col++) {
			const struct rect r = {row, col, rows, cols};
			double now;

			if (held_in(p, row, col, rows, cols) != 0)
				continue;
			now = p->rates(p, &r);
			if (found && now <= rate)
				continue;
			*best = r;
			rate = now;
			found = true;
		}
	return found;
}

static void mark(struct placer *p, const struct rect *r, bool held)
{
	for (int row = r->row; row < r->row + r->rows; row++)
		for (int col = r->col; col < r->col + r->cols; col++)
			p->held[row][col] = held;
}

static int way_take(struct placer *p, int i, unsigned int units)
{
	int n = (int)units, side = 1;

	while ((side + 1) * (side + 1) <= n)
		side++;
	for (; side > 0; side--)
		if (n % side == 0 && (best_of_shape(p, side, n / side, &p->at[i]) ||
				      best_of_shape(p, n / side, side, &p->at[i]))) {
			mark(p, &p->at[i], true);
			return 1;
		}
	return 0;
}

static int way_give(struct placer *p, int i)
{
	mark(p, &p->at[i], false);
	return 0;
}

static int other(unsigned int requests, const char *name,
		 double (*rates)(const struct placer *, const struct rect *))
{
	struct placer p = {.take = way_take, .give = way_give, .rates = rates};
	double share = 0;

	if (play(&p, requests, &share) != 0)
		return TOOL_FAILED;
	printf("figure place.refused_fit.%s %.4f\n", name, share);
	return 0;
}

static int refused(unsigned int requests)
{
	double share = 0;

	if (library(requests, "hal.compact=0", &share) != 0)
		return TOOL_FAILED;
	printf("figure place.refused_fit %.4f\n", share);
	if (library(requests, "hal.compact=4", &share) != 0)
		return TOOL_FAILED;
	printf("figure place.refused_fit.compacted %.4f\n", share);
	if (other(requests, "bottom_left", bottom_left) != 0 ||
	    other(requests, "best_short_side", best_short_side) != 0)
		return TOOL_FAILED;
	return other(requests, "touching", touching);
}

int main(int argc, char **argv)
{
	unsigned long n = argc > 2 ? strtoul(argv[2], NULL, 10) : 2000;

	if (argc < 2 || argc > 3 || strcmp(argv[1], "refused") != 0 || n == 0) {
		fprintf(stderr, "usage: bench_place refused [N]\n");
		return 2;
	}
	return tool_end(refused((unsigned int)n));
}
