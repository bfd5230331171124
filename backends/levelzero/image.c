/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is in an image: a table in front of a module (hal/levelzero.h), SPIR-V whose entry
 * points and parameters are read, or a native binary, which only the driver can read.
 * SPIR-V: Khronos SPIR-V specification 1.2, physical layout of a module.
 */
#define _GNU_SOURCE
#include "internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SPIRV_MAGIC            0x07230203u
#define SPIRV_SWAPPED          0x03022307u
#define SPIRV_HEAD             5u /* words */
#define SPIRV_IDS_MAX          (1u << 22)
#define SPIRV_MODEL_KERNEL     6u
#define SPIRV_MODE_LOCAL       17u
#define SPIRV_SIZE_POINTER     0xffu
#define SPIRV_STORAGE_CONSTANT 0u
#define SPIRV_STORAGE_GLOBAL   5u
#define SPIRV_STORAGE_GENERIC  8u
#define SPIRV_NAME_MAX         31u

enum spirv_op {
	OP_ENTRY_POINT = 15,
	OP_EXECUTION_MODE = 16,
	OP_TYPE_INT = 21,
	OP_TYPE_FLOAT = 22,
	OP_TYPE_VECTOR = 23,
	OP_TYPE_POINTER = 32,
	OP_FUNCTION = 54,
	OP_FUNCTION_PARAMETER = 55,
	OP_FUNCTION_END = 56,
};

struct spirv {
	const uint32_t *words;
	size_t count;
	uint32_t bound;
	uint8_t *sizes;    /* of each type's id in bytes, SPIRV_SIZE_POINTER, 0: other */
	uint32_t *entries; /* function id of each kernel */
	struct lz_program *prog;
};

/* ---- table ------------------------------------------------------------------------- */

static int check_head(const struct hal_levelzero_image *h, size_t size)
{
	uint64_t table;

	if (size < sizeof(*h))
		return lz_host->fail(
			EINVAL,
			"levelzero: the image has %zu bytes; its header alone needs %zu",
			size, sizeof(*h));
	if (h->version != HAL_LEVELZERO_VERSION)
		return lz_host->fail(EINVAL,
				     "levelzero: the image has version %u at byte 4; "
				     "this library reads version %u",
				     h->version, HAL_LEVELZERO_VERSION);
	if (h->bytes != size)
		return lz_host->fail(EINVAL,
				     "levelzero: the image has %zu bytes, but %u "
				     "according to its header",
				     size, h->bytes);
	if (h->kernel_size != sizeof(struct hal_levelzero_kernel))
		return lz_host->fail(EINVAL,
				     "levelzero: the image has kernel_size %u at byte "
				     "20; it must be %zu",
				     h->kernel_size, sizeof(struct hal_levelzero_kernel));
	table = (uint64_t)h->kernel_count * h->kernel_size;
	if (!h->kernel_count || h->native > 1 || !h->module_bytes ||
	    sizeof(*h) + table + h->module_bytes != size)
		return lz_host->fail(EINVAL,
				     "levelzero: the image's %u kernels and module of %u "
				     "bytes do not add up to its %zu bytes",
				     h->kernel_count, h->module_bytes, size);
	return 0;
}

static int take_kernel(struct lz_program *prog, uint32_t i,
		       const struct hal_levelzero_kernel *k)
{
	struct lz_kernel *out = &prog->kernels[i];
	uint32_t a;

	if (!memchr(k->name, 0, sizeof(k->name)) || !k->name[0])
		return lz_host->fail(
			EINVAL,
			"levelzero: kernel %u has no valid name (1 to 31 characters)", i);
	if (k->arg_count > HAL_ARGS_MAX)
		return lz_host->fail(
			EINVAL, "levelzero: kernel %s: %u arguments; the limit is %u",
			k->name, k->arg_count, HAL_ARGS_MAX);
	for (a = 0; a < k->arg_count; a++) {
		uint32_t b = k->scalar_bytes[a];

		if (b > 8 || (b & (b - 1)) || (b && k->arg_bytes[a]))
			return lz_host->fail(
				EINVAL,
				"levelzero: kernel %s: argument %u is neither a "
				"scalar of 1, 2, 4 or 8 bytes nor memory",
				k->name, a);
		stream_param_set(&out->params, a, b);
		out->takes_address |= b == 8;
		out->info.arg_bytes[a] = k->arg_bytes[a];
	}
	memcpy(out->info.name, k->name, sizeof(out->info.name));
	out->info.arg_count = k->arg_count;
	out->info.work = k->work;
	for (a = 0; a < 3; a++)
		out->group_size[a] = k->group_size[a] ? k->group_size[a] : 1;
	return 0;
}

