/* SPDX-License-Identifier: Apache-2.0 */
/* The discovery of channels on a model of them: what it finds, and what it refuses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>

#include "channels.h"
#include "pages.h"
#include "prober.h"
#include "tier.h"

static const struct channels_noise quiet = {.jitter = 4};
static const struct channels_noise noisy = {
	.refresh = true, .load = 0.3, .cache = true, .wrong = 0.05, .jitter = 4};

struct case_of {
	enum channels_family family;
	uint32_t number, bits, granule_log2;
	const struct channels_noise *noise;
};

static int find(const struct case_of *t, const struct discover_options *options,
		struct discover_result *r, double *accuracy)
{
	struct channels *c = channels_create(t->family, t->number, t->bits,
					     t->granule_log2, t->noise, 7);
	struct discover_device d;
	int rc;

	assert_non_null(c);
	channels_device(c, &d);
	rc = discover(&d, options, r);
	*accuracy = r->map ? channels_accuracy(c, r->map) : 0;
	if (!rc) {
		char why[COLOR_MAP_WHY];

		assert_int_equal(r->map->channels, channels_count(c));
		assert_int_equal(color_map_check(r->map, why), 0);
	}
	channels_destroy(c);
	return rc;
}

static void finds(const struct case_of *t, uint32_t kind)
{
	const struct discover_options options = {.seed = 5};
	struct discover_result r;
	double accuracy;

	assert_int_equal(find(t, &options, &r, &accuracy), 0);
	assert_int_equal(r.map->kind, kind);
	assert_true(color_map_verified(r.map));
	assert_true(accuracy >= (kind == COLOR_MAP_TABLE ? 0.999 : 1.0));
	assert_int_equal(r.map->source, COLOR_MAP_PROBE);
	assert_int_equal(r.map->probe_tests, r.tests);
	assert_true(r.loads > r.tests);
	color_map_free(r.map);
}

static void parities(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 5; i++) { /* 1, 2, 4, 8, 16 channels */
		finds(&(struct case_of){CHANNELS_XOR, i, 20, 10, &quiet}, COLOR_MAP_XOR);
		finds(&(struct case_of){CHANNELS_XOR, i, 20, 10, &noisy}, COLOR_MAP_XOR);
	}
}

static void modulo(void **state)
{
	(void)state;
	IN_FULL_TIER();
	for (uint32_t i = 1; i < 11; i += 3) /* 6, 10, 9, 15 */
		finds(&(struct case_of){CHANNELS_XORMOD, i, 20, 10, &noisy},
		      COLOR_MAP_XORMOD);
	finds(&(struct case_of){CHANNELS_WEIGHTS, 1, 20, 10, &noisy}, COLOR_MAP_XORMOD);
}

static void tables(void **state)
{
	(void)state;
	finds(&(struct case_of){CHANNELS_TABLE, 1, 11, 10, &noisy}, COLOR_MAP_TABLE);
	finds(&(struct case_of){CHANNELS_NONE, 2, 11, 10, &quiet}, COLOR_MAP_TABLE);
}

/* Blocks of 8 lines, 4 lines, and of 64. */
static void other_granules(void **state)
{
	(void)state;
	finds(&(struct case_of){CHANNELS_XOR, 2, 20, 9, &quiet}, COLOR_MAP_XOR);
	finds(&(struct case_of){CHANNELS_XOR, 2, 20, 8, &quiet}, COLOR_MAP_XOR);
	finds(&(struct case_of){CHANNELS_XOR, 3, 18, 12, &noisy}, COLOR_MAP_XOR);
}

/* A rule with exceptions is no rule; of few granules a table is made, which begins with
 * it, and of many there is none. */
static void exceptions(void **state)
{
	struct case_of t = {CHANNELS_ALMOST, 2, 20, 10, &noisy};
	const struct discover_options few = {.seed = 5, .attempts = 2};
	struct discover_result r;
	double accuracy;

	(void)state;
	IN_FULL_TIER();
	assert_int_equal(find(&t, &few, &r, &accuracy), -ENOENT);
	assert_non_null(r.map);
	assert_false(color_map_verified(r.map));
	assert_true(r.map->bad > 0);
	assert_true(accuracy > 0.97 && accuracy < 0.99);
	color_map_free(r.map);
	t.bits = 12;
	finds(&t, COLOR_MAP_TABLE);
}

static void whole_granules(void **state)
{
	(void)state;
	for (uint32_t log2 = 8; log2 <= 12; log2++) {
		struct channels *c =
			channels_create(CHANNELS_XORMOD, 4, 16, log2, &noisy, log2);
		struct discover_device d;

		assert_non_null(c);
		channels_device(c, &d);
		d.granules <<= log2 - 8;
		d.granule_log2 = 8;
		assert_int_equal(discover_granule(&d, 3), log2);
		channels_destroy(c);
	}
}

