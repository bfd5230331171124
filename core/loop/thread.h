/* SPDX-License-Identifier: Apache-2.0 */
/* thread.h - the engine of clock=real. */
#ifndef HAL_LOOP_THREAD_H
#define HAL_LOOP_THREAD_H

#include "loop/device.h"

/* clock=real: the thread.  What is left in the inbox is still read at its stop. */
int engine_start(struct hal_device *dev);
void engine_stop(struct hal_device *dev);

#endif
