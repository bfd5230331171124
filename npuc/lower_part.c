/* SPDX-License-Identifier: Apache-2.0 */
/* lower_part.c - parts of a tensor, and tensors put together. */
#include <errno.h>
#include <math.h>

#include "lower_move.h"

/* Kinds of union BuiltinOptions, and fields of their tables. */
enum {
	OPTIONS_CONCATENATION = 10,
	CONCATENATION_AXIS = 0,
	CONCATENATION_ACT = 1,
	OPTIONS_STRIDED_SLICE = 32,
	STRIDED_SLICE_BEGIN = 0,
	STRIDED_SLICE_END = 1,
	STRIDED_SLICE_ELLIPSIS = 2,
	STRIDED_SLICE_NEW_AXIS = 3,
	STRIDED_SLICE_SHRINK = 4,
	STRIDED_SLICE_OFFSET = 5,
	OPTIONS_PACK = 59,
	OPTIONS_UNPACK = 64,
	PACK_AXIS = 1, /* of both */
};

/* ---- concatenation ---------------------------------------------------------------- */

/* uint8 alone may be requantized.  In float, as TensorFlow Lite has it. */
static int concat_table(struct lowered *l, uint32_t a, uint32_t d, uint8_t table[256])
{
	const struct npuc_tensor *x = lower_t(l, a), *y = lower_t(l, d);
	const float inverse = 1.0f / y->scale;
	const float scale = x->scale * inverse;
	const float bias = (float)-x->zero_point * scale;

	for (uint32_t i = 0; i < 256; i++) {
		const float scaled = (float)i * scale;
		const float level = roundf(scaled + bias);

		if (!(level > -2147483648.0f && level < 2147483648.0f))
			return lower_fail(l, ENOTSUP,
					  "scale %g of tensor '%.80s' cannot become the "
					  "result's scale of %g",
					  (double)x->scale, x->name, (double)y->scale);
		int64_t q = (int64_t)level + y->zero_point;

		table[i] = (uint8_t)(q < 0 ? 0 : q > 255 ? 255 : q);
	}
	return 0;
}

/* *part becomes a value with the result's quantization. */
static int concat_requant(struct lowered *l, uint32_t *part, uint32_t d)
{
	uint64_t count = lower_t(l, *part)->count;
	uint8_t *table = lower_own(l, 256);
	uint32_t v = 0;
	int rc = table ? concat_table(l, *part, d, table) : -ENOMEM;

	if (!rc)
		rc = lower_value(l, count, NULL, &v);
	if (rc)
		return rc;
	rc = l->values[d].made ? lower_made(l, v) : lower_lut(l, *part, v, count, table);
	for (uint64_t i = 0; !rc && l->values[d].made && i < count; i++)
		l->values[v].made[i] = table[((const uint8_t *)l->values[*part].data)[i]];
	*part = v;
	return rc;
}

static int concat_check(struct lowered *l, uint32_t number, uint32_t d, uint32_t axis,
			uint64_t *along)
{
	const struct npuc_tensor *out = lower_t(l, d), *t;
	uint32_t dims[NPUC_RANK] = {0}, a;
	int rc = lower_moved(l, number, &a);

	if (!rc)
		rc = lower_same_type(l, a, d);
	if (!rc && out->type != NPUC_UINT8)
		rc = move_same_quant(l, a, d);
	if (!rc)
		rc = move_one_scale(l, a);
	if (!rc)
		rc = move_one_scale(l, d);
	if (rc)
		return rc;
	t = lower_t(l, a);
	for (uint32_t k = 0; k < out->rank; k++)
		dims[k] = (uint32_t)(k == axis && t->rank == out->rank ? t->dims[k]
								       : out->dims[k]);
	*along += dims[axis];
	return lower_dims(l, a, out->rank, dims);
}

/* Settle the result's open sizes: the operands' along the axis, else the first one's. */
static int concat_open(struct lowered *l, const struct move_pair *p, uint32_t axis)
{
	const struct model_op *op = lower_op(l);
	uint32_t dims[NPUC_RANK] = {0};

	if (p->x->rank != p->y->rank)
		return 0;
	for (uint32_t i = 0; i < p->x->rank; i++)
		dims[i] = (uint32_t)p->x->dims[i];
	for (uint32_t i = 1; i < op->input_count; i++) {
		const struct npuc_tensor *t =
			op->inputs[i] == NPUC_NONE ? NULL : lower_t(l, op->inputs[i]);

		if (t && t->rank == p->x->rank)
			dims[axis] += (uint32_t)t->dims[axis];
	}
	return lower_open(l, p->d, p->x->rank, dims);
}

