/* SPDX-License-Identifier: Apache-2.0 */
/* clock=real: the engine's own thread, several submitting ones, sleeping and waking. */
#define _GNU_SOURCE
#include "mock_world.h"
#include "tests/scan.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 4, ROUNDS = 2000, NAPS = 200, FDS = 64, FD_ROUNDS = 1000 };

static int64_t in_ms(int64_t ms)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec + ms * 1000000;
}

/* The device's end: completes whatever is in flight, until it is told to stop. */
struct worker {
	struct world *w;
	atomic_int stop;
};

static void *work(void *arg)
{
	struct worker *k = arg;

	while (atomic_load(&k->stop) == 0) {
		k->w->mock->complete(k->w->native, 4, 10);
		sched_yield();
	}
	return NULL;
}

struct submitter {
	struct world *w;
	struct hal_queue *q;
	struct hal_timeline *shared;
	uint32_t id;
	const char *bad;
};

static void *submit_many(void *arg)
{
	struct submitter *s = arg;
	struct hal_point p = {NULL, 0};

	for (uint32_t i = 0; i < ROUNDS; i++) {
		int err;

		while ((err = submit_cmd(s->q, numbered(s->w, i), &p)) == -EAGAIN)
			sched_yield();
		if (err != 0 || p.value != i + 1) {
			s->bad = "hal_submit";
			return NULL;
		}
		if (i % 64 == s->id && hal_wait(&p, 1, 0, HAL_FOREVER) != 0) {
			s->bad = "hal_wait";
			return NULL;
		}
	}
	if (hal_wait(&p, 1, 0, HAL_FOREVER) != 0)
		s->bad = "the last hal_wait";
	return NULL;
}

static void many_threads(const char *target)
{
	struct hal_stats st = HAL_INIT(hal_stats);
	struct submitter s[THREADS];
	pthread_t threads[THREADS], device;
	struct worker k;
	struct world w;

	world_open(&w, target);
	world_fill(&w);
	k.w = &w;
	atomic_init(&k.stop, 0);
	assert_int_equal(pthread_create(&device, NULL, work, &k), 0);
	for (uint32_t i = 0; i < THREADS; i++) {
		memset(&s[i], 0, sizeof(s[i]));
		s[i].w = &w;
		s[i].id = i;
		s[i].q = add_queue(w.part, (int32_t)i);
		assert_int_equal(pthread_create(&threads[i], NULL, submit_many, &s[i]),
				 0);
	}
	for (uint32_t i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		if (s[i].bad != NULL)
			fail_msg("thread %u: %s", i, s[i].bad);
	}
	atomic_store(&k.stop, 1);
	pthread_join(device, NULL);
	OK(hal_partition_get_stats(w.part, &st));
	assert_int_equal(st.submitted, THREADS * ROUNDS);
	assert_int_equal(st.completed, THREADS * ROUNDS);
	for (uint32_t i = 0; i < THREADS; i++)
		OK(hal_queue_destroy(s[i].q));
	world_close(&w);
}

static void threads_with_event_fd(void **state)
{
	(void)state;
	many_threads("mock?clock=real");
}

static void threads_without_event_fd(void **state)
{
	(void)state;
	many_threads("mock?clock=real&eventfd=no");
}

/* Signals a timeline as far as it is allowed to. */
struct signaller {
	struct hal_timeline *t;
	atomic_uint allowed;
};

static void *signal_allowed(void *arg)
{
	struct signaller *s = arg;

	for (uint32_t i = 1; i <= FD_ROUNDS; i++) {
		while (atomic_load(&s->allowed) < i)
			sched_yield();
		if (hal_timeline_signal(s->t, i) != 0)
			return NULL;
	}
	return arg;
}

/* Whoever has waited for a point finds its fds readable, without waiting again.  There
 * are many, so that it takes a while until the last is told; half of the rounds look
 * instead of sleeping, as an event loop does. */
