/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_scale - what one thing costs when there are many, in instructions.
 *
 *   bench_scale wait [N]      one hal_wait for N points (10,000), one on each of N
 *                             queues with a launch each, that end in the order of the
 *                             points or in the other one; less what the launches cost
 *                             when the last is waited for alone.  The dearer order, a
 *                             point
 *   bench_scale waiters [N]   N queues (10,000) wait in a submission for values of one
 *                             timeline, in descending or in random order; the host then
 *                             signals each value.  Less what the same costs when all
 *                             are reached before.  The dearer order, a waiter: put in
 *                             and told
 *   bench_scale place [N]     N partitions (600) of one unit on a device of 64 x 64, of
 *                             128 x 128 where N is more than that has; as
 *                             a note, every other one destroyed and created again
 *   bench_scale queues [N]    hal_submit and hal_wait of a launch on each of N queues
 *                             (10,000) in turn; as a note, of as many on one queue
 *   bench_scale buffers [N]   N buffers (10,000) created, then destroyed, the oldest
 *                             first: a buffer
 *   bench_scale graves [N]    a suspended queue has work in it and N buffers (10,000)
 *                             have been destroyed: hal_submit and hal_wait of a launch
 *                             on another queue; as notes, the same before that, and
 *                             what creating and destroying a buffer took
 *   bench_scale evict [N]     hal_submit and hal_wait of N fills (1,000), each of a
 *                             buffer that is with the host, so that another goes and it
 *                             comes, on a device whose memory is the host's; less what
 *                             they cost when the buffers are there
 *
 * This program counts nothing itself; run it by
 *
 *   tools/figures/count_instructions bench_scale MODE [N]
 *
 * which says how the lines are read that this prints.  The loops here are counted with
 * the calls, some ten instructions each time round.  Virtual clock: one thread does
 * everything.  Without valgrind it prints nanoseconds of each part, for orientation only.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <valgrind/callgrind.h>

#include <hal/ext/memory.h>

#include "bench.h"

static uint64_t part_start;

static void part_begin(void)
{
	CALLGRIND_START_INSTRUMENTATION;
	CALLGRIND_ZERO_STATS;
	part_start = bench_now();
}

static void part_end(const char *name, unsigned int count)
{
	uint64_t ns = bench_now() - part_start;

	CALLGRIND_STOP_INSTRUMENTATION;
	CALLGRIND_DUMP_STATS_AT(name);
	if (RUNNING_ON_VALGRIND == 0)
		printf("nanoseconds.%s %.0f\n", name, (double)ns / count);
}

static int open_queues(struct bench *b, unsigned int n)
{
	return bench_open(b, "ref?clock=virtual", NULL, 1) || bench_add_queues(b, n, 0);
}

/* ---- wait ------------------------------------------------------------------------- */

/* Order in which the points are given to hal_wait: as their work ends. */
static int submit_all(struct bench *b, struct hal_point *points, int reversed)
{
	unsigned int n = b->queue_count;

	for (unsigned int i = 0; i < n; i++)
		if (hal_submit(b->queues[i], &b->desc,
			       &points[reversed ? n - 1 - i : i]) != 0)
			return bench_die("hal_submit");
	return 0;
}

static int wait_for(const struct hal_point *points, unsigned int count)
{
	if (hal_wait(points, count, 0, HAL_FOREVER) != 0)
		return bench_die("hal_wait");
	return 0;
}

/* The last, then whatever a schedule of another order has left, one by one. */
static int wait_last(struct hal_point *points, unsigned int n)
{
	unsigned int open = 0;

	part_begin();
	if (wait_for(&points[n - 1], 1) != 0)
		return TOOL_FAILED;
	CALLGRIND_STOP_INSTRUMENTATION;
	for (unsigned int i = 0; i < n; i++)
		if (hal_timeline_get_value(points[i].timeline, NULL) < points[i].value)
			points[open++] = points[i];
	if (open > 0) {
		CALLGRIND_START_INSTRUMENTATION;
		for (unsigned int i = 0; i < open; i++)
			if (wait_for(&points[i], 1) != 0)
				return TOOL_FAILED;
	}
	part_end("last", n);
	return 0;
}

