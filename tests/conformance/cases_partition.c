/* SPDX-License-Identifier: Apache-2.0 */
/* Partitions: rectangles, counts, colours, quotas, moving a border. */
#define _GNU_SOURCE
#include "conformance.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <hal/ext/memory.h>

static int need_grid(struct conf *c, uint32_t least)
{
	if (!(c->info.caps & HAL_CAP_GRID))
		return conf_unsupported(c, "units form a line");
	if (c->info.unit_rows < least || c->info.unit_cols < least)
		return conf_unsupported(c, "the grid is smaller than %u x %u", least,
					least);
	return 0;
}

static struct hal_partition_desc rect(uint32_t row, uint32_t col, uint32_t rows,
				      uint32_t cols)
{
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);

	d.row = (uint16_t)row;
	d.col = (uint16_t)col;
	d.rows = (uint16_t)rows;
	d.cols = (uint16_t)cols;
	d.memory_bytes = 4096;
	return d;
}

static struct hal_partition_desc count(uint32_t units)
{
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);

	d.units_floor = units;
	d.memory_bytes = 4096;
	return d;
}

static int get_info(struct conf *c, struct hal_partition *part,
		    struct hal_partition_info *i)
{
	*i = (struct hal_partition_info)HAL_INIT(hal_partition_info);
	OK(hal_partition_get_info(part, i));
	return 0;
}

static int create_count(struct conf *c)
{
	struct hal_partition_desc d = count(1);
	struct hal_partition_info i;
	struct hal_partition *p;

	STEP(conf_part(c, &d, &p));
	STEP(get_info(c, p, &i));
	EQ(i.units, 1);
	CHECK(i.index < c->info.partitions_max);
	EQ(i.memory_used, 0);
	STEP(conf_part_gone(c, p));
	OK(hal_partition_destroy(NULL));
	return 0;
}

static int whole_device(struct conf *c)
{
	struct hal_partition_info i;
	struct hal_partition *p;

	STEP(conf_whole(c, &p));
	STEP(get_info(c, p, &i));
	EQ(i.units, conf_units(c));
	return 0;
}

static int name_in_info(struct conf *c)
{
	struct hal_partition_desc d = count(1);
	struct hal_partition_info i;
	struct hal_partition *p;

	snprintf(d.name, sizeof(d.name), "tenant with a 31 bytes name..");
	STEP(conf_part(c, &d, &p));
	STEP(get_info(c, p, &i));
	CHECK(strcmp(i.name, d.name) == 0);
	EQ(i.memory_bytes, 4096);
	CHECK(i.compute_isolation >= c->info.compute_isolation);
	CHECK(i.compute_isolation <= HAL_ISOLATION_ENFORCED);
	return 0;
}

static int rectangle(struct conf *c)
{
	struct hal_partition_desc d = rect(1, 2, 2, 1);
	struct hal_partition_info i;
	struct hal_partition *p;

	STEP(need_grid(c, 3));
	STEP(conf_part(c, &d, &p));
	STEP(get_info(c, p, &i));
	EQ(i.row, 1);
	EQ(i.col, 2);
	EQ(i.rows, 2);
	EQ(i.cols, 1);
	EQ(i.units, 2);
	return 0;
}

/* Four rectangles around one: no line cuts the square without cutting a rectangle. */
static int pinwheel(struct conf *c)
{
	uint32_t R, C, i, n;

	STEP(need_grid(c, 3));
	R = c->info.unit_rows;
	C = c->info.unit_cols;
	{
		const struct hal_partition_desc d[] = {
			rect(0, 0, 1, C - 1),     rect(0, C - 1, R - 1, 1),
			rect(R - 1, 1, 1, C - 1), rect(1, 0, R - 1, 1),
			rect(1, 1, R - 2, C - 2),
		};
		struct hal_partition *p[5];

		n = c->info.partitions_max < 5 ? c->info.partitions_max : 5;
		if (n < 4)
			return conf_unsupported(c, "%u partitions make no pinwheel", n);
		for (i = 0; i < n; i++)
			STEP(conf_part(c, &d[i], &p[i]));
		/* All four arms work at once. */
		for (i = 0; i < n; i++) {
			struct hal_queue *q;
			struct hal_buffer *b;
			struct hal_point done;
			struct hal_cmd cmd;

			STEP(conf_queue(c, p[i], &q));
			STEP(conf_buffer(c, p[i], 64, &b));
			cmd = hal_cmd_fill(b, 0, 64, 0x01020304u * (i + 1));
			STEP(conf_submit(c, q, &cmd, 1, &done));
			STEP(conf_wait(c, done));
			STEP(conf_filled(c, b, 0, 64, 0x01020304u * (i + 1)));
		}
	}
	return 0;
}

