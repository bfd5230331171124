/* SPDX-License-Identifier: Apache-2.0 */
/* driver.c - runs a fuzz target without libFuzzer: its seeds, each of their truncations
 * and a fixed number of random changes; from SEED on those alone.  driver [RUNS [SEED]]
 */
#include "fuzz.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INPUT_MAX 65536

static uint64_t state;

/* xorshift64*; Vigna, "An experimental exploration of Marsaglia's xorshift generators" */
static uint64_t random64(void)
{
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return state * UINT64_C(2685821657736338717);
}

/* A copy of exactly size bytes, so that a sanitizer sees one byte too many. */
static void run(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size ? size : 1);

	if (!copy)
		abort();
	memcpy(copy, data, size);
	LLVMFuzzerTestOneInput(copy, size);
	free(copy);
}

static size_t change(uint8_t *data, size_t size)
{
	static const uint8_t interesting[] = {0,    1,   0x7f, 0x80, 0xff,
					      '\n', '=', '[',  ';'};
	unsigned int count = 1 + (unsigned int)(random64() % 4);

	while (count-- && size) {
		size_t at = (size_t)(random64() % size);

		switch (random64() % 5) {
		case 0:
			data[at] ^= (uint8_t)(1u << (random64() % 8));
			break;
		case 1:
			data[at] = interesting[random64() % sizeof(interesting)];
			break;
		case 2:
			data[at] = (uint8_t)random64();
			break;
		case 3: /* drop the tail */
			size = at;
			break;
		default: /* double a piece */
			if (size - at <= INPUT_MAX - size) {
				memmove(data + size, data + at, size - at);
				size += size - at;
			}
			break;
		}
	}
	return size;
}

int main(int argc, char **argv)
{
	static uint8_t seed[INPUT_MAX], data[INPUT_MAX];
	unsigned long runs = argc > 1 ? strtoul(argv[1], NULL, 0) : 2000;
	uint64_t first = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
	bool all = argc <= 2;
	unsigned long done = 0;
	size_t size;
	unsigned int seeds = 0;

	LLVMFuzzerInitialize(&argc, &argv);
	while ((size = fuzz_seed(seeds, seed, sizeof(seed))) > 0) {
		size_t step = size / 512 + 1;

		for (size_t n = 0; all && n <= size; n += step, done++)
			run(seed, n);
		if (all)
			run(seed, size);
		done += all;
		seeds++;
	}
	if (!seeds) {
		fprintf(stderr, "no seed\n");
		return 1;
	}
	for (unsigned long i = 0; i < runs; i++, done++) {
		state = (first + i) * UINT64_C(0x9e3779b97f4a7c15) | 1;
		size = fuzz_seed((unsigned int)(random64() % seeds), data, sizeof(data));
		run(data, change(data, size));
	}
	printf("%lu inputs from %u seeds, random ones %llu..%llu\n", done, seeds,
	       (unsigned long long)first, (unsigned long long)(first + runs - 1));
	return 0;
}
