/* SPDX-License-Identifier: Apache-2.0 */
/* builder_matrix.c - GEMM and CONV: requantization, panels, blocks, packed weights. */
#include "builder.h"
#include "panel.h"

#include <errno.h>
#include <string.h>

#define K_MAX        33025u /* int32 sums of 9-bit operands cannot wrap below it */
#define BLOCKS_N_MAX (NPU_U16_MAX - 15u) /* the last block's last column has 16 bits */

/* ---- requantization --------------------------------------------------------------- */

/* How the outputs of an operation are made: filled once, used by each of its descriptors.
 */
struct out {
	uint32_t flags; /* bits of descriptor word 0 */
	uint32_t mult;  /* with F_NOPARAM */
	int32_t shift;
	struct hal_npu_place table; /* without */
	uint32_t word14;            /* ZPO, AMIN, AMAX */
	uint32_t size;              /* bytes an output */
};

static int is_quantized(const struct hal_npu_requant *r)
{
	return r->mult || r->scale;
}

/* TensorFlow Lite's multiplier and shift, or ONNX's scale. */
static int check_factor(struct npu_op *g, const struct hal_npu_requant *r, uint32_t i)
{
	uint32_t bits;
	int rc;

	if (r->mult) {
		rc = npu_check_range(g, "out.mult[]", r->mult[i], 0, INT32_MAX);
		return rc ? rc : npu_check_range(g, "out.shift[]", r->shift[i], -31, 30);
	}
	memcpy(&bits, &r->scale[i], sizeof(bits));
	if (bits >= 1u << 23 && bits < 255u << 23)
		return 0;
	return npu_fail(EINVAL,
			"%s: .out.scale[%u] is %g; it must be a positive normal number",
			g->op, i, (double)r->scale[i]);
}

static int check_requant(struct npu_op *g, const struct hal_npu_requant *r,
			 uint32_t flags, uint32_t n)
{
	uint32_t u8 = flags & HAL_NPU_D_UINT8;
	const struct npu_range ranges[] = {
		{"out.per_channel", r->per_channel, 0, 1},
		{"out.zero_point", r->zero_point, npu_byte_min(u8), npu_byte_max(u8)},
		{"out.min", r->min, npu_byte_min(u8), npu_byte_max(u8)},
		{"out.max", r->max, r->min, npu_byte_max(u8)},
	};
	int rc;

	if ((flags & HAL_NPU_ROUND_ONCE) && (!r->mult || r->scale))
		return npu_fail(EINVAL,
				"%s: .flags has HAL_NPU_ROUND_ONCE; it needs .out.mult "
				"and .out.shift without .out.scale",
				g->op);
	if (!is_quantized(r))
		return 0;
	if (r->mult && r->scale)
		return npu_fail(
			EINVAL,
			"%s: both .out.mult and .out.scale are set; set one of them",
			g->op);
	if (r->mult && !r->shift)
		return npu_fail(EINVAL, "%s: .out.mult is set, but .out.shift is NULL",
				g->op);
	rc = npu_check_ranges(g, ranges, sizeof(ranges) / sizeof(ranges[0]));
	for (uint32_t i = 0; !rc && i < (r->per_channel ? n : 1); i++)
		rc = check_factor(g, r, i);
	return rc;
}

/* The multiplier and shift of output channel n, as the descriptor or table P has them. */
static void factor(const struct hal_npu_requant *r, uint32_t n, uint32_t *mult,
		   int32_t *shift)
{
	uint32_t of = r->per_channel ? n : 0;

	*mult = r->mult ? (uint32_t)r->mult[of] : 0;
	*shift = r->mult ? r->shift[of] : 0;
	if (r->scale)
		memcpy(mult, &r->scale[of], sizeof(*mult));
}

/* Input channels that an output channel reads: group n / each begins depth channels
 * behind the one before. */
struct groups {
	uint32_t each, depth; /* 0: no groups */
};

static int fill_table(struct npu_op *g, const struct hal_npu_requant *r, uint32_t n,
		      struct groups of, struct hal_npu_place *table)
{
	uint8_t *at;
	int rc = npu_add_const(g->b, (uint64_t)n * 16, &table->id, &at);

