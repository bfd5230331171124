/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flow.c - what every command goes through: from its queue's ring to the policy, to the
 * device, to its end.
 *
 *   queue_message -> queue_advance -> runnable -> serve -> issue -> (device)
 *                                                                     |
 *   submission_over <- retire_inflight <- queue_retire <- command_ended <-
 *
 * There is one way, and what is rare in it is behind a flag of the queue (SLOW_).  All of
 * it is in one file so that the compiler makes one function of a turn; the figures
 * hal.submit.total_instructions and docs/performance.md count it.
 */
#include "command/flow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "command/callback.h"
#include "command/completions.h"
#include "command/deferred.h"
#include "loop/engine.h"
#include "memory/bimodal.h"
#include "replay/journal.h"
#include "sched/inherit.h"
#include "sched/policy.h"
#include "util/error.h"

#define EVENTS 16

/* ---- the place of issue ------------------------------------------------------------ */

/* The record in the ring that r, at c, is or belongs to. */
static ALWAYS_INLINE struct record *outer(struct hal_queue *q, union cursor c,
					  struct record *r)
{
	return LIKELY((r->own & REC_INNER) == 0) ? r : &q->slots[c.pos & q->ring.mask];
}

/* When r, of the ring, was submitted. */
static ALWAYS_INLINE uint64_t submitted(const struct hal_queue *q, struct record *r)
{
	/* Written while the engine slept, but seen after it had woken. */
	if (UNLIKELY(r->submit_ns == SUBMIT_ASLEEP))
		r->submit_ns = q->dev->now;
	return r->submit_ns;
}

/* Issue is behind r now, which lies in, or is, of_ring. */
static NOINLINE void stepped(struct hal_queue *q, const struct record *r,
			     const struct record *of_ring)
{
	if ((q->stepping & STEP_INSIDE) != 0)
		q->inside = (q->issue.inner != 0 || (of_ring->own & REC_END) == 0) &&
			    (q->inside || record_for_device(r));
	if (q->issue.inner != 0)
		return;
	if ((q->stepping & STEP_JOURNAL) != 0)
		q->journal_limited = q->issue.pos == q->replay.limit;
	/* What a submission asked for ends with its last record. */
	if ((q->stepping & STEP_TERMS) == 0 || (of_ring->own & REC_END) == 0)
		return;
	q->issue_terms = q->default_terms;
	q->stepping &= (uint8_t)~STEP_TERMS;
}

/* Past r, which lies in, or is, of_ring. */
static ALWAYS_INLINE void step(struct hal_queue *q, const struct record *r,
			       const struct record *of_ring)
{
	cursor_step(q, &q->issue, r);
	if (UNLIKELY(q->stepping != 0))
		stepped(q, r, of_ring);
}

/* ---- runnable ---------------------------------------------------------------------- */

/* The queue's next command, r, could run. */
static ALWAYS_INLINE void runnable(struct hal_queue *q, struct record *r)
{
	struct hal_partition *part = q->part;

	q->next = r;
	q->runnable = true;
	if (LIKELY(part->sched.enqueued == 0 && part->sched.sole == NULL))
		part->sched.sole = q;
	else
		policy_enqueue(q);
}

/* Whose command is next; NULL: nobody's. */
static ALWAYS_INLINE struct hal_queue *next_queue(struct hal_partition *part)
{
	struct hal_queue *q = part->sched.sole;

	if (LIKELY(q != NULL))
		part->sched.sole = NULL;
	else if (part->sched.enqueued == 0 || (q = policy_pick(part)) == NULL)
		return NULL;
	q->runnable = false;
	return q;
}

/* ---- failing ----------------------------------------------------------------------- */

static void keep_fault(struct hal_queue *q, const char *text)
{
	if (q->fault == NULL && text[0] != '\0')
		q->fault = strdup(text);
}

static COLD void fail_queue(struct hal_queue *q, int err, const char *text)
{
	char full[384];
	size_t n;

	queue_describe(q, full, sizeof(full));
	n = strlen(full);
	format_text(full + n, sizeof(full) - n, ": %s", text);
	q->err = err;
	q->failing = true;
	q->halted = false;
	queue_withdraw(q, HAL_POLICY_FAILED);
	queue_unpark(q);
	if (q->sched.urgent)
		queue_todo(q);
	timeline_fail(&q->timeline, err, full, q->dev);
	atomic_store_explicit(&q->open, 0, memory_order_release);
}

static COLD void signal_failed(struct hal_queue *q, struct hal_timeline *t)
{
	const char *why = timeline_text(&q->timeline);
	char text[384];

	if (q->failing) {
		timeline_fail(t, q->err, why != NULL ? why : "failed", q->dev);
		return;
	}
	format_text(text, sizeof(text), "dropped after %s",
		    why != NULL ? why : "a failure");
	timeline_fail(t, -ECANCELED, text, q->dev);
}

static void queue_retire(struct hal_queue *q);

/* After a failure: everything that the device does not have. */
static COLD void drop_rest(struct hal_queue *q)
{
	const struct inflight *f = q->oldest;
	struct record *r;

	/* Those it has come first, so that ends are told in order. */
	for (uint32_t i = 0; i < q->inflight_count; i++, f = f->next)
		if (!f->done)
			return;
	if (q->in_callback)
		return;
	q->slow |= SLOW_OTHERS;
	q->dev->memory.residency->look(q);
	while ((r = queue_next(q)) != NULL)
		step(q, r, outer(q, q->issue, r));
	queue_retire(q);
}

