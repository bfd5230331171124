/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Partitions are slots: while one is there, the compute units of its slots are open with
 * exclusive access, so no other queue, handle or process has them.  Opening and closing
 * a unit on which nothing runs is bookkeeping in the kernel driver and does not wait for
 * the card.  A slot that the mover is changing does wait, and so is left to the mover.
 */
#define _GNU_SOURCE
#include "internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void leave(struct fp_device *dev, uint32_t first, uint32_t count)
{
	uint32_t i;

	(void)fp_slots_changed(dev);
	for (i = first; i < first + count; i++) {
		dev->slots[i].owner = NULL;
		dev->slots[i].opens = false;
		/* Who changes it, or loads, opens its units, and they are closed after
		 * that. */
		if (dev->is_loading || dev->changing >> i & 1)
			continue;
		fp_slot_close(dev->loaded, i);
		fp_slot_give(dev, i);
	}
	fp_catch_up(dev);
}

/* No slot of ours was open, and another process has loaded what is its own. */
static bool is_replaced(struct fp_device *dev)
{
	uint8_t uuid[sizeof(dev->loaded->x.uuid)];
	uint32_t i;

	for (i = 0; i < FP_SLOTS_MAX; i++)
		if (dev->slots[i].owner || dev->changing >> i & 1)
			return false;
	return !XRT(xrtDeviceGetXclbinUUID, dev->handle, uuid) &&
	       memcmp(uuid, dev->loaded->x.uuid, sizeof(uuid)) != 0;
}

static int enter(struct fp_device *dev, uint32_t slot, struct fp_partition *part)
{
	char why[160];
	int err = 0;

	if (!fp_slot_take(dev, slot))
		return fp_host->fail(
			EBUSY,
			"fpga:%u: slot %u is used by another open device of this process",
			dev->index, slot);
	if (dev->changing >> slot & 1)
		dev->slots[slot].opens = true;
	else if (!dev->is_loading && dev->loaded) /* what is loaded opens its units */
		err = fp_slot_open(dev, dev->loaded, slot, why, sizeof(why));
	if (err && is_replaced(dev)) {
		fp_design_forget(dev);
		err = 0;
	}
	fp_catch_up(dev);
	if (err) {
		fp_slot_give(dev, slot);
		return fp_host->fail(-err, "fpga:%u: %s", dev->index, why);
	}
	dev->slots[slot].owner = part;
	part->slots |= UINT64_C(1) << slot;
	dev->slots[slot].broken[0] = 0; /* of one that is changing: when it is opened */
	return 0;
}

int fp_partition_create(void *device, const struct hal_bk_partition_desc *desc,
			void **out)
{
	struct fp_device *dev = device;
	const uint32_t slots = dev->base->x.slot_count;
	struct fp_partition *part;
	uint32_t i;
	int err = 0;

	if (!desc->units || desc->units > slots || desc->col > slots - desc->units)
		return fp_host->fail(EINVAL,
				     "fpga:%u: a partition of slots %u to %u does not "
				     "fit: the card has %u slots, from 0 on",
				     dev->index, desc->col, desc->col + desc->units - 1,
				     slots);
	part = calloc(1, sizeof(*part));
	if (!part)
		return fp_host->fail(ENOMEM, "fpga:%u: no memory for a partition",
				     dev->index);
	part->desc = *desc;
	(void)fp_slots_changed(dev);
	for (i = desc->col; !err && i < desc->col + desc->units; i++)
		err = enter(dev, i, part);
	if (err) {
		leave(dev, desc->col, i - 1 - desc->col);
		free(part);
		return err;
	}
	*out = part;
	return 0;
}

int fp_partition_destroy(void *device, void *partition)
{
	struct fp_partition *part = partition;

	if (part->queues || part->buffers)
		return fp_host->fail(
			EBUSY, "fpga: partition %u still has %u queues and %u buffers",
			part->desc.index, part->queues, part->buffers);
	leave(device, part->desc.col, part->desc.units);
	free(part);
	return 0;
}
