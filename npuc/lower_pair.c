/* SPDX-License-Identifier: Apache-2.0 */
/* lower_pair.c - operators of two operands, element by element, whose shapes broadcast.
 */
#include "lower_pair.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "lower_int16.h"
#include "lower_move.h"
#include "lower_wide.h"
#include "quant.h"

/* Kinds of union BuiltinOptions, and fields of their tables. */
enum {
	OPTIONS_ADD = 11,
	OPTIONS_MUL = 21,
	OPTIONS_SUB = 28,
	ELEMENTWISE_ACT = 0,
	ADD_POT_SCALE = 1,
	OPTIONS_LEAKY_RELU = 75,
	LEAKY_RELU_ALPHA = 0,
};

#define EXPAND_MAX    65520u /* output channels of a convolution */
#define EXPAND_ROWS   65535u /* its rows */
#define SCALAR_ROW    4096u  /* a single number is spread over at most so many bytes */
#define ADD_RIGHT_MAX 15 /* from 16 on TensorFlow Lite rounds by a mask that is gone */
#define PAIR_UINT8    (HAL_NPU_A_UINT8 | HAL_NPU_B_UINT8 | HAL_NPU_D_UINT8)

/* ---- broadcasting ----------------------------------------------------------------- */

void pair_dim(struct pair *s, uint32_t size, bool a, bool b)
{
	uint32_t last = s->count - 1;

	if (size == 1)
		return;
	if (s->count && s->dim[last].moves[0] == a && s->dim[last].moves[1] == b) {
		s->dim[last].size *= size;
		return;
	}
	s->dim[s->count].size = size;
	s->dim[s->count].moves[0] = a;
	s->dim[s->count++].moves[1] = b;
}

static int broadcast(struct lowered *l, const uint32_t v[3], struct pair *s)
{
	const struct npuc_tensor *x = lower_t(l, v[0]), *y = lower_t(l, v[1]);
	uint32_t rank = x->rank > y->rank ? x->rank : y->rank, dims[NPUC_RANK];

	s->count = 0;
	for (uint32_t i = 0; i < rank; i++) {
		uint32_t xa = i + x->rank, yb = i + y->rank;
		uint32_t n = xa < rank ? 1 : (uint32_t)x->dims[xa - rank];
		uint32_t m = yb < rank ? 1 : (uint32_t)y->dims[yb - rank];

		if (n != m && n != 1 && m != 1)
			return lower_fail(l, EINVAL,
					  "the shapes do not broadcast: sizes %u and %u",
					  n, m);
		dims[i] = n > m ? n : m;
		pair_dim(s, dims[i], n > 1, m > 1);
	}
	return lower_dims(l, v[2], rank, dims);
}

static int operands(struct lowered *l, bool wide, struct pair *s, uint32_t v[3])
{
	int rc = lower_counts(l, 2, 2);

	for (uint32_t i = 0; !rc && i < 2; i++)
		rc = wide ? lower_operand16(l, i, &v[i]) : lower_operand(l, i, &v[i]);
	if (!rc)
		rc = wide ? lower_result16(l, &v[2]) : lower_result(l, &v[2]);
	if (!rc)
		rc = lower_same_type(l, v[0], v[1]);
	if (!rc)
		rc = lower_same_type(l, v[0], v[2]);
	if (!rc)
		rc = broadcast(l, v, s);
	if (!rc)
		lower_describe(l, v[0], v[2]);
	return rc;
}

int pair_operands(struct lowered *l, struct pair *s, uint32_t v[3])
{
	return operands(l, false, s, v);
}

/* A constant number which becomes a constant row. */
static int spread_constant(struct lowered *l, uint32_t *operand, uint32_t copies)
{
	uint8_t *row = lower_own(l, copies);

	if (!row)
		return -ENOMEM;
	memset(row, *(const uint8_t *)l->values[*operand].data, copies);
	return lower_value(l, copies, row, operand);
}

