/* SPDX-License-Identifier: Apache-2.0 */
/*
 * submit.c - from a description of work to records in a queue's ring.
 *
 * Everything is checked while the records are written behind the ring's tail, where the
 * engine does not look; only when all of them are right does the tail move.  No lock, no
 * system call while the engine is awake, and no allocation unless the submission is too
 * large to lie in the ring.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/handle.h"
#include "api/move.h"
#include "api/sequence.h"
#include "command/callback.h"
#include "command/completions.h"
#include "loop/engine.h"
#include "memory/recolor.h"

/* ---- commands ---------------------------------------------------------------------- */

static COLD int buffer_bad(const struct hal_queue *q, const struct hal_buffer *buf,
			   const char *what)
{
	if (!OBJECT_OK(buf, OBJECT_BUFFER)) {
		char text[128];

		(void)object_bad(buf, OBJECT_BUFFER);
		format_text(text, sizeof(text), "%s", hal_last_error());
		return fail(EINVAL, "%s: %s", what, text);
	}
	if (buf->dev != q->dev)
		return fail(EINVAL, "%s: the buffer belongs to another device", what);
	return fail(
		EPERM,
		"%s: the buffer belongs to partition %u \"%s\", the queue to %u \"%s\"",
		what, buf->part->desc.index, buf->part->name, q->home->desc.index,
		q->home->name);
}

/* A destroyed buffer has no user. */
static inline bool buffer_ok(const struct hal_queue *q, const struct hal_buffer *buf)
{
	return buf != NULL && buf->user == q->home;
}

static inline bool range_ok(const struct hal_buffer *buf, uint64_t offset, uint64_t bytes)
{
	return offset <= buf->bytes && bytes <= buf->bytes - offset;
}

static COLD int range_bad(const struct hal_buffer *buf, uint64_t offset, uint64_t bytes,
			  const char *what)
{
	return fail(EINVAL, "%s: %llu bytes at %llu reach past the buffer's %llu", what,
		    U64(bytes), U64(offset), U64(buf->bytes));
}

/* Its placements are to hold the same. */
static inline bool buffer_constant(const struct hal_buffer *buf)
{
	return (buf->flags & (HAL_BUFFER_BIMODAL | HAL_BUFFER_SCRATCH)) ==
	       HAL_BUFFER_BIMODAL;
}

static COLD int constant_bad(const char *what)
{
	return fail(
		EINVAL,
		"%s: the buffer is HAL_BUFFER_BIMODAL without HAL_BUFFER_SCRATCH: only "
		"the host writes to it",
		what);
}

static COLD int launch_bad(const struct hal_queue *q, const struct hal_cmd *cmd)
{
	const struct hal_kernel *k = cmd->launch.kernel;

	if (!OBJECT_OK(k, OBJECT_KERNEL))
		return object_bad(k, OBJECT_KERNEL);
	if (k->user != q->dev)
		return fail(EINVAL, "kernel %s belongs to another device", k->info.name);
	if (cmd->launch.arg_count != k->info.arg_count)
		return fail(EINVAL, "kernel %s takes %u arguments, not %u", k->info.name,
			    k->info.arg_count, cmd->launch.arg_count);
	return fail(EINVAL, "kernel %s: args is NULL", k->info.name);
}

static COLD int arg_bad(const struct hal_queue *q, const struct hal_cmd *cmd,
			const struct hal_arg *arg)
{
	const struct hal_kernel *k = cmd->launch.kernel;
	uint32_t i = (uint32_t)(arg - cmd->launch.args);
	uint64_t need = k->info.arg_bytes[i];
	uint64_t bytes;
	char what[80];

	format_text(what, sizeof(what), "kernel %s, argument %u", k->info.name, i);
	if (arg->buffer == NULL)
		return fail(EINVAL,
			    "%s: a scalar, where a buffer of %llu bytes is needed", what,
			    U64(need));
	if (!buffer_ok(q, arg->buffer))
		return buffer_bad(q, arg->buffer, what);
	if (!range_ok(arg->buffer, arg->offset, arg->bytes))
		return range_bad(arg->buffer, arg->offset, arg->bytes, what);
	bytes = arg->bytes != 0 ? arg->bytes : arg->buffer->bytes - arg->offset;
	return fail(EINVAL, "%s: %llu bytes given, %llu are needed", what, U64(bytes),
		    U64(need));
}

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

static int write_launch(const struct hal_queue *q, const struct hal_cmd *cmd,
			struct record *r)
{
	struct hal_kernel *k = cmd->launch.kernel;
	const struct hal_arg *args = cmd->launch.args;
	uint32_t count = cmd->launch.arg_count;

