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
		t = hal_queue_get_timeline(q);
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

/* The device refuses a resume that was requested before it had released the queue: the
 * resume can be tried again. */
static void early_resume_refused(void **state)
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
	w.mock->refuse_resume(w.native, 1, EIO);
	w.mock->quiet(w.native, 5);
	poll_now(&w);
	assert_true(reached(quiet));
	OK(hal_queue_resume(q));
	run(&w, 1, 10);
	assert_true(reached(done));
	OK(hal_queue_destroy(q));
	world_close(&w);
}

/* A device that resizes only idle partitions gets no command back during a resize: the
 * resume takes effect after it. */
static void resumed_during_resize(void **state)
{
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	struct hal_point done, moved;
	struct mock_counts c;
	struct hal_queue *q;
	struct world w;

	(void)state;
	for (int status = 0; status >= -EIO; status -= EIO) {
		world_open(&w, "mock?modes=15&resize=idle");
		world_fill(&w);
		q = add_queue(w.part, 0);
		done = stopped(&w, q, HAL_SUSPEND_FOLD, 1, 5);
		d.units_floor = 2;
		OK(hal_partition_resize(w.part, &d, &moved));
		OK(hal_queue_resume(q));
		FAILS(hal_queue_resume(q), -EINVAL, "not suspended");
		poll_now(&w);
		w.mock->counts(w.native, &c);
		assert_int_equal(c.resumes, 0);
		w.mock->fail_move(w.native, status, "");
		poll_now(&w);
		assert_int_equal(hal_wait(&moved, 1, 0, 0), status);
		w.mock->counts(w.native, &c);
		assert_int_equal(c.resumes, 1);
		run(&w, 1, 10);
		assert_true(reached(done));
		OK(hal_queue_destroy(q));
		world_close(&w);
	}
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

/* Best effort's commands on the device, stopped by the engine in this mode. */
struct held {
	struct world w;
	struct hal_queue *urgent, *effort;
	struct hal_point done; /* of its first */
};

static const char *const how[] = {
	[HAL_SUSPEND_FOLD] = "policy.preempt=fold",
	[HAL_SUSPEND_SAVE] = "policy.preempt=save",
};

enum { NET_NS = 1000000 };

static void held_open(struct held *h, uint32_t mode)
{
	const char *const options[] = {PLUGINS, "hal.partition_inflight=2", how[mode],
				       "policy.timeout_ms=1", NULL};

	world_open_with(&h->w, "mock?modes=15", options);
	world_fill(&h->w);
	h->urgent = of_class(h->w.part, HAL_CLASS_LATENCY);
	h->effort = of_class(h->w.part, HAL_CLASS_BEST_EFFORT);
	OK(submit_cmd(h->effort, numbered(&h->w, 1), &h->done));
	poll_now(&h->w);
}

static void held_close(struct held *h)
{
	OK(hal_queue_destroy(h->urgent));
	OK(hal_queue_destroy(h->effort));
	world_close(&h->w);
}

static uint32_t last_mode(struct held *h)
{
	struct mock_counts c;

	h->w.mock->counts(h->w.native, &c);
	return c.mode;
}

/* Something urgent comes when best effort has run for ran_ns, and runs for 1,000. */
static void interrupted(struct held *h, uint64_t ran_ns)
{
	struct hal_point done;

	OK(submit_cmd(h->urgent, numbered(&h->w, 2), &done));
	poll_now(&h->w);
	h->w.mock->quiet(h->w.native, ran_ns);
	poll_now(&h->w);
	run(&h->w, 1, 1000);
	while (!reached(done))
		run(&h->w, 1, 1);
}

/* There is no room for what FOLD or SAVE keeps: the application is told, and what makes
 * way for others does so by DRAIN. */
static void no_room(void **state)
{
	struct hal_point done;
	struct held h;

	(void)state;
	for (uint32_t mode = HAL_SUSPEND_FOLD; mode <= HAL_SUSPEND_SAVE; mode++) {
		held_open(&h, mode);
		OK(submit_cmd(h.effort, numbered(&h.w, 3), &h.done));
		poll_now(&h.w);
		h.w.mock->refuse_stop(h.w.native, 1, ENOSPC);
		FAILS(hal_queue_suspend(h.effort, mode, NULL), -ENOSPC, "suspend");
		h.w.mock->refuse_stop(h.w.native, 1, ENOSPC);
		OK(submit_cmd(h.urgent, numbered(&h.w, 2), &done));
		poll_now(&h.w);
		assert_int_equal(last_mode(&h), HAL_SUSPEND_DRAIN);
		while (!reached(done) || !reached(h.done))
			run(&h.w, 1, 1);
		h.w.mock->quiet(h.w.native, 0);
		poll_now(&h.w);
		held_close(&h);
	}
}

/* Stopped again and again before it gets anywhere, each time for less than the net lets
 * anybody wait: in all for no longer than that; then it runs to its end, and the next one
 * may be stopped again. */
static void again_and_again(void **state)
{
	struct held h;

	(void)state;
	for (uint32_t mode = HAL_SUSPEND_FOLD; mode <= HAL_SUSPEND_SAVE; mode++) {
		held_open(&h, mode);
		for (uint32_t turn = 0; turn < 2; turn++) {
			for (uint32_t ns = 0; ns < NET_NS; ns += 1000) {
				interrupted(&h, 0);
				assert_int_equal(last_mode(&h), mode);
			}
			assert_false(reached(h.done));
			h.w.mock->advance(h.w.native, 1000);
			poll_now(&h.w);
			interrupted(&h, 0);
			assert_int_equal(last_mode(&h), HAL_SUSPEND_DRAIN);
			assert_true(reached(h.done));
			OK(submit_cmd(h.effort, numbered(&h.w, 1), &h.done));
			poll_now(&h.w);
		}
		run(&h.w, 1, 1);
		assert_true(reached(h.done));
		held_close(&h);
	}
}

/* Who gets on meanwhile, however little, may be stopped for ever. */
static void little_by_little(void **state)
{
	struct held h;

	(void)state;
	held_open(&h, HAL_SUSPEND_FOLD);
	for (uint32_t ns = 0; ns < 3 * NET_NS; ns += 1000) {
		interrupted(&h, ns % 500000 == 0);
		assert_int_equal(last_mode(&h), HAL_SUSPEND_FOLD);
	}
	/* So may who is stopped by its application in between, which may take it over. */
	for (uint32_t ns = 0; ns < 3 * NET_NS; ns += 100000) {
		struct hal_point done;

		OK(submit_cmd(h.urgent, numbered(&h.w, 2), &done));
		poll_now(&h.w);
		h.w.mock->quiet(h.w.native, 0);
		poll_now(&h.w);
		if (ns < NET_NS) /* before the urgent has ended */
			OK(hal_queue_suspend(h.effort, HAL_SUSPEND_FOLD, NULL));
		run(&h.w, 1, 1000);
		assert_true(reached(done));
		if (ns >= NET_NS)
			OK(hal_queue_suspend(h.effort, HAL_SUSPEND_FOLD, NULL));
		h.w.mock->quiet(h.w.native, 0);
		poll_now(&h.w);
		h.w.mock->advance(h.w.native, 100000);
		poll_now(&h.w);
		OK(hal_queue_resume(h.effort));
		poll_now(&h.w);
		assert_int_equal(last_mode(&h), HAL_SUSPEND_FOLD);
	}
	assert_false(reached(h.done));
	run(&h.w, 1, 1);
	assert_true(reached(h.done));
	held_close(&h);
}

/* Urgent work without a pause: who has waited for as long as the net lets anybody is not
 * stopped again the moment it goes on. */
static void served_at_last(void **state)
{
	struct hal_policy_info info = HAL_INIT(hal_policy_info);
	struct hal_point done;
	struct held h;

	(void)state;
	held_open(&h, HAL_SUSPEND_FOLD);
	for (uint32_t i = 0; i < 8; i++)
		OK(submit_cmd(h.urgent, numbered(&h.w, 2), &done));
	poll_now(&h.w);
	assert_int_equal(last_mode(&h), HAL_SUSPEND_FOLD);
	h.w.mock->quiet(h.w.native, 0);
	poll_now(&h.w);
	run(&h.w, 1, NET_NS);
	run(&h.w, 1, 1000);
	assert_int_equal(last_mode(&h), HAL_SUSPEND_DRAIN);
	for (uint32_t i = 0; i < 3; i++)
		run(&h.w, 1, 1000);
	assert_true(reached(h.done));
	assert_false(reached(done));
	OK(hal_device_get_policy(h.w.dev, &info));
	assert_int_equal(info.starved, 1);
	assert_string_equal(info.reason, "a queue was preempted for longer than "
					 "policy.timeout_ms");
	h.w.mock->quiet(h.w.native, 0);
	while (!reached(done))
		run(&h.w, 1, 1000);
	held_close(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(goes_on),
		cmocka_unit_test(in_nobodys_way),
		cmocka_unit_test(resumed_early),
		cmocka_unit_test(killed_later),
		cmocka_unit_test(destroyed),
		cmocka_unit_test(device_lost),
		cmocka_unit_test(resume_refused),
		cmocka_unit_test(critical),
		cmocka_unit_test(early_resume_refused),
		cmocka_unit_test(resumed_during_resize),
		cmocka_unit_test(again_and_again),
		cmocka_unit_test(little_by_little),
		cmocka_unit_test(served_at_last),
		cmocka_unit_test(no_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
