/* SPDX-License-Identifier: Apache-2.0 */
/*
 * buffer.c - create, share, copy, map, move and destroy buffers.
 *
 * If the memory_limit of a partition exceeds its memory quota, buffers of the partition
 * may be evicted to the host (memory/evict.h).  .evict of such a buffer is set.  While an
 * eviction is under way, the engine functions in this file return -EAGAIN, and evict_call
 * calls them again.
 *
 * A driver may take long to allocate or free memory.  If the backend sets
 * HAL_BK_BESIDE_MEMORY, the calling thread makes these calls (device_memory_beside), and
 * the engine only keeps the accounts before and after.  So other tenants do not wait.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "api/handle.h"
#include "api/move.h"
#include "command/deferred.h"
#include "command/queue.h"
#include "far/far.h"
#include "loop/engine.h"
#include "memory/bimodal.h"
#include "memory/evict.h"
#include "memory/quota.h"
#include "memory/recolor.h"
#include "observe/trace.h"
#include "space/resize.h"

/* Check the weights of the channels in mask.  Return 0 or -errno. */
static int weights_check(const struct hal_device *dev, uint64_t mask,
			 const uint8_t *weights)
{
	uint32_t parts = 0;

	if (dev->info.colors == 0)
		return fail(ENOTSUP, "weights: %s has no memory channels to choose",
			    dev->name);
	for (uint32_t i = 0; i < dev->info.colors; i++)
		if ((mask >> i & 1) != 0)
			parts += weights[i];
	return parts != 0
		       ? 0
		       : fail(EINVAL, "weights: the weights of colours 0x%llx are all 0",
			      U64(mask));
}

static int bimodal_flags_check(const struct hal_partition *part, uint32_t flags)
{
	if ((flags & HAL_BUFFER_BIMODAL) == 0)
		return fail(EINVAL, "HAL_BUFFER_SCRATCH without HAL_BUFFER_BIMODAL");
	if (!part->memory.bimodal)
		return fail(EINVAL,
			    "HAL_BUFFER_BIMODAL: partition %u \"%s\" is not "
			    "HAL_PARTITION_BIMODAL",
			    part->obj.id, part->name);
	if ((flags & (HAL_BUFFER_MAPPABLE | HAL_BUFFER_EXPORTABLE)) != 0)
		return fail(EINVAL, "a buffer cannot be HAL_BUFFER_BIMODAL and %s",
			    (flags & HAL_BUFFER_MAPPABLE) != 0 ? "HAL_BUFFER_MAPPABLE"
							       : "HAL_BUFFER_EXPORTABLE");
	return 0;
}

/* Check d and weights, which may be NULL, for a buffer of part.  If d names no channels,
 * set them to those of part.  Return 0 or -errno. */
static int desc_check(const struct hal_partition *part, struct hal_buffer_desc *d,
		      const uint8_t *weights)
{
	uint64_t colors = part->desc.color_mask; /* never changes */

	const uint32_t bimodal = HAL_BUFFER_BIMODAL | HAL_BUFFER_SCRATCH;
	const uint32_t known = HAL_BUFFER_MAPPABLE | HAL_BUFFER_EXPORTABLE | bimodal;
	int err;

	if ((d->flags & ~known) != 0)
		return fail(EINVAL, "hal_buffer_desc.flags 0x%x: only 0x%x is defined",
			    d->flags, known);
	err = name_check(d->name, sizeof(d->name), "hal_buffer_desc.name");
	if (err != 0)
		return err;
	if ((d->flags & bimodal) != 0) {
		err = bimodal_flags_check(part, d->flags);
		if (err != 0)
			return err;
	}
	if (d->bytes == 0)
		return fail(EINVAL, "hal_buffer_desc.bytes is 0");
	if ((d->flags & HAL_BUFFER_MAPPABLE) != 0 &&
	    (part->dev->info.caps & HAL_CAP_MAP) == 0)
		return fail(ENOTSUP, "%s cannot map buffers", part->dev->name);
	if ((d->flags & HAL_BUFFER_EXPORTABLE) != 0 &&
	    (part->dev->info.caps & HAL_CAP_EXPORT) == 0)
		return fail(ENOTSUP, "%s cannot export buffers", part->dev->name);
	if ((d->color_mask & ~colors) != 0)
		return fail(EINVAL,
			    "colours 0x%llx requested, but partition %u \"%s\" has only "
			    "0x%llx",
			    U64(d->color_mask), part->obj.id, part->name, U64(colors));
	if (d->color_mask == 0)
		d->color_mask = colors;
	return weights != NULL ? weights_check(part->dev, d->color_mask, weights) : 0;
}

