/* SPDX-License-Identifier: Apache-2.0 */
/*
 * laxity: the least time to spare first; what cannot be in time any more, after the
 * others.
 *
 * Least laxity first (Mok 1983) with the admission of LAX (Yeh, Sinclair, Beckmann,
 * Rogers 2021): the deadline less what the rest of the submission is expected to run says
 * who is next; when its turn comes it is admitted if it can still be in time, else it
 * goes behind all that can, in order of submission with what has no deadline.  LAX
 * refuses at the submission, and knows the rest of a job from the device's counters; here
 * it runs in the end (a queue's points are reached in their order, so that none can be
 * left out, and hal_submit asks nobody), what is expected is learned from the queue's
 * commands, and hal_queue_get_stats counts the miss.  What is behind a late one in its
 * queue waits with it.
 *
 * Good under overload: what is late makes nobody else late (under edf it does).  Bad
 * where lengths differ much and all could be met: a long command goes before a short one
 * of an earlier deadline, which is then late (under edf it is not); and where commands do
 * not run as long as those before them.
 */
#include <errno.h>
#include <stdlib.h>

#include <hal/policy.h>

/* Keys: the last moment at which it can start to be in time; or behind all of those. */
#define LATE (UINT64_C(1) << 63)

/* hal_policy_partition.own: when what the device has is expected to end; what the last of
 * it is expected to run */
enum { END, LAST };

static const struct hal_option_def options[] = {
	{"laxity_unknown_us", HAL_OPTION_INT, 1, 10000000, NULL, "1000",
	 "laxity: what a command is taken to run while none of its queue has ended"},
};

static int create(const struct hal_host *host, const struct hal_bk_config *cfg,
		  const struct hal_policy_host *device, void **state)
{
	uint64_t *unknown_ns = malloc(sizeof(*unknown_ns));

	(void)device;
	if (unknown_ns == NULL)
		return host->fail(ENOMEM, "laxity: no memory");
	*unknown_ns = (uint64_t)host->option_int(cfg, "laxity_unknown_us") * 1000;
	*state = unknown_ns;
	return 0;
}

static uint64_t known(const void *state, uint64_t ns)
{
	const uint64_t *unknown_ns = state;

	return ns != HAL_POLICY_NEVER ? ns : *unknown_ns;
}

static uint64_t key(void *state, struct hal_policy_partition *part,
		    struct hal_policy_queue *queue, uint64_t now_ns)
{
	uint64_t rest_ns = known(state, queue->head.rest_ns);
	uint64_t deadline_ns = queue->head.deadline_ns;

	(void)part, (void)now_ns;
	if (deadline_ns >= LATE)
		return hal_bk_after(LATE, queue->head.submit_ns);
	return deadline_ns > rest_ns ? deadline_ns - rest_ns : 0;
}

static uint64_t turn(void *state, struct hal_policy_partition *part,
		     struct hal_policy_queue *queue, uint64_t latest_ns, uint64_t now_ns)
{
	uint64_t start_ns = now_ns;
	uint64_t most_ns = hal_bk_after(now_ns, part->running * part->own[LAST]);

	if (part->running != 0 && part->own[END] > now_ns)
		start_ns = part->own[END];
	/* No later than what is there can take: errors do not add up. */
	if (start_ns > most_ns)
		start_ns = most_ns;
	if (latest_ns < LATE &&
	    hal_bk_after(start_ns, known(state, queue->head.rest_ns)) >
		    queue->head.deadline_ns)
		return hal_bk_after(LATE, queue->head.submit_ns);
	part->own[LAST] = known(state, queue->head.expected_ns);
	part->own[END] = hal_bk_after(start_ns, part->own[LAST]);
	return 0;
}

extern const struct hal_policy hal_policy_laxity;
const struct hal_policy hal_policy_laxity = {
	.size = sizeof(struct hal_policy),
	.abi = HAL_POLICY_ABI,
	.name = "laxity",
	.summary = "least time to spare first, what is late behind",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.flags = HAL_POLICY_EXPECTS,
	.create = create,
	.destroy = free,
	.key = key,
	.turn = turn,
};
