/* SPDX-License-Identifier: Apache-2.0 */
/* lower_move.h - operators that only move elements. */
#ifndef NPUC_LOWER_MOVE_H
#define NPUC_LOWER_MOVE_H

#include "lower.h"

#define MOVE_DIMS (2 * NPUC_RANK + 1) /* the last: the bytes of an element */

/* One direction: so many elements, and how far it is from one to the next. */
struct move_dim {
	uint64_t size;
	int64_t a, d;
};

/* Elements of a that become elements of d, each of those once; counted from a_at and d_at
 * on. */
struct move {
	uint32_t count;
	struct move_dim dim[MOVE_DIMS];
	int64_t a_at, d_at;
};

void move_add(struct move *m, uint64_t size, int64_t a, int64_t d);
/* From d to a. */
void move_swap(struct move *m);

/* An operand or a result of any type and quantization: what is moved need not be a number
 * for the machine.  Where all operands are constant, so is the result, and lower_move
 * does its work at once. */
int lower_moved(struct lowered *l, uint32_t number, uint32_t *tensor);
int lower_moved_result(struct lowered *l, uint32_t number, uint32_t a, uint32_t *tensor);
/* The same for a result that the machine makes of whatever operands. */
int lower_plain_result(struct lowered *l, uint32_t number, uint32_t a, uint32_t *tensor);
/* Values of elements of so many bytes; the whole of a to the whole of d in one piece
 * shares the place. */
int lower_move(struct lowered *l, uint32_t a, uint32_t d, uint32_t element,
	       const struct move *m);

/* All elements of a value, of so many bytes each, as 8 or 16 bits. */
int lower_fill(struct lowered *l, uint32_t d, uint32_t element, int32_t number);

/* First operand and only result, and how far their elements are apart. */
struct move_pair {
	uint32_t a, d;
	const struct npuc_tensor *x, *y;
	uint32_t element;
	int64_t a_step[NPUC_RANK], d_step[NPUC_RANK];
};

int move_pair_of(struct lowered *l, uint32_t operand, struct move_pair *p);
/* The same of two operands, of which the second is constant numbers: so many for each of
 * the first's dimensions, or 0: any. */
int move_pair_with(struct lowered *l, struct move_pair *p, uint32_t each,
		   const int32_t **numbers, uint32_t *count);

/* Elements that dimensions from up to to take together. */
uint64_t move_product(const struct npuc_tensor *t, uint32_t from, uint32_t to);
/* An axis, which may count from the end. */
int move_axis(struct lowered *l, int32_t wanted, uint32_t rank, uint32_t *axis);
/* Where quantization counts there is one scale, or none. */
int move_one_scale(struct lowered *l, uint32_t tensor);
int move_same_quant(struct lowered *l, uint32_t a, uint32_t d);

/* lower_move.c */
int lower_reshape(struct lowered *l); /* SQUEEZE, EXPAND_DIMS */
int lower_densify(struct lowered *l);
int lower_transpose(struct lowered *l);
int lower_tile(struct lowered *l);
int lower_reverse(struct lowered *l);
int lower_broadcast(struct lowered *l);
/* lower_block.c */
int lower_space_to_depth(struct lowered *l); /* DEPTH_TO_SPACE */
int lower_space_to_batch(struct lowered *l); /* BATCH_TO_SPACE_ND */
/* lower_part.c */
int lower_concat(struct lowered *l);
int lower_pack(struct lowered *l);
int lower_unpack(struct lowered *l);
int lower_split(struct lowered *l); /* SPLIT_V */
int lower_slice(struct lowered *l);
int lower_strided_slice(struct lowered *l);
/* lower_pick.c */
int lower_gather(struct lowered *l);
int lower_resize_nearest(struct lowered *l);
int lower_mirror_pad(struct lowered *l);

#endif
