/* SPDX-License-Identifier: Apache-2.0 */
/* test_move.c - hal_partitions_move: exchanges, all or none, failures, threads; and the
 * shapes of a count of units. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <hal/ref.h>

#include "command/flow.h"
#include "loop/engine.h"
#include "space/partition.h"

#define OK(call)                                                                         \
	do {                                                                             \
		int ok_ = (call);                                                        \
		if (ok_ != 0)                                                            \
			fail_msg("%s is %d: %s", #call, ok_, hal_last_error());          \
	} while (0)

/* Check that the call returns err with a text that contains word. */
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

enum { MANY = 6 };

struct world {
	struct hal_device *dev;
	struct hal_partition *part[MANY];
	struct hal_partition_desc to[MANY];
	struct hal_point done;
};

static void world_open(struct world *w, const char *target, const char *option)
{
	const char *options[] = {option, NULL};

	memset(w, 0, sizeof(*w));
	OK(hal_open(target, option != NULL ? options : NULL, &w->dev));
}

static void world_close(struct world *w)
{
	for (int i = 0; i < MANY; i++)
		OK(hal_partition_destroy(w->part[i]));
	OK(hal_close(w->dev));
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

static struct hal_partition_desc count(uint32_t units, uint32_t shape)
{
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);

	d.units_floor = units;
	d.shape = shape;
	return d;
}

static void make(struct world *w, int i, struct hal_partition_desc d)
{
	OK(hal_partition_create(w->dev, &d, &w->part[i]));
}

static void lies(const struct hal_partition *part, uint32_t row, uint32_t col,
		 uint32_t rows, uint32_t cols)
{
	struct hal_partition_info i = HAL_INIT(hal_partition_info);

	OK(hal_partition_get_info(part, &i));
	if (i.row != row || i.col != col || i.rows != rows || i.cols != cols)
		fail_msg("%u x %u at %u, %u, not %u x %u at %u, %u", i.rows, i.cols,
			 i.row, i.col, rows, cols, row, col);
}

static int move(struct world *w, uint32_t n)
{
	return hal_partitions_move(w->part, w->to, n, &w->done);
}

static int reached(const struct world *w)
{
	return hal_wait(&w->done, 1, 0, HAL_FOREVER);
}

/* ---- exchanges --------------------------------------------------------------------- */

/* Exchange two partitions that have the whole device. */
static void exchange(void **state)
{
	struct world w;

	(void)state;
	world_open(&w, "ref?units=8", NULL);
	make(&w, 0, at(0, 0, 1, 3));
	make(&w, 1, at(0, 3, 1, 5));
	w.to[0] = at(0, 5, 1, 3);
	w.to[1] = at(0, 0, 1, 5);
	OK(move(&w, 2));
	/* A member cannot be resized or destroyed until the point is reached. */
	FAILS(hal_partition_resize(w.part[0], &w.to[0], NULL), -EBUSY, "already");
	FAILS(hal_partition_destroy(w.part[1]), -EBUSY, "being resized");
	OK(reached(&w));
	lies(w.part[0], 0, 5, 1, 3);
	lies(w.part[1], 0, 0, 1, 5);
	world_close(&w);
}

static void rotate(void **state)
{
	struct world w;

	(void)state;
	world_open(&w, "ref?units=36&rows=6", NULL);
	for (uint32_t i = 0; i < 3; i++) {
		make(&w, (int)i, at(0, 2 * i, 6, 2));
		w.to[i] = at(0, 2 * ((i + 1) % 3), 6, 2);
	}
	OK(move(&w, 3));
	OK(reached(&w));
	for (uint32_t i = 0; i < 3; i++)
		lies(w.part[i], 0, 2 * ((i + 1) % 3), 6, 2);
	world_close(&w);
}

/* One gives to another, in one call; counts are placed after named rectangles. */
static void give(void **state)
{
	struct world w;

	(void)state;
	world_open(&w, "ref?units=8", NULL);
	make(&w, 0, at(0, 0, 1, 6));
	make(&w, 1, at(0, 6, 1, 2));
	w.to[0] = count(2, HAL_SHAPE_ANY);
	w.to[0].units_ceiling = 2;
	w.to[1] = at(0, 2, 1, 6);
	OK(move(&w, 2));
	OK(reached(&w));
	lies(w.part[0], 0, 0, 1, 2);
	lies(w.part[1], 0, 2, 1, 6);
	world_close(&w);
}

