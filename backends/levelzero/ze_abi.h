/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of oneAPI Level Zero's binary interface that is used here, so that nothing of
 * the vendor's is needed to build.  tests/levelzero compares every size, offset and value
 * with <level_zero/ze_api.h> where that is installed.
 * Source: Level Zero specification 1.4 (core, tools/sysman).  Handles are void *.
 */
#ifndef BACKENDS_LEVELZERO_ZE_ABI_H
#define BACKENDS_LEVELZERO_ZE_ABI_H

#include <stddef.h>
#include <stdint.h>

/* X(name, value): what a call can answer. */
#define LZ_RESULTS(X)                                                                    \
	X(SUCCESS, 0)                                                                    \
	X(NOT_READY, 1)                                                                  \
	X(ERROR_DEVICE_LOST, 0x70000001)                                                 \
	X(ERROR_OUT_OF_HOST_MEMORY, 0x70000002)                                          \
	X(ERROR_OUT_OF_DEVICE_MEMORY, 0x70000003)                                        \
	X(ERROR_MODULE_BUILD_FAILURE, 0x70000004)                                        \
	X(ERROR_MODULE_LINK_FAILURE, 0x70000005)                                         \
	X(ERROR_DEVICE_REQUIRES_RESET, 0x70000006)                                       \
	X(ERROR_DEVICE_IN_LOW_POWER_STATE, 0x70000007)                                   \
	X(ERROR_INSUFFICIENT_PERMISSIONS, 0x70010000)                                    \
	X(ERROR_NOT_AVAILABLE, 0x70010001)                                               \
	X(ERROR_DEPENDENCY_UNAVAILABLE, 0x70020000)                                      \
	X(ERROR_UNINITIALIZED, 0x78000001)                                               \
	X(ERROR_UNSUPPORTED_VERSION, 0x78000002)                                         \
	X(ERROR_UNSUPPORTED_FEATURE, 0x78000003)                                         \
	X(ERROR_INVALID_ARGUMENT, 0x78000004)                                            \
	X(ERROR_INVALID_NULL_HANDLE, 0x78000005)                                         \
	X(ERROR_HANDLE_OBJECT_IN_USE, 0x78000006)                                        \
	X(ERROR_INVALID_NULL_POINTER, 0x78000007)                                        \
	X(ERROR_INVALID_SIZE, 0x78000008)                                                \
	X(ERROR_UNSUPPORTED_SIZE, 0x78000009)                                            \
	X(ERROR_UNSUPPORTED_ALIGNMENT, 0x7800000a)                                       \
	X(ERROR_INVALID_SYNCHRONIZATION_OBJECT, 0x7800000b)                              \
	X(ERROR_INVALID_ENUMERATION, 0x7800000c)                                         \
	X(ERROR_UNSUPPORTED_ENUMERATION, 0x7800000d)                                     \
	X(ERROR_UNSUPPORTED_IMAGE_FORMAT, 0x7800000e)                                    \
	X(ERROR_INVALID_NATIVE_BINARY, 0x7800000f)                                       \
	X(ERROR_INVALID_GLOBAL_NAME, 0x78000010)                                         \
	X(ERROR_INVALID_KERNEL_NAME, 0x78000011)                                         \
	X(ERROR_INVALID_FUNCTION_NAME, 0x78000012)                                       \
	X(ERROR_INVALID_GROUP_SIZE_DIMENSION, 0x78000013)                                \
	X(ERROR_INVALID_GLOBAL_WIDTH_DIMENSION, 0x78000014)                              \
	X(ERROR_INVALID_KERNEL_ARGUMENT_INDEX, 0x78000015)                               \
	X(ERROR_INVALID_KERNEL_ARGUMENT_SIZE, 0x78000016)                                \
	X(ERROR_INVALID_KERNEL_ATTRIBUTE_VALUE, 0x78000017)                              \
	X(ERROR_INVALID_MODULE_UNLINKED, 0x78000018)                                     \
	X(ERROR_INVALID_COMMAND_LIST_TYPE, 0x78000019)                                   \
	X(ERROR_OVERLAPPING_REGIONS, 0x7800001a)                                         \
	X(ERROR_UNKNOWN, 0x7ffffffe)

