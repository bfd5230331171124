/* SPDX-License-Identifier: Apache-2.0 */
/* Every call of HIP that is made here, once: X(name, parameters, arguments).  Those that
 * are needed are in 5.2.3 and in what came after it. */
#ifndef BACKENDS_ROCM_HIP_CALLS_H
#define BACKENDS_ROCM_HIP_CALLS_H

#include "hip_abi.h"

/* clang-format off */
#define HIP_CALLS(X) \
X(hipInit, (uint32_t flags), (flags)) \
X(hipGetDeviceCount, (int *count), (count)) \
X(hipGetDeviceProperties, (struct hip_properties *p, int device), (p, device)) \
X(hipDeviceGetAttribute, (int *value, uint32_t attribute, int device), \
	(value, attribute, device)) \
X(hipDeviceGetPCIBusId, (char *id, int bytes, int device), (id, bytes, device)) \
X(hipGetDevice, (int *device), (device)) \
X(hipSetDevice, (int device), (device)) \
X(hipDeviceGetStreamPriorityRange, (int *least, int *greatest), (least, greatest)) \
X(hipMemGetInfo, (size_t *left, size_t *total), (left, total)) \
X(hipMalloc, (void **p, size_t bytes), (p, bytes)) \
X(hipFree, (void *p), (p)) \
X(hipMemGetAddressRange, (void **base, size_t *bytes, void *p), (base, bytes, p)) \
X(hipHostMalloc, (void **p, size_t bytes, uint32_t flags), (p, bytes, flags)) \
X(hipHostFree, (void *p), (p)) \
X(hipHostGetDevicePointer, (void **device, void *host, uint32_t flags), \
	(device, host, flags)) \
X(hipMemcpyAsync, (void *dst, const void *src, size_t bytes, uint32_t kind, \
	void *stream), (dst, src, bytes, kind, stream)) \
X(hipMemsetD32Async, (void *dst, int value, size_t count, void *stream), \
	(dst, value, count, stream)) \
X(hipStreamCreateWithPriority, (void **stream, uint32_t flags, int priority), \
	(stream, flags, priority)) \
X(hipExtStreamCreateWithCUMask, (void **stream, uint32_t words, const uint32_t *mask), \
	(stream, words, mask)) \
X(hipExtStreamGetCUMask, (void *stream, uint32_t words, uint32_t *mask), \
	(stream, words, mask)) \
X(hipStreamDestroy, (void *stream), (stream)) \
X(hipStreamQuery, (void *stream), (stream)) \
X(hipStreamSynchronize, (void *stream), (stream)) \
X(hipStreamGetFlags, (void *stream, uint32_t *flags), (stream, flags)) \
X(hipStreamIsCapturing, (void *stream, uint32_t *status), (stream, status)) \
X(hipStreamWaitEvent, (void *stream, void *event, uint32_t flags), \
	(stream, event, flags)) \
X(hipStreamWriteValue32, (void *stream, void *to, uint32_t value, uint32_t flags), \
	(stream, to, value, flags)) \
X(hipEventCreateWithFlags, (void **event, uint32_t flags), (event, flags)) \
X(hipEventDestroy, (void *event), (event)) \
X(hipEventRecord, (void *event, void *stream), (event, stream)) \
X(hipEventSynchronize, (void *event), (event)) \
X(hipEventElapsedTime, (float *ms, void *begin, void *end), (ms, begin, end)) \
X(hipModuleLoadData, (void **module, const void *image), (module, image)) \
X(hipModuleUnload, (void *module), (module)) \
X(hipModuleGetFunction, (void **function, void *module, const char *name), \
	(function, module, name)) \
X(hipModuleLaunchKernel, (void *function, uint32_t grid_x, uint32_t grid_y, \
	uint32_t grid_z, uint32_t block_x, uint32_t block_y, uint32_t block_z, \
	uint32_t shared, void *stream, void **params, void **extra), \
	(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream, \
	params, extra))
/* clang-format on */

/* What need not be there: a thread's mode while others capture streams; registered
 * memory; the compiler, for the kernel that tells where it ran. */
