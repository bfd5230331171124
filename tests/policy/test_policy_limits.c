/* SPDX-License-Identifier: Apache-2.0 */
/* Policies that hold queues back: quota, token, static, tgs. */
#include "world.h"

#define ONE_AT_A_TIME "hal.partition_inflight=1", "hal.inflight=1", "hal.queue_depth=4096"
#define MS            UINT64_C(1000000)

static void open_with(struct world *w, const char *a, const char *b, const char *c,
		      const char *d)
{
	const char *const options[] = {ONE_AT_A_TIME, a, b, c, d, NULL};

	world_open(w, options);
}

static struct hal_point folded_at(struct world *w, struct hal_queue *q, uint64_t at_ns)
{
	struct hal_point quiet;

	pass(w, at_ns - hal_device_get_time(w->dev));
	OK(hal_queue_suspend(q, HAL_SUSPEND_FOLD, &quiet));
	return quiet;
}

static void refused(const char *policy, const char *option, const char *word)
{
	const char *const options[] = {policy, option, NULL};
	struct hal_device *dev;

	FAILS(hal_open("ref?clock=virtual", options, &dev), -EINVAL, word);
}

/* So many commands of one queue that nobody competes with: until the last has ended. */
static uint64_t alone(const char *policy, unsigned int count, uint64_t ns)
{
	struct hal_queue *a;
	struct world w;
	uint64_t took;

	open_with(&w, policy, NULL, NULL, NULL);
	a = add_queue(w.part, 0, 1, 0);
	(void)submit(&w, a, count, ns, 'a');
	finish_all(&w);
	took = hal_device_get_time(w.dev);
	assert_int_equal(ended.length, count);
	OK(hal_queue_destroy(a));
	world_close(&w);
	return took;
}

/* ---- quota ------------------------------------------------------------------------ */

#define QUOTA "policy.name=quota", "policy.quota_window_us=1000"

/* Windows of 1 ms, a tenth for weight 1: what each has had at the end of each. */
static void quota(void **state)
{
	struct hal_queue *a, *b;
	struct world w;

	(void)state;
	open_with(&w, QUOTA, "policy.quota_unknown_us=1", NULL);
	a = add_queue(w.part, 0, 1, 0);
	b = add_queue(w.part, 9, 3, 0);
	(void)submit(&w, a, 600, 10000, 'a');
	(void)submit(&w, b, 1800, 10000, 'b');
	for (uint64_t i = 1; i <= 60; i++) {
		pass(&w, i * MS - hal_device_get_time(w.dev));
		assert_int_equal(stats_of(a).busy_ns, i * MS / 10);
		assert_int_equal(stats_of(b).busy_ns, i * MS * 3 / 10);
	}
	assert_int_equal(policy_of(&w).stalls + policy_of(&w).starved, 0);
	finish_all(&w);
	OK(hal_queue_destroy(a));
	OK(hal_queue_destroy(b));
	world_close(&w);
}

/* Too much in one window is taken from the next ones. */
static void quota_debt(void **state)
{
	struct hal_queue *a;
	struct world w;

	(void)state;
	open_with(&w, QUOTA, NULL, NULL);
	a = add_queue(w.part, 0, 1, 0);
	(void)submit(&w, a, 60, 250000, 'a');
	pass(&w, 250000);
	assert_int_equal(stats_of(a).completed, 1);
	/* 250 us, 100 a window: the third can pay, and has 50 left. */
	pass(&w, 2 * MS - 250000 + 249999);
	assert_int_equal(stats_of(a).completed, 1);
	pass(&w, 1);
	assert_int_equal(stats_of(a).completed, 2);
	pass(&w, 95 * MS);
	assert_in_range(stats_of(a).busy_ns, 98 * MS / 10 - 250000,
			98 * MS / 10 + 250000);
	finish_all(&w);
	OK(hal_queue_destroy(a));
	world_close(&w);
}

/* Who has waited for a window goes before who came after it began. */
static void quota_order(void **state)
{
	struct hal_queue *a, *b, *c;
	struct world w;

	(void)state;
	open_with(&w, QUOTA, NULL, NULL);
	a = add_queue(w.part, 0, 1, 0);
	b = add_queue(w.part, 0, 9, 0);
	c = add_queue(w.part, 0, 1, 0);
	(void)submit(&w, a, 2, 100000, 'a');
	pass(&w, 900000);
	(void)submit(&w, b, 1, 300000, 'b');
	pass(&w, 200000);
	(void)submit(&w, c, 1, 10000, 'c');
	finish_all(&w);
	assert_string_equal(ended.text, "abac");
	OK(hal_queue_destroy(a));
	OK(hal_queue_destroy(b));
	OK(hal_queue_destroy(c));
	world_close(&w);
}

