/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layout.c - where the partitions of a policy's plan go.
 *
 * Each gets its place without anything being moved: whoever becomes smaller stays within
 * what it has, at the same corner as the others, and the rest look for one.  Nobody waits
 * for himself in a circle then.  Where that does not fit, all of them are dealt out anew:
 * side by side in whole columns, in the order in which they are, those that have less
 * than one on top of each other.
 */
#include "space/layout.h"

#include <errno.h>

#include "util/error.h"

static uint32_t later(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

/* Of m->part, when it has moved. */
static uint32_t units_of(const struct hal_policy_move *moves, const struct plan_move *m)
{
	while (moves->part != &m->part->sched.policy_view)
		moves++;
	return moves->units;
}

/* Shape number shape of so many units within from: as high, as wide, or as square as can
 * be; false: there is none. */
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
		    (found && (rows > cols ? rows : cols) >= later(out->rows, out->cols)))
			continue;
		out->rows = rows;
		out->cols = cols;
		found = true;
	}
	return found;
}

/* Within from, at one of its corners. */
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

/* Everything is held as before. */
static void as_before(struct hal_device *dev, uint32_t placed)
{
	struct plan *plan = &dev->space.plan;

	for (uint32_t i = 0; i < placed; i++)
		place_release(&dev->space.place, &plan->move[i].to);
	for (uint32_t i = 0; i < plan->count; i++)
		place_take(&dev->space.place, &plan->move[i].from,
			   partition_holder(plan->move[i].part));
}

