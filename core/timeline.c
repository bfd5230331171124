/* SPDX-License-Identifier: Apache-2.0 */
/* timeline.c - counters that work waits on and signals; the first error sticks. */
#include "internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void timeline_init(struct hal_timeline *t, struct hal_device *dev)
{
	t->obj.magic = OBJECT_MAGIC(OBJECT_TIMELINE);
	t->dev = dev;
	atomic_init(&t->value, 0);
	atomic_init(&t->err, 0);
	atomic_init(&t->pending, 0);
	atomic_init(&t->fds, 0);
	list_init(&t->waiters);
}

void timeline_describe(const struct hal_timeline *t, char *text, size_t size)
{
	if (t->queue != NULL)
		queue_describe(t->queue, text, size);
	else if (t->partition != NULL)
		format_text(text, size, "partition %u \"%s\"", t->partition->desc.index,
			    t->partition->name);
	else
		format_text(text, size, "timeline %u", t->obj.id);
}

/* Tells those who wait for at most value; err tells all. */
static void tell(struct hal_timeline *t, uint64_t value, int err)
{
	while (!list_empty(&t->waiters)) {
		struct waiter *w = container_of(t->waiters.next, struct waiter, node);

		if (err == 0 && w->value > value)
			return;
		list_del(&w->node);
		w->fn(w, err);
	}
}

void timeline_tell(struct hal_timeline *t, uint64_t value)
{
	tell(t, value, 0);
}

void timeline_set(struct hal_timeline *t, uint64_t value)
{
	if (value <= atomic_load_explicit(&t->value, memory_order_relaxed))
		return;
	if (atomic_load_explicit(&t->err, memory_order_relaxed) != 0)
		return;
	atomic_store_explicit(&t->value, value, memory_order_release);
	tell(t, value, 0);
}

void timeline_fail(struct hal_timeline *t, int err, const char *text)
{
	if (atomic_load_explicit(&t->err, memory_order_relaxed) != 0)
		return;
	t->text = strdup(text); /* NULL: readers say the errno alone */
	atomic_store_explicit(&t->err, err, memory_order_release);
	tell(t, 0, err);
}

void timeline_add_waiter(struct hal_timeline *t, struct waiter *w)
{
	struct list *at = &t->waiters;

	w->timeline = t;
	/* From the end: most wait for something later than those before them. */
	while (at->prev != &t->waiters &&
	       container_of(at->prev, struct waiter, node)->value > w->value)
		at = at->prev;
	list_add_before(at, &w->node);
}

/* Nobody can reach what is still waited for. */
void timeline_fini(struct hal_timeline *t)
{
	object_retire(&t->obj);
	tell(t, 0, -ECANCELED);
	free(t->text);
	t->text = NULL;
}

int hal_timeline_create(struct hal_device *dev, struct hal_timeline **timeline)
{
	struct hal_timeline *t;

	if (!OBJECT_OK(dev, OBJECT_DEVICE))
		return object_bad(dev, OBJECT_DEVICE);
	if (timeline == NULL)
		return fail(EINVAL, "hal_timeline_create: timeline is NULL");
	t = object_alloc(OBJECT_TIMELINE, sizeof(*t));
	if (t == NULL)
		return -ENOMEM;
	timeline_init(t, dev);
	device_lock(dev);
	t->obj.id = dev->next_timeline_id++;
	device_unlock(dev);
	atomic_fetch_add(&dev->timeline_count, 1);
	*timeline = t;
	return 0;
}

int hal_timeline_destroy(struct hal_timeline *timeline)
{
	struct hal_device *dev;
	int err = 0;

	if (timeline == NULL)
		return 0;
	if (!OBJECT_OK(timeline, OBJECT_TIMELINE))
		return object_bad(timeline, OBJECT_TIMELINE);
	if (timeline->queue != NULL || timeline->partition != NULL)
		return fail(EINVAL,
			    "the timeline belongs to a queue or partition and goes "
			    "with it");
	err = callback_refuse("hal_timeline_destroy");
	if (err != 0)
		return err;
	dev = timeline->dev;
	device_lock(dev);
	if (atomic_load(&timeline->pending) != 0) {
		err = fail(EBUSY, "timeline %u: %u submitted waits and signals use it",
			   timeline->obj.id, atomic_load(&timeline->pending));
		goto out;
	}
	timeline_fini(timeline);
	atomic_fetch_sub(&dev->timeline_count, 1);
	object_free(OBJECT_TIMELINE, timeline);
out:
	device_unlock(dev);
	return err;
}

uint64_t hal_timeline_value(const struct hal_timeline *timeline, int *err)
{
	int stuck = 0;

	if (!OBJECT_OK(timeline, OBJECT_TIMELINE)) {
		stuck = object_bad(timeline, OBJECT_TIMELINE);
		if (err != NULL)
			*err = stuck;
		return 0;
	}
	/* The error first: a value read after it is the last one there will be. */
	stuck = atomic_load_explicit(&timeline->err, memory_order_acquire);
	if (err != NULL)
		*err = stuck;
	return atomic_load_explicit(&timeline->value, memory_order_acquire);
}

int hal_timeline_signal(struct hal_timeline *timeline, uint64_t value)
{
	struct hal_device *dev;
	uint64_t now;
	int err;

	if (!OBJECT_OK(timeline, OBJECT_TIMELINE))
		return object_bad(timeline, OBJECT_TIMELINE);
	if (timeline->queue != NULL || timeline->partition != NULL)
		return fail(EINVAL,
			    "the timeline belongs to a queue or partition; only its "
			    "work moves it");
	dev = timeline->dev;
	device_lock(dev);
	now = atomic_load(&timeline->value);
	err = atomic_load(&timeline->err);
	if (err != 0)
		err = fail(err, "timeline %u has failed: %s", timeline->obj.id,
			   timeline->text != NULL ? timeline->text : hal_strerror(err));
	else if (value <= now)
		err = fail(EINVAL, "timeline %u is at %llu, it cannot go to %llu",
			   timeline->obj.id, (unsigned long long)now,
			   (unsigned long long)value);
	else
		timeline_set(timeline, value);
	device_unlock(dev);
	if (err == 0)
		engine_kick(dev);
	return err;
}
