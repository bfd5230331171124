/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buffers that other processes and openings of the card have, too, by XRT's export and
 * import of dma-bufs.
 *
 * Descriptors: XRT answers one for each buffer, the same at each call, and closes it with
 * the buffer; so callers get a copy.  An import leaves the caller's descriptor open.
 */
#define _GNU_SOURCE
#include "internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "backends/memfd/memfd.h"

/* XRT's driver that does nothing exports nothing either. */
bool fp_can_share(bool emulated)
{
	return !emulated && xrt.xrtBOExport && xrt.xrtBOImport && xrt.xrtBOSize &&
	       xrt.xrtBOAddress;
}

int fp_mem_export(void *device, void *memory, int *fd)
{
	struct fp_device *dev = device;
	const struct fp_mem *mem = memory;
	int own, err = 0;

	/* XRT makes the descriptor at the first call, without a lock. */
	pthread_mutex_lock(&dev->export_lock);
	own = XRT(xrtBOExport, mem->bo);
	if (own < 0)
		err = fp_failed(dev, "xrtBOExport", "a descriptor of a buffer");
	pthread_mutex_unlock(&dev->export_lock);
	if (err)
		return err;
	own = memfd_copy(fp_host, "fpga", own);
	if (own < 0)
		return own;
	*fd = own;
	return 0;
}

/* Find the bank that has all of a buffer; false: none. */
static bool find_bank(const struct fp_xclbin *x, uint64_t address, uint64_t bytes,
		      uint32_t *bank)
{
	uint32_t i;

	for (i = 0; i < x->bank_count; i++) {
		const struct fp_bank *b = &x->banks[i];

		*bank = i;
		if (address >= b->base && address - b->base < b->bytes &&
		    bytes <= b->bytes - (address - b->base))
			return true;
	}
	return false;
}

/* Find out how long the buffer is and where, and whether it may be there. */
static int inspect(struct fp_device *dev, int fd, uint64_t bytes, struct fp_mem *mem)
{
	const struct fp_xclbin *x = &dev->base->x;
	const size_t size = XRT(xrtBOSize, mem->bo);
	uint64_t address;

	if (size == SIZE_MAX)
		return fp_failed(dev, "xrtBOSize", "an imported buffer");
	if (size < bytes)
		return fp_host->fail(EINVAL,
				     "fpga: descriptor %d has %zu bytes; %" PRIu64
				     " are to be imported",
				     fd, size, bytes);
	mem->bytes = (bytes + !bytes + FP_PAGE - 1) / FP_PAGE * FP_PAGE;
	mem->bytes = mem->bytes < size ? mem->bytes : size;
	address = XRT(xrtBOAddress, mem->bo);
	if (address == UINT64_MAX && errno)
		return fp_failed(dev, "xrtBOAddress", "an imported buffer");
	if (!find_bank(x, address, mem->bytes, &mem->bank))
		return fp_host->fail(
			EINVAL,
			"fpga: descriptor %d is of memory in no bank of card "
			"%u: export it by this card",
			fd, dev->index);
	if (mem->part->desc.color_mask >> mem->bank & 1)
		return 0;
	return fp_host->fail(EINVAL,
			     "fpga: descriptor %d is of memory in bank %s, which is none "
			     "of the partition's (colours 0x%" PRIx64 ")",
			     fd, x->banks[mem->bank].tag, mem->part->desc.color_mask);
}

/* Count and map the buffer. */
static int take(struct fp_device *dev, int fd, struct fp_mem *mem)
{
	char what[64];
	int err;

	if (!fp_bank_take(dev, mem->bank, mem->bytes))
		return fp_no_room(dev, mem->bytes, UINT64_C(1) << mem->bank);
	mem->host = XRT(xrtBOMap, mem->bo);
	if (mem->host)
		return 0;
	snprintf(what, sizeof(what), "host memory of descriptor %d", fd);
	err = fp_failed(dev, "xrtBOMap", what);
	fp_bank_give(dev, mem->bank, mem->bytes);
	return err;
}

/* Make the handle of an imported buffer of at least bytes: .bo, .bank, .bytes, .host. */
static int import(struct fp_device *dev, int fd, uint64_t bytes, struct fp_mem *mem)
{
	char why[96];
	int err;

	mem->bo = XRT(xrtBOImport, dev->handle, fd);
	if (!mem->bo) {
		/* XRT 2.13 knows no reason when the descriptor is a wrong one. */
		const bool unknown = !errno;

		err = fp_why(dev, "xrtBOImport", why, sizeof(why));
		return fp_host->fail(unknown ? EINVAL : -err,
				     "fpga: %s: descriptor %d; pass one of "
				     "hal_buffer_export of this card",
				     why, fd);
	}
	err = inspect(dev, fd, bytes, mem);
	if (!err)
		err = take(dev, fd, mem);
	if (err && xrt.xrtBOFree(mem->bo))
		(void)xrt.xrtBOFree(mem->bo);
	return err;
}

int fp_mem_import(void *device, void *partition, int fd, uint64_t bytes, uint32_t flags,
		  void **out)
{
	struct fp_device *dev = device;
	struct fp_partition *part = partition;
	struct fp_mem *mem;
	int err;

	if (flags & HAL_BUFFER_MAPPABLE)
		return fp_not_mapped();
	mem = calloc(1, sizeof(*mem));
	if (!mem)
		return fp_host->fail(ENOMEM, "fpga: no memory for a buffer");
	mem->part = part;
	err = import(dev, fd, bytes, mem);
	if (err) {
		free(mem);
		return err;
	}
	atomic_fetch_add(&part->buffers, 1);
	*out = mem;
	return 0;
}
