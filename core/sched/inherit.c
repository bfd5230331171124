/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inherit.c - priority inheritance between queues that wait for each other.
 *
 * Without it, an urgent queue that waits for a less urgent one also waits for all work
 * of an urgency between the two (Sha, Rajkumar, Lehoczky 1990).
 *
 *   waiting queue --donates--> signalling queue --donates--> the queue it waits for ...
 *
 * A queue waits for one point at a time, so it donates to one queue at most.  That is the
 * owner of the timeline, or the queue with a submitted signal for the point.  A queue
 * inherits the most urgent rank (class, then priority) and deadline donated to it.  It
 * donates the inherited rank and deadline as well.
 *
 * The search for a signal reads the first EACH records of each queue, so that one full
 * queue does not hide the others.  If that pass finds no signal, the next pass reads four
 * times as many records, and so on.  Each pass ends after SEARCHED queues and records.
 * Partitions and queues are searched in the order of their creation.
 *
 * The search misses signals that are submitted after the wait has begun.  It also misses
 * signals by the host or by queues of other devices, and records beyond all passes.
 */
#include "sched/inherit.h"

#include "loop/engine.h"
#include "space/partition.h"

enum { SEARCHED = 256, EACH = 16 };

struct inherit_owner {
	struct hal_partition *part;
	uint64_t owner;
};

/* ---- finding the queue that is waited for --------------------------------------- */

/* Return the first value of t, at least least_value, that a submitted signal of x will
 * reach; UINT64_MAX: none.  Read at most `most` records of x, and at most *left; subtract
 * the number read from *left.  Set *cut if x has more records. */
static uint64_t first_signal(struct hal_queue *x, const struct hal_timeline *t,
			     uint64_t least_value, uint32_t most, uint32_t *left,
			     bool *cut)
{
	unsigned int end = x->accepted;
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

/* Find the queue that signals the point q waits for, in the first `most` records of each
 * queue.  Prefer the lowest value, then the older queue.  Set *cut if records were left
 * out. */
static struct hal_queue *find_signaller(const struct hal_queue *q, uint32_t most,
					bool *cut)
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
			value = first_signal(x, t, q->waiter.node.key, most, &left, cut);
			if (value < least_value) {
				best = x;
				least_value = value;
			}
		}
	}
	return best;
}

/* Return the queue that q waits for; NULL: none was found. */
static struct hal_queue *signalling_queue(const struct hal_queue *q)
{
	const struct hal_timeline *t = q->waiter.timeline;
	struct hal_queue *x = NULL;
	bool cut = true;

	if (t->partition != NULL)
		return NULL;
	if (t->queue != NULL)
		return t == &t->queue->timeline ? t->queue : NULL;
	/* Read more of each queue only if the last pass left records out. */
	for (uint32_t most = EACH; x == NULL && cut && most <= SEARCHED; most *= 4) {
		cut = false;
		x = find_signaller(q, most, &cut);
	}
	return x;
}

/* ---- donating ------------------------------------------------------------------- */

/* Donate the urgency of q to x. */
static void donate(struct hal_queue *q, struct hal_queue *x)
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
	x = signalling_queue(q);
	if (x != NULL && x != q && x->home->sched.owner == q->home->sched.owner)
		donate(q, x);
}

static int set_owner(struct hal_device *dev, void *arg)
{
	const struct inherit_owner *o = arg;

	(void)dev;
	o->part->sched.owner = o->owner;
	return 0;
}

void inherit_within(struct hal_partition *part, uint64_t owner)
{
	struct inherit_owner o = {part, owner};

	(void)engine_call(part->dev, set_owner, &o);
}

void inherit_leave(struct hal_queue *q)
{
	struct heap_node *n;

	inherit_end(q);
	while ((n = heap_first(&q->sched.inherited.ranks)) != NULL)
		inherit_end(container_of(n, struct hal_queue, sched.donates.rank));
}
