/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies between host memory and buffers of the NPU, beside a partition's slot and in it:
 * which of them overlap with what, by device time; that bytes are right when slots run
 * out, when a partition needs the slot that copies, when a limit is set, and when host
 * memory bounces.  The fast engine and, where its model is built, the RTL take the same
 * cycles.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "npu_test.h"

enum { BYTES = 48 << 10, PARTS = 4 };

struct tenant {
	struct hal_partition *part;
	struct hal_queue *up, *down, *other;
	struct hal_buffer *a, *b, *host;
	uint8_t *at;
};

static struct hal_device *opened(const char *target)
{
	struct hal_device *dev;

	OK(hal_open(target, NULL, &dev));
	return dev;
}

static void noise(uint8_t *data, uint32_t seed)
{
	for (uint32_t i = 0; i < BYTES; i++) {
		seed = seed * 1664525u + 1013904223u;
		data[i] = (uint8_t)(seed >> 24);
	}
}

static struct hal_buffer *buffer(struct hal_partition *part)
{
	struct hal_buffer_desc d = HAL_INIT(hal_buffer_desc);
	struct hal_buffer *b;

	d.bytes = BYTES;
	OK(hal_buffer_create(part, &d, &b));
	return b;
}

static struct hal_queue *queue(struct hal_partition *part)
{
	struct hal_queue_desc d = HAL_INIT(hal_queue_desc);
	struct hal_queue *q;

	OK(hal_queue_create(part, &d, &q));
	return q;
}

/* Of so many columns from col on; colors: 0 is all. */
static void begin(struct hal_device *dev, struct tenant *t, uint16_t col, uint16_t cols,
		  uint64_t colors)
{
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	void *address;

	d.col = col;
	d.rows = 16;
	d.cols = cols;
	d.color_mask = colors;
	OK(hal_partition_create(dev, &d, &t->part));
	t->up = queue(t->part);
	t->down = queue(t->part);
	t->other = queue(t->part);
	t->a = buffer(t->part);
	t->b = buffer(t->part);
	OK(hal_host_alloc(t->part, 2 * BYTES, &t->host, &address));
	t->at = address;
	noise(t->at, 1);
}

static void end(struct tenant *t)
{
	OK(hal_queue_destroy(t->up));
	OK(hal_queue_destroy(t->down));
	OK(hal_queue_destroy(t->other));
	OK(hal_buffer_destroy(t->a));
	OK(hal_buffer_destroy(t->b));
	OK(hal_buffer_destroy(t->host));
	OK(hal_partition_destroy(t->part));
}

static struct hal_point give(struct hal_queue *q, struct hal_cmd cmd)
{
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);
	struct hal_point done;

	d.cmds = &cmd;
	d.cmd_count = 1;
	OK(hal_submit(q, &d, &done));
	return done;
}

static void wait_for(struct hal_point p)
{
	OK(hal_wait(&p, 1, 0, HAL_FOREVER));
}

/* Cycles of a write, a read and a fill, each in its queue, given at once. */
static uint64_t three(struct hal_device *dev, struct tenant *t, bool write, bool read,
		      bool fill)
{
	uint64_t from = hal_device_get_time(dev);
	struct hal_point p[3];
	uint32_t n = 0;

	if (write)
		p[n++] = give(t->up, hal_cmd_write(t->a, 0, t->host, 0, BYTES));
	if (read)
		p[n++] = give(t->down, hal_cmd_read(t->host, BYTES, t->b, 0, BYTES));
	if (fill)
		p[n++] =
			give(t->other, hal_cmd_copy(t->b, 0, t->b, BYTES / 2, BYTES / 2));
	OK(hal_wait(p, n, 0, HAL_FOREVER));
	return hal_device_get_time(dev) - from;
}

/* Whether all three take hardly more than the longest; out: cycles of all three. */
static bool overlap(struct hal_device *dev, struct tenant *t, uint64_t *out)
{
	uint64_t most = 0;

	for (uint32_t i = 0; i < 3; i++) {
		uint64_t one = three(dev, t, i == 0, i == 1, i == 2);

		most = one > most ? one : most;
	}
	*out = three(dev, t, true, true, true);
	return *out < most + most / 10;
}

static void right(struct tenant *t)
{
	uint8_t want[BYTES], got[BYTES];

	noise(want, 1);
	wait_for(give(t->up, hal_cmd_write(t->a, 0, t->host, 0, BYTES)));
	OK(hal_buffer_read(t->a, 0, got, BYTES));
	assert_memory_equal(got, want, BYTES);
	memset(t->at + BYTES, 0, BYTES);
	wait_for(give(t->down, hal_cmd_read(t->host, BYTES, t->a, 0, BYTES)));
	assert_memory_equal(t->at + BYTES, want, BYTES);
}