/* What the device has counts, so that several at a time are no way round it. */
static void quota_inflight(void **state)
{
	static const char *const options[] = {"hal.queue_depth=1024",
					      "hal.partition_inflight=4",
					      "hal.inflight=4", QUOTA, NULL};
	struct hal_queue *a;
	struct world w;

	(void)state;
	world_open(&w, options);
	a = add_queue(w.part, 0, 1, 0);
	(void)submit(&w, a, 200, 20000, 'a');
	/* The first is not known: taken to run 1 ms, it is waited for. */
	pass(&w, MS);
	assert_int_equal(stats_of(a).busy_ns, 20000);
	for (uint64_t i = 2; i <= 20; i++) {
		pass(&w, i * MS - hal_device_get_time(w.dev));
		assert_int_equal(stats_of(a).busy_ns, i * MS / 10 - 80000);
	}
	finish_all(&w);
	OK(hal_queue_destroy(a));
	world_close(&w);
}

/* Set again with another share, nobody has a new budget; another policy forgets. */
static void quota_kept(void **state)
{
	static const char *const more[] = {"quota_window_us=1000", "quota_permille=200",
					   NULL};
	struct hal_queue *a;
	struct world w;

	(void)state;
	open_with(&w, QUOTA, "policy.quota_unknown_us=1", NULL);
	a = add_queue(w.part, 0, 1, 0);
	(void)submit(&w, a, 2000, 10000, 'a');
	pass(&w, MS / 2);
	assert_int_equal(stats_of(a).busy_ns, MS / 10);
	OK(hal_device_set_policy(w.dev, "quota", more));
	pass(&w, MS / 2);
	assert_int_equal(stats_of(a).busy_ns, MS / 5);
	pass(&w, MS / 2);
	assert_int_equal(stats_of(a).busy_ns, 2 * MS / 5);
	OK(hal_device_set_policy(w.dev, "fifo", NULL));
	pass(&w, 10000);
	OK(hal_device_set_policy(w.dev, "quota", more));
	pass(&w, MS / 2 - 10000);
	assert_int_equal(stats_of(a).busy_ns, 2 * MS / 5 + 10000 + MS / 5);
	finish_all(&w);
	OK(hal_queue_destroy(a));
	world_close(&w);
}

/* Where another is better: 100 commands of 10 us on an idle device. */
static void quota_loses(void **state)
{
	(void)state;
	assert_int_equal(alone("policy.name=fifo", 1000, 10000), 10 * MS);
	/* 1 ms in each window of 10. */
	assert_in_range(alone("policy.name=quota", 1000, 10000), 90 * MS, 92 * MS);
}

/* ---- token ------------------------------------------------------------------------ */

static void token(void **state)
{
	struct hal_queue *a, *b;
	struct world w;

	(void)state;
	open_with(&w, "policy.name=token", "policy.token_rate=1000000",
		  "policy.token_burst=3", NULL);
	a = add_queue(w.part, 0, 1, 0);
	b = add_queue(w.part, 0, 4, 0);
	/* A token a us: three at once, then one each. */
	(void)submit(&w, a, 9, 10, 'a');
	pass(&w, 1009);
	assert_int_equal(ended.length, 3);
	pass(&w, 1);
	assert_int_equal(ended.length, 4);
	pass(&w, 4000);
	assert_int_equal(ended.length, 8);
	/* The other's come four times as fast, and beside the first's. */
	(void)submit(&w, b, 20, 10, 'b');
	pass(&w, 3000);
	assert_int_equal(stats_of(a).completed, 9);
	assert_int_equal(stats_of(b).completed, 3 + 11);
	finish_all(&w);
	/* An idle time fills the bucket and no more. */
	pass(&w, 1000000);
	memset(&ended, 0, sizeof(ended));
	(void)submit(&w, a, 9, 10, 'a');
	pass(&w, 999);
	assert_int_equal(ended.length, 3);
	/* Set again it is as full as it was. */
	OK(hal_device_set_policy(
		w.dev, "token",
		(const char *const[]){"token_rate=1000000", "token_burst=3", NULL}));
	assert_int_equal(ended.length, 3);
	pass(&w, 11);
	assert_int_equal(ended.length, 4);
	finish_all(&w);
	OK(hal_queue_destroy(a));
	OK(hal_queue_destroy(b));
	world_close(&w);
}

