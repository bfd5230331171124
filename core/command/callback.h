/* SPDX-License-Identifier: Apache-2.0 */
/*
 * callback.h - call the host functions among a queue's commands.
 *
 * A host function runs while its thread holds no lock of the library.  With clock=real
 * that is a thread of the device, started at the first use.  With clock=virtual it is the
 * thread that is the engine, which releases the engine lock for the call.
 */
#ifndef HAL_COMMAND_CALLBACK_H
#define HAL_COMMAND_CALLBACK_H

#include "command/queue.h"
#include "loop/device.h"

/* Initialize dev->command.callbacks. */
void callbacks_init(struct hal_device *dev);
/* Start the thread for host functions, if dev needs one and has none.  Called by threads
 * that submit a host function.  Return 0 or -errno. */
int callbacks_start(struct hal_device *dev);
/* Stop that thread, if it was started. */
void callbacks_stop(struct hal_device *dev);

/* Call the host function at q->issue.  When it has returned, q->callback.fn is called:
 * before this function returns with clock=virtual, through a message with clock=real.
 * Engine only. */
void callback_begin(struct hal_queue *q);

/* Have the host function that the caller is, with clock=real, be over only once
 * callback_over is called.  So it can return to let others be called.  Return its queue,
 * which is not destroyed until then. */
struct hal_queue *callback_keep(void);
void callback_over(struct hal_queue *q);

/* Return true if this thread is inside a host function of dev. */
bool callback_inside(const struct hal_device *dev);
/* Fail with -EDEADLK if this thread is inside a host function of dev.  what is the name
 * of a public function that would have to wait for that host function.  Else return 0. */
int callback_refuse(const struct hal_device *dev, const char *what);
/* Fail with -ENOTSUP if time on dev is virtual and hal_device_poll was never called.
 * what is the name of a public function that returns a file descriptor.  A program that
 * sleeps on it would sleep for ever: virtual time passes only inside hal_wait,
 * hal_device_poll and hal_completions_read.  Else return 0. */
int sleep_refuse(const struct hal_device *dev, const char *what);

#endif
