/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy.h - the host of a sharing policy (hal/policy.h): what it is told and what it is
 * asked; by the engine.  watchdog.h overrules it.
 */
#ifndef HAL_SCHED_POLICY_H
#define HAL_SCHED_POLICY_H

#include "command/queue.h"
#include "loop/device.h"
#include "space/partition.h"

/* The same as policy_install (policy_host.h), with what the policy may ask. */
int policy_replace(struct hal_device *dev, const struct hal_policy *p,
		   struct hal_bk_config *cfg, const struct hal_policy_host *host);
/* Which it is, and its faults; the engine, or while none runs. */
void policy_info(const struct hal_device *dev, struct hal_policy_info *info);
/* The device closes. */
void policy_remove(struct hal_device *dev);

/* ---- what policy.c and its watchdog share -------------------------------------------- */

/* Whether the policy is still asked: too many faults put it out of force. */
static inline bool policy_in_force(const struct hal_device *dev)
{
	return !atomic_load_explicit(&dev->sched.faults.fallback, memory_order_relaxed);
}

/* The heap that has the key of q, or is to have it. */
static ALWAYS_INLINE struct heap *policy_heap(struct hal_queue *q)
{
	return &q->part->sched.order[q->sched.policy_view.service_class];
}

/* Take q, which is runnable, from the policy. */
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

/* ---- partitions, queues and their order ---------------------------------------------- */

void policy_partition_init(struct hal_partition *part);
int policy_attach(struct hal_queue *q);
void policy_detach(struct hal_queue *q);

/* A queue of that class comes. */
void policy_class(struct hal_partition *part, uint32_t service_class);
/* q, which the policy has not, is of that class now. */
void policy_set_class(struct hal_queue *q, uint32_t service_class);
/* Whoever comes would be alone, and need not be asked about. */
static inline bool policy_alone(const struct hal_partition *part)
{
	return part->sched.sole == NULL && part->sched.enqueued == part->sched.classes;
}
/* q is runnable: with the one that was alone so far. */
void policy_enqueue(struct hal_queue *q);
/* q was picked, but the device had no room. */
void policy_put_back(struct hal_queue *q);
void policy_dequeue(struct hal_queue *q, enum hal_policy_why why);
/* Take q from the runnable queues, if it is one of them. */
void queue_withdraw(struct hal_queue *q, enum hal_policy_why why);
/* Whose command is next; NULL: nobody's for now. */
struct hal_queue *policy_pick(struct hal_partition *part);
/* ev->status -EINTR: it was stopped inside.  before_ns: so long f had run when it was. */
void policy_ended(struct hal_queue *q, const struct inflight *f,
		  const struct hal_bk_event *ev, uint64_t before_ns);
void policy_changed(struct hal_partition *part, struct hal_queue *q);
/* The device has nothing more to end: who is held for that is asked for again. */
void policy_idle(struct hal_device *dev);
/* .alarm_ns, .hold_ns or .stops_ns may have come. */
void policy_timers(struct hal_device *dev);

#endif