/* clang-format off */
#define HIP_MORE_CALLS(X) \
X(hipThreadExchangeStreamCaptureMode, (uint32_t *mode), (mode)) \
X(hipHostRegister, (void *p, size_t bytes, uint32_t flags), (p, bytes, flags)) \
X(hipHostUnregister, (void *p), (p)) \
X(hiprtcCreateProgram, (void **program, const char *source, const char *name, \
	int count, const char *const *headers, const char *const *names), \
	(program, source, name, count, headers, names)) \
X(hiprtcCompileProgram, (void *program, int count, const char *const *options), \
	(program, count, options)) \
X(hiprtcGetCodeSize, (void *program, size_t *bytes), (program, bytes)) \
X(hiprtcGetCode, (void *program, char *code), (program, code)) \
X(hiprtcDestroyProgram, (void **program), (program))
/* clang-format on */

/* Memory that other processes have, too.  All are in 5.2.3, which does not do it and has
 * other structures for it. */
/* clang-format off */
#define HIP_SHARE_CALLS(X) \
X(hipRuntimeGetVersion, (int *version), (version)) \
X(hipMemGetAllocationGranularity, (size_t *bytes, const struct hip_memory_prop *prop, \
	uint32_t option), (bytes, prop, option)) \
X(hipMemCreate, (void **memory, size_t bytes, const struct hip_memory_prop *prop, \
	unsigned long long flags), (memory, bytes, prop, flags)) \
X(hipMemRelease, (void *memory), (memory)) \
X(hipMemExportToShareableHandle, (void *fd, void *memory, uint32_t type, \
	unsigned long long flags), (fd, memory, type, flags)) \
X(hipMemImportFromShareableHandle, (void **memory, void *fd, uint32_t type), \
	(memory, fd, type)) \
X(hipMemAddressReserve, (void **address, size_t bytes, size_t alignment, void *hint, \
	unsigned long long flags), (address, bytes, alignment, hint, flags)) \
X(hipMemAddressFree, (void *address, size_t bytes), (address, bytes)) \
X(hipMemMap, (void *address, size_t bytes, size_t offset, void *memory, \
	unsigned long long flags), (address, bytes, offset, memory, flags)) \
X(hipMemUnmap, (void *address, size_t bytes), (address, bytes)) \
X(hipMemSetAccess, (void *address, size_t bytes, const struct hip_access *desc, \
	size_t count), (address, bytes, desc, count))
/* clang-format on */

/* Contexts of some CUs, whose streams have priorities. */
/* clang-format off */
#define HIP_GREEN_CALLS(X) \
X(hipDeviceGetDevResource, (int device, struct hip_resource *resource, \
	uint32_t type), \
	(device, resource, type)) \
X(hipDevSmResourceSplitByCount, (struct hip_resource *parts, uint32_t *count, \
	const struct hip_resource *whole, struct hip_resource *rest, uint32_t flags, \
	uint32_t least), (parts, count, whole, rest, flags, least)) \
X(hipDevResourceGenerateDesc, (void **desc, struct hip_resource *parts, \
	uint32_t count), (desc, parts, count)) \
X(hipGreenCtxCreate, (void **context, void *desc, int device, uint32_t flags), \
	(context, desc, device, flags)) \
X(hipExecutionCtxDestroy, (void *context), (context)) \
X(hipExecutionCtxStreamCreate, (void **stream, void *context, uint32_t flags, \
	int priority), (stream, context, flags, priority))
/* clang-format on */
#define HIP_ALL_CALLS(X)                                                                 \
	HIP_CALLS(X) HIP_MORE_CALLS(X) HIP_SHARE_CALLS(X) HIP_GREEN_CALLS(X)

enum hip_call {
#define HIP_NUMBER(name, params, args) HIP_CALL_##name,
	HIP_CALLS(HIP_NUMBER)
	/* clang-format off */
	HIP_CALL_COUNT, /* of those that are needed */
	HIP_CALL_LAST = HIP_CALL_COUNT - 1,
	HIP_MORE_CALLS(HIP_NUMBER)
	HIP_SHARE_CALLS(HIP_NUMBER)
	HIP_GREEN_CALLS(HIP_NUMBER)
	HIP_ALL_CALL_COUNT
/* clang-format on */
#undef HIP_NUMBER
};

#endif
