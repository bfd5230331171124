/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which device a thread means, and when what was made is given back.  HIP shares a device
 * with whoever else uses it in this process: it is never reset.
 */
#define _GNU_SOURCE
#include "internal.h"

#include <stdlib.h>

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

static int end(struct rocm_device *dev, const struct rocm_later *l)
{
	switch (l->kind) {
	case ROCM_KIND_STREAM:
	case ROCM_KIND_BUSY:
		return HIP(dev, hipStreamDestroy, l->handle);
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
	case ROCM_KIND_DEVICE:
		return HIP(dev, hipFree, l->handle);
	}
	return 0;
}

/* Without room for it the process's end takes it. */
static void remember(struct rocm_device *dev, struct rocm_later l)
{
	if (dev->later_count == dev->later_room) {
		const uint32_t room = 2 * dev->later_room + 32;
		void *list = realloc(dev->later, room * sizeof(l));

		if (!list)
			return;
		dev->later = list;
		dev->later_room = room;
	}
	dev->later[dev->later_count++] = l;
}

/* hipFree and its like wait for every stream of the device: while something runs they
 * are put off.  What fails is tried again; a lost device keeps all. */
void rocm_give_back(struct rocm_device *dev, enum rocm_kind kind, void *handle, int *err)
{
	const struct rocm_later l = {.kind = kind, .handle = handle};
	const bool now = kind < ROCM_KIND_BUSY || !dev->base.inflight;
	int failed = 0;

	if (!handle || atomic_load(&dev->base.lost))
		return;
	pthread_mutex_lock(&dev->later_lock);
	if (now)
		failed = end(dev, &l);
	if (!now || failed)
		remember(dev, l);
	pthread_mutex_unlock(&dev->later_lock);
	if (!*err)
		*err = failed;
}

void rocm_give_back_later(struct rocm_device *dev, bool running)
{
	uint32_t n = 0, i;

	if (running || !dev->later_count)
		return;
	pthread_mutex_lock(&dev->later_lock);
	for (i = 0; i < dev->later_count; i++) {
		if (atomic_load(&dev->base.lost) || !end(dev, &dev->later[i]))
			continue;
		dev->later[n++] = dev->later[i];
	}
	dev->later_count = n;
	pthread_mutex_unlock(&dev->later_lock);
}

void rocm_forget_later(struct rocm_device *dev)
{
	uint32_t i;

	for (i = 0; i < dev->later_count; i++)
		if (dev->later[i].kind == ROCM_KIND_CODE)
			rocm_code_keep(dev->later[i].handle);
	free(dev->later);
}
