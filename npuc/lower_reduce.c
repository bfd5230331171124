/* SPDX-License-Identifier: Apache-2.0 */
/* lower_reduce.c - largest and smallest elements along dimensions, and where they are. */
#include <errno.h>

#include "lower_digits.h"
#include "lower_move.h"
#include "lower_pair.h"
#include "lower_wide.h"

#define KERNEL_MAX 255u /* of a pool */
#define STRIDE_MAX 15u
#define SIDE_MAX   65535u

/* Bytes [outer][k][inner] of which those along k become one. */
struct along {
	uint32_t outer, k, inner;
};

/* a - 1 - b and 255 - b: what is largest becomes smallest. */
static int complement(struct lowered *l, uint32_t a, uint32_t d, uint64_t bytes)
{
	uint8_t *table = lower_own(l, 256);

	if (!table)
		return -ENOMEM;
	for (uint32_t i = 0; i < 256; i++)
		table[i] = (uint8_t)~i;
	return lower_lut(l, a, d, bytes, table);
}

/* ---- largest elements ------------------------------------------------------------- */

/* Columns for so many elements side by side; 0: there is no such divisor. */
static uint32_t columns_of(uint32_t inner)
{
	for (uint32_t n = (inner - 1) / SIDE_MAX + 1; n <= SIDE_MAX; n++)
		if (inner % n == 0)
			return n;
	return 0;
}

/* The same as pool below where elements side by side are more than a pixel's channels:
 * they are rows of pixels, which the windows cross. */
static int pool_rows(struct lowered *l, uint32_t a, uint32_t d, uint64_t d_at,
		     const struct along *x, uint32_t kernel, uint32_t stride,
		     uint32_t out, bool u8)
{
	uint32_t cols = columns_of(x->inner);

	for (uint32_t i = 0; i < x->outer; i++) {
		struct step *s = lower_step(l, STEP_MAXPOOL, a, NPUC_NONE, d);

		if (!s)
			return -ENOMEM;
		s->u.pool = (struct hal_npu_pool){
			.size = (uint32_t)sizeof(s->u.pool),
			.h = x->k,
			.w = cols,
			.c = x->inner / cols,
			.oh = out,
			.ow = cols,
			.kh = kernel,
			.kw = 1,
			.stride_h = stride,
			.stride_w = 1,
			.a.offset = i * x->k * x->inner,
			.d.offset = (uint32_t)d_at + i * out * x->inner,
			.min = u8 ? 0 : -128,
			.max = u8 ? 255 : 127,
			.flags = u8 ? HAL_NPU_A_UINT8 | HAL_NPU_D_UINT8 : 0,
		};
	}
	return 0;
}

/* Windows of kernel elements at a distance of stride; [outer][out][inner] from d_at on.
 */
static int pool(struct lowered *l, uint32_t a, uint32_t d, uint64_t d_at,
		const struct along *x, uint32_t kernel, uint32_t stride, uint32_t out,
		bool u8)
{
	if (x->inner > SIDE_MAX)
		return pool_rows(l, a, d, d_at, x, kernel, stride, out, u8);
	for (uint32_t at = 0; at < x->outer; at += SIDE_MAX) {
		uint32_t rows = x->outer - at < SIDE_MAX ? x->outer - at : SIDE_MAX;
		struct step *s = lower_step(l, STEP_MAXPOOL, a, NPUC_NONE, d);

		if (!s)
			return -ENOMEM;
		s->u.pool = (struct hal_npu_pool){
			.size = (uint32_t)sizeof(s->u.pool),
			.h = rows,
			.w = x->k,
			.c = x->inner,
			.oh = rows,
			.ow = out,
			.kh = 1,
			.kw = kernel,
			.stride_h = 1,
			.stride_w = stride,
			.a.offset = at * x->k * x->inner,
			.d.offset = (uint32_t)d_at + at * out * x->inner,
			.min = u8 ? 0 : -128,
			.max = u8 ? 255 : 127,
			.flags = u8 ? HAL_NPU_A_UINT8 | HAL_NPU_D_UINT8 : 0,
		};
	}
	return 0;
}

/* The largest divisor of k that a window can have; 0: none. */
static uint32_t divisor(uint32_t k)
{
	for (uint32_t f = KERNEL_MAX; f > 1; f--)
		if (k % f == 0)
			return f;
	return 0;
}

