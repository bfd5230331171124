/* SPDX-License-Identifier: Apache-2.0 */
/* The policies of policies: what each is good for, in exact times, and where another
 * one is better. */
#include "world.h"

#define ONE_AT_A_TIME "hal.partition_inflight=1", "hal.inflight=1", "hal.queue_depth=4096"

static void open_with(struct world *w, const char *policy)
{
	const char *const options[] = {ONE_AT_A_TIME, policy, NULL};

	world_open(w, options);
}

/* ---- fifo ------------------------------------------------------------------------- */

/* A long queue of long commands, and a short one behind it: how long that takes. */
static uint64_t behind(const char *policy)
{
	struct hal_queue *a, *b;
	struct world w;
	uint64_t took;

	open_with(&w, policy);
	a = add_queue(w.part, 0, 1, 0);
	b = add_queue(w.part, 5, 1, 50);
	(void)submit(&w, a, 10, 100, 'a');
	pass(&w, 50);
	finish(submit(&w, b, 1, 10, 'b'));
	took = hal_device_get_time(w.dev) - 50;
	finish_all(&w);
	OK(hal_queue_destroy(a));
	OK(hal_queue_destroy(b));
	world_close(&w);
	return took;
}

static void fifo(void **state)
{
	struct hal_queue *q[3];
	struct world w;

	(void)state;
	open_with(&w, "policy.name=fifo");
	for (int i = 0; i < 3; i++)
		q[i] = add_queue(w.part, i, 1, 0);
	/* As they came, whatever their priorities. */
	for (int i = 0; i < 5; i++) {
		(void)submit(&w, q[0], 2, 100, 'a');
		pass(&w, 1);
		(void)submit(&w, q[2], 1, 10, 'c');
		pass(&w, 1);
		(void)submit(&w, q[1], 1, 10, 'b');
		pass(&w, 1);
	}
	finish_all(&w);
	assert_string_equal(ended.text, "aacbaacbaacbaacbaacb");
	for (int i = 0; i < 3; i++)
		OK(hal_queue_destroy(q[i]));
	world_close(&w);
	/* And so one short command waits for all of the long ones before it. */
	assert_int_equal(behind("policy.name=fifo"), 950 + 10);
	assert_int_equal(behind("policy.name=priority"), 50 + 10);
	assert_int_equal(behind("policy.name=edf"), 50 + 10);
	assert_int_equal(behind("policy.name=rr"), 50 + 10);
}

/* ---- rr --------------------------------------------------------------------------- */

static void turns(const char *option, uint64_t a_ns, const char *expect, uint64_t at,
		  uint64_t a_had)
{
	const char *const options[] = {ONE_AT_A_TIME, "policy.name=rr", option, NULL};
	struct hal_queue *q[3];
	struct world w;

	world_open(&w, options);
	for (int i = 0; i < 3; i++) {
		q[i] = add_queue(w.part, i, 1, 0);
		(void)submit(&w, q[i], 12, i == 0 ? a_ns : 10, (char)('a' + i));
	}
	pass(&w, at);
	assert_int_equal(stats_of(q[0]).busy_ns, a_had);
	finish_all(&w);
	ended.text[strlen(expect)] = '\0';
	assert_string_equal(ended.text, expect);
	for (int i = 0; i < 3; i++)
		OK(hal_queue_destroy(q[i]));
	world_close(&w);
}

static void rr(void **state)
{
	(void)state;
	turns(NULL, 10, "abcabcabcabc", 60, 20);
	turns("policy.rr_commands=2", 10, "aabbccaabbccaabbcc", 60, 20);
	turns("policy.rr_commands=5", 10, "aaaaabbbbbcccccaaaaa", 150, 50);
	/* Whoever has longer commands has more of the device: 100 of 120, not a third. */
	turns(NULL, 100, "abcabc", 600, 500);
}

