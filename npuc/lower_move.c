/* SPDX-License-Identifier: Apache-2.0 */
/* lower_move.c - operators that only move elements: copies of the machine's, or the work
 * of the compiler where everything is constant. */
#include "lower_move.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Kinds of union BuiltinOptions, and fields of their tables. */
enum {
	OPTIONS_RESHAPE = 17,
	RESHAPE_SHAPE = 0,
	OPTIONS_SQUEEZE = 30,
	SQUEEZE_DIMS = 0,
};

/* ---- moves ------------------------------------------------------------------------ */

void move_add(struct move *m, uint64_t size, int64_t a, int64_t d)
{
	m->dim[m->count++] = (struct move_dim){size, a, d};
}

void move_swap(struct move *m)
{
	int64_t at = m->a_at;

	m->a_at = m->d_at;
	m->d_at = at;
	for (uint32_t i = 0; i < m->count; i++) {
		int64_t a = m->dim[i].a;

		m->dim[i].a = m->dim[i].d;
		m->dim[i].d = a;
	}
}

static int by_d(const void *a, const void *b)
{
	const struct move_dim *x = a, *y = b;

	return x->d < y->d ? 1 : x->d > y->d ? -1 : 0;
}

/* In bytes, the farthest in d first, without directions of one element, neighbours merged
 * that are one. */
static void normalize(struct move *m, uint32_t element)
{
	struct move from = *m;

	for (uint32_t i = 0; i < from.count; i++) {
		from.dim[i].a *= element;
		from.dim[i].d *= element;
	}
	if (element > 1)
		move_add(&from, element, 1, 1);
	qsort(from.dim, from.count, sizeof(from.dim[0]), by_d);
	*m = (struct move){.a_at = from.a_at * element, .d_at = from.d_at * element};
	for (uint32_t i = 0; i < from.count; i++) {
		const struct move_dim *in = &from.dim[i];
		struct move_dim *out = m->count ? &m->dim[m->count - 1] : NULL;

		if (in->size == 1)
			continue;
		if (out && out->a == in->a * (int64_t)in->size &&
		    out->d == in->d * (int64_t)in->size) {
			out->size *= in->size;
			out->a = in->a;
			out->d = in->d;
			continue;
		}
		m->dim[m->count++] = *in;
	}
}

/* All that is read and written lies in its value. */
static bool is_inside(const struct lowered *l, uint32_t a, uint32_t d,
		      const struct move *m)
{
	int64_t low = m->a_at, high = m->a_at, end = m->d_at;

	for (uint32_t i = 0; i < m->count; i++) {
		int64_t far = (int64_t)(m->dim[i].size - 1) * m->dim[i].a;

		*(far < 0 ? &low : &high) += far;
		end += (int64_t)(m->dim[i].size - 1) * m->dim[i].d;
	}
	return low >= 0 && m->d_at >= 0 && high < (int64_t)l->values[a].bytes &&
	       end < (int64_t)l->values[d].bytes;
}

/* Takes a direction out: one in which both sides lie side by side, else the longest that
 * a copy can have as rows; size 1 where there is none. */
static struct move_dim take_dim(struct move *m, bool bytes)
{
	struct move_dim best = {1, 1, 1};
	uint32_t at = m->count;

	for (uint32_t i = 0; i < m->count; i++) {
		const struct move_dim *dim = &m->dim[i];

		if (bytes ? dim->a != 1 || dim->d != 1 : dim->a < 0)
			continue;
		if (dim->size > best.size) {
			best = *dim;
			at = i;
		}
	}
	if (at < m->count)
		m->dim[at] = m->dim[--m->count];
	return best;
}

/* Where piece number lies, by the directions that are left. */
static void piece_at(const struct move *m, uint64_t number, int64_t *a, int64_t *d)
{
	*a = m->a_at;
	*d = m->d_at;
	for (uint32_t i = m->count; i--;) {
		int64_t at = (int64_t)(number % m->dim[i].size);

		number /= m->dim[i].size;
		*a += at * m->dim[i].a;
		*d += at * m->dim[i].d;
	}
}

