/* SPDX-License-Identifier: Apache-2.0 */
/* Best effort makes way for latency-critical work, in the mode that costs least, but for
 * what may not run twice and what has been killed often enough. */
#include "world.h"

#include "../unit/mock.h"

#define ONE_AT_A_TIME "hal.partition_inflight=1", "hal.inflight=1", "hal.queue_depth=4096"

enum { LONG = 1000, OWN = 10 };

struct two {
	struct world w;
	struct hal_queue *be, *lc;
};

static struct hal_queue *of_class(struct hal_partition *part, uint16_t service_class)
{
	struct hal_queue_desc d = HAL_INIT(hal_queue_desc);
	struct hal_queue *q;

	d.service_class = service_class;
	OK(hal_queue_create(part, &d, &q));
	return q;
}

/* Of both it is known what they run. */
static void two_open(struct two *t, const char *const *options)
{
	world_open(&t->w, options);
	t->be = of_class(t->w.part, HAL_CLASS_BEST_EFFORT);
	t->lc = of_class(t->w.part, HAL_CLASS_LATENCY);
	finish(submit(&t->w, t->be, 8, LONG, 'b'));
	finish(submit(&t->w, t->lc, 8, OWN, 'l'));
	assert_int_equal(stats_of(t->be).suspends, 0);
	ended.length = 0;
	memset(ended.text, 0, sizeof(ended.text));
}

static void two_close(struct two *t)
{
	assert_int_equal(policy_of(&t->w).invalid + policy_of(&t->w).stalls, 0);
	OK(hal_queue_destroy(t->be));
	OK(hal_queue_destroy(t->lc));
	world_close(&t->w);
}

/* A command that may not run twice. */
static void submit_once(struct two *t, uint64_t ns)
{
	const struct hal_arg args[2] = {{.offset = ns}, {.offset = 'B'}};
	struct hal_cmd cmd = hal_cmd_launch(t->w.work, args, 2);
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);

	d.cmds = &cmd;
	d.cmd_count = 1;
	OK(hal_submit(t->be, &d, NULL));
}

static uint64_t took(struct two *t, uint64_t deadline_ns)
{
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	uint64_t at = hal_device_get_time(t->w.dev);

	d.deadline_ns = deadline_ns;
	finish(submit_as(&t->w, t->lc, d, 1, OWN, 'l'));
	return hal_device_get_time(t->w.dev) - at;
}

struct wanted {
	uint64_t took, lost;
};

/* One of LONG has run at_ns when something latency-critical comes. */
static void comes(const char *policy, const char *option, uint64_t at_ns,
		  uint64_t deadline_ns, bool again, struct wanted want)
{
	const char *const options[] = {ONE_AT_A_TIME, policy, option, NULL};
	struct two t;

	two_open(&t, options);
	if (again)
		(void)submit(&t.w, t.be, 2, LONG, 'b');
	else
		submit_once(&t, LONG);
	pass(&t.w, at_ns);
	assert_int_equal(took(&t, deadline_ns), want.took);
	finish_all(&t.w);
	assert_int_equal(stats_of(t.be).replayed_ns, want.lost);
	/* Also what may not run twice is stopped, with no more of it on the device. */
	assert_int_equal(stats_of(t.be).suspends, strstr(option, "never") == NULL);
	assert_int_equal(stats_of(t.be).completed, again ? 10 : 9);
	assert_int_equal(stats_of(t.lc).deadline_misses,
			 deadline_ns != 0 && want.took > deadline_ns);
	two_close(&t);
}

#define BEST    "policy.preempt=best"
#define KILLED  ((struct wanted){OWN + 1, at_ + 1})
#define DRAINED ((struct wanted){OWN + LONG - at_, 0})
#define COMES(option, at, deadline, again, want)                                         \
	do {                                                                             \
		const uint64_t at_ = (at);                                               \
		comes(policy, option, at_, deadline, again, want);                       \
	} while (0)

