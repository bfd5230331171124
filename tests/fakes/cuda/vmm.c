/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory at addresses of one's own: reservations, memory without an address, and what is
 * where.  Narrower than the driver: memory is mapped once, to be read and written by its
 * own device alone.
 */
#define _GNU_SOURCE
#include "internal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define GRANULE (UINT64_C(2) << 20)

static bool is_whole(uint64_t n)
{
	return n % GRANULE == 0;
}

static uint32_t check_prop(const struct cu_memory_prop *p)
{
	if (p->type != CU_MEMORY_PINNED || p->location.type != CU_LOCATION_DEVICE ||
	    p->handles || p->metadata || p->compression || p->rdma || p->usage)
		return CUR_INVALID_VALUE;
	return device_at(p->location.id) ? CUR_SUCCESS : CUR_INVALID_DEVICE;
}

uint32_t do_cuMemGetAllocationGranularity(size_t *bytes,
					  const struct cu_memory_prop *prop,
					  uint32_t option)
{
	*bytes = 0x6a756e6b;
	if (option > 1 || check_prop(prop))
		return CUR_INVALID_VALUE;
	*bytes = GRANULE;
	return CUR_SUCCESS;
}

/* ---- addresses --------------------------------------------------------------------- */

/* At a multiple of the granularity: what is in front of that, and behind, goes again. */
static void align(struct allocation *a, uint64_t bytes)
{
	const uint64_t begin = (a->address + GRANULE - 1) / GRANULE * GRANULE,
		       over = a->address + a->bytes - begin - bytes;

	if (begin > a->address)
		(void)munmap((void *)(uintptr_t)a->address, begin - a->address);
	if (over)
		(void)munmap((void *)(uintptr_t)(begin + bytes), over);
	a->address = begin;
	a->backing = (void *)(uintptr_t)begin;
	a->bytes = bytes;
}

uint32_t do_cuMemAddressReserve(uint64_t *address, size_t bytes, size_t alignment,
				uint64_t hint, unsigned long long flags)
{
	struct allocation *a;
	void *backing;

	*address = 0x6a756e6b;
	if (!bytes || !is_whole(bytes) || (alignment & (alignment - 1)) ||
	    alignment > GRANULE || flags)
		return CUR_INVALID_VALUE;
	(void)hint;
	a = reserve(bytes + GRANULE, PROT_NONE);
	if (!a)
		return CUR_OUT_OF_MEMORY;
	align(a, bytes);
	backing = map_bytes(bytes, PROT_READ | PROT_WRITE);
	if (!backing) {
		allocation_end(a);
		return CUR_OUT_OF_MEMORY;
	}
	a->dev = current_device();
	a->backing = backing;
	a->reserved = true;
	*address = a->address;
	return CUR_SUCCESS;
}

/* NULL: the addresses are not all of one reservation. */
static struct allocation *reservation_of(uint64_t address, uint64_t bytes)
{
	struct allocation *a;

	for (a = world.allocations; a; a = a->next)
		if (a->reserved && address >= a->address &&
		    address - a->address < a->bytes &&
		    bytes <= a->bytes - (address - a->address))
			return a;
	return NULL;
}

uint32_t do_cuMemAddressFree(uint64_t address, size_t bytes)
{
	struct allocation *a = reservation_of(address, bytes);

	if (!a || a->address != address || a->bytes != bytes) {
		misuse("cuMemAddressFree: 0x%llx is no reservation of %zu bytes",
		       (unsigned long long)address, bytes);
		return CUR_INVALID_VALUE;
	}
	if (a->mappings) {
		misuse("cuMemAddressFree: memory is mapped at 0x%llx",
		       (unsigned long long)a->mappings->address);
		return CUR_INVALID_VALUE;
	}
	allocation_end(a);
	return CUR_SUCCESS;
}

/* ---- memory ------------------------------------------------------------------------ */

uint32_t do_cuMemCreate(uint64_t *memory, size_t bytes, const struct cu_memory_prop *prop,
			unsigned long long flags)
{
	struct physical *p;
	struct device *d;
	uint32_t r = check_prop(prop);

	*memory = 0x6a756e6b;
	if (r || !bytes || !is_whole(bytes) || flags)
		return r ? r : CUR_INVALID_VALUE;
	blocks("cuMemCreate");
	d = device_at(prop->location.id);
	if (bytes > memory_left(d) || (world.limits.piece && bytes > world.limits.piece))
		return CUR_OUT_OF_MEMORY;
	p = make(OBJECT_PHYSICAL, sizeof(*p));
	if (!p)
		return CUR_OUT_OF_MEMORY;
	p->object.dev = d;
	p->bytes = bytes;
	p->users = 1;
	d->used += bytes;
	if (world.memory_left != UINT64_MAX)
		world.memory_left -= bytes;
	*memory = (uintptr_t)p;
	return CUR_SUCCESS;
}

