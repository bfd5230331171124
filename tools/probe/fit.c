/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fit.c - a rule out of labelled granules, some of whose labels are wrong.
 *
 * Two granules of a channel differ by a number d with parity(w & d) = 0 for each mask w
 * of the rule: a few such d leave little else than the masks in their null space.  Of the
 * part modulo q, the digits' differences satisfy one linear equation modulo q.  Both are
 * solved for small random draws until one has no wrong label in it, which shows: what
 * comes out holds for nearly all labelled granules.  Neither needs the labels' names, nor
 * the masks the modulo part, which only splits classes further.
 */
#include "prober.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BITS       24u
#define NUMBERS    16u /* digits' values: q at most */
#define MASK_DRAWS 4000u
#define MASK_NONE  600u /* after so many without a mask there is none */
#define MOD_DRAWS  3000u
#define ROWS       (COLOR_MAP_DIGITS + 8)
#define A_DRAW     3u /* differences to one granule of a class */

struct fit {
	struct prober *p;
	const struct sample *sample;
	uint32_t count, classes, bits;
	double least; /* share of samples that a rule must hold for */
	/* samples by class */
	const struct sample **of[CLASSES];
	uint32_t in[CLASSES];
};

/* A class with two samples, and one of them. */
static uint32_t draw_class(const struct fit *f)
{
	for (;;) {
		uint32_t k = prober_random(f->p, f->classes);

		if (f->in[k] >= 2)
			return k;
	}
}

static uint32_t draw_granule(const struct fit *f, uint32_t class)
{
	return f->of[class][prober_random(f->p, f->in[class])]->granule;
}

/* ---- parities ----------------------------------------------------------------------- */

/* Each basis vector's highest bit is in no other. */
static bool span_add(uint32_t *basis, uint32_t *count, uint32_t w)
{
	uint32_t top;

	for (uint32_t j = 0; j < *count; j++)
		if (w >> (31 - (uint32_t)__builtin_clz(basis[j])) & 1u)
			w ^= basis[j];
	if (!w)
		return false;
	top = 31 - (uint32_t)__builtin_clz(w);
	for (uint32_t j = 0; j < *count; j++)
		if (basis[j] >> top & 1u)
			basis[j] ^= w;
	basis[(*count)++] = w;
	return true;
}

/* All w with parity(w & row) = 0 for each row: a basis of them. */
static uint32_t null_space(const uint32_t *rows, uint32_t count, uint32_t bits,
			   uint32_t *out)
{
	uint32_t basis[BITS], n = 0, pivots = 0, k = 0;

	for (uint32_t i = 0; i < count; i++)
		span_add(basis, &n, rows[i]);
	for (uint32_t j = 0; j < n; j++)
		pivots |= 1u << (31 - (uint32_t)__builtin_clz(basis[j]));
	for (uint32_t b = 0; b < bits; b++) {
		if (pivots >> b & 1u)
			continue;
		out[k] = 1u << b;
		for (uint32_t j = 0; j < n; j++)
			if (basis[j] >> b & 1u)
				out[k] |= 1u << (31 - (uint32_t)__builtin_clz(basis[j]));
		k++;
	}
	return k;
}

/* The share of samples whose parity is that of most of their class. */
static double holds_mask(const struct fit *f, uint32_t w)
{
	uint32_t odd[CLASSES] = {0}, agree = 0;

	for (uint32_t i = 0; i < f->count; i++)
		odd[f->sample[i].label] +=
			(uint32_t)__builtin_parity(f->sample[i].granule & w);
	for (uint32_t k = 0; k < f->classes; k++)
		agree += odd[k] * 2 > f->in[k] ? odd[k] : f->in[k] - odd[k];
	return (double)agree / f->count;
}

static uint32_t draw_null_space(const struct fit *f, uint32_t *out)
{
	uint32_t row[BITS + 4], n = 0;

	while (n < f->bits + 4) {
		uint32_t k = draw_class(f), one = draw_granule(f, k);

		for (uint32_t i = 0; i < A_DRAW && n < f->bits + 4; i++)
			row[n++] = one ^ draw_granule(f, k);
	}
	return null_space(row, n, f->bits, out);
}

