/* SPDX-License-Identifier: Apache-2.0 */
/* What only a device that is told what to do makes the journal write, replayed. */
#include "mock_world.h"

#include <unistd.h>

#include <hal/ext/replay.h>

static char path[] = "/tmp/hal-journal-XXXXXX";

static int make_file(void **state)
{
	int fd = mkstemp(path);

	(void)state;
	return fd < 0 ? -1 : close(fd);
}

static int remove_file(void **state)
{
	(void)state;
	return unlink(path);
}

static void journal_open(struct world *w)
{
	static char option[64];
	static const char *const options[] = {PLUGINS, option, NULL};

	(void)snprintf(option, sizeof(option), "hal.journal=%s", path);
	world_open_with(w, "mock", options);
	world_fill(w);
}

static struct hal_replay_info replayed(void)
{
	struct hal_replay_info info = HAL_INIT(hal_replay_info);

	OK(hal_replay(path, &info));
	if (info.mismatches != 0)
		fail_msg("%s", info.mismatch);
	return info;
}

/* A command of its own that waits for a point. */
static struct hal_point submit_after(struct world *w, struct hal_queue *q,
				     struct hal_point wait)
{
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct hal_cmd cmd = numbered(w, 1);
	struct hal_point done;

	d.cmds = &cmd;
	d.cmd_count = 1;
	d.waits = &wait;
	d.wait_count = 1;
	OK(hal_submit(q, &d, &done));
	(void)poll_now(w);
	return done;
}

/* Queues wait for a move that fails, for the one after it, for one that is quiet, and for
 * each other. */
static void waits_of_every_kind(void **state)
{
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	struct hal_point failed, moved, quiet, done, never;
	struct hal_queue *a, *b;
	struct world w;

	(void)state;
	journal_open(&w);
	a = add_queue(w.part, 0);
	b = add_queue(w.part, 0);
	d.units_floor = 3;
	OK(hal_partition_resize(w.part, &d, &failed));
	never = submit_after(&w, a, failed);
	w.mock->fail_move(w.native, -EIO, "stuck");
	assert_int_equal(hal_wait(&failed, 1, 0, HAL_FOREVER), -EIO);
	assert_true(hal_wait(&never, 1, 0, HAL_FOREVER) < 0);
	OK(hal_partition_resize(w.part, &d, &moved));
	done = submit_after(&w, b, moved);
	assert_int_equal(inflight(&w), 0);
	w.mock->quiet(w.native, 1);
	OK(hal_wait(&moved, 1, 0, HAL_FOREVER));
	(void)poll_now(&w);
	w.mock->complete(w.native, 1, 5);
	OK(hal_wait(&done, 1, 0, HAL_FOREVER));
	OK(hal_queue_destroy(a));
	a = add_queue(w.part, 0);
	OK(hal_queue_suspend(a, HAL_SUSPEND_DRAIN, &quiet));
	done = submit_after(&w, b, quiet);
	w.mock->quiet(w.native, 1);
	OK(hal_wait(&quiet, 1, 0, HAL_FOREVER));
	(void)poll_now(&w);
	w.mock->complete(w.native, 1, 5);
	OK(hal_wait(&done, 1, 0, HAL_FOREVER));
	OK(hal_queue_resume(a));
	done = submit_after(&w, a, done);
	done = submit_after(&w, b, done);
	for (int i = 0; i < 2; i++) {
		w.mock->complete(w.native, 1, 5);
		(void)poll_now(&w);
	}
	OK(hal_wait(&done, 1, 0, HAL_FOREVER));
	OK(hal_queue_destroy(a));
	OK(hal_queue_destroy(b));
	world_close(&w);
	assert_int_equal(replayed().decisions, 6);
}

/* A submit, a suspend, a resume and a move that the device refuses. */
static void refusals(void **state)
{
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	struct hal_point moved, quiet, p;
	struct hal_queue *q;
	struct world w;

	(void)state;
	journal_open(&w);
	q = add_queue(w.part, 0);
	w.mock->refuse(w.native, 1, EIO);
	OK(submit_cmd(q, numbered(&w, 1), &p));
	assert_int_equal(hal_wait(&p, 1, 0, HAL_FOREVER), -EIO);
	OK(hal_queue_destroy(q));
	q = add_queue(w.part, 0);
	OK(submit_cmd(q, numbered(&w, 2), &p));
	(void)poll_now(&w);
	w.mock->fault(w.native, -EIO, "broken");
	assert_int_equal(hal_wait(&p, 1, 0, HAL_FOREVER), -EIO);
	OK(hal_queue_destroy(q));
	q = add_queue(w.part, 0);
	d.units_floor = 2;
	w.mock->refuse_move(w.native, 1, -EIO, 1);
	assert_int_equal(hal_partition_resize(w.part, &d, &moved), -EIO);
	OK(hal_partition_resize(w.part, &d, &moved));
	w.mock->quiet(w.native, 1);
	OK(hal_wait(&moved, 1, 0, HAL_FOREVER));
	OK(submit_cmd(q, numbered(&w, 3), &p));
	(void)poll_now(&w);
	OK(hal_queue_suspend(q, HAL_SUSPEND_KILL, &quiet));
	w.mock->quiet(w.native, 1);
	OK(hal_wait(&quiet, 1, 0, HAL_FOREVER));
	w.mock->refuse_resume(w.native, 1, EIO);
	assert_int_equal(hal_queue_resume(q), -EIO);
	OK(hal_queue_resume(q));
	(void)poll_now(&w);
	w.mock->complete(w.native, 1, 7);
	OK(hal_wait(&p, 1, 0, HAL_FOREVER));
	OK(hal_queue_destroy(q));
	world_close(&w);
	assert_int_equal(replayed().decisions, 9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(waits_of_every_kind),
		cmocka_unit_test(refusals),
	};

	return cmocka_run_group_tests(tests, make_file, remove_file);
}
