/* SPDX-License-Identifier: Apache-2.0 */
/* lower_block.c - blocks of pixels that become channels or images, and back. */
#include <errno.h>

#include "lower_move.h"

/* Kinds of union BuiltinOptions, and fields of their tables. */
enum {
	OPTIONS_SPACE_TO_DEPTH = 19,
	OPTIONS_DEPTH_TO_SPACE = 94,
	SPACE_BLOCK = 0,
};

/* Settle the result's open sizes. */
static int space_open(struct lowered *l, const struct move_pair *p, bool depth, int64_t b)
{
	const int32_t *in = p->x->dims;
	int64_t size[] = {in[0], depth ? in[1] * b : in[1] / b,
			  depth ? in[2] * b : in[2] / b,
			  depth ? in[3] / (b * b) : in[3] * b * b};
	uint32_t dims[4];

	for (uint32_t i = 0; i < 4; i++) {
		if (size[i] > INT32_MAX)
			return 0;
		dims[i] = (uint32_t)size[i];
	}
	return lower_open(l, p->d, 4, dims);
}

/* Blocks of size x size pixels are the channels of one, or become pixels again. */
int lower_space_to_depth(struct lowered *l)
{
	bool depth = lower_op(l)->code == NPUC_DEPTH_TO_SPACE;
	int32_t block =
		lower_option(l, depth ? OPTIONS_DEPTH_TO_SPACE : OPTIONS_SPACE_TO_DEPTH,
			     SPACE_BLOCK, 0);
	const struct npuc_tensor *fine, *coarse;
	struct move m = {0};
	struct move_pair p;
	int64_t row, b = block;
	int rc = lower_counts(l, 1, 1);

	if (!rc)
		rc = move_pair_of(l, 0, &p);
	if (rc)
		return rc;
	fine = depth ? p.y : p.x;
	coarse = depth ? p.x : p.y;
	if (p.x->rank == 4 && b >= 1 && b <= INT16_MAX)
		rc = space_open(l, &p, depth, b);
	if (rc)
		return rc;
	if (p.x->rank != 4 || p.y->rank != 4 || b < 1 || b > INT16_MAX ||
	    fine->dims[0] != coarse->dims[0] || fine->dims[1] != coarse->dims[1] * b ||
	    fine->dims[2] != coarse->dims[2] * b ||
	    fine->dims[3] * b * b != coarse->dims[3])
		return lower_fail(l, EINVAL, "the shapes do not match blocks of %d x %d",
				  block, block);
	row = (int64_t)b * fine->dims[3]; /* of a block: the same in both */
	move_add(&m, (uint64_t)(coarse->dims[0] * (int64_t)coarse->dims[1]),
		 row * b * coarse->dims[2], row * b * coarse->dims[2]);
	/* From the fine side's place to the coarse side's. */
	move_add(&m, (uint64_t)coarse->dims[2], row, row * b);
	move_add(&m, (uint64_t)b, row * coarse->dims[2], row);
	move_add(&m, (uint64_t)row, 1, 1);
	if (depth)
		move_swap(&m);
	return lower_move(l, p.a, p.d, p.element, &m);
}

/* ---- images ----------------------------------------------------------------------- */

/* Rows or columns: image block * i + in a block - offset of the whole is i of a part. */
struct block_axis {
	int64_t whole, part, block, offset;
};

/* The first element of a part that is in the whole, and how many are. */
static uint64_t block_range(const struct block_axis *x, int64_t in, int64_t *first)
{
	int64_t from = x->offset - in, end = x->whole + from;
	int64_t last = end > 0 ? (end - 1) / x->block + 1 : 0;

	*first = from > 0 ? (from + x->block - 1) / x->block : 0;
	if (last > x->part)
		last = x->part;
	return last > *first ? (uint64_t)(last - *first) : 0;
}

struct blocks {
	struct move_pair p;
	bool apart; /* SPACE_TO_BATCH_ND */
	int64_t images, c;
	struct block_axis y, x;
};

/* Paddings or crops, [before, after] each, and what sizes they lead to. */
static int block_axis(struct lowered *l, struct blocks *b, uint32_t dim,
		      const int32_t *block, const int32_t *margin, struct block_axis *x)
{
	int64_t a = b->p.x->dims[dim], d = b->p.y->dims[dim];

	*x = (struct block_axis){b->apart ? a : d, b->apart ? d : a, *block, margin[0]};
	if (*block < 1 || margin[0] < 0 || margin[1] < 0)
		return lower_fail(l, EINVAL,
				  "blocks of %d with margins %d and %d are invalid",
				  *block, margin[0], margin[1]);
	if (b->apart ? x->whole + margin[0] + margin[1] != x->part * *block
		     : x->part * *block - margin[0] - margin[1] != x->whole)
		return lower_fail(l, EINVAL,
				  "dimension %u: sizes %lld and %lld do not match blocks "
				  "of %d with margins %d and %d",
				  dim, (long long)a, (long long)d, *block, margin[0],
				  margin[1]);
	return 0;
}

