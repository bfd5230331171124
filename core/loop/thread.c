/* SPDX-License-Identifier: Apache-2.0 */
/*
 * thread.c - the engine of clock=real: a thread that takes turns, looks for a while when
 * there is nothing to do, then sleeps until a message, an event of the device or a time
 * comes: on a futex, or in ppoll(2) where the device has an fd.
 */
#include "loop/thread.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include <ck_pr.h>

#include "command/record.h"
#include "loop/engine.h"
#include "util/compiler.h"
#include "util/error.h"
#include "util/fd.h"
#include "util/futex.h"
#include "util/spin.h"

static bool called(struct hal_device *dev)
{
	return !inbox_empty(&dev->inbox) ||
	       atomic_load_explicit(&dev->stop, memory_order_relaxed);
}

/* Host time until which nothing is to be done unless something comes; 0: something is to
 * be done now. */
static uint64_t idle_until(struct hal_device *dev, uint64_t host_ns)
{
	uint64_t at = dev->timer_ns;

	if (dev->command.pending > 0 || !list_empty(&dev->command.blocked)) {
		if (dev->table->hot.next != NULL) {
			uint64_t next = dev->table->hot.next(dev->bk);

			at = next < at ? next : at;
		} else if (dev->event_fd < 0) {
			return 0;
		}
		/* Refused for want of room, though nothing of ours is in it. */
		if (dev->command.pending == 0)
			return 0;
	}
	if (at == UINT64_MAX)
		return UINT64_MAX;
	return at <= dev->now ? 0 : hal_bk_after(host_ns, at - dev->now);
}

/* Who wakes it is also who takes .sleeping away (W7): that is what it sleeps on. */
static void sleep_on_word(struct hal_device *dev, uint64_t host_ns)
{
	const struct timespec t = timespec_of(host_ns);

	futex_wait(&dev->inbox.sleeping, 1, host_ns == UINT64_MAX ? NULL : &t);
}

/* The device has an fd: one more for who wakes it. */
static void sleep_on_fds(struct hal_device *dev, uint64_t host_ns)
{
	struct pollfd fds[2] = {
		{.fd = dev->wake_fd, .events = POLLIN},
		{.fd = dev->event_fd, .events = POLLIN},
	};
	uint64_t now = monotonic_ns();
	struct timespec t = timespec_of(host_ns > now ? host_ns - now : 0);

	(void)ppoll(fds, 2, host_ns == UINT64_MAX ? NULL : &t, NULL);
	if ((fds[0].revents & POLLIN) != 0)
		fd_silence(dev->wake_fd);
}

/* When somebody woke it, or had come before it slept; if neither, a time before. */
static uint64_t sleep_until_woken(struct hal_device *dev, uint64_t host_ns)
{
	uint64_t from = monotonic_ns(), woken = from;

	dev->intake |= INTAKE_SLEPT;
	atomic_store_explicit(&dev->now_cached, SUBMIT_ASLEEP, memory_order_relaxed);
	if (inbox_may_sleep(&dev->inbox) && !atomic_load(&dev->stop)) {
		if (dev->event_fd < 0)
			sleep_on_word(dev, host_ns);
		else
			sleep_on_fds(dev, host_ns);
		woken = atomic_load_explicit(&dev->woken_ns, memory_order_relaxed);
		if (woken > from)
			wake_up_took(monotonic_ns() - woken);
	}
	inbox_awake(&dev->inbox);
	return woken;
}

/* True: something came within the time. */
static bool spin_until(struct hal_device *dev, uint64_t from_ns, uint64_t until_ns)
{
	uint64_t now = from_ns;

	while (now < until_ns) {
		for (int i = 0; i < 16; i++) {
			if (called(dev))
				return true;
			ck_pr_stall();
		}
		now = monotonic_ns();
	}
	return false;
}

/* Who waits for the end of what the device has is somebody else than who comes when it
 * has nothing: two spins. */
static void rest(struct hal_device *dev, struct spin *both)
{
	struct spin *p = &both[dev->command.pending > 0];
	uint64_t now = monotonic_ns();
	uint64_t until = idle_until(dev, now);
	uint64_t look = now + p->ns;
	uint64_t came;

	if (until == 0) {
		/* A device that has to be asked again and again; whoever makes it end
		 * something may need this core. */
		(void)sched_yield();
		return;
	}
	if (until <= look) {
		/* The device is ready before a sleep would have paid. */
		(void)spin_until(dev, now, until);
		return;
	}
	came = spin_until(dev, now, look) ? monotonic_ns()
					  : sleep_until_woken(dev, until);
	spin_learn(p, came >= now ? came - now : SPIN_UNKNOWN, dev->spin_ns);
}

static void *engine_main(void *arg)
{
	struct hal_device *dev = arg;
	struct spin both[2] = {{dev->spin_ns}, {dev->spin_ns}};

	/* A device's times are not to be late by the usual 50 us. */
	(void)prctl(PR_SET_TIMERSLACK, 1000UL, 0, 0, 0);
	while (!atomic_load(&dev->stop))
		if (!dev->turn(dev, 0, false))
			rest(dev, both);
	engine_read(dev);
	return NULL;
}

static void wake_fd_close(struct hal_device *dev)
{
	if (dev->wake_fd >= 0)
		(void)close(dev->wake_fd);
	dev->wake_fd = -1;
}

int engine_start(struct hal_device *dev,
		 bool (*turn)(struct hal_device *dev, uint64_t until_ns, bool idle))
{
	sigset_t all, old;
	int err;

	if (dev->virtual_clock)
		return 0;
	dev->event_fd = dev->table->hot.event_fd(dev->bk);
	if (dev->event_fd < 0)
		dev->event_fd = -1;
	else
		dev->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (dev->event_fd >= 0 && dev->wake_fd < 0)
		return fail(errno, "%s: no eventfd: %s", dev->name, hal_strerror(errno));
	device_now(dev);
	dev->turn = turn;
	/* Signals are the application's. */
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&dev->thread, NULL, engine_main, dev);
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (err != 0) {
		wake_fd_close(dev);
		return fail(err, "%s: no thread: %s", dev->name, hal_strerror(err));
	}
	(void)pthread_setname_np(dev->thread, "hal-engine");
	dev->has_thread = true;
	return 0;
}

static void nothing(struct hal_device *dev, struct message *l)
{
	(void)dev, (void)l;
}

void engine_stop(struct hal_device *dev)
{
	struct message stop = {.fn = nothing};

	if (!dev->has_thread) {
		engine_read(dev);
		return;
	}
	atomic_store(&dev->stop, true);
	engine_post(dev, &stop);
	(void)pthread_join(dev->thread, NULL);
	dev->has_thread = false;
	wake_fd_close(dev);
}
