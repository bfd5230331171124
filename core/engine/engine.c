/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine.c - how a device's engine is reached, by whom it is run, and when it sleeps.
 *
 * clock=real: a thread takes turns, looks for a while when there is nothing to do, then
 * sleeps in poll(2) until a letter, an event of the device or a time comes.
 * clock=virtual: whoever has the baton.  The protocol of both is wake.h.
 */
#include "engine/engine.h"

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

#include "engine/callback.h"
#include "engine/flow.h"
#include "util/compiler.h"
#include "util/error.h"
#include "util/fd.h"
#include "util/futex.h"

void engine_init(struct hal_device *dev)
{
	list_init(&dev->partitions);
	list_init(&dev->programs_loaded);
	list_init(&dev->todo);
	list_init(&dev->dirty);
	list_init(&dev->blocked);
	list_init(&dev->flights);
	busy_init(&dev->ran);
	dev->timer_ns = UINT64_MAX;
	dev->alarm_ns = UINT64_MAX;
	dev->hold_ns = UINT64_MAX;
	dev->wake_fd = -1;
	dev->event_fd = -1;
}

/* ---- reaching it ------------------------------------------------------------------- */

static COLD void wake(struct hal_device *dev)
{
	fd_tell(dev->wake_fd);
}

/* Whoever has the baton reads the inbox once more after giving it back, so one try is
 * enough. */
static void nudge(struct hal_device *dev)
{
	if (engine_try(dev))
		engine_leave(dev);
}

void engine_post(struct hal_device *dev, struct letter *l)
{
	bool sleeps = inbox_put(&dev->inbox, l);

	if (dev->virtual_clock)
		nudge(dev);
	else if (UNLIKELY(sleeps))
		wake(dev);
}

void engine_post_quietly(struct hal_device *dev, struct letter *l)
{
	/* A turn begins with the inbox, and an engine that goes to sleep looks there. */
	if (inbox_add(&dev->inbox, l) && dev->virtual_clock)
		nudge(dev);
}

struct call {
	struct letter letter;
	int (*fn)(struct hal_device *dev, void *arg);
	void *arg;
	int result;
	atomic_uint done; /* futex: 1 once it is, 2 while its caller sleeps */
	char text[512];
};

static void answer(struct hal_device *dev, struct letter *l)
{
	struct call *c = container_of(l, struct call, letter);

	c->result = c->fn(dev, c->arg);
	if (c->result < 0)
		format_text(c->text, sizeof(c->text), "%s", hal_last_error());
	dev->acted = true;
	/* The caller may be gone as soon as it sees this: what is woken then is at most
	 * somebody else who looks again. */
	if (atomic_exchange(&c->done, 1) == 2)
		futex_wake(&c->done, 1);
}

/* How long a caller looks for its answer before it sleeps. */
#define CALL_SPINS 512

int engine_call(struct hal_device *dev, int (*fn)(struct hal_device *, void *), void *arg)
{
	struct call c = {.letter = {.fn = answer}, .fn = fn, .arg = arg};
	unsigned int zero = 0;

	if (UNLIKELY(dev->player != NULL))
		return fn(dev, arg); /* who replays is the engine */
	engine_post(dev, &c.letter);
	for (int i = 0; i < CALL_SPINS; i++) {
		if (atomic_load_explicit(&c.done, memory_order_acquire) != 0)
			goto out;
		ck_pr_stall();
	}
	if (atomic_compare_exchange_strong(&c.done, &zero, 2))
		while (atomic_load_explicit(&c.done, memory_order_acquire) == 2)
			futex_wait(&c.done, 2, NULL);
out:
	return c.result < 0 ? fail(c.result, "%s", c.text) : c.result;
}

void engine_read(struct hal_device *dev)
{
	struct letter *l = inbox_take(&dev->inbox);

	while (l != NULL) {
		struct letter *next = l->next; /* its sender's again once it is read */

		l->fn(dev, l);
		l = next;
	}
}

