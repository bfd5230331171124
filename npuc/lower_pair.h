/* SPDX-License-Identifier: Apache-2.0 */
/* lower_pair.h - steps of two operands, element by element, whose shapes broadcast. */
#ifndef NPUC_LOWER_PAIR_H
#define NPUC_LOWER_PAIR_H

#include "lower.h"

/* The result's dimensions without those of 1, neighbours merged that behave alike; each
 * operand moves along one or repeats. */
struct pair {
	uint32_t count;
	struct {
		uint32_t size;
		bool moves[2];
	} dim[NPUC_RANK + 1];
};

/* Once more inside, a dimension along which a or b or both move. */
void pair_dim(struct pair *s, uint32_t size, bool a, bool b);
/* Operands a and b and result d of the operator in work, in v; all of one type. */
int pair_operands(struct lowered *l, struct pair *s, uint32_t v[3]);
/* An operand that repeats along the last dimension is spread: v[0] or v[1] is another
 * value then, and s says so. */
int pair_expand(struct lowered *l, struct pair *s, uint32_t v[3]);
/* Steps v[2] = op(v[0], v[1]); op without sizes, places and what repeats.  Operands must
 * move along the last dimension. */
int pair_add(struct lowered *l, const struct pair *s, const uint32_t v[3],
	     const struct hal_npu_add *op);
int pair_mul(struct lowered *l, const struct pair *s, const uint32_t v[3],
	     const struct hal_npu_mul *op);
/* a + b, or a - b, no rescaling: zero points as given, clamped to min and max. */
struct hal_npu_add pair_sum(int32_t a_zero, int32_t b_zero, int32_t d_zero, int32_t min,
			    int32_t max, uint32_t flags);
struct hal_npu_add pair_difference(int32_t d_zero, int32_t min, int32_t max,
				   uint32_t flags);
/* Of rows of bytes: what each is below its row's largest, uint8 (lower_reduce.c). */
int pair_below_largest(struct lowered *l, uint32_t a, uint32_t rows, uint32_t cols,
		       bool u8, uint32_t *d);

#endif
