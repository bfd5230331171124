/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every call of Level Zero that is made here, once:
 *   X(table, slot, need, name, parameters, arguments)
 * table, slot: where a driver puts it (zeGet<table>ProcAddrTable); need: 1 when the
 * loader must have it, 0 when its absence only takes something away.
 */
#ifndef BACKENDS_LEVELZERO_ZE_CALLS_H
#define BACKENDS_LEVELZERO_ZE_CALLS_H

#include "ze_abi.h"

/* clang-format off */
#define LZ_CALLS(X) \
X(zeGetGlobal, 0, 1, zeInit, (uint32_t flags), (flags)) \
X(zeGetDriver, 0, 1, zeDriverGet, (uint32_t *count, void **drivers), (count, drivers)) \
X(zeGetDriver, 1, 1, zeDriverGetApiVersion, (void *driver, uint32_t *version), \
	(driver, version)) \
X(zeGetDriver, 3, 0, zeDriverGetIpcProperties, \
	(void *driver, struct ze_driver_ipc_properties *p), (driver, p)) \
X(zeGetDriver, 4, 0, zeDriverGetExtensionProperties, \
	(void *driver, uint32_t *count, struct ze_driver_extension_properties *p), \
	(driver, count, p)) \
X(zeGetDriver, 5, 0, zeDriverGetExtensionFunctionAddress, \
	(void *driver, const char *name, void **address), (driver, name, address)) \
X(zeGetDevice, 0, 1, zeDeviceGet, (void *driver, uint32_t *count, void **devices), \
	(driver, count, devices)) \
X(zeGetDevice, 1, 1, zeDeviceGetSubDevices, \
	(void *device, uint32_t *count, void **subs), (device, count, subs)) \
X(zeGetDevice, 2, 1, zeDeviceGetProperties, \
	(void *device, struct ze_device_properties *p), (device, p)) \
X(zeGetDevice, 3, 1, zeDeviceGetComputeProperties, \
	(void *device, struct ze_device_compute_properties *p), (device, p)) \
X(zeGetDevice, 5, 1, zeDeviceGetCommandQueueGroupProperties, \
	(void *device, uint32_t *count, struct ze_command_queue_group_properties *p), \
	(device, count, p)) \
X(zeGetDevice, 6, 1, zeDeviceGetMemoryProperties, \
	(void *device, uint32_t *count, struct ze_device_memory_properties *p), \
	(device, count, p)) \
X(zeGetDevice, 7, 1, zeDeviceGetMemoryAccessProperties, \
	(void *device, struct ze_device_memory_access_properties *p), (device, p)) \
X(zeGetDevice, 10, 0, zeDeviceGetExternalMemoryProperties, \
	(void *device, struct ze_device_external_memory_properties *p), (device, p)) \
X(zeGetDevice, 13, 1, zeDeviceGetStatus, (void *device), (device)) \
X(zeGetDevice, 14, 1, zeDeviceGetGlobalTimestamps, \
	(void *device, uint64_t *host, uint64_t *ticks), (device, host, ticks)) \
X(zeGetDevice, 15, 0, zeDeviceReserveCacheExt, \
	(void *device, size_t level, size_t bytes), (device, level, bytes)) \
X(zeGetDevice, 16, 0, zeDeviceSetCacheAdviceExt, \
	(void *device, void *p, size_t bytes, uint32_t region), \
	(device, p, bytes, region)) \
X(zeGetDevice, 17, 0, zeDevicePciGetPropertiesExt, \
	(void *device, struct ze_pci_ext_properties *p), (device, p)) \
X(zeGetContext, 0, 1, zeContextCreate, \
	(void *driver, const struct ze_context_desc *desc, void **context), \
	(driver, desc, context)) \
X(zeGetContext, 1, 1, zeContextDestroy, (void *context), (context)) \
X(zeGetCommandQueue, 0, 1, zeCommandQueueCreate, (void *context, void *device, \
	const struct ze_command_queue_desc *desc, void **queue), \
	(context, device, desc, queue)) \
X(zeGetCommandQueue, 1, 1, zeCommandQueueDestroy, (void *queue), (queue)) \
X(zeGetCommandQueue, 2, 1, zeCommandQueueExecuteCommandLists, \
	(void *queue, uint32_t count, void **lists, void *fence), \
	(queue, count, lists, fence)) \
X(zeGetCommandList, 0, 1, zeCommandListCreate, (void *context, void *device, \
	const struct ze_command_list_desc *desc, void **list), \
	(context, device, desc, list)) \
X(zeGetCommandList, 1, 1, zeCommandListCreateImmediate, (void *context, void *device, \
	const struct ze_command_queue_desc *desc, void **list), \
	(context, device, desc, list)) \
