/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine.c - send messages and calls to a device's engine; the engine lock.
 *
 * With clock=real the engine is a thread (thread.c).  With clock=virtual the thread that
 * holds the engine lock is the engine.  In both cases messages go through the inbox of
 * wake.h.
 */
#include "loop/engine.h"

#include <time.h>

#include <ck_pr.h>

#include "command/record.h"
#include "loop/watch.h"
#include "util/caller.h"
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
	list_init(&dev->command.rings);
	list_init(&dev->memory.recolors);
	busy_init(&dev->observe.ran);
	dev->timer_ns = UINT64_MAX;
	dev->sched.alarm_ns = UINT64_MAX;
	dev->sched.hold_ns = UINT64_MAX;
	dev->sched.stops_ns = UINT64_MAX;
	dev->wake_fd = -1;
	dev->event_fd = -1;
}

/* ---- messages ---------------------------------------------------------------------- */

/* Have the inbox read (clock=virtual).  One try is enough: a thread that holds the engine
 * lock checks the inbox once more after releasing it. */
static void read_soon(struct hal_device *dev)
{
	if (engine_try(dev))
		engine_leave(dev);
}

/* Wake the engine's thread, which sleeps on inbox.sleeping or on file descriptors. */
static COLD void wake_engine(struct hal_device *dev, uint64_t since_ns)
{
	atomic_store_explicit(&dev->woken_ns, since_ns, memory_order_relaxed);
	if (dev->event_fd < 0)
		futex_wake(&dev->inbox.sleeping, 1);
	else
		fd_signal(dev->wake_fd);
}

void engine_post(struct hal_device *dev, struct message *msg)
{
	bool sleeps = inbox_put(&dev->inbox, msg);

	if (dev->virtual_clock)
		read_soon(dev);
	else if (UNLIKELY(sleeps))
		wake_engine(dev, monotonic_ns());
}

void engine_post_for(struct hal_device *dev, struct message *msg, uint64_t since_ns)
{
	bool sleeps = inbox_put(&dev->inbox, msg);

	/* With clock=virtual the next thread that becomes the engine reads it. */
	if (sleeps && !dev->virtual_clock)
		wake_engine(dev, since_ns);
}

void engine_post_quietly(struct hal_device *dev, struct message *msg)
{
	/* The engine's thread reads the inbox at the start of each turn and checks it
	 * before it sleeps. */
	bool first = inbox_add(&dev->inbox, msg);

	if (dev->virtual_clock) {
		if (first)
			read_soon(dev);
		return;
	}
	/* A caller that leaves a command to the engine has found that nobody waits for
	 * it.  It checks the inbox after that. */
	atomic_thread_fence(memory_order_seq_cst);
	if (UNLIKELY(engine_owes(dev)) && inbox_rouse(&dev->inbox))
		wake_engine(dev, monotonic_ns());
}

/* ---- calls ------------------------------------------------------------------------- */

/* A call of engine_call.  Lies on the stack of the calling thread. */
struct call {
	struct message message;
	int (*fn)(struct hal_device *dev, void *arg);
	void *arg;
	uint64_t caller; /* its caller_number() */
	int result;
	atomic_uint done; /* futex: 1 once .result is set, 2 while the caller sleeps */
	char text[512];   /* error text of fn */
};

/* Handle the message of a struct call: call its function, then wake its caller. */
static void execute_call(struct hal_device *dev, struct message *msg)
{
	struct call *c = container_of(msg, struct call, message);
	/* With clock=virtual this thread may be in a call of its own. */
	const uint64_t before = caller_act_for(c->caller);

	c->result = c->fn(dev, c->arg);
	(void)caller_act_for(before);
	if (c->result < 0)
		format_text(c->text, sizeof(c->text), "%s", hal_last_error());
	dev->acted = true;
	/* c is gone as soon as its caller sees this.  The wake-up below may then reach
	 * another futex at the same address, whose waiter checks its word again. */
	if (atomic_exchange(&c->done, 1) == 2)
		futex_wake(&c->done, 1);
}

