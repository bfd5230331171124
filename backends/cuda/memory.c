/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of a CUDA device: the device's own, or pinned memory of the host's.  All of a
 * process's is in one address space, which any kernel reaches: nothing is isolated but by
 * what kernels are rewritten to (fence.c).
 */
#define _GNU_SOURCE
#include "internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

int cu_pin(struct cu_device *dev, uint64_t bytes, void **p, uint64_t *address)
{
	int again = 0;
	int err = CU(dev, cuMemHostAlloc, p, bytes, CU_HOST_PORTABLE | CU_HOST_DEVICEMAP);

	if (err) {
		*p = NULL;
		return err;
	}
	err = CU(dev, cuMemHostGetDevicePointer_v2, address, *p, 0);
	if (err) {
		cu_give_back(dev, CU_KIND_HOST, *p, &again);
		*p = NULL;
	}
	return err;
}

static int allocate_device(struct cu_device *dev, uint64_t bytes, uint64_t *address)
{
	const uint64_t mark = cu_room_mark(dev);
	uint32_t r = cu.cuMemAlloc_v2(address, bytes);

	if (r == CUR_OUT_OF_MEMORY && cu_make_room(dev, mark))
		r = cu.cuMemAlloc_v2(address, bytes);
	return cu_check(dev, r, "cuMemAlloc_v2");
}

int cu_take_own(struct cu_device *dev, uint64_t bytes, uint64_t *address)
{
	int err = allocate_device(dev, bytes, address);

	if (err)
		*address = 0;
	else
		stream_bytes_add(&dev->memory, bytes);
	return err;
}

void cu_give_own(struct cu_device *dev, uint64_t address, uint64_t bytes, int *err)
{
	if (!address)
		return;
	cu_give_back_address(dev, CU_KIND_DEVICE, address, err);
	stream_bytes_give(&dev->memory, bytes);
}

static int allocate(struct cu_device *dev, struct cu_mem *mem, bool host)
{
	uint64_t left;
	int err;

	if (mem->part->color && !host)
		return cu_color_take(dev, mem);
	if (mem->part->range && !host)
		return cu_place_take(dev, mem->part->range, mem->bytes, 0, &mem->place,
				     &mem->address);
	if (host)
		return cu_pin(dev, mem->bytes, &mem->host, &mem->address);
	if (!stream_bytes_take(&dev->memory, mem->bytes, &left))
		return cu_host->fail(
			ENOSPC, "cuda: %" PRIu64 " bytes requested, %" PRIu64 " are free",
			mem->bytes, left);
	err = allocate_device(dev, mem->bytes, &mem->address);
	if (err)
		stream_bytes_give(&dev->memory, mem->bytes);
	return err;
}

/* Make a buffer of the program's own memory. */
static int adopt(struct cu_device *dev, struct cu_partition *part, uint64_t address,
		 uint64_t bytes, void **out)
{
	struct cu_mem *mem = calloc(1, sizeof(*mem));

	if (!mem)
		return cu_host->fail(ENOMEM, "cuda: no memory for a buffer");
	*mem = (struct cu_mem){
		.part = part, .address = address, .bytes = bytes, .foreign = true};
	atomic_fetch_add(&part->base.buffers, 1);
	stream_took_memory(&dev->offers);
	*out = mem;
	return 0;
}

/* Return 0 if memory of part can be on these channels, or is none of the device's. */
static int check_colors(const struct cu_device *dev, const struct cu_partition *part,
			const struct hal_bk_colors *colors, uint32_t flags)
{
	if (!dev->colors || (flags & (HAL_BUFFER_MAPPABLE | HAL_BK_MEM_HOST)))
		return 0;
	if (colors && (colors->mask != part->base.desc.color_mask || colors->weights))
		return cu_host->fail(
			ENOTSUP, "cuda: a buffer is on all channels of its partition, "
				 "evenly");
	if (part->color && (flags & HAL_BUFFER_EXPORTABLE))
		return cu_host->fail(ENOTSUP, "cuda: memory on some channels cannot be "
					      "exported");
	return 0;
}

static int refuse_mapped(void)
{
	return cu_host->fail(ENOTSUP,
			     "cuda: the host cannot access device memory, which exported "
			     "and imported buffers are: create or import the buffer "
			     "without HAL_BUFFER_MAPPABLE");
}

