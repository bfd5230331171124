/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of a Level Zero device: device, shared or host allocations of one context, which
 * all tenants of the device share; so isolation of memory is advisory.
 */
#define _GNU_SOURCE
#include "internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define ALIGNMENT 4096u

/* Where a buffer goes: mappable ones need an address that is good for the host. */
static uint32_t placement_of(const struct lz_device *dev, uint32_t flags)
{
	if (flags & HAL_BK_MEM_HOST)
		return LZ_MEM_HOST;
	if (!(flags & HAL_BUFFER_MAPPABLE))
		return dev->opt.placement;
	if (dev->opt.placement != LZ_MEM_DEVICE)
		return dev->opt.placement;
	return dev->shape.shared ? LZ_MEM_SHARED : LZ_MEM_HOST;
}

/* Where device memory goes.  What is shared has one descriptor, so it is in one piece,
 * on the partition's first tile. */
static void *home_of(const struct lz_device *dev, const struct lz_mem *mem)
{
	return mem->external ? dev->shape.tiles[mem->part->tile] : mem->part->home;
}

/* more: further structures for the driver, or NULL. */
static int allocate(const struct lz_device *dev, const struct lz_mem *mem,
		    const void *more, void **p)
{
	const struct ze_relaxed_allocation_limits_exp_desc relaxed = {
		.stype = LZ_STYPE_RELAXED_ALLOCATION_LIMITS_EXP_DESC,
		.next = more,
		.flags = LZ_RELAXED_MAX_SIZE};
	const bool large = mem->bytes > dev->shape.props.max_mem_alloc_size;
	const void *next = large && dev->shape.relaxed ? &relaxed : more;
	const struct ze_device_mem_alloc_desc d = {
		.stype = LZ_STYPE_DEVICE_MEM_ALLOC_DESC, .next = next};
	const struct ze_host_mem_alloc_desc h = {.stype = LZ_STYPE_HOST_MEM_ALLOC_DESC,
						 .next = next};

	switch (mem->placement) {
	case LZ_MEM_SHARED:
		return LZ(zeMemAllocShared, dev->context, &d, &h, mem->bytes, ALIGNMENT,
			  mem->part->home, p);
	case LZ_MEM_HOST:
		return LZ(zeMemAllocHost, dev->context, &h, mem->bytes, ALIGNMENT, p);
	default:
		return LZ(zeMemAllocDevice, dev->context, &d, mem->bytes, ALIGNMENT,
			  home_of(dev, mem), p);
	}
}

int lz_take_bytes(struct lz_device *dev, uint64_t bytes)
{
	uint64_t left;

	if (stream_bytes_take(&dev->used, bytes, &left))
		return 0;
	return lz_host->fail(
		ENOSPC, "levelzero: %" PRIu64 " bytes requested, %" PRIu64 " are free",
		bytes, left);
}

/* Return how much of the device's memory a buffer takes up.  Host memory is none of it;
 * shared memory may move there. */
static uint64_t charged(const struct lz_mem *mem)
{
	if (mem->placement == LZ_MEM_HOST)
		return 0;
	return mem->evicted ? mem->range.bytes : mem->bytes;
}

/* Get memory for mem; more: as in allocate. */
static int place(struct lz_device *dev, struct lz_mem *mem, const void *more)
{
	int err;

	if (!mem->evicted)
		return allocate(dev, mem, more, &mem->p);
	err = lz_range_make(dev, mem->part->home, mem->part->id, &mem->range);
	mem->p = mem->range.address;
	return err;
}

/* Add mem to the device's list and give it a number. */
static void enter(struct lz_device *dev, struct lz_mem *mem)
{
	atomic_fetch_add(&mem->part->base.buffers, 1);
	mem->era = lz_era(dev);
	pthread_mutex_lock(&dev->memory_lock);
	mem->id = ++dev->mem_ids;
	mem->next = dev->memory;
	mem->at = &dev->memory;
	if (mem->next)
		mem->next->at = &mem->next;
	dev->memory = mem;
	pthread_mutex_unlock(&dev->memory_lock);
}

/* Undo enter. */
static void leave(struct lz_device *dev, struct lz_mem *mem)
{
	pthread_mutex_lock(&dev->memory_lock);
	*mem->at = mem->next;
	if (mem->next)
		mem->next->at = mem->at;
	pthread_mutex_unlock(&dev->memory_lock);
	atomic_fetch_sub(&mem->part->base.buffers, 1);
}

