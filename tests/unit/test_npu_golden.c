/* SPDX-License-Identifier: Apache-2.0 */
/* The golden model against values worked out by hand and against plain loops. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "npu_golden.h"
#include "npu_regs.h"

#define MEMORY 65536u

static uint8_t memory[MEMORY];
static struct npu_golden_flat flat = {memory, MEMORY};
#define SPACE 131u

static struct npu_golden_env env = {.user = &flat,
				    .read = npu_golden_flat_read,
				    .write = npu_golden_flat_write,
				    .time = 0x123456789AULL,
				    .rows = 16,
				    .cols = 16};
static struct npu_golden_result result;

static int run(const uint32_t *desc)
{
	return npu_golden_exec(desc, &env, &result);
}

/* ---- arithmetic ------------------------------------------------------------------- */

static void high_mul(void **state)
{
	(void)state;
	/* round(a * b / 2^31), halves away from zero for positive products */
	assert_int_equal(npu_golden_high_mul(1 << 30, 1 << 30), 1 << 29);
	assert_int_equal(npu_golden_high_mul(1, 1 << 30), 1);   /* 0.5 */
	assert_int_equal(npu_golden_high_mul(-1, 1 << 30), 0);  /* -0.5 */
	assert_int_equal(npu_golden_high_mul(3, 1 << 30), 2);   /* 1.5 */
	assert_int_equal(npu_golden_high_mul(-3, 1 << 30), -1); /* -1.5 */
	assert_int_equal(npu_golden_high_mul(INT32_MIN, INT32_MIN), INT32_MAX);
	assert_int_equal(npu_golden_high_mul(INT32_MIN, INT32_MAX), -INT32_MAX);
}

static void round_shift(void **state)
{
	(void)state;
	/* halves away from zero */
	assert_int_equal(npu_golden_round_shift(5, 1), 3);
	assert_int_equal(npu_golden_round_shift(-5, 1), -3);
	assert_int_equal(npu_golden_round_shift(4, 3), 1);
	assert_int_equal(npu_golden_round_shift(-4, 3), -1);
	assert_int_equal(npu_golden_round_shift(3, 3), 0);
	assert_int_equal(npu_golden_round_shift(7, 0), 7);
	assert_int_equal(npu_golden_round_shift(INT32_MAX, 31), 1);
	assert_int_equal(npu_golden_round_shift(INT32_MIN, 31), -1);
}

static void requantize(void **state)
{
	(void)state;
	/* 0.5 * 2^-1: rounded twice: 5 -> 2.5 -> 3 -> 1.5 -> 2, once it would be 1 */
	assert_int_equal(npu_golden_requant(5, 1 << 30, -1), 2);
	assert_int_equal(npu_golden_requant(100, 1 << 30, 3), 400);
	assert_int_equal(npu_golden_requant(-100, 1 << 30, 0), -50);
	/* the shift left wraps */
	assert_int_equal(npu_golden_requant(1 << 29, 1 << 30, 3), 0);
}

static void requantize_once(void **state)
{
	(void)state;
	assert_int_equal(npu_golden_once_requant(5, 1 << 30, -1), 1);
	/* halves away from zero, on either side */
	assert_int_equal(npu_golden_once_requant(2, 1 << 30, -1), 1);
	assert_int_equal(npu_golden_once_requant(-2, 1 << 30, -1), -1);
	assert_int_equal(npu_golden_once_requant(-6, 1 << 30, -1), -2);
	assert_int_equal(npu_golden_once_requant(1, 1 << 30, 0), 1);
	assert_int_equal(npu_golden_once_requant(1, (1 << 30) - 1, 0), 0);
	assert_int_equal(npu_golden_once_requant(1 << 30, 1 << 30, -31), 0);
	assert_int_equal(npu_golden_once_requant(INT32_MIN, INT32_MAX, -31), -1);
	/* a shift to the left saturates */
	assert_int_equal(npu_golden_once_requant(100, 1 << 30, 3), 400);
	assert_int_equal(npu_golden_once_requant(1 << 29, 1 << 30, 3), 1 << 30);
	assert_int_equal(npu_golden_once_requant(-(1 << 29), 1 << 30, 3), -(1 << 30));
	assert_int_equal(npu_golden_once_requant(INT32_MIN, INT32_MIN, 0), INT32_MAX);
}

static uint32_t bits_of(float f)
{
	uint32_t bits;

	memcpy(&bits, &f, sizeof(bits));
	return bits;
}

static void float_requantize(void **state)
{
	(void)state;
	/* halves to even, on either side of 0 */
	assert_int_equal(npu_golden_float_requant(1, bits_of(0.5f)), 0);
	assert_int_equal(npu_golden_float_requant(3, bits_of(0.5f)), 2);
	assert_int_equal(npu_golden_float_requant(5, bits_of(0.5f)), 2);
	assert_int_equal(npu_golden_float_requant(-1, bits_of(0.5f)), 0);
	assert_int_equal(npu_golden_float_requant(-3, bits_of(0.5f)), -2);
	assert_int_equal(npu_golden_float_requant(-7, bits_of(0.25f)), -2);
	/* the sum is rounded to 24 bits first: 2^24 + 1 becomes 2^24, + 3 becomes + 4 */
	assert_int_equal(npu_golden_float_requant((1 << 24) + 1, bits_of(1.0f)), 1 << 24);
	assert_int_equal(npu_golden_float_requant((1 << 24) + 3, bits_of(1.0f)),
			 (1 << 24) + 4);
	/* the product is rounded, too: 3 * float(1/3) is 1 and a bit less, in 24 bits 1
	 */
	assert_int_equal(npu_golden_float_requant(3 << 20, bits_of(1.0f / 3)), 1 << 20);
	/* saturation, and scales that are no proper numbers */
	assert_int_equal(npu_golden_float_requant(INT32_MAX, bits_of(3e38f)), 1 << 30);
	assert_int_equal(npu_golden_float_requant(INT32_MIN, bits_of(1.0f)), -(1 << 30));
	assert_int_equal(npu_golden_float_requant(-5, 0x7F800000), -(1 << 30));
	assert_int_equal(npu_golden_float_requant(0, 0x7F800000), 0);
	assert_int_equal(npu_golden_float_requant(INT32_MAX, 0x007FFFFF), 0);
	/* the sign is not looked at */
	assert_int_equal(npu_golden_float_requant(8, bits_of(-0.5f)), 4);
}

/* ---- GEMM ------------------------------------------------------------------------- */

