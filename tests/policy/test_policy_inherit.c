/* SPDX-License-Identifier: Apache-2.0 */
/* Priority inversion through points: with inheritance, and the control without. */
#include "world.h"

#define ONE_AT_A_TIME "hal.partition_inflight=1", "hal.inflight=1", "hal.queue_depth=4096"

enum { LONG = 100, SHORT = 10, MANY = 50 };

/* One that is waited for (x), one in between with much to do (m), one above both (h). */
struct three {
	struct world w;
	struct hal_queue *low, *middle, *high;
};

static struct hal_queue *queue_of(struct hal_partition *part, uint16_t service_class,
				  int32_t priority)
{
	struct hal_queue_desc d = HAL_INIT(hal_queue_desc);
	struct hal_queue *q;

	d.service_class = service_class;
	d.priority = priority;
	OK(hal_queue_create(part, &d, &q));
	return q;
}

static void three_open(struct three *t, const char *policy, const char *option)
{
	const char *const options[] = {ONE_AT_A_TIME, policy, option, NULL};

	world_open(&t->w, options);
	t->low = add_queue(t->w.part, 0, 1, 0);
	t->middle = add_queue(t->w.part, 1, 1, 0);
	t->high = add_queue(t->w.part, 2, 1, 0);
}

static void three_close(struct three *t)
{
	OK(hal_queue_destroy(t->low));
	OK(hal_queue_destroy(t->middle));
	OK(hal_queue_destroy(t->high));
	world_close(&t->w);
}

/* A command of q that waits for p. */
static struct hal_point behind(struct world *w, struct hal_queue *q, struct hal_point p,
			       char message)
{
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);

	d.waits = &p;
	d.wait_count = 1;
	return submit_as(w, q, d, 1, SHORT, message);
}

/* How long the highest waits for the lowest, which the one in between is before. */
static uint64_t inversion(const char *policy, const char *option)
{
	struct hal_point x, h;
	struct three t;
	uint64_t at;

	three_open(&t, policy, option);
	(void)submit(&t.w, t.middle, MANY, LONG, 'm');
	pass(&t.w, 50);
	x = submit(&t.w, t.low, 1, LONG, 'x');
	at = hal_device_get_time(t.w.dev);
	h = behind(&t.w, t.high, x, 'h');
	finish(h);
	at = hal_device_get_time(t.w.dev) - at;
	finish_all(&t.w);
	assert_int_equal(ended.length, MANY + 2);
	three_close(&t);
	return at;
}

static void through_a_point(void **state)
{
	(void)state;
	/* The rest of what runs, the one waited for, itself. */
	assert_int_equal(inversion("policy.name=priority", NULL), 50 + LONG + SHORT);
	/* The control: all there is in between comes before it. */
	assert_int_equal(inversion("policy.name=priority", "policy.inherit=no"),
			 50 + (MANY - 1) * LONG + LONG + SHORT);
}

/* Only as long as it is waited for, and only what is waited for. */
static void as_long_as_it_lasts(void **state)
{
	struct hal_point first;
	struct three t;

	(void)state;
	three_open(&t, "policy.name=priority", NULL);
	(void)submit(&t.w, t.middle, 4, LONG, 'm');
	pass(&t.w, 50);
	first = submit(&t.w, t.low, 1, LONG, 'x');
	(void)submit(&t.w, t.low, 2, LONG, 'y');
	(void)behind(&t.w, t.high, first, 'h');
	finish_all(&t.w);
	assert_string_equal(ended.text, "mxhmmmyy");
	/* Who waits is stopped for good before: nobody is above the others then. */
	ended.length = 0;
	(void)submit(&t.w, t.middle, 3, LONG, 'm');
	pass(&t.w, 50);
	first = submit(&t.w, t.low, 1, LONG, 'x');
	(void)behind(&t.w, t.high, first, 'h');
	pass(&t.w, 1);
	OK(hal_queue_suspend(t.high, HAL_SUSPEND_DRAIN | HAL_SUSPEND_FINAL, NULL));
	OK(hal_queue_destroy(t.high));
	finish_all(&t.w);
	ended.text[ended.length] = '\0';
	assert_string_equal(ended.text, "mmmx");
	t.high = NULL;
	three_close(&t);
}