enum lz_result {
/* NOLINTNEXTLINE(bugprone-macro-parentheses): a declaration is made of it. */
#define LZ_RESULT_ENUM(name, value) LZ_##name = value,
	LZ_RESULTS(LZ_RESULT_ENUM)
#undef LZ_RESULT_ENUM
};

/* X(name, value): ze_structure_type_t. */
#define LZ_STYPES(X)                                                                     \
	X(DRIVER_PROPERTIES, 0x1)                                                        \
	X(DRIVER_IPC_PROPERTIES, 0x2)                                                    \
	X(DEVICE_PROPERTIES, 0x3)                                                        \
	X(DEVICE_COMPUTE_PROPERTIES, 0x4)                                                \
	X(COMMAND_QUEUE_GROUP_PROPERTIES, 0x6)                                           \
	X(DEVICE_MEMORY_PROPERTIES, 0x7)                                                 \
	X(DEVICE_MEMORY_ACCESS_PROPERTIES, 0x8)                                          \
	X(DEVICE_EXTERNAL_MEMORY_PROPERTIES, 0xc)                                        \
	X(CONTEXT_DESC, 0xd)                                                             \
	X(COMMAND_QUEUE_DESC, 0xe)                                                       \
	X(COMMAND_LIST_DESC, 0xf)                                                        \
	X(EVENT_POOL_DESC, 0x10)                                                         \
	X(EVENT_DESC, 0x11)                                                              \
	X(FENCE_DESC, 0x12)                                                              \
	X(DEVICE_MEM_ALLOC_DESC, 0x15)                                                   \
	X(HOST_MEM_ALLOC_DESC, 0x16)                                                     \
	X(MEMORY_ALLOCATION_PROPERTIES, 0x17)                                            \
	X(EXTERNAL_MEMORY_EXPORT_DESC, 0x18)                                             \
	X(EXTERNAL_MEMORY_IMPORT_FD, 0x19)                                               \
	X(EXTERNAL_MEMORY_EXPORT_FD, 0x1a)                                               \
	X(MODULE_DESC, 0x1b)                                                             \
	X(KERNEL_DESC, 0x1d)                                                             \
	X(KERNEL_PROPERTIES, 0x1e)                                                       \
	X(PHYSICAL_MEM_DESC, 0x20)                                                       \
	X(PCI_EXT_PROPERTIES, 0x10008)                                                   \
	X(RELAXED_ALLOCATION_LIMITS_EXP_DESC, 0x20001)                                   \
	X(DEVICE_PROPERTIES_1_2, 0x20006)

enum lz_stype {
/* NOLINTNEXTLINE(bugprone-macro-parentheses): a declaration is made of it. */
#define LZ_STYPE_ENUM(name, value) LZ_STYPE_##name = value,
	LZ_STYPES(LZ_STYPE_ENUM)
#undef LZ_STYPE_ENUM
};

/* Sysman numbers its structures by itself. */
enum {
	LZS_STYPE_SCHED_PROPERTIES = 0x10,
	LZS_STYPE_SCHED_TIMEOUT_PROPERTIES = 0x11,
	LZS_STYPE_SCHED_TIMESLICE_PROPERTIES = 0x12,
};

enum lz_device_type {
	LZ_DEVICE_GPU = 1,
	LZ_DEVICE_CPU = 2,
	LZ_DEVICE_FPGA = 3,
	LZ_DEVICE_MCA = 4,
	LZ_DEVICE_VPU = 5,
};

