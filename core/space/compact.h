/* SPDX-License-Identifier: Apache-2.0 */
/* compact.h - others are moved so that a partition finds room in one place; by the
 * engine. */
#ifndef HAL_SPACE_COMPACT_H
#define HAL_SPACE_COMPACT_H

#include "loop/device.h"
#include "space/partition.h"

/* Moves at most so many partitions, none of which asked for its place, so that what d
 * asks for is free: for part, or for a new one (NULL).  0: it is free, or they have begun
 * to move, and what is free of that room is held until compact_over.  -ENOSPC: that does
 * not make room, or there are too few units; -EBUSY: a plan is under way. */
int compact_begin(struct hal_device *dev, const struct hal_partition *part,
		  const struct hal_partition_desc *d, uint32_t most);
/* The room is for everybody. */
void compact_over(struct hal_device *dev);

#endif
