/* SPDX-License-Identifier: Apache-2.0 */
/* Suspend and resume: nothing lost, nothing ended twice, everything accounted. */
#include "mock_world.h"

static struct hal_cmd replayable(struct world *w, uint32_t n, int may)
{
	struct hal_cmd c = numbered(w, n);

	if (!may)
		c.flags = 0;
	return c;
}

static void kill_and_replay(void **state)
{
	struct hal_point p[4], quiet;
	struct hal_stats s;
	struct world w;
	struct hal_queue *q;
	uint32_t op;

	(void)state;
	q = world_queue(&w, "mock");
	for (uint32_t i = 0; i < 4; i++)
		OK(submit_cmd(q, numbered(&w, i), &p[i]));
	poll_now(&w);
	w.mock->complete(w.native, 1, 10);
	poll_now(&w);
	w.mock->advance(w.native, 7);
	OK(hal_queue_suspend(q, HAL_SUSPEND_KILL, &quiet));
	FAILS(hal_queue_suspend(q, HAL_SUSPEND_KILL, NULL), -EBUSY, "suspended");
	assert_false(reached(quiet));
	FAILS(hal_queue_destroy(q), -EBUSY, "queue");
	w.mock->quiet(w.native, 3);
	poll_now(&w);
	assert_true(reached(quiet));
	assert_int_equal(inflight(&w), 0);
	/* Held: new work too. */
	for (int i = 0; i < 3; i++)
		poll_now(&w);
	assert_int_equal(inflight(&w), 0);
	assert_false(reached(p[1]));
	OK(hal_queue_resume(q));
	FAILS(hal_queue_resume(q), -EINVAL, "not suspended");
	poll_now(&w);
	/* The killed ones come first, in their order. */
	assert_int_equal(w.mock->peek(w.native, 0, &op), 1);
	assert_int_equal(w.mock->peek(w.native, 1, &op), 2);
	for (int i = 0; i < 3; i++) {
		w.mock->complete(w.native, 1, 10);
		poll_now(&w);
	}
	assert_true(reached(p[3]));
	s = queue_stats(q);
	assert_int_equal(s.completed, 4);
	assert_int_equal(s.dropped + s.failed, 0);
	assert_int_equal(s.suspends, 1);
	assert_int_equal(s.suspend_ns, 3);
	assert_int_equal(s.suspend_max_ns, 3);
	assert_int_equal(s.stop_max_ns[HAL_SUSPEND_KILL], 3);
	for (uint32_t mode = 0; mode < HAL_SUSPEND_KILL; mode++)
		assert_int_equal(s.stop_max_ns[mode], 0);
	assert_int_equal(s.replayed, 1); /* the other one had not started */
	assert_int_equal(s.replayed_ns, 3);
	assert_int_equal(s.busy_ns, 43);
	world_end(&w, q);
}

static void kill_refused(void **state)
{
	struct hal_point p, quiet;
	struct world w;
	struct hal_queue *q;

	(void)state;
	q = world_queue(&w, "mock");
	OK(submit_cmd(q, replayable(&w, 0, 1), NULL));
	OK(submit_cmd(q, replayable(&w, 1, 0), &p));
	poll_now(&w);
	FAILS(hal_queue_suspend(q, HAL_SUSPEND_KILL, &quiet), -ENOTSUP, "KILL", "fill",
	      "REPLAYABLE");
	FAILS(hal_queue_suspend(q, HAL_SUSPEND_FOLD, &quiet), -ENOTSUP, "FOLD");
	FAILS(hal_queue_suspend(q, 4, &quiet), -EINVAL, "4");
	FAILS(hal_queue_resume(q), -EINVAL, "not suspended");
	w.mock->complete(w.native, 2, 1);
	poll_now(&w);
	assert_true(reached(p));
	assert_int_equal(queue_stats(q).suspends, 0);
	world_end(&w, q);
}

