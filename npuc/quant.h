/* SPDX-License-Identifier: Apache-2.0 */
/* quant.h - TensorFlow Lite's quantized arithmetic, as its reference kernels do it. */
#ifndef NPUC_QUANT_H
#define NPUC_QUANT_H

#include <stdbool.h>
#include <stdint.h>

#include "npuc.h"

struct quant_mult {
	int32_t mult;  /* Q31, 2^30 .. 2^31 - 1, or 0 */
	int32_t shift; /* > 0: left */
};

/* real >= 0; one that is not finite, or too large to be of use, has shift INT32_MAX. */
struct quant_mult quant_of(double real);
/* x * mult * 2^(shift - 31), rounded twice: half up in magnitude each time. */
int32_t quant_apply(int32_t x, struct quant_mult q);

/* x * mult / 2^right, rounded to the nearest. */
#define QUANT_ONCE_BITS  56 /* of mult, at most */
#define QUANT_ONCE_RIGHT 80
struct quant_once {
	uint64_t mult;
	uint32_t right;
};

/* Multipliers that give round(x * real), computed in double, a half away from zero, for
 * |x| up to largest, less than 2^40, as far as results are at most most, less than 2^17,
 * in magnitude; larger ones are at least that.  false: there is none of so many bits. */
/* For HAL_NPU_ROUND_ONCE. */
bool quant_once_mult(double real, uint64_t largest, uint32_t most, struct quant_mult *q);
/* With it no x is a tie: a half may be rounded either way. */
bool quant_once_of(double real, uint64_t largest, uint32_t most, struct quant_once *q);

/* Smallest and largest value of int8, uint8 or int16. */
int32_t quant_min(enum npuc_type type);
int32_t quant_max(enum npuc_type type);

/* Fused activations by their code in the file. */
enum quant_act {
	QUANT_ACT_NONE = 0,
	QUANT_ACT_RELU = 1,
	QUANT_ACT_RELU_N1_TO_1 = 2,
	QUANT_ACT_RELU6 = 3,
	QUANT_ACT_RELU_0_TO_1 = 256, /* an operator, fused with none */
};

/* The clamp that an activation means for an output of this type and quantization; false:
 * a bound is no int32. */
bool quant_range(enum quant_act act, enum npuc_type type, float scale, int32_t zero_point,
		 int32_t *min, int32_t *max);

/* Tables by the input's bits. */
struct quant_side {
	enum npuc_type type;
	float scale;
	int32_t zero_point;
};

/* out = clamp(apply(in - zero point) + zero point) */
void quant_table_rescale(struct quant_side in, struct quant_side out, struct quant_mult q,
			 int32_t min, int32_t max, uint8_t table[256]);
void quant_table_float(struct quant_side in, struct quant_side out, float (*fn)(float),
		       uint8_t table[256]);
float quant_logistic(float x);
float quant_elu(float x);
float quant_gelu(float x);
float quant_gelu_tanh(float x); /* the approximation */
/* -in as a byte, whatever the scales. */
void quant_table_negative(uint8_t table[256]);
/* |in| and 1 / sqrt(in), by their multiplier; of 0 and less the largest. */
void quant_table_abs(struct quant_side in, struct quant_side out, uint8_t table[256]);
bool quant_table_rsqrt(struct quant_side in, struct quant_side out, uint8_t table[256]);
/* sqrt(in), cut off; of less than 0 that of 0. */
void quant_table_sqrt(struct quant_side in, struct quant_side out, uint8_t table[256]);
/* log(in); of 0 and less the smallest. */
void quant_table_log(struct quant_side in, struct quant_side out, uint8_t table[256]);
/* in * relu6(in + 3) / 6 in 16 bits; false: the output's scale is less than 1/128 of the
 * input's. */
bool quant_table_hard_swish(struct quant_side in, struct quant_side out,
			    uint8_t table[256]);
/* LOGISTIC or TANH of int16, by the input's bits; false: the scale is too large. */
bool quant_table_sigmoid(float scale, bool logistic, int16_t table[65536]);
/* Logistic of Q3.12, or tanh of a number of so many integer bits, 0 to 6, in gemmlowp's
 * fixed point of 16 bits, by the input's bits: Q0.15. */
void quant_table_logistic_gate(int16_t table[65536]);
void quant_table_tanh_gate(int integer_bits, int16_t table[65536]);
/* SOFTMAX of int16, by the input's bits: exp of -10 to 0, and 1 / (1 + x) of 0 to 1. */
void quant_table_exp16(int16_t table[65536]);
void quant_table_inverse16(int16_t table[65536]);
/* The number that these bytes are: int8, uint8 or int16. */
int32_t quant_number(const uint8_t *bytes, enum npuc_type type);
/* The number that a byte of this type is. */
int32_t quant_value(uint8_t bits, enum npuc_type type);
/* x = in - zero point; out = apply(x, above), or apply(x * times, below) of a negative x,
 * and the output's zero point. */
struct quant_leaky {
	struct quant_mult above, below;
	int32_t times;
};
void quant_table_leaky16(const struct quant_leaky *leaky, int16_t table[65536]);
void quant_table_leaky(struct quant_side in, struct quant_side out,
		       const struct quant_leaky *leaky, uint8_t table[256]);

/* Softmax: Q31 exp of beta * scale * (0, -1 ... -255); false: beta * scale is too small
 * for TensorFlow Lite, too. */
bool quant_table_softmax(double beta, double scale, int32_t table[256]);
/* LOG_SOFTMAX: exp of scale * (0, -1 ... -255) in steps of 2^-19, and what it is of, in
 * magnitude, in steps of 2^-26; 0 and -1 where it is left out; false: as above. */
bool quant_table_log_softmax(double scale, int32_t power[256], int32_t below[256]);
/* The logarithm of sum / 2^19, 1 or more, in steps of 2^-26. */
int32_t quant_log(int32_t sum);

/* QUANTIZE and DEQUANTIZE of float32, on the host. */
int32_t quant_from_float(float x, struct quant_side to);
float quant_to_float(int32_t q, struct quant_side from);

#endif
