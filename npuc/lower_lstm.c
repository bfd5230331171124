/* SPDX-License-Identifier: Apache-2.0 */
/* lower_lstm.c - UNIDIRECTIONAL_SEQUENCE_LSTM of int8 with a cell of 16 bits.
 *
 * What the inputs give is computed for all times at once, the rest one time after the
 * other.  Gates are Q3.12 before and Q0.15 after their functions. */
#include <errno.h>
#include <math.h>

#include "lower_digits.h"
#include "lower_int16.h"
#include "lower_wide.h"

/* Kind of union BuiltinOptions, and fields of its table. */
enum {
	OPTIONS_LSTM = 71,
	LSTM_ACTIVATION = 0,
	LSTM_CELL_CLIP = 1,
	LSTM_PROJECTION_CLIP = 2,
	LSTM_TIME_MAJOR = 3,
	LSTM_DIAGONAL = 5,
	ACTIVATION_TANH = 4,
};

/* Operands: of the four gates each, in the file's order. */
enum {
	INPUT = 0,
	INPUT_WEIGHTS = 1,
	RECURRENT_WEIGHTS = 5,
	PEEPHOLE = 9,
	BIAS = 12,
	PROJECTION = 16,
	PROJECTION_BIAS = 17,
	OUTPUT_STATE = 18,
	CELL_STATE = 19,
	NORM = 20,
	OPERANDS = 24,
	HIDDEN = 4, /* of what lies between */
};

enum {
	GATES = 4,
	SUM_ABOVE = 30, /* sums are less than 2^30 in magnitude, and stored above */
};

/* Gates as they lie side by side here, by their place in the file: those of a logistic
 * function first, the two that are multiplied by the cell and by the candidates before
 * the output's. */
static const uint32_t gate_in_file[GATES] = {1, 0, 3, 2};

struct half {
	uint32_t inputs;
	int32_t zero;
	uint32_t weights; /* value: [inputs][4 * cells] */
	int32_t *bias;    /* [4 * cells], 2^30 above */
	uint64_t *largest;
	struct quant_mult *q;
};

struct lstm {
	uint32_t x, d, h, c;                 /* tensors; h, c: the states */
	uint32_t batches, times, cells, row; /* row: 4 * cells */
	uint32_t outputs;                    /* cells, unless there is a projection */
	bool time_major;
	int32_t cell_log2, clip; /* clip: 0: none */
	int32_t hidden_zero;
	struct quant_mult hidden;
	/* NPUC_NONE: there is none; else a value [cells][outputs]. */
	uint32_t projection;
	struct hal_npu_requant projected;
	int32_t projected_zero;    /* of what is projected */
	struct half in, again;     /* again: of the last output */
	uint32_t state_h, state_c; /* values */
	struct wide_function logistic, tanh, tanh_cell;
};

/* ---- operands ----------------------------------------------------------------------- */

static int left_out(struct lowered *l, uint32_t from, uint32_t to, const char *what)
{
	const struct model_op *op = lower_op(l);

	for (uint32_t i = from; i < to && i < op->input_count; i++)
		if (op->inputs[i] != NPUC_NONE)
			return lower_fail(l, ENOTSUP, "%s (tensor '%.80s') not compiled",
					  what, lower_t(l, op->inputs[i])->name);
	return 0;
}

