/* SPDX-License-Identifier: Apache-2.0 */
/* cache.c - compiled programs in a folder, a file for each model.
 *
 * A file is a header, then the bytes of a .npu file, whose own checksum leaves out sizes.
 * The key is in the name, too, so that a file under a wrong name is noticed. */
#include "container.h"

#include <elf.h>
#include <errno.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <hal/hal.h>

#include "model.h"

#define FORMAT 2u /* of the key */

struct header {
	char magic[8];
	uint64_t key[2];
	uint64_t sum[2]; /* hash of the bytes that follow */
	uint64_t bytes;  /* their number */
};

/* Hash with two functions after Fowler, Noll and Vo, of different factors and orders. */
static void hash(uint64_t key[2], const void *data, size_t size)
{
	const uint8_t *bytes = data;

	for (size_t i = 0; i < size; i++) {
		key[0] = (key[0] ^ bytes[i]) * UINT64_C(0x100000001b3);
		key[1] = key[1] * UINT64_C(0x9e3779b97f4a7c15) + bytes[i] + 1;
		key[1] ^= key[1] >> 29;
	}
}

static void hash_number(uint64_t key[2], uint32_t x)
{
	const uint8_t bytes[] = {(uint8_t)x, (uint8_t)(x >> 8), (uint8_t)(x >> 16),
				 (uint8_t)(x >> 24)};

	hash(key, bytes, sizeof(bytes));
}

/* The notes' words are of 32 bits in files of both classes. */
static size_t rounded(size_t bytes)
{
	return (bytes + 3) & ~(size_t)3;
}

/* Hash the build ID if it is among size bytes of notes. */
static bool hash_build_id(uint64_t key[2], const uint8_t *at, size_t size)
{
	ElfW(Nhdr) note;

	while (size >= sizeof(note)) {
		size_t name, bytes;

		memcpy(&note, at, sizeof(note));
		name = rounded(note.n_namesz);
		bytes = sizeof(note) + name + rounded(note.n_descsz);
		if (bytes > size)
			return false;
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
		    note.n_descsz && memcmp(at + sizeof(note), "GNU", 4) == 0) {
			hash(key, at + sizeof(note) + name, note.n_descsz);
			return true;
		}
		at += bytes;
		size -= bytes;
	}
	return false;
}

/* What look_for_build hashes into, and whether it has. */
struct build {
	uint64_t key[2];
	bool found;
};

/* Of the loaded file that has the compiler, hash the build ID, and end the iteration. */
static int look_for_build(struct dl_phdr_info *file, size_t size, void *context)
{
	static const char here[] = "an object of the file that has the compiler";
	const uintptr_t offset = (uintptr_t)here - file->dlpi_addr;
	struct build *b = context;
	bool ours = false;

	(void)size;
	for (uint16_t i = 0; i < file->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &file->dlpi_phdr[i];

		ours |= p->p_type == PT_LOAD && offset - p->p_vaddr < p->p_memsz;
	}
	for (uint16_t i = 0; ours && !b->found && i < file->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &file->dlpi_phdr[i];
		/* NOLINTNEXTLINE(performance-no-int-to-ptr): of a loaded file */
		const void *at = (const void *)(file->dlpi_addr + p->p_vaddr);

		if (p->p_type == PT_NOTE)
			b->found = hash_build_id(b->key, at, p->p_memsz);
	}
	return ours;
}

/* Hash everything that the program depends on, the compiler and each member of the
 * options, into *h; false: it is not known which build of the compiler this is. */
static bool make_header(struct header *h, const struct npuc_model *m,
			const struct npuc_options *o)
{
	struct build b = {.key = {UINT64_C(0xcbf29ce484222325), FORMAT}};

	_Static_assert(sizeof(*o) == 16, "hash new options here");
	(void)dl_iterate_phdr(look_for_build, &b);
	hash_number(b.key, o ? o->rows : 0);
	hash_number(b.key, o ? o->cols : 0);
	hash_number(b.key, o ? (uint32_t)o->reference : 0);
	hash(b.key, m->bytes, m->flat.size);
	*h = (struct header){.magic = {'N', 'P', 'U', 'C', 'A', 'C', 'H', '\n'},
			     .key = {b.key[0], b.key[1]}};
	return b.found;
}

