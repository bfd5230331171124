/* SPDX-License-Identifier: Apache-2.0 */
/*
 * npu_panel.h - how the machine cuts the output rows of a GEMM or CONV into panels, and
 * what a panel needs of the input.
 */
#ifndef NPU_PANEL_H
#define NPU_PANEL_H

#include <stdint.h>

#define NPU_SPAD        (128u * 1024u)    /* bytes of the scratchpad */
#define NPU_SPAD_USE    (NPU_SPAD - 128u) /* a row may end on either side of a line */
#define NPU_DEPTH       512u              /* rows of an accumulator tile */
#define NPU_DEPTH_OUT32 (NPU_DEPTH / 4u)
#define NPU_DEPTH_PAIR  (NPU_DEPTH / 2u) /* where two tiles are stored side by side */
#define NPU_PANEL_SHORT 32u

/* Most rows of a panel on rows x cols PEs: a tile of one or two folds is half as deep. */
static inline uint32_t npu_panel_most(uint32_t out32, uint64_t k, uint32_t rows,
				      uint32_t cols)
{
	if (out32)
		return NPU_DEPTH_OUT32;
	return cols <= 16 && k <= 2 * (uint64_t)rows ? NPU_DEPTH_PAIR : NPU_DEPTH;
}

/* The same of an operation that goes on: half, if it was NPU_DEPTH_PAIR where it began.
 */
static inline uint32_t npu_panel_kept(uint32_t out32, uint32_t half)
{
	if (out32)
		return NPU_DEPTH_OUT32;
	return half ? NPU_DEPTH_PAIR : NPU_DEPTH;
}

/* npu_conv_pkg::panel(): rows of the next panel, of left, after one of prev rows (0: it
 * is the first).  depth is PANEL, or the most the machine takes where that is less. */
static inline uint32_t npu_panel_next(uint32_t left, uint32_t depth, uint32_t prev)
{
	uint32_t want = prev ? 2 * prev : NPU_PANEL_SHORT;
	uint32_t cap = want < depth ? want : depth;

	if (left >= cap + NPU_PANEL_SHORT)
		return cap;
	if (left <= depth)
		return left >= 2 * NPU_PANEL_SHORT ? left - NPU_PANEL_SHORT : left;
	return left < 2 * cap ? (left + 1) / 2 : cap;
}

/* K in parts: KCUT of a GEMM, at least. */
#define NPU_KCUT_LEAST 8u

/* The least distance of rows in the scratchpad of 2^kcut bytes. */
static inline uint32_t npu_panel_cut_sps(uint32_t kcut)
{
	return (UINT32_C(1) << kcut) + 64;
}

/* Of a fold that begins at k and has at most h rows: those it has.  kcut 0: K is one
 * part. */
static inline uint32_t npu_panel_fold(uint32_t k, uint32_t all, uint32_t h, uint32_t kcut)
{
	uint32_t part = kcut ? (UINT32_C(1) << kcut) - k % (UINT32_C(1) << kcut) : all;
	uint32_t left = all - k < part ? all - k : part;

	return left < h ? left : h;
}

/* Windows over an image's rows.  GEMM: h = M, ow = sy = reach = 1, pt = 0. */
struct npu_windows {
	uint32_t h;     /* input rows */
	uint32_t ow;    /* outputs a line */
	uint32_t sy;    /* rows from one line's windows to the next's */
	uint32_t pt;    /* rows that the first line's begin above the image */
	uint32_t reach; /* rows of a window */
};

struct npu_rows {
	uint32_t first, count;
};

/* Input rows that outputs m0 .. m0 + t - 1 need. */
static inline struct npu_rows npu_panel_rows(const struct npu_windows *v, uint32_t m0,
					     uint32_t t)
{
	int64_t first = (int64_t)(m0 / v->ow) * v->sy - v->pt;
	int64_t end = (int64_t)((m0 + t - 1) / v->ow) * v->sy - v->pt + v->reach;

	if (first < 0)
		first = 0;
	if (end > v->h)
		end = v->h;
	return (struct npu_rows){(uint32_t)first,
				 end > first ? (uint32_t)(end - first) : 0};
}

#endif
