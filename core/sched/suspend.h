/* SPDX-License-Identifier: Apache-2.0 */
/* suspend.h - suspend and resume a queue.  Engine only. */
#ifndef HAL_SCHED_SUSPEND_H
#define HAL_SCHED_SUSPEND_H

#include "command/queue.h"

/* Return 0 if q may be suspended in mode, else -errno with an error message. */
int suspend_check(const struct hal_queue *q, uint32_t mode, bool final);
/* Return the oldest in-flight command of q that may not run twice, which rules out KILL.
 * Return NULL if there is no such command. */
const struct record *suspend_once(const struct hal_queue *q);
/* Begin to suspend q.  When the device has released q, the value of .sched.control
 * reaches .sched.suspend_count.  Return 0 or -errno. */
int suspend_begin(struct hal_queue *q, uint32_t mode, bool final);
/* Suspend q for the application.  If the scheduler has suspended q already, the
 * application takes over that suspend, and only the application can end it.  Return 0 or
 * -errno. */
int suspend_ask(struct hal_queue *q, uint32_t mode, bool final);
/* Resume q.  If its suspend is still under way, resume it when that has completed.  If
 * the device keeps commands of q and moves q's partition, which must be idle for that,
 * resume q after the move.  Return 0 or -errno. */
int suspend_end(struct hal_queue *q);
/* Carry out the resumes that part's move has delayed.  Call it when part may issue
 * commands again. */
void suspend_partition_moved(struct hal_partition *part);

/* Mark q as starving from now on: the scheduler, not the application, has stopped it.  A
 * mark that is set keeps its earlier time. */
void suspend_mark_starving(struct hal_queue *q);
/* Return whether stopped queue q has made no progress for longer than [policy]
 * timeout_ms.  If so, set .no_preempt (only DRAIN may stop q until it completes a
 * command) and restart the measured time. */
bool suspend_starved_too_long(struct hal_queue *q);

/* Complete q's suspend if nothing of q is in flight and no report of the backend is
 * due. */
void suspend_check_quiet(struct hal_queue *q);
/* Complete a suspend for which the backend has reported HAL_BK_QUIET. */
void suspend_quiet(const struct hal_bk_event *ev);
/* Complete q's suspend on a lost device, which will never report HAL_BK_QUIET. */
void suspend_lost(struct hal_queue *q);
/* Count the frozen commands of all queues as in flight again, because the device that
 * kept them is lost. */
void suspend_thaw_all(struct hal_device *dev);

#endif
