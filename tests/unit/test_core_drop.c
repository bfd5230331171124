/* SPDX-License-Identifier: Apache-2.0 */
/* A suspended queue is destroyed with work in it: how a program without an end is got rid
 * of. */
#include "mock_world.h"

/* What waits for the dropped work is told, and nothing of it stays behind. */
static void killed(void **state)
{
	struct hal_submit_desc sd = HAL_INIT(hal_submit_desc);
	struct hal_point p[3], quiet, signal, waits;
	struct hal_timeline *line;
	struct hal_cmd many[12];
	struct hal_queue *q, *other;
	struct hal_buffer *used;
	struct hal_cmd cmd;
	struct world w;
	int err = 0;

	(void)state;
	world_open(&w, "mock");
	world_fill(&w);
	q = add_queue(w.part, 0);
	other = add_queue(w.part, 0);
	used = add_buffer(w.part, 64);
	OK(hal_timeline_create(w.dev, &line));
	signal = (struct hal_point){line, 1};
	OK(submit_cmd(q, hal_cmd_fill(used, 0, 64, 1), &p[0]));
	cmd = numbered(&w, 2);
	sd.cmds = &cmd;
	sd.cmd_count = 1;
	sd.signals = &signal;
	sd.signal_count = 1;
	OK(hal_submit(q, &sd, &p[1]));
	/* One that lies outside of the ring. */
	for (int i = 0; i < 12; i++)
		many[i] = numbered(&w, 3);
	OK(submit_n(q, many, 12, &p[2]));
	sd.signal_count = 0;
	sd.waits = &signal;
	sd.wait_count = 1;
	OK(hal_submit(other, &sd, &waits));
	poll_now(&w);
	/* In use: kept until that has ended. */
	OK(hal_buffer_destroy(used));
	FAILS(hal_queue_destroy(q), -EBUSY, "queue 0");
	OK(hal_queue_suspend(q, HAL_SUSPEND_KILL, &quiet));
	FAILS(hal_queue_destroy(q), -EBUSY, "queue 0");
	w.mock->quiet(w.native, 5);
	poll_now(&w);
	assert_true(reached(quiet));
	OK(hal_queue_destroy(q));
	assert_int_equal(inflight(&w), 0);
	assert_int_equal(hal_timeline_get_value(line, &err), 0);
	assert_int_equal(err, -ECANCELED);
	FAILS(hal_wait(&waits, 1, 0, 0), -ECANCELED, "destroyed while it was suspended");
	OK(hal_queue_destroy(other));
	OK(hal_timeline_destroy(line));
	/* The partition works on, for somebody else. */
	q = add_queue(w.part, 0);
	OK(submit_cmd(q, numbered(&w, 4), &p[0]));
	poll_now(&w);
	w.mock->complete(w.native, 1, 10);
	poll_now(&w);
	assert_true(reached(p[0]));
	OK(hal_queue_destroy(q));
	world_close(&w);
}

/* A command that may not run twice is dropped only where nothing will run again. */
static void for_good(void **state)
{
	struct hal_point done, quiet;
	struct hal_queue *q;
	struct hal_cmd cmd;
	struct world w;

	(void)state;
	world_open(&w, "mock");
	world_fill(&w);
	q = add_queue(w.part, 0);
	cmd = numbered(&w, 1);
	cmd.flags = 0;
	OK(submit_cmd(q, cmd, &done));
	poll_now(&w);
	FAILS(hal_queue_suspend(q, HAL_SUSPEND_KILL, NULL), -ENOTSUP,
	      "HAL_SUSPEND_FINAL");
	OK(hal_queue_suspend(q, HAL_SUSPEND_KILL | HAL_SUSPEND_FINAL, &quiet));
	FAILS(hal_queue_resume(q), -ECANCELED, "for good");
	w.mock->quiet(w.native, 1);
	poll_now(&w);
	assert_true(reached(quiet));
	FAILS(hal_queue_resume(q), -ECANCELED, "for good");
	assert_false(reached(done));
	OK(hal_queue_destroy(q));
	assert_int_equal(inflight(&w), 0);
	world_close(&w);
}

