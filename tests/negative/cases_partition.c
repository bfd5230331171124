/* SPDX-License-Identifier: Apache-2.0 */
/* Partitions and buffers called wrongly. */
#define _GNU_SOURCE
#include "negative.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <hal/ext/memory.h>

#define GRID "ref?units=64&rows=8"

static int create(struct neg *w)
{
	return hal_partition_create(w->dev, &w->part_desc, &w->part2);
}

static int create_rect(struct neg *w, uint32_t row, uint32_t col, uint32_t rows,
		       uint32_t cols)
{
	w->part_desc.units_floor = 0;
	w->part_desc.row = (uint16_t)row;
	w->part_desc.col = (uint16_t)col;
	w->part_desc.rows = (uint16_t)rows;
	w->part_desc.cols = (uint16_t)cols;
	return create(w);
}

/* ---- create ----------------------------------------------------------------------- */

NEGATIVE(hal_partition_create, EINVAL, dev_null, "device|dev")
{
	return hal_partition_create(NULL, &w->part_desc, &w->part2);
}

NEGATIVE(hal_partition_create, EINVAL, desc_null, "desc")
{
	return hal_partition_create(w->dev, NULL, &w->part2);
}

NEGATIVE(hal_partition_create, EINVAL, part_null, "part")
{
	return hal_partition_create(w->dev, &w->part_desc, NULL);
}

NEGATIVE(hal_partition_create, EINVAL, size_zero, "size")
{
	w->part_desc.size = 0;
	return create(w);
}

NEGATIVE(hal_partition_create, EINVAL, size_short, "size")
{
	w->part_desc.size = 8;
	return create(w);
}

NEGATIVE(hal_partition_create, E2BIG, longer_tail, "hal_partition_desc")
{
	struct {
		struct hal_partition_desc d;
		uint64_t more;
	} longer = {w->part_desc, 1};

	longer.d.size = sizeof(longer);
	return hal_partition_create(w->dev, &longer.d, &w->part2);
}

NEGATIVE(hal_partition_create, EINVAL, unknown_flag, "flags")
{
	w->part_desc.flags = 2;
	return create(w);
}

NEGATIVE(hal_partition_create, EINVAL, shape, "shape 4 is not a shape")
{
	w->part_desc.shape = 4;
	return create(w);
}

NEGATIVE(hal_partition_create, EINVAL, no_units, "units_floor")
{
	w->part_desc.units_floor = 0;
	return create(w);
}

NEGATIVE(hal_partition_create, EINVAL, isolation_unknown, "min_isolation")
{
	w->part_desc.min_isolation = HAL_ISOLATION_ENFORCED + 1;
	return create(w);
}

NEGATIVE(hal_partition_create, EINVAL, name_unterminated, "name")
{
	memset(w->part_desc.name, 'x', sizeof(w->part_desc.name));
	return create(w);
}

NEGATIVE(hal_partition_create, EINVAL, color_unknown, "0x10")
{
	w->part_desc.color_mask = 0x10;
	return create(w);
}

NEGATIVE_ON(GRID, hal_partition_create, EINVAL, rect_no_cols, "area")
{
	return create_rect(w, 0, 0, 2, 0);
}

NEGATIVE_ON(GRID, hal_partition_create, EINVAL, rect_no_rows, "area")
{
	return create_rect(w, 0, 0, 0, 2);
}

NEGATIVE_ON(GRID, hal_partition_create, EINVAL, rect_past_rows, "row 7")
{
	return create_rect(w, 7, 0, 2, 1);
}

NEGATIVE_ON(GRID, hal_partition_create, EINVAL, rect_past_cols, "column 7")
{
	return create_rect(w, 0, 7, 1, 2);
}

NEGATIVE_ON(GRID, hal_partition_create, EINVAL, rect_corner_outside, "row 8")
{
	return create_rect(w, 8, 8, 1, 1);
}

NEGATIVE_ON(GRID, hal_partition_create, EINVAL, rect_wraps, "65535")
{
	return create_rect(w, 65535, 65535, 65535, 65535);
}

NEGATIVE_ON(GRID, hal_partition_create, EINVAL, rect_and_other_count, "units_floor")
{
	w->part_desc.units_floor = 5;
	w->part_desc.rows = 2;
	w->part_desc.cols = 2;
	w->part_desc.row = 4;
	return create(w);
}

NEGATIVE_ON(GRID, hal_partition_create, ENOSPC, rect_overlap, "overlaps")
{
	return create_rect(w, 0, 0, 2, 2);
}

NEGATIVE_ON(GRID, hal_partition_create, ENOSPC, count_no_rectangle, "are free")
{
	w->part_desc.units_floor = 63; /* 63 are free, but no rectangle of 63 */
	return create(w);
}

NEGATIVE_ON(GRID, hal_partition_create, ENOSPC, count_prime, "rectangle")
{
	w->part_desc.units_floor = 13; /* 1 x 13 is wider than the grid */
	return create(w);
}

NEGATIVE(hal_partition_create, ENOSPC, units, "7 of 8 units are free")
{
	w->part_desc.units_floor = 8;
	return create(w);
}

NEGATIVE(hal_partition_create, ENOSPC, units_huge, "4294967295")
{
	w->part_desc.units_floor = UINT32_MAX;
	return create(w);
}

NEGATIVE(hal_partition_create, ENOSPC, memory, "memory")
{
	w->part_desc.memory_bytes = UINT64_C(1) << 40;
	return create(w);
}

NEGATIVE(hal_partition_create, ENOSPC, memory_huge, "memory")
{
	w->part_desc.memory_bytes = UINT64_MAX;
	return create(w);
}

NEGATIVE(hal_partition_create, ENOSPC, colors_taken, "0x3")
{
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);

	d.units_floor = 1;
	d.color_mask = 3;
	NEG_OK(hal_partition_create(w->dev, &d, &w->part2));
	d.color_mask = 7;
	{
		struct hal_partition *p;

		return hal_partition_create(w->dev, &d, &p);
	}
}

NEGATIVE_ON("ref?resize=none", hal_partition_create, ENOTSUP, ceiling, "units_ceiling")
{
	w->part_desc.units_ceiling = 2;
	return create(w);
}

NEGATIVE(hal_partition_create, EINVAL, ceiling_below, "below the floor of 3")
{
	w->part_desc.units_floor = 3;
	w->part_desc.units_ceiling = 2;
	return create(w);
}

NEGATIVE(hal_partition_create, EINVAL, ceiling_above_all, "units_ceiling 4000")
{
	w->part_desc.units_ceiling = 4000;
	return create(w);
}

NEGATIVE_ON("ref?isolation=advisory", hal_partition_create, ENOTSUP, isolation,
	    "advisory")
{
	w->part_desc.min_isolation = HAL_ISOLATION_ENFORCED;
	return create(w);
}

NEGATIVE_ON("ref", hal_partition_create, ENOTSUP, colors_unknown_to_device, "channels")
{
	w->part_desc.color_mask = 1;
	return create(w);
}

NEGATIVE(hal_partition_create, ENOMEM, of_the_device, "injected")
{
	NEG_OK(neg_inject(w, HAL_REF_OP_PARTITION_CREATE, 1, ENOMEM));
	return create(w);
}

/* ---- by name ---------------------------------------------------------------------- */

