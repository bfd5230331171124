/* SPDX-License-Identifier: Apache-2.0 */
/* test_core_limit.c - bandwidth as bytes in a window, and the tighter of two limits. */
#include "sched/limit.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void has(struct hal_device *dev, uint64_t grain, uint64_t longest)
{
	memset(dev, 0, sizeof(*dev));
	dev->info.caps = HAL_CAP_LIMIT;
	dev->info.limit_bytes = grain;
	dev->info.limit_window_ns = longest;
	dev->info.bandwidth = UINT64_C(64000000000);
}

/* Never more than was asked for, and hardly less; many grains where the window allows. */
static void as_planned(void **state)
{
	static struct hal_device dev;
	uint64_t bytes, window;

	(void)state;
	has(&dev, 64, 4096);
	for (uint64_t b = 16000000; b <= UINT64_C(64000000000); b += b / 3) {
		assert_int_equal(limit_plan(&dev, b, &bytes, &window), 0);
		assert_true(bytes % 64 == 0 && bytes >= 64);
		assert_true(window >= 1 && window <= 4096);
		assert_true((double)bytes * 1e9 / (double)window <= (double)b);
		if (b >= UINT64_C(250000000)) {
			assert_true(bytes >= 960);
			assert_true((double)bytes * 1e9 / (double)window >=
				    (double)b * 0.93);
		}
	}
	assert_int_equal(limit_plan(&dev, 15000000, &bytes, &window), -EINVAL);
	assert_int_equal(limit_plan(&dev, UINT64_C(64000000001), &bytes, &window),
			 -EINVAL);
	assert_int_equal(limit_plan(&dev, UINT64_MAX, &bytes, &window), -EINVAL);
	dev.info.caps = 0;
	assert_int_equal(limit_plan(&dev, 1000000000, &bytes, &window), -ENOTSUP);
}

static void own_is(const struct hal_partition *p, uint64_t bytes, uint64_t window,
		   uint64_t want_bytes, uint64_t want_window)
{
	limit_own(p, &bytes, &window);
	assert_int_equal(bytes, want_bytes);
	assert_int_equal(window, want_window);
}

/* A policy can take more away, and gives back no more than its own. */
static void tighter_of_two(void **state)
{
	static struct hal_partition p;

	(void)state;
	own_is(&p, 0, 0, 0, 0);
	own_is(&p, 640, 100, 640, 100);
	p.sched.limit_bytes = 1024;
	p.sched.limit_window_ns = 1000;
	own_is(&p, 0, 0, 1024, 1000);
	own_is(&p, 1025, 1000, 1024, 1000);
	own_is(&p, 1024, 1000, 1024, 1000);
	own_is(&p, 1023, 1000, 1023, 1000);
	own_is(&p, 2048, 4000, 2048, 4000);
	own_is(&p, 512, 100, 1024, 1000);
	assert_int_equal(limit_of(&p), 1024000000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_planned),
		cmocka_unit_test(tighter_of_two),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
