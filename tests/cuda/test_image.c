/* SPDX-License-Identifier: Apache-2.0 */
/* Images: each field wrong, each length cut, and modules that lie about themselves; none
 * of it reaches the driver. */
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
#include <hal/cuda.h>

#include "backends/cuda/internal.h"

static struct hal_cuda_image *image;
static size_t image_bytes;

static int parse(const void *p, size_t bytes)
{
	struct cu_program prog = {0};
	void *copy = malloc(bytes ? bytes : 1); /* so that a byte too far is seen */
	int err;

	if (!copy)
		abort();
	if (bytes)
		memcpy(copy, p, bytes);
	host_text[0] = 0;
	err = cu_image_parse(copy, bytes, &prog);
	free(prog.kernels);
	free(copy);
	return err;
}

static int setup(void **state)
{
	static const char *const kernels[] = {"work:m8", "iota:m4"};

	(void)state;
	hal_backend_cuda(&host);
	image = make_cuda_image(kernels, 2, 4, &image_bytes);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	free(image);
	return 0;
}

static void good(void **state)
{
	(void)state;
	assert_int_equal(parse(image, image_bytes), 0);
}

static void cut(void **state)
{
	size_t n;

	(void)state;
	for (n = 0; n < image_bytes; n++)
		assert_int_equal(parse(image, n), -EINVAL);
	assert_non_null(strstr(host_text, "cuda: image"));
}

/* Any byte of the table may be anything: refused or not, nothing is read that is not
 * there. */
static void any_byte(void **state)
{
	const size_t table = sizeof(*image) + 2 * sizeof(struct hal_cuda_kernel);
	size_t i;
	int v;

	(void)state;
	for (i = 0; i < table; i++) {
		const uint8_t was = ((uint8_t *)image)[i];

		for (v = 0; v < 256; v += 5) {
			((uint8_t *)image)[i] = (uint8_t)v;
			(void)parse(image, image_bytes);
		}
		((uint8_t *)image)[i] = was;
	}
	assert_int_equal(parse(image, image_bytes), 0);
}

static void refused(uint32_t *field, uint32_t value, const char *why)
{
	const uint32_t was = *field;

	*field = value;
	assert_int_equal(parse(image, image_bytes), -EINVAL);
	if (!strstr(host_text, why))
		fail_msg("%s: not %s", host_text, why);
	*field = was;
}

static void each_field(void **state)
{
	struct hal_cuda_kernel *k = (void *)(image + 1);

	(void)state;
	refused(&image->magic, 1, "does not begin with the header");
	refused(&image->version, 2, "version 2");
	refused(&image->kernel_size, 8, "kernels of 8 bytes");
	refused(&image->kernel_count, 0, "0 kernels");
	refused(&image->kernel_count, UINT32_MAX, "4294967295 kernels");
	refused(&image->kernel_count, 1, "differs from the sum of its parts");
	refused(&image->bytes, 5, "differs from the sum of its parts");
	refused(&image->module_bytes, 0, "differs from the sum of its parts");
	refused(&image->format, 3, "unknown module format 3");
	refused(&image->format, HAL_CUDA_CUBIN, "not a cubin");
	refused(&image->format, HAL_CUDA_FATBIN, "not a fatbin");
	refused(&k->arg_count, HAL_ARGS_MAX + 1, "the limit is");
	refused(&k->scalar_bytes[1], 3, "argument 1 has 3 bytes");
	memset(k[1].name, 'x', sizeof(k[1].name));
	assert_int_equal(parse(image, image_bytes), -EINVAL);
	memset(k[1].name, 0, sizeof(k[1].name));
	assert_int_equal(parse(image, image_bytes), -EINVAL);
	memcpy(k[1].name, "iota", 5);
	k->arg_bytes[1] = 8;
	assert_int_equal(parse(image, image_bytes), -EINVAL);
	assert_non_null(strstr(host_text, "has both scalar_bytes and arg_bytes"));
	k->arg_bytes[1] = 0;
	((char *)image)[image_bytes - 1] = 'x';
	assert_int_equal(parse(image, image_bytes), -EINVAL);
	assert_non_null(strstr(host_text, "zero byte"));
	((char *)image)[image_bytes - 1] = 0;
	good(NULL);
}

/* ---- binaries ---------------------------------------------------------------------- */

#define MODULE_BYTES 512u

struct binary {
	struct hal_cuda_image head;
	struct hal_cuda_kernel kernel;
	union {
		Elf64_Ehdr elf;
		struct {
			uint32_t magic;
			uint16_t version, header_bytes;
			uint64_t bytes;
		} fatbin;
		uint8_t bytes[MODULE_BYTES];
	};
};

