/* SPDX-License-Identifier: Apache-2.0 */
/* The register table, the generated header, package and page all say the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "npu_regs.h"

struct value {
	const char *sv; /* its name in the package */
	unsigned long table, c;
};

#define PAGE(name, base, stride, count, doc)                                             \
	{#name "_BASE", (base), NPU_##name##_BASE},                                      \
		{#name "_STRIDE", (stride), NPU_##name##_STRIDE},                        \
		{#name "_COUNT", (count), NPU_##name##_COUNT},
#define REG(page, name, offset, access, reset, doc)                                      \
	{#page "_" #name, (offset), NPU_##page##_##name##_OFF},                          \
		{#page "_" #name "_RESET", (reset), NPU_##page##_##name##_RESET},
#define ARRAY(page, name, offset, access, n, doc)                                        \
	{#page "_" #name, (offset), NPU_##page##_##name##_OFF},                          \
		{#page "_" #name "_N", (n), NPU_##page##_##name##_N},
#define FIELD(reg, name, lsb, width, doc)                                                \
	{#reg "_" #name "_LSB", (lsb), NPU_##reg##_##name##_LSB},                        \
		{#reg "_" #name "_W", (width), NPU_##reg##_##name##_W},
#define DESC(name, word, lsb, width, doc)                                                \
	{"DESC_" #name "_WORD", (word), NPU_DESC_##name##_WORD},                         \
		{"DESC_" #name "_LSB", (lsb), NPU_DESC_##name##_LSB},                    \
		{"DESC_" #name "_W", (width), NPU_DESC_##name##_W},                      \
		{"DESC_" #name "_BIT", (word)*32 + (lsb),                                \
		 NPU_DESC_##name##_WORD * 32 + NPU_DESC_##name##_LSB},
#define CODE(group, name, number, doc) {#group "_" #name, (number), NPU_##group##_##name},

static const struct value values[] = {
#include "npu_regs.def"
};
#define VALUE_COUNT (sizeof(values) / sizeof(values[0]))

static char *read_file(const char *path)
{
	FILE *f = fopen(path, "rb");
	char *text;
	long size;

	assert_non_null(f);
	assert_int_equal(fseek(f, 0, SEEK_END), 0);
	size = ftell(f);
	assert_int_equal(fseek(f, 0, SEEK_SET), 0);
	text = calloc(1, (size_t)size + 1);
	assert_non_null(text);
	assert_int_equal(fread(text, 1, (size_t)size, f), (size_t)size);
	assert_int_equal(fclose(f), 0);
	return text;
}

/* The number after "name = ", as SystemVerilog writes it: 12, 16'h0010. */
static int find_sv(const char *text, const char *name, const char *suffix,
		   unsigned long *value)
{
	char pattern[96];
	const char *at, *digits;

	snprintf(pattern, sizeof(pattern), " %s%s = ", name, suffix);
	at = strstr(text, pattern);
	if (!at)
		return 0;
	at += strlen(pattern);
	digits = strchr(at, '\'');
	if (digits && digits - at <= 2)
		*value = strtoul(digits + 2, NULL, 16);
	else
		*value = strtoul(at, NULL, 10);
	return 1;
}

static void table_and_header(void **state)
{
	(void)state;
	assert_true(VALUE_COUNT > 400);
	for (size_t i = 0; i < VALUE_COUNT; i++)
		if (values[i].table != values[i].c)
			fail_msg("%s: table %lu, C %lu", values[i].sv, values[i].table,
				 values[i].c);
}

/* Registers of a page that there is once are absolute there: GLB, at 0. */
static void table_and_package(void **state)
{
	char *sv = read_file(HAL_BINARY_DIR "/generated/npu_regs_pkg.sv");

	(void)state;
	assert_int_equal(NPU_GLB_BASE, 0);
	for (size_t i = 0; i < VALUE_COUNT; i++) {
		unsigned long got = 0;

		if (!find_sv(sv, values[i].sv, "", &got) &&
		    !find_sv(sv, values[i].sv, "_ADDR", &got) &&
		    !find_sv(sv, values[i].sv, "_OFF", &got))
			fail_msg("%s is not in the package", values[i].sv);
		if (got != values[i].table)
			fail_msg("%s: table %lu, SV %lu", values[i].sv, values[i].table,
				 got);
	}
	free(sv);
}

static void page_is_current(void **state)
{
	char *kept = read_file(HAL_SOURCE_DIR "/docs/npu-registers.md");
	char *made = read_file(HAL_BINARY_DIR "/generated/npu-registers.md");

	(void)state;
	if (strcmp(kept, made) != 0)
		fail_msg("docs/npu-registers.md is old: npu_regs_gen md > "
			 "docs/npu-registers.md");
	free(kept);
	free(made);
}

static void registers_do_not_overlap(void **state)
{
	static const struct {
		const char *page, *name;
		unsigned long from, count;
	} regs[] = {
#undef PAGE
#undef REG
#undef ARRAY
#undef FIELD
#undef DESC
#undef CODE
#define PAGE(name, base, stride, count, doc)
#define REG(page, name, offset, access, reset, doc) {#page, #name, (offset), 1},
#define ARRAY(page, name, offset, access, n, doc)   {#page, #name, (offset), (n)},
#define FIELD(reg, name, lsb, width, doc)
#define DESC(name, word, lsb, width, doc)
#define CODE(group, name, number, doc)
#include "npu_regs.def"
	};
	const size_t n = sizeof(regs) / sizeof(regs[0]);

	(void)state;
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(regs[i].from % 4, 0);
		for (size_t j = 0; j < i; j++)
			if (!strcmp(regs[i].page, regs[j].page) &&
			    regs[i].from < regs[j].from + regs[j].count * 4 &&
			    regs[j].from < regs[i].from + regs[i].count * 4)
				fail_msg("%s and %s share an address", regs[i].name,
					 regs[j].name);
	}
}

static void descriptor_helpers(void **state)
{
	uint32_t d[16] = {0};

	(void)state;
	NPU_SET(d, PANEL, 0x1234);
	NPU_SET(d, OW, 0xFFFF5678);
	assert_int_equal(d[6], 0x12345678);
	NPU_SET(d, PANEL, 0);
	assert_int_equal(d[6], 0x5678);
	NPU_SET(d, DM, 0xFFFFFFFF);
	assert_int_equal(NPU_GET(d, DM), 0xFFFFF);
	NPU_SET(d, VPATTERN, 0xFFFFFFFF);
	assert_int_equal(NPU_GET(d, VPATTERN), 0xFFFFFFFF);
	assert_int_equal(NPU_SLOT_ADDR(2, TAIL), 0x300C);
	assert_int_equal(NPU_REG_GET(NPU_REG_BITS(RECT_COLS, 16), RECT_COLS), 16);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(table_and_header),
		cmocka_unit_test(table_and_package),
		cmocka_unit_test(page_is_current),
		cmocka_unit_test(registers_do_not_overlap),
		cmocka_unit_test(descriptor_helpers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