void queue_abandon(struct hal_queue *q)
{
	struct inflight *f = q->oldest;

	fail_queue(q, -ECANCELED, "destroyed while it was suspended");
	/* What the device kept of it went with its queue there. */
	for (uint32_t i = 0; i < q->inflight_count; i++, f = f->next) {
		if (f->done)
			continue;
		f->done = true;
		f->status = -ECANCELED;
		f->start_ns = f->end_ns = q->dev->now;
	}
	q->sched.frozen = 0;
	drop_rest(q);
}

void queue_end(struct hal_queue *q)
{
	fail_queue(q, -ECANCELED, "suspended for good");
	q->failing = !queue_empty(q);
	drop_rest(q);
}

/* ---- the end of things ------------------------------------------------------------- */

/* The end of a submission of a queue that has more to do there than to raise its value.
 */
static NOINLINE void over_slowly(struct hal_queue *q, int status, uint64_t submit_ns,
				 uint64_t end_ns)
{
	uint64_t took = end_ns > submit_ns ? end_ns - submit_ns : 0;

	/* Who finds the point reached finds it counted; who reads of the end finds the
	 * point reached. */
	if (status == 0 && q->retire_terms.deadline_ns != 0 &&
	    took > q->retire_terms.deadline_ns)
		counter_add(&q->observe.account.deadline_misses, 1);
	atomic_store_explicit(&q->timeline.value, q->timeline.seen, memory_order_release);
	if ((q->slow & SLOW_NOTIFIES) != 0)
		completions_add(q, status, submit_ns, end_ns);
	if ((q->slow & SLOW_HEAD) != 0) {
		q->retire_terms = q->default_terms;
		q->slow &= ~SLOW_HEAD;
		if (q->default_terms.deadline_ns == 0)
			q->slow &= ~SLOW_DEADLINE;
	}
}

/* All of a submission has ended; own is its last record's. */
static ALWAYS_INLINE void submission_over(struct hal_queue *q, uint32_t own,
					  uint64_t submit_ns, uint64_t end_ns)
{
	int status = q->err;

	if (LIKELY(status == 0)) {
		uint64_t value = ++q->timeline.seen;

		if (UNLIKELY((own & REC_WHOLE) == 0))
			account_latency(&q->observe.account, LATENCY_SUBMISSION,
					end_ns > submit_ns ? end_ns - submit_ns : 0);
		if (UNLIKELY((q->slow & (SLOW_DEADLINE | SLOW_NOTIFIES | SLOW_HEAD)) !=
			     0))
			over_slowly(q, 0, submit_ns, end_ns);
		else
			atomic_store_explicit(&q->timeline.value, value,
					      memory_order_release);
		if (UNLIKELY(!heap_empty(&q->timeline.waiters)))
			timeline_notify(&q->timeline, value);
		return;
	}
	over_slowly(q, q->failing ? status : -ECANCELED, submit_ns, end_ns);
	q->failing = false;
}

/* The same for one of a block; its block goes with the last of it. */
static NOINLINE uint32_t pop_inner(struct hal_queue *q, const struct record *r)
{
	const struct record *of_ring = &q->slots[q->retire.pos & q->ring.mask];
	struct block *block = of_ring->block;
	uint32_t own = of_ring->own;
	unsigned int pos = q->retire.pos;

	cursor_step(q, &q->retire, r);
	if (q->retire.pos == pos)
		return 0;
	if (block_put(block))
		free(block);
	ring_release(&q->ring, q->retire.pos);
	return own;
}

/* The record at the retire cursor has ended: its place may be used again.  Returns its
 * .own, as far as it tells of the submission. */
static ALWAYS_INLINE uint32_t pop(struct hal_queue *q, const struct record *r)
{
	uint32_t own = r->own;

	if (UNLIKELY((own & REC_INNER) != 0))
		return pop_inner(q, r);
	q->retire.pos += r->slots;
	ring_release(&q->ring, q->retire.pos);
	return own;
}

static COLD void inflight_failed(struct hal_queue *q, const struct inflight *f)
{
	const struct record *r = f->record;
	char text[320];

	/* What the device did behind a failure was for nothing. */
	if (q->err != 0) {
		counter_add(&q->observe.account.dropped, 1);
		return;
	}
	counter_add(f->status == -ECANCELED ? &q->observe.account.dropped
					    : &q->observe.account.failed,
		    1);
	format_text(text, sizeof(text), "%s \"%s\": %s",
		    r->cmd.op == HAL_OP_LAUNCH ? "launch" : "command", record_name(r),
		    q->fault != NULL ? q->fault : hal_strerror(f->status));
	fail_queue(q, f->status, text);
}

/* f was ready, and ran from start_ns to end_ns. */
static ALWAYS_INLINE void count_queueing(struct account *a, const struct inflight *f,
					 uint64_t start_ns, uint64_t end_ns)
{
	uint64_t ready_ns = f->ready_ns;

	if (UNLIKELY(start_ns > a->last_end_ns)) {
		/* The units were free, or somebody else's. */
		if (ready_ns < a->last_end_ns)
			ready_ns = a->last_end_ns;
		if (start_ns > ready_ns)
			counter_add(&a->queueing_ns, start_ns - ready_ns);
	}
	a->last_end_ns = end_ns;
}

