/* SPDX-License-Identifier: Apache-2.0 */
/* turn.c - the scheduler's handlers for events of an engine turn. */
#include "sched/turn.h"

#include "sched/inherit.h"
#include "sched/policy.h"
#include "sched/policy_host.h"
#include "sched/preempt.h"
#include "sched/suspend.h"
#include "space/partition.h"

/* Take q from the policy, change its class, and enqueue it again if it is runnable. */
static void reenqueue(struct hal_queue *q, uint32_t service_class)
{
	bool runnable = q->runnable;

	queue_withdraw(q, HAL_POLICY_INHERITS);
	policy_set_class(q, service_class);
	/* Less urgent commands may delay q's in-flight commands. */
	if (q->sched.preempts && q->inflight_count > 0)
		preempt_wanted(q);
	if (!runnable)
		return;
	q->runnable = true;
	policy_enqueue(q);
	partition_runnable(q->part);
}

/* Put the urgency that q inherits into force, if it has changed. */
static void update_inherited(struct hal_queue *q)
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
	reenqueue(q, urgency_class(q));
	if (inherits(q) && inherit_raises_rank(q))
		preempt_cancel(q);
	/* Donate the new urgency to the queue that q itself waits for. */
	if (q->waiter.waiting) {
		inherit_end(q);
		inherit_begin(q);
	}
}

/* Carry out the actions that are pending for q. */
static void todo(struct hal_queue *q)
{
	if (q->sched.policy_asks)
		policy_begin_stop(q);
	if (q->sched.inherited.stale)
		update_inherited(q);
	if (q->sched.urgent)
		preempt_update(q);
}

/* Resume q, which the policy has stopped. */
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
