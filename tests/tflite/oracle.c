/* SPDX-License-Identifier: Apache-2.0 */
/* oracle.c - reads data/tflite; the random numbers and checksums that go with it. */
#include "oracle.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>

void oracle_random(uint64_t seed, uint8_t *out, size_t count)
{
	uint64_t x = seed;

	for (size_t i = 0; i < count; i++) {
		x ^= x >> 12;
		x ^= x << 25;
		x ^= x >> 27;
		out[i] = (uint8_t)((x * UINT64_C(2685821657736338717)) >> 56);
	}
}

uint32_t oracle_crc32(const void *data, size_t bytes)
{
	return (uint32_t)crc32(0, data, (uInt)bytes);
}

/* ---- SHA-256 (FIPS 180-4) --------------------------------------------------------- */

static uint32_t rotated(uint32_t x, uint32_t n)
{
	return x >> n | x << (32 - n);
}

__extension__ typedef unsigned __int128 wide;

/* The first 32 bits of the fractional parts of a prime's square or cube root, found with
 * whole numbers: floor(2^32 root) by bisection, modulo 2^32. */
static uint32_t root_bits(uint32_t prime, uint32_t power)
{
	wide target = (wide)prime << (32 * power);
	uint64_t low = 0, high = UINT64_C(1) << 37;

	while (high - low > 1) {
		uint64_t mid = low + (high - low) / 2;
		wide x = (wide)mid * mid;

		if (power == 3)
			x *= mid;
		if (x <= target)
			low = mid;
		else
			high = mid;
	}
	return (uint32_t)low;
}

static uint32_t next_prime(uint32_t after)
{
	for (uint32_t p = after + 1;; p++) {
		uint32_t d = 2;

		while (d * d <= p && p % d)
			d++;
		if (d * d > p)
			return p;
	}
}

static void sha256_block(uint32_t state[8], const uint32_t k[64], const uint8_t *block)
{
	uint32_t w[64], v[8];

	for (uint32_t i = 0; i < 16; i++)
		w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
		       (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
	for (uint32_t i = 16; i < 64; i++)
		w[i] = w[i - 16] + w[i - 7] +
		       (rotated(w[i - 15], 7) ^ rotated(w[i - 15], 18) ^ w[i - 15] >> 3) +
		       (rotated(w[i - 2], 17) ^ rotated(w[i - 2], 19) ^ w[i - 2] >> 10);
	memcpy(v, state, sizeof(v));
	for (uint32_t i = 0; i < 64; i++) {
		uint32_t e = rotated(v[4], 6) ^ rotated(v[4], 11) ^ rotated(v[4], 25);
		uint32_t a = rotated(v[0], 2) ^ rotated(v[0], 13) ^ rotated(v[0], 22);
		uint32_t choice = (v[4] & v[5]) ^ (~v[4] & v[6]);
		uint32_t majority = (v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]);
		uint32_t t = v[7] + e + choice + k[i] + w[i];

		memmove(v + 1, v, 7 * sizeof(v[0]));
		v[4] += t;
		v[0] = t + a + majority;
	}
	for (uint32_t i = 0; i < 8; i++)
		state[i] += v[i];
}

void oracle_sha256(const void *data, size_t bytes, char text[65])
{
	uint32_t state[8], k[64], prime = 1;
	uint8_t tail[128] = {0};
	const uint8_t *at = data;
	size_t left = bytes, padded;

	for (uint32_t i = 0; i < 64; i++) {
		prime = next_prime(prime);
		k[i] = root_bits(prime, 3);
		if (i < 8)
			state[i] = root_bits(prime, 2);
	}
	for (; left >= 64; left -= 64, at += 64)
		sha256_block(state, k, at);
	if (left)
		memcpy(tail, at, left);
	tail[left] = 0x80;
	padded = left < 56 ? 64 : 128;
	for (uint32_t i = 0; i < 8; i++)
		tail[padded - 1 - i] = (uint8_t)((uint64_t)bytes * 8 >> (8 * i));
	sha256_block(state, k, tail);
	if (padded == 128)
		sha256_block(state, k, tail + 64);
	for (uint32_t i = 0; i < 8; i++)
		snprintf(text + (size_t)8 * i, 9, "%08x", (unsigned)state[i]);
}

/* ---- files ------------------------------------------------------------------------ */

/* zlib reads a file that is not compressed as it is. */
uint8_t *oracle_read_file(const char *path, size_t *size)
{
	gzFile f = gzopen(path, "rb");
	uint8_t *bytes = NULL;
	size_t used = 0, room = 0;
	int n = 0;

	if (!f)
		return NULL;
	do {
		uint8_t *more;

		used += (size_t)n;
		if (room - used < 2) {
			room = room ? 2 * room : 65536;
			more = realloc(bytes, room);
			if (!more) {
				n = -1;
				errno = ENOMEM;
				break;
			}
			bytes = more;
		}
		n = gzread(f, bytes + used, (unsigned)(room - used - 1));
		if (n < 0)
			errno = EIO;
	} while (n > 0);
	gzclose(f);
	if (n < 0) {
		free(bytes);
		return NULL;
	}
	*size = used;
	return bytes;
}

/* ---- the pack --------------------------------------------------------------------- */

static uint64_t number(const uint8_t *at, uint32_t bytes)
{
	uint64_t value = 0;

	for (uint32_t i = 0; i < bytes; i++)
		value |= (uint64_t)at[i] << (8 * i);
	return value;
}

static int take(struct oracle_pack *p, size_t bytes, const uint8_t **at)
{
	if (p->size - p->at < bytes)
		return -EINVAL;
	*at = p->bytes + p->at;
	p->at += bytes;
	return 0;
}

static int take_number(struct oracle_pack *p, uint32_t bytes, uint64_t *value)
{
	const uint8_t *at;

	if (take(p, bytes, &at))
		return -EINVAL;
	*value = number(at, bytes);
	return 0;
}

/* uint32 bytes, then as many. */
static int take_block(struct oracle_pack *p, uint32_t *bytes, const uint8_t **at)
{
	uint64_t n;

	if (take_number(p, 4, &n))
		return -EINVAL;
	*bytes = (uint32_t)n;
	return take(p, *bytes, at);
}

int oracle_pack_open(const char *path, struct oracle_pack *p)
{
	uint64_t seed, models;
	const uint8_t *magic;

	memset(p, 0, sizeof(*p));
	p->bytes = oracle_read_file(path, &p->size);
	if (!p->bytes)
		return errno ? -errno : -ENOMEM;
	if (take(p, 8, &magic) || memcmp(magic, "HALOPS1\n", 8) != 0 ||
	    take_number(p, 4, &seed) || take_number(p, 4, &models)) {
		oracle_pack_close(p);
		return -EINVAL;
	}
	p->seed = (uint32_t)seed;
	p->models = (uint32_t)models;
	return 0;
}

void oracle_pack_close(struct oracle_pack *p)
{
	free(p->bytes);
	memset(p, 0, sizeof(*p));
}

int oracle_pack_next(struct oracle_pack *p, struct oracle_model *m)
{
	uint64_t length, bytes;
	const uint8_t *text;

	memset(m, 0, sizeof(*m));
	if (take_number(p, 1, &length) || take(p, length, &text) ||
	    take_block(p, &m->model_bytes, &m->model) || take_number(p, 4, &bytes) ||
	    take_number(p, 8, &m->seed))
		return -EINVAL;
	memcpy(m->text, text, length);
	m->input_bytes = (uint32_t)bytes;
	if (!m->seed && take(p, m->input_bytes, &m->input))
		return -EINVAL;
	return take_block(p, &m->output_bytes, &m->output);
}
