/* SPDX-License-Identifier: Apache-2.0 */
/* priority: the highest priority first, equal ones in turn. */
#include <hal/policy.h>

extern const struct hal_policy hal_policy_priority;

/* own[0] is the first queue to serve and own[1] the last: descending priority, and among
 * equals the one that has waited longest first. */

static void priority_ready(void *state, struct hal_policy_partition *part,
			   struct hal_policy_queue *queue)
{
	struct hal_policy_queue *before = part->own[1];

	(void)state;
	/* From the end: constant time while priorities are equal. */
	while (before != NULL && before->priority < queue->priority)
		before = before->prev;
	queue->prev = before;
	queue->next = before != NULL ? before->next : part->own[0];
	if (queue->next != NULL)
		queue->next->prev = queue;
	else
		part->own[1] = queue;
	if (before != NULL)
		before->next = queue;
	else
		part->own[0] = queue;
}

static void priority_gone(void *state, struct hal_policy_partition *part,
			  struct hal_policy_queue *queue)
{
	(void)state;
	if (queue->prev != NULL)
		queue->prev->next = queue->next;
	else
		part->own[0] = queue->next;
	if (queue->next != NULL)
		queue->next->prev = queue->prev;
	else
		part->own[1] = queue->prev;
	queue->next = NULL;
	queue->prev = NULL;
}

static struct hal_policy_queue *
priority_pick(void *state, struct hal_policy_partition *part, uint64_t now_ns)
{
	struct hal_policy_queue *first = part->own[0];

	(void)now_ns;
	if (first != NULL)
		priority_gone(state, part, first);
	return first;
}

const struct hal_policy hal_policy_priority = {
	.size = sizeof(struct hal_policy),
	.abi = HAL_POLICY_ABI,
	.name = "priority",
	.summary = "highest priority first, equal ones in turn",
	.flags = HAL_POLICY_LONE,
	.ready = priority_ready,
	.gone = priority_gone,
	.pick = priority_pick,
};
