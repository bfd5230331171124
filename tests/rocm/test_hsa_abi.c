/* SPDX-License-Identifier: Apache-2.0 */
/* Our declarations against HSA's headers, where those are installed (libhsa-runtime-dev).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>

/* A type of that name is there, too. */
#define hsa_queue our_queue
#include "backends/rocm/hsa_calls.h"

#define SAME(a, b)          _Static_assert((int)(a) == (int)(b), #a)
#define STATUS(name, value) SAME(HSA_STATUS_ERROR_##name, value);
HSA_STATUSES(STATUS)
SAME(HSAR_SUCCESS, HSA_STATUS_SUCCESS);
SAME(HSAR_INFO_BREAK, HSA_STATUS_INFO_BREAK);
SAME(HSAR_CU_MASK_REDUCED, HSA_STATUS_CU_MASK_REDUCED);
SAME(HSAR_ERROR, HSA_STATUS_ERROR);

SAME(HSAN_SYSTEM_TIMESTAMP_FREQUENCY, HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY);
SAME(HSAN_AGENT_DEVICE, HSA_AGENT_INFO_DEVICE);
SAME(HSAN_DEVICE_GPU, HSA_DEVICE_TYPE_GPU);
SAME(HSAN_AGENT_COMPUTE_UNITS, HSA_AMD_AGENT_INFO_COMPUTE_UNIT_COUNT);
SAME(HSAN_AGENT_BDFID, HSA_AMD_AGENT_INFO_BDFID);
SAME(HSAN_AGENT_DOMAIN, HSA_AMD_AGENT_INFO_DOMAIN);
SAME(HSAN_QUEUE_SINGLE, HSA_QUEUE_TYPE_SINGLE);
SAME(HSAN_SIGNAL_GPU_ONLY, HSA_AMD_SIGNAL_AMD_GPU_ONLY);
SAME(HSAN_CONDITION_LT, HSA_SIGNAL_CONDITION_LT);
SAME(HSAN_WAIT_BLOCKED, HSA_WAIT_STATE_BLOCKED);
SAME(HSAN_PROFILE_FULL, HSA_PROFILE_FULL);
SAME(HSAN_ROUNDING_DEFAULT, HSA_DEFAULT_FLOAT_ROUNDING_MODE_DEFAULT);
SAME(HSAN_SYMBOL_KERNARG_BYTES, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_KERNARG_SEGMENT_SIZE);
SAME(HSAN_SYMBOL_GROUP_BYTES, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_GROUP_SEGMENT_SIZE);
SAME(HSAN_SYMBOL_PRIVATE_BYTES, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_PRIVATE_SEGMENT_SIZE);
SAME(HSAN_SYMBOL_DYNAMIC_CALLSTACK, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_DYNAMIC_CALLSTACK);
SAME(HSAN_SYMBOL_KERNEL_OBJECT, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT);
SAME(HSAN_PRIORITY_LOW, HSA_AMD_QUEUE_PRIORITY_LOW);
SAME(HSAN_PRIORITY_LOW + 2, HSA_AMD_QUEUE_PRIORITY_HIGH);

SAME(HSA_PACKET_INVALID, HSA_PACKET_TYPE_INVALID);
SAME(HSA_PACKET_DISPATCH, HSA_PACKET_TYPE_KERNEL_DISPATCH);
SAME(HSA_PACKET_BARRIER, HSA_PACKET_TYPE_BARRIER_AND);
SAME(HSA_PACKET_TYPE, (1u << HSA_PACKET_HEADER_WIDTH_TYPE) - 1);
SAME(HSA_PACKET_IN_ORDER, 1u << HSA_PACKET_HEADER_BARRIER);
SAME(HSA_PACKET_ACQUIRE,
     HSA_FENCE_SCOPE_SYSTEM << HSA_PACKET_HEADER_SCACQUIRE_FENCE_SCOPE);
SAME(HSA_PACKET_RELEASE,
     HSA_FENCE_SCOPE_SYSTEM << HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE);

