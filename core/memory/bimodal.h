/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bimodal.h - give a partition more memory channels while no other partition has work.
 * Engine thread only.
 *
 * Bimodal memory has two placements, which the backend keeps: narrow, on the partition's
 * own channels, and wide, on all channels of desc.wide_mask.  A switch changes all
 * bimodal memory of the partition at once (hal_bk_extra.partition_widen) and copies
 * nothing. Constants exist in both placements, and the contents of scratch memory are not
 * needed after a submission.  So a switch is possible only when none of the partition's
 * queues is inside a submission and none of its commands is in flight.
 *
 * The wide placement is right while the partition is alone: no queue of another partition
 * has unfinished work, and no other partition owns one of the additional channels.
 *
 * The queues of a bimodal partition are watched (recolor.h).  Before the first command of
 * each submission, bimodal_lets compares the placement with the right one.  If they
 * differ and the partition has running work, the queue waits for the end of that work,
 * and then switches the placement.  If that work is blocked (suspended, in a host
 * function, waiting, or in a host copy), the submission runs with the present placement
 * instead.
 */
#ifndef HAL_MEMORY_BIMODAL_H
#define HAL_MEMORY_BIMODAL_H

#include "command/queue.h"
#include "space/partition.h"

/* Switch the placement before the next command of q, if needed and possible.  Return
 * whether that command may be issued; if not, q was parked until the partition's running
 * work ends. */
bool bimodal_lets(struct hal_queue *q);
/* Have all queues of part that are parked because of memory check their next command
 * again. */
void bimodal_wake(struct hal_partition *part) COLD;
/* Call bimodal_wake if queues of part wait for memory.  To be called when a command of
 * the partition completes, when its work becomes blocked, and when memory is freed. */
static inline void bimodal_look(struct hal_partition *part)
{
	if (UNLIKELY(part->memory.ends_wanted))
		part->dev->memory.residency->wake(part);
}

#endif
