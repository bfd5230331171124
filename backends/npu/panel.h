/* SPDX-License-Identifier: Apache-2.0 */
/*
 * panel.h - how long an operation's panels are (PANEL), and how far apart its input rows
 * lie in the scratchpad (SPS): for whoever writes GEMM and CONV descriptors.
 */
#ifndef HAL_NPU_PANEL_H
#define HAL_NPU_PANEL_H

#include "npu_panel.h"
#include "pitch.h"

struct npu_panel_op {
	uint32_t m, n, k;
	uint32_t depth; /* most rows of a panel */
	uint64_t ldd;   /* bytes from an output row to the next; 0: rows lie close */
	uint64_t ldb;   /* bytes from a row of weights to the next; 0: blocks (F_BLOCK) */
	struct npu_windows in;
	struct npu_pitch pitch; /* GEMM: row_bytes and lda alone */
};

struct npu_panel {
	uint32_t rows; /* 0: the input of one output does not fit */
	uint32_t sps;
	uint32_t kcut; /* not 0: K is cut, and an operation has at most .rows rows */
	uint64_t cost;
};

/* Where a kernel of one row passes over input rows, walks over the others alone: as an
 * image of fewer rows, further apart.  Tells which row is the first of them. */
uint32_t npu_panel_skip(struct npu_windows *in, uint64_t *lda);
/* Panels that keep the array busy; of those as good, the longest. */
struct npu_panel npu_panel_choose(const struct npu_panel_op *o);
/* The same of a GEMM, or K cut, where that is faster: then an operation of more than
 * .rows rows is to become several. */
struct npu_panel npu_panel_gemm(const struct npu_panel_op *o);

#endif
