/* SPDX-License-Identifier: Apache-2.0 */
/* test_npuc_once.c - multipliers that round once give what a double does: each at the
 * sums where results change, and at random ones. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "quant.h"

#define MOST 255

/* xorshift64*; Vigna, "An experimental exploration of Marsaglia's xorshift generators" */
static uint64_t rng = 1;

static uint64_t draw(void)
{
	rng ^= rng >> 12;
	rng ^= rng << 25;
	rng ^= rng >> 27;
	return rng * UINT64_C(2685821657736338717);
}

static double between(double low, double high)
{
	return low + (high - low) * (double)(draw() >> 11) / (double)(UINT64_C(1) << 53);
}

/* x * mult * 2^(shift - 31) as the machine does it: a shift to the left saturates. */
static int64_t machine(int64_t x, struct quant_mult q)
{
	int64_t left = q.shift > 0 ? x * (INT64_C(1) << q.shift) : x;
	uint32_t right = (uint32_t)(31 - (q.shift > 0 ? 0 : q.shift));
	uint64_t magnitude;

	left = left > INT32_MAX ? INT32_MAX : left < INT32_MIN ? INT32_MIN : left;
	magnitude = (uint64_t)(left < 0 ? -left : left) * (uint64_t)q.mult;
	magnitude = (magnitude + (UINT64_C(1) << (right - 1))) >> right;
	return left < 0 ? -(int64_t)magnitude : (int64_t)magnitude;
}

/* x * mult / 2^right, a half upwards, in parts of 32 bits. */
static int64_t digits(int64_t x, struct quant_once q)
{
	uint64_t a = (uint64_t)(x < 0 ? -x : x), low, high;

	low = (a & UINT32_MAX) * (q.mult & UINT32_MAX);
	high = (a & UINT32_MAX) * (q.mult >> 32) + (a >> 32) * (q.mult & UINT32_MAX);
	high += low >> 32;
	assert_int_equal((a >> 32) * (q.mult >> 32), 0);
	/* No x is a tie, so the half may go either way. */
	low = high << 32 | (low & UINT32_MAX);
	if (q.right > 64)
		a = ((high >> (q.right - 33)) + 1) >> 1;
	else if (q.right > 32)
		a = (high >> (q.right - 32)) + (low >> (q.right - 1) & 1);
	else
		a = high >> 32 ? MOST + 1 : (low >> q.right) + (low >> (q.right - 1) & 1);
	return x < 0 ? -(int64_t)a : (int64_t)a;
}

static int64_t clamped(double y)
{
	return y > MOST ? MOST : y < -MOST ? -MOST : (int64_t)y;
}

static void check(double real, int64_t x, const struct quant_mult *m,
		  const struct quant_once *d)
{
	int64_t want = clamped(round((double)x * real));

	if (m && clamped((double)machine(x, *m)) != want)
		fail_msg("%lld * %.17g by %d, shift %d: %lld, not %lld", (long long)x,
			 real, m->mult, m->shift, (long long)machine(x, *m),
			 (long long)want);
	if (clamped((double)digits(x, *d)) != want)
		fail_msg("%lld * %.17g by %llu / 2^%u: %lld, not %lld", (long long)x,
			 real, (unsigned long long)d->mult, d->right,
			 (long long)digits(x, *d), (long long)want);
}

/* Return whether the machine has a multiplier. */
static bool check_scale(double real, uint64_t largest)
{
	struct quant_mult m;
	struct quant_once d;
	bool found = quant_once_mult(real, largest, MOST, &m);
	int64_t most = (int64_t)largest;

	assert_true(quant_once_of(real, largest, MOST, &d));
	assert_true(d.mult < UINT64_C(1) << QUANT_ONCE_BITS);
	if (found)
		assert_in_range(m.shift + 31, 0, 61);
	for (int32_t y = 0; y <= MOST; y++)
		for (int64_t near = -2; near <= 2; near++) {
			double at = ((double)y + 0.5) / real;
			int64_t x = at < (double)most ? (int64_t)at + near : most + near;

			if (x < 0 || x > most)
				continue;
			check(real, x, found ? &m : NULL, &d);
			check(real, -x, found ? &m : NULL, &d);
		}
	for (int i = 0; i < 50; i++) {
		int64_t x = (int64_t)(draw() % (largest + 1));

		check(real, draw() & 1 ? x : -x, found ? &m : NULL, &d);
	}
	return found;
}

static void test_random(void **state)
{
	uint32_t found = 0;

	(void)state;
	for (int i = 0; i < 3000; i++) {
		double real = exp2(between(-14, 0));
		float rounded = (float)real;

		if (i % 3 == 0)
			real = (double)rounded;
		found += check_scale(real, 1 + draw() % (UINT64_C(1) << 24));
	}
	/* Few need more bits. */
	assert_in_range(found, 2950, 3000);
}

/* Where sums are large the machine has less and less of them. */
static void test_large(void **state)
{
	uint32_t found = 0;

	(void)state;
	for (int i = 0; i < 500; i++)
		found += check_scale(exp2(between(-22, -21)), INT32_MAX);
	assert_in_range(found, 1, 250);
}

static void test_ties(void **state)
{
	(void)state;
	for (int power = 0; power <= 20; power++)
		for (int odd = 1; odd <= 15; odd += 2)
			assert_true(check_scale(odd * ldexp(1, -power), 1u << 20));
}

static void test_edges(void **state)
{
	static const double reals[] = {0x1p-33, 0x1p-32, 0x1p-31, 0x1.fffffep-32, 1,
				       254.5,   255,     1000,    0x1p29};
	struct quant_mult m;
	struct quant_once d;

	(void)state;
	for (uint32_t i = 0; i < sizeof(reals) / sizeof(reals[0]); i++)
		for (uint32_t largest = 1; largest; largest *= 16)
			if (reals[i] < 500 || largest < 256)
				check_scale(reals[i], largest);
	assert_true(quant_once_mult(0, INT32_MAX, MOST, &m));
	assert_int_equal(m.mult, 0);
	assert_true(quant_once_of(0.5, 0, MOST, &d));
	assert_true(quant_once_mult(0.5, 0, MOST, &m));
	/* A shift to the left saturates beyond any clamp. */
	assert_true(quant_once_mult(0x1p29, INT32_MAX, MOST, &m));
	assert_true(machine(1, m) >= MOST && machine(INT32_MAX, m) >= MOST &&
		    machine(-INT32_MAX, m) <= -MOST);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_large),
		cmocka_unit_test(test_ties),
		cmocka_unit_test(test_edges),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
