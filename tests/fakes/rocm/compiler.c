/* SPDX-License-Identifier: Apache-2.0 */
/* HIP's compiler, as far as it takes text that has a kernel of the stand-in's: what comes
 * of it is a code object of tests/fakes/rocm/image.c's kind. */
#define _GNU_SOURCE
#include "internal.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	RTC_SUCCESS,
	RTC_OUT_OF_MEMORY,
	RTC_INVALID_INPUT = 3,
	RTC_INVALID_PROGRAM,
	RTC_INVALID_OPTION,
	RTC_COMPILATION
};

#define TEXT_AT   (sizeof(Elf64_Ehdr) + sizeof(Elf64_Shdr))
#define BUNDLE_AT 256u /* the code in a bundle */

struct program {
	char *source;
	char code[1024];
	size_t bytes; /* 0: it has not been compiled */
};

uint32_t do_hiprtcCreateProgram(void **program, const char *source, const char *name,
				int count, const char *const *headers,
				const char *const *names)
{
	struct program *p;

	*program = (void *)(uintptr_t)0x6a756e6b;
	if (!source || !name || count || headers || names)
		return RTC_INVALID_INPUT;
	p = calloc(1, sizeof(*p));
	if (p)
		p->source = strdup(source);
	if (!p || !p->source) {
		free(p);
		return RTC_OUT_OF_MEMORY;
	}
	*program = p;
	return RTC_SUCCESS;
}

/* NULL: no such processor. */
static const struct kfd_gpu *target_of(int count, const char *const *options)
{
	static const char option[] = "--gpu-architecture=";
	int i;
	uint32_t g;

	for (i = 0; i < count; i++)
		for (g = 0; g < KFD_GPUS; g++)
			if (strncmp(options[i], option, sizeof(option) - 1) == 0 &&
			    strcmp(options[i] + sizeof(option) - 1, kfd_gpus[g].arch) ==
				    0)
				return &kfd_gpus[g];
	return NULL;
}

/* From 6 on the code is in a bundle. */
static void put_in_bundle(struct program *p, const struct kfd_gpu *g)
{
	const uint64_t count = 1;
	uint64_t entry[3] = {BUNDLE_AT, p->bytes, 0};
	char name[64];

	if (hip_version() < 60000000)
		return;
	memmove(p->code + BUNDLE_AT, p->code, p->bytes);
	memset(p->code, 0, BUNDLE_AT);
	entry[2] = (uint64_t)snprintf(name, sizeof(name), "hipv4-amdgcn-amd-amdhsa--%.*s",
				      (int)strcspn(g->arch, ":"), g->arch);
	memcpy(p->code, "__CLANG_OFFLOAD_BUNDLE__", 24);
	memcpy(p->code + 24, &count, sizeof(count));
	memcpy(p->code + 32, entry, sizeof(entry));
	memcpy(p->code + 32 + sizeof(entry), name, entry[2]);
	p->bytes += BUNDLE_AT;
}

uint32_t do_hiprtcCompileProgram(void *program, int count, const char *const *options)
{
	const struct kfd_gpu *g = target_of(count, options);
	struct program *p = program;
	Elf64_Ehdr e = {.e_ident = ELFMAG, .e_shoff = sizeof(e), .e_shnum = 1};
	Elf64_Shdr text = {.sh_type = SHT_PROGBITS, .sh_offset = TEXT_AT};

	if (!g)
		return RTC_INVALID_OPTION;
	if (!strstr(p->source, "void hal_where("))
		return RTC_COMPILATION;
	e.e_ident[EI_CLASS] = ELFCLASS64;
	e.e_ident[EI_DATA] = ELFDATA2LSB;
	e.e_flags = kfd_machine(g);
	memcpy(p->code, &e, sizeof(e));
	memcpy(p->code + sizeof(e), &text, sizeof(text));
	p->bytes =
		TEXT_AT + 1 +
		(size_t)snprintf(
			p->code + TEXT_AT, sizeof(p->code) - TEXT_AT, "hal_where:m\n%s%s",
			strstr(p->source, "void hal_fill(") ? "hal_fill:m88\n" : "",
			strstr(p->source, "void hal_copy(") ? "hal_copy:mm8\n" : "");
	put_in_bundle(p, g);
	return RTC_SUCCESS;
}

uint32_t do_hiprtcGetCodeSize(void *program, size_t *bytes)
{
	const struct program *p = program;

	*bytes = p->bytes;
	return p->bytes ? RTC_SUCCESS : RTC_INVALID_PROGRAM;
}

uint32_t do_hiprtcGetCode(void *program, char *code)
{
	const struct program *p = program;

	memcpy(code, p->code, p->bytes);
	return p->bytes ? RTC_SUCCESS : RTC_INVALID_PROGRAM;
}

uint32_t do_hiprtcDestroyProgram(void **program)
{
	struct program *p = *program;

	free(p->source);
	free(p);
	*program = NULL;
	return RTC_SUCCESS;
}
