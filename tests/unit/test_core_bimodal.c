/* SPDX-License-Identifier: Apache-2.0 */
/* test_core_bimodal.c - what placements of a bimodal partition leave behind, and how they
 * fail. */
#include "mock_world.h"

#include <hal/ext/memory.h>
#include <hal/ref.h>

#include "command/queue.h"

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
	l->ref = hal_device_get_extension(l->r.dev, "ref");
	l->native = hal_device_get_native(l->r.dev);
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
	struct hal_partition_memory_info i = HAL_INIT(hal_partition_memory_info);

	OK(hal_partition_get_memory_info(l->part, &i));
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
	assert_true(l.q->memory_watched);
	assert_false(l.r.q->memory_watched);
	q = add_queue(l.r.part, 0);
	assert_false(q->memory_watched);
	works(l.q);
	assert_true(l.q->memory_watched);
	assert_false(l.q->inside);
	OK(hal_queue_destroy(q));
	lone_close(&l);
}

/* ---- in real time ------------------------------------------------------------------- */

enum { LARGE = 64 << 20, TRIES_MS = 5000 };

struct writer {
	struct hal_buffer *buf;
	const uint8_t *bytes;
	atomic_int begun, ended;
	int64_t took_ns;
	int err;
};

static void *write_large(void *arg)
{
	struct writer *w = arg;
	int64_t from = now_ns();

	atomic_store(&w->begun, 1);
	w->err = hal_buffer_write(w->buf, 0, w->bytes, LARGE);
	w->took_ns = now_ns() - from;
	atomic_store(&w->ended, 1);
	return NULL;
}

/* No submission of q takes a quarter as long as a large copy beside which it is made. */
static bool is_quick_beside(struct writer *w, struct hal_queue *q)
{
	int64_t longest = 0, from, took;
	pthread_t thread;

	atomic_store(&w->begun, 0);
	atomic_store(&w->ended, 0);
	assert_int_equal(pthread_create(&thread, NULL, write_large, w), 0);
	while (atomic_load(&w->begun) == 0)
		spin(10);
	while (atomic_load(&w->ended) == 0) {
		from = now_ns();
		works(q);
		took = now_ns() - from;
		longest = took > longest ? took : longest;
	}
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(w->err, 0);
	return longest < w->took_ns / 4;
}

/* Another tenant, and the buffer's own, go on while the host writes. */
static void copied_beside(void **state)
{
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	struct hal_buffer_desc bd = HAL_INIT(hal_buffer_desc);
	uint8_t *bytes = malloc(LARGE), *back = malloc(LARGE);
	struct writer w = {.err = 0};
	struct hal_partition *part;
	struct hal_queue *own;
	int64_t until;
	struct ref r;

	(void)state;
	assert_non_null(bytes);
	assert_non_null(back);
	ref_open_with(&r, "ref?clock=real&colors=4&memory=512M", NULL);
	d.units_floor = 1;
	d.color_mask = 3;
	d.flags = HAL_PARTITION_BIMODAL;
	OK(hal_partition_create(r.dev, &d, &part));
	own = add_queue(part, 0);
	bd.bytes = LARGE;
	bd.flags = HAL_BUFFER_BIMODAL;
	OK(hal_buffer_create(part, &bd, &w.buf));
	w.bytes = bytes;
	for (uint32_t k = 0; k < 2; k++) {
		memset(bytes, (int)k + 1, LARGE);
		/* Either may have been kept off a core for as long as the copy took. */
		until = in_ms(TRIES_MS);
		while (!is_quick_beside(&w, k == 0 ? r.q : own))
			assert_true(now_ns() < until);
		OK(hal_buffer_read(w.buf, 0, back, LARGE));
		assert_int_equal(memcmp(bytes, back, LARGE), 0);
	}
	OK(hal_buffer_destroy(w.buf));
	OK(hal_queue_destroy(own));
	OK(hal_partition_destroy(part));
	ref_close(&r);
	free(back);
	free(bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(where_it_lies), cmocka_unit_test(what_it_holds),
		cmocka_unit_test(refused),       cmocka_unit_test(of_its_partition_alone),
		cmocka_unit_test(copied_beside),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
