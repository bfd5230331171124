/* SPDX-License-Identifier: Apache-2.0 */
/* test_room.c - others make room for a partition: who moves, who does not, and how it is
 * told when that does not help. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <hal/ref.h>

#include "loop/engine.h"
#include "space/compact.h"

#define OK(call)                                                                         \
	do {                                                                             \
		int ok_ = (call);                                                        \
		if (ok_ != 0)                                                            \
			fail_msg("%s is %d: %s", #call, ok_, hal_last_error());          \
	} while (0)

/* The call answers err, and its text has word in it. */
#define FAILS(call, err, word)                                                           \
	do {                                                                             \
		int is_ = (call);                                                        \
		if (is_ != (err))                                                        \
			fail_msg("%s is %d, not %s: %s", #call, is_, #err,               \
				 hal_last_error());                                      \
		if (strstr(hal_last_error(), (word)) == NULL)                            \
			fail_msg("%s: the text does not name '%s': '%s'", #call, (word), \
				 hal_last_error());                                      \
	} while (0)

enum { MANY = 8 };

struct world {
	struct hal_device *dev;
	struct hal_partition *part[MANY];
};

static void world_open(struct world *w, const char *target, uint32_t most)
{
	char compact[32];
	const char *options[] = {compact, NULL};

	memset(w, 0, sizeof(*w));
	snprintf(compact, sizeof(compact), "hal.compact=%u", most);
	OK(hal_open(target, options, &w->dev));
}

static void world_close(struct world *w)
{
	for (int i = 0; i < MANY; i++)
		OK(hal_partition_destroy(w->part[i]));
	OK(hal_close(w->dev));
}

static int count_of(struct world *w, uint32_t units, struct hal_partition **out)
{
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);

	d.units_floor = units;
	return hal_partition_create(w->dev, &d, out);
}

static struct hal_partition_desc at(uint32_t row, uint32_t col, uint32_t rows,
				    uint32_t cols)
{
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);

	d.row = (uint16_t)row;
	d.col = (uint16_t)col;
	d.rows = (uint16_t)rows;
	d.cols = (uint16_t)cols;
	return d;
}

static void lies(const struct hal_partition *part, uint32_t row, uint32_t col,
		 uint32_t rows, uint32_t cols)
{
	struct hal_partition_info i = HAL_INIT(hal_partition_info);

	OK(hal_partition_get_info(part, &i));
	if (i.row != row || i.col != col || i.rows != rows || i.cols != cols)
		fail_msg("%u x %u at %u, %u", i.rows, i.cols, i.row, i.col);
}

static void gone(struct world *w, int i)
{
	OK(hal_partition_destroy(w->part[i]));
	w->part[i] = NULL;
}

/* Partitions of two units in a line of 8 or more, of which those with a number in kept
 * stay. */
static void pairs(struct world *w, int count, const char *kept)
{
	for (int i = 0; i < count; i++)
		OK(count_of(w, 2, &w->part[i]));
	for (int i = 0; i < count; i++)
		if (strchr(kept, '0' + i) == NULL)
			gone(w, i);
}

/* ---- who moves --------------------------------------------------------------------- */

static void off_by_default(void **state)
{
	struct world w;

	(void)state;
	memset(&w, 0, sizeof(w));
	OK(hal_open("ref?units=8", NULL, &w.dev));
	pairs(&w, 4, "13");
	FAILS(count_of(&w, 4, &w.part[0]), -ENOSPC, "at most 2 of them adjacent");
	assert_null(strstr(hal_last_error(), "compact"));
	lies(w.part[1], 0, 2, 1, 2);
	world_close(&w);
}

static void new_one(void **state)
{
	struct world w;

	(void)state;
	world_open(&w, "ref?units=8", 1);
	pairs(&w, 4, "13");
	OK(count_of(&w, 4, &w.part[0]));
	/* That there was no room before is no error of it. */
	assert_string_equal(hal_last_error(), "");
	lies(w.part[0], 0, 0, 1, 4);
	lies(w.part[1], 0, 4, 1, 2);
	lies(w.part[3], 0, 6, 1, 2);
	world_close(&w);
}

