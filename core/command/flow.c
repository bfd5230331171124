/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flow.c - engine turns, and the path of every command: from its queue's ring to the
 * policy, to the device, to its completion.
 *
 *   queue_message -> advance -> runnable -> serve_partition -> issue -> (device)
 *                                                                          |
 *   submission_over <- retire_inflight <- retire_ended <- command_ended <--+
 *
 * A queue has two cursors.  "issue" is at the next record to execute or to submit to the
 * device.  "retire" is at the oldest record that is not over.  Records retire in order;
 * then their slots in the ring are free again.
 *
 * Rare features leave the common path through a flag of the queue (SLOW_).  All of it is
 * in one file so that the compiler can make one function of a turn.  The figure
 * hal.submit.total_instructions counts its instructions (docs/performance.md).
 */
#include "command/flow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "command/callback.h"
#include "command/check.h"
#include "command/completions.h"
#include "command/deferred.h"
#include "command/foreign.h"
#include "far/ring.h"
#include "loop/engine.h"
#include "loop/watch.h"
#include "memory/bimodal.h"
#include "replay/journal.h"
#include "sched/inherit.h"
#include "sched/policy.h"
#include "util/error.h"
#include "util/log.h"

#define EVENTS 16

/* ---- the issue cursor -------------------------------------------------------------- */

/* Return the record in the ring for r, the record at c: r itself, or the REC_BLOCK record
 * whose block contains r. */
static ALWAYS_INLINE struct record *ring_record(struct hal_queue *q, union cursor c,
						struct record *r)
{
	return LIKELY((r->own & REC_INNER) == 0) ? r : &q->slots[c.pos & q->slot_mask];
}

/* Return when r, a record in the ring, was submitted. */
static ALWAYS_INLINE uint64_t submit_time(const struct hal_queue *q, struct record *r)
{
	/* The thread submitted while the engine slept, but its message came when the
	 * engine was awake again, so that queue_message has not set the time. */
	if (UNLIKELY(r->submit_ns == SUBMIT_ASLEEP))
		r->submit_ns = q->dev->now;
	return r->submit_ns;
}

/* Finish a step past r for a queue with STEP_ flags. */
static NOINLINE void step_slowly(struct hal_queue *q, const struct record *r,
				 const struct record *in_ring)
{
	if ((q->stepping & STEP_INSIDE) != 0)
		q->inside = (q->issue.inner != 0 || (in_ring->own & REC_END) == 0) &&
			    (q->inside || record_for_device(r));
	if (q->issue.inner != 0)
		return;
	/* The terms of a submission header hold until its last record. */
	if ((q->stepping & STEP_TERMS) == 0 || (in_ring->own & REC_END) == 0)
		return;
	q->issue_terms = q->default_terms;
	q->stepping &= (uint8_t)~STEP_TERMS;
}

/* Move the issue cursor past r.  in_ring is ring_record of r. */
static ALWAYS_INLINE void step(struct hal_queue *q, const struct record *r,
			       const struct record *in_ring)
{
	cursor_step(q, &q->issue, r);
	if (UNLIKELY(q->stepping != 0))
		step_slowly(q, r, in_ring);
}

/* ---- choosing a queue -------------------------------------------------------------- */

/* Mark q as runnable: r, its next command, may be submitted to the device.  A queue that
 * is alone in its partition bypasses the policy. */
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

/* Take the queue of part to serve next: the only runnable one, or the policy's choice.
 * Return NULL if no queue is to be served now. */
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

/* ---- failures ---------------------------------------------------------------------- */

/* Keep text as the error text of q's failure, unless q has one. */
static void keep_fault(struct hal_queue *q, const char *text)
{
	if (q->fault == NULL && text[0] != '\0')
		q->fault = strdup(text);
}

/* Return the number, in its submission, of the command at .retire. */
static uint32_t retiring_command(const struct hal_queue *q)
{
	return (uint32_t)(counter_get(&q->observe.account.completed) - q->timeline.seen -
			  q->completed_more);
}

/* Record what failed in q, for hal_queue_get_fault. */
static void note_failure(struct hal_queue *q, int err, uint32_t cmd)
{
	const struct record *r;

	q->failure.status = atomic_load(&q->dev->lost) != 0 ? -ENODEV : err;
	q->failure.cmd = cmd;
	if (queue_empty(q))
		return;
	r = cursor_record(q, q->retire);
	q->failure.value = q->timeline.seen + 1;
	q->failure.tag = r->cmd.op == REC_HEAD ? r->head.tag : q->retire_terms.tag;
}

