/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_submit - what one launch costs on the software device, in instructions.
 *
 *   bench_submit submit [N]       the calling thread inside hal_submit, engine awake
 *   bench_submit total [N]        submit to completion delivered, all threads; a batch of
 *                                 launches, then one hal_wait
 *   bench_submit submit_wait [N]  the same, each launch waited for before the next
 *   bench_submit queues [Q]       as submit, with Q queues open (10,000)
 *   bench_submit bytes [Q]        heap bytes and threads a queue; needs no valgrind
 *   bench_submit policies [N [POLICY...]]
 *                                 as total, under all policies or these, with defaults:
 *                                 figures hal.submit.policy.NAME.total_instructions of
 *                                 tools/figures/count_instructions
 *
 * Instructions are exact and the same on every run:
 *
 *   valgrind --tool=callgrind --instr-atstart=no --callgrind-out-file=OUT
 *            bench_submit MODE [N]
 *
 * Only the measured part is instrumented.  It ends in a dump of its own, OUT.1, whose
 * line "totals: T" is its number of instructions; what this program prints says by how
 * much to divide: instructions a launch = T / launches.  Add --toggle-collect=hal_submit
 * and, for total and submit_wait, --toggle-collect=hal_wait as well: they count these
 * functions with all they call, the kernel's function included, and not the loop of this
 * program around them.
 * The launch has two buffer arguments.  Virtual clock: one thread does everything, so
 * "all threads" is that one.  BENCH_CLOCK=real runs the same with the engine's own
 * thread; only submit and queues, with --toggle-collect, can be counted exactly then.
 *
 * Without valgrind the same runs print nanoseconds a launch: for orientation only.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <valgrind/callgrind.h>

#include "bench.h"

#define BATCH 8 /* launches that a queue holds with room to spare */

struct measured {
	unsigned long launches;
	uint64_t ns;
};

/* One batch on queue q; what of it is measured depends on the mode. */
static int batch(struct bench *b, struct hal_queue *q, int measure_wait, int wait_each)
{
	struct hal_point done = {NULL, 0};
	int err = 0;

	CALLGRIND_START_INSTRUMENTATION;
	for (int i = 0; i < BATCH && err == 0; i++) {
		err = hal_submit(q, &b->desc, &done);
		if (wait_each && err == 0)
			err = hal_wait(&done, 1, 0, HAL_FOREVER);
	}
	if (!measure_wait)
		CALLGRIND_STOP_INSTRUMENTATION;
	if (err == 0 && !wait_each)
		err = hal_wait(&done, 1, 0, HAL_FOREVER);
	CALLGRIND_STOP_INSTRUMENTATION;
	return err;
}

/* Warm up, then measure count launches, in the dump `part`. */
static int measure_part(struct bench *b, unsigned int count, int measure_wait,
			int wait_each, const char *part, struct measured *m)
{
	uint64_t start;

	/* What happens only once (binding the program, lazy symbols) is not measured. */
	if (batch(b, b->queues[0], measure_wait, wait_each) != 0 ||
	    batch(b, b->queues[b->queue_count - 1], measure_wait, wait_each) != 0)
		return bench_die("warming up");
	CALLGRIND_ZERO_STATS;
	start = bench_now();
	for (unsigned int i = 0; i < count; i += BATCH) {
		/* Not always the same queue: one that is in cache tells nothing. */
		struct hal_queue *q = b->queues[(i / BATCH * 7919u) % b->queue_count];

		if (batch(b, q, measure_wait, wait_each) != 0)
			return bench_die("launching");
		m->launches += BATCH;
	}
	m->ns = bench_now() - start;
	CALLGRIND_DUMP_STATS_AT(part);
	return 0;
}

