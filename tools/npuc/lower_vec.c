/* SPDX-License-Identifier: Apache-2.0 */
/* lower_vec.c - operators that work element by element, row by row, or only move bytes.
 */
#include "lower.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "quant.h"

/* Kinds of union BuiltinOptions, and fields of their tables. */
enum {
	OPTIONS_SOFTMAX = 9,
	SOFTMAX_BETA = 0,
	OPTIONS_CONCATENATION = 10,
	CONCATENATION_AXIS = 0,
	CONCATENATION_ACT = 1,
	OPTIONS_ADD = 11,
	OPTIONS_MUL = 21,
	ELEMENTWISE_ACT = 0,
};

#define PIECES_MAX   65536u /* steps of one layer */
#define EXPAND_MAX   65520u /* output channels of a convolution */
#define SCALAR_ROW   4096u  /* a single number is spread over at most so many bytes */
#define SOFTMAX_COLS 4095u
#define PADDING_MAX  255u /* of a convolution */

static uint32_t u8_flag(const struct lowered *l, uint32_t tensor, uint32_t flag)
{
	return lower_t(l, tensor)->type == NPUC_UINT8 ? flag : 0;
}

static struct quant_side side(const struct lowered *l, uint32_t tensor)
{
	const struct npuc_tensor *t = lower_t(l, tensor);

	return (struct quant_side){t->type, t->scale, t->zero_point};
}

static void put_dims(const struct npuc_tensor *t, char *text, size_t size)
{
	int used = 0;

	text[0] = '\0';
	for (uint32_t i = 0; i < t->rank && used < (int)size; i++)
		used += snprintf(text + used, size - (size_t)used, "%s%d", i ? "x" : "",
				 t->dims[i]);
}

/* "1x10 -> 1x10", by the first operand. */
static void describe(struct lowered *l, uint32_t a, uint32_t d)
{
	char from[44], to[44];

	put_dims(lower_t(l, a), from, sizeof(from));
	put_dims(lower_t(l, d), to, sizeof(to));
	snprintf(l->shapes[l->layer], sizeof(l->shapes[0]), "%s -> %s", from, to);
}

static int same_count(struct lowered *l, uint32_t a, uint32_t d)
{
	uint64_t x = lower_t(l, a)->count, y = lower_t(l, d)->count;

	if (x == y)
		return 0;
	return lower_fail(l, EINVAL, "%llu elements become %llu", (unsigned long long)x,
			  (unsigned long long)y);
}

/* ---- broadcasting ----------------------------------------------------------------- */

/* The result's dimensions without those of 1, neighbours merged that behave alike; each
 * operand moves along one or repeats. */
struct shape {
	uint32_t count;
	struct {
		uint32_t size;
		bool moves[2];
	} dim[NPUC_RANK + 1];
};

static void add_dim(struct shape *s, uint32_t size, bool a, bool b)
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

static int broadcast(struct lowered *l, uint32_t a, uint32_t b, uint32_t d,
		     struct shape *s)
{
	const struct npuc_tensor *x = lower_t(l, a), *y = lower_t(l, b);
	uint32_t rank = x->rank > y->rank ? x->rank : y->rank, dims[NPUC_RANK];

	s->count = 0;
	for (uint32_t i = 0; i < rank; i++) {
		uint32_t xa = i + x->rank, yb = i + y->rank;
		uint32_t n = xa < rank ? 1 : (uint32_t)x->dims[xa - rank];
		uint32_t m = yb < rank ? 1 : (uint32_t)y->dims[yb - rank];

		if (n != m && n != 1 && m != 1)
			return lower_fail(l, EINVAL, "shapes do not broadcast: %u and %u",
					  n, m);
		dims[i] = n > m ? n : m;
		add_dim(s, dims[i], n > 1, m > 1);
	}
	return lower_dims(l, d, rank, dims);
}

/* Operand which becomes [elements][copies], each element repeated: a convolution of one
 * channel with ones, times exactly 1. */
