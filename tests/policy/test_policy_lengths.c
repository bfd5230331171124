/* SPDX-License-Identifier: Apache-2.0 */
/* Policies that go by what commands are expected to run: laxity, prema. */
#include "world.h"

#define ONE_AT_A_TIME "hal.partition_inflight=1", "hal.inflight=1", "hal.queue_depth=4096"

static void open_with(struct world *w, const char *policy)
{
	const char *const options[] = {ONE_AT_A_TIME, policy, NULL};

	world_open(w, options);
}

/* A queue whose commands are known to run ns. */
static struct hal_queue *known_queue(struct world *w, int32_t priority, uint64_t deadline,
				     uint64_t ns)
{
	struct hal_queue *q = add_queue(w->part, priority, 1, deadline);
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);

	d.deadline_ns = UINT64_MAX;
	finish(submit_as(w, q, d, 1, ns, '.'));
	memset(&ended, 0, sizeof(ended));
	return q;
}

static uint64_t misses_of(struct hal_queue *q)
{
	return stats_of(q).deadline_misses;
}

/* ---- laxity ----------------------------------------------------------------------- */

static void laxity(void **state)
{
	struct hal_queue *q[3], *be;
	struct world w;

	(void)state;
	open_with(&w, "policy.name=laxity");
	q[0] = known_queue(&w, 0, 500, 10);
	q[1] = known_queue(&w, 0, 700, 400);
	q[2] = known_queue(&w, 0, 650, 100);
	be = add_queue(w.part, 9, 1, 0);
	/* 490, 300, 550 to spare; who has no deadline comes last. */
	(void)submit(&w, be, 2, 50, 'x');
	for (int i = 0; i < 3; i++)
		(void)submit(&w, q[i], 1,
			     i == 0   ? 10
			     : i == 1 ? 400
				      : 100,
			     (char)('a' + i));
	finish_all(&w);
	assert_string_equal(ended.text, "bacxx");
	for (int i = 0; i < 3; i++)
		assert_int_equal(misses_of(q[i]), 0);
	/* What cannot be in time any more stands behind all that can, with what has no
	 * deadline, as they came. */
	memset(&ended, 0, sizeof(ended));
	(void)submit(&w, be, 1, 540, 'x');
	pass(&w, 1);
	(void)submit(&w, q[0], 1, 10, 'a');
	pass(&w, 1);
	(void)submit(&w, be, 1, 10, 'y');
	pass(&w, 1);
	(void)submit(&w, q[1], 1, 400, 'b');
	(void)submit(&w, q[2], 1, 100, 'c');
	finish_all(&w);
	assert_string_equal(ended.text, "xcayb");
	assert_int_equal(misses_of(q[0]), 1);
	assert_int_equal(misses_of(q[1]), 1);
	assert_int_equal(misses_of(q[2]), 0);
	for (int i = 0; i < 3; i++)
		OK(hal_queue_destroy(q[i]));
	OK(hal_queue_destroy(be));
	world_close(&w);
}

/* Commands that ran shorter than was expected make nobody late, however long the device
 * is busy. */
static void laxity_busy(void **state)
{
	static const char *const options[] = {"hal.queue_depth=4096",
					      "hal.partition_inflight=2",
					      "policy.name=laxity", NULL};
	struct hal_queue *be[2], *q;
	struct world w;

	(void)state;
	world_open(&w, options);
	q = known_queue(&w, 0, 400, 100);
	for (int i = 0; i < 2; i++) {
		be[i] = add_queue(w.part, 0, 1, 0);
		(void)submit(&w, be[i], 50, 100, 'x');
	}
	for (int i = 0; i < 10; i++) {
		pass(&w, 700);
		(void)submit(&w, q, 1, 100, 'q');
	}
	finish_all(&w);
	assert_int_equal(misses_of(q), 0);
	OK(hal_queue_destroy(q));
	for (int i = 0; i < 2; i++)
		OK(hal_queue_destroy(be[i]));
	world_close(&w);
}