static int overlap(struct conf *c)
{
	struct hal_partition_desc a = rect(0, 0, 2, 2), b = rect(1, 1, 2, 2);
	struct hal_partition *p, *q;

	STEP(need_grid(c, 3));
	STEP(conf_part(c, &a, &p));
	ERR(hal_partition_create(c->dev, &b, &q), -ENOSPC);
	ERR(hal_partition_create(c->dev, &a, &q), -ENOSPC);
	b = rect(2, 2, 1, 1);
	STEP(conf_part(c, &b, &q));
	return 0;
}

static int out_of_range(struct conf *c)
{
	uint32_t R = c->info.unit_rows, C = c->info.unit_cols;
	struct hal_partition_desc d;
	struct hal_partition *p;

	STEP(need_grid(c, 2));
	d = rect(0, 0, R + 1, 1);
	ERR(hal_partition_create(c->dev, &d, &p), -EINVAL);
	d = rect(0, C - 1, 1, 2);
	ERR(hal_partition_create(c->dev, &d, &p), -EINVAL);
	d = rect(R, 0, 1, 1);
	ERR(hal_partition_create(c->dev, &d, &p), -EINVAL);
	d = rect(65535, 65535, 65535, 65535);
	ERR(hal_partition_create(c->dev, &d, &p), -EINVAL);
	d = rect(0, 0, 2, 0);
	ERR(hal_partition_create(c->dev, &d, &p), -EINVAL);
	return 0;
}

/* A count on a grid is a rectangle of exactly that area, as square as can be. */
static int count_is_squarest(struct conf *c)
{
	struct hal_partition_desc d = count(4);
	struct hal_partition_info i;
	struct hal_partition *p;

	STEP(need_grid(c, 2));
	STEP(conf_part(c, &d, &p));
	STEP(get_info(c, p, &i));
	EQ(i.rows, 2);
	EQ(i.cols, 2);
	STEP(conf_part_gone(c, p));
	d = count(2);
	STEP(conf_part(c, &d, &p));
	STEP(get_info(c, p, &i));
	EQ(i.rows * i.cols, 2);
	EQ(i.units, 2);
	return 0;
}

static int too_many_units(struct conf *c)
{
	struct hal_partition_desc d = count(conf_units(c) + 1);
	struct hal_partition *p;

	ERR(hal_partition_create(c->dev, &d, &p), -ENOSPC);
	d.units_floor = UINT32_MAX;
	ERR(hal_partition_create(c->dev, &d, &p), -ENOSPC);
	return 0;
}

static int full_device(struct conf *c)
{
	struct hal_partition_desc d = count(1);
	struct hal_partition *all, *p;

	STEP(conf_whole(c, &all));
	ERR(hal_partition_create(c->dev, &d, &p), -ENOSPC);
	CHECK(strpbrk(hal_last_error(), "0123456789")); /* what is left */
	STEP(conf_part_gone(c, all));
	STEP(conf_part(c, &d, &p));
	return 0;
}

