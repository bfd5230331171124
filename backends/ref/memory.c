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
#include <sys/mman.h>
#include <unistd.h>

#include "backends/memfd/memfd.h"

/* Of a device without colours. */
static const struct hal_bk_colors one_color = {.mask = 1};

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

/* Granule i of mem has another place in the other placement: those are spread evenly. */
static bool has_twin(const struct ref_mem *mem, uint64_t i)
{
	return (i + 1) * mem->twin_count / mem->granule_count !=
	       i * mem->twin_count / mem->granule_count;
}

/* Bytes of granule i of mem. */
static uint64_t granule_bytes(const struct ref_mem *mem, uint64_t i)
{
	uint64_t left = mem->bytes - i * REF_GRANULE;

	return left < REF_GRANULE ? left : REF_GRANULE;
}

/* The two placements change places. */
static void switch_twins(struct ref_mem *mem)
{
	uint64_t t = 0;

	for (uint64_t i = 0; i < mem->granule_count; i++) {
		uint32_t granule = mem->granules[i];
		uint8_t *at = mem->data + i * REF_GRANULE, held[REF_GRANULE];
		uint64_t bytes = granule_bytes(mem, i);

		if (!has_twin(mem, i))
			continue;
		mem->granules[i] = mem->granules[mem->granule_count + t];
		mem->granules[mem->granule_count + t] = granule;
		memcpy(held, at, bytes);
		memcpy(at, mem->twins + t * REF_GRANULE, bytes);
		memcpy(mem->twins + t * REF_GRANULE, held, bytes);
		t++;
	}
}

/* What the host writes is in both placements. */
static void write_twins(struct ref_mem *mem, uint64_t offset, const uint8_t *data,
			uint64_t bytes)
{
	uint64_t t = 0;

	for (uint64_t i = 0; i < mem->granule_count; i++) {
		uint64_t from = i * REF_GRANULE, to = from + granule_bytes(mem, i);

		if (!has_twin(mem, i))
			continue;
		if (from < offset)
			from = offset;
		if (to > offset + bytes)
			to = offset + bytes;
		if (from < to)
			memcpy(mem->twins + t * REF_GRANULE + from % REF_GRANULE,
			       data + (from - offset), to - from);
		t++;
	}
}

/* Both placements, the narrow one in force.  What stays and what does not are each spread
 * over colors, so each placement is spread over its own. */
static int take_both(struct ref_device *dev, const struct hal_bk_colors *colors,
		     struct ref_mem *mem)
{
	const struct hal_bk_partition_desc *d = &mem->part->desc;
	const struct hal_bk_colors further = {.mask = d->wide_mask & ~d->color_mask};
	uint64_t all = mem->granule_count, n = mem->twin_count, stay = 0, go = all - n;
	uint32_t *taken = calloc(all, sizeof(*taken));
	int err;

	if (!taken)
		return ref_host->fail(ENOMEM, "ref: no host memory for a buffer");
	err = ref_host->granules_take(dev->free, colors, go, taken);
	if (err)
		goto out;
	err = ref_host->granules_take(dev->free, colors, n, taken + go);
	if (err) {
		ref_host->granules_give(dev->free, taken, go);
		goto out;
	}
	err = ref_host->granules_take(dev->free, &further, n, mem->granules + all);
	if (err) {
		ref_host->granules_give(dev->free, taken, all);
		goto out;
	}
	for (uint64_t i = 0; i < all; i++)
		mem->granules[i] = taken[has_twin(mem, i) ? go++ : stay++];
out:
	free(taken);
	return err;
}

static int take_granules(struct ref_device *dev, const struct hal_bk_colors *colors,
			 struct ref_mem *mem)
{
	return mem->twin_count
		       ? take_both(dev, colors, mem)
		       : ref_host->granules_take(dev->free, colors, mem->granule_count,
						 mem->granules);
}

/* Free the bytes of mem, wherever they come from. */
static void release_data(struct ref_mem *mem)
{
	if (mem->shared)
		(void)munmap(mem->data, memfd_size(mem->bytes));
	else if (!mem->foreign)
		free(mem->data);
	if (mem->fd >= 0)
		(void)close(mem->fd);
}

/* Map memory file fd as the bytes of mem. */
static int map_file(struct ref_mem *mem, int fd)
{
	void *data = mmap(NULL, memfd_size(mem->bytes), PROT_READ | PROT_WRITE,
			  MAP_SHARED, fd, 0);

	if (data == MAP_FAILED)
		return ref_host->fail(errno, "ref: mmap of %llu bytes: %s",
				      (unsigned long long)mem->bytes,
				      strerrordesc_np(errno));
	mem->data = data;
	mem->shared = true;
	return 0;
}

