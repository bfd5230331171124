/* SPDX-License-Identifier: Apache-2.0 */
/* turn.c - what the scheduler does when a turn tells it of something. */
#include "sched/turn.h"

#include "sched/inherit.h"
#include "sched/policy.h"
#include "sched/policy_host.h"
#include "sched/preempt.h"
#include "sched/suspend.h"
#include "space/partition.h"

/* Taken from the policy, so that it comes again as what it is now. */
static void come_again(struct hal_queue *q, uint32_t service_class)
{
	bool runnable = q->runnable;

	queue_withdraw(q, HAL_POLICY_INHERITS);
	policy_set_class(q, service_class);
	/* What the device has of it may be behind what makes way. */
	if (q->sched.preempts && q->inflight_count > 0)
		preempt_wanted(q);
	if (!runnable)
		return;
	q->runnable = true;
	policy_enqueue(q);
	partition_runnable(q->part);
}

/* What q is lent has changed. */
static void look_at_lent(struct hal_queue *q)
{
	const struct heap_node *rank = heap_first(&q->sched.inherited.ranks);
	const struct heap_node *deadline = heap_first(&q->sched.inherited.deadlines);
	uint64_t rank_now = rank != NULL ? rank->key : UINT64_MAX;
	uint64_t deadline_now = deadline != NULL ? deadline->key : UINT64_MAX;

	q->sched.inherited.stale = false;
	if (rank_now == q->sched.inherited.rank &&
	    deadline_now == q->sched.inherited.deadline_ns)
		return;
	q->sched.inherited.rank = rank_now;
	q->sched.inherited.deadline_ns = deadline_now;
	come_again(q, urgency_class(q));
	if (inherits(q) && inherit_raises_rank(q))
		preempt_cancel(q);
	/* It lends on what it has now. */
	if (q->waiter.waiting) {
		inherit_end(q);
		inherit_begin(q);
	}
}

static void todo(struct hal_queue *q)
{
	if (q->sched.policy_asks)
		policy_begin_stop(q);
	if (q->sched.inherited.stale)
		look_at_lent(q);
	if (q->sched.urgent)
		preempt_update(q);
}

static void release_stopped(struct hal_queue *q)
{
	(void)policy_start_queue(q);
}

const struct turn_listener turn_listener = {
	.todo = todo,
	.release = release_stopped,
	.waits = inherit_try,
	.ended = suspend_check_quiet,
	.quiet = suspend_quiet,
	.thaw_all = suspend_thaw_all,
	.lost = suspend_lost,
};