/* Opens dev2 with a configuration and asks for partition a. */
static int named(struct neg *w, const char *text)
{
	NEG_OK(neg_open_config(w, text));
	return hal_partition_create_named(w->dev2, "a", &w->part2);
}

NEGATIVE(hal_partition_create_named, ENOENT, no_section, "\"a\"")
{
	return named(w, "[hal]\ndevice = ref\n[partition \"b\"]\nunits = 1\n");
}

NEGATIVE(hal_partition_create_named, ENOENT, no_file, "\"a\"")
{
	return hal_partition_create_named(w->dev, "a", &w->part2);
}

NEGATIVE(hal_partition_create_named, ENOSPC, units, "17")
{
	return named(w, "[hal]\ndevice = ref\n[partition \"a\"]\nunits = 17\n");
}

NEGATIVE(hal_partition_create_named, EINVAL, bad_value, ":4")
{
	return named(w, "[hal]\ndevice = ref\n[partition \"a\"]\nunits = lots\n");
}

NEGATIVE(hal_partition_create_named, EINVAL, ceiling_no_number, "ceiling = \"most\"")
{
	return named(w, "[hal]\ndevice = ref\n[partition \"a\"]\nunits = 1\n"
			"ceiling = most\n");
}

NEGATIVE(hal_partition_create_named, EINVAL, ceiling_below,
	 ":3: [partition \"a\"]: units_ceiling 2 is below the floor of 3")
{
	return named(w, "[hal]\ndevice = ref\n[partition \"a\"]\nunits = 3\n"
			"ceiling = 2\n");
}

NEGATIVE(hal_partition_create_named, EINVAL, ceiling_above_all, "ref:0 has 16 units")
{
	return named(w, "[hal]\ndevice = ref\n[partition \"a\"]\nunits = 3\n"
			"ceiling = 17\n");
}

NEGATIVE(hal_partition_create_named, ENOTSUP, ceiling, "cannot be resized")
{
	return named(w, "[hal]\ndevice = ref?resize=none\n[partition \"a\"]\n"
			"units = 3\nceiling = 4\n");
}

NEGATIVE(hal_partition_create_named, EINVAL, no_host,
	 ":3: [partition \"a\"]: no partition with units of its own is named \"b\"")
{
	return named(w, "[hal]\ndevice = ref\n[partition \"a\"]\nhost = b\n"
			"[partition \"b\"]\nunits = 1\n");
}

NEGATIVE(hal_partition_create_named, EINVAL, long_host, "more than 31 characters")
{
	return named(w, "[hal]\ndevice = ref\n[partition \"a\"]\n"
			"host = abcdefghijklmnopqrstuvwxyzabcdef\n");
}

NEGATIVE(hal_partition_create, ENOTSUP, bandwidth, "bandwidth limits")
{
	w->part_desc.limits = &(struct hal_partition_limits){
		.size = sizeof(struct hal_partition_limits), .bandwidth = 1000000000};
	return create(w);
}

NEGATIVE(hal_partition_create, EINVAL, guest_bandwidth, "its host's bandwidth")
{
	w->part_desc.host = w->part;
	w->part_desc.units_floor = 0;
	w->part_desc.limits = &(struct hal_partition_limits){
		.size = sizeof(struct hal_partition_limits), .bandwidth = 1000000000};
	return create(w);
}

NEGATIVE(hal_partition_create, EINVAL, limit_alone, "8192 needs memory_bytes")
{
	w->part_desc.limits = &(struct hal_partition_limits){
		.size = sizeof(struct hal_partition_limits), .memory_limit = 8192};
	return create(w);
}

NEGATIVE(hal_partition_create, EINVAL, limit_below,
	 "8192 is less than memory_bytes 16384")
{
	w->part_desc.memory_bytes = 16384;
	w->part_desc.limits = &(struct hal_partition_limits){
		.size = sizeof(struct hal_partition_limits), .memory_limit = 8192};
	return create(w);
}

NEGATIVE(hal_partition_create, ENOTSUP, limit_above, "oversubscribe|cannot evict")
{
	w->part_desc.memory_bytes = 8192;
	w->part_desc.limits = &(struct hal_partition_limits){
		.size = sizeof(struct hal_partition_limits), .memory_limit = 16384};
	return create(w);
}

/* A device of its own, where a partition may have more than its quota. */
static int oversubscribe(struct neg *w)
{
	NEG_OK(neg_open_config(w, "[hal]\ndevice = ref\noversubscribe = yes\n"));
	w->part_desc.memory_bytes = 8192;
	w->part_desc.limits = &(struct hal_partition_limits){
		.size = sizeof(struct hal_partition_limits), .memory_limit = 16384};
	NEG_OK(hal_partition_create(w->dev2, &w->part_desc, &w->part2));
	w->part_desc.limits = NULL;
	w->buffer_desc.bytes = 8192;
	return 0;
}

NEGATIVE(hal_buffer_create, EINVAL, name_endless, "hal_buffer_desc.name does not end")
{
	memset(w->buffer_desc.name, 'x', sizeof(w->buffer_desc.name));
	return hal_buffer_create(w->part, &w->buffer_desc, &w->buf2);
}

NEGATIVE(hal_buffer_create, EINVAL, name_with_escape, "byte 0 is 0x1b")
{
	w->buffer_desc.name[0] = 0x1b;
	return hal_buffer_create(w->part, &w->buffer_desc, &w->buf2);
}

NEGATIVE(hal_buffer_create, ENOSPC, memory_limit, "left of the memory_limit of part")
{
	NEG_OK(oversubscribe(w));
	w->buffer_desc.bytes = 16385;
	return hal_buffer_create(w->part2, &w->buffer_desc, &w->buf2);
}

NEGATIVE(hal_buffer_create, ENOSPC, nothing_to_evict, "can be evicted")
{
	NEG_OK(oversubscribe(w));
	w->buffer_desc.flags = HAL_BUFFER_MAPPABLE;
	NEG_OK(hal_buffer_create(w->part2, &w->buffer_desc, &w->buf2));
	return hal_buffer_create(w->part2, &w->buffer_desc, &w->buf2);
}

NEGATIVE(hal_partition_create, ENOTSUP, limit_journal, "cannot record evictions")
{
	NEG_OK(neg_open_config(w, "[hal]\ndevice = ref\noversubscribe = yes\n"
				  "journal = /dev/null\n"));
	w->part_desc.memory_bytes = 8192;
	w->part_desc.limits = &(struct hal_partition_limits){
		.size = sizeof(struct hal_partition_limits), .memory_limit = 16384};
	return hal_partition_create(w->dev2, &w->part_desc, &w->part2);
}

NEGATIVE(hal_partition_resize, EINVAL, limit, "the memory_limit is 16384")
{
	NEG_OK(oversubscribe(w));
	w->part_desc.limits = NULL;
	w->part_desc.memory_bytes = 32768;
	return hal_partition_resize(w->part2, &w->part_desc, NULL);
}

NEGATIVE(hal_partition_resize, ENOTSUP, limit, "cannot change the memory_limit")
{
	w->part_desc.limits = &(struct hal_partition_limits){
		.size = sizeof(struct hal_partition_limits), .memory_limit = 16384};
	return hal_partition_resize(w->part, &w->part_desc, NULL);
}