/* Get the bytes of a new buffer. */
static int allocate_data(struct ref_mem *mem, uint32_t flags)
{
	if (flags & HAL_BUFFER_EXPORTABLE) {
		int err = memfd_make(ref_host, "ref", mem->bytes, &mem->fd);

		return err ? err : map_file(mem, mem->fd);
	}
	mem->data = calloc(1, mem->bytes ? mem->bytes : 1);
	mem->twins = mem->twin_count ? calloc(mem->twin_count, REF_GRANULE) : NULL;
	if (mem->data && (mem->twins || !mem->twin_count))
		return 0;
	return ref_host->fail(ENOMEM, "ref: no host memory for %llu bytes",
			      (unsigned long long)mem->bytes);
}

/* A buffer that could not be had. */
static int dropped(struct ref_mem *mem, int err)
{
	free(mem->twins);
	release_data(mem);
	free(mem);
	return err;
}

/* Make a buffer without its bytes; twins: the granules of its other placement. */
static int make(struct ref_device *dev, struct ref_partition *part, uint64_t bytes,
		uint64_t twins, struct ref_mem **out)
{
	uint64_t granules = bytes / REF_GRANULE + (bytes % REF_GRANULE != 0);
	struct ref_mem *mem;

	if (granules > dev->opt.memory / REF_GRANULE)
		return ref_host->fail(
			ENOSPC,
			"ref: %llu bytes of device memory requested; the device has %llu",
			(unsigned long long)bytes, (unsigned long long)dev->opt.memory);
	mem = calloc(1, sizeof(*mem) + (granules + twins) * sizeof(mem->granules[0]));
	if (!mem)
		return ref_host->fail(ENOMEM, "ref: no host memory for a buffer");
	mem->part = part;
	mem->bytes = bytes;
	mem->fd = -1;
	mem->granule_count = granules;
	mem->twin_count = twins;
	*out = mem;
	return 0;
}

/* Place a buffer that has its bytes. */
static int enter(struct ref_device *dev, struct ref_mem *mem,
		 const struct hal_bk_colors *colors, void **out)
{
	struct ref_partition *part = mem->part;
	int err = take_granules(dev, colors, mem);

	if (err)
		return dropped(mem, err);
	/* A granule that belongs to nobody lies between two buffers. */
	mem->address = dev->next_address;
	dev->next_address += (mem->granule_count + 1) * REF_GRANULE;
	part->buffers++;
	if (mem->twins) {
		mem->next_bimodal = part->bimodal;
		part->bimodal = mem;
		if (part->wide)
			switch_twins(mem);
	}
	*out = mem;
	return 0;
}

int ref_mem_alloc(void *device, void *partition, uint64_t bytes,
		  const struct hal_bk_colors *colors, uint32_t flags, void **out)
{
	struct ref_device *dev = device;
	struct ref_partition *part = partition;
	uint64_t granules = bytes / REF_GRANULE + (bytes % REF_GRANULE != 0), twins = 0;
	struct ref_mem *mem;
	int err;

	if (ref_injected(dev, HAL_REF_OP_MEM_ALLOC, &err))
		return ref_host->fail(err, "ref: mem_alloc: injected error");
	if ((flags & HAL_BUFFER_MAPPABLE) && !dev->opt.map)
		return ref_host->fail(ENOTSUP, "ref: map=no: buffers cannot be mapped");
	if (flags & HAL_BUFFER_BIMODAL)
		twins = hal_bk_twins(granules, colors->mask,
				     part->desc.wide_mask & ~part->desc.color_mask);
	err = make(dev, part, bytes, twins, &mem);
	if (err)
		return err;
	/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): make sets it */
	mem->host = (flags & HAL_BK_MEM_HOST) != 0;
	err = allocate_data(mem, flags);
	if (err)
		return dropped(mem, err);
	return enter(dev, mem, colors ? colors : &one_color, out);
}

/* The channels of memory that somebody else has allocated. */
static struct hal_bk_colors own_colors(const struct ref_partition *part)
{
	return part->desc.color_mask != 0
		       ? (struct hal_bk_colors){.mask = part->desc.color_mask}
		       : one_color;
}

int ref_mem_register(void *device, void *partition, void *address, uint64_t bytes,
		     void **out)
{
	const struct hal_bk_colors own = own_colors(partition);
	struct ref_mem *mem;
	int err;

	if (ref_injected(device, HAL_REF_OP_MEM_ALLOC, &err))
		return ref_host->fail(err, "ref: mem_register: injected error");
	err = make(device, partition, bytes, 0, &mem);
	if (err)
		return err;
	/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): make sets it */
	mem->host = true;
	mem->data = address;
	mem->foreign = true;
	return enter(device, mem, &own, out);
}

