/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program's own memory as a buffer, its own stream as a queue; see hal/gpu.h.  What
 * can be asked is asked when it is offered; the engine takes it up, and nothing here
 * gives it back.  HIP 5.2 does not tell which device a stream is of.
 */
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
	pthread_mutex_lock(&dev->offered.lock);
	if (bytes && dev->offered.bytes)
		err = rocm_host->fail(EBUSY,
				      "rocm:%u: memory has been offered, but no buffer "
				      "has been created from it yet",
				      dev->index);
	if (!err) {
		dev->offered.memory = at;
		dev->offered.bytes = bytes;
	}
	pthread_mutex_unlock(&dev->offered.lock);
	return err;
}

void *rocm_take_memory(struct rocm_device *dev, uint64_t bytes)
{
	void *memory = NULL;

	pthread_mutex_lock(&dev->offered.lock);
	if (bytes && bytes == dev->offered.bytes) {
		memory = dev->offered.memory;
		dev->offered.bytes = 0;
	}
	pthread_mutex_unlock(&dev->offered.lock);
	return memory;
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
	if (err)
		return err;
	pthread_mutex_lock(&dev->offered.lock);
	if (stream && dev->offered.stream)
		err = rocm_host->fail(EBUSY,
				      "rocm:%u: a stream has been offered, but no queue "
				      "has been created from it yet",
				      dev->index);
	if (!err)
		dev->offered.stream = stream;
	pthread_mutex_unlock(&dev->offered.lock);
	return err;
}

void *rocm_take_stream(struct rocm_device *dev)
{
	void *stream;

	pthread_mutex_lock(&dev->offered.lock);
	stream = dev->offered.stream;
	dev->offered.stream = NULL;
	pthread_mutex_unlock(&dev->offered.lock);
	return stream;
}
