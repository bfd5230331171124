/* SPDX-License-Identifier: Apache-2.0 */
/* builder_vec.c - operations of the vector unit: element by element, rows, pools. */
#include "builder.h"

#include <errno.h>
#include <string.h>

#define ROW_PIECE 32768u /* elementwise operations longer than a field are cut here */
#define REPEATS   (HAL_NPU_A_REPEAT | HAL_NPU_B_REPEAT)

/* ---- rows of bytes ---------------------------------------------------------------- */

/* An operation over rows of bytes, whatever it does with them. */
struct elements {
	uint32_t desc[16]; /* all of the descriptor but sizes, strides and addresses */
	uint32_t rows, bytes;
	uint64_t lda, ldb, ldd;              /* 0: the row is used again */
	struct hal_npu_place a, b, d, table; /* table's id 0: none */
};

/* One descriptor's part of it. */
struct box {
	uint64_t a, b, d; /* from the places on, bytes */
	uint64_t lda, ldb, ldd;
	uint32_t rows, cols;
};

static struct elements elements_of(uint32_t vop, uint32_t flags)
{
	struct elements e = {.rows = 1};

	NPU_SET(e.desc, OPCODE, NPU_OP_VEC);
	NPU_SET(e.desc, VOP, vop);
	npu_set_types(e.desc, flags);
	return e;
}

static uint64_t stride_of(uint32_t stride, uint32_t bytes, uint32_t repeat)
{
	if (repeat)
		return 0;
	return stride ? stride : bytes;
}

static int reads_a(const struct elements *e)
{
	return NPU_GET(e->desc, VOP) != NPU_VOP_FILL;
}

static int reads_b(const struct elements *e)
{
	return NPU_GET(e->desc, VOP) == NPU_VOP_ADD ||
	       NPU_GET(e->desc, VOP) == NPU_VOP_MUL;
}

/* Rows that lie one behind the other may be cut anywhere, if they are no unit. */
static int is_dense(const struct elements *e)
{
	if (NPU_GET(e->desc, VOP) == NPU_VOP_SOFTMAX)
		return 0;
	return e->rows == 1 || (e->lda == e->bytes && e->ldd == e->bytes &&
				(!reads_b(e) || e->ldb == e->bytes));
}

static int check_operands(struct npu_op *g, const struct elements *e)
{
	uint64_t last = e->rows - 1;
	int rc = npu_check_stride(g, "d_stride", e->ldd, e->bytes);

	if (!rc && reads_a(e))
		rc = npu_check_place(g, "a", e->a, last * e->lda + e->bytes);
	if (!rc && reads_b(e))
		rc = npu_check_place(g, "b", e->b, last * e->ldb + e->bytes);
	if (!rc)
		rc = npu_check_out(g, "d", e->d, last * e->ldd + e->bytes);
	return rc;
}

static int emit(struct npu_op *g, const struct elements *e, const struct box *box)
{
	uint32_t *d;
	int rc = npu_add_desc(g, &d);

	if (rc)
		return rc;
	memcpy(d, e->desc, sizeof(e->desc));
	NPU_SET(d, DM, box->rows);
	NPU_SET(d, VCOLS, box->cols);
	NPU_SET(d, LDA, box->lda);
	NPU_SET(d, LDD, box->ldd);
	if (reads_b(e))
		NPU_SET(d, VLDB, box->ldb);
	if (reads_a(e))
		rc = NPU_RELOCATE(g, ADDR_A, e->a, box->a);
	if (!rc && reads_b(e))
		rc = NPU_RELOCATE(g, ADDR_B, e->b, box->b);
	if (!rc && e->table.id)
		rc = NPU_RELOCATE(g, ADDR_P, e->table, 0);
	if (!rc)
		rc = NPU_RELOCATE(g, ADDR_D, e->d, box->d);
	return rc;
}