int lower_concat(struct lowered *l)
{
	const struct model_op *op = lower_op(l);
	int32_t wanted = lower_option(l, OPTIONS_CONCATENATION, CONCATENATION_AXIS, 0);
	uint64_t along = 0, outer, row, at = 0;
	struct move_pair p;
	uint32_t axis = 0;
	int rc = move_pair_of(l, 0, &p);

	if (!rc)
		rc = move_axis(l, wanted, p.y->rank, &axis);
	if (!rc)
		rc = concat_open(l, &p, axis);
	if (rc)
		return rc;
	if (lower_option_u8(l, OPTIONS_CONCATENATION, CONCATENATION_ACT))
		return lower_fail(l, ENOTSUP, "a fused activation is not supported");
	outer = move_product(p.y, 0, axis);
	row = move_product(p.y, axis, p.y->rank);
	/* Every part is checked before the first is copied: a part made by this very
	 * layer would otherwise pass. */
	for (uint32_t i = 0; !rc && i < op->input_count; i++)
		rc = concat_check(l, i, p.d, axis, &along);
	if (!rc && along != (uint64_t)p.y->dims[axis])
		rc = lower_fail(l, EINVAL,
				"the operands have %llu elements along axis %u, but the "
				"result has %d",
				(unsigned long long)along, axis, p.y->dims[axis]);
	for (uint32_t i = 0; !rc && i < op->input_count; i++) {
		uint32_t a = op->inputs[i];
		const struct npuc_tensor *t = lower_t(l, a);
		uint64_t part = move_product(t, axis, t->rank);
		struct move m = {.d_at = (int64_t)at};

		if (t->scale != p.y->scale || t->zero_point != p.y->zero_point)
			rc = concat_requant(l, &a, p.d);
		move_add(&m, outer, (int64_t)part, (int64_t)row);
		move_add(&m, part, 1, 1);
		if (!rc)
			rc = lower_move(l, a, p.d, p.element, &m);
		at += part;
	}
	return rc;
}

/* Settle the result's open sizes: the first operand's, and how many there are. */
static int pack_open(struct lowered *l, const struct move_pair *p, uint32_t axis)
{
	uint32_t dims[NPUC_RANK] = {0};

	if (p->x->rank + 1 != p->y->rank)
		return 0;
	for (uint32_t i = 0; i < p->y->rank; i++)
		dims[i] = i == axis ? lower_op(l)->input_count
				    : (uint32_t)p->x->dims[i - (i > axis)];
	return lower_open(l, p->d, p->y->rank, dims);
}

int lower_pack(struct lowered *l)
{
	const struct model_op *op = lower_op(l);
	uint32_t n = op->input_count, dims[NPUC_RANK], axis = 0;
	struct move_pair p;
	int rc = move_pair_of(l, 0, &p);

	if (!rc)
		rc = move_axis(l, lower_option(l, OPTIONS_PACK, PACK_AXIS, 0), p.y->rank,
			       &axis);
	if (!rc)
		rc = pack_open(l, &p, axis);
	for (uint32_t i = 0, k = 0; !rc && i < p.y->rank; i++)
		if (i != axis)
			dims[k++] = (uint32_t)p.y->dims[i];
	for (uint32_t i = 0; !rc && i < n; i++) {
		uint32_t a;

		rc = lower_moved(l, i, &a);
		if (!rc)
			rc = lower_same_type(l, a, p.d);
		if (!rc)
			rc = move_same_quant(l, a, p.d);
		if (!rc)
			rc = lower_dims(l, a, p.y->rank - 1, dims);
	}
	if (!rc && n != (uint32_t)p.y->dims[axis])
		rc = lower_fail(l, EINVAL,
				"%u operands cannot become %d elements along axis %u", n,
				p.y->dims[axis], axis);
	for (uint32_t i = 0; !rc && i < n; i++) {
		int64_t inner = (int64_t)move_product(p.y, axis + 1, p.y->rank);
		struct move m = {.d_at = (int64_t)i * inner};

		move_add(&m, move_product(p.y, 0, axis), inner, inner * n);
		move_add(&m, (uint64_t)inner, 1, 1);
		rc = lower_move(l, op->inputs[i], p.d, p.element, &m);
	}
	return rc;
}

