/* SPDX-License-Identifier: Apache-2.0 */
/* buffer.c - memory of partitions: made, copied to and from, mapped, destroyed. */
#include <errno.h>
#include <stdlib.h>

#include "api/handle.h"
#include "engine/deferred.h"
#include "engine/engine.h"
#include "engine/resize.h"
#include "engine/trace.h"

static int desc_check(const struct hal_partition *part, struct hal_buffer_desc *d)
{
	uint64_t colors = part->desc.color_mask; /* never changes */

	if ((d->flags & ~HAL_BUFFER_MAPPABLE) != 0)
		return fail(EINVAL, "hal_buffer_desc.flags 0x%x: only 0x%x is known",
			    d->flags, HAL_BUFFER_MAPPABLE);
	if (d->bytes == 0)
		return fail(EINVAL, "a buffer of 0 bytes");
	if ((d->flags & HAL_BUFFER_MAPPABLE) != 0 &&
	    (part->dev->info.caps & HAL_CAP_MAP) == 0)
		return fail(ENOTSUP, "%s cannot map buffers", part->dev->name);
	if ((d->color_mask & ~colors) != 0)
		return fail(EINVAL,
			    "colours 0x%llx asked for, partition %u \"%s\" has 0x%llx",
			    U64(d->color_mask), part->obj.id, part->name, U64(colors));
	if (d->color_mask == 0)
		d->color_mask = colors;
	return 0;
}

struct alloc {
	struct hal_buffer *buf;
	const struct hal_buffer_desc *desc;
};

static int alloc(struct hal_device *dev, void *arg)
{
	const struct alloc *a = arg;
	struct hal_buffer *buf = a->buf;
	const struct hal_buffer_desc *d = a->desc;
	int err = partition_charge(buf->part, d->bytes, "a buffer");

	if (err != 0)
		return err;
	err = dev->table->cold.mem_alloc(dev->bk, buf->part->bk, d->bytes, d->color_mask,
					 d->flags, &buf->bk);
	if (err != 0) {
		partition_release(buf->part, d->bytes);
		return err;
	}
	counter_add(&buf->part->buffer_count, 1);
	trace_memory(dev, buf->part);
	return 0;
}

int hal_buffer_create(struct hal_partition *part, const struct hal_buffer_desc *desc,
		      struct hal_buffer **out)
{
	struct hal_buffer_desc d;
	struct hal_buffer *buf;
	struct alloc a;
	int err;

	if (!OBJECT_OK(part, OBJECT_PARTITION))
		return object_bad(part, OBJECT_PARTITION);
	if (out == NULL)
		return fail(EINVAL, "hal_buffer_create: buf is NULL");
	err = import_struct(&d, sizeof(d), sizeof(d), desc, "hal_buffer_desc");
	if (err == 0)
		err = desc_check(part, &d);
	if (err == 0)
		err = device_alive(part->dev);
	if (err != 0)
		return err;
	buf = object_alloc(OBJECT_BUFFER, sizeof(*buf));
	if (buf == NULL)
		return -ENOMEM;
	buf->dev = part->dev;
	buf->part = part;
	buf->user = part;
	buf->bytes = d.bytes;
	buf->flags = d.flags;
	atomic_init(&buf->pins, 1);
	a = (struct alloc){buf, &d};
	err = engine_call(part->dev, alloc, &a);
	if (err != 0)
		object_free(OBJECT_BUFFER, buf);
	else
		*out = buf;
	return err;
}

/* ---- destroy ----------------------------------------------------------------------- */

/* By the engine: nothing uses it any more. */
static void free_buffer(struct deferred *d)
{
	struct hal_buffer *buf = container_of(d, struct hal_buffer, deferred);
	struct hal_device *dev = buf->dev;

	(void)dev->table->cold.mem_free(dev->bk, buf->bk);
	partition_release(buf->part, buf->bytes);
	counter_add(&buf->part->buffer_count, UINT64_MAX);
	trace_memory(dev, buf->part);
	object_free(OBJECT_BUFFER, buf);
}

static int free_when_unused(struct hal_device *dev, void *arg)
{
	struct hal_buffer *buf = arg;

	if (buf->maps > 0) {
		(void)dev->table->cold.mem_unmap(dev->bk, buf->bk);
		buf->maps = 0;
	}
	buf->deferred.dev = dev;
	buf->deferred.home = buf->part;
	buf->deferred.free = free_buffer;
	deferred_free(&buf->deferred);
	return 0;
}