static int expand(struct lowered *l, uint32_t *operand, enum npuc_type type,
		  uint64_t elements, uint32_t copies)
{
	int32_t *unit = lower_own(l, 8);
	int8_t *weights = lower_own(l, copies);
	uint32_t to;
	struct step *s;
	int rc;

	if (!unit || !weights)
		return -ENOMEM;
	if (elements > 65535 || copies > EXPAND_MAX)
		return lower_fail(l, ENOTSUP,
				  "%llu elements that each are used for %u others",
				  (unsigned long long)elements, copies);
	memset(weights, 1, copies);
	unit[0] = INT32_C(1) << 30;
	unit[1] = 1;
	rc = lower_value(l, elements * copies, NULL, &to);
	if (rc)
		return rc;
	s = lower_step(l, STEP_CONV, *operand, NPUC_NONE, to);
	if (!s)
		return -ENOMEM;
	s->u.conv = (struct hal_npu_conv){
		.size = (uint32_t)sizeof(s->u.conv),
		.h = (uint32_t)elements,
		.w = 1,
		.c = 1,
		.oh = (uint32_t)elements,
		.ow = 1,
		.n = copies,
		.kh = 1,
		.kw = 1,
		.stride_h = 1,
		.stride_w = 1,
		.dilation_h = 1,
		.dilation_w = 1,
		.groups = 1,
		.weights = weights,
		.out = {.mult = unit,
			.shift = unit + 1,
			.min = quant_min(type),
			.max = quant_max(type)},
		.flags = type == NPUC_UINT8 ? HAL_NPU_A_UINT8 | HAL_NPU_D_UINT8 : 0,
	};
	*operand = to;
	return 0;
}

/* The last dimension must move for both operands; one that repeats there is expanded. */
static int expand_last(struct lowered *l, struct shape *s, uint32_t which,
		       uint32_t *operand, enum npuc_type type)
{
	struct shape to = {0};
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
	rc = expand(l, operand, type, elements, copies);
	for (uint32_t i = 0; i < last; i++)
		add_dim(&to, s->dim[i].size, s->dim[i].moves[0], s->dim[i].moves[1]);
	if (copies != size)
		add_dim(&to, size / copies, which ? other : false, which ? false : other);
	add_dim(&to, copies, which ? other : true, which ? true : other);
	*s = to;
	return rc;
}

/* A piece of two dimensions: rows of both operands, or one row for all. */
struct rows {
	uint32_t rows, bytes;
	uint64_t a, b, d; /* offsets */
	uint32_t repeat;  /* HAL_NPU_x_REPEAT */
};

typedef int (*rows_fn)(struct lowered *l, const struct rows *r, const uint32_t v[3],
		       const void *user);

static int each_rows(struct lowered *l, const struct shape *s, const uint32_t v[3],
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
	if (pieces > PIECES_MAX)
		return lower_fail(l, ENOTSUP, "broadcasting in %llu pieces; at most %u",
				  (unsigned long long)pieces, PIECES_MAX);
	for (uint64_t p = 0; !rc && p < pieces; p++) {
		uint64_t rest = p;
		uint64_t step[2] = {
			(uint64_t)r.bytes * (r.repeat & HAL_NPU_A_REPEAT ? 1 : r.rows),
			(uint64_t)r.bytes * (r.repeat & HAL_NPU_B_REPEAT ? 1 : r.rows)};

		r.a = r.b = 0;
		r.d = p * r.rows * r.bytes;
		for (uint32_t i = outer; i--;) {
			uint64_t at = rest % s->dim[i].size;

			rest /= s->dim[i].size;
			r.a += s->dim[i].moves[0] ? at * step[0] : 0;
			r.b += s->dim[i].moves[1] ? at * step[1] : 0;
			step[0] *= s->dim[i].moves[0] ? s->dim[i].size : 1;
			step[1] *= s->dim[i].moves[1] ? s->dim[i].size : 1;
		}
		rc = fn(l, &r, v, user);
	}
	return rc;
}

