/* SPDX-License-Identifier: Apache-2.0 */
/* The program builder says no where it must, and images survive nothing but being whole.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <hal/npu.h>

#include "npu/internal.h"
#include "npu_golden.h"
#include "npu_panel.h"
#include "slow.h"
#include "tier.h"

/* In a static library the registry's weak reference alone does not bring the backend in.
 */
__attribute__((used)) static const struct hal_backend *(*const keep)(
	const struct hal_host *) = hal_backend_npu;

static const int32_t one_mult = 1 << 30, one_shift = 0;
static const float one_scale = 1;

struct world {
	struct hal_npu_builder *b;
	struct hal_npu_place in, out, more, weights;
};

static int setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	static const uint8_t bytes[4096] = {1};

	assert_non_null(w);
	assert_int_equal(hal_npu_builder_create(&w->b), 0);
	assert_int_equal(hal_npu_kernel(w->b, "k"), 0);
	assert_int_equal(hal_npu_arg(w->b, 1 << 20, &w->in.id), 0);
	assert_int_equal(hal_npu_arg(w->b, 1 << 20, &w->out.id), 0);
	assert_int_equal(hal_npu_arg(w->b, 64, &w->more.id), 0);
	assert_int_equal(hal_npu_const(w->b, bytes, sizeof(bytes), &w->weights.id), 0);
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;

	hal_npu_builder_destroy(w->b);
	free(w);
	return 0;
}

/* The call answers err with a text that has what in it. */
static void expect(int rc, int err, const char *what)
{
	if (rc != err || !strstr(hal_last_error(), what))
		fail_msg("%d, not %d; \"%s\" should have \"%s\"", rc, err,
			 hal_last_error(), what);
}

static struct hal_npu_gemm gemm_op(const struct world *w)
{
	struct hal_npu_gemm op = HAL_INIT(hal_npu_gemm);

	op.m = op.n = op.k = 32;
	op.a = w->in;
	op.b = w->weights;
	op.d = w->out;
	op.out.mult = &one_mult;
	op.out.shift = &one_shift;
	op.out.min = -128;
	op.out.max = 127;
	return op;
}

static const int8_t weights[65536];

static struct hal_npu_conv conv_op(const struct world *w)
{
	struct hal_npu_conv op = HAL_INIT(hal_npu_conv);

	op.h = op.w = op.oh = op.ow = 16;
	op.c = op.n = 8;
	op.kh = op.kw = 3;
	op.stride_h = op.stride_w = op.dilation_h = op.dilation_w = 1;
	op.pad_top = op.pad_left = 1;
	op.groups = 1;
	op.a = w->in;
	op.d = w->out;
	op.weights = weights;
	op.out.mult = &one_mult;
	op.out.shift = &one_shift;
	op.out.min = -128;
	op.out.max = 127;
	return op;
}

/* ---- refusals --------------------------------------------------------------------- */

static void kernels_and_places(void **state)
{
	struct world *w = *state;
	uint32_t id;

	expect(hal_npu_builder_create(NULL), -EINVAL, "NULL");
	expect(hal_npu_kernel(w->b, "k"), -EINVAL, "'k'");
	expect(hal_npu_kernel(w->b, ""), -EINVAL, "1 to 31");
	expect(hal_npu_kernel(w->b, "12345678901234567890123456789012"), -EINVAL,
	       "1 to 31");
	expect(hal_npu_kernel(w->b, NULL), -EINVAL, "1 to 31");
	expect(hal_npu_arg(w->b, 0, &id), -EINVAL, "0 bytes");
	expect(hal_npu_arg(w->b, 16, NULL), -EINVAL, "NULL");
	expect(hal_npu_const(w->b, NULL, 16, &id), -EINVAL, "NULL");
	expect(hal_npu_const(w->b, weights, 0, &id), -EINVAL, "0 bytes");
	expect(hal_npu_scratch(w->b, 0, &id), -EINVAL, "0 bytes");
	expect(hal_npu_scratch(w->b, UINT64_C(1) << 40, &id), -ENOTSUP, "2^31");
	for (uint32_t i = 3; i < HAL_ARGS_MAX; i++)
		assert_int_equal(hal_npu_arg(w->b, 16, &id), 0);
	expect(hal_npu_arg(w->b, 16, &id), -EINVAL, "16 arguments");
}

static void as_many_kernels_as_there_can_be(void **state)
{
	struct world *w = *state;
	char name[16];

	for (uint32_t i = 1; i < NPU_IMAGE_KERNELS_MAX; i++) {
		(void)snprintf(name, sizeof(name), "k%u", i);
		assert_int_equal(hal_npu_kernel(w->b, name), 0);
	}
	expect(hal_npu_kernel(w->b, "more"), -ENOTSUP, "4096");
}

static void without_a_kernel(void **state)
{
	struct world *w = *state;
	struct hal_npu_gemm op = gemm_op(w);
	struct hal_npu_builder *b;
	void *image;
	size_t size;
	uint32_t id;

	assert_int_equal(hal_npu_builder_create(&b), 0);
	expect(hal_npu_gemm(b, &op), -EINVAL, "no kernel");
	expect(hal_npu_arg(b, 16, &id), -EINVAL, "no kernel");
	expect(hal_npu_build(b, &image, &size), -EINVAL, "no kernel");
	assert_int_equal(hal_npu_builder_destroy(b), 0);
	assert_int_equal(hal_npu_builder_destroy(NULL), 0);
}

#define REFUSED(make, call, change, err, what)                                           \
	do {                                                                             \
		op = make(w);                                                            \
		change;                                                                  \
		expect(call(w->b, &op), err, what);                                      \
	} while (0)

