/* SPDX-License-Identifier: Apache-2.0 */
/* Bundles that clang made of kernels.hip and preempt.hip, for gfx906, gfx90a:xnack- and
 * gfx1030: what is taken of them for which device, and what their metadata are held to.
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

#include "backends/rocm/internal.h"

enum { KERNELS = 3 };

struct file {
	struct hal_rocm_image head;
	struct hal_rocm_kernel kernels[KERNELS];
	uint8_t code[];
};
static struct file *file;
static size_t file_bytes;
static uint32_t following; /* kernels of what was parsed that follow hal_preempt.h */

/* With a table of so many of these kernels. */
static int read_bundle(const char *path, const struct hal_rocm_kernel kernels[KERNELS],
		       uint32_t count)
{
	const size_t room = sizeof(*file) + ((size_t)8 << 20),
		     table = count * sizeof(*kernels);
	FILE *f = fopen(path, "rb");
	uint8_t *code;
	size_t n = 0;

	free(file);
	file = malloc(room);
	code = (uint8_t *)file->kernels + table;
	if (f && file)
		n = fread(code, 1, (size_t)8 << 20, f);
	if (f)
		(void)fclose(f);
	if (!n)
		return -1;
	file_bytes = sizeof(file->head) + table + n;
	file->head = (struct hal_rocm_image){.magic = HAL_ROCM_MAGIC,
					     .version = HAL_ROCM_VERSION,
					     .bytes = (uint32_t)file_bytes,
					     .format = HAL_ROCM_BUNDLE,
					     .kernel_count = count,
					     .kernel_size = sizeof(kernels[0]),
					     .code_bytes = (uint32_t)n};
	memcpy(file->kernels, kernels, table);
	return 0;
}

/* Of kernels.hip and preempt.hip; arguments are another compiler's. */
static const char *bundles[2] = {BUNDLE, PREEMPT_BUNDLE};

static int setup(void **state)
{
	static const struct hal_rocm_kernel kernels[KERNELS] = {
		{.name = "iota", .block = {256}, .arg_count = 2, .scalar_bytes = {0, 4}},
		{.name = "mixed",
		 .block = {16, 8, 8},
		 .arg_count = 6,
		 .scalar_bytes = {0, 8, 2, 1, 0, 4}},
		{.name = "none"},
	};

	(void)state;
	hal_backend_rocm(&host);
	return read_bundle(bundles[0], kernels, KERNELS);
}

static int teardown(void **state)
{
	(void)state;
	free(file);
	return 0;
}

/* The first bytes of the code that was taken, or NULL. */
static const uint8_t *parse(const char *arch, int want, const char *why)
{
	struct rocm_program prog = {0};
	uint32_t i;
	int err;

	host_text[0] = 0;
	err = rocm_image_parse(file, file_bytes, arch, &prog);
	following = 0;
	for (i = 0; !err && i < prog.count; i++)
		following += prog.kernels[i].follows;
	free(prog.kernels);
	if (err != want || (why && !strstr(host_text, why)))
		fail_msg("%s: %d, not %d: %s: not %s", arch, err, want, host_text,
			 why ? why : "");
	return err ? NULL : prog.code;
}

static void parts(void **state)
{
	const uint8_t *gfx906 = parse("gfx906:sramecc+:xnack-", 0, NULL);
	const uint8_t *gfx90a = parse("gfx90a:sramecc+:xnack-", 0, NULL);
	const uint8_t *gfx1030 = parse("gfx1030", 0, NULL);

	(void)state;
	assert_int_equal(following, 0);
	assert_true(gfx906 != gfx90a && gfx90a != gfx1030 && gfx1030 != gfx906);
	/* The machine's number, in the ELF's flags. */
	assert_int_equal(gfx906[48], 0x2f);
	assert_int_equal(gfx90a[48], 0x3f);
	assert_int_equal(gfx1030[48], 0x36);
	parse("gfx90a:sramecc+:xnack+", -ENOTSUP,
	      "has no code for gfx90a:sramecc+:xnack+");
	parse("gfx1100", -ENOTSUP, "it has code for gfx1030 gfx906 gfx90a:xnack-");
}