	for (uint32_t i = 0; !rc && i < n; i++) {
		struct {
			int32_t bias;
			uint32_t mult;
			int32_t shift;
			uint32_t at;
		} row = {.bias = r->bias ? r->bias[i] : 0,
			 .at = of.each ? i / of.each * of.depth : 0};

		factor(r, i, &row.mult, &row.shift);
		memcpy(at + (size_t)i * 16, &row, 16);
	}
	return rc;
}

static int make_out(struct npu_op *g, const struct hal_npu_requant *r, uint32_t flags,
		    uint32_t n, struct groups of, struct out *o)
{
	int quantized = is_quantized(r), rc = check_requant(g, r, flags, n);
	uint32_t d[16] = {0};

	if (rc)
		return rc;
	memset(o, 0, sizeof(*o));
	o->size = quantized ? 1 : 4;
	NPU_SET(d, F_OUT32, !quantized);
	NPU_SET(d, F_FLOAT, r->scale != NULL);
	NPU_SET(d, F_ONCE, (flags & HAL_NPU_ROUND_ONCE) != 0);
	NPU_SET(d, F_GROUP, of.each != 0);
	NPU_SET(d, F_NOPARAM, !r->bias && !of.each && !(quantized && r->per_channel));
	npu_set_types(d, flags);
	if (quantized) {
		NPU_SET(d, ZPO, r->zero_point);
		NPU_SET(d, AMIN, r->min);
		NPU_SET(d, AMAX, r->max);
	}
	o->flags = d[0];
	o->word14 = d[14];
	if (!NPU_GET(d, F_NOPARAM))
		return fill_table(g, r, n, of, &o->table);
	factor(r, 0, &o->mult, &o->shift);
	return 0;
}

static int set_out(struct npu_op *g, uint32_t *d, const struct out *o)
{
	d[0] |= o->flags;
	d[14] = o->word14;
	if (!NPU_GET(d, F_NOPARAM))
		return NPU_RELOCATE(g, ADDR_P, o->table, 0);
	NPU_SET(d, QMULT, o->mult);
	NPU_SET(d, QSHIFT, o->shift);
	return 0;
}

/* ---- GEMM ------------------------------------------------------------------------- */

#define GEMM_ROWS (1u << 19) /* an operation with more rows becomes several */

static uint32_t panel_depth(const struct out *o)
{
	return o->size == 4 ? NPU_DEPTH_OUT32 : NPU_DEPTH;
}

/* Panels for m rows; ldb: bytes from a row of B to the next, 0 for blocks. */
static struct npu_panel gemm_panel(const struct hal_npu_gemm *op, const struct out *o,
				   uint32_t m, uint64_t lda, uint64_t ldb, uint64_t ldd)
{
	const struct npu_panel_op p = {
		.m = m,
		.n = op->n,
		.k = op->k,
		.depth = panel_depth(o),
		.ldd = ldd,
		.ldb = ldb,
		.in = {.h = m, .ow = 1, .sy = 1, .reach = 1},
		.pitch = {.row_bytes = op->k, .lda = lda},
	};

	return npu_panel_gemm(&p);
}

/* B as the machine reads it. */
struct weights {
	struct hal_npu_place at;
	uint64_t stride; /* of rows; 0: blocks of 16 columns (F_BLOCK) */
};

static int gemm_part(struct npu_op *g, const struct hal_npu_gemm *op, const struct out *o,
		     struct npu_panel panel, uint32_t m0, uint32_t m, uint64_t lda,
		     const struct weights *b, uint64_t ldd)
{
	uint32_t *d;
	int rc = npu_add_desc(g, &d);

	if (rc)
		return rc;
	if (!panel.rows)
		return npu_fail(
			ENOTSUP,
			"%s: a row of .k = %u bytes does not fit into the scratchpad",
			g->op, op->k);
	NPU_SET(d, OPCODE, NPU_OP_GEMM);
	NPU_SET(d, DM, m);
	NPU_SET(d, DN, op->n);
	NPU_SET(d, CIN, op->k);
	NPU_SET(d, OW, 1);
	NPU_SET(d, PANEL, panel.rows);
	NPU_SET(d, KCUT, panel.kcut);
	NPU_SET(d, LDA, lda);
	NPU_SET(d, F_BLOCK, b->stride == 0);
	NPU_SET(d, LDB, b->stride);
	NPU_SET(d, LDD, ldd);
	NPU_SET(d, ZPA, op->a_zero);
	NPU_SET(d, ZPB, op->b_zero);
	NPU_SET(d, SPS, panel.sps);
	rc = set_out(g, d, o);
	if (!rc)
		rc = NPU_RELOCATE(g, ADDR_A, op->a, (uint64_t)m0 * lda);
	if (!rc)
		rc = NPU_RELOCATE(g, ADDR_B, b->at, 0);
	if (!rc)
		rc = NPU_RELOCATE(g, ADDR_D, op->d, (uint64_t)m0 * ldd);
	return rc;
}

