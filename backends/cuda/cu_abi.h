/* SPDX-License-Identifier: Apache-2.0 */
/* What of CUDA's driver API is used here: values, no types but the plain ones.  Handles
 * are void *, device addresses uint64_t, a device is its ordinal. */
#ifndef BACKENDS_CUDA_CU_ABI_H
#define BACKENDS_CUDA_CU_ABI_H

#include <stddef.h>
#include <stdint.h>

/* All results that CUDA 12.8 has. */
#define CUR_RESULTS(X)                                                                   \
	X(INVALID_VALUE, 1)                                                              \
	X(OUT_OF_MEMORY, 2)                                                              \
	X(NOT_INITIALIZED, 3)                                                            \
	X(DEINITIALIZED, 4)                                                              \
	X(PROFILER_DISABLED, 5)                                                          \
	X(PROFILER_NOT_INITIALIZED, 6)                                                   \
	X(PROFILER_ALREADY_STARTED, 7)                                                   \
	X(PROFILER_ALREADY_STOPPED, 8)                                                   \
	X(STUB_LIBRARY, 34)                                                              \
	X(DEVICE_UNAVAILABLE, 46)                                                        \
	X(NO_DEVICE, 100)                                                                \
	X(INVALID_DEVICE, 101)                                                           \
	X(DEVICE_NOT_LICENSED, 102)                                                      \
	X(INVALID_IMAGE, 200)                                                            \
	X(INVALID_CONTEXT, 201)                                                          \
	X(CONTEXT_ALREADY_CURRENT, 202)                                                  \
	X(MAP_FAILED, 205)                                                               \
	X(UNMAP_FAILED, 206)                                                             \
	X(ARRAY_IS_MAPPED, 207)                                                          \
	X(ALREADY_MAPPED, 208)                                                           \
	X(NO_BINARY_FOR_GPU, 209)                                                        \
	X(ALREADY_ACQUIRED, 210)                                                         \
	X(NOT_MAPPED, 211)                                                               \
	X(NOT_MAPPED_AS_ARRAY, 212)                                                      \
	X(NOT_MAPPED_AS_POINTER, 213)                                                    \
	X(ECC_UNCORRECTABLE, 214)                                                        \
	X(UNSUPPORTED_LIMIT, 215)                                                        \
	X(CONTEXT_ALREADY_IN_USE, 216)                                                   \
	X(PEER_ACCESS_UNSUPPORTED, 217)                                                  \
	X(INVALID_PTX, 218)                                                              \
	X(INVALID_GRAPHICS_CONTEXT, 219)                                                 \
	X(NVLINK_UNCORRECTABLE, 220)                                                     \
	X(JIT_COMPILER_NOT_FOUND, 221)                                                   \
	X(UNSUPPORTED_PTX_VERSION, 222)                                                  \
	X(JIT_COMPILATION_DISABLED, 223)                                                 \
	X(UNSUPPORTED_EXEC_AFFINITY, 224)                                                \
	X(UNSUPPORTED_DEVSIDE_SYNC, 225)                                                 \
	X(CONTAINED, 226)                                                                \
	X(INVALID_SOURCE, 300)                                                           \
	X(FILE_NOT_FOUND, 301)                                                           \
	X(SHARED_OBJECT_SYMBOL_NOT_FOUND, 302)                                           \
	X(SHARED_OBJECT_INIT_FAILED, 303)                                                \
	X(OPERATING_SYSTEM, 304)                                                         \
	X(INVALID_HANDLE, 400)                                                           \
	X(ILLEGAL_STATE, 401)                                                            \
	X(LOSSY_QUERY, 402)                                                              \
	X(NOT_FOUND, 500)                                                                \
	X(NOT_READY, 600)                                                                \
	X(ILLEGAL_ADDRESS, 700)                                                          \
	X(LAUNCH_OUT_OF_RESOURCES, 701)                                                  \
	X(LAUNCH_TIMEOUT, 702)                                                           \
	X(LAUNCH_INCOMPATIBLE_TEXTURING, 703)                                            \
	X(PEER_ACCESS_ALREADY_ENABLED, 704)                                              \
	X(PEER_ACCESS_NOT_ENABLED, 705)                                                  \
	X(PRIMARY_CONTEXT_ACTIVE, 708)                                                   \
	X(CONTEXT_IS_DESTROYED, 709)                                                     \
	X(ASSERT, 710)                                                                   \
	X(TOO_MANY_PEERS, 711)                                                           \
	X(HOST_MEMORY_ALREADY_REGISTERED, 712)                                           \
	X(HOST_MEMORY_NOT_REGISTERED, 713)                                               \
	X(HARDWARE_STACK_ERROR, 714)                                                     \
	X(ILLEGAL_INSTRUCTION, 715)                                                      \
	X(MISALIGNED_ADDRESS, 716)                                                       \
	X(INVALID_ADDRESS_SPACE, 717)                                                    \
	X(INVALID_PC, 718)                                                               \
	X(LAUNCH_FAILED, 719)                                                            \
	X(COOPERATIVE_LAUNCH_TOO_LARGE, 720)                                             \
	X(TENSOR_MEMORY_LEAK, 721)                                                       \
	X(NOT_PERMITTED, 800)                                                            \
	X(NOT_SUPPORTED, 801)                                                            \
	X(SYSTEM_NOT_READY, 802)                                                         \
	X(SYSTEM_DRIVER_MISMATCH, 803)                                                   \
	X(COMPAT_NOT_SUPPORTED_ON_DEVICE, 804)                                           \
	X(MPS_CONNECTION_FAILED, 805)                                                    \
	X(MPS_RPC_FAILURE, 806)                                                          \
	X(MPS_SERVER_NOT_READY, 807)                                                     \
	X(MPS_MAX_CLIENTS_REACHED, 808)                                                  \
	X(MPS_MAX_CONNECTIONS_REACHED, 809)                                              \
	X(MPS_CLIENT_TERMINATED, 810)                                                    \
	X(CDP_NOT_SUPPORTED, 811)                                                        \
	X(CDP_VERSION_MISMATCH, 812)                                                     \
	X(STREAM_CAPTURE_UNSUPPORTED, 900)                                               \
	X(STREAM_CAPTURE_INVALIDATED, 901)                                               \
	X(STREAM_CAPTURE_MERGE, 902)                                                     \
	X(STREAM_CAPTURE_UNMATCHED, 903)                                                 \
	X(STREAM_CAPTURE_UNJOINED, 904)                                                  \
	X(STREAM_CAPTURE_ISOLATION, 905)                                                 \
	X(STREAM_CAPTURE_IMPLICIT, 906)                                                  \
	X(CAPTURED_EVENT, 907)                                                           \
	X(STREAM_CAPTURE_WRONG_THREAD, 908)                                              \
	X(TIMEOUT, 909)                                                                  \
	X(GRAPH_EXEC_UPDATE_FAILURE, 910)                                                \
	X(EXTERNAL_DEVICE, 911)                                                          \
	X(INVALID_CLUSTER_SIZE, 912)                                                     \
	X(FUNCTION_NOT_LOADED, 913)                                                      \
	X(INVALID_RESOURCE_TYPE, 914)                                                    \
	X(INVALID_RESOURCE_CONFIGURATION, 915)                                           \
	X(UNKNOWN, 999)

