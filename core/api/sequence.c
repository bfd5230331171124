/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sequence.c - record sequences of commands, change their arguments, submit them.
 *
 * A sequence is a block of records that is written and checked once.  A submission puts
 * one record into the queue's ring that refers to the block.  The records contain the
 * backend's handles of memory and kernels.  So the sequence pins the buffers and programs
 * that its commands use.  If the application destroys a pinned object, the object is
 * freed only after the sequence and all submitted work have stopped using it.
 */
#include "api/sequence.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/crossing.h"
#include "api/handle.h"
#include "api/submit.h"
#include "command/completions.h"
#include "far/far.h"
#include "loop/engine.h"

/* ---- pinned buffers and programs --------------------------------------------------- */

/* The pinned buffers and programs of a block, in the order of its commands.  Each entry
 * has at most one pointer set: to a buffer or to a program. */
struct handles {
	uint32_t count;
	struct {
		struct hal_buffer *buffer;
		struct hal_program *program;
	} at[];
};

struct recorded {
	struct hal_sequence seq;
	struct handles *handles;
	/* For each command: index in .handles of its first argument if it is a launch,
	 * else UINT32_MAX. */
	uint32_t *first;
};

/* Pin buf or prog, either of which may be NULL, and append an entry for them. */
static void handles_add(struct handles *n, struct hal_buffer *buf,
			struct hal_program *prog)
{
	if (buf != NULL)
		buffer_pin(buf);
	if (prog != NULL)
		program_pin(prog);
	n->at[n->count].buffer = buf;
	n->at[n->count++].program = prog;
}

static void handles_free(struct handles *n)
{
	for (uint32_t i = 0; n != NULL && i < n->count; i++) {
		if (n->at[i].buffer != NULL)
			buffer_unpin(n->at[i].buffer);
		if (n->at[i].program != NULL)
			program_unpin(n->at[i].program);
	}
	free(n);
}

/* Pin the buffers and the program that c, command number i, uses. */
static void handles_add_command(struct recorded *s, uint32_t i, const struct hal_cmd *c)
{
	s->first[i] = UINT32_MAX;
	switch (c->op) {
	case HAL_OP_COPY:
		handles_add(s->handles, c->copy.dst, NULL);
		handles_add(s->handles, c->copy.src, NULL);
		break;
	case HAL_OP_FILL:
		handles_add(s->handles, c->fill.dst, NULL);
		break;
	case HAL_OP_TIMESTAMP:
		handles_add(s->handles, c->timestamp.dst, NULL);
		break;
	case HAL_OP_LAUNCH:
		handles_add(s->handles, NULL, c->launch.kernel->prog);
		s->first[i] = s->handles->count;
		for (uint32_t a = 0; a < c->launch.arg_count; a++)
			handles_add(s->handles, c->launch.args[a].buffer, NULL);
		break;
	default:
		break;
	}
}

/* Pin the buffers and programs that the commands of d use.  Return 0 or -ENOMEM. */
static int handles_make(struct recorded *s, const struct hal_submit_desc *d)
{
	s->handles =
		malloc(sizeof(*s->handles) + (size_t)d->cmd_count * (HAL_ARGS_MAX + 1) *
						     sizeof(s->handles->at[0]));
	s->first = calloc(d->cmd_count, sizeof(*s->first));
	if (s->handles != NULL)
		s->handles->count = 0;
	if (s->handles == NULL || s->first == NULL)
		return fail(ENOMEM, "no memory for a sequence of %u commands",
			    d->cmd_count);
	for (uint32_t i = 0; i < d->cmd_count; i++)
		handles_add_command(s, i, command_at(d, i));
	return 0;
}

/* Mark the commands for the device as recorded, and mark the last command of each run of
 * consecutive ones.  A backend may translate such a run once and reuse the result when
 * the sequence is submitted again. */