/* A queue whose command the device had no room for has not had its turn. */
static void rr_no_room(void **state)
{
	static const char *const options[] = {"hal.partition_inflight=1",
					      "hal.queue_depth=256", "policy.name=rr",
					      NULL};
	const struct hal_ref_extension *ref;
	struct hal_queue *a, *b;
	struct world w;

	(void)state;
	world_open(&w, options);
	ref = hal_device_get_extension(w.dev, "ref");
	assert_non_null(ref);
	a = add_queue(w.part, 0, 1, 0);
	b = add_queue(w.part, 0, 1, 0);
	(void)submit(&w, a, 40, 10, 'a');
	(void)submit(&w, b, 40, 10, 'b');
	for (int i = 0; i < 60; i++) {
		OK(ref->inject(hal_device_get_native(w.dev), HAL_REF_OP_SUBMIT, 1,
			       EAGAIN));
		pass(&w, 10);
	}
	OK(ref->inject(hal_device_get_native(w.dev), HAL_REF_OP_SUBMIT, 0, 0));
	finish_all(&w);
	/* The first two are a's: nobody else was there. */
	assert_int_equal(ended.length, 80);
	for (size_t i = 2; i < 76; i++)
		assert_int_not_equal(ended.text[i], ended.text[i + 1]);
	OK(hal_queue_destroy(a));
	OK(hal_queue_destroy(b));
	world_close(&w);
}

/* ---- priority --------------------------------------------------------------------- */

static void priority(void **state)
{
	struct hal_submit_desc urgent = HAL_INIT(hal_submit_desc);
	struct hal_queue *low, *same, *high;
	struct world w;

	(void)state;
	open_with(&w, "policy.name=priority");
	low = add_queue(w.part, -5, 1, 0);
	same = add_queue(w.part, -5, 1, 0);
	high = add_queue(w.part, 7, 1, 0);
	(void)submit(&w, low, 2, 10, 'l');
	(void)submit(&w, same, 2, 10, 's');
	(void)submit(&w, high, 2, 10, 'h');
	finish_all(&w);
	assert_string_equal(ended.text, "hhlsls"); /* equal ones in turn */
	/* A submission's own, higher and lower than its queue's; then that again. */
	memset(&ended, 0, sizeof(ended));
	urgent.flags = HAL_SUBMIT_PRIORITY;
	urgent.priority = 9;
	(void)submit_as(&w, low, urgent, 1, 10, 'L');
	(void)submit(&w, low, 1, 10, 'l');
	urgent.priority = -9;
	(void)submit_as(&w, high, urgent, 1, 10, 'H');
	(void)submit(&w, high, 1, 10, 'h');
	(void)submit(&w, same, 1, 10, 's');
	finish_all(&w);
	assert_string_equal(ended.text, "LslHh");
	OK(hal_queue_destroy(low));
	OK(hal_queue_destroy(same));
	OK(hal_queue_destroy(high));
	world_close(&w);
}

/* Whoever is below starves, but for the net; nobody calls that the policy's fault. */
static void priority_starves(void **state)
{
	static const char *const options[] = {ONE_AT_A_TIME, "policy.name=priority",
					      "policy.timeout_ms=1", NULL};
	struct hal_queue *low[20], *high;
	struct world w;

	(void)state;
	world_open(&w, options);
	high = add_queue(w.part, 1, 1, 0);
	(void)submit(&w, high, 400, 10000, 'h');
	for (int i = 0; i < 20; i++) {
		low[i] = add_queue(w.part, 0, 1, 0);
		(void)submit(&w, low[i], 3, 10, 'l');
	}
	pass(&w, 999999);
	assert_int_equal(ended.length, 99);
	assert_null(memchr(ended.text, 'l', ended.length));
	assert_int_equal(policy_of(&w).starved, 0);
	/* 1 ms: each once, then it is the high one's again. */
	pass(&w, 100000);
	assert_int_equal(policy_of(&w).starved, 20);
	assert_int_equal(policy_of(&w).fallback, 0);
	assert_true(policy_of(&w).longest_wait_ns > 1000000);
	for (int i = 0; i < 20; i++)
		assert_int_equal(stats_of(low[i]).completed, 1);
	finish_all(&w);
	assert_int_equal(ended.length, 400 + 60);
	for (int i = 0; i < 20; i++)
		OK(hal_queue_destroy(low[i]));
	OK(hal_queue_destroy(high));
	world_close(&w);
}

/* ---- wfq -------------------------------------------------------------------------- */

