/* SPDX-License-Identifier: Apache-2.0 */
/* queue.h - commands of queues: queue.c. */
#ifndef BACKENDS_NPU_QUEUE_H
#define BACKENDS_NPU_QUEUE_H

#include "internal.h"

/* The host or copier that has those of q's commands that are in an order. */
static inline struct npu_partition *npu_runs_in(const struct npu_queue *q)
{
	return (q->commands > q->held_count ? q->space : q->part)->host;
}

/* The order has room for so many more commands; -ENOMEM. */
int npu_order_reserve(struct npu_partition *part, uint32_t more);
/* q's held commands come to the order of part, which has the others, to be dropped; in
 * that of q's host, where they have room, if part has no more memory. */
void npu_held_enter(struct npu_partition *part, struct npu_queue *q);
/* None of q's commands is in an order: held ones go on, as far as they run in one slot.
 */
void npu_held_go_on(struct npu_queue *q);
/* The i-th of the order is no more. */
void npu_command_remove(struct npu_partition *part, uint32_t i);

#endif
