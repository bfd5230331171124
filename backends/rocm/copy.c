/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Between the host's own memory and the device's: by a stream of its own through pinned
 * memory, as HIP holds a stream up for any other; by pieces, so that long copies of
 * several threads take turns.
 */
#define _GNU_SOURCE
#include "internal.h"

#include <string.h>

#define PIECE_BYTES (UINT64_C(1) << 20)
#define CLEAR_BYTES (UINT64_C(1) << 26) /* that are cleared in one go */

int rocm_lane_make(struct rocm_device *dev)
{
	void *unused;
	int err = rocm_pin(dev, PIECE_BYTES, &dev->lane.stage, &unused);

	if (err)
		return err;
	err = HIP(dev, hipStreamCreateWithPriority, &dev->lane.stream,
		  HIP_STREAM_NON_BLOCKING, dev->least_priority);
	if (err) {
		dev->lane.stream = NULL;
		return err;
	}
	err = HIP(dev, hipEventCreateWithFlags, &dev->lane.event,
		  HIP_EVENT_BLOCKING_SYNC | HIP_EVENT_DISABLE_TIMING);
	if (err)
		dev->lane.event = NULL;
	return err;
}

void rocm_lane_drop(struct rocm_device *dev)
{
	int err = 0; /* close tries again */

	rocm_give_back(dev, ROCM_KIND_STREAM, dev->lane.stream, &err);
	rocm_give_back(dev, ROCM_KIND_EVENT, dev->lane.event, &err);
	rocm_give_back(dev, ROCM_KIND_HOST, dev->lane.stage, &err);
	dev->lane.stream = dev->lane.event = dev->lane.stage = NULL;
}

/* Whatever it answers, err if that is not 0, nothing is left running: the caller may free
 * both ends. */
static int settle(struct rocm_device *dev, int err)
{
	if (!err)
		err = HIP(dev, hipEventRecord, dev->lane.event, dev->lane.stream);
	if (!err)
		err = HIP(dev, hipEventSynchronize, dev->lane.event);
	if (err && hip.hipStreamSynchronize(dev->lane.stream))
		(void)hip.hipStreamSynchronize(dev->lane.stream);
	return err;
}

static int move_piece(struct rocm_device *dev, void *to, const void *from, uint64_t bytes)
{
	int err = HIP(dev, hipMemcpyAsync, to, from, bytes, HIP_COPY_DEFAULT,
		      dev->lane.stream);

	return err ? err : settle(dev, 0);
}

int rocm_read(struct rocm_device *dev, const char *address, void *data, uint64_t bytes)
{
	uint64_t at = 0, n;
	struct rocm_caller was;
	int err = rocm_push(dev, &was);

	if (err)
		return err;
	for (; !err && at < bytes; at += n) {
		n = bytes - at > PIECE_BYTES ? PIECE_BYTES : bytes - at;
		pthread_mutex_lock(&dev->lane.lock);
		err = move_piece(dev, dev->lane.stage, address + at, n);
		if (!err)
			memcpy((char *)data + at, dev->lane.stage, n);
		pthread_mutex_unlock(&dev->lane.lock);
	}
	rocm_pop(dev, was);
	rocm_catch_up(dev);
	return err;
}

int rocm_write(struct rocm_device *dev, char *address, const void *data, uint64_t bytes)
{
	uint64_t at = 0, n;
	struct rocm_caller was;
	int err = rocm_push(dev, &was);

	if (err)
		return err;
	for (; !err && at < bytes; at += n) {
		n = bytes - at > PIECE_BYTES ? PIECE_BYTES : bytes - at;
		pthread_mutex_lock(&dev->lane.lock);
		memcpy(dev->lane.stage, (const char *)data + at, n);
		err = move_piece(dev, address + at, dev->lane.stage, n);
		pthread_mutex_unlock(&dev->lane.lock);
	}
	rocm_pop(dev, was);
	rocm_catch_up(dev);
	return err;
}

/* Pieces of zeros, all of them from the same place, so many wait at a time. */
int rocm_clear(struct rocm_device *dev, char *address, uint64_t bytes)
{
	uint64_t at = 0, end, n;
	struct rocm_caller was;
	int err = rocm_push(dev, &was);

	if (err)
		return err;
	while (!err && at < bytes) {
		end = bytes - at < CLEAR_BYTES ? bytes : at + CLEAR_BYTES;
		pthread_mutex_lock(&dev->lane.lock);
		memset(dev->lane.stage, 0, PIECE_BYTES);
		for (; !err && at < end; at += n) {
			n = end - at < PIECE_BYTES ? end - at : PIECE_BYTES;
			err = HIP(dev, hipMemcpyAsync, address + at, dev->lane.stage, n,
				  HIP_COPY_DEFAULT, dev->lane.stream);
		}
		err = settle(dev, err);
		pthread_mutex_unlock(&dev->lane.lock);
	}
	rocm_pop(dev, was);
	rocm_catch_up(dev);
	return err;
}
