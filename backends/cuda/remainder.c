/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The remainder: the units that no partition has.  What is in no partition runs there:
 * fills of new buffers, and with the option remainder, which keeps some units for it,
 * launches of the program's own.
 *
 * A stream of the primary context runs on all multiprocessors, also on those of green
 * contexts.  So fills have a mask, or a stream of a context that no partition gets; where
 * there is neither, zeros are copied instead, which takes no multiprocessor.  The
 * program's launches have what its stream has (cu_remainder_stream); with masks at
 * launch, which the driver calls back for whoever launches, all of them are kept off.
 */
#define _GNU_SOURCE
#include "internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A stream that the program has been given. */
struct cu_outside {
	struct cu_outside *next;
	void *stream;
};

/* Opens whose partitions the program's launches are kept off. */
static struct {
	pthread_mutex_t lock;
	struct cu_device *first;
} kept = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void in_child(void)
{
	(void)pthread_mutex_init(&kept.lock, NULL);
}

__attribute__((constructor)) static void watch_forks(void)
{
	(void)pthread_atfork(NULL, NULL, in_child);
}

int cu_check_remainder(const struct cu_device *dev, uint32_t units)
{
	if (dev->opt.remainder < units)
		return 0;
	return cu_host->fail(EINVAL,
			     "cuda:%u: remainder=%u: the device has %u units, so that no "
			     "partition could have any",
			     dev->index, dev->opt.remainder, units);
}

/* ---- which units these are ----------------------------------------------------------- */

/* What all opens together keep the program's launches off; nothing where they have all
 * of it, as a launch needs a place. */
static void publish_outside(const struct cu_device *dev)
{
	uint32_t mask[4] = {0}, all[4], i;
	const struct cu_device *d;
	bool keeps;

	cu_mask_of(dev, 0, 0, all);
	pthread_mutex_lock(&kept.lock);
	for (d = kept.first; d; d = d->remainder.next_kept)
		for (i = 0; i < 4; i++)
			mask[i] |= d->remainder.mask[i];
	keeps = kept.first && memcmp(mask, all, sizeof(all)) != 0;
	cu_mask_outside(dev, keeps ? mask : NULL);
	pthread_mutex_unlock(&kept.lock);
}

/* The mask of what partitions have.  One of everything is written to no stream. */
static void publish(struct cu_device *dev)
{
	struct cu_remainder *r = &dev->remainder;
	const struct cu_mask *m = dev->mask;
	const struct cu_outside *o;
	uint32_t i;

	pthread_mutex_lock(&kept.lock); /* other opens read the mask */
	memset(r->mask, 0, sizeof(r->mask));
	r->empty = true;
	for (i = 0; i < m->count; i++) {
		if (r->owners[i])
			r->mask[m->bit[i] / 32] |= 1u << m->bit[i] % 32;
		else
			r->empty = false;
	}
	pthread_mutex_unlock(&kept.lock);
	if (m->stream_at && !r->empty) {
		(void)cu_stream_mask_set(dev, dev->lane.stream, r->mask, false);
		for (o = r->streams; o; o = o->next)
			(void)cu_stream_mask_set(dev, o->stream, r->mask, false);
	}
	if (r->keeps)
		publish_outside(dev);
}

static void change(struct cu_device *dev, uint32_t first, uint32_t count, int by)
{
	struct cu_remainder *r = &dev->remainder;
	uint32_t i;

	if (!dev->mask)
		return;
	pthread_mutex_lock(&r->lock);
	for (i = first; i < first + count; i++)
		r->owners[i] = (uint16_t)(r->owners[i] + by);
	publish(dev);
	pthread_mutex_unlock(&r->lock);
}

void cu_remainder_take(struct cu_device *dev, uint32_t first, uint32_t count)
{
	change(dev, first, count, 1);
}

void cu_remainder_leave(struct cu_device *dev, uint32_t first, uint32_t count)
{
	change(dev, first, count, -1);
}

/* ---- open and close ------------------------------------------------------------------ */

void cu_remainder_init(struct cu_device *dev)
{
	(void)pthread_mutex_init(&dev->remainder.lock, NULL);
}

void cu_remainder_fini(struct cu_device *dev)
{
	pthread_mutex_destroy(&dev->remainder.lock);
}

