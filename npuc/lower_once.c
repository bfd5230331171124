/* SPDX-License-Identifier: Apache-2.0 */
/* lower_once.c - FULLY_CONNECTED as TensorFlow Lite has it since 2.20. */
#include "lower_once.h"

#include <errno.h>
#include <string.h>

#include "lower_digits.h"
#include "lower_int16.h"
#include "lower_long.h"
#include "lower_move.h"

/* Return the largest magnitude of a result without its zero point that a clamp leaves. */
static uint32_t most_of(const struct conv *c)
{
	int32_t above = c->out.max - c->out.zero_point;
	int32_t below = c->out.zero_point - c->out.min;
	int32_t most = above > below ? above : below;

	return most > 0 ? (uint32_t)most : 0;
}

/* Return the largest of c->n numbers. */
static uint64_t largest_of(const struct conv *c, const uint64_t *numbers)
{
	uint64_t most = 0;

	for (uint32_t n = 0; n < c->n; n++)
		most = numbers[n] > most ? numbers[n] : most;
	return most;
}

int once_digits(struct lowered *l, const struct conv *c, const uint64_t *largest,
		struct quant_once **q)
{
	uint32_t most = most_of(c);

	*q = lower_own(l, c->n * sizeof(**q));
	if (!*q)
		return -ENOMEM;
	for (uint32_t n = 0; n < c->n; n++) {
		uint64_t sum = c->out.per_channel ? largest[n] : largest_of(c, largest);

		if (n && !c->out.per_channel)
			(*q)[n] = (*q)[0];
		else if (!quant_once_of(c->real[n], sum, most, &(*q)[n]))
			return lower_fail(
				l, ENOTSUP,
				"no multiplier of %u bits rounds sums of channel %u, up "
				"to %llu, times %.17g as a double does",
				QUANT_ONCE_BITS, n, (unsigned long long)sum, c->real[n]);
	}
	return 0;
}

/* Some of a layer's channels. */
struct some {
	uint32_t count, *channels;
};

/* The same layer with those channels alone; its results are int32 sums above 2^31. */
static int some_sums(struct lowered *l, const struct conv *c, const struct some *s,
		     uint32_t *v)
{
	uint64_t depth = c->w.c;
	int8_t *weights = lower_own(l, s->count * depth);
	int32_t *bias = lower_own(l, s->count * sizeof(*bias));
	struct conv of = *c;
	int rc = lower_value(l, (uint64_t)c->w.y.in * s->count * DIGITS_SUM, NULL, v);

	if (rc || !weights || !bias)
		return rc ? rc : -ENOMEM;
	for (uint32_t i = 0; i < s->count; i++) {
		uint32_t n = s->channels[i],
			 sum = c->out.bias ? (uint32_t)c->out.bias[n] : 0;

		memcpy(weights + i * depth, c->data + n * depth, depth);
		bias[i] = (int32_t)(sum + (UINT32_C(1) << 31));
	}
	of.n = s->count;
	of.data = weights;
	of.d = *v;
	of.out = (struct hal_npu_requant){.bias = bias};
	of.flags = c->flags & (HAL_NPU_A_UINT8 | HAL_NPU_B_UINT8);
	return conv_images(l, &of);
}

/* Low bytes of rows of 16 bits become those channels' results. */
static int some_stored(struct lowered *l, const struct conv *c, const struct some *s,
		       uint32_t wide)
{
	int rc = 0;

	for (uint32_t i = 0; !rc && i < s->count; i++) {
		struct move m = {.a_at = 2 * (int64_t)i, .d_at = s->channels[i]};

		move_add(&m, c->w.y.in, 2 * (int64_t)s->count, c->n);
		rc = lower_move(l, wide, c->d, 1, &m);
	}
	return rc;
}

static int some_digits(struct lowered *l, const struct conv *c, const struct some *s)
{
	uint64_t *largest = lower_own(l, s->count * sizeof(*largest));
	double *real = lower_own(l, s->count * sizeof(*real));
	struct conv of = *c;
	struct int16_parts x = {.pixels = c->w.y.in,
				.numbers = s->count,
				.parts = 1,
				.above = 31,
				.largest = largest,
				.add = c->out.zero_point,
				.out = c->out};
	struct quant_once *q;
	uint32_t wide;
	int rc;

	if (!largest || !real)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->count; i++) {
		largest[i] = long_largest(l, c, s->channels[i]);
		real[i] = c->real[c->out.per_channel ? s->channels[i] : 0];
	}
	of.n = s->count;
	of.real = real;
	rc = once_digits(l, &of, largest, &q);
	x.once = q;
	if (!rc)
		rc = some_sums(l, c, s, &x.v);
	if (!rc)
		rc = lower_value(l, x.pixels * s->count * 2, NULL, &wide);
	if (!rc)
		rc = int16_requantize(l, &x, wide);
	return rc ? rc : some_stored(l, c, s, wide);
}

/* Set the multipliers of the machine; *s: channels that there is none for. */
static int machine_multipliers(struct lowered *l, struct conv *c, struct some *s)
{
	uint32_t count = c->out.per_channel ? c->n : 1, most = most_of(c);
	uint64_t *largest = lower_own(l, c->n * sizeof(*largest));
	int32_t *mult = lower_own(l, 2 * (uint64_t)count * sizeof(*mult));

	s->channels = lower_own(l, c->n * sizeof(*s->channels));
	if (!largest || !mult || !s->channels)
		return -ENOMEM;
	for (uint32_t n = 0; n < c->n; n++)
		largest[n] = long_largest(l, c, n);
	for (uint32_t n = 0; n < count; n++) {
		uint64_t sum = c->out.per_channel ? largest[n] : largest_of(c, largest);
		struct quant_mult q = {c->out.mult[n], c->out.shift[n]};

		if (!quant_once_mult(c->real[n], sum, most, &q))
			s->channels[s->count++] = n;
		mult[n] = q.mult;
		mult[count + n] = q.shift;
	}
	for (uint32_t n = 1; s->count && n < c->n && count == 1; n++)
		s->channels[s->count++] = n;
	c->out.mult = mult;
	c->out.shift = mult + count;
	return 0;
}

int once_conv(struct lowered *l, struct conv *c)
{
	struct some s = {0, NULL};
	int rc = machine_multipliers(l, c, &s);

	c->flags |= HAL_NPU_ROUND_ONCE;
	if (!rc && s.count < c->n)
		rc = conv_steps(l, c);
	return rc || !s.count ? rc : some_digits(l, c, &s);
}
