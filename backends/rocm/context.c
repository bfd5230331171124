/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which device a thread means, and when what was made is given back.  HIP shares a device
 * with whoever else uses it in this process: it is never reset.
 */
#define _GNU_SOURCE
#include "internal.h"

static _Thread_local uint64_t meant; /* .id of the device that rocm_enter set */

/* Streams of others may be captured meanwhile: what is done here is no part of that. */
static int relax(struct rocm_device *dev, uint32_t *mode)
{
	*mode = HIP_CAPTURE_RELAXED;
	return hip.hipThreadExchangeStreamCaptureMode
		       ? HIP(dev, hipThreadExchangeStreamCaptureMode, mode)
		       : 0;
}

/* The engine's thread is ours: it keeps both. */
static int enter_first(struct rocm_device *dev)
{
	uint32_t mode;
	int err = HIP(dev, hipSetDevice, dev->shape.device);

	if (!err)
		err = relax(dev, &mode);
	if (!err)
		meant = dev->id;
	return err;
}

int rocm_enter(struct rocm_device *dev)
{
	return __builtin_expect(meant != dev->id, 0) ? enter_first(dev) : 0;
}

bool rocm_entered(const struct rocm_device *dev)
{
	return meant == dev->id;
}

void rocm_leave(const struct rocm_device *dev)
{
	if (meant == dev->id)
		meant = 0;
}

int rocm_push(struct rocm_device *dev, struct rocm_caller *was)
{
	int err = HIP(dev, hipGetDevice, &was->device);

	if (!err && was->device != dev->shape.device)
		err = HIP(dev, hipSetDevice, dev->shape.device);
	if (err)
		return err;
	err = relax(dev, &was->mode);
	if (err && was->device != dev->shape.device)
		(void)hip.hipSetDevice(was->device);
	return err;
}

/* Each twice: a caller would feel it. */
void rocm_pop(struct rocm_device *dev, struct rocm_caller was)
{
	uint32_t relaxed = was.mode;

	if (hip.hipThreadExchangeStreamCaptureMode &&
	    hip.hipThreadExchangeStreamCaptureMode(&relaxed))
		(void)hip.hipThreadExchangeStreamCaptureMode(&was.mode);
	if (was.device != dev->shape.device && hip.hipSetDevice(was.device))
		(void)hip.hipSetDevice(was.device);
}

static int end_stream(struct rocm_device *dev, void *stream)
{
	int err = HIP(dev, hipStreamDestroy, stream);

	if (!err && dev->green)
		rocm_green_leave(dev, stream);
	return err;
}

static int end(void *device, const void *item)
{
	const struct rocm_later *l = item;
	struct rocm_device *dev = device;

	switch (l->kind) {
	case ROCM_KIND_STREAM:
	case ROCM_KIND_BUSY:
		return end_stream(dev, l->handle);
	case ROCM_KIND_EVENT:
		return HIP(dev, hipEventDestroy, l->handle);
	case ROCM_KIND_MODULE:
		return HIP(dev, hipModuleUnload, l->handle);
	case ROCM_KIND_QUEUE:
		return HSA(dev, hsa_queue_destroy, l->handle);
	case ROCM_KIND_SIGNAL:
		return HSA(dev, hsa_signal_destroy, (uintptr_t)l->handle);
	case ROCM_KIND_EXECUTABLE:
		return HSA(dev, hsa_executable_destroy, (uintptr_t)l->handle);
	case ROCM_KIND_CODE:
		return rocm_code_free(dev, l->handle);
	case ROCM_KIND_HOST:
		return HIP(dev, hipHostFree, l->handle);
	case ROCM_KIND_REGION:
		return rocm_region_end(dev, l->handle);
	case ROCM_KIND_DEVICE:
		return HIP(dev, hipFree, l->handle);
	case ROCM_KIND_MAPPING:
		return rocm_mapping_end(dev, l->handle);
	}
	return 0;
}

static int enter(void *device)
{
	return rocm_enter(device);
}

static void leave(void *device)
{
	rocm_leave(device);
}

static bool is_lost(const void *device)
{
	return atomic_load(&((const struct rocm_device *)device)->base.lost) != 0;
}

static bool is_busy(const void *device)
{
	return hip.busy((uint32_t)((const struct rocm_device *)device)->shape.device) !=
	       0;
}

static const struct stream_later_ops later_ops = {
	.enter = enter,
	.leave = leave,
	.end = end,
	.lost = is_lost,
	.busy = is_busy,
};

void rocm_later_init(struct rocm_device *dev)
{
	stream_later_init(&dev->later, &later_ops, dev, sizeof(struct rocm_later),
			  dev->opt.virtual_clock ? NULL : "hal-rocm-later");
}

void rocm_give_back(struct rocm_device *dev, enum rocm_kind kind, void *handle, int *err)
{
	const struct rocm_later l = {.kind = kind, .handle = handle};
	int failed;

	if (!handle)
		return;
	/* Under the real clock other threads than the engine, which owns .inflight, give
	 * objects back, too. */
	failed = stream_later_give(&dev->later, &l,
				   kind < ROCM_KIND_BUSY ? STREAM_LATER_NOW
							 : STREAM_LATER_WAIT,
				   dev->opt.virtual_clock && dev->base.inflight);
	if (!*err)
		*err = failed;
}

uint64_t rocm_room_mark(struct rocm_device *dev)
{
	return stream_later_mark(&dev->later);
}

bool rocm_make_room(struct rocm_device *dev, uint64_t mark)
{
	const bool any = stream_later_settle(&dev->later, mark);

	rocm_catch_up(dev);
	return any;
}

void rocm_give_back_later(struct rocm_device *dev, bool running)
{
	stream_later_poll(&dev->later, running, dev->base.hangs != 0);
}

static void keep_code(const void *item)
{
	const struct rocm_later *l = item;

	if (l->kind == ROCM_KIND_CODE)
		rocm_code_keep(l->handle);
}

void rocm_forget_later(struct rocm_device *dev)
{
	stream_later_each(&dev->later, keep_code);
	stream_later_fini(&dev->later);
}
