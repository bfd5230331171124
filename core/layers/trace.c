/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace.c - the layer that writes down what the core asks of a backend and what that
 * answers: a line of JSON a call, in the order of the calls, with device time.
 *
 * Handles are numbers from 0 in the order they were given, a kind; no address and no host
 * time is written, so that two runs under the virtual clock write the same.  Calls of now
 * and polls that tell of nothing are only counted, in the next line.  docs/layers.md
 * lists the keys.
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

enum { NOTHING, PART, QUEUE, MEM, PROG, KERNEL };

struct calls {
	const struct layers *layers;
	FILE *file;
	yajl_gen gen;
	char *path;
	bool broken;
	uint64_t number, polls, nows;
	struct handles handles;
};

static void print(void *user, const char *text, size_t length)
{
	struct calls *t = user;

	if (fwrite(text, 1, length, t->file) != length)
		t->broken = true;
}

static void put_call_status(struct calls *t, yajl_gen_status status)
{
	if (status != yajl_gen_status_ok)
		t->broken = true;
}

/* At most size bytes of text. */
static void put_text(struct calls *t, const char *text, size_t size)
{
	char plain[512];

	utf8_text(plain, sizeof(plain), text, size);
	put_call_status(
		t, yajl_gen_string(t->gen, (const unsigned char *)plain, strlen(plain)));
}

static void put_string(struct calls *t, const char *key, const char *text, size_t size)
{
	put_text(t, key, SIZE_MAX);
	put_text(t, text, size);
}

static void put_int(struct calls *t, const char *key, int64_t n)
{
	char digits[32];

	put_text(t, key, SIZE_MAX);
	format_text(digits, sizeof(digits), "%" PRId64, n);
	put_call_status(t, yajl_gen_number(t->gen, digits, strlen(digits)));
}

/* Masks may have the highest bit. */
static void put_mask(struct calls *t, const char *key, uint64_t mask)
{
	char digits[32];

	put_text(t, key, SIZE_MAX);
	format_text(digits, sizeof(digits), "0x%" PRIx64, mask);
	put_text(t, digits, sizeof(digits));
}

static void put_uint(struct calls *t, const char *key, uint64_t n)
{
	char digits[32];

	put_text(t, key, SIZE_MAX);
	format_text(digits, sizeof(digits), "%" PRIu64, n);
	put_call_status(t, yajl_gen_number(t->gen, digits, strlen(digits)));
}

/* ---- handles ---------------------------------------------------------------------- */

static const char *const kind_names[] = {
	[PART] = "partition", [QUEUE] = "queue",   [MEM] = "mem",
	[PROG] = "program",   [KERNEL] = "kernel",
};

/* Its number, or -1: the backend never gave it. */
static int64_t number_of(const struct calls *t, uint32_t kind, const void *handle)
{
	const struct handle *h = handles_find(&t->handles, kind, (uintptr_t)handle);

	return h != NULL ? (int64_t)h->id : -1;
}

static void put_handle(struct calls *t, uint32_t kind, const void *handle)
{
	if (handle != NULL)
		put_int(t, kind_names[kind], number_of(t, kind, handle));
}

static void put_new(struct calls *t, uint32_t kind, const struct layer_call *c)
{
	const struct handle *h;

	if (c->result != 0)
		return;
	/* Without memory it has no number. */
	h = handles_add(&t->handles, kind, (uintptr_t)*c->out);
	put_int(t, "new", h != NULL ? (int64_t)h->id : -1);
}

/* ---- what the operations have ----------------------------------------------------- */

static void put_desc(struct calls *t, const struct hal_bk_partition_desc *d)
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

static void put_place(struct calls *t, const char *key, const void *mem, uint64_t offset)
{
	put_text(t, key, SIZE_MAX);
	put_call_status(t, yajl_gen_map_open(t->gen));
	put_handle(t, MEM, mem);
	put_uint(t, mem != NULL ? "offset" : "value", offset);
	put_call_status(t, yajl_gen_map_close(t->gen));
}