static uint64_t pieces_of(const struct move *m)
{
	uint64_t pieces = 1;

	for (uint32_t i = 0; i < m->count; i++)
		pieces *= m->dim[i].size;
	return pieces;
}

static int move_on_device(struct lowered *l, uint32_t a, uint32_t d, struct move *m)
{
	struct move_dim bytes = take_dim(m, true), rows = take_dim(m, false);
	uint64_t pieces = pieces_of(m);

	if (pieces > LOWER_PIECES_MAX)
		return lower_fail(
			l, ENOTSUP,
			"it would be moved in %llu pieces; at most %u are supported",
			(unsigned long long)pieces, LOWER_PIECES_MAX);
	for (uint64_t i = 0; i < pieces; i++) {
		struct step *s = lower_step(l, STEP_COPY, a, NPUC_NONE, d);
		int64_t a_at, d_at;

		if (!s)
			return -ENOMEM;
		piece_at(m, i, &a_at, &d_at);
		s->u.copy = (struct hal_npu_copy){
			.size = (uint32_t)sizeof(s->u.copy),
			.rows = (uint32_t)rows.size,
			.bytes = (uint32_t)bytes.size,
			.a_stride = (uint32_t)rows.a,
			.d_stride = (uint32_t)rows.d,
			.flags = rows.size > 1 && !rows.a ? HAL_NPU_A_REPEAT : 0,
			.a.offset = (uint32_t)a_at,
			.d.offset = (uint32_t)d_at,
		};
		if (rows.size == 1)
			s->u.copy.a_stride = s->u.copy.d_stride = 0;
	}
	return 0;
}

static void move_at_once(struct lowered *l, uint32_t a, uint32_t d, struct move *m)
{
	uint64_t bytes = take_dim(m, true).size, pieces = pieces_of(m);
	const uint8_t *from = l->values[a].data;

	for (uint64_t i = 0; i < pieces; i++) {
		int64_t a_at, d_at;

		piece_at(m, i, &a_at, &d_at);
		memcpy(l->values[d].made + d_at, from + a_at, bytes);
	}
}

int lower_move(struct lowered *l, uint32_t a, uint32_t d, uint32_t element,
	       const struct move *move)
{
	struct move m = *move;

	if (!pieces_of(&m))
		return 0;
	normalize(&m, element);
	if (!is_inside(l, a, d, &m))
		return lower_fail(l, EINVAL,
				  "the shapes of operands and result do not match");
	if (l->values[d].made) {
		move_at_once(l, a, d, &m);
		return 0;
	}
	if (!m.a_at && !m.d_at && m.count <= 1 &&
	    l->values[a].bytes == l->values[d].bytes &&
	    (m.count ? m.dim[0].size : 1) == l->values[d].bytes)
		return lower_alias(l, a, d);
	return move_on_device(l, a, d, &m);
}

int lower_fill(struct lowered *l, uint32_t d, uint32_t element, int32_t number)
{
	uint64_t bytes = l->values[d].bytes;
	uint32_t pattern = element == 2 ? ((uint32_t)number & 0xffff) * 0x00010001u
					: ((uint32_t)number & 0xff) * 0x01010101u;
	struct step *s;

	if (l->values[d].made) {
		for (uint64_t i = 0; i < bytes; i++)
			l->values[d].made[i] = (uint8_t)(pattern >> 8 * (i % 4));
		return 0;
	}
	s = lower_step(l, STEP_FILL, NPUC_NONE, NPUC_NONE, d);
	if (!s)
		return -ENOMEM;
	/* Places are multiples of NPUC_ALIGN long: a few bytes more do no harm. */
	s->u.fill.bytes = (uint32_t)((bytes + 3) / 4 * 4);
	s->u.fill.pattern = pattern;
	return 0;
}

/* ---- operands --------------------------------------------------------------------- */

static bool all_constant(const struct lowered *l)
{
	const struct model_op *op = lower_op(l);

	for (uint32_t i = 0; i < op->input_count; i++)
		if (op->inputs[i] != NPUC_NONE && !l->values[op->inputs[i]].data)
			return false;
	return true;
}

