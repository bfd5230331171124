/* SPDX-License-Identifier: Apache-2.0 */
/* partition.c - slots of the machine and the rectangles of PEs they own. */
#include "internal.h"

#include "copier.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static uint32_t rect_register(const struct hal_bk_partition_desc *d)
{
	return NPU_REG_BITS(RECT_ROW, d->row) | NPU_REG_BITS(RECT_COL, d->col) |
	       NPU_REG_BITS(RECT_ROWS, d->rows) | NPU_REG_BITS(RECT_COLS, d->cols);
}

/* Stages one rectangle and commits; a refused one is taken back.  Returns MAP_STATUS. */
static uint32_t stage(struct npu_device *dev, uint32_t slot, uint32_t rect)
{
	uint32_t old, status;

	npu_lock(dev);
	old = npu_read(dev, NPU_GLB_AT(RECT, slot));
	npu_write(dev, NPU_GLB_AT(RECT, slot), rect);
	npu_write(dev, NPU_GLB_MAP_COMMIT_ADDR, 1);
	status = npu_read(dev, NPU_GLB_MAP_STATUS_ADDR);
	if (NPU_REG_GET(status, MAP_STATUS_RESULT) != NPU_MAP_OK)
		npu_write(dev, NPU_GLB_AT(RECT, slot), old);
	npu_unlock(dev);
	return status;
}

int npu_map(struct npu_partition *part, const struct hal_bk_partition_desc *d)
{
	uint32_t status = stage(part->dev, part->slot, rect_register(d));
	uint32_t slot = NPU_REG_GET(status, MAP_STATUS_SLOT);

	switch (NPU_REG_GET(status, MAP_STATUS_RESULT)) {
	case NPU_MAP_OK:
		return 0;
	case NPU_MAP_OVERLAP:
		return npu_fail(
			EINVAL,
			"npu: rectangle %ux%u at row %u, column %u overlaps another "
			"(partition %u, refused by the hardware)",
			d->rows, d->cols, d->row, d->col, slot);
	case NPU_MAP_RANGE:
		return npu_fail(EINVAL,
				"npu: rectangle %ux%u at row %u, column %u exceeds the "
				"array of %ux%u (refused by the hardware)",
				d->rows, d->cols, d->row, d->col, part->dev->opt.rows,
				part->dev->opt.cols);
	default:
		return npu_fail(EBUSY,
				"npu: partition %u is busy (refused by the hardware)",
				slot);
	}
}

/* Does the hardware refuse what it says it refuses?  Before there are partitions. */
int npu_map_test(struct npu_device *dev)
{
	const struct hal_bk_partition_desc one = {.rows = 1, .cols = 1};
	const struct hal_bk_partition_desc out = {
		.row = (uint16_t)dev->opt.rows, .rows = 1, .cols = 1};
	uint32_t first = stage(dev, 0, rect_register(&one));
	uint32_t second = stage(dev, 1, rect_register(&one));
	uint32_t third = stage(dev, 1, rect_register(&out));
	uint32_t none = stage(dev, 0, 0);

	return NPU_REG_GET(first, MAP_STATUS_RESULT) == NPU_MAP_OK &&
	       (dev->opt.slots < 2 ||
		(NPU_REG_GET(second, MAP_STATUS_RESULT) == NPU_MAP_OVERLAP &&
		 NPU_REG_GET(third, MAP_STATUS_RESULT) == NPU_MAP_RANGE)) &&
	       NPU_REG_GET(none, MAP_STATUS_RESULT) == NPU_MAP_OK;
}

/* ---- limits of bandwidth ---------------------------------------------------------- */

/* The slot's token bucket over all channels; 0 beats: none.  Returns MODE_STATUS. */
static uint32_t set_bucket(struct npu_device *dev, uint32_t slot, uint32_t window,
			   uint32_t beats)
{
	uint32_t status;

	npu_lock(dev);
	npu_write(dev, NPU_GLB_BUCKET_WINDOW_ADDR, beats ? window : 0);
	npu_write(dev, NPU_GLB_BUCKET_BUDGET_ADDR, beats);
	npu_write(dev, NPU_GLB_BUCKET_BURST_ADDR, beats);
	npu_write(dev, NPU_GLB_BUCKET_SET_ADDR, NPU_REG_BITS(BUCKET_SET_SLOT, slot));
	status = npu_read(dev, NPU_GLB_MODE_STATUS_ADDR);
	npu_unlock(dev);
	return status;
}

/* Has the machine buckets, and does it refuse one that could let nothing through?  Before
 * there are partitions. */
int npu_limit_test(struct npu_device *dev)
{
	return set_bucket(dev, 0, 1, NPU_LIMIT_BYTES / NPU_BEAT_BYTES - 1) ==
		       NPU_MODE_RANGE &&
	       set_bucket(dev, 0, 0, 0) == NPU_MODE_OK;
}

