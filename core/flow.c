/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flow.c - what every command goes through: from its queue's ring to the policy, to the
 * device, to its end.
 *
 * One turn of the engine is turn().  All of it is in one file so that the compiler
 * makes one function of what a command needs when nothing is out of the ordinary; the
 * figures hal.submit.total_instructions and docs/performance.md count it.
 */
#include "internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define EVENTS        16
#define ALWAYS_INLINE inline __attribute__((always_inline))

static inline bool for_device(const struct record *r)
{
	return r->cmd.op <= HAL_OP_LAUNCH || r->cmd.op == HAL_OP_TIMESTAMP;
}

/* ---- policy
 * ---------------------------------------------------------------------------- */

static void show(struct hal_queue *q)
{
	struct hal_device *dev = q->dev;

	q->view.served_ns = q->account.busy_ns;
	q->part->shown++;
	dev->policy->ready(dev->policy_state, &q->part->view, &q->view);
}

/* The queue's next command could run. */
static ALWAYS_INLINE void offer(struct hal_queue *q, struct record *r)
{
	struct hal_partition *part = q->part;

	q->next = r;
	q->view.ready_ns = q->dev->now;
	q->offered = true;
	if (LIKELY(part->shown == 0 && part->lone == NULL)) {
		part->lone = q;
		return;
	}
	if (part->lone != NULL) {
		show(part->lone);
		part->lone = NULL;
	}
	show(q);
}

/* Whose command is next; NULL: nobody's. */
static ALWAYS_INLINE struct hal_queue *pick(struct hal_device *dev,
					    struct hal_partition *part)
{
	struct hal_queue *q = part->lone;
	struct hal_policy_queue *view;

	if (LIKELY(q != NULL)) {
		part->lone = NULL;
		q->offered = false;
		return q;
	}
	if (part->shown == 0)
		return NULL;
	view = dev->policy->pick(dev->policy_state, &part->view, dev->now);
	if (view == NULL)
		return NULL;
	part->shown--;
	q = container_of(view, struct hal_queue, view);
	q->offered = false;
	return q;
}

void queue_withdraw(struct hal_queue *q)
{
	struct hal_device *dev = q->dev;

	if (!q->offered)
		return;
	q->offered = false;
	if (q->part->lone == q) {
		q->part->lone = NULL;
		return;
	}
	q->part->shown--;
	dev->policy->gone(dev->policy_state, &q->part->view, &q->view);
}

/* ---- the end of things
 * ------------------------------------------------------------------- */

static void keep_fault(struct hal_queue *q, const char *text)
{
	if (q->fault == NULL && text[0] != '\0')
		q->fault = strdup(text);
}

static void fail_queue(struct hal_queue *q, int err, const char *text)
{
	char full[384];
	size_t n;

	queue_describe(q, full, sizeof(full));
	n = strlen(full);
	format_text(full + n, sizeof(full) - n, ": %s", text);
	q->err = err;
	q->odd |= ODD_FAILED;
	q->failing = true;
	q->halted = false;
	queue_withdraw(q);
	if (q->parked) {
		list_del(&q->waiter.node);
		q->parked = false;
	}
	timeline_fail(&q->timeline, err, full);
	atomic_store_explicit(&q->open, 0, memory_order_release);
}

static void signal_failed(struct hal_queue *q, struct hal_timeline *t)
{
	char text[384];

	if (q->failing) {
		timeline_fail(t, q->err,
			      q->timeline.text != NULL ? q->timeline.text : "failed");
		return;
	}
	format_text(text, sizeof(text), "dropped after %s",
		    q->timeline.text != NULL ? q->timeline.text : "a failure");
	timeline_fail(t, -ECANCELED, text);
}

static ALWAYS_INLINE void count_ended(struct hal_device *dev)
{
	/* Written under the lock only. */
	atomic_store_explicit(&dev->ended,
			      atomic_load_explicit(&dev->ended, memory_order_relaxed) + 1,
			      memory_order_relaxed);
}