static void metadata(void **state)
{
	struct hal_rocm_kernel *k = file->kernels;

	(void)state;
#define WITH(field, value, why)                                                          \
	do {                                                                             \
		const uint32_t was = (field);                                            \
		(field) = (value);                                                       \
		parse("gfx906", -EINVAL, why);                                           \
		parse("gfx1030", -EINVAL, why);                                          \
		(field) = was;                                                           \
	} while (0)
	WITH(k[0].block[0], 257, "exceed the 256 that it was compiled for");
	WITH(k[0].arg_count, 3, "kernel iota has 2 arguments, but the table declares 3");
	WITH(k[0].arg_count, 1, "kernel iota has more arguments than the 1");
	WITH(k[0].scalar_bytes[1], 8,
	     "argument 1 has 4 bytes in the code object, but 8 in the table");
	WITH(k[0].scalar_bytes[1], 0,
	     "argument 1 has 4 bytes in the code object, but 8 in the table");
	WITH(k[0].scalar_bytes[0], 8,
	     "argument 0 is of the unsupported kind global_buffer");
	WITH(k[1].scalar_bytes[3], 2,
	     "argument 3 has 1 bytes in the code object, but 2 in the table");
	WITH(k[2].arg_count, 1, "kernel none has 0 arguments, but the table declares 1");
	strcpy(k[2].name, "by_struct");
	k[2].arg_count = 2;
	k[2].scalar_bytes[1] = 8;
	parse("gfx906", -EINVAL,
	      "argument 1 has 12 bytes in the code object, but 8 in the table");
	strcpy(k[2].name, "nobody");
	parse("gfx906", -EINVAL, "has no kernel nobody");
	k[2] = (struct hal_rocm_kernel){.name = "none"};
	parse("gfx906", 0, NULL);
}

/* Kernels that follow hal_preempt.h: the table does not name what they are given. */
static void preempt(void **state)
{
	static const struct hal_rocm_kernel kernels[KERNELS] = {
		{.name = "scale", .block = {256}, .arg_count = 2, .scalar_bytes = {0, 4}},
		{.name = "places", .arg_count = 1},
		{.name = "plain", .arg_count = 1},
	};
	static const char *const archs[] = {"gfx906", "gfx90a:xnack-", "gfx1030"};
	uint32_t i;

	(void)state;
	for (i = 0; i < 3; i++) {
		assert_int_equal(read_bundle(bundles[1], kernels, KERNELS), 0);
		parse(archs[i], 0, NULL);
		assert_int_equal(following, 2);
		file->kernels[0].arg_count = 3;
		parse(archs[i], -EINVAL,
		      "argument 2 has 48 bytes in the code object, but 8 in the table");
		file->kernels[0].arg_count = 1;
		parse(archs[i], -EINVAL,
		      "built with hal_preempt.h, but argument 1 has 4 bytes");
	}
}

/* Where a queue of HSA's puts what a kernel takes. */
static void places(void **state)
{
	static const uint16_t want[6] = {0, 8, 16, 18, 24, 32};
	static const char *const archs[] = {"gfx906", "gfx90a:xnack-", "gfx1030"};
	uint32_t i, k;

	(void)state;
	for (i = 0; i < 3; i++) {
		struct rocm_program prog = {0};
		const struct rocm_kernel *mixed;

		assert_int_equal(rocm_image_parse(file, file_bytes, archs[i], &prog), 0);
		mixed = &prog.kernels[1];
		assert_memory_equal(mixed->at, want, sizeof(want));
		assert_int_equal(mixed->at[6], ROCM_NOWHERE);
		for (k = 0; k < ROCM_HIDDEN_COUNT; k++)
			assert_int_equal(mixed->hidden[k], ROCM_NOWHERE);
		assert_string_equal(mixed->needs, "");
		free(prog.kernels);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parts),
		cmocka_unit_test(places),
		cmocka_unit_test(metadata),
		cmocka_unit_test(preempt),
	};

	for (int i = 1; i < argc && i <= 2; i++)
		bundles[i - 1] = argv[i];
	return cmocka_run_group_tests(tests, setup, teardown);
}
