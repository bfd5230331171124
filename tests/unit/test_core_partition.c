/* SPDX-License-Identifier: Apache-2.0 */
/* Who owns which units, bytes and colours; resizing; handles that are gone. */
#include "mock_world.h"

static int rect(struct hal_device *dev, unsigned int row, unsigned int col,
		unsigned int rows, unsigned int cols, const char *name,
		struct hal_partition **p)
{
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);

	d.row = (uint16_t)row;
	d.col = (uint16_t)col;
	d.rows = (uint16_t)rows;
	d.cols = (uint16_t)cols;
	snprintf(d.name, sizeof(d.name), "%s", name);
	return hal_partition_create(dev, &d, p);
}

static int units(struct hal_device *dev, uint32_t n, struct hal_partition **p)
{
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);

	d.units_floor = n;
	return hal_partition_create(dev, &d, p);
}

static void pinwheel(void **state)
{
	struct hal_partition *p[5], *q;
	struct world w;

	(void)state;
	world_open(&w, "mock?units=256&rows=16");
	OK(rect(w.dev, 0, 0, 5, 11, "north", &p[0]));
	OK(rect(w.dev, 0, 11, 11, 5, "east", &p[1]));
	OK(rect(w.dev, 11, 5, 5, 11, "south", &p[2]));
	OK(rect(w.dev, 5, 0, 11, 5, "west", &p[3]));
	FAILS(rect(w.dev, 5, 5, 6, 7, "x", &q), -ENOSPC, "east", "36 units are free");
	FAILS(units(w.dev, 37, &q), -ENOSPC, "37", "36 of 256", "6 x 6");
	FAILS(units(w.dev, 35, &q), -ENOSPC, "35"); /* 5 x 7 does not fit into 6 x 6 */
	OK(units(w.dev, 36, &p[4]));                /* the hub */
	FAILS(units(w.dev, 1, &q), -ENOSPC, "0 of 256");
	for (int i = 0; i < 5; i++)
		OK(hal_partition_destroy(p[i]));
	FAILS(rect(w.dev, 0, 0, 17, 1, "", &q), -EINVAL, "17", "16 x 16");
	FAILS(rect(w.dev, 15, 15, 1, 2, "", &q), -EINVAL, "15");
	FAILS(rect(w.dev, 65535, 65535, 65535, 65535, "", &q), -EINVAL, "65535");
	FAILS(rect(w.dev, 0, 0, 0, 4, "", &q), -EINVAL, "0 x 4");
	FAILS(units(w.dev, 0, &q), -EINVAL, "no units");
	FAILS(units(w.dev, 257, &q), -ENOSPC, "257");
	FAILS(units(w.dev, 17, &q), -ENOSPC, "17"); /* 1 x 17 is too wide */
	OK(hal_close(w.dev));
}

static void squarest_first(void **state)
{
	struct hal_partition_info i = HAL_INIT(hal_partition_info);
	static const unsigned int want[][5] = {
		/* units, row, col, rows, cols */
		{12, 0, 0, 3, 4}, {12, 0, 4, 3, 4}, {6, 3, 0, 2, 3},
		{8, 3, 3, 2, 4},  {7, 0, 8, 7, 1},
	};
	struct hal_partition *p[5];
	struct world w;

	(void)state;
	world_open(&w, "mock?units=80&rows=8");
	for (int n = 0; n < 5; n++) {
		OK(units(w.dev, want[n][0], &p[n]));
		OK(hal_partition_get_info(p[n], &i));
		if (n < 4) {
			assert_int_equal(i.row, want[n][1]);
			assert_int_equal(i.col, want[n][2]);
			assert_int_equal(i.rows, want[n][3]);
			assert_int_equal(i.cols, want[n][4]);
		}
		assert_int_equal(i.units, want[n][0]);
		assert_int_equal(i.index, n);
	}
	/* Indices are taken again, the lowest first. */
	OK(hal_partition_destroy(p[1]));
	OK(units(w.dev, 1, &p[1]));
	OK(hal_partition_get_info(p[1], &i));
	assert_int_equal(i.index, 1);
	for (int n = 0; n < 5; n++)
		OK(hal_partition_destroy(p[n]));
	OK(hal_close(w.dev));
}

