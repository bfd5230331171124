/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code objects: ELF for amdgcn, with a note (MessagePack) that says what each kernel
 * takes.  HIP reads as many bytes of each argument as that says, wherever they are: so
 * the image's table must say the same.  Layouts: LLVM's "User Guide for AMDGPU Backend".
 * A variable says of a kernel that it follows hal_preempt.h: then it has one argument
 * more, which the table does not name.
 */
#define _GNU_SOURCE
#include "internal.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

#define MACHINE_AMDGPU 224u
#define OS_HSA         64u
#define NOTE_METADATA  32u
#define DEPTH_MOST     16u

static int odd(const char *what)
{
	return rocm_host->fail(EINVAL, "rocm: image: code object: %s", what);
}

static bool inside(uint64_t at, uint64_t bytes, uint64_t all)
{
	return bytes <= all && at <= all - bytes;
}

/* ---- MessagePack ------------------------------------------------------------------- */

enum value_kind { VALUE_NUMBER, VALUE_TEXT, VALUE_LIST, VALUE_MAP, VALUE_OTHER };

struct value {
	enum value_kind kind;
	uint64_t n; /* the number; bytes of a text; entries of a list or a map */
	const char *text;
};

struct reader {
	const uint8_t *at, *end;
};

static bool take_bytes(struct reader *r, uint32_t bytes, uint64_t *value)
{
	*value = 0;
	if ((size_t)(r->end - r->at) < bytes)
		return false;
	while (bytes--)
		*value = *value << 8 | *r->at++;
	return true;
}

static bool take_text(struct reader *r, struct value *v, enum value_kind kind)
{
	v->kind = kind;
	v->text = (const char *)r->at;
	if ((size_t)(r->end - r->at) < v->n)
		return false;
	r->at += v->n;
	return true;
}

/* Entries are at least a byte each: what says that it has more is cut. */
static bool take_many(const struct reader *r, struct value *v, enum value_kind kind)
{
	v->kind = kind;
	return v->n <= (uint64_t)(r->end - r->at);
}

/* A value, or the head of a list or map.  False: it is none. */
static bool take_value(struct reader *r, struct value *v)
{
	uint64_t b;

	if (!take_bytes(r, 1, &b))
		return false;
	v->kind = VALUE_OTHER;
	v->n = b;
	if (b < 0x80) {
		v->kind = VALUE_NUMBER;
		return true;
	}
	v->n = b & 0x0f;
	if (b < 0x90)
		return take_many(r, v, VALUE_MAP);
	if (b < 0xa0)
		return take_many(r, v, VALUE_LIST);
	v->n = b & 0x1f;
	if (b < 0xc0)
		return take_text(r, v, VALUE_TEXT);
	if (b <= 0xc3)
		return b != 0xc1; /* nil, false, true */
	if (b <= 0xc6)            /* bytes */
		return take_bytes(r, 1u << (b - 0xc4), &v->n) &&
		       take_text(r, v, VALUE_OTHER);
	if (b >= 0xcc && b <= 0xcf) {
		v->kind = VALUE_NUMBER;
		return take_bytes(r, 1u << (b - 0xcc), &v->n);
	}
	if (b >= 0xd9 && b <= 0xdb)
		return take_bytes(r, 1u << (b - 0xd9), &v->n) &&
		       take_text(r, v, VALUE_TEXT);
	if (b == 0xdc || b == 0xdd)
		return take_bytes(r, 2u << (b - 0xdc), &v->n) &&
		       take_many(r, v, VALUE_LIST);
	if (b == 0xde || b == 0xdf)
		return take_bytes(r, 2u << (b - 0xde), &v->n) &&
		       take_many(r, v, VALUE_MAP);
	if (b == 0xca || b == 0xcb)
		return take_bytes(r, b == 0xca ? 4 : 8, &v->n);
	if (b >= 0xd0 && b <= 0xd3)
		return take_bytes(r, 1u << (b - 0xd0), &v->n);
	if (b >= 0xd4 && b <= 0xd8) {
		v->n = 1 + (1u << (b - 0xd4)); /* and a type */
		return take_text(r, v, VALUE_OTHER);
	}
	return b >=
	       0xe0; /* a small negative number; extensions of a length there are none */
}

