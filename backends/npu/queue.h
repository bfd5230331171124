/* SPDX-License-Identifier: Apache-2.0 */
/* queue.h - commands of queues: queue.c. */
#ifndef BACKENDS_NPU_QUEUE_H
#define BACKENDS_NPU_QUEUE_H

#include "internal.h"

/* The i-th of the order is no more. */
void npu_command_remove(struct npu_partition *part, uint32_t i);

#endif
