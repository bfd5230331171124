/* SPDX-License-Identifier: Apache-2.0 */
/* The columns of the demo's picture: what is drawn is what was added. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "history.h"

/* As the picture draws it: columns of a bin, the last one up to end. */
static double drawn(const struct history *h, uint32_t row, uint64_t end)
{
	double sum = 0;

	for (uint32_t i = 0; h->begin + i * h->width < end; i++) {
		uint64_t from = h->begin + i * h->width, to = from + h->width;

		sum += h->amount[row][i] * (double)((to < end ? to : end) - from);
	}
	return sum;
}

static void nothing_is_lost(void **state)
{
	static const uint64_t lengths[] = {1,     63,    64,    65,      24575,
					   24576, 24577, 50000, 1234567, 99999999};
	static struct history h;

	(void)state;
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		uint64_t begin = 1000, end = begin + lengths[i],
			 step = lengths[i] / 7 + 1;
		double sum = 0;

		history_begin(&h, begin);
		for (uint64_t at = begin; at < end; at += step) {
			uint64_t to = at + step < end ? at + step : end;

			history_add(&h, 1, at, to, 3 * (double)(to - at));
			sum += 3 * (double)(to - at);
		}
		history_rates(&h, end);
		assert_true(fabs(drawn(&h, 1, end) - sum) < 1e-9 * sum);
		/* It was as much all the time: no column is higher or lower. */
		for (uint32_t k = 0; begin + k * h.width < end; k++)
			assert_true(fabs(h.amount[1][k] - 3) < 1e-9);
	}
}

static void before_it_began(void **state)
{
	static struct history h;

	(void)state;
	history_begin(&h, 1000);
	history_add(&h, 0, 900, 1100, 200);
	history_add(&h, 0, 800, 1000, 200);
	history_add(&h, 0, 1100, 1100, 200);
	history_rates(&h, 1100);
	assert_true(fabs(drawn(&h, 0, 1100) - 100) < 1e-9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_lost),
		cmocka_unit_test(before_it_began),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
