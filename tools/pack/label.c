/* SPDX-License-Identifier: Apache-2.0 */
/* label.c - what an image is for.  Only as much is read as the label needs: whether the
 * image is whole is for the backend to say, when it is loaded. */
#define _GNU_SOURCE
#include "label.h"

#include <elf.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <hal/cuda.h>
#include <hal/fpga.h>
#include <hal/levelzero.h>
#include <hal/npu.h>
#include <hal/rocm.h>

#define SPIRV_MAGIC 0x07230203u
/* Ranks: code for one architecture, images of several, what is compiled at load. */
enum { RANK_CODE = 0, RANK_SEVERAL = 1000, RANK_COMPILED = 2000, RANKS_EACH = 1000 };

static uint32_t word(const uint8_t *image, size_t size, size_t at)
{
	uint32_t w = 0;

	if (at <= size && size - at >= sizeof(w))
		memcpy(&w, image + at, sizeof(w));
	return w;
}

static void say(struct label *l, uint32_t rank, const char *text)
{
	l->rank = rank;
	snprintf(l->text, sizeof(l->text), "%s", text);
}

/* Later architectures first. */
static void say_sm(struct label *l, uint32_t rank, const char *what, uint32_t sm)
{
	l->rank = rank + RANKS_EACH - 1 - (sm < RANKS_EACH ? sm : RANKS_EACH - 1);
	snprintf(l->text, sizeof(l->text), "cuda %s sm_%" PRIu32, what, sm);
}

/* The number of the architecture is the lowest byte of the ELF header's flags; in the
 * toolkit's 13th version the byte above, and the ABI's version tells which. */
static uint32_t cubin_sm(const uint8_t *module, size_t size)
{
	Elf64_Ehdr e;

	if (size < sizeof(e))
		return 0;
	memcpy(&e, module, sizeof(e));
	return e.e_ident[EI_ABIVERSION] >= 8 ? e.e_flags >> 8 & 0xff : e.e_flags & 0xff;
}

/* ".target sm_90": the least that it can be compiled for. */
static uint32_t ptx_sm(const uint8_t *module, size_t size)
{
	static const char target[] = ".target sm_";
	const char *at = memmem(module, size, target, sizeof(target) - 1);
	uint32_t sm = 0;

	if (at == NULL)
		return 0;
	for (at += sizeof(target) - 1;
	     at < (const char *)module + size && *at >= '0' && *at <= '9' && sm < 1000;
	     at++)
		sm = sm * 10 + (uint32_t)(*at - '0');
	return sm;
}

static void label_cuda(const uint8_t *image, size_t size, struct label *l)
{
	struct hal_cuda_image head;
	size_t module;

	if (size < sizeof(head)) {
		say(l, RANK_SEVERAL, "cuda");
		return;
	}
	memcpy(&head, image, sizeof(head));
	module = sizeof(head) + (size_t)head.kernel_count * head.kernel_size;
	if (module > size)
		module = size;
	if (head.format == HAL_CUDA_CUBIN)
		say_sm(l, RANK_CODE, "cubin", cubin_sm(image + module, size - module));
	else if (head.format == HAL_CUDA_PTX)
		say_sm(l, RANK_COMPILED, "ptx", ptx_sm(image + module, size - module));
	else
		say(l, RANK_SEVERAL, "cuda fatbin");
}

static void label_levelzero(const uint8_t *image, size_t size, struct label *l)
{
	if (word(image, size, offsetof(struct hal_levelzero_image, native)) != 0)
		say(l, RANK_CODE, "levelzero native");
	else
		say(l, RANK_COMPILED, "levelzero spirv");
}

static void label_rocm(const uint8_t *image, size_t size, struct label *l)
{
	if (word(image, size, offsetof(struct hal_rocm_image, format)) == HAL_ROCM_BUNDLE)
		say(l, RANK_SEVERAL, "rocm bundle");
	else
		say(l, RANK_CODE, "rocm code object");
}

static void label_fpga(const uint8_t *image, size_t size, struct label *l)
{
	struct hal_xclbin_head head;

	l->rank = RANK_CODE;
	if (size < sizeof(head)) {
		say(l, RANK_CODE, "fpga");
		return;
	}
	memcpy(&head, image, sizeof(head));
	snprintf(l->text, sizeof(l->text), "fpga %.*s",
		 (int)strnlen((const char *)head.platform, sizeof(head.platform)),
		 (const char *)head.platform);
}

bool label_of(const void *image, size_t size, struct label *l)
{
	switch (word(image, size, 0)) {
	case HAL_CUDA_MAGIC:
		label_cuda(image, size, l);
		return true;
	case HAL_LEVELZERO_MAGIC:
		label_levelzero(image, size, l);
		return true;
	case HAL_ROCM_MAGIC:
		label_rocm(image, size, l);
		return true;
	case SPIRV_MAGIC:
		say(l, RANK_COMPILED, "levelzero spirv");
		return true;
	case HAL_NPU_IMAGE_MAGIC:
		say(l, RANK_CODE, "npu");
		return true;
	default:
		break;
	}
	if (size < sizeof(HAL_XCLBIN_MAGIC) ||
	    memcmp(image, HAL_XCLBIN_MAGIC, sizeof(HAL_XCLBIN_MAGIC)) != 0)
		return false;
	label_fpga(image, size, l);
	return true;
}
