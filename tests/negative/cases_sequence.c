/* SPDX-License-Identifier: Apache-2.0 */
/* Recorded sequences and rings of completions called wrongly. */
#define _GNU_SOURCE
#include "negative.h"

#include <stdlib.h>
#include <sys/resource.h>

/* ---- made ------------------------------------------------------------------------- */

static int create(struct neg *w)
{
	return hal_sequence_create(w->part, &w->submit, &w->seq);
}

/* Command 0 is a fill, command 1 a launch of "twice". */
static int good(struct neg *w)
{
	w->cmd[1] = hal_cmd_launch(w->kernel, w->args, 2);
	w->submit.cmd_count = 2;
	NEG_OK(create(w));
	w->submit.cmd_count = 0;
	return 0;
}

NEGATIVE(hal_sequence_create, EINVAL, part_null, "partition|part")
{
	return hal_sequence_create(NULL, &w->submit, &w->seq);
}

NEGATIVE(hal_sequence_create, EINVAL, desc_null, "desc")
{
	return hal_sequence_create(w->part, NULL, &w->seq);
}

NEGATIVE(hal_sequence_create, EINVAL, seq_null, "seq")
{
	return hal_sequence_create(w->part, &w->submit, NULL);
}

NEGATIVE(hal_sequence_create, EINVAL, size_zero, "size")
{
	w->submit.size = 0;
	return create(w);
}

NEGATIVE(hal_sequence_create, E2BIG, longer_tail, "hal_submit_desc")
{
	struct {
		struct hal_submit_desc d;
		uint64_t more;
	} longer = {w->submit, 1};

	longer.d.size = sizeof(longer);
	return hal_sequence_create(w->part, &longer.d, &w->seq);
}

NEGATIVE(hal_sequence_create, EINVAL, no_commands, "cmd_count is 0")
{
	w->submit.cmd_count = 0;
	return create(w);
}

NEGATIVE(hal_sequence_create, EINVAL, too_many_commands, "4097")
{
	for (uint32_t i = 1; i <= HAL_COMMANDS_MAX; i++)
		w->cmd[i] = w->cmd[0];
	w->submit.cmd_count = HAL_COMMANDS_MAX + 1;
	return create(w);
}

NEGATIVE(hal_sequence_create, EINVAL, waits, "hal_sequence_submit")
{
	w->points[0] = (struct hal_point){w->line, 1};
	w->submit.waits = w->points;
	w->submit.wait_count = 1;
	return create(w);
}

NEGATIVE(hal_sequence_create, EINVAL, signals, "hal_sequence_submit")
{
	w->points[0] = (struct hal_point){w->line, 1};
	w->submit.signals = w->points;
	w->submit.signal_count = 1;
	return create(w);
}

NEGATIVE(hal_sequence_create, EINVAL, a_time, "hal_sequence_submit")
{
	w->submit.not_before_ns = 1;
	return create(w);
}

NEGATIVE(hal_sequence_create, EINVAL, a_deadline, "hal_sequence_submit")
{
	w->submit.deadline_ns = 1;
	return create(w);
}

NEGATIVE(hal_sequence_create, EINVAL, a_tag, "hal_sequence_submit")
{
	w->submit.tag = 1;
	return create(w);
}

NEGATIVE(hal_sequence_create, EINVAL, a_priority, "hal_sequence_submit")
{
	w->submit.flags = HAL_SUBMIT_PRIORITY;
	return create(w);
}

NEGATIVE(hal_sequence_create, EINVAL, reserved, "reserved")
{
	w->submit.reserved = 1;
	return create(w);
}

NEGATIVE(hal_sequence_create, EINVAL, bad_command, "op")
{
	w->cmd[0] = hal_cmd_of(99, 0);
	return create(w);
}

NEGATIVE(hal_sequence_create, EINVAL, second_command, "cmds[1]")
{
	w->cmd[1] = hal_cmd_of(99, 0);
	w->submit.cmd_count = 2;
	return create(w);
}

NEGATIVE(hal_sequence_create, EINVAL, destroyed_buffer, "buffer")
{
	struct hal_buffer *b;

	NEG_OK(hal_buffer_create(w->part, &w->buffer_desc, &b));
	NEG_OK(hal_buffer_destroy(b));
	w->cmd[0] = hal_cmd_fill(b, 0, 4, 0);
	return create(w);
}

NEGATIVE(hal_sequence_create, EPERM, buffer_of_other_partition, "partition 1")
{
	NEG_OK(hal_partition_create(w->dev, &w->part_desc, &w->part2));
	NEG_OK(hal_buffer_create(w->part2, &w->buffer_desc, &w->buf2));
	w->cmd[0] = hal_cmd_fill(w->buf2, 0, 64, 0);
	return create(w);
}

