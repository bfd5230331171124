/* SPDX-License-Identifier: Apache-2.0 */
/* stats.h - add up the counters of queues and partitions.  The caller holds dev->shape.
 */
#ifndef HAL_OBSERVE_STATS_H
#define HAL_OBSERVE_STATS_H

#include "command/queue.h"
#include "space/partition.h"

/* Add the counters of q to sum. */
void stats_add_queue(struct account *sum, const struct hal_queue *q);
/* Add the counters of part's queues, destroyed ones included, to sum. */
void stats_add_partition(struct account *sum, struct hal_partition *part);

#endif
