/* SPDX-License-Identifier: Apache-2.0 */
/* wait.c - how the host learns that points are reached. */
#include "internal.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

/* Device time a simulated device runs between two looks at the host's clock. */
#define SLICE_NS UINT64_C(4096)
/* How long hal_wait looks before it goes to sleep. */
#define SPINS           256
#define POINTS_ON_STACK 8

#define PENDING         1 /* not an errno: they are negative */

static int64_t monotonic(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

struct wait {
	const struct hal_point *points;
	uint32_t count;
	bool any;
	int64_t deadline;
};

static int point_failed(const struct hal_point *p, int err)
{
	const char *text = p->timeline->text;

	return fail(err, "%s", text != NULL ? text : hal_strerror(err));
}

/* PENDING, or the answer of hal_wait in *out. */
static int look_all(const struct wait *w, int *out)
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

static inline int look(const struct wait *w, int *out)
{
	/* Mostly it is one point. */
	if (LIKELY(w->count == 1)) {
		int state = timeline_test(w->points[0].timeline, w->points[0].value);

		*out = 0;
		if (LIKELY(state >= 0))
			return state > 0 ? 0 : PENDING;
	}
	return look_all(w, out);
}

static const struct hal_point *first_open(const struct wait *w)
{
	for (uint32_t i = 0; i < w->count; i++)
		if (timeline_test(w->points[i].timeline, w->points[i].value) == 0)
			return &w->points[i];
	return &w->points[0];
}

static int not_reached(const struct wait *w, int err, const char *why)
{
	const struct hal_point *p = first_open(w);
	char text[96];

	timeline_describe(p->timeline, text, sizeof(text));
	return fail(err, "point %llu of %s: %s, it is at %llu",
		    (unsigned long long)p->value, text, why,
		    (unsigned long long)atomic_load(&p->timeline->value));
}

static int stuck(const struct wait *w)
{
	return not_reached(w, EDEADLK, "no work is left that could reach it");
}

/* ---- virtual clock
 * ------------------------------------------------------------------------ */

static bool open_on(const struct wait *w, const struct hal_device *dev)
{
	for (uint32_t i = 0; i < w->count; i++)
		if (w->points[i].timeline->dev == dev &&
		    timeline_test(w->points[i].timeline, w->points[i].value) == 0)
			return true;
	return false;
}

/* A poll lets no time pass, but ends what takes none. */
static bool time_is_up(const struct wait *w, bool did)
{
	return w->deadline == 0 ? !did : monotonic() >= w->deadline;
}

/* Steps dev until the wait is over, time is up, or dev has nothing left to do
 * (PENDING). */
static int run_device(const struct wait *w, struct hal_device *dev, int *out)
{
	/* For one point and for ever there is nothing to look at between two turns. */
	const struct hal_timeline *only = w->count == 1 && w->deadline == HAL_FOREVER
						  ? w->points[0].timeline
						  : NULL;
	int state;

	device_lock(dev);
	while ((state = look(w, out)) == PENDING && (w->count == 1 || open_on(w, dev))) {
		uint64_t until = UINT64_MAX;
		bool did;

		if (w->deadline != HAL_FOREVER)
			until = dev->now + (w->deadline != 0 ? SLICE_NS : 0);
		did = engine_run(dev, until, only, w->points[0].value);
		if (!did &&
		    (w->deadline == HAL_FOREVER || dev->pending == 0 || dev->now < until))
			break; /* nothing is left to do */
		if (w->deadline != HAL_FOREVER && time_is_up(w, did) &&
		    look(w, out) == PENDING) {
			*out = not_reached(w, ETIMEDOUT, "time is up");
			state = 0;
			break;
		}
		if (UNLIKELY(atomic_load_explicit(&dev->lock_waiters,
						  memory_order_relaxed) > 0)) {
			device_unlock(dev);
			device_yield(dev);
			device_lock(dev);
		}
	}
	device_unlock(dev);
	/* A poll says what is, not what could have been. */
	if (state == PENDING && w->deadline == 0) {
		*out = not_reached(w, ETIMEDOUT, "not reached yet");
		state = 0;
	}
	return state;
}

/* PENDING: no virtual device can reach what is open. */
static int wait_virtual(const struct wait *w, int *out, bool *has_real)
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

/* ---- real clock
 * ------------------------------------------------------------------------------ */

struct sleeper {
	struct waiter waiter;
	sem_t *sem;
};

static void sleeper_told(struct waiter *w, int err)
{
	struct sleeper *s = container_of(w, struct sleeper, waiter);

	(void)err; /* looked up by who wakes */
	(void)sem_post(s->sem);
}

static void sleepers_add(const struct wait *w, struct sleeper *sleepers, sem_t *sem)
{
	for (uint32_t i = 0; i < w->count; i++) {
		struct hal_timeline *t = w->points[i].timeline;
		struct sleeper *s = &sleepers[i];

		list_init(&s->waiter.node);
		s->waiter.timeline = t;
		s->waiter.value = w->points[i].value;
		s->waiter.fn = sleeper_told;
		s->sem = sem;
		device_lock(t->dev);
		if (timeline_test(t, s->waiter.value) == 0)
			timeline_add_waiter(t, &s->waiter);
		else
			(void)sem_post(sem);
		device_unlock(t->dev);
	}
}

static void sleepers_remove(const struct wait *w, struct sleeper *sleepers)
{
	for (uint32_t i = 0; i < w->count; i++) {
		struct hal_device *dev = sleepers[i].waiter.timeline->dev;

		/* Told ones too: who told them may still be at it. */
		device_lock(dev);
		list_del(&sleepers[i].waiter.node);
		device_unlock(dev);
	}
}

static int sleep_until(const struct wait *w, sem_t *sem, int *out)
{
	struct timespec t = {
		.tv_sec = w->deadline / 1000000000,
		.tv_nsec = w->deadline % 1000000000,
	};

	for (;;) {
		int err;

		if (look(w, out) != PENDING)
			return 0;
		err = w->deadline == HAL_FOREVER
			      ? sem_wait(sem)
			      : sem_clockwait(sem, CLOCK_MONOTONIC, &t);
		if (err == 0 || errno == EINTR)
			continue;
		if (errno != ETIMEDOUT)
			return fail(errno, "hal_wait: %s", hal_strerror(errno));
		if (look(w, out) != PENDING)
			return 0;
		*out = not_reached(w, ETIMEDOUT, "time is up");
		return 0;
	}
}

static int wait_real(const struct wait *w, int *out)
{
	struct sleeper on_stack[POINTS_ON_STACK];
	struct sleeper *sleepers = on_stack;
	sem_t sem;

	for (int i = 0; i < SPINS && w->deadline != 0; i++) {
		if (look(w, out) != PENDING)
			return 0;
		ck_pr_stall();
	}
	if (w->deadline == 0) {
		*out = not_reached(w, ETIMEDOUT, "time is up");
		return 0;
	}
	if (w->count > POINTS_ON_STACK) {
		sleepers = calloc(w->count, sizeof(*sleepers));
		if (sleepers == NULL) {
			*out = fail(ENOMEM, "no memory to wait for %u points", w->count);
			return 0;
		}
	}
	(void)sem_init(&sem, 0, 0);
	sleepers_add(w, sleepers, &sem);
	(void)sleep_until(w, &sem, out);
	sleepers_remove(w, sleepers);
	(void)sem_destroy(&sem);
	if (sleepers != on_stack)
		free(sleepers);
	return 0;
}

/* ---- hal_wait
 * ----------------------------------------------------------------------------------- */

static int points_check(const struct wait *w, uint32_t flags)
{
	if ((flags & ~HAL_WAIT_ANY) != 0)
		return fail(EINVAL, "hal_wait: flags 0x%x: only 0x%x is known", flags,
			    HAL_WAIT_ANY);
	if (w->count == 0 || w->points == NULL)
		return fail(EINVAL, "hal_wait: no points");
	if (w->count > INT32_MAX)
		return fail(EINVAL, "hal_wait: %u points", w->count);
	if (w->deadline < 0)
		return fail(EINVAL, "hal_wait: deadline %lld is before time began",
			    (long long)w->deadline);
	for (uint32_t i = 0; i < w->count; i++)
		if (!OBJECT_OK(w->points[i].timeline, OBJECT_TIMELINE))
			return object_bad(w->points[i].timeline, OBJECT_TIMELINE);
	return callback_refuse("hal_wait");
}

/* A point is reached a moment before its fds are readable, both under the device's lock.
 * Who has waited for the point may rely on the fd: let that moment pass. */
static void fds_told(const struct wait *w)
{
	for (uint32_t i = 0; i < w->count; i++) {
		const struct hal_point *p = &w->points[i];

		if (LIKELY(atomic_load_explicit(&p->timeline->fds,
						memory_order_acquire) == 0) ||
		    timeline_test(p->timeline, p->value) == 0)
			continue;
		device_lock(p->timeline->dev);
		device_unlock(p->timeline->dev);
	}
}

int hal_wait(const struct hal_point *points, uint32_t count, uint32_t flags,
	     int64_t deadline_ns)
{
	const struct wait w = {
		.points = points,
		.count = count,
		.any = (flags & HAL_WAIT_ANY) != 0,
		.deadline = deadline_ns,
	};
	bool has_real;
	int out;
	int err = points_check(&w, flags);

	if (err != 0)
		return err;
	if (look(&w, &out) != PENDING)
		goto out;
	if (count == 1 && points->timeline->dev->virtual_clock) {
		/* The second look: another thread may have run the rest of it. */
		if (run_device(&w, points->timeline->dev, &out) == PENDING &&
		    look(&w, &out) == PENDING)
			out = stuck(&w);
		goto out;
	}
	if (wait_virtual(&w, &out, &has_real) != PENDING)
		goto out;
	if (!has_real)
		return look(&w, &out) != PENDING ? out : stuck(&w);
	(void)wait_real(&w, &out);
out:
	fds_told(&w);
	return out;
}

/* ---- hal_point_fd
 * ------------------------------------------------------------------------------ */

struct fd_waiter {
	struct waiter waiter;
	int fd; /* our own: the caller may close its at any time */
};

static void fd_told(struct waiter *w, int err)
{
	struct fd_waiter *f = container_of(w, struct fd_waiter, waiter);
	uint64_t one = 1;

	(void)err;
	(void)!write(f->fd, &one, sizeof(one));
	(void)close(f->fd);
	atomic_fetch_sub_explicit(&w->timeline->fds, 1, memory_order_release);
	free(f);
}

int hal_point_fd(const struct hal_point *point)
{
	struct fd_waiter *f;
	struct hal_timeline *t;
	int fd;

	if (point == NULL)
		return fail(EINVAL, "hal_point_fd: point is NULL");
	t = point->timeline;
	if (!OBJECT_OK(t, OBJECT_TIMELINE))
		return object_bad(t, OBJECT_TIMELINE);
	f = calloc(1, sizeof(*f));
	if (f == NULL)
		return fail(ENOMEM, "no memory for a point's fd");
	fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	f->fd = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (f->fd < 0) {
		int err = fail(errno, "hal_point_fd: no fd: %s", hal_strerror(errno));

		if (fd >= 0)
			(void)close(fd);
		free(f);
		return err;
	}
	list_init(&f->waiter.node);
	f->waiter.timeline = t;
	f->waiter.value = point->value;
	f->waiter.fn = fd_told;
	atomic_fetch_add_explicit(&t->fds, 1, memory_order_relaxed);
	device_lock(t->dev);
	if (timeline_test(t, point->value) == 0)
		timeline_add_waiter(t, &f->waiter);
	else
		fd_told(&f->waiter, 0);
	device_unlock(t->dev);
	return fd;
}
