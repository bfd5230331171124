/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of the software device: granules of 4096 bytes, granule g on channel g % colors.
 * A buffer takes granules of the channels it may use, in turn, and sees them side by side
 * as through a page table; so all that is left to keep of a granule is its channel.
 */
#define _GNU_SOURCE
#include "internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

void ref_memory_init(struct ref_device *dev)
{
	uint64_t granules = dev->opt.memory / REF_GRANULE;
	uint32_t n = ref_colors(dev), i;

	for (i = 0; i < n; i++)
		dev->free_granules[i] = granules / n + (i < granules % n);
	dev->next_address = UINT64_C(0x100000);
}

static uint64_t free_of(const struct ref_device *dev, uint64_t mask)
{
	uint64_t sum = 0;
	uint32_t i;

	for (i = 0; i < ref_colors(dev); i++)
		if (mask >> i & 1)
			sum += dev->free_granules[i];
	return sum;
}

uint64_t ref_memory_free(const struct ref_device *dev)
{
	return free_of(dev, UINT64_MAX) * REF_GRANULE;
}

/* Spreads the granules evenly over the channels of mask, as far as each has any. */
static void take_granules(struct ref_device *dev, struct ref_mem *mem, uint64_t granules,
			  uint64_t mask)
{
	uint32_t n = ref_colors(dev), i;

	while (granules) {
		uint64_t open = 0, share;

		for (i = 0; i < n; i++)
			if ((mask >> i & 1) && dev->free_granules[i])
				open++;
		if (!open)
			return; /* the caller has counted: there are enough */
		share = granules / open;
		for (i = 0; i < n && granules; i++) {
			uint32_t c = (dev->next_color + i) % n;
			uint64_t take = share ? share : 1;

			if (!(mask >> c & 1) || !dev->free_granules[c])
				continue;
			if (take > dev->free_granules[c])
				take = dev->free_granules[c];
			dev->free_granules[c] -= take;
			mem->granules[c] += take;
			granules -= take;
		}
		dev->next_color = (dev->next_color + 1) % n;
	}
}

int ref_mem_alloc(void *device, void *partition, uint64_t bytes, uint64_t color_mask,
		  uint32_t flags, void **out)
{
	struct ref_device *dev = device;
	struct ref_partition *part = partition;
	uint64_t mask = dev->opt.colors ? color_mask : 1;
	uint64_t granules = bytes / REF_GRANULE + (bytes % REF_GRANULE != 0);
	struct ref_mem *mem;
	int err;

	if (ref_injected(dev, HAL_REF_OP_MEM_ALLOC, &err))
		return ref_host->fail(err, "ref: mem_alloc: injected");
	if ((flags & HAL_BUFFER_MAPPABLE) && !dev->opt.map)
		return ref_host->fail(ENOTSUP, "ref: map=no: buffers cannot be mapped");
	if (granules > free_of(dev, mask))
		return ref_host->fail(ENOSPC,
				      "ref: %" PRIu64 " bytes, %" PRIu64
				      " are left in colours 0x%" PRIx64,
				      bytes, free_of(dev, mask) * REF_GRANULE, mask);
	mem = calloc(1, sizeof(*mem));
	if (!mem)
		return ref_host->fail(ENOMEM, "ref: no memory for a buffer");
	mem->data = calloc(1, bytes ? bytes : 1);
	if (!mem->data) {
		free(mem);
		return ref_host->fail(ENOMEM, "ref: no host memory for %" PRIu64 " bytes",
				      bytes);
	}
	mem->part = part;
	mem->bytes = bytes;
	/* A granule that belongs to nobody lies between two buffers. */
	mem->address = dev->next_address;
	dev->next_address += (granules + 1) * REF_GRANULE;
	take_granules(dev, mem, granules, mask);
	part->buffers++;
	*out = mem;
	return 0;
}

int ref_mem_free(void *device, void *memory)
{
	struct ref_device *dev = device;
	struct ref_mem *mem = memory;
	uint32_t i;

	for (i = 0; i < ref_colors(dev); i++)
		dev->free_granules[i] += mem->granules[i];
	mem->part->buffers--;
	free(mem->data);
	free(mem);
	return 0;
}

int ref_mem_write(void *device, void *memory, uint64_t offset, const void *data,
		  uint64_t bytes)
{
	struct ref_mem *mem = memory;
	int err;

	if (ref_injected(device, HAL_REF_OP_MEM_WRITE, &err))
		return ref_host->fail(err, "ref: mem_write: injected");
	memcpy(mem->data + offset, data, bytes);
	return 0;
}

int ref_mem_read(void *device, void *memory, uint64_t offset, void *data, uint64_t bytes)
{
	const struct ref_mem *mem = memory;
	int err;

	if (ref_injected(device, HAL_REF_OP_MEM_READ, &err))
		return ref_host->fail(err, "ref: mem_read: injected");
	memcpy(data, mem->data + offset, bytes);
	return 0;
}

int ref_mem_map(void *device, void *memory, void **address)
{
	const struct ref_device *dev = device;
	const struct ref_mem *mem = memory;
	int err;

	if (ref_injected(device, HAL_REF_OP_MEM_MAP, &err))
		return ref_host->fail(err, "ref: mem_map: injected");
	if (!dev->opt.map)
		return ref_host->fail(ENOTSUP, "ref: map=no: buffers cannot be mapped");
	*address = mem->data;
	return 0;
}

int ref_mem_unmap(void *device, void *memory)
{
	(void)device;
	(void)memory;
	return 0;
}