/* Whatever the policy. */
static void chosen_under(const char *policy)
{
	/* Less is lost than waited for, and the other way round. */
	COMES(BEST, 100, 0, true, KILLED);
	COMES(BEST, 490, 0, true, KILLED);
	COMES(BEST, 510, 0, true, DRAINED);
	COMES(BEST, 900, 0, true, DRAINED);
	/* A deadline that can be kept without a loss; one that can not. */
	COMES(BEST, 100, 2000, true, DRAINED);
	COMES(BEST, 100, 910 + 900 / 8, true, DRAINED);
	COMES(BEST, 100, 909 + 900 / 8, true, KILLED);
	COMES(BEST, 900, 105, true, KILLED);
	/* One that is missed whatever is done: as without. */
	COMES(BEST, 900, 10, true, DRAINED);
	COMES(BEST, 100, 10, true, KILLED);
	/* What may not run twice is waited for. */
	COMES(BEST, 100, 0, false, DRAINED);
	COMES(BEST, 900, 105, false, DRAINED);
	/* As the configuration says. */
	COMES("policy.preempt=kill", 900, 0, true, KILLED);
	COMES("policy.preempt=kill", 100, 0, false, DRAINED);
	COMES("policy.preempt=drain", 100, 0, true, DRAINED);
	COMES("policy.preempt=save", 100, 0, true, DRAINED); /* which ref has not */
	COMES("policy.preempt=never", 100, 0, true, DRAINED);
}

static void chosen(void **state)
{
	(void)state;
	chosen_under("policy.name=priority");
	chosen_under("policy.name=fifo");
	chosen_under("policy.name=wfq");
	chosen_under("policy.name=tidal");
}

/* Nothing is known of the first: it is taken for what the configuration says. */
static uint64_t unknown(const char *option)
{
	const char *const options[] = {ONE_AT_A_TIME, option, NULL};
	struct hal_queue *be, *lc;
	struct world w;
	uint64_t lost;

	world_open(&w, options);
	be = of_class(w.part, HAL_CLASS_BEST_EFFORT);
	lc = of_class(w.part, HAL_CLASS_LATENCY);
	(void)submit(&w, be, 1, LONG, 'b');
	pass(&w, 900);
	finish(submit(&w, lc, 1, OWN, 'l'));
	lost = stats_of(be).replayed_ns;
	finish_all(&w);
	OK(hal_queue_destroy(be));
	OK(hal_queue_destroy(lc));
	world_close(&w);
	return lost;
}

static void unknown_lengths(void **state)
{
	(void)state;
	assert_int_equal(unknown(NULL), 901);
	assert_int_equal(unknown("policy.preempt_unknown_us=1"), 0);
}

/* Several that the device has at a time: those behind the first have lost nothing yet. */
static void several(void **state)
{
	static const char *const options[] = {"hal.queue_depth=256",
					      "hal.partition_inflight=4", NULL};
	struct hal_queue *other;
	struct two t;

	(void)state;
	two_open(&t, options);
	other = of_class(t.w.part, HAL_CLASS_BEST_EFFORT);
	(void)submit(&t.w, t.be, 2, LONG, 'b');
	(void)submit(&t.w, other, 2, LONG, 'o');
	pass(&t.w, 990);
	/* 10 ns are left of the first, but 1,000 each behind it. */
	assert_int_equal(took(&t, 0), OWN + 1);
	assert_int_equal(stats_of(t.be).suspends, 1);
	assert_int_equal(stats_of(other).suspends, 1);
	finish_all(&t.w);
	assert_int_equal(ended.length, 5);
	OK(hal_queue_destroy(other));
	two_close(&t);
}

/* They run one after the other, so what comes waits for what is left of all: 600 ns of
 * the first could be waited for, but not with what is behind it and cannot be stopped, or
 * may not run twice. */