/* Operand which becomes [elements][copies], each element repeated: a convolution of one
 * channel with ones, times exactly 1. */
static int expand(struct lowered *l, uint32_t *operand, uint64_t elements,
		  uint32_t copies)
{
	int32_t *unit;
	int8_t *weights;
	uint32_t to;
	int rc;

	if (elements == 1 && l->values[*operand].data)
		return spread_constant(l, operand, copies);
	unit = lower_own(l, 8);
	weights = lower_own(l, copies);
	if (!unit || !weights)
		return -ENOMEM;
	if (copies > EXPAND_MAX)
		return lower_fail(
			l, ENOTSUP,
			"broadcasting %llu elements, each to %u others, is not supported",
			(unsigned long long)elements, copies);
	memset(weights, 1, copies);
	unit[0] = INT32_C(1) << 30;
	unit[1] = 1;
	rc = lower_value(l, elements * copies, NULL, &to);
	for (uint64_t at = 0; !rc && at < elements; at += EXPAND_ROWS) {
		uint64_t left = elements - at;
		uint32_t rows = left < EXPAND_ROWS ? (uint32_t)left : EXPAND_ROWS;
		struct step *s = lower_step(l, STEP_CONV, *operand, NPUC_NONE, to);

		if (!s)
			return -ENOMEM;
		/* As int8, whatever the bytes mean: they stay as they are. */
		s->u.conv = (struct hal_npu_conv){
			.size = (uint32_t)sizeof(s->u.conv),
			.h = rows,
			.w = 1,
			.c = 1,
			.oh = rows,
			.ow = 1,
			.n = copies,
			.kh = 1,
			.kw = 1,
			.stride_h = 1,
			.stride_w = 1,
			.dilation_h = 1,
			.dilation_w = 1,
			.groups = 1,
			.a.offset = (uint32_t)at,
			.d.offset = (uint32_t)(at * copies),
			.weights = weights,
			.out = {.mult = unit, .shift = unit + 1, .min = -128, .max = 127},
		};
	}
	*operand = to;
	return rc;
}

static int expand_last(struct lowered *l, struct pair *s, uint32_t which,
		       uint32_t *operand)
{
	struct pair to = {0};
	uint32_t last = s->count - 1, size = s->dim[last].size, copies = size;
	bool other = s->dim[last].moves[!which];
	uint64_t elements = 1;
	int rc;

	for (uint32_t i = 0; i < last; i++)
		elements *= s->dim[i].moves[which] ? s->dim[i].size : 1;
	/* A single number: a row of a length that divides the dimension, used again. */
	for (uint32_t n = SCALAR_ROW; elements == 1 && size > SCALAR_ROW && n >= 64; n--)
		if (size % n == 0) {
			copies = n;
			break;
		}
	rc = expand(l, operand, elements, copies);
	for (uint32_t i = 0; i < last; i++)
		pair_dim(&to, s->dim[i].size, s->dim[i].moves[0], s->dim[i].moves[1]);
	if (copies != size)
		pair_dim(&to, size / copies, which ? other : false,
			 which ? false : other);
	pair_dim(&to, copies, which ? other : true, which ? true : other);
	*s = to;
	return rc;
}

int pair_expand(struct lowered *l, struct pair *s, uint32_t v[3])
{
	int rc = 0;

	for (uint32_t which = 0; which < 2 && !rc; which++)
		if (s->count && !s->dim[s->count - 1].moves[which])
			rc = expand_last(l, s, which, &v[which]);
	return rc;
}

/* ---- steps ------------------------------------------------------------------------ */

/* A piece of two dimensions: rows of both operands, or one row for all. */
struct rows {
	uint32_t rows, bytes;
	uint64_t a, b, d; /* offsets */
	uint32_t repeat;  /* HAL_NPU_x_REPEAT */
};

typedef int (*rows_fn)(struct lowered *l, const struct rows *r, const uint32_t v[3],
		       const void *user);

