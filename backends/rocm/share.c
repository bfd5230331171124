/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buffers that several partitions and processes have by file descriptor: device memory
 * that HIP has made for it, at addresses of its own.
 *
 * What releases of HIP do differs.  The first ones have the calls and export nothing, so
 * it is tried out when the device is opened.  Before 7.1 an import is told where the
 * descriptor is, and since then the descriptor itself.  Some export memory only once, so
 * that is done when it is made; each descriptor that is asked for is a copy of that one.
 *
 * Buffers that may be evicted are made in the same way, but not exported: a buffer keeps
 * its addresses, as kernels may have stored some, and its memory is mapped anew.
 */
#define _GNU_SOURCE
#include "internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "backends/memfd/memfd.h"

bool rocm_share_calls(const struct rocm_shape *s)
{
#define HAS(name, params, args) &&hip.name
	return s->version >= HIP_VERSION_OF(6, 0) HIP_SHARE_CALLS(HAS);
#undef HAS
}

static struct hip_memory_prop prop_of(const struct rocm_device *dev)
{
	return (struct hip_memory_prop){
		.type = HIP_MEMORY_PINNED,
		.handle = HIP_HANDLE_FD,
		.location = {HIP_LOCATION_DEVICE, dev->shape.device}};
}

/* Twice, as nobody tries again. */
static void release(void *memory)
{
	if (hip.hipMemRelease(memory))
		(void)hip.hipMemRelease(memory);
}

/* ---- whether it works ---------------------------------------------------------------- */

/* Make memory and export it.  Return HIP's result; *call: of which call. */
static uint32_t try_out(const struct rocm_device *dev, size_t *granule, const char **call)
{
	const struct hip_memory_prop prop = prop_of(dev);
	void *memory = NULL;
	uint32_t r;
	int fd = -1;

	*call = "hipMemGetAllocationGranularity";
	r = hip.hipMemGetAllocationGranularity(granule, &prop, HIP_GRANULARITY_MINIMUM);
	if (r)
		return r;
	*call = "hipMemCreate";
	r = hip.hipMemCreate(&memory, *granule, &prop, 0);
	if (r)
		return r;
	*call = "hipMemExportToShareableHandle";
	r = hip.hipMemExportToShareableHandle(&fd, memory, HIP_HANDLE_FD, 0);
	if (!r)
		(void)close(fd);
	release(memory);
	return r;
}

int rocm_share_open(struct rocm_device *dev)
{
	size_t granule = 0;

	if (dev->opt.host_memory || !dev->shape.vmm)
		return 0;
	dev->share.result = try_out(dev, &granule, &dev->share.call);
	if (rocm_sticky(dev->share.result))
		return rocm_check(dev, dev->share.result, dev->share.call);
	if (!dev->share.result)
		dev->share.granule = granule;
	return 0;
}

void rocm_share_close(struct rocm_device *dev)
{
	struct rocm_mapping *m;

	while ((m = dev->share.mappings)) {
		dev->share.mappings = m->older;
		free(m);
	}
	pthread_mutex_destroy(&dev->share.lock);
}

static int check(const struct rocm_device *dev, uint64_t bytes)
{
	const uint64_t left = stream_bytes_left(&dev->memory);

	if (dev->opt.host_memory)
		return rocm_host->fail(ENOTSUP,
				       "rocm:%u: with memory=host buffers cannot be "
				       "exported or imported",
				       dev->index);
	if (dev->share.result)
		return rocm_host->fail(
			ENOTSUP, "rocm:%u: memory cannot be exported: %s: %s (%u)",
			dev->index, dev->share.call, rocm_result_name(dev->share.result),
			dev->share.result);
	if (!dev->share.granule)
		return rocm_host->fail(
			ENOTSUP,
			"rocm:%u: memory cannot be exported: it takes HIP 6.0 or later "
			"and a device with virtual memory management",
			dev->index);
	if (bytes > left)
		return rocm_host->fail(
			ENOSPC, "rocm: %" PRIu64 " bytes requested, %" PRIu64 " are free",
			bytes, left);
	return 0;
}

/* ---- mappings -------------------------------------------------------------------------
 */