/* [outer][k][inner] -> [outer][inner], in as many turns as windows need; the last one
 * writes to d from d_at on. */
static int largest(struct lowered *l, uint32_t a, uint32_t d, uint64_t d_at,
		   struct along x, bool u8)
{
	int rc = 0;

	if (x.inner > SIDE_MAX && !columns_of(x.inner))
		return lower_fail(l, ENOTSUP,
				  "%u elements side by side; more than %u must be a "
				  "product of two numbers of at most %u",
				  x.inner, SIDE_MAX, SIDE_MAX);
	while (!rc && x.k > KERNEL_MAX) {
		uint32_t f = divisor(x.k), out = f ? 1 : (x.k - 1) / STRIDE_MAX + 1, to;
		struct along part = x;

		if (!f && x.k > SIDE_MAX)
			return lower_fail(l, ENOTSUP,
					  "the largest of %u elements is not supported",
					  x.k);
		if (f) {
			part.outer = x.outer * (x.k / f);
			part.k = f;
		}
		rc = lower_value(l, (uint64_t)part.outer * out * x.inner, NULL, &to);
		if (!rc)
			rc = pool(l, a, to, 0, &part, f ? f : STRIDE_MAX,
				  f ? 1 : STRIDE_MAX, out, u8);
		a = to;
		x.k = f ? x.k / f : out;
	}
	return rc ? rc : pool(l, a, d, d_at, &x, x.k, 1, 1, u8);
}

static uint64_t bytes_of(const struct along *x)
{
	return (uint64_t)x->outer * x->k * x->inner;
}

static uint32_t sizes(const struct runs *r, uint32_t from, uint32_t to, bool all)
{
	uint32_t n = 1;

	for (uint32_t i = from; i < to; i++)
		n *= all || !r->run[i].reduced ? r->run[i].size : 1;
	return n;
}

/* One run after the other; the last one is the layer's result.  width: bytes. */
static int reduce_runs(struct lowered *l, uint32_t a, uint32_t d, const struct runs *r,
		       uint32_t width, bool u8)
{
	uint32_t left = 0;
	int rc = 0;

	for (uint32_t i = 0; i < r->count; i++)
		left += r->run[i].reduced;
	if (!left)
		return lower_alias(l, a, d);
	for (uint32_t i = 0; !rc && i < r->count; i++) {
		struct along x = {sizes(r, 0, i, false), r->run[i].size,
				  sizes(r, i + 1, r->count, true)};
		uint32_t to = d;

		if (!r->run[i].reduced)
			continue;
		if (--left)
			rc = lower_value(l, (uint64_t)x.outer * x.inner * width, NULL,
					 &to);
		if (!rc && width == 2)
			rc = wide_largest(l, a, to,
					  (const uint32_t[]){x.outer, x.k, x.inner},
					  INT16_MIN, INT16_MAX);
		else if (!rc)
			rc = largest(l, a, to, 0, x, u8);
		a = to;
	}
	return rc;
}

/* REDUCE_MIN: the largest of the complements. */
int lower_reduce(struct lowered *l)
{
	bool least = lower_op(l)->code == NPUC_REDUCE_MIN, u8;
	uint32_t a, d, from, to, width;
	struct runs r = {0};
	uint64_t count;
	int rc = lower_counts(l, 2, 2);

	if (!rc)
		rc = lower_operand16(l, 0, &a);
	if (!rc)
		rc = lower_result16(l, &d);
	if (!rc)
		rc = lower_same_quant(l, a, d);
	if (!rc)
		rc = lower_runs(l, a, d, &r);
	if (rc)
		return rc;
	count = sizes(&r, 0, r.count, false);
	lower_describe(l, a, d);
	u8 = lower_t(l, a)->type == NPUC_UINT8;
	width = npuc_type_bytes(lower_t(l, a)->type);
	if (!least)
		return reduce_runs(l, a, d, &r, width, u8);
	rc = lower_value(l, lower_t(l, a)->bytes, NULL, &from);
	if (!rc)
		rc = lower_value(l, count * width, NULL, &to);
	if (!rc)
		rc = complement(l, a, from, lower_t(l, a)->bytes);
	if (!rc)
		rc = reduce_runs(l, from, to, &r, width, u8);
	return rc ? rc : complement(l, to, d, count * width);
}

/* ---- where they are --------------------------------------------------------------- */