static void gemm_by_hand(void **state)
{
	/* [1 2; 3 4] - zp 1 times [5 6; 7 8], bias 10 -10 */
	static const int8_t a[] = {1, 2, 3, 4}, b[] = {5, 6, 7, 8};
	static const int32_t table[] = {10, 1 << 30, 1, 0, -10, 1 << 30, 0, 0};
	uint32_t d[16] = {0};
	int32_t sums[4];

	(void)state;
	memcpy(memory + 256, a, 4);
	memcpy(memory + 512, b, 4);
	memcpy(memory + 1024, table, sizeof(table));
	NPU_SET(d, OPCODE, NPU_OP_GEMM);
	NPU_SET(d, ADDR_A, 256);
	NPU_SET(d, ADDR_B, 512);
	NPU_SET(d, ADDR_P, 1024);
	NPU_SET(d, ADDR_D, 2048);
	NPU_SET(d, DM, 2);
	NPU_SET(d, DN, 2);
	NPU_SET(d, CIN, 2);
	NPU_SET(d, PANEL, 2);
	NPU_SET(d, LDA, 2);
	NPU_SET(d, SPS, 2);
	NPU_SET(d, LDB, 2);
	NPU_SET(d, LDD, 8);
	NPU_SET(d, ZPA, 1);
	NPU_SET(d, F_OUT32, 1);
	assert_int_equal(run(d), 0);
	memcpy(sums, memory + 2048, sizeof(sums));
	assert_int_equal(sums[0], 0 * 5 + 1 * 7 + 10);
	assert_int_equal(sums[1], 0 * 6 + 1 * 8 - 10);
	assert_int_equal(sums[2], 2 * 5 + 3 * 7 + 10);
	assert_int_equal(sums[3], 2 * 6 + 3 * 8 - 10);
	assert_int_equal(result.macs, 8);
	/* int8: times 1 and times 0.5, zero point 3, at most 40 */
	NPU_SET(d, F_OUT32, 0);
	NPU_SET(d, ZPO, 3);
	NPU_SET(d, AMIN, -128);
	NPU_SET(d, AMAX, 40);
	assert_int_equal(run(d), 0);
	assert_int_equal((int8_t)memory[2048], 17 + 3);
	assert_int_equal((int8_t)memory[2049], -1 + 3);
	assert_int_equal((int8_t)memory[2056], 40);
	assert_int_equal((int8_t)memory[2057], 13 + 3);
}

/* A GEMM of ones done in two goes: each writes its own outputs and no others. */
static void goes_on(void **state)
{
	static const struct npu_progress all = {.m = 9, .t = 3, .half = 1},
					 from = {.m = 4, .t = 3, .n = 2};
	static const struct npu_progress inside = {
		.m = 4, .t = 3, .n = 2, .k = 1, .kr = 2, .nc = 3, .r = 1};
	int32_t sums[3 * 3];
	const uint32_t m = 12, n = 5, k = 3;
	uint32_t d[16] = {0}, context[NPU_CONTEXT_WORDS], bad[NPU_CONTEXT_WORDS];
	struct npu_progress back;

	(void)state;
	memset(memory + 256, 1, 1024);
	NPU_SET(d, OPCODE, NPU_OP_GEMM);
	NPU_SET(d, ADDR_A, 256);
	NPU_SET(d, ADDR_B, 512);
	NPU_SET(d, ADDR_P, 1024);
	NPU_SET(d, F_NOPARAM, 1);
	NPU_SET(d, QMULT, 1 << 30);
	NPU_SET(d, QSHIFT, 1);
	NPU_SET(d, AMIN, -128);
	NPU_SET(d, AMAX, 127);
	NPU_SET(d, ADDR_D, 2048);
	NPU_SET(d, DM, m);
	NPU_SET(d, DN, n);
	NPU_SET(d, CIN, k);
	NPU_SET(d, PANEL, m);
	NPU_SET(d, LDA, k);
	NPU_SET(d, SPS, k);
	NPU_SET(d, LDB, n);
	NPU_SET(d, LDD, n);
	for (uint32_t second = 0; second < 2; second++) {
		memset(memory + 2048, 0x55, m * n);
		env.from = second ? &from : NULL;
		env.to = second ? NULL : &from;
		assert_int_equal(run(d), 0);
		for (uint32_t i = 0; i < m * n; i++) {
			bool first = i / n < 4 || (i / n < 7 && i % n < 2);

			assert_int_equal(memory[2048 + i], first != second ? k : 0x55);
		}
		assert_int_equal(result.macs,
				 (second ? 8 * 5 - 3 * 2 : 4 * 5 + 3 * 2) * k);
	}
	env.from = env.to = NULL;

	npu_golden_save(d, SPACE, &from, context);
	assert_int_equal(npu_golden_context(d, SPACE, context, &back), NPU_FAULT_NONE);
	assert_memory_equal(&back, &from, sizeof(back));
	npu_golden_save(d, SPACE, &all, bad);
	assert_int_equal(npu_golden_context(d, SPACE, bad, &back), NPU_FAULT_NONE);
#define REFUSES(field, value)                                                            \
	do {                                                                             \
		memcpy(bad, context, sizeof(bad));                                       \
		NPU_SET(bad, field, value);                                              \
		assert_int_equal(npu_golden_context(d, SPACE, bad, &back),               \
				 NPU_FAULT_CONTEXT);                                     \
	} while (0)
	npu_golden_save(d, SPACE, &inside, bad);
	assert_int_equal(npu_golden_context(d, SPACE, bad, &back), NPU_FAULT_NONE);
	assert_memory_equal(&back, &inside, sizeof(back));
	assert_int_equal(npu_golden_sums(d, &env, &inside, sums), NPU_FAULT_NONE);
	for (uint32_t i = 0; i < 9; i++)
		assert_int_equal(sums[i], i < 3 ? 3 : 1);
	/* too narrow, lower than the fold that a row has, tiles side by side, none */
	assert_true(npu_golden_sums_used(d, 2, 17, &inside));
	assert_false(npu_golden_sums_used(d, 2, 2, &inside));
	assert_false(npu_golden_sums_used(d, 1, 17, &inside));
	assert_false(npu_golden_sums_used(d, 2, 3, &inside));
	assert_false(npu_golden_sums_used(d, 2, 17, &from));
	REFUSES(FOLD_M, m - 2);
	REFUSES(FOLD_M, UINT32_MAX);
	REFUSES(FOLD_N, n);
	REFUSES(FOLD_T, 0);
	REFUSES(FOLD_T, m - 3);
	NPU_SET(d, PANEL, 2);
	REFUSES(FOLD_T, 3);
	NPU_SET(d, PANEL, m);
	REFUSES(ADDR_B, 513);
	REFUSES(ADDR_P, 1);
	REFUSES(ADDR_D, 2049);
	REFUSES(DM, m + 1);
	REFUSES(DN, n + 1);
	REFUSES(FOLD_SPACE, SPACE + 1);
	REFUSES(FOLD_SPACE, 0);
	npu_golden_save(d, SPACE, &inside, context);
	REFUSES(FOLD_NC, 0);
	REFUSES(FOLD_NC, n - 1);
	REFUSES(FOLD_KR, 0);
	REFUSES(FOLD_KR, k);
	REFUSES(FOLD_K, k);
	REFUSES(FOLD_R, 4);
	NPU_SET(context, FOLD_R, 0);
	REFUSES(FOLD_K, 0);
#undef REFUSES
	NPU_SET(d, OPCODE, NPU_OP_VEC);
	assert_int_equal(npu_golden_context(d, SPACE, context, &back), NPU_FAULT_CONTEXT);
}

