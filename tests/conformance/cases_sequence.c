/* SPDX-License-Identifier: Apache-2.0 */
/* Recorded sequences, and submissions of many commands. */
#define _GNU_SOURCE
#include "conformance.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MANY = 1000 };

/* Three buffers of a kernel's copy, the first with noise in it. */
struct copies {
	struct hal_partition *p;
	struct hal_queue *q;
	struct hal_kernel *k;
	struct hal_buffer *b[3];
	struct hal_timeline *gate;
	uint8_t noise[CONF_COPY_BYTES];
};

static int copies_of(struct conf *c, struct copies *w)
{
	static const uint8_t nothing[CONF_COPY_BYTES];
	uint32_t i;

	STEP(conf_whole(c, &w->p));
	STEP(conf_queue(c, w->p, &w->q));
	STEP(conf_kernel(c, "copy", &w->k));
	STEP(conf_timeline(c, &w->gate));
	conf_noise(w->noise, sizeof(w->noise), 5);
	for (i = 0; i < 3; i++) {
		STEP(conf_buffer(c, w->p, CONF_COPY_BYTES, &w->b[i]));
		OK(hal_buffer_write(w->b[i], 0, nothing, sizeof(nothing)));
	}
	OK(hal_buffer_write(w->b[0], 0, w->noise, sizeof(w->noise)));
	return 0;
}

static struct hal_cmd copy_cmd(const struct copies *w, struct hal_arg *args, uint32_t to,
			       uint32_t from)
{
	args[0] = (struct hal_arg){.buffer = w->b[to]};
	args[1] = (struct hal_arg){.buffer = w->b[from]};
	return hal_cmd_launch(w->k, args, 2);
}

/* Held back until the gate is at value. */
static int submit_gated(struct conf *c, struct copies *w, struct hal_sequence *seq,
			uint64_t value, struct hal_point *done)
{
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct hal_point gate = {w->gate, value};

	d.waits = &gate;
	d.wait_count = 1;
	OK(hal_sequence_submit(w->q, seq, &d, done));
	return 0;
}

static int open_gate(struct conf *c, struct copies *w, struct hal_point done)
{
	uint64_t value = hal_timeline_get_value(w->gate, NULL) + 1;

	OK(hal_timeline_signal(w->gate, value));
	return conf_wait(c, done);
}

static int same_as_apart(struct conf *c)
{
	uint8_t apart[3][CONF_COPY_BYTES];
	struct hal_stats s = HAL_INIT(hal_stats);
	struct hal_sequence *seq;
	struct hal_point done;
	struct hal_arg args[2];
	struct hal_cmd cmds[4];
	struct copies w;
	uint32_t i, round;

	STEP(copies_of(c, &w));
	cmds[0] = hal_cmd_fill(w.b[0], 128, 512, 0xa1b2c3d4);
	cmds[1] = copy_cmd(&w, args, 1, 0);
	cmds[2] = hal_cmd_copy(w.b[1], 3000, w.b[0], 100, 77);
	cmds[3] = hal_cmd_copy(w.b[2], 0, w.b[1], 0, CONF_COPY_BYTES);
	for (i = 0; i < 4; i++)
		STEP(conf_submit(c, w.q, &cmds[i], 1, &done));
	STEP(conf_wait(c, done));
	for (i = 0; i < 3; i++)
		OK(hal_buffer_read(w.b[i], 0, apart[i], CONF_COPY_BYTES));
	STEP(conf_sequence(c, w.p, cmds, 4, &seq));
	for (round = 1; round <= 3; round++) {
		OK(hal_buffer_write(w.b[0], 0, w.noise, sizeof(w.noise)));
		for (i = 1; i < 3; i++)
			OK(hal_buffer_write(w.b[i], 0, w.noise, 1000));
		OK(hal_sequence_submit(w.q, seq, NULL, &done));
		EQ(done.value, 4 + round);
		STEP(conf_wait(c, done));
		for (i = 0; i < 3; i++)
			STEP(conf_same(c, w.b[i], 0, apart[i], CONF_COPY_BYTES));
	}
	OK(hal_queue_get_stats(w.q, &s));
	EQ(s.submitted, 16);
	EQ(s.completed, 16);
	EQ(s.requests, 7);
	return 0;
}