#define LZ_API_VERSION(major, minor) ((uint32_t)(major) << 16 | (minor))
#define LZ_DEVICE_SUBDEVICE          (1u << 1)
#define LZ_GROUP_COMPUTE             (1u << 0)
#define LZ_GROUP_COPY                (1u << 1)
#define LZ_ACCESS_RW                 (1u << 0)
#define LZ_IPC_MEMORY                (1u << 0)
#define LZ_EXTERNAL_OPAQUE_FD        (1u << 0)
#define LZ_EXTERNAL_DMA_BUF          (1u << 1)
#define LZ_POOL_HOST_VISIBLE         (1u << 0)
#define LZ_POOL_KERNEL_TIMESTAMP     (1u << 2)
#define LZ_QUEUE_IN_ORDER            (1u << 1) /* immediate lists, from 1.9 on */
/* Structure types of later specifications than the headers that are compared. */
#define LZ_STYPE_COUNTED_POOL_DESC 0x20014u /* ze_event_pool_counter_based_exp_desc_t */
#define LZ_COUNTED_IMMEDIATE       (1u << 0)
#define LZ_RELAXED_MAX_SIZE        (1u << 0)
#define LZ_INDIRECT_HOST           (1u << 0)
#define LZ_INDIRECT_DEVICE         (1u << 1)
#define LZ_INDIRECT_SHARED         (1u << 2)
#define LZ_SCOPE_DEVICE            (1u << 1)
#define LZ_SCOPE_HOST              (1u << 2)
#define LZS_ENGINE_COMPUTE         (1u << 1)

enum lz_page_access { LZ_PAGES_NONE, LZ_PAGES_READWRITE, LZ_PAGES_READONLY };
enum lz_queue_mode { LZ_MODE_DEFAULT, LZ_MODE_SYNCHRONOUS, LZ_MODE_ASYNCHRONOUS };
enum lz_memory_type {
	LZ_MEMORY_UNKNOWN,
	LZ_MEMORY_HOST,
	LZ_MEMORY_DEVICE,
	LZ_MEMORY_SHARED
};
enum lz_queue_priority { LZ_PRIORITY_NORMAL, LZ_PRIORITY_LOW, LZ_PRIORITY_HIGH };
enum lz_module_format { LZ_FORMAT_SPIRV, LZ_FORMAT_NATIVE };
enum lz_sched_mode { LZ_SCHED_TIMEOUT, LZ_SCHED_TIMESLICE, LZ_SCHED_EXCLUSIVE };

/* NOLINTBEGIN(clang-analyzer-optin.performance.Padding): the order is the vendor's. */
struct ze_driver_ipc_properties {
	uint32_t stype;
	void *next;
	uint32_t flags;
};

struct ze_driver_properties {
	uint32_t stype;
	void *next;
	uint8_t uuid[16];
	uint32_t driver_version;
};

struct ze_driver_extension_properties {
	char name[256];
	uint32_t version;
};

struct ze_device_properties {
	uint32_t stype;
	void *next;
	uint32_t type;
	uint32_t vendor_id;
	uint32_t device_id;
	uint32_t flags;
	uint32_t subdevice_id;
	uint32_t core_clock_rate;
	uint64_t max_mem_alloc_size;
	uint32_t max_hardware_contexts;
	uint32_t max_command_queue_priority;
	uint32_t threads_per_eu;
	uint32_t simd_width;
	uint32_t eus_per_subslice;
	uint32_t subslices_per_slice;
	uint32_t slices;
	uint64_t timer_resolution; /* 1_2: cycles a second */
	uint32_t timestamp_valid_bits;
	uint32_t kernel_timestamp_valid_bits;
	uint8_t uuid[16];
	char name[256];
};

struct ze_device_compute_properties {
	uint32_t stype;
	void *next;
	uint32_t max_total_group_size;
	uint32_t max_group_size[3];
	uint32_t max_group_count[3];
	uint32_t max_shared_local_memory;
	uint32_t sub_group_size_count;
	uint32_t sub_group_sizes[8];
};

struct ze_command_queue_group_properties {
	uint32_t stype;
	void *next;
	uint32_t flags;
	size_t max_memory_fill_pattern_size;
	uint32_t queue_count;
};

struct ze_device_memory_properties {
	uint32_t stype;
	void *next;
	uint32_t flags;
	uint32_t max_clock_rate;
	uint32_t max_bus_width;
	uint64_t total_size;
	char name[256];
};

struct ze_device_memory_access_properties {
	uint32_t stype;
	void *next;
	uint32_t host_alloc;
	uint32_t device_alloc;
	uint32_t shared_single_alloc;
	uint32_t shared_cross_alloc;
	uint32_t shared_system_alloc;
};

