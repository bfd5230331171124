/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prema: of the queues that have waited long enough for their length and priority, serve
 * the shortest.
 *
 * Promise: short commands overtake long ones, but no queue starves behind them.  Queues
 * of class latency are served before all others.  The rule below applies to each of the
 * two groups separately.
 *
 * Option: prema_unknown_us, the assumed run time of commands whose run time
 * is not known yet.
 *
 * Rule: a queue has 1, 3 or 9 tokens for a priority below 0, of 0, or above 0.  Class
 * best effort has 1 and class latency has 9.  The queue gains the same number of tokens
 * again each time it has waited for its own expected run time.  The level is the highest
 * power of three that any queue's tokens reach.  Of the queues that reach the level, the
 * shortest is served.
 *
 * Follows PREMA (Choi, Rhu: A predictive multi-task scheduling algorithm for preemptible
 * neural processing units, HPCA 2020).  Differences:
 *   - The paper's highest level is 9.  Here the level has no upper limit; otherwise a
 *     flood of short commands with 9 tokens would starve a longer one.
 *   - The paper hands out tokens periodically.  Here tokens are computed at each pick.
 *   - The paper computes lengths from a model of the array.  Here lengths are the
 * expected run times, rounded up to powers of two.
 *   - Waiting time counts from when the command became runnable.
 *   - This policy stops no running command.
 *
 * Good for the mean slowdown over all lengths (ANTT).  Bad for the highest priority: a
 * queue of lower priority that has waited long enough is served first if it is shorter.
 * Policy priority avoids that.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include <hal/policy.h>

#include "common.h"

enum { LENGTHS = 64, CLASSES = 3 };
/* Indices into hal_policy_queue.own.  own[HAL_POLICY_SHARED] points to struct shared. */
enum { CLASS = HAL_POLICY_SHARED + 1, LENGTH, GROUP };

enum { URGENT, NOT_URGENT, GROUPS };

static const uint64_t initial_tokens[CLASSES] = {1, 3, 9};

/* The runnable queues of class latency, or the other ones. */
struct group {
	uint64_t waiting; /* bit i: a list of length i is not empty */
	/* Queues of one length and token class in order of arrival.  The first of each
	 * list has the most tokens, so pick examines only the first. */
	struct hal_policy_list list[LENGTHS][CLASSES];
};

struct shared {
	struct hal_policy_shared common;
	struct group group[GROUPS];
};

struct prema {
	const struct hal_host *host;
	struct hal_policy_shared *all; /* state of each partition that has queues */
	uint64_t unknown_ns;
};

static const struct hal_option_def options[] = {
	{"prema_unknown_us", HAL_OPTION_INT, 1, 10000000, NULL, "1000",
	 "prema: assumed run time of a command until its queue has completed one"},
};

static int create(const struct hal_host *host, const struct hal_bk_config *cfg,
		  const struct hal_policy_host *device, void **state)
{
	struct prema *prema = calloc(1, sizeof(*prema));

	(void)device;
	if (prema == NULL)
		return host->fail(ENOMEM, "prema: no memory");
	prema->host = host;
	prema->unknown_ns = (uint64_t)host->option_int(cfg, "prema_unknown_us") * 1000;
	*state = prema;
	return 0;
}

static int attach(void *state, struct hal_policy_partition *part,
		  struct hal_policy_queue *queue)
{
	struct prema *prema = state;

	return hal_policy_share(prema->host, &prema->all, part, queue,
				sizeof(struct shared));
}

static void detach(void *state, struct hal_policy_partition *part,
		   struct hal_policy_queue *queue)
{
	struct prema *prema = state;

	hal_policy_unshare(&prema->all, part, queue);
}

/* Return the exponent of the smallest power of two that is at least ns. */
static uint64_t length_of(uint64_t ns)
{
	uint64_t length = 0;

	while (length < LENGTHS - 1 && ns > UINT64_C(1) << length)
		length++;
	return length;
}

static struct group *group_of(struct shared *s, const struct hal_policy_queue *queue)
{
	return &s->group[queue->own[GROUP]];
}

static struct hal_policy_list *list_of(struct shared *s,
				       const struct hal_policy_queue *queue)
{
	return &group_of(s, queue)->list[queue->own[LENGTH]][queue->own[CLASS]];
}

static void enqueue(void *state, struct hal_policy_partition *part,
		    struct hal_policy_queue *queue)
{
	const struct prema *prema = state;
	struct shared *s = hal_policy_shared(queue->own);
	uint64_t rest_ns = queue->head.rest_ns;

