/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine.c - the only caller of a device's hot operations and of its policy.
 *
 * A turn: take in what was submitted, give commands to the device while the policy names
 * some, run or look at the device, end what has ended.  Nothing else enters a decision.
 * clock=virtual: turns are taken inside hal_wait and hal_device_poll; clock=real: by the
 * engine's own thread, which sleeps on an eventfd when there is nothing to do.
 */
#include "internal.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define EVENTS 16

/* Cookies of HAL_BK_QUIET: a queue, or a partition with the lowest bit set. */
#define COOKIE_PARTITION UINT64_C(1)

void engine_dirty(struct hal_partition *part)
{
	if (list_empty(&part->dirty))
		list_add_before(&part->dev->dirty, &part->dirty);
}

void engine_now(struct hal_device *dev)
{
	dev->now = dev->backend->table.hot.now(dev->bk);
	atomic_store_explicit(&dev->now_cached, dev->now, memory_order_relaxed);
}

/* ---- giving
 * ------------------------------------------------------------------------------ */

static void command_fill(struct hal_bk_cmd *c, struct record *r)
{
	c->op = r->op;
	c->flags = (r->flags & REC_REPLAYABLE) != 0 ? HAL_CMD_REPLAYABLE : 0;
	switch (r->op) {
	case HAL_OP_LAUNCH:
		c->launch.kernel = r->launch.kernel->bk;
		c->launch.args = r->launch.args;
		c->launch.arg_count = r->arg_count;
		memcpy(c->launch.groups, r->launch.groups, sizeof(c->launch.groups));
		break;
	case HAL_OP_COPY:
		c->copy.dst = r->copy.dst;
		c->copy.src = r->copy.src;
		c->copy.dst_offset = r->copy.dst_offset;
		c->copy.src_offset = r->copy.src_offset;
		c->copy.bytes = r->copy.bytes;
		break;
	case HAL_OP_FILL:
		c->fill.dst = r->fill.dst;
		c->fill.offset = r->fill.offset;
		c->fill.bytes = r->fill.bytes;
		c->fill.pattern = r->pattern;
		break;
	case HAL_OP_TIMESTAMP:
		c->timestamp.dst = r->timestamp.dst;
		c->timestamp.offset = r->timestamp.offset;
		break;
	default:
		break;
	}
}

static void keep_fault(struct hal_queue *q, const char *text)
{
	if (q->fault == NULL && text[0] != '\0')
		q->fault = strdup(text);
}

/* The queue's next command to the device.  -EAGAIN: the device has no room. */
static int give(struct hal_queue *q)
{
	struct hal_device *dev = q->dev;
	struct hal_partition *part = q->part;
	uint32_t i = (uint32_t)q->flight_first + q->flight_count;
	struct flight *f = &q->flights[i < q->flight_max ? i : i - q->flight_max];
	struct record *r = cursor_record(q, q->issue);
	int err;

	command_fill(&f->cmd, r);
	f->cmd.cookie = (uint64_t)(uintptr_t)f;
	err = dev->backend->table.hot.submit(dev->bk, q->bk, &f->cmd);
	if (UNLIKELY(err == -EAGAIN))
		return err;
	f->at = q->issue;
	f->issue_ns = dev->now;
	f->ready_ns = r->submit_ns > q->gate_ns ? r->submit_ns : q->gate_ns;
	f->done = false;
	f->killed = false;
	f->status = 0;
	q->flight_count++;
	cursor_step(q, &q->issue);
	dev->activity++;
	if (UNLIKELY(err != 0)) {
		/* It ends in its turn, behind those that the device has. */
		f->done = true;
		f->status = err;
		f->start_ns = dev->now;
		f->end_ns = dev->now;
		q->halted = true;
		keep_fault(q, hal_last_error());
		queue_retire(q);
		return 0;
	}
	list_add_before(&dev->flights, &f->on_device);
	dev->pending++;
	part->inflight++;
	if (UNLIKELY(dev->trace != NULL))
		trace_depth(dev, part, dev->now);
	return 0;
}

