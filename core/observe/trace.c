/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace.c - write a trace of the device in the Chrome/Perfetto JSON format (hal.trace).
 *
 * The viewer shows two processes, in device time:
 *
 *   units   when each partition owned which units, a track per partition with its
 *           commands, and counters
 *   queues  per queue a track of submissions and a track of commands
 *
 * An arrow leads from each submission to its commands on the units.  Launches, copies and
 * fills are slices; other commands, such as timestamps, are instants.
 *
 * The engine writes through a buffer.  After each write the file ends with cut_end, which
 * the next write replaces, so that it is valid JSON even if the program is killed.
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

/* Commands of different queues may overlap on the units of one partition, but the slices
 * of one track must nest.  So a partition has several tracks (lanes), and a command goes
 * to the first free one.  The number is the maximum of hal.partition_inflight. */
#define LANES        64u
#define CHANNELS     64u /* as many as a mask of colours has bits */
#define BUFFER_BYTES 65536u
/* The buffer is written to the file when it is fuller than this after an event.  The rest
 * has space for one event. */
#define BUFFER_FULL (BUFFER_BYTES - 8192u)
/* Least time between two readings of the device's counters, each of which may delay
 * the device. */
#define SAMPLE_NS 2000u

/* One of a partition's tracks. */
struct lane {
	uint64_t end; /* time at which its last command ended */
	uint64_t tid; /* id of the track; 0: not used yet */
};

/* A counter of the device, which the trace shows as a rate. */
struct total {
	bool known;       /* .value is valid */
	uint64_t value;   /* count at the last reading */
	uint64_t written; /* last rate written to the trace, in thousandths per ns */
};

/* What the trace knows of the partition with one index, other than a guest. */
struct holder {
	const struct hal_partition *part; /* NULL: no partition has this index */
	uint64_t span;    /* id of the span that shows its place; 0: none */
	char place[96];   /* name and place, as that span shows them */
	uint32_t working; /* its units, while commands of it are on the device; else 0 */
	struct total units; /* time that its units have computed */
	struct lane lanes[LANES];
};

struct trace {
	int fd;
	int err;          /* first failed write; nothing is written after it */
	bool seekable;    /* .fd is a regular file, not a pipe or a terminal */
	uint64_t written; /* bytes of events in the file */
	uint64_t whole;   /* offset of the last cut_end; 0: none was written */
	yajl_gen gen;
	bool broken; /* the JSON generator has failed */
	char *path;
	uint64_t events, lost; /* events made; events missing in the file */
	uint64_t ids;          /* last id of an arrow or span */
	uint64_t tids;         /* last tid of a lane */
	uint64_t unfinished;   /* commands on the device when the trace ended */
	uint32_t working;      /* sum of .working of all holders */
	uint64_t sampled_ns;   /* device time at which the counters were last read */
	struct total channels[CHANNELS];
	uint32_t counter_max; /* size of .counters; 0: the device has no counters */
	struct hal_bk_counter *counters;
	struct holder *holders; /* indexed by the partition's index */
	size_t used;            /* bytes in .buffer */
	uint64_t buffered;      /* events that end in .buffer, one line each */
	char buffer[BUFFER_BYTES];
};

/* ---- the file ---------------------------------------------------------------------- */

/* End of the file after each write, until more events or the true end replace it. */
static const char cut_end[] = "],\"otherData\":{\"cut\":true}}\n";

/* Stop writing after error err.  Shorten the file to the events before the last cut_end,
 * so that it stays valid JSON. */
static void end_file_early(struct trace *t, int err)
{
	const off_t size = (off_t)(t->whole + sizeof(cut_end) - 1);

	t->err = err;
	if (!t->seekable || t->whole == 0)
		return;
	/* Overwrite before shortening: this needs no free space on a full disk. */
	(void)!pwrite(t->fd, cut_end, sizeof(cut_end) - 1, (off_t)t->whole);
	(void)!ftruncate(t->fd, size);
}

/* Write the buffer to the file.  After an error, count its events as lost. */
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
	/* A pipe has received the events that were written before the error. */
	if (t->err != 0 && !failed && !t->seekable)
		for (size_t i = 0; i < at; i++)
			t->lost -= t->buffer[i] == '\n';
	t->written += at;
	t->used = 0;
	t->buffered = 0;
}