/* Bytes in a row become rows of ROW_PIECE and a rest. */
static int emit_dense(struct npu_op *g, const struct elements *e)
{
	uint64_t bytes = (uint64_t)e->rows * e->bytes, rows = bytes / ROW_PIECE, rest;
	struct box box = {.rows = 1};
	int rc = 0;

	rest = bytes % ROW_PIECE;
	if (bytes <= NPU_U16_MAX) {
		rows = 0;
		rest = bytes;
	}
	if (rows) {
		box.rows = (uint32_t)rows;
		box.cols = ROW_PIECE;
		box.lda = box.ldb = box.ldd = ROW_PIECE;
		rc = emit(g, e, &box);
	}
	if (!rc && rest) {
		box.a = box.b = box.d = bytes - rest;
		box.rows = 1;
		box.cols = (uint32_t)rest;
		box.lda = box.ldb = box.ldd = rest;
		rc = emit(g, e, &box);
	}
	return rc;
}

static int emit_rows(struct npu_op *g, const struct elements *e)
{
	struct box box = {.lda = e->lda, .ldb = e->ldb, .ldd = e->ldd};
	int rc = 0;

	for (uint32_t c = 0; !rc && c < e->bytes; c += box.cols) {
		box.cols = e->bytes - c <= NPU_U16_MAX ? e->bytes - c : ROW_PIECE;
		for (uint32_t r = 0; !rc && r < e->rows; r += box.rows) {
			box.rows = e->rows - r < NPU_DM_MAX ? e->rows - r : NPU_DM_MAX;
			box.a = r * e->lda + c;
			box.b = r * e->ldb + c;
			box.d = r * e->ldd + c;
			rc = emit(g, e, &box);
		}
	}
	return rc;
}

/* Checks the places and cuts the operation into descriptors. */
static int elements(struct npu_op *g, const struct elements *e)
{
	int rc = check_operands(g, e);

	if (rc)
		return rc;
	return is_dense(e) ? emit_dense(g, e) : emit_rows(g, e);
}

/* ---- add, mul, relu --------------------------------------------------------------- */

/* What they have in common. */
struct arithmetic {
	uint32_t flags, rows, bytes, a_stride, b_stride, d_stride;
	struct hal_npu_place a, b, d;
	int32_t a_zero, b_zero, d_zero, min, max;
};

/* Fills e and checks everything that it comes from; own: ranges of the operation's own.
 */
static int arithmetic(struct npu_op *g, uint32_t vop, const struct arithmetic *op,
		      const struct npu_range *own, size_t count, struct elements *e)
{
	uint32_t a8 = op->flags & HAL_NPU_A_UINT8, b8 = op->flags & HAL_NPU_B_UINT8;
	uint32_t d8 = op->flags & HAL_NPU_D_UINT8;
	const struct npu_range ranges[] = {
		{"bytes", op->bytes, 1, UINT32_MAX},
		{"a_zero", op->a_zero, npu_byte_min(a8), npu_byte_max(a8)},
		{"b_zero", op->b_zero, npu_byte_min(b8), npu_byte_max(b8)},
		{"d_zero", op->d_zero, npu_byte_min(d8), npu_byte_max(d8)},
		{"min", op->min, npu_byte_min(d8), npu_byte_max(d8)},
		{"max", op->max, op->min, npu_byte_max(d8)},
	};
	int rc = npu_check_ranges(g, ranges, sizeof(ranges) / sizeof(ranges[0]));

	*e = elements_of(vop, op->flags);
	e->rows = op->rows ? op->rows : 1;
	e->bytes = op->bytes;
	e->lda = stride_of(op->a_stride, op->bytes, op->flags & HAL_NPU_A_REPEAT);
	e->ldb = stride_of(op->b_stride, op->bytes, op->flags & HAL_NPU_B_REPEAT);
	e->ldd = stride_of(op->d_stride, op->bytes, 0);
	e->a = op->a;
	e->b = op->b;
	e->d = op->d;
	NPU_SET(e->desc, VZP1, op->a_zero);
	NPU_SET(e->desc, VZP2, op->b_zero);
	NPU_SET(e->desc, ZPO, op->d_zero);
	NPU_SET(e->desc, AMIN, op->min);
	NPU_SET(e->desc, AMAX, op->max);
	return rc ? rc : npu_check_ranges(g, own, count);
}