/* Make q fail: nothing more is issued, its timeline fails, hal_submit refuses work.  cmd
 * is the number of the failed command in its submission, or FAILED_NO_COMMAND. */
static COLD void fail_queue(struct hal_queue *q, int err, uint32_t cmd, const char *text)
{
	char full[384];
	size_t n;

	note_failure(q, err, cmd);
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
	if (q->told != NULL)
		atomic_store_explicit(&q->told->open, 0, memory_order_release);
	/* The loss of a device has a line of its own. */
	LOG(q->failure.status == -ENODEV ? HAL_LOG_DEBUG
	    : err == -ECANCELED          ? HAL_LOG_INFO
					 : HAL_LOG_ERROR,
	    "%s: %s", q->dev->name, full);
}

/* Make t fail, which a record of the failed queue q was to signal.  The submission that
 * failed passes on its error; later ones are cancelled. */
static COLD void fail_signal(struct hal_queue *q, struct hal_timeline *t)
{
	const char *why = timeline_text(&q->timeline);
	char text[384];

	if (q->failing) {
		timeline_fail(t, q->err, why != NULL ? why : "failed", q->dev);
		return;
	}
	format_text(text, sizeof(text), "dropped after a failure: %s",
		    why != NULL ? why : hal_strerror(q->err));
	timeline_fail(t, -ECANCELED, text, q->dev);
}

static void queue_retire(struct hal_queue *q);

/* Drop the remaining records of the failed queue q.  Do nothing yet while the device or a
 * host function still works on one, so that submissions end in order. */
static COLD void drop_rest(struct hal_queue *q)
{
	const struct inflight *f = q->oldest;
	struct record *r;

	for (uint32_t i = 0; i < q->inflight_count; i++, f = f->next)
		if (!f->done)
			return;
	if (q->in_callback)
		return;
	q->slow |= SLOW_OTHERS;
	q->dev->memory.residency->look(q);
	while ((r = queue_next(q)) != NULL)
		step(q, r, ring_record(q, q->issue, r));
	queue_retire(q);
}

void queue_abandon(struct hal_queue *q)
{
	struct inflight *f = q->oldest;

	fail_queue(q, -ECANCELED, FAILED_NO_COMMAND, "destroyed while it was suspended");
	/* The device destroyed the commands that it kept, together with its queue. */
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
	fail_queue(q, -ECANCELED, FAILED_NO_COMMAND,
		   "suspended for good (HAL_SUSPEND_FINAL)");
	q->failing = !queue_empty(q);
	drop_rest(q);
}

/* ---- retiring records -------------------------------------------------------------- */

/* End a submission of a queue with SLOW_ flags, or one that failed: count a missed
 * deadline, publish the timeline's value, write a completion, reset the terms. */
