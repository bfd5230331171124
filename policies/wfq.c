/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wfq: device time in the ratio of the queues' weights (hal_queue_desc.weight).
 *
 * Good for tenants that should have shares of time, whatever their commands are like, and
 * are often busy at once.  Bad for latency: a queue that was away comes back with no more
 * right than those that stayed, and one long command is charged only when it has ended.
 * Start-time fair queueing (Goyal, Vin, Cheng 1996): served is who has had least for its
 * weight; who comes back starts where those that stayed are.  There a packet's length is
 * known when it starts; here what a command has run is charged when it has ended, so that
 * several of a queue on the device are charged late.
 */
#include <hal/policy.h>

/* hal_policy_queue.own: virtual time it has had; .served_ns and .completed when that was
 * counted; commands it was picked for that are not in it yet.
 * hal_policy_partition.own[0]: virtual time of the last one served. */
enum { VIRTUAL, SERVED, COMPLETED, PICKED };

#define SCALE 1024u /* of virtual time to device time at weight 1 */

static int attach(void *state, struct hal_policy_partition *part,
		  struct hal_policy_queue *queue)
{
	(void)state, (void)part;
	/* What it had under another policy is not held against it. */
	queue->own[SERVED] = queue->served_ns;
	queue->own[COMPLETED] = queue->completed;
	return 0;
}

/* What ended since the last time, as far as it was picked: what it was given because
 * nobody else wanted to, it took from nobody. */
static void charge_ended(struct hal_policy_queue *queue)
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

static uint64_t key(void *state, struct hal_policy_partition *part,
		    struct hal_policy_queue *queue, uint64_t now_ns)
{
	(void)state, (void)now_ns;
	charge_ended(queue);
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
	.summary = "device time in the ratio of weights",
	.attach = attach,
	.key = key,
	.turn = turn,
};
