/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory=vmm: each partition has a range of addresses of its own, and all of its buffers
 * that are the device's lie there.  Without it only a buffer that is exported or imported
 * (share.c) has a range, of its own.  Addresses cost nothing: memory is made and mapped
 * for a buffer, in granules as large as the driver wants them, and unmapped as it was
 * mapped. Buffers of at most half a granule share granules, in pieces.
 *
 * Unmapping may wait for the device: see stream/later.h.  Until it is done no other
 * buffer has the place: a launch that was given up may still write there.
 *
 * dev->range_lock guards all of it, but for .base, .bytes and .granule, which are
 * constant, and .mapped and .top, which the engine reads without it.  No call of the
 * driver is made under the lock.
 */
#define _GNU_SOURCE
#include "internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define PIECE 512u /* bytes; the alignment of all buffers */

/* A granule that small buffers share. */
struct cu_chunk {
	struct cu_chunk *next;
	struct hal_bk_granules *free; /* pieces */
	uint32_t granule;             /* of the range */
	uint32_t buffers;             /* that there are */
	uint32_t here;                /* and are not evicted */
	uint32_t places; /* of buffers, and those that are to be given back */
	bool gone;       /* all of its buffers are evicted: it has no memory */
};

struct cu_range {
	struct cu_range *older; /* of the device */
	uint64_t base, bytes;
	uint32_t granule; /* bytes */
	struct hal_bk_granules *free;
	struct cu_chunk *chunks;
	atomic_uint mapped; /* chunks, and places that are none's */
	/* Behind this granule no buffer lies: what is still to be unmapped there is out
	 * of reach of launches that are submitted from now on. */
	atomic_uint top;
	bool in_use[]; /* by granule: of a buffer, or of a chunk that has one */
};

/* What memory is made as. */
static struct cu_memory_prop prop_of(const struct cu_device *dev, bool exported)
{
	return (struct cu_memory_prop){
		.type = CU_MEMORY_PINNED,
		.handles = exported ? CU_HANDLE_FD : 0,
		.location = {CU_LOCATION_DEVICE, dev->shape.device}};
}

static bool has_calls(void)
{
	return cu.cuMemGetAllocationGranularity && cu.cuMemAddressReserve &&
	       cu.cuMemAddressFree && cu.cuMemCreate && cu.cuMemRelease && cu.cuMemMap &&
	       cu.cuMemUnmap && cu.cuMemSetAccess;
}

bool cu_shares(const struct cu_options *o, const struct cu_shape *s)
{
	return !o->host_memory && has_calls() && cu.cuMemRetainAllocationHandle &&
	       cu.cuMemExportToShareableHandle && cu.cuMemImportFromShareableHandle &&
	       s->vmm && s->export_fd;
}

/* An evicted buffer keeps its addresses: kernels may have stored some.  With bounds=yes
 * launches reach all of the range, from which nothing may go while they run. */
bool cu_evicts(const struct cu_options *o, const struct cu_shape *s)
{
	return !o->host_memory && !o->bounds && has_calls() && s->vmm;
}

/* Memory that can be exported may come in larger granules: all is mapped in those. */
int cu_range_open(struct cu_device *dev)
{
	const struct cu_memory_prop prop =
		prop_of(dev, cu_shares(&dev->opt, &dev->shape));
	size_t granule = 0;
	int err;

	if (!has_calls())
		return cu_host->fail(ENOTSUP,
				     "cuda:%u: memory=vmm: the driver lacks the virtual "
				     "memory calls (cuMemMap)",
				     dev->index);
	if (!dev->shape.vmm)
		return cu_host->fail(ENOTSUP,
				     "cuda:%u: memory=vmm: the device does not support "
				     "virtual memory management",
				     dev->index);
	err = CU(dev, cuMemGetAllocationGranularity, &granule, &prop,
		 CU_GRANULARITY_MINIMUM);
	if (err)
		return err;
	if (granule < (size_t)2 * PIECE || granule > UINT32_MAX ||
	    (granule & (granule - 1)))
		return cu_host->fail(ENOTSUP,
				     "cuda:%u: cannot use the driver's mapping "
				     "granularity of %zu bytes",
				     dev->index, granule);
	dev->granule = (uint32_t)granule;
	return 0;
}

/* count things that are taken in rows. */
static int open_free(uint64_t count, struct hal_bk_granules **out)
{
	/* How large one is nobody asks. */
	const struct hal_bk_color_map map = {
		.granule_bytes = PIECE, .colors = 1, .granules = count};

	return cu_host->granules_open(&map, out);
}

static void give(struct hal_bk_granules *free, uint32_t first, uint32_t count)
{
	uint32_t i;

	for (i = first; i < first + count; i++)
		cu_host->granules_give(free, &i, 1);
}