static void forget(struct rocm_device *dev, struct rocm_mapping *m)
{
	struct rocm_mapping **at = &dev->share.mappings;

	pthread_mutex_lock(&dev->share.lock);
	while (*at != m)
		at = &(*at)->older;
	*at = m->older;
	pthread_mutex_unlock(&dev->share.lock);
	free(m);
}

int rocm_mapping_end(struct rocm_device *dev, struct rocm_mapping *m)
{
	int err = m->mapped ? HIP(dev, hipMemUnmap, m->address, m->bytes) : 0;

	if (err)
		return err;
	m->mapped = false;
	err = HIP(dev, hipMemAddressFree, m->address, m->bytes);
	if (!err)
		forget(dev, m);
	return err;
}

static int reserve(struct rocm_device *dev, uint64_t bytes, struct rocm_mapping **out)
{
	struct rocm_mapping *m = calloc(1, sizeof(*m));
	int err;

	if (!m)
		return rocm_host->fail(ENOMEM, "rocm: no memory for a buffer");
	m->bytes = bytes;
	err = HIP(dev, hipMemAddressReserve, &m->address, bytes, 0, NULL, 0);
	if (err) {
		free(m);
		return err;
	}
	pthread_mutex_lock(&dev->share.lock);
	m->older = dev->share.mappings;
	dev->share.mappings = m;
	pthread_mutex_unlock(&dev->share.lock);
	*out = m;
	return 0;
}

/* Map memory, whose handle stays the caller's, at m. */
static int map_at(struct rocm_device *dev, struct rocm_mapping *m, void *memory)
{
	const struct hip_access access = {{HIP_LOCATION_DEVICE, dev->shape.device},
					  HIP_ACCESS_READ_WRITE};
	int err = HIP(dev, hipMemMap, m->address, m->bytes, 0, memory, 0);

	m->mapped = !err;
	return err ? err : HIP(dev, hipMemSetAccess, m->address, m->bytes, &access, 1);
}

/* Map memory, whose handle stays the caller's, for mem. */
static int map(struct rocm_device *dev, struct rocm_mem *mem, uint64_t bytes,
	       void *memory)
{
	struct rocm_mapping *m = NULL;
	int err = reserve(dev, bytes, &m), unseen = 0;

	if (err || !m)
		return err;
	err = map_at(dev, m, memory);
	if (err) {
		rocm_give_back(dev, ROCM_KIND_MAPPING, m, &unseen);
		return err;
	}
	mem->mapping = m;
	mem->address = m->address;
	return 0;
}

/* ---- buffers -------------------------------------------------------------------------- */

static int take_bytes(struct rocm_device *dev, uint64_t bytes)
{
	uint64_t left;

	return stream_bytes_take(&dev->memory, bytes, &left)
		       ? 0
		       : rocm_host->fail(ENOSPC,
					 "rocm: %" PRIu64 " bytes requested, %" PRIu64
					 " are free",
					 bytes, left);
}

static int take(struct rocm_device *dev, const struct rocm_mem *mem, uint64_t *bytes)
{
	const uint64_t granule = dev->share.granule;
	int err = check(dev, mem->bytes);

	if (err)
		return err;
	*bytes = (mem->bytes + granule - 1) / granule * granule;
	return take_bytes(dev, *bytes);
}

static int create(struct rocm_device *dev, uint64_t bytes, void **memory)
{
	const struct hip_memory_prop prop = prop_of(dev);
	const uint64_t mark = rocm_room_mark(dev);
	uint32_t r = hip.hipMemCreate(memory, bytes, &prop, 0);

	if (r == HIPR_OutOfMemory && rocm_make_room(dev, mark))
		r = hip.hipMemCreate(memory, bytes, &prop, 0);
	return rocm_check(dev, r, "hipMemCreate");
}

int rocm_share_make(struct rocm_device *dev, struct rocm_mem *mem, bool exported)
{
	uint64_t bytes;
	void *memory;
	int fd = -1, err = take(dev, mem, &bytes);

	if (err)
		return err;
	err = create(dev, bytes, &memory);
	if (err)
		goto out;
	if (exported)
		err = HIP(dev, hipMemExportToShareableHandle, &fd, memory, HIP_HANDLE_FD,
			  0);
	if (!err) {
		err = map(dev, mem, bytes, memory);
		mem->fd = err ? -1 : fd;
		if (err && fd >= 0)
			(void)close(fd);
	}
	release(memory);
out:
	if (err)
		stream_bytes_give(&dev->memory, bytes);
	return err;
}