/* ---- parts ------------------------------------------------------------------------ */

/* Result number is size elements along the axis, from at on; without that dimension where
 * drop is set. */
static int part(struct lowered *l, uint32_t number, uint32_t a, uint32_t axis,
		uint32_t at, uint32_t size, bool drop)
{
	const struct npuc_tensor *x = lower_t(l, a);
	uint64_t inner = move_product(x, axis + 1, x->rank);
	struct move m = {.a_at = (int64_t)(at * inner)};
	uint32_t dims[NPUC_RANK], rank = 0, d;
	int rc = lower_moved_result(l, number, a, &d);

	for (uint32_t i = 0; i < x->rank; i++)
		if (i != axis || !drop)
			dims[rank++] = i == axis ? size : (uint32_t)x->dims[i];
	if (!rc && drop)
		rc = move_same_quant(l, a, d);
	if (!rc)
		rc = lower_dims(l, d, rank, dims);
	if (rc)
		return rc;
	if (!number)
		lower_describe(l, a, d);
	move_add(&m, move_product(x, 0, axis), (int64_t)(inner * (uint64_t)x->dims[axis]),
		 (int64_t)(inner * size));
	move_add(&m, inner * size, 1, 1);
	return lower_move(l, a, d, npuc_type_bytes(x->type), &m);
}

int lower_unpack(struct lowered *l)
{
	const struct model_op *op = lower_op(l);
	const struct npuc_tensor *x;
	uint32_t a, axis = 0;
	int rc = lower_counts(l, 1, 1);

	if (!rc)
		rc = lower_moved(l, 0, &a);
	if (rc)
		return rc;
	x = lower_t(l, a);
	rc = move_axis(l, lower_option(l, OPTIONS_UNPACK, PACK_AXIS, 0), x->rank, &axis);
	if (!rc && op->output_count != (uint32_t)x->dims[axis])
		rc = lower_fail(l, EINVAL, "%u outputs for %d elements along axis %u",
				op->output_count, x->dims[axis], axis);
	for (uint32_t i = 0; !rc && i < op->output_count; i++)
		rc = part(l, i, a, axis, i, 1, true);
	return rc;
}

/* SPLIT_V's sizes, of which one may be -1: the rest. */
static int split_sizes(struct lowered *l, const struct npuc_tensor *x, uint32_t axis,
		       const int32_t *given, uint32_t *sizes)
{
	uint32_t n = lower_op(l)->output_count, open = NPUC_NONE;
	int64_t rest = x->dims[axis];

	for (uint32_t i = 0; i < n; i++) {
		int64_t size = given ? given[i] : x->dims[axis] / (int32_t)n;

		if (size == -1 && open == NPUC_NONE)
			open = i;
		else if (size < 0)
			return lower_fail(l, EINVAL, "part %u has the invalid size %lld",
					  i, (long long)size);
		else
			rest -= size;
		sizes[i] = (uint32_t)size;
	}
	if (rest < 0 || (rest && open == NPUC_NONE))
		return lower_fail(
			l, EINVAL,
			"the sizes of %u parts do not add up to %d along axis %u", n,
			x->dims[axis], axis);
	if (open != NPUC_NONE)
		sizes[open] = (uint32_t)rest;
	return 0;
}

int lower_split(struct lowered *l)
{
	const struct model_op *op = lower_op(l);
	bool v = op->code == NPUC_SPLIT_V;
	const int32_t *axes, *given = NULL;
	uint32_t a, axis = 0, at = 0, *sizes;
	int rc = lower_counts(l, v ? 3 : 2, v ? 3 : 2);

	if (!rc && !op->output_count)
		rc = lower_fail(l, EINVAL, "it has no outputs");
	if (!rc)
		rc = lower_moved(l, v ? 0 : 1, &a);
	if (!rc)
		rc = lower_ints(l, v ? 2 : 0, false, 1, &axes, NULL);
	if (!rc && v)
		rc = lower_ints(l, 1, false, op->output_count, &given, NULL);
	if (!rc)
		rc = move_axis(l, axes[0], lower_t(l, a)->rank, &axis);
	if (rc)
		return rc;
	sizes = lower_own(l, (uint64_t)op->output_count * sizeof(*sizes));
	if (!sizes)
		return -ENOMEM;
	rc = split_sizes(l, lower_t(l, a), axis, given, sizes);
	for (uint32_t i = 0; !rc && i < op->output_count; i++) {
		rc = part(l, i, a, axis, at, sizes[i], false);
		at += sizes[i];
	}
	return rc;
}

