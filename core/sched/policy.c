/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy.c - host a sharing policy.
 *
 *   runnable queue --> .sched.sole       alone in its partition: served without asking
 *                  --> .sched.waiting    list in order of arrival; the watchdog uses it
 *                      + .sched.order    heap of keys, if the policy orders by keys
 *                      + enqueue         if the policy keeps its own order
 *
 * The policy may call its host from inside any of its callbacks, even about the queue
 * that the callback is for.  A stop requested from inside a callback begins later, at the
 * top level of the engine turn.
 */
#include "sched/policy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "loop/engine.h"
#include "sched/beside.h"
#include "sched/decisions.h"
#include "sched/expect.h"
#include "sched/urgency.h"
#include "sched/watchdog.h"
#include "util/error.h"

static struct hal_queue *queue_of(struct hal_policy_queue *view)
{
	return container_of(view, struct hal_queue, sched.policy_view);
}

/* ---- runnable queues ------------------------------------------------------------ */

/* Update what the policy sees of runnable queue q and of its next command. */
static ALWAYS_INLINE void update_view(struct hal_queue *q)
{
	struct hal_policy_queue *v = &q->sched.policy_view;
	const struct record *r = q->next;
	uint64_t submit_ns = q->slots[q->issue.pos & q->slot_mask].submit_ns;
	uint64_t now = q->dev->now;

	if (submit_ns > now)
		submit_ns = now; /* SUBMIT_ASLEEP: not known yet */
	v->runnable_ns = now;
	v->served_ns = counter_get(&q->observe.account.busy_ns);
	v->completed = counter_get(&q->observe.account.completed);
	v->running = q->inflight_count;
	v->head.submit_ns = submit_ns;
	v->head.deadline_ns = HAL_POLICY_NEVER;
	if (q->issue_terms.deadline_ns != 0 &&
	    q->issue_terms.deadline_ns < UINT64_MAX - submit_ns)
		v->head.deadline_ns = submit_ns + q->issue_terms.deadline_ns;
	v->head.priority = q->issue_terms.priority;
	if (UNLIKELY(inherits(q)))
		inherit_into_view(q);
	v->head.op = r->cmd.op;
	v->head.flags = r->flags & HAL_CMD_REPLAYABLE;
	v->head.work = record_work(r);
	if (UNLIKELY((q->slow & SLOW_EXPECTS) != 0))
		expect_head(q, r);
}

/* Add q, whose view is up to date, to the waiting queues and pass it to the policy. */
static ALWAYS_INLINE void pass_to_policy(struct hal_queue *q)
{
	struct hal_device *dev = q->dev;
	struct hal_partition *part = q->part;
	const struct hal_policy *p = dev->sched.policy;

	list_add_before(&part->sched.waiting, &q->sched.waiting);
	part->sched.enqueued++;
	part->sched.policy_view.runnable++;
	part->sched.policy_view.running = part->command.inflight;
	q->sched.key_kept = false;
	/* A policy that orders by keys always stays in force. */
	if (LIKELY(p->key != NULL)) {
		q->sched.order.key =
			p->key(dev->sched.policy_state, &part->sched.policy_view,
			       &q->sched.policy_view, dev->now);
		heap_add(policy_heap(q), &q->sched.order);
	} else if (policy_in_force(dev) && p->enqueue != NULL) {
		p->enqueue(dev->sched.policy_state, &part->sched.policy_view,
			   &q->sched.policy_view);
	}
}

/* Remove q from the waiting queues. */
static void unlink_waiting(struct hal_queue *q)
{
	struct hal_partition *part = q->part;

	list_take(&q->sched.waiting);
	part->sched.enqueued--;
	part->sched.policy_view.runnable--;
}

/* Pass the queue that was the only runnable one of part to the policy, because another
 * queue is runnable now. */
static NOINLINE void pass_sole(struct hal_partition *part)
{
	struct hal_queue *sole = part->sched.sole;

	part->sched.sole = NULL;
	update_view(sole);
	pass_to_policy(sole);
}

/* Return whether a queue of part has waited for longer than [policy] timeout_ms, which
 * ends a lease. */
