/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wait.c - how the host learns that points are reached.
 *
 * clock=virtual: the thread that waits is the engine, or lends itself when it can not be
 * yet.  clock=real: it looks for a while, then has the engines wake it.  Either way, of
 * many points each is looked at twice: when it begins to be waited for, and when it ends.
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
#include "command/flow.h"
#include "loop/engine.h"
#include "util/futex.h"
#include "util/spin.h"

/* Device time a simulated device runs between two looks at the host's clock. */
#define SLICE_NS        UINT64_C(4096)
#define POINTS_ON_STACK 8
/* Turns between two words to those who would like to be the engine, too. */
#define LEND_TURNS 8u

#define PENDING    1 /* not an errno: they are negative */

/* struct wait.busy: its thread sleeps until the rest of it is 0. */
#define LEAVING UINT32_C(0x80000000)

struct wait;

struct sleeper {
	struct waiter waiter;
	struct message add, drop;
	struct wait *wait;
	uint64_t value;
	atomic_bool ended; /* the engine has let go of it */
};

struct wait {
	const struct hal_point *points;
	uint32_t count;
	bool any;
	bool device_time; /* .deadline is */
	int64_t deadline;
	/* Of those that have to be told: */
	struct sleeper *sleepers;
	sem_t sem;
	atomic_uint open;          /* points that are not reached */
	atomic_bool over;          /* enough of them may be, or one has failed: look */
	_Atomic uint64_t woken_ns; /* host time of that; 0: never */
	uint64_t asleep_ns;        /* since then */
	atomic_uint busy; /* futex: what engines still have of this, and LEAVING */
	struct timer timer;
	struct message timer_add, timer_drop;
	atomic_bool timed_out;
};

static int point_failed(const struct hal_point *p, int err)
{
	const char *text = timeline_text(p->timeline);

	return fail(err, "%s", text != NULL ? text : hal_strerror(err));
}

/* PENDING, or the answer of hal_wait in *out. */
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

static inline int test_points(const struct wait *w, int *out)
{
	/* Mostly it is one point. */
	if (LIKELY(w->count == 1)) {
		int state = timeline_test(w->points[0].timeline, w->points[0].value);

		*out = 0;
		if (LIKELY(state >= 0))
			return state > 0 ? 0 : PENDING;
	}
	return test_all_points(w, out);
}

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
	char text[96];

	describe_timeline(p->timeline, text, sizeof(text));
	return fail(err, "point %llu of %s: %s, it is at %llu", U64(p->value), text, why,
		    U64(atomic_load(&p->timeline->value)));
}

static COLD int stuck(const struct wait *w)
{
	return not_reached(w, EDEADLK, "no work is left that could reach it");
}

/* ---- being notified -------------------------------------------------------------------- */

/* Its thread sleeps, or will. */
static void wake_waiter(struct wait *w)
{
	atomic_store_explicit(&w->woken_ns, monotonic_ns(), memory_order_relaxed);
	(void)sem_post(&w->sem);
}

/* The engine's last touch of it. */
static void sleeper_released(struct wait *w)
{
	if (atomic_fetch_sub(&w->busy, 1) == (LEAVING | 1))
		futex_wake(&w->busy, 1); /* a look at an address, whatever is there */
}

static void notified(struct waiter *waiter, int err)
{
	struct sleeper *s = container_of(waiter, struct sleeper, waiter);
	struct wait *w = s->wait;
	bool last = atomic_fetch_sub(&w->open, 1) == 1;

	atomic_store_explicit(&s->ended, true, memory_order_relaxed);
	/* Whoever wakes looks himself. */
	if ((last || w->any || err != 0) && !atomic_exchange(&w->over, true))
		wake_waiter(w);
	sleeper_released(w);
}

/* By the engine of its timeline. */
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

static void drop_sleeper(struct sleeper *s)
{
	if (!s->waiter.waiting)
		return;
	timeline_drop_waiter(&s->waiter);
	sleeper_released(s->wait);
}

static void read_add(struct hal_device *dev, struct message *l)
{
	(void)dev;
	add_sleeper(container_of(l, struct sleeper, add));
}

static void read_drop(struct hal_device *dev, struct message *l)
{
	struct sleeper *s = container_of(l, struct sleeper, drop);
	struct wait *w = s->wait;

	(void)dev;
	drop_sleeper(s);
	sleeper_released(w);
}

static void deadline_over(struct hal_device *dev, struct timer *t)
{
	struct wait *w = container_of(t, struct wait, timer);

	(void)dev;
	atomic_store(&w->timed_out, true);
	if (!atomic_exchange(&w->over, true))
		wake_waiter(w);
	sleeper_released(w);
}

static void read_timer_add(struct hal_device *dev, struct message *l)
{
	struct wait *w = container_of(l, struct wait, timer_add);

	w->timer.fn = deadline_over;
	timer_set(dev, &w->timer, (uint64_t)w->deadline);
}