/* Where piece p of the outer dimensions lies. */
static void place_piece(const struct pair *s, uint32_t outer, uint64_t p, struct rows *r)
{
	uint64_t step[2] = {
		(uint64_t)r->bytes * (r->repeat & HAL_NPU_A_REPEAT ? 1 : r->rows),
		(uint64_t)r->bytes * (r->repeat & HAL_NPU_B_REPEAT ? 1 : r->rows)};

	r->a = r->b = 0;
	r->d = p * r->rows * r->bytes;
	for (uint32_t i = outer; i--;) {
		uint64_t at = p % s->dim[i].size;

		p /= s->dim[i].size;
		r->a += s->dim[i].moves[0] ? at * step[0] : 0;
		r->b += s->dim[i].moves[1] ? at * step[1] : 0;
		step[0] *= s->dim[i].moves[0] ? s->dim[i].size : 1;
		step[1] *= s->dim[i].moves[1] ? s->dim[i].size : 1;
	}
}

static int each_rows(struct lowered *l, const struct pair *s, const uint32_t v[3],
		     rows_fn fn, const void *user)
{
	uint32_t inner = s->count < 2 ? s->count : 2, outer = s->count - inner;
	struct rows r = {.rows = 1, .bytes = 1};
	uint64_t pieces = 1;
	int rc = 0;

	if (s->count)
		r.bytes = s->dim[s->count - 1].size;
	if (inner == 2) {
		r.rows = s->dim[outer].size;
		r.repeat = (s->dim[outer].moves[0] ? 0 : HAL_NPU_A_REPEAT) |
			   (s->dim[outer].moves[1] ? 0 : HAL_NPU_B_REPEAT);
	}
	for (uint32_t i = 0; i < outer; i++)
		pieces *= s->dim[i].size;
	if (pieces > LOWER_PIECES_MAX)
		return lower_fail(l, ENOTSUP,
				  "broadcasting in %llu pieces; at most %u are supported",
				  (unsigned long long)pieces, LOWER_PIECES_MAX);
	for (uint64_t p = 0; !rc && p < pieces; p++) {
		place_piece(s, outer, p, &r);
		rc = fn(l, &r, v, user);
	}
	return rc;
}

static int add_rows(struct lowered *l, const struct rows *r, const uint32_t v[3],
		    const void *user)
{
	struct step *s = lower_step(l, STEP_ADD, v[0], v[1], v[2]);

	if (!s)
		return -ENOMEM;
	s->u.add = *(const struct hal_npu_add *)user;
	s->u.add.rows = r->rows;
	s->u.add.bytes = r->bytes;
	s->u.add.a.offset = (uint32_t)r->a;
	s->u.add.b.offset = (uint32_t)r->b;
	s->u.add.d.offset = (uint32_t)r->d;
	s->u.add.flags |= r->repeat;
	return 0;
}

static int mul_rows(struct lowered *l, const struct rows *r, const uint32_t v[3],
		    const void *user)
{
	struct step *s = lower_step(l, STEP_MUL, v[0], v[1], v[2]);

	if (!s)
		return -ENOMEM;
	s->u.mul = *(const struct hal_npu_mul *)user;
	s->u.mul.rows = r->rows;
	s->u.mul.bytes = r->bytes;
	s->u.mul.a.offset = (uint32_t)r->a;
	s->u.mul.b.offset = (uint32_t)r->b;
	s->u.mul.d.offset = (uint32_t)r->d;
	s->u.mul.flags |= r->repeat;
	return 0;
}

int pair_add(struct lowered *l, const struct pair *s, const uint32_t v[3],
	     const struct hal_npu_add *op)
{
	return each_rows(l, s, v, add_rows, op);
}

int pair_mul(struct lowered *l, const struct pair *s, const uint32_t v[3],
	     const struct hal_npu_mul *op)
{
	return each_rows(l, s, v, mul_rows, op);
}

