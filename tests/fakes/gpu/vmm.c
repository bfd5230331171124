/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory at addresses of one's own: reservations, memory without an address, and what is
 * where.  Narrower than the drivers: memory is read and written by its own device alone,
 * and mapped once unless it can be exported.
 *
 * What can be exported is a memory file, so that another process with a stand-in really
 * shares it.  Its name says whose it is, and of which device.
 */
#define _GNU_SOURCE
#include "world.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Results, as CUDA and HIP both number them. */
enum { INVALID_DEVICE = 101, NOT_SUPPORTED = 801 };

/* The file behind memory that can be exported, once a process. */
struct store {
	struct store *next;
	uint64_t inode, bytes;
	int fd;
	uint32_t users;     /* of this process: struct physical */
	struct device *dev; /* whose memory it counts as; NULL: another process's */
};

static bool is_whole(uint64_t n)
{
	return n % face.vmm_granule == 0;
}

/* ---- addresses --------------------------------------------------------------------- */

/* At a multiple of the granularity: what is in front of that, and behind, goes again. */
static void align(struct allocation *a, uint64_t bytes)
{
	const uint64_t granule = face.vmm_granule;
	const uint64_t begin = (a->address + granule - 1) / granule * granule,
		       over = a->address + a->bytes - begin - bytes;

	if (begin > a->address)
		(void)munmap((void *)(uintptr_t)a->address, begin - a->address);
	if (over)
		(void)munmap((void *)(uintptr_t)(begin + bytes), over);
	a->address = begin;
	a->backing = (void *)(uintptr_t)begin;
	a->bytes = bytes;
}

