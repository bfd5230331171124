/* SPDX-License-Identifier: Apache-2.0 */
/*
 * completions.h - a ring into which the engine writes the ends of submissions of many
 * queues, and which one thread reads.
 *
 * It cannot overflow: a submission takes its place when it is made (.taken), and gives it
 * back when its entry has been read.
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
	atomic_uint queues;
	atomic_uint taken;    /* entries that are promised: in flight or unread */
	atomic_uint notified; /* 1: .fd is readable or is about to be */
	atomic_uint tail;     /* the engine's */
	atomic_uint head;     /* the reader's */
	/* futex: the engine's; up to this entry it has seen to .fd.  And whether the
	 * reader sleeps for it. */
	atomic_uint noticed, awaited;
};

/* By a submitting thread.  False: there is no room. */
static inline bool completions_take(struct hal_completions *c)
{
	if (atomic_fetch_add_explicit(&c->taken, 1, memory_order_acquire) < c->size)
		return true;
	atomic_fetch_sub_explicit(&c->taken, 1, memory_order_relaxed);
	return false;
}

/* What was taken is not used. */
static inline void completions_untake(struct hal_completions *c)
{
	atomic_fetch_sub_explicit(&c->taken, 1, memory_order_relaxed);
}

/* Makes .fd readable, unless it is. */
void completions_notify(struct hal_completions *c);

/* By the engine: a submission of q has ended; q->ending is its. */
void completions_add(struct hal_queue *q, int status, uint64_t submit_ns,
		     uint64_t end_ns);

#endif
