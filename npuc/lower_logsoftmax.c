/* SPDX-License-Identifier: Apache-2.0 */
/* lower_logsoftmax.c - LOG_SOFTMAX.
 *
 * A result is what the element is below its row's largest and the logarithm of S, the sum
 * of the row's exponentials, in whole steps of 1/16.  There are 256 such differences; the
 * result of each falls by a step where S passes certain numbers, which are found when the
 * model is compiled.  So S is compared with numbers at which its logarithm has grown by
 * 1/16, which leaves an interval between two of them; and then with one number for each
 * of the differences, those of the interval.  This gives the row 256 results, from which
 * a one among 256 zeros picks each element's. */
#include <errno.h>

#include "lower_digits.h"
#include "lower_pair.h"
#include "lower_wide.h"

enum {
	OUT = 256,      /* differences, and results for them */
	SUM_DIGITS = 4, /* digits of S */
	COMPARED = 5,   /* and the carry */
	COLS_MAX = 4095,
	ROWS_MAX = 16384,
	CHUNK = 512, /* elements; what they take lies beside the activations */
	STEP = 1 << 22,
	LEAST = 1 << 19, /* S of one element */
	/* TensorFlow Lite's logarithm falls here and there, by 2 at most, from DIPS on
	 * and no further than so many numbers behind one where it was larger.  So a
	 * result may go to and fro before it stays. */
	DIPS = 1 << 25,
	NEAR = 64,
	CHANGES = 9,
};

#define NEVER UINT32_MAX

struct log_softmax {
	uint32_t rows, cols, all;
	bool u8;
	int32_t power[OUT], below[OUT];
	int32_t grid; /* intervals begin at this and multiples of STEP above */
	uint32_t intervals, changes;
	uint32_t *start;  /* [intervals + 1] */
	uint8_t *first;   /* [intervals][OUT]: results of uint8 */
	uint32_t *change; /* [intervals][OUT][CHANGES]: down by one, up, down ... */
};

/* ---- where results change ----------------------------------------------------------- */

/* The numbers S where its logarithm comes to y, not less than 1, or goes back below. */
static uint32_t changes_at(int32_t y, uint32_t *at)
{
	int32_t least = LEAST, most = INT32_MAX, end;
	uint32_t count = 0;
	bool there = false;

	if (quant_log(most) < y)
		return 0;
	while (most - least > 1) {
		int32_t s = least + (most - least) / 2;

		*(quant_log(s) < y ? &least : &most) = s;
	}
	at[0] = (uint32_t)most;
	if (most < DIPS)
		return 1;
	end = INT32_MAX - most < NEAR ? INT32_MAX : most + NEAR;
	for (int32_t s = most - NEAR; s < end && count < CHANGES; s++)
		if ((quant_log(s) >= y) != there) {
			at[count++] = (uint32_t)s;
			there = !there;
		}
	return count;
}

/* What the logarithm is at a change, less a multiple of STEP. */
static int32_t change_of(int32_t below)
{
	return (int32_t)(-((int64_t)below + STEP / 2) & (STEP - 1));
}

/* Nothing changes near there. */
static bool is_clear(const struct log_softmax *s, int32_t grid)
{
	for (uint32_t i = 0; i < OUT; i++) {
		int32_t off = change_of(s->below[i]) - grid + 8;

		if (s->below[i] >= 0 && (off & (STEP - 1)) < 16)
			return false;
	}
	return true;
}

static void find_result(struct log_softmax *s, uint32_t k, uint32_t i)
{
	int32_t from = s->grid + ((int32_t)k - 1) * STEP;
	int32_t at = from + ((change_of(s->below[i]) - s->grid) & (STEP - 1));
	int64_t steps = ((int64_t)at + s->below[i] + STEP / 2) / STEP;
	uint32_t *change = &s->change[((size_t)k * OUT + i) * CHANGES], count;

	for (uint32_t n = 0; n < CHANGES; n++)
		change[n] = NEVER;
	if (s->below[i] < 0 || steps >= 256)
		return; /* the least there is */
	if (at <= 0) {
		s->first[k * OUT + i] = (uint8_t)(255 - steps);
		return;
	}
	s->first[k * OUT + i] = (uint8_t)(256 - steps);
	count = changes_at(at, change);
	s->changes = s->changes > count ? s->changes : count;
}

