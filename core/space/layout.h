/* SPDX-License-Identifier: Apache-2.0 */
/* layout.h - choose new places for the partitions of a policy's plan.  Engine thread
 * only. */
#ifndef HAL_SPACE_LAYOUT_H
#define HAL_SPACE_LAYOUT_H

#include "loop/device.h"
#include "space/partition.h"

/* Set .to of dev->space.plan.move[0..count), so that each partition gets .units units.
 * The caller has set .part, .from and .units, partitions that shrink first.
 * Moves nothing.  Return 0, or -ENOSPC if no layout is found or partitions would wait for
 * each other in a cycle. */
int layout_place(struct hal_device *dev);

#endif