/* Both operands times 2^2 / 2, their sum times 1/2: nothing is rounded. */
struct hal_npu_add pair_sum(int32_t a_zero, int32_t b_zero, int32_t d_zero, int32_t min,
			    int32_t max, uint32_t flags)
{
	return (struct hal_npu_add){
		.size = (uint32_t)sizeof(struct hal_npu_add),
		.a_zero = a_zero,
		.b_zero = b_zero,
		.d_zero = d_zero,
		.a_mult = INT32_C(1) << 30,
		.b_mult = INT32_C(1) << 30,
		.d_mult = INT32_C(1) << 30,
		.left_shift = 2,
		.min = min,
		.max = max,
		.flags = flags,
	};
}

struct hal_npu_add pair_difference(int32_t d_zero, int32_t min, int32_t max,
				   uint32_t flags)
{
	struct hal_npu_add op = pair_sum(0, 0, d_zero, min, max, flags);

	op.b_mult = -op.b_mult;
	return op;
}

/* ---- ADD, SUB, MUL ---------------------------------------------------------------- */

/* Of int16 operands they are shifted left by less. */
static int make_add(struct lowered *l, const uint32_t v[3], struct hal_npu_add *op)
{
	const int32_t left = lower_t(l, v[0])->type == NPUC_INT16 ? INT16_ADD_LEFT : 20;
	const struct npuc_tensor *a = lower_t(l, v[0]), *b = lower_t(l, v[1]);
	const struct npuc_tensor *d = lower_t(l, v[2]);
	/* In float up to here, as TensorFlow Lite has it. */
	const float larger = a->scale > b->scale ? a->scale : b->scale;
	const double twice = 2 * larger;
	const float fine = (float)(1 << left) * d->scale;
	double real = twice / fine;
	struct quant_mult qa = quant_of(a->scale / twice),
			  qb = quant_of(b->scale / twice);
	struct quant_mult qd = quant_of(real);

	if (!(real < 1) || qd.shift > 0)
		return lower_fail(l, ENOTSUP,
				  "scales %g and %g are too large for an output of %g",
				  (double)a->scale, (double)b->scale, (double)d->scale);
	*op = (struct hal_npu_add){
		.size = (uint32_t)sizeof(*op),
		.a_zero = a->zero_point,
		.b_zero = b->zero_point,
		.d_zero = d->zero_point,
		.a_mult = qa.mult,
		.b_mult = qb.mult,
		.d_mult = qd.mult,
		.a_shift = qa.shift,
		.b_shift = qb.shift,
		.d_shift = qd.shift,
		.left_shift = left,
		.flags = lower_u8(l, v[0], PAIR_UINT8),
	};
	return 0;
}

/* An operand of int16 with as many elements as the result. */
static int spread16(struct lowered *l, const struct pair *s, uint32_t which,
		    uint32_t *operand, uint32_t d)
{
	struct move m = {0};
	int64_t from = 1, to = 1;
	uint32_t v;
	int rc;

	if (lower_t(l, *operand)->count == lower_t(l, d)->count)
		return 0;
	for (uint32_t i = s->count; i--;) {
		bool moves = s->dim[i].moves[which];

		move_add(&m, s->dim[i].size, moves ? from : 0, to);
		from *= moves ? s->dim[i].size : 1;
		to *= s->dim[i].size;
	}
	rc = lower_value(l, lower_t(l, d)->bytes, NULL, &v);
	if (!rc && l->values[*operand].data)
		rc = lower_made(l, v);
	if (!rc)
		rc = lower_move(l, *operand, v, 2, &m);
	*operand = v;
	return rc;
}

/* TensorFlow Lite's CheckedLog2, by which a scale is a power of two. */
static bool is_power(float scale, int32_t *log2)
{
	float x = logf(scale) * (1.0f / logf(2.0f)), rounded = roundf(x);

	*log2 = (int32_t)rounded;
	return fabsf(x - rounded) < 1e-3f;
}

