/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bimodal.h - a partition that is alone has more memory channels; by the engine.
 *
 * Memory of a bimodal partition that says so has two placements, which the backend keeps:
 * on channels of its own, and on more (desc.wide_mask).  All of it goes from one to the
 * other at once (hal_bk_cold.partition_widen), which takes no copy: what is constant is
 * in both, what is scratch is worth nothing between submissions.  So that happens when
 * none of its queues is inside a submission, and nothing of it is on the device.
 *
 * Its queues are watched (recolor.h): whenever the first command of a submission is next,
 * it is seen whether the placement is the right one.  If not, the queue waits for what
 * the partition has begun.  It does not wait for what somebody has to let go on first
 * (suspended, in a callback, waiting itself, being copied by the host): then the
 * submission takes what there is.
 *
 * Alone is who has no other partition's work beside it that is not over, and whose wider
 * channels nobody has named.
 */
#ifndef HAL_MEMORY_BIMODAL_H
#define HAL_MEMORY_BIMODAL_H

#include "command/queue.h"
#include "space/partition.h"

/* The next command of q, which is watched, may be given to the device.  False: it is the
 * first of its submission, and waits for another placement. */
bool bimodal_lets(struct hal_queue *q);
/* Have the queues of part that wait for its placement look again. */
void bimodal_wake(struct hal_partition *part) COLD;
/* Something of q's partition has ended, or cannot go on by itself: who waits looks again.
 */
static inline void bimodal_look(struct hal_partition *part)
{
	if (UNLIKELY(part->memory.ends_wanted))
		part->dev->memory.residency->wake(part);
}

#endif