static int allocate_kernels(struct lz_program *prog, uint32_t count)
{
	uint32_t i;

	prog->kernels = calloc(count ? count : 1, sizeof(*prog->kernels));
	if (!prog->kernels)
		return lz_host->fail(ENOMEM, "levelzero: no memory for %u kernels",
				     count);
	prog->count = count;
	for (i = 0; i < count; i++)
		prog->kernels[i].prog = prog;
	return 0;
}

static int parse_table(const void *image, size_t size, struct lz_program *prog)
{
	const struct hal_levelzero_image *h = image;
	const struct hal_levelzero_kernel *k;
	uint32_t i;
	int err;

	err = check_head(h, size);
	if (!err)
		err = allocate_kernels(prog, h->kernel_count);
	if (err || !prog->kernels)
		return err;
	k = (const void *)(h + 1);
	for (i = 0; !err && i < h->kernel_count; i++)
		err = take_kernel(prog, i, &k[i]);
	prog->format = h->native ? LZ_FORMAT_NATIVE : LZ_FORMAT_SPIRV;
	prog->code = (const uint8_t *)(k + h->kernel_count);
	prog->code_bytes = h->module_bytes;
	return err;
}

/* ---- SPIR-V ------------------------------------------------------------------------ */

static int check_words(const struct spirv *s)
{
	size_t i, n;

	if (s->count < SPIRV_HEAD || !s->bound || s->bound > SPIRV_IDS_MAX)
		return lz_host->fail(EINVAL,
				     "levelzero: invalid SPIR-V of %zu words with %u ids",
				     s->count, s->bound);
	for (i = SPIRV_HEAD; i < s->count; i += n) {
		n = s->words[i] >> 16;
		if (!n || n > s->count - i)
			return lz_host->fail(
				EINVAL,
				"levelzero: the SPIR-V is truncated: the instruction at "
				"byte %zu has %zu words, but %zu are left",
				i * 4, n, s->count - i);
	}
	return 0;
}

static uint32_t size_of(const struct spirv *s, uint32_t id)
{
	return id < s->bound ? s->sizes[id] : 0;
}

static void set_size(const struct spirv *s, uint32_t id, uint32_t bytes)
{
	if (id < s->bound && bytes < SPIRV_SIZE_POINTER)
		s->sizes[id] = (uint8_t)bytes;
}

static struct lz_kernel *kernel_of(const struct spirv *s, uint32_t id)
{
	uint32_t i;

	for (i = 0; i < s->prog->count; i++)
		if (s->entries[i] == id)
			return &s->prog->kernels[i];
	return NULL;
}

static int take_entry(const struct spirv *s, const uint32_t *w, size_t n, uint32_t i)
{
	struct lz_kernel *k = &s->prog->kernels[i];
	const char *name = (const char *)&w[3];
	size_t room = (n - 3) * 4, length = strnlen(name, room);

	if (!length || length == room || length > SPIRV_NAME_MAX)
		return lz_host->fail(EINVAL,
				     "levelzero: SPIR-V entry point %u has no name of 1 "
				     "to %u characters",
				     i, SPIRV_NAME_MAX);
	s->entries[i] = w[2];
	memcpy(k->info.name, name, length);
	k->group_size[0] = k->group_size[1] = k->group_size[2] = 1;
	return 0;
}

static int take_parameter(const struct spirv *s, struct lz_kernel *k, uint32_t type)
{
	uint32_t bytes = size_of(s, type), a = k->info.arg_count;

	if (a == HAL_ARGS_MAX)
		return lz_host->fail(EINVAL,
				     "levelzero: kernel %s has more than %u arguments",
				     k->info.name, HAL_ARGS_MAX);
	if (bytes != SPIRV_SIZE_POINTER && (!bytes || bytes > 8 || (bytes & (bytes - 1))))
		return lz_host->fail(
			ENOTSUP,
			"levelzero: kernel %s: argument %u is neither memory nor "
			"a scalar of at most 8 bytes",
			k->info.name, a);
	stream_param_set(&k->params, a, bytes == SPIRV_SIZE_POINTER ? 0 : bytes);
	k->takes_address |= bytes == 8;
	k->info.arg_count++;
	return 0;
}

/* Storage classes that a buffer can be passed for; a work group's own memory is none. */
static bool is_memory(uint32_t storage)
{
	return storage == SPIRV_STORAGE_CONSTANT || storage == SPIRV_STORAGE_GLOBAL ||
	       storage == SPIRV_STORAGE_GENERIC;
}

static void take_type(const struct spirv *s, const uint32_t *w, size_t n)
{
	switch (w[0] & 0xffff) {
	case OP_TYPE_INT:
	case OP_TYPE_FLOAT:
		if (n > 2)
			set_size(s, w[1], w[2] / 8);
		break;
	case OP_TYPE_VECTOR:
		if (n > 3 && w[3] <= 16)
			set_size(s, w[1], size_of(s, w[2]) * (w[3] == 3 ? 4 : w[3]));
		break;
	case OP_TYPE_POINTER:
		if (n > 3 && w[1] < s->bound && is_memory(w[2]))
			s->sizes[w[1]] = SPIRV_SIZE_POINTER;
		break;
	default:
		break;
	}
}