static int find_results(struct lowered *l, struct log_softmax *s)
{
	/* Near its end the logarithm may have been larger. */
	int32_t most = quant_log((int32_t)(s->cols * (uint32_t)LEAST)) + 8;
	uint32_t at[CHANGES];

	while (!is_clear(s, s->grid))
		s->grid += 16;
	s->intervals = most < s->grid ? 1 : (uint32_t)((most - s->grid) / STEP) + 2;
	s->start = lower_own(l, (s->intervals + 1) * sizeof(*s->start));
	s->first = lower_own(l, (uint64_t)s->intervals * OUT);
	s->change =
		lower_own(l, (uint64_t)s->intervals * OUT * CHANGES * sizeof(*s->change));
	if (!s->start || !s->first || !s->change)
		return -ENOMEM;
	s->changes = 1;
	for (uint32_t k = 0; k < s->intervals; k++) {
		if (k && s->grid + ((int32_t)k - 1) * STEP > 0)
			s->start[k] = changes_at(s->grid + ((int32_t)k - 1) * STEP, at)
					      ? at[0]
					      : NEVER;
		for (uint32_t i = 0; i < OUT; i++)
			find_result(s, k, i);
	}
	s->start[s->intervals] = NEVER;
	return 0;
}

/* ---- S ------------------------------------------------------------------------------ */

static const int32_t unit[2] = {INT32_MAX, 0}; /* x times 1 */

/* Of bytes; int32 sums, unless how says otherwise. */
static int multiply(struct lowered *l, uint32_t a, uint32_t b, uint32_t d,
		    struct hal_npu_gemm how)
{
	struct step *s = lower_step(l, STEP_GEMM, a, b, d);

	if (!s)
		return -ENOMEM;
	how.size = (uint32_t)sizeof(how);
	how.flags |= HAL_NPU_A_UINT8 | HAL_NPU_B_UINT8;
	s->u.gemm = how;
	return 0;
}

/* A table for each byte of the exponentials. */
static int row_sums(struct lowered *l, const struct log_softmax *s, uint32_t difference,
		    uint32_t *v)
{
	uint8_t *ones = lower_own(l, (uint64_t)s->cols * 2);
	uint32_t b, bytes;
	int rc = ones ? lower_value(l, (uint64_t)s->cols * 2, ones, &b) : -ENOMEM;

	if (!rc)
		rc = lower_value(l, (uint64_t)s->rows * SUM_DIGITS * DIGITS_SUM, NULL, v);
	/* The last one brings a digit of 0 with it. */
	for (uint32_t i = 0; !rc && i < s->cols; i++)
		ones[(size_t)2 * i] = 1;
	for (uint32_t k = 0; !rc && k < 3; k++) {
		uint8_t *table = lower_own(l, OUT);

		if (!table)
			return -ENOMEM;
		for (uint32_t i = 0; i < OUT; i++)
			table[i] = (uint8_t)(s->power[i] >> 8 * k);
		rc = lower_value(l, s->all, NULL, &bytes);
		if (!rc)
			rc = lower_lut(l, difference, bytes, s->all, table);
		if (!rc)
			rc = multiply(l, bytes, b, *v,
				      (struct hal_npu_gemm){.m = s->rows,
							    .n = k < 2 ? 1 : 2,
							    .k = s->cols,
							    .b_stride = 2,
							    .d.offset = k * DIGITS_SUM,
							    .d_stride = SUM_DIGITS *
									DIGITS_SUM});
	}
	return rc ? rc : digits_carry(l, s->rows, SUM_DIGITS, SUM_DIGITS - 1, v);
}

