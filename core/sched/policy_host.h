/* SPDX-License-Identifier: Apache-2.0 */
/* policy_host.h - the services that a policy may call (struct hal_policy_host).  Engine
 * only. */
#ifndef HAL_SCHED_POLICY_HOST_H
#define HAL_SCHED_POLICY_HOST_H

#include "command/queue.h"
#include "loop/device.h"

/* Install policy p, and destroy the old policy with its state.  Return 0, or -errno with
 * the old policy still in force. */
int policy_install(struct hal_device *dev, const struct hal_policy *p,
		   struct hal_bk_config *cfg);
/* Begin the stop of q that the policy has requested. */
void policy_begin_stop(struct hal_queue *q) COLD;
/* Resume q, which the policy has stopped, or drop its request to stop q.  Return 0 or
 * -errno. */
int policy_start_queue(struct hal_queue *q);

#endif
