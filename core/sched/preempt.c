/* SPDX-License-Identifier: Apache-2.0 */
/*
 * preempt.c - stop less urgent queues of a partition while more urgent work needs it.
 *
 * A best-effort queue with in-flight commands is preempted for a latency-critical
 * command.  [policy] preempt_for extends this to more queues.  Ranks compare class, then
 * priority.
 *
 *   class     best effort only, for latency-critical work
 *   deadline  also lower rank, or the same rank with a later deadline or none, for a
 *             command with a deadline
 *   priority  also lower rank, for a command without a deadline
 *
 * Each stop uses the suspend mode that costs least.  Two numbers are estimated per mode:
 *
 *   wait  how long the urgent command waits for the device.  DRAIN: the run time left.
 *         Other modes: the profile's time for the command, else what earlier stops of
 *         the queue took, else a part of the run time that the oldest command has left.
 *         The device's worst case, if it reports one, limits the wait.
 *   loss  run time that is lost.  KILL: the time that the command has run.  Other
 *         modes: the profile's cost, else what earlier stops cost.  If neither is known,
 *         SAVE counts twice its wait, for save and restore.
 *
 * A worst case of 0 means that none is known yet, so the engine tries the mode.  The
 * first FOLD is expected to take half of the run time that the command has left, because
 * a safe point may come at any time up to its end.  The first SAVE needs no safe point
 * and is expected to take a quarter.  The first KILL saves nothing, but loses work: it is
 * expected to take the worst case, or half if none is known, so that FOLD is tried first.
 * A device that does not stop inside commands is expected to finish the oldest command.
 *
 * With a deadline the mode with the least loss is chosen among those that meet it, with
 * a margin for waits that are only estimated.  Otherwise the sum of wait and loss
 * decides.  Preempted queues resume when their partition has no more urgent work.  The
 * policy still chooses the queue that is served next.
 *
 * KILL needs commands that may run twice, and kills one command at most [policy] kills
 * times.  A queue that made no progress for longer than [policy] timeout_ms is resumed.
 * Until it has completed a command, only DRAIN stops it.
 */
#include "sched/preempt.h"

#include <errno.h>

#include "sched/decisions.h"
#include "sched/expect.h"
#include "sched/inherit.h"
#include "sched/policy.h"
#include "sched/suspend.h"
#include "space/partition.h"
#include "util/error.h"

/* Estimates are exceeded by less than 1/MARGIN_DIVISOR of them, as a rule. */
#define MARGIN_DIVISOR 8u

/* What stopping a queue in one mode costs. */
struct stop_estimate {
	uint64_t wait_ns, lost_ns;
	uint64_t late_ns; /* wait that a deadline has to allow for */
};

/* Run times of a queue's in-flight commands. */
struct remaining {
	uint64_t left_ns, ran_ns; /* still to run; already run by .now */
	uint64_t oldest_left_ns;  /* still to run, of the oldest command */
	const struct record *now; /* command that would be stopped inside; NULL if no
				     command has begun */
};

/* Remove v from the preempted queues and resume it, unless the application has resumed it
 * already. */
static void resume_preempted(struct hal_queue *v)
{
	list_del(&v->sched.preempted);
	if (v->state == QUEUE_RUNNING || v->sched.resume_wanted)
		return;
	/* No caller can be given the error, so v's timeline reports it. */
	if (suspend_end(v) != 0)
		timeline_fail(&v->sched.control, -EIO, hal_last_error(), v->dev);
}

/* Return whether q has work for which less urgent queues may be preempted. */
static bool is_urgent(const struct hal_queue *q)
{
	uint32_t by = q->dev->sched.limits.preempt_for;

	if (!q->runnable && q->inflight_count == q->sched.frozen)
		return false;
	if (q->sched.policy_view.service_class == HAL_CLASS_LATENCY)
		return true;
	/* A suspended queue preempts none, so that preempted queues do not preempt each
	 * other. */
	if (by == PREEMPT_FOR_CLASS || q->state != QUEUE_RUNNING)
		return false;
	return by == PREEMPT_FOR_PRIORITY ||
	       inherit_urgency(q).deadline_ns != HAL_POLICY_NEVER;
}

