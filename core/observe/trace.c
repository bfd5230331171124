/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace.c - what ran when, in the Chrome/Perfetto JSON format, in device time.
 *
 * Two processes in the viewer.  "units": who owned them when, a track a partition with
 * what ran there, counters.  "queues": for each queue a track of what was submitted and
 * one of what ran; an arrow leads from each submission to its commands on the units.
 *
 * Only what moves or computes is a slice; a timestamp or a NOP is an instant.
 */
#include "observe/trace.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <yajl/yajl_gen.h>

#include "lib/utf8.h"
#include "util/error.h"
#include "util/output.h"

enum {
	PID_UNITS = 1,
	PID_QUEUES = 2,
};

/* Commands of different queues may overlap on one partition's units; the format wants
 * slices of a track to nest, so those that overlap go to the next of its lanes.  As many
 * as hal.partition_inflight lets a partition have on the device. */
#define LANES        64u
#define CHANNELS     64u /* bits of a mask of colours */
#define BUFFER_BYTES 65536u
/* Behind so much of it an event does not begin: none is longer than the rest. */
#define BUFFER_FULL (BUFFER_BYTES - 8192u)
/* The device's counters are asked for no more often: looking may cost it time. */
#define SAMPLE_NS 2000u

struct lane {
	uint64_t end;
	uint64_t tid; /* 0: not used yet */
};

/* What a device has counted. */
struct total {
	bool known;
	uint64_t value;
	uint64_t written; /* thousandths a nanosecond, since the time before */
};

/* The partition of that number. */
struct holder {
	const struct hal_partition *part; /* NULL: there is none */
	uint64_t span;                    /* of its place */
	char place[96];
	uint32_t working; /* units, while the device has commands of it */
	struct total units;
	struct lane lanes[LANES];
};

struct trace {
	int fd;
	int err; /* the first failure to write; nothing is written after it */
	bool seekable;
	uint64_t written; /* bytes */
	uint64_t whole;   /* of them, up to where the last end stood; 0: none did */
	yajl_gen gen;
	bool broken;
	char *path;
	uint64_t events, lost;
	uint64_t ids;        /* of arrows and spans */
	uint64_t tids;       /* of lanes */
	uint64_t unfinished; /* commands on the device at its end */
	uint32_t working;
	uint64_t sampled_ns;
	struct total channels[CHANNELS];
	uint32_t counter_max; /* 0: the device counts nothing */
	struct hal_bk_counter *counters;
	struct holder *holders; /* by number of the partition */
	size_t used;
	uint64_t buffered; /* events that end in .buffer, each with its line */
	char buffer[BUFFER_BYTES];
};

/* ---- the file ---------------------------------------------------------------------- */

static const char cut[] = "],\"otherData\":{\"cut\":true}}\n";

/* Take no more, as that failed with err, and end the file where it last could end. */
static void end_file_early(struct trace *t, int err)
{
	const off_t size = (off_t)(t->whole + sizeof(cut) - 1);

	t->err = err;
	if (!t->seekable || t->whole == 0)
		return;
	/* First over what is there: that needs no room. */
	(void)!pwrite(t->fd, cut, sizeof(cut) - 1, (off_t)t->whole);
	(void)!ftruncate(t->fd, size);
}

static void flush(struct trace *t)
{
	const bool failed = t->err != 0;
	size_t at = 0;

	while (t->err == 0 && at < t->used) {
		ssize_t n = write(t->fd, t->buffer + at, t->used - at);

		if (n >= 0)
			at += (size_t)n;
		else if (errno != EINTR)
			end_file_early(t, errno);
	}
	if (t->err != 0)
		t->lost += t->buffered;
	if (t->err != 0 && !failed && !t->seekable)
		for (size_t i = 0; i < at; i++)
			t->lost -= t->buffer[i] == '\n';
	t->written += at;
	t->used = 0;
	t->buffered = 0;
}

/* Write what there is, between two events, and behind it an end that the next write
 * replaces: whenever the program is killed, the file is JSON.  It is no longer than the
 * true end. */
