/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wait.c - hal_wait: wait until points are reached.
 *
 * clock=virtual: the waiting thread takes the engine lock and runs engine turns until the
 * wait is over.  While another thread is the engine, it sleeps and then tries again.
 * clock=real: the waiting thread spins for a while, then sleeps until the engines wake
 * it.
 *
 * With many points, a struct sleeper for each is registered with its timeline, and
 * wait.open counts the points that are not reached.  So each point is tested when the
 * wait begins and when it ends, not once a turn.
 */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <ck_pr.h>

#include "api/handle.h"
#include "command/callback.h"
#include "command/courier.h"
#include "command/flow.h"
#include "command/foreign.h"
#include "command/lend.h"
#include "far/far.h"
#include "loop/engine.h"
#include "util/futex.h"
#include "util/spin.h"

/* Device time that a virtual device runs between two reads of the host's clock, ns. */
#define SLICE_NS        UINT64_C(4096)
#define POINTS_ON_STACK 8
/* Turns between two notifications of threads that wait for the engine lock. */
#define NOTIFY_TURNS 8u

#define PENDING      1 /* points are not reached yet; errors are negative */

/* Bit of wait.busy: the waiting thread sleeps until the count in the other bits is 0. */
#define LEAVING UINT32_C(0x80000000)

struct wait;

/* One point of a wait, registered with the engine of its timeline. */
struct sleeper {
	struct waiter waiter;
	struct message add, drop;
	struct wait *wait;
	uint64_t value;
	atomic_bool ended; /* the point is reached or has failed; not registered now */
};

struct wait {
	const struct hal_point *points;
	uint32_t count;
	bool any;         /* HAL_WAIT_ANY */
	bool device_time; /* .until_ns is in device time, not the host's monotonic time */
	bool idle; /* device time passes to .until_ns, even if a device has no work */
	int64_t until_ns; /* 0: do not wait; HAL_FOREVER: without end */
	/* For notifications from engines; see sleepers_init. */
	struct sleeper *sleepers;  /* one per point */
	sem_t sem;                 /* posted to wake the waiting thread */
	atomic_uint open;          /* points that are not reached */
	atomic_bool over;          /* the wait may be over: test the points */
	_Atomic uint64_t woken_ns; /* host time when .over was last set; 0: never */
	uint64_t asleep_ns;        /* host time when the waiting thread fell asleep */
	/* Futex.  Number of references that engines hold to this wait (sleepers,
	 * messages, a timer), plus the bit LEAVING. */
	atomic_uint busy;
	struct timer timer;
	struct message timer_add, timer_drop;
	atomic_bool timed_out;
};

static int point_failed(const struct hal_point *p, int err)
{
	const char *text = timeline_text(p->timeline);

	return fail(err, "%s", text != NULL ? text : hal_strerror(err));
}

/* Test the points of w.  Return PENDING, or 0 with the result of hal_wait in *out. */
static int test_all_points(const struct wait *w, int *out)
{
	const struct hal_point *failed = NULL;
	int err = 0;

	for (uint32_t i = 0; i < w->count; i++) {
		int state = timeline_test(w->points[i].timeline, w->points[i].value);

		if (state > 0 && w->any) {
			*out = (int)i;
			return 0;
		}
		if (state < 0 && failed == NULL) {
			failed = &w->points[i];
			err = state;
		}
		if (state == 0 && !w->any && failed == NULL)
			return PENDING;
	}
	if (failed != NULL) {
		*out = point_failed(failed, err);
		return 0;
	}
	if (w->any)
		return PENDING;
	*out = 0;
	return 0;
}

/* Do as test_all_points, but faster for the most common case, one point. */
static inline int test_points(const struct wait *w, int *out)
{
	if (LIKELY(w->count == 1)) {
		int state = timeline_test(w->points[0].timeline, w->points[0].value);

		*out = 0;
		if (LIKELY(state >= 0))
			return state > 0 ? 0 : PENDING;
	}
	return test_all_points(w, out);
}

/* Return the first point that is not reached, for an error text. */
static const struct hal_point *first_open(const struct wait *w)
{
	for (uint32_t i = 0; i < w->count; i++)
		if (timeline_test(w->points[i].timeline, w->points[i].value) == 0)
			return &w->points[i];
	return &w->points[0];
}

static void describe_timeline(const struct hal_timeline *t, char *text, size_t size)
{
	if (t->queue != NULL)
		queue_describe(t->queue, text, size);
	else if (t->partition != NULL)
		partition_describe(t->partition, text, size);
	else
		format_text(text, size, "timeline %u", t->obj.id);
}