/* Through one that waits itself, and through a signal. */
static void chains(const char *option, bool explicit, const char *expect)
{
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct hal_timeline *line;
	struct hal_queue *between;
	struct hal_point x, y, signal;
	struct three t;

	three_open(&t, "policy.name=priority", option);
	between = add_queue(t.w.part, 0, 1, 0);
	OK(hal_timeline_create(t.w.dev, &line));
	signal = (struct hal_point){line, 7};
	(void)submit(&t.w, t.middle, 3, LONG, 'm');
	pass(&t.w, 50);
	d.signals = &signal;
	d.signal_count = 1;
	x = submit_as(&t.w, t.low, d, 1, LONG, 'x');
	y = behind(&t.w, between, explicit ? (struct hal_point){line, 5} : x, 'y');
	(void)behind(&t.w, t.high, y, 'h');
	finish_all(&t.w);
	assert_string_equal(ended.text, expect);
	OK(hal_queue_destroy(between));
	OK(hal_timeline_destroy(line));
	three_close(&t);
}

static void through_others(void **state)
{
	(void)state;
	chains(NULL, false, "mxyhmm");
	chains(NULL, true, "mxyhmm");
	chains("policy.inherit=no", false, "mmmxyh");
	chains("policy.inherit=no", true, "mmmxyh");
}

/* Who signals is found behind a queue that is full, also with a signal that is not among
 * its first records. */
static void behind_full_queues(void **state)
{
	static const unsigned int before[] = {0, 10, 40};

	(void)state;
	for (size_t i = 0; i < sizeof(before) / sizeof(before[0]); i++) {
		struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
		struct hal_point signal = {NULL, 1};
		struct three t;

		three_open(&t, "policy.name=priority", NULL);
		/* It is the last that is looked at. */
		OK(hal_queue_destroy(t.low));
		t.low = add_queue(t.w.part, 0, 1, 0);
		OK(hal_timeline_create(t.w.dev, &signal.timeline));
		(void)submit(&t.w, t.middle, 300, LONG, 'm');
		pass(&t.w, 50);
		(void)submit(&t.w, t.low, before[i], SHORT, 'x');
		d.signals = &signal;
		d.signal_count = 1;
		(void)submit_as(&t.w, t.low, d, 1, SHORT, 'x');
		finish(behind(&t.w, t.high, signal, 'h'));
		assert_int_equal(ended.length, 1 + before[i] + 1 + 1);
		finish_all(&t.w);
		OK(hal_timeline_destroy(signal.timeline));
		three_close(&t);
	}
}

/* From another partition. */
static void across_partitions(void **state)
{
	struct hal_partition *other;
	struct hal_queue *far;
	struct hal_point x;
	struct three t;

	(void)state;
	three_open(&t, "policy.name=priority", NULL);
	other = add_partition(&t.w);
	far = queue_of(other, HAL_CLASS_LATENCY, 0);
	(void)submit(&t.w, t.middle, 3, LONG, 'm');
	pass(&t.w, 50);
	x = submit(&t.w, t.low, 1, LONG, 'x');
	(void)behind(&t.w, far, x, 'f');
	(void)submit(&t.w, t.low, 1, LONG, 'y');
	finish_all(&t.w);
	assert_string_equal(ended.text, "mxfmmy");
	OK(hal_queue_destroy(far));
	OK(hal_partition_destroy(other));
	three_close(&t);
}

/* By deadline. */
static void deadlines(const char *option, const char *expect)
{
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct hal_point x;
	struct three t;

	three_open(&t, "policy.name=edf", option);
	d.deadline_ns = 2000;
	(void)submit_as(&t.w, t.middle, d, 3, LONG, 'm');
	pass(&t.w, 50);
	x = submit(&t.w, t.low, 1, LONG, 'x');
	d.deadline_ns = 300;
	d.waits = &x;
	d.wait_count = 1;
	(void)submit_as(&t.w, t.high, d, 1, SHORT, 'h');
	finish_all(&t.w);
	assert_string_equal(ended.text, expect);
	assert_int_equal(stats_of(t.high).deadline_misses, option != NULL);
	three_close(&t);
}

static void by_deadline(void **state)
{
	(void)state;
	deadlines(NULL, "mxhmm");
	deadlines("policy.inherit=no", "mmmxh");
}

/* ---- stopping ----------------------------------------------------------------------- */

/* Best effort that something latency-critical waits for makes way for nobody; and goes on
 * if it has. */
static void spared(const char *option, bool before, uint64_t kills, const char *expect)
{
	const char *const options[] = {ONE_AT_A_TIME, "policy.preempt=kill", option,
				       NULL};
	struct hal_queue *effort, *critical, *other;
	struct hal_point x;
	struct world w;

	world_open(&w, options);
	effort = queue_of(w.part, HAL_CLASS_BEST_EFFORT, 0);
	critical = queue_of(w.part, HAL_CLASS_LATENCY, 0);
	other = queue_of(w.part, HAL_CLASS_LATENCY, 0);
	x = submit(&w, effort, 1, LONG, 'x');
	pass(&w, 50);
	if (before)
		(void)behind(&w, critical, x, 'c');
	pass(&w, 1);
	(void)submit(&w, other, 4, SHORT, 'o');
	pass(&w, 5);
	if (!before)
		(void)behind(&w, critical, x, 'c');
	finish_all(&w);
	assert_string_equal(ended.text, expect);
	assert_int_equal(stats_of(effort).replayed, kills);
	OK(hal_queue_destroy(effort));
	OK(hal_queue_destroy(critical));
	OK(hal_queue_destroy(other));
	world_close(&w);
}