static NOINLINE void submission_over_slowly(struct hal_queue *q, int status,
					    uint64_t submit_ns, uint64_t end_ns)
{
	uint64_t took = end_ns > submit_ns ? end_ns - submit_ns : 0;

	/* This order matters to readers.  A thread that sees the point reached must find
	 * the miss counted, and the program that it answers must be told of the point; a
	 * reader of the completion must find the point reached. */
	if (status == 0 && q->retire_terms.deadline_ns != 0 &&
	    took > q->retire_terms.deadline_ns)
		counter_add(&q->observe.account.deadline_misses, 1);
	if ((q->slow & SLOW_TOLD) != 0) {
		atomic_store_explicit(&q->told->head, q->retire.pos,
				      memory_order_relaxed);
		atomic_store_explicit(&q->told->value, q->timeline.seen,
				      memory_order_release);
	}
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

/* End the oldest submission of q: raise the queue's timeline, or report its failure.  own
 * is .own of its last record in the ring. */
static ALWAYS_INLINE void submission_over(struct hal_queue *q, uint32_t own,
					  uint64_t submit_ns, uint64_t end_ns)
{
	int status = q->err;

	if (LIKELY(status == 0)) {
		uint64_t value = ++q->timeline.seen;

		if (UNLIKELY((own & REC_WHOLE) == 0)) {
			account_latency(&q->observe.account, LATENCY_SUBMISSION,
					end_ns > submit_ns ? end_ns - submit_ns : 0);
			q->completed_more =
				counter_get(&q->observe.account.completed) - value;
		}
		if (UNLIKELY((q->slow & (SLOW_DEADLINE | SLOW_NOTIFIES | SLOW_HEAD |
					 SLOW_TOLD)) != 0))
			submission_over_slowly(q, 0, submit_ns, end_ns);
		else
			atomic_store_explicit(&q->timeline.value, value,
					      memory_order_release);
		if (UNLIKELY(!heap_empty(&q->timeline.waiters)))
			timeline_notify(&q->timeline, value);
		return;
	}
	if (q->failing || q->failure.status == -ENODEV)
		status = q->failure.status;
	else
		status = -ECANCELED;
	submission_over_slowly(q, status, submit_ns, end_ns);
	q->failing = false;
}

/* Do as pop does for r, a record in a block.  After the last record of the block, release
 * the block and return .own of its REC_BLOCK record; before that return 0. */
static NOINLINE uint32_t pop_inner(struct hal_queue *q, const struct record *r)
{
	const struct record *in_ring = &q->slots[q->retire.pos & q->slot_mask];
	struct block *block = in_ring->block;
	uint32_t own = in_ring->own;
	unsigned int pos = q->retire.pos;

	cursor_step(q, &q->retire, r);
	if (q->retire.pos == pos)
		return 0;
	if (block_put(block))
		free(block);
	queue_release(q, q->retire.pos);
	return own;
}

/* Move the retire cursor past r and free its slots.  Return .own of r, in which the
 * caller finds whether the submission is over. */
static ALWAYS_INLINE uint32_t pop(struct hal_queue *q, const struct record *r)
{
	uint32_t own = r->own;

	if (UNLIKELY((own & REC_INNER) != 0))
		return pop_inner(q, r);
	q->retire.pos += r->slots;
	queue_release(q, q->retire.pos);
	return own;
}

/* Retire f, which has failed or belongs to a failed queue. */
static COLD void inflight_failed(struct hal_queue *q, const struct inflight *f)
{
	const struct record *r = f->record;
	char text[320];

	/* Commands that follow a failed one are dropped, even if the device ran them. */
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
	fail_queue(q, f->status, retiring_command(q), text);
}

/* Account the time that f waited between being ready and its run (start_ns to end_ns).
 * Time in which a command of the same queue ran does not count. */
static ALWAYS_INLINE void count_queueing(struct account *a, const struct inflight *f,
					 uint64_t start_ns, uint64_t end_ns)
{
	uint64_t ready_ns = f->ready_ns;

	if (UNLIKELY(start_ns > a->last_end_ns)) {
		/* In between the units were idle, or ran other queues' commands. */
		if (ready_ns < a->last_end_ns)
			ready_ns = a->last_end_ns;
		if (start_ns > ready_ns)
			counter_add(&a->queueing_ns, start_ns - ready_ns);
	}
	a->last_end_ns = end_ns;
}

/* Account f, which has completed without an error. */
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

/* Retire f, the oldest in-flight command of q, which the device has ended. */
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

/* Set the terms of the oldest submission from r, its header. */
static void retire_head(struct hal_queue *q, const struct record *r)
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

/* Account a command that was never submitted to the device: a host function, or a command
 * that is dropped after a failure. */
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

/* Count down .pending of the timelines that r, a wait, has used. */
static ALWAYS_INLINE void release_points(const struct record *r)
{
	record_for_each_point(p, r) atomic_fetch_sub(&p->timeline->pending, 1);
}

/* Finish the recolour of r, or abandon it if q has failed. */
static COLD void finish_recolor(struct hal_queue *q, const struct record *r)
{
	int err = q->dev->memory.residency->end(r->recolor, q->err);

	if (err == 0)
		return;
	keep_fault(q, hal_last_error());
	fail_queue(q, err, FAILED_NO_COMMAND,
		   q->fault != NULL ? q->fault : "the buffer was not moved");
}

/* Raise the points of r, or make their timelines fail if q has failed. */
static ALWAYS_INLINE void signal_points(struct hal_queue *q, const struct record *r)
{
	record_for_each_point(p, r)
	{
		if (LIKELY(q->err == 0))
			timeline_raise(p->timeline, p->value, q->dev);
		else
			fail_signal(q, p->timeline);
		atomic_fetch_sub(&p->timeline->pending, 1);
	}
}

static COLD void retire_recolor(struct hal_queue *q, const struct record *r)
{
	if (r->cmd.op == REC_RECOLORED)
		finish_recolor(q, r);
	q->dev->memory.residency->put(r->recolor);
}

/* Retire r, which was not submitted to the device. */
static ALWAYS_INLINE void retire_other(struct hal_queue *q, struct record *r)
{
	uint64_t submit_ns = submit_time(q, ring_record(q, q->retire, r));
	uint32_t own;

	if (LIKELY(r->cmd.op == REC_WAIT))
		release_points(r);
	else if (LIKELY(r->cmd.op == REC_SIGNAL))
		signal_points(q, r);
	else if (r->cmd.op == REC_HEAD)
		retire_head(q, r);
	else if (r->cmd.op == REC_RECOLOR || r->cmd.op == REC_RECOLORED)
		retire_recolor(q, r);
	else if (r->cmd.op == REC_FOREIGN)
		foreign_put(record_foreign(r));
	else
		count_other(q, r, submit_ns);
	own = pop(q, r);
	if ((own & REC_END) != 0)
		submission_over(q, own, submit_ns, q->dev->now);
}

/* Retire all records up to the oldest in-flight command, or else up to the issue cursor.
 */
static NOINLINE void retire_others(struct hal_queue *q)
{
	struct hal_device *dev = q->dev;

	dev->acted = true;
	/* If one of these signals ends a wait of q itself, q needs no entry in .todo: the
	 * caller advances q. */
	dev->command.retiring = q;
	do
		retire_other(q, cursor_record(q, q->retire));
	while (!cursor_same(q->retire, q->issue) &&
	       !(q->inflight_count > 0 && cursor_same(q->oldest->at, q->retire)));
	dev->command.retiring = NULL;
}

/* Retire the records of q that are over, oldest first.  Stop at the first command that
 * the device still has, or at the issue cursor. */
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
				deferred_advance(q);
		} else if (q->inflight_count > 0) {
			/* Between the cursors are only in-flight commands. */
			if (!q->oldest->done)
				return;
		} else {
			break;
		}
	}
	if (queue_empty(q) && !list_empty(&q->busy))
		list_del(&q->busy);
}

