/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Partitions of a CUDA device.  Where none are carved out of it the device is one unit,
 * and one partition has it all; else units are groups of multiprocessors, a partition is
 * a green context of some, or a mask that its launches have.  Queues of a partition share
 * its multiprocessors as the device likes.  The engine creates partitions, so that makes
 * no call that may wait for the device: the green context comes with the first queue.
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

/* Return whether buffers of a partition may exceed its quota, and so be evicted. */
static bool evicts(const struct hal_bk_partition_desc *desc)
{
	return desc->address_bytes > desc->memory_bytes;
}

/* Reserve the addresses of a partition's buffers.  Those of an evicted one stay reserved;
 * a buffer takes up to twice its bytes, as it begins at a granule. */
static int make_range(struct cu_device *dev, const struct hal_bk_partition_desc *desc,
		      struct cu_range **out)
{
	uint64_t bytes = dev->opt.range ? dev->opt.range : dev->shape.memory_bytes;
	const int err = cu_enter(dev);

	if (evicts(desc) && bytes < 2 * desc->address_bytes)
		bytes = 2 * desc->address_bytes;
	return err ? err : cu_range_make(dev, bytes, out);
}

static int open_colors(struct cu_device *dev, struct cu_partition *part)
{
	int unseen = 0, err = cu_enter(dev);

	if (!err)
		err = cu_color_open(dev, part);
	if (!err && part->color && part->range) {
		err = cu_host->fail(ENOTSUP,
				    "cuda: buffers on some channels are not evicted: "
				    "partition %u needs .memory_limit within its quota",
				    part->base.desc.index);
		cu_color_close(dev, part, &unseen);
	}
	if (err)
		cu_give_back(dev, CU_KIND_RANGE, part->range, &unseen);
	return err;
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
	part->base.desc = *desc;
	if (dev->opt.vmm || evicts(desc))
		err = make_range(dev, desc, &part->range);
	if (!err && dev->colors)
		err = open_colors(dev, part);
	if (err) {
		free(part);
		return err;
	}
	part->masked = dev->mask && !dev->mask->stream_at;
	if (dev->mask)
		cu_mask_of(dev, desc->col, desc->units, part->mask);
	cu_remainder_take(dev, desc->col, desc->units);
	*out = part;
	return 0;
}

/* Return true if a queue of part was given up and still has work: its stream keeps the
 * green context for good. */
static bool hangs(const struct cu_device *dev, const struct cu_partition *part)
{
	const struct stream_queue *q;

	for (q = dev->base.hanging; q && q->part != &part->base; q = q->older)
		;
	return q != NULL;
}

int cu_partition_destroy(void *device, void *partition)
{
	struct cu_partition *part = partition;
	struct cu_device *dev = device;
	int err = 0;

	if (part->base.moving)
		return cu_host->fail(EBUSY, "cuda: partition %u is being resized",
				     part->base.desc.index);
	if (part->base.queues + part->base.buffers)
		return cu_host->fail(
			EBUSY, "cuda: partition %u still has %u queues and %u buffers",
			part->base.desc.index, part->base.queues, part->base.buffers);
	if ((part->range || part->color) && !atomic_load(&dev->base.lost))
		err = cu_enter(dev);
	cu_color_close(dev, part, &err);
	if (part->range)
		cu_give_back(dev, CU_KIND_RANGE, part->range, &err);
	if (part->green && !hangs(dev, part))
		cu_green_leave(dev, part->green);
	cu_partitions_settle(dev);
	cu_remainder_leave(dev, part->base.desc.col, part->base.desc.units);
	free(part);
	return err;
}

void cu_partitions_settle(struct cu_device *dev)
{
	struct cu_partition **at = &dev->left, *part;

	while ((part = *at)) {
		if (part->base.moving) {
			at = &part->left_next;
			continue;
		}
		*at = part->left_next;
		cu_remainder_leave(dev, part->left_first, part->left_count);
	}
}

/* The partition has its new units at once, and its old ones until the move is over. */
static void change_units(struct cu_device *dev, struct cu_partition *part,
			 const struct hal_bk_partition_desc *desc)
{
	cu_partitions_settle(dev);
	cu_remainder_take(dev, desc->col, desc->units);
	part->left_first = part->base.desc.col;
	part->left_count = part->base.desc.units;
	part->left_next = dev->left;
	dev->left = part;
	part->base.desc = *desc;
	cu_mask_of(dev, desc->col, desc->units, part->mask);
}

/* Later launches go by the new mask.  Those that are with the device keep the one they
 * were given: it is quiet when they have ended. */
int cu_resize(void *device, void *partition, const struct hal_bk_partition_desc *desc,
	      uint64_t cookie)
{
	struct cu_device *dev = device;
	struct cu_partition *part = partition;
	struct stream_queue *q;
	bool entered;
	int err;

	if (!dev->mask)
		return cu_host->fail(ENOTSUP,
				     "cuda:%u: partitions can be resized only with "
				     "partitions=mask or stream",
				     dev->index);
	if (part->base.moving)
		return cu_host->fail(EBUSY, "cuda: partition %u is already being resized",
				     part->base.desc.index);
	err = check_units(dev, desc);
	if (err)
		return err;
	entered = !stream_lost(&dev->base) && !cu_enter(dev);
	pthread_mutex_lock(&dev->base.queues_lock);
	change_units(dev, part, desc);
	for (q = dev->base.queues; q; q = q->older) {
		if (q->part != &part->base)
			continue;
		/* What runs where the partition was is not reported with what does not.
		 */
		if (entered && !q->broken)
			cu_mark(dev, (struct cu_queue *)q);
		stream_move_queue(q);
		if (dev->mask->stream_at)
			(void)cu_stream_mask_set(dev, ((struct cu_queue *)q)->stream,
						 part->mask, false);
	}
	pthread_mutex_unlock(&dev->base.queues_lock);
	stream_move(&dev->base, &part->base, cookie);
	return 0;
}