/* Make a buffer as described by like, and enter it; more: as in allocate. */
static int make(struct lz_device *dev, const struct lz_mem *like, const void *more,
		void **out)
{
	struct lz_mem *mem = malloc(sizeof(*mem));
	int err = 0;

	if (!mem)
		return lz_host->fail(ENOMEM, "levelzero: no memory for a buffer");
	*mem = *like;
	mem->fd = -1;
	if (mem->evicted)
		err = lz_range_size(dev, mem->part->home, mem->bytes, &mem->range);
	if (!err)
		err = lz_take_bytes(dev, charged(mem));
	if (!err) {
		err = place(dev, mem, more);
		/* Buffers whose last command ended late may be free by now. */
		if ((err == -ENOSPC || err == -ENOMEM) && lz_empty_trash(dev))
			err = place(dev, mem, more);
		if (err)
			stream_bytes_give(&dev->used, charged(mem));
	}
	if (err) {
		free(mem);
		return err;
	}
	if (mem->copied)
		memset(mem->p, 0, mem->bytes);
	enter(dev, mem);
	*out = mem;
	return 0;
}

static int external_is_not_mapped(void)
{
	return lz_host->fail(ENOTSUP,
			     "levelzero: a buffer that is exported or imported is device "
			     "memory, which the host cannot map: leave out "
			     "HAL_BUFFER_MAPPABLE");
}

/* Return whether buffers of part may exceed its quota, and so be evicted. */
static bool may_exceed(const struct lz_partition *part)
{
	return part->base.desc.address_bytes > part->base.desc.memory_bytes;
}

int lz_mem_alloc(void *device, void *partition, uint64_t bytes,
		 const struct hal_bk_colors *colors, uint32_t flags, void **out)
{
	struct lz_device *dev = device;
	const struct ze_external_memory_export_desc export = {
		.stype = LZ_STYPE_EXTERNAL_MEMORY_EXPORT_DESC,
		.flags = dev->shape.export_as};
	struct lz_mem like = {
		.part = partition,
		.bytes = bytes ? bytes : 1,
		.placement = placement_of(dev, flags),
		.external = flags & HAL_BUFFER_EXPORTABLE,
		.copied = flags & HAL_BK_MEM_HOST,
	};

	(void)colors; /* it has none */
	if (like.external && (flags & HAL_BUFFER_MAPPABLE))
		return external_is_not_mapped();
	if (like.external)
		like.placement = LZ_MEM_DEVICE;
	like.evicted = like.placement == LZ_MEM_DEVICE && !like.external && dev->evicts &&
		       may_exceed(like.part);
	return make(dev, &like, like.external ? &export : NULL, out);
}

int lz_mem_import(void *device, void *partition, int fd, uint64_t bytes, uint32_t flags,
		  void **out)
{
	struct lz_device *dev = device;
	const struct ze_external_memory_fd import = {
		.stype = LZ_STYPE_EXTERNAL_MEMORY_IMPORT_FD,
		.flags = dev->shape.import_as,
		.fd = fd};
	const struct lz_mem like = {.part = partition,
				    .bytes = bytes,
				    .placement = LZ_MEM_DEVICE,
				    .external = true};
	int err;

	if (flags & HAL_BUFFER_MAPPABLE)
		return external_is_not_mapped();
	err = lz_share_check(fd, bytes);
	if (err)
		return err;
	err = make(dev, &like, &import, out);
	if (err != -EINVAL)
		return err;
	return lz_host->fail(EINVAL,
			     "levelzero: zeMemAllocDevice: descriptor %d is no memory "
			     "that %s can import: pass one of hal_buffer_export",
			     fd, dev->shape.props.name);
}

/* ---- the application's memory -------------------------------------------------------- */

/* Have the driver register r, so that copies of it need no other memory between. */
static int import_region(struct lz_device *dev, struct stream_region *r,
			 const void *address, uint64_t bytes)
{
	/* NOLINTNEXTLINE(performance-no-int-to-ptr): whole pages of the application's */
	void *base = (void *)(uintptr_t)r->base;
	const uint32_t result =
		dev->shape.import(dev->shape.import_driver, base, r->bytes);

	r->address = r->base;
	if (result == LZ_ERROR_OVERLAPPING_REGIONS)
		return stream_region_refuse(&dev->regions, address, bytes);
	return lz_check(result, "zexDriverImportExternalPointer");
}

