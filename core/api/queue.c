/* SPDX-License-Identifier: Apache-2.0 */
/* queue.c - create, suspend, resume and destroy queues. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/handle.h"
#include "command/callback.h"
#include "command/completions.h"
#include "command/deferred.h"
#include "command/flow.h"
#include "far/far.h"
#include "loop/engine.h"
#include "loop/watch.h"
#include "memory/evict.h"
#include "memory/recolor.h"
#include "observe/trace.h"
#include "replay/journal.h"
#include "sched/inherit.h"
#include "sched/policy.h"
#include "sched/preempt.h"
#include "sched/suspend.h"

/* ---- create ------------------------------------------------------------------------ */

/* Replace fields of d that are 0 by the values in the partition's section of the
 * configuration. */
static void desc_complete(const struct hal_partition *part, struct hal_queue_desc *d)
{
	const struct hal_queue_desc *all = &part->queue_defaults;

	if (d->priority == 0)
		d->priority = all->priority;
	if (d->deadline_ns == 0)
		d->deadline_ns = all->deadline_ns;
	if (d->weight == 0)
		d->weight = all->weight != 0 ? all->weight : 1;
	if (d->service_class == HAL_CLASS_NORMAL)
		d->service_class = all->service_class;
	if (d->budget_permille == 0)
		d->budget_permille = all->budget_permille;
}

/* Check the fields of d that policies use, after desc_complete.  Return 0 or -EINVAL. */
static int policy_terms_check(const struct hal_partition *part,
			      const struct hal_queue_desc *d)
{
	if (d->service_class >= HAL_CLASSES)
		return fail(EINVAL, "hal_queue_desc.service_class %u is not a class",
			    d->service_class);
	if (d->budget_permille > 1000)
		return fail(EINVAL,
			    "hal_queue_desc.budget_permille %u: at most 1000, which is "
			    "all of the device time",
			    d->budget_permille);
	if (d->service_class != HAL_CLASS_BEST_EFFORT || d->deadline_ns == 0)
		return 0;
	return fail(EINVAL,
		    "a queue of partition %u \"%s\" is best effort%s and cannot have a "
		    "deadline: deadline_ns is %llu%s",
		    part->obj.id, part->name,
		    part->queue_defaults.service_class == d->service_class
			    ? " by the partition's section"
			    : "",
		    U64(d->deadline_ns),
		    part->queue_defaults.deadline_ns == d->deadline_ns
			    ? " by the partition's section"
			    : "");
}

/* Check the other fields of d.  Return 0 or -errno. */
static int desc_check(const struct hal_device *dev, const struct hal_queue_desc *d)
{
	static const char *const names[] = {"none", "between", "pending", "inside"};
	int err;

	if (d->flags != 0)
		return fail(EINVAL, "hal_queue_desc.flags 0x%x: no flag is defined",
			    d->flags);
	err = name_check(d->name, sizeof(d->name), "hal_queue_desc.name");
	if (err != 0)
		return err;
	if (d->min_preempt > HAL_PREEMPT_INSIDE)
		return fail(EINVAL,
			    "hal_queue_desc.min_preempt %u is not a preemption level",
			    d->min_preempt);
	if (d->min_preempt > dev->info.preempt)
		return fail(
			ENOTSUP, "preemption \"%s\" requested, but %s has only \"%s\"",
			names[d->min_preempt], dev->name, names[dev->info.preempt & 3]);
	if (d->completions == NULL)
		return 0;
	if (!OBJECT_OK(d->completions, OBJECT_COMPLETIONS))
		return object_bad(d->completions, OBJECT_COMPLETIONS);
	if (d->completions->dev != dev)
		return fail(EINVAL,
			    "hal_queue_desc.completions: the ring belongs to another "
			    "device");
	return 0;
}