/* Times of a command that ended well. */
static ALWAYS_INLINE void count_completed(struct account *a, const struct inflight *f)
{
	uint64_t took;

	count_queueing(a, f, f->start_ns, f->end_ns);
	counter_add(&a->completed, 1);
	took = LIKELY(f->end_ns > f->submit_ns) ? f->end_ns - f->submit_ns : 0;
	if (LIKELY((f->record->own & REC_WHOLE) != 0))
		account_latency(a, LATENCY_BOTH, took);
	else
		account_latency(a, LATENCY_COMMAND, took);
}

/* The oldest that the device has had ends. */
static ALWAYS_INLINE void retire_inflight(struct hal_queue *q, struct inflight *f)
{
	uint32_t own;

	counter_add(&q->dev->command.ended, 1);
	q->oldest = f->next;
	q->inflight_count--;
	if (LIKELY((f->status | q->err) == 0))
		count_completed(&q->observe.account, f);
	else
		inflight_failed(q, f);
	own = pop(q, f->record);
	if ((own & REC_END) != 0)
		submission_over(q, own, f->submit_ns, f->end_ns);
}

static void head_ends(struct hal_queue *q, const struct record *r)
{
	q->retire_terms.deadline_ns = r->head.deadline_ns != 0
					      ? r->head.deadline_ns
					      : q->default_terms.deadline_ns;
	q->retire_terms.priority = (r->head.flags & HAL_SUBMIT_PRIORITY) != 0
					   ? r->head.priority
					   : q->default_terms.priority;
	q->retire_terms.tag = r->head.tag;
	q->slow |= SLOW_HEAD;
	if (q->retire_terms.deadline_ns != 0)
		q->slow |= SLOW_DEADLINE;
}

/* A command that needed no device, or never had it because of a failure, has ended. */
static void count_other(struct hal_queue *q, const struct record *r, uint64_t submit_ns)
{
	struct hal_device *dev = q->dev;
	uint64_t now = dev->now;

	counter_add(&dev->command.ended, 1);
	if (q->err != 0) {
		counter_add(&q->observe.account.dropped, 1);
		return;
	}
	counter_add(&q->observe.account.completed, 1);
	account_latency(&q->observe.account,
			(r->own & REC_WHOLE) != 0 ? LATENCY_BOTH : LATENCY_COMMAND,
			now > submit_ns ? now - submit_ns : 0);
	OBSERVED(dev, instant, q, record_name(r), now);
}

static ALWAYS_INLINE void points_passed(const struct record *r)
{
	record_for_each_point(p, r) atomic_fetch_sub(&p->timeline->pending, 1);
}

/* The buffer is there, or will not be. */
static COLD void recolored(struct hal_queue *q, const struct record *r)
{
	int err = q->dev->memory.residency->end(r->recolor, q->err);

	if (err == 0)
		return;
	keep_fault(q, hal_last_error());
	fail_queue(q, err, q->fault != NULL ? q->fault : "the buffer was not moved");
}

static ALWAYS_INLINE void signal_points(struct hal_queue *q, const struct record *r)
{
	record_for_each_point(p, r)
	{
		if (LIKELY(q->err == 0))
			timeline_raise(p->timeline, p->value, q->dev);
		else
			signal_failed(q, p->timeline);
		atomic_fetch_sub(&p->timeline->pending, 1);
	}
}

static COLD void retire_recolor(struct hal_queue *q, const struct record *r)
{
	if (r->cmd.op == REC_RECOLORED)
		recolored(q, r);
	q->dev->memory.residency->put(r->recolor);
}

/* A record that the device has not had. */
static ALWAYS_INLINE void retire_other(struct hal_queue *q, struct record *r)
{
	uint64_t submit_ns = submitted(q, outer(q, q->retire, r));
	uint32_t own;

	if (LIKELY(r->cmd.op == REC_WAIT))
		points_passed(r);
	else if (LIKELY(r->cmd.op == REC_SIGNAL))
		signal_points(q, r);
	else if (r->cmd.op == REC_HEAD)
		head_ends(q, r);
	else if (r->cmd.op == REC_RECOLOR || r->cmd.op == REC_RECOLORED)
		retire_recolor(q, r);
	else
		count_other(q, r, submit_ns);
	own = pop(q, r);
	if ((own & REC_END) != 0)
		submission_over(q, own, submit_ns, q->dev->now);
}

/* All up to the oldest that the device has, or to the next it gets. */
static NOINLINE void retire_others(struct hal_queue *q)
{
	struct hal_device *dev = q->dev;

	dev->acted = true;
	/* Its own signals need not tell it to go on: it does. */
	dev->command.retiring = q;
	do
		retire_other(q, cursor_record(q, q->retire));
	while (!cursor_same(q->retire, q->issue) &&
	       !(q->inflight_count > 0 && cursor_same(q->oldest->at, q->retire)));
	dev->command.retiring = NULL;
}

/* Ends what is done, in order. */
static ALWAYS_INLINE void retire_ended(struct hal_queue *q)
{
	for (;;) {
		struct inflight *f = q->oldest;

		if (q->inflight_count > 0 && cursor_same(f->at, q->retire)) {
			if (!f->done)
				return;
			retire_inflight(q, f);
		} else if (UNLIKELY(!cursor_same(q->retire, q->issue))) {
			retire_others(q);
		} else {
			q->slow &= ~SLOW_OTHERS;
			break;
		}
		if (UNLIKELY((q->slow & (SLOW_DEFERRED | SLOW_OTHERS)) != 0)) {
			if ((q->slow & SLOW_DEFERRED) != 0)
				deferred_go_on(q);
		} else if (q->inflight_count > 0) {
			/* Nothing but what the device has is in between. */
			if (!q->oldest->done)
				return;
		} else {
			break;
		}
	}
	if (queue_empty(q) && !list_empty(&q->busy))
		list_del(&q->busy);
}

