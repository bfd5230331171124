/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inherit.h - who waits for a queue's point lends it class, priority and deadline; by the
 * engine.
 */
#ifndef HAL_SCHED_INHERIT_H
#define HAL_SCHED_INHERIT_H

#include "command/queue.h"
#include "sched/urgency.h"

/* As inherit_begin says, where it matters. */
void inherit_try(struct hal_queue *q) COLD;

/* q has begun to wait, by .waiter.  What nobody could use is not lent: usual work beside
 * usual work. */
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

/* q is destroyed. */
void inherit_leave(struct hal_queue *q);

#endif
