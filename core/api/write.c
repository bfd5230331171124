/* SPDX-License-Identifier: Apache-2.0 */
/*
 * write.c - check commands and write them as records.
 *
 * The hot checks are in write.h.  The *_bad functions here are called after a check
 * failed.  They find out which check it was, and fail with its error.
 */
#include "api/write.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/handle.h"
#include "command/callback.h"

/* Fail because buf may not be used by q; what names its role in the command. */
static COLD int buffer_bad(const struct hal_queue *q, const struct hal_buffer *buf,
			   const char *what)
{
	char name[BUFFER_DESCRIPTION];

	if (!OBJECT_OK(buf, OBJECT_BUFFER)) {
		char text[128];

		(void)object_bad(buf, OBJECT_BUFFER);
		format_text(text, sizeof(text), "%s", hal_last_error());
		return fail(EINVAL, "%s: %s", what, text);
	}
	if (buf->dev != q->dev)
		return fail(EINVAL, "%s: %s belongs to another device", what,
			    buffer_describe(buf, "the buffer", name));
	if (buf->host_user == q->home)
		return fail(EINVAL,
			    "%s: %s is host memory; only copies between it and a "
			    "buffer of the device can use it",
			    what, buffer_describe(buf, "the buffer", name));
	return fail(EPERM,
		    "%s: %s belongs to partition %u \"%s\", the queue to %u \"%s\"", what,
		    buffer_describe(buf, "the buffer", name), buf->part->desc.index,
		    buf->part->name, q->home->desc.index, q->home->name);
}

/* Return whether q may use buf.  A destroyed buffer has .user NULL. */
static inline bool buffer_ok(const struct hal_queue *q, const struct hal_buffer *buf)
{
	return buf != NULL && buf->user == q->home;
}

/* Return whether a copy of q may use buf, which may be host memory. */
static inline bool copy_ok(const struct hal_queue *q, const struct hal_buffer *buf)
{
	return buf != NULL && (buf->user == q->home || buf->host_user == q->home);
}

/* Return the bits of cmd.flags for a copy that host memory is one side of. */
static inline uint32_t host_flags(const struct hal_buffer *dst,
				  const struct hal_buffer *src)
{
	return ((dst->flags & HAL_BK_MEM_HOST) != 0 ? HAL_BK_CMD_TO_HOST : 0) |
	       ((src->flags & HAL_BK_MEM_HOST) != 0 ? HAL_BK_CMD_FROM_HOST : 0);
}

static inline bool range_ok(const struct hal_buffer *buf, uint64_t offset, uint64_t bytes)
{
	return offset <= buf->bytes && bytes <= buf->bytes - offset;
}

static COLD int range_bad(const struct hal_buffer *buf, uint64_t offset, uint64_t bytes,
			  const char *what)
{
	char name[BUFFER_DESCRIPTION];

	return fail(EINVAL, "%s: %llu bytes at offset %llu exceed %s's %llu bytes", what,
		    U64(bytes), U64(offset), buffer_describe(buf, "the buffer", name),
		    U64(buf->bytes));
}

/* Return whether commands may not write to buf: a bimodal buffer without SCRATCH holds
 * the same data in both placements, and a command would change only one. */
static inline bool buffer_constant(const struct hal_buffer *buf)
{
	return (buf->flags & (HAL_BUFFER_BIMODAL | HAL_BUFFER_SCRATCH)) ==
	       HAL_BUFFER_BIMODAL;
}

static COLD int constant_bad(const struct hal_buffer *buf, const char *what)
{
	char name[BUFFER_DESCRIPTION];

	return fail(EINVAL,
		    "%s: %s is HAL_BUFFER_BIMODAL without HAL_BUFFER_SCRATCH: only the "
		    "host writes to such a buffer",
		    what, buffer_describe(buf, "the buffer", name));
}

static COLD int launch_bad(const struct hal_queue *q, const struct hal_cmd *cmd)
{
	const struct hal_kernel *k = cmd->launch.kernel;

	if (!OBJECT_OK(k, OBJECT_KERNEL))
		return object_bad(k, OBJECT_KERNEL);
	if (k->user != q->dev)
		return fail(EINVAL, "kernel %s belongs to another device", k->info.name);
	if (cmd->launch.arg_count != k->info.arg_count)
		return fail(EINVAL, "kernel %s takes %u arguments, not %u", k->info.name,
			    k->info.arg_count, cmd->launch.arg_count);
	return fail(EINVAL, "kernel %s: args is NULL", k->info.name);
}

