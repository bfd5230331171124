/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pack.h - one file for several kinds of devices: struct hal_pack, its entries, then the
 * images themselves, each what some device takes alone.  hal_program_load takes a pack
 * like any image: it loads the first image in it that the device takes.  So the order is
 * that of preference, which the command halpack knows: code for one architecture before
 * PTX or SPIR-V, later architectures before earlier ones.
 */
#ifndef HAL_PACK_H
#define HAL_PACK_H

#include <hal/hal.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HAL_PACK_MAGIC      0x4b504c48u /* "HLPK" */
#define HAL_PACK_VERSION    1u
#define HAL_PACK_IMAGES_MAX 256u
#define HAL_PACK_ALIGN      16u /* of an image's offset */

struct hal_pack_entry {
	char label[48];  /* for people: "cuda cubin sm_90"; ends in a zero byte */
	uint64_t offset; /* from the pack's first byte */
	uint64_t bytes;
};

/* Then count entries, then the images, in the order of the entries. */
struct hal_pack {
	uint32_t magic;
	uint32_t version;
	uint64_t bytes; /* all of it */
	uint32_t count;
	uint32_t entry_size; /* sizeof(struct hal_pack_entry) */
};

#ifdef __cplusplus
}
#endif
#endif
