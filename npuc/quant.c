/* SPDX-License-Identifier: Apache-2.0 */
/* quant.c - TensorFlow Lite's quantized arithmetic on the host: multipliers and tables.
 * The scheme: Jacob et al., "Quantization and Training of Neural Networks for Efficient
 * Integer-Arithmetic-Only Inference", CVPR 2018, sections 2.1 and 2.2. */
#include "quant.h"

#include <math.h>

struct quant_mult quant_of(double real)
{
	struct quant_mult q = {0, 0};
	int exponent;
	int64_t fixed;

	if (real == 0)
		return q;
	if (!(real < 1e30)) { /* and not a number */
		q.shift = INT32_MAX;
		return q;
	}
	fixed = (int64_t)round(frexp(real, &exponent) * 2147483648.0);
	if (fixed == INT64_C(1) << 31) {
		fixed /= 2;
		exponent++;
	}
	if (exponent < -31) /* all products would be 0 */
		return q;
	q.mult = (int32_t)fixed;
	q.shift = exponent;
	return q;
}

/* round(a * b / 2^31), a half upwards; saturates the one product that does not fit. */
static int32_t high_mul(int32_t a, int32_t b)
{
	int64_t ab = (int64_t)a * b;

	if (a == INT32_MIN && b == INT32_MIN)
		return INT32_MAX;
	return (int32_t)((ab + (ab >= 0 ? INT64_C(1) << 30 : 1 - (INT64_C(1) << 30))) /
			 (INT64_C(1) << 31));
}

/* x / 2^n, halves away from zero; n 0 to 31. */
static int32_t round_shift(int32_t x, int n)
{
	int64_t magnitude = x < 0 ? -(int64_t)x : x;
	int64_t half = n ? INT64_C(1) << (n - 1) : 0;
	int64_t r = (magnitude + half) >> n;

	return (int32_t)(x < 0 ? -r : r);
}

static int32_t shift_left(int32_t x, int n)
{
	return n < 32 ? (int32_t)((uint32_t)x << n) : 0;
}

int32_t quant_apply(int32_t x, struct quant_mult q)
{
	int left = q.shift > 0 ? q.shift : 0;
	int right = q.shift > 0 ? 0 : -q.shift;

	return round_shift(high_mul(shift_left(x, left), q.mult), right);
}

int32_t quant_min(enum npuc_type type)
{
	return type == NPUC_UINT8 ? 0 : type == NPUC_INT16 ? INT16_MIN : -128;
}

int32_t quant_max(enum npuc_type type)
{
	return type == NPUC_UINT8 ? 255 : type == NPUC_INT16 ? INT16_MAX : 127;
}

/* zero_point + round(x / scale), in float as TensorFlow Lite divides. */
static bool level_of(float x, float scale, int32_t zero_point, int32_t *q)
{
	float steps = roundf(x / scale);

	/* Zero points are within 255: 16 bits are what is left after the clamp. */
	if (!(steps > -2147483648.0f && steps < 2147483648.0f))
		return false;
	if (steps > 1e9f || steps < -1e9f)
		steps = steps > 0 ? 1e9f : -1e9f;
	*q = zero_point + (int32_t)steps;
	return true;
}

bool quant_range(enum quant_act act, enum npuc_type type, float scale, int32_t zero_point,
		 int32_t *min, int32_t *max)
{
	int32_t low = quant_min(type), high = quant_max(type);
	bool ok = true;

	*min = low;
	*max = high;
	switch (act) {
	case QUANT_ACT_RELU:
		low = zero_point;
		break;
	case QUANT_ACT_RELU6:
		low = zero_point;
		ok = level_of(6, scale, zero_point, &high);
		break;
	case QUANT_ACT_RELU_N1_TO_1:
		ok = level_of(-1, scale, zero_point, &low) &&
		     level_of(1, scale, zero_point, &high);
		break;
	case QUANT_ACT_RELU_0_TO_1:
		low = zero_point;
		ok = level_of(1, scale, zero_point, &high);
		break;
	case QUANT_ACT_NONE:
		break;
	}
	if (low > *min)
		*min = low;
	if (high < *max)
		*max = high;
	return ok;
}

