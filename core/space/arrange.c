/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arrange.c - move several partitions together for the application, all or none.
 *
 * arrange_begin chooses the new places, then simulates the moves on the grid.  The result
 * is a list of steps in phases.  Members that can move without a cycle of waits move in
 * one phase, as a plan (plan.c).  If all remaining members wait for each other, one goes
 * out of the way first: to free units that no other member needs or, if there are none,
 * by shrinking to one unit of its own.
 *
 * Until the end, the old, the new and the intermediate places of all members are reserved
 * for the owner PLAN_ROOM, as far as no member holds them.  So each step finds its units
 * free.  If a step fails, the completed steps are undone one by one, the latest first.
 */
#include "space/arrange.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "memory/quota.h"
#include "sched/policy.h"
#include "sched/suspend.h"
#include "space/allot.h"
#include "space/place.h"
#include "space/plan.h"
#include "space/resize.h"
#include "util/error.h"

/* How a member has gone out of the way while steps were chosen. */
#define PARKED_ELSEWHERE 1u
#define PARKED_SHRUNK    2u

static const struct place_rect nowhere;

/* Prefix the error text with the index of the descriptor; return err. */
static COLD int member_bad(uint32_t i, int err)
{
	char text[400];

	format_text(text, sizeof(text), "%s", hal_last_error());
	return fail(err, "descs[%u]: %s", i, text);
}

/* ---- new places -------------------------------------------------------------------- */

/* Hold (hold) or release the present places of the first n members. */
static void hold_old(struct hal_device *dev, const struct arrangement *a, uint32_t n,
		     bool hold)
{
	for (uint32_t i = 0; i < n; i++) {
		const struct arrange_member *m = &a->member[i];

		if (hold)
			place_take(&dev->space.place, &m->from,
				   partition_holder(m->part));
		else
			place_release(&dev->space.place, &m->from);
	}
}

/* Choose the new place of member m, and hold it.  All old places are released. */
static int choose_place(struct hal_device *dev, struct arrange_member *m)
{
	struct hal_bk_partition_desc to = m->part->desc;
	int err = allot_units(dev, m->desc, &to, NULL);

	if (err == 0)
		err = allot_isolation_check(dev, &to, m->desc->min_isolation);
	if (err != 0)
		return err;
	m->to = rect_of(&to);
	place_take(&dev->space.place, &m->to, partition_holder(m->part));
	return 0;
}

/* Choose the new places of all members: named rectangles first, then counts.  Leave the
 * grid as it was. */
static int choose_places(struct hal_device *dev, struct arrangement *a)
{
	int err = 0;

	hold_old(dev, a, a->count, false);
	for (uint32_t i = 0; i < a->count; i++)
		a->member[i].to = nowhere;
	for (int named = 1; named >= 0; named--)
		for (uint32_t i = 0; err == 0 && i < a->count; i++) {
			struct arrange_member *m = &a->member[i];

			if (names_place(m->desc) != named)
				continue;
			err = choose_place(dev, m);
			if (err != 0)
				err = member_bad(i, err);
		}
	for (uint32_t i = 0; i < a->count; i++)
		if (a->member[i].to.rows != 0)
			place_release(&dev->space.place, &a->member[i].to);
	hold_old(dev, a, a->count, true);
	return err;
}

/* ---- steps ------------------------------------------------------------------------- */

/* The members' places while the steps are chosen; the grid holds them. */
struct simulation {
	struct hal_device *dev;
	struct arrangement *a;
	struct place_rect at[HAL_POLICY_MOVES];
	uint32_t phase;
};

static void add_step(struct simulation *s, uint32_t i, const struct place_rect *to)
{
	struct place *place = &s->dev->space.place;

	place_release(place, &s->at[i]);
	place_take(place, to, partition_holder(s->a->member[i].part));
	s->at[i] = *to;
	s->a->step[s->a->steps++] = (struct arrange_step){i, s->phase, *to};
}

static bool is_settled(const struct simulation *s, uint32_t i)
{
	return place_same(&s->at[i], &s->a->member[i].to);
}

/* Return whether no other member is at the new place of member i. */
static bool may_settle(const struct simulation *s, uint32_t i)
{
	struct place_rect both;

	for (uint32_t k = 0; k < s->a->count; k++)
		if (k != i && place_common(&s->a->member[i].to, &s->at[k], &both))
			return false;
	return true;
}

/* Add the steps of all members that can move to their new places.  Return whether all
 * members are there. */
