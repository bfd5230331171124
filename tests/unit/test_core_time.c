/* SPDX-License-Identifier: Apache-2.0 */
/* Timelines: waits across queues, failures that travel, fds, deadlines. */
#include "mock_world.h"

#include <fcntl.h>
#include <poll.h>
#include <time.h>
#include <unistd.h>

static int64_t monotonic(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int submit_after(struct hal_queue *q, struct hal_cmd cmd, struct hal_point wait,
			struct hal_point *done)
{
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);

	d.cmds = &cmd;
	d.cmd_count = 1;
	d.waits = &wait;
	d.wait_count = 1;
	return hal_submit(q, &d, done);
}

/* A long chain, told from its end: one signal must not eat the stack. */
#define CHAIN 20000

static void chain(void **state)
{
	const char *const options[] = {PLUGINS, "hal.queue_depth=8", NULL};
	struct hal_queue **q = calloc(CHAIN, sizeof(struct hal_queue *));
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct hal_timeline *start;
	struct hal_point p, before;
	struct world w;

	(void)state;
	assert_non_null(q);
	world_open_with(&w, "mock", options);
	world_fill(&w);
	OK(hal_timeline_create(w.dev, &start));
	before = (struct hal_point){start, 1};
	for (int i = 0; i < CHAIN; i++) {
		q[i] = add_queue(w.part, 0);
		d.waits = &before;
		d.wait_count = 1;
		OK(hal_submit(q[i], &d, &p));
		before = p;
	}
	FAILS(hal_wait(&p, 1, 0, HAL_FOREVER), -EDEADLK, "point 1");
	OK(hal_timeline_signal(start, 1));
	OK(hal_wait(&p, 1, 0, HAL_FOREVER));
	/* Back to front: each is waited on by the one behind it, which is done. */
	for (int i = CHAIN; i-- > 0;)
		OK(hal_queue_destroy(q[i]));
	OK(hal_timeline_destroy(start));
	free(q);
	world_close(&w);
}

static void failure_travels(void **state)
{
	struct hal_queue *a, *b, *c;
	struct hal_point pa, pb, pc;
	struct world w;

	(void)state;
	world_open(&w, "mock");
	world_fill(&w);
	a = add_queue(w.part, 0);
	b = add_queue(w.part, 0);
	c = add_queue(w.part, 0);
	/* Waiting before there is anything to wait for is legal. */
	OK(submit_after(c, numbered(&w, 3),
			(struct hal_point){hal_queue_get_timeline(b), 1}, &pc));
	OK(submit_after(b, numbered(&w, 2),
			(struct hal_point){hal_queue_get_timeline(a), 1}, &pb));
	OK(submit_cmd(a, numbered(&w, 1), &pa));
	poll_now(&w);
	assert_int_equal(inflight(&w), 1);
	FAILS(hal_queue_destroy(a), -EBUSY, "queue 0");
	w.mock->fault(w.native, -EIO, "address 0xbeef");
	poll_now(&w);
	FAILS(hal_wait(&pa, 1, 0, 0), -EIO, "0xbeef");
	FAILS(hal_wait(&pb, 1, 0, 0), -ECANCELED, "0xbeef", "queue 1");
	FAILS(hal_wait(&pc, 1, 0, 0), -ECANCELED, "0xbeef", "queue 2");
	FAILS(submit_cmd(c, numbered(&w, 4), NULL), -ECANCELED, "0xbeef");
	OK(hal_queue_destroy(a));
	OK(hal_queue_destroy(b));
	OK(hal_queue_destroy(c));
	world_close(&w);
}

