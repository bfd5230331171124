/* SPDX-License-Identifier: Apache-2.0 */
/* The suspend mode that the engine chooses for a mode whose worst case is not known: a
 * part of the rest at first, then what earlier stops of the queue took. */
#include "mock_world.h"

#include <unistd.h>

#include <hal/ext/replay.h>

enum { US = 1000, LONG = 1000 * US, OWN = 10 * US };

static char path[] = "/tmp/hal-stops-XXXXXX";

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

struct stops {
	struct world w;
	struct hal_queue *effort, *urgent;
	struct hal_point done; /* the last command of .effort */
};

static struct hal_queue *of_class(struct hal_partition *p, uint16_t service_class)
{
	struct hal_queue_desc d = HAL_INIT(hal_queue_desc);
	struct hal_queue *q;

	d.service_class = service_class;
	OK(hal_queue_create(p, &d, &q));
	return q;
}

static void run(struct stops *s, uint64_t ns)
{
	s->w.mock->complete(s->w.native, 1, ns);
	poll_now(&s->w);
}

static void stops_open(struct stops *s, const char *target)
{
	char journal[64];
	const char *const options[] = {PLUGINS, "hal.partition_inflight=1",
				       "hal.inflight=1", journal, NULL};

	(void)snprintf(journal, sizeof(journal), "hal.journal=%s", path);
	world_open_with(&s->w, target, options);
	world_fill(&s->w);
	s->effort = of_class(s->w.part, HAL_CLASS_BEST_EFFORT);
	s->urgent = of_class(s->w.part, HAL_CLASS_LATENCY);
}

/* Close the device.  A replay of its journal must make the same decisions. */
static void stops_close(struct stops *s)
{
	struct hal_replay_info info = HAL_INIT(hal_replay_info);

	OK(hal_queue_destroy(s->effort));
	OK(hal_queue_destroy(s->urgent));
	world_close(&s->w);
	OK(hal_replay(path, &info));
	if (info.mismatches != 0)
		fail_msg("%s", info.mismatch);
	assert_string_equal(info.missing, "");
}

/* Let the engine learn how long the commands of both queues run. */
static void teach(struct stops *s)
{
	struct hal_point p;

	for (int i = 0; i < 8; i++) {
		OK(submit_cmd(s->effort, numbered(&s->w, 1), &p));
		poll_now(&s->w);
		run(s, LONG);
		OK(submit_cmd(s->urgent, numbered(&s->w, 2), &p));
		poll_now(&s->w);
		run(s, OWN);
	}
}

/* Begin a best-effort command, and submit an urgent one after at_ns.  Return the mode in
 * which the engine stops the best-effort queue. */
static uint32_t mode_after(struct stops *s, uint64_t at_ns)
{
	struct hal_cmd once = numbered(&s->w, 1);
	struct mock_counts before, after;
	struct hal_point p;

	once.flags = 0;
	OK(submit_cmd(s->effort, once, &s->done));
	poll_now(&s->w);
	s->w.mock->advance(s->w.native, at_ns);
	poll_now(&s->w);
	s->w.mock->counts(s->w.native, &before);
	OK(submit_cmd(s->urgent, numbered(&s->w, 2), &p));
	poll_now(&s->w);
	s->w.mock->counts(s->w.native, &after);
	assert_int_equal(after.suspends, before.suspends + 1);
	return after.mode;
}

/* Let the stop take quiet_ns, then the urgent command run, then the rest of the other. */
static void finish_stop(struct stops *s, uint64_t quiet_ns, uint64_t rest_ns)
{
	s->w.mock->quiet(s->w.native, quiet_ns);
	poll_now(&s->w);
	run(s, OWN);
	poll_now(&s->w);
	run(s, rest_ns);
	assert_true(reached(s->done));
}

/* Without any knowledge, a stop at a safe point is expected before the command's end. */
static void first_stop(void **state)
{
	struct stops s;

	(void)state;
	stops_open(&s, "mock?modes=3");
	assert_int_equal(mode_after(&s, 100 * US), HAL_SUSPEND_FOLD);
	finish_stop(&s, 50 * US, LONG);
	stops_close(&s);
	stops_open(&s, "mock?modes=5");
	teach(&s);
	assert_int_equal(mode_after(&s, 100 * US), HAL_SUSPEND_SAVE);
	finish_stop(&s, 50 * US, LONG);
	stops_close(&s);
}