/* Both are with the queue at once; each sees memory as it is when it runs. */
static int two_in_flight(struct conf *c)
{
	struct hal_sequence *seq;
	struct hal_point done[2];
	struct hal_arg args[2];
	struct hal_cmd cmds[2];
	struct copies w;

	STEP(copies_of(c, &w));
	cmds[0] = copy_cmd(&w, args, 1, 0);
	cmds[1] = hal_cmd_copy(w.b[2], 0, w.b[1], 0, CONF_COPY_BYTES);
	STEP(conf_sequence(c, w.p, cmds, 2, &seq));
	STEP(submit_gated(c, &w, seq, 1, &done[0]));
	STEP(submit_gated(c, &w, seq, 2, &done[1]));
	STEP(open_gate(c, &w, done[0]));
	STEP(conf_same(c, w.b[2], 0, w.noise, CONF_COPY_BYTES));
	EQ(hal_timeline_get_value(done[1].timeline, NULL), done[0].value);
	conf_noise(w.noise, sizeof(w.noise), 6);
	OK(hal_buffer_write(w.b[0], 0, w.noise, sizeof(w.noise)));
	STEP(open_gate(c, &w, done[1]));
	return conf_same(c, w.b[2], 0, w.noise, CONF_COPY_BYTES);
}

/* The device has the same command several times at once. */
static int over_and_over(struct conf *c)
{
	enum { TIMES = 16 };
	struct hal_stats s = HAL_INIT(hal_stats);
	struct hal_sequence *seq;
	struct hal_point done[TIMES];
	struct hal_arg args[2];
	struct hal_cmd cmd;
	struct copies w;
	uint32_t i;

	STEP(copies_of(c, &w));
	cmd = copy_cmd(&w, args, 1, 0);
	STEP(conf_sequence(c, w.p, &cmd, 1, &seq));
	for (i = 0; i < TIMES; i++)
		OK(hal_sequence_submit(w.q, seq, NULL, &done[i]));
	for (i = 0; i < TIMES; i++)
		STEP(conf_wait(c, done[i]));
	OK(hal_queue_get_stats(w.q, &s));
	EQ(s.completed, TIMES);
	return conf_same(c, w.b[1], 0, w.noise, CONF_COPY_BYTES);
}

static int args_of_the_next(struct conf *c)
{
	struct hal_sequence *seq;
	struct hal_point done[3];
	struct hal_arg args[2];
	struct hal_cmd cmds[2];
	struct copies w;

	STEP(copies_of(c, &w));
	cmds[0] = hal_cmd_barrier();
	cmds[1] = copy_cmd(&w, args, 1, 0);
	STEP(conf_sequence(c, w.p, cmds, 2, &seq));
	STEP(submit_gated(c, &w, seq, 1, &done[0]));
	(void)copy_cmd(&w, args, 2, 0);
	OK(hal_sequence_set_args(seq, 1, args, 2));
	STEP(submit_gated(c, &w, seq, 2, &done[1]));
	STEP(open_gate(c, &w, done[0]));
	STEP(conf_same(c, w.b[1], 0, w.noise, CONF_COPY_BYTES));
	STEP(conf_filled(c, w.b[2], 0, CONF_COPY_BYTES, 0));
	STEP(open_gate(c, &w, done[1]));
	STEP(conf_same(c, w.b[2], 0, w.noise, CONF_COPY_BYTES));
	/* It stays so. */
	conf_noise(w.noise, sizeof(w.noise), 7);
	OK(hal_buffer_write(w.b[0], 0, w.noise, sizeof(w.noise)));
	OK(hal_sequence_submit(w.q, seq, NULL, &done[2]));
	STEP(conf_wait(c, done[2]));
	STEP(conf_same(c, w.b[2], 0, w.noise, CONF_COPY_BYTES));
	ERR(hal_sequence_set_args(seq, 0, args, 2), -EINVAL);
	ERR(hal_sequence_set_args(seq, 2, args, 2), -EINVAL);
	ERR(hal_sequence_set_args(seq, 1, args, 1), -EINVAL);
	return 0;
}

static int memory_used(struct conf *c, struct hal_partition *p, uint64_t *bytes)
{
	struct hal_partition_info info = HAL_INIT(hal_partition_info);

	OK(hal_partition_get_info(p, &info));
	*bytes = info.memory_used;
	return 0;
}