/* Others have nearly all of the bus, all the time: nothing is told, or it is right. */
static void busy(void **state)
{
	const struct channels_noise full = {.load = 3.0, .jitter = 40, .wrong = 0.3};
	const struct case_of t = {CHANNELS_XOR, 3, 18, 10, &full};
	const struct discover_options options = {.seed = 5, .attempts = 2};
	struct discover_result r;
	double accuracy;
	int rc;

	(void)state;
	IN_FULL_TIER();
	rc = find(&t, &options, &r, &accuracy);
	assert_true(rc == -EBUSY || rc == -ENOENT);
	if (r.map)
		assert_false(color_map_verified(r.map));
	color_map_free(r.map);
}

/* ---- what goes wrong -------------------------------------------------------------------- */

struct failing {
	struct discover_device of;
	uint32_t after;
};

static int fails(void *user, const uint64_t *at, uint32_t count, uint32_t lines,
		 uint64_t *cycles)
{
	struct failing *f = user;

	if (!f->after--)
		return -EIO;
	return f->of.measure(f->of.user, at, count, lines, cycles);
}

static void device_fails(void **state)
{
	static const uint32_t after[] = {0, 100, 1000, 3000, 7000, 9000};
	const struct discover_options options = {.seed = 5};

	(void)state;
	for (size_t i = 0; i < sizeof(after) / sizeof(after[0]); i++) {
		struct channels *c = channels_create(CHANNELS_XOR, 2, 20, 10, &quiet, 7);
		struct failing f = {.after = after[i]};
		struct discover_device d;
		struct discover_result r;

		assert_non_null(c);
		channels_device(c, &f.of);
		d = f.of;
		d.measure = fails;
		d.user = &f;
		assert_int_equal(discover(&d, &options, &r), -EIO);
		assert_int_equal(r.tests, after[i] + 1);
		color_map_free(r.map);
		channels_destroy(c);
	}
}

static void wrong_numbers(void **state)
{
	const struct discover_options options = {.seed = 5, .tests_max = 50};
	struct channels *c = channels_create(CHANNELS_XOR, 2, 20, 10, &quiet, 7);
	struct discover_device good, d;
	struct discover_result r;

	(void)state;
	assert_non_null(c);
	channels_device(c, &good);
#define REFUSED(field, value)                                                            \
	do {                                                                             \
		d = good;                                                                \
		d.field = (value);                                                       \
		assert_int_equal(discover(&d, &options, &r), -EINVAL);                   \
		assert_null(r.map);                                                      \
	} while (0)
	REFUSED(measure, NULL);
	REFUSED(granule_log2, 7);
	REFUSED(granules, DISCOVER_LEAST - 1);
	REFUSED(first, 1); /* one granule lies behind the memory's end */
	REFUSED(together, 1);
	REFUSED(together, DISCOVER_TOGETHER + 1);
	REFUSED(memory, good.memory - 1);
	REFUSED(lines, 3);
	assert_int_equal(discover_granule(&good, 1), -EINVAL);    /* not pieces of 256 */
	assert_int_equal(discover(&good, &options, &r), -ENOENT); /* too few tests */
	assert_int_equal(r.tests, 50);
	assert_null(r.map);
	channels_destroy(c);
}

/* One channel, which tests of a device that says so cannot tell from several. */
static void one_or_several(void **state)
{
	const struct discover_options options = {.seed = 5};
	struct channels *c = channels_create(CHANNELS_XOR, 0, 20, 10, &quiet, 7);
	struct discover_device d;
	struct discover_result r;

	(void)state;
	assert_non_null(c);
	channels_device(c, &d);
	assert_int_equal(discover(&d, &options, &r), 0);
	assert_int_equal(r.map->channels, 1);
	color_map_free(r.map);
	d.several = true;
	assert_int_equal(discover(&d, &options, &r), -ENOENT);
	assert_null(r.map);
	channels_destroy(c);
}