/* Every index is taken once, also after some have gone. */
static int indices(struct conf *c)
{
	uint32_t max = conf_units(c), n, i, k;
	struct hal_partition *p[64];
	struct hal_partition_desc d = count(1);
	struct hal_partition_info a, b;

	n = c->info.partitions_max < max ? c->info.partitions_max : max;
	if (n > 64)
		n = 64;
	for (i = 0; i < n; i++)
		STEP(conf_part(c, &d, &p[i]));
	for (i = 0; i < n; i += 2)
		STEP(conf_part_gone(c, p[i]));
	for (i = 0; i < n; i += 2)
		STEP(conf_part(c, &d, &p[i]));
	for (i = 0; i < n; i++) {
		STEP(get_info(c, p[i], &a));
		CHECK(a.index < c->info.partitions_max);
		for (k = 0; k < i; k++) {
			STEP(get_info(c, p[k], &b));
			CHECK(a.index != b.index);
			CHECK(a.row != b.row || a.col != b.col);
		}
	}
	return 0;
}

static int too_many_partitions(struct conf *c)
{
	struct hal_partition_desc d = count(1);
	struct hal_partition *p;
	uint32_t i;

	if (c->info.partitions_max >= conf_units(c))
		return conf_unsupported(c, "there are as many partitions as units");
	for (i = 0; i < c->info.partitions_max; i++)
		STEP(conf_part(c, &d, &p));
	ERR(hal_partition_create(c->dev, &d, &p), -ENOSPC);
	return 0;
}

static int quota(struct conf *c)
{
	struct hal_partition_desc d = count(1);
	struct hal_buffer_desc bd = HAL_INIT(hal_buffer_desc);
	struct hal_partition_info i;
	struct hal_partition *p;
	struct hal_buffer *a, *b;

	d.memory_bytes = 65536;
	STEP(conf_part(c, &d, &p));
	STEP(conf_buffer(c, p, 40960, &a));
	STEP(get_info(c, p, &i));
	CHECK(i.memory_used >= 40960 && i.memory_used <= 65536);
	bd.bytes = 40960;
	ERR(hal_buffer_create(p, &bd, &b), -ENOSPC);
	STEP(conf_buffer_gone(c, a));
	STEP(get_info(c, p, &i));
	EQ(i.memory_used, 0);
	STEP(conf_buffer(c, p, 65536, &b));
	return 0;
}

static int quota_too_big(struct conf *c)
{
	struct hal_partition_desc d = count(1);
	struct hal_partition *p;

	d.memory_bytes = c->info.memory_bytes + 4096;
	ERR(hal_partition_create(c->dev, &d, &p), -ENOSPC);
	return 0;
}

static int colors(struct conf *c)
{
	struct hal_partition_desc d = count(1);
	struct hal_partition_info i;
	struct hal_partition *p, *q;

	if (!(c->info.caps & HAL_CAP_COLORED_MEMORY) || c->info.colors < 2)
		return conf_unsupported(c, "no coloured memory");
	d.color_mask = 1;
	STEP(conf_part(c, &d, &p));
	STEP(get_info(c, p, &i));
	EQ(i.color_mask, 1);
	d.color_mask = 2;
	STEP(conf_part(c, &d, &q));
	STEP(get_info(c, q, &i));
	EQ(i.color_mask, 2);
	return 0;
}

/* Nanoseconds that a copy of so many bytes takes where that much bandwidth is left. */
static int copy_time(struct conf *c, uint64_t bandwidth, uint64_t bytes, uint64_t *ns)
{
	struct hal_stats s = HAL_INIT(hal_stats);
	struct hal_partition_desc d = count(1);
	struct hal_partition_memory_info i = HAL_INIT(hal_partition_memory_info);
	struct hal_buffer *to, *from;
	struct hal_partition *p;
	struct hal_point done;
	struct hal_queue *q;
	struct hal_cmd cmd;

	d.limits = &(struct hal_partition_limits){
		.size = sizeof(struct hal_partition_limits), .bandwidth = bandwidth};
	d.memory_bytes = 4 * bytes;
	STEP(conf_part(c, &d, &p));
	OK(hal_partition_get_memory_info(p, &i));
	CHECK(i.bandwidth <= bandwidth && i.bandwidth >= bandwidth - bandwidth / 8);
	STEP(conf_queue(c, p, &q));
	STEP(conf_buffer(c, p, bytes, &to));
	STEP(conf_buffer(c, p, bytes, &from));
	cmd = hal_cmd_copy(to, 0, from, 0, bytes);
	STEP(conf_submit(c, q, &cmd, 1, &done));
	STEP(conf_wait(c, done));
	OK(hal_queue_get_stats(q, &s));
	*ns = s.busy_ns;
	return conf_queue_gone(c, q);
}