static void several_in_time(void **state)
{
	static const char *const options[] = {"hal.queue_depth=256",
					      "hal.partition_inflight=4", NULL};
	struct hal_queue *normal;
	struct two t;

	(void)state;
	two_open(&t, options);
	normal = of_class(t.w.part, HAL_CLASS_NORMAL);
	finish(submit(&t.w, normal, 8, 600, 'n'));
	memset(&ended, 0, sizeof(ended));
	(void)submit(&t.w, t.be, 1, LONG, 'b');
	pass(&t.w, 400);
	assert_int_equal(took(&t, LONG), LONG - 400 + OWN);
	(void)submit(&t.w, t.be, 1, LONG, 'b');
	pass(&t.w, 1);
	(void)submit(&t.w, normal, 1, 600, 'n');
	pass(&t.w, 399);
	assert_int_equal(took(&t, LONG), 1 + 600 + OWN);
	finish_all(&t.w);
	assert_string_equal(ended.text, "blnlb");
	assert_int_equal(stats_of(t.lc).deadline_misses, 0);
	OK(hal_queue_destroy(normal));
	two_close(&t);
}

static void several_once(void **state)
{
	static const char *const options[] = {"hal.queue_depth=256",
					      "hal.partition_inflight=4", NULL};
	struct hal_queue *other;
	struct two t;

	(void)state;
	two_open(&t, options);
	other = t.be;
	t.be = of_class(t.w.part, HAL_CLASS_BEST_EFFORT);
	finish(submit(&t.w, t.be, 8, 600, 'b'));
	memset(&ended, 0, sizeof(ended));
	(void)submit(&t.w, other, 1, LONG, 'o');
	submit_once(&t, 600);
	pass(&t.w, 400);
	assert_int_equal(took(&t, LONG), 1 + 600 + OWN);
	finish_all(&t.w);
	assert_string_equal(ended.text, "Blo");
	assert_int_equal(stats_of(t.lc).deadline_misses, 0);
	OK(hal_queue_destroy(other));
	two_close(&t);
}

/* Every 300 ns for so long: how many of best effort end, and how often one is killed. */
static uint64_t hunted(const char *policy, const char *option, uint64_t *kills)
{
	const char *const options[] = {ONE_AT_A_TIME, policy, "policy.preempt=kill",
				       option, NULL};
	struct two t;
	uint64_t n;

	two_open(&t, options);
	(void)submit(&t.w, t.be, 200, LONG, 'b');
	for (int i = 0; i < 400; i++) {
		(void)submit(&t.w, t.lc, 1, OWN, 'l');
		pass(&t.w, 300);
	}
	n = stats_of(t.be).completed - 8;
	*kills = stats_of(t.be).replayed;
	finish_all(&t.w);
	assert_int_equal(stats_of(t.be).completed, 208);
	two_close(&t);
	return n;
}

static void protected(void **state)
{
	uint64_t kills;

	(void)state;
	/* The control: killed each time, it never ends. */
	assert_int_equal(hunted("policy.name=fifo", "policy.kills=1000000", &kills), 0);
	assert_int_equal(kills, 399); /* the first came before it */
	/* Three times, and then it runs to its end. */
	assert_in_range(hunted("policy.name=fifo", "policy.kills=3", &kills), 60, 70);
	assert_in_range(kills, 3 * 60, 3 * 70);
	assert_in_range(hunted("policy.name=priority", NULL, &kills), 25, 31);
}

/* Latency-critical work without a pause: best effort waits no longer than the net says,
 * twice: until it may go on, and until it is served. */
static void without_a_pause(void **state)
{
	static const char *const options[] = {"hal.queue_depth=4096",
					      "policy.preempt=kill",
					      "policy.timeout_ms=1", NULL};
	struct two t;

	(void)state;
	two_open(&t, options);
	(void)submit(&t.w, t.be, 10, LONG, 'b');
	pass(&t.w, 100);
	(void)submit(&t.w, t.lc, 900, 10000, 'l');
	pass(&t.w, 900000);
	assert_int_equal(stats_of(t.be).completed, 8);
	pass(&t.w, 1300000);
	assert_in_range(stats_of(t.be).completed, 9, 10);
	assert_true(policy_of(&t.w).starved > 0);
	finish_all(&t.w);
	assert_int_equal(stats_of(t.be).completed, 18);
	two_close(&t);
}

