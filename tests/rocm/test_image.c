/* SPDX-License-Identifier: Apache-2.0 */
/* Images: each field wrong, each length cut, code that lies about itself, bundles with
 * nothing for the device; none of it reaches HIP. */
#define _GNU_SOURCE
#include "host.h"

#include <elf.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backends/rocm/internal.h"

#define ARCH "gfx90a:sramecc+:xnack-"

static struct hal_rocm_image *image; /* a code object for the MI210 */
static size_t image_bytes;

static int parse_for(const void *p, size_t bytes, const char *arch)
{
	struct rocm_program prog = {0};
	void *copy = malloc(bytes ? bytes : 1); /* so that a byte too far is seen */
	int err;

	if (!copy)
		abort();
	if (bytes)
		memcpy(copy, p, bytes);
	host_text[0] = 0;
	err = rocm_image_parse(copy, bytes, arch, &prog);
	free(prog.kernels);
	free(copy);
	return err;
}

static int parse(const void *p, size_t bytes)
{
	return parse_for(p, bytes, ARCH);
}

static void says(int err, int want, const char *why)
{
	if (err != want || (why && !strstr(host_text, why)))
		fail_msg("%d, not %d: %s: not %s", err, want, host_text, why ? why : "");
}

static int setup(void **state)
{
	static const char *const kernels[] = {"work:m8", "iota:m4"};

	(void)state;
	hal_backend_rocm(&host);
	image = make_rocm_code(kernels, 2, 4, 1, &image_bytes);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	free(image);
	return 0;
}

static uint8_t *code(void)
{
	return (uint8_t *)image + sizeof(*image) + 2 * sizeof(struct hal_rocm_kernel);
}

static void good(void **state)
{
	(void)state;
	says(parse(image, image_bytes), 0, NULL);
}

static void cut(void **state)
{
	size_t n;

	(void)state;
	for (n = 0; n < image_bytes; n += n < 2048 ? 1 : 97)
		assert_int_equal(parse(image, n), -EINVAL);
	assert_non_null(strstr(host_text, "rocm: image"));
}

/* Any byte of the table, of the ELF and of its note may be anything. */
static void any_byte(void **state)
{
	const size_t all = (size_t)(code() - (uint8_t *)image) + 1400;
	size_t i;
	int v;

	(void)state;
	for (i = 0; i < all; i++) {
		const uint8_t was = ((uint8_t *)image)[i];

		for (v = 0; v < 256; v += 5) {
			((uint8_t *)image)[i] = (uint8_t)v;
			(void)parse(image, image_bytes);
		}
		((uint8_t *)image)[i] = was;
	}
	good(NULL);
}

/* The code is cut where the image says that it ends. */
static void cut_code(void **state)
{
	const size_t head = image_bytes - image->code_bytes;
	const uint32_t whole = image->code_bytes;
	uint32_t n;

	(void)state;
	for (n = 0; n < 1400; n++) {
		image->code_bytes = n;
		image->bytes = (uint32_t)head + n;
		assert_int_equal(parse(image, head + n), -EINVAL);
	}
	image->code_bytes = whole;
	image->bytes = (uint32_t)image_bytes;
	good(NULL);
}

static void refused(uint32_t *field, uint32_t value, const char *why)
{
	const uint32_t was = *field;

	*field = value;
	says(parse(image, image_bytes), -EINVAL, why);
	*field = was;
}

static void each_field(void **state)
{
	struct hal_rocm_kernel *k = (void *)(image + 1);

	(void)state;
	refused(&image->magic, 1, "hal/rocm.h");
	refused(&image->version, 2, "version 2");
	refused(&image->kernel_size, 8, "kernels of 8 bytes");
	refused(&image->kernel_count, 0, "0 kernels");
	refused(&image->kernel_count, UINT32_MAX, "4294967295 kernels");
	refused(&image->kernel_count, 1, "differs from the sum of its parts");
	refused(&image->bytes, 5, "differs from the sum of its parts");
	refused(&image->code_bytes, 0, "differs from the sum of its parts");
	refused(&image->format, 2, "unknown code format 2");
	refused(&image->format, HAL_ROCM_BUNDLE, "not a bundle");
	refused(&k->arg_count, HAL_ARGS_MAX + 1, "the limit is");
	refused(&k->arg_count, 1, "more arguments than the 1");
	refused(&k->arg_count, 3, "has 2 arguments, but the table declares 3");
	refused(&k->scalar_bytes[1], 3, "a scalar of 3 bytes");
	refused(&k->scalar_bytes[1], 4,
		"argument 1 has 8 bytes in the code object, but 4 in the table");
	refused(&k->scalar_bytes[0], 8,
		"argument 0 is of the unsupported kind global_buffer");
	refused(&k->block[0], 1025,
		"groups of 1025 x 1 x 1 work-items exceed the 1024 that it was compiled "
		"for");
	k->arg_bytes[1] = 8;
	says(parse(image, image_bytes), -EINVAL, "both scalar_bytes and arg_bytes");
	k->arg_bytes[1] = 0;
	memset(k[1].name, 'x', sizeof(k[1].name));
	says(parse(image, image_bytes), -EINVAL, "not terminated");
	memset(k[1].name, 0, sizeof(k[1].name));
	says(parse(image, image_bytes), -EINVAL, "is empty");
	memcpy(k[1].name, "atoi", 5);
	says(parse(image, image_bytes), -EINVAL, "has no kernel atoi");
	memcpy(k[1].name, "iota", 5);
	good(NULL);
}