int32_t quant_number(const uint8_t *bytes, enum npuc_type type)
{
	if (type == NPUC_INT16)
		return (int16_t)(bytes[0] | bytes[1] << 8);
	return quant_value(bytes[0], type);
}

/* ---- tables ----------------------------------------------------------------------- */

int32_t quant_value(uint8_t bits, enum npuc_type type)
{
	return type == NPUC_UINT8 ? bits : (int8_t)bits;
}

static int32_t clamp(int64_t x, int32_t min, int32_t max)
{
	if (x > max)
		x = max;
	return x < min ? min : (int32_t)x;
}

void quant_table_rescale(struct quant_side in, struct quant_side out, struct quant_mult q,
			 int32_t min, int32_t max, uint8_t table[256])
{
	for (uint32_t i = 0; i < 256; i++) {
		int64_t x =
			quant_apply(quant_value((uint8_t)i, in.type) - in.zero_point, q);

		table[i] = (uint8_t)clamp(x + out.zero_point, min, max);
	}
}

void quant_table_leaky(struct quant_side in, struct quant_side out,
		       const struct quant_leaky *leaky, uint8_t table[256])
{
	for (uint32_t i = 0; i < 256; i++) {
		int32_t x = quant_value((uint8_t)i, in.type) - in.zero_point;

		x = x < 0 ? quant_apply(x * leaky->times, leaky->below)
			  : quant_apply(x, leaky->above);
		table[i] = (uint8_t)clamp((int64_t)x + out.zero_point,
					  quant_min(out.type), quant_max(out.type));
	}
}

void quant_table_leaky16(const struct quant_leaky *leaky, int16_t table[65536])
{
	for (int32_t i = INT16_MIN; i <= INT16_MAX; i++) {
		int32_t y = i < 0 ? quant_apply(i * leaky->times, leaky->below)
				  : quant_apply(i, leaky->above);

		table[(uint16_t)i] = (int16_t)clamp(y, INT16_MIN, INT16_MAX);
	}
}

float quant_logistic(float x)
{
	return 1.0f / (1.0f + expf(-x));
}

void quant_table_float(struct quant_side in, struct quant_side out, float (*fn)(float),
		       uint8_t table[256])
{
	const float inverse = 1 / out.scale;

	for (uint32_t i = 0; i < 256; i++) {
		float x = in.scale *
			  (float)(quant_value((uint8_t)i, in.type) - in.zero_point);
		float y = roundf(fn(x) * inverse) + (float)out.zero_point;

		if (!(y < 1e9f))
			y = 1e9f;
		if (y < -1e9f)
			y = -1e9f;
		table[i] = (uint8_t)clamp((int32_t)y, quant_min(out.type),
					  quant_max(out.type));
	}
}

float quant_elu(float x)
{
	return x < 0 ? expm1f(x) : x;
}

float quant_gelu(float x)
{
	return (float)((double)(0.5f * x) * (1 + erf((double)x * M_SQRT1_2)));
}

float quant_gelu_tanh(float x)
{
	const float root = (float)(M_2_SQRTPI * M_SQRT1_2);

	return 0.5f * x * (1 + tanhf(root * (x + 0.044715f * x * x * x)));
}

void quant_table_negative(uint8_t table[256])
{
	for (uint32_t i = 0; i < 256; i++)
		table[i] = (uint8_t)-i;
}

/* An output of 8 bits. */
static uint8_t to_byte(int64_t x, struct quant_side out)
{
	return (uint8_t)clamp(x + out.zero_point, quant_min(out.type),
			      quant_max(out.type));
}

void quant_table_abs(struct quant_side in, struct quant_side out, uint8_t table[256])
{
	struct quant_mult q = quant_of((double)(in.scale / out.scale));

	for (uint32_t i = 0; i < 256; i++) {
		int32_t x = quant_value((uint8_t)i, in.type) - in.zero_point;

		x = x < 0 ? -x : x;
		table[i] = to_byte(in.scale == out.scale ? x : quant_apply(x, q), out);
	}
}

