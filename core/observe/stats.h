/* SPDX-License-Identifier: Apache-2.0 */
/* stats.h - sums of what is counted, by whoever has dev->shape. */
#ifndef HAL_OBSERVE_STATS_H
#define HAL_OBSERVE_STATS_H

#include "command/queue.h"
#include "space/partition.h"

void stats_add_queue(struct account *sum, const struct hal_queue *q);
void stats_add_partition(struct account *sum, struct hal_partition *part);

#endif
