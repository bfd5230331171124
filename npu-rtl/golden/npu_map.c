/* SPDX-License-Identifier: Apache-2.0 */
/* npu_map.c - rectangles of slots. */
#include "npu_map.h"

#include <string.h>

#include "npu_regs.h"

struct npu_rect npu_rect_of(uint32_t v)
{
	struct npu_rect r = {NPU_REG_GET(v, RECT_ROW), NPU_REG_GET(v, RECT_COL),
			     NPU_REG_GET(v, RECT_ROWS), NPU_REG_GET(v, RECT_COLS)};

	return r.rows ? r : (struct npu_rect){0};
}

static int overlap(struct npu_rect a, struct npu_rect b)
{
	return a.rows && b.rows && a.row < b.row + b.rows && b.row < a.row + a.rows &&
	       a.col < b.col + b.cols && b.col < a.col + a.cols;
}

uint32_t npu_map_verdict(const uint32_t *staged, const struct npu_rect *now,
			 uint32_t slots, uint32_t rows, uint32_t cols, uint32_t busy,
			 uint32_t *slot)
{
	struct npu_rect r[NPU_MAP_SLOTS];

	for (uint32_t i = 0; i < slots; i++)
		r[i] = npu_rect_of(staged[i]);
	for (*slot = 0; *slot < slots; ++*slot)
		if (r[*slot].rows &&
		    (!r[*slot].cols || r[*slot].row + r[*slot].rows > rows ||
		     r[*slot].col + r[*slot].cols > cols))
			return NPU_MAP_RANGE;
	for (*slot = 0; *slot < slots; ++*slot)
		for (uint32_t j = 0; j < slots; j++)
			if (j != *slot && overlap(r[*slot], r[j]))
				return NPU_MAP_OVERLAP;
	for (*slot = 0; *slot < slots; ++*slot)
		if (busy >> *slot & 1u && memcmp(&r[*slot], &now[*slot], sizeof(*r)) != 0)
			return NPU_MAP_BUSY;
	*slot = 0;
	return NPU_MAP_OK;
}
