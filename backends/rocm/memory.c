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

static int find_room(struct rocm_device *dev, struct rocm_mem *mem)
{
	void *p = NULL;
	uint32_t r = hip.hipMalloc(&p, mem->bytes);

	if (r == HIPR_OutOfMemory && dev->later_count && !dev->base.hangs) {
		/* What was freed while something ran, before anybody is refused. */
		rocm_give_back_later(dev, false);
		rocm_catch_up(dev);
		r = hip.hipMalloc(&p, mem->bytes);
	}
	mem->address = p;
	return rocm_check(dev, r, "hipMalloc");
}

static int place(struct rocm_device *dev, struct rocm_mem *mem, bool host)
{
	void *address = NULL;
	int err;

	if (!host)
		return find_room(dev, mem);
	err = rocm_pin(dev, mem->bytes, &mem->host, &address);
	mem->address = address;
	return err;
}

int rocm_mem_alloc(void *device, void *partition, uint64_t bytes,
		   const struct hal_bk_colors *colors, uint32_t flags, void **out)
{
	struct rocm_device *dev = device;
	const uint64_t left = dev->memory_bytes - dev->memory_used;
	void *foreign = flags & HAL_BUFFER_MAPPABLE ? NULL : rocm_take_memory(dev, bytes);
	struct rocm_mem *mem;
	int err;

	(void)colors; /* it has none */
	if (bytes > left && !foreign)
		return rocm_host->fail(
			ENOSPC, "rocm: %" PRIu64 " bytes requested, %" PRIu64 " are free",
			bytes, left);
	err = rocm_enter(dev);
	if (err)
		return err;
	mem = calloc(1, sizeof(*mem));
	if (!mem)
		return rocm_host->fail(ENOMEM, "rocm: no memory for a buffer");
	mem->bytes = bytes ? bytes : 1;
	mem->part = partition;
	mem->foreign = foreign != NULL;
	mem->address = foreign;
	if (!foreign)
		err = place(dev, mem,
			    dev->opt.host_memory || flags & HAL_BUFFER_MAPPABLE);
	if (err) {
		free(mem);
		return err;
	}
	mem->part->base.buffers++;
	dev->memory_used += foreign ? 0 : mem->bytes;
	*out = mem;
	return 0;
}

int rocm_mem_free(void *device, void *memory)
{
	struct rocm_device *dev = device;
	struct rocm_mem *mem = memory;
	int err = 0;

	if (!atomic_load(&dev->base.lost))
		err = rocm_enter(dev);
	if (!mem->foreign) {
		rocm_give_back(dev, mem->host ? ROCM_KIND_HOST : ROCM_KIND_DEVICE,
			       mem->host ? mem->host : (void *)mem->address, &err);
		dev->memory_used -= mem->bytes;
	}
	mem->part->base.buffers--;
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
