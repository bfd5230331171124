/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_requant.c - npu_requant against the golden model's arithmetic: a sum a cycle,
 * with gaps and clears, in all modes; corners against corners first, then random ones.
 *
 *   bench_requant [COUNT [SEED]]     COUNT random sums a mode, 600,000 unless given
 */
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "dut/dut.h"
#include "npu_golden.h"

#define CYCLES 6 /* npu_math_pkg::RequantCycles */

struct bench {
	struct dut_requant *dut;
	struct dut_requant_mode mode;
	struct dut_requant_in queue[CYCLES]; /* under way, oldest first */
	uint64_t sums, saturated, clamped;
};

static int32_t wide(uint32_t byte, bool is_unsigned)
{
	return is_unsigned ? (int32_t)byte : (int32_t)(int8_t)byte;
}

static void expect(struct bench *b, const struct dut_requant_in *in,
		   const struct dut_requant_out *out)
{
	const struct dut_requant_mode *m = &b->mode;
	int32_t lo = wide(m->lo, m->is_unsigned), hi = wide(m->hi, m->is_unsigned);
	int32_t mult = (int32_t)in->mult;
	int32_t want = m->is_float  ? npu_golden_float_requant(in->x, in->mult)
		       : m->is_once ? npu_golden_once_requant(in->x, mult, in->shift)
				    : npu_golden_requant(in->x, mult, in->shift);
	int32_t y = (int32_t)((uint32_t)want + (uint32_t)wide(m->zp, m->is_unsigned));

	y = y > hi ? hi : y;
	y = y < lo ? lo : y;
	b->sums++;
	b->saturated +=
		m->is_float ? want == 1 << 30 || want == -(1 << 30) : want == INT32_MAX;
	b->clamped += y == lo || y == hi;
	CHECK(out->rescaled == want && out->y == (uint8_t)y,
	      "%s %d by %#x, shift %d: %d, byte %#x, not %d, %#x (zp %#x, %#x..%#x, %u)",
	      m->is_float  ? "binary32"
	      : m->is_once ? "rounded once"
			   : "fixed point",
	      in->x, in->mult, in->shift, out->rescaled, out->y, want, (uint8_t)y, m->zp,
	      m->lo, m->hi, m->is_unsigned);
}

static void step(struct bench *b, struct dut_requant_in in)
{
	struct dut_requant_out out;

	dut_requant_step(b->dut, &in, &out);
	memmove(b->queue, b->queue + 1, sizeof(b->queue) - sizeof(b->queue[0]));
	b->queue[CYCLES - 1] = in;
	if (in.clear)
		memset(b->queue, 0, sizeof(b->queue));
	CHECK(out.v == b->queue[0].v, "a result: %d, not %d", out.v, b->queue[0].v);
	if (b->queue[0].v && out.v)
		expect(b, &b->queue[0], &out);
}

static void mode(struct bench *b, const struct dut_requant_mode *m)
{
	for (int i = 0; i < CYCLES; i++)
		step(b, (struct dut_requant_in){0});
	b->mode = *m;
	dut_requant_mode(b->dut, m);
}

/* ---- operands ---------------------------------------------------------------------- */

static const int32_t corners[] = {
	0,          1,           -1,          2,          -2,         3,
	-3,         5,           -5,          127,        128,        -128,
	-129,       255,         256,         0x7FFFFF,   0x800000,   0x800001,
	0xFFFFFF,   0x1000000,   0x1000001,   0x1000002,  0x1000003,  -0x1000001,
	-0x1000003, 0x1FFFFFF,   0x3FFFFFE,   0x3FFFFFF,  0x3FFFFFFF, 0x40000000,
	0x40000001, -0x40000000, -0x40000001, 0x7FFFFF80, 0x7FFFFFBF, 0x7FFFFFC0,
	0x7FFFFFFE, INT32_MAX,   -INT32_MAX,  INT32_MIN,
};
#define CORNERS (sizeof(corners) / sizeof(corners[0]))

/* Scales: no exponent, denormals, the least and largest normal, halves and what is next
 * to them, all-ones exponent. */
static const uint32_t scales[] = {
	0x00000000, 0x00000001, 0x007FFFFF, 0x00800000, 0x00800001, 0x0C000000,
	0x2F800000, 0x2F7FFFFF, 0x33800000, 0x3F000000, 0x3EFFFFFF, 0x3F000001,
	0x3F7FFFFF, 0x3F800000, 0x3F800001, 0x3FC00000, 0x40000000, 0x34000000,
	0x4E800000, 0x4E7FFFFF, 0x4F000000, 0x5F000000, 0x7F7FFFFF, 0x7F800000,
	0x7FC00000, 0x7FFFFFFF, 0xBF800000,
};
#define SCALES (sizeof(scales) / sizeof(scales[0]))

static void fixed_corners(struct bench *b, bool is_once)
{
	mode(b, &(struct dut_requant_mode){.is_once = is_once, .lo = 0x80, .hi = 0x7F});
	for (uint32_t i = 0; i < CORNERS; i++)
		for (uint32_t j = 0; j < CORNERS; j++)
			for (int32_t shift = -31; shift <= 31; shift++)
				step(b,
				     (struct dut_requant_in){.v = true,
							     .x = corners[i],
							     .mult = (uint32_t)corners[j],
							     .shift = shift});
}

