/* SPDX-License-Identifier: Apache-2.0 */
/* policy.preempt_for: who only sets priorities and deadlines has them kept, without a
 * call of hal_queue_suspend. */
#include "world.h"

#define ONE_AT_A_TIME "hal.partition_inflight=1", "hal.inflight=1", "hal.queue_depth=4096"
#define BY_CLASS      "policy.preempt_for=class"
#define BY_DEADLINE   "policy.preempt_for=deadline"
#define BY_PRIORITY   "policy.preempt_for=priority"

enum { LONG = 1000, OWN = 10, NONE = 0 };

struct rank {
	int32_t priority;
	uint64_t deadline_ns;
};

static void forget(void)
{
	memset(&ended, 0, sizeof(ended));
}

/* It is known what q runs. */
static struct hal_queue *known(struct world *w, struct rank r, uint64_t ns)
{
	struct hal_queue *q = add_queue(w->part, r.priority, 1, r.deadline_ns);

	finish(submit(w, q, 8, ns, 'k'));
	forget();
	return q;
}

/* What runs has run for 100 of 1,000 ns when something of 10 comes: what that takes, and
 * what is lost. */
static uint64_t takes(const char *policy, const char *by, struct rank runs,
		      struct rank comes, uint64_t *lost_ns)
{
	const char *const options[] = {ONE_AT_A_TIME, policy, by, NULL};
	struct hal_queue *low, *high;
	struct hal_point done;
	struct world w;
	uint64_t at, took;

	world_open(&w, options);
	low = known(&w, runs, LONG);
	high = known(&w, comes, OWN);
	(void)submit(&w, low, 1, LONG, 'l');
	pass(&w, 100);
	at = hal_device_get_time(w.dev);
	done = submit(&w, high, 1, OWN, 'h');
	finish(done);
	took = hal_device_get_time(w.dev) - at;
	finish_all(&w);
	assert_int_equal(ended.length, 2);
	assert_int_equal(stats_of(low).completed, 9);
	assert_int_equal(stats_of(high).suspends, 0);
	*lost_ns = stats_of(low).replayed_ns;
	assert_int_equal(policy_of(&w).invalid + policy_of(&w).stalls, 0);
	OK(hal_queue_destroy(low));
	OK(hal_queue_destroy(high));
	world_close(&w);
	return took;
}

enum { STOPPED = OWN + 1, WAITED = LONG - 100 + OWN, MARGIN = (LONG - 100) / 8 };

#define R(priority, deadline) ((struct rank){priority, deadline})

static void who_stops_whom(void **state)
{
	static const struct {
		const char *by;
		struct rank runs, comes;
		uint64_t took;
	} cases[] = {
		/* As it comes: nobody without a class. */
		{NULL, {0, NONE}, {9, NONE}, WAITED},
		{NULL, {0, NONE}, {9, 100}, WAITED},
		{BY_CLASS, {0, NONE}, {9, 100}, WAITED},
		/* Priorities. */
		{BY_PRIORITY, {0, NONE}, {9, NONE}, STOPPED},
		{BY_PRIORITY, {-9, NONE}, {-8, NONE}, STOPPED},
		{BY_PRIORITY, {0, NONE}, {0, NONE}, WAITED},
		{BY_PRIORITY, {9, NONE}, {0, NONE}, WAITED},
		{BY_PRIORITY, {9, NONE}, {0, 100}, WAITED},
		{BY_PRIORITY, {0, NONE}, {0, 100}, STOPPED},
		/* Whoever has no deadline stops nobody. */
		{BY_DEADLINE, {0, NONE}, {9, NONE}, WAITED},
		{BY_DEADLINE, {0, 100}, {9, NONE}, WAITED},
		/* It would be missed, or nearly, and is kept; or is kept anyway. */
		{BY_DEADLINE, {0, NONE}, {0, 100}, STOPPED},
		{BY_DEADLINE, {0, NONE}, {0, WAITED - 1}, STOPPED},
		{BY_DEADLINE, {0, NONE}, {0, WAITED + MARGIN - 1}, STOPPED},
		{BY_DEADLINE, {0, NONE}, {0, WAITED + MARGIN}, WAITED},
		{BY_DEADLINE, {0, NONE}, {9, 100}, STOPPED},
		/* Not what has higher priority, or is due before. */
		{BY_DEADLINE, {1, NONE}, {0, 100}, WAITED},
		{BY_DEADLINE, {0, 150}, {0, 100}, WAITED},
		{BY_DEADLINE, {0, 250}, {0, 100}, STOPPED},
		{BY_DEADLINE, {0, 150}, {1, 100}, STOPPED},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		static const char *const policies[] = {"policy.name=priority",
						       "policy.name=edf"};

		for (int p = 0; p < 2; p++) {
			uint64_t lost;
			uint64_t took = takes(policies[p], cases[i].by, cases[i].runs,
					      cases[i].comes, &lost);

			if (took != cases[i].took || lost != (took == STOPPED) * 101)
				fail_msg("case %zu, %s: took %d, not %d; lost %d", i,
					 policies[p], (int)took, (int)cases[i].took,
					 (int)lost);
		}
	}
}

