/* SPDX-License-Identifier: Apache-2.0 */
/*
 * preempt.c - what is less urgent makes way for what is more so, of one partition.
 *
 * When a latency-critical command comes, each best-effort queue of which the device has
 * something is stopped; as [policy] preempt_for says also what has lower rank (class,
 * then priority), or the same and a later deadline or none, for a command with a
 * deadline, and what has lower rank for any.  It is stopped in the mode that costs least:
 * what the command waits is known of FOLD, SAVE and KILL (their worst case, or what a
 * profile has measured of the command that runs where there is none) and expected of
 * DRAIN (what is left to run); what is lost is what KILL throws away, and what the others
 * take as the profile says, else SAVE to save and to restore.  With a deadline the least
 * is lost of the modes that keep it; otherwise wait and loss count alike.  They go on
 * when the partition has no such work left.  Who is served next is the policy's to say.
 *
 * KILL only takes what may run twice, and a command no more often than [policy] kills
 * says.  What has not got on for longer than the net lets anybody wait, in one stop or in
 * many, goes on, and is stopped by DRAIN alone until a command of it has ended.
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

/* What a mode costs. */
struct way {
	uint64_t wait_ns, lost_ns;
};

/* What the device still has to do for a queue, and has done of it. */
struct at_work {
	uint64_t left_ns, ran_ns;
	const struct record *now; /* what is stopped inside; NULL: nothing has begun */
};

static void resume_preempted(struct hal_queue *v)
{
	list_del(&v->sched.preempted);
	if (v->state == QUEUE_RUNNING || v->sched.resume_wanted)
		return; /* the application was first */
	/* Nobody is there who could be answered: the queue says why. */
	if (suspend_end(v) != 0)
		timeline_fail(&v->sched.control, -EIO, hal_last_error(), v->dev);
}

/* Something is at hand that others make way for. */
static bool is_urgent(const struct hal_queue *q)
{
	uint32_t by = q->dev->sched.limits.preempt_for;

	if (!q->runnable && q->inflight_count == q->sched.frozen)
		return false;
	if (q->sched.policy_view.service_class == HAL_CLASS_LATENCY)
		return true;
	/* What makes way itself stops nobody. */
	if (by == PREEMPT_FOR_CLASS || q->state != QUEUE_RUNNING)
		return false;
	return by == PREEMPT_FOR_PRIORITY ||
	       inherit_urgency(q).deadline_ns != HAL_POLICY_NEVER;
}

/* v, which is as urgent as other, makes way for q. */
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

