/* SPDX-License-Identifier: Apache-2.0 */
/*
 * suspend.c - suspend and resume a queue.
 *
 * Each mode leaves in-flight commands in another place:
 *
 *   DRAIN       none are left: the device has completed them
 *   KILL        they return to the queue, to be submitted to the device again
 *   FOLD, SAVE  the device keeps them with their progress; they are frozen
 *
 * Frozen commands use no unit and no place in their partition, and no event is pending
 * for them.  They stay frozen until the queue resumes or is destroyed.
 */
#include "sched/suspend.h"

#include <errno.h>
#include <stdlib.h>

#include "command/flow.h"
#include "memory/bimodal.h"
#include "sched/expect.h"
#include "sched/policy.h"
#include "sched/urgency.h"
#include "util/error.h"
#include "util/log.h"

static const char *const mode_names[] = {"DRAIN", "FOLD", "SAVE", "KILL"};

static void set_state(struct hal_queue *q, enum queue_state state)
{
	q->state = (uint8_t)state;
	q->slow &= ~SLOW_SUSPENDING;
	if (state == QUEUE_SUSPENDING)
		q->slow |= SLOW_SUSPENDING;
}

/* Take the commands that the device keeps for q out of the in-flight counts, so that
 * other queues can use their places.  The oldest has run for ran_ns, until stopped_ns. */
static void freeze(struct hal_queue *q, uint64_t ran_ns, uint64_t stopped_ns)
{
	struct hal_bk_event ev = {.kind = HAL_BK_DONE,
				  .status = -EINTR,
				  .start_ns = stopped_ns - ran_ns,
				  .end_ns = stopped_ns};
	struct inflight *f = q->oldest;

	for (uint32_t i = 0; i < q->inflight_count; i++, f = f->next) {
		if (f->done)
			continue;
		list_take(&f->on_device);
		q->dev->command.pending--;
		q->part->command.inflight--;
		q->sched.frozen++;
		policy_ended(q, f, &ev, 0);
		ev.start_ns = stopped_ns; /* the others have not run */
	}
	if (q->sched.frozen == 0)
		return;
	if (q->sched.urgent)
		queue_todo(q);
	OBSERVED(q->dev, depth, q->part, q->dev->now);
	partition_runnable(q->part);
}

/* Count the frozen commands of q as in flight again. */
static void thaw(struct hal_queue *q)
{
	struct inflight *f = q->oldest;

	if (q->sched.frozen == 0)
		return;
	for (uint32_t i = 0; i < q->inflight_count; i++, f = f->next) {
		if (f->done)
			continue;
		f->issue_ns = q->dev->now;
		list_add_before(&q->dev->command.inflight_list, &f->on_device);
	}
	q->dev->command.pending += q->sched.frozen;
	q->part->command.inflight += q->sched.frozen;
	q->sched.frozen = 0;
	q->sched.policy_view.running = q->inflight_count;
	q->part->sched.policy_view.running = q->part->command.inflight;
	OBSERVED(q->dev, depth, q->part, q->dev->now);
	if (q->sched.preempts)
		preempt_wanted(q);
}

void suspend_thaw_all(struct hal_device *dev)
{
	hal_list_for_each (p, &dev->space.partitions) {
		struct hal_partition *part =
			container_of(p, struct hal_partition, on_device);

		hal_list_for_each (it, &part->queues)
			thaw(container_of(it, struct hal_queue, on_partition));
	}
}

/* Return the number of commands of q that the device has not completed. */
static uint32_t commands_running(const struct hal_queue *q)
{
	const struct inflight *f = q->oldest;
	uint32_t n = 0;

	for (uint32_t i = 0; i < q->inflight_count; i++, f = f->next)
		n += !f->done;
	return n;
}

const struct record *suspend_once(const struct hal_queue *q)
{
	const struct inflight *f = q->oldest;

	for (uint32_t i = 0; i < q->inflight_count; i++, f = f->next)
		if (!f->done && (f->record->cmd.flags & HAL_CMD_REPLAYABLE) == 0)
			return f->record;
	return NULL;
}

