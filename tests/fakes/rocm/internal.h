/* SPDX-License-Identifier: Apache-2.0 */
/* What is HIP's own of the stand-in. */
#ifndef TESTS_FAKES_ROCM_INTERNAL_H
#define TESTS_FAKES_ROCM_INTERNAL_H

#include "backends/rocm/hip_calls.h"
#include "kfd.h"
#include "stand_in.h"
#include "tests/fakes/gpu/world.h"

/* A stream with a mask, and which units that leaves its kernels. */
struct masked {
	struct stream stream;
	bool unit[UNITS_MAX];
	uint32_t words;
	uint32_t mask[KFD_CUS_MAX / 32];
};

#define STAND_IN_DECLARE(name, params, args) uint32_t do_##name params;
HIP_CALLS(STAND_IN_DECLARE)
uint32_t set_up(void);

#endif
