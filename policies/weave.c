/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weave: beside work that is bound by memory runs work that is bound by compute.
 *
 * Layerweaver (Oh, Kim, Jin, Son, Kim, Cho, Ham, Lee 2021): layers of several networks
 * are interleaved in time so that a layer that computes runs while the weights of one
 * that waits for memory are fetched, by a greedy choice that keeps both busy.  There
 * times of layers are known and one core has them all; here they are as a profile says
 * (hal.profile) or learned, and what runs beside each other runs in partitions of their
 * own: who is served next is of the kind of which the device has less, and one that would
 * only find its own kind waits a little for a partner, also of a later class, unless it
 * is latency-critical.
 *
 * Good where commands of both kinds wait and share a memory: at no time do all of them
 * want that, and at no time none (under fifo it is as it happens).  Bad where all are of
 * one kind, or the device has bandwidth for all: each waits for a partner who does not
 * come, and in between the device has less to do than it could.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include <hal/policy.h>

#include "common.h"

/* By what a command is bound, as far as is known. */
enum kind {
	COMPUTE = HAL_POLICY_BY_COMPUTE,
	MEMORY = HAL_POLICY_BY_MEMORY,
	UNKNOWN = HAL_POLICY_BY_UNKNOWN,
	KINDS = HAL_POLICY_BOUNDS
};
/* .own of queues, behind the shared: the kind of the newest command, how many the device
 * has, and with which class it is listed. */
enum { KIND = HAL_POLICY_SHARED + 1, RUNNING, RANK };

struct shared {
	struct hal_policy_shared common;
	struct hal_policy_list list[HAL_POLICY_RANKS][KINDS];
	uint64_t last; /* of what kind the last was that was served */
	bool held;     /* in weave.held */
	struct shared *next;
};

struct weave {
	const struct hal_host *host;
	struct hal_policy_shared *all;
	const struct hal_policy_host *device;
	uint64_t wait_ns;
	double memory;           /* bytes a ns from which it is bound by that */
	uint64_t running[KINDS]; /* commands of all partitions */
	struct shared *held;     /* partitions of which somebody waits for a partner */
};

static const struct hal_option_def options[] = {
	{"weave_memory_mbs", HAL_OPTION_INT, 0, INT32_MAX, NULL, "0",
	 "weave: MB/s from which a command is bound by memory; 0: 60 % of the device's"},
	{"weave_wait_us", HAL_OPTION_INT, 0, 10000000, NULL, "20",
	 "weave: so long a command waits for one of the other kind to end or to come"},
};

static int create(const struct hal_host *host, const struct hal_bk_config *cfg,
		  const struct hal_policy_host *device, void **state)
{
	struct weave *w = calloc(1, sizeof(*w));

	if (w == NULL)
		return host->fail(ENOMEM, "weave: no memory");
	w->host = host;
	w->device = device;
	w->wait_ns = (uint64_t)host->option_int(cfg, "weave_wait_us") * 1000;
	w->memory = (double)host->option_int(cfg, "weave_memory_mbs") * 1e-3;
	if (w->memory == 0)
		w->memory = (double)device->info->bandwidth * 0.6e-9;
	*state = w;
	return 0;
}

/* ---- what the device has ------------------------------------------------------------ */

static void count_kind(struct weave *w, struct hal_policy_queue *queue, uint64_t kind,
		       uint64_t running)
{
	w->running[queue->own[KIND]] -= queue->own[RUNNING];
	w->running[kind] += running;
	queue->own[KIND] = kind;
	queue->own[RUNNING] = running;
}

/* What runs is another now. */
static void ask_held(struct weave *w)
{
	while (w->held != NULL) {
		struct shared *s = w->held;

		w->held = s->next;
		s->held = false;
		w->device->ask(w->device->device, s->common.part);
	}
}

static void hold_shared(struct weave *w, struct shared *s)
{
	if (s->held)
		return;
	s->held = true;
	s->next = w->held;
	w->held = s;
}

static void ended(void *state, struct hal_policy_partition *part,
		  struct hal_policy_queue *queue, const struct hal_policy_end *end)
{
	(void)part, (void)end;
	if (hal_policy_shared(queue->own) == NULL)
		return;
	if (queue->own[RUNNING] > 0)
		count_kind(state, queue, queue->own[KIND], queue->own[RUNNING] - 1);
	ask_held(state);
}

/* ---- there and gone ----------------------------------------------------------------- */

static int attach(void *state, struct hal_policy_partition *part,
		  struct hal_policy_queue *queue)
{
	struct weave *w = state;

