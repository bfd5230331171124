/* SPDX-License-Identifier: Apache-2.0 */
/* Which of a device's registers say where a wave is, by its architecture; and, where
 * HIP's library is, that its compiler takes the kernel.  With an argument: the options
 * for that architecture, a line each, for where.sh. */
#define _GNU_SOURCE
#include "host.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backends/rocm/internal.h"

static void says(const char *arch, uint32_t reg, uint32_t xcc, uint32_t shift,
		 uint32_t bits)
{
	static const char *const names[] = {"REGISTER", "XCC", "SHIFT", "BITS"};
	const uint32_t values[] = {reg, xcc, shift, bits};
	char got[ROCM_WHERE_OPTIONS][ROCM_WHERE_BYTES], want[64];
	uint32_t i;

	assert_true(rocm_where_options(arch, got));
	for (i = 0; i < ROCM_WHERE_OPTIONS; i++) {
		snprintf(want, sizeof(want), "-DHAL_WHERE_%s=%u", names[i], values[i]);
		assert_string_equal(got[i], want);
	}
}

/* Numbers of registers as the instruction sets have them, all 32 bits: 31 << 11. */
static void architectures(void **state)
{
	static const char *const unknown[] = {"gfx803", "gfx1201", "gfx1250", "gfx9000",
					      "gfx90",  "gfx9",    "",        "sm_90"};
	char text[ROCM_WHERE_OPTIONS][ROCM_WHERE_BYTES];
	uint32_t i;

	(void)state;
	says("gfx906:sramecc+:xnack-", 63492, 63492, 8, 8);
	says("gfx90a:sramecc+:xnack-", 63492, 63492, 8, 8);
	says("gfx900", 63492, 63492, 8, 8);
	says("gfx942:sramecc+:xnack-", 63492, 63508, 8, 8);
	says("gfx950", 63492, 63508, 8, 8);
	says("gfx1030", 63511, 63511, 10, 11);
	says("gfx1100", 63511, 63511, 10, 11);
	for (i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++)
		if (rocm_where_options(unknown[i], text))
			fail_msg("%s is known", unknown[i]);
}

/* HIP's own, which needs no GPU for it.  Code is an ELF, or a bundle with one. */
static void compiled(void **state)
{
	static const struct {
		const char *arch;
		uint8_t machine;
	} all[] = {{"gfx906:sramecc+:xnack-", 0x2f},
		   {"gfx90a:sramecc+:xnack-", 0x3f},
		   {"gfx1030", 0x36}};
	static const uint8_t magic[] = {0x7f, 'E', 'L', 'F', 2, 1};
	void *library = HIP_LIBRARY[0] == '/' ? dlopen(HIP_LIBRARY, RTLD_NOW) : NULL;
	const char *call = "";
	uint32_t i, r = 0;
	size_t bytes = 0;

	(void)state;
	if (!library)
		skip(); /* no HIP here */
#define FIND(name) *(void **)&hip.name = dlsym(library, #name)
	FIND(hiprtcCreateProgram);
	FIND(hiprtcCompileProgram);
	FIND(hiprtcGetCodeSize);
	FIND(hiprtcGetCode);
	FIND(hiprtcDestroyProgram);
	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		char *code = rocm_where_compile(all[i].arch, &bytes, &call, &r);
		const uint8_t *elf;

		if (!code)
			fail_msg("%s: %s answers %u", all[i].arch, call, r);
		elf = memmem(code, bytes, magic, sizeof(magic));
		assert_non_null(elf);
		assert_int_equal(elf[48], all[i].machine);
		assert_non_null(memmem(code, bytes, "hal_where.kd", 12));
		free(code);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(architectures),
					   cmocka_unit_test(compiled)};
	char text[ROCM_WHERE_OPTIONS][ROCM_WHERE_BYTES];
	uint32_t i;

	if (argc < 2)
		return cmocka_run_group_tests(tests, NULL, NULL);
	if (!rocm_where_options(argv[1], text))
		return 1;
	for (i = 0; i < ROCM_WHERE_OPTIONS; i++)
		puts(text[i]);
	return 0;
}