/* Each of three stops the one below; each goes on when those above have ended, not
 * before. */
static void nested(void **state)
{
	static const char *const options[] = {ONE_AT_A_TIME, BY_PRIORITY, NULL};
	struct hal_queue *q[3];
	struct world w;

	(void)state;
	world_open(&w, options);
	for (int i = 0; i < 3; i++)
		q[i] = known(&w, R(i, NONE), LONG);
	for (int i = 0; i < 3; i++) {
		(void)submit(&w, q[i], 2, LONG, (char)('0' + i));
		pass(&w, 100);
	}
	assert_int_equal(stats_of(q[0]).suspends, 1);
	assert_int_equal(stats_of(q[1]).suspends, 1);
	pass(&w, 2 * LONG);
	assert_string_equal(ended.text, "22");
	pass(&w, 1);
	finish_all(&w);
	assert_string_equal(ended.text, "221100");
	for (int i = 0; i < 3; i++) {
		/* Nobody is stopped twice for one that came once. */
		assert_int_equal(stats_of(q[i]).suspends, i < 2);
		OK(hal_queue_destroy(q[i]));
	}
	world_close(&w);
}

/* A submission's own priority and deadline are what counts, also when it is run again. */
static void of_submissions(void **state)
{
	static const char *const options[] = {ONE_AT_A_TIME, BY_PRIORITY, NULL};
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct hal_queue *q[3];
	struct world w;

	(void)state;
	world_open(&w, options);
	for (int i = 0; i < 3; i++)
		q[i] = known(&w, R(0, NONE), LONG);
	d.flags = HAL_SUBMIT_PRIORITY;
	d.priority = 5;
	(void)submit_as(&w, q[0], d, 1, LONG, '5');
	(void)submit(&w, q[0], 1, LONG, '0');
	pass(&w, 100);
	d.priority = 9;
	(void)submit_as(&w, q[1], d, 1, LONG, '9');
	pass(&w, 100);
	assert_int_equal(stats_of(q[0]).suspends, 1);
	d.priority = 3;
	(void)submit_as(&w, q[2], d, 1, LONG, '3');
	finish_all(&w);
	assert_string_equal(ended.text, "9530");
	/* 3 has waited for its turn, and stopped nobody. */
	assert_int_equal(stats_of(q[0]).suspends, 1);
	for (int i = 0; i < 3; i++)
		OK(hal_queue_destroy(q[i]));
	world_close(&w);
}

/* What something higher waits for is as high. */
static void inherited(void **state)
{
	static const char *const options[] = {ONE_AT_A_TIME, BY_PRIORITY, NULL};
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct hal_queue *low, *middle, *high;
	struct hal_point first;
	struct world w;

	(void)state;
	world_open(&w, options);
	low = known(&w, R(0, NONE), OWN);
	middle = known(&w, R(5, NONE), LONG);
	high = known(&w, R(9, NONE), OWN);
	(void)submit(&w, middle, 2, LONG, 'm');
	pass(&w, 100);
	first = submit(&w, low, 1, OWN, 'l');
	pass(&w, 10);
	assert_int_equal(stats_of(middle).suspends, 0);
	d.waits = &first;
	d.wait_count = 1;
	finish(submit_as(&w, high, d, 1, OWN, 'h'));
	assert_string_equal(ended.text, "lh");
	finish_all(&w);
	assert_string_equal(ended.text, "lhmm");
	OK(hal_queue_destroy(low));
	OK(hal_queue_destroy(middle));
	OK(hal_queue_destroy(high));
	world_close(&w);
}

/* A class without a deadline stops what is best effort, and by priority what is below. */
static void latency_critical(void **state)
{
	static const struct {
		const char *by;
		uint64_t suspends;
	} cases[] = {{BY_CLASS, 0}, {BY_DEADLINE, 0}, {BY_PRIORITY, 1}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *const options[] = {ONE_AT_A_TIME, cases[i].by, NULL};
		struct hal_queue_desc d = HAL_INIT(hal_queue_desc);
		struct hal_queue *low, *high;
		struct world w;

		world_open(&w, options);
		low = known(&w, R(9, NONE), LONG);
		d.service_class = HAL_CLASS_LATENCY;
		OK(hal_queue_create(w.part, &d, &high));
		(void)submit(&w, low, 1, LONG, 'l');
		pass(&w, 100);
		(void)submit(&w, high, 1, OWN, 'h');
		finish_all(&w);
		assert_int_equal(stats_of(low).suspends, cases[i].suspends);
		OK(hal_queue_destroy(low));
		OK(hal_queue_destroy(high));
		world_close(&w);
	}
}