static void gemm_unsigned(void **state)
{
	uint32_t d[16] = {0};

	(void)state;
	memory[0] = 200;
	memory[64] = 250;
	NPU_SET(d, OPCODE, NPU_OP_GEMM);
	NPU_SET(d, F_AU8, 1);
	NPU_SET(d, F_BU8, 1);
	NPU_SET(d, F_OU8, 1);
	NPU_SET(d, F_NOPARAM, 1);
	NPU_SET(d, QMULT, 1 << 30);
	NPU_SET(d, QSHIFT, -5);
	NPU_SET(d, ADDR_B, 64);
	NPU_SET(d, ADDR_D, 128);
	NPU_SET(d, DM, 1);
	NPU_SET(d, DN, 1);
	NPU_SET(d, CIN, 1);
	NPU_SET(d, PANEL, 1);
	NPU_SET(d, ZPA, 128);
	NPU_SET(d, ZPB, 255);
	NPU_SET(d, ZPO, 200);
	NPU_SET(d, AMIN, 0);
	NPU_SET(d, AMAX, 255);
	assert_int_equal(run(d), 0);
	/* 72 * -5 = -360; / 2 = -180; / 32 = -5.6 -> -6 */
	assert_int_equal(memory[128], 194);
}

/* ---- CONV: every output against a plain loop -------------------------------------- */

static uint32_t lcg(uint32_t *s)
{
	*s = *s * 1664525u + 1013904223u;
	return *s >> 8;
}

struct shape {
	uint32_t h, w, c, n, kh, kw, sy, sx, dy, dx, pt, pl, oh, ow;
};

static int32_t plain_conv(const struct shape *s, uint32_t oy, uint32_t ox, uint32_t n,
			  int32_t za, int32_t zb)
{
	int32_t sum = 0;

	for (uint32_t ky = 0; ky < s->kh; ky++)
		for (uint32_t kx = 0; kx < s->kw; kx++)
			for (uint32_t c = 0; c < s->c; c++) {
				int64_t y = (int64_t)oy * s->sy + ky * s->dy - s->pt;
				int64_t x = (int64_t)ox * s->sx + kx * s->dx - s->pl;
				int32_t b = (int8_t)
					memory[0x8000 +
					       ((ky * s->kw + kx) * s->c + c) * 32 + n];

				if (y < 0 || y >= s->h || x < 0 || x >= s->w)
					continue;
				sum += ((int8_t)memory[((uint64_t)y * s->w +
							(uint64_t)x) *
							       s->c +
						       c] -
					za) *
				       (b - zb);
			}
	return sum;
}

static void conv_random(void **state)
{
	uint32_t seed = 1;

	(void)state;
	for (int turn = 0; turn < 60; turn++) {
		struct shape s = {.h = 1 + lcg(&seed) % 12,
				  .w = 1 + lcg(&seed) % 12,
				  .c = 1 + lcg(&seed) % 9,
				  .n = 1 + lcg(&seed) % 20,
				  .kh = 1 + lcg(&seed) % 3,
				  .kw = 1 + lcg(&seed) % 3,
				  .sy = 1 + lcg(&seed) % 3,
				  .sx = 1 + lcg(&seed) % 2,
				  .dy = 1 + lcg(&seed) % 2,
				  .dx = 1 + lcg(&seed) % 2,
				  .pt = lcg(&seed) % 3,
				  .pl = lcg(&seed) % 3,
				  .oh = 1 + lcg(&seed) % 8,
				  .ow = 1 + lcg(&seed) % 8};
		int32_t za = (int8_t)lcg(&seed), zb = (int8_t)lcg(&seed), got;
		uint32_t d[16] = {0};

		for (uint32_t i = 0; i < 0xC000; i++)
			memory[i] = (uint8_t)lcg(&seed);
		NPU_SET(d, OPCODE, NPU_OP_CONV);
		NPU_SET(d, F_OUT32, 1);
		NPU_SET(d, F_NOPARAM, 1);
		NPU_SET(d, ADDR_B, 0x8000);
		NPU_SET(d, ADDR_D, 0xC000);
		NPU_SET(d, DM, s.oh * s.ow);
		NPU_SET(d, OW, s.ow);
		NPU_SET(d, PANEL, 512);
		NPU_SET(d, DN, s.n);
		NPU_SET(d, CIN, s.c);
		NPU_SET(d, H, s.h);
		NPU_SET(d, W, s.w);
		NPU_SET(d, LDA, s.w * s.c);
		NPU_SET(d, SPS, s.w * s.c);
		NPU_SET(d, PIX, s.c);
		NPU_SET(d, LDB, 32);
		NPU_SET(d, LDD, s.n * 4);
		NPU_SET(d, KH, s.kh);
		NPU_SET(d, KW, s.kw);
		NPU_SET(d, SY, s.sy);
		NPU_SET(d, SX, s.sx);
		NPU_SET(d, DY, s.dy);
		NPU_SET(d, DX, s.dx);
		NPU_SET(d, PT, s.pt);
		NPU_SET(d, PL, s.pl);
		NPU_SET(d, ZPA, za);
		NPU_SET(d, ZPB, zb);
		assert_int_equal(run(d), 0);
		assert_int_equal(result.macs,
				 (uint64_t)s.oh * s.ow * s.n * s.kh * s.kw * s.c);
		for (uint32_t m = 0; m < s.oh * s.ow; m++)
			for (uint32_t n = 0; n < s.n; n++) {
				memcpy(&got, memory + 0xC000 + (m * s.n + n) * 4, 4);
				assert_int_equal(got, plain_conv(&s, m / s.ow, m % s.ow,
								 n, za, zb));
			}
	}
}

