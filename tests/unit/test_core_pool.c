/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of destroyed handles is used again, whatever sizes the handles of a kind have.
 */
#include "mock_world.h"

#include <stdbool.h>

#include "util/pool.h"

/* An object rests until so many others of its kind and size have been destroyed. */
enum { REST = 64, ROUNDS = 20000, SEEN_MAX = 4 * REST };

/* Addresses of objects; each once. */
struct seen {
	const void *at[SEEN_MAX];
	uint32_t count;
};

static void see(struct seen *s, const void *object)
{
	for (uint32_t i = 0; i < s->count; i++)
		if (s->at[i] == object)
			return;
	assert_true(s->count < SEEN_MAX); /* else it grows without end */
	s->at[s->count++] = object;
}

static void one_life(struct seen *s, enum object_kind kind, size_t size)
{
	struct object *o = object_alloc(kind, size);

	assert_non_null(o);
	assert_int_equal(o->magic, OBJECT_MAGIC(kind));
	assert_int_equal(((const unsigned char *)o)[size - 1], 0);
	memset(o + 1, 0xa5, size - sizeof(*o));
	see(s, o);
	object_free(kind, o);
	assert_int_equal(object_bad(o, kind), -EINVAL);
}

/* By turns, in blocks, and at random. */
static void two_sizes(void **state)
{
	static const enum object_kind kinds[] = {OBJECT_QUEUE, OBJECT_PROGRAM};
	uint32_t random = 1;

	(void)state;
	for (size_t k = 0; k < 2; k++) {
		struct seen s = {.count = 0};

		for (uint32_t i = 0; i < ROUNDS; i++) {
			random = random * 1664525 + 1013904223;
			one_life(&s, kinds[k], i % 2 != 0 ? 200 : 5000);
			one_life(&s, kinds[k], i / 100 % 2 != 0 ? 200 : 5000);
			one_life(&s, kinds[k], random >> 31 != 0 ? 200 : 5000);
		}
		assert_int_equal(s.count, 2 * (REST + 1));
	}
}

/* A handle is refused until 64 others of its size have been destroyed. */
static void rests(void **state)
{
	struct object *first = object_alloc(OBJECT_BUFFER, 64);

	(void)state;
	object_free(OBJECT_BUFFER, first);
	for (uint32_t i = 0; i < REST; i++) {
		struct object *o = object_alloc(OBJECT_BUFFER, 64);

		assert_ptr_not_equal(o, first);
		object_free(OBJECT_BUFFER, o);
		o = object_alloc(OBJECT_BUFFER, 128);
		assert_ptr_not_equal(o, first);
		object_free(OBJECT_BUFFER, o);
	}
	assert_int_equal(object_bad(first, OBJECT_BUFFER), -EINVAL);
	assert_ptr_equal(object_alloc(OBJECT_BUFFER, 64), first);
	object_free(OBJECT_BUFFER, first);
}

/* As an application sees it: two devices whose queues and programs differ in size. */
static void two_devices(void **state)
{
	static const char *const targets[] = {"ref?units=16&clock=virtual",
					      "ref?units=1024&clock=virtual"};
	static const char *const options[][2] = {{"hal.inflight=2", NULL},
						 {"hal.inflight=64", NULL}};
	struct seen s = {.count = 0};
	struct world w[2];

	(void)state;
	for (uint32_t i = 0; i < 2; i++) {
		memset(&w[i], 0, sizeof(w[i]));
		OK(hal_open(targets[i], options[i], &w[i].dev));
		w[i].part = add_partition(&w[i], 2);
	}
	for (uint32_t i = 0; i < 4 * SEEN_MAX; i++) {
		struct hal_queue *q = add_queue(w[i % 2].part, 0);

		see(&s, q);
		OK(hal_queue_destroy(q));
	}
	for (uint32_t i = 0; i < 2; i++) {
		OK(hal_partition_destroy(w[i].part));
		OK(hal_close(w[i].dev));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_sizes),
		cmocka_unit_test(rests),
		cmocka_unit_test(two_devices),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
