/* SPDX-License-Identifier: Apache-2.0 */
/*
 * edf: the earliest deadline first; work without one last, in order of submission.
 *
 * Good while all deadlines can be met: then it meets them (Liu and Layland 1973).  Bad
 * under overload: whatever is late comes first and makes the next one late too; nobody is
 * refused.  Deadlines are the queue's or the submission's, relative to the submit.
 *
 * Theirs stops what runs when something due earlier comes; here that is the engine's to
 * do, and is asked for: [policy] preempt_for = deadline.  Without it a command runs to
 * its end, and deadlines that could all be met are missed behind a long one.
 */
#include <hal/policy.h>

static uint64_t key(void *state, struct hal_policy_partition *part,
		    struct hal_policy_queue *queue, uint64_t now_ns)
{
	const uint64_t none = UINT64_C(1) << 63;

	(void)state, (void)part, (void)now_ns;
	if (queue->head.deadline_ns != HAL_POLICY_NEVER)
		return queue->head.deadline_ns;
	return hal_bk_after(none, queue->head.submit_ns);
}

extern const struct hal_policy hal_policy_edf;
const struct hal_policy hal_policy_edf = {
	.size = sizeof(struct hal_policy),
	.abi = HAL_POLICY_ABI,
	.name = "edf",
	.summary = "earliest deadline first, no deadline last",
	.key = key,
};
