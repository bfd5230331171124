/* SPDX-License-Identifier: Apache-2.0 */
/* Our declarations of Level Zero against the vendor's headers: tests/vendor/abi.h. */
#include "tests/vendor/abi.h"

#include <level_zero/ze_api.h>
#include <level_zero/ze_ddi.h>
#include <level_zero/zes_api.h>
#include <level_zero/zes_ddi.h>

#include "backends/levelzero/ze_calls.h"

static const struct abi_row results[] = {
#define RESULT(name, value) ABI_VALUE(value, ZE_RESULT_##name),
	LZ_RESULTS(RESULT)};

static const struct abi_row structure_types[] = {
#define STYPE(name, value) ABI_VALUE(value, ZE_STRUCTURE_TYPE_##name),
	LZ_STYPES(STYPE) ABI_VALUE(LZS_STYPE_SCHED_PROPERTIES,
				   ZES_STRUCTURE_TYPE_SCHED_PROPERTIES),
	ABI_VALUE(LZS_STYPE_SCHED_TIMEOUT_PROPERTIES,
		  ZES_STRUCTURE_TYPE_SCHED_TIMEOUT_PROPERTIES),
	ABI_VALUE(LZS_STYPE_SCHED_TIMESLICE_PROPERTIES,
		  ZES_STRUCTURE_TYPE_SCHED_TIMESLICE_PROPERTIES),
};

static const struct abi_row values[] = {
	ABI_VALUE(LZ_DEVICE_GPU, ZE_DEVICE_TYPE_GPU),
	ABI_VALUE(LZ_DEVICE_CPU, ZE_DEVICE_TYPE_CPU),
	ABI_VALUE(LZ_DEVICE_FPGA, ZE_DEVICE_TYPE_FPGA),
	ABI_VALUE(LZ_DEVICE_MCA, ZE_DEVICE_TYPE_MCA),
	ABI_VALUE(LZ_DEVICE_VPU, ZE_DEVICE_TYPE_VPU),
	ABI_VALUE(LZ_API_VERSION(1, 4), ZE_API_VERSION_1_4),
	ABI_VALUE(LZ_DEVICE_SUBDEVICE, ZE_DEVICE_PROPERTY_FLAG_SUBDEVICE),
	ABI_VALUE(LZ_GROUP_COMPUTE, ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COMPUTE),
	ABI_VALUE(LZ_GROUP_COPY, ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COPY),
	ABI_VALUE(LZ_ACCESS_RW, ZE_MEMORY_ACCESS_CAP_FLAG_RW),
	ABI_VALUE(LZ_IPC_MEMORY, ZE_IPC_PROPERTY_FLAG_MEMORY),
	ABI_VALUE(LZ_EXTERNAL_OPAQUE_FD, ZE_EXTERNAL_MEMORY_TYPE_FLAG_OPAQUE_FD),
	ABI_VALUE(LZ_EXTERNAL_DMA_BUF, ZE_EXTERNAL_MEMORY_TYPE_FLAG_DMA_BUF),
	ABI_VALUE(LZ_MEMORY_UNKNOWN, ZE_MEMORY_TYPE_UNKNOWN),
	ABI_VALUE(LZ_MEMORY_DEVICE, ZE_MEMORY_TYPE_DEVICE),
	ABI_VALUE(LZ_MEMORY_SHARED, ZE_MEMORY_TYPE_SHARED),
	ABI_VALUE(LZ_POOL_HOST_VISIBLE, ZE_EVENT_POOL_FLAG_HOST_VISIBLE),
	ABI_VALUE(LZ_POOL_KERNEL_TIMESTAMP, ZE_EVENT_POOL_FLAG_KERNEL_TIMESTAMP),
	ABI_VALUE(LZ_SCOPE_DEVICE, ZE_EVENT_SCOPE_FLAG_DEVICE),
	ABI_VALUE(LZ_SCOPE_HOST, ZE_EVENT_SCOPE_FLAG_HOST),
	ABI_VALUE(LZS_ENGINE_COMPUTE, ZES_ENGINE_TYPE_FLAG_COMPUTE),
	ABI_VALUE(LZ_MODE_SYNCHRONOUS, ZE_COMMAND_QUEUE_MODE_SYNCHRONOUS),
	ABI_VALUE(LZ_MODE_ASYNCHRONOUS, ZE_COMMAND_QUEUE_MODE_ASYNCHRONOUS),
	ABI_VALUE(LZ_PRIORITY_NORMAL, ZE_COMMAND_QUEUE_PRIORITY_NORMAL),
	ABI_VALUE(LZ_PRIORITY_LOW, ZE_COMMAND_QUEUE_PRIORITY_PRIORITY_LOW),
	ABI_VALUE(LZ_PRIORITY_HIGH, ZE_COMMAND_QUEUE_PRIORITY_PRIORITY_HIGH),
	ABI_VALUE(LZ_PAGES_NONE, ZE_MEMORY_ACCESS_ATTRIBUTE_NONE),
	ABI_VALUE(LZ_PAGES_READWRITE, ZE_MEMORY_ACCESS_ATTRIBUTE_READWRITE),
	ABI_VALUE(LZ_PAGES_READONLY, ZE_MEMORY_ACCESS_ATTRIBUTE_READONLY),
	ABI_VALUE(LZ_FORMAT_SPIRV, ZE_MODULE_FORMAT_IL_SPIRV),
	ABI_VALUE(LZ_FORMAT_NATIVE, ZE_MODULE_FORMAT_NATIVE),
	ABI_VALUE(LZ_SCHED_TIMEOUT, ZES_SCHED_MODE_TIMEOUT),
	ABI_VALUE(LZ_SCHED_TIMESLICE, ZES_SCHED_MODE_TIMESLICE),
	ABI_VALUE(LZ_SCHED_EXCLUSIVE, ZES_SCHED_MODE_EXCLUSIVE),
};