static int wait_all(struct bench *b, struct hal_point *points, const char *part)
{
	part_begin();
	if (wait_for(points, b->queue_count) != 0)
		return TOOL_FAILED;
	part_end(part, b->queue_count);
	printf("figure_is hal.wait.%u.instructions_per_point %u %s -last\n",
	       b->queue_count, b->queue_count, part);
	return 0;
}

static int bench_wait(unsigned int n)
{
	struct hal_point *points;
	struct bench b;
	int err;

	if (open_queues(&b, n) != 0)
		return TOOL_FAILED;
	points = calloc(n, sizeof(*points));
	if (points == NULL)
		return TOOL_FAILED;
	/* The first time round for what happens only once. */
	err = submit_all(&b, points, 0) || wait_for(points, n) ||
	      submit_all(&b, points, 0) || wait_last(points, n) ||
	      submit_all(&b, points, 0) || wait_all(&b, points, "in_order") ||
	      submit_all(&b, points, 1) || wait_all(&b, points, "reversed");
	free(points);
	return err || bench_close(&b);
}

/* ---- waiters ---------------------------------------------------------------------- */

enum order { DESCENDING, RANDOM };

/* 1 .. n in that order, the same one each time. */
static void order_values(uint64_t *values, unsigned int n, enum order order)
{
	uint64_t random = 88172645463325252u;

	for (unsigned int i = 0; i < n; i++)
		values[i] = n - i;
	for (unsigned int i = n; order == RANDOM && i > 1; i--) {
		uint64_t *a = &values[i - 1], *b, t;

		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		b = &values[random % i];
		t = *a;
		*a = *b;
		*b = t;
	}
}

struct waiters {
	struct bench b;
	uint64_t *values;         /* that queue i waits for */
	struct hal_point *points; /* of the work that waits for value i + 1 */
};

static int signal_values(struct waiters *w, struct hal_timeline *line, uint64_t from)
{
	for (uint64_t v = 1; v <= w->b.queue_count; v++)
		if (hal_timeline_signal(line, from + v) != 0)
			return bench_die("hal_timeline_signal");
	return 0;
}

/* from: where the timeline stands when the work is submitted. */
static int waiters_part(struct waiters *w, enum order order, uint64_t from,
			uint64_t deadline_ns, const char *part)
{
	struct hal_submit_desc desc = HAL_INIT(hal_submit_desc);
	struct hal_cmd nop = hal_cmd_of(HAL_OP_NOP, 0);
	unsigned int n = w->b.queue_count;
	struct hal_point wait = {NULL, 0};

	if (hal_timeline_create(w->b.dev, &wait.timeline) != 0 ||
	    (from > 0 && hal_timeline_signal(wait.timeline, from) != 0))
		return bench_die("a timeline");
	desc.cmds = &nop;
	desc.cmd_count = 1;
	desc.waits = &wait;
	desc.wait_count = 1;
	desc.deadline_ns = deadline_ns;
	order_values(w->values, n, order);
	part_begin();
	for (unsigned int i = 0; i < n; i++) {
		wait.value = w->values[i];
		if (hal_submit(w->b.queues[i], &desc, &w->points[wait.value - 1]) != 0)
			return bench_die("hal_submit");
	}
	if (hal_device_poll(w->b.dev, 0) < 0)
		return bench_die("hal_device_poll");
	if (signal_values(w, wait.timeline, from) != 0)
		return TOOL_FAILED;
	for (unsigned int i = 0; i < n; i++)
		if (wait_for(&w->points[i], 1) != 0)
			return TOOL_FAILED;
	part_end(part, n);
	if (hal_timeline_destroy(wait.timeline) != 0)
		return bench_die("hal_timeline_destroy");
	return 0;
}

