/* SPDX-License-Identifier: Apache-2.0 */
/* Entry points of the stand-in, by those of tests/fakes/gpu; then calls.c. */
#define _GNU_SOURCE
#include "internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

static const char *const call_names[STAND_IN_CALL_COUNT] = {
#define NAME(name, params, args)        #name,
#define TYPED(type, name, params, args) #name,
	HIP_STAND_IN_CALLS(NAME) HSA_CALLS(NAME) HSA_VALUE_CALLS(TYPED)
		HSA_STORE_CALLS(TYPED)
#undef NAME
#undef TYPED
};

/* Memory that is not there: the runtime prints, and ends the process. */
void device_fault(struct device *dev)
{
	const char *how = setting("FAULT");

	if (!how || strcmp(how, "sticky") != 0) {
		fprintf(stderr, "stand-in: Memory access fault by GPU node-%u\n",
			dev->index + 1);
		abort();
	}
	device_lose(dev, HIPR_IllegalAddress);
}

/* HIP starts itself with whatever call comes first. */
static uint32_t state(uint32_t call)
{
	if (call == HIP_CALL_hipInit || call == HSA_CALL_hsa_init)
		return HIPR_Success;
	/* What it answers does not depend on how the device is. */
	if (call >= HIP_STAND_IN_CALL_COUNT) {
		if (hsa_started && !forked())
			return HSAR_SUCCESS;
		misuse("%s: before hsa_init, or after a fork", call_names[call]);
		return HSAR_NOT_INITIALIZED;
	}
	if (!world.ready || forked()) {
		misuse("%s: before hipInit, or after a fork", call_names[call]);
		return HIPR_NotInitialized;
	}
	if (call <= HIP_CALL_hipSetDevice)
		return HIPR_Success;
	/* The compiler has no device. */
	if (call >= HIP_CALL_hiprtcCreateProgram && call <= HIP_CALL_hiprtcDestroyProgram)
		return HIPR_Success;
	return current_device()->lost;
}

/* What may wait for streams, or for the device. */
static bool disturbs(uint32_t call)
{
	return call == HIP_CALL_hipMalloc || call == HIP_CALL_hipFree ||
	       call == HIP_CALL_hipHostMalloc || call == HIP_CALL_hipHostFree ||
	       call == HIP_CALL_hipHostRegister || call == HIP_CALL_hipHostUnregister ||
	       call == HIP_CALL_hipStreamQuery || call == HIP_CALL_hipStreamSynchronize ||
	       call == HIP_CALL_hipEventSynchronize || call == HIP_CALL_hipMemMap ||
	       call == HIP_CALL_hipMemUnmap || call == HIP_CALL_hipMemSetAccess ||
	       call == HIP_CALL_hipModuleLoadData || call == HIP_CALL_hipModuleUnload;
}

static bool sticky(uint32_t r)
{
	return r == HIPR_ECCNotCorrectable || r == HIPR_IllegalAddress ||
	       r == HIPR_LaunchTimeOut || r == HIPR_ContextIsDestroyed ||
	       r == HIPR_Assert || r == HIPR_LaunchFailure || r == HIPR_Unknown;
}

static uint32_t place(const struct device *dev, uint32_t unit)
{
	return kfd_hw_id(&kfd_gpus[dev->index], unit);
}

static uint32_t channels(void)
{
	const char *text = getenv("GPU_MAX_HW_QUEUES");
	const int n = text ? atoi(text) : 4;

	return n < 1 ? 1 : n > 32 ? 32 : (uint32_t)n;
}

const struct face face = {
	.environment = "HAL_STAND_IN_HIP_",
	.calls = call_names,
	.count = STAND_IN_CALL_COUNT,
	.vmm_granule = 4096,
	.state = state,
	.sticky = sticky,
	.disturbs = disturbs,
	.place = place,
	.frees_wait = true,
	.channels = channels,
	.entries = 16384,
};

#define ENTRY(name, params, args)                                                        \
	EXPORT uint32_t name params;                                                     \
	EXPORT uint32_t name params                                                      \
	{                                                                                \
		uint32_t r;                                                              \
                                                                                         \
		if (!enter(HIP_CALL_##name, HIP_CALL_##name == (int)HIP_CALL_hipInit,    \
			   &r))                                                          \
			r = do_##name args;                                              \
		return leave(r);                                                         \
	}
HIP_STAND_IN_CALLS(ENTRY)

#define HSA_ENTRY(name, params, args)                                                    \
	EXPORT uint32_t name params;                                                     \
	EXPORT uint32_t name params                                                      \
	{                                                                                \
		uint32_t r;                                                              \
                                                                                         \
		if (!enter(HSA_CALL_##name, HSA_CALL_##name == (int)HSA_CALL_hsa_init,   \
			   &r))                                                          \
			r = do_##name args;                                              \
		return leave(r);                                                         \
	}
HSA_CALLS(HSA_ENTRY)

/* They answer no status, so that they cannot fail. */
#define HSA_VALUE_ENTRY(type, name, params, args)                                        \
	EXPORT type name params;                                                         \
	EXPORT type name params                                                          \
	{                                                                                \
		uint32_t r;                                                              \
		type got = 0;                                                            \
                                                                                         \
		if (!enter(HSA_CALL_##name, false, &r))                                  \
			got = do_##name args;                                            \
		(void)leave(0);                                                          \
		return got;                                                              \
	}
HSA_VALUE_CALLS(HSA_VALUE_ENTRY)

#define HSA_STORE_ENTRY(type, name, params, args)                                        \
	EXPORT type name params;                                                         \
	EXPORT type name params                                                          \
	{                                                                                \
		uint32_t r;                                                              \
                                                                                         \
		if (!enter(HSA_CALL_##name, false, &r))                                  \
			do_##name args;                                                  \
		(void)leave(0);                                                          \
	}
HSA_STORE_CALLS(HSA_STORE_ENTRY)

EXPORT void halStandInHipDrive(uint32_t on);
EXPORT void halStandInHipDrive(uint32_t on)
{
	drive(on);
}

EXPORT uint32_t halStandInHipBusy(uint32_t device);
EXPORT uint32_t halStandInHipBusy(uint32_t device)
{
	return busy(device);
}

EXPORT void halStandInHipAdvance(uint64_t until_ns, uint64_t *now_ns, uint32_t *idle);
EXPORT void halStandInHipAdvance(uint64_t until_ns, uint64_t *now_ns, uint32_t *idle)
{
	advance(until_ns, now_ns, idle);
}
