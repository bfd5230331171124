/* SPDX-License-Identifier: Apache-2.0 */
/* check.h - assert the states of partitions, in builds without NDEBUG. */
#ifndef HAL_SPACE_CHECK_H
#define HAL_SPACE_CHECK_H

#include "loop/device.h"
#include "space/partition.h"

#ifndef NDEBUG
/* Assert docs/state.md for part. */
void partition_check(struct hal_partition *part);
/* Assert docs/state.md for all partitions of dev and for its plan. */
void space_check(struct hal_device *dev);
#endif

#endif