static void flush_whole(struct trace *t)
{
	const uint64_t events = t->buffered;
	ssize_t n;

	flush(t);
	if (t->err != 0 || !t->seekable)
		return;
	n = pwrite(t->fd, cut, sizeof(cut) - 1, (off_t)t->written);
	if (n == (ssize_t)sizeof(cut) - 1) {
		t->whole = t->written;
		return;
	}
	end_file_early(t, n < 0 ? errno : ENOSPC);
	t->lost += events;
}

static void print(void *user, const char *text, size_t length)
{
	struct trace *t = user;

	if (length > sizeof(t->buffer) - t->used)
		flush(t);
	memcpy(t->buffer + t->used, text, length);
	t->used += length;
}

static void put_status(struct trace *t, yajl_gen_status status)
{
	if (status != yajl_gen_status_ok)
		t->broken = true;
}

static void put_text(struct trace *t, const char *text)
{
	char plain[256];

	utf8_text(plain, sizeof(plain), text, SIZE_MAX);
	put_status(t,
		   yajl_gen_string(t->gen, (const unsigned char *)plain, strlen(plain)));
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
	put_status(t, yajl_gen_number(t->gen, digits, strlen(digits)));
}

/* Thousandths.  Of times: the format's unit is the microsecond, and the digits behind the
 * point are exact. */
static void put_key_milli(struct trace *t, const char *key, uint64_t n)
{
	char digits[48];

	put_text(t, key);
	format_text(digits, sizeof(digits), "%" PRIu64 ".%03" PRIu64, n / 1000, n % 1000);
	put_status(t, yajl_gen_number(t->gen, digits, strlen(digits)));
}

static void begin_event(struct trace *t, const char *phase, const char *name,
			uint32_t pid, uint64_t tid)
{
	put_status(t, yajl_gen_map_open(t->gen));
	put_key_text(t, "ph", phase);
	put_key_text(t, "name", name);
	put_key_number(t, "pid", pid);
	put_key_number(t, "tid", tid);
}

static void end(struct trace *t)
{
	put_status(t, yajl_gen_map_close(t->gen));
	print(t, "\n", 1);
	t->events++;
	t->buffered++;
	if (t->used > BUFFER_FULL)
		flush_whole(t);
}

/* ---- events ------------------------------------------------------------------------ */

/* process_name, thread_name. */
static void metadata(struct trace *t, const char *what, uint32_t pid, uint64_t tid,
		     const char *name)
{
	begin_event(t, "M", what, pid, tid);
	put_text(t, "args");
	put_status(t, yajl_gen_map_open(t->gen));
	put_key_text(t, "name", name);
	put_status(t, yajl_gen_map_close(t->gen));
	end(t);
}

static void slice(struct trace *t, const char *name, uint32_t pid, uint64_t tid,
		  uint64_t start, uint64_t stop)
{
	begin_event(t, "X", name, pid, tid);
	put_key_milli(t, "ts", start);
	put_key_milli(t, "dur", stop > start ? stop - start : 0);
}

/* One end of an arrow: "s" where it starts, "f" where it points to; each belongs to the
 * slice around it. */
static void arrow(struct trace *t, const char *phase, uint64_t id, uint32_t pid,
		  uint64_t tid, uint64_t at)
{
	begin_event(t, phase, "submitted", pid, tid);
	put_key_text(t, "cat", "submission");
	put_key_number(t, "id", id);
	put_key_milli(t, "ts", at);
	if (phase[0] == 'f')
		put_key_text(t, "bp", "e");
	end(t);
}

/* Asynchronous, as it may overlap others: "b" or "e". */
static void put_span(struct trace *t, const char *phase, const char *cat,
		     const char *name, uint64_t id, uint32_t pid, uint64_t tid,
		     uint64_t at)
{
	begin_event(t, phase, name, pid, tid);
	put_key_text(t, "cat", cat);
	put_key_number(t, "id", id);
	put_key_milli(t, "ts", at);
	end(t);
}

/* From at on what has this many thousandths; part NULL: of the device. */
static void counter_is(struct trace *t, const struct hal_partition *part,
		       const char *what, uint64_t milli, uint64_t at)
{
	char name[96];

	if (part == NULL)
		format_text(name, sizeof(name), "%s", what);
	else
		format_text(name, sizeof(name), "%s (%u): %s",
			    part->name[0] != '\0' ? part->name : "partition",
			    part->desc.index, what);
	begin_event(t, "C", name, PID_UNITS, 0);
	put_key_milli(t, "ts", at);
	put_text(t, "args");
	put_status(t, yajl_gen_map_open(t->gen));
	if (milli % 1000 == 0)
		put_key_number(t, what, milli / 1000);
	else
		put_key_milli(t, what, milli);
	put_status(t, yajl_gen_map_close(t->gen));
	end(t);
}