static bool settle(struct simulation *s)
{
	uint32_t left, before = UINT32_MAX;

	for (;;) {
		left = 0;
		for (uint32_t i = 0; i < s->a->count; i++) {
			if (is_settled(s, i))
				continue;
			if (may_settle(s, i))
				add_step(s, i, &s->a->member[i].to);
			else
				left++;
		}
		if (left == 0 || left == before)
			return left == 0;
		before = left;
	}
}

/* Return whether member i is where another member has yet to move. */
static bool is_in_way(const struct simulation *s, uint32_t i)
{
	struct place_rect both;

	for (uint32_t k = 0; k < s->a->count; k++)
		if (k != i && !is_settled(s, k) &&
		    place_common(&s->a->member[k].to, &s->at[i], &both))
			return true;
	return false;
}

/* Hold (hold) or release the free units of the new places that members other than i still
 * wait for. */
static void block_places(struct simulation *s, uint32_t i, bool hold)
{
	for (uint32_t k = 0; k < s->a->count; k++) {
		const struct place_rect *to = &s->a->member[k].to;

		if (k == i || is_settled(s, k))
			continue;
		if (hold)
			place_fill(&s->dev->space.place, to, PLAN_ROOM);
		else
			place_empty(&s->dev->space.place, to, &nowhere, PLAN_ROOM);
	}
}

/* Find a place of `units` units for member i where it is in no other member's way. */
static bool find_aside(struct simulation *s, uint32_t i, uint32_t units,
		       struct place_rect *out)
{
	struct hal_partition *part = s->a->member[i].part;
	struct place *place = &s->dev->space.place;
	struct hal_bk_partition_desc to = part->desc;
	bool found;

	place_release(place, &s->at[i]);
	block_places(s, i, true);
	found = place_find(place, units, NULL, out);
	block_places(s, i, false);
	place_take(place, &s->at[i], partition_holder(part));
	if (!found)
		return false;
	to.row = (uint16_t)out->row;
	to.col = (uint16_t)out->col;
	to.rows = (uint16_t)out->rows;
	to.cols = (uint16_t)out->cols;
	to.units = units;
	return partition_isolation(s->dev, &to) >=
	       partition_isolation(s->dev, &part->desc);
}

/* Move one member out of the way of the others, with as many of its units as possible. */
static bool park_aside(struct simulation *s)
{
	bool left = true;

	for (uint32_t shift = 0; left; shift++) {
		left = false;
		for (uint32_t i = 0; i < s->a->count; i++) {
			uint32_t units = (s->at[i].rows * s->at[i].cols) >> shift;
			struct place_rect r;

			if (is_settled(s, i) || units == 0 || !is_in_way(s, i) ||
			    (s->a->member[i].parked & PARKED_ELSEWHERE) != 0)
				continue;
			left = true;
			if (!find_aside(s, i, units, &r))
				continue;
			s->a->member[i].parked |= PARKED_ELSEWHERE;
			add_step(s, i, &r);
			return true;
		}
	}
	return false;
}

/* Shrink the largest member that is in the way to one of its units. */
static bool park_shrunk(struct simulation *s)
{
	uint32_t most = 1, found = 0;
	struct place_rect r;

	for (uint32_t i = 0; i < s->a->count; i++) {
		uint32_t units = s->at[i].rows * s->at[i].cols;

		if (is_settled(s, i) || units <= most || !is_in_way(s, i) ||
		    (s->a->member[i].parked & PARKED_SHRUNK) != 0)
			continue;
		most = units;
		found = i;
	}
	if (most == 1)
		return false;
	r = (struct place_rect){s->at[found].row, s->at[found].col, 1, 1};
	s->a->member[found].parked |= PARKED_SHRUNK;
	add_step(s, found, &r);
	return true;
}

/* Choose the steps that bring all members to their new places.  Leave the grid as it was.
 * Return 0 or -ENOSPC. */
static int choose_steps(struct hal_device *dev, struct arrangement *a)
{
	struct simulation s = {.dev = dev, .a = a};
	bool possible = true;

	a->steps = 0;
	for (uint32_t i = 0; i < a->count; i++) {
		s.at[i] = a->member[i].from;
		a->member[i].parked = 0;
	}
	while (!settle(&s)) {
		s.phase++;
		possible = park_aside(&s) || park_shrunk(&s);
		if (!possible)
			break;
		s.phase++;
	}
	for (uint32_t i = 0; i < a->count; i++)
		place_release(&dev->space.place, &s.at[i]);
	hold_old(dev, a, a->count, true);
	if (possible)
		return 0;
	return fail(ENOSPC,
		    "the partitions wait for each other, and no unit of %s is free to "
		    "move one of them aside; free one unit",
		    dev->name);
}

