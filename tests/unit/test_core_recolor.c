/* SPDX-License-Identifier: Apache-2.0 */
/* test_core_recolor.c - what a move of a buffer leaves behind: nothing. */
#include "mock_world.h"

#include <hal/ref.h>

#include "engine/queue.h"

#include "ref_world.h"

/* Queues are looked at while something of their partition moves, new ones too, and no
 * longer. */
static void looked_at_meanwhile(void **state)
{
	struct hal_partition_info before = HAL_INIT(hal_partition_info), after = before;
	struct hal_buffer *a, *b;
	struct hal_queue *other;
	struct hal_point first, second;
	struct ref r;

	(void)state;
	ref_open_with(&r, "ref?colors=4", NULL);
	a = add_buffer(r.part, 1 << 20);
	b = add_buffer(r.part, 1 << 20);
	OK(hal_partition_get_info(r.part, &before));
	assert_false(r.q->watched);
	OK(hal_buffer_recolor(a, r.q, 1, NULL, &first));
	OK(hal_device_poll(r.dev, 1));
	other = add_queue(r.part, 0);
	OK(hal_buffer_recolor(b, other, 2, NULL, &second));
	OK(hal_device_poll(r.dev, 1));
	assert_true(r.q->watched);
	assert_true(other->watched);
	OK(wait_ms(first, NEVER_MS));
	assert_true(other->watched); /* for the other one's sake */
	OK(wait_ms(second, NEVER_MS));
	assert_false(r.q->watched);
	assert_false(other->watched);
	assert_int_equal((r.q->slow | other->slow) & SLOW_RECOLOR, 0);
	OK(hal_partition_get_info(r.part, &after));
	assert_int_equal(after.memory_used, before.memory_used);
	OK(hal_buffer_destroy(a));
	OK(hal_buffer_destroy(b));
	OK(hal_queue_destroy(other));
	ref_close(&r);
}

/* A queue of another partition does not notice. */
static void of_its_partition_alone(void **state)
{
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	struct hal_partition *part;
	struct hal_point moved;
	struct hal_buffer *a;
	struct hal_queue *q;
	struct ref r;

	(void)state;
	ref_open_with(&r, "ref?colors=4", NULL);
	d.units_floor = 1;
	OK(hal_partition_create(r.dev, &d, &part));
	q = add_queue(part, 0);
	a = add_buffer(r.part, 1 << 20);
	OK(hal_buffer_recolor(a, r.q, 1, NULL, &moved));
	OK(hal_device_poll(r.dev, 1));
	assert_true(r.q->watched);
	assert_false(q->watched);
	OK(wait_ms(moved, NEVER_MS));
	OK(hal_buffer_destroy(a));
	OK(hal_queue_destroy(q));
	OK(hal_partition_destroy(part));
	ref_close(&r);
}

/* In the ratio that was asked for, and all of it is given back. */
static void in_a_ratio(void **state)
{
	static const uint8_t three_to_one[4] = {3, 0, 1, 0};
	struct hal_buffer_desc d = HAL_INIT(hal_buffer_desc);
	const struct hal_ref_extension *ref;
	uint64_t all[4], left[4];
	struct hal_point moved;
	struct hal_buffer *b;
	void *native;
	struct ref r;

	(void)state;
	ref_open_with(&r, "ref?colors=4", NULL);
	ref = hal_device_extension(r.dev, "ref");
	native = hal_device_native(r.dev);
	for (uint32_t i = 0; i < 4; i++)
		OK(ref->color_free(native, i, &all[i]));
	d.bytes = 64 * 4096;
	d.color_weights = three_to_one;
	OK(hal_buffer_create(r.part, &d, &b));
	for (uint32_t i = 0; i < 4; i++) {
		OK(ref->color_free(native, i, &left[i]));
		assert_int_equal(all[i] - left[i], three_to_one[i] * UINT64_C(16) * 4096);
	}
	OK(hal_buffer_recolor(b, r.q, 10, NULL, &moved));
	OK(wait_ms(moved, NEVER_MS));
	for (uint32_t i = 0; i < 4; i++) {
		OK(ref->color_free(native, i, &left[i]));
		assert_int_equal(all[i] - left[i], i % 2 * UINT64_C(32) * 4096);
	}
	OK(hal_buffer_destroy(b));
	for (uint32_t i = 0; i < 4; i++) {
		OK(ref->color_free(native, i, &left[i]));
		assert_int_equal(left[i], all[i]);
	}
	ref_close(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(looked_at_meanwhile),
		cmocka_unit_test(of_its_partition_alone),
		cmocka_unit_test(in_a_ratio),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