/* Settle the result's open sizes; margins are paddings, or crops of what is joined. */
static int blocks_open(struct lowered *l, const struct blocks *b, const int32_t *block,
		       const int32_t *margins)
{
	const struct npuc_tensor *x = b->p.x;
	int64_t size[NPUC_RANK] = {x->dims[0]};
	uint32_t dims[NPUC_RANK];

	size[x->rank - 1] = x->dims[x->rank - 1];
	for (uint32_t i = 1; i + 1 < x->rank; i++) {
		int64_t n = block[i - 1], all;
		const int32_t *margin = margins + (size_t)2 * (i - 1);

		all = (int64_t)margin[0] + margin[1];
		if (n < 1 || n > INT16_MAX)
			return 0;
		size[i] = b->apart ? (x->dims[i] + all) / n : x->dims[i] * n - all;
		size[0] = b->apart ? size[0] * n : size[0] / n;
	}
	for (uint32_t i = 0; i < x->rank; i++) {
		if (size[i] < 0 || size[i] > INT32_MAX)
			return 0;
		dims[i] = (uint32_t)size[i];
	}
	return lower_open(l, b->p.d, x->rank, dims);
}

static int find_blocks(struct lowered *l, struct blocks *b)
{
	const struct npuc_tensor *x = b->p.x, *y = b->p.y;
	const int32_t *block, *margins;
	uint32_t n = x->rank - 2;
	int64_t few, many;
	int rc;

	if (x->rank < 3 || x->rank > 4 || y->rank != x->rank)
		return lower_fail(l, EINVAL, "%u dimensions; 3 or 4", x->rank);
	rc = lower_ints(l, 1, false, n, &block, NULL);
	if (!rc)
		rc = lower_ints(l, 2, false, (uint64_t)2 * n, &margins, NULL);
	b->x = (struct block_axis){1, 1, 1, 0};
	if (!rc)
		rc = blocks_open(l, b, block, margins);
	if (!rc)
		rc = block_axis(l, b, 1, block, margins, &b->y);
	if (!rc && n == 2)
		rc = block_axis(l, b, 2, block + 1, margins + 2, &b->x);
	if (rc)
		return rc;
	few = b->apart ? x->dims[0] : y->dims[0];
	many = b->apart ? y->dims[0] : x->dims[0];
	b->images = few;
	b->c = y->dims[x->rank - 1];
	if (x->dims[x->rank - 1] != b->c || b->y.block > INT16_MAX ||
	    b->x.block > INT16_MAX || many != few * b->y.block * b->x.block)
		return lower_fail(l, EINVAL,
				  "%d images cannot become %d in blocks of %lld x %lld",
				  x->dims[0], y->dims[0], (long long)b->y.block,
				  (long long)b->x.block);
	return 0;
}

/* Pixel y, x of all blocks: an image of its own for each of the whole ones. */
static int move_block(struct lowered *l, const struct blocks *b, int64_t y, int64_t x)
{
	int64_t c = b->c, row = b->x.whole * c, part_row = b->x.part * c, oy, ox;
	uint64_t rows = block_range(&b->y, y, &oy), cols = block_range(&b->x, x, &ox);
	struct move m = {0};

	m.a_at = (oy * b->y.block + y - b->y.offset) * row +
		 (ox * b->x.block + x - b->x.offset) * c;
	m.d_at = (y * b->x.block + x) * b->images * b->y.part * part_row + oy * part_row +
		 ox * c;
	move_add(&m, (uint64_t)b->images, b->y.whole * row, b->y.part * part_row);
	move_add(&m, rows, b->y.block * row, part_row);
	move_add(&m, cols, b->x.block * c, c);
	move_add(&m, (uint64_t)c, 1, 1);
	if (!b->apart)
		move_swap(&m);
	return lower_move(l, b->p.a, b->p.d, b->p.element, &m);
}

int lower_space_to_batch(struct lowered *l)
{
	struct blocks b = {.apart = lower_op(l)->code == NPUC_SPACE_TO_BATCH_ND};
	int rc = lower_counts(l, 3, 3);

	if (!rc)
		rc = move_pair_of(l, 0, &b.p);
	if (!rc)
		rc = move_same_quant(l, b.p.a, b.p.d);
	if (!rc)
		rc = find_blocks(l, &b);
	if (!rc && b.y.block * b.x.block > LOWER_PIECES_MAX)
		rc = lower_fail(l, ENOTSUP, "blocks of %lld x %lld are not supported",
				(long long)b.y.block, (long long)b.x.block);
	if (!rc && b.p.x->count < b.p.y->count)
		rc = lower_fill(l, b.p.d, b.p.element, b.p.y->zero_point);
	for (int64_t y = 0; !rc && y < b.y.block; y++)
		for (int64_t x = 0; !rc && x < b.x.block; x++)
			rc = move_block(l, &b, y, x);
	return rc;
}
