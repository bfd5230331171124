/* SPDX-License-Identifier: Apache-2.0 */
/*
 * poll.h - make poll's events from the slots of queues.  Also: the hang bound, suspend
 * and destruction, which all vendors' queues have alike.
 *
 * Code to include, once in a backend: what differs between vendors is the functions
 * below, which the including file defines before, as static inline functions.  The
 * compiler then has no call more than in code written for one vendor.
 */
#ifndef BACKENDS_STREAM_POLL_H
#define BACKENDS_STREAM_POLL_H

#include "slots.h"

#define STREAM_SPIN_NS UINT64_C(50000)   /* a command that ends sooner is polled for */
#define STREAM_NAP_NS  UINT64_C(1000000) /* the longest time between polls */
#define STREAM_REFUSED 3u                /* failing queries in a row that end a queue */

/* ---- what a vendor defines ---------------------------------------------------------- */

/* NOLINTBEGIN(readability-redundant-declaration): they are defined before. */

/* Return the device time. */
static inline uint64_t vendor_now(struct stream_device *dev);
/* Return whether the command in s, which is in flight, has ended well.  If the oldest has
 * ended, but not well, break q and set its .wrong. */
static inline bool vendor_ended(struct stream_device *dev, struct stream_queue *q,
				struct stream_slot *s);
/* Set e's times to those of the oldest command, which has ended. */
static inline void vendor_measure(struct stream_device *dev, struct stream_queue *q,
				  struct hal_bk_event *e);
/* Release what the vendor has in the oldest slot for its command. */
static inline void vendor_release(struct stream_queue *q, struct stream_slot *s);
/* Have the device write now_ns as the value of the TIMESTAMP in s, or do the late COPY:
 * the command then ends again.  -EAGAIN: the device has no room; the next poll tries
 * again.  On another error q is broken. */
static inline int vendor_stamp(struct stream_device *dev, struct stream_queue *q,
			       struct stream_slot *s, uint64_t now_ns);
/* Ask the driver about q.  Write the call and its result to text if that is an error. */
static inline enum stream_answer
vendor_ask(struct stream_device *dev, struct stream_queue *q, char *text, size_t size);
/* Return whether a broken q has come to its end without asking the driver. */
static inline bool vendor_over(struct stream_device *dev, struct stream_queue *q);
/* Return the name of a vendor's result that said that the device is lost. */
static inline const char *vendor_result_name(uint32_t result);
/* Return the name of the kernel of a launch. */
static inline const char *vendor_kernel_name(const struct hal_bk_cmd *cmd);
/* Return whether s may hang: whether the hang bound is for its command. */
static inline bool vendor_may_hang(const struct stream_slot *s);
/* Keep the device from beginning more commands of q, which takes too long or cannot be
 * queried.  Return true if the device has nothing of q any more, or if the vendor itself
 * waits for the rest. */
static inline bool vendor_give_up(struct stream_device *dev, struct stream_queue *q);
/* Return whether all that the device had of q, which hangs, has ended. */
static inline bool vendor_idle(struct stream_device *dev, struct stream_queue *q);
/* Give back all that q has, and q. */
static inline void vendor_drop(struct stream_device *dev, struct stream_queue *q,
			       int *err);
/* Return how long the oldest command, which FOLD keeps, ran before it stopped. */
static inline uint64_t vendor_ran(struct stream_device *dev, struct stream_queue *q);
/* Do what the vendor does for q before its slots are read. */
static inline void vendor_look(struct stream_device *dev, struct stream_queue *q);
/* Do what the vendor does for q before QUIET is reported. */
static inline void vendor_quiet(struct stream_device *dev, struct stream_queue *q);
/* Do what the vendor does once in each poll.  Return how many events of its own it has
 * written to ev. */
static inline uint32_t vendor_round(struct stream_device *dev, struct hal_bk_event *ev,
				    uint32_t max);
/* Return whether KILL has ended the command in s. */
static inline bool vendor_killed(struct stream_device *dev, struct stream_queue *q,
				 struct stream_slot *s);