/* Return 0 if q's in-flight commands may be killed and run again, else -ENOTSUP. */
static int kill_check(const struct hal_queue *q)
{
	const struct record *once = suspend_once(q);

	return once == NULL
		       ? 0
		       : fail(ENOTSUP,
			      "%s: cannot suspend by KILL: in-flight command \"%s\" is "
			      "not HAL_CMD_REPLAYABLE; use another mode, or add "
			      "HAL_SUSPEND_FINAL",
			      queue_text(q).text, record_name(once));
}

/* Return 0 if the device can suspend q in mode, else -errno. */
static int mode_check(const struct hal_queue *q, uint32_t mode, bool final)
{
	const struct hal_device *dev = q->dev;

	if (mode > HAL_SUSPEND_KILL)
		return fail(EINVAL, "%u is not a suspend mode", mode);
	if ((dev->info.suspend_modes >> mode & 1) == 0)
		return fail(ENOTSUP, "%s does not support suspend mode %s", dev->name,
			    mode_names[mode]);
	return mode == HAL_SUSPEND_KILL && !final ? kill_check(q) : 0;
}

int suspend_check(const struct hal_queue *q, uint32_t mode, bool final)
{
	if (mode <= HAL_SUSPEND_KILL && q->state != QUEUE_RUNNING)
		return fail(EBUSY, "%s is already suspended or being suspended",
			    queue_text(q).text);
	return mode_check(q, mode, final);
}

/* Move q's issue cursor back to the oldest killed command, so that it is submitted again.
 */
static void rewind_killed(struct hal_queue *q)
{
	struct inflight *f = q->oldest;
	uint32_t kept = 0;

	for (; kept < q->inflight_count && !f->killed; kept++)
		f = f->next;
	if (kept == q->inflight_count)
		return;
	for (struct inflight *k = f; kept < q->inflight_count;
	     k = k->next, q->inflight_count--)
		k->killed = false;
	/* A command behind them that has failed, for example because the backend has
	 * refused it, is submitted again, too. */
	q->halted = false;
	free(q->fault);
	q->fault = NULL;
	/* q may be waiting for a later point, even one that a killed command will reach.
	 */
	queue_unpark(q);
	q->issue = f->at;
	q->inside = q->stepping & STEP_INSIDE; /* earlier commands may have completed */
	q->unused = f;
	if ((q->slow & SLOW_HEAD) != 0) {
		q->issue_terms.deadline_ns = q->retire_terms.deadline_ns;
		q->issue_terms.priority = q->retire_terms.priority;
		q->stepping |= STEP_TERMS;
	}
}

/* Resume suspended queue q.  Return 0 or the backend's error. */
static int resume_now(struct hal_queue *q)
{
	struct hal_device *dev = q->dev;
	int err = 0;

	if (q->sched.bk_suspended && atomic_load(&dev->lost) == 0)
		err = dev->hot.resume(dev->hot_bk, q->bk);
	if (err != 0)
		return err;
	thaw(q);
	q->sched.bk_suspended = false;
	q->sched.resume_wanted = false;
	q->sched.policy_stops = false;
	list_del(&q->sched.preempted);
	set_state(q, QUEUE_RUNNING);
	OBSERVED(dev, instant, q, "resume", dev->now);
	queue_todo(q);
	return 0;
}

/* Return whether q has to stay suspended for now: its partition must be idle while the
 * device moves it, but the device would get q's frozen commands back. */
static bool must_stay_idle(const struct hal_queue *q)
{
	return q->sched.frozen > 0 && q->part->command.inflight_max == 0;
}

/* Carry out a resume of q that was requested earlier, if there is one.  If the device
 * refuses, q stays suspended.  The call that requested the resume has returned, so q's
 * timeline reports the error. */
static void resume_as_requested(struct hal_queue *q)
{
	if (q->state != QUEUE_SUSPENDED || !q->sched.resume_wanted || must_stay_idle(q))
		return;
	if (resume_now(q) == 0)
		return;
	q->sched.resume_wanted = false;
	timeline_fail(&q->sched.control, -EIO, hal_last_error(), q->dev);
}

void suspend_partition_moved(struct hal_partition *part)
{
	/* Queues of guests run on the units of part, too. */
	hal_list_for_each (p, &part->dev->space.partitions) {
		struct hal_partition *home =
			container_of(p, struct hal_partition, on_device);

		hal_list_for_each (it, &home->queues) {
			struct hal_queue *q =
				container_of(it, struct hal_queue, on_partition);

			if (q->part == part)
				resume_as_requested(q);
		}
	}
}