int npu_limit(void *device, void *partition, uint64_t bytes, uint64_t window_ns)
{
	struct npu_device *dev = device;
	struct npu_partition *part = partition;
	uint64_t channels = dev->opt.opaque ? dev->opt.channels
					    : (uint32_t)__builtin_popcount(npu_channels(
						      &dev->opt, part->desc.color_mask));
	uint64_t most = channels * NPU_BEAT_BYTES * window_ns;

	if (!dev->limits)
		return npu_fail(ENOTSUP, "npu: cannot limit memory bandwidth: %s",
				dev->opt.ideal ? "memory=ideal has no bandwidth"
					       : "this engine does not support limits");
	if (bytes && npu_copiers_leave(part)) /* a slot more would escape the limit */
		return -ENOMEM;
	if (!bytes) {
		set_bucket(dev, part->slot, 0, 0);
		part->host->limited = false;
		dev->changes++;
		return 0;
	}
	if (!window_ns || window_ns > NPU_LIMIT_WINDOW)
		return npu_fail(EINVAL,
				"npu: limit: a window of %llu ns; it must be 1 to %u ns",
				(unsigned long long)window_ns, NPU_LIMIT_WINDOW);
	if (bytes < NPU_LIMIT_BYTES)
		return npu_fail(
			EINVAL,
			"npu: limit: %llu bytes are less than one request of %llu bytes",
			(unsigned long long)bytes, (unsigned long long)NPU_LIMIT_BYTES);
	if (bytes > most)
		return npu_fail(EINVAL,
				"npu: limit: %llu bytes in %llu ns exceed what the "
				"partition's channels can carry, %llu bytes",
				(unsigned long long)bytes, (unsigned long long)window_ns,
				(unsigned long long)most);
	if (set_bucket(dev, part->slot, (uint32_t)window_ns,
		       (uint32_t)(bytes / NPU_LIMIT_BYTES *
				  (NPU_LIMIT_BYTES / NPU_BEAT_BYTES))) != NPU_MODE_OK)
		return npu_fail(EIO, "npu: limit: refused by the hardware");
	part->host->limited = true;
	dev->changes++;
	return 0;
}

/* ---- partitions ------------------------------------------------------------------- */

/* An address space that takes turns in its host's slot. */
static int guest_create(struct npu_device *dev, const struct hal_bk_partition_desc *desc,
			void **out)
{
	struct npu_partition *part = calloc(1, sizeof(*part));
	int rc;

	if (!part)
		return npu_fail(ENOMEM, "npu: no host memory for a partition");
	part->dev = dev;
	part->desc = *desc;
	part->space = part;
	part->host = desc->host;
	part->slot = part->host->slot;
	rc = npu_space_open(part);
	if (!rc) {
		rc = npu_ring_open(part);
		if (rc)
			npu_space_close(part);
	}
	if (rc) {
		free(part);
		return rc;
	}
	part->host->guest_count++;
	*out = part;
	return 0;
}

static int guest_destroy(struct npu_partition *part)
{
	struct npu_partition *host = part->host;

	if (part->queue_count)
		return npu_fail(EBUSY, "npu: partition %u still has %u queues",
				part->desc.index, part->queue_count);
	/* With none of its commands left the slot has nothing to do, if it is its. */
	if (host->loaded == part)
		npu_ring_load(host);
	npu_copiers_close(part);
	npu_ring_close(part);
	npu_space_close(part);
	host->guest_count--;
	free(part);
	return 0;
}

int npu_partition_create(void *device, const struct hal_bk_partition_desc *desc,
			 void **out)
{
	struct npu_device *dev = device;
	struct npu_partition *part;
	int rc;

	if (desc->host)
		return guest_create(dev, desc, out);
	if (desc->index < dev->opt.slots && dev->parts[desc->index] &&
	    npu_is_copier(dev->parts[desc->index])) {
		rc = npu_copier_leave(dev->parts[desc->index]);
		if (rc)
			return rc;
	}
	if (desc->index >= dev->opt.slots || dev->parts[desc->index])
		return npu_fail(ENOSPC,
				"npu: all slots are in use: slot %u of %u is not free",
				desc->index, dev->opt.slots);
	part = calloc(1, sizeof(*part));
	if (!part)
		return npu_fail(ENOMEM, "npu: no host memory for a partition");
	part->dev = dev;
	part->desc = *desc;
	part->host = part;
	part->space = part;
	part->slot = desc->index;
	rc = npu_replay_partition(dev, part);
	if (!rc)
		rc = npu_space_open(part);
	if (rc)
		goto free_part;
	rc = npu_ring_open(part);
	if (rc)
		goto close_space;
	rc = npu_map(part, desc);
	if (rc)
		goto close_ring;
	npu_ring_load(part);
	npu_lock(dev);
	dev->parts[part->slot] = part;
	dev->changes++;
	npu_unlock(dev);
	*out = part;
	return 0;
close_ring:
	npu_ring_close(part);
close_space:
	npu_space_close(part);
free_part:
	free(part);
	return rc;
}

int npu_partition_destroy(void *device, void *partition)
{
	const struct hal_bk_partition_desc none = {0};
	struct npu_device *dev = device;
	struct npu_partition *part = partition;
	int rc;

	if (part->host != part)
		return guest_destroy(part);
	if (part->queue_count || part->count || part->guest_count)
		return npu_fail(EBUSY,
				"npu: partition %u still has %u queues, %u commands and "
				"%u guests",
				part->slot, part->queue_count, part->count,
				part->guest_count);
	rc = npu_map(part, &none);
	if (rc)
		return rc;
	if (dev->limits)
		set_bucket(dev, part->slot, 0, 0);
	npu_lock(dev);
	if (part->serial)
		npu_write(dev, NPU_GLB_AT(SLOT_CTRL, part->slot), 0);
	dev->parts[part->slot] = NULL;
	dev->changes++;
	npu_unlock(dev);
	npu_copiers_close(part);
	npu_ring_close(part);
	npu_space_close(part);
	npu_commands_free(part);
	free(part);
	return 0;
}