/* Step the fake driver's clock, as hal_bk_hot.poll says. */
static inline void vendor_advance(struct stream_device *dev, uint64_t until_ns,
				  uint64_t *now_ns, uint32_t *idle);
/* NOLINTEND(readability-redundant-declaration) */

/* Return whether the command in s has ended.  Of launches that FOLD stops that is known
 * for all together; of one that is submitted in pieces, after the last of these. */
STREAM_INLINE bool stream_ended(struct stream_device *dev, struct stream_queue *q,
				struct stream_slot *s)
{
	if (__builtin_expect(q->stops != NULL, 0)) {
		if (q->stops->folding && s->stops)
			return q->stops->settled && !s->stopped;
		if (s->waits)
			return false;
	}
	return vendor_ended(dev, q, s);
}

/* ---- times -------------------------------------------------------------------------- */

/*
 * Vendors report durations only.  The host sees ends when it polls: of the commands that
 * it sees ended for the first time, the last one ended just now, and each other one ended
 * when what followed it began.  learn() is called once for each command, so poll asks
 * the driver no more often than that.
 */
typedef void stream_times_fn(struct stream_device *dev, struct stream_queue *q,
			     uint32_t i);

/* Learn the times of all commands that have ended: learn() sets .took_ns and .after_ns of
 * the i-th oldest one. */
STREAM_INLINE void stream_see(struct stream_device *dev, struct stream_queue *q,
			      stream_times_fn *learn)
{
	q->seen_ns = vendor_now(dev);
	q->seen_after_ns = 0;
	do {
		learn(dev, q, q->seen);
		if (q->seen)
			q->seen_after_ns += stream_slot(q, q->seen)->after_ns;
		q->seen++;
	} while (q->seen < q->count && stream_ended(dev, q, stream_slot(q, q->seen)));
}

/* Set e's times to those of the oldest command, which has been seen. */
STREAM_INLINE void stream_set_times(struct stream_queue *q, struct hal_bk_event *e)
{
	const struct stream_slot *s = stream_slot(q, 0);

	e->end_ns = q->seen_ns > q->seen_after_ns ? q->seen_ns - q->seen_after_ns : 0;
	if (e->end_ns < q->last_end_ns)
		e->end_ns = q->last_end_ns;
	e->start_ns = e->end_ns > s->took_ns ? e->end_ns - s->took_ns : 0;
	if (e->start_ns < q->last_end_ns)
		e->start_ns = q->last_end_ns;
	q->last_end_ns = e->end_ns;
	if (q->seen > 1)
		q->seen_after_ns -= stream_slot(q, 1)->after_ns;
}

/* Set e's times from durations; see above. */
STREAM_INLINE void stream_measure(struct stream_device *dev, struct stream_queue *q,
				  struct hal_bk_event *e, stream_times_fn *learn)
{
	if (!q->seen)
		stream_see(dev, q, learn);
	stream_set_times(q, e);
}

/* ---- commands that do not end ------------------------------------------------------- */

/* Return when the oldest command of q is given up, in device time. */
STREAM_INLINE uint64_t stream_bound(struct stream_device *dev, struct stream_queue *q)
{
	if (!dev->hang_ns || q->hangs || q->count <= stream_kept(q) ||
	    !vendor_may_hang(stream_slot(q, 0)))
		return UINT64_MAX;
	return hal_bk_after(q->head_ns, dev->hang_ns);
}

/* Fail q for the reason why, unless it hangs already.  The device may continue with what
 * it has of q: then q hangs, and counts in .hangs and .inflight until that has ended. */
STREAM_FN void stream_give_up(struct stream_device *dev, struct stream_queue *q,
			      const char *why)
{
	bool gone;

	if (q->hangs)
		return;
	gone = vendor_give_up(dev, q);
	stream_break(q, "%s", why);
	if (gone) {
		q->unsure = false;
		return;
	}
	q->hangs = true;
	dev->hangs++;
	dev->inflight++;
}

