/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA's part of tests/vendor/bench.h.  bare: a launch, and the number that says that it
 * has ended.  eight: N times eight that were recorded; graphs: the same
 * with graphs=yes.
 */
#include "host.h"

#include <stdio.h>

#include "backends/cuda/internal.h"
#include "tests/vendor/bench.h"

/* What a program would write that wants to know when this launch has ended. */
__attribute__((noinline)) static uint32_t bare_submit(struct cu_queue *q, void *function,
						      uint64_t mem, uint64_t ns)
{
	void *params[2] = {&mem, &ns};
	uint32_t r =
		cu.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, q->stream, params, NULL);

	if (!r)
		r = cu.cuStreamWriteValue32_v2(q->stream, q->word.address,
					       ++q->base.given, 0);
	return r;
}

static void run_bare(struct bench_rig *r, long n)
{
	const struct cu_kernel *k = r->kernel;
	const struct cu_mem *mem = r->mem;
	struct cu_queue *q = r->queue;
	void *popped;

	bench_result(cu.cuCtxPushCurrent_v2(((struct cu_device *)r->dev)->context));
	while (n--) {
		bench_result(bare_submit(q, k->function, mem->address, 100));
		bench_result(cu.cuStreamSynchronize(q->stream));
	}
	bench_result(cu.cuCtxPopCurrent_v2(&popped));
}

/* Eight that come again and again, given at once. */
static void run_eight(struct bench_rig *r, long n)
{
	const struct hal_bk_hot *hot = &r->b->hot;
	uint64_t calls = 0;
	struct hal_bk_event ev[8];
	long i, k;

	for (i = 0; i <= n; i++) {
		const uint64_t before = stand_in()->calls(NULL);

		for (k = 0; k < 8; k++) {
			r->launch.flags =
				HAL_BK_CMD_RECORDED | (k == 7 ? HAL_BK_CMD_LAST : 0);
			bench_check(hot->submit(r->dev, r->queue, &r->launch));
		}
		calls = stand_in()->calls(NULL) - before;
		for (k = 0; k < 8; k += bench_check(hot->poll(r->dev, UINT64_MAX, ev, 8)))
			;
	}
	printf("%lu calls of the driver for the eight\n", (unsigned long)calls);
}

/* The nodes of the graph that eight recorded launches become. */
static void run_nodes(struct bench_rig *r, long n)
{
	const struct gpu_stand_in *s = stand_in();

	run_eight(r, n);
	printf("figure cuda.graph8.nodes %lu\n",
	       (unsigned long)(s->calls("cuGraphAddKernelNode_v2") +
			       s->calls("cuGraphAddMemcpyNode") +
			       s->calls("cuGraphAddMemsetNode") +
			       s->calls("cuGraphAddBatchMemOpNode")));
}

static uint64_t calls(void)
{
	return stand_in()->calls(NULL);
}

static void *image(size_t *size)
{
	static const char *const kernels[] = {"work:m8"};

	return make_cuda_image(kernels, 1, 1, size);
}

/* As many in flight as the backend's option says by default. */
static const struct hal_bk_config deep = {.clock = 1, .inflight = 32};
static const struct hal_bk_config plain = {.clock = 1, .inflight = 4};
static const struct hal_bk_config eight = {.clock = 1, .inflight = 8};
static const struct hal_bk_config graphs = {.clock = 1, .inflight = 8, .graphs = 1};

static const struct bench_mode modes[] = {{"", &plain, bench_launch},
					  {"bare", &plain, run_bare},
					  {"eight", &eight, run_eight},
					  {"graphs", &graphs, run_eight},
					  {"nodes", &graphs, run_nodes},
					  {"calls", &deep, bench_calls},
					  {0}};

const struct bench_vendor bench_vendor = {.backend = hal_backend_cuda,
					  .image = image,
					  .modes = modes,
					  .name = "cuda",
					  .calls = calls};
