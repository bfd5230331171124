/* SPDX-License-Identifier: Apache-2.0 */
/* turn.h - what the scheduler does when a turn tells it of something; by the engine. */
#ifndef HAL_SCHED_TURN_H
#define HAL_SCHED_TURN_H

#include "loop/device.h"

extern const struct turn_listener turn_listener;

#endif
