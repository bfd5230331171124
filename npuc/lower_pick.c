/* SPDX-License-Identifier: Apache-2.0 */
/* lower_pick.c - elements along an axis by their numbers. */
#include <errno.h>
#include <math.h>

#include "lower_move.h"

/* Kinds of union BuiltinOptions, and fields of their tables. */
enum {
	OPTIONS_GATHER = 23,
	GATHER_AXIS = 0,
	GATHER_BATCH_DIMS = 1,
	OPTIONS_RESIZE_NEAREST = 74,
	RESIZE_ALIGN_CORNERS = 0,
	RESIZE_HALF_PIXELS = 1,
	OPTIONS_MIRROR_PAD = 77,
	MIRROR_PAD_MODE = 0, /* 0 without the border itself, 1 with it */
};

#define PICKED_MAX 65536u /* elements along the axis of a GATHER or RESIZE */

/* ---- picking ---------------------------------------------------------------------- */

/* d[outer][n][inner] = a[outer][index[n]][inner] */
struct pick {
	uint32_t a, d, element;
	uint64_t outer, in, inner;
	const uint32_t *index;
	uint32_t n;
	int64_t a_at, d_at;
};

/* The shortest period after which the indices go on as they began, each advance later. */
static uint32_t period_of(const struct pick *p, int64_t *advance)
{
	for (uint32_t f = 1; f < p->n; f++) {
		uint32_t i = f;

		if (p->n % f)
			continue;
		*advance = (int64_t)p->index[f] - p->index[0];
		while (i < p->n && p->index[i] == p->index[i - f] + *advance)
			i++;
		if (i == p->n)
			return f;
	}
	*advance = 0;
	return p->n;
}

static int pick(struct lowered *l, const struct pick *p)
{
	int64_t advance, inner = (int64_t)p->inner;
	uint32_t f = period_of(p, &advance), run;
	int rc = 0;

	for (uint32_t i = 0; !rc && i < f; i += run) {
		int64_t step = i + 1 < f ? (int64_t)p->index[i + 1] - p->index[i] : 0;
		struct move m = {.a_at = p->a_at + p->index[i] * inner,
				 .d_at = p->d_at + i * inner};

		for (run = 1; i + run < f; run++)
			if ((int64_t)p->index[i + run] - p->index[i + run - 1] != step)
				break;
		move_add(&m, p->outer, (int64_t)p->in * inner, p->n * inner);
		move_add(&m, p->n / f, advance * inner, f * inner);
		move_add(&m, run, step * inner, inner);
		move_add(&m, p->inner, 1, 1);
		rc = lower_move(l, p->a, p->d, p->element, &m);
	}
	return rc;
}

static int gather_dims(struct lowered *l, const struct move_pair *p, uint32_t axis,
		       uint32_t batch)
{
	const struct npuc_tensor *at = lower_t(l, lower_op(l)->inputs[1]);
	uint32_t dims[3 * NPUC_RANK], rank = 0;

	for (uint32_t i = 0; i < batch; i++)
		if (at->dims[i] != p->x->dims[i])
			return lower_fail(l, EINVAL,
					  "dimension %u: sizes %d and %d differ", i,
					  p->x->dims[i], at->dims[i]);
	for (uint32_t i = 0; i < axis; i++)
		dims[rank++] = (uint32_t)p->x->dims[i];
	for (uint32_t i = batch; i < at->rank; i++)
		dims[rank++] = (uint32_t)at->dims[i];
	for (uint32_t i = axis + 1; i < p->x->rank; i++)
		dims[rank++] = (uint32_t)p->x->dims[i];
	return lower_dims(l, p->d, rank, dims);
}

static int gather_indices(struct lowered *l, int64_t size, const uint32_t **index,
			  uint32_t *count)
{
	const int32_t *given;
	uint32_t *copy;
	int rc = lower_ints(l, 1, false, 0, &given, count);

	if (rc)
		return rc;
	copy = lower_own(l, (uint64_t)*count * sizeof(*copy));
	if (!copy)
		return -ENOMEM;
	for (uint32_t i = 0; i < *count; i++) {
		if (given[i] < 0 || given[i] >= size)
			return lower_fail(l, EINVAL,
					  "index %d is outside the %lld elements",
					  given[i], (long long)size);
		copy[i] = (uint32_t)given[i];
	}
	*index = copy;
	return 0;
}

