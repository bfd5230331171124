/* SPDX-License-Identifier: Apache-2.0 */
/* Entry points of the stand-in, by those of tests/fakes/gpu; then calls.c. */
#define _GNU_SOURCE
#include "internal.h"

#include <stdlib.h>

#define EXPORT __attribute__((visibility("default")))

static const char *const call_names[CU_STAND_IN_CALL_COUNT] = {
#define NAME(name, params, args) #name,
	CU_STAND_IN_CALLS(NAME)
#undef NAME
};

void device_fault(struct device *dev)
{
	device_lose(dev, CUR_ILLEGAL_ADDRESS);
}

static bool needs_context(uint32_t call)
{
	return (call >= CU_CALL_cuCtxGetStreamPriorityRange && call < CU_CALL_COUNT &&
		call != CU_CALL_cuThreadExchangeStreamCaptureMode) ||
	       call >= CU_CALL_cuGraphCreate;
}

/* What may wait for streams, or for the device. */
static bool disturbs(uint32_t call)
{
	return call == CU_CALL_cuMemAlloc_v2 || call == CU_CALL_cuMemFree_v2 ||
	       call == CU_CALL_cuMemHostAlloc || call == CU_CALL_cuMemFreeHost ||
	       call == CU_CALL_cuMemHostRegister_v2 ||
	       call == CU_CALL_cuMemHostUnregister || call == CU_CALL_cuStreamQuery ||
	       call == CU_CALL_cuStreamSynchronize ||
	       call == CU_CALL_cuEventSynchronize || call == CU_CALL_cuModuleLoadDataEx ||
	       call == CU_CALL_cuModuleUnload || call == CU_CALL_cuMemUnmap ||
	       call == CU_CALL_cuMemSetAccess;
}

/* What every call answers before it does anything. */
static uint32_t state_of(uint32_t call)
{
	const struct device *d = current_device();

	if (call == CU_CALL_cuInit || call == CU_CALL_cuDriverGetVersion)
		return CUR_SUCCESS;
	if (!world.ready || forked())
		return CUR_NOT_INITIALIZED;
	if (!needs_context(call))
		return CUR_SUCCESS;
	if (!d)
		return CUR_INVALID_CONTEXT;
	return d->retained ? d->lost : CUR_CONTEXT_IS_DESTROYED;
}

static uint32_t state(uint32_t call)
{
	const uint32_t r = state_of(call);

	if (r == CUR_NOT_INITIALIZED || r == CUR_INVALID_CONTEXT)
		misuse("%s: %s", call_names[call],
		       r == CUR_INVALID_CONTEXT ? "no context is current"
						: "before cuInit, or after a fork");
	return r;
}

static bool sticky(uint32_t r)
{
	return (r >= CUR_ILLEGAL_ADDRESS && r != CUR_LAUNCH_OUT_OF_RESOURCES &&
		r <= CUR_TENSOR_MEMORY_LEAK) ||
	       r == CUR_UNKNOWN || r == CUR_ECC_UNCORRECTABLE ||
	       r == CUR_MPS_CLIENT_TERMINATED || r == CUR_EXTERNAL_DEVICE;
}

static uint32_t channels(void)
{
	const char *text = getenv("CUDA_DEVICE_MAX_CONNECTIONS");
	const int n = text ? atoi(text) : 8;

	return n < 1 ? 1 : n > 32 ? 32 : (uint32_t)n;
}

const struct face face = {
	.environment = "HAL_STAND_IN_CUDA_",
	.calls = call_names,
	.count = CU_STAND_IN_CALL_COUNT,
	.vmm_granule = UINT64_C(2) << 20,
	.state = state,
	.sticky = sticky,
	.disturbs = disturbs,
	.end_code = code_end,
	.channels = channels,
	.entries = 1021,
};

#define ENTRY(name, params, args)                                                        \
	EXPORT uint32_t name params;                                                     \
	EXPORT uint32_t name params                                                      \
	{                                                                                \
		uint32_t r;                                                              \
                                                                                         \
		if (!enter(CU_CALL_##name, CU_CALL_##name == (int)CU_CALL_cuInit, &r))   \
			r = do_##name args;                                              \
		return leave(r);                                                         \
	}
CU_STAND_IN_CALLS(ENTRY)

/* Names of old: other functions, that take other arguments. */
#define OLD(name)                                                                        \
	EXPORT uint32_t name(void);                                                      \
	EXPORT uint32_t name(void)                                                       \
	{                                                                                \
		uint32_t unused;                                                         \
                                                                                         \
		(void)enter(CU_CALL_cuDriverGetVersion, false, &unused);                 \
		misuse(#name " is not what it was");                                     \
		return leave(CUR_INVALID_CONTEXT);                                       \
	}
OLD(cuDeviceTotalMem)
OLD(cuDevicePrimaryCtxRelease)
OLD(cuCtxPushCurrent)
OLD(cuCtxPopCurrent)
OLD(cuMemGetInfo)
OLD(cuMemAlloc)
OLD(cuMemFree)
OLD(cuMemHostGetDevicePointer)
OLD(cuMemHostRegister)
OLD(cuStreamDestroy)
OLD(cuStreamWriteValue32)
OLD(cuEventDestroy)

EXPORT void halStandInCudaDrive(uint32_t on);
EXPORT void halStandInCudaDrive(uint32_t on)
{
	drive(on);
}

EXPORT uint32_t halStandInCudaBusy(uint32_t device);
EXPORT uint32_t halStandInCudaBusy(uint32_t device)
{
	return busy(device);
}

EXPORT void halStandInCudaAdvance(uint64_t until_ns, uint64_t *now_ns, uint32_t *idle);
EXPORT void halStandInCudaAdvance(uint64_t until_ns, uint64_t *now_ns, uint32_t *idle)
{
	advance(until_ns, now_ns, idle);
}