/* ---- the baton --------------------------------------------------------------------- */

static bool baton_take(struct hal_device *dev)
{
	return atomic_load_explicit(&dev->baton, memory_order_relaxed) == 0 &&
	       atomic_exchange(&dev->baton, 1) == 0;
}

/* Whoever has it is not cancelled: what the engine does, a device does for it, or a trace
 * writes may be a cancellation point. */
bool engine_try(struct hal_device *dev)
{
	int cancel;

	if (atomic_load_explicit(&dev->baton, memory_order_relaxed) != 0)
		return false;
	cancel = cancel_hold();
	if (!baton_take(dev)) {
		cancel_release(cancel);
		return false;
	}
	dev->cancel = cancel;
	return true;
}

void engine_leave(struct hal_device *dev)
{
	int cancel = dev->cancel;

	do {
		if (!inbox_empty(&dev->inbox)) {
			device_now(dev);
			engine_read(dev);
			/* A simulated device takes time for what was done to it. */
			device_now(dev);
		}
		atomic_store(&dev->baton, 0);
		/* A letter that came after the look above, from one who found the baton
		 * taken. */
		atomic_thread_fence(memory_order_seq_cst);
	} while (!inbox_empty(&dev->inbox) && baton_take(dev));
	if (UNLIKELY(atomic_load(&dev->lenders) != 0))
		engine_tell_lenders(dev);
	cancel_release(cancel);
}

void engine_tell_lenders(struct hal_device *dev)
{
	atomic_fetch_add(&dev->lend, 1);
	futex_wake(&dev->lend, INT32_MAX);
}

/* At most so long without a look: a thread may be cancelled. */
#define LEND_NS UINT64_C(20000000)

static void lend_wait(struct hal_device *dev, unsigned int look)
{
	const struct timespec until = timespec_of(monotonic_ns() + LEND_NS);

	futex_wait(&dev->lend, look, &until);
}

void engine_lend_sleep(struct hal_device *dev, unsigned int look)
{
	atomic_fetch_add(&dev->lenders, 1);
	/* Given back between the try and this: its giver has seen no lender. */
	if (atomic_load(&dev->baton) != 0)
		lend_wait(dev, look);
	atomic_fetch_sub(&dev->lenders, 1);
}

void engine_callback_sleep(struct hal_device *dev)
{
	unsigned int look;

	atomic_fetch_add(&dev->lenders, 1);
	look = atomic_load(&dev->lend);
	if (atomic_load(&dev->callbacks_begun) != 0)
		lend_wait(dev, look);
	atomic_fetch_sub(&dev->lenders, 1);
}

void engine_enter(struct hal_device *dev)
{
	for (;;) {
		unsigned int look = atomic_load(&dev->lend);

		if (engine_try(dev))
			return;
		engine_lend_sleep(dev, look);
	}
}

/* ---- the thread of clock=real ------------------------------------------------------ */

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

	if (dev->pending > 0 || !list_empty(&dev->blocked)) {
		if (dev->table->hot.next != NULL) {
			uint64_t next = dev->table->hot.next(dev->bk);

			at = next < at ? next : at;
		} else if (dev->event_fd < 0) {
			return 0;
		}
		/* Refused for want of room, though nothing of ours is in it. */
		if (dev->pending == 0)
			return 0;
	}
	if (at == UINT64_MAX)
		return UINT64_MAX;
	return at <= dev->now ? 0 : host_ns + (at - dev->now);
}

