/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Partitions of a ROCm device: all of it, or masks of compute units, which each queue's
 * stream is made with, or that its queue of HSA's is given.  Nothing says that a mask was
 * not taken: HIP runs a kernel on everything where a mask and the process's own
 * (ROC_GLOBAL_CU_MASK) have no bit in common, and cuts arrays that are too long.  So it
 * is read back, and what differs is refused.
 */
#define _GNU_SOURCE
#include "internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int differs(struct rocm_device *dev, const uint32_t *asked, const uint32_t *got,
		   uint32_t words)
{
	uint32_t i = 0;

	while (i < words - 1 && asked[i] == got[i])
		i++;
	return rocm_host->fail(ENOTSUP,
			       "rocm:%u: partitions: mask of CUs %u to %u: set to "
			       "0x%08x, but HIP reports 0x%08x",
			       dev->index, 32 * i, 32 * i + 31, asked[i], got[i]);
}

int rocm_masked_stream(struct rocm_device *dev, const uint32_t *mask, int32_t priority,
		       void **stream)
{
	const uint32_t cus = (uint32_t)dev->shape.multiprocessors;
	const uint32_t words = (cus + 31) / 32;
	uint32_t got[ROCM_MASK_WORDS] = {0};
	int ignored = 0;
	int err = dev->green
			  ? rocm_green_stream(dev, mask, priority, stream)
			  : HIP(dev, hipExtStreamCreateWithCUMask, stream, words, mask);

	if (err) {
		*stream = NULL;
		return err;
	}
	err = HIP(dev, hipExtStreamGetCUMask, *stream, words, got);
	if (!err && memcmp(mask, got, words * sizeof(*mask)) != 0)
		err = differs(dev, mask, got, words);
	if (err) {
		rocm_give_back(dev, ROCM_KIND_STREAM, *stream, &ignored);
		*stream = NULL;
	}
	return err;
}

/* At open: what can be known then. */
int rocm_try_masks(struct rocm_device *dev)
{
	uint32_t mask[ROCM_MASK_WORDS];
	void *stream = NULL;
	int err;

	rocm_topology_mask(&dev->units, 0, dev->units.count, mask);
	err = rocm_masked_stream(dev, mask, 0, &stream);
	rocm_give_back(dev, ROCM_KIND_STREAM, stream, &err);
	return err;
}

static int check_place(const struct rocm_device *dev,
		       const struct hal_bk_partition_desc *desc)
{
	const uint32_t all = dev->units.count ? dev->units.count : 1;

	if (desc->units && desc->col < all && desc->units <= all - desc->col)
		return 0;
	return rocm_host->fail(EINVAL,
			       "rocm:%u: a partition of %u units from unit %u on does "
			       "not fit: the device has %u",
			       dev->index, desc->units, desc->col, all);
}

static void place(const struct rocm_device *dev, struct rocm_partition *part,
		  const struct hal_bk_partition_desc *desc)
{
	part->base.desc = *desc;
	if (dev->units.count)
		rocm_topology_mask(&dev->units, desc->col, desc->units, part->mask);
}

int rocm_partition_create(void *device, const struct hal_bk_partition_desc *desc,
			  void **out)
{
	struct rocm_partition *part;
	int err = check_place(device, desc);

	if (err)
		return err;
	part = calloc(1, sizeof(*part));
	if (!part)
		return rocm_host->fail(ENOMEM, "rocm: no memory for a partition");
	place(device, part, desc);
	rocm_remainder_take(device, desc->col, desc->units);
	*out = part;
	return 0;
}

int rocm_partition_destroy(void *device, void *partition)
{
	struct rocm_partition *part = partition;

	if (part->base.queues || part->base.buffers || part->base.moving)
		return rocm_host->fail(
			EBUSY, "rocm: partition %u still has %u queues and %u buffers%s",
			part->base.desc.index, part->base.queues, part->base.buffers,
			part->base.moving ? " and a resize in progress" : "");
	rocm_remainder_leave(device, part->base.desc.col, part->base.desc.units);
	free(part);
	return 0;
}

/* All streams or none: one for each queue, behind what the queue has. */
static int make_streams(struct rocm_device *dev, const struct rocm_partition *part,
			const uint32_t *mask, void **streams)
{
	struct rocm_queue *q;
	uint32_t n = 0;
	int err = rocm_enter(dev), ignored = 0;

	for (q = rocm_newest(dev); q && !err; q = rocm_older(q)) {
		if (q->base.part != &part->base)
			continue;
		err = rocm_masked_stream(dev, mask, q->priority, &streams[n]);
		if (!err)
			err = rocm_queue_follow(dev, q, streams[n++]);
	}
	while (err && n)
		rocm_give_back(dev, ROCM_KIND_BUSY, streams[--n], &ignored);
	return err;
}

