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
	struct hal_completion *entries;
	uint32_t size; /* a power of two */
	int fd;
	atomic_uint queues;   /* number of queues that report to this ring */
	atomic_uint taken;    /* entries reserved by submissions, or not read yet */
	atomic_uint notified; /* 1: .fd is readable or is about to be */
	atomic_uint tail;     /* number of entries written by the engine */
	atomic_uint head;     /* number of entries read by the reader */
	/* .noticed: number of entries for which the engine has made .fd readable; written
	 * by the engine.  The reader sleeps on this futex while .awaited is 1. */
	atomic_uint noticed, awaited;
};

/* Reserve an entry for a submission.  Return false if all are reserved. */
static inline bool completions_take(struct hal_completions *c)
{
	if (atomic_fetch_add_explicit(&c->taken, 1, memory_order_acquire) < c->size)
		return true;
	atomic_fetch_sub_explicit(&c->taken, 1, memory_order_relaxed);
	return false;
}

/* Release a reserved entry that no submission will use. */
static inline void completions_untake(struct hal_completions *c)
{
	atomic_fetch_sub_explicit(&c->taken, 1, memory_order_relaxed);
}

/* Make .fd readable, unless it is readable already. */
void completions_notify(struct hal_completions *c);

/* Write the entry of a submission of q that has completed, failed or been cancelled.
 * Its tag is in q->retire_terms.  Engine only. */
void completions_add(struct hal_queue *q, int status, uint64_t submit_ns,
		     uint64_t end_ns);

#endif