/* A device without any mode: the engine holds back what it has not given. */
static void drain_of_the_core(void **state)
{
	struct hal_device_info i = HAL_INIT(hal_device_info);
	struct hal_point p[4], quiet;
	struct mock_counts c;
	struct world w;
	struct hal_queue *q;

	(void)state;
	q = world_queue(&w, "mock?modes=0");
	OK(hal_device_get_info(w.dev, &i));
	assert_int_equal(i.suspend_modes, 1u << HAL_SUSPEND_DRAIN);
	assert_int_equal(i.preempt, HAL_PREEMPT_BETWEEN);
	for (uint32_t n = 0; n < 4; n++)
		OK(submit_cmd(q, replayable(&w, n, 0), &p[n]));
	poll_now(&w);
	FAILS(hal_queue_suspend(q, HAL_SUSPEND_KILL, &quiet), -ENOTSUP, "KILL");
	OK(hal_queue_suspend(q, HAL_SUSPEND_DRAIN, &quiet));
	w.mock->complete(w.native, 1, 5);
	poll_now(&w);
	assert_false(reached(quiet));
	w.mock->complete(w.native, 1, 5);
	poll_now(&w);
	assert_true(reached(quiet));
	assert_true(reached(p[1]));
	assert_int_equal(inflight(&w), 0);
	w.mock->counts(w.native, &c);
	assert_int_equal(c.suspends, 0); /* the device was not asked */
	assert_int_equal(queue_stats(q).suspend_ns, 10);
	OK(hal_queue_resume(q));
	poll_now(&w);
	assert_int_equal(inflight(&w), 2);
	w.mock->complete(w.native, 2, 1);
	poll_now(&w);
	assert_true(reached(p[3]));
	world_end(&w, q);
}

static void idle_is_quiet_at_once(void **state)
{
	struct hal_point p, quiet;
	struct mock_counts c;
	struct world w;
	struct hal_queue *q;

	(void)state;
	q = world_queue(&w, "mock");
	OK(submit_cmd(q, numbered(&w, 1), &p));
	/* Submitted, but the device does not have it. */
	OK(hal_queue_suspend(q, HAL_SUSPEND_KILL, &quiet));
	assert_int_equal(hal_wait(&quiet, 1, 0, HAL_FOREVER), 0);
	FAILS(hal_wait(&p, 1, 0, HAL_FOREVER), -EDEADLK, "queue 0", "no work");
	w.mock->counts(w.native, &c);
	assert_int_equal(c.suspends + c.submits, 0);
	OK(hal_queue_resume(q));
	poll_now(&w);
	w.mock->complete(w.native, 1, 1);
	assert_int_equal(hal_wait(&p, 1, 0, HAL_FOREVER), 0);
	/* Suspended queues without work may go. */
	OK(hal_queue_suspend(q, HAL_SUSPEND_DRAIN, &quiet));
	world_end(&w, q);
}

/* A resume that comes before the device has let go is not forgotten. */
static void resume_early(void **state)
{
	struct hal_point p, quiet;
	struct mock_counts c;
	struct world w;
	struct hal_queue *q;

	(void)state;
	q = world_queue(&w, "mock");
	OK(submit_cmd(q, numbered(&w, 1), &p));
	poll_now(&w);
	OK(hal_queue_suspend(q, HAL_SUSPEND_KILL, &quiet));
	OK(hal_queue_resume(q));
	FAILS(hal_queue_resume(q), -EINVAL, "not suspended");
	assert_false(reached(quiet));
	w.mock->quiet(w.native, 2);
	poll_now(&w);
	assert_true(reached(quiet));
	w.mock->counts(w.native, &c);
	assert_int_equal(c.resumes, 1);
	poll_now(&w);
	assert_int_equal(inflight(&w), 1);
	w.mock->complete(w.native, 1, 1);
	assert_int_equal(hal_wait(&p, 1, 0, HAL_FOREVER), 0);
	world_end(&w, q);
}

static void resume_refused(void **state)
{
	struct hal_point p, quiet;
	struct world w;
	struct hal_queue *q;

	(void)state;
	q = world_queue(&w, "mock");
	OK(submit_cmd(q, numbered(&w, 1), &p));
	poll_now(&w);
	OK(hal_queue_suspend(q, HAL_SUSPEND_KILL, &quiet));
	w.mock->quiet(w.native, 2);
	poll_now(&w);
	w.mock->refuse_resume(w.native, 1, EIO);
	FAILS(hal_queue_resume(q), -EIO, "not to resume");
	/* Still suspended: it can be tried again. */
	OK(hal_queue_resume(q));
	poll_now(&w);
	w.mock->complete(w.native, 1, 1);
	assert_int_equal(hal_wait(&p, 1, 0, HAL_FOREVER), 0);
	world_end(&w, q);
}

