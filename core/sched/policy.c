/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy.c - the host of a sharing policy.
 *
 * A partition's runnable queues are in one list as they came, whatever the policy: that
 * is what the net serves from.  For a policy of keys they are in a heap as well.
 *
 * The policy may ask for something from inside any of its calls, also for the very queue
 * that it is told of; so a stop only begins when the turn is at its own level again.
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
	return container_of(view, struct hal_queue, view);
}

/* ---- in and out -------------------------------------------------------------------- */

static ALWAYS_INLINE void see(struct hal_queue *q)
{
	struct hal_policy_queue *v = &q->view;
	const struct record *r = q->next;
	uint64_t submit_ns = q->slots[q->issue.pos & q->ring.mask].submit_ns;
	uint64_t now = q->dev->now;

	if (submit_ns > now)
		submit_ns = now; /* SUBMIT_ASLEEP */
	v->runnable_ns = now;
	v->served_ns = counter_get(&q->account.busy_ns);
	v->completed = counter_get(&q->account.completed);
	v->running = q->flight_count;
	v->head.submit_ns = submit_ns;
	v->head.deadline_ns = HAL_POLICY_NEVER;
	if (q->asked.deadline_ns != 0 && q->asked.deadline_ns < UINT64_MAX - submit_ns)
		v->head.deadline_ns = submit_ns + q->asked.deadline_ns;
	v->head.priority = q->asked.priority;
	if (UNLIKELY(inherits(q)))
		inherit_see(q);
	v->head.op = r->cmd.op;
	v->head.flags = r->flags & HAL_CMD_REPLAYABLE;
	v->head.work = record_work(r);
	if (UNLIKELY((q->slow & SLOW_EXPECTS) != 0))
		expect_head(q, r);
}

static ALWAYS_INLINE void hand(struct hal_queue *q)
{
	struct hal_device *dev = q->dev;
	struct hal_partition *part = q->part;
	const struct hal_policy *p = dev->policy;

	list_add_before(&part->waiting, &q->waiting);
	part->enqueued++;
	part->view.runnable++;
	part->view.running = part->inflight;
	q->kept = false;
	/* Who only orders is always in force. */
	if (LIKELY(p->key != NULL)) {
		q->order.key = p->key(dev->policy_state, &part->view, &q->view, dev->now);
		heap_add(policy_heap(q), &q->order);
	} else if (policy_in_force(dev) && p->enqueue != NULL) {
		p->enqueue(dev->policy_state, &part->view, &q->view);
	}
}

/* Not in its hands any more. */
static void policy_drop(struct hal_queue *q)
{
	struct hal_partition *part = q->part;

	list_take(&q->waiting);
	part->enqueued--;
	part->view.runnable--;
}

/* The one that was alone is so no more. */
static NOINLINE void hand_sole(struct hal_partition *part)
{
	struct hal_queue *sole = part->sole;

	part->sole = NULL;
	see(sole);
	hand(sole);
}

/* Somebody has waited for so long that no lease holds. */
static bool overdue(const struct hal_partition *part)
{
	const struct hal_device *dev = part->dev;

	return part->view.runnable > 0 &&
	       dev->now - watchdog_oldest(part)->view.runnable_ns > dev->limits.starve_ns;
}

void policy_enqueue(struct hal_queue *q)
{
	struct hal_partition *part = q->part;

	if (UNLIKELY(q->preempts))
		preempt_wanted(q);
	if (UNLIKELY(policy_alone(part))) {
		part->sole = q;
		return;
	}
	if (UNLIKELY(q->lease > 0 && part->leased == q)) {
		q->lease--;
		if (part->sole == NULL && !overdue(part)) {
			part->sole = q;
			return;
		}
	}
	if (UNLIKELY(part->sole != NULL))
		hand_sole(part);
	see(q);
	hand(q);
}

/* By deadline or priority anybody does: it depends on the submission. */
static bool preempts(const struct hal_queue *q)
{
	return q->view.service_class == HAL_CLASS_LATENCY ||
	       q->dev->limits.preempt_for != PREEMPT_FOR_CLASS;
}

void policy_class_now(struct hal_queue *q, uint32_t service_class)
{
	policy_class(q->part, service_class);
	q->view.service_class = (uint16_t)service_class;
	q->preempts = preempts(q);
	if (service_class != HAL_CLASS_NORMAL)
		q->slow |= SLOW_POLICY | SLOW_EXPECTS;
}

