/* SPDX-License-Identifier: Apache-2.0 */
/* room.h - move other partitions to free a rectangle for a new or growing one. */
#ifndef HAL_SPACE_ROOM_H
#define HAL_SPACE_ROOM_H

#include "api/handle.h"

/* Call ask(arg, false), which requests the units of d for part (NULL: for a new
 * partition). If it returns -ENOSPC, move up to hal.compact other partitions, wait until
 * they have moved, and call ask(arg, true).  With true, the engine function of ask must
 * first call room_take.  Return the result of the last call.  Any thread except the
 * engine's. */
int room_for(struct hal_device *dev, struct hal_partition *part,
	     const struct hal_partition_desc *d, int (*ask)(void *arg, bool room),
	     void *arg);
/* Release the reserved rectangle, so that the current request can take it.  Engine thread
 * only. */
void room_take(struct hal_device *dev);

#endif
