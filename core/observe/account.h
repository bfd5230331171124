/* SPDX-License-Identifier: Apache-2.0 */
/*
 * account.h - what is counted of queues, partitions and the device, in device time.
 *
 * The engine alone counts; any thread may read at any time, each number by itself.
 */
#ifndef HAL_OBSERVE_ACCOUNT_H
#define HAL_OBSERVE_ACCOUNT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <hal/hal.h>

#include "observe/hist.h"
#include "util/compiler.h"

typedef _Atomic uint64_t counter;

static inline uint64_t counter_get(const counter *c)
{
	return atomic_load_explicit(c, memory_order_relaxed);
}

static inline void counter_set(counter *c, uint64_t n)
{
	atomic_store_explicit(c, n, memory_order_relaxed);
}

static inline void counter_add(counter *c, uint64_t n)
{
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
	/* Nobody else writes, so it needs no lock; compilers make three instructions of
	 * what is written below. */
	__asm__("addq %1, %0" : "+m"(*(volatile uint64_t *)c) : "er"(n) : "cc");
#else
	counter_set(c, counter_get(c) + n);
#endif
}

/* For those that several threads count. */
static inline void counter_atomic_add(counter *c, uint64_t n)
{
	(void)atomic_fetch_add_explicit(c, n, memory_order_relaxed);
}

static inline void counter_max(counter *c, uint64_t n)
{
	if (n > counter_get(c))
		counter_set(c, n);
}

/* ---- the union of times in which something ran ------------------------------------- */

/* As many as a partition may have in flight: on a device that works in order as many end,
 * at most, while the oldest has not begun, and nothing has to be guessed. */
#define BUSY_INTERVALS 64

struct busy {
	counter total;
	uint32_t count;
	struct {
		uint64_t start, end;
	} at[BUSY_INTERVALS]; /* disjoint, the newest first; none: at[0] is inside out */
};

static inline void busy_init(struct busy *b)
{
	b->at[0].start = UINT64_MAX;
	b->at[0].end = UINT64_MAX;
}

/* settled: nothing that started before it will still be added. */
void busy_insert(struct busy *b, uint64_t start, uint64_t end, uint64_t settled);

/* Mostly it goes on where the newest ended.  False: busy_insert has to be called. */
static inline bool busy_extend(struct busy *b, uint64_t start, uint64_t end)
{
	if (start < b->at[0].start || start > b->at[0].end)
		return false;
	if (end > b->at[0].end) {
		counter_add(&b->total, end - b->at[0].end);
		b->at[0].end = end;
	}
	return true;
}

/* ---- accounts ---------------------------------------------------------------------- */

/* Whose time from submit to end is counted: most submissions are one command, which is
 * counted once. */
enum latency {
	LATENCY_BOTH,       /* a command that is all of a submission */
	LATENCY_COMMAND,    /* one of several */
	LATENCY_SUBMISSION, /* of several */
	LATENCIES,
};

/* Of one queue; those of destroyed ones are added up in their partition. */
struct account {
	counter busy_ns;
	uint64_t busy_until_ns; /* the engine's own */
	uint64_t last_end_ns; /* the engine's own: of the last command that ended well */
	counter queueing_ns;
	counter submitted; /* of destroyed queues: a living one's are counted by it */
	counter completed, failed, dropped;
	counter deadline_misses;
	counter suspends, suspend_ns, suspend_max_ns;
	counter stop_max_ns[HAL_SUSPEND_KILL + 1];
	counter replayed, replayed_ns, saved_bytes;
	counter bytes_read, bytes_written;
	counter max_ns[LATENCIES];
	_Atomic(struct hist *) latency[LATENCIES]; /* NULL: none has ended */
};

void account_first_latency(struct account *a, enum latency kind, uint64_t ns);

/* Something has ended well. */
static inline void account_latency(struct account *a, enum latency kind, uint64_t ns)
{
	struct hist *h = atomic_load_explicit(&a->latency[kind], memory_order_relaxed);

	counter_max(&a->max_ns[kind], ns);
	if (LIKELY(h != NULL))
		hist_count(h, ns);
	else
		account_first_latency(a, kind, ns);
}

void account_add(struct account *sum, const struct account *a);
/* Out, with what a allocated given back: a is a sum. */
void account_export(struct hal_stats *out, struct account *a, uint64_t busy_ns,
		    uint64_t now_ns);
void account_fini(struct account *a);

#endif
