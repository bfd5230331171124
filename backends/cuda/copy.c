/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies between the host and device memory: a stream of their own, so that no queue's
 * command waits for a copy or a copy for it, through pinned memory, as the driver waits
 * behind the whole stream for any other.  The lane is taken for a piece at a time, so
 * that long copies of several callers take turns.
 */
#define _GNU_SOURCE
#include "internal.h"

#include <string.h>

#define STAGE_BYTES (UINT64_C(1) << 20)
#define CLEAR_BYTES (UINT64_C(1) << 26) /* that are cleared in one go */

int cu_lane_make(struct cu_device *dev)
{
	struct cu_lane *lane = &dev->lane;
	uint64_t address;
	int err = cu_pin(dev, STAGE_BYTES, &lane->stage, &address);

	if (!err)
		err = CU(dev, cuStreamCreateWithPriority, &lane->stream,
			 CU_STREAM_NON_BLOCKING, dev->least_priority);
	if (err)
		lane->stream = NULL;
	else
		err = CU(dev, cuEventCreate, &lane->event,
			 CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING);
	if (err)
		lane->event = NULL;
	return err;
}

void cu_lane_drop(struct cu_device *dev)
{
	struct cu_lane *lane = &dev->lane;
	int err = 0; /* tried again at the end */

	cu_give_back(dev, CU_KIND_STREAM, lane->stream, &err);
	cu_give_back(dev, CU_KIND_EVENT, lane->event, &err);
	cu_give_back(dev, CU_KIND_HOST, lane->stage, &err);
	lane->stream = lane->event = lane->stage = NULL;
}

/* The caller may free what it copied as soon as this returns: nothing is left running,
 * whatever it answers, which is err if that is not 0. */
static int settle(struct cu_device *dev, int err)
{
	struct cu_lane *lane = &dev->lane;

	if (!err)
		err = CU(dev, cuEventRecord, lane->event, lane->stream);
	if (!err)
		err = CU(dev, cuEventSynchronize, lane->event);
	if (err)
		(void)cu.cuStreamSynchronize(lane->stream);
	return err;
}

static int copy_piece(struct cu_device *dev, uint64_t dst, uint64_t src, uint64_t bytes)
{
	int err = CU(dev, cuMemcpyAsync, dst, src, bytes, dev->lane.stream);

	return err ? err : settle(dev, 0);
}

/* To data, or else from from. */
int cu_copy(struct cu_device *dev, uint64_t address, void *data, const void *from,
	    uint64_t bytes)
{
	const uint64_t stage = (uintptr_t)dev->lane.stage;
	uint64_t at, n;
	uint32_t mode;
	int err = cu_push(dev, &mode);

	if (err)
		return err;
	for (at = 0; !err && at < bytes; at += n) {
		n = bytes - at < STAGE_BYTES ? bytes - at : STAGE_BYTES;
		pthread_mutex_lock(&dev->lane.lock);
		if (data) {
			err = copy_piece(dev, stage, address + at, n);
			if (!err)
				memcpy((char *)data + at, dev->lane.stage, n);
		} else {
			memcpy(dev->lane.stage, (const char *)from + at, n);
			err = copy_piece(dev, address + at, stage, n);
		}
		pthread_mutex_unlock(&dev->lane.lock);
	}
	cu_pop(mode);
	cu_catch_up(dev);
	return err;
}

/* Pieces of zeros, all of them from the same place, so many wait at a time. */
int cu_clear(struct cu_device *dev, uint64_t address, uint64_t bytes)
{
	const uint64_t stage = (uintptr_t)dev->lane.stage;
	uint64_t at = 0, end, n;
	uint32_t mode;
	int err = cu_push(dev, &mode);

	if (err)
		return err;
	while (!err && at < bytes) {
		end = bytes - at < CLEAR_BYTES ? bytes : at + CLEAR_BYTES;
		pthread_mutex_lock(&dev->lane.lock);
		memset(dev->lane.stage, 0, STAGE_BYTES);
		for (; !err && at < end; at += n) {
			n = end - at < STAGE_BYTES ? end - at : STAGE_BYTES;
			err = CU(dev, cuMemcpyAsync, address + at, stage, n,
				 dev->lane.stream);
		}
		err = settle(dev, err);
		pthread_mutex_unlock(&dev->lane.lock);
	}
	cu_pop(mode);
	cu_catch_up(dev);
	return err;
}