/* Spin for the result of c for twice the time that a wake-up takes.  Return true if it
 * came.  An engine that is awake, or has just been woken, answers within that time, and
 * then no thread has to wake the caller. */
static bool spin_for_result(const struct call *c)
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
	struct call c = {.message = {.fn = execute_call},
			 .fn = fn,
			 .arg = arg,
			 .caller = caller_number()};
	unsigned int zero = 0;

	if (UNLIKELY(dev->replay.player != NULL))
		return fn(dev, arg); /* the replaying thread is the engine */
	engine_post(dev, &c.message);
	if (!spin_for_result(&c) && atomic_compare_exchange_strong(&c.done, &zero, 2))
		while (atomic_load_explicit(&c.done, memory_order_acquire) == 2)
			futex_wait(&c.done, 2, NULL);
	return c.result < 0 ? fail(c.result, "%s", c.text) : c.result;
}

int device_beside(struct hal_device *dev, uint64_t flag,
		  int (*fn)(struct hal_device *, void *), const void *arg)
{
	/* Drops the const of arg for the type of fn, which only reads through it. */
	const union {
		const void *in;
		void *out;
	} a = {.in = arg};
	int cancel, err;

	if ((dev->table->beside & flag) == 0)
		return engine_call(dev, fn, a.out);
	/* A vendor's driver may contain cancellation points, but is not safe to cancel.
	 */
	cancel = cancel_hold();
	err = fn(dev, a.out);
	cancel_release(cancel);
	return err;
}

void engine_read(struct hal_device *dev)
{
	struct message *msg = inbox_take(&dev->inbox);

	/* A message follows the records that its sender has submitted before. */
	if (UNLIKELY(dev->watch.count != 0))
		watch_look(dev);
	while (msg != NULL) {
		struct message *next = msg->next; /* .fn returns msg to its sender */

		msg->fn(dev, msg);
		msg = next;
	}
}

/* ---- the engine lock --------------------------------------------------------------- */

static bool engine_lock_try(struct hal_device *dev)
{
	return atomic_load_explicit(&dev->engine_lock, memory_order_relaxed) == 0 &&
	       atomic_exchange(&dev->engine_lock, 1) == 0;
}

/* The holder of the lock cannot be cancelled, because backends and trace files may
 * contain cancellation points. */
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
			/* Calls to a simulated device may have advanced its time. */
			device_now(dev);
		}
		atomic_store(&dev->engine_lock, 0);
		/* Check the inbox again: a sender that found the lock taken relies on it
		 * (read_soon). */
		atomic_thread_fence(memory_order_seq_cst);
	} while (!inbox_empty(&dev->inbox) && engine_lock_try(dev));
	if (UNLIKELY(atomic_load(&dev->lock_waiters) != 0))
		engine_lock_notify(dev);
	cancel_release(cancel);
}

/* ---- the engine in the hands of a caller --------------------------------------------- */

bool engine_borrow(struct hal_device *dev)
{
	int cancel;

	if (!dev->lends || !inbox_asleep(&dev->inbox))
		return false;
	cancel = cancel_hold();
	if (!inbox_borrow(&dev->inbox)) {
		cancel_release(cancel);
		return false;
	}
	dev->cancel_state = cancel;
	/* A watch must end before the engine sleeps, which costs more than messages. */
	dev->lent.watch_possible = dev->watch.possible;
	dev->watch.possible = false;
	atomic_fetch_add_explicit(&dev->lent.count, 1, memory_order_relaxed);
	return true;
}

/* Prepare the end of a caller's turns. */
static void end_turns(struct hal_device *dev)
{
	if (dev->hot.leave != NULL)
		dev->hot.leave(dev->bk);
	dev->watch.possible = dev->lent.watch_possible;
	dev->now_fresh = false;
	dev->intake |= INTAKE_SLEPT;
}

