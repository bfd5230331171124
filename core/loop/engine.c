/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine.c - how a device's engine is reached, and by whom it is run.
 *
 * clock=real: a thread, see thread.c.  clock=virtual: whoever has the engine lock.  The
 * protocol of both is wake.h.
 */
#include "loop/engine.h"

#include <time.h>

#include <ck_pr.h>

#include "util/compiler.h"
#include "util/error.h"
#include "util/fd.h"
#include "util/futex.h"
#include "util/spin.h"

void engine_init(struct hal_device *dev)
{
	list_init(&dev->space.partitions);
	list_init(&dev->programs_loaded);
	list_init(&dev->command.todo);
	list_init(&dev->command.runnable);
	list_init(&dev->command.blocked);
	list_init(&dev->command.inflight_list);
	list_init(&dev->memory.recolors);
	busy_init(&dev->observe.ran);
	dev->timer_ns = UINT64_MAX;
	dev->sched.alarm_ns = UINT64_MAX;
	dev->sched.hold_ns = UINT64_MAX;
	dev->sched.stops_ns = UINT64_MAX;
	dev->wake_fd = -1;
	dev->event_fd = -1;
}

/* ---- reaching it ------------------------------------------------------------------- */

/* Whoever has the engine lock reads the inbox once more after giving it back, so one try
 * is enough. */
static void nudge(struct hal_device *dev)
{
	if (engine_try(dev))
		engine_leave(dev);
}

/* It sleeps on the word that has just been taken away, or on fds (thread.c). */
static COLD void wake_engine(struct hal_device *dev)
{
	atomic_store_explicit(&dev->woken_ns, monotonic_ns(), memory_order_relaxed);
	if (dev->event_fd < 0)
		futex_wake(&dev->inbox.sleeping, 1);
	else
		fd_signal(dev->wake_fd);
}

void engine_post(struct hal_device *dev, struct message *l)
{
	bool sleeps = inbox_put(&dev->inbox, l);

	if (dev->virtual_clock)
		nudge(dev);
	else if (UNLIKELY(sleeps))
		wake_engine(dev);
}

void engine_post_quietly(struct hal_device *dev, struct message *l)
{
	/* A turn begins with the inbox, and an engine that goes to sleep looks there. */
	if (inbox_add(&dev->inbox, l) && dev->virtual_clock)
		nudge(dev);
}

struct call {
	struct message message;
	int (*fn)(struct hal_device *dev, void *arg);
	void *arg;
	int result;
	atomic_uint done; /* futex: 1 once it is, 2 while its caller sleeps */
	char text[512];
};

static void answer_call(struct hal_device *dev, struct message *l)
{
	struct call *c = container_of(l, struct call, message);

	c->result = c->fn(dev, c->arg);
	if (c->result < 0)
		format_text(c->text, sizeof(c->text), "%s", hal_last_error());
	dev->acted = true;
	/* The caller may be gone as soon as it sees this: what is woken then is at most
	 * somebody else who looks again. */
	if (atomic_exchange(&c->done, 1) == 2)
		futex_wake(&c->done, 1);
}

/* It answers at once, or when it has been woken: a caller that slept meanwhile would have
 * to be woken in its turn. */
static bool answered(const struct call *c)
{
	uint64_t until;

	if (LIKELY(atomic_load_explicit(&c->done, memory_order_acquire) != 0))
		return true;
	until = monotonic_ns() + 2 * wake_up_takes();
	do {
		for (int i = 0; i < 16; i++) {
			if (atomic_load_explicit(&c->done, memory_order_acquire) != 0)
				return true;
			ck_pr_stall();
		}
	} while (monotonic_ns() < until);
	return false;
}

int engine_call(struct hal_device *dev, int (*fn)(struct hal_device *, void *), void *arg)
{
	struct call c = {.message = {.fn = answer_call}, .fn = fn, .arg = arg};
	unsigned int zero = 0;

	if (UNLIKELY(dev->replay.player != NULL))
		return fn(dev, arg); /* who replays is the engine */
	engine_post(dev, &c.message);
	if (!answered(&c) && atomic_compare_exchange_strong(&c.done, &zero, 2))
		while (atomic_load_explicit(&c.done, memory_order_acquire) == 2)
			futex_wait(&c.done, 2, NULL);
	return c.result < 0 ? fail(c.result, "%s", c.text) : c.result;
}

