/* SPDX-License-Identifier: Apache-2.0 */
/*
 * marks.h - when the host learns that commands of a stream have ended, and how long they
 * took.
 *
 * A mark is a number that the device writes to a word of the queue after the commands
 * before it.  A mark after each launch would cost as much as the launch, so one covers up
 * to .every of them, and they are reported together:
 *
 * - submit marks every .every-th launch, and commands of another kind before and after.
 *   The first launch of each kernel, and one in STREAM_SAMPLE after it, are marked like
 *   that, too: it is known when these have ended, and their time is measured.
 * - What remains without a mark at the end of a queue, the tail, is looked after by poll,
 *   and only when no mark of the queue is under way.  If a tail is old enough that it may
 *   have ended, the driver is asked; if it has, no mark is needed.  Otherwise poll writes
 *   one.  So a single launch costs one mark, and a queue that is kept supplied costs none
 *   but those of submit.
 *
 * Times come from the host's clock when it sees a mark, shared out among the launches of
 * one mark by what their kernels took when they were measured.
 *
 * Code to include, once in a backend, which defines the functions below.
 *
 * A driver may signal an object of its own, such as an event, in place of a number: the
 * backend keeps what number that stands for.  If a command can do so itself, the backend
 * gives it its number without stream_number, and vendor_mark is for the rest.
 *
 * STREAM_TAIL_AT_ONCE: defined where the driver does not tell whether a stream has come
 * to its end.  A tail is marked at once, then, and vendor_enter, vendor_is_empty and
 * vendor_catch_up are not needed.
 */
#ifndef BACKENDS_STREAM_MARKS_H
#define BACKENDS_STREAM_MARKS_H

#include "slots.h"

/* Of the launches of a kernel, the first of each so many is measured. */
#define STREAM_SAMPLE 64u
/* A queue whose last command took so long has all its commands measured, one at a time:
 * poll sees the end of long ones late. */
#define STREAM_LONG_NS UINT64_C(100000)
/* How long a tail must be the oldest of its queue before the driver is asked about it. */
#define STREAM_TAIL_NS UINT64_C(5000)

/* NOLINTBEGIN(readability-redundant-declaration): poll.h says what these two are. */
static inline uint64_t vendor_now(struct stream_device *dev);
STREAM_INLINE bool stream_ended(struct stream_device *dev, struct stream_queue *q,
				struct stream_slot *s);

#ifndef STREAM_TAIL_AT_ONCE
/* Prepare this thread for calls of the driver.  Return 0 if it is. */
static inline int vendor_enter(struct stream_device *dev);
/* Return whether q's stream has come to its end, by asking the driver. */
static inline bool vendor_is_empty(struct stream_device *dev, struct stream_queue *q);
/* Write q->given to q's word, as the device would.  Its stream has come to its end. */
static inline void vendor_catch_up(struct stream_queue *q);
#endif
/* Have the device write q->given to q's word after all that it was given; on failure
 * break q.  The thread has entered. */
static inline void vendor_mark(struct stream_device *dev, struct stream_queue *q);
/* Return whether the device has written number to q's word, or a later one. */
static inline bool vendor_reached(struct stream_queue *q, uint32_t number);
/* Return how long the command in s took, of which .timed is set; 0 if unknown. */
static inline uint64_t vendor_timed(struct stream_device *dev, struct stream_queue *q,
				    struct stream_slot *s);
/* Return the kernel of the launch in s; NULL if it is no launch. */
static inline struct stream_kernel *vendor_kernel(const struct stream_slot *s);
/* NOLINTEND(readability-redundant-declaration) */

/* ---- marks -------------------------------------------------------------------------- */

/* Mark the end of all that q has been given.  The thread has entered. */
STREAM_INLINE void stream_mark(struct stream_device *dev, struct stream_queue *q)
{
	if (q->marked == q->given)
		return;
	if (q->count)
		stream_slot(q, q->count - 1)->marked = true;
	q->marked = q->given;
	vendor_mark(dev, q);
}

/* Return whether the next launch of k is one that is measured. */
STREAM_INLINE bool stream_samples(struct stream_kernel *k)
{
	if (__builtin_expect(k->until_sample != 0, 1)) {
		k->until_sample--;
		return false;
	}
	k->until_sample = STREAM_SAMPLE - 1;
	return true;
}

/* Give the command in s, which has just gone to the device, its number.  apart: it is
 * marked by itself. */
STREAM_INLINE void stream_number(struct stream_device *dev, struct stream_queue *q,
				 struct stream_slot *s, bool apart)
{
	s->number = ++q->given;
	if (!apart && q->given - q->marked < q->every)
		return;
	s->marked = true;
	q->marked = q->given;
	vendor_mark(dev, q);
}

/* Kept apart, as most polls have no tail to look after. */
STREAM_FN __attribute__((noinline)) void stream_look_at_tail(struct stream_device *dev,
							     struct stream_queue *q)
{
#ifdef STREAM_TAIL_AT_ONCE
	stream_mark(dev, q);
#else
	const bool old = vendor_now(dev) - q->head_ns >= STREAM_TAIL_NS;