/* Does TensorFlow Lite add by shifting one operand, and by how much? */
static bool adds_shifted(struct lowered *l, const uint32_t v[3], uint32_t options,
			 int32_t right[2])
{
	const struct model_op *op = lower_op(l);
	struct flat f = l->m->flat;
	int32_t log2[3];

	if (op->options_type == options && !flat_u8(&f, op->options, ADD_POT_SCALE, 1))
		return false;
	for (uint32_t i = 0; i < 3; i++)
		if (!is_power(lower_t(l, v[i])->scale, &log2[i]))
			return false;
	right[0] = log2[2] - log2[0];
	right[1] = log2[2] - log2[1];
	return true;
}

static int add16_shifted(struct lowered *l, uint32_t v[3], const int32_t right[2],
			 bool minus, const struct hal_npu_add *op)
{
	const struct npuc_tensor *x = lower_t(l, v[0]), *y = lower_t(l, v[1]);
	uint32_t by[2] = {(uint32_t)right[0], (uint32_t)right[1]};

	if (right[0] < 0 || right[1] < 0 || (right[0] && right[1]) ||
	    right[0] > ADD_RIGHT_MAX || right[1] > ADD_RIGHT_MAX)
		return lower_fail(l, ENOTSUP,
				  "pot_scale_int16: one operand must have the result's "
				  "scale, the other must be at most 2^%d times finer",
				  ADD_RIGHT_MAX);
	if (x->count != lower_t(l, v[2])->count || y->count != x->count)
		return lower_fail(
			l, ENOTSUP,
			"pot_scale_int16: operands and result must have the same shape");
	return int16_add_shifted(l, v, by, minus, op->min, op->max);
}

static int add16(struct lowered *l, const struct pair *s, uint32_t v[3],
		 const struct hal_npu_add *op, bool minus)
{
	struct int16_sum sum = {.q = {{op->a_mult, op->a_shift},
				      {op->b_mult, op->b_shift},
				      {op->d_mult, op->d_shift}},
				.minus = minus,
				.min = op->min,
				.max = op->max};
	int32_t right[2];
	int rc;

	if (adds_shifted(l, v, minus ? OPTIONS_SUB : OPTIONS_ADD, right))
		return add16_shifted(l, v, right, minus, op);
	rc = spread16(l, s, 0, &v[0], v[2]);
	if (!rc)
		rc = spread16(l, s, 1, &v[1], v[2]);
	return rc ? rc : int16_add(l, v, &sum);
}

int lower_add(struct lowered *l)
{
	bool minus = lower_op(l)->code == NPUC_SUB;
	uint32_t options = minus ? OPTIONS_SUB : OPTIONS_ADD;
	uint32_t act = lower_option_u8(l, options, ELEMENTWISE_ACT);
	struct hal_npu_add op;
	struct pair s;
	uint32_t v[3];
	int rc = operands(l, true, &s, v);

	if (!rc)
		rc = make_add(l, v, &op);
	if (!rc)
		rc = lower_range(l, act, v[2], &op.min, &op.max);
	if (rc)
		return rc;
	if (lower_t(l, v[0])->type == NPUC_INT16)
		return add16(l, &s, v, &op, minus);
	if (minus)
		op.b_mult = -op.b_mult;
	rc = pair_expand(l, &s, v);
	return rc ? rc : pair_add(l, &s, v, &op);
}

/* Operands' scales and zero points are v[0]'s and v[1]'s. */
static int make_mul(struct lowered *l, const uint32_t v[3], struct hal_npu_mul *op)
{
	const struct npuc_tensor *a = lower_t(l, v[0]), *b = lower_t(l, v[1]);
	const struct npuc_tensor *d = lower_t(l, v[2]);
	const float product = a->scale * b->scale;
	const float real = product / d->scale;
	struct quant_mult q = {0, 0};

	if (isfinite(real))
		q = quant_of((double)real);
	if (!isfinite(real) || q.shift > 30)
		return lower_fail(l, ENOTSUP,
				  "scales %g * %g are too large for an output of %g",
				  (double)a->scale, (double)b->scale, (double)d->scale);
	*op = (struct hal_npu_mul){
		.size = (uint32_t)sizeof(*op),
		.a_zero = a->zero_point,
		.b_zero = b->zero_point,
		.d_zero = d->zero_point,
		.mult = q.mult,
		.shift = q.shift,
		.min = quant_min(d->type),
		.max = quant_max(d->type),
		.flags = lower_u8(l, v[0], PAIR_UINT8),
	};
	return 0;
}

