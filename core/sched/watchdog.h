/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watchdog.h - overrule a policy that makes an invalid choice, stalls the device or lets
 * a queue starve.  Engine only.
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

/* Count a wrong answer or request of the policy under kind.  After too many, stop asking
 * the policy: queues are then served in order of arrival. */
void watchdog_fault(struct hal_device *dev, counter *kind, const char *reason) COLD;

/* Wake the engine when the policy's stop of q reaches [policy] timeout_ms. */
void watchdog_limit_stop(struct hal_device *dev, const struct hal_queue *q);

/* Resume the queues that the policy has stopped for too long. */
void watchdog_check_stops(struct hal_device *dev);

/* Ignore the policy's choice for part, and return the queue that became runnable
 * first. */
struct hal_queue *watchdog_overrule(struct hal_partition *part, counter *kind,
				    const char *reason) COLD;

/* Handle a policy that chooses no queue of part until until_ns.  If that is allowed, hold
 * part and return NULL.  Otherwise return the queue to serve instead. */
struct hal_queue *watchdog_no_choice(struct hal_partition *part, uint64_t until_ns);

/* End the hold of part, because the policy may choose a queue of part again or because
 * part has no runnable queue. */
void watchdog_unhold(struct hal_partition *part);

/* Reset the fault counts for a new policy. */
void watchdog_reset(struct policy_faults *f);

#endif
