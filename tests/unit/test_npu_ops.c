/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs of the builder, run through hal.h on random rectangles, against plain loops:
 * on the golden model always, on the RTL where its 16 x 16 model is built.
 */
#include <errno.h>
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

/* In a static library the registry's weak reference alone does not bring the backend in.
 */
__attribute__((used)) static const struct hal_backend *(*const keep)(
	const struct hal_host *) = hal_backend_npu;

#define BYTES 65536u
#define GUARD 0xA5

#define OK(call)                                                                         \
	do {                                                                             \
		int ok_ = (call);                                                        \
		if (ok_)                                                                 \
			fail_msg("%s: %d: %s", #call, ok_, hal_last_error());            \
	} while (0)

struct world {
	struct hal_device *dev;
	struct hal_partition *part;
	struct hal_queue *queue;
	struct hal_buffer *in[2], *out;
	uint32_t seed;
	int8_t a[BYTES], b[BYTES];
	uint8_t want[BYTES], got[BYTES];
	/* The program being made. */
	struct hal_npu_builder *builder;
	struct hal_npu_place pa, pb, pd;
	char what[200];
};

static uint32_t lcg(struct world *w)
{
	w->seed = w->seed * 1664525u + 1013904223u;
	return w->seed >> 8;
}

/* lo..hi */
static uint32_t pick(struct world *w, uint32_t lo, uint32_t hi)
{
	return lo + lcg(w) % (hi - lo + 1);
}

/* ---- arithmetic, written down once more ------------------------------------------- */

static int32_t scaled(int32_t x, int32_t mult, int32_t shift)
{
	int64_t product, half;
	int32_t right = shift < 0 ? -shift : 0;

	if (shift > 0)
		x = (int32_t)((uint32_t)x << shift);
	product = ((int64_t)x * mult + (INT64_C(1) << 30)) >> 31;
	if (!right)
		return (int32_t)product;
	/* halves away from zero */
	half = INT64_C(1) << (right - 1);
	if (product < 0)
		return (int32_t) - ((-product + half) >> right);
	return (int32_t)((product + half) >> right);
}

static int32_t clamped(int64_t x, int32_t lo, int32_t hi)
{
	return (int32_t)(x < lo ? lo : x > hi ? hi : x);
}

/* ---- requantization shared by GEMM and CONV --------------------------------------- */

struct quant {
	int32_t bias[512], mult[512], shift[512];
	struct hal_npu_requant r;
};

static void make_quant(struct world *w, struct quant *q, uint32_t n)
{
	uint32_t kind = pick(w, 0, 5);

	memset(&q->r, 0, sizeof(q->r));
	for (uint32_t i = 0; i < n; i++) {
		q->bias[i] = (int32_t)pick(w, 0, 20000) - 10000;
		q->mult[i] = (int32_t)(0x40000000u + lcg(w) * 64u % 0x40000000u);
		q->shift[i] = -(int32_t)pick(w, 2, 12);
	}
	if (kind)
		q->r.bias = q->bias;
	if (kind == 1)
		return; /* int32 */
	q->r.mult = q->mult;
	q->r.shift = q->shift;
	q->r.per_channel = kind > 2;
	q->r.zero_point = (int32_t)pick(w, 0, 255) - 128;
	q->r.min = -128;
	q->r.max = 127;
	if (kind == 5)
		q->r.min = q->r.zero_point; /* relu */
}

static void put_output(uint8_t *at, const struct quant *q, uint32_t n, int32_t sum)
{
	uint32_t i = q->r.per_channel ? n : 0;

	if (q->r.bias)
		sum += q->bias[n];
	if (!q->r.mult) {
		memcpy(at, &sum, 4);
		return;
	}
	sum = scaled(sum, q->mult[i], q->shift[i]);
	*at = (uint8_t)clamped((int64_t)sum + q->r.zero_point, q->r.min, q->r.max);
}

/* ---- operations ------------------------------------------------------------------- */

static void make_gemm(struct world *w)
{
	struct hal_npu_gemm op = HAL_INIT(hal_npu_gemm);
	static struct quant q;
	uint32_t size, lda, ldb, ldd;

	op.m = pick(w, 1, lcg(w) % 4 ? 60 : 600);
	op.n = pick(w, 1, 40);
	op.k = pick(w, 1, 80);
	op.a_zero = (int32_t)pick(w, 0, 255) - 128;
	op.b_zero = (int32_t)pick(w, 0, 255) - 128;
	make_quant(w, &q, op.n);
	op.out = q.r;
	size = op.out.mult ? 1 : 4;
	op.a_stride = lcg(w) % 2 ? 0 : op.k + pick(w, 0, 20);
	op.b_stride = lcg(w) % 2 ? 0 : op.n + pick(w, 0, 20);
	op.d_stride = lcg(w) % 2 ? 0 : (op.n + pick(w, 0, 20)) * size;
	lda = op.a_stride ? op.a_stride : op.k;
	ldb = op.b_stride ? op.b_stride : op.n;
	ldd = op.d_stride ? op.d_stride : op.n * size;
	if (op.m * lda > BYTES - 64)
		op.m = (BYTES - 64) / lda;
	if (op.m * ldd > BYTES - 64)
		op.m = (BYTES - 64) / ldd;
	op.a = w->pa;
	op.b = w->pb;
	op.d = w->pd;
	op.a.offset = pick(w, 0, 63);
	op.b.offset = pick(w, 0, 63);
	op.d.offset = pick(w, 0, 15) * 4;
	snprintf(w->what, sizeof(w->what), "gemm %u %u %u strides %u %u %u", op.m, op.n,
		 op.k, lda, ldb, ldd);
	OK(hal_npu_gemm(w->builder, &op));
	for (uint32_t m = 0; m < op.m; m++)
		for (uint32_t n = 0; n < op.n; n++) {
			int32_t sum = 0;

			for (uint32_t k = 0; k < op.k; k++)
				sum += (w->a[op.a.offset + m * lda + k] - op.a_zero) *
				       (w->b[op.b.offset + k * ldb + n] - op.b_zero);
			put_output(w->want + op.d.offset + m * ldd + n * size, &q, n,
				   sum);
		}
}

static int32_t conv_sum(const struct world *w, const struct hal_npu_conv *op, uint32_t oy,
			uint32_t ox, uint32_t n)
{
	uint32_t cin = op->c / op->groups, c0 = n / (op->n / op->groups) * cin;
	int32_t sum = 0;

	for (uint32_t ky = 0; ky < op->kh; ky++)
		for (uint32_t kx = 0; kx < op->kw; kx++) {
			int64_t y = (int64_t)oy * op->stride_h + ky * op->dilation_h -
				    op->pad_top;
			int64_t x = (int64_t)ox * op->stride_w + kx * op->dilation_w -
				    op->pad_left;

			if (y < 0 || y >= op->h || x < 0 || x >= op->w)
				continue;
			for (uint32_t c = 0; c < cin; c++)
				sum += (w->a[op->a.offset +
					     ((uint64_t)y * op->w + (uint64_t)x) * op->c +
					     c0 + c] -
					op->a_zero) *
				       op->weights[((n * op->kh + ky) * op->kw + kx) *
							   cin +
						   c];
		}
	return sum;
}

static void conv_shape(struct world *w, struct hal_npu_conv *op)
{
	static const uint32_t group_choice[] = {1, 1, 1, 2, 4};

	op->groups = group_choice[lcg(w) % 5];
	op->c = op->groups * pick(w, 1, 24 / op->groups);
	op->n = op->groups * pick(w, 1, 40 / op->groups);
	if (lcg(w) % 6 == 0)
		op->groups = op->n = op->c; /* depthwise */
	op->h = pick(w, 1, 20);
	op->w = pick(w, 1, 20);
	op->kh = pick(w, 1, 4);
	op->kw = pick(w, 1, 4);
	op->stride_h = pick(w, 1, 3);
	op->stride_w = pick(w, 1, 3);
	op->dilation_h = pick(w, 1, 2);
	op->dilation_w = pick(w, 1, 2);
	op->pad_top = pick(w, 0, 3);
	op->pad_left = pick(w, 0, 3);
	op->oh = pick(w, 1, (op->h + op->pad_top + op->stride_h - 1) / op->stride_h);
	op->ow = pick(w, 1, (op->w + op->pad_left + op->stride_w - 1) / op->stride_w);
}

static void make_conv(struct world *w)
{
	struct hal_npu_conv op = HAL_INIT(hal_npu_conv);
	static struct quant q;
	uint32_t size, ldd;

	conv_shape(w, &op);
	op.a_zero = (int32_t)pick(w, 0, 255) - 128;
	make_quant(w, &q, op.n);
	op.out = q.r;
	size = op.out.mult ? 1 : 4;
	op.d_stride = lcg(w) % 2 ? 0 : (op.n + pick(w, 0, 20)) * size;
	ldd = op.d_stride ? op.d_stride : op.n * size;
	if (op.oh * op.ow * ldd > BYTES - 64)
		op.oh = 1;
	op.weights = w->b;
	op.a = w->pa;
	op.d = w->pd;
	op.a.offset = pick(w, 0, 63);
	op.d.offset = pick(w, 0, 15) * 4;
	snprintf(w->what, sizeof(w->what),
		 "conv %ux%ux%u -> %ux%ux%u kernel %ux%u stride %ux%u dilation %ux%u pad "
		 "%u %u "
		 "groups %u pitch %u",
		 op.h, op.w, op.c, op.oh, op.ow, op.n, op.kh, op.kw, op.stride_h,
		 op.stride_w, op.dilation_h, op.dilation_w, op.pad_top, op.pad_left,
		 op.groups, ldd);
	OK(hal_npu_conv(w->builder, &op));
	for (uint32_t m = 0; m < op.oh * op.ow; m++)
		for (uint32_t n = 0; n < op.n; n++)
			put_output(w->want + op.d.offset + m * ldd + n * size, &q, n,
				   conv_sum(w, &op, m / op.ow, m % op.ow, n));
}

static void make_add(struct world *w)
{
	struct hal_npu_add op = HAL_INIT(hal_npu_add);

	op.bytes = pick(w, 1, 3000);
	op.a = w->pa;
	op.b = w->pb;
	op.d = w->pd;
	op.a.offset = pick(w, 0, 100);
	op.b.offset = pick(w, 0, 100);
	op.d.offset = pick(w, 0, 100);
	op.a_zero = (int32_t)pick(w, 0, 255) - 128;
	op.b_zero = (int32_t)pick(w, 0, 255) - 128;
	op.d_zero = (int32_t)pick(w, 0, 255) - 128;
	op.a_mult = (int32_t)(0x40000000u + lcg(w) * 64u % 0x40000000u);
	op.b_mult = (int32_t)(0x40000000u + lcg(w) * 64u % 0x40000000u);
	op.d_mult = (int32_t)(0x40000000u + lcg(w) * 64u % 0x40000000u);
	op.a_shift = -(int32_t)pick(w, 0, 3);
	op.b_shift = -(int32_t)pick(w, 0, 3);
	op.d_shift = -(int32_t)pick(w, 17, 20);
	op.left_shift = 20;
	op.min = -(int32_t)pick(w, 0, 128);
	op.max = (int32_t)pick(w, 0, 127);
	snprintf(w->what, sizeof(w->what), "add %u", op.bytes);
	OK(hal_npu_add(w->builder, &op));
	for (uint32_t i = 0; i < op.bytes; i++) {
		int32_t x = (w->a[op.a.offset + i] - op.a_zero) * (1 << 20);
		int32_t y = (w->b[op.b.offset + i] - op.b_zero) * (1 << 20);

		x = scaled(x, op.a_mult, op.a_shift) + scaled(y, op.b_mult, op.b_shift);
		x = scaled(x, op.d_mult, op.d_shift) + op.d_zero;
		w->want[op.d.offset + i] = (uint8_t)clamped(x, op.min, op.max);
	}
}

static void make_relu(struct world *w)
{
	struct hal_npu_relu op = HAL_INIT(hal_npu_relu);

	op.bytes = pick(w, 1, 3000);
	op.a = w->pa;
	op.d = w->pd;
	op.a.offset = pick(w, 0, 100);
	op.d.offset = pick(w, 0, 100);
	op.a_zero = (int32_t)pick(w, 0, 255) - 128;
	op.d_zero = (int32_t)pick(w, 0, 255) - 128;
	op.mult = (int32_t)(0x40000000u + lcg(w) * 64u % 0x40000000u);
	op.shift = (int32_t)pick(w, 0, 6) - 3;
	op.min = op.d_zero;
	op.max = 127;
	snprintf(w->what, sizeof(w->what), "relu %u", op.bytes);
	OK(hal_npu_relu(w->builder, &op));
	for (uint32_t i = 0; i < op.bytes; i++) {
		int32_t x = scaled(w->a[op.a.offset + i] - op.a_zero, op.mult, op.shift);

		w->want[op.d.offset + i] =
			(uint8_t)clamped((int64_t)x + op.d_zero, op.min, op.max);
	}
}

static int32_t pool_max(const struct world *w, const struct hal_npu_pool *op, uint32_t oy,
			uint32_t ox, uint32_t c)
{
	int32_t best = -128;

	for (uint32_t ky = 0; ky < op->kh; ky++)
		for (uint32_t kx = 0; kx < op->kw; kx++) {
			int64_t y = (int64_t)oy * op->stride_h + ky - op->pad_top;
			int64_t x = (int64_t)ox * op->stride_w + kx - op->pad_left;
			int32_t v;

			if (y < 0 || y >= op->h || x < 0 || x >= op->w)
				continue;
			v = w->a[op->a.offset +
				 ((uint64_t)y * op->w + (uint64_t)x) * op->c + c];
			best = v > best ? v : best;
		}
	return best;
}

static void make_pool(struct world *w)
{
	struct hal_npu_pool op = HAL_INIT(hal_npu_pool);

	op.h = pick(w, 1, 20);
	op.w = pick(w, 1, 20);
	op.c = pick(w, 1, 70);
	op.kh = pick(w, 1, 3);
	op.kw = pick(w, 1, 3);
	op.stride_h = pick(w, 1, 3);
	op.stride_w = pick(w, 1, 3);
	op.pad_top = pick(w, 0, op.kh - 1);
	op.pad_left = pick(w, 0, op.kw - 1);
	op.oh = pick(w, 1, (op.h + op.pad_top + op.stride_h - 1) / op.stride_h);
	op.ow = pick(w, 1, (op.w + op.pad_left + op.stride_w - 1) / op.stride_w);
	op.min = -(int32_t)pick(w, 0, 128);
	op.max = (int32_t)pick(w, 0, 127);
	op.a = w->pa;
	op.d = w->pd;
	op.a.offset = pick(w, 0, 63);
	op.d.offset = pick(w, 0, 63);
	snprintf(w->what, sizeof(w->what),
		 "maxpool %ux%ux%u -> %ux%u kernel %ux%u stride %ux%u pad %u %u", op.h,
		 op.w, op.c, op.oh, op.ow, op.kh, op.kw, op.stride_h, op.stride_w,
		 op.pad_top, op.pad_left);
	OK(hal_npu_maxpool(w->builder, &op));
	for (uint32_t m = 0; m < op.oh * op.ow; m++)
		for (uint32_t c = 0; c < op.c; c++)
			w->want[op.d.offset + m * op.c + c] = (uint8_t)clamped(
				pool_max(w, &op, m / op.ow, m % op.ow, c), op.min,
				op.max);
}

static void make_copy(struct world *w)
{
	struct hal_npu_copy op = HAL_INIT(hal_npu_copy);
	struct hal_npu_place fill = w->pd;

	op.rows = pick(w, 1, 30);
	op.bytes = pick(w, 1, 300);
	op.a_stride = op.bytes + pick(w, 0, 50);
	op.d_stride = op.bytes + pick(w, 0, 50);
	op.a = w->pa;
	op.d = w->pd;
	op.a.offset = pick(w, 0, 100);
	op.d.offset = pick(w, 0, 100);
	fill.offset = 32768 + 4 * pick(w, 0, 20);
	snprintf(w->what, sizeof(w->what), "copy %u x %u", op.rows, op.bytes);
	OK(hal_npu_copy(w->builder, &op));
	OK(hal_npu_fill(w->builder, fill, 4 * 37, 0x12345678));
	for (uint32_t r = 0; r < op.rows; r++)
		memcpy(w->want + op.d.offset + r * op.d_stride,
		       w->a + op.a.offset + r * op.a_stride, op.bytes);
	for (uint32_t i = 0; i < 37; i++)
		memcpy(w->want + fill.offset + 4 * i, "\x78\x56\x34\x12", 4);
}

/* ---- one program, one launch ------------------------------------------------------ */

static void begin_program(struct world *w)
{
	for (uint32_t i = 0; i < BYTES; i++) {
		w->a[i] = (int8_t)lcg(w);
		w->b[i] = (int8_t)lcg(w);
	}
	memset(w->want, GUARD, BYTES);
	OK(hal_npu_builder_create(&w->builder));
	OK(hal_npu_kernel(w->builder, "k"));
	OK(hal_npu_arg(w->builder, BYTES, &w->pa.id));
	OK(hal_npu_arg(w->builder, BYTES, &w->pb.id));
	OK(hal_npu_arg(w->builder, BYTES, &w->pd.id));
}

static void run_program(struct world *w)
{
	struct hal_arg args[] = {{w->in[0], 0, 0}, {w->in[1], 0, 0}, {w->out, 0, 0}};
	struct hal_submit_desc submit = HAL_INIT(hal_submit_desc);
	struct hal_program *prog;
	struct hal_kernel *kernel;
	struct hal_point done;
	struct hal_cmd cmd;
	void *image;
	size_t size;

	OK(hal_npu_build(w->builder, &image, &size));
	OK(hal_program_load(w->dev, image, size, &prog));
	hal_npu_image_free(image);
	hal_npu_builder_destroy(w->builder);
	OK(hal_kernel_find(prog, "k", &kernel));
	OK(hal_buffer_write(w->in[0], 0, w->a, BYTES));
	OK(hal_buffer_write(w->in[1], 0, w->b, BYTES));
	memset(w->got, GUARD, BYTES);
	OK(hal_buffer_write(w->out, 0, w->got, BYTES));
	cmd = hal_cmd_launch(kernel, args, 3);
	submit.cmds = &cmd;
	submit.cmd_count = 1;
	OK(hal_submit(w->queue, &submit, &done));
	OK(hal_wait(&done, 1, 0, HAL_FOREVER));
	OK(hal_buffer_read(w->out, 0, w->got, BYTES));
	OK(hal_program_unload(prog));
}

static void open_partition(struct world *w, uint32_t rows, uint32_t cols)
{
	struct hal_partition_desc desc = HAL_INIT(hal_partition_desc);
	struct hal_queue_desc queue = HAL_INIT(hal_queue_desc);
	struct hal_buffer_desc buffer = HAL_INIT(hal_buffer_desc);

	desc.rows = (uint16_t)rows;
	desc.cols = (uint16_t)cols;
	desc.row = (uint16_t)pick(w, 0, 16 - rows);
	desc.col = (uint16_t)pick(w, 0, 16 - cols);
	buffer.bytes = BYTES;
	OK(hal_partition_create(w->dev, &desc, &w->part));
	OK(hal_queue_create(w->part, &queue, &w->queue));
	OK(hal_buffer_create(w->part, &buffer, &w->in[0]));
	OK(hal_buffer_create(w->part, &buffer, &w->in[1]));
	OK(hal_buffer_create(w->part, &buffer, &w->out));
}

static void close_partition(struct world *w)
{
	OK(hal_buffer_destroy(w->in[0]));
	OK(hal_buffer_destroy(w->in[1]));
	OK(hal_buffer_destroy(w->out));
	OK(hal_queue_destroy(w->queue));
	OK(hal_partition_destroy(w->part));
}

static void random_operations(const char *target, uint32_t partitions, uint32_t each)
{
	static void (*const make[])(struct world *) = {make_gemm, make_conv, make_conv,
						       make_add,  make_relu, make_pool,
						       make_copy};
	struct world *w = calloc(1, sizeof(*w));

	assert_non_null(w);
	w->seed = 20240;
	OK(hal_open(target, NULL, &w->dev));
	for (uint32_t p = 0; p < partitions; p++) {
		uint32_t rows = pick(w, 1, 16), cols = pick(w, 1, 16);

		open_partition(w, rows, cols);
		for (uint32_t i = 0; i < each; i++) {
			uint32_t seed = w->seed;

			begin_program(w);
			make[lcg(w) % (sizeof(make) / sizeof(make[0]))](w);
			run_program(w);
			for (uint32_t at = 0; at < BYTES; at++)
				if (w->got[at] != w->want[at])
					fail_msg("seed %u on %ux%u: %s: byte %u is "
						 "0x%02x, not "
						 "0x%02x",
						 seed, rows, cols, w->what, at,
						 w->got[at], w->want[at]);
		}
		close_partition(w);
	}
	OK(hal_close(w->dev));
	free(w);
}

static void on_golden(void **state)
{
	(void)state;
	random_operations("npu:0?model=" HAL_BINARY_DIR
			  "/npu-rtl/golden/libnpu_model_golden.so",
			  20, 20);
}

/* A machine's model takes minutes under valgrind; the golden model shows the same memory
 * errors. */
static bool too_slow(void)
{
	const char *preload = getenv("LD_PRELOAD");

	return preload && strstr(preload, "vgpreload");
}

/* A skip, not a failure, where models are not built. */
static void on_rtl(void **state)
{
	struct hal_device *dev;
	int rc = too_slow() ? -ENODEV : hal_open("npu:0", NULL, &dev);

	(void)state;
	if (rc == -ENODEV)
		skip();
	OK(rc);
	OK(hal_close(dev));
	random_operations("npu:0", 20, 20);
	random_operations("npu:0?memory=ideal&channels=6&granule=256&memory_size=1M", 4,
			  8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(on_golden),
		cmocka_unit_test(on_rtl),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