int ref_mem_export(void *device, void *memory, int *fd)
{
	const struct ref_mem *mem = memory;
	int err;

	if (ref_injected(device, HAL_REF_OP_MEM_EXPORT, &err))
		return ref_host->fail(err, "ref: mem_export: injected error");
	*fd = memfd_copy(ref_host, "ref", mem->fd);
	return *fd < 0 ? *fd : 0;
}

int ref_mem_import(void *device, void *partition, int fd, uint64_t bytes, uint32_t flags,
		   void **out)
{
	const struct hal_bk_colors own = own_colors(partition);
	const struct ref_device *dev = device;
	struct ref_mem *mem;
	int err;

	if (ref_injected(device, HAL_REF_OP_MEM_ALLOC, &err))
		return ref_host->fail(err, "ref: mem_import: injected error");
	if ((flags & HAL_BUFFER_MAPPABLE) && !dev->opt.map)
		return ref_host->fail(ENOTSUP, "ref: map=no: buffers cannot be mapped");
	err = memfd_check(ref_host, "ref", fd, bytes);
	if (!err)
		err = make(device, partition, bytes, 0, &mem);
	if (err)
		return err;
	/* NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage): make sets it */
	err = map_file(mem, fd);
	return err ? dropped(mem, err) : enter(device, mem, &own, out);
}

int ref_mem_free(void *device, void *memory)
{
	struct ref_device *dev = device;
	struct ref_mem *mem = memory;

	if (mem->data) /* it is not out */
		ref_host->granules_give(dev->free, mem->granules,
					mem->granule_count + mem->twin_count);
	if (mem->twins) {
		struct ref_mem **at = &mem->part->bimodal;

		while (*at != mem)
			at = &(*at)->next_bimodal;
		*at = mem->next_bimodal;
	}
	mem->part->buffers--;
	free(mem->twins);
	release_data(mem);
	free(mem);
	return 0;
}

int ref_mem_write(void *device, void *memory, uint64_t offset, const void *data,
		  uint64_t bytes)
{
	struct ref_mem *mem = memory;
	int err;

	if (ref_injected(device, HAL_REF_OP_MEM_WRITE, &err))
		return ref_host->fail(err, "ref: mem_write: injected error");
	memcpy(mem->data + offset, data, bytes);
	if (mem->twins)
		write_twins(mem, offset, data, bytes);
	return 0;
}

int ref_mem_read(void *device, void *memory, uint64_t offset, void *data, uint64_t bytes)
{
	const struct ref_mem *mem = memory;
	int err;

	if (ref_injected(device, HAL_REF_OP_MEM_READ, &err))
		return ref_host->fail(err, "ref: mem_read: injected error");
	memcpy(data, mem->data + offset, bytes);
	return 0;
}

int ref_mem_map(void *device, void *memory, void **address)
{
	const struct ref_device *dev = device;
	const struct ref_mem *mem = memory;
	int err;

	if (ref_injected(device, HAL_REF_OP_MEM_MAP, &err))
		return ref_host->fail(err, "ref: mem_map: injected error");
	if (!dev->opt.map && !mem->host)
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
		return ref_host->fail(err, "ref: mem_swap: injected error");
	a->data = b->data;
	b->data = data;
	for (uint64_t i = 0; i < a->granule_count; i++) {
		uint32_t granule = a->granules[i];

		a->granules[i] = b->granules[i];
		b->granules[i] = granule;
	}
	return 0;
}

int ref_mem_out(void *device, void *memory)
{
	struct ref_device *dev = device;
	struct ref_mem *mem = memory;
	int err;

	if (ref_injected(dev, HAL_REF_OP_MEM_OUT, &err))
		return ref_host->fail(err, "ref: mem_out: injected error");
	ref_host->granules_give(dev->free, mem->granules, mem->granule_count);
	free(mem->data);
	mem->data = NULL;
	return 0;
}

int ref_mem_in(void *device, void *memory, const struct hal_bk_colors *colors)
{
	struct ref_device *dev = device;
	struct ref_mem *mem = memory;
	uint8_t *data;
	int err;

	if (ref_injected(dev, HAL_REF_OP_MEM_IN, &err))
		return ref_host->fail(err, "ref: mem_in: injected error");
	data = calloc(1, mem->bytes);
	err = data ? take_granules(dev, colors ? colors : &one_color, mem)
		   : ref_host->fail(ENOMEM, "ref: no host memory for %llu bytes",
				    (unsigned long long)mem->bytes);
	if (err)
		free(data);
	else
		mem->data = data;
	return err;
}

int ref_partition_widen(void *device, void *partition, uint32_t wide)
{
	struct ref_partition *part = partition;
	int err;

	if (ref_injected(device, HAL_REF_OP_WIDEN, &err))
		return ref_host->fail(err, "ref: partition_widen: injected error");
	part->wide = wide != 0;
	for (struct ref_mem *mem = part->bimodal; mem; mem = mem->next_bimodal)
		switch_twins(mem);
	return 0;
}