/* Return whether v, whose urgency is other, may be preempted for q. */
static bool outranks(const struct hal_queue *q, const struct hal_queue *v,
		     const struct urgency *other)
{
	uint32_t by = q->dev->sched.limits.preempt_for;
	struct urgency mine;

	if (q->sched.policy_view.service_class == HAL_CLASS_LATENCY &&
	    v->sched.policy_view.service_class == HAL_CLASS_BEST_EFFORT)
		return true;
	if (by == PREEMPT_FOR_CLASS)
		return false;
	mine = inherit_urgency(q);
	return urgency_above(&mine, other) &&
	       (by == PREEMPT_FOR_PRIORITY || mine.deadline_ns != HAL_POLICY_NEVER);
}

/* Return whether preempted queue v has to stay stopped: urgent work that outranks it is
 * left. */
static bool is_outranked(const struct hal_queue *v)
{
	if (v->part->sched.urgent == 0)
		return false;
	/* All urgent queues are latency-critical then.  v may have inherited their class.
	 */
	if (v->dev->sched.limits.preempt_for == PREEMPT_FOR_CLASS)
		return v->sched.policy_view.service_class == HAL_CLASS_BEST_EFFORT;
	/* The urgent queue may belong to a guest of v's partition. */
	hal_list_for_each (p, &v->dev->space.partitions) {
		struct hal_partition *part =
			container_of(p, struct hal_partition, on_device);

		hal_list_for_each (it, &part->queues) {
			const struct hal_queue *q =
				container_of(it, struct hal_queue, on_partition);

			if (q->part == v->part && q->sched.urgent && is_urgent(q) &&
			    outranks(q, v, &v->sched.preempted_urgency))
				return true;
		}
	}
	return false;
}

/* Resume the preempted queues of part that no urgent work outranks any more. */
static void resume_unoutranked(struct hal_partition *part)
{
	hal_list_for_each (it, &part->sched.preempted) {
		struct hal_queue *v = container_of(it, struct hal_queue, sched.preempted);

		if (is_outranked(v))
			continue;
		DECIDED(part->dev, DECIDED_RESUME, part, v, NULL, 0);
		resume_preempted(v);
	}
}

/* Clear q's urgent mark, and resume the queues preempted only for it. */
static void clear_urgent(struct hal_queue *q)
{
	q->sched.urgent = false;
	q->part->sched.urgent--;
	resume_unoutranked(q->part);
}

/* Return whether v was stopped for too long without progress.  If so, count it and
 * protect v from all modes but DRAIN until it completes a command. */
static bool starved_too_long(struct hal_queue *v)
{
	if (!suspend_starved_too_long(v))
		return false;
	counter_add(&v->dev->sched.faults.starved, 1);
	/* Reported to the user, but no fault of the policy. */
	atomic_store(&v->dev->sched.faults.reason,
		     "a queue was preempted for longer than policy.timeout_ms");
	return true;
}

/* Resume preempted queues of part that were stopped for too long.  Endless urgent work
 * must not stop a queue longer than the watchdog allows. */
static void resume_starving(struct hal_partition *part)
{
	hal_list_for_each (it, &part->sched.preempted) {
		struct hal_queue *v = container_of(it, struct hal_queue, sched.preempted);

		if (starved_too_long(v))
			resume_preempted(v);
	}
}

/* Return the expected run time of r, or the configured time for unknown commands. */
static uint64_t expected_or_unknown(const struct hal_queue *q, const struct record *r)
{
	uint64_t ns = expect_command(q, r);

	return ns != HAL_POLICY_NEVER ? ns : q->dev->sched.limits.unknown_ns;
}

/* Return how long q's next command can wait and still meet its deadline; HAL_POLICY_NEVER
 * if it has none. */
static uint64_t slack_of(const struct hal_queue *q)
{
	uint64_t at = inherit_deadline(q);
	uint64_t needed = expected_or_unknown(q, q->next), now = q->dev->now;

	if (at == HAL_POLICY_NEVER)
		return HAL_POLICY_NEVER;
	return at > hal_bk_after(now, needed) ? at - now - needed : 0;
}

/* Estimate v's in-flight work.  first is the oldest in-flight command of the partition.
 * Only first runs; it began when the command before it ended.  The other in-flight
 * commands have not begun. */
