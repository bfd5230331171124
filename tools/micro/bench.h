/* SPDX-License-Identifier: Apache-2.0 */
/* bench.h - what the benchmarks of this folder share: a `ref` device with one partition,
 * a kernel that does nothing and its launch; clocks; an end for a run that hangs. */
#ifndef HALBENCH_BENCH_H
#define HALBENCH_BENCH_H

#include <stdint.h>

#include <hal/hal.h>
#include <hal/ref.h>

#include "tool.h"

#define BENCH_SKIP 77 /* exit status: it cannot run here */

/* The names of all policies; the first BENCH_BASIC order queues by a key of the
 * submission alone. */
enum { BENCH_BASIC = 4, BENCH_POLICY_COUNT = 22 };
extern const char *const bench_policies[BENCH_POLICY_COUNT];

/* Points into itself: it stays where it was opened. */
struct bench {
	struct hal_device *dev;
	struct hal_partition *part;
	struct hal_buffer *in, *out;
	struct hal_program *prog;
	struct hal_kernel *kernel;
	struct hal_queue **queues;
	unsigned int queue_count;
	struct hal_arg args[2];
	struct hal_cmd launch;       /* of the kernel, with two buffers */
	struct hal_submit_desc desc; /* one such launch */
};

/* Says what failed and the library's last error; returns TOOL_FAILED. */
int bench_die(const char *what);
/* The program ends with an error when it is not called again within ten times so many
 * seconds, of which a busy machine needs some. */
void bench_within(unsigned int seconds);
uint64_t bench_now(void); /* CLOCK_MONOTONIC, ns */
uint64_t bench_cpu(void); /* of all threads, ns */

/* These return 0 or TOOL_FAILED.  options as in hal_open; a launch
 * takes span_ns.  A step of priority between one added queue and the next. */
int bench_open(struct bench *b, const char *target, const char *const *options,
	       uint64_t span_ns);
int bench_add_queues(struct bench *b, unsigned int count, int32_t priority_step);
int bench_close(struct bench *b);
/* The image of that kernel loaded once more. */
int bench_load(struct hal_device *dev, uint64_t span_ns, struct hal_program **prog);

#endif