/* Ends what is done, in order. */
static NOINLINE void queue_retire(struct hal_queue *q)
{
	retire_ended(q);
}

/* ---- advancing --------------------------------------------------------------------- */

static void wait_over(struct waiter *w, int err)
{
	struct hal_queue *q = container_of(w, struct hal_queue, waiter);

	(void)err; /* looked up again when the queue advances */
	q->parked = false;
	inherit_end(q);
	if (q->dev->command.retiring != q)
		queue_todo(q);
}

static void time_over(struct hal_device *dev, struct timer *t)
{
	struct hal_queue *q = container_of(t, struct hal_queue, timer);

	(void)dev;
	q->parked = false;
	queue_todo(q);
}

/* All that r uses cannot be on the device: hal_last_error says why.  True: its queue has
 * failed. */
static COLD bool no_memory_for(struct hal_queue *q, const struct record *r, int err)
{
	char text[512];

	/* What is before it ends first. */
	if (!cursor_same(q->issue, q->retire))
		return false;
	if (r->cmd.op == REC_RECOLOR)
		format_text(text, sizeof(text), "the buffer was not moved: %s",
			    hal_last_error());
	else
		format_text(text, sizeof(text), "%s \"%s\": %s",
			    r->cmd.op == HAL_OP_LAUNCH ? "launch" : "command",
			    record_name(r), hal_last_error());
	fail_queue(q, err, text);
	return true;
}

static COLD bool wait_failed(struct hal_queue *q, const struct hal_timeline *t)
{
	char text[384];

	/* What is before the wait ends first. */
	if (!cursor_same(q->issue, q->retire))
		return false;
	format_text(text, sizeof(text), "waits for a point that failed: %s",
		    timeline_text(t));
	fail_queue(q, -ECANCELED, text);
	return false;
}

/* True: the queue may go past the wait. */
static ALWAYS_INLINE bool wait_passed(struct hal_queue *q, const struct record *r)
{
	record_for_each_point(p, r)
	{
		struct hal_timeline *t = p->timeline;

		if (LIKELY(t->seen >= p->value))
			continue;
		if (t->seen_err != 0)
			return wait_failed(q, t);
		q->parked = true;
		q->waiter.fn = wait_over;
		timeline_add_waiter(t, &q->waiter, p->value);
		inherit_begin(q);
		return false;
	}
	if (q->dev->now > q->unparked_ns)
		q->unparked_ns = q->dev->now;
	return true;
}

static bool head_passed(struct hal_queue *q, const struct record *r)
{
	struct hal_device *dev = q->dev;

	q->issue_terms.deadline_ns = r->head.deadline_ns != 0
					     ? r->head.deadline_ns
					     : q->default_terms.deadline_ns;
	q->issue_terms.priority = (r->head.flags & HAL_SUBMIT_PRIORITY) != 0
					  ? r->head.priority
					  : q->default_terms.priority;
	q->stepping |= STEP_TERMS;
	if (r->head.not_before_ns <= dev->now) {
		if (r->head.not_before_ns > q->unparked_ns)
			q->unparked_ns = r->head.not_before_ns;
		return true;
	}
	q->parked = true;
	q->timer.fn = time_over;
	timer_set(dev, &q->timer, r->head.not_before_ns);
	return false;
}

/* Past r, which is the engine's own business. */
static ALWAYS_INLINE void pass(struct hal_queue *q, struct record *r)
{
	step(q, r, outer(q, q->issue, r));
	q->slow |= SLOW_OTHERS;
}

/* Past r, before which all has ended: it ends, too. */
static ALWAYS_INLINE void pass_first(struct hal_queue *q, struct record *r)
{
	bool plain = r->cmd.op == REC_WAIT && (r->own & (REC_END | REC_INNER)) == 0 &&
		     (q->slow & SLOW_DEFERRED) == 0;

	pass(q, r);
	if (UNLIKELY(!plain)) {
		queue_retire(q);
		return;
	}
	points_passed(r);
	q->retire = q->issue;
	ring_release(&q->ring, q->retire.pos);
}

/* r, the next record, may have to be waited for.  True: it is behind us. */
static NOINLINE bool try_pass(struct hal_queue *q, struct record *r)
{
	bool first = cursor_same(q->issue, q->retire);

	if (LIKELY(r->cmd.op == REC_WAIT)) {
		if (!wait_passed(q, r))
			return false;
	} else if (r->cmd.op == REC_HEAD) {
		if (!head_passed(q, r))
			return false;
	} else if (r->cmd.op == HAL_OP_HOST) {
		/* After all before it; called from the turn's own level. */
		if (first && !q->in_callback)
			queue_todo(q);
		return false;
	} else if (r->cmd.op == REC_RECOLOR) {
		int may = q->dev->memory.residency->begin(r->recolor);

		if (may < 0)
			(void)no_memory_for(q, r, may);
		if (may <= 0)
			return false;
	} else if (r->cmd.op == REC_RECOLORED && !first) {
		return false; /* it ends before anything behind it begins */
	}
	if (first)
		pass_first(q, r);
	else
		pass(q, r);
	return true;
}

/* NOLINTBEGIN(misc-no-recursion): the one for watched queues does not come back */
static bool advance_watched(struct hal_queue *q);

