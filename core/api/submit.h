/* SPDX-License-Identifier: Apache-2.0 */
/*
 * submit.h - steps that all submissions to a queue share: checks, free slots, publishing.
 *
 * A submission is written as records after the tail of the queue's ring, where the engine
 * does not read yet.  publish() then moves the tail and notifies the engine.
 */
#ifndef HAL_API_SUBMIT_H
#define HAL_API_SUBMIT_H

#include <errno.h>

#include "api/write.h"
#include "loop/engine.h"

/* ---- checks ------------------------------------------------------------------------ */

/* Find out why a check failed, fail with that error and return it.  submit_point_bad:
 * points_check refused p, which is what[i].  submit_shape_bad: shape_check suspects d;
 * return 0 if d is valid after all.  submit_refused: q is NULL or not open. */
int submit_point_bad(const struct hal_queue *q, const struct hal_point *p,
		     const char *what, uint32_t i);
int submit_shape_bad(const struct hal_submit_desc *d);
int submit_refused(const struct hal_queue *q);

/* Return -EINVAL if d has a deadline but q is best effort, or if the deadline (of d, else
 * of q) passes before not_before_ns of d.  Else return 0. */
int submit_times_check(const struct hal_queue *q, const struct hal_submit_desc *d);

/* Check the points of a submission to q: its waits, or its signals if signals is true.
 * what names the array in error texts.  Return 0, -errno, or CROSSING if a point is of
 * another device. */
static ALWAYS_INLINE int points_check(const struct hal_queue *q,
				      const struct hal_point *points, uint32_t count,
				      const char *what, bool signals)
{
	if (UNLIKELY(points == NULL && count != 0))
		return fail(EINVAL, "hal_submit_desc.%s is NULL, but its count is %u",
			    what, count);
	for (uint32_t i = 0; i < count; i++) {
		const struct hal_timeline *t = points[i].timeline;

		if (UNLIKELY(t == NULL || (signals ? t->raiser : t->user) != q->dev ||
			     (signals && points[i].value == 0)))
			return submit_point_bad(q, &points[i], what, i);
	}
	return 0;
}

/* Submit d, for which points_check has returned CROSSING (crossing.h), to q. */
int submit_crossing(struct hal_queue *q, const struct hal_submit_desc *d,
		    struct hal_point *done);

/* Check everything in d except its commands.  Return 0 or -errno. */
static ALWAYS_INLINE int shape_check(const struct hal_queue *q,
				     const struct hal_submit_desc *d)
{
	uint64_t all = (uint64_t)d->cmd_count + d->wait_count + d->signal_count;
	int err = 0;

	if (UNLIKELY(((d->flags & ~HAL_SUBMIT_PRIORITY) | d->reserved | d->cmd_stride) !=
			     0 ||
		     d->cmds == NULL || all > HAL_COMMANDS_MAX))
		err = submit_shape_bad(d);
	if (err == 0)
		err = points_check(q, d->waits, d->wait_count, "waits", false);
	if (err == 0)
		err = points_check(q, d->signals, d->signal_count, "signals", true);
	if (UNLIKELY(err == 0 && (d->deadline_ns | d->not_before_ns) != 0))
		err = submit_times_check(q, d);
	return err;
}

/* Returned by queue_open_check: another process serves the queue (far/far.h). */
#define FAR_QUEUE_REFUSED 1

/* Return 0 if q accepts work, else fail with the reason. */
static inline int queue_open_check(const struct hal_queue *q)
{
	uint32_t open =
		q != NULL ? atomic_load_explicit(&q->open, memory_order_acquire) : 0;

	return open == QUEUE_OPEN || open == QUEUE_OPEN_TELLS ? 0 : submit_refused(q);
}

/* ---- the ring ---------------------------------------------------------------------- */

/* Fail with -EAGAIN: q lacks free slots, or its completion ring a free entry. */
int queue_full(const struct hal_queue *q, uint32_t slots);
int completions_full(const struct hal_completions *c);

/* Return a target for records that starts at the tail of q's ring. */
static inline struct record_target target_ring(struct hal_queue *q)
{
	return (struct record_target){
		.base = q->slots,
		.pos = queue_written(q),
		.mask = q->slot_mask,
		.now = atomic_load_explicit(&q->dev->now_cached, memory_order_relaxed),
	};
}

/* Return whether the slots of q before position end are free.  .ring_limit caches the
 * answer of the last read of the engine's position, which saves reading its cache line on
 * most calls. */
static ALWAYS_INLINE bool has_slots_to(struct hal_queue *q, unsigned int end)
{
	if (LIKELY((int)(q->ring_limit - end) >= 0))
		return true;
	q->ring_limit =
		atomic_load_explicit(&q->head, memory_order_acquire) + q->slot_count;
	return (int)(q->ring_limit - end) >= 0;
}

/* Return whether at least `slots` slots of q are free. */
static inline bool has_slots(struct hal_queue *q, uint32_t slots)
{
	return has_slots_to(q, queue_written(q) + slots);
}

/* Send the engine the message of q: its ring has new records. */
int queue_announce(struct hal_queue *q);

/* Hand the records up to tail, which are valid and complete, to the engine.  Write the
 * point that the submission reaches to done (may be NULL).  Return 0. */
static ALWAYS_INLINE int publish(struct hal_queue *q, unsigned int tail,
				 struct hal_point *done)
{
	uint64_t n = counter_get(&q->submissions) + 1;

	counter_set(&q->submissions, n); /* no other thread writes it */
	if (done != NULL) {
		done->timeline = &q->timeline;
		done->value = n;
	}
	queue_publish(q, tail);
	return announce_first(&q->announced) ? queue_announce(q) : 0;
}

/* Publish all records after the ring's tail as one submission of `commands` commands. */
static inline int submit_written(struct hal_queue *q, const struct record_target *to,
				 uint32_t commands, struct hal_point *done)
{
	if (to->last == NULL)
		__builtin_unreachable(); /* a submission has at least one record */
	to->last->own |= REC_END;
	counter_set(&q->more_commands, counter_get(&q->more_commands) + commands - 1);
	return publish(q, to->pos, done);
}

#endif