/* A record that the device has nothing to do with. */
static __attribute__((noinline)) void core_ended(struct hal_queue *q,
						 const struct record *r)
{
	switch (r->cmd.op) {
	case REC_SIGNAL:
		if (q->err == 0)
			timeline_set(r->point.timeline, r->point.value);
		else
			signal_failed(q, r->point.timeline);
		atomic_fetch_sub(&r->point.timeline->pending, 1);
		return;
	case REC_WAIT:
		atomic_fetch_sub(&r->point.timeline->pending, 1);
		return;
	default:
		if (q->err != 0) {
			q->account.dropped++;
		} else {
			q->account.completed++;
			account_latency(&q->account, q->dev->now - r->submit_ns);
			if (UNLIKELY(q->dev->trace != NULL))
				trace_instant(q->dev, q, record_name(r), q->dev->now);
		}
		count_ended(q->dev);
		return;
	}
}

static __attribute__((noinline)) void flight_failed(struct hal_queue *q,
						    const struct flight *f)
{
	const struct record *r = f->record;
	char text[320];

	/* What the device did behind a failure was for nothing. */
	if (q->err != 0) {
		q->account.dropped++;
		return;
	}
	if (f->status == -ECANCELED)
		q->account.dropped++;
	else
		q->account.failed++;
	format_text(text, sizeof(text), "%s \"%s\": %s",
		    r->cmd.op == HAL_OP_LAUNCH ? "launch" : "command", record_name(r),
		    q->fault != NULL ? q->fault : hal_strerror(f->status));
	fail_queue(q, f->status, text);
}

/* Times of a command that ended well. */
static ALWAYS_INLINE void count_completed(struct account *a, uint64_t submit_ns,
					  uint64_t ready_ns, uint64_t start_ns,
					  uint64_t end_ns)
{
	if (UNLIKELY(start_ns > a->last_end_ns)) {
		/* The units were free, or somebody else's. */
		if (ready_ns < a->last_end_ns)
			ready_ns = a->last_end_ns;
		if (start_ns > ready_ns)
			a->queueing_ns += start_ns - ready_ns;
	}
	a->last_end_ns = end_ns;
	a->completed++;
	account_latency(a, LIKELY(end_ns > submit_ns) ? end_ns - submit_ns : 0);
}

/* All of a submission has ended well. */
static ALWAYS_INLINE void submission_ended(struct hal_queue *q)
{
	uint64_t value =
		atomic_load_explicit(&q->timeline.value, memory_order_relaxed) + 1;

	atomic_store_explicit(&q->timeline.value, value, memory_order_release);
	if (UNLIKELY(!list_empty(&q->timeline.waiters)))
		timeline_tell(&q->timeline, value);
}

static void count_deadline(struct hal_queue *q, uint64_t submit_ns, uint64_t end_ns)
{
	if (q->deadline_ns != 0 && end_ns > submit_ns &&
	    end_ns - submit_ns > q->deadline_ns)
		q->account.deadline_misses++;
}

static __attribute__((noinline)) void pop_inner(struct hal_queue *q,
						const struct record *r)
{
	unsigned int pos = q->retire.pos;
	struct block *block = q->slots[pos & q->ring.mask].block;

	cursor_step(q, &q->retire, r);
	if (q->retire.pos == pos)
		return;
	free(block);
	ring_release(q, q->retire.pos);
}

/* The record at the retire cursor has ended: its place may be used again. */
static ALWAYS_INLINE void pop(struct hal_queue *q, const struct record *r)
{
	if (UNLIKELY((r->own & REC_INNER) != 0)) {
		pop_inner(q, r);
		return;
	}
	q->retire.pos += r->slots;
	ring_release(q, q->retire.pos);
}

/* The oldest that the device has had ends: well, all of a submission, in the ring, and
 * of a queue with nothing odd. */
static ALWAYS_INLINE void retire_plain(struct hal_device *dev, struct hal_queue *q,
				       struct flight *f, uint64_t start_ns,
				       uint64_t end_ns)
{
	const struct record *r = f->record;

	count_ended(dev);
	q->oldest = f->next;
	q->flight_count--;
	count_completed(&q->account, r->submit_ns, f->ready_ns, start_ns, end_ns);
	q->retire.pos += r->slots;
	ring_release(q, q->retire.pos);
	submission_ended(q);
}

