/* SPDX-License-Identifier: Apache-2.0 */
/* queue.c - a queue's life, and its commands in order: what needs no device, what ends.
 */
#include "internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void queue_describe(const struct hal_queue *q, char *text, size_t size)
{
	format_text(text, size, "queue %u of partition %u \"%s\"", q->obj.id,
		    q->part->desc.index, q->part->name);
}

const char *record_name(const struct record *r)
{
	switch (r->op) {
	case HAL_OP_NOP:
		return "nop";
	case HAL_OP_COPY:
		return "copy";
	case HAL_OP_FILL:
		return "fill";
	case HAL_OP_LAUNCH:
		return r->launch.kernel->info.name;
	case HAL_OP_HOST:
		return "host callback";
	case HAL_OP_BARRIER:
		return "barrier";
	case HAL_OP_TIMESTAMP:
		return "timestamp";
	default:
		return "wait or signal";
	}
}

static bool for_device(const struct record *r)
{
	return r->op <= HAL_OP_LAUNCH || r->op == HAL_OP_TIMESTAMP;
}

/* ---- policy
 * ---------------------------------------------------------------------------- */

static void queue_offer(struct hal_queue *q)
{
	struct hal_device *dev = q->dev;

	if (q->offered || q->flight_count == q->flight_max)
		return;
	q->view.ready_ns = dev->now;
	q->view.served_ns = q->account.busy_ns;
	q->offered = true;
	dev->policy->ready(dev->policy_state, &q->part->view, &q->view);
	engine_dirty(q->part);
}

void queue_withdraw(struct hal_queue *q)
{
	if (!q->offered)
		return;
	q->offered = false;
	q->dev->policy->gone(q->dev->policy_state, &q->part->view, &q->view);
}

/* ---- the end of things
 * ------------------------------------------------------------------- */