/* 1 where a[outer][k][inner] is b[outer][inner], at most, else 0; a <= b. */
static int reaches(struct lowered *l, uint32_t a, uint32_t b, const struct along *x,
		   bool u8, uint32_t *hit)
{
	struct hal_npu_add op = pair_difference(
		1, 0, 1, HAL_NPU_D_UINT8 | (u8 ? HAL_NPU_A_UINT8 | HAL_NPU_B_UINT8 : 0));
	struct pair s = {0};
	uint32_t v[3] = {a, b};
	int rc = lower_value(l, bytes_of(x), NULL, hit);

	if (rc)
		return rc;
	v[2] = *hit;
	pair_dim(&s, x->outer, true, true);
	pair_dim(&s, x->k, true, false);
	pair_dim(&s, x->inner, true, true);
	rc = pair_expand(l, &s, v);
	return rc ? rc : pair_add(l, &s, v, &op);
}

int pair_below_largest(struct lowered *l, uint32_t a, uint32_t rows, uint32_t cols,
		       bool u8, uint32_t *d)
{
	struct hal_npu_add op = pair_difference(
		0, 0, 255,
		HAL_NPU_D_UINT8 | (u8 ? HAL_NPU_A_UINT8 | HAL_NPU_B_UINT8 : 0));
	struct pair s = {0};
	uint32_t v[3] = {0, a, 0};
	int rc = lower_value(l, rows, NULL, &v[0]);

	if (!rc)
		rc = largest(l, a, v[0], 0, (struct along){rows, cols, 1}, u8);
	if (!rc)
		rc = lower_value(l, (uint64_t)rows * cols, NULL, &v[2]);
	if (rc)
		return rc;
	*d = v[2];
	pair_dim(&s, rows, true, true);
	pair_dim(&s, cols, false, true);
	rc = pair_expand(l, &s, v);
	return rc ? rc : pair_add(l, &s, v, &op);
}

static struct hal_npu_mul exactly(void)
{
	return (struct hal_npu_mul){
		.size = (uint32_t)sizeof(struct hal_npu_mul),
		.mult = INT32_C(1) << 30,
		.shift = 1,
		.max = 255,
		.flags = HAL_NPU_A_UINT8 | HAL_NPU_B_UINT8 | HAL_NPU_D_UINT8,
	};
}

/* The high bytes' largest, then the largest low byte of those that have it. */
int wide_largest(struct lowered *l, uint32_t a, uint32_t d, const uint32_t size[3],
		 int32_t min, int32_t max)
{
	enum { LOW, HIGH, BOTH };
	struct along x = {size[0], size[1], size[2]};
	uint32_t rows = (uint32_t)bytes_of(&x), results = x.outer * x.inner, v, y, hit;
	uint32_t all[BOTH], most[BOTH], chosen;
	uint32_t above = (1u << 23) - (uint32_t)(min - INT16_MIN);
	struct digits_step one = {.rows = rows, .bytes = 2 * DIGITS_SUM, .columns = 1};
	struct digits_step row = {
		.rows = results,
		.bytes = 1,
		.columns = 2,
		.weights = {{1}},
		.bias = {(int32_t)(above >> 8 & 255), (int32_t)(above >> 16)}};
	struct hal_npu_mul op = exactly();
	struct pair s = {0};
	int rc = wide_open(l, a, rows, &v);

	digits_as_bytes(&one);
	for (uint32_t i = 0; !rc && i < BOTH; i++) {
		one.weights[0][0] = i == LOW;
		one.weights[DIGITS_SUM][0] = i == HIGH;
		rc = digits_new(l, v, &one, &all[i]);
		if (!rc)
			rc = lower_value(l, results, NULL, &most[i]);
	}
	if (!rc)
		rc = largest(l, all[HIGH], most[HIGH], 0, x, true);
	if (!rc)
		rc = reaches(l, all[HIGH], most[HIGH], &x, true, &hit);
	if (!rc)
		rc = lower_value(l, rows, NULL, &chosen);
	pair_dim(&s, rows, true, true);
	if (!rc)
		rc = pair_mul(l, &s, (const uint32_t[]){hit, all[LOW], chosen}, &op);
	if (!rc)
		rc = largest(l, chosen, most[LOW], 0, x, true);
	/* Two digits and a guard, above min. */
	if (!rc)
		rc = lower_value(l, (uint64_t)results * 3 * DIGITS_SUM, NULL, &y);
	if (!rc)
		rc = digits_step_at(l, most[HIGH], &row, y, DIGITS_SUM, 3 * DIGITS_SUM);
	row.columns = 1;
	row.bias[0] = (int32_t)(above & 255);
	if (!rc)
		rc = digits_step_at(l, most[LOW], &row, y, 0, 3 * DIGITS_SUM);
	if (!rc)
		rc = digits_carry(l, results, 3, min == INT16_MIN ? 0 : 2, &y);
	return rc ? rc
		  : digits_to_int16(l, y,
				    &(struct digits_int16){.rows = results,
							   .digits = 3,
							   .guards = 1,
							   .min = min,
							   .max = max},
				    d);
}

