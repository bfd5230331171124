/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every call of the driver that is made here, once: X(name, parameters, arguments), by
 * the names that carry today's meaning: without their suffix some are older functions.
 */
#ifndef BACKENDS_CUDA_CU_CALLS_H
#define BACKENDS_CUDA_CU_CALLS_H

#include "cu_abi.h"

/* clang-format off */
#define CU_CALLS(X) \
X(cuInit, (uint32_t flags), (flags)) \
X(cuDriverGetVersion, (int *version), (version)) \
X(cuDeviceGetCount, (int *count), (count)) \
X(cuDeviceGet, (int *device, int ordinal), (device, ordinal)) \
X(cuDeviceGetName, (char *name, int bytes, int device), (name, bytes, device)) \
X(cuDeviceTotalMem_v2, (size_t *bytes, int device), (bytes, device)) \
X(cuDeviceGetAttribute, (int *value, uint32_t attribute, int device), \
	(value, attribute, device)) \
X(cuDeviceGetPCIBusId, (char *id, int bytes, int device), (id, bytes, device)) \
X(cuDevicePrimaryCtxRetain, (void **context, int device), (context, device)) \
X(cuDevicePrimaryCtxRelease_v2, (int device), (device)) \
X(cuCtxSetCurrent, (void *context), (context)) \
X(cuCtxPushCurrent_v2, (void *context), (context)) \
X(cuCtxPopCurrent_v2, (void **context), (context)) \
X(cuCtxGetStreamPriorityRange, (int *least, int *greatest), (least, greatest)) \
X(cuCtxGetLimit, (size_t *value, uint32_t limit), (value, limit)) \
X(cuCtxSetLimit, (uint32_t limit, size_t value), (limit, value)) \
X(cuThreadExchangeStreamCaptureMode, (uint32_t *mode), (mode)) \
X(cuMemGetInfo_v2, (size_t *left, size_t *total), (left, total)) \
X(cuMemAlloc_v2, (uint64_t *address, size_t bytes), (address, bytes)) \
X(cuMemFree_v2, (uint64_t address), (address)) \
X(cuMemGetAddressRange_v2, (uint64_t *base, size_t *bytes, uint64_t address), \
	(base, bytes, address)) \
X(cuMemHostAlloc, (void **p, size_t bytes, uint32_t flags), (p, bytes, flags)) \
X(cuMemFreeHost, (void *p), (p)) \
X(cuMemHostGetDevicePointer_v2, (uint64_t *address, void *p, uint32_t flags), \
	(address, p, flags)) \
X(cuMemcpyAsync, (uint64_t dst, uint64_t src, size_t bytes, void *stream), \
	(dst, src, bytes, stream)) \
X(cuMemsetD32Async, (uint64_t dst, uint32_t value, size_t count, void *stream), \
	(dst, value, count, stream)) \
X(cuStreamCreateWithPriority, (void **stream, uint32_t flags, int priority), \
	(stream, flags, priority)) \
X(cuStreamDestroy_v2, (void *stream), (stream)) \
X(cuStreamQuery, (void *stream), (stream)) \
X(cuStreamSynchronize, (void *stream), (stream)) \
X(cuStreamGetCtx, (void *stream, void **context), (stream, context)) \
X(cuStreamGetFlags, (void *stream, uint32_t *flags), (stream, flags)) \
X(cuStreamIsCapturing, (void *stream, uint32_t *status), (stream, status)) \
X(cuStreamWriteValue32_v2, \
	(void *stream, uint64_t address, uint32_t value, uint32_t flags), \
	(stream, address, value, flags)) \
X(cuEventCreate, (void **event, uint32_t flags), (event, flags)) \
X(cuEventDestroy_v2, (void *event), (event)) \
X(cuEventRecord, (void *event, void *stream), (event, stream)) \
X(cuEventSynchronize, (void *event), (event)) \
X(cuEventElapsedTime, (float *ms, void *begin, void *end), (ms, begin, end)) \
X(cuModuleLoadDataEx, (void **module, const void *image, uint32_t count, \
	uint32_t *options, void **values), (module, image, count, options, values)) \
X(cuModuleUnload, (void *module), (module)) \
X(cuModuleGetFunction, (void **function, void *module, const char *name), \
	(function, module, name)) \
X(cuFuncLoad, (void *function), (function)) \
X(cuFuncGetAttribute, (int *value, uint32_t attribute, void *function), \
	(value, attribute, function)) \
X(cuFuncSetAttribute, (void *function, uint32_t attribute, int value), \
	(function, attribute, value)) \
X(cuFuncGetParamInfo, (void *function, size_t index, size_t *offset, size_t *bytes), \
	(function, index, offset, bytes)) \
X(cuOccupancyMaxActiveBlocksPerMultiprocessor, (int *blocks, void *function, \
	int threads, size_t shared), (blocks, function, threads, shared)) \
X(cuLaunchKernel, (void *function, uint32_t grid_x, uint32_t grid_y, uint32_t grid_z, \
	uint32_t block_x, uint32_t block_y, uint32_t block_z, uint32_t shared, \
	void *stream, void **params, void **extra), \
	(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream, \
	params, extra))
/* clang-format on */

/* What partitions need: green contexts, since CUDA 12.4 and 12.5; masks; whose result of
 * a trial it is. */
/* clang-format off */
#define CU_MORE_CALLS(X) \
X(cuDeviceGetUuid_v2, (unsigned char *uuid, int device), (uuid, device)) \
X(cuGetExportTable, (const void **table, const void *uuid), (table, uuid)) \
X(cuDeviceGetDevResource, (int device, struct cu_resource *resource, uint32_t type), \
	(device, resource, type)) \