/* Fail the points of q if its suspend is final, so that no thread waits for them for
 * ever. */
static void end_if_final(struct hal_queue *q)
{
	if (q->sched.final && q->err == 0)
		queue_end(q);
}

/* Log that the stop of q took longer than the device promises, if it did. */
static void log_late_stop(const struct hal_queue *q, uint64_t took_ns)
{
	uint64_t most_ns = q->dev->info.suspend_worst_ns[q->sched.suspend_mode];

	if (most_ns != 0 && took_ns > most_ns)
		LOG(HAL_LOG_WARNING,
		    "%s: %s of %s took %llu ns, longer than the %llu ns that the device "
		    "states",
		    q->dev->name, mode_names[q->sched.suspend_mode], queue_text(q).text,
		    U64(took_ns), U64(most_ns));
}

/* Complete the suspend of q, which the device has released.  Its oldest command ran for
 * ran_ns before it was stopped inside at stopped_ns; 0 if it was not stopped inside. */
static void queue_quiet(struct hal_queue *q, uint64_t ran_ns, uint64_t stopped_ns)
{
	struct hal_device *dev = q->dev;
	struct account *a = &q->observe.account;
	uint64_t took = dev->now > q->sched.suspend_asked_ns
				? dev->now - q->sched.suspend_asked_ns
				: 0;

	counter_add(&a->suspend_ns, took);
	counter_max(&a->suspend_max_ns, took);
	counter_max(&a->stop_max_ns[q->sched.suspend_mode], took);
	if (q->sched.bk_suspended && q->sched.suspend_mode != HAL_SUSPEND_DRAIN)
		expect_learn_quiet(q, q->sched.suspend_mode, took);
	log_late_stop(q, took);
	OBSERVED(dev, span, q, mode_names[q->sched.suspend_mode],
		 q->sched.suspend_asked_ns, dev->now);
	rewind_killed(q);
	freeze(q, ran_ns, ran_ns != 0 ? stopped_ns : dev->now);
	set_state(q, QUEUE_SUSPENDED);
	bimodal_look(q->home);
	timeline_raise(&q->sched.control, q->sched.suspend_count, dev);
	dev->acted = true;
	end_if_final(q);
	if (q->sched.policy_stops && !q->sched.policy_asks)
		policy_changed(q->part, q);
	resume_as_requested(q);
	queue_advance(q);
}

/* Count the run time that KILL lost.  When the oldest killed command is submitted again,
 * it continues after the first kept_ns of its run time. */
static void count_killed(struct hal_queue *q, uint64_t kept_ns)
{
	if (kept_ns > q->sched.killed_ran_ns)
		kept_ns = q->sched.killed_ran_ns;
	counter_add(&q->observe.account.replayed_ns, q->sched.killed_ran_ns - kept_ns);
	q->sched.killed_ran_ns = 0;
	if (kept_ns == 0)
		return;
	q->sched.stopped_ns = kept_ns;
	q->slow |= SLOW_STOPPED;
}

void suspend_check_quiet(struct hal_queue *q)
{
	/* If the backend did not suspend q, no HAL_BK_QUIET comes: q is quiet when
	 * nothing is in flight. */
	if (!q->sched.bk_suspended && q->inflight_count == 0)
		queue_quiet(q, 0, 0);
}

void suspend_quiet(const struct hal_bk_event *ev)
{
	struct hal_queue *q = (void *)(uintptr_t)ev->cookie; /* NOLINT(*-int-to-ptr) */

	uint64_t ran_ns = 0;

	if (q->state != QUEUE_SUSPENDING)
		return;
	counter_add(&q->observe.account.saved_bytes, ev->bytes_written);
	if (ev->end_ns > ev->start_ns)
		ran_ns = ev->end_ns - ev->start_ns;
	if (q->sched.suspend_mode == HAL_SUSPEND_KILL) {
		count_killed(q, ran_ns);
		ran_ns = 0;
	} else if (ran_ns > 0 && commands_running(q) > 0) {
		queue_stopped(q, ev->start_ns, ev->end_ns);
		q->sched.starving_ns =
			q->sched.suspend_asked_ns; /* q made progress until the suspend
						      was requested */
	} else {
		ran_ns = 0;
	}
	queue_quiet(q, ran_ns, ev->end_ns);
}

