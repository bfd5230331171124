/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_tenants TARGET KERNELS: two tenants on a GPU, each with half of its units and a
 * product of matrices of its own, at the same time.  A device of one unit has room for
 * one partition: see partitions= of the backend. */
#include "gpu_image.h"

enum { N = 64, BYTES = N * N * sizeof(float) };

struct tenant {
	struct hal_partition *part;
	struct hal_queue *queue;
	struct hal_buffer *a, *b, *d;
	float from[N * N];
};

static void move_in(struct tenant *t, struct hal_device *dev, uint32_t units, int seed)
{
	struct hal_partition_desc half = {.size = sizeof(half), .units_floor = units};
	struct hal_queue_desc plain = {.size = sizeof(plain)};

	TRY(hal_partition_create(dev, &half, &t->part));
	TRY(hal_queue_create(t->part, &plain, &t->queue));
	t->a = gpu_buffer(t->part, BYTES);
	t->b = gpu_buffer(t->part, BYTES);
	t->d = gpu_buffer(t->part, BYTES);
	for (int i = 0; i < N * N; i++)
		t->from[i] = (float)((i * seed) % 7 - 3); /* sums are exact */
	TRY(hal_buffer_write(t->a, 0, t->from, BYTES));
	TRY(hal_buffer_write(t->b, 0, t->from, BYTES));
}

static int count_wrong(struct tenant *t)
{
	static float got[N * N];
	int wrong = 0;

	TRY(hal_buffer_read(t->d, 0, got, BYTES));
	for (int i = 0; i < N * N; i++) {
		float sum = 0;

		for (int k = 0; k < N; k++)
			sum += t->from[i / N * N + k] * t->from[k * N + i % N];
		wrong += got[i] != sum;
	}
	return wrong;
}

static void move_out(struct tenant *t)
{
	TRY(hal_buffer_destroy(t->a));
	TRY(hal_buffer_destroy(t->b));
	TRY(hal_buffer_destroy(t->d));
	TRY(hal_queue_destroy(t->queue));
	TRY(hal_partition_destroy(t->part));
}

int main(int argc, char **argv)
{
	struct hal_device_info info = {.size = sizeof(info)};
	static struct tenant tenants[2];
	struct hal_program *program;
	struct hal_point done[2];
	struct hal_device *dev;
	int wrong = 0;

	if (argc != 3)
		return fprintf(stderr, "usage: gpu_tenants TARGET KERNELS\n"), 2;
	TRY(hal_open(argv[1], NULL, &dev));
	TRY(hal_device_get_info(dev, &info));
	program = gpu_load(dev, argv[2]);
	for (int i = 0; i < 2; i++)
		move_in(&tenants[i], dev, info.unit_cols / 2, i + 3);
	for (int i = 0; i < 2; i++) {
		struct tenant *t = &tenants[i];
		struct hal_arg args[] = {{.buffer = t->d},
					 {.buffer = t->a},
					 {.buffer = t->b},
					 {.offset = N}};

		done[i] = gpu_launch(t->queue, program, "product", args, 4,
				     N * N / GPU_BLOCK);
	}
	TRY(hal_wait(done, 2, 0, HAL_FOREVER));
	for (int i = 0; i < 2; i++) {
		const int n = count_wrong(&tenants[i]);

		printf("tenant %d: %u of %u units, %d wrong of %d\n", i,
		       info.unit_cols / 2, info.unit_cols, n, N * N);
		wrong += n;
	}
	for (int i = 0; i < 2; i++)
		move_out(&tenants[i]);
	TRY(hal_program_unload(program));
	TRY(hal_close(dev));
	return wrong != 0;
}
