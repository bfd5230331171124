/* SPDX-License-Identifier: Apache-2.0 */
/*
 * account.h - statistics of queues, partitions and the device, in device time.
 *
 * Only the engine writes them.  Any thread may read them at any time, each number by
 * itself: two numbers may be from different moments.
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

/* Add n to a counter that only one thread writes. */
static inline void counter_add(counter *c, uint64_t n)
{
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
	/* One instruction without a lock prefix is enough, because there is one writer.
	 * Compilers make three instructions of the code below. */
	__asm__("addq %1, %0" : "+m"(*(volatile uint64_t *)c) : "er"(n) : "cc");
#else
	counter_set(c, counter_get(c) + n);
#endif
}

/* Add n to a counter that several threads write. */
static inline void counter_atomic_add(counter *c, uint64_t n)
{
	(void)atomic_fetch_add_explicit(c, n, memory_order_relaxed);
}

/* Set c to n if c is less than n. */
static inline void counter_max(counter *c, uint64_t n)
{
	if (n > counter_get(c))
		counter_set(c, n);
}

/* ---- busy time: length of the union of intervals ----------------------------------- */

/* Maximum number of intervals in a struct busy, equal to the maximum of in-flight
 * commands of a partition.  If commands complete in order of issue, this number always
 * suffices, and .total is exact. */
#define BUSY_INTERVALS 64

/* The time in which at least one command ran. */
struct busy {
	counter total; /* sum of all intervals, in ns */
	uint32_t count;
	/* Disjoint intervals, newest first.  Before the first one, at[0].start is
	 * UINT64_MAX. */
	struct {
		uint64_t start, end;
	} at[BUSY_INTERVALS];
};

static inline void busy_init(struct busy *b)
{
	b->at[0].start = UINT64_MAX;
	b->at[0].end = UINT64_MAX;
}

/* Add the interval from start to end.  The caller guarantees that no later call adds an
 * interval that starts before settled. */
void busy_insert(struct busy *b, uint64_t start, uint64_t end, uint64_t settled);

/* Add the interval if it only extends the newest one, the usual case.  Return false if
 * the caller must call busy_insert instead. */
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

/* Times from submit to completion.  Most submissions have one command; their time is
 * counted once, as LATENCY_BOTH. */
enum latency {
	LATENCY_BOTH,       /* the only command of a submission */
	LATENCY_COMMAND,    /* a command whose submission has several */
	LATENCY_SUBMISSION, /* a submission with several commands */
	LATENCIES,
};

/* The statistics of one queue.  Those of destroyed queues are added up in their
 * partition.
 */
struct account {
	counter busy_ns;
	uint64_t busy_until_ns; /* engine only */
	uint64_t last_end_ns;   /* engine only: end of the last command without error */
	counter queueing_ns;
	/* Commands submitted to destroyed queues; for live ones see queue_commands. */
	counter submitted;
	counter completed, failed, dropped;
	counter deadline_misses;
	counter suspends, suspend_ns, suspend_max_ns;
	counter stop_max_ns[HAL_SUSPEND_KILL + 1];
	counter replayed, replayed_ns, saved_bytes;
	counter bytes_read, bytes_written;
	counter max_ns[LATENCIES];
	_Atomic(struct hist *) latency[LATENCIES]; /* histograms; NULL: empty */
};

/* Allocate the histogram of kind, and count ns in it. */
void account_first_latency(struct account *a, enum latency kind, uint64_t ns);

/* Count the latency of a command or submission that has completed without error. */
static inline void account_latency(struct account *a, enum latency kind, uint64_t ns)
{
	struct hist *h = atomic_load_explicit(&a->latency[kind], memory_order_relaxed);

	counter_max(&a->max_ns[kind], ns);
	if (LIKELY(h != NULL))
		hist_count(h, ns);
	else
		account_first_latency(a, kind, ns);
}

/* Add the numbers of a to sum. */
void account_add(struct account *sum, const struct account *a);
/* Convert a, a sum, to *out, and free its histograms. */
void account_export(struct hal_stats *out, struct account *a, uint64_t busy_ns,
		    uint64_t now_ns);
/* Free the histograms of a. */
void account_fini(struct account *a);

#endif