static COLD int not_reached(const struct wait *w, int err, const char *why)
{
	const struct hal_point *p = first_open(w);
	char text[QUEUE_DESCRIPTION];

	describe_timeline(p->timeline, text, sizeof(text));
	return fail(err, "point %llu of %s: %s; the timeline is at %llu", U64(p->value),
		    text, why, U64(atomic_load(&p->timeline->value)));
}

static COLD int stuck(const struct wait *w)
{
	return not_reached(w, EDEADLK, "no work is left that could reach it");
}

/* ---- notifications from engines ---------------------------------------------------- */

/* Wake the waiting thread, which sleeps on .sem or is about to. */
static void wake_waiter(struct wait *w)
{
	atomic_store_explicit(&w->woken_ns, monotonic_ns(), memory_order_relaxed);
	(void)sem_post(&w->sem);
}

/* Drop one reference of an engine to w, and wake the thread that waits for the last. */
static void sleeper_released(struct wait *w)
{
	if (atomic_fetch_sub(&w->busy, 1) == (LEAVING | 1))
		/* w may be gone: the kernel uses only its address, and a spurious wake-up
		 * is harmless. */
		futex_wake(&w->busy, 1);
}

/* The waiter_fn of a sleeper: its point is reached, or its timeline has failed. */
static void notified(struct waiter *waiter, int err)
{
	struct sleeper *s = container_of(waiter, struct sleeper, waiter);
	struct wait *w = s->wait;
	bool last = atomic_fetch_sub(&w->open, 1) == 1;

	atomic_store_explicit(&s->ended, true, memory_order_relaxed);
	/* One wake-up is enough: the woken thread tests all points. */
	if ((last || w->any || err != 0) && !atomic_exchange(&w->over, true))
		wake_waiter(w);
	sleeper_released(w);
}

/* Register s with its timeline, or notify it at once.  Only by that timeline's engine. */
static void add_sleeper(struct sleeper *s)
{
	struct hal_timeline *t = s->waiter.timeline;
	int state = timeline_test(t, s->value);

	s->waiter.fn = notified;
	if (state == 0)
		timeline_add_waiter(t, &s->waiter, s->value);
	else
		notified(&s->waiter, state < 0 ? state : 0);
}

/* Cancel the registration of s, if it is not notified yet.  Engine only. */
static void drop_sleeper(struct sleeper *s)
{
	if (!s->waiter.waiting)
		return;
	timeline_drop_waiter(&s->waiter);
	sleeper_released(s->wait);
}

static void read_add(struct hal_device *dev, struct message *msg)
{
	(void)dev;
	add_sleeper(container_of(msg, struct sleeper, add));
}

static void read_drop(struct hal_device *dev, struct message *msg)
{
	struct sleeper *s = container_of(msg, struct sleeper, drop);
	struct wait *w = s->wait;

	(void)dev;
	drop_sleeper(s);
	sleeper_released(w);
}

/* Timer function: .until_ns, in device time, has passed. */
static void until_over(struct hal_device *dev, struct timer *t)
{
	struct wait *w = container_of(t, struct wait, timer);

	(void)dev;
	atomic_store(&w->timed_out, true);
	if (!atomic_exchange(&w->over, true))
		wake_waiter(w);
	sleeper_released(w);
}

static void read_timer_add(struct hal_device *dev, struct message *msg)
{
	struct wait *w = container_of(msg, struct wait, timer_add);

	w->timer.fn = until_over;
	timer_set(dev, &w->timer, (uint64_t)w->until_ns);
}

static void read_timer_drop(struct hal_device *dev, struct message *msg)
{
	struct wait *w = container_of(msg, struct wait, timer_drop);

	if (w->timer.set) { /* the timer's reference, then the message's */
		timer_unset(dev, &w->timer);
		sleeper_released(w);
	}
	sleeper_released(w);
}

static void sleepers_init(struct wait *w)
{
	memset(w->sleepers, 0, w->count * sizeof(*w->sleepers));
	for (uint32_t i = 0; i < w->count; i++) {
		struct sleeper *s = &w->sleepers[i];

		s->wait = w;
		s->value = w->points[i].value;
		s->waiter.timeline = w->points[i].timeline;
		s->add.fn = read_add;
		s->drop.fn = read_drop;
	}
	atomic_init(&w->open, w->count);
	atomic_init(&w->over, false);
	atomic_init(&w->busy, 0);
	w->asleep_ns = UINT64_MAX;
	atomic_init(&w->timed_out, false);
	atomic_init(&w->woken_ns, 0);
	(void)sem_init(&w->sem, 0, 0);
}

/* Release the timelines of the first count points. */
static void release_timelines(const struct wait *w, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		timeline_let_go(w->points[i].timeline);
}