static bool has_starving_queue(const struct hal_partition *part)
{
	const struct hal_device *dev = part->dev;

	return part->sched.policy_view.runnable > 0 &&
	       dev->now - watchdog_oldest(part)->sched.policy_view.runnable_ns >
		       dev->sched.limits.starve_ns;
}

void policy_enqueue(struct hal_queue *q)
{
	struct hal_partition *part = q->part;

	if (UNLIKELY(q->sched.preempts))
		preempt_wanted(q);
	if (UNLIKELY(policy_alone(part))) {
		part->sched.sole = q;
		return;
	}
	if (UNLIKELY(q->sched.lease > 0 && part->sched.leased == q)) {
		q->sched.lease--;
		if (part->sched.sole == NULL && !has_starving_queue(part)) {
			part->sched.sole = q;
			return;
		}
	}
	if (UNLIKELY(part->sched.sole != NULL))
		pass_sole(part);
	update_view(q);
	pass_to_policy(q);
}

/* Return whether other queues may be preempted for q.  If [policy] preempt_for is not
 * class, the answer depends on q's submissions, so any queue may preempt. */
static bool preempts(const struct hal_queue *q)
{
	return q->sched.policy_view.service_class == HAL_CLASS_LATENCY ||
	       q->dev->sched.limits.preempt_for != PREEMPT_FOR_CLASS;
}

void policy_set_class(struct hal_queue *q, uint32_t service_class)
{
	policy_class(q->part, service_class);
	q->sched.policy_view.service_class = (uint16_t)service_class;
	q->sched.preempts = preempts(q);
	if (service_class != HAL_CLASS_NORMAL)
		q->slow |= SLOW_POLICY | SLOW_EXPECTS;
}

void policy_dequeue(struct hal_queue *q, enum hal_policy_why why)
{
	unlink_waiting(q);
	if (q->part->sched.held && q->part->sched.policy_view.runnable == 0)
		watchdog_unhold(q->part);
	policy_take_back(q, why);
}

void queue_withdraw(struct hal_queue *q, enum hal_policy_why why)
{
	if (!q->runnable)
		return;
	q->runnable = false;
	if (q->sched.urgent)
		queue_todo(q);
	if (q->part->sched.sole == q)
		q->part->sched.sole = NULL;
	else
		policy_dequeue(q, why);
}

/* Return the node in the list of waiting queues of part before which q belongs: that of
 * the first queue that became runnable after q, or the end of the list. */
static struct list *first_after(struct hal_partition *part, const struct hal_queue *q)
{
	struct list *node = part->sched.waiting.next;

	while (node != &part->sched.waiting &&
	       container_of(node, struct hal_queue, sched.waiting)
			       ->sched.policy_view.runnable_ns <
		       q->sched.policy_view.runnable_ns)
		node = node->next;
	return node;
}

void policy_put_back(struct hal_queue *q)
{
	struct hal_partition *part = q->part;
	const struct hal_policy *p = q->dev->sched.policy;

	if (part->sched.sole != NULL)
		pass_sole(part);
	if (!policy_in_force(q->dev) || p->key == NULL) {
		update_view(q);
		pass_to_policy(q);
		return;
	}
	/* Keep q's key and its place in order of arrival.  The policy has already agreed
	 * to serve this command. */
	q->sched.key_kept = true;
	part->sched.policy_view.running = part->command.inflight;
	list_add_before(first_after(part, q), &q->sched.waiting);
	part->sched.enqueued++;
	part->sched.policy_view.runnable++;
	heap_put_back(policy_heap(q), &q->sched.order);
}

/* ---- choosing the next queue ---------------------------------------------------- */

/* Return the queue that the policy's pick chooses, or NULL if pick chose none for now. */
static NOINLINE struct hal_queue *ask_policy(struct hal_partition *part)
{
	struct hal_device *dev = part->dev;
	struct hal_policy_order o = {.until_ns = HAL_POLICY_NEVER};
	struct hal_policy_queue *v;
	struct hal_queue *q;

	dev->sched.picking = true;
	v = dev->sched.policy->pick(dev->sched.policy_state, &part->sched.policy_view,
				    dev->now, &o);
	dev->sched.picking = false;
	if (UNLIKELY(!policy_in_force(dev))) /* pick made one invalid request too many */
		return watchdog_oldest(part);
	if (v == NULL)
		return watchdog_no_choice(part, o.until_ns);
	q = queue_of(v);
	/* Reading q is safe even if it was destroyed: the memory of queues stays
	 * allocated. */
	if (!OBJECT_OK(q, OBJECT_QUEUE) || q->part != part || !q->runnable ||
	    part->sched.sole == q)
		return watchdog_overrule(
			part, &dev->sched.faults.invalid,
			"the policy chose a queue that is not runnable in the partition");
	q->sched.lease = o.commands;
	part->sched.leased = q;
	return q;
}