static int options(struct lowered *l)
{
	const struct model_op *op = lower_op(l);
	int rc = 0;

	if (op->input_count != NORM && op->input_count != OPERANDS)
		return lower_fail(l, EINVAL, "%u operands; 20 or 24", op->input_count);
	if (op->inputs[INPUT_WEIGHTS] == NPUC_NONE)
		rc = lower_fail(l, ENOTSUP,
				"coupled input and forget gates (CIFG) are not compiled");
	if (!rc)
		rc = left_out(l, PEEPHOLE, BIAS, "peephole weights are");
	if (!rc && op->inputs[PROJECTION] == NPUC_NONE)
		rc = left_out(l, PROJECTION_BIAS, OUTPUT_STATE, "a bias alone is");
	if (!rc)
		rc = left_out(l, NORM, OPERANDS, "layer normalization is");
	if (!rc && lower_option_u8(l, OPTIONS_LSTM, LSTM_ACTIVATION) != ACTIVATION_TANH)
		rc = lower_fail(l, ENOTSUP,
				"an activation other than TANH is not compiled");
	if (!rc && lower_option_u8(l, OPTIONS_LSTM, LSTM_DIAGONAL))
		rc = lower_fail(l, ENOTSUP,
				"diagonal recurrent weights are not compiled");
	return rc;
}

/* A tensor's type, its size, and that it has one scale above 0. */
static int check_tensor(struct lowered *l, uint32_t tensor, enum npuc_type type,
			uint64_t count)
{
	const struct npuc_tensor *t = lower_t(l, tensor);

	if (t->type != type)
		return lower_fail(l, ENOTSUP, "tensor '%.80s' is %s instead of %s",
				  t->name, npuc_type_name(t->type), npuc_type_name(type));
	if (t->count != count)
		return lower_fail(
			l, EINVAL, "tensor '%.80s' has %llu elements instead of %llu",
			t->name, (unsigned long long)t->count, (unsigned long long)count);
	if (t->scales != 1 || !(t->scale > 0) || !isfinite(t->scale))
		return lower_fail(l, EINVAL, "tensor '%.80s' is not quantized per tensor",
				  t->name);
	return 0;
}

static int take_state(struct lowered *l, uint32_t number, enum npuc_type type,
		      uint64_t count, uint32_t *tensor)
{
	int rc = lower_take(l, number, tensor);

	if (!rc)
		rc = check_tensor(l, *tensor, type, count);
	if (rc)
		return rc;
	if (l->values[*tensor].ready)
		return lower_fail(l, ENOTSUP,
				  "tensor '%.80s' must be a variable of this layer",
				  lower_t(l, *tensor)->name);
	l->values[*tensor].ready = true;
	return 0;
}

/* The state's scale is a power of two for which the kernel has a tanh. */
static int take_scales(struct lowered *l, struct lstm *x)
{
	const struct model_op *op = lower_op(l);
	const struct npuc_tensor *c = lower_t(l, x->c), *h;
	struct flat f = l->m->flat;
	float clip = 0;
	int exponent;

	if (frexpf(c->scale, &exponent) != 0.5f || exponent - 1 < -15 ||
	    exponent - 1 > -9)
		return lower_fail(l, ENOTSUP,
				  "tensor '%.80s': scale %g of the cell; it must be a "
				  "power of two from 2^-15 to 2^-9",
				  c->name, (double)c->scale);
	x->cell_log2 = exponent - 1;
	if (op->options_type == OPTIONS_LSTM)
		clip = flat_f32(&f, op->options, LSTM_CELL_CLIP, 0);
	if (!(clip >= 0))
		return lower_fail(l, EINVAL,
				  "the cell is clipped to %g, which is invalid",
				  (double)clip);
	clip /= c->scale;
	x->clip = clip < 32767 ? (int32_t)clip : 32767;
	if (op->between_count <= HIDDEN || op->between[HIDDEN] == NPUC_NONE)
		return lower_fail(l, EINVAL,
				  "%u intermediate tensors; five are needed, the fifth "
				  "with the hidden state's quantization",
				  op->between_count);
	h = lower_t(l, op->between[HIDDEN]);
	if (!h->scales || !(h->scale > 0) || !isfinite(h->scale))
		return lower_fail(l, EINVAL, "tensor '%.80s' is not quantized", h->name);
	if (h->zero_point < -128 || h->zero_point > 127)
		return lower_fail(l, EINVAL,
				  "tensor '%.80s': zero point %d is not a valid int8",
				  h->name, h->zero_point);
	x->hidden_zero = h->zero_point;
	x->hidden = quant_of(
		(double)(float)(ldexp(1, -15) / (double)h->scale * ldexp(1, -15)));
	if (x->hidden.shift > -8 || x->hidden.shift < -31 || !x->hidden.mult)
		return lower_fail(l, ENOTSUP,
				  "tensor '%.80s': scale %g of the hidden state; it must "
				  "be more than 2^-22 and at most 4",
				  h->name, (double)h->scale);
	return 0;
}