/* Keep the timelines of w from being destroyed until release_timelines.  Return -EINVAL
 * if another thread has destroyed one since wait_check. */
static int hold_timelines(const struct wait *w)
{
	for (uint32_t i = 0; i < w->count; i++) {
		struct hal_timeline *t = w->points[i].timeline;

		if (LIKELY(timeline_hold(t)))
			continue;
		release_timelines(w, i);
		return fail(EINVAL, "hal_wait: point %u: the timeline has been destroyed",
			    i);
	}
	return 0;
}

/* ---- virtual clock ----------------------------------------------------------------- */

/* Return the device time up to which dev may run before .until_ns must be checked. */
static uint64_t run_limit(const struct wait *w, const struct hal_device *dev)
{
	if (w->until_ns == HAL_FOREVER)
		return UINT64_MAX;
	if (w->device_time)
		return (uint64_t)w->until_ns;
	return hal_bk_after(dev->now, w->until_ns != 0 ? SLICE_NS : 0);
}

/* Return whether .until_ns has passed.  did is true if the last turn has
 * done something. */
static bool time_is_up(const struct wait *w, const struct hal_device *dev, bool did)
{
	/* Deadline 0: let no device time pass, but complete all work that takes none. */
	if (w->until_ns == 0)
		return !did;
	if (w->until_ns == HAL_FOREVER)
		return false;
	if (w->device_time)
		return dev->now >= (uint64_t)w->until_ns;
	return monotonic_ns() >= (uint64_t)w->until_ns;
}

enum run {
	RUN_OVER,     /* enough points are reached, or one has failed */
	RUN_TIME,     /* .until_ns has passed */
	RUN_STUCK,    /* the device has nothing left to do */
	RUN_CALLBACK, /* nothing left until a host function on another thread returns */
};

/* Return whether the wait is over.  Tests the points only if .over is set. */
static bool is_over(struct wait *w)
{
	int out;

	return atomic_load_explicit(&w->over, memory_order_relaxed) &&
	       (atomic_exchange(&w->over, false), test_points(w, &out) != PENDING);
}

static enum run nothing_left(struct hal_device *dev)
{
	return atomic_load(&dev->command.callbacks_begun) != 0 ? RUN_CALLBACK : RUN_STUCK;
}

/* Run engine turns until the wait is over.  Engine only; return why it stopped. */
static enum run run_turns(struct wait *w, struct hal_device *dev)
{
	const struct hal_point *only = w->count == 1 ? w->points : NULL;
	unsigned int turns = 0;

	for (;;) {
		uint64_t until = run_limit(w, dev);
		bool did;

		if (only != NULL ? timeline_test(only->timeline, only->value) != 0
				 : is_over(w))
			return RUN_OVER;
		did = engine_turn(dev, until, w->idle);
		if (UNLIKELY(w->until_ns != HAL_FOREVER) && time_is_up(w, dev, did))
			return RUN_TIME;
		if (UNLIKELY(!did) && (w->until_ns == HAL_FOREVER ||
				       dev->command.pending == 0 || dev->now < until))
			return nothing_left(dev);
		if (UNLIKELY(atomic_load_explicit(&dev->lock_waiters,
						  memory_order_relaxed) != 0) &&
		    ++turns % NOTIFY_TURNS == 0)
			engine_lock_notify(dev);
	}
}

/* Do as run_turns for several points.  Register a sleeper for each point on dev, and
 * count the points of other devices that are reached already. */
static enum run run_many(struct wait *w, struct hal_device *dev)
{
	enum run run;

	sleepers_init(w);
	for (uint32_t i = 0; i < w->count; i++) {
		atomic_fetch_add(&w->busy, 1);
		if (w->points[i].timeline->dev == dev)
			add_sleeper(&w->sleepers[i]);
		else if (timeline_test(w->points[i].timeline, w->points[i].value) != 0)
			notified(&w->sleepers[i].waiter, 0);
	}
	run = run_turns(w, dev);
	for (uint32_t i = 0; i < w->count; i++)
		drop_sleeper(&w->sleepers[i]);
	return run;
}

/* Be the engine of dev until the wait is over or .until_ns has passed: return 0 with
 * the result in *out.  Return PENDING if dev has nothing left to do. */