/* Ask the policy to confirm that the queue of n is next.  Return false if the policy
 * raised the queue's key instead. */
static ALWAYS_INLINE bool confirm_turn(struct hal_partition *part, struct heap_node *n)
{
	struct hal_device *dev = part->dev;
	struct hal_queue *q = container_of(n, struct hal_queue, sched.order);
	uint64_t key =
		dev->sched.policy->turn(dev->sched.policy_state, &part->sched.policy_view,
					&q->sched.policy_view, n->key, dev->now);

	if (LIKELY(key <= n->key))
		return true;
	heap_take(policy_heap(q), n);
	n->key = key;
	heap_add(policy_heap(q), n);
	return false;
}

/* Return the first queue of order that the policy confirms.  Return NULL if the first key
 * is a time yet to come, and lower *held to that time if it is earlier. */
static NOINLINE struct heap_node *confirm_first(struct hal_partition *part,
						const struct heap *order, uint64_t *held)
{
	const struct hal_policy *p = part->dev->sched.policy;
	uint64_t now = (p->flags & HAL_POLICY_TIMES) != 0 ? part->dev->now : UINT64_MAX;
	/* Let each queue answer twice at most, so that answers in a cycle end. */
	uint32_t turns = 2 * part->sched.policy_view.runnable;

	for (;;) {
		struct heap_node *n = heap_first(order);

		if (container_of(n, struct hal_queue, sched.order)->sched.key_kept)
			return n;
		if (n->key > now) {
			*held = n->key < *held ? n->key : *held;
			return NULL;
		}
		if (p->turn == NULL || turns-- == 0 || confirm_turn(part, n))
			return n;
	}
}

/* Return the queue of one class to serve next; NULL and *held as for confirm_first. */
static ALWAYS_INLINE struct heap_node *
first_of_class(struct hal_partition *part, const struct heap *order, uint64_t *held)
{
	const struct hal_policy *p = part->dev->sched.policy;

	if (p->turn == NULL && (p->flags & HAL_POLICY_TIMES) == 0)
		return heap_first(order);
	return confirm_first(part, order, held);
}

/* Return the queue to serve next, of the most urgent class that has one. */
static NOINLINE struct heap_node *first_of_classes(struct hal_partition *part,
						   uint64_t *held)
{
	static const uint8_t classes[HAL_CLASSES] = {HAL_CLASS_LATENCY, HAL_CLASS_NORMAL,
						     HAL_CLASS_BEST_EFFORT};
	struct heap_node *n = NULL;

	for (size_t i = 0; n == NULL && i < HAL_CLASSES; i++) {
		const struct heap *order = &part->sched.order[classes[i]];

		if (!heap_empty(order))
			n = first_of_class(part, order, held);
	}
	return n;
}

/* Pick a queue of part by the keys that the policy has given. */
static ALWAYS_INLINE struct hal_queue *pick_by_key(struct hal_partition *part)
{
	uint64_t held = HAL_POLICY_NEVER;
	struct heap_node *n;
	struct hal_queue *q;

	if (LIKELY(!part->sched.classes))
		n = first_of_class(part, &part->sched.order[HAL_CLASS_NORMAL], &held);
	else
		n = first_of_classes(part, &held);
	if (n == NULL)
		return watchdog_no_choice(part, held);
	q = container_of(n, struct hal_queue, sched.order);
	heap_take(policy_heap(q), n);
	return q;
}

/* Pick a queue of part by the policy's pick.  Pick the queue that has waited longest
 * instead if the policy is out of force, or if that wait is longer than [policy]
 * timeout_ms. */
