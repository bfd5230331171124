/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers: host copies, mapping, colours, lifetime. */
#define _GNU_SOURCE
#include "conformance.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int write_read(struct conf *c)
{
	struct hal_partition *p;
	struct hal_buffer *b;
	uint8_t data[8192];

	conf_noise(data, sizeof(data), 1);
	STEP(conf_whole(c, &p));
	STEP(conf_buffer(c, p, sizeof(data), &b));
	OK(hal_buffer_write(b, 0, data, sizeof(data)));
	return conf_same(c, b, 0, data, sizeof(data));
}

static int odd_offsets(struct conf *c)
{
	static const uint32_t at[] = {1, 2, 3, 5, 31, 61, 127, 1021, 4093, 8191};
	struct hal_partition *p;
	struct hal_buffer *b;
	uint8_t data[8209], part[17];
	size_t i;

	conf_noise(data, sizeof(data), 2);
	STEP(conf_whole(c, &p));
	STEP(conf_buffer(c, p, sizeof(data), &b));
	OK(hal_buffer_write(b, 0, data, sizeof(data)));
	for (i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
		conf_noise(part, sizeof(part), 100 + (uint32_t)i);
		OK(hal_buffer_write(b, at[i], part, sizeof(part)));
		memcpy(data + at[i], part, sizeof(part));
		STEP(conf_same(c, b, at[i], part, sizeof(part)));
	}
	return conf_same(c, b, 0, data, sizeof(data));
}

static int sizes(struct conf *c)
{
	static const uint32_t bytes[] = {1, 3, 4, 63, 4095, 4096, 4097, 65536, 99991};
	struct hal_partition *p;
	struct hal_buffer *b;
	uint8_t *data = malloc(99991);
	size_t i;
	int r = 0;

	CHECK(data);
	r = conf_whole(c, &p);
	for (i = 0; !r && i < sizeof(bytes) / sizeof(bytes[0]); i++) {
		conf_noise(data, bytes[i], (uint32_t)i);
		r = conf_buffer(c, p, bytes[i], &b);
		if (!r && hal_buffer_get_bytes(b) != bytes[i])
			r = conf_fail(c, __FILE__, __LINE__, "%llu bytes, not %u",
				      (unsigned long long)hal_buffer_get_bytes(b),
				      bytes[i]);
		if (!r && hal_buffer_write(b, 0, data, bytes[i]))
			r = conf_fail(c, __FILE__, __LINE__, "write: %s",
				      hal_last_error());
		if (!r)
			r = conf_same(c, b, 0, data, bytes[i]);
	}
	free(data);
	return r;
}

static int apart(struct conf *c)
{
	enum { N = 16, BYTES = 1000 };
	struct hal_buffer *b[N];
	struct hal_partition *p;
	uint8_t data[BYTES];
	uint32_t i;

	STEP(conf_whole(c, &p));
	for (i = 0; i < N; i++)
		STEP(conf_buffer(c, p, BYTES, &b[i]));
	for (i = 0; i < N; i++) {
		conf_noise(data, BYTES, i);
		OK(hal_buffer_write(b[i], 0, data, BYTES));
	}
	for (i = 0; i < N; i++) {
		conf_noise(data, BYTES, i);
		STEP(conf_same(c, b[i], 0, data, BYTES));
	}
	return 0;
}

static int range(struct conf *c)
{
	struct hal_partition *p;
	struct hal_buffer *b;
	uint8_t data[100] = {0};

	STEP(conf_whole(c, &p));
	STEP(conf_buffer(c, p, 100, &b));
	ERR(hal_buffer_write(b, 1, data, 100), -EINVAL);
	ERR(hal_buffer_read(b, 100, data, 1), -EINVAL);
	ERR(hal_buffer_read(b, UINT64_MAX, data, 2), -EINVAL);
	ERR(hal_buffer_write(b, 2, data, UINT64_MAX), -EINVAL);
	OK(hal_buffer_write(b, 100, data, 0));
	return 0;
}