static void read_timer_drop(struct hal_device *dev, struct message *l)
{
	struct wait *w = container_of(l, struct wait, timer_drop);

	if (w->timer.set) {
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

/* Of the first so many points. */
static void release_timelines(const struct wait *w, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		timeline_let_go(w->points[i].timeline);
}

/* Another thread may have destroyed them since they were looked at. */
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

static bool open_on(const struct wait *w, const struct hal_device *dev)
{
	for (uint32_t i = 0; i < w->count; i++)
		if (w->points[i].timeline->dev == dev &&
		    timeline_test(w->points[i].timeline, w->points[i].value) == 0)
			return true;
	return false;
}

/* How far dev may run before somebody has to look at a clock. */
static uint64_t run_limit(const struct wait *w, const struct hal_device *dev)
{
	if (w->deadline == HAL_FOREVER)
		return UINT64_MAX;
	if (w->device_time)
		return (uint64_t)w->deadline;
	return hal_bk_after(dev->now, w->deadline != 0 ? SLICE_NS : 0);
}

static bool time_is_up(const struct wait *w, const struct hal_device *dev, bool did)
{
	/* A poll lets no time pass, but ends what takes none. */
	if (w->deadline == 0)
		return !did;
	if (w->deadline == HAL_FOREVER)
		return false;
	if (w->device_time)
		return dev->now >= (uint64_t)w->deadline;
	return monotonic_ns() >= (uint64_t)w->deadline;
}

enum run {
	RUN_OVER,     /* enough points are reached: look */
	RUN_TIME,     /* time is up */
	RUN_STUCK,    /* nothing is left to do */
	RUN_CALLBACK, /* nothing but what another thread is being called back for */
};

/* Something was told: was it enough? */
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

/* By the engine: takes turns until the wait is over. */
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
		did = engine_turn(dev, until, w->device_time);
		if (UNLIKELY(w->deadline != HAL_FOREVER) && time_is_up(w, dev, did))
			return RUN_TIME;
		if (UNLIKELY(!did) && (w->deadline == HAL_FOREVER ||
				       dev->command.pending == 0 || dev->now < until))
			return nothing_left(dev);
		if (UNLIKELY(atomic_load_explicit(&dev->lock_waiters,
						  memory_order_relaxed) != 0) &&
		    ++turns % LEND_TURNS == 0)
			engine_lock_notify(dev);
	}
}

/* The same with what it takes to be told of many points. */
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

/* Steps dev until the wait is over, time is up, or dev has nothing left to do
 * (PENDING). */
