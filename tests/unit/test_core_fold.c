/* SPDX-License-Identifier: Apache-2.0 */
/* Commands that the device keeps while their queue is suspended (FOLD, SAVE): they are in
 * nobody's way, lost by nobody, and go with their queue or with the device. */
#include "mock_world.h"

static struct hal_queue *of_class(struct hal_partition *p, uint16_t service_class)
{
	struct hal_queue_desc d = HAL_INIT(hal_queue_desc);
	struct hal_queue *q;

	d.service_class = service_class;
	OK(hal_queue_create(p, &d, &q));
	return q;
}

static void run(struct world *w, uint32_t n, uint64_t ns)
{
	w->mock->complete(w->native, n, ns);
	poll_now(w);
}

/* n commands of q on the device, and stopped inside after ns. */
static struct hal_point stopped(struct world *w, struct hal_queue *q, uint32_t mode,
				uint32_t n, uint64_t ns)
{
	struct hal_point done = {0}, quiet;

	for (uint32_t i = 0; i < n; i++) {
		struct hal_cmd c = numbered(w, i);

		c.flags = 0; /* may not run twice */
		OK(submit_cmd(q, c, &done));
	}
	poll_now(w);
	OK(hal_queue_suspend(q, mode, &quiet));
	poll_now(w);
	assert_false(reached(quiet));
	w->mock->quiet(w->native, ns);
	poll_now(w);
	assert_true(reached(quiet));
	assert_int_equal(inflight(w), n);
	return done;
}

static void goes_on(void **state)
{
	static const uint32_t modes[] = {HAL_SUSPEND_FOLD, HAL_SUSPEND_SAVE};
	struct mock_counts c;
	struct hal_point done;
	struct hal_stats s;
	struct hal_queue *q;
	struct world w;

	(void)state;
	for (int m = 0; m < 2; m++) {
		world_open(&w, "mock?modes=15");
		world_fill(&w);
		q = add_queue(w.part, 0);
		done = stopped(&w, q, modes[m], 2, 5);
		w.mock->advance(w.native, 100);
		run(&w, 2, 1); /* there is nothing that could end */
		assert_false(reached(done));
		FAILS(hal_wait(&done, 1, 0, HAL_FOREVER), -EDEADLK, "");
		OK(hal_queue_resume(q));
		FAILS(hal_queue_resume(q), -EINVAL, "not suspended");
		run(&w, 1, 10);
		/* Stopped once more, now the second, which has not begun before. */
		OK(hal_queue_suspend(q, modes[m], NULL));
		w.mock->quiet(w.native, 3);
		poll_now(&w);
		OK(hal_queue_resume(q));
		run(&w, 1, 20);
		assert_true(reached(done));
		w.mock->counts(w.native, &c);
		assert_int_equal(c.submits, 2);
		s = queue_stats(q);
		assert_int_equal(s.completed, 2);
		assert_int_equal(s.suspends, 2);
		assert_int_equal(s.suspend_ns, 8);
		assert_int_equal(s.saved_bytes, 2 * MOCK_SAVED_BYTES);
		assert_int_equal(s.replayed + s.failed + s.dropped, 0);
		assert_int_equal(s.busy_ns, 5 + 10 + 3 + 20);
		/* The first stood still for 100, the second waited for all of that. */
		assert_int_equal(s.queueing_ns, 100);
		OK(hal_queue_destroy(q));
		world_close(&w);
	}
}

/* It holds no place in its partition, and no time passes for it. */
static void in_nobodys_way(void **state)
{
	static const char *const options[] = {PLUGINS, "hal.partition_inflight=1", NULL};
	struct hal_point done, other;
	struct hal_queue *q, *r;
	struct hal_stats s;
	struct world w;

	(void)state;
	world_open_with(&w, "mock?modes=15", options);
	world_fill(&w);
	q = add_queue(w.part, 0);
	r = add_queue(w.part, 0);
	done = stopped(&w, q, HAL_SUSPEND_FOLD, 1, 5);
	for (uint32_t i = 0; i < 3; i++) {
		OK(submit_cmd(r, numbered(&w, i), &other));
		poll_now(&w);
		assert_int_equal(inflight(&w), 2);
		run(&w, 1, 10);
		assert_true(reached(other));
	}
	/* Both have a place at a time when it goes on while another runs. */
	OK(submit_cmd(r, numbered(&w, 7), &other));
	poll_now(&w);
	OK(hal_queue_resume(q));
	OK(submit_cmd(r, numbered(&w, 8), &other));
	poll_now(&w);
	assert_int_equal(inflight(&w), 2);
	run(&w, 1, 10);
	assert_true(reached(done));
	assert_int_equal(inflight(&w), 1);
	run(&w, 1, 10);
	assert_int_equal(inflight(&w), 1);
	run(&w, 1, 10);
	assert_true(reached(other));
	s = (struct hal_stats)HAL_INIT(hal_stats);
	OK(hal_partition_get_stats(w.part, &s));
	assert_int_equal(s.busy_ns, 5 + 3 * 10 + 3 * 10);
	OK(hal_queue_destroy(q));
	OK(hal_queue_destroy(r));
	world_close(&w);
}

