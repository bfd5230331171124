/* SPDX-License-Identifier: Apache-2.0 */
/* place_bits.h - a row of units as words, a bit each; for the files of place.h. */
#ifndef CORE_ENGINE_PLACE_BITS_H
#define CORE_ENGINE_PLACE_BITS_H

#include <stddef.h>

#include "space/place.h"

#define PLACE_ALL UINT64_MAX

/* Word i of a row, of units from first to last. */
static inline uint64_t span(uint32_t i, uint32_t first, uint32_t last)
{
	uint64_t bits = PLACE_ALL;

	if (i == first / 64)
		bits &= PLACE_ALL << first % 64;
	if (i == last / 64)
		bits &= PLACE_ALL >> (63 - last % 64);
	return bits;
}

static inline uint64_t *row_of(const struct place *p, uint64_t *bits, uint32_t row)
{
	return &bits[(size_t)row * p->words];
}

/* A unit; those of no column of the grid are. */
static inline uint32_t is_held(const struct place *p, uint32_t row, uint32_t col)
{
	return col >= p->cols || (row_of(p, p->held, row)[col / 64] >> col % 64 & 1) != 0;
}

static inline uint64_t spot(uint32_t row, uint32_t col)
{
	return row * (UINT64_C(1) << 32) + col;
}

/* The first and the last place of a rows x cols rectangle that meets r. */
static inline uint64_t first_meeting(const struct place_rect *r, uint32_t rows,
				     uint32_t cols)
{
	return spot(r->row + 1 > rows ? r->row + 1 - rows : 0,
		    r->col + 1 > cols ? r->col + 1 - cols : 0);
}

static inline uint64_t last_meeting(const struct place_rect *r)
{
	return spot(r->row + r->rows - 1, r->col + r->cols - 1);
}

/* Held, or free; what is so already is not counted twice. */
void place_bits_hold(struct place *p, const struct place_rect *r);
void place_bits_free(struct place *p, const struct place_rect *r);

#endif
