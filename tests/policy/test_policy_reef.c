/* SPDX-License-Identifier: Apache-2.0 */
/* reef: best effort is killed for real-time work and begins again. */
#include "world.h"

struct pair {
	struct world w;
	struct hal_queue *be, *rt;
};

static void pair_open(struct pair *p, const char *policy, const char *option)
{
	const char *const options[] = {"hal.queue_depth=4096", policy, option, NULL};

	world_open(&p->w, options);
	p->be = add_queue(p->w.part, 0, 1, 0);
	p->rt = add_queue(p->w.part, 1, 1, 0);
}

static void pair_close(struct pair *p)
{
	struct hal_policy_info i = policy_of(&p->w);

	assert_int_equal(i.stalls + i.invalid + i.starved, 0);
	OK(hal_queue_destroy(p->be));
	OK(hal_queue_destroy(p->rt));
	world_close(&p->w);
}

static uint64_t took(struct pair *p, uint64_t ns)
{
	uint64_t at = hal_device_get_time(p->w.dev);

	finish(submit(&p->w, p->rt, 1, ns, 'r'));
	return hal_device_get_time(p->w.dev) - at;
}

/* Commands that may not run twice. */
static void submit_once(struct pair *p, unsigned int count, uint64_t ns)
{
	const struct hal_arg args[2] = {{.offset = ns}, {.offset = 'b'}};
	struct hal_cmd cmd = hal_cmd_launch(p->w.work, args, 2);
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);

	d.cmds = &cmd;
	d.cmd_count = 1;
	while (count-- > 0)
		OK(hal_submit(p->be, &d, NULL));
}

/* The middle of the third of ten long commands. */
static uint64_t latency(const char *policy, bool again)
{
	struct pair p;
	uint64_t ns;

	pair_open(&p, policy, NULL);
	if (again)
		(void)submit(&p.w, p.be, 10, 1000, 'b');
	else
		submit_once(&p, 10, 1000);
	pass(&p.w, 2500);
	ns = took(&p, 10);
	finish_all(&p.w);
	assert_int_equal(ended.length, 11);
	assert_int_equal(stats_of(p.be).completed, 10);
	assert_int_equal(stats_of(p.be).replayed, ns < 20);
	assert_int_equal(stats_of(p.be).replayed_ns, ns < 20 ? 501 : 0);
	pair_close(&p);
	return ns;
}

static void reef(void **state)
{
	struct pair p;

	(void)state;
	/* As long as alone, and the nanosecond that a kill takes; under priority it waits
	 * for what runs, and, as two are on the device, for one behind that. */
	assert_int_equal(latency("policy.name=reef", true), 11);
	assert_int_equal(latency("policy.name=priority", true), 1510);
	/* As often as it comes, and best effort goes on in between. */
	pair_open(&p, "policy.name=reef", NULL);
	(void)submit(&p.w, p.be, 60, 1000, 'b');
	for (int i = 0; i < 20; i++) {
		pass(&p.w, 2300);
		assert_int_equal(took(&p, 50), 51);
	}
	assert_int_equal(stats_of(p.be).completed, 40);
	finish_all(&p.w);
	assert_int_equal(stats_of(p.be).completed, 60);
	pair_close(&p);
}

/* One that may not run twice, and one behind it that may: that is not waited for. */
static void behind(void **state)
{
	struct pair p;

	(void)state;
	pair_open(&p, "policy.name=reef", NULL);
	submit_once(&p, 1, 1000);
	(void)submit(&p.w, p.be, 1, 1000, 'B');
	pass(&p.w, 500);
	assert_int_equal(took(&p, 10), 511);
	finish_all(&p.w);
	assert_string_equal(ended.text, "brB");
	pair_close(&p);
}