#define DEVICE(ours, theirs)                                                             \
	ABI_FIELD(struct ze_device_properties, ours, ze_device_properties_t, theirs)
#define COMPUTE(ours, theirs)                                                            \
	ABI_AT(struct ze_device_compute_properties, ours,                                \
	       ze_device_compute_properties_t, theirs)
static const struct abi_row properties[] = {
	ABI_SIZE(struct ze_driver_ipc_properties, ze_driver_ipc_properties_t),
	ABI_FIELD(struct ze_driver_ipc_properties, flags, ze_driver_ipc_properties_t,
		  flags),
	ABI_SIZE(struct ze_driver_extension_properties, ze_driver_extension_properties_t),
	ABI_FIELD(struct ze_driver_extension_properties, version,
		  ze_driver_extension_properties_t, version),
	ABI_SIZE(struct ze_device_properties, ze_device_properties_t),
	DEVICE(next, pNext),
	DEVICE(type, type),
	DEVICE(vendor_id, vendorId),
	DEVICE(device_id, deviceId),
	DEVICE(flags, flags),
	DEVICE(subdevice_id, subdeviceId),
	DEVICE(core_clock_rate, coreClockRate),
	DEVICE(max_mem_alloc_size, maxMemAllocSize),
	DEVICE(max_hardware_contexts, maxHardwareContexts),
	DEVICE(max_command_queue_priority, maxCommandQueuePriority),
	DEVICE(threads_per_eu, numThreadsPerEU),
	DEVICE(simd_width, physicalEUSimdWidth),
	DEVICE(eus_per_subslice, numEUsPerSubslice),
	DEVICE(subslices_per_slice, numSubslicesPerSlice),
	DEVICE(slices, numSlices),
	DEVICE(timer_resolution, timerResolution),
	DEVICE(timestamp_valid_bits, timestampValidBits),
	DEVICE(kernel_timestamp_valid_bits, kernelTimestampValidBits),
	DEVICE(uuid, uuid),
	DEVICE(name, name),
	ABI_SIZE(struct ze_device_compute_properties, ze_device_compute_properties_t),
	COMPUTE(max_total_group_size, maxTotalGroupSize),
	COMPUTE(max_group_size, maxGroupSizeX),
	COMPUTE(max_group_count, maxGroupCountX),
	COMPUTE(max_shared_local_memory, maxSharedLocalMemory),
	COMPUTE(sub_group_sizes, subGroupSizes),
	ABI_SIZE(struct ze_command_queue_group_properties,
		 ze_command_queue_group_properties_t),
	ABI_FIELD(struct ze_command_queue_group_properties, flags,
		  ze_command_queue_group_properties_t, flags),
	ABI_FIELD(struct ze_command_queue_group_properties, queue_count,
		  ze_command_queue_group_properties_t, numQueues),
	ABI_SIZE(struct ze_device_memory_properties, ze_device_memory_properties_t),
	ABI_FIELD(struct ze_device_memory_properties, total_size,
		  ze_device_memory_properties_t, totalSize),
	ABI_SIZE(struct ze_device_memory_access_properties,
		 ze_device_memory_access_properties_t),
	ABI_FIELD(struct ze_device_memory_access_properties, shared_single_alloc,
		  ze_device_memory_access_properties_t,
		  sharedSingleDeviceAllocCapabilities),
	ABI_SIZE(struct ze_device_external_memory_properties,
		 ze_device_external_memory_properties_t),
	ABI_FIELD(struct ze_device_external_memory_properties, memory_import_types,
		  ze_device_external_memory_properties_t, memoryAllocationImportTypes),
	ABI_FIELD(struct ze_device_external_memory_properties, memory_export_types,
		  ze_device_external_memory_properties_t, memoryAllocationExportTypes),
	ABI_SIZE(struct ze_memory_allocation_properties,
		 ze_memory_allocation_properties_t),
	ABI_FIELD(struct ze_memory_allocation_properties, type,
		  ze_memory_allocation_properties_t, type),
	ABI_SIZE(struct ze_pci_ext_properties, ze_pci_ext_properties_t),
	ABI_FIELD(struct ze_pci_ext_properties, bus, ze_pci_ext_properties_t,
		  address.bus),
	ABI_FIELD(struct ze_pci_ext_properties, function, ze_pci_ext_properties_t,
		  address.function),
	ABI_SIZE(struct ze_kernel_properties, ze_kernel_properties_t),
	ABI_FIELD(struct ze_kernel_properties, arg_count, ze_kernel_properties_t,
		  numKernelArgs),
	ABI_FIELD(struct ze_kernel_properties, uuid, ze_kernel_properties_t, uuid),
	ABI_SIZE(struct zes_sched_properties, zes_sched_properties_t),
	ABI_FIELD(struct zes_sched_properties, can_control, zes_sched_properties_t,
		  canControl),
	ABI_FIELD(struct zes_sched_properties, supported_modes, zes_sched_properties_t,
		  supportedModes),
	ABI_SIZE(struct zes_sched_timeout_properties, zes_sched_timeout_properties_t),
	ABI_FIELD(struct zes_sched_timeout_properties, watchdog,
		  zes_sched_timeout_properties_t, watchdogTimeout),
	ABI_SIZE(struct zes_sched_timeslice_properties, zes_sched_timeslice_properties_t),
	ABI_FIELD(struct zes_sched_timeslice_properties, yield,
		  zes_sched_timeslice_properties_t, yieldTimeout),
};