/* Work before the wait that fails still counts. */
static void fails_in_order(void **state)
{
	struct hal_timeline *t;
	struct hal_queue *a, *b;
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct hal_point pa, first, second, sig;
	struct hal_cmd cmd;
	struct world w;
	int err;

	(void)state;
	world_open(&w, "mock");
	world_fill(&w);
	a = add_queue(w.part, 0);
	b = add_queue(w.part, 0);
	OK(hal_timeline_create(w.dev, &t));
	OK(submit_cmd(b, numbered(&w, 1), &first));
	sig = (struct hal_point){t, 5};
	OK(submit_cmd(a, numbered(&w, 2), &pa));
	cmd = numbered(&w, 3);
	d.cmds = &cmd;
	d.cmd_count = 1;
	d.waits = &pa;
	d.wait_count = 1;
	d.signals = &sig;
	d.signal_count = 1;
	OK(hal_submit(b, &d, &second));
	poll_now(&w);
	assert_int_equal(inflight(&w), 2); /* b's first, then a's */
	/* a's goes wrong while b's first still runs. */
	w.mock->complete(w.native, 0, 0);
	w.mock->fault(w.native, -ECANCELED, "x");
	poll_now(&w);
	/* That was b's first: it fails, and so does all behind it. */
	FAILS(hal_wait(&first, 1, 0, 0), -ECANCELED, "x");
	w.mock->complete(w.native, 1, 1);
	poll_now(&w);
	OK(hal_wait(&pa, 1, 0, 0));
	FAILS(hal_wait(&second, 1, 0, 0), -ECANCELED, "x");
	FAILS(hal_wait(&sig, 1, 0, 0), -ECANCELED, "dropped", "x");
	assert_int_equal(hal_timeline_get_value(t, &err), 0);
	assert_int_equal(err, -ECANCELED);
	FAILS(hal_timeline_signal(t, 9), -ECANCELED, "failed");
	OK(hal_timeline_destroy(t));
	OK(hal_queue_destroy(a));
	OK(hal_queue_destroy(b));
	world_close(&w);
}

static void wait_on_failed_behind_running(void **state)
{
	struct hal_queue *a, *b;
	struct hal_point pa, first, second;
	struct world w;

	(void)state;
	world_open(&w, "mock");
	world_fill(&w);
	a = add_queue(w.part, 0);
	b = add_queue(w.part, 0);
	OK(submit_cmd(a, numbered(&w, 1), &pa));
	OK(submit_cmd(b, numbered(&w, 2), &first));
	OK(submit_after(b, numbered(&w, 3), pa, &second));
	poll_now(&w);
	w.mock->fault(w.native, -EIO, "gone wrong");
	poll_now(&w);
	/* b's first is still on the device and its point can be reached. */
	assert_int_equal(inflight(&w), 1);
	FAILS(hal_wait(&first, 1, 0, 0), -ETIMEDOUT, "point 1");
	w.mock->complete(w.native, 1, 1);
	poll_now(&w);
	OK(hal_wait(&first, 1, 0, 0));
	FAILS(hal_wait(&second, 1, 0, 0), -ECANCELED, "gone wrong");
	OK(hal_queue_destroy(a));
	OK(hal_queue_destroy(b));
	world_close(&w);
}

static void any_and_all(void **state)
{
	struct hal_timeline *t[3];
	struct hal_point p[3];
	struct world w;

	(void)state;
	world_open(&w, "mock");
	world_fill(&w);
	for (int i = 0; i < 3; i++) {
		OK(hal_timeline_create(w.dev, &t[i]));
		p[i] = (struct hal_point){t[i], 10};
	}
	OK(hal_timeline_signal(t[1], 10));
	assert_int_equal(hal_wait(p, 3, HAL_WAIT_ANY, 0), 1);
	FAILS(hal_wait(p, 3, 0, 0), -ETIMEDOUT, "timeline 0", "point 10");
	FAILS(hal_wait(p, 3, 0, HAL_FOREVER), -EDEADLK, "timeline 0");
	FAILS(hal_wait(p, 1, HAL_WAIT_ANY, HAL_FOREVER), -EDEADLK, "timeline 0");
	FAILS(hal_timeline_signal(t[1], 10), -EINVAL, "10");
	FAILS(hal_timeline_signal(t[1], 3), -EINVAL, "3", "10");
	OK(hal_timeline_signal(t[0], 11));
	OK(hal_timeline_signal(t[2], UINT64_MAX));
	OK(hal_wait(p, 3, 0, HAL_FOREVER));
	FAILS(hal_wait(p, 0, 0, 0), -EINVAL, "points");
	FAILS(hal_wait(p, 3, 4, 0), -EINVAL, "flags");
	FAILS(hal_wait(p, 3, 0, -1), -EINVAL, "-1");
	OK(hal_timeline_destroy(t[0]));
	FAILS(hal_wait(p, 3, 0, 0), -EINVAL, "timeline", "destroyed");
	OK(hal_timeline_destroy(t[1]));
	OK(hal_timeline_destroy(t[2]));
	world_close(&w);
}

