/* SPDX-License-Identifier: Apache-2.0 */
/*
 * submit.c - from a description of work to records in a queue's ring.
 *
 * Everything is checked while the records are written behind the ring's tail, where the
 * engine does not look; only when all of them are right does the tail move.  No lock, no
 * system call while the engine is awake, and no allocation unless the submission is too
 * large to lie in the ring.
 */
#include "internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define U64(x)        ((unsigned long long)(x))
#define ALWAYS_INLINE inline __attribute__((always_inline))

/* ---- commands -------------------------------------------------------------------------
 */

static __attribute__((cold, noinline)) int
buffer_bad(const struct hal_queue *q, const struct hal_buffer *buf, const char *what)
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
		what, buf->part->desc.index, buf->part->name, q->part->desc.index,
		q->part->name);
}

/* A destroyed buffer has no user. */
static inline bool buffer_ok(const struct hal_queue *q, const struct hal_buffer *buf)
{
	return buf != NULL && buf->user == q->part;
}

static inline bool range_ok(const struct hal_buffer *buf, uint64_t offset, uint64_t bytes)
{
	return offset <= buf->bytes && bytes <= buf->bytes - offset;
}

static __attribute__((cold, noinline)) int
range_bad(const struct hal_buffer *buf, uint64_t offset, uint64_t bytes, const char *what)
{
	return fail(EINVAL, "%s: %llu bytes at %llu reach past the buffer's %llu", what,
		    U64(bytes), U64(offset), U64(buf->bytes));
}

static __attribute__((cold, noinline)) int launch_bad(const struct hal_queue *q,
						      const struct hal_cmd *cmd)
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

static __attribute__((cold, noinline)) int
arg_bad(const struct hal_queue *q, const struct hal_cmd *cmd, const struct hal_arg *arg)
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
	uint64_t offset = args[i].offset;
	uint64_t bytes = args[i].bytes;
	uint64_t left;

	out[i].value = offset;
	if (LIKELY(buf != NULL)) {
		left = buf->bytes;
		if (UNLIKELY(buf->user != part || offset > left))
			return false;
		left -= offset;
		if (UNLIKELY(bytes > left))
			return false;
		if (bytes == 0)
			bytes = left;
		out[i].mem = buf->bk;
	} else {
		bytes = 0;
		out[i].mem = NULL;
	}
	out[i].bytes = bytes;
	return LIKELY(bytes >= k->info.arg_bytes[i]);
}

