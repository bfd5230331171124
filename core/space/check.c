/* SPDX-License-Identifier: Apache-2.0 */
/* check.c - assert the states of partitions and plans that docs/state.md lists. */
#include "space/check.h"

#ifndef NDEBUG

#include <assert.h>

#include "command/queue.h"
#include "space/plan.h"

/* Sums over the queues that use the units of a partition: its own and its guests'. */
struct sums {
	uint32_t inflight, runnable, urgent;
};

static void add_queue(struct sums *s, const struct hal_queue *q)
{
	const struct inflight *f = q->oldest;

	for (uint32_t i = 0; i < q->inflight_count; i++, f = f->next)
		s->inflight += !f->done && !f->killed;
	s->inflight -= q->sched.frozen;
	s->runnable += q->runnable;
	s->urgent += q->sched.urgent;
}

static struct sums sums_of(const struct hal_partition *part)
{
	struct sums s = {0};

	hal_list_for_each (p, &part->dev->space.partitions) {
		const struct hal_partition *of =
			container_of(p, struct hal_partition, on_device);

		hal_list_for_each (it, &of->queues) {
			const struct hal_queue *q =
				container_of(it, struct hal_queue, on_partition);

			assert(q->home == of && q->part == of->host);
			if (q->part == part)
				add_queue(&s, q);
		}
	}
	return s;
}

/* ---- runnable and preempted queues ------------------------------------------------- */

static void check_waiting(const struct hal_partition *part)
{
	const struct hal_policy *p = part->dev->sched.policy;
	bool always = p != NULL && (p->flags & HAL_POLICY_ALWAYS) != 0;
	uint32_t n = 0;

	hal_list_for_each (it, &part->sched.waiting) {
		const struct hal_queue *q =
			container_of(it, struct hal_queue, sched.waiting);

		assert(q->runnable && q->part == part && q != part->sched.sole);
		n++;
	}
	assert(n == part->sched.policy_view.runnable);
	assert(p == NULL || part->sched.enqueued == n + always + part->sched.classes);
	if (part->sched.sole != NULL)
		assert(part->sched.sole->runnable && part->sched.sole->part == part);
	assert(!part->sched.held || n > 0);
}

static void check_preempted(const struct hal_partition *part)
{
	hal_list_for_each (it, &part->sched.preempted) {
		const struct hal_queue *v =
			container_of(it, struct hal_queue, sched.preempted);

		assert(v->part == part && v->state != QUEUE_RUNNING);
	}
	assert(part->sched.urgent > 0 || list_empty(&part->sched.preempted));
}

/* ---- units of a partition ---------------------------------------------------------- */

static void check_units(struct hal_partition *part)
{
	struct hal_device *dev = part->dev;
	const struct place_rect has = rect_of(&part->desc);
	const struct place_rect gets = rect_of(&part->moving);
	bool moves = part->moving.units != 0;
	bool live = (dev->info.caps & HAL_CAP_RESIZE_LIVE) != 0;

	assert(place_owner(&dev->space.place, &has, NULL) == partition_holder(part));
	if (moves)
		assert(place_owner(&dev->space.place, &gets, NULL) ==
		       partition_holder(part));
	assert(moves || !part->policy_moves);
	assert(part->command.inflight_max ==
	       (!live && (moves || part->arranged || plan_has(part))
			? 0
			: partition_inflight_max(part)));
	assert(!part->arranged || dev->space.plan.arrangement != NULL);
}

static void check_guest(const struct hal_partition *part)
{
	assert(part->host->host == part->host);
	assert(part->moving.units == 0 && part->command.inflight == 0);
	assert(part->sched.sole == NULL && list_empty(&part->sched.waiting));
	assert(list_empty(&part->command.busy) && list_empty(&part->sched.preempted));
}

void partition_check(struct hal_partition *part)
{
	struct sums s;

	if (part->host != part) {
		check_guest(part);
		return;
	}
	s = sums_of(part);
	assert(part->command.inflight == s.inflight);
	assert(part->sched.policy_view.runnable + (part->sched.sole != NULL) ==
	       s.runnable);
	assert(part->sched.urgent == s.urgent);
	check_waiting(part);
	check_preempted(part);
	check_units(part);
}

/* ---- the plan ---------------------------------------------------------------------- */

/* Return the number of unfinished moves that m has to wait for. */
static uint32_t waits_for(const struct plan *plan, const struct plan_move *m)
{
	struct place_rect both;
	uint32_t n = 0;

	for (uint32_t i = 0; i < plan->count; i++) {
		const struct plan_move *k = &plan->move[i];

		n += k != m && (k->state == PLAN_WAITS || k->state == PLAN_MOVES) &&
		     place_common(&m->to, &k->from, &both);
	}
	return n;
}

static void check_plan(const struct plan *plan)
{
	uint32_t open = 0;

	/* The members of a finished plan may point to destroyed partitions. */
	if (plan->open == 0)
		return;
	for (uint32_t i = 0; i < plan->count; i++) {
		const struct plan_move *m = &plan->move[i];

		if (m->state == PLAN_WAITS) {
			assert(m->part->moving.units == 0);
			assert(m->waits > 0 && m->waits == waits_for(plan, m));
		} else if (m->state == PLAN_MOVES) {
			assert(m->part->moving.units != 0);
			assert(m->part->policy_moves != m->part->arranged);
			assert(m->waits == 0);
		}
		open += m->state == PLAN_WAITS || m->state == PLAN_MOVES;
	}
	assert(open == plan->open);
}

void space_check(struct hal_device *dev)
{
	uint32_t held = 0;

	hal_list_for_each (it, &dev->space.partitions) {
		struct hal_partition *part =
			container_of(it, struct hal_partition, on_device);

		partition_check(part);
		held += part->sched.held;
	}
	assert(dev->sched.held == held);
	check_plan(&dev->space.plan);
}

#endif
