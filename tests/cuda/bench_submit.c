/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_submit N [bare|eight|graphs]: N launches of two arguments, through the backend's
 * table, or bare: the same calls of the driver by hand: a launch, what times it, and the
 * number that says that it has ended.  eight: N times eight that were recorded; graphs:
 * the same with graphs=yes.  For callgrind: overhead.sh counts what of cu_submit and of
 * bare_submit is their own and not the driver's.
 */
#include "host.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cuda/internal.h"

static int check(int err)
{
	if (err >= 0)
		return err;
	fprintf(stderr, "%d %s\n", err, host_text);
	exit(1);
}

/* What a program would write that wants to know when this launch has ended, and how long
 * it took. */
__attribute__((noinline)) static uint32_t bare_submit(struct cu_queue *q, void *function,
						      uint64_t mem, uint64_t ns)
{
	void *params[2] = {&mem, &ns};
	uint32_t r = cu.cuEventRecord(q->idle, q->stream);

	if (!r)
		r = cu.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, q->stream, params,
				      NULL);
	if (!r)
		r = cu.cuEventRecord(q->slots[0].own, q->stream);
	if (!r)
		r = cu.cuStreamWriteValue32_v2(q->stream, q->word.address,
					       ++q->base.given, 0);
	return r;
}

static void run_bare(struct cu_queue *q, const struct cu_kernel *k,
		     const struct cu_mem *mem, long n)
{
	uint32_t r = 0;

	while (!r && n--) {
		r = bare_submit(q, k->function, mem->address, 100);
		if (!r)
			r = cu.cuStreamSynchronize(q->stream);
	}
	if (r) {
		fprintf(stderr, "%u\n", r);
		exit(1);
	}
}

/* Eight that come again and again, given at once. */
static void run_eight(const struct hal_backend *b, void *dev, void *queue,
		      struct hal_bk_cmd cmd, long n)
{
	uint64_t calls = 0;
	struct hal_bk_event ev[8];
	long i, k;

	for (i = 0; i <= n; i++) {
		const uint64_t before = stand_in()->calls(NULL);

		for (k = 0; k < 8; k++) {
			cmd.flags = HAL_BK_CMD_RECORDED | (k == 7 ? HAL_BK_CMD_LAST : 0);
			check(b->hot.submit(dev, queue, &cmd));
		}
		calls = stand_in()->calls(NULL) - before;
		for (k = 0; k < 8; k += check(b->hot.poll(dev, UINT64_MAX, ev, 8)))
			;
	}
	printf("%lu calls of the driver for the eight\n", (unsigned long)calls);
}

int main(int argc, char **argv)
{
	static const char *const kernels[] = {"work:m8"};
	const struct hal_bk_partition_desc pd = {.units = 1, .rows = 1, .cols = 1};
	const bool bare = argc > 2 && strcmp(argv[2], "bare") == 0;
	const bool graphs = argc > 2 && strcmp(argv[2], "graphs") == 0;
	const bool eight = graphs || (argc > 2 && strcmp(argv[2], "eight") == 0);
	const struct hal_bk_config cfg = {
		.clock = 1, .inflight = eight ? 8 : 4, .graphs = graphs};
	const struct hal_backend *b = hal_backend_cuda(&host);
	long n = argc > 1 ? strtol(argv[1], NULL, 10) : 1000, i;
	void *dev, *part, *queue, *prog, *kernel, *mem, *image, *popped;
	struct hal_bk_kernel_info info;
	struct hal_bk_event ev;
	struct hal_bk_arg args[2] = {{NULL, 0, 4}, {NULL, 100, 0}};
	struct hal_bk_cmd cmd = {.op = HAL_OP_LAUNCH};
	size_t size;

	image = make_cuda_image(kernels, 1, 1, &size);
	check(b->cold.open(&cfg, 0, &dev));
	check(b->cold.partition_create(dev, &pd, &part));
	check(b->cold.mem_alloc(dev, part, 4, NULL, 0, &mem));
	check(b->cold.program_load(dev, image, size, &prog));
	check(b->cold.kernel_get(dev, prog, 0, &info, &kernel));
	check(b->cold.queue_create(dev, part, 0, &queue));
	args[0].mem = mem;
	cmd.launch.kernel = kernel;
	cmd.launch.args = args;
	cmd.launch.arg_count = 2;
	for (i = 0; i < 3; i++)
		cmd.launch.groups[i] = 1;
	if (bare) {
		(void)cu.cuCtxPushCurrent_v2(((struct cu_device *)dev)->context);
		run_bare(queue, kernel, mem, n);
		(void)cu.cuCtxPopCurrent_v2(&popped);
	}
	if (eight)
		run_eight(b, dev, queue, cmd, n);
	for (i = 0; !bare && !eight && i < n; i++) {
		check(b->hot.submit(dev, queue, &cmd));
		while (check(b->hot.poll(dev, UINT64_MAX, &ev, 1)) == 0)
			;
		check(ev.status);
	}
	check(b->cold.queue_destroy(dev, queue));
	check(b->cold.program_unload(dev, prog));
	check(b->cold.mem_free(dev, mem));
	check(b->cold.partition_destroy(dev, part));
	b->cold.close(dev);
	free(image);
	printf("%ld launches\n", n);
	return 0;
}
