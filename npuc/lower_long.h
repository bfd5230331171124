/* SPDX-License-Identifier: Apache-2.0 */
/* lower_long.h - sums of more products than the array adds up. */
#ifndef NPUC_LOWER_LONG_H
#define NPUC_LOWER_LONG_H

#include "lower_conv.h"

#define LONG_MOST  33025u /* products that int32 has room for, whatever they are */
#define LONG_PARTS 255u   /* of a kernel that adds them up */

/* A fully connected layer of 8 bits, c->w.y.in rows of c->w.c inputs, of which there may
 * be more than LONG_MOST; all else of c is as conv_images takes it. */
int long_conv(struct lowered *l, const struct conv *c);
/* The magnitude that a sum of c->w.c products and the bias may come to in 32 bits. */
uint64_t long_largest(const struct lowered *l, const struct conv *c, uint32_t n);

#endif