X(zeGetCommandList, 2, 1, zeCommandListDestroy, (void *list), (list)) \
X(zeGetCommandList, 3, 1, zeCommandListClose, (void *list), (list)) \
X(zeGetCommandList, 4, 1, zeCommandListReset, (void *list), (list)) \
X(zeGetCommandList, 6, 1, zeCommandListAppendBarrier, \
	(void *list, void *signal, uint32_t count, void **waits), \
	(list, signal, count, waits)) \
X(zeGetCommandList, 8, 1, zeCommandListAppendMemoryCopy, (void *list, void *dst, \
	const void *src, size_t bytes, void *signal, uint32_t count, void **waits), \
	(list, dst, src, bytes, signal, count, waits)) \
X(zeGetCommandList, 9, 1, zeCommandListAppendMemoryFill, (void *list, void *dst, \
	const void *pattern, size_t pattern_bytes, size_t bytes, void *signal, \
	uint32_t count, void **waits), \
	(list, dst, pattern, pattern_bytes, bytes, signal, count, waits)) \
X(zeGetCommandList, 22, 1, zeCommandListAppendLaunchKernel, (void *list, void *kernel, \
	const struct ze_group_count *groups, void *signal, uint32_t count, \
	void **waits), (list, kernel, groups, signal, count, waits)) \
X(zeGetFence, 0, 1, zeFenceCreate, (void *queue, const struct ze_fence_desc *desc, \
	void **fence), (queue, desc, fence)) \
X(zeGetFence, 1, 1, zeFenceDestroy, (void *fence), (fence)) \
X(zeGetFence, 2, 1, zeFenceHostSynchronize, (void *fence, uint64_t timeout_ns), \
	(fence, timeout_ns)) \
X(zeGetFence, 3, 1, zeFenceQueryStatus, (void *fence), (fence)) \
X(zeGetFence, 4, 1, zeFenceReset, (void *fence), (fence)) \
X(zeGetEventPool, 0, 1, zeEventPoolCreate, (void *context, \
	const struct ze_event_pool_desc *desc, uint32_t count, void **devices, \
	void **pool), (context, desc, count, devices, pool)) \
X(zeGetEventPool, 1, 1, zeEventPoolDestroy, (void *pool), (pool)) \
X(zeGetEvent, 0, 1, zeEventCreate, (void *pool, const struct ze_event_desc *desc, \
	void **event), (pool, desc, event)) \
X(zeGetEvent, 1, 1, zeEventDestroy, (void *event), (event)) \
X(zeGetEvent, 3, 1, zeEventHostSynchronize, (void *event, uint64_t timeout_ns), \
	(event, timeout_ns)) \
X(zeGetEvent, 4, 1, zeEventQueryStatus, (void *event), (event)) \
X(zeGetEvent, 5, 1, zeEventHostReset, (void *event), (event)) \
X(zeGetEvent, 6, 1, zeEventQueryKernelTimestamp, \
	(void *event, struct ze_kernel_timestamp *t), (event, t)) \
X(zeGetMem, 0, 1, zeMemAllocShared, (void *context, \
	const struct ze_device_mem_alloc_desc *device_desc, \
	const struct ze_host_mem_alloc_desc *host_desc, size_t bytes, size_t align, \
	void *device, void **p), \
	(context, device_desc, host_desc, bytes, align, device, p)) \
X(zeGetMem, 1, 1, zeMemAllocDevice, (void *context, \
	const struct ze_device_mem_alloc_desc *desc, size_t bytes, size_t align, \
	void *device, void **p), (context, desc, bytes, align, device, p)) \
X(zeGetMem, 2, 1, zeMemAllocHost, (void *context, \
	const struct ze_host_mem_alloc_desc *desc, size_t bytes, size_t align, \
	void **p), (context, desc, bytes, align, p)) \
X(zeGetMem, 3, 1, zeMemFree, (void *context, void *p), (context, p)) \
X(zeGetMem, 4, 0, zeMemGetAllocProperties, (void *context, const void *p, \
	struct ze_memory_allocation_properties *properties, void **device), \
	(context, p, properties, device)) \
X(zeGetMem, 6, 0, zeMemGetIpcHandle, (void *context, const void *p, \
	struct ze_ipc_mem_handle *handle), (context, p, handle)) \
X(zeGetMem, 7, 0, zeMemOpenIpcHandle, (void *context, void *device, \
	struct ze_ipc_mem_handle handle, uint32_t flags, void **p), \
	(context, device, handle, flags, p)) \
X(zeGetMem, 8, 0, zeMemCloseIpcHandle, (void *context, const void *p), (context, p)) \
X(zeGetVirtualMem, 0, 0, zeVirtualMemReserve, (void *context, const void *start, \
	size_t bytes, void **p), (context, start, bytes, p)) \
