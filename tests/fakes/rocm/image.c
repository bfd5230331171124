/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images for the stand-in of HIP: code objects as a compiler makes them, as far as they
 * say what kernels take - ELF with a note of MessagePack -, with the kernels' names where
 * code would be.
 */
#include "image.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hal/device/hal_preempt.h>
#include <hal/rocm.h>

#include "kfd.h"

enum {
	CODE_BYTES = 12288,
	GPUS = KFD_GPUS,
	NOTE_AT = 512,
	NAMES_AT = 10240,
	MARKS_AT = 10752,
	TEXT_AT = 11264
};

/* ---- MessagePack ------------------------------------------------------------------- */

struct writer {
	uint8_t *at;
};

static void put(struct writer *w, uint32_t byte)
{
	*w->at++ = (uint8_t)byte;
}

static void put_text(struct writer *w, const char *text, size_t n)
{
	put(w, 0xd9);
	put(w, (uint32_t)n);
	memcpy(w->at, text, n);
	w->at += n;
}

static void put_key(struct writer *w, const char *key)
{
	const size_t n = strlen(key);

	if (n >= 32) {
		put_text(w, key, n);
		return;
	}
	put(w, 0xa0 | (uint32_t)n);
	memcpy(w->at, key, n);
	w->at += n;
}

static void put_number(struct writer *w, uint32_t n)
{
	if (n < 128) {
		put(w, n);
		return;
	}
	put(w, 0xcd);
	put(w, n >> 8);
	put(w, n & 0xff);
}

/* As a compiler lays them out. */
static void put_argument(struct writer *w, const char *kind, uint32_t bytes, uint32_t *at)
{
	const uint32_t alignment = bytes < 8 ? bytes : 8;

	*at = (*at + alignment - 1) / alignment * alignment;
	put(w, 0x83);
	put_key(w, ".offset");
	put_number(w, *at);
	*at += bytes;
	put_key(w, ".size");
	put_number(w, bytes);
	put_key(w, ".value_kind");
	put_key(w, kind);
}

static void put_kernel(struct writer *w, const char *text)
{
	const size_t n = strcspn(text, ":");
	const char *p = text[n] ? text + n + 1 : "";
	uint32_t at = 0;

	put(w, 0x84);
	put_key(w, ".args");
	put(w, 0xdc);
	put(w, 0);
	put(w, (uint32_t)strlen(p) + 4);
	for (; *p; p++)
		put_argument(w, *p == 'm' ? "global_buffer" : "by_value",
			     *p == 'p'   ? (uint32_t)sizeof(struct hal_preempt_launch)
			     : *p == 'm' ? 8
					 : (uint32_t)(*p - '0'),
			     &at);
	at = (at + 7) / 8 * 8;
	put_argument(w, "hidden_block_count_x", 4, &at);
	put_argument(w, "hidden_group_size_x", 2, &at);
	put_argument(w, "hidden_grid_dims", 2, &at);
	put_argument(w, "hidden_global_offset_x", 8, &at);
	put_key(w, ".group_segment_fixed_size");
	put_number(w, 0);
	put_key(w, ".max_flat_workgroup_size");
	put_number(w, 1024);
	put_key(w, ".name");
	put_text(w, text, n);
}

static size_t write_metadata(uint8_t *to, const char *const *kernels, uint32_t count)
{
	struct writer w = {to};
	uint32_t i;

	put(&w, 0x82);
	put_key(&w, "amdhsa.kernels");
	put(&w, 0x90 | count);
	for (i = 0; i < count; i++)
		put_kernel(&w, kernels[i]);
	put_key(&w, "amdhsa.version");
	put(&w, 0x92);
	put(&w, 1);
	put(&w, 2);
	return (size_t)(w.at - to);
}

/* ---- code objects ------------------------------------------------------------------ */

/* The symbols of kernels that take "p"; how many sections that makes. */
static uint16_t write_marks(uint8_t *code, const char *const *kernels, uint32_t count,
			    Elf64_Shdr sections[2])
{
	char *name = (char *)code + NAMES_AT + 1;
	Elf64_Sym sym = {.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT), .st_size = 4};
	uint32_t i, n = 0;

	for (i = 0; i < count; i++) {
		if (kernels[i][strlen(kernels[i]) - 1] != 'p')
			continue;
		sym.st_name = (uint32_t)(name - (char *)code - NAMES_AT);
		name += 1 + sprintf(name, HAL_PREEMPT_MARK "%.*s",
				    (int)strcspn(kernels[i], ":"), kernels[i]);
		memcpy(code + MARKS_AT + n++ * sizeof(sym), &sym, sizeof(sym));
	}
	sections[0] = (Elf64_Shdr){.sh_type = SHT_DYNSYM,
				   .sh_offset = MARKS_AT,
				   .sh_size = n * sizeof(sym),
				   .sh_link = 2,
				   .sh_entsize = sizeof(sym)};
	sections[1] = (Elf64_Shdr){.sh_type = SHT_STRTAB,
				   .sh_offset = NAMES_AT,
				   .sh_size = (uint64_t)(name - (char *)code) - NAMES_AT};
	return n ? 2 : 0;
}

