/* SPDX-License-Identifier: Apache-2.0 */
/*
 * write.h - write commands, points and headers as the records of a queue (record.h).
 *
 * What hal_submit does for every command is inline.
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

/* Where records go: the ring, whose positions wrap, or a block, whose do not. */
struct record_target {
	struct record *base;
	unsigned int pos, mask;
	uint32_t own; /* of all of them */
	uint64_t now;
	struct record *last;
};

static inline struct record *target_next(struct record_target *to, uint32_t slots)
{
	struct record *r = &to->base[to->pos & to->mask];

	to->pos += slots;
	to->last = r;
	return r;
}

/* A block for records of so many slots; NULL: no memory. */
struct block *block_alloc(uint32_t slots);

static inline struct record_target target_block(struct block *b)
{
	return (struct record_target){.base = b->rec, .mask = ~0u, .own = REC_INNER};
}

/* ---- launches ---------------------------------------------------------------------- */

/* Argument i of k.  False: it is wrong. */
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

static ALWAYS_INLINE void write_groups(uint32_t *out, const uint32_t *groups)
{
	uint64_t first_two;

	memcpy(&first_two, groups, sizeof(first_two));
	if (LIKELY((first_two | groups[2]) == 0)) {
		out[0] = out[1] = out[2] = 1;
		return;
	}
	for (int i = 0; i < 3; i++)
		out[i] = groups[i] + (groups[i] == 0);
}

static ALWAYS_INLINE bool is_bound(const struct hal_queue *q, const struct hal_kernel *k)
{
	return (atomic_load_explicit(&k->bound[q->part_word], memory_order_acquire) &
		q->part_bit) != 0;
}

/* All arguments of a launch of at most INLINE_ARGS_MAX, without a loop: each with its
 * offsets in the instructions.  False: one is wrong. */
static ALWAYS_INLINE bool write_inline_args(const struct hal_partition *part,
					    const struct hal_kernel *k,
					    const struct hal_arg *args, uint32_t count,
					    struct hal_bk_arg *out)
{
	_Static_assert(INLINE_ARGS_MAX == 8, "one case each");
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
		__builtin_unreachable(); /* hal_submit has seen to that */
	}
#undef CASE_ARG
}

/* What the device is to know of a launch of k with count arguments, which are written by
 * then. */
static ALWAYS_INLINE void write_kernel(const struct hal_cmd *cmd, struct hal_kernel *k,
				       uint32_t count, struct record *r)
{
	r->launch.kernel = k;
	r->cmd.launch.kernel = k->bk;
	r->cmd.launch.args = record_args(r);
	r->cmd.launch.arg_count = count;
	write_groups(r->cmd.launch.groups, cmd->launch.groups);
}

/* ---- commands ---------------------------------------------------------------------- */

enum { COMMAND_WRITERS = HAL_OP_TIMESTAMP + 1 };

/* Check a command for q and write it to r.  By enum hal_op. */
extern int (*const command_writers[COMMAND_WRITERS])(const struct hal_queue *q,
						     const struct hal_cmd *cmd,
						     struct record *r);
/* The writer of launches. */
int write_launch(const struct hal_queue *q, const struct hal_cmd *cmd, struct record *r);

static ALWAYS_INLINE void write_head(struct record *r, uint32_t op, uint32_t flags,
				     uint32_t slots, uint32_t own, uint64_t now)
{
	r->cmd.op = op;
	r->cmd.flags = record_flags(flags, slots, own);
	r->submit_ns = now;
}

/* One command into r, where slots slots are free. */
static ALWAYS_INLINE int write_command(const struct hal_queue *q,
				       const struct hal_cmd *cmd, uint32_t slots,
				       uint32_t own, uint64_t now, struct record *r)
{
	if (UNLIKELY((cmd->flags & ~HAL_CMD_REPLAYABLE) != 0))
		return fail(EINVAL, "hal_cmd.flags 0x%x: only 0x%x is known", cmd->flags,
			    HAL_CMD_REPLAYABLE);
	if (UNLIKELY(cmd->op >= COMMAND_WRITERS))
		return fail(EINVAL, "hal_cmd.op %u is not an operation", cmd->op);
	write_head(r, cmd->op, cmd->flags, slots, own, now);
	if (LIKELY(cmd->op == HAL_OP_LAUNCH))
		return write_launch(q, cmd, r);
	return command_writers[cmd->op](q, cmd, r);
}

static inline uint32_t command_slots(const struct hal_cmd *cmd)
{
	return cmd->op == HAL_OP_LAUNCH ? launch_slots(cmd->launch.arg_count) : 1;
}

static inline const struct hal_cmd *command_at(const struct hal_submit_desc *d,
					       uint32_t i)
{
	const char *base = (const char *)d->cmds;
	uint32_t stride = d->cmd_stride != 0 ? d->cmd_stride : sizeof(struct hal_cmd);

	return (const struct hal_cmd *)(const void *)(base + (size_t)i * stride);
}

/* Say which of several commands was wrong: set the error of command i, and return it. */
int write_command_bad(uint32_t i, int err) COLD;

/* Write all commands of d. */
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

/* Slots of all commands; *largest of one.  -EINVAL. */
static inline int count_slots(const struct hal_submit_desc *d, uint32_t *slots,
			      uint32_t *largest)
{
	for (uint32_t i = 0; i < d->cmd_count; i++) {
		const struct hal_cmd *cmd = command_at(d, i);
		uint32_t n;

		if (UNLIKELY(cmd->op == HAL_OP_LAUNCH &&
			     cmd->launch.arg_count > HAL_ARGS_MAX))
			return fail(EINVAL, "cmds[%u]: %u arguments, %d is the most", i,
				    cmd->launch.arg_count, HAL_ARGS_MAX);
		n = command_slots(cmd);
		*slots += n;
		if (n > *largest)
			*largest = n;
	}
	return 0;
}

/* ---- points and headers ------------------------------------------------------------ */

static ALWAYS_INLINE struct hal_point pending_point(const struct hal_point *p)
{
	atomic_fetch_add_explicit(&p->timeline->pending, 1, memory_order_relaxed);
	return *p;
}

/* From here on they pend. */
static ALWAYS_INLINE void write_points(const struct hal_point *points, uint32_t count,
				       uint32_t op, struct record_target *to)
{
	_Static_assert(RECORD_POINTS == 2, "two and two");
	for (; count > 0; points += 2) {
		struct record *r = target_next(to, 1);

		write_head(r, op, 0, 1, to->own, to->now);
		r->point[0] = pending_point(&points[0]);
		if (count == 1) {
			r->point[1].timeline = NULL;
			return;
		}
		r->point[1] = pending_point(&points[1]);
		count -= 2;
	}
}

/* Whether d asks for anything that takes a submission header. */
static inline bool has_head(const struct hal_submit_desc *d)
{
	return (d->not_before_ns | d->deadline_ns | d->tag | d->flags) != 0;
}

/* Write the submission header of d. */
void write_asked(const struct hal_submit_desc *d, struct record_target *to);

#endif
