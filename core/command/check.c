/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check.c - assertions of docs/state.md for queues.
 *
 * A build with NDEBUG does not contain these checks.  In other builds the engine calls
 * device_check at the end of each turn.
 */
#include "command/check.h"

#ifndef NDEBUG

#include <assert.h>

#include "space/partition.h"

/* Check only devices with at most this many queues, and at most this many partitions. */
enum { CHECKED = 64 };

/* ---- a queue ----------------------------------------------------------------------- */

/* Return the number of in-flight commands of q that the device has not ended and that no
 * suspend has killed. */
static uint32_t unfinished(const struct hal_queue *q)
{
	const struct inflight *f = q->oldest;
	uint32_t n = 0;

	for (uint32_t i = 0; i < q->inflight_count; i++, f = f->next)
		n += !f->done && !f->killed;
	return n;
}

static void check_inflight(const struct hal_queue *q)
{
	const struct inflight *f = q->oldest;

	assert(q->inflight_count <= q->inflight_max);
	for (uint32_t i = 0; i < q->inflight_count; i++, f = f->next) {
		assert(f->queue == q);
		assert(!f->killed || (!f->done && q->state == QUEUE_SUSPENDING &&
				      q->sched.suspend_mode == HAL_SUSPEND_KILL));
	}
	assert(q->unused == f);
	assert(q->sched.frozen == (q->state == QUEUE_SUSPENDED ? unfinished(q) : 0));
}

static void check_issue(const struct hal_queue *q)
{
	if (q->runnable) {
		assert(!q->parked && !q->halted && !q->in_callback);
		assert(q->state == QUEUE_RUNNING && q->err == 0);
		assert(q->next == cursor_record(q, q->issue));
		assert(record_for_device(q->next));
		assert(q->inflight_count < q->inflight_max);
		assert(list_empty(&q->memory.evict_turn));
	}
	if (q->parked)
		assert(q->err == 0 && !q->in_callback);
	assert(q->parked || (!q->waiter.waiting && !q->timer.set && !q->memory.parked));
	assert(q->waiter.waiting + q->timer.set + q->memory.parked <= 1);
	assert(!q->in_callback || q->inflight_count == 0);
}

static void check_stop(const struct hal_queue *q)
{
	bool preempted = !list_empty(&q->sched.preempted);

	if (q->state == QUEUE_RUNNING) {
		assert(!q->sched.bk_suspended && !q->sched.resume_wanted &&
		       !q->sched.final && !preempted);
		assert(!q->sched.policy_stops || q->sched.policy_asks);
	}
	if (q->state == QUEUE_SUSPENDING)
		assert(q->sched.bk_suspended || q->inflight_count > 0);
	if (q->sched.final) {
		assert(!q->sched.policy_stops && !preempted && !q->sched.resume_wanted);
		assert(q->state == QUEUE_SUSPENDING || q->err != 0);
	}
	assert(!q->sched.policy_stops || !preempted);
	/* While the policy's request or a change of inherited urgency is pending, q is on
	 * the todo list, so the engine will handle it. */
	assert(!(q->sched.policy_asks || q->sched.inherited.stale) ||
	       !list_empty(&q->todo));
}

static void check_end(const struct hal_queue *q)
{
	assert(q->err != 0 || !q->failing);
	assert(q->err == 0 || atomic_load(&q->open) == 0);
	assert(list_empty(&q->busy) || !queue_empty(q));
}

static uint64_t first_key(const struct heap *h)
{
	return heap_empty(h) ? UINT64_MAX : heap_first(h)->key;
}

static void check_inherited(const struct hal_queue *q)
{
	if (q->sched.donates.to != NULL) {
		assert(q->waiter.waiting);
		assert(q->sched.donates.to != q && q->sched.donates.to->dev == q->dev);
	}
	if (!q->sched.inherited.stale) {
		assert(q->sched.inherited.rank == first_key(&q->sched.inherited.ranks));
		assert(q->sched.inherited.deadline_ns ==
		       first_key(&q->sched.inherited.deadlines));
	}
}

/* Assert that .slow has its bits for those states that must send q down the slow path. */
static void check_slow(const struct hal_queue *q)
{
	const uint32_t slow = q->slow;

	assert(((slow & SLOW_SUSPENDING) != 0) == (q->state == QUEUE_SUSPENDING));
	assert(((slow & SLOW_DEFERRED) != 0) == !list_empty(&q->deferred));
	assert(((slow & SLOW_STOPPED) != 0) == (q->sched.stopped_ns != 0));
	assert(((slow & SLOW_RECOLOR) != 0) == q->memory_watched);
	if (q->sched.kills != 0 || q->sched.killed || q->sched.starving ||
	    q->sched.no_preempt)
		assert((slow & SLOW_KILLED) != 0);
}

void queue_check(const struct hal_queue *q)
{
	check_inflight(q);
	check_issue(q);
	check_stop(q);
	check_end(q);
	check_inherited(q);
	check_slow(q);
}

/* ---- a device ---------------------------------------------------------------------- */

static bool has_many(const struct hal_device *dev)
{
	uint32_t queues = 0;

	if (dev->space.partition_count > CHECKED)
		return true;
	hal_list_for_each (it, &dev->space.partitions)
		queues += container_of(it, struct hal_partition, on_device)->queue_count;
	return queues > CHECKED;
}

/* Return the number of events that the device has yet to report for the queues of part
 * and for the move of part. */
static uint32_t owed(const struct hal_partition *part)
{
	uint32_t n = part->command.inflight + (part->moving.units != 0);

	hal_list_for_each (it, &part->queues) {
		const struct hal_queue *q =
			container_of(it, struct hal_queue, on_partition);

		n += q->state == QUEUE_SUSPENDING && q->sched.bk_suspended;
	}
	return n;
}

void device_check(struct hal_device *dev)
{
	uint32_t pending = 0;

	if (has_many(dev))
		return;
	hal_list_for_each (p, &dev->space.partitions) {
		const struct hal_partition *part =
			container_of(p, struct hal_partition, on_device);

		hal_list_for_each (it, &part->queues)
			queue_check(container_of(it, struct hal_queue, on_partition));
		pending += owed(part);
	}
	assert(dev->command.pending == pending);
	dev->space.moves->check(dev);
	dev->memory.residency->check(dev);
}

#endif
