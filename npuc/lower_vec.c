/* SPDX-License-Identifier: Apache-2.0 */
/* lower_vec.c - operators that work element by element or row by row, and padding. */
#include "lower.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "lower_int16.h"
#include "lower_move.h"
#include "lower_wide.h"
#include "quant.h"

/* Kinds of union BuiltinOptions, and fields of their tables. */
enum {
	OPTIONS_SOFTMAX = 9,
	SOFTMAX_BETA = 0,
	OPTIONS_GELU = 116,
	GELU_APPROXIMATE = 0,
};

#define SOFTMAX_COLS 4095u
#define PADDING_MAX  255u /* of a convolution */

uint32_t lower_u8(const struct lowered *l, uint32_t tensor, uint32_t flags)
{
	return lower_t(l, tensor)->type == NPUC_UINT8 ? flags : 0;
}

struct quant_side lower_side(const struct lowered *l, uint32_t tensor)
{
	const struct npuc_tensor *t = lower_t(l, tensor);

	return (struct quant_side){t->type, t->scale, t->zero_point};
}

static void put_dims(const struct npuc_tensor *t, char *text, size_t size)
{
	int used = 0;

	snprintf(text, size, "%s", t->rank ? "" : "scalar");
	for (uint32_t i = 0; i < t->rank && used < (int)size; i++)
		used += snprintf(text + used, size - (size_t)used, "%s%d", i ? "x" : "",
				 t->dims[i]);
}

void lower_describe(struct lowered *l, uint32_t a, uint32_t d)
{
	char from[44], to[44];

	put_dims(lower_t(l, a), from, sizeof(from));
	put_dims(lower_t(l, d), to, sizeof(to));
	snprintf(l->shapes[l->layer], sizeof(l->shapes[0]), "%s -> %s", from, to);
}

void lower_macs(struct lowered *l, uint64_t macs)
{
	l->macs[l->layer] = macs;
}

/* ---- functions of one byte -------------------------------------------------------- */

int lower_lut(struct lowered *l, uint32_t a, uint32_t d, uint64_t bytes,
	      const uint8_t *table)
{
	struct step *s = lower_step(l, STEP_LUT, a, NPUC_NONE, d);

	if (!s)
		return -ENOMEM;
	s->u.lut = (struct hal_npu_lut){.size = (uint32_t)sizeof(s->u.lut),
					.bytes = (uint32_t)bytes,
					.table = table};
	return 0;
}

int lower_unary(struct lowered *l, uint32_t *a, uint32_t *d)
{
	int rc = lower_counts(l, 1, 1);

	if (!rc)
		rc = lower_operand(l, 0, a);
	if (!rc)
		rc = lower_result(l, d);
	return rc ? rc : lower_same_dims(l, *a, *d);
}

int lower_unary16(struct lowered *l, uint32_t *a, uint32_t *d)
{
	int rc = lower_counts(l, 1, 1);

	if (!rc)
		rc = lower_operand16(l, 0, a);
	if (!rc)
		rc = lower_result16(l, d);
	return rc ? rc : lower_same_dims(l, *a, *d);
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
	if (lower_t(l, a)->type == NPUC_INT16 || lower_t(l, d)->type == NPUC_INT16)
		return int16_rescale(l, a, d, real, min, max);
	q = quant_of(real);
	if (q.shift > 22) /* 9 bits stay in 32 */
		return lower_fail(l, ENOTSUP,
				  "a scale that grows %g times is not supported", real);
	quant_table_rescale(lower_side(l, a), lower_side(l, d), q, min, max, table);
	lower_describe(l, a, d);
	return lower_lut(l, a, d, lower_t(l, d)->count, table);
}

int lower_relu(struct lowered *l)
{
	uint32_t code = lower_op(l)->code, a, d;
	uint32_t act = code == NPUC_RELU          ? QUANT_ACT_RELU
		       : code == NPUC_RELU6       ? QUANT_ACT_RELU6
		       : code == NPUC_RELU_0_TO_1 ? QUANT_ACT_RELU_0_TO_1
						  : QUANT_ACT_RELU_N1_TO_1;
	float real;
	int rc = lower_unary16(l, &a, &d);

	if (!rc)
		rc = lower_same_type(l, a, d);
	if (rc)
		return rc;
	if (lower_t(l, a)->type == NPUC_INT16 && act != QUANT_ACT_RELU &&
	    act != QUANT_ACT_RELU6)
		return lower_fail(l, ENOTSUP,
				  "tensor '%.80s' is int16, which TensorFlow Lite does "
				  "not support for this operator",
				  lower_t(l, a)->name);
	real = lower_t(l, a)->scale / lower_t(l, d)->scale;
	return rescale(l, a, d, (double)real, act);
}