/* The one in the way goes somewhere else, and the one that is asked for has its units
 * all the time. */
static void growth(void **state)
{
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	struct hal_point done;
	struct world w;

	(void)state;
	world_open(&w, "ref?units=8", 1);
	pairs(&w, 4, "01");
	d.units_floor = 6;
	OK(hal_partition_resize(w.part[0], &d, &done));
	OK(hal_wait(&done, 1, 0, HAL_FOREVER));
	lies(w.part[0], 0, 0, 1, 6);
	lies(w.part[1], 0, 6, 1, 2);
	world_close(&w);
}

/* A place that is asked for is cleared, too. */
static void named_place(void **state)
{
	struct hal_partition_desc d = at(1, 1, 2, 2);
	struct world w;

	(void)state;
	world_open(&w, "ref?units=16&rows=4", 1);
	OK(count_of(&w, 4, &w.part[0]));
	OK(hal_partition_create(w.dev, &d, &w.part[1]));
	lies(w.part[1], 1, 1, 2, 2);
	/* No square is left. */
	lies(w.part[0], 0, 0, 1, 4);
	world_close(&w);
}

/* In its own shape if that can be. */
static void own_shape(void **state)
{
	struct hal_partition_desc d = at(0, 0, 2, 1), wanted = at(0, 0, 2, 2);
	struct world w;

	(void)state;
	world_open(&w, "ref?units=16&rows=4", 1);
	OK(hal_partition_create(w.dev, &d, &w.part[0]));
	/* As it is, but anywhere. */
	d = (struct hal_partition_desc)HAL_INIT(hal_partition_desc);
	d.units_floor = 2;
	OK(hal_partition_resize(w.part[0], &d, NULL));
	assert_true(hal_device_poll(w.dev, 10) >= 0);
	lies(w.part[0], 0, 0, 1, 2);
	OK(hal_partition_create(w.dev, &wanted, &w.part[1]));
	lies(w.part[0], 0, 2, 1, 2);
	world_close(&w);
}

/* The fewest units that do it. */
static void cheapest(void **state)
{
	struct hal_partition_desc d = at(0, 4, 1, 4);
	struct world w;

	(void)state;
	/* Four, four that stay, a gap, one, two gaps. */
	world_open(&w, "ref?units=12", 1);
	OK(count_of(&w, 4, &w.part[0]));
	OK(hal_partition_create(w.dev, &d, &w.part[1]));
	OK(count_of(&w, 1, &w.part[2]));
	OK(count_of(&w, 1, &w.part[3]));
	lies(w.part[3], 0, 9, 1, 1);
	gone(&w, 2);
	OK(count_of(&w, 3, &w.part[4]));
	lies(w.part[0], 0, 0, 1, 4);
	lies(w.part[1], 0, 4, 1, 4);
	lies(w.part[3], 0, 11, 1, 1);
	lies(w.part[4], 0, 8, 1, 3);
	world_close(&w);
}

/* ---- who does not ------------------------------------------------------------------ */

static void pinned_stay(void **state)
{
	struct hal_partition_desc d = at(0, 2, 1, 2), back = HAL_INIT(hal_partition_desc);
	struct hal_point done;
	struct world w;

	(void)state;
	world_open(&w, "ref?units=6", 4);
	OK(hal_partition_create(w.dev, &d, &w.part[0]));
	FAILS(count_of(&w, 4, &w.part[1]), -ENOSPC, "hal.compact = 4: moving up to 4");
	lies(w.part[0], 0, 2, 1, 2);
	/* Who is moved by hand stays there, ... */
	back.units_floor = 2;
	OK(hal_partition_resize(w.part[0], &back, &done));
	OK(hal_wait(&done, 1, 0, HAL_FOREVER));
	OK(hal_partition_resize(w.part[0], &d, &done));
	OK(hal_wait(&done, 1, 0, HAL_FOREVER));
	FAILS(count_of(&w, 4, &w.part[1]), -ENOSPC, "does not make room for 4 units");
	/* ... until it says that it may be anywhere. */
	OK(hal_partition_resize(w.part[0], &back, &done));
	OK(hal_wait(&done, 1, 0, HAL_FOREVER));
	OK(count_of(&w, 4, &w.part[1]));
	world_close(&w);
}

