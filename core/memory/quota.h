/* SPDX-License-Identifier: Apache-2.0 */
/* quota.h - count the memory of partitions and devices against their limits.  Any thread,
 * unless a comment says otherwise. */
#ifndef HAL_MEMORY_QUOTA_H
#define HAL_MEMORY_QUOTA_H

#include "loop/device.h"
#include "space/partition.h"

/* Charge bytes to the quota of part, or to the free memory of its device if it has no
 * quota.  Return 0 or -ENOSPC; `what` begins the error text, as in "a buffer". */
int partition_charge(struct hal_partition *part, uint64_t bytes, const char *what);
/* Undo partition_charge. */
void partition_release(struct hal_partition *part, uint64_t bytes);
/* Charge buf to the memory_limit of its partition, which evicts buffers.  Return 0 or
 * -ENOSPC. */
int limit_charge(const struct hal_buffer *buf);
void limit_release(struct hal_partition *part, uint64_t bytes);
/* Reserve bytes of device memory for a quota.  Return 0 or -ENOSPC. */
int memory_promise(struct hal_device *dev, uint64_t bytes);
void memory_unpromise(struct hal_device *dev, uint64_t bytes);
/* Return how many bytes of device memory are neither reserved nor used. */
uint64_t memory_left(const struct hal_device *dev);

/* ---- engine thread only ------------------------------------------------------------ */

/* Change the quota of p, and the device memory reserved for it, to `to` bytes; do nothing
 * if `to` is 0.  Return 0, or -ENOSPC if the device has too little free memory. */
int quota_change(struct hal_partition *p, uint64_t to);
/* Restore the quota to p->quota_before, because the resize of p has failed.  If the
 * resize lowered the quota, raise the quota again, unless other partitions have taken the
 * memory since.  If the resize raised the quota, lower it again, but not below the bytes
 * that p uses by now. */
void quota_undo(struct hal_partition *p);

#endif
