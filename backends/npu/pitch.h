/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pitch.h - how far apart input rows lie in the scratchpad (SPS), so that what a row of
 * activations reads seldom meets in a bank: for whoever writes CONV descriptors.
 */
#ifndef HAL_NPU_PITCH_H
#define HAL_NPU_PITCH_H

#include <stdbool.h>
#include <stdint.h>

struct npu_pitch {
	uint64_t row_bytes, lda; /* of an input row: bytes used; distance in memory */
	uint32_t pix;            /* bytes a pixel */
	uint32_t depth;          /* input channels a kernel position: CIN, or GC */
	bool group;
	uint32_t kh, kw, sy, sx, dx, dy, ow;
};

/* The least distance that keeps each row's place in its line. */
uint64_t npu_pitch_least(uint64_t row_bytes, uint64_t lda);
/* How many distances, each 64 bytes more than the one before, are worth a try. */
uint32_t npu_pitch_tries(const struct npu_pitch *c);

/* Cycles that some rows of activations take to read at this distance.  Any distance is
 * right; they differ in these alone. */
struct npu_pitch_cost {
	uint32_t cycles, rows;
};
struct npu_pitch_cost npu_pitch_cost(const struct npu_pitch *c, uint32_t sps);

#endif
