/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_spin.c - the rule by which a thread looks before it sleeps (util/spin.h),
 * alone and in a model of two that wait for each other: one command at a time between a
 * caller, whose look may take two wake-ups, and an engine, whose look may take 8 us.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "util/spin.h"

#define ENGINE_BOUND UINT64_C(8000)

static void learns_from_when_it_came(void **state)
{
	struct spin p = {100};

	(void)state;
	spin_learn(&p, 300, 8000);
	assert_int_equal(p.ns, 600);
	/* Sooner: as before, for one that is later again. */
	spin_learn(&p, 0, 8000);
	assert_int_equal(p.ns, 600);
	spin_learn(&p, 299, 8000);
	assert_int_equal(p.ns, 600);
	spin_learn(&p, 3999, 8000);
	assert_int_equal(p.ns, 7998);
	/* Never longer than the bound, whatever that was before. */
	spin_learn(&p, 4000, 8000);
	assert_int_equal(p.ns, 8000);
	spin_learn(&p, 8000, 8000);
	assert_int_equal(p.ns, 8000);
	spin_learn(&p, 10, 5000);
	assert_int_equal(p.ns, 20);
	p.ns = 8000;
	spin_learn(&p, 8001, 8000);
	assert_int_equal(p.ns, 4000);
	spin_learn(&p, SPIN_UNKNOWN, 8000);
	assert_int_equal(p.ns, 2000);
	/* Nobody is to look. */
	spin_learn(&p, 0, 0);
	assert_int_equal(p.ns, 0);
	spin_learn(&p, 1, 0);
	assert_int_equal(p.ns, 0);
}

static void in_vain_again_and_again_is_hardly_at_all(void **state)
{
	struct spin p = {8000};
	uint64_t looked = 0;

	(void)state;
	for (int i = 0; i < 1000; i++) {
		looked += p.ns;
		spin_learn(&p, 100000, 8000);
	}
	assert_true(looked < 16000);
}

/* ---- two of them ------------------------------------------------------------------- */

struct side {
	struct spin spin;
	uint64_t bound, looked;
	uint64_t rests_at; /* since then it looks or sleeps */
	unsigned int slept;
};

/* Something for it came: when it goes on, wake_up after that if it sleeps by then. */
static uint64_t met(struct side *s, uint64_t came, uint64_t wake_up)
{
	uint64_t took = came > s->rests_at ? came - s->rests_at : 0;
	uint64_t look = s->spin.ns;

	spin_learn(&s->spin, took, s->bound);
	if (took <= look) {
		s->looked += took;
		return s->rests_at + took;
	}
	s->looked += look;
	s->slept++;
	return came + wake_up;
}

struct pair {
	struct side caller, engine;
};

/* Commands one at a time, of so many ns on the device, from the time when both rest; the
 * engine sleeps until the device's time as to the last. */
static void exchange(struct pair *x, unsigned int commands, uint64_t wake_up,
		     uint64_t device)
{
	uint64_t now = x->caller.rests_at;

	for (unsigned int i = 0; i < commands; i++) {
		now += 200; /* the caller's own work */
		x->caller.rests_at = now;
		now = met(&x->engine, now, wake_up) + 300;
		if (device > 0)
			now += device + wake_up;
		x->engine.rests_at = now;
		now = met(&x->caller, now, wake_up);
	}
	x->caller.rests_at = now;
}

static struct pair both_asleep(uint64_t wake_up)
{
	return (struct pair){.caller = {{0}, 2 * wake_up, 0, 0, 0},
			     .engine = {{0}, ENGINE_BOUND, 0, 0, 0}};
}

/* However long a wake-up takes, two that answer at once find that they can be awake. */
static void two_that_answer_at_once_stay_awake(void **state)
{
	static const uint64_t wake_ups[] = {3000, 10000, 30000, 50000, 200000};

	(void)state;
	for (unsigned int i = 0; i < 5; i++) {
		struct pair x = both_asleep(wake_ups[i]);

		exchange(&x, 4, wake_ups[i], 0);
		assert_true(x.caller.slept <= 1);
		assert_true(x.engine.slept <= 2);
		x.caller.slept = x.engine.slept = 0;
		exchange(&x, 1000, wake_ups[i], 0);
		assert_int_equal(x.caller.slept, 0);
		assert_int_equal(x.engine.slept, 0);
		/* One is late, once: it is as before. */
		x.caller.rests_at += 300000;
		exchange(&x, 4, wake_ups[i], 0);
		x.caller.slept = x.engine.slept = 0;
		exchange(&x, 1000, wake_ups[i], 0);
		assert_int_equal(x.caller.slept + x.engine.slept, 0);
	}
}

/* The control: were the caller's bound the engine's, they would sleep in turn for ever.
 */
static void bounds_below_a_wake_up_keep_both_asleep(void **state)
{
	struct pair x = both_asleep(30000);

	(void)state;
	x.caller.bound = ENGINE_BOUND;
	exchange(&x, 1000, 30000, 0);
	assert_int_equal(x.caller.slept, 1000);
	assert_int_equal(x.engine.slept, 1000);
}

/* Commands of 100 us are slept for: nobody burns what he can not win. */
static void long_commands_are_slept_for(void **state)
{
	struct pair x = both_asleep(30000);

	(void)state;
	x.caller.spin.ns = 60000;
	x.engine.spin.ns = 8000;
	exchange(&x, 1000, 30000, 100000);
	assert_int_equal(x.caller.slept, 1000);
	assert_true(x.caller.looked < 2 * 60000 + 1000);
	assert_true(x.engine.looked < 2 * 8000 + 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(learns_from_when_it_came),
		cmocka_unit_test(in_vain_again_and_again_is_hardly_at_all),
		cmocka_unit_test(two_that_answer_at_once_stay_awake),
		cmocka_unit_test(bounds_below_a_wake_up_keep_both_asleep),
		cmocka_unit_test(long_commands_are_slept_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