	if (k == NULL || k->user != q->dev || count != k->info.arg_count ||
	    (count > 0 && args == NULL))
		return launch_bad(q, cmd);
	if (!is_bound(q, k)) {
		int err = program_bind(k->prog, q->home);

		if (err != 0)
			return err;
	}
	write_kernel(cmd, k, count, r);
	if (LIKELY(count <= INLINE_ARGS_MAX) &&
	    LIKELY(write_inline_args(q->home, k, args, count, record_args(r))))
		return 0;
	for (uint32_t i = 0; i < count; i++)
		if (!write_arg(q->home, k, args, record_args(r), i))
			return arg_bad(q, cmd, &args[i]);
	return 0;
}

static int write_copy(const struct hal_queue *q, const struct hal_cmd *cmd,
		      struct record *r)
{
	const struct hal_buffer *dst = cmd->copy.dst, *src = cmd->copy.src;
	uint64_t bytes = cmd->copy.bytes;
	uint64_t to = cmd->copy.dst_offset, from = cmd->copy.src_offset;

	if (!buffer_ok(q, dst))
		return buffer_bad(q, dst, "copy, destination");
	if (!buffer_ok(q, src))
		return buffer_bad(q, src, "copy, source");
	if (bytes == 0)
		return fail(EINVAL, "copy: 0 bytes");
	if (!range_ok(dst, to, bytes))
		return range_bad(dst, to, bytes, "copy, destination");
	if (buffer_constant(dst))
		return constant_bad("copy, destination");
	if (!range_ok(src, from, bytes))
		return range_bad(src, from, bytes, "copy, source");
	if (dst == src && to < from + bytes && from < to + bytes)
		return fail(EINVAL,
			    "copy: %llu bytes at %llu and at %llu of one buffer "
			    "overlap",
			    U64(bytes), U64(from), U64(to));
	r->cmd.copy.dst = dst->bk;
	r->cmd.copy.src = src->bk;
	r->cmd.copy.dst_offset = to;
	r->cmd.copy.src_offset = from;
	r->cmd.copy.bytes = bytes;
	return 0;
}

static int write_fill(const struct hal_queue *q, const struct hal_cmd *cmd,
		      struct record *r)
{
	const struct hal_buffer *dst = cmd->fill.dst;

	if (!buffer_ok(q, dst))
		return buffer_bad(q, dst, "fill");
	if (cmd->fill.bytes == 0 || cmd->fill.bytes % 4 != 0 || cmd->fill.offset % 4 != 0)
		return fail(EINVAL,
			    "fill: %llu bytes at %llu: multiples of 4 are needed, "
			    "and not 0 bytes",
			    U64(cmd->fill.bytes), U64(cmd->fill.offset));
	if (!range_ok(dst, cmd->fill.offset, cmd->fill.bytes))
		return range_bad(dst, cmd->fill.offset, cmd->fill.bytes, "fill");
	if (buffer_constant(dst))
		return constant_bad("fill");
	r->cmd.fill.dst = dst->bk;
	r->cmd.fill.offset = cmd->fill.offset;
	r->cmd.fill.bytes = cmd->fill.bytes;
	r->cmd.fill.pattern = cmd->fill.pattern;
	return 0;
}

static int write_timestamp(const struct hal_queue *q, const struct hal_cmd *cmd,
			   struct record *r)
{
	const struct hal_buffer *dst = cmd->timestamp.dst;

	if ((q->dev->info.caps & HAL_CAP_TIMESTAMP) == 0)
		return fail(ENOTSUP, "%s cannot take timestamps", q->dev->name);
	if (!buffer_ok(q, dst))
		return buffer_bad(q, dst, "timestamp");
	if (cmd->timestamp.offset % 8 != 0)
		return fail(EINVAL, "timestamp: offset %llu is not a multiple of 8",
			    U64(cmd->timestamp.offset));
	if (!range_ok(dst, cmd->timestamp.offset, 8))
		return range_bad(dst, cmd->timestamp.offset, 8, "timestamp");
	if (buffer_constant(dst))
		return constant_bad("timestamp");
	r->cmd.timestamp.dst = dst->bk;
	r->cmd.timestamp.offset = cmd->timestamp.offset;
	return 0;
}

static int write_host(const struct hal_queue *q, const struct hal_cmd *cmd,
		      struct record *r)
{
	if (cmd->host.fn == NULL)
		return fail(EINVAL, "host callback: fn is NULL");
	r->host.fn = cmd->host.fn;
	r->host.user = cmd->host.user;
	return callbacks_start(q->dev);
}

static int write_nothing(const struct hal_queue *q, const struct hal_cmd *cmd,
			 struct record *r)
{
	(void)q, (void)cmd, (void)r;
	return 0;
}