/* With free slots the three overlap; without any they do not; and again with them. */
static uint64_t slots_run_out(const char *target)
{
	struct hal_device *dev = opened(target);
	struct tenant t[PARTS];
	uint64_t cycles, sum = 0;

	for (uint16_t i = 0; i < PARTS; i++) {
		begin(dev, &t[i], (uint16_t)(4 * i), 4, 0);
		assert_int_equal(overlap(dev, &t[0], &cycles), i < 2);
		sum = sum * 31 + cycles;
		for (uint16_t k = 0; k <= i; k++)
			right(&t[k]);
	}
	for (uint16_t i = PARTS - 1; i > 0; i--)
		end(&t[i]);
	assert_true(overlap(dev, &t[0], &cycles));
	sum = sum * 31 + cycles;
	end(&t[0]);
	sum = sum * 31 + hal_device_get_time(dev);
	OK(hal_close(dev));
	return sum;
}

/* A new partition's slot is at work for another one's copies, at each point of them. */
static uint64_t slot_is_needed(const char *target)
{
	uint8_t want[BYTES], got[BYTES];
	uint64_t sum = 0;

	noise(want, 1);
	for (uint32_t at = 0; at < 3200; at += 397) {
		struct hal_device *dev = opened(target);
		struct tenant t[PARTS];
		struct hal_point p[3];

		begin(dev, &t[0], 0, 4, 0);
		OK(hal_buffer_write(t[0].b, 0, want, BYTES));
		memset(t[0].at + BYTES, 0, BYTES);
		p[0] = give(t[0].up, hal_cmd_write(t[0].a, 0, t[0].host, 0, BYTES));
		p[1] = give(t[0].down, hal_cmd_read(t[0].host, BYTES, t[0].b, 0, BYTES));
		/* Behind the read in its queue, in the partition's slot. */
		p[2] = give(t[0].down, hal_cmd_fill(t[0].b, 0, BYTES, 7));
		assert_true(hal_device_poll(dev, at + 1) >= 0);
		for (uint16_t i = 1; i < PARTS; i++)
			begin(dev, &t[i], (uint16_t)(4 * i), 4, 0);
		OK(hal_wait(p, 3, 0, HAL_FOREVER));
		OK(hal_buffer_read(t[0].a, 0, got, BYTES));
		assert_memory_equal(got, want, BYTES);
		assert_memory_equal(t[0].at + BYTES, want, BYTES);
		OK(hal_buffer_read(t[0].b, 0, got, 4));
		assert_memory_equal(got, "\7\0\0\0", 4);
		for (uint16_t i = 0; i < PARTS; i++)
			right(&t[i]);
		sum = sum * 31 + hal_device_get_time(dev);
		for (uint16_t i = 0; i < PARTS; i++)
			end(&t[i]);
		OK(hal_close(dev));
	}
	return sum;
}

/* Bytes bounce: on channels of which no two granules lie side by side, and of memory of
 * the program's own. */
static uint64_t bounces(const char *target)
{
	static uint8_t mine[BYTES + 1];
	struct hal_device *dev = opened(target);
	struct hal_buffer *host;
	struct tenant t;
	uint64_t sum;

	begin(dev, &t, 0, 16, 2);
	right(&t);
	OK(hal_host_register(t.part, mine + 1, BYTES, &host));
	for (uint32_t i = 0; i < 5; i++) {
		noise(mine + 1, i);
		give(t.up, hal_cmd_write(t.a, 0, host, 0, BYTES));
		wait_for(give(t.up, hal_cmd_read(t.host, BYTES, t.a, 0, BYTES)));
		assert_memory_equal(t.at + BYTES, mine + 1, BYTES);
	}
	OK(hal_buffer_destroy(host));
	sum = hal_device_get_time(dev);
	end(&t);
	OK(hal_close(dev));
	return sum;
}

/* Both in the partition's own ring: a write bounces when the read before it, of the same
 * bytes of host memory, has ended.  The fast engine stores all that at the end of the
 * read, so the RTL alone can go wrong. */
