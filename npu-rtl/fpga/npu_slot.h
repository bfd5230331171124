/* SPDX-License-Identifier: Apache-2.0 */
/*
 * npu_slot.h - the C face of the NPU as a circuit in an FPGA's slot: the registers of its
 * AXI4-Lite bus, time, and a memory behind its AXI4 bus (npu-rtl/npu_kernel.h).
 *
 * Each built shape (rows x cols x slots x channels) is a shared object that exports
 * npu_slot_entry.  A slot is used from one thread at a time; slots are independent.
 */
#ifndef NPU_SLOT_H
#define NPU_SLOT_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define NPU_SLOT_ABI    1u
#define NPU_SLOT_SYMBOL "npu_slot_entry"

struct npu_slot;

/* The bytes behind an address of the card, for a burst; NULL: none are there, and the bus
 * says so. */
typedef void *(*npu_slot_memory_fn)(void *user, uint64_t address, uint64_t bytes);

struct npu_slot_api {
	uint32_t size;
	uint32_t abi;
	uint32_t rows, cols, slots, channels;
	/* Fresh from reset.  NULL when the host is out of memory. */
	struct npu_slot *(*create)(npu_slot_memory_fn memory, void *user);
	void (*destroy)(struct npu_slot *slot);
	/* Of so many of 256 cycles each channel of a bus makes the other end wait, by
	 * seed; answers then come in any order that the bus allows, and mixed.  0, as
	 * after create: none, in order. */
	void (*lazy)(struct npu_slot *slot, uint32_t of256, uint64_t seed);
	uint32_t (*read)(struct npu_slot *slot, uint32_t offset);
	/* strobes: one bit a byte of value. */
	void (*write)(struct npu_slot *slot, uint32_t offset, uint32_t value,
		      uint32_t strobes);
	/* Until the interrupt line is high or so many cycles have passed; how many. */
	uint64_t (*run)(struct npu_slot *slot, uint64_t max_cycles);
	int (*interrupt)(const struct npu_slot *slot);
	uint64_t (*cycle)(const struct npu_slot *slot);
	/* How often it has broken a rule of its buses, and the first time in words. */
	uint64_t (*wrong)(const struct npu_slot *slot, const char **text);
	/* Bursts and beats of data since create: reads and writes. */
	void (*traffic)(const struct npu_slot *slot, uint64_t bursts[2],
			uint64_t beats[2]);
};

typedef const struct npu_slot_api *(*npu_slot_entry_fn)(void);

#ifdef __cplusplus
}
#endif
#endif
