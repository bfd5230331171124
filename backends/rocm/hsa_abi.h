/* SPDX-License-Identifier: Apache-2.0 */
/* What of HSA's runtime is used here: values as Debian's 5.2.3 headers have them, and
 * plain types.  A handle, which is a structure of 64 bits there, is a uint64_t: it is
 * passed the same way. */
#ifndef BACKENDS_ROCM_HSA_ABI_H
#define BACKENDS_ROCM_HSA_ABI_H

#include <stddef.h>
#include <stdint.h>

#define HSA_STATUSES(X)                                                                  \
	X(MEMORY_APERTURE_VIOLATION, 41)                                                 \
	X(ILLEGAL_INSTRUCTION, 42)                                                       \
	X(MEMORY_FAULT, 43)                                                              \
	X(INVALID_ARGUMENT, 0x1001)                                                      \
	X(INVALID_QUEUE_CREATION, 0x1002)                                                \
	X(INVALID_ALLOCATION, 0x1003)                                                    \
	X(INVALID_AGENT, 0x1004)                                                         \
	X(INVALID_SIGNAL, 0x1006)                                                        \
	X(INVALID_QUEUE, 0x1007)                                                         \
	X(OUT_OF_RESOURCES, 0x1008)                                                      \
	X(INVALID_PACKET_FORMAT, 0x1009)                                                 \
	X(NOT_INITIALIZED, 0x100b)                                                       \
	X(INCOMPATIBLE_ARGUMENTS, 0x100d)                                                \
	X(INVALID_ISA, 0x100f)                                                           \
	X(INVALID_CODE_OBJECT, 0x1010)                                                   \
	X(INVALID_EXECUTABLE, 0x1011)                                                    \
	X(FROZEN_EXECUTABLE, 0x1012)                                                     \
	X(INVALID_SYMBOL_NAME, 0x1013)                                                   \
	X(EXCEPTION, 0x1016)                                                             \
	X(INVALID_EXECUTABLE_SYMBOL, 0x1019)                                             \
	X(INVALID_CODE_OBJECT_READER, 0x1021)                                            \
	X(FATAL, 0x1026)

enum hsa_status {
	HSAR_SUCCESS = 0,
	HSAR_INFO_BREAK = 1,
	HSAR_CU_MASK_REDUCED = 44, /* by HSA_CU_MASK */
	HSAR_ERROR = 0x1000,
#define HSAR_STATUS(name, value) HSAR_##name = (value),
	HSA_STATUSES(HSAR_STATUS)
#undef HSAR_STATUS
};

enum hsa_number {
	HSAN_SYSTEM_TIMESTAMP_FREQUENCY = 3,
	HSAN_AGENT_DEVICE = 17,
	HSAN_DEVICE_CPU = 0,
	HSAN_DEVICE_GPU = 1,
	HSAN_AGENT_COMPUTE_UNITS = 0xa002,
	HSAN_AGENT_BDFID = 0xa006,
	HSAN_AGENT_DOMAIN = 0xa00f,
	HSAN_QUEUE_SINGLE = 1,    /* one thread writes to it */
	HSAN_SIGNAL_GPU_ONLY = 1, /* nobody is woken */
	HSAN_CONDITION_LT = 2,
	HSAN_WAIT_BLOCKED = 0,
	HSAN_PROFILE_FULL = 1,
	HSAN_ROUNDING_DEFAULT = 0,
	HSAN_SYMBOL_KERNARG_BYTES = 11,
	HSAN_SYMBOL_GROUP_BYTES = 13,
	HSAN_SYMBOL_PRIVATE_BYTES = 14,
	HSAN_SYMBOL_DYNAMIC_CALLSTACK = 15,
	HSAN_SYMBOL_KERNEL_OBJECT = 22,
	HSAN_PRIORITY_LOW = 0, /* then normal, high */
};

struct hsa_queue {
	uint32_t type, features;
	void *base;
	uint64_t doorbell; /* signal */
	uint32_t size, reserved;
	uint64_t id;
};

/* A kernel's dispatch; a barrier has nothing of it but the header, five signals that it
 * waits for, from .private_bytes' place on all zero here, and the last one. */
struct hsa_packet {
	uint16_t header, setup; /* .setup: dimensions */
	uint16_t block[3], reserved0;
	uint32_t grid[3]; /* in work-items */
	uint32_t private_bytes, group_bytes;
	uint64_t kernel, kernarg, reserved2;
	uint64_t completion;
};
_Static_assert(sizeof(struct hsa_packet) == 64, "a packet");

#define HSA_PACKET_INVALID  1u
#define HSA_PACKET_DISPATCH 2u
#define HSA_PACKET_BARRIER  3u /* and; behind all that came before */
#define HSA_PACKET_TYPE     0xffu
#define HSA_PACKET_IN_ORDER (1u << 8)
#define HSA_PACKET_ACQUIRE  (2u << 9)  /* from the whole system */
#define HSA_PACKET_RELEASE  (2u << 11) /* to it */

struct hsa_times {
	uint64_t start, end; /* in ticks of the system's clock */
};

#endif
