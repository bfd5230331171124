/* SPDX-License-Identifier: Apache-2.0 */
/* Check memory and streams that the application offers: see hal/gpu.h, stream/offer.h. */
#define _GNU_SOURCE
#include "internal.h"

#include <errno.h>
#include <inttypes.h>

static int check_memory(struct cu_device *dev, uint64_t address, uint64_t bytes)
{
	uint64_t base = 0;
	size_t all = 0;
	uint32_t mode, r;
	int err = cu_push(dev, &mode);

	if (err)
		return err;
	r = cu.cuMemGetAddressRange_v2(&base, &all, address);
	cu_pop(mode);
	if (r == CUR_INVALID_VALUE || r == CUR_NOT_FOUND)
		return cu_host->fail(EINVAL,
				     "cuda:%u: 0x%" PRIx64
				     " is not memory of the device's primary context",
				     dev->index, address);
	if (r)
		return cu_failed(dev, r, "cuMemGetAddressRange_v2");
	if (address - base > all || bytes > all - (address - base))
		return cu_host->fail(
			EINVAL,
			"cuda:%u: %" PRIu64 " bytes at 0x%" PRIx64
			" exceed the allocation, which ends after %" PRIu64 " bytes",
			dev->index, bytes, address, (uint64_t)all - (address - base));
	return 0;
}

int cu_offer_memory(void *native, uint64_t address, uint64_t bytes)
{
	struct cu_device *dev = native;
	int err = 0;

	if (atomic_load(&dev->base.lost))
		return cu_gone(dev);
	if (bytes && dev->opt.bounds)
		return cu_host->fail(
			ENOTSUP,
			"cuda:%u: with bounds=yes memory cannot be imported: buffers "
			"must lie in their partition's address range",
			dev->index);
	if (bytes && address % HAL_GPU_ALIGN)
		return cu_host->fail(
			EINVAL, "cuda:%u: address 0x%" PRIx64 " is not a multiple of %u",
			dev->index, address, HAL_GPU_ALIGN);
	err = bytes ? check_memory(dev, address, bytes) : 0;
	return err ? err : stream_offer_memory(&dev->offers, address, bytes);
}

static int check_stream(struct cu_device *dev, void *stream)
{
	uint32_t mode, flags = 0, recorded = 0;
	void *context = NULL;
	int err = cu_push(dev, &mode);

	if (err)
		return err;
	err = CU(dev, cuStreamGetCtx, stream, &context);
	if (!err)
		err = CU(dev, cuStreamGetFlags, stream, &flags);
	if (!err)
		err = CU(dev, cuStreamIsCapturing, stream, &recorded);
	cu_pop(mode);
	if (err)
		return err;
	if (context != dev->context)
		return cu_host->fail(EINVAL,
				     "cuda:%u: the stream does not belong to the "
				     "device's primary context",
				     dev->index);
	if (!(flags & CU_STREAM_NON_BLOCKING))
		return cu_host->fail(EINVAL,
				     "cuda:%u: the stream synchronizes with the NULL "
				     "stream; create it with CU_STREAM_NON_BLOCKING",
				     dev->index);
	if (recorded)
		return cu_host->fail(EBUSY, "cuda:%u: the stream is being captured",
				     dev->index);
	return 0;
}

/* What the program puts behind a launch that was stopped would run in front of its rest;
 * a stream of the primary context runs on all multiprocessors. */
static int check_way(const struct cu_device *dev)
{
	if (dev->opt.block)
		return cu_host->fail(ENOTSUP,
				     "cuda:%u: with preempt=block queues cannot use an "
				     "imported stream",
				     dev->index);
	if (dev->green || (dev->mask && dev->mask->stream_at))
		return cu_host->fail(ENOTSUP,
				     "cuda:%u: with partitions=%s queues cannot use an "
				     "imported stream",
				     dev->index, cu_way_names[cu_way_of(dev)]);
	return 0;
}

int cu_offer_stream(void *native, void *stream)
{
	/* NULL takes back; 1 and 2 are the driver's names of NULL streams. */
	const uintptr_t named = (uintptr_t)stream;
	struct cu_device *dev = native;
	int err = 0;

	if (atomic_load(&dev->base.lost))
		return cu_gone(dev);
	if (named == 1 || named == 2)
		return cu_host->fail(EINVAL,
				     "cuda:%u: the NULL stream cannot become a queue",
				     dev->index);
	if (stream)
		err = check_way(dev);
	if (stream && !err)
		err = check_stream(dev, stream);
	return err ? err : stream_offer_stream(&dev->offers, stream);
}

int cu_find_capture(struct cu_device *dev, const struct cu_queue *q, bool *captured)
{
	uint32_t status = 0;
	int err = cu_enter(dev);

	if (!err)
		err = CU(dev, cuStreamIsCapturing, q->stream, &status);
	*captured = !err && status;
	return err;
}

int cu_check_capture(struct cu_device *dev, const struct cu_queue *q)
{
	bool captured;
	int err = cu_find_capture(dev, q, &captured);

	if (captured)
		err = cu_host->fail(EBUSY,
				    "cuda:%u: the application captures the imported "
				    "stream of the queue; end the capture before work is "
				    "submitted to the queue",
				    dev->index);
	return err;
}
