/* SPDX-License-Identifier: Apache-2.0 */
/*
 * submit.c - submissions through the ring of a queue that hald serves; see ring.h.
 *
 * Only submissions that are surely valid go through the ring.  All others become
 * requests, for which hald calls hal_submit: those that are invalid get its error text,
 * and those that no ring takes are submitted there (host functions, shapes, more than
 * half a ring, points of other devices, and the first launch of a program in a
 * partition).
 */
#include <errno.h>
#include <string.h>

#include "api/write.h"
#include "far/bell.h"
#include "far/internal.h"
#include "util/compiler.h"
#include "util/fd.h"
#include "util/futex.h"

/* Return whether hald has placed prog in the partition of q. */
static ALWAYS_INLINE bool is_placed(const struct far_queue *q,
				    const struct far_program *prog)
{
	return (atomic_load_explicit(&prog->bound[q->part_word], memory_order_relaxed) &
		q->part_bit) != 0;
}

/* Return whether q has a ring, and nothing has failed. */
static ALWAYS_INLINE bool is_open(const struct far_queue *q)
{
	/* One comparison for both. */
	return atomic_load_explicit(&q->told->open, memory_order_relaxed) ==
	       atomic_load_explicit(&q->far.dev->serving, memory_order_relaxed);
}

static struct far_slot *slot_at(const struct far_queue *q, unsigned int pos)
{
	return &q->ring->slots[pos & q->slot_mask];
}

/* ---- publishing -------------------------------------------------------------------- */

/* The engine does not watch the ring: wake hald, unless it has been woken and has not
 * read the tails since (R5, R6 in ring.h). */
static NOINLINE void ring_bell(struct far_queue *q)
{
	/* The program only reads the board. */
	const union {
		const WAKE_WORD *in;
		WAKE_WORD *word;
	} again = {.in = &q->told->again};

	if (!bell_must_ring(again.word, &q->rung))
		return;
	__atomic_store_n(&q->ring->rung_ns, monotonic_ns(), __ATOMIC_RELAXED);
	fd_signal(q->far.dev->bell);
}

/* Publish the records up to tail as one submission (R2 to R4). */
static ALWAYS_INLINE int publish(struct far_queue *q, unsigned int tail,
				 struct hal_point *done)
{
	const union {
		const WAKE_WORD *in;
		WAKE_WORD *word;
	} announced = {.in = &q->told->announced};

	q->tail = tail;
	q->submissions++;
	if (done != NULL) {
		done->timeline = (struct hal_timeline *)q->timeline;
		done->value = q->submissions;
	}
	atomic_store_explicit(&q->ring->tail, tail, memory_order_release);
	if (UNLIKELY(!bell_is_watched(announced.word)))
		ring_bell(q);
	return 0;
}

/* Return whether the slots before position end are free. */
static ALWAYS_INLINE bool has_slots_to(struct far_queue *q, unsigned int end)
{
	if (LIKELY((int)(q->limit - end) >= 0))
		return true;
	q->limit = atomic_load_explicit(&q->told->head, memory_order_acquire) +
		   q->slot_count;
	return (int)(q->limit - end) >= 0;
}

static COLD int full(const struct far_queue *q, uint32_t slots)
{
	return far_alive(q->far.dev) ? ring_full(q->number, q->name, slots, q->slot_count)
				     : -ENODEV;
}

/* ---- launches ---------------------------------------------------------------------- */

/* Write argument i of kernel k to out.  Return false if it may be invalid. */
static ALWAYS_INLINE bool write_far_arg(const struct far_queue *q,
					const struct far_kernel *k,
					const struct hal_arg *args, uint64_t *out,
					uint32_t i)
{
	const struct far_buffer *buf = (const struct far_buffer *)args[i].buffer;
	uint64_t bytes = 0, left, handle = 0;

	if (LIKELY(buf != NULL)) {
		if (UNLIKELY(buf->part != q->part ||
			     __builtin_sub_overflow(buf->bytes, args[i].offset, &left)))
			return false;
		bytes = args[i].bytes;
		if (UNLIKELY(bytes > left))
			return false;
		if (bytes == 0)
			bytes = left;
		handle = buf->far.handle;
	}
	out += (size_t)3 * i;
	out[0] = handle;
	out[1] = args[i].offset;
	out[2] = bytes;
	return LIKELY(bytes >= k->info.arg_bytes[i]);
}

