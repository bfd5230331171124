/* SPDX-License-Identifier: Apache-2.0 */
/* Our declarations against HIP's header (libamdhip64-dev): tests/vendor/abi.h. */
#define __HIP_PLATFORM_AMD__ 1
#include "tests/vendor/abi.h"

#include <hip/hip_runtime_api.h>

#include "backends/rocm/hip_calls.h"

static const struct abi_row values[] = {
#define RESULT(name, value) ABI_VALUE(value, hipError##name),
	HIPR_RESULTS(RESULT)
		ABI_VALUE(HIPA_MAJOR, hipDeviceAttributeComputeCapabilityMajor),
	ABI_VALUE(HIPA_MAX_BLOCK_X, hipDeviceAttributeMaxBlockDimX),
	ABI_VALUE(HIPA_MAX_BLOCK_X + 2, hipDeviceAttributeMaxBlockDimZ),
	ABI_VALUE(HIPA_MAX_GRID_X, hipDeviceAttributeMaxGridDimX),
	ABI_VALUE(HIPA_MAX_GRID_X + 2, hipDeviceAttributeMaxGridDimZ),
	ABI_VALUE(HIPA_MAX_THREADS_PER_BLOCK, hipDeviceAttributeMaxThreadsPerBlock),
	ABI_VALUE(HIPA_MULTIPROCESSORS, hipDeviceAttributeMultiprocessorCount),
	ABI_VALUE(HIPA_MAX_SHARED, hipDeviceAttributeMaxSharedMemoryPerBlock),
	ABI_VALUE(HIP_COPY_DEFAULT, hipMemcpyDefault),
	ABI_VALUE(HIP_STREAM_NON_BLOCKING, hipStreamNonBlocking),
	ABI_VALUE(HIP_EVENT_BLOCKING_SYNC, hipEventBlockingSync),
	ABI_VALUE(HIP_EVENT_DISABLE_TIMING, hipEventDisableTiming),
	ABI_VALUE(HIP_HOST_PORTABLE, hipHostMallocPortable),
	ABI_VALUE(HIP_HOST_MAPPED, hipHostMallocMapped),
	ABI_VALUE(HIP_HOST_COHERENT, hipHostMallocCoherent),
};

/* Memory that other processes have: releases before 6 lack some of it. */
static const struct abi_row memory[] = {
#if HIP_VERSION >= 60000000
	ABI_VALUE(HIPA_VMM, hipDeviceAttributeVirtualMemoryManagementSupported),
#endif
	ABI_VALUE(HIP_LOCATION_DEVICE, hipMemLocationTypeDevice),
	ABI_VALUE(HIP_MEMORY_PINNED, hipMemAllocationTypePinned),
	ABI_VALUE(HIP_ACCESS_READ_WRITE, hipMemAccessFlagsProtReadWrite),
	ABI_VALUE(HIP_GRANULARITY_MINIMUM, hipMemAllocationGranularityMinimum),
	ABI_VALUE(HIP_HANDLE_FD, hipMemHandleTypePosixFileDescriptor),
	ABI_SIZE(struct hip_location, hipMemLocation),
	ABI_AT(struct hip_location, id, hipMemLocation, id),
	ABI_SIZE(struct hip_access, hipMemAccessDesc),
	ABI_AT(struct hip_access, flags, hipMemAccessDesc, flags),
#if HIP_VERSION >= 60000000
	ABI_SIZE(struct hip_memory_prop, hipMemAllocationProp),
	ABI_AT(struct hip_memory_prop, handle, hipMemAllocationProp, requestedHandleType),
	ABI_AT(struct hip_memory_prop, location, hipMemAllocationProp, location),
	ABI_AT(struct hip_memory_prop, metadata, hipMemAllocationProp,
	       win32HandleMetaData),
#endif
	ABI_SIZE(void *, hipMemGenericAllocationHandle_t),
};

static const struct abi_row sizes[] = {
	ABI_AT(struct hip_properties, arch, hipDeviceProp_t, gcnArchName),
	ABI_ROW("free space of hipDeviceProp_t", 1,
		sizeof(struct hip_properties) >= sizeof(hipDeviceProp_t)),
	ABI_SIZE(uint32_t, hipError_t),
	ABI_SIZE(void *, hipStream_t),
};

/* As wide, argument by argument, in the calls that have more than handles. */
static const struct abi_row types[] = {
	ABI_TYPE(hipError_t, hipGetDeviceProperties, hipDeviceProp_t *, int),
	ABI_TYPE(hipError_t, hipDeviceGetPCIBusId, char *, int, int),
	ABI_TYPE(hipError_t, hipMemGetInfo, size_t *, size_t *),
	ABI_TYPE(hipError_t, hipMalloc, void **, size_t),
	ABI_TYPE(hipError_t, hipHostMalloc, void **, size_t, unsigned int),
	ABI_TYPE(hipError_t, hipHostGetDevicePointer, void **, void *, unsigned int),
	ABI_TYPE(hipError_t, hipMemcpyAsync, void *, const void *, size_t, hipMemcpyKind,
		 hipStream_t),
	ABI_TYPE(hipError_t, hipMemsetD32Async, hipDeviceptr_t, int, size_t, hipStream_t),
	ABI_TYPE(hipError_t, hipStreamCreateWithPriority, hipStream_t *, unsigned int,
		 int),
	ABI_TYPE(hipError_t, hipExtStreamCreateWithCUMask, hipStream_t *, uint32_t,
		 const uint32_t *),
	ABI_TYPE(hipError_t, hipExtStreamGetCUMask, hipStream_t, uint32_t, uint32_t *),
	ABI_TYPE(hipError_t, hipStreamWaitEvent, hipStream_t, hipEvent_t, unsigned int),
	ABI_TYPE(hipError_t, hipStreamWriteValue32, hipStream_t, void *, uint32_t,
		 unsigned int),
	ABI_TYPE(hipError_t, hipEventCreateWithFlags, hipEvent_t *, unsigned int),
	ABI_TYPE(hipError_t, hipEventRecord, hipEvent_t, hipStream_t),
	ABI_TYPE(hipError_t, hipEventElapsedTime, float *, hipEvent_t, hipEvent_t),
	ABI_TYPE(hipError_t, hipModuleLoadData, hipModule_t *, const void *),
	ABI_TYPE(hipError_t, hipModuleGetFunction, hipFunction_t *, hipModule_t,
		 const char *),
	ABI_TYPE(hipError_t, hipModuleLaunchKernel, hipFunction_t, unsigned int,
		 unsigned int, unsigned int, unsigned int, unsigned int, unsigned int,
		 unsigned int, hipStream_t, void **, void **),
};

static const struct abi_group groups[] = {
	ABI_GROUP(values), ABI_GROUP(memory), ABI_GROUP(sizes), ABI_GROUP(types), {0}};

const struct abi_vendor abi_vendor = {.groups = groups};