static int elementwise(struct lowered *l, uint32_t options, rows_fn fn,
		       int (*prepare)(struct lowered *l, const uint32_t v[3], void *op),
		       void *op, int32_t *min, int32_t *max)
{
	uint32_t act = lower_option_u8(l, options, ELEMENTWISE_ACT), v[3];
	enum npuc_type type;
	struct shape s;
	int rc = lower_counts(l, 2, 2);

	if (!rc)
		rc = lower_operand(l, 0, &v[0]);
	if (!rc)
		rc = lower_operand(l, 1, &v[1]);
	if (!rc)
		rc = lower_result(l, &v[2]);
	if (!rc)
		rc = lower_same_type(l, v[0], v[1]);
	if (!rc)
		rc = lower_same_type(l, v[0], v[2]);
	if (!rc)
		rc = broadcast(l, v[0], v[1], v[2], &s);
	if (!rc)
		rc = lower_range(l, act, v[2], min, max);
	if (!rc)
		rc = prepare(l, v, op);
	if (rc)
		return rc;
	describe(l, v[0], v[2]);
	type = lower_t(l, v[2])->type;
	for (uint32_t which = 0; which < 2 && !rc; which++)
		if (s.count && !s.dim[s.count - 1].moves[which])
			rc = expand_last(l, &s, which, &v[which], type);
	return rc ? rc : each_rows(l, &s, v, fn, op);
}

static int prepare_add(struct lowered *l, const uint32_t v[3], void *user)
{
	struct hal_npu_add *op = user;
	const struct npuc_tensor *a = lower_t(l, v[0]), *b = lower_t(l, v[1]);
	const struct npuc_tensor *d = lower_t(l, v[2]);
	/* In float up to here, as TensorFlow Lite has it. */
	const float larger = a->scale > b->scale ? a->scale : b->scale;
	const double twice = 2 * larger;
	const float fine = (float)(1 << 20) * d->scale;
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
		.left_shift = 20,
		.min = op->min,
		.max = op->max,
		.flags = u8_flag(l, v[0],
				 HAL_NPU_A_UINT8 | HAL_NPU_B_UINT8 | HAL_NPU_D_UINT8),
	};
	return 0;
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

int lower_add(struct lowered *l)
{
	struct hal_npu_add op = {0};

	return elementwise(l, OPTIONS_ADD, add_rows, prepare_add, &op, &op.min, &op.max);
}

static int prepare_mul(struct lowered *l, const uint32_t v[3], void *user)
{
	struct hal_npu_mul *op = user;
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
		.min = op->min,
		.max = op->max,
		.flags = u8_flag(l, v[0],
				 HAL_NPU_A_UINT8 | HAL_NPU_B_UINT8 | HAL_NPU_D_UINT8),
	};
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

int lower_mul(struct lowered *l)
{
	struct hal_npu_mul op = {0};

	return elementwise(l, OPTIONS_MUL, mul_rows, prepare_mul, &op, &op.min, &op.max);
}

/* ---- functions of one byte -------------------------------------------------------- */

static int lut_step(struct lowered *l, uint32_t a, uint32_t d, const uint8_t *table)
{
	struct step *s = lower_step(l, STEP_LUT, a, NPUC_NONE, d);

	if (!s)
		return -ENOMEM;
	describe(l, a, d);
	s->u.lut = (struct hal_npu_lut){.size = (uint32_t)sizeof(s->u.lut),
					.bytes = (uint32_t)lower_t(l, d)->count,
					.table = table};
	return 0;
}

static int unary(struct lowered *l, uint32_t *a, uint32_t *d)
{
	int rc = lower_counts(l, 1, 1);

	if (!rc)
		rc = lower_operand(l, 0, a);
	if (!rc)
		rc = lower_result(l, d);
	return rc ? rc : same_count(l, *a, *d);
}

static int rescale(struct lowered *l, uint32_t a, uint32_t d, double real, uint32_t act)
{
	uint8_t *table = lower_own(l, 256);
	struct quant_mult q;
	int32_t min, max;
	int rc = lower_range(l, act, d, &min, &max);

	if (rc || !table)
		return rc ? rc : -ENOMEM;
	if (!isfinite(real))
		return lower_fail(l, ENOTSUP, "the ratio of scales is not finite");
	q = quant_of(real);
	if (q.shift > 22) /* 9 bits stay in 32 */
		return lower_fail(l, ENOTSUP, "a scale that grows %g times", real);
	quant_table_rescale(side(l, a), side(l, d), q, min, max, table);
	return lut_step(l, a, d, table);
}