/* Write the count arguments of a launch of k to out.  Return false if one may be invalid.
 * Unrolled, as write_inline_args. */
static ALWAYS_INLINE bool write_far_args(const struct far_queue *q,
					 const struct far_kernel *k,
					 const struct hal_arg *args, uint32_t count,
					 uint64_t *out)
{
	_Static_assert(FAR_ARGS_MAX == 8, "one case per argument");
#define CASE_ARG(n)                                                                      \
	case n:                                                                          \
		if (UNLIKELY(!write_far_arg(q, k, args, out, (n)-1)))                    \
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
		__builtin_unreachable(); /* no such kernel has slots */
	}
#undef CASE_ARG
}

/* Return the kernel of a launch that may go into the ring of q; else NULL. */
static ALWAYS_INLINE const struct far_kernel *kernel_of(const struct far_queue *q,
							const struct hal_cmd *cmd)
{
	const struct far_kernel *k = (const struct far_kernel *)cmd->launch.kernel;

	if (UNLIKELY((cmd->flags & ~HAL_CMD_REPLAYABLE) != 0 || k == NULL ||
		     k->user != q->far.dev || k->ring_args != cmd->launch.arg_count ||
		     cmd->launch.args == NULL || !is_placed(q, k->prog)))
		return NULL;
	return k;
}

/* Write a launch of k, as the only record of its submission, to s and the slots behind
 * it. Return false if it may be invalid. */
static ALWAYS_INLINE bool write_far_launch(const struct far_queue *q,
					   const struct far_kernel *k,
					   const struct hal_cmd *cmd, struct far_slot *s)
{
	s->words[0] = k->head;
	s->flags = (uint16_t)cmd->flags;
	s->launch.kernel = k->far.handle;
	return LIKELY(!write_groups(s->launch.groups, cmd)) && /* else it has a shape */
	       write_far_args(q, k, cmd->launch.args, cmd->launch.arg_count, s[1].words);
}

/* ---- other commands ----------------------------------------------------------------- */

/* Return the handle of a buffer of which bytes at offset may be used; else 0. */
static uint64_t range_of(const struct far_queue *q, const struct hal_buffer *buffer,
			 uint64_t offset, uint64_t bytes)
{
	const struct far_buffer *buf = (const struct far_buffer *)buffer;

	return buf != NULL && buf->part == q->part && bytes != 0 &&
			       offset <= buf->bytes && bytes <= buf->bytes - offset
		       ? buf->far.handle
		       : 0;
}

/* Write cmd, no launch, to s.  Return false if it may be invalid. */
static bool write_far_other(const struct far_queue *q, const struct hal_cmd *cmd,
			    struct far_slot *s)
{
	switch (cmd->op) {
	case HAL_OP_COPY:
		s->copy.bytes = cmd->copy.bytes;
		s->copy.dst_offset = cmd->copy.dst_offset;
		s->copy.src_offset = cmd->copy.src_offset;
		s->copy.dst =
			range_of(q, cmd->copy.dst, cmd->copy.dst_offset, cmd->copy.bytes);
		s->copy.src =
			range_of(q, cmd->copy.src, cmd->copy.src_offset, cmd->copy.bytes);
		/* Ranges of one buffer may overlap. */
		return s->copy.dst != 0 && s->copy.src != 0 && s->copy.dst != s->copy.src;
	case HAL_OP_FILL:
		s->fill.offset = cmd->fill.offset;
		s->fill.bytes = cmd->fill.bytes;
		s->fill.pattern = cmd->fill.pattern;
		s->fill.dst =
			range_of(q, cmd->fill.dst, cmd->fill.offset, cmd->fill.bytes);
		return s->fill.dst != 0 && (cmd->fill.offset | cmd->fill.bytes) % 4 == 0;
	case HAL_OP_TIMESTAMP:
		s->timestamp.offset = cmd->timestamp.offset;
		s->timestamp.dst =
			range_of(q, cmd->timestamp.dst, cmd->timestamp.offset, 8);
		return s->timestamp.dst != 0 && cmd->timestamp.offset % 8 == 0 &&
		       (q->far.dev->info.caps & HAL_CAP_TIMESTAMP) != 0;
	default:
		return cmd->op == HAL_OP_NOP || cmd->op == HAL_OP_BARRIER;
	}
}

