/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace.c - layer trace: write each call of the backend, with its arguments, results and
 * device time, as one line of JSON.
 *
 * Handles are written as numbers, counted from 0 for each kind in the order of creation.
 * Neither addresses nor host times are written, so two runs under the virtual clock write
 * the same bytes.  Calls of now, and polls without events, are only counted; the next
 * line has the counts.  docs/layers.md lists the keys.
 */
#include "layers/layers.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/utf8.h"
#include "util/compiler.h"
#include "util/error.h"
#include "util/output.h"

#include <yajl/yajl_gen.h>

/* Kinds of handle. */
enum { NOTHING, PART, QUEUE, MEM, PROG, KERNEL };

struct call_trace {
	const struct layers *layers;
	FILE *file;
	yajl_gen gen;
	char *path;
	bool broken;          /* a write has failed */
	uint64_t number;      /* of the next line */
	uint64_t polls, nows; /* calls counted, not written, since the last line */
	struct handles handles;
};

static void write_text(void *user, const char *text, size_t length)
{
	struct call_trace *t = user;

	if (fwrite(text, 1, length, t->file) != length)
		t->broken = true;
}

static void put_call_status(struct call_trace *t, yajl_gen_status status)
{
	if (status != yajl_gen_status_ok)
		t->broken = true;
}

/* Write text, of at most size bytes, as a JSON string. */
static void put_text(struct call_trace *t, const char *text, size_t size)
{
	char plain[512];

	utf8_text(plain, sizeof(plain), text, size);
	put_call_status(
		t, yajl_gen_string(t->gen, (const unsigned char *)plain, strlen(plain)));
}

static void put_string(struct call_trace *t, const char *key, const char *text,
		       size_t size)
{
	put_text(t, key, SIZE_MAX);
	put_text(t, text, size);
}

static void put_int(struct call_trace *t, const char *key, int64_t n)
{
	char digits[32];

	put_text(t, key, SIZE_MAX);
	format_text(digits, sizeof(digits), "%" PRId64, n);
	put_call_status(t, yajl_gen_number(t->gen, digits, strlen(digits)));
}

/* Write a mask as a hexadecimal string, because JSON readers may round 64-bit numbers. */
static void put_mask(struct call_trace *t, const char *key, uint64_t mask)
{
	char digits[32];

	put_text(t, key, SIZE_MAX);
	format_text(digits, sizeof(digits), "0x%" PRIx64, mask);
	put_text(t, digits, sizeof(digits));
}

/* Write n as a number, or as a decimal string if n is above 2^53: readers that keep
 * numbers as doubles would round it. */
static void put_uint(struct call_trace *t, const char *key, uint64_t n)
{
	char digits[32];

	put_text(t, key, SIZE_MAX);
	format_text(digits, sizeof(digits), "%" PRIu64, n);
	if (n > UINT64_C(1) << 53)
		put_text(t, digits, sizeof(digits));
	else
		put_call_status(t, yajl_gen_number(t->gen, digits, strlen(digits)));
}

/* ---- handles ---------------------------------------------------------------------- */

static const char *const kind_names[] = {
	[PART] = "partition", [QUEUE] = "queue",   [MEM] = "mem",
	[PROG] = "program",   [KERNEL] = "kernel",
};

/* Return the number of a handle; -1 if the backend has never returned that handle. */
static int64_t handle_number(const struct call_trace *t, uint32_t kind,
			     const void *handle)
{
	const struct handle *h = handles_find(&t->handles, kind, (uintptr_t)handle);

	return h != NULL ? (int64_t)h->id : -1;
}

/* Number of the buffer that this thread frees.  During mem_free another thread's
 * mem_alloc may return the same handle, which then has another number. */
static _Thread_local int64_t freed_number;

static void put_handle(struct call_trace *t, uint32_t kind, const void *handle)
{
	if (handle != NULL)
		put_int(t, kind_names[kind], handle_number(t, kind, handle));
}