/* With all that is in it. */
static bool skip(struct reader *r)
{
	uint64_t left = 1;
	struct value v;

	while (left--) {
		if (!take_value(r, &v))
			return false;
		if (v.kind == VALUE_LIST)
			left += v.n;
		else if (v.kind == VALUE_MAP)
			left += 2 * v.n;
	}
	return true;
}

static bool is(const struct value *v, const char *text)
{
	return v->kind == VALUE_TEXT && v->n == strlen(text) &&
	       memcmp(v->text, text, v->n) == 0;
}

/* Of the map at r the value of a key: found is there then; r is behind the map.  False:
 * it is no map. */
static bool find(struct reader *r, const char *key, struct reader *found)
{
	struct value map, k;

	found->at = found->end = NULL;
	if (!take_value(r, &map) || map.kind != VALUE_MAP)
		return false;
	while (map.n--) {
		if (!take_value(r, &k) || k.kind != VALUE_TEXT)
			return false;
		if (is(&k, key))
			*found = *r;
		if (!skip(r))
			return false;
	}
	return true;
}

/* The same, of a copy of r, and the value there. */
static bool look_up(struct reader map, const char *key, struct value *v)
{
	struct reader at;

	return find(&map, key, &at) && at.at && take_value(&at, v);
}

/* ---- which kernels follow hal_preempt.h -------------------------------------------- */

#define MARK_ANY "hal_preempt_"

static const char *section_at(const uint8_t *code, const Elf64_Ehdr *e, uint32_t i,
			      Elf64_Shdr *s)
{
	memcpy(s, code + e->e_shoff + i * sizeof(*s), sizeof(*s));
	return (const char *)code + s->sh_offset;
}

/* Tables of names end in a zero byte: that has been checked. */
static int note_mark(const char *name, struct rocm_program *prog)
{
	const size_t any = strlen(MARK_ANY), mark = strlen(HAL_PREEMPT_MARK);
	const char *kernel;
	uint32_t i;

	if (strncmp(name, MARK_ANY, any) != 0)
		return 0;
	kernel = name + any + strspn(name + any, "0123456789");
	if (kernel == name + any || *kernel != '_')
		return 0;
	for (i = 0; i < prog->count; i++) {
		struct rocm_kernel *k = &prog->kernels[i];

		if (strcmp(k->info.name, kernel + 1) != 0)
			continue;
		if (strncmp(name, HAL_PREEMPT_MARK, mark) != 0)
			return rocm_host->fail(ENOTSUP,
					       "rocm: image: kernel %s was built with "
					       "another version of hal_preempt.h: its "
					       "mark is %.40s, not " HAL_PREEMPT_MARK,
					       k->info.name, name);
		k->follows = true;
	}
	return 0;
}

static int find_marks(const uint8_t *code, const Elf64_Ehdr *e, struct rocm_program *prog)
{
	Elf64_Shdr s, names;
	uint64_t at;
	uint32_t i;
	int err = 0;

	for (i = 0; i < e->e_shnum; i++) {
		const char *symbols = section_at(code, e, i, &s), *text;

		if (s.sh_type != SHT_DYNSYM || s.sh_link >= e->e_shnum)
			continue;
		text = section_at(code, e, s.sh_link, &names);
		if (names.sh_type != SHT_STRTAB)
			continue;
		for (at = 0; !err && inside(at, sizeof(Elf64_Sym), s.sh_size);
		     at += sizeof(Elf64_Sym)) {
			Elf64_Sym sym;

			memcpy(&sym, symbols + at, sizeof(sym));
			if (sym.st_name < names.sh_size)
				err = note_mark(text + sym.st_name, prog);
		}
	}
	return err;
}

/* ---- kernels ----------------------------------------------------------------------- */

static bool is_hidden(const struct value *kind)
{
	return kind->n > 7 && memcmp(kind->text, "hidden_", 7) == 0;
}

static int check_given(const struct rocm_kernel *k, const struct value *size,
		       const struct value *kind)
{
	if (size->n == sizeof(struct hal_preempt_launch) && is(kind, "by_value"))
		return 0;
	return rocm_host->fail(
		EINVAL,
		"rocm: image: kernel %s is marked as built with hal_preempt.h, but "
		"argument %u has %u bytes instead of %u",
		k->info.name, k->info.arg_count, (uint32_t)size->n,
		(uint32_t)sizeof(struct hal_preempt_launch));
}