static int bench_waiters(unsigned int n)
{
	struct waiters w;
	int err;

	if (open_queues(&w.b, n) != 0)
		return TOOL_FAILED;
	w.values = calloc(n, sizeof(*w.values));
	w.points = calloc(n, sizeof(*w.points));
	if (w.values == NULL || w.points == NULL) {
		free(w.values);
		free(w.points);
		return TOOL_FAILED;
	}
	err = waiters_part(&w, RANDOM, n, 0, "warm") ||
	      waiters_part(&w, RANDOM, n, 0, "reached_random") ||
	      waiters_part(&w, RANDOM, 0, 0, "random") ||
	      waiters_part(&w, DESCENDING, n, 0, "reached_descending") ||
	      waiters_part(&w, DESCENDING, 0, 0, "descending") ||
	      waiters_part(&w, RANDOM, n, UINT32_MAX, "reached_urgent") ||
	      waiters_part(&w, RANDOM, 0, UINT32_MAX, "urgent");
	free(w.values);
	free(w.points);
	printf("figure_is hal.waiters.%u.instructions %u random -reached_random\n", n, n);
	printf("figure_is hal.waiters.%u.instructions %u descending "
	       "-reached_descending\n",
	       n, n);
	printf("figure_is hal.waiters.%u.deadline.instructions %u urgent "
	       "-reached_urgent\n",
	       n, n);
	return err || bench_close(&w.b);
}

/* ---- place ------------------------------------------------------------------------ */

static int create_parts(struct hal_device *dev, struct hal_partition **parts,
			unsigned int n, unsigned int step)
{
	struct hal_partition_desc desc = HAL_INIT(hal_partition_desc);

	desc.units_floor = 1;
	desc.memory_bytes = 65536;
	for (unsigned int i = 0; i < n; i += step)
		if (hal_partition_create(dev, &desc, &parts[i]) != 0)
			return bench_die("hal_partition_create");
	return 0;
}

static int destroy_parts(struct hal_partition **parts, unsigned int n, unsigned int step)
{
	for (unsigned int i = 0; i < n; i += step)
		if (hal_partition_destroy(parts[i]) != 0)
			return bench_die("hal_partition_destroy");
	return 0;
}

static int bench_place(unsigned int n)
{
	const char *target = n <= 4096
				     ? "ref?clock=virtual&units=4096&rows=64&memory=1G"
				     : "ref?clock=virtual&units=16384&rows=128&memory=1G";
	struct hal_partition **parts;
	struct hal_device *dev;

	if (hal_open(target, NULL, &dev) != 0)
		return bench_die("hal_open");
	parts = calloc(n, sizeof(struct hal_partition *));
	if (parts == NULL)
		return TOOL_FAILED;
	part_begin();
	if (create_parts(dev, parts, n, 1) != 0)
		return TOOL_FAILED;
	part_end("place", n);
	if (destroy_parts(parts, n, 2) != 0)
		return TOOL_FAILED;
	part_begin();
	if (create_parts(dev, parts, n, 2) != 0)
		return TOOL_FAILED;
	part_end("again", (n + 1) / 2);
	printf("figure_is hal.place.%u.instructions_per_partition %u place\n", n, n);
	printf("note_is into_gaps.instructions_per_partition %u again\n", (n + 1) / 2);
	if (destroy_parts(parts, n, 1) != 0)
		return TOOL_FAILED;
	free(parts);
	return hal_close(dev) != 0 ? bench_die("hal_close") : 0;
}

/* ---- queues ----------------------------------------------------------------------- */

/* count launches, each waited for before the next, on the first queues in turn. */
static int submit_wait(struct bench *b, unsigned int queues, unsigned int count)
{
	for (unsigned int i = 0, q = 0; i < count; i++) {
		struct hal_point done;

		if (hal_submit(b->queues[q], &b->desc, &done) != 0)
			return bench_die("hal_submit");
		if (wait_for(&done, 1) != 0)
			return TOOL_FAILED;
		if (++q == queues)
			q = 0;
	}
	return 0;
}

static int bench_queues(unsigned int n)
{
	struct bench b;

	if (open_queues(&b, n) != 0 || submit_wait(&b, n, n) != 0)
		return TOOL_FAILED;
	part_begin();
	if (submit_wait(&b, n, n) != 0)
		return TOOL_FAILED;
	part_end("each", n);
	part_begin();
	if (submit_wait(&b, 1, n) != 0)
		return TOOL_FAILED;
	part_end("one", n);
	printf("figure_is hal.queues.%u.submit_wait.instructions %u each\n", n, n);
	printf("note_is one_queue.submit_wait.instructions %u one\n", n);
	return bench_close(&b);
}

