/* SPDX-License-Identifier: Apache-2.0 */
/* lower_digits.h - numbers of more than 8 bits.
 *
 * They are rows of int32 sums, a sum for each digit to base 256, the lowest first.  A
 * GEMM over all rows reads those sums as bytes: byte 0 of a sum belongs to its digit,
 * byte 1 to the next one, so that weights of 1 hand carries on, and other weights
 * multiply by the digits of a constant. */
#ifndef NPUC_LOWER_DIGITS_H
#define NPUC_LOWER_DIGITS_H

#include "lower.h"

#define DIGITS_MAX  8
#define DIGITS_SUM  4         /* bytes */
#define DIGITS_HALF (1 << 15) /* what a number of 16 bits is stored above */

/* The bytes of a row become sums, or bytes where there is a requantization. */
struct digits_step {
	uint32_t rows, bytes, columns;
	uint8_t weights[DIGITS_MAX * DIGITS_SUM][DIGITS_MAX];
	int32_t bias[DIGITS_MAX];
	bool minus;                  /* weights are int8 */
	const int32_t *mult, *shift; /* of each column; NULL: sums */
	int32_t zero_point, min, max;
	uint32_t flags; /* HAL_NPU_D_UINT8 */
};

/* A step from a into a new value d. */
int digits_new(struct lowered *l, uint32_t a, const struct digits_step *x, uint32_t *d);

/* Those that follow work on *v, rows of it, and leave their result there. */

/* Carries are handed on so many times.  The lowest of n digits has none from below, and
 * each time one more is done: n - 1 times are enough. */
int digits_carry(struct lowered *l, uint32_t rows, uint32_t digits, uint32_t times,
		 uint32_t *v);
/* All carries.  The highest four digits are y = x + 2^31: they become four bytes, and
 * byte 4 is 255 where x is negative, else 0. */
int digits_signed(struct lowered *l, uint32_t rows, uint32_t digits, uint32_t *v);
/* Digits 0 to 3, each step bytes after the one before and no larger than 255, are a and
 * offset; comes to what digits_signed leaves of x = a * mult / 2^31, rounded half up. */
int digits_product(struct lowered *l, uint32_t rows, uint32_t step, uint32_t offset,
		   int32_t mult, uint32_t *v);
/* Of what digits_signed has left: x / 2^right, rounded half away from zero, and add, less
 * than 2^22 in magnitude, as two bytes above DIGITS_HALF, between which it is clamped. */
int digits_shift(struct lowered *l, uint32_t rows, uint32_t right, int32_t add,
		 uint32_t *v);
/* Two bytes above DIGITS_HALF, and above what the type's smallest is below 0, become one
 * of that type, clamped. */
int digits_narrow(struct lowered *l, uint32_t rows, uint32_t v, enum npuc_type type,
		  uint32_t d);

#endif
