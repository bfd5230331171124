/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tgs: limit the rate of best-effort commands to one at which productive queues keep
 * their own rate.
 *
 * Promise: productive queues complete commands at about the rate that they reach without
 * best-effort work, and best-effort queues get the remaining time.  A queue is productive
 * by class latency or, in class normal, by a priority of at least tgs_priority.  Queues
 * that may run are served in order of arrival.
 *
 * Options: tgs_priority, tgs_period_us (length of a measuring period).
 *
 * Follows TGS (Wu, Zhang, Bai, Liu, Jin: Transparent GPU sharing in container clouds for
 * deep learning workloads, NSDI 2023), with its constants:
 *   - The rate is the number of productive commands completed in five periods.
 *   - Rate within 3 % of the best: raise the limit of best-effort commands per period.
 *     Raise it by half at first, and by 0.025 % after the first decrease.
 *   - Lower rate: reduce the limit by a third the first time, by 8 % afterwards.
 *   - Rate more than 9 % below the best: divide the limit by 10, then raise by half
 *     again.
 *   - After twenty low periods in a row, reduce the best rate to four fifths.
 * Differences: there each job is a container with a thread that samples every 5 s.  Here
 * classes and priorities distinguish the queues, and elapsed periods are evaluated when a
 * queue becomes runnable or the engine asks.
 *
 * Good for a productive tenant that always has work, next to one that takes the rest; no
 * run times have to be known.  Bad for latency: the rate of a tenant with little work
 * stays the same however long its commands wait (use priority).  A productive tenant that
 * pauses looks like one that is slowed down.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include <hal/policy.h>

#include "common.h"

#define WINDOW      5u
#define BAD_MAX     20u
#define ONE         1000u /* limit of one command per period */
#define LIMIT_LEAST 10u   /* one command in 100 periods */
#define LIMIT_MOST  UINT64_C(1000000000000)
#define CATCH_UP    1000u /* periods to evaluate at most; older ones are skipped */

enum class { PRODUCTIVE, BEST_EFFORT, CLASSES };
/* Index into hal_policy_queue.own: the class of the newest command.
 * own[HAL_POLICY_SHARED] points to struct shared. */
enum { CLASS = HAL_POLICY_SHARED + 1 };

struct shared {
	struct hal_policy_shared common;
	struct hal_policy_list list[CLASSES];
	uint64_t period_ends_ns;
	uint64_t ended[WINDOW]; /* completed productive commands; [0]: this period */
	uint64_t best;          /* highest rate so far */
	uint64_t limit;         /* best-effort commands per 1,000 periods */
	uint64_t due_ns;        /* when the next best-effort command may start */
	uint32_t bad;           /* periods with a low rate since the last good one */
	bool steady;            /* change the limit in small steps */
};

struct tgs {
	const struct hal_host *host;
	struct hal_policy_shared *all; /* state of each partition that has queues */
	uint64_t period_ns;
	int64_t priority;
};

static const struct hal_option_def options[] = {
	{"tgs_priority", HAL_OPTION_INT, INT32_MIN, INT32_MAX, NULL, "1",
	 "tgs: lowest priority that is productive; lower priorities are best effort"},
	{"tgs_period_us", HAL_OPTION_INT, 1, 10000000, NULL, "10000",
	 "tgs: device time between two measurements of the rate"},
};

static int create(const struct hal_host *host, const struct hal_bk_config *cfg,
		  const struct hal_policy_host *device, void **state)
{
	struct tgs *tgs = calloc(1, sizeof(*tgs));

	(void)device;
	if (tgs == NULL)
		return host->fail(ENOMEM, "tgs: no memory");
	tgs->host = host;
	tgs->period_ns = (uint64_t)host->option_int(cfg, "tgs_period_us") * 1000;
	tgs->priority = host->option_int(cfg, "tgs_priority");
	*state = tgs;
	return 0;
}

static int attach(void *state, struct hal_policy_partition *part,
		  struct hal_policy_queue *queue)
{
	struct tgs *tgs = state;
	int err = hal_policy_share(tgs->host, &tgs->all, part, queue,
				   sizeof(struct shared));
	struct shared *s = hal_policy_shared(queue->own);

	if (err == 0 && s->limit == 0)
		s->limit = ONE;
	return err;
}

static void detach(void *state, struct hal_policy_partition *part,
		   struct hal_policy_queue *queue)
{
	struct tgs *tgs = state;

	hal_policy_unshare(&tgs->all, part, queue);
}

/* ---- the rate ---------------------------------------------------------------------- */