/* 1 x 2 image, 4 channels in 2 groups, 4 outputs, a kernel of 1 x 2. */
static void group_by_hand(void **state)
{
	static const int8_t a[] = {1, 2, 3, 4, 5, 6, 7, 8};
	/* {bias, mult, shift, at}: outputs 0, 1 read channels 2, 3; output 2 reads 1, 2
	 */
	static const int32_t table[] = {0,  1 << 30, 1, 2, 10, 1 << 30, 1, 2,
					-5, 1 << 30, 1, 1, 0,  1 << 30, 1, 0};
	uint32_t d[16] = {0};

	(void)state;
	memcpy(memory, a, sizeof(a));
	memset(memory + 512, 0, 64);
	for (uint32_t k = 0; k < 4; k++)
		for (uint32_t n = 0; n < 4; n++)
			memory[512 + k * 16 + n] = (uint8_t)(n < 2 ? 1 : k == n);
	memcpy(memory + 1024, table, sizeof(table));
	NPU_SET(d, OPCODE, NPU_OP_CONV);
	NPU_SET(d, F_GROUP, 1);
	NPU_SET(d, F_BLOCK, 1);
	NPU_SET(d, ADDR_B, 512);
	NPU_SET(d, ADDR_P, 1024);
	NPU_SET(d, ADDR_D, 2048);
	NPU_SET(d, DM, 1);
	NPU_SET(d, OW, 1);
	NPU_SET(d, PANEL, 1);
	NPU_SET(d, DN, 4);
	NPU_SET(d, CIN, 4);
	NPU_SET(d, GC, 2);
	NPU_SET(d, H, 1);
	NPU_SET(d, W, 2);
	NPU_SET(d, LDA, 8);
	NPU_SET(d, PIX, 4);
	NPU_SET(d, LDD, 4);
	NPU_SET(d, KH, 1);
	NPU_SET(d, KW, 2);
	NPU_SET(d, SY, 1);
	NPU_SET(d, SX, 1);
	NPU_SET(d, DY, 1);
	NPU_SET(d, DX, 1);
	NPU_SET(d, AMIN, -128);
	NPU_SET(d, AMAX, 127);
	assert_int_equal(run(d), 0);
	assert_int_equal(result.macs, 4 * 4);
	assert_int_equal((int8_t)memory[2048], 3 + 4 + 7 + 8);
	assert_int_equal((int8_t)memory[2049], 3 + 4 + 7 + 8 + 10);
	assert_int_equal((int8_t)memory[2050], 6 - 5); /* k = 2: the second pixel's 1 */
	assert_int_equal((int8_t)memory[2051], 6);     /* k = 3: the second pixel's 1 */
}

/* ---- VEC -------------------------------------------------------------------------- */

/* Scale of a 0.5, of b 0.25, of the sum 1: TensorFlow Lite's preparation by hand. */
static void add_by_hand(void **state)
{
	static const int8_t a[] = {10, -10, 127, -128}, b[] = {20, 20, 127, -128};
	uint32_t d[16] = {0};

	(void)state;
	memcpy(memory, a, 4);
	memcpy(memory + 64, b, 4);
	NPU_SET(d, OPCODE, NPU_OP_VEC);
	NPU_SET(d, VOP, NPU_VOP_ADD);
	NPU_SET(d, ADDR_B, 64);
	NPU_SET(d, ADDR_D, 128);
	NPU_SET(d, DM, 2);
	NPU_SET(d, VCOLS, 2);
	NPU_SET(d, LDA, 2);
	NPU_SET(d, VLDB, 2);
	NPU_SET(d, LDD, 2);
	/* twice the larger scale is 1: a * 0.5, b * 0.25, sum * 1 / 2^20 */
	NPU_SET(d, VMULT1, 1 << 30);
	NPU_SET(d, VMULT2, 1 << 30);
	NPU_SET(d, VSHIFT2, -1);
	NPU_SET(d, VMULTO, 1 << 30);
	NPU_SET(d, VSHIFTO, -19);
	NPU_SET(d, VLSHIFT, 20);
	NPU_SET(d, VZP1, 2);
	NPU_SET(d, ZPO, -1);
	NPU_SET(d, AMIN, -128);
	NPU_SET(d, AMAX, 90);
	assert_int_equal(run(d), 0);
	assert_int_equal((int8_t)memory[128], 4 + 5 - 1);
	assert_int_equal((int8_t)memory[129], -6 + 5 - 1);
	/* (125 * 0.5 + 127 * 0.25) = 94.25 -> 94 - 1, cut to 90; -97 - 1 */
	assert_int_equal((int8_t)memory[130], 90);
	assert_int_equal((int8_t)memory[131], -98);
}

static void relu_by_hand(void **state)
{
	static const int8_t a[] = {-50, 0, 50, 100};
	uint32_t d[16] = {0};

	(void)state;
	memcpy(memory, a, 4);
	NPU_SET(d, OPCODE, NPU_OP_VEC);
	NPU_SET(d, VOP, NPU_VOP_RELU);
	NPU_SET(d, ADDR_D, 128);
	NPU_SET(d, DM, 1);
	NPU_SET(d, VCOLS, 4);
	NPU_SET(d, VMULT1, 1 << 30);
	NPU_SET(d, VSHIFT1, 1);
	NPU_SET(d, VZP1, 10);
	NPU_SET(d, ZPO, -20);
	NPU_SET(d, AMIN, -20);
	NPU_SET(d, AMAX, 60);
	assert_int_equal(run(d), 0);
	assert_int_equal((int8_t)memory[128], -20);
	assert_int_equal((int8_t)memory[129], -20);
	assert_int_equal((int8_t)memory[130], 20);
	assert_int_equal((int8_t)memory[131], 60);
}

static void maxpool_by_hand(void **state)
{
	/* 3 x 3, one channel, 2 x 2 window, stride 2, one row and column of padding above
	 */
	static const int8_t a[] = {-1, -2, -3, -4, 5, 6, 7, -8, 9};
	uint32_t d[16] = {0};

	(void)state;
	memcpy(memory, a, sizeof(a));
	NPU_SET(d, OPCODE, NPU_OP_VEC);
	NPU_SET(d, VOP, NPU_VOP_MAXPOOL);
	NPU_SET(d, ADDR_D, 128);
	NPU_SET(d, DM, 4);
	NPU_SET(d, OW, 2);
	NPU_SET(d, CIN, 1);
	NPU_SET(d, H, 3);
	NPU_SET(d, W, 3);
	NPU_SET(d, LDA, 3);
	NPU_SET(d, PIX, 1);
	NPU_SET(d, LDD, 1);
	NPU_SET(d, KH, 2);
	NPU_SET(d, KW, 2);
	NPU_SET(d, SY, 2);
	NPU_SET(d, SX, 2);
	NPU_SET(d, DY, 1);
	NPU_SET(d, DX, 1);
	NPU_SET(d, PT, 1);
	NPU_SET(d, PL, 1);
	NPU_SET(d, AMIN, -128);
	NPU_SET(d, AMAX, 8);
	assert_int_equal(run(d), 0);
	assert_int_equal((int8_t)memory[128], -1);
	assert_int_equal((int8_t)memory[129], -2);
	assert_int_equal((int8_t)memory[130], 7);
	assert_int_equal((int8_t)memory[131], 8);
}

