/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy.h - host a sharing policy (hal/policy.h): notify it of events, and ask it which
 * queue to serve.  Engine only.  The watchdog (watchdog.h) may overrule it.
 */
#ifndef HAL_SCHED_POLICY_H
#define HAL_SCHED_POLICY_H

#include "command/queue.h"
#include "loop/device.h"
#include "space/partition.h"

/* Do the work of policy_install (policy_host.h), with the services that p may call. */
int policy_replace(struct hal_device *dev, const struct hal_policy *p,
		   struct hal_bk_config *cfg, const struct hal_policy_host *host);
/* Report the policy in force and its faults.  Call it from the engine, or while none
 * runs. */
void policy_info(const struct hal_device *dev, struct hal_policy_info *info);
/* Destroy the policy's state when dev closes. */
void policy_remove(struct hal_device *dev);

/* ---- used by policy.c and the watchdog ------------------------------------------ */

/* Return whether the engine still asks the policy.  After too many faults the engine
 * ignores it. */
static inline bool policy_in_force(const struct hal_device *dev)
{
	return !atomic_load_explicit(&dev->sched.faults.fallback, memory_order_relaxed);
}

/* Return the heap for the key of q. */
static ALWAYS_INLINE struct heap *policy_heap(struct hal_queue *q)
{
	return &q->part->sched.order[q->sched.policy_view.service_class];
}

/* Withdraw runnable queue q from the policy. */
static inline void policy_take_back(struct hal_queue *q, enum hal_policy_why why)
{
	struct hal_device *dev = q->dev;
	const struct hal_policy *p = dev->sched.policy;

	if (!policy_in_force(dev))
		return;
	if (p->key != NULL)
		heap_remove(policy_heap(q), &q->sched.order);
	else if (p->dequeue != NULL)
		p->dequeue(dev->sched.policy_state, &q->part->sched.policy_view,
			   &q->sched.policy_view, why);
}

/* Call fn for every queue of dev. */
static inline void policy_for_each_queue(struct hal_device *dev,
					 void (*fn)(struct hal_queue *q))
{
	hal_list_for_each (p, &dev->space.partitions) {
		struct hal_partition *part =
			container_of(p, struct hal_partition, on_device);

		hal_list_for_each (it, &part->queues)
			fn(container_of(it, struct hal_queue, on_partition));
	}
}

/* ---- partitions, queues and their order ----------------------------------------- */

/* Initialize the scheduler's state of a new partition. */
void policy_partition_init(struct hal_partition *part);
/* Attach new queue q to the policy.  Return 0, or the policy's -errno if it refuses q. */
int policy_attach(struct hal_queue *q);
/* Detach q from the policy. */
void policy_detach(struct hal_queue *q);

/* Note that part has a queue of service_class.  After the first class other than NORMAL,
 * all its queues go through policy_enqueue, and a pick looks at all classes. */
void policy_class(struct hal_partition *part, uint32_t service_class);
/* Change the service class of q.  The policy must not hold q: q is not runnable, or has
 * been withdrawn. */
void policy_set_class(struct hal_queue *q, uint32_t service_class);
/* Return whether a queue that becomes runnable now is the only one, so that the policy
 * need not be asked about it. */
static inline bool policy_alone(const struct hal_partition *part)
{
	return part->sched.sole == NULL && part->sched.enqueued == part->sched.classes;
}
/* Pass q, which has become runnable, to the policy.  A queue that was alone until now is
 * passed as well. */
void policy_enqueue(struct hal_queue *q);
/* Make q runnable again: it was picked, but the device was full. */
void policy_put_back(struct hal_queue *q);
/* Take q, which was passed to the policy, out of the runnable queues. */
void policy_dequeue(struct hal_queue *q, enum hal_policy_why why);
/* Take q out of the runnable queues, if it is one of them. */
void queue_withdraw(struct hal_queue *q, enum hal_policy_why why);
/* Return the queue to serve next, and take it from the policy.  Return NULL if no queue
 * is to be served now. */
struct hal_queue *policy_pick(struct hal_partition *part);
/* The same, but only a queue of HAL_CLASS_LATENCY, and only under a policy that orders by
 * keys: what others would pick cannot be known without asking. */
struct hal_queue *policy_pick_urgent(struct hal_partition *part);
/* Notify the policy that command f of q has ended.  A status of -EINTR means that f was
 * stopped inside.  The time that f ran before it was last resumed is before_ns. */
void policy_ended(struct hal_queue *q, const struct inflight *f,
		  const struct hal_bk_event *ev, uint64_t before_ns);
/* Notify the policy that a stop of q has completed, or, with q NULL, that part has
 * moved. */
void policy_changed(struct hal_partition *part, struct hal_queue *q);
/* Ask the policy again for all partitions, because nothing is in flight any more. */
void policy_idle(struct hal_device *dev);
/* Handle the timers .alarm_ns, .hold_ns and .stops_ns whose time has passed. */
void policy_timers(struct hal_device *dev);

#endif
