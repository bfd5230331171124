/* SPDX-License-Identifier: Apache-2.0 */
/* queue.c - small operations on a queue: names, submit times, ends of waits. */
#include "command/queue.h"

#include <errno.h>

#include "command/timeline.h"
#include "loop/engine.h"
#include "space/partition.h"
#include "util/error.h"

struct queue_text queue_text(const struct hal_queue *q)
{
	struct queue_text t;

	if (q->name[0] != '\0')
		format_text(t.text, sizeof(t.text), "queue %u \"%s\"", q->obj.id,
			    q->name);
	else
		format_text(t.text, sizeof(t.text), "queue %u", q->obj.id);
	return t;
}

void queue_describe(const struct hal_queue *q, char *text, size_t size)
{
	format_text(text, size, "%s of partition %u \"%s\"", queue_text(q).text,
		    q->home->obj.id, q->home->name);
}

COLD int ring_full(uint64_t queue, const char name[32], uint32_t slots, uint32_t of)
{
	_Static_assert(LAZY_NAME == 32, "the name is copied whole");
	if (name[0] == '\0')
		return fail_lazily(EAGAIN,
				   "queue %llu is full: fewer than %llu of its %llu "
				   "slots are free",
				   queue, slots, of, NULL);
	return fail_lazily(EAGAIN,
			   "queue %1$llu \"%4$s\" is full: fewer than %2$llu of its "
			   "%3$llu slots are free",
			   queue, slots, of, name);
}

const char *record_name(const struct record *r)
{
	static const char *const names[] = {
		[HAL_OP_NOP] = "nop",         [HAL_OP_COPY] = "copy",
		[HAL_OP_FILL] = "fill",       [HAL_OP_HOST] = "host callback",
		[HAL_OP_BARRIER] = "barrier", [HAL_OP_TIMESTAMP] = "timestamp",
	};

	if (r->cmd.op == HAL_OP_LAUNCH)
		return r->launch.kernel->info.name;
	if (r->cmd.op == HAL_OP_COPY && (r->cmd.flags & HAL_BK_CMD_FROM_HOST) != 0)
		return "write";
	if (r->cmd.op == HAL_OP_COPY && (r->cmd.flags & HAL_BK_CMD_TO_HOST) != 0)
		return "read";
	return r->cmd.op < ARRAY_LENGTH(names) ? names[r->cmd.op] : "wait or signal";
}

void queue_stamp(struct hal_queue *q, unsigned int from)
{
	unsigned int tail = queue_tail(q);

	for (unsigned int pos = from; pos != tail;) {
		struct record *r = &q->slots[pos & q->slot_mask];

		if (r->submit_ns == SUBMIT_ASLEEP)
			r->submit_ns = q->dev->now;
		pos += r->slots;
	}
}

void queue_inherited_changed(struct hal_queue *x)
{
	x->sched.inherited.stale = true;
	queue_todo(x);
}

void queue_withdraw_urgency(struct hal_queue *q)
{
	struct hal_queue *x = q->sched.donates.to;

	heap_remove(&x->sched.inherited.ranks, &q->sched.donates.rank);
	heap_remove(&x->sched.inherited.deadlines, &q->sched.donates.deadline);
	q->sched.donates.to = NULL;
	queue_inherited_changed(x);
}

void queue_unpark(struct hal_queue *q)
{
	if (!q->parked)
		return;
	q->parked = false;
	q->memory.parked = false;
	timeline_drop_waiter(&q->waiter);
	if (q->sched.donates.to != NULL)
		queue_withdraw_urgency(q);
	timer_unset(q->dev, &q->timer);
}
