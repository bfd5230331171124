/* SPDX-License-Identifier: Apache-2.0 */
/* Two threads make a timeline fail while memory is short: the first failure stays.  The
 * second thread runs inside the malloc of the first, so that the order is always the
 * same. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <hal/hal.h>

#include "command/timeline.h"

/* NOLINTBEGIN(bugprone-reserved-identifier): the linker's names */
void *__real_malloc(size_t bytes);
void *__wrap_malloc(size_t bytes);

static struct hal_timeline timeline;
static int calls_left; /* calls of malloc that fail */

void *__wrap_malloc(size_t bytes)
{
	if (calls_left == 0)
		return __real_malloc(bytes);
	if (calls_left-- == 2)
		timeline_fail(&timeline, -EIO, "second thread", timeline.dev);
	return NULL;
}
/* NOLINTEND(bugprone-reserved-identifier) */

static void first_failure_stays(void **state)
{
	static max_align_t device[4096]; /* nothing in it is used but its address */

	(void)state;
	timeline_init(&timeline, (void *)device);
	calls_left = 2;
	timeline_fail(&timeline, -ENODEV, "first thread", timeline.dev);
	assert_int_equal(calls_left, 0);
	assert_int_equal(timeline_error(&timeline), -EIO);
	assert_string_equal(timeline_text(&timeline), hal_strerror(-EIO));
	timeline_fini(&timeline);
}

/* The other thread has taken the spare memory, but has not published it yet. */
static void taken_failure_is_published(void **state)
{
	static max_align_t device[4096];

	(void)state;
	timeline = (struct hal_timeline){0};
	timeline_init(&timeline, (void *)device);
	timeline.spare.err = -EIO;
	calls_left = 1;
	timeline_fail(&timeline, -ENODEV, "first thread", timeline.dev);
	assert_int_equal(timeline_error(&timeline), -EIO);
	assert_string_equal(timeline_text(&timeline), hal_strerror(-EIO));
	timeline_fini(&timeline);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(first_failure_stays),
		cmocka_unit_test(taken_failure_is_published),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
