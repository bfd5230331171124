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

/* Do as rocm_mem_alloc.  The calling thread means this device. */
static int make(struct rocm_device *dev, void *partition, uint64_t bytes, uint32_t flags,
		void **out)
{
	struct rocm_mem *mem;
	uint64_t foreign = 0;
	int err = 0;

	mem = calloc(1, sizeof(*mem));
	if (!mem)
		return rocm_host->fail(ENOMEM, "rocm: no memory for a buffer");
	mem->bytes = bytes ? bytes : 1;
	mem->part = partition;
	mem->foreign = !(flags & HAL_BUFFER_MAPPABLE) &&
		       stream_offered_memory(&dev->offers, bytes, &foreign);
	if (mem->foreign)
		/* NOLINTNEXTLINE(performance-no-int-to-ptr): as it was offered */
		mem->address = (char *)(uintptr_t)foreign;
	else
		err = place(dev, mem,
			    dev->opt.host_memory || flags & HAL_BUFFER_MAPPABLE);
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

int rocm_mem_free(void *device, void *memory)
{
	struct rocm_device *dev = device;
	struct rocm_mem *mem = memory;
	int err = 0;

	/* Under the real clock the thread of dev->later calls the library. */
	if (dev->opt.virtual_clock && !atomic_load(&dev->base.lost))
		err = rocm_enter(dev);
	if (mem->host)
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
