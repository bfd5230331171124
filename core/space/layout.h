/* SPDX-License-Identifier: Apache-2.0 */
/* layout.h - where the partitions of a policy's plan go; by the engine. */
#ifndef HAL_SPACE_LAYOUT_H
#define HAL_SPACE_LAYOUT_H

#include "loop/device.h"
#include "space/partition.h"

/* Fills .to of dev->plan.move[0..count), of which .part and .from are there and those
 * that become smaller come first; -ENOSPC: they do not fit together, or would
 * wait for each other in a circle.  Moves nothing. */
int layout_place(struct hal_device *dev, const struct hal_policy_move *moves);

#endif