static NOINLINE struct hal_queue *pick_by_policy(struct hal_partition *part,
						 uint64_t waited)
{
	struct hal_device *dev = part->dev;

	if (!policy_in_force(dev))
		return watchdog_oldest(part);
	if (waited > dev->sched.limits.starve_ns)
		return watchdog_overrule(part, &dev->sched.faults.starved,
					 "the policy passed over a queue for longer than "
					 "policy.timeout_ms");
	return ask_policy(part);
}

/* Do the rare work after q was picked: end its partition's hold and record the
 * decision. */
static NOINLINE void picked_slow(struct hal_queue *q, uint64_t waited)
{
	struct hal_partition *part = q->part;
	const struct hal_device *dev = part->dev;
	enum decision_kind kind = DECIDED_OLDEST;

	part->sched.deferred = false;
	if (part->sched.held)
		watchdog_unhold(part);
	if (!part->sched.watched)
		return;
	if (dev->sched.policy->key != NULL && waited <= dev->sched.limits.starve_ns)
		kind = DECIDED_KEY;
	else if (policy_in_force(dev))
		kind = DECIDED_POLICY;
	decided_turn(q, kind, waited);
}

/* Take q, which was picked, from the queues that wait. */
static ALWAYS_INLINE struct hal_queue *take_picked(struct hal_partition *part,
						   struct hal_queue *q, uint64_t waited)
{
	struct hal_device *dev = part->dev;

	unlink_waiting(q);
	/* Policies read .running of other partitions, too.  q's command is about to be
	 * submitted; if the device does not accept it, policy_put_back corrects this. */
	part->sched.policy_view.running = part->command.inflight + 1;
	if (UNLIKELY(part->sched.unusual != 0))
		picked_slow(q, waited);
	counter_max(&dev->sched.faults.longest_wait_ns, waited);
	return q;
}

/* Return how long the queue of part has waited that has waited longest. */
static ALWAYS_INLINE uint64_t longest_wait(struct hal_partition *part)
{
	return part->dev->now - watchdog_oldest(part)->sched.policy_view.runnable_ns;
}

struct hal_queue *policy_pick(struct hal_partition *part)
{
	struct hal_device *dev = part->dev;
	struct hal_queue *q;
	uint64_t waited;

	if (UNLIKELY(part->sched.policy_view.runnable == 0))
		return NULL;
	waited = longest_wait(part);
	part->sched.policy_view.running = part->command.inflight;
	if (LIKELY(dev->sched.policy->key != NULL &&
		   waited <= dev->sched.limits.starve_ns))
		q = pick_by_key(part);
	else
		q = pick_by_policy(part, waited);
	return q != NULL ? take_picked(part, q, waited) : NULL;
}

struct hal_queue *policy_pick_urgent(struct hal_partition *part)
{
	const struct heap *order = &part->sched.order[HAL_CLASS_LATENCY];
	struct hal_device *dev = part->dev;
	uint64_t held = HAL_POLICY_NEVER;
	struct heap_node *n;

	if (dev->sched.policy->key == NULL || !policy_in_force(dev) || heap_empty(order))
		return NULL;
	part->sched.policy_view.running = part->command.inflight;
	n = first_of_class(part, order, &held);
	if (n == NULL)
		return NULL;
	heap_take(&part->sched.order[HAL_CLASS_LATENCY], n);
	return take_picked(part, container_of(n, struct hal_queue, sched.order),
			   longest_wait(part));
}

/* ---- notifying the policy ------------------------------------------------------- */

/* Report to the policy that f of q ended as ev says, after it ran ran_ns. */
static ALWAYS_INLINE void report_end(struct hal_queue *q, const struct hal_bk_event *ev,
				     uint64_t ran_ns)
{
	struct hal_device *dev = q->dev;
	struct hal_policy_queue *v = &q->sched.policy_view;
	const struct hal_policy_end end = {
		.ran_ns = ran_ns,
		.bytes = ev->bytes_read + ev->bytes_written,
		.status = ev->status,
		.now_ns = dev->now,
		.end_ns = ev->end_ns,
	};

	v->served_ns = counter_get(&q->observe.account.busy_ns);
	v->completed = counter_get(&q->observe.account.completed);
	v->running = q->inflight_count - q->sched.frozen;
	if (LIKELY(ev->status != -EINTR))
		v->running--; /* the command is still counted in flight */
	dev->sched.policy->ended(dev->sched.policy_state, &q->part->sched.policy_view, v,
				 &end);
}

