/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_submit N [bare]: N launches of two arguments, through the backend's table, or
 * bare: the same calls of XRT by hand.  For callgrind: ../fakes/overhead.sh counts what
 * of fp_submit and fp_doorbell, and of bare_submit, is their own and not the library's.
 */
#include "host.h"

#include "backends/fpga/internal.h"

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
__attribute__((noinline)) static int bare_submit(void *run, void *bo, uint64_t ns)
{
	int r = xrt.xrtRunSetArg(run, 0, bo);

	if (!r)
		r = xrt.xrtRunSetArg(run, 1, ns);
	if (!r)
		r = xrt.xrtRunStart(run);
	return r;
}

/* With the slot's own run, and the backend's driving of the clock. */
static void run_bare(const struct fp_kernel *k, const struct fp_mem *mem, long n)
{
	void *run = k->design->units[k->index * k->design->x.slot_count].run;
	uint64_t now;
	uint32_t idle;

	while (n--) {
		if (bare_submit(run, mem->bo, 100)) {
			fprintf(stderr, "XRT refuses the run\n");
			exit(1);
		}
		while (xrt.xrtRunState(run) != XRT_COMPLETED)
			xrt.advance(UINT64_MAX, &now, &idle);
	}
}

int main(int argc, char **argv)
{
	static const char text[] = "platform hal_stand_in_1\nbank DDR[0] ddr4 0x0 16M\n"
				   "kernel work 1\narg d memory 4 0\narg ns ulong\n";
	const struct hal_bk_partition_desc pd = {
		.units = 1, .rows = 1, .cols = 1, .color_mask = 1};
	const struct hal_bk_config cfg = {.clock = 1, .xclbin = make_file(text)};
	const struct hal_bk_colors colors = {.mask = 1};
	const bool bare = argc > 2 && strcmp(argv[2], "bare") == 0;
	const struct hal_backend *b = hal_backend_fpga(&host);
	long n = argc > 1 ? strtol(argv[1], NULL, 10) : 1000, i;
	void *dev, *part, *queue, *prog, *kernel, *mem, *image;
	struct hal_bk_kernel_info info;
	struct hal_bk_event ev;
	struct hal_bk_arg args[2] = {{NULL, 0, 4}, {NULL, 100, 0}};
	struct hal_bk_cmd cmd = {.op = HAL_OP_LAUNCH};
	size_t size;

	image = make_image(text, &size);
	check(b->cold.open(&cfg, 0, &dev));
	check(b->cold.partition_create(dev, &pd, &part));
	check(b->cold.mem_alloc(dev, part, 4, &colors, 0, &mem));
	check(b->cold.program_load(dev, image, size, &prog));
	check(b->cold.kernel_get(dev, prog, 0, &info, &kernel));
	check(b->cold.queue_create(dev, part, 0, &queue));
	args[0].mem = mem;
	cmd.launch.kernel = kernel;
	cmd.launch.args = args;
	cmd.launch.arg_count = 2;
	cmd.launch.groups[0] = cmd.launch.groups[1] = cmd.launch.groups[2] = 1;
	if (bare)
		run_bare(kernel, mem, n);
	for (i = 0; !bare && i < n; i++) {
		check(b->hot.submit(dev, queue, &cmd));
		b->hot.doorbell(dev);
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
