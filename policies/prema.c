/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prema: who has waited longest for its length and priority; of those, the shortest.
 *
 * PREMA (Choi, Rhu 2020): a queue has 1, 3 or 9 tokens, by priority (below 0, 0, above;
 * best effort has 1), and as many more for each of its lengths that it waits.  The level
 * is the highest power of three that the tokens of any queue reach; of the queues that
 * reach it the shortest is served.  There the level ends at 9, tokens are handed out
 * every period, and lengths come from a model of the array.  Here the level has no end:
 * else a flood of short commands with 9 tokens keeps a longer one waiting for ever.  Both
 * are computed when a queue is picked, lengths are learned and rounded up to powers of
 * two, waiting counts from when the command could run, and nothing that runs is stopped.
 * Latency-critical queues are served before all others, by the same rule among
 * themselves.
 *
 * Good for the mean of latencies over lengths (ANTT) while no queue waits for ever: short
 * commands pass long ones, but only until those have waited for their length some times.
 * Bad for the highest priority: what has waited long enough stands beside it, and before
 * it when it is shorter (priority never lets it wait).
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include <hal/policy.h>

#include "common.h"

enum { LENGTHS = 64, CLASSES = 3 };
/* .own[HAL_POLICY_SHARED] of a partition, and of its queues that were admitted: struct
 * shared. */
enum { CLASS = HAL_POLICY_SHARED + 1, LENGTH, GROUP };

enum { URGENT, OTHERS, GROUPS };

static const uint64_t tokens_of[CLASSES] = {1, 3, 9};

/* Queues that are latency-critical, or those that are not. */
struct group {
	uint64_t waiting; /* bit a length: one of the lists is not empty */
	/* Those of one class and length, in the order in which they came: the first has
	 * most tokens, so only those have to be looked at. */
	struct hal_policy_list list[LENGTHS][CLASSES];
};

struct shared {
	struct hal_policy_shared common;
	struct group group[GROUPS];
};

struct prema {
	const struct hal_host *host;
	struct hal_policy_shared *all;
	uint64_t unknown_ns;
};

static const struct hal_option_def options[] = {
	{"prema_unknown_us", HAL_OPTION_INT, 1, 10000000, NULL, "1000",
	 "prema: what a command is taken to run while none of its queue has ended"},
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

/* Of a power of two that ns is not above: the exponent. */
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
	queue->own[GROUP] = hal_policy_rank(queue) == 0 ? URGENT : OTHERS;
	group_of(s, queue)->waiting |= UINT64_C(1) << queue->own[LENGTH];
	hal_policy_list_add(list_of(s, queue), queue);
}

static void take_tokens(struct shared *s, struct hal_policy_queue *queue)
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
		take_tokens(hal_policy_shared(queue->own), queue);
}

static uint64_t tokens(const struct hal_policy_queue *queue, uint64_t now_ns)
{
	uint64_t each = tokens_of[queue->own[CLASS]];

	return each + (each * (now_ns - queue->runnable_ns) >> queue->own[LENGTH]);
}

/* Return the queue of that length that has most tokens; NULL: none waits. */
static struct hal_policy_queue *first_of_length(const struct group *g, uint64_t length,
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

/* Return the highest power of three that the tokens of any queue reach. */
static uint64_t level_of(const struct group *g, uint64_t now_ns)
{
	uint64_t most = 1, level = 1;

	for (uint64_t bits = g->waiting; bits != 0; bits &= bits - 1) {
		const struct hal_policy_queue *q =
			first_of_length(g, (uint64_t)__builtin_ctzll(bits), now_ns);

		if (tokens(q, now_ns) > most)
			most = tokens(q, now_ns);
	}
	while (level <= most / 3)
		level *= 3;
	return level;
}

/* Return the shortest queue that reaches the level; of equal lengths, who has most. */
static struct hal_policy_queue *shortest(const struct group *g, uint64_t now_ns)
{
	uint64_t level = level_of(g, now_ns);

	for (uint64_t bits = g->waiting; bits != 0; bits &= bits - 1) {
		struct hal_policy_queue *q =
			first_of_length(g, (uint64_t)__builtin_ctzll(bits), now_ns);

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
		queue = shortest(&s->group[i], now_ns);
	if (queue != NULL)
		take_tokens(s, queue);
	return queue;
}

extern const struct hal_policy hal_policy_prema;
const struct hal_policy hal_policy_prema = {
	.size = sizeof(struct hal_policy),
	.abi = HAL_POLICY_ABI,
	.name = "prema",
	.summary = "tokens for waiting; of who has enough, the shortest",
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
