/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slots: what the device has loaded is served as long as others can wait; then the
 * configuration of who can wait least is loaded.
 *
 * For a device that has one configuration at a time (head.configuration) and needs
 * info->load_ns to change it.  A head can wait until half of its slack is gone (its
 * deadline less what it runs and a load), at most slots_age_us, and one of class latency
 * not at all.  Who can wait no longer has the configuration changed, but only when the
 * one that is there has had slots_stay loads of time: under overload all are late.  Where
 * nobody wants what is there, those with a deadline wait as long all the same, for others
 * of their group and of the one that is there; the others for slots_hold loads.
 * What needs another is given to the device as soon as the last one that wants the old
 * one has been, while that still runs: the load begins when it ends.
 *
 * Good where loading is dear and programs are several: fewer loads, at the same deadlines
 * missed.  Bad for latency, of which it spends half of what the deadlines leave.  With
 * one configuration, or where loading costs nothing, it is edf with an age limit.  A
 * decision looks at the first of each configuration that is waited for.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include <hal/policy.h>

#include "common.h"

/* .own of queues, behind the shared: its heap; its key: until when its head can wait. */
enum { PLACE = HAL_POLICY_SHARED + 1, DUE = HAL_POLICY_KEY };

/* Who waits with one configuration: two heaps for each class, the second of those that
 * hold.  The first group is of who needs none, or for whom there is no group left. */
enum { HEAPS = 2 * HAL_POLICY_RANKS, GROUPS = 64 };

struct shared {
	struct hal_policy_shared common;
	struct hal_policy_queue *last; /* that was served with what is loaded */
	uint64_t used;                 /* those behind have always been empty */
	struct group {
		uint32_t configuration, waiting;
		struct hal_policy_queue *heap[HEAPS];
	} group[GROUPS];
};

struct slots {
	const struct hal_host *host;
	struct hal_policy_shared *all;
	const struct hal_policy_host *device;
	uint64_t load_ns, hold_ns, stay_ns, age_ns, unknown_ns;
	uint32_t loaded;   /* configuration of what was given to the device last */
	uint64_t stays_ns; /* so long it is not taken from those who want it */
};

