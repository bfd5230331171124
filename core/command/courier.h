/* SPDX-License-Identifier: Apache-2.0 */
/*
 * courier.h - the thread of a device that carries timelines to and from other processes.
 *
 * The first export or import starts it.  It sleeps until an engine has raised a timeline
 * or another process has rung (wire.h).  Engines tell it by a word and an eventfd, and
 * never wait for it.  It enters the engine by calls, with dev->share.lock held, which no
 * engine takes.
 */
#ifndef HAL_COMMAND_COURIER_H
#define HAL_COMMAND_COURIER_H

#include "command/timeline.h"
#include "loop/device.h"

/* Make *fd, which another process imports.  Return 0 or -errno. */
int courier_export(struct hal_timeline *t, uint32_t rights, int *fd);
/* Make a timeline of dev that follows the one of fd.  Return 0 or -errno. */
int courier_import(struct hal_device *dev, int fd, struct hal_timeline **timeline);
/* Stop the thread, if it was started, and end what it has left.  The engine runs. */
void courier_stop(struct hal_device *dev);

/* Return a number that changes when another process has raised or ended a timeline. */
unsigned int courier_deliveries(void);
/* Return whether a queue of dev waits for a timeline that another process may raise.  arg
 * is NULL.  Engine only. */
int courier_awaited(struct hal_device *dev, void *arg);

#endif
