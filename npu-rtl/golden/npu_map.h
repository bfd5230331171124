/* SPDX-License-Identifier: Apache-2.0 */
/* npu_map.h - npu_map.sv in C: which rectangles may be committed. */
#ifndef NPU_MAP_H
#define NPU_MAP_H

#include <stdint.h>

#define NPU_MAP_SLOTS 8u

struct npu_rect {
	uint32_t row, col, rows, cols;
};

/* Of a RECT register; a height of 0 is no rectangle, whatever else is written. */
struct npu_rect npu_rect_of(uint32_t value);
/* MAP code for staged RECT registers; *slot: the first refused.  busy: a bit a slot that
 * is not quiet. */
uint32_t npu_map_verdict(const uint32_t *staged, const struct npu_rect *now,
			 uint32_t slots, uint32_t rows, uint32_t cols, uint32_t busy,
			 uint32_t *slot);

#endif
