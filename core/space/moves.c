/* SPDX-License-Identifier: Apache-2.0 */
/* moves.c - core/space's entry points for lower modules (struct moves in loop/device.h).
 */
#include "space/moves.h"

#include "space/check.h"
#include "space/plan.h"
#include "space/resize.h"

const struct moves space_moves = {
	.units = resize_units,
	.plan = plan_begin,
	.done = resize_done,
	.lost = resize_lost,
#ifndef NDEBUG
	.check = space_check,
#endif
};