/* Both always busy, with commands of a_ns and b_ns and these weights: what a has had of
 * each ns; never more than slack away from its share. */
static void shares(const char *const *options, uint32_t a_weight, uint64_t a_ns,
		   uint32_t b_weight, uint64_t b_ns, uint64_t slack)
{
	struct hal_queue *a, *b;
	struct world w;
	uint64_t begin;

	world_open(&w, options);
	a = add_queue(w.part, 0, a_weight, 0);
	b = add_queue(w.part, 9, b_weight, 0);
	(void)submit(&w, a, 1500, a_ns, 'a');
	(void)submit(&w, b, 1500, b_ns, 'b');
	begin = hal_device_get_time(w.dev);
	for (int i = 0; i < 200; i++) {
		uint64_t had, other, share;

		pass(&w, 37);
		had = stats_of(a).busy_ns;
		other = stats_of(b).busy_ns;
		share = (had + other) * a_weight / (a_weight + b_weight);
		if (had > share + slack || share > had + slack)
			fail_msg("after %llu ns a has had %llu, its share is %llu",
				 (unsigned long long)(hal_device_get_time(w.dev) - begin),
				 (unsigned long long)had, (unsigned long long)share);
	}
	finish_all(&w);
	OK(hal_queue_destroy(a));
	OK(hal_queue_destroy(b));
	world_close(&w);
}

static void wfq(void **state)
{
	static const char *const one[] = {ONE_AT_A_TIME, "policy.name=wfq", NULL};
	static const char *const two[] = {"hal.queue_depth=4096", "policy.name=wfq",
					  NULL};

	(void)state;
	/* 1 : 3 of the time within a command. */
	shares(one, 1, 10, 3, 10, 10);
	shares(one, 3, 10, 1, 10, 10);
	/* Also where commands are not alike. */
	shares(one, 1, 30, 3, 10, 30);
	shares(one, 1, 10, 1, 30, 30);
	shares(one, 7, 13, 2, 5, 13);
	/* The device has two more, that are not charged yet. */
	shares(two, 1, 10, 3, 10, 30);
	shares(two, 1, 30, 3, 10, 90);
}

/* Who was away, or comes anew, has no claim on what others had meanwhile; and who had it
 * alone is not made to pay for that. */
static void wfq_away(void **state)
{
	static const char *const options[] = {ONE_AT_A_TIME, "policy.name=wfq", NULL};
	struct hal_queue *a, *b, *c;
	struct world w;

	(void)state;
	world_open(&w, options);
	a = add_queue(w.part, 0, 1, 0);
	b = add_queue(w.part, 0, 1, 0);
	(void)submit(&w, a, 1600, 10, 'a');
	(void)submit(&w, b, 10, 10, 'b');
	pass(&w, 10000);
	assert_int_equal(stats_of(b).busy_ns, 100);
	/* b comes back: half of the next 1,000 ns, a command more or less. */
	(void)submit(&w, b, 500, 10, 'b');
	pass(&w, 1000);
	assert_in_range(stats_of(b).busy_ns, 100 + 490, 100 + 510);
	/* A third of what comes then for c, which is new. */
	c = add_queue(w.part, 0, 1, 0);
	(void)submit(&w, c, 400, 10, 'c');
	pass(&w, 1500);
	assert_in_range(stats_of(c).busy_ns, 490, 510);
	assert_in_range(stats_of(b).busy_ns, 100 + 980, 100 + 1020);
	finish_all(&w);
	OK(hal_queue_destroy(a));
	OK(hal_queue_destroy(b));
	OK(hal_queue_destroy(c));
	world_close(&w);
}

/* One long command, then a short one of the same queue: how long that takes. */
static uint64_t after_long(const char *policy)
{
	struct hal_queue *a, *b;
	struct world w;
	uint64_t at;

	open_with(&w, policy);
	a = add_queue(w.part, 0, 1, 0);
	b = add_queue(w.part, 0, 1, 0);
	(void)submit(&w, a, 500, 10, 'a');
	pass(&w, 5);
	finish(submit(&w, b, 1, 1000, 'b'));
	at = hal_device_get_time(w.dev);
	finish(submit(&w, b, 1, 10, 'b'));
	at = hal_device_get_time(w.dev) - at;
	finish_all(&w);
	OK(hal_queue_destroy(a));
	OK(hal_queue_destroy(b));
	world_close(&w);
	return at;
}