static int run_device(struct wait *w, struct hal_device *dev, int *out)
{
	enum run run;
	int state;

	for (;;) {
		unsigned int seen = atomic_load(&dev->lock_futex);

		if (!engine_try(dev)) {
			if ((state = test_points(w, out)) != PENDING)
				return state;
			if (w->deadline != HAL_FOREVER && !w->device_time &&
			    (w->deadline == 0 ||
			     monotonic_ns() >= (uint64_t)w->deadline)) {
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
		if (run == RUN_TIME || w->deadline == 0) {
			*out = not_reached(w, ETIMEDOUT,
					   w->deadline == 0 ? "not reached yet"
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

/* PENDING: no virtual device can reach what is open. */
static int wait_virtual(struct wait *w, int *out, bool *has_real)
{
	bool open = false;

	*has_real = false;
	for (uint32_t i = 0; i < w->count; i++) {
		struct hal_device *dev = w->points[i].timeline->dev;

		if (!dev->virtual_clock) {
			*has_real = true;
			continue;
		}
		if (timeline_test(w->points[i].timeline, w->points[i].value) != 0)
			continue;
		if (run_device(w, dev, out) != PENDING)
			return 0;
		open |= open_on(w, dev);
	}
	if (open && (!w->any || !*has_real)) {
		*out = stuck(w);
		return 0;
	}
	return PENDING;
}

/* ---- real clock -------------------------------------------------------------------- */

/* What engines still have of w is taken back; nobody knows of it then. */
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

static int sleep_for_points(struct wait *w, int *out)
{
	const struct timespec t = timespec_of((uint64_t)w->deadline);

	for (;;) {
		int err;

		/* The engine may have gone to sleep between the look before and our
		 * messages: ours, full barrier, its value; its value, full barrier (E2),
		 * our messages. */
		atomic_thread_fence(memory_order_seq_cst);
		if (test_points(w, out) != PENDING)
			return 0;
		if (atomic_load(&w->timed_out))
			return ETIMEDOUT;
		w->asleep_ns = monotonic_ns();
		err = w->deadline == HAL_FOREVER || w->device_time
			      ? sem_wait(&w->sem)
			      : sem_clockwait(&w->sem, CLOCK_MONOTONIC, &t);
		if (err != 0 && errno != EINTR)
			return errno;
		atomic_store(&w->over, false);
	}
}

/* This one's look may take two wake-ups: of two sides that each wait for the other's, one
 * has to look for longer than that takes, or they sleep in turn for ever; and the
 * engine's look is everybody's (hal.spin_us). */
static _Thread_local struct spin spin = {2 * WAKE_UP_FIRST_NS};

static bool spin_for_points(const struct wait *w, uint64_t from_ns, int *out)
{
	uint64_t now = from_ns;

	while (now < from_ns + spin.ns) {
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

/* After a sleep, or when it came before that. */
static void learn_patience(const struct wait *w, uint64_t from_ns)
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

	if (w->deadline == 0) {
		*out = not_reached(w, ETIMEDOUT, "time is up");
		return;
	}
	from = monotonic_ns();
	if (spin_for_points(w, from, out))
		return;
	start_waiting(w);
	pthread_cleanup_push(stop_waiting, w);
	err = sleep_for_points(w, out);
	learn_patience(w, from);
	pthread_cleanup_pop(1);
	/* The last look, after a time-out too. */
	if (err == 0 || test_points(w, out) != PENDING)
		return;
	if (err == ETIMEDOUT)
		*out = not_reached(w, ETIMEDOUT, "time is up");
	else
		*out = fail(err, "hal_wait: %s", hal_strerror(err));
}

/* ---- hal_wait ---------------------------------------------------------------------- */

static int wait_check(const struct wait *w, uint32_t flags)
{
	const uint32_t known = HAL_WAIT_ANY | HAL_WAIT_DEVICE_TIME;

	if (UNLIKELY((flags & ~known) != 0))
		return fail(EINVAL, "hal_wait: flags 0x%x: only 0x%x is known", flags,
			    known);
	if (UNLIKELY(w->count == 0 || w->points == NULL))
		return fail(EINVAL, "hal_wait: no points");
	if (UNLIKELY(w->count > INT32_MAX))
		return fail(EINVAL, "hal_wait: %u points", w->count);
	if (UNLIKELY(w->deadline < 0))
		return fail(EINVAL, "hal_wait: deadline %lld is before time began",
			    (long long)w->deadline);
	for (uint32_t i = 0; i < w->count; i++)
		if (UNLIKELY(!OBJECT_OK(w->points[i].timeline, OBJECT_TIMELINE)))
			return object_bad(w->points[i].timeline, OBJECT_TIMELINE);
	return 0;
}

/* A callback does not wait for its own device, on whose engine it is called. */
static int callback_check(const struct wait *w)
{
	if (w->deadline == 0)
		return 0;
	for (uint32_t i = 0; i < w->count; i++) {
		int err = callback_refuse(w->points[i].timeline->dev, "hal_wait");

		if (UNLIKELY(err != 0))
			return err;
	}
	return 0;
}

/* A point is reached a moment before its fds are readable.  Who has waited for the point
 * may rely on the fd. */
static int notify_fds(struct hal_device *dev, void *arg)
{
	struct hal_timeline *t = arg;

	(void)dev;
	timeline_notify(t, atomic_load(&t->value));
	return 0;
}

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

static void uncount(void *arg)
{
	struct wait *w = arg;

	release_timelines(w, w->count);
	if (w->count > POINTS_ON_STACK)
		free(w->sleepers);
}

/* Its points are held, and are not when it returns. */
static NOINLINE int wait_held(struct wait *w)
{
	struct sleeper on_stack[POINTS_ON_STACK];
	int out;

	pthread_cleanup_push(uncount, w);
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

static inline bool is_of(const struct hal_point *p, const struct hal_device *dev)
{
	return OBJECT_OK(p->timeline, OBJECT_TIMELINE) && p->timeline->dev == dev;
}

enum each {
	EACH_NOT,  /* nothing is done */
	EACH_HELD, /* they are all held; it takes more */
	EACH_REACHED,
};

/*
 * All of some points of one virtual device, for ever: what most waits are.  One after the
 * other comes to the same, with nothing to be told by anybody.  All are held from the
 * beginning: none is destroyed behind another one's back.
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

/* Nothing is to be held for what has been reached, unless somebody reads its fds. */
static inline bool is_reached(const struct hal_point *p)
{
	return timeline_test(p->timeline, p->value) > 0 &&
	       atomic_load_explicit(&p->timeline->fds, memory_order_acquire) == 0;
}

static NOINLINE int wait_any(const struct hal_point *points, uint32_t count,
			     uint32_t flags, int64_t deadline_ns, bool held)
{
	struct wait w = {
		.points = points,
		.count = count,
		.any = (flags & HAL_WAIT_ANY) != 0,
		.device_time = (flags & HAL_WAIT_DEVICE_TIME) != 0 && deadline_ns != 0 &&
			       deadline_ns != HAL_FOREVER,
		.deadline = deadline_ns,
	};
	int err;

	if (!held) {
		err = wait_check(&w, flags);
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
	     int64_t deadline_ns)
{
	enum each each = EACH_NOT;

	if (LIKELY(count - 1 < INT32_MAX && flags == 0 && deadline_ns == HAL_FOREVER &&
		   points != NULL && OBJECT_OK(points->timeline, OBJECT_TIMELINE)))
		each = wait_each(points, count);
	if (LIKELY(each == EACH_REACHED))
		return 0;
	return wait_any(points, count, flags, deadline_ns, each == EACH_HELD);
}