NEGATIVE(hal_partition_resize, ENOTSUP, bandwidth, "the bandwidth from 0 to 1000")
{
	w->part_desc.limits = &(struct hal_partition_limits){
		.size = sizeof(struct hal_partition_limits), .bandwidth = 1000};
	return hal_partition_resize(w->part, &w->part_desc, NULL);
}

NEGATIVE(hal_partition_create_named, EINVAL, bad_colors, "1,x")
{
	return named(w, "[hal]\ndevice = ref?colors=4\n[partition \"a\"]\nunits = 1\n"
			"colors = 1,x\n");
}

NEGATIVE(hal_partition_create_named, EINVAL, no_colors, ":5: colors = \"0x0\"")
{
	return named(w, "[hal]\ndevice = ref?colors=4\n[partition \"a\"]\nunits = 1\n"
			"colors = 0x0\n");
}

NEGATIVE(hal_partition_create_named, EINVAL, weight,
	 ":5: [partition \"a\"] weight = \"0\"")
{
	return named(w, "[hal]\ndevice = ref\n[partition \"a\"]\nunits = 1\n"
			"weight = 0\n");
}

NEGATIVE(hal_partition_create_named, EINVAL, class, "normal|latency|best-effort")
{
	return named(w, "[hal]\ndevice = ref\n[partition \"a\"]\nunits = 1\n"
			"class = urgent\n");
}

NEGATIVE(hal_partition_create_named, EINVAL, best_effort_in_time,
	 ":6: deadline_us = 7 in [partition \"a\"]")
{
	return named(w, "[hal]\ndevice = ref\n[partition \"a\"]\nunits = 1\n"
			"class = best-effort\ndeadline_us = 7\n");
}

NEGATIVE(hal_partition_create_named, EINVAL, outside, "row")
{
	return named(w, "[hal]\ndevice = ref\n[partition \"a\"]\nrow = 3\nrows = 1\n"
			"cols = 1\n");
}

NEGATIVE(hal_partition_create_named, EINVAL, dev_null, "device|dev")
{
	return hal_partition_create_named(NULL, "a", &w->part2);
}

NEGATIVE(hal_partition_create_named, EINVAL, name_null, "name")
{
	return hal_partition_create_named(w->dev, NULL, &w->part2);
}

NEGATIVE(hal_partition_create_named, EINVAL, part_null, "part")
{
	NEG_OK(neg_open_config(w, "[hal]\ndevice = ref\n[partition \"a\"]\nunits = 1\n"));
	return hal_partition_create_named(w->dev2, "a", NULL);
}

/* ---- resize ----------------------------------------------------------------------- */

NEGATIVE(hal_partition_resize, EINVAL, part_null, "partition|part")
{
	return hal_partition_resize(NULL, &w->part_desc, NULL);
}

NEGATIVE(hal_partition_resize, EINVAL, desc_null, "desc")
{
	return hal_partition_resize(w->part, NULL, NULL);
}

NEGATIVE(hal_partition_resize, EINVAL, no_units, "units_floor")
{
	w->part_desc.units_floor = 0;
	return hal_partition_resize(w->part, &w->part_desc, NULL);
}

NEGATIVE(hal_partition_resize, EINVAL, unknown_flag, "flags")
{
	w->part_desc.flags = 4;
	return hal_partition_resize(w->part, &w->part_desc, NULL);
}

NEGATIVE(hal_partition_resize, E2BIG, longer_tail, "hal_partition_desc")
{
	struct {
		struct hal_partition_desc d;
		uint64_t more;
	} longer = {w->part_desc, 1};

	longer.d.size = sizeof(longer);
	return hal_partition_resize(w->part, &longer.d, NULL);
}

NEGATIVE(hal_partition_resize, ENOSPC, units, "9")
{
	w->part_desc.units_floor = 9;
	return hal_partition_resize(w->part, &w->part_desc, NULL);
}

NEGATIVE(hal_partition_resize, ENOSPC, memory_in_use, "4096|memory")
{
	w->part_desc.memory_bytes = 100; /* the buffer needs more */
	return hal_partition_resize(w->part, &w->part_desc, NULL);
}

NEGATIVE_ON("ref?resize=none", hal_partition_resize, ENOTSUP, never, "resize")
{
	w->part_desc.units_floor = 2;
	return hal_partition_resize(w->part, &w->part_desc, NULL);
}

NEGATIVE(hal_partition_resize, EINVAL, ceiling_below, "below the floor of 2")
{
	w->part_desc.units_floor = 2;
	w->part_desc.units_ceiling = 1;
	return hal_partition_resize(w->part, &w->part_desc, NULL);
}

NEGATIVE_ON("ref?resize=idle", hal_partition_resize, EBUSY, in_flight,
	    "1 commands on the device")
{
	NEG_OK(neg_make_busy(w));
	w->part_desc.units_floor = 2;
	return hal_partition_resize(w->part, &w->part_desc, NULL);
}

NEGATIVE(hal_partition_resize, EIO, of_the_device, "injected")
{
	NEG_OK(neg_inject(w, HAL_REF_OP_RESIZE, 1, EIO));
	w->part_desc.units_floor = 2;
	return hal_partition_resize(w->part, &w->part_desc, NULL);
}

/* ---- hal_partitions_move ---------------------------------------------------------- */

static int move_one(struct neg *w)
{
	return hal_partitions_move(&w->part, &w->part_desc, 1, NULL);
}

NEGATIVE(hal_partitions_move, EINVAL, part_null, "partition|part")
{
	struct hal_partition *none = NULL;

	return hal_partitions_move(&none, &w->part_desc, 1, NULL);
}

NEGATIVE(hal_partitions_move, EINVAL, parts_null, "parts")
{
	return hal_partitions_move(NULL, &w->part_desc, 1, NULL);
}

NEGATIVE(hal_partitions_move, EINVAL, count, "count 0 is not from 1 to 32")
{
	return hal_partitions_move(&w->part, &w->part_desc, 0, NULL);
}

NEGATIVE(hal_partitions_move, EINVAL, unknown_flag, "descs[0]: hal_partition_desc.flags")
{
	w->part_desc.flags = 256;
	return move_one(w);
}

NEGATIVE(hal_partitions_move, E2BIG, longer_tail, "hal_partition_desc")
{
	struct {
		struct hal_partition_desc d;
		uint64_t tail;
	} longer = {w->part_desc, 1};

	longer.d.size = sizeof(longer);
	return hal_partitions_move(&w->part, &longer.d, 1, NULL);
}

NEGATIVE(hal_partitions_move, ENOSPC, units, "descs[0]: cannot place 9 units")
{
	w->part_desc.units_floor = 9;
	return move_one(w);
}

NEGATIVE_ON("ref?resize=none", hal_partitions_move, ENOTSUP, never, "cannot be resized")
{
	return move_one(w);
}

NEGATIVE_ON("ref?resize=idle", hal_partitions_move, EBUSY, in_flight,
	    "1 commands on the device")
{
	NEG_OK(neg_make_busy(w));
	w->part_desc.units_floor = 2;
	return move_one(w);
}

/* ---- the rest of it --------------------------------------------------------------- */

NEGATIVE(hal_partition_destroy, EBUSY, queue, "queue")
{
	NEG_OK(hal_buffer_destroy(w->buf));
	w->buf = NULL;
	return hal_partition_destroy(w->part);
}

NEGATIVE(hal_partition_destroy, EBUSY, buffer, "buffer")
{
	NEG_OK(hal_queue_destroy(w->queue));
	w->queue = NULL;
	return hal_partition_destroy(w->part);
}