/* Where it is in the block of arguments; HIP alone needs no word of it. */
static uint16_t place_of(struct reader arg)
{
	struct value at;

	return look_up(arg, ".offset", &at) && at.kind == VALUE_NUMBER &&
			       at.n < ROCM_NOWHERE
		       ? (uint16_t)at.n
		       : ROCM_NOWHERE;
}

/* What launches of HIP's have, and others have to: all that is of the launch, and that
 * some is of the runtime. */
static void note_hidden(struct reader arg, const struct value *kind,
			struct rocm_kernel *k)
{
	static const char *const kinds[ROCM_HIDDEN_COUNT] = {
		"hidden_block_count_x", "hidden_block_count_y",   "hidden_block_count_z",
		"hidden_group_size_x",  "hidden_group_size_y",    "hidden_group_size_z",
		"hidden_grid_dims",     "hidden_dynamic_lds_size"};
	static const char *const runtimes[] = {
		"hidden_printf_buffer", "hidden_hostcall_buffer", "hidden_heap_v1"};
	uint32_t i;

	for (i = 0; i < ROCM_HIDDEN_COUNT; i++)
		if (is(kind, kinds[i]))
			k->hidden[i] = place_of(arg);
	for (i = 0; i < sizeof(runtimes) / sizeof(runtimes[0]); i++)
		if (is(kind, runtimes[i]))
			memcpy(k->needs, runtimes[i], strlen(runtimes[i]) + 1);
}

static int check_argument(struct reader arg, struct rocm_kernel *k, uint32_t i)
{
	const uint32_t bytes = i < HAL_ARGS_MAX ? k->params.scalar_bytes[i] : 0;
	struct value size, kind;

	if (!look_up(arg, ".size", &size) || size.kind != VALUE_NUMBER ||
	    !look_up(arg, ".value_kind", &kind) || kind.kind != VALUE_TEXT)
		return odd("an argument has no size or kind");
	if (i <= k->info.arg_count)
		k->at[i] = place_of(arg);
	if (k->follows && i == k->info.arg_count)
		return check_given(k, &size, &kind);
	if (i >= k->info.arg_count)
		return rocm_host->fail(EINVAL,
				       "rocm: image: kernel %s has more arguments than "
				       "the %u that the table declares",
				       k->info.name, k->info.arg_count);
	if (size.n != (bytes ? bytes : 8))
		return rocm_host->fail(EINVAL,
				       "rocm: image: kernel %s: argument %u has %u bytes "
				       "in the code object, but %u in the table",
				       k->info.name, i, (uint32_t)size.n,
				       bytes ? bytes : 8);
	if (bytes ? !is(&kind, "by_value")
		  : !is(&kind, "global_buffer") && !is(&kind, "by_value"))
		return rocm_host->fail(EINVAL,
				       "rocm: image: kernel %s: argument %u is of the "
				       "unsupported kind %.*s",
				       k->info.name, i, (int)kind.n, kind.text);
	return 0;
}

static int check_arguments(struct reader kernel, struct rocm_kernel *k)
{
	struct reader at;
	struct value list = {.n = 0}, kind;
	uint32_t count = 0;
	uint64_t i;
	int err = 0;

	memset(k->at, 0xff, sizeof(k->at));
	memset(k->hidden, 0xff, sizeof(k->hidden));
	if (!find(&kernel, ".args", &at))
		return odd("a kernel's metadata are not a map");
	if (at.at && (!take_value(&at, &list) || list.kind != VALUE_LIST))
		return odd("a kernel's arguments are not a list");
	for (i = 0; i < list.n && !err; i++) {
		struct reader arg = at;

		if (!skip(&at))
			return odd("an argument is truncated");
		if (look_up(arg, ".value_kind", &kind) && kind.kind == VALUE_TEXT &&
		    is_hidden(&kind)) {
			note_hidden(arg, &kind, k);
			continue;
		}
		err = check_argument(arg, k, count++);
	}
	if (!err && k->follows && count == k->info.arg_count)
		err = rocm_host->fail(EINVAL,
				      "rocm: image: kernel %s is marked as built with "
				      "hal_preempt.h, but lacks its argument",
				      k->info.name);
	else if (!err && count != k->info.arg_count + k->follows)
		err = rocm_host->fail(EINVAL,
				      "rocm: image: kernel %s has %u arguments, but the "
				      "table declares %u",
				      k->info.name, count, k->info.arg_count);
	return err;
}