/* ---- the device's counters --------------------------------------------------------- */

/* The total at the time at; what came since the time before is spread over the time in
 * between, as nobody looked there. */
static void counted(struct trace *t, struct total *total,
		    const struct hal_partition *part, const char *what, uint64_t value,
		    uint64_t at)
{
	uint64_t ns = at - t->sampled_ns, more = value - total->value, milli;

	total->value = value;
	if (!total->known) {
		total->known = true;
		return;
	}
	milli = more / ns * 1000 + more % ns * 1000 / ns;
	if (milli != total->written)
		counter_is(t, part, what, milli, t->sampled_ns);
	total->written = milli;
}

static void count_one(struct hal_device *dev, const struct hal_bk_counter *c, uint64_t at)
{
	struct trace *t = dev->observe.trace;
	char what[48];

	if (c->kind == HAL_BK_UNIT_NS && c->index < dev->info.partitions_max) {
		struct holder *h = &t->holders[c->index];

		if (h->part != NULL)
			counted(t, &h->units, h->part, "units computing", c->total, at);
	} else if (c->kind == HAL_BK_CHANNEL_BYTES && c->index < CHANNELS) {
		format_text(what, sizeof(what), "channel %u bytes/ns", c->index);
		counted(t, &t->channels[c->index], NULL, what, c->total, at);
	}
}

void trace_sample(struct hal_device *dev)
{
	struct trace *t = dev->observe.trace;
	uint64_t at = dev->now;
	int n;

	if (t == NULL || t->counter_max == 0 || atomic_load(&dev->lost) != 0)
		return;
	n = dev->table->cold.counters(dev->bk, t->counters, t->counter_max, &at);
	if (n < 0 || (uint32_t)n > t->counter_max || at <= t->sampled_ns)
		return; /* the next one tells of this time, too */
	for (int i = 0; i < n; i++)
		count_one(dev, &t->counters[i], at);
	t->sampled_ns = at;
}

/* Nothing is known of what follows. */
static void total_ends(struct trace *t, struct total *total,
		       const struct hal_partition *part, const char *what)
{
	if (total->written != 0)
		counter_is(t, part, what, 0, t->sampled_ns);
	memset(total, 0, sizeof(*total));
}

/* ---- partitions -------------------------------------------------------------------- */

static void working(struct hal_device *dev, struct holder *h, uint32_t units, uint64_t at)
{
	struct trace *t = dev->observe.trace;

	if (units == h->working)
		return;
	t->working += units - h->working;
	h->working = units;
	counter_is(t, NULL, "units with work", t->working * UINT64_C(1000), at);
}

static void depth(struct hal_device *dev, const struct hal_partition *part, uint64_t at)
{
	struct trace *t = dev->observe.trace;

	counter_is(t, part, "commands on device", part->command.inflight * UINT64_C(1000),
		   at);
	working(dev, &t->holders[part->desc.index],
		part->command.inflight != 0 ? part->desc.units : 0, at);
}

static void place_text(const struct hal_device *dev, const struct hal_partition *part,
		       char *text, size_t size)
{
	const struct hal_bk_partition_desc *d = &part->desc;
	const char *name = part->name[0] != '\0' ? part->name : "partition";

	if ((dev->info.caps & HAL_CAP_GRID) != 0)
		format_text(text, size, "%s %ux%u at %u,%u", name, d->rows, d->cols,
			    d->row, d->col);
	else
		format_text(text, size, "%s units %u..%u", name, d->col,
			    d->col + d->cols - 1u);
}

static void leaves_place(struct hal_device *dev, struct holder *h)
{
	if (h->span != 0)
		put_span(dev->observe.trace, "e", "partition", h->place, h->span,
			 PID_UNITS, 0, dev->now);
	h->span = 0;
}

