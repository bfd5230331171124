/* SPDX-License-Identifier: Apache-2.0 */
/*
 * layout.c - where the partitions of a policy's plan go.
 *
 * Each gets its place without anything being moved: whoever becomes smaller stays within
 * what it has, at the same corner as the others, and the rest look for one; or, where all
 * are as high as the device, they are put side by side in the order in which they are.
 * In both kinds of layout nobody waits for himself in a circle.
 */
#include "engine/layout.h"

#include <errno.h>

#include "util/error.h"

static uint32_t later(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

/* Of m->part, when it has moved. */
static uint32_t units_of(const struct hal_policy_move *moves, const struct plan_move *m)
{
	while (moves->part != &m->part->view)
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
	struct plan *plan = &dev->plan;

	for (uint32_t i = 0; i < placed; i++)
		place_release(&dev->place, &plan->move[i].to);
	for (uint32_t i = 0; i < plan->count; i++)
		place_take(&dev->place, &plan->move[i].from,
			   partition_holder(plan->move[i].part));
}

/* Those that become smaller come first in the plan. */
static bool place_freely(struct hal_device *dev, const struct hal_policy_move *moves,
			 uint32_t shape, uint32_t corner)
{
	struct plan *plan = &dev->plan;
	uint32_t i;

	for (i = 0; i < plan->count; i++) {
		struct plan_move *m = &plan->move[i];
		uint32_t units = units_of(moves, m);

		if (units == m->part->desc.units) {
			m->to = m->from;
		} else if (units < m->part->desc.units) {
			if (!shrink(m, units, shape, corner))
				break;
			place_settle(&dev->place, &m->from, &m->to,
				     partition_holder(m->part));
		} else {
			if (!place_find(&dev->place, units, &m->from, &m->to))
				break;
			place_take(&dev->place, &m->to, partition_holder(m->part));
		}
	}
	as_before(dev, i);
	return i == plan->count;
}

/* In the order of their columns: the lowest of those at and behind i comes to i. */
static void sort_from(struct plan *plan, uint32_t i)
{
	uint32_t first = i;
	struct plan_move m;

	for (uint32_t k = i + 1; k < plan->count; k++)
		if (plan->move[k].from.col < plan->move[first].from.col)
			first = k;
	m = plan->move[i];
	plan->move[i] = plan->move[first];
	plan->move[first] = m;
}

static bool place_beside(struct hal_device *dev, const struct hal_policy_move *moves)
{
	struct plan *plan = &dev->plan;
	uint32_t rows = dev->info.unit_rows, col = 0, i;

	for (i = 0; i < plan->count; i++)
		if (plan->move[i].from.rows != rows ||
		    units_of(moves, &plan->move[i]) % rows != 0)
			return false;
	for (i = 0; i < plan->count; i++)
		place_release(&dev->place, &plan->move[i].from);
	for (i = 0; i < plan->count; i++) {
		struct plan_move *m;

		sort_from(plan, i);
		m = &plan->move[i];
		m->to = (struct place_rect){0, col, rows, units_of(moves, m) / rows};
		while (m->to.col + m->to.cols <= dev->info.unit_cols &&
		       place_owner(&dev->place, &m->to, NULL) != 0)
			m->to.col++;
		if (m->to.col + m->to.cols > dev->info.unit_cols)
			break;
		place_take(&dev->place, &m->to, partition_holder(m->part));
		col = m->to.col + m->to.cols;
	}
	as_before(dev, i);
	return i == plan->count;
}

int layout_place(struct hal_device *dev, const struct hal_policy_move *moves)
{
	enum { SHAPES = 3, CORNERS = 4 };

	for (uint32_t i = 0; i < SHAPES * CORNERS; i++)
		if (place_freely(dev, moves, i / CORNERS, i % CORNERS))
			return 0;
	if (place_beside(dev, moves))
		return 0;
	return fail(ENOSPC,
		    "a plan of %u partitions does not fit on %s, where %u units are left",
		    dev->plan.count, dev->name, place_left(&dev->place));
}
