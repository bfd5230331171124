/* SPDX-License-Identifier: Apache-2.0 */
/* complete.h - the ends of commands: complete.c. */
#ifndef BACKENDS_NPU_COMPLETE_H
#define BACKENDS_NPU_COMPLETE_H

#include "internal.h"

/* The first that may be at work; NULL: none. */
struct npu_command *npu_first_open(const struct npu_partition *part);
/* When c, which could not before first and has stopped at end, began. */
uint64_t npu_start_time(const struct npu_command *c, uint64_t first, uint64_t end);
/* How far the command had come decides which of its times exist; none is in the future.
 */
void npu_set_done(struct npu_partition *part, struct npu_command *c, int status);
/* What c alone has of scratch memory goes. */
void npu_scratch_drop(struct npu_command *c);
/* Commands that have ended: HEAD is read. */
void npu_look_at_head(struct npu_partition *part);
/* The slot's traffic so far was another's. */
void npu_count_from_now(struct npu_partition *part);
/* The command at the ring's head has failed, and why, or NULL: the machine says; its
 * queue's others go with it. */
void npu_fail_first(struct npu_partition *part, const char *text);

#endif
