/* SPDX-License-Identifier: Apache-2.0 */
/* Our declarations against the toolkit's header, where that is installed. */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <cuda.h>

#include "backends/cuda/cu_calls.h"

#define SAME(a, b)          _Static_assert((int)(a) == (int)(b), #a)
#define RESULT(name, value) SAME(CUDA_ERROR_##name, value);
CUR_RESULTS(RESULT)

SAME(CUA_MAX_THREADS_PER_BLOCK, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
SAME(CUA_MAX_BLOCK_X, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X);
SAME(CUA_MAX_BLOCK_X + 2, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z);
SAME(CUA_MAX_GRID_X, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X);
SAME(CUA_MAX_GRID_X + 2, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z);
SAME(CUA_MAX_SHARED, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
SAME(CUA_MULTIPROCESSORS, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
SAME(CUA_UNIFIED_ADDRESSING, CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING);
SAME(CUA_MAJOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
SAME(CUA_MINOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
SAME(CUA_MAX_SHARED_OPTIN, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
SAME(CUA_VMM, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
SAME(CU_LOCATION_DEVICE, CU_MEM_LOCATION_TYPE_DEVICE);
SAME(CU_MEMORY_PINNED, CU_MEM_ALLOCATION_TYPE_PINNED);
SAME(CU_ACCESS_READ_WRITE, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
SAME(CU_GRANULARITY_MINIMUM, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
SAME(CUF_MAX_THREADS_PER_BLOCK, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
SAME(CUF_SHARED_BYTES, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
SAME(CUF_MAX_DYNAMIC_SHARED, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
SAME(CU_HOST_PORTABLE, CU_MEMHOSTALLOC_PORTABLE);
SAME(CU_HOST_DEVICEMAP, CU_MEMHOSTALLOC_DEVICEMAP);
SAME(CU_JIT_ERROR_LOG, CU_JIT_ERROR_LOG_BUFFER);
SAME(CU_JIT_ERROR_LOG_BYTES, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES);
SAME(CU_CAPTURE_RELAXED, CU_STREAM_CAPTURE_MODE_RELAXED);
SAME(CU_GREEN_DEFAULT_STREAM, CU_GREEN_CTX_DEFAULT_STREAM);
SAME(CU_RESOURCE_SM, CU_DEV_RESOURCE_TYPE_SM);
SAME(CUF_CLUSTER_X, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH);
SAME(CU_MEMORY_UNIFIED, CU_MEMORYTYPE_UNIFIED);
SAME(CU_OP_WRITE_32, CU_STREAM_MEM_OP_WRITE_VALUE_32);

/* As wide as the toolkit's, argument by argument: what a call passes on would not compile
 * where a pointer and a number are taken for each other, so sizes are left. */
_Static_assert(sizeof(CUdeviceptr) == sizeof(uint64_t), "device address");
_Static_assert(sizeof(CUdevice) == sizeof(int), "device");
_Static_assert(sizeof(CUresult) == sizeof(uint32_t), "result");
_Static_assert(sizeof(CUjit_option) == sizeof(uint32_t), "option");
_Static_assert(sizeof(CUstreamCaptureMode) == sizeof(uint32_t), "mode");
_Static_assert(sizeof(struct cu_resource) == sizeof(CUdevResource), "resource");
_Static_assert(offsetof(struct cu_resource, count) == offsetof(CUdevResource, sm),
	       "resource of multiprocessors");
_Static_assert(offsetof(struct cu_resource, together) ==
		       offsetof(CUdevResource, sm.smCoscheduledAlignment),
	       "resource of multiprocessors");
_Static_assert(sizeof(CUstream) == sizeof(void *), "handle");

/* Nodes of graphs. */
#define AS_LARGE(a, b) _Static_assert(sizeof(a) == sizeof(b), #b)
#define AT(a, x, b, y) _Static_assert(offsetof(a, x) == offsetof(b, y), #b "." #y)
AS_LARGE(struct cu_kernel_node, CUDA_KERNEL_NODE_PARAMS);
AT(struct cu_kernel_node, grid, CUDA_KERNEL_NODE_PARAMS, gridDimX);
AT(struct cu_kernel_node, block, CUDA_KERNEL_NODE_PARAMS, blockDimX);
AT(struct cu_kernel_node, shared, CUDA_KERNEL_NODE_PARAMS, sharedMemBytes);
AT(struct cu_kernel_node, params, CUDA_KERNEL_NODE_PARAMS, kernelParams);
AT(struct cu_kernel_node, extra, CUDA_KERNEL_NODE_PARAMS, extra);
AS_LARGE(struct cu_copy_node, CUDA_MEMCPY3D);
AT(struct cu_copy_node, src.type, CUDA_MEMCPY3D, srcMemoryType);
AT(struct cu_copy_node, src.address, CUDA_MEMCPY3D, srcDevice);
AT(struct cu_copy_node, src.pitch, CUDA_MEMCPY3D, srcPitch);
AT(struct cu_copy_node, dst.at, CUDA_MEMCPY3D, dstXInBytes);
AT(struct cu_copy_node, dst.type, CUDA_MEMCPY3D, dstMemoryType);
AT(struct cu_copy_node, dst.address, CUDA_MEMCPY3D, dstDevice);
AT(struct cu_copy_node, dst.pitch, CUDA_MEMCPY3D, dstPitch);
AT(struct cu_copy_node, width, CUDA_MEMCPY3D, WidthInBytes);
AT(struct cu_copy_node, depth, CUDA_MEMCPY3D, Depth);
AS_LARGE(struct cu_fill_node, CUDA_MEMSET_NODE_PARAMS);
AT(struct cu_fill_node, address, CUDA_MEMSET_NODE_PARAMS, dst);
AT(struct cu_fill_node, value, CUDA_MEMSET_NODE_PARAMS, value);
AT(struct cu_fill_node, element, CUDA_MEMSET_NODE_PARAMS, elementSize);
AT(struct cu_fill_node, width, CUDA_MEMSET_NODE_PARAMS, width);
AS_LARGE(union cu_memory_op, CUstreamBatchMemOpParams);
AT(union cu_memory_op, write.address, CUstreamBatchMemOpParams, writeValue.address);
AT(union cu_memory_op, write.value, CUstreamBatchMemOpParams, writeValue.value);
AT(union cu_memory_op, write.flags, CUstreamBatchMemOpParams, writeValue.flags);
AS_LARGE(struct cu_memory_ops_node, CUDA_BATCH_MEM_OP_NODE_PARAMS);
AT(struct cu_memory_ops_node, count, CUDA_BATCH_MEM_OP_NODE_PARAMS, count);
AT(struct cu_memory_ops_node, ops, CUDA_BATCH_MEM_OP_NODE_PARAMS, paramArray);

/* Memory at addresses of one's own. */
_Static_assert(sizeof(CUmemGenericAllocationHandle) == sizeof(uint64_t), "memory");
AS_LARGE(struct cu_location, CUmemLocation);
AT(struct cu_location, id, CUmemLocation, id);
AS_LARGE(struct cu_memory_prop, CUmemAllocationProp);
AT(struct cu_memory_prop, handles, CUmemAllocationProp, requestedHandleTypes);
AT(struct cu_memory_prop, location, CUmemAllocationProp, location);
AT(struct cu_memory_prop, metadata, CUmemAllocationProp, win32HandleMetaData);
AT(struct cu_memory_prop, compression, CUmemAllocationProp, allocFlags.compressionType);
AT(struct cu_memory_prop, rdma, CUmemAllocationProp, allocFlags.gpuDirectRDMACapable);
AT(struct cu_memory_prop, usage, CUmemAllocationProp, allocFlags.usage);
AS_LARGE(struct cu_access, CUmemAccessDesc);
AT(struct cu_access, location, CUmemAccessDesc, location);
AT(struct cu_access, flags, CUmemAccessDesc, flags);

/* The header's own macro names the same function of today. */
static void names(void **state)
{
#define TEXT(x)  #x
#define XTEXT(x) TEXT(x)
	(void)state;
	assert_string_equal(XTEXT(cuMemCreate), "cuMemCreate");
	assert_string_equal(XTEXT(cuMemMap), "cuMemMap");
	assert_string_equal(XTEXT(cuMemAddressReserve), "cuMemAddressReserve");
	assert_string_equal(XTEXT(cuMemAlloc), "cuMemAlloc_v2");
	assert_string_equal(XTEXT(cuMemFree), "cuMemFree_v2");
	assert_string_equal(XTEXT(cuMemGetInfo), "cuMemGetInfo_v2");
	assert_string_equal(XTEXT(cuMemHostGetDevicePointer),
			    "cuMemHostGetDevicePointer_v2");
	assert_string_equal(XTEXT(cuStreamDestroy), "cuStreamDestroy_v2");
	assert_string_equal(XTEXT(cuEventDestroy), "cuEventDestroy_v2");
	assert_string_equal(XTEXT(cuStreamWriteValue32), "cuStreamWriteValue32_v2");
	assert_string_equal(XTEXT(cuCtxPushCurrent), "cuCtxPushCurrent_v2");
	assert_string_equal(XTEXT(cuCtxPopCurrent), "cuCtxPopCurrent_v2");
	assert_string_equal(XTEXT(cuDevicePrimaryCtxRelease),
			    "cuDevicePrimaryCtxRelease_v2");
	assert_string_equal(XTEXT(cuDeviceTotalMem), "cuDeviceTotalMem_v2");
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(names)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