static void gemm_refused(void **state)
{
	static const float bad_scale[] = {0.0f, -1.0f, 1e-40f, INFINITY, -0.0f};
	const int32_t bad_mult = -1, bad_shift = 31;
	struct world *w = *state;
	struct hal_npu_gemm op = gemm_op(w);
	struct hal_npu_place other = w->in;

	assert_int_equal(hal_npu_gemm(w->b, &op), 0);
	expect(hal_npu_gemm(NULL, &op), -EINVAL, "NULL");
	expect(hal_npu_gemm(w->b, NULL), -EINVAL, "NULL");
	REFUSED(gemm_op, hal_npu_gemm, op.size = 4, -EINVAL, ".size");
	REFUSED(gemm_op, hal_npu_gemm, op.m = 0, -EINVAL, ".m is 0");
	REFUSED(gemm_op, hal_npu_gemm, op.n = 0, -EINVAL, ".n is 0");
	REFUSED(gemm_op, hal_npu_gemm, op.k = 0, -EINVAL, ".k is 0");
	REFUSED(gemm_op, hal_npu_gemm, op.k = 33026, -ENOTSUP, "33025");
	REFUSED(gemm_op, hal_npu_gemm, op.b_stride = 65536, -ENOTSUP, "b_stride");
	REFUSED(gemm_op, hal_npu_gemm, op.a_stride = 31, -EINVAL, "a_stride");
	REFUSED(gemm_op, hal_npu_gemm, op.d_stride = 31, -EINVAL, "d_stride");
	REFUSED(gemm_op, hal_npu_gemm, op.a_zero = 128, -EINVAL, "a_zero");
	REFUSED(gemm_op, hal_npu_gemm, op.b_zero = -129, -EINVAL, "b_zero");
	REFUSED(gemm_op, hal_npu_gemm, op.flags = HAL_NPU_A_REPEAT, -EINVAL, ".flags");
	REFUSED(gemm_op, hal_npu_gemm, op.flags = 1u << 31, -EINVAL, ".flags");
	REFUSED(gemm_op, hal_npu_gemm, op.flags = HAL_NPU_A_UINT8;
		op.a_zero = -1, -EINVAL, "0 to 255");
	REFUSED(gemm_op, hal_npu_gemm, op.flags = HAL_NPU_B_UINT8;
		op.b_zero = 256, -EINVAL, "0 to 255");
	REFUSED(gemm_op, hal_npu_gemm, op.flags = HAL_NPU_D_UINT8, -EINVAL, "out.min");
	REFUSED(gemm_op, hal_npu_gemm, op.a.id = 0, -EINVAL, ".a: no place");
	REFUSED(gemm_op, hal_npu_gemm, op.a.id = 99, -EINVAL, "id 99");
	REFUSED(gemm_op, hal_npu_gemm, op.a.offset = (1 << 20) - 1023, -ERANGE, ".a");
	REFUSED(gemm_op, hal_npu_gemm, op.a.offset = UINT32_MAX, -ERANGE, ".a");
	REFUSED(gemm_op, hal_npu_gemm, op.b = w->more, -ERANGE, ".b");
	REFUSED(gemm_op, hal_npu_gemm, op.d = w->more, -ERANGE, ".d");
	REFUSED(gemm_op, hal_npu_gemm, op.d = w->weights, -EINVAL, "constant");
	REFUSED(gemm_op, hal_npu_gemm, op.m = UINT32_MAX, -ERANGE, ".a");
	REFUSED(gemm_op, hal_npu_gemm, op.out.shift = NULL, -EINVAL, "out.shift");
	REFUSED(gemm_op, hal_npu_gemm, op.out.mult = &bad_mult, -EINVAL, "out.mult");
	REFUSED(gemm_op, hal_npu_gemm, op.out.shift = &bad_shift, -EINVAL, "out.shift");
	REFUSED(gemm_op, hal_npu_gemm, op.out.min = 5;
		op.out.max = 4, -EINVAL, "out.max");
	REFUSED(gemm_op, hal_npu_gemm, op.out.zero_point = 200, -EINVAL, "zero_point");
	REFUSED(gemm_op, hal_npu_gemm, op.out.per_channel = 2, -EINVAL, "per_channel");
	REFUSED(gemm_op, hal_npu_gemm, op.out.mult = NULL; op.d.offset = 2, -EINVAL, "4");
	REFUSED(gemm_op, hal_npu_gemm, op.out.mult = NULL;
		op.d_stride = 130, -EINVAL, "4");
	for (size_t i = 0; i < sizeof(bad_scale) / sizeof(bad_scale[0]); i++)
		REFUSED(gemm_op, hal_npu_gemm, op.out.mult = NULL;
			op.out.scale = &bad_scale[i], -EINVAL, "out.scale[0]");
	REFUSED(gemm_op, hal_npu_gemm, op.out.scale = &one_scale, -EINVAL, "one of them");
	REFUSED(gemm_op, hal_npu_gemm, op.out.mult = NULL;
		op.flags = HAL_NPU_ROUND_ONCE, -EINVAL, "HAL_NPU_ROUND_ONCE");
	REFUSED(gemm_op, hal_npu_gemm, op.out.mult = NULL; op.out.scale = &one_scale;
		op.flags = HAL_NPU_ROUND_ONCE, -EINVAL, "HAL_NPU_ROUND_ONCE");
	assert_int_equal(hal_npu_kernel(w->b, "second"), 0);
	REFUSED(gemm_op, hal_npu_gemm, op.a = other, -EINVAL, "another kernel");
}

static void conv_refused(void **state)
{
	struct world *w = *state;
	struct hal_npu_conv op = conv_op(w);

	assert_int_equal(hal_npu_conv(w->b, &op), 0);
	REFUSED(conv_op, hal_npu_conv, op.size = 0, -EINVAL, ".size");
	REFUSED(conv_op, hal_npu_conv, op.out.mult = NULL;
		op.flags = HAL_NPU_ROUND_ONCE, -EINVAL, "HAL_NPU_ROUND_ONCE");
	REFUSED(conv_op, hal_npu_conv, op.h = 0, -EINVAL, ".h is 0");
	REFUSED(conv_op, hal_npu_conv, op.w = 65536, -ENOTSUP, ".w");
	REFUSED(conv_op, hal_npu_conv, op.kh = 256, -ENOTSUP, ".kh");
	REFUSED(conv_op, hal_npu_conv, op.stride_h = 16, -ENOTSUP, ".stride_h");
	REFUSED(conv_op, hal_npu_conv, op.stride_w = 0, -EINVAL, ".stride_w");
	REFUSED(conv_op, hal_npu_conv, op.dilation_w = 16, -ENOTSUP, ".dilation_w");
	REFUSED(conv_op, hal_npu_conv, op.pad_top = 256, -ENOTSUP, ".pad_top");
	REFUSED(conv_op, hal_npu_conv, op.oh = 18, -EINVAL, ".oh");
	REFUSED(conv_op, hal_npu_conv, op.ow = 18, -EINVAL, ".ow");
	REFUSED(conv_op, hal_npu_conv, op.groups = 3, -EINVAL, ".groups");
	REFUSED(conv_op, hal_npu_conv, op.groups = 0, -EINVAL, ".groups");
	REFUSED(conv_op, hal_npu_conv, op.weights = NULL, -EINVAL, ".weights");
	REFUSED(conv_op, hal_npu_conv, op.c = 4000, -ENOTSUP, "33025");
	REFUSED(conv_op, hal_npu_conv, op.a.offset = 1 << 20, -ERANGE, ".a");
	REFUSED(conv_op, hal_npu_conv, op.d = w->more, -ERANGE, ".d");
	REFUSED(conv_op, hal_npu_conv, op.d_stride = 7, -EINVAL, ".d_stride");
	REFUSED(conv_op, hal_npu_conv, op.b_zero = 128, -EINVAL, ".b_zero");
	REFUSED(conv_op, hal_npu_conv, op.flags = HAL_NPU_B_REPEAT, -EINVAL, ".flags");
}