/* ---- buffers ---------------------------------------------------------------------- */

static int come_and_go(struct bench *b, struct hal_buffer **bufs, unsigned int n)
{
	struct hal_buffer_desc desc = HAL_INIT(hal_buffer_desc);

	desc.bytes = 64;
	part_begin();
	for (unsigned int i = 0; i < n; i++)
		if (hal_buffer_create(b->part, &desc, &bufs[i]) != 0)
			return bench_die("hal_buffer_create");
	for (unsigned int i = 0; i < n; i++)
		if (hal_buffer_destroy(bufs[i]) != 0)
			return bench_die("hal_buffer_destroy");
	part_end("all", n);
	printf("figure_is hal.buffers.%u.instructions %u all\n", n, n);
	return 0;
}

static int bench_buffers(unsigned int n)
{
	struct hal_buffer **bufs;
	struct bench b;
	int err;

	if (bench_open(&b, "ref?clock=virtual&memory=1G", NULL, 1) != 0)
		return TOOL_FAILED;
	bufs = calloc(n, sizeof(struct hal_buffer *));
	err = bufs != NULL ? come_and_go(&b, bufs, n) : TOOL_FAILED;
	free(bufs);
	return err != 0 ? err : bench_close(&b);
}

/* ---- graves ----------------------------------------------------------------------- */

#define GRAVES_COMMANDS 64u

static int destroy_buffers(struct bench *b, unsigned int n)
{
	struct hal_buffer_desc desc = HAL_INIT(hal_buffer_desc);
	struct hal_buffer *buf;

	desc.bytes = 64;
	part_begin();
	for (unsigned int i = 0; i < n; i++) {
		if (hal_buffer_create(b->part, &desc, &buf) != 0)
			return bench_die("hal_buffer_create");
		if (hal_buffer_destroy(buf) != 0)
			return bench_die("hal_buffer_destroy");
	}
	part_end("buffers", n);
	return 0;
}

static int bench_graves(unsigned int n)
{
	struct hal_point quiet, held;
	struct bench b;

	if (bench_open(&b, "ref?clock=virtual&memory=1G", NULL, 1) != 0 ||
	    bench_add_queues(&b, 2, 0) != 0 ||
	    submit_wait(&b, 2, 2 * GRAVES_COMMANDS) != 0)
		return TOOL_FAILED;
	part_begin();
	if (submit_wait(&b, 1, GRAVES_COMMANDS) != 0)
		return TOOL_FAILED;
	part_end("before", GRAVES_COMMANDS);
	if (hal_queue_suspend(b.queues[1], HAL_SUSPEND_DRAIN, &quiet) != 0 ||
	    wait_for(&quiet, 1) != 0 || hal_submit(b.queues[1], &b.desc, &held) != 0)
		return bench_die("suspending a queue");
	if (destroy_buffers(&b, n) != 0 || submit_wait(&b, 1, 1) != 0)
		return TOOL_FAILED;
	part_begin();
	if (submit_wait(&b, 1, GRAVES_COMMANDS) != 0)
		return TOOL_FAILED;
	part_end("graves", GRAVES_COMMANDS);
	printf("figure_is hal.graves.%u.instructions %u graves\n", n, GRAVES_COMMANDS);
	printf("note_is no_graves.instructions %u before\n", GRAVES_COMMANDS);
	printf("note_is buffer_create_destroy.instructions %u buffers\n", n);
	if (hal_queue_resume(b.queues[1]) != 0 || wait_for(&held, 1) != 0)
		return bench_die("resuming it");
	return bench_close(&b);
}

/* ---- evict ------------------------------------------------------------------------ */

enum { EVICT_BUFFERS = 8, EVICT_SMALL = 4 << 10, EVICT_LARGE = 64 << 10 };

static int fill_in_turn(struct hal_queue *q, struct hal_buffer *const *b, unsigned int n)
{
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct hal_cmd cmd;
	struct hal_point done;

	d.cmds = &cmd;
	d.cmd_count = 1;
	for (unsigned int i = 0; i < n; i++) {
		cmd = hal_cmd_fill(b[i % EVICT_BUFFERS], 0, 64, i);
		if (hal_submit(q, &d, &done) != 0 || wait_for(&done, 1) != 0)
			return bench_die("a fill");
	}
	return 0;
}