int lower_relu(struct lowered *l)
{
	uint32_t code = lower_op(l)->code, a, d;
	uint32_t act = code == NPUC_RELU    ? QUANT_ACT_RELU
		       : code == NPUC_RELU6 ? QUANT_ACT_RELU6
					    : QUANT_ACT_RELU_N1_TO_1;
	float real;
	int rc = unary(l, &a, &d);

	if (!rc)
		rc = lower_same_type(l, a, d);
	if (rc)
		return rc;
	real = lower_t(l, a)->scale / lower_t(l, d)->scale;
	return rescale(l, a, d, (double)real, act);
}

int lower_function(struct lowered *l)
{
	bool logistic = lower_op(l)->code == NPUC_LOGISTIC;
	uint8_t *table;
	uint32_t a, d;
	int rc = unary(l, &a, &d);

	if (!rc)
		rc = lower_same_type(l, a, d);
	if (rc)
		return rc;
	if (logistic && lower_t(l, d)->scale != 1.0f / 256)
		return lower_fail(l, ENOTSUP, "output scale %g; only 1/256",
				  (double)lower_t(l, d)->scale);
	table = lower_own(l, 256);
	if (!table)
		return -ENOMEM;
	quant_table_float(side(l, a), side(l, d), logistic ? quant_logistic : tanhf,
			  table);
	return lut_step(l, a, d, table);
}

int lower_quantize(struct lowered *l)
{
	const struct model_op *op = lower_op(l);
	uint32_t a, d;
	int rc;

	/* At the edge the host does it: the device's input is the result. */
	if (op->input_count == 1 && op->output_count == 1 && op->inputs[0] != NPUC_NONE &&
	    op->outputs[0] != NPUC_NONE &&
	    lower_t(l, op->inputs[0])->type == NPUC_FLOAT32 &&
	    l->values[op->outputs[0]].input) {
		snprintf(l->shapes[l->layer], sizeof(l->shapes[0]), "on the host");
		return 0;
	}
	rc = unary(l, &a, &d);
	if (rc)
		return rc;
	return rescale(l, a, d,
		       (double)lower_t(l, a)->scale / (double)lower_t(l, d)->scale,
		       QUANT_ACT_NONE);
}

int lower_dequantize(struct lowered *l)
{
	const struct model_op *op = lower_op(l);
	uint32_t a;
	int rc = lower_operand(l, 0, &a);

	if (rc)
		return rc;
	for (uint32_t i = 0; op->output_count == 1 && i < l->m->output_count; i++)
		if (l->m->outputs[i] == op->outputs[0] && l->output_tensors[i] == a) {
			snprintf(l->shapes[l->layer], sizeof(l->shapes[0]),
				 "on the host");
			return 0;
		}
	return lower_fail(l, ENOTSUP, "float32 inside the model");
}

/* ---- softmax ---------------------------------------------------------------------- */

int lower_softmax(struct lowered *l)
{
	const struct model_op *op = lower_op(l);
	const struct npuc_tensor *t;
	struct flat f = l->m->flat;
	uint32_t a, d, cols;
	int32_t *table;
	struct step *s;
	float beta;
	int rc = unary(l, &a, &d);

	if (!rc)
		rc = lower_same_type(l, a, d);
	if (rc)
		return rc;
	t = lower_t(l, d);
	if (t->scale != 1.0f / 256 || t->zero_point != quant_min(t->type))
		return lower_fail(l, ENOTSUP,
				  "output scale %g, zero point %d; only 1/256 and %d",
				  (double)t->scale, t->zero_point, quant_min(t->type));
	t = lower_t(l, a);
	cols = t->rank ? (uint32_t)t->dims[t->rank - 1] : 1;
	if (cols > SOFTMAX_COLS)
		return lower_fail(l, ENOTSUP, "rows of %u; at most %u", cols,
				  SOFTMAX_COLS);
	beta = op->options_type == OPTIONS_SOFTMAX
		       ? flat_f32(&f, op->options, SOFTMAX_BETA, 0)
		       : 1;
	table = lower_own(l, 256 * sizeof(*table));
	if (!table)
		return -ENOMEM;
	if (!quant_table_softmax((double)beta, (double)t->scale, table))
		return lower_fail(l, ENOTSUP, "beta %g times scale %g is too small",
				  (double)beta, (double)t->scale);
	s = lower_step(l, STEP_SOFTMAX, a, NPUC_NONE, d);
	if (!s)
		return -ENOMEM;
	describe(l, a, d);
	s->u.softmax = (struct hal_npu_softmax){
		.size = (uint32_t)sizeof(s->u.softmax),
		.flags = u8_flag(l, a, HAL_NPU_A_UINT8 | HAL_NPU_D_UINT8),
		.rows = (uint32_t)(t->count / cols),
		.cols = cols,
		.exp = table};
	return 0;
}