static COLD int arg_bad(const struct hal_queue *q, const struct hal_cmd *cmd,
			const struct hal_arg *arg)
{
	const struct hal_kernel *k = cmd->launch.kernel;
	uint32_t i = (uint32_t)(arg - cmd->launch.args);
	uint64_t need = k->info.arg_bytes[i];
	uint64_t bytes;
	char what[80], name[BUFFER_DESCRIPTION];

	format_text(what, sizeof(what), "kernel %s, argument %u", k->info.name, i);
	if (arg->buffer == NULL)
		return fail(EINVAL,
			    "%s is a scalar; the kernel needs a buffer of %llu bytes",
			    what, U64(need));
	if (!buffer_ok(q, arg->buffer))
		return buffer_bad(q, arg->buffer, what);
	if (!range_ok(arg->buffer, arg->offset, arg->bytes))
		return range_bad(arg->buffer, arg->offset, arg->bytes, what);
	bytes = arg->bytes != 0 ? arg->bytes : arg->buffer->bytes - arg->offset;
	return fail(EINVAL, "%s has %llu bytes%s%s; the kernel needs at least %llu", what,
		    U64(bytes), arg->buffer->name[0] != '\0' ? " of " : "",
		    buffer_describe(arg->buffer, "", name), U64(need));
}

/* Check the shape of a launch of k, and write it to r after the arguments.  A shape that
 * is the kernel's own is left out.  Return 0 or -errno. */
static COLD int write_shape(const struct hal_cmd *cmd, const struct hal_kernel *k,
			    struct record *r)
{
	struct hal_bk_shape *s = (void *)(record_args(r) + cmd->launch.arg_count);
	const uint32_t *g = cmd->launch.group_size, *own = k->info.group_size;
	uint64_t items = 1;
	bool sized = (g[0] | g[1] | g[2]) != 0, same = own[0] != 0;

	*s = (struct hal_bk_shape){.shared_bytes = cmd->launch.shared_bytes};
	for (int i = 0; sized && i < 3; i++) {
		s->group_size[i] = g[i] != 0 ? g[i] : 1;
		same = same && s->group_size[i] == own[i];
		if (__builtin_mul_overflow(items, s->group_size[i], &items))
			items = UINT64_MAX;
	}
	if (sized && same)
		memset(s->group_size, 0, sizeof(s->group_size));
	else if (sized && k->info.group_size_max == 0)
		return fail(ENOTSUP,
			    "kernel %s: group_size %u x %u x %u: its groups have a fixed "
			    "size%s",
			    k->info.name, g[0], g[1], g[2],
			    own[0] != 0 ? ", see hal_kernel_info.group_size" : "");
	else if (sized && items > k->info.group_size_max)
		return fail(
			EINVAL,
			"kernel %s: group_size %u x %u x %u exceeds the %u work items "
			"that a group may have",
			k->info.name, g[0], g[1], g[2], k->info.group_size_max);
	if (s->shared_bytes > k->info.shared_max)
		return fail(k->info.shared_max == 0 ? ENOTSUP : EINVAL,
			    "kernel %s: shared_bytes is %u, at most %u are possible",
			    k->info.name, s->shared_bytes, k->info.shared_max);
	if ((s->group_size[0] | s->shared_bytes) != 0)
		r->cmd.flags |= HAL_BK_CMD_SHAPED;
	return 0;
}

int write_launch(const struct hal_queue *q, const struct hal_cmd *cmd, struct record *r)
{
	struct hal_kernel *k = cmd->launch.kernel;
	const struct hal_arg *args = cmd->launch.args;
	uint32_t count = cmd->launch.arg_count;

	if (k == NULL || k->user != q->dev || count != k->info.arg_count ||
	    (count > 0 && args == NULL))
		return launch_bad(q, cmd);
	if (!is_bound(q, k)) {
		int err = program_bind(k->prog, q->home);

		if (err != 0)
			return err;
	}
	if (UNLIKELY(write_kernel(cmd, k, count, r))) {
		int err = write_shape(cmd, k, r);

		if (err != 0)
			return err;
	}
	if (LIKELY(count <= INLINE_ARGS_MAX) &&
	    LIKELY(write_inline_args(q->home, k, args, count, record_args(r))))
		return 0;
	for (uint32_t i = 0; i < count; i++)
		if (!write_arg(q->home, k, args, record_args(r), i))
			return arg_bad(q, cmd, &args[i]);
	return 0;
}

static int write_copy(const struct hal_queue *q, const struct hal_cmd *cmd,
		      struct record *r)
{
	const struct hal_buffer *dst = cmd->copy.dst, *src = cmd->copy.src;
	uint64_t bytes = cmd->copy.bytes;
	uint64_t to = cmd->copy.dst_offset, from = cmd->copy.src_offset;

