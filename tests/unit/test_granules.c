/* SPDX-License-Identifier: Apache-2.0 */
/* Free granules by colour against a plain list of them: the same ones, whatever came
 * before; shares, and what is left when there are not enough. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "memory/granules.h"

#define MANY 20000u

static struct hal_bk_granules *open_map(uint32_t colors, uint64_t granules)
{
	struct color_map m = {.memory = granules * 1024,
			      .granule = 1024,
			      .channels = colors,
			      .kind = COLOR_MAP_XORMOD,
			      .q = colors,
			      .digits = 2,
			      .weight = {1, 1}};
	struct hal_bk_granules *g = NULL;

	assert_int_equal(granules_make(&m, &g), 0);
	return g;
}

static int take(struct hal_bk_granules *g, uint64_t mask, const uint8_t *weights,
		uint64_t count, uint32_t *out)
{
	const struct hal_bk_colors colors = {.mask = mask, .weights = weights};

	return granules_take(g, &colors, count, out);
}

/* xorshift64*; Vigna */
static uint64_t random64(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * UINT64_C(2685821657736338717);
}

/* Of one colour at a time the list says which: the lowest that is free. */
static void lowest_first(void **state)
{
	static const uint32_t sizes[] = {63, 64, 65, 4096, 4097, MANY};
	static uint8_t used[MANY];
	static uint32_t got[MANY];

	(void)state;
	for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
		uint32_t n = sizes[s];
		struct hal_bk_granules *g = open_map(5, n);
		uint64_t seed = n;

		memset(used, 0, sizeof(used));
		for (uint32_t step = 0; step < 300; step++) {
			uint32_t color = (uint32_t)(random64(&seed) % 5), at = 0, k = 0;
			uint64_t count = random64(&seed) % (n / 8) + 1;

			if (random64(&seed) % 2 == 0) {
				/* What is used of some stretch goes back. */
				for (at = (uint32_t)(random64(&seed) % n);
				     at < n && k < count; at++)
					if (used[at]) {
						used[at] = 0;
						got[k++] = at;
					}
				granules_give(g, got, k);
				continue;
			}
			if (count > granules_left(g, UINT64_C(1) << color)) {
				assert_int_equal(
					take(g, UINT64_C(1) << color, NULL, count, got),
					-ENOSPC);
				continue;
			}
			assert_int_equal(take(g, UINT64_C(1) << color, NULL, count, got),
					 0);
			for (; k < count; at++) {
				if (used[at] || granules_color(g, at) != color)
					continue;
				assert_int_equal(got[k++], at);
				used[at] = 1;
			}
		}
		granules_free(g);
	}
}

/* All colours of memory that nobody has used: as the addresses go. */
static void in_order_of_addresses(void **state)
{
	static uint32_t got[MANY];
	struct hal_bk_granules *g = open_map(7, MANY);

	(void)state;
	assert_int_equal(take(g, 0x7f, NULL, 10, got), 0);
	assert_int_equal(take(g, 0x7f, NULL, 700, got), 0);
	for (uint32_t i = 0; i < 700; i++)
		assert_int_equal(got[i], 10 + i);
	assert_int_equal(granules_left(g, UINT64_MAX), MANY - 710);
	granules_free(g);
}

static void count_colors(const struct hal_bk_granules *g, const uint32_t *got, uint64_t n,
			 uint64_t counts[64])
{
	memset(counts, 0, 64 * sizeof(*counts));
	for (uint64_t i = 0; i < n; i++) {
		counts[granules_color(g, got[i])]++;
		assert_true(i == 0 || got[i] > got[i - 1]);
	}
}

static void shares(void **state)
{
	static const uint8_t weights[64] = {1, 0, 3, 9}, thirds[64] = {1, 1, 1, 9};
	static uint32_t got[MANY], some[MANY];
	struct hal_bk_granules *g = open_map(4, MANY);
	uint64_t counts[64];

	(void)state;
	/* Exactly in the ratio asked, rounded by the largest remainders. */
	assert_int_equal(take(g, 5, weights, 4000, got), 0);
	count_colors(g, got, 4000, counts);
	assert_int_equal(counts[0], 1000);
	assert_int_equal(counts[2], 3000);
	granules_give(g, got, 4000);
	assert_int_equal(take(g, 7, thirds, 1000, got), 0);
	count_colors(g, got, 1000, counts);
	assert_int_equal(counts[0], 334);
	assert_int_equal(counts[1], 333);
	assert_int_equal(counts[3], 0);
	granules_give(g, got, 1000);
	/* Evenly, though one has but a few, and holes are everywhere. */
	assert_int_equal(take(g, 2, NULL, 4990, some), 0);
	assert_int_equal(take(g, 15, NULL, 3010, got), 0);
	count_colors(g, got, 3010, counts);
	assert_true(counts[1] >= 4 && counts[1] <= 10); /* the others have slack */
	for (uint32_t c = 0; c < 4; c++)
		assert_true(c == 1 || (counts[c] >= 998 && counts[c] <= 1002));
	/* Down to the last. */
	assert_int_equal(take(g, 15, NULL, granules_left(g, 15), got), 0);
	assert_int_equal(granules_left(g, UINT64_MAX), 0);
	granules_free(g);
}

