/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of a ROCm device: its own, or pinned memory of the host's, which it sees as the
 * host does (coherent).  Any kernel of the process reaches all of it. */
#define _GNU_SOURCE
#include "internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define PIN_FLAGS (HIP_HOST_PORTABLE | HIP_HOST_MAPPED | HIP_HOST_COHERENT)

int rocm_pin(struct rocm_device *dev, uint64_t bytes, void **p, void **address)
{
	int ignored = 0, err = HIP(dev, hipHostMalloc, p, bytes, PIN_FLAGS);

	if (err)
		*p = NULL;
	else
		err = HIP(dev, hipHostGetDevicePointer, address, *p, 0);
	if (err && *p) {
		rocm_give_back(dev, ROCM_KIND_HOST, *p, &ignored);
		*p = NULL;
	}
	return err;
}

static int find_room(struct rocm_device *dev, uint64_t bytes, void **p)
{
	const uint64_t mark = rocm_room_mark(dev);
	uint32_t r = hip.hipMalloc(p, bytes);

	if (r == HIPR_OutOfMemory && rocm_make_room(dev, mark))
		r = hip.hipMalloc(p, bytes);
	if (r)
		*p = NULL;
	return rocm_check(dev, r, "hipMalloc");
}

int rocm_take_own(struct rocm_device *dev, uint64_t bytes, void **p)
{
	const int err = find_room(dev, bytes, p);

	if (!err)
		stream_bytes_add(&dev->memory, bytes);
	return err;
}

void rocm_give_own(struct rocm_device *dev, void *p, uint64_t bytes, int *err)
{
	if (!p)
		return;
	rocm_give_back(dev, ROCM_KIND_DEVICE, p, err);
	stream_bytes_give(&dev->memory, bytes);
}

static int place(struct rocm_device *dev, struct rocm_mem *mem, bool host)
{
	void *address = NULL;
	uint64_t left;
	int err;

	if (host) {
		err = rocm_pin(dev, mem->bytes, &mem->host, &address);
	} else if (!stream_bytes_take(&dev->memory, mem->bytes, &left)) {
		err = rocm_host->fail(
			ENOSPC, "rocm: %" PRIu64 " bytes requested, %" PRIu64 " are free",
			mem->bytes, left);
	} else {
		err = find_room(dev, mem->bytes, &address);
		if (err)
			stream_bytes_give(&dev->memory, mem->bytes);
	}
	mem->address = address;
	return err;
}

static int refuse_mapped(void)
{
	return rocm_host->fail(
		ENOTSUP, "rocm: the host cannot access device memory, which exported and "
			 "imported buffers are: create or import the buffer without "
			 "HAL_BUFFER_MAPPABLE");
}

/* Return whether buffers of part may exceed its quota, and so be evicted. */
static bool evicts(const struct rocm_partition *part)
{
	return part->base.desc.address_bytes > part->base.desc.memory_bytes;
}

/* Do as rocm_mem_alloc.  The calling thread means this device. */
static int make(struct rocm_device *dev, void *partition, uint64_t bytes, uint32_t flags,
		void **out)
{
	const bool pinned = flags & (HAL_BUFFER_MAPPABLE | HAL_BK_MEM_HOST);
	const bool exported = flags & HAL_BUFFER_EXPORTABLE;
	const bool evicted = !pinned && evicts(partition);
	struct rocm_mem *mem;
	uint64_t foreign = 0;
	int err = 0;

	if (exported && pinned)
		return refuse_mapped();
	mem = calloc(1, sizeof(*mem));
	if (!mem)
		return rocm_host->fail(ENOMEM, "rocm: no memory for a buffer");
	mem->fd = -1;
	mem->bytes = bytes ? bytes : 1;
	mem->part = partition;
	mem->copied = flags & HAL_BK_MEM_HOST;
	mem->foreign = !pinned && !exported &&
		       stream_offered_memory(&dev->offers, bytes, &foreign);
	if (mem->foreign)
		/* NOLINTNEXTLINE(performance-no-int-to-ptr): as it was offered */
		mem->address = (char *)(uintptr_t)foreign;
	else
		err = exported || evicted
			      ? rocm_share_make(dev, mem, exported)
			      : place(dev, mem, dev->opt.host_memory || pinned);
	if (!err && mem->copied)
		/* NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): pinned */
		memset(mem->host, 0, mem->bytes);
	if (err) {
		free(mem);
		return err;
	}
	if (mem->foreign)
		stream_took_memory(&dev->offers);
	atomic_fetch_add(&mem->part->base.buffers, 1);
	*out = mem;
	return 0;
}