/* ---- comparisons -------------------------------------------------------------------- */

/* Digit i of what makes S, as a number of four digits, carry where it is at or more. */
static uint8_t digit_of(uint32_t at, uint32_t i)
{
	return (uint8_t)(((UINT64_C(1) << 32) - at) >> 8 * i);
}

/* Rows of sums, COMPARED each, become bytes that are the carries. */
static int carries(struct lowered *l, uint32_t rows, uint32_t *v)
{
	struct digits_step last = {
		.rows = rows, .bytes = COMPARED * DIGITS_SUM, .columns = 1};
	int rc = digits_carry(l, rows, COMPARED, COMPARED - 1, v);

	last.weights[(size_t)(COMPARED - 1) * DIGITS_SUM][0] = 1;
	digits_as_bytes(&last);
	return rc ? rc : digits_new(l, *v, &last, v);
}

/* A row has a one for the interval in which its S lies, among zeros, then S as bytes. */
static uint32_t row_of(const struct log_softmax *s)
{
	return s->intervals + SUM_DIGITS;
}

/* A one for each start that is not above S; there is one more, which is. */
static int starts_reached(struct lowered *l, const struct log_softmax *s, uint32_t sum,
			  uint32_t *v)
{
	uint32_t numbers = s->intervals + 1, n = numbers * COMPARED;
	uint32_t k = SUM_DIGITS * DIGITS_SUM, b;
	uint8_t *weights = lower_own(l, (uint64_t)k * n);
	int32_t *bias = lower_own(l, n * sizeof(*bias));
	int rc = weights && bias ? lower_value(l, (uint64_t)k * n, weights, &b) : -ENOMEM;

	for (uint32_t i = 0; !rc && i < n; i++) {
		bias[i] = digit_of(s->start[i / COMPARED], i % COMPARED);
		if (i % COMPARED < SUM_DIGITS)
			weights[(size_t)(i % COMPARED) * DIGITS_SUM * n + i] = 1;
	}
	if (!rc)
		rc = lower_value(l, (uint64_t)s->rows * n * DIGITS_SUM, NULL, v);
	if (!rc)
		rc = multiply(l, sum, b, *v,
			      (struct hal_npu_gemm){
				      .m = s->rows, .n = n, .k = k, .out.bias = bias});
	return rc ? rc : carries(l, s->rows * numbers, v);
}

static int intervals(struct lowered *l, const struct log_softmax *s, uint32_t sum,
		     uint32_t *row)
{
	struct digits_step bytes = {
		.rows = s->rows, .bytes = SUM_DIGITS * DIGITS_SUM, .columns = SUM_DIGITS};
	uint32_t reached, one;
	int rc = starts_reached(l, s, sum, &reached);

	if (!rc)
		rc = lower_value(l, (uint64_t)s->rows * s->intervals, NULL, &one);
	if (!rc)
		rc = wide_edges(l, reached, s->rows, s->intervals, one);
	if (!rc)
		rc = lower_value(l, (uint64_t)s->rows * row_of(s), NULL, row);
	if (!rc) {
		struct step *copy = lower_step(l, STEP_COPY, one, NPUC_NONE, *row);

		if (!copy)
			return -ENOMEM;
		copy->u.copy = (struct hal_npu_copy){.size = sizeof(copy->u.copy),
						     .rows = s->rows,
						     .bytes = s->intervals,
						     .d_stride = row_of(s)};
	}
	for (uint32_t i = 0; i < SUM_DIGITS; i++)
		bytes.weights[(size_t)i * DIGITS_SUM][i] = 1;
	digits_as_bytes(&bytes);
	return rc ? rc : digits_step_at(l, sum, &bytes, *row, s->intervals, row_of(s));
}

/* Of each difference: whether S has come to its changes, one set of OUT after the
 * other. */
