/* SPDX-License-Identifier: Apache-2.0 */
/* check.h - what the passes have to know of an access, and share with what refuses it. */
#ifndef BACKENDS_CUDA_PTX_CHECK_H
#define BACKENDS_CUDA_PTX_CHECK_H

#include "module.h"

/* The barrier that the loop adds; kernels use the low numbers. */
#define PTX_LOOP_BARRIER 15

struct ptx_access {
	enum ptx_space space;
	uint32_t operand; /* the one in [] */
	uint32_t base;    /* token: register or variable */
	int64_t offset;
	const struct ptx_variable *variable; /* NULL: a register */
};

/* Of the statement of that number.  -EINVAL: not in a form that is known. */
int ptx_access_of(const struct ptx *m, const struct ptx_function *f, uint32_t number,
		  struct ptx_access *a);
uint32_t ptx_access_bytes(const struct ptx *m, const struct ptx_statement *s);
/* Is it %ctaid or %nctaid, the block's place in the grid? */
bool ptx_is_grid(const struct ptx *m, uint32_t token);
/* Check what kernels may call, for ENTRY and LOOP, and note what is refused. */
int ptx_check_functions(struct ptx *m, char why[PTX_WHY]);
/* Does it write its first operand? */
bool ptx_access_gives(const struct ptx *m, const struct ptx_statement *s);

#endif
