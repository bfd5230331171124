/* SPDX-License-Identifier: Apache-2.0 */
/*
 * write.h - translate commands, points and submission headers to records (record.h).
 *
 * Functions that hal_submit calls for every command are inline.
 */
#ifndef HAL_API_WRITE_H
#define HAL_API_WRITE_H

#include <errno.h>
#include <string.h>

#include "command/queue.h"
#include "space/partition.h"
#include "util/compiler.h"
#include "util/error.h"

/* ---- where records go -------------------------------------------------------------- */

/* Where records are written to: a queue's ring, whose positions wrap (.mask), or a block,
 * whose positions do not. */
struct record_target {
	struct record *base;
	unsigned int pos, mask;
	uint32_t own;        /* REC_* flags of every record */
	uint64_t now;        /* submission time, ns; or SUBMIT_ASLEEP */
	struct record *last; /* most recent record; NULL: none yet */
};

/* Return the next record of `to`, which takes the given number of slots, and advance
 * past it. */
static inline struct record *target_next(struct record_target *to, uint32_t slots)
{
	struct record *r = &to->base[to->pos & to->mask];

	to->pos += slots;
	to->last = r;
	return r;
}

/* Allocate a block with the given number of slots and one reference; NULL on -ENOMEM. */
struct block *block_alloc(uint32_t slots);

/* Return a target for records that starts at the beginning of b. */
static inline struct record_target target_block(struct block *b)
{
	return (struct record_target){.base = b->rec, .mask = ~0u, .own = REC_INNER};
}

/* ---- launches ---------------------------------------------------------------------- */

/* Check argument i of kernel k and write it to out[i].  Return false if it is invalid:
 * the buffer is not part's, the range exceeds it, or the kernel needs more bytes. */
static ALWAYS_INLINE bool write_arg(const struct hal_partition *part,
				    const struct hal_kernel *k,
				    const struct hal_arg *args, struct hal_bk_arg *out,
				    uint32_t i)
{
	const struct hal_buffer *buf = args[i].buffer;
	uint64_t bytes = 0, left;

	out[i].value = args[i].offset;
	if (LIKELY(buf != NULL)) {
		if (UNLIKELY(buf->user != part ||
			     __builtin_sub_overflow(buf->bytes, args[i].offset, &left)))
			return false;
		bytes = args[i].bytes;
		if (UNLIKELY(bytes > left))
			return false;
		if (bytes == 0)
			bytes = left;
		out[i].mem = buf->bk;
	} else {
		out[i].mem = NULL;
	}
	out[i].bytes = bytes;
	return LIKELY(bytes >= k->info.arg_bytes[i]);
}

/* Return whether a launch has neither group counts nor a shape. */
static ALWAYS_INLINE bool launch_is_plain(const struct hal_cmd *cmd)
{
	uint64_t a, b, c, d;

	_Static_assert(offsetof(struct hal_cmd, launch.shared_bytes) ==
			       offsetof(struct hal_cmd, launch.groups) + 24,
		       "the fields are read eight bytes at a time");
	memcpy(&a, &cmd->launch.groups[0], sizeof(a));
	memcpy(&b, &cmd->launch.groups[2], sizeof(b));
	memcpy(&c, &cmd->launch.group_size[1], sizeof(c));
	memcpy(&d, &cmd->launch.group_size[2], sizeof(d));
	return (a | b | c | d) == 0;
}

/* Return whether a launch sets its group size or its shared memory. */
static inline bool launch_is_shaped(const struct hal_cmd *cmd)
{
	return (cmd->launch.group_size[0] | cmd->launch.group_size[1] |
		cmd->launch.group_size[2] | cmd->launch.shared_bytes) != 0;
}

/* Write a launch's three group counts to out, with 1 instead of 0.  Return whether the
 * launch is shaped. */
static ALWAYS_INLINE bool write_groups(uint32_t *out, const struct hal_cmd *cmd)
{
	const uint32_t *groups = cmd->launch.groups;

	if (LIKELY(launch_is_plain(cmd))) {
		out[0] = out[1] = out[2] = 1;
		return false;
	}
	for (int i = 0; i < 3; i++)
		out[i] = groups[i] + (groups[i] == 0);
	return launch_is_shaped(cmd);
}