static int changes_reached(struct lowered *l, const struct log_softmax *s, uint32_t row,
			   uint32_t *v)
{
	uint32_t numbers = s->changes * OUT, n = numbers * COMPARED, k = row_of(s), b;
	uint8_t *weights = lower_own(l, (uint64_t)k * n);
	int rc = weights ? lower_value(l, (uint64_t)k * n, weights, &b) : -ENOMEM;

	for (uint32_t i = 0; !rc && i < n; i++) {
		uint32_t set = i / COMPARED / OUT, out = i / COMPARED % OUT;

		for (uint32_t at = 0; at < s->intervals; at++) {
			size_t which = ((size_t)at * OUT + out) * CHANGES + set;

			weights[(size_t)at * n + i] =
				digit_of(s->change[which], i % COMPARED);
		}
		if (i % COMPARED < SUM_DIGITS)
			weights[(size_t)(s->intervals + i % COMPARED) * n + i] = 1;
	}
	if (!rc)
		rc = lower_value(l, (uint64_t)s->rows * n * DIGITS_SUM, NULL, v);
	if (!rc)
		rc = multiply(l, row, b, *v,
			      (struct hal_npu_gemm){.m = s->rows, .n = n, .k = k});
	return rc ? rc : carries(l, s->rows * numbers, v);
}

/* ---- results ------------------------------------------------------------------------ */

/* Of each row its OUT results, as uint8. */
static int tables(struct lowered *l, const struct log_softmax *s, uint32_t row,
		  uint32_t *d)
{
	const uint32_t all_uint8 = HAL_NPU_A_UINT8 | HAL_NPU_B_UINT8 | HAL_NPU_D_UINT8;
	uint64_t bytes = (uint64_t)s->rows * OUT;
	uint32_t b, reached, to;
	int rc = changes_reached(l, s, row, &reached);

	if (!rc)
		rc = lower_value(l, (uint64_t)s->intervals * OUT, s->first, &b);
	if (!rc)
		rc = lower_value(l, bytes, NULL, d);
	if (!rc)
		rc = wide_gemm(l, row, b, *d,
			       (struct hal_npu_gemm){.m = s->rows,
						     .n = OUT,
						     .k = s->intervals,
						     .a_stride = row_of(s),
						     .out.max = 255});
	for (uint32_t i = 0; !rc && i < s->changes; i++) {
		struct step *sum;

		rc = lower_value(l, bytes, NULL, &to);
		sum = rc ? NULL : lower_step(l, STEP_ADD, *d, reached, to);
		if (!sum)
			return -ENOMEM;
		sum->u.add = i % 2 ? pair_sum(0, 0, 0, 0, 255, all_uint8)
				   : pair_difference(0, 0, 255, all_uint8);
		sum->u.add.rows = s->rows;
		sum->u.add.bytes = OUT;
		sum->u.add.b.offset = i * OUT;
		sum->u.add.b_stride = s->changes * OUT;
		*d = to;
	}
	return rc;
}

/* Of bytes: a one among 256 zeros.  First ones up to there. */
static int one_of(struct lowered *l, uint32_t a, uint32_t at, uint32_t count, uint32_t *d)
{
	enum { STEPS = OUT + 1 };
	uint8_t *weights = lower_own(l, STEPS);
	int32_t *bias = lower_own(l, STEPS * sizeof(*bias));
	uint32_t b, steps;
	int rc = weights && bias ? lower_value(l, STEPS, weights, &b) : -ENOMEM;

	for (int32_t n = 0; !rc && n < STEPS; n++) {
		weights[n] = 1;
		bias[n] = 1 - n;
	}
	if (!rc)
		rc = lower_value(l, (uint64_t)count * STEPS, NULL, &steps);
	if (!rc)
		rc = lower_value(l, (uint64_t)count * OUT, NULL, d);
	if (!rc)
		rc = wide_gemm(l, a, b, steps,
			       (struct hal_npu_gemm){.m = count,
						     .n = STEPS,
						     .k = 1,
						     .a.offset = at,
						     .out = {.bias = bias, .max = 1}});
	return rc ? rc : wide_edges(l, steps, count, OUT, *d);
}