static void sleep_until(struct hal_device *dev, uint64_t host_ns)
{
	struct pollfd fds[2] = {
		{.fd = dev->wake_fd, .events = POLLIN},
		{.fd = dev->event_fd, .events = POLLIN}, /* -1 is skipped */
	};
	uint64_t now = monotonic_ns();
	struct timespec t = timespec_of(host_ns > now ? host_ns - now : 0);

	dev->intake |= INTAKE_SLEPT;
	atomic_store_explicit(&dev->now_cached, SUBMIT_ASLEEP, memory_order_relaxed);
	if (inbox_may_sleep(&dev->inbox) && !atomic_load(&dev->stop))
		(void)ppoll(fds, 2, host_ns == UINT64_MAX ? NULL : &t, NULL);
	inbox_awake(&dev->inbox);
	if ((fds[0].revents & POLLIN) != 0)
		fd_silence(dev->wake_fd);
}

/*
 * Looking for a while saves whoever comes then a system call, and the engine two; but
 * only if somebody comes.  So it looks at most as long as a sleep would cost (then it
 * never costs more than twice the best, Karlin et al. 1990), and not at all where that
 * has not been worth it lately: each look in vain halves the next, one that was not makes
 * it twice as long as that took.  Who waits for the end of what the device has is
 * somebody else than who comes when it has nothing, so these are two.
 */
struct patience {
	uint64_t ns, max_ns;
	unsigned int rests;
};

/* Every so often it tries all the same: what was not worth it may be now. */
#define PROBE 32u

static uint64_t patience_now(struct patience *p)
{
	return ++p->rests % PROBE == 0 ? p->max_ns : p->ns;
}

/* It came after so long. */
static void patience_won(struct patience *p, uint64_t ns)
{
	p->ns = ns * 2 < p->max_ns ? ns * 2 : p->max_ns;
}

/* True: something came within the time. */
static bool look_for(struct hal_device *dev, uint64_t from_ns, uint64_t until_ns)
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

static void rest(struct hal_device *dev, struct patience *both)
{
	struct patience *p = &both[dev->pending > 0];
	uint64_t now = monotonic_ns();
	uint64_t until = idle_until(dev, now);
	uint64_t look = now + patience_now(p);

	if (until == 0) {
		/* A device that has to be asked again and again; whoever makes it end
		 * something may need this core. */
		(void)sched_yield();
		return;
	}
	if (until <= look) {
		/* The device is ready before a sleep would have paid. */
		(void)look_for(dev, now, until);
		return;
	}
	if (look_for(dev, now, look)) {
		patience_won(p, monotonic_ns() - now);
		return;
	}
	p->ns /= 2;
	sleep_until(dev, until);
}

static void *engine_main(void *arg)
{
	struct hal_device *dev = arg;
	struct patience both[2] = {{dev->spin_ns, dev->spin_ns, 0},
				   {dev->spin_ns, dev->spin_ns, 0}};

	/* A device's times are not to be late by the usual 50 us. */
	(void)prctl(PR_SET_TIMERSLACK, 1000UL, 0, 0, 0);
	while (!atomic_load(&dev->stop))
		if (!engine_turn(dev, 0, false))
			rest(dev, both);
	engine_read(dev);
	return NULL;
}

int engine_start(struct hal_device *dev)
{
	sigset_t all, old;
	int err;

	if (dev->virtual_clock)
		return 0;
	dev->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (dev->wake_fd < 0)
		return fail(errno, "%s: no eventfd: %s", dev->name, hal_strerror(errno));
	dev->event_fd = dev->table->hot.event_fd(dev->bk);
	if (dev->event_fd < 0)
		dev->event_fd = -1;
	device_now(dev);
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

static void nothing(struct hal_device *dev, struct letter *l)
{
	(void)dev, (void)l;
}

void engine_stop(struct hal_device *dev)
{
	struct letter stop = {.fn = nothing};

	callbacks_stop(dev);
	if (!dev->has_thread) {
		engine_read(dev);
		return;
	}
	atomic_store(&dev->stop, true);
	engine_post(dev, &stop);
	(void)pthread_join(dev->thread, NULL);
	dev->has_thread = false;
	(void)close(dev->wake_fd);
	dev->wake_fd = -1;
}
