/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Partitions of a CUDA device: none are carved out of it, so the device is one unit, and
 * one partition has it all.  Queues of the partition share its multiprocessors as the
 * device likes.
 */
#define _GNU_SOURCE
#include "internal.h"

#include <errno.h>
#include <stdlib.h>

int cu_partition_create(void *device, const struct hal_bk_partition_desc *desc,
			void **out)
{
	const struct cu_device *dev = device;
	struct cu_partition *part;

	if (desc->units != 1 || desc->col)
		return cu_host->fail(EINVAL,
				     "cuda:%u: the device is one unit: %u from %u on are "
				     "not there",
				     dev->index, desc->units, desc->col);
	part = calloc(1, sizeof(*part));
	if (!part)
		return cu_host->fail(ENOMEM, "cuda: no memory for a partition");
	part->desc = *desc;
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
