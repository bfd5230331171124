/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_stop TARGET KERNELS: a long launch is stopped, something short runs, the long one
 * goes on where it was.  With preempt=block it stops between two blocks; without, the
 * device waits for its end, and the short one is late. */
#include "gpu_image.h"

enum { BLOCKS = 2000, ROUNDS = 100000, N = 1000 };

static uint32_t count(struct hal_buffer *d, uint32_t *more_than_once)
{
	static uint32_t done[BLOCKS];
	uint32_t n = 0;

	*more_than_once = 0;
	TRY(hal_buffer_read(d, 0, done, sizeof(done)));
	for (int i = 0; i < BLOCKS; i++) {
		n += done[i] != 0;
		*more_than_once += done[i] > 1;
	}
	return n;
}

int main(int argc, char **argv)
{
	struct hal_device_info info = {.size = sizeof(info)};
	struct hal_partition_desc all = {.size = sizeof(all)};
	struct hal_queue_desc plain = {.size = sizeof(plain)};
	struct hal_buffer *blocks, *vectors;
	struct hal_queue *slow, *quick;
	struct hal_program *program;
	struct hal_partition *part;
	struct hal_point done, quiet;
	struct hal_device *dev;
	uint32_t n, twice, mode;
	static const uint32_t zero[BLOCKS];

	if (argc != 3)
		return fprintf(stderr, "usage: gpu_stop TARGET KERNELS\n"), 2;
	TRY(hal_open(argv[1], NULL, &dev));
	TRY(hal_device_get_info(dev, &info));
	mode = info.suspend_modes >> HAL_SUSPEND_FOLD & 1 ? HAL_SUSPEND_FOLD
							  : HAL_SUSPEND_DRAIN;
	all.units_floor = info.unit_cols;
	TRY(hal_partition_create(dev, &all, &part));
	TRY(hal_queue_create(part, &plain, &slow));
	TRY(hal_queue_create(part, &plain, &quick));
	program = gpu_load(dev, argv[2]);
	blocks = gpu_buffer(part, sizeof(zero));
	vectors = gpu_buffer(part, 4 * N);
	TRY(hal_buffer_write(blocks, 0, zero, sizeof(zero)));

	struct hal_arg args[] = {{.buffer = blocks}, {.offset = ROUNDS}};
	struct hal_arg short_args[] = {{.buffer = vectors},
				       {.buffer = vectors},
				       {.buffer = vectors},
				       {.offset = N}};

	done = gpu_launch(slow, program, "long_one", args, 2, BLOCKS);
	/* Not before it runs: hal_submit alone does not say that. */
	do
		TRY(hal_device_poll(dev, 0));
	while (!count(blocks, &twice));
	TRY(hal_queue_suspend(slow, mode, &quiet));
	TRY(hal_wait(&quiet, 1, 0, HAL_FOREVER));
	n = count(blocks, &twice);
	printf("%s: %u of %d blocks done\n",
	       mode == HAL_SUSPEND_FOLD ? "stopped" : "waited for", n, BLOCKS);

	quiet = gpu_launch(quick, program, "vector_add", short_args, 4,
			   (N + GPU_BLOCK - 1) / GPU_BLOCK);
	TRY(hal_wait(&quiet, 1, 0, HAL_FOREVER));
	printf("something short: %u more of the long one meanwhile\n",
	       count(blocks, &twice) - n);

	TRY(hal_queue_resume(slow));
	TRY(hal_wait(&done, 1, 0, HAL_FOREVER));
	n = count(blocks, &twice);
	printf("at the end: %u of %d blocks, %u more than once\n", n, BLOCKS, twice);

	TRY(hal_buffer_destroy(blocks));
	TRY(hal_buffer_destroy(vectors));
	TRY(hal_program_unload(program));
	TRY(hal_queue_destroy(slow));
	TRY(hal_queue_destroy(quick));
	TRY(hal_partition_destroy(part));
	TRY(hal_close(dev));
	return n != BLOCKS || twice;
}
