/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_shapes - what a command costs in each shape of work, in instructions.
 *
 *   bench_shapes submit [ROUNDS]   names the figures hal.submit.SHAPE.instructions: to be
 *                                  counted inside hal_submit alone
 *   bench_shapes total [ROUNDS]    hal.submit.SHAPE.total_instructions: inside hal_submit
 *                                  and hal_wait, until all of it has ended
 *
 * A round is a batch of submissions, then one hal_wait; 128 rounds unless told.  Shapes:
 *
 *   launch            eight launches with two buffers, as bench_submit: what the others
 *                     are compared with
 *   nop, copy, host   eight of these instead: a copy of 64 bytes, a callback of nothing
 *   of_8              one submission of eight launches
 *   waits_2_signal_1  eight submissions of one launch that waits for a point of the host,
 *                     long reached, and for the signal of the submission before it
 *   queues_4          eight launches on four queues in turn, then a wait for the four
 *   queues_40         forty, one on each of forty queues of the same partition
 *   priorities        as queues_4, the priority of each above that of the one before
 *   eagain            hal_submit on a queue that is full; submit only
 *
 * This program counts nothing itself; run it by
 *
 *   tools/figures/count_instructions --toggle-collect=hal_submit
 *           [--toggle-collect=hal_wait] bench_shapes MODE
 *
 * which says how the lines are read that this prints.  Virtual clock: one thread does
 * everything.  Without valgrind it prints nanoseconds a command, for orientation only.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <valgrind/callgrind.h>

#include "bench.h"

#define QUEUES_MAX   40
#define COMMANDS_MAX 8

struct run {
	struct bench b;
	const struct shape *shape;
	struct hal_cmd cmds[COMMANDS_MAX];
	struct hal_sequence *sequence;
	struct hal_timeline *host, *chain;
	struct hal_point waits[2], signal;
	struct hal_submit_desc desc;
};

struct shape {
	const char *name;
	int (*prepare)(struct run *r);
	unsigned int submissions; /* a batch */
	unsigned int commands;    /* a submission */
	unsigned int queues;
	int32_t priority_step;
};

static void call(void *user)
{
	(void)user;
}

/* ---- shapes: what one submission holds -------------------------------------------- */

static int prepare_launch(struct run *r)
{
	for (unsigned int i = 0; i < r->shape->commands; i++)
		r->cmds[i] = r->b.launch;
	return 0;
}

static int prepare_nop(struct run *r)
{
	r->cmds[0] = hal_cmd_of(HAL_OP_NOP, 0);
	return 0;
}

static int prepare_copy(struct run *r)
{
	r->cmds[0] = hal_cmd_copy(r->b.out, 0, r->b.in, 0, 64);
	return 0;
}

static int prepare_host(struct run *r)
{
	r->cmds[0] = hal_cmd_host(call, NULL);
	return 0;
}

static int prepare_points(struct run *r)
{
	if (hal_timeline_create(r->b.dev, &r->host) != 0 ||
	    hal_timeline_create(r->b.dev, &r->chain) != 0 ||
	    hal_timeline_signal(r->host, 1) != 0)
		return bench_die("timelines");
	r->waits[0] = (struct hal_point){r->host, 1};
	r->waits[1] = (struct hal_point){r->chain, 0};
	r->signal = (struct hal_point){r->chain, 1};
	r->desc.waits = r->waits;
	r->desc.wait_count = 2;
	r->desc.signals = &r->signal;
	r->desc.signal_count = 1;
	return prepare_launch(r);
}

/* Eight launches recorded once; each submission is one call. */
static int prepare_sequence(struct run *r)
{
	int err = prepare_launch(r);

	if (err == 0 && hal_sequence_create(r->b.part, &r->desc, &r->sequence) != 0)
		err = bench_die("hal_sequence_create");
	return err;
}

static const struct shape shapes[] = {
	{"launch", prepare_launch, 8, 1, 1, 0},
	{"nop", prepare_nop, 8, 1, 1, 0},
	{"copy", prepare_copy, 8, 1, 1, 0},
	{"host", prepare_host, 8, 1, 1, 0},
	{"of_8", prepare_launch, 1, 8, 1, 0},
	{"waits_2_signal_1", prepare_points, 8, 1, 1, 0},
	{"queues_4", prepare_launch, 8, 1, 4, 0},
	{"queues_40", prepare_launch, 40, 1, 40, 0},
	{"priorities", prepare_launch, 8, 1, 4, 1},
	{"recorded_8", prepare_sequence, 1, 8, 1, 0},
};
#define SHAPES (sizeof(shapes) / sizeof(shapes[0]))

/* ---- measuring -------------------------------------------------------------------- */

static int open_run(struct run *r, const struct shape *shape)
{
	struct hal_submit_desc desc = HAL_INIT(hal_submit_desc);
	/* A wait or a signal takes room in the queue, too. */
	static const char *const options[] = {"hal.queue_depth=64", NULL};

	memset(r, 0, sizeof(*r));
	r->shape = shape;
	r->desc = desc;
	r->desc.cmds = r->cmds;
	r->desc.cmd_count = shape->commands;
	return bench_open(&r->b, "ref?clock=virtual", options, 1) ||
	       bench_add_queues(&r->b, shape->queues, shape->priority_step) ||
	       shape->prepare(r);
}