/* How many outputs there are: the projection's rows. */
static int count_outputs(struct lowered *l, struct lstm *x)
{
	uint32_t p = lower_op(l)->inputs[PROJECTION];

	x->outputs = x->cells;
	if (p == NPUC_NONE)
		return 0;
	if (lower_t(l, p)->rank != 2 || lower_t(l, p)->dims[0] < 1)
		return lower_fail(l, EINVAL, "tensor '%.80s' must have two dimensions",
				  lower_t(l, p)->name);
	x->outputs = (uint32_t)lower_t(l, p)->dims[0];
	return 0;
}

static int take(struct lowered *l, struct lstm *x)
{
	const struct npuc_tensor *a, *w;
	uint64_t count, outputs;
	uint32_t recurrent;
	int rc = options(l);

	if (!rc)
		rc = lower_operand(l, INPUT, &x->x);
	if (!rc)
		rc = lower_take(l, RECURRENT_WEIGHTS + GATES - 1, &recurrent);
	if (!rc)
		rc = lower_result(l, &x->d);
	if (rc)
		return rc;
	a = lower_t(l, x->x);
	w = lower_t(l, recurrent);
	if (a->rank != 3 || w->rank != 2 || w->dims[0] < 1)
		return lower_fail(
			l, EINVAL,
			"the input must have three dimensions and the weights two");
	x->time_major = lower_option_u8(l, OPTIONS_LSTM, LSTM_TIME_MAJOR) != 0;
	x->batches = (uint32_t)a->dims[x->time_major];
	x->times = (uint32_t)a->dims[!x->time_major];
	x->cells = (uint32_t)w->dims[0];
	x->in.inputs = (uint32_t)a->dims[2];
	rc = count_outputs(l, x);
	if (rc)
		return rc;
	x->again.inputs = x->outputs;
	count = (uint64_t)x->batches * x->cells;
	outputs = (uint64_t)x->batches * x->outputs;
	if ((count > outputs ? count : outputs) * x->times > INT32_MAX / 64)
		return lower_fail(l, ENOTSUP,
				  "%llu results; less than 2^25 are supported",
				  (unsigned long long)count * x->times);
	x->row = GATES * x->cells;
	lower_macs(l,
		   count * x->times *
			   (GATES * (uint64_t)(x->in.inputs + x->outputs) +
			    (lower_op(l)->inputs[PROJECTION] == NPUC_NONE ? 0
									  : x->outputs)));
	rc = check_tensor(l, x->x, NPUC_INT8, a->count);
	if (!rc)
		rc = check_tensor(l, x->d, NPUC_INT8, outputs * x->times);
	if (!rc)
		rc = lower_dims(l, x->d, 3,
				(const uint32_t[]){(uint32_t)a->dims[0],
						   (uint32_t)a->dims[1], x->outputs});
	if (!rc)
		rc = take_state(l, OUTPUT_STATE, NPUC_INT8, outputs, &x->h);
	if (!rc)
		rc = take_state(l, CELL_STATE, NPUC_INT16, count, &x->c);
	return rc ? rc : take_scales(l, x);
}

/* ---- weights ------------------------------------------------------------------------ */

