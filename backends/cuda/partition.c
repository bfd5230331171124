/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Partitions of a CUDA device.  Where none are carved out of it the device is one unit,
 * and one partition has it all; else units are groups of multiprocessors, a partition is
 * a green context of some, or a mask that its launches have.  Queues of a partition share
 * its multiprocessors as the device likes.
 */
#define _GNU_SOURCE
#include "internal.h"

#include <errno.h>
#include <stdlib.h>

uint32_t cu_units(const struct cu_device *dev)
{
	if (dev->green)
		return cu_green_units(dev);
	return dev->mask ? cu_mask_units(dev) : 1;
}

static int check_units(const struct cu_device *dev,
		       const struct hal_bk_partition_desc *desc)
{
	const uint32_t units = cu_units(dev);

	if (!desc->units || desc->col > units || desc->units > units - desc->col)
		return cu_host->fail(EINVAL,
				     "cuda:%u: the device has %u units; a partition of "
				     "%u units from unit %u on does not fit",
				     dev->index, units, desc->units, desc->col);
	return 0;
}

int cu_partition_create(void *device, const struct hal_bk_partition_desc *desc,
			void **out)
{
	struct cu_device *dev = device;
	struct cu_partition *part;
	int err = check_units(dev, desc);

	if (err)
		return err;
	part = calloc(1, sizeof(*part));
	if (!part)
		return cu_host->fail(ENOMEM, "cuda: no memory for a partition");
	part->desc = *desc;
	err = dev->green ? cu_green_take(dev, desc->col, desc->units, &part->green) : 0;
	if (!err && dev->granule)
		err = cu_range_make(dev, &part->range);
	if (err) {
		free(part);
		return err;
	}
	part->masked = dev->mask && !dev->mask->stream_at;
	if (dev->mask)
		cu_mask_of(dev, desc->col, desc->units, part->mask);
	*out = part;
	return 0;
}

int cu_partition_destroy(void *device, void *partition)
{
	struct cu_partition *part = partition;
	struct cu_device *dev = device;
	int err = 0;

	if (part->moving)
		return cu_host->fail(EBUSY, "cuda: partition %u is being resized",
				     part->desc.index);
	if (part->queues + part->buffers)
		return cu_host->fail(
			EBUSY, "cuda: partition %u still has %u queues and %u buffers",
			part->desc.index, part->queues, part->buffers);
	if (part->range && !atomic_load(&dev->lost))
		err = cu_enter(dev);
	if (part->range)
		cu_give_back(dev, CU_KIND_RANGE, part->range, &err);
	free(part);
	return err;
}

/* Later launches go by the new mask.  Those that are with the device keep the one they
 * were given: it is quiet when they have ended. */
int cu_resize(void *device, void *partition, const struct hal_bk_partition_desc *desc,
	      uint64_t cookie)
{
	struct cu_device *dev = device;
	struct cu_partition *part = partition;
	struct cu_queue *q;
	int err;

	if (!dev->mask)
		return cu_host->fail(ENOTSUP,
				     "cuda:%u: partitions can be resized only with "
				     "partitions=mask or stream",
				     dev->index);
	if (part->moving)
		return cu_host->fail(EBUSY, "cuda: partition %u is already being resized",
				     part->desc.index);
	err = check_units(dev, desc);
	if (err)
		return err;
	part->desc = *desc;
	cu_mask_of(dev, desc->col, desc->units, part->mask);
	for (q = dev->queues; q; q = q->older) {
		if (q->part != part)
			continue;
		part->moving_left += q->older_count = q->count - cu_stops_kept(q);
		if (dev->mask->stream_at)
			(void)cu_stream_mask_set(dev, q->stream, part->mask, false);
	}
	part->moving = true;
	part->moving_cookie = cookie;
	part->moving_next = dev->moving;
	dev->moving = part;
	return 0;
}

uint32_t cu_moved(struct cu_device *dev, struct hal_bk_event *ev, uint32_t max)
{
	struct cu_partition **at = &dev->moving, *part;
	uint32_t n = 0;

	while ((part = *at) && n < max) {
		if (part->moving_left) {
			at = &part->moving_next;
			continue;
		}
		*at = part->moving_next;
		part->moving = false;
		ev[n++] = (struct hal_bk_event){.kind = HAL_BK_QUIET,
						.cookie = part->moving_cookie,
						.start_ns = cu_now(dev),
						.end_ns = cu_now(dev)};
	}
	return n;
}
