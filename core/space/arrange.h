/* SPDX-License-Identifier: Apache-2.0 */
/* arrange.h - move several partitions together for the application, all or none
 * (hal_partitions_move).  Engine thread only. */
#ifndef HAL_SPACE_ARRANGE_H
#define HAL_SPACE_ARRANGE_H

#include "loop/device.h"
#include "space/partition.h"

/* Each member moves to its new place once, and at most twice out of the way before. */
enum { ARRANGE_STEPS = 3 * HAL_POLICY_MOVES };

struct arrange_member {
	struct hal_partition *part;
	const struct hal_partition_desc *desc; /* used by arrange_begin only */
	struct place_rect from, to;
	uint64_t quota; /* before the call */
	/* Limits after the move. */
	uint32_t floor, ceiling;
	bool pinned;
	uint32_t parked; /* while steps are chosen: PARKED_* */
};

/* A move of one member to `at`.  The moves of one phase run as one plan (plan.h). */
struct arrange_step {
	uint32_t member, phase;
	struct place_rect at;
};

/* Moves of several partitions under way.  The engine frees it at their end. */
struct arrangement {
	uint32_t count, steps, next, done_count;
	struct arrange_member member[HAL_POLICY_MOVES];
	struct arrange_step step[ARRANGE_STEPS];
	/* Moves that are over, in order, with the place that the member has left. */
	struct arrange_step done[ARRANGE_STEPS];
	bool back; /* a move has failed: members return to their old places */
	int err;   /* first failure, and its text */
	char why[256];
	struct hal_point point; /* reached when all have moved */
};

/* Begin to move a->member[0..a->count).  The caller has set .part and .desc of each; no
 * partition is named twice.  After 0 the engine owns a, *done is its .point.  Return
 * -errno with nothing changed; the caller then frees a. */
int arrange_begin(struct hal_device *dev, struct arrangement *a, struct hal_point *done);

#endif
