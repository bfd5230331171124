/* SPDX-License-Identifier: Apache-2.0 */
/* The channel hash: every granule its own place, every channel its exact share. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <hal/device/hal_color.h>

#include <stdbool.h>

#include "npu/hash.h"

#define GRANULES (1u << 20)
#define MOST     16u

/* Exhaustively: no two granules of 2^20 share a place, places have no holes but at the
 * end. */
static void check(const struct npu_hash *h, uint32_t n)
{
	uint32_t local_max = GRANULES / n + 2 * h->q + 2, used = 0;
	uint8_t *seen = calloc(n, local_max);
	uint32_t count[16] = {0};

	assert_non_null(seen);
	for (uint32_t g = 0; g < GRANULES; g++) {
		struct npu_hash_place p = npu_hash_map(h, g);

		assert_true(p.channel < n);
		assert_true(p.local < local_max);
		assert_int_equal(seen[p.channel * local_max + p.local], 0);
		seen[p.channel * local_max + p.local] = 1;
		count[p.channel]++;
		used++;
	}
	assert_int_equal(used, GRANULES);
	for (uint32_t c = 0; c < n; c++) {
		/* Whole turns of n granules are shared out exactly. */
		assert_true(count[c] >= GRANULES / n - GRANULES % n);
		assert_true(count[c] <= GRANULES / n + GRANULES % n);
		if (GRANULES % n == 0)
			assert_int_equal(count[c], GRANULES / n);
		for (uint32_t l = 0; l < GRANULES / n; l++)
			assert_int_equal(seen[c * local_max + l], 1);
	}
	free(seen);
}

static void bijective_and_balanced(void **state)
{
	static const uint32_t masks[][4] = {
		{0, 0, 0, 0},
		{0xFFFFFF, 0xFFFFFF, 0xFFFFFF, 0xFFFFFF},
		{0x123456, 0xABCDEF, 0x0F0F0F, 0x555555},
	};

	(void)state;
	for (uint32_t n = 1; n <= MOST; n++) {
		for (size_t m = 0; m < sizeof(masks) / sizeof(masks[0]); m++) {
			struct npu_hash h = {.gran = 10};

			assert_true(npu_hash_split(n, &h.q, &h.k));
			memcpy(h.xmask, masks[m], sizeof(h.xmask));
			check(&h, n);
		}
	}
}

/* Every aligned group of n granules has one on each channel. */
static void balanced_in_turns(void **state)
{
	(void)state;
	for (uint32_t n = 1; n <= MOST; n++) {
		struct npu_hash h = {.gran = 8,
				     .xmask = {0x9E3779, 0x85EBCA, 0xC2B2AE, 0x27D4EB}};

		assert_true(npu_hash_split(n, &h.q, &h.k));
		for (uint32_t g = 0; g + n <= 1u << 16; g += n) {
			uint32_t seen = 0;

			for (uint32_t j = 0; j < n; j++)
				seen |= 1u << npu_hash_map(&h, g + j).channel;
			assert_int_equal(seen, (1u << n) - 1);
		}
	}
}

/* A piece of so many granules in a row, aligned, lies within as many channels, which are
 * those of any other piece that has one of them. */
static bool stand_together(const struct npu_hash *h, uint32_t n, uint32_t piece)
{
	uint32_t group[MOST] = {0};

	for (uint32_t g = 0; g + piece <= 1u << 14; g += piece) {
		uint32_t seen = 0;

		for (uint32_t j = 0; j < piece; j++)
			seen |= 1u << npu_hash_map(h, g + j).channel;
		for (uint32_t c = 0; c < n; c++) {
			if (!(seen >> c & 1u))
				continue;
			if (group[c] && group[c] != seen)
				return false;
			group[c] = seen;
		}
		if ((uint32_t)__builtin_popcount(seen) != piece)
			return false;
	}
	return true;
}

/* The rules for pieces of tensors (hal_color.h) are true of the hash: of any number of
 * channels, its power of two is how many stand together at most. */
static void pieces_by_number_of_channels(void **state)
{
	(void)state;
	for (uint32_t n = 1; n <= MOST; n++) {
		struct npu_hash h = {.gran = 10,
				     .xmask = {0x9E3779, 0x85EBCA, 0xC2B2AE, 0x27D4EB}};

		assert_true(npu_hash_split(n, &h.q, &h.k));
		for (uint32_t own = 1; own <= n; own++)
			for (uint32_t piece = 1; piece <= MOST; piece *= 2) {
				bool ok = hal_color_piece_ok(piece << h.gran, own,
							     1u << h.gran, 1u << h.k);
				/* The tenant's channels have to be made of groups. */
				bool can =
					own % piece == 0 && stand_together(&h, n, piece);

				if ((own & (own - 1)) != 0)
					can = piece == 1;
				assert_int_equal(ok, can);
			}
	}
}

