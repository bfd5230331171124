/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place.c - hold and release rectangles of the unit grid.
 *
 * The grid is a bitmap with one bit per unit, so the cost of an operation depends on the
 * words that a rectangle covers, not on the number of partitions.  The owner is stored
 * only for the leftmost unit of each row of a rectangle.
 */
#include "space/place.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "space/place_bits.h"

int place_init(struct place *p, uint32_t rows, uint32_t cols)
{
	uint32_t words = (cols + 63) / 64;

	memset(p, 0, sizeof(*p));
	p->rows = rows;
	p->cols = cols;
	p->words = words;
	p->left = rows * cols;
	/* For large sizes calloc returns pages that use no memory until written. */
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

/* ---- bitmap of held units --------------------------------------------------------- */

void place_bits_hold(struct place *p, const struct place_rect *r)
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

void place_bits_free(struct place *p, const struct place_rect *r)
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

bool place_common(const struct place_rect *a, const struct place_rect *b,
		  struct place_rect *out)
{
	uint32_t row = a->row > b->row ? a->row : b->row;
	uint32_t col = a->col > b->col ? a->col : b->col;
	uint32_t row_end = a->row + a->rows, col_end = a->col + a->cols;

	row_end = row_end < b->row + b->rows ? row_end : b->row + b->rows;
	col_end = col_end < b->col + b->cols ? col_end : b->col + b->cols;
	if (row >= row_end || col >= col_end)
		return false;
	*out = (struct place_rect){row, col, row_end - row, col_end - col};
	return true;
}

/* ---- take and release ------------------------------------------------------------- */

/* Extend the rectangle of released units by r. */
static void note_released(struct place *p, const struct place_rect *r)
{
	struct place_rect *all = &p->released;
	uint32_t row_end = r->row + r->rows, col_end = r->col + r->cols;

	if (all->rows == 0) {
		*all = *r;
		return;
	}
	if (row_end < all->row + all->rows)
		row_end = all->row + all->rows;
	if (col_end < all->col + all->cols)
		col_end = all->col + all->cols;
	all->row = r->row < all->row ? r->row : all->row;
	all->col = r->col < all->col ? r->col : all->col;
	all->rows = row_end - all->row;
	all->cols = col_end - all->col;
}

void place_take(struct place *p, const struct place_rect *r, uint32_t owner)
{
	place_bits_hold(p, r);
	for (uint32_t row = r->row; row < r->row + r->rows; row++) {
		row_of(p, p->starts, row)[r->col / 64] |= UINT64_C(1) << r->col % 64;
		p->owners[(size_t)row * p->cols + r->col] = owner;
	}
	p->largest_known = false;
}

void place_release(struct place *p, const struct place_rect *r)
{
	uint32_t last = r->col + r->cols - 1;

	place_bits_free(p, r);
	for (uint32_t row = r->row; row < r->row + r->rows; row++)
		for (uint32_t i = r->col / 64; i <= last / 64; i++)
			row_of(p, p->starts, row)[i] &= ~span(i, r->col, last);
	note_released(p, r);
	p->largest_known = false;
}

void place_settle(struct place *p, const struct place_rect *gone,
		  const struct place_rect *kept, uint32_t owner)
{
	place_release(p, gone);
	place_take(p, kept, owner);
}

void place_fill(struct place *p, const struct place_rect *r, uint32_t owner)
{
	uint32_t last = r->col + r->cols - 1;

	for (uint32_t row = r->row; row < r->row + r->rows; row++) {
		uint32_t *owners = &p->owners[(size_t)row * p->cols];
		uint64_t *held = row_of(p, p->held, row);
		uint64_t *starts = row_of(p, p->starts, row);

		for (uint32_t i = r->col / 64; i <= last / 64; i++) {
			uint64_t fresh = span(i, r->col, last) & ~held[i];
			uint32_t n = (uint32_t)__builtin_popcountll(fresh);

			held[i] |= fresh;
			starts[i] |= fresh;
			p->row_left[row] -= n;
			p->left -= n;
			for (; fresh != 0; fresh &= fresh - 1)
				owners[i * 64 + (uint32_t)__builtin_ctzll(fresh)] = owner;
		}
	}
	p->largest_known = false;
}

/* ---- owner ------------------------------------------------------------------------ */

/* Return the owner of a held unit: the one of the nearest .starts bit at or left of it.
 */
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

static bool is_in_rect(const struct place_rect *r, uint32_t row, uint32_t col)
{
	return row >= r->row && row < r->row + r->rows && col >= r->col &&
	       col < r->col + r->cols;
}

void place_empty(struct place *p, const struct place_rect *r,
		 const struct place_rect *except, uint32_t owner)
{
	struct place_rect unit = {.rows = 1, .cols = 1};

	for (unit.row = r->row; unit.row < r->row + r->rows; unit.row++)
		for (unit.col = r->col; unit.col < r->col + r->cols; unit.col++)
			if (is_held(p, unit.row, unit.col) &&
			    unit_owner(p, unit.row, unit.col) == owner &&
			    !is_in_rect(except, unit.row, unit.col))
				place_release(p, &unit);
}

uint32_t place_owner(struct place *p, const struct place_rect *r,
		     const struct place_rect *except)
{
	uint32_t owner;

	if (except != NULL)
		place_bits_free(p, except);
	owner = first_owner(p, r);
	if (except != NULL)
		place_bits_hold(p, except);
	return owner;
}
