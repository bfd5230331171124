/* SPDX-License-Identifier: Apache-2.0 */
/* check.c - assert the states of buffers that docs/state.md lists. */
#include "memory/check.h"

#ifndef NDEBUG

#include <assert.h>

#include "command/queue.h"
#include "memory/recolor.h"

/* ---- buffers that may be evicted --------------------------------------------------- */

static enum place_of place_of(const struct evictable *ev)
{
	return (enum place_of)atomic_load(&ev->place);
}

void buffer_check(const struct evictable *ev)
{
	enum place_of place = place_of(ev);

	assert((place == PLACE_HERE) == (ev->bytes == NULL));
	assert(place != PLACE_MOVES || !ev->of->dev->virtual_clock);
	assert(place == PLACE_MOVES || !ev->destroyed);
	if (place != PLACE_HERE)
		assert(!ev->unevictable && !ev->pinned && ev->buf->maps == 0);
	assert(!ev->pinned || atomic_load(&ev->buf->recolored));
}

static void check_evict(const struct evict *e)
{
	uint32_t moves = 0;
	uint64_t away = 0;

	hal_list_for_each (it, &e->cold) {
		const struct evictable *ev = container_of(it, struct evictable, cold);
		enum place_of place = place_of(ev);

		buffer_check(ev);
		moves += place == PLACE_MOVES;
		if (place == PLACE_AWAY || (place == PLACE_MOVES && !ev->out))
			away += ev->buf->charge;
	}
	assert(moves == e->moves);
	assert(away == counter_get(&e->away));
}

/* Assert that all buffers of r are on the device.  r is an unfinished command, or the
 * next one of a runnable queue. */
static void check_used(const struct evict *e, const struct record *r)
{
	const void *mem[RECORD_MEMORY_MAX];
	uint32_t n = record_memory(r, mem);

	hal_list_for_each (it, &e->cold) {
		const struct evictable *ev = container_of(it, struct evictable, cold);

		for (uint32_t i = 0; i < n; i++)
			assert(mem[i] != ev->buf->bk || place_of(ev) == PLACE_HERE);
	}
}

/* ---- queues parked because of memory ----------------------------------------------- */

/* Return whether the move of a buffer may have parked q.  If own, only a move by q counts
 * that waits for in-flight commands; otherwise any move in q's partition. */
static bool is_moving(const struct hal_queue *q, bool own)
{
	hal_list_for_each (it, &q->dev->memory.recolors) {
		const struct recolor *m = container_of(it, struct recolor, on_device);

		if (own ? m->queue == q && m->waits : m->queue->home == q->home)
			return true;
	}
	return false;
}

static void check_queue(const struct hal_queue *q)
{
	const struct inflight *f = q->oldest;
	const struct evict *e = q->home->memory.evict;

	assert(q->memory_watched ||
	       (e == NULL && !q->home->memory.bimodal && !is_moving(q, false)));
	if (q->memory.parked)
		assert(q->home->memory.ends_wanted || is_moving(q, false));
	else if (q->parked && !q->waiter.waiting && !q->timer.set)
		assert(is_moving(q, true));
	if (e == NULL) {
		assert(list_empty(&q->memory.evict_turn));
		return;
	}
	for (uint32_t i = 0; i < q->inflight_count; i++, f = f->next)
		if (!f->done && !f->killed)
			check_used(e, f->record);
	if (q->runnable)
		check_used(e, q->next);
}

/* ---- buffers that move to other channels ------------------------------------------- */

/* Assert the state of m's buffer.  Only the queue that moves it may be runnable with a
 * command that uses it. */
static void check_recolor(const struct recolor *m)
{
	const void *mem[RECORD_MEMORY_MAX];

	if (m->buf == NULL)
		return;
	assert(atomic_load(&m->buf->recolored) && m->buf->maps == 0);
	hal_list_for_each (it, &m->queue->home->queues) {
		const struct hal_queue *q =
			container_of(it, struct hal_queue, on_partition);
		uint32_t n = q->runnable ? record_memory(q->next, mem) : 0;

		for (uint32_t i = 0; q != m->queue && i < n; i++)
			assert(mem[i] != m->buf->bk);
	}
}

void memory_check(struct hal_device *dev)
{
	hal_list_for_each (p, &dev->space.partitions) {
		const struct hal_partition *part =
			container_of(p, struct hal_partition, on_device);

		assert(part->memory.bimodal ||
		       (part->memory.copying == 0 && !part->memory.switch_failed &&
			counter_get(&part->memory.switches) == 0));
		if (part->memory.evict != NULL)
			check_evict(part->memory.evict);
		hal_list_for_each (it, &part->queues)
			check_queue(container_of(it, struct hal_queue, on_partition));
	}
	hal_list_for_each (it, &dev->memory.recolors)
		check_recolor(container_of(it, struct recolor, on_device));
}

#endif
