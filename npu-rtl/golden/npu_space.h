/* SPDX-License-Identifier: Apache-2.0 */
/* npu_space.h - a slot's address space without time: page tables in memory, bounds,
 * channels. */
#ifndef NPU_SPACE_H
#define NPU_SPACE_H

#include <stdint.h>

#include "hash.h"

struct npu_space {
	uint8_t *memory; /* physical; beyond bytes it reads 0 and takes nothing */
	uint64_t bytes;
	const struct npu_hash *hash;
	uint32_t pt_base, pt_count, ch_mask;
};

/* npu_golden_env's read and write, user a struct npu_space: every page is checked before
 * any byte moves. */
int npu_space_read(void *user, uint32_t va, void *data, uint32_t bytes, uint32_t *bad);
int npu_space_write(void *user, uint32_t va, const void *data, uint32_t bytes,
		    uint32_t *bad);

#endif
