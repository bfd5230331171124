/* SPDX-License-Identifier: Apache-2.0 */
/*
 * submit.c - hal_submit: translate a submission to records in the ring of its queue.
 *
 * Commands are checked while their records are written after the ring's tail, where the
 * engine does not read yet.  The tail moves only when all of them are valid, so a failed
 * submission leaves no trace.  A submission takes no lock, makes no system call while the
 * engine is awake, and allocates only if it is too large for the ring.
 *
 * Paths, fastest first:
 *   hal_submit       one launch whose arguments fit its record, without points
 *   submit_plain     one command without points
 *   submit_more      one command with waits or signals
 *   submit_other     all other submissions, and all errors
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/crossing.h"
#include "api/handle.h"
#include "api/submit.h"
#include "command/completions.h"
#include "command/lend.h"
#include "far/far.h"
#include "loop/engine.h"

/* ---- publishing -------------------------------------------------------------------- */

/* Do as queue_announce, with clock=real. */
static NOINLINE int announce_real(struct hal_queue *q)
{
	if (!lend_post(q->dev, &q->message))
		engine_post(q->dev, &q->message);
	return 0;
}

NOINLINE int queue_announce(struct hal_queue *q)
{
	struct hal_device *dev = q->dev;

	if (dev->virtual_clock) {
		/* The next thread that becomes the engine, for example in hal_wait, reads
		 * the message.  No device time passes before that. */
		(void)inbox_add(&dev->inbox, &q->message);
		return 0;
	}
	return announce_real(q);
}

NOINLINE int queue_full(const struct hal_queue *q, uint32_t slots)
{
	lend_look(q->dev);
	return ring_full(q->obj.id, q->name, slots, q->slot_count);
}

NOINLINE int completions_full(const struct hal_completions *c)
{
	return fail_lazily(EAGAIN,
			   "the ring of completions is full: all of its %llu entries are "
			   "unread or reserved for in-flight submissions",
			   c->size, 0, 0, NULL);
}

/* ---- submissions of any shape ------------------------------------------------------ */

/* Most waits, and most signals, of a submission whose records always fit a ring. */
#define FEW_POINTS 4u

/* Take back the pending waits that write_points counted, because the submission failed;
 * return err. */
static COLD int waits_undone(const struct hal_submit_desc *d, int err)
{
	for (uint32_t i = 0; i < d->wait_count; i++)
		atomic_fetch_sub(&d->waits[i].timeline->pending, 1);
	return err;
}

/* Write the points and commands of d, and the waits for other devices in x unless it is
 * NULL, to a new block, and one record that refers to it to `to`.  Return 0 or -errno. */
static int write_block(struct hal_queue *q, const struct hal_submit_desc *d,
		       uint32_t slots, const struct crossing *x, struct record_target *to)
{
	struct block *b = block_alloc(slots);
	struct record_target in;
	struct record *r;
	int err;

	if (b == NULL)
		return -ENOMEM;
	in = target_block(b);
	write_points(d->waits, d->wait_count, REC_WAIT, &in);
	if (x != NULL)
		crossing_write(x, &in);
	err = write_commands(q, d, &in);
	if (err != 0) {
		free(b);
		return waits_undone(d, err);
	}
	write_points(d->signals, d->signal_count, REC_SIGNAL, &in);
	r = target_next(to, 1);
	write_common(r, REC_BLOCK, 0, 1, 0, to->now);
	r->block = b;
	return 0;
}

/* Submitted in place of an empty submission, which thus completes in order like any
 * other. */
static const struct hal_cmd barrier = {.op = HAL_OP_BARRIER};

/* Submit d, which may be of any size.  x: NULL, or d has been checked and is x->d; also
 * begin the waits in x.  x is NULL or not by a constant at each call, so that the
 * compiler makes two versions.  Return 0, -errno or CROSSING. */
static ALWAYS_INLINE int submit_records(struct hal_queue *q,
					const struct hal_submit_desc *d,
					struct crossing *x, struct hal_point *done)
{
	struct record_target to = target_ring(q);
	uint32_t slots = point_slots(d->wait_count) + point_slots(d->signal_count);
	uint32_t largest = 0;
	bool head = needs_header(d), block;
	struct hal_submit_desc with_barrier;
	int err = x == NULL ? shape_check(q, d) : 0;

