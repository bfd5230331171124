/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory at reserved addresses.  A mapping is an allocation with a physical object.
 * All sizes are whole pages of the size that a query answers for them.  Releases of
 * Intel's driver differ: 64 KiB for all, or more for larger memory, as here.
 */
#define _GNU_SOURCE
#include "internal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define SMALL_PAGE ((size_t)64 << 10)
#define LARGE_PAGE ((size_t)2 << 20)

/* HAL_STAND_IN_ZE_VIRTUAL=reserve: a driver that reserves addresses and has no memory for
 * them; =0: one without any of it. */
static bool lacks(const char *part)
{
	const char *text = getenv("HAL_STAND_IN_ZE_VIRTUAL");

	return text && (strcmp(text, "0") == 0 || strcmp(text, part) == 0);
}

static size_t page_of(size_t bytes)
{
	return bytes < LARGE_PAGE ? SMALL_PAGE : LARGE_PAGE;
}

static bool is_whole(size_t bytes)
{
	return bytes && bytes % page_of(bytes) == 0;
}

bool is_reserved(uint64_t address, uint64_t bytes)
{
	const struct reservation *r;

	for (r = world.reservations; r; r = r->next)
		if (address < (uintptr_t)r->p + r->bytes &&
		    (uintptr_t)r->p < address + bytes)
			return true;
	return false;
}

static const struct context *context_of(const void *context)
{
	const struct context *ctx = context;

	return ctx && ctx->object.kind == OBJECT_CONTEXT ? ctx : NULL;
}

static const struct device *device_of(const void *device)
{
	const struct device *dev = device;

	return dev && dev->object.kind == OBJECT_DEVICE ? dev : NULL;
}

/* ---- addresses ----------------------------------------------------------------------- */

uint32_t do_zeVirtualMemQueryPageSize(void *context, void *device, size_t bytes,
				      size_t *page)
{
	if (lacks("query"))
		return LZ_ERROR_UNSUPPORTED_FEATURE;
	if (!context_of(context) || !device_of(device))
		return LZ_ERROR_INVALID_NULL_HANDLE;
	if (!page)
		return LZ_ERROR_INVALID_NULL_POINTER;
	if (!bytes)
		return LZ_ERROR_UNSUPPORTED_SIZE;
	*page = page_of(bytes);
	return LZ_SUCCESS;
}

/* Addresses at a multiple of align.  Nobody can read there: what is mapped has its bytes
 * elsewhere. */