/* It lives until neither a handle nor a mapping is left. */
static void leave_physical(struct physical *p)
{
	if (--p->users)
		return;
	p->object.dev->used -= p->bytes;
	if (world.memory_left != UINT64_MAX)
		world.memory_left += p->bytes;
}

uint32_t do_cuMemRelease(uint64_t memory)
{
	struct physical *p = get_any((void *)(uintptr_t)memory, OBJECT_PHYSICAL);

	if (!p)
		return CUR_INVALID_VALUE;
	p->object.gone = true;
	leave_physical(p);
	return CUR_SUCCESS;
}

/* ---- what is where ----------------------------------------------------------------- */

static bool overlaps(const struct mapping *m, uint64_t address, uint64_t bytes)
{
	return address < m->address + m->bytes && m->address < address + bytes;
}

uint32_t do_cuMemMap(uint64_t address, size_t bytes, size_t offset, uint64_t memory,
		     unsigned long long flags)
{
	struct physical *p = get_any((void *)(uintptr_t)memory, OBJECT_PHYSICAL);
	struct allocation *a = reservation_of(address, bytes);
	struct mapping *m;
	uint64_t at;

	if (!p || !a || !bytes || !is_whole(bytes) || !is_whole(address) || offset ||
	    flags || bytes > p->bytes)
		return CUR_INVALID_VALUE;
	for (m = a->mappings; m; m = m->next)
		if (overlaps(m, address, bytes))
			return CUR_INVALID_VALUE;
	if (p->users > 1) {
		misuse("cuMemMap: memory that is mapped already: not in the stand-in");
		return CUR_NOT_SUPPORTED;
	}
	m = calloc(1, sizeof(*m));
	if (!m)
		return CUR_OUT_OF_MEMORY;
	*m = (struct mapping){
		.next = a->mappings, .of = p, .address = address, .bytes = bytes};
	a->mappings = m;
	p->users++;
	at = address - a->address;
	memset((char *)a->backing + at, 0xa5, bytes < POISON_MOST ? bytes : POISON_MOST);
	return CUR_SUCCESS;
}

/* The range is whole mappings, one behind the other; none is cut and no place is empty.
 */
static bool is_exact(const struct allocation *a, uint64_t address, uint64_t bytes)
{
	const struct mapping *m;
	uint64_t mapped = 0;

	if (!a || !bytes)
		return false;
	for (m = a->mappings; m; m = m->next) {
		if (!overlaps(m, address, bytes))
			continue;
		if (m->address < address || m->address + m->bytes > address + bytes)
			return false;
		mapped += m->bytes;
	}
	return mapped == bytes;
}

uint32_t do_cuMemSetAccess(uint64_t address, size_t bytes, const struct cu_access *desc,
			   size_t count)
{
	struct allocation *a = reservation_of(address, bytes);
	struct mapping *m;

	blocks("cuMemSetAccess");
	if (!is_exact(a, address, bytes) || count != 1 ||
	    desc->location.type != CU_LOCATION_DEVICE)
		return CUR_INVALID_VALUE;
	if (!device_at(desc->location.id))
		return CUR_INVALID_DEVICE;
	for (m = a->mappings; m; m = m->next) {
		if (!overlaps(m, address, bytes))
			continue;
		if (m->of->object.dev != device_at(desc->location.id) ||
		    (desc->flags && desc->flags != CU_ACCESS_READ_WRITE))
			return CUR_NOT_SUPPORTED;
		m->access = desc->flags != 0;
	}
	return CUR_SUCCESS;
}

/* Its bytes are nobody's: what comes there next finds none of them. */
static void end_mapping(struct allocation *a, struct mapping **at)
{
	struct mapping *m = *at;

	*at = m->next;
	(void)madvise((char *)a->backing + (m->address - a->address), m->bytes,
		      MADV_DONTNEED);
	leave_physical(m->of);
	free(m);
}

uint32_t do_cuMemUnmap(uint64_t address, size_t bytes)
{
	const struct allocation range = {.address = address, .bytes = bytes};
	struct allocation *a = reservation_of(address, bytes);
	struct mapping **at;
	uint32_t r;

	if (!is_exact(a, address, bytes)) {
		misuse("cuMemUnmap: %zu bytes at 0x%llx are not what was mapped", bytes,
		       (unsigned long long)address);
		return CUR_INVALID_VALUE;
	}
	if (memory_busy(&range))
		misuse("cuMemUnmap: 0x%llx is in use", (unsigned long long)address);
	r = wait_free("cuMemUnmap");
	if (r)
		return r;
	for (at = &a->mappings; *at;)
		if (overlaps(*at, address, bytes))
			end_mapping(a, at);
		else
			at = &(*at)->next;
	return CUR_SUCCESS;
}