NEGATIVE(hal_partition_destroy, EBUSY, sequence, "1 sequence")
{
	NEG_OK(hal_sequence_create(w->part, &w->submit, &w->seq));
	NEG_OK(hal_queue_destroy(w->queue));
	w->queue = NULL;
	NEG_OK(hal_buffer_destroy(w->buf));
	w->buf = NULL;
	return hal_partition_destroy(w->part);
}

/* A point of a resize that comes only later. */
static int real_partition(struct neg *w, struct hal_point *p)
{
	if (w->dev2 == NULL)
		NEG_OK(hal_open("ref?clock=real", NULL, &w->dev2));
	w->part_desc.units_floor = 1;
	NEG_OK(hal_partition_create(w->dev2, &w->part_desc, &w->part2));
	w->part_desc.units_floor = 2;
	NEG_OK(hal_partition_resize(w->part2, &w->part_desc, p));
	NEG_OK(neg_wait(*p));
	p->value++;
	return 0;
}

static int destroy_partition(struct neg *w)
{
	int err = hal_partition_destroy(w->part2);

	w->part2 = err == 0 ? NULL : w->part2;
	return err;
}

static int end_partition(struct neg *w)
{
	w->part_desc.units_floor = 1;
	return hal_partition_resize(w->part2, &w->part_desc, NULL);
}

NEGATIVE(hal_partition_destroy, EBUSY, awaited, "a thread waits")
{
	return neg_awaited(w, real_partition, destroy_partition, end_partition);
}

NEGATIVE(hal_partition_destroy, EINVAL, destroyed, "partition")
{
	struct hal_partition *p;

	NEG_OK(hal_partition_create(w->dev, &w->part_desc, &p));
	NEG_OK(hal_partition_destroy(p));
	return hal_partition_destroy(p);
}

NEGATIVE(hal_partition_get_memory_info, EINVAL, part_null, "partition|part")
{
	struct hal_partition_memory_info i = HAL_INIT(hal_partition_memory_info);

	(void)w;
	return hal_partition_get_memory_info(NULL, &i);
}

NEGATIVE(hal_partition_get_memory_info, EINVAL, info_null, "info")
{
	return hal_partition_get_memory_info(w->part, NULL);
}

NEGATIVE(hal_partition_create, EINVAL, limits_size, "hal_partition_limits.size")
{
	w->part_desc.limits = &(struct hal_partition_limits){.size = 4};
	return hal_partition_create(w->dev, &w->part_desc, &w->part2);
}

NEGATIVE(hal_partition_create, EINVAL, limits_reserved, "hal_partition_limits.reserved")
{
	w->part_desc.limits = &(struct hal_partition_limits){
		.size = sizeof(struct hal_partition_limits), .reserved = 1};
	return hal_partition_create(w->dev, &w->part_desc, &w->part2);
}

NEGATIVE(hal_partition_get_info, EINVAL, part_null, "partition|part")
{
	struct hal_partition_info i = HAL_INIT(hal_partition_info);

	(void)w;
	return hal_partition_get_info(NULL, &i);
}

NEGATIVE(hal_partition_get_info, EINVAL, info_null, "info")
{
	return hal_partition_get_info(w->part, NULL);
}

NEGATIVE(hal_partition_get_info, EINVAL, size_zero, "size")
{
	struct hal_partition_info i = {.size = 0};

	return hal_partition_get_info(w->part, &i);
}

NEGATIVE(hal_partition_get_stats, EINVAL, part_null, "partition|part")
{
	return hal_partition_get_stats(NULL, &w->stats);
}

NEGATIVE(hal_partition_get_stats, EINVAL, stats_null, "stats")
{
	return hal_partition_get_stats(w->part, NULL);
}

NEGATIVE(hal_partition_get_stats, EINVAL, size_zero, "size")
{
	w->stats.size = 0;
	return hal_partition_get_stats(w->part, &w->stats);
}

/* ---- buffer ----------------------------------------------------------------------- */

static int buffer(struct neg *w)
{
	return hal_buffer_create(w->part, &w->buffer_desc, &w->buf2);
}

NEGATIVE(hal_buffer_create, EINVAL, part_null, "partition|part")
{
	return hal_buffer_create(NULL, &w->buffer_desc, &w->buf2);
}

NEGATIVE(hal_buffer_create, EINVAL, desc_null, "desc")
{
	return hal_buffer_create(w->part, NULL, &w->buf2);
}

NEGATIVE(hal_buffer_create, EINVAL, buf_null, "buf")
{
	return hal_buffer_create(w->part, &w->buffer_desc, NULL);
}

NEGATIVE(hal_buffer_create, EINVAL, size_zero, "size")
{
	w->buffer_desc.size = 0;
	return buffer(w);
}

NEGATIVE(hal_buffer_create, E2BIG, longer_tail, "hal_buffer_desc")
{
	struct {
		struct hal_buffer_desc d;
		uint64_t more;
	} longer = {w->buffer_desc, 1};

	longer.d.size = sizeof(longer);
	return hal_buffer_create(w->part, &longer.d, &w->buf2);
}

NEGATIVE(hal_buffer_create, EINVAL, unknown_flag, "flags")
{
	w->buffer_desc.flags = 0x80;
	return buffer(w);
}

NEGATIVE(hal_buffer_create, EINVAL, no_bytes, "bytes")
{
	w->buffer_desc.bytes = 0;
	return buffer(w);
}

NEGATIVE(hal_buffer_create, EINVAL, color_of_others, "0x8")
{
	NEG_OK(hal_queue_destroy(w->queue));
	w->queue = NULL;
	w->part_desc.color_mask = 3;
	NEG_OK(create(w));
	w->buffer_desc.color_mask = 8;
	return hal_buffer_create(w->part2, &w->buffer_desc, &w->buf2);
}

NEGATIVE(hal_buffer_create, ENOSPC, memory, "left")
{
	w->buffer_desc.bytes = UINT64_C(1) << 40;
	return buffer(w);
}

NEGATIVE(hal_buffer_create, ENOSPC, memory_huge, "left")
{
	w->buffer_desc.bytes = UINT64_MAX;
	return buffer(w);
}

NEGATIVE(hal_buffer_create, ENOSPC, quota, "8192")
{
	w->part_desc.memory_bytes = 8192;
	NEG_OK(create(w));
	w->buffer_desc.bytes = 8193;
	return hal_buffer_create(w->part2, &w->buffer_desc, &w->buf2);
}

NEGATIVE(hal_buffer_create, ENOSPC, color_full, "colour|color")
{
	w->buffer_desc.color_mask = 1;
	w->buffer_desc.bytes = 300 << 10; /* a quarter of 1 MiB is 256 KiB */
	return buffer(w);
}

NEGATIVE_ON("ref?map=no", hal_buffer_create, ENOTSUP, mappable, "map")
{
	w->buffer_desc.flags = HAL_BUFFER_MAPPABLE;
	return buffer(w);
}

NEGATIVE(hal_buffer_create, ENOMEM, of_the_device, "injected")
{
	NEG_OK(neg_inject(w, HAL_REF_OP_MEM_ALLOC, 1, ENOMEM));
	return buffer(w);
}

