/* SPDX-License-Identifier: Apache-2.0 */
/* moves.c - how partitions move, for the turn and the scheduler. */
#include "space/moves.h"

#include "space/plan.h"
#include "space/resize.h"

const struct moves space_moves = {
	.units = resize_units,
	.plan = plan_begin,
	.done = resize_done,
	.lost = resize_lost,
};
