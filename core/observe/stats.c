/* SPDX-License-Identifier: Apache-2.0 */
/* stats.c - add up the counters of queues and partitions. */
#include "observe/stats.h"

#include <string.h>

#include "loop/device.h"

void stats_add_queue(struct account *sum, const struct hal_queue *q)
{
	account_add(sum, &q->observe.account);
	counter_add(&sum->submitted, queue_commands(q));
}

void stats_add_partition(struct account *sum, struct hal_partition *part)
{
	account_add(sum, &part->observe.past);
	hal_list_for_each (it, &part->queues)
		stats_add_queue(sum, container_of(it, struct hal_queue, on_partition));
}

uint64_t stats_busy(const struct hal_partition *part, const struct account *sum)
{
	/* A host is busy while its units run its own or a guest's work.  A guest has no
	 * units and runs one command at a time, so the run times of its commands add up.
	 */
	return part->host == part ? counter_get(&part->observe.ran.total)
				  : counter_get(&sum->busy_ns);
}

void stats_read(struct hal_partition *part, struct hal_stats *stats,
		struct request_times *times)
{
	static const enum latency requests[] = {LATENCY_BOTH, LATENCY_SUBMISSION};
	struct account sum;

	memset(&sum, 0, sizeof(sum));
	memset(times, 0, sizeof(*times));
	pthread_rwlock_rdlock(&part->dev->shape);
	stats_add_partition(&sum, part);
	pthread_rwlock_unlock(&part->dev->shape);
	for (uint32_t i = 0; i < ARRAY_LENGTH(requests); i++) {
		const struct hist *h = atomic_load(&sum.latency[requests[i]]);

		hist_powers(h, times->histogram, HAL_HISTOGRAM_BUCKETS);
		times->ns += hist_sum(h);
	}
	account_export(stats, &sum, stats_busy(part, &sum), 0);
}