static void put_launch(struct calls *t, const struct hal_bk_cmd *cmd)
{
	put_int(t, "kernel", number_of(t, KERNEL, cmd->launch.kernel));
	put_text(t, "groups", SIZE_MAX);
	put_call_status(t, yajl_gen_array_open(t->gen));
	for (int i = 0; i < 3; i++)
		put_call_status(t, yajl_gen_integer(t->gen, cmd->launch.groups[i]));
	put_call_status(t, yajl_gen_array_close(t->gen));
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

static void put_command(struct calls *t, const struct hal_bk_cmd *cmd)
{
	static const char *const ops[] = {"nop",  "copy",    "fill",     "launch",
					  "host", "barrier", "timestamp"};

	if (cmd->op < ARRAY_LENGTH(ops))
		put_string(t, "command", ops[cmd->op], SIZE_MAX);
	else
		put_uint(t, "command", cmd->op);
	if ((cmd->flags & HAL_CMD_REPLAYABLE) != 0)
		put_uint(t, "replayable", 1);
	switch (cmd->op) {
	case HAL_OP_COPY:
		put_place(t, "to", cmd->copy.dst, cmd->copy.dst_offset);
		put_place(t, "from", cmd->copy.src, cmd->copy.src_offset);
		put_uint(t, "bytes", cmd->copy.bytes);
		break;
	case HAL_OP_FILL:
		put_place(t, "to", cmd->fill.dst, cmd->fill.offset);
		put_uint(t, "bytes", cmd->fill.bytes);
		put_uint(t, "pattern", cmd->fill.pattern);
		break;
	case HAL_OP_LAUNCH:
		put_launch(t, cmd);
		break;
	case HAL_OP_TIMESTAMP:
		put_place(t, "to", cmd->timestamp.dst, cmd->timestamp.offset);
		break;
	default:
		break;
	}
}

/* Commands are told apart by a number that their event has, too. */
enum { COMMAND = KERNEL + 1, QUIET };

static void put_cookie(struct calls *t, uint32_t kind, const char *key, uint64_t cookie,
		       bool fresh)
{
	const struct handle *h = fresh ? handles_add(&t->handles, kind, cookie)
				       : handles_find(&t->handles, kind, cookie);

	put_int(t, key, h != NULL ? (int64_t)h->id : -1);
}

static void put_events(struct calls *t, const struct layer_call *c)
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

static void put_info(struct calls *t, const struct hal_device_info *i)
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

/* ---- a line ----------------------------------------------------------------------- */

static void index_is(struct calls *t, const struct layer_call *c)
{
	put_uint(t, "index", c->index);
}

static void desc_is(struct calls *t, const struct layer_call *c)
{
	put_desc(t, c->desc);
}

static void priority_is(struct calls *t, const struct layer_call *c)
{
	put_int(t, "priority", c->priority);
}

static void bytes_are(struct calls *t, const struct layer_call *c)
{
	put_uint(t, "bytes", c->bytes);
}

static void memory_is(struct calls *t, const struct layer_call *c)
{
	put_uint(t, "bytes", c->bytes);
	if (c->colors != NULL)
		put_mask(t, "colors", c->colors->mask);
	put_uint(t, "flags", c->flags);
}

static void range_is(struct calls *t, const struct layer_call *c)
{
	put_uint(t, "offset", c->offset);
	put_uint(t, "bytes", c->bytes);
}

static void name_is(struct calls *t, const struct layer_call *c)
{
	put_string(t, "name", c->name, SIZE_MAX);
}

static void command_is(struct calls *t, const struct layer_call *c)
{
	put_command(t, c->cmd);
}

static void mode_is(struct calls *t, const struct layer_call *c)
{
	put_uint(t, "mode", c->mode);
}

static void until_is(struct calls *t, const struct layer_call *c)
{
	if (c->until_ns != UINT64_MAX)
		put_uint(t, "until", c->until_ns);
}

static void got_kernel(struct calls *t, const struct layer_call *c)
{
	if (c->result == 0)
		put_string(t, "name", c->kernel->name, sizeof(c->kernel->name));
}

static void got_info(struct calls *t, const struct layer_call *c)
{
	if (c->result == 0)
		put_info(t, c->info);
}

static void got_bound(struct calls *t, const struct layer_call *c)
{
	if (c->result == 0)
		put_uint(t, "bytes", *c->bound_bytes);
}

static void got_command(struct calls *t, const struct layer_call *c)
{
	if (c->result == 0)
		put_cookie(t, COMMAND, "id", c->cmd->cookie, true);
}

static void got_quiet(struct calls *t, const struct layer_call *c)
{
	if (c->result == 0)
		put_cookie(t, QUIET, "id", c->cookie, true);
}

/* What an operation is asked with, what it makes, and what else it answers. */
static const struct {
	void (*arguments)(struct calls *t, const struct layer_call *c);
	uint32_t makes;
	void (*answers)(struct calls *t, const struct layer_call *c);
} ops[LAYER_OP_COUNT] = {
	[CALL_open] = {index_is, NOTHING, NULL},
	[CALL_get_info] = {NULL, NOTHING, got_info},
	[CALL_partition_create] = {desc_is, PART, NULL},
	[CALL_queue_create] = {priority_is, QUEUE, NULL},
	[CALL_mem_alloc] = {memory_is, MEM, NULL},
	[CALL_mem_write] = {range_is, NOTHING, NULL},
	[CALL_mem_read] = {range_is, NOTHING, NULL},
	[CALL_program_load] = {bytes_are, PROG, NULL},
	[CALL_kernel_get] = {index_is, KERNEL, got_kernel},
	[CALL_program_bind] = {NULL, NOTHING, got_bound},
	[CALL_extension] = {name_is, NOTHING, NULL},
	[CALL_isolation] = {desc_is, NOTHING, NULL},
	[CALL_partition_widen] = {index_is, NOTHING, NULL},
	[CALL_submit] = {command_is, NOTHING, got_command},
	[CALL_poll] = {until_is, NOTHING, put_events},
	[CALL_suspend] = {mode_is, NOTHING, got_quiet},
	[CALL_resize] = {desc_is, NOTHING, got_quiet},
};

/* Handles and numbers that a call has are written whatever the operation is. */
static void put_arguments(struct calls *t, const struct layer_call *c)
{
	put_handle(t, PART, c->part);
	put_handle(t, QUEUE, c->queue);
	put_handle(t, MEM, c->mem);
	put_handle(t, PROG, c->prog);
	if (ops[c->op].arguments != NULL)
		ops[c->op].arguments(t, c);
}

static void put_answers(struct calls *t, const struct layer_call *c)
{
	if (ops[c->op].makes != NOTHING)
		put_new(t, ops[c->op].makes, c);
	if (ops[c->op].answers != NULL)
		ops[c->op].answers(t, c);
}

static void calls_after(void *state, struct layer_call *c)
{
	struct calls *t = state;
	const struct layers *l = t->layers;

	/* How often they come depends on when the engine sleeps. */
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
	/* -EAGAIN of submit comes without a text. */
	if (c->result < 0 && c->result != -EAGAIN)
		put_string(t, "error", hal_last_error(), SIZE_MAX);
	put_answers(t, c);
	if (t->polls != 0)
		put_uint(t, "polls", t->polls);
	if (t->nows != 0)
		put_uint(t, "nows", t->nows);
	t->polls = 0;
	t->nows = 0;
	put_call_status(t, yajl_gen_map_close(t->gen));
	/* A new document; what comes between them ends the line. */
	yajl_gen_reset(t->gen, "\n");
}

static int calls_before(void *state, const struct layer_call *c)
{
	(void)state, (void)c;
	return 0;
}

/* ---- on and off ------------------------------------------------------------------- */

static void calls_free(struct calls *t)
{
	if (t->gen != NULL)
		yajl_gen_free(t->gen);
	if (t->handles.slots != NULL)
		handles_fini(&t->handles);
	free(t->path);
	free(t);
}

static int calls_create(struct layers *l, const struct hal_bk_config *cfg, void **state)
{
	const char *pattern = option_str(cfg, "trace");
	char path[OUTPUT_BYTES];
	struct calls *t;
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
		calls_free(t);
		return fail(ENOMEM, "no memory for layer trace");
	}
	t->file = fopen(path, "ae");
	if (t->file == NULL) {
		err = fail(errno, "[layers] trace %s: %s", path, hal_strerror(errno));
		calls_free(t);
		return err;
	}
	/* What was asked last is there even when the program does not come back. */
	(void)setvbuf(t->file, NULL, _IOLBF, BUFSIZ);
	(void)yajl_gen_config(t->gen, yajl_gen_print_callback, print, t);
	*state = t;
	return 0;
}

static int calls_destroy(void *state)
{
	struct calls *t = state;
	int err = 0;

	t->broken |= ferror(t->file) != 0;
	if (fclose(t->file) != 0)
		t->broken = true;
	if (t->broken)
		err = fail(EIO, "[layers] trace %s could not be written in full",
			   t->path);
	calls_free(t);
	return err;
}

const struct layer_type layer_trace = {
	.name = "trace",
	.create = calls_create,
	.destroy = calls_destroy,
	.before = calls_before,
	.after = calls_after,
};
