/* SPDX-License-Identifier: Apache-2.0 */
/* The essential part: a partition of a device, a program, one launch, its result. */
#include <stdio.h>
#include <stdlib.h>

#include <hal/npu.h>

/* Calls answer 0 or -errno; hal_last_error() says what is wrong. */
#define TRY(call)                                                                        \
	((call) < 0 ? (fprintf(stderr, "%s\n", hal_last_error()), exit(1)) : (void)0)

int main(void)
{
	static const int8_t a[2][3] = {{1, 2, 3}, {4, 5, 6}};
	static const int8_t b[3][2] = {{1, 0}, {0, 1}, {10, -10}};
	struct hal_partition_desc quarter = {
		.size = sizeof(quarter), .rows = 8, .cols = 8};
	struct hal_queue_desc plain = {.size = sizeof(plain)};
	struct hal_buffer_desc bytes = {.size = sizeof(bytes), .bytes = 64};
	struct hal_npu_gemm gemm = {.size = sizeof(gemm), .m = 2, .n = 2, .k = 3};
	struct hal_npu_builder *builder;
	struct hal_device *dev;
	struct hal_partition *part;
	struct hal_queue *queue;
	struct hal_buffer *in, *out;
	struct hal_program *program;
	struct hal_kernel *kernel;
	struct hal_point done;
	int32_t d[2][2];
	void *image;
	size_t size;

	/* A program: d = a * b; d and a are arguments, b is part of it. */
	TRY(hal_npu_builder_create(&builder));
	TRY(hal_npu_kernel(builder, "product"));
	TRY(hal_npu_arg(builder, sizeof(d), &gemm.d.id));
	TRY(hal_npu_arg(builder, sizeof(a), &gemm.a.id));
	TRY(hal_npu_const(builder, b, sizeof(b), &gemm.b.id));
	TRY(hal_npu_gemm(builder, &gemm));
	TRY(hal_npu_build(builder, &image, &size));

	/* A quarter of the device for us, and what we need there. */
	TRY(hal_open("npu:0", NULL, &dev));
	TRY(hal_partition_create(dev, &quarter, &part));
	TRY(hal_queue_create(part, &plain, &queue));
	TRY(hal_buffer_create(part, &bytes, &in));
	TRY(hal_buffer_create(part, &bytes, &out));
	TRY(hal_program_load(dev, image, size, &program));
	TRY(hal_kernel_find(program, "product", &kernel));

	/* Submit, wait, look. */
	struct hal_arg args[] = {{.buffer = out}, {.buffer = in}};
	struct hal_cmd cmd = hal_cmd_launch(kernel, args, 2);
	struct hal_submit_desc work = {
		.size = sizeof(work), .cmds = &cmd, .cmd_count = 1};

	TRY(hal_buffer_write(in, 0, a, sizeof(a)));
	TRY(hal_submit(queue, &work, &done));
	TRY(hal_wait(&done, 1, 0, HAL_FOREVER));
	TRY(hal_buffer_read(out, 0, d, sizeof(d)));
	printf("%d %d\n%d %d\n", d[0][0], d[0][1], d[1][0], d[1][1]);

	/* Children before parents: a parent of living children answers -EBUSY. */
	TRY(hal_program_unload(program));
	TRY(hal_buffer_destroy(out));
	TRY(hal_buffer_destroy(in));
	TRY(hal_queue_destroy(queue));
	TRY(hal_partition_destroy(part));
	TRY(hal_close(dev));
	TRY(hal_npu_builder_destroy(builder));
	hal_npu_image_free(image);
	return 0;
}
