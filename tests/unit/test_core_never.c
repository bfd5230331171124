/* SPDX-License-Identifier: Apache-2.0 */
/* Times near 2^64: a sum that is beyond is never, not long ago. */
#include "ref_world.h"

#include <unistd.h>

#include <hal/ref.h>

#include "config/registry.h"
#include "loop/device.h"

static void sums(void **state)
{
	(void)state;
	assert_true(hal_bk_after(0, 0) == 0);
	assert_true(hal_bk_after(3, 4) == 7);
	assert_true(hal_bk_after(UINT64_MAX - 1, 0) == UINT64_MAX - 1);
	assert_true(hal_bk_after(UINT64_MAX - 1, 1) == UINT64_MAX);
	assert_true(hal_bk_after(UINT64_MAX - 1, 2) == UINT64_MAX);
	assert_true(hal_bk_after(2, UINT64_MAX - 1) == UINT64_MAX);
	assert_true(hal_bk_after(UINT64_MAX, UINT64_MAX) == UINT64_MAX);
}

static uint64_t cpu_ns(clockid_t clock)
{
	struct timespec t;

	assert_int_equal(clock_gettime(clock, &t), 0);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* The engine takes next to no time of a processor while this thread takes 30 ms. */
static void engine_sleeps(struct hal_device *dev)
{
	uint64_t from, had, until;
	clockid_t clock;

	assert_int_equal(pthread_getcpuclockid(dev->thread, &clock), 0);
	while (atomic_load(&dev->inbox.sleeping) == 0) {
		assert_true(cpu_ns(clock) < 500000000);
		sched_yield();
	}
	had = cpu_ns(clock);
	from = cpu_ns(CLOCK_THREAD_CPUTIME_ID);
	do {
		assert_true(cpu_ns(clock) - had < 10000000);
		sched_yield();
		until = cpu_ns(CLOCK_THREAD_CPUTIME_ID);
	} while (until - from < 30000000);
}

static void engine_does_not_spin(void **state)
{
	static const uint64_t times[] = {UINT64_MAX - 1, UINT64_MAX - 1000000000,
					 UINT64_C(1) << 63};

	(void)state;
	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
		struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
		struct hal_point p;
		struct ref r;

		ref_open(&r);
		d.not_before_ns = times[i];
		OK(hal_submit(r.q, &d, &p));
		engine_sleeps(r.dev);
		assert_int_equal(hal_wait(&p, 1, 0, 0), -ETIMEDOUT);
		OK(hal_queue_suspend(r.q, HAL_SUSPEND_KILL | HAL_SUSPEND_FINAL, NULL));
		ref_close(&r);
	}
}

static int nothing(const struct hal_ref_call *call)
{
	(void)call;
	return 0;
}

static const struct hal_ref_kernel kernels[] = {
	{.name = "work", .fn = nothing, .work = UINT64_MAX},
	{.name = "span", .fn = nothing, .span_ns = UINT64_MAX},
	{.name = "both", .fn = nothing, .work = 1, .span_ns = UINT64_MAX - 1}};

/* A kernel that never ends does not end at once. */
static void endless_kernels(void **state)
{
	struct hal_program *prog;
	struct hal_kernel *k;
	struct hal_point p;
	struct ref r;

	(void)state;
	ref_open_with(&r, "ref?clock=virtual", NULL);
	OK(hal_ref_load(r.dev, kernels, 3, &prog));
	OK(hal_queue_destroy(r.q));
	for (uint32_t i = 0; i < 3; i++) {
		r.q = add_queue(r.part, 0);
		OK(hal_kernel_find(prog, kernels[i].name, &k));
		OK(submit_nop(r.q, NULL)); /* the clock does not stand at 0 */
		OK(submit_cmd(r.q, hal_cmd_launch(k, NULL, 0), &p));
		assert_int_equal(hal_device_poll(r.dev, 1000000), 1);
		assert_int_equal(hal_wait(&p, 1, 0, 0), -ETIMEDOUT);
		OK(hal_queue_suspend(r.q, HAL_SUSPEND_KILL | HAL_SUSPEND_FINAL, NULL));
		assert_int_equal(hal_wait(&p, 1, 0, HAL_FOREVER), -ECANCELED);
		OK(hal_queue_destroy(r.q));
	}
	OK(hal_program_unload(prog));
	OK(hal_partition_destroy(r.part));
	OK(hal_close(r.dev));
}

/* Where the clock stands at the end of time each policy answers, whatever it waits for.
 */
static void end_of_time(void **state)
{
	(void)state;
	OK(registry_load(""));
	for (uint32_t i = 0; i < policy_count(); i++) {
		struct hal_queue_desc d = HAL_INIT(hal_queue_desc);
		struct hal_queue *q[2];
		struct hal_point p[8];
		char policy[64];
		const char *const options[] = {policy, NULL};
		struct ref r;

		snprintf(policy, sizeof(policy), "policy.name=%s", policy_at(i)->name);
		(void)alarm(NEVER_MS / 1000); /* one that does not return */
		ref_open_with(&r, "ref?clock=virtual", options);
		d.service_class = HAL_CLASS_BEST_EFFORT;
		OK(hal_queue_create(r.part, &d, &q[0]));
		d.service_class = HAL_CLASS_LATENCY;
		d.deadline_ns = 1000000000;
		OK(hal_queue_create(r.part, &d, &q[1]));
		OK(submit_nop(r.q, NULL)); /* and something to be remembered */
		assert_int_equal(hal_device_poll(r.dev, 1000), 1);
		assert_true(hal_device_poll(r.dev, UINT64_MAX - 200000) >= 0);
		for (uint32_t n = 0; n < 8; n++)
			OK(submit_nop(n % 4 < 2 ? q[n % 2] : r.q, &p[n]));
		assert_true(hal_device_poll(r.dev, 100000) >= 0);
		(void)hal_wait(p, 8, 0, 0);
		/* Who waits for a time that does not come is served by another. */
		OK(hal_device_set_policy(r.dev, "fifo", NULL));
		OK(hal_wait(p, 8, 0, HAL_FOREVER));
		OK(hal_queue_destroy(q[0]));
		OK(hal_queue_destroy(q[1]));
		ref_close(&r);
		(void)alarm(0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sums),
		cmocka_unit_test(engine_does_not_spin),
		cmocka_unit_test(endless_kernels),
		cmocka_unit_test(end_of_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
