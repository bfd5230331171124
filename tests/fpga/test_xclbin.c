/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reader of xclbins: what mkxclbin makes is read as it was meant, every length of it
 * is refused but the whole, and files that lie about themselves are told where.
 */
#define _GNU_SOURCE
#include "host.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backends/fpga/xclbin.h"

static const char text[] = "platform p_1\nbank A ddr4 0x0 1M\nbank S streaming 0x0 1M\n"
			   "bank B hbm 0x100000 2M\n"
			   "kernel one 3\narg d memory 64 0,2\narg n uint\n"
			   "reach 2 d 2\nkernel two 1\narg x float\narg y double\n"
			   "arg hal_groups_x uint\narg hal_groups_y uint\n"
			   "arg hal_state memory 80 2\narg hal_resume uint\n"
			   "arg hal_stop uint\n";

static void as_it_was_meant(void **state)
{
	struct fp_xclbin x;
	char why[160];
	size_t size;
	void *file = make_image(text, &size);

	(void)state;
	assert_int_equal(fp_xclbin_read(file, size, &x, why, sizeof(why)), 0);
	free(file); /* nothing of it is kept */
	assert_string_equal(x.platform, "p_1");
	assert_int_equal(x.bank_count, 3);
	assert_string_equal(x.banks[0].tag, "A");
	assert_int_equal(x.banks[0].bytes, 1 << 20);
	assert_int_equal(x.banks[1].bytes, 0); /* no memory */
	assert_int_equal(x.banks[2].base, 0x100000);
	assert_int_equal(x.banks[2].bytes, 2 << 20);
	assert_int_equal(x.kernel_count, 2);
	assert_int_equal(x.slot_count, 3);
	assert_string_equal(x.kernels[0].name, "one");
	assert_int_equal(x.kernels[0].arg_count, 2);
	assert_true(x.kernels[0].args[0].memory);
	assert_int_equal(x.kernels[0].args[0].bytes, 64);
	assert_int_equal(x.kernels[0].args[0].offset, 0x10);
	assert_int_equal(x.kernels[0].args[1].scalar_bytes, 4);
	assert_int_equal(x.kernels[0].args[1].offset, 0x1c);
	assert_int_equal(x.kernels[1].arg_count, 2);
	assert_int_equal(x.kernels[1].group_args, 2);
	assert_false(x.kernels[0].stops);
	assert_true(x.kernels[1].stops);
	assert_int_equal(fp_state_arg(&x.kernels[1]), 4);
	assert_int_equal(fp_all_args(&x.kernels[1]), 7);
	assert_int_equal(x.kernels[1].args[4].bytes, 80);
	assert_int_equal(x.kernels[1].args[6].offset, 0x48);
	assert_int_equal(fp_xclbin_unit(&x, 1, 0)->reach[4], 4);
	assert_true(x.kernels[1].args[0].is_float);
	assert_true(x.kernels[1].args[1].is_double);
	assert_string_equal(fp_xclbin_unit(&x, 0, 0)->name, "one:{one_1}");
	assert_int_equal(fp_xclbin_unit(&x, 0, 0)->reach[0], 5);
	assert_int_equal(fp_xclbin_unit(&x, 0, 1)->reach[0], 4);
	assert_int_equal(fp_xclbin_unit(&x, 0, 2)->reach[0], 5);
	assert_string_equal(fp_xclbin_unit(&x, 1, 0)->name, "two:{two_1}");
	assert_string_equal(fp_xclbin_unit(&x, 1, 1)->name, "");
	fp_xclbin_drop(&x);
}

static void every_length(void **state)
{
	struct fp_xclbin x;
	char why[160];
	size_t size, n;
	void *file = make_image(text, &size), *cut;

	(void)state;
	for (n = 0; n < size; n++) {
		/* In a block of its own, so that a sanitizer sees who reads past it. */
		cut = malloc(n + !n);
		assert_non_null(cut);
		memcpy(cut, file, n);
		assert_int_equal(fp_xclbin_read(cut, n, &x, why, sizeof(why)), -EINVAL);
		assert_true(why[0]);
		free(cut);
	}
	free(file);
}

/* The place of a section in the file, and its header's. */
static uint8_t *section(void *file, uint32_t kind, struct hal_xclbin_section **head)
{
	struct hal_xclbin_head h;
	struct hal_xclbin_section *s = (void *)((char *)file + sizeof(h));

	memcpy(&h, file, sizeof(h));
	while (s->kind != kind)
		s++;
	if (head)
		*head = s;
	return (uint8_t *)file + s->offset;
}