/* Who comes may be a guest of the partition: what has made way goes on when that has
 * ended, and not in between. */
static void of_a_guest(void **state)
{
	static const char *const options[] = {ONE_AT_A_TIME, BY_PRIORITY,
					      "policy.preempt=fold", NULL};
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	struct hal_partition *guest;
	struct hal_queue *low, *middle, *high;
	struct world w;

	(void)state;
	memset(&w, 0, sizeof(w));
	OK(hal_open("ref?clock=virtual&fold_ns=1", options, &w.dev));
	w.part = add_partition(&w);
	world_work(&w, 0);
	low = known(&w, R(0, NONE), LONG);
	middle = known(&w, R(1, NONE), OWN);
	d.host = w.part;
	OK(hal_partition_create(w.dev, &d, &guest));
	high = add_queue(guest, 2, 1, 0);
	(void)submit(&w, low, 1, LONG, 'l');
	pass(&w, 100);
	(void)submit(&w, high, 3, LONG, 'h');
	pass(&w, 100);
	/* One comes and goes for whom it would make way, too. */
	(void)submit(&w, middle, 1, OWN, 'm');
	pass(&w, 10);
	OK(hal_queue_suspend(middle, HAL_SUSPEND_DRAIN, NULL));
	finish_all(&w);
	assert_string_equal(ended.text, "hhhl");
	assert_int_equal(stats_of(low).suspends, 1);
	OK(hal_queue_resume(middle));
	finish_all(&w);
	assert_string_equal(ended.text, "hhhlm");
	OK(hal_queue_destroy(low));
	OK(hal_queue_destroy(middle));
	OK(hal_queue_destroy(high));
	OK(hal_partition_destroy(guest));
	world_close(&w);
}

/* Changed while there is work: who had made way goes on; and who comes after it does. */
static void changed(void **state)
{
	static const char *const options[] = {ONE_AT_A_TIME, NULL};
	static const char *const by_priority[] = {"preempt_for=priority", NULL};
	static const char *const by_class[] = {"preempt_for=class", NULL};
	static const char *const wrong[] = {"preempt_for=whim", NULL};
	struct hal_queue *low, *high;
	struct world w;

	(void)state;
	world_open(&w, options);
	low = known(&w, R(0, NONE), LONG);
	high = known(&w, R(1, NONE), LONG);
	(void)submit(&w, low, 4, LONG, 'l');
	pass(&w, 100);
	FAILS(hal_device_set_policy(w.dev, "priority", wrong), -EINVAL, "preempt_for");
	OK(hal_device_set_policy(w.dev, "priority", by_priority));
	(void)submit(&w, high, 2, LONG, 'h');
	pass(&w, 100);
	assert_int_equal(stats_of(low).suspends, 1);
	OK(hal_device_set_policy(w.dev, "priority", by_class));
	/* The second of the higher comes first, by its priority, and stops nobody. */
	pass(&w, 2 * LONG);
	assert_string_equal(ended.text, "hh");
	pass(&w, 100);
	(void)submit(&w, high, 1, LONG, 'h');
	finish_all(&w);
	assert_string_equal(ended.text, "hhlhlll");
	assert_int_equal(stats_of(low).suspends, 1);
	OK(hal_queue_destroy(low));
	OK(hal_queue_destroy(high));
	world_close(&w);
}

/* A higher priority without a pause: the lower one waits no longer than the net says,
 * twice: until it may go on, and until it is served. */
static void without_a_pause(void **state)
{
	static const char *const options[] = {"hal.queue_depth=4096", BY_PRIORITY,
					      "policy.timeout_ms=1", NULL};
	struct hal_queue *low, *high;
	struct world w;

	(void)state;
	world_open(&w, options);
	low = known(&w, R(0, NONE), LONG);
	high = known(&w, R(1, NONE), LONG);
	(void)submit(&w, low, 10, LONG, 'l');
	pass(&w, 100);
	(void)submit(&w, high, 900, 10000, 'h');
	pass(&w, 900000);
	assert_null(strchr(ended.text, 'l'));
	pass(&w, 1300000);
	assert_non_null(strchr(ended.text, 'l'));
	finish_all(&w);
	assert_int_equal(stats_of(low).completed, 18);
	OK(hal_queue_destroy(low));
	OK(hal_queue_destroy(high));
	world_close(&w);
}

