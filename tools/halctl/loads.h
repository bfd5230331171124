/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loads.h - loads of chosen lines of an NPU's memory, many in flight: an operation whose
 * operands they are.
 */
#ifndef HALCTL_LOADS_H
#define HALCTL_LOADS_H

#include <hal/npu.h>

#include "halctl.h"

#define LOAD_LINE   64u /* bytes that one load takes */
#define LOAD_RESULT 64u /* bytes for what is computed of it, and two times */

/* While others have it, it waits as long as --wait says, and says so.  0 or TOOL_FAILED.
 */
int load_open(const struct halctl *ctl, struct hal_device **dev);

/* Adds an operation to the kernel that takes lines of each of two operands, and writes
 * LOAD_RESULT / 2 bytes to d at most.  As hal_npu_gemm and hal_npu_add.
 *
 * A GEMM, for up to 8 lines: of one, rows of one line; of other, two rows a line, of two
 * bytes that lie in two of its beats, so that all four are read. */
int load_by_gemm(struct hal_npu_builder *b, uint32_t one, uint32_t other, uint32_t d,
		 uint32_t lines);
/* A sum, for up to 32 lines: a byte of each line, of both operands in turn.  It is for
 * memory behind a cache, which fetches the line. */
int load_by_sum(struct hal_npu_builder *b, uint32_t one, uint32_t other, uint32_t d,
		uint32_t lines);

/* A buffer in one piece, of most bytes or as many as there are.  *first: its address in
 * the device's memory.  0 or TOOL_FAILED. */
int load_memory(struct hal_device *dev, struct hal_partition *part, uint64_t most,
		struct hal_buffer **memory, uint64_t *first, uint64_t *bytes);

#endif