/* The command faults while the device is being asked to let go. */
static void fault_while_suspending(void **state)
{
	struct hal_point p[3], quiet;
	struct hal_stats s;
	struct world w;
	struct hal_queue *q;

	(void)state;
	q = world_queue(&w, "mock");
	for (uint32_t i = 0; i < 3; i++)
		OK(submit_cmd(q, numbered(&w, i), &p[i]));
	poll_now(&w);
	OK(hal_queue_suspend(q, HAL_SUSPEND_KILL, &quiet));
	w.mock->fault(w.native, -EIO, "granule 7");
	w.mock->quiet(w.native, 2);
	poll_now(&w);
	assert_true(reached(quiet));
	FAILS(hal_wait(&p[2], 1, 0, HAL_FOREVER), -EIO, "granule 7");
	s = queue_stats(q);
	assert_int_equal(s.failed, 1);
	assert_int_equal(s.dropped, 2);
	assert_int_equal(s.completed, 0);
	world_end(&w, q);
}

/* The device refuses a command behind one that is then killed: both run again. */
static void refused_behind_the_killed(void **state)
{
	struct hal_point p[3], quiet;
	struct hal_stats s;
	struct world w;
	struct hal_queue *q;

	(void)state;
	q = world_queue(&w, "mock");
	OK(submit_cmd(q, numbered(&w, 0), &p[0]));
	poll_now(&w);
	w.mock->refuse(w.native, 1, EIO);
	OK(submit_cmd(q, numbered(&w, 1), &p[1]));
	OK(submit_cmd(q, numbered(&w, 2), &p[2]));
	poll_now(&w);
	assert_int_equal(inflight(&w), 1);
	OK(hal_queue_suspend(q, HAL_SUSPEND_KILL, &quiet));
	w.mock->quiet(w.native, 2);
	poll_now(&w);
	assert_true(reached(quiet));
	OK(hal_queue_resume(q));
	for (int i = 0; i < 3; i++) {
		poll_now(&w);
		w.mock->complete(w.native, 1, 10);
	}
	poll_now(&w);
	assert_true(reached(p[2]));
	s = queue_stats(q);
	assert_int_equal(s.completed, 3);
	assert_int_equal(s.failed + s.dropped, 0);
	/* A later failure has its own text. */
	OK(submit_cmd(q, numbered(&w, 0), &p[0]));
	poll_now(&w);
	w.mock->fault(w.native, -EIO, "granule 9");
	poll_now(&w);
	FAILS(hal_wait(p, 1, 0, HAL_FOREVER), -EIO, "granule 9");
	world_end(&w, q);
}

/* What ended before the kill took hold is not run again. */
static void done_before_the_kill(void **state)
{
	struct hal_point p[2], quiet;
	struct hal_stats s;
	struct world w;
	struct hal_queue *q;
	uint32_t op;

	(void)state;
	q = world_queue(&w, "mock");
	OK(submit_cmd(q, numbered(&w, 0), &p[0]));
	OK(submit_cmd(q, numbered(&w, 1), &p[1]));
	poll_now(&w);
	OK(hal_queue_suspend(q, HAL_SUSPEND_KILL, &quiet));
	w.mock->complete(w.native, 1, 4);
	w.mock->quiet(w.native, 2);
	poll_now(&w);
	assert_true(reached(p[0]));
	assert_false(reached(p[1]));
	OK(hal_queue_resume(q));
	poll_now(&w);
	assert_int_equal(inflight(&w), 1);
	assert_int_equal(w.mock->peek(w.native, 0, &op), 1);
	w.mock->complete(w.native, 1, 4);
	poll_now(&w);
	assert_true(reached(p[1]));
	s = queue_stats(q);
	assert_int_equal(s.completed, 2);
	assert_int_equal(s.replayed, 1);
	world_end(&w, q);
}