/* Return the bytes of a buffer in all its placements; UINT64_MAX if they overflow. */
static uint64_t charge_of(const struct hal_partition *part,
			  const struct hal_buffer_desc *d)
{
	const struct hal_bk_partition_desc *p = &part->desc;
	uint64_t further = p->wide_mask & ~p->color_mask, all;

	if ((d->flags & HAL_BUFFER_BIMODAL) == 0)
		return d->bytes;
	return __builtin_add_overflow(
		       d->bytes, hal_bk_twins(d->bytes, d->color_mask, further), &all)
		       ? UINT64_MAX
		       : all;
}

struct alloc {
	struct hal_buffer *buf;
	struct hal_bk_colors colors;
	int err;           /* of the calling thread's attempt, with its text */
	unsigned int seen; /* evict_ended, before memory was made free for the next one */
	char text[512];
};

/* Allocate memory for a new buffer.  Engine only.  Return what evict_place
 * returns: 0, -EAGAIN or another -errno. */
static int alloc(struct hal_device *dev, void *arg)
{
	const struct alloc *a = arg;
	struct hal_buffer *buf = a->buf;
	bool busy = false;
	int err = evict_place(buf, &a->colors, &buf->bk, &busy);

	if (err != 0)
		return err;
	if (buf->evict != NULL)
		evict_enter(buf);
	if ((buf->flags & HAL_BK_MEM_HOST) != 0)
		partition_copies_host(buf->part);
	counter_add(&buf->part->memory.buffer_count, 1);
	trace_memory(dev, buf->part);
	return 0;
}

/* ---- create, with the backend called by the calling thread ------------------------- */

/* Charge a new buffer to its partition, before memory is allocated for it.  Count the
 * buffer, so that the partition is not destroyed meanwhile.  Engine only.  Return 0,
 * -EAGAIN or another -errno. */
static int charge(struct hal_device *dev, void *arg)
{
	struct hal_buffer *buf = ((const struct alloc *)arg)->buf;
	bool busy = false;
	int err = device_alive(dev);

	if (err == 0)
		err = evict_charge(buf, &busy);
	if (err != 0)
		return err;
	evict_hold(buf->part);
	counter_add(&buf->part->memory.buffer_count, 1);
	return 0;
}

/* Undo charge after a failed allocation.  If the device has no memory, evict a buffer.
 * Engine only.  Return as evict_room. */
static int discharge(struct hal_device *dev, void *arg)
{
	struct alloc *a = arg;
	struct hal_buffer *buf = a->buf;
	bool busy = false;

	(void)dev;
	partition_release(buf->part, buf->charge);
	counter_add(&buf->part->memory.buffer_count, UINT64_MAX);
	evict_unhold(buf->part);
	if (buf->part->memory.evict != NULL)
		a->seen = evict_ended(buf->part->memory.evict);
	return evict_room(buf->part, buf->charge, fail(a->err, "%s", a->text), &busy);
}

/* Add a buffer whose memory has been allocated.  Engine only.  If the device was lost
 * meanwhile, return -ENODEV and do not add it. */
static int enter(struct hal_device *dev, void *arg)
{
	struct hal_buffer *buf = ((const struct alloc *)arg)->buf;
	int err = device_alive(dev);

	if (err != 0)
		return err;
	if (buf->evict != NULL)
		evict_enter(buf);
	if ((buf->flags & HAL_BK_MEM_HOST) != 0)
		partition_copies_host(buf->part);
	evict_unhold(buf->part);
	trace_memory(dev, buf->part);
	return 0;
}

static int allocate_memory(struct hal_device *dev, void *arg)
{
	struct alloc *a = arg;

	(void)dev;
	return evict_allocate(a->buf, &a->colors, &a->buf->bk);
}

static int free_memory(struct hal_device *dev, void *arg)
{
	const struct hal_buffer *buf = arg;

	return dev->table->cold.mem_free(dev->bk, buf->bk);
}

/* Free the memory of buf on this thread.  The core ignores an error, so keep the error
 * text of this thread. */
static void free_beside(struct hal_device *dev, struct hal_buffer *buf)
{
	char text[512];

	format_text(text, sizeof(text), "%s", hal_last_error());
	if (device_beside(dev, HAL_BK_BESIDE_MEMORY, free_memory, buf) != 0)
		(void)fail(0, "%s", text);
}

/* Allocate memory for a new buffer that has been charged, on this thread, and have the
 * engine add the buffer.  Return 0 or -errno with the text in a->text. */