/* ---- the application is in between ------------------------------------------------- */

static void application(void **state)
{
	static const char *const options[] = {ONE_AT_A_TIME, "policy.preempt=kill", NULL};
	struct hal_point quiet;
	struct two t;

	(void)state;
	two_open(&t, options);
	(void)submit(&t.w, t.be, 2, LONG, 'b');
	pass(&t.w, 100);
	(void)submit(&t.w, t.lc, 4, LONG, 'l');
	pass(&t.w, 50);
	/* It is suspended, though not by the application, which may not lose its work. */
	FAILS(hal_queue_destroy(t.be), -EBUSY, "submissions have completed");
	/* It may let it go on, behind the others. */
	OK(hal_queue_resume(t.be));
	FAILS(hal_queue_resume(t.be), -EINVAL, "not suspended");
	finish_all(&t.w);
	assert_string_equal(ended.text, "llllbb");
	/* The one it was stopped for is suspended, and so no more at work. */
	(void)submit(&t.w, t.be, 2, LONG, 'b');
	pass(&t.w, 100);
	(void)submit(&t.w, t.lc, 2, LONG, 'l');
	pass(&t.w, 50);
	OK(hal_queue_suspend(t.lc, HAL_SUSPEND_KILL, &quiet));
	finish(quiet);
	pass(&t.w, 2 * LONG);
	assert_string_equal(ended.text, "llllbbbb");
	OK(hal_queue_resume(t.lc));
	finish_all(&t.w);
	assert_string_equal(ended.text, "llllbbbbll");
	two_close(&t);
}

/* What makes way is suspended by the application, too: it stays so until that resumes it,
 * whatever becomes of the others. */
static void taken_over(void **state)
{
	static const char *const options[] = {ONE_AT_A_TIME, "policy.preempt=kill", NULL};
	struct hal_point quiet;
	struct two t;

	(void)state;
	two_open(&t, options);
	(void)submit(&t.w, t.be, 2, LONG, 'b');
	pass(&t.w, 100);
	(void)submit(&t.w, t.lc, 2, LONG, 'l');
	pass(&t.w, 50);
	FAILS(hal_queue_suspend(t.be, 99, NULL), -EINVAL, "99 is not a suspend mode");
	OK(hal_queue_suspend(t.be, HAL_SUSPEND_DRAIN, &quiet));
	assert_int_equal(hal_wait(&quiet, 1, 0, 0), 0);
	FAILS(hal_queue_suspend(t.be, HAL_SUSPEND_DRAIN, NULL), -EBUSY, "suspended");
	finish_all(&t.w);
	assert_string_equal(ended.text, "ll");
	assert_int_equal(stats_of(t.be).suspends, 1);
	OK(hal_queue_resume(t.be));
	finish_all(&t.w);
	assert_string_equal(ended.text, "llbb");
	/* For good. */
	(void)submit(&t.w, t.be, 2, LONG, 'b');
	pass(&t.w, 100);
	(void)submit(&t.w, t.lc, 1, LONG, 'l');
	pass(&t.w, 50);
	OK(hal_queue_suspend(t.be, HAL_SUSPEND_KILL | HAL_SUSPEND_FINAL, &quiet));
	FAILS(hal_queue_resume(t.be), -ECANCELED, "for good");
	finish_all(&t.w);
	assert_string_equal(ended.text, "llbbl");
	two_close(&t);
}