static void vectors_refused(void **state)
{
	struct world *w = *state;
	struct hal_npu_add add = HAL_INIT(hal_npu_add);
	struct hal_npu_relu relu = HAL_INIT(hal_npu_relu);
	struct hal_npu_pool pool = HAL_INIT(hal_npu_pool);
	struct hal_npu_copy copy = HAL_INIT(hal_npu_copy);

	add.a = add.b = w->in;
	add.d = w->more;
	add.max = 127;
	expect(hal_npu_add(w->b, &add), -EINVAL, ".bytes");
	add.bytes = 65;
	expect(hal_npu_add(w->b, &add), -ERANGE, ".d");
	add.bytes = 64;
	add.a_shift = 1;
	expect(hal_npu_add(w->b, &add), -EINVAL, ".a_shift");
	add.a_shift = 0;
	add.left_shift = 23;
	expect(hal_npu_add(w->b, &add), -EINVAL, ".left_shift");
	relu.a = relu.d = w->more;
	relu.bytes = 100;
	expect(hal_npu_relu(w->b, &relu), -ERANGE, ".a");
	relu.bytes = 64;
	relu.min = 1;
	expect(hal_npu_relu(w->b, &relu), -EINVAL, ".max");
	pool.a = w->in;
	pool.d = w->out;
	pool.h = pool.w = pool.oh = pool.ow = pool.c = pool.kh = pool.kw = 2;
	pool.stride_h = pool.stride_w = 1;
	pool.pad_top = 2;
	expect(hal_npu_maxpool(w->b, &pool), -EINVAL, ".pad_top");
	copy.a = w->in;
	copy.d = w->out;
	copy.rows = 2;
	expect(hal_npu_copy(w->b, &copy), -EINVAL, ".bytes");
	copy.bytes = 1 << 19;
	copy.d_stride = 1;
	expect(hal_npu_copy(w->b, &copy), -EINVAL, ".d_stride");
	copy.d_stride = (1 << 19) + 1;
	expect(hal_npu_copy(w->b, &copy), -ERANGE, ".d");
	expect(hal_npu_fill(w->b, w->out, 6, 0), -EINVAL, "multiple of 4");
	expect(hal_npu_fill(w->b, w->weights, 8, 0), -EINVAL, "constant");
	expect(hal_npu_fill(w->b, w->more, 128, 0), -ERANGE, ".d");
}

static void new_vectors_refused(void **state)
{
	static const int32_t bad_exp[256] = {[255] = -1};
	struct world *w = *state;
	struct hal_npu_mul mul = HAL_INIT(hal_npu_mul);
	struct hal_npu_lut lut = HAL_INIT(hal_npu_lut);
	struct hal_npu_softmax softmax = HAL_INIT(hal_npu_softmax);
	struct hal_npu_pool pool = HAL_INIT(hal_npu_pool);

	mul.a = mul.b = w->in;
	mul.d = w->more;
	mul.max = 127;
	expect(hal_npu_mul(w->b, &mul), -EINVAL, ".bytes");
	mul.bytes = 33;
	mul.rows = 2;
	expect(hal_npu_mul(w->b, &mul), -ERANGE, ".d");
	mul.bytes = 32;
	mul.d_stride = 31;
	expect(hal_npu_mul(w->b, &mul), -EINVAL, ".d_stride");
	mul.d_stride = 33;
	expect(hal_npu_mul(w->b, &mul), -ERANGE, ".d");
	mul.d_stride = 0;
	mul.b = w->more;
	mul.b_stride = 33;
	expect(hal_npu_mul(w->b, &mul), -ERANGE, ".b");
	mul.flags = HAL_NPU_B_REPEAT; /* one row of it, then */
	assert_int_equal(hal_npu_mul(w->b, &mul), 0);
	mul.shift = 16;
	expect(hal_npu_mul(w->b, &mul), -EINVAL, ".shift");
	lut.a = w->in;
	lut.d = w->more;
	lut.bytes = 64;
	expect(hal_npu_lut(w->b, &lut), -EINVAL, "NULL");
	lut.table = (const uint8_t *)weights;
	assert_int_equal(hal_npu_lut(w->b, &lut), 0);
	lut.bytes = 65;
	expect(hal_npu_lut(w->b, &lut), -ERANGE, ".d");
	softmax.a = w->in;
	softmax.d = w->out;
	softmax.rows = 2;
	softmax.cols = 4096;
	expect(hal_npu_softmax(w->b, &softmax), -ENOTSUP, "4095");
	softmax.cols = 4095;
	expect(hal_npu_softmax(w->b, &softmax), -EINVAL, "NULL");
	softmax.exp = bad_exp;
	expect(hal_npu_softmax(w->b, &softmax), -EINVAL, ".exp[]");
	pool.a = w->in;
	pool.d = w->out;
	pool.h = pool.w = pool.oh = pool.ow = pool.c = pool.kh = pool.kw = 2;
	pool.stride_h = pool.stride_w = 1;
	pool.max = 128;
	expect(hal_npu_avgpool(w->b, &pool), -EINVAL, "hal_npu_avgpool: .max");
	pool.flags = HAL_NPU_D_UINT8;
	assert_int_equal(hal_npu_avgpool(w->b, &pool), 0);
	pool.flags = HAL_NPU_B_UINT8;
	expect(hal_npu_avgpool(w->b, &pool), -EINVAL, ".flags");
}

/* A refused operation leaves nothing behind: the image is the same as without it. */
static void refused_leaves_nothing(void **state)
{
	struct world *w = *state;
	struct hal_npu_conv op = conv_op(w);
	void *before, *after;
	size_t size_before, size_after;

	assert_int_equal(hal_npu_conv(w->b, &op), 0);
	assert_int_equal(hal_npu_build(w->b, &before, &size_before), 0);
	op.c = 1024;
	op.groups = 1024;
	op.n = 1024;
	op.h = op.w = op.oh = op.ow = 32; /* 1 MiB in, but out at an offset */
	op.d.offset = 1;
	expect(hal_npu_conv(w->b, &op), -ERANGE, ".d");
	assert_int_equal(hal_npu_build(w->b, &after, &size_after), 0);
	assert_int_equal(size_before, size_after);
	assert_memory_equal(before, after, size_before);
	hal_npu_image_free(before);
	hal_npu_image_free(after);
}

/* ---- panels fit the scratchpad ---------------------------------------------------- */

/* An operation as the activation loader and the array see it. */
struct machine {
	uint32_t m, h, ow, sy, pt, reach, folds;
	uint64_t row, sps; /* bytes */
};