static int mul16(struct lowered *l, const struct pair *s, uint32_t v[3],
		 const struct hal_npu_mul *op)
{
	int rc = spread16(l, s, 0, &v[0], v[2]);

	if (!rc)
		rc = spread16(l, s, 1, &v[1], v[2]);
	return rc ? rc
		  : wide_mul(l, v, (struct quant_mult){op->mult, op->shift}, op->min,
			     op->max);
}

int lower_mul(struct lowered *l)
{
	uint32_t act = lower_option_u8(l, OPTIONS_MUL, ELEMENTWISE_ACT), v[3];
	struct hal_npu_mul op;
	struct pair s;
	int rc = operands(l, true, &s, v);

	if (!rc)
		rc = make_mul(l, v, &op);
	if (!rc)
		rc = lower_range(l, act, v[2], &op.min, &op.max);
	if (!rc && lower_t(l, v[0])->type == NPUC_INT16)
		return mul16(l, &s, v, &op);
	if (!rc)
		rc = pair_expand(l, &s, v);
	return rc ? rc : pair_mul(l, &s, v, &op);
}

/* ---- MAXIMUM, MINIMUM ------------------------------------------------------------- */

/* Of two bytes by their bits. */
static uint8_t choose(bool maximum, enum npuc_type type, uint8_t a, uint8_t b)
{
	bool less = type == NPUC_UINT8 ? a < b : (int8_t)a < (int8_t)b;

	return less == maximum ? b : a;
}

/* With one constant number: a table. */
static int clip(struct lowered *l, const uint32_t v[3], uint32_t constant)
{
	const struct npuc_tensor *d = lower_t(l, v[2]);
	bool maximum = lower_op(l)->code == NPUC_MAXIMUM;
	uint8_t *table = lower_own(l, 256), limit;

	if (!table)
		return -ENOMEM;
	limit = *(const uint8_t *)lower_t(l, v[constant])->data;
	for (uint32_t i = 0; i < 256; i++)
		table[i] = choose(maximum, d->type, (uint8_t)i, limit);
	return lower_lut(l, v[!constant], v[2], d->count, table);
}

static int choose16(struct lowered *l, const struct pair *s, uint32_t v[3], bool maximum)
{
	uint64_t count = lower_t(l, v[2])->count;
	int rc = spread16(l, s, 0, &v[0], v[2]);

	if (count > INT32_MAX / 8)
		return lower_fail(l, ENOTSUP,
				  "%llu elements; less than 2^28 are supported",
				  (unsigned long long)count);
	if (!rc)
		rc = spread16(l, s, 1, &v[1], v[2]);
	return rc ? rc : wide_choose(l, v[0], v[1], v[2], (uint32_t)count, maximum);
}

/* max(a, b) = b + relu(a - b), min(a, b) = a - relu(a - b): bits as they are, whatever
 * the quantization. */
