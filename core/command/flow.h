/* SPDX-License-Identifier: Apache-2.0 */
/* flow.h - the way of a command, and the turns in which it goes it; by the engine. */
#ifndef HAL_COMMAND_FLOW_H
#define HAL_COMMAND_FLOW_H

#include "command/queue.h"
#include "loop/device.h"
#include "space/partition.h"

/* One turn: takes in what has come, gives commands to the device, runs it until there is
 * an event or until_ns (or, clock=real, only looks), ends what has ended.  idle: lets
 * time pass though the device has nothing to do.  False: nothing happened. */
bool engine_turn(struct hal_device *dev, uint64_t until_ns, bool idle);

/* Turns until t reaches value or fails, or somebody else wants to be the engine: true; or
 * until nothing happens. */
bool engine_turns(struct hal_device *dev, const struct hal_timeline *t, uint64_t value);

/* The message of a queue: its ring has more. */
void queue_message(struct hal_device *dev, struct message *l);
/* Goes over what needs no device; makes the queue runnable when its next command does. */
void queue_advance(struct hal_queue *q);
/* The message that says so of a queue's callback. */
void queue_returned(struct hal_device *dev, struct message *l);
/* The callback at q->issue has returned. */
void queue_called(struct hal_queue *q);
/* Drops all that is in it; the device has nothing of it any more. */
void queue_abandon(struct hal_queue *q) COLD;
/* Nothing of it will run any more: its points fail, and what the device does not keep is
 * dropped. */
void queue_end(struct hal_queue *q) COLD;
/* The device has stopped inside q's oldest command, which it ran from start_ns to end_ns
 * and of which it keeps the progress. */
void queue_stopped(struct hal_queue *q, uint64_t start_ns, uint64_t end_ns) COLD;

#endif