/* The same, however it has ended. */
static void retire_flight(struct hal_queue *q, struct flight *f)
{
	const struct record *r = f->record;
	bool last = (r->own & REC_END) != 0;

	count_ended(q->dev);
	q->oldest = f->next;
	q->flight_count--;
	if ((f->status | q->err) == 0) {
		count_completed(&q->account, r->submit_ns, f->ready_ns, f->start_ns,
				f->end_ns);
		if (last) {
			count_deadline(q, r->submit_ns, f->end_ns);
			pop(q, r);
			submission_ended(q);
			return;
		}
	} else {
		flight_failed(q, f);
		if (last)
			q->failing = false;
	}
	pop(q, r);
}

/* Ends a record that the device has not had. */
static __attribute__((noinline)) void retire_other(struct hal_queue *q)
{
	const struct record *r = cursor_record(q, q->retire);

	if (!for_device(r)) {
		core_ended(q, r);
	} else {
		/* Never given, because one before it failed. */
		q->account.dropped++;
		count_ended(q->dev);
	}
	q->dev->acted = true;
	if ((r->own & REC_END) != 0) {
		if (q->err == 0) {
			count_deadline(q, r->submit_ns, q->dev->now);
			submission_ended(q);
		} else {
			q->failing = false;
		}
	}
	pop(q, r);
}

void queue_retire(struct hal_queue *q)
{
	for (;;) {
		if (q->flight_count > 0 && cursor_same(q->oldest->at, q->retire)) {
			struct flight *f = q->oldest;

			if (!f->done)
				return;
			retire_flight(q, f);
		} else if (!cursor_same(q->retire, q->issue)) {
			retire_other(q);
		} else {
			q->odd &= ~ODD_MIXED;
			return;
		}
	}
}

/* After a failure: everything that the device does not have. */
static __attribute__((noinline)) void drop_rest(struct hal_queue *q)
{
	const struct flight *f = q->oldest;
	const struct record *r;

	/* Those it has come first, so that ends are told in order. */
	for (uint32_t i = 0; i < q->flight_count; i++, f = f->next)
		if (!f->done)
			return;
	while ((r = queue_next(q)) != NULL)
		cursor_step(q, &q->issue, r);
	queue_retire(q);
}

void queue_abandon(struct hal_queue *q)
{
	fail_queue(q, -ECANCELED, "destroyed while it was suspended");
	drop_rest(q);
}

/* ---- advancing
 * ------------------------------------------------------------------------------ */

static void wait_over(struct waiter *w, int err)
{
	struct hal_queue *q = container_of(w, struct hal_queue, waiter);

	(void)err; /* looked up again when the queue advances */
	q->parked = false;
	engine_todo(q);
}

/* True: the queue may go past the wait. */
static bool wait_passed(struct hal_queue *q, const struct record *r)
{
	struct hal_timeline *t = r->point.timeline;
	int state = timeline_test(t, r->point.value);
	char text[384];

	if (state > 0) {
		if (q->dev->now > q->gate_ns)
			q->gate_ns = q->dev->now;
		return true;
	}
	if (state == 0) {
		q->waiter.value = r->point.value;
		q->waiter.fn = wait_over;
		q->parked = true;
		timeline_add_waiter(t, &q->waiter);
		return false;
	}
	/* What is before the wait ends first. */
	if (!cursor_same(q->issue, q->retire))
		return false;
	format_text(text, sizeof(text), "waits for a point that failed: %s",
		    t->text != NULL ? t->text : hal_strerror(state));
	fail_queue(q, -ECANCELED, text);
	return false;
}

/* What needs no device, up to the next command that does.  True: that one is offered, and
 * the partition may be able to take it. */