/* Initialize q, a queue in part, as d says.  Return 0 or -ENOMEM. */
static int queue_init(struct hal_queue *q, struct hal_partition *part,
		      const struct hal_queue_desc *d)
{
	struct hal_device *dev = part->dev;

	q->dev = dev;
	q->part = part->host;
	q->home = part;
	memcpy(q->name, d->name, sizeof(q->name));
	q->slot_count = dev->queue_slots;
	q->inflight_max = dev->inflight;
	q->default_terms.deadline_ns = d->deadline_ns;
	q->default_terms.priority = d->priority;
	q->issue_terms = q->default_terms;
	q->retire_terms = q->default_terms;
	q->completions = d->completions;
	q->told_as = q;
	q->slow = (d->deadline_ns != 0 ? SLOW_DEADLINE : 0) |
		  (d->completions != NULL ? SLOW_NOTIFIES : 0);
	q->part_word = part->obj.id / 64;
	q->part_bit = UINT64_C(1) << part->obj.id % 64;
	q->message.fn = queue_message;
	q->callback.fn = queue_returned;
	q->slot_mask = q->slot_count - 1;
	q->ring_limit = q->slot_count;
	timeline_init(&q->timeline, dev);
	timeline_init(&q->sched.control, dev);
	q->timeline.queue = q;
	q->sched.control.queue = q;
	list_init(&q->on_partition);
	list_init(&q->todo);
	list_init(&q->busy);
	list_init(&q->deferred);
	list_init(&q->sched.preempted);
	list_init(&q->memory.evict_turn);
	for (uint32_t i = 0; i < q->inflight_max; i++) {
		q->inflight[i].queue = q;
		q->inflight[i].next = &q->inflight[i + 1 < q->inflight_max ? i + 1 : 0];
	}
	q->oldest = q->inflight;
	q->unused = q->inflight;
	q->sched.policy_view.weight = d->weight;
	q->sched.policy_view.service_class = d->service_class;
	q->sched.own_class = d->service_class;
	q->class_flags =
		d->service_class == HAL_CLASS_BEST_EFFORT ? HAL_BK_CMD_BEST_EFFORT : 0;
	q->sched.inherited.rank = UINT64_MAX;
	q->sched.inherited.deadline_ns = UINT64_MAX;
	q->sched.policy_view.budget_permille = d->budget_permille;
	/* A record never wraps: one that starts in the last slot continues in extra
	 * slots after the ring. */
	q->slots = malloc((q->slot_count + RECORD_SLOTS_MAX - 1) * sizeof(struct record));
	if (q->slots == NULL)
		return fail(ENOMEM, "no memory for a queue of %u slots", q->slot_count);
	return 0;
}

static void queue_free(struct hal_queue *q)
{
	account_fini(&q->observe.account);
	free(q->slots);
	q->slots = NULL;
	free(q->fault);
	object_free(OBJECT_QUEUE, q);
}

/* Return the priority of q for the device, which knows no classes.  A class comes before
 * a priority: latency-critical queues have at least 1, best effort has at most 0.  Best
 * effort is not lowered further, because a more urgent queue may wait for it, and the
 * device cannot raise it then. */
static int32_t device_priority(const struct hal_queue *q)
{
	int32_t priority = q->default_terms.priority;

	if (q->sched.own_class == HAL_CLASS_LATENCY && priority < 1)
		return 1;
	if (q->sched.own_class == HAL_CLASS_BEST_EFFORT && priority > 0)
		return 0;
	return priority;
}

/* A queue that is being created. */
struct create {
	struct hal_queue *q;
	bool made; /* the backend has it: queue_create was called on the calling thread */
};

/* Have the backend make the queue. */
static int make(struct hal_device *dev, void *arg)
{
	struct create *c = arg;
	struct hal_queue *q = c->q;
	int err = dev->table->cold.queue_create(dev->bk, q->home->bk, device_priority(q),
						&q->bk);

	c->made = err == 0;
	return err;
}

/* Enter a queue into its partition, the policy and the journal, and into the backend
 * unless it is there.  Engine only. */
static int enter(struct hal_device *dev, struct create *c)
{
	struct hal_queue *q = c->q;
	struct hal_partition *part = q->home;
	int err = device_alive(dev);

	if (err != 0)
		return err;
	q->obj.id = dev->next_queue_id;
	q->sched.policy_view.id = q->obj.id;
	err = policy_attach(q);
	if (err != 0)
		return err;
	if (!c->made)
		err = make(dev, c);
	if (err != 0) {
		policy_detach(q);
		return err;
	}
	dev->next_queue_id++;
	JOURNAL(dev, JOURNAL_QUEUE, q->obj.id, part->desc.index,
		(uint32_t)q->default_terms.priority, q->default_terms.deadline_ns,
		q->sched.policy_view.weight, q->sched.own_class,
		q->sched.policy_view.budget_permille);
	atomic_store(&q->open, q->completions != NULL ? QUEUE_OPEN_TELLS : QUEUE_OPEN);
	q->slow |= trace_shows(dev, part) ? SLOW_TRACE : 0;
	list_add_before(&part->queues, &q->on_partition);
	policy_class(q->part, q->sched.policy_view.service_class);
	part->queue_count++;
	recolor_enter(q);
	trace_queue(dev, q);
	return 0;
}

/* Do as enter.  If that fails, the backend no longer has the queue. */
static int create(struct hal_device *dev, void *arg)
{
	struct create *c = arg;
	int err = enter(dev, c);

	if (err != 0 && c->made)
		(void)dev->table->cold.queue_destroy(dev->bk, c->q->bk);
	return err;
}

/* Make a queue with the backend on this thread, if the backend allows that, and then have
 * the engine enter it. */