/* Random maps against a plain array of owners. */
static void random_maps(void **state)
{
	enum { ROWS = 8, COLS = 8, MOST = 40 };
	struct hal_partition *p[MOST] = {NULL};
	struct hal_partition_info i = HAL_INIT(hal_partition_info);
	int owner[ROWS][COLS];
	struct world w;
	unsigned int seed = 12345;

	(void)state;
	memset(owner, -1, sizeof(owner));
	world_open(&w, "mock?units=64&rows=8");
	for (int step = 0; step < 4000; step++) {
		int slot = (int)(rand_r(&seed) % MOST), free_area = 1, err;
		unsigned int row, col, rows, cols;

		if (p[slot] != NULL) {
			OK(hal_partition_destroy(p[slot]));
			p[slot] = NULL;
			for (int r = 0; r < ROWS; r++)
				for (int c = 0; c < COLS; c++)
					if (owner[r][c] == slot)
						owner[r][c] = -1;
			continue;
		}
		row = (unsigned int)rand_r(&seed) % ROWS;
		col = (unsigned int)rand_r(&seed) % COLS;
		rows = 1 + (unsigned int)rand_r(&seed) % (ROWS - row);
		cols = 1 + (unsigned int)rand_r(&seed) % (COLS - col);
		if (step % 3 == 0) {
			/* By count: exactly that area, and nobody else's. */
			if (units(w.dev, rows * cols, &p[slot]) != 0) {
				p[slot] = NULL;
				continue;
			}
			OK(hal_partition_get_info(p[slot], &i));
			assert_int_equal(i.rows * i.cols, rows * cols);
			row = i.row;
			col = i.col;
			rows = i.rows;
			cols = i.cols;
			err = 0;
		} else {
			err = rect(w.dev, row, col, rows, cols, "", &p[slot]);
		}
		for (unsigned int r = row; r < row + rows; r++)
			for (unsigned int c = col; c < col + cols; c++)
				free_area &= owner[r][c] == -1;
		if (err != 0) {
			assert_int_equal(err, -ENOSPC);
			assert_false(free_area);
			p[slot] = NULL;
			continue;
		}
		assert_true(free_area);
		for (unsigned int r = row; r < row + rows; r++)
			for (unsigned int c = col; c < col + cols; c++)
				owner[r][c] = slot;
	}
	for (int n = 0; n < MOST; n++)
		OK(hal_partition_destroy(p[n]));
	OK(hal_close(w.dev));
}

static void memory(void **state)
{
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	struct hal_buffer_desc bd = HAL_INIT(hal_buffer_desc);
	struct hal_device_info di = HAL_INIT(hal_device_info);
	struct hal_partition *a, *b, *c;
	struct hal_buffer *x, *y;
	struct world w;

	(void)state;
	world_open(&w, "mock?memory=1000");
	d.units_floor = 1;
	d.memory_bytes = 600;
	OK(hal_partition_create(w.dev, &d, &a));
	d.memory_bytes = 401;
	FAILS(hal_partition_create(w.dev, &d, &b), -ENOSPC, "401", "400 of 1000");
	d.memory_bytes = 0;
	OK(hal_partition_create(w.dev, &d, &b));
	bd.bytes = 601;
	FAILS(hal_buffer_create(a, &bd, &x), -ENOSPC, "601", "600", "quota");
	bd.bytes = 401;
	FAILS(hal_buffer_create(b, &bd, &x), -ENOSPC, "401", "400");
	bd.bytes = 300;
	OK(hal_buffer_create(b, &bd, &x));
	OK(hal_device_get_info(w.dev, &di));
	assert_int_equal(di.memory_free, 100);
	d.memory_bytes = 101;
	FAILS(hal_partition_create(w.dev, &d, &c), -ENOSPC, "101", "100");
	bd.bytes = 600;
	OK(hal_buffer_create(a, &bd, &y));
	bd.bytes = 1;
	FAILS(hal_buffer_create(a, &bd, &y), -ENOSPC, "0 are left");
	FAILS(hal_partition_destroy(a), -EBUSY, "1 buffer");
	bd.bytes = 0;
	FAILS(hal_buffer_create(a, &bd, &x), -EINVAL, "bytes is 0");
	OK(hal_buffer_destroy(x));
	OK(hal_buffer_destroy(y));
	OK(hal_partition_destroy(a));
	OK(hal_partition_destroy(b));
	OK(hal_close(w.dev));
}