#define AT(ours, theirs, member, named)                                                  \
	_Static_assert(offsetof(struct ours, member) == offsetof(theirs, named), #named)
AT(hsa_packet, hsa_kernel_dispatch_packet_t, setup, setup);
AT(hsa_packet, hsa_kernel_dispatch_packet_t, block, workgroup_size_x);
AT(hsa_packet, hsa_kernel_dispatch_packet_t, reserved0, reserved0);
AT(hsa_packet, hsa_kernel_dispatch_packet_t, grid, grid_size_x);
AT(hsa_packet, hsa_kernel_dispatch_packet_t, private_bytes, private_segment_size);
AT(hsa_packet, hsa_kernel_dispatch_packet_t, group_bytes, group_segment_size);
AT(hsa_packet, hsa_kernel_dispatch_packet_t, kernel, kernel_object);
AT(hsa_packet, hsa_kernel_dispatch_packet_t, kernarg, kernarg_address);
AT(hsa_packet, hsa_kernel_dispatch_packet_t, reserved2, reserved2);
AT(hsa_packet, hsa_kernel_dispatch_packet_t, completion, completion_signal);
AT(hsa_packet, hsa_barrier_and_packet_t, completion, completion_signal);
AT(our_queue, hsa_queue_t, type, type);
AT(our_queue, hsa_queue_t, base, base_address);
AT(our_queue, hsa_queue_t, doorbell, doorbell_signal);
AT(our_queue, hsa_queue_t, size, size);
AT(our_queue, hsa_queue_t, id, id);
AT(hsa_times, hsa_amd_profiling_dispatch_time_t, end, end);
_Static_assert(sizeof(struct our_queue) == sizeof(hsa_queue_t), "a queue");
_Static_assert(sizeof(hsa_barrier_and_packet_t) == sizeof(struct hsa_packet), "a packet");
_Static_assert(sizeof(hsa_signal_t) == sizeof(uint64_t), "a handle");
_Static_assert(sizeof(hsa_status_t) == sizeof(uint32_t), "a status");

#define TYPE(type, call, ...)                                                            \
	_Static_assert(                                                                  \
		__builtin_types_compatible_p(__typeof__(call), type(__VA_ARGS__)),       \
		#call)
#define CALL(call, ...) TYPE(hsa_status_t, call, __VA_ARGS__)
CALL(hsa_system_get_info, hsa_system_info_t, void *);
CALL(hsa_iterate_agents, hsa_status_t (*)(hsa_agent_t, void *), void *);
CALL(hsa_agent_get_info, hsa_agent_t, hsa_agent_info_t, void *);
CALL(hsa_queue_create, hsa_agent_t, uint32_t, hsa_queue_type32_t,
     void (*)(hsa_status_t, hsa_queue_t *, void *), void *, uint32_t, uint32_t,
     hsa_queue_t **);
CALL(hsa_queue_inactivate, hsa_queue_t *);
CALL(hsa_queue_destroy, hsa_queue_t *);
CALL(hsa_amd_queue_cu_set_mask, const hsa_queue_t *, uint32_t, const uint32_t *);
CALL(hsa_amd_queue_cu_get_mask, const hsa_queue_t *, uint32_t, uint32_t *);
CALL(hsa_amd_queue_set_priority, hsa_queue_t *, hsa_amd_queue_priority_t);
CALL(hsa_amd_profiling_set_profiler_enabled, hsa_queue_t *, int);
CALL(hsa_amd_profiling_get_dispatch_time, hsa_agent_t, hsa_signal_t,
     hsa_amd_profiling_dispatch_time_t *);
CALL(hsa_amd_signal_create, hsa_signal_value_t, uint32_t, const hsa_agent_t *, uint64_t,
     hsa_signal_t *);
CALL(hsa_signal_destroy, hsa_signal_t);
CALL(hsa_code_object_reader_create_from_memory, const void *, size_t,
     hsa_code_object_reader_t *);
CALL(hsa_code_object_reader_destroy, hsa_code_object_reader_t);
CALL(hsa_executable_create_alt, hsa_profile_t, hsa_default_float_rounding_mode_t,
     const char *, hsa_executable_t *);
CALL(hsa_executable_load_agent_code_object, hsa_executable_t, hsa_agent_t,
     hsa_code_object_reader_t, const char *, hsa_loaded_code_object_t *);
CALL(hsa_executable_freeze, hsa_executable_t, const char *);
CALL(hsa_executable_destroy, hsa_executable_t);
CALL(hsa_executable_get_symbol_by_name, hsa_executable_t, const char *,
     const hsa_agent_t *, hsa_executable_symbol_t *);
CALL(hsa_executable_symbol_get_info, hsa_executable_symbol_t,
     hsa_executable_symbol_info_t, void *);
TYPE(uint64_t, hsa_queue_load_read_index_scacquire, const hsa_queue_t *);
TYPE(uint64_t, hsa_queue_add_write_index_screlease, const hsa_queue_t *, uint64_t);
TYPE(hsa_signal_value_t, hsa_signal_load_scacquire, hsa_signal_t);
TYPE(hsa_signal_value_t, hsa_signal_wait_scacquire, hsa_signal_t, hsa_signal_condition_t,
     hsa_signal_value_t, uint64_t, hsa_wait_state_t);
TYPE(void, hsa_signal_store_relaxed, hsa_signal_t, hsa_signal_value_t);
TYPE(void, hsa_signal_store_screlease, hsa_signal_t, hsa_signal_value_t);
_Static_assert(sizeof(hsa_signal_value_t) == sizeof(int64_t), "a value");

static void compiled(void **state)
{
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(compiled)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