bool engine_return(struct hal_device *dev, bool owes)
{
	const int cancel = dev->cancel_state;
	unsigned int how;

	end_turns(dev);
	atomic_store_explicit(&dev->now_cached, SUBMIT_ASLEEP, memory_order_relaxed);
	how = inbox_return(&dev->inbox, owes ? ENGINE_OWED : ENGINE_ASLEEP);
	if (UNLIKELY(how == RETURNED_NOT)) {
		dev->cancel_state = cancel;
		dev->watch.possible = false;
		return false;
	}
	if (how == RETURNED_WAKES ||
	    (owes && !atomic_load_explicit(&dev->lent.naps, memory_order_relaxed)))
		futex_wake(&dev->inbox.sleeping, 1);
	cancel_release(cancel);
	return true;
}

void engine_hand_over(struct hal_device *dev)
{
	const int cancel = dev->cancel_state;

	end_turns(dev);
	atomic_store_explicit(&dev->woken_ns, monotonic_ns(), memory_order_relaxed);
	inbox_hand_over(&dev->inbox);
	futex_wake(&dev->inbox.sleeping, 1);
	cancel_release(cancel);
}

void engine_lock_notify(struct hal_device *dev)
{
	atomic_fetch_add(&dev->lock_futex, 1);
	futex_wake(&dev->lock_futex, INT32_MAX);
}

/* Longest sleep on .lock_futex.  A futex wait is no cancellation point, so the caller
 * must return from time to time to notice that it is cancelled. */
#define LOCK_SLEEP_MAX_NS UINT64_C(20000000)

static void lock_futex_wait(struct hal_device *dev, unsigned int seen)
{
	const struct timespec until = timespec_of(monotonic_ns() + LOCK_SLEEP_MAX_NS);

	futex_wait(&dev->lock_futex, seen, &until);
}

void engine_lock_sleep(struct hal_device *dev, unsigned int seen)
{
	atomic_fetch_add(&dev->lock_waiters, 1);
	/* Check the lock itself: a thread that released it before the line above saw no
	 * waiter, so it left .lock_futex unchanged. */
	if (atomic_load(&dev->engine_lock) != 0)
		lock_futex_wait(dev, seen);
	atomic_fetch_sub(&dev->lock_waiters, 1);
}

void engine_callback_sleep(struct hal_device *dev)
{
	unsigned int seen;

	atomic_fetch_add(&dev->lock_waiters, 1);
	seen = atomic_load(&dev->lock_futex);
	if (atomic_load(&dev->command.callbacks_begun) != 0)
		lock_futex_wait(dev, seen);
	atomic_fetch_sub(&dev->lock_waiters, 1);
}

bool engine_message_watch(struct hal_device *dev, unsigned int *seen)
{
	bool idle = false;

	/* A thread that sends a message takes the lock to have it read, and then notifies
	 * waiters.  If it finds the lock taken here, the inbox is not empty below. */
	atomic_fetch_add(&dev->lock_waiters, 1);
	*seen = atomic_load(&dev->lock_futex);
	if (engine_lock_try(dev)) {
		idle = (dev->work & WORK_TODO) == 0;
		atomic_store(&dev->engine_lock, 0);
		atomic_thread_fence(memory_order_seq_cst);
	}
	return idle && inbox_empty(&dev->inbox);
}

void engine_message_sleep(struct hal_device *dev, unsigned int seen)
{
	lock_futex_wait(dev, seen);
}

void engine_message_over(struct hal_device *dev)
{
	atomic_fetch_sub(&dev->lock_waiters, 1);
}

void engine_enter(struct hal_device *dev)
{
	for (;;) {
		unsigned int seen = atomic_load(&dev->lock_futex);

		if (engine_try(dev))
			return;
		engine_lock_sleep(dev, seen);
	}
}