static void colors(void **state)
{
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	struct hal_partition_info i = HAL_INIT(hal_partition_info);
	struct hal_buffer_desc bd = HAL_INIT(hal_buffer_desc);
	struct hal_partition *a, *b, *c;
	struct hal_buffer *x;
	struct world w;

	(void)state;
	world_open(&w, "mock?colors=4");
	d.units_floor = 1;
	d.color_mask = 0x10;
	FAILS(hal_partition_create(w.dev, &d, &a), -EINVAL, "0x10", "0xf");
	d.color_mask = 0x3;
	snprintf(d.name, sizeof(d.name), "left");
	OK(hal_partition_create(w.dev, &d, &a));
	d.color_mask = 0x6;
	FAILS(hal_partition_create(w.dev, &d, &b), -ENOSPC, "0x6", "0x2", "left");
	d.color_mask = 0;
	OK(hal_partition_create(w.dev, &d, &b));
	OK(hal_partition_get_info(b, &i));
	assert_int_equal(i.color_mask, 0xc);
	bd.bytes = 64;
	bd.color_mask = 0x2;
	FAILS(hal_buffer_create(b, &bd, &x), -EINVAL, "0x2", "0xc");
	bd.color_mask = 0x4;
	OK(hal_buffer_create(b, &bd, &x));
	OK(hal_buffer_destroy(x));
	d.color_mask = 0xc;
	OK(hal_partition_create(w.dev, &d, &c)); /* shares with who said "any" */
	OK(hal_partition_destroy(b));
	d.color_mask = 0;
	FAILS(hal_partition_create(w.dev, &d, &b), -ENOSPC, "no colour");
	OK(hal_partition_destroy(a));
	OK(hal_partition_destroy(c));
	OK(hal_close(w.dev));
	world_open(&w, "mock");
	d.color_mask = 1;
	FAILS(hal_partition_create(w.dev, &d, &a), -ENOTSUP, "0x1", "no memory channels");
	OK(hal_close(w.dev));
}

static void resize_live(void **state)
{
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	struct hal_partition_info i = HAL_INIT(hal_partition_info);
	struct hal_partition *other;
	struct hal_point moved;
	struct world w;
	struct hal_queue *q;

	(void)state;
	world_open(&w, "mock");
	world_fill(&w);
	q = add_queue(w.part, 0);
	OK(submit_cmd(q, numbered(&w, 1), NULL));
	poll_now(&w);
	d.rows = 1;
	d.cols = 4;
	OK(hal_partition_resize(w.part, &d, &moved));
	FAILS(hal_partition_resize(w.part, &d, NULL), -EBUSY, "resized");
	FAILS(hal_partition_destroy(w.part), -EBUSY, "1 queue");
	assert_false(reached(moved));
	/* Both places are taken until it has moved. */
	FAILS(rect(w.dev, 0, 3, 1, 1, "", &other), -ENOSPC, "partition 0");
	OK(hal_partition_get_info(w.part, &i));
	assert_int_equal(i.units, 1);
	w.mock->quiet(w.native, 0);
	poll_now(&w);
	assert_true(reached(moved));
	OK(hal_partition_get_info(w.part, &i));
	assert_int_equal(i.units, 4);
	d.cols = 1;
	d.col = 15;
	OK(hal_partition_resize(w.part, &d, &moved));
	w.mock->quiet(w.native, 0);
	OK(hal_wait(&moved, 1, 0, HAL_FOREVER));
	OK(rect(w.dev, 0, 0, 1, 15, "", &other));
	d.col = 14;
	FAILS(hal_partition_resize(w.part, &d, NULL), -ENOSPC, "partition 1");
	OK(hal_partition_destroy(other));
	w.mock->complete(w.native, 1, 1);
	poll_now(&w);
	OK(hal_queue_destroy(q));
	world_close(&w);
}

