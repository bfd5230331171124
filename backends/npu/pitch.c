/* SPDX-License-Identifier: Apache-2.0 */
/* pitch.c - distances of rows in the scratchpad, tried on one output line. */
#include "pitch.h"

#include <string.h>

#define LANES 16u /* PE rows, and bytes of a word */
#define BANKS 8u
#define PORTS 6u
#define TRIES 17u /* distances, a line of 64 bytes apart */
#define FOLDS 8u  /* of an operation that are looked at */
#define LINE  32u /* outputs that are looked at */

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

/* A word in its bank, unless the row has it already. */
struct row {
	uint32_t words[2 * LANES], count, banks[BANKS], runs;
};

static void add_word(struct row *r, uint32_t word)
{
	for (uint32_t i = 0; i < r->count; i++)
		if (r->words[i] == word)
			return;
	r->words[r->count++] = word;
	r->banks[bank(word)]++;
}

/* Cycles that the output at column ox takes in the fold whose lanes begin at k0. */
static uint32_t row_cycles(const struct npu_pitch *c, uint32_t sps, uint32_t k0,
			   uint32_t ox)
{
	uint32_t k_end = c->kh * c->kw * c->depth, last = 0, length = 0, most;
	bool keeps = c->group && c->depth == 1 && c->dx == 1 && c->sx <= 2 && ox;
	struct row r;

	memset(&r, 0, sizeof(r));
	for (uint32_t k = k0; k < k0 + LANES && k < k_end; k++) {
		uint32_t q = k / c->depth, kx = q % c->kw, ky = q / c->kw, at;

		if (keeps && kx + c->sx < c->kw && k + c->sx < k0 + LANES)
			continue; /* the row before had it */
		at = ky * c->dy * sps + (ox * c->sx + kx * c->dx) * c->pix + k % c->depth;
		if (c->group || !length || at != last + 1 || length == LANES) {
			r.runs++;
			length = 0;
		}
		add_word(&r, at / LANES);
		if (c->group)
			add_word(&r, (at + LANES - 1) / LANES);
		length++;
		last = at;
	}
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
		for (uint32_t ox = 0; ox < LINE && ox < c->ow; ox++) {
			cost.cycles += row_cycles(c, sps, fold * LANES, ox);
			cost.rows++;
		}
	}
	return cost;
}
