/* SPDX-License-Identifier: Apache-2.0 */
/* recolor.c - move a buffer to other memory channels while its partition keeps working.
 */
#include "memory/recolor.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "memory/bimodal.h"
#include "memory/evict.h"
#include "memory/quota.h"
#include "replay/journal.h"
#include "sched/policy.h"
#include "sched/urgency.h"
#include "util/error.h"

/* Return whether r, a command of q, uses m's buffer.  A journal has no command arguments,
 * so it records the answer, and a replay reads it. */
static bool record_uses_buffer(const struct recolor *m, const struct hal_queue *q,
			       const struct record *r)
{
	const struct player *player = q->dev->replay.player;
	bool does = player != NULL ? player->uses(q) : record_uses(r, m->buf->bk);

	JOURNAL(q->dev, JOURNAL_USES, q->obj.id, does);
	return does;
}

/* Return whether q belongs to m's partition and is not the queue that moves the buffer.
 */
static bool may_conflict(const struct recolor *m, const struct hal_queue *q)
{
	return q != m->queue && q->home == m->queue->home;
}

/* Call fn(m, q) for each queue q of m's partition. */
static void for_each_queue(struct recolor *m,
			   void (*fn)(struct recolor *m, struct hal_queue *q))
{
	hal_list_for_each (it, &m->queue->home->queues)
		fn(m, container_of(it, struct hal_queue, on_partition));
}

/* ---- in-flight commands that use the buffer ---------------------------------------- */

/* Return whether an in-flight command of q uses m's buffer, running or suspended. */
static bool queue_uses(const struct recolor *m, const struct hal_queue *q)
{
	const struct inflight *f = q->oldest;

	for (uint32_t i = 0; i < q->inflight_count; i++, f = f->next)
		if (!f->done && !f->killed && record_uses_buffer(m, q, f->record))
			return true;
	return false;
}

static bool recolor_in_use(const struct recolor *m)
{
	hal_list_for_each (it, &m->queue->home->queues) {
		const struct hal_queue *q =
			container_of(it, struct hal_queue, on_partition);

		if (may_conflict(m, q) && queue_uses(m, q))
			return true;
	}
	return false;
}

int recolor_check(const struct hal_buffer *buf)
{
	hal_list_for_each (it, &buf->part->queues) {
		const struct hal_queue *q =
			container_of(it, struct hal_queue, on_partition);
		const struct inflight *f = q->oldest;

		if (q->sched.frozen == 0 || q->sched.policy_stops ||
		    !list_empty(&q->sched.preempted))
			continue;
		for (uint32_t i = 0; i < q->inflight_count; i++, f = f->next)
			if (!f->done && record_uses(f->record, buf->bk))
				return fail(EBUSY,
					    "%s is suspended inside \"%s\", which uses "
					    "the buffer",
					    queue_text(q).text, record_name(f->record));
	}
	return 0;
}

struct recolor *recolor_make(struct hal_queue *q, struct hal_buffer *buf, void *to,
			     const struct hal_bk_colors *c)
{
	struct recolor *m = calloc(1, sizeof(*m));

	if (m == NULL) {
		(void)fail(ENOMEM, "no memory to move a buffer");
		return NULL;
	}
	m->refs = 1;
	m->queue = q;
	m->buf = buf;
	m->to = to;
	if (c != NULL)
		m->colors.mask = c->mask;
	if (c != NULL && c->weights != NULL) {
		memcpy(m->weights, c->weights, q->dev->info.colors);
		m->colors.weights = m->weights;
	}
	list_init(&m->on_device);
	return m;
}

/* ---- parking queues that use the buffer -------------------------------------------- */

static void park_queue(struct hal_queue *q)
{
	q->parked = true;
	q->memory.parked = true;
}

/* Have q check its next command again.  If that command uses another moving buffer, q is
 * parked again. */
static void unpark_queue(struct recolor *m, struct hal_queue *q)
{
	(void)m;
	if (!q->memory.parked)
		return;
	queue_unpark(q);
	queue_todo(q);
}

/* Return whether a buffer of q's partition is being moved. */
static bool has_moving_buffer(const struct hal_queue *q)
{
	hal_list_for_each (it, &q->dev->memory.recolors) {
		const struct recolor *m = container_of(it, struct recolor, on_device);

		if (q->home == m->queue->home)
			return true;
	}
	return false;
}

