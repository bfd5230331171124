/* SPDX-License-Identifier: Apache-2.0 */
/* Our declarations against the toolkit's header: tests/vendor/abi.h. */
#include "tests/vendor/abi.h"

#include <cuda.h>

#include "backends/cuda/cu_calls.h"

static const struct abi_row values[] = {
#define RESULT(name, value) ABI_VALUE(value, CUDA_ERROR_##name),
	CUR_RESULTS(RESULT) ABI_VALUE(CUA_MAX_THREADS_PER_BLOCK,
				      CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK),
	ABI_VALUE(CUA_MAX_BLOCK_X, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X),
	ABI_VALUE(CUA_MAX_BLOCK_X + 2, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z),
	ABI_VALUE(CUA_MAX_GRID_X, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X),
	ABI_VALUE(CUA_MAX_GRID_X + 2, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z),
	ABI_VALUE(CUA_MAX_SHARED, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK),
	ABI_VALUE(CUA_MULTIPROCESSORS, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT),
	ABI_VALUE(CUA_UNIFIED_ADDRESSING, CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING),
	ABI_VALUE(CUA_MAJOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
	ABI_VALUE(CUA_MINOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR),
	ABI_VALUE(CUA_MAX_SHARED_OPTIN,
		  CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN),
	ABI_VALUE(CUA_VMM, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED),
	ABI_VALUE(CUA_EXPORT_FD,
		  CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED),
	ABI_VALUE(CU_HANDLE_FD, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
	ABI_VALUE(CUA_MPS, CU_DEVICE_ATTRIBUTE_MPS_ENABLED),
	ABI_VALUE(CU_LOCATION_DEVICE, CU_MEM_LOCATION_TYPE_DEVICE),
	ABI_VALUE(CU_MEMORY_PINNED, CU_MEM_ALLOCATION_TYPE_PINNED),
	ABI_VALUE(CU_ACCESS_READ_WRITE, CU_MEM_ACCESS_FLAGS_PROT_READWRITE),
	ABI_VALUE(CU_GRANULARITY_MINIMUM, CU_MEM_ALLOC_GRANULARITY_MINIMUM),
	ABI_VALUE(CUF_MAX_THREADS_PER_BLOCK, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK),
	ABI_VALUE(CUF_SHARED_BYTES, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES),
	ABI_VALUE(CUF_LOCAL_BYTES, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES),
	ABI_VALUE(CU_STACK_BYTES, CU_LIMIT_STACK_SIZE),
	ABI_VALUE(CUF_MAX_DYNAMIC_SHARED,
		  CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES),
	ABI_VALUE(CU_HOST_PORTABLE, CU_MEMHOSTALLOC_PORTABLE),
	ABI_VALUE(CU_HOST_DEVICEMAP, CU_MEMHOSTALLOC_DEVICEMAP),
	ABI_VALUE(CU_HOST_PORTABLE, CU_MEMHOSTREGISTER_PORTABLE),
	ABI_VALUE(CU_HOST_DEVICEMAP, CU_MEMHOSTREGISTER_DEVICEMAP),
	ABI_VALUE(CU_JIT_ERROR_LOG, CU_JIT_ERROR_LOG_BUFFER),
	ABI_VALUE(CU_JIT_ERROR_LOG_BYTES, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES),
	ABI_VALUE(CU_CAPTURE_RELAXED, CU_STREAM_CAPTURE_MODE_RELAXED),
	ABI_VALUE(CU_GREEN_DEFAULT_STREAM, CU_GREEN_CTX_DEFAULT_STREAM),
	ABI_VALUE(CU_RESOURCE_SM, CU_DEV_RESOURCE_TYPE_SM),
	ABI_VALUE(CUF_CLUSTER_X, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH),
	ABI_VALUE(CU_MEMORY_UNIFIED, CU_MEMORYTYPE_UNIFIED),
	ABI_VALUE(CU_OP_WRITE_32, CU_STREAM_MEM_OP_WRITE_VALUE_32),
};

static const struct abi_row sizes[] = {
	/* As wide as the toolkit's, argument by argument: what a call passes on would not
	 * compile where a pointer and a number are taken for each other, so sizes are
	 * left. */
	ABI_SIZE(uint64_t, CUdeviceptr),
	ABI_SIZE(int, CUdevice),
	ABI_SIZE(uint32_t, CUresult),
	ABI_SIZE(uint32_t, CUjit_option),
	ABI_SIZE(uint32_t, CUstreamCaptureMode),
	ABI_SIZE(struct cu_resource, CUdevResource),
	ABI_AT(struct cu_resource, count, CUdevResource, sm),
	ABI_AT(struct cu_resource, together, CUdevResource, sm.smCoscheduledAlignment),
	ABI_SIZE(void *, CUstream),
};

/* Nodes of graphs. */
static const struct abi_row nodes[] = {
	ABI_SIZE(struct cu_kernel_node, CUDA_KERNEL_NODE_PARAMS),
	ABI_AT(struct cu_kernel_node, grid, CUDA_KERNEL_NODE_PARAMS, gridDimX),
	ABI_AT(struct cu_kernel_node, block, CUDA_KERNEL_NODE_PARAMS, blockDimX),
	ABI_AT(struct cu_kernel_node, shared, CUDA_KERNEL_NODE_PARAMS, sharedMemBytes),
	ABI_AT(struct cu_kernel_node, params, CUDA_KERNEL_NODE_PARAMS, kernelParams),
	ABI_AT(struct cu_kernel_node, extra, CUDA_KERNEL_NODE_PARAMS, extra),
	ABI_SIZE(struct cu_copy_node, CUDA_MEMCPY3D),
	ABI_AT(struct cu_copy_node, src.type, CUDA_MEMCPY3D, srcMemoryType),
	ABI_AT(struct cu_copy_node, src.address, CUDA_MEMCPY3D, srcDevice),
	ABI_AT(struct cu_copy_node, src.pitch, CUDA_MEMCPY3D, srcPitch),
	ABI_AT(struct cu_copy_node, dst.at, CUDA_MEMCPY3D, dstXInBytes),
	ABI_AT(struct cu_copy_node, dst.type, CUDA_MEMCPY3D, dstMemoryType),
	ABI_AT(struct cu_copy_node, dst.address, CUDA_MEMCPY3D, dstDevice),
	ABI_AT(struct cu_copy_node, dst.pitch, CUDA_MEMCPY3D, dstPitch),
	ABI_AT(struct cu_copy_node, width, CUDA_MEMCPY3D, WidthInBytes),
	ABI_AT(struct cu_copy_node, depth, CUDA_MEMCPY3D, Depth),
	ABI_SIZE(struct cu_fill_node, CUDA_MEMSET_NODE_PARAMS),
	ABI_AT(struct cu_fill_node, address, CUDA_MEMSET_NODE_PARAMS, dst),
	ABI_AT(struct cu_fill_node, value, CUDA_MEMSET_NODE_PARAMS, value),
	ABI_AT(struct cu_fill_node, element, CUDA_MEMSET_NODE_PARAMS, elementSize),
	ABI_AT(struct cu_fill_node, width, CUDA_MEMSET_NODE_PARAMS, width),
	ABI_SIZE(union cu_memory_op, CUstreamBatchMemOpParams),
	ABI_AT(union cu_memory_op, write.address, CUstreamBatchMemOpParams,
	       writeValue.address),
	ABI_AT(union cu_memory_op, write.value, CUstreamBatchMemOpParams,
	       writeValue.value),
	ABI_AT(union cu_memory_op, write.flags, CUstreamBatchMemOpParams,
	       writeValue.flags),
	ABI_SIZE(struct cu_memory_ops_node, CUDA_BATCH_MEM_OP_NODE_PARAMS),
	ABI_AT(struct cu_memory_ops_node, count, CUDA_BATCH_MEM_OP_NODE_PARAMS, count),
	ABI_AT(struct cu_memory_ops_node, ops, CUDA_BATCH_MEM_OP_NODE_PARAMS, paramArray),
};

/* Memory at addresses of one's own. */
static const struct abi_row memory[] = {
	ABI_SIZE(uint64_t, CUmemGenericAllocationHandle),
	ABI_SIZE(struct cu_location, CUmemLocation),
	ABI_AT(struct cu_location, id, CUmemLocation, id),
	ABI_SIZE(struct cu_memory_prop, CUmemAllocationProp),
	ABI_AT(struct cu_memory_prop, handles, CUmemAllocationProp, requestedHandleTypes),
	ABI_AT(struct cu_memory_prop, location, CUmemAllocationProp, location),
	ABI_AT(struct cu_memory_prop, metadata, CUmemAllocationProp, win32HandleMetaData),
	ABI_AT(struct cu_memory_prop, compression, CUmemAllocationProp,
	       allocFlags.compressionType),
	ABI_AT(struct cu_memory_prop, rdma, CUmemAllocationProp,
	       allocFlags.gpuDirectRDMACapable),
	ABI_AT(struct cu_memory_prop, usage, CUmemAllocationProp, allocFlags.usage),
	ABI_SIZE(struct cu_access, CUmemAccessDesc),
	ABI_AT(struct cu_access, location, CUmemAccessDesc, location),
	ABI_AT(struct cu_access, flags, CUmemAccessDesc, flags),
};

/* The header's own macro names the same function of today. */
static const struct abi_row names[] = {
	ABI_NAME(cuMemCreate, "cuMemCreate"),
	ABI_NAME(cuMemMap, "cuMemMap"),
	ABI_NAME(cuMemAddressReserve, "cuMemAddressReserve"),
	ABI_NAME(cuMemRetainAllocationHandle, "cuMemRetainAllocationHandle"),
	ABI_NAME(cuMemExportToShareableHandle, "cuMemExportToShareableHandle"),
	ABI_NAME(cuMemImportFromShareableHandle, "cuMemImportFromShareableHandle"),
	ABI_NAME(cuMemAlloc, "cuMemAlloc_v2"),
	ABI_NAME(cuMemFree, "cuMemFree_v2"),
	ABI_NAME(cuMemGetInfo, "cuMemGetInfo_v2"),
	ABI_NAME(cuMemHostGetDevicePointer, "cuMemHostGetDevicePointer_v2"),
	ABI_NAME(cuStreamDestroy, "cuStreamDestroy_v2"),
	ABI_NAME(cuEventDestroy, "cuEventDestroy_v2"),
	ABI_NAME(cuStreamWriteValue32, "cuStreamWriteValue32_v2"),
	ABI_NAME(cuCtxPushCurrent, "cuCtxPushCurrent_v2"),
	ABI_NAME(cuCtxPopCurrent, "cuCtxPopCurrent_v2"),
	ABI_NAME(cuDevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease_v2"),
	ABI_NAME(cuDeviceTotalMem, "cuDeviceTotalMem_v2"),
};

static const struct abi_group groups[] = {ABI_GROUP(values), ABI_GROUP(sizes),
					  ABI_GROUP(nodes),  ABI_GROUP(memory),
					  ABI_GROUP(names),  {0}};

const struct abi_vendor abi_vendor = {.groups = groups};