static int add(struct npu_op *g, const struct hal_npu_add *op)
{
	const struct arithmetic common = {
		op->flags,    op->rows,   op->bytes, op->a_stride, op->b_stride,
		op->d_stride, op->a,      op->b,     op->d,        op->a_zero,
		op->b_zero,   op->d_zero, op->min,   op->max};
	const struct npu_range own[] = {
		{"a_mult", op->a_mult, -INT32_MAX, INT32_MAX},
		{"b_mult", op->b_mult, -INT32_MAX, INT32_MAX},
		{"d_mult", op->d_mult, 0, INT32_MAX},
		{"a_shift", op->a_shift, -31, 0},
		{"b_shift", op->b_shift, -31, 0},
		{"d_shift", op->d_shift, -31, 0},
		{"left_shift", op->left_shift, 0, 22}, /* 9 bits and a sign stay 32 */
	};
	struct elements e;
	int rc = arithmetic(g, NPU_VOP_ADD, &common, own, sizeof(own) / sizeof(own[0]),
			    &e);

	if (!rc)
		rc = npu_check_flags(g, op->flags, NPU_TYPES | REPEATS);
	if (rc)
		return rc;
	NPU_SET(e.desc, VMULT1, op->a_mult);
	NPU_SET(e.desc, VMULT2, op->b_mult);
	NPU_SET(e.desc, VMULTO, op->d_mult);
	NPU_SET(e.desc, VSHIFT1, op->a_shift);
	NPU_SET(e.desc, VSHIFT2, op->b_shift);
	NPU_SET(e.desc, VSHIFTO, op->d_shift);
	NPU_SET(e.desc, VLSHIFT, op->left_shift);
	return elements(g, &e);
}

HAL_API int hal_npu_add(struct hal_npu_builder *b, const struct hal_npu_add *op)
{
	struct npu_op g;
	int rc = npu_op_begin(&g, b, "hal_npu_add", op, op ? op->size : 0, sizeof(*op));

	return rc ? rc : npu_op_end(&g, add(&g, op));
}

static int mul(struct npu_op *g, const struct hal_npu_mul *op)
{
	const struct arithmetic common = {
		op->flags,    op->rows,   op->bytes, op->a_stride, op->b_stride,
		op->d_stride, op->a,      op->b,     op->d,        op->a_zero,
		op->b_zero,   op->d_zero, op->min,   op->max};
	const struct npu_range own[] = {
		{"mult", op->mult, 0, INT32_MAX},
		{"shift", op->shift, -31, 15}, /* a product of 16 bits and a sign */
	};
	struct elements e;
	int rc = arithmetic(g, NPU_VOP_MUL, &common, own, sizeof(own) / sizeof(own[0]),
			    &e);

	if (!rc)
		rc = npu_check_flags(g, op->flags, NPU_TYPES | REPEATS);
	if (rc)
		return rc;
	NPU_SET(e.desc, VMULTO, op->mult);
	NPU_SET(e.desc, VSHIFTO, op->shift);
	return elements(g, &e);
}

HAL_API int hal_npu_mul(struct hal_npu_builder *b, const struct hal_npu_mul *op)
{
	struct npu_op g;
	int rc = npu_op_begin(&g, b, "hal_npu_mul", op, op ? op->size : 0, sizeof(*op));

	return rc ? rc : npu_op_end(&g, mul(&g, op));
}

static int relu(struct npu_op *g, const struct hal_npu_relu *op)
{
	const struct arithmetic common = {.flags = op->flags,
					  .bytes = op->bytes,
					  .a = op->a,
					  .d = op->d,
					  .a_zero = op->a_zero,
					  .d_zero = op->d_zero,
					  .min = op->min,
					  .max = op->max};
	const struct npu_range own[] = {
		{"mult", op->mult, 0, INT32_MAX},
		{"shift", op->shift, -31, 22},
	};
	struct elements e;
	int rc = arithmetic(g, NPU_VOP_RELU, &common, own, sizeof(own) / sizeof(own[0]),
			    &e);

	if (!rc)
		rc = npu_check_flags(g, op->flags, HAL_NPU_A_UINT8 | HAL_NPU_D_UINT8);
	if (rc)
		return rc;
	NPU_SET(e.desc, VMULT1, op->mult);
	NPU_SET(e.desc, VSHIFT1, op->shift);
	return elements(g, &e);
}

HAL_API int hal_npu_relu(struct hal_npu_builder *b, const struct hal_npu_relu *op)
{
	struct npu_op g;
	int rc = npu_op_begin(&g, b, "hal_npu_relu", op, op ? op->size : 0, sizeof(*op));

	return rc ? rc : npu_op_end(&g, relu(&g, op));
}

