/* SPDX-License-Identifier: Apache-2.0 */
/* plan.h - move several partitions in one go.  Engine thread only. */
#ifndef HAL_SPACE_PLAN_H
#define HAL_SPACE_PLAN_H

#include "loop/device.h"
#include "space/partition.h"

/* State of one partition of a plan. */
enum plan_state {
	PLAN_WAITS,   /* another partition of the plan still holds units that it needs */
	PLAN_MOVES,   /* the device is moving it */
	PLAN_MOVED,   /* it has moved */
	PLAN_DROPPED, /* it stays where it is, because a move of the plan failed */
};

/* Owner number (place.h) of the units reserved in plan.room; no partition has it. */
#define PLAN_ROOM UINT32_MAX

/* Choose new places for partitions as a policy requests, and begin to move them.  The
 * caller has checked the partitions, their limits and count.  Return 0 if the moves have
 * begun or none is needed, -EBUSY if a plan is under way, or another -errno. */
int plan_begin(struct hal_device *dev, const struct hal_policy_move *moves,
	       uint32_t count);
/* Begin the moves in dev->space.plan.move[0..count).  The caller has set .part, .from and
 * .to, such that no partitions wait for each other in a cycle.  Return as plan_begin. */
int plan_carry_out(struct hal_device *dev);
/* Continue the plan after part, which belongs to it, has moved or failed to move.  Return
 * 0, or -errno if the device refuses the next move; then plan.open counts the moves under
 * way. */
int plan_step(struct hal_partition *part, bool succeeded);
/* Notify threads that wait for the plan that it has ended. */
void plan_is_over(struct hal_device *dev);
/* Return -EBUSY with the error text for a plan that is already under way. */
int plan_busy(const struct hal_device *dev);
/* Return whether part belongs to a plan and waits until it can move. */
static inline bool plan_has(const struct hal_partition *part)
{
	const struct plan *plan = &part->dev->space.plan;

	for (uint32_t i = 0; plan->open != 0 && i < plan->count; i++)
		if (plan->move[i].part == part && plan->move[i].state == PLAN_WAITS)
			return true;
	return false;
}
/* Return a point that is reached when a partition that is now moving has moved. .timeline
 * is NULL if no plan is under way. */
struct hal_point plan_point(const struct hal_device *dev);
/* Return the point that is reached when the whole plan has ended.  dev->space.plan.over
 * must exist.  .timeline is NULL if no plan is under way. */
struct hal_point plan_over_point(const struct hal_device *dev);

#endif
