/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_add TARGET KERNELS: the sum of two vectors on a GPU, CUDA's or ROCm's; KERNELS is
 * what a compiler made of gpu_kernels.cu. */
#include "gpu_image.h"

enum { N = 100000 };
static float a[N], b[N], d[N];

int main(int argc, char **argv)
{
	struct hal_device_info info = {.size = sizeof(info)};
	struct hal_partition_desc all = {.size = sizeof(all)};
	struct hal_queue_desc plain = {.size = sizeof(plain)};
	struct hal_buffer *in[2], *out;
	struct hal_program *program;
	struct hal_partition *part;
	struct hal_device *dev;
	struct hal_queue *queue;
	struct hal_point done;
	int wrong = 0;

	if (argc != 3)
		return fprintf(stderr, "usage: gpu_add TARGET KERNELS\n"), 2;
	TRY(hal_open(argv[1], NULL, &dev));
	TRY(hal_device_get_info(dev, &info));
	all.units_floor = info.unit_cols;
	TRY(hal_partition_create(dev, &all, &part));
	TRY(hal_queue_create(part, &plain, &queue));
	program = gpu_load(dev, argv[2]);
	in[0] = gpu_buffer(part, sizeof(a));
	in[1] = gpu_buffer(part, sizeof(b));
	out = gpu_buffer(part, sizeof(d));
	for (int i = 0; i < N; i++) {
		a[i] = (float)i;
		b[i] = 0.5f;
	}
	TRY(hal_buffer_write(in[0], 0, a, sizeof(a)));
	TRY(hal_buffer_write(in[1], 0, b, sizeof(b)));

	struct hal_arg args[] = {
		{.buffer = out}, {.buffer = in[0]}, {.buffer = in[1]}, {.offset = N}};

	done = gpu_launch(queue, program, "vector_add", args, 4,
			  (N + GPU_BLOCK - 1) / GPU_BLOCK);
	TRY(hal_wait(&done, 1, 0, HAL_FOREVER));
	TRY(hal_buffer_read(out, 0, d, sizeof(d)));
	for (int i = 0; i < N; i++)
		wrong += d[i] != a[i] + b[i];
	printf("%d sums, %d wrong\n", N, wrong);

	TRY(hal_buffer_destroy(in[0]));
	TRY(hal_buffer_destroy(in[1]));
	TRY(hal_buffer_destroy(out));
	TRY(hal_program_unload(program));
	TRY(hal_queue_destroy(queue));
	TRY(hal_partition_destroy(part));
	TRY(hal_close(dev));
	return wrong != 0;
}
