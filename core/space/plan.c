/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan.c - move several partitions in one go.
 *
 * First layout.c or compact.c chooses a new place for each partition; nothing moves yet.
 * Then each partition moves whose new place no other partition of the plan still holds.
 * The others wait, and reserve the units of their new place that are free.  When a
 * partition has left its old place, waiting partitions reserve its units at once.  A
 * partition moves as soon as it waits for no other.  If a move fails, the partitions that
 * still wait are dropped from the plan.
 */
#include "space/plan.h"

#include <errno.h>

#include "sched/policy.h"
#include "sched/suspend.h"
#include "space/allot.h"
#include "space/layout.h"
#include "space/resize.h"
#include "util/error.h"

/* ---- order of the moves ------------------------------------------------------------ */

/* Fill out with the description of m's partition at its new place. */
static void describe_move(const struct plan_move *m, struct hal_bk_partition_desc *out)
{
	*out = m->part->desc;
	out->row = (uint16_t)m->to.row;
	out->col = (uint16_t)m->to.col;
	out->rows = (uint16_t)m->to.rows;
	out->cols = (uint16_t)m->to.cols;
	out->units = m->to.rows * m->to.cols;
}

/* Check that the partition can be moved, and prepare its timeline for the move. */
static int check_move(struct hal_device *dev, struct plan_move *m)
{
	const struct hal_partition_desc d = {0};
	struct hal_bk_partition_desc to;
	int err;

	if (m->part->arranged)
		return 0; /* arrange.c has checked it */
	err = resize_check(m->part, &d);
	if (err != 0)
		return err;
	describe_move(m, &to);
	if (partition_isolation(dev, &to) < partition_isolation(dev, &m->part->desc))
		return fail(ENOTSUP,
			    "partition %u would be less isolated at its new place",
			    m->part->desc.index);
	return resize_renew(m->part);
}

/* Remove partitions that keep their place from the plan.  Count for each other one how
 * many partitions must move before it.  Return the number of partitions left. */
static uint32_t order_moves(struct plan *plan)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < plan->count; i++)
		if (!place_same(&plan->move[i].from, &plan->move[i].to))
			plan->move[n++] = plan->move[i];
	plan->count = n;
	for (uint32_t i = 0; i < n; i++) {
		struct plan_move *m = &plan->move[i];

		m->state = PLAN_WAITS;
		m->waits = 0;
		for (uint32_t k = 0; k < n; k++)
			m->waits += k != i && place_meet(&m->to, &plan->move[k].from);
	}
	return n;
}

/* Reserve the free units of the new places of waiting partitions, and of plan.room. */
static void reserve_targets(struct hal_device *dev)
{
	struct plan *plan = &dev->space.plan;

	for (uint32_t i = 0; i < plan->count; i++)
		if (plan->move[i].state == PLAN_WAITS)
			place_fill(&dev->space.place, &plan->move[i].to,
				   partition_holder(plan->move[i].part));
	if (plan->room.rows != 0)
		place_fill(&dev->space.place, &plan->room, PLAN_ROOM);
}

/* Drop all waiting partitions from the plan, and release the units that they reserved. */
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
		resize_let_issue(m->part);
		suspend_partition_moved(m->part);
		plan->open--;
	}
}

/* Have the device move m's partition. */
static int start_move(struct plan_move *m)
{
	struct hal_bk_partition_desc to;
	int err;

	describe_move(m, &to);
	resize_keep_limits(m->part);
	m->part->quota_before = counter_get(&m->part->memory.quota);
	err = resize_move(m->part, &to);
	m->part->policy_moves = err == 0 && !m->part->arranged;
	if (err == 0)
		m->state = PLAN_MOVES;
	return err;
}

/* Start the moves that wait for no other.  If one fails, drop all waiting partitions and
 * return its error. */