/* All rows, in as many operations as their panels want. */
static int gemm_rows(struct npu_op *g, const struct hal_npu_gemm *op, const struct out *o,
		     uint64_t lda, const struct weights *b, uint64_t ldd)
{
	int rc = 0;

	for (uint64_t m0 = 0, m; !rc && m0 < op->m; m0 += m) {
		struct npu_panel panel;

		m = op->m - m0 < GEMM_ROWS ? op->m - m0 : GEMM_ROWS;
		panel = gemm_panel(op, o, (uint32_t)m, lda, b->stride, ldd);
		if (panel.kcut && panel.rows < m)
			m = panel.rows;
		rc = gemm_part(g, op, o, panel, (uint32_t)m0, (uint32_t)m, lda, b, ldd);
	}
	return rc;
}

/* Check zero points, and flags: the types, HAL_NPU_ROUND_ONCE and known. */
static int check_zeros(struct npu_op *g, uint32_t flags, uint32_t known, int32_t a_zero,
		       int32_t b_zero)
{
	uint32_t a = flags & HAL_NPU_A_UINT8, b = flags & HAL_NPU_B_UINT8;
	const struct npu_range ranges[] = {
		{"a_zero", a_zero, npu_byte_min(a), npu_byte_max(a)},
		{"b_zero", b_zero, npu_byte_min(b), npu_byte_max(b)},
	};
	int rc = npu_check_flags(g, flags, NPU_TYPES | HAL_NPU_ROUND_ONCE | known);

	return rc ? rc : npu_check_ranges(g, ranges, 2);
}

static int check_b(struct npu_op *g, const struct hal_npu_gemm *op, uint64_t ldb)
{
	int rc;

	if (!(op->flags & HAL_NPU_B_BLOCKED)) {
		rc = npu_check_stride(g, "b_stride", ldb, op->n);
		return rc ? rc
			  : npu_check_place(g, "b", op->b, (op->k - 1) * ldb + op->n);
	}
	if (op->n > BLOCKS_N_MAX)
		return npu_fail(ENOTSUP, "%s: .n is %u; blocks have at most %u columns",
				g->op, op->n, BLOCKS_N_MAX);
	if (op->b_stride)
		return npu_fail(
			EINVAL,
			"%s: .b_stride is %u with HAL_NPU_B_BLOCKED; it must be 0", g->op,
			op->b_stride);
	rc = npu_check_place(g, "b", op->b, npu_blocks_bytes(op->n, op->k));
	return rc ? rc : npu_need_align(g, "b", op->b, 16);
}

/* Where B is in blocks, if it is or can be. */
static int place_b(struct npu_op *g, const struct hal_npu_gemm *op, uint64_t ldb,
		   struct weights *b)
{
	const struct npu_matrix m = {.at = op->b, .n = op->n, .k = op->k, .stride = ldb};
	int rc;

	*b = (struct weights){op->b, op->flags & HAL_NPU_B_BLOCKED ? 0 : ldb};
	if (!b->stride || op->n > BLOCKS_N_MAX)
		return 0;
	rc = npu_pack_const(g, &m, &b->at);
	if (b->at.id != op->b.id)
		b->stride = 0;
	return rc;
}

