/* SPDX-License-Identifier: Apache-2.0 */
/* timeline.c - timelines: raise them, make them fail, call their waiters. */
#include "command/timeline.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "loop/engine.h"
#include "replay/journal.h"
#include "util/error.h"

/* Call the waiters for values up to value; with err, all waiters. */
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

/* Call the waiters that t->seen and t->seen_err concern. */
static void notify_seen(struct hal_timeline *t)
{
	/* Values reached before the failure count as reached. */
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
	notify_seen(t);
}

/* Handle the message of a timeline. */
static void read_change(struct hal_device *dev, struct message *msg)
{
	struct hal_timeline *t = container_of(msg, struct hal_timeline, message);

	int err;
	uint64_t value;

	announce_again(&t->announced);
	/* Read the error first.  If it is set, the value can no longer change. */
	err = timeline_error(t);
	value = atomic_load_explicit(&t->value, memory_order_acquire);
	journal_raised(t, value, err);
	timeline_read(t, value, err);
	dev->acted = true;
	/* From here on t may be destroyed. */
	atomic_fetch_sub(&t->pending, 1);
}

void timeline_init(struct hal_timeline *t, struct hal_device *dev)
{
	t->obj.magic = OBJECT_MAGIC(OBJECT_TIMELINE);
	t->dev = dev;
	t->user = dev;
	t->message.fn = read_change;
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
	struct failure *f;

	t->user = NULL;
	t->raiser = NULL;
	object_retire(&t->obj);
	notify_waiters(t, 0, -ECANCELED);
	f = atomic_exchange(&t->failure, NULL);
	if (f != &t->spare)
		free(f);
}

void timeline_announce(struct hal_timeline *t)
{
	/* Count the message, which is part of t, until the engine has read it. */
	atomic_fetch_add(&t->pending, 1);
	if (announce_first(&t->announced))
		engine_post(t->dev, &t->message);
	else
		atomic_fetch_sub(&t->pending, 1);
}

/* Raise t->value.  Return false if it is not lower than value, or t has failed. */
static bool publish_value(struct hal_timeline *t, uint64_t value)
{
	uint64_t now = atomic_load_explicit(&t->value, memory_order_relaxed);

	do
		if (value <= now || timeline_error(t) != 0)
			return false;
	while (!atomic_compare_exchange_weak(&t->value, &now, value));
	return true;
}

/* Return the failure of t that needs no memory.  Threads that fail t at the same time
 * agree on the error of the first one. */
static struct failure *spare_failure(struct hal_timeline *t, int err)
{
	int none = 0;

	(void)atomic_compare_exchange_strong(&t->spare.err, &none, err);
	return &t->spare;
}

/* Set t->failure.  Return false if t has failed before. */
static bool publish_failure(struct hal_timeline *t, int err, const char *text)
{
	size_t length = strlen(text) + 1;
	struct failure *none = NULL, *f;

	if (timeline_error(t) != 0)
		return false;
	f = malloc(sizeof(*f) + length);
	if (f != NULL) {
		memcpy(f + 1, text, length);
		f->text = (const char *)(f + 1);
		atomic_init(&f->err, err);
	} else {
		f = spare_failure(t, err);
	}
	if (atomic_compare_exchange_strong(&t->failure, &none, f))
		return true;
	if (f != &t->spare)
		free(f);
	return false;
}

void timeline_raise(struct hal_timeline *t, uint64_t value, struct hal_device *here)
{
	bool raised_it = publish_value(t, value);

	if (t->dev == here) {
		/* .value may be higher: the message of the thread that raised it is
		 * still unread. */
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
	bool failed_it = publish_failure(t, err, text);

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