/* ---- reservation and limits -------------------------------------------------------- */

/* Reserve (reserve) or release the units that the members need until the end and that no
 * member holds. */
static void reserve_all(struct hal_device *dev, const struct arrangement *a, bool reserve)
{
	struct place *place = &dev->space.place;

	for (uint32_t i = 0; i < a->count + a->steps; i++) {
		const struct place_rect *r =
			i < a->count ? &a->member[i].from : &a->step[i - a->count].at;

		if (reserve)
			place_fill(place, r, PLAN_ROOM);
		else
			place_empty(place, r, &nowhere, PLAN_ROOM);
	}
}

/* Undo the changed quotas of the members. */
static void undo_quotas(const struct arrangement *a)
{
	for (uint32_t i = 0; i < a->count; i++) {
		a->member[i].part->quota_before = a->member[i].quota;
		quota_undo(a->member[i].part);
	}
}

/* Set the quotas that the members request: smaller ones first, so that one can have what
 * another gives. */
static int set_quotas(const struct arrangement *a)
{
	for (int grows = 0; grows < 2; grows++)
		for (uint32_t i = 0; i < a->count; i++) {
			const struct arrange_member *m = &a->member[i];
			int err;

			if ((m->desc->memory_bytes > m->quota) != grows)
				continue;
			err = quota_change(m->part, m->desc->memory_bytes);
			if (err == 0)
				continue;
			err = member_bad(i, err);
			undo_quotas(a);
			return err;
		}
	return 0;
}

static void set_limits(const struct arrange_member *m)
{
	struct hal_partition *part = m->part;

	part->sched.policy_view.floor = m->floor;
	part->sched.policy_view.ceiling = m->ceiling;
	part->pinned = m->pinned;
	part->desc.memory_bytes = counter_get(&part->memory.quota);
}

/* ---- carrying out ------------------------------------------------------------------ */

/* Append to the text of the failure where members are that could not go back. */
static COLD void describe_stranded(struct arrangement *a)
{
	size_t n = strlen(a->why);

	for (uint32_t i = 0; i < a->count; i++) {
		const struct hal_partition *p = a->member[i].part;
		const struct place_rect at = rect_of(&p->desc);

		if (place_same(&at, &a->member[i].from))
			continue;
		format_text(a->why + n, sizeof(a->why) - n,
			    "; partition %u could not go back and has %u x %u units at "
			    "row %u, column %u",
			    p->desc.index, at.rows, at.cols, at.row, at.col);
		n = strlen(a->why);
	}
}

/* End the arrangement: release what it reserves, publish the result, free it. */
static void arrange_end(struct hal_device *dev, struct arrangement *a)
{
	struct hal_partition *parts[HAL_POLICY_MOVES];
	struct plan *plan = &dev->space.plan;
	const uint32_t count = a->count;

	reserve_all(dev, a, false);
	plan->arrangement = NULL;
	if (a->err != 0) {
		undo_quotas(a);
		describe_stranded(a);
	}
	for (uint32_t i = 0; i < count; i++) {
		parts[i] = a->member[i].part;
		parts[i]->arranged = false;
		parts[i]->command.inflight_max = partition_inflight_max(parts[i]);
		if (a->err == 0)
			set_limits(&a->member[i]);
	}
	if (a->err == 0)
		timeline_raise(a->point.timeline, a->point.value, dev);
	else
		timeline_fail(a->point.timeline, a->err, a->why, dev);
	free(a);
	plan_is_over(dev);
	/* The policy may begin another plan now, in which nothing here is used. */
	for (uint32_t i = 0; i < count; i++) {
		suspend_partition_moved(parts[i]);
		policy_changed(parts[i], NULL);
		partition_runnable(parts[i]);
	}
}

static void keep_failure(struct arrangement *a, int err, const char *why)
{
	if (a->err != 0)
		return;
	a->err = err;
	format_text(a->why, sizeof(a->why), "the device refused to resize%s%s",
		    why[0] != '\0' ? ": " : "", why);
}

static void arrange_moved(struct hal_partition *part, int status, const char *why);

/* Begin the moves of step[0..n) as a plan.  Return 0, or -errno if the device refuses
 * one; others may have begun nevertheless. */