/* Somebody it has made way for, or would, is there still. */
static bool is_outranked(const struct hal_queue *v)
{
	if (v->part->sched.urgent == 0 ||
	    v->dev->sched.limits.preempt_for == PREEMPT_FOR_CLASS)
		return v->part->sched.urgent > 0;
	/* Guests of the partition are others. */
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

/* Those go on for whom nobody is left. */
static void let_go_on(struct hal_partition *part)
{
	hal_list_for_each (it, &part->sched.preempted) {
		struct hal_queue *v = container_of(it, struct hal_queue, sched.preempted);

		if (is_outranked(v))
			continue;
		DECIDED(part->dev, DECIDED_RESUME, part, v, NULL, 0);
		resume_preempted(v);
	}
}

static void no_more(struct hal_queue *q)
{
	q->sched.urgent = false;
	q->part->sched.urgent--;
	let_go_on(q->part);
}

static bool too_long(struct hal_queue *v)
{
	if (!suspend_starved_too_long(v))
		return false;
	counter_add(&v->dev->sched.faults.starved, 1);
	/* Named, and not held against the policy. */
	atomic_store(&v->dev->sched.faults.reason,
		     "a queue has made way for others for too long");
	return true;
}

/* Even behind work without an end nobody waits longer than the net lets anybody. */
static void relieve(struct hal_partition *part)
{
	hal_list_for_each (it, &part->sched.preempted) {
		struct hal_queue *v = container_of(it, struct hal_queue, sched.preempted);

		if (too_long(v))
			resume_preempted(v);
	}
}

static uint64_t expected(const struct hal_queue *q, const struct record *r)
{
	uint64_t ns = expect_command(q, r);

	return ns != HAL_POLICY_NEVER ? ns : q->dev->sched.limits.unknown_ns;
}

/* For how long q's next command can wait and still be in time; HAL_POLICY_NEVER: it has
 * no deadline. */
static uint64_t slack_of(const struct hal_queue *q)
{
	uint64_t at = inherit_deadline(q);
	uint64_t needed = expected(q, q->next), now = q->dev->now;

	if (at == HAL_POLICY_NEVER)
		return HAL_POLICY_NEVER;
	return at > hal_bk_after(now, needed) ? at - now - needed : 0;
}

/* The first of its partition has begun when the one before it ended; the others have not
 * begun. */
static struct at_work at_work(const struct hal_queue *v, const struct inflight *first)
{
	const struct busy *ran = &v->part->observe.ran;
	struct at_work w = {0, 0, NULL};
	const struct inflight *f = v->oldest;
	uint64_t before_ns = v->sched.stopped_ns; /* of the oldest */

	for (uint32_t i = 0; i < v->inflight_count; i++, f = f->next) {
		uint64_t ns = expected(v, f->record);
		uint64_t since = f->issue_ns;

		if (f->done)
			continue;
		ns = ns > before_ns ? ns - before_ns : ns;
		if (f == first) {
			w.now = f->record;
			if (since < ran->at[0].end && ran->at[0].end <= v->dev->now)
				since = ran->at[0].end;
			w.ran_ns = v->dev->now > since ? v->dev->now - since : 0;
			/* One that runs longer than expected: as long again. */
			ns = ns > w.ran_ns ? ns - w.ran_ns : ns;
			w.ran_ns += before_ns; /* KILL throws that away, too */
		}
		before_ns = 0;
		w.left_ns = hal_bk_after(w.left_ns, ns);
	}
	return w;
}

static bool possible(const struct hal_queue *v, uint32_t mode)
{
	const struct hal_device *dev = v->dev;

	if (mode == HAL_SUSPEND_DRAIN)
		return true;
	if (v->sched.no_preempt || (dev->sched.bk_suspend_modes >> mode & 1) == 0)
		return false;
	return mode != HAL_SUSPEND_KILL ||
	       (v->sched.kills < dev->sched.limits.kills && suspend_once(v) == NULL);
}

/* Not by DRAIN alone. */
static bool possible_inside(const struct hal_queue *v)
{
	for (uint32_t mode = HAL_SUSPEND_FOLD; mode <= HAL_SUSPEND_KILL; mode++)
		if (possible(v, mode))
			return true;
	return false;
}

/* wait_ns 0: nothing is known of it. */
static struct way way_of(const struct hal_device *dev, uint32_t mode,
			 const struct at_work *w)
{
	const struct stop_cost *s = w->now != NULL ? expect_stop(w->now, mode) : NULL;
	uint64_t wait_ns = dev->info.suspend_worst_ns[mode];

	if (mode == HAL_SUSPEND_DRAIN)
		return (struct way){w->left_ns, 0};
	if (wait_ns == 0 && s != NULL)
		wait_ns = s->quiet_ns;
	if (mode == HAL_SUSPEND_KILL)
		return (struct way){wait_ns, w->ran_ns};
	if (s != NULL)
		return (struct way){wait_ns, s->cost_ns};
	return (struct way){
		wait_ns, mode == HAL_SUSPEND_SAVE ? hal_bk_after(wait_ns, wait_ns) : 0};
}

static bool better(const struct way *a, const struct way *b, uint64_t slack_ns)
{
	bool a_in_time = a->wait_ns <= slack_ns, b_in_time = b->wait_ns <= slack_ns;

	if (a_in_time != b_in_time)
		return a_in_time;
	if (slack_ns != HAL_POLICY_NEVER && a_in_time && a->lost_ns != b->lost_ns)
		return a->lost_ns < b->lost_ns;
	return hal_bk_after(a->wait_ns, a->lost_ns) <
	       hal_bk_after(b->wait_ns, b->lost_ns);
}

/* The mode in which v is stopped for something that can wait for slack_ns. */
static uint32_t choose_mode(const struct hal_queue *v, const struct at_work *w,
			    uint64_t slack_ns)
{
	const struct hal_device *dev = v->dev;
	struct way best = way_of(dev, HAL_SUSPEND_DRAIN, w);
	uint32_t chosen = HAL_SUSPEND_DRAIN;

	if (dev->sched.limits.preempt != PREEMPT_BEST) {
		chosen = dev->sched.limits.preempt - PREEMPT_DRAIN;
		return possible(v, chosen) ? chosen : HAL_SUSPEND_DRAIN;
	}
	for (uint32_t mode = HAL_SUSPEND_FOLD; mode <= HAL_SUSPEND_KILL; mode++) {
		struct way way = way_of(dev, mode, w);

		if (way.wait_ns == 0 || !possible(v, mode) ||
		    !better(&way, &best, slack_ns))
			continue;
		best = way;
		chosen = mode;
	}
	return chosen;
}

/* v makes way for q. */
static void stop_for(const struct hal_queue *q, struct hal_queue *v, uint32_t mode,
		     const struct at_work *w, uint64_t slack_ns)
{
	struct way way;
	int err;

	v->sched.preempted_urgency = inherit_urgency(v);
	err = suspend_begin(v, mode, false);
	/* There may be no room for what FOLD or SAVE keeps. */
	if (err != 0 && mode != HAL_SUSPEND_DRAIN) {
		mode = HAL_SUSPEND_DRAIN;
		err = suspend_begin(v, mode, false);
	}
	if (err != 0)
		return;
	way = way_of(v->dev, mode, w);
	suspend_mark_starving(v);
	list_add_before(&v->part->sched.preempted, &v->sched.preempted);
	DECIDED(v->dev, DECIDED_PREEMPT, NULL, v, NULL, mode, q->obj.id, way.wait_ns,
		way.lost_ns, slack_ns);
}

static uint64_t less(uint64_t slack_ns, uint64_t ns)
{
	if (slack_ns == HAL_POLICY_NEVER)
		return slack_ns;
	return slack_ns > ns ? slack_ns - ns : 0;
}

/* f is the first that the device has of its queue. */
static bool is_oldest(const struct inflight *f)
{
	const struct inflight *oldest = f->queue->oldest;

	while (oldest->done)
		oldest = oldest->next;
	return f == oldest;
}

/* May be stopped for q. */
static bool makes_way(const struct hal_queue *q, const struct hal_queue *v)
{
	struct urgency u;

	if (v->state != QUEUE_RUNNING || v->sched.policy_asks)
		return false;
	if (q->dev->sched.limits.preempt_for == PREEMPT_FOR_CLASS)
		return outranks(q, v, NULL);
	/* Not twice at one instant: urgencies change when one is stopped or goes on, and
	 * nothing else would happen in between. */
	if (v->sched.suspend_count > 0 && v->sched.suspend_asked_ns == v->dev->now)
		return false;
	u = inherit_urgency(v);
	return outranks(q, v, &u);
}

/* Of what is stopped, or about to be, DRAIN alone lets the rest run. */
static bool runs_on(const struct hal_queue *q, const struct hal_queue *v)
{
	if (v->state != QUEUE_RUNNING || v->sched.policy_asks)
		return v->sched.suspend_mode == HAL_SUSPEND_DRAIN;
	return !makes_way(q, v) || !possible_inside(v);
}

/* What is in the way of q's next command and runs on whatever is chosen. */
static uint64_t ns_before(const struct hal_queue *q)
{
	const struct list *flights = &q->dev->command.inflight_list;
	const struct inflight *first = NULL;
	uint64_t ns = 0;

	for (const struct list *it = flights->next; it != flights; it = it->next) {
		const struct inflight *f = container_of(it, struct inflight, on_device);

		if (f->queue->part != q->part)
			continue;
		if (first == NULL)
			first = f;
		if (is_oldest(f) && runs_on(q, f->queue))
			ns += at_work(f->queue, first).left_ns;
	}
	return ns;
}

/* A partition runs what it was given one after the other: with a deadline each queue has
 * what those leave of it that run on before it or behind it. */
static void make_way(struct hal_queue *q)
{
	struct hal_partition *part = q->part;
	struct hal_device *dev = part->dev;
	uint64_t slack_ns = q->runnable ? slack_of(q) : HAL_POLICY_NEVER;
	uint64_t rest_ns = slack_ns;
	const struct inflight *first = NULL;

	if (slack_ns != HAL_POLICY_NEVER)
		rest_ns = less(rest_ns, ns_before(q));
	for (struct list *it = dev->command.inflight_list.next;
	     it != &dev->command.inflight_list; it = it->next) {
		const struct inflight *f = container_of(it, struct inflight, on_device);
		struct hal_queue *v = f->queue;
		struct at_work w;
		uint32_t mode;

		if (v->part != part)
			continue;
		if (v == q && !q->runnable)
			return; /* what is behind it is not in its way */
		if (first == NULL)
			first = f;
		if (!makes_way(q, v))
			continue;
		if (v->sched.starving)
			(void)too_long(v);
		w = at_work(v, first);
		mode = choose_mode(v, &w, rest_ns);
		if (mode == HAL_SUSPEND_DRAIN && possible_inside(v))
			rest_ns = less(rest_ns, w.left_ns);
		stop_for(q, v, mode, &w, slack_ns);
	}
}

void preempt_update(struct hal_queue *q)
{
	if (!is_urgent(q)) {
		no_more(q);
		return;
	}
	if (q->dev->sched.limits.preempt_for != PREEMPT_FOR_CLASS)
		let_go_on(q->part);
	relieve(q->part);
	if (q->dev->sched.limits.preempt != PREEMPT_NEVER)
		make_way(q);
}

void preempt_cancel(struct hal_queue *q)
{
	if (!list_empty(&q->sched.preempted))
		resume_preempted(q);
}

void preempt_leave(struct hal_queue *q)
{
	if (q->sched.urgent)
		no_more(q);
	list_del(&q->sched.preempted);
}
