/* SPDX-License-Identifier: Apache-2.0 */
/* The estimate of what is seen of a secret, where it is known how much that is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "information.h"

#define ROWS     400u
#define SHUFFLES 300u

static uint64_t seen[4 * ROWS];
static uint8_t secret[ROWS];

static void draw_secrets(uint64_t *state)
{
	for (uint32_t i = 0; i < ROWS; i++)
		secret[i] = (uint8_t)(information_random(state) >> 63);
}

static struct information estimate(uint32_t columns, uint64_t seed)
{
	struct information i;

	assert_int_equal(information_of(seen, secret, ROWS, columns, SHUFFLES, seed, &i),
			 0);
	return i;
}

/* A bit that is wrong one time in ten says 1 - H(0.1) = 0.531 of it. */
static void noisy_bit(void **state)
{
	uint64_t r = 7;
	double sum = 0;

	(void)state;
	for (uint32_t n = 0; n < 20; n++) {
		struct information i;

		draw_secrets(&r);
		for (uint32_t k = 0; k < ROWS; k++)
			seen[k] = 1000u + (secret[k] ^
					   (information_random(&r) % 10 == 0 ? 1u : 0u));
		i = estimate(1, n + 1);
		assert_true(i.bits > i.error);
		sum += i.bits;
	}
	assert_true(fabs(sum / 20 - 0.531) < 0.03);
}

static void all_or_nothing(void **state)
{
	uint64_t r = 9;
	struct information i;

	(void)state;
	draw_secrets(&r);
	for (uint32_t k = 0; k < ROWS; k++)
		seen[k] = 5;
	i = estimate(1, 1);
	assert_true(fabs(i.bits) < 1e-9 && fabs(i.error) < 1e-9);
	/* The second column says all of it. */
	for (uint32_t k = 0; k < ROWS; k++) {
		seen[(size_t)2 * k] = information_random(&r) % 50;
		seen[(size_t)2 * k + 1] = 100u + 7u * secret[k];
	}
	i = estimate(2, 1);
	assert_int_equal(i.column, 1);
	assert_true(i.bits > 0.95 && i.bits <= 1.001);
}

/* What says nothing is taken for something about one time in a hundred, and its estimate
 * is nothing on average: so much for few samples and many bins. */
static void nothing_but_chance(void **state)
{
	uint32_t taken = 0, runs = 300;
	uint64_t r = 11;
	double sum = 0;

	(void)state;
	for (uint32_t n = 0; n < runs; n++) {
		struct information i;

		draw_secrets(&r);
		for (uint32_t k = 0; k < ROWS; k++)
			seen[k] = information_random(&r) % 1000;
		i = estimate(1, n + 1);
		taken += i.bits > i.error;
		sum += i.bits;
	}
	assert_true(fabs(sum / runs) < 0.001);
	assert_true(taken <= 9); /* of 300; 10 or more: one time in a thousand */
}

/* Of four columns the one that says most by chance is no better. */
static void many_columns(void **state)
{
	uint32_t taken = 0, runs = 100;
	uint64_t r = 13;

	(void)state;
	for (uint32_t n = 0; n < runs; n++) {
		struct information i;

		draw_secrets(&r);
		for (uint32_t k = 0; k < 4 * ROWS; k++)
			seen[k] = information_random(&r) % 1000;
		i = estimate(4, n + 1);
		taken += i.bits > i.error;
	}
	assert_true(taken <= 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(noisy_bit),
		cmocka_unit_test(all_or_nothing),
		cmocka_unit_test(nothing_but_chance),
		cmocka_unit_test(many_columns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