/* Do as retire_ended, out of line, for callers that are rarely executed. */
static NOINLINE void queue_retire(struct hal_queue *q)
{
	retire_ended(q);
}

/* ---- advancing to the next command ------------------------------------------------- */

/* End the wait of a queue for a point, which was reached or has failed. */
static void wait_over(struct waiter *w, int err)
{
	struct hal_queue *q = container_of(w, struct hal_queue, waiter);

	(void)err; /* wait_passed reads the timeline's error */
	q->parked = false;
	inherit_end(q);
	if (q->dev->command.retiring != q)
		queue_todo(q);
}

/* End the wait of a queue for the start time in a submission header. */
static void time_over(struct hal_device *dev, struct timer *t)
{
	struct hal_queue *q = container_of(t, struct hal_queue, timer);

	(void)dev;
	q->parked = false;
	queue_todo(q);
}

/* Make q fail because the memory that r uses cannot be made available (err, and
 * hal_last_error).  Return false while earlier records must retire first. */
static COLD bool no_memory_for(struct hal_queue *q, const struct record *r, int err)
{
	char text[512];

	if (!cursor_same(q->issue, q->retire))
		return false;
	if (r->cmd.op == REC_RECOLOR)
		format_text(text, sizeof(text), "the buffer was not moved: %s",
			    hal_last_error());
	else
		format_text(text, sizeof(text), "%s \"%s\": %s",
			    r->cmd.op == HAL_OP_LAUNCH ? "launch" : "command",
			    record_name(r), hal_last_error());
	fail_queue(q, err, record_for_device(r) ? retiring_command(q) : FAILED_NO_COMMAND,
		   text);
	return true;
}

/* Make q fail because t, for which it waits, has failed.  Do nothing while earlier
 * records must retire first.  Return false, as wait_passed does. */
static COLD bool wait_failed(struct hal_queue *q, const struct hal_timeline *t)
{
	char text[384];

	if (!cursor_same(q->issue, q->retire))
		return false;
	format_text(text, sizeof(text), "waits for a point that failed: %s",
		    timeline_text(t));
	fail_queue(q, -ECANCELED, FAILED_NO_COMMAND, text);
	return false;
}

/* Return true if all points of the wait r are reached.  Otherwise park q until the first
 * missing point is reached, or make q fail. */
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

/* Set the terms of the submission that is issued next from r, its header.  Return true if
 * its start time has come; otherwise park q until then. */
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

/* Move the issue cursor past r, which the engine has executed or executes when r retires.
 */
