/* SPDX-License-Identifier: Apache-2.0 */
/* flow.h - engine turns, and how commands move through a queue.  Engine only. */
#ifndef HAL_COMMAND_FLOW_H
#define HAL_COMMAND_FLOW_H

#include "command/queue.h"
#include "loop/device.h"
#include "space/partition.h"

/* Run one turn: read messages, issue commands, poll the device, retire commands.
 * With clock=virtual the poll runs the device until it has an event or reaches until_ns.
 * If the flag idle is true, time passes even while the device has no work.  With
 * clock=real the poll only reads events.  Return false if the turn did nothing. */
bool engine_turn(struct hal_device *dev, uint64_t until_ns, bool idle);

/* Run turns until t reaches value or fails, or until another thread waits for the engine
 * lock; then return true.  Return false after a turn in which nothing happened. */
bool engine_turns(struct hal_device *dev, const struct hal_timeline *t, uint64_t value);

/* Handle hal_queue.message: the ring has new records. */
void queue_message(struct hal_device *dev, struct message *msg);
/* Accept the records that have been submitted to q, if there are such, and advance q. */
void queue_accept(struct hal_device *dev, struct hal_queue *q);
/* Execute the records of q that need no device.  Make q runnable if its next command
 * needs the device and no state of q blocks it. */
void queue_advance(struct hal_queue *q);
/* Handle hal_queue.callback: the host function of q has returned. */
void queue_returned(struct hal_device *dev, struct message *msg);
/* Continue q after its host function, the record at q->issue, has returned. */
void queue_called(struct hal_queue *q);
/* Drop every command of q, whose queue on the device has been destroyed. */
void queue_abandon(struct hal_queue *q) COLD;
/* Fail q (-ECANCELED), which is never to be resumed, and drop its commands.  Commands
 * that the device keeps are dropped when q is destroyed. */
void queue_end(struct hal_queue *q) COLD;
/* Account a run from start_ns to end_ns of q's oldest command on the device, which the
 * device has stopped inside and keeps the progress of. */
void queue_stopped(struct hal_queue *q, uint64_t start_ns, uint64_t end_ns) COLD;

#endif