/* Write the buffer, which ends between two events, and cut_end after it.  The next write
 * overwrites cut_end, which is not longer than the true end. */
static void flush_whole(struct trace *t)
{
	const uint64_t events = t->buffered;
	ssize_t n;

	flush(t);
	if (t->err != 0 || !t->seekable)
		return;
	n = pwrite(t->fd, cut_end, sizeof(cut_end) - 1, (off_t)t->written);
	if (n == (ssize_t)sizeof(cut_end) - 1) {
		t->whole = t->written;
		return;
	}
	end_file_early(t, n < 0 ? errno : ENOSPC);
	t->lost += events;
}

/* Append text to the buffer; the JSON generator calls this. */
static void put_bytes(void *user, const char *text, size_t length)
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

/* Write n thousandths.  For times, n is in ns, because the format's unit is us. */
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

static void end_event(struct trace *t)
{
	put_status(t, yajl_gen_map_close(t->gen));
	put_bytes(t, "\n", 1);
	t->events++;
	t->buffered++;
	if (t->used > BUFFER_FULL)
		flush_whole(t);
}

/* ---- events ------------------------------------------------------------------------ */

/* Name a process or thread; what is "process_name" or "thread_name". */
static void put_metadata(struct trace *t, const char *what, uint32_t pid, uint64_t tid,
			 const char *name)
{
	begin_event(t, "M", what, pid, tid);
	put_text(t, "args");
	put_status(t, yajl_gen_map_open(t->gen));
	put_key_text(t, "name", name);
	put_status(t, yajl_gen_map_close(t->gen));
	end_event(t);
}

/* Begin the event of a slice.  The caller may add arguments, then calls end_event. */
static void begin_slice(struct trace *t, const char *name, uint32_t pid, uint64_t tid,
			uint64_t start, uint64_t stop)
{
	begin_event(t, "X", name, pid, tid);
	put_key_milli(t, "ts", start);
	put_key_milli(t, "dur", stop > start ? stop - start : 0);
}

/* Write the start ("s") or the tip ("f") of an arrow.  The viewer attaches it to the
 * slice that contains it. */
static void put_arrow(struct trace *t, const char *phase, uint64_t id, uint32_t pid,
		      uint64_t tid, uint64_t at)
{
	begin_event(t, phase, "submitted", pid, tid);
	put_key_text(t, "cat", "submission");
	put_key_number(t, "id", id);
	put_key_milli(t, "ts", at);
	if (phase[0] == 'f')
		put_key_text(t, "bp", "e");
	end_event(t);
}

/* Write the begin ("b") or end ("e") of a span.  Spans, unlike slices, may overlap. */
static void put_span(struct trace *t, const char *phase, const char *cat,
		     const char *name, uint64_t id, uint32_t pid, uint64_t tid,
		     uint64_t at)
{
	begin_event(t, phase, name, pid, tid);
	put_key_text(t, "cat", cat);
	put_key_number(t, "id", id);
	put_key_milli(t, "ts", at);
	end_event(t);
}

/* Write that counter what of part (NULL: of the device) has the value milli / 1000 from
 * time at on. */
static void put_counter(struct trace *t, const struct hal_partition *part,
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
	end_event(t);
}

/* ---- the device's counters --------------------------------------------------------- */

/* Record that total has reached value at time at.  The trace shows the mean rate since
 * the last reading. */
static void add_sample(struct trace *t, struct total *total,
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
		put_counter(t, part, what, milli, t->sampled_ns);
	total->written = milli;
}

static void count_one(struct hal_device *dev, const struct hal_bk_counter *c, uint64_t at)
{
	struct trace *t = dev->observe.trace;
	char what[48];

	if (c->kind == HAL_BK_UNIT_NS && c->index < dev->info.partitions_max) {
		struct holder *h = &t->holders[c->index];

		if (h->part != NULL)
			add_sample(t, &h->units, h->part, "units computing", c->total,
				   at);
	} else if (c->kind == HAL_BK_CHANNEL_BYTES && c->index < CHANNELS) {
		format_text(what, sizeof(what), "channel %u bytes/ns", c->index);
		add_sample(t, &t->channels[c->index], NULL, what, c->total, at);
	}
}