/* A hit becomes its rank, 255 less its number along k, all else 0. */
static int rank(struct lowered *l, uint32_t hit, const struct along *x, uint32_t *ranks)
{
	uint64_t row = (uint64_t)x->k * x->inner;
	uint8_t *table = lower_own(l, row);
	struct hal_npu_mul op = exactly();
	struct pair s = {0};
	uint32_t constant;
	int rc = table ? lower_value(l, row, table, &constant) : -ENOMEM;

	for (uint64_t i = 0; !rc && i < row; i++)
		table[i] = (uint8_t)(KERNEL_MAX - i / x->inner);
	if (!rc)
		rc = lower_value(l, bytes_of(x), NULL, ranks);
	pair_dim(&s, x->outer, true, false);
	pair_dim(&s, (uint32_t)row, true, true);
	return rc ? rc : pair_mul(l, &s, (const uint32_t[]){hit, constant, *ranks}, &op);
}

int wide_choose(struct lowered *l, uint32_t a, uint32_t b, uint32_t d, uint32_t count,
		bool maximum)
{
	const uint32_t size[3] = {1, 2, count}, from[2] = {a, b};
	uint64_t bytes = (uint64_t)count * 2;
	uint32_t both, to = d;
	int rc = lower_value(l, 2 * bytes, NULL, &both);

	for (uint32_t i = 0; !rc && i < 2; i++) {
		struct step *s = lower_step(l, STEP_COPY, from[i], NPUC_NONE, both);

		if (!s)
			return -ENOMEM;
		s->u.copy = (struct hal_npu_copy){
			.size = (uint32_t)sizeof(s->u.copy),
			.rows = 1,
			.bytes = (uint32_t)bytes,
			.d.offset = (uint32_t)(i * bytes),
		};
	}
	if (maximum)
		return rc ? rc : wide_largest(l, both, d, size, INT16_MIN, INT16_MAX);
	a = both;
	if (!rc)
		rc = lower_value(l, 2 * bytes, NULL, &both);
	if (!rc)
		rc = lower_value(l, bytes, NULL, &to);
	if (!rc)
		rc = complement(l, a, both, 2 * bytes);
	if (!rc)
		rc = wide_largest(l, both, to, size, INT16_MIN, INT16_MAX);
	return rc ? rc : complement(l, to, d, bytes);
}

/* Numbers of at most 255 along k: the rank of the first of those that are b. */
static int first(struct lowered *l, uint32_t a, uint32_t b, const struct along *x,
		 bool u8, uint32_t *ranks, uint32_t d, uint64_t d_at)
{
	uint32_t hit;
	int rc = reaches(l, a, b, x, u8, &hit);

	if (!rc)
		rc = rank(l, hit, x, ranks);
	return rc ? rc : largest(l, *ranks, d, d_at, *x, true);
}

/* How ranks become indices: weights and biases of a convolution whose sums they are. */
struct numbering {
	uint32_t levels, words; /* of a result */
	const uint8_t *weights;
	const int32_t *bias;
};

/* count results from at on of a value that has n of each level: a part of several levels
 * is copied first. */