static ALWAYS_INLINE void pass(struct hal_queue *q, struct record *r)
{
	step(q, r, ring_record(q, q->issue, r));
	q->slow |= SLOW_OTHERS;
}

/* Move the issue cursor past r, which is the oldest record of q, and retire r. */
static ALWAYS_INLINE void pass_first(struct hal_queue *q, struct record *r)
{
	bool plain = r->cmd.op == REC_WAIT && (r->own & (REC_END | REC_INNER)) == 0 &&
		     (q->slow & SLOW_DEFERRED) == 0;

	pass(q, r);
	if (UNLIKELY(!plain)) {
		queue_retire(q);
		return;
	}
	release_points(r);
	q->retire = q->issue;
	queue_release(q, q->retire.pos);
}

/* Execute r, the next record, if that is possible now.  Return true if the issue cursor
 * has moved past it. */
static NOINLINE bool try_pass(struct hal_queue *q, struct record *r)
{
	bool first = cursor_same(q->issue, q->retire);

	if (LIKELY(r->cmd.op == REC_WAIT) || r->cmd.op == REC_FOREIGN) {
		if (!wait_passed(q, r))
			return false;
	} else if (r->cmd.op == REC_HEAD) {
		if (!head_passed(q, r))
			return false;
	} else if (r->cmd.op == HAL_OP_HOST) {
		/* Once all earlier records are retired, run_todo calls the function. */
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
		return false; /* a barrier: earlier records must be retired */
	}
	if (first)
		pass_first(q, r);
	else
		pass(q, r);
	return true;
}

/* NOLINTBEGIN(misc-no-recursion): advance_watched does not call advance */
static bool advance_watched(struct hal_queue *q);

/* Execute records of q up to its next command for the device.  Return true if q is now
 * runnable with that command.  watched is a constant: core/memory inspects each command
 * first. */
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
		if (q->issue.pos == q->accepted)
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
	step(q, r, ring_record(q, q->issue, r));
	bimodal_look(q->home);
	queue_retire(q);
	queue_advance(q);
}

/* Process q from the todo list: let the scheduler do what is pending for q, then begin
 * its host function or advance it. */
static void process_queue(struct hal_queue *q)
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

void queue_returned(struct hal_device *dev, struct message *msg)
{
	(void)dev;
	queue_called(container_of(msg, struct hal_queue, callback));
}

/* ---- accepting submissions --------------------------------------------------------- */

/* Accept the records that have been submitted to q, and advance q. */
static ALWAYS_INLINE void accept(struct hal_device *dev, struct hal_queue *q)
{
	unsigned int tail = queue_tail(q);

	dev->acted = true;
	if (UNLIKELY(dev->intake != 0)) {
		queue_stamp(q, q->accepted);
		journal_accepted(q, tail);
	}
	q->accepted = tail;
	if (list_empty(&q->busy) && !queue_empty(q))
		list_add_before(&q->part->command.busy, &q->busy);
	if (advance(q))
		partition_runnable(q->part);
}

/* Accept the records of a watched queue, whose tail has changed. */
static void tail_changed(struct hal_device *dev, struct message *msg)
{
	accept(dev, container_of(msg, struct hal_queue, message));
}

/* Watch q, whose message has been read, if that pays.  Return whether it is watched. */
static NOINLINE bool watch_queue(struct hal_device *dev, struct hal_queue *q)
{
	return watch_pays(dev, &q->announced_turn) &&
	       watch_begin(dev, &q->message, &q->announced, &q->tail, WATCH_NOT_FENCED,
			   tail_changed);
}

void queue_accept(struct hal_device *dev, struct hal_queue *q)
{
	if (queue_tail(q) != q->accepted)
		accept(dev, q);
}

void queue_message(struct hal_device *dev, struct message *msg)
{
	struct hal_queue *q = container_of(msg, struct hal_queue, message);

	/* A later submission sends the message again, unless the engine watches the
	 * queue.  An earlier submission is read below. */
	if (LIKELY(!dev->watch.possible) || !watch_queue(dev, q))
		announce_again(&q->announced);
	accept(dev, q);
}

/* ---- submitting to the device ------------------------------------------------------ */

/* Make f the in-flight entry of r, the record at the issue cursor. */
static ALWAYS_INLINE void add_inflight(struct hal_device *dev, struct hal_queue *q,
				       struct inflight *f, struct record *r)
{
	struct record *in_ring = ring_record(q, q->issue, r);
	uint64_t submit_ns = submit_time(q, in_ring);