/* Elements from..to of one row, whose ones begin at element at. */
static int pick(struct lowered *l, const struct log_softmax *s, const uint32_t v[3],
		uint32_t at, uint32_t from, uint32_t to)
{
	int32_t least = s->u8 ? 0 : -128;

	return multiply(l, v[0], v[1], v[2],
			(struct hal_npu_gemm){.m = to - from,
					      .n = 1,
					      .k = OUT,
					      .a.offset = (from - at) * OUT,
					      .b.offset = from / s->cols * OUT,
					      .d.offset = from,
					      .out = {.mult = unit,
						      .shift = unit + 1,
						      .zero_point = least,
						      .min = least,
						      .max = least + 255},
					      .flags = s->u8 ? HAL_NPU_D_UINT8 : 0});
}

static int results(struct lowered *l, const struct log_softmax *s, uint32_t difference,
		   uint32_t table, uint32_t d)
{
	int rc = 0;

	for (uint32_t at = 0; !rc && at < s->all; at += CHUNK) {
		uint32_t end = s->all - at < CHUNK ? s->all : at + CHUNK, one, to;

		rc = one_of(l, difference, at, end - at, &one);
		for (uint32_t i = at; !rc && i < end; i = to) {
			to = (i / s->cols + 1) * s->cols;
			to = to < end ? to : end;
			rc = pick(l, s, (const uint32_t[]){one, table, d}, at, i, to);
		}
	}
	return rc;
}

static int check(struct lowered *l, uint32_t a, uint32_t d, struct log_softmax *s)
{
	const struct npuc_tensor *x = lower_t(l, a), *y = lower_t(l, d);
	uint32_t cols = x->rank ? (uint32_t)x->dims[x->rank - 1] : 1;
	uint64_t rows = x->count / cols;

	if (y->scale != 1.0f / 16 || y->zero_point != quant_max(y->type))
		return lower_fail(
			l, ENOTSUP,
			"output scale %g, zero point %d; only 1/16 and %d are supported",
			(double)y->scale, y->zero_point, quant_max(y->type));
	if (cols > COLS_MAX || rows > ROWS_MAX)
		return lower_fail(l, ENOTSUP,
				  "%llu rows of %u; at most %d rows of %d are supported",
				  (unsigned long long)rows, cols, ROWS_MAX, COLS_MAX);
	if (x->scale < 0x1p-24f || x->scale > 16)
		return lower_fail(l, ENOTSUP, "input scale %g; 2^-24 to 16 is supported",
				  (double)x->scale);
	*s = (struct log_softmax){.rows = (uint32_t)rows,
				  .cols = cols,
				  .all = (uint32_t)x->count,
				  .u8 = x->type == NPUC_UINT8};
	quant_table_log_softmax((double)x->scale, s->power, s->below);
	return 0;
}

int lower_log_softmax(struct lowered *l)
{
	struct log_softmax s = {0};
	uint32_t a, d, difference, sum, row, table;
	int rc = lower_unary(l, &a, &d);

	if (!rc)
		rc = lower_same_type(l, a, d);
	if (!rc)
		rc = check(l, a, d, &s);
	if (!rc)
		rc = find_results(l, &s);
	if (rc)
		return rc;
	lower_describe(l, a, d);
	rc = pair_below_largest(l, a, s.rows, s.cols, s.u8, &difference);
	if (!rc)
		rc = row_sums(l, &s, difference, &sum);
	if (!rc)
		rc = intervals(l, &s, sum, &row);
	if (!rc)
		rc = tables(l, &s, row, &table);
	return rc ? rc : results(l, &s, difference, table, d);
}
