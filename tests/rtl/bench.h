/* SPDX-License-Identifier: Apache-2.0 */
/* bench.h - what every RTL bench needs: counted checks, seeded random numbers, the
 * verdict. */
#ifndef BENCH_H
#define BENCH_H

#include <stdint.h>
#include <stdio.h>

/* A failed check prints the first few times; bench_end() turns any into exit status 1. */
#define CHECK(ok, ...)                                                                   \
	do {                                                                             \
		bench_checks++;                                                          \
		if (!(ok) && bench_failures++ < 20) {                                    \
			printf("%s:%d: %s: ", __FILE__, __LINE__, #ok);                  \
			printf(__VA_ARGS__);                                             \
			printf("\n");                                                    \
		}                                                                        \
	} while (0)

extern uint64_t bench_checks, bench_failures;

struct rng {
	uint64_t state;
};

static inline uint32_t rng_next(struct rng *r)
{
	/* splitmix64 */
	uint64_t z = (r->state += UINT64_C(0x9E3779B97F4A7C15));

	z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
	return (uint32_t)((z ^ (z >> 31)) >> 16);
}

/* low..high, both included. */
static inline uint32_t rng_range(struct rng *r, uint32_t low, uint32_t high)
{
	return low + rng_next(r) % (high - low + 1);
}

static inline int bench_end(const char *name)
{
	printf("%s: %llu checks, %llu failed\n", name, (unsigned long long)bench_checks,
	       (unsigned long long)bench_failures);
	return bench_failures != 0;
}

#endif
