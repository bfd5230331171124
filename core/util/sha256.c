/* SPDX-License-Identifier: Apache-2.0 */
/* sha256.c - SHA-256 as FIPS 180-4 has it; names are the standard's. */
#include "util/sha256.h"

#include <stdint.h>
#include <string.h>

#define BLOCK 64u

/* First 32 bits of the fractional parts of the cube roots of the first 64 primes. */
static const uint32_t K[64] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1,
	0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3,
	0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786,
	0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
	0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147,
	0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13,
	0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
	0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
	0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a,
	0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
	0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t rotr(uint32_t x, uint32_t n)
{
	return x >> n | x << (32 - n);
}

static uint32_t sum(uint32_t x, uint32_t a, uint32_t b, uint32_t c)
{
	return rotr(x, a) ^ rotr(x, b) ^ rotr(x, c);
}

static void take_block(uint32_t H[8], const uint8_t *block)
{
	uint32_t W[64], s[8];

	for (uint32_t t = 0; t < 16; t++, block += 4)
		W[t] = (uint32_t)block[0] << 24 | (uint32_t)block[1] << 16 |
		       (uint32_t)block[2] << 8 | block[3];
	for (uint32_t t = 16; t < 64; t++) {
		uint32_t s0 = rotr(W[t - 15], 7) ^ rotr(W[t - 15], 18) ^ W[t - 15] >> 3;
		uint32_t s1 = rotr(W[t - 2], 17) ^ rotr(W[t - 2], 19) ^ W[t - 2] >> 10;

		W[t] = W[t - 16] + s0 + W[t - 7] + s1;
	}
	memcpy(s, H, sizeof(s));
	for (uint32_t t = 0; t < 64; t++) {
		uint32_t ch = (s[4] & s[5]) ^ (~s[4] & s[6]);
		uint32_t maj = (s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]);
		uint32_t T1 = s[7] + sum(s[4], 6, 11, 25) + ch + K[t] + W[t];
		uint32_t T2 = sum(s[0], 2, 13, 22) + maj;

		memmove(s + 1, s, 7 * sizeof(s[0]));
		s[4] += T1;
		s[0] = T1 + T2;
	}
	for (uint32_t i = 0; i < 8; i++)
		H[i] += s[i];
}

void sha256_hex(const void *bytes, size_t size, char hex[SHA256_HEX])
{
	static const char digits[] = "0123456789abcdef";
	uint32_t H[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
			 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
	size_t whole = size / BLOCK * BLOCK, left = size - whole;
	uint8_t last[2 * BLOCK] = {0};
	size_t end = left + 9 <= BLOCK ? BLOCK : sizeof(last);

	for (size_t at = 0; at < whole; at += BLOCK)
		take_block(H, (const uint8_t *)bytes + at);
	if (left > 0)
		memcpy(last, (const uint8_t *)bytes + whole, left);
	last[left] = 0x80;
	for (uint32_t i = 0; i < 8; i++)
		last[end - 1 - i] = (uint8_t)((uint64_t)size * 8 >> 8 * i);
	for (size_t at = 0; at < end; at += BLOCK)
		take_block(H, last + at);
	for (uint32_t i = 0; i < SHA256_HEX - 1; i++)
		hex[i] = digits[H[i / 8] >> (28 - 4 * (i % 8)) & 15u];
	hex[SHA256_HEX - 1] = '\0';
}