	if (UNLIKELY(err != 0))
		return err;
	if (UNLIKELY((d->cmd_count | d->wait_count | d->signal_count) == 0)) {
		with_barrier = *d;
		with_barrier.cmds = &barrier;
		with_barrier.cmd_count = 1;
		with_barrier.cmd_stride = 0;
		d = &with_barrier;
	}
	err = count_slots(d, &slots, &largest);
	if (UNLIKELY(err != 0))
		return err;
	if (x != NULL)
		slots += x->count;
	/* A submission of more than half of the ring goes into a block: it would have to
	 * wait until the ring is nearly empty, or would never fit. */
	block = largest > RECORD_SLOTS_MAX || slots > q->slot_count / 2;
	if (UNLIKELY(!has_slots(q, (block ? 1 : slots) + head)))
		return queue_full(q, (block ? 1 : slots) + head);
	if (head)
		write_submission_header(d, &to);
	if (UNLIKELY(block)) {
		err = write_block(q, d, slots, x, &to);
		if (err != 0)
			return err;
	} else {
		write_points(d->waits, d->wait_count, REC_WAIT, &to);
		if (x != NULL)
			crossing_write(x, &to);
		err = write_commands(q, d, &to);
		if (UNLIKELY(err != 0))
			return waits_undone(d, err);
		write_points(d->signals, d->signal_count, REC_SIGNAL, &to);
	}
	/* Before the engine can retire the records. */
	if (x != NULL)
		crossing_start(x);
	return submit_written(q, &to, d->cmd_count, done);
}

NOINLINE int submit_crossing(struct hal_queue *q, const struct hal_submit_desc *d,
			     struct hal_point *done)
{
	struct crossing x;
	int err = crossing_make(q, d, &x);

	if (err != 0)
		return err;
	err = submit_records(q, &x.d, &x, done);
	crossing_end(&x, err == 0);
	return err;
}

static NOINLINE int submit_any(struct hal_queue *q, const struct hal_submit_desc *d,
			       struct hal_point *done)
{
	int err = submit_records(q, d, NULL, done);

	return LIKELY(err != CROSSING) ? err : submit_crossing(q, d, done);
}

/* Submit one command that needs no submission header.  points: whether d may have waits
 * or signals; constant at each call, so that the compiler makes two versions.  Return 0
 * or -errno. */
static ALWAYS_INLINE int submit_one(struct hal_queue *q, const struct hal_submit_desc *d,
				    struct hal_point *done, bool points)
{
	const struct hal_cmd *cmd = d->cmds;
	uint32_t waits = points ? d->wait_count : 0;
	uint32_t signals = points ? d->signal_count : 0;
	struct record_target to = target_ring(q);
	uint32_t slots = command_slots(cmd), all;
	int err;

	/* A larger submission may need a block. */
	if (UNLIKELY(slots > RECORD_SLOTS_MAX || waits > FEW_POINTS ||
		     signals > FEW_POINTS))
		return submit_any(q, d, done);
	err = points_check(q, d->waits, waits, "waits", false);
	if (LIKELY(err == 0))
		err = points_check(q, d->signals, signals, "signals", true);
	if (UNLIKELY(err != 0))
		return err == CROSSING ? submit_crossing(q, d, done) : err;
	all = slots + point_slots(waits) + point_slots(signals);
	if (UNLIKELY(!has_slots(q, all)))
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

static NOINLINE int submit_plain(struct hal_queue *q, const struct hal_submit_desc *d,
				 struct hal_point *done)
{
	return submit_one(q, d, done, false);
}

/* ---- hal_submit -------------------------------------------------------------------- */

/* Submit d to q, which has a completion ring: reserve an entry of the ring for it. */
static NOINLINE int submit_notified(struct hal_queue *q, const struct hal_submit_desc *d,
				    struct hal_point *done)
{
	int err;