/* . 2 . 2 . : both move a unit on. */
static void no_more_than(void **state)
{
	struct hal_partition_desc first = at(0, 1, 1, 2), second = at(0, 4, 1, 2);

	(void)state;
	for (uint32_t most = 1; most <= 2; most++) {
		struct world w;

		world_open(&w, "ref?units=7", most);
		OK(hal_partition_create(w.dev, &first, &w.part[0]));
		OK(hal_partition_create(w.dev, &second, &w.part[1]));
		/* As if they had been placed so. */
		w.part[0]->pinned = false;
		w.part[1]->pinned = false;
		if (most == 1) {
			FAILS(count_of(&w, 3, &w.part[2]), -ENOSPC, "up to 1 partition");
			lies(w.part[0], 0, 1, 1, 2);
			lies(w.part[1], 0, 4, 1, 2);
		} else {
			OK(count_of(&w, 3, &w.part[2]));
		}
		world_close(&w);
	}
}

static void cannot_be(void **state)
{
	struct world w;

	(void)state;
	world_open(&w, "ref?units=8&resize=none", 4);
	pairs(&w, 4, "13");
	FAILS(count_of(&w, 4, &w.part[0]), -ENOSPC, "cannot be moved");
	world_close(&w);
	world_open(&w, "ref?units=8", 4);
	pairs(&w, 4, "13");
	FAILS(count_of(&w, 5, &w.part[0]), -ENOSPC, "only 4 units are free in total");
	lies(w.part[1], 0, 2, 1, 2);
	world_close(&w);
}

/* The device refuses to move one: nothing has happened, and the room is free. */
static void refused(void **state)
{
	const struct hal_ref_extension *ref;
	struct world w;

	(void)state;
	world_open(&w, "ref?units=8", 1);
	pairs(&w, 4, "13");
	ref = hal_device_get_extension(w.dev, "ref");
	OK(ref->inject(hal_device_get_native(w.dev), HAL_REF_OP_RESIZE, 1, EIO));
	FAILS(count_of(&w, 4, &w.part[0]), -ENOSPC, "injected");
	lies(w.part[1], 0, 2, 1, 2);
	OK(count_of(&w, 2, &w.part[0]));
	OK(count_of(&w, 2, &w.part[2]));
	world_close(&w);
}

static void bad_option(void **state)
{
	static const char *const options[] = {"hal.compact=33", NULL};
	struct hal_device *dev;

	(void)state;
	FAILS(hal_open("ref", options, &dev), -EINVAL, "compact");
}

/* ---- who gets it ------------------------------------------------------------------- */

static int begin(struct hal_device *dev, void *arg)
{
	return compact_begin(dev, NULL, arg, 4);
}

static int over(struct hal_device *dev, void *arg)
{
	(void)arg;
	compact_over(dev);
	return 0;
}