int lower_gather(struct lowered *l)
{
	int32_t wanted = lower_option(l, OPTIONS_GATHER, GATHER_AXIS, 0);
	int32_t batch_dims = lower_option(l, OPTIONS_GATHER, GATHER_BATCH_DIMS, 0);
	uint32_t axis = 0, count = 0, batch;
	const uint32_t *index = NULL;
	uint64_t batches;
	struct pick k;
	struct move_pair p;
	int rc = lower_counts(l, 2, 2);

	if (!rc)
		rc = move_pair_of(l, 0, &p);
	if (!rc)
		rc = move_axis(l, wanted, p.x->rank, &axis);
	if (!rc)
		rc = gather_indices(l, p.x->dims[axis], &index, &count);
	if (rc)
		return rc;
	if (batch_dims < 0)
		batch_dims += (int32_t)lower_t(l, lower_op(l)->inputs[1])->rank;
	if (batch_dims < 0 || (uint32_t)batch_dims > axis ||
	    (uint32_t)batch_dims > lower_t(l, lower_op(l)->inputs[1])->rank)
		return lower_fail(l, EINVAL,
				  "%d batch dimensions are invalid with axis %u",
				  batch_dims, axis);
	batch = (uint32_t)batch_dims;
	rc = gather_dims(l, &p, axis, batch);
	batches = move_product(p.x, 0, batch);
	if (!rc && (count > PICKED_MAX || batches > PICKED_MAX))
		rc = lower_fail(l, ENOTSUP, "%u indices; at most %u are supported", count,
				PICKED_MAX);
	if (rc || !count)
		return rc;
	k = (struct pick){
		.a = p.a,
		.d = p.d,
		.element = p.element,
		.outer = move_product(p.x, batch, axis),
		.in = (uint64_t)p.x->dims[axis],
		.inner = move_product(p.x, axis + 1, p.x->rank),
		.index = index,
		.n = (uint32_t)(count / batches),
	};
	for (uint64_t i = 0; !rc && i < batches; i++) {
		k.index = index + i * k.n;
		k.a_at = (int64_t)(i * k.outer * k.in * k.inner);
		k.d_at = (int64_t)(i * k.outer * k.n * k.inner);
		rc = pick(l, &k);
	}
	return rc;
}

/* Which pixel of in becomes each of out, in float as TensorFlow Lite has it. */
static uint32_t *nearest(struct lowered *l, uint32_t in, uint32_t out, bool align,
			 bool half)
{
	float scale = align && out > 1 ? (float)(in - 1) / (float)(out - 1)
				       : (float)in / (float)out;
	float offset = half ? 0.5f : 0.0f;
	uint32_t *index = lower_own(l, (uint64_t)out * sizeof(*index));

	for (uint32_t i = 0; index && i < out; i++) {
		const float at = ((float)i + offset) * scale;
		const float whole = align ? roundf(at) : floorf(at);

		index[i] = whole < (float)(in - 1) ? (uint32_t)whole : in - 1;
	}
	return index;
}

/* Columns first, then rows. */
int lower_resize_nearest(struct lowered *l)
{
	bool align = lower_option_u8(l, OPTIONS_RESIZE_NEAREST, RESIZE_ALIGN_CORNERS);
	bool half = lower_option_u8(l, OPTIONS_RESIZE_NEAREST, RESIZE_HALF_PIXELS);
	const int32_t *to;
	struct pick cols, rows;
	struct move_pair p;
	uint32_t wide;
	int rc = lower_counts(l, 2, 2);

	if (!rc)
		rc = move_pair_of(l, 0, &p);
	if (!rc)
		rc = lower_ints(l, 1, false, 2, &to, NULL);
	if (rc)
		return rc;
	if (p.x->rank != 4 || !p.x->count)
		return lower_fail(l, EINVAL,
				  "tensor '%.80s' has %u dimensions instead of 4",
				  p.x->name, p.x->rank);
	if (to[0] < 1 || to[1] < 1 || to[0] > (int32_t)PICKED_MAX ||
	    to[1] > (int32_t)PICKED_MAX)
		return lower_fail(l, EINVAL, "a size of %d x %d; 1 to %u is supported",
				  to[0], to[1], PICKED_MAX);
	rc = lower_dims(l, p.d, 4,
			(uint32_t[]){(uint32_t)p.x->dims[0], (uint32_t)to[0],
				     (uint32_t)to[1], (uint32_t)p.x->dims[3]});
	if (!rc)
		rc = lower_value(l,
				 move_product(p.x, 0, 2) * (uint64_t)to[1] *
					 (uint64_t)p.x->dims[3] * p.element,
				 NULL, &wide);
	if (!rc && l->values[p.d].made)
		rc = lower_made(l, wide);
	if (rc)
		return rc;
	cols = (struct pick){
		.a = p.a,
		.d = wide,
		.element = p.element,
		.outer = move_product(p.x, 0, 2),
		.in = (uint64_t)p.x->dims[2],
		.inner = (uint64_t)p.x->dims[3],
		.index = nearest(l, (uint32_t)p.x->dims[2], (uint32_t)to[1], align, half),
		.n = (uint32_t)to[1],
	};
	rows = (struct pick){
		.a = wide,
		.d = p.d,
		.element = p.element,
		.outer = (uint64_t)p.x->dims[0],
		.in = (uint64_t)p.x->dims[1],
		.inner = (uint64_t)to[1] * (uint64_t)p.x->dims[3],
		.index = nearest(l, (uint32_t)p.x->dims[1], (uint32_t)to[0], align, half),
		.n = (uint32_t)to[0],
	};
	if (!cols.index || !rows.index)
		return -ENOMEM;
	rc = pick(l, &cols);
	return rc ? rc : pick(l, &rows);
}

