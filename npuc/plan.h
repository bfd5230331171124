/* SPDX-License-Identifier: Apache-2.0 */
/* plan.h - where activations lie: things that live at the same time never overlap. */
#ifndef NPUC_PLAN_H
#define NPUC_PLAN_H

#include <stdint.h>

#define NPUC_ALIGN 64u /* of every tensor: a line of the NPU's memory */

struct plan_item {
	uint64_t bytes;
	uint32_t first, last; /* steps in which it is in use, both included */
	uint64_t offset;      /* out: a multiple of NPUC_ALIGN */
};

/* Greedy by size (Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net
 * Inference", 2020): the largest first, each in the smallest gap left by those already
 * placed whose lives meet its own.  *peak: bytes from 0 that are used.  -ENOMEM. */
int npuc_plan(struct plan_item *items, uint32_t count, uint64_t *peak);

#endif