NEGATIVE(hal_sequence_destroy, EINVAL, destroyed, "sequence")
{
	struct hal_sequence *s;

	NEG_OK(hal_sequence_create(w->part, &w->submit, &s));
	NEG_OK(hal_sequence_destroy(s));
	return hal_sequence_destroy(s);
}

NEGATIVE(hal_sequence_destroy, EINVAL, not_a_sequence, "sequence")
{
	return hal_sequence_destroy((struct hal_sequence *)(void *)w->line);
}

/* ---- arguments -------------------------------------------------------------------- */

NEGATIVE(hal_sequence_set_args, EINVAL, seq_null, "sequence")
{
	return hal_sequence_set_args(NULL, 0, w->args, 2);
}

NEGATIVE(hal_sequence_set_args, EINVAL, no_such_command, "2 commands")
{
	NEG_OK(good(w));
	return hal_sequence_set_args(w->seq, 2, w->args, 2);
}

NEGATIVE(hal_sequence_set_args, EINVAL, no_launch, "not a launch")
{
	NEG_OK(good(w));
	return hal_sequence_set_args(w->seq, 0, w->args, 2);
}

NEGATIVE(hal_sequence_set_args, EINVAL, too_few, "2")
{
	NEG_OK(good(w));
	return hal_sequence_set_args(w->seq, 1, w->args, 1);
}

NEGATIVE(hal_sequence_set_args, EINVAL, too_many, "3|17")
{
	NEG_OK(good(w));
	return hal_sequence_set_args(w->seq, 1, w->args, 3);
}

NEGATIVE(hal_sequence_set_args, EINVAL, args_null, "args")
{
	NEG_OK(good(w));
	return hal_sequence_set_args(w->seq, 1, NULL, 2);
}

NEGATIVE(hal_sequence_set_args, EINVAL, range, "4096")
{
	NEG_OK(good(w));
	w->args[1].offset = 4090;
	return hal_sequence_set_args(w->seq, 1, w->args, 2);
}

NEGATIVE(hal_sequence_set_args, EPERM, buffer_of_other_partition, "partition 1")
{
	NEG_OK(good(w));
	NEG_OK(hal_partition_create(w->dev, &w->part_desc, &w->part2));
	NEG_OK(hal_buffer_create(w->part2, &w->buffer_desc, &w->buf2));
	w->args[1] = (struct hal_arg){w->buf2, 0, 64};
	return hal_sequence_set_args(w->seq, 1, w->args, 2);
}

/* ---- submitted -------------------------------------------------------------------- */

static int submit(struct neg *w)
{
	return hal_sequence_submit(w->queue, w->seq, &w->submit, NULL);
}

NEGATIVE(hal_sequence_submit, EINVAL, queue_null, "queue")
{
	NEG_OK(good(w));
	return hal_sequence_submit(NULL, w->seq, NULL, NULL);
}

NEGATIVE(hal_sequence_submit, EINVAL, seq_null, "sequence")
{
	return hal_sequence_submit(w->queue, NULL, NULL, NULL);
}

NEGATIVE(hal_sequence_submit, EINVAL, destroyed, "sequence")
{
	struct hal_sequence *s;

	NEG_OK(hal_sequence_create(w->part, &w->submit, &s));
	NEG_OK(hal_sequence_destroy(s));
	return hal_sequence_submit(w->queue, s, NULL, NULL);
}

NEGATIVE(hal_sequence_submit, EINVAL, commands, "cmd_count")
{
	NEG_OK(good(w));
	w->submit.cmd_count = 1;
	return submit(w);
}

NEGATIVE(hal_sequence_submit, EINVAL, size_zero, "size")
{
	NEG_OK(good(w));
	w->submit.size = 0;
	return submit(w);
}

NEGATIVE(hal_sequence_submit, E2BIG, longer_tail, "hal_submit_desc")
{
	struct {
		struct hal_submit_desc d;
		uint64_t more;
	} longer;

	NEG_OK(good(w));
	longer.d = w->submit;
	longer.more = 1;
	longer.d.size = sizeof(longer);
	return hal_sequence_submit(w->queue, w->seq, &longer.d, NULL);
}

NEGATIVE(hal_sequence_submit, EINVAL, unknown_flag, "flags")
{
	NEG_OK(good(w));
	w->submit.flags = 2;
	return submit(w);
}

NEGATIVE(hal_sequence_submit, EINVAL, reserved, "reserved")
{
	NEG_OK(good(w));
	w->submit.reserved = 1;
	return submit(w);
}

