/* SPDX-License-Identifier: Apache-2.0 */
/* pitch.c - distances of rows in the scratchpad, tried on a few output lines. */
#include "pitch.h"

#define LANES 16u /* PE rows, and bytes of a word */
#define BANKS 8u
#define PORTS 6u
#define TRIES 17u /* distances, a line of 64 bytes apart */
#define FOLDS 8u  /* of an operation that are looked at */
#define LINES 4u  /* of outputs that are looked at */
#define LINE  16u /* outputs of each */

uint64_t npu_pitch_least(uint64_t row_bytes, uint64_t lda)
{
	uint64_t least = row_bytes + 64;

	/* Rows either keep memory's own distance (what is between them is less than a
	 * line), or no two share a line. */
	if (lda >= row_bytes && lda - row_bytes < 64)
		return lda;
	return least + ((lda - least) & 63u);
}

/* npu_spad_pkg::bank() */
static uint32_t bank(uint32_t word)
{
	return (word + (word >> 3) + (word >> 6) + (word >> 9)) % BANKS;
}

/* What the runs of a row ask of each bank, one run a cycle, though two may want one word.
 */
struct row {
	uint32_t banks[BANKS], runs;
};

/* A run's word, or two. */
static void add_run(struct row *r, uint32_t at, uint32_t length)
{
	uint32_t first = at / LANES, last = (at + length - 1) / LANES;

	r->runs++;
	r->banks[bank(first)]++;
	if (last != first)
		r->banks[bank(last)]++;
}

/* Cycles that the output at column ox takes in the fold whose lanes begin at k0. */
static uint32_t row_cycles(const struct npu_pitch *c, uint32_t sps, uint32_t k0,
			   uint32_t oy, uint32_t ox)
{
	uint32_t k_end = c->kh * c->kw * c->depth, first = 0, length = 0, most;
	bool keeps = c->group && c->depth == 1 && c->dx == 1 && c->sx <= 2 && ox;
	struct row r = {0};

	for (uint32_t k = k0; k < k0 + LANES && k < k_end; k++) {
		uint32_t q = k / c->depth, kx = q % c->kw, ky = q / c->kw, at;

		if (keeps && kx + c->sx < c->kw && k + c->sx < k0 + LANES)
			continue; /* the row before had it */
		at = (oy * c->sy + ky * c->dy) * sps +
		     (ox * c->sx + kx * c->dx) * c->pix + k % c->depth;
		if (c->group) {
			add_run(&r, at, LANES);
			continue;
		}
		if (length && at == first + length && length < LANES) {
			length++;
			continue;
		}
		if (length)
			add_run(&r, first, length);
		first = at;
		length = 1;
	}
	if (length)
		add_run(&r, first, length);
	most = (r.runs + PORTS - 1) / PORTS;
	for (uint32_t b = 0; b < BANKS; b++)
		most = r.banks[b] > most ? r.banks[b] : most;
	return most ? most : 1;
}

uint32_t npu_pitch_tries(const struct npu_pitch *c)
{
	/* Then a fold's lanes are few runs of whole words, which do not meet. */
	return !c->group && c->depth % LANES == 0 ? 1 : TRIES;
}

struct npu_pitch_cost npu_pitch_cost(const struct npu_pitch *c, uint32_t sps)
{
	uint32_t k_end = c->kh * c->kw * c->depth;
	struct npu_pitch_cost cost = {0, 0};

	if (npu_pitch_tries(c) == 1)
		return (struct npu_pitch_cost){1, 1};
	for (uint32_t fold = 0; fold < FOLDS && fold * LANES < k_end; fold++) {
		for (uint32_t i = 0; i < LINES * LINE; i++) {
			uint32_t ox = i % LINE;

			if (ox >= c->ow)
				continue;
			cost.cycles += row_cycles(c, sps, fold * LANES, i / LINE, ox);
			cost.rows++;
		}
	}
	return cost;
}