static void mul_by_hand(void **state)
{
	static const uint8_t a[] = {0, 100, 255, 255}, b[] = {0x80, 100, 0x7F, 0x80};
	uint32_t d[16] = {0};

	(void)state;
	memcpy(memory, a, 4);
	memcpy(memory + 64, b, 4);
	NPU_SET(d, OPCODE, NPU_OP_VEC);
	NPU_SET(d, VOP, NPU_VOP_MUL);
	NPU_SET(d, F_AU8, 1); /* a and d are uint8, b is int8 */
	NPU_SET(d, F_OU8, 1);
	NPU_SET(d, ADDR_B, 64);
	NPU_SET(d, ADDR_D, 128);
	NPU_SET(d, DM, 1);
	NPU_SET(d, VCOLS, 4);
	NPU_SET(d, VMULTO, 1 << 30);
	NPU_SET(d, VSHIFTO, -6);
	NPU_SET(d, VZP1, 200);
	NPU_SET(d, VZP2, 127);
	NPU_SET(d, ZPO, 130);
	NPU_SET(d, AMIN, 3);
	NPU_SET(d, AMAX, 250);
	assert_int_equal(run(d), 0);
	/* -200 * -255 / 128 = 398.4; -100 * -27 / 128 = 21.1; 55 * 0; 55 * -255 / 128 =
	 * -109.6 */
	assert_int_equal(memory[128], 250);
	assert_int_equal(memory[129], 151);
	assert_int_equal(memory[130], 130);
	assert_int_equal(memory[131], 20);
}

static void pool_window(uint32_t *d, uint32_t vop)
{
	NPU_SET(d, OPCODE, NPU_OP_VEC);
	NPU_SET(d, VOP, vop);
	NPU_SET(d, ADDR_D, 128);
	NPU_SET(d, DM, 4);
	NPU_SET(d, OW, 2);
	NPU_SET(d, CIN, 1);
	NPU_SET(d, H, 3);
	NPU_SET(d, W, 3);
	NPU_SET(d, LDA, 3);
	NPU_SET(d, PIX, 1);
	NPU_SET(d, LDD, 1);
	NPU_SET(d, KH, 2);
	NPU_SET(d, KW, 2);
	NPU_SET(d, SY, 2);
	NPU_SET(d, SX, 2);
	NPU_SET(d, DY, 7); /* not used */
	NPU_SET(d, DX, 7);
	NPU_SET(d, PT, 1);
	NPU_SET(d, PL, 1);
	NPU_SET(d, AMIN, -128);
	NPU_SET(d, AMAX, 127);
}

static void avgpool_by_hand(void **state)
{
	static const uint8_t a[] = {0xFF, 0xFE, 0xFD, 0xFC, 5, 6, 7, 0xF8, 8};
	uint32_t d[16] = {0};

	(void)state;
	memcpy(memory, a, sizeof(a));
	pool_window(d, NPU_VOP_AVGPOOL);
	assert_int_equal(run(d), 0);
	/* windows of 1, 2, 2 and 4 pixels: -1; -5 / 2 = -2.5; 3 / 2 = 1.5; 11 / 4 */
	assert_int_equal((int8_t)memory[128], -1);
	assert_int_equal((int8_t)memory[129], -3);
	assert_int_equal((int8_t)memory[130], 2);
	assert_int_equal((int8_t)memory[131], 3);
	NPU_SET(d, F_AU8, 1);
	NPU_SET(d, F_OU8, 1);
	NPU_SET(d, AMIN, 0);
	NPU_SET(d, AMAX, 253);
	assert_int_equal(run(d), 0);
	/* 255; (254 + 253) / 2; (252 + 7) / 2; (5 + 6 + 248 + 8) / 4 */
	assert_int_equal(memory[128], 253);
	assert_int_equal(memory[129], 253);
	assert_int_equal(memory[130], 130);
	assert_int_equal(memory[131], 67);
	NPU_SET(d, VOP, NPU_VOP_MAXPOOL);
	assert_int_equal(run(d), 0);
	assert_int_equal(memory[129], 253);
	assert_int_equal(memory[130], 252);
	assert_int_equal(memory[131], 248);
}

static void lut_by_hand(void **state)
{
	uint32_t d[16] = {0};

	(void)state;
	for (uint32_t i = 0; i < 256; i++) {
		memory[i] = (uint8_t)(i * 7);
		memory[1024 + i] = (uint8_t)(255 - i);
	}
	NPU_SET(d, OPCODE, NPU_OP_VEC);
	NPU_SET(d, VOP, NPU_VOP_LUT);
	NPU_SET(d, ADDR_P, 1024);
	NPU_SET(d, ADDR_D, 2048);
	NPU_SET(d, DM, 1);
	NPU_SET(d, VCOLS, 256);
	assert_int_equal(run(d), 0);
	for (uint32_t i = 0; i < 256; i++)
		assert_int_equal(memory[2048 + i], 255 - (uint8_t)(i * 7));
}

static void softmax_by_hand(void **state)
{
	uint32_t d[16] = {0};
	int32_t table[256];

	(void)state;
	/* exp is 2^-distance: exact, so that the outputs are */
	for (uint32_t i = 0; i < 256; i++)
		table[i] = !i ? INT32_MAX : i < 31 ? 1 << (31 - i) : 0;
	memcpy(memory + 1024, table, sizeof(table));
	memcpy(memory, "\x10\x10\x10\x10\x7F\x7E\x7D\x7D\x80\xFF\x80\x80", 12);
	NPU_SET(d, OPCODE, NPU_OP_VEC);
	NPU_SET(d, VOP, NPU_VOP_SOFTMAX);
	NPU_SET(d, ADDR_P, 1024);
	NPU_SET(d, ADDR_D, 2048);
	NPU_SET(d, DM, 3);
	NPU_SET(d, VCOLS, 4);
	NPU_SET(d, LDA, 4);
	NPU_SET(d, LDD, 4);
	assert_int_equal(run(d), 0);
	/* 1/4 each; 1/2 1/4 1/8 1/8; -1 and three far below it */
	assert_memory_equal(memory + 2048, "\xC0\xC0\xC0\xC0", 4);
	assert_memory_equal(memory + 2052, "\x00\xC0\xA0\xA0", 4);
	assert_memory_equal(memory + 2056, "\x80\x7F\x80\x80", 4);
	NPU_SET(d, F_AU8, 1);
	NPU_SET(d, F_OU8, 1);
	assert_int_equal(run(d), 0);
	assert_memory_equal(memory + 2048, "\x40\x40\x40\x40", 4);
	assert_memory_equal(memory + 2052, "\x80\x40\x20\x20", 4);
	assert_memory_equal(memory + 2056, "\x00\xFF\x00\x00", 4);
	/* 512 of the same: a half of 1/256 each, or less, is 0; one less is 1 */
	memset(memory + 4096, 9, 600);
	NPU_SET(d, ADDR_A, 4096);
	NPU_SET(d, DM, 1);
	NPU_SET(d, VCOLS, 512);
	assert_int_equal(run(d), 0);
	for (uint32_t i = 0; i < 512; i++)
		assert_int_equal(memory[2048 + i], 0);
	NPU_SET(d, VCOLS, 511);
	assert_int_equal(run(d), 0);
	for (uint32_t i = 0; i < 511; i++)
		assert_int_equal(memory[2048 + i], 1);
}

