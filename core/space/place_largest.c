/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place_largest.c - find the largest free rectangle of the grid.
 *
 * For each top row, the search adds rows below it one by one.  For each added row it
 * updates the AND of the rows' free bits and finds the longest run in that AND, 64 units
 * at a time.
 */
#include <string.h>

#include "space/place.h"
#include "space/place_bits.h"

/* Return a bit for each position at which n consecutive bits (1 to 64) of avail are set.
 */
static uint64_t runs_of(uint64_t avail, uint32_t n)
{
	for (uint32_t have = 1, step; have < n && avail != 0; have += step) {
		step = have < n - have ? have : n - have;
		avail &= avail >> step;
	}
	return avail;
}

/* Find the longest run of set bits in words; of several equally long runs, the first.
 * Set *col to its first bit and return its length; 0 if no run has `least` bits. */
static uint32_t longest_run(const uint64_t *words, uint32_t n, uint32_t least,
			    uint32_t *col)
{
	uint32_t best = least - 1, run = 0;

	for (uint32_t i = 0; i < n; i++) {
		uint64_t avail = words[i], places;
		uint32_t head =
			avail == PLACE_ALL ? 64 : (uint32_t)__builtin_ctzll(~avail);

		if (run + head > best) {
			best = run + head;
			*col = i * 64 - run;
		}
		if (avail == PLACE_ALL) {
			run += 64;
			continue;
		}
		while (best < 63 && (places = runs_of(avail, best + 1)) != 0) {
			uint32_t at = (uint32_t)__builtin_ctzll(places);

			best = (uint32_t)__builtin_ctzll(~(avail >> at));
			*col = i * 64 + at;
		}
		run = (uint32_t)__builtin_clzll(~avail);
	}
	return best >= least ? best : 0;
}

/* Remove the held units of a row from p->common.  Return whether a remaining unit is held
 * in the row above the rectangle, or that row is outside of the grid.  If not, each
 * rectangle in p->common also fits with one more row on top, so the search that began at
 * an earlier row has found a larger one. */
static bool common_row(struct place *p, const uint64_t *held, const uint64_t *above)
{
	uint64_t ends = 0;

	for (uint32_t i = 0; i < p->words; i++) {
		p->common[i] &= ~held[i];
		ends |= above != NULL ? p->common[i] & above[i] : p->common[i];
	}
	return ends != 0;
}

/* Replace best by the largest free rectangle with top row `row`, if that is larger. */
static void largest_from(struct place *p, uint32_t row, struct place_rect *best)
{
	const uint64_t *above = row > 0 ? row_of(p, p->held, row - 1) : NULL;
	uint64_t rows_left = p->rows - row;

	for (uint32_t i = 0; i < p->words; i++)
		p->common[i] = span(i, 0, p->cols - 1);
	for (uint32_t rows = 1; rows <= rows_left; rows++) {
		uint64_t area = (uint64_t)best->rows * best->cols, now;
		/* Runs only get shorter in further rows, so a run shorter than this
		 * cannot reach best's area. */
		uint32_t least = (uint32_t)((area + rows_left - 1) / rows_left);
		uint32_t cols, col = 0;

		if (least == 0)
			least = 1;
		if (p->row_left[row + rows - 1] < least ||
		    !common_row(p, row_of(p, p->held, row + rows - 1), above))
			return;
		cols = longest_run(p->common, p->words, least, &col);
		if (cols == 0)
			return;
		now = (uint64_t)rows * cols;
		if (now > area || (now == area && rows > best->rows))
			*best = (struct place_rect){row, col, rows, cols};
	}
}

void place_largest(struct place *p, struct place_rect *out)
{
	if (!p->largest_known) {
		memset(&p->largest, 0, sizeof(p->largest));
		for (uint32_t row = 0; row < p->rows; row++)
			largest_from(p, row, &p->largest);
		p->largest_known = true;
	}
	*out = p->largest;
}