static void mark_recorded(struct block *b)
{
	struct record *last = NULL;

	for (uint32_t i = 0; i < b->slots; i += b->rec[i].slots) {
		struct record *r = &b->rec[i];

		if (record_for_device(r)) {
			r->cmd.flags |= HAL_BK_CMD_RECORDED;
			last = r;
		} else if (last != NULL) {
			last->cmd.flags |= HAL_BK_CMD_LAST;
		}
	}
	if (last != NULL)
		last->cmd.flags |= HAL_BK_CMD_LAST;
}

/* Write the commands of d to a new block.  Return 0 or -errno. */
static int block_make(const struct hal_queue *q, const struct hal_submit_desc *d,
		      struct block **out)
{
	uint32_t slots = 0, largest = 0;
	struct record_target to;
	struct block *b;
	int err = shape_check(q, d);

	if (err == 0)
		err = count_slots(d, &slots, &largest);
	if (err != 0)
		return err;
	b = block_alloc(slots);
	if (b == NULL)
		return -ENOMEM;
	to = target_block(b);
	err = write_commands(q, d, &to);
	if (err != 0)
		free(b);
	else
		*out = b;
	return err;
}

/* ---- create, destroy --------------------------------------------------------------- */

static struct recorded *recorded_of(struct hal_sequence *seq)
{
	return container_of(seq, struct recorded, seq);
}

static void sequence_free(struct recorded *s)
{
	if (s->seq.block != NULL && block_put(s->seq.block))
		free(s->seq.block);
	handles_free(s->handles);
	free(s->first);
	object_free(OBJECT_SEQUENCE, s);
}

static int desc_check(const struct hal_submit_desc *d)
{
	if (d->cmd_count == 0)
		return fail(EINVAL, "hal_sequence_create: cmd_count is 0");
	if ((d->wait_count | d->signal_count | d->flags) != 0 ||
	    (d->not_before_ns | d->deadline_ns | d->tag) != 0)
		return fail(EINVAL,
			    "hal_sequence_create: pass waits, signals, flags, times and "
			    "tags to hal_sequence_submit");
	return 0;
}

int hal_sequence_create(struct hal_partition *part, const struct hal_submit_desc *desc,
			struct hal_sequence **out)
{
	struct hal_submit_desc d;
	struct hal_queue for_part;
	struct recorded *s;
	int err;

	if (!OBJECT_OK(part, OBJECT_PARTITION))
		return FAR_OR_BAD(part, OBJECT_PARTITION,
				  far_sequence_create(part, desc, out));
	if (out == NULL)
		return fail(EINVAL, "hal_sequence_create: seq is NULL");
	err = import_struct(&d, sizeof(d),
			    offsetof(struct hal_submit_desc, not_before_ns), desc,
			    "hal_submit_desc");
	if (err == 0)
		err = desc_check(&d);
	if (err == 0)
		err = device_alive(part->dev);
	if (err != 0)
		return err;
	s = object_alloc(OBJECT_SEQUENCE, sizeof(*s));
	if (s == NULL)
		return -ENOMEM;
	s->seq.part = part;
	s->seq.commands = d.cmd_count;
	/* The checks need a queue but read only its partition: pass a dummy. */
	memset(&for_part, 0, sizeof(for_part));
	for_part.dev = part->dev;
	for_part.home = part;
	for_part.part_word = part->obj.id / 64;
	for_part.part_bit = UINT64_C(1) << part->obj.id % 64;
	err = block_make(&for_part, &d, &s->seq.block);
	if (err == 0) {
		mark_recorded(s->seq.block);
		err = handles_make(s, &d);
	}
	if (err != 0) {
		sequence_free(s);
		return err;
	}
	counter_atomic_add(&part->sequences, 1);
	*out = &s->seq;
	return 0;
}

int hal_sequence_destroy(struct hal_sequence *seq)
{
	if (seq == NULL)
		return 0;
	if (!OBJECT_OK(seq, OBJECT_SEQUENCE))
		return FAR_OR_BAD(seq, OBJECT_SEQUENCE, far_sequence_destroy(seq));
	object_retire(&seq->obj);
	counter_atomic_add(&seq->part->sequences, UINT64_MAX);
	sequence_free(recorded_of(seq));
	return 0;
}

