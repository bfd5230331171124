/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deferred.h - things are destroyed while submitted work uses them: freed when that has
 * ended.
 *
 * What was submitted before now may use it, what comes later can not.  So it goes from
 * one busy queue to the next, and waits at each until that has nothing left which was
 * submitted before; a queue that has something to free looks once a command, whatever
 * the number of queues and of things.
 */
#ifndef HAL_COMMAND_DEFERRED_H
#define HAL_COMMAND_DEFERRED_H

#include "command/queue.h"
#include "space/partition.h"

/* By the engine; .dev, .part and .free are set.  Freed at once when nobody uses it. */
void deferred_free(struct deferred *d);
/* Something of q has ended. */
void deferred_go_on(struct hal_queue *q);
/* q is empty, and goes. */
void deferred_leave(struct hal_queue *q);

#endif