static int measure(struct bench *b, unsigned int count, int measure_wait, int wait_each)
{
	struct measured m = {0, 0};

	if (measure_part(b, count, measure_wait, wait_each, "measured", &m) != 0)
		return TOOL_FAILED;
	printf("launches %lu\nqueues %u\n", m.launches, b->queue_count);
	if (RUNNING_ON_VALGRIND == 0)
		printf("nanoseconds_a_launch %.0f\n", (double)m.ns / (double)m.launches);
	return 0;
}

static unsigned int threads(void)
{
	DIR *dir = opendir("/proc/self/task");
	unsigned int n = 0;
	const struct dirent *e;

	if (dir == NULL)
		return 0;
	while ((e = readdir(dir)) != NULL)
		n += e->d_name[0] != '.';
	closedir(dir);
	return n;
}

static size_t heap(void)
{
	struct mallinfo2 m = mallinfo2();

	return m.uordblks + m.hblkhd;
}

static int bytes(struct bench *b, unsigned int count)
{
	unsigned int before_threads = threads();
	size_t before = heap();

	if (bench_add_queues(b, count, 0) != 0)
		return TOOL_FAILED;
	printf("queues %u\nbytes_a_queue %zu\nthreads_added %u\n", count,
	       (heap() - before - count * sizeof(struct hal_queue *)) / count,
	       threads() - before_threads);
	return 0;
}

static int submit_under(const char *policy, unsigned int count)
{
	struct measured m = {0, 0};
	char option[64];
	const char *const options[] = {option, NULL};
	struct bench b;

	(void)snprintf(option, sizeof(option), "policy.name=%s", policy);
	if (bench_open(&b, "ref?clock=virtual", options, 1) != 0 ||
	    bench_add_queues(&b, 1, 0) != 0 ||
	    measure_part(&b, count, 1, 0, policy, &m) != 0)
		return TOOL_FAILED;
	printf("figure_is hal.submit.policy.%s.total_instructions %lu %s\n", policy,
	       m.launches, policy);
	return bench_close(&b);
}

/* Submit under the policies named in only[0..only_count), or under all if that is 0. */
static int submit_policies(unsigned int count, char *const *only, int only_count)
{
	for (size_t i = 0; i < BENCH_POLICY_COUNT; i++) {
		const char *policy = bench_policies[i];
		int named = only_count == 0;

		for (int k = 0; k < only_count; k++)
			named |= strcmp(policy, only[k]) == 0;
		if (named && submit_under(policy, count) != 0)
			return TOOL_FAILED;
	}
	return 0;
}

/* Run mode on the open device of b. */
static int run(struct bench *b, const char *mode, unsigned int n)
{
	int wait_each = strcmp(mode, "submit_wait") == 0;
	int measure_wait = wait_each || strcmp(mode, "total") == 0;

	if (strcmp(mode, "bytes") == 0)
		return bytes(b, n > 0 ? n : 1000);
	if (strcmp(mode, "queues") == 0)
		return bench_add_queues(b, n > 0 ? n : 10000, 0) ||
		       measure(b, 1024, 0, 0);
	if (measure_wait || strcmp(mode, "submit") == 0)
		return bench_add_queues(b, 1, 0) ||
		       measure(b, n > 0 ? n : 1024, measure_wait, wait_each);
	fprintf(stderr,
		"usage: bench_submit submit|total|submit_wait|queues|bytes|policies "
		"[N]\n");
	return 2;
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	unsigned int n = argc > 2 ? (unsigned int)strtoul(argv[2], NULL, 10) : 0;
	const char *clock = getenv("BENCH_CLOCK");
	char target[64];
	struct bench b;
	int err;

	if (strcmp(mode, "policies") == 0)
		return tool_end(submit_policies(n > 0 ? n : 1024, argv + 3,
						argc > 3 ? argc - 3 : 0));
	snprintf(target, sizeof(target), "ref?clock=%s",
		 clock != NULL ? clock : "virtual");
	if (bench_open(&b, target, NULL, 1) != 0)
		return 1;
	err = run(&b, mode, n);
	if (bench_close(&b) != 0 && err == 0)
		err = TOOL_FAILED;
	return tool_end(err);
}