/* A descriptor may be anything, and HIP's manual does not say which error that is: only
 * an error that other calls have, too, is one of the device. */
static int refuse(struct rocm_device *dev, uint32_t r, int fd)
{
	if (rocm_errno(r) == ENOSPC || (rocm_sticky(r) && r != HIPR_Unknown))
		return rocm_failed(dev, r, "hipMemImportFromShareableHandle");
	return rocm_host->fail(EINVAL,
			       "rocm:%u: hipMemImportFromShareableHandle: %s (%u): "
			       "descriptor %d is not memory that this device can import: "
			       "hal_buffer_export of rocm",
			       dev->index, rocm_result_name(r), r, fd);
}

int rocm_share_import(struct rocm_device *dev, struct rocm_mem *mem, int fd)
{
	/* NOLINTBEGIN(performance-no-int-to-ptr): the descriptor itself */
	void *handle =
		dev->shape.version >= HIP_VERSION_OF(7, 1) ? (void *)(intptr_t)fd : &fd;
	/* NOLINTEND(performance-no-int-to-ptr) */
	uint64_t bytes;
	void *memory;
	uint32_t r;
	int err = take(dev, mem, &bytes);

	if (err)
		return err;
	r = hip.hipMemImportFromShareableHandle(&memory, handle, HIP_HANDLE_FD);
	if (r) {
		err = refuse(dev, r, fd);
	} else {
		err = map(dev, mem, bytes, memory);
		release(memory);
	}
	if (err)
		stream_bytes_give(&dev->memory, bytes);
	return err;
}

void rocm_share_leave(struct rocm_device *dev, const struct rocm_mem *mem, int *err)
{
	if (mem->fd >= 0)
		(void)close(mem->fd);
	if (!mem->out)
		stream_bytes_give(&dev->memory, mem->mapping->bytes);
	rocm_give_back(dev, ROCM_KIND_MAPPING, mem->mapping, err);
}

int rocm_mem_export(void *device, void *memory, int *fd)
{
	const struct rocm_mem *mem = memory;

	(void)device;
	*fd = memfd_copy(rocm_host, "rocm", mem->fd);
	return *fd < 0 ? *fd : 0;
}

/* ---- eviction ------------------------------------------------------------------------ */

int rocm_mem_out(void *device, void *memory)
{
	struct rocm_device *dev = device;
	struct rocm_mem *mem = memory;
	struct rocm_mapping *m = mem->mapping;
	struct rocm_caller was;
	int err;

	if (!m)
		return rocm_host->fail(ENOTSUP,
				       "rocm:%u: the buffer is memory of the program's "
				       "own",
				       dev->index);
	err = rocm_push(dev, &was);
	if (err)
		return err;
	err = HIP(dev, hipMemUnmap, m->address, m->bytes);
	rocm_pop(dev, was);
	if (err)
		return err;
	m->mapped = false;
	mem->out = true;
	stream_bytes_give(&dev->memory, m->bytes);
	return 0;
}

/* Put new memory where the buffer was.  The calling thread means this device. */
static int put_back(struct rocm_device *dev, struct rocm_mapping *m)
{
	void *memory;
	int err = create(dev, m->bytes, &memory);

	if (err)
		return err;
	err = map_at(dev, m, memory);
	release(memory);
	if (err && m->mapped && !hip.hipMemUnmap(m->address, m->bytes))
		m->mapped = false;
	return err;
}

int rocm_mem_in(void *device, void *memory, const struct hal_bk_colors *colors)
{
	struct rocm_device *dev = device;
	struct rocm_mem *mem = memory;
	struct rocm_caller was;
	int err = rocm_push(dev, &was);

	(void)colors; /* it has none */
	if (err)
		return err;
	err = take_bytes(dev, mem->mapping->bytes);
	if (!err) {
		err = put_back(dev, mem->mapping);
		if (err)
			stream_bytes_give(&dev->memory, mem->mapping->bytes);
		else
			mem->out = false;
	}
	rocm_pop(dev, was);
	return err;
}