enum cur_result {
	CUR_SUCCESS = 0,
#define CUR_RESULT(name, value) CUR_##name = (value),
	CUR_RESULTS(CUR_RESULT)
#undef CUR_RESULT
};

enum cu_device_attribute {
	CUA_MAX_THREADS_PER_BLOCK = 1,
	CUA_MAX_BLOCK_X = 2, /* and y, z */
	CUA_MAX_GRID_X = 5,  /* and y, z */
	CUA_MAX_SHARED = 8,  /* of a block, without asking */
	CUA_MULTIPROCESSORS = 16,
	CUA_UNIFIED_ADDRESSING = 41,
	CUA_MAJOR = 75,
	CUA_MINOR = 76,
	CUA_MAX_SHARED_OPTIN = 97,
	CUA_VMM = 102,
	CUA_EXPORT_FD = 103, /* memory that was made for it, as a file descriptor */
	CUA_MPS = 133,       /* contexts are shared by MPS; since CUDA 12.2 */
};

enum cu_function_attribute {
	CUF_MAX_THREADS_PER_BLOCK = 0,
	CUF_SHARED_BYTES = 1, /* static */
	CUF_LOCAL_BYTES = 3,  /* of a thread */
	CUF_MAX_DYNAMIC_SHARED = 8,
	CUF_CLUSTER_X = 11, /* and y, z: blocks of a cluster, by the kernel; 0: none */
};

#define CU_STACK_BYTES          0u

#define CU_STREAM_NON_BLOCKING  1u

#define CU_EVENT_TIMED          0u
#define CU_EVENT_BLOCKING_SYNC  1u
#define CU_EVENT_DISABLE_TIMING 2u

#define CU_HOST_PORTABLE        1u
#define CU_HOST_DEVICEMAP       2u

#define CU_JIT_ERROR_LOG        5u
#define CU_JIT_ERROR_LOG_BYTES  6u

#define CU_CAPTURE_RELAXED      2u

#define CU_GREEN_DEFAULT_STREAM 1u

#define CU_RESOURCE_SM          1u

/* Multiprocessors, for green contexts. */
struct cu_resource {
	uint32_t type;
	unsigned char internal[92];
	uint32_t count, least, together; /* of multiprocessors; the driver's to write */
	unsigned char more[36];
};

/* What nodes of a graph are made of. */
struct cu_kernel_node {
	void *function;
	uint32_t grid[3], block[3], shared;
	void **params, **extra;
	void *kernel, *context; /* not where there is a function */
};

#define CU_MEMORY_UNIFIED 4u

struct cu_copy_side {
	size_t at[4]; /* x in bytes, y, z, level */
	uint32_t type;
	void *host;
	uint64_t address;
	void *array, *reserved;
	size_t pitch, height;
};

struct cu_copy_node {
	struct cu_copy_side src, dst;
	size_t width, height, depth; /* width in bytes */
};

struct cu_fill_node {
	uint64_t address;
	size_t pitch;
	uint32_t value, element; /* bytes of one */
	size_t width, height;    /* in elements */
};

#define CU_OP_WRITE_32 2u

union cu_memory_op {
	struct {
		uint32_t operation;
		uint64_t address;
		uint32_t value, high;
		uint32_t flags;
		uint64_t alias;
	} write;
	uint64_t pad[6];
};

struct cu_memory_ops_node {
	void *context;
	uint32_t count;
	union cu_memory_op *ops;
	uint32_t flags;
};

/* Memory that is placed at addresses of one's own. */
#define CU_LOCATION_DEVICE     1u
#define CU_MEMORY_PINNED       1u
#define CU_ACCESS_READ_WRITE   3u
#define CU_GRANULARITY_MINIMUM 0u
#define CU_HANDLE_FD           1u /* what memory is exported as */

struct cu_location {
	uint32_t type;
	int id; /* the device */
};

struct cu_memory_prop {
	uint32_t type, handles;
	struct cu_location location;
	void *metadata;
	unsigned char compression, rdma;
	uint16_t usage;
	unsigned char reserved[4];
};

struct cu_access {
	struct cu_location location;
	uint32_t flags;
};

#define CU_VERSION(major, minor) ((major)*1000 + (minor)*10)

#endif