void quant_table_sqrt(struct quant_side in, struct quant_side out, uint8_t table[256])
{
	for (uint32_t i = 0; i < 256; i++) {
		int32_t x = quant_value((uint8_t)i, in.type) - in.zero_point;
		float y = sqrtf(in.scale * (float)(x < 0 ? 0 : x)) / out.scale;

		table[i] = to_byte((int64_t)(y < 1e9f ? y : 1e9f), out);
	}
}

void quant_table_log(struct quant_side in, struct quant_side out, uint8_t table[256])
{
	float least = (float)(quant_min(out.type) - out.zero_point) * out.scale;
	const float inverse = 1 / out.scale;

	for (uint32_t i = 0; i < 256; i++) {
		float x = in.scale *
			  (float)(quant_value((uint8_t)i, in.type) - in.zero_point);
		float y = roundf((x > 0 ? logf(x) : least) * inverse);

		y = y < 1e9f ? y : 1e9f;
		table[i] = to_byte((int64_t)(y > -1e9f ? y : -1e9f), out);
	}
}

/* ---- HARD_SWISH, in 16 bits ---------------------------------------------------------- */

static int16_t saturate16(int64_t x)
{
	return (int16_t)(x > INT16_MAX ? INT16_MAX : x < INT16_MIN ? INT16_MIN : x);
}

/* round(a * b / 2^15), halves upwards in magnitude less one; round: or cut off. */
static int16_t high_mul16(int16_t a, int16_t b, bool round)
{
	int32_t ab = (int32_t)a * b, half = ab >= 0 ? 1 << 14 : 1 - (1 << 14);

	if (a == INT16_MIN && b == INT16_MIN)
		return INT16_MAX;
	return (int16_t)((ab + (round ? half : 0)) / (1 << 15));
}

/* x / 2^n, halves away from zero.  Of 16 and more bits all above 0 are rounded up to 1,
 * as in gemmlowp, whose mask has 16. */
static int16_t round_shift16(int16_t x, int n)
{
	int32_t mask = n < 16 ? (1 << n) - 1 : -1;
	int32_t over = (mask >> 1) + (x < 0);

	return (int16_t)((x >> (n < 31 ? n : 31)) + ((x & mask) > over));
}

static int16_t multiplier16(int32_t mult)
{
	int32_t rounded = (mult >> 16) + (mult >> 15 & 1);

	return (int16_t)(rounded > INT16_MAX ? INT16_MAX : rounded);
}

/* Three is 32768: how much of 1 is left of x, Q0.15. */
static int16_t hard_sigmoid(int16_t x, struct quant_mult q)
{
	if (q.shift > 0)
		x = saturate16((int64_t)x * (INT64_C(1) << (q.shift - 1)));
	x = high_mul16(x, multiplier16(q.mult), true);
	if (q.shift > 0)
		x = saturate16((int64_t)x * 2);
	if (q.shift < 0)
		x = round_shift16(x, -q.shift);
	return (int16_t)((x + (1 << 15)) >> 1);
}

bool quant_table_hard_swish(struct quant_side in, struct quant_side out,
			    uint8_t table[256])
{
	const float fine = (1.0f / 128) * in.scale, three = 3.0f / 32768;
	struct quant_mult to = quant_of((double)(fine / out.scale));
	struct quant_mult part = quant_of((double)(fine / three));

	if (to.shift > 0 || part.shift > 30)
		return false;
	for (uint32_t i = 0; i < 256; i++) {
		int32_t x = quant_value((uint8_t)i, in.type) - in.zero_point;
		int16_t wide = (int16_t)(x * 128);
		int16_t y = high_mul16(wide, multiplier16(to.mult), true);

		y = high_mul16(hard_sigmoid(wide, part), y, false);
		table[i] = to_byte(round_shift16(y, -to.shift), out);
	}
	return true;
}

/* ---- softmax of int16 --------------------------------------------------------------- */

#define POINTS 512

static int16_t to_int16(double x)
{
	return (int16_t)(x > 32767 ? 32767 : x < -32768 ? -32768 : x);
}