/* ---- tables ----------------------------------------------------------------------- */

static int add_table(struct npu_op *g, const void *data, uint64_t bytes,
		     struct hal_npu_place *table)
{
	uint8_t *at;
	int rc;

	if (!data)
		return npu_fail(EINVAL, "%s: the table is NULL", g->op);
	rc = npu_add_const(g->b, bytes, &table->id, &at);
	if (!rc)
		memcpy(at, data, bytes);
	return rc;
}

HAL_API int hal_npu_lut(struct hal_npu_builder *b, const struct hal_npu_lut *op)
{
	struct elements e = elements_of(NPU_VOP_LUT, 0);
	struct npu_op g;
	int rc = npu_op_begin(&g, b, "hal_npu_lut", op, op ? op->size : 0, sizeof(*op));

	if (rc)
		return rc;
	e.bytes = op->bytes;
	e.lda = e.ldd = op->bytes;
	e.a = op->a;
	e.d = op->d;
	rc = npu_check_range(&g, "bytes", op->bytes, 1, UINT32_MAX);
	if (!rc)
		rc = add_table(&g, op->table, 256, &e.table);
	if (!rc)
		rc = elements(&g, &e);
	return npu_op_end(&g, rc);
}

static int check_softmax(struct npu_op *g, const struct hal_npu_softmax *op)
{
	const struct npu_limit limits[] = {
		{"rows", op->rows, UINT32_MAX},
		{"cols", op->cols, NPU_SOFTMAX_COLS},
	};
	int rc = npu_check_flags(g, op->flags, HAL_NPU_A_UINT8 | HAL_NPU_D_UINT8);

	if (!rc)
		rc = npu_check_limits(g, limits, sizeof(limits) / sizeof(limits[0]));
	for (uint32_t i = 0; !rc && op->exp && i < 256; i++)
		rc = npu_check_range(g, "exp[]", op->exp[i], 0, INT32_MAX);
	return rc;
}

HAL_API int hal_npu_softmax(struct hal_npu_builder *b, const struct hal_npu_softmax *op)
{
	struct elements e;
	struct npu_op g;
	int rc = npu_op_begin(&g, b, "hal_npu_softmax", op, op ? op->size : 0,
			      sizeof(*op));

	if (rc)
		return rc;
	e = elements_of(NPU_VOP_SOFTMAX, op->flags);
	e.rows = op->rows;
	e.bytes = op->cols;
	e.lda = e.ldd = op->cols;
	e.a = op->a;
	e.d = op->d;
	rc = check_softmax(&g, op);
	if (!rc)
		rc = add_table(&g, op->exp, 1024, &e.table);
	if (!rc)
		rc = elements(&g, &e);
	return npu_op_end(&g, rc);
}

/* ---- copy and fill ---------------------------------------------------------------- */

HAL_API int hal_npu_copy(struct hal_npu_builder *b, const struct hal_npu_copy *op)
{
	struct elements e = elements_of(NPU_VOP_COPY, 0);
	struct npu_op g;
	int rc = npu_op_begin(&g, b, "hal_npu_copy", op, op ? op->size : 0, sizeof(*op));

	if (rc)
		return rc;
	e.rows = op->rows;
	e.bytes = op->bytes;
	e.lda = stride_of(op->a_stride, op->bytes, op->flags & HAL_NPU_A_REPEAT);
	e.ldd = stride_of(op->d_stride, op->bytes, 0);
	e.a = op->a;
	e.d = op->d;
	rc = npu_check_flags(&g, op->flags, HAL_NPU_A_REPEAT);
	if (!rc)
		rc = npu_check_range(&g, "rows", op->rows, 1, UINT32_MAX);
	if (!rc)
		rc = npu_check_range(&g, "bytes", op->bytes, 1, UINT32_MAX);
	if (!rc)
		rc = elements(&g, &e);
	return npu_op_end(&g, rc);
}

