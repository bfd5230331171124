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

#define DIGITS_MAX  14
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

/* Columns are bytes as they are, at most 255. */
void digits_as_bytes(struct digits_step *x);
/* A step from a into a value d, whose rows begin at d_at, so many bytes apart; 0: dense.
 */
int digits_step_at(struct lowered *l, uint32_t a, const struct digits_step *x, uint32_t d,
		   uint32_t d_at, uint32_t d_stride);
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
/* The same of the highest so many digits, of x and half of what they have room for. */
int digits_signed_bytes(struct lowered *l, uint32_t rows, uint32_t digits, uint32_t bytes,
			uint32_t *v);
/* Digits 0 to 3, each step bytes after the one before and no larger than 255, are a and
 * offset; comes to what digits_signed leaves of x = a * mult / 2^31, rounded half up. */
int digits_product(struct lowered *l, uint32_t rows, uint32_t step, uint32_t offset,
		   int32_t mult, uint32_t *v);
/* Of what digits_signed has left: x / 2^right, rounded half away from zero, and add, less
 * than 2^22 in magnitude, as two bytes above DIGITS_HALF, between which it is clamped. */
int digits_shift(struct lowered *l, uint32_t rows, uint32_t right, int32_t add,
		 uint32_t *v);
/* How many digits of fractions digits_shifted leaves. */
static inline uint32_t digits_off(uint32_t right)
{
	return (right + 7) / 8;
}

/* The same of so many bytes and their sign, not clamped: above the fractions the result's
 * two digits, and a guard of 128. */
int digits_shifted(struct lowered *l, uint32_t rows, uint32_t bytes, uint32_t right,
		   int32_t add, uint32_t *v);
/* Two bytes above DIGITS_HALF, and above what the type's smallest is below 0, become one
 * of that type, clamped. */
int digits_narrow(struct lowered *l, uint32_t rows, uint32_t v, enum npuc_type type,
		  uint32_t d);

/* ---- a constant for each of several numbers side by side ---------------------------- */

/* A pixel's bytes are parts, each of which has so many of every number; they become sums,
 * a number's side by side. */
struct digits_each {
	uint64_t pixels;
	uint32_t numbers, parts, bytes, columns;
	uint32_t step;    /* bytes from a digit to the next */
	uint8_t *weights; /* [numbers][columns][parts][bytes] */
	int32_t *bias;    /* [numbers][columns] */
};

/* Weights and biases of 0. */
int digits_each_new(struct lowered *l, struct digits_each *x);
/* The digits of a part are a number times 2^at, at a multiple of 8: it is multiplied by
 * factor, less than 2^56, times 2^up. */
void digits_each_times(struct digits_each *x, uint32_t number, uint32_t part, uint32_t at,
		       uint64_t factor, uint32_t up);
/* One weight. */
uint8_t *digits_each_weight(const struct digits_each *x, uint32_t number, uint32_t column,
			    uint32_t part, uint32_t byte);
void digits_each_bias(struct digits_each *x, uint32_t number, const uint8_t *digits);
/* A step from the pixels of a that begin at pixel first into those of d. */
int digits_each_at(struct lowered *l, uint32_t a, const struct digits_each *x,
		   uint64_t first, uint32_t d);
/* The same into a new value d. */
int digits_each(struct lowered *l, uint32_t a, const struct digits_each *x, uint32_t *d);

/* Digits of a constant, modulo 256^count: plus or minus value * 2^bit. */
void digits_add(uint8_t *digits, uint32_t count, uint64_t value, uint32_t bit);
void digits_sub(uint8_t *digits, uint32_t count, uint64_t value, uint32_t bit);

/* Of rows of digits the highest are two of y and one or two guards, which are 128 where y
 * is 0 to 65535: y + min, clamped, becomes int16 as memory has it. */
struct digits_int16 {
	uint32_t rows, digits, guards;
	int32_t min, max;
};

int digits_to_int16(struct lowered *l, uint32_t v, const struct digits_int16 *x,
		    uint32_t d);

#endif
