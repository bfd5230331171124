/* SPDX-License-Identifier: Apache-2.0 */
/*
 * levelzero.h - what Level Zero devices have beside the common interface: images, and the
 * extension hal_device_get_extension(dev, "levelzero").
 *
 * hal_program_load takes three kinds of image:
 *   - SPIR-V as it is: kernels, arguments and group sizes are read from it;
 *   - a native binary as it is: names and argument counts come from the driver, and each
 *     argument is memory or a scalar of 8 bytes, in groups of one work item;
 *   - struct hal_levelzero_image in front of either, which says all of that.
 */
#ifndef HAL_LEVELZERO_H
#define HAL_LEVELZERO_H

#include <hal/hal.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HAL_LEVELZERO_MAGIC   0x455a4c48u /* "HLZE" */
#define HAL_LEVELZERO_VERSION 1u

struct hal_levelzero_kernel {
	char name[32];
	uint32_t group_size[3]; /* work items; 0 counts as 1 */
	uint32_t arg_count;
	uint32_t scalar_bytes[HAL_ARGS_MAX]; /* 1, 2, 4 or 8; 0: memory */
	uint64_t arg_bytes[HAL_ARGS_MAX];    /* least size of memory; 0: any */
	uint64_t work;                       /* multiply-accumulates; 0: not known */
};

/* Then kernel_count kernels, then the module. */
struct hal_levelzero_image {
	uint32_t magic;
	uint32_t version;
	uint32_t bytes;  /* all of it */
	uint32_t native; /* 0: SPIR-V, 1: native */
	uint32_t kernel_count;
	uint32_t kernel_size; /* sizeof(struct hal_levelzero_kernel) */
	uint32_t module_bytes;
	uint32_t reserved;
};

enum hal_levelzero_scheduler_mode {
	HAL_LEVELZERO_TIMEOUT,
	HAL_LEVELZERO_TIMESLICE,
	HAL_LEVELZERO_EXCLUSIVE,
};

struct hal_levelzero_scheduler {
	uint32_t size;
	uint32_t mode;  /* enum hal_levelzero_scheduler_mode */
	uint32_t modes; /* bit (1 << mode) for those there are */
	uint32_t settable;
	char reason[128]; /* why not settable; else "" */
};

/* What a unit of the device is. */
struct hal_levelzero_unit {
	uint32_t size;
	uint32_t tile;
	uint32_t group;   /* command queue group (ordinal) of its first engine */
	uint32_t engine;  /* its index there */
	uint32_t engines; /* how many */
	uint32_t reserved;
};

struct hal_levelzero_ipc {
	unsigned char data[64];
};

struct hal_levelzero_extension {
	uint32_t size;
	uint32_t reserved;
	/* native: hal_device_get_native(dev), for all of these; call them while no other
	 * thread uses the device.  buffer: 1, 2, ... in the order in which buffers of the
	 * device were created. */
	int (*unit)(void *native, uint32_t unit, struct hal_levelzero_unit *out);
	/* Longest that DRAIN has to wait as measured so far: commands in flight in a
	 * queue times the longest command seen.  0: none has been seen. */
	int (*drain_worst)(void *native, uint64_t *ns);
	/* -EPERM, -ENOTSUP with the reason. */
	int (*scheduler_get)(void *native, struct hal_levelzero_scheduler *out);
	int (*scheduler_set)(void *native, uint32_t mode);
	/* A handle for another process of the same user.  The address that ipc_open
	 * answers can be given to a kernel as a scalar of 8 bytes. */
	int (*ipc_export)(void *native, uint64_t buffer, struct hal_levelzero_ipc *ipc);
	int (*ipc_open)(void *native, const struct hal_levelzero_ipc *ipc,
			void **address);
	int (*ipc_close)(void *native, void *address);
	/* Sets bytes of a cache level apart; then buffers go there (1) or stay out (2),
	 * or as they come (0). */
	int (*cache_reserve)(void *native, uint32_t level, uint64_t bytes);
	int (*cache_advise)(void *native, uint64_t buffer, uint32_t region);
};

#ifdef __cplusplus
}
#endif
#endif