/* What the device has been given stays where it is; it is quiet when that has ended. */
static void move(struct rocm_device *dev, struct rocm_partition *part, void **streams)
{
	struct rocm_queue *q;
	int ignored = 0; /* it is tried again */

	for (q = rocm_newest(dev); q; q = rocm_older(q)) {
		if (q->base.part != &part->base)
			continue;
		if (q->left)
			rocm_give_back(dev, ROCM_KIND_BUSY, q->left, &ignored);
		else
			dev->left++;
		q->left = q->stream;
		q->stream = *streams++;
		stream_move_queue(&q->base);
	}
}

/* The one that comes, where KILL has ended the other. */
static int change_mask(struct rocm_device *dev, const struct rocm_queue *q,
		       const uint32_t *mask)
{
	return rocm_aql_mask(dev, q->next ? q->next : q->aql, mask);
}

/* Live: what runs goes on with the new mask.  A queue that cannot be put back runs no
 * longer. */
static int change_masks(struct rocm_device *dev, const struct rocm_partition *part,
			const uint32_t *mask)
{
	struct rocm_queue *q, *back;
	int err = 0;

	for (q = rocm_newest(dev); q && !err; q = err ? q : rocm_older(q))
		if (q->base.part == &part->base && !q->base.broken)
			err = change_mask(dev, q, mask);
	if (!err)
		return 0;
	for (back = rocm_newest(dev); back != rocm_older(q); back = rocm_older(back))
		if (back->base.part == &part->base && !back->base.broken &&
		    change_mask(dev, back, part->mask)) {
			(void)rocm_aql_end(dev, back);
			stream_break(&back->base,
				     "its mask was changed and could not be restored");
			/* Else its command tells. */
			back->base.reported = !back->base.count;
		}
	return err;
}

/* New streams for its queues; all of them, or none. */
static int change_streams(struct rocm_device *dev, struct rocm_partition *part,
			  const uint32_t *mask)
{
	void **streams = calloc(part->base.queues + 1, sizeof(*streams));
	int err;

	if (!streams)
		return rocm_host->fail(ENOMEM, "rocm: no memory for a resize");
	err = make_streams(dev, part, mask, streams);
	if (!err)
		move(dev, part, streams);
	free(streams);
	return err;
}

int rocm_resize(void *device, void *partition, const struct hal_bk_partition_desc *desc,
		uint64_t cookie)
{
	struct rocm_device *dev = device;
	struct rocm_partition *part = partition;
	uint32_t mask[ROCM_MASK_WORDS];
	int err;

	if (!dev->units.count)
		return rocm_host->fail(ENOTSUP,
				       "rocm:%u: the device is one unit: partitions "
				       "cannot be resized without partitions=",
				       dev->index);
	if (part->base.moving)
		return rocm_host->fail(EBUSY,
				       "rocm: partition %u is already being resized",
				       part->base.desc.index);
	err = check_place(dev, desc);
	if (err)
		return err;
	rocm_topology_mask(&dev->units, desc->col, desc->units, mask);
	pthread_mutex_lock(&dev->base.queues_lock);
	err = dev->hsa.on ? change_masks(dev, part, mask)
			  : change_streams(dev, part, mask);
	if (!err) {
		rocm_remainder_take(dev, desc->col, desc->units);
		rocm_remainder_leave(dev, part->base.desc.col, part->base.desc.units);
		place(dev, part, desc);
	}
	pthread_mutex_unlock(&dev->base.queues_lock);
	if (err)
		return err;
	stream_move(&dev->base, &part->base, cookie);
	return 0;
}

/* The streams from before a move, when they are empty: the mark that the new one waits
 * for comes behind the last command, and to end a stream is to wait for what is in it. */
void rocm_drop_left(struct rocm_device *dev)
{
	struct rocm_queue *q;
	int ignored = 0; /* it is tried again */

	pthread_mutex_lock(&dev->base.queues_lock);
	for (q = rocm_newest(dev); q && dev->left; q = rocm_older(q)) {
		if (!q->left || q->base.before)
			continue;
		if (!atomic_load(&dev->base.lost) &&
		    (rocm_enter(dev) || hip.hipStreamQuery(q->left) == HIPR_NotReady))
			continue;
		rocm_give_back(dev, ROCM_KIND_STREAM, q->left, &ignored);
		q->left = NULL;
		dev->left--;
	}
	pthread_mutex_unlock(&dev->base.queues_lock);
}