uint32_t vmm_reserve(uint64_t *address, size_t bytes, size_t alignment,
		     unsigned long long flags)
{
	struct allocation *a;
	void *backing;

	*address = 0x6a756e6b;
	if (!bytes || !is_whole(bytes) || (alignment & (alignment - 1)) ||
	    alignment > face.vmm_granule || flags)
		return GPU_INVALID_VALUE;
	a = reserve(bytes + face.vmm_granule, PROT_NONE);
	if (!a)
		return GPU_OUT_OF_MEMORY;
	align(a, bytes);
	backing = map_bytes(bytes, PROT_READ | PROT_WRITE);
	if (!backing) {
		allocation_end(a);
		return GPU_OUT_OF_MEMORY;
	}
	a->dev = current_device();
	a->backing = backing;
	a->reserved = true;
	*address = a->address;
	return GPU_SUCCESS;
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

uint32_t vmm_free(uint64_t address, size_t bytes, const char *call)
{
	struct allocation *a = reservation_of(address, bytes);

	if (!a || a->address != address || a->bytes != bytes) {
		misuse("%s: 0x%llx is no reservation of %zu bytes", call,
		       (unsigned long long)address, bytes);
		return GPU_INVALID_VALUE;
	}
	if (a->mappings) {
		misuse("%s: memory is mapped at 0x%llx", call,
		       (unsigned long long)a->mappings->address);
		return GPU_INVALID_VALUE;
	}
	allocation_end(a);
	return GPU_SUCCESS;
}

/* ---- memory ------------------------------------------------------------------------ */

/* Zeros; the file's name is seen by whom it is passed to. */
static int make_file(const struct device *d, uint64_t bytes)
{
	char name[64];
	int fd;

	snprintf(name, sizeof(name), "%s%u", face.environment, d->index);
	fd = memfd_create(name, MFD_CLOEXEC);
	if (fd >= 0 && ftruncate(fd, (off_t)bytes)) {
		close(fd);
		return -1;
	}
	return fd;
}

/* A file's bytes are as dirty as other fresh memory. */
static void poison_file(int fd, uint64_t bytes)
{
	unsigned char dirt[4096];
	uint64_t at;

	memset(dirt, 0xa5, sizeof(dirt));
	for (at = 0; at < bytes && at < POISON_MOST; at += sizeof(dirt))
		(void)!pwrite(fd, dirt, sizeof(dirt), (off_t)at);
}

/* The descriptor becomes the store's own.  NULL: it is closed. */
static struct store *make_store(int fd, uint64_t inode, uint64_t bytes)
{
	struct store *st = calloc(1, sizeof(*st));

	if (!st) {
		close(fd);
		return NULL;
	}
	*st = (struct store){
		.next = world.stores, .inode = inode, .bytes = bytes, .fd = fd};
	world.stores = st;
	return st;
}

static void leave_store(struct store *st)
{
	struct store **at = &world.stores;

	if (--st->users)
		return;
	if (st->dev)
		st->dev->used -= st->bytes;
	if (st->dev && world.memory_left != UINT64_MAX)
		world.memory_left += st->bytes;
	while (*at != st)
		at = &(*at)->next;
	*at = st->next;
	close(st->fd);
	free(st);
}

static void charge(struct device *d, uint64_t bytes)
{
	d->used += bytes;
	if (world.memory_left != UINT64_MAX)
		world.memory_left -= bytes;
}

static struct physical *make_physical(struct device *d, uint64_t bytes, struct store *st)
{
	struct physical *p = make(OBJECT_PHYSICAL, sizeof(*p));

	if (!p)
		return NULL;
	p->object.dev = d;
	p->bytes = bytes;
	p->users = p->handles = 1;
	p->store = st;
	if (st)
		st->users++;
	return p;
}

uint32_t vmm_create(uint64_t *memory, size_t bytes, struct device *d, bool exported,
		    unsigned long long flags, const char *call)
{
	struct store *st = NULL;
	struct physical *p;
	struct stat s;
	int fd;

	*memory = 0x6a756e6b;
	if (!bytes || !is_whole(bytes) || flags)
		return GPU_INVALID_VALUE;
	blocks(call);
	if (bytes > memory_left(d) || (world.limits.piece && bytes > world.limits.piece))
		return GPU_OUT_OF_MEMORY;
	if (exported) {
		fd = make_file(d, bytes);
		if (fd < 0 || fstat(fd, &s))
			return GPU_OUT_OF_MEMORY;
		poison_file(fd, bytes);
		st = make_store(fd, s.st_ino, bytes);
		if (!st)
			return GPU_OUT_OF_MEMORY;
		st->dev = d;
	}
	p = make_physical(d, bytes, st);
	if (!p)
		return GPU_OUT_OF_MEMORY;
	charge(d, bytes);
	*memory = (uintptr_t)p;
	return GPU_SUCCESS;
}

/* It lives until neither a handle nor a mapping is left. */
static void leave_physical(struct physical *p)
{
	if (--p->users)
		return;
	if (p->store) {
		leave_store(p->store);
		p->store = NULL;
		return;
	}
	p->object.dev->used -= p->bytes;
	if (world.memory_left != UINT64_MAX)
		world.memory_left += p->bytes;
}

void vmm_forget(struct physical *p)
{
	if (!p->users)
		return;
	p->users = 1;
	leave_physical(p);
}

uint32_t vmm_release(uint64_t memory)
{
	struct physical *p = get_any((void *)(uintptr_t)memory, OBJECT_PHYSICAL);

	if (!p)
		return GPU_INVALID_VALUE;
	p->object.gone = !--p->handles;
	leave_physical(p);
	return GPU_SUCCESS;
}

/* ---- what several processes have ----------------------------------------------------- */

/* The handle of a mapping, counted once more. */
uint32_t vmm_retain(uint64_t *memory, uint64_t address)
{
	const struct mapping *m = NULL;
	struct allocation *a;

	*memory = 0x6a756e6b;
	for (a = world.allocations; a && !m; a = a->next)
		for (m = a->mappings; m; m = m->next)
			if (address >= m->address && address - m->address < m->bytes)
				break;
	if (!m)
		return GPU_INVALID_VALUE;
	m->of->object.gone = false;
	m->of->handles++;
	m->of->users++;
	*memory = (uintptr_t)m->of;
	return GPU_SUCCESS;
}

/* As some drivers do, without FD_CLOEXEC. */
uint32_t vmm_export(int *fd, uint64_t memory, unsigned long long flags)
{
	const struct physical *p = get_any((void *)(uintptr_t)memory, OBJECT_PHYSICAL);

	*fd = 0x6a756e6b;
	if (!p || flags || !p->store || p->imported)
		return GPU_INVALID_VALUE;
	*fd = dup(p->store->fd);
	return *fd < 0 ? GPU_OPERATING_SYSTEM : GPU_SUCCESS;
}

/* NULL: the descriptor is not of memory that such a driver has exported. */
static struct device *device_of_file(int fd, uint32_t devices)
{
	char path[32], name[128], prefix[64];
	uint32_t i;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	n = readlink(path, name, sizeof(name) - 1);
	name[n < 0 ? 0 : n] = 0;
	for (i = 0; i < devices; i++) {
		snprintf(prefix, sizeof(prefix), "/memfd:%s%u (", face.environment, i);
		if (strncmp(name, prefix, strlen(prefix)) == 0)
			return &world.devices[i];
	}
	return NULL;
}

static struct store *store_of(int fd)
{
	struct store *st = world.stores;
	struct stat s;
	int own;

	if (fstat(fd, &s))
		return NULL;
	while (st && st->inode != s.st_ino)
		st = st->next;
	if (st)
		return st;
	own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	return own < 0 ? NULL : make_store(own, s.st_ino, (uint64_t)s.st_size);
}

uint32_t vmm_import(uint64_t *memory, int fd, uint32_t devices)
{
	struct device *d = device_of_file(fd, devices);
	struct physical *p;
	struct store *st;

	*memory = 0x6a756e6b;
	st = d ? store_of(fd) : NULL;
	p = st ? make_physical(d, st->bytes, st) : NULL;
	if (!p)
		return GPU_INVALID_VALUE;
	p->imported = true;
	*memory = (uintptr_t)p;
	return GPU_SUCCESS;
}

/* ---- what is where ----------------------------------------------------------------- */

static bool overlaps(const struct mapping *m, uint64_t address, uint64_t bytes)
{
	return address < m->address + m->bytes && m->address < address + bytes;
}

/* The bytes of a reservation, from at on, are the file's; fd -1: fresh ones. */
static bool back(struct allocation *a, uint64_t at, uint64_t bytes, int fd)
{
	const int how = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE : MAP_SHARED;

	return syscall(SYS_mmap, (char *)a->backing + at, bytes, PROT_READ | PROT_WRITE,
		       MAP_FIXED | how, fd, 0L) != -1;
}

uint32_t vmm_map(uint64_t address, size_t bytes, size_t offset, uint64_t memory,
		 unsigned long long flags, const char *call)
{
	struct physical *p = get_any((void *)(uintptr_t)memory, OBJECT_PHYSICAL);
	struct allocation *a = reservation_of(address, bytes);
	struct mapping *m;
	uint64_t at;

	if (!p || !a || !bytes || !is_whole(bytes) || !is_whole(address) || offset ||
	    flags || bytes > p->bytes)
		return GPU_INVALID_VALUE;
	for (m = a->mappings; m; m = m->next)
		if (overlaps(m, address, bytes))
			return GPU_INVALID_VALUE;
	if (!p->store && p->users > 1) {
		misuse("%s: memory that is mapped already: not in the stand-in", call);
		return NOT_SUPPORTED;
	}
	m = calloc(1, sizeof(*m));
	if (!m)
		return GPU_OUT_OF_MEMORY;
	*m = (struct mapping){
		.next = a->mappings, .of = p, .address = address, .bytes = bytes};
	a->mappings = m;
	p->users++;
	at = address - a->address;
	if (p->store)
		return back(a, at, bytes, p->store->fd) ? GPU_SUCCESS : GPU_UNKNOWN;
	memset((char *)a->backing + at, 0xa5, bytes < POISON_MOST ? bytes : POISON_MOST);
	return GPU_SUCCESS;
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

uint32_t vmm_access(uint64_t address, size_t bytes, const struct device *d, bool on,
		    const char *call)
{
	struct allocation *a = reservation_of(address, bytes);
	struct mapping *m;

	blocks(call);
	if (!is_exact(a, address, bytes))
		return GPU_INVALID_VALUE;
	if (!d)
		return INVALID_DEVICE;
	for (m = a->mappings; m; m = m->next)
		if (overlaps(m, address, bytes) && m->of->object.dev != d)
			return NOT_SUPPORTED;
	for (m = a->mappings; m; m = m->next)
		if (overlaps(m, address, bytes))
			m->access = on;
	return GPU_SUCCESS;
}

/* Its bytes are nobody's: what comes there next finds none of them. */
static void end_mapping(struct allocation *a, struct mapping **at)
{
	struct mapping *m = *at;

	*at = m->next;
	if (m->of->store)
		(void)back(a, m->address - a->address, m->bytes, -1);
	else
		(void)madvise((char *)a->backing + (m->address - a->address), m->bytes,
			      MADV_DONTNEED);
	leave_physical(m->of);
	free(m);
}

uint32_t vmm_unmap(uint64_t address, size_t bytes, const char *call)
{
	const struct allocation range = {.address = address, .bytes = bytes};
	struct allocation *a = reservation_of(address, bytes);
	struct mapping **at;
	uint32_t r;

	if (!is_exact(a, address, bytes)) {
		misuse("%s: %zu bytes at 0x%llx are not what was mapped", call, bytes,
		       (unsigned long long)address);
		return GPU_INVALID_VALUE;
	}
	if (memory_busy(&range))
		misuse("%s: 0x%llx is in use", call, (unsigned long long)address);
	r = wait_free(call);
	if (r)
		return r;
	for (at = &a->mappings; *at;)
		if (overlaps(*at, address, bytes))
			end_mapping(a, at);
		else
			at = &(*at)->next;
	return GPU_SUCCESS;
}
