/* SPDX-License-Identifier: Apache-2.0 */
/* test_core_recolor.c - what a move of a buffer leaves behind: nothing. */
#include "mock_world.h"

#include <hal/ext/memory.h>
#include <hal/ref.h>

#include "command/queue.h"

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
	assert_false(r.q->memory_watched);
	OK(hal_buffer_recolor(a, r.q, 1, NULL, &first));
	OK(hal_device_poll(r.dev, 1));
	other = add_queue(r.part, 0);
	OK(hal_buffer_recolor(b, other, 2, NULL, &second));
	OK(hal_device_poll(r.dev, 1));
	assert_true(r.q->memory_watched);
	assert_true(other->memory_watched);
	OK(wait_ms(first, NEVER_MS));
	assert_true(other->memory_watched); /* for the other one's sake */
	OK(wait_ms(second, NEVER_MS));
	assert_false(r.q->memory_watched);
	assert_false(other->memory_watched);
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
	assert_true(r.q->memory_watched);
	assert_false(q->memory_watched);
	OK(wait_ms(moved, NEVER_MS));
	OK(hal_buffer_destroy(a));
	OK(hal_queue_destroy(q));
	OK(hal_partition_destroy(part));
	ref_close(&r);
}

/* Behind so many others: 0, or what the move says; *more: another one fits behind that.
 */
static int behind(uint32_t count, bool *more)
{
	static const char *const options[] = {"hal.queue_depth=16", NULL};
	struct hal_buffer *a;
	struct hal_point last = {NULL, 0}, one;
	struct ref r;
	int rc;

	ref_open_with(&r, "ref?clock=virtual&colors=4", options);
	a = add_buffer(r.part, 4096);
	for (uint32_t i = 0; i < count; i++)
		OK(submit_nop(r.q, &last));
	rc = hal_buffer_recolor(a, r.q, 1, NULL, &one);
	last = rc == 0 ? one : last;
	*more = submit_nop(r.q, &one) == 0;
	last = *more ? one : last;
	OK(wait_ms(last, NEVER_MS));
	OK(hal_buffer_destroy(a));
	ref_close(&r);
	return rc;
}

/* A queue has room for a move as long as it has, and no longer. */
static void full(void **state)
{
	uint32_t count = 0;
	bool more = true, last;

	(void)state;
	do {
		last = more;
		assert_in_range(count, 0, 16);
	} while (behind(count++, &more) == 0);
	assert_true(count > 4);
	assert_false(last);
	assert_true(more); /* the slots that were too few for it */
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
	ref = hal_device_get_extension(r.dev, "ref");
	native = hal_device_get_native(r.dev);
	for (uint32_t i = 0; i < 4; i++)
		OK(ref->color_free(native, i, &all[i]));
	d.bytes = 64 * 4096;
	OK(hal_buffer_create_weighted(r.part, &d, three_to_one, &b));
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

/* ---- in real time, two devices at once ---------------------------------------------- */

enum { MOVES = 60, MOVED_BYTES = 1 << 18, BESIDE = 4096 };

struct mover {
	struct ref r;
	struct hal_queue *other;
	struct hal_buffer *buf, *beside;
	pthread_t thread;
	uint32_t seed;
	uint64_t filled; /* of what the owner did beside */
	char bad[256];
};

#define WELL(m, cond)                                                                    \
	do {                                                                             \
		if (!(cond)) {                                                           \
			(void)snprintf((m)->bad, sizeof((m)->bad), "%s: %s", #cond,      \
				       hal_last_error());                                \
			return false;                                                    \
		}                                                                        \
	} while (0)

/* One queue fills it, the other takes it elsewhere; the first goes on with what does not
 * move, and fills it again, which waits. */
static bool move_once(struct mover *m, uint32_t i, uint32_t *bytes)
{
	uint32_t pattern = m->seed * 0x01010101u + i;
	struct hal_point filled, moved, again;

	WELL(m, submit_cmd(m->r.q, hal_cmd_fill(m->buf, 0, MOVED_BYTES, pattern),
			   &filled) == 0);
	WELL(m, wait_ms(filled, NEVER_MS) == 0);
	WELL(m, hal_buffer_recolor(m->buf, m->other, 1u << i % 4, NULL, &moved) == 0);
	for (int k = 0; k < 3; k++) {
		WELL(m, submit_cmd(m->r.q, hal_cmd_fill(m->beside, 0, BESIDE, pattern),
				   &filled) == 0);
		m->filled++;
	}
	WELL(m, submit_cmd(m->r.q, hal_cmd_fill(m->buf, 0, 4096, ~pattern), &again) == 0);
	WELL(m, wait_ms(moved, NEVER_MS) == 0 && wait_ms(again, NEVER_MS) == 0);
	WELL(m, hal_buffer_read(m->buf, 0, bytes, MOVED_BYTES) == 0);
	for (uint32_t at = 0; at < MOVED_BYTES / 4; at++)
		WELL(m, bytes[at] == (at < 1024 ? ~pattern : pattern));
	return true;
}

static void *move_many(void *arg)
{
	struct mover *m = arg;
	uint32_t *bytes = malloc(MOVED_BYTES);

	for (uint32_t i = 0; bytes != NULL && i < MOVES && move_once(m, i, bytes); i++)
		;
	if (bytes == NULL)
		(void)snprintf(m->bad, sizeof(m->bad), "no memory");
	free(bytes);
	return NULL;
}

/* Each device has an engine's thread of its own; what one moves is no other's. */
static void beside_a_second_device(void **state)
{
	struct hal_stats st = HAL_INIT(hal_stats);
	struct hal_partition_info info = HAL_INIT(hal_partition_info);
	struct mover m[2];

	(void)state;
	for (uint32_t i = 0; i < 2; i++) {
		memset(&m[i], 0, sizeof(m[i]));
		m[i].seed = i + 1;
		ref_open_with(&m[i].r, "ref?clock=real&colors=4", NULL);
		m[i].other = add_queue(m[i].r.part, 0);
		m[i].buf = add_buffer(m[i].r.part, MOVED_BYTES);
		m[i].beside = add_buffer(m[i].r.part, BESIDE);
	}
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&m[i].thread, NULL, move_many, &m[i]), 0);
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(pthread_join(m[i].thread, NULL), 0);
	for (uint32_t i = 0; i < 2; i++) {
		if (m[i].bad[0] != '\0')
			fail_msg("device %u: %s", i, m[i].bad);
		OK(hal_queue_get_stats(m[i].r.q, &st));
		assert_int_equal(st.completed, 2 * MOVES + m[i].filled);
		OK(hal_partition_get_info(m[i].r.part, &info));
		assert_int_equal(info.memory_used, MOVED_BYTES + BESIDE);
		OK(hal_buffer_destroy(m[i].buf));
		OK(hal_buffer_destroy(m[i].beside));
		OK(hal_queue_destroy(m[i].other));
		ref_close(&m[i].r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(looked_at_meanwhile),
		cmocka_unit_test(of_its_partition_alone),
		cmocka_unit_test(full),
		cmocka_unit_test(in_a_ratio),
		cmocka_unit_test(beside_a_second_device),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
