/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of a card: a buffer is in one bank, and banks are the colours.  The host reaches
 * none of it: XRT copies between the card and memory of the host's, which each buffer
 * has.
 */
#define _GNU_SOURCE
#include "internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/stream/region.h"

static uint64_t left_in(const struct fp_device *dev, uint32_t bank)
{
	return dev->base->x.banks[bank].bytes - atomic_load(&dev->bank_used[bank]);
}

bool fp_bank_take(struct fp_device *dev, uint32_t bank, uint64_t bytes)
{
	const uint64_t all = dev->base->x.banks[bank].bytes;
	unsigned long long used = atomic_load(&dev->bank_used[bank]);

	do {
		if (bytes > all - used)
			return false;
	} while (!atomic_compare_exchange_weak(&dev->bank_used[bank], &used,
					       used + bytes));
	return true;
}

void fp_bank_give(struct fp_device *dev, uint32_t bank, uint64_t bytes)
{
	atomic_fetch_sub(&dev->bank_used[bank], bytes);
}

int fp_no_room(const struct fp_device *dev, uint64_t bytes, uint64_t mask)
{
	char text[256] = "";
	size_t at = 0;
	uint32_t i;

	for (i = 0; i < dev->base->x.bank_count && at < sizeof(text) - 48; i++)
		if (mask >> i & 1)
			at += (size_t)snprintf(text + at, sizeof(text) - at,
					       "%s%" PRIu64 " in %s", at ? ", " : "",
					       left_in(dev, i),
					       dev->base->x.banks[i].tag);
	return fp_host->fail(ENOSPC,
			     "fpga: no bank has %" PRIu64 " bytes free: free are %s",
			     bytes, text);
}

/* Return the bank of the mask with the most free bytes, so that buffers spread over the
 * banks; FP_BANKS_MAX: none has enough. */
static uint32_t best_bank(const struct fp_device *dev, uint64_t bytes, uint64_t mask)
{
	uint64_t left, most = 0;
	uint32_t i, best = FP_BANKS_MAX;

	for (i = 0; i < dev->base->x.bank_count; i++) {
		left = left_in(dev, i);
		if (!(mask >> i & 1) || left < bytes ||
		    (best != FP_BANKS_MAX && left <= most))
			continue;
		most = left;
		best = i;
	}
	return best;
}

/* Choose a bank of the mask and count bytes of it as used. */
static int choose_bank(struct fp_device *dev, uint64_t bytes, uint64_t mask,
		       uint32_t *bank)
{
	/* Another thread may take from the bank that was chosen. */
	do
		*bank = best_bank(dev, bytes, mask);
	while (*bank < FP_BANKS_MAX && !fp_bank_take(dev, *bank, bytes));
	return *bank < FP_BANKS_MAX ? 0 : fp_no_room(dev, bytes, mask);
}

static int place(struct fp_device *dev, struct fp_mem *mem, uint64_t flags)
{
	char what[96];
	int err;

	snprintf(what, sizeof(what), "%" PRIu64 " bytes in bank %s", mem->bytes,
		 dev->base->x.banks[mem->bank].tag);
	mem->bo = XRT(xrtBOAlloc, dev->handle, mem->bytes, flags, mem->bank);
	if (!mem->bo)
		return fp_failed(dev, "xrtBOAlloc", what);
	mem->host = XRT(xrtBOMap, mem->bo);
	if (mem->host)
		return 0;
	err = fp_failed(dev, "xrtBOMap", what);
	if (xrt.xrtBOFree(mem->bo))
		(void)xrt.xrtBOFree(mem->bo);
	return err;
}

/* The banks that a buffer may be in: of a ratio those that have a part. */
static int banks_of(const struct hal_bk_colors *colors, uint64_t *mask)
{
	uint32_t i;

	*mask = colors->mask;
	for (i = 0; colors->weights && i < FP_BANKS_MAX; i++)
		if ((*mask >> i & 1) && !colors->weights[i])
			*mask &= ~(UINT64_C(1) << i);
	if (!colors->weights || !(*mask & (*mask - 1)))
		return 0;
	return fp_host->fail(ENOTSUP, "fpga: a buffer lies in one bank: color weights "
				      "across several banks are not supported");
}

/* Make a buffer of host memory: the mover copies between it and the memory of the host's
 * that each buffer on the card has.  It is in no bank. */
static int make_host(struct fp_partition *part, uint8_t *address, uint64_t bytes,
		     bool owned, void **out)
{
	struct fp_mem *mem = calloc(1, sizeof(*mem));

	if (!mem || !address) {
		free(mem);
		return fp_host->fail(ENOMEM, "fpga: no host memory for %" PRIu64 " bytes",
				     bytes);
	}
	mem->part = part;
	mem->host = address;
	mem->bytes = bytes;
	mem->owned = owned;
	atomic_fetch_add(&part->buffers, 1);
	*out = mem;
	return 0;
}