static const struct hal_option_def options[] = {
	{"slots_load_us", HAL_OPTION_INT, 0, 10000000, NULL, "0",
	 "slots: what it takes to load a configuration; 0: what the device says"},
	{"slots_hold", HAL_OPTION_INT, 0, 1000, NULL, "16",
	 "slots: loads for which a command without a deadline waits for one that nobody "
	 "wants"},
	{"slots_stay", HAL_OPTION_INT, 0, 1000, NULL, "8",
	 "slots: loads for which one is kept that somebody wants, whoever is late"},
	{"slots_age_us", HAL_OPTION_INT, 1, 10000000, NULL, "100000",
	 "slots: so long a command waits at most for a load, but for slots_stay"},
	{"slots_unknown_us", HAL_OPTION_INT, 1, 10000000, NULL, "1000",
	 "slots: what a command is taken to run while none of its queue has ended"},
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

/* ---- who waits, and how long it can ------------------------------------------------- */

static bool holds(const struct hal_policy_queue *queue)
{
	return hal_policy_rank(queue) != 0 && queue->head.deadline_ns == HAL_POLICY_NEVER;
}

static uint32_t needs(const struct slots *slots, const struct hal_policy_queue *queue)
{
	return slots->load_ns != 0 ? queue->head.configuration : 0;
}

static uint64_t due_ns(const struct slots *slots, const struct hal_policy_queue *queue)
{
	const struct hal_policy_command *head = &queue->head;
	uint64_t wait_ns = slots->age_ns, slack_ns, needs_ns;

	if (holds(queue) && slots->load_ns != 0) /* for a load, since it could run */
		return hal_bk_after(queue->runnable_ns, wait_ns);
	if (hal_policy_rank(queue) == 0)
		return head->submit_ns;
	if (holds(queue))
		return hal_bk_after(head->submit_ns, wait_ns);
	if (head->deadline_ns < head->submit_ns) /* lent by one that waits for it */
		return head->deadline_ns;
	needs_ns = head->rest_ns != HAL_POLICY_NEVER ? head->rest_ns : slots->unknown_ns;
	needs_ns = hal_bk_after(needs_ns, slots->load_ns);
	slack_ns = head->deadline_ns - head->submit_ns;
	slack_ns = slack_ns > needs_ns ? (slack_ns - needs_ns) / 2 : 0;
	return hal_bk_after(head->submit_ns, slack_ns < wait_ns ? slack_ns : wait_ns);
}

/* The group of a configuration that somebody waits with, or an empty one; 0: none. */
static uint64_t group_with(const struct shared *s, uint32_t number, bool empty)
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
	uint64_t heap = 2 * hal_policy_rank(queue) + holds(queue), i;

	(void)part;
	if (s == NULL)
		return;
	i = group_with(s, needs(slots, queue), false);
	if (i == 0)
		i = group_with(s, needs(slots, queue), true);
	s->used = i > s->used ? i : s->used;
	s->group[i].configuration = needs(slots, queue);
	s->group[i].waiting++;
	queue->own[PLACE] = i * HEAPS + heap;
	queue->own[DUE] = due_ns(slots, queue);
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

/* ---- whose turn it is ---------------------------------------------------------------- */

/* Of the first group and another by class, then by DUE. */
static struct hal_policy_queue *first_in_groups(const struct shared *s, uint64_t other)
{
	struct hal_policy_queue *best = NULL;

	for (uint64_t i = 0; i / 2 < HEAPS && (best == NULL || i % 4 != 0); i++) {
		struct hal_policy_queue *q = s->group[i % 2 * other].heap[i / 2];

		if (q != NULL && (best == NULL || hal_policy_heap_before(q, best)))
			best = q;
	}
	return best;
}

static bool is_served_before(const struct hal_policy_queue *a,
			     const struct hal_policy_queue *b)
{
	if (hal_policy_rank(a) != hal_policy_rank(b))
		return hal_policy_rank(a) < hal_policy_rank(b);
	return hal_policy_heap_before(a, b);
}

/* Of those that need a load who waits least, and until when; wanted: what is loaded.  Of
 * those that wait no longer by class, then who was due first. */
static struct hal_policy_queue *first_due(const struct slots *slots,
					  const struct shared *s, bool wanted,
					  uint64_t now_ns, uint64_t *until_ns)
{
	struct hal_policy_queue *best = NULL;

	*until_ns = HAL_POLICY_NEVER;
	for (uint64_t i = HEAPS; i < (s->used + 1) * HEAPS; i++) {
		struct hal_policy_queue *q = s->group[i / HEAPS].heap[i % HEAPS];
		uint64_t at_ns;

		if (q == NULL || needs(slots, q) == slots->loaded)
			continue;
		at_ns = q->own[DUE];
		if (wanted && at_ns < slots->stays_ns)
			at_ns = slots->stays_ns;
		if (!wanted && holds(q) &&
		    at_ns > hal_bk_after(q->runnable_ns, slots->hold_ns))
			at_ns = hal_bk_after(q->runnable_ns, slots->hold_ns);
		at_ns = at_ns > now_ns ? at_ns : now_ns;
		if (best == NULL || at_ns < *until_ns ||
		    (at_ns == *until_ns && is_served_before(q, best))) {
			*until_ns = at_ns;
			best = q;
		}
	}
	return best;
}

/* Somewhere on the device somebody waits with what is loaded: for room, behind its own
 * command that runs, or given to the device and not begun. */
static bool is_wanted(const struct slots *slots)
{
	uint64_t ns;

	for (const struct hal_policy_shared *c = slots->all; c != NULL; c = c->next) {
		const struct shared *s = (const struct shared *)c;

		if (group_with(s, slots->loaded, false) != 0 ||
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
	if (queue != NULL && is_wanted(slots))
		queue = first_due(slots, s, true, now_ns, &order->until_ns);
	if (queue == NULL || (order->until_ns > now_ns && slots->loaded != 0))
		queue = first_in_groups(s, group_with(s, slots->loaded, false));
	if (queue == NULL)
		return NULL;
	dequeue(state, part, queue, HAL_POLICY_OVERRULED);
	if (needs(slots, queue) == 0)
		return queue;
	if (needs(slots, queue) != slots->loaded)
		slots->stays_ns = hal_bk_after(now_ns, slots->load_ns + slots->stay_ns);
	slots->loaded = needs(slots, queue);
	s->last = queue;
	return queue;
}

/* Somebody may have waited for this to be gone. */
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
	.summary = "what is loaded first, and then who can wait least",
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
