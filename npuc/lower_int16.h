/* SPDX-License-Identifier: Apache-2.0 */
/* lower_int16.h - activations of 16 bits, which memory has as the file does: little
 * endian, two's complement. */
#ifndef NPUC_LOWER_INT16_H
#define NPUC_LOWER_INT16_H

#include "lower_conv.h"

/* A convolution or fully connected layer with int8 weights, once all else is known of it;
 * c->out has its multipliers and clamp. */
int int16_conv(struct lowered *l, struct conv *c);
/* Its bias of int32 or int64, or none. */
int int16_bias(struct lowered *l, struct conv *c, uint32_t number);

/* Numbers that are sums of parts, each int32 sums of a pixel's numbers side by side: part
 * i counts 2^at[i], a whole number of digits, and where that is not 1 it is above
 * 2^INT16_PART_ABOVE. */
#define INT16_PART_ABOVE 30

struct int16_parts {
	uint64_t pixels;
	uint32_t v, numbers, parts, at[4];
	bool carried;            /* four digits of a part in as many sums, not an int32 */
	uint32_t above;          /* not 0: the first part is above 2^above */
	const uint64_t *largest; /* [numbers]: magnitude */
	int32_t add;             /* to results, before they are clamped */
	struct hal_npu_requant out;
	const struct quant_once *once; /* [numbers]; NULL: by out.mult and out.shift */
};

/* d = such numbers requantized and clamped, by .once or as TensorFlow Lite does with
 * int64. */
int int16_requantize(struct lowered *l, const struct int16_parts *s, uint32_t d);

#define INT16_ADD_LEFT 15
/* v[2] = clamp((v[0] * q[0] + v[1] * q[1]) * q[2]), each rounded twice and the operands
 * first shifted left by INT16_ADD_LEFT: elements one by one.  minus: v[1] * -q[1]. */
struct int16_sum {
	struct quant_mult q[3];
	bool minus;
	int32_t min, max;
};

int int16_add(struct lowered *l, const uint32_t v[3], const struct int16_sum *op);
/* Numbers above offset, digits of them in v; |x - offset| is at most largest:
 * d = clamp(x * q + add), rounded twice. */
struct int16_number {
	uint32_t v, rows, digits, offset;
	uint64_t largest;
	struct quant_mult q;
	int32_t add, min, max;
};

int int16_store(struct lowered *l, const struct int16_number *x, uint32_t d);
/* Numbers that become x * mult / 2^31, rounded half up, and that / 2^-shift, rounded half
 * away from zero; digits are x + offset.  largest: magnitude of x. */
struct int16_rescaling {
	uint64_t pixels;
	uint32_t numbers, digits, v;
	bool sums;            /* v has an int32 of each number, whose bytes are digits */
	uint32_t left;        /* x is shifted so before, besides */
	uint32_t *offset;     /* [numbers] */
	uint64_t *largest;    /* [numbers] */
	struct quant_mult *q; /* [numbers] */
	int32_t add, min, max;
};

/* Makes the arrays. */
int int16_rescaling(struct lowered *l, struct int16_rescaling *r);
/* d = clamp(x * q + add). */
int int16_rescale32(struct lowered *l, const struct int16_rescaling *r, uint32_t d);
/* d = clamp(x * q + a), as far as 16 bits go. */
int int16_rescale_onto(struct lowered *l, const struct int16_rescaling *r, uint32_t a,
		       uint32_t d);
/* v[2] = clamp(v[0] + v[1]), or - v[1], of so many elements. */
int int16_sum(struct lowered *l, const uint32_t v[3], uint32_t rows, bool minus,
	      int32_t min, int32_t max);
/* The same, operands first divided by 2^right, a half away from zero. */
int int16_add_shifted(struct lowered *l, uint32_t v[3], const uint32_t right[2],
		      bool minus, int32_t min, int32_t max);
/* Averages of each channel's window, rounded half away from zero: c has operands, window,
 * channels, groups and clamp. */
int int16_average(struct lowered *l, struct conv *c);
/* d = clamp(a * real multiplier) of an operand and a result of which at least one is
 * int16, rounded twice as TensorFlow Lite does in int32. */
int int16_rescale(struct lowered *l, uint32_t a, uint32_t d, double real, int32_t min,
		  int32_t max);

#endif