/* What a launch may set: as the code was compiled for.  .shared_max is yet to be limited
 * by the device. */
static void note_limits(struct reader kernel, struct rocm_kernel *k)
{
	struct value v;

	memcpy(k->info.group_size, k->block, sizeof(k->block));
	if (look_up(kernel, ".max_flat_workgroup_size", &v) && v.kind == VALUE_NUMBER &&
	    !look_up(kernel, ".reqd_workgroup_size", &v))
		(void)look_up(kernel, ".max_flat_workgroup_size", &v);
	else
		v.n = 0;
	k->info.group_size_max = v.n < UINT32_MAX ? (uint32_t)v.n : UINT32_MAX;
	k->shared_own = look_up(kernel, ".group_segment_fixed_size", &v) &&
					v.kind == VALUE_NUMBER && v.n < UINT32_MAX
				? (uint32_t)v.n
				: UINT32_MAX;
}

static int check_group(struct reader kernel, const struct rocm_kernel *k)
{
	const uint64_t items = (uint64_t)k->block[0] * k->block[1] * k->block[2];
	struct value most;

	if (!look_up(kernel, ".max_flat_workgroup_size", &most) ||
	    most.kind != VALUE_NUMBER || items <= most.n)
		return 0;
	return rocm_host->fail(EINVAL,
			       "rocm: image: kernel %s: groups of %u x %u x %u "
			       "work-items exceed the %u that it was compiled for",
			       k->info.name, k->block[0], k->block[1], k->block[2],
			       (uint32_t)most.n);
}

/* kernels: at the list's first, of count. */
static int check_kernel(struct reader kernels, uint64_t count, struct rocm_kernel *k)
{
	struct value name;

	while (count--) {
		const struct reader kernel = kernels;
		int err;

		if (!skip(&kernels))
			return odd("its list of kernels is truncated");
		if (!look_up(kernel, ".name", &name) || !is(&name, k->info.name))
			continue;
		err = check_arguments(kernel, k);
		note_limits(kernel, k);
		return err ? err : check_group(kernel, k);
	}
	return rocm_host->fail(EINVAL, "rocm: image: the code object has no kernel %s",
			       k->info.name);
}

static int check_metadata(struct reader r, const struct rocm_program *prog)
{
	struct reader kernels;
	struct value list;
	uint32_t i;
	int err = 0;

	if (!find(&r, "amdhsa.kernels", &kernels) || !kernels.at ||
	    !take_value(&kernels, &list) || list.kind != VALUE_LIST)
		return odd("its metadata have no list of kernels");
	for (i = 0; i < prog->count && !err; i++)
		err = check_kernel(kernels, list.n, &prog->kernels[i]);
	return err;
}

/* ---- ELF --------------------------------------------------------------------------- */

/* The metadata among notes; false: not there. */
static bool find_metadata(const uint8_t *notes, uint64_t bytes, struct reader *r)
{
	static const char owner[] = "AMDGPU";
	uint64_t at = 0;
	Elf64_Nhdr n;

	while (inside(at, sizeof(n), bytes)) {
		uint64_t name = at + sizeof(n), desc;

		memcpy(&n, notes + at, sizeof(n));
		desc = name + ((n.n_namesz + UINT64_C(3)) & ~UINT64_C(3));
		if (!inside(name, n.n_namesz, bytes) || !inside(desc, n.n_descsz, bytes))
			return false;
		if (n.n_type == NOTE_METADATA && n.n_namesz == sizeof(owner) &&
		    memcmp(notes + name, owner, sizeof(owner)) == 0) {
			r->at = notes + desc;
			r->end = r->at + n.n_descsz;
			return true;
		}
		at = desc + ((n.n_descsz + UINT64_C(3)) & ~UINT64_C(3));
	}
	return false;
}

