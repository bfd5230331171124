/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hash.h - which memory channel a granule of physical memory lives on: npu_hash.sv in C.
 *
 * Channels = q * 2^k, q odd, 1 to 15: any number up to 16.  The power-of-two part is a
 * parity a bit over the granule's number, the odd part an exact modulo that is rotated by
 * the next digit, so that no power-of-two stride stays on one channel.  Every granule has
 * its own place (bijective), and aligned runs of 2^k granules, and whole turns of q of
 * those, are exactly balanced.
 */
#ifndef NPU_HASH_H
#define NPU_HASH_H

#include <stdint.h>

struct npu_hash {
	uint32_t k, q;
	uint32_t gran; /* granule = 2^gran bytes */
	uint32_t xmask[4];
};

struct npu_hash_place {
	uint32_t channel;
	uint32_t local; /* granule's number inside the channel */
};

/* q and k of a number of channels; 0 when there are none, or more than 16. */
int npu_hash_split(uint32_t channels, uint32_t *q, uint32_t *k);
struct npu_hash_place npu_hash_map(const struct npu_hash *h, uint32_t granule);
/* Of a physical byte address: .local counts 64-byte lines. */
struct npu_hash_place npu_hash_line(const struct npu_hash *h, uint32_t address);
/* Bit i < k of a channel is the parity of granule and this. */
uint32_t npu_hash_mask(const struct npu_hash *h, uint32_t i);
/* Masks of a seed.  NPU_HASH_SPREAD: bit i of a channel also takes every k-th bit above,
 * so that strides of powers of two spread.  NPU_HASH_PLAIN: none: granules that follow
 * each other go round the channels, as streams like it best.  Others: drawn from it. */
#define NPU_HASH_SPREAD 0u
#define NPU_HASH_PLAIN  UINT32_MAX
void npu_hash_choose(struct npu_hash *h, uint32_t seed);
/* HASH register's value, and what one says; the masks are not in it. */
uint32_t npu_hash_register(const struct npu_hash *h);
void npu_hash_of_register(struct npu_hash *h, uint32_t value);

#endif