/* Signals, waits and callbacks between killed commands happen once. */
static void told_once(void **state)
{
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct hal_point p, quiet, sig[2], go;
	struct hal_timeline *t, *gate;
	struct world w;
	struct hal_queue *q;
	struct hal_cmd cmd;

	(void)state;
	q = world_queue(&w, "mock");
	OK(hal_timeline_create(w.dev, &t));
	OK(hal_timeline_create(w.dev, &gate));
	OK(hal_timeline_signal(gate, 1));
	go = (struct hal_point){gate, 1};
	for (uint32_t i = 0; i < 2; i++) {
		sig[i] = (struct hal_point){t, i + 1};
		cmd = numbered(&w, i);
		d.cmds = &cmd;
		d.cmd_count = 1;
		d.waits = &go;
		d.wait_count = 1;
		d.signals = &sig[i];
		d.signal_count = 1;
		OK(hal_submit(q, &d, &p));
	}
	poll_now(&w);
	assert_int_equal(inflight(&w), 2);
	OK(hal_queue_suspend(q, HAL_SUSPEND_KILL, &quiet));
	w.mock->quiet(w.native, 1);
	poll_now(&w);
	assert_int_equal(hal_timeline_get_value(t, NULL), 0);
	OK(hal_queue_resume(q));
	poll_now(&w);
	FAILS(hal_timeline_destroy(t), -EBUSY, "2");
	w.mock->complete(w.native, 1, 1);
	poll_now(&w);
	assert_int_equal(hal_timeline_get_value(t, NULL), 1);
	w.mock->complete(w.native, 1, 1);
	poll_now(&w);
	assert_true(reached(p));
	OK(hal_timeline_destroy(t));
	OK(hal_timeline_destroy(gate));
	world_end(&w, q);
}

/* A command of effort's is killed so often before it begins, and then makes way. */
static void killed_before_it_begins(struct world *w, struct hal_queue *effort,
				    struct hal_queue *urgent, int time_passes, int times)
{
	struct hal_point done, first;

	OK(submit_cmd(effort, numbered(w, 1), &done));
	poll_now(w);
	for (int i = 0; i < times; i++) {
		if (time_passes)
			w->mock->advance(w->native, 1);
		OK(hal_queue_suspend(effort, HAL_SUSPEND_KILL, NULL));
		w->mock->quiet(w->native, 0);
		poll_now(w);
		assert_int_equal(inflight(w), 0);
		OK(hal_queue_resume(effort));
		poll_now(w);
		assert_int_equal(inflight(w), 1);
	}
	assert_int_equal(queue_stats(effort).replayed, 0);
	OK(submit_cmd(urgent, numbered(w, 2), &first));
	poll_now(w);
	w->mock->quiet(w->native, 0);
	while (inflight(w) != 0) {
		w->mock->complete(w->native, 1, 1);
		poll_now(w);
	}
	assert_true(reached(done));
	assert_true(reached(first));
}

/* That has lost nothing, and it may be killed again; but not for ever, whether time
 * passes in between or not.  The next command begins anew. */
static void kills_that_cost_nothing(void **state)
{
	static const char *const options[] = {PLUGINS, "policy.kills=1",
					      "policy.preempt=kill", NULL};
	struct hal_queue_desc d = HAL_INIT(hal_queue_desc);
	struct hal_queue *effort, *urgent;
	uint32_t suspends = 0;
	struct mock_counts c;
	struct world w;

	(void)state;
	world_open_with(&w, "mock", options);
	world_fill(&w);
	d.service_class = HAL_CLASS_BEST_EFFORT;
	OK(hal_queue_create(w.part, &d, &effort));
	d.service_class = HAL_CLASS_LATENCY;
	OK(hal_queue_create(w.part, &d, &urgent));
	for (int turn = 0; turn < 4; turn++) {
		int times = 1 + turn / 2;

		killed_before_it_begins(&w, effort, urgent, turn % 2, times);
		suspends += (uint32_t)times + 1;
		w.mock->counts(w.native, &c);
		assert_int_equal(c.suspends, suspends);
		assert_int_equal(c.mode,
				 times == 1 ? HAL_SUSPEND_KILL : HAL_SUSPEND_DRAIN);
	}
	OK(hal_queue_destroy(effort));
	OK(hal_queue_destroy(urgent));
	world_close(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kill_and_replay),
		cmocka_unit_test(kill_refused),
		cmocka_unit_test(refused_behind_the_killed),
		cmocka_unit_test(drain_of_the_core),
		cmocka_unit_test(idle_is_quiet_at_once),
		cmocka_unit_test(resume_early),
		cmocka_unit_test(resume_refused),
		cmocka_unit_test(fault_while_suspending),
		cmocka_unit_test(done_before_the_kill),
		cmocka_unit_test(told_once),
		cmocka_unit_test(kills_that_cost_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