/* What is recorded can still be submitted; its memory comes back with the sequence. */
static int buffers_stay(struct conf *c)
{
	struct hal_sequence *seq;
	struct hal_point done;
	struct hal_arg args[2];
	struct hal_cmd cmds[2];
	uint64_t before, after;
	struct copies w;
	uint32_t i;

	STEP(copies_of(c, &w));
	cmds[0] = copy_cmd(&w, args, 1, 0);
	cmds[1] = hal_cmd_copy(w.b[2], 0, w.b[1], 0, CONF_COPY_BYTES);
	/* Whatever the kernel needs there is there from now on. */
	STEP(conf_submit(c, w.q, cmds, 1, &done));
	STEP(conf_wait(c, done));
	STEP(conf_sequence(c, w.p, cmds, 2, &seq));
	STEP(memory_used(c, w.p, &before));
	STEP(conf_buffer_gone(c, w.b[0]));
	STEP(conf_buffer_gone(c, w.b[1]));
	STEP(memory_used(c, w.p, &after));
	EQ(after, before);
	/* Others do not get what it names. */
	for (i = 0; i < 4; i++) {
		struct hal_buffer *other;

		STEP(conf_buffer(c, w.p, CONF_COPY_BYTES, &other));
		cmds[0] = hal_cmd_fill(other, 0, CONF_COPY_BYTES, 0xeeeeeeee);
		STEP(conf_submit(c, w.q, cmds, 1, &done));
		STEP(conf_wait(c, done));
		STEP(conf_buffer_gone(c, other));
	}
	OK(hal_sequence_submit(w.q, seq, NULL, &done));
	STEP(conf_wait(c, done));
	STEP(conf_same(c, w.b[2], 0, w.noise, CONF_COPY_BYTES));
	STEP(conf_sequence_gone(c, seq));
	STEP(memory_used(c, w.p, &after));
	EQ(after, before - 2 * CONF_COPY_BYTES);
	return 0;
}

/* A buffer that new arguments have put out goes when what uses it has ended. */
static int old_args_go(struct conf *c)
{
	struct hal_sequence *seq;
	struct hal_point done;
	struct hal_arg args[2];
	uint64_t before, after;
	struct hal_cmd cmd;
	struct copies w;

	STEP(copies_of(c, &w));
	cmd = copy_cmd(&w, args, 1, 0);
	STEP(conf_submit(c, w.q, &cmd, 1, &done));
	STEP(conf_wait(c, done));
	STEP(conf_sequence(c, w.p, &cmd, 1, &seq));
	STEP(memory_used(c, w.p, &before));
	STEP(submit_gated(c, &w, seq, 1, &done));
	STEP(conf_buffer_gone(c, w.b[0]));
	args[1].buffer = w.b[2];
	OK(hal_sequence_set_args(seq, 0, args, 2));
	OK(hal_buffer_write(w.b[1], 0, w.noise, 16));
	STEP(memory_used(c, w.p, &after));
	EQ(after, before);
	STEP(open_gate(c, &w, done));
	STEP(conf_same(c, w.b[1], 0, w.noise, CONF_COPY_BYTES));
	STEP(memory_used(c, w.p, &after));
	EQ(after, before - CONF_COPY_BYTES);
	return 0;
}

static int destroyed_in_flight(struct conf *c)
{
	struct hal_sequence *seq;
	struct hal_point done[2];
	struct hal_arg args[2];
	struct hal_cmd cmds[2];
	struct copies w;

	STEP(copies_of(c, &w));
	cmds[0] = copy_cmd(&w, args, 1, 0);
	cmds[1] = hal_cmd_copy(w.b[2], 0, w.b[1], 0, CONF_COPY_BYTES);
	STEP(conf_sequence(c, w.p, cmds, 2, &seq));
	STEP(submit_gated(c, &w, seq, 1, &done[0]));
	STEP(submit_gated(c, &w, seq, 2, &done[1]));
	STEP(conf_sequence_gone(c, seq));
	STEP(conf_buffer_gone(c, w.b[0]));
	STEP(conf_buffer_gone(c, w.b[1]));
	STEP(open_gate(c, &w, done[0]));
	STEP(conf_same(c, w.b[2], 0, w.noise, CONF_COPY_BYTES));
	OK(hal_buffer_write(w.b[2], 0, "overwritten", 12));
	STEP(open_gate(c, &w, done[1]));
	return conf_same(c, w.b[2], 0, w.noise, CONF_COPY_BYTES);
}