static void not_stopped(void **state)
{
	(void)state;
	spared(NULL, true, 0, "xocooo");
	spared("policy.inherit=no", true, 1, "ooooxc");
	/* Stopped already, it goes on beside those it was stopped for. */
	spared(NULL, false, 1, "oxocoo");
	spared("policy.inherit=no", false, 1, "ooooxc");
}

/* A policy may not stop it either. */
static void not_by_a_policy(void **state)
{
	static const char *const options[] = {ONE_AT_A_TIME, "policy.name=reef", NULL};
	struct hal_queue *effort, *critical, *other;
	struct hal_point x;
	struct world w;

	(void)state;
	for (int waits = 0; waits < 2; waits++) {
		world_open(&w, options);
		effort = add_queue(w.part, 0, 1, 0);
		critical = add_queue(w.part, 1, 1, 0);
		other = add_queue(w.part, 1, 1, 0);
		x = submit(&w, effort, 1, LONG, 'x');
		pass(&w, 50);
		if (waits != 0)
			(void)behind(&w, critical, x, 'c');
		pass(&w, 1);
		(void)submit(&w, other, 1, SHORT, 'o');
		finish_all(&w);
		assert_string_equal(ended.text, waits != 0 ? "xoc" : "ox");
		assert_int_equal(stats_of(effort).replayed, waits == 0);
		OK(hal_queue_destroy(effort));
		OK(hal_queue_destroy(critical));
		OK(hal_queue_destroy(other));
		world_close(&w);
	}
}

/* Best effort; one that waits for it, one in another partition that waits for that, and
 * one there that waits for nobody. */
struct chain {
	struct world w;
	struct hal_partition *other;
	struct hal_queue *effort, *next, *far, *beside;
};

static void chain_open(struct chain *c)
{
	static const char *const options[] = {"hal.partition_inflight=1",
					      "policy.preempt=kill", NULL};
	struct hal_point x, y;

	world_open(&c->w, options);
	c->other = add_partition(&c->w);
	c->effort = queue_of(c->w.part, HAL_CLASS_BEST_EFFORT, 0);
	c->next = queue_of(c->w.part, HAL_CLASS_BEST_EFFORT, 0);
	c->far = queue_of(c->other, HAL_CLASS_BEST_EFFORT, 0);
	c->beside = queue_of(c->other, HAL_CLASS_BEST_EFFORT, 0);
	x = submit(&c->w, c->effort, 1, LONG, 'x');
	y = behind(&c->w, c->next, x, 'y');
	(void)behind(&c->w, c->far, y, 'z');
	pass(&c->w, 50);
}

static void chain_close(struct chain *c)
{
	OK(hal_queue_destroy(c->effort));
	OK(hal_queue_destroy(c->next));
	OK(hal_queue_destroy(c->far));
	OK(hal_queue_destroy(c->beside));
	OK(hal_partition_destroy(c->other));
	world_close(&c->w);
}

/* Of what waits for a stopped queue, itself or through others, the device has nothing: it
 * is stopped with it without being asked, takes nobody's place meanwhile, and goes on
 * when that does. */
static void waits_with_it(void **state)
{
	struct hal_queue *critical;
	struct hal_point quiet[2];
	struct chain c;

	(void)state;
	chain_open(&c);
	critical = queue_of(c.w.part, HAL_CLASS_LATENCY, 0);
	(void)submit(&c.w, critical, 10, SHORT, 'c');
	pass(&c.w, 5);
	/* In the same partition as one that waits, and behind it. */
	(void)submit(&c.w, c.beside, 2, SHORT, 'b');
	pass(&c.w, 20);
	assert_int_equal(stats_of(c.effort).suspends, 1);
	assert_int_equal(stats_of(c.beside).completed, 2);
	/* There is nothing to stop: no time passes until they are quiet, and nothing of
	 * them is done again. */
	OK(hal_queue_suspend(c.next, HAL_SUSPEND_DRAIN, &quiet[0]));
	OK(hal_queue_suspend(c.far, HAL_SUSPEND_DRAIN, &quiet[1]));
	OK(hal_wait(quiet, 2, 0, 0));
	assert_int_equal(stats_of(c.next).suspend_ns + stats_of(c.far).suspend_ns, 0);
	OK(hal_queue_resume(c.next));
	OK(hal_queue_resume(c.far));
	finish_all(&c.w);
	assert_string_equal(ended.text, "cbcbccccccccxyz");
	assert_int_equal(stats_of(c.effort).replayed, 1);
	assert_int_equal(stats_of(c.next).replayed + stats_of(c.far).replayed, 0);
	OK(hal_queue_destroy(critical));
	chain_close(&c);
}