static int readable(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

static void fds(void **state)
{
	struct hal_point p, late;
	struct hal_timeline *t;
	struct world w;
	int fd[4], reused;

	(void)state;
	world_open(&w, "mock");
	world_fill(&w);
	OK(hal_timeline_create(w.dev, &t));
	assert_int_equal(hal_device_poll(w.dev, 0), 0);
	p = (struct hal_point){t, 2};
	late = (struct hal_point){t, 100};
	fd[0] = hal_point_open_fd(&p);
	fd[1] = hal_point_open_fd(&p);
	fd[2] = hal_point_open_fd(&late);
	assert_true(fd[0] >= 0 && fd[1] >= 0 && fd[2] >= 0);
	assert_int_equal(fcntl(fd[0], F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	OK(hal_timeline_signal(t, 1));
	assert_false(readable(fd[0]));
	/* Closing it early must not let the library write into who comes next. */
	close(fd[1]);
	reused = open("/dev/null", O_RDONLY | O_CLOEXEC);
	OK(hal_timeline_signal(t, 2));
	assert_true(readable(fd[0]));
	assert_false(readable(fd[2]));
	fd[3] = hal_point_open_fd(&p); /* reached already */
	assert_true(readable(fd[3]));
	/* Nothing will reach it any more: whoever polls must wake. */
	OK(hal_timeline_destroy(t));
	assert_true(readable(fd[2]));
	FAILS(hal_point_open_fd(&p), -EINVAL, "timeline");
	FAILS(hal_point_open_fd(NULL), -EINVAL, "NULL");
	close(fd[0]);
	close(fd[2]);
	close(fd[3]);
	close(reused);
	world_close(&w);
}

/* Who sleeps on it would do so for ever. */
static void fds_of_a_clock_that_stands_still(void **state)
{
	static const char *const options[] = {PLUGINS, NULL};
	static const char *const targets[] = {"ref", "ref?clock=virtual", "mock"};
	struct hal_partition_desc pd = HAL_INIT(hal_partition_desc);
	struct hal_queue_desc qd = HAL_INIT(hal_queue_desc);
	struct hal_submit_desc sd = HAL_INIT(hal_submit_desc);
	struct hal_cmd cmd = hal_cmd_barrier();
	struct hal_partition *part;
	struct hal_completion end;
	struct hal_device *dev;
	struct hal_queue *q;
	struct hal_point p;

	(void)state;
	pd.units_floor = 1;
	sd.cmds = &cmd;
	sd.cmd_count = 1;
	for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
		int fd[2];

		OK(hal_open(targets[i], options, &dev));
		OK(hal_partition_create(dev, &pd, &part));
		OK(hal_completions_create(dev, 8, &qd.completions));
		OK(hal_queue_create(part, &qd, &q));
		OK(hal_submit(q, &sd, &p));
		FAILS(hal_point_open_fd(&p), -ENOTSUP,
		      "hal_point_open_fd: ", "is simulated", "?clock=real",
		      "hal_device_poll");
		FAILS(hal_completions_get_fd(qd.completions), -ENOTSUP,
		      "hal_completions_get_fd: ", "is simulated", "?clock=real",
		      "hal_device_poll");
		/* A point that is reached keeps nobody waiting. */
		OK(hal_wait(&p, 1, 0, HAL_FOREVER));
		fd[0] = hal_point_open_fd(&p);
		assert_true(readable(fd[0]));
		close(fd[0]);
		assert_int_equal(hal_completions_read(qd.completions, &end, 1, 0), 1);
		/* Who moves time himself may look. */
		assert_int_equal(hal_device_poll(dev, 0), 0);
		OK(hal_submit(q, &sd, &p));
		fd[0] = hal_point_open_fd(&p);
		fd[1] = hal_completions_get_fd(qd.completions);
		for (int n = 0; n < 1000 && !readable(fd[0]); n++)
			assert_true(hal_device_poll(dev, 1000) >= 0);
		assert_true(readable(fd[0]));
		assert_true(readable(fd[1]));
		close(fd[0]);
		OK(hal_queue_destroy(q));
		OK(hal_completions_destroy(qd.completions));
		OK(hal_partition_destroy(part));
		OK(hal_close(dev));
	}
}

static void deadline(void **state)
{
	struct hal_point p;
	struct world w;
	struct hal_queue *q;
	int64_t at;

	(void)state;
	world_open(&w, "mock");
	world_fill(&w);
	q = add_queue(w.part, 0);
	OK(submit_cmd(q, numbered(&w, 1), &p));
	/* The double runs for ever and lets no time pass: only the host's clock ends it.
	 * It says so by answering nothing before until; that is "nothing is left". */
	at = monotonic() + 2000000;
	FAILS(hal_wait(&p, 1, 0, at), -EDEADLK, "queue 0");
	assert_int_equal(inflight(&w), 1);
	w.mock->complete(w.native, 1, 1);
	OK(hal_wait(&p, 1, 0, at)); /* events count before deadlines */
	OK(hal_queue_destroy(q));
	world_close(&w);
}

static void not_yours_to_signal(void **state)
{
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct hal_device *other;
	struct hal_timeline *t;
	struct hal_point p, done;
	struct world w;
	struct hal_queue *q;

	(void)state;
	world_open(&w, "mock");
	world_fill(&w);
	q = add_queue(w.part, 0);
	p = (struct hal_point){hal_queue_get_timeline(q), 5};
	FAILS(hal_timeline_signal(p.timeline, 5), -EINVAL, "queue");
	FAILS(hal_timeline_destroy(p.timeline), -EINVAL, "queue");
	d.signals = &p;
	d.signal_count = 1;
	FAILS(hal_submit(q, &d, NULL), -EINVAL, "signals[0]");
	OK(hal_open("mock", NULL, &other));
	OK(hal_timeline_create(other, &t));
	p = (struct hal_point){t, 1};
	/* Work may signal a timeline of another device; then it cannot be destroyed. */
	OK(hal_submit(q, &d, &done));
	FAILS(hal_timeline_destroy(t), -EBUSY, "signals (1) use it");
	OK(hal_wait(&done, 1, 0, HAL_FOREVER));
	assert_int_equal(hal_timeline_get_value(t, NULL), 1);
	FAILS(hal_close(other), -EBUSY, "1 timeline");
	OK(hal_timeline_destroy(t));
	OK(hal_close(other));
	FAILS(hal_submit(q, &d, NULL), -EINVAL, "signals[0]", "destroyed");
	OK(hal_queue_destroy(q));
	world_close(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(chain),
		cmocka_unit_test(failure_travels),
		cmocka_unit_test(fails_in_order),
		cmocka_unit_test(wait_on_failed_behind_running),
		cmocka_unit_test(any_and_all),
		cmocka_unit_test(fds),
		cmocka_unit_test(fds_of_a_clock_that_stands_still),
		cmocka_unit_test(deadline),
		cmocka_unit_test(not_yours_to_signal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