/* Operands and zero points of VEC by their flags: uint8 is int8 with all moved by 128. */
static void unsigned_vec(void **state)
{
	static const uint32_t vops[] = {NPU_VOP_ADD, NPU_VOP_RELU, NPU_VOP_MUL};
	uint32_t seed = 3;

	(void)state;
	for (int turn = 0; turn < 30; turn++) {
		uint32_t d[16] = {0}, zp1, zp2, zpo;

		for (uint32_t i = 0; i < 512; i++) {
			memory[i] = (uint8_t)lcg(&seed);
			memory[1024 + i] = memory[i] ^ 0x80;
		}
		zp1 = lcg(&seed) & 255;
		zp2 = lcg(&seed) & 255;
		zpo = lcg(&seed) & 255;
		NPU_SET(d, OPCODE, NPU_OP_VEC);
		NPU_SET(d, VOP, vops[turn % 3]);
		NPU_SET(d, ADDR_B, 256);
		NPU_SET(d, ADDR_D, 4096);
		NPU_SET(d, DM, 1);
		NPU_SET(d, VCOLS, 256);
		NPU_SET(d, VMULT1, 0x50000000);
		NPU_SET(d, VMULT2, 0x60000000);
		NPU_SET(d, VMULTO, 0x70000000);
		NPU_SET(d, VSHIFTO, turn % 3 ? -7 : -20);
		NPU_SET(d, VLSHIFT, 20);
		NPU_SET(d, VZP1, zp1);
		NPU_SET(d, VZP2, zp2);
		NPU_SET(d, ZPO, zpo);
		NPU_SET(d, AMIN, 0x90);
		NPU_SET(d, AMAX, 0x70);
		assert_int_equal(run(d), 0);
		NPU_SET(d, F_AU8, 1);
		NPU_SET(d, F_BU8, 1);
		NPU_SET(d, F_OU8, 1);
		NPU_SET(d, ADDR_A, 1024);
		NPU_SET(d, ADDR_B, 1024 + 256);
		NPU_SET(d, ADDR_D, 8192);
		NPU_SET(d, VZP1, zp1 ^ 0x80);
		NPU_SET(d, VZP2, zp2 ^ 0x80);
		NPU_SET(d, ZPO, zpo ^ 0x80);
		NPU_SET(d, AMIN, 0x10);
		NPU_SET(d, AMAX, 0xF0);
		assert_int_equal(run(d), 0);
		for (uint32_t i = 0; i < 256; i++)
			assert_int_equal(memory[8192 + i], memory[4096 + i] ^ 0x80);
	}
}

static void copy_and_fill(void **state)
{
	uint32_t d[16] = {0};

	(void)state;
	for (uint32_t i = 0; i < 4096; i++)
		memory[i] = (uint8_t)(i * 13);
	NPU_SET(d, OPCODE, NPU_OP_VEC);
	NPU_SET(d, VOP, NPU_VOP_COPY);
	NPU_SET(d, ADDR_A, 5);
	NPU_SET(d, ADDR_D, 8192 + 3);
	NPU_SET(d, DM, 3);
	NPU_SET(d, VCOLS, 700);
	NPU_SET(d, LDA, 1000);
	NPU_SET(d, LDD, 701);
	assert_int_equal(run(d), 0);
	for (uint32_t r = 0; r < 3; r++)
		assert_memory_equal(memory + 8195 + r * 701, memory + 5 + r * 1000, 700);
	NPU_SET(d, VOP, NPU_VOP_FILL);
	NPU_SET(d, VPATTERN, 0x44332211);
	NPU_SET(d, VCOLS, 8);
	assert_int_equal(run(d), 0);
	assert_memory_equal(memory + 8195, "\x11\x22\x33\x44\x11\x22\x33\x44", 8);
	assert_int_equal(memory[8203], memory[5 + 8]);
}

/* ---- fences, faults --------------------------------------------------------------- */

static void fences(void **state)
{
	uint32_t d[16] = {0};
	uint64_t word;

	(void)state;
	NPU_SET(d, OPCODE, NPU_OP_SIGNAL);
	NPU_SET(d, F_IRQ, 1);
	NPU_SET(d, ADDR_D, 64);
	NPU_SET(d, SVALUE_LO, 7);
	NPU_SET(d, SVALUE_HI, 1);
	assert_int_equal(run(d), 0);
	assert_int_equal(result.irq, 1);
	memcpy(&word, memory + 64, 8);
	assert_int_equal(word, (UINT64_C(1) << 32) + 7);
	NPU_SET(d, OPCODE, NPU_OP_WAIT);
	NPU_SET(d, ADDR_A, 64);
	assert_int_equal(run(d), 0);
	assert_int_equal(result.waiting, 0);
	NPU_SET(d, SVALUE_LO, 8);
	assert_int_equal(run(d), 0);
	assert_int_equal(result.waiting, 1);
	NPU_SET(d, OPCODE, NPU_OP_TIMESTAMP);
	assert_int_equal(run(d), 0);
	memcpy(&word, memory + 64, 8);
	assert_int_equal(word, env.time);
}

static void expect_fault(const uint32_t *d, uint32_t kind, uint32_t address)
{
	assert_int_equal(run(d), kind);
	assert_int_equal(result.fault, kind);
	assert_int_equal(result.address, address);
}

static void faults(void **state)
{
	static const struct {
		uint32_t op, vop, word;
		uint32_t mask; /* of the word that is made 0 */
	} fields[] = {
		{NPU_OP_GEMM, 0, 5, 0xFFFFF},
		{NPU_OP_GEMM, 0, 6, 0xFFFF0000},
		{NPU_OP_GEMM, 0, 7, 0xFFFF},
		{NPU_OP_GEMM, 0, 7, 0xFFFF0000},
		{NPU_OP_CONV, 0, 6, 0xFFFF},
		{NPU_OP_CONV, 0, 12, 0xFF},
		{NPU_OP_CONV, 0, 12, 0xFF00},
		{NPU_OP_CONV, 0, 12, 0xF0000},
		{NPU_OP_CONV, 0, 12, 0xF00000},
		{NPU_OP_CONV, 0, 12, 0xF000000},
		{NPU_OP_CONV, 0, 12, 0xF0000000},
		{NPU_OP_VEC, NPU_VOP_ADD, 5, 0xFFFFF},
		{NPU_OP_VEC, NPU_VOP_COPY, 6, 0xFFFF},
		{NPU_OP_VEC, NPU_VOP_MAXPOOL, 7, 0xFFFF0000},
		{NPU_OP_VEC, NPU_VOP_AVGPOOL, 7, 0xFFFF0000},
		{NPU_OP_VEC, NPU_VOP_AVGPOOL, 12, 0xFF},
		{NPU_OP_VEC, NPU_VOP_MUL, 6, 0xFFFF},
		{NPU_OP_VEC, NPU_VOP_LUT, 6, 0xFFFF},
		{NPU_OP_VEC, NPU_VOP_SOFTMAX, 5, 0xFFFFF},
	};
	uint32_t d[16] = {0};

	(void)state;
	NPU_SET(d, OPCODE, NPU_OP_TIMESTAMP + 1);
	expect_fault(d, NPU_FAULT_OPCODE, 0);
	NPU_SET(d, OPCODE, NPU_OP_VEC);
	NPU_SET(d, VOP, NPU_VOP_SOFTMAX + 1);
	expect_fault(d, NPU_FAULT_OPCODE, 0);
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		for (uint32_t w = 5; w < 16; w++)
			d[w] = 0x11111111;
		NPU_SET(d, OPCODE, fields[i].op);
		NPU_SET(d, VOP, fields[i].vop);
		d[fields[i].word] &= ~fields[i].mask;
		expect_fault(d, NPU_FAULT_FIELD, fields[i].word);
	}
	for (uint32_t w = 5; w < 16; w++)
		d[w] = 0x11111111;
	NPU_SET(d, OPCODE, NPU_OP_GEMM);
	NPU_SET(d, PANEL, 1);
	NPU_SET(d, KCUT, 0);
	env.rows = 0;
	expect_fault(d, NPU_FAULT_NO_UNITS, 0);
	env.rows = 16;
	memset(d, 0, sizeof(d));
	NPU_SET(d, OPCODE, NPU_OP_VEC);
	NPU_SET(d, VOP, NPU_VOP_COPY);
	NPU_SET(d, DM, 1);
	NPU_SET(d, VCOLS, 16);
	NPU_SET(d, ADDR_A, MEMORY - 8);
	expect_fault(d, NPU_FAULT_BOUNDS, MEMORY);
	NPU_SET(d, ADDR_A, 0);
	NPU_SET(d, ADDR_D, 0xFFFFFFF0);
	expect_fault(d, NPU_FAULT_BOUNDS, 0xFFFFFFF0);
}