static __attribute__((noinline)) bool advance_any(struct hal_queue *q)
{
	for (;;) {
		struct record *r;

		if (q->err != 0) {
			drop_rest(q);
			return false;
		}
		if (q->held != 0)
			return false;
		r = queue_next(q);
		if (r == NULL)
			return false;
		/* Written while the engine slept, but seen after it had looked. */
		if (r->submit_ns == 0 && !q->dev->virtual_clock)
			r->submit_ns = q->dev->now;
		if (for_device(r)) {
			if (q->flight_count == q->flight_max)
				return false;
			offer(q, r);
			return true;
		}
		if (r->cmd.op == HAL_OP_HOST) {
			/* After all before it; the engine calls it from its own level. */
			if (cursor_same(q->issue, q->retire))
				engine_todo(q);
			return false;
		}
		if (r->cmd.op == REC_WAIT && !wait_passed(q, r)) {
			if (q->err != 0)
				continue;
			return false;
		}
		q->odd |= ODD_MIXED;
		cursor_step(q, &q->issue, r);
		queue_retire(q);
	}
}

/* r, a queue's next record, is a command the device may have, and there is nothing else
 * to be looked at. */
static ALWAYS_INLINE bool is_plain(const struct record *r)
{
	return LIKELY(r->cmd.op <= HAL_OP_LAUNCH && r->submit_ns != 0);
}

/* The same as advance_any, quickly where that is so.  room: for one more. */
static ALWAYS_INLINE bool advance(struct hal_queue *q, bool room)
{
	unsigned int pos = q->issue.pos;
	struct record *r = &q->slots[pos & q->ring.mask];

	if (LIKELY(q->held == 0)) {
		if (pos == ring_tail(q))
			return false;
		if (is_plain(r)) {
			if (!room && q->flight_count == q->flight_max)
				return false;
			offer(q, r);
			return true;
		}
	}
	return advance_any(q);
}

void queue_advance(struct hal_queue *q)
{
	if (advance(q, false))
		engine_dirty(q->part);
}

void queue_work(struct hal_queue *q)
{
	const struct record *r = queue_next(q);

	if (r != NULL && r->cmd.op == HAL_OP_HOST && q->err == 0 && !q->halted &&
	    q->state == QUEUE_RUNNING && cursor_same(q->issue, q->retire)) {
		cursor_step(q, &q->issue, r);
		callback_run(q->dev, r->host.fn, r->host.user);
		queue_retire(q);
	}
	queue_advance(q);
}

/* ---- giving
 * ------------------------------------------------------------------------------ */

/* r has been taken from the queue, for the device or to end in its turn. */
static ALWAYS_INLINE void fly(struct hal_device *dev, struct hal_queue *q,
			      struct flight *f, struct record *r)
{
	f->record = r;
	f->at = q->issue;
	f->issue_ns = dev->now;
	f->ready_ns = r->submit_ns > q->gate_ns ? r->submit_ns : q->gate_ns;
	f->done = false;
	f->killed = false;
	q->fresh = f->next;
	q->flight_count++;
}

/* The device has not taken r. */
static __attribute__((cold, noinline)) int refused(struct hal_queue *q, struct record *r,
						   int err)
{
	struct hal_device *dev = q->dev;
	struct flight *f = q->fresh;

	if (err == -EAGAIN)
		return err;
	/* It ends in its turn, behind those that the device has. */
	fly(dev, q, f, r);
	cursor_step(q, &q->issue, r);
	dev->acted = true;
	f->done = true;
	f->status = err;
	f->start_ns = dev->now;
	f->end_ns = dev->now;
	q->halted = true;
	q->odd |= ODD_MIXED;
	keep_fault(q, hal_last_error());
	queue_retire(q);
	return 0;
}

/* The queue's next command to the device.  -EAGAIN: the device has no room.  plain, a
 * constant: r lies in the ring, no trace is written, and this is a turn that has told of
 * something. */
static ALWAYS_INLINE int give(struct hal_device *dev, struct hal_partition *part,
			      struct hal_queue *q, struct record *r, bool plain)
{
	struct flight *f = q->fresh;
	int err;

	r->cmd.cookie = (uint64_t)(uintptr_t)f;
	err = dev->backend->table.hot.submit(dev->bk, q->bk, &r->cmd);
	if (UNLIKELY(err != 0))
		return refused(q, r, err);
	fly(dev, q, f, r);
	list_add_before(&dev->flights, &f->on_device);
	dev->pending++;
	part->inflight++;
	if (plain) {
		q->issue.pos += r->slots;
		return 0;
	}
	cursor_step(q, &q->issue, r);
	dev->acted = true;
	if (UNLIKELY(dev->trace != NULL))
		trace_depth(dev, part, dev->now);
	return 0;
}