void buffer_pin(struct hal_buffer *buf)
{
	atomic_fetch_add(&buf->pins, 1);
}

void buffer_unpin(struct hal_buffer *buf)
{
	if (atomic_fetch_sub(&buf->pins, 1) == 1)
		(void)engine_call(buf->dev, free_when_unused, buf);
}

int hal_buffer_destroy(struct hal_buffer *buf)
{
	if (buf == NULL)
		return 0;
	if (!OBJECT_OK(buf, OBJECT_BUFFER))
		return object_bad(buf, OBJECT_BUFFER);
	object_retire(&buf->obj);
	buf->user = NULL;
	buffer_unpin(buf);
	return 0;
}

uint64_t hal_buffer_bytes(const struct hal_buffer *buf)
{
	if (!OBJECT_OK(buf, OBJECT_BUFFER)) {
		(void)object_bad(buf, OBJECT_BUFFER);
		return 0;
	}
	return buf->bytes;
}

/* ---- copies ------------------------------------------------------------------------ */

struct copy {
	struct hal_buffer *buf;
	uint64_t offset, bytes;
	const void *from; /* NULL: to the host */
	void *to;
};

static int copy(struct hal_device *dev, void *arg)
{
	const struct copy *c = arg;

	if (c->from != NULL)
		return dev->table->cold.mem_write(dev->bk, c->buf->bk, c->offset, c->from,
						  c->bytes);
	return dev->table->cold.mem_read(dev->bk, c->buf->bk, c->offset, c->to, c->bytes);
}

static int copy_checked(const struct copy *c, const char *what)
{
	struct hal_device *dev;
	int err;

	if (!OBJECT_OK(c->buf, OBJECT_BUFFER))
		return object_bad(c->buf, OBJECT_BUFFER);
	if (c->offset > c->buf->bytes || c->bytes > c->buf->bytes - c->offset)
		return fail(EINVAL, "%s: %llu bytes at %llu reach past the buffer's %llu",
			    what, U64(c->bytes), U64(c->offset), U64(c->buf->bytes));
	if (c->from == NULL && c->to == NULL && c->bytes != 0)
		return fail(EINVAL, "%s: data is NULL", what);
	if (c->bytes == 0)
		return 0;
	dev = c->buf->dev;
	err = device_alive(dev);
	if (err != 0)
		return err;
	return device_beside(dev, HAL_BK_BESIDE_COPY, copy, c);
}

int hal_buffer_write(struct hal_buffer *buf, uint64_t offset, const void *data,
		     uint64_t bytes)
{
	const struct copy c = {
		.buf = buf, .offset = offset, .bytes = bytes, .from = data};

	return copy_checked(&c, "hal_buffer_write");
}

int hal_buffer_read(struct hal_buffer *buf, uint64_t offset, void *data, uint64_t bytes)
{
	const struct copy c = {.buf = buf, .offset = offset, .bytes = bytes, .to = data};

	return copy_checked(&c, "hal_buffer_read");
}

/* ---- maps -------------------------------------------------------------------------- */

static int map(struct hal_device *dev, void *arg)
{
	struct hal_buffer *buf = arg;
	int err = 0;

	if (buf->maps == 0)
		err = dev->table->cold.mem_map(dev->bk, buf->bk, &buf->address);
	if (err == 0)
		buf->maps++;
	return err;
}

int hal_buffer_map(struct hal_buffer *buf, void **address)
{
	int err;

	if (!OBJECT_OK(buf, OBJECT_BUFFER))
		return object_bad(buf, OBJECT_BUFFER);
	if (address == NULL)
		return fail(EINVAL, "hal_buffer_map: address is NULL");
	if ((buf->dev->info.caps & HAL_CAP_MAP) == 0)
		return fail(ENOTSUP, "%s cannot map buffers", buf->dev->name);
	err = device_alive(buf->dev);
	if (err == 0)
		err = engine_call(buf->dev, map, buf);
	if (err == 0)
		*address = buf->address;
	return err;
}

static int unmap(struct hal_device *dev, void *arg)
{
	struct hal_buffer *buf = arg;

	if (buf->maps == 0)
		return fail(EINVAL, "hal_buffer_unmap: the buffer is not mapped");
	return --buf->maps == 0 ? dev->table->cold.mem_unmap(dev->bk, buf->bk) : 0;
}

int hal_buffer_unmap(struct hal_buffer *buf)
{
	if (!OBJECT_OK(buf, OBJECT_BUFFER))
		return object_bad(buf, OBJECT_BUFFER);
	return engine_call(buf->dev, unmap, buf);
}
