/* SPDX-License-Identifier: Apache-2.0 */
/* hal/device/hal_color.h: each byte of a tensor has a place of its own, in its pieces. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <hal/device/hal_color.h>

#define BYTES 40000u

/* Two tensors of one stretch, in the first and the last piece of it, and what is left. */
static void pieces(void **state)
{
	static const uint64_t shapes[][2] = {
		{1024, 4096}, {2048, 4096}, {4096, 4096}, {1024, 12288}, {64, 192},
	};

	(void)state;
	for (size_t n = 0; n < sizeof(shapes) / sizeof(shapes[0]); n++) {
		uint64_t piece = shapes[n][0], period = shapes[n][1], before = 0;
		uint64_t keep = hal_color_keep(piece),
			 skip = hal_color_skip(piece, period);

		for (uint64_t x = 0; x < BYTES; x++) {
			uint64_t at = hal_color_offset(x, keep, skip);

			/* By division, as one would say it. */
			assert_int_equal(at, x / piece * period + x % piece);
			assert_true(at % period < piece);
			assert_true(x == 0 || at > before);
			assert_int_equal(at,
					 hal_color_offset32((uint32_t)x, (uint32_t)keep,
							    (uint32_t)skip));
			assert_int_equal(hal_color_extent(x + 1, piece, period), at + 1);
			before = at;
		}
	}
	assert_int_equal(hal_color_extent(0, 1024, 4096), 0);
	/* Beyond 4 GiB. */
	assert_int_equal(hal_color_offset((UINT64_C(3) << 31) + 5, hal_color_keep(2048),
					  hal_color_skip(2048, 4096)),
			 (UINT64_C(3) << 32) + 5);
}

/* In elements instead of bytes. */
static void elements(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < BYTES; i++)
		assert_int_equal(8 * hal_color_offset(i, hal_color_keep(1024 / 8),
						      hal_color_skip(1024, 4096)),
				 hal_color_offset(8 * i, hal_color_keep(1024),
						  hal_color_skip(1024, 4096)));
}

/* Table 4 and the rules of A.2: four channels stand together on a P40, two on an A2000.
 */
static void rules(void **state)
{
	static const struct {
		uint64_t channels, contiguous, max;
	} rows[] = {
		{1, 4, 1024}, {2, 4, 2048}, {3, 4, 1024}, {4, 4, 4096}, {6, 4, 1024},
		{8, 4, 4096}, {1, 2, 1024}, {2, 2, 2048}, {4, 2, 2048}, {5, 2, 1024},
		{4, 1, 1024}, {0, 4, 0},    {4, 0, 0},
	};

	(void)state;
	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++) {
		uint64_t channels = rows[n].channels, together = rows[n].contiguous;

		assert_int_equal(hal_color_piece_max(channels, 1024, together),
				 rows[n].max);
		for (uint64_t piece = 0; piece <= 8192; piece += 256) {
			bool power = piece == 1024 || piece == 2048 || piece == 4096;

			assert_int_equal(
				hal_color_piece_ok(piece, channels, 1024, together),
				power && piece <= rows[n].max);
		}
	}
	assert_int_equal(hal_color_piece_max(4, 0, 4), 0);
	assert_int_equal(hal_color_piece_max(4, 1000, 4), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pieces),
		cmocka_unit_test(elements),
		cmocka_unit_test(rules),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
