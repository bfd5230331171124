/* SPDX-License-Identifier: Apache-2.0 */
/* limit.h - limits on the memory bandwidth of partitions.  Engine only. */
#ifndef HAL_SCHED_LIMIT_H
#define HAL_SCHED_LIMIT_H

#include "loop/device.h"
#include "space/partition.h"

/* Convert bandwidth, in bytes per second, to *bytes per window of *window_ns.  Return 0;
 * -ENOTSUP if dev has no limits; -EINVAL if bandwidth is too high or too low. */
int limit_plan(const struct hal_device *dev, uint64_t bandwidth, uint64_t *bytes,
	       uint64_t *window_ns);
/* Replace the limit of *bytes per *window_ns with part's own limit if part's own limit is
 * lower.  A limit of 0 bytes means no limit. */
void limit_own(const struct hal_partition *part, uint64_t *bytes, uint64_t *window_ns);
/* Return part's own limit in bytes per second; 0: none. */
uint64_t limit_of(const struct hal_partition *part);
/* Implement hal_policy_host.window: return the bytes per window for bandwidth, and set
 * *window_ns.  The window is the shortest in which a limit is still at least 16
 * grains. */
uint64_t limit_window(const struct hal_device_info *i, uint64_t bandwidth,
		      uint64_t *window_ns);

#endif
