/* SPDX-License-Identifier: Apache-2.0 */
/* memory.c - partitions and buffers of far devices. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "far/internal.h"
#include "util/error.h"

/* Room for a description with what hangs on it. */
enum { DESC_ROOM = 1024 };

/* ---- partitions -------------------------------------------------------------------- */

/* Write d, with a handle for its host, and its limits to `to`.  Return the bytes. */
static size_t put_desc(struct far_device *dev, char *to,
		       const struct hal_partition_desc *d, uint64_t *limited, int *err)
{
	struct hal_partition_desc ours = {0};
	size_t n = far_copy_struct(to, DESC_ROOM / 2, d, err);
	uint64_t host;

	*limited = 0;
	if (*err != 0 || n < offsetof(struct hal_partition_desc, host) + sizeof(host))
		return n;
	memcpy(&ours, d, n < sizeof(ours) ? n : sizeof(ours));
	host = far_handle(dev, ours.host, OBJECT_PARTITION, "hal_partition_desc.host",
			  err);
	memcpy(to + offsetof(struct hal_partition_desc, host), &host, sizeof(host));
	if (n < offsetof(struct hal_partition_desc, limits) + sizeof(host) ||
	    ours.limits == NULL)
		return n;
	*limited = 1;
	return n + far_copy_struct(to + n, DESC_ROOM - n, ours.limits, err);
}

/* No program is placed in a new partition, whose index an older one may have had. */
static void unbind_all(struct far_device *dev, uint32_t index)
{
	pthread_mutex_lock(&dev->lock);
	for (struct far_program *prog = dev->programs; prog != NULL; prog = prog->next)
		if (index < FAR_BOUND_MAX)
			atomic_fetch_and(&prog->bound[index / 64],
					 ~(UINT64_C(1) << index % 64));
	pthread_mutex_unlock(&dev->lock);
}

static int partition_made(struct far_device *dev, struct far_call *c,
			  struct hal_partition **out)
{
	struct far *part;
	int err = far_ask(dev, c);

	if (err != 0)
		return err;
	part = far_object(dev, OBJECT_PARTITION, sizeof(*part), c->a[0]);
	if (part == NULL)
		return -ENOMEM;
	unbind_all(dev, FAR_INDEX(c->a[0]));
	*out = (struct hal_partition *)part;
	return 0;
}

int far_partition_create(struct hal_device *device, const struct hal_partition_desc *desc,
			 struct hal_partition **out)
{
	struct far_device *dev = (struct far_device *)device;
	char payload[DESC_ROOM];
	struct far_call c = {.op = FAR_PARTITION, .out = payload};
	int err = 0;

	if (out == NULL)
		return fail(EINVAL, "hal_partition_create: part is NULL");
	c.out_bytes = put_desc(dev, payload, desc, &c.a[0], &err);
	return err != 0 ? err : partition_made(dev, &c, out);
}

int far_partition_create_named(struct hal_device *device, const char *name,
			       struct hal_partition **out)
{
	struct far_device *dev = (struct far_device *)device;
	struct far_call c = {.op = FAR_PARTITION_NAMED, .out = name};

	if (out == NULL || name == NULL)
		return fail(EINVAL, "hal_partition_create_named: %s is NULL",
			    out == NULL ? "part" : "name");
	c.out_bytes = strlen(name) + 1;
	return partition_made(dev, &c, out);
}

int far_partition_resize(struct hal_partition *part,
			 const struct hal_partition_desc *desc, struct hal_point *done)
{
	const struct far *p = (const struct far *)part;
	char payload[DESC_ROOM];
	struct far_call c = {.op = FAR_RESIZE, .a = {p->handle}, .out = payload};
	int err = 0;

	c.out_bytes = put_desc(p->dev, payload, desc, &c.a[1], &err);
	if (err == 0)
		err = far_ask(p->dev, &c);
	return err != 0 ? err : far_point(p->dev, &c, p->handle, done);
}

/* Return the device of the first far partition; NULL with an error if the first one of
 * all is not far. */
static struct far_device *move_device(struct hal_partition *const *parts, uint32_t count)
{
	const struct far *first = (const struct far *)parts[0];

	if (count <= 32 && OBJECT_IS_FAR(first, OBJECT_PARTITION))
		return first->dev;
	(void)fail(EINVAL,
		   "hal_partitions_move: the partitions belong to several devices");
	return NULL;
}

