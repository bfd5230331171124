/* SPDX-License-Identifier: Apache-2.0 */
/* place.h - which units of a device's grid are held, by whom, and where the next
 * partition fits.
 *
 * Units lie in rows and columns; a line device is one row.  A holder has rectangles of
 * them, named by a number of the caller's that is not 0.  Rectangles of two holders do
 * not overlap; one holder's may, while it moves:
 *
 *	place_take(p, &to, owner)		old and new place are both held
 *	place_settle(p, &from, &to, owner)	it has moved
 *	place_settle(p, &to, &from, owner)	it has not
 *
 * Rectangles handed in lie on the grid and have an area.  Nothing here locks or prints.
 */
#ifndef CORE_ENGINE_PLACE_H
#define CORE_ENGINE_PLACE_H

#include <stdbool.h>
#include <stdint.h>

struct place_rect {
	uint32_t row, col, rows, cols;
};

enum {
	PLACE_HINTS = 32,
	PLACE_LOOKS = 16, /* places of a shape that are compared, at most */
};

/* Free rectangles of this shape begin from here to there, if anywhere: a row in the upper
 * half, a column in the lower. */
struct place_hint {
	uint32_t rows, cols;
	uint64_t from, to;
};

struct place {
	uint32_t rows, cols;
	uint32_t words;            /* of 64 units, a row */
	uint32_t left;             /* free units */
	uint64_t *held;            /* a bit a unit, row by row */
	uint64_t *starts;          /* where a holder's units of a row begin */
	uint32_t *owners;          /* a number a unit, valid where starts has a bit */
	uint32_t *row_left;        /* free units of each row */
	uint64_t *common;          /* a row to work in */
	struct place_rect largest; /* when known */
	bool largest_known;
	struct place_hint hints[PLACE_HINTS];
};

/* Everything is free.  Rows and columns are 1 to 65535.  0 or -ENOMEM; memory is
 * about 4.25 bytes a unit, most of it not touched before units are held there. */
int place_init(struct place *p, uint32_t rows, uint32_t cols);

/* Also after a failed place_init, or on zeroes. */
void place_fini(struct place *p);

/* Units of r are free, or owner's already: those are not counted twice. */
void place_take(struct place *p, const struct place_rect *r, uint32_t owner);

/* A rectangle as it was taken, not a part of one. */
void place_release(struct place *p, const struct place_rect *r);

/* Ends a move: gone is given back but for what it shares with kept. */
void place_settle(struct place *p, const struct place_rect *gone,
		  const struct place_rect *kept, uint32_t owner);

/* Below, except is what one holder has, all of it held, and counts as free for the time
 * of the call; or NULL. */

/* Whose the first held unit of r is, in reading order; 0 when all are free. */
uint32_t place_owner(struct place *p, const struct place_rect *r,
		     const struct place_rect *except);

/* The squarest free rectangle of exactly units; of two as square the wider, then the one
 * that touches most of what is held and of the border, then the first in reading order.
 * False when there is none, or units is 0; *out is then as it was. */
bool place_find(struct place *p, uint32_t units, const struct place_rect *except,
		struct place_rect *out);

/* The same of one shape. */
bool place_find_shape(struct place *p, uint32_t rows, uint32_t cols,
		      struct place_rect *out);

/* The largest free rectangle; of two as large the one of more rows, then the first in
 * reading order.  All 0 when nothing is free. */
void place_largest(struct place *p, struct place_rect *out);

/* What both have of the grid; false: nothing. */
bool place_common(const struct place_rect *a, const struct place_rect *b,
		  struct place_rect *out);

/* Takes the units of r that are free, one by one, so that they can be given back so. */
void place_fill(struct place *p, const struct place_rect *r, uint32_t owner);
/* Gives back those of r, but not of except, that are owner's; all of them were taken so.
 */
void place_empty(struct place *p, const struct place_rect *r,
		 const struct place_rect *except, uint32_t owner);

static inline uint32_t place_left(const struct place *p)
{
	return p->left;
}

#endif