static int try_alloc(struct hal_device *dev, struct alloc *a)
{
	int err = device_beside(dev, HAL_BK_BESIDE_MEMORY, allocate_memory, a);
	bool has = err == 0;

	if (has)
		err = engine_call(dev, enter, a);
	if (err != 0)
		format_text(a->text, sizeof(a->text), "%s", hal_last_error());
	if (has && err != 0)
		free_beside(dev, a->buf);
	return err;
}

/* Do as alloc, but call the backend on this thread.  Wait while an eviction is under way.
 */
static int alloc_beside(struct hal_device *dev, struct alloc *a)
{
	struct evict *e = a->buf->part->memory.evict;
	int err;

	do {
		err = evict_call(dev, e, charge, a);
		if (err != 0)
			return err;
		a->err = try_alloc(dev, a);
		if (a->err == 0)
			return 0;
		err = engine_call(dev, discharge, a);
		if (err == -EAGAIN && e != NULL) {
			evict_wait(e, a->seen);
			err = 0;
		}
	} while (err == 0);
	return err;
}

/* ---- create ------------------------------------------------------------------------ */

/* Charge buf to the memory_limit of its partition, and prepare it for eviction if it may
 * be evicted.  Return 0 or -errno. */
static int make_evictable(struct hal_buffer *buf, const struct hal_bk_colors *colors)
{
	const uint32_t stay = HAL_BUFFER_MAPPABLE | HAL_BUFFER_EXPORTABLE |
			      HAL_BUFFER_BIMODAL | HAL_BK_MEM_HOST;
	int err = limit_charge(buf);

	/* Never evict a mappable buffer or host memory, whose address the application may
	 * have; memory that others may share; or a bimodal buffer, which has two
	 * placements. */
	if (err != 0 || (buf->flags & stay) != 0 || buf->imported)
		return err;
	buf->evict = evictable_make(buf, colors);
	if (buf->evict != NULL)
		return 0;
	limit_release(buf->part, buf->charge);
	return -ENOMEM;
}

/* Begin a host copy: count it in .copies, so that buf is not moved meanwhile.  Return
 * where the bytes of buf are: on the device (PLACE_HERE) or the host (PLACE_AWAY). */
static enum place_of copy_begins(struct hal_buffer *buf)
{
	if (buf->evict != NULL)
		return evict_copies(buf);
	atomic_fetch_add(&buf->copies, 1);
	return PLACE_HERE;
}

static void copy_ends(struct hal_buffer *buf)
{
	if (buf->evict != NULL)
		evict_copied(buf);
	else
		atomic_fetch_sub(&buf->copies, 1);
}

static int clear_buffer(struct hal_device *dev, void *arg)
{
	const struct hal_buffer *buf = arg;

	return dev->table->cold.mem_clear(dev->bk, buf->bk);
}

/* Clear a new buffer, so that its tenant cannot read data of earlier tenants.  No other
 * thread has the buffer yet. */
static int clear_new(struct hal_buffer *buf)
{
	struct hal_device *dev = buf->dev;
	int err = 0;

	if (dev->table->cold.mem_clear == NULL)
		return 0;
	if (copy_begins(buf) == PLACE_AWAY)
		memset(buf->evict->bytes, 0, buf->bytes);
	else
		err = device_beside(dev, HAL_BK_BESIDE_COPY, clear_buffer, buf);
	copy_ends(buf);
	return err;
}

/* Charge and allocate the memory of buf.  After an error, free buf.  Return 0 or -errno.
 */
static int place_new(struct hal_buffer *buf, uint64_t color_mask, const uint8_t *weights)
{
	struct hal_partition *part = buf->part;
	struct alloc a = {.buf = buf, .colors = {.mask = color_mask, .weights = weights}};
	int err = part->memory.evict != NULL ? make_evictable(buf, &a.colors) : 0;

	if (err == 0) {
		err = device_memory_beside(part->dev)
			      ? alloc_beside(part->dev, &a)
			      : evict_call(part->dev, part->memory.evict, alloc, &a);
		if (err != 0 && part->memory.evict != NULL)
			limit_release(part, buf->charge);
	}
	if (err != 0) {
		free(buf->evict);
		object_free(OBJECT_BUFFER, buf);
	}
	return err;
}

static struct hal_buffer *buffer_alloc(struct hal_partition *part,
				       const struct hal_buffer_desc *d)
{
	struct hal_buffer *buf = object_alloc(OBJECT_BUFFER, sizeof(*buf));

	if (buf == NULL)
		return NULL;
	buf->dev = part->dev;
	buf->part = part;
	buf->bytes = d->bytes;
	memcpy(buf->name, d->name, sizeof(buf->name));
	buf->charge = charge_of(part, d);
	buf->flags = d->flags;
	atomic_init(&buf->pins, 1);
	return buf;
}