void trace_partition(struct hal_device *dev, const struct hal_partition *part)
{
	struct holder *h;
	char text[sizeof(h->place)];

	if (dev->observe.trace == NULL || part->host != part)
		return;
	h = &dev->observe.trace->holders[part->desc.index];
	if (h->part == NULL) {
		memset(h, 0, sizeof(*h));
		h->part = part;
		trace_sample(dev); /* what is counted for it begins here */
	}
	place_text(dev, part, text, sizeof(text));
	if (h->span != 0 && strcmp(text, h->place) == 0)
		return; /* it has not moved */
	leaves_place(dev, h);
	memcpy(h->place, text, sizeof(text));
	h->span = ++dev->observe.trace->ids;
	put_span(dev->observe.trace, "b", "partition", h->place, h->span, PID_UNITS, 0,
		 dev->now);
	depth(dev, part, dev->now);
}

void trace_partition_gone(struct hal_device *dev, const struct hal_partition *part)
{
	struct holder *h;

	if (dev->observe.trace == NULL || part->host != part)
		return;
	h = &dev->observe.trace->holders[part->desc.index];
	total_ends(dev->observe.trace, &h->units, part, "units computing");
	leaves_place(dev, h);
	h->part = NULL;
}

void trace_depth(struct hal_device *dev, const struct hal_partition *part, uint64_t at)
{
	if (dev->observe.trace == NULL)
		return;
	depth(dev, part, at);
	if (at >= dev->observe.trace->sampled_ns + SAMPLE_NS)
		trace_sample(dev);
}

void trace_memory(struct hal_device *dev, const struct hal_partition *part)
{
	if (dev->observe.trace != NULL)
		counter_is(dev->observe.trace, part, "memory bytes",
			   counter_get(&part->memory.used) * 1000, dev->now);
}

/* ---- queues ------------------------------------------------------------------------ */

static uint64_t submit_tid(const struct hal_queue *queue)
{
	return queue->obj.id * UINT64_C(2) + 1;
}

static uint64_t run_tid(const struct hal_queue *queue)
{
	return submit_tid(queue) + 1;
}

void trace_queue(struct hal_device *dev, const struct hal_queue *queue)
{
	char text[128];
	size_t n;

	if (dev->observe.trace == NULL)
		return;
	format_text(text, sizeof(text), "%s queue %u",
		    queue->home->name[0] != '\0' ? queue->home->name : "partition",
		    queue->obj.id);
	metadata(dev->observe.trace, "thread_name", PID_QUEUES, run_tid(queue), text);
	n = strlen(text);
	format_text(text + n, sizeof(text) - n, " submissions");
	metadata(dev->observe.trace, "thread_name", PID_QUEUES, submit_tid(queue), text);
}

void trace_instant(struct hal_device *dev, const struct hal_queue *queue,
		   const char *name, uint64_t at_ns)
{
	struct trace *t = dev->observe.trace;

	if (t == NULL)
		return;
	begin_event(t, "i", name, PID_QUEUES, run_tid(queue));
	put_key_milli(t, "ts", at_ns);
	put_key_text(t, "s", "t");
	end(t);
}

void trace_span(struct hal_device *dev, const struct hal_queue *queue, const char *name,
		uint64_t start_ns, uint64_t end_ns)
{
	struct trace *t = dev->observe.trace;
	uint64_t id;

	if (t == NULL)
		return;
	id = ++t->ids;
	put_span(t, "b", "suspend", name, id, PID_QUEUES, run_tid(queue), start_ns);
	put_span(t, "e", "suspend", name, id, PID_QUEUES, run_tid(queue), end_ns);
}

/* ---- commands ---------------------------------------------------------------------- */

static bool is_work(const struct record *r)
{
	return r->cmd.op == HAL_OP_LAUNCH || r->cmd.op == HAL_OP_COPY ||
	       r->cmd.op == HAL_OP_FILL;
}

static void command_name(const struct record *r, char *text, size_t size)
{
	const struct hal_program *prog =
		r->cmd.op == HAL_OP_LAUNCH ? r->launch.kernel->prog : NULL;

	if (prog != NULL && prog->name[0] != '\0')
		format_text(text, size, "%s: %s", prog->name, record_name(r));
	else
		format_text(text, size, "%s", record_name(r));
}