static void free_range(struct cu_range *range)
{
	struct cu_chunk *c;

	while ((c = range->chunks)) {
		range->chunks = c->next;
		cu_host->granules_close(c->free);
		free(c);
	}
	cu_host->granules_close(range->free);
	free(range);
}

void cu_ranges_free(struct cu_device *dev)
{
	struct cu_range *range;

	while ((range = dev->ranges)) {
		dev->ranges = range->older;
		free_range(range);
	}
}

int cu_range_make(struct cu_device *dev, uint64_t bytes, struct cu_range **out)
{
	const uint64_t count = (bytes + dev->granule - 1) / dev->granule;
	struct cu_range *range = calloc(1, sizeof(*range) + count);
	int err;

	if (!range)
		return cu_host->fail(ENOMEM, "cuda: no memory for a partition");
	range->granule = dev->granule;
	range->bytes = count * dev->granule;
	err = open_free(count, &range->free);
	if (!err)
		err = CU(dev, cuMemAddressReserve, &range->base, range->bytes,
			 dev->granule, 0, 0);
	if (err) {
		free_range(range);
		return err;
	}
	pthread_mutex_lock(&dev->range_lock);
	range->older = dev->ranges;
	dev->ranges = range;
	pthread_mutex_unlock(&dev->range_lock);
	*out = range;
	return 0;
}

/* Lowest places are taken first, so there is little in it that is not mapped; it is never
 * empty, as kernels are not fenced by an empty one. */
struct ptx_range cu_range_of(const struct cu_range *range)
{
	const uint32_t top = atomic_load(&range->top);
	const uint64_t granules = top ? top : 1;

	return (struct ptx_range){.base = range->base,
				  .bytes = granules * range->granule};
}

static void note_use(struct cu_range *range, uint32_t first, uint32_t count, bool yes)
{
	uint32_t top = atomic_load(&range->top);

	memset(range->in_use + first, yes, count * sizeof(range->in_use[0]));
	if (yes && first + count > top)
		top = first + count;
	while (top && !range->in_use[top - 1])
		top--;
	atomic_store(&range->top, top);
}

bool cu_range_mapped(const struct cu_range *range)
{
	return range->mapped != 0;
}

int cu_range_end(struct cu_device *dev, struct cu_range *range)
{
	struct cu_range **at = &dev->ranges;
	int err = range->mapped ? cu_host->fail(EBUSY, "cuda: the partition's address "
						       "range still has mapped memory")
				: CU(dev, cuMemAddressFree, range->base, range->bytes);

	if (err)
		return err;
	pthread_mutex_lock(&dev->range_lock);
	while (*at != range)
		at = &(*at)->older;
	*at = range->older;
	pthread_mutex_unlock(&dev->range_lock);
	free_range(range);
	return 0;
}

/* ---- memory ------------------------------------------------------------------------ */

int cu_memory_create(struct cu_device *dev, uint64_t bytes, bool exported,
		     uint64_t *memory)
{
	const struct cu_memory_prop prop = prop_of(dev, exported);
	const uint64_t mark = cu_room_mark(dev);
	uint32_t r = cu.cuMemCreate(memory, bytes, &prop, 0);

	if (r == CUR_OUT_OF_MEMORY && cu_make_room(dev, mark))
		r = cu.cuMemCreate(memory, bytes, &prop, 0);
	return cu_check(dev, r, "cuMemCreate");
}

/* *left: it is mapped although this has failed. */
static int map(struct cu_device *dev, uint64_t at, uint64_t bytes, uint64_t memory,
	       bool *left)
{
	const struct cu_access access = {{CU_LOCATION_DEVICE, dev->shape.device},
					 CU_ACCESS_READ_WRITE};
	int err = CU(dev, cuMemMap, at, bytes, 0, memory, 0);

	*left = !err;
	if (!err)
		err = CU(dev, cuMemSetAccess, at, bytes, &access, 1);
	if (!err || !*left)
		return err;
	*left = cu.cuMemUnmap(at, bytes) != CUR_SUCCESS;
	return err;
}

/* The memory is its mapping's alone: unmapping gives it back. */
static int map_new(struct cu_device *dev, uint64_t at, uint64_t bytes, bool *left)
{
	uint64_t memory;
	int err = cu_memory_create(dev, bytes, false, &memory), unseen = 0;

	*left = false;
	if (err)
		return err;
	err = map(dev, at, bytes, memory, left);
	cu_give_back_address(dev, CU_KIND_PHYSICAL, memory, &unseen);
	return err;
}

static int take_run(struct cu_device *dev, struct cu_range *range, uint32_t count,
		    uint32_t *first)
{
	int err;

	pthread_mutex_lock(&dev->range_lock);
	err = cu_host->granules_take_run(range->free, 1, count, 1, first);
	pthread_mutex_unlock(&dev->range_lock);
	return err;
}