/* Write cmd to the slots at *pos, and move it behind them.  Return false if it may be
 * invalid. */
static bool write_far_command(const struct far_queue *q, const struct hal_cmd *cmd,
			      uint32_t marks, unsigned int *pos)
{
	struct far_slot *s = slot_at(q, *pos);
	const struct far_kernel *k;

	if (cmd->op == HAL_OP_LAUNCH) {
		k = kernel_of(q, cmd);
		*pos += far_launch_slots(cmd->launch.arg_count);
		if (k == NULL || !write_far_launch(q, k, cmd, s))
			return false;
		s->marks = (uint8_t)marks;
		return true;
	}
	if ((cmd->flags & ~HAL_CMD_REPLAYABLE) != 0)
		return false;
	s->op = cmd->op;
	s->flags = (uint16_t)cmd->flags;
	s->marks = (uint8_t)marks;
	s->arg_count = 0;
	++*pos;
	return write_far_other(q, cmd, s);
}

/* Write count points as records of kind op to the slots at *pos, and move it behind them.
 * Return false if one may be invalid. */
static bool write_far_points(const struct far_queue *q, const struct hal_point *points,
			     uint32_t count, uint32_t op, uint32_t marks,
			     unsigned int *pos)
{
	if (points == NULL && count > 0)
		return false;
	for (uint32_t i = 0; i < count; i++) {
		const struct far_timeline *t = (const void *)points[i].timeline;
		struct far_slot *s = slot_at(q, *pos);

		if (!OBJECT_IS_FAR(&t->far, OBJECT_TIMELINE) ||
		    t->far.dev != q->far.dev ||
		    (op == FAR_OP_SIGNAL && (!t->raised || points[i].value == 0)))
			return false;
		s->point[i % 2].timeline = t->far.handle;
		s->point[i % 2].value = points[i].value;
		if (i % 2 == 0) {
			s->op = op;
			s->flags = 0;
			s->marks = (uint8_t)marks;
			s->arg_count = 0;
			s->point[1].timeline = 0;
		}
		*pos += i % 2 == 1 || i + 1 == count;
	}
	return true;
}

/* ---- submissions ------------------------------------------------------------------- */

/* Return whether the header of d may go into the ring of q. */
static bool header_is_sure(const struct far_queue *q, const struct hal_submit_desc *d)
{
	return (d->flags & ~HAL_SUBMIT_PRIORITY) == 0 &&
	       (d->flags == 0 || d->priority <= (int32_t)(uint32_t)q->rights) &&
	       (d->deadline_ns == 0 || (q->rights & FAR_MAY_DEADLINE) != 0) &&
	       (d->not_before_ns == 0 ||
		(d->deadline_ns == 0 && (q->rights & FAR_HAS_DEADLINE) == 0));
}

static void write_far_header(const struct far_queue *q, const struct hal_submit_desc *d,
			     unsigned int *pos)
{
	struct far_slot *s = slot_at(q, *pos);

	s->op = FAR_OP_HEAD;
	s->flags = 0;
	s->marks = 0;
	s->arg_count = 0;
	s->head.not_before_ns = d->not_before_ns;
	s->head.deadline_ns = d->deadline_ns;
	s->head.tag = d->tag;
	s->head.priority = d->priority;
	s->head.flags = d->flags;
	++*pos;
}

/* Return the slots of a submission; 0 if it may not go into the ring of q. */
static uint32_t slots_of(const struct far_queue *q, const struct hal_submit_desc *d,
			 bool head)
{
	uint64_t slots = (d->wait_count + 1ull) / 2 + (d->signal_count + 1ull) / 2 + head;

	if (d->cmd_stride != 0 && d->cmd_stride != sizeof(struct hal_cmd))
		return 0;
	if (d->cmd_count > q->slot_count || (d->cmd_count > 0 && d->cmds == NULL))
		return 0;
	for (uint32_t i = 0; i < d->cmd_count; i++) {
		if (d->cmds[i].op == HAL_OP_LAUNCH &&
		    d->cmds[i].launch.arg_count > FAR_ARGS_MAX)
			return 0;
		slots += d->cmds[i].op == HAL_OP_LAUNCH
				 ? far_launch_slots(d->cmds[i].launch.arg_count)
				 : 1;
	}
	return slots <= q->slot_count / 2 ? (uint32_t)slots : 0;
}