/* Between those that move and the one that comes nobody else gets in. */
static void room_is_held(void **state)
{
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	struct hal_partition_desc there = at(0, 0, 1, 1);
	struct world w;

	(void)state;
	world_open(&w, "ref?units=8", 0);
	pairs(&w, 4, "13");
	d.units_floor = 4;
	OK(engine_call(w.dev, begin, &d));
	FAILS(count_of(&w, 1, &w.part[0]), -ENOSPC, "cannot place 1 units: 0 of 8");
	FAILS(engine_call(w.dev, begin, &d), -EBUSY, "being moved already");
	assert_true(hal_device_poll(w.dev, 10) >= 0);
	lies(w.part[1], 0, 4, 1, 2);
	FAILS(count_of(&w, 1, &w.part[0]), -ENOSPC, "cannot place 1 units: 0 of 8");
	FAILS(hal_partition_create(w.dev, &there, &w.part[0]), -ENOSPC,
	      "space reserved for another partition (1 x 4 at row 0, column 0)");
	OK(engine_call(w.dev, over, NULL));
	OK(count_of(&w, 4, &w.part[0]));
	lies(w.part[0], 0, 0, 1, 4);
	world_close(&w);
}

/* ---- in real time --------------------------------------------------------------------- */

enum { THREADS = 4, ROUNDS = 150, OWN = 3 };

struct maker {
	pthread_t thread;
	struct hal_device *dev;
	uint32_t seed;
	uint32_t made, refused;
	int err; /* that is neither 0 nor one that is expected */
};

static uint32_t next_of(struct maker *m)
{
	m->seed = m->seed * 1103515245u + 12345u;
	return m->seed >> 16;
}

/* Makes, resizes and destroys partitions of its own. */
static void *make_many(void *arg)
{
	struct maker *m = arg;
	struct hal_partition *own[OWN] = {NULL};

	for (int i = 0; i < ROUNDS && m->err == 0; i++) {
		struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
		struct hal_partition **p = &own[next_of(m) % OWN];
		struct hal_point moved;
		int err;

		d.units_floor = 1 + next_of(m) % 6;
		if (*p != NULL && next_of(m) % 2 == 0) {
			err = hal_partition_destroy(*p);
			*p = NULL;
		} else if (*p == NULL) {
			err = hal_partition_create(m->dev, &d, p);
			m->made += err == 0;
		} else {
			err = hal_partition_resize(*p, &d, &moved);
			if (err == 0)
				err = hal_wait(&moved, 1, 0, HAL_FOREVER);
		}
		m->refused += err == -ENOSPC;
		if (err != 0 && err != -ENOSPC && err != -EBUSY)
			m->err = err;
	}
	for (int i = 0; i < OWN; i++)
		if (own[i] != NULL && hal_partition_destroy(own[i]) != 0)
			m->err = -EIO;
	return NULL;
}

/* Two threads a device, two devices, engines that sleep in between: all come to an end,
 * and then the device is whole. */
static void threads(void **state)
{
	struct maker m[THREADS] = {0};
	struct world w[2];
	uint32_t made = 0, refused = 0;

	(void)state;
	world_open(&w[0], "ref:0?units=16&clock=real", 4);
	world_open(&w[1], "ref:0?units=16&clock=real", 4);
	for (uint32_t i = 0; i < THREADS; i++) {
		m[i].dev = w[i % 2].dev;
		m[i].seed = i + 1;
		assert_int_equal(pthread_create(&m[i].thread, NULL, make_many, &m[i]), 0);
	}
	for (uint32_t i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(m[i].thread, NULL), 0);
		assert_int_equal(m[i].err, 0);
		made += m[i].made;
		refused += m[i].refused;
	}
	assert_true(made > THREADS * ROUNDS / 10);
	assert_true(refused > 0);
	for (int i = 0; i < 2; i++) {
		OK(count_of(&w[i], 16, &w[i].part[0]));
		gone(&w[i], 0);
		OK(hal_close(w[i].dev));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(off_by_default), cmocka_unit_test(new_one),
		cmocka_unit_test(growth),         cmocka_unit_test(named_place),
		cmocka_unit_test(own_shape),      cmocka_unit_test(cheapest),
		cmocka_unit_test(pinned_stay),    cmocka_unit_test(no_more_than),
		cmocka_unit_test(cannot_be),      cmocka_unit_test(refused),
		cmocka_unit_test(bad_option),     cmocka_unit_test(room_is_held),
		cmocka_unit_test(threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
