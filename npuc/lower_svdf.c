/* SPDX-License-Identifier: Apache-2.0 */
/* lower_svdf.c - SVDF, whose state and weights in time are 16 bits. */
#include <errno.h>

#include "lower_digits.h"

/* Kind of union BuiltinOptions, and fields of its table. */
enum {
	OPTIONS_SVDF = 6,
	SVDF_RANK = 0,
	SVDF_ACTIVATION = 1,
};

enum {
	PARTS = 5,          /* sums of a unit, see time_weights */
	REAL_BITS_MAX = 22, /* of a number that three digits are to hold */
	INPUTS_MAX = 32896  /* sums of int8 products stay below 2^30 */
};

struct svdf {
	uint32_t x, features, times, bias, state, d; /* bias: NPUC_NONE or a tensor */
	uint32_t batches, inputs, filters, memory, rank, units;
	struct quant_mult feature, time; /* multipliers */
};

/* ---- operands ----------------------------------------------------------------------- */

static int constant(struct lowered *l, uint32_t number, enum npuc_type type,
		    uint32_t *tensor)
{
	const struct npuc_tensor *t;
	int rc = lower_take(l, number, tensor);

	if (rc)
		return rc;
	t = lower_t(l, *tensor);
	if (t->type != type || !t->data || l->m->tensors[*tensor].unusable)
		return lower_fail(l, ENOTSUP, "tensor '%.80s' must be constant and %s",
				  t->name, npuc_type_name(type));
	return 0;
}

static int take(struct lowered *l, struct svdf *x)
{
	const struct model_op *op = lower_op(l);
	int rc = lower_counts(l, 5, 5);

	if (!rc)
		rc = lower_operand(l, 0, &x->x);
	if (!rc)
		rc = constant(l, 1, NPUC_INT8, &x->features);
	if (!rc)
		rc = constant(l, 2, NPUC_INT16, &x->times);
	x->bias = NPUC_NONE;
	if (!rc && op->inputs[3] != NPUC_NONE)
		rc = constant(l, 3, NPUC_INT32, &x->bias);
	if (!rc)
		rc = lower_take(l, 4, &x->state);
	if (!rc)
		rc = lower_result(l, &x->d);
	if (!rc)
		rc = lower_same_type(l, x->x, x->d);
	if (rc)
		return rc;
	if (lower_t(l, x->x)->type != NPUC_INT8)
		return lower_fail(l, ENOTSUP, "tensor '%.80s' must be int8",
				  lower_t(l, x->x)->name);
	if (lower_t(l, x->state)->type != NPUC_INT16 || l->values[x->state].ready)
		return lower_fail(
			l, ENOTSUP,
			"tensor '%.80s' must be an int16 variable of this layer",
			lower_t(l, x->state)->name);
	l->values[x->state].ready = true;
	return 0;
}

static int shape(struct lowered *l, struct svdf *x)
{
	const struct npuc_tensor *a = lower_t(l, x->x), *w = lower_t(l, x->features);
	const struct npuc_tensor *t = lower_t(l, x->times);
	int32_t rank = lower_option(l, OPTIONS_SVDF, SVDF_RANK, 0);
	int rc;

	if (a->rank != 2 || w->rank != 2 || t->rank != 2 || rank < 1 ||
	    w->dims[0] % rank || w->dims[1] != a->dims[1] || t->dims[0] != w->dims[0] ||
	    !t->count)
		return lower_fail(l, EINVAL, "input, weights and rank %d do not match",
				  rank);
	if (a->dims[1] > INPUTS_MAX)
		return lower_fail(l, ENOTSUP, "%d inputs; at most %d are supported",
				  a->dims[1], INPUTS_MAX);
	x->batches = (uint32_t)a->dims[0];
	x->inputs = (uint32_t)a->dims[1];
	x->filters = (uint32_t)w->dims[0];
	x->memory = (uint32_t)t->dims[1];
	x->rank = (uint32_t)rank;
	x->units = x->filters / x->rank;
	lower_macs(l, (uint64_t)x->batches * x->filters * (x->inputs + x->memory));
	rc = lower_dims(l, x->state, 2,
			(const uint32_t[]){x->batches, x->memory * x->filters});
	if (!rc)
		rc = lower_dims(l, x->d, 2, (const uint32_t[]){x->batches, x->units});
	if (!rc && x->bias != NPUC_NONE)
		rc = lower_dims(l, x->bias, 1, &x->units);
	if (rc)
		return rc;
	if (lower_option_u8(l, OPTIONS_SVDF, SVDF_ACTIVATION) != QUANT_ACT_RELU)
		return lower_fail(
			l, ENOTSUP,
			"a fused activation other than RELU is not supported (TensorFlow "
			"Lite does not support it for int8 either)");
	return 0;
}

static int32_t time_weight(const struct lowered *l, const struct svdf *x, uint64_t i)
{
	const uint8_t *at = (const uint8_t *)lower_t(l, x->times)->data + 2 * i;

	return (int16_t)(at[0] | at[1] << 8);
}

