/* SPDX-License-Identifier: Apache-2.0 */
/* submit.h - what all submissions to a queue share: checks, free slots, publishing. */
#ifndef HAL_API_SUBMIT_H
#define HAL_API_SUBMIT_H

#include <errno.h>

#include "api/write.h"
#include "loop/engine.h"

/* ---- checks ------------------------------------------------------------------------ */

/* Set the error that the failed check of a point, of a description or of a closed queue
 * found, and return it. */
int submit_point_bad(const struct hal_queue *q, const struct hal_point *p,
		     const char *what, uint32_t i);
int submit_shape_bad(const struct hal_submit_desc *d);
int submit_refused(const struct hal_queue *q);

/* Whether what d asks for can be had at once. */
int submit_times_check(const struct hal_queue *q, const struct hal_submit_desc *d);

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
			return submit_point_bad(q, &points[i], what, i);
	}
	return 0;
}

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

/* What q answers to work: 0, it takes it. */
static inline int queue_open_check(const struct hal_queue *q)
{
	uint32_t open =
		q != NULL ? atomic_load_explicit(&q->open, memory_order_acquire) : 0;

	return open == QUEUE_OPEN || open == QUEUE_OPEN_TELLS ? 0 : submit_refused(q);
}

/* ---- the ring ---------------------------------------------------------------------- */

/* Fail with -EAGAIN: slots of q, or an entry of its ring of completions, are not free. */
int queue_full(const struct hal_queue *q, uint32_t slots);
int completions_full(const struct hal_completions *c);

static inline struct record_target target_ring(struct hal_queue *q)
{
	return (struct record_target){
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

/* Have the engine look at q. */
int queue_announce(struct hal_queue *q);

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
	return announce_first(&q->announced) ? queue_announce(q) : 0;
}

/* All that is in the ring behind the tail is one submission. */
static inline int submit_written(struct hal_queue *q, const struct record_target *to,
				 uint32_t commands, struct hal_point *done)
{
	if (to->last == NULL)
		__builtin_unreachable(); /* a submission has a command at least */
	to->last->own |= REC_END;
	counter_set(&q->more_commands, counter_get(&q->more_commands) + commands - 1);
	return publish(q, to->pos, done);
}

#endif
