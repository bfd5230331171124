/* SPDX-License-Identifier: Apache-2.0 */
/* resize.h - add, remove, resize and move partitions.  Engine thread only. */
#ifndef HAL_SPACE_RESIZE_H
#define HAL_SPACE_RESIZE_H

#include "loop/device.h"
#include "space/partition.h"

/* Set the limits that apply to part once it has been created or moved: floor, ceiling and
 * .pinned as d requests.  units is the floor if d names none. */
void resize_limits(struct hal_partition *part, const struct hal_partition_desc *d,
		   uint32_t units);
/* Keep part's current limits (floor, ceiling, .pinned) for after the move. */
void resize_keep_limits(struct hal_partition *part);
/* Add p to its device: reserve its units and index.  p->desc and p->bk must be set. */
void partition_enter(struct hal_partition *p);
/* Remove p from its device, and release its units and index. */
void partition_leave(struct hal_partition *p);

/* Begin to resize or move part as d requests.  Return 0 or -errno; after 0, part->control
 * reaches part->resize_count when part has moved, and fails if the device refuses. */
int resize_begin(struct hal_partition *part, const struct hal_partition_desc *d);
/* Begin to give part `units` units at any place, for the policy.  Floor and ceiling stay.
 * The caller has checked that units is within them. */
int resize_units(struct hal_partition *part, uint32_t units);
/* The steps of resize_begin, for callers that have chosen the new place themselves
 * (plan.c).  resize_check: return 0 if part can be resized now and d changes nothing that
 * is fixed.  resize_renew: replace part->control if it has failed.  resize_move: have the
 * device move part to `to`, and hold both places until it has. */
int resize_check(const struct hal_partition *part, const struct hal_partition_desc *d);
int resize_renew(struct hal_partition *part);
int resize_move(struct hal_partition *part, const struct hal_bk_partition_desc *to);
/* Let part issue commands again after a move, unless it belongs to hal_partitions_move:
 * on a device that moves only idle partitions its members stay idle until the end. */
static inline void resize_let_issue(struct hal_partition *part)
{
	struct hal_device *dev = part->dev;

	if (!part->arranged || (dev->info.caps & HAL_CAP_RESIZE_LIVE) != 0)
		part->command.inflight_max = partition_inflight_max(part);
}
/* Handle the device's event that a partition has moved, or that the move has failed
 * (ev->status). */
void resize_done(const struct hal_bk_event *ev);
/* Fail part's move, if one is under way, because the device is lost. */
void resize_lost(struct hal_partition *part);

#endif