X(cuDevSmResourceSplitByCount, (struct cu_resource *parts, uint32_t *count, \
	const struct cu_resource *whole, struct cu_resource *rest, uint32_t flags, \
	uint32_t least), (parts, count, whole, rest, flags, least)) \
X(cuDevResourceGenerateDesc, (void **desc, struct cu_resource *parts, uint32_t count), \
	(desc, parts, count)) \
X(cuGreenCtxCreate, (void **green, void *desc, int device, uint32_t flags), \
	(green, desc, device, flags)) \
X(cuGreenCtxDestroy, (void *green), (green)) \
X(cuGreenCtxStreamCreate, (void **stream, void *green, uint32_t flags, int priority), \
	(stream, green, flags, priority))
/* clang-format on */

/* What recorded commands are given as, with graphs=yes. */
/* clang-format off */
#define CU_GRAPH_CALLS(X) \
X(cuGraphCreate, (void **graph, uint32_t flags), (graph, flags)) \
X(cuGraphDestroy, (void *graph), (graph)) \
X(cuGraphAddKernelNode_v2, (void **node, void *graph, void *const *behind, size_t count, \
	const struct cu_kernel_node *params), (node, graph, behind, count, params)) \
X(cuGraphAddMemcpyNode, (void **node, void *graph, void *const *behind, size_t count, \
	const struct cu_copy_node *params, void *context), \
	(node, graph, behind, count, params, context)) \
X(cuGraphAddMemsetNode, (void **node, void *graph, void *const *behind, size_t count, \
	const struct cu_fill_node *params, void *context), \
	(node, graph, behind, count, params, context)) \
X(cuGraphAddBatchMemOpNode, (void **node, void *graph, void *const *behind, size_t count, \
	const struct cu_memory_ops_node *params), (node, graph, behind, count, params)) \
X(cuGraphInstantiateWithFlags, (void **exec, void *graph, unsigned long long flags), \
	(exec, graph, flags)) \
X(cuGraphExecDestroy, (void *exec), (exec)) \
X(cuGraphExecKernelNodeSetParams_v2, (void *exec, void *node, \
	const struct cu_kernel_node *params), (exec, node, params)) \
X(cuGraphExecMemcpyNodeSetParams, (void *exec, void *node, \
	const struct cu_copy_node *params, void *context), (exec, node, params, context)) \
X(cuGraphExecMemsetNodeSetParams, (void *exec, void *node, \
	const struct cu_fill_node *params, void *context), (exec, node, params, context)) \
X(cuGraphLaunch, (void *exec, void *stream), (exec, stream))
/* clang-format on */

/* What memory=vmm is made of, since CUDA 10.2. */
/* clang-format off */
#define CU_VMM_CALLS(X) \
X(cuMemGetAllocationGranularity, (size_t *bytes, const struct cu_memory_prop *prop, \
	uint32_t option), (bytes, prop, option)) \
X(cuMemAddressReserve, (uint64_t *address, size_t bytes, size_t alignment, \
	uint64_t hint, unsigned long long flags), \
	(address, bytes, alignment, hint, flags)) \
X(cuMemAddressFree, (uint64_t address, size_t bytes), (address, bytes)) \
X(cuMemCreate, (uint64_t *memory, size_t bytes, const struct cu_memory_prop *prop, \
	unsigned long long flags), (memory, bytes, prop, flags)) \
X(cuMemRelease, (uint64_t memory), (memory)) \
X(cuMemMap, (uint64_t address, size_t bytes, size_t offset, uint64_t memory, \
	unsigned long long flags), (address, bytes, offset, memory, flags)) \
X(cuMemUnmap, (uint64_t address, size_t bytes), (address, bytes)) \
X(cuMemSetAccess, (uint64_t address, size_t bytes, const struct cu_access *desc, \
	size_t count), (address, bytes, desc, count))
/* clang-format on */

/* What other processes have of such memory, since CUDA 10.2 and 11.0. */
/* clang-format off */
#define CU_SHARE_CALLS(X) \
X(cuMemRetainAllocationHandle, (uint64_t *memory, void *address), (memory, address)) \
X(cuMemExportToShareableHandle, (void *fd, uint64_t memory, uint32_t type, \
	unsigned long long flags), (fd, memory, type, flags)) \
X(cuMemImportFromShareableHandle, (uint64_t *memory, void *fd, uint32_t type), \
	(memory, fd, type))
/* clang-format on */

/* Memory of the application that copy engines reach. */
/* clang-format off */
#define CU_REGISTER_CALLS(X) \
X(cuMemHostRegister_v2, (void *p, size_t bytes, uint32_t flags), (p, bytes, flags)) \
X(cuMemHostUnregister, (void *p), (p))
/* clang-format on */
#define CU_ALL_CALLS(X)                                                                  \
	CU_CALLS(X)                                                                      \
	CU_MORE_CALLS(X)                                                                 \
	CU_GRAPH_CALLS(X)                                                                \
	CU_VMM_CALLS(X)                                                                  \
	CU_SHARE_CALLS(X)                                                                \
	CU_REGISTER_CALLS(X)

enum cu_call {
#define CU_NUMBER(name, params, args) CU_CALL_##name,
	CU_CALLS(CU_NUMBER)
	/* clang-format off */
	CU_CALL_COUNT, /* of those that are needed */
	CU_CALL_LAST = CU_CALL_COUNT - 1,
	CU_MORE_CALLS(CU_NUMBER)
	CU_GRAPH_CALLS(CU_NUMBER)
	CU_VMM_CALLS(CU_NUMBER)
	CU_SHARE_CALLS(CU_NUMBER)
	CU_REGISTER_CALLS(CU_NUMBER)
	CU_ALL_CALL_COUNT,
/* clang-format on */
#undef CU_NUMBER
};

#endif
