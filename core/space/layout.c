/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layout.c - choose new places for the partitions of a policy's plan.
 *
 * Nothing moves here; the grid is only searched.  There are two methods:
 *
 * place_freely   A partition that shrinks stays within its rectangle, at one of its four
 *                corners.  All shrinking partitions use the same corner, for example top
 *                left.  A partition that grows takes any free rectangle.  It waits only
 *                for shrinking partitions, which wait for none, so a cycle of waits is
 *                impossible.
 * place_columns  All partitions get new places from left to right in their present
 *                order, each in as few columns as possible.  Partitions of less than a
 *                column share columns.
 *
 * If all partitions already are columns of a grid, place_columns is tried first.
 * Otherwise it is tried if place_freely finds no layout.
 */
#include "space/layout.h"

#include <errno.h>

#include "util/error.h"

static uint32_t larger(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

/* Find a shape of `units` units that fits into from.  shape 0: keep the rows.  shape 1:
 * keep the columns.  Any other value, or if that shape is impossible: use the squarest
 * shape.  Return false if there is none. */
static bool shape_within(const struct place_rect *from, uint32_t units, uint32_t shape,
			 struct place_rect *out)
{
	bool found = false;

	if (shape == 0 && units % from->rows == 0) {
		out->rows = from->rows;
		out->cols = units / from->rows;
		return true;
	}
	if (shape == 1 && units % from->cols == 0) {
		out->rows = units / from->cols;
		out->cols = from->cols;
		return true;
	}
	for (uint32_t rows = 1; rows <= from->rows && rows <= units; rows++) {
		uint32_t cols = units / rows;

		if (units % rows != 0 || cols > from->cols ||
		    (found &&
		     (rows > cols ? rows : cols) >= larger(out->rows, out->cols)))
			continue;
		out->rows = rows;
		out->cols = cols;
		found = true;
	}
	return found;
}

/* Set m->to to a smaller rectangle at a corner of m->from; return false if none fits. */
static bool shrink(struct plan_move *m, uint32_t units, uint32_t shape, uint32_t corner)
{
	struct place_rect r = m->from;

	if (!shape_within(&m->from, units, shape, &r))
		return false;
	r.col = m->from.col + ((corner & 1) != 0 ? m->from.cols - r.cols : 0);
	r.row = m->from.row + ((corner & 2) != 0 ? m->from.rows - r.rows : 0);
	m->to = r;
	return true;
}

static bool stays(const struct plan_move *m)
{
	return place_same(&m->from, &m->to);
}

/* Undo a trial layout: release the new places of the first `placed` partitions and hold
 * all old places again. */
static void restore_grid(struct hal_device *dev, uint32_t placed)
{
	struct plan *plan = &dev->space.plan;

	for (uint32_t i = 0; i < placed; i++)
		if (!stays(&plan->move[i]))
			place_release(&dev->space.place, &plan->move[i].to);
	for (uint32_t i = 0; i < plan->count; i++)
		if (i >= placed || !stays(&plan->move[i]))
			place_take(&dev->space.place, &plan->move[i].from,
				   partition_holder(plan->move[i].part));
}

/* Try one shape and one corner for all shrinking partitions, which come first in the
 * plan.
 */
static bool place_freely(struct hal_device *dev, uint32_t shape, uint32_t corner)
{
	struct plan *plan = &dev->space.plan;
	uint32_t i;

	for (i = 0; i < plan->count; i++) {
		struct plan_move *m = &plan->move[i];
		uint32_t units = m->units;

		if (units == m->part->desc.units) {
			m->to = m->from;
		} else if (units < m->part->desc.units) {
			if (!shrink(m, units, shape, corner))
				break;
			place_settle(&dev->space.place, &m->from, &m->to,
				     partition_holder(m->part));
		} else {
			if (!place_find(&dev->space.place, units, &m->from, &m->to))
				break;
			place_take(&dev->space.place, &m->to, partition_holder(m->part));
		}
	}
	restore_grid(dev, i);
	return i == plan->count;
}

static bool is_before(const struct place_rect *a, const struct place_rect *b)
{
	return a->col != b->col ? a->col < b->col : a->row < b->row;
}

/* Sort the plan by the partitions' present columns, then rows. */
static void sort_by_column(struct plan *plan)
{
	for (uint32_t i = 1; i < plan->count; i++) {
		struct plan_move m = plan->move[i];
		uint32_t k = i;

		for (; k > 0 && is_before(&m.from, &plan->move[k - 1].from); k--)
			plan->move[k] = plan->move[k - 1];
		plan->move[k] = m;
	}
}

/* Find the shape of `units` units with the fewest columns; return false if there is none.
 */
static bool shape_in_columns(const struct hal_device *dev, uint32_t units,
			     struct place_rect *out)
{
	const uint32_t rows = dev->info.unit_rows;

	for (out->cols = larger((units + rows - 1) / rows, 1);
	     out->cols <= dev->info.unit_cols; out->cols++) {
		out->rows = units / out->cols;
		if (units % out->cols == 0)
			return true;
	}
	return false;
}

static bool is_partial_column(const struct hal_device *dev, const struct place_rect *r)
{
	return r->cols == 1 && r->rows < dev->info.unit_rows;
}

/* Return whether m's new place overlaps no other partition's present place. */
static bool needs_no_wait(const struct plan *plan, const struct plan_move *m)
{
	for (uint32_t i = 0; i < plan->count; i++)
		if (&plan->move[i] != m && place_meet(&m->to, &plan->move[i].from))
			return false;
	return true;
}

/* Place a partition of less than a column in one of the shared columns, preferably where
 * it need not wait for another partition. */
static bool place_partial(struct hal_device *dev, struct plan_move *m, uint32_t first,
			  uint32_t columns)
{
	const uint32_t last = dev->info.unit_rows - m->to.rows;

	for (int waits = 0; waits < 2; waits++)
		for (m->to.col = first;
		     m->to.col < first + columns && m->to.col < dev->info.unit_cols;
		     m->to.col++)
			for (m->to.row = 0; m->to.row <= last; m->to.row++)
				if (place_owner(&dev->space.place, &m->to, NULL) == 0 &&
				    (waits || needs_no_wait(&dev->space.plan, m)))
					return true;
	return false;
}

/* Place a partition at row 0 in column *col or to the right of it.  Set *col to the
 * column after it. */
static bool place_leftmost(struct hal_device *dev, struct plan_move *m, uint32_t *col)
{
	m->to.row = 0;
	for (m->to.col = *col; m->to.col + m->to.cols <= dev->info.unit_cols; m->to.col++)
		if (place_owner(&dev->space.place, &m->to, NULL) == 0) {
			*col = m->to.col + m->to.cols;
			return true;
		}
	return false;
}

/* Return how many columns the partitions of less than a column need together. */
static uint32_t count_shared_columns(const struct hal_device *dev)
{
	const struct plan *plan = &dev->space.plan;
	uint32_t columns = 0, rows = 0;

	for (uint32_t i = 0; i < plan->count; i++) {
		const struct place_rect *r = &plan->move[i].to;

		if (!is_partial_column(dev, r))
			continue;
		if (columns == 0 || rows + r->rows > dev->info.unit_rows) {
			columns++;
			rows = 0;
		}
		rows += r->rows;
	}
	return columns;
}

/* Return whether partitions wait for each other in a cycle. */
static bool has_cycle(const struct plan *plan)
{
	bool gone[HAL_POLICY_MOVES];
	uint32_t count = 0, before;

	for (uint32_t i = 0; i < plan->count; i++) {
		gone[i] = stays(&plan->move[i]);
		count += gone[i];
	}
	do {
		before = count;
		for (uint32_t i = 0; i < plan->count; i++) {
			uint32_t k = 0;

			if (gone[i])
				continue;
			while (k < plan->count &&
			       (k == i || gone[k] ||
				!place_meet(&plan->move[i].to, &plan->move[k].from)))
				k++;
			gone[i] = k == plan->count;
			count += gone[i];
		}
	} while (count != before);
	return count < plan->count;
}

static bool place_columns(struct hal_device *dev)
{
	struct plan *plan = &dev->space.plan;
	uint32_t columns, first = UINT32_MAX, col = 0, i;

	sort_by_column(plan);
	for (i = 0; i < plan->count; i++)
		if (!shape_in_columns(dev, plan->move[i].units, &plan->move[i].to))
			return false;
	columns = count_shared_columns(dev);
	for (i = 0; i < plan->count; i++)
		place_release(&dev->space.place, &plan->move[i].from);
	for (i = 0; i < plan->count; i++) {
		struct plan_move *m = &plan->move[i];
		bool partial = is_partial_column(dev, &m->to);

		if (partial && first == UINT32_MAX) {
			first = col;
			col += columns;
		}
		if (partial ? !place_partial(dev, m, first, columns)
			    : !place_leftmost(dev, m, &col))
			break;
		place_take(&dev->space.place, &m->to, partition_holder(m->part));
	}
	restore_grid(dev, i);
	return i == plan->count && !has_cycle(plan);
}

/* Return whether the device is a grid, and each partition has whole columns of it or lies
 * within one column. */
static bool are_columns(const struct hal_device *dev)
{
	const struct plan *plan = &dev->space.plan;
	uint32_t i = 0;

	while (i < plan->count && (plan->move[i].from.rows == dev->info.unit_rows ||
				   plan->move[i].from.cols == 1))
		i++;
	return i == plan->count && dev->info.unit_rows > 1;
}

int layout_place(struct hal_device *dev)
{
	/* A single row has one shape, and only a left and a right corner. */
	const uint32_t shapes = dev->space.place.rows == 1 ? 1 : 3;
	const uint32_t corners = dev->space.place.rows == 1 ? 2 : 4;
	const struct plan unsorted = dev->space.plan;

	if (are_columns(dev)) {
		if (place_columns(dev))
			return 0;
		dev->space.plan = unsorted;
	}
	for (uint32_t i = 0; i < shapes * corners; i++)
		if (place_freely(dev, i / corners, i % corners))
			return 0;
	if (place_columns(dev))
		return 0;
	return fail(ENOSPC,
		    "no new layout found for %u partitions of %s; %u units are free",
		    dev->space.plan.count, dev->name, place_left(&dev->space.place));
}
