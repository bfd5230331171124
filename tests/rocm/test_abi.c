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

/* Each call takes as many arguments as ours, each as wide: a pointer where it has one. */
static void prototypes(void **state)
{
	hipError_t (*launch)(hipFunction_t, unsigned int, unsigned int, unsigned int,
			     unsigned int, unsigned int, unsigned int, unsigned int,
			     hipStream_t, void **, void **) = hipModuleLaunchKernel;
	hipError_t (*mask)(hipStream_t *, uint32_t, const uint32_t *) =
		hipExtStreamCreateWithCUMask;
	hipError_t (*get)(hipStream_t, uint32_t, uint32_t *) = hipExtStreamGetCUMask;
	hipError_t (*write)(hipStream_t, void *, uint32_t, unsigned int) =
		hipStreamWriteValue32;
	hipError_t (*set)(hipDeviceptr_t, int, size_t, hipStream_t) = hipMemsetD32Async;
	hipError_t (*copy)(void *, const void *, size_t, hipMemcpyKind, hipStream_t) =
		hipMemcpyAsync;

	(void)state;
	(void)sizeof(launch), (void)sizeof(mask), (void)sizeof(get), (void)sizeof(write),
		(void)sizeof(set), (void)sizeof(copy);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(prototypes)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