/* By enum hal_op. */
static int (*const writers[])(const struct hal_queue *q, const struct hal_cmd *cmd,
			      struct record *r) = {
	[HAL_OP_NOP] = write_nothing,         [HAL_OP_COPY] = write_copy,
	[HAL_OP_FILL] = write_fill,           [HAL_OP_LAUNCH] = write_launch,
	[HAL_OP_HOST] = write_host,           [HAL_OP_BARRIER] = write_nothing,
	[HAL_OP_TIMESTAMP] = write_timestamp,
};

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
	if (UNLIKELY(cmd->op >= ARRAY_LENGTH(writers)))
		return fail(EINVAL, "hal_cmd.op %u is not an operation", cmd->op);
	write_head(r, cmd->op, cmd->flags, slots, own, now);
	if (LIKELY(cmd->op == HAL_OP_LAUNCH))
		return write_launch(q, cmd, r);
	return writers[cmd->op](q, cmd, r);
}

static inline uint32_t command_slots(const struct hal_cmd *cmd)
{
	return cmd->op == HAL_OP_LAUNCH ? launch_slots(cmd->launch.arg_count) : 1;
}

/* ---- publishing -------------------------------------------------------------------- */

/* The engine is to look at the queue. */
static NOINLINE int announce(struct hal_queue *q)
{
	struct hal_device *dev = q->dev;

	if (dev->virtual_clock) {
		/* Whoever waits is the engine, and reads it then. */
		(void)inbox_put(&dev->inbox, &q->letter);
		return 0;
	}
	engine_post(dev, &q->letter);
	return 0;
}

/* The records up to tail are right: the engine may have them. */
static ALWAYS_INLINE int publish(struct hal_queue *q, unsigned int tail,
				 struct hal_point *done)
{
	uint64_t n = counter_get(&q->submissions) + 1;

	counter_set(&q->submissions, n); /* only this thread writes it */
	if (done != NULL) {
		done->timeline = &q->timeline;
		done->value = n;
	}
	ring_publish(&q->ring, tail);
	return announce_first(&q->announced) ? announce(q) : 0;
}

static NOINLINE int queue_full(const struct hal_queue *q, uint32_t slots)
{
	return fail_lazily(EAGAIN,
			   "queue %llu is full: %llu slots are needed and not free, of "
			   "%llu",
			   q->obj.id, slots, q->slot_count);
}

static NOINLINE int ring_full(const struct hal_completions *c)
{
	return fail_lazily(EAGAIN,
			   "the ring of completions is full: all of its %llu entries are "
			   "in flight or unread",
			   c->size, 0, 0);
}

/* ---- submissions of any shape ------------------------------------------------------ */

static inline const struct hal_cmd *command_at(const struct hal_submit_desc *d,
					       uint32_t i)
{
	const char *base = (const char *)d->cmds;
	uint32_t stride = d->cmd_stride != 0 ? d->cmd_stride : sizeof(struct hal_cmd);

	return (const struct hal_cmd *)(const void *)(base + (size_t)i * stride);
}

static COLD int point_bad(const struct hal_queue *q, const struct hal_point *p,
			  const char *what, uint32_t i)
{
	const struct hal_timeline *t = p->timeline;
	char text[128];

	if (!OBJECT_OK(t, OBJECT_TIMELINE)) {
		(void)object_bad(t, OBJECT_TIMELINE);
		format_text(text, sizeof(text), "%s", hal_last_error());
		return fail(EINVAL, "%s[%u]: %s", what, i, text);
	}
	if (t->dev != q->dev)
		return fail(ENOTSUP, "%s[%u]: the timeline belongs to another device",
			    what, i);
	if (t->queue != NULL || t->partition != NULL)
		return fail(EINVAL,
			    "%s[%u]: the timeline belongs to a queue or partition; only "
			    "its work moves it",
			    what, i);
	return fail(EINVAL, "%s[%u]: every timeline is at 0 already", what, i);
}

static ALWAYS_INLINE int points_check(const struct hal_queue *q,
				      const struct hal_point *points, uint32_t count,
				      const char *what, bool signals)
{
	if (UNLIKELY(points == NULL && count != 0))
		return fail(EINVAL, "hal_submit_desc.%s is NULL, the count is %u", what,
			    count);
	for (uint32_t i = 0; i < count; i++) {
		const struct hal_timeline *t = points[i].timeline;

		if (UNLIKELY(t == NULL || (signals ? t->raiser : t->user) != q->dev ||
			     (signals && points[i].value == 0)))
			return point_bad(q, &points[i], what, i);
	}
	return 0;
}

