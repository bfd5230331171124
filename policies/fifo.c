/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fifo: whoever submitted first (FCFS: Kleinrock 1975).
 *
 * Good where all work is alike, and as what others are compared with: nothing waits
 * longer than what was there before it takes.  Bad as soon as one tenant submits long
 * commands or many: the others wait behind all of them.  It is what devices do by
 * themselves.  Kleinrock's has one queue of jobs; here each tenant has its own, of which
 * the head alone counts: what waits behind a head that may not run yet waits with it.
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
	.summary = "whoever submitted first",
	.key = key,
};
