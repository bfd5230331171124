/* SPDX-License-Identifier: Apache-2.0 */
/* Who owns which units of the software device; moving a border. */
#define _GNU_SOURCE
#include "internal.h"

#include <errno.h>
#include <stdlib.h>

/* The core has checked this; a device that enforces looks for itself. */
static int check_units(const struct ref_device *dev,
		       const struct hal_bk_partition_desc *d, int32_t self)
{
	uint32_t width = dev->opt.units / dev->opt.rows;
	uint32_t r, c;

	if (!d->rows || !d->cols || d->units != (uint32_t)d->rows * d->cols)
		return ref_host->fail(
			EINVAL,
			"ref: a partition of %u units cannot be a rectangle of %u x %u",
			d->units, d->rows, d->cols);
	if ((uint32_t)d->row + d->rows > dev->opt.rows ||
	    (uint32_t)d->col + d->cols > width)
		return ref_host->fail(EINVAL,
				      "ref: rectangle %u x %u at (%u, %u) exceeds the "
				      "device's grid of %u x %u units",
				      d->rows, d->cols, d->row, d->col, dev->opt.rows,
				      width);
	for (r = d->row; r < (uint32_t)d->row + d->rows; r++) {
		for (c = d->col; c < (uint32_t)d->col + d->cols; c++) {
			int32_t owner = dev->owner[r * width + c];

			if (owner >= 0 && owner != self)
				return ref_host->fail(ENOSPC,
						      "ref: unit (%u, %u) already "
						      "belongs to partition %d",
						      r, c, owner);
		}
	}
	return 0;
}

static void set_units(struct ref_device *dev, const struct hal_bk_partition_desc *d,
		      int32_t owner)
{
	uint32_t width = dev->opt.units / dev->opt.rows;
	uint32_t r, c;

	for (r = d->row; r < (uint32_t)d->row + d->rows; r++)
		for (c = d->col; c < (uint32_t)d->col + d->cols; c++)
			dev->owner[r * width + c] = owner;
}

int ref_partition_create(void *device, const struct hal_bk_partition_desc *desc,
			 void **out)
{
	struct ref_device *dev = device;
	struct ref_partition *part;
	int err;

	if (ref_injected(dev, HAL_REF_OP_PARTITION_CREATE, &err))
		return ref_host->fail(err, "ref: partition_create: injected error");
	err = desc->host ? 0 : check_units(dev, desc, -1);
	if (err)
		return err;
	part = calloc(1, sizeof(*part));
	if (!part)
		return ref_host->fail(ENOMEM, "ref: no memory for a partition");
	part->dev = dev;
	part->host = desc->host ? desc->host : part;
	part->desc = *desc;
	part->heap_index = UINT32_MAX;
	set_units(dev, desc, (int32_t)desc->index);
	dev->partitions++;
	*out = part;
	return 0;
}

int ref_partition_destroy(void *device, void *partition)
{
	struct ref_device *dev = device;
	struct ref_partition *part = partition;

	if (part->queues || part->buffers || part->moved)
		return ref_host->fail(
			EBUSY, "ref: partition %u still has %u queues, %u buffers%s",
			part->desc.index, part->queues, part->buffers,
			part->moved ? ", a resize" : "");
	set_units(dev, &part->desc, -1);
	dev->partitions--;
	free(part);
	return 0;
}

/* At once, also under a running command: what is left of it goes on with the new units.
 */
int ref_resize(void *device, void *partition, const struct hal_bk_partition_desc *desc,
	       uint64_t cookie)
{
	struct ref_device *dev = device;
	struct ref_partition *part = partition;
	int err;

	if (ref_injected(dev, HAL_REF_OP_RESIZE, &err))
		return ref_host->fail(err, "ref: resize: injected error");
	if (dev->opt.resize == REF_RESIZE_NONE)
		return ref_host->fail(ENOTSUP,
				      "ref: resize=none: partitions cannot be resized");
	if (part->moved ||
	    (dev->opt.resize == REF_RESIZE_IDLE && (part->running || part->ready_first)))
		return ref_host->fail(EBUSY,
				      "ref: partition %u has commands or a resize in "
				      "progress; wait for them first",
				      part->desc.index);
	err = check_units(dev, desc, (int32_t)part->desc.index);
	if (err)
		return err;
	set_units(dev, &part->desc, -1);
	set_units(dev, desc, (int32_t)desc->index);
	ref_reschedule(dev, part, desc->units);
	part->desc = *desc;
	part->moved = true;
	part->moved_cookie = cookie;
	part->moved_next = NULL;
	if (dev->moved_last)
		dev->moved_last->moved_next = part;
	else
		dev->moved_first = part;
	dev->moved_last = part;
	part->dev->news = true;
	return 0;
}

uint32_t ref_take_moved(struct ref_device *dev, struct hal_bk_event *ev, uint32_t max)
{
	uint32_t n = 0;

	while (n < max && dev->moved_first) {
		struct ref_partition *part = dev->moved_first;

		dev->moved_first = part->moved_next;
		if (!dev->moved_first)
			dev->moved_last = NULL;
		part->moved = false;
		ev[n++] = (struct hal_bk_event){.kind = HAL_BK_QUIET,
						.cookie = part->moved_cookie,
						.start_ns = dev->now_ns,
						.end_ns = dev->now_ns};
	}
	return n;
}