int far_partitions_move(struct hal_partition *const *parts,
			const struct hal_partition_desc *descs, uint32_t count,
			struct hal_point *done)
{
	struct far_device *dev = move_device(parts, count);
	const char *from = (const char *)descs;
	char payload[32 * DESC_ROOM];
	struct far_call c = {.op = FAR_MOVE, .a = {count}, .out = payload};
	uint64_t size = far_size(descs), limited;
	char *to = payload;
	int err = dev == NULL ? -EINVAL : 0;

	for (uint32_t i = 0; err == 0 && i < count; i++, to += sizeof(uint64_t)) {
		uint64_t handle = far_handle(dev, parts[i], OBJECT_PARTITION,
					     "hal_partitions_move, parts", &err);

		if (parts[i] == NULL)
			err = fail(EINVAL, "parts[%u]: the partition is NULL", i);
		memcpy(to, &handle, sizeof(handle));
	}
	for (uint32_t i = 0; err == 0 && i < count; i++, from += size, to += size) {
		const struct hal_partition_desc *d = (const void *)from;

		if (far_size(d) != size)
			return fail(
				EINVAL,
				"hal_partitions_move: descs[%u].size is %llu, that of "
				"descs[0] is %llu",
				i, U64(far_size(d)), U64(size));
		(void)put_desc(dev, to, d, &limited, &err);
		if (err == 0 && limited != 0)
			err = fail(ENOTSUP, "descs[%u].limits: a move cannot change them",
				   i);
	}
	c.a[1] = size;
	c.out_bytes = (uint64_t)(to - payload);
	if (err == 0)
		err = far_ask(dev, &c);
	return err != 0
		       ? err
		       : far_point(dev, &c, ((const struct far *)parts[0])->handle, done);
}

int far_partition_destroy(struct hal_partition *part)
{
	const struct far *p = (const struct far *)part;
	int err = far_destroy(FAR_PARTITION_DESTROY, p);

	if (err != 0)
		return err;
	far_timelines_free(p->dev, p->handle);
	far_object_free(OBJECT_PARTITION, part);
	return 0;
}

int far_partition_get_info(const struct hal_partition *part,
			   struct hal_partition_info *info)
{
	return far_get(FAR_PARTITION_INFO, (const struct far *)part, info);
}

int far_partition_get_stats(struct hal_partition *part, struct hal_stats *stats)
{
	return far_get(FAR_PARTITION_STATS, (const struct far *)part, stats);
}

int far_partition_get_memory_info(const struct hal_partition *part,
				  struct hal_partition_memory_info *info)
{
	return far_get(FAR_PARTITION_MEMORY, (const struct far *)part, info);
}

/* ---- buffers ----------------------------------------------------------------------- */

/* Ask by c for a buffer of that description in part; NULL: for host memory. */
static int buffer_made(const struct far *part, struct far_call *c,
		       const struct hal_buffer_desc *d, struct hal_buffer **out)
{
	struct far_device *dev = part->dev;
	struct far_buffer *buf;
	int err = far_ask(dev, c);

	if (err != 0)
		return err;
	buf = far_object(dev, OBJECT_BUFFER, sizeof(*buf), c->a[0]);
	if (buf == NULL)
		return -ENOMEM;
	buf->bytes = c->a[1];
	buf->part = d != NULL && (d->flags & HAL_BUFFER_BIMODAL) == 0 ? part : NULL;
	buf->exportable = d != NULL && (d->flags & HAL_BUFFER_EXPORTABLE) != 0;
	buf->imported = -1;
	*out = (struct hal_buffer *)buf;
	return 0;
}

int far_buffer_create(struct hal_partition *part, const struct hal_buffer_desc *desc,
		      const uint8_t *weights, struct hal_buffer **out)
{
	const struct far *p = (const struct far *)part;
	char payload[DESC_ROOM];
	struct far_call c = {.op = FAR_BUFFER, .a = {p->handle}, .out = payload};
	int err = 0;

	if (out == NULL)
		return fail(EINVAL, "hal_buffer_create: buf is NULL");
	c.out_bytes = far_copy_struct(payload, DESC_ROOM / 2, desc, &err);
	c.a[2] = far_size(desc);
	if (weights != NULL) {
		c.a[1] = p->dev->info.colors;
		memcpy(payload + c.out_bytes, weights, c.a[1]);
		c.out_bytes += c.a[1];
	}
	return err != 0 ? err : buffer_made(p, &c, desc, out);
}

