/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_hash.c - the channel hash in RTL against plain division in C: every granule up to
 * a limit (argument, default 2^14; 2^24 is all there are), every K and Q, random masks.
 * Bijective and exactly balanced in every aligned block of Q * 2^K granules.
 */
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "dut/dut.h"

#define GRANULES (UINT32_C(1) << 24)

static uint32_t parity(uint32_t x)
{
	return (uint32_t)__builtin_popcount(x) & 1;
}

static void reference(const struct dut_hash_cfg *c, uint32_t g, uint32_t *ch,
		      uint32_t *local)
{
	uint32_t u = g >> c->k;
	uint32_t low = 0;

	for (uint32_t i = 0; i < c->k; i++) {
		uint32_t mask = c->xmask[i] & (uint32_t)(UINT64_MAX << (i + 1));

		low |= parity(g & (mask | UINT32_C(1) << i)) << i;
	}
	*ch = (u % c->q + u / c->q % c->q) % c->q << c->k | low;
	*local = u / c->q;
}

/* count granules from first, a multiple of Q * 2^K. */
static void block(struct dut_hash *d, const struct dut_hash_cfg *c, uint32_t first,
		  uint32_t count, uint8_t *seen)
{
	uint32_t channels = c->q << c->k;
	uint32_t base = first / channels;
	uint32_t per_channel[16] = {0};

	memset(seen, 0, count);
	for (uint32_t g = first; g < first + count; g++) {
		uint32_t ch, local, want_ch, want_local;

		dut_hash_granule(d, g, &ch, &local);
		reference(c, g, &want_ch, &want_local);
		CHECK(ch == want_ch && local == want_local,
		      "k %u q %u granule %u: channel %u, place %u, not %u, %u", c->k,
		      c->q, g, ch, local, want_ch, want_local);
		if (ch >= channels || local - base >= count / channels)
			continue;
		per_channel[ch]++;
		CHECK(!seen[(local - base) * channels + ch]++,
		      "k %u q %u: two granules at channel %u place %u", c->k, c->q, ch,
		      local);
	}
	for (uint32_t i = 0; i < channels; i++)
		CHECK(per_channel[i] == count / channels,
		      "k %u q %u: channel %u has %u of %u", c->k, c->q, i, per_channel[i],
		      count);
}

static void lines(struct dut_hash *d, struct dut_hash_cfg *c, struct rng *r)
{
	for (c->gran = 8; c->gran <= 12; c->gran++) {
		dut_hash_config(d, c);
		for (int i = 0; i < 2000; i++) {
			uint32_t pa = rng_next(r);
			uint32_t ch, local, want_ch, want_local;

			dut_hash_line(d, pa, &ch, &local);
			reference(c, pa >> c->gran, &want_ch, &want_local);
			want_local = want_local << (c->gran - 6) |
				     (pa & ((UINT32_C(1) << c->gran) - 1)) >> 6;
			CHECK(ch == want_ch && local == want_local, "gran %u pa %#x",
			      c->gran, pa);
		}
	}
}

int main(int argc, char **argv)
{
	uint32_t limit =
		argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 0) : UINT32_C(1) << 14;
	struct dut_hash *d = dut_hash_create();
	uint8_t *seen = malloc(GRANULES);
	struct rng r = {1};

	if (!seen || limit > GRANULES)
		return 2;
	for (uint32_t q = 1; q <= 15; q += 2) {
		for (uint32_t k = 0; k <= 4 && q << k <= 16; k++) {
			struct dut_hash_cfg c = {.k = k, .q = q, .gran = 12};
			uint32_t channels = q << k;
			uint32_t count = limit / channels * channels;

			for (int i = 0; i < 4; i++)
				c.xmask[i] = rng_next(&r) % GRANULES;
			dut_hash_config(d, &c);
			block(d, &c, 0, count, seen);
			/* The top end, where the products wrap. */
			block(d, &c, (GRANULES - count) / channels * channels, count,
			      seen);
			lines(d, &c, &r);
		}
	}
	free(seen);
	dut_hash_destroy(d);
	return bench_end("bench_hash");
}
