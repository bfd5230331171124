/* SPDX-License-Identifier: Apache-2.0 */
/* backlog.h - the submissions that a queue has waiting, for policies.  Engine only. */
#ifndef HAL_SCHED_BACKLOG_H
#define HAL_SCHED_BACKLOG_H

#include "command/queue.h"

/* Implement hal_policy_host.waiting. */
uint32_t backlog_of(void *device, const struct hal_policy_queue *queue,
		    uint64_t *last_ns);

#endif
