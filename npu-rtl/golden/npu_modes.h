/* SPDX-License-Identifier: Apache-2.0 */
/* npu_modes.h - npu_regs.sv's modes in C: which of them may change now. */
#ifndef NPU_MODES_H
#define NPU_MODES_H

#include <stdbool.h>
#include <stdint.h>

struct npu_modes {
	bool idle;           /* nothing is at work, nothing in flight */
	uint32_t idle_slots; /* a bit each */
	uint32_t serial;     /* SLOT_CTRL.SERIAL of each, a bit */
	bool locked;         /* HASH.LOCK */
	uint32_t slots, channels;
};

/* What comes of a write to the privileged page: a MODE code, or -1: it is to no mode.
 * BUCKET_SET is none of these. */
int npu_mode_verdict(const struct npu_modes *now, uint32_t address, uint32_t value);

#endif
