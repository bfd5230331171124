/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slots: what the device has loaded is served as long as others can wait; then the
 * configuration of who can wait least is loaded.
 *
 * For a device that has one configuration at a time (head.configuration) and needs
 * info->load_ns to change it.  A head can wait until half of its slack is gone (its
 * deadline less what it runs and a load), at most slots_age_us, and one of class latency
 * not at all.  Who can wait no longer has the configuration changed, but only when the
 * one that is there has had slots_stay loads of time: under overload all are late, and
 * each of them would have it changed.  Where nobody wants what is there, those with a
 * deadline wait as long all the same, for others of their group and of the one that is
 * there; the others for slots_hold loads.
 *
 * Prefetch: a device that has room for one configuration cannot load the next beside it.
 * But what needs it is given to the device as soon as the last one that wants the old one
 * has been, while that still runs: the load begins when it ends.
 *
 * Good where loading is dear and programs are several: fewer loads, at the same deadlines
 * missed.  Bad for latency, of which it spends half of what the deadlines leave: fifo
 * serves a request that comes to an idle card at once.  With one configuration, or where
 * loading is not known to cost anything, it is edf with an age limit.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include <hal/policy.h>

/* .own of queues, behind the shared: until when its head can wait, its list. */
enum { DUE = HAL_POLICY_SHARED + 1, LIST };

enum { PLAIN, NEEDS, LISTS }; /* a configuration that may have to be loaded: 1 */

struct shared {
	struct hal_policy_shared common;
	/* By class, then by DUE; equal ones as they came. */
	struct hal_policy_list list[LISTS];
	struct hal_policy_queue *last; /* that was served with what is loaded */
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
	 "slots: so long a command waits at most for another to be loaded, but for "
	 "slots_stay"},
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

static uint64_t due(const struct slots *slots, const struct hal_policy_queue *queue)
{
	const struct hal_policy_command *head = &queue->head;
	uint64_t wait_ns = slots->age_ns, slack_ns, needs_ns = slots->load_ns;

	if (queue->service_class == HAL_CLASS_LATENCY)
		return head->submit_ns;
	if (head->deadline_ns == HAL_POLICY_NEVER)
		return head->submit_ns + wait_ns;
	if (head->deadline_ns < head->submit_ns) /* lent by one that waits for it */
		return head->deadline_ns;
	needs_ns += head->rest_ns != HAL_POLICY_NEVER ? head->rest_ns : slots->unknown_ns;
	slack_ns = head->deadline_ns - head->submit_ns;
	slack_ns = slack_ns > needs_ns ? (slack_ns - needs_ns) / 2 : 0;
	return head->submit_ns + (slack_ns < wait_ns ? slack_ns : wait_ns);
}

static bool is_before(const struct hal_policy_queue *a, const struct hal_policy_queue *b)
{
	if (hal_policy_rank(a) != hal_policy_rank(b))
		return hal_policy_rank(a) < hal_policy_rank(b);
	return a->own[DUE] < b->own[DUE];
}

static void enqueue(void *state, struct hal_policy_partition *part,
		    struct hal_policy_queue *queue)
{
	const struct slots *slots = state;
	struct shared *s = hal_policy_shared(queue->own);
	struct hal_policy_queue *before;
	struct hal_policy_list *list;

	(void)part;
	if (s == NULL)
		return;
	queue->own[DUE] = due(slots, queue);
	queue->own[LIST] = queue->head.configuration != 0 && slots->load_ns != 0;
	list = &s->list[queue->own[LIST]];
	before = list->last;
	while (before != NULL && is_before(queue, before))
		before = before->prev;
	queue->prev = before;
	queue->next = before != NULL ? before->next : list->first;
	*(before != NULL ? &before->next : &list->first) = queue;
	*(queue->next != NULL ? &queue->next->prev : &list->last) = queue;
}

static void dequeue(void *state, struct hal_policy_partition *part,
		    struct hal_policy_queue *queue, enum hal_policy_why why)
{
	struct shared *s = hal_policy_shared(queue->own);

	(void)state, (void)part, (void)why;
	if (s != NULL)
		hal_policy_list_take(&s->list[queue->own[LIST]], queue);
}