/* A quota may come from what another member gives. */
static void quotas(void **state)
{
	struct hal_partition_info i = HAL_INIT(hal_partition_info);
	struct world w;

	(void)state;
	world_open(&w, "ref?units=8&memory=1M", NULL);
	for (int k = 0; k < 2; k++) {
		struct hal_partition_desc d = at(0, 4 * (uint32_t)k, 1, 4);

		d.memory_bytes = 524288;
		make(&w, k, d);
		w.to[k] = d;
	}
	w.to[0].memory_bytes = 786432;
	w.to[1].memory_bytes = 786432;
	FAILS(move(&w, 2), -ENOSPC, "descs[0]");
	w.to[1].memory_bytes = 262144;
	OK(move(&w, 2));
	OK(reached(&w));
	OK(hal_partition_get_info(w.part[0], &i));
	assert_int_equal(i.memory_bytes, 786432);
	OK(hal_partition_get_info(w.part[1], &i));
	assert_int_equal(i.memory_bytes, 262144);
	world_close(&w);
}

/* Single units can be exchanged only with a free one. */
static void single_units(void **state)
{
	struct world w;

	(void)state;
	for (uint32_t units = 2; units <= 3; units++) {
		char target[32];

		snprintf(target, sizeof(target), "ref?units=%u", units);
		world_open(&w, target, NULL);
		for (uint32_t i = 0; i < 2; i++) {
			make(&w, (int)i, at(0, i, 1, 1));
			w.to[i] = at(0, 1 - i, 1, 1);
		}
		if (units == 2) {
			FAILS(move(&w, 2), -ENOSPC, "free one unit");
			lies(w.part[0], 0, 0, 1, 1);
			lies(w.part[1], 0, 1, 1, 1);
		} else {
			OK(move(&w, 2));
			OK(reached(&w));
			lies(w.part[0], 0, 1, 1, 1);
			lies(w.part[1], 0, 0, 1, 1);
		}
		world_close(&w);
	}
}

static void wrong(void **state)
{
	struct world w;

	(void)state;
	world_open(&w, "ref?units=8", NULL);
	make(&w, 0, at(0, 0, 1, 2));
	make(&w, 1, at(0, 2, 1, 2));
	make(&w, 2, at(0, 4, 1, 2));
	w.to[0] = at(0, 2, 1, 2);
	w.to[1] = at(0, 3, 1, 2);
	FAILS(move(&w, 2), -EINVAL,
	      "descs[0] and descs[1] name rectangles that overlap at row 0, column 3");
	w.to[1] = at(0, 4, 1, 2);
	FAILS(move(&w, 2), -ENOSPC, "descs[1]: rectangle 1 x 2 at row 0, column 4");
	w.to[1] = count(5, HAL_SHAPE_ANY);
	FAILS(move(&w, 2), -ENOSPC, "descs[1]: cannot place 5 units");
	FAILS(move(&w, 0), -EINVAL, "count 0");
	FAILS(move(&w, 33), -EINVAL, "count 33");
	w.part[3] = w.part[0];
	w.to[2] = w.to[3] = count(1, HAL_SHAPE_ANY);
	w.to[1] = w.to[0] = count(1, HAL_SHAPE_ANY);
	FAILS(move(&w, 4), -EINVAL, "parts[0] and parts[3] are the same");
	w.part[3] = NULL;
	lies(w.part[0], 0, 0, 1, 2);
	lies(w.part[1], 0, 2, 1, 2);
	world_close(&w);
}

/* ---- failures ---------------------------------------------------------------------- */

static const struct hal_ref_extension *ref_of(const struct world *w)
{
	return hal_device_get_extension(w->dev, "ref");
}

static void three(struct world *w, const char *target, const char *option)
{
	world_open(w, target, option);
	for (uint32_t i = 0; i < 3; i++) {
		struct hal_partition_desc d = at(0, 4 * i, 1, 4);

		d.memory_bytes = 65536;
		make(w, (int)i, d);
		w->to[i] = at(0, 4 * ((i + 1) % 3), 1, 4);
		w->to[i].memory_bytes = 4096 * (i + 1);
	}
}