int buffer_make_host(struct hal_partition *part, void *address, uint64_t bytes,
		     struct hal_buffer **out)
{
	const struct hal_buffer_desc d = {.size = (uint32_t)sizeof(d),
					  .flags = HAL_BK_MEM_HOST,
					  .bytes = bytes,
					  .color_mask = part->desc.color_mask};
	struct hal_buffer *buf = buffer_alloc(part, &d);
	int err;

	if (buf == NULL)
		return -ENOMEM;
	buf->host_user = part;
	buf->address = address;
	buf->registered = address != NULL;
	err = place_new(buf, d.color_mask, NULL);
	if (err == 0)
		*out = buf;
	return err;
}

/* Copy desc to *d and check the arguments of function name.  Return 0 or -errno. */
static int create_check(struct hal_partition *part, const struct hal_buffer_desc *desc,
			const uint8_t *weights, struct hal_buffer **out,
			struct hal_buffer_desc *d, const char *name)
{
	int err;

	if (!OBJECT_OK(part, OBJECT_PARTITION))
		return object_bad(part, OBJECT_PARTITION);
	if (out == NULL)
		return fail(EINVAL, "%s: buf is NULL", name);
	err = import_struct(d, sizeof(*d), offsetof(struct hal_buffer_desc, name), desc,
			    "hal_buffer_desc");
	if (err == 0)
		err = desc_check(part, d, weights);
	return err != 0 ? err : device_alive(part->dev);
}

static int create(struct hal_partition *part, const struct hal_buffer_desc *desc,
		  const uint8_t *weights, struct hal_buffer **out, const char *name)
{
	struct hal_buffer_desc d = HAL_INIT(hal_buffer_desc);
	struct hal_buffer *buf;
	int err;

	if (UNLIKELY(OBJECT_IS_FAR(part, OBJECT_PARTITION)))
		return far_buffer_create(part, desc, weights, out);
	err = create_check(part, desc, weights, out, &d, name);
	if (err != 0)
		return err;
	buf = buffer_alloc(part, &d);
	if (buf == NULL)
		return -ENOMEM;
	buf->user = part;
	err = place_new(buf, d.color_mask, weights);
	if (err != 0)
		return err;
	err = clear_new(buf);
	if (err != 0)
		(void)hal_buffer_destroy(buf);
	else
		*out = buf;
	return err;
}

int hal_buffer_create(struct hal_partition *part, const struct hal_buffer_desc *desc,
		      struct hal_buffer **out)
{
	return create(part, desc, NULL, out, "hal_buffer_create");
}

int hal_buffer_create_weighted(struct hal_partition *part,
			       const struct hal_buffer_desc *desc, const uint8_t *weights,
			       struct hal_buffer **out)
{
	return create(part, desc, weights, out, "hal_buffer_create_weighted");
}

/* ---- share ------------------------------------------------------------------------- */

/* A call of mem_export. */
struct export
{
	const struct hal_buffer *buf;
	int *fd;
};

static int export_memory(struct hal_device *dev, void *arg)
{
	const struct export *e = arg;

	return dev->table->cold.mem_export(dev->bk, e->buf->bk, e->fd);
}

int hal_buffer_export(struct hal_buffer *buf, int *fd)
{
	char name[BUFFER_DESCRIPTION];
	struct export e = {.buf = buf};
	int made = -1, err;

	if (!OBJECT_OK(buf, OBJECT_BUFFER))
		return FAR_OR_BAD(buf, OBJECT_BUFFER, far_buffer_export(buf, fd));
	if (fd == NULL)
		return fail(EINVAL, "hal_buffer_export: fd is NULL");
	if ((buf->flags & HAL_BUFFER_EXPORTABLE) == 0)
		return fail(EINVAL,
			    "hal_buffer_export: %s was created without "
			    "HAL_BUFFER_EXPORTABLE",
			    buffer_describe(buf, "the buffer", name));
	err = device_alive(buf->dev);
	if (err != 0)
		return err;
	e.fd = &made;
	err = device_memory_beside(buf->dev)
		      ? device_beside(buf->dev, HAL_BK_BESIDE_MEMORY, export_memory, &e)
		      : engine_call(buf->dev, export_memory, &e);
	if (err != 0)
		return err;
	(void)fcntl(made, F_SETFD, FD_CLOEXEC); /* not every driver sets it */
	*fd = made;
	return 0;
}