/* Assign a number to the handle that the call returned, and write that number. */
static void put_new(struct call_trace *t, uint32_t kind, const struct layer_call *c)
{
	const struct handle *h;

	if (c->result != 0)
		return;
	/* Write -1 if memory for the number was short. */
	h = handles_add(&t->handles, kind, (uintptr_t)*c->out);
	put_int(t, "new", h != NULL ? (int64_t)h->id : -1);
}

/* ---- arguments and results -------------------------------------------------------- */

static void put_desc(struct call_trace *t, const struct hal_bk_partition_desc *d)
{
	put_uint(t, "index", d->index);
	put_uint(t, "units", d->units);
	put_uint(t, "row", d->row);
	put_uint(t, "col", d->col);
	put_uint(t, "rows", d->rows);
	put_uint(t, "cols", d->cols);
	put_uint(t, "memory", d->memory_bytes);
	put_mask(t, "colors", d->color_mask);
	if (d->wide_mask != 0)
		put_mask(t, "wide", d->wide_mask);
}

static void put_location(struct call_trace *t, const char *key, const void *mem,
			 uint64_t offset)
{
	put_text(t, key, SIZE_MAX);
	put_call_status(t, yajl_gen_map_open(t->gen));
	put_handle(t, MEM, mem);
	put_uint(t, mem != NULL ? "offset" : "value", offset);
	put_call_status(t, yajl_gen_map_close(t->gen));
}

static void put_launch(struct call_trace *t, const struct hal_bk_cmd *cmd)
{
	const struct hal_bk_shape *shape = hal_bk_shape(cmd);

	put_int(t, "kernel", handle_number(t, KERNEL, cmd->launch.kernel));
	put_text(t, "groups", SIZE_MAX);
	put_call_status(t, yajl_gen_array_open(t->gen));
	for (int i = 0; i < 3; i++)
		put_call_status(t, yajl_gen_integer(t->gen, cmd->launch.groups[i]));
	put_call_status(t, yajl_gen_array_close(t->gen));
	if (shape != NULL) {
		put_text(t, "group_size", SIZE_MAX);
		put_call_status(t, yajl_gen_array_open(t->gen));
		for (int i = 0; i < 3; i++)
			put_call_status(t,
					yajl_gen_integer(t->gen, shape->group_size[i]));
		put_call_status(t, yajl_gen_array_close(t->gen));
		put_uint(t, "shared_bytes", shape->shared_bytes);
	}
	put_text(t, "args", SIZE_MAX);
	put_call_status(t, yajl_gen_array_open(t->gen));
	for (uint32_t i = 0; i < cmd->launch.arg_count && i < HAL_ARGS_MAX; i++) {
		const struct hal_bk_arg *a = &cmd->launch.args[i];

		put_call_status(t, yajl_gen_map_open(t->gen));
		put_handle(t, MEM, a->mem);
		put_uint(t, a->mem != NULL ? "offset" : "value", a->value);
		if (a->mem != NULL)
			put_uint(t, "bytes", a->bytes);
		put_call_status(t, yajl_gen_map_close(t->gen));
	}
	put_call_status(t, yajl_gen_array_close(t->gen));
}