/* ---- moving ----------------------------------------------------------------------- */

int lower_reshape(struct lowered *l)
{
	uint32_t a, d;
	int rc = lower_counts(l, 1, 2);

	if (!rc)
		rc = lower_operand(l, 0, &a);
	if (!rc)
		rc = lower_result(l, &d);
	if (!rc)
		rc = same_count(l, a, d);
	if (!rc)
		rc = lower_same_type(l, a, d);
	if (rc)
		return rc;
	describe(l, a, d);
	return lower_alias(l, a, d);
}

/* rows of bytes, from a at a_at to d at d_at. */
static int copy_step(struct lowered *l, uint32_t a, uint64_t a_at, uint64_t a_stride,
		     uint32_t d, uint64_t d_at, uint64_t d_stride, uint64_t rows,
		     uint64_t bytes)
{
	struct step *s = lower_step(l, STEP_COPY, a, NPUC_NONE, d);

	if (!s)
		return -ENOMEM;
	s->u.copy = (struct hal_npu_copy){.size = (uint32_t)sizeof(s->u.copy),
					  .rows = (uint32_t)rows,
					  .bytes = (uint32_t)bytes,
					  .a_stride = (uint32_t)a_stride,
					  .d_stride = (uint32_t)d_stride,
					  .a.offset = (uint32_t)a_at,
					  .d.offset = (uint32_t)d_at};
	return 0;
}

static uint64_t product(const struct npuc_tensor *t, uint32_t from, uint32_t to)
{
	uint64_t p = 1;

	for (uint32_t i = from; i < to; i++)
		p *= (uint64_t)t->dims[i];
	return p;
}

int lower_concat(struct lowered *l)
{
	const struct model_op *op = lower_op(l);
	int32_t wanted = lower_option(l, OPTIONS_CONCATENATION, CONCATENATION_AXIS, 0);
	const struct npuc_tensor *out;
	uint64_t at = 0, outer, row;
	uint32_t d, a, axis;
	int rc = lower_result(l, &d);

	if (rc)
		return rc;
	out = lower_t(l, d);
	axis = (uint32_t)(wanted < 0 ? wanted + (int64_t)out->rank : wanted);
	if (axis >= out->rank)
		return lower_fail(l, EINVAL, "axis %d of %u dimensions", wanted,
				  out->rank);
	if (lower_option_u8(l, OPTIONS_CONCATENATION, CONCATENATION_ACT))
		return lower_fail(l, ENOTSUP, "a fused activation");
	outer = product(out, 0, axis);
	row = product(out, axis, out->rank);
	/* Every part is checked before the first is copied: a part made by this very
	 * layer would otherwise pass. */
	for (uint32_t i = 0; !rc && i < op->input_count; i++) {
		const struct npuc_tensor *t;
		uint32_t dims[NPUC_RANK];

		rc = lower_operand(l, i, &a);
		if (!rc)
			rc = lower_same_quant(l, a, d);
		if (rc)
			break;
		t = lower_t(l, a);
		if (t->scale != out->scale)
			return lower_fail(l, ENOTSUP,
					  "tensor '%.80s' has another scale than the "
					  "output",
					  t->name);
		for (uint32_t k = 0; k < out->rank; k++)
			dims[k] = (uint32_t)(k == axis && t->rank == out->rank
						     ? t->dims[k]
						     : out->dims[k]);
		rc = lower_dims(l, a, out->rank, dims);
		if (!rc)
			at += product(t, axis, t->rank);
	}
	if (rc)
		return rc;
	if (at != row)
		return lower_fail(l, EINVAL, "operands have %llu along axis %u, not %llu",
				  (unsigned long long)at, axis, (unsigned long long)row);
	describe(l, op->inputs[0], d);
	at = 0;
	for (uint32_t i = 0; !rc && i < op->input_count; i++) {
		uint64_t part = product(lower_t(l, op->inputs[i]), axis, out->rank);

		rc = copy_step(l, op->inputs[i], 0, part, d, at, row, outer, part);
		at += part;
	}
	return rc;
}

