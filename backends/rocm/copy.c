/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies between the host and device memory: stream/lane.h, on a stream of their own, as
 * HIP holds a stream up for any other memory.
 */
#define _GNU_SOURCE
#include "internal.h"

/* HIP takes pointers; the device's are addresses to the host. */
static void *pointer(uint64_t address)
{
	return (void *)(uintptr_t)address; /* NOLINT(performance-no-int-to-ptr) */
}

static int copy(void *device, uint64_t to, uint64_t from, uint64_t bytes)
{
	struct rocm_device *dev = device;

	return HIP(dev, hipMemcpyAsync, pointer(to), pointer(from), bytes,
		   HIP_COPY_DEFAULT, dev->lane.stream);
}

static int clear(void *device, uint64_t address, uint64_t bytes)
{
	struct rocm_device *dev = device;

	return rocm_remainder_fill(dev, pointer(address), bytes / 4);
}

static int record(void *device, uint32_t event)
{
	struct rocm_device *dev = device;

	return HIP(dev, hipEventRecord, dev->lane.events[event], dev->lane.stream);
}

static int wait_event(void *device, uint32_t event)
{
	struct rocm_device *dev = device;

	return HIP(dev, hipEventSynchronize, dev->lane.events[event]);
}

static void drain(void *device)
{
	const struct rocm_device *dev = device;

	if (hip.hipStreamSynchronize(dev->lane.stream))
		(void)hip.hipStreamSynchronize(dev->lane.stream);
}

static const struct stream_lane_ops lane_ops = {
	.copy = copy,
	.clear = clear,
	.record = record,
	.wait = wait_event,
	.drain = drain,
};

void rocm_lane_init(struct rocm_device *dev)
{
	stream_lane_init(&dev->lane.base, &lane_ops, dev);
}

int rocm_lane_make(struct rocm_device *dev)
{
	void *unused;
	uint32_t i;
	int err = rocm_pin(dev, STREAM_LANE_STAGES * STREAM_LANE_PIECE, &dev->lane.stages,
			   &unused);

	if (err)
		return err;
	stream_lane_stages(&dev->lane.base, dev->lane.stages);
	err = HIP(dev, hipStreamCreateWithPriority, &dev->lane.stream,
		  HIP_STREAM_NON_BLOCKING, dev->least_priority);
	if (err)
		dev->lane.stream = NULL;
	for (i = 0; i < STREAM_LANE_EVENTS && !err; i++) {
		err = HIP(dev, hipEventCreateWithFlags, &dev->lane.events[i],
			  HIP_EVENT_BLOCKING_SYNC | HIP_EVENT_DISABLE_TIMING);
		if (err)
			dev->lane.events[i] = NULL;
	}
	return err;
}

void rocm_lane_drop(struct rocm_device *dev)
{
	int err = 0; /* close tries again */
	uint32_t i;

	rocm_remainder_drop(dev, &err);
	rocm_give_back(dev, ROCM_KIND_STREAM, dev->lane.stream, &err);
	for (i = 0; i < STREAM_LANE_EVENTS; i++) {
		rocm_give_back(dev, ROCM_KIND_EVENT, dev->lane.events[i], &err);
		dev->lane.events[i] = NULL;
	}
	rocm_give_back(dev, ROCM_KIND_HOST, dev->lane.stages, &err);
	dev->lane.stream = dev->lane.stages = NULL;
}

int rocm_read(struct rocm_device *dev, const char *address, void *data, uint64_t bytes)
{
	struct rocm_caller was;
	int err = rocm_push(dev, &was);

	if (err)
		return err;
	err = stream_lane_read(&dev->lane.base, (uintptr_t)address, data, bytes);
	rocm_pop(dev, was);
	rocm_catch_up(dev);
	return err;
}

int rocm_write(struct rocm_device *dev, char *address, const void *data, uint64_t bytes)
{
	struct rocm_caller was;
	int err = rocm_push(dev, &was);

	if (err)
		return err;
	err = stream_lane_write(&dev->lane.base, (uintptr_t)address, data, bytes);
	rocm_pop(dev, was);
	rocm_catch_up(dev);
	return err;
}

int rocm_clear(struct rocm_device *dev, char *address, uint64_t bytes)
{
	struct rocm_caller was;
	int err = rocm_push(dev, &was);

	if (err)
		return err;
	err = stream_lane_clear(&dev->lane.base, (uintptr_t)address, bytes);
	rocm_pop(dev, was);
	rocm_catch_up(dev);
	return err;
}