/* ---- whose turn it is ---------------------------------------------------------------- */

static bool fits(const struct slots *slots, const struct hal_policy_queue *queue)
{
	return queue->own[LIST] == PLAIN || queue->head.configuration == slots->loaded;
}

/* The first that wants what is loaded. */
static struct hal_policy_queue *first_fitting(const struct slots *slots,
					      const struct shared *s)
{
	struct hal_policy_queue *queue = s->list[NEEDS].first;

	while (queue != NULL && !fits(slots, queue))
		queue = queue->next;
	return queue;
}

/* Until when it waits for others, while somebody wants what is loaded or nobody does. */
static uint64_t waits(const struct slots *slots, const struct hal_policy_queue *queue,
		      bool wanted)
{
	uint64_t due_ns = queue->own[DUE], held_ns = queue->runnable_ns + slots->hold_ns;

	if (wanted)
		return due_ns > slots->stays_ns ? due_ns : slots->stays_ns;
	if (queue->head.deadline_ns != HAL_POLICY_NEVER)
		return due_ns;
	return due_ns < held_ns ? due_ns : held_ns;
}

/* Of those that need a load, of whatever class, who waits least. */
static struct hal_policy_queue *first_due(const struct slots *slots,
					  const struct shared *s, bool wanted,
					  uint64_t *until_ns)
{
	struct hal_policy_queue *best = NULL;

	*until_ns = HAL_POLICY_NEVER;
	for (struct hal_policy_queue *q = s->list[NEEDS].first; q != NULL; q = q->next) {
		uint64_t at_ns =
			fits(slots, q) ? HAL_POLICY_NEVER : waits(slots, q, wanted);

		if (at_ns < *until_ns) {
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
	uint64_t last_ns;

	for (const struct hal_policy_shared *c = slots->all; c != NULL; c = c->next) {
		const struct shared *s = (const struct shared *)c;

		if (first_fitting(slots, s) != NULL ||
		    c->part->running > c->part->units ||
		    (s->last != NULL && fits(slots, s->last) &&
		     slots->device->waiting(slots->device->device, s->last, &last_ns) !=
			     0))
			return true;
	}
	return false;
}

static struct hal_policy_queue *take(struct slots *slots, struct shared *s,
				     struct hal_policy_queue *queue, uint64_t now_ns)
{
	hal_policy_list_take(&s->list[queue->own[LIST]], queue);
	if (!fits(slots, queue))
		slots->stays_ns = now_ns + slots->load_ns + slots->stay_ns;
	if (queue->own[LIST] == NEEDS) {
		slots->loaded = queue->head.configuration;
		s->last = queue;
	}
	return queue;
}

static struct hal_policy_queue *pick(void *state, struct hal_policy_partition *part,
				     uint64_t now_ns, struct hal_policy_order *order)
{
	struct slots *slots = state;
	struct shared *s = hal_policy_shared(part->own);
	struct hal_policy_queue *plain, *fitting, *other = NULL;
	uint64_t until_ns = HAL_POLICY_NEVER;

	if (s == NULL)
		return NULL;
	plain = s->list[PLAIN].first;
	fitting = first_fitting(slots, s);
	if (s->list[NEEDS].first != NULL)
		other = first_due(slots, s, is_wanted(slots), &until_ns);
	if (other != NULL && (until_ns <= now_ns || slots->loaded == 0))
		return take(slots, s, other, now_ns);
	if (fitting == NULL || (plain != NULL && is_before(plain, fitting)))
		fitting = plain;
	if (fitting != NULL)
		return take(slots, s, fitting, now_ns);
	order->until_ns = until_ns;
	return NULL;
}

/* Somebody may have waited for this to be gone. */
static void ended(void *state, struct hal_policy_partition *part,
		  struct hal_policy_queue *queue, const struct hal_policy_end *end)
{
	const struct slots *slots = state;

	(void)part, (void)queue, (void)end;
	for (const struct hal_policy_shared *c = slots->all; c != NULL; c = c->next)
		if (((const struct shared *)c)->list[NEEDS].first != NULL)
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
