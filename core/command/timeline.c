/* SPDX-License-Identifier: Apache-2.0 */
/* timeline.c - counters that work waits on and signals; the first error sticks. */
#include "command/timeline.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "loop/engine.h"
#include "replay/journal.h"
#include "util/error.h"

/* Tells those who wait for at most value; err tells all. */
static void notify_waiters(struct hal_timeline *t, uint64_t value, int err)
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

void timeline_notify(struct hal_timeline *t, uint64_t value)
{
	notify_waiters(t, value, 0);
}

static void notify_all(struct hal_timeline *t)
{
	/* What was reached before it failed has been reached. */
	notify_waiters(t, t->seen, 0);
	if (t->seen_err != 0)
		notify_waiters(t, 0, t->seen_err);
}

void timeline_read(struct hal_timeline *t, uint64_t value, int err)
{
	if (value > t->seen)
		t->seen = value;
	if (t->seen_err == 0)
		t->seen_err = err;
	notify_all(t);
}

static void raised(struct hal_device *dev, struct message *l)
{
	struct hal_timeline *t = container_of(l, struct hal_timeline, message);

	int err;
	uint64_t value;

	announce_again(&t->announced);
	/* The error first: a value read after it is the last one there will be. */
	err = timeline_error(t);
	value = atomic_load_explicit(&t->value, memory_order_acquire);
	journal_raised(t, value, err);
	timeline_read(t, value, err);
	dev->acted = true;
	/* Its owner may take it away from now on. */
	atomic_fetch_sub(&t->pending, 1);
}

void timeline_init(struct hal_timeline *t, struct hal_device *dev)
{
	t->obj.magic = OBJECT_MAGIC(OBJECT_TIMELINE);
	t->dev = dev;
	t->user = dev;
	t->message.fn = raised;
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

	t->user = NULL;
	t->raiser = NULL;
	object_retire(&t->obj);
	notify_waiters(t, 0, -ECANCELED);
	s = atomic_exchange(&t->stuck, NULL);
	if (s != &t->plain)
		free(s);
}

/* The engine that t belongs to is to look at it. */
void timeline_announce(struct hal_timeline *t)
{
	/* The message is in it until it is read: it counts as pending. */
	atomic_fetch_add(&t->pending, 1);
	if (announce_first(&t->announced))
		engine_post(t->dev, &t->message);
	else
		atomic_fetch_sub(&t->pending, 1);
}

/* For all to see.  False: it is there already, or has failed. */
static bool show_value(struct hal_timeline *t, uint64_t value)
{
	uint64_t now = atomic_load_explicit(&t->value, memory_order_relaxed);

	do
		if (value <= now || timeline_error(t) != 0)
			return false;
	while (!atomic_compare_exchange_weak(&t->value, &now, value));
	return true;
}

static bool show_failure(struct hal_timeline *t, int err, const char *text)
{
	size_t length = strlen(text) + 1;
	struct stuck *none = NULL, *s;

	if (timeline_error(t) != 0)
		return false;
	s = malloc(sizeof(*s) + length);
	if (s != NULL) {
		memcpy(s + 1, text, length);
		s->text = (const char *)(s + 1);
	} else {
		s = &t->plain;
		s->text = hal_strerror(err);
	}
	s->err = err;
	if (atomic_compare_exchange_strong(&t->stuck, &none, s))
		return true;
	if (s != &t->plain)
		free(s);
	return false;
}

void timeline_raise(struct hal_timeline *t, uint64_t value, struct hal_device *here)
{
	bool raised_it = show_value(t, value);

	if (t->dev == here) {
		/* Whatever others have raised it to: their message comes in its turn. */
		if (t->seen_err == 0 && value > t->seen) {
			t->seen = value;
			if (!heap_empty(&t->waiters))
				timeline_notify(t, value);
		}
	} else if (raised_it) {
		timeline_announce(t);
	}
}

void timeline_fail(struct hal_timeline *t, int err, const char *text,
		   struct hal_device *here)
{
	bool failed_it = show_failure(t, err, text);

	if (t->dev == here) {
		if (t->seen_err == 0)
			timeline_read(t, t->seen, err);
	} else if (failed_it) {
		timeline_announce(t);
	}
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