int far_buffer_import(struct hal_partition *part, int fd,
		      const struct hal_buffer_desc *desc, struct hal_buffer **out)
{
	const struct far *p = (const struct far *)part;
	char payload[DESC_ROOM];
	struct far_call c = {.op = FAR_BUFFER_IMPORT,
			     .a = {p->handle},
			     .out = payload,
			     .out_fd = fd + 1};
	int own, err = 0;

	if (out == NULL)
		return fail(EINVAL, "hal_buffer_import: buf is NULL");
	if (fd < 0 || fcntl(fd, F_GETFD) < 0)
		return fail(EBADF, "hal_buffer_import: fd %d is not open", fd);
	c.out_bytes = far_copy_struct(payload, DESC_ROOM, desc, &err);
	own = err == 0 ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;
	if (err == 0 && own < 0)
		err = fail(errno, "hal_buffer_import: dup: %s", hal_strerror(errno));
	if (err == 0)
		err = buffer_made(p, &c, desc, out);
	if (err == 0)
		((struct far_buffer *)*out)->imported = own;
	else if (own >= 0)
		(void)close(own);
	return err;
}

int far_buffer_destroy(struct hal_buffer *buffer)
{
	struct far_buffer *buf = (struct far_buffer *)buffer;
	int err = far_destroy(FAR_BUFFER_DESTROY, &buf->far);

	if (err != 0)
		return err;
	if (buf->mapped != NULL)
		(void)munmap(buf->mapped, buf->bytes);
	if (buf->imported >= 0)
		(void)close(buf->imported);
	buf->part = NULL;
	far_object_free(OBJECT_BUFFER, buf);
	return 0;
}

uint64_t far_buffer_get_bytes(const struct hal_buffer *buf)
{
	return ((const struct far_buffer *)buf)->bytes;
}

/* Return 0 if the range lies in buf and data is given, else -EINVAL. */
static int range_check(const struct far_buffer *buf, uint64_t offset, const void *data,
		       uint64_t bytes, const char *what)
{
	if (data == NULL && bytes != 0)
		return fail(EINVAL, "%s: data is NULL", what);
	if (offset > buf->bytes || bytes > buf->bytes - offset)
		return fail(EINVAL,
			    "%s: bytes %llu to %llu of a buffer that has %llu bytes",
			    what, U64(offset), U64(offset) + U64(bytes), U64(buf->bytes));
	return 0;
}

int far_buffer_write(struct hal_buffer *buffer, uint64_t offset, const void *data,
		     uint64_t bytes)
{
	const struct far_buffer *buf = (const struct far_buffer *)buffer;
	const char *from = data;
	int err = range_check(buf, offset, data, bytes, "hal_buffer_write");

	do {
		uint64_t part = bytes < FAR_CHUNK ? bytes : FAR_CHUNK;
		struct far_call c = {.op = FAR_BUFFER_WRITE,
				     .a = {buf->far.handle, offset},
				     .out = from,
				     .out_bytes = part};

		if (err == 0)
			err = far_ask(buf->far.dev, &c);
		offset += part;
		from += part;
		bytes -= part;
	} while (err == 0 && bytes > 0);
	return err;
}

int far_buffer_read(struct hal_buffer *buffer, uint64_t offset, void *data,
		    uint64_t bytes)
{
	const struct far_buffer *buf = (const struct far_buffer *)buffer;
	char *to = data;
	int err = range_check(buf, offset, data, bytes, "hal_buffer_read");

	do {
		uint64_t part = bytes < FAR_CHUNK ? bytes : FAR_CHUNK;
		struct far_call c = {.op = FAR_BUFFER_READ,
				     .a = {buf->far.handle, offset, part},
				     .in = to,
				     .in_max = part};

		if (err == 0)
			err = far_ask(buf->far.dev, &c);
		if (err == 0 && c.in_bytes != part)
			err = fail(EPROTO, "hald answers with %llu of %llu bytes",
				   U64(c.in_bytes), U64(part));
		offset += part;
		to += part;
		bytes -= part;
	} while (err == 0 && bytes > 0);
	return err;
}