void suspend_mark_starving(struct hal_queue *q)
{
	if (q->sched.starving)
		return;
	q->sched.starving = true;
	q->sched.starving_ns = q->dev->now;
	q->slow |= SLOW_KILLED;
}

bool suspend_starved_too_long(struct hal_queue *q)
{
	struct hal_device *dev = q->dev;
	uint64_t since_ns =
		q->sched.starving ? q->sched.starving_ns : q->sched.suspend_asked_ns;

	if (dev->now - since_ns <= dev->sched.limits.starve_ns)
		return false;
	q->sched.starving_ns = dev->now;
	q->sched.no_preempt = true;
	q->slow |= SLOW_KILLED;
	return true;
}

void suspend_lost(struct hal_queue *q)
{
	if (q->state == QUEUE_SUSPENDING)
		queue_quiet(q, 0, 0);
}

int suspend_begin(struct hal_queue *q, uint32_t mode, bool final)
{
	struct hal_device *dev = q->dev;
	int err = suspend_check(q, mode, final);

	if (err != 0)
		return err;
	/* Have the backend suspend q only if it supports the mode and commands run.
	 * Otherwise it is enough to issue no more commands. */
	if (commands_running(q) > 0 && (dev->sched.bk_suspend_modes >> mode & 1) != 0) {
		err = dev->hot.suspend(dev->hot_bk, q->bk, mode, (uint64_t)(uintptr_t)q);
		if (err != 0)
			return err;
		q->sched.bk_suspended = true;
		dev->command.pending++;
	}
	queue_withdraw(q, HAL_POLICY_SUSPENDED);
	set_state(q, QUEUE_SUSPENDING);
	q->sched.final = final;
	q->sched.suspend_mode = (uint8_t)mode;
	q->sched.suspend_asked_ns = dev->now;
	q->sched.suspend_count++;
	counter_add(&q->observe.account.suspends, 1);
	if (commands_running(q) == 0)
		queue_quiet(q, 0, 0);
	return 0;
}

/* Return whether the policy or a preemption suspended q, rather than the application. */
static bool suspended_by_scheduler(const struct hal_queue *q)
{
	return q->state != QUEUE_RUNNING &&
	       ((q->sched.policy_stops && !q->sched.policy_asks) ||
		!list_empty(&q->sched.preempted));
}

int suspend_ask(struct hal_queue *q, uint32_t mode, bool final)
{
	bool policy_stopped = q->sched.policy_stops;
	int err;

	if (!suspended_by_scheduler(q)) {
		err = suspend_begin(q, mode, final);
		if (err == 0)
			q->sched.starving = false; /* from now on the application stops q,
						      not the scheduler */
		return err;
	}
	err = mode_check(q, mode, final);
	if (err != 0)
		return err;
	if (q->state == QUEUE_SUSPENDING && mode > q->sched.suspend_mode)
		return fail(EBUSY,
			    "%s is being stopped by %s for the scheduler; suspend it "
			    "by %s after that has completed",
			    queue_text(q).text, mode_names[q->sched.suspend_mode],
			    mode_names[mode]);
	q->sched.final = final;
	q->sched.starving =
		false; /* from now on the application stops q, not the scheduler */
	q->sched.resume_wanted = false;
	q->sched.policy_stops = false;
	list_del(&q->sched.preempted);
	if (q->state == QUEUE_SUSPENDED) {
		end_if_final(q); /* q is quiet already, so no event follows */
		queue_advance(q);
	}
	if (policy_stopped)
		policy_changed(q->part, q); /* the policy can no longer start it */
	return 0;
}

int suspend_end(struct hal_queue *q)
{
	if (q->state == QUEUE_RUNNING || q->sched.resume_wanted)
		return fail(EINVAL, "%s is not suspended", queue_text(q).text);
	if (q->sched.final)
		return fail(ECANCELED,
			    "%s was suspended for good (HAL_SUSPEND_FINAL); it can "
			    "only be destroyed",
			    queue_text(q).text);
	if (q->state == QUEUE_SUSPENDED && !must_stay_idle(q))
		return resume_now(q);
	/* When the device has released q, or has moved its partition. */
	q->sched.resume_wanted = true;
	return 0;
}
