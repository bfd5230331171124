/* SPDX-License-Identifier: Apache-2.0 */
/*
 * npu_train TARGET - lets a model of the NPU do a little of everything.
 *
 * Compiled with counters in it, the model notes what is taken how often; compiled again
 * with that, it runs a little faster (npu-rtl/CMakeLists.txt).  Four tenants, a
 * quarter of the array each, run the same operations, each beginning with another.
 * Results are of no interest here.
 */
#include <stdio.h>
#include <stdlib.h>

#include <hal/npu.h>

#define TRY(call)                                                                        \
	((call) < 0 ? (fprintf(stderr, "npu_train: %s\n", hal_last_error()), exit(1))    \
		    : (void)0)

enum { TENANTS = 4, PIXELS = 14, CHANNELS = 32, ROUNDS = 2 };
enum { BYTES = PIXELS * PIXELS * CHANNELS };

static int8_t weights[9 * CHANNELS * CHANNELS];
static int32_t bias[CHANNELS], mult[CHANNELS], shift[CHANNELS];

static uint32_t arg(struct hal_npu_builder *b)
{
	uint32_t id;

	TRY(hal_npu_arg(b, BYTES, &id));
	return id;
}

static struct hal_npu_requant requant(void)
{
	return (struct hal_npu_requant){.bias = bias,
					.mult = mult,
					.shift = shift,
					.per_channel = 1,
					.zero_point = 3,
					.min = -128,
					.max = 127};
}

static void conv(struct hal_npu_builder *b, const char *name, uint32_t kernel,
		 uint32_t stride, uint32_t groups)
{
	struct hal_npu_conv op = {.size = sizeof(op),
				  .h = PIXELS,
				  .w = PIXELS,
				  .c = CHANNELS,
				  .oh = PIXELS / stride,
				  .ow = PIXELS / stride,
				  .n = CHANNELS,
				  .kh = kernel,
				  .kw = kernel,
				  .stride_h = stride,
				  .stride_w = stride,
				  .dilation_h = 1,
				  .dilation_w = 1,
				  .pad_top = kernel / 2,
				  .pad_left = kernel / 2,
				  .groups = groups,
				  .weights = weights,
				  .a_zero = -5,
				  .out = requant()};

	TRY(hal_npu_kernel(b, name));
	op.d.id = arg(b);
	op.a.id = arg(b);
	TRY(hal_npu_conv(b, &op));
}

static void matrices(struct hal_npu_builder *b)
{
	struct hal_npu_gemm op = {.size = sizeof(op),
				  .m = PIXELS * PIXELS,
				  .n = CHANNELS,
				  .k = CHANNELS,
				  .out = requant()};

	TRY(hal_npu_kernel(b, "matrices"));
	op.d.id = arg(b);
	op.a.id = op.b.id = arg(b);
	TRY(hal_npu_gemm(b, &op));
}

static void pool(struct hal_npu_builder *b, const char *name,
		 int (*add)(struct hal_npu_builder *, const struct hal_npu_pool *))
{
	struct hal_npu_pool op = {.size = sizeof(op),
				  .h = PIXELS,
				  .w = PIXELS,
				  .c = CHANNELS,
				  .oh = PIXELS / 2,
				  .ow = PIXELS / 2,
				  .kh = 2,
				  .kw = 2,
				  .stride_h = 2,
				  .stride_w = 2,
				  .min = -128,
				  .max = 127};

	TRY(hal_npu_kernel(b, name));
	op.d.id = arg(b);
	op.a.id = arg(b);
	TRY(add(b, &op));
}