/* What is read and what is written counts, and no more than that goes through. */
static int bandwidth(struct conf *c)
{
	enum { BYTES = 65536 };
	struct hal_partition_desc d = count(1);
	uint64_t slow, slower, none, least;
	struct hal_partition *p;

	if (!(c->info.caps & HAL_CAP_LIMIT)) {
		d.limits = &(struct hal_partition_limits){
			.size = sizeof(struct hal_partition_limits),
			.bandwidth = 1000000000};
		ERR(hal_partition_create(c->dev, &d, &p), -ENOTSUP);
		return 0;
	}
	STEP(copy_time(c, 0, BYTES, &none));
	STEP(copy_time(c, 2000000000, BYTES, &slow));
	STEP(copy_time(c, 1000000000, BYTES, &slower));
	/* 2 x 65536 bytes at 2 and at 1 byte a nanosecond, but for a first burst. */
	CHECK(none < 65536 / 2);
	CHECK(slow > 65536 * 9 / 10 && slow < 65536 * 5 / 4);
	CHECK(slower > 2 * 65536 * 9 / 10 && slower < 2 * 65536 * 5 / 4);
	least = c->info.limit_bytes * 1000000000 / c->info.limit_window_ns;
	d.limits = &(struct hal_partition_limits){
		.size = sizeof(struct hal_partition_limits), .bandwidth = least / 2};
	ERR(hal_partition_create(c->dev, &d, &p), -EINVAL);
	d.limits = &(struct hal_partition_limits){
		.size = sizeof(struct hal_partition_limits), .bandwidth = UINT64_MAX};
	ERR(hal_partition_create(c->dev, &d, &p), -EINVAL);
	return 0;
}

static int color_unknown(struct conf *c)
{
	struct hal_partition_desc d = count(1);
	struct hal_partition *p;
	int err;

	d.color_mask = UINT64_C(1) << 63;
	err = hal_partition_create(c->dev, &d, &p);
	CHECK(err == -ENOTSUP || err == -EINVAL || err == -ENOSPC);
	CHECK(hal_last_error()[0]);
	return 0;
}

static int min_isolation(struct conf *c)
{
	struct hal_partition_desc d = count(1);
	struct hal_partition *p;

	d.min_isolation = c->info.compute_isolation;
	STEP(conf_part(c, &d, &p));
	if (c->info.compute_isolation == HAL_ISOLATION_ENFORCED)
		return 0;
	STEP(conf_part_gone(c, p));
	d.min_isolation = HAL_ISOLATION_ENFORCED;
	ERR(hal_partition_create(c->dev, &d, &p), -ENOTSUP);
	return 0;
}

static int busy(struct conf *c)
{
	struct hal_partition_desc d = count(1);
	struct hal_partition *p;
	struct hal_queue *q;
	struct hal_buffer *b;

	STEP(conf_part(c, &d, &p));
	STEP(conf_queue(c, p, &q));
	ERR(hal_partition_destroy(p), -EBUSY);
	STEP(conf_queue_gone(c, q));
	STEP(conf_buffer(c, p, 64, &b));
	ERR(hal_partition_destroy(p), -EBUSY);
	STEP(conf_buffer_gone(c, b));
	STEP(conf_part_gone(c, p));
	return 0;
}

static int resize(struct conf *c)
{
	struct hal_partition_desc d = count(1);
	struct hal_partition_info i;
	struct hal_partition *p, *q;
	struct hal_point done;

	if (!(c->info.caps & HAL_CAP_RESIZE_IDLE))
		return conf_unsupported(c, "partitions do not move");
	if (conf_units(c) < 3)
		return conf_unsupported(c, "%u units", conf_units(c));
	STEP(conf_part(c, &d, &p));
	d.units_floor = 2;
	OK(hal_partition_resize(p, &d, &done));
	STEP(conf_wait(c, done));
	STEP(get_info(c, p, &i));
	EQ(i.units, 2);
	/* What it left is free, what it took is not. */
	d.units_floor = 1;
	OK(hal_partition_resize(p, &d, &done));
	STEP(conf_wait(c, done));
	d.units_floor = conf_units(c);
	OK(hal_partition_resize(p, &d, &done));
	STEP(conf_wait(c, done));
	d.units_floor = 1;
	ERR(hal_partition_create(c->dev, &d, &q), -ENOSPC);
	return 0;
}