static int32_t bias_of(const struct lowered *l, const struct svdf *x, uint32_t unit)
{
	if (x->bias == NPUC_NONE)
		return 0;
	return (int32_t)lower_number(
		(const uint8_t *)lower_t(l, x->bias)->data + (size_t)4 * unit, 4);
}

/* The largest that a unit's sum can become. */
static double largest_sum(const struct lowered *l, const struct svdf *x)
{
	uint64_t each = (uint64_t)x->rank * x->memory;
	double largest = 0;

	for (uint32_t u = 0; u < x->units; u++) {
		double sum = bias_of(l, x, u);

		sum = sum < 0 ? -sum : sum;
		for (uint64_t i = 0; i < each; i++) {
			int32_t w = time_weight(l, x, u * each + i);

			sum += (double)DIGITS_HALF * (w < 0 ? -w : w);
		}
		largest = sum > largest ? sum : largest;
	}
	return largest;
}

static int check_multiplier(struct lowered *l, const char *what, struct quant_mult q,
			    double largest)
{
	double real = (double)q.mult / (double)(UINT32_C(1) << 31);

	if (q.shift > 0)
		return lower_fail(
			l, ENOTSUP,
			"the multiplier of %s is 1 or more, which is not supported",
			what);
	for (int32_t i = 0; i > q.shift; i--)
		real /= 2;
	if (real * largest >= (double)(1u << REAL_BITS_MAX))
		return lower_fail(
			l, ENOTSUP,
			"%s may come to %.0f steps; less than 2^%u are supported", what,
			real * largest, REAL_BITS_MAX);
	return 0;
}