/* A refusal fails its own point; the partition is asked again, and moves. */
/* The units of the partition itself count as free when it is to become larger. */
static void resize_counts_own(void **state)
{
	static const struct {
		const char *target, *text;
	} cases[] = {
		{"mock?units=16",
		 "12 of 16 units are free on mock:0 (with the partition's "
		 "own), at most 12 of them adjacent"},
		{"mock?units=16&rows=2", "12 of 16 units are free on mock:0 (with the "
					 "partition's own), the largest "
					 "free rectangle is 2 x 6 (12 units)"},
	};
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	struct hal_partition *other, *part;
	struct world w;

	(void)state;
	for (int i = 0; i < 2; i++) {
		world_open(&w, cases[i].target);
		OK(units(w.dev, 4, &other));
		OK(units(w.dev, 4, &part));
		d.units_floor = 14;
		FAILS(hal_partition_resize(part, &d, NULL), -ENOSPC,
		      "cannot place 14 units", cases[i].text);
		/* Nothing has changed by that. */
		d.units_floor = 8;
		FAILS(units(w.dev, 9, &other), -ENOSPC, "8 of 16 units are free on mock");
		OK(hal_partition_destroy(part));
		OK(hal_partition_destroy(other));
		OK(hal_close(w.dev));
	}
}

static void resize_refused(void **state)
{
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	struct hal_partition_info i = HAL_INIT(hal_partition_info);
	struct hal_point first, refused, again;
	struct world w;

	(void)state;
	world_open(&w, "mock");
	world_fill(&w);
	d.rows = 1;
	d.cols = 2;
	OK(hal_partition_resize(w.part, &d, &first));
	w.mock->quiet(w.native, 0);
	OK(hal_wait(&first, 1, 0, HAL_FOREVER));
	d.cols = 4;
	OK(hal_partition_resize(w.part, &d, &refused));
	w.mock->fail_move(w.native, -EIO, "a unit is broken");
	FAILS(hal_wait(&refused, 1, 0, HAL_FOREVER), -EIO, "refused", "broken");
	OK(hal_partition_get_info(w.part, &i));
	assert_int_equal(i.units, 2);
	OK(hal_partition_resize(w.part, &d, &again));
	w.mock->quiet(w.native, 0);
	OK(hal_wait(&again, 1, 0, HAL_FOREVER));
	OK(hal_partition_get_info(w.part, &i));
	assert_int_equal(i.units, 4);
	/* What was, stays. */
	OK(hal_wait(&first, 1, 0, 0));
	FAILS(hal_wait(&refused, 1, 0, 0), -EIO, "refused");
	world_close(&w);
}

static void resize_idle(void **state)
{
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	struct hal_point moved, p;
	struct world w;
	struct hal_queue *q;

	(void)state;
	world_open(&w, "mock?resize=idle");
	world_fill(&w);
	q = add_queue(w.part, 0);
	d.units_floor = 2;
	OK(submit_cmd(q, numbered(&w, 1), &p));
	poll_now(&w);
	FAILS(hal_partition_resize(w.part, &d, &moved), -EBUSY, "1 commands");
	w.mock->complete(w.native, 1, 1);
	poll_now(&w);
	OK(hal_partition_resize(w.part, &d, &moved));
	/* What comes meanwhile waits for the move. */
	OK(submit_cmd(q, numbered(&w, 2), &p));
	poll_now(&w);
	assert_int_equal(inflight(&w), 0);
	w.mock->quiet(w.native, 0);
	poll_now(&w);
	poll_now(&w);
	assert_int_equal(inflight(&w), 1);
	w.mock->complete(w.native, 1, 1);
	OK(hal_wait(&p, 1, 0, HAL_FOREVER));
	OK(hal_queue_destroy(q));
	world_close(&w);
	world_open(&w, "mock?resize=none");
	world_fill(&w);
	FAILS(hal_partition_resize(w.part, &d, &moved), -ENOTSUP, "resized");
	world_close(&w);
}