static struct machine machine_of(const uint32_t *d)
{
	uint32_t gemm = NPU_GET(d, OPCODE) == NPU_OP_GEMM, w = NPU_GET(d, W);
	uint32_t depth = NPU_GET(d, F_GROUP) ? NPU_GET(d, GC) : NPU_GET(d, CIN);
	uint32_t kernel = gemm ? 1 : NPU_GET(d, KH) * NPU_GET(d, KW);
	struct machine x = {.m = NPU_GET(d, DM),
			    .h = gemm ? NPU_GET(d, DM) : NPU_GET(d, H),
			    .ow = gemm ? 1 : NPU_GET(d, OW),
			    .sy = gemm ? 1 : NPU_GET(d, SY),
			    .pt = gemm ? 0 : NPU_GET(d, PT),
			    .reach = gemm ? 1 : (NPU_GET(d, KH) - 1) * NPU_GET(d, DY) + 1,
			    .row = NPU_GET(d, CIN),
			    .sps = NPU_GET(d, SPS)};

	if (!gemm)
		x.row += (uint64_t)(w - 1) * NPU_GET(d, PIX);
	x.folds = ((NPU_GET(d, DN) + 15) / 16) * ((kernel * depth + 15) / 16);
	return x;
}

#define STUCK UINT64_MAX

/* Cycles of the operation on 16 x 16 PEs if nothing but its input, a line a cycle, held
 * it up: row r is loaded when the panel in the array begins with a row near enough. STUCK
 * when it cannot begin as long as that panel waits for it. */
static uint64_t simulate(const struct machine *x, uint32_t depth)
{
	uint64_t now = 0, loaded_at = 0, lines = (x->row + 63) / 64;
	uint32_t rows = 0, last_t = 0, low = 0, low_before = 0;
	uint64_t begun = 0;

	for (uint32_t m0 = 0, t; m0 < x->m; m0 += t, last_t = t) {
		uint64_t row_time = now;
		int64_t first = (int64_t)(m0 / x->ow) * x->sy - x->pt;

		t = npu_panel_next(x->m - m0, depth, last_t);
		low = first > 0 ? (uint32_t)first : 0;
		for (uint32_t i = 0, n; i < t; i += n) { /* lines, or parts of one */
			int64_t end =
				(int64_t)((m0 + i) / x->ow) * x->sy - x->pt + x->reach;

			n = x->ow - (m0 + i) % x->ow;
			n = n < t - i ? n : t - i;

			for (end = end > x->h ? x->h : end; end > rows; rows++) {
				uint64_t at = now;

				if (rows >= low &&
				    (rows - low) * x->sps + x->row + 128 > 131072)
					return STUCK;
				if (rows < low_before ||
				    (rows - low_before) * x->sps + x->row + 128 <= 131072)
					at = begun; /* there was room before */
				loaded_at = (loaded_at > at ? loaded_at : at) + lines;
			}
			row_time = (row_time > loaded_at ? row_time : loaded_at) + n;
		}
		begun = now;
		low_before = low;
		now = row_time + (uint64_t)(x->folds - 1) * (t > 16 ? t : 16);
	}
	return now;
}

static void check_desc(const uint32_t *d)
{
	struct machine x = machine_of(d);
	uint32_t out32 = NPU_GET(d, F_OUT32), panel = NPU_GET(d, PANEL);
	uint32_t most = out32 ? 128 : 512;
	uint64_t took, best;

	assert_true(panel >= 1 && panel <= most);
	if (x.h > 1) {
		assert_int_equal(x.sps % 64, NPU_GET(d, LDA) % 64);
		/* Rows share no line, unless they lie as in memory. */
		assert_true(x.sps == NPU_GET(d, LDA) || x.sps >= x.row + 63);
	}
	took = best = simulate(&x, panel);
	/* Half as deep on some rectangles. */
	if (took == STUCK || (!out32 && panel > 256 && simulate(&x, 256) == STUCK))
		fail_msg("panels of %u rows, input rows of %u bytes %u apart: stuck",
			 panel, (uint32_t)x.row, (uint32_t)x.sps);
	/* Others would not be much faster, an operation being some 100 cycles longer. */
	for (uint32_t t = 32; t <= most && t < x.m; t += t < 64 ? 1 : 13) {
		uint64_t other = simulate(&x, t);

		best = other < best ? other : best;
	}
	if (took > best + best / 8 + 200)
		fail_msg("panels of %u rows: %" PRIu64 " cycles, others %" PRIu64, panel,
			 took, best);
}

static uint32_t lcg(uint32_t *s)
{
	*s = *s * 1664525u + 1013904223u;
	return *s >> 8;
}

static void panels_fit(void **state)
{
	uint32_t seed = 7, id, operations = 0, built = 0;

	(void)state;
	for (int turn = 0; turn < 3000; turn++) {
		uint32_t side = turn < 300 ? 300 : 40;
		struct hal_npu_conv op = HAL_INIT(hal_npu_conv);
		struct hal_npu_builder *b;
		struct npu_image im;
		void *image;
		size_t size;

		assert_int_equal(hal_npu_builder_create(&b), 0);
		assert_int_equal(hal_npu_kernel(b, "k"), 0);
		assert_int_equal(hal_npu_scratch(b, 1 << 28, &op.a.id), 0);
		assert_int_equal(hal_npu_scratch(b, 1 << 28, &op.d.id), 0);
		op.kh = 1 + lcg(&seed) % 3;
		op.kw = 1 + lcg(&seed) % 3;
		op.c = 1 + lcg(&seed) % (turn % 3 ? 64 : 1500);
		op.n = 1 + lcg(&seed) % 4;
		op.h = 1 + lcg(&seed) % side;
		op.w = 1 + lcg(&seed) % side;
		op.stride_h = 1 + lcg(&seed) % 3;
		op.stride_w = 1 + lcg(&seed) % 3;
		op.dilation_h = op.dilation_w = 1 + lcg(&seed) % 2;
		op.pad_top = lcg(&seed) % 3;
		op.pad_left = lcg(&seed) % 3;
		op.oh = (op.h + op.pad_top + op.stride_h - 1) / op.stride_h;
		op.ow = (op.w + op.pad_left + op.stride_w - 1) / op.stride_w;
		op.groups = 1;
		if (turn % 3 && turn % 4 == 0) {
			op.groups = op.c;
			op.n = op.c * (1 + lcg(&seed) % 3);
		}
		op.weights = weights;
		if (turn % 2) {
			op.out.mult = &one_mult;
			op.out.shift = &one_shift;
			op.out.max = 127;
		}
		if ((!tier_full && turn % 13) || (under_valgrind() && turn % 43)) {
			hal_npu_builder_destroy(b);
			continue;
		}
		if (hal_npu_conv(b, &op))
			fail_msg("turn %d: %s", turn, hal_last_error());
		assert_int_equal(hal_npu_build(b, &image, &size), 0);
		assert_int_equal(npu_image_load(image, size, &im), 0);
		for (uint32_t i = 0; i < im.header.descs; i++)
			check_desc(im.descs[i]);
		operations += im.header.descs;
		built++;
		id = im.kernels[0].desc_count;
		assert_int_equal(id, im.header.descs);
		assert_int_equal(im.kernels[0].macs, (uint64_t)op.oh * op.ow * op.n *
							     op.kh * op.kw *
							     (op.c / op.groups));
		npu_image_unload(&im);
		hal_npu_image_free(image);
		hal_npu_builder_destroy(b);
	}
	assert_true(operations > built); /* some had to be split */
}

