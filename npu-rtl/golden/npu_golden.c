/* SPDX-License-Identifier: Apache-2.0 */
/* npu_golden.c - the functional model of every descriptor. */
#include "npu_golden.h"

#include <string.h>

#include "npu_panel.h"
#include "npu_regs.h"

/* ---- arithmetic ------------------------------------------------------------------- */

#define FLOAT_MAX (1 << 30) /* F_FLOAT saturates here */

/* int32 sums wrap in the machine; in C only unsigned ones do. */
static int32_t wrap_add(int32_t a, int32_t b)
{
	return (int32_t)((uint32_t)a + (uint32_t)b);
}

int32_t npu_golden_high_mul(int32_t a, int32_t b)
{
	int64_t ab = (int64_t)a * b;
	int64_t nudge = ab >= 0 ? INT64_C(1) << 30 : 1 - (INT64_C(1) << 30);

	if (a == INT32_MIN && b == INT32_MIN)
		return INT32_MAX;
	return (int32_t)((ab + nudge) / (INT64_C(1) << 31));
}

int32_t npu_golden_round_shift(int32_t x, int32_t exponent)
{
	int32_t mask = (int32_t)((INT64_C(1) << exponent) - 1);
	int32_t remainder = x & mask;
	int32_t threshold = (mask >> 1) + (x < 0);

	return (x >> exponent) + (remainder > threshold);
}

int32_t npu_golden_requant(int32_t x, int32_t mult, int32_t shift)
{
	uint32_t left = shift > 0 ? (uint32_t)shift & 31u : 0;
	int32_t right = shift < 0 ? -shift & 31 : 0;
	int32_t scaled = (int32_t)((uint32_t)x << left);

	return npu_golden_round_shift(npu_golden_high_mul(scaled, mult), right);
}

int32_t npu_golden_once_requant(int32_t x, int32_t mult, int32_t shift)
{
	uint32_t left = shift > 0 ? (uint32_t)shift & 31u : 0;
	uint32_t right = 31 + (shift < 0 ? -(uint32_t)shift & 31u : 0);
	int64_t scaled = (int64_t)x * (INT64_C(1) << left), product;
	uint64_t magnitude;

	scaled = scaled > INT32_MAX ? INT32_MAX : scaled < INT32_MIN ? INT32_MIN : scaled;
	product = scaled * mult;
	magnitude = product < 0 ? -(uint64_t)product : (uint64_t)product;
	magnitude = (magnitude + (UINT64_C(1) << (right - 1))) >> right;
	if (product >= 0 && magnitude > INT32_MAX)
		return INT32_MAX;
	return (int32_t)(product < 0 ? -(int64_t)magnitude : (int64_t)magnitude);
}

/* f * scale in binary32, rounded to the nearest integer, halves to even.  A scale whose
 * exponent field is 0 counts as 0; one whose field is all ones, as the finite number its
 * bits would go on to be. */
int32_t npu_golden_float_requant(int32_t x, uint32_t scale)
{
	uint32_t exponent = scale >> 23 & 255u;
	float f = (float)x, factor, p, rest;
	int32_t r;

	scale &= 0x7FFFFFFFu;
	memcpy(&factor, &scale, sizeof(factor));
	if (!exponent || !x)
		return 0;
	if (exponent == 255)
		return x < 0 ? -FLOAT_MAX : FLOAT_MAX;
	p = f * factor;
	if (p >= (float)FLOAT_MAX)
		return FLOAT_MAX;
	if (p <= (float)-FLOAT_MAX)
		return -FLOAT_MAX;
	r = (int32_t)p;
	rest = p - (float)r;
	if (rest > 0.5f || (rest >= 0.5f && r % 2))
		r++;
	else if (rest < -0.5f || (rest <= -0.5f && r % 2))
		r--;
	return r;
}

static int32_t signed8(uint32_t v)
{
	return (int8_t)(uint8_t)v;
}

static int32_t operand(uint32_t v, uint32_t is_unsigned)
{
	return is_unsigned ? (int32_t)(v & 255u) : signed8(v);
}

static uint8_t clamp_to(int32_t x, int32_t min, int32_t max)
{
	x = x > max ? max : x;
	x = x < min ? min : x;
	return (uint8_t)x;
}