static int run_device(struct wait *w, struct hal_device *dev, int *out)
{
	enum run run;
	int state;

	for (;;) {
		unsigned int seen = atomic_load(&dev->lock_futex);

		if (!engine_try(dev)) {
			if ((state = test_points(w, out)) != PENDING)
				return state;
			if (w->until_ns != HAL_FOREVER && !w->device_time &&
			    (w->until_ns == 0 ||
			     monotonic_ns() >= (uint64_t)w->until_ns)) {
				*out = not_reached(w, ETIMEDOUT, "time is up");
				return 0;
			}
			engine_lock_sleep(dev, seen);
			pthread_testcancel();
			continue;
		}
		run = w->count == 1 ? run_turns(w, dev) : run_many(w, dev);
		engine_leave(dev);
		if ((state = test_points(w, out)) != PENDING)
			return state;
		if (run == RUN_TIME || w->until_ns == 0) {
			*out = not_reached(w, ETIMEDOUT,
					   w->until_ns == 0 ? "not reached yet"
							    : "time is up");
			return 0;
		}
		if (run == RUN_STUCK)
			return PENDING;
		if (run == RUN_CALLBACK)
			engine_callback_sleep(dev);
		pthread_testcancel();
	}
}

/* ---- virtual clock: work that waits for points of other devices --------------------- */

/* What the queues of a virtual device wait for on other devices (foreign.h) and of other
 * processes (courier.h).  Each timeline in .points is held. */
struct needed {
	struct hal_point points[16];
	uint32_t count;
	bool outside; /* a queue waits for a timeline that another process may raise */
};

/* Write what queues of dev wait for now to arg, a struct needed.  Engine only. */
static int find_needed(struct hal_device *dev, void *arg)
{
	struct needed *n = arg;

	hal_list_for_each (p, &dev->space.partitions) {
		const struct hal_partition *part =
			container_of(p, struct hal_partition, on_device);

		hal_list_for_each (it, &part->queues) {
			struct hal_queue *q =
				container_of(it, struct hal_queue, on_partition);
			const struct record *r;

			if (timeline_outside(&q->waiter))
				n->outside = true;
			if (!q->waiter.waiting || n->count == ARRAY_LENGTH(n->points))
				continue;
			/* Until the wait is over, its point's timeline exists. */
			r = cursor_record(q, q->issue);
			if (r->cmd.op == REC_FOREIGN &&
			    timeline_hold(record_foreign(r)->point.timeline))
				n->points[n->count++] = record_foreign(r)->point;
		}
	}
	return 0;
}

static void release_needed(void *arg)
{
	const struct needed *n = arg;

	for (uint32_t i = 0; i < n->count; i++)
		timeline_let_go(n->points[i].timeline);
}

enum step {
	STEP_NONE,  /* nothing can be done */
	STEP_DONE,  /* a point is reached or has failed, or .until_ns has passed */
	STEP_SLEEP, /* a point of a real device or of another process is missing */
};

/* Return what can be done for p, of a virtual device, by the caller alone. */
static enum step step_alone(const struct hal_point *p)
{
	return atomic_load(&p->timeline->outside) != 0 ? STEP_SLEEP : STEP_NONE;
}

/* Longest chain of devices that wait for each other. */
#define CHAIN_MAX 16u

static enum step step_others(const struct wait *w, struct hal_device *dev,
			     uint32_t depth);

/* Run the virtual device of p, and those that its work waits for, until p is reached. */
/* NOLINTBEGIN(misc-no-recursion): as deep as CHAIN_MAX */
static enum step step_for(const struct wait *w, const struct hal_point *p, uint32_t depth)
{
	struct hal_device *dev = p->timeline->dev;
	struct wait sub = {
		.points = p,
		.count = 1,
		.until_ns = w->device_time ? HAL_FOREVER : w->until_ns,
	};
	enum step step = STEP_DONE;
	int out;

	/* A device cannot run inside its own host function. */
	if (depth > CHAIN_MAX || callback_inside(dev))
		return step_alone(p);
	while (step == STEP_DONE) {
		if (run_device(&sub, dev, &out) != PENDING)
			return STEP_DONE;
		step = step_others(w, dev, depth + 1);
	}
	return step != STEP_NONE ? step : step_alone(p);
}

/* Run the devices whose points the queues of dev wait for, in the order of the queues,
 * until one of these points is reached. */
static enum step step_others(const struct wait *w, struct hal_device *dev, uint32_t depth)
{
	struct needed needed = {.count = 0};
	volatile enum step step = STEP_NONE; /* kept by the cleanup handler's longjmp */