static void *take_addresses(size_t bytes, size_t align)
{
	char *all = mmap(NULL, bytes + align, PROT_NONE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	size_t before;

	if (all == MAP_FAILED)
		return NULL;
	before = (align - (uintptr_t)all % align) % align;
	if (before)
		munmap(all, before);
	munmap(all + before + bytes, align - before);
	return all + before;
}

uint32_t do_zeVirtualMemReserve(void *context, const void *start, size_t bytes, void **p)
{
	struct context *ctx = context;
	struct reservation *r;

	(void)start; /* a wish */
	if (lacks("query"))
		return LZ_ERROR_UNSUPPORTED_FEATURE;
	if (!context_of(ctx))
		return LZ_ERROR_INVALID_NULL_HANDLE;
	if (!is_whole(bytes))
		return LZ_ERROR_UNSUPPORTED_SIZE;
	r = calloc(1, sizeof(*r));
	if (!r)
		return LZ_ERROR_OUT_OF_HOST_MEMORY;
	r->p = take_addresses(bytes, page_of(bytes));
	if (!r->p) {
		free(r);
		return LZ_ERROR_OUT_OF_HOST_MEMORY;
	}
	r->ctx = ctx;
	r->bytes = bytes;
	r->next = world.reservations;
	world.reservations = r;
	world.live++;
	ctx->children++;
	*p = r->p;
	return LZ_SUCCESS;
}

static bool is_mapped(const void *p, size_t bytes)
{
	const struct allocation *a;

	for (a = world.allocations; a; a = a->next)
		if (a->physical && (uintptr_t)a->p < (uintptr_t)p + bytes &&
		    (uintptr_t)p < (uintptr_t)a->p + a->bytes)
			return true;
	return false;
}

/* Where the list has the mapping of exactly these addresses, or NULL. */
static struct allocation **find_mapping(const void *p, size_t bytes)
{
	struct allocation **at = &world.allocations;

	while (*at && (!(*at)->physical || (*at)->p != p || (*at)->bytes != bytes))
		at = &(*at)->next;
	return at;
}

static void unmap(struct allocation **at)
{
	struct allocation *a = *at;

	if (memory_busy(a))
		misuse("memory was unmapped while a command uses it");
	*at = a->next;
	a->physical->mapped = false;
	world.live--;
	free(a);
}

uint32_t do_zeVirtualMemFree(void *context, const void *p, size_t bytes)
{
	struct reservation **at = &world.reservations, *r;
	struct allocation **mapping;

	if (!context_of(context))
		return LZ_ERROR_INVALID_NULL_HANDLE;
	while (*at && ((*at)->p != p || (*at)->bytes != bytes))
		at = &(*at)->next;
	r = *at;
	if (!r)
		return LZ_ERROR_INVALID_ARGUMENT;
	/* What is mapped there is unmapped. */
	mapping = find_mapping(p, bytes);
	if (*mapping)
		unmap(mapping);
	if (is_mapped(p, bytes))
		misuse("addresses were freed of which a part is mapped");
	*at = r->next;
	munmap(r->p, r->bytes);
	r->ctx->children--;
	world.live--;
	free(r);
	return LZ_SUCCESS;
}

/* ---- memory -------------------------------------------------------------------------- */

uint32_t do_zePhysicalMemCreate(void *context, void *device,
				struct ze_physical_mem_desc *desc, void **physical)
{
	struct context *ctx = context;
	struct device *dev = device;
	struct physical *m;

	if (lacks("reserve"))
		return LZ_ERROR_UNSUPPORTED_FEATURE;
	if (!context_of(ctx) || !device_of(dev))
		return LZ_ERROR_INVALID_NULL_HANDLE;
	if (desc->stype != LZ_STYPE_PHYSICAL_MEM_DESC || desc->flags)
		return LZ_ERROR_INVALID_ENUMERATION;
	if (!is_whole(desc->size))
		return LZ_ERROR_UNSUPPORTED_SIZE;
	dev = dev->root;
	if (dev->lost)
		return LZ_ERROR_DEVICE_LOST;
	if (dev->used + desc->size > dev->spec->tile_memory * dev->spec->tiles ||
	    desc->size > world.memory_left)
		return LZ_ERROR_OUT_OF_DEVICE_MEMORY;
	m = create(sizeof(*m), OBJECT_PHYSICAL);
	if (!m)
		return LZ_ERROR_OUT_OF_HOST_MEMORY;
	m->backing = aligned_alloc(4096, desc->size);
	if (!m->backing) {
		destroy(&m->object);
		return LZ_ERROR_OUT_OF_HOST_MEMORY;
	}
	/* Like memory that somebody else has used. */
	memset(m->backing, 0xd5, desc->size);
	m->ctx = ctx;
	m->dev = dev;
	m->bytes = desc->size;
	dev->used += m->bytes;
	if (world.memory_left != UINT64_MAX)
		world.memory_left -= m->bytes;
	ctx->children++;
	*physical = m;
	return LZ_SUCCESS;
}

uint32_t do_zePhysicalMemDestroy(void *context, void *physical)
{
	struct physical *m = physical;

	if (!context_of(context) || !m || m->object.kind != OBJECT_PHYSICAL)
		return LZ_ERROR_INVALID_NULL_HANDLE;
	/* Intel's driver does not notice. */
	if (m->mapped) {
		misuse("memory was destroyed while it is mapped");
		return LZ_ERROR_HANDLE_OBJECT_IN_USE;
	}
	m->dev->used -= m->bytes;
	if (world.memory_left != UINT64_MAX)
		world.memory_left += m->bytes;
	m->ctx->children--;
	free(m->backing);
	return destroy(&m->object);
}

/* ---- mappings ------------------------------------------------------------------------ */

static bool is_inside(const void *p, size_t bytes)
{
	const struct reservation *r;

	for (r = world.reservations; r; r = r->next) {
		const uint64_t at = (uintptr_t)p - (uintptr_t)r->p;

		if (at <= r->bytes && bytes <= r->bytes - at)
			return true;
	}
	return false;
}

uint32_t do_zeVirtualMemMap(void *context, const void *p, size_t bytes, void *physical,
			    size_t offset, uint32_t access)
{
	struct physical *m = physical;
	struct allocation *a;

	if (lacks("reserve"))
		return LZ_ERROR_UNSUPPORTED_FEATURE;
	if (!context_of(context) || !m || m->object.kind != OBJECT_PHYSICAL)
		return LZ_ERROR_INVALID_NULL_HANDLE;
	if (access > LZ_PAGES_READONLY)
		return LZ_ERROR_INVALID_ENUMERATION;
	if (!bytes)
		return LZ_ERROR_UNSUPPORTED_SIZE;
	if (!is_whole(bytes) || (uintptr_t)p % page_of(bytes) || offset % SMALL_PAGE)
		return LZ_ERROR_UNSUPPORTED_ALIGNMENT;
	if (!is_inside(p, bytes) || is_mapped(p, bytes) || m->mapped ||
	    bytes > m->bytes || offset > m->bytes - bytes) {
		misuse("memory was mapped where it cannot be");
		return LZ_ERROR_INVALID_ARGUMENT;
	}
	if (m->dev->lost)
		return LZ_ERROR_DEVICE_LOST;
	if (access != LZ_PAGES_READWRITE)
		return LZ_ERROR_UNSUPPORTED_ENUMERATION; /* of no use to anyone here */
	a = calloc(1, sizeof(*a));
	if (!a)
		return LZ_ERROR_OUT_OF_HOST_MEMORY;
	a->dev = m->dev;
	a->p = (void *)(uintptr_t)p;
	a->backing = (char *)m->backing + offset;
	a->bytes = bytes;
	a->file = a->given = -1;
	a->physical = m;
	m->mapped = true;
	enter_allocation(a);
	world.live++;
	return LZ_SUCCESS;
}

uint32_t do_zeVirtualMemUnmap(void *context, const void *p, size_t bytes)
{
	struct allocation **at = find_mapping(p, bytes);

	if (lacks("reserve"))
		return LZ_ERROR_UNSUPPORTED_FEATURE;
	if (!context_of(context))
		return LZ_ERROR_INVALID_NULL_HANDLE;
	if (!p)
		return LZ_ERROR_INVALID_NULL_POINTER;
	if (!is_whole(bytes))
		return LZ_ERROR_UNSUPPORTED_SIZE;
	if (*at)
		unmap(at);
	else if (is_mapped(p, bytes) || !is_inside(p, bytes))
		misuse("addresses were unmapped that are no mapping");
	return LZ_SUCCESS;
}
