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

int cu_partition_create(void *device, const struct hal_bk_partition_desc *desc,
			void **out)
{
	struct cu_device *dev = device;
	const uint32_t units = cu_units(dev);
	struct cu_partition *part;
	int err;

	if (!desc->units || desc->col > units || desc->units > units - desc->col)
		return cu_host->fail(EINVAL,
				     "cuda:%u: the device has %u units: %u from %u on "
				     "are not there",
				     dev->index, units, desc->units, desc->col);
	part = calloc(1, sizeof(*part));
	if (!part)
		return cu_host->fail(ENOMEM, "cuda: no memory for a partition");
	part->desc = *desc;
	err = dev->green ? cu_green_take(dev, desc->col, desc->units, &part->green) : 0;
	if (err) {
		free(part);
		return err;
	}
	part->masked = dev->mask != NULL;
	if (part->masked)
		cu_mask_of(dev, desc->col, desc->units, part->mask);
	*out = part;
	return 0;
}

int cu_partition_destroy(void *device, void *partition)
{
	struct cu_partition *part = partition;

	(void)device;
	if (part->queues + part->buffers)
		return cu_host->fail(EBUSY,
				     "cuda: partition %u has %u queues, %u buffers",
				     part->desc.index, part->queues, part->buffers);
	free(part);
	return 0;
}
