/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda.h - the images that CUDA devices take: struct hal_cuda_image, its kernels, then
 * the module: PTX, a cubin or a fatbin.  What a module does not tell is said in front of
 * it: a kernel's block, its shared memory, and which arguments are memory.
 *
 * And the extension hal_device_get_extension(dev, "cuda"): what partitions are made of.
 */
#ifndef HAL_CUDA_H
#define HAL_CUDA_H

#include <hal/hal.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HAL_CUDA_MAGIC   0x55434c48u /* "HLCU" */
#define HAL_CUDA_VERSION 1u

enum hal_cuda_format {
	HAL_CUDA_PTX, /* ends in a zero byte */
	HAL_CUDA_CUBIN,
	HAL_CUDA_FATBIN,
};

struct hal_cuda_kernel {
	char name[32];         /* as in the module: extern "C" */
	uint32_t block[3];     /* threads; 0 counts as 1 */
	uint32_t shared_bytes; /* dynamic shared memory of a block */
	uint32_t arg_count;
	uint32_t reserved;
	uint32_t scalar_bytes[HAL_ARGS_MAX]; /* 1, 2, 4 or 8; 0: memory */
	uint64_t arg_bytes[HAL_ARGS_MAX];    /* least size of memory; 0: any */
	uint64_t work;                       /* multiply-accumulates; 0: not known */
};

/* Then kernel_count kernels, then the module. */
struct hal_cuda_image {
	uint32_t magic;
	uint32_t version;
	uint32_t bytes;  /* all of it */
	uint32_t format; /* enum hal_cuda_format */
	uint32_t kernel_count;
	uint32_t kernel_size; /* sizeof(struct hal_cuda_kernel) */
	uint32_t module_bytes;
	uint32_t reserved;
};

enum hal_cuda_way {
	HAL_CUDA_WHOLE,  /* nothing is carved out: one unit */
	HAL_CUDA_GREEN,  /* green contexts */
	HAL_CUDA_MASK,   /* masks in the descriptors of launches */
	HAL_CUDA_STREAM, /* masks in the driver's structures of streams */
};

#define HAL_CUDA_SAID 1024

/* What a partition of the device is. */
struct hal_cuda_info {
	uint32_t size;
	uint32_t way;                  /* enum hal_cuda_way */
	uint32_t unit_multiprocessors; /* of a unit, at most */
	uint32_t resize_live;          /* 1: a partition moves while it works */
	/* 1: kernels of clusters run, of green contexts up to a unit; 0: they could wait
	 * for ever for multiprocessors, and are refused when they are loaded. */
	uint32_t clusters_safe;
	uint32_t reserved;
	/* How it was chosen: what was tried out, where that is kept, why a better way is
	 * not taken. */
	char said[HAL_CUDA_SAID];
};

struct hal_cuda_extension {
	uint32_t size;
	uint32_t reserved;
	/* native: hal_device_get_native(dev).  Any thread.  info->size is set; -EINVAL it
	 * is no size of the struct. */
	int (*info)(void *native, struct hal_cuda_info *info);
	/*
	 * Create a stream of the primary context's memory, non-blocking, for launches
	 * that the program makes itself: they run on units that no partition has, of
	 * which there are at least as many as the option remainder says.  priority: as a
	 * queue's.  With masks the stream's launches follow the partitions as these come,
	 * go and move; with green contexts it has the units of the option and what makes
	 * no unit.  Do not destroy it with the driver's call: end it with remainder_end,
	 * when its work has ended and before hal_close.
	 * -ENOTSUP: the option is 0, nothing is partitioned, or masks at launch are in
	 * use and the process sees more than one device.  Any thread.
	 */
	int (*remainder_stream)(void *native, int32_t priority, void **stream);
	/* -EINVAL: it is none of this device's.  Any thread. */
	int (*remainder_end)(void *native, void *stream);
};

#ifdef __cplusplus
}
#endif
#endif
