/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reef: best effort gives the device back at once when real-time work comes, and runs
 * again from the start when that is done.
 *
 * REEF (Han, Zhang, Chen, Chen 2022): a real-time kernel resets the best-effort ones that
 * run, which are idempotent, and starts within microseconds; those are launched again
 * when no real-time work is left.  Its padding of a real-time kernel with best-effort
 * blocks on units it leaves idle is what a partition of their own is for here: there they
 * run on whatever this policy does.  There every kernel may be reset; here only
 * HAL_CMD_REPLAYABLE commands are, on devices with HAL_SUSPEND_KILL, and none more often
 * than [policy] kills times before it has ended.
 *
 * Good for real-time work that comes now and then: it takes as long as alone, however
 * long the commands of best effort are (under priority it waits for one).  Bad for best
 * effort where the pauses are shorter than its commands: each is begun again and again
 * for nothing (under priority it gets on); and no better than priority where commands can
 * not be replayed.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include <hal/policy.h>

#include "common.h"

enum class { REAL_TIME, BEST_EFFORT, CLASSES };
/* .own[HAL_POLICY_SHARED] of a partition, and of its queues that were admitted: struct
 * shared; of queues also the class of the newest command, and how many real-time ones the
 * device has. */
enum { CLASS = HAL_POLICY_SHARED + 1, RUNNING };

/* Queues of a partition that have something on the device: not more than that takes. */
#define SET_MAX 64u

struct set {
	struct hal_policy_queue *at[SET_MAX];
	uint32_t count;
};

struct shared {
	struct hal_policy_shared common;
	struct hal_policy_list list[CLASSES];
	uint64_t running; /* real-time commands that the device has */
	struct set effort, killed;
	bool cleared; /* what is in effort has to be waited for */
};

struct reef {
	const struct hal_host *host;
	struct hal_policy_shared *all;
	const struct hal_policy_host *device;
	int64_t priority;
};

static const struct hal_option_def options[] = {
	{"reef_priority", HAL_OPTION_INT, INT32_MIN, INT32_MAX, NULL, "1",
	 "reef: priority from which work is real-time; below it is best effort"},
};

static int create(const struct hal_host *host, const struct hal_bk_config *cfg,
		  const struct hal_policy_host *device, void **state)
{
	struct reef *reef = calloc(1, sizeof(*reef));

	if (reef == NULL)
		return host->fail(ENOMEM, "reef: no memory");
	reef->host = host;
	reef->device = device;
	reef->priority = host->option_int(cfg, "reef_priority");
	*state = reef;
	return 0;
}

/* ---- sets -------------------------------------------------------------------------- */

static void set_put(struct set *set, struct hal_policy_queue *queue)
{
	for (uint32_t i = 0; i < set->count; i++)
		if (set->at[i] == queue)
			return;
	if (set->count < SET_MAX)
		set->at[set->count++] = queue;
}

static void set_remove(struct set *set, const struct hal_policy_queue *queue)
{
	for (uint32_t i = 0; i < set->count; i++)
		if (set->at[i] == queue)
			set->at[i] = set->at[--set->count];
}

/* ---- killed, and again ------------------------------------------------------------- */

/* The device has so many real-time commands of queue. */
static void count_realtime(struct shared *s, struct hal_policy_queue *queue,
			   uint64_t running)
{
	s->running += running - queue->own[RUNNING];
	queue->own[RUNNING] = running;
}

/* Real-time work has come. */
static void clear_device(const struct reef *reef, struct shared *s)
{
	const struct hal_policy_host *h = reef->device;
	uint32_t kept = 0;

	if (s->cleared)
		return;
	for (uint32_t i = 0; i < s->effort.count; i++) {
		struct hal_policy_queue *q = s->effort.at[i];

		if (h->stop(h->device, q, HAL_SUSPEND_KILL) == 0)
			set_put(&s->killed, q);
		else
			s->effort.at[kept++] = q;
	}
	s->effort.count = kept;
	s->cleared = true;
}

