/* SPDX-License-Identifier: Apache-2.0 */
/* The digit networks' C reference against the logits that training recorded, and damaged
 * files: none may crash, each says what is wrong. */
#include "digits.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static char why[DIGITS_WHY];
static char scratch_path[] = "test_digits_XXXXXX";

static void expect_reference(const char *name, uint32_t at_least)
{
	char path[512];
	struct digits_images images;
	struct digits_net *net;
	int8_t *expected;
	uint32_t rows, right = 0;

	assert_int_equal(digits_images_load(DIGITS_DIR "/test.images", &images, why), 0);
	snprintf(path, sizeof(path), DIGITS_DIR "/%s.net", name);
	assert_int_equal(digits_net_load(path, &net, why), 0);
	assert_string_equal(net->name, name);
	snprintf(path, sizeof(path), DIGITS_DIR "/%s.logits", name);
	assert_int_equal(digits_logits_load(path, &expected, &rows, why), 0);
	assert_int_equal(rows, images.count);
	assert_true(rows >= 300);
	for (uint32_t i = 0; i < rows; i++) {
		int8_t input[DIGITS_PIXELS], logits[DIGITS_CLASSES];

		digits_quantize(images.image[i].pixels, input);
		digits_infer(net, input, logits);
		assert_memory_equal(logits, expected + (size_t)i * DIGITS_CLASSES,
				    DIGITS_CLASSES);
		right += digits_answer(logits) == images.image[i].label;
	}
	assert_true(right >= at_least);
	free(expected);
	digits_net_free(net);
	digits_images_free(&images);
}

static void small_reference(void **state)
{
	(void)state;
	expect_reference("small", 391);
}

static void large_reference(void **state)
{
	(void)state;
	expect_reference("large", 396);
}

static void test_images_are_distinct(void **state)
{
	struct digits_images images;

	(void)state;
	assert_int_equal(digits_images_load(DIGITS_DIR "/test.images", &images, why), 0);
	for (uint32_t i = 0; i < images.count; i++)
		for (uint32_t k = i + 1; k < images.count; k++)
			assert_int_not_equal(images.image[i].row, images.image[k].row);
	digits_images_free(&images);
}

static void quantize_covers_the_range(void **state)
{
	uint8_t pixels[DIGITS_PIXELS] = {0, 1, 8, 15, 16};
	int8_t input[DIGITS_PIXELS];

	(void)state;
	digits_quantize(pixels, input);
	assert_int_equal(input[0], -128);
	assert_int_equal(input[1], 16 - 128);  /* 15.94 */
	assert_int_equal(input[2], 128 - 128); /* 127.5: halves go up */
	assert_int_equal(input[3], 239 - 128); /* 239.06 */
	assert_int_equal(input[4], 127);
}

/* ---- damaged files --------------------------------------------------------------- */

static uint8_t *slurp(const char *path, size_t *size)
{
	FILE *f = fopen(path, "rb");
	uint8_t *data = malloc(1 << 16);

	assert_non_null(f);
	assert_non_null(data);
	*size = fread(data, 1, 1 << 16, f);
	assert_int_equal(fclose(f), 0);
	return data;
}

static void spit(const uint8_t *data, size_t size)
{
	FILE *f = fopen(scratch_path, "wb");

	assert_non_null(f);
	assert_int_equal(fwrite(data, 1, size, f), size);
	assert_int_equal(fclose(f), 0);
}

static void put32(uint8_t *p, uint32_t v)
{
	for (int i = 0; i < 4; i++)
		p[i] = (uint8_t)(v >> 8 * i);
}

