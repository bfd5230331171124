/* SPDX-License-Identifier: Apache-2.0 */
/* moves.h - how partitions move, for the turn and the scheduler. */
#ifndef HAL_SPACE_MOVES_H
#define HAL_SPACE_MOVES_H

#include "loop/device.h"

extern const struct moves space_moves;

#endif
