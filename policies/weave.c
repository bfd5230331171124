/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weave: run memory-bound commands and compute-bound commands at the same time.
 *
 * Promise: the device has commands of both kinds, as far as the runnable queues allow.
 * The next command is of the kind of which fewer run, over all partitions.  A command
 * that would run only next to its own kind waits for up to weave_wait_us for one of the
 * other kind.  A queue of a lower class may be served meanwhile.  Class latency never
 * waits. Queues are otherwise served by class, then in order of arrival.
 *
 * Options: weave_memory_mbs (rate from which a command is bound by memory),
 * weave_wait_us.
 *
 * Follows Layerweaver (Oh, Kim, Jin, Son, Kim, Cho, Ham, Lee: Layerweaver: Maximizing
 * resource utilization of neural processing units via layer-wise scheduling, HPCA 2021).
 * It interleaves layers of several networks so that one layer computes while the weights
 * of another are loaded.  Differences:
 *   - There the times of layers are known.  Here they come from the device's profile
 *     (hal.profile) or are learned.
 *   - There one core runs all layers.  Here concurrent commands run in partitions.
 *
 * Good where commands of both kinds wait and share a memory.  Bad where all commands are
 * of one kind or the bandwidth suffices for all: each waits for a partner that does not
 * arrive, and the device idles meanwhile.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include <hal/policy.h>

#include "common.h"

/* The resource that limits a command's speed. */
enum kind {
	COMPUTE = HAL_POLICY_BY_COMPUTE,
	MEMORY = HAL_POLICY_BY_MEMORY,
	UNKNOWN = HAL_POLICY_BY_UNKNOWN,
	KINDS = HAL_POLICY_BOUNDS
};
/* Indices into hal_policy_queue.own: the kind of the newest command, how many commands
 * the device has, and the rank of the list that holds the queue. */
enum { KIND = HAL_POLICY_SHARED + 1, RUNNING, RANK };

struct shared {
	struct hal_policy_shared common;
	struct hal_policy_list list[HAL_POLICY_RANKS][KINDS];
	uint64_t last;       /* kind of the command served last */
	bool held;           /* the partition is in the list weave.held */
	struct shared *next; /* in weave.held */
};

struct weave {
	const struct hal_host *host;
	struct hal_policy_shared *all; /* state of each partition that has queues */
	const struct hal_policy_host *device;
	uint64_t wait_ns;
	double memory; /* bytes per ns from which a command is bound by memory */
	uint64_t running[KINDS]; /* commands that the device has */
	struct shared *held;     /* partitions with a command that waits for a partner */
};

static const struct hal_option_def options[] = {
	{"weave_memory_mbs", HAL_OPTION_INT, 0, INT32_MAX, NULL, "0",
	 "weave: MB/s from which a command is bound by memory; 0: 60 % of the device's"},
	{"weave_wait_us", HAL_OPTION_INT, 0, 10000000, NULL, "20",
	 "weave: longest wait of a command for a command of the other kind"},
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

/* ---- commands on the device -------------------------------------------------------- */

/* Record the kind of queue's newest command and how many commands the device has. */
static void set_running(struct weave *w, struct hal_policy_queue *queue, uint64_t kind,
			uint64_t running)
{
	w->running[queue->own[KIND]] -= queue->own[RUNNING];
	w->running[kind] += running;
	queue->own[KIND] = kind;
	queue->own[RUNNING] = running;
}

/* Ask the engine to pick again for all partitions in w->held: the mix of running commands
 * has changed. */
static void ask_held(struct weave *w)
{
	while (w->held != NULL) {
		struct shared *s = w->held;

		w->held = s->next;
		s->held = false;
		w->device->ask(w->device->device, s->common.part);
	}
}

static void add_to_held(struct weave *w, struct shared *s)
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
		set_running(state, queue, queue->own[KIND], queue->own[RUNNING] - 1);
	ask_held(state);
}

/* ---- attach and detach ------------------------------------------------------------- */

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

	set_running(w, queue, UNKNOWN, 0);
	ask_held(w);
	hal_policy_unshare(&w->all, part, queue);
}

/* ---- the queues -------------------------------------------------------------------- */

static void enqueue(void *state, struct hal_policy_partition *part,
		    struct hal_policy_queue *queue)
{
	struct shared *s = hal_policy_shared(queue->own);
	struct weave *w = state;

	(void)part;
	if (s == NULL)
		return;
	/* queue->running is lower if the device did not accept a command that pick has
	 * counted. */
	set_running(w, queue, hal_policy_bound(&queue->head, w->memory),
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
		set_running(state, queue, queue->own[KIND], queue->own[RUNNING] + 1);
}

/* Return the kind of which the device runs fewer commands; if equal, the kind that the
 * partition did not serve last. */
static uint64_t scarcer_kind(const struct weave *w, const struct shared *s)
{
	if (w->running[COMPUTE] != w->running[MEMORY])
		return w->running[COMPUTE] < w->running[MEMORY] ? COMPUTE : MEMORY;
	return s->last == COMPUTE ? MEMORY : COMPUTE;
}

/* Return the queue to serve from one class's lists; NULL if they are empty.  Prefer the
 * scarcer kind.  An unknown kind comes second, or first if it has waited longer. */
static struct hal_policy_queue *preferred_of(const struct weave *w,
					     const struct shared *s,
					     const struct hal_policy_list *list)
{
	struct hal_policy_queue *unknown = list[UNKNOWN].first, *queue;
	uint64_t kind = scarcer_kind(w, s);

	if (list[kind].first == NULL)
		kind = unknown != NULL ? UNKNOWN : COMPUTE + MEMORY - kind;
	queue = list[kind].first;
	if (queue != NULL && unknown != NULL && unknown->runnable_ns < queue->runnable_ns)
		return unknown;
	return queue;
}

/* Return until when queue waits for a partner because its own kind prevails on the
 * device; 0 if it need not wait. */
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
		struct hal_policy_queue *queue = preferred_of(w, s, s->list[rank]);
		uint64_t until_ns = queue != NULL ? waits_until(w, queue) : 0;

		if (queue == NULL)
			continue;
		if (now_ns < until_ns) {
			add_to_held(w, s);
			if (until_ns < order->until_ns)
				order->until_ns = until_ns;
			continue;
		}
		hal_policy_list_take(&s->list[rank][queue->own[KIND]], queue);
		set_running(w, queue, queue->own[KIND], queue->own[RUNNING] + 1);
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
	.summary = "runs compute-bound and memory-bound commands at the same time",
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