/* Return whether masks at launch keep the program's launches off partitions.  A launch's
 * descriptor does not say which device it is for. */
static bool keeps_all(const struct cu_device *dev)
{
	int count = 0;

	return dev->opt.remainder && cu_way_of(dev) == CU_WAY_MASK &&
	       !cu.cuDeviceGetCount(&count) && count == 1;
}

static int open_masks(struct cu_device *dev)
{
	static const uint32_t none[4];
	int err = 0;

	if (dev->mask->stream_at)
		err = cu_stream_mask_set(dev, dev->lane.stream, none, true);
	if (err)
		return err;
	dev->remainder.opened = true;
	dev->remainder.keeps = keeps_all(dev);
	if (!dev->remainder.keeps)
		return 0;
	pthread_mutex_lock(&kept.lock);
	dev->remainder.next_kept = kept.first;
	kept.first = dev;
	pthread_mutex_unlock(&kept.lock);
	return 0;
}

int cu_remainder_open(struct cu_device *dev)
{
	struct cu_remainder *r = &dev->remainder;
	int err;

	if (dev->mask)
		return open_masks(dev);
	r->green = dev->green ? cu_green_remainder(dev) : NULL;
	if (!r->green)
		return 0;
	err = CU(dev, cuGreenCtxStreamCreate, &r->fills, r->green, CU_STREAM_NON_BLOCKING,
		 dev->least_priority);
	if (err)
		r->fills = NULL;
	return err;
}

static void forget(struct cu_device *dev)
{
	struct cu_device **at;

	pthread_mutex_lock(&kept.lock);
	for (at = &kept.first; *at && *at != dev; at = &(*at)->remainder.next_kept)
		;
	if (*at)
		*at = dev->remainder.next_kept;
	pthread_mutex_unlock(&kept.lock);
	publish_outside(dev);
}

static void end_stream(struct cu_device *dev, void *stream, int *err)
{
	if (dev->mask && dev->mask->stream_at)
		cu_stream_mask_clear(dev, stream);
	cu_give_back(dev, CU_KIND_STREAM, stream, err);
}

void cu_remainder_close(struct cu_device *dev)
{
	struct cu_remainder *r = &dev->remainder;
	const bool lost = atomic_load(&dev->base.lost) != 0;
	struct cu_outside *o;
	int ignored = 0; /* it is tried again */

	if (r->keeps)
		forget(dev);
	r->keeps = false;
	while ((o = r->streams)) {
		r->streams = o->next;
		if (!lost)
			end_stream(dev, o->stream, &ignored);
		free(o);
	}
	if (!lost && r->opened && dev->mask->stream_at)
		cu_stream_mask_clear(dev, dev->lane.stream);
	r->opened = false;
	if (!lost)
		cu_give_back(dev, CU_KIND_STREAM, r->fills, &ignored);
	r->fills = NULL;
}

/* ---- what runs there ----------------------------------------------------------------- */

void *cu_remainder_fills(const struct cu_device *dev)
{
	return dev->remainder.fills ? dev->remainder.fills : dev->lane.stream;
}

/* The lock is held for the call, so that the stream's mask does not become another one
 * while the driver reads it. */
static int fill_in_stream(struct cu_device *dev, uint64_t address, uint64_t words)
{
	int err = -EAGAIN;

	pthread_mutex_lock(&dev->remainder.lock);
	if (!dev->remainder.empty)
		err = CU(dev, cuMemsetD32Async, address, 0, words, dev->lane.stream);
	pthread_mutex_unlock(&dev->remainder.lock);
	return err;
}

static int fill_masked(struct cu_device *dev, uint64_t address, uint64_t words)
{
	uint32_t mask[4];
	bool empty;
	int err;

	pthread_mutex_lock(&dev->remainder.lock);
	memcpy(mask, dev->remainder.mask, sizeof(mask));
	empty = dev->remainder.empty;
	pthread_mutex_unlock(&dev->remainder.lock);
	if (empty)
		return -EAGAIN;
	cu_mask_begin(dev, mask);
	err = CU(dev, cuMemsetD32Async, address, 0, words, dev->lane.stream);
	(void)cu_mask_end(); /* where a copy engine fills, the driver takes none */
	return err;
}