int fp_mem_register(void *device, void *partition, void *address, uint64_t bytes,
		    void **out)
{
	const struct fp_device *dev = device;
	int err = stream_memory_check(fp_host, "fpga", dev->index, address, bytes);

	return err ? err : make_host(partition, address, bytes, false, out);
}

static int alloc_host(struct fp_partition *part, uint64_t bytes, void **out)
{
	uint8_t *p = calloc(1, bytes);
	int err = make_host(part, p, bytes, true, out);

	if (err)
		free(p);
	return err; /* NOLINT(clang-analyzer-unix.Malloc): *out has it */
}

int fp_not_mapped(void)
{
	return fp_host->fail(ENOTSUP, "fpga: buffers cannot be mapped: the host cannot "
				      "access the card's memory");
}

int fp_mem_alloc(void *device, void *partition, uint64_t bytes,
		 const struct hal_bk_colors *colors, uint32_t flags, void **out)
{
	struct fp_device *dev = device;
	const uint64_t kind =
		flags & HAL_BUFFER_EXPORTABLE ? XRT_FLAGS_CACHEABLE : XRT_FLAGS_NONE;
	struct fp_mem *mem;
	uint64_t mask;
	int err;

	if (flags & HAL_BK_MEM_HOST)
		return alloc_host(partition, bytes, out);
	err = banks_of(colors, &mask);
	if (err)
		return err;
	if (flags & HAL_BUFFER_MAPPABLE)
		return fp_not_mapped();
	if (bytes > UINT64_MAX - FP_PAGE)
		return fp_no_room(dev, bytes, mask);
	mem = calloc(1, sizeof(*mem));
	if (!mem)
		return fp_host->fail(ENOMEM, "fpga: no memory for a buffer");
	mem->part = partition;
	/* XRT asks its allocator for whole pages. */
	mem->bytes = (bytes + !bytes + FP_PAGE - 1) / FP_PAGE * FP_PAGE;
	err = choose_bank(dev, mem->bytes, mask, &mem->bank);
	if (!err) {
		err = place(dev, mem, kind);
		if (err)
			fp_bank_give(dev, mem->bank, mem->bytes);
	}
	if (err) {
		free(mem);
		return err;
	}
	atomic_fetch_add(&mem->part->buffers, 1);
	*out = mem;
	return 0;
}

int fp_mem_free(void *device, void *memory)
{
	struct fp_device *dev = device;
	struct fp_mem *mem = memory;
	int err = 0;

	if (mem->owned)
		free(mem->host);
	if (mem->bo && XRT(xrtBOFree, mem->bo)) {
		err = fp_failed(dev, "xrtBOFree", "a buffer");
		(void)xrt.xrtBOFree(mem->bo);
	}
	if (mem->bo)
		fp_bank_give(dev, mem->bank, mem->bytes);
	atomic_fetch_sub(&mem->part->buffers, 1);
	free(mem);
	return atomic_load(&dev->lost) ? 0 : err;
}

int fp_mem_map(void *device, void *memory, void **address)
{
	const struct fp_mem *mem = memory;

	(void)device;
	if (mem->bo)
		return fp_not_mapped();
	*address = mem->host;
	return 0;
}

int fp_mem_unmap(void *device, void *memory)
{
	(void)device;
	(void)memory;
	return 0;
}

/* A launch gives its unit what the buffer has then. */
int fp_mem_swap(void *device, void *memory, void *other)
{
	struct fp_mem *a = memory, *b = other;
	const struct fp_mem held = *a;

	(void)device;
	*a = *b;
	*b = held;
	return 0;
}

static int sync_range(struct fp_device *dev, const struct fp_mem *mem, uint32_t direction,
		      uint64_t offset, uint64_t bytes)
{
	const char *what = direction == XRT_TO_DEVICE ? "a copy to the card"
						      : "a copy from the card";

	if (XRT(xrtBOSync, mem->bo, direction, bytes, offset))
		return fp_failed(dev, "xrtBOSync", what);
	fp_catch_up(dev);
	return 0;
}

int fp_mem_write(void *device, void *memory, uint64_t offset, const void *data,
		 uint64_t bytes)
{
	struct fp_mem *mem = memory;

	memcpy(mem->host + offset, data, bytes);
	return bytes ? sync_range(device, mem, XRT_TO_DEVICE, offset, bytes) : 0;
}

int fp_mem_clear(void *device, void *memory)
{
	struct fp_mem *mem = memory;

	memset(mem->host, 0, mem->bytes);
	return sync_range(device, mem, XRT_TO_DEVICE, 0, mem->bytes);
}

int fp_mem_read(void *device, void *memory, uint64_t offset, void *data, uint64_t bytes)
{
	const struct fp_mem *mem = memory;
	int err = bytes ? sync_range(device, mem, XRT_FROM_DEVICE, offset, bytes) : 0;

	if (!err)
		memcpy(data, mem->host + offset, bytes);
	return err;
}