static void serve(struct hal_partition *part)
{
	struct hal_device *dev = part->dev;

	/* A move that needs a quiet partition is under way. */
	if (part->moving.units != 0 && (dev->info.caps & HAL_CAP_RESIZE_LIVE) == 0)
		return;
	while (part->inflight < dev->partition_inflight) {
		struct hal_policy_queue *view =
			dev->policy->pick(dev->policy_state, &part->view, dev->now);
		struct hal_queue *q;
		int err;

		if (view == NULL)
			return;
		q = container_of(view, struct hal_queue, view);
		q->offered = false;
		err = give(q);
		/* When it has all it may have, an end is what makes it go on. */
		if (q->flight_count < q->flight_max)
			queue_advance(q);
		if (UNLIKELY(err == -EAGAIN)) {
			list_del(&part->dirty);
			list_add_before(&dev->blocked, &part->dirty);
			return;
		}
	}
}

static void give_all(struct hal_device *dev)
{
	while (!list_empty(&dev->todo) || !list_empty(&dev->dirty)) {
		while (!list_empty(&dev->todo)) {
			struct hal_queue *q =
				container_of(dev->todo.next, struct hal_queue, todo);

			list_del(&q->todo);
			dev->activity++;
			queue_work(q);
		}
		if (!list_empty(&dev->dirty)) {
			struct hal_partition *part = container_of(
				dev->dirty.next, struct hal_partition, dirty);

			list_del(&part->dirty);
			serve(part);
		}
	}
}

static inline bool may_give(const struct hal_device *dev)
{
	return !list_empty(&dev->todo) || !list_empty(&dev->dirty);
}

static void unblock(struct hal_device *dev)
{
	while (!list_empty(&dev->blocked)) {
		struct list *node = dev->blocked.next;

		list_del(node);
		list_add_before(&dev->dirty, node);
	}
}

/* ---- taking in
 * ---------------------------------------------------------------------------- */

/* Submitted while the engine slept: device time is what it was when it woke. */
static void stamp(struct hal_queue *q)
{
	unsigned int tail = ring_tail(q);

	for (struct cursor c = q->issue; c.pos != tail; cursor_step(q, &c)) {
		struct record *r = cursor_record(q, c);

		if (r->submit_ns == 0)
			r->submit_ns = q->dev->now;
	}
}