/* Five tenants, 100 ns of work every 400 each, with 400 for it: a fifth too much. */
static uint64_t overload(const char *policy)
{
	struct hal_queue *q[5];
	struct world w;
	uint64_t sum = 0;

	open_with(&w, policy);
	for (int i = 0; i < 5; i++)
		q[i] = known_queue(&w, 0, 400, 100);
	for (int at = 0; at < 200; at++)
		for (int i = 0; i < 5; i++) {
			(void)submit(&w, q[i], 1, 100, 'a');
			pass(&w, 80);
		}
	finish_all(&w);
	for (int i = 0; i < 5; i++) {
		sum += misses_of(q[i]);
		OK(hal_queue_destroy(q[i]));
	}
	world_close(&w);
	return sum;
}

static void laxity_overload(void **state)
{
	(void)state;
	/* Of 1,000: a fifth must be late; under edf all are once it is behind. */
	assert_int_equal(overload("policy.name=laxity"), 197);
	assert_int_equal(overload("policy.name=edf"), 984);
}

/* The rest of a submission counts, not its next command alone. */
static void laxity_rest(void **state)
{
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	const struct hal_arg args[2] = {{.offset = 100}, {.offset = 'j'}};
	struct hal_queue *job, *one, *be;
	struct hal_cmd cmds[4];
	struct hal_point done;
	struct world w;

	(void)state;
	open_with(&w, "policy.name=laxity");
	one = known_queue(&w, 0, 600, 100);
	job = add_queue(w.part, 0, 1, 0);
	be = add_queue(w.part, 0, 1, 0);
	for (int i = 0; i < 4; i++)
		cmds[i] = hal_cmd_launch(w.work, args, 2);
	d.cmds = cmds;
	d.cmd_count = 4;
	OK(hal_submit(job, &d, &done));
	finish(done);
	memset(&ended, 0, sizeof(ended));
	(void)submit(&w, be, 2, 10, 'x');
	(void)submit(&w, one, 1, 100, 'o'); /* 500 to spare */
	d.deadline_ns = 650;                /* 250, though 550 for the next command */
	OK(hal_submit(job, &d, &done));
	finish_all(&w);
	/* When half of it is left it has as much to spare as the other. */
	assert_string_equal(ended.text, "jjjojxx");
	OK(hal_queue_destroy(job));
	OK(hal_queue_destroy(one));
	OK(hal_queue_destroy(be));
	world_close(&w);
}

/* Both can be met, the short one first. */
static uint64_t lengths_differ(const char *policy)
{
	struct hal_queue *a, *b, *be;
	struct world w;
	uint64_t sum;

	open_with(&w, policy);
	a = known_queue(&w, 0, 160, 10);
	b = known_queue(&w, 0, 180, 110);
	be = add_queue(w.part, 0, 1, 0);
	for (int i = 0; i < 10; i++) {
		(void)submit(&w, be, 1, 50, 'x');
		pass(&w, 1);
		(void)submit(&w, a, 1, 10, 'a');
		(void)submit(&w, b, 1, 110, 'b');
		finish_all(&w);
	}
	sum = misses_of(a) + misses_of(b);
	OK(hal_queue_destroy(a));
	OK(hal_queue_destroy(b));
	OK(hal_queue_destroy(be));
	world_close(&w);
	return sum;
}

static void laxity_loses(void **state)
{
	(void)state;
	assert_int_equal(lengths_differ("policy.name=edf"), 0);
	assert_int_equal(lengths_differ("policy.name=laxity"), 10);
}

/* ---- prema ------------------------------------------------------------------------ */

/* One of 1,000 ns beside two that always have commands of 100: how long it takes. */
static uint64_t long_one(const char *policy, int32_t others, int32_t priority)
{
	struct hal_queue *a, *b, *c;
	struct world w;
	uint64_t at;

	open_with(&w, policy);
	a = known_queue(&w, others, 0, 100);
	b = known_queue(&w, others, 0, 100);
	c = known_queue(&w, priority, 0, 1000);
	(void)submit(&w, a, 200, 100, 'a');
	pass(&w, 1);
	(void)submit(&w, b, 200, 100, 'b');
	at = hal_device_get_time(w.dev);
	finish(submit(&w, c, 1, 1000, 'c'));
	at = hal_device_get_time(w.dev) - at;
	finish_all(&w);
	OK(hal_queue_destroy(a));
	OK(hal_queue_destroy(b));
	OK(hal_queue_destroy(c));
	world_close(&w);
	return at;
}