static void what_cannot_be_split(void **state)
{
	uint32_t q, k;

	(void)state;
	assert_false(npu_hash_split(0, &q, &k));
	assert_false(npu_hash_split(17, &q, &k));
	assert_true(npu_hash_split(12, &q, &k));
	assert_int_equal(q, 3);
	assert_int_equal(k, 2);
	assert_true(npu_hash_split(15, &q, &k));
	assert_int_equal(q, 15);
	assert_int_equal(k, 0);
}

/* What the register says is what was put there, for all there is. */
static void in_the_register(void **state)
{
	(void)state;
	for (uint32_t n = 1; n <= MOST; n++)
		for (uint32_t gran = 8; gran <= 12; gran++) {
			struct npu_hash h = {.gran = gran}, back = {0};

			assert_true(npu_hash_split(n, &h.q, &h.k));
			npu_hash_of_register(&back, npu_hash_register(&h));
			assert_memory_equal(&back, &h, sizeof(h));
		}
}

static void hand_values(void **state)
{
	const struct npu_hash two = {.k = 2, .q = 1, .gran = 10};
	const struct npu_hash xor = {.k = 2, .q = 1, .gran = 10, .xmask = {0x10, 0x20}};
	const struct npu_hash three = {.k = 0, .q = 3, .gran = 10};

	(void)state;
	assert_int_equal(npu_hash_map(&two, 7).channel, 3);
	assert_int_equal(npu_hash_map(&two, 7).local, 1);
	assert_int_equal(npu_hash_map(&xor, 0x10).channel, 1);
	assert_int_equal(npu_hash_map(&xor, 0x30).channel, 3);
	/* u mod 3 turned by the next digit: 0 1 2 | 1 2 0 | 2 0 1 | ... */
	assert_int_equal(npu_hash_map(&three, 3).channel, 1);
	assert_int_equal(npu_hash_map(&three, 5).channel, 0);
	assert_int_equal(npu_hash_map(&three, 7).channel, 0);
	assert_int_equal(npu_hash_map(&three, 7).local, 2);
	/* Line 3 of granule 7: 16 lines a granule. */
	assert_int_equal(npu_hash_line(&two, 7 * 1024 + 3 * 64 + 5).channel, 3);
	assert_int_equal(npu_hash_line(&two, 7 * 1024 + 3 * 64 + 5).local, 1 * 16 + 3);
}

/* Of 2^k channels: granules in a row go round them; strides of any power of two reach
 * all; a seed's are its own. */
static void chosen(void **state)
{
	(void)state;
	for (uint32_t k = 1; k <= 4; k++) {
		struct npu_hash plain = {
			.k = k, .q = 1, .gran = 10, .xmask = {7, 7, 7, 7}};
		struct npu_hash spread = plain, drawn = plain, again = plain;
		uint32_t n = 1u << k;

		npu_hash_choose(&plain, NPU_HASH_PLAIN);
		npu_hash_choose(&spread, NPU_HASH_SPREAD);
		for (uint32_t g = 0; g < 4096; g++)
			assert_int_equal(npu_hash_map(&plain, g).channel, g % n);
		for (uint32_t stride = 1; stride <= 1u << 12; stride *= 2) {
			uint32_t seen = 0;

			for (uint32_t i = 0; i < n; i++)
				seen |= 1u << npu_hash_map(&spread, i * stride).channel;
			assert_int_equal(seen, (1u << n) - 1);
		}
		npu_hash_choose(&drawn, 5);
		npu_hash_choose(&again, 5);
		assert_memory_equal(&drawn, &again, sizeof(drawn));
		npu_hash_choose(&again, 6);
		assert_memory_not_equal(&drawn, &again, sizeof(drawn));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bijective_and_balanced),
		cmocka_unit_test(balanced_in_turns),
		cmocka_unit_test(pieces_by_number_of_channels),
		cmocka_unit_test(what_cannot_be_split),
		cmocka_unit_test(in_the_register),
		cmocka_unit_test(hand_values),
		cmocka_unit_test(chosen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