void policy_ended(struct hal_queue *q, const struct inflight *f,
		  const struct hal_bk_event *ev, uint64_t before_ns)
{
	struct hal_device *dev = q->dev;
	const struct hal_policy *p = dev->sched.policy;
	uint64_t ran_ns = ev->end_ns > ev->start_ns ? ev->end_ns - ev->start_ns : 0;

	if (UNLIKELY(dev->observe.profile != NULL &&
		     (p->flags & HAL_POLICY_EXPECTS) != 0))
		beside_learn(q, f, ev);
	if ((q->slow & SLOW_EXPECTS) != 0 && LIKELY(ev->status == 0))
		expect_learn(q, f, ev->bytes_read + ev->bytes_written,
			     ran_ns + before_ns);
	q->part->sched.policy_view.running = q->part->command.inflight;
	if (p->ended != NULL && LIKELY(policy_in_force(dev)))
		report_end(q, ev, ran_ns);
}

void policy_changed(struct hal_partition *part, struct hal_queue *q)
{
	struct hal_device *dev = part->dev;

	part->sched.policy_view.units = part->desc.units;
	if (policy_in_force(dev) && dev->sched.policy != NULL &&
	    dev->sched.policy->changed != NULL)
		dev->sched.policy->changed(dev->sched.policy_state,
					   &part->sched.policy_view,
					   q != NULL ? &q->sched.policy_view : NULL);
	partition_runnable(part);
}

/* End all holds: ask the policy again for all partitions. */
static void retry_all(struct hal_device *dev)
{
	dev->sched.hold_ns = UINT64_MAX;
	hal_list_for_each (it, &dev->space.partitions)
		partition_runnable(container_of(it, struct hal_partition, on_device));
}

void policy_idle(struct hal_device *dev)
{
	dev->work &= (uint8_t)~WORK_HELD;
	retry_all(dev);
}

void policy_timers(struct hal_device *dev)
{
	if (dev->sched.alarm_ns <= dev->now) {
		dev->sched.alarm_ns = UINT64_MAX;
		dev->acted = true;
		hal_list_for_each (it, &dev->space.partitions) {
			struct hal_partition *p =
				container_of(it, struct hal_partition, on_device);

			p->sched.policy_view.running = p->command.inflight;
		}
		if (policy_in_force(dev) && dev->sched.policy->alarm != NULL)
			dev->sched.policy->alarm(dev->sched.policy_state, dev->now);
		retry_all(dev);
	}
	if (dev->sched.hold_ns <= dev->now) {
		dev->acted = true;
		retry_all(dev);
	}
	if (dev->sched.stops_ns <= dev->now)
		watchdog_check_stops(dev);
}

/* ---- installing a policy -------------------------------------------------------- */

/* Return whether the policy is asked even about a queue without competitors. */
static bool wants_lone_queues(const struct hal_partition *part)
{
	return (part->dev->sched.policy->flags & HAL_POLICY_ALWAYS) != 0;
}

void policy_partition_init(struct hal_partition *part)
{
	list_init(&part->sched.waiting);
	part->sched.watched = part->dev->observe.decisions != NULL;
	part->sched.classes = part->dev->sched.limits.preempt_for != PREEMPT_FOR_CLASS;
	part->sched.enqueued = (uint32_t)wants_lone_queues(part) + part->sched.classes;
}

void policy_class(struct hal_partition *part, uint32_t service_class)
{
	if (part->sched.classes || service_class == HAL_CLASS_NORMAL)
		return;
	part->sched.classes = true;
	part->sched.enqueued++;
}

/* Clear the policy's own fields of q. */
static void reset_own(struct hal_queue *q)
{
	q->sched.policy_view.next = NULL;
	q->sched.policy_view.prev = NULL;
	for (size_t i = 0; i < ARRAY_LENGTH(q->sched.policy_view.own); i++)
		q->sched.policy_view.own[i] = 0;
}