/* A partition with channel 0, and more while it is alone. */
static int bimodal_part(struct neg *w)
{
	w->part_desc.color_mask = 1;
	w->part_desc.flags = HAL_PARTITION_BIMODAL;
	return create(w);
}

/* A buffer of it that is bimodal. */
static int bimodal_buffer(struct neg *w)
{
	w->buffer_desc.flags |= HAL_BUFFER_BIMODAL;
	return hal_buffer_create(w->part2, &w->buffer_desc, &w->buf2);
}

/* And a queue there. */
static int bimodal_queue(struct neg *w)
{
	NEG_OK(bimodal_part(w));
	NEG_OK(hal_queue_create(w->part2, &w->queue_desc, &w->queue2));
	return bimodal_buffer(w);
}

NEGATIVE(hal_buffer_create, EINVAL, bimodal_partition, "is not HAL_PARTITION_BIMODAL")
{
	w->buffer_desc.flags = HAL_BUFFER_BIMODAL;
	return buffer(w);
}

NEGATIVE(hal_buffer_create, EINVAL, scratch_alone, "without HAL_BUFFER_BIMODAL")
{
	NEG_OK(bimodal_part(w));
	w->buffer_desc.flags = HAL_BUFFER_SCRATCH;
	return hal_buffer_create(w->part2, &w->buffer_desc, &w->buf2);
}

NEGATIVE(hal_buffer_create, EINVAL, bimodal_mappable, "HAL_BUFFER_MAPPABLE")
{
	NEG_OK(bimodal_part(w));
	w->buffer_desc.flags = HAL_BUFFER_MAPPABLE;
	return bimodal_buffer(w);
}

/* With channel 0 of four, 3 bytes of 4 are further memory. */
NEGATIVE(hal_buffer_create, ENOSPC, bimodal_quota, "14336 bytes: 14335")
{
	w->part_desc.memory_bytes = 14335;
	NEG_OK(bimodal_part(w));
	w->buffer_desc.bytes = 8192;
	return bimodal_buffer(w);
}

NEGATIVE(hal_buffer_create, ENOSPC, bimodal_huge, "left")
{
	NEG_OK(bimodal_part(w));
	w->buffer_desc.bytes = UINT64_MAX;
	return bimodal_buffer(w);
}

NEGATIVE(hal_buffer_map, ENOTSUP, bimodal, "bimodal")
{
	void *at;

	NEG_OK(bimodal_part(w));
	NEG_OK(bimodal_buffer(w));
	return hal_buffer_map(w->buf2, &at);
}

NEGATIVE(hal_partition_create, EINVAL, bimodal_no_channels, "names no channels")
{
	w->part_desc.flags = HAL_PARTITION_BIMODAL;
	return create(w);
}

NEGATIVE_ON("ref", hal_partition_create, ENOTSUP, bimodal, "two placements")
{
	w->part_desc.flags = HAL_PARTITION_BIMODAL;
	return create(w);
}

NEGATIVE(hal_partition_create, ENOSPC, bimodal_none_left, "free for the wide placement")
{
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	struct hal_partition *p;

	d.units_floor = 1;
	d.color_mask = 14;
	NEG_OK(hal_partition_create(w->dev, &d, &w->part2));
	d.color_mask = 1;
	d.flags = HAL_PARTITION_BIMODAL;
	return hal_partition_create(w->dev, &d, &p);
}

NEGATIVE(hal_submit, EINVAL, bimodal_constant, "only the host writes")
{
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct hal_cmd cmd;

	NEG_OK(bimodal_queue(w));
	cmd = hal_cmd_fill(w->buf2, 0, 4, 1);
	d.cmds = &cmd;
	d.cmd_count = 1;
	return hal_submit(w->queue2, &d, NULL);
}

NEGATIVE(hal_buffer_recolor, EINVAL, bimodal, "is bimodal")
{
	NEG_OK(bimodal_queue(w));
	return hal_buffer_recolor(w->buf2, w->queue2, 1, NULL, NULL);
}

NEGATIVE(hal_partition_resize, ENOTSUP, bimodal, "cannot make a partition bimodal")
{
	w->part_desc.flags = HAL_PARTITION_BIMODAL;
	return hal_partition_resize(w->part, &w->part_desc, NULL);
}

static const uint8_t no_parts[64];

NEGATIVE(hal_buffer_create_weighted, EINVAL, no_parts, "weights")
{
	return hal_buffer_create_weighted(w->part, &w->buffer_desc, no_parts, &w->buf2);
}

NEGATIVE_ON("ref", hal_buffer_create_weighted, ENOTSUP, no_colors, "weights")
{
	return hal_buffer_create_weighted(w->part, &w->buffer_desc, no_parts, &w->buf2);
}

/* ---- export and import ------------------------------------------------------------- */

NEGATIVE(hal_buffer_export, EINVAL, fd_null, "fd is NULL")
{
	return hal_buffer_export(w->buf, NULL);
}

NEGATIVE(hal_buffer_export, EINVAL, buf_null, "buffer")
{
	int fd;

	(void)w;
	return hal_buffer_export(NULL, &fd);
}

NEGATIVE(hal_buffer_export, EINVAL, not_exportable, "without HAL_BUFFER_EXPORTABLE")
{
	int fd;

	return hal_buffer_export(w->buf, &fd);
}

/* Import what is at hand. */
static int import(struct neg *w, int fd)
{
	return hal_buffer_import(w->part, fd, &w->buffer_desc, &w->buf2);
}

NEGATIVE_ON("ref", hal_buffer_import, EBADF, no_descriptor,
	    "-1 is no open file descriptor")
{
	return import(w, -1);
}

NEGATIVE_ON("ref", hal_buffer_import, EINVAL, standard_input,
	    "descriptor 0 is not memory")
{
	return import(w, 0);
}

NEGATIVE_ON("ref", hal_buffer_import, EINVAL, flags, "only HAL_BUFFER_MAPPABLE")
{
	w->buffer_desc.flags = HAL_BUFFER_EXPORTABLE;
	return import(w, 0);
}

NEGATIVE(hal_buffer_import, EINVAL, part_null, "partition|part")
{
	return hal_buffer_import(NULL, 0, &w->buffer_desc, &w->buf2);
}

NEGATIVE(hal_buffer_import, EINVAL, buf_null, "hal_buffer_import: buf is NULL")
{
	return hal_buffer_import(w->part, 0, &w->buffer_desc, NULL);
}

NEGATIVE(hal_buffer_import, EINVAL, desc_null, "hal_buffer_desc")
{
	return hal_buffer_import(w->part, 0, NULL, &w->buf2);
}

NEGATIVE(hal_buffer_import, E2BIG, longer_tail, "hal_buffer_desc")
{
	struct {
		struct hal_buffer_desc d;
		uint64_t more;
	} longer = {w->buffer_desc, 1};

	longer.d.size = (uint32_t)sizeof(longer);
	return hal_buffer_import(w->part, 0, &longer.d, &w->buf2);
}

/* Import into part what another buffer of the device has exported. */
static int import_exported(struct neg *w, struct hal_partition *part)
{
	struct hal_buffer_desc d = w->buffer_desc;
	int fd = -1, err;

	d.flags = HAL_BUFFER_EXPORTABLE;
	NEG_OK(hal_buffer_create(w->part, &d, &w->buf2));
	NEG_OK(hal_buffer_export(w->buf2, &fd));
	NEG_OK(hal_buffer_destroy(w->buf2));
	w->buf2 = NULL;
	err = hal_buffer_import(part, fd, &w->buffer_desc, &w->buf2);
	(void)close(fd);
	return err;
}