/* Word 0 before all others, GC after CIN and before the kernel. */
static void group_faults(void **state)
{
	uint32_t d[16] = {0};

	(void)state;
	NPU_SET(d, F_GROUP, 1);
	NPU_SET(d, F_BLOCK, 1);
	NPU_SET(d, OPCODE, NPU_OP_GEMM);
	expect_fault(d, NPU_FAULT_FIELD, 0);
	NPU_SET(d, OPCODE, NPU_OP_CONV);
	expect_fault(d, NPU_FAULT_FIELD, NPU_DESC_DM_WORD);
	NPU_SET(d, F_BLOCK, 0);
	expect_fault(d, NPU_FAULT_FIELD, 0);
	NPU_SET(d, F_BLOCK, 1);
	NPU_SET(d, F_NOPARAM, 1);
	expect_fault(d, NPU_FAULT_FIELD, 0);
	NPU_SET(d, F_NOPARAM, 0);
	NPU_SET(d, DM, 1);
	NPU_SET(d, OW, 1);
	NPU_SET(d, PANEL, 1);
	NPU_SET(d, DN, 1);
	expect_fault(d, NPU_FAULT_FIELD, NPU_DESC_CIN_WORD);
	NPU_SET(d, CIN, 1);
	expect_fault(d, NPU_FAULT_FIELD, NPU_DESC_GC_WORD);
	NPU_SET(d, GC, 1);
	expect_fault(d, NPU_FAULT_FIELD, NPU_DESC_KH_WORD);
}

/* A window without a pixel: in the padding before the image, or behind its end. */
static void empty_windows(void **state)
{
	static const uint32_t vops[] = {NPU_VOP_MAXPOOL, NPU_VOP_AVGPOOL};

	(void)state;
	for (int i = 0; i < 2; i++) {
		uint32_t d[16] = {0};

		pool_window(d, vops[i]);
		assert_int_equal(run(d), 0);
		NPU_SET(d, PT, 2);
		expect_fault(d, NPU_FAULT_FIELD, NPU_DESC_PT_WORD);
		pool_window(d, vops[i]);
		NPU_SET(d, PL, 2);
		expect_fault(d, NPU_FAULT_FIELD, NPU_DESC_PT_WORD);
		pool_window(d, vops[i]);
		NPU_SET(d, DM, 5); /* the third line begins at row 3 of 3 */
		expect_fault(d, NPU_FAULT_FIELD, NPU_DESC_PT_WORD);
		pool_window(d, vops[i]);
		NPU_SET(d, OW, 3);
		expect_fault(d, NPU_FAULT_FIELD, NPU_DESC_PT_WORD);
		NPU_SET(d, DM, 2); /* the third column is not reached */
		assert_int_equal(run(d), 0);
		NPU_SET(d, W, 0);
		expect_fault(d, NPU_FAULT_FIELD, NPU_DESC_PT_WORD);
	}
}

static void limit_base(uint32_t *d, uint32_t op)
{
	memset(d, 0, 64);
	NPU_SET(d, OPCODE, op);
	NPU_SET(d, DM, 12);
	NPU_SET(d, OW, 4);
	NPU_SET(d, PANEL, 512);
	NPU_SET(d, DN, 1);
	NPU_SET(d, CIN, 4);
	NPU_SET(d, H, 3);
	NPU_SET(d, W, 4);
	NPU_SET(d, LDA, 16);
	NPU_SET(d, PIX, 4);
	NPU_SET(d, KH, 1);
	NPU_SET(d, KW, 1);
	NPU_SET(d, SY, 1);
	NPU_SET(d, SX, 1);
	NPU_SET(d, DY, 1);
	NPU_SET(d, DX, 1);
	NPU_SET(d, SPS, 16);
}

struct limit {
	uint32_t op, word, lsb, width, last, beyond, named;
};

/* The field's last value is taken, the first beyond is not. */
static void at_limit(uint32_t *d, const struct limit *l)
{
	uint32_t word;

	npu_desc_set(d, l->word, l->lsb, l->width, l->last);
	assert_int_equal(npu_golden_check(d, &word), NPU_FAULT_NONE);
	npu_desc_set(d, l->word, l->lsb, l->width, l->beyond);
	assert_int_equal(npu_golden_check(d, &word), NPU_FAULT_FIELD);
	assert_int_equal(word, l->named);
}

#define LIMIT(op, field, last, beyond, at)                                               \
	{                                                                                \
		op, NPU_DESC_##field##_WORD, NPU_DESC_##field##_LSB,                     \
			NPU_DESC_##field##_W, last, beyond, NPU_DESC_##at##_WORD         \
	}