/* By work: a token a million, or what is said where it is not known. */
static uint64_t by_work(const char *unknown, uint64_t work)
{
	struct hal_queue *a;
	struct world w;
	uint64_t took;

	open_with(&w, "policy.name=token", "policy.token_price=work",
		  "policy.token_rate=50", unknown);
	world_work(&w, work);
	a = add_queue(w.part, 0, 1, 0);
	(void)submit(&w, a, 11, 10, 'a');
	finish_all(&w);
	took = hal_device_get_time(w.dev);
	OK(hal_queue_destroy(a));
	world_close(&w);
	return took;
}

static void token_work(void **state)
{
	(void)state;
	/* Ten tokens in the bucket, one each 20 ms. */
	assert_int_equal(by_work(NULL, 1000000), 20 * MS + MS);
	assert_int_equal(by_work(NULL, 500000), 11 * MS / 2);
	/* Dearer than all the bucket: each waits until it is full. */
	assert_int_equal(by_work(NULL, 20000000), 10 * 400 * MS + 20 * MS);
	assert_int_equal(by_work(NULL, 0), 20 * MS + 10);
	assert_int_equal(by_work("policy.token_unknown=5", 0), 9 * 100 * MS + 10);
}

/* a_ns and b_ns a command, both at once for 1 s: what a has had of each 1,000 ns. */
static uint64_t share_of(const char *policy, uint64_t a_ns, uint64_t b_ns)
{
	struct hal_queue *a, *b;
	struct world w;
	uint64_t had, other;

	open_with(&w, policy, NULL, NULL, NULL);
	a = add_queue(w.part, 0, 1, 0);
	b = add_queue(w.part, 0, 1, 0);
	(void)submit(&w, a, 1500, a_ns, 'a');
	(void)submit(&w, b, 2000, b_ns, 'b');
	pass(&w, 1000 * MS);
	had = stats_of(a).busy_ns;
	other = stats_of(b).busy_ns;
	OK(hal_queue_suspend(a, HAL_SUSPEND_DRAIN, NULL));
	OK(hal_queue_suspend(b, HAL_SUSPEND_DRAIN, NULL));
	pass(&w, MS);
	OK(hal_queue_destroy(a));
	OK(hal_queue_destroy(b));
	world_close(&w);
	return had * 1000 / (had + other);
}

static void token_loses(void **state)
{
	(void)state;
	/* A burst longer than the bucket, on an idle device: 15 of 10 ns. */
	assert_int_equal(alone("policy.name=fifo", 15, 10), 150);
	assert_int_equal(alone("policy.name=token", 15, 10), 5 * MS + 10);
	/* Ten times as long, ten times as much: a command is a command. */
	assert_int_equal(share_of("policy.name=token", 500000, 50000), 909);
	assert_in_range(share_of("policy.name=quota", 500000, 50000), 490, 510);
}

/* ---- static ----------------------------------------------------------------------- */

/* When a's commands of 300 us have ended, each submitted at the beginning of a frame of
 * four slots of 1 ms; beside it one that always has work, or not. */
static void ends_of(const char *policy, bool beside, uint64_t at_ns[10])
{
	struct hal_queue *a, *b;
	struct world w;

	open_with(&w, policy, NULL, NULL, NULL);
	a = add_queue(w.part, 0, 1, 0);
	b = add_queue(w.part, 0, 1, 0);
	if (beside)
		(void)submit(&w, b, 1000, 700000, 'b');
	for (unsigned int i = 0; i < 10; i++) {
		pass(&w, i * 4 * MS - hal_device_get_time(w.dev));
		finish(submit(&w, a, 3, 300000, 'a'));
		at_ns[i] = hal_device_get_time(w.dev);
	}
	OK(hal_queue_suspend(b, HAL_SUSPEND_DRAIN, NULL));
	finish_all(&w);
	OK(hal_queue_destroy(a));
	OK(hal_queue_destroy(b));
	world_close(&w);
}

static void fixed_slots(void **state)
{
	uint64_t quiet[10], busy[10], rr[10], rr_busy[10];

	(void)state;
	ends_of("policy.name=static", false, quiet);
	ends_of("policy.name=static", true, busy);
	assert_memory_equal(quiet, busy, sizeof(quiet));
	for (unsigned int i = 0; i < 10; i++)
		assert_int_equal(quiet[i], i * 4 * MS + 900000);
	ends_of("policy.name=rr", false, rr);
	ends_of("policy.name=rr", true, rr_busy);
	assert_memory_not_equal(rr, rr_busy, sizeof(rr));
}

