/* SPDX-License-Identifier: Apache-2.0 */
/* later.c - give objects back to a driver that may wait for the device to do so. */
#define _GNU_SOURCE
#include "later.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void stream_later_init(struct stream_later *l, const struct stream_later_ops *ops,
		       void *device, size_t item_bytes, const char *name)
{
	l->ops = ops;
	l->device = device;
	l->item_bytes = item_bytes;
	l->threaded = name != NULL;
	if (name)
		snprintf(l->name, sizeof(l->name), "%s", name);
	(void)pthread_mutex_init(&l->lock, NULL);
	(void)pthread_cond_init(&l->wake, NULL);
	(void)pthread_cond_init(&l->attempted, NULL);
}

/* Append n objects.  Without memory for them they go with the process. */
static void append(struct stream_later_list *list, const char *items, uint32_t n,
		   size_t item_bytes)
{
	const uint32_t count = list->count;
	uint32_t room = list->room ? list->room : 64;
	char *all = list->items;

	if (!n)
		return;
	while (room < count + n)
		room *= 2;
	if (room > list->room) {
		all = realloc(all, room * item_bytes);
		if (!all)
			return;
		list->items = all;
		list->room = room;
	}
	memcpy(all + count * item_bytes, items, n * item_bytes);
	list->count = count + n;
}

/* Empty list; return its objects, which the caller frees, and their number. */
static char *take(struct stream_later_list *list, uint32_t *n)
{
	char *items = list->items;

	*n = list->count;
	list->items = NULL;
	list->count = list->room = 0;
	return items;
}

/* Try each object of the list once.  l->lock is held, but not while the driver works:
 * meanwhile other threads add objects. */
static void try_all(struct stream_later *l)
{
	uint32_t n, i, left = 0;
	char *items = take(&l->list, &n);

	l->working++;
	for (i = 0; i < n; i++) {
		const char *item = items + i * l->item_bytes;
		bool ended = false;

		/* Work may have begun to hang after the objects were taken. */
		if (!l->held && !l->ops->lost(l->device)) {
			pthread_mutex_unlock(&l->lock);
			ended = !l->ops->end(l->device, item);
			pthread_mutex_lock(&l->lock);
		}
		if (!ended)
			memmove(items + left++ * l->item_bytes, item, l->item_bytes);
	}
	append(&l->list, items, left, l->item_bytes);
	free(items);
	l->done++;
	l->working--;
	pthread_cond_broadcast(&l->attempted);
}

/* Have the thread make a round. */
static void start_round(struct stream_later *l)
{
	l->again = true;
	pthread_cond_signal(&l->wake);
}

/* This open's work has ended: what waited for it may go. */
static void release_idle(struct stream_later *l)
{
	uint32_t n;
	char *items = take(&l->idle, &n);

	append(&l->list, items, n, l->item_bytes);
	free(items);
}

/* Make a round without attempts, so that no thread waits for one. */
static void skip_round(struct stream_later *l)
{
	l->done++;
	pthread_cond_broadcast(&l->attempted);
}

/* Let the thread call the driver, unless *entered says that it can.  l->lock is held, but
 * not during the call.  Return whether the thread can call the driver. */
static bool enter_once(struct stream_later *l, bool *entered)
{
	if (*entered)
		return true;
	l->working++;
	pthread_mutex_unlock(&l->lock);
	*entered = !l->ops->enter(l->device);
	pthread_mutex_lock(&l->lock);
	l->working--;
	return *entered;
}

static void *run(void *arg)
{
	struct stream_later *l = arg;
	bool entered = false;

	pthread_mutex_lock(&l->lock);
	while (!l->stop) {
		if (!l->again || l->held) {
			(void)pthread_cond_wait(&l->wake, &l->lock);
			continue;
		}
		l->again = false;
		if (enter_once(l, &entered))
			try_all(l);
		else
			skip_round(l);
	}
	pthread_mutex_unlock(&l->lock);
	if (entered)
		l->ops->leave(l->device);
	return NULL;
}

/* Start the thread.  Without one, stream_later_settle and _finish make the calls. */
static void start(struct stream_later *l)
{
	sigset_t all, old;

	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &old);
	l->started = pthread_create(&l->thread, NULL, run, l) == 0;
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (l->started)
		(void)pthread_setname_np(l->thread, l->name);
}

