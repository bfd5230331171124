/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies between the host and device memory: stream/lane.h, on a stream of their own, so
 * that no queue's command waits for a copy or a copy for it.
 */
#define _GNU_SOURCE
#include "internal.h"

/* A kernel reaches the stages by the device's address. */
static uint64_t device_side(const struct cu_lane *lane, uint64_t address)
{
	const uint64_t at = address - (uintptr_t)lane->stages;

	return at < STREAM_LANE_STAGES * STREAM_LANE_PIECE ? lane->stages_at + at
							   : address;
}

static int copy(void *device, uint64_t to, uint64_t from, uint64_t bytes)
{
	struct cu_device *dev = device;
	int err;

	if (dev->colors &&
	    cu_color_copy(dev, dev->lane.stream, device_side(&dev->lane, to),
			  device_side(&dev->lane, from), bytes, &err))
		return err;
	return CU(dev, cuMemcpyAsync, to, from, bytes, dev->lane.stream);
}

static int clear(void *device, uint64_t address, uint64_t bytes)
{
	struct cu_device *dev = device;
	int err;

	if (cu_color_fill(dev, cu_remainder_fills(dev), address, 0, bytes / 4, &err))
		return err;
	return cu_remainder_fill(dev, address, bytes / 4);
}

static int record(void *device, uint32_t event)
{
	struct cu_device *dev = device;

	return CU(dev, cuEventRecord, dev->lane.events[event],
		  event == STREAM_LANE_STAGES ? cu_remainder_fills(dev)
					      : dev->lane.stream);
}

static int wait_event(void *device, uint32_t event)
{
	struct cu_device *dev = device;

	return CU(dev, cuEventSynchronize, dev->lane.events[event]);
}

static void drain(void *device)
{
	const struct cu_device *dev = device;

	(void)cu.cuStreamSynchronize(dev->lane.stream);
	if (cu_remainder_fills(dev) != dev->lane.stream)
		(void)cu.cuStreamSynchronize(cu_remainder_fills(dev));
}

static const struct stream_lane_ops lane_ops = {
	.copy = copy,
	.clear = clear,
	.record = record,
	.wait = wait_event,
	.drain = drain,
};

void cu_lane_init(struct cu_device *dev)
{
	stream_lane_init(&dev->lane.base, &lane_ops, dev);
}

int cu_lane_make(struct cu_device *dev)
{
	struct cu_lane *lane = &dev->lane;
	uint32_t i;
	int err = cu_pin(dev, STREAM_LANE_STAGES * STREAM_LANE_PIECE, &lane->stages,
			 &lane->stages_at);

	if (err)
		return err;
	stream_lane_stages(&lane->base, lane->stages);
	err = CU(dev, cuStreamCreateWithPriority, &lane->stream, CU_STREAM_NON_BLOCKING,
		 dev->least_priority);
	if (err)
		lane->stream = NULL;
	for (i = 0; !err && i < STREAM_LANE_EVENTS; i++) {
		err = CU(dev, cuEventCreate, &lane->events[i],
			 CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING);
		if (err)
			lane->events[i] = NULL;
	}
	return err;
}

void cu_lane_drop(struct cu_device *dev)
{
	struct cu_lane *lane = &dev->lane;
	uint32_t i;
	int err = 0; /* tried again at the end */

	cu_give_back(dev, CU_KIND_STREAM, lane->stream, &err);
	for (i = 0; i < STREAM_LANE_EVENTS; i++) {
		cu_give_back(dev, CU_KIND_EVENT, lane->events[i], &err);
		lane->events[i] = NULL;
	}
	cu_give_back(dev, CU_KIND_HOST, lane->stages, &err);
	lane->stream = lane->stages = NULL;
}

int cu_copy(struct cu_device *dev, uint64_t address, void *data, const void *from,
	    uint64_t bytes)
{
	uint32_t mode;
	int err = cu_push(dev, &mode);

	if (err)
		return err;
	err = data ? stream_lane_read(&dev->lane.base, address, data, bytes)
		   : stream_lane_write(&dev->lane.base, address, from, bytes);
	cu_pop(mode);
	cu_catch_up(dev);
	return err;
}

int cu_clear(struct cu_device *dev, uint64_t address, uint64_t bytes)
{
	uint32_t mode;
	int err = cu_push(dev, &mode);

	if (err)
		return err;
	err = stream_lane_clear(&dev->lane.base, address, bytes);
	cu_pop(mode);
	cu_catch_up(dev);
	return err;
}