int device_beside(struct hal_device *dev, uint64_t flag,
		  int (*fn)(struct hal_device *, void *), const void *arg)
{
	/* What is const to the caller is only read. */
	const union {
		const void *theirs;
		void *ours;
	} a = {.theirs = arg};
	int cancel, err;

	if ((dev->table->beside & flag) == 0)
		return engine_call(dev, fn, a.ours);
	/* A driver may have cancellation points, and does not expect them. */
	cancel = cancel_hold();
	err = fn(dev, a.ours);
	cancel_release(cancel);
	return err;
}

void engine_read(struct hal_device *dev)
{
	struct message *l = inbox_take(&dev->inbox);

	while (l != NULL) {
		struct message *next = l->next; /* its sender's again once it is read */

		l->fn(dev, l);
		l = next;
	}
}

/* ---- the engine lock --------------------------------------------------------------------- */

static bool engine_lock_try(struct hal_device *dev)
{
	return atomic_load_explicit(&dev->engine_lock, memory_order_relaxed) == 0 &&
	       atomic_exchange(&dev->engine_lock, 1) == 0;
}

/* Whoever has it is not cancelled: what the engine does, a device does for it, or a trace
 * writes may be a cancellation point. */
bool engine_try(struct hal_device *dev)
{
	int cancel;

	if (atomic_load_explicit(&dev->engine_lock, memory_order_relaxed) != 0)
		return false;
	cancel = cancel_hold();
	if (!engine_lock_try(dev)) {
		cancel_release(cancel);
		return false;
	}
	dev->cancel_state = cancel;
	return true;
}

void engine_leave(struct hal_device *dev)
{
	int cancel = dev->cancel_state;

	do {
		if (!inbox_empty(&dev->inbox)) {
			device_now(dev);
			engine_read(dev);
			/* A simulated device takes time for what was done to it. */
			device_now(dev);
		}
		atomic_store(&dev->engine_lock, 0);
		/* A message that came after the look above, from one who found the engine
		 * lock taken. */
		atomic_thread_fence(memory_order_seq_cst);
	} while (!inbox_empty(&dev->inbox) && engine_lock_try(dev));
	if (UNLIKELY(atomic_load(&dev->lock_waiters) != 0))
		engine_lock_notify(dev);
	cancel_release(cancel);
}

void engine_lock_notify(struct hal_device *dev)
{
	atomic_fetch_add(&dev->lock_futex, 1);
	futex_wake(&dev->lock_futex, INT32_MAX);
}

/* At most so long without a look: a thread may be cancelled. */
#define LEND_NS UINT64_C(20000000)

static void lock_wait(struct hal_device *dev, unsigned int look)
{
	const struct timespec until = timespec_of(monotonic_ns() + LEND_NS);

	futex_wait(&dev->lock_futex, look, &until);
}

void engine_lock_sleep(struct hal_device *dev, unsigned int look)
{
	atomic_fetch_add(&dev->lock_waiters, 1);
	/* Given back between the try and this: its giver has seen no lender. */
	if (atomic_load(&dev->engine_lock) != 0)
		lock_wait(dev, look);
	atomic_fetch_sub(&dev->lock_waiters, 1);
}

void engine_callback_sleep(struct hal_device *dev)
{
	unsigned int look;

	atomic_fetch_add(&dev->lock_waiters, 1);
	look = atomic_load(&dev->lock_futex);
	if (atomic_load(&dev->command.callbacks_begun) != 0)
		lock_wait(dev, look);
	atomic_fetch_sub(&dev->lock_waiters, 1);
}

void engine_enter(struct hal_device *dev)
{
	for (;;) {
		unsigned int look = atomic_load(&dev->lock_futex);

		if (engine_try(dev))
			return;
		engine_lock_sleep(dev, look);
	}
}