/* Reset what the policy sees of q, and the slow-path flags that depend on the policy. */
static void reset_view(struct hal_queue *q)
{
	const struct hal_policy *p = q->dev->sched.policy;

	q->sched.preempts = preempts(q);
	q->slow &= ~(SLOW_POLICY | SLOW_EXPECTS);
	if ((p->flags & HAL_POLICY_EXPECTS) != 0 ||
	    q->sched.policy_view.service_class != HAL_CLASS_NORMAL || q->sched.preempts)
		q->slow |= SLOW_POLICY | SLOW_EXPECTS;
	if (p->ended != NULL)
		q->slow |= SLOW_POLICY;
	q->sched.policy_view.head.expected_ns = HAL_POLICY_NEVER;
	q->sched.policy_view.head.rest_ns = HAL_POLICY_NEVER;
	q->sched.policy_view.head.whole_ns = HAL_POLICY_NEVER;
	q->sched.policy_view.head.expected_bytes = HAL_POLICY_NEVER;
	q->sched.policy_view.head.configuration = 0;
	q->sched.lease = 0;
	q->sched.key_kept = false;
	q->sched.policy_view.served_ns = counter_get(&q->observe.account.busy_ns);
	q->sched.policy_view.completed = counter_get(&q->observe.account.completed);
	q->sched.policy_view.running = q->inflight_count - q->sched.frozen;
}

/* Attach q to the policy.  Return 0, or -errno if the policy refuses it. */
static int attach_to_policy(struct hal_queue *q)
{
	struct hal_device *dev = q->dev;
	int err = 0;

	reset_view(q);
	if (!policy_in_force(dev))
		return 0;
	if (dev->sched.policy->attach != NULL)
		err = dev->sched.policy->attach(dev->sched.policy_state,
						&q->part->sched.policy_view,
						&q->sched.policy_view);
	q->sched.admitted = err == 0;
	return err;
}

/* Return 0 if p enforces the budget of q, else -ENOTSUP.  A budget must not be ignored
 * silently. */
static int budget_check(const struct hal_queue *q, const struct hal_policy *p)
{
	if (q->sched.policy_view.budget_permille == 0 ||
	    (p->flags & HAL_POLICY_BUDGETS) != 0)
		return 0;
	return fail(ENOTSUP,
		    "queue %u of partition %u \"%s\" has a budget of %u thousandths%s, "
		    "but policy %s does not enforce budgets; use policy quota",
		    q->obj.id, q->home->desc.index, q->home->name,
		    q->sched.policy_view.budget_permille,
		    q->home->queue_defaults.budget_permille ==
				    q->sched.policy_view.budget_permille
			    ? " (from the partition's section)"
			    : "",
		    p->name);
}

int policy_attach(struct hal_queue *q)
{
	int err = budget_check(q, q->dev->sched.policy);

	if (err != 0)
		return err;
	reset_own(q);
	return attach_to_policy(q);
}

/* Check the budgets of all queues of dev against p. */
static int budgets_check(const struct hal_device *dev, const struct hal_policy *p)
{
	int err = 0;

	hal_list_for_each (it, &dev->space.partitions) {
		const struct hal_partition *part =
			container_of(it, const struct hal_partition, on_device);

		hal_list_for_each (node, &part->queues) {
			if (err == 0)
				err = budget_check(container_of(node,
								const struct hal_queue,
								on_partition),
						   p);
		}
	}
	return err;
}

void policy_detach(struct hal_queue *q)
{
	struct hal_device *dev = q->dev;

	if (q->part->sched.leased == q)
		q->part->sched.leased = NULL;
	/* Detach even under a policy that is out of force: it may have memory for the
	 * queue. */
	if (q->sched.admitted && dev->sched.policy->detach != NULL)
		dev->sched.policy->detach(dev->sched.policy_state,
					  &q->part->sched.policy_view,
					  &q->sched.policy_view);
	q->sched.admitted = false;
}

/* Take q from the policy that is being replaced, and resume q if the old policy has
 * stopped q. */
static void leave_policy(struct hal_queue *q)
{
	if (q->runnable && q->part->sched.sole != q)
		policy_take_back(q, HAL_POLICY_REPLACED);
	policy_detach(q);
	watchdog_release(q);
	q->sched.policy_stops = false; /* its stop is not reported to the next policy */
}

/* Attach existing queue q to the new policy. */
static void join_policy(struct hal_queue *q)
{
	(void)attach_to_policy(q); /* q stays, even if the policy refuses it */
	if (q->sched.urgent)
		queue_todo(q); /* preempt_update decides whether q is still urgent */
}