static int constant(struct lowered *l, uint32_t number, enum npuc_type type,
		    const uint32_t dims[2], uint32_t *tensor)
{
	const struct npuc_tensor *t;
	int rc = lower_take(l, number, tensor);

	if (rc)
		return rc;
	t = lower_t(l, *tensor);
	if (t->type != type || !l->values[*tensor].data ||
	    l->m->tensors[*tensor].unusable)
		return lower_fail(l, ENOTSUP, "tensor '%.80s' must be constant and %s",
				  t->name, npuc_type_name(type));
	if (type == NPUC_INT32)
		return lower_dims(l, *tensor, 1, dims);
	rc = lower_dims(l, *tensor, 2, dims);
	if (!rc)
		rc = check_tensor(l, *tensor, type, t->count);
	if (!rc && t->zero_point)
		rc = lower_fail(l, ENOTSUP,
				"tensor '%.80s': zero point %d; it must be 0 for weights",
				t->name, t->zero_point);
	return rc;
}

/* A gate's weights and biases; bias: the first of their operands, or NPUC_NONE. */
static int take_gate(struct lowered *l, const struct lstm *x, struct half *half,
		     uint8_t *turned, uint32_t gate, const uint32_t first[2], float scale)
{
	uint32_t weights, bias = NPUC_NONE, file = gate_in_file[gate];
	uint32_t dims[2] = {x->cells, half->inputs};
	const uint8_t *w, *b;
	int rc = constant(l, first[0] + file, NPUC_INT8, dims, &weights);

	if (!rc && first[1] != NPUC_NONE)
		rc = constant(l, first[1] + file, NPUC_INT32, dims, &bias);
	if (rc)
		return rc;
	w = l->values[weights].data;
	b = bias == NPUC_NONE ? NULL : l->values[bias].data;
	scale = lower_t(l, weights)->scale * scale / 0x1p-12f;
	for (uint32_t c = 0; c < x->cells; c++) {
		uint32_t n = gate * x->cells + c;
		int64_t start = b ? lower_number(b + (size_t)4 * c, 4) : 0;
		uint64_t largest = (uint64_t)(start < 0 ? -start : start);

		for (uint32_t i = 0; i < half->inputs; i++) {
			uint8_t bits = w[(size_t)c * half->inputs + i];
			int32_t value = quant_value(bits, NPUC_INT8);

			turned[(size_t)i * x->row + n] = bits;
			largest += (uint64_t)(value < 0 ? -value : value) * 255;
		}
		if (largest >= UINT64_C(1) << SUM_ABOVE)
			return lower_fail(l, ENOTSUP,
					  "tensor '%.80s': sums may come to %llu; less "
					  "than 2^%d is supported",
					  lower_t(l, weights)->name,
					  (unsigned long long)largest, SUM_ABOVE);
		half->bias[n] = (int32_t)start + (1 << SUM_ABOVE);
		half->largest[n] = largest;
		half->q[n] = quant_of((double)scale);
	}
	return 0;
}

static int take_half(struct lowered *l, const struct lstm *x, struct half *half,
		     const uint32_t first[2], uint32_t a)
{
	uint64_t bytes = (uint64_t)half->inputs * x->row;
	uint8_t *turned = lower_own(l, bytes);
	int rc = 0;

	half->zero = lower_t(l, a)->zero_point;
	half->bias = lower_own(l, x->row * sizeof(*half->bias));
	half->largest = lower_own(l, x->row * sizeof(*half->largest));
	half->q = lower_own(l, x->row * sizeof(*half->q));
	if (!turned || !half->bias || !half->largest || !half->q)
		return -ENOMEM;
	for (uint32_t gate = 0; !rc && gate < GATES; gate++)
		rc = take_gate(l, x, half, turned, gate, first, lower_t(l, a)->scale);
	return rc ? rc : lower_value(l, bytes, turned, &half->weights);
}

