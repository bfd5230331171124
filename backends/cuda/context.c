/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The device's primary context: which thread has it current, and when what was made in
 * it is given back.  It is shared with whoever else uses CUDA in this process, so it is
 * never reset and its flags stay.
 */
#define _GNU_SOURCE
#include "internal.h"

#include <errno.h>
#include <stdlib.h>

/* The device whose context this thread has current because cu_enter made it so. */
_Thread_local uint64_t cu_entered;

/* The engine's thread is ours: the context stays. */
int cu_enter_first(struct cu_device *dev)
{
	uint32_t mode = CU_CAPTURE_RELAXED;
	int err;

	err = CU(dev, cuCtxSetCurrent, dev->context);
	if (!err)
		err = CU(dev, cuThreadExchangeStreamCaptureMode, &mode);
	if (!err)
		cu_entered = dev->id;
	return err;
}

/* Before the context goes. */
void cu_forget(const struct cu_device *dev)
{
	if (cu_entered != dev->id)
		return;
	(void)cu.cuCtxSetCurrent(NULL);
	cu_entered = 0;
}

/* A caller's thread gets its own context back.  Other streams of the process may be
 * recorded meanwhile: what is done here is no part of that. */
int cu_push(struct cu_device *dev, uint32_t *mode)
{
	int err = CU(dev, cuCtxPushCurrent_v2, dev->context);
	void *context;

	if (err)
		return err;
	*mode = CU_CAPTURE_RELAXED;
	err = CU(dev, cuThreadExchangeStreamCaptureMode, mode);
	if (err)
		(void)cu.cuCtxPopCurrent_v2(&context);
	return err;
}

/* Tried twice: a context left behind on a foreign thread would be felt there. */
void cu_pop(uint32_t mode)
{
	uint32_t relaxed = mode;
	void *context;

	if (cu.cuThreadExchangeStreamCaptureMode(&relaxed))
		(void)cu.cuThreadExchangeStreamCaptureMode(&mode);
	if (cu.cuCtxPopCurrent_v2(&context))
		(void)cu.cuCtxPopCurrent_v2(&context);
}

static int destroy(struct cu_device *dev, const struct cu_later *what)
{
	switch (what->kind) {
	case CU_KIND_STREAM:
		return CU(dev, cuStreamDestroy_v2, what->handle);
	case CU_KIND_EVENT:
		return CU(dev, cuEventDestroy_v2, what->handle);
	case CU_KIND_EXEC:
		return CU(dev, cuGraphExecDestroy, what->handle);
	case CU_KIND_GRAPH:
		return CU(dev, cuGraphDestroy, what->handle);
	case CU_KIND_MODULE:
		return CU(dev, cuModuleUnload, what->handle);
	case CU_KIND_HOST:
		return CU(dev, cuMemFreeHost, what->handle);
	case CU_KIND_PHYSICAL:
		return CU(dev, cuMemRelease, what->address);
	case CU_KIND_PLACE:
		return cu_place_end(dev, &what->place);
	case CU_KIND_RANGE:
		return cu_range_end(dev, what->handle);
	default:
		return CU(dev, cuMemFree_v2, what->address);
	}
}

static void keep(struct cu_device *dev, const struct cu_later *what)
{
	uint32_t room = dev->later_room ? dev->later_room * 2 : 64;
	struct cu_later *list = dev->later;

	if (dev->later_count == dev->later_room) {
		list = realloc(list, room * sizeof(*list));
		if (!list)
			return; /* the process's end takes it */
		dev->later = list;
		dev->later_room = room;
	}
	list[dev->later_count++] = *what;
}

/* Memory without an address has a mapping still, or was never used; addresses go when
 * what was there has gone. */
static bool at_once(const struct cu_device *dev, const struct cu_later *what)
{
	if (what->kind < CU_KIND_MODULE || what->kind == CU_KIND_PHYSICAL)
		return true;
	return !dev->base.inflight &&
	       (what->kind != CU_KIND_RANGE || !cu_range_mapped(what->handle));
}

/* What waits for work of others would hold up the engine: it is done while nothing runs.
 * What will not go is tried again.  After a loss all is the process's end's. */
static void give_back(struct cu_device *dev, const struct cu_later *what, int *err)
{
	int one = 0;

	if (atomic_load(&dev->base.lost))
		return;
	pthread_mutex_lock(&dev->later_lock);
	if (at_once(dev, what)) {
		one = destroy(dev, what);
		if (one)
			keep(dev, what);
	} else {
		keep(dev, what);
	}
	pthread_mutex_unlock(&dev->later_lock);
	if (one && !*err)
		*err = one;
}

void cu_give_back(struct cu_device *dev, enum cu_kind kind, void *handle, int *err)
{
	const struct cu_later what = {.kind = kind, .handle = handle};

	if (handle)
		give_back(dev, &what, err);
}

void cu_give_back_address(struct cu_device *dev, enum cu_kind kind, uint64_t address,
			  int *err)
{
	const struct cu_later what = {.kind = kind, .address = address};

	give_back(dev, &what, err);
}

void cu_give_back_place(struct cu_device *dev, const struct cu_place *place, int *err)
{
	const struct cu_later what = {.kind = CU_KIND_PLACE, .place = *place};

	give_back(dev, &what, err);
}

bool cu_make_room(struct cu_device *dev)
{
	if (!dev->later_count || dev->base.hangs)
		return false;
	cu_give_back_later(dev, false);
	cu_catch_up(dev);
	return true;
}

void cu_give_back_later(struct cu_device *dev, bool running)
{
	uint32_t i, left = 0;

	if (running || !dev->later_count)
		return;
	pthread_mutex_lock(&dev->later_lock);
	for (i = 0; i < dev->later_count; i++)
		if (!atomic_load(&dev->base.lost) && destroy(dev, &dev->later[i]))
			dev->later[left++] = dev->later[i];
	dev->later_count = left;
	pthread_mutex_unlock(&dev->later_lock);
}