void engine_intake(struct hal_device *dev)
{
	struct hal_queue *q, *list = NULL;
	bool slept;

	slept = atomic_load_explicit(&dev->slept, memory_order_relaxed);
	if (UNLIKELY(slept))
		engine_now(dev);
	/* The last to come is in front; turn it around. */
	q = atomic_exchange(&dev->ready, NULL);
	while (q != NULL) {
		struct hal_queue *next = q->ready_next;

		q->ready_next = list;
		list = q;
		q = next;
	}
	while (list != NULL) {
		q = list;
		list = q->ready_next;
		/* From here on a submission announces the queue again; what came before
		 * is seen below. */
		atomic_store(&q->on_ready, 0);
		dev->activity++;
		if (UNLIKELY(slept))
			stamp(q);
		queue_advance(q);
	}
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

static void flight_over(struct flight *f, const struct hal_bk_event *ev)
{
	struct hal_queue *q = f->queue;
	struct hal_device *dev = q->dev;
	struct hal_partition *part = q->part;
	struct account *a = &q->account;
	uint64_t from;

	f->start_ns = ev->start_ns;
	f->end_ns = ev->end_ns;
	from = ev->start_ns > a->busy_until_ns ? ev->start_ns : a->busy_until_ns;
	if (ev->end_ns > from) {
		a->busy_ns += ev->end_ns - from;
		a->busy_until_ns = ev->end_ns;
	}
	a->bytes_read += ev->bytes_read;
	a->bytes_written += ev->bytes_written;
	list_del(&f->on_device);
	if (UNLIKELY(!busy_extend(&part->busy, ev->start_ns, ev->end_ns)))
		busy_insert(&part->busy, ev->start_ns, ev->end_ns, settled(dev, part));
	if (UNLIKELY(!busy_extend(&dev->busy, ev->start_ns, ev->end_ns)))
		busy_insert(&dev->busy, ev->start_ns, ev->end_ns, settled(dev, NULL));
	dev->pending--;
	part->inflight--;
	if (UNLIKELY(dev->trace != NULL))
		trace_depth(dev, part, dev->now);
}

static void command_done(const struct hal_bk_event *ev)
{
	struct flight *f = cookie_pointer(ev->cookie);
	struct hal_queue *q = f->queue;
	const struct record *r = cursor_record(q, f->at);

	flight_over(f, ev);
	f->status = ev->status;
	if (UNLIKELY(ev->status == -ECANCELED && q->state == QUEUE_SUSPENDING &&
		     q->suspend_mode == HAL_SUSPEND_KILL)) {
		f->killed = true;
		if (ev->end_ns > ev->start_ns) {
			q->account.replayed++;
			q->account.replayed_ns += ev->end_ns - ev->start_ns;
			trace_command(q->dev, f, record_name(r), r->submit_ns);
		}
	} else {
		f->done = true;
		if (UNLIKELY(q->dev->trace != NULL))
			trace_command(q->dev, f, record_name(r), r->submit_ns);
		if (UNLIKELY(ev->status != 0)) {
			q->halted = true;
			keep_fault(q, ev->fault);
		}
		queue_retire(q);
	}
	/* Held back by the core alone: quiet once the device has nothing of it. */
	if (UNLIKELY(q->state == QUEUE_SUSPENDING && !q->bk_suspended &&
		     q->flight_count == 0))
		engine_quiet(q);
	queue_advance(q);
	engine_dirty(q->part);
}

static void take_event(struct hal_device *dev, const struct hal_bk_event *ev)
{
	dev->activity++;
	if (LIKELY(ev->kind == HAL_BK_DONE)) {
		command_done(ev);
		return;
	}
	dev->pending--;
	if ((ev->cookie & COOKIE_PARTITION) != 0)
		partition_moved(cookie_pointer(ev->cookie & ~COOKIE_PARTITION),
				ev->status);
	else
		engine_quiet(cookie_pointer(ev->cookie));
}

/* The device does not answer any more: all it has is lost. */
static void device_lost(struct hal_device *dev)
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
		take_event(dev, &ev);
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

bool engine_step(struct hal_device *dev, uint64_t until_ns)
{
	struct hal_bk_event ev[EVENTS];
	uint64_t before = dev->activity;
	int n;

	if (!dev->virtual_clock)
		engine_now(dev);
	if (atomic_load_explicit(&dev->ready, memory_order_relaxed) != NULL)
		engine_intake(dev);
	if (!dev->virtual_clock)
		atomic_store_explicit(&dev->slept, false, memory_order_relaxed);
	if (UNLIKELY(!list_empty(&dev->blocked)))
		unblock(dev);
	if (may_give(dev))
		give_all(dev);
	if (dev->pending == 0)
		goto out;
	n = dev->backend->table.hot.poll(dev->bk, until_ns, ev, EVENTS);
	engine_now(dev);
	if (UNLIKELY(n < 0)) {
		device_lost(dev);
		goto out;
	}
	for (int i = 0; i < n; i++)
		take_event(dev, &ev[i]);
	if (n > 0) {
		if (UNLIKELY(!list_empty(&dev->blocked)))
			unblock(dev);
		if (may_give(dev))
			give_all(dev);
	}
out:
	if (UNLIKELY(!list_empty(&dev->graves)))
		grave_sweep(dev);
	return dev->activity != before;
}

int engine_resize(struct hal_partition *part, const struct hal_bk_partition_desc *desc)
{
	struct hal_device *dev = part->dev;
	int err;

	part->moving = *desc;
	err = dev->backend->table.hot.resize(dev->bk, part->bk, &part->moving,
					     (uint64_t)(uintptr_t)part |
						     COOKIE_PARTITION);
	if (err != 0) {
		memset(&part->moving, 0, sizeof(part->moving));
		return err;
	}
	dev->pending++;
	part->resize_count++;
	return 0;
}

/* ---- the thread of clock=real
 * ---------------------------------------------------------------------- */

void engine_wake(struct hal_device *dev)
{
	uint64_t one = 1;

	/* One of those who see it asleep is enough. */
	if (atomic_exchange(&dev->sleeping, 0) == 0)
		return;
	while (write(dev->wake_fd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
}

void engine_kick(struct hal_device *dev)
{
	if (dev->virtual_clock)
		return;
	atomic_store(&dev->kick, 1);
	if (atomic_load(&dev->sleeping) != 0)
		engine_wake(dev);
}

static bool called(struct hal_device *dev)
{
	return atomic_load(&dev->ready) != NULL || atomic_load(&dev->kick) != 0 ||
	       atomic_load(&dev->stop) != 0;
}

static uint64_t monotonic(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

static void engine_sleep(struct hal_device *dev)
{
	struct pollfd fds[2] = {
		{.fd = dev->wake_fd, .events = POLLIN},
		{.fd = dev->event_fd, .events = POLLIN}, /* -1 is skipped */
	};
	uint64_t count;

	atomic_store(&dev->slept, true);
	atomic_store_explicit(&dev->now_cached, 0, memory_order_relaxed);
	atomic_store(&dev->sleeping, 1);
	/* Whoever comes after this look sees us asleep. */
	if (!called(dev))
		(void)poll(fds, 2, -1);
	atomic_store(&dev->sleeping, 0);
	if ((fds[0].revents & POLLIN) != 0)
		(void)!read(dev->wake_fd, &count, sizeof(count));
}

/* Looks without the lock. */
static void engine_look(struct hal_device *dev)
{
	for (int i = 0; i < 64 && !called(dev); i++)
		ck_pr_stall();
}

static void *engine_main(void *arg)
{
	struct hal_device *dev = arg;
	uint64_t idle_since = 0;

	while (atomic_load(&dev->stop) == 0) {
		bool did, owed, must_ask;

		atomic_store(&dev->kick, 0);
		pthread_mutex_lock(&dev->lock);
		did = engine_step(dev, 0);
		owed = dev->pending > 0 || !list_empty(&dev->blocked);
		must_ask = owed && (dev->event_fd < 0 || dev->pending == 0);
		pthread_mutex_unlock(&dev->lock);
		device_yield(dev);
		if (did) {
			idle_since = 0;
			continue;
		}
		/* A device without an event fd has to be asked again and again; whoever
		 * makes it end something may need this core. */
		if (must_ask) {
			(void)sched_yield();
			continue;
		}
		/* Stay awake for a while: who submits then needs no system call. */
		if (idle_since == 0)
			idle_since = monotonic();
		do {
			engine_look(dev);
		} while (!owed && !called(dev) &&
			 monotonic() - idle_since < dev->spin_ns);
		if (called(dev) || monotonic() - idle_since < dev->spin_ns)
			continue;
		engine_sleep(dev);
		idle_since = 0;
	}
	return NULL;
}

int engine_start(struct hal_device *dev)
{
	sigset_t all, old;
	int err;

	dev->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (dev->wake_fd < 0)
		return fail(errno, "%s: no eventfd: %s", dev->name, hal_strerror(errno));
	dev->event_fd = dev->backend->table.hot.event_fd(dev->bk);
	if (dev->event_fd < 0)
		dev->event_fd = -1;
	engine_now(dev);
	/* Signals are the application's. */
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&dev->thread, NULL, engine_main, dev);
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (err != 0) {
		(void)close(dev->wake_fd);
		dev->wake_fd = -1;
		return fail(err, "%s: no thread: %s", dev->name, hal_strerror(err));
	}
	(void)pthread_setname_np(dev->thread, "hal-engine");
	dev->has_thread = true;
	return 0;
}

void engine_stop(struct hal_device *dev)
{
	if (!dev->has_thread)
		return;
	atomic_store(&dev->stop, 1);
	if (atomic_load(&dev->sleeping) != 0)
		engine_wake(dev);
	(void)pthread_join(dev->thread, NULL);
	dev->has_thread = false;
	(void)close(dev->wake_fd);
	dev->wake_fd = -1;
}
