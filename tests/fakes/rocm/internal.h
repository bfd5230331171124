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

/* What programs call, and the backend does not. */
/* clang-format off */
#define HIP_PROGRAM_CALLS(X) \
X(hipStreamAddCallback, (void *stream, \
	void (*fn)(void *stream, uint32_t result, void *user), void *user, \
	uint32_t flags), (stream, fn, user, flags))
#define HIP_STAND_IN_CALLS(X) HIP_ALL_CALLS(X) HIP_PROGRAM_CALLS(X)

enum hip_stand_in_call {
	HIP_STAND_IN_CALL_LAST = HIP_ALL_CALL_COUNT - 1,
#define STAND_IN_NUMBER(name, params, args) HIP_CALL_##name,
	HIP_PROGRAM_CALLS(STAND_IN_NUMBER)
#undef STAND_IN_NUMBER
	HIP_STAND_IN_CALL_COUNT
};
/* clang-format on */

#define STAND_IN_DECLARE(name, params, args) uint32_t do_##name params;
HIP_STAND_IN_CALLS(STAND_IN_DECLARE)
uint32_t set_up(void);

#endif
