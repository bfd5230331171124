/* SPDX-License-Identifier: Apache-2.0 */
/* memory.c - requests about partitions, buffers and programs. */
#define _GNU_SOURCE
#include "requests.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <hal/ext/memory.h>

#include "api/tracing.h"
#include "sched/inherit.h"
#include "util/compiler.h"
#include "util/error.h"

/* ---- partitions -------------------------------------------------------------------- */

/* A partition's description, with the objects that it names. */
struct desc {
	union {
		struct hal_partition_desc d;
		char room[STRUCT_MAX];
	} own;
	union {
		struct hal_partition_limits l;
		char room[STRUCT_MAX];
	} limits;
	struct hal_partition_desc *d; /* NULL: the caller's pointer is */
	struct entry *host;
};

/* Read the description at `at` of the payload, which ends at end, with limits behind it
 * if limited is set. */
static int desc_in(struct request *r, uint64_t at, uint64_t end, bool limited,
		   struct desc *d)
{
	struct hal_partition_desc *own = &d->own.d;
	void *in, *limits = NULL;
	uint64_t host;
	int err = struct_in(r, at, end, &d->own, sizeof(d->own), &in);

	d->d = in;
	d->host = NULL;
	if (err != 0 || in == NULL)
		return err;
	at += own->size;
	if (!limited != (at == end))
		return broken(r, "a description has the wrong size");
	if (limited)
		err = struct_in(r, at, end, &d->limits, sizeof(d->limits), &limits);
	if (err != 0)
		return err;
	memcpy(&host, &own->host, sizeof(host));
	own->host = NULL;
	own->limits = limits;
	if (host == 0)
		return 0;
	d->host = handle_hold(&r->client->handles, host, KIND_PARTITION);
	if (d->host == NULL)
		return -EINVAL;
	own->host = d->host->object;
	return 0;
}

/* Write a handle for part, which d describes, into the answer, and count it. */
static int partition_made(struct request *r, struct hal_partition *part,
			  const struct hal_partition_desc *d)
{
	struct entry *e;

	r->m.a[0] = handle_add_hidden(&r->client->handles, KIND_PARTITION, part, &e);
	if (r->m.a[0] == 0)
		return -ENOMEM;
	tenant_count_partition(r->client, e, d);
	inherit_within(part, r->client->tenant->owner);
	tracing_tenant(part, r->client->tenant->number);
	handle_end_destroy(&r->client->handles, e, false);
	return 0;
}

int do_partition(struct request *r)
{
	struct tenant *t = r->client->tenant;
	struct hal_partition *part;
	struct desc d;
	int err = desc_in(r, 0, r->m.bytes, r->m.a[0] != 0, &d);

	pthread_mutex_lock(&t->lock);
	if (err == 0)
		err = tenant_check_partition(r->client, d.d, NULL);
	if (err == 0)
		err = hal_partition_create(device_of(r), d.d, &part);
	if (err == 0)
		err = partition_made(r, part, d.d);
	pthread_mutex_unlock(&t->lock);
	release(r, d.host);
	return err;
}

/* Give the client part, which a section of hald's configuration describes, unless that is
 * too much for its tenant. */
static int named_made(struct request *r, struct hal_partition *part)
{
	struct hal_partition_info info = HAL_INIT(hal_partition_info);
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	int err = hal_partition_get_info(part, &info);

	if (err != 0)
		return err;
	d.units_floor = info.units;
	d.memory_bytes = info.memory_bytes;
	err = tenant_check_partition(r->client, &d, NULL);
	return err != 0 ? err : partition_made(r, part, &d);
}

int do_partition_named(struct request *r)
{
	const char *name = text_in(r);
	struct tenant *t = r->client->tenant;
	struct hal_partition *part;
	int err;

	if (name == NULL)
		return -EPROTO;
	pthread_mutex_lock(&t->lock);
	err = hal_partition_create_named(device_of(r), name, &part);
	if (err == 0) {
		err = named_made(r, part);
		if (err != 0)
			(void)hal_partition_destroy(part);
	}
	pthread_mutex_unlock(&t->lock);
	return err;
}