static int resize_overlap(struct conf *c)
{
	struct hal_partition_desc d = count(1);
	struct hal_partition_info i;
	struct hal_partition *p, *q;

	if (!(c->info.caps & HAL_CAP_RESIZE_IDLE))
		return conf_unsupported(c, "partitions do not move");
	if (conf_units(c) < 2)
		return conf_unsupported(c, "one unit");
	STEP(conf_part(c, &d, &p));
	STEP(conf_part(c, &d, &q));
	d.units_floor = conf_units(c);
	ERR(hal_partition_resize(p, &d, NULL), -ENOSPC);
	STEP(get_info(c, p, &i));
	EQ(i.units, 1);
	return 0;
}

static int resize_busy(struct conf *c)
{
	struct hal_partition_desc d = count(1);
	struct hal_partition *p;
	struct hal_buffer *b;
	struct hal_kernel *k;
	struct hal_queue *q;
	struct hal_point done, moved;
	struct hal_arg arg;
	struct hal_cmd cmd;
	uint8_t want[CONF_SPIN_BYTES];

	if (!(c->info.caps & HAL_CAP_RESIZE_IDLE))
		return conf_unsupported(c, "partitions do not move");
	if (conf_units(c) < 2)
		return conf_unsupported(c, "one unit");
	d.memory_bytes = 1 << 20;
	STEP(conf_part(c, &d, &p));
	STEP(conf_queue(c, p, &q));
	STEP(conf_buffer(c, p, CONF_SPIN_BYTES, &b));
	STEP(conf_kernel(c, "spin", &k));
	arg = (struct hal_arg){.buffer = b};
	cmd = hal_cmd_launch(k, &arg, 1);
	STEP(conf_submit(c, q, &cmd, 1, &done));
	d.units_floor = 2;
	if (c->info.caps & HAL_CAP_RESIZE_LIVE) {
		OK(hal_partition_resize(p, &d, &moved));
		STEP(conf_wait(c, moved));
		STEP(conf_wait(c, done));
	} else {
		ERR(hal_partition_resize(p, &d, &moved), -EBUSY);
		STEP(conf_wait(c, done));
		OK(hal_partition_resize(p, &d, &moved));
		STEP(conf_wait(c, moved));
	}
	conf_oracle_spin(want);
	return conf_same(c, b, 0, want, sizeof(want));
}

/* The k-th third of the units: columns of a grid, or a part of a line. */
static struct hal_partition_desc third(const struct conf *c, uint32_t k)
{
	const uint32_t cols = c->info.unit_cols / 3;
	struct hal_partition_desc d = rect(0, k * cols, c->info.unit_rows, cols);

	d.memory_bytes = 1 << 20;
	return d;
}

/* Three partitions rotate with work in flight, then two exchange: none waits for ever,
 * and all bytes are right. */