void policy_dequeue(struct hal_queue *q, enum hal_policy_why why)
{
	policy_drop(q);
	if (q->part->held && q->part->view.runnable == 0)
		watchdog_unhold(q->part);
	policy_take_back(q, why);
}

void queue_withdraw(struct hal_queue *q, enum hal_policy_why why)
{
	if (!q->runnable)
		return;
	q->runnable = false;
	if (q->urgent)
		queue_todo(q);
	if (q->part->sole == q)
		q->part->sole = NULL;
	else
		policy_dequeue(q, why);
}

void policy_put_back(struct hal_queue *q)
{
	struct hal_partition *part = q->part;
	const struct hal_policy *p = q->dev->policy;

	if (part->sole != NULL)
		hand_sole(part);
	if (!policy_in_force(q->dev) || p->key == NULL) {
		see(q);
		hand(q);
		return;
	}
	/* With the key and the place it had; it has had its turn. */
	q->kept = true;
	list_add_before(part->waiting.next, &q->waiting);
	part->enqueued++;
	part->view.runnable++;
	heap_put_back(policy_heap(q), &q->order);
}

/* ---- whose turn -------------------------------------------------------------------- */

/* By what the policy itself keeps; NULL: it names nobody. */
static NOINLINE struct hal_queue *ask(struct hal_partition *part)
{
	struct hal_device *dev = part->dev;
	struct hal_policy_order o = {.until_ns = HAL_POLICY_NEVER};
	struct hal_policy_queue *v;
	struct hal_queue *q;

	dev->picking = true;
	v = dev->policy->pick(dev->policy_state, &part->view, dev->now, &o);
	dev->picking = false;
	if (UNLIKELY(!policy_in_force(
		    dev))) /* it has asked for something wrong once too often
			    */
		return watchdog_oldest(part);
	if (v == NULL)
		return watchdog_nobody_named(part, o.until_ns);
	q = queue_of(v);
	/* Memory of queues is not given back: one that is gone can be told, too. */
	if (!OBJECT_OK(q, OBJECT_QUEUE) || q->part != part || !q->runnable ||
	    part->sole == q)
		return watchdog_overrule(part, &dev->faults.invalid,
					 "it names a queue that is not runnable there");
	q->lease = o.commands;
	part->leased = q;
	return q;
}

/* It is n's turn.  False: its key is another now. */
static ALWAYS_INLINE bool turn_of(struct hal_partition *part, struct heap_node *n)
{
	struct hal_device *dev = part->dev;
	struct hal_queue *q = container_of(n, struct hal_queue, order);
	uint64_t key = dev->policy->turn(dev->policy_state, &part->view, &q->view, n->key,
					 dev->now);

	if (LIKELY(key <= n->key))
		return true;
	heap_take(policy_heap(q), n);
	n->key = key;
	heap_add(policy_heap(q), n);
	return false;
}

/* Who is first of order when those have been asked whose turn it is; NULL: nobody before
 * *held, which is no later than it was. */
static NOINLINE struct heap_node *ask_turns(struct hal_partition *part,
					    const struct heap *order, uint64_t *held)
{
	const struct hal_policy *p = part->dev->policy;
	uint64_t now = (p->flags & HAL_POLICY_TIMES) != 0 ? part->dev->now : UINT64_MAX;
	/* Each may answer twice; after that it goes round in circles. */
	uint32_t turns = 2 * part->view.runnable;

	for (;;) {
		struct heap_node *n = heap_first(order);

		if (container_of(n, struct hal_queue, order)->kept)
			return n;
		if (n->key > now) {
			*held = n->key < *held ? n->key : *held;
			return NULL;
		}
		if (p->turn == NULL || turns-- == 0 || turn_of(part, n))
			return n;
	}
}

/* Who is first of one class. */
static ALWAYS_INLINE struct heap_node *
first_of_class(struct hal_partition *part, const struct heap *order, uint64_t *held)
{
	const struct hal_policy *p = part->dev->policy;

	if (p->turn == NULL && (p->flags & HAL_POLICY_TIMES) == 0)
		return heap_first(order);
	return ask_turns(part, order, held);
}

/* Of all classes: a later one while nobody of those before it may be served. */
static NOINLINE struct heap_node *first_of_classes(struct hal_partition *part,
						   uint64_t *held)
{
	static const uint8_t classes[HAL_CLASSES] = {HAL_CLASS_LATENCY, HAL_CLASS_NORMAL,
						     HAL_CLASS_BEST_EFFORT};
	struct heap_node *n = NULL;

	for (size_t i = 0; n == NULL && i < HAL_CLASSES; i++) {
		const struct heap *order = &part->order[classes[i]];

		if (!heap_empty(order))
			n = first_of_class(part, order, held);
	}
	return n;
}