/* Lines between points, each of which is lowered by half of what the line's middle is
 * too high. */
static void lines_table(double (*fn)(double), double least, double most, int16_t *table)
{
	const double step = (most - least) / POINTS;
	int16_t point[POINTS + 1];

	for (int i = 0; i < POINTS; i++) {
		double at = least + i * step;
		double y = round(fn(at) * 32768);
		double next = fn(least + (i + 1) * step) * 32768;
		double line = round((next + y) / 2);
		double middle = round(fn(at + step / 2) * 32768);

		point[i] = to_int16(y - round((line - middle) / 2));
	}
	point[POINTS] = to_int16(round(fn(most) * 32768));
	for (int32_t x = INT16_MIN; x <= INT16_MAX; x++) {
		int32_t i = (x + 32768) >> 7, rest = (x + 32768) & 127;
		int32_t more = (point[i + 1] - point[i]) * rest + 64;

		/* Rounded down, also where it is negative. */
		more = (more + (1 << 23)) / 128 - (1 << 16);
		table[(uint16_t)x] = (int16_t)(point[i] + more);
	}
}

static double inverse_above_one(double x)
{
	return 1 / (1 + x);
}

void quant_table_exp16(int16_t table[65536])
{
	lines_table(exp, -10, 0, table);
}

void quant_table_inverse16(int16_t table[65536])
{
	lines_table(inverse_above_one, 0, 1, table);
}

/* ---- logistic and tanh of int16 ---------------------------------------------------- */

/* 65536 logistic(i / 24), and half of what a line between two points is too low. */
static void sigmoid_points(int32_t point[256])
{
	const double step = 1.0 / 24;

	for (int32_t i = 0; i < 256; i++) {
		double y = 1 / (1 + exp(-i * step));
		double low = step * step / 8 * y * (1 - y) * (2 * y - 1);

		point[i] = (int32_t)lround(65536 * (y + low / 2));
	}
	point[255] = 65535;
}

/* The input becomes thirds of 2^-12: so times mult, shifted right, rounded. */
static bool sigmoid_multiplier(float scale, bool logistic, int32_t *mult, int *right)
{
	float log2_scale = logf(scale) * (1.0f / logf(2.0f));
	int left = 12 + (int)roundf(log2_scale);
	double real = (double)scale * 4096 * 3;

	*right = 0;
	if (fabsf(log2_scale - roundf(log2_scale)) < 1e-3f &&
	    (left == 0 || (left == 1 && !logistic))) {
		*mult = 3 << left;
		return true;
	}
	for (; real <= 32767.0 / 2 && *right <= 30; (*right)++)
		real *= 2;
	if (real >= 65536)
		return false;
	*mult = (int32_t)real;
	return true;
}

/* Of x as above, 2^24 and 9 bits logistic, or 2^23 and 8 bits tanh. */
static int32_t between_points(const int32_t point[256], int32_t x, bool logistic)
{
	int32_t bits = logistic ? 9 : 8, at = x >> bits, rest = x & ((1 << bits) - 1);

	if (at >= 255)
		return logistic ? 0x7FFF << 10 : 0xFFFF << 8;
	return (point[at] << bits) + rest * (point[at + 1] - point[at]);
}

bool quant_table_sigmoid(float scale, bool logistic, int16_t table[65536])
{
	int32_t point[256], mult;
	int right;

	if (!sigmoid_multiplier(scale, logistic, &mult, &right))
		return false;
	sigmoid_points(point);
	for (int32_t i = INT16_MIN; i <= INT16_MAX; i++) {
		int64_t x = (int64_t)i * mult + (right ? INT64_C(1) << right >> 1 : 0);
		int32_t y;

		x >>= right;
		y = between_points(point, (int32_t)(x < 0 ? -x : x), logistic);
		if (logistic)
			y = x < 0 ? (1 << 25) - y + 511 : y + 512;
		else
			y = x < 0 ? (1 << 23) - y + 127 : y - (1 << 23) + 128;
		table[(uint16_t)i] = (int16_t)(y >> (logistic ? 10 : 8));
	}
	return true;
}

/* ---- exp in fixed point, as gemmlowp defines it ------------------------------------ */

