/* SPDX-License-Identifier: Apache-2.0 */
/*
 * information.h - how many bits what was seen says of a secret bit, from samples of both.
 *
 * Samples alone make too much of it: with few of them, chance looks like knowledge.  So
 * the estimate is freed of its mean error (Miller and Madow), and held against what the
 * same samples give when the secrets are handed out anew, at random: what is seen in one
 * time in a hundred so is the error within which nothing is told from zero.
 */
#ifndef LEAK_INFORMATION_H
#define LEAK_INFORMATION_H

#include <stdint.h>

#define INFORMATION_BINS 8u

struct information {
	double bits;  /* of the secret, 0 to 1; may be below 0 by as much as its error */
	double error; /* 99 of 100 shuffles are at most that */
	uint32_t column; /* that says most */
};

/* Samples: rows of columns numbers, row by row, and a secret of 0 or 1 each.  What is
 * told is of the column that says most; so it is with each shuffle, drawn from seed.
 * -1: no memory. */
int information_of(const uint64_t *seen, const uint8_t *secret, uint32_t rows,
		   uint32_t columns, uint32_t shuffles, uint64_t seed,
		   struct information *out);

/* xorshift64*; *state is not 0. */
uint64_t information_random(uint64_t *state);

#endif
