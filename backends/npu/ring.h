/* SPDX-License-Identifier: Apache-2.0 */
/* ring.h - a partition's descriptor ring and its fence page: ring.c. */
#ifndef BACKENDS_NPU_RING_H
#define BACKENDS_NPU_RING_H

#include "internal.h"

#define NPU_FENCE_TIMES 64u /* start and end of each command at work */

/* Whose ring and fence page a command uses: its partition, or a copier of that. */
static inline struct npu_partition *npu_space_of(const struct npu_command *c)
{
	return c->space;
}

static inline bool npu_frozen(const struct npu_command *c)
{
	return c->queue->suspended == NPU_FOLDED;
}

/* A time that the machine has written in the fence page. */
uint64_t npu_fence_time(const struct npu_partition *part, uint32_t offset);
/* Where there the two times of c are; not any more. */
uint32_t npu_times_offset(const struct npu_command *c);
void npu_times_drop(struct npu_partition *part, struct npu_command *c);

/* How many entries c becomes: .body, .entries. */
void npu_command_measure(struct npu_command *c);
/* True when entry is one of the command's own descriptors, number *index. */
bool npu_is_body(const struct npu_command *c, uint32_t entry, uint32_t *index);
void npu_entry(const struct npu_command *c, uint32_t entry, uint32_t *desc);

/* The machine's word for TIMESTAMP is its cycles: what it has skipped is added when the
 * command has ended.  Nothing that could use the word is in the ring before. */
bool npu_needs_correction(const struct npu_partition *part, const struct npu_command *c);
void npu_correct_timestamp(struct npu_partition *part, const struct npu_command *c);

/* cmd has ended: what a copy to host memory has left in the machine's pages goes there,
 * if its bytes bounce. */
void npu_bounce_out(const struct hal_bk_cmd *cmd);

/* Fills the ring as far as it goes. */
void npu_feed(struct npu_partition *part);
/* Entries of c that the machine has completed, as far as .head tells. */
uint32_t npu_completed(const struct npu_partition *part, const struct npu_command *c);
/* The ring begins anew; commands go on from .base. */
void npu_restart(struct npu_partition *part);

#endif
