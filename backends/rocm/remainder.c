/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fills of new buffers: HIP's are kernels, and in a stream without a mask they run on all
 * CUs, also on those of partitions.  So where there are partitions they have a stream of
 * the units that no partition has, which is made anew when these are others; where there
 * are none, or there can be no such stream, zeros are copied instead.
 */
#define _GNU_SOURCE
#include "internal.h"

#include <errno.h>
#include <string.h>

void rocm_remainder_init(struct rocm_device *dev)
{
	(void)pthread_mutex_init(&dev->remainder.lock, NULL);
	(void)pthread_mutex_init(&dev->remainder.filling, NULL);
}

void rocm_remainder_fini(struct rocm_device *dev)
{
	pthread_mutex_destroy(&dev->remainder.filling);
	pthread_mutex_destroy(&dev->remainder.lock);
}

void rocm_remainder_drop(struct rocm_device *dev, int *err)
{
	rocm_give_back(dev, ROCM_KIND_STREAM, dev->remainder.stream, err);
	dev->remainder.stream = NULL;
}

static void change(struct rocm_device *dev, uint32_t first, uint32_t count, int by)
{
	uint32_t i;

	if (!dev->units.count)
		return;
	pthread_mutex_lock(&dev->remainder.lock);
	for (i = first; i < first + count; i++)
		dev->remainder.owners[i] = (uint16_t)(dev->remainder.owners[i] + by);
	pthread_mutex_unlock(&dev->remainder.lock);
}

void rocm_remainder_take(struct rocm_device *dev, uint32_t first, uint32_t count)
{
	change(dev, first, count, 1);
}

void rocm_remainder_leave(struct rocm_device *dev, uint32_t first, uint32_t count)
{
	change(dev, first, count, -1);
}

/* The mask of the units that no partition has; false: there are none. */
static bool read_free(struct rocm_device *dev, uint32_t mask[ROCM_MASK_WORDS])
{
	uint32_t unit[ROCM_MASK_WORDS], i, k;
	bool any = false;

	memset(mask, 0, ROCM_MASK_WORDS * sizeof(*mask));
	pthread_mutex_lock(&dev->remainder.lock);
	for (i = 0; i < dev->units.count; i++) {
		if (dev->remainder.owners[i])
			continue;
		any = true;
		rocm_topology_mask(&dev->units, i, 1, unit);
		for (k = 0; k < ROCM_MASK_WORDS; k++)
			mask[k] |= unit[k];
	}
	pthread_mutex_unlock(&dev->remainder.lock);
	return any;
}

/* A stream of that mask.  .filling is held. */
static int have_stream(struct rocm_device *dev, const uint32_t mask[ROCM_MASK_WORDS])
{
	const size_t bytes = sizeof(dev->remainder.mask);
	int err = 0;

	if (dev->remainder.stream && memcmp(dev->remainder.mask, mask, bytes) == 0)
		return 0;
	rocm_remainder_drop(dev, &err); /* it is idle */
	if (!err)
		err = rocm_masked_stream(dev, mask, -1, &dev->remainder.stream);
	if (!err)
		memcpy(dev->remainder.mask, mask, bytes);
	else if (!atomic_load(&dev->base.lost))
		err = -EAGAIN;
	return err;
}

int rocm_remainder_fill(struct rocm_device *dev, void *address, uint64_t words)
{
	uint32_t mask[ROCM_MASK_WORDS];
	int err;

	if (!dev->units.count)
		return HIP(dev, hipMemsetD32Async, address, 0, words, dev->lane.stream);
	if (!read_free(dev, mask))
		return -EAGAIN;
	pthread_mutex_lock(&dev->remainder.filling);
	err = have_stream(dev, mask);
	if (!err)
		err = HIP(dev, hipMemsetD32Async, address, 0, words,
			  dev->remainder.stream);
	if (!err)
		err = HIP(dev, hipStreamSynchronize, dev->remainder.stream);
	pthread_mutex_unlock(&dev->remainder.filling);
	return err;
}