/* Write d, which may go into the ring as far as its shape is concerned, behind the tail,
 * of which *pos is moved.  Return false if it may be invalid. */
static bool write_far(const struct far_queue *q, const struct hal_submit_desc *d,
		      bool head, unsigned int *pos)
{
	uint32_t marks = d->cmd_count == 1 && !head ? FAR_WHOLE : 0;
	unsigned int last;

	if (head)
		write_far_header(q, d, pos);
	last = *pos;
	if (!write_far_points(q, d->waits, d->wait_count, FAR_OP_WAIT, marks, pos))
		return false;
	if (d->wait_count > 0)
		last = *pos - 1;
	for (uint32_t i = 0; i < d->cmd_count; i++) {
		last = *pos;
		if (!write_far_command(q, &d->cmds[i], marks, pos))
			return false;
	}
	if (!write_far_points(q, d->signals, d->signal_count, FAR_OP_SIGNAL, marks, pos))
		return false;
	if (d->signal_count > 0)
		last = *pos - 1;
	if (*pos == q->tail + head)
		return false; /* it has no records; hal_submit adds one */
	slot_at(q, last)->marks |= FAR_LAST;
	return true;
}

/* Submit d, of any shape. */
static NOINLINE int submit_any(struct far_queue *q, const struct hal_submit_desc *d,
			       struct hal_point *done)
{
	unsigned int pos = q->tail;
	uint32_t slots;
	bool head;

	if (UNLIKELY(d == NULL || d->size != sizeof(*d) || !is_open(q)))
		return far_submit_request(q, d, done);
	head = needs_header(d);
	slots = d->reserved == 0 ? slots_of(q, d, head) : 0;
	if (slots == 0 || (head && !header_is_sure(q, d)))
		return far_submit_request(q, d, done);
	if (!has_slots_to(q, pos + slots))
		return full(q, slots);
	if (!write_far(q, d, head, &pos))
		return far_submit_request(q, d, done);
	return publish(q, pos, done);
}

/* Return whether d is of this version, and one command without points, times, a tag and
 * flags. */
static ALWAYS_INLINE bool is_usual(const struct hal_submit_desc *d)
{
	static const uint32_t head[2] = {sizeof(*d), 0 /* flags */};
	static const uint32_t count[2] = {1, 0 /* cmd_stride */};
	uint64_t counts, last;

	memcpy(&counts, &d->wait_count, sizeof(counts));
	memcpy(&last, &d->priority, sizeof(last));
	return memcmp(&d->size, head, 8) == 0 && memcmp(&d->cmd_count, count, 8) == 0 &&
	       (counts | d->not_before_ns | d->deadline_ns | d->tag | last) == 0;
}

int far_submit(struct hal_queue *queue, const struct hal_submit_desc *d,
	       struct hal_point *done)
{
	struct far_queue *q = (struct far_queue *)queue;
	const struct far_kernel *k;
	const struct hal_cmd *cmd;
	unsigned int end;

	if (UNLIKELY(d == NULL || !is_usual(d) || !is_open(q)))
		return submit_any(q, d, done);
	cmd = d->cmds;
	if (UNLIKELY(cmd == NULL || cmd->op != HAL_OP_LAUNCH))
		return submit_any(q, d, done);
	k = kernel_of(q, cmd);
	if (UNLIKELY(k == NULL))
		return far_submit_request(q, d, done);
	end = q->tail + k->slots;
	if (UNLIKELY(!has_slots_to(q, end)))
		return full(q, k->slots);
	if (UNLIKELY(!write_far_launch(q, k, cmd, slot_at(q, q->tail))))
		return far_submit_request(q, d, done);
	return publish(q, end, done);
}
