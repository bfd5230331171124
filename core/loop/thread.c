/* SPDX-License-Identifier: Apache-2.0 */
/*
 * thread.c - the engine's thread, with clock=real.
 *
 * The thread runs engine turns.  When a turn has found nothing to do, it spins for a
 * while, then sleeps until a message, a device event or a timer.  It sleeps on a futex,
 * or in ppoll(2) if the device has an event fd.
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
#include "loop/watch.h"
#include "util/compiler.h"
#include "util/error.h"
#include "util/fd.h"
#include "util/futex.h"
#include "util/spin.h"

/* Return whether the thread has a message or new records, or is to stop. */
static bool is_needed(struct hal_device *dev)
{
	return !inbox_empty(&dev->inbox) || watch_changed(dev) ||
	       atomic_load_explicit(&dev->stop, memory_order_relaxed);
}

/* Return the host time until which the engine may rest if no message and no device event
 * comes; 0 if it must poll now, UINT64_MAX if there is no limit. */
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
		/* The device was full although no command of this engine is in flight: no
		 * event will announce free space. */
		if (dev->command.pending == 0)
			return 0;
	}
	if (at == UINT64_MAX)
		return UINT64_MAX;
	return at <= dev->now ? 0 : hal_bk_after(host_ns, at - dev->now);
}

/* Longest sleep while callers take turns.  So long may a command that none of them waits
 * for have ended before the engine notices. */
#define NAP_NS UINT64_C(1000000)
/* The thread naps for so many times after the last turn of a caller. */
#define NAPS 16u

/* What the engine's thread knows of turns of callers. */
struct naps {
	unsigned int seen; /* .lent.count, as last read */
	unsigned int left; /* naps until the thread sleeps for longer again */
};

/* Return whether callers have taken turns since this was last asked. */
static bool callers_came(const struct hal_device *dev, struct naps *naps)
{
	unsigned int count = atomic_load_explicit(&dev->lent.count, memory_order_relaxed);

	if (count == naps->seen)
		return false;
	naps->seen = count;
	naps->left = NAPS;
	return true;
}

/* Return the host time at which a sleep of the thread that was to last until host_ns
 * ends, after callers have taken turns, or before they may do so. */
static uint64_t nap_until(struct hal_device *dev, uint64_t host_ns)
{
	const uint64_t nap_end = monotonic_ns() + NAP_NS;

	atomic_store_explicit(&dev->lent.naps, true, memory_order_release);
	return host_ns < nap_end ? host_ns : nap_end;
}

/* Sleep until a sender sets inbox.sleeping to ENGINE_AWAKE (W7 in wake.h), or until
 * host_ns.  Meanwhile callers may be the engine. */
static void sleep_on_futex(struct hal_device *dev, struct naps *naps, uint64_t host_ns)
{
	bool timed = host_ns != UINT64_MAX;
	unsigned int state;

	while ((state = WAKE_LOAD(&dev->inbox.sleeping)) != ENGINE_AWAKE) {
		struct timespec t;

		if (!atomic_load_explicit(&dev->lent.naps, memory_order_relaxed) &&
		    callers_came(dev, naps)) {
			host_ns = nap_until(dev, host_ns);
			timed = true;
		}
		t = timespec_of(host_ns);
		futex_wait(&dev->inbox.sleeping, state, timed ? &t : NULL);
		if (timed && monotonic_ns() >= host_ns)
			return;
	}
}

/* Sleep until the device's event fd or the wake-up fd is readable, or until host_ns. */
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

/* Sleep until a message, a device event or host_ns.  Return the host time at which a
 * sender woke the engine, or the current time if a message made the sleep unnecessary.
 * If no sender woke the engine, return a time before the call. */