/* A row of granules that are mapped: of memory, or of new memory if that is 0. */
static int take_granules(struct cu_device *dev, struct cu_range *range, uint32_t count,
			 uint64_t memory, uint32_t *first)
{
	const uint64_t bytes = (uint64_t)count * range->granule, mark = cu_room_mark(dev);
	uint64_t at;
	bool left;
	int unseen = 0, err;

	err = take_run(dev, range, count, first);
	if (err == -ENOSPC && cu_make_room(dev, mark))
		err = take_run(dev, range, count, first);
	if (err == -ENOSPC)
		return cu_host->fail(
			ENOSPC,
			"cuda:%u: %" PRIu64
			" bytes requested; the partition's address range of %" PRIu64
			" bytes has at most %" PRIu64 " contiguous free bytes",
			dev->index, bytes, range->bytes,
			(uint64_t)*first * range->granule);
	if (err)
		return err;
	at = range->base + (uint64_t)*first * range->granule;
	err = memory ? map(dev, at, bytes, memory, &left)
		     : map_new(dev, at, bytes, &left);
	pthread_mutex_lock(&dev->range_lock);
	if (!err || left)
		range->mapped++;
	if (!err)
		note_use(range, *first, count, true);
	if (err && !left)
		give(range->free, *first, count);
	pthread_mutex_unlock(&dev->range_lock);
	if (err && left)
		cu_give_back_place(dev,
				   &(struct cu_place){.range = range,
						      .first = *first,
						      .count = count},
				   &unseen);
	return err;
}

static void drop_chunk(struct cu_chunk *c)
{
	cu_host->granules_close(c->free);
	free(c);
}

static int make_chunk(struct cu_device *dev, struct cu_range *range,
		      struct cu_chunk **out)
{
	struct cu_chunk *c = calloc(1, sizeof(*c));
	int err;

	if (!c)
		return cu_host->fail(ENOMEM, "cuda: no memory for a buffer");
	err = open_free(range->granule / PIECE, &c->free);
	if (!err)
		err = take_granules(dev, range, 1, 0, &c->granule);
	if (err)
		drop_chunk(c);
	else
		*out = c;
	return err;
}

/* Place p in c.  Return false if c lacks the free pieces.  Under the lock. */
static bool take_from(struct cu_device *dev, struct cu_chunk *c, struct cu_place *p)
{
	if (c->gone || cu_host->granules_left(c->free, 1) < p->count ||
	    cu_host->granules_take_run(c->free, 1, p->count, 1, &p->first))
		return false;
	p->chunk = c;
	c->places++;
	c->here++;
	if (!c->buffers++) {
		note_use(p->range, c->granule, 1, true);
		stream_bytes_add(&dev->memory, p->range->granule);
	}
	return true;
}

static int take_pieces(struct cu_device *dev, struct cu_place *p)
{
	struct cu_chunk *c;
	int err;

	pthread_mutex_lock(&dev->range_lock);
	for (c = p->range->chunks; c && !take_from(dev, c, p); c = c->next)
		;
	pthread_mutex_unlock(&dev->range_lock);
	if (c)
		return 0;
	err = make_chunk(dev, p->range, &c);
	if (err || !c)
		return err;
	pthread_mutex_lock(&dev->range_lock);
	c->next = p->range->chunks;
	p->range->chunks = c;
	(void)take_from(dev, c, p);
	pthread_mutex_unlock(&dev->range_lock);
	return 0;
}

int cu_place_take(struct cu_device *dev, struct cu_range *range, uint64_t bytes,
		  uint64_t memory, struct cu_place *p, uint64_t *address)
{
	const bool small = !memory && bytes <= range->granule / 2;
	const uint32_t unit = small ? PIECE : range->granule;
	const uint64_t count = (bytes + unit - 1) / unit;
	uint64_t left = stream_bytes_left(&dev->memory);
	int err;

	*p = (struct cu_place){.range = range, .count = (uint32_t)count};
	if (small) {
		err = take_pieces(dev, p);
		if (err)
			return err;
		*address = range->base + (uint64_t)p->chunk->granule * range->granule +
			   (uint64_t)p->first * PIECE;
		return 0;
	}
	if (bytes > left || !stream_bytes_take(&dev->memory, count * unit, &left))
		return cu_host->fail(
			ENOSPC, "cuda: %" PRIu64 " bytes requested, %" PRIu64 " are free",
			bytes, left);
	err = take_granules(dev, range, p->count, memory, &p->first);
	if (err) {
		stream_bytes_give(&dev->memory, count * unit);
		return err;
	}
	*address = range->base + (uint64_t)p->first * range->granule;
	return 0;
}