/* Drained: what the device has not had is dropped. */
static void drained(void **state)
{
	struct hal_point p[4], quiet;
	struct hal_stats s = HAL_INIT(hal_stats);
	struct hal_queue *q;
	struct world w;

	(void)state;
	world_open(&w, "mock");
	world_fill(&w);
	q = add_queue(w.part, 0);
	for (uint32_t i = 0; i < 4; i++)
		OK(submit_cmd(q, numbered(&w, i), &p[i]));
	poll_now(&w);
	OK(hal_queue_suspend(q, HAL_SUSPEND_DRAIN, &quiet));
	w.mock->complete(w.native, 2, 10);
	w.mock->quiet(w.native, 0);
	poll_now(&w);
	poll_now(&w);
	assert_true(reached(quiet));
	assert_true(reached(p[1]));
	OK(hal_queue_destroy(q));
	OK(hal_partition_get_stats(w.part, &s));
	assert_int_equal(s.submitted, 4);
	assert_int_equal(s.completed, 2);
	assert_int_equal(s.dropped, 2);
	world_close(&w);
}

/* Work that waits for the queue's own points goes with it; others' keeps it there. */
static void waits_for_itself(void **state)
{
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct hal_queue *q, *other;
	struct hal_point p, quiet;
	struct world w;

	(void)state;
	world_open(&w, "mock");
	world_fill(&w);
	q = add_queue(w.part, 0);
	other = add_queue(w.part, 0);
	OK(hal_queue_suspend(q, HAL_SUSPEND_DRAIN, &quiet));
	OK(submit_cmd(q, numbered(&w, 1), &p));
	d.waits = &p;
	d.wait_count = 1;
	OK(hal_submit(q, &d, NULL));
	d.waits = &quiet;
	OK(hal_submit(q, &d, NULL));
	d.waits = &p;
	OK(hal_submit(other, &d, NULL));
	poll_now(&w);
	FAILS(hal_queue_destroy(q), -EBUSY, "waits for one of its points");
	OK(hal_queue_suspend(other, HAL_SUSPEND_DRAIN, NULL));
	OK(hal_queue_destroy(other));
	OK(hal_queue_destroy(q));
	world_close(&w);
}

/* Two wait for each other's points: when one is suspended for good both hear of it, and
 * may be destroyed. */
static void tells_who_waits(void **state)
{
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct hal_stats s = HAL_INIT(hal_stats);
	struct hal_point first, p[2];
	struct hal_queue *q[2];
	struct world w;

	(void)state;
	world_open(&w, "mock");
	world_fill(&w);
	for (int i = 0; i < 2; i++)
		q[i] = add_queue(w.part, 0);
	OK(submit_cmd(q[0], numbered(&w, 1), &first));
	d.waits = &first;
	d.wait_count = 1;
	OK(hal_submit(q[1], &d, &p[1]));
	d.waits = &p[1];
	OK(hal_submit(q[0], &d, &p[0]));
	poll_now(&w);
	OK(hal_queue_suspend(q[0], HAL_SUSPEND_KILL | HAL_SUSPEND_FINAL, NULL));
	w.mock->quiet(w.native, 1);
	poll_now(&w);
	for (int i = 0; i < 2; i++)
		FAILS(hal_wait(&p[i], 1, 0, 0), -ECANCELED, "suspended for good");
	FAILS(hal_submit(q[0], &d, NULL), -ECANCELED, "suspended for good");
	for (int i = 0; i < 2; i++)
		OK(hal_queue_destroy(q[i]));
	OK(hal_partition_get_stats(w.part, &s));
	assert_int_equal(s.completed, 0);
	assert_int_equal(s.dropped, s.submitted);
	world_close(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(killed),          cmocka_unit_test(for_good),
		cmocka_unit_test(drained),         cmocka_unit_test(waits_for_itself),
		cmocka_unit_test(tells_who_waits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