/* Lower the best-effort limit.  Call if rate is more than 3 % below the best. */
static void lower_limit(struct shared *s, uint64_t rate)
{
	if (rate * 100 < s->best * 91) {
		s->limit /= 10;
		s->steady = false;
	} else {
		s->limit = s->steady ? s->limit * 92 / 100 : s->limit * 2 / 3;
		s->steady = true;
	}
	if (s->limit < LIMIT_LEAST)
		s->limit = LIMIT_LEAST;
	if (++s->bad < BAD_MAX)
		return;
	s->bad = 0;
	s->best = s->best * 4 / 5;
}

static void raise_limit(struct shared *s)
{
	s->bad = 0;
	s->limit += s->steady ? s->limit / 4000 + 1 : s->limit / 2;
	if (s->limit > LIMIT_MOST)
		s->limit = LIMIT_MOST;
}

/* Compare the rate of the last WINDOW periods with the best, adjust the limit, and begin
 * a new period. */
static void end_period(struct shared *s)
{
	uint64_t rate = 0;

	for (size_t i = 0; i < WINDOW; i++)
		rate += s->ended[i];
	for (size_t i = WINDOW - 1; i > 0; i--)
		s->ended[i] = s->ended[i - 1];
	s->ended[0] = 0;
	if (rate > s->best)
		s->best = rate;
	if (rate * 100 >= s->best * 97)
		raise_limit(s);
	else
		lower_limit(s, rate);
}

/* Evaluate all periods that have ended by now_ns. */
static void catch_up(const struct tgs *tgs, struct shared *s, uint64_t now_ns)
{
	uint64_t most = CATCH_UP * tgs->period_ns;

	if (s->period_ends_ns == 0)
		s->period_ends_ns = hal_bk_after(now_ns, tgs->period_ns);
	if (now_ns > most && s->period_ends_ns < now_ns - most)
		s->period_ends_ns = now_ns - most;
	while (s->period_ends_ns <= now_ns) {
		s->period_ends_ns = hal_bk_after(s->period_ends_ns, tgs->period_ns);
		end_period(s);
	}
}

static void ended(void *state, struct hal_policy_partition *part,
		  struct hal_policy_queue *queue, const struct hal_policy_end *end)
{
	struct shared *s = hal_policy_shared(queue->own);

	(void)state, (void)part;
	if (s != NULL && queue->own[CLASS] == PRODUCTIVE && end->status == 0)
		s->ended[0]++;
}

/* ---- the queues -------------------------------------------------------------------- */

static void enqueue(void *state, struct hal_policy_partition *part,
		    struct hal_policy_queue *queue)
{
	const struct tgs *tgs = state;
	struct shared *s = hal_policy_shared(queue->own);
	enum class c = hal_policy_above(queue, tgs->priority) ? PRODUCTIVE : BEST_EFFORT;

	(void)part;
	if (s == NULL)
		return;
	catch_up(tgs, s, queue->runnable_ns);
	queue->own[CLASS] = c;
	hal_policy_list_add(&s->list[c], queue);
}

static void dequeue(void *state, struct hal_policy_partition *part,
		    struct hal_policy_queue *queue, enum hal_policy_why why)
{
	struct shared *s = hal_policy_shared(queue->own);

	(void)state, (void)part, (void)why;
	if (s != NULL)
		hal_policy_list_take(&s->list[queue->own[CLASS]], queue);
}

/* Pick the oldest queue, except that a best-effort queue must be due. */
static struct hal_policy_queue *pick(void *state, struct hal_policy_partition *part,
				     uint64_t now_ns, struct hal_policy_order *order)
{
	const struct tgs *tgs = state;
	struct shared *s = hal_policy_shared(part->own);
	struct hal_policy_queue *best, *effort;

	if (s == NULL)
		return NULL;
	catch_up(tgs, s, now_ns);
	best = s->list[PRODUCTIVE].first;
	effort = s->list[BEST_EFFORT].first;
	if (effort != NULL && s->due_ns <= now_ns &&
	    (best == NULL || effort->runnable_ns < best->runnable_ns)) {
		s->due_ns = hal_bk_after(now_ns, tgs->period_ns * ONE / s->limit);
		best = effort;
	}
	if (best != NULL)
		hal_policy_list_take(&s->list[best->own[CLASS]], best);
	else if (effort != NULL)
		order->until_ns = s->due_ns;
	return best;
}

extern const struct hal_policy hal_policy_tgs;
const struct hal_policy hal_policy_tgs = {
	.size = sizeof(struct hal_policy),
	.abi = HAL_POLICY_ABI,
	.name = "tgs",
	.summary = "best effort only at a rate that does not slow down productive work",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.flags = HAL_POLICY_ALWAYS,
	.create = create,
	.destroy = free,
	.attach = attach,
	.detach = detach,
	.enqueue = enqueue,
	.dequeue = dequeue,
	.pick = pick,
	.ended = ended,
};