#define SOFTMAX_INTEGER_BITS 5 /* of the rescaled difference: Q5.26 */

/* exp(a) for a in [-1/4, 0), Q0.31 in and out: a Taylor polynomial of degree 4 about
 * -1/8. */
static int32_t exp_quarter(int32_t a)
{
	const int32_t at_eighth = 1895147668; /* exp(-1/8) */
	const int32_t third = 715827883;      /* 1/3 */
	int32_t x = a + (1 << 28);
	int32_t x2 = high_mul(x, x);
	int32_t x3 = high_mul(x2, x);
	int32_t x4_4 = round_shift(high_mul(x2, x2), 2);
	int32_t tail = round_shift(high_mul(x4_4 + x3, third) + x2, 1);

	return at_eighth + high_mul(at_eighth, x + tail);
}

/* exp(a) for a <= 0 in Q5.26: what is left of a quarter, times powers of e. */
static int32_t exp_negative(int32_t a)
{
	/* exp(-1/4), exp(-1/2), exp(-1), ... exp(-16) in Q0.31 */
	static const int32_t power[] = {1672461947, 1302514674, 790015084, 290630308,
					39332535,   720401,     242};
	const int fraction = 31 - SOFTMAX_INTEGER_BITS;
	const int32_t quarter = 1 << (fraction - 2);
	int32_t rest = (a & (quarter - 1)) - quarter;
	int32_t parts = rest - a; /* a multiple of a quarter */
	int32_t r;

	if (a == 0)
		return INT32_MAX;
	r = exp_quarter(shift_left(rest, SOFTMAX_INTEGER_BITS));
	for (int i = 0; i < 7; i++)
		if (parts & (1 << (fraction - 2 + i)))
			r = high_mul(r, power[i]);
	return r;
}

/* The largest difference that is taken, others are infinite; negative: the scale is too
 * small. */
static double softmax_scale(double real, struct quant_mult *q)
{
	const double most = 2147483647.0;

	real *= 1 << (31 - SOFTMAX_INTEGER_BITS);
	if (!(real > 1))
		return -1;
	*q = quant_of(real < most ? real : most);
	/* Its rescaled value fits Q5.26. */
	return floor(31.0 * (1 << (31 - SOFTMAX_INTEGER_BITS)) / ldexp(1, q->shift));
}

bool quant_table_softmax(double beta, double scale, int32_t table[256])
{
	struct quant_mult q = {0, 0};
	double radius = softmax_scale(beta * scale, &q);

	for (int32_t i = 0; i < 256; i++)
		table[i] = i > radius ? 0 : exp_negative(quant_apply(-i, q));
	return radius >= 0;
}

/* ---- logarithms in fixed point, as TensorFlow Lite has them ------------------------- */

bool quant_table_log_softmax(double scale, int32_t power[256], int32_t below[256])
{
	struct quant_mult q = {0, 0};
	double radius = softmax_scale(scale, &q);

	for (int32_t i = 0; i < 256; i++) {
		below[i] = i > radius ? -1 : -quant_apply(-i, q);
		power[i] = i > radius ? 0 : round_shift(exp_negative(-below[i]), 12);
	}
	return radius >= 0;
}

static int32_t half_sum(int32_t a, int32_t b)
{
	int64_t sum = (int64_t)a + b;

	return (int32_t)((sum + (sum >= 0 ? 1 : -1)) / 2);
}

static int32_t saturate_left(int32_t x, int n)
{
	int64_t y = (int64_t)x * (INT64_C(1) << n);

	if (y > INT32_MAX)
		return INT32_MAX;
	return y < INT32_MIN ? INT32_MIN : (int32_t)y;
}

/* 1 / sqrt(x) of a whole number x > 0: x.mult / 2^31 * 2^x.shift.  Newton's method in
 * Q3.28, as TensorFlow Lite has it. */
static struct quant_mult inverse_root(int32_t x)
{
	const int32_t half_root_2 = 1518500250, three_halves = (1 << 28) + (1 << 27);
	int32_t root = 1 << 28, half;
	int pairs, right;

