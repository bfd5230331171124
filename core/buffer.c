/* SPDX-License-Identifier: Apache-2.0 */
/* buffer.c - memory of a partition, and the host's way to it. */
#include "internal.h"

#include <errno.h>
#include <string.h>

#define U64(x) ((unsigned long long)(x))

static int desc_check(const struct hal_partition *part, struct hal_buffer_desc *d)
{
	const struct hal_device *dev = part->dev;

	if ((d->flags & ~HAL_BUFFER_MAPPABLE) != 0)
		return fail(EINVAL, "hal_buffer_desc.flags 0x%x: only 0x%x is known",
			    d->flags, HAL_BUFFER_MAPPABLE);
	if (d->bytes == 0)
		return fail(EINVAL, "a buffer of 0 bytes");
	if ((d->flags & HAL_BUFFER_MAPPABLE) != 0 && (dev->info.caps & HAL_CAP_MAP) == 0)
		return fail(ENOTSUP, "%s cannot map buffers", dev->name);
	if (d->color_mask != 0 && dev->info.colors == 0)
		return fail(ENOTSUP,
			    "colours 0x%llx asked for, but %s knows no memory "
			    "channels",
			    U64(d->color_mask), dev->name);
	if ((d->color_mask & ~part->desc.color_mask) != 0)
		return fail(EINVAL,
			    "colours 0x%llx asked for, partition %u \"%s\" has 0x%llx",
			    U64(d->color_mask), part->desc.index, part->name,
			    U64(part->desc.color_mask));
	if (d->color_mask == 0)
		d->color_mask = part->desc.color_mask;
	return 0;
}

int hal_buffer_create(struct hal_partition *part, const struct hal_buffer_desc *desc,
		      struct hal_buffer **out)
{
	struct hal_buffer_desc d;
	struct hal_device *dev;
	struct hal_buffer *buf;
	int err;

	if (!OBJECT_OK(part, OBJECT_PARTITION))
		return object_bad(part, OBJECT_PARTITION);
	if (out == NULL)
		return fail(EINVAL, "hal_buffer_create: buf is NULL");
	err = import_struct(&d, sizeof(d), sizeof(d), desc, "hal_buffer_desc");
	if (err == 0)
		err = desc_check(part, &d);
	if (err != 0)
		return err;
	buf = object_alloc(OBJECT_BUFFER, sizeof(*buf));
	if (buf == NULL)
		return -ENOMEM;
	dev = part->dev;
	buf->dev = dev;
	buf->part = part;
	buf->user = part;
	buf->bytes = d.bytes;
	buf->flags = d.flags;
	device_lock(dev);
	err = partition_charge(part, d.bytes, "a buffer");
	if (err != 0)
		goto out;
	err = dev->backend->table.cold.mem_alloc(dev->bk, part->bk, d.bytes, d.color_mask,
						 d.flags, &buf->bk);
	if (err != 0) {
		partition_release(part, d.bytes);
		goto out;
	}
	part->buffer_count++;
	*out = buf;
out:
	device_unlock(dev);
	if (err != 0)
		object_free(OBJECT_BUFFER, buf);
	return err;
}

static void buffer_bury(void *object)
{
	struct hal_buffer *buf = object;
	struct hal_device *dev = buf->dev;

	(void)dev->backend->table.cold.mem_free(dev->bk, buf->bk);
	partition_release(buf->part, buf->bytes);
	buf->part->buffer_count--;
	object_free(OBJECT_BUFFER, buf);
}