/* Fill the table of the operator in work; 0 after lower_fail. */
static bool unary_table(struct lowered *l, uint32_t a, uint32_t d, uint8_t *table)
{
	const struct quant_side in = lower_side(l, a), out = lower_side(l, d);
	bool approximate = lower_option_u8(l, OPTIONS_GELU, GELU_APPROXIMATE), ok = true;

	switch (lower_op(l)->code) {
	case NPUC_EXP:
		quant_table_float(in, out, expf, table);
		break;
	case NPUC_ELU:
		quant_table_float(in, out, quant_elu, table);
		break;
	case NPUC_GELU:
		quant_table_float(in, out, approximate ? quant_gelu_tanh : quant_gelu,
				  table);
		break;
	case NPUC_ABS:
		quant_table_abs(in, out, table);
		break;
	case NPUC_LOG:
		quant_table_log(in, out, table);
		break;
	case NPUC_SQRT:
		quant_table_sqrt(in, out, table);
		break;
	case NPUC_RSQRT:
		ok = quant_table_rsqrt(in, out, table);
		break;
	case NPUC_NEG:
		ok = in.scale == out.scale && in.zero_point == -out.zero_point;
		quant_table_negative(table);
		break;
	default:
		ok = quant_table_hard_swish(in, out, table);
		break;
	}
	if (!ok)
		lower_fail(l, ENOTSUP,
			   "scales %g and %g, zero points %d and %d are not supported "
			   "for this operator",
			   (double)in.scale, (double)out.scale, in.zero_point,
			   out.zero_point);
	return ok;
}

/* A function of 8 bits, whatever it is: a table of 256 bytes. */
int lower_unary_table(struct lowered *l)
{
	uint32_t code = lower_op(l)->code, a, d;
	uint8_t *table;
	int rc = lower_unary(l, &a, &d);

	if (!rc)
		rc = lower_same_type(l, a, d);
	if (rc)
		return rc;
	if (lower_t(l, a)->type == NPUC_UINT8 && code != NPUC_HARD_SWISH &&
	    code != NPUC_GELU)
		return lower_fail(l, ENOTSUP,
				  "tensor '%.80s' is uint8, which TensorFlow Lite does "
				  "not support for this operator",
				  lower_t(l, a)->name);
	table = lower_own(l, 256);
	if (!table)
		return -ENOMEM;
	if (!unary_table(l, a, d, table))
		return -ENOTSUP;
	lower_describe(l, a, d);
	return lower_lut(l, a, d, lower_t(l, d)->count, table);
}

/* Look up the first operand in the second, whose 256 elements stand in the order of the
 * numbers; the machine's tables are in the order of the bytes. */
int lower_given_table(struct lowered *l)
{
	const struct npuc_tensor *t;
	const uint8_t *given;
	uint32_t a, d, numbers = 0, first;
	uint8_t *table;
	int rc = lower_counts(l, 2, 2);

	if (!rc)
		rc = lower_operand(l, 0, &a);
	if (!rc)
		rc = lower_take(l, 1, &numbers);
	if (!rc)
		rc = lower_result(l, &d);
	if (!rc)
		rc = lower_same_dims(l, a, d);
	if (!rc)
		rc = lower_same_type(l, numbers, d);
	if (rc)
		return rc;
	t = lower_t(l, numbers);
	given = l->values[numbers].data;
	if (!given || t->count != 256)
		return lower_fail(l, EINVAL,
				  "tensor '%.80s' must be a constant of 256 elements",
				  t->name);
	table = lower_own(l, 256);
	if (!table)
		return -ENOMEM;
	first = lower_t(l, a)->type == NPUC_INT8 ? 128 : 0;
	for (uint32_t i = 0; i < 256; i++)
		table[(i + first) & 255] = given[i];
	lower_describe(l, a, d);
	return lower_lut(l, a, d, lower_t(l, d)->count, table);
}

/* In TensorFlow Lite lines between 256 points, here any of 65536. */
static int function16(struct lowered *l, uint32_t a, uint32_t d, bool logistic)
{
	float in = lower_t(l, a)->scale, out = lower_t(l, d)->scale;
	uint64_t count = lower_t(l, a)->count;
	int16_t *table = lower_own(l, 65536 * sizeof(*table));

	if (!table)
		return -ENOMEM;
	if (out != 1.0f / 32768)
		return lower_fail(l, ENOTSUP,
				  "output scale %g; only 1/32768 is supported",
				  (double)out);
	if (count > INT32_MAX / 2)
		return lower_fail(l, ENOTSUP,
				  "%llu elements; less than 2^30 are supported",
				  (unsigned long long)count);
	if (!quant_table_sigmoid(in, logistic, table))
		return lower_fail(l, ENOTSUP,
				  "input scale %g; less than 5.3 is supported",
				  (double)in);
	lower_describe(l, a, d);
	return wide_table(l, a, d, (uint32_t)count, table);
}

