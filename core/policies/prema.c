/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prema: who has waited longest for its length and priority; of those, the shortest.
 *
 * PREMA (Choi, Rhu 2020): a queue has 1, 3 or 9 tokens, by priority (below 0, 0, above)
 * or class,
 * and as many more for each of its lengths that it waits; of those with at least as many
 * as the highest of 1, 3, 9 that anybody has, the shortest is served.  There tokens are
 * handed out every period and lengths come from a model of the array; here both are
 * computed when somebody is picked, lengths are learned and rounded up to powers of two,
 * waiting counts from when the command could run, and nothing that runs is stopped.
 *
 * Good for the mean of latencies over lengths (ANTT) while nobody waits for ever: short
 * ones pass long ones, but only until those have waited for their length some times.  Bad
 * for the highest priority: what has waited long enough stands beside it, and before it
 * when it is shorter (priority never lets it wait).
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include <hal/policy.h>

enum { LENGTHS = 64, CLASSES = 3 };
/* .own[HAL_POLICY_SHARED] of a partition, and of its queues that were admitted: struct
 * shared. */
enum { CLASS = HAL_POLICY_SHARED + 1, LENGTH };

static const uint64_t tokens_of[CLASSES] = {1, 3, 9};

struct shared {
	struct hal_policy_shared common;
	uint64_t waiting; /* bit a length: one of the lists is not empty */
	/* Those of one class and length, in the order in which they came: the first has
	 * most tokens, so only those have to be looked at. */
	struct hal_policy_list list[LENGTHS][CLASSES];
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

static struct hal_policy_list *list_of(struct shared *s,
				       const struct hal_policy_queue *queue)
{
	return &s->list[queue->own[LENGTH]][queue->own[CLASS]];
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
	s->waiting |= UINT64_C(1) << queue->own[LENGTH];
	hal_policy_list_add(list_of(s, queue), queue);
}

static void take(struct shared *s, struct hal_policy_queue *queue)
{
	bool empty = true;

	hal_policy_list_take(list_of(s, queue), queue);
	for (size_t c = 0; c < CLASSES; c++)
		empty = empty && s->list[queue->own[LENGTH]][c].first == NULL;
	if (empty)
		s->waiting &= ~(UINT64_C(1) << queue->own[LENGTH]);
}

static void dequeue(void *state, struct hal_policy_partition *part,
		    struct hal_policy_queue *queue, enum hal_policy_why why)
{
	(void)state, (void)part, (void)why;
	if (hal_policy_shared(queue->own) != NULL)
		take(hal_policy_shared(queue->own), queue);
}

static uint64_t tokens(const struct hal_policy_queue *queue, uint64_t now_ns)
{
	uint64_t each = tokens_of[queue->own[CLASS]];

	return each + (each * (now_ns - queue->runnable_ns) >> queue->own[LENGTH]);
}

/* The shortest of those with at least so many; of equal lengths, who has most. */
static struct hal_policy_queue *shortest(struct shared *s, uint64_t now_ns,
					 uint64_t least)
{
	for (uint64_t length = 0; s->waiting >> length != 0; length++) {
		struct hal_policy_queue *best = NULL;

		for (size_t c = CLASSES; c-- > 0;) {
			struct hal_policy_queue *q = s->list[length][c].first;

			if (q != NULL && tokens(q, now_ns) >= least &&
			    (best == NULL || tokens(q, now_ns) > tokens(best, now_ns)))
				best = q;
		}
		if (best != NULL || length == LENGTHS - 1)
			return best;
	}
	return NULL;
}

static struct hal_policy_queue *pick(void *state, struct hal_policy_partition *part,
				     uint64_t now_ns, struct hal_policy_order *order)
{
	struct shared *s = hal_policy_shared(part->own);
	struct hal_policy_queue *queue = NULL;

	(void)state, (void)order;
	for (size_t c = s != NULL ? CLASSES : 0; queue == NULL && c-- > 0;)
		queue = shortest(s, now_ns, tokens_of[c]);
	if (queue != NULL)
		take(s, queue);
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
