/* SPDX-License-Identifier: Apache-2.0 */
/* The channel hash: every granule its own place, every channel its exact share. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "npu/hash.h"

#define GRANULES (1u << 20)

static const uint32_t channels[] = {1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16};
#define CHANNEL_COUNT (sizeof(channels) / sizeof(channels[0]))

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
	for (size_t i = 0; i < CHANNEL_COUNT; i++) {
		for (size_t m = 0; m < sizeof(masks) / sizeof(masks[0]); m++) {
			struct npu_hash h = {.gran = 10};

			assert_true(npu_hash_split(channels[i], &h.q, &h.k));
			memcpy(h.xmask, masks[m], sizeof(h.xmask));
			check(&h, channels[i]);
		}
	}
}

/* Every aligned group of n granules has one on each channel. */
static void balanced_in_turns(void **state)
{
	(void)state;
	for (size_t i = 0; i < CHANNEL_COUNT; i++) {
		struct npu_hash h = {.gran = 8,
				     .xmask = {0x9E3779, 0x85EBCA, 0xC2B2AE, 0x27D4EB}};
		uint32_t n = channels[i];

		assert_true(npu_hash_split(n, &h.q, &h.k));
		for (uint32_t g = 0; g + n <= 1u << 16; g += n) {
			uint32_t seen = 0;

			for (uint32_t j = 0; j < n; j++)
				seen |= 1u << npu_hash_map(&h, g + j).channel;
			assert_int_equal(seen, (1u << n) - 1);
		}
	}
}

static void what_is_no_product(void **state)
{
	uint32_t q, k;

	(void)state;
	assert_false(npu_hash_split(0, &q, &k));
	assert_false(npu_hash_split(9, &q, &k));
	assert_false(npu_hash_split(11, &q, &k));
	assert_false(npu_hash_split(15, &q, &k));
	assert_true(npu_hash_split(12, &q, &k));
	assert_int_equal(q, 3);
	assert_int_equal(k, 2);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bijective_and_balanced),
		cmocka_unit_test(balanced_in_turns),
		cmocka_unit_test(what_is_no_product),
		cmocka_unit_test(hand_values),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
