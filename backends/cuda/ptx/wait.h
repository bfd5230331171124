/* SPDX-License-Identifier: Apache-2.0 */
/* wait.h - loops that may wait for other blocks. */
#ifndef BACKENDS_CUDA_PTX_WAIT_H
#define BACKENDS_CUDA_PTX_WAIT_H

#include "flow.h"

/* What a function may do, or one that it calls: bits of ptx_function.does. */
#define PTX_DOES_POLL   1u /* reads what other blocks write, as if to wait for it */
#define PTX_DOES_SHARED 2u /* ... by an atomic, or past the first cache */
#define PTX_DOES_READ   4u /* ... by a plain load */
#define PTX_DOES_EXIT   8u
#define PTX_DOES_REPEAT 16u /* calls itself, perhaps */

/* Is it a load that sees what other blocks write at once, or an atomic that may change
 * nothing? */
bool ptx_polls(const struct ptx *m, const struct ptx_statement *s);
/* What it reads of memory that other blocks may write: PTX_DOES_SHARED, PTX_DOES_READ. */
uint32_t ptx_reads(const struct ptx *m, const struct ptx_statement *s);
/* The function that a call names; UINT32_MAX: it is not seen. */
uint32_t ptx_called(const struct ptx *m, const struct ptx_statement *s);
/* What the function that a call names does; of one that is not named, all that any does.
 */
uint32_t ptx_does(const struct ptx *m, const struct ptx_statement *s);
/* Fill in what functions do, and which are refused. */
int ptx_wait_sum(struct ptx *m, char why[PTX_WHY]);
/* *at: a statement that ends a loop by what another block may write, and not otherwise;
 * PTX_NOWHERE: there is none. */
int ptx_wait_find(const struct ptx *m, const struct ptx_flow *flow, uint32_t *at,
		  char why[PTX_WHY]);

#endif
