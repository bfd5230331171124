/* SPDX-License-Identifier: Apache-2.0 */
/*
 * static: time in fixed slots, one a queue, in the same order for ever.
 *
 * Time division as time-triggered systems do it (Kopetz and Grunsteidl 1994): a command
 * starts in its queue's slot alone, and only if what is expected of it ends there; a
 * queue for which there is no slot is refused.  There schedules are laid out beforehand
 * from proven worst cases; here a queue takes the lowest free slot, expectations are
 * learned, and a command longer than its slot, or of which nothing is known yet, starts
 * as the first of its slot and in the first half, so that it can spill over.  For each
 * slot of others that it ran into, its queue then leaves out one of its own: else long
 * commands in each frame could take a slot from its queue for ever.  The fixed split of
 * space (MPS, MIG) is partitions with equal floors and ceilings.
 *
 * Good where nobody may notice the others: commands that fit end at the same time
 * whatever those do, if the device has one at a time (hal.partition_inflight = 1).  Bad
 * for use and for latency: slots of idle queues stay empty, and who misses its own waits
 * for a frame.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include <hal/policy.h>

#define SLOTS_MAX 64

/* hal_policy_queue.own: which; whether a command of it was started; the number of the
 * first slot that it does not leave out. */
enum { SLOT, BEGAN, PAID };
enum {
	TAKEN,
	STARTED,
	END
}; /* hal_policy_partition.own: bit a slot; the number of the
      slot after that in which a command was started last;
      when what the device has is expected to end */

struct slots {
	const struct hal_host *host;
	uint64_t count, slot_ns;
};

static const struct hal_option_def options[] = {
	{"static_slots", HAL_OPTION_INT, 1, SLOTS_MAX, NULL, "4",
	 "static: slots of a frame; as many queues a partition can have"},
	{"static_slot_us", HAL_OPTION_INT, 1, 10000000, NULL, "1000",
	 "static: length of a slot, device time"},
};

static int create(const struct hal_host *host, const struct hal_bk_config *cfg,
		  const struct hal_policy_host *device, void **state)
{
	struct slots *slots = malloc(sizeof(*slots));

	(void)device;
	if (slots == NULL)
		return host->fail(ENOMEM, "static: no memory");
	slots->host = host;
	slots->count = (uint64_t)host->option_int(cfg, "static_slots");
	slots->slot_ns = (uint64_t)host->option_int(cfg, "static_slot_us") * 1000;
	*state = slots;
	return 0;
}

static int attach(void *state, struct hal_policy_partition *part,
		  struct hal_policy_queue *queue)
{
	const struct slots *slots = state;

	for (uint64_t i = 0; i < slots->count; i++) {
		if ((part->own[TAKEN] >> i & 1) != 0)
			continue;
		part->own[TAKEN] |= UINT64_C(1) << i;
		queue->own[SLOT] = i;
		return 0;
	}
	/* One that was there before the policy stays, and shares the last. */
	queue->own[SLOT] = slots->count - 1;
	return slots->host->fail(ENOSPC,
				 "static: all %u slots of partition %u are taken "
				 "(policy.static_slots)",
				 (unsigned int)slots->count, part->index);
}

static void detach(void *state, struct hal_policy_partition *part,
		   struct hal_policy_queue *queue)
{
	(void)state;
	part->own[TAKEN] &= ~(UINT64_C(1) << queue->own[SLOT]);
}

/* When a command that is given now starts. */
static uint64_t start_of(const struct hal_policy_partition *part, uint64_t now_ns)
{
	return part->running != 0 && part->own[END] > now_ns ? part->own[END] : now_ns;
}

/* It may start at that time, which is in a slot of its queue's. */
static bool fits(const struct slots *slots, const struct hal_policy_partition *part,
		 const struct hal_policy_queue *queue, uint64_t start_ns)
{
	uint64_t number = start_ns / slots->slot_ns;
	uint64_t had_ns = start_ns - number * slots->slot_ns;
	uint64_t expected = queue->head.expected_ns;

	if (expected <= slots->slot_ns && had_ns <= slots->slot_ns - expected)
		return true;
	/* Longer than a slot, or not known. */
	return expected > slots->slot_ns && had_ns <= slots->slot_ns / 2 &&
	       part->own[STARTED] != number + 1;
}

/* When it may be given to the device. */
static uint64_t key(void *state, struct hal_policy_partition *part,
		    struct hal_policy_queue *queue, uint64_t now_ns)
{
	const struct slots *slots = state;
	uint64_t start_ns = start_of(part, now_ns);
	uint64_t number = start_ns / slots->slot_ns;
	uint64_t ahead =
		(queue->own[SLOT] + slots->count - number % slots->count) % slots->count;

	if (number + ahead < queue->own[PAID])
		return queue->own[PAID] * slots->slot_ns;
	if (ahead == 0 && fits(slots, part, queue, start_ns))
		return now_ns;
	return hal_bk_after(number * slots->slot_ns,
			    (ahead != 0 ? ahead : slots->count) * slots->slot_ns);
}

static uint64_t turn(void *state, struct hal_policy_partition *part,
		     struct hal_policy_queue *queue, uint64_t asked_ns, uint64_t now_ns)
{
	const struct slots *slots = state;
	uint64_t at_ns = key(state, part, queue, now_ns);
	uint64_t start_ns = start_of(part, now_ns);
	uint64_t expected = queue->head.expected_ns;

	(void)asked_ns;
	if (at_ns > now_ns)
		return at_ns;
	part->own[STARTED] = start_ns / slots->slot_ns + 1;
	queue->own[BEGAN] = 1;
	part->own[END] = hal_bk_after(
		start_ns, expected != HAL_POLICY_NEVER ? expected : slots->slot_ns);
	return 0;
}

/* Count the slots of others that a command ran into, from its queue's own before. */
static void ended(void *state, struct hal_policy_partition *part,
		  struct hal_policy_queue *queue, const struct hal_policy_end *end)
{
	const struct slots *slots = state;
	uint64_t last = end->end_ns != 0 ? (end->end_ns - 1) / slots->slot_ns : 0;
	uint64_t first = (end->end_ns - end->ran_ns) / slots->slot_ns;
	uint64_t since =
		(first % slots->count + slots->count - queue->own[SLOT]) % slots->count;

	(void)part;
	if (queue->own[BEGAN] == 0 || since > first || last <= first - since)
		return;
	first -= since;
	queue->own[PAID] = first + (last - first + 1) * slots->count;
}

extern const struct hal_policy hal_policy_static;
const struct hal_policy hal_policy_static = {
	.size = sizeof(struct hal_policy),
	.abi = HAL_POLICY_ABI,
	.name = "static",
	.summary = "fixed slots of time, one a queue",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.flags = HAL_POLICY_ALWAYS | HAL_POLICY_TIMES | HAL_POLICY_EXPECTS,
	.create = create,
	.destroy = free,
	.attach = attach,
	.detach = detach,
	.key = key,
	.turn = turn,
	.ended = ended,
};