/* Whichever move the device refuses, all are where they were, and can move again. */
static void all_or_none(void **state)
{
	struct hal_partition_info p = HAL_INIT(hal_partition_info);
	struct world w;
	uint64_t n = 1;
	int err;

	(void)state;
	three(&w, "ref?units=12", NULL);
	do {
		OK(ref_of(&w)->inject(hal_device_get_native(w.dev), HAL_REF_OP_RESIZE,
				      n++, EIO));
		OK(move(&w, 3));
		err = reached(&w);
		for (uint32_t i = 0; i < 3; i++) {
			uint32_t moved = err == 0;

			lies(w.part[i], 0, 4 * ((i + moved) % 3), 1, 4);
			OK(hal_partition_get_info(w.part[i], &p));
			assert_int_equal(p.memory_bytes, moved ? 4096 * (i + 1) : 65536);
		}
		if (err != 0) {
			assert_int_equal(err, -EIO);
			assert_non_null(strstr(hal_last_error(), "injected"));
			assert_null(strstr(hal_last_error(), "could not go back"));
		}
	} while (err != 0);
	/* Three members that wait for each other take at least five steps. */
	assert_true(n > 5);
	world_close(&w);
}

/* The device refuses the second move and the way back: the text says who is where. */
static void no_way_back(void **state)
{
	struct world w;

	(void)state;
	three(&w, "ref?units=12", "layers.fault=resize:3:EIO");
	OK(ref_of(&w)->inject(hal_device_get_native(w.dev), HAL_REF_OP_RESIZE, 2, EIO));
	OK(move(&w, 3));
	FAILS(reached(&w), -EIO,
	      "partition 0 could not go back and has 1 x 1 units at row 0, column 0");
	lies(w.part[0], 0, 0, 1, 1);
	lies(w.part[1], 0, 4, 1, 4);
	lies(w.part[2], 0, 8, 1, 4);
	/* Its other units are free again. */
	make(&w, 3, at(0, 1, 1, 3));
	world_close(&w);
}

/* A device that moves only idle partitions. */
static void idle_only(void **state)
{
	struct hal_queue_desc qd = HAL_INIT(hal_queue_desc);
	struct hal_buffer_desc bd = HAL_INIT(hal_buffer_desc);
	struct hal_submit_desc sd = HAL_INIT(hal_submit_desc);
	struct hal_buffer *buf;
	struct hal_queue *q;
	struct hal_point done;
	struct hal_cmd cmd;
	struct world w;

	(void)state;
	three(&w, "ref?units=12&resize=idle", NULL);
	OK(hal_queue_create(w.part[0], &qd, &q));
	bd.bytes = 4096;
	OK(hal_buffer_create(w.part[0], &bd, &buf));
	cmd = hal_cmd_fill(buf, 0, 4096, 7);
	sd.cmds = &cmd;
	sd.cmd_count = 1;
	OK(hal_submit(q, &sd, &done));
	assert_int_equal(hal_wait(&done, 1, 0, 0), -ETIMEDOUT);
	FAILS(move(&w, 3), -EBUSY, "descs[0]: partition 0");
	OK(hal_wait(&done, 1, 0, HAL_FOREVER));
	OK(move(&w, 3));
	/* Work submitted meanwhile runs when all have moved. */
	OK(hal_submit(q, &sd, &done));
	OK(hal_wait(&done, 1, 0, HAL_FOREVER));
	OK(hal_wait(&w.done, 1, 0, 0));
	for (uint32_t i = 0; i < 3; i++)
		lies(w.part[i], 0, 4 * ((i + 1) % 3), 1, 4);
	OK(hal_queue_destroy(q));
	OK(hal_buffer_destroy(buf));
	world_close(&w);
}

/* Units that a member has left stay reserved until the end, so that it can go back. */
static void reserved(void **state)
{
	const struct hal_partition_desc there = at(0, 2, 1, 2);
	struct hal_partition *p;
	struct world w;

	(void)state;
	three(&w, "ref?units=16", NULL);
	w.to[0] = at(0, 12, 1, 4);
	w.to[1] = at(0, 8, 1, 4);
	w.to[2] = at(0, 0, 1, 2);
	OK(move(&w, 3));
	/* The first has moved, the third moves, the second waits. */
	engine_enter(w.dev);
	assert_true(engine_turn(w.dev, w.dev->now, false));
	engine_leave(w.dev);
	lies(w.part[0], 0, 12, 1, 4);
	lies(w.part[2], 0, 8, 1, 4);
	FAILS(hal_partition_create(w.dev, &there, &p), -ENOSPC,
	      "hal_partitions_move has reserved");
	OK(reached(&w));
	make(&w, 3, there);
	lies(w.part[1], 0, 8, 1, 4);
	world_close(&w);
}