HAL_API int hal_npu_fill(struct hal_npu_builder *b, struct hal_npu_place d,
			 uint32_t bytes, uint32_t pattern)
{
	struct elements e = elements_of(NPU_VOP_FILL, 0);
	struct npu_op g;
	int rc = npu_op_begin(&g, b, "hal_npu_fill", b, 0, 0);

	if (rc)
		return rc;
	if (!bytes || bytes % 4)
		return npu_fail(
			EINVAL,
			"%s: %u bytes; the count must be a multiple of 4 and not 0", g.op,
			bytes);
	e.bytes = bytes;
	e.ldd = bytes;
	e.d = d;
	NPU_SET(e.desc, VPATTERN, pattern);
	rc = npu_check_out(&g, "d", d, bytes);
	if (!rc)
		rc = npu_need_align(&g, "d", d, 4);
	if (!rc)
		rc = elements(&g, &e);
	return npu_op_end(&g, rc);
}

/* ---- pools ------------------------------------------------------------------------ */

static int check_pool(struct npu_op *g, const struct hal_npu_pool *op,
		      const struct npu_window *v)
{
	uint32_t d8 = op->flags & HAL_NPU_D_UINT8;
	const struct npu_range ranges[] = {
		/* Each window then holds at least one real pixel. */
		{"pad_top", op->pad_top, 0, (int64_t)op->kh - 1},
		{"pad_left", op->pad_left, 0, (int64_t)op->kw - 1},
		{"min", op->min, npu_byte_min(d8), npu_byte_max(d8)},
		{"max", op->max, op->min, npu_byte_max(d8)},
	};
	int rc = npu_check_window(g, v);

	if (!rc)
		rc = npu_check_flags(g, op->flags, HAL_NPU_A_UINT8 | HAL_NPU_D_UINT8);
	if (!rc)
		rc = npu_check_ranges(g, ranges, sizeof(ranges) / sizeof(ranges[0]));
	if (!rc)
		rc = npu_check_place(g, "a", op->a, (uint64_t)op->h * op->w * op->c);
	if (!rc)
		rc = npu_check_out(g, "d", op->d, (uint64_t)op->oh * op->ow * op->c);
	return rc;
}

static int pool_block(struct npu_op *g, uint32_t vop, const struct hal_npu_pool *op,
		      const struct npu_window *v, const struct npu_block *blk)
{
	uint64_t m0 = (uint64_t)blk->oy * op->ow;
	uint32_t *d;
	int rc = npu_add_desc(g, &d);

	if (rc)
		return rc;
	NPU_SET(d, OPCODE, NPU_OP_VEC);
	NPU_SET(d, VOP, vop);
	npu_set_types(d, op->flags);
	npu_set_window(d, v, blk);
	NPU_SET(d, LDD, op->c);
	NPU_SET(d, AMIN, op->min);
	NPU_SET(d, AMAX, op->max);
	rc = NPU_RELOCATE(g, ADDR_A, op->a, blk->a);
	if (!rc)
		rc = NPU_RELOCATE(g, ADDR_D, op->d, m0 * op->c);
	return rc;
}

static int pool(struct hal_npu_builder *b, const char *name, uint32_t vop,
		const struct hal_npu_pool *op)
{
	struct npu_block blk = {0};
	struct npu_window v;
	struct npu_op g;
	int rc = npu_op_begin(&g, b, name, op, op ? op->size : 0, sizeof(*op));

	if (rc)
		return rc;
	v = (struct npu_window){.h = op->h,
				.w = op->w,
				.c = op->c,
				.oh = op->oh,
				.ow = op->ow,
				.kh = op->kh,
				.kw = op->kw,
				.sy = op->stride_h,
				.sx = op->stride_w,
				.dy = 1,
				.dx = 1,
				.pt = op->pad_top,
				.pl = op->pad_left};
	rc = check_pool(&g, op, &v);
	blk.ow = op->ow;
	for (; !rc && blk.oy < op->oh; blk.oy += blk.oh) {
		uint32_t lines = NPU_DM_MAX / op->ow;

		blk.oh = op->oh - blk.oy < lines ? op->oh - blk.oy : lines;
		npu_see_input(&v, &blk);
		rc = pool_block(&g, vop, op, &v, &blk);
	}
	return npu_op_end(&g, rc);
}

HAL_API int hal_npu_maxpool(struct hal_npu_builder *b, const struct hal_npu_pool *op)
{
	return pool(b, "hal_npu_maxpool", NPU_VOP_MAXPOOL, op);
}

HAL_API int hal_npu_avgpool(struct hal_npu_builder *b, const struct hal_npu_pool *op)
{
	return pool(b, "hal_npu_avgpool", NPU_VOP_AVGPOOL, op);
}
