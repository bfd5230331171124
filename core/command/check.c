/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check.c - assertions of docs/state.md for queues.
 *
 * A build with NDEBUG has none of this.  In the others the engine calls device_check at
 * the end of each turn.
 */
#include "command/check.h"

#ifndef NDEBUG

#include <assert.h>

#include "space/partition.h"

/* Queues and partitions of a device that is checked, at most. */
enum { CHECKED = 64 };

/* ---- a queue ----------------------------------------------------------------------- */

/* Return the number of commands of q that the device has or keeps. */
static uint32_t unfinished(const struct hal_queue *q)
{
	const struct flight *f = q->oldest;
	uint32_t n = 0;

	for (uint32_t i = 0; i < q->flight_count; i++, f = f->next)
		n += !f->done && !f->killed;
	return n;
}

static void check_flights(const struct hal_queue *q)
{
	const struct flight *f = q->oldest;

	assert(q->flight_count <= q->flight_max);
	for (uint32_t i = 0; i < q->flight_count; i++, f = f->next) {
		assert(f->queue == q);
		assert(!f->killed || (!f->done && q->state == QUEUE_SUSPENDING &&
				      q->suspend_mode == HAL_SUSPEND_KILL));
	}
	assert(q->fresh == f);
	assert(q->frozen == (q->state == QUEUE_SUSPENDED ? unfinished(q) : 0));
}

static void check_issue(const struct hal_queue *q)
{
	if (q->runnable) {
		assert(!q->parked && !q->limited && !q->halted && !q->in_callback);
		assert(q->state == QUEUE_RUNNING && q->err == 0);
		assert(q->next == cursor_record(q, q->issue));
		assert(record_for_device(q->next));
		assert(q->flight_count < q->flight_max);
		assert(list_empty(&q->evict_turn));
	}
	if (q->parked)
		assert(!q->limited && q->err == 0 && !q->in_callback);
	assert(q->parked || (!q->waiter.waiting && !q->timer.set && !q->recolor_parked));
	assert(q->waiter.waiting + q->timer.set + q->recolor_parked <= 1);
	assert(!q->limited || (q->stepping & STEP_JOURNAL) != 0);
	assert(!q->in_callback || q->flight_count == 0);
}

static void check_stop(const struct hal_queue *q)
{
	bool makes_way = !list_empty(&q->made_way);

	if (q->state == QUEUE_RUNNING) {
		assert(!q->bk_suspended && !q->resume_wanted && !q->final && !makes_way);
		assert(!q->policy_stops || q->policy_asks);
	}
	if (q->state == QUEUE_SUSPENDING)
		assert(q->bk_suspended || q->flight_count > 0);
	if (q->final) {
		assert(!q->policy_stops && !makes_way && !q->resume_wanted);
		assert(q->state == QUEUE_SUSPENDING || q->err != 0);
	}
	assert(!q->policy_stops || !makes_way);
	/* Its turn comes in which the engine does that. */
	assert(!(q->policy_asks || q->lent.stale) || !list_empty(&q->todo));
}

static void check_end(const struct hal_queue *q)
{
	assert(q->err != 0 || !q->failing);
	assert(q->err == 0 || atomic_load(&q->open) == 0);
	assert(list_empty(&q->busy) || q->retire.pos != ck_pr_load_uint(&q->ring.p_tail));
}

static uint64_t first_key(const struct heap *h)
{
	return heap_empty(h) ? UINT64_MAX : heap_first(h)->key;
}

static void check_lent(const struct hal_queue *q)
{
	if (q->lends.to != NULL) {
		assert(q->waiter.waiting);
		assert(q->lends.to != q && q->lends.to->dev == q->dev);
	}
	if (!q->lent.stale) {
		assert(q->lent.rank == first_key(&q->lent.ranks));
		assert(q->lent.deadline_ns == first_key(&q->lent.deadlines));
	}
}

/* Each bit of .slow stands for a state that the way of every command must not miss. */
static void check_slow(const struct hal_queue *q)
{
	const uint32_t slow = q->slow;

	assert(((slow & SLOW_SUSPENDING) != 0) == (q->state == QUEUE_SUSPENDING));
	assert(((slow & SLOW_DEFERRED) != 0) == !list_empty(&q->deferred));
	assert(((slow & SLOW_STOPPED) != 0) == (q->stopped_ns != 0));
	assert(((slow & SLOW_RECOLOR) != 0) == q->watched);
	if (q->kills != 0 || q->killed || q->stuck || q->sheltered)
		assert((slow & SLOW_KILLED) != 0);
}

void queue_check(const struct hal_queue *q)
{
	check_flights(q);
	check_issue(q);
	check_stop(q);
	check_end(q);
	check_lent(q);
	check_slow(q);
}

/* ---- a device ---------------------------------------------------------------------- */

static bool has_many(const struct hal_device *dev)
{
	uint32_t queues = 0;

	if (dev->partition_count > CHECKED)
		return true;
	hal_list_for_each (it, &dev->partitions)
		queues += container_of(it, struct hal_partition, on_device)->queue_count;
	return queues > CHECKED;
}

/* Return how many events the device still owes for the queues of part, and for its move.
 */
static uint32_t owed(const struct hal_partition *part)
{
	uint32_t n = part->inflight + (part->moving.units != 0);

	hal_list_for_each (it, &part->queues) {
		const struct hal_queue *q =
			container_of(it, struct hal_queue, on_partition);

		n += q->state == QUEUE_SUSPENDING && q->bk_suspended;
	}
	return n;
}

void device_check(struct hal_device *dev)
{
	uint32_t pending = 0;

	if (has_many(dev))
		return;
	hal_list_for_each (p, &dev->partitions) {
		const struct hal_partition *part =
			container_of(p, struct hal_partition, on_device);

		hal_list_for_each (it, &part->queues)
			queue_check(container_of(it, struct hal_queue, on_partition));
		pending += owed(part);
	}
	assert(dev->pending == pending);
	dev->moves->check(dev);
	dev->residency->check(dev);
}

#endif