int lower_moved(struct lowered *l, uint32_t number, uint32_t *tensor)
{
	const struct npuc_tensor *t;
	int rc = lower_take(l, number, tensor);

	if (rc)
		return rc;
	t = lower_t(l, *tensor);
	if (l->m->tensors[*tensor].unusable)
		return lower_fail(l, ENOTSUP, "tensor '%.80s' %s", t->name,
				  l->m->tensors[*tensor].unusable);
	if (!npuc_type_bytes(t->type))
		return lower_fail(l, ENOTSUP,
				  "tensor '%.80s' has type %u, which is not supported",
				  t->name, (uint32_t)t->type);
	if (!l->values[*tensor].ready)
		return lower_fail(l, EINVAL,
				  "tensor '%.80s' is read before a layer has computed it",
				  t->name);
	return 0;
}

static int check_result(struct lowered *l, uint32_t number, uint32_t a, uint32_t *tensor)
{
	const struct model_op *op = lower_op(l);
	const struct npuc_tensor *t;
	int rc;

	if (number >= op->output_count || op->outputs[number] == NPUC_NONE)
		return lower_fail(l, EINVAL, "output %u is missing", number);
	*tensor = op->outputs[number];
	t = lower_t(l, *tensor);
	if (l->m->tensors[*tensor].unusable)
		return lower_fail(l, ENOTSUP, "tensor '%.80s' %s", t->name,
				  l->m->tensors[*tensor].unusable);
	rc = lower_same_type(l, a, *tensor);
	if (rc)
		return rc;
	if (l->values[*tensor].ready)
		return lower_fail(
			l, EINVAL,
			"tensor '%.80s' is constant, an input, or computed twice",
			t->name);
	return 0;
}

int lower_plain_result(struct lowered *l, uint32_t number, uint32_t a, uint32_t *tensor)
{
	int rc = check_result(l, number, a, tensor);

	if (!rc && !lower_t(l, *tensor)->count)
		rc = lower_fail(l, ENOTSUP, "tensor '%.80s' is empty",
				lower_t(l, *tensor)->name);
	return rc;
}

int lower_moved_result(struct lowered *l, uint32_t number, uint32_t a, uint32_t *tensor)
{
	int rc;

	if (!all_constant(l))
		return lower_plain_result(l, number, a, tensor);
	rc = check_result(l, number, a, tensor);
	if (!rc && !l->values[*tensor].output)
		rc = lower_made(l, *tensor);
	return rc;
}

static void steps_of(const struct npuc_tensor *t, int64_t step[NPUC_RANK])
{
	int64_t n = 1;

	for (uint32_t i = t->rank; i--;) {
		step[i] = n;
		n *= t->dims[i];
	}
}

static int one_result(struct lowered *l)
{
	uint32_t n = lower_op(l)->output_count;

	return n == 1 ? 0 : lower_fail(l, EINVAL, "%u outputs; exactly 1", n);
}

int move_pair_of(struct lowered *l, uint32_t operand, struct move_pair *p)
{
	int rc = one_result(l);

	if (!rc)
		rc = lower_moved(l, operand, &p->a);
	if (!rc)
		rc = lower_moved_result(l, 0, p->a, &p->d);
	if (rc)
		return rc;
	p->x = lower_t(l, p->a);
	p->y = lower_t(l, p->d);
	p->element = npuc_type_bytes(p->x->type);
	steps_of(p->x, p->a_step);
	steps_of(p->y, p->d_step);
	lower_describe(l, p->a, p->d);
	return 0;
}

int move_pair_with(struct lowered *l, struct move_pair *p, uint32_t each,
		   const int32_t **numbers, uint32_t *count)
{
	int rc = lower_counts(l, 2, 2);

	if (!rc)
		rc = move_pair_of(l, 0, p);
	return rc ? rc
		  : lower_ints(l, 1, false, (uint64_t)each * p->x->rank, numbers, count);
}

