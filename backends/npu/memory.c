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

#include "copier.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "backends/memfd/memfd.h"
#include "share.h"

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

static void tell_map(const struct npu_hash *h, uint64_t granules,
		     struct hal_bk_color_map *map)
{
	*map = (struct hal_bk_color_map){
		.granule_bytes = 1u << h->gran,
		.colors = h->q << h->k,
		.granules = granules,
		.mask_count = h->k,
		.q = h->q > 1 ? h->q : 0,
		.shift = h->k,
		.digits = 2,
		.weight = {1, 1},
	};
	for (uint32_t i = 0; i < h->k; i++)
		map->mask[i] = npu_hash_mask(h, i);
}

/* A channel's granules are in groups of its cache's sets by turns: where channels are
 * parities alone, so are groups. */
static int tell_sets(struct npu_device *dev, struct hal_bk_color_map *map)
{
	const struct npu_hash *h = &dev->hash;
	uint32_t groups = dev->opt.color_sets;

	map->colors *= groups;
	if (h->q == 1) {
		for (uint32_t bit = h->k; 1u << (bit - h->k) < groups; bit++)
			map->mask[map->mask_count++] = UINT64_C(1) << bit;
		return 0;
	}
	dev->colors = malloc(dev->granules);
	if (!dev->colors)
		return npu_fail(ENOMEM, "npu: no host memory for %u granules' colours",
				dev->granules);
	for (uint32_t g = 0; g < dev->granules; g++) {
		struct npu_hash_place p = npu_hash_map(h, g);

		dev->colors[g] =
			(uint8_t)(p.local % groups * dev->opt.channels + p.channel);
	}
	map->table = dev->colors;
	return 0;
}

/* All that a partition may have.  An opaque device has no colours unless somebody has
 * told it: to who places memory all of it is one. */
static struct hal_bk_colors colors_of(const struct npu_partition *part)
{
	return (struct hal_bk_colors){
		.mask = part->desc.color_mask ? part->desc.color_mask : 1};
}