static void elements(struct hal_npu_builder *b)
{
	static uint8_t table[256];
	static int32_t exp[256];
	struct hal_npu_place a, d;

	TRY(hal_npu_kernel(b, "elements"));
	d = (struct hal_npu_place){.id = arg(b)};
	a = (struct hal_npu_place){.id = arg(b)};
	TRY(hal_npu_add(b, &(struct hal_npu_add){.size = sizeof(struct hal_npu_add),
						 .bytes = BYTES / 4,
						 .a = a,
						 .b = a,
						 .d = d,
						 .a_mult = 1 << 30,
						 .b_mult = 1 << 30,
						 .d_mult = 1 << 30,
						 .d_shift = -18,
						 .left_shift = 20,
						 .min = -128,
						 .max = 127}));
	TRY(hal_npu_mul(b, &(struct hal_npu_mul){.size = sizeof(struct hal_npu_mul),
						 .bytes = BYTES / 8,
						 .a = a,
						 .b = a,
						 .d = d,
						 .mult = 1 << 30,
						 .shift = -6,
						 .min = -128,
						 .max = 127}));
	TRY(hal_npu_relu(b, &(struct hal_npu_relu){.size = sizeof(struct hal_npu_relu),
						   .bytes = BYTES / 8,
						   .a = a,
						   .d = d,
						   .mult = 1 << 30,
						   .min = 0,
						   .max = 127}));
	for (int i = 0; i < 256; i++) {
		table[i] = (uint8_t)(255 - i);
		exp[i] = INT32_MAX >> (i / 8 < 31 ? i / 8 : 31);
	}
	TRY(hal_npu_lut(b, &(struct hal_npu_lut){.size = sizeof(struct hal_npu_lut),
						 .bytes = BYTES / 8,
						 .a = a,
						 .d = d,
						 .table = table}));
	TRY(hal_npu_softmax(
		b, &(struct hal_npu_softmax){.size = sizeof(struct hal_npu_softmax),
					     .rows = 2,
					     .cols = 40,
					     .a = a,
					     .d = d,
					     .exp = exp}));
	TRY(hal_npu_copy(b, &(struct hal_npu_copy){.size = sizeof(struct hal_npu_copy),
						   .rows = 1,
						   .bytes = BYTES / 2,
						   .a = a,
						   .d = d}));
	TRY(hal_npu_fill(b, d, BYTES / 8, 0x55));
}

static const char *const kernels[] = {"conv",     "wide",     "depthwise", "strided",
				      "matrices", "elements", "maximum",   "average"};
enum { KERNELS = sizeof(kernels) / sizeof(*kernels) };

static void load(struct hal_device *dev, struct hal_kernel *found[])
{
	struct hal_npu_builder *b;
	struct hal_program *program;
	void *image;
	size_t size;

	for (int i = 0; i < CHANNELS; i++) {
		bias[i] = i * 100;
		mult[i] = (1 << 30) + i * 1000;
		shift[i] = -6;
	}
	for (size_t i = 0; i < sizeof(weights); i++)
		weights[i] = (int8_t)(i * 37 % 255 - 127);
	TRY(hal_npu_builder_create(&b));
	conv(b, "conv", 3, 1, 1);
	conv(b, "wide", 1, 1, 1);
	conv(b, "depthwise", 3, 1, CHANNELS);
	conv(b, "strided", 3, 2, 1);
	matrices(b);
	elements(b);
	pool(b, "maximum", hal_npu_maxpool);
	pool(b, "average", hal_npu_avgpool);
	TRY(hal_npu_build(b, &image, &size));
	TRY(hal_program_load(dev, image, size, &program));
	TRY(hal_npu_builder_destroy(b));
	hal_npu_image_free(image);
	for (int i = 0; i < KERNELS; i++)
		TRY(hal_kernel_find(program, kernels[i], &found[i]));
}

int main(int argc, char **argv)
{
	struct hal_device_info info = {.size = sizeof(info)};
	struct hal_kernel *found[KERNELS];
	struct hal_point done[TENANTS];
	struct hal_device *dev;

	if (argc != 2) {
		fprintf(stderr, "usage: npu_train TARGET\n");
		return 2;
	}
	TRY(hal_open(argv[1], NULL, &dev));
	TRY(hal_device_get_info(dev, &info));
	load(dev, found);
	for (int t = 0; t < TENANTS; t++) {
		const uint16_t h = (uint16_t)(info.unit_rows / 2),
			       w = (uint16_t)(info.unit_cols / 2);
		struct hal_partition_desc rect = {.size = sizeof(rect),
						  .row = (uint16_t)(t / 2 * h),
						  .col = (uint16_t)(t % 2 * w),
						  .rows = h,
						  .cols = w};
		struct hal_queue_desc queue = {.size = sizeof(queue)};
		struct hal_buffer_desc bytes = {.size = sizeof(bytes), .bytes = BYTES};
		struct hal_partition *part;
		struct hal_buffer *buf[2];
		struct hal_queue *q;

		TRY(hal_partition_create(dev, &rect, &part));
		TRY(hal_queue_create(part, &queue, &q));
		for (int i = 0; i < 2; i++)
			TRY(hal_buffer_create(part, &bytes, &buf[i]));
		for (int i = 0; i < ROUNDS * KERNELS; i++) {
			struct hal_arg args[] = {{.buffer = buf[0]}, {.buffer = buf[1]}};
			struct hal_cmd cmd =
				hal_cmd_launch(found[(i + 2 * t) % KERNELS], args, 2);
			struct hal_submit_desc work = {
				.size = sizeof(work), .cmds = &cmd, .cmd_count = 1};

			TRY(hal_submit(q, &work, &done[t]));
		}
	}
	TRY(hal_wait(done, TENANTS, 0, HAL_FOREVER));
	return 0; /* and the device with the process */
}
