/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory with a descriptor, of this process or another.  A dma-buf is a memory file here,
 * whose name says of which device it is, and whose size cannot change.
 */
#define _GNU_SOURCE
#include "internal.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_NAME "hal_stand_in_ze.%u"

/* What all structures of a chain begin with. */
struct link {
	uint32_t stype;
	const struct link *next;
};

void share_reset(void)
{
	world.export_types = world.import_types = LZ_EXTERNAL_DMA_BUF;
	world.leaves_exports = false;
}

uint32_t
do_zeDeviceGetExternalMemoryProperties(void *device,
				       struct ze_device_external_memory_properties *p)
{
	const struct device *dev = device;

	if (!dev || dev->object.kind != OBJECT_DEVICE)
		return LZ_ERROR_INVALID_NULL_HANDLE;
	if (p->stype != LZ_STYPE_DEVICE_EXTERNAL_MEMORY_PROPERTIES)
		return LZ_ERROR_INVALID_ARGUMENT;
	p->memory_import_types = world.import_types;
	p->memory_export_types = world.export_types;
	p->image_import_types = p->image_export_types = 0;
	return LZ_SUCCESS;
}

static const void *find(const void *chain, uint32_t stype)
{
	const struct link *l = chain;

	while (l && l->stype != stype)
		l = l->next;
	return l;
}

bool is_external(const void *more)
{
	return find(more, LZ_STYPE_EXTERNAL_MEMORY_EXPORT_DESC) ||
	       find(more, LZ_STYPE_EXTERNAL_MEMORY_IMPORT_FD);
}

/* Is it one type, and one of these? */
static bool is_one_of(uint32_t flags, uint32_t types)
{
	return flags && !(flags & (flags - 1)) && (flags & types);
}

static uint32_t map(struct allocation *a, int fd, size_t bytes)
{
	a->backing = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (a->backing == MAP_FAILED) {
		a->backing = NULL;
		return LZ_ERROR_OUT_OF_HOST_MEMORY;
	}
	a->mapped = true;
	return LZ_SUCCESS;
}

static uint32_t make_file(struct allocation *a, const struct device *dev, size_t bytes,
			  uint32_t flags)
{
	char name[64];

	if (!is_one_of(flags, world.export_types))
		return LZ_ERROR_UNSUPPORTED_ENUMERATION;
	snprintf(name, sizeof(name), FILE_NAME, dev->root->index);
	a->file = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (a->file < 0)
		return LZ_ERROR_OUT_OF_HOST_MEMORY;
	if (ftruncate(a->file, (off_t)bytes) != 0 ||
	    fcntl(a->file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0 ||
	    map(a, a->file, bytes)) {
		close(a->file);
		return LZ_ERROR_OUT_OF_HOST_MEMORY;
	}
	return LZ_SUCCESS;
}

/* A driver takes what it has exported itself, of the same device. */
static bool is_ours(int fd, const struct device *dev)
{
	char path[64], name[128] = "", ours[128];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	snprintf(ours, sizeof(ours), "/memfd:" FILE_NAME " (deleted)", dev->root->index);
	return readlink(path, name, sizeof(name) - 1) > 0 && strcmp(name, ours) == 0;
}

static uint32_t open_file(struct allocation *a, const struct device *dev, size_t bytes,
			  const struct ze_external_memory_fd *from)
{
	struct stat st;

	if (!is_one_of(from->flags, world.import_types))
		return LZ_ERROR_UNSUPPORTED_ENUMERATION;
	if (!is_ours(from->fd, dev) || fstat(from->fd, &st) != 0)
		return LZ_ERROR_INVALID_ARGUMENT;
	if ((uint64_t)st.st_size < bytes) {
		/* Intel's driver does not notice. */
		misuse("more bytes are imported than the descriptor has");
		return LZ_ERROR_INVALID_SIZE;
	}
	return map(a, from->fd, bytes);
}

uint32_t share_back(struct allocation *a, const struct device *dev, size_t bytes,
		    const void *more)
{
	const struct ze_external_memory_export_desc *to =
		find(more, LZ_STYPE_EXTERNAL_MEMORY_EXPORT_DESC);
	const struct ze_external_memory_fd *from =
		find(more, LZ_STYPE_EXTERNAL_MEMORY_IMPORT_FD);

	if (to && from)
		return LZ_ERROR_INVALID_ARGUMENT;
	/* Of a device of several tiles it would be several pieces, each with its own. */
	if (dev->sub < 0 && dev->spec->tiles > 1) {
		misuse("memory of several tiles cannot be behind one descriptor");
		return LZ_ERROR_UNSUPPORTED_FEATURE;
	}
	return to ? make_file(a, dev, bytes, to->flags) : open_file(a, dev, bytes, from);
}

void share_free(struct allocation *a, size_t bytes)
{
	munmap(a->backing, bytes);
	if (a->file >= 0)
		close(a->file);
	if (a->given >= 0 && close(a->given) != 0)
		misuse("a descriptor was closed that zeMemFree closes");
}

static uint32_t give(struct allocation *a, struct ze_external_memory_fd *to)
{
	if (!is_one_of(to->flags, world.export_types))
		return LZ_ERROR_UNSUPPORTED_ENUMERATION;
	if (!a->mapped || a->file < 0) {
		misuse("memory was exported that was not allocated for it");
		return LZ_ERROR_INVALID_ARGUMENT;
	}
	to->fd = a->given >= 0 ? a->given : fcntl(a->file, F_DUPFD_CLOEXEC, 0);
	if (to->fd < 0)
		return LZ_ERROR_OUT_OF_HOST_MEMORY;
	if (!world.leaves_exports)
		a->given = to->fd;
	return LZ_SUCCESS;
}

uint32_t do_zeMemGetAllocProperties(void *context, const void *p,
				    struct ze_memory_allocation_properties *properties,
				    void **device)
{
	const struct context *ctx = context;
	struct allocation *a = *find_allocation(p);
	struct link *more;

	if (!ctx || ctx->object.kind != OBJECT_CONTEXT)
		return LZ_ERROR_INVALID_NULL_HANDLE;
	if (properties->stype != LZ_STYPE_MEMORY_ALLOCATION_PROPERTIES)
		return LZ_ERROR_INVALID_ARGUMENT;
	properties->type = !a                   ? LZ_MEMORY_UNKNOWN
			   : !a->dev            ? LZ_MEMORY_HOST
			   : a->p != a->backing ? LZ_MEMORY_DEVICE
						: LZ_MEMORY_SHARED;
	if (device)
		*device = a ? a->dev : NULL;
	more = properties->next;
	if (!a || !more)
		return LZ_SUCCESS;
	if (more->stype != LZ_STYPE_EXTERNAL_MEMORY_EXPORT_FD)
		return LZ_ERROR_INVALID_ENUMERATION;
	return give(a, (struct ze_external_memory_fd *)more);
}