/* Descriptors of one GEMM: which rows, how cut.  Tells how many cut K. */
static uint32_t check_gemm_rows(const struct npu_image *im, uint32_t m)
{
	uint32_t rows = 0, cuts = 0, word;

	for (uint32_t i = 0; i < im->header.descs; i++) {
		const uint32_t *d = im->descs[i];
		uint32_t part = 1u << NPU_GET(d, KCUT);

		assert_int_equal(npu_golden_check(d, &word), 0);
		rows += NPU_GET(d, DM);
		if (!NPU_GET(d, KCUT)) {
			check_desc(d);
			continue;
		}
		cuts++;
		/* Two parts of all rows have room. */
		assert_true(part < NPU_GET(d, CIN));
		assert_true(2 * NPU_GET(d, DM) * NPU_GET(d, SPS) <= 131072);
	}
	assert_int_equal(rows, m);
	return cuts;
}

/* K is cut where whole rows would be too few, and then all rows are there once. */
static void deep_gemm(void **state)
{
	static const uint32_t fixed[][2] = {
		{4, 30000}, {16, 30000}, {49, 30000}, {600, 9000}};
	static const bool cut[] = {false, true, true, true};
	uint32_t seed = 3, cuts = 0, several = 0;

	(void)state;
	for (uint32_t turn = 0; turn < 200; turn++) {
		struct hal_npu_gemm op = HAL_INIT(hal_npu_gemm);
		struct hal_npu_builder *b;
		struct npu_image im;
		uint32_t n;
		void *image;
		size_t size;

		assert_int_equal(hal_npu_builder_create(&b), 0);
		assert_int_equal(hal_npu_kernel(b, "k"), 0);
		assert_int_equal(hal_npu_scratch(b, 1 << 28, &op.a.id), 0);
		assert_int_equal(hal_npu_scratch(b, 1 << 28, &op.b.id), 0);
		assert_int_equal(hal_npu_scratch(b, 1 << 28, &op.d.id), 0);
		op.m = turn < 4 ? fixed[turn][0] : 1 + lcg(&seed) % 700;
		op.k = turn < 4 ? fixed[turn][1] : 1 + lcg(&seed) % 30000;
		op.n = 64;
		if (turn % 2) {
			op.out.mult = &one_mult;
			op.out.shift = &one_shift;
			op.out.max = 127;
		}
		assert_int_equal(hal_npu_gemm(b, &op), 0);
		assert_int_equal(hal_npu_build(b, &image, &size), 0);
		assert_int_equal(npu_image_load(image, size, &im), 0);
		n = check_gemm_rows(&im, op.m);
		if (turn < 4)
			assert_int_equal(n != 0, cut[turn]);
		cuts += n != 0;
		several += im.header.descs > 1;
		npu_image_unload(&im);
		hal_npu_image_free(image);
		hal_npu_builder_destroy(b);
	}
	assert_true(cuts > 20 && several > 20);
}

/* A convolution whose K is cut is a GEMM; with a window, a stride or padding it is not.
 */
static void deep_conv(void **state)
{
	static const struct {
		uint32_t kw, stride, pad;
		bool cut;
	} cases[] = {
		{1, 1, 0, true}, {2, 1, 1, false}, {1, 2, 0, false}, {1, 1, 1, false}};

	(void)state;
	for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct hal_npu_conv op = HAL_INIT(hal_npu_conv);
		int8_t *zeros = calloc(64, 2 * 9000);
		struct hal_npu_builder *b;
		struct npu_image im;
		void *image;
		size_t size;

		assert_non_null(zeros);
		assert_int_equal(hal_npu_builder_create(&b), 0);
		assert_int_equal(hal_npu_kernel(b, "k"), 0);
		assert_int_equal(hal_npu_scratch(b, 1 << 28, &op.a.id), 0);
		assert_int_equal(hal_npu_scratch(b, 1 << 28, &op.d.id), 0);
		op.weights = zeros;
		op.h = op.oh = op.kh = op.dilation_h = op.dilation_w = op.groups = 1;
		op.w = 49;
		op.kw = cases[i].kw;
		op.stride_h = 1;
		op.stride_w = cases[i].stride;
		op.pad_left = cases[i].pad;
		op.ow = op.w / cases[i].stride;
		op.c = 9000;
		op.n = 64;
		assert_int_equal(hal_npu_conv(b, &op), 0);
		assert_int_equal(hal_npu_build(b, &image, &size), 0);
		assert_int_equal(npu_image_load(image, size, &im), 0);
		if (cases[i].cut)
			assert_true(check_gemm_rows(&im, op.ow) != 0);
		for (uint32_t j = 0; j < im.header.descs; j++)
			assert_int_equal(NPU_GET(im.descs[j], OPCODE),
					 cases[i].cut ? NPU_OP_GEMM : NPU_OP_CONV);
		npu_image_unload(&im);
		hal_npu_image_free(image);
		hal_npu_builder_destroy(b);
		free(zeros);
	}
}

/* One output whose input cannot fit: said with numbers. */
static void too_wide(void **state)
{
	struct hal_npu_conv op;
	struct world *w = *state;
	uint32_t id;

	op = conv_op(w);
	op.h = op.oh = 15;
	op.w = op.ow = 16;
	op.c = 2200;
	op.kw = 1;
	op.kh = 15;
	op.pad_left = 0;
	op.dilation_w = 1;
	op.n = 1;
	assert_int_equal(hal_npu_scratch(w->b, 1 << 20, &id), 0);
	/* 15 * 2200 = 33000 weights deep is allowed; 15 rows of one pixel fit */
	assert_int_equal(hal_npu_conv(w->b, &op), 0);
	op.w = op.ow = 3;
	op.c = 15000;
	op.kh = 2;
	op.kw = 1;
	op.dilation_h = 14;
	op.oh = 1;
	op.pad_top = 0;
	op.h = 15;
	assert_int_equal(hal_npu_conv(w->b, &op), -ENOTSUP);
	assert_non_null(strstr(hal_last_error(), "scratchpad"));
}

/* ---- what is emitted -------------------------------------------------------------- */

static void build_and_load(struct world *w, struct npu_image *im, void **image)
{
	size_t size;

	assert_int_equal(hal_npu_build(w->b, image, &size), 0);
	assert_int_equal(npu_image_load(*image, size, im), 0);
}

