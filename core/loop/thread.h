/* SPDX-License-Identifier: Apache-2.0 */
/* thread.h - the engine of clock=real. */
#ifndef HAL_LOOP_THREAD_H
#define HAL_LOOP_THREAD_H

#include "loop/device.h"

/* Start the thread, which takes turns (command/flow.h). */
int engine_start(struct hal_device *dev,
		 bool (*turn)(struct hal_device *dev, uint64_t until_ns, bool idle));
/* Stop it, and read what is left in the inbox. */
void engine_stop(struct hal_device *dev);

#endif
