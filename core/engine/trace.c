/* SPDX-License-Identifier: Apache-2.0 */
/* trace.c - what ran when, in the Chrome/Perfetto JSON format, in device time. */
#include "engine/trace.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yajl/yajl_gen.h>

#include "util/error.h"

/* Two processes in the viewer: one track a partition's units, one a queue. */
enum {
	PID_UNITS = 1,
	PID_QUEUES = 2,
};

/* Commands of different queues may overlap on one partition's units; the format wants
 * slices of a track to nest, so those that overlap go to the next of its lanes. */
#define LANES 8

struct lanes {
	uint64_t end[LANES];
	uint32_t named;
};

struct trace {
	FILE *file;
	yajl_gen gen;
	bool broken;
	char *path;
	struct lanes *lanes; /* a partition */
};

static void print(void *user, const char *text, size_t length)
{
	struct trace *t = user;

	if (fwrite(text, 1, length, t->file) != length)
		t->broken = true;
}

static void put(struct trace *t, yajl_gen_status status)
{
	if (status != yajl_gen_status_ok)
		t->broken = true;
}

static void put_text(struct trace *t, const char *text)
{
	char plain[160];
	size_t n = 0;

	/* Names come from anywhere, JSON must be UTF-8: what is not ASCII is shown as ?.
	 */
	for (; text[n] != '\0' && n < sizeof(plain) - 1; n++) {
		if ((unsigned char)text[n] < 0x80)
			plain[n] = text[n];
		else
			plain[n] = '?';
	}
	put(t, yajl_gen_string(t->gen, (const unsigned char *)plain, n));
}

static void put_key_text(struct trace *t, const char *key, const char *text)
{
	put_text(t, key);
	put_text(t, text);
}

static void put_key_number(struct trace *t, const char *key, uint64_t n)
{
	char digits[32];

	put_text(t, key);
	format_text(digits, sizeof(digits), "%" PRIu64, n);
	put(t, yajl_gen_number(t->gen, digits, strlen(digits)));
}

/* The format's unit is the microsecond; the digits behind the point are exact. */
static void put_key_time(struct trace *t, const char *key, uint64_t ns)
{
	char digits[48];

	put_text(t, key);
	format_text(digits, sizeof(digits), "%" PRIu64 ".%03" PRIu64, ns / 1000,
		    ns % 1000);
	put(t, yajl_gen_number(t->gen, digits, strlen(digits)));
}

static void begin(struct trace *t, const char *phase, const char *name, uint32_t pid,
		  uint64_t tid)
{
	put(t, yajl_gen_map_open(t->gen));
	put_key_text(t, "ph", phase);
	put_key_text(t, "name", name);
	put_key_number(t, "pid", pid);
	put_key_number(t, "tid", tid);
}

static void end(struct trace *t)
{
	put(t, yajl_gen_map_close(t->gen));
	print(t, "\n", 1);
}

/* process_name, thread_name. */
static void metadata(struct trace *t, const char *what, uint32_t pid, uint64_t tid,
		     const char *name)
{
	begin(t, "M", what, pid, tid);
	put_text(t, "args");
	put(t, yajl_gen_map_open(t->gen));
	put_key_text(t, "name", name);
	put(t, yajl_gen_map_close(t->gen));
	end(t);
}

static uint64_t lane_tid(uint32_t partition, uint32_t lane)
{
	return (uint64_t)partition * LANES + lane + 1;
}

static void name_lane(struct hal_device *dev, const struct hal_partition *part,
		      uint32_t lane)
{
	const struct hal_bk_partition_desc *d = &part->desc;
	char text[128];
	size_t n;

	if ((dev->info.caps & HAL_CAP_GRID) != 0)
		format_text(text, sizeof(text), "%s %ux%u at %u,%u",
			    part->name[0] != '\0' ? part->name : "partition", d->rows,
			    d->cols, d->row, d->col);
	else
		format_text(text, sizeof(text), "%s units %u..%u",
			    part->name[0] != '\0' ? part->name : "partition", d->col,
			    d->col + d->cols - 1u);
	n = strlen(text);
	if (lane > 0)
		format_text(text + n, sizeof(text) - n, " (%u)", lane + 1);
	metadata(dev->trace, "thread_name", PID_UNITS, lane_tid(d->index, lane), text);
}