int hal_buffer_import(struct hal_partition *part, int fd,
		      const struct hal_buffer_desc *desc, struct hal_buffer **out)
{
	struct hal_buffer_desc d = HAL_INIT(hal_buffer_desc);
	struct hal_buffer *buf;
	int err;

	if (UNLIKELY(OBJECT_IS_FAR(part, OBJECT_PARTITION)))
		return far_buffer_import(part, fd, desc, out);
	err = create_check(part, desc, NULL, out, &d, "hal_buffer_import");
	if (err != 0)
		return err;
	if ((d.flags & ~HAL_BUFFER_MAPPABLE) != 0 || desc->color_mask != 0)
		return fail(EINVAL,
			    "hal_buffer_import: .flags is 0x%x and .color_mask 0x%llx; "
			    "only HAL_BUFFER_MAPPABLE and 0 are possible",
			    d.flags, U64(desc->color_mask));
	if (fcntl(fd, F_GETFD) < 0)
		return fail(EBADF, "hal_buffer_import: %d is no open file descriptor",
			    fd);
	if ((part->dev->info.caps & HAL_CAP_IMPORT) == 0)
		return fail(ENOTSUP, "%s cannot import buffers", part->dev->name);
	buf = buffer_alloc(part, &d);
	if (buf == NULL)
		return -ENOMEM;
	buf->user = part;
	buf->imported = true;
	buf->import_fd = fd;
	err = place_new(buf, d.color_mask, NULL);
	if (err == 0)
		*out = buf;
	return err;
}

/* ---- destroy ----------------------------------------------------------------------- */

/* The destruction of a buffer. */
struct buffer_release {
	struct hal_buffer *buf;
	bool beside; /* the calling thread frees the memory, if .unused */
	bool unused; /* no submitted work uses the buffer, and it does not move */
};

/* Forget a buffer whose memory has been freed. */
static void forget(struct hal_buffer *buf)
{
	if (buf->part->memory.evict != NULL)
		limit_release(buf->part, buf->charge);
	if (buf->evict != NULL)
		evict_left(buf);
	else
		partition_release(buf->part, buf->charge);
	counter_add(&buf->part->memory.buffer_count, UINT64_MAX);
	trace_memory(buf->dev, buf->part);
	object_free(OBJECT_BUFFER, buf);
}

/* Deferred free of a buffer that no submitted work uses any more.  Engine only. */
static void free_buffer(struct deferred *d)
{
	struct hal_buffer *buf = container_of(d, struct hal_buffer, deferred);

	if (buf->evict != NULL && !evict_leave(buf))
		return; /* buf is moving; the end of the move frees it */
	if (buf->release != NULL) {
		buf->release->unused = true;
		evict_hold(buf->part);
		return; /* the thread that destroys buf frees it */
	}
	(void)free_memory(buf->dev, buf);
	forget(buf);
}

/* Unmap the buffer, and free it once submitted work has stopped using it; or set
 * .unused.  Engine only; return -EAGAIN while it is being evicted or fetched. */
static int free_when_unused(struct hal_device *dev, void *arg)
{
	struct buffer_release *r = arg;
	struct hal_buffer *buf = r->buf;

	if (evict_moving(buf))
		return -EAGAIN;
	if (buf->maps > 0) {
		(void)dev->table->cold.mem_unmap(dev->bk, buf->bk);
		buf->maps = 0;
	}
	buf->deferred.dev = dev;
	buf->deferred.home = buf->part;
	buf->deferred.free = free_buffer;
	if (r->beside)
		buf->release = r;
	if (buf->registered) /* check_unused has found no use */
		free_buffer(&buf->deferred);
	else
		deferred_free(&buf->deferred);
	if (r->beside && !r->unused)
		buf->release = NULL; /* the engine frees buf later */
	return 0;
}

/* Forget a buffer whose memory the calling thread has freed.  Engine only. */
static int freed(struct hal_device *dev, void *arg)
{
	struct hal_buffer *buf = arg;
	struct hal_partition *part = buf->part;

	(void)dev;
	forget(buf);
	evict_unhold(part);
	return 0;
}

void buffer_pin(struct hal_buffer *buf)
{
	atomic_fetch_add(&buf->pins, 1);
}

void buffer_unpin(struct hal_buffer *buf)
{
	struct buffer_release r = {.buf = buf};
	struct hal_device *dev = buf->dev;

	if (atomic_fetch_sub(&buf->pins, 1) != 1)
		return;
	r.beside = device_memory_beside(dev);
	(void)evict_call(dev, buf->part->memory.evict, free_when_unused, &r);
	if (!r.unused)
		return;
	free_beside(dev, buf);
	(void)engine_call(dev, freed, buf);
}

/* Check that neither submitted work nor a sequence uses buf, which is registered host
 * memory.  A deferred free would come after the program has freed that memory.  Engine
 * only. */
