/* SPDX-License-Identifier: Apache-2.0 */
/* thread.h - the engine's thread, with clock=real. */
#ifndef HAL_LOOP_THREAD_H
#define HAL_LOOP_THREAD_H

#include "loop/device.h"

/* Start the engine's thread, which calls turn (engine_turn in command/flow.h) until it is
 * stopped.  Return 0 or -errno.  With clock=virtual do nothing. */
int engine_start(struct hal_device *dev,
		 bool (*turn)(struct hal_device *dev, uint64_t until_ns, bool idle));
/* Stop the engine's thread, if there is one, after it has read its inbox. */
void engine_stop(struct hal_device *dev);

#endif
