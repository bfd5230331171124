/* SPDX-License-Identifier: Apache-2.0 */
/* work.h - random machines, maps and programs, for benches. */
#ifndef WORK_H
#define WORK_H

#include "rig.h"

#define WORK_SPACE (1u << 21) /* bytes of a slot's space */
#define WORK_ROOM  (1u << 18) /* the most that one descriptor's operands take */

/* Any operation, with operands in slot s's space; array: GEMM and CONV, too. */
void work_desc(struct rig *r, uint32_t s, uint32_t desc[16], bool array, struct rng *g);
/* One of the array's for a rectangle of cols columns: many tiles that are over soon. */
void work_tiny(struct rig *r, uint32_t s, uint32_t cols, uint32_t desc[16],
	       struct rng *g);
/* A GEMM whose K is cut. */
void work_cut(struct rig *r, uint32_t s, uint32_t desc[16], struct rng *g);
/* Has descs[count], if it is the array's, read what the one before it, or the one before
 * that, writes: as input, as weights, or as a table of biases for int32 outputs. */
void work_connect(uint32_t (*descs)[16], uint32_t count, struct rng *g);
struct rig_memory work_memory(const struct rig *r, struct rng *g);
/* Slots side by side, each anywhere in its strip; one in eight has no PE. */
void work_map(const struct rig *r, struct rig_rect *rects, uint32_t *slots,
	      struct rng *g);

#endif