static int check_gemm(struct npu_op *g, const struct hal_npu_gemm *op, uint64_t lda,
		      uint64_t ldb, uint64_t ldd, uint32_t size)
{
	const struct npu_limit limits[] = {
		{"m", op->m, UINT32_MAX},      {"n", op->n, NPU_U16_MAX},
		{"k", op->k, K_MAX},           {"b_stride", ldb, NPU_U16_MAX},
		{"d_stride", ldd, UINT32_MAX},
	};
	int rc = npu_check_limits(g, limits, sizeof(limits) / sizeof(limits[0]));

	if (!rc)
		rc = check_zeros(g, op->flags, HAL_NPU_B_BLOCKED, op->a_zero, op->b_zero);
	if (!rc)
		rc = npu_check_stride(g, "a_stride", lda, op->k);
	if (!rc)
		rc = check_b(g, op, ldb);
	if (!rc)
		rc = npu_check_stride(g, "d_stride", ldd, (uint64_t)op->n * size);
	if (!rc)
		rc = npu_check_place(g, "a", op->a, (op->m - 1) * lda + op->k);
	if (!rc)
		rc = npu_check_out(g, "d", op->d,
				   (op->m - 1) * ldd + (uint64_t)op->n * size);
	if (!rc && size == 4)
		rc = ldd % 4 ? npu_fail(EINVAL,
					"%s: .d_stride is %llu; it must be a multiple of "
					"4",
					g->op, (unsigned long long)ldd)
			     : npu_need_align(g, "d", op->d, 4);
	return rc;
}

HAL_API int hal_npu_gemm(struct hal_npu_builder *b, const struct hal_npu_gemm *op)
{
	uint64_t lda, ldb, ldd;
	uint32_t size;
	struct weights w = {0};
	struct npu_op g;
	struct out o;
	int rc = npu_op_begin(&g, b, "hal_npu_gemm", op, op ? op->size : 0, sizeof(*op));

	if (rc)
		return rc;
	size = is_quantized(&op->out) ? 1 : 4;
	lda = op->a_stride ? op->a_stride : op->k;
	ldb = op->b_stride ? op->b_stride : op->n;
	ldd = op->d_stride ? op->d_stride : (uint64_t)op->n * size;
	rc = check_gemm(&g, op, lda, ldb, ldd, size);
	if (!rc)
		rc = make_out(&g, &op->out, op->flags, op->n, (struct groups){0}, &o);
	if (!rc)
		rc = place_b(&g, op, ldb, &w);
	if (!rc)
		rc = gemm_rows(&g, op, &o, lda, &w, ldd);
	if (!rc)
		g.k->macs += (uint64_t)op->m * op->n * op->k;
	return npu_op_end(&g, rc);
}

/* ---- windows over an image: convolution and pooling ------------------------------- */

int npu_check_window(struct npu_op *g, const struct npu_window *v)
{
	const struct npu_limit limits[] = {
		{"h", v->h, NPU_U16_MAX},
		{"w", v->w, NPU_U16_MAX},
		{"c", v->c, NPU_U16_MAX},
		{"oh", v->oh, UINT32_MAX},
		{"ow", v->ow, NPU_U16_MAX},
		{"kh", v->kh, 255},
		{"kw", v->kw, 255},
		{"stride_h", v->sy, 15},
		{"stride_w", v->sx, 15},
		{"dilation_h", v->dy, 15},
		{"dilation_w", v->dx, 15},
		{"pad_top + 1", (uint64_t)v->pt + 1, 256},
		{"pad_left + 1", (uint64_t)v->pl + 1, 256},
	};
	int rc = npu_check_limits(g, limits, sizeof(limits) / sizeof(limits[0]));

	if (rc)
		return rc;
	if ((uint64_t)(v->oh - 1) * v->sy >= (uint64_t)v->h + v->pt)
		return npu_fail(
			EINVAL,
			"%s: .oh is %u, so the last rows lie below the input's .h = %u",
			g->op, v->oh, v->h);
	if ((uint64_t)(v->ow - 1) * v->sx >= (uint64_t)v->w + v->pl)
		return npu_fail(EINVAL,
				"%s: .ow is %u, so the last columns lie beyond the "
				"input's .w = %u",
				g->op, v->ow, v->w);
	return 0;
}

/* Input rows or columns that outputs first..first+count-1 can reach: the first of them
 * (clipped at 0), how many, and the padding in front. */
