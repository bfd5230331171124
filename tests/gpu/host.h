/* SPDX-License-Identifier: Apache-2.0 */
/* host.h - a core of a few lines, so that a test drives the table of a GPU's backend
 * itself; tests/cuda and tests/rocm have a face each. */
#ifndef TESTS_GPU_HOST_H
#define TESTS_GPU_HOST_H

#include <hal/backend.h>

#include "tests/fakes/gpu/stand_in.h"

/* The options that backends ask for; what is not named has its default. */
struct hal_bk_config {
	const char *library, *helper, *topology;
	int64_t clock, inflight, memory, partitions, trial_ms, preempt, hang_ms;
	int64_t graphs, queues, range, bounds, mark_every, slice_us, remainder;
};

struct host_face {
	const char *library, *topology; /* defaults of the options */
	const char *stand_in;           /* that LD_LIBRARY_PATH finds */
};
extern const struct host_face host_face;

extern const struct hal_host host;
extern char host_text[512]; /* of the last host.fail */

/* While it is not 0, the backend's calls of this thread are for the thread of the
 * application that has this number: as the engine acts for its callers. */
extern _Thread_local uint64_t host_acts_for;

/* NULL: it is not there. */
const struct gpu_stand_in *stand_in(void);

#endif