/* The device has no room for the command just tried. */
static __attribute__((cold, noinline)) void block(struct hal_device *dev,
						  struct hal_partition *part)
{
	list_del(&part->dirty);
	list_add_before(&dev->blocked, &part->dirty);
	dev->errands |= ERRAND_BLOCKED;
}

/* A move that needs a quiet partition is under way. */
static inline bool standing_still(const struct hal_device *dev,
				  const struct hal_partition *part)
{
	return UNLIKELY(part->moving.units != 0) &&
	       (dev->info.caps & HAL_CAP_RESIZE_LIVE) == 0;
}

static ALWAYS_INLINE void serve(struct hal_device *dev, struct hal_partition *part)
{
	if (standing_still(dev, part))
		return;
	while (part->inflight < dev->partition_inflight) {
		struct hal_queue *q = pick(dev, part);
		int err;

		if (q == NULL)
			return;
		err = give(dev, part, q, q->next, false);
		/* When it has all it may have, an end is what makes it go on. */
		if (q->flight_count < q->flight_max)
			(void)advance(q, true);
		if (UNLIKELY(err == -EAGAIN)) {
			block(dev, part);
			return;
		}
	}
}

static __attribute__((noinline)) void serve_rest(struct hal_device *dev,
						 struct hal_partition *part)
{
	serve(dev, part);
}

/* q, of which a command has ended, has r next, and part room for it.  As offering it and
 * serving the partition, where it is the only one. */
static ALWAYS_INLINE void give_on(struct hal_device *dev, struct hal_partition *part,
				  struct hal_queue *q, struct record *r)
{
	int err = give(dev, part, q, r, true);

	if (q->flight_count < q->flight_max)
		(void)advance(q, true);
	if (UNLIKELY(err != 0))
		block(dev, part);
	else if (part->inflight < dev->partition_inflight)
		serve_rest(dev, part);
}

static void unblock(struct hal_device *dev)
{
	while (!list_empty(&dev->blocked)) {
		struct list *node = dev->blocked.next;

		list_del(node);
		list_add_before(&dev->dirty, node);
	}
}

static __attribute__((noinline)) void give_all(struct hal_device *dev)
{
	unblock(dev);
	dev->errands &= ERRAND_GRAVES;
	while (!list_empty(&dev->todo) || !list_empty(&dev->dirty)) {
		while (!list_empty(&dev->todo)) {
			struct hal_queue *q =
				container_of(dev->todo.next, struct hal_queue, todo);

			list_del(&q->todo);
			dev->acted = true;
			queue_work(q);
		}
		if (!list_empty(&dev->dirty)) {
			struct hal_partition *part = container_of(
				dev->dirty.next, struct hal_partition, dirty);

			list_del(&part->dirty);
			serve(dev, part);
		}
	}
	dev->errands &= (uint8_t)~ERRAND_WORK;
}

/* ---- ending
 * ---------------------------------------------------------------------------------- */

/* When the oldest command that the device has of part (NULL: of all) was given to it. */
static uint64_t settled(const struct hal_device *dev, const struct hal_partition *part)
{
	for (const struct list *it = dev->flights.next; it != &dev->flights;
	     it = it->next) {
		const struct flight *f = container_of(it, struct flight, on_device);

		if (part == NULL || f->queue->part == part)
			return f->issue_ns;
	}
	return dev->now;
}

/* Anything else than one that goes on where those before it ended. */
static __attribute__((noinline)) void busy_apart(struct hal_device *dev,
						 struct hal_partition *part,
						 struct account *a, uint64_t start,
						 uint64_t end)
{
	uint64_t from = start > a->busy_until_ns ? start : a->busy_until_ns;

	if (end > from) {
		a->busy_ns += end - from;
		a->busy_until_ns = end;
	}
	if (!busy_extend(&part->busy, start, end))
		busy_insert(&part->busy, start, end, settled(dev, part));
	if (!busy_extend(&dev->busy, start, end))
		busy_insert(&dev->busy, start, end, settled(dev, NULL));
}