static void put_command(struct call_trace *t, const struct hal_bk_cmd *cmd)
{
	static const char *const ops[] = {"nop",  "copy",    "fill",     "launch",
					  "host", "barrier", "timestamp"};

	if (cmd->op == HAL_OP_COPY &&
	    (cmd->flags & (HAL_BK_CMD_FROM_HOST | HAL_BK_CMD_TO_HOST)) != 0)
		put_string(t, "command",
			   (cmd->flags & HAL_BK_CMD_FROM_HOST) != 0 ? "write" : "read",
			   SIZE_MAX);
	else if (cmd->op < ARRAY_LENGTH(ops))
		put_string(t, "command", ops[cmd->op], SIZE_MAX);
	else
		put_uint(t, "command", cmd->op);
	if ((cmd->flags & HAL_CMD_REPLAYABLE) != 0)
		put_uint(t, "replayable", 1);
	switch (cmd->op) {
	case HAL_OP_COPY:
		put_location(t, "to", cmd->copy.dst, cmd->copy.dst_offset);
		put_location(t, "from", cmd->copy.src, cmd->copy.src_offset);
		put_uint(t, "bytes", cmd->copy.bytes);
		break;
	case HAL_OP_FILL:
		put_location(t, "to", cmd->fill.dst, cmd->fill.offset);
		put_uint(t, "bytes", cmd->fill.bytes);
		put_uint(t, "pattern", cmd->fill.pattern);
		break;
	case HAL_OP_LAUNCH:
		put_launch(t, cmd);
		break;
	case HAL_OP_TIMESTAMP:
		put_location(t, "to", cmd->timestamp.dst, cmd->timestamp.offset);
		break;
	default:
		break;
	}
}

/* Kinds of cookie: commands, and suspends or moves (which end with a QUIET event).  Their
 * events are written with the same number. */
enum { COMMAND = KERNEL + 1, QUIET };

/* Write the number of a cookie.  fresh: assign a new number to the cookie first. */
static void put_cookie(struct call_trace *t, uint32_t kind, const char *key,
		       uint64_t cookie, bool fresh)
{
	const struct handle *h = fresh ? handles_add(&t->handles, kind, cookie)
				       : handles_find(&t->handles, kind, cookie);

	put_int(t, key, h != NULL ? (int64_t)h->id : -1);
}

static void put_events(struct call_trace *t, const struct layer_call *c)
{
	put_text(t, "events", SIZE_MAX);
	put_call_status(t, yajl_gen_array_open(t->gen));
	for (int64_t i = 0; i < c->result && i < (int64_t)c->max; i++) {
		const struct hal_bk_event *e = &c->events[i];
		bool done = e->kind == HAL_BK_DONE;

		put_call_status(t, yajl_gen_map_open(t->gen));
		put_cookie(t, done ? COMMAND : QUIET, done ? "done" : "quiet", e->cookie,
			   false);
		put_int(t, "status", e->status);
		if (done) {
			put_uint(t, "start", e->start_ns);
			put_uint(t, "end", e->end_ns);
			put_uint(t, "read", e->bytes_read);
			put_uint(t, "written", e->bytes_written);
		}
		if (e->fault[0] != '\0')
			put_string(t, "fault", e->fault, sizeof(e->fault));
		put_call_status(t, yajl_gen_map_close(t->gen));
	}
	put_call_status(t, yajl_gen_array_close(t->gen));
}

static void put_info(struct call_trace *t, const struct hal_device_info *i)
{
	put_string(t, "name", i->name, sizeof(i->name));
	put_uint(t, "rows", i->unit_rows);
	put_uint(t, "cols", i->unit_cols);
	put_uint(t, "partitions", i->partitions_max);
	put_uint(t, "memory", i->memory_bytes);
	put_uint(t, "free", i->memory_free);
	put_mask(t, "caps", i->caps);
	put_mask(t, "modes", i->suspend_modes);
}

/* ---- lines ------------------------------------------------------------------------ */

static void arg_index(struct call_trace *t, const struct layer_call *c)
{
	put_uint(t, "index", c->index);
}

static void arg_desc(struct call_trace *t, const struct layer_call *c)
{
	put_desc(t, c->desc);
}

static void arg_priority(struct call_trace *t, const struct layer_call *c)
{
	put_int(t, "priority", c->priority);
}

static void arg_bytes(struct call_trace *t, const struct layer_call *c)
{
	put_uint(t, "bytes", c->bytes);
}

static void arg_memory(struct call_trace *t, const struct layer_call *c)
{
	put_uint(t, "bytes", c->bytes);
	if (c->colors != NULL)
		put_mask(t, "colors", c->colors->mask);
	put_uint(t, "flags", c->flags);
}