int do_resize(struct request *r)
{
	struct tenant *t = r->client->tenant;
	struct entry *part = hold(r, 0, KIND_PARTITION);
	uint64_t parent = r->m.a[0];
	struct hal_point done = {0};
	struct desc d = {.host = NULL};
	int err = part == NULL ? -EINVAL : desc_in(r, 0, r->m.bytes, r->m.a[1] != 0, &d);

	pthread_mutex_lock(&t->lock);
	if (err == 0)
		err = tenant_check_partition(r->client, d.d, part);
	if (err == 0)
		err = hal_partition_resize(part->object, d.d, &done);
	if (err == 0)
		tenant_count_partition(r->client, part, d.d);
	pthread_mutex_unlock(&t->lock);
	if (err == 0)
		err = point_out(r, &done, parent);
	release(r, d.host);
	release(r, part);
	return err;
}

enum { MOVES_MAX = 32 };

int do_move(struct request *r)
{
	uint64_t count = r->m.a[0], size = r->m.a[1], handles[MOVES_MAX] = {0};
	uint64_t at = count * sizeof(uint64_t);
	struct tenant *t = r->client->tenant;
	struct entry *held[MOVES_MAX] = {NULL};
	struct hal_partition *parts[MOVES_MAX];
	struct hal_point done = {0};
	struct desc *d;
	char *descs;
	int err = 0;

	if (count == 0 || count > MOVES_MAX || size < sizeof(uint32_t) ||
	    size > STRUCT_MAX || r->m.bytes != at + count * size)
		return broken(r, "the sizes of a move are wrong");
	memcpy(handles, r->data, at);
	d = calloc(count, sizeof(*d));
	descs = calloc(count, size);
	if (d == NULL || descs == NULL) {
		free(descs);
		free(d);
		return fail(ENOMEM, "hald has no memory for a move");
	}
	for (uint32_t i = 0; err == 0 && i < count; i++, at += size) {
		held[i] = handle_hold(&r->client->handles, handles[i], KIND_PARTITION);
		if (held[i] == NULL) {
			err = -EINVAL;
			break;
		}
		parts[i] = held[i]->object;
		err = desc_in(r, at, at + size, false, &d[i]);
		if (err == 0 && d[i].d != NULL)
			memcpy(descs + i * size, d[i].d, size);
	}
	pthread_mutex_lock(&t->lock);
	for (uint32_t i = 0; err == 0 && i < count; i++)
		err = tenant_check_partition(r->client, d[i].d, held[i]);
	if (err == 0)
		err = hal_partitions_move(parts, (const void *)descs, (uint32_t)count,
					  &done);
	for (uint32_t i = 0; err == 0 && i < count; i++)
		tenant_count_partition(r->client, held[i], d[i].d);
	pthread_mutex_unlock(&t->lock);
	if (err == 0)
		err = point_out(r, &done, handles[0]);
	for (uint32_t i = 0; i < count; i++) {
		release(r, held[i]);
		release(r, d[i].host);
	}
	free(descs);
	free(d);
	return err;
}

/* ---- buffers ----------------------------------------------------------------------- */

union buffer_desc {
	struct hal_buffer_desc d;
	char room[STRUCT_MAX];
};

static int buffer_made(struct request *r, struct hal_buffer *buf)
{
	r->m.a[1] = hal_buffer_get_bytes(buf);
	return made(r, KIND_BUFFER, buf);
}