/* Set or clear the flags of q that make the engine check q's commands before issue. */
static void update_watch(struct recolor *m, struct hal_queue *q)
{
	(void)m;
	q->memory_watched = false;
	q->slow &= ~SLOW_RECOLOR;
	if (!has_moving_buffer(q) && !q->home->memory.bimodal &&
	    q->home->memory.evict == NULL)
		return;
	q->memory_watched = true;
	q->slow |= SLOW_RECOLOR;
}

void recolor_enter(struct hal_queue *q)
{
	update_watch(NULL, q);
	if (q->home->memory.bimodal)
		q->stepping |= STEP_INSIDE;
}

/* Withdraw q from the policy and park it, if its next command uses m's buffer. */
static void hold_if_used(struct recolor *m, struct hal_queue *q)
{
	if (!may_conflict(m, q) || !q->runnable || !record_uses_buffer(m, q, q->next))
		return;
	queue_withdraw(q, HAL_POLICY_HELD);
	park_queue(q);
}

int recolor_lets(struct hal_queue *q, const struct record *r)
{
	int err;

	hal_list_for_each (it, &q->dev->memory.recolors) {
		const struct recolor *m = container_of(it, struct recolor, on_device);

		if (!may_conflict(m, q) || !record_uses_buffer(m, q, r))
			continue;
		/* q becomes blocked, which other queues may wait for.  Wake them before q
		 * is parked: q itself need not check again. */
		bimodal_look(q->home);
		park_queue(q);
		return 0;
	}
	err = q->home->memory.evict != NULL ? evict_lets(q, r) : 1;
	if (err <= 0)
		return err;
	return !q->home->memory.bimodal || bimodal_lets(q);
}

void recolor_free(struct hal_buffer *buf, void *to)
{
	struct hal_device *dev = buf->dev;

	if (to != NULL) {
		(void)dev->table->cold.mem_free(dev->bk, to);
		partition_release(buf->part, buf->charge);
	}
	atomic_store(&buf->recolored, false);
}

/* ---- steps of a move --------------------------------------------------------------- */

/* Allocate m->to unless it is allocated, and set it as the destination of the copies.
 * Return as recolor_begin. */
static int allocate_target(struct recolor *m)
{
	int ready;

	if (m->buf == NULL || m->to != NULL)
		return 1;
	ready = evict_lets_move(m->queue, m);
	for (uint32_t i = 0; ready > 0 && i < m->block->slots; i++)
		m->block->rec[i].cmd.copy.dst = m->to;
	return ready;
}

int recolor_begin(struct recolor *m)
{
	struct hal_queue *q = m->queue;
	int ready = allocate_target(m);

	if (ready <= 0)
		return ready;
	if (list_empty(&m->on_device)) {
		list_add_before(&q->dev->memory.recolors, &m->on_device);
		for_each_queue(m, update_watch);
		for_each_queue(m, hold_if_used);
	}
	m->waits = recolor_in_use(m);
	q->parked = m->waits;
	return m->waits ? 0 : 1;
}

void recolor_look(struct hal_queue *q)
{
	bimodal_look(q->home);
	hal_list_for_each (it, &q->dev->memory.recolors) {
		struct recolor *m = container_of(it, struct recolor, on_device);

		if (!m->waits || !may_conflict(m, q))
			continue;
		m->waits = false;
		/* The queue may be parked at an earlier record, if a kill has rewound it;
		 * it then only checks again. */
		queue_unpark(m->queue);
		queue_todo(m->queue);
	}
}

int recolor_end(struct recolor *m, int dropped)
{
	int err = 0;

	if (m->buf != NULL) {
		if (dropped == 0)
			err = m->buf->dev->table->extra.mem_swap(m->buf->dev->bk,
								 m->buf->bk, m->to);
		if ((dropped | err) == 0 && m->buf->evict != NULL)
			evict_recolored(m->buf->evict, &m->colors);
		if (m->buf->evict != NULL)
			m->buf->evict->pinned = false;
		recolor_free(m->buf, m->to);
	}
	if (list_empty(&m->on_device))
		return err;
	list_del(&m->on_device);
	for_each_queue(m, update_watch);
	for_each_queue(m, unpark_queue);
	return err;
}

void recolor_put(struct recolor *m)
{
	if (--m->refs > 0)
		return;
	list_del(&m->on_device);
	free(m);
}
