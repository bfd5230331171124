/* SPDX-License-Identifier: Apache-2.0 */
/*
 * laxity: least laxity first; work that would miss its deadline comes last.
 *
 * Promise: the laxity of a queue is the deadline of its next command, minus the expected
 * run time of the rest of that submission, minus the current time.  Serve the queue with
 * the least laxity.  Before serving it, check whether it can still meet its deadline.  If
 * it cannot, move it behind all queues that can.  Late work and work without a deadline
 * share that place, in order of submission.
 * Queues: all alike, within their service class.
 * Options: laxity_unknown_us.
 *
 * Follows least laxity first (Mok, 1983) with the admission test of LAX (Yeh, Sinclair,
 * Beckmann, Rogers, "Deadline-Aware Offloading for High-Throughput Accelerators", 2021).
 * Differences: LAX rejects late work at submission, and reads the rest of a job from
 * device counters.  Here late work still runs, because a queue's timeline points are
 * reached in order and hal_submit does not consult the policy.  Expected run times are
 * learned from the queue's commands or come from the profile.  hal_queue_get_stats counts
 * missed deadlines.  Commands behind late work in the same queue wait with it.
 *
 * Good under overload: late work makes no other work late, as it does under edf.  Bad
 * where run times differ much and all deadlines could be met: a long command goes before
 * a short one with an earlier deadline, which then misses it (under edf it does not).
 * Bad also where a queue's commands do not run as long as its earlier ones.
 */
#include <errno.h>
#include <stdlib.h>

#include <hal/policy.h>

/* A key below LATE is the latest device time at which the submission can start and meet
 * its deadline.  Late work and work without a deadline have keys of LATE and above. */
#define LATE (UINT64_C(1) << 63)

/* Indices into own[] of a partition: the device time at which its in-flight commands are
 * expected to complete, and the expected run time of the last one served. */
enum { BUSY_UNTIL, LAST_EXPECTED };

static const struct hal_option_def options[] = {
	{"laxity_unknown_us", HAL_OPTION_INT, 1, 10000000, NULL, "1000",
	 "laxity: assumed run time of a command, in us, until its queue has completed "
	 "one"},
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

/* Return expected_ns, or the assumed run time if it is not known. */
static uint64_t expected_or_assumed(const void *state, uint64_t expected_ns)
{
	const uint64_t *unknown_ns = state;

	return expected_ns != HAL_POLICY_NEVER ? expected_ns : *unknown_ns;
}

static uint64_t key(void *state, struct hal_policy_partition *part,
		    struct hal_policy_queue *queue, uint64_t now_ns)
{
	uint64_t rest_ns = expected_or_assumed(state, queue->head.rest_ns);
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
	uint64_t start_max_ns =
		hal_bk_after(now_ns, part->running * part->own[LAST_EXPECTED]);

	if (part->running != 0 && part->own[BUSY_UNTIL] > now_ns)
		start_ns = part->own[BUSY_UNTIL];
	/* BUSY_UNTIL adds up the errors of expected run times.  Bound it by the number of
	 * in-flight commands times the last expected run time. */
	if (start_ns > start_max_ns)
		start_ns = start_max_ns;
	if (latest_ns < LATE &&
	    hal_bk_after(start_ns, expected_or_assumed(state, queue->head.rest_ns)) >
		    queue->head.deadline_ns)
		return hal_bk_after(LATE, queue->head.submit_ns);
	part->own[LAST_EXPECTED] = expected_or_assumed(state, queue->head.expected_ns);
	part->own[BUSY_UNTIL] = hal_bk_after(start_ns, part->own[LAST_EXPECTED]);
	return 0;
}

extern const struct hal_policy hal_policy_laxity;
const struct hal_policy hal_policy_laxity = {
	.size = sizeof(struct hal_policy),
	.abi = HAL_POLICY_ABI,
	.name = "laxity",
	.summary = "least laxity first, work that would be late last",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.flags = HAL_POLICY_EXPECTS,
	.create = create,
	.destroy = free,
	.key = key,
	.turn = turn,
};