static uint32_t smaller(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* ---- memory ----------------------------------------------------------------------- */

struct exec {
	const uint32_t *d;
	const struct npu_golden_env *env;
	struct npu_golden_result *r;
};

static int fail(struct exec *x, uint32_t kind, uint32_t address)
{
	x->r->fault = kind;
	x->r->address = address;
	return -1;
}

static int load(struct exec *x, uint32_t va, void *data, uint32_t bytes)
{
	uint32_t bad = va;
	int kind = x->env->read(x->env->user, va, data, bytes, &bad);

	if (kind) {
		x->r->fault = (uint32_t)kind;
		x->r->address = bad;
	}
	x->r->read_bytes += kind ? 0 : bytes;
	return kind;
}

static int store(struct exec *x, uint32_t va, const void *data, uint32_t bytes)
{
	uint32_t bad = va;
	int kind = x->env->write(x->env->user, va, data, bytes, &bad);

	if (kind) {
		x->r->fault = (uint32_t)kind;
		x->r->address = bad;
	}
	x->r->write_bytes += kind ? 0 : bytes;
	return kind;
}

/* ---- geometry: GEMM is a 1 x 1 convolution of an image one pixel wide ------------- */

struct geometry {
	uint32_t m, ow, h, w, cin;
	uint32_t kh, kw, sy, sx, dy, dx, pt, pl;
	uint32_t a, lda, pix;
	uint32_t depth; /* channels that each kernel position gives: CIN, or GC of F_GROUP
			 */
};

static struct geometry read_geometry(const uint32_t *d)
{
	struct geometry g = {.m = NPU_GET(d, DM),
			     .ow = 1,
			     .h = NPU_GET(d, DM),
			     .w = 1,
			     .cin = NPU_GET(d, CIN),
			     .kh = 1,
			     .kw = 1,
			     .sy = 1,
			     .sx = 1,
			     .dy = 1,
			     .dx = 1,
			     .a = NPU_GET(d, ADDR_A),
			     .lda = NPU_GET(d, LDA),
			     .depth = NPU_GET(d, CIN)};

	if (NPU_GET(d, OPCODE) == NPU_OP_GEMM)
		return g;
	g.ow = NPU_GET(d, OW);
	g.h = NPU_GET(d, H);
	g.w = NPU_GET(d, W);
	g.kh = NPU_GET(d, KH);
	g.kw = NPU_GET(d, KW);
	g.sy = NPU_GET(d, SY);
	g.sx = NPU_GET(d, SX);
	g.pt = NPU_GET(d, PT);
	g.pl = NPU_GET(d, PL);
	g.pix = NPU_GET(d, PIX);
	if (NPU_GET(d, OPCODE) == NPU_OP_VEC)
		return g;
	g.dy = NPU_GET(d, DY);
	g.dx = NPU_GET(d, DX);
	if (NPU_GET(d, F_GROUP))
		g.depth = NPU_GET(d, GC);
	return g;
}

/* The address of the pixel that kernel position (ky, kx) of output m sees; 0: padding. */
static int input_pixel(const struct geometry *g, uint32_t m, uint32_t ky, uint32_t kx,
		       uint32_t *va)
{
	int64_t y = (int64_t)(m / g->ow) * g->sy - g->pt + (int64_t)ky * g->dy;
	int64_t x = (int64_t)(m % g->ow) * g->sx - g->pl + (int64_t)kx * g->dx;

	if (y < 0 || y >= g->h || x < 0 || x >= g->w)
		return 0;
	*va = g->a + (uint32_t)y * g->lda + (uint32_t)x * g->pix;
	return 1;
}

/* ---- GEMM and CONV ---------------------------------------------------------------- */

/* A block of the result at a time, so that no operation needs more than this much. */
#define BM      64u
#define BN      64u
#define BK      256u

#define AT_ONCE 4u /* columns */

struct block {
	int32_t acc[BM][BN];
	int16_t a[BM][BK];
	int16_t b[BN][BK]; /* a column's weights behind each other */
};

/* a[i][.]: k0..k0+nk of row m, zero point taken off, padding 0. */
static int gather_row(struct exec *x, const struct geometry *g, uint32_t m, uint32_t k0,
		      uint32_t nk, int16_t *out)
{
	uint32_t is_unsigned = NPU_GET(x->d, F_AU8);
	int32_t zero = operand(NPU_GET(x->d, ZPA), is_unsigned);
	uint32_t c = k0 % g->depth, kx = k0 / g->depth % g->kw;
	uint32_t ky = k0 / g->depth / g->kw;
	uint8_t bytes[BK];

	for (uint32_t i = 0, run; i < nk; i += run) {
		uint32_t va;

		run = g->depth - c < nk - i ? g->depth - c : nk - i;
		if (input_pixel(g, m, ky, kx, &va)) {
			if (load(x, va + c, bytes, run))
				return -1;
			for (uint32_t j = 0; j < run; j++)
				out[i + j] =
					(int16_t)(operand(bytes[j], is_unsigned) - zero);
		} else {
			memset(out + i, 0, run * sizeof(*out));
		}
		c = 0;
		if (++kx == g->kw) {
			kx = 0;
			ky++;
		}
	}
	return 0;
}

/* nn weights of row k from column n0 on. */
static int load_weights(struct exec *x, const struct geometry *g, uint32_t k, uint32_t n0,
			uint32_t nn, uint8_t *out)
{
	uint32_t base = NPU_GET(x->d, ADDR_B);
	uint32_t rows = g->kh * g->kw * g->depth;

	if (!NPU_GET(x->d, F_BLOCK))
		return load(x, base + k * NPU_GET(x->d, LDB) + n0, out, nn);
	for (uint32_t i = 0, run; i < nn; i += run) {
		uint32_t n = n0 + i;

		run = 16 - n % 16;
		if (run > nn - i)
			run = nn - i;
		if (load(x, base + n / 16 * rows * 16 + k * 16 + n % 16, out + i, run))
			return -1;
	}
	return 0;
}

static int gather_weights(struct exec *x, const struct geometry *g, uint32_t k0,
			  uint32_t nk, uint32_t n0, uint32_t nn, struct block *blk)
{
	uint32_t is_unsigned = NPU_GET(x->d, F_BU8);
	int32_t zero = operand(NPU_GET(x->d, ZPB), is_unsigned);
	uint8_t bytes[BN];

	for (uint32_t k = 0; k < nk; k++) {
		if (load_weights(x, g, k0 + k, n0, nn, bytes))
			return -1;
		for (uint32_t n = 0; n < nn; n++)
			blk->b[n][k] = (int16_t)(operand(bytes[n], is_unsigned) - zero);
	}
	for (uint32_t n = nn; n % AT_ONCE; n++)
		memset(blk->b[n], 0, nk * sizeof(blk->b[n][0]));
	return 0;
}

/* Sums of products of one row and AT_ONCE columns: BK products of 9 bits each and a sign
 * fit in an int32. */
static void dots(const int16_t *restrict a, int16_t (*restrict b)[BK], uint32_t nk,
		 int32_t sum[AT_ONCE])
{
	int32_t s0 = 0, s1 = 0, s2 = 0, s3 = 0;

	for (uint32_t k = 0; k < nk; k++) {
		s0 += a[k] * b[0][k];
		s1 += a[k] * b[1][k];
		s2 += a[k] * b[2][k];
		s3 += a[k] * b[3][k];
	}
	sum[0] = s0;
	sum[1] = s1;
	sum[2] = s2;
	sum[3] = s3;
}

static void multiply(struct block *blk, uint32_t nm, uint32_t nk, uint32_t nn)
{
	int32_t sum[AT_ONCE];

	for (uint32_t i = 0; i < nm; i++)
		for (uint32_t n = 0; n < nn; n += AT_ONCE) {
			dots(blk->a[i], &blk->b[n], nk, sum);
			for (uint32_t j = 0; j < AT_ONCE; j++)
				blk->acc[i][n + j] = wrap_add(blk->acc[i][n + j], sum[j]);
		}
}

struct params {
	int32_t bias[BN], mult[BN], shift[BN];
};

static int load_params(struct exec *x, uint32_t n0, uint32_t nn, struct params *p)
{
	for (uint32_t n = 0; n < nn; n++) {
		int32_t row[4] = {0, (int32_t)NPU_GET(x->d, QMULT),
				  signed8(NPU_GET(x->d, QSHIFT)), 0};

		if (!NPU_GET(x->d, F_NOPARAM) &&
		    load(x, NPU_GET(x->d, ADDR_P) + (n0 + n) * 16, row, 16))
			return -1;
		p->bias[n] = row[0];
		p->mult[n] = row[1];
		p->shift[n] = (int32_t)((uint32_t)row[2] << 25) >> 25; /* 7 bits */
	}
	return 0;
}

static int store_row(struct exec *x, uint32_t m, uint32_t n0, uint32_t nn,
		     const int32_t *acc, const struct params *p)
{
	uint32_t out32 = NPU_GET(x->d, F_OUT32), is_unsigned = NPU_GET(x->d, F_OU8);
	int32_t zero = operand(NPU_GET(x->d, ZPO), is_unsigned);
	int32_t min = operand(NPU_GET(x->d, AMIN), is_unsigned);
	int32_t max = operand(NPU_GET(x->d, AMAX), is_unsigned);
	uint32_t va =
		NPU_GET(x->d, ADDR_D) + m * NPU_GET(x->d, LDD) + n0 * (out32 ? 4 : 1);
	int32_t sums[BN];
	uint8_t bytes[BN];

	for (uint32_t n = 0; n < nn; n++) {
		int32_t r;

		sums[n] = wrap_add(acc[n], p->bias[n]);
		if (NPU_GET(x->d, F_FLOAT))
			r = npu_golden_float_requant(sums[n], (uint32_t)p->mult[n]);
		else if (NPU_GET(x->d, F_ONCE))
			r = npu_golden_once_requant(sums[n], p->mult[n], p->shift[n]);
		else
			r = npu_golden_requant(sums[n], p->mult[n], p->shift[n]);
		bytes[n] = clamp_to(wrap_add(r, zero), min, max);
	}
	return out32 ? store(x, va, sums, nn * 4) : store(x, va, bytes, nn);
}

static int finish_block(struct exec *x, uint32_t m0, uint32_t nm, uint32_t n0,
			uint32_t nn, const struct block *blk)
{
	struct params p;

	if (load_params(x, n0, nn, &p))
		return -1;
	for (uint32_t i = 0; i < nm; i++)
		if (store_row(x, m0 + i, n0, nn, blk->acc[i], &p))
			return -1;
	return 0;
}

/* Sums over the k before end of output channels n0..n0+nn-1, which all read the same
 * input channels, of nm rows. */
static int sum_block(struct exec *x, const struct geometry *g, uint32_t m0, uint32_t nm,
		     uint32_t n0, uint32_t nn, uint32_t end, struct block *blk)
{
	memset(blk->acc, 0, sizeof(blk->acc));
	for (uint32_t k0 = 0, nk; k0 < end; k0 += nk) {
		nk = end - k0 < BK ? end - k0 : BK;
		if (gather_weights(x, g, k0, nk, n0, nn, blk))
			return -1;
		for (uint32_t i = 0; i < nm; i++)
			if (gather_row(x, g, m0 + i, k0, nk, blk->a[i]))
				return -1;
		multiply(blk, nm, nk, nn);
	}
	return 0;
}

static int result_block(struct exec *x, const struct geometry *g, uint32_t m0,
			uint32_t nm, uint32_t n0, uint32_t nn, struct block *blk)
{
	if (sum_block(x, g, m0, nm, n0, nn, g->kh * g->kw * g->depth, blk))
		return -1;
	return finish_block(x, m0, nm, n0, nn, blk);
}

/* How many output channels from n0 on, before end, one block can do; *at: where in a
 * pixel the channels begin that they read. */
static int columns(struct exec *x, uint32_t n0, uint32_t end, uint32_t *nn, uint32_t *at)
{
	uint32_t most = end - n0 < BN ? end - n0 : BN, row[4];

	*nn = most;
	*at = 0;
	for (uint32_t n = 0; NPU_GET(x->d, F_GROUP) && n < most; n++) {
		if (load(x, NPU_GET(x->d, ADDR_P) + (n0 + n) * 16, row, 16))
			return -1;
		if (row[3] > NPU_GET(x->d, CIN) - NPU_GET(x->d, GC))
			return fail(x, NPU_FAULT_FIELD, NPU_DESC_ADDR_P_WORD);
		if (n && row[3] != *at) {
			*nn = n;
			break;
		}
		*at = row[3];
	}
	return 0;
}

/* Output channels that read one input channel each: n of them, of the span bytes from lo
 * on in a pixel. */
struct taps {
	uint32_t n, lo, span;
	uint32_t at[BN];
};

/* Those from n0 on, before end, that one block can do.  What is wrong with one behind the
 * first is found when it is the first. */
static int taps_of(struct exec *x, uint32_t n0, uint32_t end, struct taps *t)
{
	uint32_t row[4], lo, hi;

	*t = (struct taps){0};
	while (t->n < BN && n0 + t->n < end) {
		if (load(x, NPU_GET(x->d, ADDR_P) + (n0 + t->n) * 16, row, 16))
			break;
		if (row[3] >= NPU_GET(x->d, CIN)) {
			fail(x, NPU_FAULT_FIELD, NPU_DESC_ADDR_P_WORD);
			break;
		}
		lo = t->n && t->lo < row[3] ? t->lo : row[3];
		hi = t->n && t->lo + t->span > row[3] ? t->lo + t->span : row[3] + 1;
		if (hi - lo > BK)
			break;
		t->lo = lo;
		t->span = hi - lo;
		t->at[t->n++] = row[3];
	}
	if (!t->n)
		return -1;
	x->r->fault = NPU_FAULT_NONE;
	return 0;
}

static int tapped_block(struct exec *x, const struct geometry *g, const struct taps *t,
			uint32_t m0, uint32_t nm, uint32_t n0, struct block *blk)
{
	uint32_t a_unsigned = NPU_GET(x->d, F_AU8), b_unsigned = NPU_GET(x->d, F_BU8);
	int32_t zero_a = operand(NPU_GET(x->d, ZPA), a_unsigned), weight[BN];
	int32_t zero_b = operand(NPU_GET(x->d, ZPB), b_unsigned);
	uint8_t bytes[BK];
	uint32_t va;

	memset(blk->acc, 0, sizeof(blk->acc));
	for (uint32_t k = 0; k < g->kh * g->kw; k++) {
		if (load_weights(x, g, k, n0, t->n, bytes))
			return -1;
		for (uint32_t n = 0; n < t->n; n++)
			weight[n] = operand(bytes[n], b_unsigned) - zero_b;
		for (uint32_t i = 0; i < nm; i++) {
			if (!input_pixel(g, m0 + i, k / g->kw, k % g->kw, &va))
				continue;
			if (load(x, va + t->lo, bytes, t->span))
				return -1;
			for (uint32_t n = 0; n < t->n; n++) {
				int32_t a = operand(bytes[t->at[n] - t->lo], a_unsigned);

				blk->acc[i][n] = wrap_add(blk->acc[i][n],
							  (a - zero_a) * weight[n]);
			}
		}
	}
	return finish_block(x, m0, nm, n0, t->n, blk);
}

/* Columns of row m that are stored, of all n; *end: the first row of which it may be
 * others. */
static uint32_t columns_stored(const struct npu_progress *p, uint32_t m, uint32_t n,
			       uint32_t *end)
{
	if (m < p->m) {
		*end = p->m;
		return n;
	}
	*end = m < p->m + p->t ? p->m + p->t : UINT32_MAX;
	return m < p->m + p->t ? p->n : 0;
}

/* Output channels n0..n0+*nn-1 of nm rows, as many before end as one block can do. */
static int some_columns(struct exec *x, const struct geometry *g, uint32_t m0,
			uint32_t nm, uint32_t n0, uint32_t end, uint32_t *nn,
			struct block *blk)
{
	struct geometry part = *g;
	struct taps t;
	uint32_t at;

	if (NPU_GET(x->d, F_GROUP) && g->depth == 1) {
		if (taps_of(x, n0, end, &t))
			return -1;
		*nn = t.n;
		return tapped_block(x, g, &t, m0, nm, n0, blk);
	}
	if (columns(x, n0, end, nn, &at))
		return -1;
	part.a += at;
	return result_block(x, &part, m0, nm, n0, *nn, blk);
}

static int exec_matrix(struct exec *x)
{
	static const struct npu_progress none, all = {.m = UINT32_MAX};
	const struct npu_progress *from = x->env->from ? x->env->from : &none;
	const struct npu_progress *to = x->env->to ? x->env->to : &all;
	struct geometry g = read_geometry(x->d);
	uint32_t first, last, ends[2], nm;
	struct block blk;

	for (uint32_t m0 = 0; m0 < g.m; m0 += nm) {
		first = columns_stored(from, m0, NPU_GET(x->d, DN), &ends[0]);
		last = columns_stored(to, m0, NPU_GET(x->d, DN), &ends[1]);
		nm = smaller(smaller(g.m, smaller(ends[0], ends[1])) - m0, BM);
		for (uint32_t n0 = first, nn; n0 < last; n0 += nn) {
			if (some_columns(x, &g, m0, nm, n0, last, &nn, &blk))
				return -1;
			x->r->macs += (uint64_t)nm * nn * g.kh * g.kw * g.depth;
		}
	}
	return 0;
}

/* ---- VEC -------------------------------------------------------------------------- */

#define PIECE 256u

/* What elementwise operations and pools have in common. */
struct vec {
	uint32_t a_unsigned, b_unsigned;
	int32_t zp1, zp2, zpo, min, max;
};

static struct vec read_vec(const uint32_t *d)
{
	uint32_t a = NPU_GET(d, F_AU8), b = NPU_GET(d, F_BU8), o = NPU_GET(d, F_OU8);

	return (struct vec){.a_unsigned = a,
			    .b_unsigned = b,
			    .zp1 = operand(NPU_GET(d, VZP1), a),
			    .zp2 = operand(NPU_GET(d, VZP2), b),
			    .zpo = operand(NPU_GET(d, ZPO), o),
			    .min = operand(NPU_GET(d, AMIN), o),
			    .max = operand(NPU_GET(d, AMAX), o)};
}

/* x and y: the operands less their zero points. */
static int32_t add_element(const uint32_t *d, int32_t x, int32_t y)
{
	uint32_t left = NPU_GET(d, VLSHIFT) & 31u;

	x = npu_golden_requant((int32_t)((uint32_t)x << left),
			       (int32_t)NPU_GET(d, VMULT1), signed8(NPU_GET(d, VSHIFT1)));
	y = npu_golden_requant((int32_t)((uint32_t)y << left),
			       (int32_t)NPU_GET(d, VMULT2), signed8(NPU_GET(d, VSHIFT2)));
	return npu_golden_requant(wrap_add(x, y), (int32_t)NPU_GET(d, VMULTO),
				  signed8(NPU_GET(d, VSHIFTO)));
}

static uint8_t arithmetic(const uint32_t *d, const struct vec *v, uint8_t a, uint8_t b)
{
	int32_t x = operand(a, v->a_unsigned) - v->zp1;
	int32_t y = operand(b, v->b_unsigned) - v->zp2;

	switch (NPU_GET(d, VOP)) {
	case NPU_VOP_ADD:
		x = add_element(d, x, y);
		break;
	case NPU_VOP_MUL:
		x = npu_golden_requant(x * y, (int32_t)NPU_GET(d, VMULTO),
				       signed8(NPU_GET(d, VSHIFTO)));
		break;
	default: /* RELU */
		x = npu_golden_requant(x, (int32_t)NPU_GET(d, VMULT1),
				       signed8(NPU_GET(d, VSHIFT1)));
		break;
	}
	return clamp_to(wrap_add(x, v->zpo), v->min, v->max);
}

static int vec_piece(struct exec *x, const uint8_t *table, uint32_t row, uint32_t col,
		     uint32_t n)
{
	const uint32_t *d = x->d;
	uint32_t vop = NPU_GET(d, VOP), pattern = NPU_GET(d, VPATTERN);
	struct vec v = read_vec(d);
	uint8_t a[PIECE], b[PIECE] = {0};

	if (vop != NPU_VOP_FILL &&
	    load(x, NPU_GET(d, ADDR_A) + row * NPU_GET(d, LDA) + col, a, n))
		return -1;
	if ((vop == NPU_VOP_ADD || vop == NPU_VOP_MUL) &&
	    load(x, NPU_GET(d, ADDR_B) + row * NPU_GET(d, VLDB) + col, b, n))
		return -1;
	for (uint32_t i = 0; i < n; i++) {
		if (vop == NPU_VOP_FILL)
			a[i] = (uint8_t)(pattern >> 8 * ((col + i) & 3u));
		else if (vop == NPU_VOP_LUT)
			a[i] = table[a[i]];
		else if (vop != NPU_VOP_COPY)
			a[i] = arithmetic(d, &v, a[i], b[i]);
	}
	return store(x, NPU_GET(d, ADDR_D) + row * NPU_GET(d, LDD) + col, a, n);
}

static uint32_t is_matrix(const uint32_t *d)
{
	return NPU_GET(d, OPCODE) == NPU_OP_GEMM || NPU_GET(d, OPCODE) == NPU_OP_CONV;
}

static int is_pool(uint32_t vop)
{
	return vop == NPU_VOP_MAXPOOL || vop == NPU_VOP_AVGPOOL;
}

uint32_t npu_golden_cols(const uint32_t desc[16])
{
	if (is_matrix(desc))
		return NPU_GET(desc, DN);
	return is_pool(NPU_GET(desc, VOP)) ? NPU_GET(desc, CIN) : NPU_GET(desc, VCOLS);
}

/* Bytes of output row m from *first up to *last are to be computed. */
static void bytes_left(const struct exec *x, uint32_t m, uint32_t *first, uint32_t *last)
{
	const struct npu_progress *from = x->env->from, *to = x->env->to;

	*first = 0;
	*last = npu_golden_cols(x->d);
	if (from && m <= from->m)
		*first = m < from->m ? *last : from->n;
	if (to && m >= to->m)
		*last = m > to->m ? 0 : to->n;
}

static int exec_elements(struct exec *x)
{
	uint32_t rows = NPU_GET(x->d, DM), col, end;
	uint8_t table[256];

	if (NPU_GET(x->d, VOP) == NPU_VOP_LUT &&
	    load(x, NPU_GET(x->d, ADDR_P), table, sizeof(table)))
		return -1;
	for (uint32_t row = 0; row < rows; row++)
		for (bytes_left(x, row, &col, &end); col < end; col += PIECE)
			if (vec_piece(x, table, row, col, smaller(end - col, PIECE)))
				return -1;
	return 0;
}

/* Rounded to the nearest, halves away from zero. */
static int32_t average(int32_t sum, int32_t n)
{
	return sum < 0 ? -((-sum + n / 2) / n) : (sum + n / 2) / n;
}

static int pool_pixel(struct exec *x, const struct geometry *g, uint32_t m, uint32_t c,
		      uint32_t n)
{
	int is_average = NPU_GET(x->d, VOP) == NPU_VOP_AVGPOOL;
	struct vec v = read_vec(x->d);
	uint8_t in[PIECE], out[PIECE];
	int32_t acc[PIECE], pixels = 0;
	uint32_t va;

	for (uint32_t p = 0; p < g->kh * g->kw; p++) {
		if (!input_pixel(g, m, p / g->kw, p % g->kw, &va))
			continue;
		if (load(x, va + c, in, n))
			return -1;
		for (uint32_t i = 0; i < n; i++) {
			int32_t a = operand(in[i], v.a_unsigned);

			if (!pixels)
				acc[i] = a;
			else if (is_average)
				acc[i] += a;
			else
				acc[i] = a > acc[i] ? a : acc[i];
		}
		pixels++;
	}
	if (!pixels)
		return fail(x, NPU_FAULT_FIELD, NPU_DESC_PT_WORD);
	for (uint32_t i = 0; i < n; i++)
		out[i] = clamp_to(is_average ? average(acc[i], pixels) : acc[i], v.min,
				  v.max);
	return store(x, NPU_GET(x->d, ADDR_D) + m * NPU_GET(x->d, LDD) + c, out, n);
}

static int exec_pool(struct exec *x)
{
	struct geometry g = read_geometry(x->d);
	uint32_t c, end;

	for (uint32_t m = 0; m < g.m; m++)
		for (bytes_left(x, m, &c, &end); c < end; c += PIECE)
			if (pool_pixel(x, &g, m, c, smaller(end - c, PIECE)))
				return -1;
	return 0;
}

/* ---- SOFTMAX: exp from the table, one reciprocal a row ---------------------------- */

/* x * 2^exponent, saturated. */
static int32_t saturating_shift(int32_t x, uint32_t exponent)
{
	int64_t wide = (int64_t)x * (INT64_C(1) << exponent);

	if (wide > INT32_MAX)
		return INT32_MAX;
	return wide < INT32_MIN ? INT32_MIN : (int32_t)wide;
}

static uint32_t leading_zeros(uint32_t x)
{
	uint32_t n = 0;

	for (; n < 32 && !(x >> (31 - n)); n++)
		;
	return n;
}

/* 1 / (1 + a) in Q31 for a in Q31: Newton's method from 48/17 - 32/17 * (1 + a) / 2, in
 * Q29. */
static int32_t reciprocal(int32_t a)
{
	int64_t twice = (int64_t)a + INT32_MAX;
	int32_t half = (int32_t)((twice + (twice >= 0 ? 1 : -1)) / 2);
	int32_t x = wrap_add(1515870810, npu_golden_high_mul(half, -1010580540));

	for (int i = 0; i < 3; i++) {
		int32_t t = npu_golden_high_mul(half, x);

		t = npu_golden_high_mul(x,
					wrap_add(1 << 29, (int32_t)(0u - (uint32_t)t)));
		x = wrap_add(x, saturating_shift(t, 2));
	}
	return saturating_shift(x, 1);
}

static void softmax_row(const int32_t *table, const uint32_t *d, uint8_t *row,
			uint32_t cols)
{
	uint32_t u8 = NPU_GET(d, F_AU8), out_u8 = NPU_GET(d, F_OU8), zeros;
	int32_t max = operand(row[0], u8), low = out_u8 ? 0 : -128;
	int32_t sum = 0, scale, e;

	for (uint32_t i = 1; i < cols; i++)
		max = operand(row[i], u8) > max ? operand(row[i], u8) : max;
	for (uint32_t i = 0; i < cols; i++) {
		e = table[max - operand(row[i], u8)];
		sum = wrap_add(sum, npu_golden_round_shift(e, 12));
	}
	zeros = leading_zeros((uint32_t)sum);
	scale = reciprocal((int32_t)(((uint32_t)sum << (zeros & 31u)) - 0x80000000u));
	if ((uint32_t)sum >> 28) /* 512 times the largest: nothing comes to a half */
		scale = 0;
	for (uint32_t i = 0; i < cols; i++) {
		e = npu_golden_high_mul(scale, table[max - operand(row[i], u8)]);
		e = npu_golden_round_shift(e, (int32_t)((35 - zeros) & 31u));
		row[i] = clamp_to(wrap_add(e, low), low, low + 255);
	}
}

static int exec_softmax(struct exec *x)
{
	uint32_t cols = NPU_GET(x->d, VCOLS);
	int32_t table[256];
	uint8_t row[65536];

	if (load(x, NPU_GET(x->d, ADDR_P), table, sizeof(table)))
		return -1;
	for (uint32_t r = 0, first, last; r < NPU_GET(x->d, DM); r++) {
		bytes_left(x, r, &first, &last);
		if (first >= last) /* of a row all or none */
			continue;
		if (load(x, NPU_GET(x->d, ADDR_A) + r * NPU_GET(x->d, LDA), row, cols))
			return -1;
		softmax_row(table, x->d, row, cols);
		if (store(x, NPU_GET(x->d, ADDR_D) + r * NPU_GET(x->d, LDD), row, cols))
			return -1;
	}
	return 0;
}

static int exec_vec(struct exec *x)
{
	if (is_pool(NPU_GET(x->d, VOP)))
		return exec_pool(x);
	return NPU_GET(x->d, VOP) == NPU_VOP_SOFTMAX ? exec_softmax(x) : exec_elements(x);
}

/* ---- fences ----------------------------------------------------------------------- */

static uint64_t svalue(const uint32_t *d)
{
	return (uint64_t)NPU_GET(d, SVALUE_HI) << 32 | NPU_GET(d, SVALUE_LO);
}

static int exec_wait(struct exec *x)
{
	uint64_t value;

	if (load(x, NPU_GET(x->d, ADDR_A), &value, 8))
		return -1;
	x->r->waiting = value < svalue(x->d);
	return 0;
}

static int exec_signal(struct exec *x)
{
	uint64_t value = svalue(x->d);

	if (store(x, NPU_GET(x->d, ADDR_D), &value, 8))
		return -1;
	x->r->irq = NPU_GET(x->d, F_IRQ);
	return 0;
}

/* ---- checks ----------------------------------------------------------------------- */

static uint32_t is_pool_op(const uint32_t *d)
{
	return NPU_GET(d, OPCODE) == NPU_OP_VEC && is_pool(NPU_GET(d, VOP));
}

static int is_shift(uint32_t field)
{
	return signed8(field) >= -31 && signed8(field) <= 30;
}

uint32_t npu_golden_kcut(const uint32_t desc[16])
{
	return NPU_GET(desc, OPCODE) == NPU_OP_GEMM ? NPU_GET(desc, KCUT) : 0;
}

static int bad_kcut(const uint32_t *d)
{
	uint32_t kcut = npu_golden_kcut(d), m = NPU_GET(d, DM);

	return kcut &&
	       (kcut < NPU_KCUT_LEAST || NPU_GET(d, CIN) <= 1u << kcut ||
		m > NPU_GET(d, PANEL) || m > npu_panel_kept(NPU_GET(d, F_OUT32), 0));
}

/* An input row fits the scratchpad, and so do rows beside each other. */
static int fits_scratchpad(const uint32_t *d)
{
	struct geometry g = read_geometry(d);
	uint64_t row_bytes = (uint64_t)(g.w - 1) * g.pix + g.cin;
	uint32_t sps = NPU_GET(d, SPS), kcut = npu_golden_kcut(d);

	if (kcut)
		return sps < NPU_SPAD && sps % 64 == 0 && sps >= npu_panel_cut_sps(kcut);
	if (!g.h || !g.w)
		return 1;
	if (row_bytes > NPU_SPAD_USE)
		return 0;
	/* Rows keep their place in a line, and two share one only where they do in
	 * memory, too. */
	return g.h == 1 || (sps < NPU_SPAD && sps % 64 == g.lda % 64 &&
			    (sps == g.lda || sps >= row_bytes + 63));
}

/* Where outputs are clamped, that must be possible. */
static int bad_clamp(const uint32_t *d)
{
	uint32_t vop = NPU_GET(d, VOP), u8 = NPU_GET(d, F_OU8), clamps;

	if (NPU_GET(d, OPCODE) == NPU_OP_VEC)
		clamps = is_pool(vop) || vop == NPU_VOP_ADD || vop == NPU_VOP_MUL ||
			 vop == NPU_VOP_RELU;
	else
		clamps = is_matrix(d) && !NPU_GET(d, F_OUT32);
	return clamps && operand(NPU_GET(d, AMIN), u8) > operand(NPU_GET(d, AMAX), u8);
}

/* What follows gives the words with a field that is wrong, a bit each. */

#define BAD(field, when) ((uint32_t)((when) != 0) << NPU_DESC_##field##_WORD)
#define ZERO(d, field)   BAD(field, !NPU_GET(d, field))

static uint32_t bad_fence(const uint32_t *d)
{
	uint32_t op = NPU_GET(d, OPCODE);
	uint32_t stores = op == NPU_OP_SIGNAL || op == NPU_OP_TIMESTAMP;

	return BAD(ADDR_A, op == NPU_OP_WAIT && NPU_GET(d, ADDR_A) % 8) |
	       BAD(ADDR_D, stores && NPU_GET(d, ADDR_D) % 8);
}

static uint32_t bad_kernel(const uint32_t *d)
{
	struct geometry g = read_geometry(d);

	return ZERO(d, KH) | ZERO(d, KW) | ZERO(d, SY) | ZERO(d, SX) | ZERO(d, DY) |
	       ZERO(d, DX) |
	       BAD(KH, is_matrix(d) && (uint64_t)g.kh * g.kw * g.depth > 65535);
}

/* A window without a pixel, beside the image or above it. */
static int empty_windows(const uint32_t *d)
{
	struct geometry g = read_geometry(d);

	return !g.h || !g.w || g.pt >= g.kh || g.pl >= g.kw ||
	       (uint64_t)(smaller(g.m, g.ow) - 1) * g.sx >= g.w + g.pl;
}

static uint32_t bad_vec(const uint32_t *d)
{
	uint32_t bad = ZERO(d, DM) | ZERO(d, VCOLS) | BAD(AMIN, bad_clamp(d));

	switch (NPU_GET(d, VOP)) {
	case NPU_VOP_MAXPOOL:
	case NPU_VOP_AVGPOOL:
		return bad | ZERO(d, CIN) | bad_kernel(d) | BAD(PT, empty_windows(d));
	case NPU_VOP_ADD:
		return bad | BAD(VSHIFT1, !is_shift(NPU_GET(d, VSHIFT1))) |
		       BAD(VSHIFT2, !is_shift(NPU_GET(d, VSHIFT2))) |
		       BAD(VSHIFTO, !is_shift(NPU_GET(d, VSHIFTO))) |
		       BAD(VLSHIFT, NPU_GET(d, VLSHIFT) > 31);
	case NPU_VOP_MUL:
		return bad | BAD(VSHIFTO, !is_shift(NPU_GET(d, VSHIFTO)));
	case NPU_VOP_RELU:
		return bad | BAD(VSHIFT1, !is_shift(NPU_GET(d, VSHIFT1)));
	default:
		return bad;
	}
}

static uint32_t bad_matrix(const uint32_t *d)
{
	uint32_t conv = NPU_GET(d, OPCODE) == NPU_OP_CONV, group = NPU_GET(d, F_GROUP);
	uint32_t block = NPU_GET(d, F_BLOCK), own = NPU_GET(d, F_NOPARAM), bad;

	bad = BAD(F_GROUP, group && (!conv || !block || own)) |
	      BAD(ADDR_B, block && NPU_GET(d, ADDR_B) % 16) | ZERO(d, DM) |
	      ZERO(d, PANEL) | ZERO(d, DN) | ZERO(d, CIN) | BAD(AMIN, bad_clamp(d)) |
	      BAD(QSHIFT, own && !NPU_GET(d, F_OUT32) && !NPU_GET(d, F_FLOAT) &&
				  !is_shift(NPU_GET(d, QSHIFT)));
	if (conv)
		bad |= ZERO(d, OW) | bad_kernel(d);
	if (group)
		bad |= ZERO(d, GC) | BAD(GC, NPU_GET(d, GC) > NPU_GET(d, CIN));
	bad |= BAD(KCUT, bad_kcut(d));
	return bad | BAD(SPS, !fits_scratchpad(d));
}

uint32_t npu_golden_check(const uint32_t desc[16], uint32_t *word)
{
	uint32_t op = NPU_GET(desc, OPCODE), bad = bad_fence(desc);

	*word = 0;
	if (op > NPU_OP_TIMESTAMP ||
	    (op == NPU_OP_VEC && NPU_GET(desc, VOP) > NPU_VOP_SOFTMAX))
		return NPU_FAULT_OPCODE;
	if (op == NPU_OP_VEC)
		bad = bad_vec(desc);
	if (is_matrix(desc))
		bad = bad_matrix(desc);
	if (!bad)
		return NPU_FAULT_NONE;
	while (!(bad >> *word & 1u))
		++*word;
	return NPU_FAULT_FIELD;
}

/* A pool's last window lies below the image: every other holds a pixel if the first and
 * this one do. */
static int ends_below(const uint32_t *d)
{
	struct geometry g = read_geometry(d);

	return (int64_t)((g.m - 1) / g.ow) * g.sy - g.pt >= g.h;
}

/* All of a panel's input is in the scratchpad at a time, for each panel of the operation.
 */
static int panels_fit(const struct exec *x)
{
	struct geometry g = read_geometry(x->d);
	const struct npu_windows v = {g.h, g.ow, g.sy, g.pt, (g.kh - 1) * g.dy + 1};
	uint64_t row_bytes = (uint64_t)(g.w - 1) * g.pix + g.cin;
	uint64_t k = (uint64_t)g.kh * g.kw * g.depth, sps = NPU_GET(x->d, SPS);
	uint32_t depth =
		npu_panel_most(NPU_GET(x->d, F_OUT32), k, x->env->rows, x->env->cols);
	uint32_t m = 0, t = 0;

	if (npu_golden_kcut(x->d))
		return (g.m - 1) * sps + (1u << npu_golden_kcut(x->d)) <= NPU_SPAD_USE;
	if (!g.h || !g.w)
		return 1;
	if (x->env->from) {
		m = x->env->from->m;
		t = x->env->from->t;
		depth = npu_panel_kept(NPU_GET(x->d, F_OUT32), x->env->from->half);
	}
	depth = smaller(depth, NPU_GET(x->d, PANEL));
	if (!t)
		t = npu_panel_next(g.m, depth, 0);
	for (; m < g.m; m += t, t = npu_panel_next(g.m - m, depth, t)) {
		struct npu_rows rows;

		rows = npu_panel_rows(&v, m, t);
		if (rows.count && (rows.count - 1) * sps + row_bytes > NPU_SPAD_USE)
			return 0;
	}
	return 1;
}

static int check(struct exec *x)
{
	uint32_t word, kind = npu_golden_check(x->d, &word);

	if (kind)
		return fail(x, kind, word);
	if (is_matrix(x->d) && !x->env->rows)
		return fail(x, NPU_FAULT_NO_UNITS, 0);
	if (is_pool_op(x->d) && ends_below(x->d))
		return fail(x, NPU_FAULT_FIELD, NPU_DESC_PT_WORD);
	if (is_matrix(x->d) && !panels_fit(x))
		return fail(x, NPU_FAULT_FIELD, NPU_DESC_SPS_WORD);
	return 0;
}

int npu_golden_exec(const uint32_t desc[16], const struct npu_golden_env *env,
		    struct npu_golden_result *result)
{
	struct exec x = {desc, env, result};

	memset(result, 0, sizeof(*result));
	if (check(&x))
		return (int)result->fault;
	switch (NPU_GET(desc, OPCODE)) {
	case NPU_OP_GEMM:
	case NPU_OP_CONV:
		exec_matrix(&x);
		break;
	case NPU_OP_VEC:
		exec_vec(&x);
		break;
	case NPU_OP_SIGNAL:
		exec_signal(&x);
		break;
	case NPU_OP_WAIT:
		exec_wait(&x);
		break;
	case NPU_OP_TIMESTAMP:
		store(&x, NPU_GET(desc, ADDR_D), &env->time, 8);
		break;
	default:
		break;
	}
	return (int)result->fault;
}

/* ---- contexts --------------------------------------------------------------------- */

#define SUMS_MOST 32u /* columns of a tile, rows of a fold, of the largest machine */

/* Sums of rows m0..m0+nm-1 over the k before end, of the tile at p->n. */
static int sums_of(struct exec *x, const struct npu_progress *p, uint32_t m0, uint32_t nm,
		   uint32_t end, int32_t *out)
{
	struct geometry g = read_geometry(x->d), part = g;
	uint32_t last = p->n + p->nc, at;
	struct block blk;

	for (uint32_t i = 0, rows; i < nm; i += rows) {
		rows = smaller(nm - i, BM);
		for (uint32_t n = p->n, nn; n < last; n += nn) {
			if (columns(x, n, last, &nn, &at))
				return -1;
			part.a = g.a + at;
			if (sum_block(x, &part, m0 + i, rows, n, nn, end, &blk))
				return -1;
			for (uint32_t j = 0; j < rows; j++)
				memcpy(out + (size_t)(i + j) * p->nc + (n - p->n),
				       blk.acc[j], nn * sizeof(*out));
		}
	}
	return 0;
}

int npu_golden_sums(const uint32_t desc[16], const struct npu_golden_env *env,
		    const struct npu_progress *p, int32_t *sums)
{
	struct npu_golden_result result = {0};
	struct exec x = {desc, env, &result};

	if (!sums_of(&x, p, p->m, p->r, p->k + p->kr, sums))
		sums_of(&x, p, p->m + p->r, p->t - p->r, p->k,
			sums + (size_t)p->r * p->nc);
	return (int)result.fault;
}

int npu_golden_sums_used(const uint32_t desc[16], uint32_t rows, uint32_t cols,
			 const struct npu_progress *p)
{
	struct geometry g = read_geometry(desc);
	uint32_t k = g.kh * g.kw * g.depth;

	return p->nc && p->nc <= cols && (!p->r || p->kr <= rows) &&
	       (NPU_GET(desc, F_OUT32) || cols > 16 || k > 2 * rows);
}

uint32_t npu_golden_sums_at(const struct npu_progress *p, uint32_t row)
{
	return NPU_CONTEXT_SUMS + row * (p->nc > 16 ? 128 : 64);
}

void npu_golden_save(const uint32_t desc[16], uint32_t space,
		     const struct npu_progress *p, uint32_t context[NPU_CONTEXT_WORDS])
{
	memset(context, 0, NPU_CONTEXT_WORDS * sizeof(*context));
	NPU_SET(context, FOLD_M, p->m);
	NPU_SET(context, FOLD_N, p->n);
	NPU_SET(context, FOLD_T, p->t);
	NPU_SET(context, FOLD_HALF, p->half);
	NPU_SET(context, FOLD_SUMS, p->nc != 0);
	NPU_SET(context, FOLD_SPACE, space);
	NPU_SET(context, FOLD_K, p->k);
	NPU_SET(context, FOLD_KR, p->kr);
	NPU_SET(context, FOLD_NC, p->nc);
	NPU_SET(context, FOLD_R, p->r);
	NPU_SET(context, ADDR_B, NPU_GET(desc, ADDR_B));
	NPU_SET(context, ADDR_P, NPU_GET(desc, ADDR_P));
	NPU_SET(context, ADDR_D, NPU_GET(desc, ADDR_D));
	NPU_SET(context, DM, NPU_GET(desc, DM));
	NPU_SET(context, DN, NPU_GET(desc, DN));
}

/* Sums of a tile that the descriptor has, of k that it has. */
static int sums_fit(const uint32_t desc[16], const struct npu_progress *p)
{
	struct geometry g = read_geometry(desc);
	uint32_t kcut = npu_golden_kcut(desc);

	if (kcut && p->k % (1u << kcut) + p->kr > 1u << kcut)
		return 0;
	return p->nc && p->nc <= SUMS_MOST && p->n + p->nc <= NPU_GET(desc, DN) &&
	       p->kr && p->kr <= SUMS_MOST && p->k + p->kr <= g.kh * g.kw * g.depth &&
	       p->r <= p->t && (p->k || p->r);
}

/* Whole rows and pieces of a VEC, and nothing else. */
static int vec_fits(const uint32_t desc[16], const struct npu_progress *p)
{
	return p->m < NPU_GET(desc, DM) && p->n < npu_golden_cols(desc) &&
	       !(p->n & 15u) && (NPU_GET(desc, VOP) != NPU_VOP_SOFTMAX || !p->n) &&
	       !p->t && !p->half;
}

uint32_t npu_golden_context(const uint32_t desc[16], uint32_t space,
			    const uint32_t context[NPU_CONTEXT_WORDS],
			    struct npu_progress *p)
{
	uint32_t most;

	p->half = NPU_GET(context, FOLD_HALF);
	most = smaller(npu_panel_kept(NPU_GET(desc, F_OUT32), p->half),
		       NPU_GET(desc, PANEL));
	p->m = NPU_GET(context, FOLD_M);
	p->n = NPU_GET(context, FOLD_N);
	p->t = NPU_GET(context, FOLD_T);
	p->k = p->kr = p->nc = p->r = 0;
	if (NPU_GET(context, FOLD_SUMS)) {
		p->k = NPU_GET(context, FOLD_K);
		p->kr = NPU_GET(context, FOLD_KR);
		p->nc = NPU_GET(context, FOLD_NC);
		p->r = NPU_GET(context, FOLD_R);
	}
	if (NPU_GET(context, ADDR_B) != NPU_GET(desc, ADDR_B) ||
	    NPU_GET(context, ADDR_P) != NPU_GET(desc, ADDR_P) ||
	    NPU_GET(context, ADDR_D) != NPU_GET(desc, ADDR_D) ||
	    NPU_GET(context, DM) != NPU_GET(desc, DM) ||
	    NPU_GET(context, DN) != NPU_GET(desc, DN) ||
	    NPU_GET(context, FOLD_SPACE) != space)
		return NPU_FAULT_CONTEXT;
	if (NPU_GET(desc, OPCODE) == NPU_OP_VEC)
		return vec_fits(desc, p) && !NPU_GET(context, FOLD_SUMS)
			       ? NPU_FAULT_NONE
			       : NPU_FAULT_CONTEXT;
	return is_matrix(desc) && p->n < NPU_GET(desc, DN) && p->t && p->t <= most &&
			       (uint64_t)p->m + p->t <= NPU_GET(desc, DM) &&
			       (!npu_golden_kcut(desc) || p->t == NPU_GET(desc, DM)) &&
			       (!NPU_GET(context, FOLD_SUMS) || sums_fit(desc, p))
		       ? NPU_FAULT_NONE
		       : NPU_FAULT_CONTEXT;
}

/* ---- flat memory ------------------------------------------------------------------ */

static int flat_fault(const struct npu_golden_flat *f, uint32_t va, uint32_t bytes,
		      uint32_t *bad)
{
	if (va < f->bytes && bytes <= f->bytes - va)
		return 0;
	*bad = va < f->bytes ? (uint32_t)f->bytes : va;
	return (int)NPU_FAULT_BOUNDS;
}

int npu_golden_flat_read(void *flat, uint32_t va, void *data, uint32_t bytes,
			 uint32_t *bad)
{
	const struct npu_golden_flat *f = flat;
	int kind = flat_fault(f, va, bytes, bad);

	if (!kind)
		memcpy(data, f->memory + va, bytes);
	return kind;
}

int npu_golden_flat_write(void *flat, uint32_t va, const void *data, uint32_t bytes,
			  uint32_t *bad)
{
	const struct npu_golden_flat *f = flat;
	int kind = flat_fault(f, va, bytes, bad);

	if (!kind)
		memcpy(f->memory + va, data, bytes);
	return kind;
}
