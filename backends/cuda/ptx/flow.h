/* SPDX-License-Identifier: Apache-2.0 */
/* flow.h - where a function's branches lead, and what only some threads may run. */
#ifndef BACKENDS_CUDA_PTX_FLOW_H
#define BACKENDS_CUDA_PTX_FLOW_H

#include "module.h"

#define PTX_NOWHERE        UINT32_MAX
#define PTX_FLOW_REGISTERS (1u << 20) /* of a function, at most */

/* By a function's statements, the first of them 0. */
struct ptx_flow {
	const struct ptx_function *f;
	uint32_t *target; /* of a branch; PTX_NOWHERE: none */
	bool *again;      /* it may run more than once */
};

/* Targets and loops; what was there before is freed. */
int ptx_flow_find(const struct ptx *m, const struct ptx_function *f,
		  struct ptx_flow *flow, char why[PTX_WHY]);
void ptx_flow_free(struct ptx_flow *flow);
/* *at: a statement at which threads wait for one another, although it may be that only
 * some threads of a block that have not ended get to it; PTX_NOWHERE: there is none. */
int ptx_flow_parts(const struct ptx *m, const struct ptx_flow *flow, uint32_t *at,
		   char why[PTX_WHY]);
bool ptx_waits(const struct ptx *m, const struct ptx_statement *s);

#endif
