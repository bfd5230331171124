/* SPDX-License-Identifier: Apache-2.0 */
/* place.c - the unit grid as a bitmap, so that placing costs words and not partitions.
 *
 * A rectangle of R x C is free where the AND of R rows has a run of C free bits.  Scans
 * skip rows with fewer free units than C, and keep to where a hint says: taking units
 * only moves the first place of a shape on, and giving a rectangle back opens places that
 * meet it, no others. */
#include "engine/place.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ALL UINT64_MAX

int place_init(struct place *p, uint32_t rows, uint32_t cols)
{
	uint32_t words = (cols + 63) / 64;

	memset(p, 0, sizeof(*p));
	p->rows = rows;
	p->cols = cols;
	p->words = words;
	p->left = rows * cols;
	/* calloc gives large memory that costs nothing until it is written. */
	p->held = calloc((size_t)rows * words, sizeof(*p->held));
	p->starts = calloc((size_t)rows * words, sizeof(*p->starts));
	p->owners = calloc((size_t)rows * cols, sizeof(*p->owners));
	p->row_left = calloc(rows, sizeof(*p->row_left));
	p->common = calloc(words, sizeof(*p->common));
	if (p->held == NULL || p->starts == NULL || p->owners == NULL ||
	    p->row_left == NULL || p->common == NULL) {
		place_fini(p);
		return -ENOMEM;
	}
	for (uint32_t row = 0; row < rows; row++)
		p->row_left[row] = cols;
	return 0;
}

void place_fini(struct place *p)
{
	free(p->held);
	free(p->starts);
	free(p->owners);
	free(p->row_left);
	free(p->common);
	memset(p, 0, sizeof(*p));
}

/* ---- bits ------------------------------------------------------------------------- */

/* Word i of a row, of units from first to last. */
static uint64_t span(uint32_t i, uint32_t first, uint32_t last)
{
	uint64_t bits = ALL;

	if (i == first / 64)
		bits &= ALL << first % 64;
	if (i == last / 64)
		bits &= ALL >> (63 - last % 64);
	return bits;
}

static uint64_t *row_of(const struct place *p, uint64_t *bits, uint32_t row)
{
	return &bits[(size_t)row * p->words];
}

static void bits_hold(struct place *p, const struct place_rect *r)
{
	uint32_t last = r->col + r->cols - 1;

	for (uint32_t row = r->row; row < r->row + r->rows; row++) {
		uint64_t *held = row_of(p, p->held, row);
		uint32_t n = 0;

		for (uint32_t i = r->col / 64; i <= last / 64; i++) {
			uint64_t fresh = span(i, r->col, last) & ~held[i];

			n += (uint32_t)__builtin_popcountll(fresh);
			held[i] |= fresh;
		}
		p->row_left[row] -= n;
		p->left -= n;
	}
}

static void bits_free(struct place *p, const struct place_rect *r)
{
	uint32_t last = r->col + r->cols - 1;

	for (uint32_t row = r->row; row < r->row + r->rows; row++) {
		uint64_t *held = row_of(p, p->held, row);
		uint32_t n = 0;

		for (uint32_t i = r->col / 64; i <= last / 64; i++) {
			uint64_t gone = span(i, r->col, last) & held[i];

			n += (uint32_t)__builtin_popcountll(gone);
			held[i] &= ~gone;
		}
		p->row_left[row] += n;
		p->left += n;
	}
}

/* Where runs of n units, 1 to 64, begin: a bit each. */
static uint64_t runs_of(uint64_t avail, uint32_t n)
{
	for (uint32_t have = 1, step; have < n && avail != 0; have += step) {
		step = have < n - have ? have : n - have;
		avail &= avail >> step;
	}
	return avail;
}

/* ---- hints ------------------------------------------------------------------------ */

static uint64_t spot(uint32_t row, uint32_t col)
{
	return row * (UINT64_C(1) << 32) + col;
}