/* Up to the next command for the device.  True: that is runnable now.  watched: a
 * constant, whether commands are looked at. */
static ALWAYS_INLINE bool advance_on(struct hal_queue *q, bool watched)
{
	for (;;) {
		struct record *r;
		int may = 1;

		if (UNLIKELY(watched ? queue_is_blocked(q) : q->blockers != 0)) {
			if (!watched && q->memory_watched)
				return advance_watched(q);
			if (q->err != 0)
				drop_rest(q);
			return false;
		}
		if (q->issue.pos == ring_tail(&q->ring))
			return false;
		r = cursor_record(q, q->issue);
		if (LIKELY(record_for_device(r))) {
			if (q->inflight_count == q->inflight_max)
				return false;
			if (watched)
				may = q->dev->memory.residency->lets(q, r);
			if (LIKELY(may > 0)) {
				runnable(q, r);
				return true;
			}
			if (may == 0 || !no_memory_for(q, r, may))
				return false;
			continue;
		}
		if (r->cmd.op == REC_SIGNAL && !cursor_same(q->issue, q->retire))
			pass(q, r);
		else if (!try_pass(q, r) && q->err == 0)
			return false;
	}
}

static NOINLINE bool advance_watched(struct hal_queue *q)
{
	return advance_on(q, true);
}
/* NOLINTEND(misc-no-recursion) */

static ALWAYS_INLINE bool advance(struct hal_queue *q)
{
	return advance_on(q, false);
}

void queue_advance(struct hal_queue *q)
{
	if (advance(q))
		partition_runnable(q->part);
}

void queue_called(struct hal_queue *q)
{
	struct record *r;

	journal_returned(q);
	q->in_callback = false;
	if (atomic_fetch_sub(&q->dev->command.callbacks_begun, 1) == 1)
		q->dev->work &= (uint8_t)~WORK_CALLBACKS;
	q->dev->acted = true;
	if (q->dev->virtual_clock && !inbox_empty(&q->dev->inbox))
		q->dev->work |= WORK_UNREAD;
	q->slow |= SLOW_OTHERS;
	r = cursor_record(q, q->issue);
	step(q, r, outer(q, q->issue, r));
	bimodal_look(q->home);
	queue_retire(q);
	queue_advance(q);
}

/* Calls back, if that is what comes next; then advances. */
static void queue_go_on(struct hal_queue *q)
{
	const struct record *r;

	if (UNLIKELY(q->sched.policy_asks || q->sched.inherited.stale || q->sched.urgent))
		q->dev->sched.listener->todo(q);
	r = queue_next(q);
	if (r != NULL && r->cmd.op == HAL_OP_HOST && !queue_is_blocked(q) &&
	    !q->in_callback && cursor_same(q->issue, q->retire)) {
		callback_begin(q);
		bimodal_look(q->home);
		return;
	}
	queue_advance(q);
}

void queue_returned(struct hal_device *dev, struct message *l)
{
	(void)dev;
	queue_called(container_of(l, struct hal_queue, callback));
}

/* ---- taking in --------------------------------------------------------------------- */

void queue_message(struct hal_device *dev, struct message *l)
{
	struct hal_queue *q = container_of(l, struct hal_queue, message);

	/* From here on a submission sends the message again; what came before is seen
	 * below. */
	announce_again(&q->announced);
	dev->acted = true;
	if (UNLIKELY(dev->intake != 0)) {
		queue_stamp(q);
		/* What is written down is taken no further than it has been. */
		journal_accepted(q, ring_tail(&q->ring));
	}
	if (list_empty(&q->busy) && !queue_empty(q))
		list_add_before(&q->part->command.busy, &q->busy);
	if (advance(q))
		partition_runnable(q->part);
}

/* ---- giving ------------------------------------------------------------------------ */

/* r has been taken from the queue, for the device or to end in its turn. */
static ALWAYS_INLINE void add_flight(struct hal_device *dev, struct hal_queue *q,
				     struct inflight *f, struct record *r)
{
	struct record *of_ring = outer(q, q->issue, r);
	uint64_t submit_ns = submitted(q, of_ring);

	f->record = r;
	f->at = q->issue;
	f->submit_ns = submit_ns;
	f->issue_ns = dev->now;
	f->ready_ns = submit_ns > q->unparked_ns ? submit_ns : q->unparked_ns;
	f->done = false;
	q->unused = f->next;
	q->inflight_count++;
	step(q, r, of_ring);
	dev->acted = true;
}

/* The device has not taken r, for good. */
static COLD void refused(struct hal_queue *q, struct record *r, int err)
{
	struct hal_device *dev = q->dev;
	struct inflight *f = q->unused;

	/* It ends in its turn, behind those that the device has. */
	add_flight(dev, q, f, r);
	f->done = true;
	f->status = err;
	f->start_ns = dev->now;
	f->end_ns = dev->now;
	q->halted = true;
	keep_fault(q, hal_last_error());
	if ((q->slow & SLOW_POLICY) != 0) {
		const struct hal_bk_event ev = {
			.status = err, .start_ns = dev->now, .end_ns = dev->now};

		policy_ended(q, f, &ev, 0);
	}
	queue_retire(q);
}

/* The device has no room: the queue keeps its turn. */
static COLD void block(struct hal_device *dev, struct hal_partition *part,
		       struct hal_queue *q)
{
	q->runnable = true;
	if (policy_alone(part))
		part->sched.sole = q;
	else
		policy_put_back(q);
	list_del(&part->command.runnable);
	list_add_before(&dev->command.blocked, &part->command.runnable);
	dev->work |= WORK_BLOCKED;
}

