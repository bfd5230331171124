/* SPDX-License-Identifier: Apache-2.0 */
/* stop.h - a slot lets go: stop.c. */
#ifndef BACKENDS_NPU_STOP_H
#define BACKENDS_NPU_STOP_H

#include "internal.h"

/* A PREEMPT code, of all that the slot has. */
void npu_request_stop(struct npu_partition *part, uint32_t mode);
/* A STATE code of a slot that has let go. */
static inline bool npu_has_stopped(uint32_t state)
{
	return state == NPU_STATE_FAULT || state == NPU_STATE_DRAINED ||
	       state == NPU_STATE_FOLDED || state == NPU_STATE_KILLED;
}
/* The slot has let go: what is left is to go on from .base. */
void npu_settle(struct npu_partition *part, uint32_t state);
/* The same, in a new ring. */
void npu_on_stopped(struct npu_partition *part, uint32_t state);

/* Device time at which npu_stop_hurry has to be called; UINT64_MAX: not at all. */
uint64_t npu_stop_hurry_ns(const struct npu_partition *part);
/* Turn the FOLD that has taken NPU_FOLD_CYCLES into a SAVE. */
void npu_stop_hurry(struct npu_partition *part);

#endif
