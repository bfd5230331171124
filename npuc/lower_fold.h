/* SPDX-License-Identifier: Apache-2.0 */
/* lower_fold.h - whole numbers that are known when a model is compiled: shapes, mostly.
 */
#ifndef NPUC_LOWER_FOLD_H
#define NPUC_LOWER_FOLD_H

#include "lower.h"

/* The operator in work, where it computes int32 or int64 of nothing but constants: its
 * result is a constant, too, and *folded. */
int lower_fold(struct lowered *l, bool *folded);
/* FILL of one constant of int8 or int16. */
int lower_filled(struct lowered *l);
/* What is left of operators that are known for constants only: an error. */
int lower_constants(struct lowered *l);
int lower_shape(struct lowered *l); /* SHAPE, RANK: of any tensor */

#endif