static void arg_range(struct call_trace *t, const struct layer_call *c)
{
	put_uint(t, "offset", c->offset);
	put_uint(t, "bytes", c->bytes);
}

static void arg_name(struct call_trace *t, const struct layer_call *c)
{
	put_string(t, "name", c->name, SIZE_MAX);
}

static void arg_command(struct call_trace *t, const struct layer_call *c)
{
	put_command(t, c->cmd);
}

static void arg_mode(struct call_trace *t, const struct layer_call *c)
{
	put_uint(t, "mode", c->mode);
}

static void arg_until(struct call_trace *t, const struct layer_call *c)
{
	if (c->until_ns != UINT64_MAX)
		put_uint(t, "until", c->until_ns);
}

static void result_kernel(struct call_trace *t, const struct layer_call *c)
{
	if (c->result == 0)
		put_string(t, "name", c->kernel->name, sizeof(c->kernel->name));
}

static void result_info(struct call_trace *t, const struct layer_call *c)
{
	if (c->result == 0)
		put_info(t, c->info);
}

static void result_bound(struct call_trace *t, const struct layer_call *c)
{
	if (c->result == 0)
		put_uint(t, "bytes", *c->bound_bytes);
}

static void result_command(struct call_trace *t, const struct layer_call *c)
{
	if (c->result == 0)
		put_cookie(t, COMMAND, "id", c->cmd->cookie, true);
}

static void result_quiet(struct call_trace *t, const struct layer_call *c)
{
	if (c->result == 0)
		put_cookie(t, QUIET, "id", c->cookie, true);
}

/* For each operation: its arguments, the kind of object it creates, other results. */
static const struct {
	void (*arguments)(struct call_trace *t, const struct layer_call *c);
	uint32_t creates;
	void (*results)(struct call_trace *t, const struct layer_call *c);
} ops[LAYER_OP_COUNT] = {
	[CALL_open] = {arg_index, NOTHING, NULL},
	[CALL_get_info] = {NULL, NOTHING, result_info},
	[CALL_partition_create] = {arg_desc, PART, NULL},
	[CALL_queue_create] = {arg_priority, QUEUE, NULL},
	[CALL_mem_alloc] = {arg_memory, MEM, NULL},
	[CALL_mem_register] = {arg_bytes, MEM, NULL},
	[CALL_mem_import] = {arg_bytes, MEM, NULL},
	[CALL_mem_write] = {arg_range, NOTHING, NULL},
	[CALL_mem_read] = {arg_range, NOTHING, NULL},
	[CALL_program_load] = {arg_bytes, PROG, NULL},
	[CALL_kernel_get] = {arg_index, KERNEL, result_kernel},
	[CALL_program_bind] = {NULL, NOTHING, result_bound},
	[CALL_extension] = {arg_name, NOTHING, NULL},
	[CALL_isolation] = {arg_desc, NOTHING, NULL},
	[CALL_partition_widen] = {arg_index, NOTHING, NULL},
	[CALL_submit] = {arg_command, NOTHING, result_command},
	[CALL_poll] = {arg_until, NOTHING, put_events},
	[CALL_suspend] = {arg_mode, NOTHING, result_quiet},
	[CALL_resize] = {arg_desc, NOTHING, result_quiet},
};

/* Write the handles, which all operations have in common, and the other arguments. */
static void put_arguments(struct call_trace *t, const struct layer_call *c)
{
	put_handle(t, PART, c->part);
	put_handle(t, QUEUE, c->queue);
	if (c->op == CALL_mem_free)
		put_int(t, kind_names[MEM], freed_number);
	else
		put_handle(t, MEM, c->mem);
	put_handle(t, PROG, c->prog);
	if (ops[c->op].arguments != NULL)
		ops[c->op].arguments(t, c);
}

static void put_results(struct call_trace *t, const struct layer_call *c)
{
	if (ops[c->op].creates != NOTHING)
		put_new(t, ops[c->op].creates, c);
	if (ops[c->op].results != NULL)
		ops[c->op].results(t, c);
}

