/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image.h - a relocatable NPU program: what the builder writes and program_load reads.
 *
 *   header | kernels | args | relocs | descriptors | constants
 *
 * All numbers little endian; each part directly behind the one before it.  A descriptor
 * holds no address yet: each relocation says which word of which descriptor becomes
 * base(place) + offset.  All constants form one block, all scratch another.
 */
#ifndef NPU_IMAGE_H
#define NPU_IMAGE_H

#include <stddef.h>
#include <stdint.h>

#include <hal/npu.h>

#define NPU_IMAGE_MAGIC   HAL_NPU_IMAGE_MAGIC
#define NPU_IMAGE_VERSION 1u
/* What a program keeps in memory: half of a partition's 32-bit address space, so that its
 * arguments have the other. */
#define NPU_IMAGE_DATA_MAX    (UINT64_C(1) << 31)
#define NPU_IMAGE_KERNELS_MAX 4096u
#define NPU_IMAGE_CONST_ALIGN 64u
/* The longest row of a softmax: the sum of its exponentials stays an int32. */
#define NPU_SOFTMAX_COLS 4095u

enum npu_place_kind { NPU_PLACE_ARG, NPU_PLACE_CONST, NPU_PLACE_SCRATCH };

struct npu_image_header {
	uint32_t magic;
	uint32_t version;
	uint32_t bytes;    /* of the whole image */
	uint32_t checksum; /* CRC-32 of the whole image with this word 0 */
	uint32_t kernels, args, relocs, descs;
	uint64_t const_bytes, scratch_bytes;
	uint32_t reserved[4];
};

struct npu_image_kernel {
	char name[32];
	uint64_t macs; /* of one launch */
	uint32_t arg_first, arg_count;
	uint32_t desc_first, desc_count;
	uint32_t reloc_first, reloc_count;
};

struct npu_image_arg {
	uint64_t bytes; /* at least */
	uint32_t align; /* of its address, a power of two */
	uint32_t reserved;
};

struct npu_image_reloc {
	uint32_t desc; /* within the kernel */
	uint32_t offset;
	uint8_t word; /* of the descriptor */
	uint8_t kind; /* enum npu_place_kind */
	uint16_t arg; /* NPU_PLACE_ARG: which */
};

/* A loaded image; constants stay in the image it was loaded from. */
struct npu_image {
	struct npu_image_header header;
	struct npu_image_kernel *kernels;
	struct npu_image_arg *args;
	struct npu_image_reloc *relocs;
	uint32_t (*descs)[16];
	const uint8_t *constants;
};

/* Checks everything: a field that passes can be used without a further look.  -EINVAL or
 * -ENOMEM after npu_fail.  out is freed with npu_image_unload. */
int npu_image_load(const void *bytes, size_t size, struct npu_image *out);
void npu_image_unload(struct npu_image *image);

uint32_t npu_image_crc(const void *bytes, size_t size);

#endif
