/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ends.h - how commands of one queue have to end, for a test that has included cmocka.h
 * and hal/backend.h.
 */
#ifndef TESTS_GPU_ENDS_H
#define TESTS_GPU_ENDS_H

/* The events are ends of commands with cookies from first on, in order and well. */
static inline void assert_ends(const struct hal_bk_event *ev, uint32_t first,
			       uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		assert_int_equal(ev[i].kind, HAL_BK_DONE);
		assert_int_equal(ev[i].cookie, first + i);
		assert_int_equal(ev[i].status, 0);
		assert_true(ev[i].end_ns >= ev[i].start_ns);
		if (i)
			assert_true(ev[i].start_ns >= ev[i - 1].end_ns);
	}
}

#endif
