/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan.c - several partitions moved as one.
 *
 * First each gets its place, without anything being moved: whoever becomes smaller stays
 * within what it has, at the same corner as the others, and the rest look for one; or,
 * where all are as high as the device, they are put side by side in the order in which
 * they are.  Then whoever needs nothing of another moves.  What one has left is taken at
 * once by those that wait for it, and who has waited for all moves then.  In both kinds
 * of layout nobody waits for himself in a circle.
 */
#include "engine/plan.h"

#include <errno.h>

#include "engine/policy.h"
#include "engine/resize.h"
#include "util/error.h"

enum plan_state { WAITS, MOVES, MOVED, DROPPED };

static struct place_rect rect_of(const struct hal_bk_partition_desc *d)
{
	return (struct place_rect){d->row, d->col, d->rows, d->cols};
}

static uint32_t holder(const struct plan_move *m)
{
	return m->part->desc.index + 1;
}

static bool same(const struct place_rect *a, const struct place_rect *b)
{
	return a->row == b->row && a->col == b->col && a->rows == b->rows &&
	       a->cols == b->cols;
}

static uint32_t later(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

static uint32_t sooner(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* What both have of the grid; false: nothing. */
static bool common(const struct place_rect *a, const struct place_rect *b,
		   struct place_rect *out)
{
	uint32_t row = later(a->row, b->row), col = later(a->col, b->col);
	uint32_t row_end = sooner(a->row + a->rows, b->row + b->rows);
	uint32_t col_end = sooner(a->col + a->cols, b->col + b->cols);

	if (row >= row_end || col >= col_end)
		return false;
	*out = (struct place_rect){row, col, row_end - row, col_end - col};
	return true;
}

/* ---- where they go ----------------------------------------------------------------- */

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
		place_take(&dev->place, &plan->move[i].from, holder(&plan->move[i]));
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
			place_settle(&dev->place, &m->from, &m->to, holder(m));
		} else {
			if (!place_find(&dev->place, units, &m->from, &m->to))
				break;
			place_take(&dev->place, &m->to, holder(m));
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
		place_take(&dev->place, &m->to, holder(m));
		col = m->to.col + m->to.cols;
	}
	as_before(dev, i);
	return i == plan->count;
}

static int place_all(struct hal_device *dev, const struct hal_policy_move *moves)
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

/* ---- how they get there ------------------------------------------------------------ */

static void describe(const struct plan_move *m, struct hal_bk_partition_desc *out)
{
	*out = m->part->desc;
	out->row = (uint16_t)m->to.row;
	out->col = (uint16_t)m->to.col;
	out->rows = (uint16_t)m->to.rows;
	out->cols = (uint16_t)m->to.cols;
	out->units = m->to.rows * m->to.cols;
}

static int may_move(struct hal_device *dev, struct plan_move *m)
{
	const struct hal_partition_desc d = {0};
	struct hal_bk_partition_desc to;
	int err = resize_check(m->part, &d);

	if (err != 0)
		return err;
	describe(m, &to);
	if (partition_isolation(dev, &to) < partition_isolation(dev, &m->part->desc))
		return fail(ENOTSUP, "partition %u would be less isolated there",
			    m->part->desc.index);
	return resize_renew(m->part);
}

/* Those that stay go from the list, and the others wait for each other. */
static uint32_t wait_for_each_other(struct plan *plan)
{
	struct place_rect r;
	uint32_t n = 0;

	for (uint32_t i = 0; i < plan->count; i++)
		if (!same(&plan->move[i].from, &plan->move[i].to))
			plan->move[n++] = plan->move[i];
	plan->count = n;
	for (uint32_t i = 0; i < n; i++) {
		struct plan_move *m = &plan->move[i];

		m->state = WAITS;
		m->waits = 0;
		for (uint32_t k = 0; k < n; k++)
			m->waits += k != i && common(&m->to, &plan->move[k].from, &r);
	}
	return n;
}

static void give_up(struct hal_device *dev)
{
	struct plan *plan = &dev->plan;
	struct place_rect r;

	for (uint32_t i = 0; i < plan->count; i++) {
		struct plan_move *m = &plan->move[i];

		if (m->state != WAITS)
			continue;
		/* What it had of others by now. */
		for (uint32_t k = 0; k < plan->count; k++)
			if (plan->move[k].state == MOVED &&
			    common(&m->to, &plan->move[k].from, &r))
				place_release(&dev->place, &r);
		m->state = DROPPED;
		m->part->inflight_max = dev->partition_inflight;
		plan->open--;
	}
}

