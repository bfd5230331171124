/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watchdog.h - overrule a policy that makes an invalid choice, stalls the device or lets
 * a queue starve; by the engine.
 */
#ifndef HAL_SCHED_WATCHDOG_H
#define HAL_SCHED_WATCHDOG_H

#include "command/queue.h"
#include "loop/device.h"
#include "space/partition.h"

/* Return the queue of part that became runnable first; part has one. */
static inline struct hal_queue *watchdog_oldest(const struct hal_partition *part)
{
	return container_of(part->sched.waiting.next, struct hal_queue, sched.waiting);
}

/* Resume q if the policy has stopped it. */
void watchdog_release(struct hal_queue *q);

/* Count a wrong answer or request of the policy under kind.  After too many, go on
 * without it. */
void watchdog_fault(struct hal_device *dev, counter *kind, const char *reason) COLD;

/* Wake the engine when q, which the policy has stopped, has been so for as long as it
 * may. */
void watchdog_limit_stop(struct hal_device *dev, const struct hal_queue *q);

/* Resume the queues that the policy has stopped for too long. */
void watchdog_check_stops(struct hal_device *dev);

/* Ignore the policy's choice for part and return the queue that became runnable first. */
struct hal_queue *watchdog_overrule(struct hal_partition *part, counter *kind,
				    const char *reason) COLD;

/* Handle that the policy names no queue of part until until_ns.  Return the queue to
 * serve instead if it may not, else NULL: part is held. */
struct hal_queue *watchdog_no_choice(struct hal_partition *part, uint64_t until_ns);

/* End the hold of part. */
void watchdog_unhold(struct hal_partition *part);

/* Forget the faults of the policy that was replaced. */
void watchdog_reset(struct policy_faults *f);

#endif