static void prema(void **state)
{
	(void)state;
	/* 1,000 is 1,024: of 3 tokens it has 9 when it has waited for two of those; the
	 * short ones, at 128, wait for 100 and have 5. */
	assert_int_equal(long_one("policy.name=prema", 0, 0), 3099);
	/* Nine at once; and with one, eight lengths of its own. */
	assert_int_equal(long_one("policy.name=prema", 0, 1), 1099);
	assert_int_equal(long_one("policy.name=prema", 0, -1), 9199);
	/* Short ones with 9 tokens, 16 when they have waited: it needs 27, eight lengths;
	 * or two lengths if it has 9 as well. */
	assert_int_equal(long_one("policy.name=prema", 1, 0), 9199);
	assert_int_equal(long_one("policy.name=prema", 1, 1), 3099);
}

/* Many tenants with short work and one with long: sum of latencies over length. */
static uint64_t antt(const char *policy)
{
	struct hal_queue *q[4];
	static const uint64_t ns[] = {10, 10, 10, 500};
	struct world w;
	uint64_t sum = 0;

	open_with(&w, policy);
	for (int i = 0; i < 4; i++)
		q[i] = known_queue(&w, 0, 0, ns[i]);
	for (int r = 0; r < 50; r++) {
		for (int i = 4; i-- > 0;)
			(void)submit(&w, q[i], i == 3 ? 2 : 1, ns[i], (char)('a' + i));
		finish_all(&w);
	}
	for (int i = 0; i < 4; i++) {
		struct hal_stats s = stats_of(q[i]);

		sum += (s.queueing_ns + s.busy_ns) / ns[i];
		OK(hal_queue_destroy(q[i]));
	}
	world_close(&w);
	return sum;
}

static void prema_antt(void **state)
{
	(void)state;
	assert_int_equal(antt("policy.name=prema"), 407);
	assert_int_equal(antt("policy.name=fifo"), 7907);
	assert_int_equal(antt("policy.name=rr"), 7907);
}

/* The highest priority, 400 ns, beside four with 10 that have waited long: how long. */
static uint64_t high(const char *policy)
{
	struct hal_queue *low[4], *top, *be;
	struct world w;
	uint64_t at;

	open_with(&w, policy);
	top = known_queue(&w, 5, 0, 400);
	be = known_queue(&w, 5, 0, 1000);
	for (int i = 0; i < 4; i++)
		low[i] = known_queue(&w, -1, 0, 10);
	(void)submit(&w, be, 1, 1000, 'x');
	pass(&w, 1);
	for (int i = 0; i < 4; i++)
		(void)submit(&w, low[i], 10, 10, 'l');
	pass(&w, 900);
	at = hal_device_get_time(w.dev);
	finish(submit(&w, top, 1, 400, 't'));
	at = hal_device_get_time(w.dev) - at;
	finish_all(&w);
	for (int i = 0; i < 4; i++)
		OK(hal_queue_destroy(low[i]));
	OK(hal_queue_destroy(top));
	OK(hal_queue_destroy(be));
	world_close(&w);
	return at;
}

static void prema_loses(void **state)
{
	(void)state;
	assert_int_equal(high("policy.name=priority"), 99 + 400);
	assert_int_equal(high("policy.name=prema"), 99 + 40 + 400);
}

static void bad(void **state)
{
	static const char *const laxity_0[] = {"policy.name=laxity",
					       "policy.laxity_unknown_us=0", NULL};
	static const char *const prema_0[] = {"policy.name=prema",
					      "policy.prema_unknown_us=0", NULL};
	struct hal_device *dev;

	(void)state;
	FAILS(hal_open("ref?clock=virtual", laxity_0, &dev), -EINVAL,
	      "laxity_unknown_us");
	FAILS(hal_open("ref?clock=virtual", prema_0, &dev), -EINVAL, "prema_unknown_us");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(laxity_busy),
		cmocka_unit_test(laxity),
		cmocka_unit_test(laxity_overload),
		cmocka_unit_test(laxity_rest),
		cmocka_unit_test(laxity_loses),
		cmocka_unit_test(prema),
		cmocka_unit_test(prema_antt),
		cmocka_unit_test(prema_loses),
		cmocka_unit_test(bad),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