static int go(struct plan_move *m)
{
	struct hal_bk_partition_desc to;
	int err;

	describe(m, &to);
	m->part->floor_next = m->part->view.floor;
	m->part->ceiling_next = m->part->view.ceiling;
	m->part->quota_before = counter_get(&m->part->quota);
	err = resize_move(m->part, &to);
	m->part->policy_moves = err == 0;
	if (err == 0)
		m->state = MOVES;
	return err;
}

/* All that wait for nobody; err: one could not, and nobody waits any more. */
static int go_on(struct hal_device *dev)
{
	struct plan *plan = &dev->plan;

	for (uint32_t i = 0; i < plan->count; i++) {
		int err;

		if (plan->move[i].state != WAITS || plan->move[i].waits != 0)
			continue;
		err = go(&plan->move[i]);
		if (err != 0) {
			give_up(dev);
			return err;
		}
	}
	return 0;
}

int plan_begin(struct hal_device *dev, const struct hal_policy_move *moves,
	       uint32_t count)
{
	struct plan *plan = &dev->plan;
	int err;

	if (plan->open != 0)
		return fail(EBUSY, "partitions of %s are being moved already", dev->name);
	plan->count = 0;
	for (int grows = 0; grows < 2; grows++)
		for (uint32_t i = 0; i < count; i++) {
			struct hal_partition *p =
				container_of(moves[i].part, struct hal_partition, view);

			/* It holds the units it goes to as well. */
			if (p->moving.units != 0)
				return fail(
					EBUSY,
					"partition %u \"%s\" is being resized already",
					p->desc.index, p->name);
			if ((moves[i].units > p->desc.units) == grows)
				plan->move[plan->count++] = (struct plan_move){
					.part = p, .from = rect_of(&p->desc)};
		}
	err = place_all(dev, moves);
	if (err != 0)
		return err;
	plan->open = wait_for_each_other(plan);
	for (uint32_t i = 0; err == 0 && i < plan->count; i++) {
		plan->move[i].state = DROPPED; /* not in its own way */
		err = may_move(dev, &plan->move[i]);
		plan->move[i].state = WAITS;
	}
	if (err != 0) {
		plan->open = 0;
		return err;
	}
	if ((dev->info.caps & HAL_CAP_RESIZE_LIVE) == 0)
		for (uint32_t i = 0; i < plan->count; i++)
			plan->move[i].part->inflight_max = 0; /* until it has moved */
	return go_on(dev);
}

bool plan_has(const struct hal_partition *part)
{
	const struct plan *plan = &part->dev->plan;

	for (uint32_t i = 0; plan->open != 0 && i < plan->count; i++)
		if (plan->move[i].part == part && plan->move[i].state == WAITS)
			return true;
	return false;
}

struct hal_point plan_point(const struct hal_device *dev)
{
	const struct plan *plan = &dev->plan;

	for (uint32_t i = 0; plan->open != 0 && i < plan->count; i++)
		if (plan->move[i].state == MOVES) {
			const struct hal_partition *p = plan->move[i].part;

			return (struct hal_point){p->control, p->resize_count};
		}
	return (struct hal_point){NULL, 0};
}

/* m has left what it had. */
static void left(struct hal_device *dev, const struct plan_move *left)
{
	struct plan *plan = &dev->plan;
	struct place_rect r;

	for (uint32_t i = 0; i < plan->count; i++) {
		struct plan_move *m = &plan->move[i];

		if (m->state != WAITS || !common(&m->to, &left->from, &r))
			continue;
		place_take(&dev->place, &r, holder(m));
		m->waits--;
	}
}

void plan_moved(struct hal_partition *part, bool well)
{
	struct hal_device *dev = part->dev;
	struct plan *plan = &dev->plan;
	struct hal_partition *dropped[HAL_POLICY_MOVES];
	uint32_t i = 0, n = 0;

	while (i < plan->count &&
	       (plan->move[i].part != part || plan->move[i].state != MOVES))
		i++;
	if (plan->open == 0 || i == plan->count)
		return;
	plan->move[i].state = MOVED;
	plan->open--;
	if (well) {
		left(dev, &plan->move[i]);
		if (go_on(dev) == 0)
			return;
	} else {
		plan->move[i].state = DROPPED;
		give_up(dev);
	}
	/* Who waited in vain hears that it stays; that may begin another plan. */
	for (i = 0; i < plan->count; i++) {
		struct plan_move *m = &plan->move[i];

		if (m->state != DROPPED)
			continue;
		if (m->part != NULL && m->part != part)
			dropped[n++] = m->part;
		m->part = NULL; /* told, and perhaps destroyed before the plan is over */
	}
	for (i = 0; i < n; i++)
		policy_changed(dropped[i], NULL);
}
