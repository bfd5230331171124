/* SPDX-License-Identifier: Apache-2.0 */
/* queue.c - a queue's life: made, described, counted, destroyed. */
#include "internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void queue_describe(const struct hal_queue *q, char *text, size_t size)
{
	format_text(text, size, "queue %u of partition %u \"%s\"", q->obj.id,
		    q->part->desc.index, q->part->name);
}

const char *record_name(const struct record *r)
{
	switch (r->cmd.op) {
	case HAL_OP_NOP:
		return "nop";
	case HAL_OP_COPY:
		return "copy";
	case HAL_OP_FILL:
		return "fill";
	case HAL_OP_LAUNCH:
		return r->launch.kernel->info.name;
	case HAL_OP_HOST:
		return "host callback";
	case HAL_OP_BARRIER:
		return "barrier";
	case HAL_OP_TIMESTAMP:
		return "timestamp";
	default:
		return "wait or signal";
	}
}

/* ---- create, destroy
 * ---------------------------------------------------------------------------- */

static int desc_check(const struct hal_device *dev, const struct hal_queue_desc *d)
{
	static const char *const names[] = {"none", "between", "pending", "inside"};

	if (d->flags != 0)
		return fail(EINVAL, "hal_queue_desc.flags 0x%x: none are known",
			    d->flags);
	if (d->min_preempt > HAL_PREEMPT_INSIDE)
		return fail(EINVAL,
			    "hal_queue_desc.min_preempt %u is not a preemption level",
			    d->min_preempt);
	if (d->min_preempt > dev->info.preempt)
		return fail(ENOTSUP, "preemption \"%s\" asked for, %s has \"%s\"",
			    names[d->min_preempt], dev->name,
			    names[dev->info.preempt & 3]);
	return 0;
}

static int queue_init(struct hal_queue *q, struct hal_partition *part,
		      const struct hal_queue_desc *d)
{
	struct hal_device *dev = part->dev;

	q->dev = dev;
	q->part = part;
	q->slot_count = dev->queue_slots;
	q->flight_max = dev->inflight;
	q->deadline_ns = d->deadline_ns;
	q->odd = d->deadline_ns != 0 ? ODD_DEADLINE : 0;
	q->part_word = part->desc.index / 64;
	q->part_bit = UINT64_C(1) << part->desc.index % 64;
	ck_ring_init(&q->ring, q->slot_count);
	q->ring_limit = q->slot_count;
	timeline_init(&q->timeline, dev);
	timeline_init(&q->control, dev);
	q->timeline.queue = q;
	q->control.queue = q;
	list_init(&q->on_partition);
	list_init(&q->todo);
	list_init(&q->waiter.node);
	for (uint32_t i = 0; i < q->flight_max; i++) {
		q->flights[i].queue = q;
		q->flights[i].next = &q->flights[i + 1 < q->flight_max ? i + 1 : 0];
	}
	q->oldest = q->flights;
	q->fresh = q->flights;
	q->view.priority = d->priority;
	q->view.deadline_ns = d->deadline_ns;
	/* A record that starts in the last slot runs on behind it. */
	q->slots = malloc((q->slot_count + RECORD_SLOTS_MAX - 1) * sizeof(struct record));
	if (q->slots == NULL)
		return fail(ENOMEM, "no memory for a queue of %u slots", q->slot_count);
	return 0;
}

int hal_queue_create(struct hal_partition *part, const struct hal_queue_desc *desc,
		     struct hal_queue **out)
{
	struct hal_queue_desc d;
	struct hal_device *dev;
	struct hal_queue *q;
	int err;