void cu_place_leave(struct cu_device *dev, const struct cu_place *p, int *err)
{
	const uint32_t first = p->chunk ? p->chunk->granule : p->first;
	const uint32_t count = p->chunk ? 1 : p->count;

	pthread_mutex_lock(&dev->range_lock);
	if (p->chunk && !p->out)
		p->chunk->here--;
	if (!p->chunk || !--p->chunk->buffers) {
		note_use(p->range, first, count, false);
		if (p->chunk ? !p->chunk->gone : !p->out)
			stream_bytes_give(&dev->memory,
					  (uint64_t)count * p->range->granule);
	}
	pthread_mutex_unlock(&dev->range_lock);
	cu_give_back_place(dev, p, err);
}

/* Give p's pieces back, of a chunk that has other places: return true.  Else take the
 * chunk out of the list, so that no buffer is placed there any more. */
static bool leave_chunk(struct cu_device *dev, const struct cu_place *p)
{
	struct cu_chunk **at = &p->range->chunks;
	bool shared;

	pthread_mutex_lock(&dev->range_lock);
	shared = p->chunk->places > 1;
	if (shared) {
		give(p->chunk->free, p->first, p->count);
		p->chunk->places--;
	} else {
		while (*at != p->chunk)
			at = &(*at)->next;
		*at = p->chunk->next;
	}
	pthread_mutex_unlock(&dev->range_lock);
	return shared;
}

static int unmap(struct cu_device *dev, const struct cu_range *range, uint32_t first,
		 uint32_t count)
{
	return CU(dev, cuMemUnmap, range->base + (uint64_t)first * range->granule,
		  (uint64_t)count * range->granule);
}

/* It is as before where that fails. */
int cu_place_end(struct cu_device *dev, const struct cu_place *p)
{
	struct cu_range *range = p->range;
	const uint32_t first = p->chunk ? p->chunk->granule : p->first;
	const uint32_t count = p->chunk ? 1 : p->count;
	bool mapped;
	int err;

	if (p->chunk && leave_chunk(dev, p))
		return 0;
	mapped = p->chunk ? !p->chunk->gone : !p->out;
	err = mapped ? unmap(dev, range, first, count) : 0;
	pthread_mutex_lock(&dev->range_lock);
	if (!err) {
		give(range->free, first, count);
		range->mapped -= mapped;
	} else if (p->chunk) {
		p->chunk->next = range->chunks;
		range->chunks = p->chunk;
	}
	pthread_mutex_unlock(&dev->range_lock);
	if (!err && p->chunk)
		drop_chunk(p->chunk);
	return err;
}

/* ---- eviction ------------------------------------------------------------------------ */

/* Count p as evicted, or not any more.  Return whether its granules are to be unmapped:
 * those of a chunk once it has no buffer here, and nothing to be given back, where a
 * launch that was given up may still write. */
static bool count_out(struct cu_device *dev, struct cu_place *p, bool out)
{
	struct cu_chunk *c = p->chunk;
	bool all = true;

	pthread_mutex_lock(&dev->range_lock);
	p->out = out;
	if (c) {
		c->here += out ? UINT32_MAX : 1;
		all = out ? !c->here && c->places == c->buffers : c->gone;
		c->gone = out && all;
	}
	pthread_mutex_unlock(&dev->range_lock);
	return all;
}

int cu_place_out(struct cu_device *dev, struct cu_place *p)
{
	const uint32_t first = p->chunk ? p->chunk->granule : p->first;
	const uint32_t count = p->chunk ? 1 : p->count;
	int err;

	if (!count_out(dev, p, true))
		return 0;
	err = unmap(dev, p->range, first, count);
	if (err) {
		(void)count_out(dev, p, false);
		return err;
	}
	atomic_fetch_sub(&p->range->mapped, 1);
	stream_bytes_give(&dev->memory, (uint64_t)count * p->range->granule);
	return 0;
}

int cu_place_in(struct cu_device *dev, struct cu_place *p)
{
	const uint32_t first = p->chunk ? p->chunk->granule : p->first;
	const uint64_t bytes = (uint64_t)(p->chunk ? 1 : p->count) * p->range->granule;
	uint64_t left;
	bool stays;
	int err;

	if (p->chunk && !p->chunk->gone)
		return (void)count_out(dev, p, false), 0;
	if (!stream_bytes_take(&dev->memory, bytes, &left))
		return cu_host->fail(ENOSPC,
				     "cuda: %" PRIu64
				     " bytes requested for an evicted buffer, %" PRIu64
				     " are free",
				     bytes, left);
	err = map_new(dev, p->range->base + (uint64_t)first * p->range->granule, bytes,
		      &stays);
	/* What could not be unmapped is not used, but there. */
	if (!err || stays)
		atomic_fetch_add(&p->range->mapped, 1);
	else
		stream_bytes_give(&dev->memory, bytes);
	if (!err)
		(void)count_out(dev, p, false);
	return err;
}