static uint64_t sleep_until_woken(struct hal_device *dev, struct naps *naps,
				  uint64_t host_ns)
{
	uint64_t from = monotonic_ns(), woken = from;

	if (watch_end(dev))
		return woken;
	dev->watch.turn += WATCH_BUSY_TURNS;
	dev->intake |= INTAKE_SLEPT;
	dev->lent.timer_ns = dev->timer_ns;
	(void)callers_came(dev, naps);
	if (naps->left > 0) {
		naps->left--;
		host_ns = nap_until(dev, host_ns);
	} else {
		atomic_store_explicit(&dev->lent.naps, false, memory_order_relaxed);
	}
	atomic_store_explicit(&dev->now_cached, SUBMIT_ASLEEP, memory_order_relaxed);
	if (inbox_may_sleep(&dev->inbox) && !atomic_load(&dev->stop)) {
		if (dev->event_fd < 0)
			sleep_on_futex(dev, naps, host_ns);
		else
			sleep_on_fds(dev, host_ns);
		woken = atomic_load_explicit(&dev->woken_ns, memory_order_relaxed);
		if (woken > from)
			wake_up_took(monotonic_ns() - woken);
	}
	while (!inbox_awake(&dev->inbox))
		futex_wait(&dev->inbox.sleeping, ENGINE_RECALLED, NULL);
	return woken;
}

/* Spin until host time until_ns.  Return true as soon as the thread is needed. */
static bool spin_until(struct hal_device *dev, uint64_t from_ns, uint64_t until_ns)
{
	uint64_t now = from_ns;

	while (now < until_ns) {
		for (int i = 0; i < 16; i++) {
			if (is_needed(dev))
				return true;
			ck_pr_stall();
		}
		now = monotonic_ns();
	}
	return false;
}

/* Spin, then sleep, until the engine has work.  Messages come at other intervals while
 * the device works than while it is idle, so each case has its own adaptive spin. */
static void rest(struct hal_device *dev, struct spin *spins, struct naps *naps)
{
	struct spin *p = &spins[dev->command.pending > 0];
	uint64_t now = monotonic_ns();
	uint64_t until = idle_until(dev, now);
	uint64_t spin_end = now + p->ns;
	uint64_t came;

	if (until == 0) {
		/* The device must be polled all the time.  A thread that makes the device
		 * progress may need this core. */
		(void)sched_yield();
		return;
	}
	if (until <= spin_end) {
		/* Too short for a sleep. */
		(void)spin_until(dev, now, until);
		return;
	}
	came = spin_until(dev, now, spin_end) ? monotonic_ns()
					      : sleep_until_woken(dev, naps, until);
	if (UNLIKELY(dev->lent.often == LENT_OFTEN)) {
		/* What came during the sleep was for callers, and came often. */
		dev->lent.often = 0;
		p->ns = dev->spin_ns;
	} else {
		spin_learn(p, came >= now ? came - now : SPIN_UNKNOWN, dev->spin_ns);
	}
}

static void *engine_main(void *arg)
{
	struct hal_device *dev = arg;
	struct spin spins[2] = {{dev->spin_ns}, {dev->spin_ns}};
	struct naps naps = {0};

	/* Let timed sleeps end 1 us late at most, not 50 us as is the default. */
	(void)prctl(PR_SET_TIMERSLACK, 1000UL, 0, 0, 0);
	while (!atomic_load(&dev->stop))
		if (!dev->turn(dev, 0, false)) {
			rest(dev, spins, &naps);
			dev->now_fresh = false;
		}
	(void)watch_end(dev);
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
		return fail(errno, "%s: cannot create an eventfd: %s", dev->name,
			    hal_strerror(errno));
	/* An event of the device would wake the thread although a caller is the engine.
	 */
	if (dev->event_fd >= 0)
		dev->lends = false;
	device_now(dev);
	watch_init(dev);
	dev->turn = turn;
	/* Leave signals to the application's threads. */
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&dev->thread, NULL, engine_main, dev);
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (err != 0) {
		wake_fd_close(dev);
		return fail(err, "%s: cannot start the engine thread: %s", dev->name,
			    hal_strerror(err));
	}
	(void)pthread_setname_np(dev->thread, "hal-engine");
	dev->has_thread = true;
	return 0;
}

/* Handle the message that only wakes the thread. */
static void no_op(struct hal_device *dev, struct message *msg)
{
	(void)dev, (void)msg;
}

void engine_stop(struct hal_device *dev)
{
	struct message stop = {.fn = no_op};

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