int lower_maximum(struct lowered *l)
{
	bool maximum = lower_op(l)->code == NPUC_MAXIMUM;
	struct hal_npu_add op;
	struct pair s, last = {0};
	uint32_t v[3], w[3];
	enum npuc_type type;
	int rc = operands(l, true, &s, v);

	if (!rc)
		rc = lower_same_quant(l, v[0], v[2]);
	if (!rc)
		rc = lower_same_quant(l, v[1], v[2]);
	if (rc)
		return rc;
	if (lower_t(l, v[2])->type == NPUC_INT16)
		return choose16(l, &s, v, maximum);
	for (uint32_t i = 0; i < 2; i++)
		if (lower_t(l, v[i])->data && lower_t(l, v[i])->count == 1 &&
		    lower_t(l, v[!i])->count == lower_t(l, v[2])->count)
			return clip(l, v, i);
	type = lower_t(l, v[2])->type;
	rc = pair_expand(l, &s, v);
	if (!rc)
		rc = lower_value(l, lower_t(l, v[2])->count, NULL, &w[1]);
	if (rc)
		return rc;
	w[0] = maximum ? v[1] : v[0];
	w[2] = v[2];
	for (uint32_t i = 0; i < s.count; i++)
		pair_dim(&last, s.dim[i].size, s.dim[i].moves[maximum], true);
	op = pair_difference(
		0, 0, 255,
		HAL_NPU_D_UINT8 | lower_u8(l, v[2], HAL_NPU_A_UINT8 | HAL_NPU_B_UINT8));
	rc = pair_add(l, &s, (const uint32_t[]){v[0], v[1], w[1]}, &op);
	op = pair_sum(0, 0, 0, quant_min(type), quant_max(type),
		      HAL_NPU_B_UINT8 |
			      lower_u8(l, v[2], HAL_NPU_A_UINT8 | HAL_NPU_D_UINT8));
	if (!maximum)
		op.b_mult = -op.b_mult;
	return rc ? rc : pair_add(l, &last, w, &op);
}

/* ---- LEAKY_RELU, PRELU ------------------------------------------------------------ */

#define SHIFT_MAX         22 /* 9 bits stay in 32 */
#define SHIFT_INT16_MAX   14 /* 16 bits stay in 31 */
#define SHIFT_PRODUCT_MAX 15 /* a product of two of them */

static int check_factor(struct lowered *l, float real, int most, struct quant_mult *q)
{
	*q = (struct quant_mult){0, INT32_MAX};
	if (isfinite(real))
		*q = quant_of(fabs((double)real));
	if (q->shift > most)
		return lower_fail(l, ENOTSUP,
				  "a scale that grows %g times is not supported",
				  (double)real);
	return 0;
}

static int leaky16(struct lowered *l, uint32_t a, uint32_t d,
		   const struct quant_leaky *leaky)
{
	uint64_t count = lower_t(l, a)->count;
	int16_t *table = lower_own(l, 65536 * sizeof(*table));

	if (!table)
		return -ENOMEM;
	if (count > INT32_MAX / 2)
		return lower_fail(l, ENOTSUP,
				  "%llu elements; less than 2^30 are supported",
				  (unsigned long long)count);
	quant_table_leaky16(leaky, table);
	lower_describe(l, a, d);
	return wide_table(l, a, d, (uint32_t)count, table);
}

int lower_leaky_relu(struct lowered *l)
{
	struct flat f = l->m->flat;
	struct quant_leaky leaky = {0};
	uint8_t *table = lower_own(l, 256);
	float alpha = 0, in, out, below;
	uint32_t a, d;
	int32_t most = SHIFT_MAX;
	int rc = table ? lower_unary16(l, &a, &d) : -ENOMEM;

	if (!rc)
		rc = lower_same_type(l, a, d);
	if (rc)
		return rc;
	if (lower_op(l)->options_type == OPTIONS_LEAKY_RELU)
		alpha = flat_f32(&f, lower_op(l)->options, LEAKY_RELU_ALPHA, 0);
	in = lower_t(l, a)->scale;
	out = lower_t(l, d)->scale;
	below = in * alpha;
	below /= out;
	leaky.times = below < 0 ? -1 : 1;
	if (lower_t(l, a)->type == NPUC_INT16)
		most = SHIFT_INT16_MAX;
	rc = check_factor(l, in / out, most, &leaky.above);
	if (!rc)
		rc = check_factor(l, below, most, &leaky.below);
	if (rc)
		return rc;
	if (lower_t(l, a)->type == NPUC_INT16)
		return leaky16(l, a, d, &leaky);
	quant_table_leaky(lower_side(l, a), lower_side(l, d), &leaky, table);
	lower_describe(l, a, d);
	return lower_lut(l, a, d, lower_t(l, d)->count, table);
}