static int check_unused(struct hal_device *dev, void *arg)
{
	const struct hal_buffer *buf = arg;

	(void)dev;
	if (atomic_load(&buf->pins) != 1)
		return fail(EBUSY,
			    "hal_buffer_destroy: a recorded sequence uses the registered "
			    "host memory at %p; destroy the sequence first",
			    buf->address);
	return deferred_check_unused(buf->part, buf->bk,
				     "hal_buffer_destroy: registered host memory");
}

int hal_buffer_destroy(struct hal_buffer *buf)
{
	if (buf == NULL)
		return 0;
	if (!OBJECT_OK(buf, OBJECT_BUFFER))
		return FAR_OR_BAD(buf, OBJECT_BUFFER, far_buffer_destroy(buf));
	if (buf->registered) {
		int err = engine_call(buf->dev, check_unused, buf);

		if (err != 0)
			return err;
	}
	object_retire(&buf->obj);
	buf->user = NULL;
	buf->host_user = NULL;
	buffer_unpin(buf);
	return 0;
}

uint64_t hal_buffer_get_bytes(const struct hal_buffer *buf)
{
	if (!OBJECT_OK(buf, OBJECT_BUFFER)) {
		if (OBJECT_IS_FAR(buf, OBJECT_BUFFER))
			return far_buffer_get_bytes(buf);
		(void)object_bad(buf, OBJECT_BUFFER);
		return 0;
	}
	return buf->bytes;
}

/* ---- copies ------------------------------------------------------------------------ */

struct copy {
	struct hal_buffer *buf;
	uint64_t offset, bytes;
	const void *from; /* host memory to write to the buffer; NULL: read */
	void *to;         /* host memory to read the buffer to */
};

/* Copy by the backend.  Runs on the calling thread or in the engine (device_beside). */
static int copy_on_device(struct hal_device *dev, void *arg)
{
	const struct copy *c = arg;

	if (c->from != NULL)
		return dev->table->cold.mem_write(dev->bk, c->buf->bk, c->offset, c->from,
						  c->bytes);
	return dev->table->cold.mem_read(dev->bk, c->buf->bk, c->offset, c->to, c->bytes);
}

static COLD int fail_host(const char *what)
{
	return fail(EINVAL,
		    "%s: the buffer is host memory; use its address, or copy in a queue",
		    what);
}

static COLD int fail_moving(const struct hal_buffer *buf, const char *what)
{
	char name[BUFFER_DESCRIPTION];

	return fail(EBUSY, "%s: %s is moving to other channels", what,
		    buffer_describe(buf, "the buffer", name));
}

struct moving_check {
	const struct hal_buffer *buf;
	const char *what;
};

/* Return -EBUSY if the buffer is still moving, else 0.  Called through a message, which
 * the engine reads between turns.  So a caller that has seen the move complete does not
 * get -EBUSY because of that move. */
static int check_not_moving(struct hal_device *dev, void *arg)
{
	const struct moving_check *s = arg;

	(void)dev;
	return atomic_load(&s->buf->recolored) ? fail_moving(s->buf, s->what) : 0;
}

/* Copy to or from the bytes of an evicted buffer, which the host has. */
static void copy_evicted(const struct copy *c)
{
	uint8_t *bytes = c->buf->evict->bytes + c->offset;

	if (c->from != NULL)
		memcpy(bytes, c->from, c->bytes);
	else
		memcpy(c->to, bytes, c->bytes);
}

static int bimodal_copy_begins(struct hal_device *dev, void *arg)
{
	(void)dev;
	((struct hal_partition *)arg)->memory.copying++;
	return 0;
}

static int bimodal_copy_ends(struct hal_device *dev, void *arg)
{
	struct hal_partition *part = arg;

	(void)dev;
	part->memory.copying--;
	bimodal_look(part);
	return 0;
}

/* Copy to or from a bimodal buffer.  Count the copy in .memory.copying, so that the
 * partition does not change its placement during the copy. */
static int copy_bimodal(struct hal_device *dev, const struct copy *c)
{
	struct hal_partition *part = c->buf->part;
	int err;

	if ((dev->table->beside & HAL_BK_BESIDE_COPY) == 0)
		return device_beside(dev, 0, copy_on_device, c);
	(void)engine_call(dev, bimodal_copy_begins, part);
	err = device_beside(dev, HAL_BK_BESIDE_COPY, copy_on_device, c);
	/* This call leaves the error text of the copy unchanged. */
	(void)engine_call(dev, bimodal_copy_ends, part);
	return err;
}

static int copy_far(const struct copy *c)
{
	return c->to != NULL ? far_buffer_read(c->buf, c->offset, c->to, c->bytes)
			     : far_buffer_write(c->buf, c->offset, c->from, c->bytes);
}

