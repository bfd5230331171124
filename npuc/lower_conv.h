/* SPDX-License-Identifier: Apache-2.0 */
/* lower_conv.h - what operators have in common that become convolutions. */
#ifndef NPUC_LOWER_CONV_H
#define NPUC_LOWER_CONV_H

#include "lower.h"

#define CONV_SAME       0u /* padding, by its code in the file */
#define CONV_VALID      1u
#define CONV_STRIDE_MAX 15u

/* One direction of a window that moves over an image. */
struct axis {
	uint32_t in, out, k, stride, dilation, pad;
};

struct window {
	uint32_t images, c;
	struct axis y, x;
};

/* A convolution before it becomes one step an image. */
struct conv {
	struct window w;
	uint32_t n, groups;
	uint32_t a, d, weights; /* tensors */
	const int8_t *data;     /* weights, [n][kh][kw][c / groups] */
	uint32_t act;
	struct hal_npu_requant out;
	uint32_t flags;
	int32_t a_zero, b_zero;
	uint32_t d_at, d_stride; /* of a pixel's results; 0: dense */
	bool wide;               /* activations are int16: lower_int16.h */
	bool int32;              /* and sums int32, else int64 */
	const int64_t *bias;     /* of those; NULL: none */
	bool exact;              /* requantized in double, by: */
	const double *real;      /* as out.mult */
};

/* Operand number and the result: 8 bits, or int16. */
int conv_operands(struct lowered *l, struct conv *c, uint32_t number);
int conv_image(struct lowered *l, uint32_t tensor, struct window *w);
void conv_describe(struct lowered *l, const struct window *w, uint32_t n);
/* Weights: a constant of the activations' own type, int8 of int16 ones; zero points as
 * the reference kernels heed them. */
int conv_weights(struct lowered *l, struct conv *c, uint32_t number, bool zero);
/* The bias, of c->n sums, which may be left out; coarse: its scale is checked. */
int conv_bias(struct lowered *l, struct conv *c, uint32_t number, bool coarse);
/* Multipliers of the output channels.  TensorFlow Lite rounds the product of the two
 * scales to float where the weights have one scale for all (coarse) and c is not exact,
 * else not. */
int conv_requant(struct lowered *l, struct conv *c, bool coarse);
/* A step an image from c->a to c->d, which are no tensors but values here. */
int conv_images(struct lowered *l, struct conv *c);
/* The same, or what it takes where activations are int16. */
int conv_steps(struct lowered *l, struct conv *c);

#endif
