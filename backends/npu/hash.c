/* SPDX-License-Identifier: Apache-2.0 */
/* hash.c - channel and place of a granule. */
#include "hash.h"

#include "npu_regs.h"

#define CHANNELS_MAX 16u
#define QH_SHIFT     3u /* the odd part's bits in field Q */

int npu_hash_split(uint32_t channels, uint32_t *q, uint32_t *k)
{
	*k = 0;
	for (*q = channels; *q && *q % 2 == 0; *q /= 2)
		++*k;
	return channels >= 1 && channels <= CHANNELS_MAX;
}

static uint32_t parity(uint32_t x)
{
	x ^= x >> 16;
	x ^= x >> 8;
	x ^= x >> 4;
	return 0x6996u >> (x & 15u) & 1u;
}

/* Mask i has bit i set and none below it: unit triangular, hence a bijection. */
uint32_t npu_hash_mask(const struct npu_hash *h, uint32_t i)
{
	return (h->xmask[i] & 0xFFFFFFu & ~((2u << i) - 1u)) | 1u << i;
}

struct npu_hash_place npu_hash_map(const struct npu_hash *h, uint32_t granule)
{
	uint32_t low = 0, u = granule >> h->k;

	for (uint32_t i = 0; i < h->k; i++)
		low |= parity(granule & npu_hash_mask(h, i)) << i;
	return (struct npu_hash_place){
		.channel = ((u % h->q + u / h->q % h->q) % h->q) << h->k | low,
		.local = u / h->q,
	};
}

struct npu_hash_place npu_hash_line(const struct npu_hash *h, uint32_t address)
{
	struct npu_hash_place p = npu_hash_map(h, address >> h->gran);
	uint32_t lines = h->gran - 6;

	p.local = p.local << lines | (address >> 6 & ((1u << lines) - 1u));
	return p;
}

static void draw(struct npu_hash *h, uint32_t seed)
{
	uint64_t x = (seed + UINT64_C(1)) * UINT64_C(0x9E3779B97F4A7C15);

	for (uint32_t i = 0; i < 4; i++) { /* splitmix64 */
		uint64_t z = x += UINT64_C(0x9E3779B97F4A7C15);

		z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
		z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
		h->xmask[i] = (uint32_t)(z >> 40);
	}
}

void npu_hash_choose(struct npu_hash *h, uint32_t seed)
{
	if (seed != NPU_HASH_SPREAD && seed != NPU_HASH_PLAIN) {
		draw(h, seed);
		return;
	}
	for (uint32_t i = 0; i < 4; i++)
		h->xmask[i] = 0;
	for (uint32_t i = 0; seed == NPU_HASH_SPREAD && i < h->k; i++)
		for (uint32_t bit = h->k + i; bit < 24; bit += h->k)
			h->xmask[i] |= 1u << bit;
}

uint32_t npu_hash_register(const struct npu_hash *h)
{
	return NPU_REG_BITS(HASH_K, h->k) | NPU_REG_BITS(HASH_Q, h->q) |
	       NPU_REG_BITS(HASH_QH, h->q >> QH_SHIFT) | NPU_REG_BITS(HASH_GRAN, h->gran);
}

void npu_hash_of_register(struct npu_hash *h, uint32_t value)
{
	h->k = NPU_REG_GET(value, HASH_K);
	h->q = NPU_REG_GET(value, HASH_Q) | NPU_REG_GET(value, HASH_QH) << QH_SHIFT;
	h->gran = NPU_REG_GET(value, HASH_GRAN);
}