static void fail_queue(struct hal_queue *q, int err, const char *text)
{
	char full[384];
	size_t n;

	queue_describe(q, full, sizeof(full));
	n = strlen(full);
	format_text(full + n, sizeof(full) - n, ": %s", text);
	q->err = err;
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

static void count_ended(struct hal_device *dev)
{
	/* Written under the lock only. */
	atomic_store_explicit(&dev->ended,
			      atomic_load_explicit(&dev->ended, memory_order_relaxed) + 1,
			      memory_order_relaxed);
}

/* A record that the device has nothing to do with. */
static void core_ended(struct hal_queue *q, const struct record *r)
{
	switch (r->op) {
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

static void flight_ended(struct hal_queue *q, struct flight *f, const struct record *r)
{
	struct account *a = &q->account;
	char text[320];

	count_ended(q->dev);
	/* What the device did behind a failure was for nothing. */
	if (UNLIKELY(q->err != 0)) {
		a->dropped++;
		return;
	}
	if (LIKELY(f->status == 0)) {
		if (a->last_end_ns > f->ready_ns)
			f->ready_ns = a->last_end_ns;
		if (f->start_ns > f->ready_ns)
			a->queueing_ns += f->start_ns - f->ready_ns;
		a->last_end_ns = f->end_ns;
		a->completed++;
		account_latency(a,
				f->end_ns > r->submit_ns ? f->end_ns - r->submit_ns : 0);
		return;
	}
	if (f->status == -ECANCELED)
		a->dropped++;
	else
		a->failed++;
	format_text(text, sizeof(text), "%s \"%s\": %s",
		    r->op == HAL_OP_LAUNCH ? "launch" : "command", record_name(r),
		    q->fault != NULL ? q->fault : hal_strerror(f->status));
	fail_queue(q, f->status, text);
}

static inline void submission_ended(struct hal_queue *q, const struct record *r,
				    uint64_t end_ns)
{
	uint64_t value;

	if (q->err != 0) {
		q->failing = false;
		return;
	}
	if (q->deadline_ns != 0 && end_ns > r->submit_ns &&
	    end_ns - r->submit_ns > q->deadline_ns)
		q->account.deadline_misses++;
	value = atomic_load_explicit(&q->timeline.value, memory_order_relaxed) + 1;
	atomic_store_explicit(&q->timeline.value, value, memory_order_release);
	if (!list_empty(&q->timeline.waiters))
		timeline_tell(&q->timeline, value);
}

/* The record at the retire cursor has ended: its place may be used again. */
static void pop(struct hal_queue *q)
{
	struct record *outer = &q->slots[q->retire.pos & (q->slot_count - 1)];
	struct block *block = outer->op == REC_BLOCK ? outer->block : NULL;
	unsigned int pos = q->retire.pos;

	cursor_step(q, &q->retire);
	if (q->retire.pos == pos)
		return;
	free(block);
	ring_release(q, q->retire.pos);
}

void queue_retire(struct hal_queue *q)
{
	while (!cursor_same(q->retire, q->issue)) {
		struct record *r = cursor_record(q, q->retire);
		uint64_t end_ns = q->dev->now;

		if (!for_device(r)) {
			core_ended(q, r);
		} else if (q->flight_count > 0) {
			struct flight *f = &q->flights[q->flight_first];

			if (!f->done)
				return;
			end_ns = f->end_ns;
			flight_ended(q, f, r);
			if (++q->flight_first == q->flight_max)
				q->flight_first = 0;
			q->flight_count--;
		} else {
			/* Never given to the device, because one before it failed. */
			q->account.dropped++;
			count_ended(q->dev);
		}
		q->dev->activity++;
		if (r->flags & REC_END)
			submission_ended(q, r, end_ns);
		pop(q);
	}
}

/* After a failure: everything that the device does not have. */
static void drop_rest(struct hal_queue *q)
{
	/* Those it has come first, so that ends are told in order. */
	for (uint32_t i = 0; i < q->flight_count; i++)
		if (!q->flights[(q->flight_first + i) % q->flight_max].done)
			return;
	while (queue_next(q) != NULL)
		cursor_step(q, &q->issue);
	queue_retire(q);
}

/* ---- advancing
 * ------------------------------------------------------------------------------ */

static void wait_over(struct waiter *w, int err)
{
	struct hal_queue *q = container_of(w, struct hal_queue, waiter);

	(void)err; /* looked up again when the queue advances */
	q->parked = false;
	if (list_empty(&q->todo))
		list_add_before(&q->dev->todo, &q->todo);
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

void queue_advance(struct hal_queue *q)
{
	for (;;) {
		struct record *r;

		if (q->err != 0) {
			drop_rest(q);
			return;
		}
		if (q->offered || q->parked || q->halted || q->state != QUEUE_RUNNING)
			return;
		r = queue_next(q);
		if (r == NULL)
			return;
		/* Written while the engine slept, but seen after it had looked. */
		if (UNLIKELY(r->submit_ns == 0) && !q->dev->virtual_clock)
			r->submit_ns = q->dev->now;
		if (for_device(r)) {
			queue_offer(q);
			return;
		}
		if (r->op == HAL_OP_HOST) {
			/* After all before it; the engine calls it from its own level. */
			if (cursor_same(q->issue, q->retire) && list_empty(&q->todo))
				list_add_before(&q->dev->todo, &q->todo);
			return;
		}
		if (r->op == REC_WAIT && !wait_passed(q, r)) {
			if (q->err != 0)
				continue;
			return;
		}
		cursor_step(q, &q->issue);
		queue_retire(q);
	}
}

void queue_work(struct hal_queue *q)
{
	struct record *r = queue_next(q);

	if (r != NULL && r->op == HAL_OP_HOST && q->err == 0 && !q->halted &&
	    q->state == QUEUE_RUNNING && cursor_same(q->issue, q->retire)) {
		cursor_step(q, &q->issue);
		callback_run(q->dev, r->host.fn, r->host.user);
		queue_retire(q);
	}
	queue_advance(q);
}

/* ---- create, destroy
 * ---------------------------------------------------------------------------- */

static int desc_check(const struct hal_device *dev, const struct hal_queue_desc *d)
{
	static const char *const names[] = {"none", "between", "pending", "inside"};

	if (d->flags != 0)
		return fail(EINVAL, "hal_queue_desc.flags 0x%x: none are known",
			    d->flags);
	if (d->min_preempt > HAL_PREEMPT_INSIDE)
		return fail(EINVAL,
			    "hal_queue_desc.min_preempt %u is not a preemption level",
			    d->min_preempt);
	if (d->min_preempt > dev->info.preempt)
		return fail(ENOTSUP, "preemption \"%s\" asked for, %s has \"%s\"",
			    names[d->min_preempt], dev->name,
			    names[dev->info.preempt & 3]);
	return 0;
}

static int queue_init(struct hal_queue *q, struct hal_partition *part,
		      const struct hal_queue_desc *d)
{
	struct hal_device *dev = part->dev;

	q->dev = dev;
	q->part = part;
	q->slot_count = dev->queue_slots;
	q->flight_max = (uint8_t)dev->inflight;
	q->deadline_ns = d->deadline_ns;
	q->part_word = part->desc.index / 64;
	q->part_bit = UINT64_C(1) << part->desc.index % 64;
	ck_ring_init(&q->ring, q->slot_count);
	q->ring_limit = q->slot_count;
	timeline_init(&q->timeline, dev);
	timeline_init(&q->control, dev);
	q->timeline.queue = q;
	q->control.queue = q;
	list_init(&q->on_partition);
	list_init(&q->todo);
	list_init(&q->waiter.node);
	for (uint32_t i = 0; i < q->flight_max; i++) {
		q->flights[i].queue = q;
		list_init(&q->flights[i].on_device);
	}
	q->view.priority = d->priority;
	q->view.deadline_ns = d->deadline_ns;
	/* A record that starts in the last slot runs on behind it. */
	q->slots = malloc((q->slot_count + RECORD_SLOTS_MAX - 1) * sizeof(struct record));
	if (q->slots == NULL)
		return fail(ENOMEM, "no memory for a queue of %u slots", q->slot_count);
	return 0;
}

int hal_queue_create(struct hal_partition *part, const struct hal_queue_desc *desc,
		     struct hal_queue **out)
{
	struct hal_queue_desc d;
	struct hal_device *dev;
	struct hal_queue *q;
	int err;

	if (!OBJECT_OK(part, OBJECT_PARTITION))
		return object_bad(part, OBJECT_PARTITION);
	if (out == NULL)
		return fail(EINVAL, "hal_queue_create: queue is NULL");
	dev = part->dev;
	err = import_struct(&d, sizeof(d), sizeof(d), desc, "hal_queue_desc");
	if (err == 0)
		err = desc_check(dev, &d);
	if (err != 0)
		return err;
	q = object_alloc(OBJECT_QUEUE,
			 sizeof(*q) + dev->inflight * sizeof(q->flights[0]));
	if (q == NULL)
		return -ENOMEM;
	err = queue_init(q, part, &d);
	if (err != 0) {
		object_free(OBJECT_QUEUE, q);
		return err;
	}
	device_lock(dev);
	err = dev->backend->table.cold.queue_create(dev->bk, part->bk, d.priority,
						    &q->bk);
	if (err != 0) {
		free(q->slots);
		q->slots = NULL;
		object_free(OBJECT_QUEUE, q);
		goto out;
	}
	q->obj.id = dev->next_queue_id++;
	q->view.id = q->obj.id;
	atomic_store(&q->open, QUEUE_OPEN);
	list_add_before(&part->queues, &q->on_partition);
	part->queue_count++;
	trace_queue(dev, q);
	*out = q;
out:
	device_unlock(dev);
	return err;
}

static int destroy_check(struct hal_queue *q)
{
	char text[96];
	uint64_t last = atomic_load(&q->submissions);

	queue_describe(q, text, sizeof(text));
	if (!queue_idle(q, last))
		return fail(EBUSY, "%s: %llu of its %llu submissions have ended", text,
			    (unsigned long long)atomic_load(&q->timeline.value),
			    (unsigned long long)last);
	if (q->state == QUEUE_SUSPENDING)
		return fail(EBUSY, "%s is being suspended", text);
	if (atomic_load(&q->timeline.pending) + atomic_load(&q->control.pending) != 0)
		return fail(EBUSY, "%s: submitted work waits for points of it", text);
	return 0;
}

int hal_queue_destroy(struct hal_queue *q)
{
	struct hal_device *dev;
	struct hal_partition *part;
	int err;

	if (q == NULL)
		return 0;
	if (!OBJECT_OK(q, OBJECT_QUEUE))
		return object_bad(q, OBJECT_QUEUE);
	err = callback_refuse("hal_queue_destroy");
	if (err != 0)
		return err;
	dev = q->dev;
	part = q->part;
	device_lock(dev);
	engine_intake(dev);
	err = destroy_check(q);
	if (err == 0)
		err = dev->backend->table.cold.queue_destroy(dev->bk, q->bk);
	if (err != 0)
		goto out;
	grave_forget(dev, q);
	atomic_store(&q->open, 0);
	list_del(&q->todo);
	q->account.submitted = queue_commands(q);
	account_add(&part->past, &q->account);
	timeline_fini(&q->timeline);
	timeline_fini(&q->control);
	list_del(&q->on_partition);
	part->queue_count--;
	free(q->slots);
	free(q->fault);
	object_free(OBJECT_QUEUE, q);
out:
	device_unlock(dev);
	return err;
}

int hal_queue_get_stats(struct hal_queue *q, struct hal_stats *stats)
{
	struct account a;
	struct hal_stats s;

	if (!OBJECT_OK(q, OBJECT_QUEUE))
		return object_bad(q, OBJECT_QUEUE);
	device_lock(q->dev);
	a = q->account;
	a.submitted = queue_commands(q);
	account_export(&s, &a, a.busy_ns, q->dev->backend->table.hot.now(q->dev->bk));
	device_unlock(q->dev);
	return export_struct(stats, &s, sizeof(s), offsetof(struct hal_stats, now_ns),
			     "hal_stats");
}

struct hal_timeline *hal_queue_timeline(struct hal_queue *q)
{
	if (!OBJECT_OK(q, OBJECT_QUEUE)) {
		(void)object_bad(q, OBJECT_QUEUE);
		return NULL;
	}
	return &q->timeline;
}