/* Its last work fails, or the device refuses it; and another policy comes. */
static void fails(void **state)
{
	static const char *const options[] = {ONE_AT_A_TIME, "policy.preempt=kill", NULL};
	const struct hal_ref_extension *ref;
	struct two t;

	(void)state;
	for (int op = HAL_REF_OP_SUBMIT; op <= HAL_REF_OP_EXECUTE; op++) {
		two_open(&t, options);
		ref = hal_device_get_extension(t.w.dev, "ref");
		(void)submit(&t.w, t.be, 2, LONG, 'b');
		pass(&t.w, 100);
		OK(ref->inject(hal_device_get_native(t.w.dev), (uint32_t)op, 1, EIO));
		(void)submit(&t.w, t.lc, 3, OWN, 'l');
		pass(&t.w, 5);
		OK(hal_device_set_policy(t.w.dev, "fifo",
					 (const char *const[]){"preempt=kill", NULL}));
		finish_all(&t.w);
		assert_string_equal(ended.text, "bb");
		two_close(&t);
	}
}

/* Destroyed at the moment when its last work has ended. */
static void destroyed(void **state)
{
	static const char *const options[] = {ONE_AT_A_TIME, "policy.preempt=kill", NULL};
	struct two t;

	(void)state;
	two_open(&t, options);
	(void)submit(&t.w, t.be, 2, LONG, 'b');
	pass(&t.w, 100);
	finish(submit(&t.w, t.lc, 1, OWN, 'l'));
	OK(hal_queue_destroy(t.lc));
	finish_all(&t.w);
	assert_string_equal(ended.text, "lbb");
	t.lc = NULL;
	two_close(&t);
}

/* ---- modes that ref has not --------------------------------------------------------- */

/* Of what runs at a time a device has run at_ns of 1,000. */
static void on_mock(const char *target, uint64_t at_ns, uint64_t deadline_ns,
		    uint32_t mode)
{
	static const char *const options[] = {"hal.plugins=" MOCK_PLUGIN, ONE_AT_A_TIME,
					      NULL};
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct hal_partition_desc pd = HAL_INIT(hal_partition_desc);
	struct hal_cmd nop = {.op = HAL_OP_NOP, .flags = HAL_CMD_REPLAYABLE};
	const struct mock_control *mock;
	struct mock_counts counts;
	struct hal_queue *be, *lc;
	struct hal_partition *part;
	struct hal_device *dev;
	void *native;

	OK(hal_open(target, options, &dev));
	mock = hal_device_get_extension(dev, "mock");
	native = hal_device_get_native(dev);
	pd.units_floor = 1;
	OK(hal_partition_create(dev, &pd, &part));
	be = of_class(part, HAL_CLASS_BEST_EFFORT);
	lc = of_class(part, HAL_CLASS_LATENCY);
	d.cmds = &nop;
	d.cmd_count = 1;
	for (int i = 0; i < 16; i++) {
		OK(hal_submit(i % 2 == 0 ? be : lc, &d, NULL));
		(void)hal_device_poll(dev, 0);
		mock->complete(native, 1, i % 2 == 0 ? LONG : OWN);
		(void)hal_device_poll(dev, 0);
	}
	OK(hal_submit(be, &d, NULL));
	(void)hal_device_poll(dev, 0);
	mock->advance(native, at_ns);
	(void)hal_device_poll(dev, 0);
	d.deadline_ns = deadline_ns;
	OK(hal_submit(lc, &d, NULL));
	(void)hal_device_poll(dev, 0);
	mock->counts(native, &counts);
	assert_int_equal(counts.suspends, 1);
	if (counts.mode != mode)
		fail_msg("%s, %d of %d, deadline %d: mode %u, not %u", target, (int)at_ns,
			 LONG, (int)deadline_ns, counts.mode, mode);
	/* What it has goes on, or begins again. */
	mock->quiet(native, 1);
	(void)hal_device_poll(dev, 0);
	for (int i = 0; i < 3; i++) {
		mock->complete(native, 1, 1);
		(void)hal_device_poll(dev, 0);
	}
	OK(hal_queue_destroy(be));
	OK(hal_queue_destroy(lc));
	OK(hal_partition_destroy(part));
	OK(hal_close(dev));
}

