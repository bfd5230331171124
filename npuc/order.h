/* SPDX-License-Identifier: Apache-2.0 */
/* order.h - in which order layers run, so that little memory is in use at a time. */
#ifndef NPUC_ORDER_H
#define NPUC_ORDER_H

#include "lower.h"

/* Puts the steps into another order that computes the same: of the layers whose operands
 * are there always the one that frees most, or takes least; the file's order among
 * equals. The caller sees which order needs less.  -ENOMEM; models of more than a
 * thousand layers stay as they are. */
int npuc_order(struct lowered *l);

#endif
