/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of the software device: granules of 4096 bytes, granule g on channel g % colors.
 * A buffer sees its granules side by side, as through a page table; so all that is left
 * of them is where they lie, and its bytes are one piece of the host's memory.
 */
#define _GNU_SOURCE
#include "internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int ref_memory_open(struct ref_device *dev)
{
	uint32_t n = ref_colors(dev);
	const struct hal_bk_color_map map = {
		.granule_bytes = REF_GRANULE,
		.colors = n,
		.granules = dev->opt.memory / REF_GRANULE,
		.q = n > 1 ? n : 0,
		.digits = 1,
		.weight = {1},
	};

	dev->next_address = UINT64_C(0x100000);
	return ref_host->granules_open(&map, &dev->free);
}

void ref_memory_close(struct ref_device *dev)
{
	ref_host->granules_close(dev->free);
}

uint64_t ref_memory_free(const struct ref_device *dev, uint64_t colors)
{
	return ref_host->granules_left(dev->free, colors) * REF_GRANULE;
}

int ref_mem_alloc(void *device, void *partition, uint64_t bytes,
		  const struct hal_bk_colors *colors, uint32_t flags, void **out)
{
	static const struct hal_bk_colors one = {.mask = 1};
	struct ref_device *dev = device;
	struct ref_partition *part = partition;
	uint64_t granules = bytes / REF_GRANULE + (bytes % REF_GRANULE != 0);
	struct ref_mem *mem;
	int err;

	if (ref_injected(dev, HAL_REF_OP_MEM_ALLOC, &err))
		return ref_host->fail(err, "ref: mem_alloc: injected");
	if ((flags & HAL_BUFFER_MAPPABLE) && !dev->opt.map)
		return ref_host->fail(ENOTSUP, "ref: map=no: buffers cannot be mapped");
	if (granules > dev->opt.memory / REF_GRANULE)
		return ref_host->fail(ENOSPC, "ref: %llu bytes of a memory of %llu",
				      (unsigned long long)bytes,
				      (unsigned long long)dev->opt.memory);
	mem = malloc(sizeof(*mem) + granules * sizeof(mem->granules[0]));
	if (!mem)
		return ref_host->fail(ENOMEM, "ref: no memory for a buffer");
	mem->data = calloc(1, bytes ? bytes : 1);
	err = mem->data ? ref_host->granules_take(dev->free, colors ? colors : &one,
						  granules, mem->granules)
			: ref_host->fail(ENOMEM, "ref: no host memory for %llu bytes",
					 (unsigned long long)bytes);
	if (err) {
		free(mem->data);
		free(mem);
		return err;
	}
	mem->part = part;
	mem->bytes = bytes;
	mem->granule_count = granules;
	/* A granule that belongs to nobody lies between two buffers. */
	mem->address = dev->next_address;
	dev->next_address += (granules + 1) * REF_GRANULE;
	part->buffers++;
	*out = mem;
	return 0;
}

int ref_mem_free(void *device, void *memory)
{
	struct ref_device *dev = device;
	struct ref_mem *mem = memory;

	ref_host->granules_give(dev->free, mem->granules, mem->granule_count);
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

int ref_mem_swap(void *device, void *memory, void *other)
{
	struct ref_mem *a = memory, *b = other;
	uint8_t *data = a->data;
	int err;

	if (ref_injected(device, HAL_REF_OP_MEM_SWAP, &err))
		return ref_host->fail(err, "ref: mem_swap: injected");
	a->data = b->data;
	b->data = data;
	for (uint64_t i = 0; i < a->granule_count; i++) {
		uint32_t granule = a->granules[i];

		a->granules[i] = b->granules[i];
		b->granules[i] = granule;
	}
	return 0;
}
