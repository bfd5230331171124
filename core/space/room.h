/* SPDX-License-Identifier: Apache-2.0 */
/* room.h - others make room for a partition that has none in one place. */
#ifndef HAL_SPACE_ROOM_H
#define HAL_SPACE_ROOM_H

#include "api/handle.h"

/* ask(arg, false) asks for what d says, for part or for a new one (NULL).  When that is
 * -ENOSPC, others are moved as far as hal.compact lets them, and it is asked again, with
 * true: by a message that begins with room_take. */
int room_for(struct hal_device *dev, struct hal_partition *part,
	     const struct hal_partition_desc *d, int (*ask)(void *arg, bool room),
	     void *arg);
/* By the engine: the room that was made is for who asks now. */
void room_take(struct hal_device *dev);

#endif
