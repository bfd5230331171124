/* SPDX-License-Identifier: Apache-2.0 */
/*
 * edf: earliest deadline first.
 *
 * Promise: of a partition's runnable queues, serve the one whose next command has the
 * earliest deadline.  Commands without a deadline come last, in order of submission.
 * Queues: all alike, within their service class.  A deadline is a property of the queue
 * or of the submission, relative to the time of the submit.
 * Options: none of its own.
 *
 * Follows Liu and Layland, "Scheduling Algorithms for Multiprogramming in a
 * Hard-Real-Time Environment" (1973).  Their algorithm preempts the running job when a
 * job with an earlier deadline arrives.  Here the engine preempts, and only with the
 * option [policy] preempt_for = deadline.  Without that option a running command
 * completes first, so a long command can delay others past deadlines that preemption
 * would meet.
 *
 * Good while all deadlines can be met: with preemption it then meets them.  Bad under
 * overload: a command that is late comes first and makes the next one late too, since no
 * command is refused.
 */
#include <hal/policy.h>

static uint64_t key(void *state, struct hal_policy_partition *part,
		    struct hal_policy_queue *queue, uint64_t now_ns)
{
	/* Later than every deadline that a device reaches. */
	const uint64_t without_deadline = UINT64_C(1) << 63;

	(void)state, (void)part, (void)now_ns;
	if (queue->head.deadline_ns != HAL_POLICY_NEVER)
		return queue->head.deadline_ns;
	return hal_bk_after(without_deadline, queue->head.submit_ns);
}

extern const struct hal_policy hal_policy_edf;
const struct hal_policy hal_policy_edf = {
	.size = sizeof(struct hal_policy),
	.abi = HAL_POLICY_ABI,
	.name = "edf",
	.summary = "earliest deadline first, commands without a deadline last",
	.key = key,
};