/* Return whether the device has nothing more of q.  ask: as in stream_silent. */
STREAM_FN bool stream_is_idle(struct stream_device *dev, struct stream_queue *q, bool ask)
{
	char text[96];

	if (stream_lost(dev))
		return true;
	if (!q->unsure)
		return vendor_idle(dev, q);
	if (!ask && !dev->virtual_clock &&
	    vendor_now(dev) - q->checked_ns < STREAM_CHECK_NS)
		return false;
	q->checked_ns = vendor_now(dev);
	return vendor_ask(dev, q, text, sizeof(text)) == STREAM_EMPTY;
}

/* The device has finished with q, which hung: count it no more. */
STREAM_FN void stream_come_back(struct stream_device *dev, struct stream_queue *q)
{
	q->hangs = false;
	dev->hangs--;
	dev->inflight--;
}

/* Free the destroyed queues that the device has finished after all.  ask: as above. */
STREAM_FN void stream_free_hanging(struct stream_device *dev, bool ask)
{
	struct stream_queue **at = &dev->hanging, *q;
	int ignored = 0; /* what could not be given back is tried again */

	while ((q = *at)) {
		if (!stream_is_idle(dev, q, ask)) {
			at = &q->older;
			continue;
		}
		*at = q->older;
		stream_come_back(dev, q);
		vendor_drop(dev, q, &ignored);
	}
}

/* Return whether nothing of q will report its end any more.  ask: ask the driver even if
 * that was a short time ago. */
STREAM_FN bool stream_silent(struct stream_device *dev, struct stream_queue *q, bool ask)
{
	const uint64_t now = vendor_now(dev);
	const uint64_t since = q->checked_ns > q->head_ns ? q->checked_ns : q->head_ns;
	char text[64] = "";
	enum stream_answer answer;

	if (stream_lost(dev) || q->hangs || (q->wrong && !q->reported) ||
	    vendor_over(dev, q))
		return true;
	if (!q->broken && !ask &&
	    (dev->virtual_clock && STREAM_CHECK_ALL ? q->round == dev->round
						    : now - since < STREAM_CHECK_NS))
		return false;
	q->checked_ns = now;
	q->round = dev->round;
	answer = vendor_ask(dev, q, text, sizeof(text));
	if (stream_lost(dev) || vendor_over(dev, q))
		return true;
	q->refused = answer == STREAM_ERROR ? q->refused + 1 : 0;
	if (q->refused < STREAM_REFUSED)
		return q->broken && answer == STREAM_EMPTY;
	q->unsure = true;
	stream_give_up(dev, q, text);
	return true;
}

/* ---- events ------------------------------------------------------------------------- */

/* Remove the oldest command. */
STREAM_INLINE void stream_take(struct stream_device *dev, struct stream_queue *q)
{
	struct stream_slot *s = stream_slot(q, 0);

	vendor_release(q, s);
	stream_pop(dev, q, s, vendor_now(dev));
}

/* Report that the oldest command has completed. */
STREAM_INLINE void stream_finish(struct stream_device *dev, struct stream_queue *q,
				 struct hal_bk_event *e)
{
	const struct hal_bk_cmd *cmd = &stream_slot(q, 0)->cmd;

	*e = stream_event(HAL_BK_DONE, cmd->cookie, 0);
	vendor_measure(dev, q, e);
	stream_count_bytes(cmd, e);
	stream_take(dev, q);
}

/* Write to text the fault of a launch, with the name of its kernel.  sure: it was this
 * launch; else it was that or a later one of the queue. */
STREAM_FN void stream_name_kernel(const char *fault, const char *kernel, bool sure,
				  char text[96])
{
	const char * or = sure ? "" : " or later";
	const int most = 23, name = (int)strnlen(kernel, (size_t)most);
	const int rest = 95 - (int)strlen(", kernel ") - (int)strlen(or) - name;

	snprintf(text, 96, "%.*s, kernel %.*s%s", rest, fault, most, kernel, or);
}

/* Return whether the host would know that the oldest command of q has ended before any
 * later one has: nothing follows it, or a mark. */
STREAM_FN bool stream_is_sure(struct stream_queue *q)
{
	return q->every <= 1 || q->count == 1 || q->wrong || stream_slot(q, 0)->marked;
}

/* Report the oldest command of a broken queue, or of a device that is lost.  The first
 * that is reported is taken for the cause; those after it never ran. */
