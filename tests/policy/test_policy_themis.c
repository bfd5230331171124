/* SPDX-License-Identifier: Apache-2.0 */
/* themis: nobody's job takes much more of its length than another's. */
#include "world.h"

enum { TENANTS = 4, JOBS = 512, STEP = 10, COMMANDS_MAX = 256 };

/* Jobs of so many commands of 10 ns, one a period. */
struct tenant {
	unsigned int commands;
	uint64_t period, next;
	struct hal_queue *q;
	struct hal_point point[JOBS];
	uint64_t submit[JOBS];
	size_t first, count;
	double sum, worst; /* times the length that they took */
};

static struct hal_point job_of(struct world *w, struct hal_queue *q,
			       unsigned int commands, uint64_t ns, char message)
{
	static struct hal_cmd cmds[COMMANDS_MAX];
	const struct hal_arg args[2] = {{.offset = ns}, {.offset = (uint64_t)message}};
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct hal_point done;

	for (unsigned int i = 0; i < commands; i++)
		cmds[i] = hal_cmd_launch(w->work, args, 2);
	d.cmds = cmds;
	d.cmd_count = commands;
	OK(hal_submit(q, &d, &done));
	return done;
}

static struct hal_point job(struct world *w, struct hal_queue *q, unsigned int commands)
{
	return job_of(w, q, commands, STEP, 'j');
}

static void look(struct tenant *t, uint64_t now)
{
	for (; t->first < t->count; t->first++) {
		struct hal_point p = t->point[t->first];
		double times;

		if (hal_timeline_get_value(p.timeline, NULL) < p.value)
			return;
		times = (double)(now - t->submit[t->first]) / (t->commands * STEP);
		t->sum += times;
		if (times > t->worst)
			t->worst = times;
	}
}

struct result {
	double mean, worst_mean; /* of all tenants, and of the one that is worst off */
};

/* Four tenants that want 22 % of the time each, and know how long their jobs are. */
static struct result slowdowns(const char *policy, const char *option)
{
	const char *const options[] = {"hal.partition_inflight=1",
				       "hal.inflight=1",
				       "hal.queue_depth=4096",
				       policy,
				       option,
				       NULL};
	static struct tenant t[TENANTS];
	static const unsigned int commands[TENANTS] = {2, 8, 32, 128};
	struct result r = {0, 0};
	struct world w;
	uint64_t from;

	world_open(&w, options);
	memset(t, 0, sizeof(t));
	for (int i = 0; i < TENANTS; i++) {
		t[i].commands = commands[i];
		t[i].period = (uint64_t)commands[i] * STEP * 100 / 22;
		t[i].q = add_queue(w.part, 0, 1, 0);
		finish(job(&w, t[i].q, commands[i]));
	}
	from = hal_device_get_time(w.dev);
	for (uint64_t at = 0; at < 46000; at += STEP) {
		for (int i = 0; i < TENANTS; i++) {
			look(&t[i], from + at);
			if (at < t[i].next)
				continue;
			assert_in_range(t[i].count, 0, JOBS - 1);
			t[i].submit[t[i].count] = from + at;
			t[i].point[t[i].count++] = job(&w, t[i].q, commands[i]);
			t[i].next += t[i].period;
		}
		pass(&w, STEP);
	}
	for (int i = 0; i < TENANTS; i++) {
		double mean = t[i].sum / (double)t[i].first;

		r.mean += mean / TENANTS;
		if (mean > r.worst_mean)
			r.worst_mean = mean;
	}
	finish_all(&w);
	for (int i = 0; i < TENANTS; i++)
		OK(hal_queue_destroy(t[i].q));
	world_close(&w);
	return r;
}

static unsigned int thousandths(double x)
{
	return (unsigned int)(x * 1000);
}

