/* SPDX-License-Identifier: Apache-2.0 */
/* account.c - what is counted of queues, partitions and the device, in device time. */
#include "internal.h"

#include <string.h>

static void busy_make_room(struct busy *b, uint64_t settled)
{
	uint32_t last = b->count - 1;

	if (b->at[last].end <= settled) {
		while (b->count > 0 && b->at[b->count - 1].end <= settled)
			b->count--;
		return;
	}
	/* A command that the device has had since before all of these is still running:
	 * it covers the oldest gap, which its own end would add anyway. */
	b->total += b->at[last - 1].start - b->at[last].end;
	b->at[last - 1].start = b->at[last].start;
	b->count--;
}

void busy_insert(struct busy *b, uint64_t start, uint64_t end, uint64_t settled)
{
	uint64_t covered = 0;
	uint32_t first, last;

	if (start >= end)
		return;
	if (b->count == BUSY_INTERVALS)
		busy_make_room(b, settled);
	/* at[first..last) touch the new one and become part of it. */
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
	b->total += end - start - covered;
}

void account_add(struct account *sum, const struct account *a)
{
	sum->queueing_ns += a->queueing_ns;
	sum->submitted += a->submitted;
	sum->completed += a->completed;
	sum->failed += a->failed;
	sum->dropped += a->dropped;
	sum->deadline_misses += a->deadline_misses;
	sum->suspends += a->suspends;
	sum->suspend_ns += a->suspend_ns;
	if (a->suspend_max_ns > sum->suspend_max_ns)
		sum->suspend_max_ns = a->suspend_max_ns;
	sum->replayed += a->replayed;
	sum->replayed_ns += a->replayed_ns;
	sum->bytes_read += a->bytes_read;
	sum->bytes_written += a->bytes_written;
	if (a->latency_max_ns > sum->latency_max_ns)
		sum->latency_max_ns = a->latency_max_ns;
	for (uint32_t i = 0; i < ARRAY_LENGTH(a->histogram); i++)
		sum->histogram[i] += a->histogram[i];
}

void account_export(struct hal_stats *out, const struct account *a, uint64_t busy_ns,
		    uint64_t now_ns)
{
	memset(out, 0, sizeof(*out));
	out->size = sizeof(*out);
	out->now_ns = now_ns;
	out->busy_ns = busy_ns;
	out->queueing_ns = a->queueing_ns;
	out->submitted = a->submitted;
	out->completed = a->completed;
	out->failed = a->failed;
	out->dropped = a->dropped;
	out->deadline_misses = a->deadline_misses;
	out->suspends = a->suspends;
	out->suspend_ns = a->suspend_ns;
	out->suspend_max_ns = a->suspend_max_ns;
	out->replayed = a->replayed;
	out->replayed_ns = a->replayed_ns;
	out->bytes_read = a->bytes_read;
	out->bytes_written = a->bytes_written;
	out->latency_max_ns = a->latency_max_ns;
	/* The last bucket has all that is longer, too. */
	for (uint32_t i = 0; i < ARRAY_LENGTH(a->histogram); i++)
		out->latency_histogram[i < HAL_HISTOGRAM_BUCKETS
					       ? i
					       : HAL_HISTOGRAM_BUCKETS - 1] +=
			a->histogram[i];
}
