/* SPDX-License-Identifier: Apache-2.0 */
/* lower_matmul.c - products of matrices that may both be activations. */
#include <errno.h>

#include "lower_digits.h"
#include "lower_int16.h"
#include "lower_move.h"

/* Kind of union BuiltinOptions, and fields of its table. */
enum {
	OPTIONS_BATCH_MATMUL = 101,
	MATMUL_ADJ_X = 0,
	MATMUL_ADJ_Y = 1,
};

/* [m][k] times [k][n], in as many batches as the outer dimensions have. */
struct matmul {
	uint32_t a, b, d;
	uint32_t m, n, k, rank;
	uint64_t batches;                            /* of the result */
	uint32_t dims[NPUC_RANK];                    /* of the result */
	uint32_t a_dim[NPUC_RANK], b_dim[NPUC_RANK]; /* of the operands, 1 in front */
	struct hal_npu_requant out;
	uint32_t flags;
};

static void widen(const struct npuc_tensor *t, uint32_t rank, uint32_t dims[NPUC_RANK])
{
	for (uint32_t i = 0; i < rank; i++)
		dims[i] = i + t->rank < rank ? 1 : (uint32_t)t->dims[i + t->rank - rank];
}

static int matmul_shape(struct lowered *l, struct matmul *x, bool adj_x, bool adj_y)
{
	const struct npuc_tensor *a = lower_t(l, x->a), *b = lower_t(l, x->b);
	uint32_t rank = a->rank > b->rank ? a->rank : b->rank, k;

	if (a->rank < 2 || b->rank < 2)
		return lower_fail(
			l, EINVAL,
			"operands have %u and %u dimensions; both need at least 2",
			a->rank, b->rank);
	x->rank = rank;
	widen(a, rank, x->a_dim);
	widen(b, rank, x->b_dim);
	for (uint32_t i = 0; i + 2 < rank; i++) {
		uint32_t n = x->a_dim[i], m = x->b_dim[i];

		if (n != m && n != 1 && m != 1)
			return lower_fail(l, EINVAL,
					  "the shapes do not broadcast: sizes %u and %u",
					  n, m);
		x->dims[i] = n > m ? n : m;
	}
	x->m = x->a_dim[adj_x ? rank - 1 : rank - 2];
	x->k = x->a_dim[adj_x ? rank - 2 : rank - 1];
	k = x->b_dim[adj_y ? rank - 1 : rank - 2];
	x->n = x->b_dim[adj_y ? rank - 2 : rank - 1];
	if (x->k != k)
		return lower_fail(
			l, EINVAL,
			"rows of %u elements cannot be multiplied with columns of %u",
			x->k, k);
	x->dims[rank - 2] = x->m;
	x->dims[rank - 1] = x->n;
	return lower_dims(l, x->d, rank, x->dims);
}

/* An operand's matrices of rows x cols, turned where they lie the other way round (adj).
 * Of int16 all low bytes come first, then all high ones. */
static int turn(struct lowered *l, uint32_t *v, uint64_t batches, uint32_t rows,
		uint32_t cols, bool adj, bool wide)
{
	uint64_t matrix = (uint64_t)rows * cols;
	int64_t element = wide ? 2 : 1;
	struct move m = {0};
	uint32_t to;
	int rc = lower_value(l, batches * matrix * (uint64_t)element, NULL, &to);

	if (wide)
		move_add(&m, 2, 1, (int64_t)(batches * matrix));
	move_add(&m, batches, (int64_t)matrix * element, (int64_t)matrix);
	move_add(&m, rows, (adj ? 1 : cols) * element, cols);
	move_add(&m, cols, (adj ? rows : 1) * element, 1);
	if (!rc && l->values[*v].data)
		rc = lower_made(l, to);
	if (!rc)
		rc = lower_move(l, *v, to, 1, &m);
	*v = to;
	return rc;
}

static uint64_t batches_of(const uint32_t *dims, uint32_t rank)
{
	uint64_t n = 1;

	for (uint32_t i = 0; i + 2 < rank; i++)
		n *= dims[i];
	return n;
}