/* Resumed before the device has let go. */
static void resumed_early(void **state)
{
	struct hal_point done, quiet;
	struct hal_queue *q;
	struct world w;

	(void)state;
	world_open(&w, "mock?modes=15");
	world_fill(&w);
	q = add_queue(w.part, 0);
	OK(submit_cmd(q, numbered(&w, 0), &done));
	poll_now(&w);
	OK(hal_queue_suspend(q, HAL_SUSPEND_FOLD, &quiet));
	OK(hal_queue_resume(q));
	w.mock->quiet(w.native, 5);
	poll_now(&w);
	assert_true(reached(quiet));
	run(&w, 1, 10);
	assert_true(reached(done));
	assert_int_equal(queue_stats(q).busy_ns, 15);
	OK(hal_queue_destroy(q));
	world_close(&w);
}

/* KILL of what has been stopped before: all that it has run is lost. */
static void killed_later(void **state)
{
	struct hal_point done, quiet;
	struct hal_stats s;
	struct hal_queue *q;
	struct world w;

	(void)state;
	world_open(&w, "mock?modes=15");
	world_fill(&w);
	q = add_queue(w.part, 0);
	OK(submit_cmd(q, numbered(&w, 0), &done));
	poll_now(&w);
	OK(hal_queue_suspend(q, HAL_SUSPEND_FOLD, NULL));
	w.mock->quiet(w.native, 5);
	poll_now(&w);
	FAILS(hal_queue_suspend(q, HAL_SUSPEND_KILL, NULL), -EBUSY, "suspended");
	OK(hal_queue_resume(q));
	OK(hal_queue_suspend(q, HAL_SUSPEND_KILL, &quiet));
	w.mock->quiet(w.native, 2);
	poll_now(&w);
	assert_int_equal(inflight(&w), 0);
	OK(hal_queue_resume(q));
	poll_now(&w);
	run(&w, 1, 30);
	assert_true(reached(done));
	s = queue_stats(q);
	assert_int_equal(s.replayed, 1);
	assert_int_equal(s.replayed_ns, 5 + 2);
	assert_int_equal(s.busy_ns, 5 + 2 + 30);
	OK(hal_queue_destroy(q));
	world_close(&w);
}

static void destroyed(void **state)
{
	static const uint32_t flags[] = {0, HAL_SUSPEND_FINAL};
	struct hal_stats s = HAL_INIT(hal_stats);
	struct hal_point done, waits;
	struct hal_timeline *t;
	struct hal_queue *q, *r;
	struct world w;

	(void)state;
	for (int i = 0; i < 2; i++) {
		world_open(&w, "mock?modes=15");
		world_fill(&w);
		q = add_queue(w.part, 0);
		r = add_queue(w.part, 0);
		(void)stopped(&w, q, HAL_SUSPEND_FOLD | flags[i], 2, 5);
		if (flags[i] == 0)
			OK(submit_cmd(q, numbered(&w, 9), &done)); /* held by the core */
		else
			FAILS(submit_cmd(q, numbered(&w, 9), &done), -ECANCELED,
			      "for good");
		poll_now(&w);
		t = hal_queue_timeline(q);
		waits = (struct hal_point){t, 1};
		{
			struct hal_submit_desc d = HAL_INIT(hal_submit_desc);

			d.waits = &waits;
			d.wait_count = 1;
			OK(hal_submit(r, &d, NULL));
			poll_now(&w);
			/* For good: who waits has heard of it. */
			if (flags[i] == 0)
				FAILS(hal_queue_destroy(q), -EBUSY, "points");
		}
		OK(hal_queue_suspend(r, HAL_SUSPEND_DRAIN, NULL));
		OK(hal_queue_destroy(r));
		OK(hal_queue_destroy(q));
		assert_int_equal(inflight(&w), 0);
		OK(hal_partition_get_stats(w.part, &s));
		assert_int_equal(s.submitted, flags[i] == 0 ? 3 : 2);
		assert_int_equal(s.dropped, s.submitted);
		assert_int_equal(s.failed + s.completed, 0);
		assert_int_equal(s.busy_ns, 5);
		/* Nothing of it holds a place. */
		q = add_queue(w.part, 0);
		for (uint32_t n = 0; n < 20; n++)
			OK(submit_cmd(q, numbered(&w, n), &done));
		poll_now(&w);
		for (int n = 0; n < 20; n++)
			run(&w, 1, 1);
		assert_true(reached(done));
		OK(hal_queue_destroy(q));
		world_close(&w);
	}
}