STREAM_FN void stream_fail(struct stream_device *dev, struct stream_queue *q,
			   struct hal_bk_event *e)
{
	const struct hal_bk_cmd *cmd = &stream_slot(q, 0)->cmd;
	const uint32_t lost = atomic_load(&dev->lost);

	*e = stream_event(HAL_BK_DONE, cmd->cookie, vendor_now(dev));
	e->status = q->reported ? -ECANCELED : -EIO;
	if (!q->reported) {
		e->start_ns = q->head_ns;
		stream_break(q, "%s (%u), device lost", vendor_result_name(lost), lost);
		if (cmd->op == HAL_OP_LAUNCH)
			stream_name_kernel(q->fault, vendor_kernel_name(cmd),
					   stream_is_sure(q), e->fault);
		else
			memcpy(e->fault, q->fault, sizeof(e->fault));
	}
	q->reported = true;
	stream_take(dev, q);
}

/* Report the oldest command, which KILL has ended. */
STREAM_FN void stream_kill(struct stream_device *dev, struct stream_queue *q,
			   struct hal_bk_event *e)
{
	*e = stream_event(HAL_BK_DONE, stream_slot(q, 0)->cmd.cookie, vendor_now(dev));
	e->status = -ECANCELED;
	e->start_ns = q->head_ns > q->last_end_ns ? q->head_ns : q->last_end_ns;
	q->last_end_ns = e->end_ns;
	stream_take(dev, q);
}

/* Write q's events to ev; return how many. */
STREAM_INLINE uint32_t stream_look(struct stream_device *dev, struct stream_queue *q,
				   struct hal_bk_event *ev, uint32_t max)
{
	uint32_t n = 0;
	char why[64];

	if (__builtin_expect(q->hangs, 0) && stream_is_idle(dev, q, false))
		stream_come_back(dev, q);
	vendor_look(dev, q);
	while (n < max && q->count > stream_kept(q)) {
		struct stream_slot *s = stream_slot(q, 0);

		if (vendor_killed(dev, q, s)) {
			stream_kill(dev, q, &ev[n++]);
			continue;
		}
		if (!q->reported && stream_ended(dev, q, s)) {
			if (!stream_is_late(s) || s->stamping)
				stream_finish(dev, q, &ev[n++]);
			else if (stream_lost(dev) || q->broken)
				stream_fail(dev, q, &ev[n++]);
			else if (vendor_stamp(dev, q, s, vendor_now(dev)) == -EAGAIN)
				break;
			continue;
		}
		/* What the driver knows, such as a device that is lost, comes first. */
		if (vendor_now(dev) >= stream_bound(dev, q) &&
		    !stream_silent(dev, q, true)) {
			snprintf(why, sizeof(why), STREAM_HUNG,
				 (uint32_t)(dev->hang_ns / 1000000));
			stream_give_up(dev, q, why);
		}
		if (!stream_silent(dev, q, false))
			break;
		/* It may have ended by what is known only now. */
		if (q->reported || !stream_ended(dev, q, s))
			stream_fail(dev, q, &ev[n++]);
	}
	if (n < max && q->quiet_due && q->count == stream_kept(q)) {
		vendor_quiet(dev, q);
		ev[n] = stream_event(HAL_BK_QUIET, q->quiet_cookie, vendor_now(dev));
		if (q->count)
			ev[n].start_ns -= vendor_ran(dev, q);
		n++;
		q->quiet_due = false;
	}
	return n;
}

STREAM_INLINE uint32_t stream_look_at_all(struct stream_device *dev,
					  struct hal_bk_event *ev, uint32_t max)
{
	struct stream_queue *q, *next;
	uint32_t n = 0;

	for (q = dev->busy; q && n < max; q = next) {
		next = q->busy_next;
		if (!q->count && !q->quiet_due && !q->hangs)
			stream_unwatch(q);
		else
			n += stream_look(dev, q, ev + n, max - n);
	}
	if (dev->moving)
		n += stream_moved(dev, vendor_now(dev), ev + n, max - n);
	return n + vendor_round(dev, ev + n, max - n);
}

