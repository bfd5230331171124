/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place_find.c - find a free rectangle of a given shape or number of units.
 *
 * A rectangle of R rows and C columns fits where the AND of the free bits of R adjacent
 * rows has a run of C bits.  The scan skips rows with fewer than C free units and stays
 * within the bounds of a hint: taking units can only remove positions of a shape, and
 * releasing a rectangle can only add positions that overlap it.
 *
 * Of the positions of a shape, the search chooses the one that touches the most held
 * units and grid border, which leaves the least fragmentation (touching perimeter: Lodi,
 * Martello, Vigo 1999; docs/performance.md compares refusal rates).  That position is at
 * the left or right end of a run, so the search compares only these two. */
#include "space/place.h"
#include "space/place_bits.h"

/* Extend each hint to the positions of its shape that overlap released units. */
static void widen_hints(struct place *p)
{
	for (int i = 0; i < PLACE_HINTS; i++) {
		struct place_hint *h = &p->hints[i];
		uint64_t from = first_overlap(&p->released, h->rows, h->cols);

		if (h->from > from)
			h->from = from;
		if (h->to < last_overlap(&p->released))
			h->to = last_overlap(&p->released);
	}
	p->released.rows = 0;
}

/* Return the hint of a shape.  The table is a direct-mapped cache: another shape's hint
 * in the same slot is overwritten.  The hash spreads the shapes of one area, which
 * place_find tries one after the other, over different slots. */
static struct place_hint *hint_of(struct place *p, uint32_t rows, uint32_t cols)
{
	uint32_t shape = rows > cols ? 2 * cols + 1 : 2 * rows;
	uint32_t area = (rows * cols * 0x9e3779b1U) >> 24;
	struct place_hint *h = &p->hints[(area + shape) % PLACE_HINTS];

	if (p->released.rows != 0)
		widen_hints(p);
	if (h->rows != rows || h->cols != cols)
		*h = (struct place_hint){rows, cols, 0, position(p->rows, 0)};
	return h;
}

/* Return the units of word i that are free in each of `rows` rows from `row` on. */
static uint64_t free_in_all(const struct place *p, uint32_t row, uint32_t rows,
			    uint32_t i)
{
	const uint64_t *held = row_of(p, p->held, row) + i;
	uint64_t avail = span(i, 0, p->cols - 1);

	for (; rows > 0 && avail != 0; rows--, held += p->words)
		avail &= ~*held;
	return avail;
}

/* Find the next run of set bits at or after *col.  Set *col to its first bit and return
 * its length; 0 if there is none. */
static uint32_t next_run(const uint64_t *words, uint32_t n, uint32_t *col)
{
	uint32_t i = *col / 64;
	uint64_t bits = i < n ? words[i] & PLACE_ALL << *col % 64 : 0;

	while (bits == 0) {
		if (++i >= n)
			return 0;
		bits = words[i];
	}
	*col = i * 64 + (uint32_t)__builtin_ctzll(bits);
	bits = ~words[i] & PLACE_ALL << *col % 64;
	while (bits == 0) {
		if (++i == n)
			return n * 64 - *col;
		bits = ~words[i];
	}
	return i * 64 + (uint32_t)__builtin_ctzll(bits) - *col;
}

/* Count the held units in columns first to last of a row.  All units of a row outside of
 * the grid count as held. */
static uint32_t held_along(const struct place *p, uint32_t row, uint32_t first,
			   uint32_t last)
{
	const uint64_t *held;
	uint32_t n = 0;

	if (row >= p->rows)
		return last - first + 1;
	held = row_of(p, p->held, row);
	for (uint32_t i = first / 64; i <= last / 64; i++)
		n += (uint32_t)__builtin_popcountll(held[i] & span(i, first, last));
	return n;
}

/* Count the held units and border units along the four edges of r. */
static uint32_t touches(const struct place *p, const struct place_rect *r)
{
	uint32_t last = r->col + r->cols - 1, n;

	/* Above row 0, row - 1 wraps around and is outside of the grid. */
	n = held_along(p, r->row - 1, r->col, last);
	n += held_along(p, r->row + r->rows, r->col, last);
	for (uint32_t row = r->row; row < r->row + r->rows; row++)
		n += is_held(p, row, r->col - 1) + is_held(p, row, last + 1);
	return n;
}

/* The state of a search for one shape. */
struct search {
	struct place_rect best;
	uint64_t first;    /* first free position found, for the hint */
	uint32_t most;     /* units that .best touches */
	uint32_t compared; /* positions compared so far */
};

