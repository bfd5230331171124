/* SPDX-License-Identifier: Apache-2.0 */
/* place_find.c - where a rectangle fits.
 *
 * One of R x C is free where the AND of R rows has a run of C free bits.  Scans skip rows
 * with fewer free units than C, and keep to where a hint says: taking units only moves
 * the first place of a shape on, and giving a rectangle back opens places that meet it,
 * no others.
 *
 * Of the places of a shape the one that touches most of what is held, and of the grid's
 * border, leaves the least that is of no use (touching perimeter: Lodi, Martello, Vigo
 * 1999); docs/performance.md has what share of requests it refuses, beside others.  That
 * one is at the left or the right end of a run, so the rest is not looked at. */
#include "space/place.h"
#include "space/place_bits.h"

/* The shape's hint, or the one it displaces; shapes of one area do not displace each
 * other, but for very many. */
static struct place_hint *hint_of(struct place *p, uint32_t rows, uint32_t cols)
{
	uint32_t shape = rows > cols ? 2 * cols + 1 : 2 * rows;
	uint32_t area = (rows * cols * 0x9e3779b1U) >> 24;
	struct place_hint *h = &p->hints[(area + shape) % PLACE_HINTS];

	if (h->rows != rows || h->cols != cols)
		*h = (struct place_hint){rows, cols, 0, spot(p->rows, 0)};
	return h;
}

/* Units of word i that are free in all rows from row on. */
static uint64_t free_in_all(const struct place *p, uint32_t row, uint32_t rows,
			    uint32_t i)
{
	const uint64_t *held = row_of(p, p->held, row) + i;
	uint64_t avail = span(i, 0, p->cols - 1);

	for (; rows > 0 && avail != 0; rows--, held += p->words)
		avail &= ~*held;
	return avail;
}

/* The next run of bits, from *col on: its length; 0: there is none. */
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

/* Held units of a row, of those from first to last; beyond the grid all are. */
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

/* Of the units around r, how many are held. */
static uint32_t touches(const struct place *p, const struct place_rect *r)
{
	uint32_t last = r->col + r->cols - 1, n;

	n = held_along(p, r->row - 1, r->col, last); /* above the first: beyond all */
	n += held_along(p, r->row + r->rows, r->col, last);
	for (uint32_t row = r->row; row < r->row + r->rows; row++)
		n += is_held(p, row, r->col - 1) + is_held(p, row, last + 1);
	return n;
}

/* The best place of a shape so far. */
struct search {
	struct place_rect best;
	uint64_t first; /* the first that there is */
	uint32_t most;  /* units that the best one touches */
	uint32_t looked;
};

/* False: no more need be looked at. */
static bool weigh_place(const struct place *p, struct search *s,
			const struct place_rect *r)
{
	uint32_t n = touches(p, r);

	if (s->looked++ == 0)
		s->first = spot(r->row, r->col);
	if (s->looked == 1 || n > s->most) {
		s->best = *r;
		s->most = n;
	}
	return n < 2 * (r->rows + r->cols) && s->looked < PLACE_LOOKS;
}

/* The places in r's row. */
static bool look_in_row(struct place *p, struct search *s, struct place_rect r)
{
	uint32_t run;

	for (uint32_t i = 0; i < p->words; i++)
		p->common[i] = free_in_all(p, r.row, r.rows, i);
	for (uint32_t col = 0; (run = next_run(p->common, p->words, &col)) != 0;
	     col += run) {
		if (run < r.cols)
			continue;
		r.col = col;
		if (!weigh_place(p, s, &r))
			return false;
		r.col = col + run - r.cols;
		if (run > r.cols && !weigh_place(p, s, &r))
			return false;
	}
	return true;
}

/* The places of r's shape, of those that begin in the rows from .. to. */
static bool find_shape(struct place *p, struct search *s, struct place_rect r,
		       uint32_t from, uint32_t to)
{
	uint32_t roomy = 0; /* rows up to this one that have units enough */

	for (uint32_t row = from; row < p->rows; row++) {
		roomy = p->row_left[row] >= r.cols ? roomy + 1 : 0;
		if (row - from + 1 < r.rows)
			continue;
		r.row = row + 1 - r.rows;
		if (r.row > to || (roomy >= r.rows && !look_in_row(p, s, r)))
			break;
	}
	return s->looked > 0;
}

static bool try_shape(struct place *p, uint32_t rows, uint32_t cols,
		      const struct place_rect *except, struct place_rect *out)
{
	const struct place_rect r = {.rows = rows, .cols = cols};
	struct search s = {.looked = 0};
	struct place_hint *h;
	uint64_t from, to;
	bool found;

	if (rows > p->rows || cols > p->cols)
		return false;
	h = hint_of(p, rows, cols);
	from = h->from;
	to = h->to;
	if (except != NULL) {
		if (from > first_meeting(except, rows, cols))
			from = first_meeting(except, rows, cols);
		if (to < last_meeting(except))
			to = last_meeting(except);
	}
	found = find_shape(p, &s, r, (uint32_t)(from >> 32), (uint32_t)(to >> 32));
	/* What is not there with except's units free is not there without them. */
	if (!found) {
		h->from = spot(p->rows, 0);
		h->to = 0;
	} else {
		if (h->from < s.first)
			h->from = s.first;
		*out = s.best;
	}
	return found;
}

bool place_find_shape(struct place *p, uint32_t rows, uint32_t cols,
		      struct place_rect *out)
{
	return try_shape(p, rows, cols, NULL, out);
}

static uint32_t root_of(uint32_t n)
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
	uint32_t side = root_of(units);

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
