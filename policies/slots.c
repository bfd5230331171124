/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slots: serve the commands of the loaded configuration for as long as other commands can
 * wait, then load the configuration of the most urgent one.
 *
 * For devices that hold one configuration at a time (head.configuration, such as an
 * FPGA's xclbin) and need info->load_ns to change it.
 *
 * Promise: few loads, while a command waits for a load only until its due time.
 *   - Class latency: due at once.
 *   - With a deadline: due when half of the slack is gone, but at most slots_age_us after
 *     submission.  Slack is the deadline less the expected run time and one load.
 *   - Without a deadline: due slots_age_us after the command became runnable.
 * While a command wants the loaded configuration, that configuration stays for at least
 * slots_stay load times, even if other commands are past their due time.  Under overload
 * all queues are late.  While no command wants it, a command without a deadline waits for
 * at most slots_hold load times.  A command with a deadline still waits until its due
 * time, because more commands for either configuration may arrive.
 *
 * Options: slots_load_us, slots_hold, slots_stay, slots_age_us, and slots_unknown_us (the
 * assumed run time of commands whose run time is not known yet).  The policy follows no
 * published system.  With one configuration, or if loading takes no time, it is policy
 * edf with an age limit.
 *
 * The engine gives a command of another configuration to the device as soon as the last
 * command of the old one has been submitted.  The load begins when that last command
 * completes.
 *
 * Good where loading is slow and there are several programs: fewer loads at the same rate
 * of missed deadlines.  Bad for latency: a command may use up half of its slack.  Each
 * decision examines the first queue of every configuration that a queue waits for.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include <hal/policy.h>

#include "common.h"

/* Indices into hal_policy_queue.own: the heap that holds the queue, as group * HEAPS +
 * heap, and the heap key: the due time of the queue's head. */
enum { PLACE = HAL_POLICY_SHARED + 1, DUE = HAL_POLICY_KEY };

/* A group has the runnable queues that need one configuration.  Each class has two heaps
 * there: queues with a deadline, and queues without one (can_be_held).  Group 0 has the
 * queues that need no configuration, and those whose configuration found no free group.
 */
enum { HEAPS = 2 * HAL_POLICY_RANKS, GROUPS = 64 };

struct shared {
	struct hal_policy_shared common;
	struct hal_policy_queue *last; /* last served with the loaded configuration */
	uint64_t used;                 /* highest group ever used */
	struct group {
		uint32_t configuration, waiting;
		struct hal_policy_queue *heap[HEAPS];
	} group[GROUPS];
};

struct slots {
	const struct hal_host *host;
	struct hal_policy_shared *all; /* state of each partition that has queues */
	const struct hal_policy_host *device;
	uint64_t load_ns, hold_ns, stay_ns, age_ns, unknown_ns;
	uint32_t loaded;   /* configuration of the command submitted to the device last */
	uint64_t stays_ns; /* device time until which .loaded stays if it is wanted */
};

static const struct hal_option_def options[] = {
	{"slots_load_us", HAL_OPTION_INT, 0, 10000000, NULL, "0",
	 "slots: time to load a configuration; 0: the time that the device reports"},
	{"slots_hold", HAL_OPTION_INT, 0, 1000, NULL, "16",
	 "slots: load times for which a command without a deadline waits although no "
	 "command wants the loaded configuration"},
	{"slots_stay", HAL_OPTION_INT, 0, 1000, NULL, "8",
	 "slots: load times for which a configuration stays while a command wants it"},
	{"slots_age_us", HAL_OPTION_INT, 1, 10000000, NULL, "100000",
	 "slots: longest wait of a command for a load, unless slots_stay extends it"},
	{"slots_unknown_us", HAL_OPTION_INT, 1, 10000000, NULL, "1000",
	 "slots: assumed run time of a command until its queue has completed one"},
};

static int create(const struct hal_host *host, const struct hal_bk_config *cfg,
		  const struct hal_policy_host *device, void **state)
{
	struct slots *slots = calloc(1, sizeof(*slots));

	if (slots == NULL)
		return host->fail(ENOMEM, "slots: no memory");
	slots->host = host;
	slots->device = device;
	slots->load_ns = (uint64_t)host->option_int(cfg, "slots_load_us") * 1000;
	if (slots->load_ns == 0)
		slots->load_ns = device->info->load_ns;
	slots->hold_ns = slots->load_ns * (uint64_t)host->option_int(cfg, "slots_hold");
	slots->stay_ns = slots->load_ns * (uint64_t)host->option_int(cfg, "slots_stay");
	slots->age_ns = (uint64_t)host->option_int(cfg, "slots_age_us") * 1000;
	slots->unknown_ns = (uint64_t)host->option_int(cfg, "slots_unknown_us") * 1000;
	*state = slots;
	return 0;
}

static int attach(void *state, struct hal_policy_partition *part,
		  struct hal_policy_queue *queue)
{
	struct slots *slots = state;

	return hal_policy_share(slots->host, &slots->all, part, queue,
				sizeof(struct shared));
}

static void detach(void *state, struct hal_policy_partition *part,
		   struct hal_policy_queue *queue)
{
	struct slots *slots = state;
	struct shared *s = hal_policy_shared(queue->own);

	s->last = s->last != queue ? s->last : NULL;
	hal_policy_unshare(&slots->all, part, queue);
}

/* ---- due times --------------------------------------------------------------------- */

/* Return whether the option slots_hold applies to queue, because it has neither class
 * latency nor a deadline. */
static bool can_be_held(const struct hal_policy_queue *queue)
{
	return hal_policy_rank(queue) != 0 && queue->head.deadline_ns == HAL_POLICY_NEVER;
}

/* Return the configuration that the queue's head needs; 0: any. */
static uint32_t needed_configuration(const struct slots *slots,
				     const struct hal_policy_queue *queue)
{
	return slots->load_ns != 0 ? queue->head.configuration : 0;
}

/* Return the device time until which the queue's head can wait for a load. */
static uint64_t due_time(const struct slots *slots, const struct hal_policy_queue *queue)
{
	const struct hal_policy_command *head = &queue->head;
	uint64_t wait_ns = slots->age_ns, slack_ns, needs_ns;

	if (can_be_held(queue) && slots->load_ns != 0)
		return hal_bk_after(queue->runnable_ns, wait_ns);
	if (hal_policy_rank(queue) == 0)
		return head->submit_ns;
	if (can_be_held(queue))
		return hal_bk_after(head->submit_ns, wait_ns);
	if (head->deadline_ns < head->submit_ns) /* deadline inherited from a waiter */
		return head->deadline_ns;
	needs_ns = head->rest_ns != HAL_POLICY_NEVER ? head->rest_ns : slots->unknown_ns;
	needs_ns = hal_bk_after(needs_ns, slots->load_ns);
	slack_ns = head->deadline_ns - head->submit_ns;
	slack_ns = slack_ns > needs_ns ? (slack_ns - needs_ns) / 2 : 0;
	return hal_bk_after(head->submit_ns, slack_ns < wait_ns ? slack_ns : wait_ns);
}

/* Return the group with runnable queues of configuration `number` or, if the flag empty
 * is set, any unused group.  Return 0 if no such group exists. */
static uint64_t group_of(const struct shared *s, uint32_t number, bool empty)
{
	for (uint64_t i = 1; number != 0 && i < GROUPS && i <= s->used + empty; i++)
		if (empty ? s->group[i].waiting == 0
			  : s->group[i].waiting != 0 &&
				    s->group[i].configuration == number)
			return i;
	return 0;
}

static void enqueue(void *state, struct hal_policy_partition *part,
		    struct hal_policy_queue *queue)
{
	const struct slots *slots = state;
	struct shared *s = hal_policy_shared(queue->own);
	uint64_t heap = 2 * hal_policy_rank(queue) + can_be_held(queue), i;

	(void)part;
	if (s == NULL)
		return;
	i = group_of(s, needed_configuration(slots, queue), false);
	if (i == 0)
		i = group_of(s, needed_configuration(slots, queue), true);
	s->used = i > s->used ? i : s->used;
	s->group[i].configuration = needed_configuration(slots, queue);
	s->group[i].waiting++;
	queue->own[PLACE] = i * HEAPS + heap;
	queue->own[DUE] = due_time(slots, queue);
	hal_policy_heap_add(&s->group[i].heap[heap], queue);
}

static void dequeue(void *state, struct hal_policy_partition *part,
		    struct hal_policy_queue *queue, enum hal_policy_why why)
{
	struct shared *s = hal_policy_shared(queue->own);
	uint64_t place = queue->own[PLACE];

	(void)state, (void)part, (void)why;
	if (s == NULL)
		return;
	hal_policy_heap_take(&s->group[place / HEAPS].heap[place % HEAPS], queue);
	s->group[place / HEAPS].waiting--;
}

/* ---- pick -------------------------------------------------------------------------- */

/* Return the first queue, by class and then by due time, of group 0 and group other. */
static struct hal_policy_queue *first_of_groups(const struct shared *s, uint64_t other)
{
	struct hal_policy_queue *best = NULL;

	for (uint64_t i = 0; i / 2 < HEAPS && (best == NULL || i % 4 != 0); i++) {
		struct hal_policy_queue *q = s->group[i % 2 * other].heap[i / 2];

		if (q != NULL && (best == NULL || hal_policy_heap_before(q, best)))
			best = q;
	}
	return best;
}

static bool served_before(const struct hal_policy_queue *a,
			  const struct hal_policy_queue *b)
{
	if (hal_policy_rank(a) != hal_policy_rank(b))
		return hal_policy_rank(a) < hal_policy_rank(b);
	return hal_policy_heap_before(a, b);
}

/* Return the queue whose configuration must be loaded first, and set *until_ns to the
 * time of that load.  Consider only queues whose configuration is not loaded.  Of several
 * that are due now, prefer the higher class, then the earlier due time.  wanted: work for
 * the loaded configuration is left. */
static struct hal_policy_queue *first_due(const struct slots *slots,
					  const struct shared *s, bool wanted,
					  uint64_t now_ns, uint64_t *until_ns)
{
	struct hal_policy_queue *best = NULL;

	*until_ns = HAL_POLICY_NEVER;
	for (uint64_t i = HEAPS; i < (s->used + 1) * HEAPS; i++) {
		struct hal_policy_queue *q = s->group[i / HEAPS].heap[i % HEAPS];
		uint64_t at_ns;

		if (q == NULL || needed_configuration(slots, q) == slots->loaded)
			continue;
		at_ns = q->own[DUE];
		if (wanted && at_ns < slots->stays_ns)
			at_ns = slots->stays_ns;
		if (!wanted && can_be_held(q) &&
		    at_ns > hal_bk_after(q->runnable_ns, slots->hold_ns))
			at_ns = hal_bk_after(q->runnable_ns, slots->hold_ns);
		at_ns = at_ns > now_ns ? at_ns : now_ns;
		if (best == NULL || at_ns < *until_ns ||
		    (at_ns == *until_ns && served_before(q, best))) {
			*until_ns = at_ns;
			best = q;
		}
	}
	return best;
}

/* Return whether work for the loaded configuration is left in any partition: a runnable
 * queue, further submissions of the queue served last, or commands that the device has
 * not begun (a partition has more commands on the device than units). */
static bool loaded_is_wanted(const struct slots *slots)
{
	uint64_t ns;

	for (const struct hal_policy_shared *c = slots->all; c != NULL; c = c->next) {
		const struct shared *s = (const struct shared *)c;

		if (group_of(s, slots->loaded, false) != 0 ||
		    c->part->running > c->part->units ||
		    (s->last != NULL && s->last->head.configuration == slots->loaded &&
		     slots->device->waiting(slots->device->device, s->last, &ns) != 0))
			return true;
	}
	return false;
}

static struct hal_policy_queue *pick(void *state, struct hal_policy_partition *part,
				     uint64_t now_ns, struct hal_policy_order *order)
{
	struct slots *slots = state;
	struct shared *s = hal_policy_shared(part->own);
	struct hal_policy_queue *queue;

	if (s == NULL)
		return NULL;
	queue = first_due(slots, s, false, now_ns, &order->until_ns);
	if (queue != NULL && loaded_is_wanted(slots))
		queue = first_due(slots, s, true, now_ns, &order->until_ns);
	if (queue == NULL || (order->until_ns > now_ns && slots->loaded != 0))
		queue = first_of_groups(s, group_of(s, slots->loaded, false));
	if (queue == NULL)
		return NULL;
	dequeue(state, part, queue, HAL_POLICY_OVERRULED);
	if (needed_configuration(slots, queue) == 0)
		return queue;
	if (needed_configuration(slots, queue) != slots->loaded)
		slots->stays_ns = hal_bk_after(now_ns, slots->load_ns + slots->stay_ns);
	slots->loaded = needed_configuration(slots, queue);
	s->last = queue;
	return queue;
}

/* Ask the engine to pick again for all partitions with runnable queues: the choice may
 * depend on the command that has completed. */
static void ended(void *state, struct hal_policy_partition *part,
		  struct hal_policy_queue *queue, const struct hal_policy_end *end)
{
	const struct slots *slots = state;

	(void)part, (void)queue, (void)end;
	for (const struct hal_policy_shared *c = slots->all; c != NULL; c = c->next)
		if (slots->load_ns != 0 && c->part->runnable != 0)
			slots->device->ask(slots->device->device, c->part);
}

extern const struct hal_policy hal_policy_slots;
const struct hal_policy hal_policy_slots = {
	.size = sizeof(struct hal_policy),
	.abi = HAL_POLICY_ABI,
	.name = "slots",
	.summary = "the loaded configuration first, then that of the most urgent command",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.flags = HAL_POLICY_ALWAYS | HAL_POLICY_EXPECTS,
	.create = create,
	.destroy = free,
	.attach = attach,
	.detach = detach,
	.enqueue = enqueue,
	.dequeue = dequeue,
	.pick = pick,
	.ended = ended,
};
