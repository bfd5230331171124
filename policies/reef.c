/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reef: kill running best-effort commands when real-time work arrives, and restart them
 * when that work is done.
 *
 * Promise: a real-time command runs about as fast as on an idle partition, however long
 * the best-effort commands are.  Queues of class latency are real-time and those of class
 * best effort are not.  In class normal, reef_priority decides.  While a partition has
 * real-time work, none of its best-effort commands starts.  Real-time queues are served
 * in order of arrival.
 *
 * Option: reef_priority, the lowest priority that is real-time.
 *
 * Follows REEF (Han, Zhang, Chen, Chen: Microsecond-scale preemption for concurrent
 * GPU-accelerated DNN inferences, OSDI 2022).  Differences:
 *   - There every best-effort kernel is idempotent and can be reset.  Here only commands
 *     with HAL_CMD_REPLAYABLE are killed, and only on devices with HAL_SUSPEND_KILL.  No
 *     command is killed more than [policy] kills times before it completes.
 *   - There best-effort blocks fill the units that a real-time kernel leaves idle.
 *     Here a separate partition does that; the policy never kills work of other
 *     partitions.
 *
 * Good for real-time work that arrives now and then (policy priority makes it wait for a
 * best-effort command).  Bad for best-effort commands that are longer than the pauses
 * between real-time commands: they restart again and again.  No better than priority
 * where commands are not replayable.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include <hal/policy.h>

#include "common.h"

enum class { REAL_TIME, BEST_EFFORT, CLASSES };
/* Indices into hal_policy_queue.own: the class of the queue's newest command, and the
 * number of the queue's real-time commands that the device has.  own[HAL_POLICY_SHARED]
 * points to struct shared. */
enum { CLASS = HAL_POLICY_SHARED + 1, RUNNING };

/* The device has at most 64 commands of a partition (hal.partition_inflight), so at most
 * 64 queues of a partition have commands there. */
#define SET_MAX 64u

struct set {
	struct hal_policy_queue *at[SET_MAX];
	uint32_t count;
};

struct shared {
	struct hal_policy_shared common;
	struct hal_policy_list list[CLASSES];
	uint64_t running;     /* real-time commands that the device has */
	struct set on_device; /* best-effort queues with commands on the device */
	struct set killed;    /* queues that the policy has stopped */
	bool cleared;         /* every queue of on_device has refused to be killed */
};

struct reef {
	const struct hal_host *host;
	struct hal_policy_shared *all; /* state of each partition that has queues */
	const struct hal_policy_host *device;
	int64_t priority;
};

static const struct hal_option_def options[] = {
	{"reef_priority", HAL_OPTION_INT, INT32_MIN, INT32_MAX, NULL, "1",
	 "reef: lowest priority that is real-time; lower priorities are best effort"},
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

static void set_add(struct set *set, struct hal_policy_queue *queue)
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

/* ---- kill and restart -------------------------------------------------------------- */

/* Record how many real-time commands of queue the device has. */
static void set_running(struct shared *s, struct hal_policy_queue *queue,
			uint64_t running)
{
	s->running += running - queue->own[RUNNING];
	queue->own[RUNNING] = running;
}

/* Kill the best-effort commands on the device; leave those that cannot be killed. */
static void kill_best_effort(const struct reef *reef, struct shared *s)
{
	const struct hal_policy_host *h = reef->device;
	uint32_t kept = 0;

	if (s->cleared)
		return;
	for (uint32_t i = 0; i < s->on_device.count; i++) {
		struct hal_policy_queue *q = s->on_device.at[i];

		if (h->stop(h->device, q, HAL_SUSPEND_KILL) == 0)
			set_add(&s->killed, q);
		else
			s->on_device.at[kept++] = q;
	}
	s->on_device.count = kept;
	s->cleared = true;
}

/* Restart the killed queues if the partition has no real-time work left. */
static void restart_killed(const struct reef *reef, struct shared *s)
{
	const struct hal_policy_host *h = reef->device;

	if (s->running > 0 || s->list[REAL_TIME].first != NULL)
		return;
	/* Ignore errors: start fails for a queue that the application has resumed. */
	while (s->killed.count > 0)
		(void)h->start(h->device, s->killed.at[--s->killed.count]);
}

/* ---- attach, detach, completion ---------------------------------------------------- */

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

	set_running(s, queue, 0);
	set_remove(&s->on_device, queue);
	set_remove(&s->killed, queue);
	restart_killed(reef, s);
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
	/* A kill cancels all commands of the queue that the device has. */
	if (queue->running == 0 || end->status == -ECANCELED)
		set_remove(&s->on_device, queue);
	if (queue->own[RUNNING] > 0)
		set_running(s, queue, queue->own[RUNNING] - 1);
	/* The next best-effort command on the device may be replayable although the one
	 * that completed was not: try to kill again. */
	if (s->running > 0 || s->list[REAL_TIME].first != NULL)
		kill_best_effort(state, s);
	else
		restart_killed(state, s);
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
		set_running(s, queue,
			    queue->running); /* the device did not accept a command */
	queue->own[CLASS] = c;
	hal_policy_list_add(&s->list[c], queue);
	if (c == REAL_TIME)
		kill_best_effort(reef, s);
	else
		restart_killed(reef, s);
}

static void dequeue(void *state, struct hal_policy_partition *part,
		    struct hal_policy_queue *queue, enum hal_policy_why why)
{
	struct shared *s = hal_policy_shared(queue->own);

	(void)part, (void)why;
	if (s == NULL)
		return;
	hal_policy_list_take(&s->list[queue->own[CLASS]], queue);
	restart_killed(state, s);
}

/* Pick the oldest real-time queue.  Pick the oldest best-effort queue only if no
 * real-time queue is runnable and the device has no real-time command. */
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
		set_running(s, queue, (uint64_t)queue->running + 1);
	} else {
		queue = s->running == 0 ? s->list[BEST_EFFORT].first : NULL;
		if (queue == NULL)
			return NULL;
		set_add(&s->on_device, queue);
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
	.summary = "real-time work kills running best effort, which restarts afterwards",
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