/* ---- code objects ------------------------------------------------------------------ */

static void elf(size_t offset, size_t bytes, uint64_t value, int want, const char *why)
{
	uint8_t was[8];

	memcpy(was, code() + offset, bytes);
	memcpy(code() + offset, &value, bytes);
	says(parse(image, image_bytes), want, why);
	memcpy(code() + offset, was, bytes);
}

static void code_objects(void **state)
{
	const size_t segment = sizeof(Elf64_Ehdr), section = 256, note = 512;

	(void)state;
#define HEAD(field, value, why)                                                          \
	elf(offsetof(Elf64_Ehdr, field), sizeof(((Elf64_Ehdr *)0)->field), value,        \
	    -EINVAL, why)
	HEAD(e_machine, 190, "not a 64-bit ELF file for amdgcn");
	HEAD(e_shoff, UINT64_MAX, "section table");
	HEAD(e_shnum, 65535, "section table");
	HEAD(e_shentsize, 1, "section table");
	HEAD(e_phoff, UINT64_MAX, "segment table");
	HEAD(e_phentsize, 1, "segment table");
	HEAD(e_phnum, 0, "no metadata");
	elf(EI_OSABI, 1, 0, -EINVAL, "not a 64-bit ELF file for amdgcn");
	elf(offsetof(Elf64_Ehdr, e_flags), 4, 0x2f, -ENOTSUP,
	    "is for gfx906, but the device is " ARCH);
	elf(segment + offsetof(Elf64_Phdr, p_offset), 8, UINT64_MAX, -EINVAL,
	    "a segment lies outside");
	elf(segment + offsetof(Elf64_Phdr, p_filesz), 8, UINT64_MAX, -EINVAL,
	    "a segment lies outside");
	elf(segment + offsetof(Elf64_Phdr, p_type), 4, PT_LOAD, -EINVAL, "no metadata");
	elf(section + offsetof(Elf64_Shdr, sh_size), 8, UINT64_MAX, -EINVAL,
	    "a section lies outside");
	elf(section + offsetof(Elf64_Shdr, sh_type), 4, SHT_STRTAB, 0, NULL);
	elf(note, 4, 8, -EINVAL, "no metadata"); /* another owner's */
	elf(note + 4, 4, UINT32_MAX, -EINVAL, "no metadata");
	elf(note + 8, 4, 1, -EINVAL, "no metadata");
	good(NULL);
}

/* ---- bundles ----------------------------------------------------------------------- */

static void bundles(void **state)
{
	static const char *const kernels[] = {"work:m8"};
	size_t size;
	struct hal_rocm_image *all = make_rocm_image(kernels, 1, 4, &size);
	uint8_t *b = (uint8_t *)(all + 1) + sizeof(struct hal_rocm_kernel);
	uint64_t was, far = UINT64_MAX;

	(void)state;
	says(parse_for(all, size, "gfx906:sramecc+:xnack-"), 0, NULL);
	says(parse_for(all, size, "gfx90a:sramecc-:xnack+"), 0, NULL);
	says(parse_for(all, size, "gfx1100"), 0, NULL);
	says(parse_for(all, size, "gfx1030"), -ENOTSUP,
	     "no code for gfx1030; it has code for gfx906 gfx90a gfx942 gfx1100");
	says(parse_for(all, size, "gfx90"), -ENOTSUP, "no code for gfx90;");
	memcpy(&was, b + 24, 8);
	memcpy(b + 24, &far, 8);
	says(parse(all, size), -EINVAL, "too many parts");
	memcpy(b + 24, &was, 8);
	memcpy(&was, b + 32, 8);
	memcpy(b + 32, &far, 8);
	says(parse(all, size), -EINVAL, "a part of the bundle lies outside the file");
	memcpy(b + 32, &was, 8);
	memcpy(&was, b + 48, 8);
	memcpy(b + 48, &far, 8);
	says(parse(all, size), -EINVAL, "a name in the bundle is truncated");
	memcpy(b + 48, &was, 8);
	memcpy(b, "CCOB", 4);
	says(parse(all, size), -ENOTSUP, "compressed");
	free(all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good),       cmocka_unit_test(cut),
		cmocka_unit_test(any_byte),   cmocka_unit_test(cut_code),
		cmocka_unit_test(each_field), cmocka_unit_test(code_objects),
		cmocka_unit_test(bundles),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