static void slots_fit(void **state)
{
	struct hal_queue *q[2];
	struct world w;

	(void)state;
	open_with(&w, "policy.name=static", "policy.static_slots=2", NULL, NULL);
	q[0] = add_queue(w.part, 0, 1, 0);
	q[1] = add_queue(w.part, 0, 1, 0);
	finish(submit(&w, q[1], 1, 400000, 'b'));
	assert_int_equal(hal_device_get_time(w.dev), 1 * MS + 400000);
	/* Two fit into its slot, the third does not, though nobody else is there. */
	pass(&w, 3 * MS - hal_device_get_time(w.dev));
	(void)submit(&w, q[1], 3, 400000, 'b');
	pass(&w, 2 * MS);
	assert_int_equal(ended.length, 3);
	finish_all(&w);
	assert_int_equal(hal_device_get_time(w.dev), 5 * MS + 400000);
	/* Longer than a slot: at its beginning alone, and over it; the other, which would
	 * have to start in its second half, waits for its next. */
	(void)submit(&w, q[0], 1, 1600000, 'a');
	finish_all(&w);
	assert_int_equal(hal_device_get_time(w.dev), 6 * MS + 1600000);
	pass(&w, 7 * MS + 700000 - hal_device_get_time(w.dev));
	(void)submit(&w, q[1], 1, 400000, 'b');
	finish_all(&w);
	assert_int_equal(hal_device_get_time(w.dev), 9 * MS + 400000);
	OK(hal_queue_destroy(q[0]));
	OK(hal_queue_destroy(q[1]));
	world_close(&w);
}

static void slots_taken(void **state)
{
	static const char *const three[] = {"static_slots=3", NULL};
	static const char *const one[] = {"static_slots=1", NULL};
	struct hal_queue_desc d = HAL_INIT(hal_queue_desc);
	struct hal_queue *q[2], *more;
	struct hal_partition *other;
	struct world w;

	(void)state;
	open_with(&w, "policy.name=static", "policy.static_slots=2", NULL, NULL);
	q[0] = add_queue(w.part, 0, 1, 0);
	q[1] = add_queue(w.part, 0, 1, 0);
	FAILS(hal_queue_create(w.part, &d, &more), -ENOSPC, "all 2 slots of partition 0");
	/* Of another partition there are others. */
	other = add_partition(&w);
	more = add_queue(other, 0, 1, 0);
	OK(hal_queue_destroy(more));
	OK(hal_partition_destroy(other));
	/* One that goes leaves its own. */
	OK(hal_queue_destroy(q[0]));
	q[0] = add_queue(w.part, 0, 1, 0);
	FAILS(hal_queue_create(w.part, &d, &more), -ENOSPC, "static_slots");
	(void)submit(&w, q[0], 3, 1000, 'a');
	(void)submit(&w, q[1], 3, 1000, 'b');
	finish_all(&w);
	assert_string_equal(ended.text, "aaabbb");
	/* Those that are there when there are too few share. */
	OK(hal_device_set_policy(w.dev, "static", three));
	more = add_queue(w.part, 0, 1, 0);
	OK(hal_device_set_policy(w.dev, "static", one));
	memset(&ended, 0, sizeof(ended));
	(void)submit(&w, q[0], 1, 10, 'a');
	(void)submit(&w, q[1], 1, 10, 'b');
	(void)submit(&w, more, 1, 10, 'c');
	finish_all(&w);
	assert_int_equal(ended.length, 3);
	assert_int_equal(policy_of(&w).starved + policy_of(&w).stalls, 0);
	OK(hal_queue_destroy(q[0]));
	OK(hal_queue_destroy(q[1]));
	OK(hal_queue_destroy(more));
	world_close(&w);
}

static void static_loses(void **state)
{
	(void)state;
	/* Three of four slots are nobody's: 100 commands of 100 us. */
	assert_int_equal(alone("policy.name=rr", 100, 100000), 10 * MS);
	assert_int_equal(alone("policy.name=static", 100, 100000), 37 * MS);
}

/* ---- tgs -------------------------------------------------------------------------- */

struct rates {
	uint64_t productive, effort; /* commands */
};

/* A productive tenant waits for a command of 100 us and submits the next, for as long as
 * it works of a second; one of best effort always has commands of 1 ms. */
static struct rates beside(const char *policy, uint64_t works_ns)
{
	struct rates r = {0, 0};
	struct hal_queue *p, *be;
	struct world w;