	f->record = r;
	f->at = q->issue;
	f->submit_ns = submit_ns;
	f->issue_ns = dev->now;
	f->ready_ns = submit_ns > q->unparked_ns ? submit_ns : q->unparked_ns;
	f->done = false;
	q->unused = f->next;
	q->inflight_count++;
	step(q, r, in_ring);
	dev->acted = true;
}

/* Fail r, whose submission to the device failed with err. */
static COLD void refused(struct hal_queue *q, struct record *r, int err)
{
	struct hal_device *dev = q->dev;
	struct inflight *f = q->unused;

	/* r retires in order, after the commands that the device has. */
	add_inflight(dev, q, f, r);
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

/* Stop serving part because the device is full.  q stays the queue to serve next. */
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

/* Submit the next command of q to the device.  Return false if the device is full. */
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
	cmd->flags |= q->class_flags;
	err = dev->hot.submit(dev->hot_bk, q->bk, cmd);
	if (UNLIKELY(err != 0)) {
		if (err == -EAGAIN) {
			block(dev, part, q);
			return false;
		}
		refused(q, r, err);
		return true;
	}
	add_inflight(dev, q, f, r);
	list_add_before(&dev->command.inflight_list, &f->on_device);
	dev->command.pending++;
	part->command.inflight++;
	OBSERVED(dev, depth, part, dev->now);
	return true;
}

/* Take the queue of HAL_CLASS_LATENCY in part to serve next.  Return NULL if there is
 * none. */
static struct hal_queue *next_urgent(struct hal_partition *part)
{
	struct hal_queue *q = part->sched.sole;

	if (q == NULL) {
		q = policy_pick_urgent(part);
	} else if (q->sched.policy_view.service_class == HAL_CLASS_LATENCY) {
		part->sched.sole = NULL;
	} else {
		return NULL;
	}
	if (q != NULL)
		q->runnable = false;
	return q;
}

/* Submit a command of a latency-critical queue although part has enough in flight: one
 * place more is theirs, so that they do not wait for one of best effort. */
static NOINLINE void serve_urgent(struct hal_device *dev, struct hal_partition *part)
{
	struct hal_queue *q;

	if (!dev->side_by_side || part->command.inflight_max == 0 ||
	    part->command.inflight > part->command.inflight_max)
		return;
	q = next_urgent(part);
	if (q != NULL && issue(dev, part, q))
		(void)advance(q);
}

/* Submit commands of part to the device until part has enough in flight, no queue is to
 * be served, or the device is full. */
static ALWAYS_INLINE void serve_partition(struct hal_device *dev,
					  struct hal_partition *part)
{
	while (part->command.inflight < part->command.inflight_max) {
		struct hal_queue *q = next_queue(part);

		if (q == NULL || !issue(dev, part, q))
			return;
		(void)advance(q);
	}
	if (UNLIKELY(part->sched.classes))
		serve_urgent(dev, part);
}

/* Make runnable those partitions for which the device was full. */
static COLD void unblock(struct hal_device *dev)
{
	dev->work = (dev->work & (uint8_t)~WORK_BLOCKED) | WORK_TODO;
	while (!list_empty(&dev->command.blocked)) {
		struct list *node = dev->command.blocked.next;

		list_del(node);
		list_add_before(&dev->command.runnable, node);
	}
}

/* Process the queues on the todo list. */
static NOINLINE void run_todo(struct hal_device *dev)
{
	while (!list_empty(&dev->command.todo)) {
		struct list *node = dev->command.todo.next;

		list_del(node);
		dev->acted = true;
		process_queue(container_of(node, struct hal_queue, todo));
	}
}

/* Process all queues with something to do and serve all runnable partitions; then ring
 * the doorbell. */
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

/* ---- events of the device ---------------------------------------------------------- */

/* Return when the oldest command that the device has of part (NULL: of any partition) was
 * submitted to it; the current time if there is none. */
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