/* What the device did for f. */
static ALWAYS_INLINE void flight_over(struct hal_device *dev, struct hal_partition *part,
				      struct flight *f, const struct hal_bk_event *ev)
{
	uint64_t start = ev->start_ns, end = ev->end_ns;
	struct account *a = &f->queue->account;

	/* Mostly it began when its queue, partition and device had ended another. */
	if (LIKELY(end >= start && start >= a->busy_until_ns &&
		   start == part->busy.at[0].end && start == dev->busy.at[0].end)) {
		uint64_t ran = end - start;

		a->busy_ns += ran;
		a->busy_until_ns = end;
		part->busy.total += ran;
		part->busy.at[0].end = end;
		dev->busy.total += ran;
		dev->busy.at[0].end = end;
	} else {
		busy_apart(dev, part, a, start, end);
	}
	a->bytes_read += ev->bytes_read;
	a->bytes_written += ev->bytes_written;
	list_take(&f->on_device);
	dev->pending--;
	part->inflight--;
}

/* The end of a command that is not plain: it has failed, its queue is being suspended,
 * a trace is written, more of its submission is to come ... */
static __attribute__((noinline)) void odd_done(struct hal_queue *q, struct flight *f,
					       const struct hal_bk_event *ev)
{
	struct hal_device *dev = q->dev;
	bool kill = q->state == QUEUE_SUSPENDING && ev->status == -ECANCELED &&
		    q->suspend_mode == HAL_SUSPEND_KILL;

	f->start_ns = ev->start_ns;
	f->end_ns = ev->end_ns;
	f->status = ev->status;
	trace_depth(dev, q->part, dev->now);
	if (kill && f->end_ns > f->start_ns) {
		q->account.replayed++;
		q->account.replayed_ns += f->end_ns - f->start_ns;
	}
	if (!kill || f->end_ns > f->start_ns)
		trace_command(dev, f, record_name(f->record), f->record->submit_ns);
	if (kill) {
		f->killed = true; /* to be given again */
	} else {
		f->done = true;
		if (f != q->oldest)
			q->odd |= ODD_MIXED;
		if (ev->status != 0) {
			q->halted = true;
			keep_fault(q, ev->fault);
		}
		queue_retire(q);
	}
	/* Held back by the core alone: quiet once the device has nothing of it. */
	if (q->state == QUEUE_SUSPENDING && !q->bk_suspended && q->flight_count == 0)
		engine_quiet(q);
}

/* A command has ended.  alone: nothing else is to be done before its partition, which has
 * room now, is served. */
static ALWAYS_INLINE void command_done(struct hal_device *dev,
				       const struct hal_bk_event *ev, bool alone)
{
	struct flight *f = cookie_pointer(ev->cookie);
	struct hal_queue *q = f->queue;
	struct hal_partition *part = q->part;
	struct record *next;
	unsigned int pos;

	flight_over(dev, part, f, ev);
	if (UNLIKELY(((uint32_t)ev->status | q->odd) != 0 || f != q->oldest ||
		     f->record->own != REC_END)) {
		odd_done(q, f, ev);
		goto any;
	}
	retire_plain(dev, q, f, ev->start_ns, ev->end_ns);
	pos = q->issue.pos;
	if (UNLIKELY(!alone || dev->errands != 0 || q->held != 0 || part->lone != NULL ||
		     part->shown != 0 || standing_still(dev, part)))
		goto any;
	if (pos == ring_tail(q))
		return; /* nobody has anything for the partition */
	next = &q->slots[pos & q->ring.mask];
	if (is_plain(next)) {
		give_on(dev, part, q, next);
		return;
	}
any:
	(void)advance(q, false);
	if (alone && dev->errands == 0)
		serve_rest(dev, part);
	else
		engine_dirty(part);
}