int do_buffer(struct request *r)
{
	uint64_t weights = r->m.a[1], size = r->m.a[2];
	struct entry *part = hold(r, 0, KIND_PARTITION);
	uint64_t caps = r->client->server->info.caps;
	union buffer_desc room;
	struct hal_buffer *buf;
	void *d = NULL;
	int err;

	if (part == NULL)
		return -EINVAL;
	if (size == FAR_NO_STRUCT)
		size = 0;
	if (size > r->m.bytes || weights != r->m.bytes - size ||
	    (weights != 0 && weights != r->client->server->info.colors))
		err = broken(r, "the sizes of a buffer's description are wrong");
	else
		err = struct_in(r, 0, size, &room, sizeof(room), &d);
	if (err == 0 && d != NULL &&
	    (room.d.flags & (HAL_BUFFER_MAPPABLE | HAL_BUFFER_EXPORTABLE)) != 0)
		err = tick_refuse(r, "memory that a program can map");
	/* What a client maps is the memory's own descriptor. */
	if (err == 0 && d != NULL && (room.d.flags & HAL_BUFFER_MAPPABLE) != 0 &&
	    (caps & HAL_CAP_EXPORT) != 0)
		room.d.flags |= HAL_BUFFER_EXPORTABLE;
	if (err == 0)
		err = hal_buffer_create_weighted(
			part->object, d,
			weights != 0 ? (const uint8_t *)r->data + size : NULL, &buf);
	release(r, part);
	return err != 0 ? err : buffer_made(r, buf);
}

int do_buffer_import(struct request *r)
{
	struct entry *part = hold(r, 0, KIND_PARTITION);
	union buffer_desc room;
	struct hal_buffer *buf;
	void *d = NULL;
	int err;

	if (part == NULL)
		return -EINVAL;
	err = struct_in(r, 0, r->m.bytes, &room, sizeof(room), &d);
	if (err == 0)
		err = tick_refuse(r, "hal_buffer_import");
	if (err == 0)
		err = hal_buffer_import(part->object, r->fd, d, &buf);
	release(r, part);
	return err != 0 ? err : buffer_made(r, buf);
}

int do_buffer_write(struct request *r)
{
	struct entry *buf = hold(r, 0, KIND_BUFFER);
	int err = buf == NULL
			  ? -EINVAL
			  : hal_buffer_write(buf->object, r->m.a[1], r->data, r->m.bytes);

	release(r, buf);
	return err;
}

int do_buffer_read(struct request *r)
{
	struct entry *buf;
	void *out;
	int err;

	if (r->m.a[2] > FAR_CHUNK)
		return broken(r, "too many bytes are asked for");
	buf = hold(r, 0, KIND_BUFFER);
	out = buf != NULL ? answer_room(r, r->m.a[2]) : NULL;
	if (buf == NULL)
		return -EINVAL;
	err = out == NULL ? -ENOMEM
			  : hal_buffer_read(buf->object, r->m.a[1], out, r->m.a[2]);
	release(r, buf);
	return err;
}

int do_buffer_map(struct request *r)
{
	struct entry *buf = hold(r, 0, KIND_BUFFER);
	void *address;
	int err;

	if (buf == NULL)
		return -EINVAL;
	err = hal_buffer_map(buf->object, &address);
	if (err == 0 && r->m.a[1] == 0) {
		err = hal_buffer_export(buf->object, &r->out_fd);
		if (err != 0)
			(void)hal_buffer_unmap(buf->object);
	}
	release(r, buf);
	return err;
}

int do_buffer_unmap(struct request *r)
{
	struct entry *buf = hold(r, 0, KIND_BUFFER);
	int err = buf == NULL ? -EINVAL : hal_buffer_unmap(buf->object);

	release(r, buf);
	return err;
}

int do_buffer_export(struct request *r)
{
	struct entry *buf = hold(r, 0, KIND_BUFFER);
	int err = buf == NULL ? -EINVAL : hal_buffer_export(buf->object, &r->out_fd);

	release(r, buf);
	return err;
}

int do_buffer_recolor(struct request *r)
{
	struct entry *buf, *q;
	uint64_t parent = r->m.a[1];
	struct hal_point done = {0};
	int err;

	if (r->m.bytes != 0 && r->m.bytes != r->client->server->info.colors)
		return broken(r, "the number of weights is wrong");
	buf = hold(r, 0, KIND_BUFFER);
	q = buf != NULL ? hold(r, 1, KIND_QUEUE) : NULL;
	err = -EINVAL;
	if (q != NULL) {
		uint64_t mask = r->m.a[2];

		queue_hold(q);
		err = hal_buffer_recolor(
			buf->object, q->object, mask,
			r->m.bytes != 0 ? (const uint8_t *)r->data : NULL, &done);
		queue_let_go(r, q);
	}
	if (err == 0)
		err = point_out(r, &done, parent);
	release(r, q);
	release(r, buf);
	return err;
}

