/* SPDX-License-Identifier: Apache-2.0 */
/*
 * timeline.h - timelines: counters that only go up, which work waits for and signals.
 *
 * Any thread may read and raise the counter.  Only the engine of the timeline's device
 * keeps the waiters.  When another thread or engine raises the counter, a message
 * notifies that engine.  A timeline may also fail; its first error stays.
 */
#ifndef HAL_COMMAND_TIMELINE_H
#define HAL_COMMAND_TIMELINE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hal/hal.h>

#include "loop/wake.h"
#include "util/compiler.h"
#include "util/heap.h"
#include "util/pool.h"

struct hal_device;
struct hal_partition;
struct hal_queue;
struct hal_timeline;
struct waiter;

/* Called by the engine after it has removed w.  err is 0 if the value was reached, else
 * the timeline's error. */
typedef void (*waiter_fn)(struct waiter *w, int err);

/* Waits until .timeline reaches a value. */
struct waiter {
	struct heap_node node; /* .key: the value */
	struct hal_timeline *timeline;
	waiter_fn fn;
	bool waiting;
};

/* Why a timeline has failed. */
struct failure {
	atomic_int err;
	/* Allocated together with it, or a constant; NULL: the text of .err. */
	const char *text;
};

struct hal_timeline {
	struct object obj;
	struct hal_device *dev;
	/* The device whose queues may wait for it; NULL once it is destroyed. */
	const struct hal_device *user;
	/* The device if applications may raise it; NULL if only the library does. */
	const struct hal_device *raiser;
	_Atomic uint64_t value;
	_Atomic(struct failure *) failure; /* NULL: it has not failed */
	/* Used if memory for a failure is short.  It belongs to the thread that has set
	 * its .err first, but any thread may publish it. */
	struct failure spare;
	atomic_uint pending;     /* submitted waits and signals, messages */
	atomic_uint threads;     /* threads in hal_wait for it, plus TIMELINE_CLOSED */
	atomic_uint signallers;  /* threads in hal_timeline_signal for it */
	atomic_uint fds;         /* fds of hal_point_open_fd that are not readable yet */
	struct hal_queue *queue; /* the queue that it belongs to; NULL: none */
	/* The partition whose completed resizes it counts; NULL: none. */
	struct hal_partition *partition;
	struct hal_timeline *older; /* failed one that it replaced; NULL: none */
	/* Notifies the engine that another thread or engine raised it or made it fail. */
	struct message message;
	atomic_uint announced;
	/* The engine's view of .value and .failure, on which its decisions are based.  A
	 * change from outside gets here when the engine reads .message.  Decisions thus
	 * depend only on the order of messages, which a journal can record. */
	uint64_t seen;
	int seen_err;
	/* Links through which another process may raise it or make it fail (courier.h).
	 * Only the engine changes it. */
	atomic_uint outside;
	struct heap waiters;
};

/* Allocate a timeline; NULL on ENOMEM. */
struct hal_timeline *timeline_make(struct hal_device *dev);
/* Initialize t, which is zeroed and part of another object. */
void timeline_init(struct hal_timeline *t, struct hal_device *dev);
/* Invalidate the handle of t and cancel its remaining waiters (-ECANCELED).  Engine only;
 * no other thread may use t any more. */
void timeline_fini(struct hal_timeline *t);

/* Bit of hal_timeline.threads: t is about to be destroyed, so no thread may begin to wait
 * for it. */
#define TIMELINE_CLOSED (UINT32_C(1) << 31)

/* Keep t from being destroyed until timeline_let_go.  Any thread.  Return false if t has
 * been closed since the caller checked its handle. */
static inline bool timeline_hold(struct hal_timeline *t)
{
	if (LIKELY(atomic_fetch_add_explicit(&t->threads, 1, memory_order_acquire) <
		   TIMELINE_CLOSED))
		return true;
	atomic_fetch_sub_explicit(&t->threads, 1, memory_order_relaxed);
	return false;
}

/* Undo timeline_hold. */
static inline void timeline_let_go(struct hal_timeline *t)
{
	atomic_fetch_sub_explicit(&t->threads, 1, memory_order_release);
}

/* Keep threads from waiting for t, which is about to be destroyed.  Return false if a
 * thread waits for it now. */
static inline bool timeline_close(struct hal_timeline *t)
{
	unsigned int none = 0;

	return atomic_compare_exchange_strong(&t->threads, &none, TIMELINE_CLOSED);
}

/* Undo timeline_close: t is not destroyed after all. */
static inline void timeline_reopen(struct hal_timeline *t)
{
	atomic_fetch_sub(&t->threads, TIMELINE_CLOSED);
}

/* Raise t to value, or make it fail.  here is the device whose engine the calling thread
 * is; NULL for other threads.  If here is the device of t, waiters are called at once;
 * otherwise a message notifies the engine of t. */
void timeline_raise(struct hal_timeline *t, uint64_t value, struct hal_device *here);
void timeline_fail(struct hal_timeline *t, int err, const char *text,
		   struct hal_device *here);

/* Notify the engine of t that .value or .failure has changed.  Any thread. */
void timeline_announce(struct hal_timeline *t);

/* Call the waiters for values up to value.  Engine only. */
void timeline_notify(struct hal_timeline *t, uint64_t value);
/* Have w->fn called when t reaches value or fails.  Engine only. */
void timeline_add_waiter(struct hal_timeline *t, struct waiter *w, uint64_t value);
/* Remove w without a call, if it still waits.  Engine only. */
void timeline_drop_waiter(struct waiter *w);

/* Return 1 if t has reached value, 0 if not yet, or its error if it never will. */
static inline int timeline_test(const struct hal_timeline *t, uint64_t value)
{
	const struct failure *f = atomic_load_explicit(&t->failure, memory_order_acquire);

	if (atomic_load_explicit(&t->value, memory_order_acquire) >= value)
		return 1;
	return UNLIKELY(f != NULL) ? f->err : 0;
}

/* Record that t was raised to value, or failed with err, from outside of its engine; call
 * the waiters.  Engine only. */
void timeline_read(struct hal_timeline *t, uint64_t value, int err);

/* Return whether w waits for a timeline that another process may raise. */
static inline bool timeline_outside(const struct waiter *w)
{
	return w->waiting && atomic_load(&w->timeline->outside) != 0;
}

/* Return the error of t; 0 if it has not failed. */
static inline int timeline_error(const struct hal_timeline *t)
{
	const struct failure *f = atomic_load_explicit(&t->failure, memory_order_acquire);

	return f != NULL ? f->err : 0;
}

/* Return why t failed; NULL if it has not failed. */
static inline const char *timeline_text(const struct hal_timeline *t)
{
	const struct failure *f = atomic_load_explicit(&t->failure, memory_order_acquire);

	if (f == NULL || f->text != NULL)
		return f != NULL ? f->text : NULL;
	return hal_strerror(f->err);
}

#endif
