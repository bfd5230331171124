/* SPDX-License-Identifier: Apache-2.0 */
/* information.c - see information.h. */
#include "information.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define CERTAIN 0.99

uint64_t information_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state * UINT64_C(2685821657736338717);
}

static int by_number(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* As many numbers in each bin as there can be, and the same number in one bin only. */
static void put_in_bins(const uint64_t *seen, uint32_t rows, uint32_t columns,
			uint32_t column, uint64_t *sorted, uint8_t *bin)
{
	uint64_t edge[INFORMATION_BINS];

	for (uint32_t i = 0; i < rows; i++)
		sorted[i] = seen[(size_t)i * columns + column];
	qsort(sorted, rows, sizeof(*sorted), by_number);
	for (uint32_t b = 0; b < INFORMATION_BINS; b++)
		edge[b] = sorted[(uint64_t)rows * b / INFORMATION_BINS];
	for (uint32_t i = 0; i < rows; i++) {
		uint8_t b = 0;

		while (b + 1u < INFORMATION_BINS &&
		       seen[(size_t)i * columns + column] >= edge[b + 1])
			b++;
		bin[i] = b;
	}
}

/* Bits that the bin says of the secret, less the mean error of that: a degree of freedom
 * of the table is half a nat over the samples. */
static double bits_of(const uint8_t *bin, const uint8_t *secret, uint32_t rows)
{
	uint32_t both[INFORMATION_BINS][2] = {{0}}, of_bin[INFORMATION_BINS] = {0};
	uint32_t of_secret[2] = {0};
	double sum = 0, cells = 1;

	for (uint32_t i = 0; i < rows; i++) {
		both[bin[i]][secret[i]]++;
		of_bin[bin[i]]++;
		of_secret[secret[i]]++;
	}
	for (uint32_t s = 0; s < 2; s++)
		cells -= of_secret[s] > 0;
	for (uint32_t b = 0; b < INFORMATION_BINS; b++) {
		cells -= of_bin[b] > 0;
		for (uint32_t s = 0; s < 2; s++) {
			double n = both[b][s];

			if (both[b][s] == 0)
				continue;
			cells++;
			sum += n * log2(n * rows / ((double)of_bin[b] * of_secret[s]));
		}
	}
	return (sum - cells / (2 * log(2))) / rows;
}

static double most_of(const uint8_t *bin, const uint8_t *secret, uint32_t rows,
		      uint32_t columns, uint32_t *column)
{
	double most = 0;

	for (uint32_t c = 0; c < columns; c++) {
		double bits = bits_of(bin + (size_t)c * rows, secret, rows);

		if (c == 0 || bits > most) {
			most = bits;
			*column = c;
		}
	}
	return most;
}

static void shuffle(uint8_t *secret, uint32_t rows, uint64_t *state)
{
	for (uint32_t i = rows; i > 1; i--) {
		uint32_t j = (uint32_t)(information_random(state) % i);
		uint8_t t = secret[i - 1];

		secret[i - 1] = secret[j];
		secret[j] = t;
	}
}

static int by_size(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

int information_of(const uint64_t *seen, const uint8_t *secret, uint32_t rows,
		   uint32_t columns, uint32_t shuffles, uint64_t seed,
		   struct information *out)
{
	uint8_t *bin = malloc((size_t)rows * columns), *other = malloc(rows);
	uint64_t *sorted = malloc(rows * sizeof(*sorted));
	double *chance = malloc(shuffles * sizeof(*chance));
	bool room = bin && other && sorted && chance;
	uint64_t state = seed | 1;

	for (uint32_t c = 0; room && c < columns; c++)
		put_in_bins(seen, rows, columns, c, sorted, bin + (size_t)c * rows);
	if (room) {
		out->bits = most_of(bin, secret, rows, columns, &out->column);
		memcpy(other, secret, rows);
		for (uint32_t i = 0; i < shuffles; i++) {
			uint32_t column;

			shuffle(other, rows, &state);
			chance[i] = most_of(bin, other, rows, columns, &column);
		}
		qsort(chance, shuffles, sizeof(*chance), by_size);
		out->error = chance[(uint32_t)(CERTAIN * (shuffles - 1))];
	}
	free(bin);
	free(other);
	free(sorted);
	free(chance);
	return room ? 0 : -1;
}