static void trace_after(void *state, struct layer_call *c)
{
	struct call_trace *t = state;
	const struct layers *l = t->layers;

	/* Do not write calls of next and doorbell: how many are made depends on when the
	 * engine sleeps, so the traces of two equal runs would differ. */
	if (c->op == CALL_next || c->op == CALL_doorbell)
		return;
	if (c->op == CALL_now || (c->op == CALL_poll && c->result == 0)) {
		t->nows += c->op == CALL_now;
		t->polls += c->op == CALL_poll;
		return;
	}
	put_call_status(t, yajl_gen_map_open(t->gen));
	put_uint(t, "n", t->number++);
	if (l->bk != NULL && c->op != CALL_close)
		put_uint(t, "at", l->real->hot.now(l->bk));
	put_string(t, "op", layer_op_names[c->op], SIZE_MAX);
	put_arguments(t, c);
	put_int(t, "result", c->result);
	/* submit returns -EAGAIN without setting an error text. */
	if (c->result < 0 && c->result != -EAGAIN)
		put_string(t, "error", hal_last_error(), SIZE_MAX);
	put_results(t, c);
	if (t->polls != 0)
		put_uint(t, "polls", t->polls);
	if (t->nows != 0)
		put_uint(t, "nows", t->nows);
	t->polls = 0;
	t->nows = 0;
	put_call_status(t, yajl_gen_map_close(t->gen));
	/* Start a new JSON document; the separator between documents ends the line. */
	yajl_gen_reset(t->gen, "\n");
}

static int trace_before(void *state, const struct layer_call *c)
{
	if (c->op == CALL_mem_free)
		freed_number = handle_number(state, MEM, c->mem);
	return 0;
}

/* ---- opening and closing ---------------------------------------------------------- */

static void trace_free(struct call_trace *t)
{
	if (t->gen != NULL)
		yajl_gen_free(t->gen);
	if (t->handles.slots != NULL)
		handles_fini(&t->handles);
	free(t->path);
	free(t);
}

static int trace_create(struct layers *l, const struct hal_bk_config *cfg, void **state)
{
	const char *pattern = option_str(cfg, "trace");
	char path[OUTPUT_BYTES];
	struct call_trace *t;
	int err;

	if (pattern[0] == '\0')
		return 0;
	err = output_name("layers.trace", pattern, l->dev->number, path);
	if (err != 0)
		return err;
	t = calloc(1, sizeof(*t));
	if (t == NULL)
		return fail(ENOMEM, "no memory for layer trace");
	t->layers = l;
	t->gen = yajl_gen_alloc(NULL);
	t->path = strdup(path);
	if (t->gen == NULL || t->path == NULL ||
	    handles_init(&t->handles, sizeof(struct handle)) != 0) {
		trace_free(t);
		return fail(ENOMEM, "no memory for layer trace");
	}
	t->file = fopen(path, "ae");
	if (t->file == NULL) {
		err = fail(errno, "[layers] trace: cannot open %s: %s", path,
			   hal_strerror(errno));
		trace_free(t);
		return err;
	}
	/* Line buffering: if the program crashes, the file has all calls before the
	 * crash. */
	(void)setvbuf(t->file, NULL, _IOLBF, BUFSIZ);
	(void)yajl_gen_config(t->gen, yajl_gen_print_callback, write_text, t);
	*state = t;
	return 0;
}

static int trace_destroy(void *state)
{
	struct call_trace *t = state;
	int err = 0;

	t->broken |= ferror(t->file) != 0;
	if (fclose(t->file) != 0)
		t->broken = true;
	if (t->broken)
		err = fail(EIO, "[layers] trace: %s could not be written in full",
			   t->path);
	trace_free(t);
	return err;
}

const struct layer_type layer_trace = {
	.name = "trace",
	.create = trace_create,
	.destroy = trace_destroy,
	.before = trace_before,
	.after = trace_after,
};