static int take_words(const struct spirv *s)
{
	struct lz_kernel *k = NULL;
	uint32_t entry = 0, ended = 0;
	size_t i, n;
	int err = 0;

	for (i = SPIRV_HEAD; !err && i < s->count; i += n) {
		const uint32_t *w = &s->words[i];

		n = w[0] >> 16;
		switch (w[0] & 0xffff) {
		case OP_ENTRY_POINT:
			if (n > 3 && w[1] == SPIRV_MODEL_KERNEL)
				err = take_entry(s, w, n, entry++);
			break;
		case OP_EXECUTION_MODE:
			if (n > 5 && w[2] == SPIRV_MODE_LOCAL && kernel_of(s, w[1]))
				memcpy(kernel_of(s, w[1])->group_size, &w[3], 12);
			break;
		case OP_FUNCTION:
			k = n > 2 ? kernel_of(s, w[2]) : NULL;
			break;
		case OP_FUNCTION_PARAMETER:
			if (k && n > 2)
				err = take_parameter(s, k, w[1]);
			break;
		case OP_FUNCTION_END:
			ended += k != NULL;
			k = NULL;
			break;
		default:
			take_type(s, w, n);
		}
	}
	if (!err && ended < s->prog->count)
		err = lz_host->fail(EINVAL,
				    "levelzero: the SPIR-V is truncated: only %u of its "
				    "%u kernels are complete",
				    ended, s->prog->count);
	return err;
}

static int parse_spirv(struct lz_program *prog)
{
	struct spirv s = {.count = prog->code_bytes / 4, .prog = prog};
	uint32_t entries = 0;
	size_t i;
	int err;

	s.words = (const void *)prog->code;
	s.bound = s.count > 3 ? s.words[3] : 0;
	if (prog->code_bytes % 4)
		return lz_host->fail(EINVAL,
				     "levelzero: SPIR-V of %zu bytes; the size must be a "
				     "multiple of 4",
				     prog->code_bytes);
	err = check_words(&s);
	if (err)
		return err;
	for (i = SPIRV_HEAD; i < s.count; i += s.words[i] >> 16)
		entries += s.words[i] >> 16 > 3 &&
			   (s.words[i] & 0xffff) == OP_ENTRY_POINT &&
			   s.words[i + 1] == SPIRV_MODEL_KERNEL;
	if (!entries)
		return lz_host->fail(EINVAL, "levelzero: the SPIR-V has no kernel");
	err = allocate_kernels(prog, entries);
	if (err || !prog->kernels)
		return err;
	s.sizes = calloc(s.bound, 1);
	s.entries = calloc(entries, sizeof(*s.entries));
	if (s.sizes && s.entries)
		err = take_words(&s);
	else
		err = lz_host->fail(ENOMEM, "levelzero: no memory to read SPIR-V");
	free(s.sizes);
	free(s.entries);
	return err;
}

/* ---- image ------------------------------------------------------------------------- */

static uint32_t magic_of(const void *image, size_t size)
{
	uint32_t magic = 0;

	if (size >= sizeof(magic))
		memcpy(&magic, image, sizeof(magic));
	return magic;
}

/* Leaves .count 0 where only the driver knows; kernels are freed by the caller. */
int lz_image_parse(const void *image, size_t size, struct lz_program *prog)
{
	uint32_t magic = magic_of(image, size);
	bool table = magic == HAL_LEVELZERO_MAGIC;

	prog->code = image;
	prog->code_bytes = size;
	if (size < sizeof(magic))
		return lz_host->fail(
			EINVAL, "levelzero: an image of %zu bytes is too short", size);
	if (magic == SPIRV_SWAPPED)
		return lz_host->fail(
			EINVAL,
			"levelzero: the SPIR-V has the wrong byte order at byte 0");
	prog->format = magic == SPIRV_MAGIC ? LZ_FORMAT_SPIRV : LZ_FORMAT_NATIVE;
	if (table) {
		int err = parse_table(image, size, prog);

		if (err)
			return err;
	}
	if (prog->format == LZ_FORMAT_SPIRV &&
	    magic_of(prog->code, prog->code_bytes) != SPIRV_MAGIC)
		return lz_host->fail(
			EINVAL,
			"levelzero: the module is not SPIR-V: it begins with 0x%08x",
			magic_of(prog->code, prog->code_bytes));
	if (prog->format == LZ_FORMAT_SPIRV && !table)
		return parse_spirv(prog);
	return 0;
}