static void wfq_latency(void **state)
{
	(void)state;
	/* It has had its share for the next 1,000 ns, whatever it wants now. */
	assert_in_range(after_long("policy.name=wfq"), 1000, 1020);
	assert_int_equal(after_long("policy.name=rr"), 20);
}

/* What a queue had under another policy is not held against it. */
static void wfq_after(void **state)
{
	static const char *const options[] = {ONE_AT_A_TIME, "policy.name=fifo", NULL};
	struct hal_queue *a, *b;
	struct world w;

	(void)state;
	world_open(&w, options);
	a = add_queue(w.part, 0, 1, 0);
	b = add_queue(w.part, 0, 1, 0);
	(void)submit(&w, a, 2000, 10, 'a');
	pass(&w, 10);
	(void)submit(&w, b, 1000, 10, 'b');
	pass(&w, 9990);
	assert_int_equal(stats_of(a).busy_ns, 10000);
	OK(hal_device_set_policy(w.dev, "wfq", NULL));
	pass(&w, 1000);
	assert_in_range(stats_of(b).busy_ns, 490, 510);
	finish_all(&w);
	OK(hal_queue_destroy(a));
	OK(hal_queue_destroy(b));
	world_close(&w);
}

/* ---- edf -------------------------------------------------------------------------- */

/* 10 ns every 50, and 38 times 10 every 500: 96 % of the device. */
static uint64_t misses(const char *policy)
{
	struct hal_queue *often, *rarely;
	struct world w;
	uint64_t sum;

	open_with(&w, policy);
	often = add_queue(w.part, 0, 1, 50);
	rarely = add_queue(w.part, 0, 1, 500);
	for (unsigned int at = 0; at < 50000; at += 50) {
		(void)submit(&w, often, 1, 10, 'a');
		if (at % 500 == 0)
			(void)submit(&w, rarely, 38, 10, 'b');
		pass(&w, 50);
	}
	finish_all(&w);
	assert_int_equal(stats_of(rarely).deadline_misses, 0);
	sum = stats_of(often).deadline_misses;
	OK(hal_queue_destroy(often));
	OK(hal_queue_destroy(rarely));
	world_close(&w);
	return sum;
}

static void edf(void **state)
{
	struct hal_submit_desc soon = HAL_INIT(hal_submit_desc);
	struct hal_queue *q[3];
	struct world w;

	(void)state;
	open_with(&w, "policy.name=edf");
	q[0] = add_queue(w.part, 9, 1, 0);
	q[1] = add_queue(w.part, 0, 1, 300);
	q[2] = add_queue(w.part, 0, 1, 200);
	for (int i = 0; i < 3; i++)
		(void)submit(&w, q[i], 2, 10, (char)('a' + i));
	soon.deadline_ns = 250; /* of one submission */
	(void)submit_as(&w, q[1], soon, 1, 10, 'B');
	finish_all(&w);
	assert_string_equal(ended.text, "ccbbBaa");
	/* For ever is for ever, not a time that has passed. */
	memset(&ended, 0, sizeof(ended));
	soon.deadline_ns = UINT64_MAX;
	(void)submit(&w, q[0], 1, 10, 'a');
	(void)submit_as(&w, q[1], soon, 1, 10, 'B');
	(void)submit(&w, q[2], 1, 10, 'c');
	finish_all(&w);
	assert_string_equal(ended.text, "caB");
	for (int i = 0; i < 3; i++)
		OK(hal_queue_destroy(q[i]));
	world_close(&w);
	assert_int_equal(misses("policy.name=edf"), 0);
	/* Eight of ten wait for more than 50 ns behind the other's. */
	assert_int_equal(misses("policy.name=fifo"), 800);
}