/* A field's last value and the first that is refused, and the word that is named. */
static void field_limits(void **state)
{
	static const struct limit limits[] = {
		LIMIT(NPU_OP_CONV, KW, 255, 0, KH),
		LIMIT(NPU_OP_WAIT, ADDR_A, 8, 12, ADDR_A),
		LIMIT(NPU_OP_SIGNAL, ADDR_D, 16, 17, ADDR_D),
		LIMIT(NPU_OP_TIMESTAMP, ADDR_D, 16, 20, ADDR_D),
		LIMIT(NPU_OP_GEMM, QSHIFT, 30, 31, QSHIFT),
		LIMIT(NPU_OP_GEMM, QSHIFT, 256 - 31, 256 - 32, QSHIFT),
		LIMIT(NPU_OP_GEMM, AMIN, 0, 1, AMAX),
		LIMIT(NPU_OP_GEMM, AMAX, 127, 128, AMAX),
		/* rows keep their place in a line, or have lines of their own */
		LIMIT(NPU_OP_CONV, SPS, 80, 79, SPS),
		LIMIT(NPU_OP_CONV, SPS, 80, 81, SPS),
		LIMIT(NPU_OP_CONV, LDA, 16 + 64, 16 + 63, SPS),
		LIMIT(NPU_OP_CONV, SPS, 131072 - 48, 131072 + 16, SPS),
		/* rows of 3 PIX + 4 bytes and 63 between them: 144 */
		LIMIT(NPU_OP_CONV, PIX, 25, 26, SPS),
	};
	uint32_t d[16];

	(void)state;
	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		limit_base(d, limits[i].op);
		if (limits[i].op == NPU_OP_GEMM) {
			NPU_SET(d, F_NOPARAM, 1);
			d[NPU_DESC_KCUT_WORD] = 0;
		}
		/* so that LDA or PIX alone is what is wrong */
		if (limits[i].word == NPU_DESC_LDA_WORD)
			NPU_SET(d, SPS, 80);
		if (limits[i].word == NPU_DESC_PIX_WORD)
			NPU_SET(d, SPS, 144);
		at_limit(d, &limits[i]);
	}
}

/* K in parts: no less than 256, of a K of more than one, of rows that are one panel, each
 * a whole number of lines apart. */
static void parts_limit(void **state)
{
	static const struct limit limits[] = {
		LIMIT(NPU_OP_GEMM, KCUT, 8, 7, KCUT),
		LIMIT(NPU_OP_GEMM, CIN, 257, 256, KCUT),
		LIMIT(NPU_OP_GEMM, DM, 512, 513, KCUT),
		LIMIT(NPU_OP_GEMM, PANEL, 12, 11, KCUT),
		LIMIT(NPU_OP_GEMM, SPS, 320, 256, SPS),
		LIMIT(NPU_OP_GEMM, SPS, 384, 383, SPS),
		LIMIT(NPU_OP_GEMM, SPS, 131008, 131072, SPS),
	};
	uint32_t d[16], word;

	(void)state;
	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		limit_base(d, NPU_OP_GEMM);
		NPU_SET(d, F_NOPARAM, 1);
		NPU_SET(d, CIN, 600);
		NPU_SET(d, SPS, 320);
		d[NPU_DESC_KCUT_WORD] = 0;
		NPU_SET(d, KCUT, 8);
		at_limit(d, &limits[i]);
	}
	/* int32 outputs: a quarter as many rows */
	NPU_SET(d, SPS, 320);
	NPU_SET(d, F_OUT32, 1);
	NPU_SET(d, DM, 128);
	assert_int_equal(npu_golden_check(d, &word), NPU_FAULT_NONE);
	NPU_SET(d, DM, 129);
	assert_int_equal(npu_golden_check(d, &word), NPU_FAULT_FIELD);
	assert_int_equal(word, NPU_DESC_KCUT_WORD);
}

/* All three rows are one panel's input: 2 * 65424 + 16 bytes of 130944; one line fits
 * alone. */
static void panel_limit(void **state)
{
	uint32_t d[16];

	(void)state;
	limit_base(d, NPU_OP_CONV);
	NPU_SET(d, F_NOPARAM, 1);
	NPU_SET(d, ADDR_D, 8192);
	NPU_SET(d, LDD, 1);
	NPU_SET(d, SPS, 65424);
	assert_int_equal(run(d), 0);
	NPU_SET(d, SPS, 65424 + 64);
	expect_fault(d, NPU_FAULT_FIELD, NPU_DESC_SPS_WORD);
	NPU_SET(d, PANEL, 4);
	assert_int_equal(run(d), 0);
	NPU_SET(d, PANEL, 5);
	assert_int_equal(run(d), 0); /* of two lines */
	NPU_SET(d, SPS, 130896 + 64);
	expect_fault(d, NPU_FAULT_FIELD, NPU_DESC_SPS_WORD);
}

/* What the counters of a reduction hold, by the kernel and by the group. */
static void reduction_limit(void **state)
{
	uint32_t d[16], word;

	(void)state;
	limit_base(d, NPU_OP_CONV);
	NPU_SET(d, KH, 255);
	NPU_SET(d, CIN, 257);
	NPU_SET(d, PIX, 257);
	NPU_SET(d, LDA, 1028);
	NPU_SET(d, SPS, 1028);
	assert_int_equal(npu_golden_check(d, &word), NPU_FAULT_NONE);
	NPU_SET(d, CIN, 258);
	assert_int_equal(npu_golden_check(d, &word), NPU_FAULT_FIELD);
	assert_int_equal(word, NPU_DESC_KH_WORD);
	NPU_SET(d, F_GROUP, 1);
	NPU_SET(d, F_BLOCK, 1);
	NPU_SET(d, GC, 257);
	assert_int_equal(npu_golden_check(d, &word), NPU_FAULT_NONE);
	NPU_SET(d, GC, 259);
	assert_int_equal(npu_golden_check(d, &word), NPU_FAULT_FIELD);
	assert_int_equal(word, NPU_DESC_GC_WORD);
	NPU_SET(d, GC, 1);
	NPU_SET(d, ADDR_B, 8);
	assert_int_equal(npu_golden_check(d, &word), NPU_FAULT_FIELD);
	assert_int_equal(word, NPU_DESC_ADDR_B_WORD);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(high_mul),         cmocka_unit_test(round_shift),
		cmocka_unit_test(requantize),       cmocka_unit_test(requantize_once),
		cmocka_unit_test(float_requantize), cmocka_unit_test(gemm_by_hand),
		cmocka_unit_test(gemm_unsigned),    cmocka_unit_test(goes_on),
		cmocka_unit_test(conv_random),      cmocka_unit_test(group_by_hand),
		cmocka_unit_test(add_by_hand),      cmocka_unit_test(relu_by_hand),
		cmocka_unit_test(maxpool_by_hand),  cmocka_unit_test(mul_by_hand),
		cmocka_unit_test(avgpool_by_hand),  cmocka_unit_test(lut_by_hand),
		cmocka_unit_test(softmax_by_hand),  cmocka_unit_test(unsigned_vec),
		cmocka_unit_test(copy_and_fill),    cmocka_unit_test(fences),
		cmocka_unit_test(faults),           cmocka_unit_test(group_faults),
		cmocka_unit_test(empty_windows),    cmocka_unit_test(field_limits),
		cmocka_unit_test(parts_limit),      cmocka_unit_test(panel_limit),
		cmocka_unit_test(reduction_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
