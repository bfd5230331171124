/* SPDX-License-Identifier: Apache-2.0 */
/*
 * preempt.h - stop less urgent queues of a partition while more urgent work needs it.
 * Engine only.
 */
#ifndef HAL_SCHED_PREEMPT_H
#define HAL_SCHED_PREEMPT_H

#include "command/queue.h"

/* Re-evaluate preemption for q, which is marked urgent: stop less urgent queues, or
 * resume them if q no longer needs the device.  Call only from the top level of an engine
 * turn. */
void preempt_update(struct hal_queue *q);
/* Resume q if it is preempted, unless the work for which it is preempted outranks even
 * the urgency that q inherits now. */
void preempt_cancel(struct hal_queue *q);
/* Remove q, which is being destroyed, from all preemption state, and resume the queues
 * preempted only for q. */
void preempt_leave(struct hal_queue *q);

#endif
