/* SPDX-License-Identifier: Apache-2.0 */
/* lower_once.h - FULLY_CONNECTED as TensorFlow Lite has it since 2.20: round(sum * scale)
 * in double, a half away from zero. */
#ifndef NPUC_LOWER_ONCE_H
#define NPUC_LOWER_ONCE_H

#include "lower_conv.h"

/* Find the multipliers with which digits of c's sums give its results.  largest: [c->n],
 * magnitudes; all sums of a layer with one scale for all channels get one multiplier. */
int once_digits(struct lowered *l, const struct conv *c, const uint64_t *largest,
		struct quant_once **q);
/* A layer of 8 bits whose rows are no longer than the array adds up: requantized by
 * HAL_NPU_ROUND_ONCE, or in digits those channels for which no multiplier has the bits.
 */
int once_conv(struct lowered *l, struct conv *c);

#endif