int stream_later_give(struct stream_later *l, const void *item,
		      enum stream_later_when when, bool running)
{
	const bool idle = when == STREAM_LATER_IDLE &&
			  (l->threaded ? l->ops->running(l->device) : running);
	int err = 0;

	if (l->ops->lost(l->device))
		return 0;
	if (when == STREAM_LATER_NOW ||
	    (!l->threaded && !running && !l->ops->busy(l->device))) {
		err = l->ops->end(l->device, item);
		if (!err)
			return 0;
	}
	pthread_mutex_lock(&l->lock);
	append(idle ? &l->idle : &l->list, item, 1, l->item_bytes);
	if (l->threaded && !l->stop && !idle) {
		if (!l->started)
			start(l);
		start_round(l);
	}
	pthread_mutex_unlock(&l->lock);
	return err;
}

/* Change l->held; wake the threads that wait for it. */
static void hold(struct stream_later *l, bool held)
{
	pthread_mutex_lock(&l->lock);
	l->held = held;
	pthread_cond_broadcast(&l->wake);
	pthread_cond_broadcast(&l->attempted);
	pthread_mutex_unlock(&l->lock);
}

void stream_later_poll(struct stream_later *l, bool running, bool hangs)
{
	const bool idle = !running && atomic_load(&l->idle.count);

	/* The engine alone changes .held. */
	if (__builtin_expect(hangs != l->held, 0))
		hold(l, hangs);
	if (running || (!idle && (l->threaded || !atomic_load(&l->list.count))))
		return;
	if (!l->threaded && (l->ops->busy(l->device) || l->ops->enter(l->device)))
		return;
	pthread_mutex_lock(&l->lock);
	release_idle(l);
	if (!l->threaded) {
		try_all(l);
	} else {
		if (!l->started)
			start(l);
		start_round(l);
	}
	pthread_mutex_unlock(&l->lock);
}

uint64_t stream_later_mark(struct stream_later *l)
{
	return atomic_load(&l->done);
}

bool stream_later_settle(struct stream_later *l, uint64_t mark)
{
	uint64_t round;
	bool any;

	pthread_mutex_lock(&l->lock);
	/* The last command may have ended while an object was added to .idle; then no
	 * poll follows. */
	if (l->threaded && l->idle.count && !l->ops->running(l->device))
		release_idle(l);
	any = l->list.count || l->working;
	if (l->started) {
		/* A round that is under way may lack the newest objects. */
		round = l->done + l->working + 1;
		start_round(l);
		while (any && !l->held && l->done < round)
			(void)pthread_cond_wait(&l->attempted, &l->lock);
	} else {
		while (!l->held && l->working)
			(void)pthread_cond_wait(&l->attempted, &l->lock);
		if (!l->held && l->list.count)
			try_all(l);
	}
	any = !l->held && l->done != mark;
	pthread_mutex_unlock(&l->lock);
	return any;
}

/* Keep l, whose thread stays until the process ends: for leak checkers it is in use. */
static void keep(struct stream_later *l)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static struct stream_later *kept;

	pthread_mutex_lock(&lock);
	l->older = kept;
	kept = l;
	pthread_mutex_unlock(&lock);
}

bool stream_later_stop(struct stream_later *l, bool hangs)
{
	bool stays;

	pthread_mutex_lock(&l->lock);
	l->stop = true;
	l->held = l->held || hangs;
	pthread_cond_signal(&l->wake);
	stays = l->started && l->working && hangs;
	pthread_mutex_unlock(&l->lock);
	if (!l->started)
		return true;
	if (stays) {
		keep(l);
		(void)pthread_detach(l->thread);
	} else {
		(void)pthread_join(l->thread, NULL);
	}
	l->started = stays;
	return !stays;
}

void stream_later_finish(struct stream_later *l)
{
	pthread_mutex_lock(&l->lock);
	release_idle(l);
	try_all(l);
	try_all(l); /* what failed */
	pthread_mutex_unlock(&l->lock);
}

void stream_later_each(const struct stream_later *l, void (*fn)(const void *item))
{
	uint32_t i;

	for (i = 0; i < l->list.count; i++)
		fn(l->list.items + i * l->item_bytes);
	for (i = 0; i < l->idle.count; i++)
		fn(l->idle.items + i * l->item_bytes);
}

void stream_later_fini(struct stream_later *l)
{
	free(l->list.items);
	free(l->idle.items);
	pthread_cond_destroy(&l->attempted);
	pthread_cond_destroy(&l->wake);
	pthread_mutex_destroy(&l->lock);
}
