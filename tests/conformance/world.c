/* SPDX-License-Identifier: Apache-2.0 */
/* Steps that cases are made of; everything made here is put away by conf_close. */
#define _GNU_SOURCE
#include "conformance.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int conf_fail(struct conf *c, const char *file, int line, const char *fmt, ...)
{
	const char *base = strrchr(file, '/');
	va_list ap;
	int n;

	n = snprintf(c->why, sizeof(c->why), "%s:%d: ", base ? base + 1 : file, line);
	va_start(ap, fmt);
	vsnprintf(c->why + n, sizeof(c->why) - (size_t)n, fmt, ap);
	va_end(ap);
	return CONF_FAIL;
}

int conf_unsupported(struct conf *c, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(c->why, sizeof(c->why), fmt, ap);
	va_end(ap);
	return CONF_UNSUPPORTED;
}

int64_t conf_deadline(int64_t ns)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + (int64_t)ts.tv_nsec + ns;
}

int conf_open(struct conf *c)
{
	OK(hal_open(c->target, c->options, &c->dev));
	c->info = (struct hal_device_info)HAL_INIT(hal_device_info);
	OK(hal_device_get_info(c->dev, &c->info));
	return 0;
}

int conf_close(struct conf *c)
{
	int err = 0;

	while (c->queue_count)
		err |= hal_queue_destroy(c->queues[--c->queue_count]);
	while (c->sequence_count)
		err |= hal_sequence_destroy(c->sequences[--c->sequence_count]);
	while (c->ring_count)
		err |= hal_completions_destroy(c->rings[--c->ring_count]);
	while (c->buffer_count)
		err |= hal_buffer_destroy(c->buffers[--c->buffer_count]);
	while (c->timeline_count)
		err |= hal_timeline_destroy(c->timelines[--c->timeline_count]);
	while (c->part_count)
		err |= hal_partition_destroy(c->parts[--c->part_count]);
	err |= hal_program_unload(c->prog);
	c->prog = NULL;
	err |= hal_close(c->dev);
	c->dev = NULL;
	if (err)
		return conf_fail(c, __FILE__, __LINE__, "cannot put away: %s",
				 hal_last_error());
	return 0;
}

uint32_t conf_units(const struct conf *c)
{
	return c->info.unit_rows * c->info.unit_cols;
}

bool conf_virtual(const struct conf *c)
{
	return (c->info.caps & HAL_CAP_VIRTUAL_CLOCK) != 0;
}

bool conf_apart(const struct conf *c)
{
	return conf_virtual(c) && c->info.compute_isolation == HAL_ISOLATION_ENFORCED &&
	       (c->info.colors >= 2 || c->info.kind == HAL_KIND_CPU);
}

/* ---- partitions ------------------------------------------------------------------- */

int conf_part(struct conf *c, const struct hal_partition_desc *desc,
	      struct hal_partition **part)
{
	CHECK(c->part_count < CONF_OBJECTS);
	OK(hal_partition_create(c->dev, desc, part));
	c->parts[c->part_count++] = *part;
	return 0;
}

/* The i-th of n equal parts, with memory channels of its own or with all. */
static int equal_part(struct conf *c, uint32_t i, uint32_t n, bool own_channels,
		      struct hal_partition **part)
{
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	uint32_t each = c->info.unit_cols / n;

	if (n > c->info.partitions_max || !each)
		return conf_unsupported(c, "%u partitions side by side do not fit", n);
	if (c->info.caps & HAL_CAP_GRID) {
		d.rows = (uint16_t)c->info.unit_rows;
		d.cols = (uint16_t)each;
		d.col = (uint16_t)(i * each);
	} else {
		d.units_floor = each;
	}
	d.memory_bytes = c->info.memory_bytes / n / 8192 * 4096;
	/* Channels of its own as well, where there are enough: then nobody waits for
	 * anybody. */
	if (own_channels && n > 1 && (c->info.caps & HAL_CAP_COLORED_MEMORY) &&
	    c->info.colors >= n) {
		uint32_t own = c->info.colors / n;

		d.color_mask = ((UINT64_C(1) << own) - 1) << i * own;
	}
	return conf_part(c, &d, part);
}

int conf_share(struct conf *c, uint32_t i, uint32_t n, struct hal_partition **part)
{
	return equal_part(c, i, n, true, part);
}

int conf_beside(struct conf *c, uint32_t i, uint32_t n, struct hal_partition **part)
{
	return equal_part(c, i, n, false, part);
}

int conf_whole(struct conf *c, struct hal_partition **part)
{
	return conf_share(c, 0, 1, part);
}

static int take_out(void **list, uint32_t *count, void *object)
{
	uint32_t i;

	for (i = 0; i < *count; i++) {
		if (list[i] == object) {
			list[i] = list[--*count];
			return 0;
		}
	}
	return -ENOENT;
}

int conf_part_gone(struct conf *c, struct hal_partition *part)
{
	OK(hal_partition_destroy(part));
	CHECK(!take_out((void **)c->parts, &c->part_count, part));
	return 0;
}

int conf_queue_desc(struct conf *c, struct hal_partition *part,
		    const struct hal_queue_desc *desc, struct hal_queue **q)
{
	CHECK(c->queue_count < CONF_OBJECTS);
	OK(hal_queue_create(part, desc, q));
	c->queues[c->queue_count++] = *q;
	return 0;
}

int conf_queue(struct conf *c, struct hal_partition *part, struct hal_queue **q)
{
	struct hal_queue_desc d = HAL_INIT(hal_queue_desc);

	return conf_queue_desc(c, part, &d, q);
}

