/* SPDX-License-Identifier: Apache-2.0 */
/* suspend.h - letting go of a queue and taking it up again; by the engine. */
#ifndef HAL_SCHED_SUSPEND_H
#define HAL_SCHED_SUSPEND_H

#include "command/queue.h"

/* 0, or why it may not be suspended. */
int suspend_check(const struct hal_queue *q, uint32_t mode, bool final);
/* What the device has of q that may not run twice, so that it may not be killed; NULL:
 * there is none. */
const struct record *suspend_once(const struct hal_queue *q);
/* q->suspend_count is the value that its .control reaches when it is quiet. */
int suspend_begin(struct hal_queue *q, uint32_t mode, bool final);
/* The same for the application, which takes over what the policy has stopped, or what
 * makes way for others: only it ends that then. */
int suspend_ask(struct hal_queue *q, uint32_t mode, bool final);
int suspend_end(struct hal_queue *q);

/* q is stopped for others, not by the application. */
void suspend_mark_starving(struct hal_queue *q);
/* It is, and has not got on for longer than the net lets anybody wait: from now on what
 * it runs goes on to its end, stopped by DRAIN alone. */
bool suspend_starved_too_long(struct hal_queue *q);

/* A command of q, which is being suspended, has ended. */
void suspend_check_quiet(struct hal_queue *q);
/* The device has let go of a queue. */
void suspend_quiet(const struct hal_bk_event *ev);
/* It will not any more. */
void suspend_lost(struct hal_queue *q);
/* What it keeps of suspended queues is lost like all the rest. */
void suspend_thaw_all(struct hal_device *dev);

#endif
