/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy_host.c - the services that a policy may call: alarms, stops, units, bandwidth.
 *
 * The policy may call its host from inside any of its callbacks, even about the queue
 * that the callback is for.  So a requested stop begins later, at the top level of the
 * engine turn (policy_begin_stop).  Invalid requests are refused and count as faults.
 */
#include "sched/policy_host.h"

#include <errno.h>

#include "loop/engine.h"
#include "sched/backlog.h"
#include "sched/beside.h"
#include "sched/decisions.h"
#include "sched/expect.h"
#include "sched/limit.h"
#include "sched/policy.h"
#include "sched/suspend.h"
#include "sched/urgency.h"
#include "sched/watchdog.h"
#include "space/partition.h"
#include "util/error.h"

static struct hal_queue *queue_of(struct hal_policy_queue *view)
{
	return container_of(view, struct hal_queue, sched.policy_view);
}

/* Convert -errno to the positive number that a decision records; 0 for success. */
static uint64_t errno_of(int err)
{
	return err < 0 ? (uint64_t)-err : 0;
}

/* ---- services ------------------------------------------------------------------- */

int policy_start_queue(struct hal_queue *q)
{
	if (!q->sched.policy_stops)
		return fail(EINVAL,
			    "queue %u cannot be started: the policy has not stopped it",
			    q->obj.id);
	if (!q->sched.policy_asks)
		return suspend_end(q); /* clears .policy_stops */
	q->sched.policy_asks = false;
	q->sched.policy_stops = false;
	return 0;
}

static int host_start(void *device, struct hal_policy_queue *queue)
{
	struct hal_queue *q = queue_of(queue);
	int err = policy_start_queue(q);

	(void)device;
	DECIDED(q->dev, DECIDED_START, NULL, q, NULL, errno_of(err));
	return err;
}

static void host_alarm(void *device, uint64_t at_ns)
{
	struct hal_device *dev = device;

	/* Move a past time just into the future, so that an alarm cannot stop time from
	 * passing. */
	if (at_ns <= dev->now)
		at_ns = hal_bk_after(dev->now, 1);
	dev->sched.alarm_ns = at_ns;
	timer_at(dev, at_ns);
}

/* Check the policy's request to stop q in mode, and record it.  Return 0 or -errno. */
static int ask_stop(struct hal_queue *q, uint32_t mode)
{
	int err;

	if (q->sched.policy_stops)
		return fail(EBUSY, "queue %u: the policy has already stopped it",
			    q->obj.id);
	if (counter_get(&q->observe.account.completed) < q->sched.protected_until)
		return fail(EBUSY,
			    "queue %u: the policy had stopped it for too long; it must "
			    "complete a command before it can be stopped again",
			    q->obj.id);
	if (mode == HAL_SUSPEND_KILL && q->sched.kills >= q->dev->sched.limits.kills)
		return fail(EPERM,
			    "queue %u: its command has been killed %u times; [policy] "
			    "kills = %u allows no more",
			    q->obj.id, q->sched.kills, q->dev->sched.limits.kills);
	if (mode != HAL_SUSPEND_DRAIN &&
	    (q->sched.no_preempt || (q->sched.starving && suspend_starved_too_long(q))))
		return fail(EBUSY,
			    "queue %u: it was stopped for too long without progress; "
			    "only DRAIN can stop it until it completes a command",
			    q->obj.id);
	if (inherits(q) && inherit_raises_rank(q))
		return fail(EBUSY,
			    "queue %u: a queue of higher class or priority waits for it",
			    q->obj.id);
	err = suspend_check(q, mode, false);
	if (err != 0)
		return err;
	q->sched.policy_stops = true;
	q->sched.policy_asks = true;
	q->sched.suspend_mode = (uint8_t)mode;
	queue_todo(q);
	return 0;
}

static int host_stop(void *device, struct hal_policy_queue *queue, uint32_t mode)
{
	struct hal_queue *q = queue_of(queue);
	int err = ask_stop(q, mode);

	(void)device;
	DECIDED(q->dev, DECIDED_STOP, NULL, q, NULL, mode, errno_of(err));
	return err;
}

void policy_begin_stop(struct hal_queue *q)
{
	q->sched.policy_asks = false;
	/* The application may have suspended and resumed q since the request, which
	 * clears .policy_stops.  So set .policy_stops again. */
	q->sched.policy_stops = true;
	if (suspend_begin(q, q->sched.suspend_mode, false) == 0) {
		suspend_mark_starving(q);
		watchdog_limit_stop(q->dev, q);
		return;
	}
	/* The application has suspended q already, or the device refuses.  When the
	 * policy starts q, it gets an error. */
	q->sched.policy_stops = false;
	policy_changed(q->part, q);
}

/* Refuse an invalid request of the policy and count a fault.  Return -EINVAL.  The error
 * message names the value concerned. */
static COLD int reject_request(struct hal_device *dev, const char *what, const char *name,
			       uint32_t value)
{
	watchdog_fault(dev, &dev->sched.faults.invalid, what);
	return fail(EINVAL, "policy %s: %s (%s %u)", dev->sched.policy->name, what, name,
		    value);
}

/* Return whether units is within the floor and ceiling of part.  If not, count a
 * fault. */