/* The same when the application stops it. */
static void waits_with_the_suspended(void **state)
{
	struct hal_point quiet;
	struct chain c;

	(void)state;
	chain_open(&c);
	OK(hal_queue_suspend(c.effort, HAL_SUSPEND_KILL, &quiet));
	finish(quiet);
	(void)submit(&c.w, c.beside, 1, SHORT, 'b');
	finish_all(&c.w);
	assert_string_equal(ended.text, "b");
	OK(hal_queue_resume(c.effort));
	finish_all(&c.w);
	assert_string_equal(ended.text, "bxyz");
	chain_close(&c);
}

/* Two that wait for each other, until the host helps. */
static void in_a_circle(void **state)
{
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct hal_timeline *a, *b;
	struct hal_point to_a, to_b;
	struct three t;

	(void)state;
	three_open(&t, "policy.name=priority", NULL);
	OK(hal_timeline_create(t.w.dev, &a));
	OK(hal_timeline_create(t.w.dev, &b));
	to_a = (struct hal_point){a, 1};
	to_b = (struct hal_point){b, 1};
	d.wait_count = 1;
	d.signal_count = 1;
	d.waits = &to_b;
	d.signals = &to_a;
	(void)submit_as(&t.w, t.low, d, 1, SHORT, 'l');
	d.waits = &to_a;
	d.signals = &to_b;
	(void)submit_as(&t.w, t.high, d, 1, SHORT, 'h');
	pass(&t.w, 100);
	assert_int_equal(ended.length, 0);
	OK(hal_timeline_signal(b, 1));
	finish_all(&t.w);
	assert_string_equal(ended.text, "lh");
	OK(hal_timeline_destroy(a));
	OK(hal_timeline_destroy(b));
	three_close(&t);
}

/* A preempted queue inherits a priority, but its class stays below that of the work for
 * which it is preempted: it stays stopped until that has completed. */
static void inherits_too_little(void **state)
{
	enum { FOLD = 10 }; /* as backend.ref.fold_ns */
	static const char *const modes[] = {"policy.preempt_for=class",
					    "policy.preempt_for=priority"};

	(void)state;
	for (int i = 0; i < 2; i++) {
		const char *const options[] = {"hal.partition_inflight=2",
					       "hal.inflight=1",
					       "backend.ref.fold_ns=10",
					       "policy.preempt=fold",
					       modes[i],
					       NULL};
		struct hal_queue *low, *waits, *urgent;
		struct hal_point x;
		struct world w;

		world_open(&w, options);
		low = queue_of(w.part, HAL_CLASS_BEST_EFFORT, 0);
		waits = queue_of(w.part, HAL_CLASS_BEST_EFFORT, 5);
		urgent = queue_of(w.part, HAL_CLASS_LATENCY, 0);
		x = submit(&w, low, 1, MANY * LONG, 'x');
		pass(&w, LONG);
		(void)submit(&w, urgent, 4, LONG, 'u');
		pass(&w, LONG / 2);
		assert_int_equal(stats_of(low).suspends, 1);
		(void)behind(&w, waits, x, 'w');
		pass(&w, 3 * LONG);
		assert_int_equal(stats_of(low).suspends, 1);
		assert_int_equal(stats_of(low).busy_ns, LONG + FOLD);
		assert_int_equal(ended.length, 3);
		finish_all(&w);
		ended.text[ended.length] = '\0';
		assert_string_equal(ended.text, "uuuuxw");
		/* No time is lost. */
		assert_int_equal(hal_device_get_time(w.dev), (4 + MANY) * LONG + SHORT);
		OK(hal_queue_destroy(low));
		OK(hal_queue_destroy(waits));
		OK(hal_queue_destroy(urgent));
		world_close(&w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(through_a_point),
		cmocka_unit_test(as_long_as_it_lasts),
		cmocka_unit_test(through_others),
		cmocka_unit_test(behind_full_queues),
		cmocka_unit_test(across_partitions),
		cmocka_unit_test(by_deadline),
		cmocka_unit_test(not_stopped),
		cmocka_unit_test(not_by_a_policy),
		cmocka_unit_test(waits_with_it),
		cmocka_unit_test(waits_with_the_suspended),
		cmocka_unit_test(in_a_circle),
		cmocka_unit_test(inherits_too_little),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
