/* SPDX-License-Identifier: Apache-2.0 */
/* sparse.c - expands sparse tensors: TACO's formats, as TensorFlow Lite writes them. Each
 * dimension, and each dimension of blocks, is a level: dense, or with indices of those of
 * its elements that are there (compressed sparse rows). */
#include "sparse.h"

#include <stdlib.h>

#define LEVELS_MAX (2 * NPUC_RANK)

enum {
	SPARSITY_ORDER = 0,
	SPARSITY_BLOCK_MAP = 1,
	SPARSITY_DIMS = 2,
	DIM_FORMAT = 0, /* 0 dense, 1 with indices */
	DIM_SIZE = 1,
	DIM_SEGMENTS_TYPE = 2,
	DIM_SEGMENTS = 3,
	DIM_INDICES_TYPE = 4,
	DIM_INDICES = 5,
	VECTOR_VALUES = 0,
};

/* Whole numbers of one to four bytes. */
struct numbers {
	const uint8_t *at;
	uint32_t count, width;
};

struct level {
	bool dense;
	uint32_t size;                    /* of its dimension, or of a block */
	uint64_t step;                    /* elements of the whole tensor */
	struct numbers segments, indices; /* unless dense */
};

struct sparse {
	uint32_t count; /* of levels */
	struct level level[LEVELS_MAX];
	const uint8_t *elements;
	uint64_t size, used;
	uint64_t visits; /* that are left */
	uint8_t *dense;
};

static uint32_t number(struct numbers n, uint32_t i)
{
	uint32_t x = 0;

	for (uint32_t k = 0; k < n.width; k++)
		x |= (uint32_t)n.at[(size_t)i * n.width + k] << 8 * k;
	return x;
}

/* A union of vectors of int32, uint16 and uint8. */
static struct numbers read_numbers(struct flat *f, struct flat_table dim, uint32_t type,
				   uint32_t field)
{
	static const uint32_t widths[] = {0, 4, 2, 1};
	uint32_t kind = flat_u8(f, dim, type, 0), width = kind < 4 ? widths[kind] : 0;
	struct flat_vector v = {0};

	if (width)
		v = flat_vector(f, flat_sub(f, dim, field), VECTOR_VALUES, width);
	return (struct numbers){f->data + v.at, v.count, width};
}

static bool read_level(struct flat *f, struct flat_vector dims, uint32_t i,
		       struct level *level)
{
	struct flat_table dim = flat_vector_table(f, dims, i);

	level->dense = flat_u8(f, dim, DIM_FORMAT, 0) == 0;
	if (level->dense)
		return !f->bad && (uint32_t)flat_i32(f, dim, DIM_SIZE, 0) == level->size;
	level->segments = read_numbers(f, dim, DIM_SEGMENTS_TYPE, DIM_SEGMENTS);
	level->indices = read_numbers(f, dim, DIM_INDICES_TYPE, DIM_INDICES);
	return !f->bad && level->segments.count > 1;
}

/* What each level's size is and how far its elements are apart, from the order in which
 * they go; blocks split their dimension. */
static bool shape_levels(struct flat *f, struct flat_vector order,
			 struct flat_vector blocks, struct flat_vector dims,
			 const struct npuc_tensor *t, struct sparse *s)
{
	uint32_t seen = 0, block_of[NPUC_RANK] = {0};
	uint64_t step[NPUC_RANK], n = 1;

	for (uint32_t i = t->rank; i--;) {
		step[i] = n;
		n *= (uint32_t)t->dims[i];
	}
	/* Blocks come last; their sizes are those of their levels, which are dense. */
	for (uint32_t i = 0; i < s->count; i++) {
		uint32_t at = (uint32_t)flat_vector_i32(f, order, i), dim;
		struct level *level = &s->level[i];

		if (at >= s->count || seen >> at & 1 || (at < t->rank) != (i < t->rank))
			return false;
		seen |= 1u << at;
		if (at < t->rank)
			continue;
		dim = (uint32_t)flat_vector_i32(f, blocks, at - t->rank);
		level->size =
			(uint32_t)flat_i32(f, flat_vector_table(f, dims, i), DIM_SIZE, 0);
		if (f->bad || dim >= t->rank || block_of[dim] || !level->size ||
		    (uint32_t)t->dims[dim] % level->size)
			return false;
		block_of[dim] = level->size;
		level->step = step[dim];
	}
	for (uint32_t i = 0; i < t->rank; i++) {
		uint32_t dim = (uint32_t)flat_vector_i32(f, order, i);
		uint32_t block = block_of[dim] ? block_of[dim] : 1;

		s->level[i].size = (uint32_t)t->dims[dim] / block;
		s->level[i].step = step[dim] * block;
	}
	return true;
}

/* NOLINTBEGIN(misc-no-recursion): as deep as LEVELS_MAX */
/* Put the elements from a level on; before: which of the level's segments. */
static bool expand(struct sparse *s, uint32_t at, uint64_t before, uint64_t place)
{
	const struct level *level = &s->level[at];
	uint64_t from = before * level->size, to = from + level->size;

	if (at == s->count) {
		if (s->used == s->size)
			return false;
		s->dense[place] = s->elements[s->used++];
		return true;
	}
	if (!level->dense) {
		if (before + 1 >= level->segments.count)
			return false;
		from = number(level->segments, (uint32_t)before);
		to = number(level->segments, (uint32_t)before + 1);
		if (from > to || to > level->indices.count)
			return false;
	}
	for (uint64_t i = from; i < to; i++) {
		uint64_t index =
			level->dense ? i - from : number(level->indices, (uint32_t)i);

		if (index >= level->size || !s->visits--)
			return false;
		if (!expand(s, at + 1, i, place + index * level->step))
			return false;
	}
	return true;
}

/* NOLINTEND(misc-no-recursion) */

const char *npuc_expand(struct flat *f, struct flat_table sparsity,
			const struct npuc_tensor *t, const uint8_t *elements,
			uint64_t size, uint8_t **dense)
{
	static const char wrong[] = "its sparsity does not describe its shape";
	struct flat_vector order = flat_vector(f, sparsity, SPARSITY_ORDER, 4);
	struct flat_vector blocks = flat_vector(f, sparsity, SPARSITY_BLOCK_MAP, 4);
	struct flat_vector dims = flat_vector(f, sparsity, SPARSITY_DIMS, 4);
	struct sparse s = {.count = order.count, .elements = elements, .size = size};

	if (f->bad || blocks.count > NPUC_RANK || order.count != t->rank + blocks.count ||
	    dims.count != order.count || !shape_levels(f, order, blocks, dims, t, &s))
		return wrong;
	for (uint32_t i = 0; i < s.count; i++)
		if (!read_level(f, dims, i, &s.level[i]))
			return wrong;
	s.dense = calloc(1, t->count + 1);
	if (!s.dense)
		return "out of memory";
	/* No level has more than all elements. */
	s.visits = (t->count + 1) * (s.count + 1);
	if (!expand(&s, 0, 0, 0) || s.used != size) {
		free(s.dense);
		return "its sparsity does not describe its elements";
	}
	*dense = s.dense;
	return NULL;
}