static void reach(uint32_t first, uint32_t count, uint32_t stride, uint32_t pad,
		  uint32_t span, uint32_t all, uint32_t *from, uint32_t *len,
		  uint32_t *front)
{
	int64_t lo = (int64_t)first * stride - pad;
	int64_t hi = lo + (int64_t)(count - 1) * stride + span;

	*front = lo < 0 ? (uint32_t)-lo : 0;
	if (lo < 0)
		lo = 0;
	if (hi > all)
		hi = all;
	*from = (uint32_t)lo;
	*len = hi > lo ? (uint32_t)(hi - lo) : 0;
}

void npu_see_input(const struct npu_window *v, struct npu_block *blk)
{
	uint32_t rows = (v->kh - 1) * v->dy + 1, cols = (v->kw - 1) * v->dx + 1;
	uint32_t y, x;

	reach(blk->oy, blk->oh, v->sy, v->pt, rows, v->h, &y, &blk->h, &blk->pt);
	reach(blk->ox, blk->ow, v->sx, v->pl, cols, v->w, &x, &blk->w, &blk->pl);
	if (blk->ow == v->ow) { /* whole lines: whole rows, whose pitch needs no gap */
		x = 0;
		blk->w = v->w;
		blk->pl = v->pl;
	}
	blk->lda = (uint64_t)v->w * v->c;
	blk->a = y * blk->lda + (uint64_t)x * v->c;
}

void npu_set_window(uint32_t *d, const struct npu_window *v, const struct npu_block *blk)
{
	NPU_SET(d, DM, blk->oh * blk->ow);
	NPU_SET(d, OW, blk->ow);
	NPU_SET(d, CIN, v->c);
	NPU_SET(d, H, blk->h);
	NPU_SET(d, W, blk->w);
	NPU_SET(d, LDA, blk->lda);
	NPU_SET(d, PIX, v->c);
	NPU_SET(d, KH, v->kh);
	NPU_SET(d, KW, v->kw);
	NPU_SET(d, SY, v->sy);
	NPU_SET(d, SX, v->sx);
	NPU_SET(d, DY, v->dy);
	NPU_SET(d, DX, v->dx);
	NPU_SET(d, PT, blk->pt);
	NPU_SET(d, PL, blk->pl);
}

/* ---- convolution ------------------------------------------------------------------ */

struct conv {
	const struct hal_npu_conv *op;
	struct npu_window v;
	struct out o;
	struct hal_npu_place weights;
	struct groups groups;
	uint32_t k;
	uint64_t ldd;
	/* of the block at hand */
	uint32_t sy;
	struct npu_panel panel;
};

/* Chooses the block's panel; 0 when it does not fit. */
static uint32_t plan_block(struct conv *c, struct npu_block *blk)
{
	const struct npu_window *v = &c->v;
	struct npu_panel_op p = {
		.m = blk->oh * blk->ow,
		.n = c->op->n,
		.k = c->k,
		.depth = panel_depth(&c->o),
		.ldd = c->ldd,
	};
	uint64_t lda;

	npu_see_input(v, blk);
	lda = blk->lda;
	p.in = (struct npu_windows){.h = blk->h,
				    .ow = blk->ow,
				    .sy = v->sy,
				    .pt = blk->pt,
				    .reach = (v->kh - 1) * v->dy + 1};
	blk->a += npu_panel_skip(&p.in, &blk->lda) * lda;
	blk->h = p.in.h;
	blk->pt = p.in.pt;
	c->sy = p.in.sy;
	p.pitch = (struct npu_pitch){
		.row_bytes = (uint64_t)blk->w * v->c,
		.lda = blk->lda,
		.pix = v->c,
		.depth = c->groups.depth ? c->groups.depth : v->c,
		.group = c->groups.depth != 0,
		.kh = v->kh,
		.kw = v->kw,
		.sy = c->sy,
		.sx = v->sx,
		.dx = v->dx,
		.dy = v->dy,
		.ow = blk->ow,
	};
	c->panel = npu_panel_choose(&p);
	return c->panel.rows;
}