int lower_slice(struct lowered *l)
{
	const int32_t *begin, *size;
	uint32_t dims[NPUC_RANK];
	struct move m = {0};
	struct move_pair p;
	int rc = lower_counts(l, 3, 3);

	if (!rc)
		rc = move_pair_of(l, 0, &p);
	if (!rc)
		rc = lower_ints(l, 1, false, p.x->rank, &begin, NULL);
	if (!rc)
		rc = lower_ints(l, 2, false, p.x->rank, &size, NULL);
	if (!rc)
		rc = lower_same_type(l, lower_op(l)->inputs[1], lower_op(l)->inputs[2]);
	if (rc)
		return rc;
	for (uint32_t i = 0; i < p.x->rank; i++) {
		int64_t n = size[i] == -1 ? (int64_t)p.x->dims[i] - begin[i] : size[i];

		if (begin[i] < 0 || n < 0 || begin[i] + n > p.x->dims[i])
			return lower_fail(
				l, EINVAL,
				"dimension %u: %d elements from %d on exceed the size %d",
				i, size[i], begin[i], p.x->dims[i]);
		dims[i] = (uint32_t)n;
		m.a_at += begin[i] * p.a_step[i];
	}
	rc = lower_dims(l, p.d, p.x->rank, dims);
	if (rc)
		return rc;
	for (uint32_t i = 0; i < p.x->rank; i++)
		move_add(&m, dims[i], p.a_step[i], p.d_step[i]);
	return lower_move(l, p.a, p.d, p.element, &m);
}

/* ---- strided slices --------------------------------------------------------------- */

/* What begin, end and strides say of one dimension. */
struct range {
	int32_t begin, end, stride;
	bool from_start, to_end, shrink;
};

static int64_t clamp(int64_t x, int64_t min, int64_t max)
{
	return x < min ? min : x > max ? max : x;
}

/* First element and how many of a dimension of n. */
static void resolve_range(const struct range *r, int64_t n, int64_t *first,
			  uint64_t *count)
{
	int64_t step = r->stride, low = step > 0 ? 0 : -1, high = step > 0 ? n : n - 1;
	int64_t begin = clamp(r->begin < 0 ? r->begin + n : r->begin, low, high);
	int64_t end = clamp(r->end < 0 ? r->end + n : r->end, low, high);

	if (r->from_start)
		begin = step > 0 ? 0 : n - 1;
	if (r->to_end)
		end = step > 0 ? n : -1;
	if (r->shrink)
		end = begin < n ? begin + (step > 0 ? 1 : -1) : begin;
	*first = begin;
	*count = 0;
	if (step > 0 && end > begin)
		*count = (uint64_t)((end - begin + step - 1) / step);
	if (step < 0 && end < begin)
		*count = (uint64_t)((begin - end - step - 1) / -step);
}

struct slicing {
	struct move_pair p;
	const int32_t *begin, *end, *strides;
	uint32_t given; /* elements of each */
	uint32_t mask[STRIDED_SLICE_OFFSET];
	struct move m;
	uint32_t dims[NPUC_RANK], rank; /* of the result */
	int64_t step[NPUC_RANK];        /* in the operand */
};

static bool masked(const struct slicing *s, uint32_t which, uint32_t bit)
{
	return bit < 32 && s->mask[which] >> bit & 1;
}

static int add_result_dim(struct lowered *l, struct slicing *s, uint64_t count,
			  int64_t step)
{
	if (s->rank == NPUC_RANK)
		return lower_fail(l, ENOTSUP, "more than %d dimensions are not supported",
				  NPUC_RANK);
	s->dims[s->rank] = (uint32_t)count;
	s->step[s->rank++] = step;
	return 0;
}

