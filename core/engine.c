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

/* ---- taking in
 * ---------------------------------------------------------------------------- */

/* Submitted while the engine slept: device time is what it was when it woke. */
static void stamp(struct hal_queue *q)
{
	unsigned int tail = ring_tail(q);

	for (union cursor c = q->issue; c.pos != tail;) {
		struct record *r = cursor_record(q, c);

		if (r->submit_ns == 0)
			r->submit_ns = q->dev->now;
		cursor_step(q, &c, r);
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
		dev->acted = true;
		if (UNLIKELY(slept))
			stamp(q);
		queue_advance(q);
	}
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