void trace_partition(struct hal_device *dev, const struct hal_partition *part)
{
	if (dev->trace == NULL)
		return;
	memset(&dev->trace->lanes[part->desc.index], 0, sizeof(struct lanes));
	dev->trace->lanes[part->desc.index].named = 1;
	name_lane(dev, part, 0);
}

void trace_queue(struct hal_device *dev, const struct hal_queue *queue)
{
	char text[128];

	if (dev->trace == NULL)
		return;
	format_text(text, sizeof(text), "%s queue %u",
		    queue->part->name[0] != '\0' ? queue->part->name : "partition",
		    queue->obj.id);
	metadata(dev->trace, "thread_name", PID_QUEUES, queue->obj.id + 1, text);
}

static void slice(struct trace *t, const char *name, uint32_t pid, uint64_t tid,
		  uint64_t start, uint64_t stop)
{
	begin(t, "X", name, pid, tid);
	put_key_time(t, "ts", start);
	put_key_time(t, "dur", stop > start ? stop - start : 0);
}

void trace_command(struct hal_device *dev, const struct flight *f, const char *name,
		   uint64_t submit_ns)
{
	struct trace *t = dev->trace;
	const struct hal_partition *part = f->queue->part;
	struct lanes *l;
	uint32_t lane = 0;

	if (t == NULL)
		return;
	l = &t->lanes[part->desc.index];
	while (lane < LANES - 1 && l->end[lane] > f->start_ns)
		lane++;
	if (lane >= l->named) {
		name_lane(dev, part, lane);
		l->named = lane + 1;
	}
	if (f->end_ns > l->end[lane])
		l->end[lane] = f->end_ns;
	slice(t, name, PID_UNITS, lane_tid(part->desc.index, lane), f->start_ns,
	      f->end_ns);
	end(t);
	slice(t, name, PID_QUEUES, f->queue->obj.id + 1, f->start_ns, f->end_ns);
	put_text(t, "args");
	put(t, yajl_gen_map_open(t->gen));
	put_key_number(t, "submitted_ns", submit_ns);
	put_key_number(t, "ready_ns", f->ready_ns);
	if (f->status != 0)
		put_key_text(t, "error", hal_strerror(f->status));
	put(t, yajl_gen_map_close(t->gen));
	end(t);
}

void trace_instant(struct hal_device *dev, const struct hal_queue *queue,
		   const char *name, uint64_t at_ns)
{
	struct trace *t = dev->trace;

	if (t == NULL)
		return;
	begin(t, "i", name, PID_QUEUES, queue->obj.id + 1);
	put_key_time(t, "ts", at_ns);
	put_key_text(t, "s", "t");
	end(t);
}

void trace_span(struct hal_device *dev, const struct hal_queue *queue, const char *name,
		uint64_t start_ns, uint64_t end_ns)
{
	struct trace *t = dev->trace;

	if (t == NULL)
		return;
	/* Asynchronous: it overlaps the command that is stopped. */
	begin(t, "b", name, PID_QUEUES, queue->obj.id + 1);
	put_key_text(t, "cat", "suspend");
	put_key_number(t, "id", queue->obj.id);
	put_key_time(t, "ts", start_ns);
	end(t);
	begin(t, "e", name, PID_QUEUES, queue->obj.id + 1);
	put_key_text(t, "cat", "suspend");
	put_key_number(t, "id", queue->obj.id);
	put_key_time(t, "ts", end_ns);
	end(t);
}