/* Find or register a region that the memory lies in. */
static int take_region(struct lz_device *dev, const void *address, uint64_t bytes,
		       struct stream_region **region)
{
	bool fresh;
	int err = stream_region_take(&dev->regions, address, bytes, region, &fresh);

	/* It may wait for a command that ended late. */
	if (err == -EAGAIN && lz_empty_trash(dev))
		err = stream_region_take(&dev->regions, address, bytes, region, &fresh);
	if (err == -EAGAIN)
		return stream_region_refuse(&dev->regions, address, bytes);
	if (err || !fresh)
		return err;
	err = import_region(dev, *region, address, bytes);
	stream_region_made(&dev->regions, *region, err);
	return err;
}

int lz_mem_register(void *device, void *partition, void *address, uint64_t bytes,
		    void **out)
{
	struct lz_device *dev = device;
	struct lz_mem *mem;
	int err;

	if (!dev->shape.import)
		return lz_host->fail(
			ENOTSUP,
			"levelzero:%u: zeDriverGetExtensionFunctionAddress: %s (0x%x): "
			"memory of the application cannot be registered: use "
			"hal_host_alloc",
			dev->index, lz_result_name(dev->shape.import_result),
			dev->shape.import_result);
	mem = calloc(1, sizeof(*mem));
	if (!mem)
		return lz_host->fail(ENOMEM, "levelzero: no memory for a buffer");
	err = take_region(dev, address, bytes, &mem->region);
	if (err) {
		free(mem);
		return err;
	}
	mem->part = partition;
	mem->p = address;
	mem->bytes = bytes;
	mem->placement = LZ_MEM_HOST;
	mem->copied = true;
	mem->fd = -1;
	enter(dev, mem);
	*out = mem;
	return 0;
}

int lz_mem_free(void *device, void *memory)
{
	struct lz_device *dev = device;
	struct lz_mem *mem = memory;
	const struct lz_group g = {.part = mem->part->id};
	int err = 0;

	leave(dev, mem);
	if (mem->evicted)
		lz_range_drop(dev, &mem->range, &err);
	else if (!mem->region)
		lz_drop_memory(dev, mem->p, mem->fd, g, &err);
	else if (stream_region_drop(&dev->regions, mem->region))
		lz_drop(dev, LZ_KIND_REGION, mem->region, g, &err);
	if (!mem->evicted || mem->range.physical)
		stream_bytes_give(&dev->used, charged(mem));
	free(mem);
	return err;
}

int lz_mem_write(void *device, void *memory, uint64_t offset, const void *data,
		 uint64_t bytes)
{
	const struct lz_mem *mem = memory;

	if (mem->placement == LZ_MEM_DEVICE)
		return lz_copy(device, mem->part, (char *)mem->p + offset, data, bytes,
			       false);
	memcpy((char *)mem->p + offset, data, bytes);
	return 0;
}

int lz_mem_clear(void *device, void *memory)
{
	const struct lz_mem *mem = memory;

	if (mem->placement == LZ_MEM_DEVICE)
		return lz_copy(device, mem->part, mem->p, NULL, mem->bytes, false);
	memset(mem->p, 0, mem->bytes);
	return 0;
}

int lz_mem_read(void *device, void *memory, uint64_t offset, void *data, uint64_t bytes)
{
	const struct lz_mem *mem = memory;

	if (mem->placement == LZ_MEM_DEVICE)
		return lz_copy(device, mem->part, data, (char *)mem->p + offset, bytes,
			       true);
	memcpy(data, (char *)mem->p + offset, bytes);
	return 0;
}

int lz_mem_map(void *device, void *memory, void **address)
{
	const struct lz_mem *mem = memory;

	(void)device;
	if (mem->placement == LZ_MEM_DEVICE)
		return lz_host->fail(ENOTSUP,
				     "levelzero: the host cannot access device memory; "
				     "create the buffer with HAL_BUFFER_MAPPABLE");
	*address = mem->p;
	return 0;
}

int lz_mem_unmap(void *device, void *memory)
{
	(void)device;
	(void)memory;
	return 0;
}