/* TensorFlow Lite's coarse multiplier: the product of the scales as a float. */
static int matmul_requant(struct lowered *l, struct matmul *x)
{
	const struct npuc_tensor *a = lower_t(l, x->a), *b = lower_t(l, x->b);
	const struct npuc_tensor *d = lower_t(l, x->d);
	float product = a->scale * b->scale;
	struct quant_mult q = quant_of((double)product / (double)d->scale);
	int32_t *mult = lower_own(l, 8);

	if (!mult)
		return -ENOMEM;
	if (q.shift > 30)
		return lower_fail(l, ENOTSUP,
				  "scales %g * %g / %g give a multiplier of 2^30 or more",
				  (double)a->scale, (double)b->scale, (double)d->scale);
	mult[0] = q.mult;
	mult[1] = q.shift;
	x->out = (struct hal_npu_requant){.mult = mult,
					  .shift = mult + 1,
					  .zero_point = d->zero_point,
					  .min = quant_min(d->type),
					  .max = quant_max(d->type)};
	x->flags = lower_u8(l, x->a, HAL_NPU_A_UINT8 | HAL_NPU_B_UINT8 | HAL_NPU_D_UINT8);
	return 0;
}

/* Where an operand's matrix for batch number lies, counted in matrices. */
static uint64_t matrix_of(const struct matmul *x, const uint32_t *dims, uint64_t number)
{
	uint64_t at = 0, step = 1;

	for (uint32_t i = x->rank - 2; i--;) {
		if (dims[i] > 1)
			at += number % x->dims[i] * step;
		number /= x->dims[i];
		step *= dims[i];
	}
	return at;
}

static struct step *matmul_step(struct lowered *l, const struct matmul *x, uint32_t a,
				uint32_t b, uint32_t d, uint64_t batch)
{
	struct step *s = lower_step(l, STEP_GEMM, a, b, d);

	if (s)
		s->u.gemm = (struct hal_npu_gemm){
			.size = (uint32_t)sizeof(s->u.gemm),
			.m = x->m,
			.n = x->n,
			.k = x->k,
			.a.offset =
				(uint32_t)(matrix_of(x, x->a_dim, batch) * x->m * x->k),
			.b.offset =
				(uint32_t)(matrix_of(x, x->b_dim, batch) * x->k * x->n),
		};
	return s;
}

static int matmul8(struct lowered *l, const struct matmul *x, uint32_t a, uint32_t b)
{
	for (uint64_t i = 0; i < x->batches; i++) {
		struct step *s = matmul_step(l, x, a, b, x->d, i);

		if (!s)
			return -ENOMEM;
		s->u.gemm.d.offset = (uint32_t)(i * x->m * x->n);
		s->u.gemm.a_zero = lower_t(l, x->a)->zero_point;
		s->u.gemm.b_zero = lower_t(l, x->b)->zero_point;
		s->u.gemm.out = x->out;
		s->u.gemm.flags = x->flags;
	}
	return 0;
}

/* ---- int16 -------------------------------------------------------------------------- */

#define DEEP_MAX 32768u /* parts are below 2^30 in magnitude, those of low bytes 2^31 */

enum { PARTS = 4 };

/* Products of low bytes, of low and high ones, of high and low, of high ones: PARTS sums
 * of each row beside each other. */