enum what {
	MAGIC,
	COUNT,
	OFFSET,
	LENGTH,
	BANKS,
	NEGATIVE_BANKS,
	BANK_SIZE,
	UNITS,
	UNIT_NAME,
	UNIT_COLON,
	BANK_OF,
	UNIT_OF,
	ARG_OF,
	NO_XML,
	NO_BANKS,
	NO_UNITS,
	LEAST_LINE,
	LEAST_ARG,
	STATE_SIZE,
	STATE_NONE,
	STATE_ORDER,
	STATE_REGISTER,
	XML_KERNEL,
	XML_ARG,
	XML_QUALIFIER,
	XML_SIZE,
	XML_OFFSET,
};

static void put(uint8_t *at, uint32_t value)
{
	memcpy(at, &value, sizeof(value));
}

/* Takes the place of text of the same length. */
static void swap(void *file, size_t size, const char *from, const char *to)
{
	uint8_t *at = memmem(file, size, from, strlen(from));

	assert_non_null(at);
	memcpy(at, to, strlen(from));
}

static void break_it(void *file, size_t size, enum what what)
{
	struct hal_xclbin_section *s;
	struct hal_xclbin_head *h = file;

	switch (what) {
	case MAGIC:
		h->magic[7] = '3';
		return;
	case COUNT:
		h->section_count = 70000;
		return;
	case OFFSET:
		(void)section(file, HAL_XCLBIN_IP_LAYOUT, &s);
		s->offset = UINT64_MAX - 4;
		return;
	case LENGTH:
		(void)section(file, HAL_XCLBIN_CONNECTIVITY, &s);
		s->bytes = UINT64_MAX;
		return;
	case BANKS:
		put(section(file, HAL_XCLBIN_MEM_TOPOLOGY, NULL), 4);
		return;
	case NEGATIVE_BANKS:
		put(section(file, HAL_XCLBIN_MEM_TOPOLOGY, NULL), UINT32_MAX);
		return;
	case BANK_SIZE:
		put(section(file, HAL_XCLBIN_MEM_TOPOLOGY, NULL) + 8 + 12, 1 << 20);
		return;
	case UNITS:
		put(section(file, HAL_XCLBIN_IP_LAYOUT, NULL), 0x7fffffff);
		return;
	case UNIT_NAME:
		swap(file, size, "one:one_2", "non:one_2");
		return;
	case UNIT_COLON:
		swap(file, size, "one:one_2", "one:\0ne_2");
		return;
	case BANK_OF:
		put(section(file, HAL_XCLBIN_CONNECTIVITY, NULL) + 4 + 8, 64);
		return;
	case UNIT_OF:
		put(section(file, HAL_XCLBIN_CONNECTIVITY, NULL) + 4 + 4, 4);
		return;
	case ARG_OF:
		put(section(file, HAL_XCLBIN_CONNECTIVITY, NULL) + 4, 2);
		return;
	case NO_XML:
		(void)section(file, HAL_XCLBIN_EMBEDDED_METADATA, &s);
		s->kind = 99;
		return;
	case NO_BANKS:
		(void)section(file, HAL_XCLBIN_MEM_TOPOLOGY, &s);
		s->kind = 99;
		return;
	case NO_UNITS:
		put(section(file, HAL_XCLBIN_IP_LAYOUT, NULL), 0);
		return;
	case LEAST_LINE:
		swap(file, size, "one 0 64", "one x 64");
		return;
	case LEAST_ARG:
		swap(file, size, "one 0 64", "one 1 64");
		return;
	case STATE_SIZE:
		swap(file, size, "two 4 80", "two 4 0 ");
		return;
	case STATE_NONE:
		swap(file, size, "two 4 80", "one 0 80");
		return;
	case STATE_ORDER:
		swap(file, size, "\"hal_resume\"", "\"hal_strict\"");
		return;
	case STATE_REGISTER:
		swap(file, size, " offset=\"0x48\"", " offset=\"0x4a\"");
		return;
	case XML_KERNEL:
		swap(file, size, "kernel name=\"two\"", "kernel name=\"one\"");
		return;
	case XML_ARG:
		swap(file, size, "id=\"1\"", "id=\"7\"");
		return;
	case XML_QUALIFIER:
		swap(file, size, "addressQualifier=\"1\"", "addressQualifier=\"4\"");
		return;
	case XML_SIZE:
		swap(file, size, "size=\"0x4\"", "size=\"0x3\"");
		return;
	case XML_OFFSET:
		swap(file, size, " offset=\"0x1c\"", " offset=\"1xxx\"");
		return;
	}
}

