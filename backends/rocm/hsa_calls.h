/* SPDX-License-Identifier: Apache-2.0 */
/* Every call of HSA's runtime that is made here, once: X(name, parameters, arguments) of
 * those that answer a status, X(type, name, parameters, arguments) of the others.  All
 * are in 5.2.3. */
#ifndef BACKENDS_ROCM_HSA_CALLS_H
#define BACKENDS_ROCM_HSA_CALLS_H

#include "hsa_abi.h"

/* clang-format off */
#define HSA_CALLS(X) \
X(hsa_init, (void), ()) \
X(hsa_system_get_info, (uint32_t what, void *value), (what, value)) \
X(hsa_iterate_agents, (uint32_t (*each)(uint64_t agent, void *user), void *user), \
	(each, user)) \
X(hsa_agent_get_info, (uint64_t agent, uint32_t what, void *value), \
	(agent, what, value)) \
X(hsa_queue_create, (uint64_t agent, uint32_t size, uint32_t type, \
	void (*failed)(uint32_t status, struct hsa_queue *queue, void *user), \
	void *user, uint32_t private_bytes, uint32_t group_bytes, \
	struct hsa_queue **queue), \
	(agent, size, type, failed, user, private_bytes, group_bytes, queue)) \
X(hsa_queue_inactivate, (struct hsa_queue *queue), (queue)) \
X(hsa_queue_destroy, (struct hsa_queue *queue), (queue)) \
X(hsa_amd_queue_cu_set_mask, (const struct hsa_queue *queue, uint32_t bits, \
	const uint32_t *mask), (queue, bits, mask)) \
X(hsa_amd_queue_cu_get_mask, (const struct hsa_queue *queue, uint32_t bits, \
	uint32_t *mask), (queue, bits, mask)) \
X(hsa_amd_queue_set_priority, (struct hsa_queue *queue, uint32_t priority), \
	(queue, priority)) \
X(hsa_amd_profiling_set_profiler_enabled, (struct hsa_queue *queue, int on), \
	(queue, on)) \
X(hsa_amd_profiling_get_dispatch_time, (uint64_t agent, uint64_t signal, \
	struct hsa_times *times), (agent, signal, times)) \
X(hsa_amd_signal_create, (int64_t value, uint32_t consumer_count, \
	const uint64_t *consumers, uint64_t attributes, uint64_t *signal), \
	(value, consumer_count, consumers, attributes, signal)) \
X(hsa_signal_destroy, (uint64_t signal), (signal)) \
X(hsa_amd_memory_async_copy, (void *dst, uint64_t dst_agent, const void *src, \
	uint64_t src_agent, size_t bytes, uint32_t count, const uint64_t *waits, \
	uint64_t signal), \
	(dst, dst_agent, src, src_agent, bytes, count, waits, signal)) \
X(hsa_code_object_reader_create_from_memory, (const void *code, size_t bytes, \
	uint64_t *reader), (code, bytes, reader)) \
X(hsa_code_object_reader_destroy, (uint64_t reader), (reader)) \
X(hsa_executable_create_alt, (uint32_t profile, uint32_t rounding, \
	const char *options, uint64_t *executable), \
	(profile, rounding, options, executable)) \
X(hsa_executable_load_agent_code_object, (uint64_t executable, uint64_t agent, \
	uint64_t reader, const char *options, uint64_t *loaded), \
	(executable, agent, reader, options, loaded)) \
X(hsa_executable_freeze, (uint64_t executable, const char *options), \
	(executable, options)) \
X(hsa_executable_destroy, (uint64_t executable), (executable)) \
X(hsa_executable_get_symbol_by_name, (uint64_t executable, const char *name, \
	const uint64_t *agent, uint64_t *symbol), (executable, name, agent, symbol)) \
X(hsa_executable_symbol_get_info, (uint64_t symbol, uint32_t what, void *value), \
	(symbol, what, value))
#define HSA_VALUE_CALLS(X) \
X(uint64_t, hsa_queue_load_read_index_scacquire, (const struct hsa_queue *queue), \
	(queue)) \
X(uint64_t, hsa_queue_add_write_index_screlease, (const struct hsa_queue *queue, \
	uint64_t value), (queue, value)) \
X(int64_t, hsa_signal_load_scacquire, (uint64_t signal), (signal)) \
X(int64_t, hsa_signal_wait_scacquire, (uint64_t signal, uint32_t condition, \
	int64_t than, uint64_t timeout, uint32_t state), \
	(signal, condition, than, timeout, state))
#define HSA_STORE_CALLS(X) \
X(void, hsa_signal_store_relaxed, (uint64_t signal, int64_t value), (signal, value)) \
X(void, hsa_signal_store_screlease, (uint64_t signal, int64_t value), (signal, value))
/* clang-format on */

#endif