static const struct abi_row descriptions[] = {
	ABI_SIZE(struct ze_context_desc, ze_context_desc_t),
	ABI_SIZE(struct ze_command_queue_desc, ze_command_queue_desc_t),
	ABI_FIELD(struct ze_command_queue_desc, ordinal, ze_command_queue_desc_t,
		  ordinal),
	ABI_FIELD(struct ze_command_queue_desc, index, ze_command_queue_desc_t, index),
	ABI_FIELD(struct ze_command_queue_desc, mode, ze_command_queue_desc_t, mode),
	ABI_FIELD(struct ze_command_queue_desc, priority, ze_command_queue_desc_t,
		  priority),
	ABI_SIZE(struct ze_command_list_desc, ze_command_list_desc_t),
	ABI_FIELD(struct ze_command_list_desc, ordinal, ze_command_list_desc_t,
		  commandQueueGroupOrdinal),
	ABI_SIZE(struct ze_event_pool_desc, ze_event_pool_desc_t),
	ABI_FIELD(struct ze_event_pool_desc, count, ze_event_pool_desc_t, count),
	ABI_SIZE(struct ze_event_desc, ze_event_desc_t),
	ABI_FIELD(struct ze_event_desc, index, ze_event_desc_t, index),
	ABI_FIELD(struct ze_event_desc, wait, ze_event_desc_t, wait),
	ABI_SIZE(struct ze_kernel_timestamp, ze_kernel_timestamp_result_t),
	ABI_FIELD(struct ze_kernel_timestamp, global_end, ze_kernel_timestamp_result_t,
		  global.kernelEnd),
	ABI_FIELD(struct ze_kernel_timestamp, context_start, ze_kernel_timestamp_result_t,
		  context.kernelStart),
	ABI_SIZE(struct ze_device_mem_alloc_desc, ze_device_mem_alloc_desc_t),
	ABI_SIZE(struct ze_host_mem_alloc_desc, ze_host_mem_alloc_desc_t),
	ABI_SIZE(struct ze_external_memory_export_desc, ze_external_memory_export_desc_t),
	ABI_FIELD(struct ze_external_memory_export_desc, flags,
		  ze_external_memory_export_desc_t, flags),
	ABI_SIZE(struct ze_external_memory_fd, ze_external_memory_import_fd_t),
	ABI_FIELD(struct ze_external_memory_fd, flags, ze_external_memory_import_fd_t,
		  flags),
	ABI_FIELD(struct ze_external_memory_fd, fd, ze_external_memory_import_fd_t, fd),
	ABI_SIZE(struct ze_external_memory_fd, ze_external_memory_export_fd_t),
	ABI_FIELD(struct ze_external_memory_fd, flags, ze_external_memory_export_fd_t,
		  flags),
	ABI_FIELD(struct ze_external_memory_fd, fd, ze_external_memory_export_fd_t, fd),
	ABI_SIZE(struct ze_physical_mem_desc, ze_physical_mem_desc_t),
	ABI_FIELD(struct ze_physical_mem_desc, flags, ze_physical_mem_desc_t, flags),
	ABI_FIELD(struct ze_physical_mem_desc, size, ze_physical_mem_desc_t, size),
	ABI_SIZE(struct ze_module_desc, ze_module_desc_t),
	ABI_FIELD(struct ze_module_desc, format, ze_module_desc_t, format),
	ABI_FIELD(struct ze_module_desc, input_size, ze_module_desc_t, inputSize),
	ABI_FIELD(struct ze_module_desc, input, ze_module_desc_t, pInputModule),
	ABI_FIELD(struct ze_module_desc, build_flags, ze_module_desc_t, pBuildFlags),
	ABI_SIZE(struct ze_kernel_desc, ze_kernel_desc_t),
	ABI_FIELD(struct ze_kernel_desc, name, ze_kernel_desc_t, pKernelName),
	ABI_SIZE(struct ze_group_count, ze_group_count_t),
	ABI_SIZE(struct ze_ipc_mem_handle, ze_ipc_mem_handle_t),
};

