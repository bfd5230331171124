/* SPDX-License-Identifier: Apache-2.0 */
/* share.c - memory files in the place of device memory; see share.h. */
#include "share.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Return the number of granules in a page of the host; it has at least one. */
static uint32_t page_granules(const struct npu_device *dev)
{
	return (uint32_t)(sysconf(_SC_PAGESIZE) >> dev->opt.gran);
}

uint64_t npu_share_granules(const struct npu_device *dev, uint64_t pages)
{
	uint64_t per = page_granules(dev);

	return (pages + per - 1) / per * per;
}

static uint64_t all_colors(const struct npu_device *dev)
{
	uint32_t n = dev->opt.channels * dev->opt.color_sets;

	if (dev->opt.opaque)
		n = dev->told ? dev->told : 1;
	return UINT64_MAX >> (64 - n);
}

/* Fail because no run of mem->taken granules that begins at a page is free. */
static int no_pages(const struct npu_device *dev, uint64_t mask,
		    const struct npu_mem *mem, uint32_t longest)
{
	const uint64_t all = all_colors(dev);

	if ((mask & all) == all)
		return npu_fail(ENOSPC,
				"npu: memory to export or import needs %u consecutive "
				"granules from a page of %ld bytes on; the longest free "
				"run has %u",
				mem->taken, sysconf(_SC_PAGESIZE), longest);
	return npu_fail(ENOTSUP,
			"npu: memory to export or import needs %u consecutive granules "
			"from a page of %ld bytes on; on channels 0x%llx, of 0x%llx, the "
			"longest free run has %u; give the partition all channels",
			mem->taken, sysconf(_SC_PAGESIZE), (unsigned long long)mask,
			(unsigned long long)all, longest);
}

static uint8_t *bytes_of(const struct npu_device *dev, const struct npu_mem *mem)
{
	return dev->memory + ((uint64_t)mem->granules[0] << dev->opt.gran);
}

/* Give the granules back, as memory of the device's own.  Without that they stay taken,
 * so that nobody gets the bytes of a file, or an address where nothing is mapped. */
static void give(struct npu_device *dev, const struct npu_mem *mem)
{
	const void *at =
		mmap(bytes_of(dev, mem), (size_t)mem->taken << dev->opt.gran,
		     PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);

	if (at != MAP_FAILED)
		npu_host->granules_give(dev->free, mem->granules, mem->taken);
}

int npu_share_place(struct npu_device *dev, uint64_t mask, int fd, struct npu_mem *mem)
{
	uint32_t first;
	int rc;

	mem->taken = (uint32_t)npu_share_granules(dev, mem->pages);
	rc = npu_host->granules_take_run(dev->free, mask, mem->taken, page_granules(dev),
					 &first);
	if (rc == -ENOSPC)
		return no_pages(dev, mask, mem, first);
	if (rc)
		return rc;
	for (uint32_t i = 0; i < mem->taken; i++)
		mem->granules[i] = first + i;
	if (mmap(bytes_of(dev, mem), (size_t)mem->taken << dev->opt.gran,
		 PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) != MAP_FAILED) {
		mem->shared = true;
		return 0;
	}
	rc = npu_fail(errno, "npu: mmap of a memory file of %llu bytes: %s",
		      (unsigned long long)mem->bytes, strerrordesc_np(errno));
	give(dev, mem); /* a failed mmap may have unmapped what was there */
	return rc;
}

void npu_share_remove(struct npu_mem *mem)
{
	give(mem->part->dev, mem);
	mem->shared = false;
}