/* Elements before -1, and behind the last one, are those as far from the border inside.
 */
static uint32_t *mirrored(struct lowered *l, uint32_t in, const int32_t *pads,
			  int32_t edge)
{
	uint32_t n = in + (uint32_t)pads[0] + (uint32_t)pads[1];
	uint32_t *index = lower_own(l, (uint64_t)n * sizeof(*index));

	for (uint32_t i = 0; index && i < n; i++) {
		int64_t at = (int64_t)i - pads[0], far = at - in;

		if (at < 0)
			at = -at - edge;
		else if (far >= 0)
			at = (int64_t)in - 2 - far + edge;
		index[i] = (uint32_t)at;
	}
	return index;
}

static int mirror_dims(struct lowered *l, const struct move_pair *p, const int32_t *pads,
		       int32_t edge)
{
	uint32_t dims[NPUC_RANK];

	for (uint32_t i = 0; i < p->x->rank; i++) {
		const int32_t *pair = pads + (size_t)2 * i;
		int32_t most = p->x->dims[i] - 1 + edge;

		if (pair[0] < 0 || pair[1] < 0 || pair[0] > most || pair[1] > most)
			return lower_fail(l, EINVAL,
					  "paddings %d and %d of dimension %u; they must "
					  "be at most %d",
					  pair[0], pair[1], i, most);
		dims[i] = (uint32_t)p->x->dims[i] + (uint32_t)pair[0] + (uint32_t)pair[1];
		if (dims[i] > PICKED_MAX)
			return lower_fail(
				l, ENOTSUP,
				"dimension %u becomes %u; at most %u is supported", i,
				dims[i], PICKED_MAX);
	}
	return lower_dims(l, p->d, p->x->rank, dims);
}

/* One dimension after the other, the last first. */
int lower_mirror_pad(struct lowered *l)
{
	int32_t edge = (int32_t)lower_option_u8(l, OPTIONS_MIRROR_PAD, MIRROR_PAD_MODE);
	uint64_t inner = 1;
	const int32_t *pads;
	struct move_pair p;
	uint32_t a;
	int rc = move_pair_with(l, &p, 2, &pads, NULL);

	if (!rc && edge > 1)
		rc = lower_fail(l, ENOTSUP,
				"mode %d is unknown; 0 is REFLECT, 1 is SYMMETRIC", edge);
	if (!rc)
		rc = move_same_quant(l, p.a, p.d);
	if (!rc)
		rc = mirror_dims(l, &p, pads, edge);
	if (rc)
		return rc;
	a = p.a;
	for (uint32_t i = p.x->rank; !rc && i--;) {
		uint64_t outer = move_product(p.x, 0, i);
		uint32_t in = (uint32_t)p.x->dims[i], n = (uint32_t)p.y->dims[i], d = p.d;
		struct pick k = {.a = a,
				 .element = p.element,
				 .outer = outer,
				 .in = in,
				 .inner = inner,
				 .n = n};

		if (i)
			rc = lower_value(l, outer * n * inner * p.element, NULL, &d);
		if (!rc && i && l->values[p.d].made)
			rc = lower_made(l, d);
		k.d = d;
		k.index = rc ? NULL : mirrored(l, in, pads + (size_t)2 * i, edge);
		if (!k.index)
			return rc ? rc : -ENOMEM;
		rc = pick(l, &k);
		inner *= n;
		a = d;
	}
	return rc || p.x->rank ? rc
			       : lower_move(l, p.a, p.d, p.element, &(struct move){0});
}