static int start_ready(struct hal_device *dev)
{
	struct plan *plan = &dev->space.plan;

	for (uint32_t i = 0; i < plan->count; i++) {
		int err;

		if (plan->move[i].state != PLAN_WAITS || plan->move[i].waits != 0)
			continue;
		err = start_move(&plan->move[i]);
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

/* Partition `left` has left its old place: decrement the wait count of the partitions
 * that wait for it, and let those reserve the units of the old place. */
static void release_waiters(struct hal_device *dev, const struct plan_move *left)
{
	struct plan *plan = &dev->space.plan;

	for (uint32_t i = 0; i < plan->count; i++) {
		struct plan_move *m = &plan->move[i];

		if (m->state == PLAN_WAITS && place_meet(&m->to, &left->from))
			m->waits--;
	}
	reserve_targets(dev);
}

/* Remove the dropped partitions from the plan, since they may be destroyed before it
 * ends.  Write those other than `except` to dropped, unless it is NULL.  Return their
 * number. */
static uint32_t forget_dropped(struct plan *plan, const struct hal_partition *except,
			       struct hal_partition **dropped)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < plan->count; i++) {
		struct plan_move *m = &plan->move[i];

		if (m->state != PLAN_DROPPED)
			continue;
		if (dropped != NULL && m->part != NULL && m->part != except)
			dropped[n++] = m->part;
		m->part = NULL;
	}
	return n;
}

int plan_step(struct hal_partition *part, bool succeeded)
{
	struct hal_device *dev = part->dev;
	struct plan *plan = &dev->space.plan;
	struct plan_move *m = plan->move;

	while (m->part != part || m->state != PLAN_MOVES)
		m++;
	plan->open--;
	m->state = succeeded ? PLAN_MOVED : PLAN_DROPPED;
	if (!succeeded) {
		drop_waiting(dev);
		return 0;
	}
	release_waiters(dev, m);
	return start_ready(dev);
}

void plan_is_over(struct hal_device *dev)
{
	struct plan *plan = &dev->space.plan;

	if (plan->over != NULL)
		timeline_raise(plan->over, ++plan->over_count, dev);
}

/* Return whether the device is moving part for the plan. */
static bool is_moved_by(const struct plan *plan, const struct hal_partition *part)
{
	uint32_t i = 0;

	while (i < plan->count &&
	       (plan->move[i].part != part || plan->move[i].state != PLAN_MOVES))
		i++;
	return plan->open != 0 && i < plan->count;
}

/* Continue the plan after part has moved or failed to move.  part need not belong to the
 * plan. */
static void plan_moved(struct hal_partition *part, int status, const char *why)
{
	struct hal_device *dev = part->dev;
	struct plan *plan = &dev->space.plan;
	struct hal_partition *dropped[HAL_POLICY_MOVES];
	uint32_t n;
	int err;

	(void)why;
	if (!is_moved_by(plan, part))
		return;
	err = plan_step(part, status == 0);
	if (plan->open == 0)
		plan_is_over(dev);
	if (status == 0 && err == 0)
		return;
	/* Notify the policy of partitions that were dropped and stay where they are.  The
	 * policy may begin another plan in policy_changed, so collect them first. */
	n = forget_dropped(plan, part, dropped);
	for (uint32_t i = 0; i < n; i++)
		policy_changed(dropped[i], NULL);
}

int plan_carry_out(struct hal_device *dev)
{
	struct plan *plan = &dev->space.plan;
	int err = 0;

	plan->moved = plan_moved;
	plan->open = order_moves(plan);
	for (uint32_t i = 0; err == 0 && i < plan->count; i++) {
		/* resize_check refuses a partition that waits in a plan. */
		plan->move[i].state = PLAN_DROPPED;
		err = check_move(dev, &plan->move[i]);
		plan->move[i].state = PLAN_WAITS;
	}
	if (err != 0) {
		plan->open = 0;
		return err;
	}
	if ((dev->info.caps & HAL_CAP_RESIZE_LIVE) == 0)
		for (uint32_t i = 0; i < plan->count; i++)
			/* The partition must not issue commands until it has moved. */
			plan->move[i].part->command.inflight_max = 0;
	reserve_targets(dev);
	err = start_ready(dev);
	/* The caller reports the error, so plan_moved need not notify the policy of the
	 * dropped partitions when the moves that have begun end. */
	if (err != 0)
		(void)forget_dropped(plan, NULL, NULL);
	return err;
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

			/* A moving partition already holds its old and its new place. */
			if (p->moving.units != 0)
				return fail(
					EBUSY,
					"partition %u \"%s\" is being resized already",
					p->desc.index, p->name);
			if ((moves[i].units > p->desc.units) == grows)
				plan->move[plan->count++] =
					(struct plan_move){.part = p,
							   .from = rect_of(&p->desc),
							   .units = moves[i].units};
		}
	err = layout_place(dev);
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
