/* SPDX-License-Identifier: Apache-2.0 */
/* plan.h - several partitions moved as one; by the engine. */
#ifndef HAL_SPACE_PLAN_H
#define HAL_SPACE_PLAN_H

#include "loop/device.h"
#include "space/partition.h"

enum plan_state { PLAN_WAITS, PLAN_MOVES, PLAN_MOVED, PLAN_DROPPED };

#define PLAN_ROOM UINT32_MAX /* who holds plan.room: no partition's */

/* 0: begun, or there is nothing to move.  Partitions, their limits and their number have
 * been looked at. */
int plan_begin(struct hal_device *dev, const struct hal_policy_move *moves,
	       uint32_t count);
/* dev->plan.move[0..count), of which .part, .from and .to are there and nobody waits for
 * himself in a circle, the same. */
int plan_carry_out(struct hal_device *dev);
/* -EBUSY: there is one already. */
int plan_busy(const struct hal_device *dev);
/* part waits until it can move. */
static inline bool plan_has(const struct hal_partition *part)
{
	const struct plan *plan = &part->dev->space.plan;

	for (uint32_t i = 0; plan->open != 0 && i < plan->count; i++)
		if (plan->move[i].part == part && plan->move[i].state == PLAN_WAITS)
			return true;
	return false;
}
/* A point that some partition of the plan reaches; .timeline NULL: there is no plan. */
struct hal_point plan_point(const struct hal_device *dev);
/* The same of the whole plan; dev->plan.over is there. */
struct hal_point plan_over_point(const struct hal_device *dev);

#endif
