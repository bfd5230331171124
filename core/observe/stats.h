/* SPDX-License-Identifier: Apache-2.0 */
/* stats.h - add up the counters of queues and partitions. */
#ifndef HAL_OBSERVE_STATS_H
#define HAL_OBSERVE_STATS_H

#include "command/queue.h"
#include "space/partition.h"

/* Add the counters of q to sum.  The caller holds dev->shape. */
void stats_add_queue(struct account *sum, const struct hal_queue *q);
/* Add the counters of part's queues, destroyed ones included, to sum.  The caller holds
 * dev->shape. */
void stats_add_partition(struct account *sum, struct hal_partition *part);
/* Return the busy time of part, whose counters are sum, in ns. */
uint64_t stats_busy(const struct hal_partition *part, const struct account *sum);

/* Times of submissions that ended without error, submit until all of it ended. */
struct request_times {
	uint64_t ns;                               /* their sum, at most 1 % off */
	uint64_t histogram[HAL_HISTOGRAM_BUCKETS]; /* as hal_stats.latency_histogram */
};

/* Do as hal_partition_get_stats without .now_ns, and write the times of part's
 * submissions to *times.  Unlike that function, never enter the engine: the caller may
 * hold locks that host functions need. */
void stats_read(struct hal_partition *part, struct hal_stats *stats,
		struct request_times *times);

#endif
