/* SPDX-License-Identifier: Apache-2.0 */
/* vote.h - where the threads of a block learn that it is stopped. */
#ifndef BACKENDS_CUDA_PTX_VOTE_H
#define BACKENDS_CUDA_PTX_VOTE_H

#include "flow.h"

struct ptx_vote {
	uint32_t at; /* in front of that statement of the function's */
	bool fused;  /* it is a barrier of all threads, which takes the vote along */
	bool parted; /* threads may have taken different branches before */
	bool early;  /* some of these lead to the function's end: ptx_vote_leaves() */
};

/* Find the last place that all threads come to, or else end, before they do anything that
 * others can see or that a stopped launch in front may make fail. */
void ptx_vote_find(const struct ptx *m, const struct ptx_flow *flow, struct ptx_vote *v);
/* Return whether the statement, which is before the vote, ends the thread. */
bool ptx_vote_leaves(const struct ptx *m, const struct ptx_flow *flow, uint32_t number);

#endif