static int check_sections(const uint8_t *code, uint64_t bytes, const Elf64_Ehdr *e)
{
	Elf64_Shdr s;
	uint32_t i;

	if (e->e_shnum && (e->e_shentsize != sizeof(s) ||
			   !inside(e->e_shoff, e->e_shnum * sizeof(s), bytes)))
		return odd("its section table lies outside the file");
	for (i = 0; i < e->e_shnum; i++) {
		memcpy(&s, code + e->e_shoff + i * sizeof(s), sizeof(s));
		if (s.sh_type == SHT_NOBITS)
			continue;
		if (!inside(s.sh_offset, s.sh_size, bytes))
			return odd("a section lies outside the file");
		if (s.sh_type == SHT_STRTAB && s.sh_size &&
		    code[s.sh_offset + s.sh_size - 1])
			return odd("a string table is not terminated");
	}
	return 0;
}

static int check_segments(const uint8_t *code, uint64_t bytes, const Elf64_Ehdr *e,
			  struct reader *r)
{
	Elf64_Phdr p;
	uint32_t i;

	if (e->e_phnum && (e->e_phentsize != sizeof(p) ||
			   !inside(e->e_phoff, e->e_phnum * sizeof(p), bytes)))
		return odd("its segment table lies outside the file");
	for (i = 0; i < e->e_phnum; i++) {
		memcpy(&p, code + e->e_phoff + i * sizeof(p), sizeof(p));
		if (!inside(p.p_offset, p.p_filesz, bytes))
			return odd("a segment lies outside the file");
		if (p.p_type == PT_NOTE && !r->at)
			(void)find_metadata(code + p.p_offset, p.p_filesz, r);
	}
	return r->at ? 0 : odd("it has no metadata");
}

/* By the machine's number where that is known here; else HIP will say. */
static int check_machine(uint32_t flags, const char *arch)
{
	static const struct {
		uint8_t number;
		const char *name;
	} all[] = {
		{0x2c, "gfx900"},  {0x2d, "gfx902"},  {0x2e, "gfx904"},
		{0x2f, "gfx906"},  {0x30, "gfx908"},  {0x31, "gfx909"},
		{0x32, "gfx90c"},  {0x33, "gfx1010"}, {0x34, "gfx1011"},
		{0x35, "gfx1012"}, {0x36, "gfx1030"}, {0x37, "gfx1031"},
		{0x38, "gfx1032"}, {0x39, "gfx1033"}, {0x3f, "gfx90a"},
		{0x40, "gfx940"},  {0x41, "gfx1100"}, {0x46, "gfx1101"},
		{0x47, "gfx1102"}, {0x4c, "gfx942"},
	};
	const size_t n = strcspn(arch, ":");
	size_t i;

	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (all[i].number == (flags & 0xff) &&
		    (strlen(all[i].name) != n || strncmp(all[i].name, arch, n) != 0))
			return rocm_host->fail(ENOTSUP,
					       "rocm: image: the code object is for %s, "
					       "but the device is %s",
					       all[i].name, arch);
	return 0;
}

int rocm_code_check(const uint8_t *code, uint64_t bytes, const char *arch,
		    struct rocm_program *prog)
{
	struct reader r = {NULL, NULL};
	Elf64_Ehdr e;
	int err;

	if (bytes < sizeof(e))
		return odd("it is truncated within its header");
	memcpy(&e, code, sizeof(e));
	if (memcmp(e.e_ident, ELFMAG, SELFMAG) != 0 ||
	    e.e_ident[EI_CLASS] != ELFCLASS64 || e.e_ident[EI_DATA] != ELFDATA2LSB ||
	    e.e_machine != MACHINE_AMDGPU || e.e_ident[EI_OSABI] != OS_HSA)
		return odd("it is not a 64-bit ELF file for amdgcn-amd-amdhsa");
	err = check_sections(code, bytes, &e);
	if (!err)
		err = check_segments(code, bytes, &e, &r);
	if (!err)
		err = check_machine(e.e_flags, arch);
	if (!err)
		err = find_marks(code, &e, prog);
	return err ? err : check_metadata(r, prog);
}