/* Groups are one descriptor whose table says where in a pixel each output's begin. */
static void groups_in_one(void **state)
{
	struct world *w = *state;
	struct hal_npu_conv op = conv_op(w);
	struct npu_image im;
	void *image;
	uint32_t at;

	op.groups = 4;
	op.n = 12;
	op.flags = HAL_NPU_A_UINT8 | HAL_NPU_B_UINT8;
	op.a_zero = 200;
	op.b_zero = 201;
	assert_int_equal(hal_npu_conv(w->b, &op), 0);
	build_and_load(w, &im, &image);
	assert_int_equal(im.header.descs, 1);
	assert_int_equal(NPU_GET(im.descs[0], F_GROUP), 1);
	assert_int_equal(NPU_GET(im.descs[0], F_NOPARAM), 0);
	assert_int_equal(NPU_GET(im.descs[0], GC), 2);
	assert_int_equal(NPU_GET(im.descs[0], CIN), 8);
	assert_int_equal(NPU_GET(im.descs[0], DN), 12);
	assert_int_equal(NPU_GET(im.descs[0], ZPA), 200);
	assert_int_equal(NPU_GET(im.descs[0], ZPB), 201);
	assert_int_equal(im.kernels[0].macs, 16 * 16 * 12 * 9 * 2);
	/* w->weights, then the table, then K * 16 bytes of weights */
	assert_int_equal(im.header.const_bytes, 4096 + 192 + 9 * 2 * 16);
	for (uint32_t n = 0; n < 12; n++) {
		memcpy(&at, im.constants + 4096 + n * 16 + 12, 4);
		assert_int_equal(at, n / 3 * 2);
	}
	npu_image_unload(&im);
	hal_npu_image_free(image);
}

static void expect_rows(const uint32_t *d, uint32_t rows, uint32_t cols, uint32_t lda)
{
	assert_int_equal(NPU_GET(d, DM), rows);
	assert_int_equal(NPU_GET(d, VCOLS), cols);
	assert_int_equal(NPU_GET(d, LDA), lda);
}

/* Rows longer than a field are cut; rows without gaps are one long row first. */
static void rows_cut(void **state)
{
	struct world *w = *state;
	struct hal_npu_copy op = HAL_INIT(hal_npu_copy);
	struct npu_image im;
	void *image;

	op.a = w->in;
	op.d = w->out;
	op.rows = 3;
	op.bytes = 70000;
	op.a_stride = 80000;
	assert_int_equal(hal_npu_copy(w->b, &op), 0);
	op.a_stride = 0;
	assert_int_equal(hal_npu_copy(w->b, &op), 0);
	op.bytes = 7;
	op.flags = HAL_NPU_A_REPEAT;
	assert_int_equal(hal_npu_copy(w->b, &op), 0);
	op.rows = 1;
	assert_int_equal(hal_npu_copy(w->b, &op), 0);
	build_and_load(w, &im, &image);
	assert_int_equal(im.header.descs, 6);
	expect_rows(im.descs[0], 3, 32768, 80000);
	expect_rows(im.descs[1], 3, 37232, 80000);
	assert_int_equal(im.relocs[2].offset, 32768); /* a, then d, of each */
	assert_int_equal(im.relocs[3].offset, 32768);
	expect_rows(im.descs[2], 6, 32768, 32768);
	expect_rows(im.descs[3], 1, 210000 - 6 * 32768, 210000 - 6 * 32768);
	assert_int_equal(im.relocs[6].offset, 6 * 32768);
	expect_rows(im.descs[4], 3, 7, 0);
	expect_rows(im.descs[5], 1, 7, 7);
	npu_image_unload(&im);
	hal_npu_image_free(image);
}

/* Program and scratch share half of an address space; neither is allocated to be refused.
 */
static void too_large(void **state)
{
	struct world *w = *state;
	void *image = NULL;
	size_t size;
	uint32_t id;

	assert_int_equal(hal_npu_scratch(w->b, (UINT64_C(1) << 31) - 8192, &id), 0);
	assert_int_equal(hal_npu_build(w->b, &image, &size), 0);
	hal_npu_image_free(image);
	assert_int_equal(hal_npu_scratch(w->b, 8192, &id), 0);
	expect(hal_npu_build(w->b, &image, &size), -ENOTSUP,
	       "together they may have 2^31");
}

/* ---- images ----------------------------------------------------------------------- */

static void make_image(struct world *w, void **image, size_t *size)
{
	struct hal_npu_gemm gemm = gemm_op(w);
	struct hal_npu_conv conv = conv_op(w);

	assert_int_equal(hal_npu_gemm(w->b, &gemm), 0);
	assert_int_equal(hal_npu_conv(w->b, &conv), 0);
	assert_int_equal(hal_npu_fill(w->b, w->more, 64, 1), 0);
	assert_int_equal(hal_npu_build(w->b, image, size), 0);
}

static void loads(void **state)
{
	struct npu_image im;
	void *image;
	size_t size;

	make_image(*state, &image, &size);
	assert_int_equal(npu_image_load(image, size, &im), 0);
	assert_int_equal(im.header.kernels, 1);
	assert_int_equal(im.kernels[0].desc_count, 3);
	assert_string_equal(im.kernels[0].name, "k");
	assert_int_equal(im.kernels[0].macs, 32 * 32 * 32 + 16 * 16 * 8 * 72);
	assert_int_equal(NPU_GET(im.descs[0], DM), 32);
	assert_int_equal(NPU_GET(im.descs[1], OPCODE), NPU_OP_CONV);
	npu_image_unload(&im);
	hal_npu_image_free(image);
}

static void truncated(void **state)
{
	struct npu_image im;
	void *image;
	size_t size;

	make_image(*state, &image, &size);
	for (size_t n = 0; n < size; n += n < 600 ? 1 : 97) {
		/* In its own memory, so that a look beyond the end is seen. */
		uint8_t *copy = malloc(n ? n : 1);

		assert_non_null(copy);
		memcpy(copy, image, n);
		assert_int_equal(npu_image_load(copy, n, &im), -EINVAL);
		assert_non_null(strstr(hal_last_error(), "truncated"));
		free(copy);
	}
	hal_npu_image_free(image);
}

static void every_bit_counts(void **state)
{
	struct npu_image im;
	uint8_t *image;
	void *made;
	size_t size;

	make_image(*state, &made, &size);
	image = made;
	for (size_t i = 0; i < size; i += i < 700 ? 1 : 61) {
		image[i] ^= (uint8_t)(1u << i % 8);
		assert_int_equal(npu_image_load(image, size, &im), -EINVAL);
		image[i] ^= (uint8_t)(1u << i % 8);
	}
	assert_int_equal(npu_image_load(image, size, &im), 0);
	npu_image_unload(&im);
	hal_npu_image_free(made);
}

