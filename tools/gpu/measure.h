/* SPDX-License-Identifier: Apache-2.0 */
/* measure.h - what the measurements of hal-gpu-measure have alike. */
#ifndef TOOLS_GPU_MEASURE_H
#define TOOLS_GPU_MEASURE_H

#include "examples/gpu_library.h"

enum { TIMES_MOST = 1000, LONG = 65536, ROOM = 4 * LONG };

/* No measurement of many takes longer, however slow the device is: it is of fewer. */
#define BUDGET_NS UINT64_C(6000000000)

struct gpu {
	struct hal_device *dev;
	struct hal_device_info info;
	struct hal_program *program;
};

extern const char *target, *kernels;
extern uint32_t times; /* HAL_GPU_TIMES: fewer */
extern struct gpu gpu; /* the target */

struct tenant {
	const struct gpu *gpu;
	struct hal_partition *part;
	struct hal_queue *queue;
	struct hal_buffer *mem; /* ROOM bytes */
	uint32_t units;
};

uint64_t now_ns(void);
struct gpu gpu_open(const char *of);
struct gpu gpu_open_with(const char *of, const char *option);
void gpu_close(const struct gpu *g);
struct tenant tenant_on(const struct gpu *g, uint32_t units); /* 0: all */
void end(struct tenant *t);
/* Another queue of its partition, with memory of its own. */
struct tenant second(const struct tenant *t, const struct hal_queue_desc *desc);
void end_second(const struct tenant *t);

void wait_for(struct hal_point p);
struct hal_point add(const struct tenant *t);     /* a block */
struct hal_point product(const struct tenant *t); /* 256 blocks, a while */
/* Blocks of one thread. */
struct hal_point spin(const struct tenant *t, uint64_t rounds, uint32_t blocks);

/* Marks the multiprocessors that a launch ran on, of 4,096; how many.  CUDA alone. */
uint32_t where(const struct tenant *t, bool *on);

/* Sorts them and says p50 and p99, as figures too: NAME_p50_us, NAME_p99_us.  p50; 0 if
 * there are none. */
uint64_t say(const char *text, const char *name, uint64_t *ns, uint32_t count);
void figure(const char *name, const char *unit, double value);
/* Commands of its queue so far, as the device tells: the host may be late. */
uint64_t busy_of(const struct tenant *t);
/* Rounds of a block that takes about that long while it is alone. */
uint64_t rounds_of(const struct tenant *t, uint64_t ns);
/* The same while the partition is full of them, where that is known. */
uint64_t rounds_among(const struct tenant *t, uint64_t ns);
/* Of such blocks, as many as take about that long together; at most LONG. */
uint32_t blocks_of(const struct tenant *t, uint64_t rounds, uint64_t ns);

/* Long blocks and short ones, on the target and on one with that option besides, by
 * turns: what it costs.  The other one, open. */
struct gpu take_turns(const char *name, const char *option);

void measure_launch(void);
void measure_entry(void);
void measure_slices(void);
void measure_graphs(void);
void measure_local(void);
void measure_beside(void);
void measure_channels(void);
void measure_setup(void);
void measure_copies(void);
void measure_policies(void);
void measure_vmm(void);
void measure_bounds(void);
void measure_stray(void);
void measure_storm(void);
void measure_witness(void);

#endif