int npu_memory_open(struct npu_device *dev)
{
	const struct npu_hash none = {.q = 1, .gran = dev->opt.gran};
	struct hal_bk_color_map map;
	void *at;
	int rc = 0;

	dev->granules = (uint32_t)(dev->opt.memory >> dev->opt.gran);
	tell_map(dev->opt.opaque ? &none : &dev->hash, dev->granules, &map);
	if (!dev->opt.opaque && dev->opt.color_sets > 1)
		rc = tell_sets(dev, &map);
	if (!rc)
		rc = npu_host->granules_open(&map, &dev->free);
	if (rc)
		return rc;
	at = mmap(NULL, dev->opt.memory, PROT_READ | PROT_WRITE,
		  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	dev->memory = at == MAP_FAILED ? NULL : at;
	if (!dev->memory)
		return npu_fail(ENOMEM, "npu: no host memory for memory_size=%llu",
				(unsigned long long)dev->opt.memory);
	return 0;
}

int npu_colors_set(void *device, const struct hal_bk_color_map *map)
{
	struct npu_device *dev = device;
	struct hal_bk_granules *free;
	int rc;

	if (!dev->opt.opaque)
		return npu_fail(ENOTSUP,
				"npu: only a device with hash=opaque accepts a colour "
				"map; this device reports its channels itself");
	if (map->granule_bytes != 1u << dev->opt.gran)
		return npu_fail(EINVAL,
				"npu: the map is for granules of %u bytes, but this "
				"device has pages of %u",
				map->granule_bytes, 1u << dev->opt.gran);
	rc = npu_host->granules_open(map, &free);
	if (rc)
		return rc;
	npu_host->granules_close(dev->free);
	dev->free = free;
	dev->told = map->colors;
	return 0;
}

void npu_memory_close(struct npu_device *dev)
{
	if (dev->memory)
		munmap(dev->memory, dev->opt.memory);
	npu_host->granules_close(dev->free);
	free(dev->colors);
}

uint64_t npu_memory_free(const struct npu_device *dev)
{
	return npu_host->granules_left(dev->free, UINT64_MAX) << dev->opt.gran;
}

/* The last tenant's bytes are nobody else's business. */
static void clear(struct npu_device *dev, uint32_t granule)
{
	memset(granule_at(dev, granule), 0, granule_bytes(dev));
}

/* One for a page table. */
static int take_table(struct npu_partition *part, uint32_t *granule)
{
	const struct hal_bk_colors colors = colors_of(part);
	int rc = npu_host->granules_take(part->dev->free, &colors, 1, granule);

	if (!rc)
		clear(part->dev, *granule);
	return rc;
}

static void give_back(struct npu_device *dev, uint32_t granule)
{
	npu_host->granules_give(dev->free, &granule, 1);
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
	const struct hal_bk_partition_desc *d = &part->desc;
	uint64_t bytes = d->memory_bytes ? d->memory_bytes : dev->opt.memory;
	uint64_t most = d->address_bytes > bytes ? d->address_bytes : bytes;
	uint64_t pages = 2 * (most >> dev->opt.gran) + 256;
	uint64_t max = (UINT64_C(1) << 32) >> dev->opt.gran;
	uint32_t per = entries_per_table(dev), granules;
	int rc;

	pages = pages < max ? pages : max;
	part->table_count = (uint32_t)((pages + per - 1) / per);
	granules = (part->table_count + per - 1) / per;
	rc = npu_host->granules_take_run(dev->free, colors_of(part).mask, granules, 1,
					 &part->root);
	if (rc == -ENOSPC && part->root) { /* the longest there is */
		granules = part->root;
		rc = npu_host->granules_take_run(dev->free, colors_of(part).mask,
						 granules, 1, &part->root);
	}
	if (rc) {
		part->table_count = 0;
		return rc;
	}
	for (; part->root_granules < granules; part->root_granules++)
		clear(dev, part->root + part->root_granules);
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

void npu_space_unload(const struct npu_partition *part)
{
	npu_write(part->dev, NPU_GLB_AT(PT_COUNT, part->slot), 0);
	npu_write(part->dev, NPU_GLB_AT(CH_MASK, part->slot), 0);
}

void npu_space_close(struct npu_partition *part)
{
	struct npu_partition *host = part->host;
	uint32_t number = part->desc.index % NPU_CONTEXTS;

	if (host->context[number] == part)
		host->context[number] = NULL;
	if (host == part)
		npu_space_unload(part);
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
		uint32_t granule, entry;
		int rc;

		if (part->tables[t])
			continue;
		rc = take_table(part, &granule);
		if (rc)
			return rc;
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

/* Translations the machine may remember are gone when this returns, and what went by them
 * has been answered.  That takes as long as memory does; two requests may also wait for
 * the windows of a limit. */
static void flush_slot(const struct npu_partition *part)
{
	const struct npu_partition *host = part->host;
	uint32_t at = NPU_GLB_AT(SLOT_CTRL, host->slot);
	bool works = host->loaded == part && host->count > host->frozen;

	npu_lock(part->dev);
	npu_write(part->dev, at,
		  npu_read(part->dev, at) | NPU_REG_BITS(SLOT_CTRL_TLB_FLUSH, 1));
	while (works && NPU_REG_GET(npu_read(part->dev, at), SLOT_CTRL_TLB_FLUSH))
		continue;
	npu_unlock(part->dev);
}

/* In every slot that may have part's address space. */
static void flush(const struct npu_partition *part)
{
	flush_slot(part);
	for (uint32_t i = 0; i < 2; i++)
		if (part->copier[i] && part->copier[i]->slot != NPU_NO_SLOT)
			flush_slot(part->copier[i]);
}

/* The slot may touch those that part's memory lies on now. */
static void load_channels(const struct npu_partition *part)
{
	struct npu_device *dev = part->dev;

	npu_write(dev, NPU_GLB_AT(CH_MASK, part->host->slot),
		  dev->opt.opaque ? UINT32_MAX
				  : npu_channels(&dev->opt, npu_colors(part)));
}

/* Translations are kept under a number that a few partitions share: who takes it from
 * another begins without any.  A slot at work does not take other tables: then it reaches
 * nothing, rather than what is another's. */
void npu_space_load(struct npu_partition *part)
{
	struct npu_partition *host = part->host;
	uint32_t number = part->desc.index % NPU_CONTEXTS, slot = host->slot;
	struct npu_device *dev = part->dev;
	uint32_t root = part->root << dev->opt.gran;

	npu_write(dev, NPU_GLB_AT(PT_BASE, slot), root);
	npu_write(dev, NPU_GLB_AT(PT_CONTEXT, slot), number);
	npu_write(dev, NPU_GLB_AT(PT_COUNT, slot),
		  npu_read(dev, NPU_GLB_AT(PT_BASE, slot)) == root ? part->pages : 0);
	load_channels(part);
	if (host->context[number] != part)
		flush_slot(part);
	host->context[number] = part;
	host->loaded = part;
}

/* ---- allocations ------------------------------------------------------------------ */

static int choose_granules(struct npu_device *dev, const struct hal_bk_colors *colors,
			   bool contiguous, struct npu_mem *mem)
{
	uint32_t first;
	int rc;

	if (!contiguous)
		return npu_host->granules_take(dev->free, colors, mem->pages,
					       mem->granules);
	rc = npu_host->granules_take_run(dev->free, colors->mask, mem->pages, 1, &first);
	if (rc == -ENOSPC)
		return npu_fail(ENOTSUP,
				"npu: a mappable buffer needs %u consecutive granules on "
				"channels 0x%llx, but the longest free run has %u",
				mem->pages, (unsigned long long)colors->mask, first);
	for (uint32_t i = 0; !rc && i < mem->pages; i++)
		mem->granules[i] = first + i;
	return rc;
}

/* Page i of pages is one of the count that have a twin; those are spread evenly. */
static bool has_twin(uint32_t i, uint32_t pages, uint32_t count)
{
	return (uint64_t)(i + 1) * count / pages != (uint64_t)i * count / pages;
}

/* Both placements, the narrow one in force.  What stays and what does not are each spread
 * over colors, so each placement is spread over its own. */
static int choose_twins(struct npu_device *dev, const struct hal_bk_colors *colors,
			uint64_t wide, struct npu_mem *mem)
{
	const struct hal_bk_colors further = {.mask = wide & ~mem->part->desc.color_mask};
	uint32_t n = (uint32_t)hal_bk_twins(mem->pages, colors->mask, further.mask);
	uint32_t *taken = malloc(((size_t)mem->pages + n) * sizeof(*taken));
	uint32_t stay = 0, go = mem->pages - n;
	int rc;

	mem->twins = calloc(mem->pages, sizeof(*mem->twins));
	rc = taken && mem->twins ? npu_host->granules_take(dev->free, colors, go, taken)
				 : npu_fail(ENOMEM, "npu: no host memory for a buffer");
	if (rc)
		goto out;
	rc = npu_host->granules_take(dev->free, colors, n, taken + go);
	if (rc) {
		npu_host->granules_give(dev->free, taken, go);
		goto out;
	}
	rc = npu_host->granules_take(dev->free, &further, n, taken + mem->pages);
	if (rc) {
		npu_host->granules_give(dev->free, taken, mem->pages);
		goto out;
	}
	for (uint32_t i = 0; i < mem->pages; i++) {
		if (has_twin(i, mem->pages, n)) {
			mem->twins[i] = taken[go + n] + 1;
			clear(dev, taken[go + n]);
			mem->granules[i] = taken[go++];
		} else {
			mem->granules[i] = taken[stay++];
		}
	}
out:
	free(taken);
	return rc;
}

/* The pages of mem are its granules. */
static void map_pages(struct npu_mem *mem)
{
	const struct npu_device *dev = mem->part->dev;
	uint32_t first = mem->va >> dev->opt.gran;

	mem->contiguous = true;
	for (uint32_t i = 0; i < mem->pages; i++) {
		set_entry(mem->part, first + i,
			  entry_of(dev, mem->granules[i], mem->writable));
		if (mem->granules[i] != mem->granules[0] + i)
			mem->contiguous = false;
	}
}

/* The other placement. */
static void switch_twins(struct npu_mem *mem)
{
	for (uint32_t i = 0; i < mem->pages; i++) {
		uint32_t granule = mem->granules[i];

		if (!mem->twins[i])
			continue;
		mem->granules[i] = mem->twins[i] - 1;
		mem->twins[i] = granule + 1;
	}
	map_pages(mem);
}

static void enlist(struct npu_mem *mem)
{
	struct npu_partition *part = mem->part;

	mem->next_bimodal = part->bimodal;
	part->bimodal = mem;
	if (part->wide)
		switch_twins(mem);
}

static void delist(const struct npu_mem *mem)
{
	struct npu_mem **at = &mem->part->bimodal;

	while (*at != mem)
		at = &(*at)->next_bimodal;
	*at = mem->next_bimodal;
}

uint64_t npu_mem_charge(const struct npu_mem *mem)
{
	uint64_t further = mem->part->desc.wide_mask & ~mem->part->desc.color_mask;

	return mem->bytes +
	       (mem->twins ? hal_bk_twins(mem->bytes, mem->part->desc.color_mask, further)
			   : 0);
}

/* Make a buffer that has no granules and addresses yet, and takes so many at most. */
static struct npu_mem *make(struct npu_partition *part, uint64_t bytes, uint64_t pages,
			    uint64_t granules)
{
	struct npu_mem *mem = malloc(sizeof(*mem) + granules * sizeof(mem->granules[0]));

	if (!mem) {
		(void)npu_fail(ENOMEM, "npu: no host memory for a buffer of %llu bytes",
			       (unsigned long long)bytes);
		return NULL;
	}
	mem->part = part;
	mem->bytes = bytes;
	mem->pages = mem->taken = (uint32_t)pages;
	mem->twins = NULL;
	mem->out = mem->shared = false;
	mem->fd = -1;
	mem->host = NULL;
	mem->bounces = mem->foreign = false;
	return mem;
}

/* Take the granules of mem; fd: the file that its bytes are, or -1. */
static int choose(struct npu_mem *mem, const struct hal_bk_colors *colors, uint32_t flags,
		  int fd)
{
	const struct hal_bk_colors all = colors_of(mem->part);
	struct npu_device *dev = mem->part->dev;

	if (!colors)
		colors = &all;
	if (fd >= 0)
		return npu_share_place(dev, colors->mask, fd, mem);
	if (flags & NPU_MEM_BIMODAL)
		return choose_twins(dev, colors, mem->part->desc.wide_mask, mem);
	return choose_granules(dev, colors, flags & NPU_MEM_CONTIGUOUS, mem);
}

/* fd: a file that the bytes of the buffer shall be, or -1. */
static int alloc(struct npu_partition *part, uint64_t bytes,
		 const struct hal_bk_colors *colors, uint32_t flags, int fd,
		 struct npu_mem **out)
{
	struct npu_device *dev = part->dev;
	uint64_t pages = (bytes + granule_bytes(dev) - 1) >> dev->opt.gran;
	struct npu_mem *mem;
	uint32_t first;
	int rc;

	if (!bytes || pages > dev->granules)
		return npu_fail(
			bytes ? ENOSPC : EINVAL,
			"npu: %llu bytes of device memory requested; the device has %llu",
			(unsigned long long)bytes, (unsigned long long)dev->opt.memory);
	mem = make(part, bytes, pages, fd < 0 ? pages : npu_share_granules(dev, pages));
	if (!mem)
		return -ENOMEM;
	first = find_pages(part, mem->pages);
	rc = first ? need_tables(part, first, mem->pages)
		   : npu_fail(ENOSPC,
			      "npu: no %u consecutive pages are free in partition %u's "
			      "address space of %u pages; a larger granule= makes it "
			      "larger",
			      mem->pages, part->slot, part->pages);
	if (!rc)
		rc = choose(mem, colors, flags, fd);
	if (rc) {
		if (first)
			drop_empty_tables(part, first, mem->pages);
		flush(part);
		free(mem->twins);
		free(mem);
		return rc;
	}
	mem->va = first << dev->opt.gran;
	mem->writable = !(flags & NPU_MEM_READ_ONLY);
	for (uint32_t i = 0; i < mem->pages; i++) {
		if (!mem->shared)
			clear(dev, mem->granules[i]);
		part->page_used[first + i] = 1;
	}
	map_pages(mem);
	if (mem->twins)
		enlist(mem);
	*out = mem;
	return 0;
}

int npu_alloc(struct npu_partition *part, uint64_t bytes,
	      const struct hal_bk_colors *colors, uint32_t flags, struct npu_mem **out)
{
	return alloc(part, bytes, colors, flags, -1, out);
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
	if (mem->shared)
		npu_share_remove(mem);
	else if (!mem->out)
		npu_host->granules_give(part->dev->free, mem->granules, mem->pages);
	if (mem->fd >= 0)
		(void)close(mem->fd);
	if (mem->twins) {
		delist(mem);
		for (uint32_t i = 0; i < mem->pages; i++)
			if (mem->twins[i])
				give_back(part->dev, mem->twins[i] - 1);
		free(mem->twins);
	}
	if (mem->bounces && !mem->foreign)
		free(mem->host);
	free(mem);
}

uint8_t *npu_bytes(const struct npu_mem *mem, uint64_t offset, uint64_t *together)
{
	const struct npu_device *dev = mem->part->dev;
	uint64_t in = offset & (granule_bytes(dev) - 1);

	*together = granule_bytes(dev) - in;
	return granule_at(dev, mem->granules[offset >> dev->opt.gran]) + in;
}

/* The same place where it lies in the other placement; NULL: it has one. */
static uint8_t *twin_bytes(const struct npu_mem *mem, uint64_t offset)
{
	const struct npu_device *dev = mem->part->dev;
	uint64_t page = offset >> dev->opt.gran;

	return mem->twins && mem->twins[page]
		       ? granule_at(dev, mem->twins[page] - 1) +
				 (offset & (granule_bytes(dev) - 1))
		       : NULL;
}

/* ---- host memory ------------------------------------------------------------------ */

/* Pages of the machine for host memory of which it does not reach the bytes. */
static int alloc_bounce(struct npu_partition *part, uint64_t bytes, void *address,
			struct npu_mem **out)
{
	struct npu_mem *mem;
	int rc = npu_alloc(part, bytes, NULL, 0, &mem);

	if (rc)
		return rc;
	mem->bounces = true;
	mem->foreign = address != NULL;
	mem->host = address ? address : calloc(1, bytes);
	if (!mem->host) {
		npu_free(mem);
		return npu_fail(ENOMEM, "npu: no host memory for %llu bytes",
				(unsigned long long)bytes);
	}
	*out = mem;
	return 0;
}

static int alloc_host(struct npu_partition *part, uint64_t bytes, struct npu_mem **out)
{
	uint64_t together;
	int rc = npu_alloc(part, bytes, NULL, NPU_MEM_CONTIGUOUS, out);

	if (rc == -ENOTSUP) /* too few granules lie side by side */
		return alloc_bounce(part, bytes, NULL, out);
	if (!rc)
		(*out)->host = npu_bytes(*out, 0, &together);
	return rc;
}

void npu_bounce(struct npu_mem *mem, uint64_t offset, uint64_t bytes, bool in)
{
	uint8_t *host = mem->host + offset;

	if (in)
		npu_mem_write(mem->part->dev, mem, offset, host, bytes);
	else
		npu_mem_read(mem->part->dev, mem, offset, host, bytes);
}

int npu_mem_register(void *device, void *partition, void *address, uint64_t bytes,
		     void **out)
{
	struct npu_mem *mem;
	int rc = alloc_bounce(partition, bytes, address, &mem);

	(void)device;
	if (rc)
		return rc;
	npu_copiers_open(partition);
	*out = mem;
	return 0;
}

/* ---- shared memory ---------------------------------------------------------------- */

static int alloc_exportable(struct npu_partition *part, uint64_t bytes,
			    const struct hal_bk_colors *colors, struct npu_mem **out)
{
	int fd, rc = memfd_make(npu_host, "npu", bytes, &fd);

	if (rc)
		return rc;
	rc = alloc(part, bytes, colors, 0, fd, out);
	if (rc)
		(void)close(fd);
	else
		(*out)->fd = fd;
	return rc;
}

int npu_mem_export(void *device, void *memory, int *fd)
{
	const struct npu_mem *mem = memory;

	(void)device;
	*fd = memfd_copy(npu_host, "npu", mem->fd);
	return *fd < 0 ? *fd : 0;
}

int npu_mem_import(void *device, void *partition, int fd, uint64_t bytes, uint32_t flags,
		   void **out)
{
	struct npu_mem *mem;
	int rc = memfd_check(npu_host, "npu", fd, bytes);

	(void)device;
	(void)flags; /* a run of granules can be mapped */
	if (!rc)
		rc = alloc(partition, bytes, NULL, 0, fd, &mem);
	if (!rc)
		*out = mem;
	return rc;
}

/* ---- backend.h -------------------------------------------------------------------- */

int npu_mem_alloc(void *device, void *partition, uint64_t bytes,
		  const struct hal_bk_colors *colors, uint32_t flags, void **out)
{
	bool constant =
		(flags & (HAL_BUFFER_BIMODAL | HAL_BUFFER_SCRATCH)) == HAL_BUFFER_BIMODAL;
	struct npu_mem *mem;
	int rc;

	(void)device;
	if (flags & HAL_BK_MEM_HOST)
		rc = alloc_host(partition, bytes, &mem);
	else if (flags & HAL_BUFFER_EXPORTABLE)
		rc = alloc_exportable(partition, bytes, colors, &mem);
	else
		rc = npu_alloc(partition, bytes, colors,
			       flags | (constant ? NPU_MEM_READ_ONLY : 0), &mem);
	if (rc)
		return rc;
	if (flags & HAL_BK_MEM_HOST)
		npu_copiers_open(partition);
	*out = mem;
	return 0;
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
		at = twin_bytes(mem, offset);
		if (at)
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
	if (mem->host) {
		*address = mem->host;
		return 0;
	}
	if (!mem->contiguous)
		return npu_fail(ENOTSUP,
				"npu: the buffer's %u granules are not contiguous; "
				"create the buffer with HAL_BUFFER_MAPPABLE",
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

/* Addresses stay; what lies there is the other's. */
int npu_mem_swap(void *device, void *memory, void *other)
{
	struct npu_mem *a = memory, *b = other;

	(void)device;
	for (uint32_t i = 0; i < a->pages; i++) {
		uint32_t granule = a->granules[i];

		a->granules[i] = b->granules[i];
		b->granules[i] = granule;
	}
	map_pages(a);
	map_pages(b);
	flush(a->part);
	return 0;
}

/* Its pages stay its own, and map nothing: who touches them all the same faults. */
int npu_mem_out(void *device, void *memory)
{
	struct npu_device *dev = device;
	struct npu_mem *mem = memory;

	for (uint32_t i = 0; i < mem->pages; i++)
		set_entry(mem->part, (mem->va >> dev->opt.gran) + i, 0);
	flush(mem->part);
	npu_host->granules_give(dev->free, mem->granules, mem->pages);
	mem->out = true;
	return 0;
}

int npu_mem_in(void *device, void *memory, const struct hal_bk_colors *colors)
{
	struct npu_device *dev = device;
	struct npu_mem *mem = memory;
	const struct hal_bk_colors all = colors_of(mem->part);
	int rc = choose_granules(dev, colors ? colors : &all, false, mem);

	if (rc)
		return rc;
	for (uint32_t i = 0; i < mem->pages; i++)
		clear(dev, mem->granules[i]);
	map_pages(mem);
	mem->out = false;
	return 0;
}

/* What may be touched is as narrow as what is mapped. */
int npu_partition_widen(void *device, void *partition, uint32_t wide)
{
	struct npu_device *dev = device;
	struct npu_partition *part = partition;

	dev->changes++;
	part->wide = wide != 0;
	for (struct npu_mem *mem = part->bimodal; mem; mem = mem->next_bimodal)
		switch_twins(mem);
	flush(part);
	if (part->host->loaded == part)
		load_channels(part);
	for (uint32_t i = 0; i < 2; i++)
		if (part->copier[i] && part->copier[i]->slot != NPU_NO_SLOT)
			load_channels(part->copier[i]);
	return 0;
}
