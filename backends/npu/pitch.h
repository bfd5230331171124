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
	uint32_t kh, kw, sx, dx, dy, ow;
};

/* The least distance that keeps each row's place in its line. */
uint64_t npu_pitch_least(uint64_t row_bytes, uint64_t lda);
/* The best distance of least .. least + 1024, but at most limit (or least); any is right,
 * this one is fast. */
uint32_t npu_pitch_best(const struct npu_pitch *c, uint64_t limit);

#endif
