/* SPDX-License-Identifier: Apache-2.0 */
/* watchdog.c - overrule a policy that chooses wrongly, stalls the device or starves
 * queues. */
#include "sched/watchdog.h"

#include "loop/engine.h"
#include "sched/decisions.h"
#include "sched/policy.h"
#include "util/log.h"

/* After FAULTS_MAX faults within FAULTS_WINDOW_NS of device time the policy is not asked
 * any more. */
#define FAULTS_MAX       16u
#define FAULTS_WINDOW_NS UINT64_C(1000000000)

void watchdog_release(struct hal_queue *q)
{
	if (q->sched.policy_stops)
		q->dev->sched.listener->release(q);
}

/* ---- faults ------------------------------------------------------------------------ */

COLD void watchdog_fault(struct hal_device *dev, counter *kind, const char *reason)
{
	struct policy_faults *f = &dev->sched.faults;

	counter_add(kind, 1);
	/* The same fault may come again and again: log it once. */
	if (atomic_exchange(&f->reason, reason) != reason)
		LOG(HAL_LOG_WARNING, "%s: policy %s: %s", dev->name,
		    dev->sched.policy->name, reason);
	DECIDED(dev, DECIDED_FAULT, NULL, NULL, reason, 0);
	/* Some faults never put a policy out of force.  A policy that orders by keys
	 * always makes valid choices, and queues starve under it only as configured.  A
	 * policy with HAL_POLICY_STARVES starves queues on purpose. */
	if (dev->sched.policy->key != NULL ||
	    (kind == &f->starved && (dev->sched.policy->flags & HAL_POLICY_STARVES) != 0))
		return;
	if (f->window == 0 || dev->now - f->window_ns > FAULTS_WINDOW_NS) {
		f->window = 0;
		f->window_ns = dev->now;
	}
	if (++f->window < FAULTS_MAX)
		return;
	atomic_store(&f->fallback, true);
	DECIDED(dev, DECIDED_FALLBACK, NULL, NULL, reason, 0);
	LOG(HAL_LOG_WARNING,
	    "%s: policy %s is given up after %u faults; queues are served in order of "
	    "arrival",
	    dev->name, dev->sched.policy->name, FAULTS_MAX);
	/* Resume the queues that the policy has stopped: a policy out of force is not
	 * called to resume them. */
	policy_for_each_queue(dev, watchdog_release);
}

void watchdog_reset(struct policy_faults *f)
{
	counter_set(&f->invalid, 0);
	counter_set(&f->stalls, 0);
	counter_set(&f->starved, 0);
	counter_set(&f->longest_wait_ns, 0);
	f->window = 0;
	atomic_store(&f->reason, NULL);
	atomic_store(&f->fallback, false);
}

/* ---- stops that last too long ------------------------------------------------------ */

void watchdog_limit_stop(struct hal_device *dev, const struct hal_queue *q)
{
	uint64_t at_ns =
		hal_bk_after(q->sched.suspend_asked_ns, dev->sched.limits.starve_ns);

	at_ns = hal_bk_after(at_ns, 1);
	if (at_ns >= dev->sched.stops_ns)
		return;
	dev->sched.stops_ns = at_ns;
	timer_at(dev, at_ns);
}

/* Resume q if the policy has stopped it for too long.  The policy may not stop q again
 * until q has completed a command. */
static void end_long_stop(struct hal_queue *q)
{
	struct hal_device *dev = q->dev;

	if (!q->sched.policy_stops || q->sched.policy_asks)
		return;
	if (dev->now - q->sched.suspend_asked_ns <= dev->sched.limits.starve_ns) {
		watchdog_limit_stop(dev, q);
		return;
	}
	if (!queue_empty(q)) {
		q->sched.protected_until = counter_get(&q->observe.account.completed) + 1;
		watchdog_fault(dev, &dev->sched.faults.starved,
			       "the policy kept a queue stopped for longer than "
			       "policy.timeout_ms");
	}
	watchdog_release(q);
}

void watchdog_check_stops(struct hal_device *dev)
{
	dev->sched.stops_ns = UINT64_MAX;
	dev->acted = true;
	policy_for_each_queue(dev, end_long_stop);
}

/* ---- wrong choices of the policy --------------------------------------------------- */

/* Hold part until at_ns, because the policy chose no queue of it.  Limit the hold so that
 * the queue that waits longest is served within [policy] timeout_ms. */
static void hold_partition(struct hal_partition *part, uint64_t at_ns)
{
	struct hal_device *dev = part->dev;
	uint64_t since = watchdog_oldest(part)->sched.policy_view.runnable_ns;
	uint64_t last = hal_bk_after(since, dev->sched.limits.starve_ns);

	dev->sched.held += !part->sched.held;
	part->sched.held = true;
	if (last < at_ns)
		at_ns = hal_bk_after(last, 1);
	DECIDED(dev, DECIDED_HOLD, part, NULL, NULL, at_ns,
		part->sched.policy_view.runnable);
	if (at_ns < dev->sched.hold_ns)
		dev->sched.hold_ns = at_ns;
	timer_at(dev, at_ns);
}

NOINLINE void watchdog_unhold(struct hal_partition *part)
{
	struct hal_device *dev = part->dev;

	part->sched.held = false;
	if (--dev->sched.held > 0)
		return;
	dev->sched.hold_ns = UINT64_MAX;
	timer_first(dev);
}

COLD struct hal_queue *watchdog_overrule(struct hal_partition *part, counter *kind,
					 const char *reason)
{
	struct hal_queue *q = watchdog_oldest(part);

	watchdog_fault(part->dev, kind, reason);
	DECIDED(part->dev, DECIDED_OVERRULED, part, q, reason, 0);
	policy_take_back(q, HAL_POLICY_OVERRULED);
	return q;
}

/* Handle that the policy chose no queue of part and gave no time, while nothing is in
 * flight.  Return the queue to serve instead, or NULL to wait. */
static COLD struct hal_queue *stalled(struct hal_partition *part)
{
	struct hal_device *dev = part->dev;

	/* The policy may be waiting for an event that is sure to come: space on the
	 * device for a blocked partition, or the end of a suspend or resize. */
	if (!list_empty(&dev->command.blocked) || dev->command.pending > 0) {
		dev->work |= WORK_HELD;
		hold_partition(part, HAL_POLICY_NEVER);
		return NULL;
	}
	/* The policy may also be waiting for other partitions, so call pick for those
	 * first. */
	if (!part->sched.deferred && !list_empty(&dev->command.runnable)) {
		part->sched.deferred = true;
		partition_runnable(part);
		return NULL;
	}
	part->sched.deferred = false;
	return watchdog_overrule(
		part, &dev->sched.faults.stalls,
		"the policy chose no queue and gave no time, while nothing runs");
}

NOINLINE struct hal_queue *watchdog_no_choice(struct hal_partition *part,
					      uint64_t until_ns)
{
	struct hal_device *dev = part->dev;

	if (until_ns <= dev->now)
		return watchdog_overrule(
			part, &dev->sched.faults.stalls,
			"the policy chose no queue until a time that has passed");
	if (until_ns == HAL_POLICY_NEVER && part->command.inflight == 0) {
		if (list_empty(&dev->command.inflight_list))
			return stalled(part);
		part->sched.deferred = false;
		dev->work |= WORK_HELD;
	}
	hold_partition(part, until_ns);
	return NULL;
}