/* Two that cannot both be met: the first come would have met its own. */
static uint64_t overload(const char *policy)
{
	struct hal_queue *a, *b;
	struct world w;
	uint64_t sum;

	open_with(&w, policy);
	a = add_queue(w.part, 0, 1, 100);
	b = add_queue(w.part, 0, 1, 99);
	for (int i = 0; i < 10; i++) {
		(void)submit(&w, a, 1, 100, 'a');
		(void)submit(&w, b, 1, 100, 'b');
		finish_all(&w);
	}
	sum = stats_of(a).deadline_misses + stats_of(b).deadline_misses;
	OK(hal_queue_destroy(a));
	OK(hal_queue_destroy(b));
	world_close(&w);
	return sum;
}

static void edf_overload(void **state)
{
	(void)state;
	assert_int_equal(overload("policy.name=fifo"), 10);
	assert_int_equal(overload("policy.name=edf"), 20);
}

/* ---- classes ------------------------------------------------------------------------ */

static struct hal_queue *of_class(struct world *w, uint16_t service_class,
				  int32_t priority)
{
	struct hal_queue_desc d = HAL_INIT(hal_queue_desc);
	struct hal_queue *q;

	d.priority = priority;
	d.service_class = service_class;
	OK(hal_queue_create(w->part, &d, &q));
	return q;
}

/* Best effort (b), normal (n, N) and latency-critical (l) work, submitted in that order
 * behind what runs (x). */
static void classes_under(const char *policy, uint16_t latency, uint16_t best_effort,
			  const char *expect)
{
	struct hal_queue *q[5];
	struct world w;

	open_with(&w, policy);
	q[0] = of_class(&w, HAL_CLASS_NORMAL, 0);
	q[1] = of_class(&w, best_effort, 9);
	q[2] = of_class(&w, HAL_CLASS_NORMAL, 1);
	q[3] = of_class(&w, HAL_CLASS_NORMAL, 2);
	q[4] = of_class(&w, latency, 0);
	(void)submit(&w, q[0], 1, 100, 'x');
	pass(&w, 1);
	for (int i = 1; i < 5; i++) {
		(void)submit(&w, q[i], 2, 10, "xbnNl"[i]);
		pass(&w, 1);
	}
	finish_all(&w);
	assert_string_equal(ended.text, expect);
	for (int i = 0; i < 5; i++)
		OK(hal_queue_destroy(q[i]));
	world_close(&w);
}

static void classes(void **state)
{
	(void)state;
	/* Before priorities and arrival; the controls are without. */
	classes_under("policy.name=priority", HAL_CLASS_LATENCY, HAL_CLASS_BEST_EFFORT,
		      "xllNNnnbb");
	classes_under("policy.name=priority", 0, 0, "xbbNNnnll");
	classes_under("policy.name=fifo", HAL_CLASS_LATENCY, HAL_CLASS_BEST_EFFORT,
		      "xllnnNNbb");
	classes_under("policy.name=fifo", 0, 0, "xbbnnNNll");
	classes_under("policy.name=wfq", HAL_CLASS_LATENCY, 0, "xllbnNbnN");
	classes_under("policy.name=laxity", HAL_CLASS_LATENCY, HAL_CLASS_BEST_EFFORT,
		      "xllnnNNbb");
	/* Those that keep the queues themselves. */
	classes_under("policy.name=themis", HAL_CLASS_LATENCY, HAL_CLASS_BEST_EFFORT,
		      "xllnnNNbb");
	classes_under("policy.name=themis", 0, 0, "xbbnnNNll");
	classes_under("policy.name=krisp", HAL_CLASS_LATENCY, HAL_CLASS_BEST_EFFORT,
		      "xllnNnNbb");
	classes_under("policy.name=krisp", 0, 0, "xbnNlbnNl");
	classes_under("policy.name=weave", HAL_CLASS_LATENCY, HAL_CLASS_BEST_EFFORT,
		      "xllnNnNbb");
	classes_under("policy.name=weave", 0, 0, "xbnNlbnNl");
	classes_under("policy.name=v10", HAL_CLASS_LATENCY, HAL_CLASS_BEST_EFFORT,
		      "xllnNnNbb");
	classes_under("policy.name=v10", 0, 0, "xbnNlbnNl");
	/* Those that make classes of priorities: N and above from 2 on. */
	classes_under("policy.name=prema", 0, HAL_CLASS_BEST_EFFORT, "xnnNNllbb");
	classes_under("policy.name=prema", HAL_CLASS_LATENCY, HAL_CLASS_BEST_EFFORT,
		      "xllnnNNbb");
}