static int slice_dim(struct lowered *l, struct slicing *s, uint32_t dim,
		     const struct range *r)
{
	int64_t first;
	uint64_t count;

	if (!r->stride)
		return lower_fail(l, EINVAL, "dimension %u has stride 0", dim);
	resolve_range(r, s->p.x->dims[dim], &first, &count);
	if (r->shrink && (r->stride < 0 || count != 1 || first < 0))
		return lower_fail(l, EINVAL,
				  "element %d of dimension %u of size %d with stride %d "
				  "is not a valid single element",
				  r->begin, dim, s->p.x->dims[dim], r->stride);
	s->m.a_at += first * s->p.a_step[dim];
	return r->shrink ? 0
			 : add_result_dim(l, s, count,
					  (int64_t)r->stride * s->p.a_step[dim]);
}

static int whole_dim(struct lowered *l, struct slicing *s, uint32_t dim)
{
	return slice_dim(
		l, s, dim,
		&(struct range){.stride = 1, .from_start = true, .to_end = true});
}

/* Walks the specification: a new dimension, the dimensions that "..." stands for, or one.
 */
static int slice_dims(struct lowered *l, struct slicing *s)
{
	uint32_t dim = 0, after = 0;
	int rc = 0;

	for (uint32_t i = 0; i < s->given; i++)
		after += masked(s, STRIDED_SLICE_ELLIPSIS, i) ||
					 !masked(s, STRIDED_SLICE_NEW_AXIS, i)
				 ? 1
				 : 0;
	for (uint32_t i = 0; !rc && i < s->given; i++) {
		const struct range r = {
			s->begin[i],
			s->end[i],
			s->strides[i],
			masked(s, STRIDED_SLICE_BEGIN, i),
			masked(s, STRIDED_SLICE_END, i),
			masked(s, STRIDED_SLICE_SHRINK, i),
		};

		if (masked(s, STRIDED_SLICE_ELLIPSIS, i)) {
			after--;
			if (dim + after >= s->p.x->rank)
				return lower_fail(l, ENOTSUP,
						  "an ellipsis that stands for no "
						  "dimension is not supported");
			while (!rc && dim + after < s->p.x->rank)
				rc = whole_dim(l, s, dim++);
			continue;
		}
		if (masked(s, STRIDED_SLICE_NEW_AXIS, i)) {
			rc = add_result_dim(l, s, 1, 0);
			continue;
		}
		after--;
		if (dim == s->p.x->rank)
			return lower_fail(l, EINVAL,
					  "%u ranges are given for %u dimensions",
					  s->given, s->p.x->rank);
		rc = slice_dim(l, s, dim++, &r);
	}
	while (!rc && dim < s->p.x->rank)
		rc = whole_dim(l, s, dim++);
	return rc;
}

int lower_strided_slice(struct lowered *l)
{
	struct slicing s = {0};
	int rc = lower_counts(l, 4, 4);

	if (!rc)
		rc = move_pair_of(l, 0, &s.p);
	if (!rc)
		rc = lower_ints(l, 1, false, 0, &s.begin, &s.given);
	if (!rc)
		rc = lower_ints(l, 2, false, s.given, &s.end, NULL);
	if (!rc)
		rc = lower_ints(l, 3, false, s.given, &s.strides, NULL);
	if (!rc && !s.given && lower_t(l, lower_op(l)->inputs[2])->count)
		rc = lower_fail(l, EINVAL, "ends are given, but no beginnings");
	if (rc)
		return rc;
	for (uint32_t i = 0; i < STRIDED_SLICE_OFFSET; i++)
		s.mask[i] = (uint32_t)lower_option(l, OPTIONS_STRIDED_SLICE, i, 0);
	if (lower_option_u8(l, OPTIONS_STRIDED_SLICE, STRIDED_SLICE_OFFSET))
		return lower_fail(
			l, ENOTSUP,
			"ends that count from the beginnings are not supported");
	if (s.mask[STRIDED_SLICE_ELLIPSIS] & (s.mask[STRIDED_SLICE_ELLIPSIS] - 1))
		return lower_fail(l, EINVAL, "more than one ellipsis is given");
	rc = slice_dims(l, &s);
	if (!rc)
		rc = lower_dims(l, s.p.d, s.rank, s.dims);
	if (rc)
		return rc;
	for (uint32_t i = 0; i < s.rank; i++)
		move_add(&s.m, s.dims[i], s.step[i], s.p.d_step[i]);
	return lower_move(l, s.p.a, s.p.d, s.p.element, &s.m);
}