static bool units_check(struct hal_device *dev, const struct hal_policy_partition *part,
			uint32_t units)
{
	if (units < part->floor)
		(void)reject_request(
			dev,
			"the policy requested fewer units than the partition's floor",
			"floor", part->floor);
	else if (units > part->ceiling)
		(void)reject_request(
			dev,
			"the policy requested more units than the partition's ceiling",
			"ceiling", part->ceiling);
	return units >= part->floor && units <= part->ceiling;
}

/* Return 0, or -ENODEV if dev is lost: no request may reach a lost device. */
static int lost_check(const struct hal_device *dev)
{
	return atomic_load(&dev->lost) == 0 ? 0 : fail(ENODEV, "%s is lost", dev->name);
}

/* Record the policy's request to change part from had to units.  Return err, the result
 * of the request. */
static int record_units_request(struct hal_device *dev,
				const struct hal_policy_partition *part, uint32_t had,
				uint32_t units, int err)
{
	if (had != units)
		DECIDED(dev, DECIDED_UNITS,
			container_of(part, const struct hal_partition, sched.policy_view),
			NULL, NULL, had, units, errno_of(err));
	return err;
}

static int host_resize(void *device, struct hal_policy_partition *part, uint32_t units)
{
	struct hal_partition *p =
		container_of(part, struct hal_partition, sched.policy_view);
	uint32_t had = part->units;
	int err = units_check(device, part, units) ? lost_check(device) : -EINVAL;

	if (err == 0)
		err = p->dev->space.moves->units(p, units);
	return record_units_request(device, part, had, units, err);
}

static int host_move(void *device, const struct hal_policy_move *moves, uint32_t count)
{
	struct hal_device *dev = device;
	uint32_t had[HAL_POLICY_MOVES];
	int err;

	if (count > HAL_POLICY_MOVES)
		return reject_request(
			dev, "the policy requested a plan of too many partitions",
			"limit", HAL_POLICY_MOVES);
	dev->sched.plan_number++;
	for (uint32_t i = 0; i < count; i++) {
		struct hal_partition *p = container_of(
			moves[i].part, struct hal_partition, sched.policy_view);

		if (!units_check(dev, moves[i].part, moves[i].units))
			return -EINVAL;
		if (p->sched.plan_number == dev->sched.plan_number)
			return reject_request(dev,
					      "the policy requested a plan that "
					      "moves a partition twice",
					      "partition", moves[i].part->index);
		p->sched.plan_number = dev->sched.plan_number;
		had[i] = moves[i].part->units;
	}
	err = lost_check(dev);
	if (err == 0)
		err = dev->space.moves->plan(dev, moves, count);
	for (uint32_t i = 0; i < count; i++)
		(void)record_units_request(dev, moves[i].part, had[i], moves[i].units,
					   err);
	return err;
}

static int host_limit(void *device, struct hal_policy_partition *part, uint64_t bytes,
		      uint64_t window_ns)
{
	struct hal_device *dev = device;
	struct hal_partition *p =
		container_of(part, struct hal_partition, sched.policy_view);
	int err;

	if ((dev->info.caps & HAL_CAP_LIMIT) == 0)
		return fail(ENOTSUP, "%s does not support bandwidth limits", dev->name);
	if (bytes != 0 && (window_ns == 0 || window_ns > dev->info.limit_window_ns))
		return reject_request(dev,
				      "the policy requested a bandwidth limit with a "
				      "window of 0 or above the device's maximum",
				      "partition", part->index);
	if (bytes != 0 && bytes < dev->info.limit_bytes)
		return reject_request(dev,
				      "the policy requested a bandwidth limit below the "
				      "device's minimum",
				      "partition", part->index);
	limit_own(p, &bytes, &window_ns);
	err = lost_check(dev);
	if (err == 0)
		err = dev->limit(dev->hot_bk, p->bk, bytes, window_ns);
	DECIDED(dev, DECIDED_LIMIT, p, NULL, NULL, bytes, window_ns, errno_of(err));
	return err;
}

static uint64_t host_window(void *device, uint64_t bandwidth, uint64_t *window_ns)
{
	const struct hal_device *dev = device;

	return limit_window(&dev->info, bandwidth, window_ns);
}

static void host_ask(void *device, struct hal_policy_partition *part)
{
	const struct hal_device *dev = device;

	/* Ignore calls from inside pick: two partitions that request each other would
	 * never end. */
	if (!dev->sched.picking)
		partition_runnable(
			container_of(part, struct hal_partition, sched.policy_view));
}

/* ---- installing a policy -------------------------------------------------------- */

int policy_install(struct hal_device *dev, const struct hal_policy *p,
		   struct hal_bk_config *cfg)
{
	const struct hal_policy_host host = {
		.size = sizeof(host),
		.device = dev,
		.alarm = host_alarm,
		.stop = host_stop,
		.start = host_start,
		.resize = host_resize,
		.move = host_move,
		.expect = expect_on,
		.beside = beside_expect,
		.waiting = backlog_of,
		.limit = host_limit,
		.window = host_window,
		.ask = host_ask,
		.info = &dev->info,
	};

	return policy_replace(dev, p, cfg, &host);
}
