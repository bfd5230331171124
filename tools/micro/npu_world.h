/* SPDX-License-Identifier: Apache-2.0 */
/* npu_world.h - an NPU as an application has it, for benchmarks: a partition of all PEs,
 * one queue, and kernels of hal/npu.h timed on it. */
#ifndef HALBENCH_NPU_WORLD_H
#define HALBENCH_NPU_WORLD_H

#include <stdint.h>

#include <hal/npu.h>

enum { NPU_WORLD_ARGS = 4 };

struct npu_world {
	struct hal_device *dev;
	struct hal_partition *part;
	struct hal_queue *queue;
	uint32_t rows, cols; /* of PEs */
};

/* Open target.  Returns 0, BENCH_SKIP if there is no such device, or TOOL_FAILED. */
int npu_world_open(struct npu_world *w, const char *target);
/* Returns 0 or TOOL_FAILED. */
int npu_world_close(struct npu_world *w);

/* Load what b has built, launch kernel once with count new buffers of these many bytes
 * (at most NPU_WORLD_ARGS), and unload it.  Sets *cycles: device time from the submission
 * until the completion was seen.  Returns 0 or a negative errno. */
int npu_world_run(const struct npu_world *w, struct hal_npu_builder *b,
		  const char *kernel, const uint64_t *bytes, uint32_t count,
		  uint64_t *cycles);

/* Read the slot's counters since open.  Returns 0 or a negative errno. */
int npu_world_counters(const struct npu_world *w, struct hal_npu_counters *c);
/* Print what the array has waited for since open. */
void npu_world_print_stalls(const struct npu_world *w);

/* Cycles in which all PEs could do m x n x k: a fold of h x w weights takes a cycle for
 * each of m rows of input, and at least h, in which the next fold's weights are loaded.
 */
uint64_t npu_world_bound(const struct npu_world *w, uint32_t m, uint32_t n, uint32_t k);

#endif
