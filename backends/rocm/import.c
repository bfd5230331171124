/* SPDX-License-Identifier: Apache-2.0 */
/* Check memory and streams that the application offers: see hal/gpu.h, stream/offer.h.
 * HIP 5.2 does not report the device of a stream. */
#define _GNU_SOURCE
#include "internal.h"

#include <errno.h>
#include <inttypes.h>

/* How many bytes there are from there on; 0: it is none of the device's. */
static int ask_memory(struct rocm_device *dev, void *at, uint64_t *bytes)
{
	void *first = NULL;
	size_t all = 0;
	uint32_t r = HIPR_Success;
	struct rocm_caller was;
	int err = rocm_push(dev, &was);

	if (err)
		return err;
	r = hip.hipMemGetAddressRange(&first, &all, at);
	rocm_pop(dev, was);
	*bytes = 0;
	if (!r)
		*bytes = all - (uint64_t)((char *)at - (char *)first);
	else if (r != HIPR_InvalidValue && r != HIPR_NotFound &&
		 r != HIPR_InvalidDevicePointer)
		err = rocm_failed(dev, r, "hipMemGetAddressRange");
	return err;
}

int rocm_offer_memory(void *native, uint64_t address, uint64_t bytes)
{
	void *at = (void *)(uintptr_t)address; /* NOLINT(performance-no-int-to-ptr) */
	struct rocm_device *dev = native;
	uint64_t there = 0;
	int err = 0;

	if (atomic_load(&dev->base.lost))
		return rocm_gone(dev);
	if (bytes && address % HAL_GPU_ALIGN == 0)
		err = ask_memory(dev, at, &there);
	if (err)
		return err;
	if (bytes && there < bytes)
		return rocm_host->fail(EINVAL,
				       "rocm:%u: cannot import memory at 0x%" PRIx64
				       ": only %" PRIu64
				       " bytes there belong to the device, or the "
				       "address is not a multiple of %u",
				       dev->index, address, there, HAL_GPU_ALIGN);
	return stream_offer_memory(&dev->offers, address, bytes);
}

static int check_stream(struct rocm_device *dev, void *stream)
{
	uint32_t flags = 0, recorded = 0;
	struct rocm_caller was;
	int err = rocm_push(dev, &was);

	if (err)
		return err;
	err = HIP(dev, hipStreamGetFlags, stream, &flags);
	if (!err)
		err = HIP(dev, hipStreamIsCapturing, stream, &recorded);
	rocm_pop(dev, was);
	if (err)
		return err;
	if (!(flags & HIP_STREAM_NON_BLOCKING))
		return rocm_host->fail(EINVAL,
				       "rocm:%u: the stream synchronizes with the NULL "
				       "stream; create it with hipStreamNonBlocking",
				       dev->index);
	return recorded ? rocm_host->fail(EBUSY, "rocm:%u: the stream is being captured",
					  dev->index)
			: 0;
}

int rocm_offer_stream(void *native, void *stream)
{
	struct rocm_device *dev = native;
	int err = 0;

	if (atomic_load(&dev->base.lost))
		return rocm_gone(dev);
	/* A stream runs on the CUs it was made with; and what the program puts behind a
	 * launch that was stopped would come before its rest. */
	if (stream && (dev->units.count || dev->opt.block))
		return rocm_host->fail(
			ENOTSUP, "rocm:%u: with %s queues cannot use an imported stream",
			dev->index, dev->opt.block ? "preempt=block" : "partitions");
	if (stream)
		err = check_stream(dev, stream);
	return err ? err : stream_offer_stream(&dev->offers, stream);
}

uint32_t rocm_find_capture(const struct rocm_queue *q, bool *captured)
{
	uint32_t status = 0, r = hip.hipStreamIsCapturing(q->stream, &status);

	*captured = !r && status;
	return r;
}

int rocm_check_capture(struct rocm_device *dev, const struct rocm_queue *q)
{
	bool captured = false;
	int err = rocm_enter(dev);

	if (!err)
		err = rocm_check(dev, rocm_find_capture(q, &captured),
				 "hipStreamIsCapturing");
	if (captured)
		err = rocm_host->fail(EBUSY,
				      "rocm:%u: the application captures the imported "
				      "stream of the queue; end the capture before work "
				      "is submitted to the queue",
				      dev->index);
	return err;
}
