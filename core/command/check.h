/* SPDX-License-Identifier: Apache-2.0 */
/* check.h - assertions of docs/state.md for queues, in builds without NDEBUG. */
#ifndef HAL_COMMAND_CHECK_H
#define HAL_COMMAND_CHECK_H

#include "command/queue.h"
#include "loop/device.h"

#ifndef NDEBUG
/* Assert the rows of docs/state.md that hold for q between two messages. */
void queue_check(const struct hal_queue *q);
/* Assert docs/state.md for all queues, partitions and buffers of dev.  Return without a
 * check when dev has so many of them that a turn would become slow. */
void device_check(struct hal_device *dev);
#else
static inline void device_check(struct hal_device *dev)
{
	(void)dev;
}
#endif

#endif