static uint32_t fit_masks(const struct fit *f, uint32_t *basis)
{
	uint32_t found = 0, most = 31 - (uint32_t)__builtin_clz(f->classes);

	for (uint32_t t = 0; t < MASK_DRAWS && found < most; t++) {
		uint32_t w[BITS], k;

		if (t == MASK_NONE && !found)
			break;
		k = draw_null_space(f, w);
		if (k > 10)
			continue;
		k = k > 5 ? 5 : k;
		for (uint32_t j = 1; j < 1u << k && found < most; j++) {
			uint32_t mask = 0;

			for (uint32_t i = 0; i < k; i++)
				if (j >> i & 1u)
					mask ^= w[i];
			if (holds_mask(f, mask) >= f->least)
				span_add(basis, &found, mask);
		}
	}
	return found;
}

/* ---- modulo q ------------------------------------------------------------------------- */

static uint32_t inverse(uint32_t a, uint32_t q)
{
	for (uint32_t i = 1; i < q; i++)
		if (a * i % q == 1)
			return i;
	return 0;
}

static double holds_weights(const struct fit *f, const struct color_map *m)
{
	uint32_t count[CLASSES][NUMBERS] = {{0}}, agree = 0;

	for (uint32_t i = 0; i < f->count; i++) {
		uint32_t sum = 0, u = f->sample[i].granule >> m->shift;

		for (uint32_t j = 0; j < m->digits && u; j++, u /= m->q)
			sum += m->weight[j] * (u % m->q);
		count[f->sample[i].label][sum % m->q]++;
	}
	for (uint32_t k = 0; k < f->classes; k++) {
		uint32_t most = 0;

		for (uint32_t v = 0; v < m->q; v++)
			most = count[k][v] > most ? count[k][v] : most;
		agree += most;
	}
	return (double)agree / f->count;
}

static void draw_rows(const struct fit *f, const struct color_map *m,
		      uint32_t row[ROWS][COLOR_MAP_DIGITS], uint32_t rows)
{
	uint32_t n = 0;

	while (n < rows) {
		uint32_t k = draw_class(f), one = draw_granule(f, k) >> m->shift;

		for (uint32_t i = 0; i < A_DRAW && n < rows; i++) {
			uint32_t u = one, v = draw_granule(f, k) >> m->shift;

			if (u == v && !prober_random(f->p, 8))
				break; /* few samples: not for ever */
			for (uint32_t j = 0; j < m->digits; j++) {
				row[n][j] = (u % m->q + m->q - v % m->q) % m->q;
				u /= m->q;
				v /= m->q;
			}
			n++;
		}
	}
}

/* Solves sum of weight[j] * row[j] = 0 with weight[0] = 1.  A q that is no prime has
 * numbers without an inverse: then another row is the pivot.  False: rows contradict each
 * other, some label was wrong. */
static bool solve(uint32_t row[ROWS][COLOR_MAP_DIGITS], uint32_t rows,
		  struct color_map *m)
{
	uint32_t pivot[COLOR_MAP_DIGITS], used = 0, wrong = 0;

	for (uint32_t j = 1; j < m->digits; j++) {
		uint32_t at = used, inv, t[COLOR_MAP_DIGITS];

		pivot[j] = ROWS;
		while (at < rows && !inverse(row[at][j], m->q))
			at++;
		if (at == rows)
			continue;
		memcpy(t, row[at], sizeof(t));
		memcpy(row[at], row[used], sizeof(t));
		inv = inverse(t[j], m->q);
		for (uint32_t x = 0; x < m->digits; x++)
			row[used][x] = t[x] * inv % m->q;
		for (uint32_t i = 0; i < rows; i++) {
			uint32_t times = row[i][j];

			for (uint32_t x = 0; i != used && times && x < m->digits; x++)
				row[i][x] = (row[i][x] + (m->q - times) * row[used][x]) %
					    m->q;
		}
		pivot[j] = used++;
	}
	for (uint32_t i = used; i < rows; i++)
		wrong += row[i][0] != 0;
	m->weight[0] = 1;
	for (uint32_t j = 1; j < m->digits; j++) {
		uint32_t left = pivot[j] == ROWS ? 0 : m->q - row[pivot[j]][0];

		m->weight[j] = (uint8_t)(left % m->q);
	}
	return wrong <= 1;
}

