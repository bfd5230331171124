/* SPDX-License-Identifier: Apache-2.0 */
/* sequence.h - a recorded sequence: a block of records that its submissions share. */
#ifndef HAL_API_SEQUENCE_H
#define HAL_API_SEQUENCE_H

#include "command/record.h"
#include "space/partition.h"

struct hal_sequence {
	struct object obj;
	struct hal_partition *part;
	/* The sequence holds one reference.  Submitted work may share the block, so the
	 * block is never modified, but replaced by a changed copy. */
	struct block *block;
	uint32_t commands;
};

#endif