	(void)part;
	if (s == NULL)
		return;
	if (rest_ns == HAL_POLICY_NEVER)
		rest_ns = prema->unknown_ns;
	queue->own[LENGTH] = length_of(rest_ns);
	queue->own[CLASS] = (uint64_t)hal_policy_above(queue, 0) +
			    (uint64_t)hal_policy_above(queue, 1);
	queue->own[GROUP] = hal_policy_rank(queue) == 0 ? URGENT : NOT_URGENT;
	group_of(s, queue)->waiting |= UINT64_C(1) << queue->own[LENGTH];
	hal_policy_list_add(list_of(s, queue), queue);
}

static void remove_queue(struct shared *s, struct hal_policy_queue *queue)
{
	struct group *g = group_of(s, queue);
	bool empty = true;

	hal_policy_list_take(list_of(s, queue), queue);
	for (size_t c = 0; c < CLASSES; c++)
		empty = empty && g->list[queue->own[LENGTH]][c].first == NULL;
	if (empty)
		g->waiting &= ~(UINT64_C(1) << queue->own[LENGTH]);
}

static void dequeue(void *state, struct hal_policy_partition *part,
		    struct hal_policy_queue *queue, enum hal_policy_why why)
{
	(void)state, (void)part, (void)why;
	if (hal_policy_shared(queue->own) != NULL)
		remove_queue(hal_policy_shared(queue->own), queue);
}

/* Return the tokens of queue: its initial tokens, and as many again for each time its own
 * length has passed since it became runnable. */
static uint64_t tokens(const struct hal_policy_queue *queue, uint64_t now_ns)
{
	uint64_t each = initial_tokens[queue->own[CLASS]];

	return each + (each * (now_ns - queue->runnable_ns) >> queue->own[LENGTH]);
}

/* Return the queue of that length that has the most tokens; NULL if none is runnable. */
static struct hal_policy_queue *most_tokens_of(const struct group *g, uint64_t length,
					       uint64_t now_ns)
{
	struct hal_policy_queue *best = NULL;

	for (size_t c = CLASSES; c-- > 0;) {
		struct hal_policy_queue *q = g->list[length][c].first;

		if (q != NULL &&
		    (best == NULL || tokens(q, now_ns) > tokens(best, now_ns)))
			best = q;
	}
	return best;
}

/* Return the highest power of three that the tokens of any queue of g reach. */
static uint64_t level_of(const struct group *g, uint64_t now_ns)
{
	uint64_t most = 1, level = 1;

	for (uint64_t bits = g->waiting; bits != 0; bits &= bits - 1) {
		const struct hal_policy_queue *q =
			most_tokens_of(g, (uint64_t)__builtin_ctzll(bits), now_ns);

		if (tokens(q, now_ns) > most)
			most = tokens(q, now_ns);
	}
	while (level <= most / 3)
		level *= 3;
	return level;
}

/* Return the shortest queue whose tokens reach the level; of equal lengths, the one with
 * the most tokens.  Return NULL if g has no runnable queue. */
static struct hal_policy_queue *shortest_at_level(const struct group *g, uint64_t now_ns)
{
	uint64_t level = level_of(g, now_ns);

	for (uint64_t bits = g->waiting; bits != 0; bits &= bits - 1) {
		struct hal_policy_queue *q =
			most_tokens_of(g, (uint64_t)__builtin_ctzll(bits), now_ns);

		if (tokens(q, now_ns) >= level)
			return q;
	}
	return NULL;
}

static struct hal_policy_queue *pick(void *state, struct hal_policy_partition *part,
				     uint64_t now_ns, struct hal_policy_order *order)
{
	struct shared *s = hal_policy_shared(part->own);
	struct hal_policy_queue *queue = NULL;

	(void)state, (void)order;
	for (int i = 0; s != NULL && queue == NULL && i < GROUPS; i++)
		queue = shortest_at_level(&s->group[i], now_ns);
	if (queue != NULL)
		remove_queue(s, queue);
	return queue;
}

extern const struct hal_policy hal_policy_prema;
const struct hal_policy hal_policy_prema = {
	.size = sizeof(struct hal_policy),
	.abi = HAL_POLICY_ABI,
	.name = "prema",
	.summary = "shortest first among the queues with the most tokens",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.flags = HAL_POLICY_EXPECTS,
	.create = create,
	.destroy = free,
	.attach = attach,
	.detach = detach,
	.enqueue = enqueue,
	.dequeue = dequeue,
	.pick = pick,
};
