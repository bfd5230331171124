/* SPDX-License-Identifier: Apache-2.0 */
/* What of HIP is used here: values as Debian's 5.2.3 headers have them, and plain types.
 * Handles and device addresses are void *, a device is its ordinal. */
#ifndef BACKENDS_ROCM_HIP_ABI_H
#define BACKENDS_ROCM_HIP_ABI_H

#include <stddef.h>
#include <stdint.h>

#define HIPR_RESULTS(X)                                                                  \
	X(InvalidValue, 1)                                                               \
	X(OutOfMemory, 2)                                                                \
	X(NotInitialized, 3)                                                             \
	X(Deinitialized, 4)                                                              \
	X(InvalidConfiguration, 9)                                                       \
	X(InvalidDevicePointer, 17)                                                      \
	X(InsufficientDriver, 35)                                                        \
	X(InvalidDeviceFunction, 98)                                                     \
	X(NoDevice, 100)                                                                 \
	X(InvalidDevice, 101)                                                            \
	X(InvalidImage, 200)                                                             \
	X(InvalidContext, 201)                                                           \
	X(NoBinaryForGpu, 209)                                                           \
	X(ECCNotCorrectable, 214)                                                        \
	X(InvalidKernelFile, 218)                                                        \
	X(SharedObjectSymbolNotFound, 302)                                               \
	X(SharedObjectInitFailed, 303)                                                   \
	X(OperatingSystem, 304)                                                          \
	X(InvalidHandle, 400)                                                            \
	X(IllegalState, 401)                                                             \
	X(NotFound, 500)                                                                 \
	X(NotReady, 600)                                                                 \
	X(IllegalAddress, 700)                                                           \
	X(LaunchOutOfResources, 701)                                                     \
	X(LaunchTimeOut, 702)                                                            \
	X(ContextIsDestroyed, 709)                                                       \
	X(Assert, 710)                                                                   \
	X(HostMemoryAlreadyRegistered, 712)                                              \
	X(HostMemoryNotRegistered, 713)                                                  \
	X(LaunchFailure, 719)                                                            \
	X(NotSupported, 801)                                                             \
	X(StreamCaptureUnsupported, 900)                                                 \
	X(StreamCaptureInvalidated, 901)                                                 \
	X(StreamCaptureImplicit, 906)                                                    \
	X(Unknown, 999)                                                                  \
	X(RuntimeMemory, 1052)                                                           \
	X(RuntimeOther, 1053)

enum hipr_result {
	HIPR_Success = 0,
#define HIPR_RESULT(name, value) HIPR_##name = (value),
	HIPR_RESULTS(HIPR_RESULT)
#undef HIPR_RESULT
};

enum hip_attribute {
	HIPA_MAJOR = 23,
	HIPA_MAX_BLOCK_X = 26, /* and y, z */
	HIPA_MAX_GRID_X = 29,  /* and y, z; of threads */
	HIPA_MAX_THREADS_PER_BLOCK = 56,
	HIPA_MULTIPROCESSORS = 63, /* CUs; where waves run on pairs (RDNA), pairs */
	HIPA_MAX_SHARED = 74,      /* of a block */
	HIPA_VMM = 89, /* memory has addresses of one's own; 6.0 and later know it */
};

#define HIP_COPY_DEFAULT         4u /* where memory lies is known by its address */

#define HIP_STREAM_NON_BLOCKING  1u

#define HIP_CAPTURE_RELAXED      2u /* a thread's mode: no part of captures of others */

#define HIP_EVENT_TIMED          0u
#define HIP_EVENT_BLOCKING_SYNC  1u
#define HIP_EVENT_DISABLE_TIMING 2u

#define HIP_HOST_PORTABLE        1u
#define HIP_HOST_MAPPED          2u
#define HIP_HOST_COHERENT        0x40000000u

/* Memory that is placed at addresses of one's own. */
#define HIP_LOCATION_DEVICE     1u
#define HIP_MEMORY_PINNED       1u
#define HIP_ACCESS_READ_WRITE   3u
#define HIP_GRANULARITY_MINIMUM 0u
#define HIP_HANDLE_FD           1u /* what memory is exported as */

struct hip_location {
	uint32_t type;
	int id; /* the device */
};

struct hip_memory_prop {
	uint32_t type, handle;
	struct hip_location location;
	void *metadata;
	unsigned char compression, rdma;
	uint16_t usage;
};

struct hip_access {
	struct hip_location location;
	uint32_t flags;
};

#define HIP_VERSION_OF(major, minor) ((major)*10000000 + (minor)*100000)

/* As hipGetDeviceProperties fills it: what is used, in more room than any has. */
struct hip_properties {
	char name[256];
	unsigned char numbers[140];
	char arch[256]; /* "gfx90a:sramecc+:xnack-" */
	unsigned char more[3444];
};

/* What contexts of some CUs are made of, from 7.14 on (HIP's execution contexts). */
#define HIP_RESOURCE_CUS 1u
struct hip_resource {
	uint32_t type;
	unsigned char own[92]; /* the runtime's */
	uint32_t count;        /* CUs */
	uint32_t least, together, flags;
	unsigned char more[24];
	struct hip_resource *next;
};

#endif