/* SPDX-License-Identifier: Apache-2.0 */
/* save.h - where an operation that was stopped inside goes on: save.c. */
#ifndef BACKENDS_NPU_SAVE_H
#define BACKENDS_NPU_SAVE_H

#include "internal.h"

/* Memory of the tenant's for what FOLD and SAVE store; 0 or -ENOSPC. */
int npu_save_reserve(struct npu_partition *space);
void npu_save_close(struct npu_partition *space);
/* The slot is about to be stopped in this mode, a PREEMPT code: the machine knows where
 * to store.  The mode to ask for: DRAIN where there is no room for that. */
uint32_t npu_save_ask(struct npu_partition *part, uint32_t mode);
/* The slot stands inside a descriptor of c: what it has stored becomes c's. */
void npu_save_take(struct npu_partition *part, struct npu_command *c);
/* c goes on inside its descriptor, which is the first of an empty ring. */
void npu_save_put(struct npu_partition *part, struct npu_command *c);
void npu_save_drop(struct npu_command *c);
uint64_t npu_saved_bytes(const struct npu_command *c);

#endif