/* What verification is for: maps that are wrong in one thing. */
static void verification(void **state)
{
	struct channels *c = channels_create(CHANNELS_XOR, 2, 20, 10, &noisy, 7);
	const struct discover_options options = {.seed = 5};
	struct discover_device d;
	struct discover_result r, again = {0};
	struct prober p = {.dev = &d,
			   .result = &again,
			   .rng = 99,
			   .lines = LINES,
			   .tests_max = UINT64_MAX};
	struct color_map wrong;
	bool single;

	(void)state;
	assert_non_null(c);
	channels_device(c, &d);
	assert_int_equal(discover(&d, &options, &r), 0);
	assert_int_equal(r.map->mask_count, 2);
	prober_calibrate(&p, &single);
	assert_false(single);
	wrong = *r.map;
	prober_verify(&p, &wrong); /* right */
	assert_int_equal(wrong.bad, 0);
	assert_true(color_map_verified(&wrong));
	wrong = *r.map;
	wrong.mask[1] ^= 1u << 13; /* one bit of a mask */
	prober_verify(&p, &wrong);
	assert_true(wrong.bad > 0);
	assert_false(color_map_verified(&wrong));
	wrong = *r.map;
	wrong.mask_count = 1; /* too coarse */
	wrong.channels = 2;
	prober_verify(&p, &wrong);
	assert_false(color_map_verified(&wrong));
	wrong = *r.map;
	wrong.mask[wrong.mask_count++] = 1u << 19; /* too fine */
	wrong.channels = 8;
	prober_verify(&p, &wrong);
	assert_false(color_map_verified(&wrong));
	color_map_free(r.map);
	channels_destroy(c);
}

/* Two parities and a number modulo 3 within a page of 128 granules; what of them the
 * pages behind it change. */
enum { PAGE = 128, PAGES = 12 };

struct paged {
	uint32_t tests, fails_at; /* 0: never */
	bool alike;
};

static uint32_t paged_channel(uint32_t granule)
{
	const uint32_t page = granule / PAGE, g = granule % PAGE;
	const uint32_t low = (uint32_t)__builtin_parity(g & 0x15) |
			     (uint32_t)__builtin_parity(g & 0x2a) << 1;

	return ((g >> 2) + page) % 3 << 2 | (low ^ (page & 3));
}

static int paged_time(void *user, const uint64_t *at, uint32_t count, uint32_t lines,
		      uint64_t *cycles)
{
	struct paged *p = user;

	(void)count;
	(void)lines;
	*cycles = 100;
	if (!p->alike && paged_channel((uint32_t)(at[0] >> 10)) ==
				 paged_channel((uint32_t)(at[1] >> 10)))
		*cycles = 200;
	return ++p->tests == p->fails_at ? -EIO : 0;
}

static void pages(void **state)
{
	struct paged p = {0};
	struct discover_device d = {.measure = paged_time,
				    .user = &p,
				    .granule_log2 = 10,
				    .granules = (PAGES + 1) * PAGE,
				    .memory = (PAGES + 1) * PAGE << 10,
				    .together = 2};
	const struct color_map map = {.kind = COLOR_MAP_XORMOD,
				      .memory = PAGE << 10,
				      .granule = 1 << 10,
				      .channels = 12,
				      .mask_count = 2,
				      .mask = {0x15, 0x2a},
				      .q = 3,
				      .shift = 2,
				      .digits = 4,
				      .weight = {1}};
	struct discover_page out[PAGES];
	struct color_map other = map;
	uint32_t i, g;

	(void)state;
	assert_int_equal(discover_pages(&d, &map, PAGES, 3, out), 0);
	for (i = 0; i < PAGES; i++) {
		assert_true(out[i].sure > 0.999);
		for (g = 0; g < PAGE; g++)
			assert_int_equal(discover_page_channel(&map, &out[i], g),
					 paged_channel((i + 1) * PAGE + g));
	}
	assert_int_equal(discover_pages(&d, &map, PAGES + 1, 3, out), -EINVAL);
	other.kind = COLOR_MAP_TABLE;
	assert_int_equal(discover_pages(&d, &other, PAGES, 3, out), -EINVAL);
	other = map;
	other.granule = 1 << 11;
	assert_int_equal(discover_pages(&d, &other, PAGES / 2, 3, out), -EINVAL);
	p = (struct paged){.fails_at = 30};
	assert_int_equal(discover_pages(&d, &map, PAGES, 3, out), -EIO);
	p = (struct paged){.fails_at = 2 * DISCOVER_KNOWN + 10};
	assert_int_equal(discover_pages(&d, &map, PAGES, 3, out), -EIO);
	p = (struct paged){.alike = true};
	assert_int_equal(discover_pages(&d, &map, PAGES, 3, out), -EBUSY);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parities),       cmocka_unit_test(modulo),
		cmocka_unit_test(tables),         cmocka_unit_test(other_granules),
		cmocka_unit_test(exceptions),     cmocka_unit_test(whole_granules),
		cmocka_unit_test(busy),           cmocka_unit_test(device_fails),
		cmocka_unit_test(wrong_numbers),  cmocka_unit_test(verification),
		cmocka_unit_test(one_or_several), cmocka_unit_test(pages),
	};

	tier_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
