/* SPDX-License-Identifier: Apache-2.0 */
/* preempt.h - what is less urgent makes way for what is more so; by the engine. */
#ifndef HAL_SCHED_PREEMPT_H
#define HAL_SCHED_PREEMPT_H

#include "command/queue.h"

/* What the device does may be in the way of q, or q not have anything any more; at the
 * turn's own level. */
void preempt_update(struct hal_queue *q);
/* What is waited for goes on. */
void preempt_cancel(struct hal_queue *q);
/* q is destroyed. */
void preempt_leave(struct hal_queue *q);

#endif