/* Real-time work of 10 ns every 500 for 100 us: how many of 1,000 ns end beside it. */
static uint64_t pauses(const char *policy, const char *option)
{
	struct pair p;
	uint64_t n;

	pair_open(&p, policy, option);
	(void)submit(&p.w, p.be, 200, 1000, 'b');
	for (int i = 0; i < 200; i++) {
		(void)submit(&p.w, p.rt, 1, 10, 'r');
		pass(&p.w, 500);
	}
	n = stats_of(p.be).completed;
	finish_all(&p.w);
	assert_int_equal(stats_of(p.be).completed, 200);
	pair_close(&p);
	return n;
}

static void reef_loses(void **state)
{
	(void)state;
	assert_int_equal(pauses("policy.name=priority", NULL), 98);
	assert_int_equal(pauses("policy.name=reef", "policy.kills=1000000"), 0);
	/* After so many it is let be, and real-time work waits. */
	assert_int_equal(pauses("policy.name=reef", "policy.kills=3"), 49);
	assert_int_equal(pauses("policy.name=reef", NULL), 18);
	/* What may not run twice is never killed. */
	assert_int_equal(latency("policy.name=reef", false), 1510);
}

/* Real-time work that goes in another way than by ending well. */
static void gone(void **state)
{
	const struct hal_ref_extension *ref;
	struct hal_point quiet;
	struct pair p;

	(void)state;
	/* Suspended while it runs. */
	pair_open(&p, "policy.name=reef", NULL);
	(void)submit(&p.w, p.be, 3, 1000, 'b');
	pass(&p.w, 500);
	(void)submit(&p.w, p.rt, 3, 100, 'r');
	pass(&p.w, 50);
	assert_int_equal(stats_of(p.be).suspends, 1);
	/* Killed, it is the policy's to start; the application may, too. */
	OK(hal_queue_suspend(p.rt, HAL_SUSPEND_KILL, &quiet));
	finish(quiet);
	pass(&p.w, 1500);
	assert_string_equal(ended.text, "b");
	OK(hal_queue_resume(p.rt));
	finish_all(&p.w);
	assert_string_equal(ended.text, "brrrbb");
	/* Suspended while it waits for one that may not be killed. */
	submit_once(&p, 1, 1000);
	pass(&p.w, 500);
	(void)submit(&p.w, p.rt, 1, 100, 'r');
	(void)submit(&p.w, p.be, 1, 1000, 'b');
	pass(&p.w, 1);
	OK(hal_queue_suspend(p.rt, HAL_SUSPEND_KILL, NULL));
	pass(&p.w, 2000);
	assert_string_equal(ended.text, "brrrbbbb");
	OK(hal_queue_resume(p.rt));
	/* Refused by the device, so that its queue fails. */
	ref = hal_device_get_extension(p.w.dev, "ref");
	OK(ref->inject(hal_device_get_native(p.w.dev), HAL_REF_OP_SUBMIT, 1, EIO));
	(void)submit(&p.w, p.rt, 2, 100, 'r');
	pass(&p.w, 1);
	(void)submit(&p.w, p.be, 2, 10, 'b');
	finish_all(&p.w);
	assert_string_equal(ended.text, "brrrbbbbbb");
	pair_close(&p);
}

/* In the middle of it another policy comes, and goes. */
static void replaced(void **state)
{
	struct pair p;

	(void)state;
	pair_open(&p, "policy.name=reef", NULL);
	(void)submit(&p.w, p.be, 3, 1000, 'b');
	pass(&p.w, 500);
	(void)submit(&p.w, p.rt, 2, 100, 'r');
	pass(&p.w, 50);
	OK(hal_device_set_policy(p.w.dev, "priority", NULL));
	OK(hal_device_set_policy(p.w.dev, "reef", NULL));
	finish_all(&p.w);
	assert_string_equal(ended.text, "rrbbb");
	pair_close(&p);
}

static void bad(void **state)
{
	static const char *const none[] = {"policy.name=reef", "policy.kills=0", NULL};
	struct hal_device *dev;

	(void)state;
	FAILS(hal_open("ref?clock=virtual", none, &dev), -EINVAL, "kills");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reef),     cmocka_unit_test(reef_loses),
		cmocka_unit_test(behind),   cmocka_unit_test(gone),
		cmocka_unit_test(replaced), cmocka_unit_test(bad),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