/* Those that become smaller come first in the plan. */
static bool place_freely(struct hal_device *dev, const struct hal_policy_move *moves,
			 uint32_t shape, uint32_t corner)
{
	struct plan *plan = &dev->space.plan;
	uint32_t i;

	for (i = 0; i < plan->count; i++) {
		struct plan_move *m = &plan->move[i];
		uint32_t units = units_of(moves, m);

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
	as_before(dev, i);
	return i == plan->count;
}

static bool is_before(const struct place_rect *a, const struct place_rect *b)
{
	return a->col != b->col ? a->col < b->col : a->row < b->row;
}

/* In the order of their columns. */
static void sort_from(struct plan *plan)
{
	for (uint32_t i = 1; i < plan->count; i++) {
		struct plan_move m = plan->move[i];
		uint32_t k = i;

		for (; k > 0 && is_before(&m.from, &plan->move[k - 1].from); k--)
			plan->move[k] = plan->move[k - 1];
		plan->move[k] = m;
	}
}

/* The shape in the fewest columns; false: there is none. */
static bool in_columns(const struct hal_device *dev, uint32_t units,
		       struct place_rect *out)
{
	for (out->cols = 1; out->cols <= dev->info.unit_cols; out->cols++) {
		out->rows = units / out->cols;
		if (out->rows <= dev->info.unit_rows && units % out->cols == 0)
			return true;
	}
	return false;
}

static bool is_small(const struct hal_device *dev, const struct place_rect *r)
{
	return r->cols == 1 && r->rows < dev->info.unit_rows;
}

/* No other of the plan is there yet. */
static bool deserted(const struct plan *plan, const struct plan_move *m)
{
	struct place_rect r;

	for (uint32_t i = 0; i < plan->count; i++)
		if (&plan->move[i] != m && place_common(&m->to, &plan->move[i].from, &r))
			return false;
	return true;
}

/* In one of those columns, rather where it need not wait for anybody. */
static bool place_small(struct hal_device *dev, struct plan_move *m, uint32_t first,
			uint32_t columns)
{
	const uint32_t last = dev->info.unit_rows - m->to.rows;

	for (int waits = 0; waits < 2; waits++)
		for (m->to.col = first;
		     m->to.col < first + columns && m->to.col < dev->info.unit_cols;
		     m->to.col++)
			for (m->to.row = 0; m->to.row <= last; m->to.row++)
				if (place_owner(&dev->space.place, &m->to, NULL) == 0 &&
				    (waits || deserted(&dev->space.plan, m)))
					return true;
	return false;
}

static bool place_large(struct hal_device *dev, struct plan_move *m, uint32_t *col)
{
	m->to.row = 0;
	for (m->to.col = *col; m->to.col + m->to.cols <= dev->info.unit_cols; m->to.col++)
		if (place_owner(&dev->space.place, &m->to, NULL) == 0) {
			*col = m->to.col + m->to.cols;
			return true;
		}
	return false;
}

/* The columns that those with less than one need. */
static uint32_t small_columns(const struct hal_device *dev)
{
	const struct plan *plan = &dev->space.plan;
	uint32_t columns = 0, rows = 0;

	for (uint32_t i = 0; i < plan->count; i++) {
		const struct place_rect *r = &plan->move[i].to;

		if (!is_small(dev, r))
			continue;
		if (columns == 0 || rows + r->rows > dev->info.unit_rows) {
			columns++;
			rows = 0;
		}
		rows += r->rows;
	}
	return columns;
}

/* Some wait for each other in a circle. */
static bool has_circle(const struct plan *plan)
{
	bool gone[HAL_POLICY_MOVES] = {false};
	uint32_t count = 0, so_far;
	struct place_rect r;

	do {
		so_far = count;
		for (uint32_t i = 0; i < plan->count; i++) {
			uint32_t k = 0;

			while (k < plan->count &&
			       (k == i || gone[k] ||
				!place_common(&plan->move[i].to, &plan->move[k].from,
					      &r)))
				k++;
			count += !gone[i] && k == plan->count;
			gone[i] |= k == plan->count;
		}
	} while (count != so_far);
	return count < plan->count;
}

static bool place_columns(struct hal_device *dev, const struct hal_policy_move *moves)
{
	struct plan *plan = &dev->space.plan;
	uint32_t columns, first = UINT32_MAX, col = 0, i;

	sort_from(plan);
	for (i = 0; i < plan->count; i++)
		if (!in_columns(dev, units_of(moves, &plan->move[i]), &plan->move[i].to))
			return false;
	columns = small_columns(dev);
	for (i = 0; i < plan->count; i++)
		place_release(&dev->space.place, &plan->move[i].from);
	for (i = 0; i < plan->count; i++) {
		struct plan_move *m = &plan->move[i];
		bool small = is_small(dev, &m->to);

		if (small && first == UINT32_MAX) {
			first = col;
			col += columns;
		}
		if (small ? !place_small(dev, m, first, columns)
			  : !place_large(dev, m, &col))
			break;
		place_take(&dev->space.place, &m->to, partition_holder(m->part));
	}
	as_before(dev, i);
	return i == plan->count && !has_circle(plan);
}

/* On a grid each is as high as it, or in one column. */
static bool are_columns(const struct hal_device *dev)
{
	const struct plan *plan = &dev->space.plan;
	uint32_t i = 0;

	while (i < plan->count && (plan->move[i].from.rows == dev->info.unit_rows ||
				   plan->move[i].from.cols == 1))
		i++;
	return i == plan->count && dev->info.unit_rows > 1;
}

int layout_place(struct hal_device *dev, const struct hal_policy_move *moves)
{
	/* In one row there is one shape, and up is as down. */
	const uint32_t shapes = dev->space.place.rows == 1 ? 1 : 3;
	const uint32_t corners = dev->space.place.rows == 1 ? 2 : 4;
	const struct plan as_asked = dev->space.plan;

	if (are_columns(dev)) {
		if (place_columns(dev, moves))
			return 0;
		dev->space.plan = as_asked;
	}
	for (uint32_t i = 0; i < shapes * corners; i++)
		if (place_freely(dev, moves, i / corners, i % corners))
			return 0;
	if (place_columns(dev, moves))
		return 0;
	return fail(ENOSPC,
		    "a plan of %u partitions does not fit on %s, where %u units are left",
		    dev->space.plan.count, dev->name, place_left(&dev->space.place));
}
