/* SPDX-License-Identifier: Apache-2.0 */
/* copier.h - copies beside a partition's slot: copier.c. */
#ifndef BACKENDS_NPU_COPIER_H
#define BACKENDS_NPU_COPIER_H

#include "internal.h"

/* A partition that another one's address space is for is a copier. */
static inline bool npu_is_copier(const struct npu_partition *part)
{
	return part->space != part;
}

/* part has host memory: make its copiers, if copies may run beside its slot and if there
 * is memory for them. */
void npu_copiers_open(struct npu_partition *part);
/* None of its commands is left. */
void npu_copiers_close(struct npu_partition *part);

/* Where cmd of part is to run: a copier, which has a slot then, or part itself. */
struct npu_partition *npu_place(struct npu_partition *part, const struct hal_bk_cmd *cmd);
/* The copier that has this slot gives it up: what it has not done of its commands is done
 * in its partition's own slot.  0, or -ENOMEM. */
int npu_copier_leave(struct npu_partition *copier);
/* All copiers of a host and its guests give up their slots.  0, or -ENOMEM. */
int npu_copiers_leave(struct npu_partition *host);

#endif