/* Makes length and checksum right again, so that what lies behind them is reached. */
static void seal(uint8_t *data, size_t size)
{
	uint32_t crc = UINT32_MAX;

	put32(data + 12, (uint32_t)size);
	for (size_t i = 20; i < size; i++) {
		crc ^= data[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ ((crc & 1) ? UINT32_C(0xEDB88320) : 0);
	}
	put32(data + 16, ~crc);
}

static void expect_refused(const char *text)
{
	struct digits_net *net;

	why[0] = '\0';
	assert_int_equal(digits_net_load(scratch_path, &net, why), -EINVAL);
	assert_null(net);
	assert_non_null(strstr(why, scratch_path));
	if (!strstr(why, text))
		fail_msg("\"%s\" is not in \"%s\"", text, why);
}

static void missing_file(void **state)
{
	struct digits_net *net;
	struct digits_images images;
	int8_t *logits;
	uint32_t count;

	(void)state;
	assert_int_equal(digits_net_load("no/such.net", &net, why), -ENOENT);
	assert_non_null(strstr(why, "no/such.net"));
	assert_int_equal(digits_images_load("no/such.images", &images, why), -ENOENT);
	assert_int_equal(digits_logits_load("no/such.logits", &logits, &count, why),
			 -ENOENT);
}

static void wrong_kind_of_file(void **state)
{
	struct digits_net *net;
	struct digits_images images;

	(void)state;
	assert_int_equal(digits_net_load(DIGITS_DIR "/test.images", &net, why), -EINVAL);
	assert_non_null(strstr(why, "HALDIGIT"));
	assert_int_equal(digits_images_load(DIGITS_DIR "/small.net", &images, why),
			 -EINVAL);
	assert_non_null(strstr(why, "HALIMAGE"));
}

static void truncated_anywhere(void **state)
{
	size_t size;
	uint8_t *data = slurp(DIGITS_DIR "/small.net", &size);

	(void)state;
	for (size_t cut = 0; cut < size; cut += cut < 600 ? 1 : 37) {
		spit(data, cut);
		expect_refused("truncated");
	}
	free(data);
}

static void truncated_and_sealed(void **state)
{
	size_t size;
	uint8_t *data = slurp(DIGITS_DIR "/small.net", &size);
	uint8_t *copy = malloc(size);

	(void)state;
	assert_non_null(copy);
	for (size_t cut = 48; cut < size; cut += 13) {
		memcpy(copy, data, cut);
		seal(copy, cut);
		spit(copy, cut);
		expect_refused(cut < 48 + 6 * 16 + 5 * 96 ? "truncated"
							  : "exceed the file");
	}
	free(copy);
	free(data);
}

static void one_flipped_bit(void **state)
{
	size_t size;
	uint8_t *data = slurp(DIGITS_DIR "/small.net", &size);

	(void)state;
	data[size / 2] ^= 0x10;
	spit(data, size);
	expect_refused("checksum");
	free(data);
}

static void wrong_fields(void **state)
{
	static const struct {
		size_t at;
		uint32_t value;
		const char *text;
	} cases[] = {
		{8, 2, "version 2"},
		{20, 7, "7 tensors"},
		{24, 0, "0 layers"},
		{48, 0, "tensor 0 has the invalid shape"},
		{48 + 12, 200, "zero point 200"},
		{48 + 12, 5, "not a classifier"},
		{144, 9, "layer 0 has the unknown kind 9"},
		{144 + 4, 1, "layer 0: invalid operands: tensors 1"},
		{144 + 12, 3, "to 3"},
		{144 + 16, 0, "layer 0: the shapes"},
		{144 + 20, 0, "layer 0: the shapes"},
		{144 + 24, 3, "layer 0: the shapes"},
		{144 + 28, 3, "layer 0: the shapes"},
		{144 + 32, 0xFFFFFF00, "clamp -256"},
		{144 + 40, UINT32_MAX, "layer 0: weights"},
		{144 + 44, 2919, "layer 0: biases"},
		{144 + 96 + 0, 4, "layer 1: the shapes"},
	};
	size_t size;
	uint8_t *data = slurp(DIGITS_DIR "/small.net", &size);
	uint8_t *copy = malloc(size);

	(void)state;
	assert_non_null(copy);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		memcpy(copy, data, size);
		put32(copy + cases[i].at, cases[i].value);
		seal(copy, size);
		spit(copy, size);
		expect_refused(cases[i].text);
	}
	free(copy);
	free(data);
}

/* Sealed random damage: refused, or a network whose inference stays inside its memory
 * (the sanitizer builds and valgrind look). */
static void random_damage(void **state)
{
	size_t size;
	uint8_t *data = slurp(DIGITS_DIR "/large.net", &size);
	uint8_t *copy = malloc(size);
	uint32_t seed = 12345, refused = 0, loaded = 0;
	int8_t input[DIGITS_PIXELS] = {0}, logits[DIGITS_CLASSES];

	(void)state;
	assert_non_null(copy);
	for (int round = 0; round < 400; round++) {
		struct digits_net *net;

		memcpy(copy, data, size);
		for (int k = 0; k < 4; k++) {
			seed = seed * 1664525 + 1013904223;
			/* Mostly the tables, where damage can mislead. */
			copy[20 + (seed >> 8) % (k ? 1000 : size - 20)] ^=
				(uint8_t)(1u << (seed >> 29));
		}
		seal(copy, size);
		spit(copy, size);
		if (digits_net_load(scratch_path, &net, why)) {
			refused++;
			continue;
		}
		digits_infer(net, input, logits);
		digits_net_free(net);
		loaded++;
	}
	assert_true(refused > 50);
	assert_true(loaded > 10);
	free(copy);
	free(data);
}

static int make_scratch(void **state)
{
	int fd = mkstemp(scratch_path);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "w");

	(void)state;
	return f ? fclose(f) : -1;
}

static int remove_scratch(void **state)
{
	(void)state;
	return remove(scratch_path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(small_reference),
		cmocka_unit_test(large_reference),
		cmocka_unit_test(test_images_are_distinct),
		cmocka_unit_test(quantize_covers_the_range),
		cmocka_unit_test(missing_file),
		cmocka_unit_test(wrong_kind_of_file),
		cmocka_unit_test(truncated_anywhere),
		cmocka_unit_test(truncated_and_sealed),
		cmocka_unit_test(one_flipped_bit),
		cmocka_unit_test(wrong_fields),
		cmocka_unit_test(random_damage),
	};

	return cmocka_run_group_tests_name("digits", tests, make_scratch, remove_scratch);
}