/* One that is free from start on, until stop. */
static const struct lane *take_lane(struct trace *t, struct holder *h, uint64_t start,
				    uint64_t stop)
{
	struct lane *l = h->lanes;
	char text[64];

	while (l < h->lanes + LANES - 1 && l->end > start)
		l++;
	if (l->tid == 0) {
		l->tid = ++t->tids;
		format_text(text, sizeof(text), "%s",
			    h->part->name[0] != '\0' ? h->part->name : "partition");
		if (l > h->lanes)
			format_text(text + strlen(text), sizeof(text) - strlen(text),
				    " (%u)", (uint32_t)(l - h->lanes) + 1);
		metadata(t, "thread_name", PID_UNITS, l->tid, text);
	}
	if (stop > l->end)
		l->end = stop;
	return l;
}

/* Once for all commands of a submission.  It has no length; a nanosecond can be seen. */
static void submission(struct trace *t, struct hal_queue *q, uint64_t at)
{
	if (at < q->observe.traced_ns)
		return;
	q->observe.traced_ns = hal_bk_after(at, 1);
	slice(t, "submit", PID_QUEUES, submit_tid(q), at, q->observe.traced_ns);
	end(t);
}

static void work(struct hal_device *dev, const struct inflight *f,
		 const struct hal_bk_event *ev, const char *name)
{
	struct trace *t = dev->observe.trace;
	struct hal_queue *q = f->queue;
	const struct lane *l =
		take_lane(t, &t->holders[q->part->desc.index], f->start_ns, f->end_ns);
	uint64_t id = ++t->ids;
	uint64_t from = f->submit_ns < f->start_ns ? f->submit_ns : f->start_ns;

	submission(t, q, from);
	arrow(t, "s", id, PID_QUEUES, submit_tid(q), from);
	slice(t, name, PID_UNITS, l->tid, f->start_ns, f->end_ns);
	put_text(t, "args");
	put_status(t, yajl_gen_map_open(t->gen));
	put_key_number(t, "queue", q->obj.id);
	put_key_number(t, "submitted_ns", f->submit_ns);
	put_key_number(t, "ready_ns", f->ready_ns);
	put_key_number(t, "bytes_read", ev->bytes_read);
	put_key_number(t, "bytes_written", ev->bytes_written);
	if (f->status != 0)
		put_key_text(t, "error", hal_strerror(f->status));
	put_status(t, yajl_gen_map_close(t->gen));
	end(t);
	arrow(t, "f", id, PID_UNITS, l->tid, f->start_ns);
	slice(t, name, PID_QUEUES, run_tid(q), f->start_ns, f->end_ns);
	end(t);
}

void trace_command(struct hal_device *dev, const struct inflight *f,
		   const struct hal_bk_event *ev)
{
	char name[80];

	if (dev->observe.trace == NULL)
		return;
	command_name(f->record, name, sizeof(name));
	if (is_work(f->record))
		work(dev, f, ev, name);
	else
		trace_instant(dev, f->queue, name, f->end_ns);
}

void trace_stretch(struct hal_device *dev, const struct inflight *f, uint64_t start_ns,
		   uint64_t end_ns)
{
	const struct hal_bk_event ev = {.kind = HAL_BK_DONE};
	struct inflight ran = *f;

	ran.start_ns = start_ns;
	ran.end_ns = end_ns;
	ran.status = 0;
	trace_command(dev, &ran, &ev);
}

/* ---- on and off -------------------------------------------------------------------- */

static void trace_free(struct trace *t)
{
	if (t->gen != NULL)
		yajl_gen_free(t->gen);
	free(t->counters);
	free(t->holders);
	free(t->path);
	free(t);
}

static void trace_head(struct hal_device *dev)
{
	struct trace *t = dev->observe.trace;
	char text[160];

	put_status(t, yajl_gen_map_open(t->gen));
	put_key_text(t, "displayTimeUnit", "ns");
	put_text(t, "traceEvents");
	put_status(t, yajl_gen_array_open(t->gen));
	format_text(text, sizeof(text), "%s units (%s)", dev->name, dev->info.name);
	metadata(t, "process_name", PID_UNITS, 0, text);
	format_text(text, sizeof(text), "%s queues (%s)", dev->name, dev->info.name);
	metadata(t, "process_name", PID_QUEUES, 0, text);
	hal_list_for_each (p, &dev->space.partitions) {
		struct hal_partition *part =
			container_of(p, struct hal_partition, on_device);

		trace_partition(dev, part);
		trace_memory(dev, part);
		hal_list_for_each (q, &part->queues)
			trace_queue(dev, container_of(q, struct hal_queue, on_partition));
	}
	trace_sample(dev);
}

