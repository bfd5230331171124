/* SPDX-License-Identifier: Apache-2.0 */
/* deferred.c - freeing what submitted work may still use. */
#include "command/deferred.h"

#include "loop/device.h"

/* Anything in q that was submitted before d was destroyed. */
static bool may_use(struct hal_queue *q, const struct deferred *d)
{
	const struct record *r = &q->slots[q->retire.pos & q->ring.mask];

	return !queue_empty(q) && (d->home == NULL || d->home == q->home) &&
	       (r->submit_ns <= d->at_ns || r->submit_ns == SUBMIT_ASLEEP);
}

/* The first from here on, in the list of busy queues of part, that uses d. */
static struct hal_queue *user_from(struct list *it, struct hal_partition *part,
				   const struct deferred *d)
{
	for (; it != &part->command.busy; it = it->next) {
		struct hal_queue *q = container_of(it, struct hal_queue, busy);

		if (may_use(q, d))
			return q;
	}
	return NULL;
}

static struct hal_queue *next_user(const struct deferred *d, struct list *partition,
				   struct list *queue)
{
	struct hal_device *dev = d->dev;

	for (; partition != &dev->space.partitions; partition = partition->next) {
		struct hal_partition *p =
			container_of(partition, struct hal_partition, on_device);
		struct hal_queue *q =
			user_from(queue != NULL ? queue : p->command.busy.next, p, d);

		if (q != NULL || d->home != NULL)
			return q;
		queue = NULL;
	}
	return NULL;
}

static void wait_at(struct deferred *d, struct hal_queue *q)
{
	if (q == NULL) {
		d->free(d);
		return;
	}
	list_add_before(&q->deferred, &d->node);
	q->slow |= SLOW_DEFERRED;
}

/* Who submits reads the time of an engine that sleeps, and may be slow: its message comes
 * long after that has woken, and what has no time yet would get one after d's. */
static void stamp_all(const struct deferred *d)
{
	hal_list_for_each (p, &d->dev->space.partitions) {
		struct hal_partition *part =
			container_of(p, struct hal_partition, on_device);

		if (d->home != NULL && d->home->host != part)
			continue;
		hal_list_for_each (it, &part->command.busy)
			queue_stamp(container_of(it, struct hal_queue, busy));
	}
}

void deferred_free(struct deferred *d)
{
	if (!d->dev->virtual_clock)
		stamp_all(d);
	d->at_ns = d->dev->now;
	wait_at(d, next_user(d,
			     d->home != NULL ? &d->home->host->on_device
					     : d->dev->space.partitions.next,
			     NULL));
}

void deferred_go_on(struct hal_queue *q)
{
	struct list gone;

	list_init(&gone);
	while (!list_empty(&q->deferred)) {
		struct deferred *d =
			container_of(q->deferred.next, struct deferred, node);

		if (may_use(q, d))
			break;
		list_take(&d->node);
		list_add_before(&gone, &d->node);
	}
	if (list_empty(&q->deferred))
		q->slow &= ~SLOW_DEFERRED;
	while (!list_empty(&gone)) {
		struct deferred *d = container_of(gone.next, struct deferred, node);

		list_take(&d->node);
		/* Those before q in the list have nothing that old any more, or had it
		 * after q: they came in when d was destroyed already. */
		wait_at(d, next_user(d, &q->part->on_device,
				     list_empty(&q->busy) ? NULL : q->busy.next));
	}
}

void deferred_leave(struct hal_queue *q)
{
	deferred_go_on(q);
}