static int create_queue(struct hal_device *dev, struct hal_queue *q)
{
	struct create c = {.q = q};
	int err = 0;

	if (device_queue_beside(dev)) {
		/* The partition is not destroyed meanwhile. */
		pthread_rwlock_rdlock(&dev->shape);
		err = device_alive(dev);
		if (err == 0)
			err = device_beside(dev, HAL_BK_BESIDE_QUEUE, make, &c);
		pthread_rwlock_unlock(&dev->shape);
	}
	if (err != 0)
		return err;
	pthread_rwlock_wrlock(&dev->shape);
	err = engine_call(dev, create, &c);
	pthread_rwlock_unlock(&dev->shape);
	return err;
}

/* Invalidate a queue in a forked child.  hal_submit checks only .open, and the queue's
 * timelines are handles, too. */
static void forked(void *object)
{
	struct hal_queue *q = object;

	atomic_store(&q->open, 0);
	object_forked(&q->timeline.obj);
	object_forked(&q->sched.control.obj);
}

int hal_queue_create(struct hal_partition *part, const struct hal_queue_desc *desc,
		     struct hal_queue **out)
{
	struct hal_queue_desc d;
	struct hal_device *dev;
	struct hal_queue *q;
	int err;

	if (!OBJECT_OK(part, OBJECT_PARTITION))
		return FAR_OR_BAD(part, OBJECT_PARTITION,
				  far_queue_create(part, desc, out));
	if (out == NULL)
		return fail(EINVAL, "hal_queue_create: queue is NULL");
	dev = part->dev;
	err = import_struct(&d, sizeof(d), offsetof(struct hal_queue_desc, weight), desc,
			    "hal_queue_desc");
	if (err == 0)
		err = desc_check(dev, &d);
	if (err == 0) {
		desc_complete(part, &d);
		err = policy_terms_check(part, &d);
	}
	if (err != 0)
		return err;
	object_on_fork(OBJECT_QUEUE, forked);
	q = object_alloc(OBJECT_QUEUE,
			 sizeof(*q) + dev->inflight * sizeof(q->inflight[0]));
	if (q == NULL)
		return -ENOMEM;
	err = queue_init(q, part, &d);
	if (err == 0)
		err = create_queue(dev, q);
	if (err != 0) {
		queue_free(q);
		return err;
	}
	if (q->completions != NULL)
		atomic_fetch_add(&q->completions->queues, 1);
	*out = q;
	return 0;
}

/* ---- destroy ----------------------------------------------------------------------- */

/* Return whether q may be destroyed with submissions that have not completed.  The
 * application must have suspended it, so that the device runs none of its commands.  This
 * is how an application stops a kernel that does not end. */
static bool may_be_dropped(const struct hal_queue *q)
{
	return q->state == QUEUE_SUSPENDED && !q->sched.policy_stops &&
	       list_empty(&q->sched.preempted) && !q->in_callback;
}

/* Return the number of submitted waits in q for points of q itself.  These
 * waits are destroyed with q, so they do not prevent its destruction. */
static unsigned int own_pending(const struct hal_queue *q)
{
	unsigned int n = 0;
	union cursor c = q->retire;

	while (c.pos != q->accepted) {
		const struct record *r = cursor_record(q, c);

		cursor_step(q, &c, r);
		if (r->cmd.op != REC_WAIT)
			continue;
		record_for_each_point(p, r) n +=
			p->timeline == &q->timeline || p->timeline == &q->sched.control;
	}
	return n;
}

/* Return 0 if q may be destroyed, and close its timelines; else -EBUSY. */
static int destroy_check(struct hal_queue *q)
{
	char text[QUEUE_DESCRIPTION];

	queue_describe(q, text, sizeof(text));
	if (!queue_empty(q) && !may_be_dropped(q))
		return fail(EBUSY, "%s: %llu of its %llu submissions have completed",
			    text, U64(atomic_load(&q->timeline.value)),
			    U64(counter_get(&q->submissions)));
	if (q->state == QUEUE_SUSPENDING)
		return fail(EBUSY, "%s is being suspended", text);
	if (atomic_load(&q->timeline.pending) + atomic_load(&q->sched.control.pending) !=
	    own_pending(q))
		return fail(EBUSY, "%s: submitted work waits for one of its points",
			    text);
	if (!timeline_close(&q->timeline))
		return fail(EBUSY, "%s: a thread waits for one of its points", text);
	if (!timeline_close(&q->sched.control)) {
		timeline_reopen(&q->timeline);
		return fail(EBUSY, "%s: a thread waits for one of its points", text);
	}
	return 0;
}