NEGATIVE_ON("ref", hal_buffer_import, ENOSPC, quota, "8192 are left of the quota")
{
	w->buffer_desc.bytes = 8193;
	w->part_desc.memory_bytes = 8192;
	NEG_OK(create(w));
	return import_exported(w, w->part2);
}

/* What others may use stays where it is. */
NEGATIVE_ON(NEG_TARGET, hal_buffer_recolor, EINVAL, exportable,
	    "others may use its memory")
{
	w->buffer_desc.flags = HAL_BUFFER_EXPORTABLE;
	NEG_OK(buffer(w));
	return hal_buffer_recolor(w->buf2, w->queue, 1, NULL, NULL);
}

NEGATIVE_ON(NEG_TARGET, hal_buffer_recolor, EINVAL, imported, "others may use its memory")
{
	NEG_OK(import_exported(w, w->part));
	return hal_buffer_recolor(w->buf2, w->queue, 1, NULL, NULL);
}

NEGATIVE_ON(NEG_TARGET, hal_buffer_create, ENOSPC, exportable_is_not_evicted,
	    "can be evicted")
{
	NEG_OK(oversubscribe(w));
	w->buffer_desc.flags = HAL_BUFFER_EXPORTABLE;
	NEG_OK(hal_buffer_create(w->part2, &w->buffer_desc, &w->buf2));
	return hal_buffer_create(w->part2, &w->buffer_desc, &w->buf2);
}

NEGATIVE_ON(NEG_TARGET, hal_buffer_create, ENOSPC, import_is_not_evicted,
	    "can be evicted")
{
	NEG_OK(oversubscribe(w));
	NEG_OK(import_exported(w, w->part2));
	return hal_buffer_create(w->part2, &w->buffer_desc, &w->buf2);
}

NEGATIVE_ON(NEG_TARGET, hal_buffer_create, EINVAL, bimodal_exportable,
	    "HAL_BUFFER_EXPORTABLE")
{
	NEG_OK(bimodal_part(w));
	w->buffer_desc.flags = HAL_BUFFER_EXPORTABLE;
	return bimodal_buffer(w);
}

NEGATIVE_ON("ref?map=no", hal_buffer_import, ENOTSUP, mappable, "map")
{
	w->buffer_desc.flags = HAL_BUFFER_MAPPABLE;
	return import(w, 0);
}

NEGATIVE_ON("ref", hal_buffer_import, EIO, of_the_device, "injected")
{
	/* The first allocation is that of the exporter. */
	NEG_OK(neg_inject(w, HAL_REF_OP_MEM_ALLOC, 2, EIO));
	return import_exported(w, w->part);
}

NEGATIVE_ON("ref", hal_buffer_export, EIO, of_the_device, "injected")
{
	int fd;

	w->buffer_desc.flags = HAL_BUFFER_EXPORTABLE;
	NEG_OK(buffer(w));
	NEG_OK(neg_inject(w, HAL_REF_OP_MEM_EXPORT, 1, EIO));
	return hal_buffer_export(w->buf2, &fd);
}

/* Make that call while no file can be opened. */
#define WITHOUT_FILES(call)                                                              \
	__extension__({                                                                  \
		struct rlimit old_, none_;                                               \
		int rc_;                                                                 \
                                                                                         \
		NEG_OK(getrlimit(RLIMIT_NOFILE, &old_));                                 \
		none_ = old_;                                                            \
		none_.rlim_cur = 0;                                                      \
		NEG_OK(setrlimit(RLIMIT_NOFILE, &none_));                                \
		rc_ = (call);                                                            \
		NEG_OK(setrlimit(RLIMIT_NOFILE, &old_));                                 \
		rc_;                                                                     \
	})

NEGATIVE_ON("ref", hal_buffer_export, EMFILE, no_fd, "files")
{
	int fd;

	w->buffer_desc.flags = HAL_BUFFER_EXPORTABLE;
	NEG_OK(buffer(w));
	return WITHOUT_FILES(hal_buffer_export(w->buf2, &fd));
}

NEGATIVE_ON("ref", hal_buffer_create, EMFILE, no_fd, "files")
{
	w->buffer_desc.flags = HAL_BUFFER_EXPORTABLE;
	return WITHOUT_FILES(buffer(w));
}

NEGATIVE_ON("ref", hal_buffer_create_weighted, EMFILE, no_fd, "files")
{
	w->buffer_desc.flags = HAL_BUFFER_EXPORTABLE;
	return WITHOUT_FILES(
		hal_buffer_create_weighted(w->part, &w->buffer_desc, NULL, &w->buf2));
}

NEGATIVE(hal_buffer_create_weighted, ENOSPC, memory, "left")
{
	w->buffer_desc.bytes = UINT64_C(1) << 40;
	return hal_buffer_create_weighted(w->part, &w->buffer_desc, NULL, &w->buf2);
}

NEGATIVE(hal_buffer_create_weighted, EINVAL, desc_null, "desc")
{
	return hal_buffer_create_weighted(w->part, NULL, NULL, &w->buf2);
}

NEGATIVE(hal_buffer_create_weighted, E2BIG, longer_tail, "hal_buffer_desc")
{
	struct {
		struct hal_buffer_desc d;
		uint64_t more;
	} longer = {w->buffer_desc, 1};

	longer.d.size = (uint32_t)sizeof(longer);
	return hal_buffer_create_weighted(w->part, &longer.d, NULL, &w->buf2);
}

NEGATIVE(hal_buffer_destroy, EINVAL, destroyed, "buffer")
{
	struct hal_buffer *b;

	NEG_OK(hal_buffer_create(w->part, &w->buffer_desc, &b));
	NEG_OK(hal_buffer_destroy(b));
	return hal_buffer_destroy(b);
}

NEGATIVE(hal_buffer_destroy, EINVAL, not_a_buffer, "buffer")
{
	return hal_buffer_destroy((struct hal_buffer *)(void *)w->queue);
}

static uint8_t data[8192];

NEGATIVE(hal_buffer_write, EINVAL, buf_null, "buffer|buf")
{
	(void)w;
	return hal_buffer_write(NULL, 0, data, 4);
}

NEGATIVE(hal_buffer_write, EINVAL, data_null, "data")
{
	return hal_buffer_write(w->buf, 0, NULL, 4);
}

NEGATIVE(hal_buffer_write, EINVAL, range, "4096")
{
	return hal_buffer_write(w->buf, 1, data, 4096);
}

NEGATIVE(hal_buffer_write, EINVAL, range_wraps, "4096")
{
	return hal_buffer_write(w->buf, UINT64_MAX, data, 2);
}

NEGATIVE(hal_buffer_write, EIO, of_the_device, "injected")
{
	NEG_OK(neg_inject(w, HAL_REF_OP_MEM_WRITE, 1, EIO));
	return hal_buffer_write(w->buf, 0, data, 4);
}

NEGATIVE(hal_buffer_read, EINVAL, buf_null, "buffer|buf")
{
	(void)w;
	return hal_buffer_read(NULL, 0, data, 4);
}

NEGATIVE(hal_buffer_read, EINVAL, data_null, "data")
{
	return hal_buffer_read(w->buf, 0, NULL, 4);
}

