/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inherit.h - priority inheritance: a queue inherits class, priority and deadline from
 * the queues that wait for its points.  Engine only.
 */
#ifndef HAL_SCHED_INHERIT_H
#define HAL_SCHED_INHERIT_H

#include "command/queue.h"
#include "sched/urgency.h"

/* Find the queue that q waits for, and donate q's urgency to it.  Called by inherit_begin
 * if a donation may change the schedule. */
void inherit_try(struct hal_queue *q) COLD;

/* Donate q's urgency: q has begun to wait, by .waiter.  Do nothing if q has normal class,
 * no priority and no deadline, and waits for a queue that is unknown, of another device,
 * or no less urgent. */
static inline void inherit_begin(struct hal_queue *q)
{
	const struct hal_queue *x = q->waiter.timeline->queue;

	if (LIKELY((q->issue_terms.deadline_ns | (uint32_t)q->issue_terms.priority |
		    q->sched.own_class) == 0 &&
		   !inherits(q)) &&
	    (x == NULL || x->dev != q->dev ||
	     (x->sched.own_class == HAL_CLASS_NORMAL && x->issue_terms.priority >= 0)))
		return;
	q->dev->sched.listener->waits(q);
}

/* Have the queues of part, which has none yet, inherit urgency only from, and donate it
 * only to, queues in partitions of the same owner; 0 is what all others have.  Any
 * thread. */
void inherit_within(struct hal_partition *part, uint64_t owner);

/* End all donations of and to q, which is being destroyed. */
void inherit_leave(struct hal_queue *q);

#endif