/* Do the work of count_ran for a run that does not start when the last one ended. */
static NOINLINE void count_ran_slowly(struct hal_device *dev, struct hal_partition *part,
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

/* Account a run from start to end: busy time of the queue (a), of part, of dev. */
static ALWAYS_INLINE void count_ran(struct hal_device *dev, struct hal_partition *part,
				    struct account *a, uint64_t start, uint64_t end)
{
	/* The common case: the run started when the last one in its partition, and the
	 * last one on the device, ended. */
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
		count_ran_slowly(dev, part, a, start, end);
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
	q->sched.stops_inside++;
	q->slow |= SLOW_STOPPED;
}

/* Handle the rare parts of the end of f: it failed, was stopped or killed, or a trace,
 * the policy or core/memory must be notified. */
static NOINLINE void command_ended_slowly(struct hal_queue *q, struct inflight *f,
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
	/* From its second kill on, a command's kills count even if it never began.
	 * Otherwise it could be submitted and killed for ever. */
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
	q->sched.stops_inside = 0;
	q->slow &= ~SLOW_STOPPED;
	if (kill) {
		f->killed = true; /* to be submitted again */
		f->done = false;
	} else if (ev->status != 0) {
		q->halted = true;
		keep_fault(q, ev->fault);
	}
	if ((q->slow & SLOW_RECOLOR) != 0)
		q->dev->memory.residency->look(q);
}

/* Handle the parts of the end of f that depend on the flags slow of q, and on the
 * command's status. */
static ALWAYS_INLINE void command_ended_flagged(struct hal_queue *q, struct inflight *f,
						const struct hal_bk_event *ev,
						uint32_t slow)
{
	/* The common case: the policy is notified, or learned for, and nothing else. */
	if (LIKELY(slow == SLOW_POLICY && !q->sched.urgent))
		policy_ended(q, f, ev, 0);
	else
		command_ended_slowly(q, f, ev);
}

/* Handle the event that a command has ended: account it, retire the queue's records, and
 * advance the queue.  Return its partition, which may issue another command. */
static ALWAYS_INLINE struct hal_partition *command_ended(struct hal_device *dev,
							 const struct hal_bk_event *ev)
{
	struct inflight *f = (void *)(uintptr_t)ev->cookie; /* NOLINT(*-no-int-to-ptr) */
	struct hal_queue *q = f->queue;
	struct hal_partition *part = q->part;
	struct account *a = &q->observe.account;
	uint32_t slow;

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
	slow = (uint32_t)ev->status |
	       (q->slow & (SLOW_TRACE | SLOW_SUSPENDING | SLOW_POLICY | SLOW_KILLED |
			   SLOW_STOPPED | SLOW_RECOLOR));
	if (UNLIKELY(slow != 0))
		command_ended_flagged(q, f, ev, slow);
	retire_ended(q);
	if (UNLIKELY((q->slow & SLOW_SUSPENDING) != 0))
		dev->sched.listener->ended(q);
	(void)advance(q);
	return part;
}

/* Handle the event that a suspend or resize has ended. */
static NOINLINE void device_quiet(struct hal_device *dev, const struct hal_bk_event *ev)
{
	dev->command.pending--;
	if ((ev->cookie & COOKIE_PARTITION) != 0)
		dev->space.moves->done(ev);
	else
		dev->sched.listener->quiet(ev);
}

/* Handle the loss of the device: fail all its commands, queues, suspends and resizes.
 * hal_last_error says why it is lost. */
static COLD void device_lost(struct hal_device *dev)
{
	struct hal_bk_event ev = {.kind = HAL_BK_DONE, .status = -EIO};

	format_text(dev->lost_why, sizeof(dev->lost_why), "%s", hal_last_error());
	format_text(ev.fault, sizeof(ev.fault), "the device is lost: %s", dev->lost_why);
	ev.start_ns = dev->now;
	ev.end_ns = dev->now;
	LOG(HAL_LOG_ERROR, "%s is lost, with %u events due: %s", dev->name,
	    dev->command.pending, dev->lost_why);
	/* Sequentially consistent, for completions_over. */
	atomic_store(&dev->lost, -ENODEV);
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
				fail_queue(q, -EIO, FAILED_NO_COMMAND, ev.fault);
				q->failing = !queue_empty(q);
				drop_rest(q);
			}
		}
		dev->space.moves->lost(part);
	}
	dev->command.pending = 0;
	completions_lost(dev);
}

/* ---- engine turns ------------------------------------------------------------------ */

/* Call the timers that are due, then the scheduler's. */
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

/* Return whether virtual time may pass although the device has no work. */
static NOINLINE bool may_idle(const struct hal_device *dev, uint64_t until_ns, bool idle)
{
	return dev->virtual_clock && until_ns != UINT64_MAX &&
	       (idle || dev->timer_ns != UINT64_MAX) && atomic_load(&dev->lost) == 0;
}

/* Return whether virtual time must stop: a host function runs, or a message that was sent
 * during one is unread. */
