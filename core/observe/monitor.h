/* SPDX-License-Identifier: Apache-2.0 */
/*
 * monitor.h - show a device's state to halctl, another process (hal.monitor).
 *
 * A thread of the device answers requests on a socket that only this user can reach.  For
 * each request it sends the engine one message, in which the engine copies its state
 * (view.h).  The thread then adds statistics, which costs the engine nothing.  Answers
 * are at least MONITOR_PAUSE_MS apart.  A slow client delays only this thread, not the
 * engine.
 *
 * A request consists of words, each of which ends with a 0 byte.  The client then shuts
 * down its side of the connection.  The requests are:
 *   look                     the answer is the device's state as JSON (monitor_json.c)
 *   set NAME KEY=VALUE...    sets the policy; the answer is {} or {"error": TEXT}
 */
#ifndef HAL_OBSERVE_MONITOR_H
#define HAL_OBSERVE_MONITOR_H

#include <stddef.h>

#include "observe/view.h"

#define MONITOR_VERSION  1u /* version of the JSON; halctl checks it */
#define MONITOR_PAUSE_MS 10

/* Create the socket if hal.monitor is on.  Call it after the backend has been opened.  An
 * error in the folder that hal.monitor_dir names is returned; one in the default folder
 * only leaves the device without a monitor. */
int monitor_open(struct hal_device *dev);
/* Start the thread.  The engine must run from here until monitor_stop. */
void monitor_start(struct hal_device *dev);
/* Stop the thread, if it runs. */
void monitor_stop(struct hal_device *dev);
/* Remove the socket and free the monitor, after the engine has stopped. */
void monitor_close(struct hal_device *dev);

/* Return the state v of dev as JSON, after adding statistics to v.  The caller frees the
 * text.  NULL: no memory. */
char *monitor_json(struct hal_device *dev, struct view *v, size_t *size);
/* Return {"error": what}, to be freed by the caller; NULL: no memory. */
char *monitor_json_error(const char *what, size_t *size);

#endif