static void lies(void **state)
{
	static const struct {
		enum what what;
		const char *why;
	} all[] = {
		{MAGIC, "no xclbin: it does not begin with"},
		{COUNT, "70000 sections do not fit"},
		{OFFSET, "(kind 8)"},
		{LENGTH, "(kind 7)"},
		{BANKS, "MEM_TOPOLOGY: 4 records do not fit into 128 bytes"},
		{NEGATIVE_BANKS, "MEM_TOPOLOGY: -1 records"},
		{BANK_SIZE,
		 "MEM_TOPOLOGY: bank 0 (A) has the invalid size of 4503599627371520 KiB"},
		{UNITS, "IP_LAYOUT: 2147483647 records"},
		{UNIT_NAME, "IP_LAYOUT: unit 1 (non:one_2) belongs to no kernel"},
		{UNIT_COLON, "IP_LAYOUT: unit one: is not named KERNEL:INSTANCE"},
		{BANK_OF, "CONNECTIVITY: record 0 is invalid: unit 0, bank 64"},
		{UNIT_OF, "CONNECTIVITY: record 0 is invalid: unit 4, bank 0"},
		{ARG_OF, "CONNECTIVITY: record 0: kernel one has no argument 2"},
		{NO_XML,
		 "section EMBEDDED_METADATA, which describes the kernels, is missing"},
		{NO_BANKS, "section MEM_TOPOLOGY is missing"},
		{NO_UNITS, "IP_LAYOUT: no kernel has a unit"},
		{LEAST_LINE, "USER_METADATA, line 2: KERNEL ARGUMENT BYTES expected"},
		{LEAST_ARG, "USER_METADATA, line 2: kernel one has no buffer as "
			    "argument 1"},
		{STATE_SIZE, "USER_METADATA: hal_state of kernel two has the invalid "
			     "size of 0 bytes"},
		{STATE_NONE, "USER_METADATA: hal_state of kernel two has the invalid "
			     "size of 0 bytes"},
		{STATE_ORDER,
		 "kernel two: hal_state, hal_resume and hal_stop must be its "
		 "last arguments"},
		{STATE_REGISTER,
		 "kernel two: hal_state, hal_resume and hal_stop must be its "
		 "last arguments"},
		{XML_KERNEL, "kernel one is defined twice"},
		{XML_ARG, "kernel one: argument 7 is out of order, 1 expected"},
		{XML_QUALIFIER, "kernel one: argument 0 is neither memory nor a scalar"},
		{XML_SIZE, "kernel one: argument 1 must have a size of 1, 2, 4 or 8"},
		{XML_OFFSET, "kernel one: argument 1 has no register offset"},
	};
	struct fp_xclbin x;
	char why[160];
	size_t size, i;

	(void)state;
	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		void *file = make_image(text, &size);

		break_it(file, size, all[i].what);
		if (fp_xclbin_read(file, size, &x, why, sizeof(why)) != -EINVAL)
			fail_msg("%s: it was taken", all[i].why);
		if (!strstr(why, all[i].why))
			fail_msg("%s: not %s", why, all[i].why);
		free(file);
	}
}

/* mkxclbin says where its text is wrong. */
static void bad_texts(void **state)
{
	static const char *const all[][2] = {
		{"nothing\n", "line 1: \"nothing\" is unknown; platform"},
		{"platform a b\n", "line 1: platform has the wrong number of words, 2"},
		{"\nbank A sram 0 1M\n", "line 2: \"sram\" is not a type of memory"},
		{"bank A ddr4 0 1X\n", "line 1: \"1X\" is not a number"},
		{"arg d memory 0\n", "line 1: an argument without a kernel before it"},
		{"reach 1 d 0\n", "line 1: reach without a kernel before it"},
		{"kernel k 65\n", "line 1: \"65\" is not a number up to 64"},
		{"kernel k 1\narg d memory 0\n",
		 "line 2: banks 0 to 0 do not exist; there are 0"},
		{"kernel k 1\narg d memory\n",
		 "line 2: the banks that the argument reaches are missing"},
		{"kernel k 1\narg d half\n", "line 2: \"half\" is not a type"},
		{"kernel k 1\nreach 0 d 0\n", "line 2: units are counted from 1"},
		{"kernel k 1\nreach 1 d 0\n",
		 "line 2: kernel k has no memory argument d"},
		{"bank A ddr4 0 1M\nkernel k 1\narg d memory 0,x\n",
		 "line 3: \"x\" is not a list of banks"},
	};
	char why[256];
	void *file;
	size_t size, i;

	(void)state;
	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		assert_int_equal(mkxclbin(all[i][0], &file, &size, why, sizeof(why)),
				 -EINVAL);
		if (!strstr(why, all[i][1]))
			fail_msg("%s: not %s", why, all[i][1]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_it_was_meant),
		cmocka_unit_test(every_length),
		cmocka_unit_test(lies),
		cmocka_unit_test(bad_texts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
