/* SPDX-License-Identifier: Apache-2.0 */
/* Two tenants side by side on one NPU, each on a rectangle of its own: the same product
 * of matrices, the same program.  The wider rectangle takes fewer cycles, and neither
 * tenant sees the other. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <hal/npu.h>

#define TRY(call)                                                                        \
	((call) < 0 ? (fprintf(stderr, "%s\n", hal_last_error()), exit(1)) : (void)0)

enum { M = 48, N = 32, K = 40 };

struct tenant {
	const char *name;
	uint16_t row, col, rows, cols;
	struct hal_partition *part;
	struct hal_queue *queue;
	struct hal_buffer *a, *b, *d, *times;
	struct hal_point done;
};

static int8_t a[M][K], b[K][N];

/* Kernel "product": d (int32), a and b are launch arguments. */
static void load_program(struct hal_device *dev, struct hal_program **program)
{
	struct hal_npu_gemm gemm = {.size = sizeof(gemm), .m = M, .n = N, .k = K};
	struct hal_npu_builder *builder;
	void *image;
	size_t size;

	TRY(hal_npu_builder_create(&builder));
	TRY(hal_npu_kernel(builder, "product"));
	TRY(hal_npu_arg(builder, M * N * sizeof(int32_t), &gemm.d.id));
	TRY(hal_npu_arg(builder, sizeof(a), &gemm.a.id));
	TRY(hal_npu_arg(builder, sizeof(b), &gemm.b.id));
	TRY(hal_npu_gemm(builder, &gemm));
	TRY(hal_npu_build(builder, &image, &size));
	TRY(hal_program_load(dev, image, size, program));
	TRY(hal_npu_builder_destroy(builder));
	hal_npu_image_free(image); /* the device has its own copy */
}

static void make_buffer(struct tenant *t, uint64_t bytes, struct hal_buffer **buf)
{
	struct hal_buffer_desc desc = {.size = sizeof(desc), .bytes = bytes};

	TRY(hal_buffer_create(t->part, &desc, buf));
}

static void move_in(struct tenant *t, struct hal_device *dev)
{
	struct hal_partition_desc rect = {.size = sizeof(rect),
					  .row = t->row,
					  .col = t->col,
					  .rows = t->rows,
					  .cols = t->cols,
					  .min_isolation = HAL_ISOLATION_ENFORCED};
	struct hal_queue_desc queue = {.size = sizeof(queue)};

	snprintf(rect.name, sizeof(rect.name), "%s", t->name);
	TRY(hal_partition_create(dev, &rect, &t->part));
	TRY(hal_queue_create(t->part, &queue, &t->queue));
	make_buffer(t, sizeof(a), &t->a);
	make_buffer(t, sizeof(b), &t->b);
	make_buffer(t, M * N * sizeof(int32_t), &t->d);
	make_buffer(t, 2 * sizeof(uint64_t), &t->times);
	TRY(hal_buffer_write(t->a, 0, a, sizeof(a)));
	TRY(hal_buffer_write(t->b, 0, b, sizeof(b)));
}

/* The device notes its time before and after the launch. */
static void submit(struct tenant *t, struct hal_kernel *kernel)
{
	struct hal_arg args[] = {{.buffer = t->d}, {.buffer = t->a}, {.buffer = t->b}};
	struct hal_cmd cmds[] = {
		hal_cmd_timestamp(t->times, 0),
		hal_cmd_launch(kernel, args, 3),
		hal_cmd_timestamp(t->times, sizeof(uint64_t)),
	};
	struct hal_submit_desc work = {
		.size = sizeof(work), .cmds = cmds, .cmd_count = 3};

	TRY(hal_submit(t->queue, &work, &t->done));
}

static void report(struct tenant *t)
{
	int32_t d[M][N];
	uint64_t times[2];
	int wrong = 0;

	TRY(hal_buffer_read(t->d, 0, d, sizeof(d)));
	TRY(hal_buffer_read(t->times, 0, times, sizeof(times)));
	for (int m = 0; m < M; m++) {
		for (int n = 0; n < N; n++) {
			int32_t sum = 0;

			for (int k = 0; k < K; k++)
				sum += a[m][k] * b[k][n];
			wrong += d[m][n] != sum;
		}
	}
	printf("%s: %u x %u, %" PRIu64 " cycles, %d wrong of %d\n", t->name, t->rows,
	       t->cols, times[1] - times[0], wrong, M * N);
}

static void move_out(struct tenant *t)
{
	TRY(hal_buffer_destroy(t->a));
	TRY(hal_buffer_destroy(t->b));
	TRY(hal_buffer_destroy(t->d));
	TRY(hal_buffer_destroy(t->times));
	TRY(hal_queue_destroy(t->queue));
	TRY(hal_partition_destroy(t->part));
}

int main(void)
{
	struct tenant tenants[] = {
		{.name = "narrow", .row = 0, .col = 0, .rows = 8, .cols = 4},
		{.name = "wide", .row = 0, .col = 4, .rows = 8, .cols = 8},
	};
	struct hal_point done[2];
	struct hal_device *dev;
	struct hal_program *program;
	struct hal_kernel *kernel;

	for (int i = 0; i < M * K; i++)
		a[i / K][i % K] = (int8_t)(i * 7 % 255 - 127);
	for (int i = 0; i < K * N; i++)
		b[i / N][i % N] = (int8_t)(i * 11 % 255 - 127);
	TRY(hal_open("npu:0?clock=virtual", NULL, &dev));
	load_program(dev, &program);
	TRY(hal_kernel_find(program, "product", &kernel));
	for (int i = 0; i < 2; i++)
		move_in(&tenants[i], dev);
	for (int i = 0; i < 2; i++) {
		submit(&tenants[i], kernel);
		done[i] = tenants[i].done;
	}
	TRY(hal_wait(done, 2, 0, HAL_FOREVER));
	for (int i = 0; i < 2; i++)
		report(&tenants[i]);
	for (int i = 0; i < 2; i++)
		move_out(&tenants[i]);
	TRY(hal_program_unload(program));
	TRY(hal_close(dev));
	return 0;
}