/* Virtual clock: step the time to until_ns, or to where poll can see something.  Return
 * false if nothing more will happen. */
STREAM_FN bool stream_step(struct stream_device *dev, uint64_t until_ns)
{
	uint64_t now, soonest = UINT64_MAX;
	struct stream_queue *q;
	uint32_t idle = 0;

	for (q = dev->busy; q && dev->hang_ns; q = q->busy_next)
		if (stream_bound(dev, q) < soonest)
			soonest = stream_bound(dev, q);
	if (soonest < until_ns)
		until_ns = soonest;
	if (!STREAM_CHECK_ALL && dev->busy &&
	    until_ns > hal_bk_after(vendor_now(dev), STREAM_CHECK_NS))
		until_ns = hal_bk_after(vendor_now(dev), STREAM_CHECK_NS);
	vendor_advance(dev, hal_bk_after(until_ns, dev->zero_ns), &now, &idle);
	stream_raise(dev, now);
	dev->round++;
	return !idle || soonest < UINT64_MAX;
}

STREAM_INLINE uint32_t stream_poll(struct stream_device *dev, uint64_t until_ns,
				   struct hal_bk_event *ev, uint32_t max)
{
	bool more = dev->virtual_clock;
	uint32_t n = stream_look_at_all(dev, ev, max);

	while (more && !n && vendor_now(dev) < until_ns &&
	       (dev->inflight || until_ns != UINT64_MAX)) {
		more = stream_step(dev, until_ns);
		n = stream_look_at_all(dev, ev, max);
	}
	return n;
}

/* Real clock: no driver wakes the engine, so it polls, less often the longer a command
 * takes. */
STREAM_INLINE uint64_t stream_next(struct stream_device *dev)
{
	const uint64_t now = vendor_now(dev), age = now - dev->progress_ns;

	if (stream_has_moved(dev))
		return 0;
	if (!dev->inflight)
		return UINT64_MAX;
	if (age < STREAM_SPIN_NS)
		return 0;
	if (dev->inflight == dev->hangs)
		return hal_bk_after(now, STREAM_CHECK_NS);
	return hal_bk_after(now, age / 8 < STREAM_NAP_NS ? age / 8 : STREAM_NAP_NS);
}

/* ---- suspend, destroy ------------------------------------------------------- */

/* Begin to suspend q; the vendor has checked the mode. */
STREAM_FN int stream_suspend(struct stream_device *dev, struct stream_queue *q,
			     uint64_t cookie)
{
	q->quiet_cookie = cookie;
	q->suspended = q->quiet_due = true;
	dev->progress_ns = vendor_now(dev); /* a suspender waits: see stream_next */
	stream_watch(dev, q);
	return 0;
}

/* Take q out of the device's lists.  -EBUSY: the device still has commands of it. */
STREAM_FN int stream_leave(struct stream_device *dev, struct stream_queue *q)
{
	const uint32_t running = q->count - stream_kept(q);

	if (!stream_lost(dev) && (running || q->quiet_due))
		return STREAM_FAIL(
			EBUSY, STREAM_NAME ": the queue still has %u commands in flight",
			running);
	dev->inflight -= running;
	q->part->moving_left -= q->before;
	stream_unwatch(q);
	pthread_mutex_lock(&dev->queues_lock);
	*(q->newer ? &q->newer->older : &dev->queues) = q->older;
	if (q->older)
		q->older->newer = q->newer;
	pthread_mutex_unlock(&dev->queues_lock);
	atomic_fetch_sub(&q->part->queues, 1);
	return 0;
}

/* Give back a queue that has left the lists, or keep it until the device has no more of
 * it. */
STREAM_FN void stream_destroy(struct stream_device *dev, struct stream_queue *q, int *err)
{
	if (!q->hangs && stream_is_idle(dev, q, true)) {
		vendor_drop(dev, q, err);
		return;
	}
	if (!q->hangs) {
		q->hangs = q->late = true;
		dev->hangs++;
		dev->inflight++;
	}
	q->older = dev->hanging;
	dev->hanging = q;
}

#endif
