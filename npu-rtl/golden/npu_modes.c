/* SPDX-License-Identifier: Apache-2.0 */
/* npu_modes.c - modes of the machine and of slots. */
#include "npu_modes.h"

#include "hash.h"
#include "npu_regs.h"

static bool is_array(uint32_t address, uint32_t base, uint32_t n)
{
	return address >= base && address < base + 4 * n;
}

static bool is_ctrl(uint32_t address)
{
	return is_array(address, NPU_GLB_SLOT_CTRL_ADDR, NPU_GLB_SLOT_CTRL_N);
}

static bool of_slot(uint32_t address)
{
	return is_ctrl(address) ||
	       is_array(address, NPU_GLB_PT_BASE_ADDR, NPU_GLB_PT_BASE_N) ||
	       is_array(address, NPU_GLB_PT_CONTEXT_ADDR, NPU_GLB_PT_CONTEXT_N);
}

static bool is_hash(uint32_t address)
{
	return address == NPU_GLB_HASH_ADDR ||
	       is_array(address, NPU_GLB_XMASK_ADDR, NPU_GLB_XMASK_N);
}

static bool is_arb(uint32_t address)
{
	return is_array(address, NPU_GLB_ARB_ADDR, NPU_GLB_ARB_N);
}

static bool of_machine(uint32_t address)
{
	return is_hash(address) || is_arb(address) || address == NPU_GLB_CTRL_ADDR ||
	       address == NPU_GLB_TIMING_ADDR || address == NPU_GLB_TURNS_ADDR ||
	       address == NPU_GLB_TURN_ORDER_ADDR || address == NPU_GLB_CH_GROUP_ADDR;
}

/* Only what was built can be named. */
static bool hash_ok(uint32_t value, uint32_t channels)
{
	struct npu_hash h = {0};

	npu_hash_of_register(&h, value);
	return h.q % 2 && h.k <= 4 && h.q << h.k <= channels && h.gran >= 8 &&
	       h.gran <= 12;
}

static int slot_verdict(const struct npu_modes *now, uint32_t address, uint32_t value)
{
	uint32_t slot = address >> 2 & 7u;

	if (slot >= now->slots)
		return NPU_MODE_RANGE;
	if (now->idle_slots >> slot & 1u)
		return NPU_MODE_OK;
	/* Translations may be forgotten at any time. */
	if (is_ctrl(address) &&
	    NPU_REG_GET(value, SLOT_CTRL_SERIAL) == (now->serial >> slot & 1u))
		return NPU_MODE_OK;
	return NPU_MODE_BUSY;
}

int npu_mode_verdict(const struct npu_modes *now, uint32_t address, uint32_t value)
{
	if (of_slot(address))
		return slot_verdict(now, address, value);
	if (!of_machine(address))
		return -1;
	if (!now->idle)
		return NPU_MODE_BUSY;
	if (is_hash(address) && now->locked)
		return NPU_MODE_LOCKED;
	if ((address == NPU_GLB_HASH_ADDR && !hash_ok(value, now->channels)) ||
	    (is_arb(address) && NPU_REG_GET(value, ARB_MODE) > NPU_ARB_TURNS))
		return NPU_MODE_RANGE;
	return NPU_MODE_OK;
}