/* Compare position r with the best so far.  Return false if the search can stop: r is
 * enclosed on all sides, or PLACE_COMPARED positions have been compared. */
static bool compare_place(const struct place *p, struct search *s,
			  const struct place_rect *r)
{
	uint32_t n = touches(p, r);

	if (s->compared++ == 0)
		s->first = position(r->row, r->col);
	if (s->compared == 1 || n > s->most) {
		s->best = *r;
		s->most = n;
	}
	return n < 2 * (r->rows + r->cols) && s->compared < PLACE_COMPARED;
}

/* Compare the positions of r's shape whose top row is r.row.  Return false if the search
 * can stop. */
static bool search_row(struct place *p, struct search *s, struct place_rect r)
{
	uint32_t run;

	for (uint32_t i = 0; i < p->words; i++)
		p->common[i] = free_in_all(p, r.row, r.rows, i);
	for (uint32_t col = 0; (run = next_run(p->common, p->words, &col)) != 0;
	     col += run) {
		if (run < r.cols)
			continue;
		r.col = col;
		if (!compare_place(p, s, &r))
			return false;
		r.col = col + run - r.cols;
		if (run > r.cols && !compare_place(p, s, &r))
			return false;
	}
	return true;
}

/* Search the positions of r's shape whose top row is from `from` to `to`. */
static bool find_shape(struct place *p, struct search *s, struct place_rect r,
		       uint32_t from, uint32_t to)
{
	uint32_t rows_enough = 0; /* consecutive rows with enough free units */

	for (uint32_t row = from; row < p->rows; row++) {
		rows_enough = p->row_left[row] >= r.cols ? rows_enough + 1 : 0;
		if (row - from + 1 < r.rows)
			continue;
		r.row = row + 1 - r.rows;
		if (r.row > to || (rows_enough >= r.rows && !search_row(p, s, r)))
			break;
	}
	return s->compared > 0;
}

/* Find a free rectangle of a shape and update the shape's hint.  If except is not NULL,
 * the caller has marked its units free. */
static bool try_shape(struct place *p, uint32_t rows, uint32_t cols,
		      const struct place_rect *except, struct place_rect *out)
{
	const struct place_rect r = {.rows = rows, .cols = cols};
	struct search s = {.compared = 0};
	struct place_hint *h;
	uint64_t from, to;
	bool found;

	if (rows > p->rows || cols > p->cols)
		return false;
	h = hint_of(p, rows, cols);
	from = h->from;
	to = h->to;
	if (except != NULL) {
		if (from > first_overlap(except, rows, cols))
			from = first_overlap(except, rows, cols);
		if (to < last_overlap(except))
			to = last_overlap(except);
	}
	found = find_shape(p, &s, r, (uint32_t)(from >> 32), (uint32_t)(to >> 32));
	/* If the shape does not fit with the units of except free, it does not fit with
	 * them held. */
	if (!found) {
		h->from = position(p->rows, 0);
		h->to = 0;
	} else {
		if (h->from < s.first)
			h->from = s.first;
		*out = s.best;
	}
	return found;
}

bool place_find_shape(struct place *p, uint32_t rows, uint32_t cols,
		      const struct place_rect *except, struct place_rect *out)
{
	bool found;

	if (except != NULL)
		place_bits_free(p, except);
	found = try_shape(p, rows, cols, except, out);
	if (except != NULL)
		place_bits_hold(p, except);
	return found;
}

/* Return the square root of n, rounded down. */
static uint32_t square_root(uint32_t n)
{
	uint32_t root = 0;

	for (uint32_t bit = 1U << 15; bit != 0; bit /= 2)
		if ((uint64_t)(root | bit) * (root | bit) <= n)
			root |= bit;
	return root;
}

static bool find_units(struct place *p, uint32_t units, const struct place_rect *except,
		       struct place_rect *out)
{
	uint32_t longer = p->rows > p->cols ? p->rows : p->cols;
	uint32_t shorter = p->rows > p->cols ? p->cols : p->rows;
	uint32_t side = square_root(units);

	if (units == 0 || units > p->left)
		return false;
	if (side > shorter)
		side = shorter;
	for (; side > 0 && units / side <= longer; side--)
		if (units % side == 0 && (try_shape(p, side, units / side, except, out) ||
					  try_shape(p, units / side, side, except, out)))
			return true;
	return false;
}

bool place_find(struct place *p, uint32_t units, const struct place_rect *except,
		struct place_rect *out)
{
	bool found;

	if (except != NULL)
		place_bits_free(p, except);
	found = find_units(p, units, except, out);
	if (except != NULL)
		place_bits_hold(p, except);
	return found;
}
