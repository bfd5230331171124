/* SPDX-License-Identifier: Apache-2.0 */
/*
 * timeline.h - counters that work waits on and signals; the first error sticks.
 *
 * Any thread reads and raises the counter; who waits for it is the business of the
 * engine of its device alone, to which a message goes when another raises it.
 */
#ifndef HAL_COMMAND_TIMELINE_H
#define HAL_COMMAND_TIMELINE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loop/wake.h"
#include "util/compiler.h"
#include "util/heap.h"
#include "util/pool.h"

struct hal_device;
struct hal_partition;
struct hal_queue;
struct hal_timeline;
struct waiter;

/* The engine calls it, and has taken it off the list.  err 0: reached. */
typedef void (*waiter_fn)(struct waiter *w, int err);

struct waiter {
	struct heap_node node; /* key: the value */
	struct hal_timeline *timeline;
	waiter_fn fn;
	bool waiting;
};

/* Why a timeline stands still. */
struct stuck {
	int err;
	const char *text; /* behind it, or none of ours */
};

struct hal_timeline {
	struct object obj;
	struct hal_device *dev;
	const struct hal_device *user;   /* whose queues may wait for it; NULL: dead */
	const struct hal_device *raiser; /* may raise it; NULL: none, it is not theirs */
	_Atomic uint64_t value;
	_Atomic(struct stuck *) stuck;   /* NULL: nothing has failed */
	struct stuck plain;              /* without memory for a text */
	atomic_uint pending;             /* waits and signals that are submitted */
	atomic_uint threads;             /* in hal_wait for it, or TIMELINE_CLOSED */
	atomic_uint signallers;          /* in hal_timeline_signal for it */
	atomic_uint fds;                 /* of hal_point_fd, not yet readable */
	struct hal_queue *queue;         /* whose own it is */
	struct hal_partition *partition; /* whose resizes it tells */
	struct hal_timeline *older;      /* one before it, which has failed */
	/* To the engine: it has been raised, or has failed, from elsewhere. */
	struct message message;
	atomic_uint announced;
	/* The engine's: what it knows of .value and .stuck, and goes by.  Of what others
	 * raise it knows once it has read their message: what it decides follows from
	 * what it reads, in that order. */
	uint64_t seen;
	int seen_err;
	struct heap waiters;
};

/* Of its own; NULL: no memory. */
struct hal_timeline *timeline_make(struct hal_device *dev);
void timeline_init(struct hal_timeline *t, struct hal_device *dev);
/* The handle is dead; the engine tells those who still wait.  Nobody can reach it. */
void timeline_fini(struct hal_timeline *t);

/* No thread may begin to wait for it: it is about to be destroyed. */
#define TIMELINE_CLOSED (UINT32_C(1) << 31)

/* From any thread: it is not destroyed before timeline_let_go.  False: it was, since its
 * handle was looked at. */
static inline bool timeline_hold(struct hal_timeline *t)
{
	if (LIKELY(atomic_fetch_add_explicit(&t->threads, 1, memory_order_acquire) <
		   TIMELINE_CLOSED))
		return true;
	atomic_fetch_sub_explicit(&t->threads, 1, memory_order_relaxed);
	return false;
}

static inline void timeline_let_go(struct hal_timeline *t)
{
	atomic_fetch_sub_explicit(&t->threads, 1, memory_order_release);
}

/* False: a thread waits for it. */
static inline bool timeline_close(struct hal_timeline *t)
{
	unsigned int none = 0;

	return atomic_compare_exchange_strong(&t->threads, &none, TIMELINE_CLOSED);
}

/* It is not destroyed after all. */
static inline void timeline_reopen(struct hal_timeline *t)
{
	atomic_fetch_sub(&t->threads, TIMELINE_CLOSED);
}

/* From any thread; for the engine of here (NULL: none), which is told at once if it is
 * the timeline's own. */
void timeline_raise(struct hal_timeline *t, uint64_t value, struct hal_device *here);
void timeline_fail(struct hal_timeline *t, int err, const char *text,
		   struct hal_device *here);

/* From any thread: .value has been raised. */
void timeline_announce(struct hal_timeline *t);

/* The engine's: those who wait for at most value are told. */
void timeline_notify(struct hal_timeline *t, uint64_t value);
void timeline_add_waiter(struct hal_timeline *t, struct waiter *w, uint64_t value);
void timeline_drop_waiter(struct waiter *w);

/* 1 reached, 0 not yet, or the error that stuck. */
static inline int timeline_test(const struct hal_timeline *t, uint64_t value)
{
	const struct stuck *s = atomic_load_explicit(&t->stuck, memory_order_acquire);

	if (atomic_load_explicit(&t->value, memory_order_acquire) >= value)
		return 1;
	return UNLIKELY(s != NULL) ? s->err : 0;
}

/* The engine's: others have raised it to value, or it has failed. */
void timeline_read(struct hal_timeline *t, uint64_t value, int err);

static inline int timeline_error(const struct hal_timeline *t)
{
	const struct stuck *s = atomic_load_explicit(&t->stuck, memory_order_acquire);

	return s != NULL ? s->err : 0;
}

/* Why it failed; NULL: it has not. */
static inline const char *timeline_text(const struct hal_timeline *t)
{
	const struct stuck *s = atomic_load_explicit(&t->stuck, memory_order_acquire);

	return s != NULL ? s->text : NULL;
}

#endif