/* Map the memory of buf into this process, if it is not mapped yet. */
static int map_here(struct far_buffer *buf, int fd)
{
	void *at;

	if (buf->mapped != NULL)
		return 0;
	at = mmap(NULL, buf->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		return fail(errno, "hal_buffer_map: mmap: %s", hal_strerror(errno));
	buf->mapped = at;
	return 0;
}

int far_buffer_map(struct hal_buffer *buffer, void **address)
{
	struct far_buffer *buf = (struct far_buffer *)buffer;
	struct far_device *dev = buf->far.dev;
	struct far_call c = {.op = FAR_BUFFER_MAP,
			     .a = {buf->far.handle, buf->imported >= 0}};
	int err;

	if (address == NULL)
		return fail(EINVAL, "hal_buffer_map: address is NULL");
	err = far_ask(dev, &c);
	if (err != 0)
		return err;
	pthread_mutex_lock(&dev->lock);
	err = map_here(buf, buf->imported >= 0 ? buf->imported : c.in_fd);
	if (err == 0) {
		buf->maps++;
		*address = buf->mapped;
	}
	pthread_mutex_unlock(&dev->lock);
	if (c.in_fd >= 0)
		(void)close(c.in_fd);
	return err;
}

int far_buffer_unmap(struct hal_buffer *buffer)
{
	struct far_buffer *buf = (struct far_buffer *)buffer;
	struct far_device *dev = buf->far.dev;
	struct far_call c = {.op = FAR_BUFFER_UNMAP, .a = {buf->far.handle}};
	int err = far_ask(dev, &c);

	if (err != 0)
		return err;
	pthread_mutex_lock(&dev->lock);
	if (buf->maps > 0 && --buf->maps == 0) {
		(void)munmap(buf->mapped, buf->bytes);
		buf->mapped = NULL;
	}
	pthread_mutex_unlock(&dev->lock);
	return 0;
}

int far_buffer_export(struct hal_buffer *buffer, int *fd)
{
	const struct far_buffer *buf = (const struct far_buffer *)buffer;
	struct far_call c = {.op = FAR_BUFFER_EXPORT, .a = {buf->far.handle}};
	int err;

	if (fd == NULL)
		return fail(EINVAL, "hal_buffer_export: fd is NULL");
	/* hald makes each mappable buffer such that it can export it. */
	if (!buf->exportable)
		return fail(EINVAL, "hal_buffer_export: the buffer was created without "
				    "HAL_BUFFER_EXPORTABLE");
	err = far_ask(buf->far.dev, &c);
	if (err == 0)
		*fd = c.in_fd;
	return err;
}

int far_buffer_recolor(struct hal_buffer *buffer, struct hal_queue *queue,
		       uint64_t color_mask, const uint8_t *weights,
		       struct hal_point *done)
{
	const struct far *buf = (const struct far *)buffer;
	struct far_device *dev = buf->dev;
	struct far_call c = {.op = FAR_BUFFER_RECOLOR,
			     .a = {buf->handle, 0, color_mask},
			     .out = weights,
			     .out_bytes = weights != NULL ? dev->info.colors : 0};
	int err = 0;

	if (queue == NULL)
		return object_bad(queue, OBJECT_QUEUE);
	c.a[1] = far_handle(dev, queue, OBJECT_QUEUE, "hal_buffer_recolor, queue", &err);
	if (err == 0)
		err = far_ask(dev, &c);
	if (err != 0)
		return err;
	far_ring_moved((struct far_queue *)queue, &c);
	return far_point(dev, &c, ((const struct far *)queue)->handle, done);
}

/* ---- host memory ------------------------------------------------------------------- */

int far_host_alloc(struct hal_partition *part, uint64_t bytes, struct hal_buffer **host,
		   void **address)
{
	const struct far *p = (const struct far *)part;
	struct far_call c = {.op = FAR_HOST, .a = {p->handle, bytes}};
	struct far_buffer *buf;
	int err;

	if (host == NULL || address == NULL)
		return fail(EINVAL, "hal_host_alloc: %s is NULL",
			    host == NULL ? "host" : "address");
	err = buffer_made(p, &c, NULL, host);
	if (err != 0)
		return err;
	buf = (struct far_buffer *)*host;
	buf->bytes = bytes;
	err = map_here(buf, c.in_fd);
	(void)close(c.in_fd);
	if (err != 0)
		(void)far_buffer_destroy(*host);
	else
		*address = buf->mapped;
	return err;
}

int far_host_register(void)
{
	return fail(ENOTSUP, "hal_host_register: the device is in another process, which "
			     "cannot reach this one's memory; use hal_host_alloc");
}