/* ---- beside the policy ------------------------------------------------------------- */

/* The policy's request for a resize of part[2]. */
static int ask_units(struct hal_device *dev, void *arg)
{
	struct world *w = arg;

	return dev->space.moves->units(w->part[2], 2);
}

/* The policy's request for a plan of part[0] and part[1]. */
static int ask_plan(struct hal_device *dev, void *arg)
{
	struct world *w = arg;
	const struct hal_policy_move moves[] = {{&w->part[1]->sched.policy_view, 2, 0},
						{&w->part[0]->sched.policy_view, 6, 0}};

	return dev->space.moves->plan(dev, moves, 2);
}

/* The call waits for moves of the policy, and the policy's requests are refused until the
 * point is reached. */
static void beside_policy(void **state)
{
	struct world w;

	(void)state;
	three(&w, "ref?units=12", NULL);
	OK(engine_call(w.dev, ask_units, &w));
	OK(move(&w, 3));
	FAILS(engine_call(w.dev, ask_units, &w), -EBUSY, "being resized already");
	FAILS(engine_call(w.dev, ask_plan, &w), -EBUSY, "being moved already");
	OK(reached(&w));
	OK(engine_call(w.dev, ask_plan, &w));
	for (uint32_t i = 0; i < 3; i++)
		w.to[i] = at(0, 4 * i, 1, 4);
	OK(move(&w, 3));
	OK(reached(&w));
	for (uint32_t i = 0; i < 3; i++)
		lies(w.part[i], 0, 4 * i, 1, 4);
	world_close(&w);
}

/* ---- shapes ------------------------------------------------------------------------ */

static void shapes(void **state)
{
	struct hal_partition_desc d;
	struct world w;

	(void)state;
	world_open(&w, "ref?units=36&rows=6", NULL);
	make(&w, 0, count(12, HAL_SHAPE_ANY));
	lies(w.part[0], 0, 0, 3, 4);
	d = count(12, HAL_SHAPE_COLUMNS);
	OK(hal_partition_resize(w.part[0], &d, &w.done));
	OK(reached(&w));
	lies(w.part[0], 0, 0, 6, 2);
	d = count(12, HAL_SHAPE_ROWS);
	OK(hal_partition_resize(w.part[0], &d, &w.done));
	OK(reached(&w));
	lies(w.part[0], 0, 0, 2, 6);
	d = count(16, HAL_SHAPE_SQUARE);
	OK(hal_partition_resize(w.part[0], &d, &w.done));
	OK(reached(&w));
	lies(w.part[0], 0, 0, 4, 4);
	make(&w, 1, count(4, HAL_SHAPE_COLUMNS));
	lies(w.part[1], 0, 4, 4, 1);
	make(&w, 2, count(5, HAL_SHAPE_ROWS));
	lies(w.part[2], 4, 0, 1, 5);
	d = count(12, HAL_SHAPE_COLUMNS);
	FAILS(hal_partition_create(w.dev, &d, &w.part[3]), -ENOSPC,
	      "no rectangle of 6 x 2 units");
	d = count(7, HAL_SHAPE_COLUMNS);
	FAILS(hal_partition_create(w.dev, &d, &w.part[3]), -EINVAL, "columns of 6");
	d = count(8, HAL_SHAPE_ROWS);
	FAILS(hal_partition_create(w.dev, &d, &w.part[3]), -EINVAL, "rows of 6");
	d = count(8, HAL_SHAPE_SQUARE);
	FAILS(hal_partition_create(w.dev, &d, &w.part[3]), -EINVAL, "no square; 4 do");
	d.shape = 4;
	FAILS(hal_partition_create(w.dev, &d, &w.part[3]), -EINVAL, "shape 4");
	d = at(0, 5, 1, 1);
	d.shape = HAL_SHAPE_ROWS;
	FAILS(hal_partition_create(w.dev, &d, &w.part[3]), -EINVAL, "leave shape 0");
	w.part[3] = NULL;
	world_close(&w);
}

/* Partitions make room for a shape. */
static void shape_with_room(void **state)
{
	struct world w;

	(void)state;
	world_open(&w, "ref?units=16&rows=4", "hal.compact=4");
	make(&w, 0, count(4, HAL_SHAPE_SQUARE));
	make(&w, 1, count(4, HAL_SHAPE_SQUARE));
	lies(w.part[0], 0, 0, 2, 2);
	lies(w.part[1], 0, 2, 2, 2);
	make(&w, 2, count(8, HAL_SHAPE_COLUMNS));
	lies(w.part[2], 0, 0, 4, 2);
	world_close(&w);
}