/* The first and the last place of a rows x cols rectangle that meets r. */
static uint64_t first_meeting(const struct place_rect *r, uint32_t rows, uint32_t cols)
{
	return spot(r->row + 1 > rows ? r->row + 1 - rows : 0,
		    r->col + 1 > cols ? r->col + 1 - cols : 0);
}

static uint64_t last_meeting(const struct place_rect *r)
{
	return spot(r->row + r->rows - 1, r->col + r->cols - 1);
}

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

static void hints_widen(struct place *p, const struct place_rect *r)
{
	for (int i = 0; i < PLACE_HINTS; i++) {
		struct place_hint *h = &p->hints[i];
		uint64_t from = first_meeting(r, h->rows, h->cols);

		if (h->from > from)
			h->from = from;
		if (h->to < last_meeting(r))
			h->to = last_meeting(r);
	}
}

/* ---- take, give ------------------------------------------------------------------- */

void place_take(struct place *p, const struct place_rect *r, uint32_t owner)
{
	bits_hold(p, r);
	for (uint32_t row = r->row; row < r->row + r->rows; row++) {
		row_of(p, p->starts, row)[r->col / 64] |= UINT64_C(1) << r->col % 64;
		p->owners[(size_t)row * p->cols + r->col] = owner;
	}
	p->largest_known = false;
}

void place_release(struct place *p, const struct place_rect *r)
{
	uint32_t last = r->col + r->cols - 1;

	bits_free(p, r);
	for (uint32_t row = r->row; row < r->row + r->rows; row++)
		for (uint32_t i = r->col / 64; i <= last / 64; i++)
			row_of(p, p->starts, row)[i] &= ~span(i, r->col, last);
	hints_widen(p, r);
	p->largest_known = false;
}

void place_settle(struct place *p, const struct place_rect *gone,
		  const struct place_rect *kept, uint32_t owner)
{
	place_release(p, gone);
	place_take(p, kept, owner);
}

/* ---- owner ------------------------------------------------------------------------ */

/* The holder of a held unit is that of the last start at or before it in its row. */
static uint32_t unit_owner(const struct place *p, uint32_t row, uint32_t col)
{
	const uint64_t *starts = row_of(p, p->starts, row);
	uint32_t i = col / 64;
	uint64_t bits = starts[i] & span(i, 0, col);

	while (bits == 0)
		bits = starts[--i];
	col = i * 64 + 63 - (uint32_t)__builtin_clzll(bits);
	return p->owners[(size_t)row * p->cols + col];
}

static uint32_t first_owner(const struct place *p, const struct place_rect *r)
{
	uint32_t last = r->col + r->cols - 1;

	for (uint32_t row = r->row; row < r->row + r->rows; row++) {
		const uint64_t *held = row_of(p, p->held, row);

		for (uint32_t i = r->col / 64; i <= last / 64; i++) {
			uint64_t bits = held[i] & span(i, r->col, last);

			if (bits != 0)
				return unit_owner(
					p, row, i * 64 + (uint32_t)__builtin_ctzll(bits));
		}
	}
	return 0;
}

uint32_t place_owner(struct place *p, const struct place_rect *r,
		     const struct place_rect *except)
{
	uint32_t owner;

	if (except != NULL)
		bits_free(p, except);
	owner = first_owner(p, r);
	if (except != NULL)
		bits_hold(p, except);
	return owner;
}

/* ---- find ------------------------------------------------------------------------- */

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