static struct remaining remaining_work(const struct hal_queue *v,
				       const struct inflight *first)
{
	const struct busy *ran = &v->part->observe.ran;
	struct remaining w = {0};
	const struct inflight *f = v->oldest;
	uint64_t before_ns = v->sched.stopped_ns; /* run time of the oldest command before
						     it was stopped inside */

	for (uint32_t i = 0; i < v->inflight_count; i++, f = f->next) {
		uint64_t ns = expected_or_unknown(v, f->record);
		uint64_t since = f->issue_ns;

		if (f->done)
			continue;
		ns = ns > before_ns ? ns - before_ns : ns;
		if (f == first) {
			w.now = f->record;
			if (since < ran->at[0].end && ran->at[0].end <= v->dev->now)
				since = ran->at[0].end;
			w.ran_ns = v->dev->now > since ? v->dev->now - since : 0;
			/* A command that has outrun its expected time is expected to take
			 * that time once more. */
			ns = ns > w.ran_ns ? ns - w.ran_ns : ns;
			w.ran_ns += before_ns; /* KILL also loses the time run earlier */
		}
		if (w.left_ns == 0)
			w.oldest_left_ns = ns;
		before_ns = 0;
		w.left_ns = hal_bk_after(w.left_ns, ns);
	}
	return w;
}

/* Return whether v may be stopped in mode. */
static bool mode_allowed(const struct hal_queue *v, uint32_t mode)
{
	const struct hal_device *dev = v->dev;

	if (mode == HAL_SUSPEND_DRAIN)
		return true;
	if (v->sched.no_preempt || (dev->sched.bk_suspend_modes >> mode & 1) == 0)
		return false;
	return mode != HAL_SUSPEND_KILL ||
	       (v->sched.kills < dev->sched.limits.kills && suspend_once(v) == NULL);
}

/* Return whether v may be stopped inside a command: in a mode other than DRAIN. */
static bool can_stop_inside(const struct hal_queue *v)
{
	for (uint32_t mode = HAL_SUSPEND_FOLD; mode <= HAL_SUSPEND_KILL; mode++)
		if (mode_allowed(v, mode))
			return true;
	return false;
}

/* Return the device's worst case for stopping v in mode; 0: none is known.  FOLD and SAVE
 * store state, which a bandwidth limit makes longer than the device can know. */
static uint64_t worst_case(const struct hal_queue *v, uint32_t mode)
{
	if (mode != HAL_SUSPEND_KILL && v->part->sched.limit_bytes != 0)
		return 0;
	return v->dev->info.suspend_worst_ns[mode];
}

/* Estimate how long the device takes to stop v, whose in-flight work is w, in mode.  s is
 * the profile's cost for the command, or NULL.  A stop that the profile does not have
 * takes at most the run time that the oldest command of w has left.  Return at least 1
 * ns. */
static uint64_t stop_wait(const struct hal_queue *v, uint32_t mode,
			  const struct remaining *w, const struct stop_cost *s)
{
	static const uint8_t parts[] = {1, 2, 4, 2}; /* first stop: 1 / n of the rest */
	const struct stop_learned *l = &v->sched.learned.stops[mode];
	const struct hal_device_info *info = &v->dev->info;
	uint64_t worst_ns = worst_case(v, mode), ns;

	if (s != NULL)
		ns = s->quiet_ns;
	else if (l->quiet_known && l->quiet_ns < w->oldest_left_ns)
		ns = l->quiet_ns;
	else if (l->quiet_known || info->preempt != HAL_PREEMPT_INSIDE ||
		 (mode == HAL_SUSPEND_KILL && worst_ns != 0))
		ns = w->oldest_left_ns;
	else
		ns = w->oldest_left_ns / parts[mode];
	if (worst_ns != 0 && worst_ns < ns)
		ns = worst_ns;
	return ns != 0 ? ns : 1;
}

/* Return wait_ns plus what the estimate may be too low by, at most worst_ns.  0: there is
 * no worst case. */
static uint64_t with_margin(uint64_t wait_ns, uint64_t worst_ns)
{
	uint64_t late_ns = hal_bk_after(wait_ns, wait_ns / MARGIN_DIVISOR);

	return worst_ns != 0 && worst_ns < late_ns ? worst_ns : late_ns;
}