static int index_part(struct lowered *l, const struct numbering *x, uint32_t ranks,
		      uint32_t d, uint64_t n, uint64_t at, uint32_t count)
{
	struct move m = {.a_at = (int64_t)at};
	struct step *s;
	int rc = 0;

	if (x->levels > 1 && count < n) {
		uint32_t part;

		rc = lower_value(l, (uint64_t)x->levels * count, NULL, &part);
		move_add(&m, x->levels, (int64_t)n, count);
		move_add(&m, count, 1, 1);
		if (!rc)
			rc = lower_move(l, ranks, part, 1, &m);
		ranks = part;
	}
	if (rc)
		return rc;
	s = lower_step(l, STEP_CONV, ranks, NPUC_NONE, d);
	if (!s)
		return -ENOMEM;
	s->u.conv = (struct hal_npu_conv){
		.size = (uint32_t)sizeof(s->u.conv),
		.h = x->levels,
		.w = count,
		.c = 1,
		.oh = 1,
		.ow = count,
		.n = x->words,
		.kh = x->levels,
		.kw = 1,
		.stride_h = 1,
		.stride_w = 1,
		.dilation_h = 1,
		.dilation_w = 1,
		.groups = 1,
		.a.offset = x->levels > 1 ? 0 : (uint32_t)at,
		.d.offset = (uint32_t)at * x->words * 4,
		.weights = (const int8_t *)x->weights,
		.b_zero = (int32_t)KERNEL_MAX,
		.out = {.bias = x->bias},
		.flags = HAL_NPU_A_UINT8 | HAL_NPU_B_UINT8,
	};
	return 0;
}

/* Indices from what first found: of one level, [n] ranks; of two, those of the chunks,
 * then those in the chunk, each chunk so long.  A convolution whose sums are the result,
 * the upper half of an int64 with weights of 0. */
static int indices(struct lowered *l, uint32_t ranks, uint32_t d, uint64_t n,
		   uint32_t levels, uint32_t chunk)
{
	uint32_t words = lower_t(l, d)->type == NPUC_INT64 ? 2 : 1;
	uint8_t *weights = lower_own(l, (uint64_t)words * levels);
	int32_t *bias = lower_own(l, (uint64_t)words * 4);
	const struct numbering x = {levels, words, weights, bias};
	int rc = 0;

	if (!weights || !bias)
		return -ENOMEM;
	for (uint32_t i = 0; i < words * levels; i++)
		weights[i] = KERNEL_MAX;
	/* Less their zero point: -1, or -chunk and -1. */
	weights[levels - 1] = KERNEL_MAX - 1;
	bias[0] = KERNEL_MAX;
	if (levels == 2) {
		weights[0] = (uint8_t)(KERNEL_MAX - chunk);
		bias[0] += (int32_t)(KERNEL_MAX * chunk);
	}
	for (uint64_t at = 0; !rc && at < n; at += SIDE_MAX)
		rc = index_part(l, &x, ranks, d, n, at,
				n - at < SIDE_MAX ? (uint32_t)(n - at) : SIDE_MAX);
	return rc;
}

static int arg_short(struct lowered *l, uint32_t a, uint32_t d, const struct along *x,
		     bool u8)
{
	uint64_t n = (uint64_t)x->outer * x->inner;
	uint32_t most, ranks, best;
	int rc = lower_value(l, n, NULL, &most);

	if (!rc)
		rc = largest(l, a, most, 0, *x, u8);
	if (!rc)
		rc = lower_value(l, n, NULL, &best);
	if (!rc)
		rc = first(l, a, most, x, u8, &ranks, best, 0);
	return rc ? rc : indices(l, best, d, n, 1, 0);
}

/* [outer][k][inner] in chunks, the last of them filled up with the smallest number. */
static int fill_up(struct lowered *l, uint32_t *a, const struct along *x, uint32_t k,
		   bool u8)
{
	uint64_t bytes = (uint64_t)x->outer * k * x->inner;
	uint32_t to;
	struct step *s;
	int rc;

	if (k == x->k)
		return 0;
	rc = lower_value(l, bytes, NULL, &to);
	if (rc)
		return rc;
	s = lower_step(l, STEP_FILL, NPUC_NONE, NPUC_NONE, to);
	if (!s)
		return -ENOMEM;
	s->u.fill.bytes = (uint32_t)((bytes + 3) / 4 * 4);
	s->u.fill.pattern = u8 ? 0 : 0x80808080u;
	s = lower_step(l, STEP_COPY, *a, NPUC_NONE, to);
	if (!s)
		return -ENOMEM;
	s->u.copy = (struct hal_npu_copy){
		.size = (uint32_t)sizeof(s->u.copy),
		.rows = x->outer,
		.bytes = x->k * x->inner,
		.d_stride = k * x->inner,
	};
	*a = to;
	return 0;
}