static void slots(void **state)
{
	(void)state;
#define SLOTS(t, s, need, name, params, args) {#name, s},
	static const struct {
		const char *name;
		uint32_t slot;
	} all[] = {LZ_CALLS(SLOTS)};
#undef SLOTS
	static const struct {
		const char *name;
		size_t offset;
	} theirs[] = {
		{"zeInit", offsetof(ze_global_dditable_t, pfnInit)},
#define AT(call, table, field) {#call, offsetof(ze_##table##_dditable_t, field)}
		AT(zeDriverGet, driver, pfnGet),
		AT(zeDriverGetApiVersion, driver, pfnGetApiVersion),
		AT(zeDriverGetIpcProperties, driver, pfnGetIpcProperties),
		AT(zeDriverGetExtensionProperties, driver, pfnGetExtensionProperties),
		AT(zeDriverGetExtensionFunctionAddress, driver,
		   pfnGetExtensionFunctionAddress),
		AT(zeDeviceGet, device, pfnGet),
		AT(zeDeviceGetSubDevices, device, pfnGetSubDevices),
		AT(zeDeviceGetProperties, device, pfnGetProperties),
		AT(zeDeviceGetComputeProperties, device, pfnGetComputeProperties),
		AT(zeDeviceGetCommandQueueGroupProperties, device,
		   pfnGetCommandQueueGroupProperties),
		AT(zeDeviceGetMemoryProperties, device, pfnGetMemoryProperties),
		AT(zeDeviceGetMemoryAccessProperties, device,
		   pfnGetMemoryAccessProperties),
		AT(zeDeviceGetExternalMemoryProperties, device,
		   pfnGetExternalMemoryProperties),
		AT(zeDeviceGetStatus, device, pfnGetStatus),
		AT(zeDeviceGetGlobalTimestamps, device, pfnGetGlobalTimestamps),
		AT(zeDeviceReserveCacheExt, device, pfnReserveCacheExt),
		AT(zeDeviceSetCacheAdviceExt, device, pfnSetCacheAdviceExt),
		AT(zeDevicePciGetPropertiesExt, device, pfnPciGetPropertiesExt),
		AT(zeContextCreate, context, pfnCreate),
		AT(zeContextDestroy, context, pfnDestroy),
		AT(zeCommandQueueCreate, command_queue, pfnCreate),
		AT(zeCommandQueueDestroy, command_queue, pfnDestroy),
		AT(zeCommandQueueExecuteCommandLists, command_queue,
		   pfnExecuteCommandLists),
		AT(zeCommandListCreate, command_list, pfnCreate),
		AT(zeCommandListCreateImmediate, command_list, pfnCreateImmediate),
		AT(zeCommandListDestroy, command_list, pfnDestroy),
		AT(zeCommandListClose, command_list, pfnClose),
		AT(zeCommandListReset, command_list, pfnReset),
		AT(zeCommandListAppendBarrier, command_list, pfnAppendBarrier),
		AT(zeCommandListAppendMemoryCopy, command_list, pfnAppendMemoryCopy),
		AT(zeCommandListAppendMemoryFill, command_list, pfnAppendMemoryFill),
		AT(zeCommandListAppendLaunchKernel, command_list, pfnAppendLaunchKernel),
		AT(zeFenceCreate, fence, pfnCreate),
		AT(zeFenceDestroy, fence, pfnDestroy),
		AT(zeFenceHostSynchronize, fence, pfnHostSynchronize),
		AT(zeFenceQueryStatus, fence, pfnQueryStatus),
		AT(zeFenceReset, fence, pfnReset),
		AT(zeEventPoolCreate, event_pool, pfnCreate),
		AT(zeEventPoolDestroy, event_pool, pfnDestroy),
		AT(zeEventCreate, event, pfnCreate),
		AT(zeEventDestroy, event, pfnDestroy),
		AT(zeEventHostSynchronize, event, pfnHostSynchronize),
		AT(zeEventQueryStatus, event, pfnQueryStatus),
		AT(zeEventHostReset, event, pfnHostReset),
		AT(zeEventQueryKernelTimestamp, event, pfnQueryKernelTimestamp),
		AT(zeMemAllocShared, mem, pfnAllocShared),
		AT(zeMemAllocDevice, mem, pfnAllocDevice),
		AT(zeMemAllocHost, mem, pfnAllocHost),
		AT(zeMemFree, mem, pfnFree),
		AT(zeMemGetAllocProperties, mem, pfnGetAllocProperties),
		AT(zeMemGetIpcHandle, mem, pfnGetIpcHandle),
		AT(zeMemOpenIpcHandle, mem, pfnOpenIpcHandle),
		AT(zeMemCloseIpcHandle, mem, pfnCloseIpcHandle),
		AT(zeVirtualMemReserve, virtual_mem, pfnReserve),
		AT(zeVirtualMemFree, virtual_mem, pfnFree),
		AT(zeVirtualMemQueryPageSize, virtual_mem, pfnQueryPageSize),
		AT(zeVirtualMemMap, virtual_mem, pfnMap),
		AT(zeVirtualMemUnmap, virtual_mem, pfnUnmap),
		AT(zePhysicalMemCreate, physical_mem, pfnCreate),
		AT(zePhysicalMemDestroy, physical_mem, pfnDestroy),
		AT(zeModuleCreate, module, pfnCreate),
		AT(zeModuleDestroy, module, pfnDestroy),
		AT(zeModuleGetKernelNames, module, pfnGetKernelNames),
		AT(zeModuleBuildLogDestroy, module_build_log, pfnDestroy),
		AT(zeModuleBuildLogGetString, module_build_log, pfnGetString),
		AT(zeKernelCreate, kernel, pfnCreate),
		AT(zeKernelDestroy, kernel, pfnDestroy),
		AT(zeKernelSetGroupSize, kernel, pfnSetGroupSize),
		AT(zeKernelSetArgumentValue, kernel, pfnSetArgumentValue),
		AT(zeKernelSetIndirectAccess, kernel, pfnSetIndirectAccess),
		AT(zeKernelGetProperties, kernel, pfnGetProperties),
#undef AT
#define AT(call, table, field) {#call, offsetof(zes_##table##_dditable_t, field)}
		AT(zesDeviceEnumSchedulers, device, pfnEnumSchedulers),
		AT(zesSchedulerGetProperties, scheduler, pfnGetProperties),
		AT(zesSchedulerGetCurrentMode, scheduler, pfnGetCurrentMode),
		AT(zesSchedulerGetTimeoutModeProperties, scheduler,
		   pfnGetTimeoutModeProperties),
		AT(zesSchedulerGetTimesliceModeProperties, scheduler,
		   pfnGetTimesliceModeProperties),
		AT(zesSchedulerSetTimeoutMode, scheduler, pfnSetTimeoutMode),
		AT(zesSchedulerSetTimesliceMode, scheduler, pfnSetTimesliceMode),
		AT(zesSchedulerSetExclusiveMode, scheduler, pfnSetExclusiveMode),
#undef AT
	};
	size_t i;

	assert_int_equal(sizeof(all) / sizeof(all[0]),
			 sizeof(theirs) / sizeof(theirs[0]));
	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		assert_string_equal(all[i].name, theirs[i].name);
		assert_int_equal(all[i].slot * sizeof(void *), theirs[i].offset);
	}
}

static const struct CMUnitTest cases[] = {cmocka_unit_test(slots)};

static const struct abi_group groups[] = {
	ABI_GROUP(results),    ABI_GROUP(structure_types), ABI_GROUP(values),
	ABI_GROUP(properties), ABI_GROUP(descriptions),    {0}};

const struct abi_vendor abi_vendor = {.groups = groups, .cases = cases, .case_count = 1};