static ALWAYS_INLINE struct hal_queue *by_key(struct hal_partition *part)
{
	uint64_t held = HAL_POLICY_NEVER;
	struct heap_node *n;
	struct hal_queue *q;

	if (LIKELY(!part->classes))
		n = first_of_class(part, &part->order[HAL_CLASS_NORMAL], &held);
	else
		n = first_of_classes(part, &held);
	if (n == NULL)
		return watchdog_nobody_named(part, held);
	q = container_of(n, struct hal_queue, order);
	heap_take(policy_heap(q), n);
	return q;
}

/* Not by a key, or not as the policy wants. */
static NOINLINE struct hal_queue *pick_otherwise(struct hal_partition *part,
						 uint64_t waited)
{
	struct hal_device *dev = part->dev;

	if (!policy_in_force(dev))
		return watchdog_oldest(part);
	if (waited > dev->limits.starve_ns)
		return watchdog_overrule(part, &dev->faults.starved,
					 "it has passed over a queue for too long");
	return ask(part);
}

/* Not only q. */
static NOINLINE void picked_unusually(struct hal_queue *q, uint64_t waited)
{
	struct hal_partition *part = q->part;
	const struct hal_device *dev = part->dev;
	enum decision_kind kind = DECIDED_OLDEST;

	part->put_off = false;
	if (part->held)
		watchdog_unhold(part);
	if (!part->watched)
		return;
	if (dev->policy->key != NULL && waited <= dev->limits.starve_ns)
		kind = DECIDED_KEY;
	else if (policy_in_force(dev))
		kind = DECIDED_POLICY;
	decided_turn(q, kind, waited);
}

struct hal_queue *policy_pick(struct hal_partition *part)
{
	struct hal_device *dev = part->dev;
	struct hal_queue *q;
	uint64_t waited;

	if (UNLIKELY(part->view.runnable == 0))
		return NULL;
	waited = dev->now - watchdog_oldest(part)->view.runnable_ns;
	part->view.running = part->inflight;
	if (LIKELY(dev->policy->key != NULL && waited <= dev->limits.starve_ns))
		q = by_key(part);
	else
		q = pick_otherwise(part, waited);
	if (q == NULL)
		return NULL;
	policy_drop(q);
	if (UNLIKELY(part->unusual != 0))
		picked_unusually(q, waited);
	counter_max(&dev->faults.longest_wait_ns, waited);
	return q;
}

/* ---- what came of it --------------------------------------------------------------- */

void policy_ended(struct hal_queue *q, const struct flight *f,
		  const struct hal_bk_event *ev, uint64_t before_ns)
{
	struct hal_device *dev = q->dev;
	const struct hal_policy_end end = {
		.ran_ns = ev->end_ns > ev->start_ns ? ev->end_ns - ev->start_ns : 0,
		.bytes = ev->bytes_read + ev->bytes_written,
		.status = ev->status,
		.now_ns = dev->now,
		.end_ns = ev->end_ns,
	};

	if (dev->profile != NULL && (dev->policy->flags & HAL_POLICY_EXPECTS) != 0)
		beside_learn(q, f, ev);
	if ((q->slow & SLOW_EXPECTS) != 0 && ev->status == 0)
		expect_learn(q, f, &end, end.ran_ns + before_ns);
	q->part->view.running = q->part->inflight;
	if (!policy_in_force(dev) || dev->policy->ended == NULL)
		return;
	q->view.served_ns = counter_get(&q->account.busy_ns);
	q->view.completed = counter_get(&q->account.completed);
	q->view.running = q->flight_count - q->frozen;
	if (ev->status != -EINTR)
		q->view.running--; /* f is to be taken out yet */
	dev->policy->ended(dev->policy_state, &q->part->view, &q->view, &end);
}

void policy_changed(struct hal_partition *part, struct hal_queue *q)
{
	struct hal_device *dev = part->dev;

	part->view.units = part->desc.units;
	if (policy_in_force(dev) && dev->policy != NULL && dev->policy->changed != NULL)
		dev->policy->changed(dev->policy_state, &part->view,
				     q != NULL ? &q->view : NULL);
	partition_runnable(part);
}

/* Whoever was held back is asked for again. */
static void ask_again(struct hal_device *dev)
{
	dev->hold_ns = UINT64_MAX;
	hal_list_for_each (it, &dev->partitions)
		partition_runnable(container_of(it, struct hal_partition, on_device));
}