/* ---- arguments --------------------------------------------------------------------- */

/* Return a copy of b; NULL on -ENOMEM.  Launches point to their arguments in the same
 * block, so update these pointers in the copy. */
static struct block *block_copy(const struct block *b)
{
	size_t bytes = sizeof(*b) + b->slots * sizeof(struct record);
	struct block *copy = malloc(bytes);

	if (copy == NULL) {
		(void)fail(ENOMEM, "no memory for a sequence of %u slots", b->slots);
		return NULL;
	}
	memcpy(copy, b, bytes);
	atomic_init(&copy->refs, 1);
	for (uint32_t i = 0; i < copy->slots; i += copy->rec[i].slots)
		if (copy->rec[i].cmd.op == HAL_OP_LAUNCH)
			copy->rec[i].cmd.launch.args = record_args(&copy->rec[i]);
	return copy;
}

/* Return the record of command n. */
static struct record *record_number(struct block *b, uint32_t n)
{
	uint32_t i = 0;

	while (n-- > 0)
		i += b->rec[i].slots;
	return &b->rec[i];
}

static int launch_check(const struct recorded *s, uint32_t cmd)
{
	if (cmd >= s->seq.commands)
		return fail(EINVAL,
			    "the sequence has %u commands, numbered from 0; there is no "
			    "command %u",
			    s->seq.commands, cmd);
	if (s->first[cmd] == UINT32_MAX)
		return fail(EINVAL, "command %u of the sequence is not a launch", cmd);
	return 0;
}

int hal_sequence_set_args(struct hal_sequence *seq, uint32_t cmd,
			  const struct hal_arg *args, uint32_t arg_count)
{
	struct recorded *s;
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct hal_queue for_part;
	struct block *one, *b;
	struct hal_cmd launch;
	struct record *r;
	int err;

	if (!OBJECT_OK(seq, OBJECT_SEQUENCE))
		return FAR_OR_BAD(seq, OBJECT_SEQUENCE,
				  far_sequence_set_args(seq, cmd, args, arg_count));
	s = recorded_of(seq);
	err = launch_check(s, cmd);
	if (err != 0)
		return err;
	r = record_number(seq->block, cmd);
	/* Write the launch to a block of its own, which checks the arguments. */
	launch = hal_cmd_launch(r->launch.kernel, args, arg_count);
	d.cmds = &launch;
	d.cmd_count = 1;
	memset(&for_part, 0, sizeof(for_part));
	for_part.dev = seq->part->dev;
	for_part.home = seq->part;
	for_part.part_word = seq->part->obj.id / 64;
	for_part.part_bit = UINT64_C(1) << seq->part->obj.id % 64;
	err = block_make(&for_part, &d, &one);
	if (err != 0)
		return err;
	b = block_copy(seq->block);
	if (b == NULL) {
		free(one);
		return -ENOMEM;
	}
	memcpy(record_args(record_number(b, cmd)), record_args(one->rec),
	       arg_count * sizeof(struct hal_bk_arg));
	free(one);
	for (uint32_t i = 0; i < arg_count; i++) {
		struct hal_buffer *old = s->handles->at[s->first[cmd] + i].buffer;

		if (args[i].buffer != NULL)
			buffer_pin(args[i].buffer);
		s->handles->at[s->first[cmd] + i].buffer = args[i].buffer;
		if (old != NULL)
			buffer_unpin(old);
	}
	if (block_put(seq->block))
		free(seq->block);
	seq->block = b;
	return 0;
}

/* ---- submit ------------------------------------------------------------------------ */

/* Return the number of ring slots that a submission with d takes. */
static uint32_t sequence_slots(const struct hal_submit_desc *d, const struct crossing *x)
{
	return 1 + point_slots(d->wait_count) + point_slots(d->signal_count) +
	       needs_header(d) + (x != NULL ? x->count : 0);
}

