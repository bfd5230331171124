/* SPDX-License-Identifier: Apache-2.0 */
/* sparse.h - tensors of which a file has the elements that are not 0 alone. */
#ifndef NPUC_SPARSE_H
#define NPUC_SPARSE_H

#include "flat.h"
#include "npuc.h"

/* Expand size bytes of elements, one byte each, to a tensor of t's shape, as table
 * sparsity of the file says; *dense is malloc'ed.  NULL, or what is wrong. */
const char *npuc_expand(struct flat *f, struct flat_table sparsity,
			const struct npuc_tensor *t, const uint8_t *elements,
			uint64_t size, uint8_t **dense);

#endif