/* Until there is no more, and all of it again. */
static int all_memory(struct conf *c)
{
	struct hal_buffer_desc d = HAL_INIT(hal_buffer_desc);
	struct hal_partition_desc pd = HAL_INIT(hal_partition_desc);
	struct hal_device_info info = HAL_INIT(hal_device_info);
	struct hal_partition *p;
	struct hal_buffer *b[65];
	uint32_t round, i, first = 0;
	int err = 0;

	pd.units_floor = 1;
	STEP(conf_part(c, &pd, &p));
	d.bytes = c->info.memory_free / 32;
	for (round = 0; round < 2; round++) {
		for (i = 0; i < 65; i++) {
			err = hal_buffer_create(p, &d, &b[i]);
			if (err)
				break;
		}
		/* Whatever happens below, nothing stays behind. */
		OK(hal_device_get_info(c->dev, &info));
		while (i-- > 0)
			OK(hal_buffer_destroy(b[i]));
		EQ(err, -ENOSPC);
		CHECK(info.memory_free < c->info.memory_free);
		OK(hal_device_get_info(c->dev, &info));
		if (!round)
			first = (uint32_t)(info.memory_free / d.bytes);
		EQ(info.memory_free / d.bytes, first);
	}
	return 0;
}

enum { CLEAN_SIZES = 6, CLEAN_MOST = 1 << 18 };

/* Of a tenant's: all zeros at first; then the host fills some, the device the others. */
static int clean_then_used(struct conf *c, struct hal_queue *q, struct hal_buffer *b,
			   uint32_t bytes, uint32_t seed)
{
	static const uint8_t zero[CLEAN_MOST];
	static uint8_t data[CLEAN_MOST];
	struct hal_cmd cmd = hal_cmd_fill(b, 0, bytes & ~3u, 0xb16b00b5);
	struct hal_point done;

	STEP(conf_same(c, b, 0, zero, bytes));
	conf_noise(data, bytes, seed);
	OK(hal_buffer_write(b, 0, data, bytes));
	if (seed % 2 == 0)
		return 0;
	STEP(conf_submit(c, q, &cmd, 1, &done));
	return conf_wait(c, done);
}

/* What a tenant leaves, those after it do not find. */
static int clean(struct conf *c)
{
	static const uint32_t bytes[CLEAN_SIZES] = {1,     67,    4096,
						    65536, 99991, CLEAN_MOST};
	struct hal_buffer *b[CLEAN_SIZES];
	struct hal_partition *p;
	struct hal_queue *q;

	for (uint32_t tenant = 0; tenant < 3; tenant++) {
		STEP(conf_whole(c, &p));
		STEP(conf_queue(c, p, &q));
		for (uint32_t i = 0; i < CLEAN_SIZES; i++)
			STEP(conf_buffer(c, p, bytes[i], &b[i]));
		for (uint32_t i = 0; i < CLEAN_SIZES; i++)
			STEP(clean_then_used(c, q, b[i], bytes[i], i));
		for (uint32_t i = 0; i < CLEAN_SIZES; i++)
			STEP(conf_buffer_gone(c, b[i]));
		STEP(conf_queue_gone(c, q));
		STEP(conf_part_gone(c, p));
	}
	return 0;
}

static int map(struct conf *c)
{
	struct hal_buffer_desc d = HAL_INIT(hal_buffer_desc);
	struct hal_partition *p;
	struct hal_buffer *b;
	struct hal_point done;
	struct hal_queue *q;
	struct hal_cmd cmd;
	uint8_t data[256];
	void *at = NULL;

	if (!(c->info.caps & HAL_CAP_MAP))
		return conf_unsupported(c, "buffers cannot be mapped");
	STEP(conf_whole(c, &p));
	STEP(conf_queue(c, p, &q));
	d.bytes = 256;
	d.flags = HAL_BUFFER_MAPPABLE;
	OK(hal_buffer_create(p, &d, &b));
	c->buffers[c->buffer_count++] = b;
	OK(hal_buffer_map(b, &at));
	CHECK(at);
	conf_noise(data, sizeof(data), 3);
	memcpy(at, data, sizeof(data));
	STEP(conf_same(c, b, 0, data, sizeof(data)));
	cmd = hal_cmd_fill(b, 0, 128, 0xdeadbeef);
	STEP(conf_submit(c, q, &cmd, 1, &done));
	STEP(conf_wait(c, done));
	CHECK(((uint8_t *)at)[0] == 0xef && ((uint8_t *)at)[127] == 0xde);
	CHECK(memcmp((uint8_t *)at + 128, data + 128, 128) == 0);
	OK(hal_buffer_unmap(b));
	OK(hal_buffer_map(b, &at));
	CHECK(((uint8_t *)at)[0] == 0xef);
	OK(hal_buffer_unmap(b));
	return 0;
}

