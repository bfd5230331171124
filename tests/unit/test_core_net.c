/* SPDX-License-Identifier: Apache-2.0 */
/* The net under a policy: what it holds back comes, whatever it answers. */
#include "ref_world.h"

#include "config/registry.h"

/* Names nobody until a time, then the oldest. */
static struct {
	uint64_t until_ns; /* what it answers; UINT64_MAX: no time */
	uint64_t open_ns;  /* from then on it names somebody */
	unsigned int asked;
} hold;

static struct hal_policy_queue *list[64];
static unsigned int count;

static void hold_enqueue(void *state, struct hal_policy_partition *part,
			 struct hal_policy_queue *q)
{
	(void)state, (void)part;
	list[count++] = q;
}

static void take_out(const struct hal_policy_queue *q)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < count; i++)
		if (list[i] != q)
			list[n++] = list[i];
	count = n;
}

static void hold_dequeue(void *state, struct hal_policy_partition *part,
			 struct hal_policy_queue *q, enum hal_policy_why why)
{
	(void)state, (void)part, (void)why;
	take_out(q);
}

static struct hal_policy_queue *hold_pick(void *state, struct hal_policy_partition *part,
					  uint64_t now_ns, struct hal_policy_order *order)
{
	struct hal_policy_queue *q = list[0];

	(void)state, (void)part;
	hold.asked++;
	if (now_ns < hold.open_ns || count == 0) {
		order->until_ns = hold.until_ns;
		return NULL;
	}
	take_out(q);
	return q;
}

static const struct hal_policy policy = {
	.size = sizeof(struct hal_policy),
	.abi = HAL_POLICY_ABI,
	.name = "hold",
	.summary = "names nobody until a time; for tests",
	.flags = HAL_POLICY_ALWAYS,
	.enqueue = hold_enqueue,
	.dequeue = hold_dequeue,
	.pick = hold_pick,
};

static void open_held(struct ref *r, const char *target, uint64_t open_ns,
		      uint64_t until_ns)
{
	ref_open_with(r, target, NULL);
	if (policy_find("hold") == NULL)
		OK(policy_add(&policy, "a test"));
	count = 0;
	hold.asked = 0;
	hold.open_ns = hal_device_get_time(r->dev) + open_ns;
	hold.until_ns = until_ns == UINT64_MAX ? until_ns : hold.open_ns;
	OK(hal_device_set_policy(r->dev, "hold", NULL));
}

static struct hal_policy_info info_of(struct ref *r)
{
	struct hal_policy_info i = HAL_INIT(hal_policy_info);

	OK(hal_device_get_policy(r->dev, &i));
	return i;
}

/* "Nobody until then" is asked again then, though nothing else happens. */
static void asked_again(const char *target)
{
	struct hal_point p[2];
	struct hal_queue *q;
	struct ref r;

	for (int i = 0; i < 3; i++) {
		open_held(&r, target, 3000000, 0);
		q = add_queue(r.part, 0);
		OK(submit_nop(r.q, &p[0]));
		OK(submit_nop(q, &p[1]));
		OK(hal_wait(p, 2, 0, in_ms(NEVER_MS)));
		assert_true(hal_device_get_time(r.dev) >= hold.open_ns);
		/* Asked a few times, not all the time. */
		assert_in_range(hold.asked, 2, 20);
		assert_int_equal(info_of(&r).stalls, 0);
		assert_int_equal(info_of(&r).fallback, 0);
		OK(hal_queue_destroy(q));
		ref_close(&r);
	}
}

static void asked_again_virtual(void **state)
{
	(void)state;
	asked_again("ref?clock=virtual");
}

static void asked_again_real(void **state)
{
	(void)state;
	asked_again("ref?clock=real");
}

/* Count the lines about the policy. */
static void count_lines(void *user, int level, const char *text)
{
	if (level == HAL_LOG_WARNING && strstr(text, "policy hold") != NULL)
		atomic_fetch_add((atomic_uint *)user, 1);
}

/* "Nobody", and no time, while nothing runs: the engine serves, and says so. */
static void served_by_the_net(const char *target)
{
	atomic_uint logged = 0;
	struct hal_point p;
	struct ref r;

	OK(hal_log_set(count_lines, &logged, HAL_LOG_WARNING));
	open_held(&r, target, UINT64_C(1) << 60, UINT64_MAX);
	for (uint64_t i = 0; i < 15; i++) {
		OK(submit_nop(r.q, &p));
		OK(hal_wait(&p, 1, 0, in_ms(NEVER_MS)));
		assert_int_equal(info_of(&r).stalls, i + 1);
		assert_int_equal(info_of(&r).fallback, 0);
	}
	assert_non_null(strstr(info_of(&r).reason, "no queue"));
	assert_int_equal(logged, 1); /* the same fault again and again */
	works(r.q);
	/* Enough is enough. */
	assert_int_equal(info_of(&r).fallback, 1);
	works(r.q);
	assert_int_equal(info_of(&r).stalls, 16);
	assert_int_equal(logged, 2);
	OK(hal_log_set(NULL, NULL, HAL_LOG_OFF));
	ref_close(&r);
}

static void served_by_the_net_virtual(void **state)
{
	(void)state;
	served_by_the_net("ref?clock=virtual");
}

static void served_by_the_net_real(void **state)
{
	(void)state;
	served_by_the_net("ref?clock=real");
}

/* A time that has passed, while something runs, is "after the next event". */
static void a_time_that_has_passed(void **state)
{
	struct hal_submit_desc s = HAL_INIT(hal_submit_desc);
	struct hal_point p[2];
	struct hal_cmd cmd = hal_cmd_of(HAL_OP_NOP, 0);
	struct hal_queue *q;
	struct ref r;

	(void)state;
	open_held(&r, "ref?clock=virtual", 0, 0);
	q = add_queue(r.part, 0);
	s.cmds = &cmd;
	s.cmd_count = 1;
	OK(hal_submit(r.q, &s, &p[0]));
	OK(hal_submit(q, &s, &p[1]));
	/* The first goes to the device; then it says: nobody, until a moment ago. */
	OK(hal_wait(&p[0], 1, 0, in_ms(NEVER_MS)));
	OK(hal_wait(&p[1], 1, 0, in_ms(NEVER_MS)));
	for (int i = 0; i < 50; i++) {
		hold.open_ns = hal_device_get_time(r.dev);
		hold.until_ns = 0;
		OK(hal_submit(r.q, &s, &p[0]));
		OK(hal_submit(q, &s, &p[1]));
		(void)hal_device_poll(r.dev, 0);
		hold.open_ns = UINT64_MAX;
		OK(hal_submit(r.q, &s, &p[0]));
		OK(hal_submit(q, &s, &p[1]));
		if (hal_device_poll(r.dev, 10000) < 0)
			fail_msg("%s", hal_last_error());
		hold.open_ns = 0;
		OK(hal_wait(p, 2, 0, in_ms(NEVER_MS)));
	}
	OK(hal_queue_destroy(q));
	ref_close(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(asked_again_virtual),
		cmocka_unit_test(asked_again_real),
		cmocka_unit_test(served_by_the_net_virtual),
		cmocka_unit_test(served_by_the_net_real),
		cmocka_unit_test(a_time_that_has_passed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
