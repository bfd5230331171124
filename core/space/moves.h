/* SPDX-License-Identifier: Apache-2.0 */
/* moves.h - core/space's entry points for lower modules (struct moves in loop/device.h).
 */
#ifndef HAL_SPACE_MOVES_H
#define HAL_SPACE_MOVES_H

#include "loop/device.h"

extern const struct moves space_moves;

#endif