static int mappable_refused(struct conf *c)
{
	struct hal_buffer_desc d = HAL_INIT(hal_buffer_desc);
	struct hal_partition *p;
	struct hal_buffer *b;

	if (c->info.caps & HAL_CAP_MAP)
		return conf_unsupported(c, "buffers can be mapped");
	STEP(conf_whole(c, &p));
	d.bytes = 256;
	d.flags = HAL_BUFFER_MAPPABLE;
	ERR(hal_buffer_create(p, &d, &b), -ENOTSUP);
	return 0;
}

/* The partition's colours bound what its buffers may use, and how much there is. */
static int colors(struct conf *c)
{
	struct hal_partition_desc pd = HAL_INIT(hal_partition_desc);
	struct hal_buffer_desc d = HAL_INIT(hal_buffer_desc);
	struct hal_partition *p;
	struct hal_buffer *b;
	uint8_t data[20000];

	if (!(c->info.caps & HAL_CAP_COLORED_MEMORY) || c->info.colors < 2)
		return conf_unsupported(c, "no coloured memory");
	pd.units_floor = 1;
	pd.color_mask = 3;
	STEP(conf_part(c, &pd, &p));
	d.bytes = sizeof(data);
	d.color_mask = 2;
	OK(hal_buffer_create(p, &d, &b));
	c->buffers[c->buffer_count++] = b;
	conf_noise(data, sizeof(data), 4);
	OK(hal_buffer_write(b, 0, data, sizeof(data)));
	STEP(conf_same(c, b, 0, data, sizeof(data)));
	d.color_mask = 4;
	ERR(hal_buffer_create(p, &d, &b), -EINVAL);
	/* One of n colours has about an nth of the memory. */
	d.color_mask = 1;
	d.bytes = c->info.memory_bytes / c->info.colors + 65536;
	ERR(hal_buffer_create(p, &d, &b), -ENOSPC);
	return 0;
}

static int destroy_after_submit(struct conf *c)
{
	struct hal_partition *p;
	struct hal_buffer *a, *b;
	struct hal_point done;
	struct hal_queue *q;
	struct hal_cmd cmd[2];
	uint8_t data[4096];

	STEP(conf_whole(c, &p));
	STEP(conf_queue(c, p, &q));
	STEP(conf_buffer(c, p, 4096, &a));
	STEP(conf_buffer(c, p, 4096, &b));
	conf_noise(data, sizeof(data), 5);
	OK(hal_buffer_write(a, 0, data, 4096));
	cmd[0] = hal_cmd_copy(b, 0, a, 0, 4096);
	cmd[1] = hal_cmd_fill(a, 0, 4096, 0);
	STEP(conf_submit(c, q, cmd, 2, &done));
	STEP(conf_buffer_gone(c, a));
	/* Its memory is not given to another while it is in use. */
	STEP(conf_buffer(c, p, 4096, &a));
	OK(hal_buffer_write(a, 0, data + 1, 4095));
	STEP(conf_wait(c, done));
	STEP(conf_same(c, b, 0, data, 4096));
	STEP(conf_same(c, a, 0, data + 1, 4095));
	return 0;
}

static int gone_with_nothing_left(struct conf *c)
{
	struct hal_partition_info i = HAL_INIT(hal_partition_info);
	struct hal_partition *p;
	struct hal_buffer *b;
	int n;

	STEP(conf_whole(c, &p));
	for (n = 0; n < 100; n++) {
		STEP(conf_buffer(c, p, 12345, &b));
		STEP(conf_buffer_gone(c, b));
	}
	OK(hal_partition_get_info(p, &i));
	EQ(i.memory_used, 0);
	OK(hal_buffer_destroy(NULL));
	return 0;
}

const struct conf_case conf_buffer_cases[] = {
	{"buffer.write_read", write_read},
	{"buffer.odd_offsets", odd_offsets},
	{"buffer.sizes", sizes},
	{"buffer.apart", apart},
	{"buffer.range", range},
	{"buffer.all_memory", all_memory},
	{"buffer.clean", clean},
	{"buffer.map", map},
	{"buffer.mappable_refused", mappable_refused},
	{"buffer.colors", colors},
	{"buffer.destroy_after_submit", destroy_after_submit},
	{"buffer.gone_with_nothing_left", gone_with_nothing_left},
	{NULL, NULL},
};
