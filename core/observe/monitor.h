/* SPDX-License-Identifier: Apache-2.0 */
/*
 * monitor.h - a device that can be looked at from outside its program (hal.monitor).
 *
 * A thread answers on a socket that this user alone can reach.  For each answer it sends
 * the engine one message, in which that copies what is its own (view.h), and adds
 * statistics, which cost the engine nothing.  Answers are MONITOR_PAUSE_MS apart, whoever
 * asks and how often; who asks or reads slowly, or not at all, keeps up this thread.
 *
 * A request is words, each ended by a 0, up to the end of what is sent:
 *   look                     answered by the device as JSON (monitor_json.c)
 *   set NAME KEY=VALUE...    as hal_device_set_policy; "{}", or {"error": TEXT}
 */
#ifndef HAL_OBSERVE_MONITOR_H
#define HAL_OBSERVE_MONITOR_H

#include <stddef.h>

#include "observe/view.h"

#define MONITOR_VERSION  1u
#define MONITOR_PAUSE_MS 10

/* Make the socket, once the backend is there, if hal.monitor says so.  Fail where that
 * cannot be done in the folder that hal.monitor_dir names.  If it names none, the device
 * opens even if its monitor cannot. */
int monitor_open(struct hal_device *dev);
/* While its engine runs. */
void monitor_start(struct hal_device *dev);
void monitor_stop(struct hal_device *dev);
/* After its engine. */
void monitor_close(struct hal_device *dev);

/* v as JSON, by malloc; NULL: no memory. */
char *monitor_json(struct hal_device *dev, struct view *v, size_t *size);
/* {"error": what} */
char *monitor_json_error(const char *what, size_t *size);

#endif