	if (!completions_take(q->completions))
		return completions_full(q->completions);
	err = submit_any(q, d, done);
	if (err != 0)
		completions_untake(q->completions);
	return err;
}

/* Submit desc after all checks that the fast paths leave out or have found to fail: a
 * closed queue, a NULL or older description, a completion ring. */
static NOINLINE int submit_other(struct hal_queue *q, const struct hal_submit_desc *desc,
				 struct hal_point *done)
{
	const struct hal_submit_desc *d = desc;
	struct hal_submit_desc ours;
	int err = queue_open_check(q);

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

/* Pairs of fields of the most common submission, compared eight bytes at a time. */
static const uint32_t usual_head[2] = {sizeof(struct hal_submit_desc), 0 /* flags */};
static const uint32_t usual_count[2] = {1, 0 /* cmd_stride */};

_Static_assert(offsetof(struct hal_submit_desc, flags) == 4 &&
		       offsetof(struct hal_submit_desc, cmd_stride) ==
			       offsetof(struct hal_submit_desc, cmd_count) + 4 &&
		       offsetof(struct hal_submit_desc, signal_count) ==
			       offsetof(struct hal_submit_desc, wait_count) + 4 &&
		       offsetof(struct hal_submit_desc, reserved) ==
			       offsetof(struct hal_submit_desc, priority) + 4,
	       "fields that are compared in pairs must be adjacent");

/* Return whether d is of this version and has one command and no flags. */
static ALWAYS_INLINE bool is_usual(const struct hal_submit_desc *d)
{
	return memcmp(&d->size, usual_head, 8) == 0 &&
	       memcmp(&d->cmd_count, usual_count, 8) == 0;
}

/* Return 0 if d has no times and no tag. */
static ALWAYS_INLINE uint64_t extras(const struct hal_submit_desc *d)
{
	uint64_t last;

	memcpy(&last, &d->priority, sizeof(last));
	return d->not_before_ns | d->deadline_ns | d->tag | last;
}

/* Return 0 if d has no waits and no signals. */
static ALWAYS_INLINE uint64_t points(const struct hal_submit_desc *d)
{
	uint64_t counts;

	memcpy(&counts, &d->wait_count, sizeof(counts));
	return counts;
}

/* Submit d, which is usual but has extras or points. */
static NOINLINE int submit_more(struct hal_queue *q, const struct hal_submit_desc *d,
				struct hal_point *done)
{
	return extras(d) != 0 ? submit_other(q, d, done) : submit_one(q, d, done, true);
}

/* Submit d to q, which is NULL or not QUEUE_OPEN. */
static NOINLINE int submit_closed(struct hal_queue *q, const struct hal_submit_desc *d,
				  struct hal_point *done)
{
	if (LIKELY(q != NULL && atomic_load_explicit(&q->open, memory_order_relaxed) ==
					QUEUE_OPEN_FAR))
		return far_submit(q, d, done);
	return submit_other(q, d, done);
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

	/* QUEUE_OPEN: the queue is alive, was not inherited by fork, has not failed, and
	 * has no completion ring. */
	if (UNLIKELY(q == NULL ||
		     atomic_load_explicit(&q->open, memory_order_acquire) != QUEUE_OPEN))
		return submit_closed(q, d, done);
	if (UNLIKELY(d == NULL || !is_usual(d) || d->cmds == NULL))
		return submit_other(q, d, done);
	/* One test of both is cheaper than one test of each. */
	if ((extras(d) | points(d)) != 0)
		return submit_more(q, d, done);
	cmd = d->cmds;
	if (cmd->op != HAL_OP_LAUNCH)
		return submit_plain(q, d, done);
	/* A launch whose arguments fit its record is written without a loop.  If it is
	 * invalid, submit_other finds out why. */
	k = cmd->launch.kernel;
	dev = q->dev;
	count = cmd->launch.arg_count;
	if (UNLIKELY((cmd->flags & ~HAL_CMD_REPLAYABLE) != 0 || k == NULL ||
		     k->user != dev || k->inline_args != count || !is_bound(q, k) ||
		     cmd->launch.args == NULL))
		return submit_other(q, d, done);
	tail = queue_written(q);
	end = tail + k->slots;
	if (UNLIKELY(!has_slots_to(q, end)))
		return queue_full(q, k->slots);
	r = &q->slots[tail & q->slot_mask];
	r->cmd.op = HAL_OP_LAUNCH;
	r->cmd.flags = k->flags | cmd->flags;
	r->submit_ns = atomic_load_explicit(&dev->now_cached, memory_order_relaxed);
	if (UNLIKELY(write_kernel(cmd, k, count, r) ||
		     !write_inline_args(q->home, k, cmd->launch.args, count,
					record_args(r))))
		return submit_other(q, d, done);
	return publish(q, end, done);
}
