/* SPDX-License-Identifier: Apache-2.0 */
/* What is not UTF-8 becomes so, and what is stays; what is cut is cut between characters.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <yajl/yajl_tree.h>

#include <hal/hal.h>

#include "lib/utf8.h"

#define BAD "\xef\xbf\xbd"

static void expect(const char *src, const char *want)
{
	char text[64];

	utf8_text(text, sizeof(text), src, SIZE_MAX);
	assert_string_equal(text, want);
}

static void what_is_utf8_stays(void **state)
{
	static const char *const good[] = {
		"",
		"plain \x7f\x01",
		"Ger\xc3\xa4t",
		"\xc2\x80 \xdf\xbf \xe0\xa0\x80 \xed\x9f\xbf \xee\x80\x80 \xef\xbf\xbf",
		"\xf0\x90\x80\x80 \xf0\x9f\x9a\x80 \xf4\x8f\xbf\xbf",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		expect(good[i], good[i]);
}

static void what_is_not_is_replaced(void **state)
{
	(void)state;
	expect("Ger\xe4t", "Ger" BAD "t");
	expect("\x80\xff", BAD BAD);
	expect("\xc3", BAD);
	expect("\xe2\x82", BAD BAD);
	expect("\xc0\xaf", BAD BAD);                 /* a long form */
	expect("\xe0\x9f\xbf", BAD BAD BAD);         /* another */
	expect("\xed\xa0\x80", BAD BAD BAD);         /* a surrogate */
	expect("\xf4\x90\x80\x80", BAD BAD BAD BAD); /* beyond U+10FFFF */
	expect("\xf0\x9f\x9a!", BAD BAD BAD "!");
}

static void it_is_cut_between_characters(void **state)
{
	char text[6];

	(void)state;
	utf8_text(text, sizeof(text), "abc\xc3\xa4z", SIZE_MAX);
	assert_string_equal(text, "abc\xc3\xa4");
	utf8_text(text, sizeof(text), "abcd\xc3\xa4z", SIZE_MAX);
	assert_string_equal(text, "abcd");
	utf8_text(text, sizeof(text), "abcd\xff", SIZE_MAX);
	assert_string_equal(text, "abcd");
	utf8_text(text, sizeof(text), "abcdef", 2);
	assert_string_equal(text, "ab");
	utf8_text(text, sizeof(text), "\xc3\xa4", 1);
	assert_string_equal(text, BAD);
}

/* The names of a tenant, in the file of a device's trace. */
static void names_in_a_trace(void **state)
{
	static char file[1u << 16];
	char path[] = "/tmp/hal-utf8-XXXXXX", why[256];
	struct hal_partition_desc d = HAL_INIT(hal_partition_desc);
	struct hal_device *dev;
	struct hal_partition *a, *b;
	int fd = mkstemp(path);
	yajl_val tree;
	ssize_t n;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(hal_open("ref", NULL, &dev), 0);
	assert_int_equal(hal_trace_start(dev, path), 0);
	d.units_floor = 1;
	(void)snprintf(d.name, sizeof(d.name), "Ger\xc3\xa4t \"1\"");
	assert_int_equal(hal_partition_create(dev, &d, &a), 0);
	(void)snprintf(d.name, sizeof(d.name), "Ger\xe4t\n2");
	assert_int_equal(hal_partition_create(dev, &d, &b), 0);
	assert_int_equal(hal_partition_destroy(a), 0);
	assert_int_equal(hal_partition_destroy(b), 0);
	assert_int_equal(hal_trace_stop(dev), 0);
	assert_int_equal(hal_close(dev), 0);
	n = read(fd, file, sizeof(file) - 1);
	assert_true(n > 0 && (size_t)n < sizeof(file) - 1);
	assert_non_null(strstr(file, "Ger\xc3\xa4t \\\"1\\\""));
	assert_non_null(strstr(file, "Ger" BAD "t\\n2"));
	tree = yajl_tree_parse(file, why, sizeof(why));
	if (tree == NULL)
		fail_msg("%s", why);
	yajl_tree_free(tree);
	(void)close(fd);
	(void)unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_utf8_stays),
		cmocka_unit_test(what_is_not_is_replaced),
		cmocka_unit_test(it_is_cut_between_characters),
		cmocka_unit_test(names_in_a_trace),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
