/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deferred.h - free a destroyed object once submitted work no longer uses it.
 *
 * Only work that was submitted before the object was destroyed can use it.  So the object
 * visits the busy queues, one after another.  It waits on a queue's list until all work
 * submitted there before its destruction is retired.  Thus each retired command costs one
 * check of its queue's list, however many queues and objects there are.
 */
#ifndef HAL_COMMAND_DEFERRED_H
#define HAL_COMMAND_DEFERRED_H

#include "command/queue.h"
#include "space/partition.h"

/* Engine only. */

/* Return -EBUSY if submitted work of part uses the memory with backend handle mem, else
 * 0.  what begins the error text. */
int deferred_check_unused(const struct hal_partition *part, const void *mem,
			  const char *what);
/* Call d->free(d) as soon as no submitted work can use the object of d; at once if none
 * can now.  .dev, .home and .free must be set. */
void deferred_free(struct deferred *d);
/* Have each object that waits on q, and that q no longer uses, wait on the next queue
 * that may use it.  If no queue may, free the object.  Call after records of q have been
 * retired. */
void deferred_advance(struct hal_queue *q);
/* Do as deferred_advance for q, which is empty and about to be destroyed.  After this
 * call no object waits on q. */
void deferred_leave(struct hal_queue *q);

#endif
