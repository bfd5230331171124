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

#endif