static void themis(void **state)
{
	struct result r = slowdowns("policy.name=themis", "policy.themis_lease_us=0");

	(void)state;
	/* Who is worst off is better off than under any other. */
	assert_int_equal(thousandths(r.worst_mean), 2616);
	r = slowdowns("policy.name=prema", NULL);
	assert_int_equal(thousandths(r.worst_mean), 2729);
	r = slowdowns("policy.name=rr", NULL);
	assert_int_equal(thousandths(r.worst_mean), 3036);
	r = slowdowns("policy.name=wfq", NULL);
	assert_int_equal(thousandths(r.worst_mean), 3054);
	r = slowdowns("policy.name=fifo", NULL);
	assert_int_equal(thousandths(r.worst_mean), 29297);
}

static void themis_loses(void **state)
{
	struct result r = slowdowns("policy.name=themis", "policy.themis_lease_us=0");

	(void)state;
	/* For the mean, short ones should pass. */
	assert_int_equal(thousandths(r.mean), 2259);
	r = slowdowns("policy.name=prema", NULL);
	assert_int_equal(thousandths(r.mean), 1934);
	/* A lease of 100 commands: the shortest jobs wait for it. */
	r = slowdowns("policy.name=themis", "policy.themis_lease_us=1");
	assert_int_equal(thousandths(r.worst_mean), 10828);
}

/* Who has the lease goes on until it ends, if he has work. */
static void leases(void **state)
{
	static const char *const options[] = {"hal.partition_inflight=1",
					      "hal.inflight=1", "policy.name=themis",
					      "policy.themis_lease_us=1", NULL};
	struct hal_queue *a, *b;
	struct world w;

	(void)state;
	world_open(&w, options);
	a = add_queue(w.part, 0, 1, 0);
	b = add_queue(w.part, 0, 1, 0);
	finish(job_of(&w, a, 10, 200, '.'));
	finish(job_of(&w, b, 10, 200, '.'));
	memset(&ended, 0, sizeof(ended));
	/* The first of a is not asked about. */
	(void)job_of(&w, a, 10, 200, 'a');
	(void)job_of(&w, b, 10, 200, 'b');
	finish_all(&w);
	assert_string_equal(ended.text, "aaaaabbbbbaaaaabbbbb");
	OK(hal_queue_destroy(a));
	OK(hal_queue_destroy(b));
	world_close(&w);
}

static void bad(void **state)
{
	static const char *const none[] = {"policy.name=themis",
					   "policy.themis_unknown_us=0", NULL};
	struct hal_device *dev;

	(void)state;
	FAILS(hal_open("ref?clock=virtual", none, &dev), -EINVAL, "themis_unknown_us");
}

/* In any order they come and go, suspended and replaced: each is served once. */
static void heaps(void **state)
{
	struct hal_queue *q[40];
	uint64_t x = 88172645463325252u;
	struct world w;

	(void)state;
	world_open(&w, (const char *const[]){"policy.name=themis", "hal.queue_depth=256",
					     "policy.themis_lease_us=0", NULL});
	for (int i = 0; i < 40; i++)
		q[i] = add_queue(w.part, 0, 1, 0);
	for (int n = 0; n < 3000; n++) {
		struct hal_queue *one;

		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		one = q[x % 40];
		(void)submit(&w, one, 1, 1 + x / 40 % 3000, 'x');
		if (x / 1000 % 4 == 0)
			pass(&w, 4000);
		if (x / 4000 % 8 == 0 &&
		    hal_queue_suspend(one, HAL_SUSPEND_DRAIN, NULL) == 0) {
			pass(&w, 100);
			OK(hal_queue_resume(one));
		}
	}
	finish_all(&w);
	assert_int_equal(ended.length, 3000);
	assert_int_equal(policy_of(&w).invalid + policy_of(&w).stalls, 0);
	for (int i = 0; i < 40; i++)
		OK(hal_queue_destroy(q[i]));
	world_close(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(themis), cmocka_unit_test(themis_loses),
		cmocka_unit_test(leases), cmocka_unit_test(heaps),
		cmocka_unit_test(bad),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