/* ---- host memory ------------------------------------------------------------------- */

/* Make memory of bytes bytes that no process can shorten.  Return its descriptor. */
static int shared_memory(uint64_t bytes)
{
	int fd = memfd_create("hal-host", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		return fail(errno, "memfd_create: %s", hal_strerror(errno));
	if (bytes > INT64_MAX || ftruncate(fd, (off_t)bytes) != 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
		(void)close(fd);
		return fail(ENOMEM, "no memory for %llu bytes of the host", U64(bytes));
	}
	return fd;
}

/* Register the memory of r->out_fd with part, and put it into the table of the client. */
static int host_made(struct request *r, struct hal_partition *part, uint64_t bytes)
{
	void *address =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, r->out_fd, 0);
	struct hal_buffer *buf = NULL;
	struct entry *e;
	int err;

	if (address == MAP_FAILED)
		return fail(ENOMEM, "no memory for %llu bytes of the host", U64(bytes));
	err = hal_host_register(part, address, bytes, &buf);
	if (err == 0)
		err = made(r, KIND_BUFFER, buf);
	e = err == 0 ? handle_hold(&r->client->handles, r->m.a[0], KIND_BUFFER) : NULL;
	if (e == NULL) {
		(void)hal_buffer_destroy(buf);
		(void)munmap(address, bytes);
		return err != 0 ? err : -ENOMEM;
	}
	e->memory = address;
	e->memory_bytes = bytes;
	release(r, e);
	return 0;
}

int do_host(struct request *r)
{
	uint64_t bytes = r->m.a[1];
	struct entry *part = hold(r, 0, KIND_PARTITION);
	int err = 0;

	if (part == NULL)
		return -EINVAL;
	if (bytes == 0)
		err = fail(EINVAL, "hal_host_alloc: bytes is 0");
	else if ((r->client->server->info.caps & HAL_CAP_HOST_COPY) == 0)
		err = fail(ENOTSUP, "hal_host_alloc: the device cannot copy to and from "
				    "host memory that hald allocates");
	else
		r->out_fd = shared_memory(bytes);
	if (err == 0)
		err = r->out_fd < 0 ? r->out_fd : host_made(r, part->object, bytes);
	release(r, part);
	return err;
}

/* ---- programs ---------------------------------------------------------------------- */

/* Write the kernels of prog into the answer. */
static int kernels_out(struct request *r, struct hal_program *prog, uint64_t parent)
{
	struct hal_program_info info = HAL_INIT(hal_program_info);
	struct far_kernel_entry *list;
	int err = hal_program_get_info(prog, &info);

	if (err != 0)
		return err;
	list = answer_room(r, info.kernel_count * sizeof(*list));
	if (list == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; err == 0 && i < info.kernel_count; i++) {
		struct hal_kernel *k;

		err = hal_kernel_get(prog, i, &k);
		if (err != 0)
			return err;
		list[i].info.size = sizeof(list[i].info);
		list[i].handle =
			handle_add(&r->client->handles, KIND_KERNEL, k, false, parent);
		err = list[i].handle == 0 ? -ENOMEM
					  : hal_kernel_get_info(k, &list[i].info);
	}
	return err;
}

int do_program(struct request *r)
{
	struct hal_program *prog;
	int err = hal_program_load(device_of(r), r->data, r->m.bytes, &prog);

	if (err == 0)
		err = made(r, KIND_PROGRAM, prog);
	return err != 0 ? err : kernels_out(r, prog, r->m.a[0]);
}

int do_program_name(struct request *r)
{
	const char *name = text_in(r);
	struct entry *prog;
	int err;

	if (name == NULL)
		return -EPROTO;
	prog = hold(r, 0, KIND_PROGRAM);
	err = prog == NULL ? -EINVAL : hal_program_set_name(prog->object, name);
	release(r, prog);
	return err;
}