	if ((atomic_load(&dev->command.foreign) == 0 &&
	     atomic_load(&dev->share.outside) == 0) ||
	    w->until_ns == 0)
		return STEP_NONE;
	(void)engine_call(dev, find_needed, &needed);
	if (needed.outside)
		step = STEP_SLEEP;
	pthread_cleanup_push(release_needed, &needed);
	for (uint32_t i = 0; i < needed.count && step != STEP_DONE; i++) {
		const struct hal_point *p = &needed.points[i];
		enum step one = STEP_SLEEP;

		/* The engine of a reached point has yet to notify dev. */
		if (timeline_test(p->timeline, p->value) == 0 &&
		    p->timeline->dev->virtual_clock)
			one = step_for(w, p, depth);
		step = one != STEP_NONE ? one : step;
	}
	pthread_cleanup_pop(1);
	return step;
}
/* NOLINTEND(misc-no-recursion) */

/* Sleep until dev may have new messages, at most until .until_ns.  Return false if
 * .until_ns has passed. */
static bool sleep_for_others(const struct wait *w, struct hal_device *dev)
{
	unsigned int seen;
	int out;

	if (!w->device_time && w->until_ns != HAL_FOREVER &&
	    monotonic_ns() >= (uint64_t)w->until_ns)
		return false;
	if (engine_message_watch(dev, &seen) && test_points(w, &out) == PENDING)
		engine_message_sleep(dev, seen);
	engine_message_over(dev);
	pthread_testcancel();
	return true;
}

/* Run the virtual devices of w, one after the other, each until it has nothing left to
 * do.  Return 0 with the result in *out; or PENDING.  Set *real if w has points of real
 * devices, and *open to the number of points of virtual devices that are not reached. */
static int run_devices(struct wait *w, int *out, bool *real, uint32_t *open)
{
	*real = false;
	*open = 0;
	for (uint32_t i = 0; i < w->count; i++) {
		const struct hal_point *p = &w->points[i];

		if (!p->timeline->dev->virtual_clock) {
			*real = true;
			continue;
		}
		if (timeline_test(p->timeline, p->value) != 0)
			continue;
		if (run_device(w, p->timeline->dev, out) != PENDING)
			return 0;
	}
	for (uint32_t i = 0; i < w->count; i++)
		*open += w->points[i].timeline->dev->virtual_clock &&
			 timeline_test(w->points[i].timeline, w->points[i].value) == 0;
	return PENDING;
}

/* Return whether w has points of real devices that are not reached. */
static bool needs_real(const struct wait *w)
{
	for (uint32_t i = 0; i < w->count; i++)
		if (!w->points[i].timeline->dev->virtual_clock &&
		    timeline_test(w->points[i].timeline, w->points[i].value) == 0)
			return true;
	return false;
}

/* Do step_others for the devices of the points that are not reached.  Set *sleeper to a
 * device on which the caller may sleep if the result is STEP_SLEEP. */
static enum step step_all(const struct wait *w, struct hal_device **sleeper)
{
	/* A real device may signal a point of a virtual one. */
	const enum step none = needs_real(w) ? STEP_SLEEP : STEP_NONE;
	enum step step = none;

	for (uint32_t i = 0; i < w->count && step != STEP_DONE; i++) {
		const struct hal_point *p = &w->points[i];
		enum step one;

		if (!p->timeline->dev->virtual_clock ||
		    timeline_test(p->timeline, p->value) != 0)
			continue;
		one = step_others(w, p->timeline->dev, 1);
		if (one == STEP_NONE)
			one = step_alone(p);
		*sleeper = p->timeline->dev;
		step = one != STEP_NONE ? one : step;
	}
	return step;
}

/* Return whether the points of w are of one device that waits for no other. */
static bool is_single(const struct wait *w)
{
	struct hal_device *dev = w->points[0].timeline->dev;

	for (uint32_t i = 1; i < w->count; i++)
		if (w->points[i].timeline->dev != dev)
			return false;
	return atomic_load(&dev->command.foreign) == 0;
}

/* Run the virtual devices of w.  Return 0 with the result in *out; or PENDING if the
 * caller must test the points again and, if *has_real, wait for the real devices.
 *
 * A device may wait for points of other devices.  Those are run when no device of w has
 * work left.  A device of w may also signal a point of another one, so the devices are
 * run again as long as a pass reaches points.  Only then may time pass without work. */
static int wait_virtual(struct wait *w, int *out, bool *has_real)
{
	const bool single = is_single(w);
	uint32_t open, before = single ? 0 : UINT32_MAX;

	w->idle = w->device_time && single;
	for (;;) {
		const unsigned int delivered = courier_deliveries();
		struct hal_device *dev = NULL;
		enum step step;

		if (run_devices(w, out, has_real, &open) != PENDING)
			return 0;
		if (open == 0 || (w->any && *has_real))
			return PENDING;
		step = step_all(w, &dev);
		if (step == STEP_SLEEP && !sleep_for_others(w, dev)) {
			*out = not_reached(w, ETIMEDOUT, "time is up");
			return 0;
		}
		/* What another process has raised meanwhile may have made work runnable.
		 */
		if (step == STEP_NONE && open >= before &&
		    courier_deliveries() == delivered) {
			if (w->idle || !w->device_time) {
				if (test_points(w, out) == PENDING)
					*out = stuck(w);
				return 0;
			}
			w->idle = true;
		}
		before = open;
	}
}

