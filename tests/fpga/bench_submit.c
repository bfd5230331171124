/* SPDX-License-Identifier: Apache-2.0 */
/* The FPGA's part of tests/vendor/bench.h. */
#include "host.h"

#include "backends/fpga/internal.h"
#include "tests/vendor/bench.h"

static const char design[] = "platform hal_stand_in_1\nbank DDR[0] ddr4 0x0 16M\n"
			     "kernel work 1\narg d memory 4 0\narg ns ulong\n";

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
static void run_bare(struct bench_rig *r, long n)
{
	const struct fp_kernel *k = r->kernel;
	const struct fp_mem *mem = r->mem;
	void *run = k->design->units[k->index * k->design->x.slot_count].run;
	uint64_t now;
	uint32_t idle;

	while (n--) {
		bench_result((uint32_t)bare_submit(run, mem->bo, 100));
		while (xrt.xrtRunState(run) != XRT_COMPLETED)
			xrt.advance(UINT64_MAX, &now, &idle);
	}
}

static struct hal_bk_config cfg = {.clock = 1};

static const struct hal_backend *backend(const struct hal_host *h)
{
	cfg.xclbin = make_file(design);
	return hal_backend_fpga(h);
}

static void *image(size_t *size)
{
	return make_image(design, size);
}

static const struct bench_mode modes[] = {
	{"", &cfg, bench_launch}, {"bare", &cfg, run_bare}, {0}};

const struct bench_vendor bench_vendor = {
	.backend = backend, .image = image, .color_mask = 1, .modes = modes};