uint64_t move_product(const struct npuc_tensor *t, uint32_t from, uint32_t to)
{
	uint64_t n = 1;

	for (uint32_t i = from; i < to; i++)
		n *= (uint64_t)t->dims[i];
	return n;
}

int move_axis(struct lowered *l, int32_t wanted, uint32_t rank, uint32_t *axis)
{
	int64_t at = wanted < 0 ? (int64_t)wanted + rank : wanted;

	if (at < 0 || at >= (int64_t)rank)
		return lower_fail(l, EINVAL, "axis %d does not exist in %u dimensions",
				  wanted, rank);
	*axis = (uint32_t)at;
	return 0;
}

int move_one_scale(struct lowered *l, uint32_t tensor)
{
	const struct npuc_tensor *t = lower_t(l, tensor);

	return t->scales < 2 ? 0
			     : lower_fail(l, ENOTSUP,
					  "tensor '%.80s' is quantized per channel; only "
					  "weights may be",
					  t->name);
}

int move_same_quant(struct lowered *l, uint32_t a, uint32_t d)
{
	const struct npuc_tensor *x = lower_t(l, a), *y = lower_t(l, d);
	int rc = move_one_scale(l, a);

	if (!rc)
		rc = move_one_scale(l, d);
	if (rc || (x->scale == y->scale && x->zero_point == y->zero_point))
		return rc;
	return lower_fail(l, EINVAL,
			  "tensors '%.80s' and '%.80s' must have the same scale and zero "
			  "point",
			  x->name, y->name);
}

/* ---- the same order --------------------------------------------------------------- */

/* What RESHAPE is asked for: its second operand, else its options; *given NULL: nothing.
 */
static int asked_shape(struct lowered *l, const int32_t **given, uint32_t *count)
{
	const struct model_op *op = lower_op(l);
	struct flat f = l->m->flat;
	struct flat_vector v = {0};
	int32_t *copy;

	*given = NULL;
	if (op->input_count == 2 && op->inputs[1] != NPUC_NONE &&
	    lower_t(l, op->inputs[1])->type == NPUC_INT32 &&
	    lower_t(l, op->inputs[1])->rank == 1)
		return lower_ints(l, 1, false, 0, given, count);
	if (op->options_type == OPTIONS_RESHAPE)
		v = flat_vector(&f, op->options, RESHAPE_SHAPE, 4);
	if (!f.bad && !v.at && op->input_count == 2 && op->inputs[1] != NPUC_NONE)
		return lower_fail(l, EINVAL,
				  "tensor '%.80s' must be int32 with one dimension",
				  lower_t(l, op->inputs[1])->name);
	if (f.bad || !v.at)
		return 0;
	copy = lower_own(l, (uint64_t)v.count * sizeof(*copy));
	if (!copy)
		return -ENOMEM;
	for (uint32_t i = 0; i < v.count; i++)
		copy[i] = flat_vector_i32(&f, v, i);
	*given = copy;
	*count = v.count;
	return 0;
}

/* The file's shape of the result is the one asked for, of which one size may be -1. */
static int check_asked(struct lowered *l, const struct move_pair *p)
{
	uint32_t dims[NPUC_RANK], count = 0;
	const int32_t *given;
	uint64_t known = 1;
	int rc = asked_shape(l, &given, &count);

	if (rc || !given)
		return rc;
	if (count == 1 && !given[0] && p->x->count == 1)
		count = 0; /* an old way to say scalar */
	if (count > NPUC_RANK)
		return lower_fail(l, ENOTSUP, "%u dimensions; at most %d are supported",
				  count, NPUC_RANK);
	for (uint32_t i = 0; i < count; i++)
		if (given[i] > 0 && known <= p->x->count)
			known *= (uint64_t)given[i];
	for (uint32_t i = 0; i < count; i++)
		dims[i] = given[i] == -1 ? (uint32_t)(p->x->count / known)
					 : (uint32_t)given[i];
	return lower_dims(l, p->d, count, dims);
}