/* ---- real clock -------------------------------------------------------------------- */

/* Have the engines drop all references to w, and return when none is left.  Runs
 * after each sleep, and if the thread is cancelled. */
static void stop_waiting(void *arg)
{
	struct wait *w = arg;
	unsigned int busy;

	for (uint32_t i = 0; i < w->count; i++) {
		struct sleeper *s = &w->sleepers[i];

		if (atomic_load_explicit(&s->ended, memory_order_relaxed))
			continue;
		atomic_fetch_add(&w->busy, 1);
		engine_post(w->points[i].timeline->dev, &s->drop);
	}
	if (w->device_time) {
		atomic_fetch_add(&w->busy, 1);
		engine_post(w->points[0].timeline->dev, &w->timer_drop);
	}
	atomic_fetch_or(&w->busy, LEAVING);
	while ((busy = atomic_load(&w->busy)) != LEAVING)
		futex_wait(&w->busy, busy, NULL);
	(void)sem_destroy(&w->sem);
}

/* Register all points of w, and .until_ns if in device time, with their engines. */
static void start_waiting(struct wait *w)
{
	sleepers_init(w);
	atomic_store(&w->busy, w->count + w->device_time);
	for (uint32_t i = 0; i < w->count; i++)
		engine_post_quietly(w->points[i].timeline->dev, &w->sleepers[i].add);
	if (w->device_time) {
		memset(&w->timer, 0, sizeof(w->timer));
		w->timer_add.fn = read_timer_add;
		w->timer_drop.fn = read_timer_drop;
		engine_post(w->points[0].timeline->dev, &w->timer_add);
	}
}

/* Sleep until the wait is over: return 0 with the result in *out; or a positive errno,
 * ETIMEDOUT if .until_ns has passed. */
static int sleep_for_points(struct wait *w, int *out)
{
	const struct timespec t = timespec_of((uint64_t)w->until_ns);

	for (;;) {
		int err;

		/* start_waiting does not wake a sleeping engine, which may have reached a
		 * point just before it fell asleep.  We write messages, pass a full
		 * barrier and read the value.  The engine writes the value, passes a full
		 * barrier (E2 in wake.h) and reads messages.  So one of us sees the
		 * other's write. */
		atomic_thread_fence(memory_order_seq_cst);
		if (test_points(w, out) != PENDING)
			return 0;
		if (atomic_load(&w->timed_out))
			return ETIMEDOUT;
		w->asleep_ns = monotonic_ns();
		err = w->until_ns == HAL_FOREVER || w->device_time
			      ? sem_wait(&w->sem)
			      : sem_clockwait(&w->sem, CLOCK_MONOTONIC, &t);
		if (err != 0 && errno != EINTR)
			return errno;
		atomic_store(&w->over, false);
	}
}

/* Adaptive spin of this thread, for at most two wake-up times.  If this thread and an
 * engine wait for each other in turn, one of them must spin for longer than a wake-up
 * takes, or each wait ends in a sleep.  The engine's spin has a limit for all tenants
 * (hal.spin_us), so it is this thread that spins longer. */
static _Thread_local struct spin spin = {2 * WAKE_UP_FIRST_NS};

/* If the engine of a point of w that is not reached sleeps, be that engine until the wait
 * is over or until host time until_ns. */
static void take_turns(const struct wait *w, uint64_t until_ns)
{
	struct hal_device *dev = first_open(w)->timeline->dev;
	int out;

	if (!engine_borrow(dev))
		return;
	do
		(void)engine_turn(dev, 0, false);
	while (test_points(w, &out) == PENDING && monotonic_ns() < until_ns);
	lend_end(dev);
}

/* Spin until the wait is over: return true with the result in *out.  Return false if the
 * time to spin is over. */
static bool spin_for_points(const struct wait *w, uint64_t from_ns, int *out)
{
	uint64_t now = from_ns;

	while (now < from_ns + spin.ns) {
		take_turns(w, from_ns + spin.ns);
		for (int i = 0; i < 16; i++) {
			if (test_points(w, out) != PENDING) {
				spin_learn(&spin, monotonic_ns() - from_ns,
					   2 * wake_up_takes());
				return true;
			}
			ck_pr_stall();
		}
		now = monotonic_ns();
	}
	return false;
}

/* Adapt the spin to the time from from_ns until the points were reached.  Call after
 * sleep_for_points. */