/* Enqueue the runnable queues of part again, for a new policy.  Whether a lone queue is
 * passed to the policy may have changed. */
static void refill(struct hal_partition *part)
{
	struct list runnable;

	list_init(&runnable);
	if (part->sched.sole != NULL)
		list_add_before(&runnable, &part->sched.sole->sched.waiting);
	while (!list_empty(&part->sched.waiting)) {
		struct list *node = part->sched.waiting.next;

		list_take(node);
		list_add_before(&runnable, node);
	}
	part->sched.sole = NULL;
	part->sched.classes |= part->dev->sched.limits.preempt_for != PREEMPT_FOR_CLASS;
	part->sched.enqueued = (uint32_t)wants_lone_queues(part) + part->sched.classes;
	part->sched.policy_view.runnable = 0;
	memset(part->sched.order, 0, sizeof(part->sched.order));
	while (!list_empty(&runnable)) {
		struct hal_queue *q =
			container_of(runnable.next, struct hal_queue, sched.waiting);

		list_take(&q->sched.waiting);
		if (part->sched.enqueued == 0 && part->sched.sole == NULL)
			part->sched.sole = q;
		else
			policy_enqueue(q);
	}
	partition_runnable(part);
}

int policy_replace(struct hal_device *dev, const struct hal_policy *p,
		   struct hal_bk_config *cfg, const struct hal_policy_host *host)
{
	bool keeps = p == dev->sched.policy && (p->flags & HAL_POLICY_KEEPS) != 0;
	uint64_t alarm_ns = dev->sched.alarm_ns;
	void *state = NULL;
	int err = budgets_check(dev, p);

	if (err != 0)
		return err;
	dev->sched.policy_host = *host;
	dev->sched.alarm_ns = UINT64_MAX;
	/* Create the new policy first, so that the old one stays if that fails. */
	if (p->create != NULL) {
		err = p->create(dev->sched.services, cfg, &dev->sched.policy_host,
				&state);
		if (err != 0) {
			dev->sched.alarm_ns = alarm_ns;
			return err;
		}
	}
	if (dev->sched.policy != NULL) {
		policy_for_each_queue(dev, leave_policy);
		if (dev->sched.policy->destroy != NULL)
			dev->sched.policy->destroy(dev->sched.policy_state);
	}
	dev->sched.policy = p;
	dev->sched.policy_ns = dev->now;
	dev->sched.policy_state = state;
	dev->sched.policy_cfg = cfg;
	DECIDED(dev, DECIDED_INSTALL, NULL, NULL, p->name, 0);
	dev->sched.hold_ns = UINT64_MAX;
	dev->sched.stops_ns = UINT64_MAX;
	watchdog_reset(&dev->sched.faults);
	hal_list_for_each (it, &dev->space.partitions) {
		struct hal_partition *part =
			container_of(it, struct hal_partition, on_device);

		for (size_t i = 0;
		     !keeps && i < ARRAY_LENGTH(part->sched.policy_view.own); i++)
			part->sched.policy_view.own[i] = 0;
		part->sched.leased = NULL;
		part->sched.held = false;
	}
	dev->sched.held = 0;
	if (!keeps)
		policy_for_each_queue(dev, reset_own);
	policy_for_each_queue(dev, join_policy);
	hal_list_for_each (it, &dev->space.partitions)
		refill(container_of(it, struct hal_partition, on_device));
	return 0;
}

void policy_info(const struct hal_device *dev, struct hal_policy_info *info)
{
	const struct policy_faults *f = &dev->sched.faults;
	const char *reason = atomic_load(&f->reason);

	info->fallback = atomic_load(&f->fallback);
	format_text(info->name, sizeof(info->name), "%s", dev->sched.policy->name);
	info->invalid = counter_get(&f->invalid);
	info->stalls = counter_get(&f->stalls);
	info->starved = counter_get(&f->starved);
	info->longest_wait_ns = counter_get(&f->longest_wait_ns);
	format_text(info->reason, sizeof(info->reason), "%s",
		    reason != NULL ? reason : "");
}

void policy_remove(struct hal_device *dev)
{
	if (dev->sched.policy != NULL && dev->sched.policy->destroy != NULL)
		dev->sched.policy->destroy(dev->sched.policy_state);
	dev->sched.policy = NULL;
}