/* The queue's next command to the device.  False: that has no room. */
static ALWAYS_INLINE bool issue(struct hal_device *dev, struct hal_partition *part,
				struct hal_queue *q)
{
	struct record *r = q->next;
	struct inflight *f = q->unused;
	struct hal_bk_cmd *cmd = &r->cmd;
	int err;

	if (UNLIKELY((r->own & REC_INNER) != 0)) {
		f->own = r->cmd;
		cmd = &f->own;
	}
	cmd->cookie = (uint64_t)(uintptr_t)f;
	err = dev->hot.submit(dev->hot_bk, q->bk, cmd);
	if (UNLIKELY(err != 0)) {
		if (err == -EAGAIN) {
			block(dev, part, q);
			return false;
		}
		refused(q, r, err);
		return true;
	}
	add_flight(dev, q, f, r);
	list_add_before(&dev->command.inflight_list, &f->on_device);
	dev->command.pending++;
	part->command.inflight++;
	OBSERVED(dev, depth, part, dev->now);
	return true;
}

static ALWAYS_INLINE void serve_partition(struct hal_device *dev,
					  struct hal_partition *part)
{
	while (part->command.inflight < part->command.inflight_max) {
		struct hal_queue *q = next_queue(part);

		if (q == NULL || !issue(dev, part, q))
			return;
		(void)advance(q);
	}
}

static COLD void unblock(struct hal_device *dev)
{
	dev->work = (dev->work & (uint8_t)~WORK_BLOCKED) | WORK_TODO;
	while (!list_empty(&dev->command.blocked)) {
		struct list *node = dev->command.blocked.next;

		list_del(node);
		list_add_before(&dev->command.runnable, node);
	}
}

/* Callbacks, and queues that may go on. */
static NOINLINE void run_todo(struct hal_device *dev)
{
	while (!list_empty(&dev->command.todo)) {
		struct list *node = dev->command.todo.next;

		list_del(node);
		dev->acted = true;
		queue_go_on(container_of(node, struct hal_queue, todo));
	}
}

/* Decides and acts. */
static ALWAYS_INLINE void act(struct hal_device *dev)
{
	dev->work &= (uint8_t)~WORK_TODO;
	for (;;) {
		struct list *node;

		if (UNLIKELY(!list_empty(&dev->command.todo)))
			run_todo(dev);
		node = dev->command.runnable.next;
		if (node == &dev->command.runnable)
			break;
		list_del(node);
		serve_partition(
			dev, container_of(node, struct hal_partition, command.runnable));
	}
	dev->work &= (uint8_t)~WORK_TODO;
	if (dev->hot.doorbell != NULL &&
	    atomic_load_explicit(&dev->lost, memory_order_relaxed) == 0)
		dev->hot.doorbell(dev->hot_bk);
}

/* ---- ending ------------------------------------------------------------------------ */

/* When the oldest command that the device has of part (NULL: of all) was given to it. */
static uint64_t oldest_issue_ns(const struct hal_device *dev,
				const struct hal_partition *part)
{
	for (const struct list *it = dev->command.inflight_list.next;
	     it != &dev->command.inflight_list; it = it->next) {
		const struct inflight *f = container_of(it, struct inflight, on_device);

		if (part == NULL || f->queue->part == part)
			return f->issue_ns;
	}
	return dev->now;
}

/* Anything else than one that goes on where those before it ended. */
static NOINLINE void busy_apart(struct hal_device *dev, struct hal_partition *part,
				struct account *a, uint64_t start, uint64_t end)
{
	uint64_t from = start > a->busy_until_ns ? start : a->busy_until_ns;

	if (end > from) {
		counter_add(&a->busy_ns, end - from);
		a->busy_until_ns = end;
	}
	if (!busy_extend(&part->observe.ran, start, end))
		busy_insert(&part->observe.ran, start, end, oldest_issue_ns(dev, part));
	if (!busy_extend(&dev->observe.ran, start, end))
		busy_insert(&dev->observe.ran, start, end, oldest_issue_ns(dev, NULL));
}

/* What the device did for f. */
static ALWAYS_INLINE void count_ran(struct hal_device *dev, struct hal_partition *part,
				    struct account *a, uint64_t start, uint64_t end)
{
	/* Mostly it began when its partition, which includes its queue, and the device
	 * had ended another. */
	if (LIKELY(end >= start && start == part->observe.ran.at[0].end &&
		   start == dev->observe.ran.at[0].end)) {
		uint64_t ran = end - start;

		counter_add(&a->busy_ns, ran);
		a->busy_until_ns = end;
		counter_add(&part->observe.ran.total, ran);
		part->observe.ran.at[0].end = end;
		counter_add(&dev->observe.ran.total, ran);
		dev->observe.ran.at[0].end = end;
	} else {
		busy_apart(dev, part, a, start, end);
	}
}

void queue_stopped(struct hal_queue *q, uint64_t start_ns, uint64_t end_ns)
{
	struct hal_device *dev = q->dev;
	const struct inflight *f = q->oldest;

	while (f->done)
		f = f->next;
	if (end_ns <= start_ns)
		return;
	count_ran(dev, q->part, &q->observe.account, start_ns, end_ns);
	count_queueing(&q->observe.account, f, start_ns, end_ns);
	OBSERVED(dev, stretch, f, start_ns, end_ns);
	q->sched.stopped_ns += end_ns - start_ns;
	q->slow |= SLOW_STOPPED;
}

