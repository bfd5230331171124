/* SPDX-License-Identifier: Apache-2.0 */
/* quant_gate.c - logistic and tanh of LSTM gates: gemmlowp's fixed point of 16 bits.
 * Constants are Q0.31 or Q2.29, as gemmlowp writes them, rounded to 16 bits. */
#include "quant.h"

#define ONE     INT16_MAX /* of Q0.15 */
#define ONE_Q2  (1 << 13) /* of Q2.13 */
#define THIRD   715827883
#define EIGHTH  1895147668    /* exp(-1/8) */
#define NEWTON0 1515870810    /* 48/17 in Q2.29 */
#define NEWTON1 (-1010580540) /* -32/17 */

static int16_t saturated(int32_t x)
{
	return (int16_t)(x > INT16_MAX ? INT16_MAX : x < INT16_MIN ? INT16_MIN : x);
}

/* x / 2^n, halves away from zero. */
static int32_t halved(int32_t x, int n)
{
	int32_t half = 1 << (n - 1);

	return x < 0 ? -((half - x) >> n) : (x + half) >> n;
}

static int16_t constant(int32_t raw)
{
	return (int16_t)halved(raw, 16);
}

/* a * b / 2^15, rounded half up. */
static int16_t product(int32_t a, int32_t b)
{
	int32_t ab = a * b;

	if (a == INT16_MIN && b == INT16_MIN)
		return INT16_MAX;
	return (int16_t)((ab + (ab >= 0 ? 1 << 14 : 1 - (1 << 14))) / (1 << 15));
}

/* exp(a) for a in [-1/4, 0), Q0.15 in and out. */
static int16_t exp_quarter(int32_t a)
{
	int32_t x = a + (1 << 12), x2 = product(x, x), x3 = product(x2, x);
	int32_t x4_4 = halved(product(x2, x2), 2);
	int32_t tail = halved(product(x4_4 + x3, constant(THIRD)) + x2, 1);

	return saturated(constant(EIGHTH) + product(constant(EIGHTH), x + tail));
}

/* exp(a) for a <= 0 of so many integer bits. */
static int16_t exp_negative(int32_t a, int integer_bits)
{
	/* exp(-1/4), exp(-1/2), exp(-1), ... exp(-16) */
	static const int32_t power[] = {1672461947, 1302514674, 790015084, 290630308,
					39332535,   720401,     242};
	const int fraction = 15 - integer_bits;
	const int32_t quarter = 1 << (fraction - 2);
	int32_t rest = (a & (quarter - 1)) - quarter, parts = rest - a;
	int16_t r;

	if (a == 0)
		return ONE;
	if (integer_bits > 5 && a < -(1 << (20 - integer_bits)))
		return 0;
	r = exp_quarter(rest * (1 << integer_bits));
	for (int i = 0; i < 7 && i - 2 < integer_bits; i++)
		if (parts & 1 << (fraction - 2 + i))
			r = product(r, constant(power[i]));
	return r;
}

/* 2 / (1 + x) in Q2.13 of x in Q0.15, by Newton and Raphson. */
static int32_t two_over_one_plus(int32_t x)
{
	int32_t half = (x + ONE + 1) / 2;
	int32_t y = constant(NEWTON0) + product(half, constant(NEWTON1));

	for (int i = 0; i < 3; i++)
		y += saturated(4 * product(y, ONE_Q2 - product(half, y)));
	return y;
}

void quant_table_logistic_gate(int16_t table[65536])
{
	for (int32_t i = INT16_MIN; i <= INT16_MAX; i++) {
		int32_t y = two_over_one_plus(exp_negative(i > 0 ? -i : i, 3));
		int16_t r = saturated(2 * y);

		if (i == 0)
			r = constant(1 << 30);
		table[(uint16_t)i] = (int16_t)(i < 0 ? ONE - r : r);
	}
}

void quant_table_tanh_gate(int integer_bits, int16_t table[65536])
{
	for (int32_t i = INT16_MIN; i <= INT16_MAX; i++) {
		int32_t e = exp_negative(i > 0 ? -i : i, integer_bits + 1);
		int16_t r = saturated(4 * (two_over_one_plus(e) - ONE_Q2));

		if (i == 0)
			r = 0;
		table[(uint16_t)i] = (int16_t)(i < 0 ? -r : r);
	}
}
