/* SPDX-License-Identifier: Apache-2.0 */
/*
 * completions.h - a ring of completions: the engine writes an entry for each submission
 * that has completed, failed or been cancelled; one thread of the application reads them.
 *
 * Several queues may share a ring.  It cannot overflow: a submit reserves an entry
 * (.taken), and the reader frees that entry after reading it.
 */
#ifndef HAL_COMMAND_COMPLETIONS_H
#define HAL_COMMAND_COMPLETIONS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "command/queue.h"
#include "loop/device.h"

struct hal_completions {
	struct object obj;
	struct hal_device *dev;
	struct list on_device; /* in device.command.rings; engine only */
	struct hal_completion *entries;
	uint32_t size;        /* a power of two */
	int fd, signal_fd;    /* of fd_pair */
	atomic_uint queues;   /* number of queues that report to this ring */
	atomic_uint taken;    /* entries reserved by submissions, or not read yet */
	atomic_uint notified; /* 1: .fd is readable or is about to be */
	atomic_uint tail;     /* number of entries written by the engine */
	atomic_uint head;     /* number of entries read by the reader */
	/* .noticed: number of entries for which the engine has made .fd readable; written
	 * by the engine.  The reader sleeps on this futex while .awaited is 1. */
	atomic_uint noticed, awaited;
};

/* Make .fd readable, unless it is readable already. */
void completions_notify(struct hal_completions *c);

/* Return whether c is over: the device is lost, and no entry is reserved or unread. */
static inline bool completions_over(struct hal_completions *c)
{
	return atomic_load(&c->dev->lost) != 0 && atomic_load(&c->taken) == 0;
}

/* Release a reserved entry that no submission will use. */
static inline void completions_untake(struct hal_completions *c)
{
	atomic_fetch_sub(&c->taken, 1);
	if (UNLIKELY(completions_over(c)))
		completions_notify(c); /* the reader may wait for this entry */
}

/* Reserve an entry for a submission.  Return false if all are reserved. */
static inline bool completions_take(struct hal_completions *c)
{
	if (atomic_fetch_add_explicit(&c->taken, 1, memory_order_acquire) < c->size)
		return true;
	completions_untake(c);
	return false;
}

/* Wake the readers of all rings of dev, which has just been lost.  Engine only. */
void completions_lost(struct hal_device *dev) COLD;

/* Write the entry of a submission of q that has completed, failed or been cancelled.
 * Its tag is in q->retire_terms.  Engine only. */
void completions_add(struct hal_queue *q, int status, uint64_t submit_ns,
		     uint64_t end_ns);

#endif