NEGATIVE(hal_sequence_submit, EINVAL, waits_null, "waits")
{
	NEG_OK(good(w));
	w->submit.wait_count = 1;
	return submit(w);
}

NEGATIVE(hal_sequence_submit, EINVAL, too_many_waits, "at most 15 are allowed")
{
	NEG_OK(good(w));
	for (int i = 0; i < 31; i++)
		w->points[i] = (struct hal_point){w->line, 0};
	w->submit.waits = w->points;
	w->submit.wait_count = 31; /* two a slot, of half a ring of 32, beside its own */
	return submit(w);
}

NEGATIVE(hal_sequence_submit, EINVAL, signals_a_queues_own, "queue|own")
{
	NEG_OK(good(w));
	w->points[0] = (struct hal_point){hal_queue_get_timeline(w->queue), 100};
	w->submit.signals = w->points;
	w->submit.signal_count = 1;
	return submit(w);
}

NEGATIVE(hal_sequence_submit, ENOTSUP, wait_of_other_device, "waits[0]")
{
	static const char *const journal[] = {"hal.journal=/dev/null", NULL};

	NEG_OK(good(w));
	NEG_OK(hal_open("ref", journal, &w->dev2));
	NEG_OK(hal_timeline_create(w->dev2, &w->line2));
	w->points[0] = (struct hal_point){w->line2, 1};
	w->submit.waits = w->points;
	w->submit.wait_count = 1;
	return submit(w);
}

NEGATIVE(hal_sequence_submit, EPERM, other_partition, "queue to 1")
{
	NEG_OK(good(w));
	NEG_OK(hal_partition_create(w->dev, &w->part_desc, &w->part2));
	NEG_OK(hal_queue_create(w->part2, &w->queue_desc, &w->queue2));
	return hal_sequence_submit(w->queue2, w->seq, NULL, NULL);
}

NEGATIVE(hal_sequence_submit, EAGAIN, full, "full")
{
	int err = 0;

	NEG_OK(good(w));
	NEG_OK(neg_make_gated(w));
	for (int i = 0; err == 0 && i < 100000; i++)
		err = hal_sequence_submit(w->queue, w->seq, NULL, &w->busy);
	return err;
}

NEGATIVE(hal_sequence_submit, EAGAIN, ring_of_completions_full, "completions")
{
	NEG_OK(good(w));
	NEG_OK(hal_completions_create(w->dev, 1, &w->ring));
	w->queue_desc.completions = w->ring;
	NEG_OK(hal_queue_create(w->part, &w->queue_desc, &w->queue2));
	NEG_OK(hal_sequence_submit(w->queue2, w->seq, NULL, &w->busy));
	return hal_sequence_submit(w->queue2, w->seq, NULL, NULL);
}

NEGATIVE(hal_sequence_submit, EIO, sticks, "kernel bad")
{
	struct hal_point done;

	NEG_OK(good(w));
	w->cmd[0] = hal_cmd_launch(w->bad, w->args, 1);
	w->submit.cmd_count = 1;
	NEG_OK(hal_submit(w->queue, &w->submit, &done));
	NEG_OK(neg_wait(done) != -EIO);
	return hal_sequence_submit(w->queue, w->seq, NULL, NULL);
}

/* In the middle of a sequence: what is behind it is dropped. */
NEGATIVE(hal_wait, EIO, in_a_sequence, "kernel bad")
{
	struct hal_point done;

	w->cmd[1] = hal_cmd_launch(w->bad, w->args, 1);
	w->cmd[2] = w->cmd[0];
	w->submit.cmd_count = 3;
	NEG_OK(create(w));
	NEG_OK(hal_sequence_submit(w->queue, w->seq, NULL, &done));
	return neg_wait(done);
}

/* ---- completions ------------------------------------------------------------------ */

NEGATIVE(hal_completions_create, EINVAL, dev_null, "device|dev")
{
	return hal_completions_create(NULL, 8, &w->ring);
}

NEGATIVE(hal_completions_create, EINVAL, ring_null, "ring")
{
	return hal_completions_create(w->dev, 8, NULL);
}

NEGATIVE(hal_completions_create, EINVAL, no_entries, "power of two")
{
	return hal_completions_create(w->dev, 0, &w->ring);
}

NEGATIVE(hal_completions_create, EINVAL, no_power_of_two, "power of two")
{
	return hal_completions_create(w->dev, 12, &w->ring);
}

NEGATIVE(hal_completions_create, EINVAL, too_many, "65536")
{
	return hal_completions_create(w->dev, 131072, &w->ring);
}