NEGATIVE(hal_buffer_read, EINVAL, range, "4096")
{
	return hal_buffer_read(w->buf, 4096, data, 1);
}

NEGATIVE(hal_buffer_read, EINVAL, range_wraps, "4096")
{
	return hal_buffer_read(w->buf, 8, data, UINT64_MAX - 4);
}

NEGATIVE(hal_buffer_read, EIO, of_the_device, "injected")
{
	NEG_OK(neg_inject(w, HAL_REF_OP_MEM_READ, 1, EIO));
	return hal_buffer_read(w->buf, 0, data, 4);
}

NEGATIVE(hal_buffer_map, EINVAL, buf_null, "buffer|buf")
{
	void *at;

	(void)w;
	return hal_buffer_map(NULL, &at);
}

NEGATIVE(hal_buffer_map, EINVAL, address_null, "address")
{
	return hal_buffer_map(w->buf, NULL);
}

NEGATIVE_ON("ref?map=no", hal_buffer_map, ENOTSUP, device_cannot, "map")
{
	void *at;

	return hal_buffer_map(w->buf, &at);
}

NEGATIVE(hal_buffer_map, EIO, of_the_device, "injected")
{
	void *at;

	NEG_OK(neg_inject(w, HAL_REF_OP_MEM_MAP, 1, EIO));
	return hal_buffer_map(w->buf, &at);
}

NEGATIVE(hal_buffer_recolor, EINVAL, buf_null, "buffer|buf")
{
	return hal_buffer_recolor(NULL, w->queue, 1, NULL, NULL);
}

NEGATIVE(hal_buffer_recolor, EINVAL, queue_null, "queue")
{
	return hal_buffer_recolor(w->buf, NULL, 1, NULL, NULL);
}

NEGATIVE(hal_buffer_recolor, EINVAL, color_of_others, "0x10")
{
	return hal_buffer_recolor(w->buf, w->queue, 0x10, NULL, NULL);
}

NEGATIVE(hal_buffer_recolor, EINVAL, no_parts, "weights")
{
	return hal_buffer_recolor(w->buf, w->queue, 0, no_parts, NULL);
}

NEGATIVE(hal_buffer_recolor, EPERM, others_queue, "the queue to 1")
{
	w->part_desc.color_mask = 0;
	NEG_OK(create(w));
	NEG_OK(hal_queue_create(w->part2, &w->queue_desc, &w->queue2));
	return hal_buffer_recolor(w->buf, w->queue2, 1, NULL, NULL);
}

NEGATIVE_ON("ref", hal_buffer_recolor, ENOTSUP, one_channel, "cannot move")
{
	return hal_buffer_recolor(w->buf, w->queue, 0, NULL, NULL);
}

NEGATIVE(hal_buffer_recolor, EBUSY, mapped, "mapped")
{
	void *at;

	NEG_OK(hal_buffer_map(w->buf, &at));
	return hal_buffer_recolor(w->buf, w->queue, 1, NULL, NULL);
}

/* Of .buf, behind a millisecond of other work. */
static int start_moving(struct neg *w)
{
	int err = neg_make_busy(w);

	return err != 0 ? err : hal_buffer_recolor(w->buf, w->queue, 1, NULL, &w->busy);
}

NEGATIVE(hal_buffer_recolor, EBUSY, moving, "is moving")
{
	NEG_OK(start_moving(w));
	return hal_buffer_recolor(w->buf, w->queue, 2, NULL, NULL);
}

NEGATIVE(hal_buffer_write, EBUSY, moving, "hal_buffer_write: the buffer is moving")
{
	NEG_OK(start_moving(w));
	return hal_buffer_write(w->buf, 0, no_parts, 4);
}

NEGATIVE(hal_buffer_read, EBUSY, moving, "hal_buffer_read: the buffer is moving")
{
	uint32_t word;

	NEG_OK(start_moving(w));
	return hal_buffer_read(w->buf, 0, &word, 4);
}

NEGATIVE(hal_buffer_map, EBUSY, moving, "hal_buffer_map: the buffer is moving")
{
	void *at;

	NEG_OK(start_moving(w));
	return hal_buffer_map(w->buf, &at);
}

NEGATIVE_ON("ref?units=8&colors=4&fold_ns=1000", hal_buffer_recolor, EBUSY, suspended,
	    "is suspended inside")
{
	struct hal_arg arg = {.buffer = w->buf, .bytes = 64};
	struct hal_point quiet;
	int err;

	NEG_OK(hal_queue_create(w->part, &w->queue_desc, &w->queue2));
	w->cmd[0] = hal_cmd_launch(w->slow, &arg, 1);
	NEG_OK(hal_submit(w->queue, &w->submit, &w->busy));
	NEG_OK(hal_device_poll(w->dev, 1000));
	NEG_OK(hal_queue_suspend(w->queue, HAL_SUSPEND_FOLD, &quiet));
	NEG_OK(neg_wait(quiet));
	err = hal_buffer_recolor(w->buf, w->queue2, 1, NULL, NULL);
	NEG_OK(hal_queue_resume(w->queue));
	return err;
}

NEGATIVE(hal_buffer_recolor, ENOSPC, color_full, "colour 0 has 0 of 1")
{
	/* Of 64 granules .buf has one. */
	w->buffer_desc.bytes = 63 * 4096;
	w->buffer_desc.color_mask = 1;
	NEG_OK(buffer(w));
	return hal_buffer_recolor(w->buf, w->queue, 1, NULL, NULL);
}

NEGATIVE(hal_buffer_recolor, ENOSPC, quota, "8192")
{
	w->part_desc.memory_bytes = 8192;
	NEG_OK(create(w));
	NEG_OK(hal_queue_create(w->part2, &w->queue_desc, &w->queue2));
	w->buffer_desc.bytes = 8192;
	NEG_OK(hal_buffer_create(w->part2, &w->buffer_desc, &w->buf2));
	return hal_buffer_recolor(w->buf2, w->queue2, 2, NULL, NULL);
}

NEGATIVE(hal_buffer_recolor, EAGAIN, queue_full, "full")
{
	NEG_OK(neg_make_gated(w));
	while (hal_submit(w->queue, &w->submit, &w->busy) == 0)
		;
	return hal_buffer_recolor(w->buf, w->queue, 1, NULL, NULL);
}

NEGATIVE(hal_buffer_recolor, ENOMEM, of_the_device, "injected")
{
	NEG_OK(neg_inject(w, HAL_REF_OP_MEM_ALLOC, 1, ENOMEM));
	return hal_buffer_recolor(w->buf, w->queue, 1, NULL, NULL);
}

NEGATIVE(hal_buffer_recolor, ECANCELED, queue_over, "suspended for good")
{
	struct hal_point quiet;

	NEG_OK(hal_queue_suspend(w->queue, HAL_SUSPEND_DRAIN | HAL_SUSPEND_FINAL,
				 &quiet));
	NEG_OK(neg_wait(quiet));
	return hal_buffer_recolor(w->buf, w->queue, 1, NULL, NULL);
}

NEGATIVE(hal_buffer_recolor, EIO, of_the_device, "injected")
{
	struct hal_point moved;

	NEG_OK(neg_inject(w, HAL_REF_OP_MEM_SWAP, 1, EIO));
	NEG_OK(hal_buffer_recolor(w->buf, w->queue, 1, NULL, &moved));
	return neg_wait(moved);
}