/* Outputs are what the projection makes of the hidden state. */
static int take_projection(struct lowered *l, struct lstm *x)
{
	const struct model_op *op = lower_op(l);
	const struct npuc_tensor *h = lower_t(l, x->h);
	uint32_t dims[2] = {x->outputs, x->cells}, weights, bias = NPUC_NONE;
	struct flat f = l->m->flat;
	const uint8_t *w;
	uint8_t *turned;
	int32_t *numbers;
	float clip = 0, scale;
	struct quant_mult q;
	int rc;

	x->projection = NPUC_NONE;
	if (op->inputs[PROJECTION] == NPUC_NONE)
		return 0;
	rc = constant(l, PROJECTION, NPUC_INT8, dims, &weights);
	if (!rc && op->inputs[PROJECTION_BIAS] != NPUC_NONE)
		rc = constant(l, PROJECTION_BIAS, NPUC_INT32, dims, &bias);
	if (rc)
		return rc;
	scale = lower_t(l, weights)->scale * lower_t(l, op->between[HIDDEN])->scale /
		h->scale;
	q = quant_of((double)scale);
	turned = lower_own(l, (uint64_t)x->cells * x->outputs);
	numbers = lower_own(l, ((uint64_t)x->outputs + 2) * sizeof(*numbers));
	if (!turned || !numbers)
		return -ENOMEM;
	if (q.shift > 0)
		return lower_fail(l, ENOTSUP,
				  "tensor '%.80s': a multiplier of %g; less than 1 is "
				  "supported",
				  lower_t(l, weights)->name, (double)scale);
	/* What is projected has the negative of its zero point in TensorFlow Lite, which
	 * no int8 is where that is 128. */
	x->hidden_zero = -x->hidden_zero;
	x->projected_zero = x->hidden_zero < 127 ? x->hidden_zero : 127;
	w = l->values[weights].data;
	for (uint32_t n = 0; n < x->outputs; n++) {
		int32_t sum = 0;

		for (uint32_t i = 0; i < x->cells; i++) {
			uint8_t bits = w[(size_t)n * x->cells + i];

			turned[(size_t)i * x->outputs + n] = bits;
			sum += quant_value(bits, NPUC_INT8);
		}
		if (bias != NPUC_NONE)
			numbers[2 + n] = (int32_t)lower_number(
				(const uint8_t *)l->values[bias].data + (size_t)4 * n, 4);
		numbers[2 + n] =
			(int32_t)((uint32_t)numbers[2 + n] -
				  (uint32_t)(x->hidden_zero - x->projected_zero) *
					  (uint32_t)sum);
	}
	if (op->options_type == OPTIONS_LSTM)
		clip = flat_f32(&f, op->options, LSTM_PROJECTION_CLIP, 0);
	clip /= lower_t(l, x->d)->scale;
	numbers[0] = q.mult;
	numbers[1] = q.shift;
	x->projected = (struct hal_npu_requant){
		.mult = numbers,
		.shift = numbers + 1,
		.bias = numbers + 2,
		.zero_point = h->zero_point,
		.min = clip >= 1 ? -(int32_t)(clip < 127 ? clip : 127) : -128,
		.max = clip >= 1 ? (int32_t)(clip < 127 ? clip : 127) : 127,
	};
	return lower_value(l, (uint64_t)x->cells * x->outputs, turned, &x->projection);
}

/* ---- steps -------------------------------------------------------------------------- */

static int copy(struct lowered *l, uint32_t a, uint32_t d, struct hal_npu_copy how)
{
	struct step *s = lower_step(l, STEP_COPY, a, NPUC_NONE, d);

	if (!s)
		return -ENOMEM;
	how.size = (uint32_t)sizeof(how);
	s->u.copy = how;
	return 0;
}

/* Part of each row of int16 becomes a value of its own. */
static int part(struct lowered *l, uint32_t a, uint32_t rows, const uint32_t at[3],
		uint32_t *d)
{
	int rc = lower_value(l, (uint64_t)rows * at[1] * 2, NULL, d);

	return rc ? rc
		  : copy(l, a, *d,
			 (struct hal_npu_copy){.rows = rows,
					       .bytes = at[1] * 2,
					       .a.offset = at[0] * 2,
					       .a_stride = at[2] * 2});
}

