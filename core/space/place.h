/* SPDX-License-Identifier: Apache-2.0 */
/* place.h - the unit grid of a device: who holds which units, and where a rectangle fits.
 *
 * Units form rows and columns; a device without a grid is a single row.  An owner holds
 * one or more rectangles of units.  The caller identifies an owner by a number other than
 * 0.  Rectangles of different owners never overlap.  Two rectangles of one owner may
 * overlap while the owner moves:
 *
 *	place_take(p, &to, owner)		hold the old and the new rectangle
 *	place_settle(p, &from, &to, owner)	the move succeeded: keep only the new one
 *	place_settle(p, &to, &from, owner)	the move failed: keep only the old one
 *
 * Each rectangle passed in must lie on the grid and contain at least one unit.  Functions
 * here neither lock nor set an error text.
 */
#ifndef HAL_SPACE_PLACE_H
#define HAL_SPACE_PLACE_H

#include <stdbool.h>
#include <stdint.h>

struct place_rect {
	uint32_t row, col, rows, cols;
};

enum {
	PLACE_HINTS = 32,
	PLACE_COMPARED = 16, /* positions of one shape that a search compares at most */
};

/* Bounds for the search of one shape: every free rectangle of the shape that overlaps no
 * unit of place.released has its top left unit at a position from .from to .to.  A
 * position is row << 32 | column. */
struct place_hint {
	uint32_t rows, cols;
	uint64_t from, to;
};

struct place {
	uint32_t rows, cols;
	uint32_t words;            /* 64-bit words per row of a bitmap */
	uint32_t left;             /* free units */
	uint64_t *held;            /* bitmap in row-major order: the unit is held */
	uint64_t *starts;          /* bitmap: leftmost unit of a rectangle in its row */
	uint32_t *owners;          /* owner per unit, valid where .starts has a bit */
	uint32_t *row_left;        /* number of free units in each row */
	uint64_t *common;          /* scratch row: units that are free in several rows */
	struct place_rect largest; /* largest free rectangle, if .largest_known */
	bool largest_known;
	struct place_hint hints[PLACE_HINTS];
	/* Contains all units released since the hints were valid; .rows is 0 if there are
	 * none. */
	struct place_rect released;
};

/* Initialize p to a free grid of 1 to 65535 rows and columns.  Return 0 or -ENOMEM.  The
 * grid takes about 4.25 bytes per unit; the kernel provides most of that memory only when
 * units are first held. */
int place_init(struct place *p, uint32_t rows, uint32_t cols);

/* Free the memory of p.  Allowed after a failed place_init and on a zeroed struct. */
void place_fini(struct place *p);

/* Hold r for owner.  Each unit of r must be free, or held by owner already. */
void place_take(struct place *p, const struct place_rect *r, uint32_t owner);

/* Release r, which must be exactly a rectangle passed to place_take, not part of one. */
void place_release(struct place *p, const struct place_rect *r);

/* End a move of owner: release the units of gone that are not also in kept. */
void place_settle(struct place *p, const struct place_rect *gone,
		  const struct place_rect *kept, uint32_t owner);

/* Return the owner of the first held unit in r (row-major order), or 0 if r is free.
 * except is NULL, or a rectangle that one owner holds completely.  Its units count as
 * free during the call. */
uint32_t place_owner(struct place *p, const struct place_rect *r,
		     const struct place_rect *except);

/* Find a free rectangle of exactly `units` units.  Prefer the shape closest to a square;
 * of two transposed shapes, the wider one.  Among positions of that shape, prefer the one
 * whose edges touch the most held units and grid border, then the first in row-major
 * order.  A search compares at most PLACE_COMPARED positions.  The parameter except has
 * the same meaning as for place_owner.  Return false and leave *out unchanged if no
 * rectangle fits or units is 0. */
bool place_find(struct place *p, uint32_t units, const struct place_rect *except,
		struct place_rect *out);

/* Find a free rectangle of the given shape; otherwise like place_find. */
bool place_find_shape(struct place *p, uint32_t rows, uint32_t cols,
		      const struct place_rect *except, struct place_rect *out);

/* Set *out to the largest free rectangle.  Among equally large ones, prefer the one with
 * more rows, then the first in row-major order.  All fields are 0 if no unit is free. */
void place_largest(struct place *p, struct place_rect *out);

/* Set *out to the intersection of a and b; return false if they do not overlap. */
bool place_common(const struct place_rect *a, const struct place_rect *b,
		  struct place_rect *out);

/* Return whether a and b are the same rectangle. */
static inline bool place_same(const struct place_rect *a, const struct place_rect *b)
{
	return a->row == b->row && a->col == b->col && a->rows == b->rows &&
	       a->cols == b->cols;
}

/* Return whether a and b, neither of them empty, have a unit in common. */
static inline bool place_meet(const struct place_rect *a, const struct place_rect *b)
{
	return a->col < b->col + b->cols && b->col < a->col + a->cols &&
	       a->row < b->row + b->rows && b->row < a->row + a->rows;
}

/* Hold the free units of r for owner, each as a rectangle of one unit, so that
 * place_empty can release them one by one. */
void place_fill(struct place *p, const struct place_rect *r, uint32_t owner);
/* Release the units of r outside except that owner holds.  All of them must have been
 * taken by place_fill. */
void place_empty(struct place *p, const struct place_rect *r,
		 const struct place_rect *except, uint32_t owner);

/* Return the number of free units. */
static inline uint32_t place_left(const struct place *p)
{
	return p->left;
}

#endif