static void put_counter(struct trace *t, const struct hal_partition *part,
			const char *what, uint64_t value, uint64_t at)
{
	char name[96];

	format_text(name, sizeof(name), "%s %u %s", what, part->desc.index, part->name);
	begin(t, "C", name, PID_UNITS, 0);
	put_key_time(t, "ts", at);
	put_text(t, "args");
	put(t, yajl_gen_map_open(t->gen));
	put_key_number(t, what, value);
	put(t, yajl_gen_map_close(t->gen));
	end(t);
}

void trace_depth(struct hal_device *dev, const struct hal_partition *part, uint64_t at)
{
	if (dev->trace != NULL)
		put_counter(dev->trace, part, "commands on device", part->inflight, at);
}

void trace_memory(struct hal_device *dev, const struct hal_partition *part)
{
	if (dev->trace != NULL)
		put_counter(dev->trace, part, "memory bytes",
			    counter_get(&part->memory_used), dev->now);
}

static void trace_free(struct trace *t)
{
	if (t->gen != NULL)
		yajl_gen_free(t->gen);
	free(t->lanes);
	free(t->path);
	free(t);
}

static void trace_head(struct hal_device *dev)
{
	struct trace *t = dev->trace;
	char text[96];

	put(t, yajl_gen_map_open(t->gen));
	put_key_text(t, "displayTimeUnit", "ns");
	put_text(t, "traceEvents");
	put(t, yajl_gen_array_open(t->gen));
	format_text(text, sizeof(text), "%s units", dev->name);
	metadata(t, "process_name", PID_UNITS, 0, text);
	format_text(text, sizeof(text), "%s queues", dev->name);
	metadata(t, "process_name", PID_QUEUES, 0, text);
	hal_list_for_each (p, &dev->partitions) {
		struct hal_partition *part =
			container_of(p, struct hal_partition, on_device);

		trace_partition(dev, part);
		hal_list_for_each (q, &part->queues)
			trace_queue(dev, container_of(q, struct hal_queue, on_partition));
	}
}

/* Ends of commands are looked at more closely while a trace is written. */
static void queues_traced(struct hal_device *dev, bool traced)
{
	hal_list_for_each (p, &dev->partitions) {
		struct hal_partition *part =
			container_of(p, struct hal_partition, on_device);

		hal_list_for_each (it, &part->queues) {
			struct hal_queue *q =
				container_of(it, struct hal_queue, on_partition);

			q->slow &= ~SLOW_TRACE;
			if (traced)
				q->slow |= SLOW_TRACE;
		}
	}
}

int trace_make(const struct hal_device *dev, const char *path, struct trace **out)
{
	struct trace *t = calloc(1, sizeof(*t));
	int err;

	if (t == NULL)
		return fail(ENOMEM, "no memory for a trace");
	t->lanes = calloc(dev->info.partitions_max + 1, sizeof(*t->lanes));
	t->gen = yajl_gen_alloc(NULL);
	t->path = strdup(path);
	if (t->lanes == NULL || t->gen == NULL || t->path == NULL) {
		trace_free(t);
		return fail(ENOMEM, "no memory for a trace");
	}
	t->file = fopen(path, "we");
	if (t->file == NULL) {
		err = fail(errno, "trace %s: %s", path, hal_strerror(errno));
		trace_free(t);
		return err;
	}
	(void)yajl_gen_config(t->gen, yajl_gen_print_callback, print, t);
	*out = t;
	return 0;
}

void trace_begin(struct hal_device *dev, struct trace *t)
{
	dev->trace = t;
	queues_traced(dev, true);
	trace_head(dev);
}

struct trace *trace_end(struct hal_device *dev)
{
	struct trace *t = dev->trace;

	dev->trace = NULL;
	queues_traced(dev, false);
	return t;
}

int trace_close(struct trace *t)
{
	int err = 0;

	put(t, yajl_gen_array_close(t->gen));
	put(t, yajl_gen_map_close(t->gen));
	print(t, "\n", 1);
	if (fclose(t->file) != 0)
		t->broken = true;
	if (t->broken)
		err = fail(EIO, "trace %s could not be written in full", t->path);
	trace_free(t);
	return err;
}