static void modes(void **state)
{
	/* FOLD stops within 200 ns, SAVE takes 100, KILL 5. */
	static const char *const all = "mock?modes=15&fold_ns=200&save_ns=100&kill_ns=5";

	(void)state;
	/* Without a deadline: 200 or half of the rest; 100 + 200; 5 + the time it has
	 * run. */
	on_mock(all, 100, 0, HAL_SUSPEND_KILL);
	on_mock(all, 190, 0, HAL_SUSPEND_KILL);
	on_mock(all, 200, 0, HAL_SUSPEND_FOLD);
	on_mock(all, 790, 0, HAL_SUSPEND_FOLD);
	on_mock(all, 810, 0, HAL_SUSPEND_FOLD);
	on_mock("mock?modes=9&kill_ns=5", 810, 0, HAL_SUSPEND_DRAIN);
	/* In 150 only SAVE and KILL; in 50 KILL alone, whatever that costs. */
	on_mock(all, 500, 150 + OWN, HAL_SUSPEND_SAVE);
	on_mock(all, 150, 150 + OWN, HAL_SUSPEND_KILL);
	on_mock(all, 500, 50 + OWN, HAL_SUSPEND_KILL);
	on_mock(all, 500, 200 + OWN, HAL_SUSPEND_FOLD);
	on_mock(all, 500, 600 + OWN, HAL_SUSPEND_FOLD);
	/* An eighth of an estimate is left for its error, but not of a bound. */
	on_mock("mock?modes=9&kill_ns=5", 500, 570 + OWN, HAL_SUSPEND_DRAIN);
	on_mock("mock?modes=9&kill_ns=5", 500, 550 + OWN, HAL_SUSPEND_KILL);
	on_mock("mock?modes=9&kill_ns=5", 500, 5 + OWN, HAL_SUSPEND_KILL);
	/* A mode that the device does not have is not chosen, whatever its bound. */
	on_mock("mock?modes=9&fold_ns=1&save_ns=1&kill_ns=5", 100, 0, HAL_SUSPEND_KILL);
	/* Without a bound, FOLD and KILL are expected to take half of the rest. */
	on_mock("mock?modes=15&save_ns=100&kill_ns=5", 500, 0, HAL_SUSPEND_FOLD);
	on_mock("mock?modes=15", 100, 0, HAL_SUSPEND_FOLD);
	on_mock("mock?modes=15&kill_ns=2000", 100, 0, HAL_SUSPEND_FOLD);
	on_mock("mock?modes=9", 100, 0, HAL_SUSPEND_KILL);
	on_mock("mock?modes=9", 400, 0, HAL_SUSPEND_DRAIN);
	on_mock("mock?modes=9", 400, 350 + OWN, HAL_SUSPEND_KILL);
}

static void bad(void **state)
{
	static const char *const wrong[][2] = {
		{"policy.kills=0", "1..1000000"},
		{"policy.preempt=often", "best|drain"},
		{"policy.preempt_unknown_us=0", "preempt_unknown_us"},
	};
	struct hal_device *dev;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		const char *const options[] = {wrong[i][0], NULL};

		FAILS(hal_open("ref?clock=virtual", options, &dev), -EINVAL, wrong[i][1]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(chosen),
		cmocka_unit_test(unknown_lengths),
		cmocka_unit_test(several),
		cmocka_unit_test(several_in_time),
		cmocka_unit_test(several_once),
		cmocka_unit_test(protected),
		cmocka_unit_test(without_a_pause),
		cmocka_unit_test(application),
		cmocka_unit_test(taken_over),
		cmocka_unit_test(fails),
		cmocka_unit_test(destroyed),
		cmocka_unit_test(modes),
		cmocka_unit_test(bad),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