int hal_buffer_destroy(struct hal_buffer *buf)
{
	struct hal_device *dev;
	int err;

	if (buf == NULL)
		return 0;
	if (!OBJECT_OK(buf, OBJECT_BUFFER))
		return object_bad(buf, OBJECT_BUFFER);
	err = callback_refuse("hal_buffer_destroy");
	if (err != 0)
		return err;
	dev = buf->dev;
	device_lock(dev);
	if (buf->maps > 0) {
		(void)dev->backend->table.cold.mem_unmap(dev->bk, buf->bk);
		buf->maps = 0;
	}
	object_retire(&buf->obj);
	buf->user = NULL;
	err = grave_dig(dev, buf->part, buffer_bury, buf);
	if (err != 0) {
		buf->obj.magic = OBJECT_MAGIC(OBJECT_BUFFER);
		buf->user = buf->part;
	}
	device_unlock(dev);
	return err;
}

uint64_t hal_buffer_bytes(const struct hal_buffer *buf)
{
	if (!OBJECT_OK(buf, OBJECT_BUFFER)) {
		(void)object_bad(buf, OBJECT_BUFFER);
		return 0;
	}
	return buf->bytes;
}

static int range_check(const struct hal_buffer *buf, uint64_t offset, const void *data,
		       uint64_t bytes, const char *what)
{
	if (offset > buf->bytes || bytes > buf->bytes - offset)
		return fail(EINVAL, "%s: %llu bytes at %llu reach past the buffer's %llu",
			    what, U64(bytes), U64(offset), U64(buf->bytes));
	if (data == NULL && bytes != 0)
		return fail(EINVAL, "%s: data is NULL", what);
	return 0;
}

int hal_buffer_write(struct hal_buffer *buf, uint64_t offset, const void *data,
		     uint64_t bytes)
{
	struct hal_device *dev;
	int err;

	if (!OBJECT_OK(buf, OBJECT_BUFFER))
		return object_bad(buf, OBJECT_BUFFER);
	err = range_check(buf, offset, data, bytes, "hal_buffer_write");
	if (err != 0 || bytes == 0)
		return err;
	dev = buf->dev;
	device_lock(dev);
	err = dev->backend->table.cold.mem_write(dev->bk, buf->bk, offset, data, bytes);
	device_unlock(dev);
	return err;
}

int hal_buffer_read(struct hal_buffer *buf, uint64_t offset, void *data, uint64_t bytes)
{
	struct hal_device *dev;
	int err;

	if (!OBJECT_OK(buf, OBJECT_BUFFER))
		return object_bad(buf, OBJECT_BUFFER);
	err = range_check(buf, offset, data, bytes, "hal_buffer_read");
	if (err != 0 || bytes == 0)
		return err;
	dev = buf->dev;
	device_lock(dev);
	err = dev->backend->table.cold.mem_read(dev->bk, buf->bk, offset, data, bytes);
	device_unlock(dev);
	return err;
}

int hal_buffer_map(struct hal_buffer *buf, void **address)
{
	struct hal_device *dev;
	int err = 0;

	if (!OBJECT_OK(buf, OBJECT_BUFFER))
		return object_bad(buf, OBJECT_BUFFER);
	if (address == NULL)
		return fail(EINVAL, "hal_buffer_map: address is NULL");
	dev = buf->dev;
	if ((dev->info.caps & HAL_CAP_MAP) == 0)
		return fail(ENOTSUP, "%s cannot map buffers", dev->name);
	device_lock(dev);
	if (buf->maps == 0)
		err = dev->backend->table.cold.mem_map(dev->bk, buf->bk, &buf->address);
	if (err == 0) {
		buf->maps++;
		*address = buf->address;
	}
	device_unlock(dev);
	return err;
}

int hal_buffer_unmap(struct hal_buffer *buf)
{
	struct hal_device *dev;
	int err = 0;

	if (!OBJECT_OK(buf, OBJECT_BUFFER))
		return object_bad(buf, OBJECT_BUFFER);
	dev = buf->dev;
	device_lock(dev);
	if (buf->maps == 0)
		err = fail(EINVAL, "hal_buffer_unmap: the buffer is not mapped");
	else if (--buf->maps == 0)
		err = dev->backend->table.cold.mem_unmap(dev->bk, buf->bk);
	device_unlock(dev);
	return err;
}
