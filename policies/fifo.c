/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fifo: first come, first served.
 *
 * Promise: of a partition's runnable queues, serve the one whose next command was
 * submitted first.  This is what most devices do without a policy.
 * Queues: all alike, within their service class.
 * Options: none.
 *
 * Follows FCFS (Kleinrock, Queueing Systems, 1975).  FCFS has one queue of jobs.  Here
 * each tenant has its own queue, and only the first command of a queue competes: commands
 * behind one that may not run yet wait with it.
 *
 * Good where all work is alike, and as a baseline: a command waits only for commands that
 * were submitted before it.  Bad if one tenant submits long commands or many of them: the
 * commands of the other tenants wait for all of these.
 */
#include <hal/policy.h>

static uint64_t key(void *state, struct hal_policy_partition *part,
		    struct hal_policy_queue *queue, uint64_t now_ns)
{
	(void)state, (void)part, (void)now_ns;
	return queue->head.submit_ns;
}

extern const struct hal_policy hal_policy_fifo;
const struct hal_policy hal_policy_fifo = {
	.size = sizeof(struct hal_policy),
	.abi = HAL_POLICY_ABI,
	.name = "fifo",
	.summary = "first submitted, first served",
	.key = key,
};