static int close_run(struct run *r)
{
	if (r->chain != NULL &&
	    (hal_timeline_destroy(r->host) != 0 || hal_timeline_destroy(r->chain) != 0))
		return bench_die("hal_timeline_destroy");
	if (hal_sequence_destroy(r->sequence) != 0)
		return bench_die("hal_sequence_destroy");
	return bench_close(&r->b);
}

static int submit(struct run *r, struct hal_queue *q, struct hal_point *done)
{
	if (r->sequence != NULL)
		return hal_sequence_submit(q, r->sequence, NULL, done);
	return hal_submit(q, &r->desc, done);
}

static int batch(struct run *r)
{
	struct hal_point points[QUEUES_MAX];
	unsigned int n = r->shape->queues;

	for (unsigned int i = 0; i < r->shape->submissions; i++) {
		if (submit(r, r->b.queues[i % n], &points[i % n]) != 0)
			return bench_die("hal_submit");
		r->waits[1].value++;
		r->signal.value++;
	}
	if (hal_wait(points, n, 0, HAL_FOREVER) != 0)
		return bench_die("hal_wait");
	return 0;
}

static int batches(struct run *r, unsigned int count)
{
	int err = 0;

	while (err == 0 && count-- > 0)
		err = batch(r);
	return err;
}

static int measure(const struct shape *shape, const char *figure, unsigned int rounds)
{
	unsigned int commands = rounds * shape->submissions * shape->commands;
	struct run r;
	uint64_t start;

	if (open_run(&r, shape) != 0)
		return TOOL_FAILED;
	/* What happens only once (binding the program, lazy symbols) is not measured. */
	if (batches(&r, 2) != 0)
		return TOOL_FAILED;
	start = bench_now();
	CALLGRIND_START_INSTRUMENTATION;
	CALLGRIND_ZERO_STATS;
	if (batches(&r, rounds) != 0)
		return TOOL_FAILED;
	CALLGRIND_STOP_INSTRUMENTATION;
	CALLGRIND_DUMP_STATS_AT(shape->name);
	if (RUNNING_ON_VALGRIND == 0)
		printf("nanoseconds.%s %.0f\n", shape->name,
		       (double)(bench_now() - start) / commands);
	if (shape == &shapes[0])
		printf("note_is launch.%s %u launch\n", figure, commands);
	else
		printf("figure_is hal.submit.%s.%s %u %s\n", shape->name, figure,
		       commands, shape->name);
	return close_run(&r);
}

/* Filled until it is full; the refused calls after that are measured. */
static int measure_eagain(unsigned int rounds)
{
	struct hal_point done = {NULL, 0};
	unsigned int refused = 0;
	uint64_t start;
	struct run r;
	int err;

	if (open_run(&r, &shapes[0]) != 0)
		return TOOL_FAILED;
	while ((err = hal_submit(r.b.queues[0], &r.desc, &done)) == 0)
		;
	if (err != -EAGAIN)
		return bench_die("filling a queue");
	start = bench_now();
	CALLGRIND_START_INSTRUMENTATION;
	CALLGRIND_ZERO_STATS;
	for (unsigned int i = 0; i < rounds * 8; i++)
		refused += hal_submit(r.b.queues[0], &r.desc, NULL) == -EAGAIN;
	CALLGRIND_STOP_INSTRUMENTATION;
	CALLGRIND_DUMP_STATS_AT("eagain");
	if (RUNNING_ON_VALGRIND == 0)
		printf("nanoseconds.eagain %.0f\n",
		       (double)(bench_now() - start) / (rounds * 8));
	if (refused != rounds * 8)
		return bench_die("a full queue took a command");
	printf("figure_is hal.eagain.instructions %u eagain\n", refused);
	if (hal_wait(&done, 1, 0, HAL_FOREVER) != 0)
		return bench_die("hal_wait");
	return close_run(&r);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	unsigned int rounds = argc > 2 ? (unsigned int)strtoul(argv[2], NULL, 10) : 128;
	int total = strcmp(mode, "total") == 0;
	const char *figure = total ? "total_instructions" : "instructions";

	if ((!total && strcmp(mode, "submit") != 0) || rounds == 0) {
		fprintf(stderr, "usage: bench_shapes submit|total [ROUNDS]\n");
		return 2;
	}
	for (size_t i = 0; i < SHAPES; i++) {
		bench_within(RUNNING_ON_VALGRIND ? 300 : 20);
		if (measure(&shapes[i], figure, rounds) != 0)
			return 1;
	}
	/* The launches are the same number in both. */
	printf("note_is waits_2_signal_1.%s_a_point %u waits_2_signal_1 -launch\n",
	       figure, rounds * 8 * 3);
	return tool_end(total ? 0 : measure_eagain(rounds));
}
