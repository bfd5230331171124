/* SPDX-License-Identifier: Apache-2.0 */
/* limit.h - how much of the memory's bandwidth a partition may take; by the engine. */
#ifndef HAL_SCHED_LIMIT_H
#define HAL_SCHED_LIMIT_H

#include "loop/device.h"
#include "space/partition.h"

/* bandwidth, bytes a second, as so many bytes in a window that the device has: the
 * shortest in which it still is many times the grain.  -ENOTSUP, -EINVAL: too little. */
int limit_plan(const struct hal_device *dev, uint64_t bandwidth, uint64_t *bytes,
	       uint64_t *window_ns);
/* The tighter of this and part's own; 0 bytes: no limit. */
void limit_own(const struct hal_partition *part, uint64_t *bytes, uint64_t *window_ns);
/* Bytes a second; 0: none. */
uint64_t limit_of(const struct hal_partition *part);
/* As hal_policy_host.window. */
uint64_t limit_window(const struct hal_device_info *i, uint64_t bandwidth,
		      uint64_t *window_ns);

#endif