/* The operand's dimensions without those that are squeezed, all of size 1. */
static int check_squeezed(struct lowered *l, const struct move_pair *p)
{
	const struct model_op *op = lower_op(l);
	uint32_t dims[NPUC_RANK], rank = 0, mask = 0, axis = 0;
	struct flat f = l->m->flat;
	struct flat_vector v = {0};
	int rc = 0;

	if (op->options_type == OPTIONS_SQUEEZE)
		v = flat_vector(&f, op->options, SQUEEZE_DIMS, 4);
	for (uint32_t i = 0; !rc && !f.bad && i < v.count; i++) {
		int32_t wanted = flat_vector_i32(&f, v, i);

		rc = move_axis(l, wanted, p->x->rank, &axis);
		if (!rc && p->x->dims[axis] != 1)
			rc = lower_fail(l, EINVAL,
					"dimension %d has size %d; only a dimension of "
					"size 1 can be removed",
					wanted, p->x->dims[axis]);
		mask |= 1u << axis;
	}
	for (uint32_t i = 0; i < p->x->rank; i++)
		if (v.count ? !(mask >> i & 1) : p->x->dims[i] != 1)
			dims[rank++] = (uint32_t)p->x->dims[i];
	return rc ? rc : lower_dims(l, p->d, rank, dims);
}

/* The operand's dimensions with a 1 before the given one. */
static int check_expanded(struct lowered *l, const struct move_pair *p)
{
	uint32_t dims[NPUC_RANK + 1], axis = 0;
	const int32_t *given;
	int rc = lower_ints(l, 1, false, 1, &given, NULL);

	if (!rc)
		rc = move_axis(l, given[0], p->x->rank + 1, &axis);
	if (!rc)
		rc = move_same_quant(l, p->a, p->d);
	for (uint32_t i = 0; i <= p->x->rank; i++)
		dims[i] = i == axis ? 1 : (uint32_t)p->x->dims[i - (i > axis)];
	return rc ? rc : lower_dims(l, p->d, p->x->rank + 1, dims);
}

static int check_reshaped(struct lowered *l, const struct move_pair *p)
{
	switch (lower_op(l)->code) {
	case NPUC_RESHAPE:
		return check_asked(l, p);
	case NPUC_SQUEEZE:
		return check_squeezed(l, p);
	default:
		return check_expanded(l, p);
	}
}

int lower_reshape(struct lowered *l)
{
	struct move m = {0};
	struct move_pair p;
	int rc = lower_counts(l, 1, 2);

	if (!rc)
		rc = move_pair_of(l, 0, &p);
	if (rc)
		return rc;
	rc = check_reshaped(l, &p);
	if (rc)
		return rc;
	if (p.x->count != p.y->count)
		return lower_fail(l, EINVAL, "%llu elements cannot become %llu",
				  (unsigned long long)p.x->count,
				  (unsigned long long)p.y->count);
	move_add(&m, p.x->count, 1, 1);
	return lower_move(l, p.a, p.d, p.element, &m);
}

/* Of a constant, which the parser has expanded. */
int lower_densify(struct lowered *l)
{
	struct move m = {0};
	struct move_pair p;
	int rc = lower_counts(l, 1, 1);

	if (!rc)
		rc = move_pair_of(l, 0, &p);
	if (rc)
		return rc;
	if (!l->values[p.a].data)
		return lower_fail(l, ENOTSUP, "tensor '%.80s' is not constant",
				  p.x->name);
	rc = lower_same_dims(l, p.a, p.d);
	move_add(&m, p.x->count, 1, 1);
	return rc ? rc : lower_move(l, p.a, p.d, p.element, &m);
}

/* ---- other orders ----------------------------------------------------------------- */