/* Do as cu_mem_alloc.  The calling thread has the context current. */
static int make(struct cu_device *dev, void *partition, uint64_t bytes, uint32_t flags,
		void **out)
{
	const bool pinned = flags & (HAL_BUFFER_MAPPABLE | HAL_BK_MEM_HOST);
	const bool exported = flags & HAL_BUFFER_EXPORTABLE;
	struct cu_mem *mem;
	uint64_t foreign;
	int err;

	if (exported && pinned)
		return refuse_mapped();
	if (!pinned && !exported && !((struct cu_partition *)partition)->color &&
	    stream_offered_memory(&dev->offers, bytes, &foreign))
		return adopt(dev, partition, foreign, bytes, out);
	mem = calloc(1, sizeof(*mem));
	if (!mem)
		return cu_host->fail(ENOMEM, "cuda: no memory for a buffer");
	mem->part = partition;
	mem->bytes = bytes ? bytes : 1;
	err = exported ? cu_share_make(dev, mem)
		       : allocate(dev, mem, dev->opt.host_memory || pinned);
	if (err) {
		free(mem);
		return err;
	}
	if (flags & HAL_BK_MEM_HOST)
		/* NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): pinned */
		memset(mem->host, 0, mem->bytes);
	atomic_fetch_add(&mem->part->base.buffers, 1);
	*out = mem;
	return 0;
}

int cu_mem_alloc(void *device, void *partition, uint64_t bytes,
		 const struct hal_bk_colors *colors, uint32_t flags, void **out)
{
	struct cu_device *dev = device;
	uint32_t mode;
	int err = check_colors(dev, partition, colors, flags);

	if (!err)
		err = cu_push(dev, &mode);
	if (err)
		return err;
	err = make(dev, partition, bytes, flags, out);
	cu_pop(mode);
	return err;
}

int cu_mem_import(void *device, void *partition, int fd, uint64_t bytes, uint32_t flags,
		  void **out)
{
	struct cu_device *dev = device;
	struct cu_mem *mem;
	uint32_t mode;
	int err;

	if (flags & HAL_BUFFER_MAPPABLE)
		return refuse_mapped();
	if (((struct cu_partition *)partition)->color)
		return cu_host->fail(ENOTSUP, "cuda: imported memory is on all channels, "
					      "and the partition owns some");
	mem = calloc(1, sizeof(*mem));
	if (!mem)
		return cu_host->fail(ENOMEM, "cuda: no memory for a buffer");
	mem->part = partition;
	mem->bytes = bytes;
	err = cu_push(dev, &mode);
	if (!err) {
		err = cu_share_import(dev, mem, fd);
		cu_pop(mode);
	}
	if (err) {
		free(mem);
		return err;
	}
	atomic_fetch_add(&mem->part->base.buffers, 1);
	*out = mem;
	return 0;
}

/* ---- the application's memory -------------------------------------------------------- */

/* Have the driver register r, so that copies of it need no other memory between. */
static int register_region(void *device, struct stream_region *r, const void *address,
			   uint64_t bytes)
{
	struct cu_device *dev = device;
	/* NOLINTNEXTLINE(performance-no-int-to-ptr): whole pages of the application's */
	void *base = (void *)(uintptr_t)r->base;
	uint32_t result = cu.cuMemHostRegister_v2(base, r->bytes,
						  CU_HOST_PORTABLE | CU_HOST_DEVICEMAP);
	int err;

	if (result == CUR_HOST_MEMORY_ALREADY_REGISTERED)
		return stream_region_refuse(&dev->regions, address, bytes);
	if (result)
		return cu_failed(dev, result, "cuMemHostRegister_v2");
	err = CU(dev, cuMemHostGetDevicePointer_v2, &r->address, base, 0);
	if (err && cu.cuMemHostUnregister(base))
		(void)cu.cuMemHostUnregister(base);
	return err;
}

int cu_region_end(struct cu_device *dev, struct stream_region *region)
{
	/* NOLINTNEXTLINE(performance-no-int-to-ptr): as it was registered */
	int err = CU(dev, cuMemHostUnregister, (void *)(uintptr_t)region->base);

	if (!err)
		stream_region_gone(&dev->regions, region);
	return err;
}

static void give_region_back(void *device, struct stream_region *r, int *err)
{
	cu_give_back(device, CU_KIND_REGION, r, err);
}

static bool make_room(void *device, uint64_t mark)
{
	return cu_make_room(device, mark);
}

static void settle(void *device, uint64_t mark)
{
	struct cu_device *dev = device;
	uint32_t mode;

	if (cu_entered == dev->id || atomic_load(&dev->base.lost) || cu_push(dev, &mode))
		return;
	(void)cu_make_room(dev, mark);
	cu_pop(mode);
}