void trace_sample(struct hal_device *dev)
{
	struct trace *t = dev->observe.trace;
	uint64_t at = dev->now;
	int n;

	if (t == NULL || t->counter_max == 0 || atomic_load(&dev->lost) != 0)
		return;
	n = dev->table->extra.counters(dev->bk, t->counters, t->counter_max, &at);
	if (n < 0 || (uint32_t)n > t->counter_max || at <= t->sampled_ns)
		return; /* the next reading covers this time, too */
	for (int i = 0; i < n; i++)
		count_one(dev, &t->counters[i], at);
	t->sampled_ns = at;
}

/* Show rate 0 after the last reading, and forget total. */
static void end_total(struct trace *t, struct total *total,
		      const struct hal_partition *part, const char *what)
{
	if (total->written != 0)
		put_counter(t, part, what, 0, t->sampled_ns);
	memset(total, 0, sizeof(*total));
}

/* ---- partitions -------------------------------------------------------------------- */

/* Set the number of h's units that have work, and the sum of all partitions. */
static void set_working(struct hal_device *dev, struct holder *h, uint32_t units,
			uint64_t at)
{
	struct trace *t = dev->observe.trace;

	if (units == h->working)
		return;
	t->working += units - h->working;
	h->working = units;
	put_counter(t, NULL, "units with work", t->working * UINT64_C(1000), at);
}

/* Write the number of part's commands on the device. */
static void put_depth(struct hal_device *dev, const struct hal_partition *part,
		      uint64_t at)
{
	struct trace *t = dev->observe.trace;

	put_counter(t, part, "commands on device",
		    part->command.inflight * UINT64_C(1000), at);
	set_working(dev, &t->holders[part->desc.index],
		    part->command.inflight != 0 ? part->desc.units : 0, at);
}

/* Write the name and the units of part to text. */
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

/* End the span of h's place, if there is one. */
static void end_place(struct hal_device *dev, struct holder *h)
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
		trace_sample(dev); /* read its counters now, to know their start values */
	}
	place_text(dev, part, text, sizeof(text));
	if (h->span != 0 && strcmp(text, h->place) == 0)
		return;
	end_place(dev, h);
	memcpy(h->place, text, sizeof(text));
	h->span = ++dev->observe.trace->ids;
	put_span(dev->observe.trace, "b", "partition", h->place, h->span, PID_UNITS, 0,
		 dev->now);
	put_depth(dev, part, dev->now);
}

void trace_partition_gone(struct hal_device *dev, const struct hal_partition *part)
{
	struct holder *h;

	if (dev->observe.trace == NULL || part->host != part)
		return;
	h = &dev->observe.trace->holders[part->desc.index];
	end_total(dev->observe.trace, &h->units, part, "units computing");
	end_place(dev, h);
	h->part = NULL;
}

void trace_depth(struct hal_device *dev, const struct hal_partition *part, uint64_t at)
{
	if (dev->observe.trace == NULL)
		return;
	put_depth(dev, part, at);
	if (at >= dev->observe.trace->sampled_ns + SAMPLE_NS)
		trace_sample(dev);
}

void trace_memory(struct hal_device *dev, const struct hal_partition *part)
{
	if (dev->observe.trace != NULL)
		put_counter(dev->observe.trace, part, "memory bytes",
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
	char text[QUEUE_DESCRIPTION];
	size_t n;

	if (dev->observe.trace == NULL)
		return;
	format_text(text, sizeof(text), "%s %s",
		    queue->home->name[0] != '\0' ? queue->home->name : "partition",
		    queue_text(queue).text);
	put_metadata(dev->observe.trace, "thread_name", PID_QUEUES, run_tid(queue), text);
	n = strlen(text);
	format_text(text + n, sizeof(text) - n, " submissions");
	put_metadata(dev->observe.trace, "thread_name", PID_QUEUES, submit_tid(queue),
		     text);
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
	end_event(t);
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

/* Return whether r moves data or computes. */
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

/* Return the first lane of h that is free at start, occupied until stop. */
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
		put_metadata(t, "thread_name", PID_UNITS, l->tid, text);
	}
	if (stop > l->end)
		l->end = stop;
	return l;
}

