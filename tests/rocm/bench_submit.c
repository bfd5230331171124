/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_submit N [bare]: N launches of two arguments, through the backend's table, or
 * bare: the same calls of HIP by hand; built with OF_HSA 1, in a queue of HSA's, and the
 * same packets by hand.  For callgrind: ../fakes/overhead.sh counts what of rocm_submit
 * and of bare_submit is their own and not the library's.
 */
#include "host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/rocm/internal.h"

static int check(int err)
{
	if (err >= 0)
		return err;
	fprintf(stderr, "%d %s\n", err, host_text);
	exit(1);
}

/* What a program would write that needs nothing but this launch, its time and its end. */
__attribute__((noinline)) static uint32_t bare_submit(const struct rocm_queue *q,
						      void *function, void *mem,
						      uint64_t ns, uint32_t value)
{
	void *params[] = {&mem, &ns};
	uint32_t r = hip.hipEventRecord(q->idle, q->stream);

	if (!r)
		r = hip.hipModuleLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, q->stream,
					      params, NULL);
	if (!r)
		r = hip.hipEventRecord(q->slots[0].end, q->stream);
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
			const struct rocm_mem *mem, uint32_t n)
{
	uint32_t i, idle;
	uint64_t now;

	for (i = 0; i < n; i++) {
		bare_submit_packet(a, &k->entry, mem->address, 100);
		while (hsa.hsa_signal_load_scacquire(a->signals[0]) > 0)
			hip.advance(UINT64_MAX, &now, &idle);
	}
}

static void run_bare(const struct rocm_queue *q, const struct rocm_kernel *k,
		     const struct rocm_mem *mem, uint32_t n)
{
	uint32_t i, idle, r = 0;
	uint64_t now;

	if (q->aql) {
		run_packets(q->aql, k, mem, n);
		return;
	}
	for (i = 1; i <= n && !r; i++) {
		r = bare_submit(q, k->function, mem->address, 100, i);
		while (!r && __atomic_load_n(q->word, __ATOMIC_ACQUIRE) != i)
			hip.advance(UINT64_MAX, &now, &idle);
	}
	check(r ? -1 : 0);
}

int main(int argc, char **argv)
{
	static const char *const kernels[] = {"work:m8"};
	const struct hal_bk_partition_desc pd = {.units = 1, .rows = 1, .cols = 1};
	const struct hal_bk_config cfg = {
		.clock = 1, .partitions = OF_HSA, .queues = OF_HSA};
	const struct hal_backend *b = hal_backend_rocm(&host);
	const uint32_t n = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 1000;
	void *dev, *part, *queue, *prog, *kernel, *mem, *image;
	struct hal_bk_arg args[2] = {{NULL, 0, 4}, {NULL, 100, 0}};
	struct hal_bk_cmd cmd = {.op = HAL_OP_LAUNCH};
	struct hal_bk_kernel_info info;
	struct hal_bk_event ev;
	size_t size;
	uint32_t i;

	image = make_rocm_image(kernels, 1, 1, &size);
	check(b->cold.open(&cfg, 0, &dev));
	check(b->cold.partition_create(dev, &pd, &part));
	check(b->cold.queue_create(dev, part, 0, &queue));
	check(b->cold.program_load(dev, image, size, &prog));
	check(b->cold.kernel_get(dev, prog, 0, &info, &kernel));
	check(b->cold.mem_alloc(dev, part, 4, NULL, 0, &mem));
	args[0].mem = mem;
	cmd.launch.kernel = kernel;
	cmd.launch.args = args;
	cmd.launch.arg_count = 2;
	for (i = 0; i < 3; i++)
		cmd.launch.groups[i] = 1;
	if (argc > 2 && strcmp(argv[2], "bare") == 0)
		run_bare(queue, kernel, mem, n);
	else
		for (i = 0; i < n; i++) {
			check(b->hot.submit(dev, queue, &cmd));
			check(b->hot.poll(dev, UINT64_MAX, &ev, 1));
		}
	check(b->cold.queue_destroy(dev, queue));
	check(b->cold.mem_free(dev, mem));
	check(b->cold.program_unload(dev, prog));
	check(b->cold.partition_destroy(dev, part));
	b->cold.close(dev);
	free(image);
	return 0;
}