static inline bool calling_back(const struct hal_device *dev)
{
	return (dev->work & (WORK_CALLBACKS | WORK_UNREAD)) != 0 && dev->virtual_clock;
}

/* Handle a poll that returned n <= 0.  Return whether it changed anything: the device is
 * lost, or virtual time has passed since before. */
static NOINLINE bool no_events(struct hal_device *dev, int n, uint64_t until_ns,
			       uint64_t before)
{
	if (n < 0)
		device_lost(dev);
	/* If until_ns is UINT64_MAX, the poll ended because nothing is left running, even
	 * if the time has changed. */
	return n < 0 ||
	       (dev->virtual_clock && until_ns != UINT64_MAX && dev->now != before);
}

/* Handle the n events at e.  Serving their partitions is left to act(). */
static NOINLINE void handle_events(struct hal_device *dev, const struct hal_bk_event *e,
				   int n)
{
	for (; n > 0; n--, e++) {
		if (LIKELY(e->kind == HAL_BK_DONE))
			partition_runnable(command_ended(dev, e));
		else
			device_quiet(dev, e);
	}
}

/* Poll the device and handle its events.  Return false if nothing happened. */
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
	dev->now_fresh = true;
	if (UNLIKELY(n <= 0))
		return no_events(dev, n, until_ns, before);
	/* The common case of one completion: serve its partition at once.  Otherwise all
	 * events are handled before the next decision. */
	if (LIKELY(n == dev->command.served_at_once && e->kind == HAL_BK_DONE)) {
		struct hal_partition *part = command_ended(dev, e);

		/* What waits for a time, or for an idle device, is not due before the
		 * next turn. */
		if (LIKELY((dev->work & (uint8_t) ~(WORK_TIMERS | WORK_HELD)) == 0))
			serve_partition(dev, part);
		else
			partition_runnable(part);
		return true;
	}
	handle_events(dev, e, n);
	return true;
}

/* Serve again, once a turn, partitions for which the device was full.  If no command is
 * in flight, ask the policy again about partitions that it leaves idle. */
static COLD void retry_waiting(struct hal_device *dev)
{
	if ((dev->work & WORK_BLOCKED) != 0)
		unblock(dev);
	if ((dev->work & WORK_HELD) != 0 && list_empty(&dev->command.inflight_list))
		policy_idle(dev);
}

/* Do the work that dev->work names, before the device is polled. */
static NOINLINE void prepare(struct hal_device *dev)
{
	dev->work &= (uint8_t)~WORK_UNREAD;
	if ((dev->work & WORK_TIMERS) != 0 && dev->timer_ns <= dev->now)
		timers_run(dev);
	if ((dev->work & (WORK_BLOCKED | WORK_HELD)) != 0)
		retry_waiting(dev);
	if ((dev->work & WORK_TODO) != 0)
		act(dev);
}

/* Read the clock, unless the poll of the last turn was followed by a read, and accept the
 * records of watched queues.  A journal needs a read of the clock in every turn. */
static NOINLINE void begin_real_turn(struct hal_device *dev)
{
	if (!dev->now_fresh || (dev->work & WORK_JOURNAL) != 0)
		device_now(dev);
	dev->now_fresh = false;
	dev->watch.turn++;
	if (dev->watch.count != 0 && inbox_empty(&dev->inbox))
		watch_look(dev);
}

/* Read the inbox and issue commands: the part of a turn before the poll. */
static ALWAYS_INLINE void begin_turn(struct hal_device *dev)
{
	dev->acted = false;
	if (UNLIKELY(!dev->virtual_clock))
		begin_real_turn(dev);
	if (!inbox_empty(&dev->inbox)) {
		engine_read(dev);
		dev->intake &= (uint8_t)~INTAKE_SLEPT;
	}
	/* A timer that is not due needs nothing. */
	if (UNLIKELY(dev->work != 0) &&
	    (dev->work != WORK_TIMERS || dev->timer_ns <= dev->now))
		prepare(dev);
}

/* Do act() out of line: a second inlined copy would only enlarge the turn. */
static NOINLINE void act_again(struct hal_device *dev)
{
	act(dev);
}

static ALWAYS_INLINE bool flow_turn(struct hal_device *dev, uint64_t until_ns, bool idle)
{
	bool progressed;

	begin_turn(dev);
	progressed = poll_device(dev, until_ns, idle);
	if (UNLIKELY((dev->work & WORK_TODO) != 0))
		act_again(dev);
	device_check(dev);
	return progressed || dev->acted;
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