static void not_enough(void **state)
{
	static const uint8_t weights[64] = {1, 1};
	static uint32_t got[MANY];
	struct hal_bk_granules *g = open_map(2, 1000);
	uint32_t first = 0;

	(void)state;
	assert_int_equal(take(g, 2, NULL, 497, got), 0);
	assert_int_equal(take(g, 2, NULL, 4, got), -ENOSPC);
	assert_non_null(strstr(hal_last_error(), "colour 1 has 3 of 4 granules"));
	assert_non_null(strstr(hal_last_error(), "free per colour: 0: 500, 1: 3"));
	/* In a ratio the colour that is short is named, though others have more. */
	assert_int_equal(take(g, 3, weights, 8, got), -ENOSPC);
	assert_non_null(strstr(hal_last_error(), "colour 1 has 3 of 4"));
	assert_int_equal(take(g, 12, weights, 1, got), -EINVAL);
	assert_non_null(strstr(hal_last_error(), "colours 0xc are 0"));
	assert_int_equal(take(g, 3, NULL, 504, got), -ENOSPC);
	assert_non_null(strstr(hal_last_error(), "colours 0x3 have 503 of 504"));
	assert_int_equal(granules_left(g, 3), 503);
	assert_int_equal(granules_take_run(g, 3, 600, 1, &first), -ENOSPC);
	assert_int_equal(granules_left(g, 3), 503);
	granules_free(g);
}

static void rows(void **state)
{
	static uint32_t got[MANY];
	struct hal_bk_granules *g = open_map(3, 1000);
	uint32_t first = 0, longest = 0;

	(void)state;
	assert_int_equal(take(g, 7, NULL, 100, got), 0);
	granules_give(g, got + 10, 20); /* 10 .. 29 */
	assert_int_equal(granules_take_run(g, 7, 20, 1, &first), 0);
	assert_int_equal(first, 10);
	assert_int_equal(granules_take_run(g, 7, 130, 1, &first), 0); /* over words */
	assert_int_equal(first, 100);
	assert_int_equal(granules_take_run(g, 7, 800, 1, &longest), -ENOSPC);
	assert_int_equal(longest, 770);
	assert_non_null(strstr(hal_last_error(), "the longest free run has 770"));
	assert_int_equal(granules_take_run(g, 7, 770, 1, &first), 0);
	assert_int_equal(first, 230);
	granules_free(g);
}

/* A run begins at a multiple of the alignment, which need be no power of two, though a
 * lower place fits. */
static void aligned_rows(void **state)
{
	static uint32_t got[MANY];
	struct hal_bk_granules *g = open_map(3, 1000);
	const uint32_t one[] = {193};
	uint32_t first = 0, longest = 0;

	(void)state;
	assert_int_equal(take(g, 7, NULL, 200, got), 0);
	granules_give(g, got + 61, 9); /* 61 .. 69: from 64 on 6 */
	assert_int_equal(granules_take_run(g, 7, 7, 4, &first), 0);
	assert_int_equal(first, 200);
	assert_int_equal(granules_take_run(g, 7, 6, 4, &first), 0);
	assert_int_equal(first, 64);
	assert_int_equal(granules_take_run(g, 7, 3, 1, &first), 0);
	assert_int_equal(first, 61);
	/* 207 is free, 208 the next that fits; then multiples of 63, over words. */
	assert_int_equal(granules_take_run(g, 7, 130, 16, &first), 0);
	assert_int_equal(first, 208);
	assert_int_equal(granules_take_run(g, 7, 63, 63, &first), 0);
	assert_int_equal(first, 378);
	/* 193 alone is free, and from 441 on all; and 207, 338 .. 377. */
	granules_give(g, one, 1);
	assert_int_equal(granules_take_run(g, 7, 560, 4, &longest), -ENOSPC);
	assert_int_equal(longest, 556);
	assert_non_null(strstr(hal_last_error(), "no 560 contiguous granules from a "
						 "multiple of 4 on are free"));
	assert_int_equal(granules_take_run(g, 7, 1, 1024, &longest), -ENOSPC);
	assert_int_equal(longest, 0);
	assert_int_equal(granules_take_run(g, 7, 2, 193, &longest), 0);
	assert_int_equal(longest, 579);
	granules_free(g);
}

/* What nobody knows the channel of is never handed out. */
static void unknown(void **state)
{
	uint8_t table[] = {0, 1, COLOR_NONE, 1, COLOR_NONE, 0, 1, 0};
	struct color_map m = {.memory = 8192,
			      .granule = 1024,
			      .channels = 2,
			      .kind = COLOR_MAP_TABLE,
			      .table = table};
	struct hal_bk_granules *g = NULL;
	uint32_t got[8];

	(void)state;
	assert_int_equal(granules_make(&m, &g), 0);
	assert_int_equal(granules_left(g, UINT64_MAX), 6);
	assert_int_equal(take(g, 3, NULL, 7, got), -ENOSPC);
	assert_int_equal(take(g, 3, NULL, 6, got), 0);
	for (uint32_t i = 0; i < 6; i++)
		assert_true(got[i] != 2 && got[i] != 4);
	granules_give(g, got, 6);
	granules_free(g);
	granules_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lowest_first), cmocka_unit_test(in_order_of_addresses),
		cmocka_unit_test(shares),       cmocka_unit_test(not_enough),
		cmocka_unit_test(rows),         cmocka_unit_test(aligned_rows),
		cmocka_unit_test(unknown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