static void write_code(uint8_t *code, const char *const *kernels, uint32_t count,
		       uint32_t device)
{
	Elf64_Ehdr e = {.e_type = ET_DYN,
			.e_machine = 224,
			.e_version = 1,
			.e_phoff = sizeof(e),
			.e_shoff = 256,
			.e_flags = kfd_machine(&kfd_gpus[device]),
			.e_ehsize = sizeof(e),
			.e_phentsize = sizeof(Elf64_Phdr),
			.e_phnum = 1,
			.e_shentsize = sizeof(Elf64_Shdr),
			.e_shnum = 1};
	Elf64_Nhdr note = {.n_namesz = 7, .n_type = 32};
	Elf64_Phdr segment = {.p_type = PT_NOTE, .p_offset = NOTE_AT};
	Elf64_Shdr text = {.sh_type = SHT_PROGBITS, .sh_offset = TEXT_AT}, marks[2];
	char *at = (char *)code + TEXT_AT;
	uint32_t i;

	memset(code, 0, CODE_BYTES);
	memcpy(e.e_ident, ELFMAG, SELFMAG);
	e.e_ident[EI_CLASS] = ELFCLASS64;
	e.e_ident[EI_DATA] = ELFDATA2LSB;
	e.e_ident[EI_VERSION] = EV_CURRENT;
	e.e_ident[EI_OSABI] = 64;
	note.n_descsz = (uint32_t)write_metadata(code + NOTE_AT + sizeof(note) + 8,
						 kernels, count);
	segment.p_filesz = sizeof(note) + 8 + note.n_descsz;
	for (i = 0; i < count; i++)
		at += sprintf(at, "%s%s\n", kernels[i],
			      strchr(kernels[i], ':') ? "h" : ":h");
	text.sh_size = (uint64_t)(at + 1 - (char *)code) - TEXT_AT;
	e.e_shnum = (uint16_t)(1 + write_marks(code, kernels, count, marks));
	memcpy(code, &e, sizeof(e));
	memcpy(code + sizeof(e), &segment, sizeof(segment));
	memcpy(code + e.e_shoff, &text, sizeof(text));
	memcpy(code + e.e_shoff + sizeof(text), marks,
	       (e.e_shnum - 1u) * sizeof(marks[0]));
	memcpy(code + NOTE_AT, &note, sizeof(note));
	memcpy(code + NOTE_AT + sizeof(note), "AMDGPU", 7);
}

static void write_table(struct hal_rocm_image *head, const char *const *kernels,
			uint32_t count, uint32_t group_size)
{
	struct hal_rocm_kernel *k = (void *)(head + 1);
	uint32_t i;

	head->magic = HAL_ROCM_MAGIC;
	head->version = HAL_ROCM_VERSION;
	head->kernel_count = count;
	head->kernel_size = sizeof(*k);
	for (i = 0; i < count; i++, k++) {
		const size_t n = strcspn(kernels[i], ":");
		const char *p = kernels[i][n] ? kernels[i] + n + 1 : "";

		memcpy(k->name, kernels[i], n);
		k->block[0] = group_size;
		for (; *p && *p != 'p'; p++)
			k->scalar_bytes[k->arg_count++] =
				*p == 'm' ? 0 : (uint32_t)(*p - '0');
	}
}

static struct hal_rocm_image *make_image(const char *const *kernels, uint32_t count,
					 uint32_t group_size, uint32_t code_bytes,
					 uint8_t **code, size_t *size)
{
	const size_t table =
		sizeof(struct hal_rocm_image) + count * sizeof(struct hal_rocm_kernel);
	struct hal_rocm_image *head = calloc(1, table + code_bytes);

	if (!head)
		abort();
	write_table(head, kernels, count, group_size);
	*size = table + code_bytes;
	head->bytes = (uint32_t)*size;
	head->code_bytes = code_bytes;
	*code = (uint8_t *)head + table;
	return head;
}

void *make_rocm_code(const char *const *kernels, uint32_t count, uint32_t group_size,
		     uint32_t device, size_t *size)
{
	uint8_t *code;
	struct hal_rocm_image *head =
		make_image(kernels, count, group_size, CODE_BYTES, &code, size);

	head->format = HAL_ROCM_CODE_OBJECT;
	write_code(code, kernels, count, device);
	return head;
}

void *make_rocm_image(const char *const *kernels, uint32_t count, uint32_t group_size,
		      size_t *size)
{
	static const char host[] = "host-x86_64-unknown-linux--";
	uint8_t *code, *at;
	struct hal_rocm_image *head = make_image(kernels, count, group_size,
						 (GPUS + 1) * CODE_BYTES, &code, size);
	uint64_t entry[3] = {0, 0, sizeof(host) - 1}, n = GPUS + 1;
	uint32_t i;

	head->format = HAL_ROCM_BUNDLE;
	memcpy(code, "__CLANG_OFFLOAD_BUNDLE__", 24);
	memcpy(code + 24, &n, sizeof(n));
	at = code + 32;
	memcpy(at, entry, sizeof(entry));
	memcpy(at + sizeof(entry), host, sizeof(host) - 1);
	at += sizeof(entry) + sizeof(host) - 1;
	for (i = 0; i < GPUS; i++) {
		char name[64];

		entry[0] = (i + UINT64_C(1)) * CODE_BYTES;
		entry[1] = CODE_BYTES;
		entry[2] = (uint64_t)snprintf(
			name, sizeof(name), "hipv4-amdgcn-amd-amdhsa--%.*s",
			(int)strcspn(kfd_gpus[i].arch, ":"), kfd_gpus[i].arch);
		memcpy(at, entry, sizeof(entry));
		memcpy(at + sizeof(entry), name, entry[2]);
		at += sizeof(entry) + entry[2];
		write_code(code + entry[0], kernels, count, i);
	}
	return head;
}