int cu_remainder_fill(struct cu_device *dev, uint64_t address, uint64_t words)
{
	if (dev->mask)
		return dev->mask->stream_at ? fill_in_stream(dev, address, words)
					    : fill_masked(dev, address, words);
	if (dev->green && !dev->remainder.fills)
		return -EAGAIN;
	return CU(dev, cuMemsetD32Async, address, 0, words, cu_remainder_fills(dev));
}

static int check_program(struct cu_device *dev)
{
	if (atomic_load(&dev->base.lost))
		return cu_gone(dev);
	if (!dev->opt.remainder || cu_way_of(dev) == CU_WAY_NONE)
		return cu_host->fail(ENOTSUP,
				     "cuda:%u: no unit is kept for work outside of "
				     "partitions: open the device with remainder=1 or "
				     "more, and with partitions",
				     dev->index);
	if (cu_way_of(dev) == CU_WAY_MASK && !dev->remainder.keeps)
		return cu_host->fail(
			ENOTSUP,
			"cuda:%u: with partitions=mask the program's launches are kept "
			"off partitions only where the process sees one device: set "
			"CUDA_VISIBLE_DEVICES, or use partitions=stream or green",
			dev->index);
	return 0;
}

static int make_stream(struct cu_device *dev, int level, void **stream)
{
	void *green = dev->remainder.green;

	if (green)
		return CU(dev, cuGreenCtxStreamCreate, stream, green,
			  CU_STREAM_NON_BLOCKING, level);
	return CU(dev, cuStreamCreateWithPriority, stream, CU_STREAM_NON_BLOCKING, level);
}

/* From here on it follows the partitions. */
static int add_stream(struct cu_device *dev, struct cu_outside *o)
{
	struct cu_remainder *r = &dev->remainder;
	int err = 0, ignored = 0;

	pthread_mutex_lock(&r->lock);
	if (dev->mask && dev->mask->stream_at)
		err = cu_stream_mask_set(dev, o->stream, r->mask, true);
	if (!err) {
		o->next = r->streams;
		r->streams = o;
	}
	pthread_mutex_unlock(&r->lock);
	if (err)
		cu_give_back(dev, CU_KIND_STREAM, o->stream, &ignored);
	return err;
}

int cu_remainder_stream(void *native, int32_t priority, void **stream)
{
	struct cu_device *dev = native;
	struct cu_outside *o;
	uint32_t mode;
	int err = check_program(dev);

	if (err)
		return err;
	o = calloc(1, sizeof(*o));
	if (!o)
		return cu_host->fail(ENOMEM, "cuda: no memory for a stream");
	err = cu_push(dev, &mode);
	if (err) {
		free(o);
		return err;
	}
	err = make_stream(dev, cu_level(dev, priority), &o->stream);
	if (!err)
		err = add_stream(dev, o);
	cu_pop(mode);
	if (err)
		free(o);
	else
		*stream = o->stream;
	return err;
}

int cu_remainder_end(void *native, void *stream)
{
	struct cu_device *dev = native;
	struct cu_outside **at, *o;
	uint32_t mode;
	int err;

	pthread_mutex_lock(&dev->remainder.lock);
	for (at = &dev->remainder.streams; *at && (*at)->stream != stream;
	     at = &(*at)->next)
		;
	o = *at;
	if (o)
		*at = o->next;
	pthread_mutex_unlock(&dev->remainder.lock);
	if (!o)
		return cu_host->fail(EINVAL,
				     "cuda:%u: the stream is none that "
				     "remainder_stream has made",
				     dev->index);
	free(o);
	if (atomic_load(&dev->base.lost))
		return 0;
	err = cu_push(dev, &mode);
	if (err)
		return err;
	end_stream(dev, stream, &err);
	cu_pop(mode);
	return err;
}

void cu_remainder_say(const struct cu_device *dev, char *text, size_t bytes)
{
	const size_t at = strlen(text);

	if (!dev->opt.remainder || cu_way_of(dev) == CU_WAY_NONE)
		return;
	(void)snprintf(text + at, bytes - at, "; %u units are in no partition, for %s",
		       dev->opt.remainder,
		       dev->remainder.keeps ? "all launches of the program's own"
					    : "streams of remainder_stream");
}
