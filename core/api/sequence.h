/* SPDX-License-Identifier: Apache-2.0 */
/* sequence.h - work recorded once: a block of records that submissions share. */
#ifndef HAL_API_SEQUENCE_H
#define HAL_API_SEQUENCE_H

#include "command/record.h"
#include "space/partition.h"

struct hal_sequence {
	struct object obj;
	struct hal_partition *part;
	struct block *block; /* its own reference; copied before it is changed */
	uint32_t commands;
};

#endif