/* Make FOLDER/KEY.cache with an ending, malloc'ed. */
static char *path_of(const char *folder, const struct header *h, const char *ending)
{
	size_t size = strlen(folder) + 64;
	char *path = malloc(size);

	if (path)
		snprintf(path, size, "%s/%016llx%016llx.cache%s", folder,
			 (unsigned long long)h->key[0], (unsigned long long)h->key[1],
			 ending);
	return path;
}

/* Describe the bytes that follow. */
static void describe(struct header *h, const void *bytes, size_t size)
{
	h->bytes = size;
	h->sum[0] = h->sum[1] = 0;
	hash(h->sum, bytes, size);
}

/* Read a program; false: there is none, or it is not what belongs there. */
static bool load(const char *path, const struct header *h, struct npuc_program *p)
{
	struct header want = *h;
	char why[NPUC_WHY];
	uint8_t *program;
	void *bytes;
	size_t size;
	bool good;

	if (npuc_read_file(path, NPUC_MODEL_MAX, &bytes, &size, why) != 0)
		return false;
	good = size >= sizeof(want);
	if (good) {
		size -= sizeof(want);
		program = (uint8_t *)bytes + sizeof(want);
		describe(&want, program, size);
		good = memcmp(&want, bytes, sizeof(want)) == 0 &&
		       npuc_program_parse(program, size, path, p, why) == 0;
	}
	free(bytes);
	return good;
}

static int write_all(int fd, const void *data, size_t size)
{
	const char *at = data;

	while (size) {
		ssize_t n = write(fd, at, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? errno : EIO;
		at += n;
		size -= (size_t)n;
	}
	return 0;
}

/* Write a file of a name that no other process has, and give it the right name at once:
 * who reads meanwhile has the old one or the new one.  Return 0 or an errno. */
static int replace(char *temporary, const char *path, const struct header *h,
		   const void *bytes)
{
	int fd = mkstemp(temporary), err = fd < 0 ? errno : 0;

	if (err)
		return err;
	err = write_all(fd, h, sizeof(*h));
	if (!err)
		err = write_all(fd, bytes, h->bytes);
	if (!err && fchmod(fd, 0644) != 0)
		err = errno;
	if (close(fd) != 0 && !err)
		err = errno;
	if (!err && rename(temporary, path) != 0)
		err = errno;
	if (err)
		(void)unlink(temporary);
	return err;
}

/* Keep a program.  Where that fails only the next process has more to do. */
static void store(const char *folder, const char *path, struct header *h,
		  const struct npuc_program *p, char *why)
{
	char *temporary = path_of(folder, h, ".XXXXXX");
	uint8_t *bytes = NULL;
	size_t size = 0;
	int err = ENOMEM;

	if (temporary && npuc_program_bytes(p, &bytes, &size)) {
		describe(h, bytes, size);
		err = replace(temporary, path, h, bytes);
	}
	if (err)
		npuc_fail(why, err, "%s: the compiled program cannot be kept: %s", folder,
			  hal_strerror(err));
	free(temporary);
	free(bytes);
}

int npuc_compile_cached(const struct npuc_model *m, const struct npuc_options *o,
			const char *folder, struct npuc_program *p, bool *hit,
			char why[NPUC_WHY])
{
	struct header h;
	bool found = false;
	char *path;
	int rc = 0;

	why[0] = '\0';
	if (hit)
		*hit = false;
	if (!folder || (o && (o->keep || o->layers)))
		return npuc_compile(m, o, p, why);
	if (!make_header(&h, m, o)) {
		rc = npuc_compile(m, o, p, why);
		if (!rc)
			npuc_fail(why, ENOTSUP,
				  "%s: nothing is kept: libnpuc has no build ID; link it "
				  "with --build-id",
				  folder);
		return rc;
	}
	path = path_of(folder, &h, "");
	if (!path)
		return npuc_fail(why, ENOMEM, "%s: out of memory", m->file);
	found = load(path, &h, p);
	if (hit)
		*hit = found;
	if (!found)
		rc = npuc_compile(m, o, p, why);
	if (!found && !rc)
		store(folder, path, &h, p, why);
	free(path);
	return rc;
}