int conf_queue_gone(struct conf *c, struct hal_queue *q)
{
	OK(hal_queue_destroy(q));
	CHECK(!take_out((void **)c->queues, &c->queue_count, q));
	return 0;
}

int conf_buffer(struct conf *c, struct hal_partition *part, uint64_t bytes,
		struct hal_buffer **buf)
{
	struct hal_buffer_desc d = HAL_INIT(hal_buffer_desc);

	CHECK(c->buffer_count < CONF_OBJECTS);
	d.bytes = bytes;
	OK(hal_buffer_create(part, &d, buf));
	c->buffers[c->buffer_count++] = *buf;
	return 0;
}

int conf_buffer_gone(struct conf *c, struct hal_buffer *buf)
{
	OK(hal_buffer_destroy(buf));
	CHECK(!take_out((void **)c->buffers, &c->buffer_count, buf));
	return 0;
}

int conf_timeline(struct conf *c, struct hal_timeline **t)
{
	CHECK(c->timeline_count < CONF_OBJECTS);
	OK(hal_timeline_create(c->dev, t));
	c->timelines[c->timeline_count++] = *t;
	return 0;
}

int conf_timeline_gone(struct conf *c, struct hal_timeline *t)
{
	OK(hal_timeline_destroy(t));
	CHECK(!take_out((void **)c->timelines, &c->timeline_count, t));
	return 0;
}

int conf_sequence(struct conf *c, struct hal_partition *part, const struct hal_cmd *cmds,
		  uint32_t n, struct hal_sequence **seq)
{
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);

	CHECK(c->sequence_count < CONF_OBJECTS);
	d.cmds = cmds;
	d.cmd_count = n;
	OK(hal_sequence_create(part, &d, seq));
	c->sequences[c->sequence_count++] = *seq;
	return 0;
}

int conf_sequence_gone(struct conf *c, struct hal_sequence *seq)
{
	OK(hal_sequence_destroy(seq));
	CHECK(!take_out((void **)c->sequences, &c->sequence_count, seq));
	return 0;
}

int conf_ring(struct conf *c, uint32_t entries, struct hal_completions **ring)
{
	CHECK(c->ring_count < CONF_OBJECTS);
	OK(hal_completions_create(c->dev, entries, ring));
	c->rings[c->ring_count++] = *ring;
	return 0;
}

int conf_kernel(struct conf *c, const char *name, struct hal_kernel **k)
{
	if (!c->prog) {
		void *image = NULL;
		size_t size = 0;
		int err;

		CHECK(c->pack->image(&image, &size) == 0);
		err = hal_program_load(c->dev, image, size, &c->prog);
		c->pack->free(image);
		OK(err);
	}
	OK(hal_kernel_find(c->prog, name, k));
	return 0;
}

/* ---- work ------------------------------------------------------------------------- */

int conf_submit_ws(struct conf *c, struct hal_queue *q, const struct hal_cmd *cmds,
		   uint32_t n, const struct hal_point *w, const struct hal_point *s,
		   struct hal_point *done)
{
	struct hal_submit_desc d = HAL_INIT(hal_submit_desc);

	d.cmds = cmds;
	d.cmd_count = n;
	d.waits = w;
	d.wait_count = w != NULL;
	d.signals = s;
	d.signal_count = s != NULL;
	OK(hal_submit(q, &d, done));
	return 0;
}

int conf_submit(struct conf *c, struct hal_queue *q, const struct hal_cmd *cmds,
		uint32_t n, struct hal_point *done)
{
	return conf_submit_ws(c, q, cmds, n, NULL, NULL, done);
}

int conf_wait_raw(struct hal_point p)
{
	return hal_wait(&p, 1, 0, conf_deadline(INT64_C(300) * 1000000000));
}

int conf_wait(struct conf *c, struct hal_point p)
{
	OK(conf_wait_raw(p));
	return 0;
}

int conf_same(struct conf *c, struct hal_buffer *buf, uint64_t offset, const void *data,
	      size_t bytes)
{
	const uint8_t *want = data;
	uint8_t *got = malloc(bytes ? bytes : 1);
	size_t i;
	int err;

	CHECK(got);
	err = hal_buffer_read(buf, offset, got, bytes);
	for (i = 0; !err && i < bytes; i++)
		if (got[i] != want[i])
			break;
	if (!err && i < bytes)
		conf_fail(c, __FILE__, __LINE__, "byte %zu is 0x%02x, not 0x%02x", i,
			  got[i], want[i]);
	free(got);
	OK(err);
	return i < bytes ? CONF_FAIL : 0;
}

int conf_filled(struct conf *c, struct hal_buffer *buf, uint64_t offset, size_t bytes,
		uint32_t pattern)
{
	uint8_t *want = malloc(bytes ? bytes : 1);
	size_t i;
	int r;

	CHECK(want);
	for (i = 0; i < bytes; i++)
		want[i] = (uint8_t)(pattern >> 8 * (i % 4));
	r = conf_same(c, buf, offset, want, bytes);
	free(want);
	return r;
}

int conf_let_start(struct conf *c)
{
	CHECK(hal_device_poll(c->dev, 1000) >= 0);
	return 0;
}

void conf_noise(void *data, size_t bytes, uint32_t seed)
{
	uint8_t *p = data;
	uint32_t x = seed * 2654435761u + 12345u;
	size_t i;

	for (i = 0; i < bytes; i++) {
		x = x * 1664525u + 1013904223u;
		p[i] = (uint8_t)(x >> 24);
	}
}