	return hal_policy_share(w->host, &w->all, part, queue, sizeof(struct shared));
}

static void detach(void *state, struct hal_policy_partition *part,
		   struct hal_policy_queue *queue)
{
	struct weave *w = state;

	count_kind(w, queue, UNKNOWN, 0);
	ask_held(w);
	hal_policy_unshare(&w->all, part, queue);
}

/* ---- the queues --------------------------------------------------------------------- */

static void enqueue(void *state, struct hal_policy_partition *part,
		    struct hal_policy_queue *queue)
{
	struct shared *s = hal_policy_shared(queue->own);
	struct weave *w = state;

	(void)part;
	if (s == NULL)
		return;
	/* Fewer than it thinks: the device had no room. */
	count_kind(w, queue, hal_policy_bound(&queue->head, w->memory),
		   queue->running < queue->own[RUNNING] ? queue->running
							: queue->own[RUNNING]);
	queue->own[RANK] = hal_policy_rank(queue);
	hal_policy_list_add(&s->list[queue->own[RANK]][queue->own[KIND]], queue);
}

static void dequeue(void *state, struct hal_policy_partition *part,
		    struct hal_policy_queue *queue, enum hal_policy_why why)
{
	struct shared *s = hal_policy_shared(queue->own);

	(void)part;
	if (s == NULL)
		return;
	hal_policy_list_take(&s->list[queue->own[RANK]][queue->own[KIND]], queue);
	if (why == HAL_POLICY_OVERRULED)
		count_kind(state, queue, queue->own[KIND], queue->own[RUNNING] + 1);
}

/* The kind of which the device has less; of equals, not the last one's. */
static uint64_t wanted_kind(const struct weave *w, const struct shared *s)
{
	if (w->running[COMPUTE] != w->running[MEMORY])
		return w->running[COMPUTE] < w->running[MEMORY] ? COMPUTE : MEMORY;
	return s->last == COMPUTE ? MEMORY : COMPUTE;
}

/* Who is first of those lists; NULL: nobody. */
static struct hal_policy_queue *first_of_lists(const struct weave *w,
					       const struct shared *s,
					       const struct hal_policy_list *list)
{
	struct hal_policy_queue *unknown = list[UNKNOWN].first, *queue;
	uint64_t kind = wanted_kind(w, s);

	if (list[kind].first == NULL)
		kind = unknown != NULL ? UNKNOWN : COMPUTE + MEMORY - kind;
	queue = list[kind].first;
	if (queue != NULL && unknown != NULL && unknown->runnable_ns < queue->runnable_ns)
		return unknown;
	return queue;
}

/* Until when it waits for a partner: it would run beside its own kind alone. */
static uint64_t waits_until(const struct weave *w, const struct hal_policy_queue *queue)
{
	uint64_t kind = queue->own[KIND];

	if (kind == UNKNOWN || queue->own[RANK] == 0 ||
	    w->running[kind] <= w->running[COMPUTE + MEMORY - kind])
		return 0;
	return hal_bk_after(queue->runnable_ns, w->wait_ns);
}

static struct hal_policy_queue *pick(void *state, struct hal_policy_partition *part,
				     uint64_t now_ns, struct hal_policy_order *order)
{
	struct weave *w = state;
	struct shared *s = hal_policy_shared(part->own);

	for (uint64_t rank = 0; s != NULL && rank < HAL_POLICY_RANKS; rank++) {
		struct hal_policy_queue *queue = first_of_lists(w, s, s->list[rank]);
		uint64_t until_ns = queue != NULL ? waits_until(w, queue) : 0;

		if (queue == NULL)
			continue;
		if (now_ns < until_ns) {
			hold_shared(w, s);
			if (until_ns < order->until_ns)
				order->until_ns = until_ns;
			continue;
		}
		hal_policy_list_take(&s->list[rank][queue->own[KIND]], queue);
		count_kind(w, queue, queue->own[KIND], queue->own[RUNNING] + 1);
		s->last = queue->own[KIND];
		return queue;
	}
	return NULL;
}

extern const struct hal_policy hal_policy_weave;
const struct hal_policy hal_policy_weave = {
	.size = sizeof(struct hal_policy),
	.abi = HAL_POLICY_ABI,
	.name = "weave",
	.summary = "what computes beside what waits for memory",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.flags = HAL_POLICY_ALWAYS | HAL_POLICY_EXPECTS | HAL_POLICY_STARVES,
	.create = create,
	.destroy = free,
	.attach = attach,
	.detach = detach,
	.enqueue = enqueue,
	.dequeue = dequeue,
	.pick = pick,
	.ended = ended,
};
