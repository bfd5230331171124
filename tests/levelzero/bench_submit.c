/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_submit N [bare]: N launches of two arguments, through the backend's table, or
 * bare: the same calls of the loader by hand.  For callgrind: overhead.sh counts what of
 * lz_submit and of bare_submit is their own and not the loader's or the driver's.
 */
#include "host.h"

#include "backends/levelzero/internal.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int check(int err)
{
	if (err >= 0)
		return err;
	fprintf(stderr, "%d %s\n", err, host_text);
	exit(1);
}

/* What a program would write that needs nothing but this launch. */
__attribute__((noinline)) static uint32_t
bare_submit(void *list, void *event, void *kernel, void *mem, uint64_t ns)
{
	const struct ze_group_count groups = {1, 1, 1};
	uint32_t r;

	r = lz.zeEventHostReset(event);
	if (!r)
		r = lz.zeKernelSetArgumentValue(kernel, 0, sizeof(mem), &mem);
	if (!r)
		r = lz.zeKernelSetArgumentValue(kernel, 1, sizeof(ns), &ns);
	if (!r)
		r = lz.zeCommandListAppendLaunchKernel(list, kernel, &groups, event, 0,
						       NULL);
	return r;
}

/* With the queue's own list and event, and the backend's driving of the clock. */
static void run_bare(struct lz_device *dev, const struct lz_queue *q,
		     const struct lz_kernel *k, const struct lz_mem *mem, long n)
{
	struct ze_kernel_timestamp t;
	uint64_t now;
	uint32_t idle, r = 0;

	while (!r && n--) {
		r = bare_submit(q->list, q->slots[0].event, k->handles[0], mem->p, 100);
		while (!r && lz.zeEventQueryStatus(q->slots[0].event) == LZ_NOT_READY)
			r = dev->advance(UINT64_MAX, &now, &idle);
		if (!r)
			r = lz.zeEventQueryKernelTimestamp(q->slots[0].event, &t);
	}
	if (r) {
		fprintf(stderr, "0x%x\n", r);
		exit(1);
	}
}

int main(int argc, char **argv)
{
	static const char *const kernels[] = {"work:m8"};
	const struct hal_bk_partition_desc pd = {.units = 1, .rows = 1, .cols = 1};
	const struct hal_bk_config cfg = {.clock = 1};
	const bool bare = argc > 2 && strcmp(argv[2], "bare") == 0;
	const struct hal_backend *b = hal_backend_levelzero(&host);
	long n = argc > 1 ? strtol(argv[1], NULL, 10) : 1000, i;
	void *dev, *part, *queue, *prog, *kernel, *mem, *image;
	struct hal_bk_kernel_info info;
	struct hal_bk_event ev;
	struct hal_bk_arg args[2] = {{NULL, 0, 4}, {NULL, 100, 0}};
	struct hal_bk_cmd cmd = {.op = HAL_OP_LAUNCH};
	uint64_t bytes;
	size_t size;

	image = make_image(kernels, 1, 1, &size);
	check(b->cold.open(&cfg, 0, &dev));
	check(b->cold.partition_create(dev, &pd, &part));
	check(b->cold.mem_alloc(dev, part, 4, NULL, 0, &mem));
	check(b->cold.program_load(dev, image, size, &prog));
	check(b->cold.program_bind(dev, prog, part, &bytes));
	check(b->cold.kernel_get(dev, prog, 0, &info, &kernel));
	check(b->cold.queue_create(dev, part, 0, &queue));
	args[0].mem = mem;
	cmd.launch.kernel = kernel;
	cmd.launch.args = args;
	cmd.launch.arg_count = 2;
	if (bare)
		run_bare(dev, queue, kernel, mem, n);
	for (i = 0; !bare && i < n; i++) {
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