static struct binary binary(uint32_t format)
{
	struct binary b;

	memset(&b, 0, sizeof(b));
	b.head.magic = HAL_CUDA_MAGIC;
	b.head.version = HAL_CUDA_VERSION;
	b.head.bytes = sizeof(b);
	b.head.format = format;
	b.head.kernel_count = 1;
	b.head.kernel_size = sizeof(b.kernel);
	b.head.module_bytes = MODULE_BYTES;
	memcpy(b.kernel.name, "k", 2);
	return b;
}

static struct binary cubin(void)
{
	struct binary b = binary(HAL_CUDA_CUBIN);
	Elf64_Shdr section = {.sh_type = SHT_STRTAB, .sh_offset = 64, .sh_size = 8};
	Elf64_Phdr segment = {.p_offset = 64, .p_filesz = 8};

	memcpy(b.elf.e_ident, ELFMAG, SELFMAG);
	b.elf.e_ident[EI_CLASS] = ELFCLASS64;
	b.elf.e_ident[EI_DATA] = ELFDATA2LSB;
	b.elf.e_machine = 190;
	b.elf.e_shnum = b.elf.e_phnum = 1;
	b.elf.e_shentsize = sizeof(section);
	b.elf.e_phentsize = sizeof(segment);
	b.elf.e_shoff = 128;
	b.elf.e_phoff = 256;
	memcpy(b.bytes + 128, &section, sizeof(section));
	memcpy(b.bytes + 256, &segment, sizeof(segment));
	return b;
}

#define REFUSED(change, why)                                                             \
	do {                                                                             \
		struct binary r = made();                                                \
		change;                                                                  \
		assert_int_equal(parse(&r, sizeof(r)), -EINVAL);                         \
		assert_non_null(strstr(host_text, why));                                 \
	} while (0)

static void cubins(void **state)
{
	struct binary (*made)(void) = cubin;
	struct binary b = cubin();
	Elf64_Shdr section;
	Elf64_Phdr segment;

	(void)state;
	assert_int_equal(parse(&b, sizeof(b)), 0);
	REFUSED(r.elf.e_machine = 62, "not a cubin");
	REFUSED(r.elf.e_ident[EI_CLASS] = ELFCLASS32, "not a cubin");
	REFUSED(r.elf.e_shoff = 449, "section table");
	REFUSED(r.elf.e_shoff = UINT64_MAX, "section table");
	REFUSED(r.elf.e_shnum = 65535, "section table");
	REFUSED(r.elf.e_shentsize = 1, "section table");
	REFUSED(r.elf.e_phoff = 457, "program table");
	REFUSED(r.elf.e_phentsize = 1, "program table");
	memcpy(&section, b.bytes + 128, sizeof(section));
	section.sh_offset = 505;
	REFUSED(memcpy(r.bytes + 128, &section, sizeof(section)), "section of the cubin");
	section.sh_offset = UINT64_MAX;
	REFUSED(memcpy(r.bytes + 128, &section, sizeof(section)), "section of the cubin");
	REFUSED(r.bytes[71] = 1, "not terminated");
	memcpy(&segment, b.bytes + 256, sizeof(segment));
	segment.p_filesz = UINT64_MAX;
	REFUSED(memcpy(r.bytes + 256, &segment, sizeof(segment)), "segment");
}

static struct binary fatbin(void)
{
	struct binary b = binary(HAL_CUDA_FATBIN);

	b.fatbin.magic = 0xba55ed50;
	b.fatbin.version = 1;
	b.fatbin.header_bytes = 16;
	b.fatbin.bytes = MODULE_BYTES - 16;
	return b;
}

static void fatbins(void **state)
{
	struct binary (*made)(void) = fatbin;
	struct binary b = fatbin();

	(void)state;
	assert_int_equal(parse(&b, sizeof(b)), 0);
	REFUSED(r.fatbin.magic = 1, "not a fatbin");
	REFUSED(r.fatbin.header_bytes = 15, "not a fatbin");
	REFUSED(r.fatbin.header_bytes = 65535, "is truncated");
	REFUSED(r.fatbin.bytes++, "is truncated");
	REFUSED(r.fatbin.bytes = UINT64_MAX, "is truncated");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good),     cmocka_unit_test(cut),
		cmocka_unit_test(any_byte), cmocka_unit_test(each_field),
		cmocka_unit_test(cubins),   cmocka_unit_test(fatbins),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