static bool fit_digits(const struct fit *f, struct color_map *m)
{
	uint32_t row[ROWS][COLOR_MAP_DIGITS];

	for (uint32_t t = 0; t < MOD_DRAWS; t++) {
		draw_rows(f, m, row, m->digits + 6);
		if (solve(row, m->digits + 6, m) && holds_weights(f, m) >= f->least)
			return true;
		if (m->digits == 1)
			break;
	}
	return false;
}

/* Few digits first: the fewer unknowns the more draws are clean. */
static bool fit_weights(const struct fit *f, uint32_t q, struct color_map *m)
{
	m->q = q;
	for (uint32_t i = 0; i <= m->mask_count + 2; i++) {
		uint32_t all = 0;

		m->shift = i == 0 ? m->mask_count : i - 1;
		if (i && m->shift == m->mask_count)
			continue;
		for (uint64_t n = 1; n < UINT64_C(1) << f->bits >> m->shift; n *= q)
			all++;
		for (m->digits = 1; m->digits <= 2 && m->digits <= all; m->digits++)
			if (fit_digits(f, m))
				return true;
		m->digits = all;
		if (all > 2 && fit_digits(f, m))
			return true;
	}
	return false;
}

/* ---- the rule --------------------------------------------------------------------------- */

/* Nearly all of a class are on one channel of the map, and each of these is some class's:
 * two classes of one channel are one that was found twice. */
static bool holds_map(const struct fit *f, const struct color_map *m)
{
	uint32_t count[CLASSES][COLOR_MAP_COLORS] = {{0}}, agree = 0, of = 0;
	uint64_t seen = 0;

	for (uint32_t i = 0; i < f->count; i++)
		count[f->sample[i].label][color_map_channel(m, f->sample[i].granule)]++;
	for (uint32_t k = 0; k < f->classes; k++) {
		uint32_t most = 0;

		for (uint32_t c = 0; c < m->channels; c++)
			if (count[k][c] > count[k][most])
				most = c;
		agree += count[k][most];
		of += !(seen >> most & 1u);
		seen |= UINT64_C(1) << most;
	}
	return of == m->channels && agree >= f->least * f->count;
}

/* So many channels, of which up to a fourth have been found twice? */
static bool found_twice(const struct fit *f, uint32_t channels)
{
	return f->classes >= channels && (f->classes - channels) * 4 <= channels;
}

static bool fit_all(const struct fit *f, struct color_map *m)
{
	uint32_t basis[BITS] = {0}, q;

	m->mask_count = fit_masks(f, basis);
	for (uint32_t i = 0; i < m->mask_count; i++)
		m->mask[i] = basis[i];
	m->kind = COLOR_MAP_XOR;
	m->channels = 1u << m->mask_count;
	if (found_twice(f, m->channels))
		return holds_map(f, m);
	/* Parities alone would hold, too, and be too coarse. */
	for (q = f->classes >> m->mask_count; q >= 3; q--) {
		m->channels = q << m->mask_count;
		if (!found_twice(f, m->channels))
			break;
		if (q % 2 && q < NUMBERS && m->channels <= DISCOVER_CHANNELS &&
		    fit_weights(f, q, m)) {
			m->kind = COLOR_MAP_XORMOD;
			return holds_map(f, m);
		}
	}
	return false;
}

bool fit_rule(struct prober *p, const struct sample *samples, uint32_t count,
	      double error, struct color_map *map)
{
	struct fit f = {.p = p, .sample = samples, .count = count, .classes = p->classes};
	const struct sample **all = malloc((count + 1) * sizeof(const struct sample *));
	uint32_t at[CLASSES] = {0}, pairs = 0, next = 0;
	bool found;

	if (!all)
		return false;
	for (uint32_t i = 0; i < count; i++)
		f.in[samples[i].label]++;
	for (uint32_t k = 0; k < f.classes; k++) {
		f.of[k] = all + next;
		next += f.in[k];
		pairs += f.in[k] >= 2;
	}
	for (uint32_t i = 0; i < count; i++)
		f.of[samples[i].label][at[samples[i].label]++] = &samples[i];
	while (f.bits < BITS && (p->dev->first + p->dev->granules - 1) >> f.bits)
		f.bits++;
	f.least = 1 - error - 3 * sqrt(error * (1 - error) / count) - 0.02;
	found = pairs && f.classes >= 2 && fit_all(&f, map);
	if (!found)
		map->channels = 0;
	free(all);
	return found;
}