/* A command ended that was stopped or killed, or has failed, or of whose end others want
 * to know. */
static NOINLINE void ended_slowly(struct hal_queue *q, struct inflight *f,
				  const struct hal_bk_event *ev)
{
	struct hal_device *dev = q->dev;
	uint64_t last_ns = f->end_ns > f->start_ns ? f->end_ns - f->start_ns : 0;
	uint64_t ran_ns = last_ns + (f == q->oldest ? q->sched.stopped_ns : 0);
	bool kill = q->state == QUEUE_SUSPENDING && ev->status == -ECANCELED &&
		    q->sched.suspend_mode == HAL_SUSPEND_KILL;
	bool counts = kill && ran_ns > 0;

	OBSERVED(dev, depth, q->part, dev->now);
	if (counts) {
		counter_add(&q->observe.account.replayed, 1);
		q->sched.killed_ran_ns += ran_ns;
	}
	/* Or one is given and killed for ever, and never begins. */
	if (kill && f == q->oldest) {
		counts = counts || q->sched.killed;
		q->sched.killed = true;
		q->slow |= SLOW_KILLED;
	}
	if (counts) {
		q->sched.kills++;
		q->slow |= SLOW_KILLED;
	} else if (ev->status == 0) {
		q->sched.kills = 0;
		q->sched.killed = false;
		q->sched.starving = false;
		q->sched.no_preempt = false;
		q->slow &= ~SLOW_KILLED;
	}
	if (q->sched.urgent)
		queue_todo(q);
	if (!kill || last_ns > 0)
		OBSERVED(dev, command, f, ev);
	if ((q->slow & SLOW_POLICY) != 0)
		policy_ended(q, f, ev, q->sched.stopped_ns);
	q->sched.stopped_ns = 0;
	q->slow &= ~SLOW_STOPPED;
	if (kill) {
		f->killed = true; /* to be given again */
		f->done = false;
	} else if (ev->status != 0) {
		q->halted = true;
		keep_fault(q, ev->fault);
	}
	if ((q->slow & SLOW_RECOLOR) != 0)
		q->dev->memory.residency->look(q);
}

/* Returns whose partition has room now. */
static ALWAYS_INLINE struct hal_partition *command_ended(struct hal_device *dev,
							 const struct hal_bk_event *ev)
{
	struct inflight *f = (void *)(uintptr_t)ev->cookie; /* NOLINT(*-no-int-to-ptr) */
	struct hal_queue *q = f->queue;
	struct hal_partition *part = q->part;
	struct account *a = &q->observe.account;

	count_ran(dev, part, a, ev->start_ns, ev->end_ns);
	if ((ev->bytes_read | ev->bytes_written) != 0) {
		counter_add(&a->bytes_read, ev->bytes_read);
		counter_add(&a->bytes_written, ev->bytes_written);
	}
	list_take(&f->on_device);
	dev->command.pending--;
	part->command.inflight--;
	f->start_ns = ev->start_ns;
	f->end_ns = ev->end_ns;
	f->status = ev->status;
	f->done = true;
	if (UNLIKELY(((uint32_t)ev->status |
		      (q->slow & (SLOW_TRACE | SLOW_SUSPENDING | SLOW_POLICY |
				  SLOW_KILLED | SLOW_STOPPED | SLOW_RECOLOR))) != 0))
		ended_slowly(q, f, ev);
	retire_ended(q);
	if (UNLIKELY((q->slow & SLOW_SUSPENDING) != 0))
		dev->sched.listener->ended(q);
	(void)advance(q);
	return part;
}

static NOINLINE void device_let_go(struct hal_device *dev, const struct hal_bk_event *ev)
{
	dev->command.pending--;
	if ((ev->cookie & COOKIE_PARTITION) != 0)
		dev->space.moves->done(ev);
	else
		dev->sched.listener->quiet(ev);
}

/* The device does not answer any more: all it has is lost, and so is it. */
static COLD void device_lost(struct hal_device *dev)
{
	struct hal_bk_event ev = {.kind = HAL_BK_DONE, .status = -EIO};

	format_text(dev->lost_why, sizeof(dev->lost_why), "%s", hal_last_error());
	format_text(ev.fault, sizeof(ev.fault), "the device is lost: %s", dev->lost_why);
	ev.start_ns = dev->now;
	ev.end_ns = dev->now;
	atomic_store_explicit(&dev->lost, -ENODEV, memory_order_release);
	dev->sched.listener->thaw_all(dev);
	while (!list_empty(&dev->command.inflight_list)) {
		const struct inflight *f = container_of(dev->command.inflight_list.next,
							struct inflight, on_device);

		ev.cookie = (uint64_t)(uintptr_t)f;
		f->queue->halted = false;
		partition_runnable(command_ended(dev, &ev));
	}
	hal_list_for_each (p, &dev->space.partitions) {
		struct hal_partition *part =
			container_of(p, struct hal_partition, on_device);

		hal_list_for_each (it, &part->queues) {
			struct hal_queue *q =
				container_of(it, struct hal_queue, on_partition);

			dev->sched.listener->lost(q);
			if (q->err == 0) {
				fail_queue(q, -EIO, ev.fault);
				q->failing = !queue_empty(q);
				drop_rest(q);
			}
		}
		dev->space.moves->lost(part);
	}
	dev->command.pending = 0;
}

