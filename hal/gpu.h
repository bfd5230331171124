/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu.h - what backends of GPUs have alike: the extension hal_device_extension(dev,
 * "gpu").  It says in words what no number of hal_device_info does, and which kernels can
 * be stopped.
 */
#ifndef HAL_GPU_H
#define HAL_GPU_H

#include <hal/hal.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HAL_GPU_SAID 1024

/* How the device is shared.  Each text is one line without an end of line. */
struct hal_gpu_info {
	uint32_t size;
	uint32_t reserved;
	char way[32]; /* what a partition is, as the option "partitions" has it */
	/* How that was chosen, and why not a better way. */
	char why[HAL_GPU_SAID];
	/* What a fault, and a launch that does not end, takes along. */
	char faults[HAL_GPU_SAID];
};

struct hal_gpu_extension {
	uint32_t size;
	uint32_t reserved;
	/* native: hal_device_native(dev).  Any thread.  info->size is set; -EINVAL it is
	 * no size of the struct. */
	int (*info)(void *native, struct hal_gpu_info *info);
	/* Of the kernel of that name in the program that was loaded last of those that
	 * have one: 1: its launches can be stopped between blocks; 0: they cannot, and
	 * why, of HAL_GPU_SAID bytes, says why not.  -ENOENT: there is none. */
	int (*stops)(void *native, const char *kernel, char why[HAL_GPU_SAID]);
};

#ifdef __cplusplus
}
#endif
#endif