/* Whatever passed can be used without a look: that is what the ring writer does. */
static void use(const struct npu_image *im)
{
	for (uint32_t i = 0; i < im->header.kernels; i++) {
		const struct npu_image_kernel *k = &im->kernels[i];

		assert_true(memchr(k->name, 0, sizeof(k->name)) && k->name[0]);
		assert_true(k->arg_count <= HAL_ARGS_MAX);
		for (uint32_t j = 0; j < k->arg_count; j++)
			assert_true(im->args[k->arg_first + j].align <= 64);
		for (uint32_t j = 0; j < k->reloc_count; j++) {
			const struct npu_image_reloc *r = &im->relocs[k->reloc_first + j];

			assert_true(r->desc < k->desc_count && r->word < 16);
			assert_true(r->kind != NPU_PLACE_ARG || r->arg < k->arg_count);
			im->descs[k->desc_first + r->desc][r->word] = r->offset;
		}
	}
}

/* Damage with a checksum that fits it: an image made to harm. */
static void hostile(void **state)
{
	const size_t checksum = offsetof(struct npu_image_header, checksum);
	uint32_t seed = 3, accepted = 0, refused = 0;
	struct npu_image im;
	uint8_t *image;
	void *made;
	size_t size, tables;

	make_image(*state, &made, &size);
	assert_int_equal(npu_image_load(made, size, &im), 0);
	tables = size - im.header.const_bytes;
	npu_image_unload(&im);
	image = malloc(size);
	assert_non_null(image);
	for (int turn = 0; turn < 3000; turn++) {
		static const uint8_t bad[] = {0, 1, 0x7F, 0x80, 0xFF};
		uint32_t crc;

		memcpy(image, made, size);
		for (uint32_t n = 1 + lcg(&seed) % 3; n; n--)
			image[8 + lcg(&seed) % (tables - 8)] =
				turn % 2 ? bad[lcg(&seed) % 5] : (uint8_t)lcg(&seed);
		crc = npu_image_crc(image, size);
		memcpy(image + checksum, &crc, 4);
		if (npu_image_load(image, size, &im)) {
			assert_true(hal_last_error()[0]);
			refused++;
			continue;
		}
		accepted++;
		use(&im);
		npu_image_unload(&im);
	}
	/* Both happen, or the test tests nothing. */
	assert_true(accepted > 100);
	assert_true(refused > 100);
	free(image);
	hal_npu_image_free(made);
}

static void not_an_image(void **state)
{
	struct npu_image im;
	uint8_t zeros[256] = {0};

	(void)state;
	expect(npu_image_load(zeros, sizeof(zeros), &im), -EINVAL, "magic");
	expect(npu_image_load(zeros, 10, &im), -EINVAL, "truncated");
	expect(npu_image_load(zeros, 0, &im), -EINVAL, "truncated");
}

/* ---- B of a GEMM in blocks ------------------------------------------------------------ */

enum { COLUMNS = 40, DEPTH = 24, STRIDE = 50, FIRST = 3, BLOCKS = 48 * DEPTH };

/* Element (k, n) is where blocks of 16 columns have it, and nothing is beyond COLUMNS. */
static void check_blocks(const uint8_t *blocks, const uint8_t *rows)
{
	for (uint32_t n = 0; n < 48; n++)
		for (uint32_t k = 0; k < DEPTH; k++)
			assert_int_equal(blocks[n / 16 * 16 * DEPTH + k * 16 + n % 16],
					 n < COLUMNS ? rows[k * STRIDE + n] : 0);
}

/* A GEMM of COLUMNS columns of a new constant; rows are its bytes. */
static struct hal_npu_gemm packed_op(const struct world *w, uint8_t *rows)
{
	struct hal_npu_gemm op = gemm_op(w);
	uint32_t seed = 7;

	for (uint32_t i = 0; i < STRIDE * DEPTH; i++)
		rows[i] = (uint8_t)lcg(&seed);
	assert_int_equal(hal_npu_const(w->b, rows, STRIDE * DEPTH, &op.b.id), 0);
	op.b.offset = FIRST;
	op.n = COLUMNS;
	op.k = DEPTH;
	op.b_stride = STRIDE;
	return op;
}

static void build_image(struct world *w, struct npu_image *im, void **image)
{
	size_t size;

	assert_int_equal(hal_npu_build(w->b, image, &size), 0);
	assert_int_equal(npu_image_load(*image, size, im), 0);
}

static uint32_t b_offset(const struct npu_image *im, uint32_t desc)
{
	for (uint32_t i = 0; i < im->header.relocs; i++)
		if (im->relocs[i].desc == desc &&
		    im->relocs[i].word == NPU_DESC_ADDR_B_WORD) {
			assert_int_equal(im->relocs[i].kind, NPU_PLACE_CONST);
			return im->relocs[i].offset;
		}
	fail_msg("descriptor %u has no B", desc);
	return 0;
}

/* A constant becomes blocks, once; its rows leave the image if nothing else reads them.
 */
static void constants_in_blocks(void **state)
{
	struct world *w = *state;
	uint8_t rows[STRIDE * DEPTH + FIRST] = {0};
	struct hal_npu_gemm op = packed_op(w, rows), other = gemm_op(w);
	struct npu_image im;
	uint64_t bytes;
	void *image;

	assert_int_equal(hal_npu_gemm(w->b, &op), 0);
	op.m = 5;
	assert_int_equal(hal_npu_gemm(w->b, &op), 0);
	build_image(w, &im, &image);
	assert_int_equal(im.header.descs, 2);
	for (uint32_t i = 0; i < 2; i++) {
		check_desc(im.descs[i]);
		assert_int_equal(NPU_GET(im.descs[i], F_BLOCK), 1);
		check_blocks(im.constants + b_offset(&im, i), rows + FIRST);
	}
	assert_int_equal(b_offset(&im, 0), b_offset(&im, 1));
	bytes = im.header.const_bytes;
	assert_true(bytes >= 4096 + BLOCKS && bytes < 4096 + BLOCKS + STRIDE * DEPTH);
	npu_image_unload(&im);
	hal_npu_image_free(image);
	/* Other columns of it are other blocks, and the constant of the setup, which a
	 * GEMM reads at two places, too. */
	op.b.offset = 0;
	assert_int_equal(hal_npu_gemm(w->b, &op), 0);
	assert_int_equal(hal_npu_gemm(w->b, &other), 0);
	build_image(w, &im, &image);
	check_blocks(im.constants + b_offset(&im, 2), rows);
	check_blocks(im.constants + b_offset(&im, 0), rows + FIRST);
	assert_int_equal(im.constants[b_offset(&im, 3)], 1);
	npu_image_unload(&im);
	hal_npu_image_free(image);
}

