/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images: the table of hal/cuda.h and what is behind it.  The driver is given no length
 * with a module and believes what that says of itself: so whatever says where something
 * lies is checked here.
 */
#define _GNU_SOURCE
#include "internal.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MACHINE_CUDA 190u
#define FATBIN_MAGIC 0xba55ed50u
#define KERNELS_MOST 4096u

struct fatbin {
	uint32_t magic;
	uint16_t version, header_bytes;
	uint64_t bytes; /* behind the header */
};

static int bad(const char *what)
{
	return cu_host->fail(EINVAL, "cuda: image: %s", what);
}

static bool within(uint64_t at, uint64_t bytes, uint64_t all)
{
	return at <= all && bytes <= all - at;
}

static int check_cubin(const uint8_t *code, uint64_t bytes)
{
	Elf64_Ehdr e;
	Elf64_Shdr s;
	Elf64_Phdr p;
	uint32_t i;

	if (bytes < sizeof(e))
		return bad("the cubin is truncated within its header");
	memcpy(&e, code, sizeof(e));
	if (memcmp(e.e_ident, ELFMAG, SELFMAG) != 0 ||
	    e.e_ident[EI_CLASS] != ELFCLASS64 || e.e_ident[EI_DATA] != ELFDATA2LSB ||
	    e.e_machine != MACHINE_CUDA)
		return bad("the module is not a cubin (a 64-bit ELF file for CUDA)");
	if (e.e_shnum && (e.e_shentsize != sizeof(s) ||
			  !within(e.e_shoff, (uint64_t)e.e_shnum * sizeof(s), bytes)))
		return bad("the cubin's section table lies outside the file");
	if (e.e_phnum && (e.e_phentsize != sizeof(p) ||
			  !within(e.e_phoff, (uint64_t)e.e_phnum * sizeof(p), bytes)))
		return bad("the cubin's program table lies outside the file");
	for (i = 0; i < e.e_shnum; i++) {
		memcpy(&s, code + e.e_shoff + i * sizeof(s), sizeof(s));
		if (s.sh_type != SHT_NOBITS && !within(s.sh_offset, s.sh_size, bytes))
			return bad("a section of the cubin lies outside the file");
		if (s.sh_type == SHT_STRTAB && s.sh_size &&
		    code[s.sh_offset + s.sh_size - 1])
			return bad("a string table of the cubin is not terminated");
	}
	for (i = 0; i < e.e_phnum; i++) {
		memcpy(&p, code + e.e_phoff + i * sizeof(p), sizeof(p));
		if (!within(p.p_offset, p.p_filesz, bytes))
			return bad("a segment of the cubin lies outside the file");
	}
	return 0;
}

static int check_fatbin(const uint8_t *code, uint64_t bytes)
{
	struct fatbin f;

	if (bytes < sizeof(f))
		return bad("the fatbin is truncated within its header");
	memcpy(&f, code, sizeof(f));
	if (f.magic != FATBIN_MAGIC || f.header_bytes < sizeof(f))
		return bad("the module is not a fatbin");
	if (!within(f.header_bytes, f.bytes, bytes))
		return bad("the fatbin is truncated");
	return 0;
}

static int check_module(uint32_t format, const uint8_t *code, uint32_t bytes)
{
	switch (format) {
	case HAL_CUDA_PTX:
		if (!bytes || code[bytes - 1])
			return bad("the PTX must end in a zero byte");
		return 0;
	case HAL_CUDA_CUBIN:
		return check_cubin(code, bytes);
	case HAL_CUDA_FATBIN:
		return check_fatbin(code, bytes);
	default:
		return cu_host->fail(EINVAL, "cuda: image: unknown module format %u",
				     format);
	}
}

static int parse_kernel(const struct hal_cuda_kernel *from, struct cu_kernel *k)
{
	uint32_t i;

	memcpy(k->info.name, from->name, sizeof(k->info.name));
	if (!from->name[0] || !memchr(from->name, 0, sizeof(from->name)))
		return bad("a kernel's name is empty or not terminated");
	if (from->arg_count > HAL_ARGS_MAX)
		return cu_host->fail(
			EINVAL,
			"cuda: image: kernel %s has %u arguments; the limit is %u",
			k->info.name, from->arg_count, HAL_ARGS_MAX);
	k->info.arg_count = from->arg_count;
	k->info.work = from->work;
	k->shared_bytes = from->shared_bytes;
	for (i = 0; i < 3; i++)
		k->block[i] = from->block[i] ? from->block[i] : 1;
	for (i = 0; i < from->arg_count; i++) {
		const uint32_t n = from->scalar_bytes[i];

		if (n != 0 && n != 1 && n != 2 && n != 4 && n != 8)
			return cu_host->fail(EINVAL,
					     "cuda: image: kernel %s: scalar argument %u "
					     "has %u bytes; it must have 1, 2, 4 or 8",
					     k->info.name, i, n);
		if (n && from->arg_bytes[i])
			return cu_host->fail(EINVAL,
					     "cuda: image: kernel %s: argument %u has "
					     "both scalar_bytes and arg_bytes",
					     k->info.name, i);
		stream_param_set(&k->params, i, n);
		k->info.arg_bytes[i] = from->arg_bytes[i];
	}
	return 0;
}

int cu_image_parse(const void *image, size_t size, struct cu_program *prog)
{
	const uint8_t *at = image;
	struct hal_cuda_image h;
	struct hal_cuda_kernel k;
	uint64_t table;
	uint32_t i;
	int err = 0;

	if (size < sizeof(h))
		return bad("it is shorter than its header");
	memcpy(&h, image, sizeof(h));
	if (h.magic != HAL_CUDA_MAGIC)
		return bad("it does not begin with the header of hal/cuda.h");
	if (h.version != HAL_CUDA_VERSION || h.kernel_size != sizeof(k))
		return cu_host->fail(
			EINVAL,
			"cuda: image: version %u with kernels of %u bytes; this library "
			"reads version %u with kernels of %zu bytes",
			h.version, h.kernel_size, HAL_CUDA_VERSION, sizeof(k));
	table = sizeof(h) + (uint64_t)h.kernel_count * sizeof(k);
	if (!h.kernel_count || h.kernel_count > KERNELS_MOST)
		return cu_host->fail(EINVAL,
				     "cuda: image: %u kernels; it must have 1 to %u",
				     h.kernel_count, KERNELS_MOST);
	if (h.bytes != size || table + h.module_bytes != size)
		return bad("its size differs from the sum of its parts");
	err = check_module(h.format, at + table, h.module_bytes);
	if (err)
		return err;
	prog->kernels = calloc(h.kernel_count, sizeof(*prog->kernels));
	if (!prog->kernels)
		return cu_host->fail(ENOMEM, "cuda: no memory for %u kernels",
				     h.kernel_count);
	prog->count = h.kernel_count;
	prog->code = at + table;
	prog->format = h.format;
	prog->code_bytes = h.module_bytes;
	for (i = 0; !err && i < h.kernel_count; i++) {
		memcpy(&k, at + sizeof(h) + i * sizeof(k), sizeof(k));
		err = parse_kernel(&k, &prog->kernels[i]);
	}
	return err;
}