/* ---- padding ---------------------------------------------------------------------- */

/* Dimensions that are padded, the others merged into those in front of them. */
struct pads {
	uint32_t count;
	struct {
		uint64_t in, out, before;
	} dim[NPUC_RANK];
};

static int find_pads(struct lowered *l, uint32_t a, uint32_t d, struct pads *p)
{
	const struct npuc_tensor *x = lower_t(l, a);
	const int32_t *amounts;
	uint32_t dims[NPUC_RANK];
	int rc;

	p->count = 0;
	rc = lower_ints(l, 1, false, 2 * (uint64_t)x->rank, &amounts, NULL);
	if (rc)
		return rc;
	for (uint32_t i = 0; i < x->rank; i++) {
		const int32_t *pair = amounts + (size_t)2 * i;
		int64_t before = pair[0], after = pair[1];
		int64_t out = before + after + x->dims[i];
		uint32_t last = p->count - 1;

		if (before < 0 || after < 0 || out > INT32_MAX)
			return lower_fail(l, EINVAL, "paddings %d and %d of dimension %u",
					  pair[0], pair[1], i);
		dims[i] = (uint32_t)out;
		if (p->count && !before && !after) {
			p->dim[last].in *= (uint64_t)x->dims[i];
			p->dim[last].out *= (uint64_t)x->dims[i];
			p->dim[last].before *= (uint64_t)x->dims[i];
			continue;
		}
		p->dim[p->count].in = (uint64_t)x->dims[i];
		p->dim[p->count].out = (uint64_t)out;
		p->dim[p->count++].before = (uint64_t)before;
	}
	return lower_dims(l, d, x->rank, dims);
}

static int pad_copies(struct lowered *l, uint32_t a, uint32_t d, const struct pads *p)
{
	uint32_t inner = p->count < 2 ? p->count : 2, outer = p->count - inner;
	uint64_t bytes = p->dim[p->count - 1].in, row = p->dim[p->count - 1].out;
	uint64_t rows = inner == 2 ? p->dim[outer].in : 1, pieces = 1;
	int rc = 0;

	for (uint32_t i = 0; i < outer; i++)
		pieces *= p->dim[i].in;
	if (pieces > PIECES_MAX)
		return lower_fail(l, ENOTSUP, "padding in %llu pieces; at most %u",
				  (unsigned long long)pieces, PIECES_MAX);
	for (uint64_t i = 0; !rc && i < pieces; i++) {
		uint64_t step = inner == 2 ? row * p->dim[outer].out : row, rest = i;
		uint64_t at = p->dim[p->count - 1].before +
			      (inner == 2 ? p->dim[outer].before * row : 0);

		for (uint32_t k = outer; k--;) {
			at += (rest % p->dim[k].in + p->dim[k].before) * step;
			rest /= p->dim[k].in;
			step *= p->dim[k].out;
		}
		rc = copy_step(l, a, i * rows * bytes, bytes, d, at, row, rows, bytes);
	}
	return rc;
}

/* PADV2's third operand: one number of the output's own quantization. */
static int pad_value(struct lowered *l, uint32_t d, uint32_t *value)
{
	const struct npuc_tensor *t;
	uint32_t v;
	int rc;

	*value = (uint32_t)lower_t(l, d)->zero_point & 0xff;
	if (lower_op(l)->code == NPUC_PAD)
		return 0;
	rc = lower_operand(l, 2, &v);
	if (!rc)
		rc = lower_same_quant(l, v, d);
	if (rc)
		return rc;
	t = lower_t(l, v);
	if (!t->data || t->count != 1)
		return lower_fail(l, ENOTSUP, "tensor '%.80s' must be one constant",
				  t->name);
	*value = *(const uint8_t *)t->data;
	return 0;
}

