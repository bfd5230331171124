/* SPDX-License-Identifier: Apache-2.0 */
/* The extensions "cuda", what partitions are made of, and "gpu"; see hal/cuda.h, gpu.h.
 */
#define _GNU_SOURCE
#include "internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

_Static_assert((int)HAL_CUDA_WHOLE == (int)CU_WAY_NONE &&
		       (int)HAL_CUDA_GREEN == (int)CU_WAY_GREEN &&
		       (int)HAL_CUDA_MASK == (int)CU_WAY_MASK &&
		       (int)HAL_CUDA_STREAM == (int)CU_WAY_STREAM,
	       "one is answered as the other");

static uint32_t multiprocessors(const struct cu_device *dev)
{
	if (dev->mask)
		return dev->mask->per;
	return dev->green ? cu_green_per(dev) : (uint32_t)dev->shape.multiprocessors;
}

static int ext_info(void *native, struct hal_cuda_info *info)
{
	const struct cu_device *dev = native;

	if (info->size != sizeof(*info))
		return cu_host->fail(EINVAL,
				     "cuda: .size of hal_cuda_info is %u; it must be %zu",
				     info->size, sizeof(*info));
	*info = (struct hal_cuda_info){.size = sizeof(*info),
				       .way = (uint32_t)cu_way_of(dev),
				       .unit_multiprocessors = multiprocessors(dev),
				       .resize_live = dev->mask != NULL,
				       .clusters_safe = dev->mask == NULL};
	snprintf(info->said, sizeof(info->said), "%s", dev->said);
	return 0;
}

static const struct hal_cuda_extension extension = {
	.size = sizeof(extension),
	.info = ext_info,
	.remainder_stream = cu_remainder_stream,
	.remainder_end = cu_remainder_end,
};

/* ---- "gpu" ------------------------------------------------------------------------- */

_Static_assert(HAL_GPU_SAID >= HAL_CUDA_SAID, "what was tried out has room");

static const char *memory_of(const struct cu_device *dev)
{
	if (dev->opt.bounds)
		return "; each partition's memory is mapped in its own address range, "
		       "and kernels cannot reach outside it";
	return dev->opt.vmm
		       ? "; each partition's memory is mapped in its own address range"
		       : "";
}

/* Append to text how many channels the queues share, if they are few.  Work of a stream
 * waits in its channel behind work of other streams that cannot begin yet. */
static void say_channels(char *text, size_t bytes)
{
	const uint32_t n = cu_channels();
	const size_t at = strlen(text);

	if (n < CU_CHANNELS_MOST)
		(void)snprintf(text + at, bytes - at,
			       "; the device's queues share %u hardware channels: more "
			       "than %u queues can wait for one another; to avoid this, "
			       "set CUDA_DEVICE_MAX_CONNECTIONS=%u before the process "
			       "first uses CUDA",
			       n, n, CU_CHANNELS_MOST);
}

static void say_instance(const struct cu_device *dev, char *text, size_t bytes)
{
	const size_t at = strlen(text);

	if (dev->shape.mig[0])
		(void)snprintf(text + at, bytes - at,
			       "; the device is %s, which the hardware keeps apart from "
			       "other MIG instances%s",
			       dev->shape.mig,
			       dev->shape.mig_alone
				       ? ""
				       : ", but its memory may be shared with other "
					 "compute instances of its GPU instance");
}