static uint64_t bounce_waits(const char *target)
{
	static uint8_t mine[BYTES];
	struct hal_device *dev = opened(target);
	uint8_t want[BYTES], got[BYTES];
	struct hal_buffer *host;
	struct hal_point p;
	struct tenant t;
	uint64_t sum;

	begin(dev, &t, 0, 16, 0);
	memset(mine, 0, sizeof(mine));
	OK(hal_host_register(t.part, mine, BYTES, &host));
	noise(want, 5);
	OK(hal_buffer_write(t.a, 0, want, BYTES));
	p = give(t.up, hal_cmd_read(host, 0, t.a, 0, BYTES));
	assert_true(hal_device_poll(dev, 14000) >= 0);
	assert_int_equal(hal_wait(&p, 1, 0, 0), -ETIMEDOUT);
	wait_for(give(t.up, hal_cmd_write(t.b, 0, host, 0, BYTES)));
	assert_memory_equal(mine, want, BYTES);
	OK(hal_buffer_read(t.b, 0, got, BYTES));
	assert_memory_equal(got, want, BYTES);
	OK(hal_buffer_destroy(host));
	sum = hal_device_get_time(dev);
	end(&t);
	OK(hal_close(dev));
	return sum;
}

/* A limit holds for copies, too: they come to the partition's own slot, whose bucket it
 * is, with what is under way. */
static uint64_t limited(const char *target)
{
	struct hal_device *dev = opened(target);
	struct npu_partition *part;
	struct hal_point p;
	struct tenant t;
	uint64_t sum;

	begin(dev, &t, 0, 16, 0);
	p = give(t.up, hal_cmd_write(t.a, 0, t.host, 0, BYTES));
	assert_true(hal_device_poll(dev, 700) >= 0);
	part = ((struct npu_device *)hal_device_get_native(dev))->parts[0];
	assert_true(part->copier[0]->slot == 3 && part->copier[0]->count == 1);
	OK(npu_limit(hal_device_get_native(dev), part, 512, 64));
	assert_true(part->copier[0]->slot == NPU_NO_SLOT && part->count == 1);
	wait_for(p);
	right(&t);
	assert_true(part->copier[0]->slot == NPU_NO_SLOT);
	OK(npu_limit(hal_device_get_native(dev), part, 0, 0));
	right(&t);
	assert_true(part->copier[0]->slot != NPU_NO_SLOT);
	sum = hal_device_get_time(dev);
	end(&t);
	OK(hal_close(dev));
	return sum;
}

/* The same cycles on both engines; in a test of a false model or in an emulator without
 * the RTL. */
static void on_engines(uint64_t (*fn)(const char *target), const char *more)
{
	char target[256];
	struct hal_device *dev;
	uint64_t fast;

	snprintf(target, sizeof(target), "npu:0?model=%s&%s", FAST, more);
	fast = fn(target);
	snprintf(target, sizeof(target), "npu:0?%s", more);
	if (getenv("LD_PRELOAD") || hal_open(target, NULL, &dev) == -ENODEV)
		return;
	OK(hal_close(dev));
	assert_int_equal(fn(target), fast);
}

static void test_slots_run_out(void **state)
{
	(void)state;
	on_engines(slots_run_out, "memory_size=8M&memory=ideal");
}

static void test_slot_is_needed(void **state)
{
	(void)state;
	on_engines(slot_is_needed, "memory_size=8M");
}

static void test_bounces(void **state)
{
	(void)state;
	on_engines(bounces, "memory_size=8M");
}

static void test_bounce_waits(void **state)
{
	(void)state;
	on_engines(bounce_waits, "memory_size=8M&turns=64");
}

static void test_limited(void **state)
{
	(void)state;
	on_engines(limited, "memory_size=8M");
}

/* Where a slot more would change what a partition may have, or what is recorded. */
static void test_own_slot(void **state)
{
	static const char *const more[] = {"turns=64", "turns=0"};
	struct npu_partition *part;
	struct hal_device *dev;
	struct tenant t;

	(void)state;
	for (int i = 0; i < 2; i++) {
		char target[256];

		snprintf(target, sizeof(target), "npu:0?model=%s&memory_size=8M&%s", FAST,
			 more[i]);
		OK(hal_open(target, NULL, &dev));
		begin(dev, &t, 0, 16, 0);
		right(&t);
		part = ((struct npu_device *)hal_device_get_native(dev))->parts[0];
		assert_int_equal(part->copier[0] != NULL, i);
		end(&t);
		OK(hal_close(dev));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_slots_run_out),
		cmocka_unit_test(test_slot_is_needed),
		cmocka_unit_test(test_bounces),
		cmocka_unit_test(test_limited),
		cmocka_unit_test(test_bounce_waits),
		cmocka_unit_test(test_own_slot),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