	if (vendor_enter(dev))
		return;
	if (old && vendor_is_empty(dev, q)) {
		q->marked = q->given;
		vendor_catch_up(q);
		return;
	}
	/* Virtual time passes no faster than it can be seen: the end must be marked. */
	if ((old || dev->virtual_clock) && !stream_lost(dev))
		stream_mark(dev, q);
#endif
}

/* See to it that the end of q's last command will be known.  In a broken queue that is
 * unsure some numbers must not be written. */
STREAM_INLINE void stream_tail(struct stream_device *dev, struct stream_queue *q)
{
	if (__builtin_expect(q->given != q->marked, 0) && q->count &&
	    !(q->broken && q->unsure) && !stream_lost(dev) &&
	    vendor_reached(q, q->marked))
		stream_look_at_tail(dev, q);
}

/* ---- times -------------------------------------------------------------------------- */

/* Return when the oldest command of q began, as far as the host knows. */
STREAM_FN uint64_t stream_began(const struct stream_queue *q)
{
	const uint64_t at = q->fresh ? q->head_ns + q->lag_ns : 0;

	return at > q->last_end_ns ? at : q->last_end_ns;
}

/* Learn how much of the time of a single launch, from its submission until its end is
 * seen, the device does not work on it: what the least of them was, and a slow return to
 * what it is. */
STREAM_FN void stream_learn_lag(struct stream_queue *q, uint64_t all_ns, uint64_t took_ns)
{
	const uint64_t lag = all_ns > took_ns ? all_ns - took_ns : 0;

	if (lag < q->lag_ns || !q->lag_ns)
		q->lag_ns = lag;
	else
		q->lag_ns += (lag - q->lag_ns) / 8;
}

/* Lower a lag that is as long as all the time of the oldest command of q, seen at now:
 * the host saw a measured command late once.  The command counts for what its kernel took
 * when it was measured. */
STREAM_FN void stream_doubt_lag(struct stream_queue *q, uint64_t now)
{
	const struct stream_kernel *k = vendor_kernel(stream_slot(q, 0));
	const uint64_t all = now - q->head_ns, took = k ? k->took_ns : 0;

	if (q->fresh && all <= q->lag_ns)
		q->lag_ns = all > took ? all - took : 0;
}

/* Measure the command in s, if it is one of those; return its time, or 0. */
STREAM_FN uint64_t stream_sample(struct stream_device *dev, struct stream_queue *q,
				 struct stream_slot *s)
{
	struct stream_kernel *k = vendor_kernel(s);
	const uint64_t ns = s->timed ? vendor_timed(dev, q, s) : 0;

	if (k && ns)
		k->took_ns = ns;
	return ns;
}

/* What a command counts for in the time of all that one mark covers: 0 if it is none, a
 * kernel of unknown time usual. */
STREAM_FN double stream_weight(const struct stream_slot *s, double usual)
{
	const struct stream_kernel *k = vendor_kernel(s);

	if (s->idle)
		return 0;
	return k && k->took_ns ? (double)k->took_ns : usual;
}

/* Share out left_ns among the n oldest commands, but for those that were measured. */
STREAM_FN void stream_share_out(struct stream_queue *q, uint32_t n, uint64_t left_ns)
{
	double known = 0, all = 0, usual;
	uint32_t i, count = 0;

	for (i = 0; i < n; i++) {
		const struct stream_slot *s = stream_slot(q, i);
		const double w = s->took_ns ? 0 : stream_weight(s, 0);

		known += w;
		count += w > 0;
	}
	usual = count ? known / count : 1;
	for (i = 0; i < n; i++)
		if (!stream_slot(q, i)->took_ns)
			all += stream_weight(stream_slot(q, i), usual);
	for (i = 0; i < n; i++) {
		struct stream_slot *s = stream_slot(q, i);

		if (!s->took_ns && all > 0)
			s->took_ns = (uint64_t)((double)left_ns *
						(stream_weight(s, usual) / all));
		s->after_ns = s->took_ns;
	}
}

/* Learn the times of all commands that have ended; the oldest has. */
STREAM_FN void stream_see_marked(struct stream_device *dev, struct stream_queue *q)
{
	const uint64_t now = vendor_now(dev);
	struct stream_slot *s = stream_slot(q, 0);
	uint64_t from, left, ns;
	uint32_t n = 0, i;

	stream_doubt_lag(q, now);
	from = stream_began(q);
	left = now > from ? now - from : 0;
	do {
		s->took_ns = ns = stream_sample(dev, q, s);
		left -= ns < left ? ns : left;
	} while (++n < q->count && stream_ended(dev, q, s = stream_slot(q, n)));
	if (n == 1 && q->fresh && ns)
		stream_learn_lag(q, now - q->head_ns, ns);
	stream_share_out(q, n, left);
	q->seen_ns = now;
	q->seen_after_ns = 0;
	for (i = 1; i < n; i++)
		q->seen_after_ns += stream_slot(q, i)->after_ns;
	q->seen = n;
	q->lengthy = stream_slot(q, n - 1)->took_ns >= STREAM_LONG_NS;
}

#endif
