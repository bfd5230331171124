/* SPDX-License-Identifier: Apache-2.0 */
/*
 * callback.h - host functions among a queue's commands; they run on a thread that holds
 * nothing of the library.
 */
#ifndef HAL_COMMAND_CALLBACK_H
#define HAL_COMMAND_CALLBACK_H

#include "command/queue.h"
#include "loop/device.h"

void callbacks_init(struct hal_device *dev);
/* By a thread that submits a host function: there will be somebody to call it. */
int callbacks_start(struct hal_device *dev);
void callbacks_stop(struct hal_device *dev);

/* By the engine: call the function at q->issue, and q->callback.fn when it has returned:
 * before this returns with clock=virtual, by a message with clock=real. */
void callback_begin(struct hal_queue *q);

/* True while this thread runs a callback of dev. */
bool callback_inside(const struct hal_device *dev);
/* -EDEADLK when it does: what would have to wait for it. */
int callback_refuse(const struct hal_device *dev, const char *what);
/* Fail what, which gives a file descriptor, where a program of one thread that sleeps on
 * it would do so for ever: the virtual clock moves only inside hal_wait, hal_device_poll
 * and hal_completions_read.  A device that has been polled has a program that knows. */
int sleep_refuse(const struct hal_device *dev, const char *what);

#endif