	if (!copy_ok(q, dst))
		return buffer_bad(q, dst, "copy, destination");
	if (!copy_ok(q, src))
		return buffer_bad(q, src, "copy, source");
	if ((dst->flags & src->flags & HAL_BK_MEM_HOST) != 0)
		return fail(EINVAL, "copy: source and destination are host memory; one "
				    "of them must be a buffer of the device");
	if (bytes == 0)
		return fail(EINVAL, "copy: bytes is 0");
	if (!range_ok(dst, to, bytes))
		return range_bad(dst, to, bytes, "copy, destination");
	if (buffer_constant(dst))
		return constant_bad(dst, "copy, destination");
	if (!range_ok(src, from, bytes))
		return range_bad(src, from, bytes, "copy, source");
	if (dst == src && to < from + bytes && from < to + bytes)
		return fail(EINVAL,
			    "copy: %llu bytes at offsets %llu and %llu of one buffer "
			    "overlap",
			    U64(bytes), U64(from), U64(to));
	r->cmd.copy.dst = dst->bk;
	r->cmd.copy.src = src->bk;
	r->cmd.copy.dst_offset = to;
	r->cmd.copy.src_offset = from;
	r->cmd.copy.bytes = bytes;
	r->cmd.flags |= host_flags(dst, src);
	return 0;
}

static int write_fill(const struct hal_queue *q, const struct hal_cmd *cmd,
		      struct record *r)
{
	const struct hal_buffer *dst = cmd->fill.dst;

	if (!buffer_ok(q, dst))
		return buffer_bad(q, dst, "fill");
	if (cmd->fill.bytes == 0 || cmd->fill.bytes % 4 != 0 || cmd->fill.offset % 4 != 0)
		return fail(EINVAL,
			    "fill: %llu bytes at offset %llu: both must be multiples of "
			    "4, and bytes not 0",
			    U64(cmd->fill.bytes), U64(cmd->fill.offset));
	if (!range_ok(dst, cmd->fill.offset, cmd->fill.bytes))
		return range_bad(dst, cmd->fill.offset, cmd->fill.bytes, "fill");
	if (buffer_constant(dst))
		return constant_bad(dst, "fill");
	r->cmd.fill.dst = dst->bk;
	r->cmd.fill.offset = cmd->fill.offset;
	r->cmd.fill.bytes = cmd->fill.bytes;
	r->cmd.fill.pattern = cmd->fill.pattern;
	return 0;
}

static int write_timestamp(const struct hal_queue *q, const struct hal_cmd *cmd,
			   struct record *r)
{
	const struct hal_buffer *dst = cmd->timestamp.dst;

	if ((q->dev->info.caps & HAL_CAP_TIMESTAMP) == 0)
		return fail(ENOTSUP, "%s cannot take timestamps", q->dev->name);
	if (!buffer_ok(q, dst))
		return buffer_bad(q, dst, "timestamp");
	if (cmd->timestamp.offset % 8 != 0)
		return fail(EINVAL, "timestamp: offset %llu is not a multiple of 8",
			    U64(cmd->timestamp.offset));
	if (!range_ok(dst, cmd->timestamp.offset, 8))
		return range_bad(dst, cmd->timestamp.offset, 8, "timestamp");
	if (buffer_constant(dst))
		return constant_bad(dst, "timestamp");
	r->cmd.timestamp.dst = dst->bk;
	r->cmd.timestamp.offset = cmd->timestamp.offset;
	return 0;
}

static int write_host(const struct hal_queue *q, const struct hal_cmd *cmd,
		      struct record *r)
{
	if (cmd->host.fn == NULL)
		return fail(EINVAL, "host callback: fn is NULL");
	r->host.fn = cmd->host.fn;
	r->host.user = cmd->host.user;
	return callbacks_start(q->dev);
}

/* For operations that have no operands. */
static int write_nothing(const struct hal_queue *q, const struct hal_cmd *cmd,
			 struct record *r)
{
	(void)q, (void)cmd, (void)r;
	return 0;
}

int (*const command_writers[COMMAND_WRITERS])(const struct hal_queue *q,
					      const struct hal_cmd *cmd,
					      struct record *r) = {
	[HAL_OP_NOP] = write_nothing,         [HAL_OP_COPY] = write_copy,
	[HAL_OP_FILL] = write_fill,           [HAL_OP_LAUNCH] = write_launch,
	[HAL_OP_HOST] = write_host,           [HAL_OP_BARRIER] = write_nothing,
	[HAL_OP_TIMESTAMP] = write_timestamp,
};

COLD int write_command_bad(uint32_t i, int err)
{
	char text[400];

	format_text(text, sizeof(text), "%s", hal_last_error());
	return fail(err, "cmds[%u]: %s", i, text);
}

struct block *block_alloc(uint32_t slots)
{
	struct block *b = malloc(sizeof(*b) + slots * sizeof(struct record));

	if (b == NULL) {
		(void)fail(ENOMEM, "no memory for a submission of %u slots", slots);
		return NULL;
	}
	atomic_init(&b->refs, 1);
	b->slots = slots;
	return b;
}

void write_submission_header(const struct hal_submit_desc *d, struct record_target *to)
{
	struct record *r = target_next(to, 1);

	write_common(r, REC_HEAD, 0, 1, to->own, to->now);
	r->head.not_before_ns = d->not_before_ns;
	r->head.deadline_ns = d->deadline_ns;
	r->head.tag = d->tag;
	r->head.priority = d->priority;
	r->head.flags = d->flags;
}
