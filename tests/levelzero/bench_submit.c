/* SPDX-License-Identifier: Apache-2.0 */
/* Level Zero's part of tests/vendor/bench.h. */
#include "host.h"

#include "backends/levelzero/internal.h"
#include "tests/vendor/bench.h"

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
static void run_bare(struct bench_rig *r, long n)
{
	struct lz_device *dev = r->dev;
	const struct lz_queue *q = r->queue;
	const struct lz_kernel *k = r->kernel;
	const struct lz_mem *mem = r->mem;
	void *event = q->slots[0].event;
	struct ze_kernel_timestamp t;
	uint64_t now;
	uint32_t idle;

	while (n--) {
		bench_result(bare_submit(q->list, event, k->handles[0], mem->p, 100));
		while (lz.zeEventQueryStatus(event) == LZ_NOT_READY)
			bench_result(dev->advance(UINT64_MAX, &now, &idle));
		bench_result(lz.zeEventQueryKernelTimestamp(event, &t));
	}
}

static void *image(size_t *size)
{
	static const char *const kernels[] = {"work:m8"};

	return make_image(kernels, 1, 1, size);
}

static uint64_t calls(void)
{
	return stand_in()->calls(NULL);
}

static const struct hal_bk_config cfg = {.clock = 1};
/* As many in flight as the option says by default. */
static const struct hal_bk_config deep = {.clock = 1, .inflight = 32};

static const struct bench_mode modes[] = {{"", &cfg, bench_launch},
					  {"bare", &cfg, run_bare},
					  {"calls", &deep, bench_calls},
					  {0}};

const struct bench_vendor bench_vendor = {.backend = hal_backend_levelzero,
					  .image = image,
					  .modes = modes,
					  .name = "levelzero",
					  .calls = calls};
