/* SPDX-License-Identifier: Apache-2.0 */
/*
 * priority: the highest priority first, equal ones in order of arrival.
 *
 * Good for one latency-critical tenant beside best-effort ones: it never waits for more
 * than what the device has already.  Bad for whoever is below: it starves (the net of
 * [policy] timeout_ms is all it has).  Fixed-priority scheduling, Liu and Layland 1973.
 *
 * Theirs stops what runs when something higher comes; here that is the engine's to do,
 * and is asked for: [policy] preempt_for = priority.  Without it a command runs to its
 * end. Priorities are the application's; theirs follow from how often a task comes.
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
	.summary = "highest priority first, equal ones in turn",
	.key = key,
};
