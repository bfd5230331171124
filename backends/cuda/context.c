/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The device's primary context: which thread has it current, and when what was made in
 * it is given back.  It is shared with whoever else uses CUDA in this process, so it is
 * never reset and its flags stay.
 */
#define _GNU_SOURCE
#include "internal.h"

#include <errno.h>

/* The device whose context this thread has current because cu_enter made it so. */
_Thread_local uint64_t cu_entered;
/* The capture mode that this thread had before. */
static _Thread_local uint32_t mode_before;

/* This thread is ours: the context stays. */
static int enter_own(struct cu_device *dev)
{
	int err = CU(dev, cuCtxSetCurrent, dev->context);

	mode_before = CU_CAPTURE_RELAXED;
	if (!err)
		err = CU(dev, cuThreadExchangeStreamCaptureMode, &mode_before);
	if (!err)
		cu_entered = dev->id;
	return err;
}

/* Under the real clock a caller may be the engine: it gets its own context back by
 * cu_leave. */
int cu_enter_first(struct cu_device *dev)
{
	int err;

	if (dev->opt.virtual_clock)
		return enter_own(dev);
	err = cu_push(dev, &mode_before);
	if (!err)
		cu_entered = dev->id;
	return err;
}

void cu_leave(void *device)
{
	const struct cu_device *dev = device;

	if (cu_entered != dev->id)
		return;
	cu_pop(mode_before);
	cu_entered = 0;
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

static int destroy(void *device, const void *item)
{
	const struct cu_later *what = item;
	struct cu_device *dev = device;

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
	case CU_KIND_REGION:
		return cu_region_end(dev, what->handle);
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

static int enter(void *device)
{
	struct cu_device *dev = device;

	return cu_entered == dev->id ? 0 : enter_own(dev);
}

static void leave(void *device)
{
	cu_forget(device);
}

static bool is_lost(const void *device)
{
	return atomic_load(&((const struct cu_device *)device)->base.lost) != 0;
}

static bool is_busy(const void *device)
{
	return cu.busy((uint32_t)((const struct cu_device *)device)->shape.device) != 0;
}

static bool is_running(const void *device)
{
	return atomic_load(&((const struct cu_device *)device)->fenced);
}

static const struct stream_later_ops later_ops = {
	.enter = enter,
	.leave = leave,
	.end = destroy,
	.lost = is_lost,
	.busy = is_busy,
	.running = is_running,
};

void cu_later_init(struct cu_device *dev)
{
	stream_later_init(&dev->later, &later_ops, dev, sizeof(struct cu_later),
			  dev->opt.virtual_clock ? NULL : "hal-cuda-later");
}

/* Memory without an address has a mapping still, or was never used.  A range can be freed
 * once nothing is mapped in it.  With bounds=yes launches reach all of the range that was
 * mapped when they were submitted: nothing there is unmapped before they have ended. */
static void give_back(struct cu_device *dev, const struct cu_later *what, int *err)
{
	const bool mapped = what->kind == CU_KIND_RANGE && cu_range_mapped(what->handle);
	enum stream_later_when when = STREAM_LATER_WAIT;
	int one;

	if (what->kind < CU_KIND_MODULE || what->kind == CU_KIND_PHYSICAL)
		when = STREAM_LATER_NOW;
	else if (what->kind == CU_KIND_PLACE && dev->opt.bounds)
		when = STREAM_LATER_IDLE;
	/* Under the real clock other threads than the engine, which owns .inflight, give
	 * objects back, too. */
	one = stream_later_give(&dev->later, what, when,
				dev->opt.virtual_clock && (dev->base.inflight || mapped));

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

uint64_t cu_room_mark(struct cu_device *dev)
{
	return stream_later_mark(&dev->later);
}

bool cu_make_room(struct cu_device *dev, uint64_t mark)
{
	const bool any = stream_later_settle(&dev->later, mark);

	cu_catch_up(dev);
	return any;
}

void cu_give_back_later(struct cu_device *dev, bool running)
{
	if (!running && atomic_load_explicit(&dev->fenced, memory_order_relaxed))
		atomic_store(&dev->fenced, false);
	stream_later_poll(&dev->later, running, dev->base.hangs != 0);
}