struct ze_device_external_memory_properties {
	uint32_t stype;
	void *next;
	uint32_t memory_import_types;
	uint32_t memory_export_types;
	uint32_t image_import_types;
	uint32_t image_export_types;
};

struct ze_pci_ext_properties {
	uint32_t stype;
	void *next;
	uint32_t domain, bus, device, function;
	int32_t speed_generation, speed_width;
	int64_t speed_bandwidth;
};

struct ze_context_desc {
	uint32_t stype;
	const void *next;
	uint32_t flags;
};

struct ze_command_queue_desc {
	uint32_t stype;
	const void *next;
	uint32_t ordinal;
	uint32_t index;
	uint32_t flags;
	uint32_t mode;
	uint32_t priority;
};

struct ze_command_list_desc {
	uint32_t stype;
	const void *next;
	uint32_t ordinal;
	uint32_t flags;
};

struct ze_event_pool_desc {
	uint32_t stype;
	const void *next;
	uint32_t flags;
	uint32_t count;
};

/* ze_event_pool_counter_based_exp_desc_t */
struct ze_counted_pool_desc {
	uint32_t stype;
	const void *next;
	uint32_t flags;
};

struct ze_event_desc {
	uint32_t stype;
	const void *next;
	uint32_t index;
	uint32_t signal;
	uint32_t wait;
};

struct ze_fence_desc {
	uint32_t stype;
	const void *next;
	uint32_t flags;
};

struct ze_kernel_timestamp {
	uint64_t global_start, global_end;
	uint64_t context_start, context_end;
};

struct ze_device_mem_alloc_desc {
	uint32_t stype;
	const void *next;
	uint32_t flags;
	uint32_t ordinal;
};

struct ze_host_mem_alloc_desc {
	uint32_t stype;
	const void *next;
	uint32_t flags;
};

struct ze_relaxed_allocation_limits_exp_desc {
	uint32_t stype;
	const void *next;
	uint32_t flags;
};

struct ze_memory_allocation_properties {
	uint32_t stype;
	void *next;
	uint32_t type; /* enum lz_memory_type */
	uint64_t id;
	uint64_t page_size;
};

struct ze_external_memory_export_desc {
	uint32_t stype;
	const void *next;
	uint32_t flags;
};

/* Import and export; .fd is the answer of an export. */
struct ze_external_memory_fd {
	uint32_t stype;
	const void *next;
	uint32_t flags;
	int fd;
};

struct ze_physical_mem_desc {
	uint32_t stype;
	const void *next;
	uint32_t flags;
	size_t size;
};

struct ze_module_desc {
	uint32_t stype;
	const void *next;
	uint32_t format;
	size_t input_size;
	const uint8_t *input;
	const char *build_flags;
	const void *constants;
};

struct ze_kernel_desc {
	uint32_t stype;
	const void *next;
	uint32_t flags;
	const char *name;
};

struct ze_kernel_properties {
	uint32_t stype;
	void *next;
	uint32_t arg_count;
	uint32_t required_group_size[3];
	uint32_t required_num_sub_groups;
	uint32_t required_subgroup_size;
	uint32_t max_subgroup_size;
	uint32_t max_num_subgroups;
	uint32_t local_mem_size;
	uint32_t private_mem_size;
	uint32_t spill_mem_size;
	uint8_t uuid[32];
};

struct ze_group_count {
	uint32_t x, y, z;
};

struct ze_ipc_mem_handle {
	char data[64];
};

struct zes_sched_properties {
	uint32_t stype;
	void *next;
	uint8_t on_subdevice;
	uint32_t subdevice_id;
	uint8_t can_control;
	uint32_t engines;
	uint32_t supported_modes; /* bit (1 << mode) */
};

/* Microseconds. */
struct zes_sched_timeout_properties {
	uint32_t stype;
	void *next;
	uint64_t watchdog;
};

struct zes_sched_timeslice_properties {
	uint32_t stype;
	void *next;
	uint64_t interval;
	uint64_t yield;
};
/* NOLINTEND(clang-analyzer-optin.performance.Padding) */

#endif