/* Return whether the program of k has been placed in q's partition. */
static ALWAYS_INLINE bool is_bound(const struct hal_queue *q, const struct hal_kernel *k)
{
	return (atomic_load_explicit(&k->bound[q->part_word], memory_order_acquire) &
		q->part_bit) != 0;
}

/* Check and write all arguments of a launch that has at most INLINE_ARGS_MAX of them.
 * Return false if one is invalid.  The loop is unrolled so that array offsets become
 * constants in the instructions. */
static ALWAYS_INLINE bool write_inline_args(const struct hal_partition *part,
					    const struct hal_kernel *k,
					    const struct hal_arg *args, uint32_t count,
					    struct hal_bk_arg *out)
{
	_Static_assert(INLINE_ARGS_MAX == 8, "one case per argument");
#define CASE_ARG(n)                                                                      \
	case n:                                                                          \
		if (UNLIKELY(!write_arg(part, k, args, out, (n)-1)))                     \
			return false;                                                    \
		__attribute__((fallthrough))
	switch (count) {
		CASE_ARG(8);
		CASE_ARG(7);
		CASE_ARG(6);
		CASE_ARG(5);
		CASE_ARG(4);
		CASE_ARG(3);
		CASE_ARG(2);
		CASE_ARG(1);
	case 0:
		return true;
	default:
		__builtin_unreachable(); /* callers check count before */
	}
#undef CASE_ARG
}

/* Write the fields of a launch of k other than its count arguments, which the caller
 * writes to record_args(r).  Return whether the launch is shaped: the caller then writes
 * its shape after the arguments. */
static ALWAYS_INLINE bool write_kernel(const struct hal_cmd *cmd, struct hal_kernel *k,
				       uint32_t count, struct record *r)
{
	r->launch.kernel = k;
	r->cmd.launch.kernel = k->bk;
	r->cmd.launch.args = record_args(r);
	r->cmd.launch.arg_count = count;
	return write_groups(r->cmd.launch.groups, cmd);
}

/* ---- commands ---------------------------------------------------------------------- */

enum { COMMAND_WRITERS = HAL_OP_TIMESTAMP + 1 };

/* Functions that check a command for queue q and write it to record r, indexed by enum
 * hal_op.  They return 0 or -errno. */
extern int (*const command_writers[COMMAND_WRITERS])(const struct hal_queue *q,
						     const struct hal_cmd *cmd,
						     struct record *r);
/* The function for HAL_OP_LAUNCH. */
int write_launch(const struct hal_queue *q, const struct hal_cmd *cmd, struct record *r);

/* Write the fields that every kind of record has. */
static ALWAYS_INLINE void write_common(struct record *r, uint32_t op, uint32_t flags,
				       uint32_t slots, uint32_t own, uint64_t now)
{
	r->cmd.op = op;
	r->cmd.flags = record_flags(flags, slots, own);
	r->submit_ns = now;
}

/* Check cmd and write it to r, a record of the given number of slots.  Return 0 or
 * -errno. */
static ALWAYS_INLINE int write_command(const struct hal_queue *q,
				       const struct hal_cmd *cmd, uint32_t slots,
				       uint32_t own, uint64_t now, struct record *r)
{
	if (UNLIKELY((cmd->flags & ~HAL_CMD_REPLAYABLE) != 0))
		return fail(EINVAL, "hal_cmd.flags 0x%x: only 0x%x is defined",
			    cmd->flags, HAL_CMD_REPLAYABLE);
	if (UNLIKELY(cmd->op >= COMMAND_WRITERS))
		return fail(EINVAL, "hal_cmd.op %u is not an operation", cmd->op);
	write_common(r, cmd->op, cmd->flags, slots, own, now);
	if (LIKELY(cmd->op == HAL_OP_LAUNCH))
		return write_launch(q, cmd, r);
	return command_writers[cmd->op](q, cmd, r);
}

