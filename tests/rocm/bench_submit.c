/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ROCm's part of tests/vendor/bench.h.  Built with OF_HSA 1: in a queue of HSA's, and the
 * same packets by hand.
 */
#include "host.h"

#include "backends/rocm/internal.h"
#include "tests/vendor/bench.h"

/* What a program would write that needs nothing but this launch and its end. */
__attribute__((noinline)) static uint32_t bare_submit(const struct rocm_queue *q,
						      void *function, void *mem,
						      uint64_t ns, uint32_t value)
{
	void *params[] = {&mem, &ns};
	uint32_t r = hip.hipModuleLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, q->stream,
					       params, NULL);

	if (!r)
		r = hip.hipStreamWriteValue32(q->stream, q->word_at, value, 0);
	return r;
}

/* The same in a queue of HSA's: the arguments, the packet, its doorbell. */
__attribute__((noinline)) static void
bare_submit_packet(struct rocm_aql *a, const struct rocm_entry *e, void *mem, uint64_t ns)
{
	const uint64_t hidden[2] = {UINT64_C(3) << 48 | UINT64_C(1) << 32 | 1, 0};
	struct hsa_packet *p = a->queue->base;
	uint64_t number, *args = (uint64_t *)(void *)a->arguments;

	args[0] = (uintptr_t)mem;
	args[1] = ns;
	args[2] = hidden[0];
	args[3] = hidden[1];
	if (a->written - hsa.hsa_queue_load_read_index_scacquire(a->queue) >=
	    a->queue->size)
		return;
	hsa.hsa_signal_store_relaxed(a->signals[0], 1);
	number = hsa.hsa_queue_add_write_index_screlease(a->queue, 1);
	p += number % a->queue->size;
	p->block[0] = p->block[1] = p->block[2] = 1;
	p->grid[0] = p->grid[1] = p->grid[2] = 1;
	p->private_bytes = e->private_bytes;
	p->group_bytes = e->group_bytes;
	p->kernel = e->object;
	p->kernarg = (uintptr_t)a->arguments_at;
	p->completion = a->signals[0];
	__atomic_store_n((uint32_t *)(void *)p,
			 HSA_PACKET_DISPATCH | HSA_PACKET_IN_ORDER | HSA_PACKET_ACQUIRE |
				 HSA_PACKET_RELEASE | 3u << 16,
			 __ATOMIC_RELEASE);
	a->written = number + 1;
	hsa.hsa_signal_store_screlease(a->queue->doorbell, (int64_t)number);
}

static void run_packets(struct rocm_aql *a, const struct rocm_kernel *k,
			const struct rocm_mem *mem, long n)
{
	uint64_t now;
	uint32_t idle;

	while (n--) {
		bare_submit_packet(a, &k->entry, mem->address, 100);
		while (hsa.hsa_signal_load_scacquire(a->signals[0]) > 0)
			hip.advance(UINT64_MAX, &now, &idle);
	}
}

static void run_bare(struct bench_rig *r, long n)
{
	const struct rocm_queue *q = r->queue;
	const struct rocm_kernel *k = r->kernel;
	const struct rocm_mem *mem = r->mem;
	uint64_t now;
	uint32_t i, idle;

	if (q->aql) {
		run_packets(q->aql, k, mem, n);
		return;
	}
	for (i = 1; i <= n; i++) {
		bench_result(bare_submit(q, k->function, mem->address, 100, i));
		while (__atomic_load_n(q->word, __ATOMIC_ACQUIRE) != i)
			hip.advance(UINT64_MAX, &now, &idle);
	}
}

static void *image(size_t *size)
{
	static const char *const kernels[] = {"work:m8"};

	return make_rocm_image(kernels, 1, 1, size);
}

static uint64_t calls(void)
{
	return stand_in()->calls(NULL);
}

/* As many in flight as the backend's option says by default. */
static const struct hal_bk_config deep = {
	.clock = 1, .inflight = 32, .partitions = OF_HSA, .queues = OF_HSA};
static const struct hal_bk_config cfg = {
	.clock = 1, .partitions = OF_HSA, .queues = OF_HSA};

static const struct bench_mode modes[] = {{"", &cfg, bench_launch},
					  {"bare", &cfg, run_bare},
					  {"calls", &deep, bench_calls},
					  {0}};

const struct bench_vendor bench_vendor = {.backend = hal_backend_rocm,
					  .image = image,
					  .modes = modes,
					  .name = OF_HSA ? "rocm_hsa" : "rocm",
					  .calls = calls};