static void float_corners(struct bench *b)
{
	mode(b, &(struct dut_requant_mode){.is_float = true, .lo = 0x80, .hi = 0x7F});
	for (uint32_t i = 0; i < CORNERS; i++)
		for (uint32_t j = 0; j < SCALES; j++)
			step(b, (struct dut_requant_in){
					.v = true, .x = corners[i], .mult = scales[j]});
}

/* Products that are a half, one less or one more, behind any shift. */
static void near_halves(struct bench *b, struct rng *r)
{
	mode(b, &(struct dut_requant_mode){.is_once = true, .lo = 0x80, .hi = 0x7F});
	for (int i = 0; i < 20000; i++) {
		int32_t right = (int32_t)rng_range(r, 0, 31);
		int32_t power = (int32_t)rng_range(r, 0, 30);
		int32_t x = (int32_t)((rng_next(r) >> rng_range(r, 1, 31) | 1) << power);
		int64_t mult =
			(INT64_C(1) << (30 + right - power >= 0 && 30 + right - power < 31
						? 30 + right - power
						: 30)) +
			(int64_t)rng_range(r, 0, 2) - 1;

		step(b, (struct dut_requant_in){
				.v = true,
				.x = rng_next(r) & 1 ? x : (int32_t)(0u - (uint32_t)x),
				.mult = (uint32_t)mult,
				.shift = -right});
	}
}

/* x and the fraction of a scale below 1 whose product of 48 bits is a tie of 24 but for
 * its last bit: all that lies between is 0. */
static void nearly_ties(struct bench *b, struct rng *r)
{
	mode(b, &(struct dut_requant_mode){.is_float = true, .lo = 0x80, .hi = 0x7F});
	for (int i = 0; i < 1000; i++) {
		uint32_t x = (rng_next(r) & 0xFFFFFF) | 0x800001, inverse = x, m;

		for (int n = 0; n < 4; n++)
			inverse *= 2 - x * inverse;
		m = inverse * 0x800001 & 0xFFFFFF;
		if (m >> 23)
			step(b, (struct dut_requant_in){.v = true,
							.x = (int32_t)x,
							.mult = 126u << 23 |
								(m & 0x7FFFFF)});
	}
}

static int32_t any_sum(struct rng *r)
{
	uint32_t x = rng_next(r) >> rng_range(r, 0, 31);

	if (rng_range(r, 0, 15) == 0)
		return corners[rng_range(r, 0, CORNERS - 1)];
	/* near a power of two, where a rounding carries */
	if (rng_range(r, 0, 7) == 0)
		x = (UINT32_C(1) << rng_range(r, 0, 31)) + rng_range(r, 0, 8) - 4;
	return (int32_t)(rng_next(r) & 1 ? x : 0 - x);
}

static struct dut_requant_in any_input(struct rng *r, bool is_float)
{
	struct dut_requant_in in = {.v = rng_range(r, 0, 7) != 0, .x = any_sum(r)};

	in.clear = rng_range(r, 0, 255) == 0;
	if (!is_float) {
		in.mult = rng_range(r, 0, 3) ? rng_range(r, 1u << 30, INT32_MAX)
					     : (uint32_t)any_sum(r);
		in.shift = (int32_t)rng_range(r, 0, 62) - 31;
	} else if (rng_range(r, 0, 7) == 0) {
		in.mult = scales[rng_range(r, 0, SCALES - 1)];
	} else if (rng_range(r, 0, 3) == 0) {
		in.mult = rng_next(r);
	} else {
		/* the result has a few bits before and behind the point, often just one
		 */
		uint32_t fraction = rng_next(r) & 0x7FFFFF;

		if (rng_next(r) & 1)
			fraction &= UINT32_C(0x7FFFFF) << rng_range(r, 0, 23) & 0x7FFFFF;
		in.mult = rng_range(r, 127 - 32, 127 + 4) << 23 | fraction;
	}
	return in;
}

static void random_cases(struct bench *b, bool is_float, bool is_once, uint64_t count,
			 struct rng *r)
{
	for (uint64_t i = 0; i < count; i++) {
		if (i % 64 == 0) {
			struct dut_requant_mode m = {.is_float = is_float,
						     .is_once = is_once,
						     .is_unsigned = rng_next(r) & 1,
						     .zp = rng_next(r) & 255,
						     .lo = rng_next(r) & 255,
						     .hi = rng_next(r) & 255};

			if (rng_next(r) & 1) {
				m.lo = m.is_unsigned ? 0 : 0x80;
				m.hi = m.is_unsigned ? 0xFF : 0x7F;
			}
			mode(b, &m);
		}
		step(b, any_input(r, is_float));
	}
}

int main(int argc, char **argv)
{
	uint64_t count = argc > 1 ? strtoull(argv[1], NULL, 0) : 600000;
	struct rng r = {argc > 2 ? strtoull(argv[2], NULL, 0) : 1};
	struct bench b = {.dut = dut_requant_create()};

	fixed_corners(&b, false);
	fixed_corners(&b, true);
	float_corners(&b);
	nearly_ties(&b, &r);
	near_halves(&b, &r);
	random_cases(&b, false, false, count, &r);
	random_cases(&b, false, true, count, &r);
	random_cases(&b, true, false, count, &r);
	mode(&b, &b.mode);
	printf("%llu sums, %llu saturated, %llu at a bound\n", (unsigned long long)b.sums,
	       (unsigned long long)b.saturated, (unsigned long long)b.clamped);
	CHECK(b.sums > count && b.saturated > 100 && b.clamped < b.sums * 9 / 10,
	      "the operands miss what they are for");
	dut_requant_destroy(b.dut);
	return bench_end("bench_requant");
}
