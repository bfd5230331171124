/* SPDX-License-Identifier: Apache-2.0 */
/* place_bits.h - bit operations on rows of the unit grid, private to place*.c. */
#ifndef HAL_SPACE_PLACE_BITS_H
#define HAL_SPACE_PLACE_BITS_H

#include <stddef.h>

#include "space/place.h"

#define PLACE_ALL UINT64_MAX

/* Return the bits of word i of a row that stand for units in columns first to last. */
static inline uint64_t span(uint32_t i, uint32_t first, uint32_t last)
{
	uint64_t bits = PLACE_ALL;

	if (i == first / 64)
		bits &= PLACE_ALL << first % 64;
	if (i == last / 64)
		bits &= PLACE_ALL >> (63 - last % 64);
	return bits;
}

/* Return the words of a row in one of the bitmaps of p. */
static inline uint64_t *row_of(const struct place *p, uint64_t *bits, uint32_t row)
{
	return &bits[(size_t)row * p->words];
}

/* Return whether a unit is held; units in columns outside of the grid count as held. */
static inline uint32_t is_held(const struct place *p, uint32_t row, uint32_t col)
{
	return col >= p->cols || (row_of(p, p->held, row)[col / 64] >> col % 64 & 1) != 0;
}

/* Encode row and column as one number, so that sorted numbers are in row-major order. */
static inline uint64_t position(uint32_t row, uint32_t col)
{
	return row * (UINT64_C(1) << 32) + col;
}

/* Return the first position at which a rows x cols rectangle can overlap r. */
static inline uint64_t first_overlap(const struct place_rect *r, uint32_t rows,
				     uint32_t cols)
{
	return position(r->row + 1 > rows ? r->row + 1 - rows : 0,
			r->col + 1 > cols ? r->col + 1 - cols : 0);
}

/* Return the last position at which any rectangle can overlap r. */
static inline uint64_t last_overlap(const struct place_rect *r)
{
	return position(r->row + r->rows - 1, r->col + r->cols - 1);
}

/* Mark the units of r held or free, and update the counts of free units.  Units that
 * already have that state are not counted again. */
void place_bits_hold(struct place *p, const struct place_rect *r);
void place_bits_free(struct place *p, const struct place_rect *r);

#endif