/* Sums of all gates for so many rows of inputs, not yet rescaled. */
static int sums(struct lowered *l, const struct lstm *x, const struct half *half,
		uint32_t a, uint32_t rows, struct int16_rescaling *r)
{
	struct step *s;
	int rc;

	*r = (struct int16_rescaling){.pixels = rows,
				      .numbers = x->row,
				      .digits = 4,
				      .sums = true,
				      .min = INT16_MIN,
				      .max = INT16_MAX};
	rc = int16_rescaling(l, r);
	if (!rc)
		rc = lower_value(l, (uint64_t)rows * x->row * DIGITS_SUM, NULL, &r->v);
	if (rc)
		return rc;
	for (uint32_t n = 0; n < x->row; n++) {
		r->offset[n] = UINT32_C(1) << SUM_ABOVE;
		r->largest[n] = half->largest[n];
		r->q[n] = half->q[n];
	}
	s = lower_step(l, STEP_GEMM, a, half->weights, r->v);
	if (!s)
		return -ENOMEM;
	s->u.gemm = (struct hal_npu_gemm){
		.size = (uint32_t)sizeof(s->u.gemm),
		.m = rows,
		.n = x->row,
		.k = half->inputs,
		.a_zero = half->zero,
		.out.bias = half->bias,
	};
	return 0;
}

/* What the inputs give, for all times. */
static int all_inputs(struct lowered *l, const struct lstm *x, uint32_t *d)
{
	uint32_t rows = x->batches * x->times;
	struct int16_rescaling r;
	int rc = sums(l, x, &x->in, x->x, rows, &r);

	if (!rc)
		rc = lower_value(l, (uint64_t)rows * x->row * 2, NULL, d);
	return rc ? rc : int16_rescale32(l, &r, *d);
}

/* The three logistic gates, and the candidates. */
static int gates(struct lowered *l, const struct lstm *x, uint32_t inputs, uint32_t time,
		 uint32_t h, uint32_t d[2])
{
	uint32_t row = x->row * 2, all, now, sides[2];
	uint32_t count = x->batches * x->cells;
	struct int16_rescaling r;
	int rc = lower_value(l, (uint64_t)x->batches * row, NULL, &now);

	if (!rc)
		rc = copy(
			l, inputs, now,
			(struct hal_npu_copy){
				.rows = x->batches,
				.bytes = row,
				.a.offset = time * row * (x->time_major ? x->batches : 1),
				.a_stride = x->time_major ? row : row * x->times,
			});
	if (!rc)
		rc = sums(l, x, &x->again, h, x->batches, &r);
	if (!rc)
		rc = lower_value(l, (uint64_t)x->batches * row, NULL, &all);
	if (!rc)
		rc = int16_rescale_onto(l, &r, now, all);
	if (!rc)
		rc = part(l, all, x->batches, (const uint32_t[]){0, 3 * x->cells, x->row},
			  &sides[0]);
	if (!rc)
		rc = part(l, all, x->batches,
			  (const uint32_t[]){3 * x->cells, x->cells, x->row}, &sides[1]);
	for (uint32_t i = 0; !rc && i < 2; i++)
		rc = lower_value(l, (uint64_t)count * 2 * (i ? 1 : 3), NULL, &d[i]);
	if (!rc)
		rc = wide_apply(l, &x->logistic, sides[0], d[0], 3 * count);
	return rc ? rc : wide_apply(l, &x->tanh, sides[1], d[1], count);
}

/* Beside each other in each batch: what is forgotten and let in, and the cell and the
 * candidates. */
