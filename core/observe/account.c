/* SPDX-License-Identifier: Apache-2.0 */
/* account.c - statistics of queues, partitions and the device; see account.h. */
#include "observe/account.h"

#include <stdlib.h>
#include <string.h>

/* Drop the oldest intervals as far as no new one can touch them. */
static void busy_forget(struct busy *b, uint64_t settled)
{
	while (b->count > 0 && b->at[b->count - 1].end <= settled)
		b->count--;
}

/* Free an entry of b: join the two oldest intervals. */
static void busy_join(struct busy *b)
{
	uint32_t last = b->count - 1;

	/* The oldest command in flight was issued before the end of the oldest interval.
	 * Assume that it has run since then: when it completes, its interval covers the
	 * gap between the two oldest intervals anyway. */
	counter_add(&b->total, b->at[last - 1].start - b->at[last].end);
	b->at[last - 1].start = b->at[last].start;
	b->count--;
}

void busy_insert(struct busy *b, uint64_t start, uint64_t end, uint64_t settled)
{
	uint64_t covered = 0;
	uint32_t first, last;

	if (start >= end)
		return;
	busy_forget(b, settled);
	if (b->count == BUSY_INTERVALS)
		busy_join(b);
	/* at[first..last) touch the new interval and become part of it. */
	for (first = 0; first < b->count && b->at[first].start > end; first++)
		;
	for (last = first; last < b->count && b->at[last].end >= start; last++)
		covered += b->at[last].end - b->at[last].start;
	if (last > first) {
		if (b->at[last - 1].start < start)
			start = b->at[last - 1].start;
		if (b->at[first].end > end)
			end = b->at[first].end;
	}
	memmove(&b->at[first + 1], &b->at[last], (b->count - last) * sizeof(b->at[0]));
	b->at[first].start = start;
	b->at[first].end = end;
	b->count = b->count - (last - first) + 1;
	counter_add(&b->total, end - start - covered);
}

static struct hist *latency_of(const struct account *a, enum latency kind)
{
	return atomic_load_explicit(&a->latency[kind], memory_order_acquire);
}

/* Return the histogram of a, allocated if necessary.  NULL: no memory.  The caller then
 * counts nothing, because statistics are not worth a failure. */
static struct hist *latency_make(struct account *a, enum latency kind)
{
	struct hist *h = latency_of(a, kind);

	if (h == NULL) {
		h = calloc(1, sizeof(*h));
		atomic_store_explicit(&a->latency[kind], h, memory_order_release);
	}
	return h;
}

void account_first_latency(struct account *a, enum latency kind, uint64_t ns)
{
	struct hist *h = latency_make(a, kind);

	if (h != NULL)
		hist_count(h, ns);
}

void account_add(struct account *sum, const struct account *a)
{
	counter_add(&sum->busy_ns, counter_get(&a->busy_ns));
	counter_add(&sum->queueing_ns, counter_get(&a->queueing_ns));
	counter_add(&sum->submitted, counter_get(&a->submitted));
	counter_add(&sum->completed, counter_get(&a->completed));
	counter_add(&sum->failed, counter_get(&a->failed));
	counter_add(&sum->dropped, counter_get(&a->dropped));
	counter_add(&sum->deadline_misses, counter_get(&a->deadline_misses));
	counter_add(&sum->suspends, counter_get(&a->suspends));
	counter_add(&sum->suspend_ns, counter_get(&a->suspend_ns));
	counter_max(&sum->suspend_max_ns, counter_get(&a->suspend_max_ns));
	for (uint32_t mode = 0; mode <= HAL_SUSPEND_KILL; mode++)
		counter_max(&sum->stop_max_ns[mode], counter_get(&a->stop_max_ns[mode]));
	counter_add(&sum->replayed, counter_get(&a->replayed));
	counter_add(&sum->replayed_ns, counter_get(&a->replayed_ns));
	counter_add(&sum->saved_bytes, counter_get(&a->saved_bytes));
	counter_add(&sum->bytes_read, counter_get(&a->bytes_read));
	counter_add(&sum->bytes_written, counter_get(&a->bytes_written));
	for (enum latency k = 0; k < LATENCIES; k++) {
		const struct hist *h = latency_of(a, k);
		struct hist *to = h != NULL ? latency_make(sum, k) : NULL;

		counter_max(&sum->max_ns[k], counter_get(&a->max_ns[k]));
		if (to != NULL)
			hist_add(to, h);
	}
}

void account_fini(struct account *a)
{
	for (enum latency k = 0; k < LATENCIES; k++) {
		struct hist *h = latency_of(a, k);

		if (h != NULL)
			hist_fini(h);
		free(h);
		atomic_store_explicit(&a->latency[k], NULL, memory_order_relaxed);
	}
}

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static void export_latency(struct hal_stats *out, const struct account *a)
{
	static const uint32_t shares[] = {500, 900, 990, 999};
	const struct hist *both = latency_of(a, LATENCY_BOTH);
	const struct hist *commands = latency_of(a, LATENCY_COMMAND);
	const struct hist *submissions = latency_of(a, LATENCY_SUBMISSION);
	uint64_t max = counter_get(&a->max_ns[LATENCY_BOTH]);
	uint64_t p[4];

	out->latency_max_ns = larger(max, counter_get(&a->max_ns[LATENCY_COMMAND]));
	out->request_max_ns = larger(max, counter_get(&a->max_ns[LATENCY_SUBMISSION]));
	hist_powers(both, out->latency_histogram, HAL_HISTOGRAM_BUCKETS);
	hist_powers(commands, out->latency_histogram, HAL_HISTOGRAM_BUCKETS);
	out->requests = hist_percentiles(both, submissions, shares, 4, p);
	out->request_p50_ns = p[0];
	out->request_p90_ns = p[1];
	out->request_p99_ns = p[2];
	out->request_p999_ns = p[3];
}

void account_export(struct hal_stats *out, struct account *a, uint64_t busy_ns,
		    uint64_t now_ns)
{
	memset(out, 0, sizeof(*out));
	out->size = sizeof(*out);
	out->now_ns = now_ns;
	out->busy_ns = busy_ns;
	out->queueing_ns = counter_get(&a->queueing_ns);
	out->submitted = counter_get(&a->submitted);
	out->completed = counter_get(&a->completed);
	out->failed = counter_get(&a->failed);
	out->dropped = counter_get(&a->dropped);
	out->deadline_misses = counter_get(&a->deadline_misses);
	out->suspends = counter_get(&a->suspends);
	out->suspend_ns = counter_get(&a->suspend_ns);
	out->suspend_max_ns = counter_get(&a->suspend_max_ns);
	for (uint32_t mode = 0; mode <= HAL_SUSPEND_KILL; mode++)
		out->stop_max_ns[mode] = counter_get(&a->stop_max_ns[mode]);
	out->replayed = counter_get(&a->replayed);
	out->replayed_ns = counter_get(&a->replayed_ns);
	out->saved_bytes = counter_get(&a->saved_bytes);
	out->bytes_read = counter_get(&a->bytes_read);
	out->bytes_written = counter_get(&a->bytes_written);
	export_latency(out, a);
	account_fini(a);
}