/* Write a submission at time at, unless an earlier command of it has done so.  A submit
 * has no duration; 1 ns makes it visible. */
static void put_submission(struct trace *t, struct hal_queue *q, uint64_t at)
{
	if (at < q->observe.traced_ns)
		return;
	q->observe.traced_ns = hal_bk_after(at, 1);
	begin_slice(t, "submit", PID_QUEUES, submit_tid(q), at, q->observe.traced_ns);
	end_event(t);
}

/* Write a command that moves data or computes: its submission, its slices and an arrow.
 */
static void put_work(struct hal_device *dev, const struct inflight *f,
		     const struct hal_bk_event *ev, const char *name)
{
	struct trace *t = dev->observe.trace;
	struct hal_queue *q = f->queue;
	const struct lane *l =
		take_lane(t, &t->holders[q->part->desc.index], f->start_ns, f->end_ns);
	uint64_t id = ++t->ids;
	uint64_t from = f->submit_ns < f->start_ns ? f->submit_ns : f->start_ns;

	put_submission(t, q, from);
	put_arrow(t, "s", id, PID_QUEUES, submit_tid(q), from);
	begin_slice(t, name, PID_UNITS, l->tid, f->start_ns, f->end_ns);
	put_text(t, "args");
	put_status(t, yajl_gen_map_open(t->gen));
	put_key_number(t, "queue", q->obj.id);
	put_key_number(t, "submitted_ns", f->submit_ns);
	put_key_number(t, "ready_ns", f->ready_ns);
	if ((f->record->cmd.flags & (HAL_BK_CMD_FROM_HOST | HAL_BK_CMD_TO_HOST)) != 0)
		put_key_number(t, "bytes", f->record->cmd.copy.bytes);
	put_key_number(t, "bytes_read", ev->bytes_read);
	put_key_number(t, "bytes_written", ev->bytes_written);
	if (f->status != 0)
		put_key_text(t, "error", hal_strerror(f->status));
	put_status(t, yajl_gen_map_close(t->gen));
	end_event(t);
	put_arrow(t, "f", id, PID_UNITS, l->tid, f->start_ns);
	begin_slice(t, name, PID_QUEUES, run_tid(q), f->start_ns, f->end_ns);
	end_event(t);
}

void trace_command(struct hal_device *dev, const struct inflight *f,
		   const struct hal_bk_event *ev)
{
	char name[80];

	if (dev->observe.trace == NULL)
		return;
	command_name(f->record, name, sizeof(name));
	if (is_work(f->record))
		put_work(dev, f, ev, name);
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

/* ---- begin and end of a trace ------------------------------------------------------ */

static void trace_free(struct trace *t)
{
	if (t->gen != NULL)
		yajl_gen_free(t->gen);
	free(t->counters);
	free(t->holders);
	free(t->path);
	free(t);
}

/* Write what exists when the trace begins. */
static void trace_head(struct hal_device *dev)
{
	struct trace *t = dev->observe.trace;
	char text[160];

	put_status(t, yajl_gen_map_open(t->gen));
	put_key_text(t, "displayTimeUnit", "ns");
	put_text(t, "traceEvents");
	put_status(t, yajl_gen_array_open(t->gen));
	format_text(text, sizeof(text), "%s units (%s)", dev->name, dev->info.name);
	put_metadata(t, "process_name", PID_UNITS, 0, text);
	format_text(text, sizeof(text), "%s queues (%s)", dev->name, dev->info.name);
	put_metadata(t, "process_name", PID_QUEUES, 0, text);
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

/* Send completions of all queues down the slow path while a trace is written. */
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
	if (dev->table->extra.counters != NULL)
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
	(void)yajl_gen_config(t->gen, yajl_gen_print_callback, put_bytes, t);
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
		end_total(t, &t->channels[i], NULL, what);
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
	put_bytes(t, "\n", 1);
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