static int multipliers(struct lowered *l, struct svdf *x)
{
	const struct npuc_tensor *w = lower_t(l, x->features), *t = lower_t(l, x->times);
	float in = lower_t(l, x->x)->scale, out = lower_t(l, x->d)->scale;
	float state = lower_t(l, x->state)->scale;
	float feature = in * w->scale / state, time = state * t->scale / out;
	int rc;

	if (w->scales != 1 || t->scales != 1 || !(feature > 0) || !(time > 0))
		return lower_fail(l, EINVAL,
				  "weights and state must be quantized per tensor");
	x->feature = quant_of((double)feature);
	x->time = quant_of((double)time);
	rc = check_multiplier(l, "the result of the weights in space", x->feature,
			      (double)x->inputs * 255 * 128);
	return rc ? rc
		  : check_multiplier(l, "the result of the weights in time", x->time,
				     largest_sum(l, x));
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

/* Weights in space: a number of 16 bits for each batch and filter. */
static int in_space(struct lowered *l, const struct svdf *x, uint32_t *v)
{
	const uint8_t *weights = lower_t(l, x->features)->data;
	uint8_t *turned = lower_own(l, (uint64_t)x->inputs * x->filters);
	int32_t *bias = lower_own(l, (uint64_t)x->filters * sizeof(*bias));
	uint32_t rows = x->batches * x->filters, b;
	struct step *s;
	int rc;

	if (!turned || !bias)
		return -ENOMEM;
	for (uint32_t f = 0; f < x->filters; f++) {
		for (uint32_t i = 0; i < x->inputs; i++)
			turned[(size_t)i * x->filters + f] =
				weights[(size_t)f * x->inputs + i];
		bias[f] = 1 << 30;
	}
	rc = lower_value(l, (uint64_t)x->inputs * x->filters, turned, &b);
	if (!rc)
		rc = lower_value(l, (uint64_t)rows * DIGITS_SUM, NULL, v);
	if (rc)
		return rc;
	s = lower_step(l, STEP_GEMM, x->x, b, *v);
	if (!s)
		return -ENOMEM;
	s->u.gemm = (struct hal_npu_gemm){
		.size = (uint32_t)sizeof(s->u.gemm),
		.m = x->batches,
		.n = x->filters,
		.k = x->inputs,
		.a_zero = lower_t(l, x->x)->zero_point,
		.out.bias = bias,
	};
	rc = digits_product(l, rows, 1, 1u << 30, x->feature.mult, v);
	return rc ? rc : digits_shift(l, rows, (uint32_t)-x->feature.shift, 0, v);
}

/* The state is moved on by one, with the new numbers at its end. */
static int move_on(struct lowered *l, const struct svdf *x, uint32_t now,
		   uint32_t *window)
{
	uint32_t rows = x->batches * x->filters, row = 2 * x->memory, state;
	uint64_t bytes = (uint64_t)rows * row;
	uint8_t *zeros = lower_own(l, bytes);
	int rc = zeros ? 0 : -ENOMEM;

	for (uint64_t i = 0; !rc && i < bytes; i += 2)
		zeros[i + 1] = DIGITS_HALF >> 8;
	if (!rc)
		rc = lower_state(l, bytes, zeros, &state);
	if (!rc)
		rc = lower_value(l, bytes, NULL, window);
	if (!rc && x->memory > 1)
		rc = copy(l, state, *window,
			  (struct hal_npu_copy){.rows = rows,
						.bytes = row - 2,
						.a.offset = 2,
						.a_stride = row,
						.d_stride = row});
	if (!rc)
		rc = copy(l, now, *window,
			  (struct hal_npu_copy){.rows = rows,
						.bytes = 2,
						.a_stride = 2,
						.d.offset = row - 2,
						.d_stride = row});
	if (!rc)
		rc = copy(l, *window, state,
			  (struct hal_npu_copy){.rows = 1, .bytes = (uint32_t)bytes});
	return rc;
}

/* A weight is high * 256 + more * 256 + low in int8, where more is 1 if high would be
 * 128.  Sums of a unit, by what they count: low * low byte; 256: high * low byte, low *
 * high byte; 65536: high * high byte; 256: more * low byte; 65536: more * high byte.
 * Numbers are above DIGITS_HALF, which the bias takes back; it is spread over two sums,
 * which stay in int32. */
static void time_weights(const struct lowered *l, const struct svdf *x, int8_t *weights,
			 int32_t *bias)
{
	uint64_t each = (uint64_t)x->rank * x->memory;

	for (uint32_t u = 0; u < x->units; u++) {
		int8_t *part[PARTS];
		uint32_t all = (uint32_t)bias_of(l, x, u) + (UINT32_C(1) << 31);

		for (uint32_t p = 0; p < PARTS; p++)
			part[p] = weights + (u * (uint64_t)PARTS + p) * each * 2;
		for (uint64_t i = 0; i < each; i++) {
			int32_t w = time_weight(l, x, u * each + i);
			int8_t low = (int8_t)(uint8_t)w;
			int32_t high = (w - low) / 256;
			int8_t more = high == 128 ? 1 : 0;

			all -= (uint32_t)w * DIGITS_HALF;
			part[0][2 * i] = low;
			part[1][2 * i] = (int8_t)(high - more);
			part[1][2 * i + 1] = low;
			part[2][2 * i + 1] = (int8_t)(high - more);
			part[3][2 * i] = more;
			part[4][2 * i + 1] = more;
		}
		bias[(size_t)u * PARTS] = (int32_t)(all & 0xFFFF);
		bias[(size_t)u * PARTS + 2] = (int32_t)(all >> 16);
	}
}

/* Those sums become digits. */
static int join_parts(struct lowered *l, const struct svdf *x, uint32_t *v)
{
	static const uint32_t digit[PARTS] = {0, 1, 2, 1, 2};
	struct digits_step join = {
		.rows = x->batches * x->units, .bytes = PARTS * DIGITS_SUM, .columns = 4};

	for (uint32_t p = 0; p < PARTS; p++)
		for (uint32_t byte = 0; byte < DIGITS_SUM && digit[p] + byte < 4; byte++)
			join.weights[p * DIGITS_SUM + byte][digit[p] + byte] = 1;
	return digits_new(l, *v, &join, v);
}

static int in_time(struct lowered *l, const struct svdf *x, uint32_t window, uint32_t *v)
{
	uint32_t rows = x->batches * x->units;
	uint64_t each = (uint64_t)x->rank * x->memory * 2;
	int8_t *weights = lower_own(l, (uint64_t)x->units * PARTS * each);
	int32_t *bias = lower_own(l, (uint64_t)x->units * PARTS * sizeof(*bias));
	struct step *s;
	int rc = lower_value(l, (uint64_t)rows * PARTS * DIGITS_SUM, NULL, v);

	if (!weights || !bias)
		return -ENOMEM;
	s = rc ? NULL : lower_step(l, STEP_CONV, window, NPUC_NONE, *v);
	if (!s)
		return -ENOMEM;
	time_weights(l, x, weights, bias);
	s->u.conv = (struct hal_npu_conv){
		.size = (uint32_t)sizeof(s->u.conv),
		.h = x->batches,
		.w = 1,
		.c = 2 * x->filters * x->memory,
		.oh = x->batches,
		.ow = 1,
		.n = x->units * PARTS,
		.kh = 1,
		.kw = 1,
		.stride_h = 1,
		.stride_w = 1,
		.dilation_h = 1,
		.dilation_w = 1,
		.groups = x->units,
		.weights = weights,
		.out.bias = bias,
		.flags = HAL_NPU_A_UINT8,
	};
	rc = join_parts(l, x, v);
	if (!rc)
		rc = digits_carry(l, rows, 4, 3, v);
	if (!rc)
		rc = digits_product(l, rows, DIGITS_SUM, UINT32_C(1) << 31, x->time.mult,
				    v);
	return rc ? rc
		  : digits_shift(l, rows, (uint32_t)-x->time.shift,
				 lower_t(l, x->d)->zero_point + 128, v);
}

int lower_svdf(struct lowered *l)
{
	struct svdf x = {0};
	uint32_t now, window, sums;
	int rc = take(l, &x);

	if (!rc)
		rc = shape(l, &x);
	if (!rc)
		rc = multipliers(l, &x);
	if (rc)
		return rc;
	lower_describe(l, x.x, x.d);
	rc = in_space(l, &x, &now);
	if (!rc)
		rc = move_on(l, &x, now, &window);
	if (!rc)
		rc = in_time(l, &x, window, &sums);
	return rc ? rc : digits_narrow(l, x.batches * x.units, sums, NPUC_INT8, x.d);
}