/* The first place of r's shape in its row, from its column on and not after last. */
static bool find_in_row(const struct place *p, struct place_rect *r, uint32_t last)
{
	uint32_t run = 0; /* free units before this word */
	uint32_t i = r->col / 64;
	uint64_t from = ALL << r->col % 64;

	for (; i <= (last + r->cols - 1) / 64; i++, from = ALL) {
		uint64_t avail = free_in_all(p, r->row, r->rows, i) & from;
		uint32_t head = avail == ALL ? 64 : (uint32_t)__builtin_ctzll(~avail);
		uint64_t places;

		if (run + head >= r->cols) {
			r->col = i * 64 - run;
			return true;
		}
		if (avail == ALL) {
			run += 64;
			continue;
		}
		places = r->cols < 64 ? runs_of(avail, r->cols) : 0;
		if (places != 0) {
			r->col = i * 64 + (uint32_t)__builtin_ctzll(places);
			return true;
		}
		run = (uint32_t)__builtin_clzll(~avail);
	}
	return false;
}

/* Of the columns up to end, the last one in this row to look at. */
static uint32_t last_col(uint32_t row, uint32_t end, uint64_t to)
{
	return spot(row, end) < to ? end : (uint32_t)to;
}

/* The first place of r's shape, of those in from .. to. */
static bool find_shape(const struct place *p, struct place_rect *r, uint64_t from,
		       uint64_t to)
{
	uint32_t first = (uint32_t)(from >> 32), end = p->cols - r->cols;
	uint32_t roomy = 0; /* rows up to this one that have units enough */

	r->col = (uint32_t)from;
	for (uint32_t row = first; row < p->rows; row++) {
		roomy = p->row_left[row] >= r->cols ? roomy + 1 : 0;
		if (row - first + 1 < r->rows)
			continue;
		r->row = row + 1 - r->rows;
		if (spot(r->row, r->col) > to)
			return false;
		if (roomy >= r->rows && find_in_row(p, r, last_col(r->row, end, to)))
			return true;
		r->col = 0;
	}
	return false;
}

static bool try_shape(struct place *p, uint32_t rows, uint32_t cols,
		      const struct place_rect *except, struct place_rect *out)
{
	struct place_rect r = {.rows = rows, .cols = cols};
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
	found = find_shape(p, &r, from, to);
	/* What is not there with except's units free is not there without them. */
	if (!found) {
		h->from = spot(p->rows, 0);
		h->to = 0;
	} else {
		if (h->from < spot(r.row, r.col))
			h->from = spot(r.row, r.col);
		*out = r;
	}
	return found;
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
		bits_free(p, except);
	found = find_units(p, units, except, out);
	if (except != NULL)
		bits_hold(p, except);
	return found;
}

/* ---- largest ---------------------------------------------------------------------- */

/* The longest run of free units in words, the first of those; 0 when none has least. */
static uint32_t longest_run(const uint64_t *words, uint32_t n, uint32_t least,
			    uint32_t *col)
{
	uint32_t best = least - 1, run = 0;

	for (uint32_t i = 0; i < n; i++) {
		uint64_t avail = words[i], places;
		uint32_t head = avail == ALL ? 64 : (uint32_t)__builtin_ctzll(~avail);

		if (run + head > best) {
			best = run + head;
			*col = i * 64 - run;
		}
		if (avail == ALL) {
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

/* Leaves in common what is free in this row, too.  Whether a unit of it is held in the
 * row above all of them: otherwise what there is goes on up there, and is larger. */
static bool common_row(struct place *p, const uint64_t *held, const uint64_t *above)
{
	uint64_t ends = 0;

	for (uint32_t i = 0; i < p->words; i++) {
		p->common[i] &= ~held[i];
		ends |= above != NULL ? p->common[i] & above[i] : p->common[i];
	}
	return ends != 0;
}

/* A larger rectangle than best whose first row this is. */
static void largest_from(struct place *p, uint32_t row, struct place_rect *best)
{
	const uint64_t *above = row > 0 ? row_of(p, p->held, row - 1) : NULL;
	uint64_t rows_left = p->rows - row;

	for (uint32_t i = 0; i < p->words; i++)
		p->common[i] = span(i, 0, p->cols - 1);
	for (uint32_t rows = 1; rows <= rows_left; rows++) {
		uint64_t area = (uint64_t)best->rows * best->cols, now;
		/* Further down runs only get shorter. */
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
