/* SPDX-License-Identifier: Apache-2.0 */
/* What is HIP's own of the stand-in. */
#ifndef TESTS_FAKES_ROCM_INTERNAL_H
#define TESTS_FAKES_ROCM_INTERNAL_H

#include "backends/rocm/hip_calls.h"
#include "backends/rocm/hsa_calls.h"
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
	HIP_STAND_IN_CALL_COUNT,
	HIP_STAND_IN_CALL_BEHIND = HIP_STAND_IN_CALL_COUNT - 1,
#define STAND_IN_NUMBER(name, params, args) HSA_CALL_##name,
#define STAND_IN_TYPED(type, name, params, args) HSA_CALL_##name,
	HSA_CALLS(STAND_IN_NUMBER)
	HSA_VALUE_CALLS(STAND_IN_TYPED)
	HSA_STORE_CALLS(STAND_IN_TYPED)
#undef STAND_IN_NUMBER
#undef STAND_IN_TYPED
	STAND_IN_CALL_COUNT
};
/* clang-format on */

#define STAND_IN_DECLARE(name, params, args)     uint32_t do_##name params;
#define STAND_IN_TYPED(type, name, params, args) type do_##name params;
HIP_STAND_IN_CALLS(STAND_IN_DECLARE)
HSA_CALLS(STAND_IN_DECLARE)
HSA_VALUE_CALLS(STAND_IN_TYPED)
HSA_STORE_CALLS(STAND_IN_TYPED)
uint32_t set_up(void);

/* calls.c */
int hip_version(void);
int hip_device_count(void);
/* vmm.c: the device has memory at addresses of one's own. */
bool hip_has_vmm(void);

/* hsa.c: a handle is where the object is */
#define HSA_JUNK UINT64_C(0x6a756e6b)
struct signal {
	struct object object;
	int64_t value;
	uint32_t users; /* packets that have not ended */
	bool timed;     /* it has the times of one that has */
	bool wakes;     /* who waits for it sleeps */
	uint64_t start_ns, end_ns;
	struct aql *rings; /* whose doorbell it is; NULL */
};
extern bool hsa_started;
struct signal *signal_of(uint64_t handle);
struct signal *make_signal(int64_t value);
/* NULL: no agent, or the host. */
struct device *device_of(uint64_t agent);
/* Where an argument is in the block; with the number of them: how long that is. */
uint32_t argument_at(const struct function *f, uint32_t index);

/* hsa_queue.c */
/* What has been written to the queue up to that number is looked at. */
void ring(struct aql *q, int64_t number);

#endif