static int conv_block(struct npu_op *g, const struct conv *c, const struct npu_block *blk)
{
	uint64_t m0 = (uint64_t)blk->oy * c->v.ow + blk->ox;
	uint32_t *d;
	int rc = npu_add_desc(g, &d);

	if (rc)
		return rc;
	NPU_SET(d, OPCODE, NPU_OP_CONV);
	npu_set_window(d, &c->v, blk);
	NPU_SET(d, SY, c->sy);
	NPU_SET(d, PANEL, c->panel.rows);
	NPU_SET(d, SPS, c->panel.sps);
	NPU_SET(d, DN, c->op->n);
	NPU_SET(d, F_BLOCK, 1);
	NPU_SET(d, GC, c->groups.depth);
	NPU_SET(d, LDD, c->ldd);
	NPU_SET(d, ZPA, c->op->a_zero);
	NPU_SET(d, ZPB, c->op->b_zero);
	rc = set_out(g, d, &c->o);
	if (!rc)
		rc = NPU_RELOCATE(g, ADDR_A, c->op->a, blk->a);
	if (!rc)
		rc = NPU_RELOCATE(g, ADDR_B, c->weights, 0);
	if (!rc)
		rc = NPU_RELOCATE(g, ADDR_D, c->op->d, m0 * c->ldd);
	return rc;
}

/* Pieces of one output line, each as wide as its input fits. */
static int split_line(struct npu_op *g, struct conv *c, uint32_t oy)
{
	const struct npu_window *v = &c->v;
	struct npu_block blk = {.oy = oy, .oh = 1};
	int rc = 0;

	for (uint32_t width; !rc && blk.ox < v->ow; blk.ox += width) {
		for (width = v->ow - blk.ox; width; width /= 2) {
			blk.ow = width;
			if (plan_block(c, &blk))
				break;
		}
		if (!width)
			return npu_fail(
				ENOTSUP,
				"%s: one output needs %u rows of %u x %u bytes of input, "
				"which do not fit into the scratchpad's %u",
				g->op, (v->kh - 1) * v->dy + 1, (v->kw - 1) * v->dx + 1,
				v->c, NPU_SPAD_USE);
		rc = conv_block(g, c, &blk);
	}
	return rc;
}

/* Cuts the output into blocks that one descriptor each can do. */
static int each_block(struct npu_op *g, struct conv *c)
{
	const struct npu_window *v = &c->v;
	uint32_t lines = NPU_DM_MAX / v->ow;
	struct npu_block blk = {.ow = v->ow};
	int rc = 0;

	for (uint32_t oy = 0; !rc && oy < v->oh; oy += blk.oh) {
		blk.oy = oy;
		blk.oh = v->oh - oy < lines ? v->oh - oy : lines;
		if (plan_block(c, &blk)) {
			rc = conv_block(g, c, &blk);
			continue;
		}
		for (uint32_t i = 0; !rc && i < blk.oh; i++)
			rc = split_line(g, c, oy + i);
	}
	return rc;
}

/* A 1 x 1 kernel that passes over all pixels multiplies a matrix, a pixel a row, whose K
 * may be cut. */
static int each_pixel(struct npu_op *g, const struct conv *c)
{
	const struct hal_npu_gemm op = {
		.m = c->v.oh * c->v.ow,
		.n = c->op->n,
		.k = c->k,
		.a = c->op->a,
		.a_zero = c->op->a_zero,
		.b_zero = c->op->b_zero,
		.d = c->op->d,
	};
	const struct weights b = {.at = c->weights, .stride = 0};

	return gemm_rows(g, &op, &c->o, c->v.c, &b, c->ldd);
}

static bool is_cut(const struct conv *c)
{
	const struct npu_window *v = &c->v;
	uint64_t m = (uint64_t)v->oh * v->ow;
	const struct hal_npu_gemm op = {.n = c->op->n, .k = c->k};

	if (v->kh != 1 || v->kw != 1 || v->sy != 1 || v->sx != 1 || v->pt || v->pl ||
	    v->ow != v->w || c->groups.depth || m > GEMM_ROWS)
		return false;
	return gemm_panel(&op, &c->o, (uint32_t)m, v->c, 0, c->ldd).kcut != 0;
}