static void fds_with_the_point(void **state)
{
	struct pollfd fds[FDS];
	struct signaller s;
	pthread_t thread;
	struct world w;
	void *good;

	(void)state;
	world_open(&w, "mock?clock=real");
	OK(hal_timeline_create(w.dev, &s.t));
	atomic_init(&s.allowed, 0);
	assert_int_equal(pthread_create(&thread, NULL, signal_allowed, &s), 0);
	for (uint32_t i = 1; i <= FD_ROUNDS; i++) {
		struct hal_point p = {s.t, i};
		int err, ready;

		for (uint32_t k = 0; k < FDS; k++) {
			fds[k] = (struct pollfd){hal_point_open_fd(&p), POLLIN, 0};
			assert_true(fds[k].fd >= 0);
		}
		atomic_store(&s.allowed, i);
		while ((err = hal_wait(&p, 1, 0, (i & 1) != 0 ? 0 : HAL_FOREVER)) ==
		       -ETIMEDOUT)
			;
		ready = poll(&fds[FDS - 1], 1, 0);
		ready += poll(fds, FDS - 1, 0);
		for (uint32_t k = 0; k < FDS; k++)
			close(fds[k].fd);
		assert_int_equal(err, 0);
		if (ready != FDS)
			fail_msg("round %u: reached, and %d of %d fds are readable", i,
				 ready, FDS);
	}
	pthread_join(thread, &good);
	assert_ptr_equal(good, &s);
	OK(hal_timeline_destroy(s.t));
	world_close(&w);
}

/* One at a time, with an engine that sleeps between: no wake-up is ever lost. */
static void naps(void **state)
{
	const char *const options[] = {PLUGINS, "hal.spin_us=0", NULL};
	struct worker k;
	pthread_t device;
	struct hal_point p;
	struct world w;
	struct hal_queue *q;

	(void)state;
	world_open_with(&w, "mock?clock=real", options);
	world_fill(&w);
	q = add_queue(w.part, 0);
	k.w = &w;
	atomic_init(&k.stop, 0);
	assert_int_equal(pthread_create(&device, NULL, work, &k), 0);
	for (uint32_t i = 0; i < NAPS; i++) {
		OK(submit_cmd(q, numbered(&w, i), &p));
		OK(hal_wait(&p, 1, 0, in_ms(100000)));
	}
	atomic_store(&k.stop, 1);
	pthread_join(device, NULL);
	OK(hal_queue_destroy(q));
	world_close(&w);
}

static void *signal_later(void *arg)
{
	struct hal_timeline **t = arg;

	for (uint64_t i = 1; i <= NAPS; i++)
		if (hal_timeline_signal(t[0], i) != 0)
			return NULL;
	return arg;
}

/* Signals of the host, waits of queues and of the host; nothing runs on the device. */
static void host_signals(void **state)
{
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct hal_point wait, signal, done[2];
	struct hal_timeline *t, *u;
	struct world w;
	struct hal_queue *q;
	pthread_t other;
	void *ok;

	(void)state;
	world_open(&w, "mock?clock=real");
	world_fill(&w);
	q = add_queue(w.part, 0);
	OK(hal_timeline_create(w.dev, &t));
	OK(hal_timeline_create(w.dev, &u));
	wait = (struct hal_point){t, NAPS};
	signal = (struct hal_point){u, 9};
	d.waits = &wait;
	d.wait_count = 1;
	d.signals = &signal;
	d.signal_count = 1;
	OK(hal_submit(q, &d, &done[0]));
	done[1] = signal;
	FAILS(hal_wait(done, 2, 0, 0), -ETIMEDOUT, "queue 0");
	FAILS(hal_wait(done, 2, HAL_WAIT_ANY, in_ms(2)), -ETIMEDOUT, "queue 0");
	assert_int_equal(pthread_create(&other, NULL, signal_later, &t), 0);
	OK(hal_wait(done, 2, 0, in_ms(100000)));
	pthread_join(other, &ok);
	assert_non_null(ok);
	assert_int_equal(hal_timeline_get_value(u, NULL), 9);
	OK(hal_timeline_destroy(t));
	OK(hal_timeline_destroy(u));
	OK(hal_queue_destroy(q));
	world_close(&w);
}

/* Suspends from one thread while others submit; nothing is lost. */
static void suspend_under_load(void **state)
{
	struct submitter s;
	struct worker k;
	pthread_t device, thread;
	struct world w;
	struct hal_stats st = HAL_INIT(hal_stats);
	struct hal_point quiet;

	(void)state;
	world_open(&w, "mock?clock=real&eventfd=no");
	world_fill(&w);
	memset(&s, 0, sizeof(s));
	s.w = &w;
	s.q = add_queue(w.part, 0);
	k.w = &w;
	atomic_init(&k.stop, 0);
	assert_int_equal(pthread_create(&device, NULL, work, &k), 0);
	assert_int_equal(pthread_create(&thread, NULL, submit_many, &s), 0);
	for (int i = 0; i < 100; i++) {
		OK(hal_queue_suspend(s.q, HAL_SUSPEND_KILL, &quiet));
		while (hal_wait(&quiet, 1, 0, 0) != 0)
			w.mock->quiet(w.native, 1);
		OK(hal_queue_resume(s.q));
	}
	pthread_join(thread, NULL);
	if (s.bad != NULL)
		fail_msg("%s", s.bad);
	atomic_store(&k.stop, 1);
	pthread_join(device, NULL);
	OK(hal_queue_get_stats(s.q, &st));
	assert_int_equal(st.completed, ROUNDS);
	assert_int_equal(st.suspends, 100);
	OK(hal_queue_destroy(s.q));
	world_close(&w);
}

