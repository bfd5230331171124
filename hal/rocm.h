/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rocm.h - the images that ROCm devices take: struct hal_rocm_image, its kernels, then
 * the code: a code object, or a bundle of them for several architectures, as hipcc
 * --genco and clang-offload-bundler write it.  What code does not tell is said in front
 * of it: a kernel's group, its dynamic LDS, which arguments are memory and how large.
 */
#ifndef HAL_ROCM_H
#define HAL_ROCM_H

#include <hal/hal.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HAL_ROCM_MAGIC   0x4d524c48u /* "HLRM" */
#define HAL_ROCM_VERSION 1u

enum hal_rocm_format {
	HAL_ROCM_CODE_OBJECT, /* ELF for amdgcn */
	HAL_ROCM_BUNDLE,      /* not compressed */
};

struct hal_rocm_kernel {
	char name[32];         /* as in the code: extern "C" */
	uint32_t block[3];     /* work-items of a group; 0 counts as 1 */
	uint32_t shared_bytes; /* dynamic LDS of a group */
	uint32_t arg_count;
	uint32_t reserved;
	uint32_t scalar_bytes[HAL_ARGS_MAX]; /* 1, 2, 4 or 8; 0: memory */
	uint64_t arg_bytes[HAL_ARGS_MAX];    /* least size of memory; 0: any */
	uint64_t work;                       /* multiply-accumulates; 0: not known */
};

/* Then kernel_count kernels, then the code. */
struct hal_rocm_image {
	uint32_t magic;
	uint32_t version;
	uint32_t bytes;  /* all of it */
	uint32_t format; /* enum hal_rocm_format */
	uint32_t kernel_count;
	uint32_t kernel_size; /* sizeof(struct hal_rocm_kernel) */
	uint32_t code_bytes;
	uint32_t reserved;
};

#ifdef __cplusplus
}
#endif
#endif