static COLD int stride_check(const struct hal_submit_desc *d)
{
	if (d->cmd_stride < sizeof(struct hal_cmd) ||
	    d->cmd_stride % _Alignof(struct hal_cmd) != 0)
		return fail(EINVAL,
			    "hal_submit_desc.cmd_stride %u: a hal_cmd has %zu bytes",
			    d->cmd_stride, sizeof(struct hal_cmd));
	for (uint32_t i = 0; i < d->cmd_count; i++) {
		const unsigned char *bytes = (const void *)command_at(d, i);

		for (uint32_t b = sizeof(struct hal_cmd); b < d->cmd_stride; b++)
			if (bytes[b] != 0)
				return fail(E2BIG,
					    "cmds[%u] is of a newer version: byte %u is "
					    "set",
					    i, b);
	}
	return 0;
}

/* 0: nothing is wrong but, perhaps, points. */
static COLD int shape_bad(const struct hal_submit_desc *d)
{
	uint64_t all = (uint64_t)d->cmd_count + d->wait_count + d->signal_count;

	if ((d->flags & ~HAL_SUBMIT_PRIORITY) != 0)
		return fail(EINVAL, "hal_submit_desc.flags 0x%x: only 0x%x is known",
			    d->flags, HAL_SUBMIT_PRIORITY);
	if (d->reserved != 0)
		return fail(EINVAL, "hal_submit_desc.reserved is not 0");
	if (all > HAL_COMMANDS_MAX)
		return fail(
			EINVAL, "%u commands, %u waits and %u signals: %d is the most",
			d->cmd_count, d->wait_count, d->signal_count, HAL_COMMANDS_MAX);
	if (d->cmd_count > 0 && d->cmds == NULL)
		return fail(EINVAL, "hal_submit_desc.cmds is NULL, cmd_count is %u",
			    d->cmd_count);
	return d->cmd_stride != 0 && d->cmd_stride != sizeof(struct hal_cmd)
		       ? stride_check(d)
		       : 0;
}

static bool has_head(const struct hal_submit_desc *d)
{
	return (d->not_before_ns | d->deadline_ns | d->tag | d->flags) != 0;
}

/* Whether what d asks for can be had at once. */
static NOINLINE int asked_check(const struct hal_queue *q,
				const struct hal_submit_desc *d)
{
	uint64_t deadline_ns =
		d->deadline_ns != 0 ? d->deadline_ns : q->usual.deadline_ns;
	uint64_t now;

	if (d->deadline_ns != 0 && q->own_class == HAL_CLASS_BEST_EFFORT)
		return fail(EINVAL,
			    "hal_submit_desc.deadline_ns %llu: queue %u is best effort, "
			    "which has no deadlines",
			    U64(d->deadline_ns), q->obj.id);
	if (d->not_before_ns == 0 || deadline_ns == 0)
		return 0;
	now = hal_device_now(q->dev);
	if (d->not_before_ns <= now || d->not_before_ns - now < deadline_ns)
		return 0;
	return fail(
		EINVAL,
		"hal_submit_desc.not_before_ns %llu is %llu ns away, and the deadline "
		"%llu ns after the submit: it could not be met",
		U64(d->not_before_ns), U64(d->not_before_ns - now), U64(deadline_ns));
}

static ALWAYS_INLINE int shape_check(const struct hal_queue *q,
				     const struct hal_submit_desc *d)
{
	uint64_t all = (uint64_t)d->cmd_count + d->wait_count + d->signal_count;
	int err = 0;

	if (UNLIKELY(((d->flags & ~HAL_SUBMIT_PRIORITY) | d->reserved | d->cmd_stride) !=
			     0 ||
		     d->cmds == NULL || all > HAL_COMMANDS_MAX))
		err = shape_bad(d);
	if (err == 0)
		err = points_check(q, d->waits, d->wait_count, "waits", false);
	if (err == 0)
		err = points_check(q, d->signals, d->signal_count, "signals", true);
	if (UNLIKELY(err == 0 && (d->deadline_ns | d->not_before_ns) != 0))
		err = asked_check(q, d);
	return err;
}

/* Of each kind, with which a command surely has room in a ring. */
#define FEW_POINTS 4u

/* Where records go: the ring, whose positions wrap, or a block, whose do not. */
struct target {
	struct record *base;
	unsigned int pos, mask;
	uint32_t own; /* of all of them */
	uint64_t now;
	struct record *last;
};

static inline struct record *target_next(struct target *to, uint32_t slots)
{
	struct record *r = &to->base[to->pos & to->mask];

	to->pos += slots;
	to->last = r;
	return r;
}

static ALWAYS_INLINE struct hal_point pending_point(const struct hal_point *p)
{
	atomic_fetch_add_explicit(&p->timeline->pending, 1, memory_order_relaxed);
	return *p;
}

/* From here on they pend. */
static ALWAYS_INLINE void write_points(const struct hal_point *points, uint32_t count,
				       uint32_t op, struct target *to)
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