static int gpu_info(void *native, struct hal_gpu_info *info)
{
	const struct cu_device *dev = native;
	int n;

	if (info->size != sizeof(*info))
		return cu_host->fail(EINVAL,
				     "cuda: .size of hal_gpu_info is %u; it must be %zu",
				     info->size, sizeof(*info));
	memset(info, 0, sizeof(*info));
	info->size = sizeof(*info);
	snprintf(info->way, sizeof(info->way), "%s", cu_way_names[cu_way_of(dev)]);
	snprintf(info->why, sizeof(info->why), "%.740s%s", dev->said, memory_of(dev));
	say_instance(dev, info->why, sizeof(info->why));
	cu_remainder_say(dev, info->why, sizeof(info->why));
	say_channels(info->why, sizeof(info->why));
	n = snprintf(info->faults, sizeof(info->faults),
		     "a fault ends all CUDA work of the process; a launch that does not "
		     "end blocks its queue until the process ends");
	if (dev->opt.hang_ns)
		n += snprintf(info->faults + n, sizeof(info->faults) - (size_t)n,
			      "; after %u ms the queue is given up, and the device keeps "
			      "the launch's resources%s",
			      (uint32_t)(dev->opt.hang_ns / 1000000),
			      dev->opt.block ? " until the running blocks end" : "");
	if (dev->opt.bounds)
		(void)snprintf(info->faults + n, sizeof(info->faults) - (size_t)n,
			       "; an access outside the partition's range is skipped and "
			       "ends only the kernel's queue");
	return 0;
}

/* The name is all that the caller says, and several programs may have such a kernel:
 * answer for all of them. */
static int gpu_stops(void *native, const char *kernel, char why[HAL_GPU_SAID])
{
	struct cu_device *dev = native;
	const struct cu_program *p;
	uint32_t i, all = 0, not = 0;
	size_t n;

	why[0] = 0;
	pthread_mutex_lock(&dev->programs_lock);
	for (p = dev->programs; p; p = p->older)
		for (i = 0; i < p->count; i++) {
			if (strcmp(p->kernels[i].info.name, kernel) != 0)
				continue;
			all++;
			if (!p->kernels[i].stops && !not ++)
				snprintf(why, HAL_GPU_SAID, "%s",
					 dev->opt.block ? p->kernels[i].why
							: "preempt=between");
		}
	pthread_mutex_unlock(&dev->programs_lock);
	if (!all)
		return cu_host->fail(ENOENT, "cuda: no loaded program has a kernel %s",
				     kernel);
	n = strlen(why);
	if (not &&not < all)
		(void)snprintf(why + n, HAL_GPU_SAID - n,
			       "; %u of %u loaded programs with a kernel of this name",
			       not, all);
	return !not ;
}

/* A wave is one block on each place of the multiprocessors, so it takes as long as one.
 */
static int gpu_slices(void *native, const char *kernel, struct hal_gpu_slices *out)
{
	struct cu_device *dev = native;
	const struct cu_program *p;
	bool any = false;
	uint32_t i;

	if (out->size != sizeof(*out))
		return cu_host->fail(
			EINVAL, "cuda: .size of hal_gpu_slices is %u; it must be %zu",
			out->size, sizeof(*out));
	*out = (struct hal_gpu_slices){.size = sizeof(*out)};
	pthread_mutex_lock(&dev->programs_lock);
	for (p = dev->programs; p; p = p->older)
		for (i = 0; i < p->count; i++) {
			struct cu_pace *pace = &p->kernels[i].pace;

			if (strcmp(p->kernels[i].info.name, kernel) != 0)
				continue;
			any = true;
			out->launches += atomic_load(&pace->launches);
			out->slices += atomic_load(&pace->slices);
			out->calls += atomic_load(&pace->calls);
			if (!out->block_ns)
				out->block_ns = atomic_load(&pace->wave_ns);
		}
	pthread_mutex_unlock(&dev->programs_lock);
	return any ? 0
		   : cu_host->fail(ENOENT, "cuda: no loaded program has a kernel %s",
				   kernel);
}

static const struct hal_gpu_extension gpu_extension = {
	.size = sizeof(gpu_extension),
	.info = gpu_info,
	.stops = gpu_stops,
	.offer_memory = cu_offer_memory,
	.offer_stream = cu_offer_stream,
	.slices = gpu_slices,
};

const void *cu_extension(void *device, const char *name)
{
	(void)device;
	if (strcmp(name, "gpu") == 0)
		return &gpu_extension;
	return strcmp(name, "cuda") == 0 ? &extension : NULL;
}
