/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wfq: share device time in proportion to the queues' weights (hal_queue_desc.weight).
 *
 * Promise: among busy queues of one class and partition, each gets device time in
 * proportion to its weight, whatever the lengths of its commands.  Classes come first:
 * class latency before normal, best effort last.  A queue that returns after a pause
 * starts level with the others; it does not get the time that it missed.  The policy has
 * no options.
 *
 * Follows start-time fair queueing (Goyal, Vin, Cheng 1996): the queue with the lowest
 * virtual time, which is device time divided by weight, is next.  Difference: there a
 * packet's length is known when it starts.  Here a command is charged when it completes,
 * so several commands of a queue on the device are charged late.
 *
 * Good for tenants that should have shares of time and are often busy at once.  Bad for
 * latency: a queue that returns is not preferred, and a long command delays it.
 */
#include <hal/policy.h>

/* Indices into hal_policy_queue.own: virtual time charged so far; .served_ns and
 * .completed at the last charge; commands that the policy has picked but not charged yet.
 * hal_policy_partition.own[0] is the virtual time of the queue served last. */
enum { VIRTUAL, SERVED, COMPLETED, PICKED };

#define SCALE 1024u /* virtual time per ns of device time at weight 1 */

static int attach(void *state, struct hal_policy_partition *part,
		  struct hal_policy_queue *queue)
{
	(void)state, (void)part;
	/* Do not charge commands that completed under another policy. */
	queue->own[SERVED] = queue->served_ns;
	queue->own[COMPLETED] = queue->completed;
	return 0;
}

/* Charge the commands that have completed since the last charge, but at most the commands
 * that the policy picked.  The engine does not call the policy for a queue that has no
 * competitors; those commands took time from no other queue and are free. */
static void charge(struct hal_policy_queue *queue)
{
	uint64_t ran = queue->served_ns - queue->own[SERVED];
	uint64_t commands = queue->completed - queue->own[COMPLETED];
	uint64_t picked = queue->own[PICKED];

	if (commands > picked)
		ran = ran / commands * picked;
	else
		picked = commands;
	queue->own[SERVED] = queue->served_ns;
	queue->own[COMPLETED] = queue->completed;
	queue->own[PICKED] -= picked;
	queue->own[VIRTUAL] += ran * SCALE / queue->weight;
}

/* Return the queue's virtual time.  Advance it to that of the queue served last if the
 * queue returns after a pause. */
static uint64_t key(void *state, struct hal_policy_partition *part,
		    struct hal_policy_queue *queue, uint64_t now_ns)
{
	(void)state, (void)now_ns;
	charge(queue);
	if (queue->running == 0 && queue->own[VIRTUAL] < part->own[0])
		queue->own[VIRTUAL] = part->own[0];
	return queue->own[VIRTUAL];
}

static uint64_t turn(void *state, struct hal_policy_partition *part,
		     struct hal_policy_queue *queue, uint64_t virtual_time,
		     uint64_t now_ns)
{
	(void)state, (void)now_ns;
	queue->own[PICKED]++;
	if (virtual_time > part->own[0])
		part->own[0] = virtual_time;
	return 0;
}

extern const struct hal_policy hal_policy_wfq;
const struct hal_policy hal_policy_wfq = {
	.size = sizeof(struct hal_policy),
	.abi = HAL_POLICY_ABI,
	.name = "wfq",
	.summary = "device time in proportion to weights",
	.attach = attach,
	.key = key,
	.turn = turn,
};
