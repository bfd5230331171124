/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_cuda.c - any bytes as an image for CUDA, and behind a table that is right as a
 * cubin, a fatbin and PTX: what is taken lies within what was given, as the driver, which
 * is told no length, will read it; or it is refused and why. */
#include "fuzz.h"

#include <elf.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cuda/internal.h"
#include "tests/fakes/cuda/image.h"

static char text[512];

__attribute__((format(printf, 2, 3))) static int host_fail(int err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return -err;
}

static const struct hal_host host = {
	.size = sizeof(host), .abi = HAL_BACKEND_ABI, .fail = host_fail};
const struct hal_host *cu_host = &host;

enum { KERNELS = 2 };
static const char *const kernels[KERNELS] = {"work:m8", "iota:m4"};
#define TABLE (sizeof(struct hal_cuda_image) + KERNELS * sizeof(struct hal_cuda_kernel))

static uint8_t *table;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	size_t size;

	(void)argc;
	(void)argv;
	table = make_cuda_image(kernels, KERNELS, 4, &size);
	return 0;
}

/* With a section of names, and a segment. */
static size_t cubin(uint8_t *data, size_t max)
{
	Elf64_Ehdr e = {.e_ident = ELFMAG,
			.e_machine = 190,
			.e_shoff = 256,
			.e_phoff = sizeof(e),
			.e_shentsize = sizeof(Elf64_Shdr),
			.e_shnum = 2,
			.e_phentsize = sizeof(Elf64_Phdr),
			.e_phnum = 1};
	const Elf64_Shdr names = {.sh_type = SHT_STRTAB, .sh_offset = 400, .sh_size = 8};
	const Elf64_Phdr segment = {.p_offset = 128, .p_filesz = 64};

	if (max < 512)
		return 0;
	memset(data, 0, 512);
	e.e_ident[EI_CLASS] = ELFCLASS64;
	e.e_ident[EI_DATA] = ELFDATA2LSB;
	memcpy(data, &e, sizeof(e));
	memcpy(data + e.e_phoff, &segment, sizeof(segment));
	memcpy(data + e.e_shoff + sizeof(names), &names, sizeof(names));
	memcpy(data + 400, "\0iota", 6);
	return 512;
}

/* Its header, and bytes that it says are there. */
static size_t fatbin(uint8_t *data, size_t max)
{
	const uint32_t magic = 0xba55ed50;
	const uint16_t version = 1, header = 16;
	const uint64_t bytes = 48;

	if (max < 64)
		return 0;
	memset(data, 0, 64);
	memcpy(data, &magic, 4);
	memcpy(data + 4, &version, 2);
	memcpy(data + 6, &header, 2);
	memcpy(data + 8, &bytes, 8);
	return 64;
}

/* 0: a cubin; 1: a fatbin; 2: PTX; 3: an image. */
size_t fuzz_seed(unsigned int index, uint8_t *data, size_t max)
{
	const size_t skip = index == 2 ? TABLE : 0;
	uint8_t *image;
	size_t size;

	if (index == 0)
		return cubin(data, max);
	if (index == 1)
		return fatbin(data, max);
	if (index > 3)
		return 0;
	image = make_cuda_image(kernels, KERNELS, 4, &size);
	size = size - skip < max ? size - skip : max;
	memcpy(data, image + skip, size);
	free(image);
	return size;
}

/* As the driver does: the names of a cubin to their ends, as far as a fatbin says. */
static uint64_t read_through(const struct cu_program *prog)
{
	uint64_t sum = 0, i;
	Elf64_Ehdr e;
	Elf64_Shdr s;
	uint32_t n;

	if (prog->format == HAL_CUDA_PTX)
		return strlen((const char *)prog->code);
	if (prog->format == HAL_CUDA_FATBIN) {
		uint16_t header;
		uint64_t bytes;

		memcpy(&header, prog->code + 6, 2);
		memcpy(&bytes, prog->code + 8, 8);
		for (i = 0; i < bytes; i++)
			sum += prog->code[header + i];
		return sum;
	}
	memcpy(&e, prog->code, sizeof(e));
	for (n = 0; n < e.e_shnum; n++) {
		memcpy(&s, prog->code + e.e_shoff + n * sizeof(s), sizeof(s));
		if (s.sh_type == SHT_STRTAB && s.sh_size &&
		    prog->code[s.sh_offset + s.sh_size - 1])
			abort(); /* names without an end */
		for (i = 0; s.sh_type != SHT_NOBITS && i < s.sh_size; i++)
			sum += prog->code[s.sh_offset + i];
	}
	return sum;
}

static void take(const uint8_t *image, size_t size)
{
	struct cu_program prog = {0};
	static volatile uint64_t sink;
	uint32_t i;

	text[0] = 0;
	if (cu_image_parse(image, size, &prog)) {
		if (!text[0])
			abort(); /* refused without a reason */
		free(prog.kernels);
		return;
	}
	if (!prog.count || (const uint8_t *)prog.code < image ||
	    prog.code_bytes > (size_t)(image + size - (const uint8_t *)prog.code))
		abort();
	sink += read_through(&prog);
	for (i = 0; i < prog.count; i++)
		if (!prog.kernels[i].info.name[0] ||
		    !memchr(prog.kernels[i].info.name, 0,
			    sizeof(prog.kernels[i].info.name)) ||
		    prog.kernels[i].info.arg_count > HAL_ARGS_MAX)
			abort();
	free(prog.kernels);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct hal_cuda_image *image = malloc(TABLE + size);
	uint32_t format;

	if (!image)
		abort();
	take(data, size);
	for (format = HAL_CUDA_PTX; format <= HAL_CUDA_FATBIN; format++) {
		memcpy(image, table, TABLE);
		memcpy((uint8_t *)image + TABLE, data, size);
		image->bytes = (uint32_t)(TABLE + size);
		image->module_bytes = (uint32_t)size;
		image->format = format;
		take((const uint8_t *)image, TABLE + size);
	}
	free(image);
	return 0;
}