static const struct stream_region_ops region_ops = {
	.enroll = register_region,
	.give_back = give_region_back,
	.make_room = make_room,
	.settle = settle,
};

int cu_mem_register(void *device, void *partition, void *address, uint64_t bytes,
		    void **out)
{
	struct cu_device *dev = device;
	struct cu_mem *mem;
	uint32_t mode;
	int err;

	if (!cu.cuMemHostRegister_v2 || !cu.cuMemHostUnregister)
		return cu_host->fail(ENOTSUP,
				     "cuda:%u: the driver cannot register memory of the "
				     "application: use hal_host_alloc",
				     dev->index);
	mem = calloc(1, sizeof(*mem));
	if (!mem)
		return cu_host->fail(ENOMEM, "cuda: no memory for a buffer");
	err = cu_push(dev, &mode);
	if (!err) {
		err = stream_region_find(&dev->regions, &region_ops, &dev->later, address,
					 bytes, &mem->region);
		cu_pop(mode);
	}
	if (err) {
		free(mem);
		return err;
	}
	mem->part = partition;
	mem->bytes = bytes;
	mem->host = address;
	mem->address = stream_region_at(mem->region, address);
	atomic_fetch_add(&mem->part->base.buffers, 1);
	*out = mem;
	return 0;
}

int cu_mem_free(void *device, void *memory)
{
	struct cu_device *dev = device;
	struct cu_mem *mem = memory;
	int err = 0;

	/* Under the real clock the thread of dev->later calls the driver. */
	if (dev->opt.virtual_clock && !atomic_load(&dev->base.lost))
		err = cu_enter(dev);
	if (mem->region)
		stream_region_leave(&dev->regions, &region_ops, &dev->later, mem->region,
				    &err);
	else if (mem->host)
		cu_give_back(dev, CU_KIND_HOST, mem->host, &err);
	else if (mem->place.range)
		cu_share_leave(dev, mem, &err);
	else if (!mem->foreign)
		cu_give_own(dev, mem->address, mem->bytes, &err);
	atomic_fetch_sub(&mem->part->base.buffers, 1);
	free(mem);
	return err;
}

int cu_mem_out(void *device, void *memory)
{
	struct cu_device *dev = device;
	struct cu_mem *mem = memory;
	uint32_t mode;
	int err;

	if (!mem->place.range)
		return cu_host->fail(ENOTSUP,
				     "cuda:%u: the buffer is memory of the program's own",
				     dev->index);
	err = cu_push(dev, &mode);
	if (err)
		return err;
	err = cu_place_out(dev, &mem->place);
	cu_pop(mode);
	return err;
}

int cu_mem_in(void *device, void *memory, const struct hal_bk_colors *colors)
{
	struct cu_device *dev = device;
	struct cu_mem *mem = memory;
	uint32_t mode;
	int err = cu_push(dev, &mode);

	(void)colors; /* it has none */
	if (err)
		return err;
	err = cu_place_in(dev, &mem->place);
	cu_pop(mode);
	return err;
}

int cu_mem_write(void *device, void *memory, uint64_t offset, const void *data,
		 uint64_t bytes)
{
	const struct cu_mem *mem = memory;

	if (!mem->host)
		return cu_copy(device, mem->address + offset, NULL, data, bytes);
	memcpy((char *)mem->host + offset, data, bytes);
	return 0;
}

int cu_mem_clear(void *device, void *memory)
{
	const struct cu_mem *mem = memory;

	if (mem->foreign)
		return 0;
	if (!mem->host)
		return cu_clear(device, mem->address, mem->bytes);
	/* NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): pinned */
	memset(mem->host, 0, mem->bytes);
	return 0;
}

int cu_mem_read(void *device, void *memory, uint64_t offset, void *data, uint64_t bytes)
{
	const struct cu_mem *mem = memory;

	if (!mem->host)
		return cu_copy(device, mem->address + offset, data, NULL, bytes);
	memcpy(data, (const char *)mem->host + offset, bytes);
	return 0;
}

int cu_mem_map(void *device, void *memory, void **address)
{
	const struct cu_mem *mem = memory;

	(void)device;
	if (!mem->host && mem->part->color)
		return cu_host->fail(ENOTSUP,
				     "cuda: memory on some channels cannot be mapped: "
				     "its bytes are in pieces");
	if (!mem->host)
		return cu_host->fail(ENOTSUP,
				     "cuda: the host cannot access device memory; create "
				     "the buffer with HAL_BUFFER_MAPPABLE");
	*address = mem->host;
	return 0;
}

int cu_mem_unmap(void *device, void *memory)
{
	(void)device;
	(void)memory;
	return 0;
}