/* Ends of commands are looked at more closely while a trace is written. */
static void queues_traced(struct hal_device *dev, bool traced)
{
	hal_list_for_each (p, &dev->space.partitions) {
		struct hal_partition *part =
			container_of(p, struct hal_partition, on_device);

		hal_list_for_each (it, &part->queues) {
			struct hal_queue *q =
				container_of(it, struct hal_queue, on_partition);

			q->slow &= ~SLOW_TRACE;
			q->observe.traced_ns = 0;
			if (traced)
				q->slow |= SLOW_TRACE;
		}
	}
}

int trace_make(const struct hal_device *dev, const char *path, struct trace **out)
{
	struct trace *t = calloc(1, sizeof(*t));
	uint32_t partitions = dev->info.partitions_max;
	int err;

	if (t == NULL)
		return fail(ENOMEM, "no memory for a trace");
	if (dev->table->cold.counters != NULL)
		t->counter_max = partitions + CHANNELS;
	t->counters = calloc(partitions + CHANNELS, sizeof(*t->counters));
	t->holders = calloc(partitions + 1, sizeof(*t->holders));
	t->gen = yajl_gen_alloc(NULL);
	t->path = strdup(path);
	if (t->counters == NULL || t->holders == NULL || t->gen == NULL ||
	    t->path == NULL) {
		trace_free(t);
		return fail(ENOMEM, "no memory for a trace");
	}
	t->fd = output_open("trace", path);
	if (t->fd < 0) {
		err = t->fd;
		trace_free(t);
		return err;
	}
	t->seekable = output_is_file(t->fd);
	(void)yajl_gen_config(t->gen, yajl_gen_print_callback, print, t);
	*out = t;
	return 0;
}

static const struct observer observer = {
	.command = trace_command,
	.stretch = trace_stretch,
	.instant = trace_instant,
	.span = trace_span,
	.depth = trace_depth,
};

void trace_begin(struct hal_device *dev, struct trace *t)
{
	dev->observe.trace = t;
	dev->observe.observer = &observer;
	queues_traced(dev, true);
	trace_head(dev);
	flush_whole(t);
}

struct trace *trace_end(struct hal_device *dev)
{
	struct trace *t = dev->observe.trace;
	char what[48];

	trace_sample(dev);
	for (uint32_t i = 0; i < CHANNELS; i++) {
		format_text(what, sizeof(what), "channel %u bytes/ns", i);
		total_ends(t, &t->channels[i], NULL, what);
	}
	hal_list_for_each (p, &dev->space.partitions) {
		struct hal_partition *part =
			container_of(p, struct hal_partition, on_device);

		trace_partition_gone(dev, part);
		hal_list_for_each (q, &part->queues)
			t->unfinished += container_of(q, struct hal_queue, on_partition)
						 ->sched.frozen;
	}
	hal_list_for_each (f, &dev->command.inflight_list)
		t->unfinished++;
	dev->observe.trace = NULL;
	queues_traced(dev, false);
	return t;
}

int trace_close(struct trace *t)
{
	int err = 0;

	put_status(t, yajl_gen_array_close(t->gen));
	put_text(t, "otherData");
	put_status(t, yajl_gen_map_open(t->gen));
	put_key_number(t, "commands_unfinished", t->unfinished);
	put_status(t, yajl_gen_map_close(t->gen));
	put_status(t, yajl_gen_map_close(t->gen));
	print(t, "\n", 1);
	flush(t);
	err = output_close(t->fd);
	if (err != 0 && t->err == 0)
		t->err = -err;
	if (t->err != 0)
		err = fail(EIO,
			   "trace %s could not be written in full: %s; %" PRIu64
			   " of %" PRIu64 " events are missing",
			   t->path, hal_strerror(t->err), t->lost, t->events);
	else if (t->broken)
		err = fail(EIO, "trace %s could not be written in full", t->path);
	trace_free(t);
	return err;
}