static int beside(struct lowered *l, const struct lstm *x, const uint32_t gate[2],
		  uint32_t c, uint32_t d[2])
{
	uint32_t bytes = x->cells * 2;
	int rc = part(l, gate[0], x->batches,
		      (const uint32_t[]){0, 2 * x->cells, 3 * x->cells}, &d[0]);

	if (!rc)
		rc = lower_value(l, (uint64_t)x->batches * bytes * 2, NULL, &d[1]);
	for (uint32_t i = 0; !rc && i < 2; i++)
		rc = copy(l, i ? gate[1] : c, d[1],
			  (struct hal_npu_copy){.rows = x->batches,
						.bytes = bytes,
						.d.offset = i * bytes,
						.d_stride = 2 * bytes});
	return rc;
}

static int multiply(struct lowered *l, uint32_t rows, const uint32_t v[2],
		    uint32_t *product)
{
	uint32_t a, b;
	int rc = wide_open(l, v[0], rows, &a);

	if (!rc)
		rc = wide_open(l, v[1], rows, &b);
	return rc ? rc : wide_product(l, rows, a, b, product);
}

/* The cell's next state. */
static int next_cell(struct lowered *l, const struct lstm *x, const uint32_t gate[2],
		     uint32_t c, uint32_t *d)
{
	uint32_t side[2], products, both, v[3], count = x->batches * x->cells;
	struct int16_rescaling r = {.pixels = x->batches,
				    .numbers = 2 * x->cells,
				    .digits = 4,
				    .min = INT16_MIN,
				    .max = INT16_MAX};
	int rc = beside(l, x, gate, c, side);

	if (!rc)
		rc = multiply(l, 2 * count, side, &r.v);
	if (!rc)
		rc = int16_rescaling(l, &r);
	for (uint32_t n = 0; !rc && n < r.numbers; n++) {
		r.offset[n] = UINT32_C(1) << 31;
		r.largest[n] = (UINT64_C(1) << 30) - 1;
		/* A multiplier that changes nothing. */
		r.q[n].mult = INT32_MAX;
		r.q[n].shift = n < x->cells ? -15 : -(30 + x->cell_log2);
	}
	if (!rc)
		rc = lower_value(l, (uint64_t)count * 4, NULL, &products);
	both = 2 * x->cells;
	if (!rc)
		rc = int16_rescale32(l, &r, products);
	for (uint32_t i = 0; !rc && i < 2; i++)
		rc = part(l, products, x->batches,
			  (const uint32_t[]){i * x->cells, x->cells, both}, &v[i]);
	if (!rc)
		rc = lower_value(l, (uint64_t)count * 2, NULL, &v[2]);
	if (!rc)
		*d = v[2];
	return rc ? rc
		  : int16_sum(l, v, count, false, x->clip ? -x->clip : INT16_MIN,
			      x->clip ? x->clip : INT16_MAX);
}

static int project(struct lowered *l, const struct lstm *x, uint32_t hidden, uint32_t *d)
{
	struct step *s;
	int rc = lower_value(l, (uint64_t)x->batches * x->outputs, NULL, d);

	if (rc)
		return rc;
	s = lower_step(l, STEP_GEMM, hidden, x->projection, *d);
	if (!s)
		return -ENOMEM;
	s->u.gemm = (struct hal_npu_gemm){
		.size = (uint32_t)sizeof(s->u.gemm),
		.m = x->batches,
		.n = x->outputs,
		.k = x->cells,
		.a_zero = x->projected_zero,
		.out = x->projected,
	};
	return 0;
}

/* The output. */
static int next_output(struct lowered *l, const struct lstm *x, const uint32_t gate[2],
		       uint32_t c, uint32_t *d)
{
	uint32_t side[2], v, count = x->batches * x->cells;
	int rc = part(l, gate[0], x->batches,
		      (const uint32_t[]){2 * x->cells, x->cells, 3 * x->cells}, &side[0]);

	if (!rc)
		rc = lower_value(l, (uint64_t)count * 2, NULL, &side[1]);
	if (!rc)
		rc = wide_apply(l, &x->tanh_cell, c, side[1], count);
	if (!rc)
		rc = multiply(l, count, side, &v);
	if (!rc)
		rc = digits_product(l, count, DIGITS_SUM, UINT32_C(1) << 31,
				    x->hidden.mult, &v);
	if (!rc)
		rc = digits_shift(l, count, (uint32_t)-x->hidden.shift,
				  x->hidden_zero + 128, &v);
	if (!rc)
		rc = lower_value(l, count, NULL, d);
	if (!rc)
		rc = digits_narrow(l, count, v, NPUC_INT8, *d);
	return rc || x->projection == NPUC_NONE ? rc : project(l, x, *d, d);
}