static void learn_from_sleep(const struct wait *w, uint64_t from_ns)
{
	uint64_t came = atomic_load_explicit(&w->woken_ns, memory_order_relaxed);
	uint64_t now = monotonic_ns();

	if (came > w->asleep_ns)
		wake_up_took(now - came);
	spin_learn(&spin, (came != 0 ? came : now) - from_ns, 2 * wake_up_takes());
}

static void wait_real(struct wait *w, int *out)
{
	uint64_t from;
	int err;

	if (w->until_ns == 0) {
		*out = not_reached(w, ETIMEDOUT, "time is up");
		return;
	}
	from = monotonic_ns();
	lend_wasted = !spin_for_points(w, from, out);
	if (!lend_wasted)
		return;
	start_waiting(w);
	pthread_cleanup_push(stop_waiting, w);
	err = sleep_for_points(w, out);
	learn_from_sleep(w, from);
	pthread_cleanup_pop(1);
	/* Test again: the points may have been reached just as .until_ns passed. */
	if (err == 0 || test_points(w, out) != PENDING)
		return;
	if (err == ETIMEDOUT)
		*out = not_reached(w, ETIMEDOUT, "time is up");
	else
		*out = fail(err, "hal_wait: %s", hal_strerror(err));
}

/* ---- hal_wait ---------------------------------------------------------------------- */

/* Returned by wait_check: a point is of a device that another process serves. */
#define WAIT_FAR 1

static int wait_check(const struct wait *w, uint32_t flags)
{
	const uint32_t known = HAL_WAIT_ANY | HAL_WAIT_DEVICE_TIME;

	if (UNLIKELY((flags & ~known) != 0))
		return fail(EINVAL, "hal_wait: flags 0x%x: only 0x%x is defined", flags,
			    known);
	if (UNLIKELY(w->count == 0 || w->points == NULL))
		return fail(EINVAL, "hal_wait: no points");
	if (UNLIKELY(w->count > INT32_MAX))
		return fail(EINVAL, "hal_wait: %u points are too many", w->count);
	if (UNLIKELY(w->until_ns < 0))
		return fail(EINVAL, "hal_wait: until_ns %lld is negative",
			    (long long)w->until_ns);
	for (uint32_t i = 0; i < w->count; i++)
		if (UNLIKELY(!OBJECT_OK(w->points[i].timeline, OBJECT_TIMELINE)))
			return FAR_OR_BAD(w->points[i].timeline, OBJECT_TIMELINE,
					  WAIT_FAR);
	return 0;
}

/* Refuse to wait, inside a host function, for points of the device that called it: its
 * queue waits for the function to return. */
static int callback_check(const struct wait *w)
{
	if (w->until_ns == 0)
		return 0;
	for (uint32_t i = 0; i < w->count; i++) {
		int err = callback_refuse(w->points[i].timeline->dev, "hal_wait");

		if (UNLIKELY(err != 0))
			return err;
	}
	return 0;
}

/* Make the fds of all reached points of a timeline readable.  Engine only. */
static int notify_fds(struct hal_device *dev, void *arg)
{
	struct hal_timeline *t = arg;

	(void)dev;
	timeline_notify(t, atomic_load(&t->value));
	return 0;
}

/* Make the fds of reached points readable before hal_wait returns.  A timeline's value is
 * visible to hal_wait a moment before its engine has notified the fds, but a caller
 * expects both to agree. */
static void fds_notified(const struct wait *w)
{
	for (uint32_t i = 0; i < w->count; i++) {
		const struct hal_point *p = &w->points[i];

		if (LIKELY(atomic_load_explicit(&p->timeline->fds,
						memory_order_acquire) == 0) ||
		    timeline_test(p->timeline, p->value) == 0)
			continue;
		(void)engine_call(p->timeline->dev, notify_fds, p->timeline);
	}
}

/* Wait for w, whose points are not reached yet.  Return the result of hal_wait. */
static int wait_open(struct wait *w)
{
	bool has_real = false;
	int out = 0;

	if (wait_virtual(w, &out, &has_real) != PENDING)
		return out;
	if (!has_real)
		return test_points(w, &out) != PENDING ? out : stuck(w);
	wait_real(w, &out);
	return out;
}

/* Release the timelines and the memory of w.  Runs when wait_held returns, and if the
 * thread is cancelled. */
static void wait_fini(void *arg)
{
	struct wait *w = arg;

	release_timelines(w, w->count);
	if (w->count > POINTS_ON_STACK)
		free(w->sleepers);
}

