/* SPDX-License-Identifier: Apache-2.0 */
/* policy_host.h - what a policy may ask of its host; by the engine. */
#ifndef HAL_SCHED_POLICY_HOST_H
#define HAL_SCHED_POLICY_HOST_H

#include "command/queue.h"
#include "loop/device.h"

/* Another policy, or the first; the old one and what it keeps goes.  -errno: as before.
 */
int policy_install(struct hal_device *dev, const struct hal_policy *p,
		   struct hal_bk_config *cfg);
/* Stop q, as the policy has asked. */
void policy_begin_stop(struct hal_queue *q) COLD;
/* Start q, which the policy has stopped. */
int policy_start_queue(struct hal_queue *q);

#endif