int rocm_mem_alloc(void *device, void *partition, uint64_t bytes,
		   const struct hal_bk_colors *colors, uint32_t flags, void **out)
{
	struct rocm_device *dev = device;
	struct rocm_caller was;
	int err = rocm_push(dev, &was);

	(void)colors; /* it has none */
	if (err)
		return err;
	err = make(dev, partition, bytes, flags, out);
	rocm_pop(dev, was);
	return err;
}

int rocm_mem_import(void *device, void *partition, int fd, uint64_t bytes, uint32_t flags,
		    void **out)
{
	struct rocm_device *dev = device;
	struct rocm_caller was;
	struct rocm_mem *mem;
	int err;

	if (flags & HAL_BUFFER_MAPPABLE)
		return refuse_mapped();
	mem = calloc(1, sizeof(*mem));
	if (!mem)
		return rocm_host->fail(ENOMEM, "rocm: no memory for a buffer");
	mem->part = partition;
	mem->bytes = bytes;
	mem->fd = -1;
	err = rocm_push(dev, &was);
	if (!err) {
		err = rocm_share_import(dev, mem, fd);
		rocm_pop(dev, was);
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

/* Return hipErrorHostMemoryAlreadyRegistered if HIP has the page already.  Old releases
 * register memory twice, and then the first hipHostUnregister takes it from both. */
static uint32_t look_for(uint64_t address)
{
	void *found;
	/* NOLINTBEGIN(performance-no-int-to-ptr): the application's */
	const uint32_t result =
		hip.hipHostGetDevicePointer(&found, (void *)(uintptr_t)address, 0);
	/* NOLINTEND(performance-no-int-to-ptr) */

	if (!result)
		return HIPR_HostMemoryAlreadyRegistered;
	return result == HIPR_InvalidValue || result == HIPR_HostMemoryNotRegistered
		       ? HIPR_Success
		       : result;
}

/* Have HIP register r, so that copies of it need no other memory between. */
static int register_region(void *device, struct stream_region *r, const void *address,
			   uint64_t bytes)
{
	struct rocm_device *dev = device;
	/* NOLINTNEXTLINE(performance-no-int-to-ptr): whole pages of the application's */
	void *base = (void *)(uintptr_t)r->base, *found = NULL;
	const char *call = "hipHostGetDevicePointer";
	uint32_t result = look_for(r->base);
	int err;

	if (!result)
		result = look_for(r->base + r->bytes - 1);
	if (!result) {
		call = "hipHostRegister";
		result = hip.hipHostRegister(base, r->bytes,
					     HIP_HOST_PORTABLE | HIP_HOST_MAPPED);
	}
	if (result == HIPR_HostMemoryAlreadyRegistered)
		return stream_region_refuse(&dev->regions, address, bytes);
	if (result)
		return rocm_failed(dev, result, call);
	err = HIP(dev, hipHostGetDevicePointer, &found, base, 0);
	if (err && hip.hipHostUnregister(base))
		(void)hip.hipHostUnregister(base);
	r->address = (uintptr_t)found;
	return err;
}

int rocm_region_end(struct rocm_device *dev, struct stream_region *region)
{
	/* NOLINTNEXTLINE(performance-no-int-to-ptr): as it was registered */
	int err = HIP(dev, hipHostUnregister, (void *)(uintptr_t)region->base);

	if (!err)
		stream_region_gone(&dev->regions, region);
	return err;
}

static void give_region_back(void *device, struct stream_region *r, int *err)
{
	rocm_give_back(device, ROCM_KIND_REGION, r, err);
}

static bool make_room(void *device, uint64_t mark)
{
	return rocm_make_room(device, mark);
}

static void settle(void *device, uint64_t mark)
{
	struct rocm_device *dev = device;
	struct rocm_caller was;

	if (rocm_entered(dev) || atomic_load(&dev->base.lost) || rocm_push(dev, &was))
		return;
	(void)rocm_make_room(dev, mark);
	rocm_pop(dev, was);
}

static const struct stream_region_ops region_ops = {
	.enroll = register_region,
	.give_back = give_region_back,
	.make_room = make_room,
	.settle = settle,
};

int rocm_mem_register(void *device, void *partition, void *address, uint64_t bytes,
		      void **out)
{
	struct rocm_device *dev = device;
	struct rocm_caller was;
	struct rocm_mem *mem;
	int err;

	if (!hip.hipHostRegister || !hip.hipHostUnregister)
		return rocm_host->fail(ENOTSUP,
				       "rocm:%u: HIP cannot register memory of the "
				       "application: use hal_host_alloc",
				       dev->index);
	mem = calloc(1, sizeof(*mem));
	if (!mem)
		return rocm_host->fail(ENOMEM, "rocm: no memory for a buffer");
	err = rocm_push(dev, &was);
	if (!err) {
		err = stream_region_find(&dev->regions, &region_ops, &dev->later, address,
					 bytes, &mem->region);
		rocm_pop(dev, was);
	}
	if (err) {
		free(mem);
		return err;
	}
	mem->part = partition;
	mem->bytes = bytes;
	mem->host = address;
	mem->copied = true;
	/* NOLINTNEXTLINE(performance-no-int-to-ptr): as HIP has it */
	mem->address = (char *)(uintptr_t)stream_region_at(mem->region, address);
	atomic_fetch_add(&mem->part->base.buffers, 1);
	*out = mem;
	return 0;
}

int rocm_mem_free(void *device, void *memory)
{
	struct rocm_device *dev = device;
	struct rocm_mem *mem = memory;
	int err = 0;

	/* Under the real clock the thread of dev->later calls the library. */
	if (dev->opt.virtual_clock && !atomic_load(&dev->base.lost))
		err = rocm_enter(dev);
	if (mem->region)
		stream_region_leave(&dev->regions, &region_ops, &dev->later, mem->region,
				    &err);
	else if (mem->mapping)
		rocm_share_leave(dev, mem, &err);
	else if (mem->host)
		rocm_give_back(dev, ROCM_KIND_HOST, mem->host, &err);
	else if (!mem->foreign)
		rocm_give_own(dev, mem->address, mem->bytes, &err);
	atomic_fetch_sub(&mem->part->base.buffers, 1);
	free(mem);
	return err;
}

int rocm_mem_write(void *device, void *memory, uint64_t offset, const void *data,
		   uint64_t bytes)
{
	const struct rocm_mem *mem = memory;

	if (mem->host) {
		memcpy((char *)mem->host + offset, data, bytes);
		return 0;
	}
	return rocm_write(device, mem->address + offset, data, bytes);
}

int rocm_mem_clear(void *device, void *memory)
{
	const struct rocm_mem *mem = memory;

	if (mem->foreign)
		return 0;
	if (!mem->host)
		return rocm_clear(device, mem->address, mem->bytes);
	/* NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): pinned */
	memset(mem->host, 0, mem->bytes);
	return 0;
}

int rocm_mem_read(void *device, void *memory, uint64_t offset, void *data, uint64_t bytes)
{
	const struct rocm_mem *mem = memory;

	if (mem->host) {
		memcpy(data, (const char *)mem->host + offset, bytes);
		return 0;
	}
	return rocm_read(device, mem->address + offset, data, bytes);
}

int rocm_mem_map(void *device, void *memory, void **address)
{
	const struct rocm_mem *mem = memory;

	(void)device;
	*address = mem->host;
	return mem->host ? 0
			 : rocm_host->fail(ENOTSUP,
					   "rocm: the host cannot access device memory; "
					   "create the buffer with HAL_BUFFER_MAPPABLE");
}

int rocm_mem_unmap(void *device, void *memory)
{
	(void)device;
	(void)memory;
	return 0;
}