static __attribute__((noinline)) void quiet(struct hal_device *dev,
					    const struct hal_bk_event *ev)
{
	dev->pending--;
	if ((ev->cookie & COOKIE_PARTITION) != 0)
		partition_moved(cookie_pointer(ev->cookie & ~COOKIE_PARTITION),
				ev->status);
	else
		engine_quiet(cookie_pointer(ev->cookie));
}

static __attribute__((cold, noinline)) void lost_command(struct hal_device *dev,
							 const struct hal_bk_event *ev)
{
	command_done(dev, ev, false);
}

/* The device does not answer any more: all it has is lost. */
static __attribute__((cold, noinline)) void device_lost(struct hal_device *dev)
{
	struct hal_bk_event ev = {.kind = HAL_BK_DONE, .status = -EIO};

	format_text(ev.fault, sizeof(ev.fault), "the device is lost: %s",
		    hal_last_error());
	ev.start_ns = dev->now;
	ev.end_ns = dev->now;
	while (!list_empty(&dev->flights)) {
		struct flight *f =
			container_of(dev->flights.next, struct flight, on_device);

		ev.cookie = (uint64_t)(uintptr_t)f;
		lost_command(dev, &ev);
	}
	hal_list_for_each (p, &dev->partitions) {
		struct hal_partition *part =
			container_of(p, struct hal_partition, on_device);

		hal_list_for_each (it, &part->queues) {
			struct hal_queue *q =
				container_of(it, struct hal_queue, on_partition);

			if (q->state == QUEUE_SUSPENDING)
				engine_quiet(q);
		}
		if (part->moving.units != 0)
			partition_moved(part, -EIO);
	}
	dev->pending = 0;
}

/* ---- a turn
 * -------------------------------------------------------------------------------------
 */

static ALWAYS_INLINE void take_events(struct hal_device *dev,
				      const struct hal_bk_event *ev, int n)
{
	for (;; ev++) {
		n--;
		if (LIKELY(ev->kind == HAL_BK_DONE))
			command_done(dev, ev, n == 0);
		else
			quiet(dev, ev);
		if (n == 0)
			return;
	}
}

static __attribute__((noinline)) void begin_real(struct hal_device *dev)
{
	engine_now(dev);
	if (atomic_load_explicit(&dev->ready, memory_order_relaxed) != NULL)
		engine_intake(dev);
	atomic_store_explicit(&dev->slept, false, memory_order_relaxed);
}

static __attribute__((noinline)) void do_errands(struct hal_device *dev)
{
	if ((dev->errands & ERRAND_WORK) != 0)
		give_all(dev);
	if ((dev->errands & ERRAND_GRAVES) != 0)
		grave_sweep(dev);
}

/* What comes before the device is run: submissions, commands for it. */
static ALWAYS_INLINE void begin(struct hal_device *dev)
{
	dev->acted = false;
	if (UNLIKELY(!dev->virtual_clock))
		begin_real(dev);
	else if (atomic_load_explicit(&dev->ready, memory_order_relaxed) != NULL)
		engine_intake(dev);
	if (UNLIKELY(dev->errands != 0))
		give_all(dev);
}

/* A turn in which the device told of nothing.  False: nothing else happened either. */
static __attribute__((noinline)) bool told_nothing(struct hal_device *dev, int n)
{
	if (n < 0)
		device_lost(dev);
	if (dev->errands != 0)
		do_errands(dev);
	return dev->acted || n < 0;
}

bool engine_run(struct hal_device *dev, uint64_t until_ns, const struct hal_timeline *t,
		uint64_t value)
{
	struct hal_bk_event ev[EVENTS];

	do {
		int n = 0;

		begin(dev);
		if (LIKELY(dev->pending != 0)) {
			n = dev->backend->table.hot.poll(dev->bk, until_ns, ev, EVENTS);
			engine_now(dev);
		}
		if (LIKELY(n > 0)) {
			take_events(dev, ev, n);
			if (UNLIKELY(dev->errands != 0))
				do_errands(dev);
		} else if (!told_nothing(dev, n)) {
			return false;
		}
	} while (t != NULL && timeline_test(t, value) == 0 &&
		 atomic_load_explicit(&dev->lock_waiters, memory_order_relaxed) == 0);
	return true;
}