static int one_time(struct lowered *l, const struct lstm *x, uint32_t inputs,
		    uint32_t time, uint32_t hc[2])
{
	uint32_t gate[2], step = x->time_major ? x->batches * x->outputs : x->outputs;
	int rc = gates(l, x, inputs, time, hc[0], gate);

	if (!rc)
		rc = next_cell(l, x, gate, hc[1], &hc[1]);
	if (!rc)
		rc = next_output(l, x, gate, hc[1], &hc[0]);
	return rc ? rc
		  : copy(l, hc[0], x->d,
			 (struct hal_npu_copy){
				 .rows = x->batches,
				 .bytes = x->outputs,
				 .d.offset = time * step,
				 .d_stride = x->time_major ? x->outputs
							   : x->outputs * x->times});
}

static int functions(struct lowered *l, struct lstm *x)
{
	int16_t *table = lower_own(l, 65536 * sizeof(*table));
	int rc;

	if (!table)
		return -ENOMEM;
	quant_table_logistic_gate(table);
	rc = wide_function(l, table, &x->logistic);
	quant_table_tanh_gate(3, table);
	if (!rc)
		rc = wide_function(l, table, &x->tanh);
	x->tanh_cell = x->tanh;
	if (rc || x->cell_log2 == -12)
		return rc;
	quant_table_tanh_gate(15 + x->cell_log2, table);
	return wide_function(l, table, &x->tanh_cell);
}

/* What the variables are before the first inference: 0. */
static int states(struct lowered *l, struct lstm *x)
{
	uint64_t count = (uint64_t)x->batches * x->cells;
	uint64_t outputs = (uint64_t)x->batches * x->outputs;
	uint8_t *first = lower_own(l, outputs), *zeros = lower_own(l, count * 2);
	int rc = first && zeros ? 0 : -ENOMEM;

	for (uint64_t i = 0; !rc && i < outputs; i++)
		first[i] = (uint8_t)lower_t(l, x->h)->zero_point;
	if (!rc)
		rc = lower_state(l, outputs, first, &x->state_h);
	return rc ? rc : lower_state(l, count * 2, zeros, &x->state_c);
}

int lower_lstm(struct lowered *l)
{
	struct lstm x = {0};
	uint32_t inputs, hc[2], count;
	int rc = take(l, &x);

	if (!rc)
		rc = take_half(l, &x, &x.in, (const uint32_t[]){INPUT_WEIGHTS, BIAS},
			       x.x);
	if (!rc)
		rc = take_half(l, &x, &x.again,
			       (const uint32_t[]){RECURRENT_WEIGHTS, NPUC_NONE}, x.h);
	if (!rc)
		rc = take_projection(l, &x);
	if (!rc)
		rc = functions(l, &x);
	if (!rc)
		rc = states(l, &x);
	if (rc)
		return rc;
	lower_describe(l, x.x, x.d);
	count = x.batches * x.cells;
	hc[0] = x.state_h;
	hc[1] = x.state_c;
	rc = all_inputs(l, &x, &inputs);
	for (uint32_t time = 0; !rc && time < x.times; time++)
		rc = one_time(l, &x, inputs, time, hc);
	if (!rc)
		rc = copy(
			l, hc[0], x.state_h,
			(struct hal_npu_copy){.rows = 1, .bytes = x.batches * x.outputs});
	return rc ? rc
		  : copy(l, hc[1], x.state_c,
			 (struct hal_npu_copy){.rows = 1, .bytes = 2 * count});
}