NEGATIVE(hal_buffer_unmap, EINVAL, buf_null, "buffer|buf")
{
	(void)w;
	return hal_buffer_unmap(NULL);
}

NEGATIVE(hal_buffer_unmap, EINVAL, not_mapped, "map")
{
	return hal_buffer_unmap(w->buf);
}

/* ---- host memory ------------------------------------------------------------------- */

static void *host_at;
static uint8_t host_bytes[64];

NEGATIVE(hal_host_alloc, EINVAL, part_null, "partition|part")
{
	return hal_host_alloc(NULL, 64, &w->buf2, &host_at);
}

NEGATIVE(hal_host_alloc, EINVAL, host_null, "host is NULL")
{
	return hal_host_alloc(w->part, 64, NULL, &host_at);
}

NEGATIVE(hal_host_alloc, EINVAL, address_null, "address is NULL")
{
	return hal_host_alloc(w->part, 64, &w->buf2, NULL);
}

NEGATIVE(hal_host_alloc, EINVAL, no_bytes, "bytes is 0")
{
	return hal_host_alloc(w->part, 0, &w->buf2, &host_at);
}

NEGATIVE_ON("ref", hal_host_alloc, ENOSPC, huge, "left|quota|memory")
{
	return hal_host_alloc(w->part, UINT64_MAX, &w->buf2, &host_at);
}

NEGATIVE(hal_host_register, EINVAL, part_null, "partition|part")
{
	return hal_host_register(NULL, host_bytes, 64, &w->buf2);
}

NEGATIVE(hal_host_register, EINVAL, host_null, "host is NULL")
{
	return hal_host_register(w->part, host_bytes, 64, NULL);
}

NEGATIVE(hal_host_register, EINVAL, address_null, "address is NULL")
{
	return hal_host_register(w->part, NULL, 64, &w->buf2);
}

NEGATIVE(hal_host_register, EINVAL, no_bytes, "bytes is 0")
{
	return hal_host_register(w->part, host_bytes, 0, &w->buf2);
}

NEGATIVE(hal_host_register, EINVAL, wraps_around, "exceed the address space")
{
	return hal_host_register(w->part, host_bytes, UINT64_MAX - 1, &w->buf2);
}

/* Return whether the device is of that backend. */
static bool is_of(const struct neg *w, const char *backend)
{
	return strncmp(w->target, backend, strlen(backend)) == 0;
}

NEGATIVE(hal_host_register, EFAULT, not_mapped, "is not mapped")
{
	if (is_of(w, "ref") || is_of(w, "npu"))
		return neg_skip("a driver that registers memory");
	/* NOLINTNEXTLINE(performance-no-int-to-ptr): no process has memory there. */
	return hal_host_register(w->part, (void *)(uintptr_t)4096, 64, &w->buf2);
}

NEGATIVE(hal_host_register, EBUSY, some_pages, "are registered already")
{
	static char pages[3 * 4096] __attribute__((aligned(4096)));
	struct hal_buffer *other;

	if (is_of(w, "ref") || is_of(w, "npu") || is_of(w, "fpga"))
		return neg_skip("a driver that registers pages");
	NEG_OK(hal_host_register(w->part, pages, 8192, &w->buf2));
	return hal_host_register(w->part, pages + 4096, 8192, &other);
}

NEGATIVE_ON("ref", hal_host_register, ENOSPC, quota, "left|quota|memory")
{
	w->part_desc.memory_bytes = 4096;
	NEG_OK(create(w));
	return hal_host_register(w->part2, host_bytes, 1 << 20, &w->buf2);
}

/* .buf2 is host memory, and a fill of it the command. */
static int host_fill(struct neg *w)
{
	NEG_OK(hal_host_alloc(w->part, 64, &w->buf2, &host_at));
	w->cmd[0] = hal_cmd_fill(w->buf2, 0, 64, 1);
	return 0;
}

NEGATIVE_ON("ref", hal_submit, EINVAL, fill_of_host_memory,
	    "fill: the buffer is host memory")
{
	NEG_OK(host_fill(w));
	return hal_submit(w->queue, &w->submit, NULL);
}

NEGATIVE_ON("ref", hal_sequence_create, EINVAL, fill_of_host_memory,
	    "the buffer is host memory")
{
	NEG_OK(host_fill(w));
	return hal_sequence_create(w->part, &w->submit, &w->seq);
}

NEGATIVE_ON("ref", hal_submit, EINVAL, host_to_host,
	    "source and destination are host memory")
{
	NEG_OK(host_fill(w));
	w->cmd[0] = hal_cmd_copy(w->buf2, 0, w->buf2, 32, 32);
	return hal_submit(w->queue, &w->submit, NULL);
}

NEGATIVE_ON("ref", hal_submit, EINVAL, host_argument,
	    "argument 1: the buffer is host memory")
{
	NEG_OK(host_fill(w));
	w->args[0] = (struct hal_arg){.buffer = w->buf};
	w->args[1] = (struct hal_arg){.buffer = w->buf2};
	w->cmd[0] = hal_cmd_launch(w->kernel, w->args, 2);
	return hal_submit(w->queue, &w->submit, NULL);
}

NEGATIVE_ON("ref", hal_submit, EINVAL, host_range, "32 bytes at offset 33")
{
	NEG_OK(host_fill(w));
	w->cmd[0] = hal_cmd_write(w->buf, 0, w->buf2, 33, 32);
	return hal_submit(w->queue, &w->submit, NULL);
}

NEGATIVE_ON("ref", hal_buffer_write, EINVAL, host_memory, "is host memory")
{
	NEG_OK(host_fill(w));
	return hal_buffer_write(w->buf2, 0, host_bytes, 4);
}

NEGATIVE_ON("ref", hal_buffer_read, EINVAL, host_memory, "is host memory")
{
	NEG_OK(host_fill(w));
	return hal_buffer_read(w->buf2, 0, host_bytes, 4);
}

NEGATIVE_ON("ref", hal_buffer_map, EINVAL, host_memory, "is host memory")
{
	NEG_OK(host_fill(w));
	return hal_buffer_map(w->buf2, &host_at);
}

NEGATIVE_ON("ref?units=8&colors=4", hal_buffer_recolor, EINVAL, host_memory,
	    "is host memory")
{
	NEG_OK(host_fill(w));
	return hal_buffer_recolor(w->buf2, w->queue, 1, NULL, NULL);
}

NEGATIVE_ON("ref", hal_buffer_destroy, EBUSY, registered, "\"write\" of queue")
{
	NEG_OK(hal_host_register(w->part, host_bytes, 64, &w->buf2));
	NEG_OK(neg_make_gated(w));
	w->cmd[0] = hal_cmd_write(w->buf, 0, w->buf2, 0, 64);
	NEG_OK(hal_submit(w->queue, &w->submit, NULL));
	return hal_buffer_destroy(w->buf2);
}

NEGATIVE_ON("ref", hal_buffer_destroy, EBUSY, registered_in_a_sequence,
	    "a recorded sequence")
{
	NEG_OK(hal_host_register(w->part, host_bytes, 64, &w->buf2));
	w->cmd[0] = hal_cmd_write(w->buf, 0, w->buf2, 0, 64);
	NEG_OK(hal_sequence_create(w->part, &w->submit, &w->seq));
	return hal_buffer_destroy(w->buf2);
}
