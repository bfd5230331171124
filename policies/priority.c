/* SPDX-License-Identifier: Apache-2.0 */
/*
 * priority: serve the highest priority first, equal priorities in order of arrival.
 *
 * Promise: a command of the highest priority waits only for commands that the device
 * already has.  Queues of class latency come before all others, and class best effort
 * after them; priorities order the queues within a class.  The policy has no options.
 *
 * Follows fixed-priority scheduling (Liu, Layland 1973).  Differences: theirs preempts
 * running work.  Here the engine preempts, and only with the option preempt_for =
 * priority of section [policy]; otherwise running commands complete.  The application
 * sets the priorities; theirs follow from the period of a task.
 *
 * Good for one latency-critical tenant that shares the device with best-effort tenants.
 * Bad for queues of lower priority: they starve.  Only the engine's watchdog
 * ([policy] timeout_ms) serves them then.
 */
#include <hal/policy.h>

static uint64_t key(void *state, struct hal_policy_partition *part,
		    struct hal_policy_queue *queue, uint64_t now_ns)
{
	(void)state, (void)part, (void)now_ns;
	return (uint64_t)((int64_t)INT32_MAX - queue->head.priority);
}

extern const struct hal_policy hal_policy_priority;
const struct hal_policy hal_policy_priority = {
	.size = sizeof(struct hal_policy),
	.abi = HAL_POLICY_ABI,
	.name = "priority",
	.summary = "highest priority first, equal ones in order of arrival",
	.key = key,
};