/* The first chunk that has the largest element, and the first place in it. */
static int arg_long(struct lowered *l, uint32_t a, uint32_t d, const struct along *x,
		    bool u8)
{
	uint32_t chunks = (x->k - 1) / KERNEL_MAX + 1, chunk = (x->k - 1) / chunks + 1;
	struct along in = {x->outer * chunks, chunk, x->inner};
	struct along over = {x->outer, chunks, x->inner};
	uint64_t n = (uint64_t)x->outer * x->inner;
	struct hal_npu_mul op = exactly();
	uint32_t most, all, best, places, ranks, hit, chosen;
	struct pair s = {0};
	int rc = fill_up(l, &a, x, chunks * chunk, u8);

	if (!rc)
		rc = lower_value(l, n * chunks, NULL, &most);
	if (!rc)
		rc = lower_value(l, n, NULL, &all);
	if (!rc)
		rc = lower_value(l, n * chunks, NULL, &places);
	if (!rc)
		rc = lower_value(l, 2 * n, NULL, &best);
	if (!rc)
		rc = lower_value(l, n * chunks, NULL, &chosen);
	if (!rc)
		rc = largest(l, a, most, 0, in, u8);
	if (!rc)
		rc = largest(l, most, all, 0, over, u8);
	if (!rc)
		rc = first(l, a, most, &in, u8, &ranks, places, 0);
	if (!rc)
		rc = first(l, most, all, &over, u8, &ranks, best, 0);
	/* Ranks differ: one chunk alone has the largest. */
	if (!rc)
		rc = reaches(l, ranks, best, &over, true, &hit);
	pair_dim(&s, (uint32_t)(n * chunks), true, true);
	if (!rc)
		rc = pair_mul(l, &s, (const uint32_t[]){hit, places, chosen}, &op);
	if (!rc)
		rc = largest(l, chosen, best, n, over, true);
	return rc ? rc : indices(l, best, d, n, 2, chunk);
}

static int arg_operands(struct lowered *l, uint32_t *a, uint32_t *d, struct along *x)
{
	const struct npuc_tensor *t;
	uint32_t dims[NPUC_RANK], rank = 0;
	const int32_t *axis;
	int64_t at;
	int rc = lower_counts(l, 2, 2);

	if (!rc)
		rc = lower_operand(l, 0, a);
	if (!rc)
		rc = lower_ints(l, 1, false, 1, &axis, NULL);
	if (!rc)
		rc = lower_index_result(l, d);
	if (rc)
		return rc;
	t = lower_t(l, *a);
	at = axis[0] < 0 ? (int64_t)axis[0] + t->rank : axis[0];
	if (at < 0 || at >= (int64_t)t->rank)
		return lower_fail(l, EINVAL, "axis %d does not exist in %u dimensions",
				  axis[0], t->rank);
	*x = (struct along){1, (uint32_t)t->dims[at], 1};
	for (uint32_t i = 0; i < t->rank; i++) {
		if (i != at)
			dims[rank++] = (uint32_t)t->dims[i];
		x->outer *= i < at ? (uint32_t)t->dims[i] : 1;
		x->inner *= i > at ? (uint32_t)t->dims[i] : 1;
	}
	rc = lower_dims(l, *d, rank, dims);
	if (rc)
		return rc;
	if (x->k > KERNEL_MAX * KERNEL_MAX)
		return lower_fail(
			l, ENOTSUP,
			"the index of one of %u elements; at most %u are supported", x->k,
			KERNEL_MAX * KERNEL_MAX);
	return 0;
}

/* Of one element: number 0. */
static int no_choice(struct lowered *l, uint32_t d)
{
	struct step *s = lower_step(l, STEP_FILL, NPUC_NONE, NPUC_NONE, d);

	if (!s)
		return -ENOMEM;
	s->u.fill.bytes = (uint32_t)lower_t(l, d)->bytes;
	return 0;
}

int lower_arg_max(struct lowered *l)
{
	struct along x = {0};
	uint32_t a, d, to;
	bool u8;
	int rc = arg_operands(l, &a, &d, &x);

	if (rc)
		return rc;
	lower_describe(l, a, d);
	if (x.k == 1)
		return no_choice(l, d);
	u8 = lower_t(l, a)->type == NPUC_UINT8;
	if (lower_op(l)->code == NPUC_ARG_MIN) {
		rc = lower_value(l, bytes_of(&x), NULL, &to);
		if (!rc)
			rc = complement(l, a, to, bytes_of(&x));
		a = to;
	}
	if (rc)
		return rc;
	return x.k > KERNEL_MAX ? arg_long(l, a, d, &x, u8) : arg_short(l, a, d, &x, u8);
}