/* Estimate the cost of stopping v, whose in-flight work is w, in mode. */
static struct stop_estimate estimate_stop(const struct hal_queue *v, uint32_t mode,
					  const struct remaining *w)
{
	const struct stop_cost *s = w->now != NULL ? expect_stop(w->now, mode) : NULL;
	const struct stop_learned *l = &v->sched.learned.stops[mode];
	struct stop_estimate cost = {w->left_ns, 0, 0};

	if (mode != HAL_SUSPEND_DRAIN)
		cost.wait_ns = stop_wait(v, mode, w, s);
	cost.late_ns = with_margin(cost.wait_ns, worst_case(v, mode));
	if (mode == HAL_SUSPEND_DRAIN)
		return cost;
	if (mode == HAL_SUSPEND_KILL)
		cost.lost_ns = w->ran_ns;
	else if (s != NULL)
		cost.lost_ns = s->cost_ns;
	else if (l->cost_known)
		cost.lost_ns = l->cost_ns;
	else if (mode == HAL_SUSPEND_SAVE)
		cost.lost_ns = hal_bk_after(cost.wait_ns, cost.wait_ns);
	return cost;
}

/* Return whether a costs less than b for a command that can wait slack_ns.  A mode that
 * meets the deadline beats one that does not.  If both meet a deadline, the smaller loss
 * wins.  Otherwise, or if the losses are equal, the smaller sum of wait and loss wins. */
static bool cheaper(const struct stop_estimate *a, const struct stop_estimate *b,
		    uint64_t slack_ns)
{
	bool a_in_time = a->late_ns <= slack_ns, b_in_time = b->late_ns <= slack_ns;

	if (a_in_time != b_in_time)
		return a_in_time;
	if (slack_ns != HAL_POLICY_NEVER && a_in_time && a->lost_ns != b->lost_ns)
		return a->lost_ns < b->lost_ns;
	return hal_bk_after(a->wait_ns, a->lost_ns) <
	       hal_bk_after(b->wait_ns, b->lost_ns);
}

/* Choose the mode in which to stop v, whose in-flight work is w, for a command that can
 * wait slack_ns. */
static uint32_t choose_mode(const struct hal_queue *v, const struct remaining *w,
			    uint64_t slack_ns)
{
	const struct hal_device *dev = v->dev;
	struct stop_estimate best = estimate_stop(v, HAL_SUSPEND_DRAIN, w);
	uint32_t chosen = HAL_SUSPEND_DRAIN;

	if (dev->sched.limits.preempt != PREEMPT_BEST) {
		chosen = dev->sched.limits.preempt - PREEMPT_DRAIN;
		return mode_allowed(v, chosen) ? chosen : HAL_SUSPEND_DRAIN;
	}
	for (uint32_t mode = HAL_SUSPEND_FOLD; mode <= HAL_SUSPEND_KILL; mode++) {
		struct stop_estimate cost = estimate_stop(v, mode, w);

		if (!mode_allowed(v, mode) || !cheaper(&cost, &best, slack_ns))
			continue;
		best = cost;
		chosen = mode;
	}
	return chosen;
}

/* Stop v in mode, so that q's work can run.  Do nothing if the device refuses. */
static void preempt_queue(const struct hal_queue *q, struct hal_queue *v, uint32_t mode,
			  const struct remaining *w, uint64_t slack_ns)
{
	struct stop_estimate cost;
	int err;

	v->sched.preempted_urgency = inherit_urgency(v);
	err = suspend_begin(v, mode, false);
	/* The device may lack memory for the state that FOLD or SAVE keeps.  DRAIN needs
	 * none. */
	if (err != 0 && mode != HAL_SUSPEND_DRAIN) {
		mode = HAL_SUSPEND_DRAIN;
		err = suspend_begin(v, mode, false);
	}
	if (err != 0)
		return;
	cost = estimate_stop(v, mode, w);
	suspend_mark_starving(v);
	list_add_before(&v->part->sched.preempted, &v->sched.preempted);
	DECIDED(v->dev, DECIDED_PREEMPT, NULL, v, NULL, mode, q->obj.id, cost.wait_ns,
		cost.lost_ns, slack_ns);
}

/* Return slack_ns less ns, at least 0.  No deadline stays no deadline. */
static uint64_t reduce_slack(uint64_t slack_ns, uint64_t ns)
{
	if (slack_ns == HAL_POLICY_NEVER)
		return slack_ns;
	return slack_ns > ns ? slack_ns - ns : 0;
}

/* Return whether f is its queue's oldest command that the device has not completed. */
static bool is_oldest(const struct inflight *f)
{
	const struct inflight *oldest = f->queue->oldest;

	while (oldest->done)
		oldest = oldest->next;
	return f == oldest;
}