NEGATIVE(hal_completions_create, EMFILE, no_fd, "files")
{
	struct rlimit old, none;
	int err;

	NEG_OK(getrlimit(RLIMIT_NOFILE, &old));
	none = old;
	none.rlim_cur = 0;
	NEG_OK(setrlimit(RLIMIT_NOFILE, &none));
	err = hal_completions_create(w->dev, 8, &w->ring);
	NEG_OK(setrlimit(RLIMIT_NOFILE, &old));
	return err;
}

NEGATIVE(hal_completions_destroy, EBUSY, told_of, "queues (1)")
{
	NEG_OK(hal_completions_create(w->dev, 8, &w->ring));
	w->queue_desc.completions = w->ring;
	NEG_OK(hal_queue_create(w->part, &w->queue_desc, &w->queue2));
	return hal_completions_destroy(w->ring);
}

NEGATIVE(hal_completions_destroy, EINVAL, destroyed, "completions")
{
	struct hal_completions *c;

	NEG_OK(hal_completions_create(w->dev, 8, &c));
	NEG_OK(hal_completions_destroy(c));
	return hal_completions_destroy(c);
}

static struct hal_completion ends[4];

static int ring(struct neg *w)
{
	return hal_completions_create(w->dev, 8, &w->ring);
}

NEGATIVE(hal_completions_read, EINVAL, ring_null, "completions")
{
	(void)w;
	return hal_completions_read(NULL, ends, 4, 0);
}

NEGATIVE(hal_completions_read, EINVAL, out_null, "out is NULL or max is 0")
{
	NEG_OK(ring(w));
	return hal_completions_read(w->ring, NULL, 4, 0);
}

NEGATIVE(hal_completions_read, EINVAL, max_zero, "out is NULL or max is 0")
{
	NEG_OK(ring(w));
	return hal_completions_read(w->ring, ends, 0, 0);
}

NEGATIVE(hal_completions_read, EINVAL, until_negative, "until_ns -")
{
	NEG_OK(ring(w));
	return hal_completions_read(w->ring, ends, 4, -1);
}

NEGATIVE(hal_completions_read, EDEADLK, nothing_left, "no work is left")
{
	NEG_OK(ring(w));
	return hal_completions_read(w->ring, ends, 4, HAL_FOREVER);
}

/* Work is left, but its time is up. */
NEGATIVE(hal_completions_read, ETIMEDOUT, until_passed, "has completed")
{
	NEG_OK(ring(w));
	NEG_OK(neg_make_busy(w));
	return hal_completions_read(w->ring, ends, 4, 1);
}

NEGATIVE_ON("ref?clock=real", hal_completions_read, ETIMEDOUT, real_clock, "completed")
{
	NEG_OK(ring(w));
	return hal_completions_read(w->ring, ends, 4, 1);
}

struct inside {
	struct neg *w;
	int err, looked;
};

static void reads_inside(void *user)
{
	struct inside *in = user;

	in->looked = hal_completions_read(in->w->ring, ends, 4, 0);
	in->err = hal_completions_read(in->w->ring, ends, 4, HAL_FOREVER);
}

NEGATIVE(hal_completions_read, EDEADLK, in_a_callback, "callback")
{
	struct inside in = {w, 0, -1};
	struct hal_point done;

	NEG_OK(ring(w));
	w->cmd[0] = hal_cmd_host(reads_inside, &in);
	NEG_OK(hal_submit(w->queue, &w->submit, &done));
	NEG_OK(neg_wait(done));
	NEG_OK(in.looked != 0);
	return in.err;
}

NEGATIVE(hal_completions_read, ENODEV, lost, "is lost")
{
	struct hal_completions *c;
	int err;

	NEG_OK(neg_lose(w));
	NEG_OK(hal_completions_create(w->dev2, 8, &c));
	err = hal_completions_read(c, ends, 4, HAL_FOREVER);
	NEG_OK(hal_completions_destroy(c));
	return err;
}

NEGATIVE(hal_completions_get_fd, EINVAL, ring_null, "completions")
{
	(void)w;
	return hal_completions_get_fd(NULL);
}

NEGATIVE(hal_completions_get_fd, ENOTSUP, virtual_clock, "clock=real")
{
	struct hal_completions *c;
	int err;

	NEG_OK(hal_open("ref?clock=virtual", NULL, &w->dev2));
	NEG_OK(hal_completions_create(w->dev2, 8, &c));
	err = hal_completions_get_fd(c);
	(void)hal_completions_destroy(c);
	return err;
}

NEGATIVE(hal_completions_get_fd, EINVAL, destroyed, "completions")
{
	struct hal_completions *c;

	NEG_OK(hal_completions_create(w->dev, 8, &c));
	NEG_OK(hal_completions_destroy(c));
	return hal_completions_get_fd(c);
}
