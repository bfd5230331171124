/* SPDX-License-Identifier: Apache-2.0 */
/* Our declarations against HIP's header, where that is installed (libamdhip64-dev). */
#define __HIP_PLATFORM_AMD__ 1
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <hip/hip_runtime_api.h>

#include "backends/rocm/hip_calls.h"

#define SAME(a, b)          _Static_assert((int)(a) == (int)(b), #a)
#define RESULT(name, value) SAME(hipError##name, value);
HIPR_RESULTS(RESULT)

SAME(HIPA_MAJOR, hipDeviceAttributeComputeCapabilityMajor);
SAME(HIPA_MAX_BLOCK_X, hipDeviceAttributeMaxBlockDimX);
SAME(HIPA_MAX_BLOCK_X + 2, hipDeviceAttributeMaxBlockDimZ);
SAME(HIPA_MAX_GRID_X, hipDeviceAttributeMaxGridDimX);
SAME(HIPA_MAX_GRID_X + 2, hipDeviceAttributeMaxGridDimZ);
SAME(HIPA_MAX_THREADS_PER_BLOCK, hipDeviceAttributeMaxThreadsPerBlock);
SAME(HIPA_MULTIPROCESSORS, hipDeviceAttributeMultiprocessorCount);
SAME(HIPA_MAX_SHARED, hipDeviceAttributeMaxSharedMemoryPerBlock);
SAME(HIP_COPY_DEFAULT, hipMemcpyDefault);
SAME(HIP_STREAM_NON_BLOCKING, hipStreamNonBlocking);
SAME(HIP_EVENT_BLOCKING_SYNC, hipEventBlockingSync);
SAME(HIP_EVENT_DISABLE_TIMING, hipEventDisableTiming);
SAME(HIP_HOST_PORTABLE, hipHostMallocPortable);
SAME(HIP_HOST_MAPPED, hipHostMallocMapped);
SAME(HIP_HOST_COHERENT, hipHostMallocCoherent);

_Static_assert(offsetof(struct hip_properties, arch) ==
		       offsetof(hipDeviceProp_t, gcnArchName),
	       "the name of the architecture");
_Static_assert(sizeof(struct hip_properties) >= sizeof(hipDeviceProp_t), "its room");
_Static_assert(sizeof(hipError_t) == sizeof(uint32_t), "result");
_Static_assert(sizeof(hipStream_t) == sizeof(void *), "handle");

/* As wide, argument by argument, in the calls that have more than handles. */
#define TYPE(call, ...)                                                                  \
	_Static_assert(                                                                  \
		__builtin_types_compatible_p(__typeof__(call), hipError_t(__VA_ARGS__)), \
		#call)
TYPE(hipGetDeviceProperties, hipDeviceProp_t *, int);
TYPE(hipDeviceGetPCIBusId, char *, int, int);
TYPE(hipMemGetInfo, size_t *, size_t *);
TYPE(hipMalloc, void **, size_t);
TYPE(hipHostMalloc, void **, size_t, unsigned int);
TYPE(hipHostGetDevicePointer, void **, void *, unsigned int);
TYPE(hipMemcpyAsync, void *, const void *, size_t, hipMemcpyKind, hipStream_t);
TYPE(hipMemsetD32Async, hipDeviceptr_t, int, size_t, hipStream_t);
TYPE(hipStreamCreateWithPriority, hipStream_t *, unsigned int, int);
TYPE(hipExtStreamCreateWithCUMask, hipStream_t *, uint32_t, const uint32_t *);
TYPE(hipExtStreamGetCUMask, hipStream_t, uint32_t, uint32_t *);
TYPE(hipStreamWaitEvent, hipStream_t, hipEvent_t, unsigned int);
TYPE(hipStreamWriteValue32, hipStream_t, void *, uint32_t, unsigned int);
TYPE(hipEventCreateWithFlags, hipEvent_t *, unsigned int);
TYPE(hipEventRecord, hipEvent_t, hipStream_t);
TYPE(hipEventElapsedTime, float *, hipEvent_t, hipEvent_t);
TYPE(hipModuleLoadData, hipModule_t *, const void *);
TYPE(hipModuleGetFunction, hipFunction_t *, hipModule_t, const char *);
TYPE(hipModuleLaunchKernel, hipFunction_t, unsigned int, unsigned int, unsigned int,
     unsigned int, unsigned int, unsigned int, unsigned int, hipStream_t, void **,
     void **);

static void compiled(void **state)
{
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(compiled)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