int lower_function(struct lowered *l)
{
	bool logistic = lower_op(l)->code == NPUC_LOGISTIC;
	uint8_t *table;
	uint32_t a, d;
	int rc = lower_unary16(l, &a, &d);

	if (!rc)
		rc = lower_same_type(l, a, d);
	if (rc)
		return rc;
	if (lower_t(l, a)->type == NPUC_INT16)
		return function16(l, a, d, logistic);
	if (logistic && lower_t(l, d)->scale != 1.0f / 256)
		return lower_fail(l, ENOTSUP, "output scale %g; only 1/256 is supported",
				  (double)lower_t(l, d)->scale);
	table = lower_own(l, 256);
	if (!table)
		return -ENOMEM;
	quant_table_float(lower_side(l, a), lower_side(l, d),
			  logistic ? quant_logistic : tanhf, table);
	lower_describe(l, a, d);
	return lower_lut(l, a, d, lower_t(l, d)->count, table);
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
		return lower_same_dims(l, op->inputs[0], op->outputs[0]);
	}
	rc = lower_unary16(l, &a, &d);
	if (rc)
		return rc;
	if (lower_t(l, a)->type != NPUC_INT16 && lower_t(l, d)->type == NPUC_INT16)
		return lower_fail(l, ENOTSUP,
				  "converting %s to int16 is not supported (nor is it in "
				  "TensorFlow Lite)",
				  npuc_type_name(lower_t(l, a)->type));
	return rescale(l, a, d,
		       (double)lower_t(l, a)->scale / (double)lower_t(l, d)->scale,
		       QUANT_ACT_NONE);
}

int lower_dequantize(struct lowered *l)
{
	const struct model_op *op = lower_op(l);
	uint32_t a;
	int rc = lower_counts(l, 1, 1);

	if (!rc)
		rc = lower_operand16(l, 0, &a);
	if (rc)
		return rc;
	for (uint32_t i = 0; op->output_count == 1 && i < l->output_count; i++)
		if (l->model_outputs[i] == op->outputs[0] && l->output_tensors[i] == a) {
			snprintf(l->shapes[l->layer], sizeof(l->shapes[0]),
				 "on the host");
			return lower_same_dims(l, a, op->outputs[0]);
		}
	return lower_fail(l, ENOTSUP,
			  "float32 is supported only at the model's inputs and outputs");
}

/* ---- softmax ---------------------------------------------------------------------- */

static int softmax16(struct lowered *l, uint32_t a, uint32_t d, float beta)
{
	const struct npuc_tensor *t = lower_t(l, a);
	float times = t->scale * beta;
	const float out = lower_t(l, d)->scale, wanted = 1.0f / 32768;

	if (fabsf(out - wanted) > 0.001f * wanted)
		return lower_fail(l, ENOTSUP,
				  "output scale %g; only 1/32768 is supported for int16",
				  (double)out);
	if (!(times >= 0) || !isfinite(times))
		return lower_fail(l, ENOTSUP,
				  "beta %g times scale %g is negative or not finite",
				  (double)beta, (double)t->scale);
	lower_describe(l, a, d);
	return wide_softmax(l, a, d, t->rank ? (uint32_t)t->dims[t->rank - 1] : 1,
			    quant_of((double)times / (10.0 / 65535)));
}

int lower_softmax(struct lowered *l)
{
	const struct model_op *op = lower_op(l);
	const struct npuc_tensor *t;
	struct flat f = l->m->flat;
	uint32_t a, d, cols;
	int32_t *table;
	struct step *s;
	float beta;
	int rc = lower_unary16(l, &a, &d);

	if (!rc)
		rc = lower_same_type(l, a, d);
	if (rc)
		return rc;
	beta = op->options_type == OPTIONS_SOFTMAX
		       ? flat_f32(&f, op->options, SOFTMAX_BETA, 0)
		       : 1;
	if (lower_t(l, a)->type == NPUC_INT16)
		return softmax16(l, a, d, beta);
	t = lower_t(l, d);
	if (t->scale != 1.0f / 256 || t->zero_point != quant_min(t->type))
		return lower_fail(
			l, ENOTSUP,
			"output scale %g, zero point %d; only 1/256 and %d are supported",
			(double)t->scale, t->zero_point, quant_min(t->type));
	t = lower_t(l, a);
	cols = t->rank ? (uint32_t)t->dims[t->rank - 1] : 1;
	if (cols > SOFTMAX_COLS)
		return lower_fail(l, ENOTSUP,
				  "rows of %u elements; at most %u are supported", cols,
				  SOFTMAX_COLS);
	table = lower_own(l, 256 * sizeof(*table));
	if (!table)
		return -ENOMEM;
	if (!quant_table_softmax((double)beta, (double)t->scale, table))
		return lower_fail(l, ENOTSUP, "beta %g times scale %g is too small",
				  (double)beta, (double)t->scale);
	s = lower_step(l, STEP_SOFTMAX, a, NPUC_NONE, d);
	if (!s)
		return -ENOMEM;
	lower_describe(l, a, d);
	s->u.softmax = (struct hal_npu_softmax){
		.size = (uint32_t)sizeof(s->u.softmax),
		.flags = lower_u8(l, a, HAL_NPU_A_UINT8 | HAL_NPU_D_UINT8),
		.rows = (uint32_t)(t->count / cols),
		.cols = cols,
		.exp = table};
	return 0;
}