static int destroy(struct hal_device *dev, void *arg)
{
	struct hal_queue *q = arg;
	struct hal_partition *part = q->home;
	int err = destroy_check(q);

	if (err != 0)
		return err;
	err = dev->table->cold.queue_destroy(dev->bk, q->bk);
	if (err != 0) {
		timeline_reopen(&q->timeline);
		timeline_reopen(&q->sched.control);
		return err;
	}
	if (!queue_empty(q))
		queue_abandon(q);
	deferred_leave(q);
	evict_forget(q);
	inherit_leave(q);
	preempt_leave(q);
	policy_detach(q);
	journal_gone(q);
	atomic_store(&q->open, 0);
	watch_forget(dev, &q->message);
	list_del(&q->todo);
	list_del(&q->busy);
	counter_set(&q->observe.account.submitted, queue_commands(q));
	account_add(&part->observe.past, &q->observe.account);
	timeline_fini(&q->timeline);
	timeline_fini(&q->sched.control);
	object_retire(&q->obj);
	trace_queue_gone(dev, q);
	list_del(&q->on_partition);
	part->queue_count--;
	return 0;
}

int hal_queue_destroy(struct hal_queue *q)
{
	struct hal_device *dev;
	int err;

	if (q == NULL)
		return 0;
	if (!OBJECT_OK(q, OBJECT_QUEUE))
		return FAR_OR_BAD(q, OBJECT_QUEUE, far_queue_destroy(q));
	dev = q->dev;
	pthread_rwlock_wrlock(&dev->shape);
	err = engine_call(dev, destroy, q);
	pthread_rwlock_unlock(&dev->shape);
	if (err != 0)
		return err;
	if (q->completions != NULL)
		atomic_fetch_sub(&q->completions->queues, 1);
	queue_free(q);
	return 0;
}

/* ---- suspend, resume --------------------------------------------------------------- */

struct suspend {
	struct hal_queue *queue;
	uint32_t mode;
	uint64_t count;
};

static int suspend(struct hal_device *dev, void *arg)
{
	struct suspend *s = arg;
	int err = device_alive(dev);

	if (err != 0)
		return err;
	JOURNAL(dev, JOURNAL_SUSPEND, s->queue->obj.id, s->mode);
	err = suspend_ask(s->queue, s->mode & ~HAL_SUSPEND_FINAL,
			  (s->mode & HAL_SUSPEND_FINAL) != 0);
	JOURNAL(dev, JOURNAL_ANSWER, journal_error(err));
	s->count = s->queue->sched.suspend_count;
	return err;
}

int hal_queue_suspend(struct hal_queue *q, uint32_t mode, struct hal_point *quiet)
{
	struct suspend s = {.queue = q, .mode = mode};
	int err;

	if (!OBJECT_OK(q, OBJECT_QUEUE))
		return FAR_OR_BAD(q, OBJECT_QUEUE, far_queue_suspend(q, mode, quiet));
	err = engine_call(q->dev, suspend, &s);
	if (err == 0 && quiet != NULL)
		*quiet = (struct hal_point){&q->sched.control, s.count};
	return err;
}

static int resume(struct hal_device *dev, void *arg)
{
	struct hal_queue *q = arg;
	int err = device_alive(dev);

	if (err != 0)
		return err;
	JOURNAL(dev, JOURNAL_RESUME, q->obj.id);
	err = suspend_end(q);
	JOURNAL(dev, JOURNAL_ANSWER, journal_error(err));
	return err;
}

int hal_queue_resume(struct hal_queue *q)
{
	if (!OBJECT_OK(q, OBJECT_QUEUE))
		return FAR_OR_BAD(q, OBJECT_QUEUE, far_queue_resume(q));
	return engine_call(q->dev, resume, q);
}

int hal_queue_get_fault(const struct hal_queue *q, struct hal_fault_info *fault)
{
	struct hal_fault_info f = HAL_INIT(hal_fault_info);
	const char *text;

	if (!OBJECT_OK(q, OBJECT_QUEUE))
		return FAR_OR_BAD(q, OBJECT_QUEUE, far_queue_get_fault(q, fault));
	if (timeline_error(&q->timeline) != 0) {
		f.status = q->failure.status;
		f.value = q->failure.value;
		f.tag = q->failure.tag;
		f.cmd = q->failure.cmd;
		text = timeline_text(&q->timeline);
		format_text(f.text, sizeof(f.text), "%s",
			    text != NULL ? text : hal_strerror(f.status));
	}
	return export_struct(fault, &f, sizeof(f), offsetof(struct hal_fault_info, text),
			     "hal_fault_info");
}

struct hal_timeline *hal_queue_get_timeline(struct hal_queue *q)
{
	if (!OBJECT_OK(q, OBJECT_QUEUE)) {
		if (OBJECT_IS_FAR(q, OBJECT_QUEUE))
			return far_queue_get_timeline(q);
		(void)object_bad(q, OBJECT_QUEUE);
		return NULL;
	}
	return &q->timeline;
}
