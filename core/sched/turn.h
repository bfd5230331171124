/* SPDX-License-Identifier: Apache-2.0 */
/* turn.h - the scheduler's handlers for events of an engine turn.  Engine only. */
#ifndef HAL_SCHED_TURN_H
#define HAL_SCHED_TURN_H

#include "loop/device.h"

extern const struct turn_listener turn_listener;

#endif