/* Submit the commands of b with the points and terms of d, and the waits for other
 * devices in x unless it is NULL.  Return 0 or -EAGAIN. */
static NOINLINE int write_and_publish(struct hal_queue *q, struct block *b,
				      uint32_t commands, const struct hal_submit_desc *d,
				      struct crossing *x, struct hal_point *done)
{
	struct record_target to = target_ring(q);
	uint32_t slots = sequence_slots(d, x);
	struct record *r;

	if (UNLIKELY(!has_slots(q, slots)))
		return queue_full(q, slots);
	if (needs_header(d))
		write_submission_header(d, &to);
	write_points(d->waits, d->wait_count, REC_WAIT, &to);
	if (UNLIKELY(x != NULL)) {
		crossing_write(x, &to);
		crossing_start(x);
	}
	r = target_next(&to, 1);
	write_common(r, REC_BLOCK, 0, 1, 0, to.now);
	r->block = b;
	write_points(d->signals, d->signal_count, REC_SIGNAL, &to);
	atomic_fetch_add_explicit(&b->refs, 1, memory_order_relaxed);
	return submit_written(q, &to, commands, done);
}

static int sequence_check(const struct hal_queue *q, const struct hal_sequence *seq)
{
	int err = queue_open_check(q);

	if (err != 0)
		return err;
	if (!OBJECT_OK(seq, OBJECT_SEQUENCE))
		return object_bad(seq, OBJECT_SEQUENCE);
	if (seq->part != q->home)
		return fail(EPERM,
			    "the sequence belongs to partition %u \"%s\", the queue to "
			    "%u \"%s\"",
			    seq->part->obj.id, seq->part->name, q->home->obj.id,
			    q->home->name);
	return 0;
}

static COLD int sequence_desc_bad(const struct hal_queue *q,
				  const struct hal_submit_desc *d)
{
	if (d->cmd_count != 0)
		return fail(EINVAL,
			    "hal_submit_desc.cmd_count %u must be 0: the commands are "
			    "those of the sequence",
			    d->cmd_count);
	return fail(EINVAL,
		    "%u waits and %u signals take %u slots besides the sequence's own; "
		    "at most %u are allowed",
		    d->wait_count, d->signal_count, sequence_slots(d, NULL) - 1,
		    q->slot_count / 2 - 1);
}

int hal_sequence_submit(struct hal_queue *q, struct hal_sequence *seq,
			const struct hal_submit_desc *desc, struct hal_point *done)
{
	static const struct hal_submit_desc plain = HAL_INIT(hal_submit_desc);
	struct hal_submit_desc d = plain;
	struct crossing x;
	bool crosses = false;
	int err = sequence_check(q, seq);

	if (UNLIKELY(err == FAR_QUEUE_REFUSED))
		return far_sequence_submit(q, seq, desc, done);
	if (err == 0 && desc != NULL)
		err = import_struct(&d, sizeof(d),
				    offsetof(struct hal_submit_desc, not_before_ns), desc,
				    "hal_submit_desc");
	if (err == 0)
		err = shape_check(q, &d);
	if (UNLIKELY(err == CROSSING)) {
		err = crossing_make(q, &d, &x);
		crosses = err == 0;
		if (crosses)
			d = x.d;
	}
	if (err == 0 && (d.cmd_count != 0 ||
			 sequence_slots(&d, crosses ? &x : NULL) > q->slot_count / 2))
		err = sequence_desc_bad(q, &d);
	if (err == 0 && q->completions != NULL && !completions_take(q->completions))
		err = completions_full(q->completions);
	else if (err == 0) {
		err = write_and_publish(q, seq->block, seq->commands, &d,
					crosses ? &x : NULL, done);
		if (err != 0 && q->completions != NULL)
			completions_untake(q->completions);
	}
	if (UNLIKELY(crosses))
		crossing_end(&x, err == 0);
	return err;
}