/* Check and carry out c for the public function what.  Return 0 or -errno. */
static int copy_checked(const struct copy *c, const char *what)
{
	char name[BUFFER_DESCRIPTION];
	struct hal_device *dev;
	enum place_of place;
	int err;

	if (!OBJECT_OK(c->buf, OBJECT_BUFFER))
		return FAR_OR_BAD(c->buf, OBJECT_BUFFER, copy_far(c));
	if (c->offset > c->buf->bytes || c->bytes > c->buf->bytes - c->offset)
		return fail(
			EINVAL, "%s: %llu bytes at offset %llu exceed %s's %llu bytes",
			what, U64(c->bytes), U64(c->offset),
			buffer_describe(c->buf, "the buffer", name), U64(c->buf->bytes));
	if (c->from == NULL && c->to == NULL && c->bytes != 0)
		return fail(EINVAL, "%s: data is NULL", what);
	if ((c->buf->flags & HAL_BK_MEM_HOST) != 0)
		return fail_host(what);
	if (c->bytes == 0)
		return 0;
	dev = c->buf->dev;
	err = device_alive(dev);
	if (err != 0)
		return err;
	place = copy_begins(c->buf);
	if (atomic_load(&c->buf->recolored))
		err = engine_call(dev, check_not_moving,
				  &(struct moving_check){c->buf, what});
	if (err == 0 && place == PLACE_AWAY)
		copy_evicted(c);
	else if (err == 0 && (c->buf->flags & HAL_BUFFER_BIMODAL) != 0)
		err = copy_bimodal(dev, c);
	else if (err == 0)
		err = device_beside(dev, HAL_BK_BESIDE_COPY, copy_on_device, c);
	copy_ends(c->buf);
	return err;
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
	bool busy = false;
	int err = 0;

	if (atomic_load(&buf->recolored))
		return fail_moving(buf, "hal_buffer_map");
	if (buf->evict != NULL)
		err = evict_fetch(buf, &busy);
	if (err == 0 && buf->maps == 0)
		err = dev->table->cold.mem_map(dev->bk, buf->bk, &buf->address);
	if (err == 0)
		buf->maps++;
	return err;
}

int hal_buffer_map(struct hal_buffer *buf, void **address)
{
	char name[BUFFER_DESCRIPTION];
	int err;

	if (!OBJECT_OK(buf, OBJECT_BUFFER))
		return FAR_OR_BAD(buf, OBJECT_BUFFER, far_buffer_map(buf, address));
	if (address == NULL)
		return fail(EINVAL, "hal_buffer_map: address is NULL");
	if ((buf->flags & HAL_BK_MEM_HOST) != 0)
		return fail_host("hal_buffer_map");
	if ((buf->dev->info.caps & HAL_CAP_MAP) == 0)
		return fail(ENOTSUP, "%s cannot map buffers", buf->dev->name);
	if ((buf->flags & HAL_BUFFER_BIMODAL) != 0)
		return fail(ENOTSUP, "hal_buffer_map: %s is bimodal",
			    buffer_describe(buf, "the buffer", name));
	err = device_alive(buf->dev);
	if (err == 0)
		err = evict_call(buf->dev, buf->part->memory.evict, map, buf);
	if (err == 0)
		*address = buf->address;
	return err;
}

static int unmap(struct hal_device *dev, void *arg)
{
	struct hal_buffer *buf = arg;
	char name[BUFFER_DESCRIPTION];

	if (buf->maps == 0)
		return fail(EINVAL, "hal_buffer_unmap: %s is not mapped",
			    buffer_describe(buf, "the buffer", name));
	return --buf->maps == 0 ? dev->table->cold.mem_unmap(dev->bk, buf->bk) : 0;
}

int hal_buffer_unmap(struct hal_buffer *buf)
{
	if (!OBJECT_OK(buf, OBJECT_BUFFER))
		return FAR_OR_BAD(buf, OBJECT_BUFFER, far_buffer_unmap(buf));
	return engine_call(buf->dev, unmap, buf);
}

/* ---- moves ------------------------------------------------------------------------- */

struct move {
	struct hal_buffer *buf;
	const struct hal_bk_colors *colors;
	void *to; /* the new memory; NULL: allocated when the move begins */
};

/* Allocate memory for the move.  In a partition that evicts buffers the allocation
 * is deferred until the move begins, because submissions before it may need the memory.
 * Return 0 or -errno. */
static int place_move(struct move *m)
{
	struct hal_buffer *buf = m->buf;
	uint64_t quota = counter_get(&buf->part->memory.quota);
	bool busy = false;

	if (buf->part->memory.evict == NULL)
		return evict_place(buf, m->colors, &m->to, &busy);
	if (buf->charge <= quota / 2)
		return 0;
	return fail(ENOSPC,
		    "hal_buffer_recolor: a buffer of %llu bytes needs twice its size "
		    "while it moves; the quota is %llu bytes",
		    U64(buf->charge), U64(quota));
}