/* What was killed begins again when no real-time work is left. */
static void restore(const struct reef *reef, struct shared *s)
{
	const struct hal_policy_host *h = reef->device;

	if (s->running > 0 || s->list[REAL_TIME].first != NULL)
		return;
	/* One that the application has resumed goes on already. */
	while (s->killed.count > 0)
		(void)h->start(h->device, s->killed.at[--s->killed.count]);
}

/* ---- there and gone ---------------------------------------------------------------- */

static int attach(void *state, struct hal_policy_partition *part,
		  struct hal_policy_queue *queue)
{
	struct reef *reef = state;

	return hal_policy_share(reef->host, &reef->all, part, queue,
				sizeof(struct shared));
}

static void detach(void *state, struct hal_policy_partition *part,
		   struct hal_policy_queue *queue)
{
	struct shared *s = hal_policy_shared(queue->own);
	struct reef *reef = state;

	count_realtime(s, queue, 0);
	set_remove(&s->effort, queue);
	set_remove(&s->killed, queue);
	restore(reef, s);
	hal_policy_unshare(&reef->all, part, queue);
}

static void ended(void *state, struct hal_policy_partition *part,
		  struct hal_policy_queue *queue, const struct hal_policy_end *end)
{
	struct shared *s = hal_policy_shared(queue->own);

	(void)part;
	if (s == NULL)
		return;
	s->cleared = false;
	/* Who kills one kills all that the device has of the queue. */
	if (queue->running == 0 || end->status == -ECANCELED)
		set_remove(&s->effort, queue);
	if (queue->own[RUNNING] > 0)
		count_realtime(s, queue, queue->own[RUNNING] - 1);
	/* Behind one that had to be waited for there may be one that need not. */
	if (s->running > 0 || s->list[REAL_TIME].first != NULL)
		clear_device(state, s);
	else
		restore(state, s);
}

/* ---- the queues -------------------------------------------------------------------- */

static void enqueue(void *state, struct hal_policy_partition *part,
		    struct hal_policy_queue *queue)
{
	const struct reef *reef = state;
	struct shared *s = hal_policy_shared(queue->own);
	enum class c = hal_policy_above(queue, reef->priority) ? REAL_TIME : BEST_EFFORT;

	(void)part;
	if (s == NULL)
		return;
	if (queue->running < queue->own[RUNNING])
		count_realtime(s, queue, queue->running); /* the device had no room */
	queue->own[CLASS] = c;
	hal_policy_list_add(&s->list[c], queue);
	if (c == REAL_TIME)
		clear_device(reef, s);
	else
		restore(reef, s);
}

static void dequeue(void *state, struct hal_policy_partition *part,
		    struct hal_policy_queue *queue, enum hal_policy_why why)
{
	struct shared *s = hal_policy_shared(queue->own);

	(void)part, (void)why;
	if (s == NULL)
		return;
	hal_policy_list_take(&s->list[queue->own[CLASS]], queue);
	restore(state, s);
}

/* Who came first of real-time work; of best effort only while there is none. */
static struct hal_policy_queue *pick(void *state, struct hal_policy_partition *part,
				     uint64_t now_ns, struct hal_policy_order *order)
{
	struct shared *s = hal_policy_shared(part->own);
	struct hal_policy_queue *queue;

	(void)state, (void)now_ns, (void)order;
	if (s == NULL)
		return NULL;
	queue = s->list[REAL_TIME].first;
	if (queue != NULL) {
		count_realtime(s, queue, (uint64_t)queue->running + 1);
	} else {
		queue = s->running == 0 ? s->list[BEST_EFFORT].first : NULL;
		if (queue == NULL)
			return NULL;
		set_put(&s->effort, queue);
		s->cleared = false;
	}
	hal_policy_list_take(&s->list[queue->own[CLASS]], queue);
	return queue;
}

extern const struct hal_policy hal_policy_reef;
const struct hal_policy hal_policy_reef = {
	.size = sizeof(struct hal_policy),
	.abi = HAL_POLICY_ABI,
	.name = "reef",
	.summary = "real-time work kills best effort, which begins again",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.flags = HAL_POLICY_ALWAYS | HAL_POLICY_STARVES,
	.create = create,
	.destroy = free,
	.attach = attach,
	.detach = detach,
	.enqueue = enqueue,
	.dequeue = dequeue,
	.pick = pick,
	.ended = ended,
};
