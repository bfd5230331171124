/* SPDX-License-Identifier: Apache-2.0 */
/* check.h - assertions of docs/state.md for partitions, in builds without NDEBUG. */
#ifndef HAL_SPACE_CHECK_H
#define HAL_SPACE_CHECK_H

#include "loop/device.h"
#include "space/partition.h"

#ifndef NDEBUG
/* Assert the rows of docs/state.md that hold for part between two messages. */
void partition_check(struct hal_partition *part);
/* The same for all partitions of dev, and for its plan. */
void space_check(struct hal_device *dev);
#endif

#endif