	open_with(&w, policy, NULL, NULL, NULL);
	p = add_queue(w.part, 1, 1, 0);
	be = add_queue(w.part, 0, 1, 0);
	(void)submit(&w, be, 1100, MS, 'b');
	while (hal_device_get_time(w.dev) < works_ns)
		finish(submit(&w, p, 1, 100000, 'p'));
	pass(&w, works_ns < 1000 * MS ? 1000 * MS - works_ns : 0);
	r.productive = stats_of(p).completed;
	r.effort = stats_of(be).completed;
	OK(hal_device_set_policy(w.dev, "fifo", NULL));
	finish_all(&w);
	OK(hal_queue_destroy(p));
	OK(hal_queue_destroy(be));
	world_close(&w);
	return r;
}

static void tgs(void **state)
{
	struct rates r = beside("policy.name=tgs", 1000 * MS);

	(void)state;
	/* At least 97 % of the 10,000 of a second; the search takes some of it. */
	assert_int_equal(r.productive, 9740);
	assert_int_equal(r.effort, 26);
	/* A priority is of no use to who has nothing submitted when somebody ends. */
	r = beside("policy.name=priority", 1000 * MS);
	assert_int_equal(r.productive, 910);
	assert_int_equal(r.effort, 909);
}

/* Of one class, all: best effort has the device for itself soon, and productive work is
 * not limited at all. */
static void tgs_classes(void **state)
{
	(void)state;
	assert_in_range(alone("policy.name=tgs", 1000, MS), 1000 * MS, 1050 * MS);
}

static void tgs_loses(void **state)
{
	struct rates r = beside("policy.name=tgs", 200 * MS);

	(void)state;
	/* It is gone after a fifth of the time; that looks like a disturbance. */
	assert_int_equal(r.effort, 24);
	r = beside("policy.name=priority", 200 * MS);
	assert_int_equal(r.effort, 982);
}

static void bad(void **state)
{
	(void)state;
	refused("policy.name=quota", "policy.quota_permille=0", "quota_permille");
	refused("policy.name=quota", "policy.quota_permille=1001", "1..1000");
	refused("policy.name=quota", "policy.quota_window_us=0", "quota_window_us");
	refused("policy.name=quota", "policy.quota_unknown_us=0", "quota_unknown_us");
	refused("policy.name=token", "policy.token_rate=0", "token_rate");
	refused("policy.name=token", "policy.token_burst=0", "token_burst");
	refused("policy.name=token", "policy.token_price=byte", "command|work");
	refused("policy.name=token", "policy.token_unknown=0", "token_unknown");
	refused("policy.name=static", "policy.static_slots=65", "1..64");
	refused("policy.name=static", "policy.static_slots=0", "static_slots");
	refused("policy.name=static", "policy.static_slot_us=-1", "static_slot_us");
	refused("policy.name=tgs", "policy.tgs_period_us=0", "tgs_period_us");
	refused("policy.name=tgs", "policy.tgs_priority=high", "tgs_priority");
}

/* A command that is stopped inside, in the slot of another queue, has overrun its own. */
static void static_folded(void **state)
{
	struct hal_queue *a, *b;
	struct world w;

	(void)state;
	open_with(&w, "policy.name=static", "policy.static_slots=2",
		  "policy.static_slot_us=1000", "backend.ref.fold_ns=1000");
	a = add_queue(w.part, 0, 1, 0);
	b = add_queue(w.part, 0, 1, 0);
	pass(&w, 20 * MS);
	(void)submit(&w, a, 1, 14 * MS / 10, 'a');
	finish(folded_at(&w, a, 212 * MS / 10));
	pass(&w, 22 * MS - hal_device_get_time(w.dev));
	OK(hal_queue_resume(a));
	(void)submit(&w, a, 1, 10, 'a');
	/* The first command completes, and a leaves out the rest of this slot. */
	pass(&w, MS);
	assert_int_equal(stats_of(a).completed, 1);
	pass(&w, 2 * MS);
	assert_int_equal(stats_of(a).completed, 2);
	OK(hal_queue_destroy(a));
	OK(hal_queue_destroy(b));
	world_close(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(quota),        cmocka_unit_test(quota_debt),
		cmocka_unit_test(quota_order),  cmocka_unit_test(quota_inflight),
		cmocka_unit_test(quota_kept),   cmocka_unit_test(quota_loses),
		cmocka_unit_test(token),        cmocka_unit_test(token_work),
		cmocka_unit_test(token_loses),  cmocka_unit_test(fixed_slots),
		cmocka_unit_test(slots_fit),    cmocka_unit_test(slots_taken),
		cmocka_unit_test(static_loses), cmocka_unit_test(tgs),
		cmocka_unit_test(tgs_classes),  cmocka_unit_test(tgs_loses),
		cmocka_unit_test(bad),          cmocka_unit_test(static_folded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