static ALWAYS_INLINE void write_groups(uint32_t *out, const uint32_t *groups)
{
	if (LIKELY((groups[0] | groups[1] | groups[2]) == 0)) {
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

static int write_launch(const struct hal_queue *q, const struct hal_cmd *cmd,
			struct record *r)
{
	struct hal_kernel *k = cmd->launch.kernel;
	uint32_t count = cmd->launch.arg_count;

	if (k == NULL || k->user != q->dev || count != k->info.arg_count ||
	    (count > 0 && cmd->launch.args == NULL))
		return launch_bad(q, cmd);
	if (!is_bound(q, k)) {
		int err = program_bind(k->prog, q->part);

		if (err != 0)
			return err;
	}
	r->launch.kernel = k;
	r->cmd.launch.kernel = k->bk;
	r->cmd.launch.args = record_args(r);
	r->cmd.launch.arg_count = count;
	write_groups(r->cmd.launch.groups, cmd->launch.groups);
	for (uint32_t i = 0; i < count; i++)
		if (!write_arg(q->part, k, cmd->launch.args, record_args(r), i))
			return arg_bad(q, cmd, &cmd->launch.args[i]);
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
	r->cmd.timestamp.dst = dst->bk;
	r->cmd.timestamp.offset = cmd->timestamp.offset;
	return 0;
}

static int write_other(const struct hal_queue *q, const struct hal_cmd *cmd,
		       struct record *r)
{
	switch (cmd->op) {
	case HAL_OP_COPY:
		return write_copy(q, cmd, r);
	case HAL_OP_FILL:
		return write_fill(q, cmd, r);
	case HAL_OP_TIMESTAMP:
		return write_timestamp(q, cmd, r);
	case HAL_OP_HOST:
		if (cmd->host.fn == NULL)
			return fail(EINVAL, "host callback: fn is NULL");
		r->host.fn = cmd->host.fn;
		r->host.user = cmd->host.user;
		return 0;
	case HAL_OP_NOP:
	case HAL_OP_BARRIER:
		return 0;
	default:
		return fail(EINVAL, "hal_cmd.op %u is not an operation", cmd->op);
	}
}

static void write_head(struct record *r, uint32_t op, uint32_t flags, uint32_t slots,
		       uint8_t own, uint64_t now)
{
	r->cmd.op = op;
	r->cmd.flags = record_flags(flags, slots, own);
	r->submit_ns = now;
}

/* One command into r, where slots slots are free. */
static int write_command(const struct hal_queue *q, const struct hal_cmd *cmd,
			 uint32_t slots, uint8_t own, uint64_t now, struct record *r)
{
	if (UNLIKELY((cmd->flags & ~HAL_CMD_REPLAYABLE) != 0))
		return fail(EINVAL, "hal_cmd.flags 0x%x: only 0x%x is known", cmd->flags,
			    HAL_CMD_REPLAYABLE);
	write_head(r, cmd->op, cmd->flags, slots, own, now);
	return cmd->op == HAL_OP_LAUNCH ? write_launch(q, cmd, r)
					: write_other(q, cmd, r);
}

static inline uint32_t command_slots(const struct hal_cmd *cmd)
{
	return cmd->op == HAL_OP_LAUNCH ? launch_slots(cmd->launch.arg_count) : 1;
}

/* ---- publishing
 * ------------------------------------------------------------------------------ */

/* The queue goes onto the device's ready list. */
static __attribute__((noinline)) int announce(struct hal_queue *q)
{
	struct hal_device *dev = q->dev;
	struct hal_queue *head = atomic_load_explicit(&dev->ready, memory_order_relaxed);

	do
		q->ready_next = head;
	while (!atomic_compare_exchange_weak(&dev->ready, &head, q));
	if (UNLIKELY(atomic_load(&dev->sleeping) != 0))
		engine_wake(dev);
	return 0;
}

/* The records up to tail are right: the engine may have them. */
static ALWAYS_INLINE int publish(struct hal_queue *q, unsigned int tail,
				 struct hal_point *done)
{
	/* Only this thread writes it. */
	uint64_t n = atomic_load_explicit(&q->submissions, memory_order_relaxed) + 1;

	atomic_store_explicit(&q->submissions, n, memory_order_relaxed);
	if (done != NULL) {
		done->timeline = &q->timeline;
		done->value = n;
	}
	ring_publish(q, tail);
	/* Full barrier: either the engine sees the new tail or we see the flag it has
	 * cleared before looking. */
	return atomic_exchange(&q->on_ready, 1) != 0 ? 0 : announce(q);
}

static __attribute__((cold, noinline)) int queue_full(const struct hal_queue *q,
						      uint32_t slots)
{
	return fail(EAGAIN, "queue %u is full: %u slots are needed and not free, of %u",
		    q->obj.id, slots, q->slot_count);
}

/* ---- submissions of any shape
 * ------------------------------------------------------------------ */

static const struct hal_cmd *command_at(const struct hal_submit_desc *d, uint32_t i)
{
	const char *base = (const char *)d->cmds;
	uint32_t stride = d->cmd_stride != 0 ? d->cmd_stride : sizeof(struct hal_cmd);

	return (const struct hal_cmd *)(const void *)(base + (size_t)i * stride);
}

static int points_check(const struct hal_queue *q, const struct hal_point *points,
			uint32_t count, const char *what, bool signals)
{
	if (count > 0 && points == NULL)
		return fail(EINVAL, "hal_submit_desc.%s is NULL, the count is %u", what,
			    count);
	for (uint32_t i = 0; i < count; i++) {
		const struct hal_timeline *t = points[i].timeline;

		if (!OBJECT_OK(t, OBJECT_TIMELINE)) {
			char text[128];

			(void)object_bad(t, OBJECT_TIMELINE);
			format_text(text, sizeof(text), "%s", hal_last_error());
			return fail(EINVAL, "%s[%u]: %s", what, i, text);
		}
		if (t->dev != q->dev)
			return fail(ENOTSUP,
				    "%s[%u]: the timeline belongs to another device",
				    what, i);
		if (signals && (t->queue != NULL || t->partition != NULL))
			return fail(EINVAL,
				    "%s[%u]: the timeline belongs to a queue or "
				    "partition; only its work moves it",
				    what, i);
		if (signals && points[i].value == 0)
			return fail(EINVAL, "%s[%u]: every timeline is at 0 already",
				    what, i);
	}
	return 0;
}

static int shape_check(const struct hal_queue *q, const struct hal_submit_desc *d)
{
	uint64_t all = (uint64_t)d->cmd_count + d->wait_count + d->signal_count;
	int err;

	if (d->flags != 0)
		return fail(EINVAL, "hal_submit_desc.flags 0x%x: none are known",
			    d->flags);
	if (all > HAL_COMMANDS_MAX)
		return fail(
			EINVAL, "%u commands, %u waits and %u signals: %d is the most",
			d->cmd_count, d->wait_count, d->signal_count, HAL_COMMANDS_MAX);
	if (d->cmd_count > 0 && d->cmds == NULL)
		return fail(EINVAL, "hal_submit_desc.cmds is NULL, cmd_count is %u",
			    d->cmd_count);
	if (d->cmd_stride != 0 && (d->cmd_stride < sizeof(struct hal_cmd) ||
				   d->cmd_stride % _Alignof(struct hal_cmd) != 0))
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
	err = points_check(q, d->waits, d->wait_count, "waits", false);
	if (err == 0)
		err = points_check(q, d->signals, d->signal_count, "signals", true);
	return err;
}

/* Where records go: the ring, whose positions wrap, or a block, whose do not. */
struct place {
	struct record *base;
	unsigned int pos, mask;
	uint8_t own; /* of all of them */
};

static void write_points(const struct hal_point *points, uint32_t count, uint32_t op,
			 uint64_t now, struct place *to, struct record **last)
{
	for (uint32_t i = 0; i < count; i++) {
		struct record *r = &to->base[to->pos++ & to->mask];

		write_head(r, op, 0, 1, to->own, now);
		r->point.timeline = points[i].timeline;
		r->point.value = points[i].value;
		*last = r;
	}
}

/* Says which of several commands was wrong. */
static __attribute__((cold, noinline)) int in_command(uint32_t i, int err)
{
	return fail(err, "cmds[%u]: %s", i, hal_last_error());
}

/* All records of d, of which there is at least one. */
static int write_all(const struct hal_queue *q, const struct hal_submit_desc *d,
		     uint64_t now, struct place to)
{
	struct record *last = NULL;

	write_points(d->waits, d->wait_count, REC_WAIT, now, &to, &last);
	for (uint32_t i = 0; i < d->cmd_count; i++) {
		const struct hal_cmd *cmd = command_at(d, i);
		uint32_t slots = command_slots(cmd);
		int err;

		last = &to.base[to.pos & to.mask];
		err = write_command(q, cmd, slots, to.own, now, last);
		if (err != 0)
			return d->cmd_count > 1 ? in_command(i, err) : err;
		to.pos += slots;
	}
	write_points(d->signals, d->signal_count, REC_SIGNAL, now, &to, &last);
	last->own |= REC_END;
	return 0;
}

static void points_pend(const struct hal_point *points, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		atomic_fetch_add(&points[i].timeline->pending, 1);
}

static int submit_block(struct hal_queue *q, const struct hal_submit_desc *d,
			uint32_t slots, uint64_t now)
{
	struct record *r = &q->slots[q->ring.p_tail & (q->slot_count - 1)];
	struct block *block;
	int err;

	block = malloc(sizeof(struct block) + slots * sizeof(struct record));
	if (block == NULL)
		return fail(ENOMEM, "no memory for a submission of %u slots", slots);
	block->slots = slots;
	err = write_all(q, d, now, (struct place){block->rec, 0, ~0u, REC_INNER});
	if (err != 0) {
		free(block);
		return err;
	}
	write_head(r, REC_BLOCK, 0, 1, 0, now);
	r->block = block;
	return 0;
}

static __attribute__((noinline)) int
submit_any(struct hal_queue *q, const struct hal_submit_desc *d, struct hal_point *done)
{
	uint64_t now = atomic_load_explicit(&q->dev->now_cached, memory_order_relaxed);
	const struct hal_cmd nop = {.op = HAL_OP_BARRIER};
	struct hal_submit_desc nothing;
	uint32_t slots = 0, largest = 0, commands = d->cmd_count;
	int err = shape_check(q, d);

	if (err != 0)
		return err;
	if (d->cmd_count + d->signal_count + d->wait_count == 0) {
		/* Nothing, in order. */
		nothing = *d;
		nothing.cmds = &nop;
		nothing.cmd_count = 1;
		d = &nothing;
		commands = 1;
	}
	for (uint32_t i = 0; i < d->cmd_count; i++) {
		const struct hal_cmd *cmd = command_at(d, i);
		uint32_t n;

		if (cmd->op == HAL_OP_LAUNCH && cmd->launch.arg_count > HAL_ARGS_MAX)
			return fail(EINVAL, "cmds[%u]: %u arguments, %d is the most", i,
				    cmd->launch.arg_count, HAL_ARGS_MAX);
		n = command_slots(cmd);
		slots += n;
		if (n > largest)
			largest = n;
	}
	slots += d->wait_count + d->signal_count;
	/* What an empty ring could hardly hold does not wait for room in it. */
	if (largest > RECORD_SLOTS_MAX || slots > q->slot_count / 2) {
		if (ring_room(q) < 1)
			return queue_full(q, 1);
		err = submit_block(q, d, slots, now);
		slots = 1;
	} else {
		if (ring_room(q) < slots)
			return queue_full(q, slots);
		err = write_all(
			q, d, now,
			(struct place){q->slots, q->ring.p_tail, q->slot_count - 1, 0});
	}
	if (err != 0)
		return err;
	points_pend(d->waits, d->wait_count);
	points_pend(d->signals, d->signal_count);
	atomic_store_explicit(
		&q->more_commands,
		atomic_load_explicit(&q->more_commands, memory_order_relaxed) + commands -
			1,
		memory_order_relaxed);
	return publish(q, q->ring.p_tail + slots, done);
}

static __attribute__((cold, noinline)) int submit_failed(const struct hal_queue *q,
							 int err)
{
	return fail(err, "%s",
		    q->timeline.text != NULL ? q->timeline.text : hal_strerror(err));
}

static __attribute__((noinline)) int submit_other(struct hal_queue *q,
						  const struct hal_submit_desc *desc,
						  struct hal_point *done)
{
	struct hal_submit_desc d;
	int err;

	if (!OBJECT_OK(q, OBJECT_QUEUE))
		return object_bad(q, OBJECT_QUEUE);
	err = atomic_load_explicit(&q->timeline.err, memory_order_acquire);
	if (err != 0)
		return submit_failed(q, err);
	err = import_struct(&d, sizeof(d), sizeof(d), desc, "hal_submit_desc");
	return err != 0 ? err : submit_any(q, &d, done);
}

/* What the usual submission looks like, compared eight bytes at a time. */
static const uint32_t usual_head[2] = {sizeof(struct hal_submit_desc), 0 /* flags */};
static const uint32_t usual_count[2] = {1, 0 /* cmd_stride */};
static const uint32_t usual_points[2] = {0 /* waits */, 0 /* signals */};

_Static_assert(offsetof(struct hal_submit_desc, flags) == 4 &&
		       offsetof(struct hal_submit_desc, cmd_stride) ==
			       offsetof(struct hal_submit_desc, cmd_count) + 4 &&
		       offsetof(struct hal_submit_desc, signal_count) ==
			       offsetof(struct hal_submit_desc, wait_count) + 4,
	       "the pairs that is_usual compares");

static ALWAYS_INLINE bool is_usual(const struct hal_submit_desc *d)
{
	return d != NULL && memcmp(&d->size, usual_head, 8) == 0 &&
	       memcmp(&d->cmd_count, usual_count, 8) == 0 &&
	       memcmp(&d->wait_count, usual_points, 8) == 0;
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

/* The usual submission is written here; any other, and any that is wrong, goes through
 * submit_other. */
int hal_submit(struct hal_queue *q, const struct hal_submit_desc *d,
	       struct hal_point *done)
{
	const struct hal_cmd *cmd;
	struct hal_device *dev;
	struct hal_kernel *k;
	struct record *r;
	unsigned int tail, end;
	uint32_t count;

	if (UNLIKELY(q == NULL ||
		     atomic_load_explicit(&q->open, memory_order_acquire) != QUEUE_OPEN ||
		     !is_usual(d)))
		return submit_other(q, d, done);
	cmd = d->cmds;
	if (UNLIKELY(cmd == NULL || cmd->op != HAL_OP_LAUNCH ||
		     (cmd->flags & ~HAL_CMD_REPLAYABLE) != 0))
		return submit_other(q, d, done);
	k = cmd->launch.kernel;
	dev = q->dev;
	count = cmd->launch.arg_count;
	if (UNLIKELY(k == NULL || k->user != dev || k->inline_args != count ||
		     !is_bound(q, k) || cmd->launch.args == NULL))
		return submit_other(q, d, done);
	tail = q->ring.p_tail;
	end = tail + k->slots;
	/* Where the engine was when we last looked is enough to know most of the time,
	 * and does not make its cache line travel. */
	if (UNLIKELY((int)(q->ring_limit - end) < 0)) {
		q->ring_limit = ring_head(q) + q->ring.size;
		if ((int)(q->ring_limit - end) < 0)
			return submit_other(q, d, done);
	}
	r = &q->slots[tail & q->ring.mask];
	r->cmd.op = HAL_OP_LAUNCH;
	r->cmd.flags = k->flags | cmd->flags;
	r->submit_ns = atomic_load_explicit(&dev->now_cached, memory_order_relaxed);
	r->launch.kernel = k;
	r->cmd.launch.kernel = k->bk;
	r->cmd.launch.args = record_args(r);
	r->cmd.launch.arg_count = count;
	write_groups(r->cmd.launch.groups, cmd->launch.groups);
	if (UNLIKELY(!write_inline_args(q->part, k, cmd->launch.args, count,
					record_args(r))))
		return submit_other(q, d, done);
	return publish(q, end, done);
}
