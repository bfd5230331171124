/* SPDX-License-Identifier: Apache-2.0 */
/* kept.h - what a KILL leaves of a command: kept.c. */
#ifndef BACKENDS_NPU_KEPT_H
#define BACKENDS_NPU_KEPT_H

#include "internal.h"

/* It stores nothing where it reads. */
bool npu_can_run_again(const uint32_t desc[16]);
/* The entry at which c goes on that a KILL has stopped behind entry done. */
uint32_t npu_killed_entry(const struct npu_command *c, uint32_t done);
/* The queue's command c ends with -ECANCELED; it was at work (ran), of which the last
 * lost_ns were in vain. */
void npu_cancel(struct npu_partition *part, struct npu_command *c, bool ran,
		uint64_t lost_ns);
/* c, which its queue has been given, goes on where what was dropped before was. */
void npu_goes_on(struct npu_queue *q, struct npu_command *c);

#endif
