/* SPDX-License-Identifier: Apache-2.0 */
/* The extension "gpu": how the device is shared, which kernels stop; see hal/gpu.h. */
#define _GNU_SOURCE
#include "internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char *const ways[] = {
	[ROCM_WHOLE] = "none", [ROCM_ENGINES] = "engines", [ROCM_CUS] = "cu"};

/* What the device would be with the option. */
static int other_way(const struct rocm_device *dev, enum rocm_partitions way, char *to,
		     size_t room)
{
	struct rocm_options o = dev->opt;
	struct rocm_units u;
	int err;

	o.partitions = way;
	err = rocm_find_units(&o, &dev->shape, &u);
	if (err)
		return snprintf(to, room, "partitions=%s cannot open (%s)", ways[way],
				strerrorname_np(-err));
	return snprintf(to, room, "partitions=%s would give %u units", ways[way],
			u.count);
}

static void say_why(const struct rocm_device *dev, char *to, size_t room)
{
	const struct rocm_units *u = &dev->units;
	enum rocm_partitions way;
	int n;

	if (u->count)
		n = snprintf(to, room,
			     "as requested; queues of %s; units of %u bits of the CU "
			     "mask, each mask read back, %s: %s",
			     dev->hsa.on  ? "HSA's"
			     : dev->green ? "HIP's streams in contexts of their own"
					  : "HIP's streams",
			     u->stride,
			     dev->verified ? "tried out"
					   : "it is unknown where kernels run",
			     dev->tried);
	else
		n = snprintf(to, room, "no partitions requested");
	for (way = ROCM_ENGINES; way <= ROCM_CUS; way++)
		if (way != dev->opt.partitions && (size_t)n + 2 < room) {
			n += snprintf(to + n, room - (size_t)n, "; ");
			n += other_way(dev, way, to + n, room - (size_t)n);
		}
	if (u->count && (size_t)n < room)
		n += snprintf(to + n, room - (size_t)n, "; %s",
			      dev->hsa.on       ? "masks change while a kernel runs"
			      : dev->hsa.why[0] ? dev->hsa.why
						: "queues=stream was requested");
	if (u->count && !dev->hsa.on && (size_t)n < room)
		(void)snprintf(to + n, room - (size_t)n,
			       dev->green ? "; streams have priorities"
					  : "; streams have no priorities: %s",
			       dev->not_green);
}

/* Say how many hardware queues the device's queues share, where streams have no mask: a
 * stream waits in its hardware queue behind work of other streams. */
static void say_queues(const struct rocm_device *dev, char *text, size_t bytes)
{
	const uint32_t n = rocm_hw_queues();
	const size_t at = strlen(text);

	if (!dev->units.count)
		(void)snprintf(text + at, bytes - at,
			       "; HIP's streams share %u hardware queues: work of more "
			       "than %u queues can wait for one another; set "
			       "GPU_MAX_HW_QUEUES to the number of queues before the "
			       "process first uses HIP",
			       n, n);
}

static void say_faults(const struct rocm_device *dev, char *to, size_t room)
{
	const uint32_t ms = (uint32_t)(dev->opt.bound_ns / 1000000);
	const int n = snprintf(to, room,
			       "a fault ends the process (releases before 2026) or loses "
			       "the device; ");

	to += n;
	room -= (size_t)n;
	if (dev->hsa.on && ms)
		snprintf(to, room,
			 "a launch that the device refuses ends its queue, and one that "
			 "takes more than %u ms is ended with its queue",
			 ms);
	else if (dev->hsa.on)
		snprintf(to, room,
			 "a launch that the device refuses ends its queue; one that does "
			 "not end blocks its queue, as hang_ms is 0");
	else if (ms)
		snprintf(
			to, room,
			"a launch that does not end blocks its queue until the process "
			"ends; after %u ms the queue is given up, and the device keeps "
			"the launch's resources%s",
			ms,
			dev->opt.block
				? ", but no further blocks begin of kernels that can stop"
				: "");
	else
		snprintf(to, room,
			 "a launch that does not end blocks its queue until the process "
			 "ends");
}

static int ext_info(void *native, struct hal_gpu_info *info)
{
	const struct rocm_device *dev = native;

	if (info->size != sizeof(*info))
		return rocm_host->fail(
			EINVAL, "rocm: .size of hal_gpu_info is %u; it must be %zu",
			info->size, sizeof(*info));
	memset(info, 0, sizeof(*info));
	info->size = sizeof(*info);
	snprintf(info->way, sizeof(info->way), "%s", ways[dev->opt.partitions]);
	say_why(dev, info->why, sizeof(info->why));
	say_queues(dev, info->why, sizeof(info->why));
	say_faults(dev, info->faults, sizeof(info->faults));
	return 0;
}

static const char *why_not(const struct rocm_device *dev, const struct rocm_kernel *k)
{
	if (!k->follows)
		return "it does not use hal/device/hal_preempt.h";
	return dev->opt.block ? "" : "preempt=between";
}

/* Answer for all kernels of that name: the caller says no program. */
static int ext_stops(void *native, const char *kernel, char why[HAL_GPU_SAID])
{
	struct rocm_device *dev = native;
	const struct rocm_program *p;
	uint32_t i, all = 0, not = 0;
	size_t n;

	why[0] = 0;
	pthread_mutex_lock(&dev->programs_lock);
	for (p = dev->programs; p; p = p->older)
		for (i = 0; i < p->count; i++) {
			const char *reason = why_not(dev, &p->kernels[i]);

			if (strcmp(p->kernels[i].info.name, kernel) != 0)
				continue;
			all++;
			if (reason[0] && !not ++)
				snprintf(why, HAL_GPU_SAID, "%s", reason);
		}
	pthread_mutex_unlock(&dev->programs_lock);
	if (!all)
		return rocm_host->fail(ENOENT, "rocm: no loaded program has a kernel %s",
				       kernel);
	n = strlen(why);
	if (not &&not < all)
		(void)snprintf(why + n, HAL_GPU_SAID - n,
			       "; %u of %u loaded programs with a kernel of this name",
			       not, all);
	return !not ;
}

static const struct hal_gpu_extension extension = {
	.size = sizeof(extension),
	.info = ext_info,
	.stops = ext_stops,
	.offer_memory = rocm_offer_memory,
	.offer_stream = rocm_offer_stream,
};

const void *rocm_extension(void *device, const char *name)
{
	(void)device;
	return strcmp(name, "gpu") == 0 ? &extension : NULL;
}
