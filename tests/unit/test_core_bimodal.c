/* SPDX-License-Identifier: Apache-2.0 */
/* test_core_bimodal.c - what placements of a bimodal partition leave behind, and how they
 * fail. */
#include "mock_world.h"

#include <hal/ref.h>

#include "engine/queue.h"

#include "ref_world.h"

enum { PAGE = 4096, PAGES = 64, WORDS = PAGES * PAGE / 4 };

struct lone {
	struct ref r;
	const struct hal_ref_extension *ref;
	void *native;
	struct hal_partition *part;
	struct hal_queue *q;
};

static void lone_open(struct lone *l)
{
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);

	ref_open_with(&l->r, "ref?colors=4", NULL);
	l->ref = hal_device_extension(l->r.dev, "ref");
	l->native = hal_device_native(l->r.dev);
	d.units_floor = 1;
	d.color_mask = 3;
	d.flags = HAL_PARTITION_BIMODAL;
	OK(hal_partition_create(l->r.dev, &d, &l->part));
	l->q = add_queue(l->part, 0);
}

static void lone_close(struct lone *l)
{
	OK(hal_queue_destroy(l->q));
	OK(hal_partition_destroy(l->part));
	ref_close(&l->r);
}

static uint64_t switches(const struct lone *l)
{
	struct hal_partition_info i = HAL_INIT(hal_partition_info);

	OK(hal_partition_get_info(l->part, &i));
	return i.switches;
}

static struct hal_buffer *bimodal(const struct lone *l, uint32_t flags)
{
	struct hal_buffer_desc d = HAL_INIT(hal_buffer_desc);
	struct hal_buffer *b;

	d.bytes = (uint64_t)PAGES * PAGE;
	d.flags = HAL_BUFFER_BIMODAL | flags;
	OK(hal_buffer_create(l->part, &d, &b));
	return b;
}

/* All of it is on its own channels, and half of it on the others as well; whatever the
 * placement is when it comes and goes. */
static void where_it_lies(void **state)
{
	static const uint64_t want[4] = {32, 32, 16, 16};
	uint64_t all[4], left;
	struct hal_buffer *b;
	struct lone l;

	(void)state;
	lone_open(&l);
	for (uint32_t i = 0; i < 4; i++)
		OK(l.ref->color_free(l.native, i, &all[i]));
	for (uint64_t n = 0; n < 4; n++) {
		b = bimodal(&l, 0);
		for (uint32_t i = 0; i < 4; i++) {
			OK(l.ref->color_free(l.native, i, &left));
			assert_int_equal(all[i] - left, want[i] * PAGE);
		}
		if (n % 2 == 0)
			works(l.q);
		OK(hal_buffer_destroy(b));
		for (uint32_t i = 0; i < 4; i++) {
			OK(l.ref->color_free(l.native, i, &left));
			assert_int_equal(left, all[i]);
		}
	}
	assert_int_equal(switches(&l), 1);
	lone_close(&l);
}

/* Of words, those that the host has written. */
static uint32_t as_written(const uint32_t *words)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < WORDS; i++)
		n += words[i] == i;
	return n;
}

/* What work has left in scratch memory is not there in the other placement, what the host
 * has written is: and each placement is one, not half of each. */
static void what_it_holds(void **state)
{
	static uint32_t words[WORDS];
	struct hal_buffer *s, *b;
	struct hal_point p, held;
	uint32_t now = 0;
	struct lone l;

	(void)state;
	lone_open(&l);
	s = bimodal(&l, HAL_BUFFER_SCRATCH);
	b = bimodal(&l, 0);
	for (uint32_t i = 0; i < WORDS; i++)
		words[i] = i;
	OK(hal_buffer_write(s, 0, words, sizeof(words)));
	OK(hal_buffer_write(b, 0, words, sizeof(words)));
	/* Wide: the scratch memory is filled there. */
	OK(submit_cmd(l.q, hal_cmd_fill(s, 0, sizeof(words), UINT32_MAX), &p));
	OK(wait_ms(p, NEVER_MS));
	assert_int_equal(switches(&l), 1);
	/* Narrow, for another one is suspended with work in it. */
	OK(hal_queue_suspend(l.r.q, HAL_SUSPEND_DRAIN, &held));
	OK(submit_nop(l.r.q, &held));
	works(l.q);
	assert_int_equal(switches(&l), 2);
	OK(hal_buffer_read(s, 0, words, sizeof(words)));
	assert_int_equal(as_written(words), WORDS / 2);
	for (uint32_t i = 0; i < WORDS; i++)
		now += words[i] == UINT32_MAX;
	assert_int_equal(now, WORDS / 2);
	OK(hal_buffer_read(b, 0, words, sizeof(words)));
	assert_int_equal(as_written(words), WORDS);
	OK(hal_queue_resume(l.r.q));
	OK(wait_ms(held, NEVER_MS));
	OK(hal_buffer_destroy(s));
	OK(hal_buffer_destroy(b));
	lone_close(&l);
}

/* A device that refuses: it stays where it is, and work goes on. */
static void refused(void **state)
{
	struct hal_buffer *b;
	struct lone l;

	(void)state;
	lone_open(&l);
	b = bimodal(&l, HAL_BUFFER_SCRATCH);
	OK(l.ref->inject(l.native, HAL_REF_OP_WIDEN, 1, EIO));
	works(l.q);
	works(l.q);
	assert_int_equal(switches(&l), 0);
	OK(hal_buffer_destroy(b));
	lone_close(&l);
}

/* Queues of others are not looked at. */
static void of_its_partition_alone(void **state)
{
	struct hal_queue *q;
	struct lone l;

	(void)state;
	lone_open(&l);
	assert_true(l.q->watched);
	assert_false(l.r.q->watched);
	q = add_queue(l.r.part, 0);
	assert_false(q->watched);
	works(l.q);
	assert_true(l.q->watched);
	assert_false(l.q->inside);
	OK(hal_queue_destroy(q));
	lone_close(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(where_it_lies),
		cmocka_unit_test(what_it_holds),
		cmocka_unit_test(refused),
		cmocka_unit_test(of_its_partition_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