	if (x <= 1)
		return (struct quant_mult){INT32_MAX, 0};
	pairs = (__builtin_clz((uint32_t)x) - 1) / 2 - 1;
	right = 11 - pairs;
	half = round_shift((int32_t)((uint32_t)x << 2 * pairs) >> 1, 1);
	for (int i = 0; i < 5; i++) {
		int32_t cube = saturate_left(high_mul(high_mul(root, root), root), 6);

		root = saturate_left(high_mul(three_halves, root) - high_mul(half, cube),
				     3);
	}
	root = high_mul(root, half_root_2);
	return right < 0 ? (struct quant_mult){shift_left(root, -right), 0}
			 : (struct quant_mult){root, -right};
}

#define ROOT_BITS 20 /* of fractions */

bool quant_table_rsqrt(struct quant_side in, struct quant_side out, uint8_t table[256])
{
	struct quant_mult q = quant_of(1 / (double)(sqrtf(in.scale) * out.scale));

	q.shift -= ROOT_BITS;
	if (q.shift > 30)
		return false;
	for (uint32_t i = 0; i < 256; i++) {
		int32_t x = quant_value((uint8_t)i, in.type) - in.zero_point;
		struct quant_mult root = inverse_root(x);
		int32_t y;

		root.shift += ROOT_BITS;
		y = quant_apply(quant_apply(1, root), q);
		table[i] = x > 0 ? to_byte(y, out) : (uint8_t)quant_max(out.type);
	}
	return true;
}

/* 1 / (1 + a) for a in [0, 1], Q0.31 in and out: Newton's method, x in Q2.29. */
static int32_t reciprocal(int32_t a)
{
	const int32_t most = 1515870810, slope = -1010580540; /* 48/17, -32/17 */
	int32_t half = half_sum(a, INT32_MAX);
	int32_t x = most + high_mul(half, slope);

	for (int i = 0; i < 3; i++) {
		int32_t rest = (1 << 29) - high_mul(half, x);

		x += saturate_left(high_mul(x, rest), 2);
	}
	return saturate_left(x, 1);
}

/* sum = r * 2^power, r about 2^-1/4, of whose logarithm a quotient of polynomials is
 * taken; all in Q0.31, powers in Q6.25. */
int32_t quant_log(int32_t sum)
{
	/* log 2, 2^-1/2, 2^-1/4 */
	const int32_t log_2 = 1488522236, root_2 = 1518500250, root_4 = 1805811301;
	const int32_t above = 117049297; /* 11/240 2^1/4 */
	const int32_t most = 1057819769, second = 127690142, first = 638450708;
	int a = __builtin_clz((uint32_t)sum);
	int b = __builtin_clz((uint32_t)high_mul(sum, root_2)) - 1;
	int32_t r = saturate_left(high_mul(saturate_left(sum, a - 1), root_2), 1);
	int32_t power = (12 - a) * (1 << 25) + (1 << 23);
	int32_t other = (12 - b) * (1 << 25) - (1 << 23);
	int32_t p, q, square, num, den;

	if (saturate_left(sum, b) < r)
		r = saturate_left(sum, b);
	if (other > power)
		power = other;
	p = half_sum(r, root_4);
	q = (r - root_4) * 2;
	square = high_mul(q, q);
	num = high_mul(q, r) + high_mul(high_mul(q, square), above);
	den = high_mul(p, most + q + high_mul(second, square)) + high_mul(first, q);
	num = high_mul(round_shift(num, 6), reciprocal(den));
	return saturate_left(high_mul(power, log_2) + num, 1);
}

/* ---- float edges ------------------------------------------------------------------ */

int32_t quant_from_float(float x, struct quant_side to)
{
	float y = roundf(x / to.scale) + (float)to.zero_point;

	if (!(y > -1e9f)) /* and not a number */
		y = -1e9f;
	if (y > 1e9f)
		y = 1e9f;
	return clamp((int32_t)y, quant_min(to.type), quant_max(to.type));
}

float quant_to_float(int32_t q, struct quant_side from)
{
	return (float)((double)from.scale * (q - from.zero_point));
}
