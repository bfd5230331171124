/* SPDX-License-Identifier: Apache-2.0 */
/* urgency.h - how urgent a queue is, by itself and by what it is lent; by the engine. */
#ifndef HAL_SCHED_URGENCY_H
#define HAL_SCHED_URGENCY_H

#include "command/queue.h"
#include "loop/device.h"

static inline bool inherits(const struct hal_queue *q)
{
	return (q->sched.inherited.rank & q->sched.inherited.deadline_ns) != UINT64_MAX;
}

/* Into .view.head. */
void inherit_into_view(struct hal_queue *q);
/* Of q's next command or of the oldest that the device has, whichever is more urgent,
 * with what it is lent. */
struct urgency inherit_urgency(const struct hal_queue *q);
bool urgency_above(const struct urgency *a, const struct urgency *b);
/* What q lends to those it waits for: its own, or what it is lent itself. */
struct urgency urgency_to_donate(const struct hal_queue *q);
/* The class that q has with what it is lent. */
uint32_t urgency_class(const struct hal_queue *q);
/* When q's next command has to end, or what the device has if nothing is runnable, with
 * what it is lent; UINT64_MAX: at any time. */
uint64_t inherit_deadline(const struct hal_queue *q);
/* Somebody of a higher class or priority waits for it. */
bool inherit_raises_rank(const struct hal_queue *q);

/* ---- what changes it ----------------------------------------------------------------- */

/* q, which others may make way for, is runnable: preempt_update comes. */
void preempt_wanted(struct hal_queue *q);
/* Take back what q lends, if it lends anything, because it no longer waits. */
static inline void inherit_end(struct hal_queue *q)
{
	if (UNLIKELY(q->sched.donates.to != NULL))
		queue_withdraw_urgency(q);
}

#endif