/* Return the number of slots that the record of cmd takes. */
static inline uint32_t command_slots(const struct hal_cmd *cmd)
{
	_Static_assert(sizeof(struct hal_bk_shape) <= sizeof(struct hal_bk_arg),
		       "a shape takes the place of one argument");
	return cmd->op == HAL_OP_LAUNCH
		       ? launch_slots(cmd->launch.arg_count + launch_is_shaped(cmd))
		       : 1;
}

/* Return command i of d, whose commands are .cmd_stride bytes apart. */
static inline const struct hal_cmd *command_at(const struct hal_submit_desc *d,
					       uint32_t i)
{
	const char *base = (const char *)d->cmds;
	uint32_t stride = d->cmd_stride != 0 ? d->cmd_stride : sizeof(struct hal_cmd);

	return (const struct hal_cmd *)(const void *)(base + (size_t)i * stride);
}

/* Prefix the current error text with the number i of the failed command; return err. */
int write_command_bad(uint32_t i, int err) COLD;

/* Check all commands of d and write them to `to`.  Return 0 or -errno. */
static inline int write_commands(const struct hal_queue *q,
				 const struct hal_submit_desc *d,
				 struct record_target *to)
{
	for (uint32_t i = 0; i < d->cmd_count; i++) {
		const struct hal_cmd *cmd = command_at(d, i);
		uint32_t slots = command_slots(cmd);
		struct record *r = target_next(to, slots);
		int err = write_command(q, cmd, slots, to->own, to->now, r);

		if (UNLIKELY(err != 0))
			return d->cmd_count > 1 ? write_command_bad(i, err) : err;
	}
	return 0;
}

/* Add the slots of all commands of d to *slots, and raise *largest to the slots of the
 * largest.  Return -EINVAL if a launch has too many arguments, else 0. */
static inline int count_slots(const struct hal_submit_desc *d, uint32_t *slots,
			      uint32_t *largest)
{
	for (uint32_t i = 0; i < d->cmd_count; i++) {
		const struct hal_cmd *cmd = command_at(d, i);
		uint32_t n;

		if (UNLIKELY(cmd->op == HAL_OP_LAUNCH &&
			     cmd->launch.arg_count > HAL_ARGS_MAX))
			return fail(EINVAL,
				    "cmds[%u]: %u arguments, at most %d are allowed", i,
				    cmd->launch.arg_count, HAL_ARGS_MAX);
		n = command_slots(cmd);
		*slots += n;
		if (n > *largest)
			*largest = n;
	}
	return 0;
}

/* ---- points and headers ------------------------------------------------------------ */

/* Return *p, and count the point in .pending of its timeline.  While .pending is not 0,
 * the timeline cannot be destroyed. */
static ALWAYS_INLINE struct hal_point pending_point(const struct hal_point *p)
{
	atomic_fetch_add_explicit(&p->timeline->pending, 1, memory_order_relaxed);
	return *p;
}

/* Write count points as records of kind op, REC_WAIT or REC_SIGNAL.  Count each as
 * pending on its timeline, which then cannot be destroyed. */
static ALWAYS_INLINE void write_points(const struct hal_point *points, uint32_t count,
				       uint32_t op, struct record_target *to)
{
	_Static_assert(RECORD_POINTS == 2, "each record takes two points");
	for (; count > 0; points += 2) {
		struct record *r = target_next(to, 1);

		write_common(r, op, 0, 1, to->own, to->now);
		r->point[0] = pending_point(&points[0]);
		if (count == 1) {
			r->point[1].timeline = NULL;
			return;
		}
		r->point[1] = pending_point(&points[1]);
		count -= 2;
	}
}

/* Return whether d sets a time, a tag or a flag: those go into a submission header. */
static inline bool needs_header(const struct hal_submit_desc *d)
{
	return (d->not_before_ns | d->deadline_ns | d->tag | d->flags) != 0;
}

/* Write the submission header of d. */
void write_submission_header(const struct hal_submit_desc *d, struct record_target *to);

#endif