static int move_together(struct conf *c)
{
	uint8_t want[CONF_SPIN_BYTES];
	struct hal_partition_desc d[3];
	struct hal_partition *p[3];
	struct hal_partition_info i;
	struct hal_point done[3], moved;
	struct hal_buffer *b[3];
	struct hal_queue *q[3];
	struct hal_kernel *spin;
	bool live = (c->info.caps & HAL_CAP_RESIZE_LIVE) != 0;

	if (!(c->info.caps & HAL_CAP_RESIZE_IDLE))
		return conf_unsupported(c, "partitions do not move");
	if (c->info.unit_cols < 3 || c->info.partitions_max < 3)
		return conf_unsupported(c, "%u columns, %u partitions", c->info.unit_cols,
					c->info.partitions_max);
	STEP(conf_kernel(c, "spin", &spin));
	for (uint32_t k = 0; k < 3; k++) {
		d[k] = third(c, k);
		STEP(conf_part(c, &d[k], &p[k]));
		STEP(conf_queue(c, p[k], &q[k]));
		STEP(conf_buffer(c, p[k], CONF_SPIN_BYTES, &b[k]));
	}
	for (uint32_t k = 0; k < 3 && live; k++) {
		struct hal_arg arg = {.buffer = b[k]};
		struct hal_cmd cmd = hal_cmd_launch(spin, &arg, 1);

		STEP(conf_submit(c, q[k], &cmd, 1, &done[k]));
	}
	for (uint32_t k = 0; k < 3; k++)
		d[k] = third(c, (k + 1) % 3);
	OK(hal_partitions_move(p, d, 3, &moved));
	if (conf_virtual(c))
		ERR(hal_partition_resize(p[0], &d[1], NULL), -EBUSY);
	STEP(conf_wait(c, moved));
	for (uint32_t k = 0; k < 3; k++) {
		STEP(get_info(c, p[k], &i));
		EQ(i.col, d[k].col);
		EQ(i.units, d[k].rows * d[k].cols);
	}
	conf_oracle_spin(want);
	for (uint32_t k = 0; k < 3 && live; k++) {
		STEP(conf_wait(c, done[k]));
		STEP(conf_same(c, b[k], 0, want, sizeof(want)));
	}
	/* The third partition, which is no member, keeps its place. */
	d[0] = third(c, 0);
	d[1] = third(c, 1);
	ERR(hal_partitions_move(p, d, 2, NULL), -ENOSPC);
	d[0] = third(c, 2);
	d[1] = third(c, 1);
	OK(hal_partitions_move(p, d, 2, &moved));
	STEP(conf_wait(c, moved));
	STEP(get_info(c, p[0], &i));
	EQ(i.col, d[0].col);
	return 0;
}

/* Shapes of a count, on a grid. */
static int shapes(struct conf *c)
{
	static const uint32_t shape[] = {HAL_SHAPE_COLUMNS, HAL_SHAPE_ROWS,
					 HAL_SHAPE_SQUARE};
	struct hal_partition_info i;
	struct hal_partition *p;
	uint32_t R, C;

	STEP(need_grid(c, 2));
	R = c->info.unit_rows;
	C = c->info.unit_cols;
	for (uint32_t k = 0; k < 3; k++) {
		const uint32_t rows[] = {R, 2, 2}, cols[] = {2, C, 2};
		struct hal_partition_desc d = count(rows[k] * cols[k]);

		d.shape = shape[k];
		STEP(conf_part(c, &d, &p));
		STEP(get_info(c, p, &i));
		EQ(i.rows, rows[k]);
		EQ(i.cols, cols[k]);
		STEP(conf_part_gone(c, p));
	}
	return 0;
}

const struct conf_case conf_partition_cases[] = {
	{"partition.create_count", create_count},
	{"partition.whole_device", whole_device},
	{"partition.name", name_in_info},
	{"partition.rectangle", rectangle},
	{"partition.pinwheel", pinwheel},
	{"partition.overlap", overlap},
	{"partition.out_of_range", out_of_range},
	{"partition.count_is_squarest", count_is_squarest},
	{"partition.too_many_units", too_many_units},
	{"partition.full_device", full_device},
	{"partition.indices", indices},
	{"partition.too_many_partitions", too_many_partitions},
	{"partition.quota", quota},
	{"partition.quota_too_big", quota_too_big},
	{"partition.colors", colors},
	{"partition.bandwidth", bandwidth},
	{"partition.color_unknown", color_unknown},
	{"partition.min_isolation", min_isolation},
	{"partition.busy", busy},
	{"partition.resize", resize},
	{"partition.resize_overlap", resize_overlap},
	{"partition.resize_busy", resize_busy},
	{"partition.move_together", move_together},
	{"partition.shapes", shapes},
	{NULL, NULL},
};