/* Nothing comes of the submission. */
static COLD int waits_undone(const struct hal_submit_desc *d, int err)
{
	for (uint32_t i = 0; i < d->wait_count; i++)
		atomic_fetch_sub(&d->waits[i].timeline->pending, 1);
	return err;
}

static void write_asked(const struct hal_submit_desc *d, struct target *to)
{
	struct record *r = target_next(to, 1);

	write_head(r, REC_HEAD, 0, 1, to->own, to->now);
	r->head.not_before_ns = d->not_before_ns;
	r->head.deadline_ns = d->deadline_ns;
	r->head.tag = d->tag;
	r->head.priority = d->priority;
	r->head.flags = d->flags;
}

/* Says which of several commands was wrong. */
static COLD int in_command(uint32_t i, int err)
{
	char text[400];

	format_text(text, sizeof(text), "%s", hal_last_error());
	return fail(err, "cmds[%u]: %s", i, text);
}

static int write_commands(const struct hal_queue *q, const struct hal_submit_desc *d,
			  struct target *to)
{
	for (uint32_t i = 0; i < d->cmd_count; i++) {
		const struct hal_cmd *cmd = command_at(d, i);
		uint32_t slots = command_slots(cmd);
		struct record *r = target_next(to, slots);
		int err = write_command(q, cmd, slots, to->own, to->now, r);

		if (UNLIKELY(err != 0))
			return d->cmd_count > 1 ? in_command(i, err) : err;
	}
	return 0;
}

