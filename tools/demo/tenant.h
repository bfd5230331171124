/* SPDX-License-Identifier: Apache-2.0 */
/* A tenant of the demo: a partition, a queue, one program, and jobs whose right answers
 * are known.  Functions return 0 or TOOL_FAILED. */
#ifndef DEMO_TENANT_H
#define DEMO_TENANT_H

#include <stdbool.h>
#include <stdint.h>

#include <hal/hal.h>
#include <hal/npu.h>

#include "digits.h"

/* What a tenant computes: count different jobs, one after the other and round again. */
struct work {
	char title[24];
	const char *kernel; /* of the image; arguments: output, input */
	void *image;        /* NPU program */
	size_t image_size;
	uint64_t macs; /* of one job */
	uint32_t count;
	uint32_t in_bytes, out_bytes;
	uint32_t in_room, out_room; /* what the kernel wants of its arguments at least */
	int8_t *inputs;             /* [count][in_bytes] */
	int8_t *expected;           /* [count][out_bytes]: the reference's answers */
	uint8_t *labels;            /* [count]; NULL: not a classifier */
};

/* Cycles of each job of one run, in order. */
struct run {
	uint64_t *cycles, *begins; /* device time */
	uint64_t done, room;
	uint64_t begin, end; /* device time: first start, last end */
};

struct tenant {
	const char *name; /* of [partition "name"] */
	const struct work *work;
	uint64_t jobs; /* to do at least; 0: as long as others work */
	struct hal_device *dev;
	struct hal_partition *part;
	struct hal_partition_info info;
	struct hal_queue *queue;
	struct hal_program *program;
	struct hal_kernel *kernel;
	struct hal_buffer *input, *output, *stamps;
	int8_t *answer; /* one job's, read back */
	struct run *run;
	uint64_t base;      /* points of the queue before this run */
	uint64_t submitted; /* jobs of this run */
	uint64_t classified, right;
	uint64_t mismatched_bits;
	struct run together, alone;
	uint64_t submitted_together;
	uint64_t macs_before, macs_counted; /* by the device, side by side */
};

/* A digit network over the first count images; the reference computes what is expected.
 */
int work_digits(struct work *w, const char *data, const char *network,
		const struct digits_images *images, uint32_t count);
/* DIR/<network>_int8.tflite; inputs and TensorFlow Lite's answers as the file sums says.
 */
int work_network(struct work *w, const char *models, const char *network,
		 const char *sums);
/* Matrix products with int32 results, from a fixed seed. */
int work_gemm(struct work *w);
void work_free(struct work *w);

/* Makes the tenant's partition as the configuration says, and all it needs there. */
int tenant_open(struct tenant *t, struct hal_device *dev);
/* Gives all of that back; what was measured stays until tenant_free. */
void tenant_close(struct tenant *t);
void tenant_free(struct tenant *t);

/* Told after each finished job, and about ten times a second.  Other than 0: stop here.
 */
typedef int (*progress_fn)(void *user, const struct tenant *tenants, uint32_t count);

/* Runs the tenants side by side until each has done its jobs and checks every answer;
 * results go to .together, or to .alone when there is but one.  0, TOOL_FAILED, or what
 * progress has returned. */
int tenants_run(struct tenant *tenants, uint32_t count, progress_fn progress, void *user);

#endif
