/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inherit.h - who waits for a queue's point lends it class, priority and deadline; by the
 * engine.
 */
#ifndef HAL_SCHED_INHERIT_H
#define HAL_SCHED_INHERIT_H

#include "command/queue.h"

/* As their inline ones say, where it matters. */
void inherit_try(struct hal_queue *q) COLD;
void inherit_take_back(struct hal_queue *q) COLD;

static inline bool inherits(const struct hal_queue *q)
{
	return (q->lent.rank & q->lent.deadline_ns) != UINT64_MAX;
}

/* q has begun to wait, by .waiter.  What nobody could use is not lent: usual work beside
 * usual work. */
static inline void inherit_begin(struct hal_queue *q)
{
	const struct hal_queue *x = q->waiter.timeline->queue;

	if (LIKELY((q->asked.deadline_ns | (uint32_t)q->asked.priority | q->own_class) ==
			   0 &&
		   !inherits(q)) &&
	    (x == NULL || x->dev != q->dev ||
	     (x->own_class == HAL_CLASS_NORMAL && x->asked.priority >= 0)))
		return;
	inherit_try(q);
}

/* It does not any more. */
static inline void inherit_end(struct hal_queue *q)
{
	if (UNLIKELY(q->lends.to != NULL))
		inherit_take_back(q);
}

/* What q is lent has changed; at the turn's own level. */
void inherit_look(struct hal_queue *q);
/* q is destroyed. */
void inherit_leave(struct hal_queue *q);

/* Into .view.head. */
void inherit_see(struct hal_queue *q);
/* Of q's next command or of the oldest that the device has, whichever is more urgent,
 * with what it is lent. */
struct urgency inherit_urgency(const struct hal_queue *q);
bool urgency_above(const struct urgency *a, const struct urgency *b);
/* When q's next command has to end, or what the device has if nothing is runnable, with
 * what it is lent; UINT64_MAX: at any time. */
uint64_t inherit_deadline(const struct hal_queue *q);
/* Somebody of a higher class or priority waits for it. */
bool inherit_is_above(const struct hal_queue *q);

#endif
