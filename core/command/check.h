/* SPDX-License-Identifier: Apache-2.0 */
/* check.h - assert the states of docs/state.md, in builds without NDEBUG. */
#ifndef HAL_COMMAND_CHECK_H
#define HAL_COMMAND_CHECK_H

#include "command/queue.h"
#include "loop/device.h"

#ifndef NDEBUG
/* Assert docs/state.md for q.  Do not call it while the engine handles a message or an
 * event. */
void queue_check(const struct hal_queue *q);
/* Assert docs/state.md for all queues, partitions and buffers of dev.  Do nothing if dev
 * has more than 64 queues or 64 partitions, because the check would slow down each turn.
 */
void device_check(struct hal_device *dev);
#else
static inline void device_check(struct hal_device *dev)
{
	(void)dev;
}
#endif

#endif