static void device_lost(void **state)
{
	struct hal_stats s = HAL_INIT(hal_stats);
	struct hal_point done, other;
	struct hal_queue *q, *r;
	struct world w;

	(void)state;
	world_open(&w, "mock?modes=15");
	world_fill(&w);
	q = add_queue(w.part, 0);
	r = add_queue(w.part, 0);
	done = stopped(&w, q, HAL_SUSPEND_FOLD, 2, 5);
	OK(submit_cmd(r, numbered(&w, 0), &other));
	poll_now(&w);
	w.mock->lose(w.native);
	(void)hal_device_poll(w.dev, 0);
	FAILS(hal_wait(&other, 1, 0, HAL_FOREVER), -EIO, "lost");
	FAILS(hal_wait(&done, 1, 0, HAL_FOREVER), -EIO, "lost");
	FAILS(hal_queue_resume(q), -ENODEV, "lost");
	OK(hal_device_get_stats(w.dev, &s));
	assert_int_equal(s.submitted, 3);
	assert_int_equal(s.failed + s.dropped, 3);
	OK(hal_queue_destroy(q));
	OK(hal_queue_destroy(r));
	world_close(&w);
}

/* A device that refuses to go on: the queue stays as it is, and can be destroyed. */
static void resume_refused(void **state)
{
	struct hal_point done;
	struct hal_queue *q;
	struct world w;

	(void)state;
	world_open(&w, "mock?modes=15");
	world_fill(&w);
	q = add_queue(w.part, 0);
	done = stopped(&w, q, HAL_SUSPEND_FOLD, 1, 5);
	w.mock->refuse_resume(w.native, 1, EIO);
	FAILS(hal_queue_resume(q), -EIO, "not to resume");
	run(&w, 1, 1);
	assert_false(reached(done));
	OK(hal_queue_resume(q));
	run(&w, 1, 1);
	assert_true(reached(done));
	(void)stopped(&w, q, HAL_SUSPEND_FOLD, 1, 5);
	w.mock->refuse_resume(w.native, 1, EIO);
	FAILS(hal_queue_resume(q), -EIO, "not to resume");
	OK(hal_queue_destroy(q));
	world_close(&w);
}

/* Latency-critical work that is stopped keeps best effort from nothing; when it goes on
 * behind best effort, that makes way again. */
static void critical(void **state)
{
	static const char *const options[] = {PLUGINS, "hal.partition_inflight=2",
					      "policy.preempt=fold", NULL};
	struct hal_point done, effort;
	struct hal_queue *q, *be;
	struct mock_counts c;
	struct world w;

	(void)state;
	world_open_with(&w, "mock?modes=15", options);
	world_fill(&w);
	q = of_class(w.part, HAL_CLASS_LATENCY);
	be = of_class(w.part, HAL_CLASS_BEST_EFFORT);
	OK(submit_cmd(be, numbered(&w, 1), &effort));
	poll_now(&w);
	OK(submit_cmd(q, numbered(&w, 2), &done));
	poll_now(&w);
	w.mock->counts(w.native, &c);
	assert_int_equal(c.suspends, 1);
	assert_int_equal(c.mode, HAL_SUSPEND_FOLD);
	w.mock->quiet(w.native, 1); /* best effort has made way ... */
	poll_now(&w);
	OK(hal_queue_suspend(q, HAL_SUSPEND_FOLD, NULL));
	poll_now(&w);
	w.mock->quiet(w.native, 1); /* ... for what is stopped, too: it goes on */
	poll_now(&w);
	w.mock->counts(w.native, &c);
	assert_int_equal(c.resumes, 1);
	OK(hal_queue_resume(q));
	poll_now(&w);
	w.mock->counts(w.native, &c);
	assert_int_equal(c.suspends, 3);
	w.mock->quiet(w.native, 1);
	poll_now(&w);
	run(&w, 1, 1);
	assert_true(reached(done));
	assert_false(reached(effort));
	run(&w, 1, 1);
	assert_true(reached(effort));
	OK(hal_queue_destroy(q));
	OK(hal_queue_destroy(be));
	world_close(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(goes_on),        cmocka_unit_test(in_nobodys_way),
		cmocka_unit_test(resumed_early),  cmocka_unit_test(killed_later),
		cmocka_unit_test(destroyed),      cmocka_unit_test(device_lost),
		cmocka_unit_test(resume_refused), cmocka_unit_test(critical),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
