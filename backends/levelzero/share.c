/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buffers that other devices and processes have, too: device memory as a file descriptor,
 * by the external memory of Level Zero.
 *
 * Descriptors: an import leaves the caller's descriptor open.  Who closes the one that an
 * export answers is not specified.  Intel's drivers have done all three: a new one for
 * each query and never closed; one for each allocation and never closed; one for each
 * allocation and closed by zeMemFree.  So the driver is asked once for each buffer, and
 * callers get copies.  lz_share_free closes the driver's own if zeMemFree has not.
 */
#define _GNU_SOURCE
#include "internal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/memfd/memfd.h"

/* Return the kind of descriptor to use of several. */
static uint32_t prefer(uint32_t types)
{
	return types & LZ_EXTERNAL_DMA_BUF ? LZ_EXTERNAL_DMA_BUF
					   : types & LZ_EXTERNAL_OPAQUE_FD;
}

int lz_share_read(struct lz_shape *s)
{
	struct ze_device_external_memory_properties p = {
		.stype = LZ_STYPE_DEVICE_EXTERNAL_MEMORY_PROPERTIES};
	uint32_t r;

	if (!lz.zeDeviceGetExternalMemoryProperties || !lz.zeMemGetAllocProperties)
		return 0;
	r = lz.zeDeviceGetExternalMemoryProperties(s->root, &p);
	if (r == LZ_ERROR_UNSUPPORTED_FEATURE)
		return 0;
	/* What is exported can be imported again. */
	s->export_as = prefer(p.memory_export_types & p.memory_import_types);
	s->import_as = s->export_as ? s->export_as : prefer(p.memory_import_types);
	return lz_check(r, "zeDeviceGetExternalMemoryProperties");
}

/* Ask the driver for its descriptor of mem. */
static int ask_driver(struct lz_device *dev, struct lz_mem *mem)
{
	struct ze_external_memory_fd fd = {.stype = LZ_STYPE_EXTERNAL_MEMORY_EXPORT_FD,
					   .flags = dev->shape.export_as,
					   .fd = -1};
	struct ze_memory_allocation_properties p = {
		.stype = LZ_STYPE_MEMORY_ALLOCATION_PROPERTIES, .next = &fd};
	int err = LZ(zeMemGetAllocProperties, dev->context, mem->p, &p, NULL);

	if (!err && fd.fd < 0)
		err = lz_host->fail(
			EIO, "levelzero: zeMemGetAllocProperties succeeded without "
			     "a descriptor of the buffer");
	if (!err)
		mem->fd = fd.fd;
	return err;
}

int lz_mem_export(void *device, void *memory, int *fd)
{
	struct lz_device *dev = device;
	struct lz_mem *mem = memory;
	int err = 0, copy = -1;

	pthread_mutex_lock(&dev->memory_lock);
	if (mem->fd < 0)
		err = ask_driver(dev, mem);
	if (!err)
		copy = memfd_copy(lz_host, "levelzero", mem->fd);
	pthread_mutex_unlock(&dev->memory_lock);
	if (err || copy < 0)
		return err ? err : copy;
	*fd = copy;
	return 0;
}

int lz_share_check(int fd, uint64_t bytes)
{
	const off_t at = lseek(fd, 0, SEEK_CUR), end = lseek(fd, 0, SEEK_END);

	if (at >= 0) /* a file, which a dma-buf is not */
		(void)lseek(fd, at, SEEK_SET);
	/* The driver judges a descriptor whose size nobody knows. */
	if (end < 0 || (uint64_t)end >= bytes)
		return 0;
	return lz_host->fail(EINVAL,
			     "levelzero: descriptor %d has %" PRIu64 " bytes; %" PRIu64
			     " are to be imported",
			     fd, (uint64_t)end, bytes);
}

/* Put an empty file in the place of the driver's descriptor, so that it keeps no memory.
 * Return whether that worked; then *st says which file it is. */
static bool cover(int fd, struct stat *st)
{
	const int file = memfd_create("freed", MFD_CLOEXEC);
	const bool covered =
		file >= 0 && fstat(file, st) == 0 && dup3(file, fd, O_CLOEXEC) == fd;

	if (file >= 0)
		(void)close(file);
	return covered;
}

uint32_t lz_share_free(struct lz_device *dev, void *p, int fd)
{
	struct stat empty, now;
	const bool covered = cover(fd, &empty);
	const uint32_t r = lz.zeMemFree(dev->context, p);

	/* Nobody else has the empty file: if it is still there, the driver has not closed
	 * the number, and no other thread has got it since. */
	if (!r && covered && fstat(fd, &now) == 0 && now.st_dev == empty.st_dev &&
	    now.st_ino == empty.st_ino)
		(void)close(fd);
	return r;
}