	if (!OBJECT_OK(part, OBJECT_PARTITION))
		return object_bad(part, OBJECT_PARTITION);
	if (out == NULL)
		return fail(EINVAL, "hal_queue_create: queue is NULL");
	dev = part->dev;
	err = import_struct(&d, sizeof(d), sizeof(d), desc, "hal_queue_desc");
	if (err == 0)
		err = desc_check(dev, &d);
	if (err != 0)
		return err;
	q = object_alloc(OBJECT_QUEUE,
			 sizeof(*q) + dev->inflight * sizeof(q->flights[0]));
	if (q == NULL)
		return -ENOMEM;
	err = queue_init(q, part, &d);
	if (err != 0) {
		object_free(OBJECT_QUEUE, q);
		return err;
	}
	device_lock(dev);
	err = dev->backend->table.cold.queue_create(dev->bk, part->bk, d.priority,
						    &q->bk);
	if (err != 0) {
		free(q->slots);
		q->slots = NULL;
		object_free(OBJECT_QUEUE, q);
		goto out;
	}
	q->obj.id = dev->next_queue_id++;
	q->view.id = q->obj.id;
	atomic_store(&q->open, QUEUE_OPEN);
	q->odd |= dev->trace != NULL ? ODD_TRACE : 0;
	list_add_before(&part->queues, &q->on_partition);
	part->queue_count++;
	trace_queue(dev, q);
	*out = q;
out:
	device_unlock(dev);
	return err;
}

/* Suspended, and the device has let go of all of it: nobody will miss the rest.  That is
 * how one gets rid of a program that does not end. */
static bool may_be_dropped(const struct hal_queue *q)
{
	return q->state == QUEUE_SUSPENDED && q->flight_count == 0;
}

static int destroy_check(struct hal_queue *q)
{
	char text[96];
	uint64_t last = atomic_load(&q->submissions);

	queue_describe(q, text, sizeof(text));
	if (!queue_idle(q, last) && !may_be_dropped(q))
		return fail(EBUSY, "%s: %llu of its %llu submissions have ended", text,
			    (unsigned long long)atomic_load(&q->timeline.value),
			    (unsigned long long)last);
	if (q->state == QUEUE_SUSPENDING)
		return fail(EBUSY, "%s is being suspended", text);
	if (atomic_load(&q->timeline.pending) + atomic_load(&q->control.pending) != 0)
		return fail(EBUSY, "%s: submitted work waits for points of it", text);
	return 0;
}

int hal_queue_destroy(struct hal_queue *q)
{
	struct hal_device *dev;
	struct hal_partition *part;
	int err;

	if (q == NULL)
		return 0;
	if (!OBJECT_OK(q, OBJECT_QUEUE))
		return object_bad(q, OBJECT_QUEUE);
	err = callback_refuse("hal_queue_destroy");
	if (err != 0)
		return err;
	dev = q->dev;
	part = q->part;
	device_lock(dev);
	engine_intake(dev);
	err = destroy_check(q);
	if (err == 0)
		err = dev->backend->table.cold.queue_destroy(dev->bk, q->bk);
	if (err != 0)
		goto out;
	if (!queue_idle(q, atomic_load(&q->submissions)))
		queue_abandon(q);
	grave_forget(dev, q);
	atomic_store(&q->open, 0);
	list_del(&q->todo);
	q->account.submitted = queue_commands(q);
	account_add(&part->past, &q->account);
	timeline_fini(&q->timeline);
	timeline_fini(&q->control);
	list_del(&q->on_partition);
	part->queue_count--;
	free(q->slots);
	free(q->fault);
	object_free(OBJECT_QUEUE, q);
out:
	device_unlock(dev);
	return err;
}

int hal_queue_get_stats(struct hal_queue *q, struct hal_stats *stats)
{
	struct account a;
	struct hal_stats s;

	if (!OBJECT_OK(q, OBJECT_QUEUE))
		return object_bad(q, OBJECT_QUEUE);
	device_lock(q->dev);
	a = q->account;
	a.submitted = queue_commands(q);
	account_export(&s, &a, a.busy_ns, q->dev->backend->table.hot.now(q->dev->bk));
	device_unlock(q->dev);
	return export_struct(stats, &s, sizeof(s), offsetof(struct hal_stats, now_ns),
			     "hal_stats");
}

struct hal_timeline *hal_queue_timeline(struct hal_queue *q)
{
	if (!OBJECT_OK(q, OBJECT_QUEUE)) {
		(void)object_bad(q, OBJECT_QUEUE);
		return NULL;
	}
	return &q->timeline;
}
