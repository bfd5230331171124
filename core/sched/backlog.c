/* SPDX-License-Identifier: Apache-2.0 */
/* backlog.c - the submissions that a queue has waiting, read from its ring. */
#include "sched/backlog.h"

/* Return submit_ns plus within, a submission's absolute deadline; HAL_POLICY_NEVER if
 * within is 0. */
static uint64_t deadline(const struct hal_queue *q, uint64_t submit_ns, uint64_t within)
{
	uint64_t now = q->dev->now;

	if (submit_ns > now)
		submit_ns = now; /* SUBMIT_ASLEEP: not known yet */
	return within != 0 ? hal_bk_after(submit_ns, within) : HAL_POLICY_NEVER;
}

uint32_t backlog_of(void *device, const struct hal_policy_queue *queue, uint64_t *last_ns)
{
	const char *at = (const char *)queue;
	const struct hal_queue *q =
		(const void *)(at - offsetof(struct hal_queue, sched.policy_view));
	uint64_t within = q->issue_terms.deadline_ns;
	unsigned int pos = q->issue.pos;
	uint32_t count = 0;

	(void)device;
	*last_ns = HAL_POLICY_NEVER;
	while (pos != q->accepted && pos - q->issue.pos < HAL_POLICY_BEHIND) {
		const struct record *r = &q->slots[pos & q->slot_mask];

		pos += r->slots;
		if (r->cmd.op == REC_HEAD)
			within = r->head.deadline_ns != 0 ? r->head.deadline_ns
							  : q->default_terms.deadline_ns;
		/* Use the first submission's deadline even if its last record is beyond
		 * the search limit. */
		if ((r->own & REC_END) == 0 && count != 0)
			continue;
		*last_ns = deadline(q, r->submit_ns, within);
		if ((r->own & REC_END) == 0)
			continue;
		count++;
		within = q->default_terms.deadline_ns;
	}
	return count != 0 ? count : pos != q->issue.pos;
}
