/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_policy - what a decision of a policy costs, in instructions.
 *
 *   bench_policy decision [N [POLICY]]
 *                               N queues (10,000) of one partition, all with work; a long
 *                               command of one more keeps the device until all is in.
 *                               Then one after the other is picked, until nothing is
 *                               left.  For each policy, or that one; with keys in random
 *                               order, and all the same
 *
 * A decision is the host's policy_enqueue and policy_pick of one command, with all that
 * they call; run it by
 *
 *   count_instructions --toggle-collect=policy_enqueue --toggle-collect=policy_pick \
 *           bench_policy decision [N]
 *
 * The figure of a policy is the dearer order, that without a name the dearest of fifo,
 * priority, wfq and edf; the others are notes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <valgrind/callgrind.h>

#include "bench.h"

enum order { RANDOM, SAME };

/* So that nobody waits for long. */
#define LIMITS                                                                           \
	"policy.static_slots=64", "policy.static_slot_us=1",                             \
		"policy.quota_window_us=10", "policy.token_rate=1000000",                \
		"policy.tgs_period_us=1"
/* static has a slot for each queue; one is that of the long command. */
#define STATIC_MAX 63u
static const char *const orders[] = {"random", "same"};

static uint64_t random_state = 88172645463325252u;

static uint32_t below(uint32_t n)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (uint32_t)(random_state >> 16) % n;
}

static void shuffle(struct hal_queue **queues, unsigned int n)
{
	for (unsigned int i = n; i > 1; i--) {
		unsigned int k = below(i);
		struct hal_queue *t = queues[i - 1];

		queues[i - 1] = queues[k];
		queues[k] = t;
	}
}

/* The queue for the long command is the last. */
static int add_queues(struct bench *b, unsigned int n, enum order order)
{
	struct hal_queue_desc qd = HAL_INIT(hal_queue_desc);

	b->queues = calloc(n + 1, sizeof(struct hal_queue *));
	if (b->queues == NULL)
		return TOOL_FAILED;
	for (; b->queue_count <= n; b->queue_count++) {
		qd.weight = order == RANDOM ? 1 + below(1000) : 1;
		if (hal_queue_create(b->part, &qd, &b->queues[b->queue_count]) != 0)
			return bench_die("hal_queue_create");
	}
	return 0;
}

/* rounds commands for each queue, in an order of its own each time; a nanosecond passes
 * between any two whose keys are to differ. */
static int submit_all(struct bench *b, unsigned int n, unsigned int rounds,
		      enum order order)
{
	struct hal_cmd fill = hal_cmd_fill(b->out, 0, 4, 0);
	struct hal_submit_desc desc = HAL_INIT(hal_submit_desc);

	desc.cmds = &fill;
	desc.cmd_count = 1;
	desc.flags = HAL_SUBMIT_PRIORITY;
	desc.deadline_ns = UINT64_C(1) << 40;
	for (unsigned int r = 0; r < rounds; r++) {
		if (order == RANDOM)
			shuffle(b->queues, n);
		for (unsigned int i = 0; i < n; i++) {
			if (order == RANDOM) {
				desc.priority = (int32_t)below(UINT32_C(1) << 30);
				desc.deadline_ns = 1 + below(UINT32_C(1) << 30);
				fill.fill.bytes = UINT64_C(4) * (1 + below(256));
			}
			if (hal_submit(b->queues[i], &desc, NULL) != 0)
				return bench_die("hal_submit");
			if (order == RANDOM && hal_device_poll(b->dev, 1) < 0)
				return bench_die("hal_device_poll");
		}
	}
	return 0;
}

static int decide(unsigned int n, size_t which, enum order order)
{
	const char *policy = bench_policies[which];
	/* Enough of them for a mean. */
	unsigned int rounds = n < 1000 ? 4000 / n : 4;
	char name[64], depth[64], part[64];
	const char *const options[] = {
		name,   depth, "hal.partition_inflight=1", "policy.timeout_ms=0",
		LIMITS, NULL};
	struct bench b;
	unsigned int slots = 16;

	while (slots < 2 * rounds)
		slots *= 2;
	(void)snprintf(name, sizeof(name), "policy.name=%s", policy);
	(void)snprintf(depth, sizeof(depth), "hal.queue_depth=%u", slots);
	if (bench_open(&b, "ref?clock=virtual&memory=1G", options,
		       UINT64_C(1000000000)) != 0 ||
	    add_queues(&b, n, order) != 0)
		return TOOL_FAILED;
	if (hal_submit(b.queues[n], &b.desc, NULL) != 0 || hal_device_poll(b.dev, 0) < 0)
		return bench_die("the long command");
	CALLGRIND_START_INSTRUMENTATION;
	CALLGRIND_ZERO_STATS;
	if (submit_all(&b, n, rounds, order) != 0)
		return TOOL_FAILED;
	if (hal_device_poll(b.dev, UINT64_MAX) < 0)
		return bench_die("hal_device_poll");
	(void)snprintf(part, sizeof(part), "%s_%s", policy, orders[order]);
	CALLGRIND_STOP_INSTRUMENTATION;
	CALLGRIND_DUMP_STATS_AT(part);
	if (which < BENCH_BASIC)
		printf("figure_is policy.decision.instructions.%u %u %s\n", n, n * rounds,
		       part);
	printf("figure_is policy.decision.instructions.%s.%u %u %s\n", policy, n,
	       n * rounds, part);
	printf("note_is %s.%s.instructions %u %s\n", policy, orders[order], n * rounds,
	       part);
	return bench_close(&b);
}

/* only: NULL, each. */
static int bench_decision(unsigned int n, const char *only)
{
	for (size_t i = 0; i < BENCH_POLICY_COUNT; i++) {
		if (only != NULL && strcmp(bench_policies[i], only) != 0)
			continue;
		if (n > STATIC_MAX && strcmp(bench_policies[i], "static") == 0)
			continue;
		if (decide(n, i, RANDOM) != 0 || decide(n, i, SAME) != 0)
			return TOOL_FAILED;
	}
	return 0;
}

int main(int argc, char **argv)
{
	unsigned int n = argc > 2 ? (unsigned int)strtoul(argv[2], NULL, 10) : 10000;

	if (argc < 2 || strcmp(argv[1], "decision") != 0 || n == 0) {
		fprintf(stderr, "usage: bench_policy decision [N [POLICY]]\n");
		return 2;
	}
	bench_within(RUNNING_ON_VALGRIND ? 1800 : 60);
	return tool_end(bench_decision(n, argc > 3 ? argv[3] : NULL));
}