/* Every handle that is gone is refused, and so is one of another kind. */
static void dead_handles(void **state)
{
	struct hal_partition_info pi = HAL_INIT(hal_partition_info);
	struct hal_device_info di = HAL_INIT(hal_device_info);
	struct hal_kernel_info ki = HAL_INIT(hal_kernel_info);
	struct hal_stats s = HAL_INIT(hal_stats);
	struct world w;
	struct hal_queue *q;
	struct hal_kernel *k;
	char byte = 0;

	(void)state;
	world_open(&w, "mock");
	world_fill(&w);
	q = add_queue(w.part, 0);
	OK(hal_queue_destroy(q));
	FAILS(hal_queue_destroy(q), -EINVAL, "queue", "destroyed");
	FAILS(submit_cmd(q, hal_cmd_barrier(), NULL), -EINVAL, "queue", "destroyed");
	FAILS(hal_queue_get_stats(q, &s), -EINVAL, "destroyed");
	FAILS(hal_queue_suspend(q, 0, NULL), -EINVAL, "destroyed");
	FAILS(hal_queue_resume(q), -EINVAL, "destroyed");
	assert_null(hal_queue_get_timeline(q));
	FAILS(hal_queue_destroy((struct hal_queue *)(void *)w.part), -EINVAL,
	      "not a queue");
	k = w.k0;
	world_close(&w);
	FAILS(hal_kernel_get_info(k, &ki), -EINVAL, "kernel", "destroyed");
	FAILS(hal_buffer_write(w.buf, 0, &byte, 1), -EINVAL, "buffer", "destroyed");
	FAILS(hal_buffer_read(w.buf, 0, &byte, 1), -EINVAL, "buffer");
	FAILS(hal_buffer_unmap(w.buf), -EINVAL, "buffer");
	assert_int_equal(hal_buffer_get_bytes(w.buf), 0);
	FAILS(hal_program_unload(w.prog), -EINVAL, "program", "destroyed");
	FAILS(hal_kernel_find(w.prog, "none0", &k), -EINVAL, "program");
	FAILS(hal_partition_get_info(w.part, &pi), -EINVAL, "partition", "destroyed");
	FAILS(hal_partition_get_stats(w.part, &s), -EINVAL, "partition");
	FAILS(hal_partition_destroy(w.part), -EINVAL, "partition");
	FAILS(hal_device_get_info(w.dev, &di), -EINVAL, "device", "destroyed");
	FAILS(hal_device_poll(w.dev, 0), -EINVAL, "device");
	FAILS(hal_close(w.dev), -EINVAL, "device");
	assert_int_equal(hal_device_get_time(w.dev), 0);
	assert_null(hal_device_get_native(w.dev));
	assert_null(hal_device_get_extension(w.dev, "mock"));
	assert_int_equal(hal_queue_destroy(NULL) | hal_buffer_destroy(NULL) |
				 hal_program_unload(NULL) | hal_partition_destroy(NULL) |
				 hal_timeline_destroy(NULL) | hal_close(NULL),
			 0);
}

static void maps(void **state)
{
	struct world w;
	void *a, *b;
	char text[4] = "abc";

	(void)state;
	world_open(&w, "mock");
	world_fill(&w);
	FAILS(hal_buffer_unmap(w.buf), -EINVAL, "not mapped");
	OK(hal_buffer_map(w.buf, &a));
	OK(hal_buffer_map(w.buf, &b));
	assert_ptr_equal(a, b);
	OK(hal_buffer_write(w.buf, 8, text, sizeof(text)));
	assert_string_equal((char *)a + 8, "abc");
	OK(hal_buffer_unmap(w.buf));
	OK(hal_buffer_unmap(w.buf));
	FAILS(hal_buffer_unmap(w.buf), -EINVAL, "not mapped");
	FAILS(hal_buffer_read(w.buf, 4095, text, 2), -EINVAL, "2 bytes at offset 4095",
	      "4096");
	FAILS(hal_buffer_write(w.buf, UINT64_MAX, text, 2), -EINVAL, "4096");
	FAILS(hal_buffer_write(w.buf, 0, NULL, 2), -EINVAL, "NULL");
	world_close(&w);
}