/* Return whether v may be stopped for q. */
static bool preemptible_for(const struct hal_queue *q, const struct hal_queue *v)
{
	struct urgency u;

	if (v->state != QUEUE_RUNNING || v->sched.policy_asks)
		return false;
	if (q->dev->sched.limits.preempt_for == PREEMPT_FOR_CLASS)
		return outranks(q, v, NULL);
	/* Stop v at most once at one instant.  Stops and resumes change urgencies, so two
	 * queues could otherwise preempt each other for ever without time passing. */
	if (v->sched.suspend_count > 0 && v->sched.suspend_asked_ns == v->dev->now)
		return false;
	u = inherit_urgency(v);
	return outranks(q, v, &u);
}

/* Return whether v's in-flight commands run to their end, whichever stop mode is chosen.
 * Commands of a queue that is stopped already keep running only under DRAIN. */
static bool keeps_running(const struct hal_queue *q, const struct hal_queue *v)
{
	if (v->state != QUEUE_RUNNING || v->sched.policy_asks)
		return v->sched.suspend_mode == HAL_SUSPEND_DRAIN;
	return !preemptible_for(q, v) || !can_stop_inside(v);
}

/* Return the run time, of in-flight commands in q's partition, that no stop mode can
 * shorten. */
static uint64_t unstoppable_ns(const struct hal_queue *q)
{
	const struct list *inflight_list = &q->dev->command.inflight_list;
	const struct inflight *first = NULL;
	uint64_t ns = 0;

	for (const struct list *it = inflight_list->next; it != inflight_list;
	     it = it->next) {
		const struct inflight *f = container_of(it, struct inflight, on_device);

		if (f->queue->part != q->part)
			continue;
		if (first == NULL)
			first = f;
		if (is_oldest(f) && keeps_running(q, f->queue))
			ns += remaining_work(f->queue, first).left_ns;
	}
	return ns;
}

/* Stop all queues in q's partition that may be preempted for q.  The partition runs its
 * in-flight commands one after another.  So the slack of q's next command is first
 * reduced by the work that cannot be stopped, then by each queue that is drained. */
static void preempt_others(struct hal_queue *q)
{
	struct hal_partition *part = q->part;
	struct hal_device *dev = part->dev;
	uint64_t slack_ns = q->runnable ? slack_of(q) : HAL_POLICY_NEVER;
	uint64_t rest_ns = slack_ns;
	const struct inflight *first = NULL;

	if (slack_ns != HAL_POLICY_NEVER)
		rest_ns = reduce_slack(rest_ns, unstoppable_ns(q));
	for (struct list *it = dev->command.inflight_list.next;
	     it != &dev->command.inflight_list; it = it->next) {
		const struct inflight *f = container_of(it, struct inflight, on_device);
		struct hal_queue *v = f->queue;
		struct remaining w;
		uint32_t mode;

		if (v->part != part)
			continue;
		if (v == q && !q->runnable)
			return; /* later commands do not delay q */
		if (first == NULL)
			first = f;
		if (!preemptible_for(q, v))
			continue;
		if (v->sched.starving)
			(void)starved_too_long(v);
		w = remaining_work(v, first);
		mode = choose_mode(v, &w, rest_ns);
		if (mode == HAL_SUSPEND_DRAIN && can_stop_inside(v))
			rest_ns = reduce_slack(rest_ns, w.left_ns);
		preempt_queue(q, v, mode, &w, slack_ns);
	}
}

void preempt_update(struct hal_queue *q)
{
	if (!is_urgent(q)) {
		clear_urgent(q);
		return;
	}
	if (q->dev->sched.limits.preempt_for != PREEMPT_FOR_CLASS)
		resume_unoutranked(q->part);
	resume_starving(q->part);
	if (q->dev->sched.limits.preempt != PREEMPT_NEVER)
		preempt_others(q);
}

void preempt_cancel(struct hal_queue *q)
{
	if (list_empty(&q->sched.preempted))
		return;
	q->sched.preempted_urgency = inherit_urgency(q);
	if (!is_outranked(q))
		resume_preempted(q);
}

void preempt_leave(struct hal_queue *q)
{
	if (q->sched.urgent)
		clear_urgent(q);
	list_del(&q->sched.preempted);
}