/* Wait for w, whose timelines the caller holds; release them before returning. */
static NOINLINE int wait_held(struct wait *w)
{
	struct sleeper on_stack[POINTS_ON_STACK];
	int out;

	pthread_cleanup_push(wait_fini, w);
	if (test_points(w, &out) == PENDING && (out = callback_check(w)) == 0) {
		w->sleepers = on_stack;
		if (w->count > POINTS_ON_STACK)
			w->sleepers = malloc(w->count * sizeof(*w->sleepers));
		out = w->sleepers != NULL
			      ? wait_open(w)
			      : fail(ENOMEM, "no memory to wait for %u points", w->count);
	}
	fds_notified(w);
	pthread_cleanup_pop(1);
	w->sleepers = NULL;
	return out;
}

/* Return whether p is a valid point of dev. */
static inline bool is_of(const struct hal_point *p, const struct hal_device *dev)
{
	return OBJECT_OK(p->timeline, OBJECT_TIMELINE) && p->timeline->dev == dev;
}

enum each {
	EACH_NOT,     /* the fast path does not apply; no timeline is held */
	EACH_HELD,    /* all timelines are held; the caller must wait the general way */
	EACH_REACHED, /* all points are reached */
};

/*
 * Fast path for the most common wait: for all of some points of one virtual device,
 * without an end.  Waiting for one point after the other gives the same result, and
 * needs no registration.  All timelines are held before the first wait, so that none is
 * destroyed meanwhile.
 */
static enum each wait_each(const struct hal_point *points, uint32_t count)
{
	struct hal_timeline *first = points[0].timeline;
	enum each each = EACH_NOT;
	struct hal_device *dev;
	uint32_t held = 1, i = 0;

	if (UNLIKELY(!timeline_hold(first)))
		return EACH_NOT;
	dev = first->dev;
	if (!dev->virtual_clock ||
	    (UNLIKELY(atomic_load_explicit(&dev->command.callbacks_begun,
					   memory_order_relaxed) != 0) &&
	     callback_inside(dev)) ||
	    !engine_try(dev)) {
		timeline_let_go(first);
		return EACH_NOT;
	}
	while (held < count && is_of(&points[held], dev) &&
	       timeline_hold(points[held].timeline))
		held++;
	for (; held == count && i < count; i++) {
		struct hal_timeline *t = points[i].timeline;

		if (timeline_test(t, points[i].value) <= 0) {
			(void)engine_turns(dev, t, points[i].value);
			if (timeline_test(t, points[i].value) <= 0)
				break;
		}
		if (atomic_load_explicit(&t->fds, memory_order_acquire) != 0)
			break;
	}
	if (i == count)
		each = EACH_REACHED;
	else if (held == count)
		each = EACH_HELD;
	while (each != EACH_HELD && held > 0)
		timeline_let_go(points[--held].timeline);
	engine_leave(dev);
	return each;
}

/* Return whether p is reached and no fd of its timeline waits for a notification.  Its
 * timeline need not be held then. */
static inline bool is_reached(const struct hal_point *p)
{
	return timeline_test(p->timeline, p->value) > 0 &&
	       atomic_load_explicit(&p->timeline->fds, memory_order_acquire) == 0;
}

/* The general hal_wait.  held: wait_each has checked and holds the timelines. */
static NOINLINE int wait_any(const struct hal_point *points, uint32_t count,
			     uint32_t flags, int64_t until_ns, bool held)
{
	struct wait w = {
		.points = points,
		.count = count,
		.any = (flags & HAL_WAIT_ANY) != 0,
		.device_time = (flags & HAL_WAIT_DEVICE_TIME) != 0 && until_ns != 0 &&
			       until_ns != HAL_FOREVER,
		.until_ns = until_ns,
	};
	int err;

	if (!held) {
		err = wait_check(&w, flags);
		if (UNLIKELY(err == WAIT_FAR))
			return far_wait(points, count, flags, until_ns);
		if (UNLIKELY(err != 0 || points == NULL))
			return err;
		if (count == 1 && is_reached(points))
			return 0;
		err = hold_timelines(&w);
		if (UNLIKELY(err != 0))
			return err;
	}
	return wait_held(&w);
}

int hal_wait(const struct hal_point *points, uint32_t count, uint32_t flags,
	     int64_t until_ns)
{
	enum each each = EACH_NOT;

	if (LIKELY(count - 1 < INT32_MAX && flags == 0 && until_ns == HAL_FOREVER &&
		   points != NULL && OBJECT_OK(points->timeline, OBJECT_TIMELINE)))
		each = wait_each(points, count);
	if (LIKELY(each == EACH_REACHED))
		return 0;
	return wait_any(points, count, flags, until_ns, each == EACH_HELD);
}