/* ---- padding ---------------------------------------------------------------------- */

static int find_pads(struct lowered *l, uint32_t a, uint32_t d, struct move *m)
{
	const struct npuc_tensor *x = lower_t(l, a);
	const int32_t *amounts;
	uint32_t dims[NPUC_RANK];
	int64_t in = 1, out = 1;
	int rc = lower_ints(l, 1, false, 2 * (uint64_t)x->rank, &amounts, NULL);

	if (rc)
		return rc;
	for (uint32_t i = 0; i < x->rank; i++) {
		const int32_t *pair = amounts + (size_t)2 * i;
		int64_t size = (int64_t)pair[0] + pair[1] + x->dims[i];

		if (pair[0] < 0 || pair[1] < 0 || size > INT32_MAX)
			return lower_fail(
				l, EINVAL,
				"paddings %d and %d of dimension %u are invalid", pair[0],
				pair[1], i);
		dims[i] = (uint32_t)size;
	}
	rc = lower_dims(l, d, x->rank, dims);
	for (uint32_t i = x->rank; !rc && i--;) {
		move_add(m, (uint64_t)x->dims[i], in, out);
		m->d_at += amounts[(size_t)2 * i] * out;
		in *= x->dims[i];
		out *= dims[i];
	}
	return rc;
}

/* PADV2's third operand: one number of the output's own quantization. */
static int pad_value(struct lowered *l, uint32_t d, int32_t *value)
{
	const struct npuc_tensor *t;
	uint32_t v;
	int rc;

	*value = lower_t(l, d)->zero_point;
	if (lower_op(l)->code == NPUC_PAD)
		return 0;
	rc = lower_operand16(l, 2, &v);
	if (!rc)
		rc = lower_same_quant(l, v, d);
	if (rc)
		return rc;
	t = lower_t(l, v);
	if (!l->values[v].data || t->count != 1)
		return lower_fail(l, ENOTSUP, "tensor '%.80s' must be a single constant",
				  t->name);
	*value = quant_number(l->values[v].data, t->type);
	return 0;
}

/* What npuc_fuse_pads must know of an image padded above, below, left and right. */
static void note_border(struct lowered *l, uint32_t a, uint32_t d, int32_t value)
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
		.border = value,
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

void lower_mark_reads(struct lowered *l)
{
	for (uint32_t v = 0; v < l->value_count; v++)
		l->values[v].read = false;
	for (uint32_t i = 0; i < l->step_count; i++) {
		mark_read(l, l->steps[i].a);
		mark_read(l, l->steps[i].b);
	}
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
	lower_mark_reads(l);
	for (uint32_t i = 0; i < l->step_count; i++) {
		const struct value *d = &l->values[l->steps[i].d];

		if (d->pad.inner == NPUC_NONE || d->output || d->read)
			l->steps[used++] = l->steps[i];
	}
	l->step_count = used;
}

int lower_pad(struct lowered *l)
{
	uint32_t operands = lower_op(l)->code == NPUC_PAD ? 2 : 3, a, d, element;
	struct move m = {0};
	int32_t value;
	int rc = lower_counts(l, operands, operands);

	if (!rc)
		rc = lower_operand16(l, 0, &a);
	if (!rc)
		rc = lower_result16(l, &d);
	if (!rc)
		rc = lower_same_quant(l, a, d);
	if (!rc)
		rc = find_pads(l, a, d, &m);
	if (!rc)
		rc = pad_value(l, d, &value);
	if (rc)
		return rc;
	lower_describe(l, a, d);
	element = npuc_type_bytes(lower_t(l, a)->type);
	if (lower_t(l, a)->count == lower_t(l, d)->count)
		return lower_move(l, a, d, element, &m);
	if (element == 1 || !value) /* convolutions of int16 read bytes of 0 */
		note_border(l, a, d, value);
	rc = lower_fill(l, d, element, value);
	return rc ? rc : lower_move(l, a, d, element, &m);
}