/* A partition of that quota; bytes of its memory are in use. */
static struct hal_partition *with_quota(struct world *w, uint64_t quota, uint64_t used,
					struct hal_buffer **b)
{
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	struct hal_partition *p;

	d.units_floor = 1;
	d.memory_bytes = quota;
	OK(hal_partition_create(w->dev, &d, &p));
	if (used != 0)
		*b = add_buffer(p, used);
	return p;
}

static void quota_is(struct hal_partition *p, uint64_t bytes)
{
	struct hal_partition_info i = HAL_INIT(hal_partition_info);

	OK(hal_partition_get_info(p, &i));
	assert_int_equal(i.memory_bytes, bytes);
}

/* So much memory is promised to nobody. */
static void is_left(struct world *w, uint64_t bytes)
{
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	struct hal_partition *p;

	d.units_floor = 1;
	d.memory_bytes = bytes + 1;
	FAILS(hal_partition_create(w->dev, &d, &p), -ENOSPC, "memory");
	OK(hal_partition_destroy(with_quota(w, bytes, 0, NULL)));
}

/* The move that was asked for fails. */
static void moves_not(struct world *w, struct hal_point moved)
{
	(void)poll_now(w);
	w->mock->fail_move(w->native, -EIO, "stuck");
	assert_int_equal(hal_wait(&moved, 1, 0, HAL_FOREVER), -EIO);
}

/* A partition that does not move keeps the quota it had, as far as that is still there.
 */
static void quota_of_a_move_that_fails(void **state)
{
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	struct hal_partition *p, *other;
	struct hal_point moved;
	struct hal_buffer *b;
	struct world w;

	(void)state;
	world_open(&w, "mock?memory=1000");
	p = with_quota(&w, 200, 150, &b);
	is_left(&w, 800);
	d.units_floor = 2;
	/* Larger: given back. */
	d.memory_bytes = 500;
	OK(hal_partition_resize(p, &d, &moved));
	quota_is(p, 500);
	is_left(&w, 500);
	moves_not(&w, moved);
	quota_is(p, 200);
	is_left(&w, 800);
	/* Refused at once. */
	w.mock->refuse_move(w.native, 1, -EIO, 1);
	assert_int_equal(hal_partition_resize(p, &d, &moved), -EIO);
	quota_is(p, 200);
	is_left(&w, 800);
	/* Smaller: taken again. */
	d.memory_bytes = 160;
	OK(hal_partition_resize(p, &d, &moved));
	is_left(&w, 840);
	moves_not(&w, moved);
	quota_is(p, 200);
	is_left(&w, 800);
	/* Somebody else has taken what was in between. */
	OK(hal_partition_resize(p, &d, &moved));
	other = with_quota(&w, 801, 0, NULL);
	moves_not(&w, moved);
	quota_is(p, 160);
	OK(hal_partition_destroy(other));
	is_left(&w, 840);
	/* None before: what is used is what is promised. */
	OK(hal_buffer_destroy(b));
	OK(hal_partition_destroy(p));
	p = with_quota(&w, 0, 100, &b);
	d.memory_bytes = 300;
	OK(hal_partition_resize(p, &d, &moved));
	is_left(&w, 700);
	moves_not(&w, moved);
	quota_is(p, 1000); /* the device's */
	is_left(&w, 900);
	OK(hal_buffer_destroy(b));
	OK(hal_partition_destroy(p));
	is_left(&w, 1000);
	OK(hal_close(w.dev));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(quota_of_a_move_that_fails),
		cmocka_unit_test(pinwheel),
		cmocka_unit_test(squarest_first),
		cmocka_unit_test(random_maps),
		cmocka_unit_test(memory),
		cmocka_unit_test(colors),
		cmocka_unit_test(resize_live),
		cmocka_unit_test(resize_refused),
		cmocka_unit_test(resize_counts_own),
		cmocka_unit_test(resize_idle),
		cmocka_unit_test(dead_handles),
		cmocka_unit_test(maps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