int lower_transpose(struct lowered *l)
{
	uint32_t dims[NPUC_RANK], seen = 0;
	const int32_t *order;
	struct move m = {0};
	struct move_pair p;
	int rc = move_pair_with(l, &p, 1, &order, NULL);

	if (rc)
		return rc;
	for (uint32_t i = 0; i < p.x->rank; i++) {
		uint32_t from = 0;

		rc = move_axis(l, order[i], p.x->rank, &from);
		if (rc)
			return rc;
		if (seen >> from & 1)
			return lower_fail(l, EINVAL, "dimension %u is named twice", from);
		seen |= 1u << from;
		dims[i] = (uint32_t)p.x->dims[from];
		move_add(&m, dims[i], p.a_step[from], p.d_step[i]);
	}
	rc = lower_dims(l, p.d, p.x->rank, dims);
	return rc ? rc : lower_move(l, p.a, p.d, p.element, &m);
}

int lower_tile(struct lowered *l)
{
	uint32_t dims[NPUC_RANK];
	const int32_t *times;
	struct move m = {0};
	struct move_pair p;
	int rc = move_pair_with(l, &p, 1, &times, NULL);

	if (rc)
		return rc;
	for (uint32_t i = 0; i < p.x->rank; i++) {
		if (times[i] < 0 || (int64_t)times[i] * p.x->dims[i] > INT32_MAX)
			return lower_fail(
				l, EINVAL,
				"dimension %u of size %d cannot be repeated %d times", i,
				p.x->dims[i], times[i]);
		dims[i] = (uint32_t)(times[i] * p.x->dims[i]);
		move_add(&m, (uint64_t)times[i], 0, p.d_step[i] * p.x->dims[i]);
		move_add(&m, (uint64_t)p.x->dims[i], p.a_step[i], p.d_step[i]);
	}
	rc = lower_dims(l, p.d, p.x->rank, dims);
	return rc ? rc : lower_move(l, p.a, p.d, p.element, &m);
}

/* Backwards along one dimension. */
int lower_reverse(struct lowered *l)
{
	struct move m = {0};
	struct move_pair p;
	const int32_t *along;
	uint32_t axis = 0, dims[NPUC_RANK] = {0}, count = 0;
	int rc = move_pair_with(l, &p, 0, &along, &count);

	if (!rc && count != 1)
		rc = lower_fail(l, ENOTSUP,
				"reversing along %u dimensions; only 1 is supported",
				count);
	if (!rc)
		rc = move_axis(l, along[0], p.x->rank, &axis);
	for (uint32_t i = 0; !rc && i < p.x->rank; i++)
		dims[i] = (uint32_t)p.x->dims[i];
	if (!rc)
		rc = lower_dims(l, p.d, p.x->rank, dims);
	if (rc)
		return rc;
	for (uint32_t i = 0; i < p.x->rank; i++)
		move_add(&m, dims[i], i == axis ? -p.a_step[i] : p.a_step[i],
			 p.d_step[i]);
	m.a_at = (dims[axis] ? dims[axis] - 1 : 0) * p.a_step[axis];
	return lower_move(l, p.a, p.d, p.element, &m);
}

int lower_broadcast(struct lowered *l)
{
	uint32_t dims[NPUC_RANK], rank = 0, more;
	const int32_t *to;
	struct move m = {0};
	struct move_pair p;
	int rc = move_pair_with(l, &p, 0, &to, &rank);

	if (rc)
		return rc;
	if (rank > NPUC_RANK || rank < p.x->rank)
		return lower_fail(l, EINVAL, "%u dimensions cannot be broadcast to %u",
				  p.x->rank, rank);
	more = rank - p.x->rank;
	for (uint32_t i = 0; i < rank; i++) {
		int32_t from = i < more ? 1 : p.x->dims[i - more];

		if (to[i] < 0 || (from != 1 && from != to[i]))
			return lower_fail(
				l, EINVAL,
				"dimension %u of size %d cannot be broadcast to %d", i,
				from, to[i]);
		dims[i] = (uint32_t)to[i];
	}
	rc = lower_dims(l, p.d, rank, dims);
	for (uint32_t i = 0; !rc && i < rank; i++)
		move_add(&m, dims[i],
			 i < more || p.x->dims[i - more] == 1 ? 0 : p.a_step[i - more],
			 p.d_step[i]);
	return rc ? rc : lower_move(l, p.a, p.d, p.element, &m);
}
