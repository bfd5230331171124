/* SPDX-License-Identifier: Apache-2.0 */
/* quant_once.c - multipliers that round once and give what TensorFlow Lite computes in
 * double: round(sum * real), a half away from zero.
 *
 * Results only grow with sums and are odd functions of them.  A multiplier is therefore
 * right for all sums if results change at the same sums: result y begins at the least sum
 * t with round(t * real) >= y, which a multiplier m meets if (t - 1) m < y - 1/2 <= t m.
 * All y together leave an interval of multipliers. */
#include "quant.h"

#include <math.h>

struct fraction {
	uint64_t n, d; /* d 0: infinite */
};

/* Multipliers from .from on and below .to. */
struct interval {
	struct fraction from, to;
};

/* n is below 2^18, d below 2^42. */
static bool is_less(struct fraction a, struct fraction b)
{
	return a.n * b.d < b.n * a.d;
}

/* Return the least sum whose result is y or more, or more than largest. */
static uint64_t threshold(double real, uint32_t y, uint64_t largest)
{
	double near = real > 0 ? ((double)y - 0.5) / real : (double)largest + 4;
	uint64_t t;

	if (!(near < (double)largest + 3))
		return largest + 1;
	t = near > 4 ? (uint64_t)near - 2 : 1;
	while (t <= largest && round((double)t * real) < (double)y)
		t++;
	return t;
}

static struct interval multipliers(double real, uint64_t largest, uint32_t most)
{
	struct interval i = {{0, 1}, {1, 0}};

	for (uint32_t y = 1; y <= most && largest; y++) {
		uint64_t half = 2 * (uint64_t)y - 1, t = threshold(real, y, largest);
		struct fraction from = {half, 2 * t}, to = {half, 2 * (t - 1)};

		if (is_less(to, i.to))
			i.to = to;
		if (t > largest)
			break;
		if (is_less(i.from, from))
			i.from = from;
	}
	return i;
}

/* A fraction times a power of two, rounded down, and what is left over. */
struct scaled {
	uint64_t whole, rest, d;
};

static struct scaled scaled_of(struct fraction f)
{
	return f.d ? (struct scaled){f.n / f.d, f.n % f.d, f.d}
		   : (struct scaled){UINT64_MAX / 2, 1, 0};
}

static void scale_twice(struct scaled *s)
{
	if (!s->d)
		return;
	s->rest *= 2;
	s->whole = 2 * s->whole + (s->rest >= s->d);
	s->rest -= s->rest >= s->d ? s->d : 0;
}

static uint64_t rounded_up(const struct scaled *s)
{
	return s->whole + (s->rest != 0);
}

/* Find mult < 2^bits with mult / 2^right in the interval and the least right that is at
 * least the given one; odd: mult must be. */
static bool find(struct interval i, uint32_t right, uint32_t bits, bool odd,
		 struct quant_once *q)
{
	struct scaled from = scaled_of(i.from), to = scaled_of(i.to);

	for (uint32_t n = 0; rounded_up(&from) < UINT64_C(1) << bits; n++) {
		uint64_t mult = rounded_up(&from);

		mult += odd && mult % 2 == 0;
		if (n >= right && mult < rounded_up(&to) && mult < UINT64_C(1) << bits) {
			*q = (struct quant_once){mult, n};
			return true;
		}
		if (n == QUANT_ONCE_RIGHT)
			return false;
		scale_twice(&from);
		scale_twice(&to);
	}
	return false;
}

bool quant_once_mult(double real, uint64_t largest, uint32_t most, struct quant_mult *q)
{
	struct quant_once x;

	if (!find(multipliers(real, largest, most), 1, 31, false, &x) || x.right > 62)
		return false;
	/* As many bits as there are, so that what saturates stays large. */
	while (x.mult && x.mult < 1u << 30 && x.right < 62) {
		x.mult *= 2;
		x.right++;
	}
	*q = (struct quant_mult){(int32_t)x.mult, x.mult ? 31 - (int32_t)x.right : 0};
	return true;
}

bool quant_once_of(double real, uint64_t largest, uint32_t most, struct quant_once *q)
{
	uint32_t right = 1;

	while (largest >> (right - 1))
		right++;
	return find(multipliers(real, largest, most), right, QUANT_ONCE_BITS, true, q);
}