static int refused(struct conf *c)
{
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct hal_partition *other;
	struct hal_sequence *seq;
	struct hal_queue *q;
	struct hal_buffer *b;
	struct hal_point p;
	struct copies w;
	struct hal_cmd cmd;

	if (c->info.partitions_max < 2 || c->info.unit_cols < 2)
		return conf_unsupported(c, "2 partitions side by side do not fit");
	STEP(conf_share(c, 0, 2, &w.p));
	STEP(conf_share(c, 1, 2, &other));
	STEP(conf_queue(c, other, &q));
	STEP(conf_buffer(c, w.p, 64, &b));
	STEP(conf_timeline(c, &w.gate));
	ERR(hal_sequence_create(w.p, &d, &seq), -EINVAL);
	cmd = hal_cmd_fill(b, 0, 64, 1);
	d.cmds = &cmd;
	d.cmd_count = 1;
	p = (struct hal_point){w.gate, 1};
	d.waits = &p;
	d.wait_count = 1;
	ERR(hal_sequence_create(w.p, &d, &seq), -EINVAL);
	ERR(hal_sequence_create(other, &d, &seq), -EINVAL);
	STEP(conf_sequence(c, w.p, &cmd, 1, &seq));
	ERR(hal_sequence_submit(q, seq, NULL, NULL), -EPERM);
	STEP(conf_queue(c, w.p, &q));
	ERR(hal_sequence_submit(q, seq, &d, NULL), -EINVAL);
	return 0;
}

/* ---- many commands ---------------------------------------------------------------- */

struct lot {
	struct hal_queue *q;
	struct hal_partition *p;
	struct hal_buffer *b;
	struct hal_cmd cmds[MANY];
	uint32_t words[MANY];
};

static int lot_of(struct conf *c, struct lot *w)
{
	uint32_t i;

	STEP(conf_whole(c, &w->p));
	STEP(conf_queue(c, w->p, &w->q));
	STEP(conf_buffer(c, w->p, sizeof(w->words), &w->b));
	for (i = 0; i < MANY; i++) {
		w->words[i] = i * 2654435761u;
		w->cmds[i] = hal_cmd_fill(w->b, 4 * (uint64_t)i, 4, w->words[i]);
	}
	return 0;
}

/* The last of them writes over all the first has written: in order, and all of them. */
static int run_lot(struct conf *c, struct lot *w)
{
	struct hal_stats s = HAL_INIT(hal_stats);
	struct hal_sequence *seq;
	struct hal_point done;

	STEP(lot_of(c, w));
	STEP(conf_submit(c, w->q, w->cmds, MANY, &done));
	EQ(done.value, 1);
	STEP(conf_wait(c, done));
	STEP(conf_same(c, w->b, 0, w->words, sizeof(w->words)));
	w->cmds[0] = hal_cmd_fill(w->b, 0, sizeof(w->words), 0);
	w->words[0] = 0;
	STEP(conf_sequence(c, w->p, w->cmds, MANY, &seq));
	OK(hal_sequence_submit(w->q, seq, NULL, NULL));
	OK(hal_sequence_submit(w->q, seq, NULL, &done));
	EQ(done.value, 3);
	STEP(conf_wait(c, done));
	STEP(conf_same(c, w->b, 0, w->words, sizeof(w->words)));
	OK(hal_queue_get_stats(w->q, &s));
	EQ(s.completed, 3 * MANY);
	EQ(s.requests, 3);
	return 0;
}

static int many_commands(struct conf *c)
{
	struct lot *w = malloc(sizeof(*w));
	int r;

	CHECK(w);
	r = run_lot(c, w);
	free(w);
	return r;
}

const struct conf_case conf_sequence_cases[] = {
	{"sequence.same_as_apart", same_as_apart},
	{"sequence.two_in_flight", two_in_flight},
	{"sequence.over_and_over", over_and_over},
	{"sequence.args_of_the_next", args_of_the_next},
	{"sequence.buffers_stay", buffers_stay},
	{"sequence.old_args_go", old_args_go},
	{"sequence.destroyed_in_flight", destroyed_in_flight},
	{"sequence.refused", refused},
	{"sequence.many_commands", many_commands},
	{NULL, NULL},
};