/* OHWI [n][kh][kw][c / groups] -> blocks of 16 output channels, each block
 * [k = (ky, kx, c)][16]: a fold's weights lie together whatever the rectangle (F_BLOCK).
 */
static int pack_weights(struct npu_op *g, struct conv *c)
{
	uint64_t bytes = (uint64_t)((c->op->n + 15u) & ~15u) * c->k;
	uint8_t *at;
	int rc = npu_add_const(g->b, bytes, &c->weights.id, &at);

	for (uint32_t n = 0; !rc && n < c->op->n; n++) {
		uint8_t *column = at + (uint64_t)(n / 16) * c->k * 16 + n % 16;

		for (uint32_t k = 0; k < c->k; k++)
			column[(uint64_t)k * 16] =
				(uint8_t)c->op->weights[(uint64_t)n * c->k + k];
	}
	return rc;
}

static int check_conv(struct npu_op *g, struct conv *c)
{
	const struct hal_npu_conv *op = c->op;
	uint64_t pixels = (uint64_t)op->oh * op->ow, k;
	uint32_t size = is_quantized(&op->out) ? 1 : 4;
	int rc = npu_check_window(g, &c->v);

	if (!rc)
		rc = npu_check_limits(g, &(struct npu_limit){"n", op->n, BLOCKS_N_MAX},
				      1);
	if (rc)
		return rc;
	if (!op->groups || op->c % op->groups || op->n % op->groups)
		return npu_fail(EINVAL,
				"%s: .groups is %u; it must divide .c = %u and .n = %u",
				g->op, op->groups, op->c, op->n);
	if (!op->weights)
		return npu_fail(EINVAL, "%s: .weights is NULL", g->op);
	if (op->groups > 1)
		c->groups = (struct groups){op->n / op->groups, op->c / op->groups};
	k = (uint64_t)op->kh * op->kw * (op->c / op->groups);
	if (k > K_MAX)
		return npu_fail(ENOTSUP,
				"%s: kh * kw * c / groups is %llu; it must be at most %u",
				g->op, (unsigned long long)k, K_MAX);
	c->k = (uint32_t)k;
	c->ldd = op->d_stride ? op->d_stride : (uint64_t)op->n * size;
	rc = check_zeros(g, op->flags, 0, op->a_zero, op->b_zero);
	if (!rc)
		rc = npu_check_stride(g, "d_stride", c->ldd, (uint64_t)op->n * size);
	if (!rc)
		rc = npu_check_place(g, "a", op->a, (uint64_t)op->h * op->w * op->c);
	if (!rc)
		rc = npu_check_out(g, "d", op->d,
				   (pixels - 1) * c->ldd + (uint64_t)op->n * size);
	if (!rc && size == 4)
		rc = c->ldd % 4
			     ? npu_fail(EINVAL,
					"%s: .d_stride is %u; it must be a multiple of 4",
					g->op, op->d_stride)
			     : npu_need_align(g, "d", op->d, 4);
	return rc;
}

HAL_API int hal_npu_conv(struct hal_npu_builder *b, const struct hal_npu_conv *op)
{
	struct conv c = {.op = op};
	struct npu_op g;
	int rc = npu_op_begin(&g, b, "hal_npu_conv", op, op ? op->size : 0, sizeof(*op));

	if (rc)
		return rc;
	c.v = (struct npu_window){.h = op->h,
				  .w = op->w,
				  .c = op->c,
				  .oh = op->oh,
				  .ow = op->ow,
				  .kh = op->kh,
				  .kw = op->kw,
				  .sy = op->stride_h,
				  .sx = op->stride_w,
				  .dy = op->dilation_h,
				  .dx = op->dilation_w,
				  .pt = op->pad_top,
				  .pl = op->pad_left};
	rc = check_conv(&g, &c);
	if (!rc)
		rc = make_out(&g, &op->out, op->flags, op->n, c.groups, &c.o);
	if (!rc)
		rc = pack_weights(&g, &c);
	if (!rc)
		rc = is_cut(&c) ? each_pixel(&g, &c) : each_block(&g, &c);
	if (!rc)
		g.k->macs += (uint64_t)op->oh * op->ow * op->n * c.k;
	return npu_op_end(&g, rc);
}