/* Slots of all commands; *largest of one.  -EINVAL. */
static int count_slots(const struct hal_submit_desc *d, uint32_t *slots,
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

static struct block *block_alloc(uint32_t slots)
{
	struct block *b = malloc(sizeof(*b) + slots * sizeof(struct record));

	if (b == NULL) {
		(void)fail(ENOMEM, "no memory for a submission of %u slots", slots);
		return NULL;
	}
	atomic_init(&b->refs, 1);
	b->slots = slots;
	return b;
}

static struct target target_block(struct block *b)
{
	return (struct target){.base = b->rec, .mask = ~0u, .own = REC_INNER};
}

int block_make(const struct hal_queue *q, const struct hal_submit_desc *d,
	       struct block **out)
{
	uint32_t slots = 0, largest = 0;
	struct target to;
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

static int write_block(struct hal_queue *q, const struct hal_submit_desc *d,
		       uint32_t slots, struct target *to)
{
	struct block *b = block_alloc(slots);
	struct target in;
	struct record *r;
	int err;

	if (b == NULL)
		return -ENOMEM;
	in = target_block(b);
	write_points(d->waits, d->wait_count, REC_WAIT, &in);
	err = write_commands(q, d, &in);
	if (err != 0) {
		free(b);
		return waits_undone(d, err);
	}
	write_points(d->signals, d->signal_count, REC_SIGNAL, &in);
	r = target_next(to, 1);
	write_head(r, REC_BLOCK, 0, 1, 0, to->now);
	r->block = b;
	return 0;
}

/* All that is in the ring behind the tail is one submission. */
static int submit_written(struct hal_queue *q, const struct target *to, uint32_t commands,
			  struct hal_point *done)
{
	if (to->last == NULL)
		__builtin_unreachable(); /* a submission has a command at least */
	to->last->own |= REC_END;
	counter_set(&q->more_commands, counter_get(&q->more_commands) + commands - 1);
	return publish(q, to->pos, done);
}

static struct target target_ring(struct hal_queue *q)
{
	return (struct target){
		.base = q->slots,
		.pos = q->ring.p_tail,
		.mask = q->ring.mask,
		.now = atomic_load_explicit(&q->dev->now_cached, memory_order_relaxed),
	};
}

/* Room for slots more.  Where the engine was when we last looked is enough to know most
 * of the time, and does not make its cache line travel. */
static ALWAYS_INLINE bool has_room_to(struct hal_queue *q, unsigned int end)
{
	if (LIKELY((int)(q->ring_limit - end) >= 0))
		return true;
	q->ring_limit = ring_head(&q->ring) + q->ring.size;
	return (int)(q->ring_limit - end) >= 0;
}

static inline bool has_room(struct hal_queue *q, uint32_t slots)
{
	return has_room_to(q, q->ring.p_tail + slots);
}

static const struct hal_cmd barrier = {.op = HAL_OP_BARRIER};

static NOINLINE int submit_any(struct hal_queue *q, const struct hal_submit_desc *d,
			       struct hal_point *done)
{
	struct target to = target_ring(q);
	uint32_t slots = point_slots(d->wait_count) + point_slots(d->signal_count);
	uint32_t largest = 0;
	bool head = has_head(d), block;
	struct hal_submit_desc nothing;
	int err = shape_check(q, d);

	if (UNLIKELY(err != 0))
		return err;
	if (UNLIKELY((d->cmd_count | d->wait_count | d->signal_count) == 0)) {
		/* Nothing, in order. */
		nothing = *d;
		nothing.cmds = &barrier;
		nothing.cmd_count = 1;
		nothing.cmd_stride = 0;
		d = &nothing;
	}
	err = count_slots(d, &slots, &largest);
	if (UNLIKELY(err != 0))
		return err;
	/* What an empty ring could hardly hold does not wait for room in it. */
	block = largest > RECORD_SLOTS_MAX || slots > q->slot_count / 2;
	if (UNLIKELY(!has_room(q, (block ? 1 : slots) + head)))
		return queue_full(q, (block ? 1 : slots) + head);
	if (head)
		write_asked(d, &to);
	if (UNLIKELY(block)) {
		err = write_block(q, d, slots, &to);
		if (err != 0)
			return err;
	} else {
		write_points(d->waits, d->wait_count, REC_WAIT, &to);
		err = write_commands(q, d, &to);
		if (UNLIKELY(err != 0))
			return waits_undone(d, err);
		write_points(d->signals, d->signal_count, REC_SIGNAL, &to);
	}
	return submit_written(q, &to, d->cmd_count, done);
}

/* One command, which asks for nothing but points.  points: a constant, whether for any.
 */
static ALWAYS_INLINE int submit_one(struct hal_queue *q, const struct hal_submit_desc *d,
				    struct hal_point *done, bool points)
{
	const struct hal_cmd *cmd = d->cmds;
	uint32_t waits = points ? d->wait_count : 0;
	uint32_t signals = points ? d->signal_count : 0;
	struct target to = target_ring(q);
	uint32_t slots = 1, all;
	int err;

	if (cmd->op == HAL_OP_LAUNCH)
		slots = launch_slots(cmd->launch.arg_count);
	/* More may have to lie elsewhere. */
	if (UNLIKELY(slots > RECORD_SLOTS_MAX || waits > FEW_POINTS ||
		     signals > FEW_POINTS))
		return submit_any(q, d, done);
	err = points_check(q, d->waits, waits, "waits", false);
	if (LIKELY(err == 0))
		err = points_check(q, d->signals, signals, "signals", true);
	if (UNLIKELY(err != 0))
		return err;
	all = slots + point_slots(waits) + point_slots(signals);
	if (UNLIKELY(!has_room(q, all)))
		return queue_full(q, all);
	to.own = REC_WHOLE;
	write_points(d->waits, waits, REC_WAIT, &to);
	err = write_command(q, cmd, slots, to.own, to.now, target_next(&to, slots));
	if (UNLIKELY(err != 0))
		return points ? waits_undone(d, err) : err;
	write_points(d->signals, signals, REC_SIGNAL, &to);
	to.last->own |= REC_END;
	return publish(q, to.pos, done);
}

static NOINLINE int submit_pointed(struct hal_queue *q, const struct hal_submit_desc *d,
				   struct hal_point *done)
{
	return submit_one(q, d, done, true);
}

static NOINLINE int submit_plain(struct hal_queue *q, const struct hal_submit_desc *d,
				 struct hal_point *done)
{
	return submit_one(q, d, done, false);
}

/* ---- hal_submit -------------------------------------------------------------------- */

static COLD int submit_refused(const struct hal_queue *q)
{
	const char *text;
	int err;

	if (!OBJECT_OK(q, OBJECT_QUEUE))
		return object_bad(q, OBJECT_QUEUE);
	err = device_alive(q->dev);
	if (err != 0)
		return err;
	err = timeline_error(&q->timeline);
	text = timeline_text(&q->timeline);
	return fail(err != 0 ? err : -ECANCELED, "%s",
		    text != NULL ? text : hal_strerror(err));
}

/* With a place in the ring of completions, if there is one. */
static NOINLINE int submit_notified(struct hal_queue *q, const struct hal_submit_desc *d,
				    struct hal_point *done)
{
	int err;

	if (!completions_take(q->completions))
		return ring_full(q->completions);
	err = submit_any(q, d, done);
	if (err != 0)
		completions_untake(q->completions);
	return err;
}

/* What q answers to work: 0, it takes it. */
static int open_check(const struct hal_queue *q)
{
	uint32_t open =
		q != NULL ? atomic_load_explicit(&q->open, memory_order_acquire) : 0;

	return open == QUEUE_OPEN || open == QUEUE_OPEN_TELLS ? 0 : submit_refused(q);
}

static NOINLINE int submit_other(struct hal_queue *q, const struct hal_submit_desc *desc,
				 struct hal_point *done)
{
	const struct hal_submit_desc *d = desc;
	struct hal_submit_desc ours;
	int err = open_check(q);

	if (UNLIKELY(err != 0))
		return err;
	if (UNLIKELY(desc == NULL || desc->size != sizeof(ours))) {
		err = import_struct(&ours, sizeof(ours),
				    offsetof(struct hal_submit_desc, not_before_ns), desc,
				    "hal_submit_desc");
		if (err != 0)
			return err;
		d = &ours;
	}
	return q->completions != NULL ? submit_notified(q, d, done)
				      : submit_any(q, d, done);
}

/* What the usual submission looks like, compared eight bytes at a time. */
static const uint32_t usual_head[2] = {sizeof(struct hal_submit_desc), 0 /* flags */};
static const uint32_t usual_count[2] = {1, 0 /* cmd_stride */};

_Static_assert(offsetof(struct hal_submit_desc, flags) == 4 &&
		       offsetof(struct hal_submit_desc, cmd_stride) ==
			       offsetof(struct hal_submit_desc, cmd_count) + 4 &&
		       offsetof(struct hal_submit_desc, signal_count) ==
			       offsetof(struct hal_submit_desc, wait_count) + 4 &&
		       offsetof(struct hal_submit_desc, reserved) ==
			       offsetof(struct hal_submit_desc, priority) + 4,
	       "the pairs that are compared");

/* One command that asks for nothing, but perhaps points. */
static ALWAYS_INLINE bool is_usual(const struct hal_submit_desc *d)
{
	uint64_t last;

	memcpy(&last, &d->priority, sizeof(last));
	return memcmp(&d->size, usual_head, 8) == 0 &&
	       memcmp(&d->cmd_count, usual_count, 8) == 0 &&
	       (d->not_before_ns | d->deadline_ns | d->tag | last) == 0;
}

static ALWAYS_INLINE bool has_points(const struct hal_submit_desc *d)
{
	uint64_t counts;

	memcpy(&counts, &d->wait_count, sizeof(counts));
	return counts != 0;
}

int hal_submit(struct hal_queue *q, const struct hal_submit_desc *d,
	       struct hal_point *done)
{
	const struct hal_cmd *cmd;
	struct hal_kernel *k;
	struct hal_device *dev;
	struct record *r;
	unsigned int tail, end;
	uint32_t count;

	/* Alive, this process's, not failed, and nobody else is told. */
	if (UNLIKELY(q == NULL ||
		     atomic_load_explicit(&q->open, memory_order_acquire) != QUEUE_OPEN ||
		     d == NULL || !is_usual(d) || d->cmds == NULL))
		return submit_other(q, d, done);
	cmd = d->cmds;
	if (has_points(d))
		return submit_pointed(q, d, done);
	if (cmd->op != HAL_OP_LAUNCH)
		return submit_plain(q, d, done);
	/* A launch whose arguments lie in the ring is written without a loop; what is
	 * wrong with it is found out by the general way. */
	k = cmd->launch.kernel;
	dev = q->dev;
	count = cmd->launch.arg_count;
	if (UNLIKELY((cmd->flags & ~HAL_CMD_REPLAYABLE) != 0 || k == NULL ||
		     k->user != dev || k->inline_args != count || !is_bound(q, k) ||
		     cmd->launch.args == NULL))
		return submit_other(q, d, done);
	tail = q->ring.p_tail;
	end = tail + k->slots;
	if (UNLIKELY(!has_room_to(q, end)))
		return queue_full(q, k->slots);
	r = &q->slots[tail & q->ring.mask];
	r->cmd.op = HAL_OP_LAUNCH;
	r->cmd.flags = k->flags | cmd->flags;
	r->submit_ns = atomic_load_explicit(&dev->now_cached, memory_order_relaxed);
	write_kernel(cmd, k, count, r);
	if (UNLIKELY(!write_inline_args(q->home, k, cmd->launch.args, count,
					record_args(r))))
		return submit_other(q, d, done);
	return publish(q, end, done);
}

/* ---- buffers that move ------------------------------------------------------------- */

enum { RECOLOR_SLOTS = 3, PIECES_MAX = 65536 };

int recolor_room(struct hal_queue *q)
{
	int err = open_check(q);

	if (err != 0)
		return err;
	if (!has_room(q, RECOLOR_SLOTS))
		return queue_full(q, RECOLOR_SLOTS);
	if (q->completions != NULL && !completions_take(q->completions))
		return ring_full(q->completions);
	return 0;
}

void recolor_no_room(const struct hal_queue *q)
{
	if (q->completions != NULL)
		completions_untake(q->completions);
}

/* What one channel carries in about a microsecond: it may be read from one and written to
 * one, and others of the partition are to come in between. */
static uint64_t piece_bytes(const struct hal_device *dev)
{
	enum { PIECES_A_SECOND = 1000000, GRAIN = 4096, UNKNOWN = 16384 };
	uint64_t bytes;

	if (dev->info.bandwidth == 0 || dev->info.colors == 0)
		return UNKNOWN;
	bytes = dev->info.bandwidth / dev->info.colors / PIECES_A_SECOND;
	return bytes < GRAIN ? GRAIN : bytes / GRAIN * GRAIN;
}

static void write_piece(const struct recolor *m, uint64_t at, uint64_t most,
			struct target *to)
{
	struct record *r = target_next(to, 1);
	uint64_t left = m->buf->bytes - at;

	write_head(r, HAL_OP_COPY, HAL_CMD_REPLAYABLE, 1, to->own, to->now);
	r->cmd.copy.dst = m->to;
	r->cmd.copy.src = m->buf->bk;
	r->cmd.copy.dst_offset = at;
	r->cmd.copy.src_offset = at;
	r->cmd.copy.bytes = left < most ? left : most;
}

int recolor_submit(struct recolor *m, struct hal_point *done)
{
	struct hal_queue *q = m->queue;
	uint64_t piece = piece_bytes(q->dev), bytes = m->buf->bytes;
	uint64_t pieces = (bytes + piece - 1) / piece;
	struct target to, in;
	struct record *r;
	struct block *b;

	/* More would be more records than memory. */
	for (; pieces > PIECES_MAX; pieces = (bytes + piece - 1) / piece)
		piece *= 2;
	b = block_alloc((uint32_t)pieces);
	if (b == NULL)
		return -ENOMEM;
	to = target_ring(q);
	in = target_block(b);
	r = target_next(&to, 1);
	write_head(r, REC_RECOLOR, 0, 1, 0, to.now);
	r->recolor = m;
	for (uint64_t at = 0; at < bytes; at += piece)
		write_piece(m, at, piece, &in);
	m->block = b;
	r = target_next(&to, 1);
	write_head(r, REC_BLOCK, 0, 1, 0, to.now);
	r->block = b;
	r = target_next(&to, 1);
	write_head(r, REC_RECOLORED, 0, 1, 0, to.now);
	r->recolor = m;
	m->refs = 2;
	return submit_written(q, &to, (uint32_t)pieces, done);
}

/* ---- recorded sequences ------------------------------------------------------------ */

static uint32_t sequence_slots(const struct hal_submit_desc *d)
{
	return 1 + point_slots(d->wait_count) + point_slots(d->signal_count) +
	       has_head(d);
}

static NOINLINE int sequence_notified(struct hal_queue *q, struct block *b,
				      uint32_t commands, const struct hal_submit_desc *d,
				      struct hal_point *done)
{
	struct target to = target_ring(q);
	uint32_t slots = sequence_slots(d);
	struct record *r;

	if (UNLIKELY(!has_room(q, slots)))
		return queue_full(q, slots);
	if (has_head(d))
		write_asked(d, &to);
	write_points(d->waits, d->wait_count, REC_WAIT, &to);
	r = target_next(&to, 1);
	write_head(r, REC_BLOCK, 0, 1, 0, to.now);
	r->block = b;
	write_points(d->signals, d->signal_count, REC_SIGNAL, &to);
	atomic_fetch_add_explicit(&b->refs, 1, memory_order_relaxed);
	return submit_written(q, &to, commands, done);
}

static int sequence_check(const struct hal_queue *q, const struct hal_sequence *seq)
{
	int err = open_check(q);

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
			    "hal_submit_desc.cmd_count %u: the sequence has the commands",
			    d->cmd_count);
	return fail(EINVAL,
		    "%u waits and %u signals take %u slots beside the sequence's: %u "
		    "is the most",
		    d->wait_count, d->signal_count, sequence_slots(d) - 1,
		    q->slot_count / 2 - 1);
}

int hal_sequence_submit(struct hal_queue *q, struct hal_sequence *seq,
			const struct hal_submit_desc *desc, struct hal_point *done)
{
	static const struct hal_submit_desc plain = HAL_INIT(hal_submit_desc);
	struct hal_submit_desc d = plain;
	int err = sequence_check(q, seq);

	if (err == 0 && desc != NULL)
		err = import_struct(&d, sizeof(d),
				    offsetof(struct hal_submit_desc, not_before_ns), desc,
				    "hal_submit_desc");
	if (err == 0)
		err = shape_check(q, &d);
	if (err == 0 && (d.cmd_count != 0 || sequence_slots(&d) > q->slot_count / 2))
		err = sequence_desc_bad(q, &d);
	if (err != 0)
		return err;
	if (q->completions != NULL && !completions_take(q->completions))
		return ring_full(q->completions);
	err = sequence_notified(q, seq->block, seq->commands, &d, done);
	if (err != 0 && q->completions != NULL)
		completions_untake(q->completions);
	return err;
}