void policy_idle(struct hal_device *dev)
{
	dev->work &= (uint8_t)~WORK_HELD;
	ask_again(dev);
}

void policy_timers(struct hal_device *dev)
{
	if (dev->alarm_ns <= dev->now) {
		dev->alarm_ns = UINT64_MAX;
		dev->acted = true;
		hal_list_for_each (it, &dev->partitions) {
			struct hal_partition *p =
				container_of(it, struct hal_partition, on_device);

			p->view.running = p->inflight;
		}
		if (policy_in_force(dev) && dev->policy->alarm != NULL)
			dev->policy->alarm(dev->policy_state, dev->now);
		ask_again(dev);
	}
	if (dev->hold_ns <= dev->now) {
		dev->acted = true;
		ask_again(dev);
	}
	if (dev->stops_ns <= dev->now)
		watchdog_check_stops(dev);
}

/* ---- which policy ------------------------------------------------------------------ */

static bool asks_always(const struct hal_partition *part)
{
	return (part->dev->policy->flags & HAL_POLICY_ALWAYS) != 0;
}

void policy_partition_init(struct hal_partition *part)
{
	list_init(&part->waiting);
	part->watched = part->dev->decisions != NULL;
	part->classes = part->dev->limits.preempt_for != PREEMPT_FOR_CLASS;
	part->enqueued = (uint32_t)asks_always(part) + part->classes;
}

void policy_class(struct hal_partition *part, uint32_t service_class)
{
	if (part->classes || service_class == HAL_CLASS_NORMAL)
		return;
	part->classes = true;
	part->enqueued++;
}

static void own_reset(struct hal_queue *q)
{
	q->view.next = NULL;
	q->view.prev = NULL;
	for (size_t i = 0; i < ARRAY_LENGTH(q->view.own); i++)
		q->view.own[i] = 0;
}

static void view_reset(struct hal_queue *q)
{
	const struct hal_policy *p = q->dev->policy;

	q->preempts = preempts(q);
	q->slow &= ~(SLOW_POLICY | SLOW_EXPECTS);
	if ((p->flags & HAL_POLICY_EXPECTS) != 0 ||
	    q->view.service_class != HAL_CLASS_NORMAL || q->preempts)
		q->slow |= SLOW_POLICY | SLOW_EXPECTS;
	if (p->ended != NULL)
		q->slow |= SLOW_POLICY;
	q->view.head.expected_ns = HAL_POLICY_NEVER;
	q->view.head.rest_ns = HAL_POLICY_NEVER;
	q->view.head.whole_ns = HAL_POLICY_NEVER;
	q->view.head.expected_bytes = HAL_POLICY_NEVER;
	q->view.head.configuration = 0;
	q->lease = 0;
	q->kept = false;
	q->view.served_ns = counter_get(&q->account.busy_ns);
	q->view.completed = counter_get(&q->account.completed);
	q->view.running = q->flight_count - q->frozen;
}

static int attach(struct hal_queue *q)
{
	struct hal_device *dev = q->dev;
	int err = 0;

	view_reset(q);
	if (!policy_in_force(dev))
		return 0;
	if (dev->policy->attach != NULL)
		err = dev->policy->attach(dev->policy_state, &q->part->view, &q->view);
	q->admitted = err == 0;
	return err;
}

/* What no policy may leave unkept in silence. */
static int budget_check(const struct hal_queue *q, const struct hal_policy *p)
{
	if (q->view.budget_permille == 0 || (p->flags & HAL_POLICY_BUDGETS) != 0)
		return 0;
	return fail(ENOTSUP,
		    "queue %u of partition %u \"%s\" has a budget of %u thousandths%s, "
		    "and policy %s keeps no budgets (quota does)",
		    q->obj.id, q->home->desc.index, q->home->name,
		    q->view.budget_permille,
		    q->home->usual.budget_permille == q->view.budget_permille
			    ? " by the partition's section"
			    : "",
		    p->name);
}

int policy_attach(struct hal_queue *q)
{
	int err = budget_check(q, q->dev->policy);

	if (err != 0)
		return err;
	own_reset(q);
	return attach(q);
}

