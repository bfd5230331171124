/* SPDX-License-Identifier: Apache-2.0 */
/* What is CUDA's own of the stand-in. */
#ifndef TESTS_FAKES_CUDA_INTERNAL_H
#define TESTS_FAKES_CUDA_INTERNAL_H

#include <stdbool.h>

#include "backends/cuda/cu_calls.h"
#include "stand_in.h"
#include "tests/fakes/gpu/world.h"

enum { DEVICES = 2 };

/* A green context: which units its streams may use. */
struct green {
	struct object object;
	bool unit[UNITS_MAX];
};

/* qmd.c: the export table; and a launch's descriptor, shown to whoever subscribed. */
const void *export_table(void);
void qmd_show(const struct device *dev, bool off[UNITS_MAX]);

/* What the environment wants of the driver there: "ignored", or "crash" and "hang", which
 * it does. */
bool ignores(const char *variable);

/* A launch as it would be pushed; what cuLaunchKernel and a node's parameters are held
 * to.
 */
uint32_t launch_job(struct job *j, void *function, const uint32_t grid[3],
		    const uint32_t block[3], uint32_t shared, void **params,
		    void **extra);

/* calls.c and graph.c: what each entry point does */
#define STAND_IN_DECLARE(name, params, args) uint32_t do_##name params;
CU_ALL_CALLS(STAND_IN_DECLARE)
uint32_t set_up(void);

#endif
