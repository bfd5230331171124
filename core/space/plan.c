/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan.c - several partitions moved as one.
 *
 * First it is settled who goes where, without anything being moved (layout.c, compact.c).
 * Then whoever needs nothing of another moves, and the others hold what is free of the
 * place they go to.  What one has left is taken at once by those that wait for it, and
 * who has waited for all moves then.
 */
#include "space/plan.h"

#include <errno.h>

#include "sched/policy.h"
#include "space/allot.h"
#include "space/layout.h"
#include "space/resize.h"
#include "util/error.h"

static bool same(const struct place_rect *a, const struct place_rect *b)
{
	return a->row == b->row && a->col == b->col && a->rows == b->rows &&
	       a->cols == b->cols;
}

/* ---- how they get there ------------------------------------------------------------ */

static void describe_move(const struct plan_move *m, struct hal_bk_partition_desc *out)
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
	describe_move(m, &to);
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

		m->state = PLAN_WAITS;
		m->waits = 0;
		for (uint32_t k = 0; k < n; k++)
			m->waits +=
				k != i && place_common(&m->to, &plan->move[k].from, &r);
	}
	return n;
}

/* What is free of where those go that wait, and of the room that is made. */
static void hold_free(struct hal_device *dev)
{
	struct plan *plan = &dev->space.plan;

	for (uint32_t i = 0; i < plan->count; i++)
		if (plan->move[i].state == PLAN_WAITS)
			place_fill(&dev->space.place, &plan->move[i].to,
				   partition_holder(plan->move[i].part));
	if (plan->room.rows != 0)
		place_fill(&dev->space.place, &plan->room, PLAN_ROOM);
}

static void drop_waiting(struct hal_device *dev)
{
	struct plan *plan = &dev->space.plan;

	for (uint32_t i = 0; i < plan->count; i++) {
		struct plan_move *m = &plan->move[i];

		if (m->state != PLAN_WAITS)
			continue;
		place_empty(&dev->space.place, &m->to, &m->from,
			    partition_holder(m->part));
		m->state = PLAN_DROPPED;
		m->part->command.inflight_max = dev->partition_inflight;
		plan->open--;
	}
}

static int go(struct plan_move *m)
{
	struct hal_bk_partition_desc to;
	int err;

	describe_move(m, &to);
	resize_keep_limits(m->part);
	m->part->quota_before = counter_get(&m->part->memory.quota);
	err = resize_move(m->part, &to);
	m->part->policy_moves = err == 0;
	if (err == 0)
		m->state = PLAN_MOVES;
	return err;
}

/* All that wait for nobody; err: one could not, and nobody waits any more. */
static int move_free(struct hal_device *dev)
{
	struct plan *plan = &dev->space.plan;

	for (uint32_t i = 0; i < plan->count; i++) {
		int err;

		if (plan->move[i].state != PLAN_WAITS || plan->move[i].waits != 0)
			continue;
		err = go(&plan->move[i]);
		if (err != 0) {
			drop_waiting(dev);
			return err;
		}
	}
	return 0;
}

int plan_busy(const struct hal_device *dev)
{
	return fail(EBUSY, "partitions of %s are being moved already", dev->name);
}

/* m has left what it had. */
static void place_left_by(struct hal_device *dev, const struct plan_move *left)
{
	struct plan *plan = &dev->space.plan;
	struct place_rect r;

	for (uint32_t i = 0; i < plan->count; i++) {
		struct plan_move *m = &plan->move[i];

		if (m->state == PLAN_WAITS && place_common(&m->to, &left->from, &r))
			m->waits--;
	}
	hold_free(dev);
}

/* part has moved, or has not, as part of the plan or not. */
static void plan_moved(struct hal_partition *part, bool well)
{
	struct hal_device *dev = part->dev;
	struct plan *plan = &dev->space.plan;
	struct hal_partition *dropped[HAL_POLICY_MOVES];
	uint32_t i = 0, n = 0;

	while (i < plan->count &&
	       (plan->move[i].part != part || plan->move[i].state != PLAN_MOVES))
		i++;
	if (plan->open == 0 || i == plan->count)
		return;
	plan->move[i].state = PLAN_MOVED;
	plan->open--;
	if (well) {
		place_left_by(dev, &plan->move[i]);
		well = move_free(dev) == 0;
	} else {
		plan->move[i].state = PLAN_DROPPED;
		drop_waiting(dev);
	}
	if (plan->open == 0 && plan->over != NULL)
		timeline_raise(plan->over, ++plan->over_count, dev);
	if (well)
		return;
	/* Who waited in vain hears that it stays; that may begin another plan. */
	for (i = 0; i < plan->count; i++) {
		struct plan_move *m = &plan->move[i];

		if (m->state != PLAN_DROPPED)
			continue;
		if (m->part != NULL && m->part != part)
			dropped[n++] = m->part;
		m->part = NULL; /* told, and perhaps destroyed before the plan is over */
	}
	for (i = 0; i < n; i++)
		policy_changed(dropped[i], NULL);
}

int plan_carry_out(struct hal_device *dev)
{
	struct plan *plan = &dev->space.plan;
	int err = 0;

	plan->moved = plan_moved;
	plan->open = wait_for_each_other(plan);
	for (uint32_t i = 0; err == 0 && i < plan->count; i++) {
		plan->move[i].state = PLAN_DROPPED; /* not in its own way */
		err = may_move(dev, &plan->move[i]);
		plan->move[i].state = PLAN_WAITS;
	}
	if (err != 0) {
		plan->open = 0;
		return err;
	}
	if ((dev->info.caps & HAL_CAP_RESIZE_LIVE) == 0)
		for (uint32_t i = 0; i < plan->count; i++)
			plan->move[i].part->command.inflight_max =
				0; /* until it has moved */
	hold_free(dev);
	return move_free(dev);
}

int plan_begin(struct hal_device *dev, const struct hal_policy_move *moves,
	       uint32_t count)
{
	struct plan *plan = &dev->space.plan;
	int err;

	if (plan->open != 0)
		return plan_busy(dev);
	plan->count = 0;
	for (int grows = 0; grows < 2; grows++)
		for (uint32_t i = 0; i < count; i++) {
			struct hal_partition *p = container_of(
				moves[i].part, struct hal_partition, sched.policy_view);

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
	err = layout_place(dev, moves);
	return err != 0 ? err : plan_carry_out(dev);
}

struct hal_point plan_point(const struct hal_device *dev)
{
	const struct plan *plan = &dev->space.plan;

	for (uint32_t i = 0; plan->open != 0 && i < plan->count; i++)
		if (plan->move[i].state == PLAN_MOVES) {
			const struct hal_partition *p = plan->move[i].part;

			return (struct hal_point){p->control, p->resize_count};
		}
	return (struct hal_point){NULL, 0};
}

struct hal_point plan_over_point(const struct hal_device *dev)
{
	const struct plan *plan = &dev->space.plan;

	return plan->open != 0 ? (struct hal_point){plan->over, plan->over_count + 1}
			       : (struct hal_point){NULL, 0};
}