/* What npuc_fuse_pads must know of an image padded above, below, left and right. */
static void note_border(struct lowered *l, uint32_t a, uint32_t d, uint32_t value)
{
	const struct npuc_tensor *x = lower_t(l, a), *y = lower_t(l, d);
	const int32_t *amounts;

	if (x->rank != 4 || x->dims[0] != 1 || y->dims[0] != 1 ||
	    x->dims[3] != y->dims[3] || lower_ints(l, 1, false, 8, &amounts, NULL))
		return;
	l->values[d].pad = (struct bordered){
		.inner = a,
		.h = (uint32_t)x->dims[1],
		.w = (uint32_t)x->dims[2],
		.top = (uint32_t)amounts[2],
		.left = (uint32_t)amounts[4],
		.border = y->type == NPUC_UINT8 ? (int32_t)value : (int8_t)value,
	};
}

/* The machine's padding counts as the operand's zero point.  No window may lie all
 * outside the image. */
static bool can_fuse(const struct hal_npu_conv *op, const struct bordered *pad)
{
	uint64_t top = (uint64_t)pad->top + op->pad_top;
	uint64_t left = (uint64_t)pad->left + op->pad_left;

	return pad->border == op->a_zero && !op->a.offset && top <= PADDING_MAX &&
	       left <= PADDING_MAX && top <= (uint64_t)(op->kh - 1) * op->dilation_h &&
	       left <= (uint64_t)(op->kw - 1) * op->dilation_w &&
	       (uint64_t)(op->oh - 1) * op->stride_h < pad->h + top &&
	       (uint64_t)(op->ow - 1) * op->stride_w < pad->w + left;
}

static void mark_read(struct lowered *l, uint32_t v)
{
	if (v != NPUC_NONE)
		l->values[npuc_root(l, v)].read = true;
}

void npuc_fuse_pads(struct lowered *l, bool keep)
{
	uint32_t fused = 0, used = 0;

	for (uint32_t i = 0; i < l->step_count; i++) {
		struct step *s = &l->steps[i];
		const struct bordered *pad =
			s->kind == STEP_CONV ? &l->values[s->a].pad : NULL;

		if (!pad || pad->inner == NPUC_NONE || !can_fuse(&s->u.conv, pad))
			continue;
		s->u.conv.h = pad->h;
		s->u.conv.w = pad->w;
		s->u.conv.pad_top += pad->top;
		s->u.conv.pad_left += pad->left;
		s->a = pad->inner;
		fused++;
	}
	if (!fused || keep)
		return;
	for (uint32_t i = 0; i < l->step_count; i++) {
		mark_read(l, l->steps[i].a);
		mark_read(l, l->steps[i].b);
	}
	for (uint32_t i = 0; i < l->step_count; i++) {
		const struct value *d = &l->values[l->steps[i].d];

		if (d->pad.inner == NPUC_NONE || d->output || d->read)
			l->steps[used++] = l->steps[i];
	}
	l->step_count = used;
}

int lower_pad(struct lowered *l)
{
	uint32_t operands = lower_op(l)->code == NPUC_PAD ? 2 : 3, a, d, value;
	struct pads p;
	struct step *s;
	int rc = lower_counts(l, operands, operands);

	if (!rc)
		rc = lower_operand(l, 0, &a);
	if (!rc)
		rc = lower_result(l, &d);
	if (!rc)
		rc = lower_same_quant(l, a, d);
	if (!rc)
		rc = find_pads(l, a, d, &p);
	if (!rc)
		rc = pad_value(l, d, &value);
	if (rc)
		return rc;
	describe(l, a, d);
	if (!p.count)
		return lower_alias(l, a, d);
	note_border(l, a, d, value);
	s = lower_step(l, STEP_FILL, NPUC_NONE, NPUC_NONE, d);
	if (!s)
		return -ENOMEM;
	/* Places are multiples of NPUC_ALIGN long: a few bytes more do no harm. */
	s->u.fill.bytes = (uint32_t)((lower_t(l, d)->count + 3) / 4 * 4);
	s->u.fill.pattern = value * 0x01010101u;
	return pad_copies(l, a, d, &p);
}
