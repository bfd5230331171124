/* SPDX-License-Identifier: Apache-2.0 */
/* stats.c - add up the counters of queues and partitions. */
#include "observe/stats.h"

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