/* ---- a turn ------------------------------------------------------------------------ */

static NOINLINE void timers_run(struct hal_device *dev)
{
	struct heap_node *n;

	while ((n = heap_first(&dev->timers)) != NULL && n->key <= dev->now) {
		struct timer *t = container_of(n, struct timer, node);

		heap_take(&dev->timers, n);
		t->set = false;
		dev->acted = true;
		t->fn(dev, t);
	}
	policy_timers(dev);
	timer_first(dev);
}

/* Nothing is running: may time pass all the same? */
static NOINLINE bool may_idle(const struct hal_device *dev, uint64_t until_ns, bool idle)
{
	return dev->virtual_clock && until_ns != UINT64_MAX &&
	       (idle || dev->timer_ns != UINT64_MAX) && atomic_load(&dev->lost) == 0;
}

/* No time passes while something is called back, and before what that has sent is read.
 */
static inline bool calling_back(const struct hal_device *dev)
{
	return (dev->work & (WORK_CALLBACKS | WORK_UNREAD)) != 0 && dev->virtual_clock;
}

static NOINLINE bool no_events(struct hal_device *dev, int n, uint64_t until_ns,
			       uint64_t before)
{
	if (n < 0)
		device_lost(dev);
	/* Up to UINT64_MAX: nothing is left running, whatever the clock says. */
	return n < 0 ||
	       (dev->virtual_clock && until_ns != UINT64_MAX && dev->now != before);
}

static NOINLINE void events_taken(struct hal_device *dev, const struct hal_bk_event *e,
				  int n)
{
	for (; n > 0; n--, e++) {
		if (LIKELY(e->kind == HAL_BK_DONE))
			partition_runnable(command_ended(dev, e));
		else
			device_let_go(dev, e);
	}
}

/* Runs the device, or looks at it. */
static ALWAYS_INLINE bool poll_device(struct hal_device *dev, uint64_t until_ns,
				      bool idle)
{
	struct hal_bk_event ev[EVENTS];
	const struct hal_bk_event *e = ev;
	uint64_t before = dev->now;
	int n;

	if (UNLIKELY(dev->work != 0)) {
		if ((dev->work & WORK_JOURNAL) != 0)
			journal_before_poll(dev, until_ns, idle);
		if (calling_back(dev))
			return false;
		if (dev->timer_ns < until_ns)
			until_ns = dev->timer_ns;
	}
	if (UNLIKELY(dev->command.pending == 0) && !may_idle(dev, until_ns, idle))
		return false;
	n = dev->hot.poll(dev->hot_bk, until_ns, ev, EVENTS);
	device_now(dev);
	if (UNLIKELY(n <= 0))
		return no_events(dev, n, until_ns, before);
	/* All that has come is taken in before anything is decided; mostly it is one. */
	if (LIKELY(n == dev->command.served_at_once && e->kind == HAL_BK_DONE)) {
		struct hal_partition *part = command_ended(dev, e);

		if (LIKELY(dev->work == 0))
			serve_partition(dev, part);
		else
			partition_runnable(part);
		return true;
	}
	events_taken(dev, e, n);
	return true;
}

/* What waits for the device. */
static COLD void take_up(struct hal_device *dev)
{
	/* One that had no room is asked once a turn. */
	if ((dev->work & WORK_BLOCKED) != 0)
		unblock(dev);
	if ((dev->work & WORK_HELD) != 0 && list_empty(&dev->command.inflight_list))
		policy_idle(dev);
}

/* What comes before the device is run: rare things, and what is new. */
static NOINLINE void prepare(struct hal_device *dev)
{
	dev->work &= (uint8_t)~WORK_UNREAD;
	if ((dev->work & WORK_TIMERS) != 0 && dev->timer_ns <= dev->now)
		timers_run(dev);
	if ((dev->work & (WORK_BLOCKED | WORK_HELD)) != 0)
		take_up(dev);
	if ((dev->work & WORK_TODO) != 0)
		act(dev);
}

static ALWAYS_INLINE void begin_turn(struct hal_device *dev)
{
	dev->acted = false;
	if (UNLIKELY(!dev->virtual_clock))
		device_now(dev);
	if (!inbox_empty(&dev->inbox)) {
		engine_read(dev);
		dev->intake &= (uint8_t)~INTAKE_SLEPT;
	}
	if (UNLIKELY(dev->work != 0))
		prepare(dev);
}

static NOINLINE void act_again(struct hal_device *dev)
{
	act(dev);
}

static ALWAYS_INLINE bool flow_turn(struct hal_device *dev, uint64_t until_ns, bool idle)
{
	bool looked;

	begin_turn(dev);
	looked = poll_device(dev, until_ns, idle);
	if (UNLIKELY((dev->work & WORK_TODO) != 0))
		act_again(dev);
	return looked || dev->acted;
}

bool engine_turn(struct hal_device *dev, uint64_t until_ns, bool idle)
{
	return flow_turn(dev, until_ns, idle);
}

bool engine_turns(struct hal_device *dev, const struct hal_timeline *t, uint64_t value)
{
	while (atomic_load_explicit(&t->value, memory_order_relaxed) < value &&
	       timeline_error(t) == 0) {
		if (UNLIKELY(atomic_load_explicit(&dev->lock_waiters,
						  memory_order_relaxed) != 0))
			return true;
		if (!flow_turn(dev, UINT64_MAX, false))
			return false;
	}
	return true;
}