/* A task of 20 ns every 100, due when the next one comes, beside one of 150 every 300,
 * due in 300: half of the device and less than all of it.  Earliest deadline first keeps
 * all of them when it may stop what runs (Liu and Layland 1973), and not otherwise. */
static uint64_t misses(const char *by)
{
	const char *const options[] = {"policy.name=edf", "hal.queue_depth=1024",
				       "hal.partition_inflight=1", by, NULL};
	struct hal_queue *brief, *lengthy;
	struct world w;
	uint64_t n;

	memset(&w, 0, sizeof(w));
	forget();
	OK(hal_open("ref?clock=virtual&fold_ns=1", options, &w.dev));
	w.part = add_partition(&w);
	world_work(&w, 0);
	brief = known(&w, R(0, 100), 20);
	lengthy = known(&w, R(0, 300), 150);
	n = stats_of(brief).deadline_misses + stats_of(lengthy).deadline_misses;
	for (int i = 0; i < 300; i++) {
		if (i % 3 == 0)
			(void)submit(&w, lengthy, 1, 150, 'L');
		pass(&w, 1);
		(void)submit(&w, brief, 1, 20, 'b');
		pass(&w, 99);
	}
	finish_all(&w);
	n = stats_of(brief).deadline_misses + stats_of(lengthy).deadline_misses - n;
	assert_int_equal(stats_of(lengthy).replayed, 0);
	OK(hal_queue_destroy(brief));
	OK(hal_queue_destroy(lengthy));
	world_close(&w);
	return n;
}

/* Behind a's commands on the device stands its wait for b, and lends b what b stops these
 * for: how often either is stopped until all is done. */
static uint64_t in_turns(const char *mode, uint32_t *lost)
{
	const char *const options[] = {"hal.partition_inflight=2",
				       "hal.inflight=2",
				       BY_DEADLINE,
				       mode,
				       "policy.kills=3",
				       NULL};
	struct hal_submit_desc waits = HAL_INIT(hal_submit_desc);
	struct hal_queue *a, *b;
	struct hal_point gate;
	uint64_t stops;
	struct world w;

	memset(&w, 0, sizeof(w));
	memset(&ended, 0, sizeof(ended));
	OK(hal_open("ref?clock=virtual&fold_ns=1", options, &w.dev));
	w.part = add_partition(&w);
	world_work(&w, 0);
	a = add_queue(w.part, 1, 1, 20 * LONG);
	b = add_queue(w.part, 0, 1, 10 * LONG);
	(void)submit(&w, a, 2, LONG, 'a');
	gate = (struct hal_point){hal_queue_get_timeline(b), 1};
	waits.waits = &gate;
	waits.wait_count = 1;
	(void)submit_as(&w, a, waits, 1, LONG, 'A');
	pass(&w, 100);
	(void)submit(&w, b, 1, LONG, 'b');
	pass(&w, 100 * LONG);
	assert_int_equal(ended.length, 4);
	assert_int_equal(ended.text[3], 'A');
	stops = stats_of(a).suspends + stats_of(b).suspends;
	*lost = (uint32_t)(stats_of(a).replayed + stats_of(b).replayed);
	OK(hal_queue_destroy(a));
	OK(hal_queue_destroy(b));
	world_close(&w);
	return stops;
}

/* KILL takes back the commands, and with them the wait and what is lent: so they stop
 * each other in turns, as often as a command may be killed.  FOLD takes back nothing. */
static void stops_change_who_lends(void **state)
{
	uint32_t lost;

	(void)state;
	assert_int_equal(in_turns("policy.preempt=fold", &lost), 1);
	assert_int_equal(lost, 0);
	assert_in_range(in_turns("policy.preempt=kill", &lost), 3, 2 * (3 + 1) + 2);
	assert_in_range(lost, 1, 2 * 3);
}

static void earliest_deadline_first(void **state)
{
	(void)state;
	assert_int_equal(misses(BY_DEADLINE), 0);
	assert_int_equal(misses(NULL), 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_stops_whom),
		cmocka_unit_test(nested),
		cmocka_unit_test(of_submissions),
		cmocka_unit_test(inherited),
		cmocka_unit_test(latency_critical),
		cmocka_unit_test(of_a_guest),
		cmocka_unit_test(changed),
		cmocka_unit_test(without_a_pause),
		cmocka_unit_test(stops_change_who_lends),
		cmocka_unit_test(earliest_deadline_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
