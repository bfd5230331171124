/* SPDX-License-Identifier: Apache-2.0 */
/* urgency.h - how urgent a queue is, by itself and by inheritance.  Engine only. */
#ifndef HAL_SCHED_URGENCY_H
#define HAL_SCHED_URGENCY_H

#include "command/queue.h"
#include "loop/device.h"

/* Return whether q inherits an urgency from a queue that waits for it. */
static inline bool inherits(const struct hal_queue *q)
{
	return (q->sched.inherited.rank & q->sched.inherited.deadline_ns) != UINT64_MAX;
}

/* Apply the urgency that q inherits to the command that the policy sees. */
void inherit_into_view(struct hal_queue *q);
/* Return the urgency of q: that of its next command or of its oldest in-flight command,
 * whichever is more urgent, raised by what q inherits. */
struct urgency inherit_urgency(const struct hal_queue *q);
/* Return whether a is more urgent than b. */
bool urgency_above(const struct urgency *a, const struct urgency *b);
/* Return the urgency that q donates to the queue it waits for: the more urgent of its own
 * and what it inherits. */
struct urgency urgency_to_donate(const struct hal_queue *q);
/* Return the service class of q, raised by what it inherits. */
uint32_t urgency_class(const struct hal_queue *q);
/* Return the deadline of q's next command, or of its in-flight work if q is not runnable.
 * An earlier inherited deadline counts.  UINT64_MAX: none. */
uint64_t inherit_deadline(const struct hal_queue *q);
/* Return whether q inherits a higher class or priority than its own. */
bool inherit_raises_rank(const struct hal_queue *q);

/* ---- changes of urgency --------------------------------------------------------- */

/* Mark q, for which other queues may be preempted, as urgent.  The engine then runs
 * preempt_update for q from its todo list. */
void preempt_wanted(struct hal_queue *q);
/* Withdraw the urgency that q donates, if any, because q no longer waits. */
static inline void inherit_end(struct hal_queue *q)
{
	if (UNLIKELY(q->sched.donates.to != NULL))
		queue_withdraw_urgency(q);
}

#endif