/* What is above zero by a table, what is below by a product; then the sum, of which one
 * is always zero. */
static int prelu_parts(struct lowered *l, struct pair *s, uint32_t v[3],
		       struct quant_leaky leaky, struct quant_mult product)
{
	enum { ABOVE, BELOW, PRODUCT, PARTS };
	const struct npuc_tensor *x = lower_t(l, v[0]), *d = lower_t(l, v[2]);
	uint8_t *above = lower_own(l, 256), *below = lower_own(l, 256);
	struct hal_npu_add sum =
		pair_sum(d->zero_point, d->zero_point, d->zero_point, quant_min(d->type),
			 quant_max(d->type), lower_u8(l, v[2], PAIR_UINT8));
	struct pair last = {0};
	struct hal_npu_mul mul;
	uint32_t w[PARTS];
	int rc = above && below ? make_mul(l, v, &mul) : -ENOMEM;

	for (uint32_t i = 0; !rc && i < PARTS; i++)
		rc = lower_value(l, i == PRODUCT ? d->count : x->count, NULL, &w[i]);
	if (rc)
		return rc;
	mul.mult = product.mult;
	mul.shift = product.shift;
	quant_table_leaky(lower_side(l, v[0]), lower_side(l, v[2]), &leaky, above);
	for (uint32_t i = 0; i < 256; i++)
		below[i] = choose(false, x->type, (uint8_t)i, (uint8_t)x->zero_point);
	rc = lower_lut(l, v[0], w[ABOVE], x->count, above);
	if (!rc)
		rc = lower_lut(l, v[0], w[BELOW], x->count, below);
	v[0] = w[BELOW];
	for (uint32_t i = 0; i < s->count; i++)
		pair_dim(&last, s->dim[i].size, s->dim[i].moves[0], true);
	if (!rc)
		rc = pair_expand(l, s, v);
	if (!rc)
		rc = pair_mul(l, s, (const uint32_t[]){v[0], v[1], w[PRODUCT]}, &mul);
	v[0] = w[ABOVE];
	v[1] = w[PRODUCT];
	if (!rc)
		rc = pair_expand(l, &last, v);
	return rc ? rc : pair_add(l, &last, v, &sum);
}

int lower_prelu(struct lowered *l)
{
	struct quant_leaky leaky = {0};
	struct quant_mult product;
	const struct npuc_tensor *x, *alpha, *d;
	struct pair s;
	uint8_t *table;
	uint32_t v[3];
	float real;
	int rc = pair_operands(l, &s, v);

	if (!rc)
		rc = lower_same_dims(l, v[0], v[2]);
	if (rc)
		return rc;
	x = lower_t(l, v[0]);
	alpha = lower_t(l, v[1]);
	d = lower_t(l, v[2]);
	real = x->scale * alpha->scale;
	real /= d->scale;
	rc = check_factor(l, x->scale / d->scale, SHIFT_MAX, &leaky.above);
	if (!rc)
		rc = check_factor(l, real, SHIFT_PRODUCT_MAX, &product);
	if (rc)
		return rc;
	if (!alpha->data || alpha->count != 1)
		return prelu_parts(l, &s, v, leaky, product);
	table = lower_own(l, 256);
	if (!table)
		return -ENOMEM;
	leaky.below = product;
	leaky.times = quant_value(*(const uint8_t *)alpha->data, alpha->type) -
		      alpha->zero_point;
	quant_table_leaky(lower_side(l, v[0]), lower_side(l, v[2]), &leaky, table);
	return lower_lut(l, v[0], v[2], d->count, table);
}