static int begin_steps(struct hal_device *dev, const struct arrangement *a,
		       const struct arrange_step *step, uint32_t n)
{
	struct plan *plan = &dev->space.plan;
	int err;

	for (uint32_t i = 0; i < n; i++) {
		struct hal_partition *part = a->member[step[i].member].part;

		place_empty(&dev->space.place, &step[i].at, &nowhere, PLAN_ROOM);
		plan->move[i] = (struct plan_move){
			.part = part, .from = rect_of(&part->desc), .to = step[i].at};
	}
	plan->count = n;
	err = plan_carry_out(dev);
	plan->moved = arrange_moved;
	reserve_all(dev, a, true);
	return err;
}

/* Begin the next phase, or undo the next step.  Return false if nothing is left. */
static bool begin_next(struct hal_device *dev, struct arrangement *a, int *err)
{
	uint32_t n = 0;

	if (!a->back) {
		const struct arrange_step *first = &a->step[a->next];

		while (a->next + n < a->steps && first[n].phase == first->phase)
			n++;
		a->next += n;
		*err = n != 0 ? begin_steps(dev, a, first, n) : 0;
		return n != 0;
	}
	if (a->done_count == 0 || atomic_load(&dev->lost) != 0)
		return false;
	*err = begin_steps(dev, a, &a->done[--a->done_count], 1);
	return *err == 0; /* else the members stay where they are */
}

/* Continue until a move is under way, or to the end. */
static void arrange_continue(struct hal_device *dev, struct arrangement *a)
{
	int err = 0;

	while (begin_next(dev, a, &err)) {
		if (err != 0)
			keep_failure(a, err, hal_last_error());
		if (dev->space.plan.open != 0)
			return;
		a->back = a->err != 0;
	}
	arrange_end(dev, a);
}

/* Add the completed move of part to the list of steps to undo. */
static void keep_done(struct arrangement *a, const struct hal_partition *part)
{
	const struct plan *plan = &part->dev->space.plan;
	uint32_t i = 0, k = 0;

	while (a->member[i].part != part)
		i++;
	while (plan->move[k].part != part)
		k++;
	a->done[a->done_count++] =
		(struct arrange_step){.member = i, .at = plan->move[k].from};
}

/* Continue after part has moved or failed to move.  part need not be a member. */
static void arrange_moved(struct hal_partition *part, int status, const char *why)
{
	struct hal_device *dev = part->dev;
	struct arrangement *a = dev->space.plan.arrangement;
	int err;

	if (a == NULL || !part->arranged)
		return;
	if (status != 0)
		keep_failure(a, status, why);
	else if (!a->back)
		keep_done(a, part);
	err = plan_step(part, status == 0);
	if (err != 0)
		keep_failure(a, err, hal_last_error());
	reserve_all(dev, a, true);
	if (dev->space.plan.open != 0)
		return;
	if (status != 0 && a->back)
		a->done_count = 0; /* it cannot go back */
	a->back = a->err != 0;
	arrange_continue(dev, a);
}

/* ---- requests ---------------------------------------------------------------------- */

static int members_check(struct arrangement *a)
{
	for (uint32_t i = 0; i < a->count; i++) {
		struct arrange_member *m = &a->member[i];
		int err = resize_check(m->part, m->desc);

		if (err != 0)
			return member_bad(i, err);
		m->from = rect_of(&m->part->desc);
		m->quota = counter_get(&m->part->memory.quota);
	}
	return 0;
}

static void join(struct hal_device *dev, struct arrange_member *m)
{
	struct hal_partition *part = m->part;

	resize_limits(part, m->desc, m->to.rows * m->to.cols);
	m->floor = part->floor_next;
	m->ceiling = part->ceiling_next;
	m->pinned = part->pinned_next;
	part->arranged = true;
	/* Members must stay idle until the end, not only until they have moved. */
	if ((dev->info.caps & HAL_CAP_RESIZE_LIVE) == 0)
		part->command.inflight_max = 0;
}

int arrange_begin(struct hal_device *dev, struct arrangement *a, struct hal_point *done)
{
	struct plan *plan = &dev->space.plan;
	struct hal_partition *first = a->member[0].part;
	int err;

	if (plan->open != 0 || plan->room.rows != 0)
		return plan_busy(dev);
	err = members_check(a);
	if (err == 0)
		err = choose_places(dev, a);
	if (err == 0)
		err = choose_steps(dev, a);
	if (err == 0)
		err = resize_renew(first);
	if (err == 0)
		err = set_quotas(a);
	if (err != 0)
		return err;
	for (uint32_t i = 0; i < a->count; i++)
		join(dev, &a->member[i]);
	a->point = (struct hal_point){first->control, ++first->resize_count};
	*done = a->point;
	plan->arrangement = a;
	reserve_all(dev, a, true);
	arrange_continue(dev, a);
	return 0;
}
