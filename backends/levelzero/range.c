/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buffers that may be evicted: device memory that is mapped at reserved addresses.  An
 * evicted buffer keeps its addresses, as kernels may have stored some, and has no memory.
 *
 * Drivers differ.  Some lack the calls; releases of Intel's driver have reserved
 * addresses and had no memory to map there.  So it is tried out when the device is
 * opened.
 */
#define _GNU_SOURCE
#include "internal.h"

#include <errno.h>
#include <inttypes.h>

bool lz_range_calls(const struct lz_options *o)
{
	return o->placement == LZ_MEM_DEVICE && lz.zeVirtualMemReserve &&
	       lz.zeVirtualMemFree && lz.zeVirtualMemQueryPageSize &&
	       lz.zeVirtualMemMap && lz.zeVirtualMemUnmap && lz.zePhysicalMemCreate &&
	       lz.zePhysicalMemDestroy;
}

int lz_range_size(struct lz_device *dev, void *home, uint64_t bytes, struct lz_range *r)
{
	size_t page = 0;
	int err = LZ(zeVirtualMemQueryPageSize, dev->context, home, bytes, &page);

	if (err)
		return err;
	if (!page || bytes > UINT64_MAX - page)
		return lz_host->fail(ENOSPC,
				     "levelzero:%u: %" PRIu64
				     " bytes do not fit into pages of %zu bytes",
				     dev->index, bytes, page);
	r->bytes = (bytes + page - 1) / page * page;
	return 0;
}

/* Give back what is mapped at r, and its memory. */
static void drop_memory(struct lz_device *dev, const struct lz_range *r, int *err)
{
	lz_drop_pages(dev, LZ_KIND_MAPPING, r, err);
	lz_drop(dev, LZ_KIND_PHYSICAL, r->physical, r->group, err);
}

/* Map new memory of home at r. */
static int fill(struct lz_device *dev, void *home, struct lz_range *r)
{
	struct ze_physical_mem_desc d = {.stype = LZ_STYPE_PHYSICAL_MEM_DESC,
					 .size = r->bytes};
	int err;

	/* What a command that ended late has used may be free by now. */
	(void)lz_empty_trash(dev);
	err = LZ_MAKE(dev, LZ_KIND_PHYSICAL, zePhysicalMemCreate, dev->context, home, &d,
		      &r->physical);
	if (err) {
		r->physical = NULL;
		return err;
	}
	err = LZ(zeVirtualMemMap, dev->context, r->address, r->bytes, r->physical, 0,
		 LZ_PAGES_READWRITE);
	if (err) {
		/* A driver may have mapped it before it failed. */
		drop_memory(dev, r, &err);
		r->physical = NULL;
	}
	return err;
}

/* Reserve addresses for r where the driver likes.  The validation layer of loader 1.8
 * wants to be told a place, which the driver need not keep to. */
static int reserve(struct lz_device *dev, struct lz_range *r)
{
	/* NOLINTNEXTLINE(performance-no-int-to-ptr): an address of the device's */
	const void *wish = (const void *)(uintptr_t)(UINT64_C(1) << 40);
	uint32_t result =
		lz.zeVirtualMemReserve(dev->context, NULL, r->bytes, &r->address);

	if (result == LZ_ERROR_INVALID_NULL_POINTER)
		result =
			lz.zeVirtualMemReserve(dev->context, wish, r->bytes, &r->address);
	return lz_check(result, "zeVirtualMemReserve");
}

int lz_range_make(struct lz_device *dev, void *home, uint64_t part, struct lz_range *r)
{
	int err = reserve(dev, r);

	if (err)
		return err;
	r->group = (struct lz_group){.id = lz_id(dev), .part = part};
	err = fill(dev, home, r);
	if (err)
		lz_drop_pages(dev, LZ_KIND_RESERVATION, r, &err);
	return err;
}

void lz_range_drop(struct lz_device *dev, const struct lz_range *r, int *err)
{
	if (r->physical)
		drop_memory(dev, r, err);
	lz_drop_pages(dev, LZ_KIND_RESERVATION, r, err);
}

int lz_range_open(struct lz_device *dev)
{
	struct lz_range r = {0};
	int err;

	if (!lz_range_calls(&dev->opt))
		return 0;
	err = lz_range_size(dev, dev->shape.root, 1, &r);
	if (!err)
		err = lz_range_make(dev, dev->shape.root, 0, &r);
	if (!err)
		lz_range_drop(dev, &r, &err);
	dev->evicts = !err;
	return err == -EIO ? err : 0;
}

int lz_mem_out(void *device, void *memory)
{
	struct lz_device *dev = device;
	struct lz_mem *mem = memory;
	struct lz_range *r = &mem->range;
	int err;

	if (lz_held(dev, r->group))
		return lz_host->fail(EBUSY,
				     "levelzero:%u: a command that has not ended may "
				     "still use the buffer",
				     dev->index);
	err = LZ(zeVirtualMemUnmap, dev->context, r->address, r->bytes);
	if (err)
		return err;
	/* Its bytes are with the host: what does not go now is tried again. */
	(void)lz_discard(dev, LZ_KIND_PHYSICAL, r->physical, r->group);
	r->physical = NULL;
	stream_bytes_give(&dev->used, r->bytes);
	return 0;
}

int lz_mem_in(void *device, void *memory, const struct hal_bk_colors *colors)
{
	struct lz_device *dev = device;
	struct lz_mem *mem = memory;
	struct lz_range *r = &mem->range;
	const struct lz_group own = {.id = r->group.id};
	int err;

	(void)colors; /* it has none */
	/* What is unmapped later must not be what is mapped now. */
	if (lz_held(dev, own))
		return lz_host->fail(EBUSY,
				     "levelzero:%u: the driver has not given back yet "
				     "what the buffer had",
				     dev->index);
	err = lz_take_bytes(dev, r->bytes);
	if (err)
		return err;
	err = fill(dev, mem->part->home, r);
	if (err)
		stream_bytes_give(&dev->used, r->bytes);
	else
		mem->era = lz_era(dev);
	return err;
}