/* One that is latency-critical, but beyond its budget, keeps nobody waiting. */
static void beyond_budget(void **state)
{
	static const char *const options[] = {ONE_AT_A_TIME, "policy.name=quota",
					      "policy.quota_window_us=100",
					      "policy.quota_permille=1000", NULL};
	struct hal_queue_desc d = HAL_INIT(hal_queue_desc);
	struct hal_queue *l, *b;
	struct world w;

	(void)state;
	world_open(&w, options);
	d.service_class = HAL_CLASS_LATENCY;
	d.budget_permille = 250;
	OK(hal_queue_create(w.part, &d, &l));
	b = of_class(&w, HAL_CLASS_BEST_EFFORT, 0);
	(void)submit(&w, l, 40, 5000, 'l');
	(void)submit(&w, b, 40, 5000, 'b');
	pass(&w, 400000);
	/* A quarter of each window, and the rest for the other. */
	assert_in_range(stats_of(l).busy_ns, 95000, 105000);
	assert_int_equal(stats_of(b).busy_ns, 200000);
	finish_all(&w);
	OK(hal_queue_destroy(l));
	OK(hal_queue_destroy(b));
	world_close(&w);
}

/* A budget that nobody would keep is refused, by the queue and by the policy. */
static void budget_unkept(void **state)
{
	static const char *const names[] = {"fifo", "token", "wfq", "krisp", NULL};
	struct hal_queue_desc d = HAL_INIT(hal_queue_desc);
	struct hal_queue *q;
	struct world w;

	(void)state;
	open_with(&w, "policy.name=priority");
	d.budget_permille = 300;
	FAILS(hal_queue_create(w.part, &d, &q), -ENOTSUP,
	      "a budget of 300 thousandths, but policy priority does not "
	      "enforce budgets");
	OK(hal_device_set_policy(w.dev, "quota", NULL));
	OK(hal_queue_create(w.part, &d, &q));
	for (int i = 0; names[i] != NULL; i++)
		FAILS(hal_device_set_policy(w.dev, names[i], NULL), -ENOTSUP, names[i]);
	assert_string_equal(policy_of(&w).name, "quota");
	OK(hal_queue_destroy(q));
	OK(hal_device_set_policy(w.dev, "fifo", NULL));
	d.budget_permille = 0;
	OK(hal_queue_create(w.part, &d, &q));
	OK(hal_queue_destroy(q));
	world_close(&w);
}

/* A lease ends when somebody of an earlier class comes; another of its own waits. */
static void lease_ends(void **state)
{
	struct hal_queue *a, *b, *l;
	struct world w;

	(void)state;
	open_with(&w, "policy.name=themis");
	a = of_class(&w, HAL_CLASS_NORMAL, 0);
	b = of_class(&w, HAL_CLASS_NORMAL, 0);
	l = of_class(&w, HAL_CLASS_LATENCY, 0);
	(void)submit(&w, a, 6, 10, 'a');
	(void)submit(&w, b, 2, 10, 'b');
	pass(&w, 25);
	(void)submit(&w, l, 2, 10, 'l');
	finish_all(&w);
	assert_string_equal(ended.text, "aaallaaabb");
	OK(hal_queue_destroy(a));
	OK(hal_queue_destroy(b));
	OK(hal_queue_destroy(l));
	world_close(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(classes),
		cmocka_unit_test(budget_unkept),
		cmocka_unit_test(lease_ends),
		cmocka_unit_test(beyond_budget),
		cmocka_unit_test(fifo),
		cmocka_unit_test(rr),
		cmocka_unit_test(rr_no_room),
		cmocka_unit_test(priority),
		cmocka_unit_test(priority_starves),
		cmocka_unit_test(wfq),
		cmocka_unit_test(wfq_away),
		cmocka_unit_test(wfq_latency),
		cmocka_unit_test(wfq_after),
		cmocka_unit_test(edf),
		cmocka_unit_test(edf_overload),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
