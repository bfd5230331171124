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
	/* The one that has times. */
	void *event = q->marks ? q->slots[0].timer : q->slots[0].event;
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
static const struct hal_bk_config deeper = {.clock = 1, .inflight = 64};

/* The same as bench_calls where each launch has other arguments than the one before it:
 * both of work's, as the second one of two buffers takes turns with the first. */
static void run_calls(struct bench_rig *r, long n)
{
	const struct hal_bk_hot *hot = &r->b->hot;
	struct hal_bk_event ev[64];
	void *buffers[2] = {r->mem};
	long given = 0, done = 0;
	uint64_t before;

	bench_calls(r, n);
	bench_check(r->b->cold.mem_alloc(r->dev, r->part, 4, NULL, 0, &buffers[1]));
	before = calls();
	while (done < n) {
		for (; given < n && given - done < deep.inflight; given++) {
			r->args[0].mem = buffers[given & 1];
			r->args[1].value = 100 + (uint64_t)(given & 1);
			bench_check(hot->submit(r->dev, r->queue, &r->launch));
		}
		done += bench_check(hot->poll(r->dev, UINT64_MAX, ev, 64));
	}
	printf("figure levelzero.launch.new_arguments.driver_calls %.3f\n",
	       (double)(calls() - before) / (double)n);
	bench_check(r->b->cold.mem_free(r->dev, buffers[1]));
}

static const struct bench_mode modes[] = {{"", &cfg, bench_launch},
					  {"bare", &cfg, run_bare},
					  {"calls", &deep, run_calls},
					  {"calls64", &deeper, bench_calls},
					  {0}};

const struct bench_vendor bench_vendor = {.backend = hal_backend_levelzero,
					  .image = image,
					  .modes = modes,
					  .name = "levelzero",
					  .calls = calls};