/* A stop that takes long, and makes the command longer, is not worth it near its end. */
static void later_stops(void **state)
{
	struct stops s;

	(void)state;
	stops_open(&s, "mock?modes=3");
	teach(&s);
	assert_int_equal(mode_after(&s, 300 * US), HAL_SUSPEND_FOLD);
	finish_stop(&s, 450 * US, LONG - 450 * US + 300 * US);
	/* 450 us and 300 us lost, against 700 us that are left. */
	assert_int_equal(mode_after(&s, 300 * US), HAL_SUSPEND_DRAIN);
	s.w.mock->quiet(s.w.native, 0);
	run(&s, 700 * US);
	run(&s, OWN);
	assert_true(reached(s.done));
	/* Against 950 us. */
	assert_int_equal(mode_after(&s, 50 * US), HAL_SUSPEND_FOLD);
	finish_stop(&s, 10 * US, LONG - 10 * US);
	stops_close(&s);
}

/* Stops by the application teach the engine as well. */
static void taught_by_application(void **state)
{
	struct hal_point p;
	struct stops s;

	(void)state;
	stops_open(&s, "mock?modes=3");
	teach(&s);
	OK(submit_cmd(s.effort, numbered(&s.w, 1), &p));
	poll_now(&s.w);
	OK(hal_queue_suspend(s.effort, HAL_SUSPEND_FOLD, NULL));
	s.w.mock->quiet(s.w.native, 900 * US);
	poll_now(&s.w);
	OK(hal_queue_resume(s.effort));
	run(&s, 500 * US);
	assert_true(reached(p));
	/* 800 us are left, of which a stop would take all and lose 400 us. */
	assert_int_equal(mode_after(&s, 200 * US), HAL_SUSPEND_DRAIN);
	s.w.mock->quiet(s.w.native, 0);
	run(&s, 800 * US);
	run(&s, OWN);
	stops_close(&s);
}

/* A worst case of 0 is unknown, not impossible: bounds of other modes change nothing. */
static void another_mode_is_bounded(void **state)
{
	struct stops s;

	(void)state;
	stops_open(&s, "mock?modes=15&kill_ns=5");
	teach(&s);
	/* The command may not run twice, so KILL is not allowed. */
	assert_int_equal(mode_after(&s, 100 * US), HAL_SUSPEND_FOLD);
	finish_stop(&s, 450 * US, LONG - 450 * US);
	stops_close(&s);
}

/* Stops that take less than the worst case are expected to take less. */
static void less_than_the_bound(void **state)
{
	struct stops s;

	(void)state;
	stops_open(&s, "mock?modes=3&fold_ns=900000");
	teach(&s);
	assert_int_equal(mode_after(&s, 800 * US), HAL_SUSPEND_FOLD);
	finish_stop(&s, 20 * US, 180 * US);
	assert_int_equal(mode_after(&s, 970 * US), HAL_SUSPEND_FOLD);
	finish_stop(&s, 20 * US, 10 * US);
	stops_close(&s);
}

/* Only KILL is there, and its time is not known: it is tried, and learned. */
static void unbounded_kill(void **state)
{
	struct mock_counts before, after;
	struct hal_point done, p;
	struct stops s;

	(void)state;
	stops_open(&s, "mock?modes=9");
	teach(&s);
	for (int i = 0; i < 2; i++) {
		OK(submit_cmd(s.effort, numbered(&s.w, 1), &done));
		poll_now(&s.w);
		s.w.mock->advance(s.w.native, i == 0 ? 100 * US : 300 * US);
		poll_now(&s.w);
		s.w.mock->counts(s.w.native, &before);
		OK(submit_cmd(s.urgent, numbered(&s.w, 2), &p));
		poll_now(&s.w);
		s.w.mock->counts(s.w.native, &after);
		assert_int_equal(after.suspends, before.suspends + 1);
		/* 450 + 100 < 900; then 600 + 300 > 700, as the first took 600. */
		assert_int_equal(after.mode,
				 i == 0 ? HAL_SUSPEND_KILL : HAL_SUSPEND_DRAIN);
		s.w.mock->quiet(s.w.native, i == 0 ? 600 * US : 0);
		poll_now(&s.w);
		for (int n = 0; n < 3; n++)
			run(&s, i == 0 || n > 0 ? OWN : 700 * US);
	}
	assert_true(reached(done));
	stops_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(first_stop),
		cmocka_unit_test(later_stops),
		cmocka_unit_test(taught_by_application),
		cmocka_unit_test(another_mode_is_bounded),
		cmocka_unit_test(less_than_the_bound),
		cmocka_unit_test(unbounded_kill),
	};

	return cmocka_run_group_tests(tests, make_file, remove_file);
}