static void shape_of_line(void **state)
{
	struct hal_partition_desc d = count(4, HAL_SHAPE_SQUARE);
	struct world w;

	(void)state;
	world_open(&w, "ref?units=8", NULL);
	make(&w, 0, count(3, HAL_SHAPE_COLUMNS));
	lies(w.part[0], 0, 0, 1, 3);
	make(&w, 1, count(3, HAL_SHAPE_ROWS));
	lies(w.part[1], 0, 3, 1, 3);
	FAILS(hal_partition_create(w.dev, &d, &w.part[2]), -ENOTSUP, "form a line");
	w.part[2] = NULL;
	world_close(&w);
}

/* ---- in real time ------------------------------------------------------------------ */

enum { THREADS = 4, ROUNDS = 100, OWN = 3 };

struct mover {
	pthread_t thread;
	struct hal_device *dev;
	uint32_t seed, moved;
	int err; /* an error that is not expected */
};

static uint32_t next_of(struct mover *m)
{
	m->seed = m->seed * 1103515245u + 12345u;
	return m->seed >> 16;
}

/* Move partitions of this thread together, or one of them alone. */
static void *move_many(void *arg)
{
	struct mover *m = arg;
	struct hal_partition *own[OWN];
	struct hal_partition_desc d[OWN];
	struct hal_point done;
	int err = 0;

	for (int i = 0; i < OWN; i++) {
		d[i] = count(1, HAL_SHAPE_ANY);
		err |= hal_partition_create(m->dev, &d[i], &own[i]);
	}
	for (int i = 0; i < ROUNDS && err == 0; i++) {
		const uint32_t n = 1 + next_of(m) % OWN;

		for (uint32_t k = 0; k < n; k++) {
			d[k] = count(1 + next_of(m) % 3, HAL_SHAPE_ANY);
			d[k].units_ceiling = d[k].units_floor;
		}
		err = n == 1 ? hal_partition_resize(own[0], &d[0], &done)
			     : hal_partitions_move(own, d, n, &done);
		if (err == 0)
			err = hal_wait(&done, 1, 0, HAL_FOREVER);
		m->moved += err == 0;
		err = err == -ENOSPC || err == -EBUSY ? 0 : err;
	}
	m->err = err;
	for (int i = 0; i < OWN; i++)
		m->err |= hal_partition_destroy(own[i]);
	return NULL;
}

/* Two threads per device, two devices, beside a policy that moves and hal.compact. */
static void threads(void **state)
{
	static const char *const options[] = {"hal.compact=4", "policy.name=tidal", NULL};
	struct mover m[THREADS] = {0};
	struct hal_device *dev[2];

	(void)state;
	for (int i = 0; i < 2; i++)
		OK(hal_open("ref:0?units=16&clock=real", options, &dev[i]));
	for (uint32_t i = 0; i < THREADS; i++) {
		m[i].dev = dev[i % 2];
		m[i].seed = i + 1;
		assert_int_equal(pthread_create(&m[i].thread, NULL, move_many, &m[i]), 0);
	}
	for (uint32_t i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(m[i].thread, NULL), 0);
		assert_int_equal(m[i].err, 0);
		assert_true(m[i].moved > ROUNDS / 4);
	}
	for (int i = 0; i < 2; i++) {
		struct hal_partition_desc all = count(16, HAL_SHAPE_ANY);
		struct hal_partition *p;

		OK(hal_partition_create(dev[i], &all, &p));
		OK(hal_partition_destroy(p));
		OK(hal_close(dev[i]));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exchange),
		cmocka_unit_test(rotate),
		cmocka_unit_test(give),
		cmocka_unit_test(quotas),
		cmocka_unit_test(single_units),
		cmocka_unit_test(wrong),
		cmocka_unit_test(all_or_none),
		cmocka_unit_test(no_way_back),
		cmocka_unit_test(idle_only),
		cmocka_unit_test(reserved),
		cmocka_unit_test(beside_policy),
		cmocka_unit_test(shapes),
		cmocka_unit_test(shape_with_room),
		cmocka_unit_test(shape_of_line),
		cmocka_unit_test(threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
