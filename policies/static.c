/* SPDX-License-Identifier: Apache-2.0 */
/*
 * static: divide time into fixed slots, one per queue, in the same order forever.
 *
 * Promise: a queue's commands start in its own slot only, whatever the other queues do.
 * All queues of a partition take part, whatever their class.  A frame has static_slots
 * slots of static_slot_us each.  A queue takes the lowest free slot, and
 * hal_queue_create fails with -ENOSPC if none is free.
 *
 * A command that fits in a slot starts only if it is expected to complete before the slot
 * ends.  A command that is longer than a slot, or whose run time is not known yet,
 * starts as the first one of its slot and in the slot's first half.  It may overrun into
 * slots of other queues.  For each slot it overran, its queue later leaves out one own
 * slot.  Otherwise a queue with long commands could take a slot of another queue in each
 * frame.
 *
 * Options: static_slots, static_slot_us.
 *
 * Follows time division in time-triggered systems (Kopetz, Gruensteidl 1994).
 * Difference: there schedules are computed in advance from proven worst-case run times.
 * Here expected run times are learned.  To divide units instead of time (as MPS and MIG
 * do), use partitions whose floor equals their ceiling.
 *
 * Good for isolation in time: commands that fit complete at the same time whatever other
 * queues do.  That needs a device with one command at a time (hal.partition_inflight =
 * 1).  Bad for utilization and latency: slots of idle queues stay empty, and a command
 * that misses its slot waits for a frame.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include <hal/policy.h>

#define SLOTS_MAX 64

/* Slots are numbered from device time 0 on; slot n belongs to place n % static_slots of
 * the frame.
 *
 * Indices into hal_policy_queue.own: the queue's place in the frame; whether a command
 * was started under this policy; the number of the first slot that is not left out. */
enum { SLOT, BEGAN, PAID };
/* Indices into hal_policy_partition.own: places taken, one bit each; the number, plus 1,
 * of the slot in which a command was started last; the time when the commands that the
 * device has are expected to be complete. */
enum { TAKEN, STARTED, END };

struct slots {
	const struct hal_host *host;
	uint64_t count, slot_ns;
};

static const struct hal_option_def options[] = {
	{"static_slots", HAL_OPTION_INT, 1, SLOTS_MAX, NULL, "4",
	 "static: slots of a frame, and so the number of queues a partition can have"},
	{"static_slot_us", HAL_OPTION_INT, 1, 10000000, NULL, "1000",
	 "static: length of a slot in device time"},
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
	/* A queue that existed before the policy was set remains despite this error.  It
	 * shares the last slot. */
	queue->own[SLOT] = slots->count - 1;
	return slots->host->fail(ENOSPC,
				 "static: all %u slots of partition %u are taken; raise "
				 "policy.static_slots or destroy a queue",
				 (unsigned int)slots->count, part->index);
}

static void detach(void *state, struct hal_policy_partition *part,
		   struct hal_policy_queue *queue)
{
	(void)state;
	part->own[TAKEN] &= ~(UINT64_C(1) << queue->own[SLOT]);
}

/* Return when a command that is submitted to the device now would start. */
static uint64_t start_of(const struct hal_policy_partition *part, uint64_t now_ns)
{
	return part->running != 0 && part->own[END] > now_ns ? part->own[END] : now_ns;
}

/* Return whether the queue's head may start at start_ns, which lies in its own slot. */
static bool may_start_at(const struct slots *slots,
			 const struct hal_policy_partition *part,
			 const struct hal_policy_queue *queue, uint64_t start_ns)
{
	uint64_t number = start_ns / slots->slot_ns;
	uint64_t elapsed_ns = start_ns - number * slots->slot_ns;
	uint64_t expected = queue->head.expected_ns;

	if (expected <= slots->slot_ns && elapsed_ns <= slots->slot_ns - expected)
		return true;
	/* A command that is longer than a slot, or whose run time is not known, starts as
	 * the first of its slot and in the slot's first half. */
	return expected > slots->slot_ns && elapsed_ns <= slots->slot_ns / 2 &&
	       part->own[STARTED] != number + 1;
}

/* Return the time at which the queue's head may be submitted to the device. */
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
	if (ahead == 0 && may_start_at(slots, part, queue, start_ns))
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

/* Count the slots that the command overran after its queue's last own slot, and let the
 * queue leave out as many of its own. */
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
	.summary = "fixed slots of time, one per queue",
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
