/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory.c - device memory by colour, and each partition's address space.
 *
 * Physical memory is cut into granules; the hash says on which channel each one lies, and
 * a granule is also the page of the machine's page tables.  So a buffer on chosen
 * channels is pages whose granules lie there.  A partition's page table itself is read in
 * one piece by the machine; it is placed on the partition's own channels too, which can
 * limit its length (npu_space_open).  Between two allocations a page stays unmapped:
 * running over an end is a fault, never a neighbour's bytes.
 */
#include "internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PTE_BYTES 4u

static uint64_t granule_bytes(const struct npu_device *dev)
{
	return UINT64_C(1) << dev->opt.gran;
}

static uint8_t *granule_at(const struct npu_device *dev, uint32_t granule)
{
	return dev->memory + ((uint64_t)granule << dev->opt.gran);
}

/* ---- granules --------------------------------------------------------------------- */

int npu_memory_open(struct npu_device *dev)
{
	void *at;

	dev->granules = (uint32_t)(dev->opt.memory >> dev->opt.gran);
	dev->free_granules = dev->granules;
	dev->channel = malloc(dev->granules);
	dev->used = calloc(dev->granules, 1);
	at = mmap(NULL, dev->opt.memory, PROT_READ | PROT_WRITE,
		  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	dev->memory = at == MAP_FAILED ? NULL : at;
	if (!dev->channel || !dev->used || !dev->memory)
		return npu_fail(ENOMEM, "npu: no host memory for memory_size=%llu",
				(unsigned long long)dev->opt.memory);
	for (uint32_t g = 0; g < dev->granules; g++)
		dev->channel[g] = (uint8_t)npu_hash_map(&dev->hash, g).channel;
	return 0;
}

void npu_memory_close(struct npu_device *dev)
{
	if (dev->memory)
		munmap(dev->memory, dev->opt.memory);
	free(dev->channel);
	free(dev->used);
}

static bool granule_free(const struct npu_device *dev, uint32_t g, uint64_t colors)
{
	return !dev->used[g] && (colors >> dev->channel[g] & 1u);
}

/* The first run of count free granules of these colours; else the longest there is, and
 * *count says how long that is. */
static uint32_t find_run(const struct npu_device *dev, uint64_t colors, uint32_t *count)
{
	uint32_t best = 0, best_at = 0, run = 0;

	for (uint32_t g = 0; g < dev->granules && best < *count; g++) {
		run = granule_free(dev, g, colors) ? run + 1 : 0;
		if (run > best) {
			best = run;
			best_at = g + 1 - run;
		}
	}
	*count = best;
	return best_at;
}

static void take(struct npu_device *dev, uint32_t granule)
{
	dev->used[granule] = 1;
	dev->free_granules--;
	/* The last tenant's bytes are nobody else's business. */
	memset(granule_at(dev, granule), 0, granule_bytes(dev));
}

static void give_back(struct npu_device *dev, uint32_t granule)
{
	dev->used[granule] = 0;
	dev->free_granules++;
}

/* ---- address spaces --------------------------------------------------------------- */

static uint32_t entries_per_table(const struct npu_device *dev)
{
	return (uint32_t)(granule_bytes(dev) / PTE_BYTES);
}

static void drop_tables(struct npu_partition *part)
{
	for (uint32_t i = 0; part->tables && i < part->table_count; i++)
		if (part->tables[i])
			give_back(part->dev, part->tables[i] - 1);
	for (uint32_t i = 0; i < part->root_granules; i++)
		give_back(part->dev, part->root + i);
	free(part->tables);
	free(part->page_used);
	part->tables = NULL;
	part->page_used = NULL;
	part->root_granules = 0;
	part->table_count = 0;
}

/* Enough pages for all the memory the partition can have, twice for the unmapped ones.
 * Tables come as pages are mapped; the root must lie in one piece on the partition's own
 * channels, so the space may be smaller where granules are. */
int npu_space_open(struct npu_partition *part)
{
	struct npu_device *dev = part->dev;
	uint64_t bytes =
		part->desc.memory_bytes ? part->desc.memory_bytes : dev->opt.memory;
	uint64_t pages = 2 * (bytes >> dev->opt.gran) + 256;
	uint64_t max = (UINT64_C(1) << 32) >> dev->opt.gran;
	uint32_t per = entries_per_table(dev), granules;

	pages = pages < max ? pages : max;
	part->table_count = (uint32_t)((pages + per - 1) / per);
	granules = (part->table_count + per - 1) / per;
	part->root = find_run(dev, part->desc.color_mask, &granules);
	if (!granules) {
		part->table_count = 0;
		return npu_fail(
			ENOSPC,
			"npu: no free granule for a page table on channels 0x%llx",
			(unsigned long long)part->desc.color_mask);
	}
	for (; part->root_granules < granules; part->root_granules++)
		take(dev, part->root + part->root_granules);
	if (part->table_count > granules * per)
		part->table_count = granules * per;
	part->pages = part->table_count * per;
	part->page_used = calloc(part->pages, 1);
	part->tables = calloc(part->table_count, sizeof(*part->tables));
	if (!part->page_used || !part->tables) {
		drop_tables(part);
		return npu_fail(ENOMEM, "npu: no host memory for %u pages", part->pages);
	}
	part->page_used[0] = 1; /* address 0 is never mapped */
	return 0;
}

void npu_space_close(struct npu_partition *part)
{
	struct npu_partition *host = part->host;
	struct npu_device *dev = part->dev;
	uint32_t number = part->desc.index % NPU_CONTEXTS;

	if (host->context[number] == part)
		host->context[number] = NULL;
	if (host == part) {
		npu_write(dev, NPU_GLB_AT(PT_COUNT, part->slot), 0);
		npu_write(dev, NPU_GLB_AT(CH_MASK, part->slot), 0);
	}
	drop_tables(part);
}

/* pages unused pages in a row with one more before and behind them; 0: there are none. */
static uint32_t find_pages(const struct npu_partition *part, uint32_t pages)
{
	uint32_t run = 1; /* page 0, which is never mapped */

	for (uint32_t v = 1; v < part->pages; v++) {
		run = part->page_used[v] ? 0 : run + 1;
		if (run > pages + 1)
			return v - pages;
	}
	return 0;
}

static void set_root(struct npu_partition *part, uint32_t table, uint32_t entry)
{
	memcpy(granule_at(part->dev, part->root) + (uint64_t)table * PTE_BYTES, &entry,
	       PTE_BYTES);
}

/* Tables for pages [first, first + pages), from the partition's own channels. */
static int need_tables(struct npu_partition *part, uint32_t first, uint32_t pages)
{
	struct npu_device *dev = part->dev;
	uint32_t per = entries_per_table(dev);

	for (uint32_t t = first / per; t <= (first + pages - 1) / per; t++) {
		uint32_t one = 1, granule, entry;

		if (part->tables[t])
			continue;
		granule = find_run(dev, part->desc.color_mask, &one);
		if (!one)
			return npu_fail(ENOSPC,
					"npu: no free granule for a page table on "
					"channels 0x%llx",
					(unsigned long long)part->desc.color_mask);
		take(dev, granule);
		part->tables[t] = granule + 1;
		entry = (granule << dev->opt.gran) | NPU_PTE_VALID;
		set_root(part, t, entry);
	}
	return 0;
}

/* Those of the tables of pages [first, first + pages) that map nothing any more go back;
 * flush before anything else is placed there. */
static void drop_empty_tables(struct npu_partition *part, uint32_t first, uint32_t pages)
{
	uint32_t per = entries_per_table(part->dev);

	for (uint32_t t = first / per; t <= (first + pages - 1) / per; t++) {
		uint32_t first_used = t ? t * per : 1; /* page 0 only counts as used */

		if (!part->tables[t] ||
		    memchr(part->page_used + first_used, 1, (t + 1) * per - first_used))
			continue;
		set_root(part, t, 0);
		give_back(part->dev, part->tables[t] - 1);
		part->tables[t] = 0;
	}
}

static void set_entry(struct npu_partition *part, uint32_t page, uint32_t entry)
{
	uint32_t per = entries_per_table(part->dev);

	memcpy(granule_at(part->dev, part->tables[page / per] - 1) +
		       (uint64_t)(page % per) * PTE_BYTES,
	       &entry, PTE_BYTES);
}

static uint32_t entry_of(const struct npu_device *dev, uint32_t granule, bool writable)
{
	return (granule << dev->opt.gran) | NPU_PTE_VALID |
	       (writable ? NPU_PTE_WRITE : 0);
}

/* Translations the machine may remember are gone when this returns. */
static void flush(struct npu_partition *part)
{
	uint32_t at = NPU_GLB_AT(SLOT_CTRL, part->slot);

	npu_lock(part->dev);
	npu_write(part->dev, at,
		  npu_read(part->dev, at) | NPU_REG_BITS(SLOT_CTRL_TLB_FLUSH, 1));
	npu_unlock(part->dev);
}

/* Translations are kept under a number that a few partitions share: who takes it from
 * another begins without any. */
void npu_space_load(struct npu_partition *part)
{
	struct npu_partition *host = part->host;
	uint32_t number = part->desc.index % NPU_CONTEXTS, slot = host->slot;
	struct npu_device *dev = part->dev;

	npu_write(dev, NPU_GLB_AT(PT_BASE, slot), part->root << dev->opt.gran);
	npu_write(dev, NPU_GLB_AT(PT_COUNT, slot), part->pages);
	npu_write(dev, NPU_GLB_AT(CH_MASK, slot), (uint32_t)part->desc.color_mask);
	npu_write(dev, NPU_GLB_AT(PT_CONTEXT, slot), number);
	if (host->context[number] != part)
		flush(part);
	host->context[number] = part;
	host->loaded = part;
}

/* ---- allocations ------------------------------------------------------------------ */

static int choose_granules(struct npu_device *dev, uint64_t colors, bool contiguous,
			   struct npu_mem *mem)
{
	uint32_t run = mem->pages, first, n = 0;

	if (contiguous) {
		first = find_run(dev, colors, &run);
		if (run < mem->pages)
			return npu_fail(
				ENOTSUP,
				"npu: %u granules in one piece on channels 0x%llx, the "
				"longest free piece has %u: cannot be mapped",
				mem->pages, (unsigned long long)colors, run);
		while (n < mem->pages)
			mem->granules[n++] = first++;
	}
	for (uint32_t g = 0; n < mem->pages && g < dev->granules; g++)
		if (granule_free(dev, g, colors))
			mem->granules[n++] = g;
	if (n < mem->pages)
		return npu_fail(
			ENOSPC,
			"npu: %llu bytes on channels 0x%llx need %u granules of %llu "
			"bytes, %u are free",
			(unsigned long long)mem->bytes, (unsigned long long)colors,
			mem->pages, (unsigned long long)granule_bytes(dev), n);
	return 0;
}

int npu_alloc(struct npu_partition *part, uint64_t bytes, uint64_t colors, bool writable,
	      bool contiguous, struct npu_mem **out)
{
	struct npu_device *dev = part->dev;
	uint64_t pages = (bytes + granule_bytes(dev) - 1) >> dev->opt.gran;
	struct npu_mem *mem;
	uint32_t first;
	int rc;

	if (!bytes || pages > dev->granules)
		return npu_fail(
			bytes ? ENOSPC : EINVAL,
			"npu: %llu bytes of device memory asked for, there are %llu",
			(unsigned long long)bytes, (unsigned long long)dev->opt.memory);
	mem = malloc(sizeof(*mem) + pages * sizeof(mem->granules[0]));
	if (!mem)
		return npu_fail(ENOMEM, "npu: no host memory for a buffer of %llu bytes",
				(unsigned long long)bytes);
	mem->part = part;
	mem->bytes = bytes;
	mem->pages = (uint32_t)pages;
	first = find_pages(part, mem->pages);
	rc = first ? need_tables(part, first, mem->pages)
		   : npu_fail(ENOSPC,
			      "npu: no %u pages in a row left in partition %u's address "
			      "space of %u (a larger granule makes it larger)",
			      mem->pages, part->slot, part->pages);
	if (!rc)
		rc = choose_granules(dev, colors, contiguous, mem);
	if (rc) {
		if (first)
			drop_empty_tables(part, first, mem->pages);
		flush(part);
		free(mem);
		return rc;
	}
	mem->va = first << dev->opt.gran;
	mem->contiguous = true;
	for (uint32_t i = 0; i < mem->pages; i++) {
		take(dev, mem->granules[i]);
		part->page_used[first + i] = 1;
		set_entry(part, first + i, entry_of(dev, mem->granules[i], writable));
		if (mem->granules[i] != mem->granules[0] + i)
			mem->contiguous = false;
	}
	*out = mem;
	return 0;
}

void npu_free(struct npu_mem *mem)
{
	struct npu_partition *part;
	uint32_t first;

	if (!mem)
		return;
	part = mem->part;
	first = mem->va >> part->dev->opt.gran;
	for (uint32_t i = 0; i < mem->pages; i++) {
		set_entry(part, first + i, 0);
		part->page_used[first + i] = 0;
	}
	drop_empty_tables(part, first, mem->pages);
	flush(part);
	for (uint32_t i = 0; i < mem->pages; i++)
		give_back(part->dev, mem->granules[i]);
	free(mem);
}

uint8_t *npu_bytes(const struct npu_mem *mem, uint64_t offset, uint64_t *together)
{
	const struct npu_device *dev = mem->part->dev;
	uint64_t in = offset & (granule_bytes(dev) - 1);

	*together = granule_bytes(dev) - in;
	return granule_at(dev, mem->granules[offset >> dev->opt.gran]) + in;
}

/* ---- backend.h -------------------------------------------------------------------- */

int npu_mem_alloc(void *device, void *partition, uint64_t bytes, uint64_t color_mask,
		  uint32_t flags, void **out)
{
	struct npu_mem *mem;
	int rc = npu_alloc(partition, bytes, color_mask, true,
			   flags & HAL_BUFFER_MAPPABLE, &mem);

	(void)device;
	if (!rc)
		*out = mem;
	return rc;
}

int npu_mem_free(void *device, void *mem)
{
	(void)device;
	npu_free(mem);
	return 0;
}

int npu_mem_write(void *device, void *mem, uint64_t offset, const void *data,
		  uint64_t bytes)
{
	const uint8_t *from = data;

	(void)device;
	for (uint64_t n; bytes; bytes -= n, offset += n, from += n) {
		uint8_t *at = npu_bytes(mem, offset, &n);

		n = n < bytes ? n : bytes;
		memcpy(at, from, n);
	}
	return 0;
}

int npu_mem_read(void *device, void *mem, uint64_t offset, void *data, uint64_t bytes)
{
	uint8_t *to = data;

	(void)device;
	for (uint64_t n; bytes; bytes -= n, offset += n, to += n) {
		const uint8_t *at = npu_bytes(mem, offset, &n);

		n = n < bytes ? n : bytes;
		memcpy(to, at, n);
	}
	return 0;
}

int npu_mem_map(void *device, void *memory, void **address)
{
	struct npu_mem *mem = memory;
	uint64_t together;

	(void)device;
	if (!mem->contiguous)
		return npu_fail(ENOTSUP,
				"npu: the buffer's %u granules do not lie together; "
				"create it with HAL_BUFFER_MAPPABLE",
				mem->pages);
	*address = npu_bytes(mem, 0, &together);
	return 0;
}

int npu_mem_unmap(void *device, void *mem)
{
	(void)device;
	(void)mem;
	return 0;
}