X(zeGetVirtualMem, 1, 0, zeVirtualMemFree, \
	(void *context, const void *p, size_t bytes), (context, p, bytes)) \
X(zeGetVirtualMem, 2, 0, zeVirtualMemQueryPageSize, (void *context, void *device, \
	size_t bytes, size_t *page), (context, device, bytes, page)) \
X(zeGetVirtualMem, 3, 0, zeVirtualMemMap, (void *context, const void *p, \
	size_t bytes, void *physical, size_t offset, uint32_t access), \
	(context, p, bytes, physical, offset, access)) \
X(zeGetVirtualMem, 4, 0, zeVirtualMemUnmap, \
	(void *context, const void *p, size_t bytes), (context, p, bytes)) \
X(zeGetPhysicalMem, 0, 0, zePhysicalMemCreate, (void *context, void *device, \
	struct ze_physical_mem_desc *desc, void **physical), \
	(context, device, desc, physical)) \
X(zeGetPhysicalMem, 1, 0, zePhysicalMemDestroy, (void *context, void *physical), \
	(context, physical)) \
X(zeGetModule, 0, 1, zeModuleCreate, (void *context, void *device, \
	const struct ze_module_desc *desc, void **module, void **log), \
	(context, device, desc, module, log)) \
X(zeGetModule, 1, 1, zeModuleDestroy, (void *module), (module)) \
X(zeGetModule, 5, 1, zeModuleGetKernelNames, \
	(void *module, uint32_t *count, const char **names), (module, count, names)) \
X(zeGetModuleBuildLog, 0, 1, zeModuleBuildLogDestroy, (void *log), (log)) \
X(zeGetModuleBuildLog, 1, 1, zeModuleBuildLogGetString, \
	(void *log, size_t *bytes, char *text), (log, bytes, text)) \
X(zeGetKernel, 0, 1, zeKernelCreate, (void *module, \
	const struct ze_kernel_desc *desc, void **kernel), (module, desc, kernel)) \
X(zeGetKernel, 1, 1, zeKernelDestroy, (void *kernel), (kernel)) \
X(zeGetKernel, 3, 1, zeKernelSetGroupSize, \
	(void *kernel, uint32_t x, uint32_t y, uint32_t z), (kernel, x, y, z)) \
X(zeGetKernel, 6, 1, zeKernelSetArgumentValue, \
	(void *kernel, uint32_t index, size_t bytes, const void *value), \
	(kernel, index, bytes, value)) \
X(zeGetKernel, 7, 1, zeKernelSetIndirectAccess, (void *kernel, uint32_t flags), \
	(kernel, flags)) \
X(zeGetKernel, 10, 1, zeKernelGetProperties, \
	(void *kernel, struct ze_kernel_properties *p), (kernel, p)) \
X(zesGetDevice, 22, 0, zesDeviceEnumSchedulers, \
	(void *device, uint32_t *count, void **schedulers), (device, count, schedulers)) \
X(zesGetScheduler, 0, 0, zesSchedulerGetProperties, \
	(void *scheduler, struct zes_sched_properties *p), (scheduler, p)) \
X(zesGetScheduler, 1, 0, zesSchedulerGetCurrentMode, \
	(void *scheduler, uint32_t *mode), (scheduler, mode)) \
X(zesGetScheduler, 2, 0, zesSchedulerGetTimeoutModeProperties, (void *scheduler, \
	uint8_t defaults, struct zes_sched_timeout_properties *p), \
	(scheduler, defaults, p)) \
X(zesGetScheduler, 3, 0, zesSchedulerGetTimesliceModeProperties, (void *scheduler, \
	uint8_t defaults, struct zes_sched_timeslice_properties *p), \
	(scheduler, defaults, p)) \
X(zesGetScheduler, 4, 0, zesSchedulerSetTimeoutMode, (void *scheduler, \
	struct zes_sched_timeout_properties *p, uint8_t *reload), \
	(scheduler, p, reload)) \
X(zesGetScheduler, 5, 0, zesSchedulerSetTimesliceMode, (void *scheduler, \
	struct zes_sched_timeslice_properties *p, uint8_t *reload), \
	(scheduler, p, reload)) \
X(zesGetScheduler, 6, 0, zesSchedulerSetExclusiveMode, \
	(void *scheduler, uint8_t *reload), (scheduler, reload))
/* clang-format on */

/* Index of each call, for counters and for making one fail. */
enum lz_call {
#define LZ_CALL_ENUM(table, slot, need, name, params, args) LZ_CALL_##name,
	LZ_CALLS(LZ_CALL_ENUM)
#undef LZ_CALL_ENUM
		LZ_CALL_COUNT
};

#endif
