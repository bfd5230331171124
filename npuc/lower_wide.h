/* SPDX-License-Identifier: Apache-2.0 */
/* lower_wide.h - int16: products of two activations, functions by table, pools. */
#ifndef NPUC_LOWER_WIDE_H
#define NPUC_LOWER_WIDE_H

#include "lower_conv.h"

/* d = a * b of bytes as they are, exactly, at most 255; how: rows, bytes, places. */
int wide_multiply(struct lowered *l, uint32_t a, uint32_t b, uint32_t d,
		  struct hal_npu_mul how);
/* Bytes as they are, clamped; how: sizes, places, bias, clamp. */
int wide_gemm(struct lowered *l, uint32_t a, uint32_t b, uint32_t d,
	      struct hal_npu_gemm how);
/* Rows of n + 1 bytes, ones and behind them zeros: n bytes, a one where the last one is.
 */
int wide_edges(struct lowered *l, uint32_t a, uint32_t rows, uint32_t n, uint32_t d);
/* int16 as memory has it become rows of two digits, each above 2^15; byte 0 of each sum
 * counts. */
int wide_open(struct lowered *l, uint32_t a, uint32_t rows, uint32_t *v);
/* Rows of two such digits: their products, four digits above 2^31. */
int wide_product(struct lowered *l, uint32_t rows, uint32_t a, uint32_t b, uint32_t *v);
/* A function of int16 by its table, by the input's bits: made once, applied anywhere. */
struct wide_function {
	uint32_t constant[2]; /* values */
};
int wide_function(struct lowered *l, const int16_t *table, struct wide_function *f);
int wide_apply(struct lowered *l, const struct wide_function *f, uint32_t a, uint32_t d,
	       uint32_t rows);
/* d = table[a], by a's bits. */
int wide_table(struct lowered *l, uint32_t a, uint32_t d, uint32_t rows,
	       const int16_t *table);
/* v[2] = clamp(v[0] * v[1] * q), element by element. */
int wide_mul(struct lowered *l, const uint32_t v[3], struct quant_mult q, int32_t min,
	     int32_t max);
/* int16 [outer][k][inner] -> [outer][inner], the largest, clamped (lower_reduce.c). */
int wide_largest(struct lowered *l, uint32_t a, uint32_t d, const uint32_t size[3],
		 int32_t min, int32_t max);
/* d = the larger or the smaller of a and b, of so many elements (lower_reduce.c). */
int wide_choose(struct lowered *l, uint32_t a, uint32_t b, uint32_t d, uint32_t count,
		bool maximum);
/* MAX_POOL_2D. */
int wide_max_pool(struct lowered *l, uint32_t a, uint32_t d, const struct window *w,
		  int32_t min, int32_t max);
/* SOFTMAX of rows; q: of differences, to steps of 10 / 65535 (lower_softmax16.c). */
int wide_softmax(struct lowered *l, uint32_t a, uint32_t d, uint32_t cols,
		 struct quant_mult q);

#endif