static int part_sums(struct lowered *l, const struct matmul *x, uint32_t a, uint32_t b,
		     uint32_t v)
{
	uint32_t a_plane = (uint32_t)lower_t(l, x->a)->count;
	uint32_t b_plane = (uint32_t)lower_t(l, x->b)->count;
	uint32_t row = x->n * DIGITS_SUM;
	int32_t *bias = lower_own(l, x->n * sizeof(*bias));

	if (!bias)
		return -ENOMEM;
	for (uint32_t n = 0; n < x->n; n++)
		bias[n] = INT32_C(1) << INT16_PART_ABOVE;
	for (uint64_t i = 0; i < x->batches * PARTS; i++) {
		uint32_t part = (uint32_t)(i % PARTS);
		struct step *s = matmul_step(l, x, a, b, v, i / PARTS);

		if (!s)
			return -ENOMEM;
		s->u.gemm.a.offset += part & 2 ? a_plane : 0;
		s->u.gemm.b.offset += part & 1 ? b_plane : 0;
		s->u.gemm.d.offset = (uint32_t)(i / PARTS * x->m * PARTS + part) * row;
		s->u.gemm.d_stride = PARTS * row;
		s->u.gemm.out.bias = part ? bias : NULL;
		s->u.gemm.flags = (part & 2 ? 0 : HAL_NPU_A_UINT8) |
				  (part & 1 ? 0 : HAL_NPU_B_UINT8);
	}
	return 0;
}

static int matmul16(struct lowered *l, const struct matmul *x, uint32_t a, uint32_t b)
{
	uint64_t *largest = lower_own(l, x->n * sizeof(*largest));
	struct int16_parts s = {.pixels = x->batches * x->m,
				.numbers = x->n,
				.parts = PARTS,
				.at = {0, 8, 8, 16},
				.largest = largest,
				.out = x->out};
	unsigned long long results = lower_t(l, x->d)->count;
	int rc;

	if (!largest)
		return -ENOMEM;
	if (x->k > DEEP_MAX || results > INT32_MAX / (PARTS * DIGITS_SUM))
		return lower_fail(l, ENOTSUP,
				  "%llu sums of %u products; less than 2^27 sums of at "
				  "most %u products are supported",
				  results, x->k, DEEP_MAX);
	for (uint32_t n = 0; n < x->n; n++)
		largest[n] = (uint64_t)x->k << 30;
	rc = lower_value(l, results * PARTS * DIGITS_SUM, NULL, &s.v);
	if (!rc)
		rc = part_sums(l, x, a, b, s.v);
	return rc ? rc : int16_requantize(l, &s, x->d);
}

int lower_batch_matmul(struct lowered *l)
{
	bool adj_x = lower_option_u8(l, OPTIONS_BATCH_MATMUL, MATMUL_ADJ_X);
	bool adj_y = lower_option_u8(l, OPTIONS_BATCH_MATMUL, MATMUL_ADJ_Y);
	struct matmul x = {0};
	uint32_t a, b;
	bool wide;
	int rc = lower_counts(l, 2, 2);

	if (!rc)
		rc = lower_operand16(l, 0, &x.a);
	if (!rc)
		rc = lower_operand16(l, 1, &x.b);
	if (!rc)
		rc = lower_result16(l, &x.d);
	if (!rc)
		rc = lower_same_type(l, x.a, x.b);
	if (!rc)
		rc = lower_same_type(l, x.a, x.d);
	if (!rc)
		rc = matmul_shape(l, &x, adj_x, adj_y);
	if (!rc)
		rc = matmul_requant(l, &x);
	if (rc)
		return rc;
	lower_describe(l, x.a, x.d);
	a = x.a;
	b = x.b;
	wide = lower_t(l, a)->type == NPUC_INT16;
	x.batches = batches_of(x.dims, x.rank);
	lower_macs(l, lower_t(l, x.d)->count * x.k);
	if (x.batches > LOWER_PIECES_MAX)
		return lower_fail(l, ENOTSUP,
				  "sums of %llu products; at most %u are supported",
				  (unsigned long long)x.batches, LOWER_PIECES_MAX);
	if (adj_x || wide)
		rc = turn(l, &a, batches_of(x.a_dim, x.rank), x.m, x.k, adj_x, wide);
	if (!rc && (adj_y || wide))
		rc = turn(l, &b, batches_of(x.b_dim, x.rank), x.k, x.n, adj_y, wide);
	if (rc)
		return rc;
	return wide ? matmul16(l, &x, a, b) : matmul8(l, &x, a, b);
}
