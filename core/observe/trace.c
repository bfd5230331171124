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
 * The engine writes through a buffer, or puts each event into a ring (trace_file.h).
 *
 * A trace that keeps the newest events alone must have the names of their tracks.  So it
 * writes the name of a track when the track ends, and the names of all others at its own
 * end: names are then newer than events.  It writes the span of a place at its end, too.
 */
#include "observe/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>
#include <yajl/yajl_gen.h>

#include "lib/utf8.h"
#include "observe/trace_file.h"
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

/* What the trace knows of the partition with one index.  Of a guest only .lanes is used,
 * where the trace does not show its host. */
struct holder {
	const struct hal_partition *part; /* NULL: no partition has this index */
	uint64_t span;    /* id of the span that shows its place; 0: none */
	uint64_t span_ns; /* when that began */
	char place[96];   /* name and place, as that span shows them */
	uint32_t working; /* its units, while commands of it are on the device; else 0 */
	struct total units; /* time that its units have computed */
	struct lane lanes[LANES];
};

struct trace {
	struct trace *next; /* in dev->observe.trace */
	uint64_t tenant;    /* show only partitions of this tenant; 0: all */
	bool own;           /* this process has opened the file */
	struct trace_file file;
	struct trace_ring *ring; /* NULL: the engine writes .buffer to the file */
	bool keeps;              /* the newest lines stay in .ring until the end */
	yajl_gen gen;
	bool broken;           /* the JSON generator has failed */
	char *path;            /* or what stands for it in messages */
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

/* Begin of the file. */
static const char head[] = "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[";
/* Room for .head and the end of a file. */
#define ENDS_BYTES 256u

/* ---- the file ---------------------------------------------------------------------- */

/* Write the buffer to the file.  After an error, count its events as lost. */
static void flush(struct trace *t)
{
	const bool failed = t->file.err != 0;
	const size_t n = trace_file_write(&t->file, t->buffer, t->used);

	if (t->file.err != 0)
		t->lost += t->buffered;
	/* A pipe has received the events that were written before the error. */
	if (t->file.err != 0 && !failed && !t->file.seekable)
		for (size_t i = 0; i < n; i++)
			t->lost -= t->buffer[i] == '\n';
	t->used = 0;
	t->buffered = 0;
}

/* Write the buffer, which ends between two events, and an end for now. */
static void flush_whole(struct trace *t)
{
	const uint64_t events = t->buffered;

	flush(t);
	if (t->file.err == 0 && !trace_file_cut(&t->file))
		t->lost += events;
}

/* Put the buffer, one event, into the ring. */
static void put_line(struct trace *t)
{
	if (t->keeps)
		trace_ring_keep(t->ring, t->buffer, t->used);
	else if (!trace_ring_send(t->ring, t->buffer, t->used))
		t->lost++;
	t->used = 0;
	t->buffered = 0;
}

/* Append text to the buffer; the JSON generator calls this. */
static void put_bytes(void *user, const char *text, size_t length)
{
	struct trace *t = user;

	/* An event is shorter than the buffer of a trace with a ring. */
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
	if (t->ring != NULL)
		put_line(t);
	else if (t->used > BUFFER_FULL)
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

static void count_one(struct hal_device *dev, struct trace *t,
		      const struct hal_bk_counter *c, uint64_t at)
{
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

static void sample(struct hal_device *dev, struct trace *t)
{
	uint64_t at = dev->now;
	int n;

	if (t->counter_max == 0 || atomic_load(&dev->lost) != 0)
		return;
	n = dev->table->extra.counters(dev->bk, t->counters, t->counter_max, &at);
	if (n < 0 || (uint32_t)n > t->counter_max || at <= t->sampled_ns)
		return; /* the next reading covers this time, too */
	for (int i = 0; i < n; i++)
		count_one(dev, t, &t->counters[i], at);
	t->sampled_ns = at;
}

void trace_sample(struct hal_device *dev)
{
	for (struct trace *t = dev->observe.trace; t != NULL; t = t->next)
		sample(dev, t);
}

/* Show rate 0 after the last reading, and forget total. */
static void end_total(struct trace *t, struct total *total,
		      const struct hal_partition *part, const char *what)
{
	if (total->written != 0)
		put_counter(t, part, what, 0, t->sampled_ns);
	memset(total, 0, sizeof(*total));
}

/* ---- what is shown ------------------------------------------------------------------- */

static bool shows(const struct trace *t, const struct hal_partition *part)
{
	return t->tenant == 0 || t->tenant == part->observe.tenant;
}

/* Return the first of t and the traces after it that shows part; NULL: none does. */
static struct trace *next_shown(struct trace *t, const struct hal_partition *part)
{
	while (t != NULL && !shows(t, part))
		t = t->next;
	return t;
}

/* Iterate over the traces that show part. */
/* NOLINTBEGIN(bugprone-macro-parentheses): `t` is a name to declare */
#define for_each_trace(t, dev, part)                                                     \
	for (struct trace *t = next_shown((dev)->observe.trace, part); t != NULL;        \
	     t = next_shown(t->next, part))
/* NOLINTEND(bugprone-macro-parentheses) */

bool trace_shows(const struct hal_device *dev, const struct hal_partition *part)
{
	return next_shown(dev->observe.trace, part) != NULL;
}

/* ---- partitions -------------------------------------------------------------------- */

/* Set the number of h's units that have work, and the sum of all partitions. */
static void set_working(struct trace *t, struct holder *h, uint32_t units, uint64_t at)
{
	if (units == h->working)
		return;
	t->working += units - h->working;
	h->working = units;
	put_counter(t, NULL, "units with work", t->working * UINT64_C(1000), at);
}

/* Write the number of part's commands on the device. */
static void put_depth(struct trace *t, const struct hal_partition *part, uint64_t at)
{
	put_counter(t, part, "commands on device",
		    part->command.inflight * UINT64_C(1000), at);
	set_working(t, &t->holders[part->desc.index],
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

static void begin_place(struct trace *t, struct holder *h)
{
	put_span(t, "b", "partition", h->place, h->span, PID_UNITS, 0, h->span_ns);
}

/* End the span of h's place, if there is one. */
static void end_place(struct trace *t, struct holder *h, uint64_t at)
{
	if (h->span != 0 && t->keeps)
		begin_place(t, h);
	if (h->span != 0)
		put_span(t, "e", "partition", h->place, h->span, PID_UNITS, 0, at);
	h->span = 0;
}

static void show_partition(struct hal_device *dev, struct trace *t,
			   const struct hal_partition *part)
{
	struct holder *h = &t->holders[part->desc.index];
	char text[sizeof(h->place)];

	if (part->host != part)
		return;
	if (h->part == NULL) {
		memset(h, 0, sizeof(*h));
		h->part = part;
		sample(dev, t); /* read its counters now, to know their start values */
	}
	place_text(dev, part, text, sizeof(text));
	if (h->span != 0 && strcmp(text, h->place) == 0)
		return;
	end_place(t, h, dev->now);
	memcpy(h->place, text, sizeof(text));
	h->span = ++t->ids;
	h->span_ns = dev->now;
	if (!t->keeps)
		begin_place(t, h);
	put_depth(t, part, dev->now);
}

void trace_partition(struct hal_device *dev, const struct hal_partition *part)
{
	for_each_trace (t, dev, part)
		show_partition(dev, t, part);
}

/* Name a track of part. */
static void name_lane(struct trace *t, const struct hal_partition *part,
		      const struct holder *h, const struct lane *l)
{
	char text[64];

	format_text(text, sizeof(text), "%s",
		    part->name[0] != '\0' ? part->name : "partition");
	if (l > h->lanes)
		format_text(text + strlen(text), sizeof(text) - strlen(text), " (%u)",
			    (uint32_t)(l - h->lanes) + 1);
	put_metadata(t, "thread_name", PID_UNITS, l->tid, text);
}

static void hide_partition(struct hal_device *dev, struct trace *t,
			   const struct hal_partition *part)
{
	struct holder *h = &t->holders[part->desc.index];

	if (part->host == part) {
		end_total(t, &h->units, part, "units computing");
		end_place(t, h, dev->now);
	}
	for (const struct lane *l = h->lanes; t->keeps && l < h->lanes + LANES; l++)
		if (l->tid != 0)
			name_lane(t, part, h, l);
	memset(h, 0, sizeof(*h));
}

void trace_partition_gone(struct hal_device *dev, const struct hal_partition *part)
{
	for_each_trace (t, dev, part)
		hide_partition(dev, t, part);
}

void trace_depth(struct hal_device *dev, const struct hal_partition *part, uint64_t at)
{
	for_each_trace (t, dev, part) {
		put_depth(t, part, at);
		if (at >= t->sampled_ns + SAMPLE_NS)
			sample(dev, t);
	}
}

static void put_memory(const struct hal_device *dev, struct trace *t,
		       const struct hal_partition *part)
{
	put_counter(t, part, "memory bytes", counter_get(&part->memory.used) * 1000,
		    dev->now);
}

void trace_memory(struct hal_device *dev, const struct hal_partition *part)
{
	for_each_trace (t, dev, part)
		put_memory(dev, t, part);
}

void trace_tenant(struct hal_device *dev, struct hal_partition *part, uint64_t tenant)
{
	part->observe.tenant = tenant;
	for_each_trace (t, dev, part)
		if (t->tenant != 0) {
			show_partition(dev, t, part);
			put_memory(dev, t, part);
		}
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

static void name_queue(struct trace *t, const struct hal_queue *queue)
{
	char text[QUEUE_DESCRIPTION];
	size_t n;

	format_text(text, sizeof(text), "%s %s",
		    queue->home->name[0] != '\0' ? queue->home->name : "partition",
		    queue_text(queue).text);
	put_metadata(t, "thread_name", PID_QUEUES, run_tid(queue), text);
	n = strlen(text);
	format_text(text + n, sizeof(text) - n, " submissions");
	put_metadata(t, "thread_name", PID_QUEUES, submit_tid(queue), text);
}

void trace_queue(struct hal_device *dev, const struct hal_queue *queue)
{
	for_each_trace (t, dev, queue->home)
		if (!t->keeps)
			name_queue(t, queue);
}

void trace_queue_gone(struct hal_device *dev, const struct hal_queue *queue)
{
	for_each_trace (t, dev, queue->home)
		if (t->keeps)
			name_queue(t, queue);
}

static void put_instant(struct trace *t, const struct hal_queue *queue, const char *name,
			uint64_t at_ns)
{
	begin_event(t, "i", name, PID_QUEUES, run_tid(queue));
	put_key_milli(t, "ts", at_ns);
	put_key_text(t, "s", "t");
	end_event(t);
}

void trace_instant(struct hal_device *dev, const struct hal_queue *queue,
		   const char *name, uint64_t at_ns)
{
	for_each_trace (t, dev, queue->home)
		put_instant(t, queue, name, at_ns);
}

void trace_span(struct hal_device *dev, const struct hal_queue *queue, const char *name,
		uint64_t start_ns, uint64_t end_ns)
{
	for_each_trace (t, dev, queue->home) {
		const uint64_t id = ++t->ids, tid = run_tid(queue);

		put_span(t, "b", "suspend", name, id, PID_QUEUES, tid, start_ns);
		put_span(t, "e", "suspend", name, id, PID_QUEUES, tid, end_ns);
	}
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

/* Return part's first lane that is free at start, occupied until stop. */
static const struct lane *take_lane(struct trace *t, const struct hal_partition *part,
				    uint64_t start, uint64_t stop)
{
	struct holder *h = &t->holders[part->desc.index];
	struct lane *l = h->lanes;

	while (l < h->lanes + LANES - 1 && l->end > start)
		l++;
	if (l->tid == 0) {
		l->tid = ++t->tids;
		if (!t->keeps)
			name_lane(t, part, h, l);
	}
	if (stop > l->end)
		l->end = stop;
	return l;
}

/* Write a submission at time at.  A submit has no duration; 1 ns makes it visible. */
static void put_submission(struct trace *t, const struct hal_queue *q, uint64_t at)
{
	begin_slice(t, "submit", PID_QUEUES, submit_tid(q), at, hal_bk_after(at, 1));
	end_event(t);
}

/* Return when f was submitted. */
static uint64_t submitted_ns(const struct inflight *f)
{
	return f->submit_ns < f->start_ns ? f->submit_ns : f->start_ns;
}

/* Write a command that moves data or computes: its slices and an arrow from its
 * submission; and that, if first is set. */
static void put_work(struct trace *t, const struct inflight *f,
		     const struct hal_bk_event *ev, const char *name, bool first)
{
	const struct hal_queue *q = f->queue;
	/* The configuration may place a guest in a partition of another tenant. */
	const struct hal_partition *part = shows(t, q->part) ? q->part : q->home;
	const struct lane *l = take_lane(t, part, f->start_ns, f->end_ns);
	uint64_t id = ++t->ids;
	uint64_t from = submitted_ns(f);

	if (first)
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
	struct hal_queue *q = f->queue;
	bool work, first;
	char name[80];

	if (!trace_shows(dev, q->home))
		return;
	command_name(f->record, name, sizeof(name));
	work = is_work(f->record);
	/* An earlier command of the same submission has shown that. */
	first = work && submitted_ns(f) >= q->observe.traced_ns;
	if (first)
		q->observe.traced_ns = hal_bk_after(submitted_ns(f), 1);
	for_each_trace (t, dev, q->home) {
		if (work)
			put_work(t, f, ev, name, first);
		else
			put_instant(t, q, name, f->end_ns);
	}
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
	if (t->ring != NULL)
		trace_ring_free(t->ring);
	free(t->counters);
	free(t->holders);
	free(t->path);
	free(t);
}

/* Name the two processes. */
static void put_processes(const struct hal_device *dev, struct trace *t)
{
	char text[160];

	format_text(text, sizeof(text), "%s units (%s)", dev->name, dev->info.name);
	put_metadata(t, "process_name", PID_UNITS, 0, text);
	format_text(text, sizeof(text), "%s queues (%s)", dev->name, dev->info.name);
	put_metadata(t, "process_name", PID_QUEUES, 0, text);
}

/* Write what exists when the trace begins. */
static void trace_head(struct hal_device *dev, struct trace *t)
{
	put_status(t, yajl_gen_map_open(t->gen));
	put_key_text(t, "displayTimeUnit", "ns");
	put_text(t, "traceEvents");
	put_status(t, yajl_gen_array_open(t->gen));
	if (t->ring != NULL)
		t->used = 0; /* the file has head already, or gets it at the end */
	if (!t->keeps)
		put_processes(dev, t);
	hal_list_for_each (p, &dev->space.partitions) {
		struct hal_partition *part =
			container_of(p, struct hal_partition, on_device);

		if (!shows(t, part))
			continue;
		show_partition(dev, t, part);
		put_memory(dev, t, part);
		hal_list_for_each (q, &part->queues)
			if (!t->keeps)
				name_queue(t, container_of(q, struct hal_queue,
							   on_partition));
	}
	sample(dev, t);
}

/* Send completions of the queues that a trace shows down the slow path. */
static void queues_traced(struct hal_device *dev)
{
	hal_list_for_each (p, &dev->space.partitions) {
		struct hal_partition *part =
			container_of(p, struct hal_partition, on_device);
		const bool traced = trace_shows(dev, part);

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

/* Lock and empty the file of another process. */
static int file_take(struct trace *t)
{
	/* Its owner shares the position and these flags with this process. */
	(void)fcntl(t->file.fd, F_SETFL, 0);
	if (flock(t->file.fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
		return fail(EBUSY, "another device or program is writing the file of the "
				   "trace; choose another file name");
	if (ftruncate(t->file.fd, 0) != 0)
		return fail(errno, "the file of the trace cannot be emptied: %s",
			    hal_strerror(errno));
	return 0;
}

/* Open the file of t. */
static int file_open(struct trace *t, const struct trace_desc *d)
{
	int err;

	t->own = d->fd < 0;
	t->file.fd = t->own ? output_open("trace", d->path) : d->fd;
	if (t->file.fd < 0)
		return t->file.fd;
	t->file.seekable = output_is_file(t->file.fd);
	err = t->own ? 0 : file_take(t);
	if (err != 0 || t->own || t->keeps)
		return err;
	(void)trace_file_write(&t->file, head, sizeof(head) - 1);
	(void)trace_file_cut(&t->file);
	err = trace_ring_start(t->ring, &t->file);
	return err != 0 ? fail(err, "no thread for a trace: %s", hal_strerror(err)) : 0;
}

static struct trace *trace_alloc(const struct hal_device *dev, const struct trace_desc *d)
{
	struct trace *t = calloc(1, sizeof(*t));
	const uint32_t partitions = dev->info.partitions_max;
	bool complete;

	if (t == NULL)
		return NULL;
	t->tenant = d->tenant;
	t->keeps = d->bytes != 0;
	if (t->keeps || d->fd >= 0)
		t->ring = trace_ring_make(t->keeps ? d->bytes - ENDS_BYTES
						   : TRACE_STREAM_BYTES);
	if (dev->table->extra.counters != NULL && t->tenant == 0)
		t->counter_max = partitions + CHANNELS;
	t->counters = calloc(partitions + CHANNELS, sizeof(*t->counters));
	t->holders = calloc(partitions + 1, sizeof(*t->holders));
	t->gen = yajl_gen_alloc(NULL);
	t->path = strdup(d->fd < 0 ? d->path : "of this program");
	complete = t->counters != NULL && t->holders != NULL && t->gen != NULL &&
		   t->path != NULL && (t->ring != NULL || (!t->keeps && d->fd < 0));
	if (complete)
		return t;
	trace_free(t);
	return NULL;
}

int trace_make(const struct hal_device *dev, const struct trace_desc *d,
	       struct trace **out)
{
	struct trace *t = trace_alloc(dev, d);
	int err;

	if (t == NULL)
		return fail(ENOMEM, "no memory for a trace");
	err = file_open(t, d);
	if (err != 0) {
		trace_free(t);
		return err;
	}
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
	t->next = dev->observe.trace;
	dev->observe.trace = t;
	dev->observe.observer = &observer;
	queues_traced(dev);
	trace_head(dev, t);
	if (t->ring == NULL)
		flush_whole(t);
}

struct trace *trace_own(const struct hal_device *dev)
{
	struct trace *t = dev->observe.trace;

	while (t != NULL && !t->own)
		t = t->next;
	return t;
}

/* Write what ends with the trace. */
static void trace_tail(struct hal_device *dev, struct trace *t)
{
	hal_list_for_each (p, &dev->space.partitions) {
		struct hal_partition *part =
			container_of(p, struct hal_partition, on_device);

		if (!shows(t, part))
			continue;
		if (t->keeps)
			put_memory(dev, t, part);
		hide_partition(dev, t, part);
		hal_list_for_each (it, &part->queues) {
			struct hal_queue *q =
				container_of(it, struct hal_queue, on_partition);

			t->unfinished += q->sched.frozen;
			if (t->keeps)
				name_queue(t, q);
		}
	}
	hal_list_for_each (it, &dev->command.inflight_list)
		t->unfinished += shows(
			t, container_of(it, struct inflight, on_device)->queue->home);
	if (t->keeps)
		put_processes(dev, t);
}

void trace_end(struct hal_device *dev, struct trace *t)
{
	struct trace **at = &dev->observe.trace;
	char what[48];

	sample(dev, t);
	for (uint32_t i = 0; i < CHANNELS; i++) {
		format_text(what, sizeof(what), "channel %u bytes/ns", i);
		end_total(t, &t->channels[i], NULL, what);
	}
	trace_tail(dev, t);
	while (*at != t)
		at = &(*at)->next;
	*at = t->next;
	queues_traced(dev);
}

/* Write a piece of the ring to the file. */
static void put_piece(void *user, const char *text, size_t n)
{
	struct trace *t = user;

	/* The first event of the file has no comma before it. */
	if (t->file.written == sizeof(head) - 1 && n > 0 && text[0] == ',') {
		text++;
		n--;
	}
	(void)trace_file_write(&t->file, text, n);
}

static void count_line(void *user, const char *text, size_t n)
{
	struct trace *t = user;

	for (size_t i = 0; i < n; i++)
		t->lost += text[i] == '\n';
}

/* Write what is in the ring. */
static void write_ring(struct trace *t)
{
	if (t->keeps) {
		(void)trace_file_write(&t->file, head, sizeof(head) - 1);
		(void)trace_file_cut(&t->file);
		trace_ring_read(t->ring, put_piece, t);
	} else {
		trace_ring_stop(t->ring);
	}
}

int trace_close(struct trace *t, struct trace_counts *counts)
{
	int err = 0;

	if (t->ring != NULL)
		write_ring(t);
	put_status(t, yajl_gen_array_close(t->gen));
	put_text(t, "otherData");
	put_status(t, yajl_gen_map_open(t->gen));
	put_key_number(t, "commands_unfinished", t->unfinished);
	put_status(t, yajl_gen_map_close(t->gen));
	put_status(t, yajl_gen_map_close(t->gen));
	put_bytes(t, "\n", 1);
	flush(t);
	/* What is left in the ring is not in the file. */
	if (t->file.err != 0 && t->ring != NULL)
		trace_ring_read(t->ring, count_line, t);
	err = output_close(t->file.fd);
	if (err != 0 && t->file.err == 0)
		t->file.err = -err;
	if (counts != NULL && t->ring != NULL && t->keeps)
		*counts = (struct trace_counts){t->ring->lines, t->ring->dropped};
	else if (counts != NULL)
		*counts = (struct trace_counts){t->events - t->lost, t->lost};
	if (t->file.err != 0)
		err = fail(EIO,
			   "trace %s could not be written in full: %s; %" PRIu64
			   " of %" PRIu64 " events are missing",
			   t->path, hal_strerror(t->file.err), t->lost, t->events);
	else if (t->lost != 0)
		err = fail(EIO,
			   "trace %s could not be written as fast as events came; "
			   "%" PRIu64 " of %" PRIu64 " events are missing",
			   t->path, t->lost, t->events);
	else if (t->broken)
		err = fail(EIO, "trace %s could not be written in full", t->path);
	trace_free(t);
	return err;
}
