/* SPDX-License-Identifier: Apache-2.0 */
/* test_core_caller.c - a backend learns which thread of the application has called. */
#include "ref_world.h"

#include "config/registry.h"
#include "loop/engine.h"

struct asks {
	struct hal_device *dev;
	uint64_t own, within; /* numbers, outside of a call and inside of one */
};

static int ask(struct hal_device *dev, void *arg)
{
	(void)dev;
	*(uint64_t *)arg = core_host.caller();
	return 0;
}

static void *call(void *arg)
{
	struct asks *a = arg;

	a->own = core_host.caller();
	OK(engine_call(a->dev, ask, &a->within));
	assert_int_equal(core_host.caller(), a->own);
	return NULL;
}

static void numbers(const char *target)
{
	struct hal_device *dev;
	struct asks a[2];
	pthread_t thread;

	OK(hal_open(target, NULL, &dev));
	for (int i = 0; i < 2; i++) {
		a[i] = (struct asks){.dev = dev};
		/* The second thread may have the identifier of the first one. */
		assert_int_equal(pthread_create(&thread, NULL, call, &a[i]), 0);
		pthread_join(thread, NULL);
		assert_int_not_equal(a[i].own, 0);
		assert_int_equal(a[i].within, a[i].own);
		assert_int_not_equal(a[i].own, core_host.caller());
	}
	assert_int_not_equal(a[0].own, a[1].own);
	OK(hal_close(dev));
}

static void engine_of_its_own(void **state)
{
	(void)state;
	numbers("ref?clock=real");
}

static void callers_are_the_engine(void **state)
{
	(void)state;
	numbers("ref?clock=virtual");
}

/* A thread that is the engine acts for another one, whose call it finds in the inbox. */
static void engine_of_another(void **state)
{
	struct asks a = {0};
	const uint64_t own = core_host.caller();
	pthread_t thread;

	(void)state;
	OK(hal_open("ref?clock=virtual", NULL, &a.dev));
	engine_enter(a.dev);
	assert_int_equal(pthread_create(&thread, NULL, call, &a), 0);
	while (inbox_empty(&a.dev->inbox))
		sched_yield();
	engine_leave(a.dev);
	pthread_join(thread, NULL);
	assert_int_equal(a.within, a.own);
	assert_int_not_equal(a.within, own);
	assert_int_equal(core_host.caller(), own);
	OK(hal_close(a.dev));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(engine_of_its_own),
		cmocka_unit_test(callers_are_the_engine),
		cmocka_unit_test(engine_of_another),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
