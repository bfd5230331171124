/* SPDX-License-Identifier: Apache-2.0 */
/* host.h - a core of a few lines, so that a test drives the backend's table itself. */
#ifndef TESTS_CUDA_HOST_H
#define TESTS_CUDA_HOST_H

#include <hal/backend.h>

#include "tests/fakes/cuda/image.h"
#include "tests/fakes/cuda/stand_in.h"

/* The options that the backend asks for; what is not named has its default. */
struct hal_bk_config {
	const char *library;
	int64_t clock, inflight, memory, partitions, trial_ms, preempt, hang_ms, graphs;
	const char *helper;
};

extern const struct hal_host host;
extern char host_text[512]; /* of the last host.fail */

const struct hal_backend *hal_backend_cuda(const struct hal_host *h);

/* The driver that LD_LIBRARY_PATH finds. */
const struct gpu_stand_in *stand_in(void);

#endif
