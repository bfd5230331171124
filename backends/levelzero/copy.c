/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies between the host and device memory.  Each tile has a lane: a list of its own, on
 * an engine that only copies where the tile has one, so that no queue's command waits for
 * a copy or a copy for it.  Bytes go through memory that the driver has given the host: a
 * device need not see any other, and a copy that never ends has no hand on the caller's.
 * A lane is taken for a piece at a time, so long copies of several callers take turns.
 */
#define _GNU_SOURCE
#include "internal.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define STAGE_BYTES (UINT64_C(1) << 20)
#define ALIGNMENT   4096u
/* A driver sees a hang in a wait only when that has taken half a second. */
#define WAIT_NS UINT64_C(1000000000)

void lz_lanes_init(struct lz_device *dev)
{
	uint32_t t;

	for (t = 0; t < LZ_TILES_MAX; t++) {
		(void)pthread_mutex_init(&dev->lanes[t].lock, NULL);
		dev->lanes[t].group.id = lz_id(dev);
	}
}

static void drop_lane(struct lz_device *dev, struct lz_lane *lane)
{
	int err = 0; /* tried again at close, or by the next copy */

	lz_drop(dev, LZ_KIND_LIST, lane->list, lane->group, &err);
	lz_drop(dev, LZ_KIND_EVENT, lane->event, lane->group, &err);
	lz_drop(dev, LZ_KIND_POOL, lane->pool, lane->group, &err);
	lz_drop(dev, LZ_KIND_MEMORY, lane->stage, lane->group, &err);
	lane->list = lane->event = lane->pool = lane->stage = NULL;
}

void lz_lanes_drop(struct lz_device *dev)
{
	uint32_t t;

	for (t = 0; t < LZ_TILES_MAX; t++) {
		drop_lane(dev, &dev->lanes[t]);
		pthread_mutex_destroy(&dev->lanes[t].lock);
	}
}

static int make_lane(struct lz_device *dev, struct lz_lane *lane, uint32_t tile)
{
	void *on = dev->shape.tiles[tile];
	const struct lz_engine *e = &dev->shape.copy[tile];
	const struct ze_command_queue_desc qd = {
		.stype = LZ_STYPE_COMMAND_QUEUE_DESC,
		.ordinal = e->ordinal,
		.index = e->index,
		.mode = LZ_MODE_ASYNCHRONOUS,
	};
	const struct ze_event_pool_desc pd = {
		.stype = LZ_STYPE_EVENT_POOL_DESC,
		.flags = LZ_POOL_HOST_VISIBLE,
		.count = 1,
	};
	const struct ze_event_desc ed = {
		.stype = LZ_STYPE_EVENT_DESC,
		.signal = LZ_SCOPE_HOST,
	};
	const struct ze_host_mem_alloc_desc hd = {.stype = LZ_STYPE_HOST_MEM_ALLOC_DESC};
	int err;

	err = LZ(zeMemAllocHost, dev->context, &hd, STAGE_BYTES, ALIGNMENT, &lane->stage);
	if (!err)
		err = LZ_MAKE(dev, LZ_KIND_LIST, zeCommandListCreateImmediate,
			      dev->context, on, &qd, &lane->list);
	if (!err)
		err = LZ_MAKE(dev, LZ_KIND_POOL, zeEventPoolCreate, dev->context, &pd, 1,
			      &on, &lane->pool);
	if (!err)
		err = LZ_MAKE(dev, LZ_KIND_EVENT, zeEventCreate, lane->pool, &ed,
			      &lane->event);
	if (err)
		drop_lane(dev, lane);
	lane->used = false;
	return err;
}

/* The device may still carry it out: what it uses is given back when it has. */
static int stuck(struct lz_device *dev, struct lz_lane *lane,
		 const struct lz_partition *part)
{
	const struct lz_group g = {.id = lane->group.id, .part = part->id};

	lane->stuck = true;
	lz_keep(dev, LZ_KIND_WAIT, lane->event, g);
	return -EIO;
}

/* Virtual clock: nothing that runs will end, so neither will this. */
static bool stands_still(struct lz_device *dev)
{
	uint64_t now;
	uint32_t idle = 0;

	if (dev->opt.virtual_clock)
		dev->advance(0, &now, &idle);
	return idle;
}

static int wait_for(struct lz_device *dev, struct lz_lane *lane,
		    const struct lz_partition *part)
{
	const uint64_t limit = dev->opt.timeout_ns;
	const uint64_t turn = limit && limit < WAIT_NS ? limit : WAIT_NS;
	uint64_t waited = 0;
	uint32_t r;

	for (;;) {
		r = lz.zeEventHostSynchronize(lane->event, turn);
		if (r == LZ_SUCCESS)
			return 0;
		waited += turn;
		if (r == LZ_NOT_READY) {
			r = lz.zeDeviceGetStatus(dev->shape.tiles[part->tile]);
			if (r)
				lz_failed(r, "zeDeviceGetStatus");
		} else {
			lz_failed(r, "zeEventHostSynchronize");
		}
		if (r)
			return stuck(dev, lane, part);
		if ((limit && waited >= limit) || stands_still(dev)) {
			lz_host->fail(EIO,
				      "levelzero: a copy has not ended after %" PRIu64
				      " ms",
				      waited / 1000000);
			return stuck(dev, lane, part);
		}
	}
}

static int copy_piece(struct lz_device *dev, struct lz_lane *lane,
		      const struct lz_partition *part, void *dst, const void *src,
		      uint64_t bytes)
{
	int err = 0;

	if (lane->used)
		err = LZ(zeEventHostReset, lane->event);
	if (err)
		return err;
	err = LZ(zeCommandListAppendMemoryCopy, lane->list, dst, src, bytes, lane->event,
		 0, NULL);
	lane->used = true;
	return err ? err : wait_for(dev, lane, part);
}

static int take_lane(struct lz_device *dev, struct lz_lane *lane, uint32_t tile)
{
	pthread_mutex_lock(&lane->lock);
	if (lane->stuck)
		return lz_host->fail(EIO,
				     "levelzero: tile %u cannot copy any more: an "
				     "earlier copy has not ended",
				     tile);
	return lane->list ? 0 : make_lane(dev, lane, tile);
}

int lz_copy(struct lz_device *dev, const struct lz_partition *part, void *dst,
	    const void *src, uint64_t bytes, bool to_host)
{
	struct lz_lane *lane = &dev->lanes[part->tile];
	uint64_t at, n;
	int err = 0;

	for (at = 0; !err && at < bytes; at += n) {
		n = bytes - at < STAGE_BYTES ? bytes - at : STAGE_BYTES;
		err = take_lane(dev, lane, part->tile);
		if (!err && to_host) {
			err = copy_piece(dev, lane, part, lane->stage,
					 (const char *)src + at, n);
			if (!err)
				memcpy((char *)dst + at, lane->stage, n);
		} else if (!err) {
			if (src)
				memcpy(lane->stage, (const char *)src + at, n);
			else
				memset(lane->stage, 0, n);
			err = copy_piece(dev, lane, part, (char *)dst + at, lane->stage,
					 n);
		}
		pthread_mutex_unlock(&lane->lock);
	}
	lz_catch_up(dev);
	return err;
}
