/* SPDX-License-Identifier: Apache-2.0 */
/* compact.h - move partitions out of a rectangle that another one needs.  Engine thread
 * only. */
#ifndef HAL_SPACE_COMPACT_H
#define HAL_SPACE_COMPACT_H

#include "loop/device.h"
#include "space/partition.h"

/* Begin to free the units that d requests for part (NULL: for a new partition).  Move at
 * most moves_max partitions; those that requested a rectangle (.pinned) stay.  Return 0
 * if the units are free already, or if the moves have begun.  In the second case the free
 * units of the chosen rectangle stay reserved until compact_over.  Return -ENOSPC if too
 * few units are free or if moves_max moves cannot free a rectangle, or -EBUSY if a plan
 * is under way. */
int compact_begin(struct hal_device *dev, const struct hal_partition *part,
		  const struct hal_partition_desc *d, uint32_t moves_max);
/* Release the reserved rectangle, so that any partition can take it. */
void compact_over(struct hal_device *dev);

#endif
