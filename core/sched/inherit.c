/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inherit.c - who waits for a queue's point lends it class, priority and deadline.
 *
 * Priority inheritance (Sha, Rajkumar, Lehoczky 1990): what a higher one waits for would
 * else be behind all that is in between, for as long as that lasts.  A queue waits at one
 * point at a time, so it lends to one queue: the one whose own timeline that is, or who
 * has submitted the signal of it.  Of what it is lent a queue has the most urgent, each
 * of rank (class, then priority) and deadline, and lends that on.
 *
 * The search looks at the first EACH records of each queue, so that a full queue does not
 * hide the others; if no signal is there, at the first four times as many, and so on.
 * Each pass ends after SEARCHED queues and records, in the order in which partitions and
 * queues were made.
 *
 * Not found: who submits a signal after somebody has begun to wait for it, the host,
 * queues of other devices, and what is beyond all passes.
 */
#include "sched/inherit.h"

#include "space/partition.h"

enum { SEARCHED = 256, EACH = 16 };

/* ---- who is waited for ---------------------------------------------------------------- */

/* The first value of t from least_value on that x signals with the first most records of
 * what it has been given and not ended; UINT64_MAX: none.  *left: how many records may
 * still be looked at.  *cut: set if there are more. */
static uint64_t signals(struct hal_queue *x, const struct hal_timeline *t,
			uint64_t least_value, uint32_t most, uint32_t *left, bool *cut)
{
	unsigned int end =
		(x->stepping & STEP_JOURNAL) != 0 ? x->replay.limit : ring_tail(&x->ring);
	union cursor c = x->retire;

	for (; c.pos != end && *left > 0 && most > 0; most--) {
		const struct record *r = cursor_record(x, c);

		(*left)--;
		cursor_step(x, &c, r);
		if (r->cmd.op != REC_SIGNAL)
			continue;
		record_for_each_point(p, r) if (p->timeline == t &&
						p->value >= least_value) return p->value;
	}
	*cut |= c.pos != end;
	return UINT64_MAX;
}

/* Find who signals what q waits for, with the first most records of each queue.  Of
 * several the one with the least value; of those, the eldest.  *cut: set if not all
 * records were looked at. */
static struct hal_queue *signaller(const struct hal_queue *q, uint32_t most, bool *cut)
{
	const struct hal_timeline *t = q->waiter.timeline;
	struct hal_queue *best = NULL;
	uint64_t least_value = UINT64_MAX;
	uint32_t left = SEARCHED;

	hal_list_for_each (p, &q->dev->space.partitions) {
		struct hal_partition *part =
			container_of(p, struct hal_partition, on_device);

		hal_list_for_each (it, &part->queues) {
			struct hal_queue *x =
				container_of(it, struct hal_queue, on_partition);
			uint64_t value;

			if (left == 0) {
				*cut = true;
				return best;
			}
			left--;
			value = signals(x, t, q->waiter.node.key, most, &left, cut);
			if (value < least_value) {
				best = x;
				least_value = value;
			}
		}
	}
	return best;
}

static struct hal_queue *awaited(const struct hal_queue *q)
{
	const struct hal_timeline *t = q->waiter.timeline;
	struct hal_queue *x = NULL;
	bool cut = true;

	if (t->partition != NULL)
		return NULL;
	if (t->queue != NULL)
		return t == &t->queue->timeline ? t->queue : NULL;
	/* Deeper only where there is more to see. */
	for (uint32_t most = EACH; x == NULL && cut && most <= SEARCHED; most *= 4) {
		cut = false;
		x = signaller(q, most, &cut);
	}
	return x;
}

/* ---- lending -------------------------------------------------------------------------- */

static void lend(struct hal_queue *q, struct hal_queue *x)
{
	struct urgency u = urgency_to_donate(q);

	q->sched.donates.to = x;
	q->sched.donates.rank.key = u.rank;
	q->sched.donates.deadline.key = u.deadline_ns;
	heap_add(&x->sched.inherited.ranks, &q->sched.donates.rank);
	heap_add(&x->sched.inherited.deadlines, &q->sched.donates.deadline);
	queue_inherited_changed(x);
}

void inherit_try(struct hal_queue *q)
{
	struct hal_queue *x;

	if (!q->dev->sched.limits.inherit || q->waiter.timeline->dev != q->dev)
		return;
	x = awaited(q);
	if (x != NULL && x != q)
		lend(q, x);
}

void inherit_leave(struct hal_queue *q)
{
	struct heap_node *n;

	inherit_end(q);
	while ((n = heap_first(&q->sched.inherited.ranks)) != NULL)
		inherit_end(container_of(n, struct hal_queue, sched.donates.rank));
}
