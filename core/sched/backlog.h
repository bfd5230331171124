/* SPDX-License-Identifier: Apache-2.0 */
/* backlog.h - what a queue still has, for policies; by the engine. */
#ifndef HAL_SCHED_BACKLOG_H
#define HAL_SCHED_BACKLOG_H

#include "command/queue.h"

/* hal_policy_host.waiting */
uint32_t backlog_of(void *device, const struct hal_policy_queue *queue,
		    uint64_t *last_ns);

#endif
