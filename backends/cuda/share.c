/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buffers that several partitions and processes have by file descriptor: device memory
 * that the driver has made for it.  It is mapped like the memory of memory=vmm (range.c):
 * in the partition's range, or else in one of the buffer's own.  The mapping alone keeps
 * it; a handle is only held during a call.
 */
#define _GNU_SOURCE
#include "internal.h"

#include <errno.h>
#include <inttypes.h>

static int check(const struct cu_device *dev, uint64_t bytes)
{
	const uint64_t left = stream_bytes_left(&dev->memory);

	if (cu_shares(&dev->opt, &dev->shape))
		return bytes <= left
			       ? 0
			       : cu_host->fail(ENOSPC,
					       "cuda: %" PRIu64
					       " bytes requested, %" PRIu64 " are free",
					       bytes, left);
	return dev->opt.host_memory
		       ? cu_host->fail(ENOTSUP,
				       "cuda:%u: with memory=host buffers cannot be "
				       "exported or imported",
				       dev->index)
		       : cu_host->fail(ENOTSUP,
				       "cuda:%u: the driver or the device cannot export "
				       "memory as a file descriptor",
				       dev->index);
}

/* The handle stays the caller's. */
static int map(struct cu_device *dev, struct cu_mem *mem, uint64_t memory)
{
	struct cu_range *range = mem->part->range;
	int unseen = 0;
	int err = range ? 0 : cu_range_make(dev, mem->bytes, &mem->range);

	if (err)
		return err;
	err = cu_place_take(dev, range ? range : mem->range, mem->bytes, memory,
			    &mem->place, &mem->address);
	if (err)
		cu_give_back(dev, CU_KIND_RANGE, mem->range, &unseen);
	return err;
}

static uint64_t whole_granules(const struct cu_device *dev, uint64_t bytes)
{
	return (bytes + dev->granule - 1) / dev->granule * dev->granule;
}

int cu_share_make(struct cu_device *dev, struct cu_mem *mem)
{
	uint64_t memory;
	int unseen = 0, err = check(dev, mem->bytes);

	if (err)
		return err;
	err = cu_memory_create(dev, whole_granules(dev, mem->bytes), true, &memory);
	if (err)
		return err;
	err = map(dev, mem, memory);
	cu_give_back_address(dev, CU_KIND_PHYSICAL, memory, &unseen);
	return err;
}

/* A descriptor may be anything, and the driver's manual does not say which error that is:
 * only an error that other calls have, too, is one of the device. */
static int refuse(struct cu_device *dev, uint32_t r, int fd)
{
	if (r == CUR_OUT_OF_MEMORY || (cu_sticky(r) && r != CUR_UNKNOWN))
		return cu_failed(dev, r, "cuMemImportFromShareableHandle");
	return cu_host->fail(EINVAL,
			     "cuda:%u: cuMemImportFromShareableHandle: %s (%u): "
			     "descriptor %d is not memory that this device can import: "
			     "hal_buffer_export of cuda",
			     dev->index, cu_result_name(r), r, fd);
}

int cu_share_import(struct cu_device *dev, struct cu_mem *mem, int fd)
{
	int unseen = 0, err = check(dev, mem->bytes);
	uint64_t memory;
	uint32_t r;

	if (err)
		return err;
	/* NOLINTNEXTLINE(performance-no-int-to-ptr): the descriptor itself */
	r = cu.cuMemImportFromShareableHandle(&memory, (void *)(uintptr_t)fd,
					      CU_HANDLE_FD);
	if (r)
		return refuse(dev, r, fd);
	err = map(dev, mem, memory);
	cu_give_back_address(dev, CU_KIND_PHYSICAL, memory, &unseen);
	return err;
}

void cu_share_leave(struct cu_device *dev, const struct cu_mem *mem, int *err)
{
	cu_place_leave(dev, &mem->place, err);
	cu_give_back(dev, CU_KIND_RANGE, mem->range, err);
}

static int export_memory(struct cu_device *dev, const struct cu_mem *mem, int *fd)
{
	int unseen = 0, made = -1, err;
	uint64_t memory;

	/* NOLINTBEGIN(performance-no-int-to-ptr): the device's */
	err = CU(dev, cuMemRetainAllocationHandle, &memory,
		 (void *)(uintptr_t)mem->address);
	/* NOLINTEND(performance-no-int-to-ptr) */
	if (err)
		return err;
	err = CU(dev, cuMemExportToShareableHandle, &made, memory, CU_HANDLE_FD, 0);
	cu_give_back_address(dev, CU_KIND_PHYSICAL, memory, &unseen);
	if (!err)
		*fd = made;
	return err;
}

int cu_mem_export(void *device, void *memory, int *fd)
{
	struct cu_device *dev = device;
	uint32_t mode;
	int err = cu_push(dev, &mode);

	if (err)
		return err;
	err = export_memory(dev, memory, fd);
	cu_pop(mode);
	return err;
}
