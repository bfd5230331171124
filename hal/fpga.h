/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fpga.h - the images that FPGA devices take: an xclbin as it is.  Little-endian, a
 * header, headers of sections, and sections at any place behind them.  These are the
 * parts of it that are read.
 */
#ifndef HAL_FPGA_H
#define HAL_FPGA_H

#include <hal/hal.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HAL_XCLBIN_MAGIC        "xclbin2" /* and the zero byte behind it */
#define HAL_XCLBIN_SECTIONS_MAX 0x10000u

enum hal_xclbin_section_kind {
	HAL_XCLBIN_BITSTREAM,
	HAL_XCLBIN_EMBEDDED_METADATA = 2, /* XML */
	HAL_XCLBIN_MEM_TOPOLOGY = 6,
	HAL_XCLBIN_CONNECTIVITY = 7,
	HAL_XCLBIN_IP_LAYOUT = 8,
	HAL_XCLBIN_USER_METADATA = 16,
	HAL_XCLBIN_GROUP_TOPOLOGY = 26,
	HAL_XCLBIN_GROUP_CONNECTIVITY = 27,
};

enum hal_xclbin_memory {
	HAL_XCLBIN_DDR3,
	HAL_XCLBIN_DDR4,
	HAL_XCLBIN_DRAM,
	HAL_XCLBIN_STREAMING,
	HAL_XCLBIN_HBM = 6,
	HAL_XCLBIN_BRAM,
	HAL_XCLBIN_URAM,
};

enum { HAL_XCLBIN_MODE_PR = 1, HAL_XCLBIN_IP_KERNEL = 1 };

struct hal_xclbin_section {
	uint32_t kind; /* enum hal_xclbin_section_kind */
	char name[16];
	uint32_t padding;
	uint64_t offset, bytes;
};

struct hal_xclbin_head {
	char magic[8];
	int32_t signature_length; /* -1: none */
	uint8_t reserved[28];     /* 0xff */
	uint8_t key_block[256];
	uint64_t unique_id;
	/* struct axlf_header */
	uint64_t bytes; /* all of it */
	uint64_t made_at, rom_made_at;
	uint16_t version_patch;
	uint8_t version_major, version_minor;
	uint16_t mode, action_mask;
	uint8_t rom_uuid[16];
	char platform[64];
	uint8_t uuid[16];
	char debug_bin[16];
	uint32_t section_count;
	uint32_t padding;
};

struct hal_xclbin_bank {
	uint8_t type; /* enum hal_xclbin_memory */
	uint8_t used;
	uint8_t padding[6];
	uint64_t kbytes;
	uint64_t base;
	char tag[16];
};

struct hal_xclbin_connection {
	int32_t arg, ip, bank;
};

struct hal_xclbin_ip {
	uint32_t type; /* HAL_XCLBIN_IP_KERNEL */
	uint32_t properties;
	uint64_t base;
	char name[64]; /* KERNEL:INSTANCE */
};

#ifdef __cplusplus
}
#endif
#endif
