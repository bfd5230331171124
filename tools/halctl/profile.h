/* SPDX-License-Identifier: Apache-2.0 */
/* profile.h - what halctl profile finds out; written as docs/profiles.md says. */
#ifndef HALCTL_PROFILE_H
#define HALCTL_PROFILE_H

#include "measure.h"

#define PROFILE_VERSION 1u
/* A launch is bound by memory when it takes so much longer beside copies. */
#define MEMORY_PERMILLE 200u
#define STOP_MODES      (HAL_SUSPEND_KILL + 1u)

/* Of one number of units, .counted is what the engine gives a partition that only says
 * how many. */
struct shape {
	uint32_t rows, cols;
	bool counted;
};

struct kernel {
	struct hal_kernel_info info;
	uint32_t at;          /* which command of the program is its first */
	struct timing *times; /* by shape */
	uint32_t least;       /* shape */
	/* On half of the device, and that beside copies on the other; 0: it has no halves
	 */
	uint64_t half_ns, beside_ns;
	const char *class;
	struct stop_cost stops[STOP_MODES];
};

struct program {
	const struct model *model;
	struct model *own; /* .model, of a network as usually compiled; else NULL */
	uint32_t pairs_of; /* the one of which pairs are measured: the same network */
	bool layers;       /* it has a kernel a layer */
	uint32_t count;
	struct kernel *kernels;
};

struct profile {
	struct bench bench;
	const char *target;
	uint32_t tolerance;         /* in thousandths */
	uint32_t shape_count, full; /* full: the one of all units */
	struct shape *shapes;
	uint32_t count;
	struct program *programs;
	bool halves;
	/* By two programs: how much longer, in thousandths, a request of the first takes
	 * on half of the device while the other runs on the rest. */
	uint64_t *beside;
};

/* As JSON to standard output. */
int profile_print(const struct profile *p);

#endif