/* Set .recolored and allocate the new memory, or fail with -EBUSY or -errno.  Engine
 * only. */
static int begin_move(struct hal_device *dev, void *arg)
{
	struct move *m = arg;
	struct hal_buffer *buf = m->buf;
	char name[BUFFER_DESCRIPTION];
	int err;

	(void)dev;
	if (buf->maps > 0)
		return fail(EBUSY, "hal_buffer_recolor: %s is mapped",
			    buffer_describe(buf, "the buffer", name));
	if (atomic_load(&buf->recolored))
		return fail_moving(buf, "hal_buffer_recolor");
	err = recolor_check(buf);
	if (err != 0)
		return err;
	atomic_store(&buf->recolored, true);
	if (atomic_load(&buf->copies) != 0)
		err = fail(EBUSY, "hal_buffer_recolor: the host is copying to or from %s",
			   buffer_describe(buf, "the buffer", name));
	if (err == 0)
		err = place_move(m);
	if (err != 0)
		atomic_store(&buf->recolored, false);
	return err;
}

/* Undo begin_move, because the move could not be submitted.  Engine only. */
static int end_move(struct hal_device *dev, void *arg)
{
	const struct move *m = arg;

	(void)dev;
	recolor_free(m->buf, m->to);
	return 0;
}

/* Begin and submit a move.  The caller has called recolor_reserve(queue). */
static int move(struct hal_buffer *buf, struct hal_queue *queue,
		const struct hal_bk_colors *colors, struct hal_point *done)
{
	struct move m = {buf, colors, NULL};
	int err = evict_call(buf->dev, buf->part->memory.evict, begin_move, &m);
	struct recolor *r;

	if (err != 0)
		return err;
	r = recolor_make(queue, buf, m.to, colors);
	if (r != NULL && recolor_submit(r, done) == 0)
		return 0;
	free(r);
	(void)engine_call(buf->dev, end_move, &m);
	return -ENOMEM;
}

int hal_buffer_recolor(struct hal_buffer *buf, struct hal_queue *queue,
		       uint64_t color_mask, const uint8_t *weights,
		       struct hal_point *done)
{
	struct hal_bk_colors colors = {.weights = weights};
	struct hal_buffer_desc d = HAL_INIT(hal_buffer_desc);
	char name[BUFFER_DESCRIPTION];
	int err;

	if (!OBJECT_OK(buf, OBJECT_BUFFER))
		return FAR_OR_BAD(
			buf, OBJECT_BUFFER,
			far_buffer_recolor(buf, queue, color_mask, weights, done));
	if (!OBJECT_OK(queue, OBJECT_QUEUE))
		return object_bad(queue, OBJECT_QUEUE);
	if ((buf->flags & HAL_BK_MEM_HOST) != 0)
		return fail(EINVAL, "hal_buffer_recolor: the buffer is host memory");
	if (buf->user != queue->home)
		return fail(EPERM,
			    "hal_buffer_recolor: %s belongs to partition %u \"%s\", the "
			    "queue to %u \"%s\"",
			    buffer_describe(buf, "the buffer", name),
			    buf->part->desc.index, buf->part->name,
			    queue->home->desc.index, queue->home->name);
	err = device_alive(buf->dev);
	if (err != 0)
		return err;
	if ((buf->dev->info.caps & HAL_CAP_RECOLOR) == 0)
		return fail(ENOTSUP, "%s cannot move buffers to other channels",
			    buf->dev->name);
	if ((buf->flags & HAL_BUFFER_BIMODAL) != 0)
		return fail(EINVAL,
			    "hal_buffer_recolor: %s is bimodal; it moves only with its "
			    "partition",
			    buffer_describe(buf, "the buffer", name));
	if ((buf->flags & HAL_BUFFER_EXPORTABLE) != 0 || buf->imported)
		return fail(
			EINVAL,
			"hal_buffer_recolor: %s is exportable or imported: others may "
			"use its memory",
			buffer_describe(buf, "the buffer", name));
	d.bytes = buf->bytes;
	d.flags = buf->flags;
	d.color_mask = color_mask;
	err = desc_check(buf->part, &d, weights);
	if (err == 0)
		err = recolor_reserve(queue);
	if (err != 0)
		return err;
	colors.mask = d.color_mask;
	err = move(buf, queue, &colors, done);
	if (err != 0)
		recolor_unreserve(queue);
	return err;
}
