/* SPDX-License-Identifier: Apache-2.0 */
/* quota.h - how much memory a partition and a device have left; any thread. */
#ifndef HAL_MEMORY_QUOTA_H
#define HAL_MEMORY_QUOTA_H

#include "loop/device.h"
#include "space/partition.h"

int partition_charge(struct hal_partition *part, uint64_t bytes, const char *what);
void partition_release(struct hal_partition *part, uint64_t bytes);
/* A buffer of a partition that evicts, wherever it will be. */
int limit_charge(struct hal_partition *part, uint64_t bytes);
void limit_release(struct hal_partition *part, uint64_t bytes);
/* Bytes that may still be promised to somebody. */
int memory_promise(struct hal_device *dev, uint64_t bytes);
void memory_unpromise(struct hal_device *dev, uint64_t bytes);
uint64_t memory_left(const struct hal_device *dev);

/* ---- by the engine ------------------------------------------------------------------- */

/* Change the quota of p, which the device has promised it, to `to` bytes; 0: leave it.
 * -ENOSPC: the device has not so much. */
int quota_change(struct hal_partition *p, uint64_t to);
/* Take back what quota_change has done, because p has not moved after all, as far as
 * others have not taken, or p itself used, what was in between. */
void quota_undo(struct hal_partition *p);

#endif