static void close_while_asleep(void **state)
{
	const char *const options[] = {PLUGINS, "hal.spin_us=0", NULL};
	struct world w;

	(void)state;
	for (int i = 0; i < 50; i++) {
		world_open_with(&w, "mock?clock=real", options);
		OK(hal_close(w.dev));
	}
}

/* Only hal_wait is a cancellation point: who is to be cancelled gets as far as that. */
struct cancelled {
	struct world *w;
	struct hal_queue *q;
	struct hal_timeline *never;
	const char *bad;
	atomic_int at_wait;
};

static const char *all_but_wait(struct cancelled *c)
{
	const char *const options[] = {PLUGINS, NULL};
	struct hal_device_info info = HAL_INIT(hal_device_info);
	struct hal_queue_desc qd = HAL_INIT(hal_queue_desc);
	struct hal_completion end;
	struct hal_device *other;
	struct hal_point p;
	struct hal_queue *q;
	int fd;

	if (hal_completions_create(c->w->dev, 8, &qd.completions) != 0 ||
	    hal_queue_create(c->w->part, &qd, &q) != 0)
		return "hal_queue_create";
	if (submit_cmd(c->q, numbered(c->w, 1), &p) != 0 ||
	    submit_cmd(q, numbered(c->w, 2), NULL) != 0)
		return "hal_submit";
	fd = hal_point_open_fd(&p);
	if (fd < 0)
		return "hal_point_open_fd";
	if (hal_completions_read(qd.completions, &end, 1, in_ms(100000)) != 1)
		return "hal_completions_read";
	if (hal_queue_destroy(q) != 0 || hal_completions_destroy(qd.completions) != 0)
		return "hal_queue_destroy";
	if (scan_device(0, NULL, &info) != 0)
		return "hal_device_probe";
	if (hal_open("mock?clock=real", options, &other) != 0 ||
	    hal_trace_start(other, "/dev/null") != 0 || hal_trace_stop(other) != 0 ||
	    hal_close(other) != 0)
		return "hal_open";
	while (hal_timeline_get_value(p.timeline, NULL) < p.value)
		sched_yield();
	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	(void)close(fd);
	(void)pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
	return NULL;
}

static void *calls_everything(void *arg)
{
	struct cancelled *c = arg;
	struct hal_point never = {c->never, 1};

	(void)pthread_cancel(pthread_self());
	for (int i = 0; i < 100 && c->bad == NULL; i++)
		c->bad = all_but_wait(c);
	atomic_store(&c->at_wait, 1);
	(void)hal_wait(&never, 1, 0, HAL_FOREVER);
	c->bad = "hal_wait has returned";
	return NULL;
}

static void cancelled_in_hal_wait_alone(void **state)
{
	const char *const options[] = {PLUGINS, "hal.spin_us=0", NULL};
	struct cancelled c = {NULL};
	struct worker k;
	struct world w;
	pthread_t device, thread;
	void *result;

	(void)state;
#ifdef __SANITIZE_THREAD__
	skip(); /* it sees nothing that a thread does after it was cancelled in libc */
#endif
	world_open_with(&w, "mock?clock=real", options);
	world_fill(&w);
	c.w = &w;
	c.q = add_queue(w.part, 0);
	OK(hal_timeline_create(w.dev, &c.never));
	k.w = &w;
	atomic_init(&k.stop, 0);
	pthread_create(&device, NULL, work, &k);
	pthread_create(&thread, NULL, calls_everything, &c);
	pthread_join(thread, &result);
	atomic_store(&k.stop, 1);
	pthread_join(device, NULL);
	if (c.bad != NULL)
		fail_msg("%s", c.bad);
	assert_int_equal(atomic_load(&c.at_wait), 1);
	assert_true(result == PTHREAD_CANCELED);
	/* Nothing of its wait has stayed behind. */
	OK(hal_timeline_destroy(c.never));
	OK(hal_queue_destroy(c.q));
	world_close(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads_with_event_fd),
		cmocka_unit_test(threads_without_event_fd),
		cmocka_unit_test(fds_with_the_point),
		cmocka_unit_test(naps),
		cmocka_unit_test(host_signals),
		cmocka_unit_test(suspend_under_load),
		cmocka_unit_test(close_while_asleep),
		cmocka_unit_test(cancelled_in_hal_wait_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
