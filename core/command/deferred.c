/* SPDX-License-Identifier: Apache-2.0 */
/* deferred.c - free destroyed objects once submitted work no longer uses them. */
#include "command/deferred.h"

#include <errno.h>

#include "loop/device.h"
#include "util/error.h"

/* Return whether q has work that was submitted before d was destroyed. */
static bool may_use(struct hal_queue *q, const struct deferred *d)
{
	const struct record *r = &q->slots[q->retire.pos & q->slot_mask];

	return !queue_empty(q) && (d->home == NULL || d->home == q->home) &&
	       (r->submit_ns <= d->at_ns || r->submit_ns == SUBMIT_ASLEEP);
}

/* Return the first busy queue of part that may use d; NULL if none does.  Begin at the
 * list node `it`. */
static struct hal_queue *find_in_partition(struct list *it, struct hal_partition *part,
					   const struct deferred *d)
{
	for (; it != &part->command.busy; it = it->next) {
		struct hal_queue *q = container_of(it, struct hal_queue, busy);

		if (may_use(q, d))
			return q;
	}
	return NULL;
}

/* Return the first queue that may use d; NULL if none does.  Begin at the list
 * node `partition` of dev->space.partitions.  In that partition begin at the node `queue`
 * of its list of busy queues (NULL: at the first one). */
static struct hal_queue *find_user(const struct deferred *d, struct list *partition,
				   struct list *queue)
{
	struct hal_device *dev = d->dev;

	for (; partition != &dev->space.partitions; partition = partition->next) {
		struct hal_partition *p =
			container_of(partition, struct hal_partition, on_device);
		struct hal_queue *q = find_in_partition(
			queue != NULL ? queue : p->command.busy.next, p, d);

		if (q != NULL || d->home != NULL)
			return q;
		queue = NULL;
	}
	return NULL;
}

/* Have d wait on q; if q is NULL, free d. */
static void wait_on(struct deferred *d, struct hal_queue *q)
{
	if (q == NULL) {
		d->free(d);
		return;
	}
	list_add_before(&q->deferred, &d->node);
	q->slow |= SLOW_DEFERRED;
}

/* Set the missing submit times of the records that may use d.  A thread that submitted
 * while the engine slept may send its message much later.  Without this, its records
 * would then get a time after the destruction of d. */
static void stamp_users(const struct deferred *d)
{
	hal_list_for_each (p, &d->dev->space.partitions) {
		struct hal_partition *part =
			container_of(p, struct hal_partition, on_device);

		if (d->home != NULL && d->home->host != part)
			continue;
		hal_list_for_each (it, &part->command.busy) {
			struct hal_queue *q = container_of(it, struct hal_queue, busy);

			queue_stamp(q, q->retire.pos);
		}
	}
}

/* Return a command of q that uses the memory with backend handle mem, submitted or in
 * flight; NULL if there is none. */
static const struct record *find_use(struct hal_queue *q, const void *mem)
{
	const struct inflight *f = q->oldest;
	union cursor c = q->retire;

	for (uint32_t i = 0; i < q->inflight_count; i++, f = f->next)
		if (!f->done && record_uses(f->record, mem))
			return f->record;
	while (c.pos != q->accepted) {
		const struct record *r = cursor_record(q, c);

		if (record_uses(r, mem))
			return r;
		cursor_step(q, &c, r);
	}
	return NULL;
}

int deferred_check_unused(const struct hal_partition *part, const void *mem,
			  const char *what)
{
	hal_list_for_each (it, &part->queues) {
		struct hal_queue *q = container_of(it, struct hal_queue, on_partition);
		const struct record *r = find_use(q, mem);

		if (r != NULL)
			return fail(EBUSY, "%s: \"%s\" of queue %u still uses it", what,
				    record_name(r), q->obj.id);
	}
	return 0;
}

void deferred_free(struct deferred *d)
{
	if (!d->dev->virtual_clock)
		stamp_users(d);
	d->at_ns = d->dev->now;
	wait_on(d, find_user(d,
			     d->home != NULL ? &d->home->host->on_device
					     : d->dev->space.partitions.next,
			     NULL));
}

void deferred_advance(struct hal_queue *q)
{
	struct list unused; /* objects that q no longer uses */

	list_init(&unused);
	while (!list_empty(&q->deferred)) {
		struct deferred *d =
			container_of(q->deferred.next, struct deferred, node);

		if (may_use(q, d))
			break;
		list_take(&d->node);
		list_add_before(&unused, &d->node);
	}
	if (list_empty(&q->deferred))
		q->slow &= ~SLOW_DEFERRED;
	while (!list_empty(&unused)) {
		struct deferred *d = container_of(unused.next, struct deferred, node);

		list_take(&d->node);
		/* Queues before q in the lists no longer use d: d has visited them, or
		 * they became busy after d was destroyed. */
		wait_on(d, find_user(d, &q->part->on_device,
				     list_empty(&q->busy) ? NULL : q->busy.next));
	}
}

void deferred_leave(struct hal_queue *q)
{
	deferred_advance(q);
}
