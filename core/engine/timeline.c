/* SPDX-License-Identifier: Apache-2.0 */
/* timeline.c - counters that work waits on and signals; the first error sticks. */
#include "engine/timeline.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/engine.h"
#include "engine/partition.h"
#include "engine/queue.h"
#include "util/error.h"

/* Tells those who wait for at most value; err tells all. */
static void tell(struct hal_timeline *t, uint64_t value, int err)
{
	struct heap_node *n;

	while ((n = heap_first(&t->waiters)) != NULL) {
		struct waiter *w = container_of(n, struct waiter, node);

		if (err == 0 && n->key > value)
			return;
		heap_take(&t->waiters, n);
		w->waiting = false;
		w->fn(w, err);
	}
}

void timeline_tell(struct hal_timeline *t, uint64_t value)
{
	tell(t, value, 0);
}

static void tell_all(struct hal_timeline *t)
{
	int err = timeline_error(t);

	/* What was reached before it failed has been reached. */
	tell(t, atomic_load_explicit(&t->value, memory_order_acquire), 0);
	if (err != 0)
		tell(t, 0, err);
}

static void raised(struct hal_device *dev, struct letter *l)
{
	struct hal_timeline *t = container_of(l, struct hal_timeline, letter);

	announce_again(&t->announced);
	tell_all(t);
	dev->acted = true;
	/* Its owner may take it away from now on. */
	atomic_fetch_sub(&t->pending, 1);
}

void timeline_init(struct hal_timeline *t, struct hal_device *dev)
{
	t->obj.magic = OBJECT_MAGIC(OBJECT_TIMELINE);
	t->dev = dev;
	t->letter.fn = raised;
}

struct hal_timeline *timeline_make(struct hal_device *dev)
{
	struct hal_timeline *t = object_alloc(OBJECT_TIMELINE, sizeof(*t));

	if (t != NULL)
		timeline_init(t, dev);
	return t;
}

void timeline_fini(struct hal_timeline *t)
{
	struct stuck *s;

	object_retire(&t->obj);
	tell(t, 0, -ECANCELED);
	s = atomic_exchange(&t->stuck, NULL);
	if (s != &t->plain)
		free(s);
}

void timeline_describe(const struct hal_timeline *t, char *text, size_t size)
{
	if (t->queue != NULL)
		queue_describe(t->queue, text, size);
	else if (t->partition != NULL)
		partition_describe(t->partition, text, size);
	else
		format_text(text, size, "timeline %u", t->obj.id);
}

/* The engine that t belongs to is to look at it. */
static void announce(struct hal_timeline *t, struct hal_device *here)
{
	if (t->dev == here) {
		tell_all(t);
		return;
	}
	/* The letter is in it until it is read: it counts as pending. */
	atomic_fetch_add(&t->pending, 1);
	if (announce_first(&t->announced))
		engine_post(t->dev, &t->letter);
	else
		atomic_fetch_sub(&t->pending, 1);
}

void timeline_announce(struct hal_timeline *t)
{
	announce(t, NULL);
}

void timeline_raise(struct hal_timeline *t, uint64_t value, struct hal_device *here)
{
	uint64_t now = atomic_load_explicit(&t->value, memory_order_relaxed);

	do
		if (value <= now || timeline_error(t) != 0)
			return;
	while (!atomic_compare_exchange_weak(&t->value, &now, value));
	announce(t, here);
}

void timeline_fail(struct hal_timeline *t, int err, const char *text,
		   struct hal_device *here)
{
	size_t length = strlen(text) + 1;
	struct stuck *none = NULL, *s;

	if (timeline_error(t) != 0)
		return;
	s = malloc(sizeof(*s) + length);
	if (s != NULL) {
		memcpy(s + 1, text, length);
		s->text = (const char *)(s + 1);
	} else {
		s = &t->plain;
		s->text = hal_strerror(err);
	}
	s->err = err;
	if (!atomic_compare_exchange_strong(&t->stuck, &none, s)) {
		if (s != &t->plain)
			free(s);
		return;
	}
	announce(t, here);
}

void timeline_add_waiter(struct hal_timeline *t, struct waiter *w, uint64_t value)
{
	w->timeline = t;
	w->node.key = value;
	w->waiting = true;
	heap_add(&t->waiters, &w->node);
}

void timeline_drop_waiter(struct waiter *w)
{
	if (w->waiting)
		heap_remove(&w->timeline->waiters, &w->node);
	w->waiting = false;
}