static int budgets_check(const struct hal_device *dev, const struct hal_policy *p)
{
	int err = 0;

	hal_list_for_each (it, &dev->partitions) {
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

	if (q->part->leased == q)
		q->part->leased = NULL;
	/* Even when it is not in force any more: it may have memory of the queue's. */
	if (q->admitted && dev->policy->detach != NULL)
		dev->policy->detach(dev->policy_state, &q->part->view, &q->view);
	q->admitted = false;
}

static void leave_policy(struct hal_queue *q)
{
	if (q->runnable && q->part->sole != q)
		policy_take_back(q, HAL_POLICY_REPLACED);
	policy_detach(q);
	watchdog_release(q);
	q->policy_stops = false; /* the next one is not told when it is quiet */
}

static void take_over(struct hal_queue *q)
{
	(void)attach(q); /* what is there stays, admitted or not */
	if (q->urgent)
		queue_todo(q); /* it may not be any more */
}

static void refill(struct hal_partition *part)
{
	struct list runnable;

	/* All of it anew: who is alone need not be enqueued, or has to be. */
	list_init(&runnable);
	if (part->sole != NULL)
		list_add_before(&runnable, &part->sole->waiting);
	while (!list_empty(&part->waiting)) {
		struct list *node = part->waiting.next;

		list_take(node);
		list_add_before(&runnable, node);
	}
	part->sole = NULL;
	part->classes |= part->dev->limits.preempt_for != PREEMPT_FOR_CLASS;
	part->enqueued = (uint32_t)asks_always(part) + part->classes;
	part->view.runnable = 0;
	memset(part->order, 0, sizeof(part->order));
	while (!list_empty(&runnable)) {
		struct hal_queue *q =
			container_of(runnable.next, struct hal_queue, waiting);

		list_take(&q->waiting);
		if (part->enqueued == 0 && part->sole == NULL)
			part->sole = q;
		else
			policy_enqueue(q);
	}
	partition_runnable(part);
}

int policy_replace(struct hal_device *dev, const struct hal_policy *p,
		   struct hal_bk_config *cfg, const struct hal_policy_host *host)
{
	bool keeps = p == dev->policy && (p->flags & HAL_POLICY_KEEPS) != 0;
	uint64_t alarm_ns = dev->alarm_ns;
	void *state = NULL;
	int err = budgets_check(dev, p);

	if (err != 0)
		return err;
	dev->policy_host = *host;
	dev->alarm_ns = UINT64_MAX;
	/* The new one first: if it cannot be, all is as it was. */
	if (p->create != NULL) {
		err = p->create(dev->services, cfg, &dev->policy_host, &state);
		if (err != 0) {
			dev->alarm_ns = alarm_ns;
			return err;
		}
	}
	if (dev->policy != NULL) {
		policy_for_each_queue(dev, leave_policy);
		if (dev->policy->destroy != NULL)
			dev->policy->destroy(dev->policy_state);
	}
	dev->policy = p;
	dev->policy_ns = dev->now;
	dev->policy_state = state;
	dev->policy_cfg = cfg;
	DECIDED(dev, DECIDED_INSTALL, NULL, NULL, p->name, 0);
	dev->hold_ns = UINT64_MAX;
	dev->stops_ns = UINT64_MAX;
	watchdog_reset(&dev->faults);
	hal_list_for_each (it, &dev->partitions) {
		struct hal_partition *part =
			container_of(it, struct hal_partition, on_device);

		for (size_t i = 0; !keeps && i < ARRAY_LENGTH(part->view.own); i++)
			part->view.own[i] = 0;
		part->leased = NULL;
		part->held = false;
	}
	dev->held = 0;
	if (!keeps)
		policy_for_each_queue(dev, own_reset);
	policy_for_each_queue(dev, take_over);
	hal_list_for_each (it, &dev->partitions)
		refill(container_of(it, struct hal_partition, on_device));
	return 0;
}

void policy_info(const struct hal_device *dev, struct hal_policy_info *info)
{
	const struct policy_faults *f = &dev->faults;
	const char *reason = atomic_load(&f->reason);

	info->fallback = atomic_load(&f->fallback);
	format_text(info->name, sizeof(info->name), "%s", dev->policy->name);
	info->invalid = counter_get(&f->invalid);
	info->stalls = counter_get(&f->stalls);
	info->starved = counter_get(&f->starved);
	info->longest_wait_ns = counter_get(&f->longest_wait_ns);
	format_text(info->reason, sizeof(info->reason), "%s",
		    reason != NULL ? reason : "");
}

void policy_remove(struct hal_device *dev)
{
	if (dev->policy != NULL && dev->policy->destroy != NULL)
		dev->policy->destroy(dev->policy_state);
	dev->policy = NULL;
}