/* n fills of buffers of so many bytes, of which so many are there at a time. */
static int evict_part(const char *part, uint64_t bytes, unsigned int there,
		      unsigned int n)
{
	struct hal_partition_memory_info i = HAL_INIT(hal_partition_memory_info);
	struct hal_partition_desc pd = HAL_INIT(hal_partition_desc);
	struct hal_buffer_desc bd = HAL_INIT(hal_buffer_desc);
	struct hal_queue_desc qd = HAL_INIT(hal_queue_desc);
	struct hal_buffer *b[EVICT_BUFFERS] = {NULL};
	struct hal_partition *home = NULL;
	struct hal_queue *q = NULL;
	struct hal_device *dev;
	uint64_t before;
	int err;

	if (hal_open("ref?clock=virtual&memory=4M&hal.oversubscribe=yes", NULL, &dev) !=
	    0)
		return bench_die("hal_open");
	pd.units_floor = 1;
	pd.memory_bytes = there * bytes;
	pd.limits = &(struct hal_partition_limits){
		.size = sizeof(struct hal_partition_limits),
		.memory_limit = EVICT_BUFFERS * bytes};
	bd.bytes = bytes;
	err = hal_partition_create(dev, &pd, &home) != 0 ||
	      hal_queue_create(home, &qd, &q) != 0;
	for (unsigned int k = 0; !err && k < EVICT_BUFFERS; k++)
		err = hal_buffer_create(home, &bd, &b[k]) != 0;
	/* The first time round for what happens only once. */
	err = err || fill_in_turn(q, b, EVICT_BUFFERS) != 0 ||
	      hal_partition_get_memory_info(home, &i) != 0;
	before = i.fetches;
	if (!err) {
		part_begin();
		err = fill_in_turn(q, b, n);
		part_end(part, n);
	}
	err = err || hal_partition_get_memory_info(home, &i) != 0 ||
	      i.fetches - before != (there < EVICT_BUFFERS ? n : 0);
	for (unsigned int k = 0; k < EVICT_BUFFERS; k++)
		(void)hal_buffer_destroy(b[k]);
	(void)hal_queue_destroy(q);
	if (hal_partition_destroy(home) != 0 || hal_close(dev) != 0 || err)
		return bench_die(part);
	return 0;
}

static int bench_evict(unsigned int n)
{
	if (evict_part("here", EVICT_SMALL, EVICT_BUFFERS, n) != 0 ||
	    evict_part("small", EVICT_SMALL, EVICT_BUFFERS / 2, n) != 0 ||
	    evict_part("large", EVICT_LARGE, EVICT_BUFFERS / 2, n) != 0)
		return TOOL_FAILED;
	printf("figure_is evict.instructions %u small -here\n", n);
	printf("figure_is evict.instructions_per_kib %u large -small\n",
	       n * ((EVICT_LARGE - EVICT_SMALL) >> 10));
	return 0;
}

static const struct mode {
	const char *name;
	int (*run)(unsigned int n);
	unsigned int n;
} modes[] = {
	{"wait", bench_wait, 10000},       {"waiters", bench_waiters, 10000},
	{"place", bench_place, 600},       {"queues", bench_queues, 10000},
	{"buffers", bench_buffers, 10000}, {"graves", bench_graves, 10000},
	{"evict", bench_evict, 1000},
};

int main(int argc, char **argv)
{
	unsigned int n = argc > 2 ? (unsigned int)strtoul(argv[2], NULL, 10) : 0;

	for (size_t i = 0; argc > 1 && i < sizeof(modes) / sizeof(modes[0]); i++)
		if (strcmp(argv[1], modes[i].name) == 0) {
			bench_within(RUNNING_ON_VALGRIND ? 900 : 20);
			return tool_end(modes[i].run(n > 0 ? n : modes[i].n));
		}
	fprintf(stderr,
		"usage: bench_scale wait|waiters|place|queues|graves|evict [N]\n");
	return 2;
}