/* What an operation reads as it is stays in the image. */
static void rows_that_are_read_stay(void **state)
{
	struct world *w = *state;
	uint8_t rows[STRIDE * DEPTH + FIRST] = {0};
	struct hal_npu_gemm op = packed_op(w, rows);
	struct hal_npu_copy copy = HAL_INIT(hal_npu_copy);
	struct npu_image im;
	void *image;
	bool found = false;

	assert_int_equal(hal_npu_gemm(w->b, &op), 0);
	copy.rows = 1;
	copy.bytes = STRIDE * DEPTH;
	copy.a = (struct hal_npu_place){.id = op.b.id};
	copy.d = w->out;
	assert_int_equal(hal_npu_copy(w->b, &copy), 0);
	build_image(w, &im, &image);
	for (uint32_t i = 0; i < im.header.relocs; i++)
		if (im.relocs[i].desc != 0 && im.relocs[i].kind == NPU_PLACE_CONST) {
			assert_memory_equal(im.constants + im.relocs[i].offset, rows,
					    copy.bytes);
			found = true;
		}
	assert_true(found);
	npu_image_unload(&im);
	hal_npu_image_free(image);
}

/* What a refused GEMM has packed is gone. */
static void refused_packs_nothing(void **state)
{
	struct world *w = *state;
	uint8_t rows[STRIDE * DEPTH + FIRST] = {0};
	struct hal_npu_gemm op = packed_op(w, rows), deep = op;
	struct npu_image im;
	void *image;

	deep.m = 2;
	deep.flags = 1u << 9;
	expect(hal_npu_gemm(w->b, &deep), -EINVAL, "flags");
	assert_int_equal(hal_npu_gemm(w->b, &op), 0);
	build_image(w, &im, &image);
	check_blocks(im.constants + b_offset(&im, 0), rows + FIRST);
	npu_image_unload(&im);
	hal_npu_image_free(image);
}

static void rounded_once(void **state)
{
	struct world *w = *state;
	struct hal_npu_gemm gemm = gemm_op(w);
	struct hal_npu_conv conv = conv_op(w);
	struct npu_image im;
	void *image;

	assert_int_equal(hal_npu_gemm(w->b, &gemm), 0);
	gemm.flags |= HAL_NPU_ROUND_ONCE;
	conv.flags |= HAL_NPU_ROUND_ONCE;
	assert_int_equal(hal_npu_gemm(w->b, &gemm), 0);
	assert_int_equal(hal_npu_conv(w->b, &conv), 0);
	build_image(w, &im, &image);
	assert_int_equal(NPU_GET(im.descs[0], F_ONCE), 0);
	assert_int_equal(NPU_GET(im.descs[1], F_ONCE), 1);
	assert_int_equal(NPU_GET(im.descs[2], F_ONCE), 1);
	npu_image_unload(&im);
	hal_npu_image_free(image);
}

static void arguments_in_blocks(void **state)
{
	struct world *w = *state;
	struct hal_npu_gemm op = gemm_op(w);
	struct npu_image im;
	void *image;

	op.b = w->in;
	assert_int_equal(hal_npu_gemm(w->b, &op), 0);
	op.flags = HAL_NPU_B_BLOCKED;
	op.n = COLUMNS;
	op.k = DEPTH;
	op.b = w->more;
	expect(hal_npu_gemm(w->b, &op), -ERANGE, "1152 bytes at offset 0 exceed");
	op.b = w->in;
	op.b.offset = 8;
	expect(hal_npu_gemm(w->b, &op), -EINVAL, "offset 8 is not a multiple of 16");
	op.b.offset = 16;
	op.b_stride = COLUMNS;
	expect(hal_npu_gemm(w->b, &op), -EINVAL, "it must be 0");
	op.b_stride = 0;
	op.n = 65521;
	expect(hal_npu_gemm(w->b, &op), -ENOTSUP, "at most 65520 columns");
	op.n = COLUMNS;
	assert_int_equal(hal_npu_gemm(w->b, &op), 0);
	build_image(w, &im, &image);
	assert_int_equal(NPU_GET(im.descs[0], F_BLOCK), 0);
	assert_int_equal(NPU_GET(im.descs[0], LDB), 32);
	assert_int_equal(NPU_GET(im.descs[1], F_BLOCK), 1);
	assert_int_equal(im.args[0].align, 16);
	npu_image_unload(&im);
	hal_npu_image_free(image);
}

static void pack_refused(void **state)
{
	static uint8_t rows[STRIDE * DEPTH], blocks[BLOCKS + 1];

	(void)state;
	for (uint32_t i = 0; i < sizeof(rows); i++)
		rows[i] = (uint8_t)(i * 7 + 1);
	blocks[BLOCKS] = 99;
	assert_int_equal(hal_npu_gemm_pack(blocks, BLOCKS, rows, COLUMNS, DEPTH, STRIDE),
			 0);
	check_blocks(blocks, rows);
	assert_int_equal(blocks[BLOCKS], 99);
	expect(hal_npu_gemm_pack(NULL, BLOCKS, rows, COLUMNS, DEPTH, 0), -EINVAL, "NULL");
	expect(hal_npu_gemm_pack(blocks, BLOCKS, NULL, COLUMNS, DEPTH, 0), -EINVAL,
	       "NULL");
	expect(hal_npu_gemm_pack(blocks, BLOCKS, rows, 0, DEPTH, 0), -EINVAL, "n or k");
	expect(hal_npu_gemm_pack(blocks, BLOCKS, rows, COLUMNS, 0, 0), -EINVAL, "n or k");
	expect(hal_npu_gemm_pack(blocks, BLOCKS, rows, COLUMNS, DEPTH, COLUMNS - 1),
	       -EINVAL, "stride");
	expect(hal_npu_gemm_pack(blocks, BLOCKS - 1, rows, COLUMNS, DEPTH, 0), -EINVAL,
	       "1151 bytes");
}

int main(int argc, char **argv)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(kernels_and_places),
		TEST(as_many_kernels_as_there_can_be),
		TEST(without_a_kernel),
		TEST(gemm_refused),
		TEST(conv_refused),
		TEST(vectors_refused),
		TEST(new_vectors_refused),
		TEST(refused_leaves_nothing),
		TEST(panels_fit),
		TEST(deep_conv),
		TEST(deep_gemm),
		TEST(too_wide),
		TEST(groups_in_one),
		TEST(rows_cut),
		TEST(too_large),
		TEST(constants_in_blocks),
		TEST(rows_that_are_read_stay),
		TEST(refused_packs_nothing),
		TEST(arguments_in_blocks),
		TEST(rounded_once),
		TEST(pack_refused),
		TEST(loads),
		TEST(truncated),
		TEST(every_bit_counts),
		TEST(hostile),
		TEST(not_an_image),
	};

	tier_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
